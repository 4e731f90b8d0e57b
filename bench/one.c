/*
 * one.c - keys that come one by one, kind by kind
 *
 *     build/bench/one [ITEMS [ROUNDS]]       default: 1M, 5
 *
 * Nanoseconds per call of bly_add() and bly_has() with integers, their hashing
 * included, in filters of 1 %; and in brackets as multiples of a random read of
 * the same memory that waits for no other: less than that no call can take.
 * The keys are asked in pieces, and of each piece the shortest time of all
 * rounds counts, so that a busy machine shows as little as possible.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>

#include <bloomery/inline.h> /* bly_mulhi() */

#include "bench/measure.h"

#define PIECE ((size_t)10000)
#define MAX_ASKED ((size_t)1000000)

static struct {
    size_t n, nasked;
    int rounds;
    uint64_t *present, *absent; /* keys */
    unsigned char *memory;      /* as much as the largest filter */
    size_t nbytes;              /* as much as this one */
    bly_filter *f;
    uint64_t sink;
} w;

static void read_piece(size_t from)
{
    uint64_t sum = 0;
    for (size_t i = from; i < from + PIECE; i++)
        sum += w.memory[bly_mulhi(w.absent[i], w.nbytes)];
    w.sink += sum;
}

static void ask_absent(size_t from)
{
    uint64_t sum = 0;
    for (size_t i = from; i < from + PIECE; i++)
        sum += bly_has(w.f, &w.absent[i], sizeof w.absent[i]);
    w.sink += sum;
}

static void ask_present(size_t from)
{
    uint64_t sum = 0;
    for (size_t i = from; i < from + PIECE; i++)
        sum += bly_has(w.f, &w.present[i], sizeof w.present[i]);
    w.sink += sum;
}

static void add_piece(size_t from)
{
    for (size_t i = from; i < from + PIECE; i++)
        if (bly_add(w.f, &w.present[i], sizeof w.present[i]))
            exit(2);
}

/* Nanoseconds per key, of the first n of them. A round goes through all pieces:
 * twice in a row, a piece would be in the caches. */
static double timed(void (*run)(size_t from), size_t n, int rounds)
{
    const size_t npieces = n / PIECE;
    double *const best = malloc(npieces * sizeof *best), sum = 0;
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < npieces; i++) {
            const double start = now_ns();
            run(i * PIECE);
            const double took = now_ns() - start;
            best[i] = round && best[i] < took ? best[i] : took;
        }
    for (size_t i = 0; i < npieces; i++)
        sum += best[i];
    free(best);
    return sum / (double)(npieces * PIECE);
}

static void build(const bly_spec *spec)
{
    uint64_t hashes[1000];
    bly_builder *b;
    if (bly_builder_new(spec, &b))
        exit(2);
    for (size_t from = 0, n; from < w.n; from += n) {
        n = w.n - from < 1000 ? w.n - from : 1000;
        bly_hash_ints(bly_builder_hasher(b), w.present + from, n, hashes);
        if (bly_builder_add(b, hashes, NULL, n))
            exit(2);
    }
    if (bly_builder_finish(b, 1, &w.f))
        exit(2);
    bly_builder_free(b);
}

static void row(const bly_kind_info *kind)
{
    const bly_spec spec = { .kind = kind->name, .items = w.n, .fpr = 0.01 };
    const bool adds = kind->can & BLY_CAN(ADD);
    bly_stats stats;
    double add = 0;
    if (adds && bly_new(&spec, &w.f))
        exit(2);
    if (adds) /* a key is added once: one round */
        add = timed(add_piece, w.n, 1);
    else
        build(&spec);
    bly_peek(w.f, &stats);
    w.nbytes = stats.bytes;
    w.memory = realloc(w.memory, w.nbytes);
    if (!w.memory)
        exit(2);
    memset(w.memory, 1, w.nbytes);
    const double load = timed(read_piece, w.nasked, w.rounds);
    const double no = timed(ask_absent, w.nasked, w.rounds);
    const double yes = timed(ask_present, w.nasked, w.rounds);
    printf("%-12s %7.2f %9.2f (%5.1f) %8.2f (%5.1f)", kind->name, load, no,
           no / load, yes, yes / load);
    if (adds)
        printf(" %8.2f (%5.1f)", add, add / load);
    printf("\n");
    fflush(stdout);
    bly_free(w.f);
}

int main(int argc, char **argv)
{
    uint64_t items = 1000000;
    bly_kind_info kind;
    w.rounds = argc > 2 ? atoi(argv[2]) : 5;
    if ((argc > 1 && !bly_parse_count(argv[1], &items)) || items < PIECE ||
        w.rounds < 1) {
        fprintf(stderr, "usage: one [ITEMS [ROUNDS]], ITEMS at least %zu\n",
                PIECE);
        return 2;
    }
    w.n = (size_t)items;
    w.nasked = w.n < MAX_ASKED ? w.n : MAX_ASKED;
    w.present = room(w.n * 8);
    w.absent = room(w.nasked * 8);
    for (size_t i = 0; i < w.n; i++)
        w.present[i] = mix(i);
    for (size_t i = 0; i < w.nasked; i++)
        w.absent[i] = mix(i + w.n);
    printf("%zu keys, ns per key and multiples of a read\n\n", w.n);
    printf("%-12s %7s %17s %16s %16s\n", "kind", "read", "absent", "present",
           "add");
    for (size_t i = 0; bly_kind_at(i, &kind); i++)
        /* Kinds with values are built from these, and asked for them. */
        if (kind.can & BLY_CAN(HAS) && !(kind.can & BLY_CAN(GET)))
            row(&kind);
    return w.sink == 1; /* which it is not: the sums are used */
}

/*
 * speed_blocked.c - the default kind against the floor of the machine
 *
 *     build/bench/speed_blocked [ITEMS [ROUNDS]]       default: 10M, 9
 *
 * Every way of adding to and asking a blocked filter of 1 %, with integer keys
 * and their hashing, as multiples of F: nanoseconds of an independent random
 * read of a line at the same footprint on huge pages, fetched ahead in two
 * stages, by the best of several distances. A round measures everything once;
 * the multiple is the median over the rounds of the ratio within a round.
 * Times are the thread's own, so that a busy machine only spoils caches.
 *
 * What was found with it, on a Zen 4 with AVX-512, and is now in the library:
 *   - hashes and lines of eight keys at once, in vectors, are nearly free; a
 *     separate pass of hashing cost half of a question that hits the caches;
 *   - fetching a line right after its address was stored in a vector waits for
 *     that store; one group later asking is 15 % faster;
 *   - testing a mask register (kortest) competes with the probe: moving it to
 *     a general register makes the probe alone 20 % faster;
 *   - a single key through the set-up of a batch waits for the key before it
 *     and takes three times as long as by itself;
 *   - far 128 and near 8: far 64 is 25 % slower at 10 million keys, near 24 is
 *     16 % slower at 100 million; one stage alone is slower everywhere past L2.
 *
 * The inline form is compiled for the processor that this program is compiled
 * for; CFLAGS="-O2 -march=native" shows it with vectors.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include <bloomery/inline.h>

#include "bench/measure.h"

#define MAX_ROUNDS 99
#define MAX_ASKED ((size_t)2000000)

/* What is measured. A call is one pass over the asked keys. */
static struct {
    size_t n, nasked;
    uint64_t *present, *absent, *half; /* keys */
    uint64_t *offset;                  /* of random lines */
    uint64_t *maybe;
    unsigned char *lines; /* as many bytes as the filter has */
    bly_filter *f;
    bly_blocked view;
    uint64_t sink;
} w;

static inline __attribute__((always_inline)) void reads(size_t far, size_t near)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < w.nasked; i++) {
        if (far)
            __builtin_prefetch(w.lines + w.offset[i + far], 0, 2);
        if (near)
            __builtin_prefetch(w.lines + w.offset[i + near], 0, 3);
        uint64_t word;
        memcpy(&word, w.lines + w.offset[i], sizeof word);
        sum += word;
    }
    w.sink += sum;
}

static void floor_64_8(void)
{
    reads(64, 8);
}
static void floor_96_16(void)
{
    reads(96, 16);
}
static void floor_128_8(void)
{
    reads(128, 8);
}
static void floor_128_16(void)
{
    reads(128, 16);
}
static void floor_none(void)
{
    reads(0, 0);
}

/* The filter is new in every round, and so are its pages. */
static void new_filter(void)
{
    const bly_spec spec = { .items = w.n,
                            .fpr = 0.01,
                            .keying = { BLY_KEYS_UINT64, 0 } };
    bly_free(w.f);
    if (bly_new(&spec, &w.f) || !bly_blocked_view(w.f, &w.view))
        exit(2);
}

static void add(void)
{
    if (bly_add_ints(w.f, w.present, w.n, NULL, NULL))
        exit(2);
}

static void add_again(void)
{
    (void)!bly_add_ints(w.f, w.present, w.nasked, NULL, NULL);
}

static void ask_absent(void)
{
    bly_has_ints(w.f, w.absent, w.nasked, w.maybe);
}

static void ask_present(void)
{
    bly_has_ints(w.f, w.present, w.nasked, w.maybe);
}

static void ask_by(size_t many)
{
    for (size_t i = 0; i < w.nasked; i += many)
        bly_has_ints(w.f, w.absent + i,
                     w.nasked - i < many ? w.nasked - i : many,
                     w.maybe + i / 64);
}

static void ask_by_1024(void)
{
    ask_by(1024);
}
static void ask_by_256(void)
{
    ask_by(256);
}
static void ask_by_64(void)
{
    ask_by(64);
}
static void ask_by_16(void)
{
    uint64_t bits, sum = 0;
    for (size_t i = 0; i + 16 <= w.nasked; i += 16) {
        bly_has_ints(w.f, w.absent + i, 16, &bits);
        sum += bits;
    }
    w.sink += sum;
}

static void act_on_hits(void)
{
    uint64_t sum = 0;
    bly_has_ints(w.f, w.half, w.nasked, w.maybe);
    for (size_t i = 0; i < BLY_BITMAP_WORDS(w.nasked); i++)
        for (uint64_t bits = w.maybe[i]; bits; bits &= bits - 1)
            sum += w.half[i * 64 + (unsigned)__builtin_ctzll(bits)];
    w.sink += sum;
}

static void single_inline(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < w.nasked; i++)
        sum += bly_blocked_has_int(&w.view, w.absent[i]);
    w.sink += sum;
}

static void single_called(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < w.nasked; i++)
        sum += bly_has(w.f, &w.absent[i], sizeof w.absent[i]);
    w.sink += sum;
}

static void single_add(void)
{
    for (size_t i = 0; i < w.nasked; i++)
        (void)!bly_add(w.f, &w.present[i], sizeof w.present[i]);
}

#define NFLOORS 4
static const struct {
    const char *name;
    void (*run)(void);
    bool all; /* of the keys, not of the asked ones */
} rows[] = {
    { "F, 64 and 8 ahead", floor_64_8, false },
    { "F, 96 and 16 ahead", floor_96_16, false },
    { "F, 128 and 8 ahead", floor_128_8, false },
    { "F, 128 and 16 ahead", floor_128_16, false },
    { "reads, nothing fetched", floor_none, false },
    { "add, new filter", add, true },
    { "add again", add_again, false },
    { "ask, absent", ask_absent, false },
    { "ask, present", ask_present, false },
    { "calls of 1024", ask_by_1024, false },
    { "calls of 256", ask_by_256, false },
    { "calls of 64", ask_by_64, false },
    { "calls of 16", ask_by_16, false },
    { "act on hits, half", act_on_hits, false },
    { "one by one, inline", single_inline, false },
    { "one by one, called", single_called, false },
    { "add one by one", single_add, false },
};
#define NROWS (sizeof rows / sizeof rows[0])

int main(int argc, char **argv)
{
    static double ns[NROWS][MAX_ROUNDS], ratio[NROWS][MAX_ROUNDS];
    uint64_t items = 10000000;
    int rounds = argc > 2 ? atoi(argv[2]) : 9;
    bly_prediction plan;
    if ((argc > 1 && (!bly_parse_count(argv[1], &items) || items < 1024)) ||
        rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: blocked [ITEMS [ROUNDS]]\n");
        return 2;
    }
    w.n = (size_t)items;
    w.nasked = w.n < MAX_ASKED ? w.n : MAX_ASKED;
    if (bly_plan(&(bly_spec){ .items = items, .fpr = 0.01 }, &plan))
        return 2;
    w.lines = room((size_t)plan.bytes);
    w.present = room(w.n * 8);
    w.absent = room(w.nasked * 8);
    w.half = room(w.nasked * 8);
    w.offset = room((w.nasked + 256) * 8);
    w.maybe = room(w.nasked / 8 + 8);
    for (size_t i = 0; i < w.n; i++)
        w.present[i] = mix(i);
    for (size_t i = 0; i < w.nasked; i++) {
        w.absent[i] = mix(i + w.n);
        w.half[i] = mix(i + (mix(i) & 1 ? w.n : 0));
    }
    for (size_t i = 0; i < w.nasked + 256; i++)
        w.offset[i] = bly_mulhi(mix(~(uint64_t)i), plan.bytes / 64) * 64;
    double best = 1e9;
    for (int r = 0; r < rounds; r++) {
        double f = 1e9;
        new_filter();
        for (size_t i = 0; i < NROWS; i++) {
            const double start = now_ns();
            rows[i].run();
            ns[i][r] =
                (now_ns() - start) / (double)(rows[i].all ? w.n : w.nasked);
            if (i < NFLOORS && ns[i][r] < f)
                f = ns[i][r];
        }
        best = f < best ? f : best;
        for (size_t i = 0; i < NROWS; i++)
            ratio[i][r] = ns[i][r] / f;
    }
    printf("%zu keys, %.2f bits each, median of %d rounds\n", w.n,
           plan.bits_per_key, rounds);
    for (size_t i = 0; i < NROWS; i++) {
        const double middle = median(ns[i], rounds); /* and sorted */
        printf("%-24s %7.2f ns %6.2f F   best %7.2f ns %6.2f F\n", rows[i].name,
               middle, median(ratio[i], rounds), ns[i][0], ns[i][0] / best);
    }
    __asm__ volatile("" : : "r"(w.sink));
    return 0;
}

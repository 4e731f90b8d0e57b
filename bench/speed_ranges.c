/*
 * speed_ranges.c - is any key from a to b?
 *
 *     build/bench/speed_ranges [ITEMS [ROUNDS]]       default: 1M, 5
 *
 * Nanoseconds per range of up to 256 numbers, one by one and in batches, for
 * keys and ranges anywhere, and for keys in clusters with ranges right behind
 * them; single keys; and a binary search of the sorted keys, which is what
 * the filter saves. In brackets, multiples of a random read of as many bytes as
 * the filter has, that waits for no other. The shortest time of all rounds
 * counts, piece by piece.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include <bloomery.h>
#include <bloomery/inline.h> /* bly_mulhi() */

#include "base/search.h"
#include "bench/measure.h"

#define PIECE ((size_t)4096)
#define ASKED ((size_t)64 * PIECE)

static struct {
    size_t n, nbytes;
    int rounds;
    uint64_t *keys, *a, *b, *hashes; /* keys sorted */
    unsigned char *memory;
    bly_filter *f;
    uint64_t sink;
} w;

static int by_value(const void *x, const void *y)
{
    const uint64_t p = *(const uint64_t *)x, q = *(const uint64_t *)y;
    return (p > q) - (p < q);
}

static void read_piece(size_t from)
{
    for (size_t i = from; i < from + PIECE; i++)
        w.sink += w.memory[bly_mulhi(mix(w.a[i]), w.nbytes)];
}

static void ask_one_by_one(size_t from)
{
    for (size_t i = from; i < from + PIECE; i++) {
        bool any = true;
        (void)bly_has_range(w.f, w.a[i], w.b[i], &any);
        w.sink += any;
    }
}

static void ask_batch(size_t from)
{
    uint64_t maybe[BLY_BITMAP_WORDS(PIECE)] = { 0 };
    (void)bly_has_ranges(w.f, w.a + from, w.b + from, PIECE, maybe);
    w.sink += maybe[0];
}

static void ask_keys(size_t from)
{
    uint64_t maybe[BLY_BITMAP_WORDS(PIECE)];
    bly_has_ints(w.f, w.a + from, PIECE, maybe);
    w.sink += maybe[0];
}

static void ask_key(size_t from)
{
    for (size_t i = from; i < from + PIECE; i++)
        w.sink += bly_has(w.f, &w.a[i], sizeof w.a[i]);
}

static void search_piece(size_t from)
{
    for (size_t i = from; i < from + PIECE; i++) {
        size_t low;
        LOWER_BOUND(low, w.n, w.keys[low] < w.a[i]);
        w.sink += low < w.n && w.keys[low] <= w.b[i];
    }
}

static double best(void (*ask)(size_t from))
{
    double sum = 0;
    for (size_t from = 0; from < ASKED; from += PIECE) {
        double least = INFINITY;
        for (int r = 0; r < w.rounds; r++) {
            const double start = now_ns();
            ask(from);
            least = fmin(least, now_ns() - start);
        }
        sum += least;
    }
    return sum / (double)ASKED;
}

static void show(const char *name, double ns, double unit)
{
    printf("  %-36s %8.1f  (%.1f F)\n", name, ns, ns / unit);
}

static bool run(const char *name, bool clustered)
{
    const bly_spec spec = { .kind = "range", .items = w.n, .fpr = 0.01 };
    bly_builder *b;
    for (size_t i = 0; i < w.n; i++)
        w.keys[i] = clustered && i % 1000 ? w.keys[i - 1] + 1 + mix(i) % 300
                                          : mix(i + 1);
    if (bly_builder_new(&spec, &b))
        return false;
    bly_hash_ints(bly_builder_hasher(b), w.keys, w.n, w.hashes);
    const double start = now_ns();
    const bool made = !bly_builder_add(b, w.hashes, NULL, w.n) &&
                      !bly_builder_finish(b, 1, &w.f);
    const double built = now_ns() - start;
    bly_builder_free(b);
    if (!made)
        return false;
    qsort(w.keys, w.n, sizeof *w.keys, by_value);
    for (size_t i = 0; i < ASKED; i++) {
        const uint64_t x = mix(i + (UINT64_C(1) << 40));
        w.a[i] = clustered ? w.keys[x % w.n] + 1 : x;
        w.b[i] = w.a[i] > UINT64_MAX - 256 ? w.a[i] : w.a[i] + mix(x) % 256;
    }
    bly_stats s;
    bly_peek(w.f, &s);
    w.nbytes = (size_t)(s.bits / 8);
    w.memory = room(w.nbytes);
    const double unit = best(read_piece);
    printf("%s: %zu keys, %.2f bits per key, F %.2f ns\n", name, w.n,
           (double)s.bits / (double)w.n, unit);
    printf("  %-36s %8.1f\n", "building, per key", built / (double)w.n);
    show("ranges, in batches", best(ask_batch), unit);
    show("ranges, one by one", best(ask_one_by_one), unit);
    show("keys, in batches", best(ask_keys), unit);
    show("keys, one by one", best(ask_key), unit);
    show("binary search of the keys", best(search_piece), unit);
    bly_free(w.f);
    w.f = NULL;
    return true;
}

int main(int argc, char **argv)
{
    uint64_t n = 1000000;
    w.rounds = argc > 2 ? atoi(argv[2]) : 5;
    if ((argc > 1 && !bly_parse_count(argv[1], &n)) || n < 1000 ||
        w.rounds < 1) {
        fprintf(stderr, "usage: ranges [ITEMS [ROUNDS]]\n");
        return 2;
    }
    w.n = (size_t)n;
    w.keys = room(w.n * sizeof *w.keys);
    w.hashes = room(w.n * sizeof *w.hashes);
    w.a = room(ASKED * sizeof *w.a);
    w.b = room(ASKED * sizeof *w.b);
    if (run("anywhere", false) && run("behind keys in clusters", true))
        return w.sink == 1; /* so that nothing is left out */
    fprintf(stderr, "%s\n", bly_error());
    return 2;
}

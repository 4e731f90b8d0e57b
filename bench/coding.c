/*
 * coding.c - what coding a filter costs and gains
 *
 * Arrays of a hundred million bits at several densities, as classic filters of
 * one probe that hold more or fewer keys: bytes against the entropy of the
 * contents, and the time to code and decode against that of a checksum over
 * the same memory, the median of five rounds.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include <bloomery.h>

#include "bench/measure.h"

#define BITS 100000000
#define ROUNDS 5
#define HEADER 296 /* of a coded file */

static void coding_row(const bly_filter *f, unsigned char *bytes, double fill)
{
    double code[ROUNDS], decode[ROUNDS], sum[ROUNDS];
    const bly_hasher plain = { .id = BLY_HASH_XXH3 };
    const size_t n = (size_t)bly_written_bytes(f);
    volatile uint64_t sink = 0;
    bly_write_part(f, 0, bytes, n);
    for (int i = 0; i < ROUNDS; i++) {
        double from = now_ns() / 1e9;
        sink += bly_written_bytes(f); /* one pass of the coder */
        code[i] = now_ns() / 1e9 - from;
        bly_filter *g;
        from = now_ns() / 1e9;
        if (bly_load(bytes, n, NULL, &g))
            exit(2);
        decode[i] = now_ns() / 1e9 - from;
        bly_free(g);
        from = now_ns() / 1e9;
        sink += bly_hash(&plain, bytes + n, BITS / 8);
        sum[i] = now_ns() / 1e9 - from;
    }
    const double least = bly_entropy(f) / 8, c = median(code, ROUNDS),
                 d = median(decode, ROUNDS), s = median(sum, ROUNDS);
    printf("%9.5f %12.0f %10zu %7.3f %% %6.2f %6.2f %8.1f %8.1f\n", fill, least,
           n - HEADER, 100 * ((double)(n - HEADER) / least - 1), c * 1e9 / BITS,
           d * 1e9 / BITS, c / s, d / s);
}

int main(void)
{
    static const double nkeys[] = { 1e4, 1e5, 1e6, 1e7, 3e7, 7e7, 2e8, 5e8 };
    const bly_option k = { "k", "1" };
    const bly_spec spec = { .kind = "classic",
                            .items = 1000,
                            .bits = BITS,
                            .options = &k,
                            .noptions = 1 };
    bly_filter *f;
    unsigned char *bytes = calloc(1, BITS / 2);
    if (!bytes || bly_new(&spec, &f))
        return 2;
    bly_set_coded(f, true);
    printf("%9s %12s %10s %9s %6s %6s %8s %8s\n", "fill", "entropy", "bytes",
           "over", "code", "decode", "code/sum", "dec/sum");
    uint64_t next = 0;
    for (size_t i = 0; i < sizeof nkeys / sizeof nkeys[0]; i++) {
        uint64_t ints[1024];
        while ((double)next < nkeys[i]) {
            for (size_t j = 0; j < 1024; j++)
                ints[j] = next++;
            (void)!bly_add_ints(f, ints, 1024, NULL, NULL);
        }
        bly_stats s;
        bly_stat(f, &s);
        coding_row(f, bytes, s.fill);
    }
    puts("code and decode in ns a bit");
    bly_free(f);
    free(bytes);
    return 0;
}

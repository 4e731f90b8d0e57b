/*
 * reconcile.c - coded symbols: what an element and a difference cost
 *
 *     reconcile [ROUNDS]
 *
 * A million elements of 8 bytes into 1,400 symbols, and 100,000 differences
 * from 140,000; in nanoseconds, and as multiples of F, a load from a random
 * place of 256 MB that waits for no other (docs/performance.md).
 */
#include <stdio.h>
#include <stdlib.h>

#include <bloomery/reconcile.h>

#include "base/clock.h"
#include "base/random.h"

static void *want(void *p)
{
    if (p)
        return p;
    fprintf(stderr, "reconcile: out of memory\n");
    exit(2);
}

static void must(bly_status st)
{
    if (!st)
        return;
    fprintf(stderr, "reconcile: %s\n", bly_error());
    exit(2);
}

/* Loads that wait for no other, from 256 MB. */
static double load_time(const uint64_t *memory, uint64_t *sink)
{
    enum { LOADS = 4000000 };
    const double start = clock_thread_ns();
    uint64_t sum = 0;
    for (uint64_t i = 0; i < LOADS; i++)
        sum += memory[bly_mix64(i) >> 39];
    *sink += sum;
    return (clock_thread_ns() - start) / LOADS;
}

static double encode_time(const uint64_t *all, size_t n, uint64_t symbols,
                          const unsigned char *secret)
{
    const bly_coding how = { .secret = secret };
    bly_coded *c;
    must(bly_coded_new(&how, 0, symbols, &c));
    const double start = clock_thread_ns();
    must(bly_coded_add(c, all, n));
    const double took = (clock_thread_ns() - start) / (double)n;
    bly_coded_free(c);
    return took;
}

static double decode_time(const uint64_t *all, size_t d)
{
    const bly_coding how = { 0 };
    const uint64_t symbols = d + d * 2 / 5;
    bly_coded *mine, *theirs;
    bly_differ *found;
    must(bly_coded_new(&how, 0, symbols, &mine));
    must(bly_coded_new(&how, 0, symbols, &theirs));
    must(bly_differ_new(&how, &found));
    must(bly_coded_add(theirs, all, d));
    unsigned char *const bytes = want(malloc(bly_coded_room(theirs, symbols)));
    const size_t n = bly_coded_write(theirs, 0, symbols, bytes);
    const double start = clock_thread_ns();
    must(bly_differ_take(found, mine, bytes, n));
    const double took = (clock_thread_ns() - start) / (double)d;
    if (!bly_differ_done(found))
        fprintf(stderr, "reconcile: not decoded\n");
    free(bytes);
    bly_differ_free(found);
    bly_coded_free(mine);
    bly_coded_free(theirs);
    return took;
}

int main(int argc, char **argv)
{
    enum { N = 1000000, D = 100000 };
    const int rounds = argc > 1 ? atoi(argv[1]) : 7;
    const size_t nmemory = (size_t)1 << 25;
    uint64_t *const memory = want(malloc(nmemory * 8));
    uint64_t *const all = want(malloc(N * 8)), sink = 0;
    double f = 1e9, plain = 1e9, keyed = 1e9, decode = 1e9;
    for (size_t i = 0; i < nmemory; i++)
        memory[i] = i;
    for (uint64_t i = 0; i < N; i++)
        all[i] = bly_mix64(i + 1);
#define LEAST(x, y) ((x) = (y) < (x) ? (y) : (x))
    for (int r = 0; r < rounds; r++) {
        const double a = load_time(memory, &sink);
        const double b = encode_time(all, N, 1400, NULL);
        const double c = encode_time(all, N, 1400,
                                     (const unsigned char *)"0123456789abcdef");
        const double d = decode_time(all, D);
        LEAST(f, a);
        LEAST(plain, b);
        LEAST(keyed, c);
        LEAST(decode, d);
    }
    printf("F, a load from 256 MB             %8.1f ns\n", f);
    printf("an element into 1,400 symbols     %8.1f ns %6.1f F\n", plain,
           plain / f);
    printf("the same with a secret            %8.1f ns %6.1f F\n", keyed,
           keyed / f);
    printf("a difference of 100,000, decoded  %8.1f ns %6.1f F\n", decode,
           decode / f);
    free(memory);
    free(all);
    return sink == 1;
}

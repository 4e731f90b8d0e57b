/*
 * speed_line.c - what the floor of asking a blocked filter is made of
 *
 *     build/bench/speed_line [MEGABYTES]...            default: 0.02 1.2 12.6
 * 126
 *
 * F is a word read from each of many random lines, fetched ahead in two stages.
 * A blocked filter reads the whole line, makes a mask from a word of the key,
 * and keeps an answer. This adds the steps one by one, with places and words
 * from arrays, so without a hash, and shows what no loop around them can be
 * faster than. x86 with AVX-512 only.
 *
 * Found on a Zen 4 at 3.7 GHz, least of 40, ns per key; what the library takes
 * for asking, hash included, beside it:
 *
 *     MB                     0.02   1.2  12.6   126
 *     a word (F)             0.72  0.93  1.14  4.25
 *     the whole line         0.83  1.04  1.25  4.65
 *     with mask and answer   1.21  1.39  1.72  4.80
 *     bly_has_ints()                1.40  1.75  4.42
 *
 * In L2 and L3 the last two are one: what asking costs beyond 1.3 F there is
 * the mask, two shifts of 512 bits, and not the hash or the loop. To make it by
 * one vpmultishiftqb and a rotation takes as long. From memory it is free.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include "bench/measure.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define KEYS 1000000
#define ROUNDS 40
#define FAR 128
#define NEAR 16

static unsigned char *lines;
static uint64_t *place, *word, *answers; /* of KEYS + FAR keys */

#define AVX512 __attribute__((target("avx512f,avx512dq"), noinline))

static inline __attribute__((always_inline)) void fetch(size_t i)
{
    __builtin_prefetch(lines + place[i + FAR], 0, 2);
    __builtin_prefetch(lines + place[i + NEAR], 0, 3);
}

AVX512 static void a_word(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < KEYS; i++) {
        uint64_t x;
        fetch(i);
        memcpy(&x, lines + place[i], sizeof x);
        sum += x;
    }
    *answers = sum;
}

AVX512 static void a_line(void)
{
    const __m512i one = _mm512_set1_epi64(1);
    uint64_t sum = 0;
    for (size_t i = 0; i < KEYS; i++) {
        fetch(i);
        sum +=
            _mm512_testn_epi64_mask(one, _mm512_load_si512(lines + place[i]));
    }
    *answers = sum;
}

AVX512 static void a_key(void)
{
    const __m512i by = _mm512_setr_epi64(0, 6, 12, 18, 24, 30, 36, 42);
    const __m512i one = _mm512_set1_epi64(1);
    for (size_t from = 0; from < KEYS; from += 64) {
        uint64_t bits = 0;
        for (size_t i = from; i < from + 64; i++) {
            const __m512i g = _mm512_set1_epi64((long long)word[i]);
            const __m512i mask =
                _mm512_rolv_epi64(one, _mm512_srlv_epi64(g, by));
            fetch(i);
            const uint64_t missing = _mm512_testn_epi64_mask(
                mask, _mm512_load_si512(lines + place[i]));
            bits = bits >> 1 | ((missing - 1) >> 63) << 63;
        }
        answers[from / 64] = bits;
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} steps[] = {
    { "a word (F)", a_word },
    { "the whole line", a_line },
    { "with mask and answer", a_key },
};
#define NSTEPS (sizeof steps / sizeof steps[0])

static void measure(double megabytes)
{
    const size_t nlines = (size_t)(megabytes * 1e6 / 64) + 1;
    double best[NSTEPS];
    lines = room(nlines * 64);
    for (size_t i = 0; i < KEYS + FAR; i++)
        place[i] = mix(i) % nlines * 64;
    for (size_t s = 0; s < NSTEPS; s++)
        best[s] = 1e9;
    for (int r = 0; r < ROUNDS; r++)
        for (size_t s = 0; s < NSTEPS; s++) {
            const double start = now_ns();
            steps[s].run();
            const double ns = (now_ns() - start) / KEYS;
            best[s] = ns < best[s] ? ns : best[s];
        }
    printf("%g MB\n", megabytes);
    for (size_t s = 0; s < NSTEPS; s++)
        printf("  %-22s %6.2f ns %6.2f F\n", steps[s].name, best[s],
               best[s] / best[0]);
}

int main(int argc, char **argv)
{
    static const double usual[] = { 0.02, 1.2, 12.6, 126 };
    if (!__builtin_cpu_supports("avx512dq")) {
        printf("line: this processor has no AVX-512\n");
        return 0;
    }
    place = room((KEYS + FAR) * sizeof *place);
    word = room((KEYS + FAR) * sizeof *word);
    answers = room(KEYS / 8 + 64);
    for (size_t i = 0; i < KEYS + FAR; i++)
        word[i] = mix(~(uint64_t)i);
    for (int i = 1; i < argc; i++)
        measure(atof(argv[i]));
    for (size_t i = 0; argc < 2 && i < sizeof usual / sizeof usual[0]; i++)
        measure(usual[i]);
    return 0;
}

#else
int main(void)
{
    printf("line: for x86 only\n");
    return 0;
}
#endif

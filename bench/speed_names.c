/*
 * speed_names.c - what asking for all names above a name costs
 *
 *     build/bench/speed_names [ENTRIES [ROUNDS]]       default: 2.2M, 9
 *
 * A list of domains as a ribbon filter for one in a million, asked for names of
 * four labels that are not listed: a name has three entries, itself and those
 * above it down to two labels. Once as a name server asks, a name after the
 * other: the entries of a name are one batch of three, against a single key.
 * Between two names a server does so much else that the processor cannot work
 * on both at once, as it would in a loop; so each is waited for.
 * And once as a log is asked, 512 names at a time. Every way hashes the text.
 * Times are the thread's own; the best of the rounds counts, since a busy
 * machine only adds.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include <bloomery.h>

#include "bench/measure.h"

#define LABELS 3 /* entries of a name of four labels */
#define NAMES ((size_t)1 << 17)
#define SOME ((size_t)512)

static struct {
    bly_filter *f;
    char (*texts)[48];
    bly_bytes *whole;  /* a name each */
    bly_bytes *suffix; /* LABELS of each */
    uint64_t sink;
} w;

/* Wait until all before is done. */
static void settle(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dsb sy\n\tisb" ::: "memory");
#endif
}

static void one_by_one(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        w.sink += bly_has(w.f, w.whole[i].ptr, w.whole[i].len);
        settle();
    }
}

static void three_by_three(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        uint64_t maybe;
        bly_has_keys(w.f, w.suffix + LABELS * i, LABELS, &maybe);
        w.sink += maybe;
        settle();
    }
}

static void batches(const bly_bytes *keys, size_t each)
{
    static uint64_t maybe[BLY_BITMAP_WORDS(LABELS * SOME)];
    for (size_t i = 0; i < NAMES; i += SOME) {
        bly_has_keys(w.f, keys + each * i, each * SOME, maybe);
        w.sink += maybe[0];
    }
}

static void many_ones(void)
{
    batches(w.whole, 1);
}

static void many_threes(void)
{
    batches(w.suffix, LABELS);
}

static void make(uint64_t n)
{
    const bly_spec spec = { .kind = "ribbon", .items = n, .fpr = 1e-6 };
    bly_builder *b;
    if (bly_builder_new(&spec, &b)) {
        fprintf(stderr, "%s\n", bly_error());
        exit(2);
    }
    for (uint64_t i = 0; i < n; i++) {
        char text[48];
        const int len = snprintf(text, sizeof text, "%llx.d%u.example",
                                 (unsigned long long)mix(i), (unsigned)i % 97);
        const uint64_t h = bly_hash(bly_builder_hasher(b), text, (size_t)len);
        if (bly_builder_add(b, &h, NULL, 1))
            exit(2);
    }
    if (bly_builder_finish(b, 0, &w.f)) {
        fprintf(stderr, "%s\n", bly_error());
        exit(2);
    }
    bly_builder_free(b);
    w.texts = room(NAMES * sizeof *w.texts);
    w.whole = room(NAMES * sizeof *w.whole);
    w.suffix = room(NAMES * LABELS * sizeof *w.suffix);
    for (size_t i = 0; i < NAMES; i++) {
        const char *at = w.texts[i];
        size_t len = (size_t)snprintf(w.texts[i], sizeof w.texts[i],
                                      "www.%llx.site%llx.org",
                                      (unsigned long long)mix(i + n) >> 32,
                                      (unsigned long long)mix(i + 2 * n) >> 44);
        w.whole[i] = (bly_bytes){ at, len };
        for (size_t k = 0; k < LABELS; k++) {
            w.suffix[LABELS * i + k] = (bly_bytes){ at, len };
            const size_t skip = strcspn(at, ".") + 1;
            at += skip;
            len -= skip;
        }
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *what;
        void (*pass)(void);
    } ways[] = { { "a name after the other, its key alone", one_by_one },
                 { "a name after the other, all three keys", three_by_three },
                 { "512 names at a time, one key each", many_ones },
                 { "512 names at a time, all three keys", many_threes } };
    uint64_t n = 2200000, rounds = 9;
    double best[4] = { 0 };
    if ((argc > 1 && !bly_parse_count(argv[1], &n)) ||
        (argc > 2 && !bly_parse_count(argv[2], &rounds)))
        return 2;
    make(n);
    for (uint64_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < 4; i++) {
            const double from = now_ns();
            ways[i].pass();
            const double each = (now_ns() - from) / (double)NAMES;
            if (r == 0 || each < best[i])
                best[i] = each;
        }
    bly_stats s;
    bly_peek(w.f, &s);
    printf("%llu entries, %.2f MB\n", (unsigned long long)n,
           (double)s.bits / 8e6);
    for (size_t i = 0; i < 4; i++) {
        printf("%-42s %7.1f ns per name", ways[i].what, best[i]);
        if (i % 2)
            printf("  %.2f times one lookup", best[i] / best[i - 1]);
        printf("\n");
    }
    return w.sink == UINT64_MAX;
}

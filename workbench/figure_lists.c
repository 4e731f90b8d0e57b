/*
 * figure_lists.c - lists that guard: leaked passwords, sealed documents
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/seal/zindex.h"
#include "base/byte_order.h"
#include "io/digests.h"
#include "workbench/figure.h"

/* --------------------------------------------------------------- passwords */

/* The hash of password i as lists hold it. */
static void password_sum(uint64_t i, unsigned char out[SHA1_BYTES])
{
    char text[32];
    const int n =
        snprintf(text, sizeof text, "password %llu", (unsigned long long)i);
    sum_sha1(text, (size_t)n, out);
}

#define SUMS_AT_ONCE 512

/* Hashes of passwords first .. first + n - 1, some at a time: to a builder, or
 * asked of a filter; how many the filter may have. */
static uint64_t passwords_walk(struct figure_run *run, bly_builder *b,
                               const bly_filter *f, uint64_t first, uint64_t n)
{
    static unsigned char sums[SUMS_AT_ONCE][SHA1_BYTES];
    bly_bytes keys[SUMS_AT_ONCE];
    uint64_t hashes[SUMS_AT_ONCE], found[BLY_BITMAP_WORDS(SUMS_AT_ONCE)];
    uint64_t count = 0;
    for (uint64_t at = 0; at < n; at += SUMS_AT_ONCE) {
        const size_t some =
            n - at < SUMS_AT_ONCE ? (size_t)(n - at) : SUMS_AT_ONCE;
        for (size_t i = 0; i < some; i++) {
            password_sum(first + at + i, sums[i]);
            keys[i] = (bly_bytes){ sums[i], SHA1_BYTES };
        }
        if (f) {
            memset(found, 0, sizeof found);
            bly_has_keys(f, keys, some, found);
            for (size_t i = 0; i < BLY_BITMAP_WORDS(some); i++)
                count += (uint64_t)__builtin_popcountll(found[i]);
        } else {
            bly_hash_keys(bly_builder_hasher(b), keys, some, hashes);
            run->broken |= bly_builder_add(b, hashes, NULL, some) != BLY_OK;
        }
    }
    return count;
}

static void passwords_run(struct figure_run *run)
{
    const uint64_t n = 1000000;
    run->x = AXIS(.label = "bits of a fingerprint");
    run->y = FIGURE_RATES;
    struct figure_series *const others = figure_series(run, "others found");
    struct figure_series *const missed = figure_series(run, "missed");
    struct figure_series *const bits = figure_series(run, "bits per password");
    missed->unseen = bits->unseen = true;
    for (unsigned w = 4; w <= (run->full ? 16 : 8); w += 4) {
        const double p = exp2(-(double)w);
        const bly_spec spec =
            SPEC(.kind = "fuse", .fpr = p * 1.000001, .seed = run->seed);
        bly_builder *b;
        bly_filter *f = NULL;
        if (bly_builder_new(&spec, &b)) {
            run->broken = true;
            return;
        }
        passwords_walk(run, b, NULL, 0, n);
        run->broken |= bly_builder_finish(b, 1, &f) != BLY_OK;
        bly_builder_free(b);
        if (!f)
            return;
        const double queries = (double)n;
        figure_judge(run, others, w, p,
                     (double)passwords_walk(run, NULL, f, FIGURE_ABSENT, n) /
                         queries,
                     sqrt(p / queries));
        figure_point(run, missed, w, 0,
                     (double)(n - passwords_walk(run, NULL, f, 0, n)), 0, 0);
        bly_stats s;
        bly_stat(f, &s);
        const double each = (double)s.bits / (double)n;
        /* 1130496 slots. */
        figure_point(run, bits, w, 1.1305 * w, each, 1.13 * w, 1.132 * w);
        bly_free(f);
    }
    figure_note(run, "With 8 bits: one in 256 others is taken for a leaked "
                     "one, in 9 bits per password.");
}

const struct figure figure_passwords = {
    .name = "passwords",
    .title = "Leaked passwords: no one is missed, and few others are found",
    .source = "Leaked passwords as SHA-1 hashes in a fuse filter.",
    .about = "A filter of the hashes of a million passwords finds all of them, "
             "and others at the rate that its fingerprints allow, 2^-w, in "
             "1.13 w bits for each.",
    .run = passwords_run,
};

/* ------------------------------------------------------------------- sealed */

/* In the place of the archives' BLAKE2b, which takes a library: SipHash with a
 * key, once for each word. */
static void figure_prf(unsigned char out[ZINDEX_PRF_BYTES],
                       const unsigned char *bytes, size_t n,
                       const unsigned char *trapdoor)
{
    bly_hasher hs = { .id = BLY_HASH_SIPHASH13,
                      .secret = { get_le(trapdoor, 8) } };
    for (unsigned i = 0; i < ZINDEX_PRF_BYTES / 8; i++) {
        hs.secret[1] = get_le(trapdoor + 8, 8) ^ (uint64_t)i << 56;
        put_le(out + 8 * i, bly_hash(&hs, bytes, n), 8);
    }
}

/* A word that only this number names, by its trapdoor. */
static void seal_door(uint64_t seed, uint64_t number,
                      unsigned char door[TRAPDOOR_BYTES])
{
    memset(door, 0, TRAPDOOR_BYTES);
    put_le(door, number, 8);
    put_le(door + 8, seed, 8);
}

/* The filter of a document with the words first .. first + nwords - 1, filled
 * up as if it had u; words that nobody asks for have numbers of their own. */
static void seal_document(unsigned char *bits, uint64_t m, unsigned r,
                          uint64_t seed, uint64_t document, uint64_t first,
                          uint64_t nwords, uint64_t u)
{
    unsigned char door[TRAPDOOR_BYTES], id[DOCUMENT_ID_BYTES] = { 0 };
    put_le(id, document, 8);
    memset(bits, 0, (size_t)(m + 7) / 8);
    for (uint64_t i = 0; i < u; i++) {
        const bool blind = i >= nwords;
        seal_door(seed,
                  blind ? FIGURE_ABSENT * 2 + document * u + i : first + i,
                  door);
        zindex_add(bits, m, r, figure_prf, door, id);
    }
}

static bool seal_asks(const unsigned char *bits, uint64_t m, unsigned r,
                      uint64_t seed, uint64_t document, uint64_t word)
{
    unsigned char door[TRAPDOOR_BYTES], id[DOCUMENT_ID_BYTES] = { 0 };
    put_le(id, document, 8);
    seal_door(seed, word, door);
    return zindex_has(bits, m, r, figure_prf, door, id);
}

static double ones_share(const unsigned char *a, const unsigned char *b,
                         uint64_t m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < (m + 7) / 8; i++)
        n += (uint64_t)__builtin_popcount(a[i] & b[i]);
    return (double)n / (double)m;
}

static void seal_run_probes(struct figure_run *run, unsigned r,
                            struct figure_series *const s[4],
                            unsigned char *bits[3])
{
    const uint64_t u = zindex_words(4096), m = zindex_bits(u, r);
    const unsigned ndocs = run->full ? 100 : 10;
    const uint64_t nasked = run->full ? 20000 : 5000;
    uint64_t wrong = 0, lost = 0;
    double filled = 0;
    for (unsigned d = 0; d < ndocs; d++) {
        seal_document(bits[0], m, r, run->seed, d, 0, u / 2, u);
        filled += ones_share(bits[0], bits[0], m) / ndocs;
        for (uint64_t i = 0; i < nasked; i++)
            wrong += seal_asks(bits[0], m, r, run->seed, d, FIGURE_ABSENT + i);
        for (uint64_t i = 0; i < u / 2; i++)
            lost += !seal_asks(bits[0], m, r, run->seed, d, i);
    }
    const double p = exp2(-(double)r), n = (double)ndocs * (double)nasked;
    /* How full a filter becomes varies by half of sqrt(1/m). */
    const double by_fill = r * p / sqrt((double)m * ndocs);
    figure_judge(run, s[0], r, p, (double)wrong / n,
                 sqrt(p / n + by_fill * by_fill));
    figure_point(run, s[1], r, 0, (double)lost, 0, 0);

    seal_document(bits[1], m, r, run->seed, ndocs, 0, u / 2, u);
    const double sd = sqrt(0.25 / (double)m);
    const double chance =
        ones_share(bits[0], bits[0], m) * ones_share(bits[1], bits[1], m);
    figure_judge(run, s[2], r, chance, ones_share(bits[0], bits[1], m),
                 sqrt(chance * (1 - chance) / (double)m));
    seal_document(bits[2], m, r, run->seed, ndocs + 1, 0, 1, u);
    figure_judge(run, s[3], r, filled, ones_share(bits[2], bits[2], m), sd);
}

static void seal_run(struct figure_run *run)
{
    unsigned char *bits[3];
    const uint64_t most = zindex_bits(zindex_words(4096), 12);
    run->x = AXIS(.label = "probes per word", .unit = "r");
    run->y = AXIS(.label = "share", .scale = PLOT_LOG, .format = PLOT_PERCENT);
    struct figure_series *s[4];
    s[0] = figure_series(run, "found without the word");
    s[1] = figure_series(run, "words that were not found");
    s[2] = figure_series(run, "bits that two filters of one text share");
    s[3] = figure_series(run, "fill with one word");
    s[1]->unseen = true;
    for (size_t i = 0; i < 3; i++)
        bits[i] = calloc(1, (size_t)(most + 7) / 8);
    for (unsigned r = 2; r <= 10 && bits[0] && bits[1] && bits[2]; r += 2)
        seal_run_probes(run, r, s, bits);
    for (size_t i = 0; i < 3; i++) {
        run->broken |= !bits[i];
        free(bits[i]);
    }
    figure_note(run,
                "Two filters of the same words have as many bits in common "
                "as two of different ones: a quarter.");
    figure_note(run, "Archives draw the bits with BLAKE2b; here SipHash stands "
                     "in for it, and all else is the archives' code.");
}

const struct figure figure_sealed = {
    .name = "sealed",
    .title = "Sealed documents: what a search finds, and what filters tell",
    .source = "Goh: Secure Indexes, 2003.",
    .about = "A search with a trapdoor finds every document that has the word, "
             "and others at a rate of 2^-r. Two filters of the same text share "
             "as many bits as chance has it, and a document of one word fills "
             "its filter as one of many does: without a trapdoor they tell "
             "nothing.",
    .run = seal_run,
};

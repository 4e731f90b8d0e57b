/*
 * views_probe.c - bloomery/views.h as its users compile it
 *
 * tree_inline compiles it as C and as C++, for several processors: the inline
 * form must give the answers of the calls, for every shape that has a view; and
 * those that need more than it does have none.
 */
#include <bloomery/views.h>

#include <stdio.h>

#define NKEYS 3000
#define NASKED 20000

static unsigned wrong, hits;

static bly_filter *made(bly_spec *spec)
{
    bly_builder *b;
    bly_filter *f;
    uint64_t hashes[NKEYS];
    for (uint64_t i = 0; i < NKEYS; i++)
        hashes[i] = i;
    if (bly_builder_new(spec, &b))
        return NULL;
    bly_hash_ints(bly_builder_hasher(b), hashes, NKEYS, hashes);
    if (bly_builder_add(b, hashes, NULL, NKEYS) || bly_builder_finish(b, 1, &f))
        f = NULL;
    bly_builder_free(b);
    return f;
}

/* A filter of a kind, with an option or none (NULL). */
static bly_filter *made_as(const char *kind, const char *name,
                           const char *value, double fpr, uint64_t seed)
{
    bly_spec spec = bly_spec();
    bly_option option;
    option.name = name;
    option.value = value;
    spec.kind = kind;
    spec.items = NKEYS;
    spec.fpr = fpr;
    spec.seed = seed;
    spec.options = &option;
    spec.noptions = name != NULL;
    /* Both hashes of integers. */
    spec.keying.type = seed % 2 ? BLY_KEYS_UINT64 : BLY_KEYS_UNKNOWN;
    return made(&spec);
}

/* Ask by calls and by a view, or see that there is none. */
#define COMPARE(kind)                                                      \
    static void compare_##kind(const char *name, const char *value,        \
                               double fpr, uint64_t seed, bool viewed)     \
    {                                                                      \
        bly_filter *const f = made_as(#kind, name, value, fpr, seed);      \
        bly_view_##kind v;                                                 \
        const bool has_view = f && bly_view_of_##kind(f, &v);              \
        if (!f || has_view != viewed) {                                    \
            printf("%s: %s, %s=%s, %g\n",                                  \
                   !f       ? bly_error()                                  \
                   : viewed ? "no view"                                    \
                            : "a view",                                    \
                   #kind, name ? name : "", value ? value : "", fpr);      \
            wrong++;                                                       \
        }                                                                  \
        for (uint64_t i = 0; f && has_view && i < NASKED; i++) {           \
            const uint64_t hash = bly_int_hash_of(i, v.turned, v.folded);  \
            const bool in = bly_has_hash(f, hash);                         \
            wrong += bly_view_##kind##_has(&v, hash) != in;                \
            wrong += bly_view_##kind##_has_int(&v, i) != in;               \
            wrong += bly_has(f, &i, sizeof i) != in || (i < NKEYS && !in); \
            hits += in;                                                    \
        }                                                                  \
        bly_free(f);                                                       \
    }
COMPARE(classic)
COMPARE(cuckoo)
COMPARE(fuse)
COMPARE(xor)

/* In so few bits the step of a key often passes their number. Batches compute
 * positions by themselves. */
static void compare_few_bits(void)
{
    bly_spec spec = bly_spec();
    bly_view_classic v;
    bly_filter *f;
    spec.kind = "classic";
    spec.items = 30;
    spec.fpr = 0.01;
    if (bly_new(&spec, &f) || !bly_view_of_classic(f, &v) || v.k != 7) {
        wrong++;
        return;
    }
    for (uint64_t i = 0; i < NASKED; i += 64) {
        uint64_t hashes[64], batch;
        for (uint64_t j = 0; j < 64; j++)
            hashes[j] = bly_mix64(i + j);
        bly_has_hashes(f, hashes, 64, &batch);
        for (uint64_t j = 0; j < 64; j++) {
            wrong += bly_view_classic_has(&v, hashes[j]) != (batch >> j & 1);
            wrong += bly_has_hash(f, hashes[j]) != (batch >> j & 1);
        }
        /* Ten times as many as it is for: every bit decides some answer. */
        wrong += bly_add_hash(f, hashes[0]) != BLY_OK;
    }
    bly_free(f);
}

int main(void)
{
    static const double rates[] = { 0.3, 0.1, 0.01, 0.001, 1e-9 };
    bly_view_classic other;
    for (unsigned r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        compare_classic(NULL, NULL, rates[r], r, true);
        compare_classic("layout", "shared", rates[r], r, true);
        if (rates[r] > 1e-4) /* four slots of 14 bits */
            compare_cuckoo(NULL, NULL, rates[r], r, true);
        compare_fuse(NULL, NULL, rates[r], r, true);
        compare_fuse("arity", "4", rates[r], r, true);
        compare_fuse("shards", "4", rates[r], r, true);
        compare_fuse("mixing", "full", rates[r], r, true);
        compare_xor(NULL, NULL, rates[r], r, true);
        compare_xor("shards", "8", rates[r], r, true);
        compare_xor("mixing", "full", rates[r], r, true);
    }
    compare_fuse("bits", "16", 0.01, 1, true);
    compare_xor("bits", "16", 0.01, 1, true);
    compare_cuckoo("bucket", "2", 0.01, 1, true);
    compare_cuckoo(NULL, NULL, 1e-6, 0, false);
    compare_cuckoo("grow", "2", 0.01, 0, false);
    compare_cuckoo("semisort", "on", 0.01, 0, false);
    compare_classic("layout", "partitioned", 0.01, 0, false);
    compare_few_bits();
    bly_filter *const f = made_as("blocked", NULL, NULL, 0.01, 0);
    wrong += !f || bly_view_of_classic(f, &other);
    bly_free(f);
    printf("%u wrong, %u hits\n", wrong, hits);
    return wrong != 0 || hits < 100000;
}

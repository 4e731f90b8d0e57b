/*
 * leveldb_bloomery.c - a filter policy for LevelDB
 *
 * LevelDB hands over the keys of the data blocks that begin in the same 2 KiB
 * of a table: those of one block in most cases, 20 to 40 of them. It keeps the
 * bytes of their filter in the table and asks before it reads the block.
 *
 *     the filter, then 1 byte that tells what it is (bloomery/few.h):
 *     from 0x10 on     a filter of few keys, of which it is the last byte
 *     1                a .bly file, of any kind
 *     anything else    nothing is known: maybe
 *
 * There is no way to report a failure. A filter that cannot be built or read
 * says maybe, and is never an empty string, which LevelDB takes for a filter
 * without keys.
 */
#include "adapters/leveldb/bloomery_leveldb.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/few.h>

#define POLICY_FILE 1  /* the last byte of a .bly file */
#define POLICY_MAYBE 0 /* of what says maybe to all */
#define POLICY_FEW "ribbon"
#define POLICY_FPR 0.01

struct policy {
    bly_spec spec; /* of those that are files */
    double bits;   /* per key */
    bool few;
    char *kind;
    bly_option *options;
    _Atomic(char *) reserve; /* a byte that is there when memory is not */
};

static const bly_hasher policy_hasher = { .id = BLY_HASH_XXH3 };

static void policy_free(void *state)
{
    struct policy *const p = state;
    free(p->kind);
    free(p->options);
    free(p->reserve);
    free(p);
}

static const char *policy_name(void *state)
{
    (void)state;
    return BLY_LEVELDB_NAME;
}

/* ---------------------------------------------------------------- building */

/* The bytes of a filter; LevelDB frees them. */
struct made {
    char *at;
    size_t len, room;
};

static bool made_put(void *ctx, const void *bytes, size_t nbytes)
{
    struct made *const m = ctx;
    if (nbytes > m->room - m->len)
        return false;
    memcpy(m->at + m->len, bytes, nbytes);
    m->len += nbytes;
    return true;
}

static bly_status build_few(const struct policy *p, const uint64_t *hashes,
                            size_t n, struct made *out)
{
    out->room = bly_few_room(n, p->bits);
    out->at = malloc(out->room);
    return out->at ? bly_few_build(hashes, n, p->bits, out->at, out->room,
                                   &out->len)
                   : BLY_ENOMEM;
}

/* As a .bly file of the kind. */
static bly_status build_file(const struct policy *p, const uint64_t *hashes,
                             size_t n, struct made *out)
{
    bly_spec spec = p->spec;
    bly_builder *b;
    bly_filter *f = NULL;
    spec.items = n;
    spec.bits = (uint64_t)(p->bits * (double)n);
    bly_status st = bly_builder_new(&spec, &b);
    if (st)
        return st;
    st = bly_builder_add(b, hashes, NULL, n);
    if (!st)
        st = bly_builder_finish(b, 1, &f);
    if (!st) {
        out->room = (size_t)bly_written_bytes(f) + 1;
        out->at = malloc(out->room);
        st = out->at ? bly_write(f, made_put, out) : BLY_ENOMEM;
    }
    if (!st)
        out->at[out->len++] = POLICY_FILE;
    bly_free(f);
    bly_builder_free(b);
    return st;
}

/* One byte, which has to come from somewhere: an empty string would say no. */
static void build_maybe(struct policy *p, struct made *out)
{
    out->at = malloc(1);
    if (!out->at)
        out->at = atomic_exchange(&p->reserve, NULL);
    if (!out->at)
        abort(); /* as LevelDB does without memory, by an exception */
    out->at[0] = POLICY_MAYBE;
    out->len = 1;
}

static char *policy_build(void *state, const char *const *keys,
                          const size_t *lens, int nkeys, size_t *len)
{
    struct policy *const p = state;
    struct made made = { 0 };
    uint64_t *const hashes = malloc(((size_t)nkeys + 1) * sizeof *hashes);
    size_t n = 0;
    /* They come in order, and versions of a key one after another. */
    for (int i = 0; hashes && i < nkeys; i++) {
        const uint64_t h = bly_hash(&policy_hasher, keys[i], lens[i]);
        if (!n || hashes[n - 1] != h)
            hashes[n++] = h;
    }
    if (!hashes || !n ||
        (p->few ? build_few : build_file)(p, hashes, n, &made)) {
        free(made.at);
        build_maybe(p, &made);
    }
    free(hashes);
    *len = made.len;
    return made.at;
}

/* ------------------------------------------------------------------ asking */

/* Is every key that was added found for ever? A kind that is told the time
 * forgets. */
static bool is_certain(const bly_kind_info *kind)
{
    return (kind->can & BLY_CAN(HAS)) && !(kind->can & BLY_CAN(TICK)) &&
           !(kind->traits & BLY_LIKELY_NO);
}

static bool file_has(const char *bytes, size_t nbytes, const char *key,
                     size_t len)
{
    bly_filter *f;
    bly_kind_info kind;
    /* Of the kinds only `compressed` takes more than its bytes, 4 times unless
     * told otherwise. A damaged block might take a thousand times. */
    const bly_access how = { .max_bytes = 16 * (uint64_t)nbytes };
    if (bly_load(bytes, nbytes, &how, &f))
        return true;
    bly_stats s;
    bly_stat(f, &s);
    const bool certain = bly_kind_named(s.kind, &kind) && is_certain(&kind);
    const bool maybe = !certain || bly_has(f, key, len);
    bly_free(f);
    return maybe;
}

static uint8_t policy_asked(void *state, const char *key, size_t len,
                            const char *bytes, size_t nbytes)
{
    (void)state;
    if (!nbytes)
        return 1;
    if (bytes[nbytes - 1] == POLICY_FILE)
        return file_has(bytes, nbytes - 1, key, len);
    return bly_few_has(bytes, nbytes, bly_hash(&policy_hasher, key, len));
}

/* ------------------------------------------------------------------ making */

static _Thread_local char wrong[300];

#define WRONG(...) (snprintf(wrong, sizeof wrong, __VA_ARGS__), wrong)

/* Build a filter of 30 keys and ask it for them, so that what is wrong is said
 * when a policy is made: a kind that wants values, or keys that are integers.
 */
static const char *policy_try(struct policy *p)
{
    struct made made = { 0 };
    uint64_t hashes[30];
    char key[30];
    memset(key, 'k', sizeof key);
    for (size_t i = 0; i < 30; i++)
        hashes[i] = bly_hash(&policy_hasher, key, i + 1);
    const bly_status st =
        (p->few ? build_few : build_file)(p, hashes, 30, &made);
    bool found = !st;
    for (size_t i = 0; i < 30 && found; i++)
        found = policy_asked(p, key, i + 1, made.at, made.len);
    free(made.at);
    return st ? WRONG("%s", st == BLY_ENOMEM ? "out of memory" : bly_error())
           : found ? NULL
                   : WRONG("kind %s is not for keys of any bytes; " POLICY_FEW
                           ", blocked and others are",
                           p->kind);
}

/* The bits per key, or the rate, of a policy. */
static const char *policy_size(struct policy *p, const bly_leveldb_spec *spec)
{
    const double fpr = spec->fpr ? spec->fpr : POLICY_FPR;
    if (spec->fpr && spec->bits_per_key)
        return "a rate and bits per key; give one of them";
    if (!(spec->bits_per_key >= 0 && spec->bits_per_key <= 1000))
        return WRONG(
            "%g bits per key; expected 1 to 1000, 15 at most for " POLICY_FEW,
            spec->bits_per_key);
    if (!(fpr > 0 && fpr < 1))
        return WRONG("a rate of %g; expected one between 0 and 1", fpr);
    p->bits = spec->bits_per_key;
    if (p->few && !p->bits) {
        if (fpr < 0x1p-15)
            return WRONG("a rate of %g; expected 3.1e-5 or more for " POLICY_FEW
                         ", or another kind",
                         fpr);
        p->bits = bly_few_bits(fpr);
    } else if (!p->bits) {
        p->spec.fpr = fpr;
    }
    return NULL;
}

static const char *policy_fill(struct policy *p, const bly_leveldb_spec *spec)
{
    const char *const kind = spec->kind ? spec->kind : POLICY_FEW;
    bly_kind_info info;
    if (!bly_kind_named(kind, &info))
        return WRONG(
            "there is no kind '%.40s'; bloomery kinds lists those that "
            "there are, such as " POLICY_FEW " and blocked",
            kind);
    if (!is_certain(&info))
        return WRONG("kind %s cannot say \"no\" for certain; " POLICY_FEW
                     ", blocked and others can",
                     kind);
    p->few = strcmp(kind, POLICY_FEW) == 0 && !spec->noptions;
    p->kind = malloc(strlen(kind) + 1);
    p->options = malloc((spec->noptions + 1) * sizeof *p->options);
    p->reserve = malloc(1);
    if (!p->kind || !p->options || !p->reserve)
        return "out of memory";
    memcpy(p->kind, kind, strlen(kind) + 1);
    if (spec->noptions)
        memcpy(p->options, spec->options, spec->noptions * sizeof *p->options);
    p->spec = (bly_spec){ .kind = p->kind,
                          .options = p->options,
                          .noptions = spec->noptions };
    const char *const bad = policy_size(p, spec);
    return bad ? bad : policy_try(p);
}

leveldb_filterpolicy_t *bly_leveldb_policy(const bly_leveldb_spec *spec,
                                           const char **error)
{
    static const bly_leveldb_spec usual = { 0 };
    struct policy *const p = calloc(1, sizeof *p);
    const char *const bad =
        p ? policy_fill(p, spec ? spec : &usual) : "out of memory";
    if (error)
        *error = bad;
    if (bad) {
        if (p)
            policy_free(p);
        return NULL;
    }
    return leveldb_filterpolicy_create(p, policy_free, policy_build,
                                       policy_asked, policy_name);
}

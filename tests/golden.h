/*
 * golden.h - the golden files: one .bly file a kind, kept forever
 *
 * tests/golden/KIND.bly is a filter of GOLDEN_KEYS fixed keys. Every later
 * version of the library, on every machine, must read it, find all keys in
 * it, write it back byte for byte, and make the same bytes from the same keys
 * (but for the last digits of the predicted rate, which depend on how the
 * machine computes a logarithm). KIND-keyed.bly is the same with a secret, for
 * the default kind; KIND-coded.bly is the same coded, for the first kind of
 * each encoding, and for those that have one; KIND-blocked.bly is the same with
 * blocked layers, for kinds whose layers are of either kind; KIND-compact.bly
 * is the same with compact counters, some of them large, for kinds whose first
 * file is from before there were any; KIND-light.bly is the same with hashes
 * mixed lightly, for kinds that did not at first; KIND-small.bly is the same as
 * a compact file in its first form, for the default kind and those whose layers
 * are of either kind, and KIND-brief.bly in the form that is written now;
 * KIND-ints.bly, for the default kind, is of integers, with the hash of
 * those.
 *
 * This is the recipe, and the check as a function that says what is wrong: the
 * tool that makes the files and test_format.c share it. Nothing here needs more
 * than bloomery.h.
 */
#ifndef TEST_GOLDEN_H
#define TEST_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

#define GOLDEN_KEYS 1000
#define GOLDEN_SEED 42
#define GOLDEN_FPR 0.01

static const unsigned char golden_secret[BLY_SECRET_BYTES + 1] =
    "golden secret 16";

/* "key-0" to "key-999". Returns the length. */
static inline size_t golden_key(unsigned i, char key[16])
{
    return (size_t)snprintf(key, 16, "key-%u", i % 100000000);
}

/* The same as integers: two addresses in one. */
static inline uint64_t golden_int(unsigned i)
{
    return UINT64_C(0x0a0000000a000000) + ((uint64_t)i << 32) + 7 * i;
}

/* A bit is what every kind with values can hold. */
static inline uint64_t golden_value(unsigned i)
{
    return i & 1;
}

/* Is the kind built with values? */
static inline bool golden_valued(const bly_kind_info *kind)
{
    return (kind->can & BLY_CAN(BUILD)) && (kind->can & BLY_CAN(GET));
}

typedef enum golden_form {
    GOLDEN_PLAIN,
    GOLDEN_KEYED,
    GOLDEN_CODED,
    GOLDEN_BLOCKED,
    GOLDEN_COMPACT,
    GOLDEN_LIGHT,
    GOLDEN_SMALL,
    GOLDEN_BRIEF,
    GOLDEN_INTS,
    GOLDEN_NFORMS
} golden_form;

/* What is put behind the name of the kind. */
static inline const char *golden_suffix(golden_form form)
{
    static const char *const suffixes[] = { "",         "-keyed",   "-coded",
                                            "-blocked", "-compact", "-light",
                                            "-small",   "-brief",   "-ints" };
    return suffixes[form];
}

/* The file of a kind in folder. */
static inline void golden_path(const char *folder, const char *kind,
                               golden_form form, char *path, size_t room)
{
    snprintf(path, room, "%s/%s%s.bly", folder, kind, golden_suffix(form));
}

static inline bool golden_has_param(const bly_kind_info *kind, const char *name)
{
    for (size_t i = 0; i < kind->nparams; i++)
        if (strcmp(bly_param_at(kind->params, i)->name, name) == 0)
            return true;
    return false;
}

/* Can it spread the bits of a key by products? */
static inline bool golden_spreads(const bly_kind_info *kind)
{
    for (size_t i = 0; i < kind->nparams; i++) {
        const char *const *word = bly_param_at(kind->params, i)->choices;
        for (; word && *word; word++)
            if (strcmp(*word, "spread") == 0)
                return true;
    }
    return false;
}

/* Does the kind have layers of a kind that can be chosen? */
static inline bool golden_layered(const bly_kind_info *kind)
{
    return golden_has_param(kind, "layer");
}

/* What makes today what was made without it when the file was written; and the
 * forms that are a matter of options. False: nothing is needed. */
static inline bool golden_option(const bly_kind_info *kind, golden_form form,
                                 bly_option *out)
{
    if (golden_layered(kind))
        *out = (bly_option){ "layer",
                             form == GOLDEN_BLOCKED ? "blocked" : "classic" };
    else if (golden_has_param(kind, "compact") && form != GOLDEN_COMPACT)
        *out = (bly_option){ "width", "32" };
    else if (golden_has_param(kind, "mixing"))
        *out =
            (bly_option){ "mixing", form == GOLDEN_LIGHT ? "light" : "full" };
    else if (golden_spreads(kind))
        *out = (bly_option){ "layout",
                             form == GOLDEN_LIGHT ? "spread" : "shared" };
    else if (golden_has_param(kind, "counts"))
        *out = form == GOLDEN_COMPACT ? (bly_option){ "mean", "2" }
                                      : (bly_option){ "counts", "four" };
    else
        return false;
    return true;
}

/* The filter that the file of this kind holds, made from its keys. */
static inline bly_status golden_make(const bly_kind_info *kind,
                                     golden_form form, bly_filter **out)
{
    const bool keyed = form == GOLDEN_KEYED;
    bly_option option;
    const bool optional = golden_option(kind, form, &option);
    const bly_spec spec = {
        .kind = kind->name,
        .options = &option,
        .noptions = optional ? 1 : 0,
        .items = GOLDEN_KEYS,
        .fpr = GOLDEN_FPR,
        .seed = keyed ? 0 : GOLDEN_SEED,
        .secret = keyed ? golden_secret : NULL,
        .keying.type = form == GOLDEN_INTS ? BLY_KEYS_UINT64 : BLY_KEYS_UNKNOWN,
    };
    uint64_t hashes[GOLDEN_KEYS], values[GOLDEN_KEYS];
    bly_builder *b;
    *out = NULL;
    bly_status st = bly_builder_new(&spec, &b);
    if (st)
        return st;
    for (unsigned i = 0; i < GOLDEN_KEYS; i++) {
        char key[16];
        const size_t len = golden_key(i, key);
        const uint64_t number = golden_int(i);
        if (form == GOLDEN_INTS)
            bly_hash_ints(bly_builder_hasher(b), &number, 1, &hashes[i]);
        else
            hashes[i] = bly_hash(bly_builder_hasher(b), key, len);
        values[i] = golden_value(i);
    }
    st = bly_builder_add(b, hashes, golden_valued(kind) ? values : NULL,
                         GOLDEN_KEYS);
    if (!st)
        st = bly_builder_finish(b, 1, out);
    for (unsigned i = 0; !st && form == GOLDEN_COMPACT && i < GOLDEN_KEYS;
         i += 50) {
        const uint64_t by = 5 + i;
        st = bly_increase_hashes(*out, &hashes[i], &by, 1, NULL);
    }
    if (!st && form == GOLDEN_CODED)
        bly_set_coded(*out, true);
    if (!st && (form == GOLDEN_SMALL || form == GOLDEN_BRIEF))
        bly_set_compact(*out, true);
    bly_builder_free(b);
    return st;
}

/* f as bytes, which the caller frees; NULL if there is no memory. */
static inline unsigned char *golden_bytes(const bly_filter *f, size_t *n)
{
    *n = (size_t)bly_written_bytes(f);
    unsigned char *bytes = malloc(*n);
    if (bytes && bly_write_part(f, 0, bytes, *n) != *n) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

/* Where docs/format.md puts the rate, the encoding, and the checksum that
 * covers them. */
#define GOLDEN_AT_FPR 48
#define GOLDEN_AT_ENCODING 68
#define GOLDEN_AT_SUM 4088
#define GOLDEN_AT_CODED_SUM 288

static inline double golden_rate(const unsigned char *record)
{
    uint64_t bits = 0;
    double rate;
    for (int i = 7; i >= 0; i--)
        bits = bits << 8 | record[GOLDEN_AT_FPR + i];
    memcpy(&rate, &bits, sizeof rate);
    return rate;
}

/* Give a record the rate of another, if they are the same but for rounding. */
static inline bool golden_round(unsigned char *mine, const unsigned char *file)
{
    const double ratio = golden_rate(mine) / golden_rate(file);
    const size_t at =
        file[GOLDEN_AT_ENCODING] ? GOLDEN_AT_CODED_SUM : GOLDEN_AT_SUM;
    memcpy(mine + GOLDEN_AT_FPR, file + GOLDEN_AT_FPR, 8);
    memcpy(mine + at, file + at, 8);
    return !(ratio < 1 - 1e-9 || ratio > 1 + 1e-9);
}

/* Does f give the bytes of the file? With `loose`, rates are compared as
 * numbers and not as bytes: the root's, and those of layers that begin like it
 * at a page. */
static inline const char *golden_same(const bly_filter *f, bool loose,
                                      const unsigned char *file, size_t n)
{
    size_t nmine;
    unsigned char *mine = golden_bytes(f, &nmine);
    const char *wrong = NULL;
    if (!mine)
        return "cannot be written anew";
    if (loose && nmine == n && !golden_round(mine, file))
        wrong = "has another rate than its keys give today";
    for (size_t at = 4096; loose && nmine == n && at + 4096 <= n; at += 4096)
        if (memcmp(file + at, file, 8) == 0 &&
            !golden_round(mine + at, file + at))
            wrong = "has a layer of another rate than its keys give today";
    if (nmine != n || memcmp(mine, file, n) != 0)
        wrong = loose ? "is not what its keys give today"
                      : "is written back otherwise";
    free(mine);
    return wrong;
}

/* The same of a compact file, in which rates have no fixed place: as the usual
 * file. That it is written back byte for byte was seen before. */
static inline const char *golden_same_small(bly_filter *f,
                                            const unsigned char *file, size_t n)
{
    size_t nusual;
    bly_filter *g;
    if (bly_load(file, n, NULL, &g))
        return bly_error();
    bly_set_compact(f, false);
    bly_set_compact(g, false);
    unsigned char *const usual = golden_bytes(g, &nusual);
    const char *const wrong = usual ? golden_same(f, true, usual, nusual)
                                    : "cannot be written as the usual file";
    free(usual);
    bly_free(g);
    return wrong;
}

/* One by one, in a batch, and as eight bytes. */
static inline const char *golden_has_ints(const bly_filter *f)
{
    uint64_t ints[GOLDEN_KEYS], maybe[BLY_BITMAP_WORDS(GOLDEN_KEYS)];
    for (unsigned i = 0; i < GOLDEN_KEYS; i++)
        ints[i] = golden_int(i);
    bly_has_ints(f, ints, GOLDEN_KEYS, maybe);
    for (unsigned i = 0; i < GOLDEN_KEYS; i++) {
        unsigned char bytes[8];
        for (unsigned j = 0; j < 8; j++)
            bytes[j] = (unsigned char)(ints[i] >> 8 * j);
        if (!(maybe[i / 64] >> i % 64 & 1) || !bly_has_int(f, ints[i]) ||
            !bly_has(f, bytes, sizeof bytes))
            return "has forgotten an integer";
    }
    return NULL;
}

static inline const char *golden_has_all(const bly_filter *f,
                                         const bly_kind_info *kind)
{
    if (!(kind->can & BLY_CAN(HAS)) || (kind->traits & BLY_LIKELY_NO))
        return NULL;
    if (bly_keying_of(f).type == BLY_KEYS_UINT64)
        return golden_has_ints(f);
    for (unsigned i = 0; i < GOLDEN_KEYS; i++) {
        char key[16];
        const size_t len = golden_key(i, key);
        if (!bly_has(f, key, len))
            return "has forgotten a key";
        if (!golden_valued(kind))
            continue;
        const uint64_t hash = bly_hash(bly_hasher_of(f), key, len);
        uint64_t value, present;
        if (bly_get_hashes(f, &hash, 1, &value, &present) || !present ||
            value != golden_value(i))
            return "has another value for a key";
    }
    return NULL;
}

/* How the kind is coded; 0 if it cannot be made. */
static inline unsigned golden_encoding(const bly_kind_info *kind)
{
    unsigned char start[GOLDEN_AT_ENCODING + 1] = { 0 };
    bly_filter *f;
    if (golden_make(kind, GOLDEN_CODED, &f))
        return 0;
    bly_write_part(f, 0, start, sizeof start);
    bly_free(f);
    return start[GOLDEN_AT_ENCODING];
}

/* Is there to be a file of this form, for the kind of this row? */
static inline bool golden_wants(const char *folder, size_t row,
                                golden_form form)
{
    bly_kind_info kind, other;
    char path[4096];
    FILE *file;
    bly_kind_at(row, &kind);
    if (form == GOLDEN_BLOCKED)
        return golden_layered(&kind);
    if (form == GOLDEN_COMPACT)
        return golden_has_param(&kind, "compact") ||
               golden_has_param(&kind, "counts");
    if (form == GOLDEN_LIGHT)
        return golden_has_param(&kind, "mixing") || golden_spreads(&kind);
    if (form == GOLDEN_SMALL || form == GOLDEN_BRIEF)
        return row == 0 || golden_layered(&kind);
    if (form != GOLDEN_CODED)
        return form == GOLDEN_PLAIN || row == 0;
    golden_path(folder, kind.name, form, path, sizeof path);
    if ((file = fopen(path, "rb"))) {
        fclose(file);
        return true;
    }
    for (size_t i = 0; i < row && bly_kind_at(i, &other); i++)
        if (golden_encoding(&other) == golden_encoding(&kind))
            return false;
    return true;
}

/* What is wrong with the golden file of this kind; NULL: nothing. */
static inline const char *
golden_check(const char *folder, const bly_kind_info *kind, golden_form form)
{
    static unsigned char file[1 << 17];
    const bly_access how = { .secret =
                                 form == GOLDEN_KEYED ? golden_secret : NULL };
    const char *wrong = NULL;
    char path[4096];
    bly_filter *f = NULL;
    golden_path(folder, kind->name, form, path, sizeof path);
    FILE *in = fopen(path, "rb");
    if (!in)
        return "is missing: run make vectors and keep what it writes";
    const size_t n = fread(file, 1, sizeof file, in);
    fclose(in);

    if (bly_load(file, n, &how, &f))
        return bly_error();
    wrong = golden_has_all(f, kind);
    if (!wrong)
        wrong = golden_same(f, false, file, n);
    bly_free(f);
    if (wrong)
        return wrong;

    if (bly_map(path, &how, &f) || bly_verify(f))
        wrong = bly_error();
    if (!wrong)
        wrong = golden_has_all(f, kind);
    bly_free(f);
    if (wrong)
        return wrong;

    if (golden_make(kind, form, &f))
        return bly_error();
    wrong = form == GOLDEN_SMALL || form == GOLDEN_BRIEF
                ? golden_same_small(f, file, n)
                : golden_same(f, true, file, n);
    bly_free(f);
    return wrong;
}

#endif

/*
 * test_laws_forged.c - what every kind promises about files that somebody
 * forged
 *
 * Checksums find accidents, and whoever forges a file computes them anew. So
 * here a filter is changed in memory, one number of its shape, its state or
 * its cells at a time, and then written: a file that is right but for that
 * number. It is refused, or it loads to a filter that can be used in every way
 * there is, without harm (the sanitizers watch). test_laws_files.c damages
 * files without computing their checksums.
 */
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"
#include "format/compact.h"
#include "format/reader.h"
#include "kinds/filter.h"

#define NKEYS 60

/* More than any of these filters needs. */
#define MOST_BYTES ((uint64_t)16 << 20)

/* ------------------------------------------------------------------ usage */

/* Everything that only reads. The answers are nonsense; the program goes on. */
static void use_reading(const bly_filter *f)
{
    uint64_t h[NKEYS], values[NKEYS], present[2];
    for (size_t i = 0; i < NKEYS; i++)
        h[i] = bly_hash(bly_hasher_of(f), &i, sizeof i);
    bly_has_hashes(f, h, NKEYS, present);
    (void)bly_count_hashes(f, h, NKEYS, values);
    (void)bly_get_hashes(f, h, NKEYS, values, present);
    for (size_t i = 0; i < NKEYS; i++) {
        h[i] = i * i * i << i % 40;
        values[i] = h[i] + (UINT64_C(1) << i);
    }
    (void)bly_has_ranges(f, h, values, NKEYS, present);
    bly_stats stats;
    bly_stat(f, &stats);
    assert_true(isnan(stats.fpr_now) ||
                (stats.fpr_now >= 0 && stats.fpr_now <= 1));
    bly_likeness like;
    (void)bly_compare(f, f, &like);
    (void)bly_entropy(f);
    (void)bly_version_id(f);
    bly_filter *other = NULL;
    if (!bly_fold(f, &other))
        bly_free(other);
}

/* Everything else, and writing it: what it has become loads again. */
static void use_writing(bly_filter *f)
{
    uint64_t h[NKEYS], by[NKEYS];
    bly_status each[NKEYS];
    size_t ndone;
    for (size_t i = 0; i < NKEYS; i++) {
        const uint64_t key = 40 + i;
        h[i] = bly_hash(bly_hasher_of(f), &key, sizeof key);
        by[i] = i;
    }
    (void)!bly_add_hashes(f, h, NKEYS, NULL, &ndone);
    (void)!bly_increase_hashes(f, h, by, NKEYS, &ndone);
    (void)!bly_set_hash(f, h[0], 1);
    (void)bly_tick(f, 12345);
    (void)bly_remove_hashes(f, h, NKEYS, each);
    bly_filter *copy;
    if (!bly_clone(f, &copy)) {
        (void)!bly_merge(f, copy);
        (void)bly_intersect(f, copy);
        bly_free(copy);
    }
    use_reading(f);
    byte_array a = written(f);
    assert_ok(bly_load(a.at, a.n, NULL, &copy));
    assert_true(bly_equal(f, copy));
    bly_free(copy);
    free(a.at);
}

/* Write f, which is not what its kind makes: whether it is refused. */
static bool refused(const bly_filter *f)
{
    byte_array a = written(f);
    bly_filter *g = NULL;
    const bly_access how = { .max_bytes = MOST_BYTES };
    const bly_status st = bly_load(a.at, a.n, &how, &g);
    if (st) {
        assert_null(g);
        assert_true(st == BLY_EFORMAT || st == BLY_ERANGE || st == BLY_ENOMEM);
    } else {
        use_writing(g);
        bly_free(g);
    }
    /* Where it lies, as a map: what is not read is believed, and harmless. */
    unsigned char *at = aligned_alloc(4096, (a.n + 4095) & ~(size_t)4095);
    assert_non_null(at);
    memcpy(at, a.at, a.n);
    const bly_source src = { .bytes = at, .nbytes = a.n, .map = at };
    if (!bly_source_read(&src, &how, &g)) {
        use_reading(g);
        bly_free(g);
    }
    free(at);
    free(a.at);
    return st != BLY_OK;
}

/* ------------------------------------------------------------------ numbers */

/* What x may be forged into: its neighbours, and the ends of ranges. */
static size_t lies_about(uint64_t x, uint64_t *lies)
{
    const uint64_t all[] = { 0,
                             1,
                             2,
                             3,
                             5,
                             x - 1,
                             x + 1,
                             x ^ 8,
                             2 * x,
                             x / 2,
                             64,
                             65,
                             255,
                             256,
                             UINT32_MAX,
                             UINT64_C(1) << 32,
                             UINT64_C(1) << 47,
                             UINT64_C(1) << 62,
                             INT64_MAX,
                             UINT64_MAX };
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (all[i] != x)
            lies[n++] = all[i];
    return n;
}

/* Every lie about *number, which is one of root's or of its layers': how many
 * are believed. */
static size_t forge(const bly_filter *root, uint64_t *number)
{
    uint64_t lies[32];
    const uint64_t truth = *number;
    const size_t n = lies_about(truth, lies);
    size_t nbelieved = 0;
    for (size_t i = 0; i < n; i++) {
        *number = lies[i];
        nbelieved += !refused(root);
    }
    *number = truth;
    return nbelieved;
}

/* The filter and its first layers, in which the numbers are. */
static size_t parts_of(bly_filter *f, bly_filter *parts[3])
{
    size_t n = 0;
    parts[n++] = f;
    for (uint32_t i = 0;
         i < f->nlayers && n<3; i += f->nlayers> 1 ? f->nlayers - 1 : 1)
        parts[n++] = f->layer[i];
    return n;
}

LAW(forged_shapes)
{
    bly_filter *f = law_filled(row, 0, NKEYS), *parts[3];
    bly_set_coded(f, false);
    const size_t nparts = parts_of(f, parts);
    for (size_t i = 0; i < nparts; i++)
        for (unsigned j = 0; j < bly_kind_room(parts[i]->kind); j++) {
            const size_t nbelieved = forge(f, &parts[i]->shape.p[j]);
            /* One that there is not must be 0. */
            if (j >= parts[i]->kind->nparams)
                assert_int_equal(nbelieved, 0);
        }
    bly_free(f);
}

/* Sizes: with cells that are there, so that only the kind can object. */
LAW(forged_sizes)
{
    bly_filter *f = law_filled(row, 0, NKEYS), *parts[3];
    bly_set_coded(f, false);
    const size_t nparts = parts_of(f, parts);
    for (size_t i = 0; i < nparts; i++) {
        bly_filter *const p = parts[i];
        const uint64_t truth = p->shape.nbytes;
        unsigned char *const data = p->data;
        const uint64_t lies[] = { 0,          1,         8,         truth - 1,
                                  truth - 8,  truth / 2, truth + 1, truth + 8,
                                  truth + 64, 2 * truth };
        unsigned char *more = calloc(1, 2 * truth + 64);
        assert_non_null(more);
        if (truth)
            memcpy(more, data, truth);
        p->data = more;
        for (size_t j = 0; j < COUNT_OF(lies); j++) {
            if (lies[j] == truth || lies[j] > 2 * truth + 64)
                continue;
            p->shape.nbytes = lies[j];
            assert_true(refused(f));
        }
        p->shape.nbytes = truth;
        p->data = data;
        free(more);
    }
    bly_free(f);
}

LAW(forged_state)
{
    bly_filter *f = law_filled(row, 0, NKEYS), *parts[3];
    bly_set_coded(f, false);
    const size_t nparts = parts_of(f, parts);
    for (size_t i = 0; i < nparts; i++) {
        for (unsigned j = 0; j < parts[i]->kind->nstate; j++)
            forge(f, &parts[i]->state[j]);
        forge(f, &parts[i]->items);
        forge(f, &parts[i]->nadded);
    }
    bly_free(f);
}

/* The file `a` with another root, in the usual form or the compact one. */
static void assert_root_refused(const byte_array *a, const bly_record *was,
                                const bly_record *r, bool compact)
{
    unsigned char page[BLY_PAGE];
    const size_t before =
        compact ? bly_compact_encode(was, true, NULL, page) : BLY_PAGE;
    size_t head = BLY_PAGE;
    if (compact)
        head = bly_compact_encode(r, true, NULL, page);
    else
        bly_record_encode(r, page);
    byte_array b = { 0 };
    assert_true(put_bytes(&b, page, head) &&
                put_bytes(&b, a->at + before, a->n - before));
    if (compact)
        bly_store64(b.at + b.n - 8, bly_checksum(b.at, b.n - 8));
    bly_filter *f;
    assert_status(bly_load(b.at, b.n, NULL, &f), BLY_EFORMAT);
    free(b.at);
}

/* Words that the kind does not have, and that a filter has no place for. */
LAW(forged_words)
{
    bly_filter *f = law_filled(row, 0, NKEYS);
    bly_set_coded(f, false);
    for (int compact = 0; compact < 2; compact++) {
        bly_set_compact(f, compact);
        const bly_form form = compact ? BLY_FORM_COMPACT : BLY_FORM_PLAIN;
        byte_array a = written(f);
        bly_record r, forged;
        bly_record_of(f, form, &r);
        for (unsigned i = f->kind->nstate; i < BLY_STATE_WORDS; i++) {
            forged = r;
            forged.state[i] = 1;
            assert_root_refused(&a, &r, &forged, compact);
        }
        for (unsigned i = bly_kind_room(f->kind); i < BLY_MAX_PARAMS; i++) {
            forged = r;
            forged.shape.p[i] = 1;
            assert_root_refused(&a, &r, &forged, compact);
        }
        free(a.at);
    }
    bly_free(f);
}

/* Layers: one too few, one too many, and of another kind. */
LAW(forged_layers)
{
    bly_filter *f = law_filled(row, 0, NKEYS), *stranger;
    bly_set_coded(f, false);
    const bly_spec spec = { .kind = strcmp(kind->name, "classic") ? "classic"
                                                                  : "blocked",
                            .items = NKEYS,
                            .fpr = LAW_FPR,
                            .seed = LAW_SEED };
    assert_ok(bly_new(&spec, &stranger));
    assert_ok(bly_filter_push(f, stranger));
    refused(f);
    f->nlayers--;
    if (f->nlayers) {
        bly_filter *const last = f->layer[--f->nlayers];
        refused(f);
        f->layer[f->nlayers++] = stranger;
        assert_true(refused(f));
        f->layer[f->nlayers - 1] = last;
    }
    bly_free(stranger);
    bly_free(f);
}

/* Cells: single bits, with care for the first and the last words, where kinds
 * keep what is not a cell and what must be zero; and whole words. */
LAW(forged_cells)
{
    bly_filter *f = law_filled(row, 0, NKEYS), *parts[3];
    bly_set_coded(f, false);
    const size_t nparts = parts_of(f, parts);
    for (size_t i = 0; i < nparts; i++) {
        bly_filter *const p = parts[i];
        const size_t nbits = 8 * (size_t)p->shape.nbytes;
        for (size_t bit = 0; bit < nbits;
             bit += bit < 64 || bit + 64 >= nbits ? 1
                    : 64 < nbits / 256            ? nbits / 256 | 1
                                                  : 61) {
            p->data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            refused(f);
            p->data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        for (int ones = 0; ones < 2; ones++) {
            for (size_t at = 0; at + 8 <= nbits / 8;
                 at += 8 * (1 + nbits / 8 / 8 / 64)) {
                unsigned char word[8];
                memcpy(word, p->data + at, 8);
                memset(p->data + at, ones ? 0xff : 0, 8);
                refused(f);
                memcpy(p->data + at, word, 8);
            }
        }
    }
    bly_free(f);
}

int main(int argc, char **argv)
{
    return run_laws("forged", argc, argv);
}

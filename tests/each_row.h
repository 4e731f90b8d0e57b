/*
 * each_row.h - every row of engine/lines.h against the portable one
 *
 * For test_blocked.c, and for golden_reader.c, which takes it to processors
 * that only an emulator shows.
 */
#ifndef BLY_TESTS_ROWS_H
#define BLY_TESTS_ROWS_H

#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "engine/lines.h"

/* What a row left of n keys: answers and lines. */
typedef struct outcome {
    uint64_t nfresh, *fresh, *maybe, *words;
    unsigned char *room; /* of the words, which begin at a line */
} outcome;

static outcome outcome_new(uint64_t nlines, size_t n)
{
    const size_t nwords = BLY_BITMAP_WORDS(n) + 1;
    outcome o = { .fresh = calloc(nwords, 8), .maybe = calloc(nwords, 8) };
    o.room = calloc(nlines + 1, 64); /* Windows has no aligned_alloc() */
    if (!o.fresh || !o.maybe || !o.room)
        exit(2);
    o.words = (void *)(o.room + (-(uintptr_t)o.room & 63));
    return o;
}

static void outcome_free(outcome *o)
{
    free(o->fresh);
    free(o->maybe);
    free(o->room);
}

/* Add the first half of n keys, in two calls so that the second finds some of
 * its keys there, and ask for all. */
static outcome outcome_of(const bly_lines_row *row, uint64_t nlines, unsigned k,
                          bly_lines_keys in, size_t n)
{
    outcome o = outcome_new(nlines, n);
    const bly_lines lines = { o.words, nlines, k };
    in.n = n / 4;
    o.nfresh = row->add(&lines, &in, NULL);
    in.n = n / 2;
    o.nfresh += row->add(&lines, &in, o.fresh);
    in.n = n;
    row->has(&lines, &in, o.maybe);
    return o;
}

/* The same by the portable row, one key a call: no groups, nothing ahead. */
static outcome outcome_singly(uint64_t nlines, unsigned k, bly_lines_keys in,
                              size_t n)
{
    outcome o = outcome_new(nlines, n);
    const bly_lines lines = { o.words, nlines, k };
    const uint64_t *const keys = in.at;
    in.n = 1;
    for (size_t i = 0; i < n / 4 + n / 2 + n; i++) {
        const bool first = i < n / 4, add = i < n / 4 + n / 2;
        const size_t at = first ? i : add ? i - n / 4 : i - n / 4 - n / 2;
        uint64_t bit;
        in.at = keys + at;
        if (add)
            o.nfresh += bly_lines_add_portable(&lines, &in, &bit);
        else
            bly_lines_has_portable(&lines, &in, &bit);
        if (!first)
            (add ? o.fresh : o.maybe)[at / 64] |= bit << at % 64;
    }
    return o;
}

static bool outcome_same(const outcome *a, const outcome *b, uint64_t nlines,
                         size_t n)
{
    const size_t nbytes = (BLY_BITMAP_WORDS(n) + 1) * 8; /* and none behind */
    return a->nfresh == b->nfresh && !memcmp(a->fresh, b->fresh, nbytes) &&
           !memcmp(a->maybe, b->maybe, nbytes) &&
           !memcmp(a->words, b->words, nlines * 64);
}

/* Does every row set the same bits and give the same answers as the portable
 * one does for single keys? For every k, in arrays that are fetched in one
 * stage and in two, for hashes and for integers by both hashes, and for every
 * number of keys, up to max, around a group, a word of results and the distance
 * of fetching; for some of these where the array is large. The name of a row
 * that does not, or NULL. */
static const char *rows_check(size_t max)
{
    const char *wrong = NULL;
    uint64_t *keys = malloc(max * sizeof *keys);
    if (!keys)
        exit(2);
    for (size_t i = 0; i < max; i++)
        keys[i] = i % 5 || !i ? bly_mix64(i) : keys[i / 2];
    for (unsigned trial = 0; trial < 5 * 9; trial++) {
        static const uint64_t sizes[] = {
            13, 4999, BLY_LINES_CACHED / (BLY_LINE_BITS / 8) + 7
        };
        const unsigned k = 1u << trial / 9;
        const uint64_t nlines = sizes[trial % 3];
        const size_t few = trial % 3 == 2 ? 11 : 1;
        const bly_lines_keys in = { keys, 0, trial / 3 % 3,
                                    bly_int_flip(bly_mix64(trial)) };
        for (size_t n = 0; n <= max; n += (n < 300 ? 1 : 47) * few) {
            outcome want = outcome_singly(nlines, k, in, n);
            for (size_t r = 0; bly_lines_row_at(r / 2).name; r++) {
                const bly_lines_row *row = r % 2 ? bly_lines_rows[r / 2].shared
                                                 : &bly_lines_rows[r / 2];
                if (!bly_row_runs(row->needs))
                    continue;
                outcome got = outcome_of(row, nlines, k, in, n);
                if (!outcome_same(&got, &want, nlines, n))
                    wrong = row->name;
                outcome_free(&got);
            }
            outcome_free(&want);
        }
    }
    free(keys);
    return wrong;
}

#endif

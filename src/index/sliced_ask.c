/*
 * sliced_ask.c - questions to all documents at once
 *
 * In each group of a class, the rows of the terms are combined into a bitmap of
 * its columns. The bits of the columns then go to the documents that they stand
 * for. Documents that have no column in a class have no terms in it.
 *
 * Bytes are compared with their sums before they are used. A row that is
 * damaged counts as all ones, so it excludes no document; a damaged list of
 * columns makes every document that it may name a "maybe".
 */
#include <math.h>
#include <string.h>

#include "core/status.h"
#include "engine/slices.h"
#include "index/bit_sliced.h"

/* Rows that are combined at a time. */
#define ASK_ROWS 64

/* Memory of a question: bitmaps of the columns of one group, and of documents.
 */
typedef struct asking {
    bly_block block;
    unsigned char *columns; /* bytes as in rows, and zeros up to a word */
    uint64_t *documents;    /* NULL: not asked for */
    uint64_t *hashes;       /* of the terms of one class */
} asking;

static uint64_t group_words(const bly_sliced_group *g)
{
    return (g->ndocs + 63) / 64;
}

static bly_status asking_begin(const bly_index *x, size_t ndocuments,
                               size_t nhashes, asking *a)
{
    uint64_t most = 1;
    for (uint64_t i = 0; i < x->ngroups; i++)
        if (group_words(&x->groups[i]) > most)
            most = group_words(&x->groups[i]);
    if (nhashes > SIZE_MAX / 64)
        return bly_fail(BLY_ERANGE, "too many terms");
    const bly_status st =
        bly_block_new(&x->mem, 8 * (most + ndocuments + nhashes), &a->block);
    if (st)
        return st;
    a->columns = a->block.at;
    a->documents = (uint64_t *)(void *)(a->block.at + 8 * most);
    a->hashes = a->documents + ndocuments;
    return BLY_OK;
}

static void asking_end(const bly_index *x, asking *a)
{
    bly_block_free(&x->mem, &a->block);
}

/* Fetch what the rows of a term begin with. */
static void group_fetch(const bly_index *x, const bly_sliced_group *g,
                        uint32_t k, uint64_t hash)
{
    const uint64_t stride = bly_sliced_stride(g->ndocs);
    for (uint32_t i = 0; i < k; i++) {
        const uint64_t row = bly_sliced_next(&hash, g->m);
        __builtin_prefetch(x->bytes + g->part.at + row * stride / 8);
    }
}

static bool group_row_right(const bly_sliced_group *g, uint64_t bit,
                            uint64_t nbits)
{
    const uint64_t from = bit / 8, to = (bit + nbits + 7) / 8;
    return !bly_sums_pending(g->part.sums) ||
           bly_sums_touch(g->part.sums, from, to - from);
}

/* Few columns: a row is in one word or two. */
static void packed_meet(const bly_index *x, const bly_sliced_group *g,
                        const uint64_t *hashes, size_t n, unsigned char *out)
{
    const uint32_t k = x->classes[g->class_number].k;
    const unsigned char *const rows = x->bytes + g->part.at;
    uint64_t word = bly_through(g->ndocs - 1);
    for (size_t i = 0; i < n && word; i++) {
        uint64_t h = hashes[i];
        for (uint32_t j = 0; j < k && word; j++) {
            const uint64_t r = bly_sliced_next(&h, g->m);
            /* Both words are read, whatever the second one is for. */
            if (group_row_right(g, r * g->ndocs / 64 * 64, 128))
                word &= bly_sliced_packed(rows, r, g->ndocs);
        }
    }
    bly_store64(out, word);
}

/* Which columns of g may have all n terms? Fills group_words() words of out. */
static void group_meet(const bly_index *x, const bly_sliced_group *g,
                       const uint64_t *hashes, size_t n, unsigned char *out)
{
    if (g->ndocs <= 64) {
        packed_meet(x, g, hashes, n, out);
        return;
    }
    const uint32_t k = x->classes[g->class_number].k;
    const uint64_t stride = bly_sliced_stride(g->ndocs);
    const size_t nbytes = (size_t)(stride / 8);
    const size_t nwords = (size_t)group_words(g);
    const unsigned char *rows[ASK_ROWS + 1];
    const bly_slices_row *const row = bly_slices_best();
    size_t nrows = 0;
    bool begun = false;
    for (size_t i = 0; i < n; i++) {
        uint64_t h = hashes[i];
        for (uint32_t j = 0; j < k; j++) {
            const uint64_t bit = bly_sliced_next(&h, g->m) * stride;
            if (!group_row_right(g, bit, stride))
                continue;
            rows[nrows++] = x->bytes + g->part.at + bit / 8;
            if (nrows < ASK_ROWS)
                continue;
            if (begun)
                rows[nrows++] = out;
            row->meet(out, rows, nrows, nbytes);
            begun = true;
            nrows = 0;
        }
    }
    if (nrows && begun)
        rows[nrows++] = out;
    if (nrows)
        row->meet(out, rows, nrows, nbytes);
    else if (!begun)
        memset(out, 0xff, nbytes);
    memset(out + nbytes, 0, 8 * nwords - nbytes);
    const uint64_t last = bly_load64(out + 8 * (nwords - 1));
    bly_store64(out + 8 * (nwords - 1), last & bly_through(g->ndocs - 1));
}

/* Set n bits from bit `at` on. */
static void bits_fill(uint64_t *words, uint64_t at, uint64_t n)
{
    for (uint64_t i = at; i < at + n;) {
        const uint64_t left = at + n - i, room = 64 - i % 64;
        const uint64_t now = left < room ? left : room;
        words[i / 64] |= bly_through(now - 1) << (i % 64);
        i += now;
    }
}

/* Words as they are in rows become those of this machine. */
static void words_turn(uint64_t *words, size_t n)
{
    for (size_t i = 0; bly_le64(1) != 1 && i < n; i++)
        words[i] = bly_le64(words[i]);
}

/* Columns of documents that follow each other. */
static void scatter_run(const bly_sliced_group *g, const unsigned char *columns,
                        uint64_t *out)
{
    const uint64_t nwords = group_words(g);
    const unsigned shift = g->first % 64;
    uint64_t *const to = out + g->first / 64;
    for (uint64_t i = 0; i < nwords && !shift; i++)
        to[i] |= bly_load64(columns + 8 * i);
    for (uint64_t i = 0; i < nwords && shift; i++) {
        const uint64_t word = bly_load64(columns + 8 * i);
        to[i] |= word << shift;
        if (word >> (64 - shift)) /* else there may be no next word */
            to[i + 1] |= word >> (64 - shift);
    }
}

/* Set the bits of the documents that the columns stand for. */
static void group_scatter(const bly_index *x, const bly_sliced_group *g,
                          const unsigned char *columns, uint64_t *out)
{
    bool right = true;
    const uint64_t nwords = group_words(g);
    const unsigned char *const list = bly_sliced_list(g, x->bytes, &right);
    if (!list) {
        scatter_run(g, columns, out);
        return;
    }
    for (uint64_t i = 0; i < nwords && right; i++)
        for (uint64_t word = bly_load64(columns + 8 * i); word;
             word &= word - 1) {
            const uint64_t column = 64 * i + (uint64_t)__builtin_ctzll(word);
            const uint32_t at = bly_load32(list + 4 * column);
            right &= at < g->span;
            const uint64_t number = g->first + (right ? at : 0);
            out[number / 64] |= UINT64_C(1) << (number % 64);
        }
    if (!right)
        bits_fill(out, g->first, g->span);
}

static void remove_dropped(const bly_index *x, uint64_t *documents)
{
    for (size_t i = 0; x->dropped && i < bly_index_words(x); i++)
        documents[i] &= ~bly_load64(x->dropped + 8 * i);
}

/* The groups of a class: *n of them from the one returned on. */
static const bly_sliced_group *groups_of(const bly_index *x, uint32_t number,
                                         uint64_t *n)
{
    uint64_t from = 0, to;
    while (from < x->ngroups && x->groups[from].class_number < number)
        from++;
    for (to = from; to < x->ngroups && x->groups[to].class_number == number;)
        to++;
    *n = to - from;
    return x->groups + from;
}

bly_status bly_index_ask(const bly_index *x, const bly_index_term *terms,
                         size_t n, uint64_t *maybe)
{
    asking a;
    if (!x || !maybe || (n && !terms))
        return bly_fail_null(!x ? "x" : !maybe ? "maybe" : "terms");
    for (size_t i = 0; i < n; i++)
        if (terms[i].class_number >= x->nclasses)
            return bly_fail(BLY_EINVAL, "this index has %u classes of terms",
                            x->nclasses);
    const size_t nwords = bly_index_words(x);
    const bly_status st = asking_begin(x, nwords, n, &a);
    if (st)
        return st;
    bly_index_live(x, maybe);
    for (uint32_t c = 0; c < x->nclasses; c++) {
        size_t nhashes = 0;
        uint64_t ngroups;
        for (size_t i = 0; i < n; i++)
            if (terms[i].class_number == c)
                a.hashes[nhashes++] = terms[i].hash;
        if (!nhashes)
            continue;
        memset(a.documents, 0, 8 * nwords);
        const bly_sliced_group *const g = groups_of(x, c, &ngroups);
        for (uint64_t i = 0; i < ngroups; i++) {
            group_meet(x, &g[i], a.hashes, nhashes, a.columns);
            group_scatter(x, &g[i], a.columns, a.documents);
        }
        for (size_t i = 0; i < nwords; i++)
            maybe[i] &= a.documents[i];
    }
    asking_end(x, &a);
    return BLY_OK;
}

static bly_status asked_class(const bly_index *x, unsigned class_number,
                              const void *hashes, size_t n, const void *out)
{
    if (!x || !out || (n && !hashes))
        return bly_fail_null(!x ? "x" : !out ? "out" : "hashes");
    return class_number < x->nclasses
               ? BLY_OK
               : bly_fail(BLY_EINVAL, "this index has %u classes of terms",
                          x->nclasses);
}

/* Terms whose rows are fetched ahead. */
#define ASK_AHEAD 3

bly_status bly_index_ask_each(const bly_index *x, unsigned class_number,
                              const uint64_t *hashes, size_t n, uint64_t *maybe)
{
    asking a;
    bly_status st = asked_class(x, class_number, hashes, n, maybe);
    if (!st)
        st = asking_begin(x, 0, 0, &a);
    if (st)
        return st;
    const size_t nwords = bly_index_words(x);
    const uint32_t k = x->classes[class_number].k;
    uint64_t ngroups;
    const bly_sliced_group *const g = groups_of(x, class_number, &ngroups);
    /* The columns of one group that has all documents are the answer. */
    const bool whole = ngroups == 1 && g->ndocs == x->ndocs;
    if (!whole)
        memset(maybe, 0, 8 * nwords * n);
    for (uint64_t j = 0; j < ngroups; j++)
        for (size_t i = 0; i < n; i++) {
            uint64_t *const out = maybe + i * nwords;
            if (i + ASK_AHEAD < n)
                group_fetch(x, &g[j], k, hashes[i + ASK_AHEAD]);
            group_meet(x, &g[j], hashes + i, 1,
                       whole ? (unsigned char *)out : a.columns);
            if (whole)
                words_turn(out, nwords);
            else
                group_scatter(x, &g[j], a.columns, out);
        }
    for (size_t i = 0; i < n && x->dropped; i++)
        remove_dropped(x, maybe + i * nwords);
    asking_end(x, &a);
    return BLY_OK;
}

/* ----------------------------------------------------------------- coverage */

/* Counters of 64 columns are words, one for each binary digit: adding a bit to
 * each is a sum with carry, and the carries end after two words on average. */
static void planes_add(uint64_t *planes, unsigned nplanes,
                       const unsigned char *columns, uint64_t nwords)
{
    for (uint64_t i = 0; i < nwords; i++, planes += nplanes) {
        uint64_t carry = bly_load64(columns + 8 * i);
        for (unsigned j = 0; carry; j++) {
            const uint64_t both = planes[j] & carry;
            planes[j] ^= carry;
            carry = both;
        }
    }
}

static uint32_t planes_get(const uint64_t *planes, unsigned nplanes,
                           uint64_t column)
{
    const uint64_t *const at = planes + column / 64 * nplanes;
    uint32_t count = 0;
    for (unsigned j = 0; j < nplanes; j++)
        count |= (uint32_t)(at[j] >> (column % 64) & 1) << j;
    return count;
}

static void count_to(uint32_t *count, uint32_t more, uint32_t most)
{
    *count = *count > most - more ? most : *count + more;
}

static void coverage_give(const bly_index *x, const bly_sliced_group *g,
                          const uint64_t *planes, unsigned nplanes,
                          uint32_t most, uint32_t *counts)
{
    bool right = true;
    const unsigned char *const list = bly_sliced_list(g, x->bytes, &right);
    for (uint64_t i = 0; i < g->ndocs && right; i++) {
        const uint32_t count = planes_get(planes, nplanes, i);
        const uint64_t at = list ? bly_load32(list + 4 * i) : i;
        if (!count)
            continue; /* as in group_scatter(), where its bit is clear */
        right = at < g->span;
        if (right)
            count_to(&counts[g->first + at], count, most);
    }
    for (uint64_t i = 0; i < g->span && !right; i++)
        counts[g->first + i] = most;
}

bly_status bly_index_coverage(const bly_index *x, unsigned class_number,
                              const uint64_t *hashes, size_t n,
                              uint32_t *counts)
{
    asking a;
    bly_block planes;
    uint64_t ngroups, most = 0;
    bly_status st = asked_class(x, class_number, hashes, n, counts);
    if (!st && n > UINT32_MAX)
        st = bly_fail(BLY_ERANGE, "too many terms");
    if (st)
        return st;
    memset(counts, 0, (size_t)x->ndocs * sizeof counts[0]);
    const bly_sliced_group *const g = groups_of(x, class_number, &ngroups);
    for (uint64_t i = 0; i < ngroups; i++)
        most = group_words(&g[i]) > most ? group_words(&g[i]) : most;
    if (!n || !most)
        return BLY_OK;
    const unsigned nplanes = 64 - (unsigned)__builtin_clzll(n);
    st = asking_begin(x, 0, 0, &a);
    if (st)
        return st;
    st = bly_block_new(&x->mem, 8 * most * nplanes, &planes);
    const uint32_t k = x->classes[class_number].k;
    for (uint64_t i = 0; i < ngroups && !st; i++) {
        uint64_t *const at = (uint64_t *)(void *)planes.at;
        memset(at, 0, (size_t)(8 * group_words(&g[i]) * nplanes));
        for (size_t j = 0; j < n; j++) {
            if (j + ASK_AHEAD < n)
                group_fetch(x, &g[i], k, hashes[j + ASK_AHEAD]);
            group_meet(x, &g[i], hashes + j, 1, a.columns);
            planes_add(at, nplanes, a.columns, group_words(&g[i]));
        }
        coverage_give(x, &g[i], at, nplanes, (uint32_t)n, counts);
    }
    for (uint64_t i = 0; i < x->ndocs && x->dropped; i++)
        if (bly_sliced_dropped(x, i))
            counts[i] = 0;
    bly_block_free(&x->mem, &planes);
    asking_end(x, &a);
    return st;
}

/* The rate of a group with t terms is the t-th power of its rate with one; of
 * several classes, the shares of the documents multiply. */
double bly_index_expected(const bly_index *x, const bly_index_term *terms,
                          size_t n)
{
    double expected = (double)(x->ndocs - x->ndropped);
    for (uint32_t c = 0; c < x->nclasses; c++) {
        double asked = 0, columns = 0;
        for (size_t i = 0; i < n; i++)
            asked += terms[i].class_number == c;
        for (uint64_t i = 0; i < x->ngroups && asked > 0; i++)
            if (x->groups[i].class_number == c)
                columns += (double)x->groups[i].ndocs *
                           pow(x->groups[i].expected, asked);
        if (asked > 0)
            expected *= columns / (double)x->ndocs;
    }
    return x->ndocs ? expected : 0;
}

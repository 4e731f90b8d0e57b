/*
 * sliced_compact.c - groups of one size, put beside each other
 *
 * The terms of documents are not known any more, only their bits. Filters of
 * one class and size have their bits in the same rows, so their rows are put
 * together, bit by bit, without the columns of dropped documents:
 *
 *     row r of group a   1 0 0 1 1          without document 3 of a
 *     row r of group b         0 1 1        ->   1 0 0 1 0 1 1
 *
 * Groups are read from front to back, all at once; the sums of all their bytes
 * were compared before (bly_index_verify()), and so were their lists.
 */
#include <string.h>

#include "core/status.h"
#include "index/bit_sliced.h"

/* Columns of one group that stay. */
typedef struct source {
    const bly_sliced_group *g;
    const unsigned char *rows;
    const uint64_t *kept; /* bitmap; NULL: all */
    uint64_t nkept;
} source;

/* A row that is being put together. */
typedef struct bit_row {
    uint64_t *words; /* in the machine's order */
    uint64_t n;
} bit_row;

/* bits has nothing above the n lowest, 1 <= n <= 64. */
static inline void row_append(bit_row *r, uint64_t bits, uint64_t n)
{
    const unsigned shift = r->n % 64;
    uint64_t *const at = r->words + r->n / 64;
    if (shift == 0)
        at[0] = bits;
    else
        at[0] |= bits << shift;
    if (shift + n > 64)
        at[1] = bits >> (64 - shift);
    r->n += n;
}

/* The bits of x where mask has ones, moved together. */
static uint64_t bits_pick(uint64_t x, uint64_t mask)
{
    uint64_t out = 0;
    for (unsigned n = 0; mask; mask &= mask - 1, n++)
        out |= (x >> __builtin_ctzll(mask) & 1) << n;
    return out;
}

/* Word i of row r. A row of bytes may end before its word does, but then the
 * bytes behind it are the group's, too. */
static uint64_t source_word(const source *s, uint64_t r, uint64_t i)
{
    const uint64_t ndocs = s->g->ndocs;
    if (ndocs <= 64)
        return bly_sliced_packed(s->rows, r, ndocs);
    const uint64_t word =
        bly_load64(s->rows + r * (bly_sliced_stride(ndocs) / 8) + 8 * i);
    return ndocs - 64 * i < 64 ? word & bly_through(ndocs - 1) : word;
}

static void source_append(const source *s, uint64_t r, bit_row *out)
{
    for (uint64_t i = 0; 64 * i < s->g->ndocs; i++) {
        const uint64_t left = s->g->ndocs - 64 * i;
        uint64_t word = source_word(s, r, i), n = left < 64 ? left : 64;
        if (s->kept) {
            n = (uint64_t)__builtin_popcountll(s->kept[i]);
            word = bits_pick(word, s->kept[i]);
        }
        if (n)
            row_append(out, word, n);
    }
}

/* The document of a column. */
static uint64_t column_number(const bly_index *x, const bly_sliced_group *g,
                              uint64_t column)
{
    bool right = true;
    const unsigned char *const list = bly_sliced_list(g, x->bytes, &right);
    return g->first + (list ? bly_load32(list + 4 * column) : column);
}

/* ------------------------------------------------------------------ numbers */

/* The new numbers of documents: live ones before each word. */
typedef struct renumbering {
    const bly_index *x;
    bly_block block;
    uint64_t *before;
    uint64_t *live;
} renumbering;

static bly_status renumbering_begin(const bly_index *x, renumbering *r)
{
    const size_t nwords = bly_index_words(x);
    *r = (renumbering){ .x = x };
    const bly_status st = bly_block_new(&x->mem, 16 * nwords, &r->block);
    if (st)
        return st;
    r->before = (uint64_t *)(void *)r->block.at;
    r->live = r->before + nwords;
    bly_index_live(x, r->live);
    uint64_t n = 0;
    for (size_t i = 0; i < nwords; i++) {
        r->before[i] = n;
        n += (uint64_t)__builtin_popcountll(r->live[i]);
    }
    return BLY_OK;
}

static bool renumbered(const renumbering *r, uint64_t number, uint64_t *to)
{
    const uint64_t word = r->live[number / 64];
    const uint64_t bit = UINT64_C(1) << (number % 64);
    *to = r->before[number / 64] +
          (uint64_t)__builtin_popcountll(word & (bit - 1));
    return word & bit;
}

/* ----------------------------------------------------------------- segments */

/* One segment of all blobs: their lengths first. */
static bly_status compact_segment(bly_sliced_writer *w, const bly_index *x)
{
    bly_sliced_segment s = { .ndocs = x->ndocs - x->ndropped };
    uint64_t sum = 0;
    unsigned char entry[8] = { 0 };
    bly_bytes blob;
    bly_status st = BLY_OK;
    if (!s.ndocs)
        return BLY_OK;
    for (uint64_t i = 0; i < x->ndocs && !st; i++)
        if (!bly_sliced_dropped(x, i)) {
            st = bly_index_document(x, i, &blob);
            sum += blob.len;
        }
    if (!st)
        st = bly_sliced_part_begin(w, 8 * (s.ndocs + 1) + sum);
    if (!st)
        st = bly_sliced_put(w, entry, sizeof entry);
    sum = 0;
    for (uint64_t i = 0; i < x->ndocs && !st; i++)
        if (!bly_sliced_dropped(x, i)) {
            st = bly_index_document(x, i, &blob);
            sum += blob.len;
            bly_store64(entry, sum);
            if (!st)
                st = bly_sliced_put(w, entry, sizeof entry);
        }
    for (uint64_t i = 0; i < x->ndocs && !st; i++)
        if (!bly_sliced_dropped(x, i)) {
            st = bly_index_document(x, i, &blob);
            if (!st)
                st = bly_sliced_put(w, blob.ptr, blob.len);
        }
    if (!st)
        st = bly_sliced_part_end(w, &s.part);
    return st ? st : bly_sliced_segment_add(w, &s);
}

/* ------------------------------------------------------------------- groups */

static bly_status put_joined(bly_sliced_writer *w, const bly_sliced_group *out,
                             const source *sources, size_t n, uint64_t *words)
{
    const uint64_t stride = bly_sliced_stride(out->ndocs);
    bit_row row = { .words = words };
    bly_status st = BLY_OK;
    unsigned char word[8];
    for (uint64_t r = 0; r < out->m && !st; r++) {
        for (size_t i = 0; i < n; i++)
            source_append(&sources[i], r, &row);
        /* Rows of bytes begin anew; packed ones go on within the word. */
        const uint64_t whole =
            out->ndocs > 64 ? (stride + 63) / 64 : row.n / 64;
        uint64_t nbytes = out->ndocs > 64 ? stride / 8 : 8 * whole;
        for (uint64_t i = 0; i < whole && !st; i++, nbytes -= 8) {
            bly_store64(word, words[i]);
            st = bly_sliced_put(w, word, nbytes < 8 ? (size_t)nbytes : 8);
            if (nbytes < 8)
                break;
        }
        if (out->ndocs > 64) {
            row.n = 0;
        } else if (whole) {
            words[0] = row.n % 64 ? words[1] : 0;
            row.n %= 64;
        }
    }
    /* Up to a whole word, and the word behind. */
    const uint64_t bits = out->m * stride % 64;
    if (!st && bits) {
        bly_store64(word, out->ndocs > 64 ? 0 : words[0]);
        st = bly_sliced_put(w, word,
                            out->ndocs > 64 ? (size_t)(8 - bits / 8) : 8);
    }
    memset(word, 0, sizeof word);
    return st ? st : bly_sliced_put(w, word, sizeof word);
}

/* Call with each column that stays, in the order of the new group. */
static bly_status put_numbers(bly_sliced_writer *w, const renumbering *numbers,
                              const bly_sliced_group *out,
                              const source *sources, size_t n)
{
    bly_status st = BLY_OK;
    unsigned char entry[4] = { 0 };
    uint64_t to;
    for (size_t i = 0; i < n; i++)
        for (uint64_t c = 0; c < sources[i].g->ndocs && !st; c++)
            if (renumbered(numbers, column_number(numbers->x, sources[i].g, c),
                           &to)) {
                bly_store32(entry, (uint32_t)(to - out->first));
                st = bly_sliced_put(w, entry, sizeof entry);
            }
    memset(entry, 0, sizeof entry);
    return st || out->ndocs % 2 == 0 ? st
                                     : bly_sliced_put(w, entry, sizeof entry);
}

/* Which columns of a group stay: kept gets a bit for each. Extends what the new
 * group says of itself. */
static void source_look(source *s, const renumbering *numbers, uint64_t *kept,
                        bly_sliced_group *out, uint64_t *last, bool *ascending)
{
    const bly_sliced_group *const g = s->g;
    uint64_t to;
    for (uint64_t c = 0; c < g->ndocs; c++) {
        if (!renumbered(numbers, column_number(numbers->x, g, c), &to))
            continue;
        kept[c / 64] |= UINT64_C(1) << (c % 64);
        *ascending &= out->ndocs == 0 || to > *last;
        out->first = out->ndocs == 0 || to < out->first ? to : out->first;
        *last = out->ndocs == 0 || to > *last ? to : *last;
        out->ndocs++;
        s->nkept++;
    }
    s->kept = s->nkept < g->ndocs ? kept : NULL;
    const double share = (double)s->nkept / (double)g->ndocs;
    out->terms += (uint64_t)((double)g->terms * share);
    out->expected += g->expected * (double)s->nkept;
}

/* Join n groups of one class and size. */
static bly_status compact_groups(bly_sliced_writer *w,
                                 const renumbering *numbers,
                                 const bly_sliced_group *g, size_t n)
{
    const bly_index *const x = numbers->x;
    uint64_t nkept = 0, ncolumns = 0, last = 0;
    bool ascending = true;
    bly_block block;
    for (size_t i = 0; i < n; i++) {
        nkept += (g[i].ndocs + 63) / 64;
        ncolumns += g[i].ndocs;
    }
    const size_t nsources = n * sizeof(source);
    bly_status st = bly_block_new(
        &w->mem, nsources + 8 * nkept + 8 * (ncolumns / 64 + 3), &block);
    if (st)
        return st;
    source *const sources = (source *)(void *)block.at;
    uint64_t *kept = (uint64_t *)(void *)(block.at + nsources);
    bly_sliced_group out = { .class_number = g->class_number, .m = g->m };
    for (size_t i = 0; i < n; i++) {
        sources[i] = (source){ .g = &g[i], .rows = x->bytes + g[i].part.at };
        source_look(&sources[i], numbers, kept, &out, &last, &ascending);
        kept += (g[i].ndocs + 63) / 64;
    }
    if (!out.ndocs) {
        bly_block_free(&w->mem, &block);
        return BLY_OK;
    }
    out.expected /= (double)out.ndocs;
    out.span = last - out.first + 1;
    /* A group without a list has its columns in order; one more document in
     * the span would be a lie, so an order that jumps needs a list. */
    if (out.span == out.ndocs && !ascending)
        st = bly_fail(BLY_EFORMAT, "groups of one size overlap");
    if (!st)
        st = bly_sliced_part_begin(
            w, bly_sliced_row_bytes(out.m, out.ndocs) +
                   bly_sliced_list_bytes(out.ndocs, out.span));
    if (!st)
        st = put_joined(w, &out, sources, n, kept);
    if (!st && out.span != out.ndocs)
        st = put_numbers(w, numbers, &out, sources, n);
    if (!st)
        st = bly_sliced_part_end(w, &out.part);
    bly_block_free(&w->mem, &block);
    return st ? st : bly_sliced_group_add(w, &out);
}

bly_status bly_sliced_compact(bly_sliced_writer *w, const bly_index *x)
{
    renumbering numbers;
    bly_status st = renumbering_begin(x, &numbers);
    if (!st)
        st = compact_segment(w, x);
    for (uint64_t i = 0, n; i < x->ngroups && !st; i += n) {
        const bly_sliced_group *const g = &x->groups[i];
        const uint64_t base = g->first;
        /* Lists have numbers of 32 bits, from the first one on. */
        for (n = 1; i + n < x->ngroups && !bly_sliced_order(g, g + n) &&
                    g[n].first + g[n].span - base <= UINT32_MAX;)
            n++;
        st = compact_groups(w, &numbers, g, (size_t)n);
    }
    bly_block_free(&x->mem, &numbers.block);
    return st;
}

/*
 * explain_ways.c - what is done with the cells of a small filter
 *
 *     bits         adding sets cells
 *     counting     adding counts
 *     increments   the ith probe of x adds s[(x + i) mod 4], s = 8, 12, 14, 15:
 *                  a counter of 20 has not seen a 14, since 20 - 14 = 6 is no
 *                  sum of these
 *     deletable    m cells in r regions; one in which a key met a cell that
 *                  was set is marked, and the cells of others may be cleared
 *     floom        m cells in b regions; bit i of a key's pattern says that a
 *                  probe fell into region i; patterns that occurred are kept
 *     scalable     when a layer has its keys, another begins, twice as large
 *                  for as many keys, so that its rate is lower
 *     cuckoo       h1(x) is the first cell, h2(x) + 1 the fingerprint f; the
 *                  cells of a fingerprint sum to h3(f) mod m, so that each
 *                  leads to the other without the key
 *
 * They are the drawings of the texts: with numbers for keys, and small enough
 * to check by hand. The library's kinds do the same with hashes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "report/say.h"
#include "workbench/explain.h"

const char *const explain_ways[EXPLAIN_NWAYS] = {
    [EXPLAIN_BITS] = "bits",
    [EXPLAIN_COUNTING] = "counting",
    [EXPLAIN_INCREMENTS] = "increments",
    [EXPLAIN_DELETABLE] = "deletable",
    [EXPLAIN_FLOOM] = "floom",
    [EXPLAIN_SCALABLE] = "scalable",
    [EXPLAIN_CUCKOO] = "cuckoo",
};

bool explain_removes(enum explain_way way)
{
    return way == EXPLAIN_COUNTING || way == EXPLAIN_INCREMENTS ||
           way == EXPLAIN_DELETABLE || way == EXPLAIN_CUCKOO;
}

/* What is said of a step if the way itself has nothing to add. */
static void says_as_usual(struct explain_step *s)
{
    static const char *const none = "";
    const char *text = none;
    switch (s->op) {
    case EXPLAIN_ADD:
        text = s->maybe && !s->there ? "changed nothing" : none;
        break;
    case EXPLAIN_REMOVE:
        text = !s->maybe   ? "refused: not in the filter"
               : !s->there ? "harm: never added"
                           : none;
        break;
    case EXPLAIN_HAS:
        text = !s->maybe ? "no" : s->there ? "maybe" : "maybe: false positive";
        break;
    case EXPLAIN_MOVE:
        break;
    }
    explain_says(s, "%s", text);
}

static bool all_in_use(const struct explain_step *s)
{
    for (size_t i = 0; i < s->ntouched; i++)
        if (!s->cells[s->touched[i]])
            return false;
    return true;
}

static void set_cells(struct explain_step *s)
{
    for (size_t i = 0; i < s->ntouched; i++)
        s->cells[s->touched[i]] = 1;
}

/* ------------------------------------------------------- bits and counters */

static bool act_bits(struct explain *e, struct explain_step *s)
{
    if (!explain_find(e, s, e->m, 0))
        return false;
    s->maybe = all_in_use(s);
    says_as_usual(s);
    if (s->op == EXPLAIN_ADD)
        set_cells(s);
    explain_keep(e, s);
    return true;
}

static bool act_counting(struct explain *e, struct explain_step *s)
{
    if (!explain_find(e, s, e->m, 0))
        return false;
    s->maybe = all_in_use(s);
    says_as_usual(s);
    for (size_t i = 0; i < s->ntouched; i++) {
        if (explain_repeated(s, i))
            continue;
        if (s->op == EXPLAIN_ADD)
            s->cells[s->touched[i]]++;
        else if (s->op == EXPLAIN_REMOVE && s->maybe)
            s->cells[s->touched[i]]--;
    }
    explain_keep(e, s);
    return true;
}

/* ----------------------------------------------------------- increments */

static const unsigned increments[] = { 8, 12, 14, 15 };
enum { NINCREMENTS = sizeof increments / sizeof *increments };

static unsigned increment_of(uint64_t key, size_t probe)
{
    return increments[(key + probe) % NINCREMENTS];
}

/* Is n a sum of increments, none of them included? From 34 on all are. */
static bool is_sum(unsigned n)
{
    if (n == 0 || n > 33)
        return true;
    for (size_t i = 0; i < NINCREMENTS; i++)
        if (n >= increments[i] && is_sum(n - increments[i]))
            return true;
    return false;
}

static bool act_increments(struct explain *e, struct explain_step *s)
{
    if (!explain_find(e, s, e->m, 0))
        return false;
    bool denied = false;
    for (size_t i = 0; i < s->ntouched && !denied; i++) {
        const unsigned cell = s->cells[s->touched[i]],
                       by = increment_of(s->key, i);
        if (explain_repeated(s, i) || (cell >= by && is_sum(cell - by)))
            continue;
        denied = true;
        s->maybe = false;
        if (s->op == EXPLAIN_HAS && cell >= by)
            explain_says(s, "no: %u - %u = %u is not a sum of 8, 12, 14 and 15",
                         cell, by, cell - by);
        else if (s->op == EXPLAIN_HAS && cell)
            explain_says(s, "no: %u is less than %u", cell, by);
    }
    if (!s->result[0])
        says_as_usual(s);
    for (size_t i = 0; i < s->ntouched; i++) {
        if (explain_repeated(s, i))
            continue;
        if (s->op == EXPLAIN_ADD)
            s->cells[s->touched[i]] += increment_of(s->key, i);
        else if (s->op == EXPLAIN_REMOVE && s->maybe)
            s->cells[s->touched[i]] -= increment_of(s->key, i);
    }
    explain_keep(e, s);
    return true;
}

/* -------------------------------------------------------------- regions */

static size_t region_of(const struct explain *e, size_t cell)
{
    return cell * e->regions / e->m;
}

/* Text's end behind one more number, from 1 on as people count. */
static void say_number(char *text, size_t size, size_t *at, size_t n)
{
    if (*at < size)
        *at += (size_t)snprintf(text + *at, size - *at, "%s%zu",
                                *at ? ", " : "", n + 1);
}

static bool act_deletable(struct explain *e, struct explain_step *s)
{
    char named[80] = "";
    size_t at = 0;
    if (!explain_find(e, s, e->m, 0))
        return false;
    s->maybe = all_in_use(s);
    says_as_usual(s);
    for (size_t i = 0; i < s->ntouched; i++) {
        unsigned *const cell = &s->cells[s->touched[i]];
        bool *const shared = &e->marks[region_of(e, s->touched[i])];
        if (explain_repeated(s, i))
            continue;
        if (s->op == EXPLAIN_ADD) {
            if (*cell && !*shared)
                say_number(named, sizeof named, &at,
                           region_of(e, s->touched[i]));
            *shared |= *cell != 0;
            *cell = 1;
        } else if (s->op == EXPLAIN_REMOVE && s->maybe && !*shared) {
            say_number(named, sizeof named, &at, region_of(e, s->touched[i]));
            *cell = 0;
        }
    }
    if (at && s->op == EXPLAIN_ADD)
        explain_says(s, "keys have met in region %s", named);
    else if (s->op == EXPLAIN_REMOVE && s->maybe && s->there)
        explain_says(s,
                     at ? "cleared in region %s, where no keys have met"
                        : "kept: keys have met in all of its regions%s",
                     named);
    explain_keep(e, s);
    return true;
}

static bool act_floom(struct explain *e, struct explain_step *s)
{
    unsigned pattern = 0;
    if (!explain_find(e, s, e->m, 0))
        return false;
    for (size_t i = 0; i < s->ntouched; i++)
        pattern |= 1U << region_of(e, s->touched[i]);
    const bool set = all_in_use(s);
    s->maybe = set && e->marks[pattern];
    if (s->op == EXPLAIN_ADD)
        explain_says(s, "pattern %u%s", pattern,
                     e->marks[pattern] ? ", as one before" : "");
    else if (set && !s->maybe)
        explain_says(s, "no: pattern %u never occurred", pattern);
    else
        says_as_usual(s);
    if (s->op == EXPLAIN_ADD) {
        set_cells(s);
        e->marks[pattern] = true;
    }
    explain_keep(e, s);
    return true;
}

/* --------------------------------------------------------------- layers */

/* Layer i has 2^i times the cells of the first, and begins behind those
 * before it. */
static size_t layer_cells(const struct explain *e, size_t layer)
{
    return e->first_m << layer;
}

static size_t layer_first(const struct explain *e, size_t layer)
{
    return e->first_m * (((size_t)1 << layer) - 1);
}

static bool act_scalable(struct explain *e, struct explain_step *s)
{
    bool begun = false;
    if (s->op == EXPLAIN_ADD && e->nlast == e->items) {
        const size_t m = e->m + layer_cells(e, e->layer + 1);
        if (m > EXPLAIN_MAX_CELLS) {
            fail("another layer would make more than %d cells",
                 EXPLAIN_MAX_CELLS);
            return false;
        }
        e->m = m;
        e->layer++;
        e->nlast = 0;
        begun = true;
    }
    /* The newest layer first: it takes keys, and most of them are in it. */
    size_t layer = e->layer;
    for (s->maybe = false;; layer--) {
        if (!explain_find(e, s, layer_cells(e, layer), layer_first(e, layer)))
            return false;
        s->maybe = all_in_use(s);
        if (s->maybe || layer == 0 || s->op == EXPLAIN_ADD)
            break;
    }
    says_as_usual(s);
    if (s->op == EXPLAIN_HAS && s->maybe)
        explain_says(s, "maybe: layer %zu%s", layer + 1,
                     s->there ? "" : ", a false positive");
    else if (s->op == EXPLAIN_HAS)
        explain_says(s, "no: in none of %zu layers", e->layer + 1);
    else if (begun)
        explain_says(s, "layer %zu begins", e->layer + 1);
    if (s->op == EXPLAIN_ADD) {
        set_cells(s);
        e->nlast++;
    }
    explain_keep(e, s);
    return true;
}

/* --------------------------------------------------------------- cuckoo */

/* Where a fingerprint goes that cannot stay in a cell: the way back is the
 * same, (h - ((h - c))) = c, modulo m. */
static bool other_cell(const struct explain *e, size_t print, size_t cell,
                       size_t *other)
{
    size_t sum;
    if (!explain_hash(e, 2, print, e->m, &sum))
        return false;
    *other = (sum + e->m - cell) % e->m;
    return true;
}

/* The fingerprint and both cells of a key. */
static bool cuckoo_find(const struct explain *e, struct explain_step *s,
                        unsigned *print)
{
    size_t f;
    s->ntouched = 2;
    if (!explain_hash(e, 1, s->key, 99, &f))
        return false;
    *print = (unsigned)f + 1; /* 0 is an empty cell */
    return explain_hash(e, 0, s->key, e->m, &s->touched[0]) &&
           other_cell(e, *print, s->touched[0], &s->touched[1]);
}

/* Put print into cell, and whoever is there elsewhere, a step for each. Where
 * that does not end, all is as it was before. */
static bool cuckoo_push(struct explain *e, struct explain_step *s,
                        unsigned print, size_t cell)
{
    const size_t first = e->nsteps;
    for (size_t moves = 0; moves < e->m; moves++) {
        const unsigned out = s->cells[cell];
        s->cells[cell] = print;
        if (out)
            explain_says(s, "%u pushes %u out of cell %zu", print, out, cell);
        explain_keep(e, s);
        if (!out)
            return true;
        if (!explain_begin_step(e, s, EXPLAIN_MOVE, out)) {
            *s = (struct explain_step){ 0 }; /* nothing to release */
            return false;
        }
        s->ntouched = 2;
        s->touched[0] = cell;
        if (!other_cell(e, out, cell, &s->touched[1]))
            return false;
        cell = s->touched[1];
        print = out;
    }
    explain_says(s, "the table is full after %zu moves: all as before", e->m);
    e->steps[first].undone = true;
    for (size_t c = 0; c < e->m; c++)
        s->cells[c] = first ? e->steps[first - 1].cells[c] : 0;
    explain_keep(e, s);
    return true;
}

static bool act_cuckoo(struct explain *e, struct explain_step *s)
{
    unsigned print;
    if (e->nhashes != 3) {
        fail("a cuckoo filter has three hash functions: the first cell, the "
             "fingerprint, and the sum of a fingerprint's cells");
        return false;
    }
    if (!cuckoo_find(e, s, &print))
        return false;
    const size_t *const at = s->touched;
    const bool first = s->cells[at[0]] == print;
    s->maybe = first || s->cells[at[1]] == print;
    if (s->op == EXPLAIN_ADD) {
        explain_says(s, "fingerprint %u", print);
        /* A free cell if there is one; otherwise the second one's owner goes,
         * and where both are one cell, its owner. */
        return cuckoo_push(e, s, print, at[!s->cells[at[0]] ? 0 : 1]);
    }
    says_as_usual(s);
    if (s->op == EXPLAIN_REMOVE && s->maybe)
        s->cells[at[first ? 0 : 1]] = 0;
    else if (!s->maybe)
        explain_says(s, "%s: fingerprint %u is in neither cell",
                     s->op == EXPLAIN_HAS ? "no" : "refused", print);
    explain_keep(e, s);
    return true;
}

explain_act *const explain_acts[EXPLAIN_NWAYS] = {
    [EXPLAIN_BITS] = act_bits,
    [EXPLAIN_COUNTING] = act_counting,
    [EXPLAIN_INCREMENTS] = act_increments,
    [EXPLAIN_DELETABLE] = act_deletable,
    [EXPLAIN_FLOOM] = act_floom,
    [EXPLAIN_SCALABLE] = act_scalable,
    [EXPLAIN_CUCKOO] = act_cuckoo,
};

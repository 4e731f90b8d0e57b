/*
 * differ.c - the elements in which two sets differ, from their symbols
 *
 * The cells of one side less those of the other (coded.c) hold the elements
 * that only one of them has. A cell with a single one tells it: count is 1 or
 * -1 and check is the hash of sum. It is taken out of its other cells, where
 * that may leave another one alone, and so on:
 *
 *     count   -1   2   1   0   1            sum of the last: x, and h(x) =
 * check less x  -1   1   1  -1   0
 *
 * Done is when nothing is left in any cell. With symbols without end every
 * element is in cell 0, so that one is looked at first. Elements that are known
 * are taken out of cells that come later.
 *
 * Where no cell has one alone, two cells may: if they share all elements but
 * one, their XOR is that one. With few cells all pairs of them are tried, which
 * is cheap, since the counts must differ by one before anything is hashed. Of
 * five elements it takes 1.55 symbols for each then, instead of 1.73; past some
 * dozens of cells hardly any two share so much.
 *
 * What anybody may have sent. Elements that are found are as many independent
 * sums of cells, so there are no more of them than cells; more than that can
 * only be found in cells that belong to no set, and is refused. So the work for
 * n cells is bounded by n walks, whatever they hold. Cells that cannot be
 * decoded are not told from those that want more symbols: the caller bounds how
 * many it takes.
 */
#include "core/memory.h"
#include "core/status.h"
#include "sketch/coded.h"

/* An array that grows; room in entries of `size` bytes. */
typedef struct differ_array {
    void *at;
    size_t room, size;
    bly_block block;
} differ_array;

/* Cells of which all pairs are tried. */
#define DIFFER_PAIRS 64

/* An element that was found. */
typedef struct differ_found {
    coded_walk walk; /* to its first cell that is not here yet */
    uint64_t h;
    uint64_t at; /* twice its place among those of its side, 1 more: theirs */
} differ_found;

static int64_t found_sign(const differ_found *f)
{
    return f->at & 1 ? 1 : -1;
}

struct bly_differ {
    coded_rules rules;
    uint64_t ncells; /* that came */
    uint64_t cells_of_table;
    uint64_t nfound;
    size_t nside[2]; /* by bly_side */
    bool done;
    bool broken;          /* cells of no set came: nothing more is taken */
    differ_array cells;   /* stride words each */
    differ_array found;   /* differ_found */
    differ_array side[2]; /* elements found, as bytes, width each */
    differ_array waiting; /* cells to be looked at, uint64_t */
};

static bool array_reserve(const bly_mem *mem, differ_array *a, size_t n)
{
    bly_block more;
    if (n <= a->room)
        return true;
    const size_t room = n > 2 * a->room ? n : 2 * a->room;
    if (room > SIZE_MAX / a->size / 2 ||
        bly_block_new(mem, room * a->size, &more))
        return false;
    if (a->room) {
        memcpy(more.at, a->at, a->room * a->size);
        bly_block_free(mem, &a->block);
    }
    a->block = more;
    a->at = more.at;
    a->room = room;
    return true;
}

static void array_free(const bly_mem *mem, differ_array *a)
{
    if (a->room)
        bly_block_free(mem, &a->block);
}

/* ------------------------------------------------------------------- making */

bly_status bly_differ_new(const bly_coding *how, bly_differ **out)
{
    coded_rules r;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    const bly_status st = bly_coded_rules(how, &r);
    if (st)
        return st;
    bly_differ *const d = bly_mem_zalloc(&r.mem, sizeof *d);
    if (!d)
        return bly_fail(BLY_ENOMEM, "out of memory");
    *d = (bly_differ){
        .rules = r,
        .cells.size = r.stride * sizeof(uint64_t),
        .found.size = sizeof(differ_found),
        .side = { { .size = r.width }, { .size = r.width } },
        .waiting.size = sizeof(uint64_t),
    };
    *out = d;
    return BLY_OK;
}

void bly_differ_free(bly_differ *d)
{
    if (!d)
        return;
    const bly_mem mem = d->rules.mem;
    array_free(&mem, &d->cells);
    array_free(&mem, &d->found);
    array_free(&mem, &d->side[0]);
    array_free(&mem, &d->side[1]);
    array_free(&mem, &d->waiting);
    bly_mem_release(&mem, d, sizeof *d);
}

/* ----------------------------------------------------------------- decoding */

static uint64_t *cell_at(const bly_differ *d, uint64_t i)
{
    return (uint64_t *)d->cells.at + i * d->rules.stride;
}

static bool cell_empty(const bly_differ *d, uint64_t i)
{
    const uint64_t *const cell = cell_at(d, i);
    uint64_t any = cell[0] | (cell[1] & d->rules.checked);
    for (size_t w = CODED_SUM; w < d->rules.stride; w++)
        any |= cell[w];
    return !any;
}

/* One alone, perhaps: its count says so. */
static bool cell_single(const uint64_t *cell)
{
    return cell[0] + 1 <= 2 && cell[0];
}

/* Cells that are to be looked at, each once at a time: those are marked. */
typedef struct differ_queue {
    uint64_t *at;
    uint64_t n;
} differ_queue;

static inline void queue_cell(differ_queue *q, uint64_t *cell, uint64_t i)
{
    if (!cell_single(cell) || cell[CODED_MARK])
        return;
    cell[CODED_MARK] = 1;
    q->at[q->n++] = i;
}

static unsigned char *found_bytes(const bly_differ *d, const differ_found *f)
{
    const bly_side side = f->at & 1 ? BLY_THEIRS : BLY_MINE;
    return (unsigned char *)d->side[side].at + (f->at >> 1) * d->rules.width;
}

/* Elements that are taken out at once. */
#define DIFFER_GROUP 128

/* Take n elements out of all their cells that are here, from where their walks
 * stand; these then stand at the first that is not. Behind the last cell is one
 * for all that are not here; it is marked, and so never looked at. nwords is a
 * literal where this is called for what most callers have. */
static inline __attribute__((always_inline)) void
take_out_group(bly_differ *d, differ_queue *q, differ_found *f, size_t n,
               size_t nwords)
{
    const coded_rules *const r = &d->rules;
    const bly_walks_row *const row = bly_walks_best();
    const size_t stride = CODED_SUM + nwords;
    uint64_t *const cells = d->cells.at;
    const uint64_t ncells = d->ncells;
    uint64_t words[DIFFER_GROUP * CODED_WORDS_MOST], h[DIFFER_GROUP];
    uint64_t s[DIFFER_GROUP + WALKS_ROOM], at[DIFFER_GROUP + WALKS_ROOM];
    uint64_t over[3][DIFFER_GROUP + WALKS_ROOM];
    int64_t sign[DIFFER_GROUP];
    unsigned char place[DIFFER_GROUP];
    bly_walks w = { .first_s = s,
                    .first_at = at,
                    .to = ncells,
                    .over_s = over[0],
                    .over_at = over[1],
                    .over_id = over[2] };
    for (size_t i = 0; i < n; i++) {
        const size_t k = w.n;
        if (f[i].walk.at >= ncells)
            continue;
        coded_element(r, found_bytes(d, &f[i]), words + k * nwords);
        s[k] = f[i].walk.s;
        at[k] = f[i].walk.at;
        h[k] = f[i].h;
        sign[k] = -found_sign(&f[i]);
        place[k] = (unsigned char)i;
        uint64_t *const cell = cells + at[k] * stride;
        coded_apply(cell, words + k * nwords, nwords, h[k], sign[k]);
        queue_cell(q, cell, at[k]);
        w.n++;
    }
    walks_begin(&w);
    /* Cells are fetched during one step and changed during the next. */
    struct {
        uint64_t at, id;
    } turn[WALKS_LANES];
    bool more, held = false;
    do {
        more = row->step(&w);
        for (size_t k = 0; k < WALKS_LANES; k++) {
            const uint64_t i = w.id[k],
                           to = w.at[k] < ncells ? w.at[k] : ncells;
            __builtin_prefetch(cells + to * stride, 1);
            if (held) {
                const uint64_t e = turn[k].id;
                uint64_t *const cell = cells + turn[k].at * stride;
                coded_apply(cell, words + e * nwords, nwords, h[e], sign[e]);
                queue_cell(q, cell, turn[k].at);
            }
            turn[k].at = to;
            turn[k].id = i;
        }
        held = true;
    } while (more);
    for (size_t k = 0; k < w.nover; k++)
        f[place[over[2][k]]].walk = (coded_walk){ over[0][k], over[1][k] };
}

/* In a table, one after the other. */
static void take_out_table(bly_differ *d, differ_queue *q, differ_found *f)
{
    const coded_rules *const r = &d->rules;
    uint64_t words[CODED_WORDS_MOST];
    coded_element(r, found_bytes(d, f), words);
    while (f->walk.at < d->ncells) {
        coded_apply(cell_at(d, f->walk.at), words, r->nwords, f->h,
                    -found_sign(f));
        queue_cell(q, cell_at(d, f->walk.at), f->walk.at);
        coded_step(&f->walk, r->hashes, d->cells_of_table);
    }
}

/* Those that were found, from one to another. */
static void take_out(bly_differ *d, differ_queue *q, uint64_t from, uint64_t to)
{
    differ_found *const all = d->found.at;
    while (from < to) {
        const unsigned n =
            to - from < DIFFER_GROUP ? (unsigned)(to - from) : DIFFER_GROUP;
        for (unsigned i = 0; d->rules.hashes && i < n; i++)
            take_out_table(d, q, &all[from + i]);
        if (!d->rules.hashes && d->rules.nwords == 1)
            take_out_group(d, q, &all[from], n, 1);
        else if (!d->rules.hashes)
            take_out_group(d, q, &all[from], n, d->rules.nwords);
        from += n;
    }
}

/* Put the element of these words to what was found. False if there are more
 * elements than cells. */
static bool find(bly_differ *d, const uint64_t *words, uint64_t h, int64_t sign)
{
    const coded_rules *const r = &d->rules;
    if (d->nfound == d->ncells)
        return false;
    differ_found *const f = (differ_found *)d->found.at + d->nfound++;
    *f = (differ_found){
        .walk = coded_first(r->hashes, d->cells_of_table, h),
        .h = h,
        .at = 2 * d->nside[sign > 0 ? BLY_THEIRS : BLY_MINE]++ + (sign > 0),
    };
    memcpy(found_bytes(d, f), words, r->width);
    return true;
}

/* Is check that of the element? */
static bool element_checks(const coded_rules *r, const uint64_t *words,
                           uint64_t check, uint64_t *h)
{
    *h = bly_hash(&r->hasher, words, r->width);
    return !((*h ^ check) & r->checked);
}

/* Cells that wait, and those that wait after them. Elements that are alone in
 * some of them are found, and taken out together. False if the cells are of no
 * set. */
static bool empty_queue(bly_differ *d, differ_queue *q)
{
    while (q->n) {
        const differ_found *const all = d->found.at;
        const uint64_t before = d->nfound;
        uint64_t own[DIFFER_GROUP];
        /* Those of this group, by the low bits of their hashes: the last one
         * that has them, and the one before each; from 1 on. */
        unsigned char last[256] = { 0 }, earlier[DIFFER_GROUP];
        unsigned n = 0;
        while (q->n && n < DIFFER_GROUP) {
            const uint64_t i = q->at[--q->n];
            uint64_t *const cell = cell_at(d, i);
            uint64_t h;
            cell[CODED_MARK] = 0;
            if (!cell_single(cell) ||
                !element_checks(&d->rules, cell + CODED_SUM, cell[1], &h))
                continue;
            /* Alone in two cells that wait, it is found once. */
            unsigned char *const slot = &last[h % sizeof last];
            unsigned known = *slot;
            while (known && all[before + known - 1].h != h)
                known = earlier[known - 1];
            if (known)
                continue;
            if (!find(d, cell + CODED_SUM, h, (int64_t)cell[0]))
                return false;
            earlier[n] = *slot;
            own[n++] = i;
            *slot = (unsigned char)n;
        }
        take_out(d, q, before, d->nfound);
        /* Its own cell is one of those it is taken out of: otherwise the bytes
         * are of no set, and it would be found for ever. */
        for (unsigned k = 0; k < n; k++)
            if (!cell_empty(d, own[k]))
                return false;
    }
    return true;
}

/* Do cells a and b, a before b, share all elements but one, which only one of
 * them has? Then it is found. False if the cells are of no set. */
static bool look_at_pair(bly_differ *d, differ_queue *q, uint64_t a, uint64_t b)
{
    const coded_rules *const r = &d->rules;
    const uint64_t *const x = cell_at(d, a), *const y = cell_at(d, b);
    uint64_t both[CODED_SUM + CODED_WORDS_MOST], h;
    both[0] = x[0] - y[0];
    if (!cell_single(both))
        return true;
    for (size_t w = 1; w < r->stride; w++)
        both[w] = x[w] ^ y[w];
    if (!element_checks(r, both + CODED_SUM, both[1], &h))
        return true;
    bool in_a = false, in_b = false;
    for (coded_walk w = coded_first(r->hashes, d->cells_of_table, h); w.at <= b;
         coded_step(&w, r->hashes, d->cells_of_table)) {
        in_a |= w.at == a;
        in_b |= w.at == b;
    }
    if (in_a == in_b)
        return true;
    const int64_t sign = in_a ? (int64_t)both[0] : -(int64_t)both[0];
    if (!find(d, both + CODED_SUM, h, sign))
        return false;
    take_out(d, q, d->nfound - 1, d->nfound);
    return true;
}

/* All that follows from the cells. False if they are of no set. */
static bool decode_all(bly_differ *d, differ_queue *q)
{
    if (!empty_queue(d, q))
        return false;
    if (d->rules.hashes || d->ncells > DIFFER_PAIRS)
        return true;
    for (uint64_t b = 1; b < d->ncells; b++)
        for (uint64_t a = 0; a < b; a++) {
            const uint64_t before = d->nfound;
            if (!look_at_pair(d, q, a, b) || !empty_queue(d, q))
                return false;
            if (d->nfound != before) { /* again, from the first pair on */
                b = 0;
                break;
            }
        }
    return true;
}

static bly_status differ_decode(bly_differ *d, uint64_t first)
{
    differ_queue q = { .at = d->waiting.at };
    cell_at(d, d->ncells)[CODED_MARK] = 1;
    take_out(d, &q, 0, d->nfound);
    for (uint64_t i = first; i < d->ncells; i++)
        queue_cell(&q, cell_at(d, i), i);
    if (!decode_all(d, &q)) {
        while (q.n)
            cell_at(d, q.at[--q.n])[CODED_MARK] = 0;
        d->broken = true;
        return bly_fail(BLY_EFORMAT,
                        "these symbols are of no set: an element is not "
                        "where it belongs");
    }
    if (!d->rules.hashes && !cell_empty(d, 0))
        return BLY_OK;
    /* In a table, cells that have not come may hold more. */
    bool empty = !d->rules.hashes || d->ncells == d->cells_of_table;
    for (uint64_t i = 0; empty && i < d->ncells; i++)
        empty = cell_empty(d, i);
    d->done = empty;
    return BLY_OK;
}

/* Room for what n cells in all can give. */
static bool differ_reserve(bly_differ *d, uint64_t n)
{
    const bly_mem *const mem = &d->rules.mem;
    const size_t room = (size_t)n;
    return n <= SIZE_MAX / 1024 && array_reserve(mem, &d->cells, room + 1) &&
           array_reserve(mem, &d->found, room) &&
           array_reserve(mem, &d->side[0], room) &&
           array_reserve(mem, &d->side[1], room) &&
           array_reserve(mem, &d->waiting, room);
}

bly_status bly_differ_take(bly_differ *d, const bly_coded *mine,
                           const void *bytes, size_t nbytes)
{
    coded_bytes b;
    if (!d)
        return bly_fail_null("d");
    if (!mine)
        return bly_fail_null("mine");
    if (!bytes)
        return bly_fail_null("bytes");
    const coded_rules *const r = &d->rules;
    if (!bly_coded_alike(r, &mine->rules))
        return bly_fail(BLY_EUNFIT, "the symbols of this side were made with "
                                    "another width, secret, check or table");
    if (d->broken)
        return bly_fail(BLY_EFORMAT, "symbols of no set came before");
    if (!bly_coded_head(r, bytes, nbytes, &b))
        return bly_fail(BLY_EFORMAT, "not symbols of a set, or cut off");
    if (b.from != d->ncells)
        return bly_fail(BLY_EUNFIT,
                        "symbols from %llu on came, those from %llu on are "
                        "next",
                        (unsigned long long)b.from,
                        (unsigned long long)d->ncells);
    if (b.from < mine->from || b.to > mine->to ||
        (r->hashes && b.cells != mine->to))
        return bly_fail(BLY_EUNFIT,
                        "symbols %llu to %llu came, this side has made %llu to "
                        "%llu",
                        (unsigned long long)b.from, (unsigned long long)b.to,
                        (unsigned long long)mine->from,
                        (unsigned long long)mine->to);
    if (!differ_reserve(d, b.to))
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (uint64_t i = b.from; i < b.to; i++) {
        uint64_t *const cell = cell_at(d, i);
        const uint64_t *const own = mine->cells + (i - mine->from) * r->stride;
        if (!bly_coded_read(r, &b, i, cell))
            return bly_fail(BLY_EFORMAT, "symbol %llu is cut off",
                            (unsigned long long)i);
        cell[0] -= own[0];
        cell[1] ^= own[1];
        cell[CODED_MARK] = 0;
        for (size_t w = CODED_SUM; w < r->stride; w++)
            cell[w] ^= own[w];
    }
    if (b.at != b.end)
        return bly_fail(BLY_EFORMAT, "%llu bytes follow the last symbol",
                        (unsigned long long)(b.end - b.at));
    d->ncells = b.to;
    d->cells_of_table = b.cells;
    d->done = false;
    return differ_decode(d, b.from);
}

bool bly_differ_done(const bly_differ *d)
{
    return d && d->done;
}

uint64_t bly_differ_symbols(const bly_differ *d)
{
    return d ? d->ncells : 0;
}

size_t bly_differ_elements(const bly_differ *d, bly_side side,
                           const void **elements)
{
    const bool known = d && (side == BLY_MINE || side == BLY_THEIRS);
    if (elements)
        *elements = known ? d->side[side].at : NULL;
    return known ? d->nside[side] : 0;
}

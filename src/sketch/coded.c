/*
 * coded.c - coded symbols of sets, with or without end
 *
 * An element of a set is in some of the cells, which its hash tells; a cell
 * has the number of its elements, their XOR, and the XOR of their hashes. Two
 * sets' cells, one taken from the other, hold what the sets do not share, and
 * differ.c finds it.
 *
 *     cell            0      1      2      3      4      5  ...
 *     an element      x      .      x      .      .      x
 *     with chance     1    .49    .40    .33    .28    .25
 *
 * Without end [1]: cell i has an element with probability of some 2 / (i +
 * 3), so that for any number d of differences some of the first 1.35 d cells
 * hold one alone, and the next ones are for larger d. In a table [2] an element
 * has one cell in each of 3 to 8 parts.
 *
 * Speed. An element has some 2 ln(m) of the first m cells, 13 of 1,400, and
 * finding the next takes a division and a square root, which wait for the one
 * before. So many elements are walked side by side, a step of each in turn.
 *
 * As bytes, numbers of 7 bits each, low ones first (v):
 *
 *     v from, v to - from, v items; of a table v cells in front
 *     for each cell: sum (width bytes), check (8, or its low 4), v count less
 *     what is expected for so many items (zigzag: 0 -1 1 -2 2 ...)
 *
 * [1] Yang, Gilad and Alizadeh, Practical Rateless Set Reconciliation, 2024
 * [2] Goodrich and Mitzenmacher, Invertible Bloom Lookup Tables, 2011
 */
#include "core/hash.h"
#include "core/status.h"
#include "core/varint.h"
#include "engine/hash_many.h"
#include "sketch/coded.h"

/* Elements that are put in at once: what they need fits the first cache. */
#define CODED_GROUP 512
#define CODED_SEED                                             \
    UINT64_C(0x636f646564) /* apart from the hashes of filters \
                            */

bly_status bly_coded_rules(const bly_coding *how, coded_rules *out)
{
    if (!how)
        return bly_fail_null("how");
    const size_t width = how->width ? how->width : BLY_CODED_LEAST;
    if (width < BLY_CODED_LEAST || width > BLY_CODED_MOST)
        return bly_fail(BLY_EINVAL,
                        "elements of %llu bytes cannot be coded: %d to %d; "
                        "longer ones go by their hashes",
                        (unsigned long long)width, BLY_CODED_LEAST,
                        BLY_CODED_MOST);
    if (how->hashes && (how->hashes < 3 || how->hashes > 8))
        return bly_fail(BLY_EINVAL,
                        "a table has 3 to 8 cells for an element, not %u",
                        how->hashes);
    if (how->check && how->check != 4 && how->check != 8)
        return bly_fail(BLY_EINVAL, "a checksum has 4 or 8 bytes, not %u",
                        how->check);
    *out = (coded_rules){
        .mem = how->mem ? *how->mem : bly_mem_system,
        .hasher = { .id = BLY_HASH_XXH3, .seed = CODED_SEED },
        .width = width,
        .nwords = (width + 7) / 8,
        .stride = CODED_SUM + (width + 7) / 8,
        .hashes = how->hashes,
        .ncheck = how->check ? how->check : 8,
        .checked = how->check == 4 ? UINT32_MAX : UINT64_MAX,
    };
    if (how->secret) {
        out->hasher = (bly_hasher){ .id = BLY_HASH_SIPHASH13 };
        bly_secret_words(how->secret, out->hasher.secret);
    }
    return BLY_OK;
}

bool bly_coded_alike(const coded_rules *a, const coded_rules *b)
{
    return a->width == b->width && a->hashes == b->hashes &&
           a->checked == b->checked && a->hasher.id == b->hasher.id &&
           a->hasher.secret[0] == b->hasher.secret[0] &&
           a->hasher.secret[1] == b->hasher.secret[1];
}

void bly_coded_hashes(const coded_rules *r, const void *elements, size_t n,
                      uint64_t *h)
{
    const unsigned char *const at = elements;
    if (r->width == 8 && r->hasher.id == BLY_HASH_XXH3) { /* many at once */
        for (size_t i = 0; i < n; i++)
            h[i] = bly_load64(at + 8 * i);
        bly_ints_best()->hash(h, n, bly_int_flip(CODED_SEED), h);
        return;
    }
    for (size_t i = 0; i < n; i++)
        h[i] = bly_hash(&r->hasher, at + i * r->width, r->width);
}

/* ------------------------------------------------------------------- making */

bly_status bly_coded_new(const bly_coding *how, uint64_t from, uint64_t to,
                         bly_coded **out)
{
    coded_rules r;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    const bly_status st = bly_coded_rules(how, &r);
    if (st)
        return st;
    if (from >= to || to > BLY_CODED_MOST_SYMBOLS)
        return bly_fail(BLY_EINVAL,
                        "symbols %llu to %llu are none: they are numbered from "
                        "0 to %llu",
                        (unsigned long long)from, (unsigned long long)to,
                        (unsigned long long)BLY_CODED_MOST_SYMBOLS);
    if (r.hashes && (from || to < r.hashes))
        return bly_fail(BLY_EINVAL,
                        "a table starts with cell 0 and has at least %u cells",
                        r.hashes);
    if (to - from >= SIZE_MAX / 16 / r.stride)
        return bly_fail(BLY_ERANGE, "%llu symbols do not fit into memory",
                        (unsigned long long)(to - from));
    bly_coded *const c = bly_mem_zalloc(&r.mem, sizeof *c);
    if (!c)
        return bly_fail(BLY_ENOMEM, "out of memory");
    *c = (bly_coded){ .rules = r, .from = from, .to = to };
    if (bly_block_new(&r.mem, (to - from + 1) * r.stride * 8, &c->block)) {
        bly_coded_free(c);
        return bly_fail(BLY_ENOMEM, "out of memory");
    }
    c->cells = (uint64_t *)(void *)c->block.at;
    *out = c;
    return BLY_OK;
}

void bly_coded_free(bly_coded *c)
{
    if (!c)
        return;
    const bly_mem mem = c->rules.mem;
    if (c->block.at)
        bly_block_free(&mem, &c->block);
    bly_mem_release(&mem, c, sizeof *c);
}

/* Elements into the cells of a table, one after the other. */
static void coded_table(bly_coded *c, const uint64_t *elements,
                        const uint64_t *h, unsigned n, int64_t sign)
{
    const coded_rules *const r = &c->rules;
    for (unsigned i = 0; i < n; i++)
        for (coded_walk w = coded_first(r->hashes, c->to, h[i]);
             w.at != CODED_END; coded_step(&w, r->hashes, c->to))
            coded_apply(c->cells + w.at * r->stride, elements + i * r->nwords,
                        r->nwords, h[i], sign);
}

/* A group of elements into cells without end. nwords is a literal where this is
 * called for what most callers have. Cells that are not here are all one, which
 * stands behind the last: asking for each would be guessing. */
static inline __attribute__((always_inline)) void
coded_group(bly_coded *c, const uint64_t *elements, const uint64_t *h, size_t n,
            int64_t sign, size_t nwords)
{
    const bly_walks_row *const row = bly_walks_best();
    uint64_t *const cells = c->cells;
    const uint64_t from = c->from, ncells = c->to - c->from;
    const size_t stride = CODED_SUM + nwords;
    uint64_t s[CODED_GROUP + WALKS_ROOM];
    uint64_t all[CODED_WORDS_MOST] = { 0 }, check = 0;
    bly_walks w = { .first_s = s, .n = n, .to = c->to };
    /* All are in cell 0, where each would wait for the one before. */
    for (size_t i = 0; i < n; i++) {
        s[i] = coded_first(0, 0, h[i]).s;
        check ^= h[i];
        for (size_t k = 0; k < nwords; k++)
            all[k] ^= elements[i * nwords + k];
    }
    if (!from)
        coded_apply(cells, all, nwords, check, sign * (int64_t)n);
    walks_begin(&w);
    while (row->step(&w))
        for (size_t k = 0; k < WALKS_LANES; k++) {
            const uint64_t i = w.id[k], at = w.at[k] - from;
            coded_apply(cells + (at < ncells ? at : ncells) * stride,
                        elements + i * nwords, nwords, h[i], sign);
        }
}

static bly_status coded_change(bly_coded *c, const void *elements, size_t n,
                               int64_t sign)
{
    if (!c)
        return bly_fail_null("c");
    if (!elements && n)
        return bly_fail_null("elements");
    const coded_rules *const r = &c->rules;
    const unsigned char *in = elements;
    uint64_t words[CODED_GROUP * CODED_WORDS_MOST], h[CODED_GROUP];
    for (size_t left = n; left;) {
        const unsigned some = left < CODED_GROUP ? (unsigned)left : CODED_GROUP;
        bly_coded_hashes(r, in, some, h);
        for (unsigned i = 0; i < some; i++, in += r->width)
            coded_element(r, in, words + i * r->nwords);
        if (r->hashes)
            coded_table(c, words, h, some, sign);
        else if (r->nwords == 1)
            coded_group(c, words, h, some, sign, 1);
        else
            coded_group(c, words, h, some, sign, r->nwords);
        left -= some;
    }
    c->items += (uint64_t)sign * n;
    return BLY_OK;
}

bly_status bly_coded_add(bly_coded *c, const void *elements, size_t n)
{
    return coded_change(c, elements, n, 1);
}

bly_status bly_coded_remove(bly_coded *c, const void *elements, size_t n)
{
    return coded_change(c, elements, n, -1);
}

uint64_t bly_coded_items(const bly_coded *c)
{
    return c ? c->items : 0;
}

uint64_t bly_coded_from(const bly_coded *c)
{
    return c ? c->from : 0;
}

uint64_t bly_coded_to(const bly_coded *c)
{
    return c ? c->to : 0;
}

/* -------------------------------------------------------------------- bytes */

static bool get_number(coded_bytes *b, uint64_t *out)
{
    return bly_varint_read(&b->at, b->end, out);
}

size_t bly_coded_room(const bly_coded *c, uint64_t nsymbols)
{
    if (!c || nsymbols > c->to - c->from)
        return 0;
    return 4 * BLY_VARINT_MOST +
           (size_t)nsymbols * (c->rules.width + 8 + BLY_VARINT_MOST);
}

size_t bly_coded_write(const bly_coded *c, uint64_t from, uint64_t to,
                       void *bytes)
{
    if (!c || !bytes || from < c->from || to > c->to || from >= to)
        return 0;
    const coded_rules *const r = &c->rules;
    unsigned char *at = bytes;
    if (r->hashes)
        at = bly_varint_write(at, c->to);
    at = bly_varint_write(at, from);
    at = bly_varint_write(at, to - from);
    at = bly_varint_write(at, c->items);
    for (uint64_t i = from; i < to; i++) {
        const uint64_t *const cell = c->cells + (i - c->from) * r->stride;
        const uint64_t off =
            cell[0] - coded_expected(r->hashes, c->to, c->items, i);
        memcpy(at, cell + CODED_SUM, r->width);
        /* The low bytes first: the rest is written over. */
        bly_store64(at + r->width, cell[1]);
        at = bly_varint_write(at + r->width + r->ncheck,
                              off << 1 ^ -(off >> 63));
    }
    return (size_t)(at - (unsigned char *)bytes);
}

bool bly_coded_head(const coded_rules *r, const void *bytes, size_t nbytes,
                    coded_bytes *out)
{
    uint64_t n;
    *out = (coded_bytes){ .at = bytes,
                          .end = (const unsigned char *)bytes + nbytes };
    if (r->hashes && !get_number(out, &out->cells))
        return false;
    if (!get_number(out, &out->from) || !get_number(out, &n) ||
        !get_number(out, &out->items))
        return false;
    /* Each has this many bytes at least: what is said is bounded by what came.
     */
    if (!n || n > (size_t)(out->end - out->at) / (r->width + r->ncheck + 1) ||
        out->from > BLY_CODED_MOST_SYMBOLS - n)
        return false;
    out->to = out->from + n;
    return !r->hashes || (out->cells <= BLY_CODED_MOST_SYMBOLS &&
                          out->cells >= r->hashes && out->to <= out->cells);
}

bool bly_coded_read(const coded_rules *r, coded_bytes *b, uint64_t i,
                    uint64_t *cell)
{
    uint64_t off;
    if ((size_t)(b->end - b->at) < r->width + r->ncheck + 1)
        return false;
    coded_element(r, b->at, cell + CODED_SUM);
    b->at += r->width;
    cell[1] = r->ncheck == 8 ? bly_load64(b->at) : bly_load32(b->at);
    b->at += r->ncheck;
    if (!get_number(b, &off))
        return false;
    off = off >> 1 ^ -(off & 1);
    cell[0] = off + coded_expected(r->hashes, b->cells, b->items, i);
    return true;
}

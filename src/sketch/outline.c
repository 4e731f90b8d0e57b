/*
 * outline.c - most of what the other side lacks, from two filters of its set
 *
 * Sorted hashes are the leaves of a binary tree: a node is all elements that
 * begin with the same bits, and only nodes count that have elements in both
 * halves, n - 1 of them for n elements. A leaf's value is a hash of its
 * element, a node's the XOR of the leaves below it; so equal branches have
 * equal values, whatever else the two sets have.
 *
 *            [0..5)              node = a range of the sorted array; it is
 *           /      \             split where its highest bit that differs
 *       [0..2)    [2..5)         changes, and its value is the XOR of two
 *       /    \    /    \         entries of a table of running XORs
 *      0      1  2    [3..5)
 *
 * So there is no tree in memory: a range, found by halving, is a node.
 *
 * The outline is a Bloom filter of the leaves and one of the inner nodes [1].
 * The other side walks its own tree. A node that is in the filter of inner
 * nodes is probably one that both have; after correction + 1 of these in a
 * row on a path, the branch is left. A leaf that is not in the filter of leaves
 * is lacking there, for certain. Without inner nodes it asks for every leaf.
 *
 * Ten thousand elements of which 100 differ, 8 bits for each in all: 97.8 % are
 * found by the filter alone, 64 % by a tree with 4 and 4 bits and correction
 * 1, which looks at a tenth of the nodes.
 *
 * As bytes, little-endian:
 *
 *     "blyo", u8 k of leaves, u8 k of inner nodes, u16 0, u64 elements, u64
 * bits of leaves, u64 bits of inner nodes, then both filters in words of 64
 *     bits, each filled up with zeros
 *
 * [1] Byers, Considine, Mitzenmacher and Rost, Informed Content Delivery Across
 *     Adaptive Overlay Networks, 2002
 */
#include <math.h>

#include "core/memory.h"
#include "core/sort.h"
#include "core/status.h"
#include "sketch/coded.h"

#define OUTLINE_HEAD 32
#define OUTLINE_MAGIC UINT32_C(0x6f796c62) /* "blyo" */
#define OUTLINE_BITS 64 /* per element, at most; k is 44 then */
#define OUTLINE_K 44

typedef struct outline_bits {
    uint64_t nbits;
    unsigned k;
    uint64_t *words;
} outline_bits;

struct bly_outline {
    bly_mem mem;
    uint64_t items;
    outline_bits leaves, inner;
};

static uint64_t words_of(uint64_t nbits)
{
    return nbits / 64 + (nbits % 64 != 0);
}

static size_t outline_size(uint64_t leaf_bits, uint64_t inner_bits)
{
    return sizeof(bly_outline) +
           (size_t)(words_of(leaf_bits) + words_of(inner_bits)) * 8;
}

/* ------------------------------------------------------------------ filters */

/* Two hashes of a value that is one already. */
static uint64_t bits_place(const outline_bits *b, uint64_t value, unsigned i)
{
    const uint64_t step = bly_mix64(value + CODED_PHI) | 1;
    return bly_scale(bly_mix64(value) + i * step, b->nbits);
}

static void bits_set(outline_bits *b, uint64_t value)
{
    for (unsigned i = 0; i < b->k; i++) {
        const uint64_t at = bits_place(b, value, i);
        b->words[at / 64] |= UINT64_C(1) << at % 64;
    }
}

static bool bits_have(const outline_bits *b, uint64_t value)
{
    for (unsigned i = 0; i < b->k; i++) {
        const uint64_t at = bits_place(b, value, i);
        if (!(b->words[at / 64] >> at % 64 & 1))
            return false;
    }
    return true;
}

/* --------------------------------------------------------------------- tree */

/* The tree of some elements. */
typedef struct outline_tree {
    const uint64_t *at;
    uint64_t *sums; /* sums[i]: XOR of the values of the first i */
    size_t n;
} outline_tree;

static uint64_t leaf_value(uint64_t element)
{
    return bly_mix64(element ^ CODED_PHI);
}

static bly_status tree_make(const bly_mem *mem, const uint64_t *elements,
                            size_t n, outline_tree *out)
{
    *out = (outline_tree){ elements, NULL, n };
    for (size_t i = 1; i < n; i++)
        if (elements[i - 1] >= elements[i])
            return bly_fail(BLY_EINVAL, "the elements are not sorted and "
                                        "different: bly_elements_sort()");
    if (n > SIZE_MAX / 16)
        return bly_fail(BLY_ERANGE, "too many elements");
    out->sums = bly_mem_zalloc(mem, (n + 1) * sizeof *out->sums);
    if (!out->sums)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        out->sums[i + 1] = out->sums[i] ^ leaf_value(elements[i]);
    return BLY_OK;
}

static void tree_free(const bly_mem *mem, outline_tree *t)
{
    if (t->sums)
        bly_mem_release(mem, t->sums, (t->n + 1) * sizeof *t->sums);
}

static uint64_t node_value(const outline_tree *t, size_t from, size_t to)
{
    return t->sums[to] ^ t->sums[from];
}

/* Where the second half of a node begins: at the first element that has the
 * highest bit in which any two differ. */
static size_t node_split(const outline_tree *t, size_t from, size_t to)
{
    const uint64_t differ = t->at[from] ^ t->at[to - 1];
    const uint64_t bit = UINT64_C(1) << (63 - __builtin_clzll(differ));
    size_t low = from, high = to - 1; /* low is in the first half, high not */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (t->at[middle] & bit)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Each split uses up a bit, so a path has 64 nodes at most. */
static void set_inner(bly_outline *o, const outline_tree *t, size_t from,
                      size_t to)
{
    if (to - from < 2)
        return;
    const size_t half = node_split(t, from, to);
    bits_set(&o->inner, node_value(t, from, to));
    set_inner(o, t, from, half);
    set_inner(o, t, half, to);
}

/* ------------------------------------------------------------------- making */

bly_status bly_elements_sort(uint64_t *elements, size_t *n)
{
    if (!n)
        return bly_fail_null("n");
    if (!elements && *n)
        return bly_fail_null("elements");
    return *n ? bly_hashes_unique(elements, NULL, n) : BLY_OK;
}

static unsigned best_k(double bits)
{
    const double k = round(bits * 0.69314718055994531);
    return k < 1 ? 1 : k > OUTLINE_K ? OUTLINE_K : (unsigned)k;
}

/* Room for filters of these sizes, all zero. */
static bly_status outline_room(const bly_mem *mem, uint64_t items,
                               outline_bits leaves, outline_bits inner,
                               bly_outline **out)
{
    bly_outline *const o =
        bly_mem_zalloc(mem, outline_size(leaves.nbits, inner.nbits));
    if (!o)
        return bly_fail(BLY_ENOMEM, "out of memory");
    *o = (bly_outline){
        .mem = *mem, .items = items, .leaves = leaves, .inner = inner
    };
    o->leaves.words = (uint64_t *)(o + 1);
    o->inner.words = o->leaves.words + words_of(leaves.nbits);
    *out = o;
    return BLY_OK;
}

bly_status bly_outline_new(const bly_outline_spec *spec,
                           const uint64_t *elements, size_t n,
                           bly_outline **out)
{
    static const bly_outline_spec usual = { 0 };
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!elements && n)
        return bly_fail_null("elements");
    spec = spec ? spec : &usual;
    const double leaf = spec->leaf_bits != 0 ? spec->leaf_bits : 8;
    const double inner = spec->inner_bits;
    if (!(leaf >= 1 && leaf <= OUTLINE_BITS) ||
        !(inner >= 0 && inner <= OUTLINE_BITS))
        return bly_fail(BLY_EINVAL,
                        "an outline has 1 to %d bits per element for leaves, "
                        "and 0 to %d for inner nodes",
                        OUTLINE_BITS, OUTLINE_BITS);
    if (n > (SIZE_MAX >> 9))
        return bly_fail(BLY_ERANGE, "too many elements");
    const bly_mem mem = spec->mem ? *spec->mem : bly_mem_system;
    outline_tree tree;
    bly_status st = tree_make(&mem, elements, n, &tree);
    bly_outline *o = NULL;
    if (!st)
        st = outline_room(
            &mem, n,
            (outline_bits){ .nbits = 64 + (uint64_t)(leaf * (double)n),
                            .k = best_k(leaf) },
            (outline_bits){
                .nbits = inner > 0 ? 64 + (uint64_t)(inner * (double)n) : 0,
                .k = inner > 0 ? best_k(inner) : 0 },
            &o);
    if (!st) {
        for (size_t i = 0; i < n; i++)
            bits_set(&o->leaves, leaf_value(elements[i]));
        if (o->inner.k)
            set_inner(o, &tree, 0, n);
    }
    tree_free(&mem, &tree);
    *out = o;
    return st;
}

void bly_outline_free(bly_outline *o)
{
    if (!o)
        return;
    const bly_mem mem = o->mem;
    bly_mem_release(&mem, o, outline_size(o->leaves.nbits, o->inner.nbits));
}

/* -------------------------------------------------------------------- bytes */

size_t bly_outline_written_bytes(const bly_outline *o)
{
    return o ? OUTLINE_HEAD + (size_t)(words_of(o->leaves.nbits) +
                                       words_of(o->inner.nbits)) *
                                  8
             : 0;
}

void bly_outline_write(const bly_outline *o, void *bytes)
{
    unsigned char *at = bytes;
    if (!o || !bytes)
        return;
    bly_store32(at, OUTLINE_MAGIC);
    at[4] = (unsigned char)o->leaves.k;
    at[5] = (unsigned char)o->inner.k;
    at[6] = at[7] = 0;
    bly_store64(at + 8, o->items);
    bly_store64(at + 16, o->leaves.nbits);
    bly_store64(at + 24, o->inner.nbits);
    at += OUTLINE_HEAD;
    const uint64_t n = words_of(o->leaves.nbits) + words_of(o->inner.nbits);
    for (uint64_t i = 0; i < n; i++)
        bly_store64(at + i * 8, o->leaves.words[i]);
}

bly_status bly_outline_load(const void *bytes, size_t nbytes,
                            const bly_mem *mem, bly_outline **out)
{
    const unsigned char *const at = bytes;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!bytes)
        return bly_fail_null("bytes");
    if (nbytes < OUTLINE_HEAD || bly_load32(at) != OUTLINE_MAGIC)
        return bly_fail(BLY_EFORMAT, "not an outline of a set, or cut off");
    outline_bits leaves = { .nbits = bly_load64(at + 16), .k = at[4] };
    outline_bits inner = { .nbits = bly_load64(at + 24), .k = at[5] };
    const uint64_t nwords = (nbytes - OUTLINE_HEAD) / 8;
    /* What it says of its size is bounded by what came. */
    if (nbytes % 8 || leaves.nbits > nwords * 64 || inner.nbits > nwords * 64 ||
        words_of(leaves.nbits) + words_of(inner.nbits) != nwords ||
        !leaves.nbits || !leaves.k || leaves.k > OUTLINE_K ||
        inner.k > OUTLINE_K || !inner.k != !inner.nbits || at[6] || at[7])
        return bly_fail(BLY_EFORMAT,
                        "an outline whose sizes do not fit its bytes");
    const bly_mem from = mem ? *mem : bly_mem_system;
    const bly_status st =
        outline_room(&from, bly_load64(at + 8), leaves, inner, out);
    for (uint64_t i = 0; !st && i < nwords; i++)
        (*out)->leaves.words[i] = bly_load64(at + OUTLINE_HEAD + i * 8);
    return st;
}

/* ------------------------------------------------------------------- asking */

typedef struct outline_walk {
    const bly_outline *theirs;
    const outline_tree *tree;
    unsigned correction;
    uint64_t *lacking;
    size_t nlacking;
    uint64_t visited;
} outline_walk;

/* A node below `matches` that were in the filter, one below the other. */
static void walk_node(outline_walk *w, size_t from, size_t to, unsigned matches)
{
    const outline_tree *const t = w->tree;
    w->visited++;
    if (to - from == 1) {
        if (!bits_have(&w->theirs->leaves, node_value(t, from, to)))
            w->lacking[w->nlacking++] = t->at[from];
        return;
    }
    if (w->theirs->inner.k) {
        matches = bits_have(&w->theirs->inner, node_value(t, from, to))
                      ? matches + 1
                      : 0;
        if (matches > w->correction)
            return;
    }
    const size_t half = node_split(t, from, to);
    walk_node(w, from, half, matches);
    walk_node(w, half, to, matches);
}

bly_status bly_outline_lacking(const bly_outline *theirs,
                               const uint64_t *elements, size_t n,
                               unsigned correction, uint64_t *lacking,
                               size_t *nlacking, uint64_t *visited)
{
    outline_tree tree;
    if (!theirs)
        return bly_fail_null("theirs");
    if (!nlacking)
        return bly_fail_null("nlacking");
    if ((!elements || !lacking) && n)
        return bly_fail_null(elements ? "lacking" : "elements");
    *nlacking = 0;
    const bly_status st = tree_make(&theirs->mem, elements, n, &tree);
    outline_walk w = { theirs, &tree, correction, lacking, 0, 0 };
    if (!st && n)
        walk_node(&w, 0, n, 0);
    tree_free(&theirs->mem, &tree);
    *nlacking = w.nlacking;
    if (visited)
        *visited = w.visited;
    return st;
}

/*
 * sorted.c - a set of integers that is exact, in few bits each
 *
 * n integers below M = 2^width, sorted, as gaps in Rice's code (rice.c):
 *
 *     3 9 10 200      gaps   3 5 0 189      (less one, but for the first)
 *
 * With M/n = 4295, as for a million prefixes of 32 bits, the parameter is 11 or
 * 12 and a gap takes 13.6 bits, where log2 C(M, n)/n = 13.5 is the least that
 * any form takes.
 *
 * Asking needs a place to begin reading: every 32nd integer has one, 16 bytes.
 * The upper bits of an integer are the number of a slot, 4 bytes, which says
 * where its places begin; there are about as many slots as places, so that one
 * or two are compared. (Only in a set whose integers crowd together is that a
 * search.) Slots and places are made when a set is made or loaded, from a walk
 * over the whole stream that also checks it, and are not in the file:
 *
 *     0   "blysor" 0 1
 *     8   u64  n
 *     16  u64  bytes of the stream
 *     24  u8   width; u8 the parameter b; u16 bytes of the note; u32 zero
 *     32  the note, the stream
 *         u64  XXH3 of all that
 */
#include <string.h>

#include <bloomery/sorted.h>

#include "codec/rice.h"
#include "codec/rice_bits.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/sort.h"
#include "core/status.h"

#define SORTED_HEAD 32
#define SORTED_SUM sizeof(uint64_t)
#define SORTED_STEP 32 /* integers from one place to the next */

static const unsigned char sorted_magic[8] = { 'b', 'l', 'y', 's',
                                               'o', 'r', 0,   1 };

/* Where some integers begin: the least that the first of them can be, and its
 * bit in the stream. */
typedef struct sorted_place {
    uint64_t least, bit;
} sorted_place;

struct bly_sorted {
    bly_mem mem;
    uint64_t n;
    unsigned width, b;
    size_t nimage;        /* bytes of the file */
    unsigned char *image; /* behind this struct, places behind it */
    sorted_place *places;
    size_t nplaces;
    uint32_t *slots; /* behind the places: how many begin below each slot */
    unsigned shift;  /* of an integer, to the number of its slot */
    const unsigned char *stream;
    size_t nstream;
};

static uint64_t largest(unsigned width)
{
    return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static size_t places_for(uint64_t n)
{
    return (size_t)((n + SORTED_STEP - 1) / SORTED_STEP);
}

/* Bits of the number of a slot. */
static unsigned slot_bits(size_t nplaces, unsigned width)
{
    const unsigned bits = nplaces ? 63 - (unsigned)__builtin_clzll(nplaces) : 0;
    return bits < width ? bits : width;
}

/* The image is kept at a multiple of eight bytes, and places and slots behind
 * it. */
static size_t sorted_bytes(size_t nimage, size_t nplaces, unsigned width)
{
    return sizeof(bly_sorted) + (nimage + 7) / 8 * 8 +
           nplaces * sizeof(sorted_place) +
           (((size_t)1 << slot_bits(nplaces, width)) + 1) * sizeof(uint32_t);
}

static bly_status sorted_make(const bly_mem *mem, size_t nimage, uint64_t n,
                              unsigned width, bly_sorted **out)
{
    if (!mem)
        mem = &bly_mem_system;
    const size_t nplaces = places_for(n);
    if (nplaces >= UINT32_MAX)
        return bly_fail(BLY_ERANGE, "a sorted set of more than 2^37 integers");
    bly_sorted *const s =
        bly_mem_zalloc(mem, sorted_bytes(nimage, nplaces, width));
    if (!s)
        return bly_fail(BLY_ENOMEM, "out of memory");
    s->mem = *mem;
    s->n = n;
    s->width = width;
    s->nimage = nimage;
    s->nplaces = nplaces;
    s->shift = width - slot_bits(nplaces, width);
    s->image = (unsigned char *)(s + 1);
    s->places = (sorted_place *)(void *)(s->image + (nimage + 7) / 8 * 8);
    s->slots = (uint32_t *)(void *)(s->places + nplaces);
    *out = s;
    return BLY_OK;
}

void bly_sorted_free(bly_sorted *s)
{
    if (!s)
        return;
    const bly_mem mem = s->mem;
    bly_mem_release(&mem, s, sorted_bytes(s->nimage, s->nplaces, s->width));
}

/* Read the stream from end to end, and keep a place every now and then. False
 * if it is not what n, width and b say. */
static bool sorted_walk(bly_sorted *s)
{
    const uint64_t most = largest(s->width);
    bit_source from = { .bytes = s->stream,
                        .n = s->nstream,
                        .end = 8 * (uint64_t)s->nstream };
    uint64_t next = 0;
    bool full = false; /* the largest integer came: no other can follow */
    for (uint64_t i = 0; i < s->n; i++) {
        uint64_t gap;
        if (i % SORTED_STEP == 0)
            s->places[i / SORTED_STEP] = (sorted_place){ next, from.at };
        if (full || !source_gap(&from, most - next, s->b, &gap))
            return false;
        full = next + gap == most;
        next += gap + 1;
    }
    return source_ends(&from) && (from.at + 7) / 8 == s->nstream;
}

/* The number of a slot. A shift by 64 is none: then there is one slot. */
static size_t sorted_slot(const bly_sorted *s, uint64_t value)
{
    return s->shift < 64 ? (size_t)(value >> s->shift) : 0;
}

/* Slot i: how many places begin below it. */
static void sorted_index(bly_sorted *s)
{
    size_t slot = 0;
    for (size_t i = 0; i < s->nplaces; i++)
        for (; slot <= sorted_slot(s, s->places[i].least); slot++)
            s->slots[slot] = (uint32_t)i;
    for (; slot <= (size_t)1 << slot_bits(s->nplaces, s->width); slot++)
        s->slots[slot] = (uint32_t)s->nplaces;
}

/* ------------------------------------------------------------------- making */

/* The parameter, and the bits that a stream takes with it. */
static unsigned sorted_parameter(const uint64_t *values, size_t n,
                                 unsigned width, uint64_t *nbits)
{
    uint64_t low = 0, high = 0, next = 0;
    *nbits = 0;
    if (!n)
        return 0;
    unsigned b = bly_rice_parameter(largest(width), n);
    if (b >= BLY_RICE_MAX_B)
        b = BLY_RICE_MAX_B - 1;
    for (size_t i = 0; i < n; i++) {
        low += (values[i] - next) >> b;
        high += (values[i] - next) >> (b + 1);
        next = values[i] + 1;
    }
    low += n * (uint64_t)(b + 1);
    high += n * (uint64_t)(b + 2);
    *nbits = low <= high ? low : high;
    return low <= high ? b : b + 1;
}

bly_status bly_sorted_new(uint64_t *values, size_t n, unsigned width,
                          const char *note, const bly_mem *mem,
                          bly_sorted **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!values && n)
        return bly_fail_null("values");
    if (width < 1 || width > 64)
        return bly_fail(BLY_EINVAL, "integers of %u bits; 1 to 64 are right",
                        width);
    const size_t nnote = note ? strlen(note) : 0;
    if (nnote > BLY_SORTED_NOTE_MOST)
        return bly_fail(BLY_EINVAL, "a note of %zu bytes; %d are the most",
                        nnote, BLY_SORTED_NOTE_MOST);
    for (size_t i = 0; i < n; i++)
        if (values[i] > largest(width))
            return bly_fail(BLY_EINVAL, "%llu does not fit in %u bits",
                            (unsigned long long)values[i], width);
    if (n)
        bly_hashes_unique(values, NULL, &n);
    uint64_t nbits;
    const unsigned b = sorted_parameter(values, n, width, &nbits);
    const size_t nstream = (size_t)((nbits + 7) / 8);
    bly_sorted *s;
    const bly_status st = sorted_make(
        mem, SORTED_HEAD + nnote + nstream + SORTED_SUM, n, width, &s);
    if (st)
        return st;
    s->b = b;
    s->nstream = nstream;
    s->stream = s->image + SORTED_HEAD + nnote;
    memcpy(s->image, sorted_magic, sizeof sorted_magic);
    bly_store64(s->image + 8, n);
    bly_store64(s->image + 16, nstream);
    bly_store64(s->image + 24, width | b << 8 | (uint64_t)nnote << 16);
    if (nnote)
        memcpy(s->image + SORTED_HEAD, note, nnote);
    bit_sink sink = { .at = s->image + SORTED_HEAD + nnote };
    uint64_t next = 0;
    for (size_t i = 0; i < n; i++) {
        sink_gap(&sink, values[i] - next, b);
        next = values[i] + 1;
    }
    sink_end(&sink);
    bly_store64(s->image + s->nimage - SORTED_SUM,
                bly_checksum(s->image, s->nimage - SORTED_SUM));
    (void)sorted_walk(s); /* for the places */
    sorted_index(s);
    *out = s;
    return BLY_OK;
}

bly_status bly_sorted_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                           bly_sorted **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!bytes && nbytes)
        return bly_fail_null("bytes");
    const unsigned char *const at = bytes;
    if (nbytes < SORTED_HEAD + SORTED_SUM ||
        memcmp(at, sorted_magic, sizeof sorted_magic) != 0)
        return bly_fail(BLY_EFORMAT, "not a sorted set");
    const size_t body = nbytes - SORTED_SUM;
    const uint64_t n = bly_load64(at + 8), nstream = bly_load64(at + 16);
    const size_t nnote = (size_t)(bly_load64(at + 24) >> 16 & 0xffff);
    if (at[24] < 1 || at[24] > 64 || at[25] > BLY_RICE_MAX_B ||
        bly_load64(at + 24) >> 32 || nnote > BLY_SORTED_NOTE_MOST ||
        nnote > body - SORTED_HEAD || nstream != body - SORTED_HEAD - nnote ||
        n > 8 * (uint64_t)nstream)
        return bly_fail(BLY_EFORMAT, "a damaged sorted set: its sizes");
    if (bly_load64(at + body) != bly_checksum(at, body))
        return bly_fail(BLY_EFORMAT, "a damaged sorted set: its checksum");
    bly_sorted *s;
    const bly_status st = sorted_make(mem, nbytes, n, at[24], &s);
    if (st)
        return st;
    memcpy(s->image, bytes, nbytes);
    s->b = s->image[25];
    s->stream = s->image + SORTED_HEAD + nnote;
    s->nstream = (size_t)nstream;
    if (!sorted_walk(s)) {
        bly_sorted_free(s);
        return bly_fail(BLY_EFORMAT, "a damaged sorted set: its integers");
    }
    sorted_index(s);
    *out = s;
    return BLY_OK;
}

size_t bly_sorted_written_bytes(const bly_sorted *s)
{
    return s->nimage;
}

void bly_sorted_write(const bly_sorted *s, void *bytes)
{
    memcpy(bytes, s->image, s->nimage);
}

/* ------------------------------------------------------------------- asking */

/* How many places begin at or below the value, which is in range. */
static size_t sorted_before(const bly_sorted *s, uint64_t value)
{
    const size_t slot = sorted_slot(s, value);
    size_t low = s->slots[slot], high = s->slots[slot + 1];
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->places[middle].least <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Is the value one of the integers from the last place before it on? The stream
 * was read from end to end when s was made, so here it is taken to be right: it
 * is followed by the checksum, and a word may be loaded from any of its
 * bytes. */
static bool sorted_find(const bly_sorted *s, uint64_t value, size_t before)
{
    if (!before)
        return false;
    const sorted_place *const place = &s->places[before - 1];
    const uint64_t left = s->n - (before - 1) * (uint64_t)SORTED_STEP;
    const unsigned b = s->b;
    const uint64_t low = b ? UINT64_MAX >> (64 - b) : 0;
    bit_source from = { .bytes = s->stream,
                        .n = s->nstream,
                        .at = place->bit,
                        .end = 8 * (uint64_t)s->nstream };
    uint64_t wanted = value - place->least; /* this gap is the one */
    for (uint64_t i = 0; i < left && i < SORTED_STEP; i++) {
        const uint64_t bits =
            bly_load64(from.bytes + from.at / 8) >> from.at % 8;
        const unsigned zeros = bits ? (unsigned)__builtin_ctzll(bits) : 64;
        uint64_t gap;
        if (zeros + 1 + b <= 57) { /* all in this word */
            gap = (uint64_t)zeros << b | (bits >> zeros >> 1 & low);
            from.at += zeros + 1 + b;
        } else if (!source_gap(&from, wanted, b, &gap)) {
            return false; /* past the value */
        }
        if (gap >= wanted)
            return gap == wanted;
        wanted -= gap + 1;
    }
    return false;
}

/* One question waits for memory three times: for a slot, a place and the
 * stream. Several wait together. */
#define SORTED_TOGETHER 32

static uint64_t sorted_some(const bly_sorted *s, const uint64_t *values,
                            size_t n)
{
    const uint64_t most = largest(s->width);
    size_t before[SORTED_TOGETHER];
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (values[i] <= most)
            __builtin_prefetch(&s->slots[sorted_slot(s, values[i])]);
    for (size_t i = 0; i < n; i++)
        if (values[i] <= most)
            __builtin_prefetch(&s->places[s->slots[sorted_slot(s, values[i])]]);
    for (size_t i = 0; i < n; i++) {
        before[i] = values[i] <= most ? sorted_before(s, values[i]) : 0;
        if (before[i])
            __builtin_prefetch(s->stream + s->places[before[i] - 1].bit / 8);
    }
    for (size_t i = 0; i < n; i++)
        found |= (uint64_t)sorted_find(s, values[i], before[i]) << i;
    return found;
}

void bly_sorted_has(const bly_sorted *s, const uint64_t *values, size_t n,
                    uint64_t *present)
{
    for (size_t w = 0; w < BLY_BITMAP_WORDS(n); w++)
        present[w] = 0;
    for (size_t i = 0; i < n; i += SORTED_TOGETHER) {
        const size_t some = n - i < SORTED_TOGETHER ? n - i : SORTED_TOGETHER;
        present[i / 64] |= sorted_some(s, values + i, some) << i % 64;
    }
}

uint64_t bly_sorted_items(const bly_sorted *s)
{
    return s->n;
}

unsigned bly_sorted_width(const bly_sorted *s)
{
    return s->width;
}

uint64_t bly_sorted_bits(const bly_sorted *s)
{
    return 8 * (uint64_t)s->nstream;
}

bly_bytes bly_sorted_note(const bly_sorted *s)
{
    return (bly_bytes){ s->image + SORTED_HEAD,
                        (size_t)(s->stream - s->image) - SORTED_HEAD };
}

/*
 * shingles.c - a text as a set of hashes: n words, or n characters, in a row
 *
 * A word is a run of ASCII letters and digits and of bytes from 0x80 on, upper
 * case folded in ASCII. These are bytes and not code points: there are no
 * tables, every language in UTF-8 works, and invalid UTF-8 needs no case of
 * its own. For scripts without blanks between words there are characters: bytes
 * of the words joined by single blanks.
 *
 *     text      The  quick, BROWN fox
 *     folded    the  quick  brown fox      separators are zeros
 *     mask      11100111110011111011 1     a bit a byte, 64 at a time
 *     joined    the quick brown fox        for characters
 *
 * With w_j the XXH3 of word j, or mix(byte + 1) for a character, the hash of
 * the shingle from unit i on rolls along [1]:
 *
 *     H_i = w_i C^(n-1) + w_(i+1) C^(n-2) + ... + w_(i+n-1)   mod 2^64
 *     H_(i+1) = H_i C + w_(i+n) - w_i C^n        x_i = mix(H_i)
 *
 * A text of fewer than n units has one shingle, of all of them; a text without
 * words has none. N different shingles have N^2 / 2^65 pairs of one hash: 2e-5
 * for thirty million.
 *
 * Three passes, each over what the cache still has: fold and find the words, 4
 * KiB of text at a time; hash them; roll, in place.
 *
 * [1] Karp and Rabin, Efficient randomized pattern-matching algorithms, 1987
 * [2] Broder, On the resemblance and containment of documents, 1997
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "engine/likeness.h"
#include "core/memory.h"
#include "core/sort.h"
#include "core/sized.h"
#include "core/status.h"
#include "sketch/sketches.h"

#define SHINGLE_C UINT64_C(0xd6e8feb86659fd93)

/* Blocks of text at a time: 4 KiB of it, which begin or end at most 4096 words'
 * ends, whose places fit 16 bits. */
#define CHUNK_BLOCKS 64
#define CHUNK_BYTES (CHUNK_BLOCKS * BLY_TEXT_BLOCK)

struct bly_shingler {
    bly_mem mem;
    bly_shingling how;
    uint64_t power;          /* C^size */
    uint64_t char_hash[256]; /* of BLY_CHARS */
    unsigned char *folded;
    size_t folded_room;
    uint64_t *hashes;
    size_t hashes_room; /* in hashes */
};

bly_status bly_shingling_check(bly_shingling *how)
{
    if (how->unit != BLY_WORDS && how->unit != BLY_CHARS)
        return bly_fail(BLY_EINVAL, "the unit of shingles is BLY_WORDS or "
                                    "BLY_CHARS");
    if (!how->size)
        how->size = how->unit == BLY_WORDS ? 5 : 10;
    if (how->size > BLY_MAX_SHINGLE)
        return bly_fail(BLY_EINVAL, "a shingle has 1 to %d units, not %u",
                        BLY_MAX_SHINGLE, how->size);
    return BLY_OK;
}

bly_status bly_shingler_new(const bly_shingling *how, const bly_mem *mem,
                            bly_shingler **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    bly_shingling checked = how ? *how : (bly_shingling){ 0 };
    const bly_status st = bly_shingling_check(&checked);
    if (st)
        return st;
    if (!mem)
        mem = &bly_mem_system;
    bly_shingler *s = bly_mem_zalloc(mem, sizeof *s);
    if (!s)
        return bly_fail(BLY_ENOMEM, "out of memory");
    s->mem = *mem;
    s->how = checked;
    s->power = 1;
    for (unsigned i = 0; i < checked.size; i++)
        s->power *= SHINGLE_C;
    for (unsigned c = 0; c < 256; c++)
        s->char_hash[c] = bly_shingle_mix(c + 1);
    *out = s;
    return BLY_OK;
}

void bly_shingler_free(bly_shingler *s)
{
    if (!s)
        return;
    const bly_mem mem = s->mem;
    bly_mem_release(&mem, s->folded, s->folded_room);
    bly_mem_release(&mem, s->hashes, s->hashes_room * sizeof *s->hashes);
    bly_mem_release(&mem, s, sizeof *s);
}

/* ------------------------------------------------------------------- room */

static bly_status room_failed(void)
{
    return bly_fail(BLY_ENOMEM, "out of memory for the shingles of a text");
}

/* Room for n folded bytes; what was there is lost. */
static bly_status fold_room(bly_shingler *s, size_t n)
{
    if (n <= s->folded_room)
        return BLY_OK;
    unsigned char *const now = s->mem.alloc(s->mem.ctx, n);
    if (!now)
        return room_failed();
    bly_mem_release(&s->mem, s->folded, s->folded_room);
    s->folded = now;
    s->folded_room = n;
    return BLY_OK;
}

/* Room for n hashes, of which the first `used` stay. */
static bly_status hash_room(bly_shingler *s, size_t used, size_t n)
{
    if (n <= s->hashes_room)
        return BLY_OK;
    const size_t most = SIZE_MAX / sizeof(uint64_t);
    size_t room = s->hashes_room < most / 2 ? 2 * s->hashes_room : most;
    room = room < n ? n : room;
    if (room > most)
        return room_failed();
    uint64_t *const now = s->mem.alloc(s->mem.ctx, room * sizeof *now);
    if (!now)
        return room_failed();
    if (used)
        memcpy(now, s->hashes, used * sizeof *now);
    bly_mem_release(&s->mem, s->hashes, s->hashes_room * sizeof *s->hashes);
    s->hashes = now;
    s->hashes_room = room;
    return BLY_OK;
}

/* ------------------------------------------------------------------ words */

static inline unsigned ones_in(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) +
        (x >> 2 & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(x * UINT64_C(0x0101010101010101) >> 56);
}

/* Where words begin and end, in turn, in up to CHUNK_BLOCKS masks; *inside says
 * whether the last byte before them was of a word. Eight are written at a time,
 * since how many there are is hard to foresee; behind the last one is garbage.
 */
static size_t find_edges(const uint64_t *masks, size_t nmasks, uint64_t *inside,
                         uint16_t *edges)
{
    const uint64_t top = UINT64_C(1)
                         << 63; /* there is always one to be found */
    size_t n = 0;
    for (size_t i = 0; i < nmasks; i++) {
        uint64_t edge = masks[i] ^ (masks[i] << 1 | *inside);
        const size_t base = i * BLY_TEXT_BLOCK;
        *inside = masks[i] >> 63;
        const size_t here = ones_in(edge);
        for (size_t j = 0; j < here; j += 8)
            for (size_t k = 0; k < 8; k++, edge &= edge - 1)
                edges[n + j + k] =
                    (uint16_t)(base + (unsigned)__builtin_ctzll(edge | top));
        n += here;
    }
    return n;
}

/* What is done with the words of a text, in their order. */
struct walk {
    bly_shingler *s;
    size_t nwords;
    size_t start; /* of the word that has begun and not yet ended */
    size_t njoined;
};

/* Join in place: what is joined is never longer than what it comes from. */
static inline void word_join(struct walk *w, size_t start, size_t len)
{
    if (w->nwords++)
        w->s->folded[w->njoined++] = ' ';
    memmove(w->s->folded + w->njoined, w->s->folded + start, len);
    w->njoined += len;
}

/* A word that begins in one chunk and ends in another. */
static void one_word(struct walk *w, size_t start, size_t len)
{
    if (w->s->how.unit == BLY_WORDS)
        w->s->hashes[w->nwords++] =
            bly_word_hash(w->s->folded + start, len, w->s->how.seed);
    else
        word_join(w, start, len);
}

/* The words that end in a chunk whose first byte is byte `base` of the text. */
static void walk_words(struct walk *w, const uint16_t *edges, size_t n,
                       size_t base, bool inside, const bly_likeness_row *row)
{
    const bool hashing = w->s->how.unit == BLY_WORDS;
    size_t i = 0;
    if (inside && n)
        one_word(w, w->start, base + edges[i++] - w->start);
    const size_t nwords = (n - i) / 2;
    if (hashing) {
        row->hashes(w->s->folded + base, edges + i, nwords, w->s->how.seed,
                    w->s->hashes + w->nwords);
        w->nwords += nwords;
        i += 2 * nwords;
    }
    for (; i + 1 < n; i += 2)
        word_join(w, base + edges[i], (size_t)(edges[i + 1] - edges[i]));
    if (i < n)
        w->start = base + edges[i];
}

/* Fold a text and hash or join its words. */
static bly_status walk_text(struct walk *w, const unsigned char *text, size_t n)
{
    const bly_likeness_row *const row = bly_likeness_best();
    const bool hashing = w->s->how.unit == BLY_WORDS;
    unsigned char tail[BLY_TEXT_BLOCK] = { 0 };
    uint64_t masks[CHUNK_BLOCKS], inside = 0;
    uint16_t edges[CHUNK_BYTES + 8];
    for (size_t base = 0; base < n; base += CHUNK_BYTES) {
        const size_t bytes = n - base < CHUNK_BYTES ? n - base : CHUNK_BYTES;
        const size_t whole = bytes / BLY_TEXT_BLOCK;
        const size_t rest = bytes % BLY_TEXT_BLOCK;
        unsigned char *const to = w->s->folded + base;
        size_t nmasks = whole;
        row->words(text + base, whole, to, masks);
        if (rest) {
            memcpy(tail, text + base + bytes - rest, rest);
            row->words(tail, 1, to + whole * BLY_TEXT_BLOCK, &masks[nmasks++]);
        }
        const bool was_inside = inside != 0;
        const size_t nedges = find_edges(masks, nmasks, &inside, edges);
        if (hashing) {
            const bly_status st =
                hash_room(w->s, w->nwords, w->nwords + nedges / 2 + 2);
            if (st)
                return st;
        }
        walk_words(w, edges, nedges, base, was_inside, row);
    }
    if (inside) /* the text ends in a word, and at the end of a block */
        one_word(w, w->start, n - w->start);
    return BLY_OK;
}

/* --------------------------------------------------------------- shingles */

/* Of n units, n >= size: the hashes of words in x itself, or where chars is not
 * NULL those of its bytes. */
static inline __attribute__((always_inline)) size_t
roll(uint64_t *x, const unsigned char *chars, const uint64_t *char_hash,
     size_t n, size_t size, uint64_t power)
{
#define UNIT(i) (chars ? char_hash[chars[i]] : x[i])
    uint64_t h = 0;
    for (size_t i = 0; i < size; i++)
        h = h * SHINGLE_C + UNIT(i);
    size_t i = 0;
    for (; i < n - size; i++) {
        const uint64_t now = h;
        h = h * SHINGLE_C + UNIT(i + size) - UNIT(i) * power;
        x[i] = bly_shingle_mix(now);
    }
    x[i] = bly_shingle_mix(h);
    return n - size + 1;
#undef UNIT
}

/* XXH3 of the hashes as little-endian words. */
static uint64_t sequence_hash(uint64_t *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = bly_le64(x[i]);
    const uint64_t h = XXH3_64bits_withSeed(x, n * sizeof *x, seed);
    for (size_t i = 0; i < n; i++)
        x[i] = bly_le64(x[i]);
    return h;
}

static bly_status cut_text(bly_shingler *s, const void *text, size_t nbytes,
                           bly_shingles *out)
{
    struct walk w = { .s = s };
    if (nbytes > SIZE_MAX / 2)
        return room_failed();
    bly_status st = fold_room(s, nbytes + BLY_TEXT_BLOCK);
    if (!st)
        st = walk_text(&w, text, nbytes);
    if (st || !w.nwords)
        return st;
    const bool words = s->how.unit == BLY_WORDS;
    const size_t n = words ? w.nwords : w.njoined;
    const size_t size = n < s->how.size ? n : s->how.size;
    if (words) {
        out->text = sequence_hash(s->hashes, n, s->how.seed);
        out->n = roll(s->hashes, NULL, NULL, n, size, s->power);
    } else {
        st = hash_room(s, 0, n);
        if (st)
            return st;
        out->text = XXH3_64bits_withSeed(s->folded, n, s->how.seed);
        out->n = roll(s->hashes, s->folded, s->char_hash, n, size, s->power);
    }
    out->hashes = s->hashes;
    out->nwords = w.nwords;
    return BLY_OK;
}

bly_status bly_shingle_sized(bly_shingler *s, const void *text, size_t nbytes,
                             bly_shingles *out, size_t size)
{
    if (!s || (!text && nbytes) || !out)
        return bly_fail_null("s or text or out");
    bly_shingles own = { 0 };
    const bly_status st = cut_text(s, text, nbytes, &own);
    BLY_GIVE(&own, out, size);
    return st;
}

/* ------------------------------------------------------------------- sets */

size_t bly_distinct(uint64_t *hashes, size_t n)
{
    (void)bly_hashes_unique(hashes, NULL, &n); /* fails over values alone */
    return n;
}

bly_overlap bly_overlap_of(const uint64_t *a, size_t na, const uint64_t *b,
                           size_t nb)
{
    size_t i = 0, j = 0, both = 0;
    while (i < na && j < nb) { /* no branch: which is less is a coin flip */
        const uint64_t x = a[i], y = b[j];
        both += x == y;
        i += x <= y;
        j += y <= x;
    }
    const uint64_t either = (uint64_t)na + nb - both;
    return (bly_overlap){
        .in_both = both,
        .in_either = either,
        .jaccard = either ? (double)both / (double)either : 0,
    };
}

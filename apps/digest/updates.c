/*
 * updates.c - what has changed in a digest, as bytes
 *
 * Gaps between flips are as good as geometric, so Rice's code with the
 * parameter b = log2(mean * ln 2) comes within a few percent of their entropy:
 * a gap is its upper bits in unary (zeros and a one) and its b lower ones. With
 * 11 bits per entry, one percent of new entries and as many that went flip one
 * bit in 187, which takes 9 bits for each, 4 % of the digest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/digest/updates.h"
#include "wire/frame.h"

#define UPDATE_BITS 255 /* instead of a parameter: the bits themselves */
#define FILL_MOST 0.65  /* Squid's own limit */

enum { UPDATE_WHOLE = 1, UPDATE_DELTA = 2 };
enum { CAPACITY_AT = 4, COUNT_AT = 8, MASK_AT = 16, BITS_AT = 20 };

static uint64_t mask_sum(const struct digest_state *s)
{
    return frame_crc(0, s->bytes + DIGEST_HEADER, s->nbytes - DIGEST_HEADER);
}

/* --------------------------------------------------------------- the gaps */

struct bit_writer {
    struct bytes *to;
    unsigned part, n;
};

static void put_bit(struct bit_writer *w, unsigned bit)
{
    w->part |= bit << w->n;
    if (++w->n == 8) {
        const unsigned char byte = (unsigned char)w->part;
        bytes_put(w->to, &byte, 1);
        w->part = w->n = 0;
    }
}

static void put_gap(struct bit_writer *w, uint64_t gap, unsigned b)
{
    for (uint64_t zeros = gap >> b; zeros; zeros--)
        put_bit(w, 0);
    put_bit(w, 1);
    for (unsigned i = 0; i < b; i++)
        put_bit(w, gap >> i & 1);
}

struct bit_reader {
    const unsigned char *at, *end;
    unsigned n;
};

static int take_bit(struct bit_reader *r)
{
    if (r->at == r->end)
        return -1;
    const int bit = *r->at >> r->n & 1;
    r->n = (r->n + 1) % 8;
    r->at += r->n == 0;
    return bit;
}

/* False: the bytes are at their end, or it is larger than most. */
static bool take_gap(struct bit_reader *r, unsigned b, uint64_t most,
                     uint64_t *out)
{
    uint64_t zeros = 0;
    int bit;
    while ((bit = take_bit(r)) == 0)
        if (++zeros > most >> b)
            return false;
    if (bit < 0)
        return false;
    *out = zeros << b;
    for (unsigned i = 0; i < b; i++) {
        bit = take_bit(r);
        if (bit < 0)
            return false;
        *out |= (uint64_t)(unsigned)bit << i;
    }
    return *out <= most;
}

static unsigned rice_parameter(uint64_t nbits, uint64_t flips)
{
    const double mean = flips ? (double)nbits / (double)flips : 1;
    const double b = floor(log2(mean * 0.693) + 0.5);
    return b > 0 ? (unsigned)b : 0;
}

/* ---------------------------------------------------------------- packing */

static bool same_shape(const struct digest_state *a,
                       const struct digest_state *b)
{
    return a->bytes && a->nbytes == b->nbytes && a->is.life == b->is.life &&
           memcmp(a->bytes, b->bytes, COUNT_AT) == 0 &&
           a->bytes[BITS_AT] == b->bytes[BITS_AT];
}

static unsigned flipped(const struct digest_state *from,
                        const struct digest_state *to, size_t i)
{
    return (from ? from->bytes[i] : 0) ^ to->bytes[i];
}

static uint64_t count_flips(const struct digest_state *from,
                            const struct digest_state *to)
{
    uint64_t n = 0;
    for (size_t i = DIGEST_HEADER; i < to->nbytes; i++)
        n += (unsigned)__builtin_popcount(flipped(from, to, i));
    return n;
}

static void put_flips(struct bytes *out, const struct digest_state *from,
                      const struct digest_state *to, unsigned b)
{
    struct bit_writer w = { .to = out };
    uint64_t next = 0;
    for (size_t i = DIGEST_HEADER; i < to->nbytes; i++)
        for (unsigned bits = flipped(from, to, i); bits; bits &= bits - 1) {
            const uint64_t at =
                (i - DIGEST_HEADER) * 8 + (unsigned)__builtin_ctz(bits);
            put_gap(&w, at - next, b);
            next = at + 1;
        }
    while (w.n)
        put_bit(&w, 0);
}

bool update_pack(const struct digest_state *from, const struct digest_state *to,
                 struct bytes *out)
{
    const size_t nmask = to->nbytes - DIGEST_HEADER;
    const uint64_t ones = count_flips(NULL, to);
    /* The shorter list: of what has changed, or of what is there. */
    const struct digest_state *const base =
        same_shape(from, to) && count_flips(from, to) < ones ? from : NULL;
    const uint64_t flips = base ? count_flips(base, to) : ones;
    unsigned b = rice_parameter(nmask * 8, flips);
    const unsigned char kind = base ? UPDATE_DELTA : UPDATE_WHOLE;
    bytes_put(out, &kind, 1);
    bytes_number(out, to->is.life, 8);
    bytes_number(out, base ? from->is.version : 0, 8);
    bytes_number(out, to->is.version, 8);
    bytes_number(out, get_be(to->bytes + CAPACITY_AT, 4), 4);
    bytes_number(out, get_be(to->bytes + COUNT_AT, 4), 4);
    bytes_number(out, mask_sum(to), 4);
    bytes_number(out, to->bytes[BITS_AT], 1);
    const size_t parameter_at = out->n;
    bytes_number(out, b, 1);
    bytes_number(out, flips, 4);
    const size_t coded_at = out->n;
    put_flips(out, base, to, b);
    if (!out->failed && !base && out->n - coded_at >= nmask) {
        out->at[parameter_at] = UPDATE_BITS;
        out->n = coded_at;
        bytes_put(out, to->bytes + DIGEST_HEADER, nmask);
    }
    return !out->failed;
}

/* ----------------------------------------------------------------- taking */

struct update_head {
    unsigned kind, bits, parameter;
    uint64_t life, from, version, capacity, count, sum, flips;
};

static bool head_read(struct reading *r, struct update_head *h)
{
    h->kind = (unsigned)read_word(r, 1);
    h->life = read_word(r, 8);
    h->from = read_word(r, 8);
    h->version = read_word(r, 8);
    h->capacity = read_word(r, 4);
    h->count = read_word(r, 4);
    h->sum = read_word(r, 4);
    h->bits = (unsigned)read_word(r, 1);
    h->parameter = (unsigned)read_word(r, 1);
    h->flips = read_word(r, 4);
    return !r->bad && (h->kind == UPDATE_WHOLE || h->kind == UPDATE_DELTA) &&
           h->version && h->life &&
           (h->parameter < 32 ||
            (h->kind == UPDATE_WHOLE && h->parameter == UPDATE_BITS));
}

bool update_is_whole(const unsigned char *bytes, size_t n)
{
    return n && bytes[0] == UPDATE_WHOLE;
}

static enum update_was wrong(char *why, size_t room, const char *text)
{
    snprintf(why, room, "%s", text);
    return UPDATE_WRONG;
}

/* The digest that the update starts from, as a copy. */
static bool base_copy(const struct digest_state *s, const struct update_head *h,
                      struct digest_state *out)
{
    const bool whole = h->kind == UPDATE_WHOLE;
    const size_t nmask = (size_t)((h->capacity * h->bits + 7) / 8);
    out->nbytes = DIGEST_HEADER + nmask;
    out->bytes = calloc(out->nbytes, 1);
    if (!out->bytes)
        return false;
    if (!whole)
        memcpy(out->bytes, s->bytes, s->nbytes);
    put_be(out->bytes, 5, 2);
    put_be(out->bytes + 2, 3, 2);
    put_be(out->bytes + CAPACITY_AT, h->capacity, 4);
    put_be(out->bytes + COUNT_AT, h->count, 4);
    put_be(out->bytes + MASK_AT, nmask, 4);
    out->bytes[BITS_AT] = (unsigned char)h->bits;
    out->bytes[BITS_AT + 1] = 4;
    return true;
}

static bool flips_take(struct digest_state *s, const struct update_head *h,
                       struct reading *r)
{
    const uint64_t nbits = (uint64_t)(s->nbytes - DIGEST_HEADER) * 8;
    unsigned char *const mask = s->bytes + DIGEST_HEADER;
    struct bit_reader in = { r->at, r->end, 0 };
    uint64_t next = 0, gap;
    if (h->parameter == UPDATE_BITS) {
        if (read_left(r) != s->nbytes - DIGEST_HEADER)
            return false;
        memcpy(mask, r->at, read_left(r));
        return true;
    }
    for (uint64_t i = 0; i < h->flips; i++) {
        if (next >= nbits ||
            !take_gap(&in, h->parameter, nbits - 1 - next, &gap))
            return false;
        next += gap;
        mask[next / 8] ^= (unsigned char)(1U << next % 8);
        next++;
    }
    /* Nothing may follow but the rest of the last byte. */
    return in.at + (in.n != 0) == in.end;
}

/* Is the digest that the update led to what it was to be? */
static enum update_was judge(const struct digest_state *now,
                             const struct update_head *h, char *why,
                             size_t room)
{
    struct digest_copy copy = { .bytes = now->bytes, .nbytes = now->nbytes };
    if (mask_sum(now) != h->sum)
        return wrong(why, room, "its bits do not have the sum that it says");
    if (!digest_check(&copy, why, room))
        return UPDATE_WRONG;
    if (copy.stats.fill > FILL_MOST)
        return wrong(why, room,
                     "more than 65 % of its bits are set, so it says nothing");
    return UPDATE_TAKEN;
}

enum update_was update_take(const struct digest_state *s,
                            const unsigned char *bytes, size_t n, uint64_t most,
                            struct digest_state *out, char *why, size_t room)
{
    struct reading r = { bytes, bytes + n, false };
    struct update_head h;
    struct digest_state now = { 0 };
    if (!head_read(&r, &h))
        return wrong(why, room, "not an update");
    if (!h.capacity || !h.bits || h.bits > 127)
        return wrong(why, room, "a digest of a size that Squid does not take");
    const uint64_t nmask = (h.capacity * h.bits + 7) / 8;
    if (nmask + DIGEST_HEADER > most)
        return wrong(why, room, "its digest is larger than --max-size");
    if (h.kind == UPDATE_DELTA &&
        (!s->bytes || s->is.life != h.life || s->is.version != h.from)) {
        snprintf(why, room, "a delta from a version that is not here");
        return UPDATE_ALIEN;
    }
    if (h.kind == UPDATE_DELTA && s->nbytes - DIGEST_HEADER != nmask)
        return wrong(why, room, "a delta that changes the size");
    if (!base_copy(s, &h, &now))
        return wrong(why, room, "out of memory");
    now.is = (struct digest_version){ h.life, h.version };
    const enum update_was was =
        flips_take(&now, &h, &r)
            ? judge(&now, &h, why, room)
            : wrong(why, room, "its flips do not fit into the digest");
    if (was == UPDATE_TAKEN)
        *out = now;
    else
        free(now.bytes);
    return was;
}

/*
 * range.h - the range coder: a message as one number
 *
 * Coding narrows an interval of the numbers from 0 to 1: [low, low + range),
 * both in units of 2^-64 of where it stands. A symbol that owns the part from
 * `cum` to `cum + freq` of `total` leaves
 *
 *     r = range / total,  low += r cum,  range = r freq
 *
 * and costs log2(total/freq) bits, but for the remainder of the division.
 * When range has fallen below 2^32 the first 32 bits of low are settled, but
 * for a carry, and go out. The end is low itself, in 64 bits: so a decoder
 * that follows arrives at a difference of exactly zero, and any other end is
 * an error.
 *
 * A carry may reach words that have gone out. So the last word is held back,
 * with the number of words of 32 ones behind it, which it would run through.
 *
 * G. N. N. Martin, Range encoding: an algorithm for removing redundancy from a
 * digitised message, 1979. Carries as in Schindler's coder of 1998.
 */
#ifndef BLY_RANGE_H
#define BLY_RANGE_H

#include <bloomery.h>

#include "core/bytes.h"

#define BLY_RANGE_MIN (UINT64_C(1) << 32)
#define BLY_RANGE_PIECE 4096 /* bytes that are put at once */

typedef struct bly_encoder {
    uint64_t low, range;
    uint32_t held;   /* the last word that is not all ones */
    uint64_t nones;  /* words of ones behind it */
    bool holds;      /* there is one */
    uint64_t nwords; /* that went out, those held included */
    bly_put *put;    /* NULL: nobody wants the bytes */
    void *ctx;
    bool stopped; /* by put */
    size_t n;
    unsigned char piece[BLY_RANGE_PIECE];
} bly_encoder;

static inline void bly_encoder_start(bly_encoder *e, bly_put *put, void *ctx)
{
    e->low = 0;
    e->range = UINT64_MAX;
    e->nones = e->nwords = 0;
    e->holds = e->stopped = false;
    e->put = put;
    e->ctx = ctx;
    e->n = 0;
}

static inline void bly_encoder_flush(bly_encoder *e)
{
    if (e->put && !e->stopped && e->n)
        e->stopped = !e->put(e->ctx, e->piece, e->n);
    e->n = 0;
}

/* A word that no carry can reach any more, first byte first. */
static inline void bly_encoder_final(bly_encoder *e, uint32_t word)
{
    if (e->n == BLY_RANGE_PIECE)
        bly_encoder_flush(e);
    bly_store_be32(e->piece + e->n, word);
    e->n += 4;
}

static inline void bly_encoder_settle(bly_encoder *e, uint32_t carry)
{
    if (e->holds)
        bly_encoder_final(e, e->held + carry);
    for (; e->nones; e->nones--)
        bly_encoder_final(e, UINT32_MAX + carry);
}

static inline void bly_encoder_word(bly_encoder *e, uint32_t word)
{
    e->nwords++;
    if (!e->put)
        return;
    if (word == UINT32_MAX && e->holds) {
        e->nones++;
        return;
    }
    bly_encoder_settle(e, 0);
    e->held = word;
    e->holds = true;
}

/* low passed 1: what is held takes the carry. */
static inline void bly_encoder_carry(bly_encoder *e)
{
    if (!e->put)
        return;
    /* The words of ones become zeros: the last of them is held from now on. */
    const uint64_t nzeros = e->nones;
    e->held++;
    if (!nzeros)
        return;
    e->nones = 0;
    bly_encoder_final(e, e->held);
    for (uint64_t i = 1; i < nzeros; i++)
        bly_encoder_final(e, 0);
    e->held = 0;
}

static inline void bly_encode_step(bly_encoder *e, uint64_t r, uint64_t cum,
                                   uint64_t freq)
{
    const uint64_t add = r * cum;
    e->low += add;
    if (e->low < add)
        bly_encoder_carry(e);
    e->range = r * freq;
    if (e->range < BLY_RANGE_MIN) {
        bly_encoder_word(e, (uint32_t)(e->low >> 32));
        e->low <<= 32;
        e->range <<= 32;
    }
}

/* All that is left. The number of bytes there are in all. */
static inline uint64_t bly_encoder_end(bly_encoder *e)
{
    bly_encoder_word(e, (uint32_t)(e->low >> 32));
    bly_encoder_word(e, (uint32_t)e->low);
    if (e->put)
        bly_encoder_settle(e, 0);
    return 4 * e->nwords;
}

typedef struct bly_decoder {
    uint64_t code, range; /* the number less low; code < range */
    const unsigned char *at, *end;
    bool wrong; /* ran out of bytes, or past an interval */

    /* Where bytes come from when those at hand are used up. NULL: nowhere. */
    bly_get *get;
    void *ctx;
    uint64_t left; /* bytes that are still to be got */
    unsigned char piece[BLY_RANGE_PIECE];
} bly_decoder;

/* Get the next piece: whole, so that words do not lie across two of them. */
static inline void bly_decoder_fill(bly_decoder *d)
{
    const size_t n =
        d->left < sizeof d->piece ? (size_t)d->left : sizeof d->piece;
    if (!n)
        return;
    d->wrong |= d->get(d->ctx, d->piece, n) != (int64_t)n;
    d->left -= n;
    d->at = d->piece;
    d->end = d->piece + n;
}

static inline uint32_t bly_decoder_word(bly_decoder *d)
{
    if (d->at == d->end && d->get)
        bly_decoder_fill(d);
    const unsigned char *p = d->at;
    if (d->wrong || d->end - p < 4) {
        d->wrong = true;
        return 0;
    }
    d->at += 4;
    return bly_load_be32(p);
}

/* With at and end, or get, ctx and left set. */
static inline void bly_decoder_start(bly_decoder *d)
{
    d->range = UINT64_MAX;
    d->code = (uint64_t)bly_decoder_word(d) << 32;
    d->code |= bly_decoder_word(d);
    d->wrong |= d->code >= d->range;
}

/* Which of total parts the code is in; `wrong` if in none. */
static inline uint64_t bly_decode_part(bly_decoder *d, uint64_t r,
                                       uint64_t total)
{
    const uint64_t part = d->code / r;
    if (part < total)
        return part;
    d->wrong = true;
    return 0;
}

/* A symbol was found: code is what is left of it, code - r cum, and range its
 * width, r freq. */
static inline void bly_decode_step(bly_decoder *d, uint64_t code,
                                   uint64_t range)
{
    d->code = code;
    d->range = range;
    if (d->range < BLY_RANGE_MIN) {
        d->code = d->code << 32 | bly_decoder_word(d);
        d->range <<= 32;
    }
}

#endif

/*
 * codec.c - arrays to fewer bytes, and back: two models over a range coder
 *
 * A model says how likely each symbol is; the range coder (range.h) then takes
 * log2 of one over that many bits. Here a model counts what it has seen: with
 * T symbols seen, n_s of them s, out of N,
 *
 *     P(s) = (n_s + 1/16) / (T + N/16)
 *
 * which is Krichevsky and Trofimov's estimator [1] with 1/16 in place of their
 * 1/2, since most of the symbols never come.
 *
 * Bytes. Each is a symbol, N = 256.
 *
 * Bits. The bits of a Bloom filter are as good as exchangeable: how many ones
 * there are says something, where they are does not. So 32 bits at a time are
 * coded as their number of ones c, a symbol, N = 33, and then as which of the
 * C(32, c) equally likely words with c ones they are, a number below that. A
 * word of zeros is one cheap symbol. Nothing is lost against coding bit by
 * bit: it is the chain rule, and within a word it is exact (Cover [2]).
 *
 *     01000000 00000000 00010000 00000000  c = 2, number 432 of 496
 *      byte 3   byte 2   byte 1   byte 0
 *
 * Words of c ones are numbered byte by byte from the top: first by the ones t
 * in the top byte; then by which of the C(8, t) bytes it is, in the order of
 * their values; then by the rest, which has c - t ones in one byte less.
 *
 * An array of m bits of which X are ones takes m H(X/m) bits, 8 bytes for the
 * end, and what learning costs: tests/test_codec.c holds it to less than 1 %
 * and 16 bytes from 10^5 bits on, at any density.
 *
 * [1] Krichevsky and Trofimov, The Performance of Universal Encoding, 1981
 * [2] Cover, Enumerative Source Encoding, 1973
 */
#include <math.h>
#include <string.h>

#include "codec/codec.h"
#include "codec/range.h"
#include "core/bits.h"

/* ---------------------------------------------------------------- models */

#define MODEL_MAX 256 /* symbols */
#define MODEL_GROUP 16
#define MODEL_STEP 16 /* what seeing a symbol adds to its 1 */
/* A total this large is halved: what is long past counts less, and the part
 * that a symbol owns stays well above the remainder of a division. */
#define MODEL_LIMIT (UINT32_C(1) << 24)

typedef struct model {
    uint32_t total;
    uint32_t group[MODEL_MAX / MODEL_GROUP]; /* sums of 16 */
    uint32_t freq[MODEL_MAX];
} model;

static void model_sum(model *m)
{
    m->total = 0;
    for (unsigned g = 0; g < MODEL_MAX / MODEL_GROUP; g++) {
        m->group[g] = 0;
        for (unsigned i = 0; i < MODEL_GROUP; i++)
            m->group[g] += m->freq[g * MODEL_GROUP + i];
        m->total += m->group[g];
    }
}

static void model_start(model *m, unsigned nsymbols)
{
    memset(m->freq, 0, sizeof m->freq);
    for (unsigned s = 0; s < nsymbols; s++)
        m->freq[s] = 1;
    model_sum(m);
}

static inline void model_learn(model *m, unsigned s)
{
    m->freq[s] += MODEL_STEP;
    m->group[s / MODEL_GROUP] += MODEL_STEP;
    m->total += MODEL_STEP;
    if (m->total >= MODEL_LIMIT) {
        for (unsigned i = 0; i < MODEL_MAX; i++)
            m->freq[i] -= m->freq[i] / 2;
        model_sum(m);
    }
}

static inline void encode_symbol(bly_encoder *e, model *m, unsigned s)
{
    uint32_t cum = 0;
    for (unsigned g = 0; g < s / MODEL_GROUP; g++)
        cum += m->group[g];
    for (unsigned i = s / MODEL_GROUP * MODEL_GROUP; i < s; i++)
        cum += m->freq[i];
    bly_encode_step(e, e->range / m->total, cum, m->freq[s]);
    model_learn(m, s);
}

/* Passes symbol after symbol, by its width, and so divides once only. */
static inline unsigned decode_symbol(bly_decoder *d, model *m)
{
    const uint64_t r = d->range / m->total;
    uint64_t left = d->code, width;
    unsigned g = 0;
    if (left >= r * m->total) {
        d->wrong = true;
        return 0;
    }
    for (; left >= (width = r * m->group[g]); g++)
        left -= width;
    unsigned s = g * MODEL_GROUP;
    for (; left >= (width = r * m->freq[s]); s++)
        left -= width;
    bly_decode_step(d, left, width);
    model_learn(m, s);
    return s;
}

/* ---------------------------------------------------------------- numbers */

#define WORD_BITS 32

/* Tables for the words of c ones. */
typedef struct numbering {
    uint32_t count[5][WORD_BITS + 1]; /* [b][c]: words of b bytes */
    /* [b][c][t]: those of b + 1 bytes with fewer than t ones in the top one */
    uint32_t before[4][WORD_BITS + 1][9];
    unsigned char rank[256];         /* a byte among those of as many ones */
    unsigned char byte[9][70];       /* and back; C(8, 4) = 70 */
    uint64_t inverse[WORD_BITS + 1]; /* of count[4]: bly_modulus */
} numbering;

static void numbering_make(numbering *t)
{
    uint32_t next[9] = { 0 };
    memset(t, 0, sizeof *t);
    for (unsigned x = 0; x < 256; x++) {
        const unsigned ones = (unsigned)__builtin_popcount(x);
        t->rank[x] = (unsigned char)next[ones];
        t->byte[ones][next[ones]++] = (unsigned char)x;
    }
    t->count[0][0] = 1;
    for (unsigned b = 0; b < 4; b++)
        for (unsigned c = 0; c <= 8 * (b + 1); c++) {
            uint32_t sum = 0;
            for (unsigned top = 0; top <= 8; top++) {
                t->before[b][c][top] = sum;
                if (top <= c)
                    sum += next[top] * t->count[b][c - top];
            }
            t->count[b + 1][c] = sum;
        }
    for (unsigned c = 0; c <= WORD_BITS; c++)
        t->inverse[c] = UINT64_MAX / t->count[4][c];
}

static inline uint32_t word_number(const numbering *t, uint32_t word,
                                   unsigned c)
{
    uint32_t number = 0;
    for (unsigned b = 3; b > 0; b--) {
        const unsigned x = word >> 8 * b & 0xff;
        const unsigned top = (unsigned)__builtin_popcount(x);
        number += t->before[b][c][top];
        c -= top;
        number += t->rank[x] * t->count[b][c];
    }
    return number + t->rank[word & 0xff];
}

/* The word of c ones with this number, which is below count[4][c]. */
static inline uint32_t numbered_word(const numbering *t, uint32_t number,
                                     unsigned c)
{
    uint32_t word = 0;
    for (unsigned b = 3; b > 0; b--) {
        const uint32_t *const before = t->before[b][c];
        unsigned top = 0; /* the last at or below; empty ones are passed */
        for (unsigned i = 1; i <= 8; i++)
            top += before[i] <= number;
        number -= before[top];
        c -= top;
        const uint32_t per = t->count[b][c], x = number / per;
        number -= x * per;
        word |= (uint32_t)t->byte[top][x] << 8 * b;
    }
    return word | t->byte[c][number];
}

static inline uint64_t divide(uint64_t x, uint64_t n, uint64_t inverse)
{
    const uint64_t q = bly_mulhi(x, inverse);
    return q + (x - q * n >= n);
}

/* ------------------------------------------------------------------- bits */

/* The word of the next 4 bytes, or of the n that are left. */
static inline uint32_t load_word(const unsigned char *p, size_t n)
{
    uint32_t word = 0;
    if (n >= 4)
        memcpy(&word, p, 4);
    else
        memcpy(&word, p, n);
    return bly_le32(word);
}

static void encode_bits(bly_encoder *e, const unsigned char *data, size_t n)
{
    numbering t;
    model m;
    numbering_make(&t);
    model_start(&m, WORD_BITS + 1);
    for (size_t i = 0; i < n; i += 4) {
        const uint32_t word = load_word(data + i, n - i);
        const unsigned c = (unsigned)__builtin_popcount(word);
        encode_symbol(e, &m, c);
        const uint32_t count = t.count[4][c];
        if (count > 1)
            bly_encode_step(e, divide(e->range, count, t.inverse[c]),
                            word_number(&t, word, c), 1);
    }
}

static bool decode_bits(bly_decoder *d, const numbering *t, model *m,
                        unsigned char *data, size_t n)
{
    for (size_t i = 0; i < n && !d->wrong; i += 4) {
        const unsigned c = decode_symbol(d, m);
        const uint32_t count = t->count[4][c];
        uint32_t word = c ? UINT32_MAX : 0;
        if (count > 1) {
            const uint64_t r = divide(d->range, count, t->inverse[c]);
            const uint64_t number = bly_decode_part(d, r, count);
            bly_decode_step(d, d->code - r * number, r);
            word = numbered_word(t, (uint32_t)number, c);
        }
        const uint32_t le = bly_le32(word);
        if (n - i >= 4) {
            memcpy(data + i, &le, 4);
        } else {
            memcpy(data + i, &le, n - i);
            d->wrong |= word >> 8 * (n - i) != 0;
        }
    }
    return !d->wrong;
}

/* ------------------------------------------------------------------ bytes */

static void encode_bytes(bly_encoder *e, const unsigned char *data, size_t n)
{
    model m;
    model_start(&m, 256);
    for (size_t i = 0; i < n; i++)
        encode_symbol(e, &m, data[i]);
}

static bool decode_bytes(bly_decoder *d, model *m, unsigned char *data,
                         size_t n)
{
    for (size_t i = 0; i < n && !d->wrong; i++)
        data[i] = (unsigned char)decode_symbol(d, m);
    return !d->wrong;
}

/* ------------------------------------------------------------------ whole */

uint64_t bly_coded_least(uint64_t n)
{
    return n / BLY_CODE_RATIO + (n % BLY_CODE_RATIO != 0);
}

/* A symbol takes 24 bits at most, and a little for what divisions leave; the
 * number of a word 30. So bits take less than twice their size, and bytes less
 * than four times. */
uint64_t bly_coded_most(uint64_t n)
{
    return !n ? 0 : n > UINT64_MAX / 4 - 64 ? UINT64_MAX : 4 * n + 64;
}

uint64_t bly_encode(bly_code code, const unsigned char *data, size_t n,
                    bly_put *put, void *ctx)
{
    bly_encoder e;
    const uint64_t least = bly_coded_least(n);
    if (!n)
        return 0;
    bly_encoder_start(&e, put, ctx);
    if (code == BLY_CODE_BITS)
        encode_bits(&e, data, n);
    else
        encode_bytes(&e, data, n);
    uint64_t ncoded = bly_encoder_end(&e);
    if (!put)
        return ncoded < least ? least : ncoded;
    bly_encoder_flush(&e);
    memset(e.piece, 0, sizeof e.piece);
    while (ncoded < least && !e.stopped) {
        const uint64_t left = least - ncoded;
        e.n = left < sizeof e.piece ? (size_t)left : sizeof e.piece;
        ncoded += e.n;
        bly_encoder_flush(&e);
    }
    return e.stopped ? 0 : ncoded;
}

/* -x log2(x/all) for x of all. */
static double worth(double x, double all)
{
    return x > 0 ? -x * log2(x / all) : 0;
}

double bly_code_entropy(bly_code code, const unsigned char *data, size_t n)
{
    uint64_t count[256] = { 0 };
    double sum = 0, ones = 0;
    for (size_t i = 0; i < n; i++)
        count[data[i]]++;
    for (unsigned x = 0; x < 256; x++) {
        sum += worth((double)count[x], (double)n);
        ones += (double)count[x] * __builtin_popcount(x);
    }
    const double m = 8 * (double)n;
    return code == BLY_CODE_BITS ? worth(ones, m) + worth(m - ones, m) : sum;
}

/* What a decoding keeps from piece to piece. */
typedef struct decoding {
    bly_code code;
    uint64_t ncoded, n, given;
    bly_decoder decoder;
    model model;
    numbering numbering;
} decoding;

_Static_assert(sizeof(decoding) <= sizeof(bly_decoding),
               "a decoding needs more room");

static bool decoding_start(decoding *d, bly_code code, uint64_t ncoded,
                           uint64_t n)
{
    d->code = code;
    d->ncoded = ncoded;
    d->n = n;
    d->given = 0;
    d->decoder.wrong = false;
    if (!n)
        return ncoded == 0;
    if (ncoded < bly_coded_least(n))
        return false;
    bly_decoder_start(&d->decoder);
    model_start(&d->model, code == BLY_CODE_BITS ? WORD_BITS + 1 : 256);
    if (code == BLY_CODE_BITS)
        numbering_make(&d->numbering);
    return !d->decoder.wrong;
}

static bool decoding_some(decoding *d, unsigned char *data, size_t n)
{
    d->given += n;
    return d->code == BLY_CODE_BITS
               ? decode_bits(&d->decoder, &d->numbering, &d->model, data, n)
               : decode_bytes(&d->decoder, &d->model, data, n);
}

static bool decoding_end(decoding *d)
{
    bly_decoder *const in = &d->decoder;
    if (d->given != d->n)
        return false;
    if (!d->n)
        return true;
    if (in->wrong || in->code != 0)
        return false;
    /* What follows is there to make up the least size. */
    if ((in->at != in->end || in->left) && d->ncoded != bly_coded_least(d->n))
        return false;
    for (;; in->at++) {
        if (in->at == in->end && in->get && in->left)
            bly_decoder_fill(in);
        if (in->at == in->end)
            return !in->wrong;
        if (*in->at)
            return false;
    }
}

bool bly_decoding_start(bly_decoding *room, bly_code code, uint64_t ncoded,
                        uint64_t n, bly_get *get, void *ctx)
{
    decoding *const d = (decoding *)(void *)room;
    d->decoder.get = get;
    d->decoder.ctx = ctx;
    d->decoder.left = ncoded;
    d->decoder.at = d->decoder.end = d->decoder.piece;
    return decoding_start(d, code, ncoded, n);
}

bool bly_decoding_some(bly_decoding *room, unsigned char *data, size_t n)
{
    return decoding_some((decoding *)(void *)room, data, n);
}

bool bly_decoding_end(bly_decoding *room)
{
    return decoding_end((decoding *)(void *)room);
}

bool bly_decode(bly_code code, const unsigned char *coded, size_t ncoded,
                unsigned char *data, size_t n)
{
    decoding d;
    d.decoder.get = NULL;
    d.decoder.left = 0;
    d.decoder.at = coded;
    d.decoder.end = ncoded ? coded + ncoded : coded; /* which may be NULL */
    return decoding_start(&d, code, ncoded, n) && decoding_some(&d, data, n) &&
           decoding_end(&d);
}

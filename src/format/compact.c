/*
 * compact.c - the header of a compact .bly file
 *
 * Numbers are written as LEB128: seven bits to a byte, lowest first, the high
 * bit set in all but the last. A number has one form, the shortest, and params
 * and state are cut off behind the last that is not 0, so that a filter has one
 * compact file, as it has one of every other form.
 *
 * A rate that equals the kind's formula for the shape, as most do, is left out.
 * A real that a person chose has few decimal digits, and is written in decimal.
 * For a layer that differs from the one before it only in what was added,
 * nothing else is written. Older files (`former`) do not do this. They lack
 * FORM_BRIEF, and are written again in their old form.
 */
#include <string.h>

#include "core/bits.h"
#include "core/status.h"
#include "core/varint.h"
#include "format/compact.h"
#include "kinds/filter.h"

/* Of the byte `form`. */
enum {
    FORM_ENCODING = 3, /* two bits: how the payload is coded */
    FORM_META = 4,     /* metadata follow */
    FORM_NO_RATE = 8,
    FORM_BRIEF = 16,   /* all that is written; the next two are of it alone */
    FORM_FORMULA = 32, /* the rate is that of the kind's formula */
    FORM_PLAIN = 64,   /* XXH3 with seed 0 */
    FORM_KNOWN = 127,
    FORM_OLD = 15
};

/* In place of the number of a kind, which is never 0: like the layer before. */
#define SAME_AGAIN 0

/* A formula may take long for a forged filter that is fuller than any plan
 * would make it. */
#define FORMULA_MOST_ITEMS 65536

enum { AT_COMPACT_VERSION = 8, AT_COMPACT_SPAN = 12 };

bool bly_compact_begins(const unsigned char *bytes, size_t n)
{
    return n >= bly_compact_prefix(true) &&
           bly_record_begins(bytes, AT_COMPACT_VERSION) &&
           bly_load32(bytes + AT_COMPACT_VERSION) == BLY_COMPACT_VERSION;
}

/* ----------------------------------------------------------------- writing */

static unsigned char *put_word(unsigned char *p, uint64_t x)
{
    bly_store64(p, x);
    return p + 8;
}

/* m / 10^e is the nearest real to that fraction on every machine. */
static const double powers_of_ten[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5,
                                        1e6, 1e7, 1e8, 1e9, 1e10 };
enum { POWERS = sizeof powers_of_ten / sizeof powers_of_ten[0] };
#define MOST_DIGITS (1u << 21) /* a number of three bytes at most */

/* Values of the first byte of a real. A real that is not negative may be its
 * eight bytes, highest first: then the highest bit, which is the sign, is
 * clear. */
#define REAL_DECIMAL 0x80 /* and e below it; m follows */
#define REAL_WHOLE 0xff   /* eight bytes follow */

static unsigned char *put_real(unsigned char *p, uint64_t bits)
{
    const double x = bly_bits_real(bits);
    for (unsigned e = 0; e < POWERS && x >= 0; e++) {
        const double scaled = x * powers_of_ten[e] + 0.5;
        if (!(scaled < MOST_DIGITS))
            break;
        const uint32_t m = (uint32_t)scaled;
        if (bly_real_bits((double)m / powers_of_ten[e]) == bits) {
            *p++ = (unsigned char)(REAL_DECIMAL | e);
            return bly_varint_write(p, m);
        }
    }
    if (bits >> 63)
        *p++ = REAL_WHOLE;
    for (int i = 56; i >= 0; i -= 8)
        *p++ = (unsigned char)(bits >> i);
    return p;
}

static bool is_real(const bly_kind *kind, uint32_t i)
{
    return i < kind->nparams && kind->params[i].type == BLY_REAL;
}

/* How many there are up to the last that is not 0. */
static unsigned used_words(const uint64_t *words, unsigned n)
{
    while (n && !words[n - 1])
        n--;
    return n;
}

static unsigned char *put_shape(unsigned char *p, const bly_record *r)
{
    const unsigned nparams = used_words(r->shape.p, BLY_MAX_PARAMS);
    const unsigned nstate = used_words(r->state, BLY_STATE_WORDS);
    *p++ = (unsigned char)nparams;
    for (unsigned i = 0; i < nparams; i++)
        p = !is_real(r->kind, i) ? bly_varint_write(p, r->shape.p[i])
            : r->former          ? put_word(p, r->shape.p[i])
                                 : put_real(p, r->shape.p[i]);
    *p++ = (unsigned char)nstate;
    for (unsigned i = 0; i < nstate; i++)
        p = bly_varint_write(p, r->state[i]);
    return p;
}

/* The rate by the formula; NAN if the formula is not used. Layers are planned
 * by their kind alone. */
static double formula_rate(const bly_record *r, bool root)
{
    const double n = (double)r->items;
    return !r->kind->rate || r->items > FORMULA_MOST_ITEMS ? __builtin_nan("")
           : root ? bly_shape_rate(r->kind, &r->shape, n)
                  : r->kind->rate(&r->shape, n);
}

static bool is_plain_hash(const bly_record *r)
{
    return r->hash_id == BLY_HASH_XXH3 && r->seed == 0;
}

/* Is r like the layer before it, except for what was added? */
static bool is_same_again(const bly_record *r, const bly_record *before)
{
    return before && !r->former && r->kind == before->kind && !r->nlayers &&
           !before->nlayers && r->encoding == before->encoding &&
           r->items == before->items &&
           bly_rate_bits(r->fpr) == bly_rate_bits(before->fpr) &&
           r->shape.nbytes == before->shape.nbytes &&
           memcmp(r->shape.p, before->shape.p, sizeof r->shape.p) == 0 &&
           memcmp(r->state, before->state, sizeof r->state) == 0;
}

static unsigned char *put_fields(unsigned char *p, const bly_record *r,
                                 bool root)
{
    const bool keyed = r->hash_id == BLY_HASH_SIPHASH13;
    const bool rated = r->fpr == r->fpr; /* not NAN */
    const bool brief = !r->former;
    const bool formula = brief && rated && r->fpr == formula_rate(r, root);
    const bool plain = brief && root && is_plain_hash(r);
    p = bly_varint_write(p, r->kind->id);
    *p++ = (unsigned char)((brief ? FORM_BRIEF : 0) | r->encoding |
                           (r->nmeta ? FORM_META : 0) |
                           (rated ? 0 : FORM_NO_RATE) |
                           (formula ? FORM_FORMULA : 0) |
                           (plain ? FORM_PLAIN : 0));
    if (root && !plain) {
        p = bly_varint_write(p, r->hash_id);
        p = keyed ? put_word(p, r->secret_check) : bly_varint_write(p, r->seed);
        if (r->hash_id == BLY_HASH_ORDERED_TAILS)
            p = put_word(p, r->secret_check);
    }
    if (rated && !formula)
        p = brief ? put_real(p, bly_rate_bits(r->fpr))
                  : put_word(p, bly_rate_bits(r->fpr));
    p = bly_varint_write(p, r->items);
    p = bly_varint_write(p, r->nadded);
    p = bly_varint_write(p, r->nlayers);
    p = bly_varint_write(p, r->shape.nbytes);
    if (r->encoding)
        p = bly_varint_write(p, r->nstored);
    p = put_shape(p, r);
    if (r->nmeta) {
        p = bly_varint_write(p, r->nmeta);
        memcpy(p, r->meta, r->nmeta);
        p += r->nmeta;
    }
    return p;
}

size_t bly_compact_encode(const bly_record *r, bool root,
                          const bly_record *before, unsigned char buf[BLY_PAGE])
{
    unsigned char *const span = buf + bly_compact_prefix(root) - 2;
    unsigned char *p = span + 2;
    if (root) {
        bly_record_begin(buf);
        bly_store32(buf + AT_COMPACT_VERSION, BLY_COMPACT_VERSION);
    }
    if (is_same_again(r, before)) {
        p = bly_varint_write(p, SAME_AGAIN);
        p = bly_varint_write(p, r->nadded);
        if (r->encoding)
            p = bly_varint_write(p, r->nstored);
    } else {
        p = put_fields(p, r, root);
    }
    const size_t n = (size_t)(p - buf);
    span[0] = (unsigned char)n;
    span[1] = (unsigned char)(n >> 8);
    return n;
}

/* ----------------------------------------------------------------- reading */

/* The rest of a header; `wrong` is set once it was too short, or holds
 * something that is never written. */
typedef struct head_input {
    const unsigned char *at;
    size_t left;
    bool wrong;
} head_input;

static const unsigned char *take_some(head_input *in, size_t n)
{
    static const unsigned char zeros[8];
    if (n > in->left) {
        in->wrong = true;
        return zeros; /* n is 8 at most, or the caller looks */
    }
    in->at += n;
    in->left -= n;
    return in->at - n;
}

static uint64_t take_number(head_input *in)
{
    const unsigned char *at = in->at;
    uint64_t x = 0;
    in->wrong |= !bly_varint_read(&at, in->at + in->left, &x);
    in->left -= (size_t)(at - in->at);
    in->at = at;
    return x;
}

static uint64_t take_word(head_input *in)
{
    return bly_load64(take_some(in, 8));
}

static uint64_t take_real(head_input *in)
{
    const unsigned first = *take_some(in, 1);
    uint64_t bits = first;
    if (first >= REAL_DECIMAL && first < REAL_DECIMAL + POWERS) {
        const uint64_t m = take_number(in);
        in->wrong |= m >= MOST_DIGITS;
        return in->wrong ? 0
                         : bly_real_bits((double)m /
                                         powers_of_ten[first - REAL_DECIMAL]);
    }
    in->wrong |= first >= REAL_DECIMAL && first != REAL_WHOLE;
    for (int i = first == REAL_WHOLE ? 0 : 1; i < 8; i++)
        bits = bits << 8 | *take_some(in, 1);
    return bits;
}

static void take_shape(head_input *in, bly_record *r)
{
    const unsigned nparams = *take_some(in, 1);
    in->wrong |= nparams > BLY_MAX_PARAMS;
    for (unsigned i = 0; i < nparams && !in->wrong; i++)
        r->shape.p[i] = !is_real(r->kind, i) ? take_number(in)
                        : r->former          ? take_word(in)
                                             : take_real(in);
    const unsigned nstate = *take_some(in, 1);
    in->wrong |= nstate > BLY_STATE_WORDS;
    for (unsigned i = 0; i < nstate && !in->wrong; i++)
        r->state[i] = take_number(in);
}

static void take_meta(head_input *in, bly_record *r)
{
    const uint64_t n = take_number(in);
    if (n == 0 || n > BLY_META_MOST || n > in->left) {
        in->wrong = true;
        return;
    }
    r->nmeta = (uint32_t)n;
    r->meta = take_some(in, (size_t)n);
}

size_t bly_compact_span(const unsigned char *prefix, bool root)
{
    const size_t least = bly_compact_prefix(root);
    const size_t n = (size_t)(prefix[least - 2] | prefix[least - 1] << 8);
    return n > least && n <= BLY_PAGE ? n : 0;
}

/* Decode a layer that is like the one before it. */
static bly_status decode_again(head_input *in, const bly_record *before,
                               bly_record *out)
{
    if (!before || before->nlayers)
        return bly_damaged("a layer refers to one before it that is not there");
    bly_record r = *before;
    r.nadded = take_number(in);
    r.nstored = r.encoding ? take_number(in) : r.shape.nbytes;
    *out = r;
    return in->wrong ? BLY_OK /* the caller says so */
                     : bly_record_admit(&r, true);
}

/* The fields behind the kind and the form. */
static bly_status decode_fields(head_input *in, unsigned form,
                                const bly_record *root, bly_record *r)
{
    const bool rated = !(form & FORM_NO_RATE);
    const bool formula = form & FORM_FORMULA;
    if (!root && form & FORM_PLAIN) {
        r->hash_id = BLY_HASH_XXH3;
    } else if (!root) {
        const uint64_t id = take_number(in);
        r->hash_id = id < UINT32_MAX ? (uint32_t)id : UINT32_MAX;
        if (id == BLY_HASH_SIPHASH13)
            r->secret_check = take_word(in);
        else
            r->seed = take_number(in);
        if (id == BLY_HASH_ORDERED_TAILS)
            r->secret_check = take_word(in);
    }
    const uint64_t rate = !rated      ? bly_rate_bits(__builtin_nan(""))
                          : formula   ? 0
                          : r->former ? take_word(in)
                                      : take_real(in);
    bool right = bly_rate_read(rate, &r->fpr);
    right &= rated == (r->fpr == r->fpr);
    r->items = take_number(in);
    r->nadded = take_number(in);
    const uint64_t nlayers = take_number(in);
    r->nlayers = nlayers < UINT32_MAX ? (uint32_t)nlayers : UINT32_MAX;
    r->shape.nbytes = take_number(in);
    r->nstored = r->encoding ? take_number(in) : r->shape.nbytes;
    take_shape(in, r);
    if (form & FORM_META)
        take_meta(in, r);
    if (in->wrong || in->left)
        return BLY_OK; /* the caller says so */
    bly_status st =
        r->nmeta ? bly_meta_check(r->meta, r->nmeta, &r->keying) : BLY_OK;
    if (!st)
        st = bly_record_admit(r, right);
    /* Only now the shape is one that the kind knows. */
    if (!st && formula) {
        r->fpr = formula_rate(r, !root);
        if (!(r->fpr >= 0 && r->fpr <= 1))
            st = bly_damaged("a rate by a formula that gives none");
    }
    return st;
}

/* Are the n bytes of a header exactly those that would be written? */
static bool is_canonical(const unsigned char *head, size_t n,
                         const bly_record *r, bool root,
                         const bly_record *before)
{
    unsigned char again[BLY_PAGE];
    return bly_compact_encode(r, root, before, again) == n &&
           memcmp(again, head, n) == 0;
}

bly_status bly_compact_decode(const unsigned char *head, size_t n,
                              const bly_record *root, const bly_record *before,
                              bly_record *out)
{
    const size_t prefix = bly_compact_prefix(!root);
    head_input in = { head + prefix, n - prefix, false };
    const uint64_t kind_id = take_number(&in);
    bly_record r = { 0 };
    bly_status st;
    if (root && !root->former && kind_id == SAME_AGAIN && !in.wrong) {
        st = decode_again(&in, before, &r);
    } else {
        const unsigned form = *take_some(&in, 1);
        r = (bly_record){
            .kind = kind_id <= UINT32_MAX ? bly_kind_by_id((uint32_t)kind_id)
                                          : NULL,
            .encoding = form & FORM_ENCODING,
            .hash_id = root ? root->hash_id : 0,
            .seed = root ? root->seed : 0,
            .secret_check = root ? root->secret_check : 0,
            .former = !(form & FORM_BRIEF),
        };
        if (in.wrong)
            return bly_damaged("a header is too short for its fields");
        if (!r.kind)
            return bly_record_unknown(kind_id);
        if (form & ~(unsigned)(r.former ? FORM_OLD : FORM_KNOWN) ||
            r.encoding > BLY_CODE_BYTES)
            return bly_fail(BLY_EFORMAT,
                            "made by a newer bloomery: its form is %#x (use a "
                            "newer one)",
                            form);
        st = decode_fields(&in, form, root, &r);
    }
    if (!st && (in.wrong || in.left || (root && root->former != r.former) ||
                !is_canonical(head, n, &r, !root, before)))
        st = bly_damaged("a header is not in the form that is written");
    if (!st)
        *out = r;
    return st;
}

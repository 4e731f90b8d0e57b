/*
 * compact.c - the header of a compact .bly file
 *
 * Numbers are written as LEB128: seven bits to a byte, lowest first, the high
 * bit set in all but the last. A number has one form, the shortest, and params
 * and state are cut off behind the last that is not 0, so that a filter has one
 * compact file, as it has one of every other form.
 */
#include <string.h>

#include "core/bits.h"
#include "core/status.h"
#include "format/compact.h"
#include "kinds/filter.h"

/* Of the byte `form`. */
enum {
    FORM_ENCODING = 3, /* two bits: how the payload is coded */
    FORM_META = 4,     /* metadata follow */
    FORM_NO_RATE = 8,
    FORM_KNOWN = 15
};

enum { AT_COMPACT_VERSION = 8, AT_COMPACT_SPAN = 12 };

bool bly_compact_begins(const unsigned char *bytes, size_t n)
{
    return n >= bly_compact_prefix(true) &&
           bly_record_begins(bytes, AT_COMPACT_VERSION) &&
           bly_load32(bytes + AT_COMPACT_VERSION) == BLY_COMPACT_VERSION;
}

/* ----------------------------------------------------------------- writing */

static unsigned char *put_number(unsigned char *p, uint64_t x)
{
    for (; x >= 0x80; x >>= 7)
        *p++ = (unsigned char)(x | 0x80);
    *p++ = (unsigned char)x;
    return p;
}

static unsigned char *put_word(unsigned char *p, uint64_t x)
{
    bly_store64(p, x);
    return p + 8;
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
        p = is_real(r->kind, i) ? put_word(p, r->shape.p[i])
                                : put_number(p, r->shape.p[i]);
    *p++ = (unsigned char)nstate;
    for (unsigned i = 0; i < nstate; i++)
        p = put_number(p, r->state[i]);
    return p;
}

size_t bly_compact_encode(const bly_record *r, bool root,
                          unsigned char buf[BLY_PAGE])
{
    unsigned char *const span = buf + bly_compact_prefix(root) - 2;
    unsigned char *p = span + 2;
    const bool keyed = r->hash_id == BLY_HASH_SIPHASH13;
    const bool rated = r->fpr == r->fpr; /* not NAN */
    if (root) {
        bly_record_begin(buf);
        bly_store32(buf + AT_COMPACT_VERSION, BLY_COMPACT_VERSION);
    }
    p = put_number(p, r->kind->id);
    *p++ = (unsigned char)(r->encoding | (r->nmeta ? FORM_META : 0) |
                           (rated ? 0 : FORM_NO_RATE));
    if (root) {
        p = put_number(p, r->hash_id);
        p = keyed ? put_word(p, r->secret_check) : put_number(p, r->seed);
    }
    if (rated)
        p = put_word(p, bly_rate_bits(r->fpr));
    p = put_number(p, r->items);
    p = put_number(p, r->nadded);
    p = put_number(p, r->nlayers);
    p = put_number(p, r->shape.nbytes);
    if (r->encoding)
        p = put_number(p, r->nstored);
    p = put_shape(p, r);
    if (r->nmeta) {
        p = put_number(p, r->nmeta);
        memcpy(p, r->meta, r->nmeta);
        p += r->nmeta;
    }
    const size_t n = (size_t)(p - buf);
    span[0] = (unsigned char)n;
    span[1] = (unsigned char)(n >> 8);
    return n;
}

/* ----------------------------------------------------------------- reading */

/* What is left of a header; `wrong` once it was too little, or not in the one
 * form that is written. */
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
    uint64_t x = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const unsigned char byte = *take_some(in, 1);
        x |= (uint64_t)(byte & 0x7f) << shift;
        if (shift == 63 && byte > 1)
            break;
        if (byte < 0x80) {
            in->wrong |= !byte && shift; /* there is a shorter form */
            return x;
        }
    }
    in->wrong = true;
    return 0;
}

static uint64_t take_word(head_input *in)
{
    return bly_load64(take_some(in, 8));
}

static void take_shape(head_input *in, bly_record *r)
{
    const unsigned nparams = *take_some(in, 1);
    in->wrong |= nparams > BLY_MAX_PARAMS;
    for (unsigned i = 0; i < nparams && !in->wrong; i++)
        r->shape.p[i] = is_real(r->kind, i) ? take_word(in) : take_number(in);
    const unsigned nstate = *take_some(in, 1);
    in->wrong |= nstate > BLY_STATE_WORDS;
    for (unsigned i = 0; i < nstate && !in->wrong; i++)
        r->state[i] = take_number(in);
    if (!in->wrong)
        in->wrong = (nparams && !r->shape.p[nparams - 1]) ||
                    (nstate && !r->state[nstate - 1]);
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

bly_status bly_compact_decode(const unsigned char *head, size_t n,
                              const bly_record *root, bly_record *out)
{
    const size_t prefix = bly_compact_prefix(!root);
    head_input in = { head + prefix, n - prefix, false };
    const uint64_t kind_id = take_number(&in);
    const unsigned form = *take_some(&in, 1);
    bly_record r = {
        .kind =
            kind_id <= UINT32_MAX ? bly_kind_by_id((uint32_t)kind_id) : NULL,
        .encoding = form & FORM_ENCODING,
        .hash_id = root ? root->hash_id : 0,
        .seed = root ? root->seed : 0,
        .secret_check = root ? root->secret_check : 0,
    };
    if (in.wrong)
        return bly_damaged("a header is too short for its fields");
    if (!r.kind)
        return bly_record_unknown(kind_id);
    if (form & ~(unsigned)FORM_KNOWN || r.encoding > BLY_CODE_BYTES)
        return bly_fail(BLY_EFORMAT,
                        "made by a newer bloomery: its form is %#x (use a "
                        "newer one)",
                        form);
    if (!root) {
        const uint64_t id = take_number(&in);
        r.hash_id = id < UINT32_MAX ? (uint32_t)id : UINT32_MAX;
        if (id == BLY_HASH_SIPHASH13)
            r.secret_check = take_word(&in);
        else
            r.seed = take_number(&in);
    }
    const bool rated = !(form & FORM_NO_RATE);
    bool right = bly_rate_read(
        rated ? take_word(&in) : bly_rate_bits(__builtin_nan("")), &r.fpr);
    right &= rated == (r.fpr == r.fpr);
    r.items = take_number(&in);
    r.nadded = take_number(&in);
    const uint64_t nlayers = take_number(&in);
    r.nlayers = nlayers < UINT32_MAX ? (uint32_t)nlayers : UINT32_MAX;
    r.shape.nbytes = take_number(&in);
    r.nstored = r.encoding ? take_number(&in) : r.shape.nbytes;
    take_shape(&in, &r);
    if (form & FORM_META)
        take_meta(&in, &r);
    if (in.wrong || in.left)
        return bly_damaged("a header is not in the form that is written");
    bly_status st =
        r.nmeta ? bly_meta_check(r.meta, r.nmeta, &r.keying) : BLY_OK;
    if (!st)
        st = bly_record_admit(&r, right);
    if (!st)
        *out = r;
    return st;
}

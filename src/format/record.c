/*
 * record.c - one record of a .bly file: its header
 *
 * Fields lie at fixed offsets, little-endian, each aligned to its size; zeros
 * fill the page, but not where the record is coded; the last eight bytes are
 * the checksum of all before them. Metadata stand among the zeros, or behind
 * the header of a coded record. A filter has exactly one header: nothing is
 * left to the writer's taste.
 */
#include <math.h>
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/status.h"
#include "format/delta.h"
#include "format/record.h"
#include "kinds/filter.h"

/* As PNG's: the high bit shows transfers that strip it, CR LF and LF those
 * that translate line ends, and ^Z stops a listing on old systems. */
static const unsigned char record_magic[8] = { 0x89, 'B',  'L',  'Y',
                                               '\r', '\n', 0x1a, '\n' };

/* Where the fields are: the table of docs/format.md. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_KIND = 12,
    AT_HASH = 16,
    AT_FLAGS = 20,
    AT_SEED = 24,
    AT_SECRET_CHECK = 32,
    AT_ITEMS = 40,
    AT_FPR = 48,
    AT_NADDED = 56,
    AT_NLAYERS = 64,
    AT_ENCODING = 68,
    AT_NBYTES = 72,
    AT_STORED = 80,
    AT_PARAMS = 88,
    AT_STATE = AT_PARAMS + 8 * BLY_MAX_PARAMS,
    AT_PAYLOAD_SUM = AT_STATE + 8 * BLY_STATE_WORDS,
    AT_ZEROS = AT_PAYLOAD_SUM + 8
};

#define FLAG_META 1u /* there are metadata */
_Static_assert(AT_ZEROS + 8 == BLY_SHORT_HEADER, "docs/format.md says both");

/* No rate: of the many NANs the one that is written. */
#define NO_RATE UINT64_C(0x7ff8000000000000)

uint64_t bly_rate_bits(double fpr)
{
    return isnan(fpr) ? NO_RATE : bly_real_bits(fpr);
}

bool bly_rate_read(uint64_t bits, double *fpr)
{
    *fpr = bly_bits_real(bits);
    return (*fpr >= 0 && *fpr <= 1) || bits == NO_RATE;
}

/* The last eight bytes of a header: whatever is coded, and be it in a way that
 * is not known here, has a short one. */
static size_t header_sum_at(uint32_t encoding)
{
    return bly_header_bytes(encoding != 0, 0) - 8;
}

/* Where metadata begin. */
static size_t meta_at(uint32_t encoding)
{
    return encoding ? BLY_SHORT_HEADER : AT_ZEROS;
}

bly_status bly_damaged(const char *what)
{
    return bly_fail(BLY_EFORMAT,
                    "damaged: %s (restore it from a copy, or build it again)",
                    what);
}

bly_status bly_cut_short(uint64_t has, uint64_t needs, bool least)
{
    return bly_fail(BLY_EFORMAT,
                    "cut short: it has %llu bytes and needs %s%llu (copy it "
                    "again, or build it again)",
                    (unsigned long long)has, least ? "at least " : "",
                    (unsigned long long)needs);
}

bly_code bly_code_of(const bly_kind *kind)
{
    return kind->bitset ? BLY_CODE_BITS : BLY_CODE_BYTES;
}

static bool put_sum(void *ctx, const void *bytes, size_t nbytes)
{
    bly_summing_add(ctx, bytes, nbytes);
    return true;
}

#ifdef BLY_TESTING
uint64_t bly_summed_from = (uint64_t)64 << 20;
#endif

bly_status bly_summed_fits(uint64_t nbytes)
{
    return nbytes > BLY_SUMMED_FROM
               ? BLY_OK
               : bly_damaged("it is of format version 2, and too small for it");
}

/* Is a mapped payload what the file says? */
static bool payload_intact(const bly_filter *f)
{
    if (!f->sums)
        return bly_checksum(f->data, (size_t)f->shape.nbytes) == f->payload_sum;
    for (uint64_t i = 0; i < f->sums->nblocks; i++)
        if (!bly_sums_compare(f->sums, i))
            return false;
    return true;
}

uint64_t bly_record_sum(const bly_filter *f, uint64_t i)
{
    return f->sums ? bly_sums_at(&f->sums->table, i)
                   : bly_sums_of(f->data, f->shape.nbytes, BLY_SUMS_SHIFT, i);
}

/* The sum of the table. */
static uint64_t sum_table(const bly_filter *f)
{
    const uint64_t n = bly_sums_count(f->shape.nbytes, BLY_SUMS_SHIFT);
    bly_summing sum;
    bly_summing_start(&sum);
    for (uint64_t i = 0; i < n; i++) {
        unsigned char le[8];
        bly_store64(le, bly_record_sum(f, i));
        bly_summing_add(&sum, le, sizeof le);
    }
    return bly_summing_end(&sum);
}

/* The sum of a payload that is stored as it is. */
static uint64_t sum_stored(const bly_filter *f, bool summed)
{
    if (f->readonly && summed == (f->sums != NULL))
        return summed ? sum_table(f) : f->payload_sum;
    const uint64_t sum =
        summed ? sum_table(f) : bly_checksum(f->data, (size_t)f->shape.nbytes);
    return f->readonly && !payload_intact(f) ? ~sum : sum;
}

/* What a coded payload comes to. */
static void sum_coded(const bly_filter *f, bly_record *r)
{
    const size_t n = (size_t)f->shape.nbytes;
    bly_summing sum;
    bly_summing_start(&sum);
    r->encoding = bly_code_of(f->kind);
    r->nstored = bly_encode(r->encoding, f->data, n, put_sum, &sum);
    r->payload_sum = bly_summing_end(&sum);
    if (f->readonly && !payload_intact(f))
        r->payload_sum = ~r->payload_sum;
}

void bly_record_of(const bly_filter *f, bly_form form, bly_record *out)
{
    *out = (bly_record){
        .kind = f->kind,
        .shape = f->shape,
        .items = f->items,
        .fpr = f->fpr,
        .nadded = f->nadded,
        .hash_id = f->hasher.id,
        .seed = f->hasher.seed,
        .secret_check = f->secret_check,
        .nlayers = f->nlayers,
        .nstored = f->shape.nbytes,
        .summed = form == BLY_FORM_SUMMED,
        .keying = bly_filter_keying(f),
        .meta = f->meta ? f->meta->at : NULL,
        .nmeta = f->meta ? f->meta->nbytes : 0,
    };
    memcpy(out->state, f->state, sizeof out->state);
    if (form == BLY_FORM_CODED)
        sum_coded(f, out);
    else
        out->payload_sum = sum_stored(f, out->summed);
}

/* The block of metadata, and the sum behind it where the header has none. */
static void encode_meta(const bly_record *r, unsigned char *page)
{
    unsigned char *const block = page + meta_at(r->encoding);
    const size_t span = bly_meta_span(r->nmeta);
    bly_store32(page + AT_FLAGS, FLAG_META);
    bly_store32(block, r->nmeta);
    memcpy(block + BLY_META_LENGTH, r->meta, r->nmeta);
    if (r->encoding)
        bly_store64(block + span, bly_checksum(block, span));
}

void bly_record_encode(const bly_record *r, unsigned char page[BLY_PAGE])
{
    memset(page, 0, BLY_PAGE);
    memcpy(page + AT_MAGIC, record_magic, sizeof record_magic);
    bly_store32(page + AT_VERSION, r->summed ? 2 : 1);
    bly_store32(page + AT_KIND, r->kind->id);
    bly_store32(page + AT_HASH, r->hash_id);
    bly_store64(page + AT_SEED, r->seed);
    bly_store64(page + AT_SECRET_CHECK, r->secret_check);
    bly_store64(page + AT_ITEMS, r->items);
    bly_store64(page + AT_FPR, bly_rate_bits(r->fpr));
    bly_store64(page + AT_NADDED, r->nadded);
    bly_store32(page + AT_NLAYERS, r->nlayers);
    bly_store64(page + AT_NBYTES, r->shape.nbytes);
    bly_store32(page + AT_ENCODING, r->encoding);
    bly_store64(page + AT_STORED, r->nstored);
    for (int i = 0; i < BLY_MAX_PARAMS; i++)
        bly_store64(page + AT_PARAMS + 8 * i, r->shape.p[i]);
    for (int i = 0; i < BLY_STATE_WORDS; i++)
        bly_store64(page + AT_STATE + 8 * i, r->state[i]);
    bly_store64(page + AT_PAYLOAD_SUM, r->payload_sum);
    if (r->nmeta)
        encode_meta(r, page);
    const size_t at_sum = header_sum_at(r->encoding);
    bly_store64(page + at_sum, bly_checksum(page, at_sum));
}

size_t bly_record_span(const unsigned char *head, size_t have)
{
    const size_t shortest = BLY_SHORT_HEADER + 8; /* tells how long they are */
    if (!bly_load32(head + AT_ENCODING))
        return BLY_PAGE;
    if (!(bly_load32(head + AT_FLAGS) & FLAG_META))
        return BLY_SHORT_HEADER;
    if (have < shortest)
        return shortest;
    const uint32_t nmeta = bly_load32(head + BLY_SHORT_HEADER);
    return nmeta > BLY_META_MOST ? shortest : bly_header_bytes(true, nmeta);
}

bool bly_record_begins(const unsigned char *bytes, size_t n)
{
    const size_t most = sizeof record_magic;
    return n > 0 && memcmp(bytes, record_magic, n < most ? n : most) == 0;
}

static bool all_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* Is the header whole, and of a form that this library writes? */
static bly_status check_page(const unsigned char *page)
{
    if (!bly_record_begins(page, sizeof record_magic))
        return bly_not_a_filter(page, BLY_SHORT_HEADER);
    /* Before the checksum, which another version may keep elsewhere. */
    const uint32_t version = bly_load32(page + AT_VERSION);
    if (version < 1 || version > 2)
        return bly_fail(BLY_EFORMAT,
                        "is of format version %u and this bloomery reads "
                        "versions 1 and 2: use a newer bloomery",
                        (unsigned)version);
    const size_t at_sum = header_sum_at(bly_load32(page + AT_ENCODING));
    if (bly_load64(page + at_sum) != bly_checksum(page, at_sum))
        return bly_damaged("a header does not match its checksum");
    if (bly_load32(page + AT_FLAGS) & ~FLAG_META ||
        bly_load32(page + AT_ENCODING) > BLY_CODE_BYTES)
        return bly_fail(BLY_EFORMAT,
                        "made by a newer bloomery: flags %#x, "
                        "encoding %u (use a newer one)",
                        (unsigned)bly_load32(page + AT_FLAGS),
                        (unsigned)bly_load32(page + AT_ENCODING));
    if (version == 2 && bly_load32(page + AT_ENCODING))
        return bly_damaged("it is of format version 2, and coded");
    return BLY_OK;
}

/* The metadata, and the zeros where there is nothing. */
static bly_status decode_meta(const unsigned char *page, bly_record *r)
{
    const size_t at = meta_at(r->encoding), at_sum = header_sum_at(r->encoding);
    const unsigned char *const block = page + at;
    size_t span = 0;
    if (bly_load32(page + AT_FLAGS) & FLAG_META) {
        r->nmeta = bly_load32(block);
        if (r->nmeta == 0 || r->nmeta > BLY_META_MOST)
            return bly_damaged("its metadata are of an impossible size");
        span = bly_meta_span(r->nmeta);
        r->meta = block + BLY_META_LENGTH;
        if (r->encoding &&
            bly_load64(block + span) != bly_checksum(block, span))
            return bly_damaged("its metadata do not match their checksum");
    }
    const size_t used = span ? BLY_META_LENGTH + r->nmeta : 0;
    const size_t end = r->encoding ? at + span : at_sum;
    if (!all_zero(block + used, end - at - used))
        return bly_damaged("a header has bytes set that must be zero");
    return span ? bly_meta_check(r->meta, r->nmeta, &r->keying) : BLY_OK;
}

/* Seed and secret as the hash wants them. */
static bool hash_fits(const bly_record *r)
{
    if (r->hash_id == BLY_HASH_SIPHASH13)
        return r->seed == 0 && r->secret_check != 0;
    return r->secret_check == 0;
}

/* What a kind without a sound() leaves: no state, no layers. */
static bool plain(const bly_record *r)
{
    for (int i = 0; i < BLY_STATE_WORDS; i++)
        if (r->state[i])
            return false;
    return r->nlayers == 0;
}

static bool shape_fits(const bly_record *r)
{
    /* A param that there is not, or that only steered the plan, is 0. */
    for (uint32_t i = 0; i < BLY_MAX_PARAMS; i++)
        if (r->shape.p[i] &&
            (i >= r->kind->nparams || r->kind->params[i].planning))
            return false;
    return r->kind->sane(&r->shape);
}

/* The encoding is the kind's, and the size one that it could give. */
static bool stored_fits(const bly_record *r)
{
    const uint64_t n = r->shape.nbytes;
    if (!r->encoding)
        return r->nstored == n;
    return r->encoding == bly_code_of(r->kind) &&
           r->nstored >= bly_coded_least(n) && r->nstored <= bly_coded_most(n);
}

bly_status bly_record_decode(const unsigned char *page, bly_record *out)
{
    bly_status st = check_page(page);
    if (st)
        return st;
    const uint32_t kind_id = bly_load32(page + AT_KIND);
    bly_record r = {
        .kind = bly_kind_by_id(kind_id),
        .items = bly_load64(page + AT_ITEMS),
        .nadded = bly_load64(page + AT_NADDED),
        .hash_id = bly_load32(page + AT_HASH),
        .seed = bly_load64(page + AT_SEED),
        .secret_check = bly_load64(page + AT_SECRET_CHECK),
        .nlayers = bly_load32(page + AT_NLAYERS),
        .encoding = bly_load32(page + AT_ENCODING),
        .nstored = bly_load64(page + AT_STORED),
        .summed = bly_load32(page + AT_VERSION) == 2,
        .payload_sum = bly_load64(page + AT_PAYLOAD_SUM),
    };
    st = decode_meta(page, &r);
    if (st)
        return st;
    const bool rated = bly_rate_read(bly_load64(page + AT_FPR), &r.fpr);
    r.shape.nbytes = bly_load64(page + AT_NBYTES);
    for (int i = 0; i < BLY_MAX_PARAMS; i++)
        r.shape.p[i] = bly_load64(page + AT_PARAMS + 8 * i);
    for (int i = 0; i < BLY_STATE_WORDS; i++)
        r.state[i] = bly_load64(page + AT_STATE + 8 * i);

    if (!r.kind)
        return bly_fail(BLY_EFORMAT,
                        "made by a newer bloomery: its kind has the number "
                        "%u, which is unknown here (use a newer one)",
                        (unsigned)kind_id);
    if (r.hash_id != BLY_HASH_XXH3 && r.hash_id != BLY_HASH_SIPHASH13)
        return bly_fail(BLY_EFORMAT,
                        "made by a newer bloomery: its hash has the number "
                        "%u, which is unknown here (use a newer one)",
                        (unsigned)r.hash_id);
    if (!hash_fits(&r))
        return bly_damaged("seed and secret do not fit the hash");
    if (r.items == 0 && !(r.kind->traits & BLY_SELF_SIZED))
        return bly_damaged("a capacity of zero");
    if (!rated)
        return bly_damaged("a rate outside 0 to 1");
    if (!shape_fits(&r) || !stored_fits(&r))
        return bly_damaged("sizes and parameters contradict each other");
    if (r.nlayers > BLY_MAX_LAYERS || (!r.kind->sound && !plain(&r)))
        return bly_damaged("state or layers that its kind does not have");
    *out = r;
    return BLY_OK;
}

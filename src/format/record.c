/*
 * record.c - one record of a .bly file: its header
 *
 * Fields lie at fixed offsets, little-endian, each aligned to its size; zeros
 * fill the page, but not where the record is coded; the last eight bytes are
 * the checksum of all before them. Metadata are in place of some of the zeros,
 * or behind the header of a coded record. A filter has exactly one possible
 * header: the writer has no choice.
 */
#include <math.h>
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/status.h"
#include "format/delta.h"
#include "format/record.h"
#include "kinds/filter.h"

/* Like PNG's: the high bit reveals transfers that strip it, CR LF and LF those
 * that translate line ends, and ^Z stops a listing on old systems. */
static const unsigned char record_magic[8] = { 0x89, 'B',  'L',  'Y',
                                               '\r', '\n', 0x1a, '\n' };

/* Where the fields are: the table of docs/format.md. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_KIND = 12,
    AT_HASH = 16,
    AT_FLAG_BITS = 20,
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

/* Where the last eight bytes of a header are. Every coded record has a short
 * header, even if its coding is not known here. */
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
uint64_t bly_summed_from = BLY_SUMMED_USUALLY;
#endif

bly_status bly_summed_fits(uint64_t nbytes)
{
    return nbytes > BLY_SUMMED_FROM
               ? BLY_OK
               : bly_damaged("it is of format version 2, and too small for it");
}

bool bly_record_intact(const bly_filter *f)
{
    if (!f->readonly || bly_filter_live(f))
        return true;
    struct bly_sums *const sums = bly_filter_sums(f);
    if (!sums)
        return bly_checksum(f->data, (size_t)f->shape.nbytes) ==
               f->extra->outside->payload_sum;
    for (uint64_t i = 0; i < sums->nblocks; i++)
        if (!bly_sums_compare(sums, i))
            return false;
    return true;
}

uint64_t bly_record_sum(const bly_filter *f, uint64_t i)
{
    const struct bly_sums *const sums = bly_filter_sums(f);
    return sums ? bly_sums_at(&sums->table, i)
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
    if (f->readonly && !bly_filter_live(f) &&
        summed == (bly_filter_sums(f) != NULL))
        return summed ? sum_table(f) : f->extra->outside->payload_sum;
    const uint64_t sum =
        summed ? sum_table(f) : bly_checksum(f->data, (size_t)f->shape.nbytes);
    return bly_record_intact(f) ? sum : ~sum;
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
    if (!bly_record_intact(f))
        r->payload_sum = ~r->payload_sum;
}

void bly_record_with(const bly_filter *f, bly_form form, uint64_t payload_sum,
                     bly_record *out)
{
    *out = (bly_record){
        .kind = f->kind,
        .shape = bly_shape_of(f),
        .items = f->items,
        .fpr = f->fpr,
        .nadded = f->nadded,
        .hash_id = f->extra->hasher.id,
        .seed = f->extra->hasher.seed,
        .secret_check = f->extra->secret_check,
        .nlayers = f->nlayers,
        .nstored = f->shape.nbytes,
        .summed = form == BLY_FORM_SUMMED,
        .live = form == BLY_FORM_LIVE,
        .payload_sum = payload_sum,
        .former = f->former,
        .keying = bly_filter_keying(f),
        .meta = f->extra->meta ? f->extra->meta->at : NULL,
        .nmeta = f->extra->meta ? f->extra->meta->nbytes : 0,
    };
    const unsigned nstate = f->kind->nstate;
    if (nstate)
        memcpy(out->state, f->state, nstate * sizeof out->state[0]);
}

void bly_record_of(const bly_filter *f, bly_form form, bly_record *out)
{
    bly_record_with(f, form, 0, out);
    if (form == BLY_FORM_CODED || (form == BLY_FORM_COMPACT && f->coded))
        sum_coded(f, out);
    else if (form != BLY_FORM_COMPACT)
        out->payload_sum = sum_stored(f, out->summed);
}

/* The block of metadata, and the sum behind it where the header has none. */
static void encode_meta(const bly_record *r, unsigned char *page)
{
    unsigned char *const block = page + meta_at(r->encoding);
    const size_t span = bly_meta_span(r->nmeta);
    bly_store32(page + AT_FLAG_BITS, FLAG_META);
    bly_store32(block, r->nmeta);
    memcpy(block + BLY_META_LENGTH, r->meta, r->nmeta);
    if (r->encoding)
        bly_store64(block + span, bly_checksum(block, span));
}

void bly_record_begin(unsigned char *page)
{
    memcpy(page + AT_MAGIC, record_magic, sizeof record_magic);
}

void bly_record_encode(const bly_record *r, unsigned char page[BLY_PAGE])
{
    memset(page, 0, BLY_PAGE);
    bly_record_begin(page);
    bly_store32(page + AT_VERSION, r->live     ? BLY_LIVE_VERSION
                                   : r->summed ? 2
                                               : 1);
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
    if (bly_load32(head + AT_VERSION) > 2)        /* not one of these */
        return BLY_SHORT_HEADER;
    if (!bly_load32(head + AT_ENCODING))
        return BLY_PAGE;
    if (!(bly_load32(head + AT_FLAG_BITS) & FLAG_META))
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
static bly_status check_page(const unsigned char *page, bool sketch, bool live)
{
    if (!bly_record_begins(page, sizeof record_magic))
        return bly_not_a_filter(page, BLY_SHORT_HEADER);
    /* Before the checksum, which another version may keep elsewhere. */
    const uint32_t version = bly_load32(page + AT_VERSION);
    if (version < 1 || version > BLY_LIVE_VERSION || version == 3)
        return bly_fail(BLY_EFORMAT,
                        "is of format version %u and this bloomery reads "
                        "versions 1 to 4: use a newer bloomery",
                        (unsigned)version);
    if (live && version != BLY_LIVE_VERSION)
        return bly_fail(
            BLY_EUNFIT,
            "holds a filter that is not live: open it with "
            "bly_open(), or make a live one of it with "
            "bly_live_make() (the command: bloomery live make --from)");
    if (!live && version == BLY_LIVE_VERSION)
        return bly_fail(BLY_EBUSY, "holds a live filter, which other processes "
                                   "may be changing: open it with bly_share() "
                                   "(the commands add and has: --live)");
    const size_t at_sum = header_sum_at(bly_load32(page + AT_ENCODING));
    if (bly_load64(page + at_sum) != bly_checksum(page, at_sum))
        return bly_damaged("a header does not match its checksum");
    const uint32_t encoding = bly_load32(page + AT_ENCODING);
    if (!sketch && encoding == BLY_CODE_SKETCH)
        return bly_fail(BLY_EFORMAT,
                        "a sketch, not a filter: bloomery distinct, top and "
                        "merge take sketches, and info describes those in "
                        "files");
    if (sketch && encoding <= BLY_CODE_BYTES)
        return bly_fail(BLY_EFORMAT, "a filter, not a sketch");
    if (bly_load32(page + AT_FLAG_BITS) & ~FLAG_META ||
        encoding > (sketch ? BLY_CODE_SKETCH : BLY_CODE_BYTES))
        return bly_fail(BLY_EFORMAT,
                        "made by a newer bloomery: flags %#x, "
                        "encoding %u (use a newer one)",
                        (unsigned)bly_load32(page + AT_FLAG_BITS),
                        (unsigned)encoding);
    if (version == 2 && encoding)
        return bly_damaged("it is of format version 2, and coded");
    return BLY_OK;
}

/* The metadata, and the zeros where there is nothing. */
static bly_status decode_meta(const unsigned char *page, bly_record *r)
{
    const size_t at = meta_at(r->encoding), at_sum = header_sum_at(r->encoding);
    const unsigned char *const block = page + at;
    size_t span = 0;
    if (bly_load32(page + AT_FLAG_BITS) & FLAG_META) {
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
    if (r->hash_id == BLY_HASH_ORDERED_TAILS)
        return bly_beginning_bytes(r->secret_check) != 0;
    return r->secret_check == 0;
}

/* No more state than the kind has, and of one without a sound() no layers. */
static bool state_fits(const bly_record *r)
{
    for (unsigned i = r->kind->nstate; i < BLY_STATE_WORDS; i++)
        if (r->state[i])
            return false;
    return r->kind->sound || r->nlayers == 0;
}

void bly_record_state(const bly_record *r, bly_filter *f)
{
    const unsigned n = r->kind->nstate;
    if (n)
        memcpy(f->state, r->state, n * sizeof r->state[0]);
}

/* Does the shape have a param or a choice that is unknown here? The sums are
 * right, so a newer version must know it. */
static bly_status shape_known(const bly_record *r)
{
    for (uint32_t i = 0; i < BLY_MAX_PARAMS; i++) {
        const uint64_t value = r->shape.p[i];
        const bly_param *const param =
            i < r->kind->nparams ? &r->kind->params[i] : NULL;
        if (param ? param->type == BLY_CHOICE && (double)value > param->max
                  : value != 0)
            return bly_fail(BLY_EFORMAT,
                            "made by a newer bloomery: a %s filter whose "
                            "parameter %u is %llu is unknown here (use a newer "
                            "one)",
                            r->kind->name, i, (unsigned long long)value);
    }
    return BLY_OK;
}

static bool shape_fits(const bly_record *r)
{
    /* A param that only guides the plan must be 0. */
    for (uint32_t i = 0; i < r->kind->nparams; i++)
        if (r->shape.p[i] && r->kind->params[i].planning)
            return false;
    return r->kind->sane(&r->shape);
}

/* The encoding is the kind's, and the size one that it could give. */
static bool stored_fits(const bly_record *r)
{
    const uint64_t n = r->shape.nbytes;
    if (!r->encoding || r->encoding == BLY_CODE_SKETCH)
        return r->nstored == n;
    return r->encoding == bly_code_of(r->kind) &&
           r->nstored >= bly_coded_least(n) && r->nstored <= bly_coded_most(n);
}

bly_status bly_record_unknown(uint64_t kind_id)
{
    return bly_fail(BLY_EFORMAT,
                    "made by a newer bloomery: its kind has the number "
                    "%llu, which is unknown here (use a newer one)",
                    (unsigned long long)kind_id);
}

bly_status bly_record_admit(const bly_record *r, bool rated)
{
    if (r->hash_id != BLY_HASH_XXH3 && r->hash_id != BLY_HASH_SIPHASH13 &&
        r->hash_id != BLY_HASH_GROUPED && r->hash_id != BLY_HASH_FOLDED &&
        !bly_hash_orders(r->hash_id))
        return bly_fail(BLY_EFORMAT,
                        "made by a newer bloomery: its hash has the number "
                        "%u, which is unknown here (use a newer one)",
                        (unsigned)r->hash_id);
    if (bly_hash_orders(r->hash_id) != (r->kind->has_range != NULL))
        return bly_damaged("kind and hash do not fit");
    if (!hash_fits(r))
        return bly_damaged("seed and secret do not fit the hash");
    if (r->items == 0 && !(r->kind->traits & BLY_SELF_SIZED))
        return bly_damaged("a capacity of zero");
    if (!rated)
        return bly_damaged("a rate outside 0 to 1");
    const bly_status st = shape_known(r);
    if (st)
        return st;
    if (!shape_fits(r) || !stored_fits(r))
        return bly_damaged("sizes and parameters contradict each other");
    if (r->nlayers > BLY_MAX_LAYERS || !state_fits(r))
        return bly_damaged("state or layers that its kind does not have");
    return BLY_OK;
}

static bly_status decode(const unsigned char *page, bly_find_kind *find,
                         bly_record *out)
{
    const uint32_t kind_id = bly_load32(page + AT_KIND);
    bly_record r = {
        .kind = find(kind_id),
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
    bly_status st = decode_meta(page, &r);
    if (st)
        return st;
    const bool rated = bly_rate_read(bly_load64(page + AT_FPR), &r.fpr);
    r.shape.nbytes = bly_load64(page + AT_NBYTES);
    for (int i = 0; i < BLY_MAX_PARAMS; i++)
        r.shape.p[i] = bly_load64(page + AT_PARAMS + 8 * i);
    for (int i = 0; i < BLY_STATE_WORDS; i++)
        r.state[i] = bly_load64(page + AT_STATE + 8 * i);

    if (!r.kind)
        return bly_record_unknown(kind_id);
    st = bly_record_admit(&r, rated);
    if (!st)
        *out = r;
    return st;
}

bly_status bly_record_decode(const unsigned char *page, bly_record *out)
{
    const bly_status st = check_page(page, false, false);
    return st ? st : decode(page, bly_kind_by_id, out);
}

bly_status bly_record_decode_live(const unsigned char *page, bly_record *out)
{
    const bly_status st = check_page(page, false, true);
    return st ? st : decode(page, bly_kind_by_id, out);
}

bly_status bly_record_decode_sketch(const unsigned char *page,
                                    bly_find_kind *find, bly_record *out)
{
    const bly_status st = check_page(page, true, false);
    return st ? st : decode(page, find, out);
}

/*
 * delta.c - deltas from one version of a filter to the next: writing
 *
 * Whatever the kind, memory is bits, and two versions of one shape differ in
 * some of them. For each record a delta holds the positions of the flipped
 * bits, as gaps in Rice's code (rice.c), and the few numbers of a header that
 * may have changed. If the shapes differ (a scalable filter that grew a layer),
 * the delta holds the whole new version, coded or not. It also does if so many
 * bits flipped that this is shorter. The shortest form is written.
 *
 * A delta names the version that it starts from, and a receiver that has
 * another version refuses it. Bits are toggled, so a delta that is applied
 * twice, or to the wrong version, would give a filter that is wrong and looks
 * right.
 */
#include <math.h>
#include <string.h>

#include "codec/rice.h"
#include "core/bits.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/delta.h"
#include "format/record.h"
#include "format/writer.h"
#include "kinds/filter.h"

/* As record.c's, with a D for the Y. */
static const unsigned char delta_magic[8] = { 0x89, 'B',  'L',  'D',
                                              '\r', '\n', 0x1a, '\n' };

/* --------------------------------------------------------------- identity */

/* The sum of a record for the identity of a version, chained to the sum of
 * those before it. It leaves out items, rate and the number of additions, which
 * describe the filter but change no answer. */
static uint64_t version_sum(const bly_filter *f, uint64_t before)
{
    unsigned char block[8 * (7 + BLY_MAX_PARAMS + BLY_STATE_WORDS)];
    unsigned char *p = block;
    const uint64_t words[] = {
        before,
        f->kind->id | (uint64_t)f->nlayers << 32,
        f->extra->hasher.id,
        f->extra->hasher.seed,
        f->extra->secret_check,
        f->shape.nbytes,
        bly_checksum(f->data, (size_t)f->shape.nbytes),
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++, p += 8)
        bly_store64(p, words[i]);
    const unsigned nparams = bly_kind_room(f->kind);
    const unsigned nstate = f->kind->nstate;
    for (unsigned i = 0; i < BLY_MAX_PARAMS; i++, p += 8)
        bly_store64(p, i < nparams ? f->shape.p[i] : 0);
    for (unsigned i = 0; i < BLY_STATE_WORDS; i++, p += 8)
        bly_store64(p, i < nstate ? f->state[i] : 0);
    uint64_t sum = bly_checksum(block, sizeof block);
    for (uint32_t i = 0; i < f->nlayers; i++)
        sum = version_sum(f->layer[i], sum);
    return sum;
}

uint64_t bly_version_id(const bly_filter *f)
{
    return version_sum(f, 0);
}

/* ----------------------------------------------------------------- header */

void bly_delta_encode(const bly_delta_header *h,
                      unsigned char bytes[DELTA_HEADER])
{
    memcpy(bytes + DELTA_AT_MAGIC, delta_magic, sizeof delta_magic);
    bly_store64(bytes + DELTA_AT_VERSION,
                BLY_DELTA_VERSION | (uint64_t)h->form << 32);
    bly_store64(bytes + DELTA_AT_FROM, h->from);
    bly_store64(bytes + DELTA_AT_TO, h->to);
    bly_store64(bytes + DELTA_AT_BODY, h->nbody);
    bly_store64(bytes + DELTA_AT_SUM, bly_checksum(bytes, DELTA_AT_SUM));
}

bool bly_delta_begins(const unsigned char *bytes, size_t n)
{
    const size_t most = sizeof delta_magic;
    return n > 0 && memcmp(bytes, delta_magic, n < most ? n : most) == 0;
}

bly_status bly_not_a_filter(const unsigned char *bytes, size_t n)
{
    const size_t whole = sizeof delta_magic;
    return bly_fail(
        BLY_EFORMAT, "not a .bly file%s",
        n < whole ? ""
        : bly_delta_begins(bytes, n)
            ? " but a delta between two, which bloomery apply takes"
        : memcmp(bytes, BLY_NODE_MAGIC, whole) == 0
            ? " but a node of a network, which programs open (bloomery/node.h)"
        : memcmp(bytes, BLY_INDEX_MAGIC, whole) == 0
            ? " but an index of documents, which bloomery index searches"
            : "");
}

bly_status bly_delta_decode(const unsigned char bytes[DELTA_HEADER],
                            bly_delta_header *out)
{
    if (!bly_delta_begins(bytes, sizeof delta_magic))
        return bly_fail(BLY_EFORMAT, "not a delta between filters");
    const uint64_t word = bly_load64(bytes + DELTA_AT_VERSION);
    if ((uint32_t)word != BLY_DELTA_VERSION)
        return bly_fail(BLY_EFORMAT,
                        "a delta of format version %u, and this bloomery reads "
                        "version %u: use a newer bloomery",
                        (unsigned)word, BLY_DELTA_VERSION);
    if (bly_load64(bytes + DELTA_AT_SUM) != bly_checksum(bytes, DELTA_AT_SUM))
        return bly_fail(BLY_EFORMAT, "damaged: the header of the delta does "
                                     "not match its checksum (get it again)");
    if (word >> 32 > DELTA_WHOLE)
        return bly_fail(BLY_EFORMAT,
                        "made by a newer bloomery: a delta of form %u, which "
                        "is unknown here (use a newer one)",
                        (unsigned)(word >> 32));
    *out = (bly_delta_header){
        .form = (bly_delta_form)(word >> 32),
        .from = bly_load64(bytes + DELTA_AT_FROM),
        .to = bly_load64(bytes + DELTA_AT_TO),
        .nbody = bly_load64(bytes + DELTA_AT_BODY),
    };
    return BLY_OK;
}

void bly_delta_tell(const bly_delta_header *h, bly_delta *info)
{
    info->from = h->from;
    info->to = h->to;
    info->form = h->form == DELTA_GAPS ? "gaps" : "whole";
    info->bytes = DELTA_HEADER + h->nbody;
}

static double entropy_bits(double d, double m)
{
    return d > 0 && d < m ? d * log2(m / d) + (m - d) * log2(m / (m - d)) : 0;
}

void bly_delta_tell_flips(uint64_t d, uint64_t m, bly_delta *info)
{
    info->flips += d;
    info->bits += m;
    info->entropy += entropy_bits((double)d, (double)m);
}

/* ------------------------------------------------------------------- gaps */

/* Do their records correspond one to one? */
static bool same_layout(const bly_filter *a, const bly_filter *b)
{
    if (a->kind != b->kind || a->nlayers != b->nlayers || !bly_same_shape(a, b))
        return false;
    for (uint32_t i = 0; i < a->nlayers; i++)
        if (!same_layout(a->layer[i], b->layer[i]))
            return false;
    return true;
}

static void measure_record(const bly_filter *from, const bly_filter *to,
                           bly_rice *out)
{
    bly_rice_measure(from->data, to->data, (size_t)to->shape.nbytes, out);
}

/* Bytes of the entries of a record and its layers. */
static uint64_t gaps_bytes(const bly_filter *from, const bly_filter *to,
                           bly_delta *info)
{
    bly_rice r;
    measure_record(from, to, &r);
    bly_delta_tell_flips(r.nflips, 8 * to->shape.nbytes, info);
    uint64_t n = ENTRY_HEADER + r.nbytes;
    for (unsigned i = 0; i < to->kind->nstate; i++)
        n += to->state[i] ? 8 : 0;
    for (uint32_t i = 0; i < to->nlayers; i++)
        n += gaps_bytes(from->layer[i], to->layer[i], info);
    return n;
}

/* Write them; where they end. */
static unsigned char *gaps_encode(const bly_filter *from, const bly_filter *to,
                                  unsigned char *p)
{
    bly_rice r;
    unsigned char *const entry = p;
    measure_record(from, to, &r);
    bly_store64(entry + ENTRY_AT_ITEMS, to->items);
    bly_store64(entry + ENTRY_AT_FPR, bly_rate_bits(to->fpr));
    bly_store64(entry + ENTRY_AT_NADDED, to->nadded);
    bly_store64(entry + ENTRY_AT_FLIPS, r.nflips);
    entry[ENTRY_AT_RICE] = (unsigned char)r.b;
    entry[ENTRY_AT_STATE] = 0;
    p += ENTRY_HEADER;
    for (unsigned i = 0; i < to->kind->nstate; i++)
        if (to->state[i]) {
            entry[ENTRY_AT_STATE] |= (unsigned char)(1u << i);
            bly_store64(p, to->state[i]);
            p += 8;
        }
    bly_rice_write(from->data, to->data, (size_t)to->shape.nbytes, &r, p);
    p += r.nbytes;
    for (uint32_t i = 0; i < to->nlayers; i++)
        p = gaps_encode(from->layer[i], to->layer[i], p);
    return p;
}

static bly_status put_all(bly_put *put, void *ctx, const void *bytes,
                          uint64_t nbytes)
{
    if (!put(ctx, bytes, (size_t)nbytes))
        return bly_fail(BLY_EIO, "the receiver stopped the writing");
    return BLY_OK;
}

static bly_status write_gaps(const bly_filter *from, const bly_filter *to,
                             const bly_delta_header *h, bly_put *put, void *ctx)
{
    unsigned char header[DELTA_HEADER];
    bly_block body;
    bly_status st = bly_block_new(bly_filter_mem(to), h->nbody, &body);
    if (st)
        return st;
    unsigned char *const end = gaps_encode(from, to, body.at);
    bly_store64(end, bly_checksum(body.at, (size_t)(end - body.at)));
    bly_delta_encode(h, header);
    st = put_all(put, ctx, header, sizeof header);
    if (!st)
        st = put_all(put, ctx, body.at, h->nbody);
    bly_block_free(bly_filter_mem(to), &body);
    return st;
}

/* ------------------------------------------------------------------ whole */

static bly_status write_whole(const bly_filter *to, bly_packing coding,
                              const bly_delta_header *h, bly_put *put,
                              void *ctx)
{
    unsigned char header[DELTA_HEADER];
    bly_delta_encode(h, header);
    const bly_status st = put_all(put, ctx, header, sizeof header);
    return st ? st : bly_file_write(to, coding, put, ctx);
}

/* --------------------------------------------------------------- choosing */

/* The shortest of gaps, whole and whole coded; info gets what both have in
 * common whichever it is. */
static bly_packing choose_form(const bly_filter *from, const bly_filter *to,
                               bly_delta_header *h, bly_delta *info)
{
    bly_packing coding = BLY_NOT_CODED;
    info->whole_bytes = bly_file_bytes(to, BLY_NOT_CODED, UINT64_MAX);
    h->form = DELTA_WHOLE;
    h->nbody = info->whole_bytes;
    if (same_layout(from, to)) {
        const uint64_t gaps = gaps_bytes(from, to, info) + BLY_DELTA_SUM;
        if (gaps < h->nbody) {
            h->form = DELTA_GAPS;
            h->nbody = gaps;
        }
    } else {
        info->entropy = NAN;
    }
    const uint64_t coded = bly_file_bytes(to, BLY_ALL_CODED, h->nbody);
    if (coded < h->nbody) {
        coding = BLY_ALL_CODED;
        h->form = DELTA_WHOLE;
        h->nbody = coded;
    }
    return coding;
}

bly_status bly_delta_write_sized(const bly_filter *from, const bly_filter *to,
                                 bly_put *put, void *ctx, bly_delta *info,
                                 size_t size)
{
    if (!from || !to || !put)
        return bly_fail_null("from or to or put");
    if (!bly_same_hash(from, to))
        return bly_fail(BLY_EUNFIT,
                        "filters that differ in hash, seed or key are not "
                        "versions of one filter: build both alike");
    bly_status st =
        bly_keyings_fit(bly_filter_keying(from), bly_filter_keying(to));
    if (st)
        return st;
    /* For a mapped file only the header has been checked so far. */
    st = bly_verify(from);
    if (!st)
        st = bly_verify(to);
    if (st)
        return st;
    bly_delta_header h = { .from = bly_version_id(from),
                           .to = bly_version_id(to) };
    bly_delta told = { 0 };
    /* Metadata are not sent: the receiver keeps its own. */
    bly_filter bare;
    bly_extra extra;
    bly_filter_bare(to, &bare, &extra);
    bare.compact = false;
    const bly_packing coding = choose_form(from, &bare, &h, &told);
    st = h.form == DELTA_GAPS ? write_gaps(from, &bare, &h, put, ctx)
                              : write_whole(&bare, coding, &h, put, ctx);
    bly_delta_tell(&h, &told);
    if (!st && info)
        BLY_GIVE(&told, info, size);
    return st;
}

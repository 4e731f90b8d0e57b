/*
 * stored_types.c - the types of sketches: what a file holds of each
 *
 *     hyperloglog   precision; form: 0 sparse, 1 dense. Payload: hll.h
 *     topk          k; lines of cells; decay; keys listed; the generator's
 *                   state. Payload: topk.h
 *     tdigest       compression; scale; how often it was merged; least and
 *                   greatest value. Payload: the means, ascending, then their
 *                   weights, 8 bytes each
 *     minhash       none: the payload is a sketch as bytes, with a head of its
 *                   own (sketch_file.c)
 *
 * docs/format.md is normative.
 */
#include <string.h>

#include "core/bits.h"
#include "core/status.h"
#include "format/stored.h"
#include "sketch/hll.h"
#include "sketch/tdigest.h"
#include "sketch/topk.h"

static bly_status stopped(void)
{
    return bly_fail(BLY_EIO, "the receiver stopped the writing");
}

/* ------------------------------------------------------------- hyperloglog */

enum { HLL_PRECISION, HLL_FORM, HLL_PARAMS };

static bool hll_sane(const bly_shape *s)
{
    const uint64_t p = s->p[HLL_PRECISION];
    if (p < BLY_REGISTERS_MIN_BITS || p > BLY_REGISTERS_MAX_BITS ||
        s->p[HLL_FORM] > 1)
        return false;
    return s->p[HLL_FORM] ? s->nbytes == bly_hll_dense_bytes((unsigned)p)
                          : s->nbytes % 4 == 0 &&
                                s->nbytes / 4 <= bly_sparse_limit((unsigned)p);
}

static const bly_origin *hll_tell(const bly_stored *s, bly_record *out)
{
    const bly_hll *const h = s->hll;
    out->shape.p[HLL_PRECISION] = h->p;
    out->shape.p[HLL_FORM] = h->registers != NULL;
    out->shape.nbytes = bly_hll_body_bytes(h);
    out->nadded = h->total;
    return &h->origin;
}

static bly_status hll_put(const bly_stored *s, bly_put *put, void *ctx)
{
    const bly_hll *const h = s->hll;
    const size_t n = bly_hll_body_bytes(h);
    if (h->registers)
        return put(ctx, h->registers, n) ? BLY_OK : stopped();
    if (!n)
        return BLY_OK;
    unsigned char *const body = h->mem.alloc(h->mem.ctx, n);
    if (!body)
        return bly_fail(BLY_ENOMEM, "out of memory");
    bly_hll_body_write(h, body);
    const bool ok = put(ctx, body, n);
    bly_mem_release(&h->mem, body, n);
    return ok ? BLY_OK : stopped();
}

static bly_status hll_load(const bly_record *r, const bly_origin *origin,
                           const unsigned char *payload, const bly_mem *mem,
                           bly_stored *out)
{
    const bly_status st = bly_hll_body_load((unsigned)r->shape.p[HLL_PRECISION],
                                            !r->shape.p[HLL_FORM], payload,
                                            (size_t)r->nstored, mem, &out->hll);
    if (st)
        return st;
    out->hll->origin = *origin;
    out->hll->total = r->nadded;
    return BLY_OK;
}

static bly_status hll_merge(bly_stored *dst, const bly_stored *src)
{
    return bly_hll_merge(dst->hll, src->hll);
}

static void hll_free(bly_stored *s)
{
    bly_hll_free(s->hll);
}

static const bly_param hll_params[] = {
    { .name = "precision", .type = BLY_UINT },
    { .name = "form", .type = BLY_UINT },
};

/* -------------------------------------------------------------------- topk */

enum { TOP_K, TOP_LINES, TOP_DECAY, TOP_LISTED, TOP_RANDOM, TOP_PARAMS };

static bool topk_sane(const bly_shape *s)
{
    const uint64_t *const p = s->p;
    const double decay = bly_shape_real(s, TOP_DECAY);
    return p[TOP_K] >= 1 && p[TOP_K] <= TOPK_MAX_K &&
           p[TOP_LISTED] <= p[TOP_K] && p[TOP_LINES] >= 1 &&
           p[TOP_LINES] <= s->nbytes / BLY_LINE && decay > 0 && decay <= 1;
}

static const bly_origin *topk_tell(const bly_stored *s, bly_record *out)
{
    const bly_topk *const t = s->topk;
    out->shape.p[TOP_K] = t->k;
    out->shape.p[TOP_LINES] = t->nlines;
    bly_shape_set_real(&out->shape, TOP_DECAY, t->decay);
    out->shape.p[TOP_LISTED] = t->n;
    out->shape.p[TOP_RANDOM] = t->random;
    out->shape.nbytes = bly_topk_body_bytes(t);
    out->nadded = t->total;
    return &t->origin;
}

static bly_status topk_put(const bly_stored *s, bly_put *put, void *ctx)
{
    return bly_topk_body_put(s->topk, put, ctx) ? BLY_OK : stopped();
}

static bly_status topk_load(const bly_record *r, const bly_origin *origin,
                            const unsigned char *payload, const bly_mem *mem,
                            bly_stored *out)
{
    const uint64_t *const p = r->shape.p;
    bly_topk *t;
    bly_status st =
        bly_topk_make(mem ? mem : &bly_mem_system, (uint32_t)p[TOP_K],
                      p[TOP_LINES], bly_shape_real(&r->shape, TOP_DECAY), &t);
    if (st)
        return st;
    t->origin = *origin;
    t->random = p[TOP_RANDOM];
    t->total = r->nadded;
    st = bly_topk_body_load(t, p[TOP_LISTED], payload, r->nstored);
    if (st) {
        bly_topk_free(t);
        return st;
    }
    out->topk = t;
    return BLY_OK;
}

static bly_status topk_merge(bly_stored *dst, const bly_stored *src)
{
    return bly_topk_merge(dst->topk, src->topk);
}

static void topk_free(bly_stored *s)
{
    bly_topk_free(s->topk);
}

static const bly_param topk_params[] = {
    { .name = "k", .type = BLY_UINT },
    { .name = "lines", .type = BLY_UINT },
    { .name = "decay", .type = BLY_REAL },
    { .name = "listed", .type = BLY_UINT },
    { .name = "random", .type = BLY_UINT },
};

/* ----------------------------------------------------------------- minhash */

#define MINHASH_MOST (BLY_SKETCH_HEAD + 8 * BLY_MAX_COMPONENTS + 8)

static bool minhash_sane(const bly_shape *s)
{
    return s->nbytes >= BLY_SKETCH_HEAD + 8 && s->nbytes <= MINHASH_MOST;
}

static const bly_origin *minhash_tell(const bly_stored *s, bly_record *out)
{
    out->shape.nbytes = bly_sketch_written_bytes(s->likeness, 0);
    return NULL;
}

static bly_status minhash_put(const bly_stored *s, bly_put *put, void *ctx)
{
    unsigned char bytes[MINHASH_MOST];
    const bly_status st = bly_sketch_write(s->likeness, 0, bytes);
    if (st)
        return st;
    return put(ctx, bytes, bly_sketch_written_bytes(s->likeness, 0))
               ? BLY_OK
               : stopped();
}

static bly_status minhash_load(const bly_record *r, const bly_origin *origin,
                               const unsigned char *payload, const bly_mem *mem,
                               bly_stored *out)
{
    /* The seed of shingles is in the payload, and keys have no part in it. */
    if (origin->hasher.id != BLY_HASH_XXH3 || origin->hasher.seed ||
        origin->keying.type || r->nadded)
        return bly_damaged("a sketch of texts that is keyed, or has keys");
    return bly_sketch_load(payload, (size_t)r->nstored, mem, &out->likeness);
}

static bly_status minhash_merge(bly_stored *dst, const bly_stored *src)
{
    return bly_sketch_merge(dst->likeness, src->likeness);
}

static void minhash_free(bly_stored *s)
{
    bly_sketch_free(s->likeness);
}

/* ----------------------------------------------------------------- tdigest */

enum { TD_COMPRESSION, TD_SCALE, TD_MERGED, TD_MIN, TD_MAX, TD_PARAMS };

static bool tdigest_sane(const bly_shape *s)
{
    return s->p[TD_SCALE] <= BLY_TDIGEST_REDISBLOOM &&
           bly_tdigest_sane(bly_shape_real(s, TD_COMPRESSION),
                            (uint32_t)s->p[TD_SCALE]) &&
           s->nbytes % 16 == 0;
}

/* What waits is merged before it is written; its owner sees no difference. */
static bly_tdigest_stats tdigest_settled(const bly_stored *s)
{
    bly_tdigest_stats stats;
    bly_tdigest_settle(s->tdigest);
    bly_tdigest_stat(s->tdigest, &stats);
    return stats;
}

static const bly_origin *tdigest_tell(const bly_stored *s, bly_record *out)
{
    const bly_tdigest_stats t = tdigest_settled(s);
    const uint64_t n = t.nmerged + t.nwaiting;
    bly_shape_set_real(&out->shape, TD_COMPRESSION, t.compression);
    out->shape.p[TD_SCALE] = t.scale;
    out->shape.p[TD_MERGED] = t.ncompressions;
    bly_shape_set_real(&out->shape, TD_MIN, n ? t.min : 0);
    bly_shape_set_real(&out->shape, TD_MAX, n ? t.max : 0);
    out->shape.nbytes = 16 * n;
    out->nadded = (uint64_t)(t.merged_weight + t.waiting_weight);
    return NULL;
}

static bool put_reals(const double *x, uint64_t n, bly_put *put, void *ctx)
{
    unsigned char bytes[512];
    for (uint64_t i = 0; i < n;) {
        size_t some = 0;
        for (; some < sizeof bytes / 8 && i < n; some++, i++)
            bly_store64(bytes + 8 * some, bly_real_bits(x[i]));
        if (!put(ctx, bytes, 8 * some))
            return false;
    }
    return true;
}

static bly_status tdigest_put(const bly_stored *s, bly_put *put, void *ctx)
{
    static const double one = 1;
    const bly_tdigest_stats t = tdigest_settled(s);
    const uint64_t n = t.nmerged + t.nwaiting;
    /* What still waits is one value alone, which weighs 1 unless it says so. */
    const bool bare = t.nwaiting && !t.weighted;
    return put_reals(t.means, n, put, ctx) &&
                   put_reals(bare ? &one : t.weights, n, put, ctx)
               ? BLY_OK
               : stopped();
}

static bly_status tdigest_load(const bly_record *r, const bly_origin *origin,
                               const unsigned char *payload, const bly_mem *mem,
                               bly_stored *out)
{
    const uint64_t *const p = r->shape.p;
    const size_t n = (size_t)(r->nstored / 16);
    if (!mem)
        mem = &bly_mem_system;
    if (origin->hasher.id != BLY_HASH_XXH3 || origin->hasher.seed ||
        origin->keying.type)
        return bly_damaged("a t-digest that is keyed, or has keys");
    if (!n && (p[TD_MIN] || p[TD_MAX]))
        return bly_damaged("an empty t-digest with a least value");
    double *const x = n ? bly_mem_zalloc(mem, 16 * n) : NULL;
    if (n && !x)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (size_t i = 0; i < 2 * n; i++)
        x[i] = bly_bits_real(bly_load64(payload + 8 * i));
    const bly_tdigest_stats parts = {
        .compression = bly_shape_real(&r->shape, TD_COMPRESSION),
        .min = bly_shape_real(&r->shape, TD_MIN),
        .max = bly_shape_real(&r->shape, TD_MAX),
        .nmerged = n == 1 ? 0 : n,
        .nwaiting = n == 1,
        .ncompressions = p[TD_MERGED],
        .scale = (uint32_t)p[TD_SCALE],
        .means = x,
        .weights = x ? x + n : NULL,
    };
    bly_status st = bly_tdigest_restore(&parts, mem, &out->tdigest);
    if (x)
        bly_mem_release(mem, x, 16 * n);
    if (st)
        return st;
    bly_tdigest_stats t;
    bly_tdigest_stat(out->tdigest, &t);
    if ((uint64_t)(t.merged_weight + t.waiting_weight) != r->nadded)
        st = bly_damaged("weights that are not what its head says");
    if (st) {
        bly_tdigest_free(out->tdigest);
        out->tdigest = NULL;
    }
    return st;
}

static bly_status tdigest_merge(bly_stored *dst, const bly_stored *src)
{
    return bly_tdigest_merge(dst->tdigest, src->tdigest);
}

static void tdigest_free(bly_stored *s)
{
    bly_tdigest_free(s->tdigest);
}

static const bly_param tdigest_params[] = {
    { .name = "compression", .type = BLY_REAL },
    { .name = "scale", .type = BLY_UINT },
    { .name = "merged", .type = BLY_UINT },
    { .name = "min", .type = BLY_REAL },
    { .name = "max", .type = BLY_REAL },
};

/* --------------------------------------------------------------- the table */

static const bly_stored_row stored_rows[BLY_STORED_COUNT_] = {
    [BLY_STORED_HLL] = { .kind = { .id = BLY_STORED_IDS + BLY_STORED_HLL,
                                   .name = "hyperloglog",
                                   .traits = BLY_SELF_SIZED,
                                   .params = hll_params,
                                   .nparams = HLL_PARAMS,
                                   .sane = hll_sane },
                         .tell = hll_tell,
                         .put = hll_put,
                         .load = hll_load,
                         .merge = hll_merge,
                         .free = hll_free },
    [BLY_STORED_TOPK] = { .kind = { .id = BLY_STORED_IDS + BLY_STORED_TOPK,
                                    .name = "topk",
                                    .traits = BLY_SELF_SIZED,
                                    .params = topk_params,
                                    .nparams = TOP_PARAMS,
                                    .sane = topk_sane },
                          .tell = topk_tell,
                          .put = topk_put,
                          .load = topk_load,
                          .merge = topk_merge,
                          .free = topk_free },
    [BLY_STORED_LIKENESS] = { .kind = { .id = BLY_STORED_IDS +
                                              BLY_STORED_LIKENESS,
                                        .name = "minhash",
                                        .traits = BLY_SELF_SIZED,
                                        .sane = minhash_sane },
                              .tell = minhash_tell,
                              .put = minhash_put,
                              .load = minhash_load,
                              .merge = minhash_merge,
                              .free = minhash_free },
    [BLY_STORED_TDIGEST] = { .kind = { .id =
                                           BLY_STORED_IDS + BLY_STORED_TDIGEST,
                                       .name = "tdigest",
                                       .traits = BLY_SELF_SIZED,
                                       .params = tdigest_params,
                                       .nparams = TD_PARAMS,
                                       .sane = tdigest_sane },
                             .tell = tdigest_tell,
                             .put = tdigest_put,
                             .load = tdigest_load,
                             .merge = tdigest_merge,
                             .free = tdigest_free },
};

const bly_stored_row *bly_stored_row_of(bly_stored_type type)
{
    return type > BLY_STORED_NONE && type < BLY_STORED_COUNT_
               ? &stored_rows[type]
               : NULL;
}

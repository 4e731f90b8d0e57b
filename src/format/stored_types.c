/*
 * stored_types.c - the types of sketches: what a file holds of each
 *
 *     hyperloglog   precision; form: 0 sparse, 1 dense. Payload: hll.h
 *     topk          k; lines of cells; decay; keys listed; the generator's
 *                   state. Payload: topk.h
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
};

const bly_stored_row *bly_stored_row_of(bly_stored_type type)
{
    return type > BLY_STORED_NONE && type < BLY_STORED_COUNT_
               ? &stored_rows[type]
               : NULL;
}

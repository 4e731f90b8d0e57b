/*
 * filter.c - the life of a filter: make, release, copy, compare
 */
#define _GNU_SOURCE
#ifdef __linux__
#include <sched.h>
#endif
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "core/keyings.h"
#include "core/status.h"
#include "kinds/filter.h"

/* bly_hash_turned() with seed 0: of BLY_HASH_FOLDED, and of the others. */
#define INT_WORD_0 UINT64_C(0xe220a8397b1dcdaf)
#define INT_TURNED_0 UINT64_C(0x18bad3d405c264ca)

/* The extra that filters without one of their own share: one for each hash that
 * takes a seed, which is 0. */
#define NO_EXTRA(hash)                                     \
    {                                                      \
        .hasher = { .id = (hash) }, .turned = INT_TURNED_0 \
    }
static const bly_extra no_extra[] = {
    NO_EXTRA(BLY_HASH_XXH3),
    NO_EXTRA(BLY_HASH_ORDERED_BYTES),
    NO_EXTRA(BLY_HASH_ORDERED_INTS),
    { .hasher = { .id = BLY_HASH_FOLDED }, .turned = INT_WORD_0 },
};
#define NO_EXTRAS (sizeof no_extra / sizeof no_extra[0])

/* The extra that all filters with this hasher can share; NULL: they need one of
 * their own. */
static bly_extra *shared_extra(const bly_hasher *hasher)
{
    for (size_t i = 0; i < NO_EXTRAS && !hasher->seed; i++)
        if (no_extra[i].hasher.id == hasher->id)
            return (bly_extra *)&no_extra[i];
    return NULL;
}

bool bly_filter_has_extra(const bly_filter *f)
{
    return (uintptr_t)f->extra - (uintptr_t)no_extra >= sizeof no_extra;
}

/* Bytes of the struct. */
static size_t head_bytes(unsigned room)
{
    return offsetof(bly_filter, shape.p) + room * sizeof(uint64_t);
}

bly_setting bly_setting_of(const bly_filter *f)
{
    return (bly_setting){
        .items = f->items,
        .fpr = f->fpr,
        .hasher = f->extra->hasher,
        .secret_check = f->extra->secret_check,
        .shared = f->shared,
        .blind = f->blind,
        .coded = f->coded,
        .compact = f->compact,
        .former = f->former,
        .max_bytes = f->extra->max_bytes,
        .mem = bly_filter_mem(f),
    };
}

bly_shape bly_shape_of(const bly_filter *f)
{
    return bly_shape_copy(f->kind, &f->shape);
}

/* ---------------------------------------------------------------- memory */

/* Copy the shared extra into one that belongs to f. */
static bly_extra *extra_from(bly_filter *f, const bly_mem *mem)
{
    if (bly_filter_has_extra(f))
        return f->extra;
    bly_extra *const e = bly_mem_zalloc(mem, sizeof *e);
    if (!e) {
        (void)bly_fail(BLY_ENOMEM, "out of memory");
        return NULL;
    }
    *e = *f->extra;
    f->extra = e;
    return e;
}

static bly_outside *outside_from(bly_filter *f, const bly_mem *mem)
{
    bly_extra *const e = extra_from(f, mem);
    if (e && !e->outside) {
        e->outside = bly_mem_zalloc(mem, sizeof *e->outside);
        if (!e->outside)
            (void)bly_fail(BLY_ENOMEM, "out of memory");
    }
    return e ? e->outside : NULL;
}

bly_extra *bly_filter_extra(bly_filter *f)
{
    return extra_from(f, bly_filter_mem(f));
}

bly_outside *bly_filter_outside(bly_filter *f)
{
    return outside_from(f, bly_filter_mem(f));
}

void *bly_filter_aux_new(bly_filter *f, size_t nbytes)
{
    bly_extra *const e = bly_filter_extra(f);
    if (e && !(e->aux = bly_mem_zalloc(bly_filter_mem(f), nbytes)))
        (void)bly_fail(BLY_ENOMEM, "out of memory");
    return e ? e->aux : NULL;
}

void bly_filter_aux_free(bly_filter *f, size_t nbytes)
{
    if (!f->extra->aux)
        return;
    bly_mem_release(bly_filter_mem(f), f->extra->aux, nbytes);
    f->extra->aux = NULL;
}

static void *body_place(void *base, size_t nstate, bool aligned)
{
    unsigned char *const at = (unsigned char *)base + nstate;
    return aligned ? at + (-(uintptr_t)at & (BLY_LINE - 1)) : at;
}

static bool body_aligned(const bly_filter *f)
{
    return f->kind->lines || f->shape.nbytes >= BLY_ALIGNED_FROM;
}

static size_t state_bytes(const bly_filter *f)
{
    return f->kind->nstate * sizeof(uint64_t);
}

/* How many bytes may be lost to bring data to a cache line. It lies behind
 * state, in a block aligned as malloc() does it, or only for words, as other
 * allocators do (PostgreSQL's is one). */
static size_t body_slack(const bly_filter *f)
{
    const size_t aligned = f->memory ? sizeof(uint64_t) : _Alignof(max_align_t);
    return !body_aligned(f)           ? 0
           : state_bytes(f) % aligned ? BLY_LINE - sizeof(uint64_t)
                                      : BLY_LINE - aligned;
}

static size_t body_size(const bly_filter *f)
{
    return state_bytes(f) +
           (f->inside ? (size_t)f->shape.nbytes + body_slack(f) : 0);
}

static bly_status body_new(bly_filter *f)
{
    const size_t n = body_size(f);
    if (!n)
        return BLY_OK;
    f->state = bly_mem_zalloc(bly_filter_mem(f), n);
    if (!f->state)
        return bly_fail(BLY_ENOMEM, "out of memory: %zu bytes for a filter", n);
    if (!f->inside)
        return BLY_OK;
    f->data = body_place(f->state, state_bytes(f), body_aligned(f));
    if (f->data + f->shape.nbytes > (unsigned char *)f->state + n)
        return bly_fail(BLY_EINVAL, "a source of memory must be aligned for "
                                    "words of eight bytes");
    return BLY_OK;
}

bly_status bly_filter_body_for(bly_filter *f, const bly_block *block)
{
    const bly_status st = body_new(f);
    if (st || !block)
        return st;
    bly_outside *const outside = bly_filter_outside(f);
    if (!outside)
        return BLY_ENOMEM;
    outside->block = *block;
    f->data = block->at;
    return BLY_OK;
}

bly_status bly_filter_body(bly_filter *f)
{
    const bly_mem *const mem = bly_filter_mem(f);
    const uint64_t nbytes = f->shape.nbytes;
    if (nbytes > SIZE_MAX / 4 || bly_mem_maps(mem, nbytes)) {
        bly_block block;
        bly_status st = bly_block_new(mem, nbytes, &block);
        if (!st)
            st = bly_filter_body_for(f, &block);
        if (st && f->data != block.at)
            bly_block_free(mem, &block);
        return st;
    }
    f->inside = nbytes > 0;
    return body_new(f);
}

bly_status bly_filter_shell(const bly_kind *kind, const bly_shape *shape,
                            const bly_setting *set, bly_filter **out)
{
    const bly_mem *mem = set->mem ? set->mem : &bly_mem_system;
    const unsigned room = set->roomy ? bly_kinds_room() : bly_kind_room(kind);
    bly_filter *f = bly_mem_zalloc(mem, head_bytes(room));
    *out = NULL;
    if (!f)
        return bly_fail(BLY_ENOMEM, "out of memory");
    f->kind = kind;
    bly_extra *const common = shared_extra(&set->hasher);
    f->extra = common ? common : (bly_extra *)&no_extra[0];
    f->items = set->items;
    f->fpr = set->fpr;
    f->shared = set->shared;
    f->blind = set->blind;
    f->coded = set->coded;
    f->compact = set->compact;
    f->former = set->former;
    f->memory = (uint8_t)bly_mem_number(mem);
    f->room = (uint8_t)room;
    f->shape.nbytes = shape->nbytes;
    memcpy(f->shape.p, shape->p, bly_kind_room(kind) * sizeof f->shape.p[0]);
    bly_status st = BLY_OK;
    if (f->memory == BLY_MEM_OWN) {
        bly_outside *const outside = outside_from(f, mem);
        if (outside)
            outside->mem = *mem;
        else
            st = BLY_ENOMEM;
    }
    if (!st && (set->max_bytes || set->secret_check || !common)) {
        bly_extra *const e = extra_from(f, mem);
        if (e) {
            e->hasher = set->hasher;
            e->secret_check = set->secret_check;
            e->max_bytes = set->max_bytes;
        } else {
            st = BLY_ENOMEM;
        }
    }
    if (st) {
        if (f->extra->outside)
            bly_mem_release(mem, f->extra->outside, sizeof *f->extra->outside);
        if (bly_filter_has_extra(f))
            bly_mem_release(mem, f->extra, sizeof *f->extra);
        bly_mem_release(mem, f, head_bytes(room));
        return st;
    }
    *out = f;
    return BLY_OK;
}

bly_status bly_filter_blank(const bly_kind *kind, const bly_shape *shape,
                            const bly_setting *set, bly_filter **out)
{
    *out = NULL;
    if (set->shared && !bly_shape_shares(kind, shape))
        return bly_fail(BLY_ENOTSUP,
                        "a %s filter%s cannot be shared by many writers",
                        kind->name, kind->add_shared ? " of this shape" : "");
    /* Before anything is allocated: a shape may come from a file, and ask for
     * any amount of memory. */
    if (set->max_bytes && shape->nbytes > set->max_bytes)
        return bly_fail(BLY_ERANGE,
                        "the filter needs %llu bytes, the limit is %llu",
                        (unsigned long long)shape->nbytes,
                        (unsigned long long)set->max_bytes);
    bly_filter *f;
    bly_status st = bly_filter_shell(kind, shape, set, &f);
    if (st)
        return st;
    st = bly_filter_body(f);
    if (st) {
        bly_free(f);
        return st;
    }
    *out = f;
    return BLY_OK;
}

bly_status bly_filter_make(const bly_kind *kind, const bly_shape *shape,
                           const bly_setting *set, bly_filter **out)
{
    bly_filter *f;
    bly_status st = bly_filter_blank(kind, shape, set, &f);
    /* start() makes what would otherwise come from a file. open() makes what no
     * file holds, and is called for loaded filters as well. */
    if (!st && kind->start)
        st = kind->start(f);
    if (!st && kind->open)
        st = kind->open(f);
    if (st) {
        bly_free(f);
        f = NULL;
    } else {
        bly_filter_ready(f);
    }
    *out = f;
    return st;
}

static size_t places_bytes(unsigned n)
{
    return n * sizeof(bly_filter *);
}

/* Make places for n layers. No other thread may be reading f. */
static bly_status make_places(bly_filter *f, unsigned n)
{
    const bly_mem *const mem = bly_filter_mem(f);
    bly_filter **const more = bly_mem_zalloc(mem, places_bytes(n));
    if (!more)
        return bly_fail(BLY_ENOMEM, "out of memory");
    if (f->places) {
        memcpy(more, f->layer, places_bytes(f->nlayers));
        bly_mem_release(mem, f->layer, places_bytes(f->places));
    }
    f->layer = more;
    f->places = (uint8_t)n;
    return BLY_OK;
}

/* Make room for one more layer by doubling the places. A filter that may have
 * readers gets all its places at once. */
static bly_status one_more_place(bly_filter *f)
{
    if (f->nlayers < f->places)
        return BLY_OK;
    if (f->nlayers == BLY_MAX_LAYERS)
        return bly_fail(BLY_EFULL, "a filter has at most %d layers",
                        BLY_MAX_LAYERS);
    if (f->shared && f->places) /* bly_filter_share() had no memory */
        return bly_fail(BLY_ENOMEM, "out of memory");
    return make_places(f, f->shared   ? BLY_MAX_LAYERS
                          : f->places ? 2u * f->places
                                      : 1);
}

bly_status bly_filter_push(bly_filter *f, bly_filter *layer)
{
    const bly_status st = one_more_place(f);
    if (st) {
        bly_free(layer);
        return st;
    }
    /* Store the layer before the number: a reader that sees the new number also
     * finds the layer. */
    f->layer[f->nlayers] = layer;
    __atomic_store_n(&f->nlayers, (uint8_t)(f->nlayers + 1), __ATOMIC_RELEASE);
    return BLY_OK;
}

static bool settle_all(const bly_filter *f)
{
    struct bly_sums *const sums = bly_filter_sums(f);
    bool right = !sums || bly_sums_settle(sums);
    for (uint32_t i = 0; i < f->nlayers && right; i++)
        right = settle_all(f->layer[i]);
    return right;
}

bly_status bly_filter_settle(const bly_filter *f)
{
    return !bly_filter_unread(f) || settle_all(f) ? BLY_OK : bly_damage(f);
}

void bly_filter_reach(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *bad)
{
    if (!bly_filter_unread(f))
        return;
    /* If the kind cannot tell which bytes a key needs, all of them are checked,
     * and if any are damaged, no answer can be trusted. */
    if (f->kind->reach)
        f->kind->reach(f, h, n, bad);
    else if (!settle_all(f))
        for (size_t i = 0; i < n; i++)
            bad[i / 64] |= UINT64_C(1) << i % 64;
}

void bly_reach_layers(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *bad)
{
    for (uint32_t i = 0; i < f->nlayers; i++)
        bly_filter_reach(f->layer[i], h, n, bad);
}

bly_status bly_damage(const bly_filter *f)
{
    if (!f)
        return bly_fail_null("f");
    const struct bly_sums *const sums = bly_filter_sums(f);
    bly_status st = sums ? bly_sums_status(sums) : BLY_OK;
    for (uint32_t i = 0; i < f->nlayers && !st; i++)
        st = bly_damage(f->layer[i]);
    return st;
}

/* --------------------------------------------------------------- metadata */

static size_t meta_bytes(const bly_meta *meta)
{
    return meta ? sizeof *meta + meta->nbytes : 0;
}

bly_status bly_filter_set_meta(bly_filter *f, bly_keying keying,
                               const unsigned char *at, size_t n)
{
    const bly_mem *const mem = bly_filter_mem(f);
    bly_meta *meta = NULL;
    if (n) {
        if (!bly_filter_extra(f))
            return BLY_ENOMEM;
        meta = bly_mem_zalloc(mem, sizeof *meta + n);
        if (!meta)
            return bly_fail(BLY_ENOMEM, "out of memory");
        meta->keying = keying;
        meta->nbytes = (uint32_t)n;
        memcpy(meta->at, at, n);
    }
    if (bly_filter_has_extra(f)) {
        bly_mem_release(mem, f->extra->meta, meta_bytes(f->extra->meta));
        f->extra->meta = meta;
    }
    return BLY_OK;
}

bly_status bly_filter_inherit(const bly_filter *f, bly_filter *to)
{
    const bly_meta *const meta = f->extra->meta;
    return meta ? bly_filter_set_meta(to, meta->keying, meta->at, meta->nbytes)
                : bly_filter_set_meta(to, (bly_keying){ 0 }, NULL, 0);
}

void bly_filter_bare(const bly_filter *f, bly_filter *bare, bly_extra *extra)
{
    *extra = *f->extra;
    extra->meta = NULL;
    memcpy(bare, f, head_bytes(bly_kind_room(f->kind)));
    bare->extra = extra;
}

bly_status bly_keyings_fit(bly_keying a, bly_keying b)
{
    return bly_key_types_fit(a, b, "filter");
}

bool bly_filter_untouched(const bly_filter *f)
{
    bool untouched = !bly_filter_nadded(f);
    for (uint32_t i = 0; i < f->nlayers && untouched; i++)
        untouched = bly_filter_untouched(f->layer[i]);
    return untouched;
}

/* May the keys of both be in one filter? An empty filter has none that could
 * be missed, and takes over what the other one says. */
static bly_status keys_fit(const bly_filter *a, const bly_filter *b)
{
    const bly_keying of_a = bly_filter_keying(a), of_b = bly_filter_keying(b);
    return bly_filter_silent(a) || bly_filter_silent(b)
               ? BLY_OK
               : bly_keyings_fit(of_a, of_b);
}

/* Allocate first, so that a failure has changed nothing. */
static bly_status rehash_places(bly_filter *f)
{
    bly_status st = bly_filter_extra(f) ? BLY_OK : BLY_ENOMEM;
    for (uint32_t i = 0; i < f->nlayers && !st; i++)
        st = rehash_places(f->layer[i]);
    return st;
}

static void rehash(bly_filter *f, const bly_hasher *hasher,
                   uint64_t secret_check, bool blind)
{
    f->extra->hasher = *hasher;
    f->extra->secret_check = secret_check;
    f->blind = blind;
    for (uint32_t i = 0; i < f->nlayers; i++)
        rehash(f->layer[i], hasher, secret_check, blind);
    bly_filter_ready(f);
}

bly_status bly_filter_rehash(bly_filter *f, const bly_hasher *hasher,
                             uint64_t secret_check, bool blind)
{
    const bly_status st = rehash_places(f);
    if (!st)
        rehash(f, hasher, secret_check, blind);
    return st;
}

/* Release everything that f owns, except the struct itself and, if keep_extra
 * is set, extra. */
static void filter_clear(bly_filter *f, bool keep_extra)
{
    /* Copied, since the allocator may be described in the memory that is
     * released here. */
    const bly_mem mem = *bly_filter_mem(f);
    bly_extra *const e = f->extra;
    const bool kept = keep_extra || !bly_filter_has_extra(f);
    if (f->kind->close)
        f->kind->close(f);
    for (uint32_t i = 0; i < f->nlayers; i++)
        bly_free(f->layer[i]);
    if (f->places)
        bly_mem_release(&mem, f->layer, places_bytes(f->places));
    if (!bly_filter_live(f)) /* its state is in the map */
        bly_mem_release(&mem, f->state, body_size(f));
    bly_mem_release(&mem, e->meta, meta_bytes(e->meta));
    if (e->outside) {
        bly_block_free(&mem, &e->outside->block);
        bly_sums_free(&mem, e->outside->sums);
        if (e->outside->living)
            e->outside->living->leave(e->outside->living);
        if (e->outside->map)
            munmap(e->outside->map, e->outside->map_bytes);
        bly_mem_release(&mem, e->outside, sizeof *e->outside);
        e->outside = NULL;
    }
    if (kept)
        return;
    /* A secret must not be left in freed memory. The pointer is volatile so
     * that the compiler cannot drop the writes. */
    volatile uint64_t *secret = e->hasher.secret;
    secret[0] = secret[1] = 0;
    bly_mem_release(&mem, e, sizeof *e);
}

void bly_free(bly_filter *f)
{
    if (!f)
        return;
    const bly_mem mem = *bly_filter_mem(f);
    filter_clear(f, false);
    bly_mem_release(&mem, f, head_bytes(f->room));
}

bly_part bly_part_of(const bly_filter *src)
{
    return (bly_part){ .bytes = src->data,
                       .nbytes = src->shape.nbytes,
                       .last = true,
                       .src = src };
}

bly_status bly_merge_as_part(bly_filter *dst, const bly_filter *src)
{
    const bly_part all = bly_part_of(src);
    return dst->kind->merge_part(dst, &all);
}

bly_status bly_intersect_as_part(bly_filter *dst, const bly_filter *src)
{
    const bly_part all = bly_part_of(src);
    return dst->kind->intersect_part(dst, &all);
}

bly_status bly_become(bly_filter *f, bly_filter *from)
{
    if (!f || !from)
        return bly_fail_null("f or from");
    const bly_mem mem = *bly_filter_mem(f), *const other = bly_filter_mem(from);
    const unsigned nparams = bly_kind_room(from->kind), room = f->room;
    if (f == from || mem.alloc != other->alloc ||
        mem.release != other->release || mem.ctx != other->ctx)
        return bly_fail(BLY_EINVAL,
                        "a filter becomes another one that was made from it, "
                        "in the same memory");
    const bly_status alone =
        bly_filter_alone(bly_filter_live(f) ? f : from, "be replaced here");
    if (alone)
        return alone;
    if (nparams > room)
        return bly_fail(BLY_EUNFIT,
                        "a filter of kind %s has no place for the parameters "
                        "of kind %s: take the other filter in its place, or "
                        "open it from a file",
                        f->kind->name, from->kind->name);
    /* When a filter grows, its kind makes the successor without metadata, so f
     * keeps its own. Its extra is kept with them, since nothing here may
     * fail. */
    bly_extra *const extra = f->extra;
    bly_meta *const meta = from->extra->meta ? NULL : extra->meta;
    const bool taken = bly_filter_has_extra(f) && !bly_filter_has_extra(from);
    if (meta)
        extra->meta = NULL;
    /* Callers hold f by its address, so the contents move there. */
    filter_clear(f, taken);
    if (taken) {
        *extra = *from->extra;
        from->extra = extra;
    }
    if (meta)
        from->extra->meta = meta;
    memcpy(f, from, head_bytes(nparams));
    f->room = (uint8_t)room;
    bly_mem_release(&mem, from, head_bytes(from->room));
    return BLY_OK;
}

/* Could f give up its extra, since nothing in it is in use? Not if f is shared:
 * readers may be looking at it now. */
static bool extra_is_spare(const bly_filter *f)
{
    const bly_extra *const e = f->extra;
    return bly_filter_has_extra(f) && !f->shared && !e->max_bytes &&
           !e->secret_check && !e->aux && !e->meta && !e->outside &&
           shared_extra(&e->hasher);
}

void bly_limit(bly_filter *f, uint64_t max_bytes)
{
    /* If there is no memory even for this number, there is none for the filter
     * to grow either. */
    if (max_bytes != f->extra->max_bytes && bly_filter_extra(f))
        f->extra->max_bytes = max_bytes;
    if (extra_is_spare(f)) {
        bly_extra *const common = shared_extra(&f->extra->hasher);
        bly_mem_release(bly_filter_mem(f), f->extra, sizeof *f->extra);
        f->extra = common;
    }
}

/* Move the body, which holds state and data. */
static void move_body(bly_filter *f, void *(*move)(void *ctx, void *at),
                      void *ctx)
{
    const size_t before = (size_t)(f->data - (unsigned char *)f->state);
    uint64_t *const state = move(ctx, f->state);
    if (!state)
        return;
    f->state = state;
    if (!f->inside)
        return;
    f->data = body_place(state, state_bytes(f), body_aligned(f));
    memmove(f->data, (unsigned char *)state + before, (size_t)f->shape.nbytes);
}

bly_filter *bly_move(bly_filter *f, bly_mover *move, void *ctx)
{
    /* Move the struct first; after that its old bytes must not be touched. */
    bly_filter *moved = move(ctx, f);
    if (moved)
        f = moved;
    bly_filter **const layer = f->places ? move(ctx, f->layer) : NULL;
    if (layer)
        f->layer = layer;
    for (uint32_t i = 0; i < f->nlayers; i++)
        f->layer[i] = bly_move(f->layer[i], move, ctx);
    if (f->state)
        move_body(f, move, ctx);
    bly_extra *const extra =
        bly_filter_has_extra(f) ? move(ctx, f->extra) : NULL;
    if (extra)
        f->extra = extra;
    bly_outside *const outside =
        f->extra->outside ? move(ctx, f->extra->outside) : NULL;
    if (outside)
        f->extra->outside = outside;
    if (f->extra->outside && f->extra->outside->block.base) {
        bly_block_move(&f->extra->outside->block, move, ctx);
        f->data = f->extra->outside->block.at;
    }
    bly_meta *const meta = f->extra->meta ? move(ctx, f->extra->meta) : NULL;
    if (meta)
        f->extra->meta = meta;
    if (f->kind->aim)
        f->kind->aim(f);
    return f;
}

bool bly_same_hash(const bly_filter *a, const bly_filter *b)
{
    const bly_extra *const x = a->extra, *const y = b->extra;
    return x->hasher.id == y->hasher.id && x->hasher.seed == y->hasher.seed &&
           x->secret_check == y->secret_check;
}

bool bly_same_shape(const bly_filter *a, const bly_filter *b)
{
    return a->kind == b->kind && a->shape.nbytes == b->shape.nbytes &&
           memcmp(a->shape.p, b->shape.p,
                  bly_kind_room(a->kind) * sizeof a->shape.p[0]) == 0;
}

bly_status bly_filter_fits(const bly_filter *a, const bly_filter *b)
{
    if (a->kind != b->kind)
        return bly_fail(BLY_EUNFIT, "filters of kind %s and %s do not combine",
                        a->kind->name, b->kind->name);
    const bool orders = a->kind->has_range != NULL;
    if (orders && (a->extra->hasher.id != b->extra->hasher.id ||
                   a->extra->secret_check != b->extra->secret_check))
        return bly_fail(BLY_EUNFIT, "filters whose keys are in different "
                                    "orders do not combine: text and integers, "
                                    "or text with different beginnings left "
                                    "out; build both from one list of keys");
    /* An empty filter goes with either hash of integers. */
    const bool ints = bly_filter_hashes_ints(a) && bly_filter_hashes_ints(b);
    const bool goes = ints && (bly_filter_silent(a) || bly_filter_silent(b));
    if (ints && !goes && bly_filter_folds(a) != bly_filter_folds(b)) {
        const bly_status st = keys_fit(a, b); /* what is wrong at first */
        return st ? st
                  : bly_fail(BLY_EUNFIT,
                             "filters that hash integers differently do not "
                             "combine: one was made by an older version, or "
                             "for keys whose type was not stated; build both "
                             "for integers, or both with the hash xxh3");
    }
    if (!goes && a->extra->hasher.id != b->extra->hasher.id)
        return bly_fail(BLY_EUNFIT, "a keyed filter does not combine with one "
                                    "that is not: build both with one key, or "
                                    "both without");
    if (a->extra->hasher.seed != b->extra->hasher.seed)
        return bly_fail(BLY_EUNFIT, "filters of different seeds do not "
                                    "combine: build both with one seed");
    if (a->extra->secret_check != b->extra->secret_check)
        return bly_fail(BLY_EUNFIT, "filters of different keys do not combine: "
                                    "build both with one key");
    const bool akin = a->kind->akin && a->kind->akin(&a->shape, &b->shape);
    for (uint32_t i = 0; i < bly_kind_room(a->kind) && !akin; i++)
        if (a->shape.p[i] != b->shape.p[i])
            return bly_fail(BLY_EUNFIT,
                            "filters that differ in %s do not "
                            "combine: build both with one capacity, rate and "
                            "options",
                            a->kind->params[i].name);
    if (!akin && !bly_same_shape(a, b))
        return bly_fail(BLY_EUNFIT, "filters of another shape do not combine");
    return keys_fit(a, b);
}

bool bly_equal(const bly_filter *a, const bly_filter *b)
{
    if (!bly_same_hash(a, b) || !bly_same_shape(a, b) ||
        a->nlayers != b->nlayers ||
        (state_bytes(a) && memcmp(a->state, b->state, state_bytes(a)) != 0))
        return false;
    if (a->shape.nbytes && memcmp(a->data, b->data, a->shape.nbytes) != 0)
        return false;
    for (uint32_t i = 0; i < a->nlayers; i++)
        if (!bly_equal(a->layer[i], b->layer[i]))
            return false;
    return true;
}

uint64_t bly_filter_bytes(const bly_filter *f)
{
    const bly_extra *const e = f->extra;
    uint64_t sum = head_bytes(f->room) + body_size(f) + meta_bytes(e->meta) +
                   (f->inside ? 0 : f->shape.nbytes) +
                   (bly_filter_has_extra(f) ? sizeof *e : 0) +
                   (e->outside ? sizeof *e->outside : 0) +
                   (e->aux ? f->kind->aux_bytes : 0) + places_bytes(f->places);
    for (uint32_t i = 0; i < f->nlayers; i++)
        sum += bly_filter_bytes(f->layer[i]);
    return sum;
}

void bly_filter_share(bly_filter *f, bool shared)
{
    f->shared = shared;
    /* If there is no memory for this, the filter cannot grow either:
     * one_more_place() will say so. */
    if (shared && f->places && f->places < BLY_MAX_LAYERS)
        (void)make_places(f, BLY_MAX_LAYERS);
    bly_filter_ready(f);
    for (uint32_t i = 0; i < f->nlayers; i++)
        bly_filter_share(f->layer[i], shared);
}

void bly_set_coded(bly_filter *f, bool coded)
{
    f->coded = coded;
    for (uint32_t i = 0; i < f->nlayers; i++)
        bly_set_coded(f->layer[i], coded);
}

void bly_set_compact(bly_filter *f, bool compact)
{
    f->former = false;
    f->compact = compact;
}

/* The sum that this processor's writers count in. A line that many of them
 * write would cost each as much as the whole addition. */
static _Atomic uint64_t *live_count(const bly_filter *f)
{
#ifdef __linux__
    const unsigned cpu = (unsigned)sched_getcpu();
#else
    const unsigned cpu = 0;
#endif
    return f->extra->outside->living->counts +
           cpu % BLY_LIVE_COUNTS * (BLY_LINE / sizeof(uint64_t));
}

uint64_t bly_filter_additions(const bly_filter *f)
{
    if (!bly_filter_live(f))
        return bly_filter_nadded(f);
    uint64_t sum = 0;
    for (unsigned i = 0; i < BLY_LIVE_COUNTS; i++)
        sum += atomic_load_explicit(f->extra->outside->living->counts +
                                        i * (BLY_LINE / sizeof(uint64_t)),
                                    memory_order_relaxed);
    /* Removals that nobody had added. */
    return sum >> 63 ? 0 : sum;
}

bly_status bly_filter_alone(const bly_filter *f, const char *what)
{
    return bly_filter_live(f)
               ? bly_fail(BLY_ENOTSUP,
                          "other processes may be using this live filter, "
                          "so it cannot %s: do that to a clone, and put "
                          "it in its place with bly_live_replace()",
                          what)
               : BLY_OK;
}

void bly_filter_added(bly_filter *f, uint64_t n)
{
    /* Relaxed order: nobody relies on the count to see other writes. */
    if (bly_filter_live(f)) {
        if (n)
            atomic_fetch_add_explicit(live_count(f), n, memory_order_relaxed);
    } else if (f->shared)
        atomic_fetch_add_explicit((_Atomic uint64_t *)&f->nadded, n,
                                  memory_order_relaxed);
    else
        f->nadded += n;
}

void bly_filter_removed(bly_filter *f, uint64_t n)
{
    if (bly_filter_live(f)) {
        if (n)
            atomic_fetch_sub_explicit(live_count(f), n, memory_order_relaxed);
        return;
    }
    /* A file may contain any count, and after an intersection nadded is only a
     * bound. */
    if (!f->shared) {
        f->nadded -= n < f->nadded ? n : f->nadded;
        return;
    }
    _Atomic uint64_t *const nadded = (_Atomic uint64_t *)&f->nadded;
    uint64_t was = atomic_load_explicit(nadded, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        nadded, &was, was - (n < was ? n : was), memory_order_relaxed,
        memory_order_relaxed))
        ;
}

void bly_filter_at_most(bly_filter *f, uint64_t n)
{
    if (f->nadded > n)
        f->nadded = n;
}

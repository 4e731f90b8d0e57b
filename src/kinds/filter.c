/*
 * filter.c - the life of a filter: make, release, copy, compare
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "core/status.h"
#include "kinds/filter.h"

bly_setting bly_setting_of(const bly_filter *f)
{
    return (bly_setting){
        .items = f->items,
        .fpr = f->fpr,
        .hasher = f->hasher,
        .secret_check = f->secret_check,
        .shared = f->shared,
        .blind = f->blind,
        .coded = f->coded,
        .max_bytes = f->max_bytes,
        .mem = &f->mem,
    };
}

bly_status bly_filter_shell(const bly_kind *kind, const bly_shape *shape,
                            const bly_setting *set, bly_filter **out)
{
    const bly_mem *mem = set->mem ? set->mem : &bly_mem_system;
    bly_filter *f = bly_mem_zalloc(mem, sizeof *f);
    *out = f;
    if (!f)
        return bly_fail(BLY_ENOMEM, "out of memory");
    *f = (bly_filter){
        .kind = kind,
        .shape = *shape,
        .items = set->items,
        .fpr = set->fpr,
        .hasher = set->hasher,
        .secret_check = set->secret_check,
        .shared = set->shared,
        .blind = set->blind,
        .coded = set->coded,
        .mem = *mem,
        .max_bytes = set->max_bytes,
    };
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
    if (shape->nbytes) {
        st = bly_block_new(&f->mem, shape->nbytes, &f->block);
        if (st) {
            /* Copied, since it lies in what it releases. */
            const bly_mem mem = f->mem;
            bly_mem_release(&mem, f, sizeof *f);
            return st;
        }
        f->data = f->block.at;
    }
    *out = f;
    return BLY_OK;
}

bly_status bly_filter_make(const bly_kind *kind, const bly_shape *shape,
                           const bly_setting *set, bly_filter **out)
{
    bly_filter *f;
    bly_status st = bly_filter_blank(kind, shape, set, &f);
    /* start() makes contents, which a file would bring; open() makes what no
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

bly_status bly_filter_push(bly_filter *f, bly_filter *layer)
{
    bly_status st = BLY_OK;
    if (!f->layer)
        f->layer =
            bly_mem_zalloc(&f->mem, BLY_MAX_LAYERS * sizeof(bly_filter *));
    if (!f->layer)
        st = bly_fail(BLY_ENOMEM, "out of memory");
    else if (f->nlayers == BLY_MAX_LAYERS)
        st = bly_fail(BLY_EFULL, "a filter has at most %d layers",
                      BLY_MAX_LAYERS);
    if (st) {
        bly_free(layer);
        return st;
    }
    /* The layer before the number: a reader who sees the number finds it. */
    f->layer[f->nlayers] = layer;
    __atomic_store_n(&f->nlayers, f->nlayers + 1, __ATOMIC_RELEASE);
    return BLY_OK;
}

static bool settle_all(const bly_filter *f)
{
    bool right = !f->sums || bly_sums_settle(f->sums);
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
    /* A kind that cannot tell which bytes a key needs has all of them checked,
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
    bly_status st = f->sums ? bly_sums_status(f->sums) : BLY_OK;
    for (uint32_t i = 0; i < f->nlayers && !st; i++)
        st = bly_damage(f->layer[i]);
    return st;
}

/* --------------------------------------------------------------- metadata */

static size_t meta_bytes(const bly_filter *f)
{
    return f->meta ? sizeof *f->meta + f->meta->nbytes : 0;
}

static void meta_free(bly_filter *f)
{
    if (f->meta)
        bly_mem_release(&f->mem, f->meta, meta_bytes(f));
    f->meta = NULL;
}

bly_status bly_filter_set_meta(bly_filter *f, bly_keying keying,
                               const unsigned char *at, size_t n)
{
    bly_meta *meta = NULL;
    if (n) {
        meta = bly_mem_zalloc(&f->mem, sizeof *meta + n);
        if (!meta)
            return bly_fail(BLY_ENOMEM, "out of memory");
        meta->keying = keying;
        meta->nbytes = (uint32_t)n;
        memcpy(meta->at, at, n);
    }
    meta_free(f);
    f->meta = meta;
    return BLY_OK;
}

bly_status bly_filter_inherit(const bly_filter *f, bly_filter *to)
{
    return f->meta ? bly_filter_set_meta(to, f->meta->keying, f->meta->at,
                                         f->meta->nbytes)
                   : bly_filter_set_meta(to, (bly_keying){ 0 }, NULL, 0);
}

const char *bly_key_type_name(bly_key_type type)
{
    static const char *const names[] = { NULL, "text", "bytes", "int64",
                                         "uint64" };
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : NULL;
}

const char *bly_key_type_word(bly_key_type type)
{
    const char *const word = bly_key_type_name(type);
    return word ? word : "of no known type";
}

bly_status bly_keyings_fit(bly_keying a, bly_keying b)
{
    if (a.type && b.type && a.type != b.type)
        return bly_fail(BLY_EUNFIT,
                        "filters whose keys are %s and %s do not combine: "
                        "build both from keys of one type",
                        bly_key_type_word(a.type), bly_key_type_word(b.type));
    /* Keys that are folded when they are asked for miss those of a filter that
     * was built without. */
    if (a.forms != b.forms && (!a.type || !b.type))
        return bly_fail(BLY_EUNFIT,
                        "a filter whose keys were folded or trimmed does not "
                        "combine with one that does not say what its keys are");
    if (a.forms != b.forms)
        return bly_fail(BLY_EUNFIT,
                        "filters whose keys were folded or trimmed in "
                        "different ways do not combine: build both alike");
    return BLY_OK;
}

void bly_free(bly_filter *f)
{
    if (!f)
        return;
    if (f->kind->close)
        f->kind->close(f);
    for (uint32_t i = 0; i < f->nlayers; i++)
        bly_free(f->layer[i]);
    if (f->layer)
        bly_mem_release(&f->mem, f->layer,
                        BLY_MAX_LAYERS * sizeof(bly_filter *));
    bly_block_free(&f->mem, &f->block);
    bly_sums_free(&f->mem, f->sums);
    meta_free(f);
    if (f->map)
        munmap(f->map, f->map_bytes);
    const bly_mem mem = f->mem;
    /* A secret must not lie about in freed memory; through a volatile pointer
     * the compiler may not leave the writes out. */
    volatile uint64_t *secret = f->hasher.secret;
    secret[0] = secret[1] = 0;
    bly_mem_release(&mem, f, sizeof *f);
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
    if (f == from || f->mem.alloc != from->mem.alloc ||
        f->mem.release != from->mem.release || f->mem.ctx != from->mem.ctx)
        return bly_fail(BLY_EINVAL,
                        "a filter becomes another one that was made from it, "
                        "in the same memory");
    /* Callers hold f by its address, so the contents change places, and the old
     * ones are freed with the other struct. */
    const bly_filter old = *f;
    *f = *from;
    *from = old;
    /* A kind that grows makes its successor without metadata. */
    if (!f->meta) {
        f->meta = from->meta;
        from->meta = NULL;
    }
    bly_free(from);
    return BLY_OK;
}

bly_filter *bly_move(bly_filter *f, void *(*move)(void *ctx, void *at),
                     void *ctx)
{
    /* The struct first: from then on its old bytes must not be touched. */
    bly_filter *moved = move(ctx, f);
    if (moved)
        f = moved;
    bly_filter **const layer = f->layer ? move(ctx, f->layer) : NULL;
    if (layer)
        f->layer = layer;
    for (uint32_t i = 0; i < f->nlayers; i++)
        f->layer[i] = bly_move(f->layer[i], move, ctx);
    if (f->block.base) {
        bly_block_move(&f->block, move, ctx);
        f->data = f->block.at;
    }
    bly_meta *const meta = f->meta ? move(ctx, f->meta) : NULL;
    if (meta)
        f->meta = meta;
    return f;
}

bly_status bly_filter_copy(const bly_filter *f, bly_filter **out)
{
    const bly_setting set = bly_setting_of(f);
    bly_filter *copy;
    *out = NULL;
    bly_status st = bly_filter_blank(f->kind, &f->shape, &set, &copy);
    if (st)
        return st;
    memcpy(copy->state, f->state, sizeof copy->state);
    copy->nadded = f->nadded;
    /* No start(): state and data come from f. */
    if (f->shape.nbytes)
        memcpy(copy->data, f->data, f->shape.nbytes);
    /* The file may have changed since it was verified. */
    if (f->readonly && f->kind->check && !f->kind->check(copy))
        st = bly_fail(BLY_EFORMAT, "damaged: its file changed while it was "
                                   "copied (restore it, or try again)");
    for (uint32_t i = 0; i < f->nlayers && !st; i++) {
        bly_filter *layer;
        st = bly_filter_copy(f->layer[i], &layer);
        if (!st)
            st = bly_filter_push(copy, layer);
    }
    if (!st && f->kind->open)
        st = f->kind->open(copy);
    if (!st)
        st = bly_filter_inherit(f, copy);
    if (st) {
        bly_free(copy);
        return st;
    }
    bly_filter_ready(copy);
    *out = copy;
    return BLY_OK;
}

bool bly_same_hash(const bly_filter *a, const bly_filter *b)
{
    return a->hasher.id == b->hasher.id && a->hasher.seed == b->hasher.seed &&
           a->secret_check == b->secret_check;
}

static bool same_shape(const bly_filter *a, const bly_filter *b)
{
    return a->kind == b->kind && a->shape.nbytes == b->shape.nbytes &&
           memcmp(a->shape.p, b->shape.p, sizeof a->shape.p) == 0;
}

bly_status bly_filter_fits(const bly_filter *a, const bly_filter *b)
{
    if (a->kind != b->kind)
        return bly_fail(BLY_EUNFIT, "filters of kind %s and %s do not combine",
                        a->kind->name, b->kind->name);
    if (a->hasher.id != b->hasher.id)
        return bly_fail(BLY_EUNFIT, "a keyed filter does not combine with one "
                                    "that is not: build both with one key, or "
                                    "both without");
    if (a->hasher.seed != b->hasher.seed)
        return bly_fail(BLY_EUNFIT, "filters of different seeds do not "
                                    "combine: build both with one seed");
    if (a->secret_check != b->secret_check)
        return bly_fail(BLY_EUNFIT, "filters of different keys do not combine: "
                                    "build both with one key");
    const bool akin = a->kind->akin && a->kind->akin(&a->shape, &b->shape);
    for (uint32_t i = 0; i < a->kind->nparams && !akin; i++)
        if (a->shape.p[i] != b->shape.p[i])
            return bly_fail(BLY_EUNFIT,
                            "filters that differ in %s do not "
                            "combine: build both with one capacity, rate and "
                            "options",
                            a->kind->params[i].name);
    if (!akin && !same_shape(a, b))
        return bly_fail(BLY_EUNFIT, "filters of another shape do not combine");
    return bly_keyings_fit(bly_filter_keying(a), bly_filter_keying(b));
}

bool bly_equal(const bly_filter *a, const bly_filter *b)
{
    if (!bly_same_hash(a, b) || !same_shape(a, b) || a->nlayers != b->nlayers ||
        memcmp(a->state, b->state, sizeof a->state) != 0)
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
    uint64_t sum = sizeof *f + f->shape.nbytes + meta_bytes(f) +
                   (f->aux ? f->kind->aux_bytes : 0) +
                   (f->layer ? BLY_MAX_LAYERS * sizeof(bly_filter *) : 0);
    for (uint32_t i = 0; i < f->nlayers; i++)
        sum += bly_filter_bytes(f->layer[i]);
    return sum;
}

void bly_filter_share(bly_filter *f, bool shared)
{
    f->shared = shared;
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

void bly_filter_added(bly_filter *f, uint64_t n)
{
    /* Relaxed: nobody infers from the count what has been written. */
    if (f->shared)
        atomic_fetch_add_explicit((_Atomic uint64_t *)&f->nadded, n,
                                  memory_order_relaxed);
    else
        f->nadded += n;
}

void bly_filter_removed(bly_filter *f, uint64_t n)
{
    /* A file may say anything, and after an intersection nadded is a bound. */
    f->nadded -= n < f->nadded ? n : f->nadded;
}

void bly_filter_at_most(bly_filter *f, uint64_t n)
{
    if (f->nadded > n)
        f->nadded = n;
}

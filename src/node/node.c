/*
 * node.c - a node: its own keys and its links
 *
 *     bly_node
 *     +-------+------+
 *     | local | edge-|-> "east"  heard: levels 0 .. d-1   told: the same
 *     +---|---+------+   "west"  heard: levels 0 .. d-1   told: the same
 *         v
 *     counting, m cells
 *
 * A node's own keys are counted, so that they can be removed: a cell that is
 * not zero is a bit of level 0 of what is told. Deeper levels have no counters.
 * They are made anew from the bits of the other links whenever the node tells
 * something (news.c): one pass over the levels, which finding the flips needs
 * anyway. Counters for each level would save nothing and take four times the
 * memory.
 *
 * What a link told is soft: it goes when the neighbour has been silent for the
 * ttl. Times come from the caller and never run backwards here.
 */
#include <math.h>

#include "api/plan.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/meta.h"
#include "kinds/classic.h"
#include "node/node_levels.h"

/* -------------------------------------------------------------------- life */

/* An empty counting filter whose cells are those of a classic level. */
static bly_status local_make(uint64_t m, uint64_t k, const bly_setting *levels,
                             bly_filter **out)
{
    const bly_kind *const kind = &bly_kind_counting;
    bly_want w = { .items = levels->items, .bits = m * BLY_NODE_WIDTH };
    bly_setting set = *levels;
    bly_shape shape;
    bly_status st = bly_want_set(kind, &w, "k", k);
    if (!st)
        st = bly_want_set(kind, &w, "width", BLY_NODE_WIDTH);
    if (!st)
        st = kind->plan(&w, &shape);
    if (st)
        return st;
    set.fpr = kind->rate(&shape, (double)set.items);
    set.coded = true; /* most cells are zero */
    return bly_filter_make(kind, &shape, &set, out);
}

static uint64_t node_fit(const bly_node *v)
{
    const uint64_t is[] = { v->depth, v->m, v->k, v->set.hasher.id,
                            v->set.secret_check ? v->set.secret_check
                                                : v->set.hasher.seed };
    unsigned char bytes[sizeof is];
    for (size_t i = 0; i < sizeof is / sizeof is[0]; i++)
        bly_store64(bytes + 8 * i, is[i]);
    return bly_checksum(bytes, sizeof bytes);
}

bly_status bly_node_around(bly_filter *local, uint64_t depth,
                           uint64_t max_bytes, bly_node **out)
{
    const bly_mem mem = *bly_filter_mem(local);
    bly_node *const v = bly_mem_zalloc(&mem, sizeof *v);
    bly_status st = BLY_OK;
    *out = NULL;
    if (v) {
        *v = (bly_node){ .mem = mem,
                         .local = local,
                         .depth = depth,
                         .set = bly_setting_of(local),
                         .max_bytes = max_bytes,
                         .change = 1 };
        v->set.mem = &v->mem;
        v->set.fpr = NAN;
        v->set.coded = false;
        v->set.max_bytes = 0; /* counted for all filters together */
        st = bly_shape_get(local->kind, &local->shape, "counters", &v->m);
        if (!st)
            st = bly_shape_get(local->kind, &local->shape, "k", &v->k);
        if (!st)
            st = bly_attenuated_shape(depth, v->m, v->k, &v->shape);
        v->fit = node_fit(v);
    } else {
        st = bly_fail(BLY_ENOMEM, "out of memory");
        bly_free(local);
    }
    if (st)
        bly_node_free(v);
    else
        *out = v;
    return st;
}

bly_status bly_node_new_sized(const bly_spec *spec, uint64_t life, uint64_t ttl,
                              bly_node **out, size_t size)
{
    bly_spec own;
    bly_planned plan;
    bly_filter *local;
    uint64_t depth, m, k, layer;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    own = *spec;
    if (!own.kind)
        own.kind = bly_kind_attenuated.name;
    bly_status st = bly_plan_spec(&own, &plan);
    if (st)
        return st;
    if (plan.kind != &bly_kind_attenuated)
        return bly_fail(BLY_EINVAL,
                        "a node consists of attenuated filters, not %s ones",
                        plan.kind->name);
    if (spec->shared)
        return bly_fail(BLY_EINVAL, "a node has one writer: leave shared out");
    if (!life)
        return bly_fail(BLY_EINVAL, "the lives of a node are numbered from 1");
    const bly_kind *const kind = plan.kind;
    if ((st = bly_shape_get(kind, &plan.shape, "depth", &depth)) ||
        (st = bly_shape_get(kind, &plan.shape, "level_bits", &m)) ||
        (st = bly_shape_get(kind, &plan.shape, "k", &k)) ||
        (st = bly_shape_get(kind, &plan.shape, "layer", &layer)))
        return st;
    if (layer)
        return bly_fail(BLY_EINVAL, "the levels of a node are classic: it "
                                    "counts its own keys in the same cells");
    st = local_make(m, k, &plan.set, &local);
    if (!st)
        st = bly_node_around(local, depth, spec->max_bytes, out);
    if (!st) {
        (*out)->life = life;
        (*out)->ttl = ttl;
    }
    return st;
}

static void edge_free(const bly_node *v, bly_edge *e)
{
    bly_free(e->heard);
    bly_free(e->told);
    bly_mem_release(&v->mem, e, sizeof *e + e->nname + 1);
}

void bly_node_free(bly_node *v)
{
    if (!v)
        return;
    const bly_mem mem = v->mem;
    for (size_t i = 0; i < v->nedges; i++)
        edge_free(v, v->edge[i]);
    bly_mem_release(&mem, v->edge, v->room * sizeof(bly_edge *));
    bly_free(v->local);
    bly_mem_release(&mem, v, sizeof *v);
}

uint64_t bly_node_held(const bly_node *v)
{
    uint64_t n = bly_filter_bytes(v->local);
    for (size_t i = 0; i < v->nedges; i++) {
        if (v->edge[i]->heard)
            n += bly_filter_bytes(v->edge[i]->heard);
        if (v->edge[i]->told)
            n += bly_filter_bytes(v->edge[i]->told);
    }
    return n;
}

bly_status bly_node_levels(const bly_node *v, bly_filter **out)
{
    *out = NULL;
    if (v->max_bytes) {
        const uint64_t held = bly_node_held(v);
        /* m is at most 2^48, depth 16: this is below 2^50. */
        const uint64_t more =
            v->depth * (bly_classic_nbytes(v->m) + sizeof(bly_filter));
        if (held > v->max_bytes || more > v->max_bytes - held)
            return bly_fail(BLY_ERANGE,
                            "the filters of the node need more than %llu "
                            "bytes, which is the limit",
                            (unsigned long long)v->max_bytes);
    }
    return bly_filter_make(&bly_kind_attenuated, &v->shape, &v->set, out);
}

/* -------------------------------------------------------------------- keys */

const bly_hasher *bly_node_hasher(const bly_node *v)
{
    return &v->local->extra->hasher;
}

bly_status bly_node_add_hashes(bly_node *v, const uint64_t *hashes, size_t n)
{
    if (!v || (!hashes && n))
        return bly_fail_null("v or hashes");
    v->change++;
    /* Counters that are full stay so: nothing can fail. */
    return bly_add_hashes(v->local, hashes, n, NULL, NULL);
}

bly_status bly_node_remove_hashes(bly_node *v, const uint64_t *hashes, size_t n,
                                  bly_status *each)
{
    if (!v || (!hashes && n))
        return bly_fail_null("v or hashes");
    v->change++;
    return bly_remove_hashes(v->local, hashes, n, each);
}

bly_status bly_node_add(bly_node *v, const void *key, size_t len)
{
    if (!v || (!key && len))
        return bly_fail_null("v or key");
    v->change++;
    return bly_add(v->local, key, len);
}

bly_status bly_node_remove(bly_node *v, const void *key, size_t len)
{
    if (!v || (!key && len))
        return bly_fail_null("v or key");
    v->change++;
    return bly_remove(v->local, key, len);
}

/* ------------------------------------------------------------------- links */

/* By bytes; of two that begin alike the shorter one is first. */
static int name_order(const bly_edge *e, bly_bytes name)
{
    const size_t n = e->nname < name.len ? e->nname : name.len;
    const int first = memcmp(e->name, name.ptr, n);
    return first ? first : (e->nname > name.len) - (e->nname < name.len);
}

/* Where the link is, or would be. */
static size_t edge_place(const bly_node *v, bly_bytes name)
{
    size_t low = 0, high = v->nedges;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (name_order(v->edge[mid], name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool edge_is_at(const bly_node *v, size_t i, bly_bytes name)
{
    return i < v->nedges && name_order(v->edge[i], name) == 0;
}

/* Whether a link is at *i, and where it would be. */
static bly_status edge_find(const bly_node *v, const char *name, size_t *i)
{
    const bly_bytes is = { name, strlen(name) };
    *i = edge_place(v, is);
    return edge_is_at(v, *i, is)
               ? BLY_OK
               : bly_fail(BLY_EINVAL, "the node has no link called \"%.64s\"",
                          name);
}

bly_edge *bly_node_edge(const bly_node *v, const char *name)
{
    size_t i;
    return edge_find(v, name, &i) ? NULL : v->edge[i];
}

/* Room for one link more. */
static bly_status edges_grow(bly_node *v)
{
    if (v->nedges < v->room)
        return BLY_OK;
    if (v->nedges == BLY_LINKS_MOST)
        return bly_fail(BLY_EFULL, "a node has at most %d links",
                        BLY_LINKS_MOST);
    const size_t room = v->room ? 2 * v->room : 8;
    bly_edge **const more = bly_mem_zalloc(&v->mem, room * sizeof *more);
    if (!more)
        return bly_fail(BLY_ENOMEM, "out of memory");
    if (v->nedges)
        memcpy(more, v->edge, v->nedges * sizeof(bly_edge *));
    bly_mem_release(&v->mem, v->edge, v->room * sizeof(bly_edge *));
    v->edge = more;
    v->room = room;
    return BLY_OK;
}

bly_status bly_node_link_named(bly_node *v, bly_bytes name, bly_edge **out)
{
    const char *const wrong = bly_text_wrong(name);
    if (!name.len || name.len > BLY_LINK_NAME_MOST)
        return bly_fail(BLY_EINVAL,
                        "the name of a link has 1 to %d bytes, "
                        "not %zu",
                        BLY_LINK_NAME_MOST, name.len);
    if (wrong)
        return bly_fail(BLY_EINVAL, "the name of the link %s", wrong);
    const size_t i = edge_place(v, name);
    if (edge_is_at(v, i, name))
        return bly_fail(BLY_EINVAL, "the node has a link called \"%.*s\"",
                        (int)name.len, (const char *)name.ptr);
    const bly_status st = edges_grow(v);
    if (st)
        return st;
    bly_edge *const e = bly_mem_zalloc(&v->mem, sizeof *e + name.len + 1);
    if (!e)
        return bly_fail(BLY_ENOMEM, "out of memory");
    e->nname = name.len;
    memcpy(e->name, name.ptr, name.len);
    memmove(v->edge + i + 1, v->edge + i, (v->nedges - i) * sizeof(bly_edge *));
    v->edge[i] = e;
    v->nedges++;
    *out = e;
    return BLY_OK;
}

bly_status bly_node_link(bly_node *v, const char *name)
{
    bly_edge *e;
    if (!v || !name)
        return bly_fail_null("v or name");
    return bly_node_link_named(v, (bly_bytes){ name, strlen(name) }, &e);
}

bly_status bly_node_unlink(bly_node *v, const char *name)
{
    size_t i;
    if (!v || !name)
        return bly_fail_null("v or name");
    const bly_status st = edge_find(v, name, &i);
    if (st)
        return st;
    edge_free(v, v->edge[i]);
    v->nedges--;
    memmove(v->edge + i, v->edge + i + 1, (v->nedges - i) * sizeof(bly_edge *));
    v->change++;
    return BLY_OK;
}

void bly_edge_set_heard(bly_node *v, bly_edge *e, bly_filter *f)
{
    bly_free(e->heard);
    e->heard = f;
    v->change++;
    for (uint32_t j = 0; f && j < f->nlayers; j++) {
        bly_stats stats = { 0 };
        f->layer[j]->kind->stat(f->layer[j], &stats);
        e->rate[j] = stats.fpr_now;
    }
}

bly_status bly_node_tick(bly_node *v, uint64_t now, size_t *nexpired)
{
    size_t n = 0;
    if (!v)
        return bly_fail_null("v");
    if (v->now < now)
        v->now = now;
    for (size_t i = 0; v->ttl && i < v->nedges; i++) {
        bly_edge *const e = v->edge[i];
        if (!e->heard || v->now - e->heard_at < v->ttl)
            continue;
        bly_edge_set_heard(v, e, NULL);
        e->life = e->version = e->heard_at = 0;
        e->lost = false;
        n++;
    }
    if (nexpired)
        *nexpired = n;
    return BLY_OK;
}

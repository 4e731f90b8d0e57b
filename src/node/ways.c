/*
 * ways.c - where a key is nearest
 *
 * Level j of what a link told is j hops behind the neighbour, so j + 1 hops
 * from here. A key may be at several levels: at those of longer paths, too, and
 * by chance. The least one counts, since it is never more than the truth.
 *
 * Asking looks at all levels of all links, at most k probes in each. A key that
 * is nowhere is found with 1 - product of (1 - f) over all of them, which
 * deep levels, with more keys in them, decide. So a match at level j is worth
 * 1 - f_j, and half as much as one at the level before: the potential function
 * of Rhea and Kubiatowicz, by which equally near links are ordered.
 */
#include <math.h>
#include <string.h>

#include "core/sized.h"
#include "core/status.h"
#include "node/node_levels.h"

#define NODE_HERE UINT32_MAX /* the index of the node itself */

/* ------------------------------------------------------------------ asking */

/* The least level of e that may have the key, and the weight of all of them;
 * false if there is none. */
static bool edge_has(const bly_edge *e, uint64_t hash, uint32_t *level,
                     double *weight)
{
    bool found = false;
    *weight = 0;
    for (uint32_t j = 0; e->heard && j < e->heard->nlayers; j++) {
        if (!bly_has_hash(e->heard->layer[j], hash))
            continue;
        if (!found)
            *level = j;
        found = true;
        *weight += ldexp(1 - e->rate[j], -(int)j);
    }
    return found;
}

static bool way_before(const bly_way *a, const bly_way *b)
{
    return a->hops != b->hops ? a->hops < b->hops : a->weight > b->weight;
}

size_t bly_node_find_hash(const bly_node *v, uint64_t hash, bly_way *ways,
                          size_t n)
{
    size_t found = 0, kept = 0;
    if (bly_has_hash(v->local, hash)) {
        found++;
        if (n)
            ways[kept++] = (bly_way){ NULL, NODE_HERE, 0, 1 };
    }
    for (size_t i = 0; i < v->nedges; i++) {
        bly_way way = { .link = v->edge[i]->name, .index = (uint32_t)i };
        uint32_t level;
        if (!edge_has(v->edge[i], hash, &level, &way.weight))
            continue;
        found++;
        way.hops = level + 1;
        /* Into its place among those that are kept; links come in the order of
         * their names, and equal ones stay in it. */
        size_t at = kept;
        while (at && way_before(&way, &ways[at - 1]))
            at--;
        if (at == n)
            continue;
        kept += kept < n;
        memmove(ways + at + 1, ways + at, (kept - at - 1) * sizeof *ways);
        ways[at] = way;
    }
    return found;
}

size_t bly_node_find(const bly_node *v, const void *key, size_t len,
                     bly_way *ways, size_t n)
{
    return bly_node_find_hash(v, bly_hash(bly_node_hasher(v), key, len), ways,
                              n);
}

/* Keys that are asked for together: what is known of them stays in L1. */
#define NODE_GROUP 512

static bly_status group_distances(const bly_node *v, const uint64_t *h,
                                  size_t n, uint32_t *hops, uint32_t *links)
{
    uint64_t maybe[BLY_BITMAP_WORDS(NODE_GROUP)], level[NODE_GROUP];
    bly_has_hashes(v->local, h, n, maybe);
    for (size_t k = 0; k < n; k++) {
        hops[k] = maybe[k / 64] >> k % 64 & 1 ? 0 : BLY_OUT_OF_REACH;
        if (links)
            links[k] = NODE_HERE;
    }
    for (size_t i = 0; i < v->nedges; i++) {
        if (!v->edge[i]->heard)
            continue;
        const bly_status st =
            bly_get_hashes(v->edge[i]->heard, h, n, level, maybe);
        if (st)
            return st;
        for (size_t k = 0; k < n; k++) {
            if (!(maybe[k / 64] >> k % 64 & 1) || level[k] + 1 >= hops[k])
                continue;
            hops[k] = (uint32_t)level[k] + 1;
            if (links)
                links[k] = (uint32_t)i;
        }
    }
    return BLY_OK;
}

bly_status bly_node_distances(const bly_node *v, const uint64_t *hashes,
                              size_t n, uint32_t *hops, uint32_t *links)
{
    bly_status st = BLY_OK;
    if (!v || ((!hashes || !hops) && n))
        return bly_fail_null("v or hashes or hops");
    for (size_t at = 0; at < n && !st; at += NODE_GROUP)
        st = group_distances(v, hashes + at,
                             n - at < NODE_GROUP ? n - at : NODE_GROUP,
                             hops + at, links ? links + at : NULL);
    return st;
}

/* ----------------------------------------------------------------- knowing */

/* log of the chance that no level of e is wrong. */
static double edge_pass(const bly_edge *e)
{
    double pass = 0;
    for (uint32_t j = 0; e->heard && j < e->heard->nlayers; j++)
        pass += log1p(-e->rate[j]);
    return pass;
}

bool bly_node_link_at_sized(const bly_node *v, size_t i, bly_link *out,
                            size_t size)
{
    if (i >= v->nedges)
        return false;
    const bly_edge *const e = v->edge[i];
    bly_link is;
    memset(&is, 0, sizeof is); /* what lies between fields too */
    is.name = e->name;
    is.heard = e->heard;
    is.lost = e->lost;
    is.heard_at = e->heard_at;
    is.life = e->life;
    is.version = e->version;
    is.told = e->told_version;
    is.fpr = 0 - expm1(edge_pass(e)); /* not -0 */
    is.f = e->heard;
    BLY_GIVE(&is, out, size);
    return true;
}

void bly_node_stat_sized(const bly_node *v, bly_node_stats *out, size_t size)
{
    bly_stats local = { 0 };
    bly_node_stats is = {
        .depth = (unsigned)v->depth,
        .k = (unsigned)v->k,
        .level_bits = v->m,
        .keys = v->local->nadded,
        .links = v->nedges,
        .life = v->life,
        .ttl = v->ttl,
        .now = v->now,
        .bytes = sizeof *v + bly_node_held(v) + v->room * sizeof(bly_edge *),
    };
    v->local->kind->stat(v->local, &local);
    double pass = log1p(-local.fpr_now);
    for (size_t i = 0; i < v->nedges; i++) {
        const bly_edge *const e = v->edge[i];
        is.bytes += sizeof *e + e->nname + 1;
        is.heard += e->heard != NULL;
        is.lost += e->lost;
        pass += edge_pass(e);
    }
    is.fpr = 0 - expm1(pass);
    BLY_GIVE(&is, out, size);
}

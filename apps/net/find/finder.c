/*
 * finder.c - a server that knows what is offered near it, and below it
 */
#include "apps/net/find/finder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/say.h"

#define TAG_PARENT UINT64_MAX
/* The filter of a subtree has room for the keys of so many servers. */
#define SUMMARY_FACTOR 64

void finder_usual(struct finder_args *args)
{
    args->services = args->services ? args->services : 1000;
    args->keys = args->keys ? args->keys : 1000;
    args->depth = args->depth ? args->depth : 3;
    args->life = args->life ? args->life : 10000;
}

uint64_t finder_network(const char *name, const struct finder_args *args)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = args->keys };
    char text[300];
    const int n = snprintf(text, sizeof text, "finder %u %.255s",
                           (unsigned)args->depth, name);
    return bly_hash(&h, text, (size_t)n);
}

/* ----------------------------------------------------------------- services */

static void finder_changed(struct finder *f)
{
    bly_free(f->below);
    f->below = NULL;
}

/* Its keys come to the own ones, or go. */
static bool keys_changed(void *ctx, const struct service *s, bool comes)
{
    struct finder *const f = ctx;
    uint64_t keys[SERVICE_KEYS];
    const size_t n = service_keys(s, keys);
    finder_changed(f);
    if (comes)
        return bly_node_add_hashes(f->node, keys, n) == BLY_OK;
    /* What was added can be removed. */
    return bly_node_remove_hashes(f->node, keys, n, NULL) == BLY_OK;
}

bool finder_new(struct finder *f, const struct finder_args *args, uint64_t life)
{
    char depth[24];
    f->args = *args;
    finder_usual(&f->args);
    snprintf(depth, sizeof depth, "%llu", (unsigned long long)f->args.depth);
    const bly_option options[] = { { "depth", depth }, { "degree", "4" } };
    const bly_spec spec = {
        .items = f->args.keys, .fpr = 0.01, .options = options, .noptions = 2
    };
    if (bly_node_new(&spec, life, f->args.life, &f->node))
        return refuse_library();
    f->services = (struct services){ .most = (size_t)f->args.services,
                                     .changed = keys_changed,
                                     .ctx = f };
    return true;
}

void finder_free(struct finder *f)
{
    f->services.changed = NULL;
    services_free(&f->services);
    bly_node_free(f->node);
    bly_free(f->below);
    for (size_t i = 0; i < f->nchildren; i++)
        bly_free(f->children[i].below);
    blob_free(&f->blob);
}

/* ---------------------------------------------------------------- addresses */

void finder_put_address(struct blob *b, const struct address *a)
{
    blob_number(b, a->family, 1);
    blob_bytes(b, a->at, sizeof a->at);
    blob_number(b, a->port, 2);
}

bool finder_take_address(struct body *b, struct address *a)
{
    memset(a, 0, sizeof *a);
    a->family = (uint8_t)body_number(b, 1);
    const unsigned char *const at = body_bytes(b, sizeof a->at);
    a->port = (uint16_t)body_number(b, 2);
    if (!at || b->bad || (a->family != 4 && a->family != 6) || !a->port)
        return false;
    memcpy(a->at, at, sizeof a->at);
    return true;
}

/* --------------------------------------------------------------- neighbours */

static struct finder_link *link_at(struct finder *f, const struct address *at)
{
    for (size_t i = 0; i < f->nlinks; i++)
        if (address_equal(&f->links[i].at, at))
            return &f->links[i];
    return NULL;
}

static struct finder_link *link_new(struct finder *f, const struct address *at)
{
    if (f->nlinks == FINDER_LINKS || address_equal(at, &f->self))
        return NULL;
    struct finder_link *const l = &f->links[f->nlinks];
    *l = (struct finder_link){ .at = *at };
    address_text(at, l->name);
    if (bly_node_link(f->node, l->name))
        return NULL;
    f->nlinks++;
    return l;
}

bool finder_link(struct finder *f, const struct address *at)
{
    struct finder_link *l = link_at(f, at);
    if (!l)
        l = link_new(f, at);
    if (!l)
        return refuse("at most %d neighbours, and not oneself", FINDER_LINKS);
    l->given = true;
    return true;
}

struct telling {
    struct finder *f;
    const struct finder_link *to;
};

static bool tell_bytes(void *ctx, const void *bytes, size_t n)
{
    const struct telling *const t = ctx;
    struct finder *const f = t->f;
    blob_start(&f->blob);
    finder_put_address(&f->blob, &f->self);
    blob_bytes(&f->blob, bytes, n);
    return !f->blob.failed;
}

static void tell_link(struct finder *f, size_t i)
{
    struct finder_link *const l = &f->links[i];
    struct telling t = { f, l };
    /* Servers that were silent are tried less and less often. */
    if (l->wait) {
        l->wait--;
        return;
    }
    if (!bly_node_tell(f->node, l->name, tell_bytes, &t, NULL))
        f->ask(f->ctx, &l->at, FINDER_NEWS, &f->blob, i);
}

static unsigned slower(unsigned silent)
{
    return silent > 5 ? FINDER_SLOWEST : (1u << silent) - 1;
}

/* A neighbour that introduced itself and has fallen silent is dropped. */
static void forget_links(struct finder *f)
{
    bly_link known;
    for (size_t i = 0; i < f->nlinks;) {
        struct finder_link *const l = &f->links[i];
        bool heard = false;
        for (size_t k = 0; bly_node_link_at(f->node, k, &known); k++)
            if (strcmp(known.name, l->name) == 0)
                heard = known.heard;
        if (l->given || heard || bly_node_unlink(f->node, l->name)) {
            i++;
            continue;
        }
        f->links[i] = f->links[--f->nlinks];
    }
}

static enum frame_error hear_news(struct finder *f, struct body *b,
                                  const char **why)
{
    struct address from;
    *why = "news that are none";
    if (!finder_take_address(b, &from))
        return FRAME_WRONG;
    struct finder_link *l = link_at(f, &from);
    const bool fresh = !l;
    if (!l)
        l = link_new(f, &from);
    if (!l) {
        f->refused++;
        *why = "no room for another neighbour";
        return FRAME_FULL;
    }
    if (bly_node_hear(f->node, l->name, b->at, b->n, f->now, NULL)) {
        f->refused++;
        if (fresh && !bly_node_unlink(f->node, l->name))
            f->nlinks--;
        return FRAME_WRONG;
    }
    l->silent = l->wait = 0; /* it lives */
    f->news++;
    blob_start(&f->blob);
    return (enum frame_error)0;
}

/* ---------------------------------------------------------------- hierarchy */

static bly_status below_new(const struct finder *f, bly_filter **out)
{
    const bly_spec spec = { .kind = "classic",
                            .items = f->args.keys * SUMMARY_FACTOR,
                            .fpr = 0.01 };
    return bly_new(&spec, out);
}

static bool sum_bytes(void *ctx, const void *bytes, size_t n)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = *(uint64_t *)ctx };
    *(uint64_t *)ctx = bly_hash(&h, bytes, n);
    return true;
}

/* The filter of everything here and below, made again after a change. */
static bool below_make(struct finder *f)
{
    if (f->below)
        return true;
    bly_status st = below_new(f, &f->below);
    for (size_t i = 0; i < f->services.n && !st; i++) {
        uint64_t keys[SERVICE_KEYS];
        const size_t n = service_keys(&f->services.rows[i].service, keys);
        st = bly_add_hashes(f->below, keys, n, NULL, NULL);
    }
    for (size_t i = 0; i < f->nchildren && !st; i++)
        if (f->children[i].below)
            st = bly_merge(f->below, f->children[i].below);
    f->below_sum = 1;
    if (!st)
        st = bly_write(f->below, sum_bytes, &f->below_sum);
    if (st)
        finder_changed(f);
    return !st;
}

static bool blob_add(void *ctx, const void *bytes, size_t n)
{
    blob_bytes(ctx, bytes, n);
    return !((struct blob *)ctx)->failed;
}

static void tell_parent(struct finder *f)
{
    if (!f->parent.family)
        return;
    if (f->parent_wait) {
        f->parent_wait--;
        return;
    }
    if (!below_make(f))
        return;
    blob_start(&f->blob);
    finder_put_address(&f->blob, &f->self);
    blob_number(&f->blob, f->below_sum, 8);
    if (f->parent_wants && bly_write(f->below, blob_add, &f->blob))
        return;
    f->ask(f->ctx, &f->parent, FINDER_SUMMARY, &f->blob, TAG_PARENT);
}

static void child_drop(struct finder *f, size_t i)
{
    bly_free(f->children[i].below);
    f->children[i] = f->children[--f->nchildren];
    finder_changed(f);
}

/* A filter of a child: of the one size that all have, or of no use. */
static bool child_filter(const struct finder *f, const struct body *b,
                         bly_filter **out)
{
    const bly_access how = { .max_bytes =
                                 64 * SUMMARY_FACTOR * f->args.keys + 65536 };
    bly_filter *probe = NULL;
    *out = NULL;
    if (bly_load(b->at, b->n, &how, out))
        return false;
    bool fits = !below_new(f, &probe) && !bly_merge(probe, *out);
    bly_free(probe);
    if (!fits) {
        bly_free(*out);
        *out = NULL;
    }
    return fits;
}

static enum frame_error hear_summary(struct finder *f, struct body *b,
                                     const char **why)
{
    struct address from;
    bly_filter *below = NULL;
    *why = "a malformed summary";
    if (!finder_take_address(b, &from))
        return FRAME_WRONG;
    const uint64_t sum = body_number(b, 8);
    if (b->bad || (b->n && !child_filter(f, b, &below)))
        return FRAME_WRONG;
    size_t i = 0;
    while (i < f->nchildren && !address_equal(&f->children[i].at, &from))
        i++;
    if (i == f->nchildren) {
        *why = "no room for another child";
        if (i == FINDER_CHILDREN || address_equal(&from, &f->self)) {
            bly_free(below);
            f->refused++;
            return FRAME_FULL;
        }
        f->children[f->nchildren++] = (struct finder_child){ .at = from };
    }
    struct finder_child *const c = &f->children[i];
    c->until = f->now + f->args.life;
    if (below) {
        bly_free(c->below);
        c->below = below;
        c->sum = sum;
        finder_changed(f);
    }
    blob_start(&f->blob);
    blob_number(&f->blob, !c->below || c->sum != sum, 1);
    return (enum frame_error)0;
}

/* ------------------------------------------------------------------- events */

void finder_tick(struct finder *f, uint64_t now)
{
    size_t silent = 0;
    f->now = now > f->now ? now : f->now;
    f->expired += services_expire(&f->services, f->now);
    bly_node_tick(f->node, f->now, &silent);
    forget_links(f);
    for (size_t i = 0; i < f->nchildren;)
        if (f->children[i].until <= f->now)
            child_drop(f, i);
        else
            i++;
    for (size_t i = 0; i < f->nlinks; i++)
        tell_link(f, i);
    tell_parent(f);
}

/* Where else to look: behind the services in an answer. */
static void put_ways(struct finder *f, const struct frame *q)
{
    struct body b = { q->body, q->nbody, false };
    struct service wanted = { .ntags = 0 };
    bly_way ways[FINDER_LINKS + 1];
    unsigned n = 0;
    if (!service_take_tags(&b, &wanted))
        return;
    const uint64_t key = service_key(&wanted);
    size_t nways = bly_node_find_hash(f->node, key, ways, FINDER_LINKS + 1);
    nways = nways < FINDER_LINKS + 1 ? nways : FINDER_LINKS + 1;
    for (size_t i = 0; i < nways; i++)
        n += ways[i].link != NULL;
    blob_number(&f->blob, n, 1);
    for (size_t i = 0; i < nways; i++)
        for (size_t k = 0; ways[i].link && k < f->nlinks; k++)
            if (strcmp(ways[i].link, f->links[k].name) == 0) {
                finder_put_address(&f->blob, &f->links[k].at);
                blob_number(&f->blob, ways[i].hops, 1);
            }
    n = 0;
    for (size_t i = 0; i < f->nchildren; i++)
        n += f->children[i].below && bly_has_hash(f->children[i].below, key);
    blob_number(&f->blob, n, 1);
    for (size_t i = 0; i < f->nchildren; i++)
        if (f->children[i].below && bly_has_hash(f->children[i].below, key))
            finder_put_address(&f->blob, &f->children[i].at);
    blob_number(&f->blob, f->parent.family != 0, 1);
    if (f->parent.family)
        finder_put_address(&f->blob, &f->parent);
}

static void put_status(struct finder *f)
{
    bly_node_stats stats;
    bly_node_stat(f->node, &stats);
    const uint64_t numbers[] = {
        f->services.n, f->nlinks, stats.heard, f->nchildren, stats.bytes,
        f->looks,      f->news,   f->refused,  f->expired,   f->services.refused
    };
    blob_start(&f->blob);
    blob_number(&f->blob, sizeof numbers / sizeof numbers[0], 1);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        blob_number(&f->blob, numbers[i], 8);
}

enum frame_error finder_question(struct finder *f, const struct frame *q,
                                 uint64_t now, const char **why)
{
    struct body b = { q->body, q->nbody, false };
    enum frame_error error;
    f->now = now > f->now ? now : f->now;
    switch (q->type) {
    case FINDER_NEWS:
        return hear_news(f, &b, why);
    case FINDER_SUMMARY:
        return hear_summary(f, &b, why);
    case FINDER_STATUS:
        put_status(f);
        return (enum frame_error)0;
    case SERVICE_ANNOUNCE:
    case SERVICE_WITHDRAW:
    case SERVICE_LOOK:
        error = services_answer(&f->services, q, f->now, &f->blob, why);
        if (!error && q->type == SERVICE_LOOK) {
            f->looks++;
            put_ways(f, q);
        }
        return error;
    default:
        *why = "a question of another kind of network";
        return FRAME_WRONG;
    }
}

void finder_answer(struct finder *f, uint64_t tag, const struct frame *a)
{
    if (tag == TAG_PARENT) {
        const bool right = a && !(a->flags & FRAME_ERROR) && a->nbody == 1;
        f->parent_silent = a ? 0 : f->parent_silent + 1;
        f->parent_wait = slower(f->parent_silent);
        f->parent_wants = right && a->body[0];
        return;
    }
    if (tag >= f->nlinks)
        return;
    struct finder_link *const l = &f->links[tag];
    l->silent = a ? 0 : l->silent + 1;
    l->wait = slower(l->silent);
}

/* ---------------------------------------------------------------- who looks */

bool finder_take(const struct frame *a, struct finder_found *out)
{
    struct body b = { a->body, a->nbody, false };
    memset(out, 0, sizeof *out);
    const size_t n = (size_t)body_number(&b, 1);
    if (b.bad || n > SERVICE_ANSWERS)
        return false;
    for (; out->nservices < n; out->nservices++)
        if (!service_take(&b, &out->services[out->nservices]))
            return false;
    if (!b.n)
        return true;
    const size_t nlinks = (size_t)body_number(&b, 1);
    if (nlinks > FINDER_LINKS)
        return false;
    for (; out->nlinks < nlinks; out->nlinks++) {
        struct found_way *const w = &out->links[out->nlinks];
        if (!finder_take_address(&b, &w->at))
            return false;
        w->hops = (unsigned)body_number(&b, 1);
    }
    const size_t nchildren = (size_t)body_number(&b, 1);
    if (nchildren > FINDER_CHILDREN)
        return false;
    for (; out->nchildren < nchildren; out->nchildren++)
        if (!finder_take_address(&b, &out->children[out->nchildren]))
            return false;
    if (body_number(&b, 1) && !finder_take_address(&b, &out->parent))
        return false;
    return !b.bad && !b.n;
}

/*
 * news.c - messages between neighbours
 *
 * What v tells u is a filter A(v,u): v's own keys at level 0, and what all
 * other links told, one level deeper. Without what u itself told, so that
 * nothing is sent straight back. Each state of A(v,u) that was told has a
 * number; a message leads from one to the next:
 *
 *     0       4       5       6   8     16     24     32   40         n-8
 *     +-------+-------+-------+---+-----+------+------+----+----------+-----+
 *     | "BLN" | flags | depth | 0 | fit | life | from | to | levels.c | sum |
 *     | 1     |       |       |   |     |      |      |    |          |     |
 *     +-------+-------+-------+---+-----+------+------+----+----------+-----+
 *
 * from 0    everything: the difference to an empty filter
 * from = to nothing has changed; still here
 * fit       what nodes must have in common
 * sum       the hash of all before it, by the hasher of the nodes: with a
 *           secret, only who knows it can make messages
 *
 * The receiver has a state (life, version), and there are three fates:
 *
 *     old    life or to is behind that: a repeated or late message. Ignored.
 *     taken  it is whole, or starts from that very state.
 *     gap    anything else: one before it is missing. The node goes on with
 *            what it has, and asks for everything in its next message.
 *
 * A lost message is noticed with the next one, at the latest with the next
 * "still here". A message that asks is heard in any fate but old: otherwise two
 * neighbours that both lost one would wait for each other for ever.
 *
 * Whatever v told is one level deeper at each hop, so a key that is gone is
 * forgotten by all after `depth` rounds, loops or not: nothing counts to
 * infinity.
 */
#include <string.h>

#include "core/bits.h"
#include "core/bytes.h"
#include "core/cells.h"
#include "core/sized.h"
#include "core/status.h"
#include "node/node_levels.h"

enum {
    NEWS_AT_FLAGS = 4,
    NEWS_AT_DEPTH = 5,
    NEWS_AT_ZERO = 6,
    NEWS_AT_FIT = 8,
    NEWS_AT_LIFE = 16,
    NEWS_AT_FROM = 24,
    NEWS_AT_TO = 32,
    NEWS_HEADER = 40,
    NEWS_SUM = 8
};

#define NEWS_ASKS 1u /* flags */

static const unsigned char news_magic[4] = { 'B', 'L', 'N', 1 };

uint64_t bly_node_news_most(const bly_node *v)
{
    return NEWS_HEADER + bly_levels_most(v) + NEWS_SUM;
}

/* ----------------------------------------------------------------- telling */

/* What u, behind link e, is to know. */
static bly_status news_summary(const bly_node *v, const bly_edge *e,
                               bly_filter **out)
{
    const bly_status st = bly_node_levels(v, out);
    if (st)
        return st;
    bly_cells_to_bits(v->local->data, v->m, BLY_NODE_WIDTH,
                      (uint64_t *)(void *)(*out)->layer[0]->data);
    for (size_t i = 0; i < v->nedges; i++)
        if (v->edge[i] != e && v->edge[i]->heard)
            bly_attenuated_hear(*out, v->edge[i]->heard);
    return BLY_OK;
}

/* Put a message from one filter to another, whose difference takes nlevels
 * bytes; to NULL: nothing changes. */
static bly_status news_put(const bly_node *v, const bly_filter *from,
                           const bly_filter *to, uint64_t nlevels, bly_put *put,
                           void *ctx, bly_news *info)
{
    const size_t n = (size_t)(NEWS_HEADER + nlevels + NEWS_SUM);
    unsigned char *const at = bly_mem_zalloc(&v->mem, n);
    if (!at)
        return bly_fail(BLY_ENOMEM, "out of memory");
    memcpy(at, news_magic, sizeof news_magic);
    at[NEWS_AT_FLAGS] = info->asks ? NEWS_ASKS : 0;
    at[NEWS_AT_DEPTH] = (unsigned char)v->depth;
    bly_store64(at + NEWS_AT_FIT, v->fit);
    bly_store64(at + NEWS_AT_LIFE, info->life);
    bly_store64(at + NEWS_AT_FROM, info->from);
    bly_store64(at + NEWS_AT_TO, info->to);
    if (to)
        bly_levels_write(from, to, at + NEWS_HEADER);
    bly_store64(at + n - NEWS_SUM,
                bly_hash(bly_node_hasher(v), at, n - NEWS_SUM));
    info->bytes = n;
    const bool sent = put(ctx, at, n);
    bly_mem_release(&v->mem, at, n);
    return sent ? BLY_OK
                : bly_fail(BLY_EIO, "the message could not be handed over");
}

bly_status bly_node_tell_sized(bly_node *v, const char *link, bly_put *put,
                               void *ctx, bly_news *info, size_t size)
{
    if (!v || !link || !put)
        return bly_fail_null("v or link or put");
    bly_edge *const e = bly_node_edge(v, link);
    if (!e)
        return BLY_EINVAL;
    bly_news news;
    memset(&news, 0, sizeof news); /* what lies between fields too */
    news.asks = e->lost;
    news.whole = !e->told || e->asked;
    news.life = v->life;
    news.from = news.to = e->told_version;
    bly_filter *now = NULL, *empty = NULL;
    bly_status st = BLY_OK;
    uint64_t nlevels = v->depth; /* a zero for each */
    if (news.whole || e->told_change != v->change) {
        st = news_summary(v, e, &now);
        if (!st && news.whole)
            st = bly_node_levels(v, &empty);
        if (!st)
            nlevels = bly_levels_bytes(news.whole ? empty : e->told, now,
                                       &news.flips);
    }
    const bool next = !st && (news.whole || news.flips);
    if (next) {
        news.from = news.whole ? 0 : e->told_version;
        news.to = ++v->last_version;
    }
    if (!st)
        st = news_put(v, news.whole ? empty : e->told, next ? now : NULL,
                      nlevels, put, ctx, &news);
    bly_free(empty);
    if (st) {
        bly_free(now);
        return st;
    }
    if (next) {
        bly_free(e->told);
        e->told = now;
        e->told_version = news.to;
        e->asked = false;
    } else {
        bly_free(now);
    }
    e->told_change = v->change;
    news.changes = next || news.asks;
    if (info)
        BLY_GIVE(&news, info, size);
    return BLY_OK;
}

/* ----------------------------------------------------------------- hearing */

/* Everything of a message but its levels. Sees bytes from outside. */
static bly_status news_read(const bly_node *v, const unsigned char *at,
                            size_t n, bly_news *out)
{
    if (n < sizeof news_magic || memcmp(at, news_magic, sizeof news_magic) != 0)
        return bly_fail(BLY_EFORMAT, "not a message of a node");
    if (n < NEWS_HEADER + NEWS_SUM)
        return bly_fail(BLY_EFORMAT, "a message of a node that is cut short");
    if (bly_load64(at + NEWS_AT_FIT) != v->fit)
        return bly_fail(BLY_EUNFIT,
                        "the message is of a node with other sizes or another "
                        "hash: nodes need the same spec");
    if (n > bly_node_news_most(v) ||
        bly_load64(at + n - NEWS_SUM) !=
            bly_hash(bly_node_hasher(v), at, n - NEWS_SUM))
        return bly_fail(BLY_EFORMAT, "the message is damaged");
    const unsigned flags = at[NEWS_AT_FLAGS];
    memset(out, 0, sizeof *out); /* what lies between fields too */
    out->asks = (flags & NEWS_ASKS) != 0;
    out->life = bly_load64(at + NEWS_AT_LIFE);
    out->from = bly_load64(at + NEWS_AT_FROM);
    out->to = bly_load64(at + NEWS_AT_TO);
    out->bytes = n;
    out->whole = !out->from;
    if ((flags & ~NEWS_ASKS) || at[NEWS_AT_DEPTH] != v->depth ||
        bly_load16(at + NEWS_AT_ZERO) || !out->life || !out->to ||
        out->from > out->to)
        return bly_fail(BLY_EFORMAT, "the message contradicts itself");
    return BLY_OK;
}

static bly_fate news_fate(const bly_edge *e, const bly_news *news)
{
    const bool still = news->from == news->to;
    if (e->heard &&
        (news->life < e->life ||
         (news->life == e->life &&
          (still ? news->to < e->version : news->to <= e->version))))
        return BLY_NEWS_OLD;
    if (news->whole ||
        (e->heard && news->life == e->life && news->from == e->version))
        return BLY_NEWS_TAKEN;
    return BLY_NEWS_GAP;
}

/* What e will have told with these levels: a new filter, or NULL if they
 * change nothing. */
static bly_status news_apply(const bly_node *v, const bly_edge *e,
                             const unsigned char *at, size_t n, bly_news *news,
                             bly_filter **out)
{
    bly_status st = BLY_OK;
    *out = NULL;
    if (news->whole || news->from != news->to)
        st = bly_node_levels(v, out);
    if (st)
        return st;
    for (uint64_t j = 0; !news->whole && *out && j < v->depth; j++)
        memcpy((*out)->layer[j]->data, e->heard->layer[j]->data,
               (*out)->layer[j]->shape.nbytes);
    if (bly_levels_read(&at, &n, *out, v->depth, &news->flips) && !n)
        return BLY_OK;
    bly_free(*out);
    *out = NULL;
    return bly_fail(
        BLY_EFORMAT,
        "the message is damaged: its levels are not a list of bits");
}

bly_status bly_node_hear_sized(bly_node *v, const char *link, const void *bytes,
                               size_t nbytes, uint64_t now, bly_news *info,
                               size_t size)
{
    bly_news news;
    if (!v || !link || (!bytes && nbytes))
        return bly_fail_null("v or link or bytes");
    bly_edge *const e = bly_node_edge(v, link);
    if (!e)
        return BLY_EINVAL;
    const unsigned char *const at = bytes;
    bly_status st = news_read(v, at, nbytes, &news);
    if (st)
        return st;
    news.fate = news_fate(e, &news);
    if (news.fate == BLY_NEWS_TAKEN) {
        bly_filter *f;
        st = news_apply(v, e, at + NEWS_HEADER, nbytes - NEWS_HEADER - NEWS_SUM,
                        &news, &f);
        if (st)
            return st;
        if (f)
            bly_edge_set_heard(v, e, f);
        if (v->now < now)
            v->now = now;
        e->heard_at = v->now;
        e->life = news.life;
        e->version = news.to;
        if (news.whole)
            e->lost = false;
        news.changes = news.whole || news.flips;
    } else if (news.fate == BLY_NEWS_GAP) {
        e->lost = true;
    }
    if (news.fate != BLY_NEWS_OLD && news.asks)
        e->asked = news.changes = true;
    if (info)
        BLY_GIVE(&news, info, size);
    return BLY_OK;
}

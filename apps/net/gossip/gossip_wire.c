/*
 * gossip_wire.c - what peers tell each other, as bodies of frames
 */
#include "apps/net/gossip/gossip_wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FORM_DROPPED, FORM_WHOLE, FORM_DELTA };

#define PAIR 16  /* bytes */
#define ENTRY 28 /* at least */

void gossip_put_address(struct blob *b, const struct address *a)
{
    blob_number(b, a->family, 1);
    blob_bytes(b, a->at, sizeof a->at);
    blob_number(b, a->port, 2);
}

void gossip_get_address(struct body *b, struct address *a)
{
    *a = (struct address){ .family = (uint8_t)body_number(b, 1) };
    const unsigned char *const at = body_bytes(b, sizeof a->at);
    if (at)
        memcpy(a->at, at, sizeof a->at);
    a->port = (uint16_t)body_number(b, 2);
    b->bad |= (a->family != 4 && a->family != 6) || !a->port;
}

/* ----------------------------------------------------------------- messages */

static void put_pairs(struct blob *b, const struct gossip_message *m,
                      unsigned width)
{
    blob_number(b, m->npairs, width);
    for (size_t i = 0; i < m->npairs; i++) {
        blob_number(b, m->pairs[i].id, 8);
        blob_number(b, m->pairs[i].version, 8);
    }
}

static void put_news(struct blob *b, const struct gossip_news *n)
{
    const struct summary *const s = n->summary;
    const bool delta = s && s->ndelta && n->have && s->base == n->have;
    gossip_put_address(b, &n->address);
    blob_number(b, n->version, 8);
    blob_number(b, !s ? FORM_DROPPED : delta ? FORM_DELTA : FORM_WHOLE, 1);
    if (!s)
        return;
    if (delta)
        blob_number(b, s->base, 8);
    blob_number(b, delta ? s->ndelta : s->nwhole, 4);
    blob_bytes(b, delta ? s->delta : s->whole, delta ? s->ndelta : s->nwhole);
}

void gossip_put(struct blob *b, const struct gossip_message *m)
{
    blob_start(b);
    if (!m->answer)
        gossip_put_address(b, &m->from);
    if (m->type == GOSSIP_RUMOUR && m->answer) {
        blob_number(b, m->knew, 8);
    } else if (m->type == GOSSIP_COMPARE && !m->answer) {
        for (size_t i = 0; i < GOSSIP_BUCKETS; i++)
            blob_number(b, m->sums[i], 4);
    } else if (m->type == GOSSIP_FETCH_THESE && m->answer) {
        blob_number(b, m->nnews, 2);
        for (size_t i = 0; i < m->nnews; i++)
            put_news(b, &m->news[i]);
    } else {
        put_pairs(b, m, m->answer ? 4 : 2);
    }
}

/* Counts are compared with the bytes that are there before anything is made. */
static bool get_pairs(struct body *b, struct gossip_message *m, unsigned width,
                      size_t most)
{
    const size_t n = (size_t)body_number(b, width);
    if (b->bad || n > most || n > b->n / PAIR)
        return false;
    m->pairs = malloc((n + 1) * sizeof *m->pairs);
    if (!m->pairs)
        return false;
    m->npairs = n;
    for (size_t i = 0; i < n; i++) {
        m->pairs[i].id = body_number(b, 8);
        m->pairs[i].version = body_number(b, 8);
    }
    return true;
}

static void get_one(const struct gossip *g, struct body *b,
                    struct gossip_news *n)
{
    gossip_get_address(b, &n->address);
    n->id = gossip_id(&n->address);
    n->version = body_number(b, 8);
    const unsigned form = (unsigned)body_number(b, 1);
    if (form == FORM_DROPPED)
        return;
    const uint64_t base = form == FORM_DELTA ? body_number(b, 8) : 0;
    const size_t len = (size_t)body_number(b, 4);
    const unsigned char *const at = body_bytes(b, len);
    if (!at || b->bad || form > FORM_DELTA || len > SUMMARY_MOST) {
        b->bad = true;
        return;
    }
    if (form == FORM_WHOLE) {
        n->summary = summary_whole(at, len);
    } else {
        const struct gossip_entry *const e = gossip_find(g, n->id);
        if (e && e->summary && e->version == base)
            n->summary = summary_delta(at, len, e->summary, base);
    }
    n->bad = !n->summary;
}

static bool get_news(const struct gossip *g, struct body *b,
                     struct gossip_message *m)
{
    const size_t n = (size_t)body_number(b, 2);
    if (b->bad || n > GOSSIP_FETCH || n > b->n / ENTRY)
        return false;
    m->news = calloc(n + 1, sizeof *m->news);
    if (!m->news)
        return false;
    for (; m->nnews < n && !b->bad; m->nnews++)
        get_one(g, b, &m->news[m->nnews]);
    return true;
}

bool gossip_get(const struct gossip *g, uint8_t type, bool answer,
                const unsigned char *bytes, size_t n, struct gossip_message *m)
{
    struct body b = { bytes, n, false };
    bool ok = true;
    *m = (struct gossip_message){ .type = type, .answer = answer };
    if (!answer)
        gossip_get_address(&b, &m->from);
    if (type == GOSSIP_RUMOUR)
        if (answer)
            m->knew = body_number(&b, 8);
        else
            ok = get_pairs(&b, m, 2, GOSSIP_TOLD);
    else if (type == GOSSIP_COMPARE)
        if (answer)
            ok = get_pairs(&b, m, 4, GOSSIP_PEERS);
        else
            for (size_t i = 0; i < GOSSIP_BUCKETS; i++)
                m->sums[i] = (uint32_t)body_number(&b, 4);
    else if (type == GOSSIP_FETCH_THESE)
        ok = answer ? get_news(g, &b, m) : get_pairs(&b, m, 2, GOSSIP_FETCH);
    else
        ok = false;
    if (ok && !b.bad && !b.n)
        return true;
    gossip_message_free(m);
    return false;
}

/* ------------------------------------------------------------------ queries */

static void put_real(struct blob *b, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    blob_number(b, bits, 8);
}

static double get_real(struct body *b)
{
    const uint64_t bits = body_number(b, 8);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void query_put(struct blob *b, const struct query *q, bool weights)
{
    blob_start(b);
    blob_number(b, q->k, 2);
    blob_number(b, q->n, 1);
    for (unsigned i = 0; i < q->n; i++) {
        if (weights)
            put_real(b, q->words[i].weight);
        blob_number(b, q->words[i].len, 1);
        blob_bytes(b, q->words[i].text, q->words[i].len);
    }
}

bool query_get(const struct frame *f, struct query *q, bool weights)
{
    struct body b = { f->body, f->nbody, false };
    memset(q, 0, sizeof *q);
    q->k = (unsigned)body_number(&b, 2);
    q->n = (unsigned)body_number(&b, 1);
    if (b.bad || !q->k || q->k > QUERY_BEST || !q->n || q->n > QUERY_WORDS)
        return false;
    for (unsigned i = 0; i < q->n; i++) {
        const double weight = weights ? get_real(&b) : 1;
        const size_t len = (size_t)body_number(&b, 1);
        const unsigned char *const at = body_bytes(&b, len);
        if (!at || !len || len > QUERY_WORD ||
            !(weight >= 0 && weight < 1e6)) /* no NAN */
            return false;
        memcpy(q->words[i].text, at, len);
        q->words[i].len = (uint8_t)len;
        q->words[i].weight = weight;
        q->words[i].hash = word_hash((bly_bytes){ at, len });
    }
    return !b.bad && !b.n;
}

void text_put(struct blob *b, bly_bytes text)
{
    blob_number(b, text.len, 2);
    blob_bytes(b, text.ptr, text.len);
}

bly_bytes text_get(struct body *b)
{
    const size_t n = (size_t)body_number(b, 2);
    return (bly_bytes){ body_bytes(b, n), n };
}

void found_put(struct blob *b, const struct query *q, const struct found *at,
               size_t n)
{
    blob_start(b);
    blob_number(b, n, 2);
    for (size_t i = 0; i < n; i++) {
        blob_number(b, at[i].words, 4);
        for (unsigned t = 0; t < q->n; t++)
            blob_number(b, at[i].counts[t], 4);
        text_put(b, at[i].path);
        text_put(b, at[i].context);
    }
}

int found_get(const struct frame *f, const struct query *q, struct found *at)
{
    struct body b = { f->body, f->nbody, false };
    const size_t n = (size_t)body_number(&b, 2);
    if (n > q->k)
        return -1;
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0;
        memset(&at[i], 0, sizeof at[i]);
        at[i].words = (uint32_t)body_number(&b, 4);
        for (unsigned t = 0; t < q->n; t++)
            sum += at[i].counts[t] = (uint32_t)body_number(&b, 4);
        at[i].path = text_get(&b);
        at[i].context = text_get(&b);
        /* More of the words than there are words, or none, is a lie. */
        if (b.bad || !sum || sum > at[i].words || at[i].path.len > FOUND_PATH ||
            !at[i].path.len || at[i].context.len > FOUND_CONTEXT)
            return -1;
    }
    return b.bad || b.n ? -1 : (int)n;
}

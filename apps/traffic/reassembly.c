/*
 * reassembly.c - what TCP carries, in order, in bounded memory
 *
 * Streams are in a hash table and in a list by when they were last heard of;
 * where memory runs out, those that were silent longest are ended.
 */
#include "apps/traffic/reassembly.h"

#include <bloomery.h>
#include <stdlib.h>
#include <string.h>

#include "io/byte_order.h"

#define BUCKETS 65536
#define WINDOW (1 << 20) /* bytes that a segment may be early */
#define WAITING 256      /* segments of a stream that wait, at most */

struct early {
    struct early *next;
    uint32_t sequence;
    size_t n, wire;
    unsigned char at[];
};

struct stream {
    struct flow_key key;
    struct stream *chain, **chained; /* in its bucket */
    struct stream *older, *newer;    /* by when it was last heard of */
    uint32_t next;                   /* sequence number */
    uint64_t base;                   /* bytes before it, gaps too */
    struct early *early;             /* by sequence number */
    size_t nearly;
    size_t nkept;
    unsigned char *kept; /* the last bytes, `keeps` at most */
};

struct reassembly {
    struct reassembly_spec spec;
    struct reassembly_sum sum;
    struct stream *buckets[BUCKETS];
    struct stream *oldest, *newest;
    uint64_t memory;
    unsigned char *buf; /* kept and new bytes side by side */
    size_t room;
};

bool segment_of(const struct packet *p, struct segment *s)
{
    const struct key_choice all = { .form = KEY_5TUPLE };
    if (p->proto != IP_TCP || p->fragment || p->ntransport < 20 ||
        !key_of(all, p, &s->key))
        return false;
    const unsigned char flags = p->transport[13];
    const size_t header = (size_t)(p->transport[12] >> 4) * 4;
    if (header < 20 || header > p->ntransport)
        return false;
    s->sequence = (uint32_t)get_be(p->transport + 4, 4);
    s->fin = flags & 1;
    s->syn = flags & 2;
    s->rst = flags & 4;
    s->at = p->payload;
    s->n = s->wire = p->npayload;
    /* As long as IP says, if the capture is shorter. */
    const size_t front = (size_t)(p->payload - p->ip);
    const size_t all_of_it = p->version == 4
                                 ? (size_t)get_be(p->ip + 2, 2)
                                 : 40 + (size_t)get_be(p->ip + 4, 2);
    if (all_of_it > front && all_of_it - front > s->wire)
        s->wire = all_of_it - front;
    return true;
}

struct reassembly *reassembly_new(const struct reassembly_spec *spec)
{
    struct reassembly *const r = calloc(1, sizeof *r);
    if (r)
        r->spec = *spec;
    return r;
}

const struct reassembly_sum *reassembly_sum(const struct reassembly *r)
{
    return &r->sum;
}

/* -------------------------------------------------------------- the streams */

static void memory_take(struct reassembly *r, size_t n)
{
    r->memory += n;
    if (r->memory > r->sum.most)
        r->sum.most = r->memory;
}

static void age_leave(struct reassembly *r, struct stream *s)
{
    *(s->older ? &s->older->newer : &r->oldest) = s->newer;
    *(s->newer ? &s->newer->older : &r->newest) = s->older;
}

static void age_enter(struct reassembly *r, struct stream *s)
{
    s->older = r->newest;
    s->newer = NULL;
    *(r->newest ? &r->newest->newer : &r->oldest) = s;
    r->newest = s;
}

static size_t stream_size(const struct reassembly *r)
{
    return sizeof(struct stream) + r->spec.keeps;
}

static void early_drop(struct reassembly *r, struct stream *s)
{
    struct early *const e = s->early;
    s->early = e->next;
    s->nearly--;
    r->memory -= sizeof *e + e->n;
    free(e);
}

static void stream_free(struct reassembly *r, struct stream *s)
{
    while (s->early)
        early_drop(r, s);
    age_leave(r, s);
    *s->chained = s->chain;
    if (s->chain)
        s->chain->chained = s->chained;
    r->memory -= stream_size(r);
    free(s->kept);
    free(s);
}

void reassembly_free(struct reassembly *r)
{
    if (!r)
        return;
    while (r->oldest)
        stream_free(r, r->oldest);
    free(r->buf);
    free(r);
}

static struct stream **bucket_of(struct reassembly *r,
                                 const struct flow_key *key)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = r->spec.seed };
    return &r->buckets[bly_hash(&h, key->at, key->len) % BUCKETS];
}

static struct stream *stream_find(struct reassembly *r,
                                  const struct flow_key *key)
{
    struct stream *s = *bucket_of(r, key);
    while (s && (s->key.len != key->len ||
                 memcmp(s->key.at, key->at, key->len) != 0))
        s = s->chain;
    return s;
}

static struct stream *stream_new(struct reassembly *r,
                                 const struct segment *from)
{
    struct stream *const s = calloc(1, sizeof *s);
    unsigned char *const kept = malloc(r->spec.keeps + 1);
    if (!s || !kept) {
        free(s);
        free(kept);
        return NULL;
    }
    struct stream **const bucket = bucket_of(r, &from->key);
    s->key = from->key;
    s->kept = kept;
    s->next = from->sequence + from->syn;
    s->chain = *bucket;
    s->chained = bucket;
    if (s->chain)
        s->chain->chained = &s->chain;
    *bucket = s;
    age_enter(r, s);
    memory_take(r, stream_size(r));
    r->sum.streams++;
    return s;
}

/* ----------------------------------------------------------------- the bytes
 */

static bool room_for(struct reassembly *r, size_t n)
{
    if (n <= r->room)
        return true;
    unsigned char *const grown = realloc(r->buf, n + 65536);
    if (!grown)
        return false;
    r->buf = grown;
    r->room = n + 65536;
    return true;
}

/* The next n bytes of a stream, and wire - n that were not captured. */
static bool bytes_hand_over(struct reassembly *r, struct stream *s,
                            const unsigned char *at, size_t n, size_t wire)
{
    const size_t all = s->nkept + n, keeps = r->spec.keeps;
    bool more = true;
    if (n) {
        if (!room_for(r, all + STREAM_AHEAD))
            return false;
        memcpy(r->buf, s->kept, s->nkept);
        memcpy(r->buf + s->nkept, at, n);
        memset(r->buf + all, 0, STREAM_AHEAD);
        more = r->spec.take(r->spec.ctx, &s->key, r->buf, s->nkept, all,
                            s->base - s->nkept);
        const size_t left = all < keeps ? all : keeps;
        memcpy(s->kept, r->buf + all - left, left);
        s->nkept = left;
    }
    s->base += wire;
    s->next += (uint32_t)wire;
    if (wire > n) {
        s->nkept = 0;
        r->sum.gaps++;
    }
    return more;
}

/* What of a segment is new: it begins at or before the next byte. */
static bool rest_hand_over(struct reassembly *r, struct stream *s,
                           uint32_t sequence, const unsigned char *at, size_t n,
                           size_t wire)
{
    const size_t old = s->next - sequence;
    if (old >= wire)
        return true;
    const size_t cut = old < n ? old : n;
    return bytes_hand_over(r, s, at + cut, n - cut, wire - old);
}

/* Segments that are no longer early. */
static bool early_hand_over(struct reassembly *r, struct stream *s)
{
    while (s->early && (int32_t)(s->early->sequence - s->next) <= 0) {
        const struct early *const e = s->early;
        if (!rest_hand_over(r, s, e->sequence, e->at, e->n, e->wire))
            return false;
        early_drop(r, s);
    }
    return true;
}

/* The bytes up to the first segment that waits are given up. */
static bool gap_skip(struct reassembly *r, struct stream *s)
{
    const uint32_t missing = s->early->sequence - s->next;
    return bytes_hand_over(r, s, NULL, 0, missing) && early_hand_over(r, s);
}

static bool stream_end(struct reassembly *r, struct stream *s)
{
    while (s->early)
        if (!gap_skip(r, s))
            return false;
    stream_free(r, s);
    return true;
}

static bool early_add(struct reassembly *r, struct stream *s,
                      const struct segment *from)
{
    struct early **at = &s->early;
    while (*at && (int32_t)((*at)->sequence - from->sequence) <= 0)
        at = &(*at)->next;
    struct early *const e = malloc(sizeof *e + from->n);
    if (!e)
        return false;
    *e = (struct early){ *at, from->sequence, from->n, from->wire };
    memcpy(e->at, from->at, from->n);
    *at = e;
    s->nearly++;
    memory_take(r, sizeof *e + from->n);
    return s->nearly <= WAITING || gap_skip(r, s);
}

/* Others go first; if this one alone is too much, its gaps are given up. */
static bool memory_bound(struct reassembly *r, struct stream *but)
{
    while (r->memory > r->spec.memory && r->oldest && r->oldest != but) {
        r->sum.evicted++;
        if (!stream_end(r, r->oldest))
            return false;
    }
    while (r->memory > r->spec.memory && but->early)
        if (!gap_skip(r, but))
            return false;
    return true;
}

bool reassembly_add(struct reassembly *r, const struct segment *from)
{
    struct stream *s = stream_find(r, &from->key);
    /* The same ends may begin anew. */
    if (s && from->syn && from->sequence + 1 != s->next && s->base) {
        if (!stream_end(r, s))
            return false;
        s = NULL;
    }
    if (!s) {
        if (!from->wire && !from->syn)
            return true;
        s = stream_new(r, from);
        if (!s)
            return false;
    } else {
        age_leave(r, s);
        age_enter(r, s);
    }
    struct segment of = *from;
    of.sequence += of.syn;
    const int32_t ahead = (int32_t)(of.sequence - s->next);
    bool more = true;
    if (of.wire && ahead <= 0) {
        more = rest_hand_over(r, s, of.sequence, of.at, of.n, of.wire) &&
               early_hand_over(r, s);
    } else if (of.wire) {
        more = early_add(r, s, &of);
        /* So far ahead that nothing will fill the gap. */
        while (more && s->early && ahead > WINDOW)
            more = gap_skip(r, s);
    }
    if (!more)
        return false;
    const bool over = of.rst || of.fin;
    if (over && s->next == of.sequence + (uint32_t)of.wire)
        return stream_end(r, s);
    return memory_bound(r, s);
}

bool reassembly_end(struct reassembly *r)
{
    while (r->oldest)
        if (!stream_end(r, r->oldest))
            return false;
    return true;
}

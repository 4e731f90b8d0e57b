/*
 * reassembly.c - what TCP carries, in order, in bounded memory
 *
 * Streams are in a hash table and in a list by when they were last heard of.
 * Places in a stream are counted from its first byte in 64 bits:
 *
 *              history            at
 *     . . . .|=============|. . . .|=====|. . .|===|
 *            from           at      segments that wait
 *
 * The history holds the last bytes without a gap in them. The scanner gets its
 * end again with the bytes that follow, and what is sent again is compared with
 * it: only if a byte is known to be the same is it left out.
 *
 * One pair of ends can have several streams, since a segment that begins a
 * connection, or lies far from all others, may be real or forged, and nothing
 * in a capture tells which. A segment goes to each stream that it is near.
 *
 * Where memory runs out, these go first: streams that have ended (they are kept
 * for a while, since an end may be forged too), then histories of streams that
 * were silent longest, then those streams.
 */
#include "apps/traffic/reassembly.h"

#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/grow.h"
#include "base/lookup.h"
#include "base/search.h"

#define BUCKETS 65536
#define WAITING 4096      /* segments of a stream that wait, at most */
#define NEAR (1 << 24)    /* bytes; Linux's largest window by default is 6 MB */
#define HISTORY (4 << 20) /* bytes that a stream keeps, at most */
#define ENDED 4096        /* streams that have ended and are kept */
#define LAST (1 << 16)    /* bytes of these; their last ones may come again */
#define ALIKE 4           /* streams with the same ends */
#define TWICE 256         /* segments that wait behind an end, see there */

struct early {
    int64_t place;
    size_t n, wire;
    bool twice; /* another stream has it too */
    unsigned char at[];
};

struct stream {
    struct flow_key key;
    struct stream *chain, **chained; /* in its bucket */
    struct stream *older, *newer;    /* by when it was last heard of */
    uint64_t heard;                  /* number of the segment */
    uint32_t first;                  /* sequence number of byte 0 */
    int64_t at;                      /* the next byte, gaps counted */
    int64_t end;                     /* where FIN or RST is; -1: not seen */
    bool over;                       /* it came there */
    struct early **early;            /* by place, from number `done` on */
    size_t done, nearly, early_room;
    unsigned char *history; /* the bytes in front of `at` */
    size_t nhistory, room;
};

struct ages {
    struct stream *oldest, *newest;
    size_t n;
};

struct reassembly {
    struct reassembly_spec spec;
    struct reassembly_sum sum;
    struct stream *buckets[BUCKETS];
    struct ages live, ended;
    struct stream *trimmed; /* live; it and older ones have little history */
    uint64_t segments;
    uint64_t memory;
    size_t history;     /* bytes of a stream, at most */
    unsigned char *buf; /* of a segment by itself */
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
    if (!r)
        return NULL;
    r->spec = *spec;
    /* A single stream must not push out all others by what has been seen. */
    r->history = spec->memory / 16 < HISTORY ? spec->memory / 16 : HISTORY;
    if (r->history < spec->keeps)
        r->history = spec->keeps;
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
    struct ages *const a = s->over ? &r->ended : &r->live;
    if (r->trimmed == s)
        r->trimmed = s->older;
    *(s->older ? &s->older->newer : &a->oldest) = s->newer;
    *(s->newer ? &s->newer->older : &a->newest) = s->older;
    a->n--;
}

static void age_enter(struct reassembly *r, struct stream *s, bool over)
{
    struct ages *const a = over ? &r->ended : &r->live;
    s->over = over;
    s->heard = r->segments;
    s->older = a->newest;
    s->newer = NULL;
    *(a->newest ? &a->newest->newer : &a->oldest) = s;
    a->newest = s;
    a->n++;
}

static void early_drop(struct reassembly *r, struct stream *s)
{
    struct early *const e = s->early[s->done++];
    s->nearly--;
    r->memory -= sizeof *e + e->n;
    free(e);
}

static void stream_free(struct reassembly *r, struct stream *s)
{
    while (s->nearly)
        early_drop(r, s);
    age_leave(r, s);
    *s->chained = s->chain;
    if (s->chain)
        s->chain->chained = s->chained;
    r->memory -= sizeof *s + s->room + s->early_room * sizeof(struct early *);
    free(s->early);
    free(s->history);
    free(s);
}

void reassembly_free(struct reassembly *r)
{
    if (!r)
        return;
    while (r->ended.oldest)
        stream_free(r, r->ended.oldest);
    while (r->live.oldest)
        stream_free(r, r->live.oldest);
    free(r->buf);
    free(r);
}

static struct stream **bucket_of(struct reassembly *r,
                                 const struct flow_key *key)
{
    return &r->buckets[table_hash(key->at, key->len) % BUCKETS];
}

/* All streams with these ends; how many. */
static size_t streams_find(struct reassembly *r, const struct flow_key *key,
                           struct stream *out[ALIKE])
{
    size_t n = 0;
    for (struct stream *s = *bucket_of(r, key); s && n < ALIKE; s = s->chain)
        if (s->key.len == key->len && memcmp(s->key.at, key->at, key->len) == 0)
            out[n++] = s;
    return n;
}

static struct stream *stream_new(struct reassembly *r,
                                 const struct segment *from)
{
    struct stream *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    struct stream **const bucket = bucket_of(r, &from->key);
    s->key = from->key;
    s->first = from->sequence;
    s->end = -1;
    s->chain = *bucket;
    s->chained = bucket;
    if (s->chain)
        s->chain->chained = &s->chain;
    *bucket = s;
    age_enter(r, s, false);
    memory_take(r, sizeof *s);
    r->sum.streams++;
    return s;
}

/* Where in the stream a sequence number is; less than 0: before byte 0. */
static int64_t place_of(const struct stream *s, uint32_t sequence)
{
    const uint32_t next = s->first + (uint32_t)s->at;
    return s->at + (int32_t)(sequence - next);
}

static bool is_near(const struct stream *s, uint32_t sequence)
{
    const int64_t ahead = place_of(s, sequence) - s->at;
    return ahead >= -NEAR && ahead <= NEAR;
}

/* ------------------------------------------------------------- the history */

/* Only the last `left` bytes are kept. */
static void history_cut(struct stream *s, size_t left)
{
    if (left < s->nhistory) {
        memmove(s->history, s->history + s->nhistory - left, left);
        s->nhistory = left;
    }
}

static bool history_resize(struct reassembly *r, struct stream *s, size_t room)
{
    unsigned char *const sized = realloc(s->history, room);
    if (!sized)
        return false;
    r->memory -= s->room;
    memory_take(r, room);
    s->history = sized;
    s->room = room;
    return true;
}

/* Room for n more bytes and those that a scanner may read behind them. Cutting
 * in half makes a byte move once on average. */
static bool history_room(struct reassembly *r, struct stream *s, size_t n)
{
    if (s->nhistory + n > r->history)
        history_cut(s, r->spec.keeps > r->history / 2 ? r->spec.keeps
                                                      : r->history / 2);
    const size_t need = s->nhistory + n + STREAM_AHEAD;
    if (need <= s->room)
        return true;
    const size_t most = r->history + STREAM_AHEAD;
    const size_t twice = 2 * s->room < most ? 2 * s->room : most;
    return history_resize(r, s, need > twice ? need : twice);
}

/* No more than this, or as much as the scanner needs. */
static void history_trim(struct reassembly *r, struct stream *s, size_t left)
{
    history_cut(s, left > r->spec.keeps ? left : r->spec.keeps);
    if (s->room > s->nhistory + STREAM_AHEAD)
        /* If memory for less cannot be had, it stays as it is. */
        (void)history_resize(r, s, s->nhistory + STREAM_AHEAD);
}

/* --------------------------------------------------------------- the bytes */

/* The next n bytes of a stream, and wire - n that were not captured. */
static bool bytes_hand_over(struct reassembly *r, struct stream *s,
                            const unsigned char *at, size_t n, size_t wire)
{
    bool more = true;
    if (n) {
        if (!history_room(r, s, n))
            return false;
        const size_t seen =
            s->nhistory < r->spec.keeps ? s->nhistory : r->spec.keeps;
        unsigned char *const to = s->history + s->nhistory;
        memcpy(to, at, n);
        memset(to + n, 0, STREAM_AHEAD);
        more = r->spec.take(r->spec.ctx, &s->key, to - seen, seen, seen + n,
                            (uint64_t)s->at - seen);
        s->nhistory += n;
    }
    s->at += (int64_t)wire;
    if (wire > n) {
        s->nhistory = 0;
        r->sum.gaps++;
    }
    return more;
}

/* A segment by itself. */
static bool segment_hand_over(struct reassembly *r, const struct stream *s,
                              int64_t place, const unsigned char *at, size_t n)
{
    if (!GROW(&r->buf, &r->room, n + STREAM_AHEAD))
        return false;
    memcpy(r->buf, at, n);
    memset(r->buf + n, 0, STREAM_AHEAD);
    return r->spec.take(r->spec.ctx, &s->key, r->buf, 0, n,
                        place < 0 ? 0 : (uint64_t)place);
}

/* A segment that begins before the next byte. Unless all of its old bytes are
 * those of the history, it is handed over by itself: all of it, since a string
 * may lie across its old and new bytes. */
static bool old_bytes_look(struct reassembly *r, const struct stream *s,
                           int64_t place, const unsigned char *at, size_t n)
{
    const int64_t known = s->at - (int64_t)s->nhistory;
    const int64_t end = place + (int64_t)n < s->at ? place + (int64_t)n : s->at;
    const int64_t from = place > known ? place : known;
    const int64_t both = end > from ? end - from : 0;
    const uint64_t unknown = (uint64_t)(end - place - both);
    uint64_t changed = 0;
    if (both) {
        const unsigned char *const was = s->history + (from - known);
        const unsigned char *const is = at + (from - place);
        if (memcmp(was, is, (size_t)both) != 0)
            for (int64_t i = 0; i < both; i++)
                changed += was[i] != is[i];
    }
    if (!unknown && !changed)
        return true;
    r->sum.late += unknown;
    r->sum.changed += changed;
    return segment_hand_over(r, s, place, at, n);
}

/* A segment that begins at or before the next byte. */
static bool rest_hand_over(struct reassembly *r, struct stream *s,
                           int64_t place, const unsigned char *at, size_t n,
                           size_t wire)
{
    const uint64_t old = (uint64_t)(s->at - place);
    if (old && n && !old_bytes_look(r, s, place, at, n))
        return false;
    if (old >= wire)
        return true;
    const size_t cut = old < n ? (size_t)old : n;
    return bytes_hand_over(r, s, at + cut, n - cut, wire - (size_t)old);
}

/* Segments that are no longer early. */
static bool early_hand_over(struct reassembly *r, struct stream *s)
{
    while (s->nearly && s->early[s->done]->place <= s->at) {
        const struct early *const e = s->early[s->done];
        if (!rest_hand_over(r, s, e->place, e->at, e->n, e->wire))
            return false;
        early_drop(r, s);
    }
    return true;
}

/* The bytes up to the first segment that waits are given up. */
static bool gap_skip(struct reassembly *r, struct stream *s)
{
    const int64_t missing = s->early[s->done]->place - s->at;
    return bytes_hand_over(r, s, NULL, 0, (size_t)missing) &&
           early_hand_over(r, s);
}

static bool stream_end(struct reassembly *r, struct stream *s)
{
    while (s->nearly)
        if (s->over && s->early[s->done]->twice)
            early_drop(r, s);
        else if (!gap_skip(r, s))
            return false;
    stream_free(r, s);
    return true;
}

/* Room for one more pointer, behind the others. */
static bool early_room(struct reassembly *r, struct stream *s)
{
    if (s->done + s->nearly < s->early_room)
        return true;
    if (s->done) {
        memmove(s->early, s->early + s->done, s->nearly * sizeof s->early[0]);
        s->done = 0;
        return true;
    }
    const size_t had = s->early_room;
    if (!GROW(&s->early, &s->early_room, had + 1))
        return false;
    memory_take(r, (s->early_room - had) * sizeof s->early[0]);
    return true;
}

static bool early_add(struct reassembly *r, struct stream *s, int64_t place,
                      const struct segment *from, bool twice)
{
    /* Behind those with the same place: the first version counts. */
    size_t low;
    LOWER_BOUND(low, s->nearly, s->early[s->done + low]->place <= place);
    low += s->done;
    if (low > s->done) {
        struct early *const before = s->early[low - 1];
        if (before->place == place && before->wire == from->wire &&
            before->n == from->n &&
            memcmp(before->at, from->at, from->n) == 0) {
            before->twice &= twice;
            return true; /* sent again while it waits */
        }
    }
    const size_t behind = s->done + s->nearly - low;
    struct early *const e = malloc(sizeof *e + from->n);
    if (!e || !early_room(r, s)) {
        free(e);
        return false;
    }
    *e = (struct early){ place, from->n, from->wire, twice };
    memcpy(e->at, from->at, from->n);
    struct early **const to = s->early + s->done + s->nearly - behind;
    memmove(to + 1, to, behind * sizeof *to);
    *to = e;
    s->nearly++;
    memory_take(r, sizeof *e + from->n);
    return s->nearly <= WAITING || gap_skip(r, s);
}

/* ------------------------------------------------------------ the segments */

/* Others go first; if this one alone is too much, its gaps are given up. */
static bool memory_bound(struct reassembly *r, struct stream *but)
{
    while (r->ended.oldest && r->ended.oldest != but &&
           (r->ended.n > ENDED || r->memory > r->spec.memory))
        if (!stream_end(r, r->ended.oldest))
            return false;
    while (r->memory > r->spec.memory) {
        struct stream *const rich =
            r->trimmed ? r->trimmed->newer : r->live.oldest;
        if (!rich)
            break;
        history_trim(r, rich, 0);
        r->trimmed = rich;
    }
    while (r->memory > r->spec.memory && r->live.oldest &&
           r->live.oldest != but) {
        r->sum.evicted++;
        if (!stream_end(r, r->live.oldest))
            return false;
    }
    while (r->memory > r->spec.memory && but->nearly)
        if (!gap_skip(r, but))
            return false;
    return true;
}

/* One stream with these ends is given up for another: one that has ended, or
 * never had a byte, or was silent longest. */
static bool alike_drop(struct reassembly *r, struct stream *const some[ALIKE])
{
    struct stream *least = some[0];
    unsigned least_worth = 3;
    for (size_t i = 0; i < ALIKE; i++) {
        const bool empty = some[i]->at == 0 && some[i]->nearly == 0;
        const unsigned worth = some[i]->over ? 0 : empty ? 1 : 2;
        if (worth < least_worth ||
            (worth == least_worth && some[i]->heard < least->heard)) {
            least = some[i];
            least_worth = worth;
        }
    }
    r->sum.evicted += least_worth == 2;
    return stream_end(r, least);
}

/* A segment that is near a stream. `others`: also near one that has not ended.
 *
 * An end is believed, and what follows belongs to another connection with the
 * same ports, unless bytes come just where it was. By then some that lie behind
 * them may have come, so these wait here as well, and are left to the other
 * stream if nothing fills the gap. */
static bool stream_take_segment(struct reassembly *r, struct stream *s,
                                const struct segment *from, bool others)
{
    const int64_t place = place_of(s, from->sequence);
    const int64_t end = place + (int64_t)from->wire;
    const bool twice = s->over && others && place > s->at;
    if (s->over && (!from->wire || (others && end < s->at) ||
                    (twice && s->nearly >= TWICE)))
        return true;
    age_leave(r, s);
    if (s->over && end > s->at && !twice)
        s->end = -1; /* it was none */
    age_enter(r, s, s->over && s->end >= 0);
    if (from->wire && place <= s->at) {
        if (!rest_hand_over(r, s, place, from->at, from->n, from->wire) ||
            !early_hand_over(r, s))
            return false;
    } else if (from->wire && !early_add(r, s, place, from, twice)) {
        return false;
    }
    if (from->fin || (from->rst && end == s->at))
        s->end = end;
    if (s->end == s->at && !s->over) {
        age_leave(r, s);
        age_enter(r, s, true);
        history_trim(r, s, LAST);
    }
    return true;
}

/* Does this segment begin a stream, beside those that there are? */
static bool begins_stream(struct stream *const there[ALIKE], size_t n,
                          const struct segment *from)
{
    /* A receiver takes no new beginning near the bytes it waits for; one that
     * was sent again is that of the stream. */
    for (size_t i = 0; i < n; i++)
        if (is_near(there[i], from->sequence) &&
            (!from->syn || !there[i]->over ||
             there[i]->first == from->sequence))
            return false;
    return from->syn || from->wire;
}

bool reassembly_add(struct reassembly *r, const struct segment *from)
{
    struct stream *there[ALIKE];
    struct segment of = *from;
    size_t n = streams_find(r, &from->key, there);
    struct stream *last = NULL;
    bool live = false, near_live = false;
    of.sequence += of.syn;
    r->segments++;
    if (begins_stream(there, n, &of)) {
        /* Far from all that goes on, and no beginning. */
        for (size_t i = 0; i < n; i++)
            live = live || !there[i]->over;
        if (live && !of.syn)
            r->sum.late += of.n;
        if ((n == ALIKE && !alike_drop(r, there)) || !stream_new(r, &of))
            return false;
        n = streams_find(r, &from->key, there);
    }
    for (size_t i = 0; i < n; i++)
        near_live =
            near_live || (!there[i]->over && is_near(there[i], of.sequence));
    for (size_t i = 0; i < n; i++)
        if (is_near(there[i], of.sequence)) {
            last = there[i];
            if (!stream_take_segment(r, last, &of, near_live))
                return false;
        }
    return !last || memory_bound(r, last);
}

bool reassembly_end(struct reassembly *r)
{
    while (r->ended.oldest)
        if (!stream_end(r, r->ended.oldest))
            return false;
    while (r->live.oldest)
        if (!stream_end(r, r->live.oldest))
            return false;
    return true;
}

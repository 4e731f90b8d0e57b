/*
 * gossip.c - a peer that tells others what it has, as a state machine
 */
#include "apps/net/gossip/gossip.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/lookup.h"

#define GOSSIP_BACKOFF 6 /* doublings of the wait for one that is silent */
#define TRIES 16         /* to find somebody to talk to */

/* ------------------------------------------------------------ the directory */

uint64_t gossip_id(const struct address *a)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3 };
    unsigned char bytes[19] = { a->family };
    memcpy(bytes + 1, a->at, 16);
    bytes[17] = (unsigned char)(a->port & 255);
    bytes[18] = (unsigned char)(a->port >> 8);
    const uint64_t id = bly_hash(&h, bytes, sizeof bytes);
    return id ? id : 1;
}

static uint64_t gossip_random(struct gossip *g)
{
    return mix_fast(g->random += RANDOM_STEP);
}

/* The next version of this life. */
static uint64_t version_after(const struct gossip *g, uint64_t version)
{
    return (version / GOSSIP_LIVES + 1) * GOSSIP_LIVES + g->life;
}

static uint32_t *slot_of(const struct gossip *g, uint64_t id)
{
    size_t at = table_hash(&id, sizeof id) & (g->nslots - 1);
    while (g->slots[at] && g->entries[g->slots[at] - 1].id != id)
        at = (at + 1) & (g->nslots - 1);
    return &g->slots[at];
}

struct gossip_entry *gossip_find(const struct gossip *g, uint64_t id)
{
    const uint32_t at = g->nslots ? *slot_of(g, id) : 0;
    return at ? &g->entries[at - 1] : NULL;
}

static void slots_fill(struct gossip *g)
{
    memset(g->slots, 0, g->nslots * sizeof *g->slots);
    for (size_t i = 0; i < g->n; i++)
        *slot_of(g, g->entries[i].id) = (uint32_t)i + 1;
}

static bool directory_grow(struct gossip *g)
{
    const size_t room = g->room ? 2 * g->room : 16;
    struct gossip_entry *const more = realloc(g->entries, room * sizeof *more);
    if (!more)
        return false;
    g->entries = more;
    uint32_t *const slots = malloc(2 * room * sizeof *slots);
    if (!slots)
        return false;
    free(g->slots);
    g->slots = slots;
    g->nslots = 2 * room;
    g->room = room;
    slots_fill(g);
    return true;
}

/* The share that an entry has in the sums; addresses alone have none. */
static void sum_flip(struct gossip *g, const struct gossip_entry *e)
{
    if (e->version)
        g->sums[e->id % GOSSIP_BUCKETS] ^=
            (uint32_t)mix_fast(e->id ^ mix_fast(e->version));
}

static void entry_summary(struct gossip *g, struct gossip_entry *e,
                          struct summary *s)
{
    summary_hold(s);
    if (e->summary)
        g->bytes -= e->summary->nwhole;
    summary_drop(e->summary);
    e->summary = s;
    if (s)
        g->bytes += s->nwhole;
}

static void entry_forget(struct gossip *g, size_t at)
{
    entry_summary(g, &g->entries[at], NULL);
    sum_flip(g, &g->entries[at]);
    g->entries[at] = g->entries[--g->n];
    slots_fill(g);
}

/* A full directory forgets the one that has been silent longest; whoever
 * answers is never put out by strangers. */
static bool directory_room(struct gossip *g)
{
    size_t silent = 0;
    if (g->n < g->rules->most_peers)
        return g->n < g->room || directory_grow(g);
    for (size_t i = 1; g->entries && i < g->n; i++)
        if (g->entries[i].silent &&
            (!silent || g->entries[i].since < g->entries[silent].since))
            silent = i;
    if (!silent)
        return false;
    entry_forget(g, silent);
    return true;
}

static bool address_good(const struct address *a)
{
    return (a->family == 4 || a->family == 6) && a->port;
}

/* The entry of an address, made if need be; NULL: there is no room. */
static struct gossip_entry *entry_at(struct gossip *g, const struct address *a)
{
    const uint64_t id = gossip_id(a);
    struct gossip_entry *const known = gossip_find(g, id);
    if (known)
        return known;
    if (!g->entries || !address_good(a) || !directory_room(g))
        return NULL;
    g->entries[g->n] = (struct gossip_entry){ .id = id, .address = *a };
    *slot_of(g, id) = (uint32_t)++g->n;
    return &g->entries[g->n - 1];
}

bool gossip_take(struct gossip *g, const struct gossip_news *news, bool hot)
{
    struct gossip_entry *const e = entry_at(g, &news->address);
    if (!e || e == g->entries || news->version <= e->version ||
        news->version >= GOSSIP_LAST)
        return false;
    const bool fits = news->summary &&
                      g->bytes + news->summary->nwhole <= g->rules->most_bytes;
    sum_flip(g, e);
    e->version = news->version;
    sum_flip(g, e);
    entry_summary(g, e, fits ? news->summary : NULL);
    e->hot = hot;
    e->knew = 0;
    e->whole = false;
    return true;
}

size_t gossip_hot(const struct gossip *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += g->entries[i].hot;
    return n;
}

void gossip_message_free(struct gossip_message *m)
{
    for (size_t i = 0; i < m->nnews; i++)
        summary_drop(m->news[i].summary);
    free(m->news);
    free(m->pairs);
    *m = (struct gossip_message){ 0 };
}

/* ------------------------------------------------------------------- asking */

static void asked_end(struct gossip_asked *a)
{
    free(a->pairs);
    *a = (struct gossip_asked){ 0 };
}

static struct gossip_asked *asked_of(struct gossip *g, uint32_t request)
{
    for (size_t i = 0; request && i < GOSSIP_ASKED; i++)
        if (g->asked[i].request == request)
            return &g->asked[i];
    return NULL;
}

/* Ask; the pairs are taken over. */
static void gossip_ask(struct gossip *g, const struct address *to,
                       struct gossip_message *m)
{
    struct gossip_asked *a = NULL;
    for (size_t i = 0; i < GOSSIP_ASKED && !a; i++)
        if (!g->asked[i].request)
            a = &g->asked[i];
    if (!a) { /* too much is under way: the next comparison finds it again */
        free(m->pairs);
        return;
    }
    m->request = ++g->last_request ? g->last_request : ++g->last_request;
    m->from = g->entries[0].address;
    *a = (struct gossip_asked){ m->request, m->type,  gossip_id(to),
                                *to,        m->pairs, m->npairs };
    g->host->ask(g, to, m);
}

/* Another peer that may answer; NULL: none. A silent peer is left alone for a
 * while, twice as long each time. */
static const struct address *somebody(struct gossip *g)
{
    for (unsigned i = 0; i < TRIES && g->n > 1; i++) {
        const struct gossip_entry *const e =
            &g->entries[1 + gossip_random(g) % (g->n - 1)];
        if (e->again <= g->now)
            return &e->address;
    }
    /* A seed is asked again for ever, so that parts find each other. */
    if (!g->nseeds)
        return NULL;
    const struct address *const seed = &g->seeds[gossip_random(g) % g->nseeds];
    const struct gossip_entry *const e = gossip_find(g, gossip_id(seed));
    return e && (e == g->entries || e->again > g->now) ? NULL : seed;
}

static void ask_rumours(struct gossip *g)
{
    struct gossip_pair *const pairs = malloc(GOSSIP_TOLD * sizeof *pairs);
    size_t n = 0;
    if (!pairs)
        return;
    /* From anywhere, so that a flood of news does not hide the rest. */
    const size_t from = gossip_random(g) % g->n;
    for (size_t i = 0; i < g->n && n < GOSSIP_TOLD; i++) {
        const struct gossip_entry *const e = &g->entries[(from + i) % g->n];
        if (e->hot)
            pairs[n++] = (struct gossip_pair){ e->id, e->version };
    }
    const struct address *const to = n ? somebody(g) : NULL;
    if (!to) {
        free(pairs);
        return;
    }
    struct gossip_message m = { .type = GOSSIP_RUMOUR,
                                .pairs = pairs,
                                .npairs = n };
    g->counts.rumours++;
    gossip_ask(g, to, &m);
}

static void ask_compare(struct gossip *g)
{
    const struct address *const to = somebody(g);
    struct gossip_message m = { .type = GOSSIP_COMPARE };
    if (!to)
        return;
    memcpy(m.sums, g->sums, sizeof m.sums);
    g->counts.compared++;
    gossip_ask(g, to, &m);
}

/* Is it being fetched already? */
static bool is_coming(const struct gossip *g, const struct gossip_pair *p)
{
    for (size_t i = 0; i < GOSSIP_ASKED; i++) {
        const struct gossip_asked *const a = &g->asked[i];
        for (size_t k = 0; a->type == GOSSIP_FETCH_THESE && k < a->npairs; k++)
            if (a->pairs[k].id == p->id)
                return true;
    }
    return false;
}

/* Somebody knows a version of this very peer that it has not made: it was made
 * in an earlier life, or somebody lies. Continue with a higher number. */
static void self_older(struct gossip *g, uint64_t version)
{
    struct gossip_entry *const self = &g->entries[0];
    if (version <= self->version || version >= GOSSIP_LAST - 2 * GOSSIP_LIVES)
        return;
    sum_flip(g, self);
    self->version = version_after(g, version);
    sum_flip(g, self);
    self->hot = true;
    self->knew = 0;
}

/* Fetch what is newer there than here. */
static void fetch_newer(struct gossip *g, const struct address *from,
                        const struct gossip_pair *pairs, size_t n)
{
    struct gossip_pair *const want =
        malloc((n < GOSSIP_FETCH ? n + 1 : GOSSIP_FETCH) * sizeof *want);
    size_t nwant = 0;
    for (size_t i = 0; want && i < n && nwant < GOSSIP_FETCH; i++) {
        const struct gossip_entry *const e = gossip_find(g, pairs[i].id);
        if (e == g->entries && e) {
            self_older(g, pairs[i].version);
            continue;
        }
        if (pairs[i].version >= GOSSIP_LAST || !pairs[i].version ||
            (e && e->version >= pairs[i].version) || is_coming(g, &pairs[i]))
            continue;
        want[nwant++] = (struct gossip_pair){
            pairs[i].id, e && e->summary && !e->whole ? e->version : 0
        };
    }
    if (!nwant) {
        free(want);
        return;
    }
    struct gossip_message m = { .type = GOSSIP_FETCH_THESE,
                                .pairs = want,
                                .npairs = nwant };
    gossip_ask(g, from, &m);
}

/* ---------------------------------------------------------------- answering */

static void answer_rumours(struct gossip *g, const struct gossip_message *q,
                           struct gossip_message *a)
{
    for (size_t i = 0; i < q->npairs && i < GOSSIP_TOLD; i++) {
        const struct gossip_entry *const e = gossip_find(g, q->pairs[i].id);
        if (e && e->version >= q->pairs[i].version)
            a->knew |= UINT64_C(1) << i;
    }
    fetch_newer(g, &q->from, q->pairs,
                q->npairs < GOSSIP_TOLD ? q->npairs : GOSSIP_TOLD);
}

static bool answer_compare(const struct gossip *g,
                           const struct gossip_message *q,
                           struct gossip_message *a)
{
    a->pairs = malloc((g->n + 1) * sizeof *a->pairs);
    if (!a->pairs)
        return false;
    for (size_t i = 0; i < g->n; i++) {
        const struct gossip_entry *const e = &g->entries[i];
        const size_t bucket = e->id % GOSSIP_BUCKETS;
        if (e->version && q->sums[bucket] != g->sums[bucket])
            a->pairs[a->npairs++] = (struct gossip_pair){ e->id, e->version };
    }
    return true;
}

static bool answer_fetch(const struct gossip *g, const struct gossip_message *q,
                         struct gossip_message *a)
{
    size_t bytes = 0;
    a->news = calloc(q->npairs + 1, sizeof *a->news);
    if (!a->news)
        return false;
    for (size_t i = 0; i < q->npairs && bytes < GOSSIP_PAYLOAD; i++) {
        const struct gossip_entry *const e = gossip_find(g, q->pairs[i].id);
        if (!e || !e->version || e->version <= q->pairs[i].version)
            continue;
        struct summary *const s = summary_hold(e->summary);
        a->news[a->nnews++] = (struct gossip_news){
            .id = e->id,
            .version = e->version,
            .address = e->address,
            .summary = s,
            .have = q->pairs[i].version,
        };
        if (s)
            bytes += s->ndelta && s->base == q->pairs[i].version ? s->ndelta
                                                                 : s->nwhole;
    }
    return true;
}

/* A peer that sends something is alive. */
static void heard(struct gossip *g, const struct address *a)
{
    struct gossip_entry *const e = entry_at(g, a);
    if (!e)
        return;
    e->silent = 0;
    e->again = 0;
}

bool gossip_question(struct gossip *g, const struct gossip_message *q,
                     struct gossip_message *answer, uint64_t now)
{
    g->now = now;
    *answer = (struct gossip_message){ .type = q->type, .answer = true };
    if (!address_good(&q->from))
        return false;
    heard(g, &q->from);
    g->counts.answered++;
    switch (q->type) {
    case GOSSIP_RUMOUR:
        answer_rumours(g, q, answer);
        return true;
    case GOSSIP_COMPARE:
        return answer_compare(g, q, answer);
    case GOSSIP_FETCH_THESE:
        return answer_fetch(g, q, answer);
    default:
        return false;
    }
}

/* ------------------------------------------------------------------ answers */

static void rumours_told(struct gossip *g, const struct gossip_asked *a,
                         uint64_t knew)
{
    for (size_t i = 0; i < a->npairs; i++) {
        struct gossip_entry *const e = gossip_find(g, a->pairs[i].id);
        if (!e || e->version != a->pairs[i].version)
            continue;
        e->knew = knew >> i & 1 ? (uint8_t)(e->knew + 1) : 0;
        if (e->knew >= g->rules->enough)
            e->hot = false;
    }
}

static bool was_asked(const struct gossip_asked *a, uint64_t id)
{
    for (size_t i = 0; i < a->npairs; i++)
        if (a->pairs[i].id == id)
            return true;
    return false;
}

static void news_came(struct gossip *g, struct gossip_asked *a,
                      const struct gossip_message *m)
{
    size_t taken = 0, left = 0;
    for (size_t i = 0; i < m->nnews; i++) {
        const struct gossip_news *const news = &m->news[i];
        struct gossip_entry *const e = gossip_find(g, news->id);
        if (!was_asked(a, news->id) || gossip_id(&news->address) != news->id)
            continue;
        if (news->bad) {
            g->counts.refused++;
            if (e)
                e->whole = true;
            continue;
        }
        if (gossip_take(g, news, true)) {
            taken++;
            g->counts.fetched++;
            g->counts.deltas += news->summary && news->summary->ndelta;
        }
    }
    if (!taken)
        return;
    /* An answer has only so many bytes: go on with what is left. */
    for (size_t i = 0; i < a->npairs; i++) {
        bool came = false;
        for (size_t k = 0; k < m->nnews && !came; k++)
            came = m->news[k].id == a->pairs[i].id;
        if (!came)
            a->pairs[left++] = a->pairs[i];
    }
    if (!left)
        return;
    struct gossip_message more = { .type = GOSSIP_FETCH_THESE,
                                   .pairs = a->pairs,
                                   .npairs = left };
    const struct address to = a->to;
    *a = (struct gossip_asked){ 0 };
    gossip_ask(g, &to, &more);
}

void gossip_answer(struct gossip *g, uint32_t request,
                   const struct gossip_message *m, uint64_t now)
{
    struct gossip_asked *const a = asked_of(g, request);
    g->now = now;
    if (!a || !m->answer || m->type != a->type)
        return;
    const struct address to = a->to;
    heard(g, &to);
    if (a->type == GOSSIP_RUMOUR)
        rumours_told(g, a, m->knew);
    else if (a->type == GOSSIP_FETCH_THESE)
        news_came(g, a, m);
    if (a->request == request)
        asked_end(a);
    if (m->type == GOSSIP_COMPARE)
        fetch_newer(g, &to, m->pairs, m->npairs);
}

void gossip_silent(struct gossip *g, uint32_t request, uint64_t now)
{
    struct gossip_asked *const a = asked_of(g, request);
    g->now = now;
    if (!a)
        return;
    struct gossip_entry *const e = gossip_find(g, a->id);
    asked_end(a);
    g->counts.silent++;
    if (!e || e == g->entries)
        return;
    if (!e->silent)
        e->since = now;
    e->silent = e->silent < 255 ? (uint8_t)(e->silent + 1) : 255;
    e->again =
        now + (g->rules->interval
               << (e->silent < GOSSIP_BACKOFF ? e->silent : GOSSIP_BACKOFF));
    /* Its place in the directory is kept, so that directories stay alike. */
    if (e->silent > 2 && now - e->since > g->rules->dead)
        entry_summary(g, e, NULL);
}

/* --------------------------------------------------------------- own events */

bool gossip_init(struct gossip *g, const struct gossip_rules *rules,
                 const struct gossip_host *host, void *ctx,
                 const struct address *self, const struct address *seeds,
                 size_t nseeds, uint64_t version, uint64_t seed)
{
    *g = (struct gossip){
        .rules = rules, .host = host, .ctx = ctx, .random = seed
    };
    if (!directory_grow(g))
        return false;
    g->life = mix_fast(seed) % GOSSIP_LIVES;
    const uint64_t from =
        version < GOSSIP_LAST / GOSSIP_LIVES / 2 ? version : 0;
    g->entries[0] = (struct gossip_entry){ .id = gossip_id(self),
                                           .address = *self,
                                           .version = version_after(
                                               g, from * GOSSIP_LIVES) };
    g->n = 1;
    slots_fill(g);
    sum_flip(g, g->entries);
    g->seeds = malloc((nseeds + 1) * sizeof *seeds);
    if (!g->seeds)
        return false;
    if (nseeds)
        memcpy(g->seeds, seeds, nseeds * sizeof *seeds);
    g->nseeds = nseeds;
    return true;
}

void gossip_free(struct gossip *g)
{
    for (size_t i = 0; i < g->n; i++)
        summary_drop(g->entries[i].summary);
    for (size_t i = 0; i < GOSSIP_ASKED; i++)
        asked_end(&g->asked[i]);
    free(g->entries);
    free(g->slots);
    free(g->seeds);
    *g = (struct gossip){ 0 };
}

void gossip_start(struct gossip *g, uint64_t now)
{
    g->now = now;
    /* Anywhere in an interval, so that peers do not speak all at once. */
    g->host->timer(g, GOSSIP_TIMER_RUMOUR,
                   gossip_random(g) % g->rules->interval + 1);
    g->host->timer(g, GOSSIP_TIMER_COMPARE,
                   gossip_random(g) % g->rules->compare + 1);
    if (g->nseeds)
        ask_compare(g);
}

void gossip_publish(struct gossip *g, struct summary *s, uint64_t now)
{
    struct gossip_entry *const self = &g->entries[0];
    g->now = now;
    sum_flip(g, self);
    self->version = version_after(g, self->version);
    sum_flip(g, self);
    entry_summary(g, self, s);
    self->hot = true;
    self->knew = 0;
}

void gossip_tick(struct gossip *g, enum gossip_timer t, uint64_t now)
{
    g->now = now;
    if (t == GOSSIP_TIMER_RUMOUR) {
        g->host->timer(g, t, g->rules->interval);
        ask_rumours(g);
    } else {
        g->host->timer(g, t, g->rules->compare);
        ask_compare(g);
    }
}

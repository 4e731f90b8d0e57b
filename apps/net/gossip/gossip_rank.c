/*
 * gossip_rank.c - which peers to ask, when to stop, and which documents win
 */
#include "apps/net/gossip/gossip_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/text_words.h"

/* -------------------------------------------------------------------- words */

uint64_t word_hash(bly_bytes word)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3 };
    return bly_hash(&h, word.ptr, word.len);
}

static bool query_word(void *ctx, bly_bytes word)
{
    struct query *const q = ctx;
    const uint64_t hash = word_hash(word);
    if (word.len > QUERY_WORD)
        return true; /* no document has it */
    for (unsigned i = 0; i < q->n; i++)
        if (q->words[i].hash == hash)
            return true;
    if (q->n == QUERY_WORDS)
        return false;
    memcpy(q->words[q->n].text, word.ptr, word.len);
    q->words[q->n].len = (uint8_t)word.len;
    q->words[q->n++].hash = hash;
    return true;
}

bool query_words(struct query *q, const char *const *texts, size_t n)
{
    bool ok = true;
    q->n = 0;
    for (size_t i = 0; ok && i < n; i++) {
        struct word_cutter c = { .each = query_word, .ctx = q };
        ok = words_cut(&c, texts[i], strlen(texts[i])) && words_end(&c);
    }
    return ok && q->n;
}

double found_score(const struct query *q, const struct found *f)
{
    double sum = 0;
    for (unsigned i = 0; i < q->n; i++)
        if (f->counts[i])
            sum += q->words[i].weight * (1 + log((double)f->counts[i]));
    return f->words ? sum / sqrt((double)f->words) : 0;
}

/* -------------------------------------------------------------------- peers */

static int by_rank(const void *a, const void *b)
{
    const struct search_peer *const x = a, *const y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? 1 : -1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

bool search_new(struct gossip_search *s, const struct gossip *g,
                const struct query *q, unsigned patience)
{
    memset(s, 0, sizeof *s);
    s->query = *q;
    s->peers = malloc((g->n + 1) * sizeof *s->peers);
    uint16_t *const have = malloc((g->n + 1) * sizeof *have);
    size_t with[QUERY_WORDS] = { 0 };
    if (!s->peers || !have) {
        free(have);
        return false;
    }
    for (size_t i = 0; i < g->n; i++) {
        have[i] = 0;
        if (!g->entries[i].summary)
            continue;
        s->known++;
        for (unsigned t = 0; t < q->n; t++)
            if (summary_has(g->entries[i].summary, q->words[t].hash)) {
                have[i] |= (uint16_t)(1u << t);
                with[t]++;
            }
    }
    /* The weight needs the number of peers with a word, so filters are asked
     * in a first pass and ranks are summed in a second. */
    for (unsigned t = 0; t < q->n; t++)
        s->query.words[t].weight =
            with[t] ? log(1 + (double)s->known / (double)with[t]) : 0;
    for (size_t i = 0; i < g->n; i++) {
        if (!have[i])
            continue;
        struct search_peer *const p = &s->peers[s->npeers++];
        *p = (struct search_peer){ .id = g->entries[i].id,
                                   .address = g->entries[i].address,
                                   .bytes = g->entries[i].summary->nwhole };
        for (unsigned t = 0; t < q->n; t++)
            if (have[i] >> t & 1)
                p->rank += s->query.words[t].weight;
    }
    free(have);
    qsort(s->peers, s->npeers, sizeof *s->peers, by_rank);
    const unsigned published =
        (unsigned)(2 + s->known / 300) + 2 * (s->query.k / 50);
    s->patience = patience ? patience : published < q->k ? q->k : published;
    s->over = !s->npeers;
    return true;
}

static void found_free(struct found *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)f[i].path.ptr);
}

void search_free(struct gossip_search *s)
{
    found_free(s->best, s->nbest);
    for (size_t i = 0; i < SEARCH_GROUP; i++) {
        found_free(s->group[i].at, s->group[i].n);
        free(s->group[i].at);
    }
    free(s->peers);
    memset(s, 0, sizeof *s);
}

const struct search_peer *search_next(struct gossip_search *s, uint32_t *which)
{
    /* A group is asked at once, the next one when all of it have answered. */
    if (s->over || s->next >= s->npeers || s->next >= s->due + SEARCH_GROUP ||
        (s->next % SEARCH_GROUP == 0 && s->next != s->due))
        return NULL;
    *which = (uint32_t)s->next;
    s->asked++;
    return &s->peers[s->next++];
}

/* Put a document among the best: whether it is one of them. */
static bool best_put(struct gossip_search *s, const struct found *f)
{
    size_t at = s->nbest;
    while (at > 0 && s->best[at - 1].score < f->score)
        at--;
    if (at >= s->query.k || at >= QUERY_BEST)
        return false;
    if (s->nbest == s->query.k || s->nbest == QUERY_BEST)
        found_free(&s->best[--s->nbest], 1);
    memmove(s->best + at + 1, s->best + at,
            (s->nbest - at) * sizeof s->best[0]);
    s->best[at] = *f;
    s->nbest++;
    return true;
}

/* A copy whose texts are in one piece of memory. */
static bool found_copy(struct found *to, const struct found *from)
{
    char *const at = malloc(from->path.len + from->context.len + 1);
    *to = *from;
    if (!at)
        return false;
    if (from->path.len)
        memcpy(at, from->path.ptr, from->path.len);
    if (from->context.len)
        memcpy(at + from->path.len, from->context.ptr, from->context.len);
    to->path.ptr = at;
    to->context.ptr = at + from->path.len;
    return true;
}

void search_took(struct gossip_search *s, uint32_t which,
                 const struct found *at, size_t n)
{
    if (which < s->due || which >= s->next || s->over)
        return;
    const size_t slot = which % SEARCH_GROUP;
    struct found *const copy = n ? malloc(n * sizeof *copy) : NULL;
    size_t ncopy = 0;
    for (size_t i = 0; copy && at && i < n; i++)
        if (found_copy(&copy[ncopy], &at[i])) {
            copy[ncopy].peer = which;
            copy[ncopy].score = found_score(&s->query, &at[i]);
            ncopy++;
        }
    s->group[slot].at = copy;
    s->group[slot].n = ncopy;
    s->group[slot].came = true;
    s->group[slot].silent = !at;
    /* In the order of their ranks, whoever answers first. */
    while (s->due < s->next && s->group[s->due % SEARCH_GROUP].came) {
        const size_t k = s->due % SEARCH_GROUP;
        bool any = false;
        for (size_t i = 0; i < s->group[k].n; i++) {
            if (!s->over && best_put(s, &s->group[k].at[i]))
                any = true;
            else
                found_free(&s->group[k].at[i], 1);
        }
        free(s->group[k].at);
        s->silent += s->group[k].silent;
        /* A silent peer says nothing about those that come next. */
        s->vain = any ? 0 : s->vain + !s->group[k].silent;
        memset(&s->group[k], 0, sizeof s->group[k]);
        s->due++;
        if (s->vain >= s->patience || s->due == s->npeers)
            s->over = true;
    }
}

bool search_over(const struct gossip_search *s)
{
    return s->over;
}

/*
 * gossip_summary.c - the words of a peer, as a filter that is passed on
 *
 * The kind is the one that is small on the way. A filter has room for a quarter
 * more words than there are, so that most changes are a few flipped bits of the
 * same filter, and travel as these.
 */
#include "apps/net/gossip/gossip_summary.h"

#include <stdlib.h>
#include <string.h>

#define SUMMARY_RATE 0.01

/* Bytes that grow, up to those of a summary. */
struct gathered {
    unsigned char *at;
    size_t n, room;
};

static bool gather(void *ctx, const void *bytes, size_t n)
{
    struct gathered *const g = ctx;
    if (n > SUMMARY_MOST || g->n + n > SUMMARY_MOST)
        return false;
    if (g->n + n > g->room) {
        const size_t room = 2 * (g->n + n);
        unsigned char *const more = realloc(g->at, room);
        if (!more)
            return false;
        g->at = more;
        g->room = room;
    }
    memcpy(g->at + g->n, bytes, n);
    g->n += n;
    return true;
}

/* The bytes of a filter that is the summary's from now on. */
static struct summary *summary_of(bly_filter *f)
{
    struct summary *const s = calloc(1, sizeof *s);
    struct gathered g = { 0 };
    if (!s || bly_write(f, gather, &g)) {
        free(g.at);
        free(s);
        bly_free(f);
        return NULL;
    }
    *s = (struct summary){
        .refs = 1, .filter = f, .whole = g.at, .nwhole = g.n
    };
    return s;
}

struct summary *summary_new(const uint64_t *words, size_t n,
                            const struct summary *before, uint64_t base)
{
    bly_stats old = { 0 };
    if (before)
        bly_peek(before->filter, &old);
    const bool fits = before && n <= old.capacity && n + 64 >= old.capacity / 3;
    const bly_spec spec = { .kind = "compressed",
                            .items = fits ? old.capacity : n + n / 4 + 64,
                            .fpr = SUMMARY_RATE };
    bly_filter *f = NULL;
    if (bly_new(&spec, &f) || bly_add_hashes(f, words, n, NULL, NULL)) {
        bly_free(f);
        return NULL;
    }
    bly_set_compact(f, true);
    struct summary *const s = summary_of(f);
    struct gathered g = { 0 };
    if (s && before &&
        bly_delta_write(before->filter, f, gather, &g, NULL) == BLY_OK &&
        g.n < s->nwhole) {
        s->delta = g.at;
        s->ndelta = g.n;
        s->base = base;
    } else {
        free(g.at);
    }
    return s;
}

/* Nothing that anybody sends takes more memory than this. */
static const bly_access summary_access = { .max_bytes = 16 * SUMMARY_MOST };

struct summary *summary_whole(const void *bytes, size_t n)
{
    bly_filter *f = NULL;
    if (n > SUMMARY_MOST || bly_load(bytes, n, &summary_access, &f))
        return NULL;
    bly_set_compact(f, true);
    return summary_of(f);
}

struct summary *summary_delta(const void *bytes, size_t n,
                              const struct summary *before, uint64_t base)
{
    bly_filter *f = NULL;
    unsigned char *const kept = malloc(n ? n : 1);
    struct summary *s = NULL;
    if (kept && n && n <= SUMMARY_MOST && !bly_clone(before->filter, &f)) {
        if (!bly_delta_apply(f, bytes, n, NULL))
            s = summary_of(f);
        else
            bly_free(f);
    }
    if (!s) {
        free(kept);
        return NULL;
    }
    memcpy(kept, bytes, n);
    s->delta = kept;
    s->ndelta = n;
    s->base = base;
    return s;
}

struct summary *summary_hold(struct summary *s)
{
    if (s)
        s->refs++;
    return s;
}

void summary_drop(struct summary *s)
{
    if (!s || --s->refs)
        return;
    bly_free(s->filter);
    free(s->whole);
    free(s->delta);
    free(s);
}

bool summary_has(const struct summary *s, uint64_t word)
{
    return bly_has_hash(s->filter, word);
}

/*
 * beginning.c - what all keys of a range filter of text begin with
 *
 * Such a filter looks at eight bytes of a key. The first eight bytes of URLs or
 * paths are all alike: 20,000 keys become one, and every question gets "maybe".
 * So the keys are read twice. The first pass finds what all of them begin with
 * and counts, by two sketches, how many there are and how many in their first
 * eight bytes. If these are fewer, the builder leaves the beginning out.
 *
 * Where keys do not fall together nothing is left out, so that filters of
 * several lists can still be merged: that needs one beginning for all of them.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "cli/beginning.h"
#include "report/say.h"
#include "report/show.h"

#define EIGHT 8 /* bytes that count */

/* The sketches have a deviation of 0.2 %; so much less is no accident. */
#define TOGETHER_SKETCH 18
#define TOGETHER_SHARE 0.02

#define BEGINNING_MOST 65535 /* bytes, as the library has it */

struct looking {
    pthread_mutex_t lock;
    bly_hll *keys, *eights;
    struct block text; /* what all keys so far begin with */
    bool any;          /* there was one */
};

static size_t alike(bly_bytes a, bly_bytes b)
{
    const char *const x = a.ptr, *const y = b.ptr;
    const size_t most = a.len < b.len ? a.len : b.len;
    size_t n = 0;
    while (n < most && x[n] == y[n])
        n++;
    return n;
}

static bly_status look_at(struct looking *l, const struct batch *b,
                          bly_bytes first, const uint64_t *hashes,
                          const uint64_t *of_eight)
{
    if (!l->any && !block_put(&l->text, first.ptr, first.len))
        return BLY_ENOMEM;
    l->any = true;
    l->text.len = alike((bly_bytes){ l->text.at, l->text.len }, first);
    const bly_status st = bly_hll_add(l->keys, hashes, b->n);
    return st ? st : bly_hll_add(l->eights, of_eight, b->n);
}

static bly_status looking_batch(struct job *job, struct batch *b)
{
    struct looking *const l = job->ctx;
    uint64_t hashes[BATCH], of_eight[BATCH];
    bly_bytes eights[BATCH], first = b->keys[0];
    for (size_t i = 0; i < b->n; i++) {
        first.len = alike(first, b->keys[i]);
        eights[i] = b->keys[i];
        eights[i].len = eights[i].len < EIGHT ? eights[i].len : EIGHT;
    }
    first.len = first.len < BEGINNING_MOST ? first.len : BEGINNING_MOST;
    bly_hash_keys(bly_hll_hasher(l->keys), b->keys, b->n, hashes);
    bly_hash_keys(bly_hll_hasher(l->eights), eights, b->n, of_eight);
    pthread_mutex_lock(&l->lock);
    const bly_status st = look_at(l, b, first, hashes, of_eight);
    pthread_mutex_unlock(&l->lock);
    if (st)
        b->why = "out of memory";
    return st;
}

static bool fewer(double some, double all)
{
    return some < (1 - TOGETHER_SHARE) * all - 1;
}

/* Read all keys, and be ready to read them again. */
static bool look(struct looking *l, struct input *in, unsigned nthreads)
{
    struct job job = { .batch = looking_batch, .nthreads = nthreads, .ctx = l };
    const char *const tmp = getenv("TMPDIR");
    if (!input_spool(in, tmp ? tmp : "/tmp")) {
        fail("%s", in->error);
        return false;
    }
    if (pipeline_run(&job, in)) {
        fail("%s", job.error);
        return false;
    }
    input_rewind(in);
    return true;
}

bool beginning_find(struct input *in, const bly_spec *spec, unsigned nthreads,
                    bly_builder *b, struct beginning *out)
{
    struct looking l = { .lock = PTHREAD_MUTEX_INITIALIZER };
    bly_kind_info kind;
    *out = (struct beginning){ 0 };
    if (!bly_kind_named(spec->kind, &kind) || !(kind.can & BLY_CAN(RANGE)) ||
        bly_builder_hasher(b)->id != BLY_HASH_ORDERED_BYTES)
        return true;
    bool ok = !bly_hll_new(TOGETHER_SKETCH, NULL, &l.keys) &&
              !bly_hll_new(TOGETHER_SKETCH, NULL, &l.eights);
    if (!ok)
        fail_library();
    ok = ok && look(&l, in, nthreads);
    if (ok) {
        out->keys = bly_hll_estimate(l.keys, NULL);
        if (fewer(bly_hll_estimate(l.eights, NULL), out->keys))
            out->skipped = l.text.len;
    }
    if (ok && bly_builder_beginning(b, l.text.at, out->skipped)) {
        fail_library();
        ok = false;
    }
    bly_hll_free(l.keys);
    bly_hll_free(l.eights);
    block_free(&l.text);
    return ok;
}

void beginning_warn(const struct beginning *g, const char *path,
                    const bly_stats *s)
{
    const double left = (double)s->items_added;
    char behind[64] = "first eight bytes";
    if (!fewer(left, g->keys))
        return;
    if (g->skipped)
        snprintf(behind, sizeof behind,
                 "eight bytes behind the %zu that all begin with", g->skipped);
    warn(
        "%s: about %.0f different keys are %.0f in their %s, which is all that "
        "a %s filter of text keeps; of questions like them, about %s are "
        "\"maybe\" for another key. Cut keys down to what differs (--regex, "
        "--field)",
        path, g->keys, left, behind, s->kind, show_rate(1 - left / g->keys));
}

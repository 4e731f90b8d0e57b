/*
 * chord_reclaim.c - blocks that no file uses any more, and records that rot
 *
 * A block does not know which files use it, and another file may be about to.
 * So a block goes only if all of these hold:
 *
 *     nobody has put it for --reclaim     whoever is putting a file that shares
 *                                         it has just done so
 *     no process of the roster has a      each sends a filter of the digests in
 *     name that uses it                   its manifests, and must be ready in
 *                                         the epoch of all others: a side that
 *                                         is cut off stops this
 *     the owner and all holders have      so nobody gives it back to another
 *     found the same
 *
 * Filters answer "maybe" for one in a hundred that is unused; the next round
 * has another seed. A put that takes longer than half of --reclaim looks at its
 * blocks once more after its manifest is written (chord_files.c).
 *
 * The scrubber reads some records in each round, so that damage is noticed
 * while there are other copies.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <bloomery.h>

#include "apps/node/chord_node.h"
#include "base/clock.h"
#include "base/grow.h"

#define USES_MOST ((size_t)7 << 20) /* bytes of a filter */
#define USES_RATE 0.01
#define SCRUB_BYTES ((uint64_t)16 << 20) /* in one round */
#define UNUSED_PAGE 1024

/* ----------------------------------------------------------- what names use */

/* Call each for the digests in all manifests here. False: one of them cannot be
 * read now, so that nothing can be said. */
static bool each_use(struct node *n, void (*each)(void *, const void *),
                     void *ctx)
{
    struct stored *const list = malloc(NAMES_PAGE * sizeof *list);
    unsigned char after[STORE_DIGEST];
    bool ok = list != NULL, first = true;
    size_t found = 0;
    do {
        found = ok ? store_list(n->store, STORE_NAMES, UINT64_MAX, UINT64_MAX,
                                first ? NULL : after, list, NAMES_PAGE)
                   : 0;
        for (size_t i = 0; i < found && ok; i++) {
            unsigned char *data = NULL;
            struct stored r;
            if (list[i].flags & STORE_IS_TOMB)
                continue;
            const enum store_result got =
                store_get(n->store, list[i].digest, &r, &data);
            ok = got == STORE_OK || got == STORE_NONE;
            if (got == STORE_OK && r.flags == STORE_IS_MANIFEST) {
                struct body b = { data, r.nbytes, false };
                body_bytes(&b, (size_t)body_number(&b, 2));
                body_number(&b, 8);
                const uint64_t blocks = body_number(&b, 4);
                for (uint64_t k = 0; k < blocks && !b.bad; k++) {
                    const unsigned char *const d = body_bytes(&b, STORE_DIGEST);
                    if (d)
                        each(ctx, d);
                }
            }
            free(data);
        }
        if (found)
            memcpy(after, list[found - 1].digest, STORE_DIGEST);
        first = false;
    } while (ok && found == NAMES_PAGE);
    free(list);
    return ok;
}

static void count_use(void *ctx, const void *digest)
{
    (void)digest;
    ++*(uint64_t *)ctx;
}

struct use_filter {
    bly_filter *f;
    bool failed;
};

static void add_use(void *ctx, const void *digest)
{
    struct use_filter *const u = ctx;
    u->failed |= bly_add(u->f, digest, STORE_DIGEST) != BLY_OK;
}

static bool put_blob(void *ctx, const void *bytes, size_t n)
{
    blob_bytes(ctx, bytes, n);
    return !((struct blob *)ctx)->failed;
}

void node_serve_uses(struct node *n, struct body *b, struct done *d)
{
    const uint64_t epoch = body_number(b, 8), seed = body_number(b, 8);
    uint64_t uses = 0;
    struct use_filter u = { NULL, false };
    const struct names_state before = names_state(&n->names);
    d->error = FRAME_BUSY;
    d->text = "it cannot be said which blocks are used";
    if (b->bad || b->n || !before.ready || before.epoch != epoch ||
        !each_use(n, count_use, &uses))
        return;
    const bly_spec spec = { .kind = "classic",
                            .items = uses + 16,
                            .fpr = USES_RATE,
                            .seed = seed,
                            .max_bytes = USES_MOST };
    if (bly_new(&spec, &u.f))
        return;
    const bool all = each_use(n, add_use, &u) && !u.failed;
    blob_number(&d->body, n->names.self.who, 8);
    const bool written = all && !bly_write(u.f, put_blob, &d->body);
    bly_free(u.f);
    /* The epoch must have lasted. */
    const struct names_state after = names_state(&n->names);
    if (written && after.ready && after.epoch == epoch)
        d->error = (enum frame_error)0;
}

/* ------------------------------------------------------------------ a round */

struct reclaiming {
    struct node *n;
    struct chord_client *c;
    struct roster roster;
    bly_filter *uses[ROSTER_MOST];
    unsigned nuses;
};

/* A filter from every process of the roster: false if one is missing. */
static bool ask_uses(struct reclaiming *r)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return false;
    for (unsigned i = 0; i < r->roster.n; i++) {
        const struct roster_entry *const e = &r->roster.at[i];
        const bly_access how = { .max_bytes = 2 * USES_MOST };
        struct frame f;
        blob_start(&r->c->blob);
        blob_number(&r->c->blob, 0, 8);
        blob_number(&r->c->blob, r->roster.epoch, 8);
        blob_number(&r->c->blob, seed, 8);
        if (!call_ask(&r->c->call, &e->address, CHORD_USES, &r->c->blob, &f) ||
            call_error(&r->c->call, &f))
            return false;
        struct body b = { f.body, f.nbody, false };
        if (body_number(&b, 8) != e->who || b.bad ||
            bly_load(b.at, b.n, &how, &r->uses[r->nuses]))
            return false;
        r->nuses++;
    }
    return true;
}

static bool is_used(const struct reclaiming *r, const unsigned char *digest)
{
    for (unsigned i = 0; i < r->nuses; i++)
        if (bly_has(r->uses[i], digest, STORE_DIGEST))
            return true;
    return false;
}

static bool note_unused(struct node *n, size_t *room,
                        const unsigned char *digest)
{
    if (!grow_to(&n->unused, room, n->nunused + 1, STORE_DIGEST))
        return false;
    memcpy(n->unused + n->nunused++ * STORE_DIGEST, digest, STORE_DIGEST);
    return true;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, STORE_DIGEST);
}

static bool is_unused(struct node *n, const unsigned char *digest)
{
    pthread_mutex_lock(&n->lock);
    const bool is = n->nunused && bsearch(digest, n->unused, n->nunused,
                                          STORE_DIGEST, by_bytes);
    pthread_mutex_unlock(&n->lock);
    return is;
}

/* Which blocks here nobody uses, and nobody has put lately. */
static void find_unused(struct reclaiming *r, uint64_t before)
{
    struct node *const n = r->n;
    struct stored *const list = malloc(UNUSED_PAGE * sizeof *list);
    unsigned char after[STORE_DIGEST];
    size_t room = 0, found = 0;
    bool first = true;
    pthread_mutex_lock(&n->lock);
    free(n->unused);
    n->unused = NULL;
    n->nunused = 0;
    pthread_mutex_unlock(&n->lock);
    do {
        found = list
                    ? store_list(n->store, STORE_BLOCKS, UINT64_MAX, UINT64_MAX,
                                 first ? NULL : after, list, UNUSED_PAGE)
                    : 0;
        for (size_t i = 0; i < found; i++)
            if (store_touched(n->store, list[i].digest) < before &&
                !is_used(r, list[i].digest)) {
                pthread_mutex_lock(&n->lock);
                note_unused(n, &room, list[i].digest);
                pthread_mutex_unlock(&n->lock);
            }
        if (found)
            memcpy(after, list[found - 1].digest, STORE_DIGEST);
        first = false;
    } while (found == UNUSED_PAGE);
    pthread_mutex_lock(&n->lock);
    if (n->nunused)
        qsort(n->unused, n->nunused, STORE_DIGEST, by_bytes);
    pthread_mutex_unlock(&n->lock);
    free(list);
}

/* Another holder has found it unused too, and drops it. */
static bool drop_there(struct reclaiming *r, struct chord_peer p,
                       const unsigned char *digest)
{
    struct frame f;
    const struct address *const at = client_address(r->c, p);
    blob_start(&r->c->blob);
    blob_number(&r->c->blob, p.id, 8);
    blob_bytes(&r->c->blob, digest, STORE_DIGEST);
    return at && call_ask(&r->c->call, at, CHORD_UNUSED, &r->c->blob, &f) &&
           !call_error(&r->c->call, &f);
}

void node_serve_unused(struct node *n, struct body *b, struct done *d)
{
    const unsigned char *const digest = body_bytes(b, STORE_DIGEST);
    const uint64_t now = clock_ms();
    struct stored r;
    d->error = FRAME_WRONG;
    d->text = "a malformed block";
    if (!digest || b->n)
        return;
    d->error = FRAME_BUSY;
    d->text = "it may be used";
    if (store_get(n->store, digest, &r, NULL) == STORE_NONE)
        d->error = (enum frame_error)0;
    else if (!r.flags && is_unused(n, digest) && now > n->spec.reclaim &&
             store_drop_idle(n->store, digest, now - n->spec.reclaim))
        d->error = (enum frame_error)0;
}

/* The owner's part: all holders first, and then itself. */
static void drop_unused(struct reclaiming *r, uint64_t before)
{
    struct node *const n = r->n;
    pthread_mutex_lock(&n->lock);
    const size_t count = n->nunused;
    unsigned char *const copy = malloc(count * STORE_DIGEST + 1);
    if (copy && count)
        memcpy(copy, n->unused, count * STORE_DIGEST);
    pthread_mutex_unlock(&n->lock);
    for (size_t i = 0; copy && i < count; i++) {
        const unsigned char *const digest = copy + i * STORE_DIGEST;
        struct chord_peer holders[CHORD_MOST_SUCC];
        struct node_view w;
        unsigned v;
        if (!node_owns(n, 0, store_id(digest), &v) ||
            !node_view(n, v, r->c, &w))
            continue;
        /* One more than have to: a holder from before may have one left. */
        const size_t got =
            chord_holders(&r->c->book, &n->address, w.succ, n->ring.r,
                          n->spec.params.copies, holders);
        bool all = store_touched(n->store, digest) < before;
        for (size_t k = 0; k < got && all; k++)
            all = drop_there(r, holders[k], digest);
        if (all && store_drop_idle(n->store, digest, before)) {
            pthread_mutex_lock(&n->lock);
            n->reclaimed++;
            pthread_mutex_unlock(&n->lock);
        }
    }
    free(copy);
}

void node_reclaim(struct node *n, struct chord_client *c)
{
    const uint64_t now = clock_ms(), age = n->spec.reclaim;
    struct reclaiming *const r = calloc(1, sizeof *r);
    if (r && now > age && names_state(&n->names).ready &&
        names_roster(&n->names, &r->roster)) {
        r->n = n;
        r->c = c;
        if (ask_uses(r) && names_state(&n->names).epoch == r->roster.epoch) {
            find_unused(r, now - age);
            drop_unused(r, now - age);
        }
        for (unsigned i = 0; i < r->nuses; i++)
            bly_free(r->uses[i]);
    }
    free(r);
}

void node_scrub(struct node *n)
{
    const size_t read = store_scrub(n->store, n->scrubbing, SCRUB_BYTES);
    pthread_mutex_lock(&n->lock);
    n->scrubbed += read;
    pthread_mutex_unlock(&n->lock);
}

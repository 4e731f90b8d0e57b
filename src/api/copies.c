/*
 * copies.c - a filter that several threads fill at once
 */
#include <stdatomic.h>

#include "api/copies.h"
#include "core/bits.h"

/* For all copies together, without the first: much compared with what a thread
 * needs anyway, little compared with what a machine has. */
#define COPIES_BYTES ((uint64_t)256 << 20)

/* Of how many copies can f be made? 1: it cannot. */
static unsigned copies_most(const bly_filter *f)
{
    const bly_kind *const kind = f->kind;
    if (!kind->bitset || !kind->add_shared || f->nlayers ||
        !bly_shape_shares(kind, &f->shape))
        return 1;
    const uint64_t n = COPIES_BYTES / bly_filter_bytes(f);
    return n < BLY_MAX_COPIES ? 1 + (unsigned)n : BLY_MAX_COPIES;
}

void bly_copies_open(bly_copies *c, bly_filter *f, bool alone)
{
    c->at[0] = c->unused[0] = f;
    c->n = c->nunused = 1;
    c->most = alone ? 1 : copies_most(f);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->returned, NULL);
}

void bly_copies_close(bly_copies *c)
{
    while (c->n > 1)
        bly_free(c->at[--c->n]);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->returned);
}

/* The copy that was given back last, so that a single thread always gets the
 * same. */
bly_filter *bly_copies_take(bly_copies *c)
{
    pthread_mutex_lock(&c->lock);
    if (!c->nunused && c->n < c->most) {
        const bly_filter *const first = c->at[0];
        const bly_setting set = bly_setting_of(first);
        bly_filter *f;
        if (bly_filter_make(first->kind, &first->shape, &set, &f))
            c->most = c->n; /* no memory: the existing ones must do */
        else
            c->at[c->n++] = c->unused[c->nunused++] = f;
    }
    while (!c->nunused)
        pthread_cond_wait(&c->returned, &c->lock);
    bly_filter *const own = c->unused[--c->nunused];
    pthread_mutex_unlock(&c->lock);
    return own;
}

void bly_copies_give(bly_copies *c, bly_filter *f)
{
    pthread_mutex_lock(&c->lock);
    c->unused[c->nunused++] = f;
    if (c->n == c->most)
        pthread_cond_signal(&c->returned);
    pthread_mutex_unlock(&c->lock);
}

/* ---------------------------------------------------------------- merging */

/* A piece of each copy and that of the first: L2 holds these. */
#define PIECE_WORDS ((size_t)16 << 10)

typedef struct merging {
    const bly_copies *copies;
    _Atomic size_t next; /* word to be taken */
} merging;

static void *merge_pieces(void *arg)
{
    merging *const m = arg;
    const bly_copies *const c = m->copies;
    const size_t nwords = (size_t)c->at[0]->shape.nbytes / sizeof(uint64_t);
    for (;;) {
        const size_t at = atomic_fetch_add(&m->next, PIECE_WORDS);
        if (at >= nwords)
            return NULL;
        const size_t n = nwords - at < PIECE_WORDS ? nwords - at : PIECE_WORDS;
        for (unsigned i = 1; i < c->n; i++)
            bly_bits_or((uint64_t *)(void *)c->at[0]->data + at,
                        (const uint64_t *)(const void *)c->at[i]->data + at, n);
    }
}

void bly_copies_merge(bly_copies *c, unsigned nthreads)
{
    merging m = { .copies = c };
    pthread_t threads[BLY_MAX_COPIES];
    unsigned started = 0;
    if (c->n == 1)
        return;
    while (started + 1 < nthreads && started + 1 < c->n &&
           pthread_create(&threads[started], NULL, merge_pieces, &m) == 0)
        started++;
    merge_pieces(&m);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    while (c->n > 1)
        bly_free(c->at[--c->n]);
}

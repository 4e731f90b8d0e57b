/*
 * spread.c - a filter of gigabytes that one or several threads fill: spread.h
 */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "api/spread.h"
#include "engine/apart.h"

/* BLY_SPREAD_LEAST: from here on it pays. At 400 million keys both ways take
 * the same time. With half of BLY_SPREAD_ROOM a billion keys take 4.4 ns
 * instead of 4.3, with twice as much 4.1. */
#ifdef BLY_TESTING
uint64_t bly_spread_least = BLY_SPREAD_LEAST;
size_t bly_spread_room = BLY_SPREAD_ROOM;
#else
#define bly_spread_least BLY_SPREAD_LEAST
#define bly_spread_room BLY_SPREAD_ROOM
#endif

/* Threads that deal out at once; more wait for one of them. */
#define SPREAD_MOST 8
#define SPREAD_LOCKS 64

/* What a thread has while it deals out. */
typedef struct hand {
    struct hand *next;
    bly_spread *spread;
    bly_status status; /* the first failure */
    bly_apart apart;
} hand;

struct bly_spread {
    bly_filter *filter;
    const bly_mem *mem;
    hand *unused, *ended; /* under the lock, as all below */
    unsigned nhands, most;
    pthread_mutex_t lock;
    pthread_cond_t returned;
    pthread_mutex_t ranges[SPREAD_LOCKS]; /* part i: i % SPREAD_LOCKS */
};

/* One more, for a thread that finds none unused. */
static hand *hand_new(bly_spread *s)
{
    hand *const new = bly_mem_zalloc(s->mem, sizeof *new);
    if (!new)
        return NULL;
    new->spread = s;
    if (bly_apart_open(&new->apart, s->mem,
                       s->filter->kind->sites(&s->filter->shape),
                       bly_spread_room)) {
        bly_mem_release(s->mem, new, sizeof *new);
        return NULL;
    }
    return new;
}

bly_spread *bly_spread_open(bly_filter *f)
{
    if (!f->kind->sites || f->nlayers || bly_filter_bytes(f) < bly_spread_least)
        return NULL;
    const bly_mem *const mem = bly_filter_mem(f);
    bly_spread *const s = bly_mem_zalloc(mem, sizeof *s);
    if (!s)
        return NULL;
    s->filter = f;
    s->mem = mem;
    s->most = SPREAD_MOST;
    s->nhands = 1;
    if (!(s->unused = hand_new(s))) {
        bly_mem_release(mem, s, sizeof *s);
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->returned, NULL);
    for (unsigned i = 0; i < SPREAD_LOCKS; i++)
        pthread_mutex_init(&s->ranges[i], NULL);
    return s;
}

static hand *hand_take(bly_spread *s)
{
    hand *own = NULL;
    pthread_mutex_lock(&s->lock);
    if (!s->unused && s->nhands < s->most) {
        if ((own = hand_new(s)))
            s->nhands++;
        else
            s->most = s->nhands; /* no memory: the existing ones must do */
    }
    while (!own && !s->unused)
        pthread_cond_wait(&s->returned, &s->lock);
    if (!own) {
        own = s->unused;
        s->unused = own->next;
    }
    pthread_mutex_unlock(&s->lock);
    return own;
}

static void hand_give(hand *own)
{
    bly_spread *const s = own->spread;
    pthread_mutex_lock(&s->lock);
    own->next = s->unused;
    s->unused = own;
    pthread_cond_signal(&s->returned);
    pthread_mutex_unlock(&s->lock);
}

/* The bits of a part, while no other thread is at its range. Everything else
 * that adding changes is in a copy of the filter's fields. */
static void hand_on(void *ctx, unsigned part, const uint64_t *h, size_t n)
{
    hand *const own = ctx;
    const bly_filter *const f = own->spread->filter;
    pthread_mutex_t *const range = &own->spread->ranges[part % SPREAD_LOCKS];
    bly_filter fields;
    size_t done;
    /* As much as exists: the struct ends after the last param. */
    memcpy(&fields, f,
           offsetof(bly_filter, shape.p) + f->room * sizeof f->shape.p[0]);
    pthread_mutex_lock(range);
    const bly_status st = f->kind->add(&fields, h, n, NULL, &done);
    pthread_mutex_unlock(range);
    if (!own->status)
        own->status = st;
}

bly_status bly_spread_add(bly_spread *s, const uint64_t *hashes, size_t n)
{
    hand *const own = hand_take(s);
    bly_apart_add(&own->apart, hashes, n, hand_on, own);
    const bly_status st = own->status;
    hand_give(own);
    return st;
}

/* Add what is left in one hand after another. */
static void *end_hands(void *arg)
{
    bly_spread *const s = arg;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        hand *const own = s->unused;
        if (own) {
            s->unused = own->next;
            own->next = s->ended;
            s->ended = own;
        }
        pthread_mutex_unlock(&s->lock);
        if (!own)
            return NULL;
        bly_apart_end(&own->apart, hand_on, own);
    }
}

bly_status bly_spread_end(bly_spread *s, unsigned nthreads)
{
    pthread_t threads[SPREAD_MOST];
    unsigned started = 0;
    bly_status st = BLY_OK;
    if (!s)
        return st;
    const unsigned most = nthreads < s->nhands ? nthreads : s->nhands;
    while (started + 1 < most &&
           pthread_create(&threads[started], NULL, end_hands, s) == 0)
        started++;
    end_hands(s);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (const hand *own = s->ended; own && !st; own = own->next)
        st = own->status;
    bly_spread_close(s);
    return st;
}

static void hands_free(bly_spread *s, hand *all)
{
    while (all) {
        hand *const own = all;
        all = own->next;
        bly_apart_close(&own->apart, s->mem);
        bly_mem_release(s->mem, own, sizeof *own);
    }
}

void bly_spread_close(bly_spread *s)
{
    if (!s)
        return;
    hands_free(s, s->unused);
    hands_free(s, s->ended);
    for (unsigned i = 0; i < SPREAD_LOCKS; i++)
        pthread_mutex_destroy(&s->ranges[i]);
    pthread_cond_destroy(&s->returned);
    pthread_mutex_destroy(&s->lock);
    const bly_mem *const mem = s->mem;
    bly_mem_release(mem, s, sizeof *s);
}

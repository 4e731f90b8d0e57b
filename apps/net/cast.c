/*
 * cast.c - which interfaces want which groups: the state of a multicast router
 */
#include "apps/net/cast.h"

#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

struct cast_wish {
    unsigned char pair[CAST_PAIR];
    uint64_t hash, until;
    uint32_t next; /* of its chain, or of the free ones */
    uint8_t face;
    bool used;
};

bool cast_new(struct cast *c, uint64_t groups, double bits, uint64_t most,
              uint64_t seed)
{
    memset(c, 0, sizeof *c);
    c->seed = seed;
    c->most = most;
    c->nwishes = 1;
    return sliced_new(&c->groups, groups, bits);
}

void cast_free(struct cast *c)
{
    sliced_free(&c->groups);
    free(c->wishes);
    free(c->first);
    memset(c, 0, sizeof *c);
}

static uint64_t pair_hash(const struct cast *c, const unsigned char *pair)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = c->seed };
    return bly_hash(&h, pair, CAST_PAIR);
}

/* The link that leads to a wish, or to the end of its chain. NULL: there is no
 * chain yet. */
static uint32_t *wish_at(const struct cast *c, const unsigned char *pair,
                         uint64_t hash, unsigned face)
{
    if (!c->nfirst)
        return NULL;
    uint32_t *at = &c->first[hash & (c->nfirst - 1)];
    for (; *at; at = &c->wishes[*at].next) {
        const struct cast_wish *const w = &c->wishes[*at];
        if (w->hash == hash && w->face == face &&
            memcmp(w->pair, pair, CAST_PAIR) == 0)
            break;
    }
    return at;
}

static uint64_t wanted_hash(const struct cast *c, const unsigned char *pair,
                            uint64_t hash)
{
    uint64_t faces = 0;
    if (!c->nfirst)
        return 0;
    for (uint32_t i = c->first[hash & (c->nfirst - 1)]; i;
         i = c->wishes[i].next)
        if (c->wishes[i].hash == hash &&
            memcmp(c->wishes[i].pair, pair, CAST_PAIR) == 0)
            faces |= UINT64_C(1) << c->wishes[i].face;
    return faces;
}

/* Room for one more: twice as many wishes and chains. */
static bool cast_grow(struct cast *c)
{
    if (c->free || c->nwishes < c->room)
        return true;
    const uint32_t room = c->room ? 2 * c->room : 64;
    if (room > CAST_WISHES)
        return false;
    struct cast_wish *const wishes =
        realloc(c->wishes, room * sizeof *c->wishes);
    if (!wishes)
        return false;
    c->wishes = wishes;
    uint32_t *const first = calloc(room, sizeof *first);
    if (!first)
        return false;
    for (uint32_t i = 1; i < c->nwishes; i++) {
        uint32_t *const head = &first[wishes[i].hash & (room - 1)];
        wishes[i].next = *head;
        *head = i;
    }
    free(c->first);
    c->first = first;
    c->nfirst = c->room = room;
    return true;
}

enum cast_change cast_join(struct cast *c, const unsigned char *pair,
                           unsigned face, uint64_t until)
{
    const uint64_t hash = pair_hash(c, pair);
    uint32_t *at = wish_at(c, pair, hash, face);
    if (at && *at) {
        c->wishes[*at].until = until;
        return CAST_SAME;
    }
    if (face >= SLICED_FACES || c->n[face] >= c->most || !cast_grow(c))
        return CAST_FULL;
    const bool first = !wanted_hash(c, pair, hash);
    uint32_t i = c->free;
    if (i)
        c->free = c->wishes[i].next;
    else
        i = c->nwishes++;
    uint32_t *const head = &c->first[hash & (c->nfirst - 1)];
    struct cast_wish *const w = &c->wishes[i];
    *w = (struct cast_wish){ .hash = hash,
                             .until = until,
                             .next = *head,
                             .face = (uint8_t)face,
                             .used = true };
    memcpy(w->pair, pair, CAST_PAIR);
    *head = i;
    c->n[face]++;
    sliced_join(&c->groups, hash, face);
    return first ? CAST_FIRST : CAST_SAME;
}

enum cast_change cast_leave(struct cast *c, const unsigned char *pair,
                            unsigned face)
{
    const uint64_t hash = pair_hash(c, pair);
    uint32_t *const at = wish_at(c, pair, hash, face);
    if (!at || !*at)
        return CAST_SAME;
    const uint32_t i = *at;
    struct cast_wish *const w = &c->wishes[i];
    *at = w->next;
    w->used = false;
    w->next = c->free;
    c->free = i;
    c->n[face]--;
    sliced_leave(&c->groups, hash, face);
    return wanted_hash(c, pair, hash) ? CAST_SAME : CAST_LAST;
}

bool cast_doubt(struct cast *c, const unsigned char *pair, unsigned face,
                uint64_t until)
{
    const uint32_t *const at = wish_at(c, pair, pair_hash(c, pair), face);
    if (!at || !*at)
        return false;
    struct cast_wish *const w = &c->wishes[*at];
    w->until = w->until < until ? w->until : until;
    return true;
}

bool cast_expire(struct cast *c, uint32_t *at, uint64_t now, unsigned face,
                 unsigned char *pair, enum cast_change *change)
{
    for (uint32_t i = *at ? *at : 1; i < c->nwishes; i++) {
        const struct cast_wish *const w = &c->wishes[i];
        if (!w->used ||
            (face == CAST_FACE_NONE ? now < w->until : w->face != face))
            continue;
        memcpy(pair, w->pair, CAST_PAIR);
        *change = cast_leave(c, pair, w->face);
        *at = i + 1;
        return true;
    }
    return false;
}

uint64_t cast_copies(const struct cast *c, const unsigned char *pair,
                     unsigned from, unsigned up)
{
    if (from != up)
        return 0;
    const uint64_t faces = sliced_faces(&c->groups, pair_hash(c, pair));
    return from < SLICED_FACES ? faces & ~(UINT64_C(1) << from) : faces;
}

uint64_t cast_wanted(const struct cast *c, const unsigned char *pair)
{
    return wanted_hash(c, pair, pair_hash(c, pair));
}

double cast_wrong(const struct cast *c, unsigned face)
{
    return sliced_rate(&c->groups, (double)c->n[face]);
}

bool cast_next(const struct cast *c, uint32_t *at, unsigned char *pair,
               unsigned *face)
{
    for (uint32_t i = *at ? *at : 1; i < c->nwishes; i++) {
        if (!c->wishes[i].used)
            continue;
        memcpy(pair, c->wishes[i].pair, CAST_PAIR);
        *face = c->wishes[i].face;
        *at = i + 1;
        return true;
    }
    return false;
}

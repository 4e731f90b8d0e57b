/*
 * caster.c - a router of groups: what hosts and neighbours ask for, and copies
 */
#include "apps/net/caster.h"

#include <string.h>

#include "apps/net/ipv6.h"

#define LAST_WAIT (2 * MLD_WAIT) /* until a leave is believed */

static bool can_speak(const struct caster *c, unsigned face)
{
    static const unsigned char none[16] = { 0 };
    return face < c->nfaces && memcmp(c->address[face], none, 16) != 0;
}

static void say(struct caster *c, unsigned face, enum mld_says says,
                const unsigned char *pairs, size_t n)
{
    unsigned char out[MLD_MOST];
    if (n && can_speak(c, face))
        c->send(c->ctx, face, out,
                mld_report(c->address[face], says, pairs, n, out));
}

static void ask(struct caster *c, unsigned face, const unsigned char *pair)
{
    unsigned char out[MLD_MOST];
    if (can_speak(c, face))
        c->send(c->ctx, face, out, mld_query(c->address[face], pair, out));
}

/* What became of a pair, told on the way to its source. */
static void tell_up(struct caster *c, const unsigned char *pair,
                    enum cast_change change)
{
    if (change == CAST_FIRST || change == CAST_LAST)
        say(c, c->up(c->ctx, pair),
            change == CAST_FIRST ? MLD_WANTS : MLD_LEAVES, pair, 1);
}

/* A group beyond its link, from one host. */
static bool pair_usable(const unsigned char *pair)
{
    return pair[16] == 0xff && !ipv6_of_link(pair + 16) && pair[0] != 0xff &&
           !ipv6_of_link(pair);
}

static void wants(struct caster *c, unsigned face, const unsigned char *pair,
                  uint64_t now)
{
    /* The link that packets come from never wants them itself. */
    if (!pair_usable(pair) || c->up(c->ctx, pair) == face)
        return;
    const uint64_t before = c->cast.n[face];
    const enum cast_change change =
        cast_join(&c->cast, pair, face, now + 3 * c->period);
    c->refused += change == CAST_FULL;
    c->joins += c->cast.n[face] > before;
    tell_up(c, pair, change);
}

static void leaves(struct caster *c, unsigned face, const unsigned char *pair,
                   uint64_t now)
{
    if (cast_doubt(&c->cast, pair, face, now + LAST_WAIT))
        ask(c, face, pair);
}

/* Sources of a group that a record does not list are wanted no longer. */
static void leaves_others(struct caster *c, unsigned face,
                          const struct mld_record *r, uint64_t now)
{
    unsigned char pair[CAST_PAIR];
    unsigned at_face;
    for (uint32_t at = 0; cast_next(&c->cast, &at, pair, &at_face);) {
        bool listed = at_face != face || memcmp(pair + 16, r->group, 16) != 0;
        for (unsigned i = 0; i < r->nsources && !listed; i++)
            listed = memcmp(pair, r->sources + (size_t)16 * i, 16) == 0;
        if (!listed)
            leaves(c, face, pair, now);
    }
}

static void report_heard(struct caster *c, unsigned face,
                         const struct mld_record *r, uint64_t now)
{
    unsigned char pair[CAST_PAIR];
    memcpy(pair + 16, r->group, 16);
    for (unsigned i = 0; i < r->nsources; i++) {
        memcpy(pair, r->sources + (size_t)16 * i, 16);
        if (r->says == MLD_LEAVES)
            leaves(c, face, pair, now);
        else
            wants(c, face, pair, now);
    }
    if (r->says == MLD_ONLY)
        leaves_others(c, face, r, now);
}

/* What is wanted from an interface: all of it, or as a query says. A pair has a
 * wish for every interface that wants it, and is told once. */
static void tell_wishes(struct caster *c, unsigned face,
                        const struct mld_record *asked)
{
    static const unsigned char all[16] = { 0 };
    unsigned char pairs[MLD_RECORDS * CAST_PAIR];
    unsigned at_face;
    size_t n = 0;
    for (uint32_t at = 0;
         cast_next(&c->cast, &at, pairs + n * CAST_PAIR, &at_face);) {
        const unsigned char *const pair = pairs + n * CAST_PAIR;
        bool meant = !asked || memcmp(asked->group, all, 16) == 0;
        if (!meant && memcmp(asked->group, pair + 16, 16) == 0) {
            meant = !asked->nsources;
            for (unsigned i = 0; i < asked->nsources && !meant; i++)
                meant = memcmp(pair, asked->sources + (size_t)16 * i, 16) == 0;
        }
        const uint64_t wanted = cast_wanted(&c->cast, pair);
        if (!meant || c->up(c->ctx, pair) != face ||
            (unsigned)__builtin_ctzll(wanted) != at_face)
            continue;
        if (++n == MLD_RECORDS) {
            say(c, face, MLD_WANTS, pairs, n);
            n = 0;
        }
    }
    say(c, face, MLD_WANTS, pairs, n);
}

void caster_hear(struct caster *c, unsigned face, const unsigned char *in,
                 size_t n, uint64_t now)
{
    struct mld m;
    struct mld_record r;
    if (!mld_read(in, n, &m))
        return;
    while (mld_next(&m, &r))
        if (m.kind == MLD_QUERY)
            tell_wishes(c, face, &r);
        else
            report_heard(c, face, &r, now);
}

static void expire(struct caster *c, uint64_t now, unsigned face)
{
    unsigned char pair[CAST_PAIR];
    enum cast_change change;
    uint32_t at = 0;
    while (cast_expire(&c->cast, &at, now, face, pair, &change)) {
        c->leaves++;
        tell_up(c, pair, change);
    }
}

void caster_tick(struct caster *c, uint64_t now)
{
    expire(c, now, CAST_FACE_NONE);
    if (now < c->next)
        return;
    c->next = now + c->period;
    for (unsigned face = 0; face < c->nfaces; face++) {
        ask(c, face, NULL);
        tell_wishes(c, face, NULL);
    }
}

void caster_gone(struct caster *c, unsigned face)
{
    expire(c, 0, face);
}

/* The rate of an interface's filter, computed again when its load changes. */
static double wrong_now(struct caster *c, unsigned face)
{
    if (c->rated[face] != c->cast.n[face]) {
        c->rated[face] = c->cast.n[face];
        c->wrong[face] = cast_wrong(&c->cast, face);
    }
    return c->wrong[face];
}

uint64_t caster_copies(struct caster *c, unsigned face, const unsigned char *in)
{
    const unsigned char *const pair = in + IPV6_FROM; /* both addresses */
    const unsigned up = c->up(c->ctx, pair);
    const uint64_t faces = cast_copies(&c->cast, pair, face, up);
    const uint64_t wanted = cast_wanted(&c->cast, pair);
    if (face != up) {
        c->off_path++;
        return 0;
    }
    for (unsigned i = 0; i < c->nfaces; i++)
        if (i != face && !(wanted >> i & 1))
            c->expected += wrong_now(c, i);
    c->copies += (uint64_t)__builtin_popcountll(faces);
    c->superfluous += (uint64_t)__builtin_popcountll(faces & ~wanted);
    return faces;
}

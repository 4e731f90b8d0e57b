/*
 * names_vote.c - choosing the next roster: Paxos, one decision for each epoch
 *
 *     question   u64 epoch (the present one), u8 phase, ballot; in phase 2
 *                the roster
 *     answer     u64 who, u64 epoch, u8 yes, ballot promised, ballot accepted,
 *                and if that is not 0, the roster that was accepted
 *
 * Everybody who was asked has its promise on disk before it answers. A ballot
 * is a round and the identity of the one who proposes; a process that starts
 * again goes on behind its own promise, so that it uses none twice.
 */
#define _GNU_SOURCE
#include "apps/node/names.h"

#include <stdlib.h>

static bool ballot_less(struct names_ballot a, struct names_ballot b)
{
    return a.round != b.round ? a.round < b.round : a.who < b.who;
}

/* With the lock held for writing. False: it could not be saved. */
static bool vote(struct names *m, unsigned phase, struct names_ballot x,
                 const struct roster *r, bool *yes)
{
    *yes = !ballot_less(x, m->promised);
    if (!*yes)
        return true;
    const struct names_ballot promised = m->promised, accepted = m->accepted;
    struct roster *const offered = malloc(sizeof *offered);
    if (!offered)
        return false;
    *offered = m->offered;
    m->promised = x;
    if (phase == 2) {
        m->accepted = x;
        m->offered = *r;
    }
    const bool saved = names_save(m);
    if (!saved) {
        m->promised = promised;
        m->accepted = accepted;
        m->offered = *offered;
    }
    free(offered);
    return saved;
}

enum frame_error names_serve_vote(struct names *m, struct body *b,
                                  struct blob *out, const char **text)
{
    const uint64_t epoch = body_number(b, 8);
    const unsigned phase = (unsigned)body_number(b, 1);
    const uint64_t round = body_number(b, 8), who = body_number(b, 8);
    struct roster *const r = calloc(1, sizeof *r);
    if (!r || b->bad || phase < 1 || phase > 2 ||
        (phase == 2 && (!roster_take(b, r) || r->epoch != epoch + 1)) || b->n ||
        round == UINT64_MAX) {
        free(r);
        *text = "a malformed vote";
        return FRAME_WRONG;
    }
    bool yes = false, saved = true;
    pthread_rwlock_wrlock(&m->lock);
    const struct names_epoch *const now = names_now(m);
    const bool here = now && now->roster.epoch == epoch &&
                      roster_has(&now->roster, m->self.who);
    if (here)
        saved = vote(m, phase, (struct names_ballot){ round, who }, r, &yes);
    blob_number(out, m->self.who, 8);
    blob_number(out, now ? now->roster.epoch : 0, 8);
    blob_number(out, yes && saved, 1);
    blob_number(out, m->promised.round, 8);
    blob_number(out, m->promised.who, 8);
    const bool told = here && m->offered.epoch == epoch + 1;
    blob_number(out, told ? m->accepted.round : 0, 8);
    blob_number(out, told ? m->accepted.who : 0, 8);
    if (told)
        roster_put(out, &m->offered);
    pthread_rwlock_unlock(&m->lock);
    free(r);
    *text = "the vote could not be written to the disk";
    return saved ? (enum frame_error)0 : FRAME_FULL;
}

/* ---------------------------------------------------------------- proposing */

struct proposal {
    struct names *m;
    void *by;
    struct roster members, value;
    struct names_ballot ballot, best;
    const uint64_t *leaving;
    unsigned nleaving;
    bool lives[ROSTER_MOST];     /* of the members: it has promised */
    uint64_t higher;             /* a round that somebody has promised */
    const struct address *ahead; /* somebody in a later epoch */
};

/* This process first, since its own promise guards its ballots; those who were
 * silent last: the others may be enough. */
static void ask_order(const struct proposal *p, unsigned order[ROSTER_MOST])
{
    unsigned n = 0;
    for (unsigned turn = 0; turn < 3; turn++)
        for (unsigned i = 0; i < p->members.n; i++) {
            const uint64_t who = p->members.at[i].who;
            const unsigned when = who == p->m->self.who        ? 0
                                  : names_is_silent(p->m, who) ? 2
                                                               : 1;
            if (when == turn)
                order[n++] = i;
        }
}

/* One phase: true if a majority says yes. */
static bool phase_of(struct proposal *p, unsigned phase)
{
    unsigned yes = 0, order[ROSTER_MOST];
    ask_order(p, order);
    for (unsigned i = 0; i < p->members.n && yes < roster_majority(&p->members);
         i++) {
        const struct roster_entry *const e = &p->members.at[order[i]];
        struct blob q = { 0 };
        struct frame f;
        names_begin(p->m, &q);
        blob_number(&q, p->members.epoch, 8);
        blob_number(&q, phase, 1);
        blob_number(&q, p->ballot.round, 8);
        blob_number(&q, p->ballot.who, 8);
        if (phase == 2)
            roster_put(&q, &p->value);
        if (names_ask(p->m, p->by, &e->address, NAMES_VOTE, &q, &f)) {
            if (!i)
                return false;
            continue;
        }
        struct body b = { f.body, f.nbody, false };
        const uint64_t who = body_number(&b, 8), epoch = body_number(&b, 8);
        const bool says_yes = body_number(&b, 1) == 1;
        const uint64_t round = body_number(&b, 8);
        body_number(&b, 8);
        const uint64_t had = body_number(&b, 8), had_who = body_number(&b, 8);
        const struct names_ballot accepted = { had, had_who };
        if (b.bad || who != e->who)
            continue; /* somebody else at its address */
        if (epoch > p->members.epoch) {
            p->ahead = &e->address;
            return false;
        }
        if (!says_yes) {
            if (round > p->higher && round != UINT64_MAX)
                p->higher = round;
            if (!i)
                return false;
            continue;
        }
        if (phase == 1 && ballot_less(p->best, accepted)) {
            if (!roster_take(&b, &p->value) ||
                p->value.epoch != p->members.epoch + 1)
                return false;
            p->best = accepted;
        }
        p->lives[order[i]] = true;
        yes++;
    }
    return yes >= roster_majority(&p->members);
}

static void tell_all(struct names *m, void *by, const struct roster *old,
                     const struct roster *chosen)
{
    for (unsigned i = 0; i < old->n + chosen->n; i++) {
        const struct roster_entry *const e =
            i < old->n ? &old->at[i] : &chosen->at[i - old->n];
        /* Those that were silent learn it when they speak again. */
        if (e->who != m->self.who && !names_is_silent(m, e->who) &&
            (i < old->n || !roster_has(old, e->who)))
            names_teach(m, by, e, old->epoch);
    }
}

/* A view that is out of date must not leave out those who live: a part that was
 * cut off, and is not any more, would have the others vote for its own few.
 * False: nothing is left to propose. */
static bool keep_the_living(struct proposal *p)
{
    if (p->best.round)
        return true; /* what others may have chosen already */
    for (unsigned i = 0; i < p->members.n; i++) {
        const struct roster_entry *const e = &p->members.at[i];
        bool stays = p->lives[i] && !roster_has(&p->value, e->who);
        for (unsigned k = 0; k < p->nleaving; k++)
            stays &= p->leaving[k] != e->who;
        if (stays)
            roster_add(&p->value, e);
    }
    return !roster_same(&p->members, &p->value);
}

bool names_propose(struct names *m, void *by, const struct roster *wanted,
                   const uint64_t *leaving, unsigned nleaving)
{
    struct proposal *const p = calloc(1, sizeof *p);
    bool chosen = false;
    if (!p)
        return false;
    p->m = m;
    p->by = by;
    p->value = *wanted;
    p->leaving = leaving;
    p->nleaving = nleaving;
    pthread_rwlock_rdlock(&m->lock);
    const struct names_epoch *const now = names_now(m);
    const bool in = now && roster_has(&now->roster, m->self.who) &&
                    now->roster.epoch + 1 == wanted->epoch;
    if (in)
        p->members = now->roster;
    const uint64_t promised = m->promised.round;
    pthread_rwlock_unlock(&m->lock);
    if (in && promised < UINT64_MAX - 1 && m->round < UINT64_MAX - 1) {
        const uint64_t before = promised > m->round ? promised : m->round;
        p->ballot = (struct names_ballot){ before + 1, m->self.who };
        m->round = before + 1;
        chosen = phase_of(p, 1) && keep_the_living(p) && phase_of(p, 2);
        if (p->higher > m->round)
            m->round = p->higher;
    }
    if (chosen) {
        pthread_rwlock_wrlock(&m->lock);
        chosen = names_adopt(m, &p->value);
        pthread_rwlock_unlock(&m->lock);
        tell_all(m, by, &p->members, &p->value);
    } else if (p->ahead) {
        names_learn(m, by, p->ahead);
    }
    free(p);
    return chosen;
}

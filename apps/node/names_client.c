/*
 * names_client.c - reading and writing names from outside
 *
 * Any member knows who keeps a name, and the first of these is asked. A write
 * whose answer was lost may or may not have taken effect, or may do so later.
 * It names the version that was there before, so that it can safely be
 * repeated, and the version that is there now tells what became of it:
 *
 *     the version before it, still      not yet: again
 *     the next, and it is this write    done
 *     the next, of somebody else        it never will: from the beginning
 *     a later one                       done, and written over since; or, if it
 *                                       never was, nobody can tell the
 *                                       difference, since all of these came
 *                                       after this write began
 */
#define _GNU_SOURCE
#include "apps/node/names_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "apps/node/names.h"

#define NAME_TRIES 10
#define NAME_NOBODY 4 /* attempts in which no member answered at all */
/* Milliseconds for somebody who may be among those who have long been silent.
 */
#define NAME_ALONE 2000

/* For at most so many milliseconds. */
static enum frame_error ask_within(struct chord_client *c,
                                   const struct address *at, uint8_t type,
                                   uint64_t most, struct frame *f)
{
    attempts_hurry(c, most);
    if (!call_ask(&c->call, at, type, &c->blob, f))
        return FRAME_REFUSED;
    return call_error(&c->call, f);
}

static enum frame_error ask_names(struct chord_client *c,
                                  const struct address *at, uint8_t type,
                                  struct frame *f)
{
    return ask_within(c, at, type, c->timeout, f);
}

/* The first of those who keep a name. *alone: half of those who keep names, or
 * more, have long been silent. */
static bool find_primary(struct chord_client *c, const unsigned char *digest,
                         unsigned tries, struct roster_entry *out, bool *alone)
{
    /* Who keeps a name is known without asking others: a node that does not say
     * so soon is none to wait for. */
    const uint64_t soon = c->wait ? c->wait / 3 : c->timeout;
    for (size_t i = 0; i < c->nentries; i++) {
        struct frame f;
        blob_start(&c->blob);
        blob_number(&c->blob, 0, 8);
        blob_bytes(&c->blob, digest, STORE_DIGEST);
        if (ask_within(c, &c->entries[(i + tries) % c->nentries], NAMES_WHO,
                       soon, &f))
            continue;
        struct body b = { f.body, f.nbody, false };
        body_number(&b, 8);
        body_number(&b, 8);
        const unsigned n = (unsigned)body_number(&b, 1);
        struct roster_entry other;
        bool ok = n && roster_take_entry(&b, out);
        for (unsigned k = 1; k < n && ok; k++)
            ok = roster_take_entry(&b, &other);
        *alone = body_number(&b, 1) == 1;
        if (ok)
            return true;
        snprintf(c->call.why, sizeof c->call.why,
                 "the answer cannot be understood");
    }
    if (!c->call.why[0])
        snprintf(c->call.why, sizeof c->call.why, "nobody answers");
    return false;
}

/* A record and its data from an answer. */
static enum frame_error take_answer(struct chord_client *c,
                                    const struct frame *f,
                                    const unsigned char *digest,
                                    struct stored *r, unsigned char **bytes)
{
    struct body b = { f->body, f->nbody, false };
    stored_take(&b, r);
    r->nbytes = (uint32_t)b.n;
    snprintf(c->call.why, sizeof c->call.why,
             "the answer cannot be understood");
    if (b.bad || b.n > STORE_MOST || !r->flags ||
        memcmp(r->digest, digest, STORE_DIGEST) != 0)
        return FRAME_WRONG;
    if (!bytes)
        return (enum frame_error)0;
    if (!stored_genuine(r, b.at))
        return FRAME_WRONG;
    *bytes = malloc(b.n + 1);
    if (!*bytes)
        return FRAME_FULL;
    memcpy(*bytes, b.at, b.n);
    return (enum frame_error)0;
}

static enum frame_error read_once(struct chord_client *c,
                                  const unsigned char *digest, unsigned tries,
                                  struct stored *r, unsigned char **bytes,
                                  struct roster_entry *primary)
{
    struct frame f;
    bool alone = false;
    c->nobody =
        find_primary(c, digest, tries, primary, &alone) ? 0 : c->nobody + 1;
    if (c->nobody)
        return FRAME_REFUSED;
    blob_start(&c->blob);
    blob_number(&c->blob, 0, 8);
    blob_bytes(&c->blob, digest, STORE_DIGEST);
    blob_number(&c->blob, bytes != NULL, 1);
    const uint64_t most =
        alone && c->timeout > NAME_ALONE ? NAME_ALONE : c->timeout;
    const enum frame_error e =
        ask_within(c, &primary->address, NAMES_READ, most, &f);
    if (e == FRAME_REFUSED && alone) {
        snprintf(c->call.why, sizeof c->call.why,
                 "the first of those who keep this name is silent, and so is "
                 "half of the ring or more: too few to go on without it");
        return FRAME_NOT_SOON;
    }
    return e ? e : take_answer(c, &f, digest, r, bytes);
}

enum store_result client_read_name(struct chord_client *c,
                                   const unsigned char *digest,
                                   struct stored *r, unsigned char **bytes)
{
    struct roster_entry primary;
    c->nobody = 0;
    attempts_begin(c);
    for (unsigned tries = 0;
         c->nobody < NAME_NOBODY && attempts_go_on(c, tries, NAME_TRIES);
         tries++) {
        const enum frame_error e =
            read_once(c, digest, tries, r, bytes, &primary);
        if (!e)
            return STORE_OK;
        if (e == FRAME_NOT_FOUND)
            return STORE_NONE;
        if (e == FRAME_DAMAGED || e == FRAME_NOT_SOON)
            break;
    }
    return STORE_BROKEN;
}

static enum frame_error write_once(struct chord_client *c,
                                   const struct address *at, uint64_t before,
                                   const struct stored *r, const void *data,
                                   unsigned *copies)
{
    struct frame f;
    blob_start(&c->blob);
    blob_number(&c->blob, 0, 8);
    blob_number(&c->blob, before, 8);
    stored_put(&c->blob, r);
    blob_bytes(&c->blob, data, r->nbytes);
    const enum frame_error e = ask_names(c, at, NAMES_WRITE, &f);
    if (!e && copies)
        *copies = f.nbody ? f.body[0] : 0;
    return e;
}

enum store_result client_write_name(struct chord_client *c, struct stored *r,
                                    const void *data, bool removes,
                                    unsigned *copies, bool *unknown)
{
    uint32_t mark = 0;
    uint64_t before = 0;
    *unknown = false;
    if (getrandom(&mark, sizeof mark, 0) < 0)
        mark = (uint32_t)getpid();
    r->writer = mark;
    c->nobody = 0;
    attempts_begin(c);
    for (unsigned tries = 0;
         c->nobody < NAME_NOBODY && attempts_go_on(c, tries, NAME_TRIES);
         tries++) {
        struct roster_entry primary;
        struct stored there = { 0 };
        enum frame_error e =
            read_once(c, r->digest, tries, &there, NULL, &primary);
        if (e == FRAME_NOT_SOON)
            break;
        if (e && e != FRAME_NOT_FOUND && e != FRAME_DAMAGED)
            continue;
        const bool damaged = e == FRAME_DAMAGED;
        if (e)
            there = (struct stored){ 0 };
        if (*unknown && before < UINT64_MAX && there.counter > before &&
            (there.counter > before + 1 ||
             (there.writer & UINT32_MAX) == mark)) {
            *unknown = false;
            return STORE_OK;
        }
        *unknown = *unknown && (damaged || there.counter == before);
        if (removes && !damaged && (e || there.flags & STORE_IS_TOMB) &&
            !*unknown)
            return STORE_NONE;
        before = damaged ? UINT64_MAX : there.counter;
        e = write_once(c, &primary.address, before, r, data, copies);
        if (!e) {
            *unknown = false;
            return STORE_OK;
        }
        /* Others are refused before anything is written. */
        *unknown |= e != FRAME_STALE && e != FRAME_NOT_MINE &&
                    e != FRAME_WRONG && e != FRAME_NOT_SOON;
        if (e == FRAME_FULL || e == FRAME_WRONG || e == FRAME_NOT_SOON)
            break;
    }
    return STORE_BROKEN;
}

/* ---------------------------------------------------------------- all names */

bool client_roster(struct chord_client *c, struct roster *out)
{
    for (size_t i = 0; i < c->nentries; i++) {
        struct frame f;
        blob_start(&c->blob);
        blob_number(&c->blob, 0, 8);
        blob_number(&c->blob, 0, 8);
        if (ask_names(c, &c->entries[i], NAMES_HISTORY, &f))
            continue;
        struct body b = { f.body, f.nbody, false };
        body_number(&b, 8);
        const unsigned n = (unsigned)body_number(&b, 2);
        bool ok = !b.bad && n;
        for (unsigned k = 0; k < n && ok; k++)
            ok = roster_take(&b, out);
        if (ok)
            return true;
        snprintf(c->call.why, sizeof c->call.why,
                 "the answer cannot be understood");
    }
    return false;
}

int client_names(struct chord_client *c, const struct address *at,
                 const unsigned char *after, struct stored *out, bool *own)
{
    struct frame f;
    blob_start(&c->blob);
    blob_number(&c->blob, 0, 8);
    blob_number(&c->blob, 1, 1);
    blob_number(&c->blob, UINT64_MAX, 8);
    blob_number(&c->blob, UINT64_MAX, 8);
    blob_number(&c->blob, after != NULL, 1);
    if (after)
        blob_bytes(&c->blob, after, STORE_DIGEST);
    if (ask_names(c, at, NAMES_LIST, &f))
        return -1;
    struct body b = { f.body, f.nbody, false };
    const unsigned n = (unsigned)body_number(&b, 2);
    if (n > NAMES_PAGE)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        own[i] = body_number(&b, 1) == 1;
        stored_take(&b, &out[i]);
    }
    return b.bad ? -1 : (int)n;
}

enum frame_error client_name_at(struct chord_client *c,
                                const struct address *at,
                                const unsigned char *digest, struct stored *r,
                                unsigned char **bytes)
{
    struct frame f;
    blob_start(&c->blob);
    blob_number(&c->blob, 0, 8);
    blob_bytes(&c->blob, digest, STORE_DIGEST);
    const enum frame_error e = ask_names(c, at, NAMES_GET, &f);
    return e ? e : take_answer(c, &f, digest, r, bytes);
}

/*
 * find.c - announce services, and look for them
 *
 * Who looks asks a server, and those that it names, as seek.h says: near ones
 * first, then up and down the hierarchy, and last the ring, at the owner of the
 * first tag. Who announces tells a server, and the owner of each tag on the
 * ring with the members behind it, again and again.
 */
#define _GNU_SOURCE
#include "apps/net/find/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/net/seek.h"
#include "chord/chord_client.h"
#include "base/signals.h"
#include "report/out.h"
#include "report/say.h"

#define USUAL_TTL 60
#define USUAL_TIMEOUT 3000
#define FIND_PLACES 1024 /* that one question asks, at most */

struct find_run {
    const struct find_args *args;
    struct secure_secret secret;
    struct caller call;
    struct chord_client *ring; /* NULL: none was given */
    struct blob blob;
    struct service wanted;
    struct address places[FIND_PLACES];
    enum { NAMED, ANSWERED, SILENT } heard[FIND_PLACES];
    uint32_t nplaces;
    bool cut;     /* there was no room for all that were named */
    bool no_ring; /* that can be asked */
    struct finder_found found;
    uint64_t asked;
    unsigned nrows;
    struct service rows[SERVICE_ANSWERS]; /* printed */
};

/* ------------------------------------------------------------------- set-up */

static bool find_open(struct find_run *r, const struct find_args *args,
                      const struct list *at)
{
    struct finder_args sizes = { .keys = args->keys, .depth = args->depth };
    finder_usual(&sizes);
    r->args = args;
    if (!secure_read(args->key_file, &r->secret))
        return false;
    r->call.secret = &r->secret;
    r->call.timeout = args->patience ? 4 * args->patience : USUAL_TIMEOUT;
    r->call.ring =
        finder_network(args->network ? args->network : "net", &sizes);
    if (at->n > 8 || args->ring.n > 8)
        return refuse("at most 8 --at and 8 --ring");
    for (size_t i = 0; i < at->n; i++)
        if (!address_parse(at->at[i], &r->places[r->nplaces++]))
            return false;
    if (!args->ring.n)
        return true;
    const struct chord_params params = { .name = args->ring_name };
    r->ring = client_new(&params, &r->secret, r->call.timeout);
    if (!r->ring)
        return false;
    for (size_t i = 0; i < args->ring.n; i++)
        if (!address_parse(args->ring.at[i], &r->ring->entries[i]))
            return false;
    r->ring->nentries = args->ring.n;
    return true;
}

static void find_close(struct find_run *r)
{
    call_close(&r->call);
    blob_free(&r->blob);
    client_close(r->ring);
    free(r);
}

/* The place of a tag on the ring. */
static uint64_t tag_id(const char *tag)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3 };
    return bly_hash(&h, tag, strlen(tag));
}

/* The owner of a tag and those that follow it: how many. 0: c->call.why. */
static size_t tag_members(struct chord_client *c, const char *tag,
                          struct address out[CHORD_USUAL_COPIES])
{
    struct chord_found f;
    struct chord_peer others[CHORD_USUAL_COPIES];
    if (!client_owner(c, tag_id(tag), &f))
        return 0;
    const struct address *const owner = client_address(c, f.owner);
    if (!owner)
        return 0;
    out[0] = *owner;
    /* The first of its peers is its predecessor. */
    const size_t n =
        f.npeers ? chord_holders(&c->book, owner, f.peers + 1, f.npeers - 1,
                                 CHORD_USUAL_COPIES - 1, others)
                 : 0;
    for (size_t i = 0; i < n; i++)
        out[1 + i] = book_get(&c->book, others[i].at)->address;
    return 1 + n;
}

/* ------------------------------------------------------------------ looking */

static uint32_t place_of(struct find_run *r, const struct address *at)
{
    uint32_t i = 0;
    while (i < r->nplaces && !address_equal(&r->places[i], at))
        i++;
    if (i == FIND_PLACES) {
        r->cut = true;
        return SEEK_NOBODY;
    }
    r->places[i] = *at;
    r->nplaces += i == r->nplaces;
    return i;
}

/* Ask with tags; what was found is r->found. */
static bool look_at(struct find_run *r, struct caller *c,
                    const struct address *at)
{
    struct frame answer;
    memset(&r->found, 0, sizeof r->found);
    blob_start(&r->blob);
    service_put_tags(&r->blob, &r->wanted);
    r->asked++;
    return call_ask(c, at, SERVICE_LOOK, &r->blob, &answer) &&
           !call_error(c, &answer) && finder_take(&answer, &r->found);
}

/* Print the services of the last answer, each once. A server may lie: only
 * those that have the tags count. */
static size_t look_print(struct find_run *r, const struct address *at,
                         const char *by, uint64_t hops)
{
    char text[ADDRESS_TEXT];
    size_t right = 0;
    address_text(at, text);
    for (size_t i = 0; i < r->found.nservices; i++) {
        const struct service *const s = &r->found.services[i];
        bool known = false;
        if (!service_has(s, &r->wanted))
            continue;
        right++;
        for (unsigned k = 0; k < r->nrows && !known; k++)
            known = memcmp(&r->rows[k], s, sizeof *s) == 0;
        if (known)
            continue;
        if (r->nrows < SERVICE_ANSWERS)
            r->rows[r->nrows++] = *s;
        struct find_row row = { .name = s->name,
                                .where = s->where,
                                .by = by,
                                .at = text,
                                .ntags = s->ntags,
                                .hops = hops,
                                .asked = r->asked };
        for (unsigned k = 0; k < s->ntags; k++)
            row.tags[k] = s->tags[k];
        report(stdout, r->args->json, find_row_fields, &row,
               "{name} at {where} ({by}, {hops hop/s})\n");
    }
    return right;
}

/* The same of a place of the network, and whether it answered is kept. */
static bool look_place(struct find_run *r, uint32_t at)
{
    const bool said = look_at(r, &r->call, &r->places[at]);
    r->heard[at] = said ? ANSWERED : SILENT;
    return said;
}

/* The nearest one that has it. */
static bool look_near(struct find_run *r)
{
    struct seek s;
    uint32_t at = 0, links[FINDER_LINKS];
    seek_start(&s, 0, 4 * SERVICE_TAGS);
    do {
        size_t n = 0;
        /* A server that does not answer, or lies, is a dead end. */
        const bool said = look_place(r, at);
        if (said && look_print(r, &r->places[at], "near", s.hops))
            return true;
        for (size_t i = 0; said && i < r->found.nlinks; i++) {
            const uint32_t to = place_of(r, &r->found.links[i].at);
            if (to != SEEK_NOBODY)
                links[n++] = to;
        }
        if (!seek_next(&s, links, n, &at))
            return false;
    } while (true);
}

/* All of the hierarchy that have it. */
static bool look_tree(struct find_run *r)
{
    struct climb c;
    uint32_t at, children[FINDER_CHILDREN];
    bool any = false;
    if (!climb_start(&c, 0, FIND_PLACES))
        return false;
    while (climb_next(&c, &at)) {
        size_t n = 0;
        uint64_t hops = 0;
        const bool said = look_place(r, at);
        for (uint32_t i = (uint32_t)c.asked; c.steps[i].from != SEEK_NOBODY;
             i = c.steps[i].from)
            hops++;
        const bool has =
            said && look_print(r, &r->places[at], "tree", hops) > 0;
        any |= has;
        for (size_t i = 0; said && i < r->found.nchildren; i++) {
            const uint32_t to = place_of(r, &r->found.children[i]);
            if (to != SEEK_NOBODY)
                children[n++] = to;
        }
        climb_heard(&c, children, n,
                    said && r->found.parent.family
                        ? place_of(r, &r->found.parent)
                        : SEEK_NOBODY,
                    has);
    }
    r->cut |= c.cut;
    climb_free(&c);
    return any;
}

/* At the owner of the first tag, and those behind it, each of which should have
 * it. The first that does not answer is a place too. */
static bool look_ring(struct find_run *r)
{
    struct address at[CHORD_USUAL_COPIES];
    const size_t n = tag_members(r->ring, r->wanted.tags[0], at);
    for (size_t i = 0; i < n; i++) {
        if (look_at(r, &r->ring->call, &at[i])) {
            if (look_print(r, &at[i], "ring", i + 1))
                return true;
            continue;
        }
        const uint32_t place = place_of(r, &at[i]);
        if (place != SEEK_NOBODY)
            r->heard[place] = SILENT;
    }
    r->no_ring = n == 0;
    return false;
}

/* A server that was given and answers is the first one. Those that do not stay
 * among the places, behind it. */
static bool first_answers(struct find_run *r)
{
    const uint32_t given = r->nplaces;
    uint32_t i = 0;
    while (i < given && !look_place(r, i))
        i++;
    if (i == given)
        return false;
    const struct address first = r->places[i];
    r->places[i] = r->places[0];
    r->heard[i] = r->heard[0];
    r->places[0] = first;
    r->heard[0] = ANSWERED;
    /* Others need not be asked: each leads to the same servers. */
    r->nplaces = i + 1;
    r->asked = 0;
    return true;
}

/* None of those that answered has it. Only if all that may have it answered is
 * it certain that nobody does. */
static int find_none(const struct find_run *r)
{
    char text[ADDRESS_TEXT], some[4 * ADDRESS_TEXT] = "";
    uint32_t silent = 0, named = 0;
    for (uint32_t i = 0; i < r->nplaces; i++) {
        named += r->heard[i] == NAMED;
        if (r->heard[i] != SILENT)
            continue;
        if (silent++ < 3) {
            address_text(&r->places[i], text);
            snprintf(some + strlen(some), sizeof some - strlen(some), "%s%s",
                     silent > 1 ? ", " : "", text);
        }
    }
    if (silent)
        fail("unknown: no answer from %s%s", some,
             silent > 3 ? " and others" : "");
    if (named)
        fail("unknown: %lu server%s that may know of it %s not asked",
             (unsigned long)named, named == 1 ? "" : "s",
             named == 1 ? "was" : "were");
    if (r->cut)
        fail("unknown: the network has more than %d servers", FIND_PLACES);
    if (r->no_ring)
        fail("unknown: the ring cannot be asked: %s", r->ring->call.why);
    return silent || named || r->cut || r->no_ring ? TROUBLE : NO;
}

static int find_all(struct find_run *r)
{
    const unsigned how = r->args->how;
    const bool near = how == FIND_NEAR || how == FIND_ANYHOW;
    const bool tree = how == FIND_TREE || how == FIND_ANYHOW;
    const bool ring = how == FIND_RING || how == FIND_ANYHOW;
    if (!r->nplaces && !r->ring)
        return fail("whom to ask? Use --at ADDRESS:PORT of a server, or --ring "
                    "of a member of a ring");
    if (how == FIND_RING && !r->ring)
        return fail("which ring? Use --ring ADDRESS:PORT");
    const bool network = r->nplaces && (near || tree);
    const bool reached = network && first_answers(r);
    if (!network)
        r->nplaces = 0;
    if (reached && near && look_near(r))
        return YES;
    if (reached && tree && look_tree(r))
        return YES;
    if (ring && r->ring && look_ring(r))
        return YES;
    if (network && !reached)
        return fail("no server answers: %s", r->call.why);
    return find_none(r);
}

static bool take_tags(const struct list *words, size_t from, struct service *s)
{
    for (size_t i = from; i < words->n; i++)
        if (!strchr(words->at[i], '=') ||
            !service_tag(s, words->at[i], strlen(words->at[i])))
            return refuse(
                "%s: expected up to %d tags KEY=VALUE of at most %d bytes",
                words->at[i], SERVICE_TAGS, SERVICE_TAG);
    return true;
}

int net_find(const struct find_args *args, const struct list *tags)
{
    struct find_run *const r = calloc(1, sizeof *r);
    if (!r)
        return fail("no memory");
    signals_no_pipe();
    const int status =
        take_tags(tags, 0, &r->wanted) && find_open(r, args, &args->at)
            ? find_all(r)
            : TROUBLE;
    find_close(r);
    return status;
}

/* --------------------------------------------------------------- announcing */

static bool announce_to(struct find_run *r, struct caller *c,
                        const struct address *at, bool there)
{
    struct frame answer;
    blob_start(&r->blob);
    if (there)
        blob_number(&r->blob, r->args->ttl ? r->args->ttl : USUAL_TTL, 2);
    service_put(&r->blob, &r->wanted);
    return call_ask(c, at, there ? SERVICE_ANNOUNCE : SERVICE_WITHDRAW,
                    &r->blob, &answer) &&
           !call_error(c, &answer);
}

/* One round. How many were told; 0: nobody, with r->call.why. */
static unsigned announce_all(struct find_run *r, bool there)
{
    unsigned told = 0;
    for (uint32_t i = 0; i < r->nplaces; i++)
        told += announce_to(r, &r->call, &r->places[i], there);
    for (unsigned i = 0; r->ring && i < r->wanted.ntags; i++) {
        struct address at[CHORD_USUAL_COPIES];
        const size_t n = tag_members(r->ring, r->wanted.tags[i], at);
        for (size_t k = 0; k < n; k++)
            told += announce_to(r, &r->ring->call, &at[k], there);
        if (!told)
            memcpy(r->call.why, r->ring->call.why, sizeof r->call.why);
    }
    return told;
}

static int announce_run(struct find_run *r)
{
    const struct find_args *const args = r->args;
    const uint64_t ttl = args->ttl ? args->ttl : USUAL_TTL;
    bool silent = false;
    if (!announce_all(r, true))
        return fail("%s could not be announced: %s", r->wanted.name,
                    r->call.why);
    if (args->once)
        return YES;
    signals_watch(NULL);
    note("%s is announced", r->wanted.name);
    while (!signals_told()) {
        /* Two of three may be lost. */
        const uint64_t ms = 1000 * ttl / 3;
        const struct timespec wait = { (time_t)(ms / 1000),
                                       (long)(ms % 1000) * 1000000 };
        nanosleep(&wait, NULL);
        if (signals_told())
            break;
        const bool told = announce_all(r, true) > 0;
        if (!told && !silent)
            warn("%s: nobody answers: %s", r->wanted.name, r->call.why);
        silent = !told;
    }
    announce_all(r, false);
    return YES;
}

int net_announce(const struct find_args *args, const struct list *words)
{
    struct find_run *const r = calloc(1, sizeof *r);
    const char *const where = args->where ? args->where : "-";
    int status = TROUBLE;
    if (!r)
        return fail("no memory");
    signals_no_pipe();
    if (!service_text(r->wanted.name, words->at[0], strlen(words->at[0])) ||
        !service_text(r->wanted.where, where, strlen(where)))
        fail("a name and a place have 1 to %d printable bytes", SERVICE_TEXT);
    else if (args->ttl > SERVICE_TTL_MOST)
        fail("--ttl: at most %d seconds", SERVICE_TTL_MOST);
    else if (!take_tags(words, 1, &r->wanted) || !find_open(r, args, &args->at))
        status = TROUBLE;
    else if (!r->nplaces && !r->ring)
        fail("where? Use --at ADDRESS:PORT of a server, or --ring of a member "
             "of a ring");
    else
        status = announce_run(r);
    find_close(r);
    return status;
}

/* ------------------------------------------------------------------- status */

int net_node_status(const struct find_args *args, const char *address)
{
    struct find_run *const r = calloc(1, sizeof *r);
    const char *one[] = { address };
    const struct list at = { one, 1, 0 };
    struct find_status s;
    struct frame f;
    int status = TROUBLE;
    if (!r)
        return fail("no memory");
    if (find_open(r, args, &at)) {
        blob_start(&r->blob);
        struct body b = { 0 };
        if (call_ask(&r->call, &r->places[0], FINDER_STATUS, &r->blob, &f) &&
            !call_error(&r->call, &f)) {
            b = (struct body){ f.body, f.nbody, false };
            b.bad = body_number(&b, 1) != sizeof s / sizeof(uint64_t);
        } else {
            b.bad = true;
        }
        uint64_t *const numbers[] = { &s.services, &s.links,   &s.heard,
                                      &s.children, &s.bytes,   &s.looks,
                                      &s.news,     &s.refused, &s.expired,
                                      &s.full };
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            *numbers[i] = body_number(&b, 8);
        if (b.bad)
            fail("%s: no server answers: %s", address, r->call.why);
        else
            report(stdout, args->json, find_status_fields, &s,
                   "{services service/s}, {links neighbour/s} of which {heard} "
                   "tell something, {children child/ren}; {bytes} of filters; "
                   "{looks question/s}, {expired} forgotten\n");
        status = b.bad ? TROUBLE : YES;
    }
    find_close(r);
    return status;
}

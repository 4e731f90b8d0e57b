/*
 * chord_status.c - what a node says of itself, and starting and ending one
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/node/chord_files.h"
#include "apps/node/chord_node.h"
#include "report/say.h"

/* ----------------------------------------------------------------- status */

/* The id of a descriptor; its address goes to text. */
static uint64_t take_peer(struct body *b, char text[ADDRESS_TEXT])
{
    struct address a = { 0 };
    const uint64_t id = body_number(b, 8);
    body_number(b, 2);
    a.family = (uint8_t)body_number(b, 1);
    const unsigned char *const at = body_bytes(b, 16);
    if (at)
        memcpy(a.at, at, 16);
    a.port = (uint16_t)body_number(b, 2);
    body_number(b, 8);
    if (a.family)
        address_text(&a, text);
    else
        snprintf(text, ADDRESS_TEXT, "none");
    return id;
}

static void take_member(struct body *b, unsigned r, struct status_member *m,
                        char address[ADDRESS_TEXT])
{
    static const char *const phases[] = { "out", "joining", "in", "left" };
    char unused[ADDRESS_TEXT];
    uint64_t before = 0;
    m->phase = phases[body_number(b, 1) % 4];
    m->uncertain = body_number(b, 1) != 0;
    snprintf(m->id, sizeof m->id, "%016llx",
             (unsigned long long)take_peer(b, address));
    snprintf(m->pred, sizeof m->pred, "%016llx",
             (unsigned long long)take_peer(b, unused));
    for (unsigned i = 0; i < r && i < CHORD_MOST_SUCC; i++) {
        take_peer(b, m->texts[i]);
        m->succ[i] = m->texts[i];
    }
    for (unsigned k = 0; k < 64; k++) {
        const uint64_t finger = body_number(b, 8);
        m->fingers += !k || finger != before;
        before = finger;
    }
}

/* The client that asked, which holds the answer and which the caller closes;
 * NULL, after printing the reason. */
static struct chord_client *ask_node(const struct node_args *args,
                                     const char *where, uint8_t type,
                                     struct secure_secret *secret,
                                     struct frame *f)
{
    struct address a;
    const struct chord_params p = { args->name, args->r, args->copies };
    if (!address_parse(where, &a) || !secure_read(args->key, secret))
        return NULL;
    struct chord_client *const c =
        client_new(&p, secret, args->patience ? 4 * args->patience : 10000);
    if (!c)
        return NULL;
    blob_start(&c->blob);
    if (!call_ask(&c->call, &a, type, &c->blob, f) || call_error(&c->call, f)) {
        fail("%s: %s", where, c->call.why);
        client_close(c);
        return NULL;
    }
    return c;
}

static void status_print(const struct node_args *args,
                         const struct node_status *s)
{
    report(stdout, args->json, node_status_fields, s,
           "{address}~{records} records, {bytes}, {files} files\n"
           "copies~{fetched} fetched, {sent} sent, {dropped} dropped, "
           "{exchanges} exchanges\n"
           "names~epoch {epoch} of {voters} processes\n"
           "network~{connections} connections, {asked} questions, {silent} "
           "silent, {bytes_in} in, {bytes_out} out\n");
    for (size_t i = 0; i < s->nmembers && !args->json; i++) {
        const struct status_member *const m = &s->members[i];
        printf("%s  %s after %s%s, before", m->id, m->phase, m->pred,
               m->uncertain ? " (silent)" : "");
        for (size_t k = 0; m->succ[k]; k++)
            printf(" %s", m->succ[k]);
        printf("\n");
    }
}

int ring_node_status(const struct node_args *args, const struct list *operands)
{
    struct secure_secret secret;
    struct node_status s = { 0 };
    struct frame f;
    int status = TROUBLE;
    struct chord_client *const c =
        ask_node(args, operands->at[0], CHORD_STATUS, &secret, &f);
    if (c) {
        struct body b = { f.body, f.nbody, false };
        uint64_t *const to[] = {
            &s.records,  &s.bytes,    &s.files,    &s.tombstones,  &s.exchanges,
            &s.fetched,  &s.sent,     &s.dropped,  &s.connections, &s.asked,
            &s.silent,   &s.refused,  &s.bytes_in, &s.bytes_out,   &s.bad,
            &s.epoch,    &s.voters,   &s.voter,    &s.ready,       &s.damaged,
            &s.scrubbed, &s.reclaimed
        };
        const unsigned n = (unsigned)body_number(&b, 1);
        for (unsigned i = 0; i < n && !b.bad; i++) {
            const uint64_t x = body_number(&b, 8);
            if (i < sizeof to / sizeof to[0])
                *to[i] = x;
        }
        const unsigned v = (unsigned)body_number(&b, 1);
        const unsigned r = (unsigned)body_number(&b, 1);
        s.members = v <= NODE_VNODES ? calloc(v + 1, sizeof *s.members) : NULL;
        for (unsigned i = 0;
             s.members && i < v && r <= CHORD_MOST_SUCC && !b.bad; i++)
            take_member(&b, r, &s.members[s.nmembers++], s.address);
        if (b.bad || !s.members || !s.nmembers) {
            fail("%s: the answer cannot be understood", operands->at[0]);
        } else {
            status_print(args, &s);
            status = YES;
        }
        free(s.members);
    }
    client_close(c);
    return status;
}

int ring_node_leave(const struct node_args *args, const struct list *operands)
{
    struct secure_secret secret;
    struct frame f;
    struct chord_client *const c =
        ask_node(args, operands->at[0], CHORD_LEAVE, &secret, &f);
    client_close(c);
    return c ? YES : TROUBLE;
}

/* ----------------------------------------------------------------- starting */

int ring_node_key(const struct node_args *args, const struct list *operands)
{
    (void)args;
    return shared_make(operands->at[0]) ? YES : TROUBLE;
}

/* "30d", "12h", "90" seconds; NULL: 30 days. */
static bool take_absence(const char *text, uint64_t *seconds)
{
    static const struct {
        char unit;
        uint64_t seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    char *end = NULL;
    *seconds = 30 * 86400;
    if (!text)
        return true;
    const unsigned long n = strtoul(text, &end, 10);
    uint64_t unit = *end ? 0 : 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0] && *end; i++)
        if (*end == units[i].unit && !end[1])
            unit = units[i].seconds;
    if (text[0] < '0' || text[0] > '9' || !unit || !n ||
        n > 100000000 / unit * 40)
        return refuse(
            "--absence %s: use a number and s, m, h or d, such as 30d", text);
    *seconds = n * unit;
    return true;
}

int ring_node_run(const struct node_args *a, const struct list *operands)
{
    struct node_spec spec = {
        .params = { a->name ? a->name : "ring", a->r ? a->r : CHORD_USUAL_R,
                    a->copies ? a->copies : CHORD_USUAL_COPIES },
        .listen = a->listen,
        .folder = operands->at[0],
        .vnodes = (unsigned)(a->vnodes ? a->vnodes : 1),
        .least_copies = (unsigned)a->least,
        .period = a->period ? a->period : 1000,
        .exchange = a->exchange ? a->exchange : 10000,
        .patience = a->patience ? a->patience : 250,
        .evict = a->evict,
        .reclaim = a->reclaim ? a->reclaim : 3600000,
        .nentries = a->join.n,
        .json = a->json,
    };
    if (!spec.evict) /* longer than a busy moment */
        spec.evict = 8 * spec.period > 3 * spec.patience ? 8 * spec.period
                                                         : 3 * spec.patience;
    if (!take_absence(a->absence, &spec.absence))
        return TROUBLE;
    if (operands->n != 1)
        return fail("expected one folder, not %zu", operands->n);
    if (spec.params.r > CHORD_MOST_SUCC || spec.params.copies > spec.params.r)
        return fail(
            "--successors must be from 1 to %d, and --copies at most that",
            CHORD_MOST_SUCC);
    if (a->vnodes > NODE_VNODES)
        return fail("--vnodes must be from 1 to %d", NODE_VNODES);
    if (spec.least_copies > spec.params.copies)
        return fail("--least-copies must be at most --copies, which is %llu",
                    (unsigned long long)spec.params.copies);
    if (a->join.n > sizeof spec.entries / sizeof spec.entries[0])
        return fail("--join may be given 8 times");
    for (size_t i = 0; i < a->join.n; i++)
        if (!address_parse(a->join.at[i], &spec.entries[i]))
            return TROUBLE;
    if (!secure_read(a->key, &spec.secret))
        return TROUBLE;
    return node_run(&spec);
}

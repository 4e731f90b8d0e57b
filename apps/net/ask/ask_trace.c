/*
 * ask_trace.c - which way did this packet come? The routers are asked
 */
#define _GNU_SOURCE
#include "apps/net/ask/ask_trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/net/ask/ask_walk.h"
#include "io/source.h"
#include "report/say.h"

#define USUAL_PATIENCE 10000 /* milliseconds for all of it */
#define LONGEST 65575
#define TRIES 5 /* of a router that has too much to do */

struct asker {
    const struct receive_args *args;
    struct face like; /* for the sizes */
    struct address router;
    struct secure_secret secret;
    struct caller call;
    struct ask_question q;
    struct ask_tree tree;
    struct ask_row rows[ASK_ROUTERS];
    int status;
};

static const char *const states[] = { "found", "silent", "busy", "cut" };

/* ------------------------------------------------------------------ reporting
 */

/* Rows in the order of the way: whoever was asked by one stands behind it. */
static void rows_make(struct asker *a, struct ask_result *out)
{
    const struct ask_tree *const t = &a->tree;
    unsigned beside[ASK_ROUTERS] = { 0 };
    for (unsigned i = 1; i < t->n; i++)
        beside[t->at[i].before]++;
    out->way = a->rows;
    out->nway = t->n;
    out->certain = true;
    for (unsigned i = 0; i < t->n; i++) {
        const struct ask_node *const n = &t->at[i];
        const bool first = n->before == ASK_FIRST;
        a->rows[i] = (struct ask_row){
            .router = n->name,
            .before = first ? NULL : t->at[n->before].name,
            .state = states[n->state],
            .hops = first ? 1 : a->rows[n->before].hops + 1,
            .bits = n->left,
            .of = n->all,
            .beside = first ? 0 : beside[n->before] - 1,
            .last = !beside[i],
        };
        out->found += n->state == ASK_FOUND || n->state == ASK_CUT;
        out->silent += n->state == ASK_SILENT;
        out->busy += n->state == ASK_BUSY;
        out->cut += n->state == ASK_CUT;
        out->certain &= n->state == ASK_FOUND && beside[i] < 2;
    }
}

static void result_print(const struct asker *a, const struct ask_result *out)
{
    if (!a->args->json)
        for (size_t i = 0; i < out->nway; i++) {
            const struct ask_row *const r = &out->way[i];
            printf("%4u %s%s%s: ", r->hops, r->router,
                   r->before ? ", behind " : "", r->before ? r->before : "");
            if (r->state == states[ASK_FOUND])
                printf("%u of %u bits%s", r->bits, r->of,
                       r->bits < r->of ? ", the others written over" : "");
            else
                printf("%s", r->state);
            if (r->beside)
                printf("; or %u other%s", r->beside, r->beside > 1 ? "s" : "");
            printf("\n");
        }
    report(stdout, a->args->json, ask_fields, out,
           "[{from} -> {to}: ]{found router/s} may have passed it on[; "
           "{?silent}{silent} silent][; {?busy}{busy} busy][; {?cut}behind "
           "{cut} nobody was asked]\n");
    fflush(stdout);
}

/* -------------------------------------------------------------------- asking
 */

/* False: it has no marks. */
static bool packet_ask(void *ctx, const unsigned char *at, size_t n)
{
    struct asker *const a = ctx;
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    struct ask_result out = { .from = from, .to = to };
    struct marked loop;
    bool busy = true, ok = false;
    memset(&a->q.b, 0, sizeof a->q.b);
    if (!forward_marks(&a->like, at, n, &loop, &a->q.b.bits))
        return false;
    a->q.b.nbytes = a->like.way.nbytes;
    a->q.hops = ASK_HOPS;
    a->q.routers = ASK_ROUTERS;
    a->q.ms =
        (unsigned)(a->args->patience ? a->args->patience : USUAL_PATIENCE);
    inet_ntop(AF_INET6, at + 8, from, sizeof from);
    inet_ntop(AF_INET6, at + 24, to, sizeof to);
    for (unsigned i = 0; i < TRIES && busy && !ok; i++) {
        if (i)
            usleep(50000U << i);
        ok = ask_one(&a->call, &a->router, &a->q, &a->tree, &busy);
    }
    if (!ok) {
        a->status = fail("%s: %s", a->args->ask, a->call.why);
        return true;
    }
    rows_make(a, &out);
    result_print(a, &out);
    if (out.nway && a->status == NO)
        a->status = YES;
    return true;
}

static void asker_again(void *ctx)
{
    (void)ctx; /* the marks are the routers' own */
}

static int file_ask(struct asker *a, const char *name)
{
    static unsigned char packet[LONGEST];
    size_t n = 0;
    struct source *const s = source_open(name, -1, SOURCE_ANY);
    ptrdiff_t got = s ? 1 : -1;
    while (got > 0 && n < sizeof packet) {
        got = source_read(s, packet + n, sizeof packet - n);
        n += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        const int status = s ? fail("%s: %s", name, source_error(s))
                             : fail("%s: neither an interface nor a file: %s",
                                    name, strerror(errno));
        if (s)
            source_close(s);
        return status;
    }
    source_close(s);
    return packet_ask(a, packet, n)
               ? a->status
               : fail("%s: not a packet of IPv6 with marks of this size, from "
                      "its header on",
                      name);
}

int net_ask(const struct receive_args *given)
{
    struct receive_args args = *given;
    struct asker *const a = calloc(1, sizeof *a);
    const struct received_by by = { packet_ask, asker_again, a };
    int status = TROUBLE;
    if (!a)
        return fail("no memory");
    router_defaults(&args.marks);
    args.packets = args.packets ? args.packets : 1;
    a->args = &args;
    a->status = NO;
    if (args.topology || args.marks.key_file)
        fail("--ask needs neither --topology nor --key-file: routers know "
             "their own links and marks");
    else if (!args.marks.name || !ask_name_set(a->q.asker, args.marks.name))
        fail("who asks? Use --name NODE, as the router's --link has it");
    else if (address_parse(args.ask, &a->router) &&
             secure_read(args.marks.ask_key, &a->secret) &&
             (!router_face(&args.marks, NULL, "a", "b", &a->like) ||
              refuse_library())) {
        a->call.secret = &a->secret;
        a->call.ring = ASK_RING;
        if (if_nametoindex(args.iface)) {
            status = receive_packets(&args, &by);
            status = status == YES ? a->status : status;
        } else
            status = file_ask(a, args.iface);
        call_close(&a->call);
    }
    free(a);
    return status;
}

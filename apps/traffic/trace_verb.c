/*
 * trace_verb.c - bloomery traffic trace: where did this packet come from?
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/capture.h"
#include "apps/traffic/spie_net.h"
#include "apps/traffic/traffic.h"
#include "base/grow.h"
#include "io/source.h"
#include "report/out.h"
#include "report/say.h"
#include "report/words.h"

#define NS 1e9
#define MOST_FILE ((size_t)1 << 32)
#define READ_LEAST ((size_t)65536)

struct trace_run {
    const struct traffic_args *args;
    struct spie_net net;
    struct spie_file *files; /* by the number of the router */
    struct spie_packet packet;
    int64_t at, within;
    struct trace_summary sum;
};

/* Absent where there is no libsodium. */
extern __typeof__(spie_asker_new) spie_asker_new __attribute__((weak));
extern __typeof__(spie_asker_ask) spie_asker_ask __attribute__((weak));
extern __typeof__(spie_asker_free) spie_asker_free __attribute__((weak));

/* ------------------------------------------------------------------- files */

/* All bytes of a file, from malloc. NULL, with the reason printed. */
static unsigned char *file_whole(const char *path, size_t *n)
{
    struct source *const s = source_open(path, -1, SOURCE_RAW);
    unsigned char *at = NULL;
    size_t room = 0;
    ptrdiff_t got = s ? 1 : -1;
    *n = 0;
    if (!s) {
        fail_path(path, errno);
        return NULL;
    }
    while (got > 0) {
        if (*n > MOST_FILE || !GROW(&at, &room, *n + READ_LEAST))
            break;
        got = source_read(s, at + *n, room - *n);
        *n += got > 0 ? (size_t)got : 0;
    }
    if (got)
        fail("%s: %s", path, got < 0 ? source_error(s) : "out of memory");
    source_close(s);
    if (got) {
        free(at);
        return NULL;
    }
    return at;
}

/* "a b": a link between two routers. # begins a comment. */
static const char *link_line(struct spie_net *net, char *line)
{
    char *rest = NULL;
    const char *const a = strtok_r(line, " \t\r\n", &rest);
    const char *const b = strtok_r(NULL, " \t\r\n", &rest);
    if (!a || a[0] == '#')
        return NULL;
    if (!b || (strtok_r(NULL, " \t\r\n", &rest)))
        return "expected two names of routers, which are linked";
    const size_t from = spie_net_router(net, a, true);
    const size_t to = spie_net_router(net, b, true);
    if (from == SPIE_NOBODY || to == SPIE_NOBODY ||
        !spie_net_link(net, from, to))
        return "a name of 64 bytes or more, or no memory";
    return NULL;
}

static bool topology_read(struct trace_run *r, const char *path)
{
    FILE *const f = fopen(path, "r");
    char line[512];
    unsigned number = 0;
    const char *why = NULL;
    if (!f)
        return refuse_path(path, errno);
    while (!why && fgets(line, sizeof line, f)) {
        number++;
        why = link_line(&r->net, line);
    }
    fclose(f);
    if (why)
        return refuse("%s: line %u: %s", path, number, why);
    r->files = calloc(r->net.nnames ? r->net.nnames : 1, sizeof *r->files);
    return r->files || refuse("out of memory");
}

static bool tables_read(struct trace_run *r, const char *path)
{
    struct spie_file f;
    size_t n;
    unsigned char *const bytes = file_whole(path, &n);
    if (!bytes)
        return false;
    const char *const why = spie_file_parse(bytes, n, &f);
    free(bytes);
    if (why)
        return refuse("%s: %s", path, why);
    const size_t router = spie_net_router(&r->net, f.router, false);
    if (router == SPIE_NOBODY || r->files[router].ntables) {
        fail("%s: %s router %s; give one file for each of %s", path,
             router == SPIE_NOBODY ? "no such" : "a second file of", f.router,
             r->args->trace.topology);
        spie_file_free(&f);
        return false;
    }
    r->files[router] = f;
    return true;
}

/* Packet number --count of a capture. */
static bool packet_read(struct trace_run *r, const char *path)
{
    const uint64_t number = r->args->number ? r->args->number : 1;
    struct capture c;
    struct captured_frame f = { 0 };
    struct packet p;
    bool got = true;
    if (!capture_open(path, false, &c))
        return false;
    for (uint64_t i = 0; i < number && got; i++)
        got = capture_next(&c, &f) == CAPTURED;
    if (!got)
        fail("%s: it has no packet %llu", path, (unsigned long long)number);
    else if (packet_parse(c.link, f.at, f.n, false, &p) != PACKET_IP ||
             !spie_known_by(&p, &r->packet))
        got = refuse(
            "%s: packet %llu is not IP, or captured too short to be known by",
            path, (unsigned long long)number);
    r->at = f.ns;
    capture_close(&c);
    return got;
}

static bool times_set(struct trace_run *r)
{
    const struct trace_args *const a = &r->args->trace;
    r->within = (int64_t)(a->within * NS);
    if (was_given(&a->time))
        r->at = (int64_t)(a->time * NS);
    return true;
}

static bool trace_read(struct trace_run *r, const struct list *operands)
{
    const struct traffic_args *const a = r->args;
    if (a->trace.ask) {
        if (a->trace.topology || a->trace.from || operands->n)
            return refuse("--ask needs no files: routers know their own tables "
                          "and neighbours; leave out --topology, --from and "
                          "DIGEST");
        if (!a->trace.packet)
            return refuse("which packet? Use --packet CAPTURE");
        return packet_read(r, a->trace.packet) && times_set(r);
    }
    if (!a->trace.topology || !a->trace.packet || !a->trace.from ||
        !operands->n)
        return refuse("usage: bloomery traffic trace --topology FILE --packet "
                      "CAPTURE --from ROUTER DIGEST..., or --ask "
                      "ADDRESS:PORT --packet CAPTURE");
    if (!topology_read(r, a->trace.topology) ||
        !packet_read(r, a->trace.packet))
        return false;
    for (size_t i = 0; i < operands->n; i++)
        if (!tables_read(r, operands->at[i]))
            return false;
    return times_set(r);
}

/* ----------------------------------------------------------------- the walk */

static enum spie_answer router_ask(void *ctx, size_t router,
                                   const struct spie_packet *p,
                                   struct spie_packet *was,
                                   enum spie_change *change)
{
    const struct trace_run *const r = ctx;
    return spie_ask(&r->files[router], r->at - r->within, r->at + r->within, p,
                    was, change);
}

static void step_print(struct trace_run *r, const struct spie_step *s)
{
    static const char *const answers[] = {
        "no", "maybe", "changed", "no table", "forgotten", "no answer"
    };
    const struct trace_row row = {
        .router = r->net.names[s->router],
        .from = s->from == SPIE_NOBODY ? NULL : r->net.names[s->from],
        .hops = s->hops,
        .answer = answers[s->answer],
        .change =
            s->answer == SPIE_CHANGED ? spie_change_name(s->change) : NULL,
        .last = s->last,
    };
    r->sum.passed += s->answer == SPIE_MAYBE || s->answer == SPIE_CHANGED;
    r->sum.silent += s->answer == SPIE_SILENT;
    r->sum.forgotten += s->answer == SPIE_FORGOTTEN;
    r->sum.absent += s->answer == SPIE_ABSENT;
    r->sum.last += s->last;
    r->sum.asked++;
    if (s->answer == SPIE_NO && !r->args->json)
        return;
    report(stdout, r->args->json, trace_row_fields, &row,
           "{hops:4} {router}[, behind {from}]: {answer}[ by {change}]"
           "[{?last}, none behind it]\n");
}

static int trace_walk(struct trace_run *r)
{
    struct spie_asker *asker = NULL;
    size_t begin = 0, room = SPIE_ROUTERS, n = 0;
    if (r->args->trace.ask && !spie_asker_new)
        return fail("this bloomery was built without libsodium, and asks "
                    "nobody");
    if (r->args->trace.ask) {
        asker = spie_asker_new(&r->args->trace, r->at - r->within,
                               r->at + r->within, &r->net);
        if (!asker)
            return TROUBLE;
    } else {
        begin = spie_net_router(&r->net, r->args->trace.from, false);
        room = r->net.nnames;
    }
    if (begin == SPIE_NOBODY)
        return fail("--from '%s': %s has no such router", r->args->trace.from,
                    r->args->trace.topology);
    struct spie_step *const steps = malloc(room * sizeof *steps);
    if (steps && asker)
        n = spie_walk(&r->net, begin, &r->packet, spie_asker_ask, asker, steps);
    else if (steps)
        n = spie_walk(&r->net, begin, &r->packet, router_ask, r, steps);
    if (asker)
        spie_asker_free(asker);
    if (!steps)
        return fail("out of memory");
    for (size_t i = 0; i < n; i++)
        step_print(r, &steps[i]);
    free(steps);
    if (!quiet)
        report(r->args->json ? stdout : stderr, r->args->json, trace_fields,
               &r->sum,
               "{asked router/s} asked, {passed} may have passed it on, {last} "
               "of them the first[; {?silent}{silent ha/s/ve} no table of that "
               "time: it may have come through them][; {?forgotten}{forgotten "
               "ha/s/ve} forgotten that time][; {?absent}{absent do/es/} not "
               "answer]\n");
    const bool unsure = r->sum.silent || r->sum.forgotten || r->sum.absent;
    return r->sum.passed ? YES : unsure ? TROUBLE : NO;
}

int traffic_trace(const struct traffic_args *args, const struct list *operands)
{
    struct trace_run r = { .args = args };
    const int status = trace_read(&r, operands) ? trace_walk(&r) : TROUBLE;
    for (size_t i = 0; r.files && i < r.net.nnames; i++)
        spie_file_free(&r.files[i]);
    free(r.files);
    spie_net_free(&r.net);
    return status;
}

/*
 * isect.c - lines that several lists have in common, wherever the lists are
 *
 * A word's list of documents is on one machine, another word's on another;
 * which documents have both? The shorter list sends a filter, the other answers
 * with what passes, and what passed falsely is taken out where the first list
 * is. With more lists it is a chain, the shortest first: what is left of one
 * makes the filter for the next, and the last one's answer goes back to all
 * others, to be confirmed.
 *
 *     500 ids          2,000            90,000
 *     filter, 900 B -> 60 pass
 *                      filter, 160 B -> 12 pass
 *             <------------------------ 12 ids, 96 B
 *     which of these?  which of these?  the 10 that all have
 *
 * A filter of m bits for a elements lets f = 0.6185^(m/a) of b others through,
 * at j bits each. m + f b j is least for
 *
 *     m = a log_0.6185(2.081 a / (b j))
 *
 * and where 2.081 a >= b j the list itself is shorter. Elements are hashes of
 * 64 bits here, so that j is 64, and the lines themselves are read from one
 * list at the end.
 *
 * This process stands between the lists: what one sends to the next goes
 * through it. Bytes are counted once for each that one list sends to another,
 * as if they did it directly; `moved` is what really went over lines.
 *
 * Reynolds and Vahdat, Efficient Peer-to-Peer Keyword Searching, 2003
 */
#define _GNU_SOURCE
#include "apps/sync/isect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/sync/sync_line.h"
#include "apps/sync/sync_server.h"
#include "base/signals.h"
#include "io/files.h"
#include "report/out.h"
#include "report/say.h"

#define ID_BITS 64
#define ISECT_MOST 64 /* lists */
#define ISECT_TIMEOUT 60

/* One list: here, or at the end of a line. */
struct part {
    const char *name;
    bool here;
    struct sync_set set; /* of a list that is not here: how it is hashed */
    struct sync_server server;
    struct sync_session session;
    struct sync_client client;
    uint64_t items, left;
};

/* -------------------------------------------------------------------- parts */

static bool local_exchange(void *ctx, const struct block *question,
                           struct block *answer, char why[SYNC_WHY])
{
    struct part *const p = ctx;
    (void)why;
    server_answer(&p->server, (const unsigned char *)question->at,
                  question->len, answer);
    return true;
}

static bool is_there(const char *name)
{
    struct stat st;
    return !stat(name, &st);
}

static bool part_open(struct part *p, const struct isect_args *args,
                      const struct secure_secret *secret, const char *name)
{
    const uint64_t timeout = args->timeout ? args->timeout : ISECT_TIMEOUT;
    *p = (struct part){ .name = name, .here = is_there(name) };
    p->set = (struct sync_set){ .form = SYNC_LINES,
                                .path = name,
                                .secret = shared_hashes(secret),
                                .nul = args->nul,
                                .nthreads = (unsigned)args->threads };
    p->server = (struct sync_server){ .set = &p->set };
    p->client = (struct sync_client){ .set = &p->set, .take = true };
    p->client.line = (struct sync_line){ .exchange = local_exchange, .ctx = p };
    sync_begin(&p->session, secret, timeout);
    if (!p->here && !strchr(name, ':'))
        return refuse_path(name, ENOENT);
    if (!p->here) {
        if (!sync_reach(&p->session, name, NULL))
            return false;
        p->client.line = sync_line_over(&p->session);
        /* The hash of lines, without any. */
        p->set.path = "/dev/null";
    }
    if (!set_read(&p->set))
        return refuse("%s", p->set.why);
    if (!client_hello(&p->client))
        return refuse("%s: %s", name, p->client.why);
    p->items = p->left = p->client.report.there;
    return true;
}

static void part_close(struct part *p)
{
    sync_client_free(&p->client);
    server_free(&p->server);
    set_free(&p->set);
    session_close(&p->session.session);
}

static int by_items(const void *a, const void *b)
{
    const struct part *const *const x = a, *const *const y = b;
    return (*x)->items < (*y)->items ? -1 : (*x)->items > (*y)->items;
}

/* -------------------------------------------------------------------- chain */

/* What is left of one as a filter to the next, or as hashes where these are
 * shorter: a filter with 64 bits for each lets nothing through. */
static bool pass_on(struct part *from, struct part *to, uint64_t *nbytes)
{
    struct block filter = { 0 }, how = { 0 };
    struct reading r;
    uint64_t lacking = 0;
    const double bits =
        isect_bits((double)from->left, (double)to->items, ID_BITS);
    const uint64_t m =
        bits >= 1.5 * (double)from->left ? (uint64_t)bits : 64 * from->left;
    bool ok = varint_put(&how, m) &&
              client_parts(&from->client, SYNC_SIFT, how.at, how.len,
                           from->left * 8 + 64, &filter);
    if (!ok)
        fail("%s: %s", from->name, from->client.why);
    block_free(&how);
    *nbytes = filter.len;
    if (ok) {
        ok = client_outline(&to->client, filter.at, filter.len, 0, &lacking);
        client_begin(&to->client, SYNC_NARROW);
        ok = ok && client_ask(&to->client, &r);
        to->left = ok ? read_number(&r) : 0;
        if (ok && (r.bad || to->left > to->items))
            ok = client_fail(&to->client, "it has more than it says");
        if (!ok)
            fail("%s: %s", to->name, to->client.why);
    }
    block_free(&filter);
    return ok;
}

/* Keep those of n elements that the list has. */
static bool confirm(struct part *p, uint64_t *elements, size_t *n)
{
    struct sync_client *const c = &p->client;
    size_t kept = 0;
    for (size_t at = 0; at < *n;) {
        struct reading r;
        const size_t some =
            *n - at < SYNC_ROOM / 8 - 8 ? *n - at : SYNC_ROOM / 8 - 8;
        client_begin(c, SYNC_CONFIRM);
        bool ok = true;
        for (size_t i = 0; ok && i < some; i++)
            ok = put_word(&c->question, elements[at + i], 8);
        if (!ok)
            client_fail(c, "out of memory");
        const unsigned char *bits = NULL;
        if (client_ask(c, &r))
            bits = read_bytes(&r, (some + 7) / 8);
        if (!bits)
            return refuse("%s: %s", p->name, c->why[0] ? c->why : "no answer");
        for (size_t i = 0; i < some; i++)
            if (bits[i / 8] >> i % 8 & 1)
                elements[kept++] = elements[at + i];
        at += some;
    }
    *n = kept;
    return true;
}

static const char isect_text[] =
    "{common} lines in all lists\n"
    "{bytes} from list to list: {filters} of filters, {answers} of answers; "
    "the shortest list takes {plain}[, {saved:.1} times as much]\n";

static int tell(const struct isect_args *args, struct part **order, size_t n,
                struct isect_report *r, struct isect_list *lists)
{
    for (size_t i = 0; i < n; i++) {
        lists[i].name = order[i]->name;
        lists[i].items = order[i]->items;
        lists[i].passed = order[i]->left;
        if (!order[i]->here)
            r->moved +=
                order[i]->client.line.sent + order[i]->client.line.received;
    }
    r->lists = lists;
    r->nlists = n;
    r->bytes = r->filters + r->answers;
    r->plain = order[0]->items * (ID_BITS / 8) * (n - 1);
    r->saved = r->bytes ? (double)r->plain / (double)r->bytes : NAN;
    if (args->count && !args->json)
        printf("%llu\n", (unsigned long long)r->common);
    if (args->json)
        report(stdout, true, isect_fields, r, NULL);
    else if (!quiet)
        report(stderr, false, isect_fields, r, isect_text);
    return r->common ? YES : NO;
}

static int run_chain(const struct isect_args *args, struct part **order,
                     size_t n)
{
    struct isect_report r = { 0 };
    struct isect_list lists[ISECT_MOST] = { { 0 } };
    uint64_t *found = NULL;
    size_t nfound = 0;
    struct part *const last = order[n - 1];
    bool ok = true;
    for (size_t i = 0; ok && i + 1 < n; i++) {
        ok = pass_on(order[i], order[i + 1], &lists[i].filter);
        r.filters += lists[i].filter;
    }
    if (ok &&
        !client_elements(&last->client, SYNC_LEFT, last->left, &found, &nfound))
        ok = refuse("%s: %s", last->name, last->client.why);
    const size_t passed = nfound;
    /* Back along the chain: what an earlier list lacks is dropped. */
    for (size_t i = n - 1; ok && i-- > 0;) {
        r.answers += nfound * (ID_BITS / 8);
        ok = confirm(order[i], found, &nfound);
    }
    r.common = nfound;
    r.falsely = passed - nfound;
    /* The lines: from a list that is here, if one is. */
    struct part *source = order[0];
    for (size_t i = 0; i < n; i++)
        if (order[i]->here) {
            source = order[i];
            break;
        }
    if (ok && !args->count && !args->json && !quiet) {
        source->client.shows = source->client.bare = true;
        if (!client_lines(&source->client, found, nfound))
            ok = refuse("%s: %s", source->name, source->client.why);
    }
    const int status = ok ? tell(args, order, n, &r, lists) : TROUBLE;
    free(found);
    return status;
}

int isect(const struct isect_args *args, const struct list *operands)
{
    struct part *order[ISECT_MOST];
    struct secure_secret secret;
    bool ok = true;
    if (operands->n < 2 || operands->n > ISECT_MOST)
        return fail("isect needs 2 to %d lists", ISECT_MOST);
    if (!secure_read(args->key_file, &secret))
        return TROUBLE;
    struct part *const parts = calloc(operands->n, sizeof *parts);
    if (!parts)
        return fail("out of memory");
    signals_no_pipe();
    size_t n = 0;
    for (; ok && n < operands->n; n++) {
        ok = part_open(&parts[n], args, &secret, operands->at[n]);
        order[n] = &parts[n];
    }
    int status = TROUBLE;
    if (ok) {
        qsort(order, n, sizeof *order, by_items);
        status = run_chain(args, order, n);
    }
    while (n)
        part_close(&parts[--n]);
    free(parts);
    return status;
}

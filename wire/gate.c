/*
 * gate.c - who may come in, and for how long
 *
 * A server that waits for its clients is at their mercy: two hundred that send
 * a byte now and then keep everybody else out, and a time-out for silence does
 * not notice them. So the gate, not the HTTP library, accepts connections, and
 * bounds each by what it has achieved:
 *
 *     accepted --request_time--> request is whole --answer_time--> closed
 *
 * A late connection is cut off: the gate calls shutdown() on the socket, and
 * the library, which owns it, finds the connection ended. (libmicrohttpd 0.9.75
 * has a time-out for silence alone, and counts addresses, but refuses newcomers
 * at the limit.)
 *
 * Where there are too many, the newcomer is let in and one that is inside
 * gives way, since a client in good order is done within moments:
 *
 *   - too many of one address: its connection that has waited longest without
 *     a request; if all have one, the newcomer is turned away;
 *   - too many in all: a connection of the address that has most of them, one
 *     without a request rather than one with, the oldest of these.
 *
 * So N slow connections from one address cost that address its own, and from
 * many addresses they cost each other theirs. Of IPv6 the first 64 bits are an
 * address here: a customer is given at least that many.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "wire/gate.h"
#include "base/grow.h"
#include "report/say.h"

#define TICK_MS 250   /* how late a late one may be found */
#define FULL_MS 10    /* to wait where those cut off are not gone yet */
#define TELL_MS 60000 /* between two lines about those cut off */

/* Where connections come from. */
struct origin {
    unsigned char address[8]; /* of IPv4 four bytes, of IPv6 the network */
    bool six;
    unsigned nopen;     /* connections that were not cut off */
    unsigned nvisitors; /* all that point here */
};

struct visitor {
    int fd;
    struct origin *from;
    int64_t since; /* when it came, or its request was whole */
    bool asked;    /* its request is whole */
    bool cut;      /* told to go */
};

struct gate {
    struct gate_limits limits;
    gate_enter *enter;
    void *ctx;
    int listener, wake;
    pthread_t thread;
    pthread_mutex_t lock; /* all below */
    struct visitor *at;
    size_t n, room;
    size_t nopen; /* of them, not cut off */
    uint64_t nlate, nevicted, nrefused, ntold;
    int64_t told_at;
};

/* ---------------------------------------------------- visitors, under lock */

static struct visitor *visitor_of(struct gate *g, int fd)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->at[i].fd == fd)
            return &g->at[i];
    return NULL;
}

static void visitor_uncount(struct gate *g, struct visitor *v)
{
    if (!v->cut) {
        v->cut = true;
        v->from->nopen--; /* NOLINT: freed with its last visitor */
        g->nopen--;
    }
}

static void visitor_remove(struct gate *g, struct visitor *v)
{
    visitor_uncount(g, v);
    if (--v->from->nvisitors == 0) /* NOLINT: likewise */
        free(v->from);
    *v = g->at[--g->n];
}

/* The owner closes the socket after gate_left(), so that fd is its own still.
 */
static void visitor_cut(struct gate *g, struct visitor *v)
{
    visitor_uncount(g, v);
    shutdown(v->fd, SHUT_RDWR);
}

/* Where an address counts: an IPv4 address in IPv6's clothes is IPv4. */
static struct origin origin_of(const struct sockaddr_storage *from)
{
    struct origin o = { .six = from->ss_family == AF_INET6 };
    if (from->ss_family == AF_INET) {
        memcpy(o.address, &((const struct sockaddr_in *)from)->sin_addr, 4);
    } else if (o.six) {
        const struct in6_addr *const a =
            &((const struct sockaddr_in6 *)from)->sin6_addr;
        o.six = !IN6_IS_ADDR_V4MAPPED(a);
        memcpy(o.address, a->s6_addr + (o.six ? 0 : 12), o.six ? 8 : 4);
    }
    return o;
}

static struct origin *origin_find(struct gate *g, const struct origin *o)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->at[i].from->six == o->six &&
            memcmp(g->at[i].from->address, o->address, sizeof o->address) == 0)
            return g->at[i].from;
    return NULL;
}

/* The one of an address that has waited longest without a request. */
static struct visitor *idlest_of(struct gate *g, const struct origin *from)
{
    struct visitor *found = NULL;
    for (size_t i = 0; i < g->n; i++) {
        struct visitor *const v = &g->at[i];
        if (v->from == from && !v->cut && !v->asked &&
            (!found || v->since < found->since))
            found = v;
    }
    return found;
}

static bool gives_way_before(const struct visitor *a, const struct visitor *b)
{
    if (a->from->nopen != b->from->nopen)
        return a->from->nopen > b->from->nopen;
    if (a->asked != b->asked)
        return b->asked;
    return a->since < b->since;
}

static struct visitor *first_to_go(struct gate *g)
{
    struct visitor *found = NULL;
    for (size_t i = 0; i < g->n; i++)
        if (!g->at[i].cut && (!found || gives_way_before(&g->at[i], found)))
            found = &g->at[i];
    return found;
}

/* Who gives way to one more of an address? False: the newcomer. */
static bool make_way(struct gate *g, const struct origin *from)
{
    const unsigned nmine = from ? from->nopen : 0;
    struct visitor *v = NULL;
    if (nmine >= g->limits.per_address)
        v = idlest_of(g, from);
    else if (g->nopen >= g->limits.connections)
        v = first_to_go(g);
    else
        return true;
    if (!v)
        return false;
    visitor_cut(g, v);
    g->nevicted++;
    return true;
}

static bool visitor_add(struct gate *g, int fd, struct origin wanted)
{
    if (!GROW(&g->at, &g->room, g->n + 1))
        return false;
    struct origin *from = origin_find(g, &wanted);
    if (!from) {
        from = malloc(sizeof *from);
        if (!from)
            return false;
        *from = wanted;
    }
    g->at[g->n++] = (struct visitor){ fd, from, gate_clock(), false, false };
    from->nvisitors++;
    from->nopen++;
    g->nopen++;
    return true;
}

/* Cut off whoever is late. */
static void cut_late(struct gate *g)
{
    const int64_t now = gate_clock();
    for (size_t i = 0; i < g->n; i++) {
        struct visitor *const v = &g->at[i];
        const uint64_t may =
            v->asked ? g->limits.answer_time : g->limits.request_time;
        if (!v->cut && now - v->since > (int64_t)may * 1000) {
            visitor_cut(g, v);
            g->nlate++;
        }
    }
}

/* ------------------------------------------------------------------ letting */

static void tell_cut(struct gate *g, bool last)
{
    pthread_mutex_lock(&g->lock);
    const int64_t now = gate_clock();
    const uint64_t n = g->nlate + g->nevicted + g->nrefused;
    const bool tell =
        n > g->ntold && (last || !g->ntold || now - g->told_at > TELL_MS);
    const uint64_t late = g->nlate, evicted = g->nevicted,
                   refused = g->nrefused;
    if (tell) {
        g->ntold = n;
        g->told_at = now;
    }
    pthread_mutex_unlock(&g->lock);
    if (tell)
        warn("connections cut off so far: %llu too slow, %llu to make way for "
             "others, %llu turned away",
             (unsigned long long)late, (unsigned long long)evicted,
             (unsigned long long)refused);
}

/* One newcomer, whom the library serves from now on or who is turned away. */
static void let_in(struct gate *g, int fd, const struct sockaddr_storage *from,
                   socklen_t nfrom)
{
    pthread_mutex_lock(&g->lock);
    /* A number that is here already is one that was closed without a word. */
    struct visitor *const gone = visitor_of(g, fd);
    if (gone)
        visitor_remove(g, gone);
    const struct origin wanted = origin_of(from);
    const bool in =
        make_way(g, origin_find(g, &wanted)) && visitor_add(g, fd, wanted);
    g->nrefused += !in;
    pthread_mutex_unlock(&g->lock);
    if (!in)
        close(fd);
    else if (!g->enter(g->ctx, fd, (const struct sockaddr *)from, nfrom))
        gate_left(g, fd);
}

/* How long may the thread sleep? Nobody can be late where nobody is. */
static int sleep_ms(struct gate *g, bool *full)
{
    pthread_mutex_lock(&g->lock);
    const size_t n = g->n;
    /* Those cut off take a moment to go; past twice the limit they are waited
     * for, so that what is in use stays bounded. */
    *full = n >= 2 * g->limits.connections;
    pthread_mutex_unlock(&g->lock);
    return *full ? FULL_MS : n ? TICK_MS : -1;
}

static void *gate_run(void *ctx)
{
    struct gate *const g = ctx;
    for (;;) {
        bool full;
        const int ms = sleep_ms(g, &full);
        struct pollfd p[2] = { { .fd = g->wake, .events = POLLIN },
                               { .fd = g->listener, .events = POLLIN } };
        if (poll(p, full ? 1 : 2, ms) < 0 && errno != EINTR)
            return NULL;
        if (p[0].revents)
            return NULL;
        pthread_mutex_lock(&g->lock);
        cut_late(g);
        pthread_mutex_unlock(&g->lock);
        if (!full && p[1].revents) {
            struct sockaddr_storage from = { 0 };
            socklen_t nfrom = sizeof from;
            const int fd = accept4(g->listener, (struct sockaddr *)&from,
                                   &nfrom, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (fd >= 0) {
                let_in(g, fd, &from, nfrom);
            } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                       errno == ENOBUFS) {
                /* Out of descriptors: as if there were too many. */
                pthread_mutex_lock(&g->lock);
                struct visitor *const v = first_to_go(g);
                if (v) {
                    visitor_cut(g, v);
                    g->nevicted++;
                }
                pthread_mutex_unlock(&g->lock);
                poll(p, 1, FULL_MS);
            }
        }
        tell_cut(g, false);
    }
}

bool gate_open(struct gate **out, int listener,
               const struct gate_limits *limits, gate_enter *enter, void *ctx)
{
    struct gate *const g = *out = calloc(1, sizeof *g);
    if (!g)
        return false;
    g->limits = *limits;
    g->enter = enter;
    g->ctx = ctx;
    g->listener = listener;
    pthread_mutex_init(&g->lock, NULL);
    g->wake = eventfd(0, EFD_CLOEXEC);
    if (g->wake >= 0 && pthread_create(&g->thread, NULL, gate_run, g) == 0)
        return true;
    if (g->wake >= 0)
        close(g->wake);
    pthread_mutex_destroy(&g->lock);
    free(g);
    *out = NULL;
    return false;
}

void gate_shut(struct gate *g)
{
    const uint64_t one = 1;
    ssize_t put;
    do
        put = write(g->wake, &one, sizeof one);
    while (put < 0 && errno == EINTR);
    pthread_join(g->thread, NULL);
    tell_cut(g, true);
}

void gate_free(struct gate *g)
{
    if (!g)
        return;
    while (g->n)
        visitor_remove(g, &g->at[0]);
    close(g->wake);
    pthread_mutex_destroy(&g->lock);
    free(g->at);
    free(g);
}

/* ------------------------------------------------------------------ inside */

void gate_asked(struct gate *g, int fd)
{
    pthread_mutex_lock(&g->lock);
    struct visitor *const v = visitor_of(g, fd);
    if (v && !v->asked) {
        v->asked = true;
        v->since = gate_clock();
    }
    pthread_mutex_unlock(&g->lock);
}

void gate_left(struct gate *g, int fd)
{
    pthread_mutex_lock(&g->lock);
    struct visitor *const v = visitor_of(g, fd);
    if (v)
        visitor_remove(g, v);
    pthread_mutex_unlock(&g->lock);
}

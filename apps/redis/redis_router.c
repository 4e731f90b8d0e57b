/*
 * redis_router.c - which server has a key, and talking to it
 *
 * A server has two connections. What is sent ahead goes through one, and its
 * answers come back in the order of the commands. What must be answered at once
 * goes through the other and so does not come between them: a command that was
 * sent to the wrong server, for instance.
 *
 *     ahead   ---- c1 c2 c3 c4 ---->        <---- a1 a2 MOVED a4 ----
 *     aside                 ---- c3, to the right server ---->  <---- a3 ----
 *
 * A cluster divides keys into 16384 slots and says who has which. That map is
 * read at the start, and again when a server says MOVED or does not answer. A
 * slot that is just being moved answers ASK for a key that is gone already: the
 * command then goes to the new place, behind the word ASKING, and the map stays
 * as it is.
 *
 * A server that dies is replaced by one of its replicas, after the cluster's
 * node timeout (15 s unless it is set) and an election. ATTEMPTS pauses of up
 * to a second are 35 s, twice that. A single server is tried once more, since
 * it may have closed a connection that had long been idle.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "apps/redis/lane.h"
#include "apps/redis/redis_router.h"

#define ATTEMPTS 40
#define PAUSE_MS 100u /* after the first failure; then twice that, ... */
#define PAUSE_MAX_MS 1000u
#define FLUSH_BYTES ((size_t)64 * 1024)

__attribute__((format(printf, 2, 3))) static bool
router_fail(struct router *r, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(r->why, sizeof r->why, format, ap);
    va_end(ap);
    return false;
}

bool router_explain(struct router *r, const char *key, const char *text)
{
    lane_explain(r->login, key, text, r->why, sizeof r->why);
    return false;
}

bool router_open(struct router *r, const struct redis_login *login)
{
    *r = (struct router){ .login = login };
    if (node_place(r, login->host, (int)login->port) == NO_NODE)
        return router_fail(r, "--host %s: the name is too long", login->host);
    if (!node_connect(r, &r->nodes[0], &r->nodes[0].aside))
        return false;
    /* Waits for a server that is just reading its data. */
    redisReply *const pong = router_call(r, "", true, "PING");
    if (!pong)
        return false;
    freeReplyObject(pong);
    /* A server without slots is a single server, which has all keys. */
    r->clustered = learn_slots(r);
    r->why[0] = '\0';
    return true;
}

void router_close(struct router *r)
{
    for (size_t i = 0; i < r->nnodes; i++) {
        redisFree(r->nodes[i].ahead);
        redisFree(r->nodes[i].aside);
    }
    free(r->nodes);
    r->nodes = NULL;
    r->nnodes = 0;
}

/* --------------------------------------------------------------- asking */

/* What the cluster itself says of a command, which was not carried out. */
enum redirection { ANSWERED, MOVED, ASK, LATER };

static enum redirection redirection_of(const struct router *r,
                                       const redisReply *reply)
{
    if (!is_error(reply))
        return ANSWERED;
    if (starts_with(reply->str, "LOADING "))
        return LATER;
    if (!r->clustered)
        return ANSWERED;
    if (starts_with(reply->str, "MOVED "))
        return MOVED;
    if (starts_with(reply->str, "ASK "))
        return ASK;
    static const char *const later[] = { "TRYAGAIN", "CLUSTERDOWN",
                                         "MASTERDOWN", "READONLY" };
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (starts_with(reply->str, later[i]))
            return LATER;
    return ANSWERED;
}

/* The server in "MOVED 3999 127.0.0.1:6381"; a missing host is the one that
 * said so. */
static uint16_t redirected_to(struct router *r, const char *text,
                              uint16_t sayer)
{
    const char *const place = strrchr(text, ' ');
    const char *const colon = place ? strrchr(place, ':') : NULL;
    char host[sizeof r->nodes->host];
    if (!colon)
        return NO_NODE;
    if (colon == place + 1)
        snprintf(host, sizeof host, "%s", r->nodes[sayer].host);
    else
        snprintf(host, sizeof host, "%.*s", (int)(colon - place - 1),
                 place + 1);
    return node_place(r, host, atoi(colon + 1));
}

static void pause_before(unsigned attempt)
{
    const unsigned ms =
        attempt * PAUSE_MS < PAUSE_MAX_MS ? attempt * PAUSE_MS : PAUSE_MAX_MS;
    const struct timespec t = { .tv_sec = ms / 1000,
                                .tv_nsec = (long)(ms % 1000) * 1000000 };
    nanosleep(&t, NULL);
}

/* Send a command to where a slot is and wait for the answer. A cluster's own
 * answers are dealt with: MOVED and ASK are followed, and where a server does
 * not answer, its successor is waited for, a bounded number of times. With
 * `again` a command whose answer was lost is sent once more, which must then do
 * no harm. NULL: r->why. Errors of other sorts are answers. */
static redisReply *router_ask(struct router *r, unsigned slot,
                              const struct wire_command *w, bool again)
{
    const char *asking[] = { "ASKING" };
    uint16_t to = r->owner[slot];
    bool asks = false;
    r->lost = false;
    for (unsigned attempt = 1;; attempt++) {
        /* A server that is new may not know yet: another one is asked, too. */
        for (size_t i = 0; to == NO_NODE && i < r->nnodes; i++) {
            learn_slots(r);
            to = r->owner[slot];
        }
        if (to == NO_NODE) {
            router_fail(r,
                        "slot %u: no server of the cluster has it, so its keys "
                        "are unavailable; redis-cli --cluster fix repairs that",
                        slot);
            return NULL;
        }
        struct redis_node *const node = &r->nodes[to];
        redisReply *reply = NULL;
        bool maybe_done = false;
        if (node_connect(r, node, &node->aside)) {
            if (asks)
                freeReplyObject(lane_words(node->aside, 1, asking));
            reply = lane_ask(node->aside, w);
            if (!reply) {
                maybe_done = true;
                router_fail(r, "%s:%d: the connection was lost: %s", node->host,
                            node->port, lane_error(node->aside));
                lane_close(&node->aside);
            }
        }
        asks = false;
        const enum redirection how = reply ? redirection_of(r, reply) : LATER;
        if (how == ANSWERED)
            return reply;
        if (reply)
            router_fail(r, "%s:%d: %s", node->host, node->port, reply->str);
        const bool give_up = attempt == ATTEMPTS || (maybe_done && !again) ||
                             (!r->clustered && !reply && attempt > 1);
        const uint16_t next = how == MOVED || how == ASK
                                  ? redirected_to(r, reply->str, to)
                                  : NO_NODE;
        freeReplyObject(reply);
        r->lost = maybe_done;
        if (give_up)
            return NULL;
        if (how == LATER || next == NO_NODE || attempt > 4)
            pause_before(attempt);
        if (how == ASK && next != NO_NODE) {
            to = next;
            asks = true;
            continue;
        }
        char why[sizeof r->why];
        memcpy(why, r->why, sizeof why);
        if (r->clustered)
            learn_slots(r);
        memcpy(r->why, why, sizeof why);
        if (next != NO_NODE)
            r->owner[slot] = next; /* the server that says so knows best */
        to = r->owner[slot];
    }
}

redisReply *router_call(struct router *r, const char *key, bool again,
                        const char *format, ...)
{
    struct wire_command w;
    va_list ap;
    va_start(ap, format);
    const int len = redisvFormatCommand(&w.bytes, format, ap);
    va_end(ap);
    if (len < 0) {
        router_fail(r, "out of memory");
        return NULL;
    }
    w.len = (size_t)len;
    redisReply *reply = router_ask(r, key_slot(key, strlen(key)), &w, again);
    redisFreeCommand(w.bytes);
    if (reply && is_error(reply)) {
        router_explain(r, key, reply->str);
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

/* ---------------------------------------------------------- sending ahead */

static void ahead_lost(struct redis_node *node)
{
    lane_close(&node->ahead);
    node->nlost++;
    node->nunsent = 0;
}

static void ahead_flush(struct redis_node *node)
{
    if (node->nunsent && !lane_flush(node->ahead))
        ahead_lost(node);
    node->nunsent = 0;
}

struct ticket router_send(struct router *r, unsigned slot,
                          const struct wire_command *w)
{
    if (r->owner[slot] == NO_NODE) /* that is told when the answer is asked */
        return (struct ticket){ .node = NO_NODE };
    struct redis_node *const node = &r->nodes[r->owner[slot]];
    const struct ticket t = { r->owner[slot], node->nlost };
    /* One that is known to be down is not waited for again and again. */
    if ((node->is_down && !node->ahead) ||
        !node_connect(r, node, &node->ahead) ||
        redisAppendFormattedCommand(node->ahead, w->bytes, w->len) !=
            REDIS_OK) {
        ahead_lost(
            node); /* so the ticket belongs to a connection that is gone */
        return t;
    }
    node->nunsent += w->len;
    if (node->nunsent >= FLUSH_BYTES)
        ahead_flush(node);
    return t;
}

redisReply *router_answer(struct router *r, struct ticket t, unsigned slot,
                          const struct wire_command *w, bool again)
{
    for (size_t i = 0; i < r->nnodes; i++)
        ahead_flush(&r->nodes[i]); /* all servers work while one is awaited */
    if (t.node == NO_NODE)         /* it was not sent */
        return w ? router_ask(r, slot, w, again) : NULL;
    struct redis_node *const node = &r->nodes[t.node];
    void *reply = NULL;
    if (node->ahead && node->nlost == t.nlost &&
        redisGetReply(node->ahead, &reply) != REDIS_OK) {
        router_fail(r, "%s:%d: the connection was lost: %s", node->host,
                    node->port, lane_error(node->ahead));
        ahead_lost(node);
    }
    if (reply && redirection_of(r, reply) == ANSWERED)
        return reply;
    const bool was_refused = reply != NULL;
    if (was_refused)
        router_fail(r, "%s:%d: %s", node->host, node->port,
                    ((const redisReply *)reply)->str);
    freeReplyObject(reply);
    if (!w || (!was_refused && !again)) {
        if (!r->why[0])
            router_fail(r, "%s:%d: the connection was lost", node->host,
                        node->port);
        return NULL;
    }
    return router_ask(r, slot, w, again);
}

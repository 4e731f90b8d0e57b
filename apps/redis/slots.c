/*
 * slots.c - the slot of a key, and who has it
 *
 * CRC-16 of CCITT with polynomial 0x1021 and no reflection (XMODEM's), modulo
 * 16384. Where a key has a { and later a }, with something between them, that
 * alone is hashed: so "f:{7}" and "other:{7}" are neighbours. "123456789" has
 * the CRC 0x31c3.
 *
 * Who has which slot is what CLUSTER SLOTS says. Servers that are gone stay in
 * the router's array, with nothing to their name, so that places hold; they may
 * come back, and any of them may be asked for the map.
 */
#include <stdlib.h>

#include "apps/redis/lane.h"
#include "base/grow.h"

unsigned key_slot(const void *key, size_t len)
{
    const unsigned char *at = key;
    const unsigned char *const open = memchr(at, '{', len);
    if (open) {
        const size_t rest = len - (size_t)(open + 1 - at);
        const unsigned char *const close = memchr(open + 1, '}', rest);
        if (close && close > open + 1) {
            at = open + 1;
            len = (size_t)(close - at);
        }
    }
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)at[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000u ? crc << 1 ^ 0x1021u : crc << 1) & 0xffffu;
    }
    return crc % SLOTS;
}

/* ---------------------------------------------------------- who has what */

bool node_connect(struct router *r, struct redis_node *node,
                  redisContext **lane)
{
    if (!*lane)
        *lane =
            lane_open(r->login, node->host, node->port, r->why, sizeof r->why);
    node->is_down = !*lane;
    return *lane != NULL;
}

uint16_t node_place(struct router *r, const char *host, int port)
{
    for (size_t i = 0; i < r->nnodes; i++)
        if (r->nodes[i].port == port && strcmp(r->nodes[i].host, host) == 0)
            return (uint16_t)i;
    if (r->nnodes >= NO_NODE || strlen(host) >= sizeof r->nodes->host)
        return NO_NODE;
    if (!GROW(&r->nodes, &r->room, r->nnodes + 1))
        return NO_NODE;
    r->nodes[r->nnodes] = (struct redis_node){ .port = port };
    memcpy(r->nodes[r->nnodes].host, host, strlen(host) + 1);
    return (uint16_t)r->nnodes++;
}

/* A server as CLUSTER SLOTS gives it: [host, port, ...]. One that does not know
 * its own name is called as it was reached. */
static uint16_t node_of_reply(struct router *r, const redisReply *e,
                              const char *reached)
{
    if (e->type != REDIS_REPLY_ARRAY || e->elements < 2 ||
        e->element[1]->type != REDIS_REPLY_INTEGER)
        return NO_NODE;
    const redisReply *const host = e->element[0];
    const bool named = host->type == REDIS_REPLY_STRING && host->len;
    char name[sizeof r->nodes->host];
    snprintf(name, sizeof name, "%s", named ? host->str : reached);
    return node_place(r, name, (int)e->element[1]->integer);
}

/* [[first slot, last slot, primary, replica...]...] */
static void take_slots(struct router *r, const redisReply *all,
                       const char *reached)
{
    for (size_t s = 0; s < SLOTS; s++)
        r->owner[s] = NO_NODE;
    for (size_t i = 0; i < all->elements; i++) {
        const redisReply *const e = all->element[i];
        if (e->type != REDIS_REPLY_ARRAY || e->elements < 3 ||
            e->element[0]->type != REDIS_REPLY_INTEGER ||
            e->element[1]->type != REDIS_REPLY_INTEGER)
            continue;
        const uint16_t owner = node_of_reply(r, e->element[2], reached);
        for (size_t k = 3; k < e->elements; k++)
            node_of_reply(r, e->element[k], reached);
        const long long last = e->element[1]->integer;
        for (long long s = e->element[0]->integer;
             owner != NO_NODE && s >= 0 && s <= last && s < SLOTS; s++)
            r->owner[s] = owner;
    }
}

/* Take the map that a server gives. False: r->why. */
static bool learn_from(struct router *r, struct redis_node *node)
{
    const char *words[] = { "CLUSTER", "SLOTS" };
    if (!node_connect(r, node, &node->aside))
        return false;
    redisReply *const reply = lane_words(node->aside, 2, words);
    const bool is_map =
        reply && reply->type == REDIS_REPLY_ARRAY && reply->elements;
    if (!reply) {
        snprintf(r->why, sizeof r->why, "%s:%d: %s", node->host, node->port,
                 lane_error(node->aside));
        lane_close(&node->aside);
    } else if (is_map) {
        char reached[sizeof node->host]; /* the array of nodes may grow */
        memcpy(reached, node->host, sizeof reached);
        take_slots(r, reply, reached);
    } else if (is_error(reply)) {
        router_explain(r, "CLUSTER SLOTS", reply->str);
    }
    freeReplyObject(reply);
    return is_map;
}

bool learn_slots(struct router *r)
{
    const size_t n = r->nnodes, first = r->nlearned++ % n;
    for (int down = 0; down <= 1; down++)
        for (size_t i = 0; i < n; i++) {
            struct redis_node *const node = &r->nodes[(first + i) % n];
            if (node->is_down == (down == 1) && learn_from(r, node))
                return true;
        }
    return false;
}

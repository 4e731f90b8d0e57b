/*
 * lane.h - what the router is made of: a connection, and the map of slots
 */
#ifndef BLY_REDIS_LANE_H
#define BLY_REDIS_LANE_H

#include <string.h>

#include "apps/redis/redis_router.h"

/* Connect and log in. NULL, and why in words. */
redisContext *lane_open(const struct redis_login *login, const char *host,
                        int port, char *why, size_t nwhy);
void lane_close(redisContext **lane);

/* All that c holds to the server; false: c->err. */
bool lane_flush(redisContext *c);

/* A command on a connection with nothing else under way; NULL: c->err. */
redisReply *lane_ask(redisContext *c, const struct wire_command *w);
redisReply *lane_words(redisContext *c, int n, const char **words);

/* The reason why a connection failed. */
const char *lane_error(const redisContext *c);

/* What an error that the server gave for a key means, for people. */
void lane_explain(const struct redis_login *login, const char *key,
                  const char *text, char *why, size_t nwhy);

/* --------------------------------------------------- in redis_slots.c */

/* The place of a server, which is added if it is new; NO_NODE: no memory. */
uint16_t node_place(struct router *r, const char *host, int port);

/* Connect one of the lanes of a node, unless it is; false: r->why. */
bool node_connect(struct router *r, struct redis_node *node,
                  redisContext **lane);

/* Read the map from the first server that gives one, beginning with another one
 * each time, since one may be cut off from the others and know nothing new;
 * those that were down come last. False where none does; r->why says why the
 * last one did not. */
bool learn_slots(struct router *r);

static inline bool starts_with(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

static inline bool is_error(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR;
}

#endif

/*
 * ask_walk.h - asking on: neighbours, and those of one that is silent
 */
#ifndef BLY_NET_ASK_WALK_H
#define BLY_NET_ASK_WALK_H

#include "apps/net/ask/ask_question.h"
#include "wire/call.h"

/* A router as it is when a question comes; the walk has it to itself. */
struct ask_self {
    char name[ASK_NAME];
    unsigned n;
    struct {
        struct ask_link link;
        struct mark way;        /* of the interface towards it */
        struct ask_links known; /* whom it named as its own neighbours */
    } links[ASK_LINKS];
    uint64_t patience; /* milliseconds that a neighbour may take to say that it
                          is there */
};

/* Answer a walk: this router, if it may be on the way, and all behind it. */
void ask_walk(const struct ask_self *self, const struct ask_question *q,
              struct caller *c, struct ask_tree *out);

/* Whether this router's mark fits; false: who asks is no neighbour. */
bool ask_own(const struct ask_self *self, const struct ask_question *q,
             struct ask_node *out, const struct mark **mark, bool *fits);

/* Put a walk to a router, as part of a tree. False: no answer, c->why. */
bool ask_one(struct caller *c, const struct address *to,
             const struct ask_question *q, struct ask_tree *out, bool *busy);

#define ASK_RING 0x626c796173 /* of its frames: "blyas" */
#define ASK_MARGIN 200        /* milliseconds that an answer has to come back */

#endif

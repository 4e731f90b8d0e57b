/*
 * call.h - ask nodes and wait for the answer
 *
 * For threads and commands that have nothing else to do meanwhile. A caller
 * keeps a few connections open and has one user at a time.
 */
#ifndef BLY_WIRE_CALL_H
#define BLY_WIRE_CALL_H

#include "wire/session.h"

#define CALL_LINES 16

struct call_line {
    bool used;
    int64_t since;
    struct address to;
    struct session session;
};

struct caller {
    const struct secure_secret *secret;
    uint64_t ring, timeout; /* milliseconds for a question in all */
    uint32_t request;
    struct call_line lines[CALL_LINES];
    struct call_line *last; /* which has the answer */
    char why[SESSION_WHY];  /* of the last failure */
    bool late;              /* it was that no answer came in time */
};

/* Ask; the answer lies in memory of the caller until the next call. False: none
 * came, and c->why says why. An answer may be an error (FRAME_ERROR). */
bool call_ask(struct caller *c, const struct address *to, uint8_t type,
              struct blob *body, struct frame *answer);

/* The two halves of that, so that several can be asked at once: send a
 * question, and later take its answer, in any order. There must be fewer of
 * them than CALL_LINES, each to another address. */
bool call_send(struct caller *c, const struct address *to, uint8_t type,
               struct blob *body, uint32_t *request);
bool call_take(struct caller *c, const struct address *to, uint32_t request,
               struct frame *answer);

/* The code of an answer that is an error; its text goes to c->why. 0: none. */
enum frame_error call_error(struct caller *c, const struct frame *answer);

void call_close(struct caller *c);

#endif

/*
 * session.h - talking to one other process, and waiting for it
 *
 * Over a socket, over two pipes, or with a command. Both ends say hello
 * (secure.h), the one that asks first; then there are frames, sealed if there
 * is a secret. Each step has a time at which it has to be done, however busily
 * bytes drip. Memory grows with what comes, not with what is promised.
 *
 * One thread may send while another receives.
 */
#ifndef BLY_WIRE_SESSION_H
#define BLY_WIRE_SESSION_H

#include <sys/types.h>

#include "wire/address.h"
#include "wire/frame.h"
#include "wire/secure.h"

#define SESSION_WHY 200
#define SESSION_NEVER INT64_MAX /* there is no such time */

/* One of its two directions. */
struct session_flow {
    int fd;
    bool late;             /* the last failure: it was not done in time */
    char why[SESSION_WHY]; /* the first failure; empty: none */
    uint64_t moved;        /* bytes */
    unsigned char *frame;  /* the last one */
    unsigned char *sealed;
    size_t room, room_sealed;
};

struct session {
    const char *protocol; /* 7 bytes; NULL: that of rings */
    const struct secure_secret *secret;
    size_t most; /* bytes of a body that comes; 0: FRAME_BODY */

    struct session_flow in, out;
    pid_t child; /* the command; 0: none */
    struct secure secure;
    unsigned char stranger[8]; /* what came instead of a hello */
    bool ended;                /* the other end closed it between two frames */
    bool trusted;              /* a sealed frame was opened */
};

/* Zero it, but for the first three; then one of these. False: session_why(). */
bool session_connect(struct session *s, const struct address *to,
                     int64_t until);
bool session_spawn(struct session *s, const char *command);
void session_over(struct session *s, int in, int out); /* what is there */

/* Hellos: `server` is where one end listens, if keys shall depend on that. */
bool session_greet(struct session *s, bool asks, const struct address *server,
                   int64_t until);

/* Send a frame: whose body is anywhere, or that was made already. */
bool session_send(struct session *s, const struct frame *f, int64_t until);
bool session_put(struct session *s, const unsigned char *frame, size_t n,
                 int64_t until);

/* The next frame, which lies in memory of the session until the one after it.
 */
bool session_receive(struct session *s, struct frame *f, int64_t until);

/* Send nothing more: the other end may see an end. */
void session_done(struct session *s);

const char *session_why(const struct session *s);

/* Give back memory that long frames took. */
void session_trim(struct session *s);

/* Close it, and wait for the command: its status as waitpid() has it. */
int session_close(struct session *s);

/* When something that begins now has to be done. */
int64_t session_within(int64_t ms);

#endif

/*
 * sync_line.h - messages of a sync over a session
 *
 * A message is a frame: its type, and its body. It has to come, or to go,
 * within the time that it may take.
 */
#ifndef BLY_SYNC_LINE_H
#define BLY_SYNC_LINE_H

#include "apps/sync/client.h"
#include "wire/session.h"

#define SYNC_PROTOCOL "blysync"

struct sync_session {
    struct session session;
    int64_t timeout; /* milliseconds of a message; negative: no end */
};

/* timeout: seconds, 0: as long as it takes. */
void sync_begin(struct sync_session *s, const struct secure_secret *secret,
                uint64_t timeout);
int64_t sync_until(const struct sync_session *s);

/* Reach HOST:PORT, or run a command, and say hello. False with the reason
 * printed. */
bool sync_reach(struct sync_session *s, const char *where, const char *command);

/* A whole message, type and body. False with why. */
bool sync_send(struct sync_session *s, const struct block *message,
               char why[SYNC_WHY]);
bool sync_receive(struct sync_session *s, struct block *message,
                  char why[SYNC_WHY]);
void sync_why(const struct sync_session *s, char why[SYNC_WHY]);

/* A client's line: what hellos took is counted. */
struct sync_line sync_line_over(struct sync_session *s);

#endif

/*
 * sync_line.h - messages of a sync over sockets and pipes
 */
#ifndef BLY_SYNC_LINE_H
#define BLY_SYNC_LINE_H

#include <sys/types.h>

#include "apps/sync/client.h"

struct wire_line {
    int in, out; /* may be one */
    pid_t child; /* of a pipe; 0: none */
    int timeout; /* milliseconds that a message may take; negative: no end */
    size_t most; /* bytes of one that comes; 0: SYNC_MESSAGE */
    bool ended;  /* the other side closed it between two messages */
};

/* A whole message, type and body. False with why; w->ended is no failure. */
bool wire_send(struct wire_line *w, const struct block *message,
               char why[SYNC_WHY]);
bool wire_receive(struct wire_line *w, struct block *message,
                  char why[SYNC_WHY]);

/* For struct sync_line. */
bool wire_exchange(void *ctx, const struct block *question,
                   struct block *answer, char why[SYNC_WHY]);

/* To HOST:PORT; to a command, run by sh. False with the reason printed. */
bool wire_connect(struct wire_line *w, const char *where);
bool wire_spawn(struct wire_line *w, const char *command);

/* Close it, and wait for the command: its status as waitpid() has it. */
int wire_close(struct wire_line *w);

#endif

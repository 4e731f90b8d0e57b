/*
 * names_client.h - reading and writing names from outside
 */
#ifndef BLY_NAMES_CLIENT_H
#define BLY_NAMES_CLIENT_H

#include "chord/chord_client.h"
#include "apps/node/roster.h"

/* What a name stands for now, a tombstone being one. STORE_NONE: nothing, and
 * all who keep it have said so; STORE_BROKEN: it cannot be said, c->call.why.
 * The bytes are the caller's to free; NULL: not wanted. */
enum store_result client_read_name(struct chord_client *c,
                                   const unsigned char *digest,
                                   struct stored *r, unsigned char **bytes);

/* Write a name: digest, flags and nbytes of r are given, and its version is
 * chosen. STORE_OK: all who keep it have it, *copies of them. STORE_NONE, if
 * `removes`: there is no such name, or it is removed already. STORE_BROKEN:
 * c->call.why; with *unknown, it may take effect all the same. */
enum store_result client_write_name(struct chord_client *c, struct stored *r,
                                    const void *data, bool removes,
                                    unsigned *copies, bool *unknown);

/* The present roster, from any member. False: c->call.why. */
bool client_roster(struct chord_client *c, struct roster *out);

/* A page of a process's records of names, and whether it is the primary of
 * each. Negative: none came. */
int client_names(struct chord_client *c, const struct address *at,
                 const unsigned char *after, struct stored *out, bool *own);
/* A name as one process has it. */
enum frame_error client_name_at(struct chord_client *c,
                                const struct address *at,
                                const unsigned char *digest, struct stored *r,
                                unsigned char **bytes);

#endif

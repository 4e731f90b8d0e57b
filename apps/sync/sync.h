/*
 * sync.h - what two machines do not share, brought from one to the other
 */
#ifndef BLY_SYNC_H
#define BLY_SYNC_H

#include "report/fields.h"
#include "report/words.h"

struct sync_args {
    unsigned method;      /* enum sync_method */
    const char *listen;   /* of serve; NULL: SYNC_LISTEN */
    const char *rsh;      /* a command that runs another on HOST */
    const char *pipe;     /* a command that is the other side */
    const char *remote;   /* what bloomery is called on HOST */
    const char *output;   /* where missing lines go; NULL: into the list */
    const char *key_file; /* NULL: no secret */
    bool objects, nul, dry_run, deletes, writes, standard, json;
    uint64_t timeout, connections, threads;
};

#define SYNC_LISTEN "127.0.0.1:3130"

/* Verbs: an exit status. */
typedef int sync_verb(const struct sync_args *args, struct list *operands);
sync_verb sync_local, sync_pull, sync_push, sync_both, sync_serve;

/* What is served where. */
struct serving_at {
    const char *path, *address;
    uint64_t port;
};

extern const struct field sync_fields[];
extern const struct field sync_serve_fields[];

#endif

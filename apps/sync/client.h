/*
 * client.h - the side of a sync that asks
 */
#ifndef BLY_SYNC_CLIENT_H
#define BLY_SYNC_CLIENT_H

#include "apps/sync/messages.h"
#include "apps/sync/set.h"

/* How a question gets its answer: over a socket, a pipe, or by a call. Both are
 * type and body. False with the reason in why. */
struct sync_line {
    bool (*exchange)(void *ctx, const struct block *question,
                     struct block *answer, char why[SYNC_WHY]);
    void *ctx;
    unsigned sealing; /* bytes that it adds to a message */
    uint64_t sent, received, rounds;
};

enum sync_method {
    SYNC_CHOOSE,
    SYNC_BLOOM,
    SYNC_TREE,
    SYNC_IBLT,
    SYNC_RATELESS,
    SYNC_EXACT
};
extern const char *const sync_methods[]; /* by number; the last one is NULL */

/* What became of it, for the report. */
struct sync_report {
    const char *path, *peer, *verb, *form, *method;
    bool dry_run, complete, same;
    uint64_t here, there;           /* elements */
    uint64_t only_here, only_there; /* of them */
    uint64_t changed;               /* files that both have */
    uint64_t estimate;              /* of differences, where it was asked */
    uint64_t symbols;               /* and cells */
    uint64_t taken, given, removed, refused;
    uint64_t taken_bytes, given_bytes; /* contents of lines and files */
    uint64_t sent, received, rounds;
    uint64_t compared; /* bytes both ways until the differences were known */
    uint64_t plain;    /* bytes of the plain list */
    uint64_t rsync;    /* about what rsync sends; 0: it has no lists */
    double saved;      /* share of it; NAN: none */
    double seconds;
};

struct sync_client {
    struct sync_set *set;
    struct sync_line line;
    enum sync_method method;
    bool take, give, removes, dry_run;
    bool changed;       /* records say when a file's rights changed */
    bool shows;         /* prints what differs */
    bool bare;          /* and nothing in front of it */
    const char *output; /* lines that are taken go there; NULL: to the list */

    struct sync_report report;
    uint64_t *mine, *theirs; /* elements, sorted */
    size_t nmine, ntheirs;
    uint64_t there_bytes;
    struct block question, answer;
    char why[SYNC_WHY];
};

/* Say hello: how much the other side has is in the report. */
bool client_hello(struct sync_client *c);

/* Bytes that come in parts, by questions of one type that begin with nhow bytes
 * of how. More than `most` are refused. */
bool client_parts(struct sync_client *c, enum sync_type type, const void *how,
                  size_t nhow, uint64_t most, struct block *to);

/* Send an outline; *nlacking: how many elements there it lacks. */
bool client_outline(struct sync_client *c, const void *bytes, size_t nbytes,
                    unsigned correction, uint64_t *nlacking);

/* Elements that come by questions of one type, `total` of them, sorted. */
bool client_elements(struct sync_client *c, enum sync_type type, uint64_t total,
                     uint64_t **to, size_t *n);

/* Show the lines of these elements. */
bool client_lines(struct sync_client *c, uint64_t *elements, size_t n);

/* Say hello and find the differences. False with c->why. */
bool client_compare(struct sync_client *c);

/* Bring lines and files where they are missing, or show them. False likewise.
 */
bool client_move(struct sync_client *c);
void sync_client_free(struct sync_client *c);

/* For the two: begin a question, get its answer to read from. */
void client_begin(struct sync_client *c, enum sync_type type);
bool client_ask(struct sync_client *c, struct reading *answer);
__attribute__((format(printf, 2, 3))) bool client_fail(struct sync_client *c,
                                                       const char *format, ...);

#endif

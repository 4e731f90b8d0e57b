/*
 * sync_server.h - the side of a sync that answers
 *
 * A message comes in, a message goes out: no sockets, no waiting.
 */
#ifndef BLY_SYNC_SERVER_H
#define BLY_SYNC_SERVER_H

#include "apps/sync/messages.h"
#include "apps/sync/set.h"

struct sync_server {
    struct sync_set *set;
    bool writes; /* takes lines and files */
    bool reads;  /* reads its set when a greeting was in order, not before */

    /* Its own; zero at the beginning. */
    bool greeted;
    uint64_t wishes;
    uint64_t most_symbols; /* that make sense for two such sets */
    uint64_t most_summary; /* and bytes of an outline */
    bly_coded *table;
    uint64_t table_cells;
    unsigned table_hashes;
    struct block bytes; /* of an outline, or of all elements */
    unsigned bytes_are; /* which, and of which bits */
    struct block summary;
    uint64_t summary_bytes;
    uint64_t *lacking, *wanted;
    size_t nlacking, nwanted, wanted_room;
    uint64_t *left; /* of isect; NULL: all elements */
    size_t nleft;
    uint64_t sift_bits;
    struct block lines; /* of what was wanted: varint and bytes */
    size_t nlines;
    bool lines_ready;
    uint64_t lines_at, lines_place; /* where the last answer ended */
    struct block taken;             /* lines that were PUT, or a file's */
    uint64_t *removed;
    size_t nremoved;
    struct incoming *incoming;
    uint64_t nkept, nrefused;
    char refusal[SYNC_WHY];
};

/* Answer a message (type and body), n bytes of it: the answer (likewise) goes
 * to out. False: there is nothing more to say to this peer. */
bool server_answer(struct sync_server *s, const unsigned char *message,
                   size_t n, struct block *out);
void server_free(struct sync_server *s);

#endif

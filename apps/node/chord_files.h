/*
 * chord_files.h - files on a ring: put, get, rm, ls; and what a node says of
 * itself
 */
#ifndef BLY_CHORD_FILES_H
#define BLY_CHORD_FILES_H

#include "chord/chord.h"
#include "report/fields.h"
#include "report/words.h"
#include "wire/address.h"

struct node_args {
    const char *listen, *name, *key, *output, *as, *absence;
    struct list join, at;
    uint64_t r, copies, least, vnodes, period, exchange, patience, evict,
        reclaim, wait;
    bool json;
};

int ring_node_run(const struct node_args *args, const struct list *operands);
int ring_node_put(const struct node_args *args, const struct list *operands);
int ring_node_get(const struct node_args *args, const struct list *operands);
int ring_node_rm(const struct node_args *args, const struct list *operands);
int ring_node_ls(const struct node_args *args, const struct list *operands);
int ring_node_status(const struct node_args *args, const struct list *operands);
int ring_node_leave(const struct node_args *args, const struct list *operands);
int ring_node_key(const struct node_args *args, const struct list *operands);

/* Of put and ls: a file. */
struct node_file {
    const char *file;
    uint64_t bytes, blocks, copies;
};

/* What a node says of itself, and of each of its virtual nodes. */
struct status_member {
    char id[20], pred[20];
    const char *phase;
    bool uncertain;
    const char *succ[CHORD_MOST_SUCC + 1];
    char texts[CHORD_MOST_SUCC][ADDRESS_TEXT];
    uint64_t fingers; /* different ones */
};

struct node_status {
    char address[ADDRESS_TEXT];
    uint64_t records, bytes, files, tombstones, exchanges, fetched, sent,
        dropped, connections, asked, silent, refused, bytes_in, bytes_out, bad,
        epoch, voters, voter, ready, damaged, scrubbed, reclaimed;
    struct status_member *members;
    size_t nmembers;
};

extern const struct field node_file_fields[], node_status_fields[];

/* All members of a live ring, going up from one: for a picture. The arrays are
 * the caller's to free; NULL, with the reason printed. */
struct ring_members {
    uint64_t *ids;
    size_t n;
};
bool ring_live(const struct node_args *args, struct ring_members *out);

#endif

/*
 * sorter.h - keys in order, however many
 */
#ifndef BLY_SORTER_H
#define BLY_SORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key, and the document or whatever it is of. */
struct dedup_key {
    uint64_t key, doc;
};

/* Sort n keys, and by document where they agree; temp has room for n too.
 * hashes: the high bits of keys tell nearly all different ones apart, and equal
 * ones stand in the order of their documents; sorting is then faster. */
void dedup_sort(struct dedup_key *keys, struct dedup_key *temp, size_t n,
                bool hashes);

/* Keys of several sorters are brought together, so that every thread may have
 * one of its own. What does not fit `memory` bytes goes, sorted, to a file
 * without a name in folder. */
struct sorter {
    const char *folder;
    uint64_t memory;
    bool hashes;
    struct dedup_key *keys, *temp;
    size_t n, room;
    int fd; /* of the file; 0: none */
    struct sorted_run {
        uint64_t at, n; /* in keys */
    } * runs;
    size_t nruns, runs_room;
    uint64_t end; /* of the file, in keys */
};

/* False with errno. */
bool sorter_add(struct sorter *s, uint64_t key, uint64_t doc);

/* All keys of n sorters in order, some at a time; those with one key may come
 * in several calls. Afterwards the sorters are empty. False with errno, or as
 * soon as take returns false; *told is true then. */
typedef bool sorter_fn(void *ctx, const struct dedup_key *keys, size_t n);
bool sorter_each(struct sorter *s, size_t n, sorter_fn *take, void *ctx,
                 bool *told);

void sorter_free(struct sorter *s);

#endif

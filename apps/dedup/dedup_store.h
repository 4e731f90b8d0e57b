/*
 * dedup_store.h - arrays that may be larger than memory
 *
 * A store owns its arrays. Without a folder they are realloc()'s. One with a
 * folder keeps every array in a file there that has no name, mapped, and takes
 * care that of all of them together no more than `limit` bytes are in the
 * process's memory: what is beyond that the system keeps, in memory that is
 * free or on disk.
 */
#ifndef BLY_STORE_H
#define BLY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_ARRAYS 64

struct dedup_store {
    const char *folder; /* NULL: memory */
    uint64_t limit;     /* bytes of files that may be resident */
    struct store_array {
        void *at; /* NULL: free */
        size_t nbytes;
        int fd; /* 0: in memory */
    } arrays[STORE_ARRAYS];
    int statm; /* tells what is resident; 0: not open yet */
    unsigned uses;
};

/* Room for n things of a size at *p, which is NULL or from this store. What is
 * new in a file is zeros, in memory it is anything. False with errno, and all
 * is as it was. */
#define STORE(s, p, n) store_resize(s, (void **)&(p), n, sizeof *(p))
bool store_resize(struct dedup_store *s, void **p, uint64_t n, size_t size);

/* The same for a new array, whose bytes are zeros. */
#define STORE_ZEROS(s, p, n) store_zeros(s, (void **)&(p), n, sizeof *(p))
bool store_zeros(struct dedup_store *s, void **p, uint64_t n, size_t size);

/* Give one array back; store_free() does it for all. NULL is allowed. */
void store_release(struct dedup_store *s, void *p);

/* Between uses of arrays: keep to the limit. Cheap, so call it often: once for
 * every few places that are far apart. No other thread may change an array's
 * size meanwhile; using them is fine. */
void store_trim(struct dedup_store *s);

/* The same after a use of many places. */
void store_trim_now(struct dedup_store *s);

void store_free(struct dedup_store *s);

#endif

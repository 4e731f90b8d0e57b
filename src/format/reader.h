/*
 * reader.h - the bytes of a .bly file to a filter, from any source
 */
#ifndef BLY_READER_H
#define BLY_READER_H

#include "kinds/kind.h"

#define BLY_SIZE_UNKNOWN UINT64_MAX

/* Where the bytes come from: an array, or else get(). */
typedef struct bly_source {
    const unsigned char *bytes;
    bly_get *get;
    void *ctx;
    uint64_t nbytes;    /* BLY_SIZE_UNKNOWN: until get() has no more */
    bool roomy;         /* the filter may become one of any kind: what is in a
                           file is updated */
    unsigned char *map; /* not NULL: the array lives as long as the filter,
                           which uses the payloads where they lie */
} bly_source;

/* Read one filter, which must be all there is in src. how may be NULL. */
bly_status bly_source_read(const bly_source *src, const bly_access *how,
                           bly_filter **out);

/* Read bytes by `take`, after checking the arguments of bly_load() and related
 * functions; size is that of the caller's *how. */
typedef bly_status bly_source_take(const bly_source *src, const bly_access *how,
                                   void *out);
bly_status bly_load_with(bly_source_take *take, bly_bytes bytes,
                         const bly_access *how, void *out, size_t size);

/* The kind's own check of a filter that came from outside and is otherwise
 * complete, its layers already checked. It checks the state, and the contents
 * if these are to be read. */
bly_status bly_judge(const bly_filter *f, bool contents);

#endif

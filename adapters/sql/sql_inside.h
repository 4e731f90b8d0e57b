/*
 * sql_inside.h - what the files of this folder have in common
 */
#ifndef BLY_ADAPTERS_SQL_INSIDE_H
#define BLY_ADAPTERS_SQL_INSIDE_H

#include <stdlib.h>

#include "adapters/sql/sql.h"

/* What was wrong, with its status kept for sql_status(): in the adapter's own
 * words, and without memory. sql_told() is for the library's. */
__attribute__((format(printf, 1, 2))) const char *sql_wrong(const char *format,
                                                            ...);
const char *sql_no_memory(void);
const char *sql_failed(int error, const char *path); /* error: of errno */

/* A key as bly_hash_as() and its kin take it. */
static inline const void *sql_key_at(const struct sql_key *key)
{
    return key->type == BLY_KEYS_INT64 || key->type == BLY_KEYS_UINT64
               ? (const void *)&key->integer
               : (const void *)&key->bytes;
}

/* Memory of a source; NULL is malloc(). */
static inline void *sql_alloc(const bly_mem *mem, size_t nbytes)
{
    return mem ? mem->alloc(mem->ctx, nbytes) : malloc(nbytes);
}

static inline void sql_release(const bly_mem *mem, void *at, size_t nbytes)
{
    if (!mem)
        free(at);
    else if (at)
        mem->release(mem->ctx, at, nbytes);
}

const char *sql_info_sketch(const bly_stored *s, char **out);

#endif

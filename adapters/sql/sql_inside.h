/*
 * sql_inside.h - what the files of this folder have in common
 */
#ifndef BLY_ADAPTERS_SQL_INSIDE_H
#define BLY_ADAPTERS_SQL_INSIDE_H

#include "adapters/sql/sql.h"

/* What was wrong, with its status kept for sql_status(): in the adapter's own
 * words, and without memory. sql_told() is for the library's. */
__attribute__((format(printf, 1, 2))) const char *sql_wrong(const char *format,
                                                            ...);
const char *sql_no_memory(void);

/* A key as bly_hash_as() and its kin take it. */
static inline const void *sql_key_at(const struct sql_key *key)
{
    return key->type == BLY_KEYS_INT64 ? (const void *)&key->integer
                                       : (const void *)&key->bytes;
}

const char *sql_info_sketch(const bly_stored *s, char **out);

#endif

/*
 * pg_bloomery.h - the parts of the extension for PostgreSQL
 *
 * A value of type bloomery is a varlena whose bytes are those of a .bly file.
 *
 * PostgreSQL's errors are jumps, which must not pass frames of the library. So
 * its memory source returns NULL where palloc() would jump, also while a query
 * is being cancelled, and what the library or adapters/sql says to that becomes
 * an error in pgb_check(), outside. All memory is in contexts: those whose
 * owner was jumped over are released with them.
 */
#ifndef BLY_POSTGRESQL_H
#define BLY_POSTGRESQL_H

#include <postgres.h>
#include <fmgr.h>
#include <utils/memutils.h>

#include "adapters/sql/sql.h"

/* Bytes that a value can have. */
#define PGB_MOST (MaxAllocSize - VARHDRSZ)

/* The library's memory, in a context. */
bly_mem pgb_memory(MemoryContext where);

/* An error, unless `bad` is NULL; or the cancellation that was behind it. */
void pgb_check(const char *bad);

/* Is a cancellation waiting to be served? */
bool pgb_cancelled(void);

/* What is to be answered after a wait of ms for a lock of a file. */
bool pgb_wait(void *ctx, const char *path, uint64_t ms);

/* The bytes of a varlena that is not toasted. */
bly_bytes pgb_bytes(const struct varlena *v);

/* An error if argument i is text that the server compares otherwise than by its
 * bytes: the filter would say no to what is equal. For the first call of a call
 * site, or of a group. */
void pgb_check_equality(FunctionCallInfo fcinfo, int i, bly_key_type type);

/* Argument i as a key. */
struct sql_key pgb_key(FunctionCallInfo fcinfo, int i, bly_key_type type);

/* A filter or a sketch out of a varlena, and the other way round. */
struct sql_value pgb_load(const struct varlena *v, MemoryContext where);
Datum pgb_value(const struct sql_value *v);

/* JSON that malloc() gave, which is freed; bad as from whatever made it. */
Datum pgb_json(const char *bad, char *json);

/* Past bigint's end there is nothing larger. */
Datum pgb_number(uint64_t x);

/* A text argument, or NULL if it is missing or SQL's NULL. */
char *pgb_text(FunctionCallInfo fcinfo, int i);

/* SQL has a function of its own for each type of key: NAME_text, NAME_bytea
 * and NAME_int8, which call work(fcinfo, type). */
#define PGB_OF_KEYS(work, name)                     \
    PGB_OF_KEY(work, name##_text, BLY_KEYS_TEXT);   \
    PGB_OF_KEY(work, name##_bytea, BLY_KEYS_BYTES); \
    PGB_OF_KEY(work, name##_int8, BLY_KEYS_INT64)
#define PGB_OF_KEY(work, name, type) \
    PG_FUNCTION_INFO_V1(name);       \
    Datum name(PG_FUNCTION_ARGS)     \
    {                                \
        return work(fcinfo, type);   \
    }                                \
    struct sql_key /* for the semicolon */

#endif

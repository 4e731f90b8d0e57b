/*
 * duck_rows.c - columns of rows as keys, and results
 *
 * DuckDB calls a function with some 2,000 rows at a time. Keys that lie there
 * as the library takes them, integers of 64 bits without NULLs, are taken where
 * they are; all others are brought into an array.
 */
#include "adapters/duckdb/duck_bloomery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int type_of(duck_vector v)
{
    duck_type type = duck.vector_get_column_type(v);
    const int id = duck.get_type_id(type);
    duck.destroy_logical_type(&type);
    return id;
}

struct column column_known(duck_chunk chunk, uint64_t i, int *type)
{
    const duck_vector v = duck.data_chunk_get_vector(chunk, i);
    if (!*type)
        *type = type_of(v);
    return (struct column){ .type = *type,
                            .data = duck.vector_get_data(v),
                            .valid = duck.vector_get_validity(v) };
}

struct column column_of(duck_chunk chunk, uint64_t i)
{
    int type = 0;
    return column_known(chunk, i, &type);
}

static bool is_text(int type)
{
    return type == DUCK_VARCHAR || type == DUCK_BLOB;
}

/* Mostly it is one for all of them: then each row is as the one before. */
size_t column_run(const struct column *c, size_t from, size_t nrows)
{
    const union duck_string *const at = c->data;
    const bool null = column_is_null(c, from);
    const size_t rest = nrows - from - 1;
    size_t to = from + 1;
    if (!is_text(c->type))
        return c->type == DUCK_NULL ? rest + 1 : 1;
    if (!c->valid && memcmp(at + from, at + to, rest * sizeof *at) == 0)
        return rest + 1;
    while (to < nrows && column_is_null(c, to) == null &&
           (null || memcmp(at + from, at + to, sizeof *at) == 0))
        to++;
    return to - from;
}

/* -------------------------------------------------------------------- keys */

static const char *no_key(int type)
{
    return type == DUCK_FLOAT || type == DUCK_DOUBLE || type == DUCK_DECIMAL
               ? "a real number has no hash; CAST it to BIGINT or VARCHAR"
               : "a value of this type has no hash; CAST it to VARCHAR, BIGINT "
                 "or BLOB";
}

/* The type that keys of a column have; UNKNOWN: none. */
static bly_key_type key_type(int type)
{
    switch (type) {
    case DUCK_TINYINT:
    case DUCK_SMALLINT:
    case DUCK_INTEGER:
    case DUCK_BIGINT:
    case DUCK_UTINYINT:
    case DUCK_USMALLINT:
    case DUCK_UINTEGER:
        return BLY_KEYS_INT64;
    case DUCK_UBIGINT:
        return BLY_KEYS_UINT64;
    case DUCK_VARCHAR:
        return BLY_KEYS_TEXT;
    case DUCK_BLOB:
        return BLY_KEYS_BYTES;
    default:
        return BLY_KEYS_UNKNOWN;
    }
}

static int64_t integer_at(const struct column *c, size_t row)
{
    switch (c->type) {
    case DUCK_TINYINT:
        return ((const int8_t *)c->data)[row];
    case DUCK_SMALLINT:
        return ((const int16_t *)c->data)[row];
    case DUCK_INTEGER:
        return ((const int32_t *)c->data)[row];
    case DUCK_UTINYINT:
        return ((const uint8_t *)c->data)[row];
    case DUCK_USMALLINT:
        return ((const uint16_t *)c->data)[row];
    case DUCK_UINTEGER:
        return ((const uint32_t *)c->data)[row];
    default:
        return ((const int64_t *)c->data)[row];
    }
}

const char *keys_of(const struct column *c, size_t from, size_t nrows,
                    struct keys *out)
{
    size_t n = 0;
    out->type = key_type(c->type);
    out->n = 0;
    out->nrows = nrows = nrows < KEYS_MOST ? nrows : KEYS_MOST;
    out->rows = NULL;
    if (c->type == DUCK_NULL) {
        out->rows = out->places;
        return NULL;
    }
    if (out->type == BLY_KEYS_UNKNOWN)
        return no_key(c->type);
    if (!c->valid && (c->type == DUCK_BIGINT || c->type == DUCK_UBIGINT)) {
        out->at = (const int64_t *)c->data + from;
        out->n = nrows;
        return NULL;
    }
    for (size_t i = 0; i < nrows; i++) {
        out->places[n] = (uint16_t)i;
        n += !column_is_null(c, from + i);
    }
    if (n < nrows)
        out->rows = out->places;
    out->n = n;
    out->at = &out->room;
    for (size_t i = 0; i < n; i++)
        if (is_text(c->type))
            out->room.bytes[i] = column_bytes(c, from + out->places[i]);
        else
            out->room.ints[i] = integer_at(c, from + out->places[i]);
    return NULL;
}

const char *key_of_row(const struct column *c, size_t row, struct sql_key *key)
{
    key->type = key_type(c->type);
    if (key->type == BLY_KEYS_UNKNOWN)
        return no_key(c->type);
    if (is_text(c->type))
        key->bytes = column_bytes(c, row);
    else
        key->integer = integer_at(c, row);
    return NULL;
}

const char *text_of_row(const struct column *c, size_t row, char **out)
{
    *out = NULL;
    if (column_is_null(c, row))
        return NULL;
    const bly_bytes b = column_bytes(c, row);
    if (memchr(b.ptr, 0, b.len))
        return "a path or an option with a NUL in it";
    *out = malloc(b.len + 1);
    if (!*out)
        return "out of memory";
    memcpy(*out, b.ptr, b.len);
    (*out)[b.len] = '\0';
    return NULL;
}

/* ----------------------------------------------------------------- results */

void result_null(duck_vector result, size_t row)
{
    duck.vector_ensure_validity_writable(result);
    duck.vector_get_validity(result)[row / 64] &= ~(UINT64_C(1) << row % 64);
}

const char *result_value(duck_vector result, size_t row, struct sql_value *v,
                         bool last)
{
    void *bytes;
    size_t nbytes;
    if (sql_value_bytes(v) > DUCK_MOST)
        return sql_too_large(sql_value_bytes(v));
    const char *const bad = last ? sql_value_turn(v, &bytes, &nbytes)
                                 : sql_value_copy(v, &bytes, &nbytes);
    if (!bad)
        duck.vector_assign_string_element_len(result, row, bytes, nbytes);
    free(bytes);
    return bad;
}

const char *result_json(duck_vector result, size_t row, const char *bad,
                        char *json)
{
    if (!bad)
        duck.vector_assign_string_element_len(result, row, json, strlen(json));
    free(json);
    return bad;
}

void say_wrong(duck_info info, void (*set)(duck_info, const char *),
               const char *bad)
{
    char text[400];
    snprintf(text, sizeof text, "bloomery: %s", bad);
    set(info, text);
}

/*
 * duck_ask.c - functions of rows: bly_has() and the others that ask
 *
 * A filter is mostly the same in all rows of a chunk. bly_has() then asks it
 * for all of its keys at once.
 */
#include "adapters/duckdb/duck_bloomery.h"

#include <stdlib.h>
#include <string.h>

/* The filter of a row that is not NULL. */
struct asked {
    const bly_filter *f;
    struct held *held; /* if it is a value */
};

static struct shared *shared_of(duck_info info)
{
    return duck.scalar_function_get_extra_info(info);
}

static const char *asked_of(duck_info info, const struct column *c, size_t row,
                            struct asked *out)
{
    *out = (struct asked){ 0 };
    if (c->type == DUCK_VARCHAR)
        return site_file(info, c, row, &out->f);
    if (c->type != DUCK_BLOB)
        return "a filter is a BLOB, or text that is the path of a file";
    const char *const bad =
        held_of(shared_of(info), column_bytes(c, row), &out->held);
    if (!bad)
        out->f = out->held->value.filter;
    return bad;
}

static void asked_end(duck_info info, struct asked *a)
{
    if (a->held)
        held_end(shared_of(info), a->held);
}

static void rows_null(duck_vector result, size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++)
        result_null(result, i);
}

/* --------------------------------------------------------------------- has */

/* Each bit as a byte of its own, the lowest first; eight of them are one
 * store. */
static void spread(uint64_t bits, unsigned char *to, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint64_t byte = bits >> i & 0xff;
        const uint64_t low = (byte & 0x7f) * UINT64_C(0x0002040810204081) &
                             UINT64_C(0x0101010101010101);
        const uint64_t eight = low | byte >> 7 << 56;
        to[i] = (unsigned char)eight;
        to[i + 1] = (unsigned char)(eight >> 8);
        to[i + 2] = (unsigned char)(eight >> 16);
        to[i + 3] = (unsigned char)(eight >> 24);
        to[i + 4] = (unsigned char)(eight >> 32);
        to[i + 5] = (unsigned char)(eight >> 40);
        to[i + 6] = (unsigned char)(eight >> 48);
        to[i + 7] = (unsigned char)(eight >> 56);
    }
    for (; i < n; i++)
        to[i] = bits >> i & 1;
}

/* Rows that ask one filter. */
static const char *has_rows(const bly_filter *f, const struct column *x,
                            size_t from, size_t n, duck_vector result)
{
    unsigned char *const answers =
        (unsigned char *)duck.vector_get_data(result) + from;
    uint64_t maybe[BLY_BITMAP_WORDS(KEYS_MOST)];
    struct keys keys;
    for (size_t done = 0; done < n; done += keys.nrows) {
        const char *bad = keys_of(x, from + done, n - done, &keys);
        if (!bad && keys.n)
            bad = sql_has_many(f, keys.type, keys.at, keys.n, maybe);
        if (bad)
            return bad;
        if (!keys.rows) {
            for (size_t i = 0; i < keys.n; i += 64)
                spread(maybe[i / 64], answers + done + i,
                       keys.n - i < 64 ? keys.n - i : 64);
            continue;
        }
        rows_null(result, from + done, keys.nrows);
        uint64_t *const valid = duck.vector_get_validity(result);
        for (size_t i = 0; i < keys.n; i++) {
            const size_t row = from + done + keys.rows[i];
            answers[done + keys.rows[i]] = maybe[i / 64] >> i % 64 & 1;
            valid[row / 64] |= UINT64_C(1) << row % 64;
        }
    }
    return NULL;
}

static const char *has(duck_info info, duck_chunk chunk, duck_vector result)
{
    int none[2] = { 0 };
    int *const kept = site_types(info), *const types = kept ? kept : none;
    const struct column f = column_known(chunk, 0, &types[0]);
    const struct column x = column_known(chunk, 1, &types[1]);
    const size_t n = (size_t)duck.data_chunk_get_size(chunk);
    size_t run;
    for (size_t row = 0; row < n; row += run) {
        struct asked a;
        run = column_run(&f, row, n);
        if (column_is_null(&f, row)) {
            rows_null(result, row, run);
            continue;
        }
        const char *bad = asked_of(info, &f, row, &a);
        if (!bad)
            bad = has_rows(a.f, &x, row, run, result);
        asked_end(info, &a);
        if (bad)
            return bad;
    }
    return NULL;
}

/* -------------------------------------------------------------- row by row */

struct call {
    duck_info info;
    struct column arg[3];
    uint64_t nargs;
    duck_vector result;
};

/* What a row gives; *null if it is NULL. */
typedef const char *row_call(const struct call *c, size_t row, bool *null);

/* Rows with NULL in one of the first `needed` arguments are NULL. */
static const char *each_row(duck_info info, duck_chunk chunk,
                            duck_vector result, uint64_t needed, row_call *call)
{
    struct call c = { .info = info, .result = result };
    const size_t n = (size_t)duck.data_chunk_get_size(chunk);
    c.nargs = duck.data_chunk_get_column_count(chunk);
    for (uint64_t i = 0; i < c.nargs; i++)
        c.arg[i] = column_of(chunk, i);
    for (size_t row = 0; row < n; row++) {
        bool null = false;
        for (uint64_t i = 0; i < needed; i++)
            null |= column_is_null(&c.arg[i], row);
        const char *const bad = null ? NULL : call(&c, row, &null);
        if (bad)
            return bad;
        if (null)
            result_null(result, row);
    }
    return NULL;
}

/* Past the end of BIGINT there is nothing larger. */
static void result_number(const struct call *c, size_t row, uint64_t x)
{
    ((int64_t *)duck.vector_get_data(c->result))[row] =
        x > INT64_MAX ? INT64_MAX : (int64_t)x;
}

static const char *count_row(const struct call *c, size_t row, bool *null)
{
    struct asked a;
    struct sql_key key;
    uint64_t count = 0;
    (void)null;
    const char *bad = asked_of(c->info, &c->arg[0], row, &a);
    if (!bad)
        bad = key_of_row(&c->arg[1], row, &key);
    if (!bad)
        bad = sql_count(a.f, &key, &count);
    asked_end(c->info, &a);
    result_number(c, row, count);
    return bad;
}

static const char *get_row(const struct call *c, size_t row, bool *null)
{
    struct asked a;
    struct sql_key key;
    uint64_t value = 0;
    bool present = false;
    const char *bad = asked_of(c->info, &c->arg[0], row, &a);
    if (!bad)
        bad = key_of_row(&c->arg[1], row, &key);
    if (!bad)
        bad = sql_get(a.f, &key, &value, &present);
    asked_end(c->info, &a);
    *null = !present;
    result_number(c, row, value);
    return bad;
}

static const char *info_row(const struct call *c, size_t row, bool *null)
{
    char *json = NULL, *path = NULL;
    const char *bad;
    (void)null;
    if (c->arg[0].type == DUCK_BLOB) {
        const bly_bytes b = column_bytes(&c->arg[0], row);
        bad = sql_info(b.ptr, b.len, DUCK_LIMITS, &json);
    } else if (c->arg[0].type == DUCK_VARCHAR) {
        bad = text_of_row(&c->arg[0], row, &path);
        if (!bad)
            bad = site_may_open(c->info, path);
        if (!bad)
            bad = sql_info_file(path, DUCK_LIMITS, &json);
    } else {
        bad = "bly_info() takes a BLOB, or the path of a file";
    }
    free(path);
    return result_json(c->result, row, bad, json);
}

static const char *plan_row(const struct call *c, size_t row, bool *null)
{
    char *json = NULL, *kind = NULL;
    const char *bad = NULL;
    const double *fpr = NULL;
    (void)null;
    const int64_t items = ((const int64_t *)c->arg[0].data)[row];
    if (c->nargs > 1 && !column_is_null(&c->arg[1], row))
        fpr = (const double *)c->arg[1].data + row;
    if (c->nargs > 2)
        bad = text_of_row(&c->arg[2], row, &kind);
    if (!bad)
        bad = items < 0 ? "a plan for fewer than no keys"
                        : sql_plan((uint64_t)items, fpr, kind, &json);
    free(kind);
    return result_json(c->result, row, bad, json);
}

static const char *likeness_row(const struct call *c, size_t row, bool *null)
{
    (void)null;
    const bly_bytes a = column_bytes(&c->arg[0], row);
    const bly_bytes b = column_bytes(&c->arg[1], row);
    double *const out = (double *)duck.vector_get_data(c->result) + row;
    return sql_likeness(a, b, DUCK_LIMITS, out);
}

static const char *load_row(const struct call *c, size_t row, bool *null)
{
    struct sql_value v = { 0 };
    char *path;
    (void)null;
    const char *bad = text_of_row(&c->arg[0], row, &path);
    if (!bad)
        bad = site_may_open(c->info, path);
    if (!bad)
        bad = sql_value_open(path, DUCK_LIMITS, &v);
    if (!bad)
        bad = result_value(c->result, row, &v, true);
    sql_value_free(&v);
    free(path);
    return bad;
}

static const char *save_row(const struct call *c, size_t row, bool *null)
{
    struct sql_value v = { 0 };
    char *path;
    (void)null;
    const bly_bytes b = column_bytes(&c->arg[0], row);
    const char *bad = text_of_row(&c->arg[1], row, &path);
    if (!bad)
        bad = site_may_open(c->info, path);
    if (!bad)
        bad = sql_value_load(b.ptr, b.len, DUCK_LIMITS, &v);
    if (!bad)
        bad = sql_value_save(&v, path, NULL);
    sql_value_free(&v);
    free(path);
    result_number(c, row, b.len);
    return bad;
}

/* ------------------------------------------------------------ registration */

static void finish_call(duck_info info, const char *bad)
{
    if (bad)
        say_wrong(info, duck.scalar_function_set_error, bad);
}

static void fn_has(duck_info info, duck_chunk chunk, duck_vector result)
{
    finish_call(info, has(info, chunk, result));
}

#define FUNCTION_OF_ROWS(name, needed)                                       \
    static void fn_##name(duck_info info, duck_chunk chunk, duck_vector out) \
    {                                                                        \
        finish_call(info, each_row(info, chunk, out, needed, name##_row));   \
    }                                                                        \
    struct asked /* for the semicolon */
FUNCTION_OF_ROWS(count, 2);
FUNCTION_OF_ROWS(get, 2);
FUNCTION_OF_ROWS(info, 1);
FUNCTION_OF_ROWS(plan, 1);
FUNCTION_OF_ROWS(likeness, 2);
FUNCTION_OF_ROWS(load, 1);
FUNCTION_OF_ROWS(save, 2);

/* Arguments as letters, most first where some may be left out: each name is
 * registered with so many arguments, and with fewer down to `least`. */
static const struct scalar {
    const char *name, *takes;
    size_t least;
    char gives;
    bool acts; /* is called whenever it is written */
    duck_call *call;
} scalars[] = {
    { "bly_has", "xx", 2, 'y', false, fn_has },
    { "bly_count", "xx", 2, 'i', false, fn_count },
    { "bly_get", "xx", 2, 'i', false, fn_get },
    { "bly_info", "x", 1, 't', false, fn_info },
    { "bly_plan", "idt", 1, 't', false, fn_plan },
    { "bly_likeness", "bb", 2, 'd', false, fn_likeness },
    { "bly_load", "t", 1, 'b', false, fn_load },
    { "bly_save", "bt", 2, 'i', true, fn_save },
};

static bool scalar_add(duck_scalars set, const struct scalar *row, size_t nargs,
                       struct shared *s)
{
    duck_scalar f = duck.create_scalar_function();
    if (!f)
        return false;
    duck.scalar_function_set_name(f, row->name);
    for (size_t i = 0; i < nargs; i++) {
        duck_type type = type_of_letter(row->takes[i]);
        duck.scalar_function_add_parameter(f, type);
        duck.destroy_logical_type(&type);
    }
    duck_type gives = type_of_letter(row->gives);
    duck.scalar_function_set_return_type(f, gives);
    duck.destroy_logical_type(&gives);
    duck.scalar_function_set_special_handling(f);
    if (row->acts)
        duck.scalar_function_set_volatile(f);
    duck.scalar_function_set_extra_info(f, shared_use(s), shared_drop);
    duck.scalar_function_set_function(f, row->call);
    if (duck_is_late)
        duck_late.scalar_function_set_init(f, site_begin);
    const bool ok = !duck.add_scalar_function_to_set(set, f);
    duck.destroy_scalar_function(&f);
    return ok;
}

bool scalars_register(duck_connection c, struct shared *s)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars && ok; i++) {
        const struct scalar *const row = &scalars[i];
        duck_scalars set = duck.create_scalar_function_set(row->name);
        for (size_t n = row->least; n <= strlen(row->takes) && ok; n++)
            ok = scalar_add(set, row, n, s);
        ok = ok && !duck.register_scalar_function_set(c, set);
        duck.destroy_scalar_function_set(&set);
    }
    return ok;
}

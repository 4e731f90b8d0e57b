/*
 * duck_agg.c - the aggregates
 *
 * A state of DuckDB's is a pointer, NULL until a row comes that counts. Each
 * thread has states of its own, which are combined in the end, in any order;
 * a window may combine one state with many others, so that none is changed by
 * being combined with another.
 *
 * bly_agg() keeps the hashes of all rows, 8 bytes each, and makes the filter in
 * the end: it is the same for any number of threads.
 */
#define _POSIX_C_SOURCE 200809L /* strdup() */
#include "adapters/duckdb/duck_bloomery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void agg_wrong(duck_info info, const char *bad)
{
    if (bad)
        say_wrong(info, duck.aggregate_function_set_error, bad);
}

static uint64_t state_size(duck_info info)
{
    (void)info;
    return sizeof(void *);
}

static void state_begin(duck_info info, void *state)
{
    (void)info;
    *(void **)state = NULL;
}

/* ----------------------------------------------------------------- filters */

struct group {
    struct sql_agg agg;
    char *kind, *options; /* as given, for the groups it is combined with */
    bool ended;
};

static void group_free(struct group *g)
{
    if (!g)
        return;
    sql_agg_free(&g->agg);
    free(g->kind);
    free(g->options);
    free(g);
}

/* kind and options are the group's from now on, also if it fails. */
static const char *group_new(char *kind, char *options, struct group **out)
{
    struct group *const g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g) {
        free(kind);
        free(options);
        return "out of memory";
    }
    g->kind = kind;
    g->options = options;
    const char *const bad = sql_spec_read(&g->agg.spec, kind, options, NULL);
    if (bad) {
        group_free(g);
        return bad;
    }
    g->agg.partial = g->agg.unordered = true;
    g->agg.most = DUCK_MOST;
    *out = g;
    return NULL;
}

static const char *group_of_row(const struct column *arg, uint64_t nargs,
                                size_t row, struct group **out)
{
    char *kind = NULL, *options = NULL;
    const char *bad = NULL;
    if (nargs > 1)
        bad = text_of_row(&arg[1], row, &kind);
    if (!bad && nargs > 2)
        bad = text_of_row(&arg[2], row, &options);
    if (bad) {
        free(kind);
        return bad;
    }
    return group_new(kind, options, out);
}

static const char *text_copy(const char *text, char **out)
{
    *out = text ? strdup(text) : NULL;
    return text && !*out ? "out of memory" : NULL;
}

static const char *group_like(const struct group *g, struct group **out)
{
    char *kind, *options = NULL;
    const char *bad = text_copy(g->kind, &kind);
    if (!bad)
        bad = text_copy(g->options, &options);
    if (bad) {
        free(kind);
        return bad;
    }
    return group_new(kind, options, out);
}

static const char *groups_update(duck_chunk chunk, void **states)
{
    struct column arg[3];
    struct keys keys;
    const uint64_t nargs = duck.data_chunk_get_column_count(chunk);
    const size_t n = (size_t)duck.data_chunk_get_size(chunk);
    for (uint64_t i = 0; i < nargs; i++)
        arg[i] = column_of(chunk, i);
    for (size_t row = 0; row < n; row += keys.nrows) {
        struct group **const g = states[row];
        size_t to = row + 1;
        while (to < n && states[to] == states[row])
            to++;
        const char *bad = keys_of(&arg[0], row, to - row, &keys);
        if (bad || !keys.n) {
            if (bad)
                return bad;
            continue;
        }
        if (!*g)
            bad =
                group_of_row(arg, nargs, row + (keys.rows ? *keys.rows : 0), g);
        if (!bad)
            bad = sql_agg_add_many(&(*g)->agg, keys.type, keys.at, keys.n);
        if (bad)
            return bad;
    }
    return NULL;
}

static void group_update(duck_info info, duck_chunk chunk, void **states)
{
    agg_wrong(info, groups_update(chunk, states));
}

static const char *group_take(const struct group *from, struct group **to)
{
    const char *const bad = *to ? NULL : group_like(from, to);
    return bad ? bad
               : sql_agg_take(&(*to)->agg, from->agg.spec.spec.keying.type,
                              from->agg.list, from->agg.n);
}

static void group_combine(duck_info info, void **from, void **to, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const struct group *const g = *(struct group **)from[i];
        const char *const bad = g ? group_take(g, to[i]) : NULL;
        if (bad) {
            agg_wrong(info, bad);
            return;
        }
    }
}

static const char *group_result(struct group *g, duck_vector result, size_t row)
{
    struct sql_value v = { 0 };
    if (g->ended)
        return "a group was ended twice";
    g->ended = true;
    const char *bad = sql_agg_end(&g->agg, &v.filter);
    sql_agg_free(&g->agg);
    if (!bad)
        bad = result_value(result, row, &v);
    sql_value_free(&v);
    return bad;
}

static void group_finish(duck_info info, void **states, duck_vector result,
                         uint64_t n, uint64_t offset)
{
    for (uint64_t i = 0; i < n; i++) {
        struct group *const g = *(struct group **)states[i];
        const size_t row = (size_t)(offset + i);
        const char *const bad = g ? group_result(g, result, row) : NULL;
        if (bad) {
            agg_wrong(info, bad);
            return;
        }
        if (!g)
            result_null(result, row);
    }
}

static void group_end(void **states, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct group **const g = states[i];
        group_free(*g);
        *g = NULL;
    }
}

/* ---------------------------------------------------- unions and sketches */

/* What becomes one filter or sketch, of values or keys. */
struct whole {
    struct sql_value value;
    struct sql_hll hll; /* their sketches are that of value */
    struct sql_minhash minhash;
};

static void whole_end(void **states, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct whole **const w = states[i];
        if (*w)
            sql_value_free(&(*w)->value);
        free(*w);
        *w = NULL;
    }
}

/* With the last keys in it. */
static const char *whole_ready(struct whole *w)
{
    const char *const bad = sql_hll_end(&w->hll);
    return bad ? bad : sql_minhash_end(&w->minhash);
}

static const char *value_again(const struct sql_value *v, struct sql_value *out)
{
    void *bytes;
    size_t nbytes;
    const char *bad = sql_value_copy(v, &bytes, &nbytes);
    if (!bad)
        bad = sql_value_load(bytes, nbytes, NULL, out);
    free(bytes);
    return bad;
}

/* A state like another. */
static const char *whole_copy(const struct whole *w, struct whole **out)
{
    struct whole *const made = calloc(1, sizeof *made);
    if (!made)
        return "out of memory";
    *out = made;
    const char *const bad = value_again(&w->value, &made->value);
    if (bad)
        return bad;
    if (w->hll.hll) {
        made->hll.hll = made->value.sketch.hll;
        made->hll.keys.keying = w->hll.keys.keying;
        made->hll.keys.hasher = bly_hll_hasher(made->hll.hll);
    }
    if (w->minhash.sketch) {
        made->minhash.sketch = made->value.sketch.likeness;
        made->minhash.keys.keying = w->minhash.keys.keying;
        made->minhash.keys.hasher = w->minhash.keys.hasher;
    }
    return NULL;
}

static const char *whole_take(struct whole *from, struct whole **to)
{
    const char *bad = whole_ready(from);
    if (bad)
        return bad;
    if (!*to)
        return whole_copy(from, to);
    bad = whole_ready(*to);
    return bad ? bad : sql_value_merge(&(*to)->value, &from->value);
}

static void whole_combine(duck_info info, void **from, void **to, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct whole *const w = *(struct whole **)from[i];
        const char *const bad = w ? whole_take(w, to[i]) : NULL;
        if (bad) {
            agg_wrong(info, bad);
            return;
        }
    }
}

/* What a row adds; the state is there. */
typedef const char *whole_row(struct whole *w, const struct column *arg,
                              size_t row);

static const char *wholes_update(duck_chunk chunk, void **states,
                                 whole_row *add)
{
    struct column arg[2];
    const uint64_t nargs = duck.data_chunk_get_column_count(chunk);
    const size_t n = (size_t)duck.data_chunk_get_size(chunk);
    for (uint64_t i = 0; i < nargs; i++)
        arg[i] = column_of(chunk, i);
    for (size_t row = 0; row < n; row++) {
        struct whole **const w = states[row];
        if (column_is_null(&arg[0], row))
            continue;
        if (!*w && !(*w = calloc(1, sizeof **w)))
            return "out of memory";
        const char *const bad = add(*w, arg, row);
        if (bad)
            return bad;
    }
    return NULL;
}

static const char *merge_row(struct whole *w, const struct column *arg,
                             size_t row)
{
    return sql_value_unite(&w->value, column_bytes(&arg[0], row));
}

static const char *hll_row(struct whole *w, const struct column *arg,
                           size_t row)
{
    struct sql_key key;
    const char *bad = key_of_row(&arg[0], row, &key);
    if (!bad)
        bad = sql_hll_add(&w->hll, &key);
    if (w->hll.hll)
        w->value.sketch =
            (bly_stored){ .type = BLY_STORED_HLL, .hll = w->hll.hll };
    return bad;
}

static const char *minhash_row(struct whole *w, const struct column *arg,
                               size_t row)
{
    struct sql_key key;
    const char *bad = key_of_row(&arg[0], row, &key);
    if (!bad)
        bad = sql_minhash_add(&w->minhash, &key);
    if (w->minhash.sketch)
        w->value.sketch = (bly_stored){ .type = BLY_STORED_LIKENESS,
                                        .likeness = w->minhash.sketch };
    return bad;
}

/* Keys as text: the list is for reading. */
static const char *topk_row(struct whole *w, const struct column *arg,
                            size_t row)
{
    struct sql_key key;
    char digits[24];
    const char *const bad = key_of_row(&arg[0], row, &key);
    if (bad)
        return bad;
    if (key.type == BLY_KEYS_BYTES)
        return "a list of blobs cannot be read; right: CAST them to VARCHAR";
    const int64_t k =
        column_is_null(&arg[1], row) ? 0 : ((const int64_t *)arg[1].data)[row];
    if (k < 1)
        return "a list of fewer than one key";
    if (!w->value.sketch.topk) {
        const bly_topk_spec spec = { .k = (size_t)k };
        if (bly_topk_new(&spec, &w->value.sketch.topk))
            return bly_error();
        w->value.sketch.type = BLY_STORED_TOPK;
    }
    if (key.type != BLY_KEYS_TEXT) {
        const int len = key.type == BLY_KEYS_INT64
                            ? snprintf(digits, sizeof digits, "%lld",
                                       (long long)key.integer)
                            : snprintf(digits, sizeof digits, "%llu",
                                       (unsigned long long)key.integer);
        key.bytes = (bly_bytes){ digits, (size_t)len };
    }
    return sql_told(
        bly_topk_add(w->value.sketch.topk, key.bytes.ptr, key.bytes.len, 1));
}

#define UPDATE_OF(name)                                                    \
    static void name##_update(duck_info info, duck_chunk chunk, void **at) \
    {                                                                      \
        agg_wrong(info, wholes_update(chunk, at, name##_row));             \
    }                                                                      \
    struct whole /* for the semicolon */
UPDATE_OF(merge);
UPDATE_OF(hll);
UPDATE_OF(minhash);
UPDATE_OF(topk);

static const char *whole_result(struct whole *w, duck_vector result, size_t row)
{
    const char *bad = whole_ready(w);
    char *json = NULL;
    if (bad)
        return bad;
    if (w->value.sketch.type != BLY_STORED_TOPK)
        return result_value(result, row, &w->value);
    bad = sql_topk(w->value.sketch.topk, &json);
    return result_json(result, row, bad, json);
}

static void whole_finish(duck_info info, void **states, duck_vector result,
                         uint64_t n, uint64_t offset)
{
    for (uint64_t i = 0; i < n; i++) {
        struct whole *const w = *(struct whole **)states[i];
        const size_t row = (size_t)(offset + i);
        const char *const bad = w ? whole_result(w, result, row) : NULL;
        if (bad) {
            agg_wrong(info, bad);
            return;
        }
        if (!w)
            result_null(result, row);
    }
}

/* ------------------------------------------------------------ registration */

/* As the functions of duck_ask.c. */
static const struct aggregate {
    const char *name, *takes;
    size_t least;
    char gives;
    duck_state_update *update;
    duck_state_combine *combine;
    duck_state_finish *finish;
    duck_state_end *end;
} aggregates[] = {
    { "bly_agg", "xtt", 1, 'b', group_update, group_combine, group_finish,
      group_end },
    { "bly_merge_agg", "b", 1, 'b', merge_update, whole_combine, whole_finish,
      whole_end },
    { "bly_hll_agg", "x", 1, 'b', hll_update, whole_combine, whole_finish,
      whole_end },
    { "bly_minhash_agg", "x", 1, 'b', minhash_update, whole_combine,
      whole_finish, whole_end },
    { "bly_topk_agg", "xi", 2, 't', topk_update, whole_combine, whole_finish,
      whole_end },
};

static bool aggregate_add(duck_aggregates set, const struct aggregate *row,
                          size_t nargs)
{
    duck_aggregate f = duck.create_aggregate_function();
    if (!f)
        return false;
    duck.aggregate_function_set_name(f, row->name);
    for (size_t i = 0; i < nargs; i++) {
        duck_type type = type_of_letter(row->takes[i]);
        duck.aggregate_function_add_parameter(f, type);
        duck.destroy_logical_type(&type);
    }
    duck_type gives = type_of_letter(row->gives);
    duck.aggregate_function_set_return_type(f, gives);
    duck.destroy_logical_type(&gives);
    duck.aggregate_function_set_special_handling(f);
    duck.aggregate_function_set_functions(
        f, state_size, state_begin, row->update, row->combine, row->finish);
    duck.aggregate_function_set_destructor(f, row->end);
    const bool ok = !duck.add_aggregate_function_to_set(set, f);
    duck.destroy_aggregate_function(&f);
    return ok;
}

bool aggregates_register(duck_connection c)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates && ok; i++) {
        const struct aggregate *const row = &aggregates[i];
        duck_aggregates set = duck.create_aggregate_function_set(row->name);
        for (size_t n = row->least; n <= strlen(row->takes) && ok; n++)
            ok = aggregate_add(set, row, n);
        ok = ok && !duck.register_aggregate_function_set(c, set);
        duck.destroy_aggregate_function_set(&set);
    }
    return ok;
}

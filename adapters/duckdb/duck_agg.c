/*
 * duck_agg.c - the aggregates
 *
 * A state of DuckDB's is a pointer to what is made of its rows. Each thread has
 * states of its own, which are combined at the end, in any order; a window may
 * combine one state with many others, so combining two must not change the
 * source.
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

/* ------------------------------------------------------------------ states */

static uint64_t state_size(duck_info info)
{
    (void)info;
    return sizeof(struct state);
}

static void state_begin(duck_info info, void *state)
{
    (void)info;
    *(struct state *)state = (struct state){ .sign = STATE_SIGN };
}

static struct state *state_of(void *const *states, bool many, size_t row)
{
    return states[many ? row : 0];
}

/* What a row adds to a whole, and what is done with the rows of a chunk, with
 * a state that is combined into another, and in the end. */
struct whole;
typedef const char *whole_row(struct whole *w, const struct column *arg,
                              size_t row);
struct maker {
    const char *(*update)(duck_chunk chunk, void **states, whole_row *add);
    whole_row *add;
    const char *(*take)(void *made, struct state *to);
    const char *(*result)(void *made, duck_vector result, size_t row);
    duck_state_end *end;
};

static const struct maker *maker_of(duck_info info)
{
    return duck.aggregate_function_get_extra_info(info);
}

static void agg_update(duck_info info, duck_chunk chunk, void **states)
{
    const struct maker *const m = maker_of(info);
    agg_wrong(info, m->update(chunk, states, m->add));
}

static void agg_combine(duck_info info, void **from, void **to, uint64_t n)
{
    const char *bad = NULL;
    for (uint64_t i = 0; i < n && !bad; i++) {
        void *const made = ((struct state *)from[i])->made;
        if (made)
            bad = maker_of(info)->take(made, to[i]);
    }
    agg_wrong(info, bad);
}

static void agg_finish(duck_info info, void **states, duck_vector result,
                       uint64_t n, uint64_t offset)
{
    const char *bad = NULL;
    for (uint64_t i = 0; i < n && !bad; i++) {
        void *const made = ((struct state *)states[i])->made;
        if (made)
            bad = maker_of(info)->result(made, result, (size_t)(offset + i));
        else
            result_null(result, (size_t)(offset + i));
    }
    agg_wrong(info, bad);
}

/* ----------------------------------------------------------------- filters */

struct group {
    struct sql_agg agg;
    char *kind, *options; /* as given, for the groups it is combined with */
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

/* Keys of rows from `row` on. */
static const char *group_add(struct state *state, const struct column *arg,
                             uint64_t nargs, size_t row,
                             const struct keys *keys)
{
    struct group *g = state->made;
    if (!g) {
        const size_t first = row + (keys->rows ? keys->rows[0] : 0);
        const char *const bad = group_of_row(arg, nargs, first, &g);
        if (bad)
            return bad;
        state->made = g;
    }
    return sql_agg_add_many(&g->agg, keys->type, keys->at, keys->n);
}

static const char *groups_update(duck_chunk chunk, void **states,
                                 whole_row *unused)
{
    (void)unused;
    struct column arg[3];
    struct keys keys;
    const uint64_t nargs = duck.data_chunk_get_column_count(chunk);
    const size_t n = (size_t)duck.data_chunk_get_size(chunk);
    bool many;
    const char *bad = states_many(states, n, &many);
    for (uint64_t i = 0; i < nargs; i++)
        arg[i] = column_of(chunk, i);
    for (size_t row = 0; row < n && !bad; row += keys.nrows) {
        struct state *const state = state_of(states, many, row);
        size_t to = row + 1;
        while (to < n && state_of(states, many, to) == state)
            to++;
        bad = keys_of(&arg[0], row, to - row, &keys);
        if (!bad && keys.n)
            bad = group_add(state, arg, nargs, row, &keys);
    }
    return bad;
}

static const char *group_take(void *made, struct state *to)
{
    const struct group *const from = made;
    struct group *g = to->made;
    if (!g) {
        const char *const bad = group_like(from, &g);
        if (bad)
            return bad;
        to->made = g;
    }
    return sql_agg_take(&g->agg, from->agg.spec.spec.keying.type,
                        from->agg.list, from->agg.n);
}

static const char *group_result(void *made, duck_vector result, size_t row)
{
    struct group *const g = made;
    struct sql_value v = { 0 };
    const char *bad = sql_agg_end(&g->agg, &v.filter);
    if (!bad)
        bad = result_value(result, row, &v, true);
    sql_value_free(&v);
    return bad;
}

static void group_end(void **states, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct state *const state = states[i];
        group_free(state->made);
        *state = (struct state){ 0 };
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
        struct state *const state = states[i];
        struct whole *const w = state->made;
        if (w)
            sql_value_free(&w->value);
        free(w);
        *state = (struct state){ 0 };
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
        bad = sql_value_load(bytes, nbytes, DUCK_LIMITS, out);
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

static const char *whole_take(void *made, struct state *to)
{
    struct whole *const from = made;
    struct whole *w = to->made;
    const char *bad = whole_ready(from);
    if (bad)
        return bad;
    if (!w) {
        bad = whole_copy(from, &w);
        to->made = w;
        return bad;
    }
    bad = whole_ready(w);
    return bad ? bad : sql_value_merge(&w->value, &from->value);
}

static const char *wholes_update(duck_chunk chunk, void **states,
                                 whole_row *add)
{
    struct column arg[2];
    const uint64_t nargs = duck.data_chunk_get_column_count(chunk);
    const size_t n = (size_t)duck.data_chunk_get_size(chunk);
    bool many;
    const char *bad = states_many(states, n, &many);
    for (uint64_t i = 0; i < nargs; i++)
        arg[i] = column_of(chunk, i);
    for (size_t row = 0; row < n && !bad; row++) {
        struct state *const state = state_of(states, many, row);
        if (column_is_null(&arg[0], row))
            continue;
        if (!state->made)
            state->made = calloc(1, sizeof(struct whole));
        bad = state->made ? add(state->made, arg, row) : "out of memory";
    }
    return bad;
}

static const char *merge_row(struct whole *w, const struct column *arg,
                             size_t row)
{
    return sql_value_unite(&w->value, column_bytes(&arg[0], row), DUCK_LIMITS);
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

static const char *topk_row(struct whole *w, const struct column *arg,
                            size_t row)
{
    struct sql_key key;
    bly_stored *const list = &w->value.sketch;
    const char *bad = key_of_row(&arg[0], row, &key);
    if (bad)
        return bad;
    const int64_t k =
        column_is_null(&arg[1], row) ? 0 : ((const int64_t *)arg[1].data)[row];
    bad = sql_topk_add(&list->topk, k, NULL, &key);
    if (list->topk)
        list->type = BLY_STORED_TOPK;
    return bad;
}

static const char *whole_result(void *made, duck_vector result, size_t row)
{
    struct whole *const w = made;
    const char *bad = whole_ready(w);
    char *json = NULL;
    if (bad)
        return bad;
    if (w->value.sketch.type != BLY_STORED_TOPK)
        return result_value(result, row, &w->value, false);
    bad = sql_topk(w->value.sketch.topk, &json);
    return result_json(result, row, bad, json);
}

/* ------------------------------------------------------------ registration */

static const struct maker of_filter = { groups_update, NULL, group_take,
                                        group_result, group_end };
#define MAKER_OF(name)                                                 \
    static const struct maker of_##name = { wholes_update, name##_row, \
                                            whole_take, whole_result,  \
                                            whole_end }
MAKER_OF(merge);
MAKER_OF(hll);
MAKER_OF(minhash);
MAKER_OF(topk);

/* As the functions of duck_ask.c. */
static const struct aggregate {
    const char *name, *takes;
    size_t least;
    char gives;
    const struct maker *maker;
} aggregates[] = {
    { "bly_agg", "xtt", 1, 'b', &of_filter },
    { "bly_merge_agg", "b", 1, 'b', &of_merge },
    { "bly_hll_agg", "x", 1, 'b', &of_hll },
    { "bly_minhash_agg", "x", 1, 'b', &of_minhash },
    { "bly_topk_agg", "xi", 2, 't', &of_topk },
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
    duck.aggregate_function_set_functions(f, state_size, state_begin,
                                          agg_update, agg_combine, agg_finish);
    /* It is only read, and always there. */
    duck.aggregate_function_set_extra_info(f, (void *)(uintptr_t)row->maker,
                                           NULL);
    duck.aggregate_function_set_destructor(f, row->maker->end);
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

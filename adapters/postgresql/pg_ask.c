/*
 * pg_ask.c - asking values, and what else one or two of them tell
 *
 * `WHERE bly_has((SELECT f FROM filters), x)` asks one filter for every row, so
 * it is fetched and loaded once, and kept with the function's call site. Is it
 * the same in the next row?
 *
 *     constants, parameters        the same pointer
 *     in a table of large values   the same reference to it
 *     otherwise                    the same bytes: size and checksums
 *
 * A join may ask a few filters in turn: the latest of them are kept, as many as
 * fit into work_mem.
 */
#include "adapters/postgresql/pg_bloomery.h"

#include <access/detoast.h>
#include <miscadmin.h>
#include <utils/builtins.h>

/* A filter that is asked again and again. */
struct held {
    struct held *next;   /* that was asked before it */
    MemoryContext where; /* of all here; a child of the function's */
    struct sql_value value;
    bool stable;         /* the argument is the same for all rows */
    const void *pointer; /* as it was then */
    size_t nreference;   /* 0: it was not in a table of large values */
    char reference[64];
    struct sql_same same;
    bly_mem mem; /* of it */
};

static bool held_is(const struct held *h, const struct varlena *v)
{
    if (h->stable && h->pointer == (const void *)v)
        return true;
    if (VARATT_IS_EXTERNAL_ONDISK(v))
        return h->nreference == VARSIZE_EXTERNAL(v) &&
               memcmp(h->reference, v, h->nreference) == 0;
    return !VARATT_IS_EXTENDED(v) && sql_same_is(&h->same, pgb_bytes(v));
}

/* Keep the first, and as many others as there is room for. */
static void held_tidy(struct held *first)
{
    size_t room = (size_t)work_mem * 1024;
    for (struct held *h = first; h->next;) {
        room -= Min(room, h->same.nbytes);
        struct held *const next = h->next;
        if (next->same.nbytes <= room) {
            h = next;
        } else {
            h->next = next->next;
            MemoryContextDelete(next->where);
        }
    }
}

static struct held *held_new(FunctionCallInfo fcinfo, struct varlena *v)
{
    FmgrInfo *const call = fcinfo->flinfo;
    struct held *volatile h = NULL;
    struct varlena *const flat = PG_DETOAST_DATUM_PACKED(PointerGetDatum(v));
    const MemoryContext where = AllocSetContextCreate(
        call->fn_mcxt, "bloomery: a filter", ALLOCSET_SMALL_SIZES);
    PG_TRY();
    {
        h = MemoryContextAllocZero(where, sizeof *h);
        h->where = where;
        h->stable = get_fn_expr_arg_stable(call, 0);
        h->pointer = v;
        if (VARATT_IS_EXTERNAL_ONDISK(v)) {
            h->nreference = VARSIZE_EXTERNAL(v);
            Assert(h->nreference <= sizeof h->reference);
            memcpy(h->reference, v, h->nreference);
        }
        h->value = pgb_load(flat, where);
        h->mem = pgb_memory(where);
        if (!sql_same_begin(&h->same, pgb_bytes(flat), &h->mem))
            ereport(ERROR,
                    (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    }
    PG_CATCH();
    {
        MemoryContextDelete(where);
        PG_RE_THROW();
    }
    PG_END_TRY();
    if (flat != v)
        pfree(flat);
    if (!h->value.filter) {
        MemoryContextDelete(where);
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("bloomery: a sketch cannot be asked for keys"),
                        errhint("bly_info() tells what it knows.")));
    }
    h->next = call->fn_extra;
    call->fn_extra = h;
    held_tidy(h);
    return h;
}

/* The filter of an argument among those that are kept, which becomes their
 * first; NULL if it is not one of them. */
static struct held *held_find(FmgrInfo *call, const struct varlena *v)
{
    struct held *first = call->fn_extra;
    if (!first || held_is(first, v))
        return first;
    for (struct held *before = first; before->next; before = before->next) {
        struct held *const h = before->next;
        if (!held_is(h, v))
            continue;
        before->next = h->next;
        h->next = first;
        call->fn_extra = h;
        return h;
    }
    return NULL;
}

/* The filter of argument 0, to be asked for keys of a type. */
static const bly_filter *asked(FunctionCallInfo fcinfo, bly_key_type type)
{
    struct varlena *const v = (struct varlena *)PG_GETARG_POINTER(0);
    const struct held *h = held_find(fcinfo->flinfo, v);
    if (!fcinfo->flinfo->fn_extra)
        pgb_check_equality(fcinfo, 1, type);
    if (!h)
        h = held_new(fcinfo, v);
    return h->value.filter;
}

/* ------------------------------------------------------------------ asking */

static Datum has(FunctionCallInfo fcinfo, bly_key_type type)
{
    bool maybe;
    const bly_filter *const f = asked(fcinfo, type);
    const struct sql_key key = pgb_key(fcinfo, 1, type);
    pgb_check(sql_has(f, &key, &maybe));
    PG_RETURN_BOOL(maybe);
}

static Datum count(FunctionCallInfo fcinfo, bly_key_type type)
{
    uint64_t n;
    const bly_filter *const f = asked(fcinfo, type);
    const struct sql_key key = pgb_key(fcinfo, 1, type);
    pgb_check(sql_count(f, &key, &n));
    return pgb_number(n);
}

static Datum get(FunctionCallInfo fcinfo, bly_key_type type)
{
    uint64_t value;
    bool present;
    const bly_filter *const f = asked(fcinfo, type);
    const struct sql_key key = pgb_key(fcinfo, 1, type);
    pgb_check(sql_get(f, &key, &value, &present));
    if (!present)
        PG_RETURN_NULL();
    return pgb_number(value);
}

PGB_OF_KEYS(has, bly_has);
PGB_OF_KEYS(count, bly_count);
PGB_OF_KEYS(get, bly_get);

/* ----------------------------------------------------------------- telling */

PG_FUNCTION_INFO_V1(bly_info_value);
Datum bly_info_value(PG_FUNCTION_ARGS)
{
    char *json = NULL;
    struct sql_value v =
        pgb_load(PG_GETARG_VARLENA_PP(0), CurrentMemoryContext);
    const char *const bad = sql_value_info(&v, &json);
    sql_value_free(&v);
    return pgb_json(bad, json);
}

PG_FUNCTION_INFO_V1(bly_plan_json);
Datum bly_plan_json(PG_FUNCTION_ARGS)
{
    char *json = NULL;
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();
    const int64 items = PG_GETARG_INT64(0);
    const bool rated = PG_NARGS() > 1 && !PG_ARGISNULL(1);
    const double fpr = rated ? PG_GETARG_FLOAT8(1) : 0;
    const char *const kind = pgb_text(fcinfo, 2);
    if (items < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("bloomery: a plan for fewer than no keys")));
    const char *const bad =
        sql_plan((uint64_t)items, rated ? &fpr : NULL, kind, &json);
    return pgb_json(bad, json);
}

PG_FUNCTION_INFO_V1(bly_likeness_of);
Datum bly_likeness_of(PG_FUNCTION_ARGS)
{
    double like;
    struct sql_value a =
        pgb_load(PG_GETARG_VARLENA_PP(0), CurrentMemoryContext);
    struct sql_value b =
        pgb_load(PG_GETARG_VARLENA_PP(1), CurrentMemoryContext);
    const char *const bad = sql_value_likeness(&a, &b, &like);
    sql_value_free(&a);
    sql_value_free(&b);
    pgb_check(bad);
    PG_RETURN_FLOAT8(like);
}

PG_FUNCTION_INFO_V1(bly_union);
Datum bly_union(PG_FUNCTION_ARGS)
{
    struct sql_value a =
        pgb_load(PG_GETARG_VARLENA_PP(0), CurrentMemoryContext);
    struct sql_value b =
        pgb_load(PG_GETARG_VARLENA_PP(1), CurrentMemoryContext);
    pgb_check(sql_value_merge(&a, &b));
    sql_value_free(&b);
    const Datum out = pgb_value(&a);
    sql_value_free(&a);
    return out;
}

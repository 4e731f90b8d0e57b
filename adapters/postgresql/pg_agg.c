/*
 * pg_agg.c - the aggregates
 *
 * A state is in the aggregate's context, and so is all memory of the library's
 * that it holds. NULLs are passed over; of no rows comes NULL.
 *
 * Hashes of more than 4 MiB go to a temporary file of the server's.
 *
 * In a parallel plan, workers send the hashes of their rows, or their sketches,
 * and the leader makes of them what it would have made of the rows: the same
 * bytes.
 */
#include "adapters/postgresql/pg_bloomery.h"

#include <catalog/pg_tablespace_d.h>
#include <commands/tablespace.h>
#include <miscadmin.h>
#include <nodes/execnodes.h>
#include <storage/fd.h>
#include <utils/builtins.h>

static MemoryContext agg_context(FunctionCallInfo fcinfo)
{
    MemoryContext where;
    if (!AggCheckCallContext(fcinfo, &where))
        elog(ERROR, "bloomery: called outside of an aggregate");
    return where;
}

/* The state so far, or NULL. */
static void *agg_state(FunctionCallInfo fcinfo)
{
    return PG_ARGISNULL(0) ? NULL : PG_GETARG_POINTER(0);
}

static Datum agg_return(FunctionCallInfo fcinfo, void *state)
{
    if (!state)
        PG_RETURN_NULL();
    PG_RETURN_POINTER(state);
}

/* ------------------------------------------------------------------ filters */

struct group {
    struct sql_agg agg;
    char *kind, *options; /* as given, for the group of all parts */
    MemoryContextCallback end;
    char folder[MAXPGPATH];
};

/* However it ends: the builder may have a file. */
static void group_end(void *group)
{
    struct group *const g = group;
    sql_agg_free(&g->agg);
}

/* Where temporary files belong. The server makes the folder when it first needs
 * it, which may be now. */
static const char *spill_folder(char *path)
{
    PrepareTempTablespaces();
    Oid space = GetNextTempTableSpace();
    if (!OidIsValid(space))
        space = OidIsValid(MyDatabaseTableSpace) ? MyDatabaseTableSpace
                                                 : DEFAULTTABLESPACE_OID;
    TempTablespacePath(path, space);
    (void)MakePGDirectory(path);
    return path;
}

static bool is_part(FunctionCallInfo fcinfo)
{
    return IsA(fcinfo->context, AggState) &&
           DO_AGGSPLIT_SKIPFINAL(((AggState *)fcinfo->context)->aggsplit);
}

static char *kept_text(MemoryContext where, const char *text)
{
    return text ? MemoryContextStrdup(where, text) : NULL;
}

static struct group *group_new(FunctionCallInfo fcinfo, const char *kind,
                               const char *options)
{
    const MemoryContext where = agg_context(fcinfo);
    struct group *const g = MemoryContextAllocZero(where, sizeof *g);
    bly_mem *const mem = MemoryContextAlloc(where, sizeof *mem);
    *mem = pgb_memory(where);
    g->kind = kept_text(where, kind);
    g->options = kept_text(where, options);
    pgb_check(sql_spec_read(&g->agg.spec, kind, options, mem));
    g->agg.spill = spill_folder(g->folder);
    g->end.func = group_end;
    g->end.arg = g;
    MemoryContextRegisterResetCallback(where, &g->end);
    g->agg.partial = is_part(fcinfo);
    g->agg.unordered = true;
    g->agg.most = PGB_MOST;
    g->agg.stop = pgb_cancelled;
    return g;
}

static Datum agg_step(FunctionCallInfo fcinfo, bly_key_type type)
{
    struct group *g = agg_state(fcinfo);
    if (PG_ARGISNULL(1))
        return agg_return(fcinfo, g);
    if (!g) {
        pgb_check_equality(fcinfo, 1, type);
        g = group_new(fcinfo, pgb_text(fcinfo, 2), pgb_text(fcinfo, 3));
    }
    const struct sql_key key = pgb_key(fcinfo, 1, type);
    pgb_check(sql_agg_add(&g->agg, &key));
    PG_RETURN_POINTER(g);
}

PGB_OF_KEYS(agg_step, bly_agg);

PG_FUNCTION_INFO_V1(bly_agg_final);
Datum bly_agg_final(PG_FUNCTION_ARGS)
{
    struct group *const g = agg_state(fcinfo);
    struct sql_value v = { 0 };
    if (!g)
        PG_RETURN_NULL();
    pgb_check(sql_agg_end(&g->agg, &v.filter));
    sql_agg_free(&g->agg);
    const Datum out = pgb_value(&v);
    sql_value_free(&v);
    return out;
}

/* A part on its way to the leader: this, both texts with their ends, hashes. */
struct part {
    uint64_t nhashes;
    uint32_t nkind, noptions; /* 0: NULL */
    uint32_t type;
};

static char *put(char *to, const void *from, size_t n)
{
    if (n)
        memcpy(to, from, n);
    return to + n;
}

PG_FUNCTION_INFO_V1(bly_agg_serialize);
Datum bly_agg_serialize(PG_FUNCTION_ARGS)
{
    const struct group *const g = (const struct group *)PG_GETARG_POINTER(0);
    const struct part p = {
        .nhashes = g->agg.n,
        .nkind = g->kind ? (uint32_t)strlen(g->kind) + 1 : 0,
        .noptions = g->options ? (uint32_t)strlen(g->options) + 1 : 0,
        .type = g->agg.spec.spec.keying.type,
    };
    const uint64_t size = VARHDRSZ + sizeof p + (uint64_t)p.nkind + p.noptions +
                          p.nhashes * sizeof(uint64_t);
    if (size > MaxAllocSize)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("bloomery: a parallel worker has too many keys for one "
                        "message: " UINT64_FORMAT,
                        p.nhashes),
                 errhint("SET max_parallel_workers_per_gather to more, or to "
                         "0.")));
    bytea *const out = palloc(size);
    SET_VARSIZE(out, size);
    char *at = put(VARDATA(out), &p, sizeof p);
    at = put(at, g->kind, p.nkind);
    at = put(at, g->options, p.noptions);
    put(at, g->agg.list, p.nhashes * sizeof(uint64_t));
    PG_RETURN_BYTEA_P(out);
}

PG_FUNCTION_INFO_V1(bly_agg_deserialize);
Datum bly_agg_deserialize(PG_FUNCTION_ARGS)
{
    const bly_bytes bytes = pgb_bytes(PG_GETARG_VARLENA_PP(0));
    const char *at = bytes.ptr;
    struct part p;
    struct group *const g = palloc0(sizeof *g);
    if (bytes.len < sizeof p)
        elog(ERROR, "bloomery: a part is cut off");
    memcpy(&p, at, sizeof p);
    at += sizeof p;
    if (bytes.len - sizeof p !=
        (uint64_t)p.nkind + p.noptions + p.nhashes * sizeof(uint64_t))
        elog(ERROR, "bloomery: a part is cut off");
    g->kind = p.nkind ? pstrdup(at) : NULL;
    at += p.nkind;
    g->options = p.noptions ? pstrdup(at) : NULL;
    at += p.noptions;
    g->agg.spec.spec.keying.type = (bly_key_type)p.type;
    g->agg.n = (size_t)p.nhashes;
    g->agg.list = palloc(p.nhashes * sizeof(uint64_t));
    put((char *)g->agg.list, at, (size_t)p.nhashes * sizeof(uint64_t));
    PG_RETURN_POINTER(g);
}

PG_FUNCTION_INFO_V1(bly_agg_combine);
Datum bly_agg_combine(PG_FUNCTION_ARGS)
{
    struct group *g = agg_state(fcinfo);
    if (PG_ARGISNULL(1))
        return agg_return(fcinfo, g);
    const struct group *const part = (struct group *)PG_GETARG_POINTER(1);
    if (!g)
        g = group_new(fcinfo, part->kind, part->options);
    pgb_check(sql_agg_take(&g->agg, part->agg.spec.spec.keying.type,
                           part->agg.list, part->agg.n));
    CHECK_FOR_INTERRUPTS();
    PG_RETURN_POINTER(g);
}

/* ------------------------------------------------------- unions, sketches */

/* What becomes one filter or sketch, out of values or keys. On the way to the
 * leader it is its bytes, and what comes out there are still these. */
struct whole {
    struct sql_value value;
    struct sql_hll hll;
    struct sql_minhash minhash;
    bly_mem mem;
};

static struct whole *whole_of(FunctionCallInfo fcinfo)
{
    struct whole *w = agg_state(fcinfo);
    if (!w) {
        const MemoryContext where = agg_context(fcinfo);
        w = MemoryContextAllocZero(where, sizeof *w);
        w->mem = pgb_memory(where);
        w->hll.mem = w->minhash.mem = &w->mem;
    }
    return w;
}

/* One more value. */
static Datum whole_take(FunctionCallInfo fcinfo, const struct varlena *bytes)
{
    struct whole *const w = whole_of(fcinfo);
    struct sql_value *const all = &w->value;
    if (!all->filter && !all->sketch.type) {
        *all = pgb_load(bytes, agg_context(fcinfo));
    } else {
        struct sql_value v = pgb_load(bytes, CurrentMemoryContext);
        pgb_check(sql_value_merge(all, &v));
        sql_value_free(&v);
    }
    CHECK_FOR_INTERRUPTS();
    PG_RETURN_POINTER(w);
}

PG_FUNCTION_INFO_V1(bly_merge_step);
Datum bly_merge_step(PG_FUNCTION_ARGS)
{
    if (PG_ARGISNULL(1))
        return agg_return(fcinfo, agg_state(fcinfo));
    return whole_take(fcinfo, PG_GETARG_VARLENA_PP(1));
}

static Datum hll_step(FunctionCallInfo fcinfo, bly_key_type type)
{
    if (PG_ARGISNULL(1))
        return agg_return(fcinfo, agg_state(fcinfo));
    if (!agg_state(fcinfo))
        pgb_check_equality(fcinfo, 1, type);
    struct whole *const w = whole_of(fcinfo);
    const struct sql_key key = pgb_key(fcinfo, 1, type);
    pgb_check(sql_hll_add(&w->hll, &key));
    w->value.sketch = (bly_stored){ .type = BLY_STORED_HLL, .hll = w->hll.hll };
    PG_RETURN_POINTER(w);
}
PGB_OF_KEYS(hll_step, bly_hll);

static Datum minhash_step(FunctionCallInfo fcinfo, bly_key_type type)
{
    if (PG_ARGISNULL(1))
        return agg_return(fcinfo, agg_state(fcinfo));
    if (!agg_state(fcinfo))
        pgb_check_equality(fcinfo, 1, type);
    struct whole *const w = whole_of(fcinfo);
    const struct sql_key key = pgb_key(fcinfo, 1, type);
    pgb_check(sql_minhash_add(&w->minhash, &key));
    w->value.sketch = (bly_stored){ .type = BLY_STORED_LIKENESS,
                                    .likeness = w->minhash.sketch };
    PG_RETURN_POINTER(w);
}
PGB_OF_KEYS(minhash_step, bly_minhash);

/* As a value, with the last keys in it. */
static Datum whole_value(struct whole *w)
{
    pgb_check(sql_hll_end(&w->hll));
    pgb_check(sql_minhash_end(&w->minhash));
    return pgb_value(&w->value);
}

PG_FUNCTION_INFO_V1(bly_whole_serialize);
Datum bly_whole_serialize(PG_FUNCTION_ARGS)
{
    return whole_value((struct whole *)PG_GETARG_POINTER(0));
}

PG_FUNCTION_INFO_V1(bly_whole_deserialize);
Datum bly_whole_deserialize(PG_FUNCTION_ARGS)
{
    PG_RETURN_POINTER(PG_GETARG_BYTEA_P_COPY(0));
}

PG_FUNCTION_INFO_V1(bly_whole_combine);
Datum bly_whole_combine(PG_FUNCTION_ARGS)
{
    if (PG_ARGISNULL(1))
        return agg_return(fcinfo, agg_state(fcinfo));
    return whole_take(fcinfo, (struct varlena *)PG_GETARG_POINTER(1));
}

PG_FUNCTION_INFO_V1(bly_whole_final);
Datum bly_whole_final(PG_FUNCTION_ARGS)
{
    struct whole *const w = agg_state(fcinfo);
    if (!w)
        PG_RETURN_NULL();
    return whole_value(w);
}

/* -------------------------------------------------------------------- topk */

static Datum topk_step(FunctionCallInfo fcinfo, bly_key_type type)
{
    bly_topk *t = agg_state(fcinfo);
    if (PG_ARGISNULL(1))
        return agg_return(fcinfo, t);
    if (!t)
        pgb_check_equality(fcinfo, 1, type);
    const bly_mem mem = pgb_memory(agg_context(fcinfo));
    const struct sql_key key = pgb_key(fcinfo, 1, type);
    const int64 k = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT64(2);
    pgb_check(sql_topk_add(&t, k, &mem, &key));
    PG_RETURN_POINTER(t);
}
PGB_OF_KEY(topk_step, bly_topk_step, BLY_KEYS_TEXT);
PGB_OF_KEY(topk_step, bly_topk_int8, BLY_KEYS_INT64);

PG_FUNCTION_INFO_V1(bly_topk_final);
Datum bly_topk_final(PG_FUNCTION_ARGS)
{
    const bly_topk *const t = agg_state(fcinfo);
    char *json = NULL;
    if (!t)
        PG_RETURN_NULL();
    const char *const bad = sql_topk(t, &json);
    return pgb_json(bad, json);
}

/*
 * pg_type.c - filters in PostgreSQL: the type, memory and errors
 *
 *     CREATE EXTENSION bloomery;
 *     SELECT bly_agg(email) FROM people;
 *
 * pg_ask.c has what asks a value, pg_files.c what asks and writes files,
 * pg_agg.c the aggregates.
 */
#include "adapters/postgresql/pg_bloomery.h"

#include <catalog/pg_operator_d.h>
#include <mb/pg_wchar.h>
#include <miscadmin.h>
#include <libpq/pqformat.h>
#include <nodes/nodeFuncs.h>
#include <utils/builtins.h>
#include <utils/jsonb.h>
#include <utils/lsyscache.h>
#include <utils/typcache.h>

PG_MODULE_MAGIC;

/* ------------------------------------------------------------------ memory */

bool pgb_cancelled(void)
{
    return InterruptPending && (QueryCancelPending || ProcDiePending) &&
           InterruptHoldoffCount == 0 && QueryCancelHoldoffCount == 0 &&
           CritSectionCount == 0;
}

/* A build that takes long asks for memory now and then: where it can be
 * stopped. */
static void *memory_get(void *ctx, size_t nbytes, int flags)
{
    if (nbytes > MaxAllocHugeSize || pgb_cancelled())
        return NULL;
    return MemoryContextAllocExtended(
        ctx, nbytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM | flags);
}

static void *memory_alloc(void *ctx, size_t nbytes)
{
    return memory_get(ctx, nbytes, 0);
}

static void *memory_zalloc(void *ctx, size_t nbytes)
{
    return memory_get(ctx, nbytes, MCXT_ALLOC_ZERO);
}

static void memory_release(void *ctx, void *at, size_t nbytes)
{
    (void)ctx;
    (void)nbytes;
    pfree(at);
}

bly_mem pgb_memory(MemoryContext where)
{
    return (bly_mem){ .alloc = memory_alloc,
                      .release = memory_release,
                      .ctx = where,
                      .zalloc = memory_zalloc };
}

/* ------------------------------------------------------------------ errors */

static int sqlstate_of(bly_status st)
{
    switch (st) {
    case BLY_ENOMEM:
        return ERRCODE_OUT_OF_MEMORY;
    case BLY_ERANGE:
    case BLY_EFULL:
        return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
    case BLY_EFORMAT:
        return ERRCODE_INVALID_BINARY_REPRESENTATION;
    case BLY_ENOTSUP:
        return ERRCODE_FEATURE_NOT_SUPPORTED;
    case BLY_ESECRET:
    case BLY_EREADONLY:
        return ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
    case BLY_EIO:
        return ERRCODE_IO_ERROR;
    case BLY_EBUSY:
        return ERRCODE_LOCK_NOT_AVAILABLE;
    default:
        return ERRCODE_INVALID_PARAMETER_VALUE;
    }
}

/* What a message says behind its last semicolon is what to do: a hint, which is
 * a sentence here, unless it begins with a name. */
void pgb_check(const char *bad)
{
    if (!bad)
        return;
    const bly_status st = sql_status();
    const char *hint = strrchr(bad, ';');
    hint = hint && hint[1] == ' ' && hint[2] ? hint + 2 : NULL;
    const int len = hint ? (int)(hint - 2 - bad) : (int)strlen(bad);
    const bool word =
        hint && strchr(" ,:", hint[strspn(hint, "abcdefghijklmnopqrstuvwxyz")]);
    CHECK_FOR_INTERRUPTS();
    ereport(
        ERROR,
        (errcode(sqlstate_of(st)), errmsg("bloomery: %.*s", len, bad),
         hint ? errhint("%c%s.", word ? hint[0] - 'a' + 'A' : hint[0], hint + 1)
              : 0));
}

bool pgb_wait(void *ctx, const char *path, uint64_t ms)
{
    (void)ctx;
    (void)path;
    (void)ms;
    return !pgb_cancelled();
}

/* ------------------------------------------------------------------ values */

bly_bytes pgb_bytes(const struct varlena *v)
{
    return (bly_bytes){ VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v) };
}

/* Text is hashed as UTF-8, whatever the database has. */
/* Argument i as it stands in the statement; NULL if that is not known. */
static const Node *argument(FunctionCallInfo fcinfo, int i)
{
    const Aggref *const agg = AggGetAggref(fcinfo);
    const Node *const call = fcinfo->flinfo ? fcinfo->flinfo->fn_expr : NULL;
    const List *args = NIL;
    if (agg) { /* argument 0 is the state */
        const int at = i - 1;
        return at < list_length(agg->args)
                   ? (const Node *)list_nth_node(TargetEntry, agg->args, at)
                         ->expr
                   : NULL;
    }
    if (call && IsA(call, FuncExpr))
        args = ((const FuncExpr *)call)->args;
    else if (call && IsA(call, OpExpr))
        args = ((const OpExpr *)call)->args;
    return i < list_length(args) ? list_nth(args, i) : NULL;
}

/* A type such as citext becomes text without a word, and loses its own "=". Who
 * writes the cast means text. */
static bool has_own_equality(const Node *arg, Oid *type)
{
    if (!arg || !IsA(arg, RelabelType) ||
        ((const RelabelType *)arg)->relabelformat != COERCE_IMPLICIT_CAST)
        return false;
    *type = exprType((const Node *)((const RelabelType *)arg)->arg);
    const Oid equal = lookup_type_cache(*type, TYPECACHE_EQ_OPR)->eq_opr;
    return OidIsValid(equal) && equal != TextEqualOperator;
}

void pgb_check_equality(FunctionCallInfo fcinfo, int i, bly_key_type type)
{
    const Oid collation = PG_GET_COLLATION();
    Oid own;
    if (type != BLY_KEYS_TEXT)
        return;
    if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
        ereport(
            ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
             errmsg("bloomery: the collation \"%s\" compares text otherwise "
                    "than by its bytes, as a filter does",
                    get_collation_name(collation)),
             errhint("Use lower(x) COLLATE \"C\", or another form that equal "
                     "text has in common, for all keys.")));
    if (has_own_equality(argument(fcinfo, i), &own))
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("bloomery: the type %s compares text otherwise than by "
                        "its bytes, as a filter does",
                        format_type_be(own)),
                 errhint("Use lower(x::text), or another form that equal text "
                         "has in common, for all keys.")));
}

struct sql_key pgb_key(FunctionCallInfo fcinfo, int i, bly_key_type type)
{
    struct sql_key key = { .type = type };
    if (type == BLY_KEYS_INT64) {
        key.integer = PG_GETARG_INT64(i);
        return key;
    }
    key.bytes = pgb_bytes(PG_GETARG_VARLENA_PP(i));
    if (type == BLY_KEYS_TEXT && GetDatabaseEncoding() != PG_UTF8) {
        const char *const text =
            pg_server_to_any(key.bytes.ptr, (int)key.bytes.len, PG_UTF8);
        if (text != key.bytes.ptr)
            key.bytes = (bly_bytes){ text, strlen(text) };
    }
    return key;
}

struct sql_value pgb_load(const struct varlena *v, MemoryContext where)
{
    struct sql_value value;
    const bly_bytes bytes = pgb_bytes(v);
    const bly_mem mem = pgb_memory(where);
    const bly_access limits = { .mem = &mem, .max_bytes = PGB_MOST };
    pgb_check(sql_value_load(bytes.ptr, bytes.len, &limits, &value));
    return value;
}

Datum pgb_value(const struct sql_value *v)
{
    const uint64_t size = sql_value_bytes(v);
    if (size > PGB_MOST)
        pgb_check(sql_too_large(size));
    struct varlena *const out = palloc((Size)size + VARHDRSZ);
    SET_VARSIZE(out, size + VARHDRSZ);
    pgb_check(sql_value_write(v, VARDATA(out), (size_t)size));
    return PointerGetDatum(out);
}

Datum pgb_number(uint64_t x)
{
    return Int64GetDatum(x > PG_INT64_MAX ? PG_INT64_MAX : (int64)x);
}

Datum pgb_json(const char *bad, char *json)
{
    pgb_check(bad);
    char *const own =
        MemoryContextAllocExtended(CurrentMemoryContext, strlen(json) + 1,
                                   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
    if (own)
        strcpy(own, json);
    free(json);
    if (!own)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY),
                        errmsg("bloomery: out of memory")));
    char *const text = pg_any_to_server(own, (int)strlen(own), PG_UTF8);
    return DirectFunctionCall1(jsonb_in, CStringGetDatum(text));
}

char *pgb_text(FunctionCallInfo fcinfo, int i)
{
    return i >= PG_NARGS() || PG_ARGISNULL(i)
               ? NULL
               : text_to_cstring(PG_GETARG_TEXT_PP(i));
}

/* --------------------------------------------------------------- in and out */

/* Bytes from anywhere, looked at as a whole. */
static Datum checked(struct varlena *v)
{
    struct sql_value value = pgb_load(v, CurrentMemoryContext);
    sql_value_free(&value);
    PG_RETURN_POINTER(v);
}

PG_FUNCTION_INFO_V1(bloomery_in);
Datum bloomery_in(PG_FUNCTION_ARGS)
{
    return checked(
        DatumGetByteaP(DirectFunctionCall1(byteain, PG_GETARG_DATUM(0))));
}

PG_FUNCTION_INFO_V1(bloomery_out);
Datum bloomery_out(PG_FUNCTION_ARGS)
{
    const bly_bytes bytes = pgb_bytes(PG_GETARG_VARLENA_PP(0));
    if (bytes.len > (MaxAllocSize - 3) / 2)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("bloomery: a filter of %zu bytes is too large "
                               "for text",
                               bytes.len),
                        errhint("Ask for it in binary form.")));
    char *const out = palloc(bytes.len * 2 + 3);
    memcpy(out, "\\x", 2);
    out[2 + hex_encode(bytes.ptr, bytes.len, out + 2)] = '\0';
    PG_RETURN_CSTRING(out);
}

PG_FUNCTION_INFO_V1(bloomery_recv);
Datum bloomery_recv(PG_FUNCTION_ARGS)
{
    return checked(
        DatumGetByteaP(DirectFunctionCall1(bytearecv, PG_GETARG_DATUM(0))));
}

PG_FUNCTION_INFO_V1(bloomery_send);
Datum bloomery_send(PG_FUNCTION_ARGS)
{
    PG_RETURN_BYTEA_P(PG_GETARG_BYTEA_P_COPY(0));
}

PG_FUNCTION_INFO_V1(bloomery_from_bytea);
Datum bloomery_from_bytea(PG_FUNCTION_ARGS)
{
    return checked(PG_GETARG_VARLENA_PP(0));
}

/*
 * pg_plan.c - what the planner is told of bly_has()
 *
 * Without more the planner takes it that a third of all rows pass a function,
 * and one in a thousand an operator. Here a filter that is known when the query
 * is planned tells how many keys it has, and the statistics of the column how
 * many different values there are:
 *
 *     rows that pass = keys / values + false positives of the rest
 *
 * A filter that is computed by the query itself, or read from a file, is not
 * known then: DEFAULT_SHARE of the rows, since nobody filters for less reason.
 */
#include "adapters/postgresql/pg_bloomery.h"

#include <math.h>

#include <access/detoast.h>
#include <catalog/pg_type.h>
#include <nodes/nodeFuncs.h>
#include <nodes/pathnodes.h>
#include <nodes/supportnodes.h>
#include <optimizer/optimizer.h>
#include <utils/selfuncs.h>

#define DEFAULT_SHARE 0.1

/* A constant of more bytes is not loaded to plan a query: 10 ms. */
#define LOADED_AT_MOST ((Size)8 << 20)

/* How many keys a constant has, and its rate; false where it does not tell. */
static bool constant_tells(const Const *c, double *nkeys, double *fpr)
{
    const struct varlena *const given =
        (const struct varlena *)DatumGetPointer(c->constvalue);
    bly_stats stats;
    if (toast_raw_datum_size(c->constvalue) > LOADED_AT_MOST)
        return false;
    struct varlena *const v = PG_DETOAST_DATUM_PACKED(c->constvalue);
    struct sql_value value = pgb_load(v, CurrentMemoryContext);
    const bool tells = value.filter != NULL;
    if (tells) {
        bly_stat(value.filter, &stats);
        *nkeys = isfinite(stats.items_estimate) ? stats.items_estimate
                                                : (double)stats.capacity;
        *fpr = isnan(stats.fpr_now) ? stats.fpr_at_capacity : stats.fpr_now;
    }
    sql_value_free(&value);
    if (v != given)
        pfree(v);
    return tells;
}

static double share_of_rows(PlannerInfo *root, List *args, int varRelid)
{
    VariableStatData key;
    double nkeys, fpr = 0;
    bool unknown;
    Node *const filter =
        list_length(args) == 2
            ? estimate_expression_value(root, (Node *)linitial(args))
            : NULL;
    if (!filter || !IsA(filter, Const) ||
        exprType(filter) == TEXTOID /* a path */)
        return DEFAULT_SHARE;
    if (((Const *)filter)->constisnull)
        return 0;
    if (!constant_tells((Const *)filter, &nkeys, &fpr))
        return DEFAULT_SHARE;
    examine_variable(root, (Node *)lsecond(args), varRelid, &key);
    const double values = get_variable_numdistinct(&key, &unknown);
    ReleaseVariableStats(key);
    if (unknown || values < 1)
        return DEFAULT_SHARE;
    if (!(fpr >= 0 && fpr <= 1))
        fpr = 0;
    const double held = Min(nkeys / values, 1);
    return held + (1 - held) * fpr;
}

PG_FUNCTION_INFO_V1(bly_has_support);
Datum bly_has_support(PG_FUNCTION_ARGS)
{
    Node *const request = (Node *)PG_GETARG_POINTER(0);
    if (!IsA(request, SupportRequestSelectivity))
        PG_RETURN_POINTER(NULL);
    SupportRequestSelectivity *const asked =
        (SupportRequestSelectivity *)request;
    asked->selectivity =
        asked->is_join
            ? DEFAULT_SHARE
            : share_of_rows(asked->root, asked->args, asked->varRelid);
    CLAMP_PROBABILITY(asked->selectivity);
    PG_RETURN_POINTER(asked);
}

/* The same for the operator @>. */
PG_FUNCTION_INFO_V1(bly_has_share);
Datum bly_has_share(PG_FUNCTION_ARGS)
{
    double share =
        share_of_rows((PlannerInfo *)PG_GETARG_POINTER(0),
                      (List *)PG_GETARG_POINTER(2), PG_GETARG_INT32(3));
    CLAMP_PROBABILITY(share);
    PG_RETURN_FLOAT8(share);
}

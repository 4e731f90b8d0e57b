/*
 * sql_value.c - what a database holds: a filter or a sketch, as the bytes of a
 * file
 *
 * Keyed ones are opened blind: they can be told of, merged and saved, but not
 * asked.
 */
#include "adapters/sql/sql_inside.h"

#include <stdlib.h>
#include <string.h>

const char *sql_value_load(const void *bytes, size_t nbytes,
                           const bly_access *limits, struct sql_value *out)
{
    bly_access how = limits ? *limits : (bly_access){ 0 };
    how.blind = true;
    *out = (struct sql_value){ 0 };
    return sql_told(bly_stored_peek(bytes, nbytes)
                        ? bly_stored_load(bytes, nbytes, &how, &out->sketch)
                        : bly_load(bytes, nbytes, &how, &out->filter));
}

/* A sketch is tried only where the file is not a filter, so that the error is
 * that of a filter. */
const char *sql_value_open(const char *path, const bly_access *limits,
                           struct sql_value *out)
{
    bly_access how = limits ? *limits : (bly_access){ 0 };
    how.blind = true;
    *out = (struct sql_value){ 0 };
    const char *const bad = sql_no_pipe(path);
    if (bad)
        return bad;
    const bly_status sketch = bly_stored_open(path, &how, &out->sketch);
    return sql_told(sketch ? bly_open(path, &how, &out->filter) : BLY_OK);
}

void sql_value_free(struct sql_value *v)
{
    bly_free(v->filter);
    bly_stored_free(&v->sketch);
    *v = (struct sql_value){ 0 };
}

const char *sql_value_merge(struct sql_value *dst, const struct sql_value *src)
{
    if (dst->filter && src->filter)
        return sql_told(bly_merge(dst->filter, src->filter));
    if (dst->filter || src->filter)
        return sql_wrong("a filter and a sketch have no union");
    return sql_told(bly_stored_merge(&dst->sketch, &src->sketch));
}

const char *sql_value_unite(struct sql_value *dst, bly_bytes bytes,
                            const bly_access *limits)
{
    struct sql_value v;
    const char *bad = sql_value_load(bytes.ptr, bytes.len, limits, &v);
    if (bad)
        return bad;
    if (!dst->filter && !dst->sketch.type) {
        *dst = v;
        return NULL;
    }
    bad = sql_value_merge(dst, &v);
    sql_value_free(&v);
    return bad;
}

uint64_t sql_value_bytes(const struct sql_value *v)
{
    return v->filter ? bly_written_bytes(v->filter)
                     : bly_stored_bytes(&v->sketch);
}

struct sink {
    char *at;
    size_t len, room;
};

static bool sink_put(void *ctx, const void *bytes, size_t n)
{
    struct sink *const s = ctx;
    if (n > s->room - s->len)
        return false;
    memcpy(s->at + s->len, bytes, n);
    s->len += n;
    return true;
}

static bly_status value_put(const void *value, bly_put *put, void *ctx)
{
    const struct sql_value *const v = value;
    return v->filter ? bly_write(v->filter, put, ctx)
                     : bly_stored_write(&v->sketch, put, ctx);
}

const char *sql_value_write(const struct sql_value *v, void *to, size_t nbytes)
{
    struct sink s = { .at = to, .room = nbytes };
    return sql_told(value_put(v, sink_put, &s));
}

const char *sql_value_copy(const struct sql_value *v, void **out,
                           size_t *nbytes)
{
    *nbytes = (size_t)sql_value_bytes(v);
    *out = malloc(*nbytes);
    if (!*out)
        return sql_no_memory();
    const char *const bad = sql_value_write(v, *out, *nbytes);
    if (bad) {
        free(*out);
        *out = NULL;
    }
    return bad;
}

const char *sql_value_turn(struct sql_value *v, void **out, size_t *nbytes)
{
    bly_filter *const f = v->filter;
    if (!f)
        return sql_value_copy(v, out, nbytes);
    struct sink s = { .room = (size_t)bly_written_bytes(f) };
    v->filter = NULL;
    *nbytes = s.room;
    *out = s.at = malloc(s.room);
    if (!s.at) {
        bly_free(f);
        return sql_no_memory();
    }
    const char *const bad = sql_told(bly_write_away(f, sink_put, &s));
    if (bad) {
        free(*out);
        *out = NULL;
    }
    return bad;
}

const char *sql_value_save(const struct sql_value *v, const char *path,
                           bly_wait *wait)
{
    const char *const bad = sql_no_pipe(path);
    return bad ? bad : sql_told(bly_file_save(path, wait, NULL, value_put, v));
}

const char *sql_value_info(const struct sql_value *v, char **out)
{
    return v->filter ? sql_info_filter(v->filter, out)
                     : sql_info_sketch(&v->sketch, out);
}

const char *sql_value_likeness(const struct sql_value *a,
                               const struct sql_value *b, double *out)
{
    bly_likeness c;
    bly_resemblance r;
    bly_status st;
    if (a->filter && b->filter) {
        st = bly_compare(a->filter, b->filter, &c);
        *out = st ? 0 : c.jaccard;
        return sql_told(st);
    }
    if (a->sketch.type != BLY_STORED_LIKENESS ||
        b->sketch.type != BLY_STORED_LIKENESS)
        return sql_wrong("these cannot be compared; expected two filters, or "
                         "two sketches of bly_minhash_agg()");
    st = bly_sketch_compare(a->sketch.likeness, b->sketch.likeness, &r);
    *out = st ? 0 : r.jaccard;
    return sql_told(st);
}

/* ---------------------------------------------------- of bytes, in one call */

const char *sql_info(const void *bytes, size_t nbytes, const bly_access *limits,
                     char **out)
{
    struct sql_value v;
    const char *bad = sql_value_load(bytes, nbytes, limits, &v);
    if (!bad)
        bad = sql_value_info(&v, out);
    sql_value_free(&v);
    return bad;
}

const char *sql_info_file(const char *path, const bly_access *limits,
                          char **out)
{
    bly_access blind = limits ? *limits : (bly_access){ 0 };
    blind.blind = true;
    blind.checking = BLY_CHECK_ALL;
    struct sql_value v = { 0 };
    const char *bad = sql_no_pipe(path);
    if (bad)
        return bad;
    const bly_status sketch = bly_stored_open(path, &blind, &v.sketch);
    bad = sketch ? sql_told(bly_map(path, &blind, &v.filter)) : NULL;
    if (!bad)
        bad = sql_value_info(&v, out);
    sql_value_free(&v);
    return bad;
}

const char *sql_likeness(bly_bytes a, bly_bytes b, const bly_access *limits,
                         double *out)
{
    struct sql_value x, y = { 0 };
    const char *bad = sql_value_load(a.ptr, a.len, limits, &x);
    if (!bad)
        bad = sql_value_load(b.ptr, b.len, limits, &y);
    if (!bad)
        bad = sql_value_likeness(&x, &y, out);
    sql_value_free(&x);
    sql_value_free(&y);
    return bad;
}

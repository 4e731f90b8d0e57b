/*
 * py_building.c - Filter.build()
 *
 * The builder is made when the first key is there, which says what the keys are
 * unless the caller did. Hashes are handed over in pieces that stay in the
 * cache.
 */
#include "bindings/python/python.h"

#define HASH_PIECE 2048

struct building {
    struct py_sink sink;
    bly_spec *spec;
    bly_builder *builder;
    bool denying;
};

static bly_status build_run(struct building *b, const struct py_run *run,
                            const uint64_t *values)
{
    uint64_t hashes[HASH_PIECE];
    bly_status st = BLY_OK;
    for (size_t i = 0; i < run->n && !st; i += HASH_PIECE) {
        const size_t n = run->n - i < HASH_PIECE ? run->n - i : HASH_PIECE;
        st = bly_hash_as(bly_builder_hasher(b->builder), b->spec->keying,
                         run->type, py_run_from(run, i), n, hashes, NULL);
        if (!st && b->denying)
            st = bly_builder_deny(b->builder, hashes, n);
        else if (!st)
            st = bly_builder_add(b->builder, hashes, values ? values + i : NULL,
                                 n);
    }
    return st;
}

static bool build_values(struct py_sink *sink, const struct py_run *run,
                         const uint64_t *values)
{
    struct building *const b = (struct building *)sink;
    bly_status st = BLY_OK;
    if (!b->builder) {
        if (!b->spec->keying.type)
            b->spec->keying.type = run->type;
        sink->text = b->spec->keying.type == BLY_KEYS_TEXT;
    }
    PyThreadState *const thread = PyEval_SaveThread();
    if (!b->builder)
        st = bly_builder_new(b->spec, &b->builder);
    if (!st)
        st = build_run(b, run, values);
    PyEval_RestoreThread(thread);
    if (st)
        py_raise(st);
    return !st;
}

static bool build_take(struct py_sink *sink, const struct py_run *run)
{
    return build_values(sink, run, NULL);
}

static bool threads_of(PyObject *object, unsigned *out)
{
    uint64_t n = 1;
    if (object && !py_count_of(object, &n))
        return false;
    if (n > 4096) {
        PyErr_SetString(PyExc_ValueError,
                        "threads: expected 0, for one per processor, to 4096");
        return false;
    }
    *out = (unsigned)n;
    return true;
}

static bly_filter *build_all(struct building *b, PyObject *keys, PyObject *deny,
                             unsigned nthreads)
{
    bly_filter *f = NULL;
    bly_status st = BLY_OK;
    if (!py_keys_each(keys, &b->sink))
        return NULL;
    if (!b->builder) { /* no keys at all */
        st = bly_builder_new(b->spec, &b->builder);
        if (st) {
            py_raise(st);
            return NULL;
        }
    }
    if (deny && deny != Py_None) {
        b->denying = true;
        b->sink.take_values = NULL;
        if (!py_keys_each(deny, &b->sink))
            return NULL;
    }
    PyThreadState *const thread = PyEval_SaveThread();
    st = bly_builder_finish(b->builder, nthreads, &f);
    PyEval_RestoreThread(thread);
    if (st)
        py_raise(st);
    return f;
}

PyObject *py_filter_build(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const own[] = { " keys", "deny", "threads", NULL };
    PyObject *v[3];
    struct py_spec s;
    unsigned nthreads;
    bly_kind_info kind = { 0 };
    if (!py_spec_read(&s, args, kwargs, 1, own, v))
        return NULL;
    struct building b = { .sink = { .take = build_take }, .spec = &s.spec };
    bly_filter *f = NULL;
    if (!v[0])
        PyErr_SetString(PyExc_TypeError, "build() wants the keys");
    else if (threads_of(v[2], &nthreads)) {
        if (bly_kind_named(s.spec.kind, &kind) && (kind.can & BLY_CAN(BUILD)) &&
            (kind.can & BLY_CAN(GET)))
            b.sink.take_values = build_values;
        b.sink.text = s.spec.keying.type == BLY_KEYS_TEXT;
        f = build_all(&b, v[0], v[1], nthreads);
    }
    bly_builder_free(b.builder);
    py_spec_free(&s);
    return f ? py_filter_wrap((PyTypeObject *)type, f) : NULL;
}

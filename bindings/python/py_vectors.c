/*
 * py_vectors.c - arrays of vectors: sketches, pairs, copies, neighbours
 *
 * Arrays of two dimensions, float or double, are used where they stand, with
 * whatever lies between their rows. Results are views of memory, which
 * numpy.asarray() takes without a copy. The interpreter's lock is free during a
 * search; an array that someone changes meanwhile gives answers about some
 * mixture of before and after.
 */
#include "bindings/python/python.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/vectors.h>

/* ------------------------------------------------------------------- arrays */

static bool little_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1;
}

/* The vectors of a buffer, which is released by the caller if this is true. */
static bool vectors_of(PyObject *object, Py_buffer *view, bly_vectors *out)
{
    if (!PyObject_CheckBuffer(object)) {
        PyErr_SetString(PyExc_TypeError,
                        "expected an array of two dimensions, as NumPy's");
        return false;
    }
    if (PyObject_GetBuffer(object, view, PyBUF_FULL_RO))
        return false;
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' ||
        *format == (little_endian() ? '<' : '>'))
        format++;
    const bool real = (!strcmp(format, "f") && view->itemsize == 4) ||
                      (!strcmp(format, "d") && view->itemsize == 8);
    if (view->ndim != 2)
        PyErr_Format(PyExc_ValueError,
                     "an array of %d dimensions; expected two, vectors and "
                     "coordinates, as a.reshape(-1, coordinates) has",
                     view->ndim);
    else if (!real)
        PyErr_Format(PyExc_TypeError,
                     "an array of format '%.20s'; expected float32 or float64 "
                     "of this machine, as a.astype('f4') gives",
                     view->format ? view->format : "B");
    else if (view->shape[0] && view->shape[1] &&
             ((view->shape[1] > 1 && view->strides[1] != view->itemsize) ||
              view->strides[0] < view->shape[1] * view->itemsize ||
              view->strides[0] % view->itemsize ||
              (uintptr_t)view->buf % (size_t)view->itemsize))
        PyErr_SetString(PyExc_ValueError,
                        "the coordinates of a vector are not side by side; "
                        "make a copy with numpy.ascontiguousarray(a)");
    else {
        *out = (bly_vectors){ .at = view->buf,
                              .n = (size_t)view->shape[0],
                              .dims = (size_t)view->shape[1],
                              .doubles = view->itemsize == 8 };
        if (out->n > 0 && out->dims > 0)
            out->stride = (size_t)view->strides[0];
        return true;
    }
    PyBuffer_Release(view);
    return false;
}

/* n items of one type of struct's as a view; the reference to `bytes` is
 * consumed. columns 0: of one dimension. */
static PyObject *view_of(PyObject *bytes, const char *type, size_t n,
                         size_t columns)
{
    if (!bytes)
        return NULL;
    PyObject *const plain = PyMemoryView_FromObject(bytes), *out = NULL;
    Py_DECREF(bytes);
    /* cast() knows no shape with a zero in it. */
    if (plain && columns && n)
        out = PyObject_CallMethod(plain, "cast", "s(nn)", type, (Py_ssize_t)n,
                                  (Py_ssize_t)columns);
    else if (plain)
        out = PyObject_CallMethod(plain, "cast", "s", type);
    Py_XDECREF(plain);
    return out;
}

/* ---------------------------------------------------------------- arguments */

static bool real_of(PyObject *object, double *out)
{
    if (!object)
        return true;
    *out = PyFloat_AsDouble(object);
    if (*out == 0) /* which the library would take as "choose" */
        *out = -1;
    return !PyErr_Occurred();
}

static bool flag_of(PyObject *object, uint32_t bit, uint32_t *flags)
{
    const int is = object ? PyObject_IsTrue(object) : 0;
    *flags |= is > 0 ? bit : 0;
    return is >= 0;
}

static bool threads_of(PyObject *object, uint32_t *out)
{
    uint64_t n = 0;
    if (object && !py_count_of(object, &n))
        return false;
    *out = n > 1000 ? 1000 : (uint32_t)n;
    return true;
}

/* threshold, recall, seed, threads, skip_bad: values[0] to values[4]. */
#define NEAR_NAMES "threshold", "recall", "seed", "threads", "skip_bad"
static bool spec_of(PyObject **v, bly_near_spec *out)
{
    return real_of(v[0], &out->threshold) && real_of(v[1], &out->recall) &&
           (!v[2] || py_count_of(v[2], &out->seed)) &&
           threads_of(v[3], &out->nthreads) &&
           flag_of(v[4], BLY_NEAR_SKIP, &out->flags);
}

static bool given(const char *call, PyObject *object)
{
    if (!object)
        PyErr_Format(PyExc_TypeError, "%s() wants an array", call);
    return object != NULL;
}

/* ------------------------------------------------------------------- pairs */

/* What a search found, in memory of its own: no lock is held. */
struct found {
    bly_near_pair *at;
    size_t n;
};

static bly_status found_put(const bly_near_pair *pairs, size_t n, void *ctx)
{
    struct found *const f = ctx;
    bly_near_pair *const at = realloc(f->at, (f->n + n) * sizeof *at);
    if (!at)
        return BLY_ENOMEM;
    memcpy(at + f->n, pairs, n * sizeof *at);
    f->at = at;
    f->n += n;
    return BLY_OK;
}

/* Three views: a, b, cosine. */
static PyObject *found_views(const struct found *f)
{
    const Py_ssize_t nbytes = (Py_ssize_t)(f->n * sizeof(uint64_t));
    PyObject *bytes[3], *views[3] = { NULL };
    for (unsigned i = 0; i < 3; i++) {
        bytes[i] = PyBytes_FromStringAndSize(NULL, nbytes);
        char *const to = bytes[i] ? PyBytes_AsString(bytes[i]) : NULL;
        for (size_t k = 0; to && k < f->n; k++) {
            const bly_near_pair *const p = &f->at[k];
            const void *const from = i == 0   ? (const void *)&p->a
                                     : i == 1 ? (const void *)&p->b
                                              : (const void *)&p->cosine;
            memcpy(to + 8 * k, from, 8);
        }
        views[i] = view_of(bytes[i], i < 2 ? "Q" : "d", f->n, 0);
    }
    PyObject *const out = views[0] && views[1] && views[2]
                              ? PyTuple_Pack(3, views[0], views[1], views[2])
                              : NULL;
    for (unsigned i = 0; i < 3; i++)
        Py_XDECREF(views[i]);
    return out;
}

static PyObject *search(const bly_vectors *v, const bly_vectors *queries,
                        const bly_near_spec *spec)
{
    struct found f = { 0 };
    bly_status st = BLY_OK;
    PyThreadState *const thread = PyEval_SaveThread();
    if (v->n && (!queries || queries->n))
        st = queries ? bly_near_of(v, queries, spec, found_put, &f, NULL)
                     : bly_near_pairs(v, spec, found_put, &f, NULL);
    PyEval_RestoreThread(thread);
    PyObject *const out = st ? py_raise(st) : found_views(&f);
    free(f.at);
    return out;
}

PyObject *py_vector_pairs(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "vectors", NEAR_NAMES, "all", NULL };
    PyObject *v[7], *out = NULL;
    bly_near_spec spec = { 0 };
    bly_vectors vectors;
    Py_buffer view;
    (void)module;
    if (!py_args("vector_pairs", args, kwargs, names, 2, v) ||
        !given("vector_pairs", v[0]) || !spec_of(v + 1, &spec) ||
        !flag_of(v[6], BLY_NEAR_ALL, &spec.flags) ||
        !vectors_of(v[0], &view, &vectors))
        return NULL;
    out = search(&vectors, NULL, &spec);
    PyBuffer_Release(&view);
    return out;
}

PyObject *py_vector_near(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "vectors", "queries", NEAR_NAMES,
                                         "top", NULL };
    PyObject *v[8], *out = NULL;
    bly_near_spec spec = { 0 };
    bly_vectors vectors, queries;
    Py_buffer view, asking;
    (void)module;
    if (!py_args("vector_near", args, kwargs, names, 3, v) ||
        !given("vector_near", v[0]) || !given("vector_near", v[1]) ||
        !spec_of(v + 2, &spec) || (v[7] && !py_count_of(v[7], &spec.most)) ||
        !vectors_of(v[0], &view, &vectors))
        return NULL;
    if (vectors_of(v[1], &asking, &queries)) {
        out = search(&vectors, &queries, &spec);
        PyBuffer_Release(&asking);
    }
    PyBuffer_Release(&view);
    return out;
}

PyObject *py_vector_dedup(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "vectors", NEAR_NAMES, NULL };
    PyObject *v[6], *out = NULL;
    bly_near_spec spec = { 0 };
    bly_vectors vectors;
    Py_buffer view;
    (void)module;
    if (!py_args("vector_dedup", args, kwargs, names, 2, v) ||
        !given("vector_dedup", v[0]) || !spec_of(v + 1, &spec) ||
        !vectors_of(v[0], &view, &vectors))
        return NULL;
    PyObject *const bytes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * vectors.n));
    if (bytes) {
        uint64_t *const witness = (void *)PyBytes_AsString(bytes);
        bly_status st = BLY_OK;
        PyThreadState *const thread = PyEval_SaveThread();
        if (vectors.n)
            st = bly_near_dedup(&vectors, &spec, witness, NULL, NULL);
        PyEval_RestoreThread(thread);
        if (st) {
            Py_DECREF(bytes);
            py_raise(st);
        } else {
            out = view_of(bytes, "Q", vectors.n, 0);
        }
    }
    PyBuffer_Release(&view);
    return out;
}

/* ----------------------------------------------------------------- sketches */

PyObject *py_vector_sketch(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "vectors", "bits", "seed", NULL };
    PyObject *v[3], *out = NULL;
    bly_vectors vectors;
    bly_planes_spec spec = { .nbits = 256 };
    uint64_t nbits = 256;
    Py_buffer view;
    (void)module;
    if (!py_args("vector_sketch", args, kwargs, names, 2, v) ||
        !given("vector_sketch", v[0]) || (v[1] && !py_count_of(v[1], &nbits)) ||
        (v[2] && !py_count_of(v[2], &spec.seed)) ||
        !vectors_of(v[0], &view, &vectors))
        return NULL;
    spec.dims = vectors.dims;
    /* 0 and what does not fit are refused like other numbers. */
    spec.nbits = nbits && nbits <= BLY_PLANES_MOST_BITS ? (uint32_t)nbits : 1;
    const size_t nwords = spec.nbits / 64;
    PyObject *const bytes =
        vectors.n > (size_t)PY_SSIZE_T_MAX / 512
            ? PyErr_NoMemory()
            : PyBytes_FromStringAndSize(NULL,
                                        (Py_ssize_t)(8 * nwords * vectors.n));
    if (bytes) {
        uint64_t *const sides = (void *)PyBytes_AsString(bytes);
        bly_planes *p = NULL;
        PyThreadState *const thread = PyEval_SaveThread();
        bly_status st = bly_planes_new(&spec, &p);
        if (!st && vectors.n)
            st = bly_planes_sides(p, &vectors, sides, NULL);
        bly_planes_free(p);
        PyEval_RestoreThread(thread);
        if (st) {
            Py_DECREF(bytes);
            py_raise(st);
        } else {
            out = view_of(bytes, "Q", vectors.n, nwords);
        }
    }
    PyBuffer_Release(&view);
    return out;
}

PyObject *py_vector_angle(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "a", "b", NULL };
    PyObject *v[2], *out = NULL;
    Py_buffer a, b;
    (void)module;
    if (!py_args("vector_angle", args, kwargs, names, 2, v) ||
        !given("vector_angle", v[0]) || !given("vector_angle", v[1]) ||
        PyObject_GetBuffer(v[0], &a, PyBUF_SIMPLE))
        return NULL;
    if (!PyObject_GetBuffer(v[1], &b, PyBUF_SIMPLE)) {
        if (a.len != b.len || !a.len || a.len % 8 ||
            a.len > BLY_PLANES_MOST_BITS / 8) {
            PyErr_Format(PyExc_ValueError,
                         "sketches of %zd and %zd bytes; expected two rows of "
                         "what vector_sketch() gives",
                         a.len, b.len);
        } else {
            uint64_t words[2][BLY_PLANES_MOST_BITS / 64];
            memcpy(words[0], a.buf, (size_t)a.len);
            memcpy(words[1], b.buf, (size_t)b.len);
            const unsigned nbits = (unsigned)a.len * 8;
            const bly_angle angle = bly_angle_of(
                bly_sides_differ(words[0], words[1], nbits), nbits);
            out = Py_BuildValue("(dd)", angle.angle, angle.sd);
        }
        PyBuffer_Release(&b);
    }
    PyBuffer_Release(&a);
    return out;
}

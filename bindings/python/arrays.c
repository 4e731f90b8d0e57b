/*
 * arrays.c - keys from buffers and from columns of Arrow
 *
 * Integers of 64 bits are used in place; narrower ones are widened in pieces.
 * Text and bytes of a column become runs of pointers. The exporter promises
 * that a column has as many bytes as its offsets say, since nobody else can
 * know; that the offsets never go backwards is checked.
 *
 * An array that someone else writes to during the call gives answers about what
 * was read: every number is read once.
 */
#include "bindings/python/python.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/python/arrow.h"

/* How long the interpreter's lock and signals may have to wait: some 0.05 s. A
 * multiple of 64. */
#define WHOLE_PIECE ((size_t)1 << 22)
#define WIDE_PIECE ((size_t)1 << 14)

/* Integers of one width one after another. */
struct integers {
    const char *at;
    size_t width;
    bool is_signed;
};

static uint64_t integer_at(const struct integers *a, size_t i)
{
    const char *const p = a->at + i * a->width;
    uint64_t u = 0;
    switch (a->width) {
    case 1:
        u = *(const uint8_t *)p;
        return a->is_signed ? (uint64_t)(int64_t)(int8_t)u : u;
    case 2: {
        uint16_t x;
        memcpy(&x, p, sizeof x);
        return a->is_signed ? (uint64_t)(int64_t)(int16_t)x : x;
    }
    case 4: {
        uint32_t x;
        memcpy(&x, p, sizeof x);
        return a->is_signed ? (uint64_t)(int64_t)(int32_t)x : x;
    }
    default:
        memcpy(&u, p, sizeof u);
        return u;
    }
}

/* Those from `from` to `to`. */
static bool integers_each(const struct integers *a, size_t from, size_t to,
                          struct py_sink *s)
{
    /* What is narrower than 64 bits has the same value in both types. */
    struct py_run run = { a->is_signed || a->width < 8 ? BLY_KEYS_INT64
                                                       : BLY_KEYS_UINT64,
                          NULL, 0 };
    const bool whole =
        a->width == 8 && (uintptr_t)a->at % sizeof(uint64_t) == 0;
    const size_t piece = whole ? WHOLE_PIECE : WIDE_PIECE;
    uint64_t *const room = whole ? NULL : PyMem_Malloc(piece * sizeof *room);
    bool ok = whole || room;
    if (!ok)
        PyErr_NoMemory();
    for (; ok && from < to; from += run.n) {
        run.n = to - from < piece ? to - from : piece;
        run.keys = a->at + from * a->width;
        if (!whole) {
            for (size_t i = 0; i < run.n; i++)
                room[i] = integer_at(a, from + i);
            run.keys = room;
        }
        ok = s->take(s, &run) && !PyErr_CheckSignals();
    }
    PyMem_Free(room);
    return ok;
}

/* ------------------------------------------------------------------ buffers */

/* The format of the struct module, for one integer of this machine's order. */
static bool integer_format(const char *format, size_t width, bool *is_signed)
{
    const union {
        uint16_t word;
        uint8_t first;
    } one = { 1 };
    if (!format)
        format = "B";
    if (*format == '@' || *format == '=' ||
        *format == (one.first ? '<' : '>') ||
        (*format && strchr("<>!", *format) && width == 1))
        format++;
    if (!*format || format[1])
        return false;
    *is_signed = strchr("bhilqn", *format) != NULL;
    return (*is_signed || strchr("BHILQN", *format)) &&
           (width == 1 || width == 2 || width == 4 || width == 8);
}

static int buffer_each(PyObject *keys, struct py_sink *s)
{
    Py_buffer view;
    struct integers a = { 0 };
    int done = -1;
    if (PyObject_GetBuffer(keys, &view, PyBUF_FULL_RO))
        return -1;
    a.at = view.buf;
    a.width = (size_t)view.itemsize;
    if (!integer_format(view.format, a.width, &a.is_signed)) {
        if (view.format && (strchr("<>!", view.format[0]) &&
                            strpbrk(view.format, "hilqnHILQN")))
            PyErr_SetString(
                PyExc_ValueError,
                "integers in the byte order of another machine; convert them "
                "to this machine's with a.astype(a.dtype.newbyteorder('='))");
        else if (view.format && !strcmp(view.format, "?"))
            PyErr_SetString(PyExc_TypeError,
                            "an array of bool is a mask, and has no keys");
        else
            done = 0; /* let its items say what they are */
    } else if (view.ndim != 1)
        PyErr_Format(
            PyExc_ValueError,
            "an array of %d dimensions; expected one, as a.ravel() gives",
            view.ndim);
    else if (!PyBuffer_IsContiguous(&view, 'C'))
        PyErr_SetString(PyExc_ValueError,
                        "the array is not contiguous; make a contiguous copy "
                        "with numpy.ascontiguousarray(a)");
    else if (integers_each(&a, 0, (size_t)view.len / a.width, s))
        done = 1;
    PyBuffer_Release(&view);
    return done;
}

/* -------------------------------------------------------------------- Arrow */

#define ARROW_MOST (INT64_MAX / 16) /* entries, so that no sum overflows */

/* Integers by the letters of the format. */
static bool arrow_integers(const char *format, struct integers *a)
{
    static const char letters[] = "cCsSiIlL";
    const char *const at =
        format[0] && !format[1] ? strchr(letters, format[0]) : NULL;
    if (!at)
        return false;
    a->width = (size_t)1 << (at - letters) / 2;
    a->is_signed = (at - letters) % 2 == 0;
    return true;
}

struct texts {
    const char *bytes;
    const void *offsets;
    bool wide;
    bly_key_type type;
};

static bool arrow_texts(const char *format, struct texts *t)
{
    if (!format[0] || format[1] || !strchr("uUzZ", format[0]))
        return false;
    t->wide = format[0] == 'U' || format[0] == 'Z';
    t->type =
        format[0] == 'u' || format[0] == 'U' ? BLY_KEYS_TEXT : BLY_KEYS_BYTES;
    return true;
}

static int64_t offset_at(const struct texts *t, size_t i)
{
    return t->wide ? ((const int64_t *)t->offsets)[i]
                   : ((const int32_t *)t->offsets)[i];
}

static bool texts_each(const struct texts *t, size_t from, size_t to,
                       struct py_sink *s)
{
    bly_bytes *const keys = PyMem_Malloc(WIDE_PIECE * sizeof *keys);
    struct py_run run = { t->type, keys, 0 };
    bool ok = keys != NULL;
    if (!ok)
        PyErr_NoMemory();
    for (; ok && from < to; from += run.n) {
        run.n = to - from < WIDE_PIECE ? to - from : WIDE_PIECE;
        int64_t at = offset_at(t, from);
        ok = at >= 0;
        for (size_t i = 0; ok && i < run.n; i++) {
            const int64_t end = offset_at(t, from + i + 1);
            ok = end >= at && (t->bytes || end == at);
            keys[i] = (bly_bytes){ t->bytes ? t->bytes + at : "",
                                   (size_t)(end - at) };
            at = end;
        }
        if (!ok)
            PyErr_SetString(PyExc_ValueError,
                            "the offsets of the column are not in order");
        ok = ok && s->take(s, &run) && !PyErr_CheckSignals();
    }
    PyMem_Free(keys);
    return ok;
}

static bool is_there(const uint8_t *validity, size_t i)
{
    return !validity || (validity[i / 8] >> i % 8 & 1);
}

/* Runs of entries that are there, and of those that are not. */
static bool column_each(const struct ArrowArray *array,
                        const struct integers *a, const struct texts *t,
                        struct py_sink *s)
{
    const uint8_t *const validity =
        array->null_count ? array->buffers[0] : NULL;
    const size_t end = (size_t)(array->offset + array->length);
    bool ok = true;
    for (size_t from = (size_t)array->offset, to; ok && from < end; from = to) {
        const bool there = is_there(validity, from);
        to = validity ? from + 1 : end;
        while (to < end && is_there(validity, to) == there)
            to++;
        if (!there)
            ok = !s->nulls || s->nulls(s, to - from);
        else
            ok = a ? integers_each(a, from, to, s) : texts_each(t, from, to, s);
    }
    return ok;
}

static bool arrow_each(const struct ArrowSchema *schema,
                       const struct ArrowArray *array, struct py_sink *s)
{
    struct integers a = { 0 };
    struct texts t = { 0 };
    const char *const format = schema->format ? schema->format : "";
    const bool ints = arrow_integers(format, &a);
    if (schema->dictionary || (!ints && !arrow_texts(format, &t))) {
        PyErr_Format(PyExc_TypeError,
                     "a column of Arrow's format '%.20s'%s; expected text "
                     "(string, large_string), binary or integers",
                     format, schema->dictionary ? " with a dictionary" : "");
        return false;
    }
    if (array->length < 0 || array->offset < 0 || array->length > ARROW_MOST ||
        array->offset > ARROW_MOST || array->n_buffers != (ints ? 2 : 3) ||
        !array->buffers || (array->length && !array->buffers[1]) ||
        (array->null_count > 0 && !array->buffers[0])) {
        PyErr_SetString(PyExc_ValueError, "the column is damaged: its buffers "
                                          "are not those of its format");
        return false;
    }
    a.at = array->buffers[1];
    t.offsets = array->buffers[1];
    t.bytes = ints ? NULL : array->buffers[2];
    return column_each(array, ints ? &a : NULL, &t, s);
}

/* The capsules release what they hold when they go. */
static int capsules_each(PyObject *method, struct py_sink *s)
{
    int done = -1;
    PyObject *const pair = PyObject_CallNoArgs(method);
    if (!pair)
        return -1;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
        PyErr_SetString(PyExc_TypeError,
                        "__arrow_c_array__() should return two capsules");
    else {
        const struct ArrowSchema *const schema =
            PyCapsule_GetPointer(PyTuple_GetItem(pair, 0), "arrow_schema");
        const struct ArrowArray *const array =
            schema
                ? PyCapsule_GetPointer(PyTuple_GetItem(pair, 1), "arrow_array")
                : NULL;
        if (array && (!schema->release || !array->release))
            PyErr_SetString(PyExc_ValueError,
                            "the column was released already");
        else if (array && arrow_each(schema, array, s))
            done = 1;
    }
    Py_DECREF(pair);
    return done;
}

/* A method of the object's type, or NULL without an exception. */
static PyObject *method_of(PyObject *object, const char *name)
{
    PyObject *const method = PyObject_GetAttrString(object, name);
    if (!method && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return method;
}

int py_arrays_each(PyObject *keys, struct py_sink *s)
{
    int done = 0;
    if (PyTuple_CheckExact(keys))
        return 0;
    if (PyObject_CheckBuffer(keys)) {
        done = buffer_each(keys, s);
        if (done)
            return done;
    }
    PyObject *method = method_of(keys, "__arrow_c_array__");
    if (method) {
        done = capsules_each(method, s);
        Py_DECREF(method);
        return done;
    }
    if (PyErr_Occurred())
        return -1;
    method = method_of(keys, "__arrow_c_stream__");
    if (method) {
        Py_DECREF(method);
        PyErr_SetString(PyExc_TypeError,
                        "a stream of columns; pass one column at a time "
                        "(x.combine_chunks(), or each of x.chunks)");
        return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

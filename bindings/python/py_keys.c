/*
 * py_keys.c - keys from objects, lists and iterators
 *
 * str is text, in UTF-8; int is an integer; bytes, and what else has a buffer,
 * are bytes. The filter's own type of keys decides what comes of them, in the
 * library.
 *
 * Keys of a batch are gathered in runs of one type and handed over a run at a
 * time. A run is as long as it may be without its strings leaving the second
 * level of the cache between the gathering and the hashing, since the
 * interpreter's lock is given back for each: a thread that wants it again may
 * wait for 5 ms.
 */
#include "bindings/python/python.h"

#include <string.h>

#define RUN_FIRST 512
#define RUN_MOST 16384

/* ---------------------------------------------------------------- one key */

/* An int of more than 64 bits has a key only where keys are text. */
static bool wide_integer(PyObject *number, bool text, struct py_key *out)
{
    Py_ssize_t len = 0;
    PyErr_Clear();
    out->wide = true;
    if (!text) {
        PyErr_SetString(PyExc_ValueError,
                        "an integer of more than 64 bits cannot be a key; "
                        "expected -2^63 to 2^64 - 1, or a filter of text");
        return false;
    }
    out->room = PyObject_Str(number);
    const char *const at =
        out->room ? PyUnicode_AsUTF8AndSize(out->room, &len) : NULL;
    out->type = BLY_KEYS_TEXT;
    out->as.bytes = (bly_bytes){ at, (size_t)len };
    return at != NULL;
}

static bool integer_key(PyObject *number, bool text, struct py_key *out)
{
    int overflow = 0;
    out->type = BLY_KEYS_INT64;
    out->as.sint = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (!overflow)
        return out->as.sint != -1 || !PyErr_Occurred();
    if (overflow > 0) {
        out->type = BLY_KEYS_UINT64;
        out->as.uint = PyLong_AsUnsignedLongLong(number);
        if (out->as.uint != UINT64_MAX || !PyErr_Occurred())
            return true;
    }
    return wide_integer(number, text, out);
}

/* bytes, as they are, or a copy of another buffer, which may change. */
static bool bytes_key(PyObject *object, struct py_key *out)
{
    char *at;
    Py_ssize_t len;
    if (!PyBytes_Check(object))
        object = out->room = PyBytes_FromObject(object);
    if (!object || PyBytes_AsStringAndSize(object, &at, &len))
        return false;
    out->type = BLY_KEYS_BYTES;
    out->as.bytes = (bly_bytes){ at, (size_t)len };
    return true;
}

/* Bytes are bytes; NumPy's numbers have buffers as well, but mean something
 * else. */
static bool is_byte_buffer(PyObject *object)
{
    Py_buffer view;
    if (!PyObject_CheckBuffer(object))
        return false;
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO)) {
        PyErr_Clear();
        return false;
    }
    const bool yes =
        view.itemsize == 1 && (!view.format || strchr("Bbc", view.format[0]));
    PyBuffer_Release(&view);
    return yes;
}

static __attribute__((noinline)) bool other_key(PyObject *object, bool text,
                                                struct py_key *out)
{
    if (PyLong_Check(object))
        return integer_key(object, text, out);
    if (PyIndex_Check(object)) { /* NumPy's integers */
        PyObject *const number = PyNumber_Index(object);
        const bool ok = number && integer_key(number, text, out);
        Py_XDECREF(number);
        return ok;
    }
    if (is_byte_buffer(object))
        return bytes_key(object, out);
    PyObject *const name =
        PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    if (name)
        PyErr_Format(PyExc_TypeError,
                     "%S cannot be a key; expected str, int or bytes", name);
    Py_XDECREF(name);
    return false;
}

bool py_key_of(PyObject *object, bool text, struct py_key *out)
{
    out->room = NULL;
    out->wide = false;
    if (PyUnicode_Check(object)) {
        Py_ssize_t len;
        const char *const at = PyUnicode_AsUTF8AndSize(object, &len);
        out->type = BLY_KEYS_TEXT;
        out->as.bytes = (bly_bytes){ at, (size_t)len };
        return at != NULL;
    }
    if (PyBytes_Check(object))
        return bytes_key(object, out);
    if (other_key(object, text, out))
        return true;
    py_key_release(out);
    out->room = NULL;
    return false;
}

bool py_count_of(PyObject *object, uint64_t *out)
{
    PyObject *const number = PyNumber_Index(object);
    const unsigned long long n = number ? PyLong_AsUnsignedLongLong(number) : 0;
    const bool bad = !number || (n == ULLONG_MAX && PyErr_Occurred());
    Py_XDECREF(number);
    *out = n;
    if (bad && PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_ValueError,
                        "out of range; expected a number from 0 to 2^64 - 1");
    return !bad;
}

/* ------------------------------------------------------------------- a run */

struct gathered {
    struct py_sink *sink;
    bly_key_type type;
    bly_bytes *bytes;
    uint64_t *ints, *values;
    PyObject **held; /* what the bytes belong to */
    size_t n, room;
};

static bool is_bytes(bly_key_type type)
{
    return type == BLY_KEYS_TEXT || type == BLY_KEYS_BYTES;
}

static void gathered_drop(struct gathered *g)
{
    for (size_t i = 0; i < g->n && is_bytes(g->type); i++)
        Py_DECREF(g->held[i]);
    g->n = 0;
}

static void gathered_free(struct gathered *g)
{
    gathered_drop(g);
    PyMem_Free(g->bytes);
    PyMem_Free(g->ints);
    PyMem_Free(g->values);
    PyMem_Free(g->held);
}

static void *regrown(void *at, size_t n, size_t width)
{
    return PyMem_Realloc(at, n * width);
}

/* A failure leaves the room there was. */
static bool gathered_grow(struct gathered *g)
{
    const size_t room = g->room ? RUN_MOST : RUN_FIRST;
    bly_bytes *const bytes = regrown(g->bytes, room, sizeof *bytes);
    if (bytes)
        g->bytes = bytes;
    uint64_t *const ints = regrown(g->ints, room, sizeof *ints);
    if (ints)
        g->ints = ints;
    PyObject **const held = regrown(g->held, room, sizeof *held);
    if (held)
        g->held = held;
    uint64_t *values = g->values;
    if (g->sink->take_values) {
        values = regrown(g->values, room, sizeof *values);
        if (values)
            g->values = values;
    }
    if (!bytes || !ints || !held || (g->sink->take_values && !values)) {
        PyErr_NoMemory();
        return false;
    }
    g->room = room;
    return true;
}

static bool gathered_give(struct gathered *g)
{
    const struct py_run run = { g->type,
                                is_bytes(g->type) ? (const void *)g->bytes
                                                  : (const void *)g->ints,
                                g->n };
    const bool ok =
        !g->n ||
        (g->sink->take_values ? g->sink->take_values(g->sink, &run, g->values)
                              : g->sink->take(g->sink, &run));
    gathered_drop(g);
    return ok;
}

static bool gathered_flush(struct gathered *g)
{
    return gathered_give(g) && !PyErr_CheckSignals();
}

/* After an exception: the keys before the one that is to blame go where all of
 * them were to go. */
static void gathered_rescue(struct gathered *g)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    gathered_give(g);
    PyErr_Restore(type, value, trace); /* in place of what that said */
}

/* Takes the reference to object over. */
static bool gathered_add(struct gathered *g, PyObject *object, uint64_t value)
{
    struct py_key key;
    if (!py_key_of(object, g->sink->text, &key)) {
        Py_DECREF(object);
        return false;
    }
    if (key.room) { /* the key is what was made of it */
        Py_DECREF(object);
        object = key.room;
    }
    if ((g->n && key.type != g->type) || g->n == g->room) {
        const bool full = g->n == g->room;
        if (!gathered_flush(g) ||
            (full && g->room < RUN_MOST && !gathered_grow(g))) {
            Py_DECREF(object);
            return false;
        }
    }
    g->type = key.type;
    if (g->sink->take_values)
        g->values[g->n] = value;
    if (is_bytes(key.type)) {
        g->bytes[g->n] = key.as.bytes;
        g->held[g->n++] = object;
    } else {
        g->ints[g->n++] = key.as.uint; /* or its bits */
        Py_DECREF(object);
    }
    return true;
}

/* A pair of a key and a value; the reference to it is consumed. */
static bool gathered_pair(struct gathered *g, PyObject *pair)
{
    uint64_t value = 0;
    bool ok = PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
    if (!ok)
        PyErr_SetString(PyExc_TypeError,
                        "this kind keeps a value for each key; expected a "
                        "mapping, or pairs (key, value)");
    ok = ok && py_count_of(PyTuple_GetItem(pair, 1), &value);
    PyObject *const key = ok ? PyTuple_GetItem(pair, 0) : NULL;
    Py_XINCREF(key);
    Py_DECREF(pair);
    return key && gathered_add(g, key, value);
}

static bool gathered_item(struct gathered *g, PyObject *item)
{
    return g->sink->take_values ? gathered_pair(g, item)
                                : gathered_add(g, item, 0);
}

/* -------------------------------------------------------------- all of them */

/* A list may change whenever Python code runs, and while the interpreter's lock
 * is free. */
static bool each_of_list(PyObject *list, struct gathered *g)
{
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        PyObject *const item = PyList_GetItem(list, i);
        if (!item)
            return false;
        Py_INCREF(item);
        if (!gathered_item(g, item))
            return false;
    }
    return true;
}

static bool each_of_iterator(PyObject *keys, struct gathered *g)
{
    PyObject *const it = PyObject_GetIter(keys);
    PyObject *item = NULL;
    bool ok = it != NULL;
    while (ok && (item = PyIter_Next(it)) != NULL)
        ok = gathered_item(g, item);
    Py_XDECREF(it);
    return ok && !PyErr_Occurred();
}

bool py_keys_each(PyObject *keys, struct py_sink *s)
{
    struct gathered g = { .sink = s };
    PyObject *pairs = NULL;
    if (PyUnicode_Check(keys) || PyBytes_Check(keys) ||
        PyByteArray_Check(keys)) {
        PyErr_SetString(PyExc_TypeError,
                        "that is one key; expected a list of keys, an array of "
                        "integers, a column or another iterable");
        return false;
    }
    const int known =
        s->take_values || PyList_CheckExact(keys) ? 0 : py_arrays_each(keys, s);
    if (known)
        return known > 0;
    if (s->take_values && PyObject_HasAttrString(keys, "items")) {
        pairs = PyMapping_Items(keys);
        if (!pairs)
            return false;
        keys = pairs;
    }
    bool ok = gathered_grow(&g) &&
              (PyList_CheckExact(keys) ? each_of_list(keys, &g)
                                       : each_of_iterator(keys, &g));
    if (ok)
        ok = gathered_flush(&g);
    else
        gathered_rescue(&g);
    gathered_free(&g);
    Py_XDECREF(pairs);
    return ok;
}

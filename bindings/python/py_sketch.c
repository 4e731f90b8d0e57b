/*
 * py_sketch.c - what the sketches share: life, files, copies, unions, keys
 *
 * A bly_stored holds a sketch of any type, so that all of this is written once.
 */
#include "bindings/python/python.h"

#include <string.h>

PyObject *py_sketch_wrap(PyTypeObject *type, bly_stored *s)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_sketch *const self = (py_sketch *)alloc(type, 0);
    if (self && gate_make(&self->gate)) {
        self->stored = *s;
        return (PyObject *)self;
    }
    if (self) {
        PyErr_NoMemory();
        ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
        Py_DECREF(type);
    }
    bly_stored_free(s);
    return NULL;
}

PyObject *py_sketch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    bly_stored none = { 0 };
    (void)args;
    (void)kwargs;
    return py_sketch_wrap(type, &none);
}

void py_sketch_dealloc(PyObject *object)
{
    py_sketch *const self = (py_sketch *)object;
    PyTypeObject *const type = Py_TYPE(object);
    bly_stored_free(&self->stored);
    gate_free(&self->gate);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

int py_sketch_set(PyObject *object, bly_stored made)
{
    py_sketch *const self = (py_sketch *)object;
    struct gate_pass pass = gate_enter(&self->gate, true);
    bly_stored_free(&self->stored);
    self->stored = made;
    gate_leave(&pass);
    return 0;
}

static bool not_made(void)
{
    PyErr_SetString(PyExc_ValueError, "the sketch was never made: __init__() "
                                      "was not called");
    return false;
}

bool py_sketch_read(PyObject *object, struct gate_pass *pass)
{
    py_sketch *const self = (py_sketch *)object;
    *pass = gate_enter(&self->gate, false);
    if (self->stored.type)
        return true;
    gate_leave(pass);
    return not_made();
}

/* --------------------------------------------------------------------- keys */

#define HASH_PIECE 2048

bly_status py_sketch_hashed(py_sketch *s, const bly_hasher *hasher,
                            bly_keying keying, const struct py_run *run,
                            py_sketch_takes *take)
{
    uint64_t hashes[HASH_PIECE];
    bly_status st = BLY_OK;
    for (size_t i = 0; i < run->n && !st; i += HASH_PIECE) {
        const size_t n = run->n - i < HASH_PIECE ? run->n - i : HASH_PIECE;
        st = bly_hash_as(hasher, keying, run->type, py_run_from(run, i), n,
                         hashes, NULL);
        if (!st)
            st = take(s, hashes, n);
    }
    return st;
}

struct sketching {
    struct py_sink sink;
    py_sketch *sketch;
    py_sketch_adds *add;
};

static bool sketch_weights(struct py_sink *sink, const struct py_run *run,
                           const uint64_t *weights)
{
    struct sketching *const s = (struct sketching *)sink;
    struct gate_pass pass = gate_enter(&s->sketch->gate, true);
    const bool made = s->sketch->stored.type;
    const bly_status st = made ? s->add(s->sketch, run, weights) : BLY_OK;
    gate_leave(&pass);
    if (st)
        py_raise(st);
    return !st && (made || not_made());
}

static bool sketch_take(struct py_sink *sink, const struct py_run *run)
{
    return sketch_weights(sink, run, NULL);
}

PyObject *py_sketch_update(PyObject *self, PyObject *keys, py_sketch_adds *add)
{
    struct sketching s = { { .take = sketch_take }, (py_sketch *)self, add };
    if (!py_keys_each(keys, &s.sink))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *py_sketch_add(PyObject *self, const struct py_key *key,
                        const uint64_t *weight, py_sketch_adds *add)
{
    struct sketching s = { { .take = sketch_take }, (py_sketch *)self, add };
    const struct py_run run = { key->type, &key->as, 1 };
    if (!sketch_weights(&s.sink, &run, weight))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *py_sketch_add_object(PyObject *self, PyObject *object,
                               py_sketch_adds *add)
{
    struct py_key key;
    if (!py_key_of(object, false, &key))
        return NULL;
    PyObject *const done = py_sketch_add(self, &key, NULL, add);
    py_key_release(&key);
    return done;
}

/* -------------------------------------------------------------------- files */

static PyObject *opened(PyObject *type, bly_stored *s, bly_stored_type is)
{
    if (s->type == is)
        return py_sketch_wrap((PyTypeObject *)type, s);
    PyErr_Format(PyExc_ValueError, "a sketch of type %s, not %s",
                 bly_stored_name(s->type), bly_stored_name(is));
    bly_stored_free(s);
    return NULL;
}

PyObject *py_sketch_open(PyObject *type, PyObject *from, bly_stored_type is)
{
    bly_stored s = { 0 };
    PyObject *const path = py_path(from);
    if (!path)
        return NULL;
    const char *const at = PyBytes_AsString(path);
    PyThreadState *const thread = PyEval_SaveThread();
    const bly_status st = bly_stored_open(at, NULL, &s);
    PyEval_RestoreThread(thread);
    if (st)
        py_raise_file(st, path);
    Py_DECREF(path);
    return st ? NULL : opened(type, &s, is);
}

PyObject *py_sketch_load(PyObject *type, PyObject *bytes, bly_stored_type is)
{
    bly_stored s = { 0 };
    Py_buffer view;
    if (PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE))
        return NULL;
    const bly_status st = bly_stored_load(view.buf, (size_t)view.len, NULL, &s);
    PyBuffer_Release(&view);
    return st ? py_raise(st) : opened(type, &s, is);
}

static bly_status write_sketch(const void *s, bly_put *put, void *ctx)
{
    return bly_stored_write(s, put, ctx);
}

PyObject *py_sketch_save(PyObject *self, PyObject *to)
{
    struct gate_pass pass;
    PyObject *const path = py_path(to);
    if (!path)
        return NULL;
    const char *const at = PyBytes_AsString(path);
    const bool made = py_sketch_read(self, &pass);
    bly_status st = BLY_OK;
    if (made) {
        st = bly_file_save(at, py_patience, &pass, write_sketch,
                           &((py_sketch *)self)->stored);
        gate_leave(&pass);
        if (st && !PyErr_Occurred())
            py_raise_file(st, path);
    }
    Py_DECREF(path);
    if (!made || st)
        return NULL;
    Py_RETURN_NONE;
}

/* As py_whole_to_bytes(). */
PyObject *py_sketch_to_bytes(PyObject *self, PyObject *none)
{
    const bly_stored *const s = &((py_sketch *)self)->stored;
    PyObject *bytes = NULL;
    bly_status st = BLY_OK;
    size_t want = 0;
    (void)none;
    for (bool again = true; again;) {
        struct gate_pass pass;
        struct py_room room = { NULL, want };
        if (want) {
            Py_XDECREF(bytes);
            bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)want);
            if (!bytes)
                return NULL;
            room.at = PyBytes_AsString(bytes);
        }
        if (!py_sketch_read(self, &pass)) {
            Py_XDECREF(bytes);
            return NULL;
        }
        const size_t is = (size_t)bly_stored_bytes(s);
        again = is != want;
        want = is;
        if (!again)
            st = bly_stored_write(s, py_room_put, &room);
        gate_leave(&pass);
    }
    if (!st)
        return bytes;
    Py_XDECREF(bytes);
    return py_raise(st);
}

static PyObject *loader_of(PyObject *self)
{
    return PyObject_GetAttrString((PyObject *)Py_TYPE(self), "from_bytes");
}

PyObject *py_sketch_reduce(PyObject *self, PyObject *none)
{
    PyObject *const bytes = py_sketch_to_bytes(self, none);
    PyObject *const load = bytes ? loader_of(self) : NULL;
    PyObject *const pair = load ? Py_BuildValue("O(O)", load, bytes) : NULL;
    Py_XDECREF(load);
    Py_XDECREF(bytes);
    return pair;
}

/* ------------------------------------------------------------------- copies */

PyObject *py_sketch_copy(PyObject *self, PyObject *none)
{
    PyObject *const bytes = py_sketch_to_bytes(self, none);
    PyObject *const copy =
        bytes ? py_sketch_load((PyObject *)Py_TYPE(self), bytes,
                               ((py_sketch *)self)->stored.type)
              : NULL;
    Py_XDECREF(bytes);
    return copy;
}

PyObject *py_sketch_deepcopy(PyObject *self, PyObject *memo)
{
    (void)memo;
    return py_sketch_copy(self, NULL);
}

bool py_sketch_alike(PyObject *a, PyObject *b)
{
    return PyObject_TypeCheck(a, Py_TYPE(b)) ||
           PyObject_TypeCheck(b, Py_TYPE(a));
}

PyObject *py_sketch_ior(PyObject *left, PyObject *right)
{
    py_sketch *const a = (py_sketch *)left, *const b = (py_sketch *)right;
    if (!py_sketch_alike(left, right)) {
        Py_INCREF(Py_NotImplemented);
        return Py_NotImplemented;
    }
    struct gate_pass pass = gate_enter_both(&a->gate, true, &b->gate, false);
    const bool made = a->stored.type && b->stored.type;
    const bly_status st =
        made ? bly_stored_merge(&a->stored, &b->stored) : BLY_OK;
    gate_leave(&pass);
    if (!made) {
        not_made();
        return NULL;
    }
    if (st)
        return py_raise(st);
    Py_INCREF(left);
    return left;
}

PyObject *py_sketch_or(PyObject *left, PyObject *right)
{
    if (!py_sketch_alike(left, right)) {
        Py_INCREF(Py_NotImplemented);
        return Py_NotImplemented;
    }
    PyObject *const copy = py_sketch_copy(left, NULL);
    PyObject *const out = copy ? py_sketch_ior(copy, right) : NULL;
    Py_XDECREF(copy);
    return out;
}

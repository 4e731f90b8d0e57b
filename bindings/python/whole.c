/*
 * whole.c - Filter: files, copies, sets, what it knows of itself
 *
 * All of these may take long, and give the interpreter's lock back meanwhile.
 */
#include "bindings/python/python.h"

#include <math.h>
#include <string.h>

static py_filter *as_filter(PyObject *object)
{
    return PyObject_TypeCheck(object, py_filter_type) ? (py_filter *)object
                                                      : NULL;
}

static PyObject *closed_error(void)
{
    PyErr_SetString(PyExc_ValueError, "the filter is closed");
    return NULL;
}

static PyObject *not_implemented(void)
{
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

/* ------------------------------------------------------------------ opening */

static bool checking_of(PyObject *word, bly_checking *out)
{
    static const char *const words[] = { "blocks", "all", "nothing" };
    *out = BLY_CHECK_BLOCKS;
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (PyUnicode_Check(word) &&
            !PyUnicode_CompareWithASCIIString(word, words[i])) {
            *out = (bly_checking)i;
            return true;
        }
    if (word)
        PyErr_Format(PyExc_ValueError,
                     "check=%R; expected 'blocks', 'all' or 'nothing'", word);
    return !word;
}

/* 1 or 0, `otherwise` if it was not given, or -1. */
static int yes_or_no(PyObject *object, int otherwise)
{
    return object ? PyObject_IsTrue(object) : otherwise;
}

PyObject *py_whole_open(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "path",  "secret", "mapped",
                                         "blind", "check",  "max_bytes",
                                         NULL };
    PyObject *v[6];
    bly_access how = { 0 };
    bly_filter *f = NULL;
    if (!py_args("open", args, kwargs, names, 1, v))
        return NULL;
    if (!v[0]) {
        PyErr_SetString(PyExc_TypeError, "open() wants a path");
        return NULL;
    }
    const int mapped = yes_or_no(v[2], 1), blind = yes_or_no(v[3], 0);
    if (mapped < 0 || blind < 0 || !py_secret_of(v[1], &how.secret) ||
        !checking_of(v[4], &how.checking) || !py_most_of(v[5], &how.max_bytes))
        return NULL;
    how.blind = blind;
    PyObject *const path = py_path(v[0]);
    if (!path)
        return NULL;
    const char *const at = PyBytes_AsString(path);
    PyThreadState *const thread = PyEval_SaveThread();
    const bly_status st =
        mapped ? bly_map(at, &how, &f) : bly_open(at, &how, &f);
    PyEval_RestoreThread(thread);
    if (st)
        py_raise_file(st, path);
    Py_DECREF(path);
    return st ? NULL : py_filter_wrap((PyTypeObject *)type, f);
}

/* ------------------------------------------------------------ live filters */

PyObject *py_whole_share(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const own[] = { "path", "reading", NULL };
    PyObject *v[2];
    struct py_spec s;
    bly_access how = { 0 };
    bly_filter *f = NULL;
    if (!py_spec_read(&s, args, kwargs, 1, own, v))
        return NULL;
    if (!v[0])
        PyErr_SetString(PyExc_TypeError, "share() wants a path");
    PyObject *const path = v[0] ? py_path(v[0]) : NULL;
    const int reading = path ? yes_or_no(v[1], 0) : -1;
    if (reading < 0) {
        Py_XDECREF(path);
        py_spec_free(&s);
        return NULL;
    }
    how.reading = reading;
    how.secret = s.spec.secret;
    how.max_bytes = s.spec.max_bytes;
    /* Without a size it must be there already. */
    const bool sized =
        s.spec.items || s.spec.bits || s.spec.kind || s.spec.noptions;
    const char *const at = PyBytes_AsString(path);
    PyThreadState *const thread = PyEval_SaveThread();
    const bly_status st = bly_share(at, sized ? &s.spec : NULL, &how, &f);
    PyEval_RestoreThread(thread);
    py_spec_free(&s);
    if (st)
        py_raise_file(st, path);
    Py_DECREF(path);
    return st ? NULL : py_filter_wrap((PyTypeObject *)type, f);
}

/* What `work` does with the filter, alone or as one who only reads. */
static PyObject *live_work(PyObject *object, bool write,
                           bly_status (*work)(bly_filter *f, bly_live *out),
                           bly_live *out)
{
    py_filter *const self = (py_filter *)object;
    struct gate_pass pass = gate_enter(&self->gate, write);
    const bool open = self->filter;
    const bly_status st = open ? work(self->filter, out) : BLY_OK;
    gate_leave(&pass);
    if (st)
        return py_raise(st);
    if (!open) {
        PyErr_SetString(PyExc_ValueError, "the filter is closed");
        return NULL;
    }
    Py_RETURN_NONE;
}

static bly_status live_checkpoint(bly_filter *f, bly_live *out)
{
    (void)out;
    return bly_checkpoint(f);
}

static bly_status live_accept(bly_filter *f, bly_live *out)
{
    (void)out;
    return bly_live_accept(f);
}

static bly_status live_tell(bly_filter *f, bly_live *out)
{
    return bly_live_of(f, out);
}

PyObject *py_whole_checkpoint(PyObject *self, PyObject *none)
{
    (void)none;
    return py_filter_follow((py_filter *)self)
               ? live_work(self, true, live_checkpoint, NULL)
               : NULL;
}

PyObject *py_whole_accept(PyObject *self, PyObject *none)
{
    (void)none;
    return py_filter_follow((py_filter *)self)
               ? live_work(self, true, live_accept, NULL)
               : NULL;
}

PyObject *py_whole_live(PyObject *self, PyObject *none)
{
    bly_live l;
    (void)none;
    PyObject *const done = py_filter_follow((py_filter *)self)
                               ? live_work(self, false, live_tell, &l)
                               : NULL;
    if (!done)
        return NULL;
    Py_DECREF(done);
    PyObject *const dict = PyDict_New();
    if (dict &&
        py_put(dict, "generation", PyLong_FromUnsignedLongLong(l.generation)) &&
        py_put(dict, "users", PyLong_FromUnsignedLongLong(l.users)) &&
        py_put(dict, "items_added",
               PyLong_FromUnsignedLongLong(l.items_added)) &&
        py_put(dict, "checkpoint", PyLong_FromUnsignedLongLong(l.checkpoint)) &&
        py_put(dict, "checkpoint_time",
               PyLong_FromUnsignedLongLong(l.checkpoint_time)) &&
        py_put(dict, "checkpoint_items",
               PyLong_FromUnsignedLongLong(l.checkpoint_items)) &&
        py_put(dict, "unclean", PyBool_FromLong(l.unclean)) &&
        py_put(dict, "reading", PyBool_FromLong(l.reading)) &&
        py_put(dict, "damaged", PyBool_FromLong(l.damaged)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

PyObject *py_whole_replace(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "filter", "keep", NULL };
    PyObject *v[2];
    py_filter *const self = (py_filter *)object;
    if (!py_args("replace", args, kwargs, names, 1, v))
        return NULL;
    const int keep = yes_or_no(v[1], 0);
    if (keep < 0)
        return NULL;
    if (!v[0] || !PyObject_TypeCheck(v[0], py_filter_type)) {
        PyErr_SetString(PyExc_TypeError, "replace() wants a Filter");
        return NULL;
    }
    py_filter *const next = (py_filter *)v[0];
    if (!py_filter_follow(self))
        return NULL;
    struct gate_pass pass =
        gate_enter_both(&self->gate, true, &next->gate, true);
    const bool open = self->filter && next->filter;
    const bly_status st =
        open ? bly_live_replace(self->filter, next->filter, keep) : BLY_OK;
    gate_leave(&pass);
    if (st)
        return py_raise(st);
    if (!open) {
        PyErr_SetString(PyExc_ValueError, "the filter is closed");
        return NULL;
    }
    if (!py_filter_follow(self))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *py_whole_from_bytes(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "bytes", "secret", "blind",
                                         "max_bytes", NULL };
    PyObject *v[4];
    bly_access how = { 0 };
    bly_filter *f = NULL;
    Py_buffer view;
    if (!py_args("from_bytes", args, kwargs, names, 1, v))
        return NULL;
    const int blind = yes_or_no(v[2], 0);
    if (blind < 0 || !py_secret_of(v[1], &how.secret) ||
        !py_most_of(v[3], &how.max_bytes))
        return NULL;
    if (!v[0]) {
        PyErr_SetString(PyExc_TypeError, "from_bytes() wants bytes");
        return NULL;
    }
    how.blind = blind;
    if (PyObject_GetBuffer(v[0], &view, PyBUF_SIMPLE))
        return NULL;
    PyThreadState *const thread = PyEval_SaveThread();
    const bly_status st = bly_load(view.buf, (size_t)view.len, &how, &f);
    PyEval_RestoreThread(thread);
    PyBuffer_Release(&view);
    return st ? py_raise(st) : py_filter_wrap((PyTypeObject *)type, f);
}

/* ------------------------------------------------------------------ writing */

bool py_room_put(void *ctx, const void *bytes, size_t n)
{
    struct py_room *const r = ctx;
    if (n > r->left)
        return false;
    if (n)
        memcpy(r->at, bytes, n);
    r->at += n;
    r->left -= n;
    return true;
}

/* The number of bytes is known before they are written, and may change while
 * room is made for them. */
PyObject *py_whole_to_bytes(PyObject *object, PyObject *none)
{
    py_filter *const self = (py_filter *)object;
    PyObject *bytes = NULL;
    bly_status st = BLY_OK;
    uint64_t want = 0;
    (void)none;
    for (bool again = true; again;) {
        struct py_room room = { NULL, (size_t)want };
        if (want) {
            Py_XDECREF(bytes);
            bytes = want > PY_SSIZE_T_MAX
                        ? PyErr_NoMemory()
                        : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)want);
            if (!bytes)
                return NULL;
            room.at = PyBytes_AsString(bytes);
        }
        struct gate_pass pass = gate_enter(&self->gate, false);
        const uint64_t is = self->filter ? bly_written_bytes(self->filter) : 0;
        again = is && is != want;
        want = is;
        if (is && !again)
            st = bly_write(self->filter, py_room_put, &room);
        gate_leave(&pass);
    }
    if (want && !st)
        return bytes;
    Py_XDECREF(bytes);
    return want ? py_raise(st) : closed_error();
}

/* The gate is held meanwhile, which those who hold the interpreter's lock never
 * wait for. */
bool py_patience(void *ctx, const char *path, uint64_t ms)
{
    struct gate_pass *const pass = ctx;
    (void)path;
    (void)ms;
    PyEval_RestoreThread(pass->thread);
    const bool on = !PyErr_CheckSignals();
    pass->thread = PyEval_SaveThread();
    return on;
}

static bly_status write_filter(const void *f, bly_put *put, void *ctx)
{
    return bly_write(f, put, ctx);
}

PyObject *py_whole_save(PyObject *object, PyObject *to)
{
    py_filter *const self = (py_filter *)object;
    PyObject *const path = py_path(to);
    if (!path)
        return NULL;
    const char *const at = PyBytes_AsString(path);
    struct gate_pass pass = gate_enter(&self->gate, false);
    const bool open = self->filter;
    const bly_status st =
        open ? bly_file_save(at, py_patience, &pass, write_filter, self->filter)
             : BLY_OK;
    gate_leave(&pass);
    if (st && !PyErr_Occurred())
        py_raise_file(st, path);
    Py_DECREF(path);
    if (!open)
        return closed_error();
    if (st)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *py_whole_reduce(PyObject *object, PyObject *none)
{
    py_filter *const self = (py_filter *)object;
    bly_stats s = { 0 };
    const bool locked = gate_pass_begin(&self->gate, false);
    if (self->filter)
        bly_peek(self->filter, &s);
    gate_pass_end(&self->gate, false, locked);
    if (s.keyed) {
        PyErr_SetString(
            PyExc_TypeError,
            "a keyed filter is not pickled, since its secret does not go with "
            "it; use to_bytes() and from_bytes(bytes, secret=...)");
        return NULL;
    }
    PyObject *const bytes = py_whole_to_bytes(object, none);
    PyObject *const load =
        bytes
            ? PyObject_GetAttrString((PyObject *)Py_TYPE(object), "from_bytes")
            : NULL;
    PyObject *const pair = load ? Py_BuildValue("O(O)", load, bytes) : NULL;
    Py_XDECREF(load);
    Py_XDECREF(bytes);
    return pair;
}

/* --------------------------------------------------------------------- sets */

/* A copy of a, after which b is merged into it or intersected with it. */
static bly_filter *clone_of(py_filter *a, bool *open, bly_status *st)
{
    bly_filter *f = NULL;
    struct gate_pass pass = gate_enter(&a->gate, false);
    *open = a->filter;
    *st = *open ? bly_clone(a->filter, &f) : BLY_OK;
    gate_leave(&pass);
    return f;
}

PyObject *py_whole_copy(PyObject *object, PyObject *none)
{
    bly_status st;
    bool open;
    (void)none;
    bly_filter *const f = clone_of((py_filter *)object, &open, &st);
    if (!open)
        return closed_error();
    return st ? py_raise(st) : py_filter_wrap(Py_TYPE(object), f);
}

typedef bly_status combine(bly_filter *dst, const bly_filter *src);

static PyObject *combined(PyObject *left, PyObject *right, combine *how)
{
    py_filter *const a = as_filter(left), *const b = as_filter(right);
    bly_status st;
    bool open;
    if (!a || !b)
        return not_implemented();
    bly_filter *const f = clone_of(a, &open, &st);
    if (f) {
        struct gate_pass pass = gate_enter(&b->gate, false);
        open = b->filter;
        st = open ? how(f, b->filter) : BLY_OK;
        gate_leave(&pass);
    }
    if (open && !st)
        return py_filter_wrap(py_filter_type, f);
    bly_free(f);
    return open ? py_raise(st) : closed_error();
}

static PyObject *combined_in_place(PyObject *left, PyObject *right,
                                   combine *how)
{
    py_filter *const a = as_filter(left), *const b = as_filter(right);
    bly_filter *copy = NULL;
    bly_status st = BLY_OK;
    if (!a || !b)
        return not_implemented();
    struct gate_pass pass = gate_enter_both(&a->gate, true, &b->gate, false);
    const bool open = a->filter && b->filter;
    if (open && a == b) /* the library wants two */
        st = bly_clone(a->filter, &copy);
    if (open && !st)
        st = how(a->filter, copy ? copy : b->filter);
    if (!a->as_bytes)
        py_filter_look(a);
    bly_free(copy);
    gate_leave(&pass);
    if (!open)
        return closed_error();
    if (st)
        return py_raise(st);
    Py_INCREF(left);
    return left;
}

PyObject *py_whole_or(PyObject *a, PyObject *b)
{
    return combined(a, b, bly_merge);
}

PyObject *py_whole_and(PyObject *a, PyObject *b)
{
    return combined(a, b, bly_intersect);
}

PyObject *py_whole_ior(PyObject *a, PyObject *b)
{
    return combined_in_place(a, b, bly_merge);
}

PyObject *py_whole_iand(PyObject *a, PyObject *b)
{
    return combined_in_place(a, b, bly_intersect);
}

PyObject *py_whole_equal(PyObject *left, PyObject *right, int op)
{
    py_filter *const a = as_filter(left), *const b = as_filter(right);
    if ((op != Py_EQ && op != Py_NE) || !a || !b)
        return not_implemented();
    struct gate_pass pass = gate_enter_both(&a->gate, false, &b->gate, false);
    const bool open = a->filter && b->filter;
    const bool same = open && (a == b || bly_equal(a->filter, b->filter));
    gate_leave(&pass);
    return open ? PyBool_FromLong(same == (op == Py_EQ)) : closed_error();
}

PyObject *py_whole_compare(PyObject *left, PyObject *right)
{
    py_filter *const a = (py_filter *)left, *const b = as_filter(right);
    bly_likeness c;
    if (!b) {
        PyErr_SetString(PyExc_TypeError, "compare() wants another filter");
        return NULL;
    }
    struct gate_pass pass = gate_enter_both(&a->gate, false, &b->gate, false);
    const bool open = a->filter && b->filter;
    const bly_status st = open ? bly_compare(a->filter, b->filter, &c) : BLY_OK;
    gate_leave(&pass);
    if (!open)
        return closed_error();
    return st ? py_raise(st) : py_likeness(&c);
}

/* ------------------------------------------------------------------ knowing */

PyObject *py_whole_info(PyObject *object, PyObject *none)
{
    py_filter *const self = (py_filter *)object;
    (void)none;
    struct py_told *const told = PyMem_Malloc(sizeof *told);
    if (!told)
        return PyErr_NoMemory();
    struct gate_pass pass = gate_enter(&self->gate, false);
    const bool open = self->filter;
    if (open)
        py_told_take(told, self->filter);
    gate_leave(&pass);
    PyObject *const dict = open ? py_told_dict(told) : closed_error();
    PyMem_Free(told);
    return dict;
}

PyObject *py_whole_verify(PyObject *object, PyObject *none)
{
    py_filter *const self = (py_filter *)object;
    (void)none;
    struct gate_pass pass = gate_enter(&self->gate, false);
    const bool open = self->filter;
    const bly_status st = open ? bly_verify(self->filter) : BLY_OK;
    gate_leave(&pass);
    if (!open)
        return closed_error();
    if (st)
        return py_raise(st);
    Py_RETURN_NONE;
}

Py_ssize_t py_whole_len(PyObject *object)
{
    py_filter *const self = (py_filter *)object;
    bly_stats s;
    struct gate_pass pass = gate_enter(&self->gate, false);
    const bool open = self->filter;
    if (open)
        bly_stat(self->filter, &s);
    gate_leave(&pass);
    if (!open) {
        closed_error();
        return -1;
    }
    const double n = isnan(s.items_estimate) ? (double)s.items_added
                                             : round(s.items_estimate);
    if (n < 0x1p62)
        return (Py_ssize_t)n;
    PyErr_SetString(PyExc_OverflowError,
                    "the filter is saturated: it cannot tell how many keys it "
                    "has");
    return -1;
}

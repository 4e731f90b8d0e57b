/*
 * py_filter.c - Filter: keys, one at a time and in batches
 *
 * `key in filter` is the one call that has to be as fast as a set's, so it has
 * a path of its own: a str whose UTF-8 is at hand, a filter that hashes text as
 * it is, and nobody in the way (gate.h).
 */
#include "bindings/python/python.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

PyTypeObject *py_filter_type;

/* The format version of live filters (docs/format.md). */
#define PY_LIVE_FORMAT 4

/* ----------------------------------------------------------- life and death */

void py_filter_look(py_filter *self)
{
    bly_stats s;
    self->as_bytes = self->watched = self->live = false;
    if (!self->filter)
        return;
    const bly_keying k = bly_keying_of(self->filter);
    const bool plain =
        k.type == BLY_KEYS_BYTES || (k.type == BLY_KEYS_TEXT && !k.forms);
    bly_peek(self->filter, &s);
    self->as_bytes = plain && bly_hasher_of(self->filter);
    self->live = s.format == PY_LIVE_FORMAT;
    /* It has sums of blocks. */
    self->watched = s.mapped && s.format >= 2 && !self->live;
}

static bool moved(py_filter *self)
{
    const bool locked = gate_pass_begin(&self->gate, false);
    const bool is = self->live && bly_live_replaced(self->filter);
    gate_pass_end(&self->gate, false, locked);
    return is;
}

bool py_filter_follow(py_filter *self)
{
    bly_status st = BLY_OK;
    if (!self->live || !moved(self))
        return true;
    struct gate_pass pass = gate_enter(&self->gate, true);
    if (self->live && self->filter)
        st = bly_live_follow(&self->filter);
    py_filter_look(self);
    gate_leave(&pass);
    if (st)
        py_raise(st);
    return !st;
}

static PyObject *filter_new(PyTypeObject *type, PyObject *args,
                            PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return py_filter_wrap(type, NULL);
}

/* The filter belongs to the object, or is freed if there can be none. */
PyObject *py_filter_wrap(PyTypeObject *type, bly_filter *f)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_filter *const self = (py_filter *)alloc(type, 0);
    if (self && !gate_make(&self->gate)) {
        PyErr_NoMemory();
        ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
        Py_DECREF(type);
        bly_free(f);
        return NULL;
    }
    if (!self) {
        bly_free(f);
        return NULL;
    }
    self->filter = f;
    py_filter_look(self);
    return (PyObject *)self;
}

static void filter_dealloc(PyObject *object)
{
    py_filter *const self = (py_filter *)object;
    PyTypeObject *const type = Py_TYPE(object);
    bly_free(self->filter);
    gate_free(&self->gate);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* Replace the filter by another one. */
static void filter_replace(py_filter *self, bly_filter *f)
{
    struct gate_pass pass = gate_enter(&self->gate, true);
    bly_filter *const old = self->filter;
    self->filter = f;
    py_filter_look(self);
    bly_free(old);
    gate_leave(&pass);
}

static int filter_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const none[] = { NULL };
    struct py_spec s;
    bly_kind_info kind;
    bly_filter *f = NULL;
    if (!py_spec_read(&s, args, kwargs, 2, none, NULL))
        return -1;
    if (bly_kind_named(s.spec.kind, &kind) && !(kind.can & BLY_CAN(ADD))) {
        PyErr_Format(PyExc_TypeError,
                     "a %s filter is built at once from all its keys; use "
                     "Filter.build(keys, kind='%s')",
                     kind.name, kind.name);
        py_spec_free(&s);
        return -1;
    }
    PyThreadState *const thread = PyEval_SaveThread(); /* it may be large */
    const bly_status st = bly_new(&s.spec, &f);
    PyEval_RestoreThread(thread);
    if (st)
        py_raise(st);
    else
        filter_replace((py_filter *)self, f);
    py_spec_free(&s);
    return st ? -1 : 0;
}

static bool is_closed(void)
{
    PyErr_SetString(PyExc_ValueError, "the filter is closed");
    return false;
}

static bool is_open(const py_filter *self)
{
    return self->filter || is_closed();
}

static PyObject *filter_close(PyObject *self, PyObject *none)
{
    (void)none;
    filter_replace((py_filter *)self, NULL);
    Py_RETURN_NONE;
}

static PyObject *filter_enter(PyObject *self, PyObject *none)
{
    (void)none;
    if (!is_open((py_filter *)self))
        return NULL;
    Py_INCREF(self);
    return self;
}

static PyObject *filter_exit(PyObject *self, PyObject *why)
{
    (void)why;
    filter_replace((py_filter *)self, NULL);
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ one key */

static bool takes_text(py_filter *self)
{
    const bool locked = gate_pass_begin(&self->gate, false);
    const bool text =
        self->filter && bly_keying_of(self->filter).type == BLY_KEYS_TEXT;
    gate_pass_end(&self->gate, false, locked);
    return text;
}

/* A key on its way into a short pass. */
static bool key_begin(py_filter *self, PyObject *object, bool write,
                      struct py_key *key, bool *locked)
{
    if (!py_filter_follow(self))
        return false;
    bool ok = py_key_of(object, false, key);
    if (!ok && key->wide && takes_text(self)) {
        PyErr_Clear();
        ok = py_key_of(object, true, key);
    }
    if (!ok)
        return false;
    *locked = gate_pass_begin(&self->gate, write);
    if (self->filter)
        return true;
    gate_pass_end(&self->gate, write, *locked);
    py_key_release(key);
    return is_closed();
}

static void key_end(py_filter *self, bool write, struct py_key *key,
                    bool locked)
{
    gate_pass_end(&self->gate, write, locked);
    py_key_release(key);
}

static __attribute__((noinline)) int contains_any(py_filter *self,
                                                  PyObject *object)
{
    struct py_key key;
    bool locked;
    uint64_t maybe = 0;
    if (!key_begin(self, object, false, &key, &locked))
        return -1;
    const bly_status st =
        bly_has_as(self->filter, key.type, &key.as, 1, &maybe);
    key_end(self, false, &key, locked);
    if (st)
        py_raise(st);
    return st ? -1 : (int)(maybe & 1);
}

/* Of a damaged file the answer was "maybe". */
static __attribute__((noinline, unused)) int certain(const bly_filter *f)
{
    const bly_status st = bly_damage(f);
    if (st)
        py_raise(st);
    return st ? -1 : 1;
}

static int filter_contains(PyObject *object, PyObject *key)
{
    py_filter *const self = (py_filter *)object;
#ifndef GATE_ALWAYS
    Py_ssize_t len;
    if (Py_TYPE(key) == &PyUnicode_Type && !self->gate.writers &&
        self->as_bytes && !(self->live && bly_live_replaced(self->filter))) {
        const char *const at = PyUnicode_AsUTF8AndSize(key, &len);
        const int maybe = at ? bly_has(self->filter, at, (size_t)len) : -1;
        return maybe > 0 && self->watched ? certain(self->filter) : maybe;
    }
#endif
    return contains_any(self, key);
}

static PyObject *filter_add(PyObject *object, PyObject *item)
{
    py_filter *const self = (py_filter *)object;
    struct py_key key;
    bool locked;
    uint64_t fresh = 0;
    bly_status st;
    do { /* again, if it was just replaced */
        if (!key_begin(self, item, true, &key, &locked))
            return NULL;
        st = bly_add_as(self->filter, key.type, &key.as, 1, &fresh, NULL);
        if (!self->as_bytes)
            py_filter_look(self);
        key_end(self, true, &key, locked);
    } while (st == BLY_EBUSY && moved(self));
    return st ? py_raise(st) : PyBool_FromLong(fresh & 1);
}

/* What `work` does with the hash of a key. */
typedef bly_status hash_work(bly_filter *f, uint64_t hash, uint64_t *out);

static bly_status key_work(py_filter *self, PyObject *item, bool write,
                           hash_work *work, uint64_t *out)
{
    struct py_key key;
    bool locked;
    uint64_t hash;
    if (!key_begin(self, item, write, &key, &locked))
        return BLY_EINVAL;
    const bly_hasher *const hasher = bly_hasher_of(self->filter);
    bly_status st = BLY_ESECRET;
    if (hasher)
        st = bly_hash_as(hasher, bly_keying_of(self->filter), key.type, &key.as,
                         1, &hash, NULL);
    if (!st)
        st = work(self->filter, hash, out);
    if (!st && self->watched)
        st = bly_damage(self->filter);
    key_end(self, write, &key, locked);
    if (!hasher)
        PyErr_SetString(py_error, "the filter is keyed and was opened without "
                                  "its secret");
    else if (st && st != BLY_EABSENT)
        py_raise(st);
    return st;
}

static bly_status work_remove(bly_filter *f, uint64_t hash, uint64_t *out)
{
    (void)out;
    return bly_remove_hashes(f, &hash, 1, NULL);
}

static bly_status work_count(bly_filter *f, uint64_t hash, uint64_t *out)
{
    return bly_count_hashes(f, &hash, 1, out);
}

/* out[0] is the value, out[1] whether there is one. */
static bly_status work_get(bly_filter *f, uint64_t hash, uint64_t *out)
{
    return bly_get_hashes(f, &hash, 1, &out[0], &out[1]);
}

static bly_status work_set(bly_filter *f, uint64_t hash, uint64_t *value)
{
    return bly_set_hash(f, hash, *value);
}

static PyObject *absent(bly_status st, PyObject *key)
{
    if (st == BLY_EABSENT)
        PyErr_SetObject(PyExc_KeyError, key);
    return NULL;
}

static PyObject *filter_remove(PyObject *self, PyObject *key)
{
    uint64_t none;
    const bly_status st =
        key_work((py_filter *)self, key, true, work_remove, &none);
    if (st)
        return absent(st, key);
    Py_RETURN_NONE;
}

static PyObject *filter_count(PyObject *self, PyObject *key)
{
    uint64_t n;
    if (key_work((py_filter *)self, key, false, work_count, &n))
        return NULL;
    if (n == UINT64_MAX)
        return PyFloat_FromDouble(INFINITY);
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *filter_get(PyObject *self, PyObject *args)
{
    PyObject *key, *otherwise = Py_None;
    uint64_t got[2] = { 0, 0 };
    if (!PyArg_ParseTuple(args, "O|O:get", &key, &otherwise) ||
        key_work((py_filter *)self, key, false, work_get, got))
        return NULL;
    if (got[1] & 1)
        return PyLong_FromUnsignedLongLong(got[0]);
    Py_INCREF(otherwise);
    return otherwise;
}

static PyObject *filter_set(PyObject *self, PyObject *args)
{
    PyObject *key, *object;
    uint64_t value;
    if (!PyArg_ParseTuple(args, "OO:set", &key, &object) ||
        !py_count_of(object, &value))
        return NULL;
    const bly_status st =
        key_work((py_filter *)self, key, true, work_set, &value);
    if (st)
        return absent(st, key);
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ batches */

struct asking {
    struct py_sink sink;
    py_filter *filter;
    struct py_bits bits;
};

/* Runs are long; those that begin inside a word go through a small bitmap. */
#define ASK_PIECE 4096

static bly_status ask_into(const bly_filter *f, const struct py_run *run,
                           size_t from, size_t n, uint64_t *maybe)
{
    const bly_key_type is = bly_keying_of(f).type;
    if (run->type == BLY_KEYS_TEXT || run->type == BLY_KEYS_BYTES)
        return bly_has_as(f, run->type, (const bly_bytes *)run->keys + from, n,
                          maybe);
    const uint64_t *const ints = (const uint64_t *)run->keys + from;
    if ((is != run->type && is != BLY_KEYS_UNKNOWN) || !bly_hasher_of(f))
        return bly_has_as(f, run->type, ints, n, maybe);
    bly_has_ints(f, ints, n, maybe); /* hashed on the way: twice as fast */
    return bly_damage(f);
}

static bool ask_take(struct py_sink *sink, const struct py_run *run)
{
    struct asking *const a = (struct asking *)sink;
    struct py_bits *const bits = &a->bits;
    uint64_t piece[ASK_PIECE / 64];
    bly_status st = BLY_OK;
    const bool aligned = bits->n % 64 == 0;
    if (!py_filter_follow(a->filter) || !py_bits_room(bits, run->n))
        return false;
    struct gate_pass pass = gate_enter(&a->filter->gate, false);
    const bly_filter *const f = a->filter->filter;
    if (f && aligned) {
        st = ask_into(f, run, 0, run->n, bits->words + bits->n / 64);
        bits->n += run->n;
    }
    for (size_t i = 0; f && !aligned && !st && i < run->n; i += ASK_PIECE) {
        const size_t n = run->n - i < ASK_PIECE ? run->n - i : ASK_PIECE;
        st = ask_into(f, run, i, n, piece);
        py_bits_append(bits, piece, n); /* there is room */
    }
    gate_leave(&pass);
    if (st)
        py_raise(st);
    return !st && (f || is_closed());
}

static bool ask_nulls(struct py_sink *sink, size_t n)
{
    struct py_bits *const bits = &((struct asking *)sink)->bits;
    const bool ok = py_bits_room(bits, n);
    bits->n += ok ? n : 0;
    return ok;
}

static PyObject *filter_has_many(PyObject *self, PyObject *keys)
{
    struct asking a = { { ask_take, ask_nulls, NULL,
                          takes_text((py_filter *)self) },
                        (py_filter *)self,
                        { 0 } };
    if (!is_open((py_filter *)self) || !py_keys_each(keys, &a.sink)) {
        free(a.bits.words);
        return NULL;
    }
    return py_bitmap(&a.bits);
}

struct adding {
    struct py_sink sink;
    py_filter *filter;
};

static bool add_take(struct py_sink *sink, const struct py_run *run)
{
    py_filter *const self = ((struct adding *)sink)->filter;
    bly_status st;
    bool open;
    do { /* again, if it was just replaced */
        if (!py_filter_follow(self))
            return false;
        struct gate_pass pass = gate_enter(&self->gate, true);
        open = self->filter;
        st = open ? bly_add_as(self->filter, run->type, run->keys, run->n, NULL,
                               NULL)
                  : BLY_OK;
        if (!self->as_bytes)
            py_filter_look(self);
        gate_leave(&pass);
    } while (st == BLY_EBUSY && moved(self));
    if (st)
        py_raise(st);
    return !st && (open || is_closed());
}

static PyObject *filter_update(PyObject *self, PyObject *keys)
{
    struct adding a = { { add_take, NULL, NULL, takes_text((py_filter *)self) },
                        (py_filter *)self };
    if (!is_open((py_filter *)self) || !py_keys_each(keys, &a.sink))
        return NULL;
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------- small questions */

static PyObject *filter_closed(PyObject *self, void *none)
{
    (void)none;
    return PyBool_FromLong(!((py_filter *)self)->filter);
}

/* What a peek says, in a short pass. */
static bool peeked(py_filter *self, bly_stats *s)
{
    const bool locked = gate_pass_begin(&self->gate, false);
    const bool open = self->filter;
    if (open)
        bly_peek(self->filter, s);
    gate_pass_end(&self->gate, false, locked);
    return open || is_closed();
}

static PyObject *filter_kind(PyObject *self, void *none)
{
    bly_stats s;
    (void)none;
    return peeked((py_filter *)self, &s) ? py_text(s.kind) : NULL;
}

static PyObject *filter_nbytes(PyObject *self, void *none)
{
    bly_stats s;
    (void)none;
    return peeked((py_filter *)self, &s) ? PyLong_FromUnsignedLongLong(s.bytes)
                                         : NULL;
}

static PyObject *filter_keys(PyObject *object, void *none)
{
    py_filter *const self = (py_filter *)object;
    (void)none;
    const bool locked = gate_pass_begin(&self->gate, false);
    const bool open = self->filter;
    const bly_key_type type =
        open ? bly_keying_of(self->filter).type : BLY_KEYS_UNKNOWN;
    gate_pass_end(&self->gate, false, locked);
    return open || is_closed() ? py_text(bly_key_type_name(type)) : NULL;
}

/* Whether anything was added: len() would read all of it. */
static int filter_bool(PyObject *self)
{
    bly_stats s;
    return peeked((py_filter *)self, &s) ? s.items_added != 0 : -1;
}

static PyObject *filter_repr(PyObject *self)
{
    bly_stats s;
    if (!((py_filter *)self)->filter)
        return PyUnicode_FromString("<bloomery.Filter: closed>");
    if (!peeked((py_filter *)self, &s))
        return NULL;
    /* Four digits: that is what people plan by. info() has them all. */
    char *const fpr = PyOS_double_to_string(s.fpr_at_capacity, 'g', 4, 0, NULL);
    PyObject *const text =
        fpr ? PyUnicode_FromFormat(
                  "<bloomery.Filter: %s, capacity %llu, fpr %s%s>", s.kind,
                  (unsigned long long)s.capacity, fpr,
                  s.mapped ? ", mapped" : "")
            : NULL;
    PyMem_Free(fpr);
    return text;
}

static PyObject *filter_deepcopy(PyObject *self, PyObject *memo)
{
    (void)memo;
    return py_whole_copy(self, NULL);
}

/* ----------------------------------------------------------------- the type */

#define KEYWORDS (METH_VARARGS | METH_KEYWORDS)
#define KW(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef filter_methods[] = {
    { "build", KW(py_filter_build), KEYWORDS | METH_CLASS,
      "build($type, iterable, /, *, items=None, fpr=0.01, kind='blocked',\n"
      "      bits=None, seed=0, secret=None, keys=None, folded=False,\n"
      "      trimmed=False, no_cr=False, max_bytes=None, deny=None, "
      "threads=1,\n"
      "      options=None, **more_options)\n--\n\n"
      "A filter of all the keys, sized by how many different ones there are.\n"
      "A kind that keeps values wants a mapping, or pairs (key, value).\n"
      "deny: keys that are known not to be in it, of a kind that can be told;\n"
      "say with its option others= how many these are." },
    { "open", KW(py_whole_open), KEYWORDS | METH_CLASS,
      "open($type, path, *, secret=None, mapped=True, blind=False,\n"
      "     check='blocks', max_bytes=None)\n--\n\n"
      "Use the filter in a file. Mapped, it is asked in place, read-only, and\n"
      "compared with its checksum, a large one block by block; mapped=False\n"
      "reads it into memory. One that takes more than max_bytes is refused." },
    { "share", KW(py_whole_share), KEYWORDS | METH_CLASS,
      "share($type, path, /, *, items=None, fpr=0.01, kind='blocked',\n"
      "      bits=None, seed=0, secret=None, keys=None, folded=False,\n"
      "      trimmed=False, no_cr=False, max_bytes=None, reading=False,\n"
      "      options=None, **more_options)\n--\n\n"
      "The live filter in a file, which many processes map and change at\n"
      "once; it is made if there is none and items or bits are given. May be\n"
      "opened before a fork. If it is replaced by another generation, the\n"
      "next call moves there. reading: only to ask, never to add." },
    { "checkpoint", py_whole_checkpoint, METH_NOARGS,
      "checkpoint($self, /)\n--\n\n"
      "Make all that was added to a live filter last: it survives a power\n"
      "cut." },
    { "accept", py_whole_accept, METH_NOARGS,
      "accept($self, /)\n--\n\n"
      "Decide that a live filter is good enough after a power cut." },
    { "live", py_whole_live, METH_NOARGS,
      "live($self, /)\n--\n\n"
      "Generation, users and checkpoint of a live filter, as a dict." },
    { "replace", KW(py_whole_replace), KEYWORDS,
      "replace($self, filter, /, *, keep=False)\n--\n\n"
      "Put a copy of another filter in the place of a live one, as its next\n"
      "generation, to which all users move; keep: with what was added to the\n"
      "old one." },
    { "from_bytes", KW(py_whole_from_bytes), KEYWORDS | METH_CLASS,
      "from_bytes($type, bytes, *, secret=None, blind=False,\n"
      "           max_bytes=None)\n--\n\n"
      "A filter from the bytes of a .bly file. A coded file takes up to a\n"
      "thousand times its bytes: max_bytes refuses what takes more." },
    { "to_bytes", py_whole_to_bytes, METH_NOARGS,
      "to_bytes($self, /)\n--\n\nThe bytes of its .bly file." },
    { "save", py_whole_save, METH_O,
      "save($self, path, /)\n--\n\n"
      "Write a .bly file: readers see the old one or the whole new one." },
    { "add", filter_add, METH_O,
      "add($self, key, /)\n--\n\n"
      "Add a key. True if it was not in the filter, as far as it can tell." },
    { "update", filter_update, METH_O,
      "update($self, keys, /)\n--\n\n"
      "Add many keys: a list, an array of integers, a column, an iterable.\n"
      "If one is refused, those before it have been added." },
    { "remove", filter_remove, METH_O,
      "remove($self, key, /)\n--\n\n"
      "Remove a key that was added. KeyError if it is not in the filter." },
    { "has_many", filter_has_many, METH_O,
      "has_many($self, keys, /)\n--\n\n"
      "Ask for many keys at once: a list, an array of integers, a column, an\n"
      "iterable. The answers are a Bitmap." },
    { "count", filter_count, METH_O,
      "count($self, key, /)\n--\n\n"
      "How often a key was added, never too low; inf: past the ceiling." },
    { "get", filter_get, METH_VARARGS,
      "get($self, key, default=None, /)\n--\n\nThe value of a key." },
    { "set", filter_set, METH_VARARGS,
      "set($self, key, value, /)\n--\n\nChange the value of a key." },
    { "copy", py_whole_copy, METH_NOARGS,
      "copy($self, /)\n--\n\nAn independent copy, in memory." },
    { "__copy__", py_whole_copy, METH_NOARGS, NULL },
    { "__deepcopy__", filter_deepcopy, METH_O, NULL },
    { "__reduce__", py_whole_reduce, METH_NOARGS, NULL },
    { "compare", py_whole_compare, METH_O,
      "compare($self, other, /)\n--\n\n"
      "Estimates of how much two filters have in common." },
    { "info", py_whole_info, METH_NOARGS,
      "info($self, /)\n--\n\n"
      "All that it knows of itself, as a dict. Reads all of it." },
    { "verify", py_whole_verify, METH_NOARGS,
      "verify($self, /)\n--\n\n"
      "Compare a mapped file with its checksum; Error if it is damaged." },
    { "close", filter_close, METH_NOARGS,
      "close($self, /)\n--\n\nRelease its memory or file." },
    { "__enter__", filter_enter, METH_NOARGS, NULL },
    { "__exit__", filter_exit, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef filter_getset[] = {
    { "closed", filter_closed, NULL, "Whether close() was called.", NULL },
    { "kind", filter_kind, NULL, "The name of its kind.", NULL },
    { "keys", filter_keys, NULL,
      "What its keys are: 'text', 'bytes', 'int64', 'uint64' or None.", NULL },
    { "nbytes", filter_nbytes, NULL, "Bytes of memory.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot filter_slots[] = {
    { Py_tp_doc,
      "Filter(items=None, fpr=0.01, *, kind='blocked', bits=None, seed=0,\n"
      "       secret=None, keys=None, folded=False, trimmed=False,\n"
      "       no_cr=False, max_bytes=None, options=None, **more_options)\n"
      "--\n\n"
      "A set that answers \"is this key in it?\" using a few bits per key.\n"
      "\"No\" is certain; \"yes\" is wrong with the probability fpr.\n\n"
      "Give two of items, fpr and bits. keys says what its keys are ('text',\n"
      "'bytes', 'int64', 'uint64'), otherwise the first one does." },
    { Py_tp_new, filter_new },
    { Py_tp_init, filter_init },
    { Py_tp_dealloc, filter_dealloc },
    { Py_tp_repr, filter_repr },
    { Py_tp_methods, filter_methods },
    { Py_tp_getset, filter_getset },
    { Py_tp_richcompare, py_whole_equal },
    { Py_tp_hash, PyObject_HashNotImplemented },
    { Py_sq_contains, filter_contains },
    { Py_sq_length, py_whole_len },
    { Py_nb_bool, filter_bool },
    { Py_nb_or, py_whole_or },
    { Py_nb_and, py_whole_and },
    { Py_nb_inplace_or, py_whole_ior },
    { Py_nb_inplace_and, py_whole_iand },
    { 0, NULL },
};

static PyType_Spec filter_spec = {
    .name = "bloomery.Filter",
    .basicsize = sizeof(py_filter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = filter_slots,
};

bool py_filter_ready(PyObject *module)
{
    py_filter_type = py_type_ready(module, &filter_spec);
    return py_filter_type != NULL;
}

/*
 * py_topk.c - TopK: the heaviest keys of a stream
 *
 * The list keeps its keys, so they come back: as str, or as bytes if it is a
 * list of bytes. Integers are counted as their decimal text.
 */
#include "bindings/python/python.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int topk_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "k", "keys", "bytes", "seed", NULL };
    PyObject *v[4];
    uint64_t k = 0;
    bly_topk_spec spec = { .keying = { BLY_KEYS_TEXT, 0 } };
    bly_stored made = { .type = BLY_STORED_TOPK };
    if (!py_args("TopK", args, kwargs, names, 1, v))
        return -1;
    if (!v[0]) {
        PyErr_SetString(PyExc_TypeError, "TopK() wants k, the number of keys");
        return -1;
    }
    if (v[1] && PyUnicode_Check(v[1]) &&
        !PyUnicode_CompareWithASCIIString(v[1], "bytes"))
        spec.keying.type = BLY_KEYS_BYTES;
    else if (v[1] && (!PyUnicode_Check(v[1]) ||
                      PyUnicode_CompareWithASCIIString(v[1], "text"))) {
        PyErr_Format(PyExc_ValueError, "keys=%R; expected 'text' or 'bytes'",
                     v[1]);
        return -1;
    }
    if (!py_count_of(v[0], &k) || (v[2] && !py_count_of(v[2], &spec.bytes)) ||
        (v[3] && !py_count_of(v[3], &spec.seed)))
        return -1;
    spec.k = (size_t)k;
    const bly_status st = bly_topk_new(&spec, &made.topk);
    if (st) {
        py_raise(st);
        return -1;
    }
    return py_sketch_set(self, made);
}

/* --------------------------------------------------------------------- keys */

#define PRINT_PIECE 256
#define PRINT_DIGITS 24

static bly_status integers_add(bly_topk *t, const struct py_run *run,
                               const uint64_t *weights)
{
    char text[PRINT_PIECE][PRINT_DIGITS];
    bly_bytes keys[PRINT_PIECE];
    const uint64_t *const ints = run->keys;
    bly_status st = BLY_OK;
    for (size_t i = 0; i < run->n && !st; i += PRINT_PIECE) {
        const size_t n = run->n - i < PRINT_PIECE ? run->n - i : PRINT_PIECE;
        for (size_t j = 0; j < n; j++) {
            const uint64_t key = ints[i + j];
            const int len =
                run->type == BLY_KEYS_INT64
                    ? snprintf(text[j], PRINT_DIGITS, "%" PRId64, (int64_t)key)
                    : snprintf(text[j], PRINT_DIGITS, "%" PRIu64, key);
            keys[j] = (bly_bytes){ text[j], (size_t)len };
        }
        st = bly_topk_add_keys(t, keys, weights ? weights + i : NULL, n, NULL);
    }
    return st;
}

static bly_status topk_adds(py_sketch *s, const struct py_run *run,
                            const uint64_t *weights)
{
    bly_topk *const t = s->stored.topk;
    if (run->type == BLY_KEYS_TEXT || run->type == BLY_KEYS_BYTES)
        return bly_topk_add_keys(t, run->keys, weights, run->n, NULL);
    return integers_add(t, run, weights);
}

static PyObject *topk_add(PyObject *self, PyObject *args)
{
    PyObject *object, *count = NULL;
    struct py_key key;
    uint64_t weight = 1;
    if (!PyArg_ParseTuple(args, "O|O:add", &object, &count) ||
        (count && !py_count_of(count, &weight)) ||
        !py_key_of(object, true, &key))
        return NULL;
    PyObject *const done = py_sketch_add(self, &key, &weight, topk_adds);
    py_key_release(&key);
    return done;
}

static PyObject *topk_update(PyObject *self, PyObject *keys)
{
    return py_sketch_update(self, keys, topk_adds);
}

/* ----------------------------------------------------------------- the list */

/* Copies of the items, one after another, made in a pass. */
struct listed {
    bly_topk_item *items;
    char *bytes;
    size_t n;
    bool binary;
};

static bool listed_take(PyObject *self, struct listed *l)
{
    struct gate_pass pass;
    size_t nbytes = 0;
    if (!py_sketch_read(self, &pass))
        return false;
    const bly_topk *const t = ((py_sketch *)self)->stored.topk;
    bly_topk_spec spec;
    bly_topk_spec_of(t, &spec);
    const size_t most = bly_topk_listed(t);
    l->items = malloc((most + 1) * sizeof *l->items);
    l->n = l->items ? bly_topk_list(t, l->items, most) : 0;
    l->binary = spec.keying.type == BLY_KEYS_BYTES;
    for (size_t i = 0; i < l->n; i++)
        nbytes += l->items[i].key.len;
    l->bytes = l->items ? malloc(nbytes + 1) : NULL;
    char *at = l->bytes;
    for (size_t i = 0; l->bytes && i < l->n; i++) {
        bly_bytes *const key = &l->items[i].key;
        if (key->len)
            memcpy(at, key->ptr, key->len);
        key->ptr = at;
        at += key->len;
    }
    gate_leave(&pass);
    if (l->bytes)
        return true;
    free(l->items);
    PyErr_NoMemory();
    return false;
}

/* (key, count), as Counter.most_common() gives them. */
static PyObject *item_pair(const bly_topk_item *item, bool binary)
{
    const Py_ssize_t len = (Py_ssize_t)item->key.len;
    PyObject *const key =
        binary ? PyBytes_FromStringAndSize(item->key.ptr, len)
               : PyUnicode_DecodeUTF8(item->key.ptr, len, "surrogateescape");
    PyObject *const count = PyLong_FromUnsignedLongLong(item->count);
    PyObject *const pair = key && count ? PyTuple_Pack(2, key, count) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(count);
    return pair;
}

static PyObject *topk_most_common(PyObject *self, PyObject *none)
{
    struct listed l;
    (void)none;
    if (!listed_take(self, &l))
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)l.n);
    for (size_t i = 0; list && i < l.n; i++) {
        PyObject *const pair = item_pair(&l.items[i], l.binary);
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair)) {
            Py_DECREF(list);
            list = NULL;
        }
    }
    free(l.items);
    free(l.bytes);
    return list;
}

static PyObject *topk_count(PyObject *self, PyObject *object)
{
    struct gate_pass pass;
    struct py_key key;
    char text[PRINT_DIGITS];
    if (!py_key_of(object, true, &key))
        return NULL;
    bly_bytes bytes = { text, 0 };
    if (key.type == BLY_KEYS_INT64)
        bytes.len =
            (size_t)snprintf(text, sizeof text, "%" PRId64, key.as.sint);
    else if (key.type == BLY_KEYS_UINT64)
        bytes.len =
            (size_t)snprintf(text, sizeof text, "%" PRIu64, key.as.uint);
    else
        bytes = key.as.bytes;
    const bool made = py_sketch_read(self, &pass);
    uint64_t n = 0;
    if (made) {
        n = bly_topk_count(((py_sketch *)self)->stored.topk, bytes.ptr,
                           bytes.len, NULL);
        gate_leave(&pass);
    }
    py_key_release(&key);
    return made ? PyLong_FromUnsignedLongLong(n) : NULL;
}

static PyObject *topk_total(PyObject *self, void *none)
{
    struct gate_pass pass;
    (void)none;
    if (!py_sketch_read(self, &pass))
        return NULL;
    const uint64_t n = bly_topk_total(((py_sketch *)self)->stored.topk);
    gate_leave(&pass);
    return PyLong_FromUnsignedLongLong(n);
}

static Py_ssize_t topk_len(PyObject *self)
{
    struct gate_pass pass;
    if (!py_sketch_read(self, &pass))
        return -1;
    const size_t n = bly_topk_listed(((py_sketch *)self)->stored.topk);
    gate_leave(&pass);
    return (Py_ssize_t)n;
}

static PyObject *topk_repr(PyObject *self)
{
    struct gate_pass pass;
    bly_topk_spec spec;
    if (!py_sketch_read(self, &pass))
        return NULL;
    const bly_topk *const topk = ((py_sketch *)self)->stored.topk;
    bly_topk_spec_of(topk, &spec);
    const size_t listed = bly_topk_listed(topk);
    const uint64_t total = bly_topk_total(topk);
    gate_leave(&pass);
    return PyUnicode_FromFormat(
        "<bloomery.TopK: %zu of at most %u keys, total %llu>", listed,
        (unsigned)spec.k, (unsigned long long)total);
}

static PyObject *topk_open(PyObject *type, PyObject *path)
{
    return py_sketch_open(type, path, BLY_STORED_TOPK);
}

static PyObject *topk_from_bytes(PyObject *type, PyObject *bytes)
{
    return py_sketch_load(type, bytes, BLY_STORED_TOPK);
}

static PyMethodDef topk_methods[] = {
    { "add", topk_add, METH_VARARGS,
      "add($self, key, count=1, /)\n--\n\nAdd a key, or count of it." },
    { "update", topk_update, METH_O,
      "update($self, keys, /)\n--\n\nAdd many keys, each once." },
    { "most_common", topk_most_common, METH_NOARGS,
      "most_common($self, /)\n--\n\n"
      "The list: pairs (key, count), the heaviest first." },
    { "count", topk_count, METH_O,
      "count($self, key, /)\n--\n\n"
      "How often a key came; 0 for most that are not on the list." },
    { "open", topk_open, METH_O | METH_CLASS,
      "open(path, /)\n--\n\nRead a .bly file." },
    { "from_bytes", topk_from_bytes, METH_O | METH_CLASS,
      "from_bytes(bytes, /)\n--\n\nFrom the bytes of a .bly file." },
    PY_SKETCH_METHODS,
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef topk_getset[] = {
    { "total", topk_total, NULL, "The sum of all counts.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot topk_slots[] = {
    { Py_tp_doc,
      "TopK(k, *, keys='text', bytes=None, seed=0)\n--\n\n"
      "The k heaviest keys of a stream, in memory that does not grow with it.\n"
      "Counts are at or below the truth. len() is how many are on the list." },
    { Py_tp_new, py_sketch_new },
    { Py_tp_init, topk_init },
    { Py_tp_dealloc, py_sketch_dealloc },
    { Py_tp_repr, topk_repr },
    { Py_tp_methods, topk_methods },
    { Py_tp_getset, topk_getset },
    { Py_sq_length, topk_len },
    { Py_nb_or, py_sketch_or },
    { Py_nb_inplace_or, py_sketch_ior },
    { 0, NULL },
};

static PyType_Spec topk_spec = {
    .name = "bloomery.TopK",
    .basicsize = sizeof(py_sketch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = topk_slots,
};

bool py_topk_ready(PyObject *module)
{
    return py_type_ready(module, &topk_spec) != NULL;
}

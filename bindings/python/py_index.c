/*
 * py_index.c - Index: which of many documents may have a term?
 *
 * An open index never changes, so any number of threads may ask it, and the
 * interpreter's lock is free meanwhile. A new one is written by build(), which
 * takes documents one after another.
 */
#include "bindings/python/python.h"

#include <bloomery/index.h>

typedef struct {
    PyObject_HEAD bly_index *index; /* NULL: not opened */
} py_index;

/* ----------------------------------------------------------------- terms */

/* Terms as hashes. */
struct py_terms {
    struct py_sink sink;
    const bly_hasher *hasher;
    uint64_t *hashes;
    size_t n, room;
};

static bool terms_take(struct py_sink *sink, const struct py_run *run)
{
    struct py_terms *const t = (struct py_terms *)sink;
    if (run->n > t->room - t->n) {
        const size_t room = 2 * (t->n + run->n);
        uint64_t *const more =
            PyMem_Realloc(t->hashes, room * sizeof *t->hashes);
        if (!more) {
            PyErr_NoMemory();
            return false;
        }
        t->hashes = more;
        t->room = room;
    }
    if (run->type == BLY_KEYS_TEXT || run->type == BLY_KEYS_BYTES)
        bly_hash_keys(t->hasher, run->keys, run->n, t->hashes + t->n);
    else
        bly_hash_ints(t->hasher, run->keys, run->n, t->hashes + t->n);
    t->n += run->n;
    return true;
}

static bool terms_read(PyObject *keys, struct py_terms *t)
{
    t->n = 0;
    return py_keys_each(keys, &t->sink);
}

/* ---------------------------------------------------------------- building */

/* The classes of terms, from a dictionary of names and rates. */
struct py_classes {
    bly_index_class rows[BLY_INDEX_CLASSES_MOST];
    size_t n;
    PyObject *names[BLY_INDEX_CLASSES_MOST]; /* as bytes */
};

static void classes_free(struct py_classes *c)
{
    for (size_t i = 0; i < c->n; i++)
        Py_XDECREF(c->names[i]);
    c->n = 0;
}

static bool classes_add(struct py_classes *c, PyObject *name, PyObject *rate)
{
    if (c->n == BLY_INDEX_CLASSES_MOST || !PyUnicode_Check(name)) {
        PyErr_Format(PyExc_ValueError,
                     "classes: at most %d names with their rates",
                     BLY_INDEX_CLASSES_MOST);
        return false;
    }
    PyObject *const text = PyUnicode_AsUTF8String(name);
    if (!text)
        return false;
    c->names[c->n] = text;
    c->rows[c->n] =
        (bly_index_class){ PyBytes_AsString(text), PyFloat_AsDouble(rate) };
    c->n++;
    return !PyErr_Occurred();
}

static bool classes_read(PyObject *given, struct py_classes *c)
{
    PyObject *name, *rate;
    Py_ssize_t at = 0;
    c->n = 0;
    if (!given || given == Py_None) {
        c->rows[0] = (bly_index_class){ "words", 0.001 };
        c->names[0] = NULL;
        c->n = 1;
        return true;
    }
    if (!PyDict_Check(given)) {
        PyErr_SetString(PyExc_TypeError,
                        "classes is a dict of names and rates");
        return false;
    }
    bool ok = true;
    while (ok && PyDict_Next(given, &at, &name, &rate))
        ok = classes_add(c, name, rate);
    if (!ok)
        classes_free(c);
    return ok;
}

/* The terms of a document: of the only class, or a dict with some by class. */
static bool document_terms(const struct py_classes *c, PyObject *given,
                           struct py_terms *terms)
{
    if (!PyDict_Check(given)) {
        if (c->n == 1)
            return terms_read(given, &terms[0]);
        PyErr_SetString(PyExc_TypeError,
                        "the terms of a document are a dict by class, where "
                        "there are several classes");
        return false;
    }
    Py_ssize_t found = 0;
    for (size_t i = 0; i < c->n; i++) {
        PyObject *const of = PyDict_GetItemString(given, c->rows[i].name);
        terms[i].n = 0;
        found += of != NULL;
        if (of && !terms_read(of, &terms[i]))
            return false;
    }
    if (found == PyDict_Size(given))
        return true;
    PyErr_SetString(PyExc_ValueError,
                    "a document has terms of a class that the index has not");
    return false;
}

static bool document_add(bly_index_builder *b, const struct py_classes *c,
                         PyObject *pair, struct py_terms *terms)
{
    bly_index_terms given[BLY_INDEX_CLASSES_MOST];
    PyObject *name, *of;
    char *bytes;
    Py_ssize_t n;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
        PyErr_SetString(PyExc_TypeError,
                        "a document is a tuple of its name and its terms");
        return false;
    }
    name = PyTuple_GetItem(pair, 0);
    of = PyTuple_GetItem(pair, 1);
    PyObject *const blob = PyUnicode_Check(name) ? PyUnicode_AsUTF8String(name)
                                                 : PyBytes_FromObject(name);
    bly_status st = BLY_OK;
    bool ok = blob && document_terms(c, of, terms) &&
              PyBytes_AsStringAndSize(blob, &bytes, &n) == 0;
    for (size_t i = 0; i < c->n; i++)
        given[i] = (bly_index_terms){ terms[i].hashes, terms[i].n };
    if (ok) {
        PyThreadState *const thread = PyEval_SaveThread();
        st = bly_index_builder_add(b, given, bytes, (size_t)n, NULL);
        PyEval_RestoreThread(thread);
        if (st)
            py_raise(st);
    }
    Py_XDECREF(blob);
    return ok && !st;
}

static bool documents_add(bly_index_builder *b, const struct py_classes *c,
                          PyObject *documents)
{
    struct py_terms terms[BLY_INDEX_CLASSES_MOST] = { 0 };
    PyObject *const each = PyObject_GetIter(documents);
    PyObject *pair;
    bool ok = each != NULL;
    for (size_t i = 0; i < c->n; i++) {
        terms[i].sink.take = terms_take;
        terms[i].hasher = bly_index_builder_hasher(b);
    }
    while (ok && (pair = PyIter_Next(each))) {
        ok = document_add(b, c, pair, terms);
        Py_DECREF(pair);
    }
    Py_XDECREF(each);
    for (size_t i = 0; i < c->n; i++)
        PyMem_Free(terms[i].hashes);
    return ok && !PyErr_Occurred();
}

static PyObject *index_wrap(PyTypeObject *type, bly_index *x)
{
    allocfunc const make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_index *const self = (py_index *)make(type, 0);
    if (self)
        self->index = x;
    else
        bly_index_free(x);
    return (PyObject *)self;
}

static PyObject *index_at(PyTypeObject *type, PyObject *path)
{
    bly_index *x;
    bly_status st;
    const char *const name = PyBytes_AsString(path);
    PyThreadState *const thread = PyEval_SaveThread();
    st = bly_index_map(name, NULL, &x);
    PyEval_RestoreThread(thread);
    return st ? py_raise_file(st, path) : index_wrap(type, x);
}

static PyObject *index_build(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "path", "documents", "classes", "seed",
                                         NULL };
    PyObject *v[4], *path = NULL, *made = NULL;
    struct py_classes classes;
    bly_index_spec spec = { 0 };
    bly_index_builder *b = NULL;
    if (!py_args("build", args, kwargs, names, 2, v))
        return NULL;
    if (!v[0] || !v[1]) {
        PyErr_SetString(PyExc_TypeError, "build() takes a path and documents");
        return NULL;
    }
    if ((v[3] && !py_count_of(v[3], &spec.seed)) || !(path = py_path(v[0])) ||
        !classes_read(v[2], &classes)) {
        Py_XDECREF(path);
        return NULL;
    }
    spec.classes = classes.rows;
    spec.nclasses = classes.n;
    bly_status st;
    const char *const name = PyBytes_AsString(path);
    /* Another process may have the lock. */
    PyThreadState *const thread = PyEval_SaveThread();
    st = bly_index_builder_new(name, &spec, &b);
    PyEval_RestoreThread(thread);
    if (st)
        py_raise_file(st, path);
    else if (documents_add(b, &classes, v[1])) {
        PyThreadState *const again = PyEval_SaveThread();
        st = bly_index_builder_commit(b);
        PyEval_RestoreThread(again);
        if (st)
            py_raise_file(st, path);
        else
            made = index_at((PyTypeObject *)type, path);
    }
    bly_index_builder_free(b);
    classes_free(&classes);
    Py_DECREF(path);
    return made;
}

static PyObject *index_open(PyObject *type, PyObject *of)
{
    PyObject *const path = py_path(of);
    PyObject *const made = path ? index_at((PyTypeObject *)type, path) : NULL;
    Py_XDECREF(path);
    return made;
}

/* ------------------------------------------------------------------ asking */

static const bly_index *index_of(PyObject *self)
{
    const bly_index *const x = ((py_index *)self)->index;
    if (!x)
        PyErr_SetString(PyExc_ValueError,
                        "an index comes from Index.open() or Index.build()");
    return x;
}

/* Terms, and the class that is named or the first one. */
static bool question_read(const char *call, const bly_index *x, PyObject *args,
                          PyObject *kwargs, struct py_terms *terms,
                          unsigned *class_number)
{
    static const char *const names[] = { "terms", "class_name", NULL };
    PyObject *v[2];
    *terms = (struct py_terms){ .sink = { .take = terms_take },
                                .hasher = bly_index_hasher(x) };
    *class_number = 0;
    if (!py_args(call, args, kwargs, names, 2, v))
        return false;
    if (!v[0]) {
        PyErr_Format(PyExc_TypeError, "%s() takes terms", call);
        return false;
    }
    if (v[1] && v[1] != Py_None) {
        PyObject *const name =
            PyUnicode_Check(v[1]) ? PyUnicode_AsUTF8String(v[1]) : NULL;
        const int found =
            name ? bly_index_class_named(x, PyBytes_AsString(name)) : -1;
        Py_XDECREF(name);
        if (found < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError,
                                "class_name is not a class of this index");
            return false;
        }
        *class_number = (unsigned)found;
    }
    return terms_read(v[0], terms);
}

static PyObject *numbers_list(const uint64_t *words, uint64_t n)
{
    PyObject *const list = PyList_New(0);
    for (uint64_t i = 0; list && i < n; i++) {
        if (!(words[i / 64] >> (i % 64) & 1))
            continue;
        PyObject *const number = PyLong_FromUnsignedLongLong(i);
        const int bad = number ? PyList_Append(list, number) : -1;
        Py_XDECREF(number);
        if (bad) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *index_ask(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const bly_index *const x = index_of(self);
    struct py_terms terms;
    unsigned class_number;
    PyObject *list = NULL;
    if (!x)
        return NULL;
    if (!question_read("ask", x, args, kwargs, &terms, &class_number)) {
        PyMem_Free(terms.hashes);
        return NULL;
    }
    uint64_t *const maybe = PyMem_Malloc(8 * (bly_index_words(x) + 1));
    bly_index_term *const asked = PyMem_Malloc((terms.n + 1) * sizeof *asked);
    bly_status st = BLY_OK;
    if (maybe && asked) {
        PyThreadState *const thread = PyEval_SaveThread();
        for (size_t i = 0; i < terms.n; i++)
            asked[i] = (bly_index_term){ terms.hashes[i], class_number };
        st = bly_index_ask(x, asked, terms.n, maybe);
        PyEval_RestoreThread(thread);
        list = st ? py_raise(st) : numbers_list(maybe, bly_index_documents(x));
    } else {
        PyErr_NoMemory();
    }
    PyMem_Free(maybe);
    PyMem_Free(asked);
    PyMem_Free(terms.hashes);
    return list;
}

static PyObject *index_coverage(PyObject *self, PyObject *args,
                                PyObject *kwargs)
{
    const bly_index *const x = index_of(self);
    struct py_terms terms;
    unsigned class_number;
    PyObject *list = NULL;
    if (!x)
        return NULL;
    if (!question_read("coverage", x, args, kwargs, &terms, &class_number)) {
        PyMem_Free(terms.hashes);
        return NULL;
    }
    const uint64_t n = bly_index_documents(x);
    uint32_t *const counts = PyMem_Malloc((size_t)(n + 1) * sizeof *counts);
    bly_status st = BLY_OK;
    if (counts) {
        PyThreadState *const thread = PyEval_SaveThread();
        st = bly_index_coverage(x, class_number, terms.hashes, terms.n, counts);
        PyEval_RestoreThread(thread);
        list = st ? py_raise(st) : PyList_New((Py_ssize_t)n);
    } else {
        PyErr_NoMemory();
    }
    for (uint64_t i = 0; list && i < n; i++) {
        PyObject *const count = PyLong_FromUnsignedLong(counts[i]);
        if (!count || PyList_SetItem(list, (Py_ssize_t)i, count)) {
            Py_DECREF(list);
            list = NULL;
        }
    }
    PyMem_Free(counts);
    PyMem_Free(terms.hashes);
    return list;
}

static Py_ssize_t index_len(PyObject *self)
{
    const bly_index *const x = index_of(self);
    return x ? (Py_ssize_t)bly_index_documents(x) : -1;
}

static PyObject *index_item(PyObject *self, Py_ssize_t i)
{
    const bly_index *const x = index_of(self);
    bly_bytes blob;
    if (!x)
        return NULL;
    if (i < 0 || (uint64_t)i >= bly_index_documents(x)) {
        PyErr_SetString(PyExc_IndexError, "there is no such document");
        return NULL;
    }
    const bly_status st = bly_index_document(x, (uint64_t)i, &blob);
    return st ? py_raise(st)
              : PyBytes_FromStringAndSize(blob.ptr, (Py_ssize_t)blob.len);
}

static PyObject *index_info(PyObject *self, PyObject *none)
{
    const bly_index *const x = index_of(self);
    bly_index_stats s;
    bly_index_class_stats c;
    (void)none;
    PyObject *const dict = x ? PyDict_New() : NULL;
    PyObject *const classes = dict ? PyDict_New() : NULL;
    if (!classes) {
        Py_XDECREF(dict);
        return NULL;
    }
    bly_index_stat(x, &s);
    bool ok =
        py_put(dict, "documents", PyLong_FromUnsignedLongLong(s.documents)) &&
        py_put(dict, "dropped", PyLong_FromUnsignedLongLong(s.dropped)) &&
        py_put(dict, "bytes", PyLong_FromUnsignedLongLong(s.nbytes)) &&
        py_put(dict, "segments", PyLong_FromUnsignedLong(s.segments)) &&
        py_put(dict, "groups", PyLong_FromUnsignedLong(s.groups)) &&
        py_put(dict, "seed", PyLong_FromUnsignedLongLong(s.seed));
    for (size_t i = 0; ok && bly_index_class_at(x, i, &c); i++)
        ok = py_put(classes, c.name,
                    Py_BuildValue("{s:d,s:d,s:I,s:K}", "fpr", c.fpr, "expected",
                                  c.expected, "k", c.k, "terms",
                                  (unsigned long long)c.terms));
    if (ok && py_put(dict, "classes", classes))
        return dict;
    if (!ok)
        Py_DECREF(classes);
    Py_DECREF(dict);
    return NULL;
}

static PyObject *index_verify(PyObject *self, PyObject *none)
{
    const bly_index *const x = index_of(self);
    bly_status st;
    (void)none;
    if (!x)
        return NULL;
    PyThreadState *const thread = PyEval_SaveThread();
    st = bly_index_verify(x);
    PyEval_RestoreThread(thread);
    if (st)
        return py_raise(st);
    Py_RETURN_NONE;
}

static void index_dealloc(PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(self);
    freefunc const release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    bly_index_free(((py_index *)self)->index);
    release(self);
    Py_DECREF(type);
}

/* clang-format off */
static PyMethodDef index_methods[] = {
    { "open", index_open, METH_O | METH_CLASS,
      "open(path, /)\n--\n\nOpen a .blx file, which is mapped." },
    { "build", (PyCFunction)(void (*)(void))index_build,
      METH_VARARGS | METH_KEYWORDS | METH_CLASS,
      "build(path, documents, *, classes=None, seed=0)\n--\n\n"
      "Write an index, whole or not at all, and open it. A document is a tuple "
      "of its\nname and its terms, or a dict of terms by class. classes is a "
      "dict of names and\nrates; one class, words at 0.001, if it is not "
      "given." },
    { "ask", (PyCFunction)(void (*)(void))index_ask,
      METH_VARARGS | METH_KEYWORDS,
      "ask($self, terms, class_name=None)\n--\n\n"
      "The numbers of the documents that may have all of these terms." },
    { "coverage", (PyCFunction)(void (*)(void))index_coverage,
      METH_VARARGS | METH_KEYWORDS,
      "coverage($self, terms, class_name=None)\n--\n\n"
      "How many of these terms each document may have." },
    { "info", index_info, METH_NOARGS,
      "info($self, /)\n--\n\nWhat the index has, as a dict." },
    { "verify", index_verify, METH_NOARGS,
      "verify($self, /)\n--\n\nCompare all of it with its checksums." },
    { NULL, NULL, 0, NULL },
};
/* clang-format on */

static PyType_Slot index_slots[] = {
    { Py_tp_doc, "Which of many documents may have a term?\n\n"
                 "len() is the number of documents, and index[i] the name of "
                 "document i." },
    { Py_tp_dealloc, index_dealloc },
    { Py_tp_methods, index_methods },
    { Py_sq_length, index_len },
    { Py_sq_item, index_item },
    { 0, NULL },
};

static PyType_Spec index_spec = {
    .name = "bloomery.Index",
    .basicsize = sizeof(py_index),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = index_slots,
};

bool py_index_ready(PyObject *module)
{
    return py_type_ready(module, &index_spec) != NULL;
}

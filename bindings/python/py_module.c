/*
 * py_module.c - the module: exceptions, kinds() and plan()
 */
#include "bindings/python/python.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* --------------------------------------------------------------- exceptions */

PyObject *py_error;

/* The exception for a status: the language's own where there is one. */
static PyObject *class_of(bly_status st)
{
    switch (st) {
    case BLY_EINVAL:
    case BLY_ERANGE:
    case BLY_EUNFIT:
        return PyExc_ValueError;
    case BLY_ENOMEM:
        return PyExc_MemoryError;
    case BLY_ENOTSUP:
        return PyExc_TypeError;
    case BLY_EABSENT:
        return PyExc_KeyError;
    case BLY_EIO:
        return PyExc_OSError;
    default:
        return py_error;
    }
}

/* Messages quote bytes of keys and files. */
static PyObject *message(void)
{
    const char *const text = bly_error();
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *py_raise(bly_status st)
{
    PyObject *const text = message();
    if (text)
        PyErr_SetObject(class_of(st), text);
    Py_XDECREF(text);
    return NULL;
}

/* OSError finds its subclass by errno, of which the library gives the text,
 * behind the path. */
static int number_in(const char *text, const char *path)
{
    static const int numbers[] = { ENOENT,  EACCES,       EPERM,  EISDIR,
                                   ENOTDIR, EEXIST,       ENOSPC, EDQUOT,
                                   EROFS,   EMFILE,       ENFILE, EINTR,
                                   EFBIG,   ENAMETOOLONG, ELOOP,  ENOMEM };
    if (strncmp(text, path, strlen(path)) == 0)
        text += strlen(path);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strstr(text, strerror(numbers[i])))
            return numbers[i];
    return EIO;
}

static void raise_os(int number, PyObject *text, PyObject *path)
{
    PyObject *const name = PyUnicode_DecodeFSDefault(PyBytes_AsString(path));
    PyObject *const args =
        name ? Py_BuildValue("(iOO)", number, text, name) : NULL;
    if (args)
        PyErr_SetObject(PyExc_OSError, args);
    Py_XDECREF(args);
    Py_XDECREF(name);
}

PyObject *py_raise_file(bly_status st, PyObject *path)
{
    PyObject *const text = message();
    if (!text || st != BLY_EIO) {
        Py_XDECREF(text);
        return text ? py_raise(st) : NULL;
    }
    const int number = number_in(bly_error(), PyBytes_AsString(path));
    if (number == ENOMEM) /* for a map */
        PyErr_SetObject(PyExc_MemoryError, text);
    else
        raise_os(number, text, path);
    Py_DECREF(text);
    return NULL;
}

PyObject *py_path(PyObject *object)
{
    PyObject *path = NULL;
    struct stat st;
    if (!PyUnicode_FSConverter(object, &path))
        return NULL;
    if (stat(PyBytes_AsString(path), &st) || !S_ISFIFO(st.st_mode))
        return path;
    PyObject *const text = PyUnicode_FromString(
        "a pipe; use a file, or from_bytes() and to_bytes()");
    if (text)
        raise_os(ESPIPE, text, path);
    Py_XDECREF(text);
    Py_DECREF(path);
    return NULL;
}

/* ---------------------------------------------------------------- functions */

static PyObject *module_kinds(PyObject *module, PyObject *none)
{
    bly_kind_info kind;
    PyObject *const list = PyList_New(0);
    (void)module;
    (void)none;
    for (size_t i = 0; list && bly_kind_at(i, &kind); i++) {
        PyObject *const dict = py_kind(&kind);
        const bool ok = dict && PyList_Append(list, dict) == 0;
        Py_XDECREF(dict);
        if (!ok) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *module_plan(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const none[] = { NULL };
    struct py_spec s;
    bly_prediction p;
    (void)module;
    if (!py_spec_read(&s, args, kwargs, 2, none, NULL))
        return NULL;
    const bly_status st = bly_plan(&s.spec, &p);
    py_spec_free(&s);
    return st ? py_raise(st) : py_prediction(&p);
}

#define NAMED(name, function, doc)                     \
    {                                                  \
        name, (PyCFunction)(void (*)(void))(function), \
            METH_VARARGS | METH_KEYWORDS, doc          \
    }
static PyMethodDef module_methods[] = {
    { "kinds", module_kinds, METH_NOARGS,
      "kinds()\n--\n\nEvery kind of filter: a list of dicts." },
    { "plan", (PyCFunction)(void (*)(void))module_plan,
      METH_VARARGS | METH_KEYWORDS,
      "plan(items=None, fpr=None, *, bits=None, kind=None, seed=0,\n"
      "     max_bytes=None, options=None, **more_options)\n--\n\n"
      "What a filter would be, without making it: a dict of its size and "
      "rate.\n"
      "Give two of items, fpr and bits." },
    NAMED("vector_pairs", py_vector_pairs,
          "vector_pairs(vectors, threshold=0.9, *, recall=0.995, seed=0,\n"
          "             threads=0, skip_bad=False, all=False)\n--\n\n"
          "Pairs of rows whose angle has a cosine of at least the threshold:\n"
          "three views, of one row, of the other one, and of cosines."),
    NAMED("vector_dedup", py_vector_dedup,
          "vector_dedup(vectors, threshold=0.9, *, recall=0.995, seed=0,\n"
          "             threads=0, skip_bad=False)\n--\n\n"
          "For each row the number of one that stays and is close to it: its\n"
          "own number if it stays itself."),
    NAMED("vector_near", py_vector_near,
          "vector_near(vectors, queries, threshold=0.9, *, recall=0.995,\n"
          "            seed=0, threads=0, skip_bad=False, top=0)\n--\n\n"
          "The rows that are close to each query, the closest first: three\n"
          "views, of queries, of rows, and of cosines."),
    NAMED("vector_sketch", py_vector_sketch,
          "vector_sketch(vectors, bits=256, *, seed=0)\n--\n\n"
          "The sides of random planes on which each row lies: a view of rows\n"
          "of bits / 64 integers."),
    NAMED("vector_angle", py_vector_angle,
          "vector_angle(a, b)\n--\n\n"
          "An estimate of the angle between two vectors, in radians, from\n"
          "their sketches; and its standard deviation."),
    { NULL, NULL, 0, NULL },
};

/* ------------------------------------------------------------------- module */

PyTypeObject *py_type_ready(PyObject *module, PyType_Spec *spec)
{
    PyObject *const type = PyType_FromSpec(spec);
    if (type && PyModule_AddType(module, (PyTypeObject *)type)) {
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

/* Types and exceptions are kept in variables of the process: one interpreter
 * can have them. */
static int module_exec(PyObject *module)
{
    static int64_t owner = -1;
    PyInterpreterState *const here = PyInterpreterState_Get();
    if (owner < 0)
        owner = PyInterpreterState_GetID(here);
    if (owner != PyInterpreterState_GetID(here)) {
        PyErr_SetString(PyExc_ImportError,
                        "bloomery works in one interpreter of a process");
        return -1;
    }
    py_error = PyErr_NewExceptionWithDoc(
        "bloomery.Error",
        "What the library refuses and no exception of Python's own means: a\n"
        "damaged file, a full filter, a missing secret, a read-only filter.",
        NULL, NULL);
    const bool ok =
        py_error && PyModule_AddObjectRef(module, "Error", py_error) == 0 &&
        PyModule_AddStringConstant(module, "__version__", bly_version()) == 0 &&
        py_bitmap_ready(module) && py_filter_ready(module) &&
        py_hll_ready(module) && py_topk_ready(module) &&
        py_minhash_ready(module) && py_index_ready(module);
    return ok ? 0 : -1;
}

static PyModuleDef_Slot module_slots[] = {
    { Py_mod_exec, module_exec },
#ifdef Py_GIL_DISABLED
    { Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
    { 0, NULL },
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "bloomery._bloomery",
    .m_doc = "The Bloom-filter family: the part of the package that is in C.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__bloomery(void)
{
    return PyModuleDef_Init(&module_def);
}

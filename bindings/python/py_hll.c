/*
 * py_hll.c - HyperLogLog: how many different keys there are
 */
#include "bindings/python/python.h"

#include <math.h>

static int hll_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "precision", NULL };
    PyObject *v[1];
    uint64_t precision = 0;
    bly_stored made = { .type = BLY_STORED_HLL };
    if (!py_args("HyperLogLog", args, kwargs, names, 1, v) ||
        (v[0] && !py_count_of(v[0], &precision)))
        return -1;
    const bly_status st = bly_hll_new(
        precision > 1000 ? 1000 : (unsigned)precision, NULL, &made.hll);
    if (st) {
        py_raise(st);
        return -1;
    }
    return py_sketch_set(self, made);
}

static bly_status hll_takes(py_sketch *s, const uint64_t *hashes, size_t n)
{
    return bly_hll_add(s->stored.hll, hashes, n);
}

/* The first keys say what all are. */
static bly_status hll_adds(py_sketch *s, const struct py_run *run,
                           const uint64_t *weights)
{
    bly_hll *const hll = s->stored.hll;
    (void)weights;
    if (!bly_hll_keying(hll).type && !bly_hll_total(hll))
        bly_hll_set_keying(hll, (bly_keying){ run->type, 0 });
    return py_sketch_hashed(s, bly_hll_hasher(hll), bly_hll_keying(hll), run,
                            hll_takes);
}

static PyObject *hll_add(PyObject *self, PyObject *key)
{
    return py_sketch_add_object(self, key, hll_adds);
}

static PyObject *hll_update(PyObject *self, PyObject *keys)
{
    return py_sketch_update(self, keys, hll_adds);
}

static bool hll_estimated(PyObject *self, double *n, double *sd)
{
    struct gate_pass pass;
    if (!py_sketch_read(self, &pass))
        return false;
    *n = bly_hll_estimate(((py_sketch *)self)->stored.hll, sd);
    gate_leave(&pass);
    return true;
}

static PyObject *hll_estimate(PyObject *self, PyObject *none)
{
    double n, sd;
    (void)none;
    return hll_estimated(self, &n, &sd) ? Py_BuildValue("(dd)", n, sd) : NULL;
}

static Py_ssize_t hll_len(PyObject *self)
{
    double n, sd;
    if (!hll_estimated(self, &n, &sd))
        return -1;
    return (Py_ssize_t)fmin(round(n), 0x1p62);
}

static PyObject *hll_repr(PyObject *self)
{
    struct gate_pass pass;
    double sd;
    if (!py_sketch_read(self, &pass))
        return NULL;
    const bly_hll *const hll = ((py_sketch *)self)->stored.hll;
    const unsigned precision = bly_hll_precision(hll);
    const double n = fmin(round(bly_hll_estimate(hll, &sd)), 0x1p62);
    gate_leave(&pass);
    return PyUnicode_FromFormat(
        "<bloomery.HyperLogLog: about %llu keys, precision %u>",
        (unsigned long long)n, precision);
}

static PyObject *hll_open(PyObject *type, PyObject *path)
{
    return py_sketch_open(type, path, BLY_STORED_HLL);
}

static PyObject *hll_from_bytes(PyObject *type, PyObject *bytes)
{
    return py_sketch_load(type, bytes, BLY_STORED_HLL);
}

static PyMethodDef hll_methods[] = {
    { "add", hll_add, METH_O, "add($self, key, /)\n--\n\nAdd a key." },
    { "update", hll_update, METH_O,
      "update($self, keys, /)\n--\n\n"
      "Add many keys: a list, an array of integers, a column, an iterable." },
    { "estimate", hll_estimate, METH_NOARGS,
      "estimate($self, /)\n--\n\n"
      "The number of different keys and its standard deviation." },
    { "open", hll_open, METH_O | METH_CLASS,
      "open(path, /)\n--\n\nRead a .bly file." },
    { "from_bytes", hll_from_bytes, METH_O | METH_CLASS,
      "from_bytes(bytes, /)\n--\n\nFrom the bytes of a .bly file." },
    PY_SKETCH_METHODS,
    { NULL, NULL, 0, NULL },
};

static PyType_Slot hll_slots[] = {
    { Py_tp_doc, "HyperLogLog(precision=14)\n--\n\n"
                 "How many different keys there are, to within 1.04 / "
                 "sqrt(2**precision),\n"
                 "in 2**precision registers of 6 bits. len() is the estimate, "
                 "| the union." },
    { Py_tp_new, py_sketch_new },
    { Py_tp_init, hll_init },
    { Py_tp_dealloc, py_sketch_dealloc },
    { Py_tp_repr, hll_repr },
    { Py_tp_methods, hll_methods },
    { Py_sq_length, hll_len },
    { Py_nb_or, py_sketch_or },
    { Py_nb_inplace_or, py_sketch_ior },
    { 0, NULL },
};

static PyType_Spec hll_spec = {
    .name = "bloomery.HyperLogLog",
    .basicsize = sizeof(py_sketch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = hll_slots,
};

bool py_hll_ready(PyObject *module)
{
    return py_type_ready(module, &hll_spec) != NULL;
}

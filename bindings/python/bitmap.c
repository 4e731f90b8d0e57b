/*
 * bitmap.c - the answers to a batch
 *
 * Bit i is that of key i: bit i % 8 of byte i / 8, as NumPy unpacks it with
 * bitorder="little", and as Arrow has it. The buffer protocol gives these bytes
 * without a copy.
 */
#include "bindings/python/python.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    PyObject_HEAD struct py_bits bits;
} py_bitmap_object;

static PyTypeObject *bitmap_type;

bool py_bits_room(struct py_bits *b, size_t more)
{
    const size_t most = SIZE_MAX / 2;
    if (more > most || b->n > most - more) {
        PyErr_NoMemory();
        return false;
    }
    const size_t want = BLY_BITMAP_WORDS(b->n + more);
    if (want <= b->room)
        return true;
    const size_t room = want + b->room / 2;
    uint64_t *const words = realloc(b->words, room * sizeof *words);
    if (!words) {
        PyErr_NoMemory();
        return false;
    }
    memset(words + b->room, 0, (room - b->room) * sizeof *words);
    b->words = words;
    b->room = room;
    return true;
}

bool py_bits_append(struct py_bits *b, const uint64_t *words, size_t n)
{
    if (!py_bits_room(b, n))
        return false;
    const size_t at = b->n / 64, shift = b->n % 64;
    const size_t nwords = BLY_BITMAP_WORDS(n);
    for (size_t i = 0; i < nwords; i++) {
        b->words[at + i] |= words[i] << shift;
        if (shift && words[i] >> (64 - shift)) /* else it may be past the end */
            b->words[at + i + 1] |= words[i] >> (64 - shift);
    }
    b->n += n;
    return true;
}

PyObject *py_bitmap(struct py_bits *b)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(bitmap_type, Py_tp_alloc);
    py_bitmap_object *const self = (py_bitmap_object *)alloc(bitmap_type, 0);
    if (!self) {
        free(b->words);
        return NULL;
    }
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (size_t i = 0; i < b->room; i++)
        b->words[i] = __builtin_bswap64(b->words[i]);
#endif
    self->bits = *b;
    return (PyObject *)self;
}

static const uint8_t *bytes_of(PyObject *self)
{
    return (const uint8_t *)((py_bitmap_object *)self)->bits.words;
}

static size_t length_of(PyObject *self)
{
    return ((py_bitmap_object *)self)->bits.n;
}

static void bitmap_dealloc(PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(self);
    free(((py_bitmap_object *)self)->bits.words);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static Py_ssize_t bitmap_len(PyObject *self)
{
    return (Py_ssize_t)length_of(self);
}

static bool bit_at(PyObject *self, size_t i)
{
    return bytes_of(self)[i / 8] >> i % 8 & 1;
}

/* Negative ones were made positive by the caller; iteration ends here too. */
static PyObject *bitmap_item(PyObject *self, Py_ssize_t i)
{
    if (i < 0 || (size_t)i >= length_of(self)) {
        PyErr_SetString(PyExc_IndexError, "past the end of the bitmap");
        return NULL;
    }
    return PyBool_FromLong(bit_at(self, (size_t)i));
}

static size_t ones_of(PyObject *self)
{
    const struct py_bits *const b = &((py_bitmap_object *)self)->bits;
    size_t n = 0;
    for (size_t i = 0; i < BLY_BITMAP_WORDS(b->n); i++)
        n += (size_t)__builtin_popcountll(b->words[i]);
    return n;
}

static PyObject *bitmap_count(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromSize_t(ones_of(self));
}

static PyObject *bitmap_any(PyObject *self, PyObject *none)
{
    (void)none;
    return PyBool_FromLong(ones_of(self) > 0);
}

static PyObject *bitmap_all(PyObject *self, PyObject *none)
{
    (void)none;
    return PyBool_FromLong(ones_of(self) == length_of(self));
}

static PyObject *bitmap_tolist(PyObject *self, PyObject *none)
{
    (void)none;
    const size_t n = length_of(self);
    PyObject *const list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *const bit = PyBool_FromLong(bit_at(self, i));
        if (PyList_SetItem(list, (Py_ssize_t)i, bit)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* NumPy is looked for when it is asked for, and never needed otherwise. */
static PyObject *bitmap_to_numpy(PyObject *self, PyObject *none)
{
    (void)none;
    PyObject *out = NULL, *how = NULL, *bytes = NULL, *bits = NULL;
    PyObject *const numpy = PyImport_ImportModule("numpy");
    PyObject *const unpack =
        numpy ? PyObject_GetAttrString(numpy, "unpackbits") : NULL;
    if (unpack)
        bytes = PyObject_CallMethod(numpy, "frombuffer", "Os", self, "u1");
    PyObject *const args = bytes ? PyTuple_Pack(1, bytes) : NULL;
    if (args)
        how = Py_BuildValue("{s:n,s:s}", "count", bitmap_len(self), "bitorder",
                            "little");
    if (how)
        bits = PyObject_Call(unpack, args, how);
    if (bits)
        out = PyObject_CallMethod(bits, "view", "s", "?");
    Py_XDECREF(bits);
    Py_XDECREF(how);
    Py_XDECREF(args);
    Py_XDECREF(bytes);
    Py_XDECREF(unpack);
    Py_XDECREF(numpy);
    return out;
}

static int bitmap_buffer(PyObject *self, Py_buffer *view, int flags)
{
    static char nothing;
    const size_t n = length_of(self);
    return PyBuffer_FillInfo(view, self,
                             n ? (void *)(uintptr_t)bytes_of(self) : &nothing,
                             (Py_ssize_t)((n + 7) / 8), 1, flags);
}

static PyObject *bitmap_equal(PyObject *a, PyObject *b, int op)
{
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(b) != bitmap_type ||
        Py_TYPE(a) != bitmap_type) {
        Py_INCREF(Py_NotImplemented);
        return Py_NotImplemented;
    }
    const size_t n = length_of(a);
    const bool same =
        n == length_of(b) &&
        (!n || memcmp(bytes_of(a), bytes_of(b), (n + 7) / 8) == 0);
    return PyBool_FromLong(same == (op == Py_EQ));
}

static PyObject *bitmap_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<bloomery.Bitmap: %zu of %zu set>",
                                ones_of(self), length_of(self));
}

static PyMethodDef bitmap_methods[] = {
    { "count", bitmap_count, METH_NOARGS,
      "count($self, /)\n--\n\nHow many bits are set." },
    { "any", bitmap_any, METH_NOARGS, "any($self, /)\n--\n\nIs one set?" },
    { "all", bitmap_all, METH_NOARGS, "all($self, /)\n--\n\nAre all set?" },
    { "tolist", bitmap_tolist, METH_NOARGS,
      "tolist($self, /)\n--\n\nA list of bool." },
    { "to_numpy", bitmap_to_numpy, METH_NOARGS,
      "to_numpy($self, /)\n--\n\nA NumPy array of bool." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot bitmap_slots[] = {
    { Py_tp_doc, "The answers to a batch of keys, one bit each.\n\n"
                 "Iterate over it, index it, or take the bytes by the buffer "
                 "protocol:\nbit i % 8 of byte i // 8 is that of key i." },
    { Py_tp_dealloc, bitmap_dealloc },
    { Py_tp_repr, bitmap_repr },
    { Py_tp_richcompare, bitmap_equal },
    { Py_tp_hash, PyObject_HashNotImplemented },
    { Py_tp_methods, bitmap_methods },
    { Py_sq_length, bitmap_len },
    { Py_sq_item, bitmap_item },
    { Py_bf_getbuffer, bitmap_buffer },
    { 0, NULL },
};

static PyType_Spec bitmap_spec = {
    .name = "bloomery.Bitmap",
    .basicsize = sizeof(py_bitmap_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = bitmap_slots,
};

bool py_bitmap_ready(PyObject *module)
{
    bitmap_type = py_type_ready(module, &bitmap_spec);
    return bitmap_type != NULL;
}

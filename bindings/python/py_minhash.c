/*
 * py_minhash.c - MinHash: how alike two sets, or two texts, are
 *
 * update() takes the elements of a set, hashed as the aggregate of the SQL
 * adapters does; add_text() cuts a text into shingles. A sketch should have
 * either the one or the other.
 */
#include "bindings/python/python.h"

#include <string.h>

static bool word_of(PyObject *object, const char **out)
{
    *out = NULL;
    if (object)
        *out = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, NULL)
                                       : NULL;
    if (object && !*out && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "family and unit are words");
    return !object || *out;
}

static bool unit_of(const char *word, bly_unit *out)
{
    *out = word && !strcmp(word, "chars") ? BLY_CHARS : BLY_WORDS;
    if (!word || !strcmp(word, "chars") || !strcmp(word, "words"))
        return true;
    PyErr_Format(PyExc_ValueError, "unit='%s'; expected 'words' or 'chars'",
                 word);
    return false;
}

static bool small_of(PyObject *object, unsigned *out)
{
    uint64_t n = 0;
    if (object && !py_count_of(object, &n))
        return false;
    *out = n > 1000000 ? 1000000 : (unsigned)n; /* too many in any case */
    return true;
}

static int minhash_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = { "k",    "family", "unit",
                                         "size", "seed",   NULL };
    PyObject *v[5];
    const char *family, *unit;
    bly_sketch_spec spec = { 0 };
    bly_stored made = { .type = BLY_STORED_LIKENESS };
    if (!py_args("MinHash", args, kwargs, names, 1, v) ||
        !small_of(v[0], &spec.k) || !word_of(v[1], &family) ||
        !word_of(v[2], &unit) || !unit_of(unit, &spec.shingling.unit) ||
        !small_of(v[3], &spec.shingling.size) ||
        (v[4] && !py_count_of(v[4], &spec.shingling.seed)))
        return -1;
    bly_status st = family ? bly_family_named(family, &spec.family) : BLY_OK;
    if (!st)
        st = bly_sketch_new(&spec, &made.likeness);
    if (st) {
        py_raise(st);
        return -1;
    }
    return py_sketch_set(self, made);
}

static bly_status minhash_takes(py_sketch *s, const uint64_t *hashes, size_t n)
{
    return bly_sketch_add(s->stored.likeness, hashes, n);
}

static bly_status minhash_adds(py_sketch *s, const struct py_run *run,
                               const uint64_t *weights)
{
    static const bly_hasher plain = { .id = BLY_HASH_XXH3 };
    (void)weights;
    return py_sketch_hashed(s, &plain, (bly_keying){ run->type, 0 }, run,
                            minhash_takes);
}

static PyObject *minhash_add(PyObject *self, PyObject *key)
{
    return py_sketch_add_object(self, key, minhash_adds);
}

static PyObject *minhash_update(PyObject *self, PyObject *keys)
{
    return py_sketch_update(self, keys, minhash_adds);
}

/* A text is a run of one key, which is cut. */
static bly_status text_adds(py_sketch *s, const struct py_run *run,
                            const uint64_t *weights)
{
    const bly_bytes *const text = run->keys;
    bly_sketch *const sketch = s->stored.likeness;
    bly_shingler *cut;
    bly_shingles x;
    (void)weights;
    bly_status st =
        bly_shingler_new(&bly_sketch_spec_of(sketch)->shingling, NULL, &cut);
    if (!st)
        st = bly_shingle(cut, text->ptr, text->len, &x);
    if (!st)
        st = bly_sketch_add(sketch, x.hashes, x.n);
    bly_shingler_free(cut);
    return st;
}

static PyObject *minhash_add_text(PyObject *self, PyObject *text)
{
    if (!PyUnicode_Check(text) && !PyBytes_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is str or bytes");
        return NULL;
    }
    return py_sketch_add_object(self, text, text_adds);
}

static PyObject *minhash_jaccard(PyObject *left, PyObject *right)
{
    py_sketch *const a = (py_sketch *)left, *const b = (py_sketch *)right;
    bly_resemblance r;
    if (!py_sketch_alike(left, right)) {
        PyErr_SetString(PyExc_TypeError, "jaccard() wants another MinHash");
        return NULL;
    }
    struct gate_pass pass = gate_enter_both(&a->gate, false, &b->gate, false);
    const bool made = a->stored.type && b->stored.type;
    const bly_status st =
        made ? bly_sketch_compare(a->stored.likeness, b->stored.likeness, &r)
             : BLY_OK;
    gate_leave(&pass);
    if (!made) {
        PyErr_SetString(PyExc_ValueError, "a sketch was never made");
        return NULL;
    }
    return st ? py_raise(st) : PyFloat_FromDouble(r.jaccard);
}

static PyObject *minhash_open(PyObject *type, PyObject *path)
{
    return py_sketch_open(type, path, BLY_STORED_LIKENESS);
}

static PyObject *minhash_from_bytes(PyObject *type, PyObject *bytes)
{
    return py_sketch_load(type, bytes, BLY_STORED_LIKENESS);
}

static PyMethodDef minhash_methods[] = {
    { "add", minhash_add, METH_O,
      "add($self, key, /)\n--\n\nAdd an element of the set." },
    { "update", minhash_update, METH_O,
      "update($self, keys, /)\n--\n\nAdd many elements of the set." },
    { "add_text", minhash_add_text, METH_O,
      "add_text($self, text, /)\n--\n\nAdd the shingles of a text." },
    { "jaccard", minhash_jaccard, METH_O,
      "jaccard($self, other, /)\n--\n\n"
      "An estimate of |A and B| / |A or B|." },
    { "open", minhash_open, METH_O | METH_CLASS,
      "open(path, /)\n--\n\nRead a .bly file." },
    { "from_bytes", minhash_from_bytes, METH_O | METH_CLASS,
      "from_bytes(bytes, /)\n--\n\nFrom the bytes of a .bly file." },
    PY_SKETCH_METHODS,
    { NULL, NULL, 0, NULL },
};

static PyObject *minhash_repr(PyObject *self)
{
    struct gate_pass pass;
    if (!py_sketch_read(self, &pass))
        return NULL;
    const bly_sketch_spec *const spec =
        bly_sketch_spec_of(((py_sketch *)self)->stored.likeness);
    PyObject *const text = PyUnicode_FromFormat(
        "<bloomery.MinHash: %u components, shingles of %u %s>", spec->k,
        spec->shingling.size,
        spec->shingling.unit == BLY_WORDS ? "words" : "chars");
    gate_leave(&pass);
    return text;
}

static PyType_Slot minhash_slots[] = {
    { Py_tp_doc,
      "MinHash(k=128, *, family='fss', unit='words', size=None, seed=0)\n--\n\n"
      "How alike two sets are: k components, of which two sets of likeness J\n"
      "agree in about J * k. unit, size and seed say how texts are cut." },
    { Py_tp_new, py_sketch_new },
    { Py_tp_init, minhash_init },
    { Py_tp_dealloc, py_sketch_dealloc },
    { Py_tp_repr, minhash_repr },
    { Py_tp_methods, minhash_methods },
    { Py_nb_or, py_sketch_or },
    { Py_nb_inplace_or, py_sketch_ior },
    { 0, NULL },
};

static PyType_Spec minhash_spec = {
    .name = "bloomery.MinHash",
    .basicsize = sizeof(py_sketch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = minhash_slots,
};

bool py_minhash_ready(PyObject *module)
{
    return py_type_ready(module, &minhash_spec) != NULL;
}

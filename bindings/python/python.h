/*
 * python.h - what the files of the extension share
 *
 * The extension translates: Python's objects to keys, its buffers to arrays,
 * statuses to exceptions. What a filter is and does is the library's.
 *
 *     py_module.c    the module, exceptions, kinds() and plan()
 *     py_gate.h      who may use an object while the interpreter's lock is free
 *     py_keys.c      keys from objects, lists and iterators
 *     arrays.c       keys from buffers and from columns of Arrow
 *     bitmap.c       the answers to a batch
 *     spec.c         arguments that say what a filter is to be
 *     py_filter.c    Filter: keys, one at a time and in batches
 *     whole.c        Filter: files, copies, sets, what it knows of itself
 *     py_building.c  Filter.build()
 *     py_facts.c     structs of the library as dictionaries
 *     py_sketch.c    what the sketches share; py_hll.c, py_topk.c,
 *                    py_minhash.c
 *     py_index.c     Index: documents side by side
 *     py_vectors.c   arrays of vectors
 *
 * Only the stable ABI of Python 3.11 is used, so that one build serves that
 * version and all later ones. A free-threaded interpreter has no stable ABI
 * yet: for such a one it is compiled with its own headers, and py_gate.h locks
 * where the interpreter no longer does.
 *
 * A function that returns false, NULL or -1 has set an exception.
 */
#ifndef BLY_BINDINGS_PYTHON_H
#define BLY_BINDINGS_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#ifndef Py_GIL_DISABLED
#ifndef Py_LIMITED_API
#error "compile with -DPy_LIMITED_API=0x030b0000"
#endif
#endif

#include <bloomery.h>
#include <bloomery/live.h>
#include <bloomery/sketch.h>

#include "bindings/python/py_gate.h"

/* -------------------------------------------------------------- exceptions */

/* bloomery.Error; and what a status becomes, with the library's message. NULL,
 * for the sake of `return`. */
extern PyObject *py_error;
PyObject *py_raise(bly_status st);
/* The same for a call that used a file: OSError knows it. */
PyObject *py_raise_file(bly_status st, PyObject *path);

/* A string that a dictionary takes over: true if value was no NULL and it was
 * put in. The reference to value is consumed. */
bool py_put(PyObject *dict, const char *name, PyObject *value);
PyObject *py_text(const char *text); /* None for NULL */
PyObject *py_real(double x);         /* None for what is not a number */
PyObject *py_facts(const bly_fact *facts, size_t n);
PyObject *py_prediction(const bly_prediction *p);
PyObject *py_kind(const bly_kind_info *kind);
PyObject *py_likeness(const bly_likeness *c);

/* A copy of all facts of a filter, because no Python code may run in a pass. */
#define PY_PAIRS 1024
struct py_told {
    bly_stats stats;
    uint64_t file_bytes;
    bly_keying keying;
    size_t note, npairs; /* bytes */
    uint16_t name[PY_PAIRS], value[PY_PAIRS];
    char text[8192]; /* the note, and names and values in turn */
};
void py_told_take(struct py_told *t, const bly_filter *f);
PyObject *py_told_dict(const struct py_told *t);

/* The path that an object names, as a new bytes object. A pipe is refused:
 * whoever opened it would wait, and no signal would end that. */
PyObject *py_path(PyObject *object);

/* Arguments by name alone: word i of `names` (NULL at the end) into values[i],
 * borrowed; NULL where it was not given. `npos` of them may come by position.
 */
bool py_args(const char *call, PyObject *args, PyObject *kwargs,
             const char *const *names, size_t npos, PyObject **values);

/* ------------------------------------------------------------------- keys */

/* A run of keys of one type, as bly_has_as() takes them. */
struct py_run {
    bly_key_type type;
    const void *keys; /* bly_bytes, int64_t or uint64_t */
    size_t n;
};

/* Where keys go, run by run. The lock of the interpreter is held during the
 * call, and the keys stay where they are until it returns. */
struct py_sink {
    bool (*take)(struct py_sink *s, const struct py_run *run);
    /* n entries of a column that hold no key; NULL: passed over. */
    bool (*nulls)(struct py_sink *s, size_t n);
    /* Of what is read as pairs of a key and a value: as many values as keys;
     * NULL: keys alone. */
    bool (*take_values)(struct py_sink *s, const struct py_run *run,
                        const uint64_t *values);
    /* What integers of more than 64 bits become. */
    bool text;
};

/* Hand over all keys of an object: a list, a buffer, a column, an iterable. */
bool py_keys_each(PyObject *keys, struct py_sink *s);

/* The same for what arrays.c knows. 1: done, 0: it is none of these, -1. */
int py_arrays_each(PyObject *keys, struct py_sink *s);

/* One key, from an object that must outlive it. `room` has what is made on the
 * way, and is released by py_key_release(). */
struct py_key {
    bly_key_type type;
    union {
        bly_bytes bytes;
        int64_t sint;
        uint64_t uint;
    } as;
    PyObject *room;
    bool wide; /* an integer of more than 64 bits: a key only as text */
};
bool py_key_of(PyObject *object, bool text, struct py_key *out);
static inline void py_key_release(struct py_key *k)
{
    Py_XDECREF(k->room);
}

/* A count that an argument or a pair gives. */
bool py_count_of(PyObject *object, uint64_t *out);

/* ----------------------------------------------------------------- bitmaps */

struct py_bits {
    uint64_t *words;
    size_t n, room; /* bits, words */
};

/* Room for `more` bits at the end, which are zero; bits->n is not changed. */
bool py_bits_room(struct py_bits *b, size_t more);
/* Append n bits. */
bool py_bits_append(struct py_bits *b, const uint64_t *words, size_t n);
/* A Bitmap that takes the words over. */
PyObject *py_bitmap(struct py_bits *b);

/* ------------------------------------------------------------------ filters */

typedef struct {
    PyObject_HEAD bly_filter *filter; /* NULL: closed, or not made yet */
    struct gate gate;
    bool as_bytes; /* str and bytes are hashed as they are: bly_has() will do */
    bool watched;  /* mapped: bly_damage() has to be asked */
    bool live;     /* share(): another generation may take its place */
} py_filter;

extern PyTypeObject *py_filter_type;
PyObject *py_filter_wrap(PyTypeObject *type, bly_filter *f);
/* What as_bytes and watched are by now; after whatever may change the type of
 * keys. */
void py_filter_look(py_filter *self);

/* The keyword arguments that say what a filter is to be, and those that `own`
 * names, which are the caller's. */
#define PY_OPTIONS 16
struct py_spec {
    bly_spec spec;
    bly_option options[PY_OPTIONS];
    PyObject *kept; /* a list of what the pointers point into */
};
bool py_spec_read(struct py_spec *s, PyObject *args, PyObject *kwargs,
                  size_t npos, const char *const *own, PyObject **values);
void py_spec_free(struct py_spec *s);
/* 16 bytes, or None. Borrowed from the object. */
bool py_secret_of(PyObject *object, const unsigned char **out);
/* How many bytes a filter may take at most: a number, or None for any. */
bool py_most_of(PyObject *value, uint64_t *out);

/* Methods that are elsewhere than in filter.c. */
PyObject *py_filter_build(PyObject *type, PyObject *args, PyObject *kwargs);
PyObject *py_whole_open(PyObject *type, PyObject *args, PyObject *kwargs);
PyObject *py_whole_share(PyObject *type, PyObject *args, PyObject *kwargs);
PyObject *py_whole_checkpoint(PyObject *self, PyObject *none);
PyObject *py_whole_accept(PyObject *self, PyObject *none);
PyObject *py_whole_live(PyObject *self, PyObject *none);
PyObject *py_whole_replace(PyObject *self, PyObject *args, PyObject *kwargs);

/* Move a live filter to its newest generation, if there is a newer one. False:
 * it cannot be opened, for which there is an exception. */
bool py_filter_follow(py_filter *self);
PyObject *py_whole_from_bytes(PyObject *type, PyObject *args, PyObject *kwargs);
PyObject *py_whole_to_bytes(PyObject *self, PyObject *none);
PyObject *py_whole_save(PyObject *self, PyObject *path);
PyObject *py_whole_copy(PyObject *self, PyObject *none);
PyObject *py_whole_reduce(PyObject *self, PyObject *none);
PyObject *py_whole_info(PyObject *self, PyObject *none);
PyObject *py_whole_verify(PyObject *self, PyObject *none);
PyObject *py_whole_compare(PyObject *self, PyObject *other);
PyObject *py_whole_or(PyObject *a, PyObject *b);
PyObject *py_whole_and(PyObject *a, PyObject *b);
PyObject *py_whole_ior(PyObject *a, PyObject *b);
PyObject *py_whole_iand(PyObject *a, PyObject *b);
PyObject *py_whole_equal(PyObject *a, PyObject *b, int op);
Py_ssize_t py_whole_len(PyObject *self);

/* Bytes of a known number, as a bly_put puts them. */
struct py_room {
    char *at;
    size_t left;
};
bool py_room_put(void *ctx, const void *bytes, size_t n);

/* A bly_wait whose ctx is the gate_pass of the call: a signal ends it. */
bly_wait py_patience;

/* ----------------------------------------------------------------- sketches */

/* All sketches are one struct, so that files, copies and sets are written once.
 */
typedef struct {
    PyObject_HEAD bly_stored stored; /* of no type: not made yet */
    struct gate gate;
} py_sketch;

PyObject *py_sketch_wrap(PyTypeObject *type, bly_stored *s);
/* The slots and methods that all have: sketch.c. */
#define PY_SKETCH_METHODS                                                      \
    { "save", py_sketch_save, METH_O,                                          \
      "save($self, path, /)\n--\n\nWrite a .bly file, whole or not at all." }, \
        { "copy", py_sketch_copy, METH_NOARGS,                                 \
          "copy($self, /)\n--\n\nAn independent copy." },                      \
        { "__copy__", py_sketch_copy, METH_NOARGS, NULL },                     \
        { "__deepcopy__", py_sketch_deepcopy, METH_O, NULL },                  \
        { "__reduce__", py_sketch_reduce, METH_NOARGS, NULL },                 \
    {                                                                          \
        "to_bytes", py_sketch_to_bytes, METH_NOARGS,                           \
            "to_bytes($self, /)\n--\n\nThe bytes of its .bly file."            \
    }
PyObject *py_sketch_save(PyObject *self, PyObject *path);
PyObject *py_sketch_copy(PyObject *self, PyObject *none);
PyObject *py_sketch_deepcopy(PyObject *self, PyObject *memo);
PyObject *py_sketch_reduce(PyObject *self, PyObject *none);
PyObject *py_sketch_to_bytes(PyObject *self, PyObject *none);
PyObject *py_sketch_open(PyObject *type, PyObject *path, bly_stored_type is);
PyObject *py_sketch_load(PyObject *type, PyObject *bytes, bly_stored_type is);
PyObject *py_sketch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
void py_sketch_dealloc(PyObject *self);
/* Is one of the other's type, or of a subclass? */
bool py_sketch_alike(PyObject *a, PyObject *b);
PyObject *py_sketch_or(PyObject *a, PyObject *b);
PyObject *py_sketch_ior(PyObject *a, PyObject *b);
/* Give a sketch that __init__ made to its object. */
int py_sketch_set(PyObject *self, bly_stored made);

/* Keys on their way into a sketch: `add` is called in a pass, with keys that
 * are as they are. */
typedef bly_status py_sketch_adds(py_sketch *s, const struct py_run *run,
                                  const uint64_t *weights);
PyObject *py_sketch_add(PyObject *self, const struct py_key *key,
                        const uint64_t *weight, py_sketch_adds *add);
PyObject *py_sketch_add_object(PyObject *self, PyObject *key,
                               py_sketch_adds *add);
PyObject *py_sketch_update(PyObject *self, PyObject *keys, py_sketch_adds *add);
/* A pass of one who reads. False, with an exception and no pass, for a sketch
 * that was never made. */
bool py_sketch_read(PyObject *self, struct gate_pass *pass);
/* Hash run by run and give the hashes away. */
typedef bly_status py_sketch_takes(py_sketch *s, const uint64_t *hashes,
                                   size_t n);
bly_status py_sketch_hashed(py_sketch *s, const bly_hasher *hasher,
                            bly_keying keying, const struct py_run *run,
                            py_sketch_takes *take);
/* Key i of a run and those behind it. */
static inline const void *py_run_from(const struct py_run *run, size_t i)
{
    return run->type == BLY_KEYS_TEXT || run->type == BLY_KEYS_BYTES
               ? (const void *)((const bly_bytes *)run->keys + i)
               : (const void *)((const uint64_t *)run->keys + i);
}

/* Functions of the module, with names. */
PyObject *py_vector_pairs(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_vector_near(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_vector_dedup(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_vector_sketch(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_vector_angle(PyObject *module, PyObject *args, PyObject *kwargs);

bool py_bitmap_ready(PyObject *module);
bool py_filter_ready(PyObject *module);
bool py_hll_ready(PyObject *module);
bool py_topk_ready(PyObject *module);
bool py_minhash_ready(PyObject *module);
bool py_index_ready(PyObject *module);
/* Make a type and put it into the module. */
PyTypeObject *py_type_ready(PyObject *module, PyType_Spec *spec);

#endif

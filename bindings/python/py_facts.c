/*
 * py_facts.c - structs of the library as dictionaries
 *
 * Names are those of the command's JSON, so that one can be checked against the
 * other. What is not a number is None.
 */
#include "bindings/python/python.h"

#include <string.h>

bool py_put(PyObject *dict, const char *name, PyObject *value)
{
    const bool ok = value && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static PyObject *py_none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

PyObject *py_text(const char *text)
{
    return text ? PyUnicode_FromString(text) : py_none();
}

PyObject *py_real(double x)
{
    return x - x == 0 ? PyFloat_FromDouble(x) : py_none();
}

static PyObject *py_uint(uint64_t n)
{
    return PyLong_FromUnsignedLongLong(n);
}

/* dict, or NULL if putting something in has failed. */
static PyObject *whole(PyObject *dict, bool ok)
{
    if (ok)
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

PyObject *py_facts(const bly_fact *facts, size_t n)
{
    PyObject *const dict = PyDict_New();
    bool ok = dict != NULL;
    for (size_t i = 0; ok && i < n; i++)
        ok = py_put(dict, facts[i].name,
                    facts[i].word               ? py_text(facts[i].word)
                    : facts[i].type == BLY_REAL ? py_real(facts[i].real)
                                                : py_uint(facts[i].uint));
    return whole(dict, ok);
}

PyObject *py_prediction(const bly_prediction *p)
{
    PyObject *const dict = PyDict_New();
    const bool ok = dict && py_put(dict, "kind", py_text(p->kind)) &&
                    py_put(dict, "items", py_uint(p->items)) &&
                    py_put(dict, "fpr", py_real(p->fpr)) &&
                    py_put(dict, "bits", py_uint(p->bits)) &&
                    py_put(dict, "bytes", py_uint(p->bytes)) &&
                    py_put(dict, "bits_per_key", py_real(p->bits_per_key)) &&
                    py_put(dict, "params", py_facts(p->facts, p->nfacts));
    return whole(dict, ok);
}

/* ------------------------------------------------------------------- kinds */

static PyObject *option_default(const bly_param *o)
{
    if (o->automatic)
        return py_none();
    if (o->type == BLY_CHOICE)
        return py_text(o->choices[(size_t)o->def]);
    return o->type == BLY_UINT ? py_uint((uint64_t)o->def) : py_real(o->def);
}

static PyObject *option_choices(const bly_param *o)
{
    PyObject *const list = PyList_New(0);
    bool ok = list != NULL;
    for (size_t i = 0; ok && o->choices && o->choices[i]; i++) {
        PyObject *const word = py_text(o->choices[i]);
        ok = word && PyList_Append(list, word) == 0;
        Py_XDECREF(word);
    }
    return whole(list, ok);
}

static PyObject *option_of(const bly_param *o)
{
    static const char *const types[] = { "uint", "real", "choice", "text" };
    const bool choice = o->type == BLY_CHOICE;
    PyObject *const dict = PyDict_New();
    const bool ok = dict && py_put(dict, "name", py_text(o->name)) &&
                    py_put(dict, "type", py_text(types[o->type])) &&
                    py_put(dict, "default", option_default(o)) &&
                    py_put(dict, "min", choice ? py_none() : py_real(o->min)) &&
                    py_put(dict, "max", choice ? py_none() : py_real(o->max)) &&
                    py_put(dict, "help", py_text(o->help)) &&
                    (!choice || py_put(dict, "choices", option_choices(o)));
    return whole(dict, ok);
}

static bool append(PyObject *list, PyObject *item)
{
    const bool ok = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return ok;
}

static PyObject *abilities_of(uint32_t can)
{
    PyObject *const list = PyList_New(0);
    bool ok = list != NULL;
    for (unsigned bit = 0; ok && bly_can_name(bit); bit++)
        if (can >> bit & 1)
            ok = append(list, py_text(bly_can_name(bit)));
    return whole(list, ok);
}

static PyObject *options_of(const bly_kind_info *kind)
{
    PyObject *const list = PyList_New(0);
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < kind->nparams; i++) {
        const bly_param *const o = bly_param_at(kind->params, i);
        if (o->settable)
            ok = append(list, option_of(o));
    }
    return whole(list, ok);
}

PyObject *py_kind(const bly_kind_info *kind)
{
    PyObject *const dict = PyDict_New();
    const bool ok = dict && py_put(dict, "kind", py_text(kind->name)) &&
                    py_put(dict, "summary", py_text(kind->summary)) &&
                    py_put(dict, "can", abilities_of(kind->can)) &&
                    py_put(dict, "options", options_of(kind));
    return whole(dict, ok);
}

/* ----------------------------------------------------------------- a filter */

static uint16_t copied(struct py_told *t, size_t *at, bly_bytes b)
{
    const size_t room = sizeof t->text - *at;
    const size_t n = b.len < room ? b.len : room;
    if (n)
        memcpy(t->text + *at, b.ptr, n);
    *at += n;
    return (uint16_t)n;
}

/* The library keeps less than half of what there is room for. */
void py_told_take(struct py_told *t, const bly_filter *f)
{
    size_t at = 0;
    bly_bytes name, value;
    bly_stat(f, &t->stats);
    t->file_bytes = bly_written_bytes(f);
    t->keying = bly_keying_of(f);
    t->note = copied(t, &at, bly_note_of(f));
    for (t->npairs = 0;
         t->npairs < PY_PAIRS && bly_pair_at(f, t->npairs, &name, &value);
         t->npairs++) {
        t->name[t->npairs] = copied(t, &at, name);
        t->value[t->npairs] = copied(t, &at, value);
    }
}

static PyObject *told_text(const char *at, size_t n)
{
    return PyUnicode_DecodeUTF8(at, (Py_ssize_t)n, "replace");
}

static PyObject *told_meta(const struct py_told *t)
{
    PyObject *const dict = PyDict_New();
    const char *at = t->text + t->note;
    bool ok = dict != NULL;
    for (size_t i = 0; ok && i < t->npairs; i++) {
        PyObject *const name = told_text(at, t->name[i]);
        PyObject *const value = told_text(at + t->name[i], t->value[i]);
        at += t->name[i] + t->value[i];
        ok = name && value && PyDict_SetItem(dict, name, value) == 0;
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return whole(dict, ok);
}

static PyObject *py_bool(bool yes)
{
    return PyBool_FromLong(yes);
}

PyObject *py_told_dict(const struct py_told *t)
{
    const bly_stats *const s = &t->stats;
    const bly_keying k = t->keying;
    PyObject *const dict = PyDict_New();
    const bool ok =
        dict && py_put(dict, "kind", py_text(s->kind)) &&
        py_put(dict, "items_estimate", py_real(s->items_estimate)) &&
        py_put(dict, "items_sd", py_real(s->items_sd)) &&
        py_put(dict, "items_added", py_uint(s->items_added)) &&
        py_put(dict, "capacity", py_uint(s->capacity)) &&
        py_put(dict, "fpr_now", py_real(s->fpr_now)) &&
        py_put(dict, "fpr_at_capacity", py_real(s->fpr_at_capacity)) &&
        py_put(dict, "fill", py_real(s->fill)) &&
        py_put(dict, "bits", py_uint(s->bits)) &&
        py_put(dict, "bytes", py_uint(s->bytes)) &&
        py_put(dict, "file_bytes", py_uint(t->file_bytes)) &&
        py_put(dict, "seed", s->keyed ? py_none() : py_uint(s->seed)) &&
        py_put(dict, "keyed", py_bool(s->keyed)) &&
        py_put(dict, "mapped", py_bool(s->mapped)) &&
        py_put(dict, "coded", py_bool(s->coded)) &&
        py_put(dict, "compact", py_bool(s->compact)) &&
        py_put(dict, "layers", py_uint(s->layers)) &&
        py_put(dict, "key_type", py_text(bly_key_type_name(k.type))) &&
        py_put(dict, "folded", py_bool(k.forms & BLY_KEYS_FOLDED)) &&
        py_put(dict, "trimmed", py_bool(k.forms & BLY_KEYS_TRIMMED)) &&
        py_put(dict, "no_cr", py_bool(k.forms & BLY_KEYS_NO_CR)) &&
        py_put(dict, "note",
               t->note ? told_text(t->text, t->note) : py_none()) &&
        py_put(dict, "meta", told_meta(t)) &&
        py_put(dict, "params", py_facts(s->facts, s->nfacts));
    return whole(dict, ok);
}

PyObject *py_likeness(const bly_likeness *c)
{
    PyObject *const dict = PyDict_New();
    const bool ok = dict && py_put(dict, "a", py_real(c->a)) &&
                    py_put(dict, "b", py_real(c->b)) &&
                    py_put(dict, "in_either", py_real(c->in_either)) &&
                    py_put(dict, "in_either_sd", py_real(c->in_either_sd)) &&
                    py_put(dict, "in_both", py_real(c->in_both)) &&
                    py_put(dict, "in_both_sd", py_real(c->in_both_sd)) &&
                    py_put(dict, "jaccard", py_real(c->jaccard)) &&
                    py_put(dict, "containment", py_real(c->containment));
    return whole(dict, ok);
}

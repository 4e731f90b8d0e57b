/*
 * spec.c - arguments that say what a filter is to be
 *
 * Numbers may be int, float (where they are whole) or text with suffixes, as
 * the command takes them: 1_000_000, 1e6 or "1M". What has no name of its own
 * here is an option of the kind; one whose name is taken goes into options={}.
 */
#include "bindings/python/python.h"

#include <string.h>

bool py_args(const char *call, PyObject *args, PyObject *kwargs,
             const char *const *names, size_t npos, PyObject **values)
{
    const Py_ssize_t given = args ? PyTuple_Size(args) : 0;
    size_t n = 0;
    while (names[n])
        values[n++] = NULL;
    if ((size_t)given > npos) {
        PyErr_Format(PyExc_TypeError,
                     "%s() takes at most %zu arguments by position", call,
                     npos);
        return false;
    }
    for (Py_ssize_t i = 0; i < given; i++)
        values[i] = PyTuple_GetItem(args, i);
    PyObject *name, *value;
    for (Py_ssize_t at = 0;
         kwargs && PyDict_Next(kwargs, &at, &name, &value);) {
        size_t i = 0;
        while (names[i] && PyUnicode_CompareWithASCIIString(name, names[i]))
            i++;
        if (!names[i] || values[i]) {
            PyErr_Format(PyExc_TypeError, "%s(): %s argument '%U'", call,
                         names[i] ? "repeated" : "there is no", name);
            return false;
        }
        values[i] = value;
    }
    return true;
}

bool py_secret_of(PyObject *object, const unsigned char **out)
{
    char *at;
    Py_ssize_t len;
    *out = NULL;
    if (!object || object == Py_None)
        return true;
    if (PyBytes_AsStringAndSize(object, &at, &len))
        return false;
    if (len != BLY_SECRET_BYTES) {
        PyErr_Format(PyExc_ValueError,
                     "a secret of %zd bytes; expected %d, as from "
                     "secrets.token_bytes(%d)",
                     len, BLY_SECRET_BYTES, BLY_SECRET_BYTES);
        return false;
    }
    *out = (unsigned char *)at;
    return true;
}

/* The text of an object, kept in the list as long as the spec is. */
static const char *kept_text(struct py_spec *s, PyObject *object)
{
    PyObject *const text =
        PyBool_Check(object)
            ? PyUnicode_FromString(object == Py_True ? "yes" : "no")
            : PyObject_Str(object);
    const char *at = NULL;
    if (text && PyList_Append(s->kept, text) == 0) {
        Py_ssize_t len;
        at = PyUnicode_AsUTF8AndSize(text, &len);
        if (at && strlen(at) != (size_t)len) {
            PyErr_SetString(PyExc_ValueError, "a text with a NUL in it");
            at = NULL;
        }
    }
    Py_XDECREF(text);
    return at;
}

static bool bad_number(const char *name, PyObject *value, const char *right)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError) &&
        !PyErr_ExceptionMatches(PyExc_OverflowError) &&
        !PyErr_ExceptionMatches(PyExc_ValueError))
        return false;
    PyErr_Clear();
    PyErr_Format(PyUnicode_Check(value) || PyNumber_Check(value)
                     ? PyExc_ValueError
                     : PyExc_TypeError,
                 "%s=%R; expected %s", name, value, right);
    return false;
}

/* To the library zero is "choose for me", which is None here. */
static bool not_zero(const char *name, bool zero)
{
    if (zero)
        PyErr_Format(PyExc_ValueError,
                     "%s=0; expected more than that, or None, and it is chosen",
                     name);
    return !zero;
}

static bool number_real(struct py_spec *s, const char *name, PyObject *value,
                        double *out)
{
    if (PyUnicode_Check(value)) {
        const char *const text = kept_text(s, value);
        return (text && bly_parse_real(text, out)) ||
               bad_number(name, value, "a number, such as 0.01 or \"1%\"");
    }
    *out = PyFloat_AsDouble(value);
    return (*out != -1 || !PyErr_Occurred()) ||
           bad_number(name, value, "a number, such as 0.01");
}

static bool number_count(struct py_spec *s, const char *name, PyObject *value,
                         uint64_t *out)
{
    const char *const right = "a whole number from 0 to 2^64 - 1";
    if (PyUnicode_Check(value)) {
        const char *const text = kept_text(s, value);
        return (text && bly_parse_count(text, out)) ||
               bad_number(name, value, right);
    }
    if (PyFloat_Check(value)) {
        const double x = PyFloat_AsDouble(value);
        if (!(x >= 0 && x < 0x1p64) || x != (double)(uint64_t)x)
            return bad_number(name, value, right);
        *out = (uint64_t)x;
        return true;
    }
    return py_count_of(value, out) || bad_number(name, value, right);
}

bool py_most_of(PyObject *value, uint64_t *out)
{
    struct py_spec s = { .kept = NULL };
    *out = 0;
    if (!value || value == Py_None)
        return true;
    s.kept = PyList_New(0);
    const bool good = s.kept && number_count(&s, "max_bytes", value, out);
    Py_XDECREF(s.kept);
    return good;
}

static bool type_of_keys(PyObject *value, bly_keying *out)
{
    for (bly_key_type t = BLY_KEYS_TEXT; bly_key_type_name(t); t++)
        if (PyUnicode_Check(value) &&
            !PyUnicode_CompareWithASCIIString(value, bly_key_type_name(t))) {
            out->type = t;
            return true;
        }
    PyErr_Format(PyExc_ValueError,
                 "keys=%R; expected 'text', 'bytes', 'int64' or 'uint64'",
                 value);
    return false;
}

static bool form_of_keys(PyObject *value, uint32_t form, bly_keying *out)
{
    const int yes = PyObject_IsTrue(value);
    if (yes > 0)
        out->forms |= form;
    return yes >= 0;
}

static bool option_of_kind(struct py_spec *s, PyObject *name, PyObject *value)
{
    if (s->spec.noptions == PY_OPTIONS) {
        PyErr_SetString(PyExc_ValueError, "too many options");
        return false;
    }
    bly_option *const o = &s->options[s->spec.noptions];
    o->name = kept_text(s, name);
    o->value = o->name ? kept_text(s, value) : NULL;
    s->spec.noptions += o->value != NULL;
    return o->value != NULL;
}

/* A copy of a dictionary, which no code that str() runs can change. Borrowed.
 */
static PyObject *kept_copy(struct py_spec *s, PyObject *dict)
{
    PyObject *const copy = PyDict_Copy(dict);
    const bool ok = copy && PyList_Append(s->kept, copy) == 0;
    Py_XDECREF(copy);
    return ok ? copy : NULL;
}

static bool options_of_kind(struct py_spec *s, PyObject *options)
{
    PyObject *name, *value;
    if (!PyDict_Check(options)) {
        PyErr_SetString(PyExc_TypeError,
                        "options should be a dict of names and values");
        return false;
    }
    options = kept_copy(s, options);
    for (Py_ssize_t at = 0;
         options && PyDict_Next(options, &at, &name, &value);)
        if (!option_of_kind(s, name, value))
            return false;
    return options != NULL;
}

static bool argument(struct py_spec *s, const char *name, PyObject *value,
                     bool *known)
{
    bly_spec *const spec = &s->spec;
    *known = true;
    if (value == Py_None)
        return true;
    if (!strcmp(name, "items"))
        return number_count(s, name, value, &spec->items) &&
               not_zero(name, !spec->items);
    if (!strcmp(name, "fpr"))
        return number_real(s, name, value, &spec->fpr) &&
               not_zero(name, spec->fpr == 0);
    if (!strcmp(name, "bits"))
        return number_count(s, name, value, &spec->bits) &&
               not_zero(name, !spec->bits);
    if (!strcmp(name, "seed"))
        return number_count(s, name, value, &spec->seed);
    if (!strcmp(name, "max_bytes"))
        return number_count(s, name, value, &spec->max_bytes);
    if (!strcmp(name, "kind"))
        return (spec->kind = kept_text(s, value)) != NULL;
    if (!strcmp(name, "secret"))
        return PyList_Append(s->kept, value) == 0 &&
               py_secret_of(value, &spec->secret);
    if (!strcmp(name, "keys"))
        return type_of_keys(value, &spec->keying);
    if (!strcmp(name, "folded"))
        return form_of_keys(value, BLY_KEYS_FOLDED, &spec->keying);
    if (!strcmp(name, "trimmed"))
        return form_of_keys(value, BLY_KEYS_TRIMMED, &spec->keying);
    if (!strcmp(name, "no_cr"))
        return form_of_keys(value, BLY_KEYS_NO_CR, &spec->keying);
    if (!strcmp(name, "options"))
        return options_of_kind(s, value);
    *known = false;
    return true;
}

/* One keyword argument: one of the caller's, one of ours, or an option. */
static bool keyword(struct py_spec *s, PyObject *name, PyObject *value,
                    const char *const *own, PyObject **values)
{
    const char *const word = kept_text(s, name);
    bool known;
    if (!word)
        return false;
    for (size_t i = 0; own[i]; i++)
        if (!strcmp(own[i], word)) {
            if (values[i])
                PyErr_Format(PyExc_TypeError, "repeated argument '%s'", word);
            else
                values[i] = value;
            return !PyErr_Occurred();
        }
    return argument(s, word, value, &known) &&
           (known || option_of_kind(s, name, value));
}

bool py_spec_read(struct py_spec *s, PyObject *args, PyObject *kwargs,
                  size_t npos, const char *const *own, PyObject **values)
{
    static const char *const order[] = { "items", "fpr" };
    const size_t given = args ? (size_t)PyTuple_Size(args) : 0;
    PyObject *name, *value;
    bool known;
    *s = (struct py_spec){ .kept = PyList_New(0) };
    s->spec.options = s->options;
    for (size_t i = 0; own[i]; i++)
        values[i] = NULL;
    bool ok = s->kept != NULL;
    if (ok && given > npos) {
        PyErr_Format(PyExc_TypeError, "at most %zu arguments by position",
                     npos);
        ok = false;
    }
    for (size_t i = 0; ok && i < given; i++) {
        value = PyTuple_GetItem(args, (Py_ssize_t)i);
        if (own[0])
            values[i] = value;
        else if (kwargs && PyDict_GetItemString(kwargs, order[i])) {
            PyErr_Format(PyExc_TypeError, "repeated argument '%s'", order[i]);
            ok = false;
        } else
            ok = argument(s, order[i], value, &known);
    }
    if (ok && kwargs) {
        kwargs = kept_copy(s, kwargs);
        ok = kwargs != NULL;
    }
    for (Py_ssize_t at = 0;
         ok && kwargs && PyDict_Next(kwargs, &at, &name, &value);)
        ok = keyword(s, name, value, own, values);
    if (ok && s->spec.keying.forms && !s->spec.keying.type)
        s->spec.keying.type = BLY_KEYS_TEXT;
    if (!ok)
        py_spec_free(s);
    return ok;
}

void py_spec_free(struct py_spec *s)
{
    Py_XDECREF(s->kept);
    s->kept = NULL;
}

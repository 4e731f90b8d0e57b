/*
 * fields.c - results by their tables: for programs, for people, as a schema
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/fields.h"
#include "report/show.h"

static bool is_end(const struct field *f)
{
    return !f->name && !f->fields;
}

static enum field_type type_of(const struct field *f)
{
    return f->type & ~(unsigned)FIELD_AT;
}

/* Facts are an object with a name for each. */
static bool is_facts(const struct field *f)
{
    return f->each && type_of(f) == FIELD_FACT;
}

/* Where a field is, NULL if there is none. */
static const void *field_at(const struct field *f, const void *value)
{
    const void *const at = (const char *)value + f->at;
    return f->type & FIELD_AT ? *(const void *const *)at : at;
}

/* How many elements a list has. */
static size_t field_count(const struct field *f, const void *value)
{
    const char *const *const words = field_at(f, value);
    size_t n = 0;
    if (f->count != NO_COUNT)
        return *(const size_t *)(const void *)((const char *)value + f->count);
    while (words && words[n])
        n++;
    return n;
}

enum value_type { NOTHING, TEXT, BOOL, UINT, REAL, OBJECT_AT };

struct value {
    enum value_type is;
    const void *at; /* of a text or an object */
    uint64_t uint;  /* of a text: its length */
    double real;    /* for all: 0 if it is not worth a word */
};

static struct value uint_value(enum value_type is, uint64_t uint)
{
    return (struct value){ .is = is, .uint = uint, .real = (double)uint };
}

static struct value text_value(const char *text, size_t n)
{
    return (struct value){ text ? TEXT : NOTHING, text, n, (double)n };
}

static struct value real_value(double real)
{
    return (struct value){ .is = isfinite(real) ? REAL : NOTHING,
                           .real = real };
}

/* What stands at a place: a field's own value, or an element of a list. */
static struct value value_at(const struct field *f, const void *at)
{
    const bly_bytes *const bytes = at;
    const bly_fact *const fact = at;
    const char *text = at;
    switch (at ? type_of(f) : FIELD_NONE) {
    case FIELD_TEXT:
        text = *(const char *const *)at;
        return text_value(text, text ? strlen(text) : 0);
    case FIELD_CHARS:
        return text_value(text, strlen(text));
    case FIELD_BYTES:
        return text_value(bytes->ptr, bytes->len);
    case FIELD_BOOL:
        return uint_value(BOOL, *(const bool *)at);
    case FIELD_UINT32:
        return uint_value(UINT, *(const uint32_t *)at);
    case FIELD_UINT64:
        return uint_value(UINT, *(const uint64_t *)at);
    case FIELD_REAL:
        return real_value(*(const double *)at);
    case FIELD_FACT:
        return fact->type == BLY_UINT ? uint_value(UINT, fact->uint)
               : fact->type == BLY_REAL
                   ? real_value(fact->real)
                   : text_value(fact->word, strlen(fact->word));
    case FIELD_OBJECT:
        return (struct value){ .is = OBJECT_AT, .at = at, .real = 1 };
    default:
        return (struct value){ .is = NOTHING };
    }
}

static struct value field_value(const struct field *f, const void *value)
{
    const void *const at = field_at(f, value);
    /* An empty list has no first element that could be looked at. */
    if (f->each && at && !field_count(f, value))
        return (struct value){ .is = OBJECT_AT, .at = at };
    struct value v = value_at(f, at);
    if (f->each && v.is != NOTHING)
        v.real = (double)field_count(f, value);
    else if ((f->how & ZERO) && v.real == 0)
        v.is = NOTHING;
    return v;
}

/* -------------------------------------------------------------- programs */

static void json_value(struct json *j, const struct field *f, struct value v)
{
    if (v.is == NOTHING)
        json_null(j);
    else if (v.is == TEXT)
        json_bytes(j, v.at, v.uint);
    else if (v.is == BOOL)
        json_bool(j, v.uint);
    else if (v.is == UINT)
        json_uint(j, v.uint);
    else if (v.is == REAL)
        json_real(j, v.real);
    else
        report_object(j, f->fields, v.at);
}

static void json_list(struct json *j, const struct field *f, const void *value)
{
    const size_t n = field_count(f, value);
    const void *const at = field_at(f, value);
    union {
        max_align_t aligned;
        char bytes[ELEMENT_ROOM];
    } room;
    assert(!f->make || f->each <= sizeof room);
    json_open(j, is_facts(f) ? '{' : '[');
    for (size_t i = 0; i < n; i++) {
        const void *const element =
            f->make ? &room : (const void *)((const char *)at + i * f->each);
        if (f->make)
            f->make(at, i, &room);
        if (is_facts(f))
            json_key(j, ((const bly_fact *)element)->name);
        if (f->how & TUPLE) {
            json_open(j, '[');
            for (const struct field *part = f->fields; part->name; part++)
                json_value(j, part, field_value(part, element));
            json_close(j, ']');
        } else {
            json_value(j, f, value_at(f, element));
        }
    }
    json_close(j, is_facts(f) ? '}' : ']');
}

static void json_members(struct json *j, const struct field *fields,
                         const void *value)
{
    for (const struct field *f = fields; !is_end(f); f++) {
        const struct value v = field_value(f, value);
        if (!f->name && v.at)
            json_members(j, f->fields, v.at);
        if (!f->name || !f->help || ((f->how & OPTIONAL) && v.is == NOTHING))
            continue;
        json_key(j, f->name);
        if (f->each)
            json_list(j, f, value);
        else
            json_value(j, f, v);
    }
}

void report_object(struct json *j, const struct field *fields,
                   const void *value)
{
    json_open(j, '{');
    json_members(j, fields, value);
    json_close(j, '}');
}

void report(FILE *to, bool json, const struct field *fields, const void *value,
            const char *text)
{
    struct json j = { .to = stdout };
    if (json) {
        report_object(&j, fields, value);
        json_end(&j);
    } else {
        report_text(to, fields, value, text);
    }
}

/* ---------------------------------------------------------------- people */

/* A text on its way out. */
struct telling {
    FILE *to;
    const struct field *fields;
    const void *value;
    int at, column; /* of what is printed; what a tilde moves to */
};

/* A value that a text names: "name", "name:-12.3", "name:#", "name match/es",
 * "name entr/y/ies". */
struct named {
    char asked; /* one of ASKS, or 0 */
    const struct field *f;
    struct value v;
    const bly_fact *facts;
    int width, digits; /* digits: -1 if not said */
    bool bare;
    const char *noun; /* what it counts, to the brace; NULL: not said */
};
#define ASKS "?!>"

static const struct field *find_field(const struct field *fields,
                                      const void **value, const char *name,
                                      size_t n)
{
    for (const struct field *f = fields; !is_end(f); f++) {
        const void *within = field_at(f, *value);
        const struct field *found = f;
        if (f->name && (strncmp(f->name, name, n) != 0 || f->name[n]))
            continue;
        if (!f->name && (found = find_field(f->fields, &within, name, n)))
            *value = within;
        if (found)
            return found;
    }
    return NULL;
}

/* Read what *text has between braces, and go past it. */
static struct named named_read(const struct telling *t, const char **text)
{
    struct named v = { .digits = -1 };
    const void *value = t->value;
    const char *name = *text + 1;
    v.asked = strchr(ASKS, *name) ? *name++ : '\0';
    const size_t n = strcspn(name, ": }");
    v.f = find_field(t->fields, &value, name, n);
    assert(v.f && "a text names a field that is not in its table");
    v.v = field_value(v.f, value);
    v.facts = is_facts(v.f) ? field_at(v.f, value) : NULL;
    char *end = (char *)(uintptr_t)(name + n);
    if (*end == ':')
        v.width = (int)strtol(end + 1, &end, 10);
    if (*end == '.')
        v.digits = (int)strtol(end + 1, &end, 10);
    v.bare = *end == '#';
    if (*end == ' ')
        v.noun = end + 1;
    *text = strchr(end, '}') + 1;
    return v;
}

static const char *show_value(const struct named *n, char *digits, size_t room)
{
    const struct value *const v = &n->v;
    const uint64_t uint = v->is == REAL ? (uint64_t)(v->real + 0.5) : v->uint;
    if (v->is == NOTHING || v->is == BOOL)
        return v->is == BOOL ? "" : "unknown";
    if (v->is == TEXT)
        return show_text(v->at, v->uint);
    if (n->digits >= 0) {
        snprintf(digits, room, "%.*f", n->digits, v->real);
        return digits;
    }
    switch (n->bare ? NONE : n->f->how & UNIT_MASK) {
    case BYTES:
        return show_bytes(uint);
    case KEYS:
        return show_keys(uint);
    case ITEMS:
        return show_count(uint);
    case ESTIMATE:
        return show_estimate(v->real);
    case ROUNDED:
        return show_rounded(v->real);
    case RATE:
        return show_rate(v->real);
    case SHARE:
        snprintf(digits, room, "%.1f %%", v->real * 100);
        return digits;
    default:
        snprintf(digits, room, "%llu", (unsigned long long)uint);
        return v->is == REAL ? show_real(v->real) : digits;
    }
}

static void tell(struct telling *t, const char *s, size_t n)
{
    fwrite(s, 1, n, t->to);
    for (size_t i = 0; i < n; i++)
        t->at = s[i] == '\n' ? 0 : t->at + 1;
}

/* "match/es" is "match" of one, "matches" of others; "entr/y/ies" has an end
 * for each. */
static void tell_noun(struct telling *t, const struct named *n)
{
    const size_t stem = strcspn(n->noun, "/}");
    const char *const first = n->noun + stem + (n->noun[stem] == '/');
    const size_t nfirst = strcspn(first, "/}");
    const bool both = first[nfirst] == '/';
    const char *const others = both ? first + nfirst + 1 : first;
    tell(t, " ", 1);
    tell(t, n->noun, stem);
    if (n->v.real != 1)
        tell(t, others, strcspn(others, "}"));
    else if (both)
        tell(t, first, nfirst);
}

static void tell_named(struct telling *t, const struct named *n)
{
    char digits[400];
    if (!n->facts)
        t->at += fprintf(t->to, "%*s", n->width,
                         show_value(n, digits, sizeof digits));
    if (n->noun)
        tell_noun(t, n);
    for (size_t i = 0; n->facts && i < (size_t)n->v.real; i++)
        fprintf(t->to, "%*s%-*s%s\n", n->width, "", t->column - n->width,
                n->facts[i].name, show_fact(&n->facts[i]));
}

/* Is what it names there, or as the text asks? */
static bool named_fits(const struct named *n)
{
    const bool there = n->v.is != NOTHING;
    return n->asked == '>' ? isinf(n->v.real)
           : n->asked      ? (there && n->v.real != 0) == (n->asked == '?')
                           : there;
}

/* Go through text to its end, or to the bar or bracket that ends this part of
 * it, and return where that is; *fits becomes false if a value is missing. */
static const char *tell_part(struct telling *t, const char *text, bool print,
                             bool *fits)
{
    for (;;) {
        const size_t n = strcspn(text, "{[|]~");
        if (print)
            tell(t, text, n);
        text += n;
        if (*text == '~') {
            if (print)
                t->at += fprintf(t->to, "%*s", t->column - t->at, "");
            text++;
        } else if (*text == '{') {
            const struct named v = named_read(t, &text);
            if (!named_fits(&v))
                *fits = false;
            if (print && !v.asked)
                tell_named(t, &v);
        } else if (*text == '[') {
            bool done = !print;
            do {
                const char *const part = text + 1;
                bool this_fits = true;
                text = tell_part(t, part, false, &this_fits);
                if (this_fits && !done)
                    tell_part(t, part, true, &done);
                done = done || this_fits;
            } while (*text == '|');
            text++;
        } else {
            return text;
        }
    }
}

/* Right of all that stands before a tilde, and of the names of facts. */
static int tell_width(const struct telling *t, const char *text)
{
    int at = 0, widest = 0;
    while (*text) {
        if (*text == '~')
            widest = at > widest ? at : widest;
        if (*text != '{') {
            at = *text == '\n' ? 0 : at + (*text != '[' && *text != ']');
            text++;
            continue;
        }
        const struct named v = named_read(t, &text);
        for (size_t i = 0; v.facts && i < (size_t)v.v.real; i++) {
            const int wide = v.width + (int)strlen(v.facts[i].name);
            widest = wide > widest ? wide : widest;
        }
    }
    return widest + 2;
}

void report_text(FILE *to, const struct field *fields, const void *value,
                 const char *text)
{
    struct telling t = { .to = to, .fields = fields, .value = value };
    bool fits = true;
    t.column = tell_width(&t, text);
    tell_part(&t, text, true, &fits);
}

/* --------------------------------------------------------- documentation */

static const char *const units[UNIT_MASK + 1] = {
    [BITS] = "bits",       [BYTES] = "bytes",
    [KEYS] = "keys",       [ITEMS] = "keys",
    [ESTIMATE] = "keys",   [ROUNDED] = "keys",
    [RATE] = "share",      [SHARE] = "share",
    [SECONDS] = "seconds", [NANOSECONDS] = "nanoseconds",
};

static const char *const types[] = {
    [FIELD_CHARS] = "string",   [FIELD_TEXT] = "string",
    [FIELD_BYTES] = "string",   [FIELD_BOOL] = "boolean",
    [FIELD_UINT32] = "integer", [FIELD_UINT64] = "integer",
    [FIELD_REAL] = "number",    [FIELD_FACT] = "number or string",
    [FIELD_OBJECT] = "object",
};

const char *field_kind(const struct field *f)
{
    static char text[100];
    const char *const unit = units[f->how & UNIT_MASK];
    snprintf(text, sizeof text, "%s%s%s%s%s%s", f->each ? "list: " : "",
             types[type_of(f)], unit ? ", " : "", unit ? unit : "",
             f->how & MAYBE ? ", or null" : "",
             f->how & OPTIONAL ? ", optional" : "");
    return text;
}

static void key_text(struct json *j, const char *key, const char *text)
{
    json_key(j, key);
    json_text(j, text);
}

static void schema_field(struct json *j, const struct field *f);

static void schema_members(struct json *j, const struct field *fields,
                           bool required)
{
    for (const struct field *f = fields; !is_end(f); f++) {
        if (!f->name && required && (f->how & OPTIONAL)) {
            continue; /* all of them, or none */
        } else if (!f->name) {
            schema_members(j, f->fields, required);
        } else if (f->help && required) {
            if (!(f->how & OPTIONAL))
                json_text(j, f->name);
        } else if (f->help) {
            j->line = true;
            json_key(j, f->name);
            schema_field(j, f);
        }
    }
}

/* In an object that is open: the type of others, which have these fields. */
static void schema_type(struct json *j, const char *type, const char *other,
                        bool or_null, const struct field *fields)
{
    json_key(j, "type");
    if (other || or_null)
        json_open(j, '[');
    json_text(j, type);
    if (other)
        json_text(j, other);
    if (or_null)
        json_text(j, "null");
    if (other || or_null)
        json_close(j, ']');
    if (!fields)
        return;
    json_key(j, "properties");
    json_open(j, '{');
    schema_members(j, fields, false);
    json_close(j, '}');
    json_key(j, "required");
    json_open(j, '[');
    schema_members(j, fields, true);
    json_close(j, ']');
    json_key(j, "additionalProperties");
    json_bool(j, false);
}

static void schema_field(struct json *j, const struct field *f)
{
    const bool is_fact = type_of(f) == FIELD_FACT, is_tuple = f->how & TUPLE;
    json_open(j, '{');
    key_text(j, "description", f->help);
    if (units[f->how & UNIT_MASK])
        key_text(j, "unit", units[f->how & UNIT_MASK]);
    if (f->each) {
        key_text(j, "type", is_fact ? "object" : "array");
        json_key(j, is_fact ? "additionalProperties" : "items");
        json_open(j, '{');
    }
    schema_type(j,
                is_fact    ? "number"
                : is_tuple ? "array"
                           : types[type_of(f)],
                is_fact ? "string" : NULL, is_fact || f->how & MAYBE,
                is_tuple ? NULL : f->fields);
    if (is_tuple) {
        json_key(j, "prefixItems");
        json_open(j, '[');
        for (const struct field *part = f->fields; part->name; part++)
            schema_field(j, part);
        json_close(j, ']');
    }
    if (f->each)
        json_close(j, '}');
    json_close(j, '}');
}

void report_schema(struct json *j, const char *verb,
                   const struct report *reports)
{
    for (const struct report *r = reports; r->fields; r++) {
        j->line = true;
        json_open(j, '{');
        char what[96];
        snprintf(what, sizeof what, "%s%s%s", verb ? verb : "",
                 verb && r->what[0] ? ", " : "", r->what);
        if (what[0])
            key_text(j, "description", what);
        if (r->form == ARRAY) {
            key_text(j, "type", "array");
            json_key(j, "items");
            json_open(j, '{');
        }
        schema_type(j, "object", NULL, false, r->fields);
        if (r->form == ARRAY)
            json_close(j, '}');
        json_close(j, '}');
    }
}

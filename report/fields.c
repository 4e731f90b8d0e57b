/*
 * fields.c - results by their tables: for programs, for people, as a schema
 */
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/fields.h"
#include "report/show.h"

static bool is_end(const struct field *f)
{
    return !f->name && !f->fields;
}

/* Where a field is, NULL if there is none. */
static const void *field_at(const struct field *f, const void *value)
{
    const void *const at = (const char *)value + f->at;
    return f->type & FIELD_AT ? *(const void *const *)at : at;
}

static enum field_type type_of(const struct field *f)
{
    return f->type & ~(unsigned)FIELD_AT;
}

/* How many elements a list has. */
static size_t field_count(const struct field *f, const void *value)
{
    const char *const *words = field_at(f, value);
    if (f->count != NO_COUNT)
        return *(const size_t *)(const void *)((const char *)value + f->count);
    size_t n = 0;
    while (words && words[n])
        n++;
    return n;
}

static uint64_t uint_at(const struct field *f, const void *at)
{
    return type_of(f) == FIELD_BOOL     ? *(const bool *)at
           : type_of(f) == FIELD_UINT32 ? *(const uint32_t *)at
                                        : *(const uint64_t *)at;
}

static const char *text_at(const struct field *f, const void *at)
{
    return type_of(f) == FIELD_TEXT ? *(const char *const *)at : at;
}

/* Is there a value? */
static bool is_there(const struct field *f, const void *at)
{
    if (!at || f->each)
        return at != NULL;
    switch (type_of(f)) {
    case FIELD_REAL:
        return isfinite(*(const double *)at) &&
               !((f->how & ZERO) && *(const double *)at == 0);
    case FIELD_CHARS:
    case FIELD_TEXT:
        return text_at(f, at) && !((f->how & ZERO) && !text_at(f, at)[0]);
    case FIELD_BYTES:
        return ((const bly_bytes *)at)->ptr != NULL;
    case FIELD_UINT32:
    case FIELD_UINT64:
        return !(f->how & ZERO) || uint_at(f, at);
    default:
        return true;
    }
}

/* -------------------------------------------------------------- programs */

static void json_fact(struct json *j, const bly_fact *fact)
{
    if (fact->type == BLY_UINT)
        json_uint(j, fact->uint);
    else if (fact->type == BLY_REAL)
        json_real(j, fact->real);
    else
        json_text(j, fact->word);
}

/* One value: a field's own, or an element of a list. */
static void json_value(struct json *j, const struct field *f, const void *at)
{
    const bly_bytes *const bytes = at;
    switch (type_of(f)) {
    case FIELD_CHARS:
    case FIELD_TEXT:
        json_text(j, text_at(f, at));
        return;
    case FIELD_BYTES:
        json_bytes(j, bytes->ptr, bytes->len);
        return;
    case FIELD_BOOL:
        json_bool(j, *(const bool *)at);
        return;
    case FIELD_UINT32:
    case FIELD_UINT64:
        json_uint(j, uint_at(f, at));
        return;
    case FIELD_REAL:
        json_real(j, *(const double *)at);
        return;
    case FIELD_FACT:
        json_fact(j, at);
        return;
    default:
        report_object(j, f->fields, at);
    }
}

static void json_list(struct json *j, const struct field *f, const void *at,
                      size_t n)
{
    const bool facts = type_of(f) == FIELD_FACT;
    union {
        max_align_t aligned;
        char bytes[ELEMENT_ROOM];
    } room;
    assert(!f->make || f->each <= sizeof room);
    json_open(j, facts ? '{' : '[');
    for (size_t i = 0; i < n; i++) {
        const void *element = (const char *)at + i * f->each;
        if (f->make) {
            f->make(at, i, &room);
            element = &room;
        }
        if (facts)
            json_key(j, ((const bly_fact *)element)->name);
        if (f->how & TUPLE) {
            json_open(j, '[');
            for (const struct field *part = f->fields; part->name; part++)
                json_value(j, part, field_at(part, element));
            json_close(j, ']');
        } else {
            json_value(j, f, element);
        }
    }
    json_close(j, facts ? '}' : ']');
}

void report_members(struct json *j, const struct field *fields,
                    const void *value)
{
    for (const struct field *f = fields; !is_end(f); f++) {
        const void *const at = field_at(f, value);
        if (!f->name && at)
            report_members(j, f->fields, at);
        if (!f->name || !f->help || ((f->how & OPTIONAL) && !is_there(f, at)))
            continue;
        json_key(j, f->name);
        if (f->each)
            json_list(j, f, at, field_count(f, value));
        else if (is_there(f, at))
            json_value(j, f, at);
        else
            json_null(j);
    }
}

void report_object(struct json *j, const struct field *fields,
                   const void *value)
{
    json_open(j, '{');
    report_members(j, fields, value);
    json_close(j, '}');
}

void report(FILE *to, bool json, const struct field *fields, const void *value,
            const char *text)
{
    if (!json) {
        report_text(to, fields, value, text);
        return;
    }
    struct json j = { .to = stdout };
    report_object(&j, fields, value);
    json_end(&j);
}

/* ---------------------------------------------------------------- people */

/* A text on its way out. */
struct telling {
    FILE *to;
    const struct field *fields;
    const void *value;
    int at, column; /* of what is printed; what a tilde moves to */
};

/* A value that a text names: "name", "name:-12.3", "name:#". */
struct named {
    const struct field *f;
    const void *value, *at; /* the struct that has it, and where it is */
    int width, digits;      /* digits: -1 if not said */
    bool bare;
};

static const struct field *find_field(const struct field *fields,
                                      const void **value, const char *name,
                                      size_t n)
{
    for (const struct field *f = fields; !is_end(f); f++) {
        const void *within = field_at(f, *value);
        const struct field *const found =
            f->name ? f : find_field(f->fields, &within, name, n);
        if (!found ||
            (f->name && (strncmp(f->name, name, n) != 0 || f->name[n])))
            continue;
        *value = f->name ? *value : within;
        return found;
    }
    return NULL;
}

/* Read a name, past which *text is then. */
static struct named named_read(const struct telling *t, const char **text)
{
    const size_t n = strcspn(*text, ":}");
    struct named v = { .value = t->value, .digits = -1 };
    v.f = find_field(t->fields, &v.value, *text, n);
    assert(v.f && "a text names a field that is not in its table");
    v.at = field_at(v.f, v.value);
    char *end = (char *)(uintptr_t)(*text + n);
    if (*end == ':')
        v.width = (int)strtol(end + 1, &end, 10);
    if (*end == '.')
        v.digits = (int)strtol(end + 1, &end, 10);
    v.bare = *end == '#';
    *text = strchr(end, '}') + 1;
    return v;
}

static bool is_something(const struct named *v)
{
    if (!is_there(v->f, v->at))
        return false;
    if (v->f->each)
        return field_count(v->f, v->value) > 0;
    switch (type_of(v->f)) {
    case FIELD_BOOL:
    case FIELD_UINT32:
    case FIELD_UINT64:
        return uint_at(v->f, v->at) != 0;
    case FIELD_REAL:
        return *(const double *)v->at != 0;
    case FIELD_CHARS:
    case FIELD_TEXT:
        return text_at(v->f, v->at)[0] != '\0';
    default:
        return true;
    }
}

static void tell(struct telling *t, const char *s, size_t n)
{
    fwrite(s, 1, n, t->to);
    for (size_t i = 0; i < n; i++)
        t->at = s[i] == '\n' ? 0 : t->at + 1;
}

static void tell_column(struct telling *t)
{
    t->at += fprintf(t->to, "%*s", t->column - t->at, "");
}

static const char *show_field(const struct named *v, char *digits, size_t room)
{
    const enum field_type type = type_of(v->f);
    const unsigned unit = v->bare ? NONE : v->f->how & UNIT_MASK;
    if (type == FIELD_BOOL)
        return "";
    if (type == FIELD_FACT)
        return show_fact(v->at);
    if (type == FIELD_BYTES)
        return show_text(((const bly_bytes *)v->at)->ptr,
                         ((const bly_bytes *)v->at)->len);
    if (type == FIELD_TEXT || type == FIELD_CHARS)
        return show_name(text_at(v->f, v->at));
    const bool is_real = type == FIELD_REAL;
    const double real =
        is_real ? *(const double *)v->at : (double)uint_at(v->f, v->at);
    const uint64_t n = is_real ? (uint64_t)(real + 0.5) : uint_at(v->f, v->at);
    if (v->digits >= 0) {
        snprintf(digits, room, "%.*f", v->digits, real);
        return digits;
    }
    switch (unit) {
    case BYTES:
        return show_bytes(n);
    case KEYS:
        return show_keys(n);
    case ITEMS:
        return show_count(n);
    case ESTIMATE:
        return show_estimate(real);
    case ROUNDED:
        return show_rounded(real);
    case RATE:
        return show_rate(real);
    case SHARE:
        snprintf(digits, room, "%.1f %%", real * 100);
        return digits;
    default:
        snprintf(digits, room, "%llu", (unsigned long long)n);
        return is_real ? show_real(real) : digits;
    }
}

static void tell_value(struct telling *t, const struct named *v)
{
    char digits[400];
    if (v->f->each && type_of(v->f) == FIELD_FACT) {
        const bly_fact *const facts = v->at;
        for (size_t i = 0; i < field_count(v->f, v->value); i++) {
            t->at = fprintf(t->to, "%*s%s", v->width, "", facts[i].name);
            tell_column(t);
            fprintf(t->to, "%s\n", show_fact(&facts[i]));
            t->at = 0;
        }
        return;
    }
    t->at +=
        fprintf(t->to, "%*s", v->width,
                is_there(v->f, v->at) ? show_field(v, digits, sizeof digits)
                                      : "unknown");
}

/* Print text up to its end, or to the bar or bracket that ends this part of it,
 * and return where that is. To `to` of NULL it prints nothing; *fits becomes
 * false if a value is missing. */
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
                tell_column(t);
            text++;
        } else if (*text == '{') {
            const char asked = text[1] == '?' || text[1] == '!' ? text[1] : 0;
            text += asked ? 2 : 1;
            const struct named v = named_read(t, &text);
            if (asked ? is_something(&v) != (asked == '?')
                      : !is_there(v.f, v.at))
                *fits = false;
            if (print && !asked)
                tell_value(t, &v);
        } else if (*text == '[') {
            bool done = false;
            do {
                const char *const part = text + 1;
                bool this_fits = true;
                text = tell_part(t, part, false, &this_fits);
                if (print && this_fits && !done)
                    tell_part(t, part, true, &this_fits);
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
        const char c = *text++;
        at = c == '\n' ? 0 : at + (c != '[' && c != ']');
        if (c == '~' && at - 1 > widest)
            widest = at - 1;
        if (c != '{')
            continue;
        text += *text == '?' || *text == '!';
        const struct named v = named_read(t, &text);
        const bly_fact *const facts = v.at;
        if (v.f->each && type_of(v.f) == FIELD_FACT)
            for (size_t i = 0; i < field_count(v.f, v.value); i++) {
                const int wide = v.width + (int)strlen(facts[i].name);
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
    t.column = strchr(text, '~') ? tell_width(&t, text) : 0;
    while (*(text = tell_part(&t, text, true, &fits)))
        tell(&t, text++, 1); /* a bar or bracket that means itself */
}

/* --------------------------------------------------------- documentation */

static const char *const units[UNIT_MASK + 1] = {
    [BITS] = "bits",       [BYTES] = "bytes",
    [KEYS] = "keys",       [ITEMS] = "keys",
    [ESTIMATE] = "keys",   [ROUNDED] = "keys",
    [RATE] = "share",      [SHARE] = "share",
    [SECONDS] = "seconds", [NANOSECONDS] = "nanoseconds",
};

static const char *json_type(const struct field *f)
{
    switch (type_of(f)) {
    case FIELD_BOOL:
        return "boolean";
    case FIELD_UINT32:
    case FIELD_UINT64:
        return "integer";
    case FIELD_REAL:
        return "number";
    case FIELD_OBJECT:
        return f->how & TUPLE ? "array" : "object";
    default:
        return "string";
    }
}

const char *field_kind(const struct field *f)
{
    static char text[100];
    const char *const unit = units[f->how & UNIT_MASK];
    snprintf(text, sizeof text, "%s%s%s%s%s%s", f->each ? "array, " : "",
             type_of(f) == FIELD_FACT ? "number or string" : json_type(f),
             unit ? ", " : "", unit ? unit : "",
             f->how & MAYBE ? ", or null" : "",
             f->how & OPTIONAL ? ", optional" : "");
    return text;
}

static void key_text(struct json *j, const char *key, const char *text)
{
    json_key(j, key);
    json_text(j, text);
}

static void schema_members(struct json *j, const struct field *fields,
                           bool required);

static void schema_types(struct json *j, const char *first, const char *second,
                         bool or_null)
{
    json_key(j, "type");
    if (second || or_null)
        json_open(j, '[');
    json_text(j, first);
    if (second)
        json_text(j, second);
    if (or_null)
        json_text(j, "null");
    if (second || or_null)
        json_close(j, ']');
}

static void schema_object(struct json *j, const struct field *fields,
                          bool or_null)
{
    schema_types(j, "object", NULL, or_null);
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

/* The type of one value of a field, in an object that stays open. */
static void schema_type(struct json *j, const struct field *f, bool or_null)
{
    if (type_of(f) == FIELD_OBJECT && !(f->how & TUPLE))
        schema_object(j, f->fields, or_null);
    else if (type_of(f) == FIELD_FACT)
        schema_types(j, "number", "string", true);
    else
        schema_types(j, json_type(f), NULL, or_null);
}

static void schema_field(struct json *j, const struct field *f)
{
    json_open(j, '{');
    key_text(j, "description", f->help);
    if (units[f->how & UNIT_MASK])
        key_text(j, "unit", units[f->how & UNIT_MASK]);
    if (f->each) {
        const bool facts = type_of(f) == FIELD_FACT;
        key_text(j, "type", facts ? "object" : "array");
        json_key(j, facts ? "additionalProperties" : "items");
        json_open(j, '{');
        schema_type(j, f, false);
        json_close(j, '}');
    } else {
        schema_type(j, f, f->how & MAYBE);
    }
    json_close(j, '}');
}

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

void report_schema(struct json *j, const struct report *reports)
{
    json_open(j, '{');
    json_key(j, "anyOf");
    json_open(j, '[');
    for (const struct report *r = reports; r->fields; r++) {
        j->line = true;
        json_open(j, '{');
        if (r->what[0])
            key_text(j, "description", r->what);
        if (r->form == ARRAY) {
            key_text(j, "type", "array");
            json_key(j, "items");
            json_open(j, '{');
        }
        schema_object(j, r->fields, false);
        if (r->form == ARRAY)
            json_close(j, '}');
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

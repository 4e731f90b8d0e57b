/*
 * vector_file.c - a file of vectors, of any of five formats
 *
 * An .npy file begins with its magic, JSON lines with a bracket or a brace, and
 * what does neither is CSV. Raw numbers say nothing of themselves, so an option
 * has to. All of the file is read into memory, decompressed: numbers of .npy
 * and raw ones are used where they stand.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/vectors/vector_file.h"
#include "base/byte_order.h"
#include "base/grow.h"
#include "base/real.h"
#include "io/csv.h"
#include "io/json_field.h"
#include "io/texts.h"
#include "report/say.h"
#include "report/show.h"

#define LONGEST_NUMBER 400 /* bytes: more than a double ever needs */

void vector_file_close(struct vector_file *f)
{
    block_free(&f->bytes);
    free(f->coordinates);
    free(f->rows);
    free(f->ids);
    free(f->unescaped);
    *f = (struct vector_file){ .name = f->name };
}

/* ------------------------------------------------------------- binary files */

/* Is this machine's order of bytes that of the file? */
static bool little_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1;
}

/* Numbers where they stand, if they are aligned; halves, and others, as a copy
 * in this machine's form. */
static bool use_numbers(struct vector_file *f, unsigned width)
{
    const unsigned char *const from =
        (const unsigned char *)f->bytes.at + f->data;
    const size_t n = f->v.n * f->v.dims;
    f->v.doubles = width == 8;
    f->v.at = from;
    if (!n || (width != 2 && little_endian() && (uintptr_t)from % width == 0))
        return true;
    const size_t each = width == 8 ? sizeof(double) : sizeof(float);
    f->coordinates = n > SIZE_MAX / each ? NULL : malloc(n * each);
    if (!f->coordinates)
        return refuse("%s: out of memory", f->name);
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = get_le(from + i * width, width);
        const uint32_t low = (uint32_t)bits;
        if (width == 2)
            ((float *)f->coordinates)[i] = npy_half((uint16_t)bits);
        else if (width == 4)
            memcpy((float *)f->coordinates + i, &low, sizeof low);
        else
            memcpy((double *)f->coordinates + i, &bits, sizeof bits);
    }
    f->v.at = f->coordinates;
    return true;
}

static bool open_npy(struct vector_file *f)
{
    char why[NPY_WHY];
    if (!npy_read(f->bytes.at, f->bytes.len, &f->npy, why))
        return refuse("%s: %s", f->name, why);
    f->v.n = (size_t)f->npy.n;
    f->v.dims = (size_t)f->npy.dims;
    f->data = f->npy.data;
    return use_numbers(f, f->npy.width);
}

static bool open_raw(struct vector_file *f, const struct vector_options *o)
{
    const unsigned width = o->doubles ? 8 : 4;
    const uint64_t each = o->dims * width;
    if (f->bytes.len % each)
        return refuse("%s: %zu bytes are not a whole number of vectors of %llu "
                      "%s",
                      f->name, f->bytes.len, (unsigned long long)o->dims,
                      o->doubles ? "doubles" : "floats");
    f->v.n = (size_t)(f->bytes.len / each);
    f->v.dims = (size_t)o->dims;
    return use_numbers(f, width);
}

/* -------------------------------------------------------------------- text */

/* Where a reader of text is. */
struct text_reader {
    struct vector_file *f;
    const struct vector_options *o;
    size_t line; /* of the file, from 1 */
    size_t dims; /* of this vector so far */
    size_t used; /* bytes of coordinates */
    struct json_path paths[2];
    size_t npaths;
    size_t id_column; /* of CSV; SIZE_MAX: none */
    char *escape;     /* where the next unescaped id goes */
};

static bool read_real(const char *at, size_t n, double *out)
{
    char copy[LONGEST_NUMBER + 1], *end;
    while (n && (at[0] == ' ' || at[0] == '\t')) {
        at++;
        n--;
    }
    while (n && (at[n - 1] == ' ' || at[n - 1] == '\t' || at[n - 1] == '\r'))
        n--;
    if (real_plain(at, n, out))
        return true;
    if (!n || n > LONGEST_NUMBER || memchr(at, 'x', n) || memchr(at, 'X', n))
        return false;
    memcpy(copy, at, n);
    copy[n] = '\0';
    *out = strtod(copy, &end);
    return *end == '\0' && copy[0] != ' ';
}

static bool add_number(struct text_reader *r, double x)
{
    struct vector_file *const f = r->f;
    const size_t width = r->o->doubles ? sizeof(double) : sizeof(float);
    if (!GROW((char **)&f->coordinates, &f->room, r->used + width))
        return refuse("%s: out of memory", f->name);
    unsigned char *const to = (unsigned char *)f->coordinates + r->used;
    const float narrow = (float)x;
    if (r->o->doubles)
        memcpy(to, &x, sizeof x);
    else
        memcpy(to, &narrow, sizeof narrow);
    r->used += width;
    r->dims++;
    return true;
}

static bool bad_number(const struct text_reader *r, const char *at, size_t n)
{
    return refuse("%s: line %zu: '%s' is not a number", r->f->name, r->line,
                  show_text(at, n < 40 ? n : 40));
}

/* The vector of a line is complete. */
static bool end_row(struct text_reader *r, const char *at, const char *end,
                    const bly_bytes *id)
{
    struct vector_file *const f = r->f;
    const size_t i = f->v.n;
    if (!r->dims)
        return refuse("%s: line %zu: a vector without coordinates", f->name,
                      r->line);
    if (i && r->dims != f->v.dims)
        return refuse("%s: line %zu: a vector of %zu coordinates; those before "
                      "have %zu",
                      f->name, r->line, r->dims, f->v.dims);
    if (!GROW(&f->rows, &f->rows_room, 2 * i + 2) ||
        (id && !GROW(&f->ids, &f->ids_room, i + 1)))
        return refuse("%s: out of memory", f->name);
    f->rows[2 * i] = (size_t)(at - f->bytes.at);
    f->rows[2 * i + 1] = (size_t)(end - f->bytes.at);
    if (id)
        f->ids[i] = *id;
    f->v.dims = r->dims;
    f->v.n++;
    r->dims = 0;
    return true;
}

/* --------------------------------------------------------------------- CSV */

static bool only_blanks(const char *at, const char *end)
{
    while (at < end && strchr(" \t\r\n", *at) && *at)
        at++;
    return at == end;
}

/* Is this record a header: does it have the name of the id, or no numbers
 * besides the id, or the numbers from 0 on, as pandas calls columns? With the
 * column of the id in *id, if a field has its name. */
static bool csv_header(const char *at, const char *end, char delimiter,
                       const char *name, size_t number, size_t *id)
{
    bool named = false, counts = true;
    size_t numbers = 0, fields = 0;
    double x;
    struct csv_field field;
    for (size_t column = 0; at; column++) {
        at = csv_next(at, end, delimiter, &field);
        const bly_bytes t = field.text;
        if (name && t.len == strlen(name) && !memcmp(t.ptr, name, t.len)) {
            *id = column;
            named = true;
        } else if (column + 1 != number) {
            const bool is = read_real(t.ptr, t.len, &x);
            counts = counts && is && x == (double)fields;
            numbers += is;
            fields++;
        }
    }
    return named || (fields && !numbers) || (counts && fields > 2);
}

static bool csv_vector(struct text_reader *r, const char *at, const char *end,
                       char delimiter)
{
    const char *const from = at;
    struct csv_field field;
    bly_bytes id = { "", 0 };
    double x;
    for (size_t column = 0; at; column++) {
        at = csv_next(at, end, delimiter, &field);
        const bly_bytes t = field.text;
        if (field.wrong)
            return refuse("%s: line %zu: %s", r->f->name, r->line, field.wrong);
        if (column == r->id_column) {
            id = t;
            if (field.doubled) {
                id.ptr = r->escape;
                id.len = csv_undouble(t.ptr, t.len, r->escape);
                r->escape += id.len;
            }
        } else if (!read_real(t.ptr, t.len, &x)) {
            return bad_number(r, t.ptr, t.len);
        } else if (!add_number(r, x)) {
            return false;
        }
    }
    if (r->id_column != SIZE_MAX && !id.len)
        return refuse("%s: line %zu: no id in column %zu", r->f->name, r->line,
                      r->id_column + 1);
    return end_row(r, from, end, r->id_column == SIZE_MAX ? NULL : &id);
}

static bool open_csv(struct text_reader *r)
{
    struct vector_file *const f = r->f;
    const char *at = f->bytes.at + f->data;
    const char *const end = f->bytes.at + f->bytes.len;
    const char *const given = r->o->delimiter;
    const char delimiter = !given ? ',' : strcmp(given, "\\t") ? *given : '\t';
    if (given && strcmp(given, "\\t") != 0 &&
        (strlen(given) != 1 || strchr("\"\r\n", *given)))
        return refuse("--delimiter '%s': expected one character, or \\t for a "
                      "tab",
                      given);
    char *rest;
    const uint64_t number = r->o->id ? strtoul(r->o->id, &rest, 10) : 0;
    const bool numbered = r->o->id && number && !*rest;
    bool first = true;
    r->id_column = numbered ? (size_t)number - 1 : SIZE_MAX;
    while (at < end) {
        struct csv_field field;
        const char *const next =
            csv_record(at, end, delimiter, SIZE_MAX, &field);
        const size_t nlines = field.nlines;
        if (field.wrong)
            return refuse("%s: line %zu: %s", f->name, r->line, field.wrong);
        if (only_blanks(at, next)) {
            /* an empty line says nothing */
        } else if (first &&
                   csv_header(at, next, delimiter, numbered ? NULL : r->o->id,
                              numbered ? (size_t)number : 0, &r->id_column)) {
            f->data = (size_t)(next - f->bytes.at);
            first = false;
        } else {
            if (r->o->id && r->id_column == SIZE_MAX)
                return refuse("%s: no column is called '%s'; columns are named "
                              "by the header, or by their number",
                              f->name, r->o->id);
            if (!csv_vector(r, at, next, delimiter))
                return false;
            first = false;
        }
        r->line += nlines;
        at = next;
    }
    return true;
}

/* -------------------------------------------------------------- JSON lines */

/* The numbers of an array, [1, -2.5e3], which begins at `at`; behind its
 * bracket, NULL with the reason printed if it is something else. */
static const char *json_numbers(struct text_reader *r, const char *at,
                                const char *end)
{
    const char *const close =
        at < end && *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
    const size_t n = (size_t)(end - at);
    if (!close) {
        refuse("%s: line %zu: '%s' is not an array of numbers", r->f->name,
               r->line, show_text(at, n < 40 ? n : 40));
        return NULL;
    }
    for (at++; at < close;) {
        const char *stop = memchr(at, ',', (size_t)(close - at));
        double x;
        stop = stop ? stop : close;
        if (stop == close && !r->dims && only_blanks(at, stop))
            break; /* [ ] */
        if (!read_real(at, (size_t)(stop - at), &x)) {
            bad_number(r, at, (size_t)(stop - at));
            return NULL;
        }
        if (!add_number(r, x))
            return NULL;
        at = stop + 1;
    }
    if (at == close && r->dims) { /* [1,] */
        bad_number(r, "", 0);
        return NULL;
    }
    return close + 1;
}

/* The line from at to next, of n bytes without its end. */
static bool json_vector(struct text_reader *r, const char *at, size_t n,
                        const char *next)
{
    struct json_slice found[2] = { { .type = JSON_NONE } };
    const char *const line = at;
    const char *const name = r->o->field ? r->o->field : "embedding";
    bly_bytes id = { "", 0 };
    while (n && strchr(" \t\r", at[n - 1]))
        n--;
    while (n && (*at == ' ' || *at == '\t')) {
        at++;
        n--;
    }
    if (*at == '[' && !r->o->field && !r->o->id) {
        const char *const behind = json_numbers(r, at, at + n);
        if (behind && behind < at + n)
            return refuse("%s: line %zu: not valid JSON", r->f->name, r->line);
        return behind && end_row(r, line, next, NULL);
    }
    if (!json_find(at, n, r->paths, r->npaths, found))
        return refuse("%s: line %zu: not valid JSON", r->f->name, r->line);
    if (found[0].type != JSON_OTHER)
        return refuse("%s: line %zu: no array called '%s'; --field says where "
                      "the vector is",
                      r->f->name, r->line, name);
    if (!json_numbers(r, found[0].at, at + n))
        return false;
    if (r->npaths == 1)
        return end_row(r, line, next, NULL);
    if (found[1].type != JSON_STRING && found[1].type != JSON_NUMBER)
        return refuse("%s: line %zu: no id called '%s'", r->f->name, r->line,
                      r->o->id);
    id = (bly_bytes){ found[1].at, found[1].len };
    if (found[1].escaped) {
        id.ptr = r->escape;
        id.len = json_unescape(found[1].at, found[1].len, r->escape);
        r->escape += id.len;
    }
    return end_row(r, line, next, &id);
}

static bool open_json(struct text_reader *r)
{
    struct vector_file *const f = r->f;
    const char *at = f->bytes.at + f->data;
    const char *const end = f->bytes.at + f->bytes.len;
    for (; at < end; r->line++) {
        const char *const stop = memchr(at, '\n', (size_t)(end - at));
        const char *const next = stop ? stop + 1 : end;
        const char *const last = stop ? stop : end;
        if (!only_blanks(at, last) &&
            !json_vector(r, at, (size_t)(last - at), next))
            return false;
        at = next;
    }
    return true;
}

static bool read_paths(struct text_reader *r)
{
    const char *const field = r->o->field ? r->o->field : "embedding";
    const char *const names[] = { field, r->o->id };
    for (size_t i = 0; i < 2 && names[i]; i++) {
        if (!json_path_read(&r->paths[i], names[i]))
            return refuse("%s: expected the name of a field, or a JSON pointer "
                          "such as /meta/vector",
                          names[i]);
        r->npaths = i + 1;
    }
    return true;
}

static bool open_text(struct vector_file *f, const struct vector_options *o)
{
    struct text_reader r = { .f = f, .o = o, .line = 1 };
    if (o->id) {
        f->unescaped = malloc(f->bytes.len + 1);
        if (!f->unescaped)
            return refuse("%s: out of memory", f->name);
        r.escape = f->unescaped;
    }
    bool ok;
    if (f->format == VECTORS_CSV) {
        /* Every record ends with a newline, the last one too. */
        if (f->bytes.len && f->bytes.at[f->bytes.len - 1] != '\n')
            f->bytes.at[f->bytes.len++] = '\n';
        ok = open_csv(&r);
    } else {
        ok = read_paths(&r) && open_json(&r);
        for (size_t i = 0; i < r.npaths; i++)
            json_path_free(&r.paths[i]);
    }
    f->v.at = f->coordinates;
    f->v.doubles = o->doubles;
    return ok;
}

/* --------------------------------------------------------------------- all */

bool vector_file_open(struct vector_file *f, const char *name,
                      const struct vector_options *o)
{
    *f = (struct vector_file){ .name = name };
    if (!text_read(name, bly_memory_limit(), "there is no more memory",
                   &f->bytes))
        return false;
    const char *at = f->bytes.at;
    size_t n = f->bytes.len;
    if (!n) { /* no vectors */
        f->format = o->dims ? VECTORS_RAW : VECTORS_CSV;
        return true;
    }
    if (n >= 6 && !memcmp(at, NPY_MAGIC, 6)) {
        f->format = VECTORS_NPY;
        if (o->dims)
            return refuse("%s: an .npy file knows its coordinates; --dims is "
                          "for raw numbers",
                          name);
        return open_npy(f);
    }
    if (o->dims) {
        f->format = VECTORS_RAW;
        return open_raw(f, o);
    }
    if (n >= 3 && !memcmp(at, "\xef\xbb\xbf", 3)) { /* a byte order mark */
        f->data = 3;
        at += 3;
        n -= 3;
    }
    while (n && strchr(" \t\r\n", *at) && *at) {
        at++;
        n--;
    }
    if (n && memchr(at, '\0', n))
        return refuse("%s: neither .npy nor text; raw numbers need --dims",
                      name);
    f->format = n && (*at == '{' || *at == '[') ? VECTORS_JSON : VECTORS_CSV;
    if (o->field && f->format == VECTORS_CSV)
        return refuse("%s: --field is for JSON lines, and this is CSV", name);
    return open_text(f, o);
}

bly_bytes vector_file_row(const struct vector_file *f, size_t i)
{
    const char *const at = f->bytes.at;
    if (f->rows)
        return (bly_bytes){ at + f->rows[2 * i],
                            f->rows[2 * i + 1] - f->rows[2 * i] };
    const size_t width = f->format == VECTORS_NPY ? f->npy.width
                         : f->v.doubles           ? sizeof(double)
                                                  : sizeof(float);
    const size_t each = f->v.dims * width;
    return (bly_bytes){ at + f->data + i * each, each };
}

bly_bytes vector_file_head(const struct vector_file *f, size_t n,
                           char room[NPY_HEADER])
{
    if (f->format == VECTORS_NPY)
        return (bly_bytes){ room, npy_header(&f->npy, n, room) };
    return (bly_bytes){ f->bytes.at, f->data };
}

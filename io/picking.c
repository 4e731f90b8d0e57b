/*
 * picking.c - keys out of the lines of a block
 *
 * A worker cuts its block into lines as it always does, finds the key in each,
 * and closes the gaps that bad lines leave. Fields that are counted from the
 * start, and those of CSV, are cut together with the lines
 * (picking_fields.c).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/normal.h"
#include "io/picker_inside.h"
#include "io/pipeline.h"
#include "io/utf8.h"

void picking_bad(struct picking *p, uint64_t line, uint64_t nlines,
                 const char *format, ...)
{
    p->nbad += nlines;
    if (p->in->skip_bad || p->nshown == BAD_SHOWN)
        return;
    struct bad_line *const b = &p->bad[p->nshown++];
    va_list ap;
    va_start(ap, format);
    *b = (struct bad_line){ .line = line, .nlines = nlines };
    vsnprintf(b->why, sizeof b->why, format, ap);
    va_end(ap);
}

void picking_start(struct picking *p, const struct input *in,
                   const struct block *b)
{
    const struct picker *const how = in->picker;
    const bool copies = how && (how->by == PICK_CSV || how->by == PICK_JSON);
    p->in = in;
    p->cutter = cutter_start(b->at, b->len, in->separator);
    p->column = b->file ? b->file->column : 0;
    fields_start(&p->fields, b->at, b->len,
                 !how                  ? 0
                 : how->by == PICK_CSV ? p->column
                 : how->field > 0      ? (size_t)how->field - 1
                                       : 0);
    p->escapes =
        how && how->by == PICK_JSON && memchr(b->at, '\\', b->len) != NULL;
    p->nlines = p->nbad = 0;
    p->nshown = 0;
    p->failed = NULL;
    p->file = b->file;
    const size_t made = how && how->by == PICK_MADE
                            ? BATCH_IN_ORDER * PICK_ROOM + 2 * b->len
                            : 0;
    /* A group and its key are no longer than two lines. */
    const size_t grouped = how && how->group ? 2 * b->len : 0;
    if (!block_fit(&p->scratch, (copies ? b->len : 0) + made + grouped +
                                    normal_most(&in->normal, b->len + grouped)))
        p->failed = "out of memory";
    if (how && how->by == PICK_REGEX && !p->compiled) {
        char why[160];
        p->compiled = picker_regex(how, &p->regex, why, sizeof why);
        if (!p->compiled)
            p->failed = "out of memory";
    }
}

void picking_free(struct picking *p)
{
    block_free(&p->scratch);
    if (p->compiled)
        regfree(&p->regex);
    p->compiled = false;
}

/* ------------------------------------------------------------------ fields */

/* A bit for each of the first `left` bytes that is a delimiter; with
 * `blanks`, for each where a run of blanks ends or begins, the start of the
 * line counting as one: so cuts alternate between the starts of fields and
 * their ends. *blank says whether the byte before is one. */
static inline uint64_t field_cuts(const char *at, size_t left, char delimiter,
                                  bool blanks, uint64_t *blank)
{
    const uint64_t valid =
        left < CUTTER_WINDOW ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
    if (!blanks)
        return cutter_ends(at, delimiter) & valid;
    const uint64_t here = cutter_ends(at, ' ') | cutter_ends(at, '\t');
    const uint64_t cuts = (here ^ (here << 1 | *blank)) & valid;
    *blank = here >> 63;
    return cuts;
}

static size_t count_cuts(const char *line, size_t n, char delimiter,
                         bool blanks)
{
    uint64_t blank = 1;
    size_t cuts = 0;
    for (size_t i = 0; i < n; i += CUTTER_WINDOW)
        cuts += (size_t)__builtin_popcountll(
            field_cuts(line + i, n - i, delimiter, blanks, &blank));
    return cuts;
}

/* Where the field begins that `cuts` of them stand before, and where the next
 * cut is, or the end. False where there are not as many. */
static inline bool find_cut(const char *line, size_t n, char delimiter,
                            bool blanks, size_t cuts, bly_bytes *key)
{
    const char *from = line;
    uint64_t blank = 1;
    for (size_t i = 0; i < n; i += CUTTER_WINDOW) {
        uint64_t bits = field_cuts(line + i, n - i, delimiter, blanks, &blank);
        for (; bits; bits &= bits - 1) {
            const char *const cut = line + i + __builtin_ctzll(bits);
            if (cuts-- == 0) {
                *key = (bly_bytes){ from, (size_t)(cut - from) };
                return true;
            }
            from = cut + !blanks;
        }
    }
    *key = (bly_bytes){ from, (size_t)(line + n - from) };
    return cuts == 0;
}

/* Field number `field` of a line. False where there is none: then *nfields is
 * how many there are. */
static inline bool nth_field(const struct picker *how, bly_bytes line,
                             long field, bool blanks, bly_bytes *out,
                             size_t *nfields)
{
    size_t i = (size_t)field;
    if (field > 0 && find_cut(line.ptr, line.len, how->delimiter, blanks,
                              blanks ? i * 2 - 1 : i - 1, out))
        return true;
    const size_t cuts = count_cuts(line.ptr, line.len, how->delimiter, blanks);
    const size_t back = (size_t)-field;
    *nfields = blanks ? (cuts + 1) / 2 : cuts + 1;
    if (field > 0 || back > *nfields)
        return false;
    i = *nfields - back;
    return find_cut(line.ptr, line.len, how->delimiter, blanks,
                    blanks ? i * 2 + 1 : i, out);
}

static void few_parts(struct picking *p, uint64_t number, size_t nfields,
                      long field)
{
    picking_bad(p, number, 1, "%zu field%s, and field %ld is asked for",
                nfields, nfields == 1 ? "" : "s", field);
}

static inline bool pick_cut(struct picking *p, bly_bytes line, uint64_t number,
                            bool blanks, bly_bytes *key)
{
    const struct picker *const how = p->in->picker;
    size_t nfields = 0;
    if (nth_field(how, line, how->field, blanks, key, &nfields))
        return true;
    few_parts(p, number, nfields, how->field);
    return false;
}

static inline bool pick_field(struct picking *p, bly_bytes line,
                              uint64_t number, bly_bytes *key)
{
    return pick_cut(p, line, number, false, key);
}

static inline bool pick_blanks(struct picking *p, bly_bytes line,
                               uint64_t number, bly_bytes *key)
{
    return pick_cut(p, line, number, true, key);
}

/* ------------------------------------------------------------------- others */

static inline bool pick_line(struct picking *p, bly_bytes line, uint64_t number,
                             bly_bytes *key)
{
    (void)p;
    (void)number;
    *key = line;
    return true;
}

bly_bytes picking_copy(struct picking *p, bly_bytes raw,
                       size_t (*make)(const char *, size_t, char *))
{
    char *const at = p->scratch.at + p->scratch.len;
    const size_t n = make(raw.ptr, raw.len, at);
    p->scratch.len += n;
    return (bly_bytes){ at, n };
}

static bool is_text_or_number(struct picking *p, const struct json_slice *found,
                              uint64_t number, const char *what)
{
    const bool fits = found->type == JSON_STRING || found->type == JSON_NUMBER;
    if (fits && utf8_valid(found->at, found->len))
        return true;
    picking_bad(p, number, 1,
                fits                       ? "not JSON: the %s is not UTF-8"
                : found->type == JSON_NONE ? "no such %s"
                                           : "the %s is neither text nor a "
                                             "number",
                what);
    return false;
}

static inline bool pick_json(struct picking *p, bly_bytes line, uint64_t number,
                             bly_bytes *key)
{
    struct json_slice found;
    const struct json_path *const path = &p->in->picker->path;
    if (json_template_find(&p->seen, line.ptr, line.len, p->escapes, &found)) {
        ;
    } else if (json_find_fast(line.ptr, line.len, path, &found) ||
               json_find(line.ptr, line.len, path, 1, &found)) {
        if (found.type == JSON_STRING || found.type == JSON_NUMBER)
            json_template_learn(&p->seen, line.ptr, line.len, &found);
    } else {
        const char *const s = line.ptr;
        size_t i = 0;
        while (i < line.len && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r'))
            i++;
        if (i < line.len) /* an empty line is not a record */
            picking_bad(p, number, 1, "not JSON");
        return false;
    }
    if (!is_text_or_number(p, &found, number, "field"))
        return false;
    *key = (bly_bytes){ found.at, found.len };
    if (found.escaped)
        *key = picking_copy(p, *key, json_unescape);
    return true;
}

static inline bool pick_regex(struct picking *p, bly_bytes line,
                              uint64_t number, bly_bytes *key)
{
    regmatch_t at[2] = { { .rm_so = 0, .rm_eo = (regoff_t)line.len } };
    const size_t group = p->regex.re_nsub ? 1 : 0;
    const int rc = regexec(&p->regex, line.ptr, 2, at, REG_STARTEND);
    if (rc == 0 && at[group].rm_so >= 0) {
        *key = (bly_bytes){ (const char *)line.ptr + at[group].rm_so,
                            (size_t)(at[group].rm_eo - at[group].rm_so) };
        return true;
    }
    picking_bad(p, number, 1, "%s",
                rc == REG_NOMATCH ? "no match"
                : rc              ? "too much for the regular expression"
                                  : "the group matches nothing");
    return false;
}

static inline bool pick_made(struct picking *p, bly_bytes line, uint64_t number,
                             bly_bytes *key)
{
    char why[sizeof p->bad->why];
    char *const room = p->scratch.at + p->scratch.len;
    const struct picker *const how = p->in->picker;
    switch (how->make(how->ctx, p->file, line, key, room, why, sizeof why)) {
    case PICK_KEY:
        p->scratch.len += key->ptr == room ? key->len : 0;
        return true;
    case PICK_BAD:
        picking_bad(p, number, 1, "%s", why);
        return false;
    case PICK_NONE:
        break;
    }
    return false;
}

/* ------------------------------------------------------------------- groups */

/* The group of a line whose key was found, as it stands there, and what makes
 * its text of that; NULL: it is its text. */
typedef size_t make_text(const char *raw, size_t n, char *out);

static bool find_group(struct picking *p, bly_bytes line, uint64_t number,
                       bly_bytes *group, make_text **make)
{
    const struct picker *const how = p->in->picker;
    const bool blanks = how->by == PICK_BLANKS;
    *make = NULL;
    if (how->by == PICK_CSV) {
        struct csv_field c;
        const char *const at = line.ptr;
        /* With the newline behind it. */
        csv_record(at, at + line.len + 1, how->delimiter, p->file->group, &c);
        if (!c.text.ptr)
            picking_bad(p, number, c.nlines,
                        "%zu column%s, and column %zu is asked for", c.nfields,
                        c.nfields == 1 ? "" : "s", p->file->group + 1);
        *group = c.text;
        *make = c.doubled ? csv_undouble : NULL;
        return c.text.ptr != NULL;
    }
    if (how->by == PICK_JSON) {
        struct json_slice found = { 0 };
        if (!json_find(line.ptr, line.len, &how->group_path, 1, &found) ||
            !is_text_or_number(p, &found, number, "group"))
            return false;
        *group = (bly_bytes){ found.at, found.len };
        *make = found.escaped ? json_unescape : NULL;
        return true;
    }
    if (how->crlf && line.len && ((const char *)line.ptr)[line.len - 1] == '\r')
        line.len--;
    size_t nfields = 0;
    if (nth_field(how, line, how->group_field, blanks, group, &nfields))
        return true;
    few_parts(p, number, nfields, how->group_field);
    return false;
}

/* Put the groups of n keys before them, and close the gaps; how many have one.
 */
static size_t pick_groups(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                          uint32_t *numbers, size_t n)
{
    /* Where the two meet, nobody can cut off blanks later. */
    const uint32_t trim = p->in->normal.trim ? BLY_KEYS_TRIMMED : 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bly_bytes group;
        make_text *make;
        if (!find_group(p, lines[i], numbers[i], &group, &make))
            continue;
        char *const at = p->scratch.at + p->scratch.len;
        size_t len = group.len;
        if (make)
            len = make(group.ptr, group.len, at);
        else if (len)
            memcpy(at, group.ptr, len);
        const bly_bytes key = bly_key_normalise(trim, keys[i], NULL);
        const bly_bytes name =
            bly_key_normalise(trim, (bly_bytes){ at, len }, NULL);
        len = name.len;
        if (len && memchr(name.ptr, '\t', len)) {
            picking_bad(p, numbers[i], 1, "a tab in the name of a group");
            continue;
        }
        if (trim && (!len || !key.len)) {
            picking_bad(p, numbers[i], 1, "%s but blanks",
                        len ? "a key of nothing" : "a group of nothing");
            continue;
        }
        if (name.ptr != at)
            memmove(at, name.ptr, len);
        at[len++] = '\t';
        if (key.len)
            memcpy(at + len, key.ptr, key.len);
        len += key.len;
        p->scratch.len += len;
        keys[kept] = (bly_bytes){ at, len };
        lines[kept] = lines[i];
        numbers[kept++] = numbers[i];
    }
    return kept;
}

/* --------------------------------------------------------------------- all */

typedef bool pick_fn(struct picking *p, bly_bytes line, uint64_t number,
                     bly_bytes *key);

/* Find the keys of n lines, without gaps. */
static inline __attribute__((always_inline)) size_t
pick_each(struct picking *p, bly_bytes *keys, bly_bytes *lines,
          uint32_t *numbers, size_t n, pick_fn *pick)
{
    const bool crlf = p->in->picker && p->in->picker->crlf;
    const uint64_t before = p->nlines;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bly_bytes line = lines[i];
        if (crlf && line.len && ((const char *)line.ptr)[line.len - 1] == '\r')
            line.len--;
        lines[kept] = lines[i];
        numbers[kept] = (uint32_t)(before + i);
        kept += pick(p, line, before + i, &keys[kept]);
    }
    p->nlines += n;
    return kept;
}

static size_t pick_lines(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                         uint32_t *numbers, size_t max, enum pick_by by)
{
    const size_t n = cutter_next(&p->cutter, lines, max);
    switch (by) {
    case PICK_FIELD:
        return pick_each(p, keys, lines, numbers, n, pick_field);
    case PICK_BLANKS:
        return pick_each(p, keys, lines, numbers, n, pick_blanks);
    case PICK_JSON:
        return pick_each(p, keys, lines, numbers, n, pick_json);
    case PICK_REGEX:
        return pick_each(p, keys, lines, numbers, n, pick_regex);
    case PICK_MADE:
        return pick_each(p, keys, lines, numbers, n, pick_made);
    case PICK_LINE:
    case PICK_CSV:
        break;
    }
    return pick_each(p, keys, lines, numbers, n, pick_line);
}

static size_t pick_next(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                        uint32_t *numbers, size_t max)
{
    const struct picker *const how = p->in->picker;
    const enum pick_by by = how ? how->by : PICK_LINE;
    p->scratch.len = 0;
    if (p->failed)
        return 0;
    if (by == PICK_CSV)
        return pick_columns(p, keys, lines, numbers, max);
    if (by == PICK_FIELD && how->field > 0)
        return pick_fields(p, keys, lines, numbers, max);
    size_t n = 0;
    while (n == 0 && p->cutter.from < p->cutter.end)
        n = pick_lines(p, keys, lines, numbers, max, by);
    return n;
}

size_t picking_next(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                    uint32_t *numbers, size_t max)
{
    const bool grouped = p->in->picker && p->in->picker->group;
    size_t n, kept;
    do {
        n = kept = pick_next(p, keys, lines, numbers, max);
        if (grouped && n)
            kept = pick_groups(p, keys, lines, numbers, n);
    } while (n && !kept);
    return kept;
}

size_t picking_normal(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                      uint32_t *numbers, uint64_t *values, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        char why[200];
        bly_bytes key = keys[i];
        if (!normal_key(&p->in->normal, &key, &p->scratch, why, sizeof why)) {
            picking_bad(p, numbers[i], 1, "%s", why);
            continue;
        }
        keys[kept] = key;
        lines[kept] = lines[i];
        numbers[kept] = numbers[i];
        if (values)
            values[kept] = values[i];
        kept++;
    }
    return kept;
}

/*
 * joined.c - what a joined row looks like
 */
#include <stdlib.h>
#include <string.h>

#include "apps/join/joined.h"
#include "io/text_set.h"
#include "io/values.h"
#include "report/say.h"

bool joined_read(struct joined *j, const struct selection *s, bool nul)
{
    const bool blanks =
        s->field && s->delimiter && strcmp(s->delimiter, "blanks") == 0;
    j->form = s->csv     ? JOIN_CSV
              : s->jsonl ? JOIN_JSON
              : s->regex ? JOIN_REGEX
              : blanks   ? JOIN_BLANKS
              : s->field ? JOIN_FIELDS
                         : JOIN_LINES;
    j->crlf = s->crlf || s->csv || s->jsonl;
    j->separator = nul ? '\0' : '\n';
    j->delimiter = ' ';
    return blanks || delimiter_read(s->csv || s->field ? s->delimiter : NULL,
                                    s->csv ? ',' : '\t', &j->delimiter);
}

void joined_free(struct joined *j)
{
    block_free(&j->right_names);
}

bly_bytes joined_bare(const struct joined *j, bly_bytes row)
{
    const char *const at = row.ptr;
    if (j->crlf && row.len && at[row.len - 1] == '\r')
        row.len--;
    return row;
}

/* ------------------------------------------------------------------ columns */

static bool is_blank_at(const char *at)
{
    return *at == ' ' || *at == '\t';
}

/* The field at *at as it stands in the row, quotes and all; *at becomes the
 * next one, or NULL behind the last. */
static bly_bytes next_field(const struct joined *j, const char **at,
                            const char *end)
{
    const char *const from = *at;
    const char *stop = end;
    if (j->form == JOIN_CSV) {
        struct csv_field f;
        /* It wants the newline, which may stand behind a carriage return. */
        *at = csv_next(from, end + (*end == '\r' ? 2 : 1), j->delimiter, &f);
        stop = *at ? *at - 1 : end;
    } else if (j->form == JOIN_BLANKS) {
        for (stop = from; stop < end && !is_blank_at(stop);)
            stop++;
        *at = stop;
        while (*at < end && is_blank_at(*at))
            (*at)++;
        *at = *at < end ? *at : NULL;
    } else {
        const char *const cut =
            end > from ? memchr(from, j->delimiter, (size_t)(end - from))
                       : NULL;
        stop = cut ? cut : end;
        *at = cut ? cut + 1 : NULL;
    }
    return (bly_bytes){ from, (size_t)(stop - from) };
}

/* The start of the first field; NULL where there is none. */
static const char *first_field(const struct joined *j, bly_bytes row)
{
    const char *at = row.ptr;
    const char *const end = at + row.len;
    if (j->form != JOIN_BLANKS)
        return at;
    while (at < end && is_blank_at(at))
        at++;
    return at < end ? at : NULL;
}

size_t joined_columns(const struct joined *j, bly_bytes row)
{
    const char *const end = (const char *)row.ptr + row.len;
    size_t n = 0;
    for (const char *at = first_field(j, row); at; n++)
        next_field(j, &at, end);
    return n;
}

/* The column of the key, from 0, in a row of n columns. */
static size_t key_column(const struct joined *j, size_t n)
{
    return j->column > 0
               ? (size_t)j->column - 1
               : n - (size_t)(-j->column < (long)n ? -j->column : (long)n);
}

static bool put_delimiters(const struct joined *j, size_t n, struct block *to)
{
    bool ok = true;
    for (; ok && n > 0; n--)
        ok = block_put(to, &j->delimiter, 1);
    return ok;
}

/* A delimiter and a field, for each but the key, and as many empty ones as the
 * header has more. */
static bool put_others(struct joined *j, bly_bytes row, struct block *to)
{
    const char *const end = (const char *)row.ptr + row.len;
    const size_t key =
        key_column(j, j->column < 0 ? joined_columns(j, row) : 0);
    size_t i = 0;
    for (const char *at = first_field(j, row); at; i++) {
        const bly_bytes f = next_field(j, &at, end);
        if (i != key &&
            !(block_put(to, &j->delimiter, 1) && block_put(to, f.ptr, f.len)))
            return false;
    }
    if (j->form != JOIN_CSV)
        return true;
    j->long_rows += i > j->nright;
    return i >= j->nright || put_delimiters(j, j->nright - i, to);
}

/* --------------------------------------------------------------------- rows */

/* JSON without the blanks around it, so that it can stand inside of another
 * object. */
static bly_bytes trimmed(bly_bytes row)
{
    const char *at = row.ptr, *end = at + row.len;
    while (at < end && (is_blank_at(at) || *at == '\r'))
        at++;
    while (at < end && (is_blank_at(end - 1) || end[-1] == '\r'))
        end--;
    return (bly_bytes){ at, (size_t)(end - at) };
}

#define PUT_TEXT(to, text) block_put(to, text, sizeof(text) - 1)

bool joined_rest(struct joined *j, bly_bytes row, struct block *to)
{
    row = joined_bare(j, row);
    if (!j->nright)
        j->nright = joined_columns(j, row);
    switch (j->form) {
    case JOIN_LINES:
        return true;
    case JOIN_REGEX:
        return block_put(to, "\t", 1) && block_put(to, row.ptr, row.len);
    case JOIN_JSON:
        row = trimmed(row);
        return PUT_TEXT(to, ",\"right\":") && block_put(to, row.ptr, row.len) &&
               block_put(to, "}", 1);
    case JOIN_FIELDS:
    case JOIN_BLANKS:
    case JOIN_CSV:
        break;
    }
    return put_others(j, row, to);
}

/* In place of a row of RIGHT. */
static bool put_nothing(const struct joined *j, struct block *to)
{
    switch (j->form) {
    case JOIN_LINES:
        return true;
    case JOIN_REGEX:
        return block_put(to, "\t", 1);
    case JOIN_JSON:
        return PUT_TEXT(to, ",\"right\":null}");
    case JOIN_FIELDS:
    case JOIN_BLANKS:
    case JOIN_CSV:
        break;
    }
    return put_delimiters(j, j->nright ? j->nright - 1 : 0, to);
}

bool joined_row(struct joined *j, bly_bytes left, const bly_bytes *rest,
                struct block *to)
{
    const size_t whole = left.len;
    left = joined_bare(j, left);
    const bool cut = left.len < whole; /* ends as the row of LEFT does */
    size_t missing = 0;
    if (j->form == JOIN_CSV && j->nleft) {
        const size_t n = joined_columns(j, left);
        missing = n < j->nleft ? j->nleft - n : 0;
        j->long_rows += n > j->nleft;
    }
    if (j->form == JOIN_JSON) {
        left = trimmed(left);
        if (!PUT_TEXT(to, "{\"left\":"))
            return false;
    }
    return block_put(to, left.ptr, left.len) &&
           put_delimiters(j, missing, to) &&
           (rest ? block_put(to, rest->ptr, rest->len) : put_nothing(j, to)) &&
           (!cut || block_put(to, "\r", 1)) && block_put(to, &j->separator, 1);
}

/* ------------------------------------------------------------------- header */

/* The name of a column, as it is without quotes: in `room`, or where it
 * stands. */
static bly_bytes column_name(const struct joined *j, bly_bytes raw, char *room)
{
    struct csv_field f;
    csv_next(raw.ptr, (const char *)raw.ptr + raw.len + 1, j->delimiter, &f);
    if (f.doubled)
        f.text =
            (bly_bytes){ room, csv_undouble(f.text.ptr, f.text.len, room) };
    return f.text;
}

/* Note a name; false: no memory. What has a newline in it cannot be kept, and
 * is not. */
static bool note_name(struct text_set *names, bly_bytes name)
{
    return (name.len && memchr(name.ptr, '\n', name.len)) ||
           text_set_add(names, name);
}

/* A delimiter and the name of a column of RIGHT, made different from all
 * others. `room` has twice its bytes. */
static bool put_name(const struct joined *j, struct text_set *names,
                     bly_bytes raw, struct block *room, struct block *to)
{
    static const char more[] = "_right";
    bly_bytes name = column_name(j, raw, room->at);
    size_t times = 0;
    room->len = 0;
    /* The name may stand at the start of room already. */
    if (name.ptr != room->at && name.len)
        memmove(room->at, name.ptr, name.len);
    room->len = name.len;
    name.ptr = room->at;
    while (name.len && !memchr(name.ptr, '\n', name.len) &&
           text_set_has(names, name)) {
        if (!PUT_TEXT(room, more))
            return false;
        name = (bly_bytes){ room->at, room->len };
        times++;
    }
    const char *const at = raw.ptr;
    const bool quoted = raw.len > 1 && at[0] == '"' && at[raw.len - 1] == '"';
    bool ok = note_name(names, name) && block_put(to, &j->delimiter, 1) &&
              block_put(to, at, raw.len - quoted);
    for (; ok && times > 0; times--)
        ok = PUT_TEXT(to, more);
    return ok && (!quoted || block_put(to, "\"", 1));
}

/* A header as it was kept, without what ends it. */
static bly_bytes header_row(const struct joined *j, const struct block *b)
{
    bly_bytes row = { b->at, b->len };
    if (row.len && b->at[row.len - 1] == '\n')
        row.len--;
    return joined_bare(j, row);
}

bool joined_header(struct joined *j, const struct block *left, bool both,
                   struct block *to)
{
    const bly_bytes l = header_row(j, left);
    const bly_bytes r = header_row(j, &j->right_names);
    const bool cut = l.len + 1 < left->len;
    struct text_set names = { 0 };
    struct block room = { 0 };
    bool ok = block_fit(&room, 2 * (l.len + r.len) + 16) &&
              block_put(to, l.ptr, l.len);
    j->nleft = joined_columns(j, l);
    if (both && j->right_names.len) {
        const char *end = (const char *)l.ptr + l.len;
        for (const char *at = l.ptr; ok && at;)
            ok = note_name(&names,
                           column_name(j, next_field(j, &at, end), room.at));
        end = (const char *)r.ptr + r.len;
        size_t i = 0;
        for (const char *at = r.ptr; ok && at; i++) {
            const bly_bytes raw = next_field(j, &at, end);
            if (i != key_column(j, j->nright))
                ok = put_name(j, &names, raw, &room, to);
        }
    }
    text_set_free(&names);
    block_free(&room);
    return ok && (!cut || block_put(to, "\r", 1)) &&
           block_put(to, &j->separator, 1);
}

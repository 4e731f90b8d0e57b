/*
 * index_fields.c - the text of a file is one field of each of its records
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/index/index_fields.h"
#include "io/csv.h"
#include "io/pipeline.h"
#include "report/say.h"

/* ------------------------------------------------------------------- rules */

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

bool fields_same(const struct field_rules *a, const struct field_rules *b)
{
    return same_text(a->field, b->field) && same_text(a->csv, b->csv) &&
           same_text(a->jsonl, b->jsonl) &&
           same_text(a->delimiter, b->delimiter) && same_text(a->id, b->id) &&
           a->no_header == b->no_header;
}

void fields_rules_free(struct field_rules *r)
{
    free(r->field);
    free(r->csv);
    free(r->jsonl);
    free(r->delimiter);
    free(r->id);
    *r = (struct field_rules){ 0 };
}

bool fields_new(struct fields *f, const struct field_rules *rules)
{
    struct selection s = { .field = rules->field,
                           .csv = rules->csv,
                           .jsonl = rules->jsonl,
                           .group_option = "--id",
                           .delimiter = rules->delimiter,
                           .no_header = rules->no_header };
    *f = (struct fields){ .in = { .separator = '\n' },
                          .named = { .separator = '\n', .skip_bad = true } };
    if (!selection_read(&s, &f->in))
        return false;
    s.group = rules->id;
    if (rules->id && !selection_read(&s, &f->named))
        return false;
    f->named.skip_bad = true;
    f->has_id = rules->id;
    f->has_header = rules->csv && !rules->no_header;
    f->csv = f->in.picker ? picker_csv(f->in.picker) : 0;
    return true;
}

void fields_free(struct fields *f)
{
    picker_free(f->in.picker);
    picker_free(f->named.picker);
    *f = (struct fields){ 0 };
}

/* ----------------------------------------------------------------- records */

static const char mark[] = { '\xef', '\xbb', '\xbf' };

/* The byte order mark that a file may begin with. */
static size_t mark_bytes(const struct fields *f, const char *text, size_t n)
{
    return n >= sizeof mark && picker_skips_mark(f->in.picker) &&
                   memcmp(text, mark, sizeof mark) == 0
               ? sizeof mark
               : 0;
}

/* A text in a block, with a newline at its end. */
static bool raw_take(struct block *b, const char *text, size_t n)
{
    if (!block_fit(b, n + 1))
        return false;
    memcpy(b->at, text, n);
    b->len = n;
    if (n && text[n - 1] != '\n')
        b->at[b->len++] = '\n';
    return true;
}

bool fields_columns(const struct fields *f, const char *text, size_t n,
                    struct input_file *out, char *why, size_t nwhy)
{
    const size_t skip = mark_bytes(f, text, n);
    struct csv_reader r = { .delimiter = f->csv };
    struct block b = { 0 };
    size_t nheader;
    *out = (struct input_file){ 0 };
    if (!f->csv || n == skip)
        return true;
    if (!raw_take(&b, text + skip, n - skip)) {
        snprintf(why, nwhy, "out of memory");
        return false;
    }
    /* Of a broken header, not all of the file. */
    if (f->has_header && csv_read(&r, b.at, b.len) == 0) {
        snprintf(why, nwhy, "the header has a quote that is never closed");
        block_free(&b);
        return false;
    }
    const bool ok = picker_header(f->has_id ? f->named.picker : f->in.picker,
                                  &b, out, &nheader, why, nwhy);
    block_free(&b);
    return ok;
}

/* The last end of a record in n bytes, or the first one. */
static size_t end_in(const struct fields *f, struct csv_reader *r,
                     const char *text, size_t n, bool last)
{
    if (f->csv)
        return csv_read(r, text, n);
    const char *const cut =
        last ? memrchr(text, '\n', n) : memchr(text, '\n', n);
    return cut ? (size_t)(cut - text) + 1 : 0;
}

size_t fields_whole(const struct fields *f, struct record_seeker *seeker,
                    const char *text, size_t n, size_t most)
{
    struct csv_reader r = { f->csv, seeker->state };
    size_t seen = seeker->seen, end = 0;
    most = most < n ? most : n;
    if (seen < most) {
        end = end_in(f, &r, text + seen, most - seen, true);
        if (end)
            return seen + end;
        seen = most;
    }
    end = end_in(f, &r, text + seen, n - seen, false);
    if (end)
        return seen + end;
    *seeker = (struct record_seeker){ n, r.state };
    return 0;
}

/* ------------------------------------------------------------------- lines */

static bool line_end(struct record_cutter *c)
{
    c->nlines++;
    return bytes_put(&c->text, "\n", 1);
}

/* A field, in which a newline is a blank. */
static bool text_put(struct bytes *to, const char *from, size_t n)
{
    const size_t start = to->n;
    if (!n)
        return true;
    if (!bytes_put(to, from, n))
        return false;
    for (char *at = (char *)to->at + start, *end = (char *)to->at + to->n;
         (at = memchr(at, '\n', (size_t)(end - at))); at++)
        *at = ' ';
    return true;
}

/* The fields of a block, whose first line is number `before`. */
static bool texts_cut(struct record_cutter *c, const struct block *b,
                      uint64_t before)
{
    bly_bytes keys[BATCH], lines[BATCH];
    uint32_t numbers[BATCH];
    bool ok = true;
    size_t n;
    picking_start(&c->picking, &c->fields->in, b);
    while (ok && !c->picking.failed &&
           (n = picking_next(&c->picking, keys, lines, numbers, BATCH)))
        for (size_t i = 0; ok && i < n; i++) {
            while (ok && c->nlines < before + numbers[i])
                ok = line_end(c);
            ok = ok && text_put(&c->text, keys[i].ptr, keys[i].len) &&
                 line_end(c);
        }
    c->nbad = c->picking.nbad;
    if (c->picking.nshown) {
        c->bad_line = before + c->picking.bad[0].line;
        memcpy(c->why, c->picking.bad[0].why, sizeof c->why);
    }
    return ok && !c->picking.failed;
}

/* And their ids, which stand before them, each with a tab behind it. */
static bool ids_cut(struct record_cutter *c, const struct block *b,
                    uint64_t before)
{
    bly_bytes keys[BATCH], lines[BATCH];
    uint32_t numbers[BATCH];
    uint64_t line = 0;
    bool ok = GROW(&c->id_ends, &c->id_room, c->nlines + 1);
    size_t n;
    picking_start(&c->naming, &c->fields->named, b);
    while (ok && !c->naming.failed &&
           (n = picking_next(&c->naming, keys, lines, numbers, BATCH)))
        for (size_t i = 0; ok && i < n; i++) {
            const char *const id = keys[i].ptr;
            const char *const tab = memchr(id, '\t', keys[i].len);
            while (line < before + numbers[i])
                c->id_ends[line++] = c->ids.n;
            ok = text_put(&c->ids, id, tab ? (size_t)(tab - id) : 0);
            c->id_ends[line++] = c->ids.n;
        }
    while (ok && line < c->nlines)
        c->id_ends[line++] = c->ids.n;
    return ok && !c->naming.failed;
}

bool fields_cut(struct record_cutter *c, const struct input_file *file,
                const char *text, size_t n, bool begins)
{
    const struct fields *const f = c->fields;
    const size_t skip = begins ? mark_bytes(f, text, n) : 0;
    uint64_t before = 0, all = 0;
    size_t nheader = 0;
    c->text.n = c->ids.n = c->nlines = 0;
    c->nbad = 0;
    if (!raw_take(&c->raw, text + skip, n - skip))
        return false;
    for (const char *at = c->raw.at, *end = at + c->raw.len;
         (at = memchr(at, '\n', (size_t)(end - at))); at++)
        all++;
    if (begins && f->has_header && c->raw.len) {
        struct csv_field h;
        const char *const behind =
            csv_record(c->raw.at, c->raw.at + c->raw.len, f->csv, SIZE_MAX, &h);
        nheader = (size_t)(behind - c->raw.at);
        before = h.nlines;
    }
    struct block b = c->raw;
    b.at += nheader;
    b.len -= nheader;
    b.file = file;
    if (!texts_cut(c, &b, before))
        return false;
    while (c->nlines < all)
        if (!line_end(c))
            return false;
    return !(f->has_id && c->wants_ids) || ids_cut(c, &b, before);
}

bly_bytes fields_id(const struct record_cutter *c, uint64_t line)
{
    if (!c->wants_ids || !c->fields->has_id || line >= c->nlines)
        return (bly_bytes){ "", 0 };
    const size_t from = line ? c->id_ends[line - 1] : 0;
    return (bly_bytes){ c->ids.at ? (const char *)c->ids.at + from : "",
                        c->id_ends[line] - from };
}

void fields_cutter_free(struct record_cutter *c)
{
    picking_free(&c->picking);
    picking_free(&c->naming);
    block_free(&c->raw);
    free(c->text.at);
    free(c->ids.at);
    free(c->id_ends);
    *c = (struct record_cutter){ 0 };
}

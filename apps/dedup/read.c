/*
 * read.c - the first pass: every document becomes a row
 *
 * Workers find the text of each line, cut it into shingles and sketch them;
 * rows are appended in the order of the blocks. A line without a text has a row
 * too, of nothing, so that the number of a document is the number of its line.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/dedup/dedup.h"

bool dedup_fail(struct dedup *d, const char *format, ...)
{
    va_list ap;
    if (d->error[0])
        return false;
    va_start(ap, format);
    vsnprintf(d->error, sizeof d->error, format, ap);
    va_end(ap);
    return false;
}

double dedup_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void dedup_free(struct dedup *d)
{
    free(d->rows);
    free(d->hashes);
    free(d->nshingles);
    free(d->states);
    free(d->values);
    free(d->id_start);
    free(d->ids);
    free(d->rank);
    free(d->order);
    free(d->same);
    free(d->witness);
    free(d->cluster);
    free(d->likeness);
    free(d->buckets.start);
    free(d->buckets.docs);
    free(d->buckets.doc_start);
    free(d->buckets.of_doc);
    dedup_pairs_free(&d->pairs);
}

/* ------------------------------------------------------------------- texts */

/* The text as it stands, or unescaped. */
static const char *unescape_text(struct dedup_text *t)
{
    const struct json_slice *const s = &t->fields[0];
    t->at = s->at;
    t->len = s->len;
    if (!s->escaped)
        return NULL;
    if (s->len > t->room) {
        char *const more = realloc(t->buf, s->len);
        if (!more)
            return "out of memory";
        t->buf = more;
        t->room = s->len;
    }
    t->at = t->buf;
    t->len = json_unescape(s->at, s->len, t->buf);
    return NULL;
}

const char *dedup_text(const struct dedup_options *opt, const char *line,
                       size_t n, struct dedup_text *out)
{
    if (opt->format != DEDUP_JSON) {
        out->at = line;
        out->len = n;
        memset(out->fields, 0, sizeof out->fields);
        return NULL;
    }
    const struct json_path paths[3] = { opt->text, opt->id, opt->field };
    memset(out->fields, 0, sizeof out->fields);
    out->at = line;
    out->len = 0;
    if (opt->has_field || opt->has_id) {
        if (!json_find(line, n, paths, opt->has_field ? 3 : 2, out->fields))
            return "not JSON";
    } else if (!json_find(line, n, paths, 1, out->fields)) {
        return "not JSON";
    }
    if (out->fields[0].type == JSON_NONE)
        return "has no text field";
    if (out->fields[0].type != JSON_STRING)
        return "its text field is no string";
    return unescape_text(out);
}

void dedup_bad_line(struct dedup *d, const struct lines_block *b, size_t i,
                    const char *why)
{
    d->report.malformed++;
    if (d->report.nbad < DEDUP_SHOWN)
        d->report.bad[d->report.nbad++] =
            (struct dedup_bad){ b->file->name,
                                b->first + i - b->file->first + 1, why };
}

/* ----------------------------------------------------------------- workers */

/* What a worker made of a block; arrays are by line. */
struct reader {
    bly_shingler *cut;
    bly_sketch *sketch;
    bly_hasher hasher;
    struct dedup_text text;
    size_t room;
    uint32_t *rows;
    uint64_t *hashes;
    uint32_t *nshingles;
    uint8_t *states;
    const char **whys;
    double *values;
    uint64_t *id_end; /* in ids */
    char *ids;
    size_t ids_len, ids_room;
    uint64_t text_bytes;
};

struct reading {
    struct dedup *d;
    struct reader *readers;
};

/* Arrays that grow together. False leaves them as they were or larger. */
#define GROW(p, n) grow_array((void **)&(p), (n), sizeof *(p))
static bool grow_array(void **p, uint64_t n, size_t size)
{
    if (n == 0)
        n = 1;
    void *const more =
        n > SIZE_MAX / size ? NULL : realloc(*p, (size_t)n * size);
    if (!more)
        return false;
    *p = more;
    return true;
}

static bool reader_room(const struct dedup *d, struct reader *r, size_t n)
{
    if (n <= r->room)
        return true;
    const size_t k = d->opt->sketch.k;
    if (n > SIZE_MAX / (k ? k : 1) || !GROW(r->rows, n * k) ||
        !GROW(r->hashes, n) || !GROW(r->nshingles, n) || !GROW(r->states, n) ||
        !GROW(r->whys, n) || !GROW(r->values, n) || !GROW(r->id_end, n))
        return false;
    r->room = n;
    return true;
}

static bool reader_id(struct reader *r, const struct json_slice *id)
{
    const size_t n =
        id->type == JSON_STRING || id->type == JSON_NUMBER ? id->len : 0;
    if (r->ids_len + n > r->ids_room) {
        if (!GROW(r->ids, (r->ids_len + n) * 2))
            return false;
        r->ids_room = (r->ids_len + n) * 2;
    }
    if (n)
        memcpy(r->ids + r->ids_len, id->at, n);
    r->ids_len += n;
    return true;
}

/* The number that a slice is; infinite, and so behind all others, if it is
 * none. */
static double slice_value(const struct json_slice *s, bool ascending)
{
    char buf[64];
    const double none = ascending ? INFINITY : -INFINITY;
    if ((s->type != JSON_NUMBER && s->type != JSON_STRING) || s->len == 0 ||
        s->len >= sizeof buf)
        return none;
    memcpy(buf, s->at, s->len);
    buf[s->len] = '\0';
    char *end;
    const double v = strtod(buf, &end);
    return *end || isnan(v) ? none : v;
}

/* Row i from the text of a line. */
static bool sketch_row(const struct dedup *d, struct reader *r, size_t i)
{
    const unsigned k = d->opt->sketch.k;
    const struct dedup_text *const t = &r->text;
    bly_shingles x;
    if (bly_shingle(r->cut, t->at, t->len, &x))
        return false;
    r->states[i] = x.n ? DOC_TEXT : DOC_EMPTY;
    r->nshingles[i] = x.n < UINT32_MAX ? (uint32_t)x.n : UINT32_MAX;
    r->hashes[i] = x.text;
    if (d->opt->whole_only) {
        r->hashes[i] = bly_hash(&r->hasher, t->at, t->len);
        return true;
    }
    bly_sketch_clear(r->sketch);
    if (bly_sketch_add(r->sketch, x.hashes, x.n))
        return false;
    uint32_t *const row = r->rows + i * k;
    if (!bly_sketch_components(r->sketch, row))
        memset(row, 0, k * sizeof *row);
    return true;
}

static bool read_block(void *ctx, unsigned worker, struct lines_block *b)
{
    struct reading *const all = ctx;
    const struct dedup *const d = all->d;
    struct reader *const r = &all->readers[worker];
    size_t at = 0, n, i = 0;
    const char *line;
    r->ids_len = 0;
    r->text_bytes = 0;
    if (!reader_room(d, r, b->nlines))
        return lines_fail(d->in, "out of memory");
    while (lines_next(d->in, b, &at, &line, &n)) {
        const char *const why = dedup_text(d->opt, line, n, &r->text);
        r->whys[i] = why;
        r->hashes[i] = 0;
        r->nshingles[i] = 0;
        r->states[i] = DOC_BAD;
        if (!why && !sketch_row(d, r, i))
            return lines_fail(d->in, "%s", bly_error());
        if (d->opt->priority == DEDUP_LONGEST)
            r->values[i] = (double)r->text.len;
        else if (d->opt->priority == DEDUP_FIELD)
            r->values[i] = slice_value(&r->text.fields[2], d->opt->ascending);
        if (!why)
            r->text_bytes += r->text.len;
        if (d->id_start && !reader_id(r, &r->text.fields[1]))
            return lines_fail(d->in, "out of memory");
        r->id_end[i++] = r->ids_len;
    }
    return true;
}

bool dedup_room(struct dedup *d, uint64_t n)
{
    const uint64_t want = d->n + n;
    if (want > DEDUP_MAX_DOCS - 1)
        return dedup_fail(d, "more than 2^32 - 2 documents");
    if (want <= d->room)
        return true;
    const uint64_t room = want + want / 2;
    const uint64_t k = d->opt->sketch.k;
    if (!GROW(d->rows, room * k) || !GROW(d->hashes, room) ||
        !GROW(d->nshingles, room) || !GROW(d->states, room) ||
        (d->opt->priority != DEDUP_FIRST && !GROW(d->values, room)) ||
        (d->opt->want_ids && !GROW(d->id_start, room + 1)))
        return dedup_fail(d, "out of memory for %llu documents",
                          (unsigned long long)room);
    d->room = room;
    return true;
}

static bool append_ids(struct dedup *d, const struct reader *r, size_t n)
{
    if (!d->id_start)
        return true;
    if (d->ids_len + r->ids_len > d->ids_room) {
        if (!GROW(d->ids, (d->ids_len + r->ids_len) * 2))
            return lines_fail(d->in, "out of memory");
        d->ids_room = (d->ids_len + r->ids_len) * 2;
    }
    if (r->ids_len)
        memcpy(d->ids + d->ids_len, r->ids, r->ids_len);
    for (size_t i = 0; i < n; i++)
        d->id_start[d->n + i + 1] = d->ids_len + r->id_end[i];
    d->ids_len += r->ids_len;
    return true;
}

static bool append_block(void *ctx, unsigned worker, struct lines_block *b)
{
    struct reading *const all = ctx;
    struct dedup *const d = all->d;
    const struct reader *const r = &all->readers[worker];
    const size_t k = d->opt->sketch.k, n = b->nlines;
    if (!dedup_room(d, n))
        return lines_fail(d->in, "%s", d->error);
    if (!append_ids(d, r, n))
        return false;
    if (!d->opt->whole_only)
        memcpy(d->rows + d->n * k, r->rows, n * k * sizeof *r->rows);
    memcpy(d->hashes + d->n, r->hashes, n * sizeof *r->hashes);
    memcpy(d->nshingles + d->n, r->nshingles, n * sizeof *r->nshingles);
    memcpy(d->states + d->n, r->states, n);
    if (d->values)
        memcpy(d->values + d->n, r->values, n * sizeof *r->values);
    for (size_t i = 0; i < n; i++) {
        if (r->whys[i]) {
            dedup_bad_line(d, b, i, r->whys[i]);
            if (d->opt->strict)
                return lines_fail(
                    d->in, "%s:%llu: %s; without --strict it would be kept",
                    b->file->name,
                    (unsigned long long)(b->first + i - b->file->first + 1),
                    r->whys[i]);
        }
        d->report.empty += r->states[i] == DOC_EMPTY;
    }
    d->n += n;
    d->report.text_bytes += r->text_bytes;
    return true;
}

static void reader_free(struct reader *r)
{
    bly_shingler_free(r->cut);
    bly_sketch_free(r->sketch);
    free(r->text.buf);
    free(r->rows);
    free(r->hashes);
    free(r->nshingles);
    free(r->states);
    free(r->whys);
    free(r->values);
    free(r->id_end);
    free(r->ids);
}

bool dedup_read(struct dedup *d)
{
    const double start = dedup_seconds();
    const unsigned n = d->in->nthreads;
    struct reading all = { .d = d, .readers = calloc(n, sizeof *all.readers) };
    bool ok = all.readers != NULL;
    if (!ok)
        dedup_fail(d, "out of memory");
    for (unsigned i = 0; ok && i < n; i++) {
        struct reader *const r = &all.readers[i];
        const bly_spec plain = { .seed = d->opt->sketch.shingling.seed };
        ok = !bly_shingler_new(&d->opt->sketch.shingling, NULL, &r->cut) &&
             !bly_sketch_new(&d->opt->sketch, &r->sketch) &&
             !bly_hasher_for(&plain, &r->hasher);
        if (!ok)
            dedup_fail(d, "%s", bly_error());
    }
    ok = ok && dedup_room(d, 1024);
    if (ok && d->id_start && d->n == 0)
        d->id_start[0] = 0;
    if (ok && !lines_run(d->in, read_block, append_block, &all))
        ok = dedup_fail(d, "%s", d->in->error);
    for (unsigned i = 0; all.readers && i < n; i++)
        reader_free(&all.readers[i]);
    free(all.readers);
    d->report.documents = d->in->ndocs;
    d->report.bytes = d->in->nbytes;
    d->report.seconds[0] = dedup_seconds() - start;
    return ok;
}

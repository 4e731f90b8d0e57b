/*
 * dedup_read.c - the first pass: every document becomes a row
 *
 * Workers find the text of each line, cut it into shingles and sketch them;
 * rows are appended in the order of the blocks. A line without a text has an
 * empty row, so that the number of a document is the number of its line.
 *
 * With a journal every block is also written there. Documents that are in the
 * journal already are read, and malformed ones are reported, but they are not
 * sketched again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/journal.h"
#include "io/utf8.h"

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

static const char *line_text(const struct dedup_options *opt, const char *line,
                             size_t n, struct dedup_text *out)
{
    out->odd = false;
    if (opt->format == DEDUP_WARC) {
        const bly_bytes id = warc_field(line, n, opt->id_name);
        memset(out->fields, 0, sizeof out->fields);
        out->fields[1] =
            (struct json_slice){ JSON_STRING, id.ptr, id.len, false };
        const char *const why = warc_text(&out->warc, line, n, opt->max_line);
        out->at = out->warc.at;
        out->len = why ? 0 : out->warc.len;
        return why;
    }
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
        return "its text field is not a string";
    out->odd = !utf8_valid(out->fields[0].at, out->fields[0].len);
    return unescape_text(out);
}

const char *dedup_text(const struct dedup_options *opt, const struct block *b,
                       const char *line, size_t n, struct dedup_text *out)
{
    const char *const why = line_text(opt, line, n, out);
    const bool warc = opt->format == DEDUP_WARC;
    bly_bytes text;
    const char *const name = opt->format == DEDUP_FILES ? b->file->name : NULL;
    const bool page = warc ? out->warc.html && !opt->pages.tags
                           : html_is_page(&opt->pages, name, out->at, out->len);
    if (why || !page)
        return why;
    if (!html_works())
        return "a web page, which needs the program bloomery-html; --tags "
               "reads it as plain text";
    if (!html_text(&out->html, out->at, out->len,
                   warc && *out->warc.charset ? out->warc.charset : NULL,
                   &text))
        return "out of memory";
    out->at = text.ptr;
    out->len = text.len;
    return NULL;
}

void dedup_text_free(struct dedup_text *t)
{
    free(t->buf);
    html_free(&t->html);
    warc_text_free(&t->warc);
}

bool dedup_bad_line(const struct dedup_options *opt, struct input *in,
                    const struct block *b, size_t i, const char *why,
                    struct dedup_seen *seen)
{
    const uint64_t line = b->first + i - b->file->first + 1;
    seen->malformed++;
    if (seen->nbad < DEDUP_SHOWN)
        seen->bad[seen->nbad++] =
            (struct dedup_bad){ b->file->name, line, b->first + i, why };
    return !opt->strict ||
           input_fail(
               in, "%s:%llu: %s%s", b->file->name, (unsigned long long)line,
               why, opt->one_pass ? "" : "; without --strict it would be kept");
}

/* ----------------------------------------------------------------- workers */

/* What a worker made of a block. */
struct reader {
    bly_shingler *cut;
    bly_sketch *sketch;
    bly_hasher hasher;
    struct dedup_text text;
    struct dedup_part part;
    const char **whys; /* by line: what is wrong with it, or NULL */
    size_t whys_room;
    uint64_t odd; /* texts of the block that are not UTF-8 */
};

struct reading {
    struct dedup_job *job;
    struct dedup_docs *docs;
    struct reader *readers;
    dedup_take *take;
    void *ctx;
};

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

static bool has_word(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x80 || (c >= '0' && c <= '9') ||
            ((c | 32) >= 'a' && (c | 32) <= 'z'))
            return true;
    }
    return false;
}

/* Row i from the text of a line. */
static bool sketch_row(const struct dedup_options *o, struct reader *r,
                       size_t i)
{
    const struct dedup_text *const t = &r->text;
    struct dedup_part *const p = &r->part;
    bly_shingles x;
    if (o->whole_only) {
        p->states[i] = has_word(t->at, t->len) ? DOC_TEXT : DOC_EMPTY;
        p->hashes[i] = bly_hash(&r->hasher, t->at, t->len);
        return true;
    }
    if (bly_shingle(r->cut, t->at, t->len, &x))
        return false;
    p->states[i] = x.n ? DOC_TEXT : DOC_EMPTY;
    p->nshingles[i] = x.n < UINT32_MAX ? (uint32_t)x.n : UINT32_MAX;
    p->hashes[i] = x.text;
    bly_sketch_clear(r->sketch);
    if (bly_sketch_add(r->sketch, x.hashes, x.n))
        return false;
    bly_sketch_components(r->sketch, p->rows + i * o->sketch.k);
    return true;
}

/* The next row of the part, from a line that dedup_text() has seen. */
static bool read_row(const struct reading *all, struct reader *r,
                     const char *why)
{
    const struct dedup_options *const o = all->job->opt;
    const struct json_slice *const id = &r->text.fields[1];
    struct dedup_part *const p = &r->part;
    const size_t i = p->n, k = o->sketch.k;
    p->hashes[i] = 0;
    p->nshingles[i] = 0;
    p->states[i] = DOC_BAD;
    p->values[i] = 0;
    memset(p->rows + i * k, 0, k * sizeof *p->rows);
    if (!why && !sketch_row(o, r, i))
        return input_fail(all->docs->in, "%s", bly_error());
    if (o->priority == DEDUP_LONGEST)
        p->values[i] = (double)r->text.len;
    else if (o->priority == DEDUP_FIELD)
        p->values[i] = slice_value(&r->text.fields[2], o->ascending);
    if (!why)
        p->text_bytes += r->text.len;
    if (o->want_ids && (id->type == JSON_STRING || id->type == JSON_NUMBER) &&
        !dedup_part_id(p, id->at, id->len))
        return input_fail(all->docs->in, "out of memory");
    p->id_end[i] = p->ids_len;
    p->n++;
    return true;
}

static bool read_block(void *ctx, unsigned worker, struct block *b)
{
    struct reading *const all = ctx;
    const struct dedup_options *const o = all->job->opt;
    struct reader *const r = &all->readers[worker];
    size_t at = 0, n;
    const char *line;
    r->part.n = r->part.ids_len = 0;
    r->part.text_bytes = 0;
    r->odd = 0;
    if (!dedup_part_room(&r->part, o->sketch.k, b->nlines) ||
        !ROOM(r->whys, r->whys_room, b->nlines))
        return input_fail(all->docs->in, "out of memory");
    for (size_t i = 0; input_line(all->docs->in, b, &at, &line, &n); i++) {
        r->whys[i] = dedup_text(o, b, line, n, &r->text);
        r->odd += !r->whys[i] && r->text.odd;
        if (b->first + i >= all->docs->resumed && !read_row(all, r, r->whys[i]))
            return false;
    }
    return true;
}

static bool append_block(void *ctx, unsigned worker, struct block *b)
{
    struct reading *const all = ctx;
    struct dedup_job *const job = all->job;
    const struct reader *const r = &all->readers[worker];
    all->docs->seen.odd += r->odd;
    for (size_t i = 0; i < b->nlines; i++)
        if (r->whys[i] && !dedup_bad_line(job->opt, all->docs->in, b, i,
                                          r->whys[i], &all->docs->seen))
            return false;
    return !r->part.n || all->take(all->ctx, &r->part) ||
           input_fail(all->docs->in, "%s", job->error);
}

static bool readers_new(struct reading *all)
{
    const struct dedup_options *const o = all->job->opt;
    const bly_spec plain = { .seed = o->sketch.shingling.seed };
    all->readers = calloc(ordered_workers(all->docs->in), sizeof *all->readers);
    if (!all->readers)
        return dedup_fail(all->job, "out of memory");
    for (unsigned i = 0; i < ordered_workers(all->docs->in); i++) {
        struct reader *const r = &all->readers[i];
        if (bly_shingler_new(&o->sketch.shingling, NULL, &r->cut) ||
            bly_sketch_new(&o->sketch, &r->sketch) ||
            bly_hasher_for(&plain, &r->hasher))
            return dedup_fail(all->job, "%s", bly_error());
    }
    return true;
}

static bool read_all_rows(struct reading *all)
{
    struct input *const in = all->docs->in;
    bool ok = readers_new(all);
    if (ok && !ordered_run(in, read_block, append_block, all))
        ok = dedup_fail(all->job, "%s", in->error);
    for (unsigned i = 0; all->readers && i < ordered_workers(in); i++) {
        struct reader *const r = &all->readers[i];
        bly_shingler_free(r->cut);
        bly_sketch_free(r->sketch);
        dedup_text_free(&r->text);
        free(r->whys);
        dedup_part_free(&r->part);
    }
    free(all->readers);
    all->docs->seen.documents = in->ndocs;
    all->docs->seen.bytes = in->nbytes;
    return ok;
}

bool dedup_read_each(struct dedup_job *job, struct dedup_docs *docs,
                     dedup_take *take, void *ctx)
{
    struct reading all = { .job = job, .docs = docs, .take = take, .ctx = ctx };
    return read_all_rows(&all);
}

struct appending {
    struct dedup_job *job;
    struct dedup_docs *docs;
    struct dedup_journal journal;
};

static bool append_rows_read(void *ctx, const struct dedup_part *p)
{
    struct appending *const a = ctx;
    return dedup_journal_write(a->job, &a->journal, p) &&
           dedup_append(a->job, p, a->docs);
}

bool dedup_read(struct dedup_job *job, struct dedup_docs *docs)
{
    struct input *const in = docs->in;
    struct appending a = { .job = job, .docs = docs };
    bool ok = dedup_room(job, 1024, docs) &&
              dedup_journal_open(job, docs, &a.journal);
    docs->resumed = docs->n - docs->base;
    ok = ok && dedup_read_each(job, docs, append_rows_read, &a);
    if (ok && docs->n - docs->base != in->ndocs)
        ok = dedup_fail(job, "the folder of --work belongs to another input");
    return dedup_journal_close(job, &a.journal) && ok;
}

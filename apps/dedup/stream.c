/*
 * stream.c - one pass and a filter: what was seen before is removed
 *
 * Workers make the keys of a block: of a document its bands, of a paragraph its
 * words or its n-grams. In the block's turn the filter is asked for them, unit
 * by unit in the order of the input, and those of a unit that stays are added.
 * So who stays does not depend on the threads, and a unit never meets itself.
 *
 * A document without a partner costs no memory beyond its bits in the filter,
 * and there is nothing to compare it with. So the keys alone decide: n-grams by
 * their share, documents by the number of known bands (agreement.c), which is
 * an estimate of likeness and as good as one.
 *
 * A document may be a unit and its paragraphs too. Then it is asked for first,
 * its paragraphs after that, and its own keys are added last: what one level
 * adds the other does not see before the next document.
 *
 * Paragraphs are the lines of a text. They are cut out of a line of JSON where
 * they stand, between one \n and the next, and nothing else is written anew:
 *
 *     {"text": "first\nsecond\nthird"}   ->   {"text": "first\nthird"}
 */
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/dedup.h"
#include "apps/dedup/out_file.h"
#include "base/clock.h"

/* A part of a block that goes or stays as one. */
struct unit {
    size_t from, to; /* of the block */
    size_t nkeys;
    size_t nparts; /* units behind it that are parts of it */
};

struct stream_worker {
    bly_shingler *cut;
    bly_sketch *sketch;
    struct dedup_text text;
    struct unit *units;
    size_t nunits, units_room;
    uint64_t *keys, *bits;
    size_t nkeys, keys_room, bits_room;
    struct bad_line {
        size_t line;
        const char *why;
    } * bad;
    size_t nbad, bad_room;
    uint64_t empty, text_bytes, odd;
};

struct streaming {
    const struct dedup_options *opt;
    const struct stream_options *o; /* in there */
    struct input *in;
    struct stream_report *report;
    bly_filter *f;
    bly_hll *count; /* not NULL: only count the keys */
    struct stream_worker *workers;
    struct out_file out;
    bool unended;
};

static bool add_unit(struct stream_worker *w, size_t from, size_t to,
                     const uint64_t *keys, size_t nkeys)
{
    if (!ROOM(w->units, w->units_room, w->nunits + 1) ||
        !ROOM(w->keys, w->keys_room, w->nkeys + nkeys))
        return false;
    w->units[w->nunits++] =
        (struct unit){ .from = from, .to = to, .nkeys = nkeys };
    if (nkeys)
        memcpy(w->keys + w->nkeys, keys, nkeys * sizeof *keys);
    w->nkeys += nkeys;
    return true;
}

/* A document by its bands; the unit is its line. */
static bool band_unit(struct streaming *s, struct stream_worker *w, size_t from,
                      size_t to)
{
    const bly_bands bands = s->opt->bands;
    uint32_t row[BLY_MAX_COMPONENTS];
    uint64_t keys[BLY_MAX_COMPONENTS];
    bly_shingles x;
    if (bly_shingle(w->cut, w->text.at, w->text.len, &x))
        return false;
    bly_sketch_clear(w->sketch);
    if (bly_sketch_add(w->sketch, x.hashes, x.n))
        return false;
    const bool some = bly_sketch_components(w->sketch, row);
    if (some)
        bly_bands_keys(bands, row, keys);
    w->empty += !some;
    return add_unit(w, from, to, keys, some ? bands.bands : 0);
}

/* One paragraph, unescaped; the unit is its bytes in the block. */
static bool paragraph_unit(struct streaming *s, struct stream_worker *w,
                           const char *text, size_t n, size_t from, size_t to)
{
    bly_shingles x;
    if (bly_shingle(w->cut, text, n, &x))
        return false;
    if (x.nwords < s->o->min_words)
        x.n = 0;
    if (s->o->unit == STREAM_PARAGRAPHS)
        return add_unit(w, from, to, &x.text, x.n > 0);
    return add_unit(w, from, to, x.hashes, bly_distinct(x.hashes, x.n));
}

/* The lines of a JSON string where they stand. */
static bool json_paragraphs(struct streaming *s, struct stream_worker *w,
                            const struct block *b)
{
    const struct json_slice *const t = &w->text.fields[0];
    const char *from = t->at;
    const char *const end = t->at + t->len;
    if (!ROOM(w->text.buf, w->text.room, t->len))
        return false;
    while (from < end) {
        const char *e = from; /* behind the next \n, or the end */
        while ((e = memchr(e, '\\', (size_t)(end - e))) && e[1] != 'n')
            e += 2;
        const char *const behind = e ? e + 2 : end;
        const size_t n =
            json_unescape(from, (size_t)((e ? e : end) - from), w->text.buf);
        if (!paragraph_unit(s, w, w->text.buf, n, (size_t)(from - b->at),
                            (size_t)(behind - b->at)))
            return false;
        from = behind;
    }
    return true;
}

static bool stream_line(struct streaming *s, struct stream_worker *w,
                        const struct block *b, const char *line, size_t n,
                        size_t from, size_t to, size_t number)
{
    const char *const why = dedup_text(s->opt, b, line, n, &w->text);
    if (why) {
        if (!ROOM(w->bad, w->bad_room, w->nbad + 1))
            return false;
        w->bad[w->nbad++] = (struct bad_line){ number, why };
        return true;
    }
    w->text_bytes += w->text.len;
    w->odd += w->text.odd;
    if (s->o->unit == STREAM_BANDS)
        return band_unit(s, w, from, to);
    const size_t whole = w->nunits;
    if (s->o->documents &&
        !paragraph_unit(s, w, w->text.at, w->text.len, from, to))
        return false;
    if (!s->o->paragraphs)
        return true;
    const bool ok = s->opt->format == DEDUP_JSON
                        ? json_paragraphs(s, w, b)
                        : paragraph_unit(s, w, line, n, from, to);
    if (ok && s->o->documents)
        w->units[whole].nparts = w->nunits - whole - 1;
    return ok;
}

static bool stream_work(void *ctx, unsigned worker, struct block *b)
{
    struct streaming *const s = ctx;
    struct stream_worker *const w = &s->workers[worker];
    size_t at = 0, n, from = 0;
    const char *line;
    w->nunits = w->nkeys = w->nbad = 0;
    w->empty = w->text_bytes = w->odd = 0;
    for (size_t i = 0;; i++) {
        from = input_line_begins(s->in, b, at);
        if (!input_line(s->in, b, &at, &line, &n))
            break;
        if (!stream_line(s, w, b, line, n, from, at, i))
            return input_fail(s->in, "out of memory");
    }
    return ROOM(w->bits, w->bits_room, BLY_BITMAP_WORDS(w->nkeys) + 1) ||
           input_fail(s->in, "out of memory");
}

/* Is a unit known? Bands: if enough of them are (agreement.h). */
static bool is_known(const struct streaming *s, const uint64_t *keys, size_t n,
                     uint64_t *bits)
{
    size_t known = 0;
    if (n == 0)
        return false;
    bly_has_hashes(s->f, keys, n, bits);
    for (size_t i = 0; i < BLY_BITMAP_WORDS(n); i++)
        known += (size_t)__builtin_popcountll(bits[i]);
    if (s->o->unit == STREAM_BANDS)
        return known >= s->opt->known;
    if (s->o->unit == STREAM_PARAGRAPHS)
        return known == n;
    return (double)known > s->o->share * (double)n;
}

static void stream_put(struct streaming *s, const struct block *b, size_t from,
                       size_t to)
{
    if (from == to)
        return;
    if (s->unended)
        out_put(&s->out, "\n", 1);
    dedup_put(&s->out, s->in, b, from, to);
    s->unended = false;
}

static bool tell_bad(struct streaming *s, const struct stream_worker *w,
                     const struct block *b)
{
    for (size_t i = 0; i < w->nbad; i++)
        if (!dedup_bad_line(s->opt, s->in, b, w->bad[i].line, w->bad[i].why,
                            &s->report->seen))
            return false;
    return true;
}

static bool add_keys(struct streaming *s, const uint64_t *keys, size_t n)
{
    return s->o->read_only || n == 0 ||
           !bly_add_hashes(s->f, keys, n, NULL, NULL) ||
           input_fail(s->in, "%s", bly_error());
}

/* The unit goes: what stands before it in the block is written, it is not. */
static void drop_unit(struct streaming *s, const struct block *b,
                      const struct unit *u, size_t *from)
{
    stream_put(s, b, *from, u->from);
    *from = u->to;
    s->report->removed_units++;
}

static bool stream_turn(void *ctx, unsigned worker, struct block *b)
{
    struct streaming *const s = ctx;
    struct stream_worker *const w = &s->workers[worker];
    const uint64_t *keys = w->keys, *late = NULL;
    size_t from = 0, nlate = 0; /* from: not written yet; late: of a document */
    size_t parts = 0;           /* of it that are still to come */
    if (!tell_bad(s, w, b))
        return false;
    for (size_t i = 0; i < w->nunits; i++) {
        const struct unit *const u = &w->units[i];
        const bool last = parts == 1; /* of the parts of a document */
        parts -= parts > 0;
        if (is_known(s, keys, u->nkeys, w->bits)) {
            drop_unit(s, b, u, &from);
            for (size_t j = 0; j < u->nparts; j++, i++) /* they go with it */
                keys += w->units[i].nkeys;
        } else if (u->nparts) {
            parts = u->nparts;
            late = keys;
            nlate = u->nkeys;
        } else if (!add_keys(s, keys, u->nkeys)) {
            return false;
        }
        if (last && !add_keys(s, late, nlate))
            return false;
        keys += w->units[i].nkeys;
    }
    stream_put(s, b, from, b->len);
    if (from < b->len && !s->in->records)
        s->unended = b->at[b->len - 1] != '\n';
    s->report->units += w->nunits;
    s->report->keys += w->nkeys;
    s->report->seen.empty += w->empty;
    s->report->seen.text_bytes += w->text_bytes;
    s->report->seen.odd += w->odd;
    return !s->out.failed || input_fail(s->in, "%s", s->out.why);
}

static bool count_turn(void *ctx, unsigned worker, struct block *b)
{
    struct streaming *const s = ctx;
    (void)b;
    return !bly_hll_add(s->count, s->workers[worker].keys,
                        s->workers[worker].nkeys) ||
           input_fail(s->in, "%s", bly_error());
}

uint64_t dedup_stream_seed(const struct dedup_options *o)
{
    unsigned char head[BLY_SKETCH_HEAD + 8];
    const bly_hasher by = { .id = BLY_HASH_XXH3 };
    bly_sketch_spec_write(&o->sketch, head);
    const unsigned shape[] = { o->bands.bands, o->bands.rows };
    for (size_t i = 0; i < 8; i++)
        head[BLY_SKETCH_HEAD + i] =
            (unsigned char)(shape[i / 4] >> 8 * (i % 4));
    return bly_hash(&by, head, sizeof head) | 1;
}

static bool workers_new(struct dedup_job *job, struct streaming *s)
{
    bly_shingling cut = s->opt->sketch.shingling;
    if (s->o->unit == STREAM_NGRAMS)
        cut =
            (bly_shingling){ .unit = BLY_WORDS, .size = (unsigned)s->o->ngram };
    s->workers = calloc(ordered_workers(s->in), sizeof *s->workers);
    bool ok = s->workers != NULL;
    for (unsigned i = 0; ok && i < ordered_workers(s->in); i++)
        ok = !bly_shingler_new(&cut, NULL, &s->workers[i].cut) &&
             !bly_sketch_new(&s->opt->sketch, &s->workers[i].sketch);
    return ok || dedup_fail(job, "out of memory");
}

static void workers_free(struct streaming *s)
{
    for (unsigned i = 0; s->workers && i < ordered_workers(s->in); i++) {
        struct stream_worker *const w = &s->workers[i];
        bly_shingler_free(w->cut);
        bly_sketch_free(w->sketch);
        dedup_text_free(&w->text);
        free(w->units);
        free(w->keys);
        free(w->bits);
        free(w->bad);
    }
    free(s->workers);
}

bool dedup_stream_count(struct dedup_job *job, struct input *in,
                        double *distinct)
{
    struct streaming s = { .opt = job->opt, .o = &job->opt->stream, .in = in };
    bool ok = workers_new(job, &s);
    if (ok && bly_hll_new(0, NULL, &s.count))
        ok = dedup_fail(job, "%s", bly_error());
    if (ok && !ordered_run(in, stream_work, count_turn, &s))
        ok = dedup_fail(job, "%s", in->error);
    if (ok)
        *distinct = bly_hll_estimate(s.count, NULL);
    bly_hll_free(s.count);
    workers_free(&s);
    return ok;
}

bool dedup_stream(struct dedup_job *job, struct input *in, bly_filter *f,
                  struct stream_report *out)
{
    const double start = clock_seconds();
    struct streaming s = {
        .opt = job->opt, .o = &job->opt->stream, .in = in, .report = out, .f = f
    };
    bool ok = workers_new(job, &s);
    if (ok && !out_open(&s.out, job->opt->output, job->opt->wait)) {
        ok = dedup_fail(job, "%s", s.out.why);
    } else if (ok) {
        ok = ordered_run(in, stream_work, stream_turn, &s);
        if (!ok)
            dedup_fail(job, "%s", in->error);
        if (!out_close(&s.out, ok) && ok)
            ok = dedup_fail(job, "%s", s.out.why);
    }
    workers_free(&s);
    out->seen.documents = in->ndocs;
    out->seen.bytes = in->nbytes;
    out->seconds = clock_seconds() - start;
    return ok;
}

/*
 * filter.c - dedup in one pass, with a filter of any kind that adds
 *
 * One filter holds the keys of all bands: the number of a band is part of its
 * keys, so that this is b filters in one, of the same size and rate. A document
 * goes if enough of its bands are known (apps/dedup/agreement.h). Nothing is
 * compared, so what that costs is told with every run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bloomery.h>

#include "apps/dedup/args.h"
#include "apps/dedup/stream.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "io/sizing.h"
#include "report/json.h"
#include "report/progress.h"
#include "report/say.h"
#include "report/show.h"

/* How many n-grams there are, and four deviations of that estimate more. */
static bool count_ngrams(struct dedup *d, const struct stream_options *o,
                         uint64_t *items)
{
    double distinct;
    if (!lines_spool(d->in, d->opt->folder)) {
        fail("%s", d->in->error);
        return false;
    }
    if (!dedup_stream_count(d, o, &distinct)) {
        progress_clear();
        fail("%s", d->error);
        return false;
    }
    *items = (uint64_t)(distinct * 1.035) + 100;
    return true;
}

static bly_filter *filter_made(struct dedup *d, const struct stream_options *o)
{
    const struct dedup_args *const a = &dedup_args;
    const bool bands = o->unit == STREAM_BANDS;
    const uint64_t each = bands ? d->opt->bands.bands : 1;
    bly_spec spec = { .kind = a->kind, .fpr = a->documents_rate };
    spec.items = a->items ? a->items * each : 0;
    if (bands) {
        const struct agreement g = { d->opt->bands, d->opt->known };
        spec.fpr = agreement_key_rate(&g, a->documents_rate);
        spec.seed = dedup_stream_seed(d->opt);
    }
    if (!a->items && o->unit == STREAM_NGRAMS &&
        !count_ngrams(d, o, &spec.items))
        return NULL;
    if (!a->kind && !spec.items)
        spec.kind = "scalable"; /* grows, since nobody said how many */
    if (!spec.items)
        spec.items = 1000000;
    bly_filter *f;
    if (a->kind && !kind_exists(a->kind))
        return NULL;
    if (bly_new(&spec, &f)) {
        fail_library();
        return NULL;
    }
    return f;
}

/* Does a filter do for this run? False, and said why, if not. */
static bool filter_fits(const struct dedup *d, const struct stream_options *o,
                        const bly_filter *f, const char *name)
{
    if (!filter_can(f, name, BLY_CAN(HAS)) ||
        (!o->read_only && !filter_can(f, name, BLY_CAN(ADD))))
        return false;
    if (o->unit != STREAM_BANDS)
        return true;
    bly_stats s;
    bly_stat(f, &s);
    if (s.seed == dedup_stream_seed(d->opt))
        return true;
    fail("%s: not made for %u bands of %u of these sketches; right: the "
         "--bands, --threshold, --recall, --profile, --unit, --size, --k, "
         "--family and --seed that it was made with, or a new file",
         name, d->opt->bands.bands, d->opt->bands.rows);
    return false;
}

/* A run with a filter. */
struct filtering {
    struct dedup *d;
    const struct stream_options *o;
    struct stream_report report;
    int status;
    bool ok, said; /* said: why not */
};

static bly_status filter_through(bly_filter *f, void *ctx)
{
    struct filtering *const r = ctx;
    const struct dedup_args *const a = &dedup_args;
    r->said = true;
    if (!filter_fits(r->d, r->o, f, a->filter ? a->filter : "the filter"))
        return BLY_EINVAL;
    r->ok = dedup_stream(r->d, r->o, f, a->output, &r->report);
    progress_clear();
    r->status = dedup_bad_input(r->d);
    if (!r->ok)
        r->status = fail("%s", r->d->error);
    r->said = !r->ok;
    return r->ok ? BLY_OK : BLY_EIO;
}

static int filter_run(struct filtering *r)
{
    const char *const path = dedup_args.filter;
    const bool there = path && access(path, F_OK) == 0;
    const bly_access how = { .wait = wait_for_lock };
    r->status = TROUBLE;
    /* A new one would take the place of one that is there after all. */
    if (path && !there && errno != ENOENT)
        return fail_path(path, errno);
    if (r->o->read_only && !there)
        return fail("--read-only needs a filter: --filter FILE that exists");
    if (there && is_same_file(dedup_args.output, path))
        return fail("%s: is both the filter and the output; name two files",
                    path);
    if (there && !r->o->read_only) {
        /* Under its lock: of two runs neither's documents are lost. */
        if (bly_update(path, &how, filter_through, r) && !r->said)
            r->status = fail_library();
        return r->status;
    }
    bly_filter *const f =
        there ? filter_open(path, NULL) : filter_made(r->d, r->o);
    if (f && filter_through(f, r) == BLY_OK && path && !r->o->read_only &&
        filter_save(f, path) != YES)
        r->status = TROUBLE;
    bly_free(f);
    return r->status;
}

/* Likenesses that a report tells the price of: the threshold, one that a copy
 * has, and some that none has. */
#define NPRICES 5
static size_t price_points(double threshold, double at[NPRICES])
{
    size_t n = 0;
    at[n++] = (1 + threshold) / 2;
    at[n++] = threshold;
    for (int i = 1; i <= 3; i++)
        if (threshold - 0.1 * i > 0.05)
            at[n++] = round((threshold - 0.1 * i) * 1e9) / 1e9;
    return n;
}

static const char *show_chance(double p)
{
    static char text[NPRICES][32];
    static unsigned turn;
    char *const at = text[turn++ % NPRICES];
    snprintf(at, sizeof text[0], p < 5e-5 ? "%.0e" : "%.4f", p);
    return at;
}

static void bands_report(FILE *to, const struct dedup_options *o)
{
    const struct agreement g = { o->bands, o->known };
    double at[NPRICES];
    const size_t n = price_points(o->threshold, at);
    fprintf(to,
            "a document was removed if %u of its %u bands of %u were known, "
            "and nothing was compared: an earlier one that is %.4g like it "
            "removes it with probability %s, at the threshold of %.4g with %s",
            g.known, g.bands.bands, g.bands.rows, at[0],
            show_chance(agreement_chance(&g, at[0])), at[1],
            show_chance(agreement_chance(&g, at[1])));
    for (size_t i = 2; i < n; i++)
        fprintf(to, "%s at %.4g with %s", i == 2 ? "; by mistake" : ",", at[i],
                show_chance(agreement_chance(&g, at[i])));
    fprintf(to, "; the chances of many such add up. --index memory compares "
                "the texts\n");
}

static void bands_json(struct json *j, const struct dedup_options *o)
{
    const struct agreement g = { o->bands, o->known };
    double at[NPRICES];
    const size_t n = price_points(o->threshold, at);
    json_key(j, "k");
    json_uint(j, o->sketch.k);
    json_key(j, "bands");
    json_uint(j, g.bands.bands);
    json_key(j, "rows");
    json_uint(j, g.bands.rows);
    json_key(j, "known_bands");
    json_uint(j, g.known);
    json_key(j, "threshold");
    json_real(j, o->threshold);
    json_key(j, "expected_recall");
    json_real(j, agreement_chance(&g, o->threshold));
    json_key(j, "chance_by_likeness");
    json_open(j, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(j, '[');
        json_real(j, at[i]);
        json_real(j, agreement_chance(&g, at[i]));
        json_close(j, ']');
    }
    json_close(j, ']');
}

static void filter_report(const struct dedup *d, const struct stream_options *o,
                          const struct stream_report *r)
{
    const char *const unit =
        o->unit == STREAM_BANDS ? "documents" : "paragraphs";
    if (quiet)
        return;
    if (dedup_args.json) {
        struct json j = { .to = stdout };
        json_open(&j, '{');
        json_key(&j, "documents");
        json_uint(&j, d->report.documents);
        json_key(&j, "bytes");
        json_uint(&j, d->report.bytes);
        json_key(&j, "malformed");
        json_uint(&j, d->report.malformed);
        json_key(&j, "unit");
        json_text(&j, unit);
        json_key(&j, "units");
        json_uint(&j, r->units);
        json_key(&j, "removed");
        json_uint(&j, r->removed_units);
        json_key(&j, "keys");
        json_uint(&j, r->keys);
        json_key(&j, "compared_by");
        json_text(&j, o->unit == STREAM_BANDS ? "bands" : "words");
        if (o->unit == STREAM_BANDS)
            bands_json(&j, d->opt);
        json_key(&j, "seconds");
        json_real(&j, d->report.seconds[0]);
        json_close(&j, '}');
        json_end(&j);
        return;
    }
    FILE *const to = report_to(dedup_args.output);
    fprintf(to, "%llu documents, %s: %llu of %llu %s removed\n",
            (unsigned long long)d->report.documents,
            show_bytes(d->report.bytes), (unsigned long long)r->removed_units,
            (unsigned long long)r->units, unit);
    if (o->unit == STREAM_BANDS)
        bands_report(to, d->opt);
    else
        fprintf(to, "texts were compared by their words: case, punctuation and "
                    "spacing do not matter\n");
}

int dedup_filtered(struct dedup *d, bool ngrams)
{
    const struct dedup_args *const a = &dedup_args;
    static const char *const levels[] = { "paragraphs", "documents", "both",
                                          NULL };
    const int level = dedup_choice("level", a->level, levels);
    if (level < 0)
        return TROUBLE;
    const struct stream_options o = {
        .unit = ngrams          ? STREAM_NGRAMS
                : a->paragraphs ? STREAM_PARAGRAPHS
                                : STREAM_BANDS,
        .ngram = (unsigned)a->ngram_size,
        .min_words = a->min_words,
        .share = a->share,
        .documents = ngrams && level > 0,
        .paragraphs = !ngrams || level != 1,
        .read_only = a->read_only,
    };
    if (!a->output)
        return fail("where to? right: -o OUT, or -o - for standard output");
    if (a->pairs || a->clusters || a->removed || a->save_index || a->against)
        return fail("a filter knows no partners: --pairs, --clusters, "
                    "--removed, --save-index and --against need --index "
                    "memory");
    if (d->opt->format == DEDUP_FILES)
        return fail("--files needs --index memory");
    struct filtering r = { .d = d, .o = &o };
    const int status = filter_run(&r);
    if (r.ok)
        filter_report(d, &o, &r.report);
    return status;
}

/*
 * report.c - what dedup found, for people and for programs
 */
#include <math.h>
#include <stdio.h>

#include "apps/dedup/agreement.h"
#include "apps/dedup/run.h"
#include "io/paths.h"
#include "report/json.h"
#include "report/say.h"
#include "report/show.h"

static const char *const step_names[] = { "read", "band", "decide", "check",
                                          "write" };

const char *const dedup_verifies[] = { "exact", "estimate", "none", NULL };
const char *const dedup_policies[] = { "greedy", "component", NULL };

static void report_json(const struct dedup_options *o,
                        const struct dedup_made *made)
{
    const struct dedup_seen *const seen = &made->docs.seen;
    const struct dedup_verdicts *const v = &made->verdicts;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        { "documents", seen->documents },
        { "bytes", seen->bytes },
        { "text_bytes", seen->text_bytes },
        { "without_text", seen->empty },
        { "malformed", seen->malformed },
        { "indexed", made->docs.base },
        { "equal", made->order.equal },
        { "candidates", v->candidates },
        { "checked", made->check.checked },
        { "pairs", v->pairs },
        { "removed", v->removed },
        { "dropped_empty", v->dropped_empty },
        { "kept", v->kept },
        { "largest_bucket", made->buckets.largest },
        { "largest_cluster", v->largest_cluster },
        { "rounds", v->rounds },
        { "resumed", made->docs.resumed },
        { "resumed_pairs", made->check.resumed },
    };
    struct json j = { .to = stdout };
    json_open(&j, '{');
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        json_key(&j, counts[i].name);
        json_uint(&j, counts[i].value);
    }
    json_key(&j, "params");
    json_open(&j, '{');
    json_key(&j, "unit");
    json_text(&j, o->sketch.shingling.unit == BLY_CHARS ? "char" : "word");
    json_key(&j, "size");
    json_uint(&j, o->sketch.shingling.size);
    json_key(&j, "family");
    json_text(&j, bly_family_name(o->sketch.family));
    json_key(&j, "k");
    json_uint(&j, o->sketch.k);
    json_key(&j, "seed");
    json_uint(&j, o->sketch.shingling.seed);
    json_key(&j, "threshold");
    json_real(&j, o->threshold);
    json_key(&j, "bands");
    json_uint(&j, o->bands.bands);
    json_key(&j, "rows");
    json_uint(&j, o->bands.rows);
    json_key(&j, "verify");
    json_text(&j, dedup_verifies[o->verify]);
    json_key(&j, "policy");
    json_text(&j, dedup_policies[o->policy]);
    json_key(&j, "priority");
    json_text(&j, o->priority_text);
    json_close(&j, '}');
    json_key(&j, "index_exact");
    json_bool(&j, made->sets.indexed);
    json_key(&j, "expected_recall");
    json_real(&j, o->whole_only ? 1 : bly_bands_chance(o->bands, o->threshold));
    json_key(&j, "seconds");
    json_open(&j, '{');
    for (size_t i = 0; i < 5; i++) {
        json_key(&j, step_names[i]);
        json_real(&j, made->seconds[i]);
    }
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
}

void dedup_report(const struct dedup_options *o, const struct dedup_made *made)
{
    const struct dedup_seen *const seen = &made->docs.seen;
    const struct dedup_verdicts *const v = &made->verdicts;
    if (quiet)
        return;
    if (o->json) {
        report_json(o, made);
        return;
    }
    const char *const outs[] = DEDUP_OUTPUTS(o);
    FILE *to = stdout;
    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++)
        if (outs[i] && is_stdout(outs[i]))
            to = stderr;
    double seconds = 0;
    for (size_t i = 0; i < 5; i++)
        seconds += made->seconds[i];
    fprintf(to,
            "%llu documents, %s: %llu removed (%llu equal), %llu kept; "
            "%.1f s, %.0f MB/s\n",
            (unsigned long long)seen->documents, show_bytes(seen->bytes),
            (unsigned long long)v->removed,
            (unsigned long long)made->order.equal, (unsigned long long)v->kept,
            seconds,
            (double)seen->bytes / 1e6 / (seconds > 1e-3 ? seconds : 1e-3));
    if (seen->empty || seen->malformed)
        fprintf(to, "%llu without words, %llu malformed lines\n",
                (unsigned long long)seen->empty,
                (unsigned long long)seen->malformed);
    if (made->docs.base && !made->sets.indexed)
        fprintf(to,
                "likeness to the %lu documents of the index is an estimate, "
                "deviation %.3f at the threshold; --with-shingles makes an "
                "index that is compared exactly\n",
                (unsigned long)made->docs.base,
                sqrt(o->threshold * (1 - o->threshold) / o->sketch.k));
    if (!o->whole_only)
        fprintf(to,
                "%llu candidates, %llu pairs checked, %llu at %.4g or above; "
                "a pair there is found with probability %.4f\n",
                (unsigned long long)v->candidates,
                (unsigned long long)made->check.checked,
                (unsigned long long)v->pairs, o->threshold,
                bly_bands_chance(o->bands, o->threshold));
}

/* ------------------------------------------------------------ with a filter */

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

void dedup_filter_report(const struct dedup_options *o,
                         const struct stream_report *r)
{
    const bool bands = o->stream.unit == STREAM_BANDS;
    const char *const unit = bands ? "documents" : "paragraphs";
    if (quiet)
        return;
    if (o->json) {
        struct json j = { .to = stdout };
        json_open(&j, '{');
        json_key(&j, "documents");
        json_uint(&j, r->seen.documents);
        json_key(&j, "bytes");
        json_uint(&j, r->seen.bytes);
        json_key(&j, "malformed");
        json_uint(&j, r->seen.malformed);
        json_key(&j, "unit");
        json_text(&j, unit);
        json_key(&j, "units");
        json_uint(&j, r->units);
        json_key(&j, "removed");
        json_uint(&j, r->removed_units);
        json_key(&j, "keys");
        json_uint(&j, r->keys);
        json_key(&j, "compared_by");
        json_text(&j, bands ? "bands" : "words");
        if (bands)
            bands_json(&j, o);
        json_key(&j, "seconds");
        json_real(&j, r->seconds);
        json_close(&j, '}');
        json_end(&j);
        return;
    }
    FILE *const to = report_to(o->output);
    fprintf(to, "%llu documents, %s: %llu of %llu %s removed\n",
            (unsigned long long)r->seen.documents, show_bytes(r->seen.bytes),
            (unsigned long long)r->removed_units, (unsigned long long)r->units,
            unit);
    if (bands)
        bands_report(to, o);
    else
        fprintf(to, "texts were compared by their words: case, punctuation and "
                    "spacing do not matter\n");
}

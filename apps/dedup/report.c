/*
 * report.c - what dedup found, for people and for programs
 */
#include <math.h>
#include <stdio.h>

#include <bloomery.h>

#include "apps/dedup/args.h"
#include "io/paths.h"
#include "report/json.h"
#include "report/say.h"
#include "report/show.h"

static const char *const step_names[] = { "read", "band", "decide", "check",
                                          "write" };

static void report_json(const struct dedup *d)
{
    const struct dedup_report *const r = &d->report;
    const struct dedup_options *const o = d->opt;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        { "documents", r->documents },
        { "bytes", r->bytes },
        { "text_bytes", r->text_bytes },
        { "without_text", r->empty },
        { "malformed", r->malformed },
        { "indexed", r->indexed },
        { "equal", r->equal },
        { "candidates", r->candidates },
        { "checked", r->checked },
        { "pairs", r->pairs },
        { "removed", r->removed },
        { "dropped_empty", r->dropped_empty },
        { "kept", r->kept },
        { "largest_bucket", r->largest_bucket },
        { "largest_cluster", r->largest_cluster },
        { "rounds", r->rounds },
        { "resumed", r->resumed },
        { "resumed_pairs", r->resumed_pairs },
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
    json_text(&j, dedup_args.verify);
    json_key(&j, "policy");
    json_text(&j, dedup_args.policy);
    json_key(&j, "priority");
    json_text(&j, dedup_args.priority);
    json_close(&j, '}');
    json_key(&j, "index_exact");
    json_bool(&j, d->index_has_sets);
    json_key(&j, "expected_recall");
    json_real(&j, o->whole_only ? 1 : bly_bands_chance(o->bands, o->threshold));
    json_key(&j, "seconds");
    json_open(&j, '{');
    for (size_t i = 0; i < 5; i++) {
        json_key(&j, step_names[i]);
        json_real(&j, r->seconds[i]);
    }
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
}

void dedup_report(const struct dedup *d)
{
    const struct dedup_report *const r = &d->report;
    const struct dedup_args *const a = &dedup_args;
    if (quiet)
        return;
    if (a->json) {
        report_json(d);
        return;
    }
    const char *const outs[] = { a->output, a->pairs, a->clusters, a->removed,
                                 a->save_index };
    FILE *to = stdout;
    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++)
        if (outs[i] && is_stdout(outs[i]))
            to = stderr;
    double seconds = 0;
    for (size_t i = 0; i < 5; i++)
        seconds += r->seconds[i];
    fprintf(to,
            "%llu documents, %s: %llu removed (%llu equal), %llu kept; "
            "%.1f s, %.0f MB/s\n",
            (unsigned long long)r->documents, show_bytes(r->bytes),
            (unsigned long long)r->removed, (unsigned long long)r->equal,
            (unsigned long long)r->kept, seconds,
            (double)r->bytes / 1e6 / (seconds > 1e-3 ? seconds : 1e-3));
    if (r->empty || r->malformed)
        fprintf(to, "%llu without words, %llu malformed lines\n",
                (unsigned long long)r->empty, (unsigned long long)r->malformed);
    if (d->base && !d->index_has_sets)
        fprintf(to,
                "likeness to the %lu documents of the index is an estimate, "
                "deviation %.3f at the threshold; --with-shingles makes an "
                "index that is compared exactly\n",
                (unsigned long)d->base,
                sqrt(d->opt->threshold * (1 - d->opt->threshold) /
                     d->opt->sketch.k));
    if (!d->opt->whole_only)
        fprintf(to,
                "%llu candidates, %llu pairs checked, %llu at %.4g or above; "
                "a pair there is found with probability %.4f\n",
                (unsigned long long)r->candidates,
                (unsigned long long)r->checked, (unsigned long long)r->pairs,
                d->opt->threshold,
                bly_bands_chance(d->opt->bands, d->opt->threshold));
}

/*
 * dedup_report.c - what dedup found, for people and for programs
 */
#include <math.h>

#include "apps/dedup/agreement.h"
#include "apps/dedup/dedup_run.h"
#include "io/paths.h"
#include "report/say.h"

const char *const dedup_verifies[] = { "exact", "estimate", "none", NULL };
const char *const dedup_policies[] = { "greedy", "component", NULL };

#define COUNT(name, member, help) \
    NAMED(struct dedup_made, name, member, NONE, help)

static const struct field count_fields[] = {
    COUNT("documents", docs.seen.documents, "documents that were read"),
    NAMED(struct dedup_made, "bytes", docs.seen.bytes, BYTES, "their size"),
    NAMED(struct dedup_made, "text_bytes", docs.seen.text_bytes, BYTES,
          "size of their texts"),
    COUNT("without_text", docs.seen.empty, "documents without words"),
    COUNT("malformed", docs.seen.malformed, "lines that are not documents"),
    COUNT("not_utf8", docs.seen.odd, "documents whose text is not UTF-8"),
    COUNT("indexed", docs.base, "documents of the index that was loaded"),
    COUNT("equal", order.equal, "documents with the text of another"),
    COUNT("candidates", verdicts.candidates, "pairs that share a band"),
    COUNT("checked", check.checked, "of them, those whose texts were compared"),
    COUNT("pairs", verdicts.pairs, "pairs at the threshold or above"),
    COUNT("removed", verdicts.removed, "documents removed as copies"),
    COUNT("dropped_empty", verdicts.dropped_empty,
          "documents removed because they have no words"),
    COUNT("kept", verdicts.kept, "documents that stay"),
    COUNT("largest_bucket", buckets.largest, "documents that share one band"),
    COUNT("largest_cluster", verdicts.largest_cluster,
          "documents in the largest cluster of copies"),
    COUNT("rounds", verdicts.rounds, "rounds that deciding took"),
    COUNT("resumed", docs.resumed, "documents taken from a journal"),
    COUNT("resumed_pairs", check.resumed, "pairs taken from a journal"),
    { 0 },
};

#define STEP(name, i, help) \
    NAMED(struct dedup_made, name, seconds[i], SECONDS, help)

static const struct field step_fields[] = {
    STEP("read", 0, "reading and sketching"),
    STEP("band", 1, "sorting bands"),
    STEP("decide", 2, "deciding what is removed"),
    STEP("check", 3, "comparing texts"),
    STEP("write", 4, "writing"),
    { 0 },
};

/* What is told of a run. */
struct told {
    const struct dedup_made *made;
    struct dedup_options o;
    const char *unit, *family, *verify, *policy;
    bool exact, estimates, lacks;
    double recall, deviation, seconds, speed;
};

static const struct field param_fields[] = {
    FIELD(struct told, unit, NONE, "unit of a shingle: \"word\" or \"char\""),
    NAMED(struct told, "size", o.sketch.shingling.size, NONE,
          "units in a shingle"),
    FIELD(struct told, family, NONE, "family of hash functions"),
    NAMED(struct told, "k", o.sketch.k, NONE, "components of a sketch"),
    NAMED(struct told, "seed", o.sketch.shingling.seed, NONE, "of the hashes"),
    NAMED(struct told, "threshold", o.threshold, NONE,
          "likeness from which a document is a copy"),
    NAMED(struct told, "bands", o.bands.bands, NONE, "bands of a sketch"),
    NAMED(struct told, "rows", o.bands.rows, NONE, "components of a band"),
    FIELD(struct told, verify, NONE, "how candidates were checked"),
    FIELD(struct told, policy, NONE, "who is removed for whom"),
    NAMED(struct told, "priority", o.priority_text, MAYBE,
          "which of two copies stays"),
    { 0 },
};

const struct field dedup_fields[] = {
    MEMBERS(struct told, made, AT, count_fields),
    WHOLE("params", param_fields, "how it was done"),
    NAMED(struct told, "index_exact", exact, NONE,
          "whether the index holds shingles"),
    NAMED(struct told, "expected_recall", recall, NONE,
          "probability that a pair at the threshold is found"),
    OBJECT(struct told, "seconds", made, AT, step_fields, "time of each stage"),
    NAMED(struct told, "threshold", o.threshold, NONE, NULL),
    NAMED(struct told, "whole_only", o.whole_only, NONE, NULL),
    FIELD(struct told, estimates, NONE, NULL),
    FIELD(struct told, lacks, NONE, NULL),
    FIELD(struct told, deviation, NONE, NULL),
    NAMED(struct told, "total", seconds, SECONDS, NULL),
    FIELD(struct told, speed, NONE, NULL),
    { 0 },
};

void dedup_report(const struct dedup_options *o, const struct dedup_made *made)
{
    const struct dedup_seen *const seen = &made->docs.seen;
    if (quiet)
        return;
    const char *const outs[] = DEDUP_OUTPUTS(o);
    FILE *to = stdout;
    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++)
        if (outs[i] && is_stdout(outs[i]))
            to = stderr;
    struct told told = {
        .made = made,
        .o = *o,
        .unit = o->sketch.shingling.unit == BLY_CHARS ? "char" : "word",
        .family = bly_family_name(o->sketch.family),
        .verify = dedup_verifies[o->verify],
        .policy = dedup_policies[o->policy],
        .exact = made->sets.indexed,
        .estimates = made->docs.base && !made->sets.indexed,
        .lacks = seen->empty || seen->malformed,
        .recall = o->whole_only ? 1 : bly_bands_chance(o->bands, o->threshold),
        .deviation = sqrt(o->threshold * (1 - o->threshold) / o->sketch.k),
    };
    for (size_t i = 0; i < 5; i++)
        told.seconds += made->seconds[i];
    told.speed = (double)seen->bytes / 1e6 / fmax(told.seconds, 1e-3);
    report(to, o->json, dedup_fields, &told,
           "{documents} documents, {bytes}: {removed} removed ({equal} equal), "
           "{kept} kept; {total:.1} s, {speed:.0} MB/s\n"
           "[{?lacks}{without_text} without words, {malformed} malformed "
           "lines\n]"
           "[{?estimates}likeness to the {indexed} documents of the index is "
           "an estimate, deviation {deviation:.3} at the threshold; "
           "--with-shingles makes an index that is compared exactly\n]"
           "[{!whole_only}{candidates} candidates, {checked} pairs checked, "
           "{pairs} at {threshold} or above; a pair there is found with "
           "probability {expected_recall:.4}\n]");
}

/* ------------------------------------------------------------ with a filter */

/* Likenesses whose chance of removal is reported: the threshold, that of a
 * typical copy, and some below any copy's. */
#define NPRICES 5
struct price {
    double likeness, chance;
};

struct stream_bands {
    unsigned k, bands, rows, known_bands;
    double threshold, recall;
    struct price prices[NPRICES];
    size_t nprices;
};

static const struct field price_fields[] = {
    FIELD(struct price, likeness, NONE, "likeness to an earlier document"),
    FIELD(struct price, chance, NONE, "probability that it removes it"),
    { 0 },
};

static const struct field stream_bands_fields[] = {
    FIELD(struct stream_bands, k, NONE, "components of a sketch"),
    FIELD(struct stream_bands, bands, NONE, "bands of a sketch"),
    FIELD(struct stream_bands, rows, NONE, "components of a band"),
    FIELD(struct stream_bands, known_bands, NONE,
          "known bands that make a document a copy"),
    FIELD(struct stream_bands, threshold, NONE, "likeness of a copy"),
    NAMED(struct stream_bands, "expected_recall", recall, NONE,
          "probability that a copy at the threshold is removed"),
    LIST(struct stream_bands, "chance_by_likeness", prices, nprices, TUPLE,
         price_fields, "the same for other likenesses"),
    { 0 },
};

static struct stream_bands stream_bands(const struct dedup_options *o)
{
    const struct agreement g = { o->bands, o->known };
    struct stream_bands b = {
        .k = o->sketch.k,
        .bands = g.bands.bands,
        .rows = g.bands.rows,
        .known_bands = g.known,
        .threshold = o->threshold,
        .recall = agreement_chance(&g, o->threshold),
        .prices = { { .likeness = (1 + o->threshold) / 2 },
                    { .likeness = o->threshold } },
        .nprices = 2,
    };
    for (int i = 1; i <= 3; i++)
        if (o->threshold - 0.1 * i > 0.05)
            b.prices[b.nprices++].likeness =
                round((o->threshold - 0.1 * i) * 1e9) / 1e9;
    for (size_t i = 0; i < b.nprices; i++)
        b.prices[i].chance = agreement_chance(&g, b.prices[i].likeness);
    return b;
}

static const char *show_chance(double p)
{
    static char text[NPRICES][32];
    static unsigned turn;
    char *const at = text[turn++ % NPRICES];
    snprintf(at, sizeof text[0], p < 5e-5 ? "%.0e" : "%.4f", p);
    return at;
}

static void bands_report(FILE *to, const struct stream_bands *b)
{
    const struct price *const at = b->prices;
    fprintf(to,
            "a document was removed if %u of its %u bands of %u were known, "
            "and nothing was compared: an earlier one that is %.4g like it "
            "removes it with probability %s, at the threshold of %.4g with %s",
            b->known_bands, b->bands, b->rows, at[0].likeness,
            show_chance(at[0].chance), at[1].likeness,
            show_chance(at[1].chance));
    for (size_t i = 2; i < b->nprices; i++)
        fprintf(to, "%s at %.4g with %s", i == 2 ? "; by mistake" : ",",
                at[i].likeness, show_chance(at[i].chance));
    fprintf(to, "; the chances of many such add up. --index memory compares "
                "the texts\n");
}

struct streamed {
    struct stream_report r;
    const char *unit, *compared_by;
    const struct stream_bands *bands; /* NULL: paragraphs */
};

const struct field dedup_filter_fields[] = {
    NAMED(struct streamed, "documents", r.seen.documents, NONE,
          "documents that were read"),
    NAMED(struct streamed, "bytes", r.seen.bytes, BYTES, "their size"),
    NAMED(struct streamed, "malformed", r.seen.malformed, NONE,
          "lines that are not documents"),
    NAMED(struct streamed, "not_utf8", r.seen.odd, NONE,
          "documents whose text is not UTF-8"),
    FIELD(struct streamed, unit, NONE, "what is removed"),
    NAMED(struct streamed, "units", r.units, NONE, "how many there were"),
    NAMED(struct streamed, "removed", r.removed_units, NONE, "those removed"),
    NAMED(struct streamed, "keys", r.keys, NONE, "keys in the filter"),
    FIELD(struct streamed, compared_by, NONE, "\"bands\" or \"words\""),
    MEMBERS(struct streamed, bands, AT | OPTIONAL, stream_bands_fields),
    NAMED(struct streamed, "seconds", r.seconds, SECONDS, "time of the pass"),
    { 0 },
};

void dedup_filter_report(const struct dedup_options *o,
                         const struct stream_report *r)
{
    const bool bands = o->stream.unit == STREAM_BANDS;
    const struct stream_bands b = stream_bands(o);
    const struct streamed told = { *r, bands ? "documents" : "paragraphs",
                                   bands ? "bands" : "words",
                                   bands ? &b : NULL };
    FILE *const to = report_to(o->output);
    if (quiet)
        return;
    report(to, o->json, dedup_filter_fields, &told,
           "{documents} documents, {bytes}: {removed} of {units} {unit} "
           "removed\n");
    if (bands && !o->json)
        bands_report(to, &b);
    else if (!o->json)
        fprintf(to, "texts were compared by their words: case, punctuation and "
                    "spacing do not matter\n");
}

/*
 * digest_simulate.c - would summaries pay? A replay of requests
 *
 * workbench/sim/digest_replay.c does it; here traces are read and results
 * shown. Sizes of messages: a question by ICP has a header of 20 bytes, the
 * address of who asks and the URL with a NUL (RFC 2186), its answer the header
 * and the URL; a summary goes out as a delta of this library or whole, as a bit
 * mask.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/digest/jobs.h"
#include "base/grow.h"
#include "base/lookup.h"
#include "report/say.h"

#define ICP_HEADER 20
#define ICP_ADDRESS 4
#define ZIPF_URL_BYTES 50 /* what the paper takes for the mean of a URL */
#define MAX_SCHEMES 64

struct simulation {
    struct digest_replay how;
    struct digest_trace trace;
    struct digest_scheme schemes[MAX_SCHEMES];
    size_t nschemes;
    struct digest_totals totals;
    struct digest_outcome outcomes[MAX_SCHEMES];
    double zipf; /* NAN: a trace from files */
};

/* ------------------------------------------------------ requests from logs */

/* URLs get numbers in the order they come; found by their hash. */
struct names {
    struct simulation *s;
    bly_hasher hasher;
    uint64_t *hashes;
    size_t n, room;
    struct lookup by_hash;
    uint64_t nbytes;
};

/* The number of a URL by its hash, which may be new. False: no memory. */
static bool name_number(struct names *t, uint64_t hash, uint32_t *out)
{
    /* It is that of the simulated proxies, and its seed is known. */
    const uint64_t place = table_hash(&hash, sizeof hash);
    LOOKUP_EACH (&t->by_hash, place, row)
        if (t->hashes[row] == hash) {
            *out = (uint32_t)row;
            return true;
        }
    if (!GROW(&t->hashes, &t->room, t->n + 1) ||
        !lookup_add(&t->by_hash, place, t->n))
        return false;
    t->hashes[t->n] = hash;
    *out = (uint32_t)t->n++;
    return true;
}

static bool simulate_line(void *ctx, const struct digest_line *line,
                          bly_bytes text)
{
    struct names *const t = ctx;
    (void)text;
    if (!line->is_asked)
        return true;
    uint32_t number;
    t->nbytes += line->url.len;
    /* Who asked decides the proxy; a list does not say, so they take turns. */
    const uint64_t who =
        line->client.len
            ? bly_hash(&t->hasher, line->client.ptr, line->client.len)
            : t->s->trace.n;
    if (name_number(t, bly_hash(&t->hasher, line->key.ptr, line->key.len),
                    &number) &&
        digest_trace_add(&t->s->trace, number,
                         (unsigned)(who % t->s->how.nproxies)))
        return true;
    fail("out of memory");
    return false;
}

static int simulate_read(struct simulation *s, const struct list *names)
{
    const bly_spec spec = { .seed = s->how.seed };
    struct names t = { .s = s };
    struct digest_counts counts = { 0 };
    if (bly_hasher_for(&spec, &t.hasher))
        return fail_library();
    int status = digest_read(names, false, simulate_line, &t, &counts);
    if (status == YES && s->trace.n == 0)
        status = fail("no requests in %s", names->at[0]);
    if (status == YES && counts.unknown && !quiet)
        warn("%llu of %llu lines were neither URLs nor lines of access.log",
             (unsigned long long)counts.unknown,
             (unsigned long long)counts.lines);
    s->trace.url_bytes = (double)t.nbytes / fmax(1, (double)s->trace.n);
    free(t.hashes);
    lookup_free(&t.by_hash);
    return status;
}

/* ----------------------------------------------------------------- options */

/* Every pair of bits and threshold. */
static bool schemes_read(const struct digest_args *args, struct simulation *s)
{
    static const char *const usual_bits[] = { "8", "16", "32" };
    static const char *const usual_thresholds[] = { "1%", "5%", "10%" };
    const char *const *bits = args->bits.n ? args->bits.at : usual_bits;
    const char *const *thresholds =
        args->thresholds.n ? args->thresholds.at : usual_thresholds;
    const size_t nbits = args->bits.n ? args->bits.n : 3;
    const size_t nthresholds = args->thresholds.n ? args->thresholds.n : 3;
    if (nbits > MAX_SCHEMES || nthresholds > MAX_SCHEMES ||
        nbits * nthresholds > MAX_SCHEMES) {
        fail("more than %d pairs of --bits and --threshold", MAX_SCHEMES);
        return false;
    }
    for (size_t i = 0; i < nbits * nthresholds; i++) {
        const char *const b = bits[i / nthresholds];
        const char *const t = thresholds[i % nthresholds];
        uint64_t n;
        double share;
        if (!bly_parse_count(b, &n) || n < 1 || n > 127) {
            fail("--bits '%s': not 1 to 127 bits per document", b);
            return false;
        }
        if (!bly_parse_real(t, &share) || !(share > 0 && share <= 1)) {
            fail("--threshold '%s': not a share above 0 and up to 1 (try 1%%, "
                 "0.05)",
                 t);
            return false;
        }
        s->schemes[s->nschemes++] =
            (struct digest_scheme){ (unsigned)n, share };
    }
    return true;
}

static int simulate_prepare(const struct digest_args *args,
                            const struct list *names, struct simulation *s)
{
    const bool made = was_given(&args->documents) ||
                      was_given(&args->requests) || was_given(&args->zipf);
    if (!schemes_read(args, s))
        return TROUBLE;
    if (names->n && made)
        return fail("--documents, --requests and --zipf are for an artificial "
                    "trace, not for one from files");
    s->zipf = args->zipf;
    s->how = (struct digest_replay){
        .nproxies = (unsigned)args->proxies,
        .cache = args->cache,
        .seed = args->seed,
    };
    s->trace.url_bytes = ZIPF_URL_BYTES;
    if (names->n) {
        s->zipf = NAN;
        const int status = simulate_read(s, names);
        if (status != YES)
            return status;
    } else if (!digest_trace_zipf(&s->trace, s->how.nproxies, args->documents,
                                  s->zipf, args->requests, args->seed)) {
        return fail("out of memory");
    }
    s->how.warmup = (uint64_t)((double)s->trace.n * args->warmup);
    return YES;
}

/* --------------------------------------------------------------- reporting */

/* What one scheme, or asking all, comes to for a request. */
struct row {
    double remote, false_misses, false_hits, queries, updates;
    double messages;                 /* questions, answers and updates */
    double delta_bytes, whole_bytes; /* with updates as deltas, and whole */
    double flips, delta;             /* of one update; NAN: there was none */
};

static struct row row_of(const struct simulation *s, size_t i)
{
    const double n = (double)s->totals.requests;
    const bool icp = i == s->nschemes;
    const struct digest_outcome asks_all = { .remote_hits = s->totals.had,
                                             .queries = s->totals.queries };
    const struct digest_outcome *const o = icp ? &asks_all : &s->outcomes[i];
    const double url = s->trace.url_bytes;
    const double talk = 2 * ICP_HEADER + ICP_ADDRESS + 2 * (url + 1);
    const double neighbours = s->how.nproxies - 1, queries = (double)o->queries;
    const double whole = DIGEST_HEADER + (double)o->summary_bytes;
    return (struct row){
        .remote = (double)o->remote_hits / n,
        .false_misses = (double)o->false_misses / n,
        .false_hits = icp ? NAN : (double)o->false_hits / n,
        .queries = queries / n,
        .updates = (double)o->updates / n,
        .messages = (2 * queries + (double)o->updates) / n,
        .delta_bytes =
            (queries * talk + (double)o->delta_bytes * neighbours) / n,
        .whole_bytes = (queries * talk + (double)o->updates * whole) / n,
        .flips = (double)o->flips / (double)o->versions,
        .delta = (double)o->delta_bytes / (double)o->versions,
    };
}

static void simulate_print(const struct simulation *s)
{
    const double n = (double)s->totals.requests;
    const struct row icp = row_of(s, s->nschemes);
    printf("%u proxies of %llu documents, %llu requests of which %llu count, "
           "%llu documents",
           s->how.nproxies, (unsigned long long)s->how.cache,
           (unsigned long long)s->trace.n,
           (unsigned long long)s->totals.requests,
           (unsigned long long)s->trace.ndocuments);
    if (!isnan(s->zipf))
        printf(", Zipf %g", s->zipf);
    printf("\nlocal hits %.2f %%, a neighbour has %.2f %% of the requests\n\n",
           100 * (double)s->totals.local_hits / n,
           100 * (double)s->totals.had / n);
    printf("%-16s %7s %7s %7s %8s %8s %9s %10s %10s\n", "", "remote", "false",
           "false", "", "", "messages", "bytes,", "bytes,");
    printf("%-16s %7s %7s %7s %8s %8s %9s %10s %10s\n", "scheme", "hits %",
           "miss %", "hits", "queries", "updates", "saved", "deltas", "whole");
    printf("%-16s %7.2f %7.2f %7s %8.3f %8.3f %9s %10.1f %10.1f\n",
           "ask all (ICP)", 100 * icp.remote, 0.0, "-", icp.queries, 0.0, "-",
           icp.delta_bytes, icp.whole_bytes);
    for (size_t i = 0; i < s->nschemes; i++) {
        const struct row r = row_of(s, i);
        char name[40];
        snprintf(name, sizeof name, "%u bits, %g %%", s->schemes[i].bits,
                 100 * s->schemes[i].threshold);
        printf("%-16s %7.2f %7.2f %7.3f %8.3f %8.3f %8.1fx %10.1f %10.1f\n",
               name, 100 * r.remote, 100 * r.false_misses, r.false_hits,
               r.queries, r.updates, icp.messages / r.messages, r.delta_bytes,
               r.whole_bytes);
    }
    printf("\nfalse hits, queries, updates and bytes are per request\n");
}

static const struct field row_fields[] = {
    NAMED(struct row, "remote_hits", remote, SHARE | MAYBE,
          "requests that a neighbour served"),
    FIELD(struct row, false_misses, SHARE | MAYBE,
          "requests that one could have served"),
    FIELD(struct row, false_hits, MAYBE, "neighbours asked in vain"),
    FIELD(struct row, queries, MAYBE, "neighbours asked"),
    FIELD(struct row, updates, MAYBE, "summaries sent"),
    FIELD(struct row, messages, MAYBE, "messages of both sorts"),
    NAMED(struct row, "bytes_deltas", delta_bytes, BYTES | MAYBE,
          "bytes, if summaries are sent as what changed"),
    NAMED(struct row, "bytes_whole", whole_bytes, BYTES | MAYBE,
          "bytes, if summaries are sent whole"),
    NAMED(struct row, "update_flips", flips, BITS | MAYBE,
          "bits that differ from one summary to the next"),
    NAMED(struct row, "update_delta_bytes", delta, BYTES | MAYBE,
          "size of such a change"),
    { 0 },
};

struct summary {
    uint64_t bits;
    double threshold;
    struct row row;
};

static const struct field summary_fields[] = {
    FIELD(struct summary, bits, BITS, "bits per document"),
    FIELD(struct summary, threshold, SHARE | MAYBE,
          "new documents after which it is sent"),
    MEMBERS(struct summary, row, NONE, row_fields),
    { 0 },
};

static void make_summary(const void *from, size_t i, void *element)
{
    const struct simulation *const s = from;
    *(struct summary *)element =
        (struct summary){ s->schemes[i].bits, s->schemes[i].threshold,
                          row_of(s, i) };
}

struct simulated {
    const struct simulation *s;
    uint64_t documents, cache, requests, counted;
    size_t nschemes;
    unsigned proxies;
    double zipf, local_hits;
    struct row icp;
};

const struct field simulated_fields[] = {
    FIELD(struct simulated, proxies, NONE, "proxies"),
    FIELD(struct simulated, cache, NONE, "documents that each keeps"),
    FIELD(struct simulated, documents, NONE, "different documents"),
    FIELD(struct simulated, zipf, MAYBE,
          "exponent of their popularity; null for a trace from files"),
    FIELD(struct simulated, requests, NONE, "requests"),
    FIELD(struct simulated, counted, NONE, "those behind the warm-up"),
    FIELD(struct simulated, local_hits, SHARE | MAYBE,
          "requests that the first proxy served"),
    OBJECT(struct simulated, "icp", icp, NONE, row_fields,
           "asking all neighbours; per request, as below"),
    EACH(struct simulated, "summaries", s, nschemes, NONE, make_summary,
         struct summary, summary_fields, "asking those whose summary has it"),
    { 0 },
};

static void simulate_json(const struct simulation *s)
{
    const struct simulated simulated = {
        s,
        s->trace.ndocuments,
        s->how.cache,
        s->trace.n,
        s->totals.requests,
        s->nschemes,
        s->how.nproxies,
        s->zipf,
        (double)s->totals.local_hits / (double)s->totals.requests,
        row_of(s, s->nschemes),
    };
    report(stdout, true, simulated_fields, &simulated, NULL);
}

int digest_simulate(const struct digest_args *args, struct list *operands)
{
    static struct simulation s;
    int status = simulate_prepare(args, operands, &s);
    if (status == YES) {
        const bly_status st = digest_replay(&s.how, &s.trace, s.schemes,
                                            s.nschemes, &s.totals, s.outcomes);
        if (st)
            status = st == BLY_ENOMEM ? fail("out of memory") : fail_library();
    }
    if (status == YES && !quiet) {
        if (args->json)
            simulate_json(&s);
        else
            simulate_print(&s);
    }
    digest_trace_free(&s.trace);
    return status;
}

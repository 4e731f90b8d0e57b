/*
 * figure_sent.c - filters that are sent, and filters that are built in one go
 */
#include <math.h>

#include "workbench/figure.h"

/* ---------------------------------------------------------- compressed */

/* A row of the published tables: bits per key in memory and sent, probes, rate.
 */
struct sent_row {
    double limit, m, k, z, f;
};

static const struct sent_row sent_rows[] = {
    { 8, 8, 6, 7.982, 0.021577 },       { 8, 14, 2, 7.923, 0.017721 },
    { 8, 92, 1, 7.923, 0.010811 },      { 16, 16, 11, 16.000, 0.000458711 },
    { 16, 28, 4, 15.846, 0.000314051 }, { 16, 48, 3, 15.829, 0.000222401 },
};

/* A filter of m bits per key and k probes, coded: its size as it is sent, and
 * its rate. */
static void sent_run(struct figure_run *run)
{
    const uint64_t n = run->full ? 1000000 : 100000;
    const double queries = run->full ? 1e7 : 1e6;
    run->x = AXIS(.label = "memory at both ends", .unit = "bits per key",
                  .scale = PLOT_LOG);
    run->y = FIGURE_RATES;
    for (unsigned limit = 8; limit <= 16; limit += 8) {
        struct figure_series *rate =
            figure_series(run, "%u bits per key sent", limit);
        struct figure_series *size =
            figure_series(run, "bits sent, of %u", limit);
        size->unseen = true;
        for (size_t i = 0; i < sizeof sent_rows / sizeof *sent_rows; i++) {
            const struct sent_row *row = &sent_rows[i];
            if (row->limit != limit)
                continue;
            char options[20];
            snprintf(options, sizeof options, "k=%.0f", row->k);
            const bly_spec spec =
                SPEC(.kind = "classic", .items = n,
                     .bits = (uint64_t)(row->m * (double)n), .seed = run->seed);
            bly_filter *f = figure_filter(run, &spec, options);
            if (!f || !figure_add(run, f, 0, n))
                return;
            bly_set_coded(f, true);
            /* The header, 296 bytes of it, is not part of what is compared. */
            const double sent =
                8 * ((double)bly_written_bytes(f) - 296) / (double)n;
            figure_point(run, size, row->m, row->z, sent, 0.99 * row->z,
                         1.01 * row->z);
            figure_judge(run, rate, row->m, row->f,
                         figure_share(f, FIGURE_ABSENT, (uint64_t)queries),
                         figure_rate_sd(row->f, (double)n, row->m * (double)n,
                                        row->k, queries, 1));
            bly_free(f);
        }
    }
    figure_note(run, "Sent sizes are those of files, coded, without the "
                     "header.");
}

const struct figure figure_sent = {
    .name = "compressed",
    .title = "Fewer probes in more memory: the same bytes sent, fewer errors",
    .source = "Compressed Bloom filters, the published tables.",
    .about = "A filter that is half full cannot be compressed. With more "
             "memory and fewer probes it is sparse, the range coder takes it "
             "to the same number of bytes, and it errs less: at 8 bits per key "
             "sent, 1.08 % instead of 2.16 %.",
    .run = sent_run,
};

/* ------------------------------------------------------- fuse overhead */

static void fuse_run(struct figure_run *run)
{
    static const struct {
        double n, slots; /* of three-wise filters, as published */
    } rows[] = { { 10, 48 },
                 { 100, 192 },
                 { 1000, 1408 },
                 { 10000, 12800 },
                 { 100000, 118784 },
                 { 1000000, 1130496 },
                 { 10000000, 11272192 } };
    run->x = AXIS(.label = "keys", .scale = PLOT_LOG, .format = PLOT_SI);
    run->y = AXIS(.label = "slots per key", .scale = PLOT_LOG);
    struct figure_series *three = figure_series(run, "fuse, 3 slots per key");
    struct figure_series *four = figure_series(run, "fuse, 4 slots per key");
    struct figure_series * xor = figure_series(run, "xor");
    struct figure_series *rate = figure_series(run, "rate, fuse of 8 bits");
    rate->unseen = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double n = rows[i].n;
        if (n > (run->full ? 1e7 : 1e5))
            break;
        const bly_spec spec = { .kind = "fuse", .seed = run->seed };
        bly_filter *f =
            figure_built(run, &spec, "bits=8 arity=3 shards=1", 0, (uint64_t)n);
        bly_filter *g =
            figure_built(run, &spec, "bits=8 arity=4 shards=1", 0, (uint64_t)n);
        const bly_spec other = { .kind = "xor", .seed = run->seed };
        bly_filter *x =
            figure_built(run, &other, "bits=8 shards=1", 0, (uint64_t)n);
        if (!f || !g || !x)
            return;
        bly_stats s;
        bly_peek(f, &s);
        /* The builder's estimate of distinct keys above a million adds 2 %. */
        const double slack = n > 1e6 ? 0.03 : 0.001;
        figure_point(run, three, n, rows[i].slots / n, (double)s.bits / 8 / n,
                     (1 - slack) * rows[i].slots / n,
                     (1 + slack) * rows[i].slots / n + 16 / n);
        bly_peek(g, &s);
        figure_point(run, four, n, NAN, (double)s.bits / 8 / n, NAN, NAN);
        bly_peek(x, &s);
        figure_point(run, xor, n, 1.23 + 32 / n, (double)s.bits / 8 / n,
                     (1 - slack) * (1.23 + 32 / n) - 3 / n,
                     (1 + slack) * (1.23 + 32 / n) + 16 / n);
        const double queries = 1e6, p = 1.0 / 256;
        figure_judge(run, rate, n, p, figure_share(f, FIGURE_ABSENT, 1000000),
                     sqrt(p * (1 - p) / queries));
        bly_free(f);
        bly_free(g);
        bly_free(x);
    }
}

const struct figure figure_fuse = {
    .name = "fuse-overhead",
    .title = "Slots needed by a static filter",
    .source = "Binary fuse filters and xor filters; published sizes.",
    .about =
        "One equation per key must be solvable: xor filters need 1.23 slots "
        "per key, fuse filters come close to 1.13 (three slots per key) and "
        "1.08 (four) once there are many keys. Each slot is a fingerprint, and "
        "the rate is 2^-8 for eight bits whatever the number of keys.",
    .run = fuse_run,
};

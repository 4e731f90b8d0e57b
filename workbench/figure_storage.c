/*
 * figure_storage.c - what filters save in storage and in joins
 *
 * The tables are those of `bloomery table`, made and asked in memory, and what
 * is counted are blocks that a lookup reads.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/table/table_file.h"
#include "report/say.h"
#include "workbench/figure.h"

#define KEY_BYTES 12 /* "key", 8 digits, NUL */

static bly_bytes storage_key(char at[KEY_BYTES], uint64_t number)
{
    snprintf(at, KEY_BYTES, "key%08llu", (unsigned long long)number);
    return (bly_bytes){ at, KEY_BYTES - 1 };
}

/* A table in memory. */
struct made_table {
    struct block bytes;
    struct table table;
};

static bool put_memory(void *ctx, const void *bytes, size_t n)
{
    return block_put(ctx, bytes, n);
}

/* The table of n keys: first, first + step, ... False, and run->broken. */
static bool make_table(struct figure_run *run, struct made_table *t,
                       uint64_t first, uint64_t step, uint64_t n,
                       const bly_spec *filter)
{
    struct table_entry *const e = calloc((size_t)n, sizeof *e);
    char *const text = malloc((size_t)n * KEY_BYTES);
    char why[TABLE_WHY] = "out of memory";
    bool ok = e && text;
    for (uint64_t i = 0; ok && i < n; i++) {
        e[i].key = storage_key(text + i * KEY_BYTES, first + i * step);
        e[i].value = (bly_bytes){ "value", 5 };
    }
    ok = ok && table_write(e, (size_t)n, filter, put_memory, &t->bytes, why) &&
         table_open(&t->table, t->bytes.at, t->bytes.len, why);
    free(e);
    free(text);
    if (!ok)
        fail("%s", why);
    run->broken |= !ok;
    return ok;
}

static void drop_table(struct made_table *t)
{
    table_close(&t->table);
    block_free(&t->bytes);
}

/* Blocks that the lookup of a key reads in n tables, from the last to the
 * first. */
static uint64_t blocks_read(struct figure_run *run, struct made_table *tables,
                            size_t n, uint64_t number, enum table_use use)
{
    char at[KEY_BYTES], why[TABLE_WHY];
    struct table_counts counts = { 0 };
    bly_bytes value;
    enum table_found found = TABLE_ABSENT;
    const bly_bytes key = storage_key(at, number);
    while (n-- > 0 && found == TABLE_ABSENT)
        found = table_find(&tables[n].table, key, use, &counts, &value, why);
    run->broken |= found == TABLE_DAMAGED;
    return counts.blocks;
}

/* ------------------------------------------------------- the worked example */

static void three_run(struct figure_run *run)
{
    static const uint64_t in_oldest = 600; /* a multiple of 3 */
    struct made_table tables[3] = { 0 };
    run->x = AXIS(.label = "tables", .min = 0, .max = 4);
    run->y = AXIS(.label = "blocks read for a key of the oldest", .min = 0);
    struct figure_series *const with = figure_series(run, "with filters");
    struct figure_series *const without = figure_series(run, "without");
    for (uint64_t i = 0; i < 3 && !run->broken; i++) {
        const bly_spec spec =
            SPEC(.kind = "classic", .fpr = 0.0001, .seed = run->seed + i);
        if (!make_table(run, &tables[i], i, 3, 1000, &spec))
            break;
        const double n = (double)i + 1;
        figure_point(run, with, n, 1,
                     (double)blocks_read(run, tables, (size_t)i + 1, in_oldest,
                                         TABLE_FILTERS),
                     1, 1);
        figure_point(run, without, n, n,
                     (double)blocks_read(run, tables, (size_t)i + 1, in_oldest,
                                         TABLE_NOTHING),
                     n, n);
    }
    for (size_t i = 0; i < 3; i++)
        drop_table(&tables[i]);
    figure_note(run, "Three tables: the filters of two say no, and one is read "
                     "instead of three.");
}

const struct figure figure_three_tables = {
    .name = "example-tables",
    .title = "Three tables, one read instead of three",
    .source = "The worked example of the texts: filters 1 and 2 say no.",
    .about = "A key is in the oldest of three sorted tables. Without filters "
             "all three are read, the newest first; with them, the two that do "
             "not have it are spared.",
    .run = three_run,
};

/* ---------------------------------------------------------- skipping tables */

#define MOST_TABLES 10

static void tables_run(struct figure_run *run)
{
    const uint64_t n = run->full ? 100000 : 20000;
    const double rate = 0.01;
    struct made_table tables[MOST_TABLES] = { 0 };
    bly_spec spec = SPEC(.kind = "classic", .items = n, .fpr = rate);
    bly_prediction plan;
    run->x = AXIS(.label = "tables");
    run->y = AXIS(.label = "blocks read per lookup", .scale = PLOT_LOG);
    struct figure_series *const none = figure_series(run, "without filters");
    struct figure_series *const oldest =
        figure_series(run, "filters of 1 %%, key in the oldest");
    struct figure_series *const absent =
        figure_series(run, "filters of 1 %%, absent key");
    if (bly_plan(&spec, &plan)) {
        run->broken = true;
        return;
    }
    for (uint64_t i = 0; i < MOST_TABLES && !run->broken; i++) {
        uint64_t reads = 0, there = 0, all = 0;
        spec.seed = run->seed * 100 + i;
        if (!make_table(run, &tables[i], i, 2 * MOST_TABLES, n, &spec))
            break;
        const size_t nt = (size_t)i + 1;
        /* The point that the texts name is measured best. */
        const uint64_t queries =
            run->full && nt == MOST_TABLES ? 100000 : 20000;
        for (uint64_t q = 0; q < queries; q++) {
            /* Odd numbers of twenty are in no table. */
            const uint64_t number = q % n * 2 * MOST_TABLES;
            reads += blocks_read(run, tables, nt, number + MOST_TABLES + 1,
                                 TABLE_FILTERS);
            there += blocks_read(run, tables, nt, number, TABLE_FILTERS);
            all += q % 100
                       ? 0
                       : blocks_read(run, tables, nt, number + MOST_TABLES + 1,
                                     TABLE_NOTHING);
        }
        const double t = (double)nt, asked = (double)queries, f = plan.fpr;
        /* Each filter has its own rate, and t of them are added. */
        const double sd =
            t * figure_rate_sd(f, (double)n, (double)plan.bits, 7, asked, t);
        figure_point(run, none, t, t, (double)all / (asked / 100), t, t);
        figure_judge(run, oldest, t, 1 + (t - 1) * f, (double)there / asked,
                     sd);
        figure_judge(run, absent, t, t * f, (double)reads / asked, sd);
    }
    for (size_t i = 0; i < MOST_TABLES; i++)
        drop_table(&tables[i]);
}

const struct figure figure_tables = {
    .name = "tables-read",
    .title = "What filters spare a folder of sorted tables",
    .source = "Storage engines with a filter per table: T f reads of an absent "
              "key, 1 + (T - 1) f of one in the oldest.",
    .about =
        "Ten tables of the same range of keys, asked from the newest to "
        "the oldest. Without filters an absent key costs a block of each. "
        "With filters of 1 % it costs a tenth of a block, and a key in the "
        "oldest table 1.09.",
    .run = tables_run,
};

/* ------------------------------------------------------- differential files */

static void differential_run(struct figure_run *run)
{
    const uint64_t n = run->full ? 1000000 : 200000, changed = n / 100;
    const uint64_t step = run->full ? 7 : 3; /* between lookups */
    run->x = AXIS(.label = "bits per changed record");
    run->y = AXIS(.label = "reads beyond the main file", .scale = PLOT_LOG);
    struct figure_series *const s =
        figure_series(run, "per lookup of an unchanged record");
    struct made_table tables[2] = { 0 };
    const bly_spec main = SPEC(.fpr = 0.01, .seed = run->seed);
    if (!make_table(run, &tables[0], 0, 1, n, &main))
        return;
    for (uint64_t bits = 4; bits <= 16 && !run->broken; bits += 4) {
        const bly_spec spec =
            SPEC(.kind = "classic", .items = changed, .bits = bits * changed,
                 .seed = run->seed + bits);
        bly_prediction plan;
        uint64_t reads = 0, asked = 0;
        if (bly_plan(&spec, &plan) ||
            !make_table(run, &tables[1], 0, 100, changed, &spec)) {
            run->broken = true;
            break;
        }
        for (uint64_t i = 0; i < n; i += step) {
            if (i % 100 == 0)
                continue;
            reads += blocks_read(run, tables, 2, i, TABLE_FILTERS);
            asked++;
        }
        const double beyond = (double)(reads - asked) / (double)asked;
        figure_judge(
            run, s, (double)bits, plan.fpr, beyond,
            figure_rate_sd(plan.fpr, (double)changed, (double)plan.bits,
                           round((double)bits * log(2)), (double)asked, 1));
        drop_table(&tables[1]);
    }
    drop_table(&tables[0]);
    figure_note(run, "1 %% of the records changed, 8 bits for each: 0.0216 "
                     "reads in vain per lookup of one that did not.");
}

const struct figure figure_differential = {
    .name = "differential-file",
    .title = "A differential file on top of a large one",
    .source = "Severance and Lohman 1976; Gremillion 1982.",
    .about =
        "A main file of a million records and a small one of the 1 % that "
        "were changed, as two tables. A filter of the changed keys decides "
        "which is read first: a lookup of an unchanged record reads the "
        "main file alone, except for the filter's false positives.",
    .run = differential_run,
};

/* -------------------------------------------------------------- Bloom joins */

static void joins_run(struct figure_run *run)
{
    const double a = 10000, b = run->full ? 1e6 : 2e5, row = 100;
    const double matching = b / 100, others = b - matching;
    run->x = AXIS(.label = "bits per key of the filter");
    run->y = AXIS(.label = "bytes sent", .unit = "of 100 MB per million rows",
                  .scale = PLOT_LOG, .format = PLOT_SI);
    struct figure_series *const s = figure_series(run, "filter and rows");
    struct figure_series *const all = figure_series(run, "all rows");
    for (unsigned c = 4; c <= 20 && !run->broken; c += 2) {
        const bly_spec spec =
            SPEC(.kind = "classic", .items = (uint64_t)a,
                 .bits = (uint64_t)a * c, .seed = run->seed + c);
        bly_prediction plan;
        bly_filter *const f = figure_filter(run, &spec, NULL);
        if (!f || bly_plan(&spec, &plan) ||
            !figure_add(run, f, 0, (uint64_t)a)) {
            run->broken = true;
            bly_free(f);
            return;
        }
        /* Rows of B: a hundredth have a key of A, over and over. */
        double passed =
            figure_share(f, FIGURE_ABSENT, (uint64_t)others) * others;
        passed += figure_share(f, 0, (uint64_t)a) * matching;
        const double bytes = (double)plan.bits / 8;
        const double sd = others * row *
                          figure_rate_sd(plan.fpr, a, (double)plan.bits,
                                         round(c * log(2)), others, 1);
        figure_judge(run, s, c, bytes + (matching + plan.fpr * others) * row,
                     bytes + passed * row, sd);
        figure_point(run, all, c, b * row, b * row, b * row, b * row);
        bly_free(f);
    }
    figure_note(run, "10 bits per key: 12.5 kB and 18 thousand rows, 1.82 MB "
                     "instead of 100 MB for a million rows of 100 bytes.");
}

const struct figure figure_joins = {
    .name = "join-volume",
    .title = "A join across a network, with the filter sent first",
    .source = "Bloom joins: Mackert and Lohman 1986; bytes = filter + "
              "(matching + f others) rows.",
    .about = "10 thousand keys here, a million rows of 100 bytes there, of "
             "which 1 % match. The filter of the keys is sent, and the rows "
             "that pass come back: at 10 bits per key a fiftieth of the bytes. "
             "bloomery join --remote does it.",
    .run = joins_run,
};

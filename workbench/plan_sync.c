/*
 * plan_sync.c - how many symbols and bytes it takes to compare two sets
 *
 * There is no formula for the percentiles: decoding starts with one cell that
 * holds a single element, and if few elements differ, luck decides. The table
 * is measured, with elements chosen at random, one symbol at a time up to 150
 * differences, in steps of 0.2 % to 5,000 and of 0.05 % from there on: 20,000
 * runs at the top, 2,000 from 1,000 to 10,000 differences, 1,000 at 30,000 and
 * at 100,000. At a million there were 60, and what 99 of 100 need is what the
 * worst of these did; it is also what follows from the row before, since
 * percentiles come nearer to the mean as the root of the number of differences.
 * Between rows, values are interpolated by the logarithm of that number. A
 * percentile is rounded up to a whole symbol. The figure symbols-per-difference
 * holds them against other runs.
 */
#include "workbench/plan_sync.h"

#include <math.h>
#include <stdio.h>

#include "report/say.h"

#define SYNC_ELEMENT 8
#define SYNC_CHECK 4
#define SYNC_GREETING 60       /* bytes of both greetings, and frames */
#define SYNC_STRATA_BYTES 5100 /* asked for where 32 symbols are not enough */
#define SYNC_FIRST 32

/* Symbols per difference: mean, median, and what 95 and 99 of 100 runs need. */
static const struct symbols {
    double differences, mean, p50, p95, p99;
} measured[] = {
    { 1, 1.000, 1.000, 1.000, 1.000 },
    { 2, 1.600, 1.500, 3.500, 5.500 },
    { 3, 1.607, 1.333, 3.333, 5.000 },
    { 4, 1.581, 1.250, 3.000, 4.750 },
    { 5, 1.552, 1.400, 2.800, 4.400 },
    { 6, 1.526, 1.333, 2.667, 4.167 },
    { 8, 1.488, 1.375, 2.375, 3.625 },
    { 10, 1.470, 1.400, 2.200, 3.200 },
    { 15, 1.449, 1.400, 2.000, 2.800 },
    { 20, 1.442, 1.400, 1.900, 2.450 },
    { 30, 1.438, 1.400, 1.800, 2.133 },
    { 50, 1.473, 1.460, 1.780, 2.040 },
    { 70, 1.468, 1.457, 1.700, 1.857 },
    { 100, 1.446, 1.440, 1.630, 1.730 },
    { 150, 1.423, 1.413, 1.567, 1.647 },
    { 200, 1.411, 1.405, 1.530, 1.590 },
    { 300, 1.400, 1.397, 1.497, 1.550 },
    { 500, 1.387, 1.388, 1.460, 1.500 },
    { 1000, 1.376, 1.374, 1.428, 1.449 },
    { 2000, 1.368, 1.367, 1.406, 1.421 },
    { 5000, 1.361, 1.361, 1.385, 1.397 },
    { 10000, 1.358, 1.358, 1.376, 1.382 },
    { 30000, 1.356, 1.356, 1.366, 1.371 },
    { 100000, 1.354, 1.355, 1.360, 1.362 },
    { 1000000, 1.354, 1.354, 1.356, 1.356 },
};
#define NMEASURED (sizeof measured / sizeof *measured)

struct plan_of_symbols {
    uint64_t differences;
    double mean;
    uint64_t p50, p95, p99;           /* symbols */
    uint64_t bytes, bytes95, bytes99; /* of the comparison */
};

struct plan_of_sync {
    uint64_t items;
    struct plan_of_symbols rows[16];
    size_t n;
};

static const struct field symbols_fields[] = {
    FIELD(struct plan_of_symbols, differences, NONE,
          "elements that only one side has"),
    FIELD(struct plan_of_symbols, mean, NONE, "symbols for each, on average"),
    FIELD(struct plan_of_symbols, p50, NONE,
          "symbols that half of all runs need"),
    FIELD(struct plan_of_symbols, p95, NONE,
          "symbols that 95 of 100 runs need"),
    FIELD(struct plan_of_symbols, p99, NONE,
          "symbols that 99 of 100 runs need"),
    FIELD(struct plan_of_symbols, bytes, BYTES,
          "that bloomery sync sends both ways to compare, in half of all runs"),
    FIELD(struct plan_of_symbols, bytes95, BYTES, "in 95 of 100"),
    FIELD(struct plan_of_symbols, bytes99, BYTES, "in 99 of 100"),
    { 0 },
};

const struct field plan_sync_fields[] = {
    FIELD(struct plan_of_sync, items, NONE, "elements of either side"),
    LIST(struct plan_of_sync, "rows", rows, n, NONE, symbols_fields,
         "a row for each number of differences"),
    { 0 },
};

static double between(double low, double high, double share)
{
    return low + share * (high - low);
}

static struct symbols symbols_for(double d)
{
    size_t i = 0;
    while (i + 2 < NMEASURED && measured[i + 1].differences <= d)
        i++;
    const struct symbols *const a = &measured[i], *const b = a + 1;
    double share =
        log(d / a->differences) / log(b->differences / a->differences);
    share = share > 1 ? 1 : share;
    return (struct symbols){ d, between(a->mean, b->mean, share),
                             between(a->p50, b->p50, share),
                             between(a->p95, b->p95, share),
                             between(a->p99, b->p99, share) };
}

/* Bytes of a count: how far cell i is from the 2n / (i + 3) it holds on average
 * has a deviation of the root of that, and is written in 7 bits per byte. */
static double count_bytes(double n, double i)
{
    const double bits = log2(2 * sqrt(2 * n / (i + 3)) + 1) + 1;
    return bits <= 7 ? 1 : bits <= 14 ? 2 : 3;
}

static uint64_t bytes_for(double symbols, double n)
{
    double bytes = SYNC_GREETING;
    /* Cells a quarter, and three quarters, of the way. */
    const double each = SYNC_ELEMENT + SYNC_CHECK +
                        0.5 * count_bytes(n, symbols / 4) +
                        0.5 * count_bytes(n, symbols * 3 / 4);
    if (symbols <= SYNC_FIRST)
        return (uint64_t)(bytes + SYNC_FIRST * each);
    /* They are asked for in steps of a twelfth, half of which is too much. */
    bytes += SYNC_STRATA_BYTES + symbols * (1 + 1 / 24.0) * each;
    return (uint64_t)bytes;
}

static struct plan_of_symbols plan_row_for(uint64_t d, uint64_t items)
{
    const struct symbols s = symbols_for((double)d);
    const double n = (double)items, m = (double)d;
    struct plan_of_symbols row = { .differences = d, .mean = s.mean };
    row.p50 = (uint64_t)ceil(s.p50 * m - 1e-6);
    row.p95 = (uint64_t)ceil(s.p95 * m - 1e-6);
    row.p99 = (uint64_t)ceil(s.p99 * m - 1e-6);
    row.bytes = bytes_for((double)row.p50, n);
    row.bytes95 = bytes_for((double)row.p95, n);
    row.bytes99 = bytes_for((double)row.p99, n);
    return row;
}

void plan_symbols(uint64_t differences, uint64_t *p95, uint64_t *p99)
{
    const struct plan_of_symbols row = plan_row_for(differences, 1000000);
    *p95 = row.p95;
    *p99 = row.p99;
}

int plan_sync(uint64_t differences, uint64_t items, bool json)
{
    static const uint64_t usual[] = { 1,    2,     5,      10,     100,
                                      1000, 10000, 100000, 1000000 };
    struct plan_of_sync plan = { .items = items ? items : 1000000 };
    if (differences > 1000000)
        return fail("--differences: at most 1000000; beyond, it takes 1.35 "
                    "symbols for each");
    if (differences)
        plan.rows[plan.n++] = plan_row_for(differences, plan.items);
    else
        for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
            plan.rows[plan.n++] = plan_row_for(usual[i], plan.items);
    if (json) {
        report(stdout, true, plan_sync_fields, &plan, NULL);
        return YES;
    }
    report_text(stdout, plan_sync_fields, &plan,
                "two sides with {items} elements each\n\n");
    printf("%11s  %7s  %26s  %s\n%11s  %7s  %8s %8s %8s  %9s %9s %9s\n", "",
           "symbols", "symbols that suffice", "bytes of bloomery sync",
           "differences", "each", "50 %", "95 %", "99 %", "50 %", "95 %",
           "99 %");
    for (size_t i = 0; i < plan.n; i++)
        report_text(stdout, symbols_fields, &plan.rows[i],
                    "{differences:11}  {mean:7.3}  {p50:8} {p95:8} {p99:8}  "
                    "{bytes:9} {bytes95:9} {bytes99:9}\n");
    puts("\nThe list of all elements takes 8 bytes for each. Lines and files "
         "themselves come on top.");
    return YES;
}

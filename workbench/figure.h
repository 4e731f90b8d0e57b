/*
 * figure.h - experiments: what is expected, what a real run gives
 *
 * A figure is a row in the table below: its name, what it redraws, a few
 * sentences, and a function that runs the library and notes points. A point
 * has an x, the value that is expected there, the value that was measured and
 * the band in which it was accepted; what is missing is NAN. A point that has
 * both a value and a band is judged: outside the band the figure has failed,
 * and so has the command.
 *
 *     static void halves_run(struct figure_run *run)
 *     {
 *         run->x = AXIS(.label = "probes", .unit = "k");
 *         run->y = AXIS(.label = "rate", .scale = PLOT_LOG);
 *         struct figure_series *s = figure_series(run, "classic");
 *         for (unsigned k = 1; k < 10; k++)
 *             figure_judge(run, s, k, expected(k), measured(k), sd(k));
 *     }
 *
 * The picture follows from the points: what is expected is a dashed line, what
 * was measured stands on it as markers of the same colour. Where there is no
 * curve to see (two cases that are compared, or values that are all 1), a
 * figure is tabled instead.
 *
 * Adding a figure: a function and a row `const struct figure figure_NAME` in a
 * figure_*.c, and X(NAME) below. Everything random comes from run->seed, so
 * that a run can be repeated; times cannot, so that of these only order and
 * shape may be judged, never nanoseconds.
 */
#ifndef BLY_FIGURE_H
#define BLY_FIGURE_H

#include "report/fields.h"
#include "workbench/plot.h"

#define FIGURES(X)     \
    X(slides)          \
    X(course)          \
    X(counters)        \
    X(time_add)        \
    X(time_ask)        \
    X(rate_k)          \
    X(rate_bits)       \
    X(fpr)             \
    X(halves)          \
    X(zeros)           \
    X(memory)          \
    X(floom_1_8)       \
    X(floom_1_12)      \
    X(floom_1_16)      \
    X(floom_5_8)       \
    X(floom_5_12)      \
    X(floom_5_16)      \
    X(floom_replay)    \
    X(floom_time_1_8)  \
    X(floom_time_1_12) \
    X(floom_time_1_16) \
    X(floom_time_5_8)  \
    X(floom_time_5_12) \
    X(floom_time_5_16) \
    X(overflow)        \
    X(deletable)       \
    X(growth)          \
    X(increments)      \
    X(cuckoo)          \
    X(spectral)        \
    X(countmin)        \
    X(spacecode)       \
    X(sent)            \
    X(fuse)            \
    X(bits_rate)       \
    X(past_capacity)   \
    X(family_add)      \
    X(family_ask)      \
    X(near)            \
    X(near_families)   \
    X(near_measures)   \
    X(urls)            \
    X(passwords)       \
    X(sealed)          \
    X(spell)           \
    X(index)           \
    X(ranges)          \
    X(flows)           \
    X(flow_counts)     \
    X(block)           \
    X(ids)             \
    X(spie)            \
    X(sfb)             \
    X(three_tables)    \
    X(tables)          \
    X(differential)    \
    X(joins)           \
    X(reconcile)       \
    X(sync)            \
    X(summary)         \
    X(tree)            \
    X(isect)           \
    X(chord_hops)      \
    X(chord_loads)     \
    X(chord_fullest)   \
    X(chord_joins)     \
    X(chord_deaths)    \
    X(chord_churn)     \
    X(chord_schedules) \
    X(place_moved)     \
    X(place_points)    \
    X(net_loop)        \
    X(net_way)         \
    X(net_multicast)   \
    X(net_near)        \
    X(net_finding)     \
    X(net_gossip)

struct figure_run;

struct figure {
    const char *name;   /* "rate-against-k": of its files too */
    const char *title;  /* of the picture */
    const char *source; /* what it redraws, or where the formula stands */
    const char *about;  /* what one sees, for docs/figures/index.md */
    bool machine;       /* it measures time or malloc: no two runs agree */
    bool tabled; /* a few values, which the page has as a table: no SVG */
    void (*run)(struct figure_run *run);

    /* Draw another picture than that of the points; false after a message.
     * NULL: that of the points. */
    bool (*draw)(const struct figure_run *run, const char *path);
};

#define FIGURE_DECLARE_(name) extern const struct figure figure_##name;
FIGURES(FIGURE_DECLARE_)
#undef FIGURE_DECLARE_

/* ---------------------------------------------------------------- points */

struct figure_point {
    double x, expected, measured, low, high;
};

/* One curve. Set what the picture needs between figure_series() and the end
 * of the run; zero means "as usual". */
struct figure_series {
    char name[64];
    enum plot_style style; /* of what was measured; PLOT_LINE: as usual */
    unsigned color;        /* to share one: 1 to PLOT_NCOLORS */
    bool unseen;           /* in the table and not in the picture */
    const char *panel;     /* of the picture; NULL: in all of them */
    struct figure_point *points;
    size_t npoints, room;
};

#define FIGURE_MAX_SERIES 80 /* two a kind, and a few */

struct figure_run {
    const struct figure *figure;
    bool full;     /* take the time that good values need */
    uint64_t seed; /* of everything random */

    /* To be filled in by the figure. */
    struct plot_axis x, y;
    struct plot_reference references[8];
    size_t nreferences;
    char subtitle[200];

    struct figure_series series[FIGURE_MAX_SERIES];
    size_t nseries;
    char *notes; /* lines to print below the table; NULL: none */
    size_t njudged, nfailed;
    bool broken; /* the run could not be made: an error was told */
};

/* A filter's shape and an axis, of these members; the axis of rates. */
#define SPEC(...) ((bly_spec){ __VA_ARGS__ })
#define AXIS(...) ((struct plot_axis){ __VA_ARGS__ })
#define FIGURE_RATES                                        \
    AXIS(.label = "false positive rate", .scale = PLOT_LOG, \
         .format = PLOT_PERCENT)

/* A new curve, printf-like name; the pointer holds until the end of the run. */
__attribute__((format(printf, 2, 3))) struct figure_series *
figure_series(struct figure_run *run, const char *name, ...);

/* A point as it is; any of the values may be NAN. */
void figure_point(struct figure_run *run, struct figure_series *s, double x,
                  double expected, double measured, double low, double high);

/* A point that must lie within 4 deviations of what is expected. */
void figure_judge(struct figure_run *run, struct figure_series *s, double x,
                  double expected, double measured, double sd);

/* A line under the table, and in the page of figures. */
__attribute__((format(printf, 2, 3))) void figure_note(struct figure_run *run,
                                                       const char *format, ...);

/* ------------------------------------------------------- what they share */

/* Deviation of a rate that was measured with nqueries on each of nfilters
 * filters of m cells with k probes and n keys: few queries, and the chance of
 * how full a filter became. m may be INFINITY: then only the queries count. */
double figure_rate_sd(double rate, double n, double m, double k,
                      double nqueries, double nfilters);

/* A filter, or NULL, and run->broken with a line on standard error. options is
 * "name=value name=value", or NULL. */
bly_filter *figure_filter(struct figure_run *run, const bly_spec *spec,
                          const char *options);

/* The same built from the keys first .. first + n - 1, for kinds of all sorts:
 * its capacity is n unless spec says more. */
bly_filter *figure_built(struct figure_run *run, const bly_spec *spec,
                         const char *options, uint64_t first, uint64_t n);

/* Add the keys first .. first + n - 1; false, and run->broken, on failure. */
bool figure_add(struct figure_run *run, bly_filter *f, uint64_t first,
                uint64_t n);

/* The share of the keys first .. first + n - 1 that f says maybe to. Keys from
 * FIGURE_ABSENT on are never added. */
#define FIGURE_ABSENT (UINT64_C(1) << 62)
double figure_share(const bly_filter *f, uint64_t first, uint64_t n);

/* Of how many rounds the best is taken, so that a busy machine does not bend a
 * line. */
#define FIGURE_ROUNDS 20

/* --------------------------------------------------------------- results */

/* Every value as a table of Markdown. */
void figure_page_table(FILE *to, const struct figure_run *run);

/* Run one, print its table (or an object), and write its files into folder
 * unless that is NULL. False where a file could not be written or the run
 * failed; run holds the points until figure_free(). */
extern const struct field figure_fields[], drawn_fields[];
bool figure_show(struct figure_run *run, const char *folder, struct json *j);
void figure_free(struct figure_run *run);

#endif

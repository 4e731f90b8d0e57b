/*
 * plot.h - curves and bars as SVG, and arrays step by step
 *
 * Fill a struct plot, call plot_save() or plot_write(). Zero in any field
 * means "choose for me", so a small picture is a small initializer:
 *
 *     struct plot_point pts[] = { { 1e-1, 4.8 }, { 1e-2, 9.6 } };
 *     struct plot_series s[] = {
 *         { .name = "classic", .points = pts, .npoints = 2 },
 *     };
 *     struct plot p = {
 *         .title = "Memory against rate",
 *         .x = { .label = "false positive rate", .scale = PLOT_LOG },
 *         .y = { .label = "memory", .unit = "bits per key" },
 *         .series = s, .nseries = 1,
 *     };
 *     if (!plot_save(&p, "out.svg"))
 *         ... errno says why ...
 *
 * The same struct gives the same bytes, whatever the locale. All strings are
 * UTF-8, borrowed for the call, and escaped; NULL is an empty string.
 *
 * Nobody can tell more than eight curves apart: if there are more, or if series
 * name panels, the picture is divided into several, one below the other, with
 * the same axes. Dashed is what a formula says, never anything else, and a
 * picture with dashes says so.
 */
#ifndef BLY_PLOT_H
#define BLY_PLOT_H

#include <bloomery.h>

enum plot_scale {
    PLOT_LINEAR,
    PLOT_LOG, /* what is not above zero is left out */
};

/* How tick labels and tooltips print a value. */
enum plot_format {
    PLOT_PLAIN,   /* 0.25, 1500; powers of ten on a wide log axis */
    PLOT_SI,      /* 1.5k, 20M, 3G; 5m, 20n below one; 10,000 on log axes */
    PLOT_PERCENT, /* 0.01 prints as 1% */
    PLOT_BYTES,   /* 512 B, 64 KiB, 2 GiB; ticks at powers of two */
    /* An axis has one prefix, whatever the format. */
};

struct plot_axis {
    const char *label;
    const char *unit; /* printed after the label in parentheses */
    enum plot_scale scale;
    enum plot_format format;

    /* The ends of the axis. NAN is automatic; so are both when they are
     * equal, hence when left zero; and so is one that was left zero while the
     * other lies beyond it: .min = 1 alone is a floor, .max = -1 a ceiling. A
     * fixed end cuts what lies beyond. */
    double min, max;

    bool reversed; /* the larger values left, or at the bottom */

    /* x axis only: names for x = 0, 1, 2, ... in place of numbers, for bars
     * of things. The scale is then linear. */
    const char *const *categories;
    size_t ncategories;
};

/* A point that is not finite breaks the line. Errors are distances from y,
 * not positions: 0 or NAN is no bar on that side. */
struct plot_point {
    double x, y;
    double err_low, err_high;
};

enum plot_style {
    PLOT_LINE,
    PLOT_POINTS,
    PLOT_BOTH,
    PLOT_STEPS, /* each y holds until the next x */
    PLOT_BARS,  /* series of bars at one x stand side by side */
    PLOT_BAND,  /* filled from y - err_low to y + err_high, behind the rest */
};

enum plot_dash {
    PLOT_DASH_AUTO, /* solid */
    PLOT_SOLID,
    PLOT_DASHED, /* what is expected, and only that */
    PLOT_DOTTED,
};

enum plot_marker {
    PLOT_MARKER_AUTO,
    PLOT_CIRCLE,
    PLOT_SQUARE,
    PLOT_TRIANGLE,
    PLOT_DIAMOND,
    PLOT_CROSS,
    PLOT_PLUS,
    PLOT_TRIANGLE_DOWN,
    PLOT_RING,
};

struct plot_series {
    const char *name; /* NULL or "": not in the legend */
    const struct plot_point *points;
    size_t npoints;

    /* What a formula says of the same: dashed, in the same colour. */
    const struct plot_point *expected;
    size_t nexpected;

    const char *panel; /* in the panel of this name; NULL: in all */
    enum plot_style style;
    enum plot_dash dash;
    enum plot_marker marker;

    /* 0 takes the next colour; 1 .. PLOT_NCOLORS names one, so that a
     * measured series and the expected one can share it. */
    unsigned color;
};

#define PLOT_NCOLORS 8
#define PLOT_MAX_SERIES 8 /* in one panel */

/* The panel of a kind, by what it can do; NULL, which is all of them, for
 * classic, the yardstick. */
const char *plot_kind_panel(const bly_kind_info *kind);

/* A thin line across the picture at one value of an axis. */
struct plot_reference {
    bool vertical; /* at an x; otherwise at a y */
    double at;
    const char *label; /* NULL: none */
};

struct plot {
    const char *title;
    const char *subtitle; /* under the title */
    const char *caption;  /* small, at the foot */
    struct plot_axis x, y;
    const struct plot_series *series;
    size_t nseries;
    const struct plot_reference *references;
    size_t nreferences;
};

/* Takes n bytes; false stops the writing. */
typedef bool plot_put(void *ctx, const char *bytes, size_t n);

/* Write p as one SVG document through put. False if put said so, or with
 * errno ENOMEM. */
bool plot_write(const struct plot *p, plot_put *put, void *ctx);

/* Write p to the file at path, so that a reader sees the old picture or the new
 * one. "-" is standard output. False if that fails, and plot_why() then says
 * why in one line that names the file; the old file is untouched. */
bool plot_save(const struct plot *p, const char *path);
const char *plot_why(void);

/* ------------------------------------------------------------- an array */

/* One row of the picture of an array: what was done, and what then was. */
struct plot_step {
    const char *label;  /* "add 4": left of the row; NULL: none */
    const char *result; /* "maybe": right of it; NULL: none */

    const unsigned *cells; /* what the ncells cells hold after the step */

    /* The cells that the hash functions h1, h2, ... named; past the end are
     * left out. Those whose value the step has changed are filled, and of
     * the others those that hold zero are marked: they prove absence. */
    const size_t *touched;
    size_t ntouched;
};

struct plot_array {
    const char *title, *subtitle, *caption; /* as in struct plot */
    size_t ncells;
    const struct plot_step *steps;
    size_t nsteps;
};

/* As plot_write() and plot_save(). */
bool plot_array_write(const struct plot_array *a, plot_put *put, void *ctx);
bool plot_array_save(const struct plot_array *a, const char *path);

#endif

/*
 * plot_axis.h - an axis: its ends, its ticks, its numbers
 */
#ifndef BLY_PLOT_AXIS_H
#define BLY_PLOT_AXIS_H

#include "workbench/plot_svg.h"

#define AXIS_MAX_MAJOR 64
#define AXIS_MAX_MINOR 512
#define AXIS_LABEL 64 /* 16 digits, zeros, signs, a unit: 48 at most */

struct tick {
    double at;        /* coordinate */
    const char *name; /* of a category; NULL: text */
    char text[AXIS_LABEL];
};

struct axis {
    const struct plot_axis *want;
    double lo, hi;   /* coordinates of the ends, lo < hi */
    double from, to; /* where lo and hi lie in the picture */
    struct tick major[AXIS_MAX_MAJOR];
    size_t nmajor;
    double minor[AXIS_MAX_MINOR]; /* coordinates */
    size_t nminor;
    bool whole;     /* only whole numbers lie on it: no ticks between */
    unsigned slant; /* of the labels, in degrees: 0, 40 or 90 */
};

struct range {
    double lo, hi; /* lo > hi: empty */
};

/* The coordinate of a value; NAN if it has none. */
double axis_coordinate(const struct plot_axis *a, double v);

bool axis_is_log(const struct plot_axis *a);

/* Choose lo and hi: r is what the data need; ends that are free move out to
 * a tick, on the y axis always, on the x axis if one is near, since there a
 * line should end at the edge where its name stands. */
void axis_set_ends(struct axis *a, struct range r, bool is_x);

/* Fill the ticks for the place that the axis now has (from, to). */
void axis_set_ticks(struct axis *a, bool is_x);

/* Where a coordinate lies in the picture; NAN for NAN, and never far off. */
double axis_place(const struct axis *a, double c);

/* Is c between the ends? */
bool axis_within(const struct axis *a, double c);

const char *axis_tick_name(const struct tick *t);

/* The label of t, cut to a width if it is a name. */
void axis_draw_tick(struct svg *o, const struct tick *t, double width);

/* "label (unit)" in buf, or the one of them that there is. Returns buf. */
const char *axis_title(const struct plot_axis *a, char *buf, size_t n);

enum axis_form {
    AXIS_POSITIONAL, /* 0.00002 */
    AXIS_POWERS,     /* 2x10^-5, raised */
    AXIS_COMPUTER,   /* 2e-5, for tooltips, where nothing can be raised */
};

/* v as the axis prints it, in at most sig digits; out has AXIS_LABEL bytes.
 * The prefix of units is the one that suits like: v itself, or the largest
 * value of an axis, so that all ticks agree. */
void axis_value_text(char *out, enum plot_format format, double v, double like,
                     int sig, enum axis_form form);

#endif

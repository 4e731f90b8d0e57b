/*
 * plot_layout.h - where everything in a picture goes
 */
#ifndef BLY_PLOT_LAYOUT_H
#define BLY_PLOT_LAYOUT_H

#include "workbench/plot_axis.h"

#define PLOT_HEIGHT 500.0      /* or more, for a long legend */
#define PLOT_PANEL 360.0       /* the same of one panel of several */
#define PLOT_ROW 16.0          /* height of 12 px text in legend and labels */
#define PLOT_SWATCH 30.0       /* a legend's sample and the gap after it */
#define PLOT_MAX_SLANTED 150.0 /* longer names of categories are cut */
#define PLOT_EXPECTED "expected"
#define PLOT_MEASURED "measured"

/* What a series looks like, all choices made. */
struct look {
    unsigned color;          /* 0 .. PLOT_NCOLORS - 1 */
    unsigned round;          /* how many bar series had this colour before */
    enum plot_dash dash;     /* not AUTO */
    enum plot_marker marker; /* not AUTO */
    bool line, markers;
    double gap;          /* markers on a line stand at least so far apart */
    double shift, width; /* of bars: from x to the middle; how wide */
};

/* A name in the legend or at the end of its line. */
struct label {
    const char *name;
    const struct plot_series *series; /* NULL: a horizontal reference line */
    const struct look *look;
    double x, y; /* the end of the line */
    double at;   /* where the name stands */
};

enum naming {
    NAMES_DIRECT, /* at the ends of lines */
    NAMES_RIGHT,  /* a legend right of the plot */
    NAMES_BELOW,  /* a legend below it */
};

/* A label above the plot, of a vertical line. */
struct plot_mark {
    const char *name;
    double at; /* in the picture */
    unsigned row;
    double room; /* for the name */
};

struct picture {
    const struct plot *plot;
    struct svg *svg;
    struct axis x, y;
    struct look *looks;   /* one a series */
    struct label *labels; /* named series, then named horizontal lines */
    size_t nlabels;
    enum naming naming;
    size_t columns, rows; /* of the legend */
    double row_height;
    double column_width;
    struct plot_mark *marks;
    size_t nmarks;
    unsigned nmark_rows;
    int mark_side; /* labels right (1) or left (-1) of their lines */
    double left, right, top, bottom, height;
    double x_room;  /* height of the x tick labels */
    double bar_gap; /* coordinates from one group of bars to the next */
    double least;   /* height, unless it needs more */
    bool tooltips;

    /* The key, "- - expected  o measured", right of the name of the y axis or
     * in a row of its own: its width, 0 if nothing is expected, and whether
     * anything was measured. */
    double key;
    bool measured, bars;
};

/* Lay plot out; p keeps pointing to it. Its axes are those of `all`, a picture
 * that plot_survey() has looked at, unless that is NULL. False with errno
 * ENOMEM; p is to be freed all the same. */
bool plot_layout(struct picture *p, const struct plot *plot,
                 const struct picture *all);
void plot_layout_free(struct picture *p);

/* Only find the ends of the axes; nothing to be freed. */
bool plot_survey(struct picture *p, const struct plot *plot);

/* A plot as panels of at most PLOT_MAX_SERIES, each a plot whose title is the
 * name of the panel; npanels 1: as it was. */
struct panels {
    struct plot *plots;
    struct plot_series *series; /* of all */
    char (*names)[80];
    size_t n;
};

/* False with errno ENOMEM. */
bool plot_divide(const struct plot *plot, struct panels *out);
void plot_divide_free(struct panels *p);

/* Where a point lies in the picture. False: nowhere. */
bool plot_locate(const struct picture *p, const struct plot_point *t, double *x,
                 double *y);

/* Is there anything in this string? */
bool plot_named(const char *name);

#endif

/*
 * plot_svg.h - SVG out: the style, text measured and escaped, numbers
 */
#ifndef BLY_PLOT_SVG_H
#define BLY_PLOT_SVG_H

#include "workbench/plot.h"

#define SVG_WIDTH 800.0 /* of every picture */
#define SVG_MARGIN 16.0

/* Set put, ctx and ok = true; write; flush. ok is false from the first put
 * that failed on, and nothing more is put. */
struct svg {
    plot_put *put;
    void *ctx;
    bool ok;
    size_t used;
    char buf[4096];
};

/* Start a picture: title and style, and the paper. */
void svg_head(struct svg *o, const char *title, double width, double height);

/* Write what is still in buf. */
void svg_flush(struct svg *o);

/* The text from s to end, escaped; end NULL: all of it; s NULL: nothing. */
void svg_text(struct svg *o, const char *s, const char *end);

/* s, or as much of it as fits into a width, with an ellipsis. */
void svg_fitted(struct svg *o, const char *s, double size, double width);

/* Like printf, with %s text to be escaped, %n a length (a double, written to
 * hundredths and with '.' in every locale), %u an unsigned, and nothing
 * else. */
void svg(struct svg *o, const char *format, ...);

/* Stands before and after what is raised in the text of a tick: it is then
 * smaller. */
#define SVG_RAISED '\001'

/* Width of the text from s to end (NULL: to its NUL) at a font size. */
double svg_text_width(const char *s, const char *end, double size);

/* Text that is broken into lines across the picture, from y down. Draws it
 * unless o is NULL, and returns the height that it takes. */
enum svg_part { SVG_TITLE, SVG_SUBTITLE, SVG_CAPTION };
double svg_paragraph(struct svg *o, enum svg_part part, const char *s,
                     double y);

/* Title and subtitle at the top; returns where they end. */
double svg_titles(struct svg *o, const char *title, const char *subtitle);

/* What plot_save() does, for any picture. */
typedef bool plot_writer(const void *what, plot_put *put, void *ctx);
bool plot_to_file(plot_writer *write, const void *what, const char *path);

#endif

/*
 * plot_axis.c - an axis: its ends, its ticks, its numbers
 *
 * A value v is placed by its coordinate: v itself on a linear axis, log10 v
 * on a log axis. Ends, padding and clipping are done on coordinates and know
 * nothing of scales. NAN is "cannot be placed".
 *
 * Ticks stand at multiples of 1, 2 or 5 times a power of ten, on log axes at
 * powers of ten with 2 to 9 times these between them, for bytes at powers of
 * two. They start dense and are thinned until no label touches the next.
 * A log axis of less than a decade has too few powers and gets linear ticks.
 *
 * Values from 0.0021 to 0.0479 on a y axis: it starts at 0, since less than
 * half of it is then empty; an eighth of it is 0.006, the next step is 0.01,
 * so it ends at 0.05.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workbench/plot_axis.h"

/* Farther out is drawn here, and nothing narrower is, so that no sum overflows
 * and no step underflows. */
#define HUGE_VALUE 1e300
#define SMALL_SPAN 1e-290

/* ----------------------------------------------------------------- numbers */

#define MINUS "\xe2\x88\x92"
#define TIMES "\xc3\x97"
#define INFINITE "\xe2\x88\x9e"
/* The digits of v, at most sig of them, and its decimal exponent:
 * 0.0125 gives "125" and -2. The locale's decimal point is skipped, whatever
 * it is. Zero gives "0". */
static int split(double v, int sig, char digits[20])
{
    char e[40];
    int n = 0;
    const char *s = e;

    snprintf(e, sizeof e, "%.*e", sig - 1, fabs(v));
    for (; *s && *s != 'e'; s++)
        if (*s >= '0' && *s <= '9' && n < 19)
            digits[n++] = *s;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return *s ? atoi(s + 1) : 0;
}

/* v in at most sig digits, without trailing zeros. */
static void number_text(char *out, double v, int sig, enum axis_form form)
{
    char d[20];
    const int e = split(v, sig, d), n = (int)strlen(d);
    size_t at = 0;

    if (v < 0 && strcmp(d, "0") != 0)
        at += (size_t)snprintf(out, AXIS_LABEL, "%s", MINUS);
    if (form == AXIS_COMPUTER && e >= -5 && e < 9)
        form = AXIS_POSITIONAL;
    if ((form == AXIS_POWERS && e >= -3 && e <= 3) || strcmp(d, "0") == 0)
        form = AXIS_POSITIONAL;
    if (form == AXIS_POSITIONAL) {
        if (e < 0) {
            out[at++] = '0';
            out[at++] = '.';
            for (int i = -1; i > e && at < AXIS_LABEL / 2; i--)
                out[at++] = '0';
        }
        for (int i = 0; (i < n || i <= e) && at < AXIS_LABEL - 8; i++) {
            if (i == e + 1 && e >= 0)
                out[at++] = '.';
            out[at++] = i < n ? d[i] : '0';
        }
        out[at] = '\0';
        return;
    }
    if (form == AXIS_COMPUTER || strcmp(d, "1") != 0) {
        out[at++] = d[0];
        if (n > 1)
            out[at++] = '.';
        for (int i = 1; i < n; i++)
            out[at++] = d[i];
        if (form == AXIS_POWERS)
            at += (size_t)snprintf(out + at, AXIS_LABEL - at, "%s", TIMES);
    }
    if (form == AXIS_POWERS)
        snprintf(out + at, AXIS_LABEL - at, "10%c%s%d", SVG_RAISED,
                 e < 0 ? MINUS : "", abs(e));
    else
        snprintf(out + at, AXIS_LABEL - at, "e%d", e);
}

void axis_value_text(char *out, enum plot_format format, double v, double like,
                     int sig, enum axis_form form)
{
    static const char *const si[] = { "f", "p", "n", "\xc2\xb5", "m", "",
                                      "k", "M", "G", "T",        "P", "E" };
    static const char *const iec[] = { "B",   "KiB", "MiB", "GiB",
                                       "TiB", "PiB", "EiB" };
    char digits[20];
    int e;

    if (!isfinite(v)) { /* an error without end, in a tooltip */
        strcpy(out, isnan(v) ? "?" : v < 0 ? MINUS INFINITE : INFINITE);
        return;
    }
    switch (format) {
    case PLOT_SI:
        e = (int)floor(split(like, sig, digits) / 3.0);
        if (v == 0 || e < -5 || e > 6)
            break;
        number_text(out, v * pow(10, -3 * e), sig, AXIS_POSITIONAL);
        strcat(out, si[e + 5]);
        return;
    case PLOT_BYTES:
        e = like == 0 ? 0 : (int)floor(log2(fabs(like)) / 10 + 1e-9);
        e = e < 0 ? 0 : e > 6 ? 6 : e;
        if (v == 0)
            break;
        v = ldexp(v, -10 * e);
        if (fabs(v) >= 1e6 || fabs(v) < 1e-3)
            form = AXIS_COMPUTER; /* past the units: 1e30 EiB */
        number_text(out, v, sig, form == AXIS_POWERS ? AXIS_POSITIONAL : form);
        strcat(strcat(out, " "), iec[e]);
        return;
    case PLOT_PERCENT:
        number_text(out, v * 100, sig, form);
        strcat(out, strchr(out, SVG_RAISED) ? "\001%" : "%");
        return;
    case PLOT_PLAIN:
        break;
    }
    number_text(out, v, sig, form);
}

/* -------------------------------------------------------------------- axes */

bool axis_is_log(const struct plot_axis *a)
{
    return a->scale == PLOT_LOG && a->ncategories == 0;
}

double axis_coordinate(const struct plot_axis *a, double v)
{
    if (!isfinite(v) || (axis_is_log(a) && v <= 0))
        return NAN;
    if (axis_is_log(a))
        return log10(fmax(1 / HUGE_VALUE, fmin(HUGE_VALUE, v)));
    return fmax(-HUGE_VALUE, fmin(HUGE_VALUE, v));
}

/* The ends that the caller fixed, as coordinates; NAN where automatic. */
static struct range fixed_ends(const struct plot_axis *a)
{
    double min = a->min, max = a->max;

    if (min == max)
        min = max = NAN;
    if (min > max && max == 0) {
        max = NAN;
    } else if (min > max && min == 0) {
        min = NAN;
    } else if (min > max) {
        min = a->max;
        max = a->min;
    }
    return (struct range){ axis_coordinate(a, min), axis_coordinate(a, max) };
}

double axis_place(const struct axis *a, double c)
{
    const double at =
        a->from + (c - a->lo) / (a->hi - a->lo) * (a->to - a->from);
    return isnan(c) ? NAN : fmax(-1e5, fmin(1e5, at));
}

bool axis_within(const struct axis *a, double c)
{
    const double slack = 1e-9 * (a->hi - a->lo);
    return c >= a->lo - slack && c <= a->hi + slack;
}

/* Steps between ticks, numbered: ..., 0.5, 1, 2, 5, 10, ... with 1 at 0; of
 * bytes the powers of two. */
static double step_size(const struct plot_axis *a, int i)
{
    static const double mantissa[] = { 1, 2, 5 };
    const int e = (int)floor(i / 3.0);

    if (a->format == PLOT_BYTES)
        return ldexp(1, i);
    return mantissa[i - 3 * e] * pow(10, e);
}

/* The number of the first step that is not below least. */
static int first_step(const struct plot_axis *a, double least)
{
    int i = a->format == PLOT_BYTES ? (int)floor(log2(least)) - 1
                                    : 3 * (int)floor(log10(least)) - 1;

    while (step_size(a, i) < least * (1 - 1e-9))
        i++;
    return i;
}

void axis_set_ends(struct axis *a, struct range r, bool is_x)
{
    const struct plot_axis *w = a->want;
    const struct range fix = fixed_ends(w);
    const bool lo_free = isnan(fix.lo), hi_free = isnan(fix.hi);

    if (w->ncategories) {
        a->lo = -0.6;
        a->hi = (double)w->ncategories - 0.4;
        return;
    }
    if (r.lo > r.hi) {
        r.lo = !lo_free ? fix.lo : hi_free ? 0 : fix.hi - 1;
        r.hi = !hi_free ? fix.hi : r.lo + 1;
    }
    if (!is_x && !axis_is_log(w)) { /* zero is worth half a picture */
        if (lo_free && r.lo > 0 && r.lo < r.hi / 2)
            r.lo = 0;
        if (hi_free && r.hi < 0 && r.hi > r.lo / 2)
            r.hi = 0;
    }
    a->lo = lo_free ? r.lo : fix.lo;
    a->hi = hi_free ? r.hi : fix.hi;
    if (a->lo > a->hi) { /* a fixed end with all data beyond it */
        a->lo = lo_free ? a->hi : a->lo;
        a->hi = hi_free ? a->lo : a->hi;
    }
    const double size = fmax(fabs(a->lo), fabs(a->hi));
    if (a->hi - a->lo <= fmax(size * 1e-11, SMALL_SPAN)) {
        const double pad = axis_is_log(w)      ? 0.5
                           : size > SMALL_SPAN ? size / 10
                                               : 1;
        if (lo_free || !hi_free)
            a->lo -= pad;
        if (hi_free || !lo_free)
            a->hi += pad;
    }

    const double span = a->hi - a->lo;
    double lo, hi;
    if (axis_is_log(w) && w->format == PLOT_BYTES) {
        const double two = log10(2);
        lo = floor(a->lo / two + 1e-9) * two;
        hi = ceil(a->hi / two - 1e-9) * two;
    } else if (axis_is_log(w) && (is_x || span > 6)) {
        lo = floor(a->lo + 1e-9);
        hi = ceil(a->hi - 1e-9);
    } else if (axis_is_log(w)) { /* to one of 1, 2, .. 9 times a power of ten */
        const double p = pow(10, floor(a->lo)), q = pow(10, floor(a->hi));
        lo = log10(floor(pow(10, a->lo) / p + 1e-9) * p);
        hi = log10(ceil(pow(10, a->hi) / q - 1e-9) * q);
    } else {
        const double step = step_size(w, first_step(w, span / 8));
        lo = floor(a->lo / step + 1e-9) * step;
        hi = ceil(a->hi / step - 1e-9) * step;
    }
    const double reach = is_x ? 0.04 * span : INFINITY;
    if (lo_free && a->lo - lo <= reach && isfinite(lo))
        a->lo = fmin(lo, a->lo);
    if (hi_free && hi - a->hi <= reach && isfinite(hi))
        a->hi = fmax(hi, a->hi);
}

static void add_minor(struct axis *a, double c)
{
    if (a->nminor < AXIS_MAX_MINOR && axis_within(a, c))
        a->minor[a->nminor++] = c;
}

/* A labelled tick at the value v, c its coordinate. */
static void add_major(struct axis *a, double c, double v, double like, int sig,
                      enum axis_form form)
{
    if (a->nmajor == AXIS_MAX_MAJOR || !axis_within(a, c))
        return;
    struct tick *t = &a->major[a->nmajor++];
    t->at = c;
    t->name = NULL;
    const bool plain = a->want->format == PLOT_SI && axis_is_log(a->want);
    axis_value_text(t->text, plain ? PLOT_PLAIN : a->want->format, v, like, sig,
                    form);
}

/* Ticks at multiples of a step, on either scale. */
static void linear_ticks(struct axis *a, double spacing, int level)
{
    const bool log = axis_is_log(a->want);
    const double lo = log ? pow(10, a->lo) : a->lo;
    const double hi = log ? pow(10, a->hi) : a->hi;
    const double room = fabs(a->to - a->from) / spacing;
    const double least = (hi - lo) / fmax(room, 1);
    const int start = first_step(a->want, a->whole ? fmax(1, least) : least);
    const double step = step_size(a->want, start + level);
    const double most = fmax(fabs(lo), fabs(hi));
    const double first = ceil(lo / step - 1e-9);
    const double last = floor(hi / step + 1e-9);
    const int sig = (int)fmin(15, fmax(3, ceil(log10(most / step)) + 2));
    const double shown = a->want->format == PLOT_PERCENT ? most * 100 : most;
    const bool far = shown >= 1e6 || shown < 1e-3;
    const bool farther = shown >= 1e12 || shown < 1e-6; /* than many digits */
    const enum axis_form form =
        farther || (far && sig < 6) ? AXIS_POWERS : AXIS_POSITIONAL;

    for (double i = first; i <= last && a->nmajor < AXIS_MAX_MAJOR; i++) {
        const double v = i == 0 ? 0 : i * step;
        add_major(a, log ? log10(v) : v, v, most, sig, form);
    }
}

/* 10000000 as 10,000,000: whole numbers only. */
static void group_digits(char *text)
{
    size_t n = strspn(text, "0123456789");
    if (text[n])
        return;
    for (size_t at = n; at > 3; at -= 3) {
        memmove(text + at - 2, text + at - 3, n - at + 4);
        text[at - 3] = ',';
        n++;
    }
}

/* Ticks at powers of ten, or of two for bytes; level says how sparse. All have
 * one prefix: bytes that of the least, numbers none. */
static void log_ticks(struct axis *a, int level)
{
    static const int stride[] = { 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000 };
    const bool bytes = a->want->format == PLOT_BYTES;
    const double unit = bytes ? log10(2) : 1;
    const int lo = (int)floor(a->lo / unit + 1e-9);
    const int hi = (int)ceil(a->hi / unit - 1e-9);
    const bool fine = a->hi - a->lo < 2.5 && !bytes;
    const int every = stride[level - fine < 0    ? 0
                             : level - fine > 10 ? 10
                                                 : level - fine];
    const int shown = a->want->format == PLOT_PERCENT ? 2 : 0;
    const double decade = fabs(a->to - a->from) / (a->hi - a->lo);
    const bool si = a->want->format == PLOT_SI;
    const enum axis_form form = a->lo + shown < (shown ? -5.5 : -4.5) ||
                                        a->hi + shown > (si ? 8.5 : 5.5)
                                    ? AXIS_POWERS
                                    : AXIS_POSITIONAL;
    const double least = pow(10, a->lo + 1e-9);

    for (int e = lo; e <= hi; e++) {
        const double power = bytes ? ldexp(1, e) : pow(10, e);
        if (e % every == 0)
            add_major(a, e * unit, power, bytes ? least : power, 10, form);
        else if (decade * unit >= 5)
            add_minor(a, e * unit);
        for (int i = 2; i <= 9 && every == 1 && !bytes; i++) {
            const double c = e + log10(i);
            if (fine && level == 0 && (i == 2 || i == 5))
                add_major(a, c, i * power, i * power, 4, form);
            else if (decade >= 30)
                add_minor(a, c);
        }
    }
    for (size_t i = 0; i < a->nmajor && si; i++)
        group_digits(a->major[i].text);
}

const char *axis_tick_name(const struct tick *t)
{
    return t->name ? t->name : t->text;
}

void axis_draw_tick(struct svg *o, const struct tick *t, double width)
{
    const char *raised = t->name ? NULL : strchr(t->text, SVG_RAISED);

    if (t->name)
        svg_fitted(o, t->name, 12, width);
    else
        svg_text(o, t->text, raised);
    if (!raised)
        return;
    const char *lowered = strchr(++raised, SVG_RAISED);
    svg(o, "<tspan dy=\"-4\" font-size=\"9\">");
    svg_text(o, raised, lowered);
    svg(o, "</tspan>");
    if (lowered)
        svg(o, "<tspan dy=\"4\">%s</tspan>", lowered + 1);
}

static bool ticks_fit(const struct axis *a, bool is_x)
{
    for (size_t i = 1; i < a->nmajor; i++) {
        const struct tick *s = &a->major[i - 1], *t = &a->major[i];
        const double need =
            is_x ? (svg_text_width(axis_tick_name(s), NULL, 12) +
                    svg_text_width(axis_tick_name(t), NULL, 12)) /
                           2 +
                       10
                 : 18;
        if (fabs(axis_place(a, t->at) - axis_place(a, s->at)) < need)
            return false;
    }
    return true;
}

/* As many names as fit, level if they can be, else slanted, else upright;
 * once slanted they stay so, or the layout would go to and fro. */
static void category_ticks(struct axis *a)
{
    const size_t n = a->want->ncategories;
    const double pitch = fabs(a->to - a->from) / (a->hi - a->lo);
    const size_t every =
        (size_t)ceil(fmax(13 / pitch, (double)n / AXIS_MAX_MAJOR));

    for (size_t i = 0; i < n && a->nmajor < AXIS_MAX_MAJOR; i += every) {
        const char *name = a->want->categories[i];
        struct tick *t = &a->major[a->nmajor++];
        t->at = (double)i;
        t->name = name ? name : "";
        t->text[0] = '\0';
    }
    const unsigned slant = ticks_fit(a, true) ? 0 : pitch >= 19 ? 40 : 90;
    if (slant > a->slant)
        a->slant = slant;
}

void axis_set_ticks(struct axis *a, bool is_x)
{
    for (int level = 0; level < 32; level++) {
        a->nmajor = a->nminor = 0;
        if (a->want->ncategories) {
            category_ticks(a);
            return;
        }
        if (axis_is_log(a->want) && a->hi - a->lo >= 0.9)
            log_ticks(a, level);
        else
            linear_ticks(a, is_x ? 70 : 38, level);
        if (ticks_fit(a, is_x))
            return;
    }
}

const char *axis_title(const struct plot_axis *a, char *buf, size_t n)
{
    const char *label = a->label ? a->label : "";
    const char *unit = a->unit ? a->unit : "";

    if (*label && *unit)
        snprintf(buf, n, "%s (%s)", label, unit);
    else
        snprintf(buf, n, "%s%s", label, unit);
    return buf;
}

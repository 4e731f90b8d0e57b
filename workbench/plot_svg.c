/*
 * plot_svg.c - SVG out: the style, text measured and escaped, numbers
 *
 * What a viewer does with a picture depends on its fonts, so text is measured
 * with a table of widths, those of DejaVu Sans: the widest of the usual
 * sans-serif fonts, so what fits here fits there. At 12 px "bits per key" is
 * counted as 71 px; Arial draws it in 61.
 *
 * What is written is well-formed whatever the caller's strings hold: XML
 * knows no control characters, no half of a surrogate pair and no broken
 * UTF-8, and they come out as U+FFFD.
 *
 * Colours. Eight, found by maximising the smallest distance between any two
 * as seen by normal, protanopic, deuteranopic and tritanopic eyes [1], once
 * for light paper and once for dark: at least 14.6 in hundredths of Oklab
 * units, where the palette of Okabe and Ito has 7.6, and all with a contrast
 * of 2.6 or more to the paper, where its yellow has 1.3 on white. They are set
 * as `color` by class and used as currentColor, so that the dark scheme only
 * sets colours anew, and so that viewers which know neither media queries nor
 * CSS variables show the light one.
 *
 * [1] Machado, Oliveira and Fernandes, A Physiologically-based Model for
 *     Simulation of Color Vision Deficiency, 2009
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "workbench/plot_svg.h"

/* ------------------------------------------------------------- characters */

/* The next character of *s, which moves past it. What UTF-8 or XML forbids
 * comes as U+FFFD, and white space as a blank. */
static uint32_t next_char(const char **s)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *b = (const unsigned char *)*s;
    const unsigned n = b[0] < 0x80         ? 1
                       : b[0] >> 5 == 0x06 ? 2
                       : b[0] >> 4 == 0x0e ? 3
                       : b[0] >> 3 == 0x1e ? 4
                                           : 0;
    uint32_t c = n == 1 ? b[0] : b[0] & (0x7fu >> n);

    *s += 1;
    if (n == 0)
        return 0xfffd;
    for (unsigned i = 1; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0xfffd;
        c = c << 6 | (b[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0xfffd;
    *s += n - 1;
    if (c == '\t' || c == '\n' || c == '\r')
        return ' ';
    if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (c & 0xfffe) == 0xfffe)
        return 0xfffd;
    return c;
}

/* Width of c in units of the font size. */
static double char_width(uint32_t c)
{
    static const uint16_t thousandths[] = {
        318, 401, 460, 838, 636,  950, 780, 275, 390, 390, 500, 838, 318, 361,
        318, 337, 636, 636, 636,  636, 636, 636, 636, 636, 636, 636, 337, 337,
        838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295,
        295, 656, 557, 863, 748,  787, 603, 787, 695, 635, 611, 732, 684, 989,
        685, 611, 685, 390, 337,  390, 838, 500, 500, 613, 635, 550, 635, 615,
        352, 635, 634, 278, 278,  579, 278, 974, 634, 612, 635, 635, 411, 521,
        392, 634, 592, 818, 592,  592, 525, 636, 337, 636, 838,
    };
    if (c >= 0x300 && c < 0x370)
        return 0; /* combining marks */
    if (c >= 0x80)
        return c < 0x1100 || (c >= 0x2000 && c < 0x2e80) ? 0.84 : 1.0;
    return c < ' ' || c > '~' ? 0.84 : thousandths[c - ' '] / 1000.0;
}

double svg_text_width(const char *s, const char *end, double size)
{
    double w = 0;

    while (s && *s && (!end || s < end)) {
        if (*s == SVG_RAISED) {
            size *= 0.75;
            s++;
        } else {
            w += size * char_width(next_char(&s));
        }
    }
    return w;
}

/* Where the first line of s ends if lines may be width wide: at a blank, or
 * inside a word that is longer than a line. */
static const char *svg_line_end(const char *s, double size, double width)
{
    const char *blank = NULL;
    const char *const start = s;
    double w = 0;

    while (*s) {
        const char *next = s;
        const uint32_t c = next_char(&next);
        if (c == ' ')
            blank = s;
        w += size * char_width(c);
        if (w > width && c != ' ' && s > start)
            return blank && blank > start ? blank : s;
        s = next;
    }
    return s;
}

/* -------------------------------------------------------------- the output */

void svg_flush(struct svg *o)
{
    if (o->ok && o->used)
        o->ok = o->put(o->ctx, o->buf, o->used);
    o->used = 0;
}

static void svg_byte(struct svg *o, char c)
{
    if (o->used == sizeof o->buf)
        svg_flush(o);
    o->buf[o->used++] = c;
}

/* s as it is. */
static void svg_raw(struct svg *o, const char *s)
{
    while (*s)
        svg_byte(o, *s++);
}

/* One character, as XML wants it, in UTF-8. */
static void svg_char(struct svg *o, uint32_t c)
{
    switch (c) {
    case '&':
        svg_raw(o, "&amp;");
        return;
    case '<':
        svg_raw(o, "&lt;");
        return;
    case '>':
        svg_raw(o, "&gt;");
        return;
    case '"':
        svg_raw(o, "&quot;");
        return;
    }
    if (c < 0x80) {
        svg_byte(o, (char)c);
    } else if (c < 0x800) {
        svg_byte(o, (char)(0xc0 | c >> 6));
        svg_byte(o, (char)(0x80 | (c & 0x3f)));
    } else {
        if (c < 0x10000) {
            svg_byte(o, (char)(0xe0 | c >> 12));
        } else {
            svg_byte(o, (char)(0xf0 | c >> 18));
            svg_byte(o, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        svg_byte(o, (char)(0x80 | (c >> 6 & 0x3f)));
        svg_byte(o, (char)(0x80 | (c & 0x3f)));
    }
}

void svg_text(struct svg *o, const char *s, const char *end)
{
    while (s && *s && (!end || s < end))
        svg_char(o, next_char(&s));
}

void svg_fitted(struct svg *o, const char *s, double size, double width)
{
    if (svg_text_width(s, NULL, size) <= width) {
        svg_text(o, s, NULL);
        return;
    }
    double w = size * char_width(0x2026);
    while (*s) {
        const uint32_t c = next_char(&s);
        w += size * char_width(c);
        if (w > width)
            break;
        svg_char(o, c);
    }
    svg_raw(o, "\xe2\x80\xa6");
}

/* A length: hundredths at most, no trailing zeros, '.' in every locale. */
static void svg_number(struct svg *o, double v)
{
    char digits[32];
    const long long h = llround(fmax(-1e6, fmin(1e6, v)) * 100);
    const unsigned long long a = (unsigned long long)(h < 0 ? -h : h);

    snprintf(digits, sizeof digits, "%s%llu", h < 0 ? "-" : "", a / 100);
    svg_raw(o, digits);
    if (a % 100) {
        svg_byte(o, '.');
        svg_byte(o, (char)('0' + a % 100 / 10));
        if (a % 10)
            svg_byte(o, (char)('0' + a % 10));
    }
}

void svg(struct svg *o, const char *format, ...)
{
    char digits[16];
    va_list args;

    va_start(args, format);
    for (; *format; format++) {
        if (*format != '%') {
            svg_byte(o, *format);
            continue;
        }
        switch (*++format) {
        case 's':
            svg_text(o, va_arg(args, const char *), NULL);
            break;
        case 'n':
            svg_number(o, va_arg(args, double));
            break;
        case 'u':
            snprintf(digits, sizeof digits, "%u", va_arg(args, unsigned));
            svg_raw(o, digits);
            break;
        }
    }
    va_end(args);
}

/* --------------------------------------------------------------- the style */

static const char *const light[PLOT_NCOLORS] = {
    "#11316d", "#aa470d", "#2d7082", "#8807d9",
    "#ff700d", "#6c8eff", "#5d2811", "#b196a0",
};
static const char *const dark[PLOT_NCOLORS] = {
    "#4370fb", "#f51829", "#57d1a8", "#bb9bff",
    "#fdf002", "#a4f9ff", "#9e6b93", "#ff9c00",
};

/* Every rule starts with .bly-plot: pictures may share a page with others. */
static const char style_light[] =
    ".bly-plot{font:12px system-ui,-apple-system,\"Segoe UI\",Roboto,"
    "\"Helvetica Neue\",Arial,\"DejaVu Sans\",sans-serif;color:#1b1f24}\n"
    ".bly-plot text{fill:currentColor;stroke:none}\n"
    ".bly-plot .t{font-size:17px;font-weight:600}\n"
    ".bly-plot .u{font-size:13px;color:#57606a}\n"
    ".bly-plot .f{font-size:11px;color:#57606a}\n"
    ".bly-plot .m{text-anchor:middle}\n"
    ".bly-plot .e{text-anchor:end}\n"
    ".bly-plot .paper{color:#fff;fill:currentColor}\n"
    ".bly-plot path{fill:none;stroke:currentColor}\n"
    ".bly-plot .grid{color:#dfe3e8}\n"
    ".bly-plot .fine{color:#eff1f4}\n"
    ".bly-plot .axis{color:#6e7781}\n"
    ".bly-plot .ref{color:#6e7781;stroke-dasharray:1.5 2.5}\n"
    ".bly-plot .line{stroke-width:2;stroke-linejoin:round}\n"
    ".bly-plot .err{stroke-width:1.2}\n"
    ".bly-plot .lead{stroke-width:1;opacity:.7}\n"
    ".bly-plot .dot{fill:currentColor;stroke:none}\n"
    ".bly-plot .open{stroke-width:1.7}\n"
    ".bly-plot .bar{fill:currentColor}\n"
    ".bly-plot .bar1{fill:currentColor;fill-opacity:.4}\n"
    ".bly-plot .bar2{fill:currentColor;fill-opacity:.08}\n"
    ".bly-plot .band{fill:currentColor;fill-opacity:.2;stroke:none}\n"
    ".bly-plot .held{fill:currentColor;fill-opacity:.07;stroke:none}\n"
    ".bly-plot .hit{fill:#000;fill-opacity:0;stroke:none}\n"
    ".bly-plot .d2{stroke-dasharray:7 4}\n"
    ".bly-plot .d3{stroke-dasharray:2 3}\n"
    ".bly-plot .s:hover .line{stroke-width:3.5}\n";
static const char style_dark[] =
    ".bly-plot{color:#e6e9ed}\n"
    ".bly-plot .u,.bly-plot .f{color:#a3acb6}\n"
    ".bly-plot .paper{color:#14181d}\n"
    ".bly-plot .grid{color:#333a42}\n"
    ".bly-plot .fine{color:#22282e}\n"
    ".bly-plot .axis,.bly-plot .ref{color:#8b949e}\n"
    ".bly-plot .band{fill-opacity:.32}\n"
    ".bly-plot .held{fill-opacity:.14}\n";

void svg_head(struct svg *o, const char *title, double width, double height)
{
    svg(o,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"bly-plot\" "
        "role=\"img\" viewBox=\"0 0 %n %n\" width=\"%n\" height=\"%n\">\n"
        "<title>%s</title>\n<style>\n",
        width, height, width, height, title);
    svg_raw(o, style_light);
    for (unsigned i = 0; i < PLOT_NCOLORS; i++)
        svg(o, ".bly-plot .c%u{color:%s}\n", i, light[i]);
    svg(o, "@media (prefers-color-scheme:dark){\n");
    svg_raw(o, style_dark);
    for (unsigned i = 0; i < PLOT_NCOLORS; i++)
        svg(o, ".bly-plot .c%u{color:%s}\n", i, dark[i]);
    svg(o,
        "}\n</style>\n<rect class=\"paper\" width=\"%n\" "
        "height=\"%n\"/>\n",
        width, height);
}

double svg_paragraph(struct svg *o, enum svg_part part, const char *s, double y)
{
    static const struct {
        const char *class;
        double size, stretch; /* bold letters are wider */
        unsigned most;        /* lines */
    } parts[] = {
        [SVG_TITLE] = { "t", 17, 1.15, 3 },
        [SVG_SUBTITLE] = { "u", 13, 1, 3 },
        [SVG_CAPTION] = { "f", 11, 1, 4 },
    };
    const double size = parts[part].size, pitch = ceil(size * 1.3);
    const double width = (SVG_WIDTH - 2 * SVG_MARGIN) / parts[part].stretch;
    unsigned n = 0;

    while (s && *s && n < parts[part].most) {
        const char *end = svg_line_end(s, size, width);
        n++;
        if (o) {
            svg(o, "<text class=\"%s\" x=\"%n\" y=\"%n\">", parts[part].class,
                SVG_MARGIN, y + n * pitch - size * 0.3);
            if (n == parts[part].most)
                svg_fitted(o, s, size, width);
            else
                svg_text(o, s, end);
            svg(o, "</text>\n");
        }
        for (s = end; *s == ' ';)
            s++;
    }
    return n * pitch;
}

double svg_titles(struct svg *o, const char *title, const char *subtitle)
{
    double y = 10;

    y += svg_paragraph(o, SVG_TITLE, title, y);
    y += svg_paragraph(o, SVG_SUBTITLE, subtitle, y);
    return y;
}

/* LDFLAGS: -Wl,--wrap=malloc,--wrap=calloc,--wrap=snprintf */
/*
 * test_plot.c - pictures: well-formed, the same again, and true to the data
 *
 * The pictures are read back as text: a small checker follows the tags, and
 * the tests look at the path of a line, the labels of the ticks and the rows
 * of the names. What a picture looks like is for eyes; what can be said in
 * words is said here.
 */
#define _GNU_SOURCE
#include "support.h"

#include "workbench/plot.h"
#include "workbench/plot_axis.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------- what is interfered */

static unsigned allocations, failing_allocation; /* counted from 1; 0: none */
static bool decimal_comma;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
int __wrap_snprintf(char *out, size_t n, const char *format, ...);

static bool allocation_fails(void)
{
    if (++allocations != failing_allocation)
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t n)
{
    return allocation_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return allocation_fails() ? NULL : __real_calloc(n, size);
}

/* As in a locale with a decimal comma, of which the machine may have none. */
int __wrap_snprintf(char *out, size_t n, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int length = vsnprintf(out, n, format, args);
    va_end(args);
    const char *percent = strchr(format, '%');
    const bool real = percent && strpbrk(percent, "efg") && strchr(format, '.');
    for (char *s = out; decimal_comma && real && n && *s; s++)
        if (*s == '.')
            *s = ',';
    return length;
}

/* -------------------------------------------------------------- the paper */

static char page[4 << 20];
static size_t page_used;
static unsigned puts_left; /* then put_page() fails */

static bool put_page(void *ctx, const char *bytes, size_t n)
{
    assert_ptr_equal(ctx, page);
    assert_true(puts_left > 0); /* no call after one that failed */
    if (--puts_left == 0)
        return false;
    assert_true(page_used + n < sizeof page);
    memcpy(page + page_used, bytes, n);
    page_used += n;
    page[page_used] = '\0';
    return true;
}

static unsigned times_drawn(const char *text)
{
    unsigned n = 0;

    for (const char *s = page; (s = strstr(s, text)) != NULL; s += strlen(text))
        n++;
    return n;
}

static bool on_page(const char *text)
{
    return strstr(page, text) != NULL;
}

/* A character reference at s: its length, or 0. */
static size_t entity_length(const char *s)
{
    static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;" };

    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (!strncmp(s, known[i], strlen(known[i])))
            return strlen(known[i]);
    return 0;
}

/* One root, tags that match, quoted attributes, known entities, no control
 * characters, UTF-8 that is UTF-8. */
static void assert_well_formed(void)
{
    char stack[16][16];
    size_t depth = 0, roots = 0;
    const char *s = page;

    while (*s) {
        const unsigned char c = (unsigned char)*s;
        if (c == '&') {
            const size_t n = entity_length(s);
            if (!n)
                fail_msg("entity at %.30s", s);
            s += n;
        } else if (c == '<') {
            const bool closing = s[1] == '/';
            char name[16] = "";
            assert_int_equal(sscanf(s + 1 + closing, "%15[a-z]", name), 1);
            bool quoted = false;
            while (*++s && (quoted || *s != '>')) {
                quoted ^= *s == '"';
                if (*s == '<')
                    fail_msg("tag in a tag at %.30s", s);
            }
            assert_int_equal(*s, '>');
            if (closing) {
                assert_true(depth > 0);
                assert_string_equal(stack[--depth], name);
            } else if (s[-1] != '/') {
                assert_true(depth < COUNT_OF(stack));
                roots += depth == 0;
                strcpy(stack[depth++], name);
            }
            s++;
        } else if (c < 0x80) {
            if ((c < 0x20 && c != '\n') || c == 0x7f || c == '>')
                fail_msg("character %u at %.30s", c, s);
            assert_true(depth > 0 || c == '\n');
            s++;
        } else {
            const int n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
            assert_true(n > 0);
            for (int i = 1; i < n; i++)
                assert_int_equal((unsigned char)s[i] & 0xc0, 0x80);
            const unsigned char next = (unsigned char)s[1];
            assert_false(c == 0xed && next >= 0xa0); /* surrogates */
            assert_false((c == 0xe0 && next < 0xa0) ||
                         (c == 0xf0 && next < 0x90));
            s += n;
        }
    }
    assert_int_equal(depth, 0);
    assert_int_equal(roots, 1);
    for (const char *d = page; (d = strstr(d, " d=\"")) != NULL;) {
        d += 4;
        if (d[strspn(d, "MLHVZahlmvz0123456789.- ")] != '"')
            fail_msg("path %.60s", d);
    }
}

static void start_page(void)
{
    page_used = 0;
    page[0] = '\0';
    puts_left = UINT_MAX;
}

static void draw_page(const struct plot *p)
{
    start_page();
    assert_true(plot_write(p, put_page, page));
    assert_well_formed();
}

/* The d of the n-th path whose class starts so. */
static const char *path_of(const char *class, unsigned n)
{
    static char d[1 << 16];
    char start[64];
    const char *s = page;

    snprintf(start, sizeof start, "<path class=\"%s", class);
    for (;; s += strlen(start), n--) {
        s = strstr(s, start);
        if (!s)
            fail_msg("path %s is missing", class);
        if (n == 0)
            break;
    }
    s = strstr(s, " d=\"") + 4;
    const size_t length = strcspn(s, "\"");
    assert_true(length < sizeof d);
    memcpy(d, s, length);
    d[length] = '\0';
    return d;
}

static unsigned letters(const char *s, char letter)
{
    unsigned n = 0;

    for (; *s; s++)
        n += *s == letter;
    return n;
}

/* Is there a text of exactly these characters? */
static bool has_text(const char *text)
{
    char full[1024];

    snprintf(full, sizeof full, ">%s</text>", text);
    return on_page(full);
}

/* Where the text that holds this stands. */
static void place_of(const char *text, double *x, double *y)
{
    char full[1024];

    snprintf(full, sizeof full, ">%s</text>", text);
    const char *s = strstr(page, full);
    if (!s)
        fail_msg("text %s is missing", text);
    while (*s != '<')
        s--;
    *x = strtod(strstr(s, "x=\"") + 3, NULL);
    *y = strtod(strstr(s, "y=\"") + 3, NULL);
}

static struct plot_point line_points[] = { { .x = 0, .y = 0 },
                                           { .x = 1, .y = 10 },
                                           { .x = 2, .y = 5 },
                                           { .x = 3, .y = 20 } };
static struct plot_series one_line = { .name = "line",
                                       .points = line_points,
                                       .npoints = 4 };

static struct plot picture_of(const struct plot_series *s, size_t n)
{
    return (struct plot){
        .title = "A title",
        .x = { .label = "across" },
        .y = { .label = "up", .unit = "m" },
        .series = s,
        .nseries = n,
    };
}

/* ------------------------------------------------------------------ tests */

static void a_picture_has_its_parts(void **state)
{
    (void)state;
    struct plot p = picture_of(&one_line, 1);
    p.subtitle = "below it";
    p.caption = "at the foot";
    draw_page(&p);
    assert_true(on_page("viewBox=\"0 0 800 500\""));
    assert_true(on_page("<title>A title</title>"));
    assert_true(on_page("<desc>below it. up (m) against across. Series: line"));
    assert_true(on_page("@media (prefers-color-scheme:dark)"));
    assert_true(has_text("A title"));
    assert_true(has_text("below it"));
    assert_true(has_text("at the foot"));
    assert_true(has_text("up (m)"));
    assert_true(has_text("across"));
    assert_true(has_text("line"));
    assert_int_equal(letters(path_of("line d1", 0), 'L'), 3);
    assert_true(on_page("<title>line\nacross: 3\nup: 20 m</title>"));
}

static void text_is_escaped(void **state)
{
    (void)state;
    /* A bad start, a cut sequence, an overlong one, a surrogate, a control
     * character and U+FFFF. Of bad UTF-8 every byte counts. */
    static const char bad[] = "\xff \xe2\x82 \xc0\xaf \xed\xa0\x80 \x01 "
                              "\xef\xbf\xbf end";
    struct plot_series s[] = { one_line, one_line };
    s[0].name = "<&>\"'";
    s[1].name = bad;
    const char *const names[] = { "a&b", "<c>", NULL, bad };
    struct plot_reference refs[] = {
        { .vertical = true, .at = 1, .label = bad }, { .at = 7, .label = "]]>" }
    };
    struct plot p = {
        .title = "</title><script>",
        .subtitle = bad,
        .caption = bad,
        .x = { .label = bad, .categories = names, .ncategories = 4 },
        .y = { .label = "<", .unit = ">" },
        .series = s,
        .nseries = 2,
        .references = refs,
        .nreferences = 2,
    };
    draw_page(&p);
    assert_false(on_page("<script"));
    assert_true(has_text("&lt;&amp;&gt;&quot;'"));
    assert_true(has_text("a&amp;b"));
#define U_FFFD "\xef\xbf\xbd"
    assert_true(has_text(U_FFFD " " U_FFFD U_FFFD " " U_FFFD U_FFFD
                                " " U_FFFD U_FFFD U_FFFD " " U_FFFD " " U_FFFD
                                " end"));
}

static void what_is_not_finite_breaks_the_line(void **state)
{
    (void)state;
    struct plot_point t[] = { { .x = 0, .y = 1 },   { .x = 1, .y = 2 },
                              { .x = 2, .y = NAN }, { .x = 3, .y = 3 },
                              { .x = 4, .y = 1 },   { .x = INFINITY, .y = 1 },
                              { .x = 6, .y = 4 } };
    struct plot_series s = { .points = t, .npoints = COUNT_OF(t) };
    const struct plot p = picture_of(&s, 1);
    draw_page(&p);
    assert_int_equal(letters(path_of("line", 0), 'M'), 3);
    assert_int_equal(letters(path_of("line", 0), 'L'), 2);
    /* The last point has no neighbour and is drawn as a dot. */
    assert_int_equal(times_drawn("<path class=\"dot\""), 1);
}

static void log_axes_skip_what_is_not_above_zero(void **state)
{
    (void)state;
    struct plot_point t[] = {
        { .x = 1, .y = 1e-3 },  { .x = 2, .y = 0 },
        { .x = 3, .y = 1e-2 },  { .x = 4, .y = 1e-1, .err_low = 1 },
        { .x = 5, .y = -1 },    { .x = -1, .y = 1 },
        { .x = 10, .y = 5e-1 }, { .x = 100, .y = 1 },
    };
    struct plot_series s = { .points = t, .npoints = COUNT_OF(t) };
    struct plot p = picture_of(&s, 1);
    p.x.scale = p.y.scale = PLOT_LOG;
    draw_page(&p);
    assert_int_equal(letters(path_of("line", 0), 'M'), 3);
    assert_int_equal(letters(path_of("line", 0), 'L'), 2);
    assert_true(has_text("0.001"));
    assert_true(has_text("0.1"));
    assert_true(has_text("100"));
}

/* A point of a line, from the path that was drawn. */
static void line_point(unsigned which, double *x, double *y)
{
    const char *d = path_of("line", 0);
    char *end;

    for (unsigned i = 0; i < which; i++)
        d = strchr(d, 'L') + 1;
    d += *d == 'M';
    *x = strtod(d, &end);
    *y = strtod(end, NULL);
}

/* Where the tick of a value stands says where the value lies. */
static void points_lie_where_their_values_are(void **state)
{
    (void)state;
    struct plot_point t[] = { { .x = 1, .y = 10 },
                              { .x = 100, .y = 15 },
                              { .x = 1000, .y = 20 } };
    struct plot_series s = { .points = t, .npoints = 3 };
    double x, y, tick_x, tick_y, other;

    for (int reversed = 0; reversed < 2; reversed++) {
        struct plot p = picture_of(&s, 1);
        p.x.scale = PLOT_LOG;
        p.x.reversed = reversed;
        draw_page(&p);
        line_point(1, &x, &y);
        place_of("100", &tick_x, &other);
        place_of("15", &other, &tick_y);
        assert_near(tick_x, x, 1e-4);
        assert_near(tick_y - 4, y, 1e-4); /* text stands 4 below its middle */
        place_of("10", &other, &tick_y);  /* of x: between 1 and 100 */
        place_of("1000", &tick_x, &tick_y);
        assert_true(reversed ? tick_x < x : tick_x > x);
    }
}

static void ends_can_be_fixed(void **state)
{
    (void)state;
    struct plot_series s = one_line;
    double x, y, line_x, line_y;

    s.style = PLOT_POINTS;
    s.name = NULL; /* a legend would have a marker too */
    struct plot p = picture_of(&s, 1);
    p.y.max = 12; /* and min 0: both are fixed */
    p.x.min = 0.5;
    p.x.max = NAN;
    draw_page(&p);
    assert_int_equal(times_drawn("<path class=\"dot\""), 2); /* of four */
    place_of("12", &x, &y);
    assert_false(has_text("14"));

    /* All data beyond the only fixed end. */
    s.style = PLOT_LINE;
    p.y.min = 50;
    p.y.max = NAN;
    draw_page(&p);
    line_point(0, &line_x, &line_y);
    assert_true(has_text("50"));
    p.y.min = NAN;
    p.y.max = -50;
    draw_page(&p);
    assert_true(has_text("\xe2\x88\x92"
                         "50"));

    /* An end that was left zero, behind the one that is fixed, is free: the
     * axis was once from 0 to 1, and empty. Of four points one is below. */
    s.style = PLOT_POINTS;
    p.x = (struct plot_axis){ 0 };
    p.y = (struct plot_axis){ .min = 1 };
    draw_page(&p);
    assert_int_equal(times_drawn("<path class=\"dot\""), 3);
    place_of("20", &x, &y);
    struct plot_point below[] = { { .x = 1, .y = -3 }, { .x = 2, .y = -8 } };
    struct plot_series t = { .points = below,
                             .npoints = 2,
                             .style = PLOT_POINTS };
    struct plot q = picture_of(&t, 1);
    q.y = (struct plot_axis){ .max = -1 };
    draw_page(&q);
    assert_int_equal(times_drawn("<path class=\"dot\""), 2);

    /* What is expected at one point alone is seen, too. */
    const struct plot_point lone = { .x = 1.5, .y = -5 };
    t.expected = &lone;
    t.nexpected = 1;
    draw_page(&q);
    const char *drawn = strstr(page, "<g class=\"s ");
    drawn = strstr(drawn, "<path class=\"line d2\" d=\"M");
    assert_true(strcspn(drawn, "H") < strcspn(drawn, "/"));
    s.style = PLOT_LINE;

    /* The wrong way round, and nonsense on a log axis. */
    p.y = (struct plot_axis){ .min = 8, .max = 2 };
    draw_page(&p);
    assert_true(has_text("2") && has_text("8") && !has_text("9"));
    p.y = (struct plot_axis){ .min = -5, .max = 100, .scale = PLOT_LOG };
    draw_page(&p);
    assert_true(has_text("100"));
}

static void assert_value(enum plot_format format, double v, const char *want)
{
    char got[AXIS_LABEL];

    axis_value_text(got, format, v, v, 4, AXIS_COMPUTER);
    assert_string_equal(got, want);
}

static void numbers_read_well(void **state)
{
    (void)state;
    for (int comma = 0; comma < 2; comma++) {
        decimal_comma = comma;
        assert_value(PLOT_PLAIN, 0, "0");
        assert_value(PLOT_PLAIN, -0.0, "0");
        assert_value(PLOT_PLAIN, 1, "1");
        assert_value(PLOT_PLAIN, 0.25, "0.25");
        assert_value(PLOT_PLAIN, 1.0 / 3, "0.3333");
        assert_value(PLOT_PLAIN, -1234.4,
                     "\xe2\x88\x92"
                     "1234");
        assert_value(PLOT_PLAIN, 99996, "100000");
        assert_value(PLOT_PLAIN, 1.25e-9, "1.25e-9");
        assert_value(PLOT_PLAIN, 3e300, "3e300");
        assert_value(PLOT_SI, 0, "0");
        assert_value(PLOT_SI, 1, "1");
        assert_value(PLOT_SI, 999, "999");
        assert_value(PLOT_SI, 1500, "1.5k");
        assert_value(PLOT_SI, 999999, "1M"); /* not 1000k */
        assert_value(PLOT_SI, 2e7, "20M");
        assert_value(PLOT_SI, 3e9, "3G");
        assert_value(PLOT_SI, 5e-3, "5m");
        assert_value(PLOT_SI, 2e-8, "20n");
        assert_value(PLOT_SI, 1e40, "1e40");
        assert_value(PLOT_PERCENT, 0.01, "1%");
        assert_value(PLOT_PERCENT, 0.0216, "2.16%");
        assert_value(PLOT_PERCENT, 1e-9, "1e-7%");
        assert_value(PLOT_BYTES, 0, "0");
        assert_value(PLOT_BYTES, 512, "512 B");
        assert_value(PLOT_BYTES, 65536, "64 KiB");
        assert_value(PLOT_BYTES, 1.5 * (1 << 20), "1.5 MiB");
        assert_value(PLOT_BYTES, 0x1p31, "2 GiB");
        assert_value(PLOT_BYTES, 0x1p180, "1.329e36 EiB");
    }
    decimal_comma = false;
}

static void ticks_are_nice(void **state)
{
    (void)state;
    struct plot_point t[] = { { .x = 1, .y = 0.0021 },
                              { .x = 6, .y = 0.0479 } };
    struct plot_series s = { .points = t, .npoints = 2 };
    struct plot p = picture_of(&s, 1);

    p.y.format = PLOT_PERCENT;
    draw_page(&p);
    assert_true(has_text("0%") && has_text("1%") && has_text("5%"));
    assert_false(has_text("6%"));
    assert_true(has_text("2") && !has_text("2.5")); /* x is whole */

    t[1].y = 5e-9; /* a wide log axis has powers of ten */
    p.y.format = PLOT_PLAIN;
    p.y.scale = PLOT_LOG;
    draw_page(&p);
    assert_true(on_page(">10<tspan dy=\"-4\" font-size=\"9\">"
                        "\xe2\x88\x92"
                        "5</tspan></text>"));
    p.y.format = PLOT_PERCENT;
    draw_page(&p);
    assert_true(on_page("</tspan><tspan dy=\"4\">%</tspan></text>"));

    t[0].y = 2.2; /* and a short one has ticks between them */
    t[1].y = 7.5;
    p.y.format = PLOT_PLAIN;
    draw_page(&p);
    assert_true(has_text("3") && has_text("7"));

    t[0].y = 1; /* as good as equal */
    t[1].y = 1 + 1e-13;
    p.y.scale = PLOT_LINEAR;
    draw_page(&p);
    assert_true(has_text("1.1"));

    t[0].x = 4096;
    t[1].x = 0x1p30;
    p.x.format = PLOT_BYTES;
    p.x.scale = PLOT_LOG;
    draw_page(&p);
    assert_true(has_text("4 KiB") || has_text("16 KiB")); /* one unit */
    assert_true(has_text("2048 KiB") && !on_page("MiB</text>"));
    p.x.format = PLOT_SI;
    t[0].x = 1000;
    t[1].x = 1e7;
    draw_page(&p);
    assert_true(has_text("1,000") && has_text("10,000,000"));
    assert_false(has_text("1k") || has_text("1M"));

    t[0].x = 0;
    t[1].x = 2.2e6;
    p.x.format = PLOT_SI; /* one prefix for all */
    p.x.scale = PLOT_LINEAR;
    draw_page(&p);
    assert_true(has_text("0.5M") && has_text("1M") && !has_text("500k"));
}

/* What can be seen of the series that begins at *at, which moves past it:
 * colour and the letters of a marker's outline. */
static unsigned look_at(const char **at)
{
    *at = strstr(*at, "<g class=\"s c");
    assert_non_null(*at);
    const unsigned color = (unsigned)((*at)[13] - '0');
    const char *end = strstr(*at, "</g>");
    const char *dot = strstr(*at, "<path class=\"dot\"");
    const char *open = strstr(*at, "<path class=\"open\"");
    const char *mark = dot && dot < end ? dot : open;
    unsigned shape = mark == open;
    assert_true(mark && mark < end);
    for (const char *d = strstr(mark, " d=\"") + 4; *d != '"'; d++)
        if (strchr("MLHVahlmvz-", *d))
            shape = shape * 31 + (unsigned char)*d;
    *at = end;
    return shape % 1000003 * 31 + color;
}

/* How often text is drawn from start to end. */
static unsigned times_between(const char *text, const char *start,
                              const char *end)
{
    unsigned n = 0;
    for (; (start = strstr(start, text)) != NULL && start < end; start++)
        n++;
    return n;
}

enum { MANY = 40 };
static struct plot_series crowd[MANY];

static struct plot crowded(void)
{
    static char names[MANY][16];
    static struct plot_point t[MANY][2];

    for (unsigned i = 0; i < MANY; i++) {
        t[i][0] = (struct plot_point){ .x = 0, .y = i };
        t[i][1] = (struct plot_point){ .x = 1, .y = 2 * i };
        snprintf(names[i], sizeof names[i], "series %u", i);
        crowd[i] = (struct plot_series){ .name = names[i],
                                         .points = t[i],
                                         .npoints = 2 };
    }
    return picture_of(crowd, MANY);
}

/* Never more than eight in a panel, and there every pair differs both in
 * colour and in marker; all panels have the same axes. */
static void forty_series_can_be_told_apart(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MANY; n++) {
        struct plot p = crowded();
        p.nseries = n;
        draw_page(&p);
        const unsigned npanels = times_drawn("<g class=\"panel\"");
        assert_int_equal(npanels, n > 8 ? (n + 7) / 8 : 0);
        assert_int_equal(times_drawn("<text class=\"t\""), 1);
        const char *at = page;
        for (unsigned i = 0; i < (npanels ? npanels : 1); i++) {
            if (npanels)
                at = strstr(at, "<g class=\"panel\"") + 1;
            const char *next = strstr(at, "<g class=\"panel\"");
            if (!next)
                next = page + page_used;
            const unsigned here = times_between("<g class=\"s c", at, next);
            unsigned looks[8];
            assert_in_range(here, 1, 8);
            if (n == MANY) /* the largest value is 78 */
                assert_int_equal(times_between(">80</text>", at, next), 1);
            const char *series = at;
            for (unsigned j = 0; j < here && n > 1; j++) {
                looks[j] = look_at(&series);
                for (unsigned k = 0; k < j; k++) {
                    assert_int_not_equal(looks[j] % 31, looks[k] % 31);
                    assert_int_not_equal(looks[j] / 31, looks[k] / 31);
                }
            }
        }
        for (unsigned i = 0; i < n; i++)
            assert_true(has_text(crowd[i].name));
    }
}

/* Panels in the order of their names; who names none is in all, first. */
static void panels_have_names_and_yardsticks(void **state)
{
    (void)state;
    struct plot p = crowded();
    p.nseries = 12;
    p.caption = "at the foot";
    for (unsigned i = 0; i < 11; i++)
        crowd[i].panel = i % 2 ? "odd" : "even";
    draw_page(&p); /* 6 even and 5 odd ones, and number 11 */
    assert_int_equal(times_drawn("<g class=\"panel\""), 2);
    const char *even = strstr(page, ">even</text>");
    const char *odd = strstr(page, ">odd</text>");
    assert_true(even && odd && even < odd);
    assert_int_equal(times_between(">series 11</text>", page, odd), 1);
    assert_int_equal(times_drawn(">series 11</text>"), 2);
    assert_int_equal(times_drawn(">series 10</text>"), 1);
    assert_int_equal(times_drawn(">at the foot</text>"), 1);
    const char *at = even, *also = odd;
    assert_int_equal(look_at(&at), look_at(&also));

    for (unsigned i = 0; i < 11; i++) /* ten and one in one panel */
        crowd[i].panel = "all";
    draw_page(&p);
    assert_true(has_text("all (1 of 2)") && has_text("all (2 of 2)"));

    p.nseries = MANY; /* too many to be in all */
    crowd[0].panel = "one";
    draw_page(&p);
    for (unsigned i = 0; i < MANY; i++)
        assert_true(has_text(crowd[i].name));
}

/* Dashed is what is expected, and the picture says so, if there is any. */
static void what_is_expected_is_dashed_and_said(void **state)
{
    (void)state;
    static const struct plot_point formula[] = { { .x = 0, .y = 1 },
                                                 { .x = 3, .y = 19 } };
    struct plot_series s = one_line;
    struct plot p = picture_of(&s, 1);

    draw_page(&p);
    assert_false(has_text("expected") || has_text("measured"));
    s.expected = formula;
    s.nexpected = 2;
    s.style = PLOT_POINTS;
    draw_page(&p);
    assert_true(has_text("expected") && has_text("measured"));
    assert_int_equal(letters(path_of("line d2", 1), 'L'), 1);
    s.style = PLOT_BARS;
    draw_page(&p);
    assert_true(has_text("expected") && has_text("measured"));
    assert_int_equal(times_drawn("<path class=\"line d2\""), 3);
    s.npoints = 0;
    s.style = PLOT_LINE;
    draw_page(&p);
    assert_true(has_text("expected") && !has_text("measured"));

    /* The name of an axis that leaves no room for the key is above it. */
    char label[100];
    memset(label, 'm', sizeof label);
    label[60] = '\0';
    p.y = (struct plot_axis){ .label = label };
    draw_page(&p);
    double x, y, x2, y2;
    place_of("expected", &x, &y);
    place_of(label, &x2, &y2);
    assert_true(y < y2 - 15);
}

/* Names go below the picture before they are cut. */
static void long_names_are_not_cut(void **state)
{
    (void)state;
    char name[2][90];
    struct plot_series s[] = { one_line, one_line };
    for (unsigned n = 10; n < 90; n++) {
        for (unsigned i = 0; i < 2; i++) {
            memset(name[i], 'a' + (int)i, n);
            name[i][n] = '\0';
            s[i].name = name[i];
        }
        const struct plot p = picture_of(s, 2);
        draw_page(&p);
        assert_true(has_text(name[0]) && has_text(name[1]));
    }
}

/* Names at line ends keep the order of the ends and a distance. */
static void names_at_line_ends_do_not_overlap(void **state)
{
    (void)state;
    enum { N = 8 };
    static const double ends[N] = { 50, 50, 49, 51, 10, 11, 90, 50 };
    struct plot_series s[N];
    struct plot_point t[N][2];
    char names[N][8];
    double x[N], y[N];

    for (unsigned i = 0; i < N; i++) {
        t[i][0] = (struct plot_point){ .x = 0, .y = 10 * i };
        t[i][1] = (struct plot_point){ .x = 1, .y = ends[i] };
        snprintf(names[i], sizeof names[i], "n%u", i);
        s[i] = (struct plot_series){ .name = names[i],
                                     .points = t[i],
                                     .npoints = 2 };
    }
    struct plot p = picture_of(s, N);
    for (int reversed = 0; reversed < 2; reversed++) {
        p.y.reversed = reversed;
        draw_page(&p);
        assert_int_equal(times_drawn("<path class=\"lead\""), N);
        for (unsigned i = 0; i < N; i++)
            place_of(names[i], &x[i], &y[i]);
        for (unsigned i = 0; i < N; i++)
            for (unsigned j = 0; j < N; j++) {
                if (i != j)
                    assert_true(fabs(y[i] - y[j]) > 15.9);
                if (ends[i] > ends[j])
                    assert_true(reversed ? y[i] > y[j] : y[i] < y[j]);
            }
    }
    /* Points have no end: a legend, in the caller's order. */
    for (unsigned i = 0; i < N; i++)
        s[i].style = PLOT_POINTS;
    draw_page(&p);
    assert_int_equal(times_drawn("<path class=\"lead\""), 0);
    for (unsigned i = 0; i < N; i++) {
        place_of(names[i], &x[i], &y[i]);
        assert_true(i == 0 || y[i] > y[i - 1]);
    }
}

static void styles_draw_what_they_say(void **state)
{
    (void)state;
    struct plot_point t[] = { { .x = 1, .y = 4, .err_low = 1, .err_high = 2 },
                              { .x = 2, .y = 8, .err_high = 2 },
                              { .x = 3, .y = 2, .err_low = NAN } };
    struct plot_series s = { .name = "s", .points = t, .npoints = 3 };
    const struct plot p = picture_of(&s, 1);
    double x, y, high;

    s.style = PLOT_BARS;
    draw_page(&p);
    assert_int_equal(times_drawn("<path class=\"bar\" stroke"), 3);
    assert_int_equal(letters(path_of("err", 0), 'V'), 2);
    assert_int_equal(letters(path_of("err", 0), 'h'), 3); /* caps */
    assert_true(has_text("0"));                           /* where bars stand */

    /* Side by side, each with its errors, on a zero that no value is near. */
    struct plot_series two[] = { s, s };
    struct plot q = picture_of(two, 2);
    t[0].y = t[1].y = t[2].y = 100;
    draw_page(&q);
    assert_true(has_text("0"));
    const double first = strtod(path_of("err", 0) + 1, NULL);
    const double second = strtod(path_of("err", 1) + 1, NULL);
    assert_true(second > first + 10);
    assert_true(strtod(path_of("bar", 0) + 1, NULL) < first);
    assert_true(strtod(path_of("bar", 3) + 1, NULL) > first);
    t[0].y = 4;
    t[1].y = 8;
    t[2].y = 2;

    s.style = PLOT_STEPS;
    draw_page(&p);
    assert_int_equal(letters(path_of("line", 0), 'H'), 2);
    assert_int_equal(letters(path_of("line", 0), 'V'), 2);

    s.style = PLOT_BAND;
    draw_page(&p);
    assert_int_equal(letters(path_of("band", 0), 'L'), 5);
    assert_int_equal(times_drawn("<path class=\"line"), 0);

    s.style = PLOT_BOTH;
    draw_page(&p);
    /* Three markers, and none at the end of the line, where its name is. */
    assert_int_equal(times_drawn("<path class=\"dot\""), 3);
    assert_int_equal(times_drawn("<path class=\"line d1\""), 1);
    assert_true(on_page("up: 4 m (3 to 6)"));
    line_point(0, &x, &y);
    high = strtod(strchr(path_of("err", 0), 'V') + 1, NULL);
    assert_true(high < y);

    s.dash = PLOT_DOTTED;
    s.marker = PLOT_CROSS;
    s.color = 3;
    draw_page(&p);
    assert_int_equal(times_drawn("<path class=\"open\""), 3);
    assert_int_equal(times_drawn("<path class=\"line d3\""), 1);
    assert_true(on_page("<g class=\"s c2\">"));
}

static void reference_lines_have_labels(void **state)
{
    (void)state;
    struct plot_reference r[] = {
        { .vertical = true, .at = 1, .label = "first of the long labels" },
        { .vertical = true, .at = 1.1, .label = "second of the long labels" },
        { .at = 15, .label = "level" },
        { .at = NAN, .label = "nowhere" },
        { .vertical = true, .at = 2 },
    };
    struct plot p = picture_of(&one_line, 1);
    double x1, y1, x2, y2;

    p.references = r;
    p.nreferences = COUNT_OF(r);
    draw_page(&p);
    assert_true(has_text("level"));
    assert_false(on_page("nowhere"));
    place_of("first of the long labels", &x1, &y1);
    place_of("second of the long labels", &x2, &y2);
    assert_true(x1 < x2 && y1 < y2 - 15);
}

/* Inputs that leave no room, no range or no number. */
static void degenerate_pictures_work(void **state)
{
    (void)state;
    static const double odd[] = {
        0,        -0.0, 1,    -1,       1e308, 5e-324, 1e-310,   -1e308,
        INFINITY, NAN,  1e15, 1e15 + 1, 0.1,   1e300,  -INFINITY
    };
    struct plot_point t[3];
    struct plot_series s[2] = { { .name = "s", .points = t, .npoints = 3 },
                                { .name = "empty" } };
    struct plot p = picture_of(s, 2);
    size_t n = 0;

    draw_page(&(struct plot){ 0 });
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        for (size_t j = 0; j < COUNT_OF(odd); j++)
            for (unsigned k = 0; k < 24; k++, n++) {
                s[0].npoints = 1 + k % 3;
                s[0].style = (enum plot_style)(n % 6);
                p.x.scale = k & 1 ? PLOT_LOG : PLOT_LINEAR;
                p.y.scale = k & 2 ? PLOT_LOG : PLOT_LINEAR;
                p.x.format = p.y.format = (enum plot_format)(k / 4 % 4);
                for (size_t q = 0; q < 3; q++)
                    t[q] = (struct plot_point){
                        .x = odd[(i + q) % COUNT_OF(odd)],
                        .y = odd[j],
                        .err_low = odd[(j + q) % COUNT_OF(odd)],
                        .err_high = odd[(i + j) % COUNT_OF(odd)],
                    };
                p.y.min = k % 5 == 0 ? odd[(i + j) % COUNT_OF(odd)] : 0;
                draw_page(&p);
            }
}

static void long_texts_stay_in_the_picture(void **state)
{
    (void)state;
    char words[4000] = "", word[2000];
    struct plot_series s = one_line;

    for (unsigned i = 0; i < 300; i++)
        strcat(words, "many words ");
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    s.name = word;
    const char *const names[] = { word, words, "c" };
    struct plot_reference r = { .vertical = true, .at = 1, .label = words };
    struct plot p = { .title = words,
                      .subtitle = word,
                      .caption = words,
                      .x = { .label = words,
                             .unit = word,
                             .categories = names,
                             .ncategories = 3 },
                      .y = { .label = word, .unit = words },
                      .series = &s,
                      .nseries = 1,
                      .references = &r,
                      .nreferences = 1 };
    draw_page(&p);
    /* No text has more letters than 800 px hold at 11 px and half an em. */
    for (const char *at = page; (at = strstr(at, "<text")) != NULL; at++) {
        const char *start = strchr(at, '>') + 1;
        const char *title = strstr(start, "<title>");
        const char *end = strstr(start, "</text>");
        if (title && title < end)
            start = strstr(title, "</title>") + 8;
        assert_true(end - start < 150);
    }
    assert_true(times_drawn("class=\"t\"") == 3 &&
                times_drawn("class=\"f\"") == 4);
    const char *last = page;
    for (const char *at = page; (at = strstr(at, "class=\"t\"")) != NULL; at++)
        last = at;
    assert_memory_equal(strstr(last, "</text>") - 3, "\xe2\x80\xa6", 3);
}

static void the_same_again(void **state)
{
    (void)state;
    static char first[sizeof page];
    struct plot_series s[] = { one_line, one_line, one_line };
    s[1].style = PLOT_BARS;
    s[2].style = PLOT_BOTH;
    struct plot p = picture_of(s, 3);
    p.x.min = 0.123;
    p.x.max = 2.987;

    draw_page(&p);
    strcpy(first, page);
    draw_page(&p);
    assert_string_equal(page, first);
    decimal_comma = true;
    draw_page(&p);
    decimal_comma = false;
    assert_string_equal(page, first);
}

static void a_put_that_fails_ends_it(void **state)
{
    (void)state;
    static struct plot_point t[500];
    struct plot_series s = { .name = "s", .points = t, .npoints = 500 };
    const struct plot p = picture_of(&s, 1);
    unsigned calls = 0;

    for (size_t i = 0; i < 500; i++)
        t[i] = (struct plot_point){ .x = (double)i, .y = sin((double)i) };
    draw_page(&p);
    calls = UINT_MAX - puts_left;
    assert_true(calls > 5);
    for (unsigned i = 1; i <= calls; i++) {
        start_page();
        puts_left = i;
        assert_false(plot_write(&p, put_page, page));
        assert_int_equal(puts_left, 0);
    }
}

static void no_memory_is_no_picture(void **state)
{
    (void)state;
    struct plot_series s = one_line;
    s.style = PLOT_BARS; /* needs the most */
    const struct plot p = picture_of(&s, 1);

    allocations = 0;
    draw_page(&p);
    const unsigned all = allocations;
    assert_true(all >= 4);
    for (unsigned i = 1; i <= all; i++) {
        start_page();
        allocations = 0;
        failing_allocation = i;
        errno = 0;
        const bool drawn = plot_write(&p, put_page, page);
        failing_allocation = 0;
        assert_false(drawn);
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(page_used, 0);
    }
}

/* ----------------------------------------------------------------- files */

static char folder[] = "/tmp/test_plot.XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static const char *in_folder(const char *name)
{
    static char path[4][128];
    static unsigned turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(in_folder("a.svg"));
    unlink(in_folder("link.svg"));
    return rmdir(folder); /* fails where a temporary file was left */
}

static unsigned files_in_folder(void)
{
    unsigned n = 0;
    DIR *d = opendir(folder);

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

/* The file at path is the picture p. */
static void assert_saved(const struct plot *p, const char *path)
{
    static char bytes[sizeof page];
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    draw_page(p);
    assert_int_equal(n, page_used);
    assert_memory_equal(bytes, page, n);
}

static void saving_replaces_the_whole_file(void **state)
{
    (void)state;
    const struct plot p = picture_of(&one_line, 1);
    struct plot q = picture_of(NULL, 0);
    const struct rlimit little = { 100, RLIM_INFINITY };
    struct rlimit before;
    struct stat st;

    assert_true(plot_save(&p, in_folder("a.svg")));
    assert_saved(&p, in_folder("a.svg"));
    assert_int_equal(stat(in_folder("a.svg"), &st), 0);
    const mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);

    /* A write that fails leaves the old picture and nothing else. */
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &little);
    const bool saved = plot_save(&q, in_folder("a.svg"));
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(saved);
    assert_non_null(strstr(plot_why(), strerror(EFBIG)));
    assert_saved(&p, in_folder("a.svg"));
    assert_int_equal(files_in_folder(), 1);

    /* Through a link: the link stays one. */
    assert_int_equal(symlink("a.svg", in_folder("link.svg")), 0);
    assert_true(plot_save(&q, in_folder("link.svg")));
    assert_int_equal(lstat(in_folder("link.svg"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_saved(&q, in_folder("a.svg"));
    assert_int_equal(files_in_folder(), 2);
}

static void saving_says_what_is_wrong(void **state)
{
    (void)state;
    const struct plot p = picture_of(&one_line, 1);

    assert_false(plot_save(&p, in_folder("no/such/a.svg")));
    assert_non_null(strstr(plot_why(), strerror(ENOENT)));
    assert_false(plot_save(&p, folder));
    assert_non_null(strstr(plot_why(), strerror(EISDIR)));
}

/* With a pipe of our own: a mistake here, made by root, would rename a file
 * over whatever device the test names. */
static void what_is_no_file_is_not_replaced(void **state)
{
    (void)state;
    static char bytes[1 << 16]; /* as much as a pipe holds */
    const struct plot p = picture_of(&one_line, 1);
    struct stat st;

    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    const int fd = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    assert_true(plot_save(&p, in_folder("pipe")));
    const ssize_t n = read(fd, bytes, sizeof bytes);
    close(fd);
    assert_int_equal(stat(in_folder("pipe"), &st), 0);
    unlink(in_folder("pipe"));
    assert_true(S_ISFIFO(st.st_mode));
    draw_page(&p);
    assert_int_equal(n, page_used);
    assert_memory_equal(bytes, page, page_used);
}

/* ----------------------------------------------------------------- arrays */

static void an_array_is_drawn_step_by_step(void **state)
{
    (void)state;
    const unsigned cells[2][5] = { { 0, 1, 0, 1, 0 }, { 0, 1, 0, 1, 0 } };
    const size_t add[] = { 1, 3, 3 }, has[] = { 1, 2, 99 };
    const struct plot_step steps[] = {
        { .label = "add <x>",
          .cells = cells[0],
          .touched = add,
          .ntouched = 3 },
        { .label = "has y",
          .result = "no",
          .cells = cells[1],
          .touched = has,
          .ntouched = 3 },
    };
    const struct plot_array a = { .title = "Five & bits",
                                  .caption = "foot",
                                  .ncells = 5,
                                  .steps = steps,
                                  .nsteps = 2 };
    start_page();
    assert_true(plot_array_write(&a, put_page, page));
    assert_well_formed();
    assert_true(has_text("add &lt;x&gt;") && has_text("no"));
    assert_true(has_text("h1") && has_text("h2 h3"));
    assert_int_equal(times_drawn("class=\"band c0\""), 2); /* set by the add */
    assert_int_equal(times_drawn("class=\"line c0\""), 1); /* asked, and set */
    assert_int_equal(times_drawn("class=\"line c1\""),
                     1); /* asked, and empty */
    assert_int_equal(times_drawn("<path class=\"axis\""), 10);

    /* Too long for one row; and nothing at all. */
    const unsigned many[100] = { 0 };
    const struct plot_step wide = { .cells = many };
    start_page();
    assert_true(plot_array_write(
        &(struct plot_array){ .ncells = 100, .steps = &wide, .nsteps = 1 },
        put_page, page));
    assert_well_formed();
    double x0, y0, x99, y99;
    place_of("0", &x0, &y0); /* a value; the indices are below */
    place_of("99", &x99, &y99);
    assert_true(y99 > y0 + 100 && x99 < 800);
    start_page();
    assert_true(plot_array_write(&(struct plot_array){ 0 }, put_page, page));
    assert_well_formed();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_has_its_parts),
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(what_is_not_finite_breaks_the_line),
        cmocka_unit_test(log_axes_skip_what_is_not_above_zero),
        cmocka_unit_test(points_lie_where_their_values_are),
        cmocka_unit_test(ends_can_be_fixed),
        cmocka_unit_test(numbers_read_well),
        cmocka_unit_test(ticks_are_nice),
        cmocka_unit_test(forty_series_can_be_told_apart),
        cmocka_unit_test(panels_have_names_and_yardsticks),
        cmocka_unit_test(what_is_expected_is_dashed_and_said),
        cmocka_unit_test(long_names_are_not_cut),
        cmocka_unit_test(names_at_line_ends_do_not_overlap),
        cmocka_unit_test(styles_draw_what_they_say),
        cmocka_unit_test(reference_lines_have_labels),
        cmocka_unit_test(degenerate_pictures_work),
        cmocka_unit_test(long_texts_stay_in_the_picture),
        cmocka_unit_test(the_same_again),
        cmocka_unit_test(a_put_that_fails_ends_it),
        cmocka_unit_test(no_memory_is_no_picture),
        cmocka_unit_test(saving_replaces_the_whole_file),
        cmocka_unit_test(saving_says_what_is_wrong),
        cmocka_unit_test(what_is_no_file_is_not_replaced),
        cmocka_unit_test(an_array_is_drawn_step_by_step),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/*
 * show.c - numbers and text for people
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

/* --------------------------------------------------------------- numbers */

#define SHOW_BYTES 48

/* Enough buffers for every number of one printf. */
static char *show_buffer(void)
{
    static char buffers[8][SHOW_BYTES];
    static unsigned next;
    return buffers[next++ % 8];
}

const char *show_bytes(uint64_t nbytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
    char *const s = show_buffer();
    if (nbytes < 1024) {
        snprintf(s, SHOW_BYTES, "%llu B", (unsigned long long)nbytes);
        return s;
    }
    double v = (double)nbytes / 1024;
    size_t i = 0;
    while (v >= 1023.95 && i + 1 < sizeof units / sizeof units[0]) {
        v /= 1024;
        i++;
    }
    snprintf(s, SHOW_BYTES, "%.1f %s", v, units[i]);
    return s;
}

const char *show_keys(uint64_t nkeys)
{
    char *const s = show_buffer();
    snprintf(s, SHOW_BYTES, "%llu key%s", (unsigned long long)nkeys,
             nkeys == 1 ? "" : "s");
    return s;
}

/* Three digits of a number that is not negative, behind a word or two. */
static const char *show_digits(const char *before, double value)
{
    static const char *const words[] = { "million", "billion", "trillion",
                                         "quadrillion", "quintillion" };
    char *const s = show_buffer();
    double v = value;
    if (v >= 1000) {
        const double unit = pow(10, floor(log10(v)) - 2);
        v = round(v / unit) * unit;
    }
    if (v < 1e6) {
        snprintf(s, SHOW_BYTES, "%s%.0f", before, v);
        return s;
    }
    size_t i = 0;
    for (v /= 1e6; v >= 1000 && i + 1 < sizeof words / sizeof words[0]; i++)
        v /= 1000;
    snprintf(s, SHOW_BYTES, "%s%.3g %s", before, v, words[i]);
    return s;
}

const char *show_rounded(double value)
{
    return show_digits("", value);
}

const char *show_estimate(double value)
{
    return show_digits("about ", value);
}

const char *show_count(uint64_t n)
{
    char *const s = show_buffer();
    if (n >= 1000000) {
        const double unit = pow(10, floor(log10((double)n)) - 2);
        return show_digits(fmod((double)n, unit) > 0 ? "about " : "",
                           (double)n);
    }
    snprintf(s, SHOW_BYTES, "%llu", (unsigned long long)n);
    return s;
}

const char *show_rate(double rate)
{
    char *const s = show_buffer();
    if (isnan(rate))
        snprintf(s, SHOW_BYTES, "unknown");
    else if (rate > 0 && rate < 0x1p-64) /* two keys share a hash as often */
        return show_digits("less than 1 in ", 0x1p64);
    else if (rate == 0 || rate >= 0.99995e-4)
        snprintf(s, SHOW_BYTES, "%.3g %%", rate * 100);
    else
        return show_digits("1 in ", 1 / rate);
    return s;
}

void show_rates(double a, double b, const char *out[2])
{
    const double rates[] = { a, b };
    const char *const shown[] = { show_rate(a), show_rate(b) };
    const bool small = !strchr(shown[0], '%') || !strchr(shown[1], '%');
    for (int i = 0; i < 2; i++)
        out[i] = small && rates[i] > 0 && strchr(shown[i], '%')
                     ? show_digits("1 in ", 1 / rates[i])
                     : shown[i];
}

void rate_column(double rate, int *wide)
{
    const int n = (int)strlen(show_rate(rate));
    *wide = n > *wide ? n : *wide;
}

const char *show_real(double value)
{
    char *const s = show_buffer();
    snprintf(s, SHOW_BYTES, "%.4g", value);
    return s;
}

const char *show_fact(const bly_fact *fact)
{
    if (fact->type == BLY_CHOICE)
        return show_name(fact->word);
    if (fact->type == BLY_REAL)
        return show_real(fact->real);
    char *const s = show_buffer();
    snprintf(s, SHOW_BYTES, "%llu", (unsigned long long)fact->uint);
    return s;
}

/* ------------------------------------------------------------------ text */

/* Three bytes of UTF-8: a separator of lines or paragraphs, or what turns the
 * direction of writing around (U+2028 to U+202E, U+2066 to U+2069). */
static bool turns_text(const unsigned char *s)
{
    return s[0] == 0xe2 && ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
                            (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

size_t steers(const unsigned char *s, size_t len)
{
    return len == 0                                  ? 1
           : len == 1 && (*s < ' ' || *s == 0x7f)    ? 1
           : len == 2 && s[0] == 0xc2 && s[1] < 0xa0 ? 2
           : len == 3 && turns_text(s)               ? 3
                                                     : 0;
}

void text_clean(void *text, size_t n, bool keep_lines)
{
    unsigned char *s = text;
    unsigned char *const end = s + n;
    while (s < end) {
        if (keep_lines && *s == '\0') /* the end of a key, with -0 */
            *s = '\n';
        const size_t len = utf8_length(s, (size_t)(end - s));
        const size_t bad =
            keep_lines && (*s == '\n' || *s == '\t') ? 0 : steers(s, len);
        memset(s, '?', bad);
        s += bad ? bad : len;
    }
}

/* As long as a path can be; two of them stand in one printf at most. */
#define SHOW_TEXT_BYTES 4100

const char *show_text(const void *text, size_t n)
{
    static _Thread_local char buffers[2][SHOW_TEXT_BYTES];
    static _Thread_local unsigned next;
    char *const s = buffers[next++ % 2];
    const size_t fits = n < SHOW_TEXT_BYTES ? n : SHOW_TEXT_BYTES - 1;
    memcpy(s, text, fits);
    s[fits] = '\0';
    text_clean(s, fits, false);
    if (fits < n)
        memcpy(s + fits - 3, "...", 3);
    return s;
}

const char *show_name(const char *name)
{
    return show_text(name, strlen(name));
}

FILE *text_begin(struct text *t)
{
    *t = (struct text){ 0 };
    t->to = open_memstream(&t->at, &t->n);
    if (!t->to)
        exit(out_finish(fail("out of memory")));
    return t->to;
}

char *text_end(struct text *t)
{
    const bool whole = !ferror(t->to);
    /* glibc closes it with 0 also where it had no room for the last bytes. */
    if (fclose(t->to) != 0 || !whole || !t->at)
        exit(out_finish(fail("out of memory")));
    return t->at;
}

#define LINE_WIDTH 79

/* The columns that bytes take on a terminal, approximately: UTF-8 continuation
 * bytes take none. */
static int columns(const char *s, size_t n)
{
    int c = 0;
    for (size_t i = 0; i < n; i++)
        c += ((unsigned char)s[i] & 0xc0) != 0x80;
    return c;
}

void print_wrapped(FILE *to, const char *text, int at, int indent)
{
    bool line_start = true;
    while (*text) {
        if (*text == '\n') {
            /* Blanks only where a word follows: no trailing ones. */
            fputc('\n', to);
            at = 0;
            line_start = true;
            text++;
            continue;
        }
        if (*text == ' ') {
            text++;
            continue;
        }
        const size_t n = strcspn(text, " \n");
        const int wide = columns(text, n);
        if (!line_start && at + 1 + wide > LINE_WIDTH) {
            fputc('\n', to);
            at = 0;
            line_start = true;
        }
        if (line_start) {
            if (at < indent)
                fprintf(to, "%*s", indent - at, "");
            at = at < indent ? indent : at;
        } else {
            fputc(' ', to);
            at++;
        }
        for (size_t i = 0; i < n; i++)
            fputc(text[i] == HARD_BLANK ? ' ' : text[i], to);
        at += wide;
        line_start = false;
        text += n;
    }
}

void print_row(const char *name, int column, char *text)
{
    const int at = printf("%-*s  ", column - 2, name);
    print_wrapped(stdout, text ? text : "", at, column);
    putchar('\n');
    free(text);
}

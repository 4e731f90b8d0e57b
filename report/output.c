/*
 * output.c - what goes to people: messages, numbers, wrapped text
 *
 * Tables and JSON go through stdio. Lines of keys do not: workers hand whole
 * blocks to out_write() (pipeline.c). A command does one or the other.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static const char *running;
bool quiet;

void set_running(const char *command)
{
    running = command;
}

const char *running_command(void)
{
    return running;
}

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

/* One line, whatever file names and keys are in it. */
__attribute__((format(printf, 2, 0))) static void
say(const char *what, const char *format, va_list ap)
{
    char text[2048];
    const int n = vsnprintf(text, sizeof text, format, ap);
    if (n >= (int)sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    text_clean(text, strlen(text), false);
    progress_clear();
    fflush(stdout);
    if (running)
        fprintf(stderr, "bloomery: %s: %s%s\n", running, what, text);
    else
        fprintf(stderr, "bloomery: %s%s\n", what, text);
}

int fail(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("", format, ap);
    va_end(ap);
    return TROUBLE;
}

void warn(const char *format, ...)
{
    va_list ap;
    if (quiet)
        return;
    va_start(ap, format);
    say("warning: ", format, ap);
    va_end(ap);
}

void note(const char *format, ...)
{
    va_list ap;
    if (quiet)
        return;
    va_start(ap, format);
    say("", format, ap);
    va_end(ap);
}

int fail_path(const char *path, int error)
{
    return fail("%s: %s", path, strerror(error));
}

int fail_library(void)
{
    return fail("%s", bly_error());
}

int out_write(const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n) {
        const ssize_t put = write(STDOUT_FILENO, at, n);
        if (put < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        at += put;
        n -= (size_t)put;
    }
    return 0;
}

bool out_is_terminal(void)
{
    static int known = -1;
    if (known < 0)
        known = isatty(STDOUT_FILENO);
    return known;
}

void print_key(const void *key, size_t n)
{
    char *const copy = out_is_terminal() ? malloc(n + 1) : NULL;
    if (copy) {
        memcpy(copy, key, n);
        text_clean(copy, n, true);
    }
    /* Without memory for a clean one, a terminal is shown nothing. */
    if (copy || !out_is_terminal())
        fwrite(copy ? copy : key, 1, n, stdout);
    free(copy);
}

void print_key_end(bool nul)
{
    putchar(nul && !out_is_terminal() ? '\0' : '\n');
}

int out_finish(int status)
{
    /* Closing tells what a remote disk thinks of the last bytes. A descriptor
     * that was never open matters only if there was something to say. */
    const bool failed = ferror(stdout) || fflush(stdout) != 0;
    const int error = errno;
    if (!failed && (close(STDOUT_FILENO) == 0 || errno == EBADF))
        return status;
    return fail("standard output: %s", strerror(failed ? error : errno));
}

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

int fact_column(const bly_fact *facts, size_t n, const char *other)
{
    size_t widest = strlen(other);
    for (size_t i = 0; i < n; i++)
        if (strlen(facts[i].name) > widest)
            widest = strlen(facts[i].name);
    return (int)widest + 1;
}

/* ------------------------------------------------------------------ text */

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

/* Columns that bytes take on a terminal, near enough: UTF-8 continuation
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

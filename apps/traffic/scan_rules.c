/*
 * scan_rules.c - strings to look for: lists of lines, and Snort's rules
 */
#include "apps/traffic/scan_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "io/source.h"
#include "report/say.h"

#define NO_MEMORY "out of memory"
#define MOST_LINE ((size_t)1 << 20)

struct span {
    const unsigned char *at;
    size_t n;
};

/* ------------------------------------------------------------------ strings */

static const char *string_add(struct rules *r, const struct scan_string *s)
{
    if (s->n == 0)
        return "an empty string";
    if (s->n > SCAN_LONGEST)
        return "a string of more than 4096 bytes";
    if (r->n == SCAN_MOST)
        return "more than 16777216 strings";
    if (!GROW(&r->strings, &r->room, r->n + 1))
        return NO_MEMORY;
    struct scan_string *const to = &r->strings[r->n];
    *to = *s;
    to->at = malloc(s->n);
    if (!to->at)
        return NO_MEMORY;
    for (size_t i = 0; i < s->n; i++)
        to->at[i] = s->nocase ? scan_lower(s->at[i]) : s->at[i];
    r->n++;
    return NULL;
}

void rules_free(struct rules *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->strings[i].at);
    free(r->strings);
    *r = (struct rules){ 0 };
}

/* ------------------------------------------------------------------- Snort */

static struct span trimmed(struct span s)
{
    while (s.n && (s.at[0] == ' ' || s.at[0] == '\t')) {
        s.at++;
        s.n--;
    }
    while (s.n && (s.at[s.n - 1] == ' ' || s.at[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static bool is(struct span s, const char *word)
{
    return s.n == strlen(word) && memcmp(s.at, word, s.n) == 0;
}

/* What is in front of a byte that stands outside of quotes; *s is what is
 * behind it, at the end nothing. */
static struct span cut_at(struct span *s, unsigned char stop)
{
    bool quoted = false;
    size_t i = 0;
    for (; i < s->n && (quoted || s->at[i] != stop); i++) {
        if (s->at[i] == '\\' && i + 1 < s->n)
            i++;
        else if (s->at[i] == '"')
            quoted = !quoted;
    }
    if (i > s->n)
        i = s->n;
    const struct span front = { s->at, i };
    const size_t used = i < s->n ? i + 1 : i;
    s->at += used;
    s->n -= used;
    return front;
}

static bool number_of(struct span s, uint64_t *out)
{
    uint64_t x = 0;
    s = trimmed(s);
    if (s.n == 0 || s.n > 18)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.at[i] < '0' || s.at[i] > '9')
            return false;
        x = x * 10 + (s.at[i] - '0');
    }
    *out = x;
    return true;
}

static int hex_digit(unsigned char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* The bytes of "GET|20 2f|\"x": out has room for as many as the text has. */
static const char *content_bytes(struct span s, unsigned char *out, size_t *n)
{
    bool hex = false;
    int high = -1;
    *n = 0;
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = s.at[i];
        if (c == '|') {
            if (high >= 0)
                return "half of a byte between bars";
            hex = !hex;
        } else if (hex && c != ' ') {
            const int digit = hex_digit(c);
            if (digit < 0)
                return "no hexadecimal digits between bars";
            if (high < 0) {
                high = digit;
            } else {
                out[(*n)++] = (unsigned char)(high << 4 | digit);
                high = -1;
            }
        } else if (!hex) {
            const bool escaped = c == '\\' && i + 1 < s.n;
            i += escaped;
            out[(*n)++] = s.at[i];
        }
    }
    return hex ? "a bar without its other" : NULL;
}

struct content {
    struct scan_string string;
    bool open, absent; /* there is one; it must not be there */
};

/* nocase, "offset 4" or "offset:4": what belongs to the content before it. */
static const char *modifier_take(struct content *c, struct span name,
                                 struct span value)
{
    if (is(name, "nocase"))
        c->string.nocase = true;
    else if (is(name, "offset")) {
        if (!number_of(value, &c->string.offset))
            return "offset wants a number";
    } else if (is(name, "depth")) {
        if (!number_of(value, &c->string.depth) || !c->string.depth)
            return "depth wants a number from 1 on";
    }
    return NULL;
}

static const char *content_take(struct content *c, struct span value,
                                unsigned char *bytes)
{
    struct span quoted = trimmed(cut_at(&value, ','));
    *c = (struct content){ .open = true, .string.at = bytes };
    if (quoted.n && quoted.at[0] == '!') {
        c->absent = true;
        quoted.at++;
        quoted.n--;
        quoted = trimmed(quoted);
    }
    if (quoted.n < 2 || quoted.at[0] != '"' || quoted.at[quoted.n - 1] != '"')
        return "content wants a text in quotes";
    const char *why = content_bytes(
        (struct span){ quoted.at + 1, quoted.n - 2 }, bytes, &c->string.n);
    while (!why && value.n) {
        struct span option = trimmed(cut_at(&value, ','));
        const struct span name = cut_at(&option, ' ');
        why = modifier_take(c, name, option);
    }
    return why;
}

static const char *content_end(struct rules *r, struct content *c)
{
    if (!c->open)
        return NULL;
    c->open = false;
    if (c->absent) {
        r->absent++;
        return NULL;
    }
    c->string.line = r->lines;
    return string_add(r, &c->string);
}

static const char *snort_options(struct rules *r, struct span body,
                                 unsigned char *bytes)
{
    struct content c = { .open = false };
    const size_t before = r->n;
    uint64_t sid = 0, absent = r->absent;
    const char *why = NULL;
    while (!why && body.n) {
        struct span value = cut_at(&body, ';');
        const struct span name = trimmed(cut_at(&value, ':'));
        if (is(name, "content")) {
            why = content_end(r, &c);
            if (!why)
                why = content_take(&c, value, bytes);
        } else if (is(name, "sid")) {
            if (!number_of(value, &sid))
                why = "sid wants a number";
        } else if (c.open) {
            why = modifier_take(&c, name, value);
        }
    }
    if (!why)
        why = content_end(r, &c);
    for (size_t i = before; i < r->n; i++)
        r->strings[i].rule = sid ? sid : r->lines;
    r->without += !why && r->n == before && r->absent == absent;
    return why;
}

static const char *snort_line(struct rules *r, struct span line)
{
    line = trimmed(line);
    if (line.n == 0 || line.at[0] == '#')
        return NULL;
    const unsigned char *const open = memchr(line.at, '(', line.n);
    /* A rule has its options in brackets; a line may have them alone. */
    struct span body = line;
    if (open && line.at[line.n - 1] == ')' &&
        !memchr(line.at, '"', (size_t)(open - line.at))) {
        body.at = open + 1;
        body.n = (size_t)(line.at + line.n - 1 - body.at);
    }
    unsigned char *const bytes = malloc(body.n + 1);
    if (!bytes)
        return NO_MEMORY;
    const char *const why = snort_options(r, body, bytes);
    free(bytes);
    return why;
}

/* ------------------------------------------------------------------- lines */

const char *rules_line(struct rules *r, enum rules_form form,
                       const unsigned char *at, size_t n)
{
    r->lines++;
    if (n && at[n - 1] == '\r')
        n--;
    if (form == RULES_SNORT)
        return snort_line(r, (struct span){ at, n });
    if (n == 0)
        return NULL;
    return string_add(
        r, &(struct scan_string){ .at = (unsigned char *)at,
                                  .n = n,
                                  .nocase = form == RULES_LINES_NOCASE,
                                  .rule = r->lines,
                                  .line = r->lines });
}

/* What stands in front of the last newline is taken; *used: how much of it. */
static const char *block_take(struct rules *r, enum rules_form form,
                              const unsigned char *at, size_t n, size_t *used)
{
    *used = 0;
    for (;;) {
        const unsigned char *const end =
            n > *used ? memchr(at + *used, '\n', n - *used) : NULL;
        if (!end)
            return NULL;
        const size_t line = (size_t)(end - at) - *used;
        const char *const why = rules_line(r, form, at + *used, line);
        if (why)
            return why;
        *used += line + 1;
    }
}

bool rules_read(struct rules *r, enum rules_form form, const char *path)
{
    struct source *const s = source_open(path, -1, SOURCE_ANY);
    unsigned char *const buf = s ? malloc(MOST_LINE) : NULL;
    const char *why = NULL;
    size_t have = 0;
    ptrdiff_t got = 0;
    if (!s)
        return refuse_path(path, errno);
    if (!buf) {
        source_close(s);
        return refuse(NO_MEMORY);
    }
    r->lines = 0;
    while (!why && (got = source_read(s, buf + have, MOST_LINE - have)) > 0) {
        size_t used;
        have += (size_t)got;
        why = block_take(r, form, buf, have, &used);
        memmove(buf, buf + used, have - used);
        have -= used;
        if (!why && have == MOST_LINE) {
            r->lines++;
            why = "a line of more than 1048576 bytes";
        }
    }
    if (!why && got == 0 && have)
        why = rules_line(r, form, buf, have);
    if (got < 0)
        fail("%s: %s", path, source_error(s));
    else if (why)
        fail("%s: line %llu: %s", path, (unsigned long long)r->lines, why);
    free(buf);
    source_close(s);
    return got >= 0 && !why;
}

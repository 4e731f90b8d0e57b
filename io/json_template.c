/*
 * json_template.c - lines of JSON that look like one that was read before
 */
#include <string.h>

#include "io/cutter.h"
#include "io/json_scan.h"
#include "io/json_template.h"

/* Lines that do not fit before another template is tried: where two kinds of
 * lines alternate, one of them is fast. */
#define TEMPLATE_MISSES 8

/* ---------------------------------------------------------------- matching */

/* What is behind the glue at s, or NULL. */
static inline const char *match_glue(const struct json_template *t, size_t i,
                                     const char *s)
{
    const struct json_glue *const g = &t->glue[i];
    for (size_t w = 0; w < g->nwords; w++, s += 8)
        if (get_le((const unsigned char *)s, 8) != t->words[g->word + w])
            return NULL;
    const uint64_t x = get_le((const unsigned char *)s, 8);
    return (x & g->mask) == g->last ? s + g->nlast : NULL;
}

/* What is behind the string whose first quote is at s, or NULL. `stops` has the
 * quotes and backslashes of the first 64 bytes of the line. */
static inline const char *match_string(const char *s, const char *line,
                                       const char *end, uint64_t stops)
{
    const char *at = s + 1;
    const size_t place = (size_t)(at - line);
    if (place < CUTTER_WINDOW && stops >> place) {
        at += __builtin_ctzll(stops >> place);
    } else {
        at = place < CUTTER_WINDOW ? line + CUTTER_WINDOW : at;
        while (!(stops = scan_quotes(at)))
            if ((at += SCAN_BYTES) >= end)
                return NULL;
        at += __builtin_ctzll(stops);
    }
    if (__builtin_expect(*at == '\\', 0)) {
        struct json_slice out;
        return at < end ? json_scan_string(s, end, &out) : NULL;
    }
    return at < end ? at + 1 : NULL;
}

/* What is behind the number or the word at s, or NULL. Most are plain integers
 * of up to 8 digits. */
static inline const char *match_scalar(const char *s)
{
    const char *const d = json_scan_eight(s);
    if (__builtin_expect((*d == ',' || *d == '}') && d > s && *s != '0', 1))
        return d;
    struct json_slice out;
    return json_scan_scalar(s, &out);
}

/* A value as a slice. */
static struct json_slice slice_of(const char *from, const char *to)
{
    struct json_slice out;
    if (*from != '"') {
        json_scan_scalar(from, &out);
        return out;
    }
    const size_t n = (size_t)(to - from) - 2;
    return (struct json_slice){ JSON_STRING, from + 1, n,
                                memchr(from + 1, '\\', n) != NULL };
}

bool json_template_find(struct json_template *t, const char *line, size_t n,
                        bool escapes, struct json_slice *found)
{
    const char *const end = line + n;
    const char *s = line, *from = line, *to = line;
    if (!t->nvalues)
        return false;
    uint64_t stops = cutter_ends(line, '"');
    if (escapes)
        stops |= cutter_ends(line, '\\');
    for (size_t i = 0; i < t->nvalues; i++) {
        /* Glue has no newline, so that it does not pass the end. */
        const char *const value = match_glue(t, i, s);
        s = !value          ? NULL
            : *value == '"' ? match_string(value, line, end, stops)
                            : match_scalar(value);
        if (!s)
            break;
        if (i == t->meant) {
            from = value;
            to = s;
        }
    }
    s = s ? match_glue(t, t->nvalues, s) : NULL;
    t->misses = s == end ? 0 : t->misses + 1;
    if (s != end)
        return false;
    if (*from == '"' && !escapes)
        *found = (struct json_slice){ JSON_STRING, from + 1,
                                      (size_t)(to - from) - 2, false };
    else
        *found = slice_of(from, to);
    return true;
}

/* ---------------------------------------------------------------- learning */

/* Take down the glue before value i. False if there is no room. */
static bool put_glue(struct json_template *t, size_t i, size_t *nwords,
                     const char *from, const char *to)
{
    const size_t n = (size_t)(to - from);
    const size_t words = n > 8 ? (n - 1) / 8 : 0, last = n - words * 8;
    if (i > TEMPLATE_VALUES || *nwords + words > TEMPLATE_WORDS)
        return false;
    struct json_glue *const g = &t->glue[i];
    g->word = (uint16_t)*nwords;
    g->nwords = (uint16_t)words;
    g->nlast = (uint16_t)last;
    for (size_t w = 0; w < words; w++, from += 8)
        t->words[(*nwords)++] = get_le((const unsigned char *)from, 8);
    g->mask = last == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * last) - 1;
    g->last = get_le((const unsigned char *)from, 8) & g->mask;
    return true;
}

/* What is behind the value at s; s itself where none begins there. A string is
 * a name, and glue, if a colon follows. */
static const char *value_end(const char *s, const char *end, bool *is_value)
{
    struct json_slice value;
    *is_value = false;
    if (*s != '"') {
        const char *const behind = json_scan_scalar(s, &value);
        *is_value = behind != NULL;
        return behind ? behind : s;
    }
    const char *const behind = json_scan_string(s, end, &value);
    const char *after = behind;
    while (after && (*after == ' ' || *after == '\t'))
        after++;
    *is_value = after && *after != ':';
    return behind ? behind : s;
}

static bool learn_line(struct json_template *t, const char *line, size_t n,
                       const struct json_slice *found)
{
    const char *const end = line + n;
    const char *glue = line;
    size_t nvalues = 0, nwords = 0;
    bool meant = false;
    for (const char *s = line; s < end;) {
        bool is_value;
        const char *const behind = value_end(s, end, &is_value);
        if (is_value) {
            if (nvalues == TEMPLATE_VALUES ||
                !put_glue(t, nvalues, &nwords, glue, s))
                return false;
            if (s + (*s == '"') == found->at) {
                t->meant = nvalues;
                meant = true;
            }
            nvalues++;
            glue = behind;
        }
        s = behind > s ? behind : s + 1;
    }
    if (!meant || memchr(line, '\n', n) ||
        !put_glue(t, nvalues, &nwords, glue, end))
        return false;
    t->nvalues = nvalues;
    return true;
}

void json_template_learn(struct json_template *t, const char *line, size_t n,
                         const struct json_slice *found)
{
    if (t->nvalues && t->misses < TEMPLATE_MISSES)
        return;
    /* A line that cannot become one is not tried again at once. */
    if (!t->nvalues && t->misses++ % TEMPLATE_MISSES)
        return;
    t->nvalues = 0;
    if (learn_line(t, line, n, found))
        t->misses = 0;
}

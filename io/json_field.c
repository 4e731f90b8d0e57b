/*
 * json_field.c - fields of one line of JSON, found where they stand
 *
 * The grammar is checked: brackets, commas, colons, names, numbers, words,
 * escapes, and that nothing follows. Strings are in json_string.c.
 *
 * There is no recursion. The containers that are open are a stack of bits and
 * of positions, DEPTH of them. matched[i] counts the tokens of path i that lead
 * to where the reader is; path i concerns the members of the container at depth
 * d exactly where matched[i] is d.
 */
#define _GNU_SOURCE /* strdup */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_field.h"

#define DEPTH 256
#define MAX_PATHS 4

/* What json_find_fast() compares with. */
static bool path_ready(struct json_path *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const size_t n = p->length[i] < 8 ? p->length[i] : 8;
        p->head[i] = p->mask[i] = 0;
        for (size_t j = n; j-- > 0;) {
            p->head[i] = p->head[i] << 8 | (unsigned char)p->token[i][j];
            p->mask[i] = p->mask[i] << 8 | 0xff;
        }
        p->indexed |= n && p->token[i][0] >= '0' && p->token[i][0] <= '9';
    }
    return true;
}

bool json_path_read(struct json_path *p, const char *pointer)
{
    *p = (struct json_path){ .text = strdup(pointer) };
    if (!p->text)
        return false;
    char *from = p->text, *to = p->text;
    if (*from == '/')
        from++;
    const bool plain = pointer[0] != '/';
    for (;;) {
        if (p->n == JSON_PATH_TOKENS)
            break;
        p->token[p->n] = to;
        while (*from && (plain || *from != '/')) {
            if (!plain && *from == '~') {
                if (from[1] != '0' && from[1] != '1')
                    goto bad;
                *to++ = from[1] == '0' ? '~' : '/';
                from += 2;
            } else {
                *to++ = *from++;
            }
        }
        p->length[p->n] = (size_t)(to - p->token[p->n]);
        p->n++;
        if (!*from)
            return path_ready(p);
        from++;
    }
bad:
    json_path_free(p);
    return false;
}

bool json_path_dotted(struct json_path *p, const char *dotted)
{
    if (dotted[0] == '/')
        return json_path_read(p, dotted);
    *p = (struct json_path){ .text = strdup(dotted) };
    const char *at = p->text;
    while (at && p->n < JSON_PATH_TOKENS) {
        const size_t n = strcspn(at, ".");
        p->token[p->n] = at;
        p->length[p->n++] = n;
        if (!at[n])
            return path_ready(p);
        at += n + 1;
    }
    json_path_free(p);
    return false;
}

void json_path_free(struct json_path *p)
{
    free(p->text);
    *p = (struct json_path){ 0 };
}

/* --------------------------------------------------------------- scanning */

static const char *skip_blanks(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n'))
        s++;
    return s;
}

static const char *scan_digits(const char *s, const char *end)
{
    while (s < end && *s >= '0' && *s <= '9')
        s++;
    return s;
}

static const char *scan_number(const char *s, const char *end)
{
    if (s < end && *s == '-')
        s++;
    const char *d = scan_digits(s, end);
    if (d == s || (*s == '0' && d > s + 1))
        return NULL;
    s = d;
    if (s < end && *s == '.') {
        d = scan_digits(s + 1, end);
        if (d == s + 1)
            return NULL;
        s = d;
    }
    if (s < end && (*s == 'e' || *s == 'E')) {
        s++;
        if (s < end && (*s == '+' || *s == '-'))
            s++;
        d = scan_digits(s, end);
        if (d == s)
            return NULL;
        s = d;
    }
    return s;
}

/* A value that is not a container. */
static const char *scan_scalar(const char *s, const char *end,
                               struct json_slice *out)
{
    static const char *const words[] = { "true", "false", "null" };
    if (*s == '"')
        return json_scan_string(s, end, out);
    out->at = s;
    out->escaped = false;
    const char *behind = NULL;
    for (size_t i = 0; i < 3 && !behind; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(end - s) >= n && memcmp(s, words[i], n) == 0)
            behind = s + n;
    }
    out->type = behind ? JSON_OTHER : JSON_NUMBER;
    if (!behind)
        behind = scan_number(s, end);
    out->len = behind ? (size_t)(behind - s) : 0;
    return behind;
}

/* ------------------------------------------------------------------ paths */

struct json_place {
    const struct json_path *paths;
    size_t npaths;
    size_t matched[MAX_PATHS];
    size_t depth;                /* containers that are open */
    uint64_t arrays[DEPTH / 64]; /* which of them are arrays */
    uint32_t index[DEPTH];       /* of the member being read, in arrays */
};

static bool in_array(const struct json_place *at)
{
    const size_t d = at->depth - 1;
    return at->arrays[d / 64] >> d % 64 & 1;
}

static bool token_is_index(const struct json_path *p, size_t i, uint32_t index)
{
    uint64_t v = 0;
    const char *const t = p->token[i];
    if (p->length[i] == 0 || p->length[i] > 9 ||
        (t[0] == '0' && p->length[i] > 1))
        return false;
    for (size_t j = 0; j < p->length[i]; j++) {
        if (t[j] < '0' || t[j] > '9')
            return false;
        v = v * 10 + (unsigned)(t[j] - '0');
    }
    return v == index;
}

static bool token_is_name(const struct json_path *p, size_t i,
                          const struct json_slice *name)
{
    char buf[256];
    const char *at = name->at;
    size_t n = name->len;
    if (name->escaped) {
        if (n > sizeof buf)
            return false;
        n = json_unescape(at, n, buf);
        at = buf;
    }
    return n == p->length[i] && memcmp(at, p->token[i], n) == 0;
}

/* A member begins, name NULL for one of an array: which paths go on here? */
static void match_member(struct json_place *at, const struct json_slice *name)
{
    const size_t d = at->depth - 1;
    for (size_t i = 0; i < at->npaths; i++) {
        const struct json_path *const p = &at->paths[i];
        if (at->matched[i] > d)
            at->matched[i] = d;
        if (at->matched[i] == d && d < p->n &&
            (name ? token_is_name(p, d, name)
                  : token_is_index(p, d, at->index[d])))
            at->matched[i] = d + 1;
    }
}

/* A value stands here: is it what a path leads to? */
static void match_value(const struct json_place *at,
                        const struct json_slice *value,
                        struct json_slice *found)
{
    for (size_t i = 0; i < at->npaths; i++)
        if (at->matched[i] == at->depth && at->depth == at->paths[i].n)
            found[i] = *value;
}

/* A name and its colon: what is behind, or NULL. */
static const char *scan_name(struct json_place *at, const char *s,
                             const char *end)
{
    struct json_slice name;
    s = skip_blanks(s, end);
    if (s == end || *s != '"' || !(s = json_scan_string(s, end, &name)))
        return NULL;
    s = skip_blanks(s, end);
    if (s == end || *s != ':')
        return NULL;
    match_member(at, &name);
    return skip_blanks(s + 1, end);
}

/* Open the container at s: what is behind, and in *empty whether it ended. */
static const char *open_container(struct json_place *at, const char *s,
                                  const char *end, bool *empty)
{
    const bool array = *s == '[';
    const size_t d = at->depth;
    if (d == DEPTH)
        return NULL;
    at->depth++;
    at->index[d] = 0;
    if (d % 64 == 0)
        at->arrays[d / 64] = 0;
    at->arrays[d / 64] &= ~(UINT64_C(1) << d % 64);
    at->arrays[d / 64] |= (uint64_t)array << d % 64;
    s = skip_blanks(s + 1, end);
    *empty = s < end && *s == (array ? ']' : '}');
    if (*empty) {
        at->depth--;
        return s + 1;
    }
    if (!array)
        return scan_name(at, s, end);
    match_member(at, NULL);
    return s;
}

/* A value ended at s: close what closes, and go on to the next value. What is
 * there, or NULL; *done where it was the last. */
static const char *next_value(struct json_place *at, const char *s,
                              const char *end, bool *done)
{
    for (;;) {
        s = skip_blanks(s, end);
        *done = at->depth == 0;
        if (*done)
            return s == end ? s : NULL;
        if (s == end)
            return NULL;
        const bool array = in_array(at);
        if (*s == (array ? ']' : '}')) {
            at->depth--;
            s++;
            continue;
        }
        if (*s != ',')
            return NULL;
        if (!array)
            return scan_name(at, s + 1, end);
        at->index[at->depth - 1]++;
        match_member(at, NULL);
        return skip_blanks(s + 1, end);
    }
}

bool json_find(const char *line, size_t n, const struct json_path *paths,
               size_t npaths, struct json_slice *found)
{
    const char *const end = line + n;
    struct json_place at; /* what is of a depth is set when it is reached */
    at.paths = paths;
    at.npaths = npaths < MAX_PATHS ? npaths : MAX_PATHS;
    at.depth = 0;
    memset(at.matched, 0, sizeof at.matched);
    for (size_t i = 0; i < npaths; i++)
        found[i] = (struct json_slice){ .type = JSON_NONE };
    const char *s = skip_blanks(line, end);
    bool done = false;
    while (!done) {
        struct json_slice value;
        if (!s || s == end)
            return false;
        if (*s == '{' || *s == '[') {
            value = (struct json_slice){ .type = JSON_OTHER, .at = s };
            match_value(&at, &value, found);
            bool empty;
            s = open_container(&at, s, end, &empty);
            if (!s)
                return false;
            if (!empty)
                continue;
        } else {
            s = scan_scalar(s, end, &value);
            if (!s)
                return false;
            match_value(&at, &value, found);
        }
        s = next_value(&at, s, end, &done);
    }
    return s != NULL;
}

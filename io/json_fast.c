/*
 * json_fast.c - one field of a line of JSON, for lines as programs write them
 *
 * The same as json_find(), for one path of names, as long as a line has no
 * backslash, no blanks but spaces, and no more than JSON_FAST_DEPTH containers
 * inside of each other; whatever else it meets, wrong lines included, is left
 * to json_find().
 *
 * Quotes are found 64 bytes at a time, as in cutter.h, and the ends of strings
 * are taken from the mask.
 */
#include <string.h>

#include "io/json_scan.h"

#define JSON_FAST_DEPTH 64

struct fast_line {
    const char *end;
    const char *window;
    uint64_t quotes; /* of the window, not used up */
};

/* Look at a window; false for a backslash. */
static inline bool fast_look(struct fast_line *l, const char *window)
{
    const size_t left = (size_t)(l->end - window);
    const uint64_t valid =
        left < CUTTER_WINDOW ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
    l->window = window;
    l->quotes = cutter_ends(window, '"') & valid;
    return !(cutter_ends(window, '\\') & valid);
}

/* The next quote; NULL for none, or a backslash before it. */
static inline const char *fast_quote(struct fast_line *l)
{
    while (__builtin_expect(!l->quotes, 0))
        if (l->end - l->window <= CUTTER_WINDOW ||
            !fast_look(l, l->window + CUTTER_WINDOW))
            return NULL;
    const char *const at = l->window + __builtin_ctzll(l->quotes);
    l->quotes &= l->quotes - 1;
    return at;
}

/* The byte behind the line is no blank. */
static inline const char *fast_blanks(const char *s)
{
    while (*s == ' ')
        s++;
    return s;
}

/* Are the bytes at s, as many as token i has, that token? */
static inline bool fast_is_token(const char *s, const struct json_path *p,
                                 size_t i)
{
    const size_t n = p->length[i];
    const uint64_t head = get_le((const unsigned char *)s, 8);
    return n <= 8 ? (head & p->mask[i]) == p->head[i]
                  : memcmp(s, p->token[i], n) == 0;
}

/* Whatever is not what is wanted ends this, the separator behind the line for
 * instance: so nothing has to be compared with the end. */
bool json_find_fast(const char *line, size_t n, const struct json_path *path,
                    struct json_slice *found)
{
    struct fast_line l = { .end = line + n };
    uint64_t arrays = 0; /* which containers are, the innermost one lowest */
    size_t depth = 0, matched = 0;
    const char *s = fast_blanks(line);
    found->type = JSON_NONE;
    if (path->indexed || !fast_look(&l, line))
        return false;
    for (;;) {
        /* A value begins at s. Is it the one? */
        struct json_slice other;
        const bool meant = matched == depth && depth == path->n;
        struct json_slice *const value = meant ? found : &other;
        if (*s == '"') {
            if (fast_quote(&l) != s)
                return false;
            const char *const stop = fast_quote(&l);
            if (!stop)
                return false;
            *value = (struct json_slice){ JSON_STRING, s + 1,
                                          (size_t)(stop - s) - 1, false };
            s = stop + 1;
        } else if (*s == '{' || *s == '[') {
            const bool array = *s == '[';
            if (depth == JSON_FAST_DEPTH)
                return false;
            if (meant)
                *found = (struct json_slice){ .type = JSON_OTHER, .at = s };
            arrays = arrays << 1 | array;
            depth++;
            s = fast_blanks(s + 1);
            if (*s == ']' || *s == '}') {
                if ((*s == ']') != array)
                    return false;
                depth--;
                arrays >>= 1;
                s++;
                goto ended;
            }
            goto member;
        } else {
            s = json_scan_scalar(s, value);
            if (!s)
                return false;
        }
    ended:
        for (;;) {
            s = fast_blanks(s);
            if (!depth)
                return s == l.end;
            if (*s == ',')
                break;
            if (*s != (arrays & 1 ? ']' : '}'))
                return false;
            depth--;
            arrays >>= 1;
            s++;
        }
        s = fast_blanks(s + 1);
    member:
        /* A member of the innermost container begins at s: does the path lead
         * to it? */
        if (matched >= depth)
            matched = depth - 1;
        const bool near = matched == depth - 1 && matched < path->n;
        if (arrays & 1)
            continue;
        if (*s != '"' || fast_quote(&l) != s)
            return false;
        const char *const stop = fast_quote(&l);
        if (!stop)
            return false;
        const size_t len = (size_t)(stop - s) - 1;
        if (near && len == path->length[matched] &&
            fast_is_token(s + 1, path, matched))
            matched++;
        s = fast_blanks(stop + 1);
        if (*s != ':')
            return false;
        s = fast_blanks(s + 1);
    }
}

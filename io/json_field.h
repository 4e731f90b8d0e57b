/*
 * json_field.h - fields of one line of JSON, found where they stand
 *
 * A line is read once, from its first byte to its last, and nothing is copied:
 * a field is a slice of the line, still escaped.
 */
#ifndef BLY_IO_JSON_FIELD_H
#define BLY_IO_JSON_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_PATH_TOKENS 16

/* Where a field is: "/a/b/0" is a JSON pointer, "text" is the same as "/text".
 * Tokens are unescaped (~0 and ~1) and belong to the path. */
struct json_path {
    char *text;
    const char *token[JSON_PATH_TOKENS];
    size_t length[JSON_PATH_TOKENS];
    size_t n;
    bool indexed; /* a token may be the number of a member of an array */
    uint64_t head[JSON_PATH_TOKENS], mask[JSON_PATH_TOKENS]; /* 8 bytes */
};

/* False for more than JSON_PATH_TOKENS tokens, for a bad ~, and without
 * memory. */
bool json_path_read(struct json_path *p, const char *pointer);
/* The same for names with dots between them: "user.id". What begins with a
 * slash is a pointer here too, so that names may have dots. */
bool json_path_dotted(struct json_path *p, const char *dotted);
void json_path_free(struct json_path *p);

enum json_type { JSON_NONE, JSON_STRING, JSON_NUMBER, JSON_OTHER };

/* A value as it stands in the line; of a string, what is between the quotes. */
struct json_slice {
    enum json_type type;
    const char *at;
    size_t len;
    bool escaped; /* a string with a backslash in it */
};

/* Read all of a line and fill in found[i] for path i: JSON_NONE where there is
 * no such field, the last one where there are several. False where the line is
 * no JSON. */
bool json_find(const char *line, size_t n, const struct json_path *paths,
               size_t npaths, struct json_slice *found);

/* The same for one path, much faster, for most lines; false means that
 * json_find() has to be asked. Behind the line stand a newline or a NUL, and
 * BLOCK_SLACK more bytes that can be read. */
bool json_find_fast(const char *line, size_t n, const struct json_path *path,
                    struct json_slice *found);

/* The string whose first quote is at s: what is behind it, or NULL where it
 * does not end or has an escape that does not exist. */
const char *json_scan_string(const char *s, const char *end,
                             struct json_slice *out);

/* Unescape n bytes of a string that json_find() accepted into out, which has
 * room for n. The length. Half of a surrogate pair becomes U+FFFD. */
size_t json_unescape(const char *raw, size_t n, char *out);

#endif

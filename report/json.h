/*
 * json.h - a writer of JSON
 */
#ifndef BLY_REPORT_JSON_H
#define BLY_REPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Where a JSON writer stands. Starts as { .to = stdout }. */
struct json {
    FILE *to;
    bool comma; /* something stands before this */
    bool keyed; /* a key stands before this */
    bool line;  /* the next value or key begins a line */
    int depth;  /* brackets that are open */
};

/* Brackets: json_open(j, '{') ... json_close(j, '}'). */
void json_open(struct json *j, char bracket);
void json_close(struct json *j, char bracket);
void json_key(struct json *j, const char *key);
void json_text(struct json *j, const char *text); /* NULL: null */
void json_bytes(struct json *j, const void *text, size_t nbytes);
void json_uint(struct json *j, uint64_t value);
void json_real(struct json *j, double value); /* not finite: null */
void json_bool(struct json *j, bool value);
void json_null(struct json *j);
void json_end(struct json *j); /* a newline, ready for the next value */

#endif

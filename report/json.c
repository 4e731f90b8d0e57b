/*
 * json.c - values for programs, as they are written
 *
 * One object or array a line, no blanks. Text is made valid whatever bytes it
 * has: invalid UTF-8 becomes U+FFFD. Whole numbers keep all 64 bits; reals
 * take the fewest digits that read back the same; what is not finite is null.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/show.h"

/* What stands before a value, or before the key of one. */
static void json_separate(struct json *j)
{
    if (j->comma && !j->keyed)
        fputc(',', j->to);
    if (j->line)
        fprintf(j->to, "\n%*s", j->depth, "");
    j->line = false;
    j->comma = true;
    j->keyed = false;
}

void json_open(struct json *j, char bracket)
{
    json_separate(j);
    fputc(bracket, j->to);
    j->comma = false;
    j->depth++;
}

void json_close(struct json *j, char bracket)
{
    j->depth--;
    fputc(bracket, j->to);
    j->comma = true;
}

void json_end(struct json *j)
{
    fputc('\n', j->to);
    j->comma = false;
}

size_t utf8_length(const unsigned char *s, size_t nbytes)
{
    if (s[0] < 0x80)
        return 1;
    const size_t n = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
                     : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                     : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                                   : 0;
    if (n > nbytes)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Too long for what it says, a surrogate, or past U+10FFFF. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
        return 0;
    return n;
}

static void json_string(struct json *j, const void *text, size_t nbytes)
{
    const unsigned char *s = text;
    const unsigned char *const end = s + nbytes;
    fputc('"', j->to);
    while (s < end) {
        const unsigned char *plain = s; /* most are: printed at once */
        while (plain < end && *plain >= ' ' && *plain < 0x7f && *plain != '"' &&
               *plain != '\\')
            plain++;
        fwrite(s, 1, (size_t)(plain - s), j->to);
        s = plain;
        if (s == end)
            break;
        const size_t n = utf8_length(s, (size_t)(end - s));
        if (n == 0) {
            fputs("\\ufffd", j->to);
            s++;
            continue;
        }
        if (*s == '"' || *s == '\\')
            fprintf(j->to, "\\%c", *s);
        else if (*s == '\n')
            fputs("\\n", j->to);
        else if (*s == '\t')
            fputs("\\t", j->to);
        else if (steers(s, n)) /* three bytes at most: below U+10000 */
            fprintf(j->to, "\\u%04x",
                    n == 1   ? *s
                    : n == 2 ? (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)
                             : (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 |
                                   (s[2] & 0x3fu));
        else
            fwrite(s, 1, n, j->to);
        s += n;
    }
    fputc('"', j->to);
}

void json_key(struct json *j, const char *key)
{
    json_separate(j);
    json_string(j, key, strlen(key));
    fputc(':', j->to);
    j->keyed = true;
}

void json_text(struct json *j, const char *text)
{
    if (!text) {
        json_null(j);
        return;
    }
    json_bytes(j, text, strlen(text));
}

void json_bytes(struct json *j, const void *text, size_t nbytes)
{
    json_separate(j);
    json_string(j, text, nbytes);
}

void json_uint(struct json *j, uint64_t value)
{
    json_separate(j);
    fprintf(j->to, "%llu", (unsigned long long)value);
}

void json_real(struct json *j, double value)
{
    if (!isfinite(value)) {
        json_null(j);
        return;
    }
    json_separate(j);
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, j->to);
}

void json_bool(struct json *j, bool value)
{
    json_separate(j);
    fputs(value ? "true" : "false", j->to);
}

void json_null(struct json *j)
{
    json_separate(j);
    fputs("null", j->to);
}

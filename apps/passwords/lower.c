/*
 * lower.c - lower case as Java has it
 *
 * Keycloak asks its filter for password.toLowerCase(), so the lines of a list
 * must go in as that would write them. It is Unicode's mapping of single
 * characters, with two exceptions: a capital I with a dot becomes an i and a
 * dot above it, and a capital sigma at the end of a word becomes the final one.
 */
#define _GNU_SOURCE /* towlower_l() */
#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <wctype.h>

#include "apps/passwords/passwords.h"
#include "io/utf8.h"

#define CAPITAL_I_DOT 0x130
#define DOT_ABOVE 0x307
#define CAPITAL_SIGMA 0x3a3
#define SIGMA 0x3c3
#define FINAL_SIGMA 0x3c2

static locale_t unicode;
static pthread_once_t unicode_once = PTHREAD_ONCE_INIT;

static void find_unicode(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static bool is_cased(int32_t c)
{
    return towlower_l((wint_t)c, unicode) != (wint_t)c ||
           towupper_l((wint_t)c, unicode) != (wint_t)c;
}

/* What does not end a word: marks, apostrophes and their like. */
static bool is_ignorable(int32_t c)
{
    return c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' ||
           c == 0xad || c == 0xb7 || (c >= 0x300 && c < 0x370) || c == 0x2019;
}

/* Is the next character that counts, in this direction, a letter with case? */
static bool cased_before(const char *from, const char *at)
{
    while (at > from) {
        const char *start = at;
        do
            start--;
        while (start > from && ((unsigned char)*start & 0xc0) == 0x80);
        const char *next = start;
        const int32_t c = utf8_next(&next, at);
        if (!is_ignorable(c))
            return is_cased(c);
        at = start;
    }
    return false;
}

static bool cased_behind(const char *at, const char *end)
{
    while (at < end) {
        const int32_t c = utf8_next(&at, end);
        if (!is_ignorable(c))
            return is_cased(c);
    }
    return false;
}

/* Text in lower case, into room for twice as many bytes; how many there are, or
 * SIZE_MAX: it is not UTF-8. */
static size_t to_lower(const char *text, size_t n, char *out)
{
    const char *const end = text + n;
    size_t len = 0;
    for (const char *at = text; at < end;) {
        const char *const before = at;
        const int32_t c = utf8_next(&at, end);
        if (c < 0)
            return SIZE_MAX;
        if (c == CAPITAL_I_DOT) {
            len += utf8_put('i', out + len);
            len += utf8_put(DOT_ABOVE, out + len);
        } else if (c == CAPITAL_SIGMA) {
            const bool final =
                cased_before(text, before) && !cased_behind(at, end);
            len += utf8_put(final ? FINAL_SIGMA : SIGMA, out + len);
        } else {
            len += utf8_put(towlower_l((wint_t)c, unicode), out + len);
        }
    }
    return len;
}

enum pick_made lower_key(void *ctx, const struct input_file *of, bly_bytes line,
                         bly_bytes *key, char *room, char *why, size_t nwhy)
{
    (void)ctx, (void)of;
    pthread_once(&unicode_once, find_unicode);
    if (line.len == 0)
        return PICK_NONE;
    if (!unicode) {
        snprintf(why, nwhy,
                 "this system has no locale C.UTF-8, which lower "
                 "case needs");
        return PICK_BAD;
    }
    const size_t n = to_lower(line.ptr, line.len, room);
    if (n == SIZE_MAX) {
        snprintf(why, nwhy, "not UTF-8");
        return PICK_BAD;
    }
    *key = (bly_bytes){ room, n };
    return PICK_KEY;
}

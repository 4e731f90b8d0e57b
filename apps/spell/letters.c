/*
 * letters.c - characters and the case of words
 *
 * The tables are those of the C library's own UTF-8 locale, which is there
 * without any language being installed. Without it only ASCII has case.
 */
#define _GNU_SOURCE /* towlower_l() */
#include <locale.h>
#include <pthread.h>
#include <wctype.h>

#include "apps/spell/letters.h"
#include "io/utf8.h"

static locale_t tables;

static void tables_open(void)
{
    tables = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static locale_t unicode_tables(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, tables_open);
    return tables;
}

bool letter_is(uint32_t c)
{
    if (c < 0x80)
        return (c | 32) >= 'a' && (c | 32) <= 'z';
    if (c >= 0x300 && c < 0x370) /* combining accents */
        return true;
    const locale_t unicode = unicode_tables();
    return unicode ? iswalpha_l((wint_t)c, unicode) : c >= 0xc0;
}

uint32_t letter_lower(uint32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    const locale_t unicode = unicode_tables();
    return unicode ? (uint32_t)towlower_l((wint_t)c, unicode) : c;
}

uint32_t letter_upper(uint32_t c)
{
    if (c < 0x80)
        return c >= 'a' && c <= 'z' ? c - 32 : c;
    const locale_t unicode = unicode_tables();
    return unicode ? (uint32_t)towupper_l((wint_t)c, unicode) : c;
}

bool word_read(struct word *w, const char *text, size_t n)
{
    const char *const end = text + n;
    w->n = 0;
    while (text < end) {
        const int32_t c = utf8_next(&text, end);
        if (c < 0 || w->n == WORD_CHARS)
            return false;
        w->c[w->n++] = (uint32_t)c;
    }
    return true;
}

size_t word_write(const struct word *w, char out[WORD_BYTES])
{
    size_t len = 0;
    for (size_t i = 0; i < w->n; i++)
        len += utf8_put(w->c[i], out + len);
    return len;
}

#define DOTLESS_I 0x131
#define DOTTED_I 0x130

enum capitals word_capitals(const struct word *w)
{
    size_t ncapital = 0, nneutral = 0;
    bool first = false;
    for (size_t i = 0; i < w->n; i++) {
        const uint32_t lower = letter_lower(w->c[i]);
        const bool capital = lower != w->c[i];
        ncapital += capital;
        nneutral += !capital && letter_upper(w->c[i]) == lower;
        first |= capital && i == 0;
    }
    return !ncapital                     ? CAPS_NONE
           : ncapital == 1 && first      ? CAPS_FIRST
           : ncapital + nneutral == w->n ? CAPS_ALL
                                         : CAPS_MIXED;
}

void word_lower(struct word *w, bool dotless)
{
    for (size_t i = 0; i < w->n; i++)
        w->c[i] = dotless && w->c[i] == 'I' ? DOTLESS_I : letter_lower(w->c[i]);
}

void word_capitalise(struct word *w, bool dotless)
{
    if (w->n)
        w->c[0] = dotless && w->c[0] == 'i' ? DOTTED_I : letter_upper(w->c[0]);
}

/*
 * index_lines.c - lines with one plain text in them
 *
 * With -w a line counts if the text stands in it between characters that are
 * no letters, digits or underscores, as the locale has it. In UTF-8 a character
 * of several bytes is decoded; the text is known to be UTF-8.
 */
#define _GNU_SOURCE
#include <string.h>
#include <wctype.h>

#include "apps/index/index_lines.h"
#include "apps/index/index_terms.h"
#include "base/grow.h"
#include "io/utf8.h"

uint64_t lines_count(const char *text, size_t n)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t lines = 0;
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        uint64_t eight;
        memcpy(&eight, text + i, 8);
        eight ^= UINT64_C(0x0a0a0a0a0a0a0a0a);
        /* The high bit of each byte that is now zero, and no other. */
        lines += (uint64_t)__builtin_popcountll(
            ~(((eight & low) + low) | eight | low));
    }
    for (; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

bool text_is_utf8(const char *text, size_t n)
{
    const char *const end = text + n;
    while (text < end) {
        uint64_t eight;
        while (end - text >= 8 && (memcpy(&eight, text, 8), true) &&
               !(eight & UINT64_C(0x8080808080808080)))
            text += 8;
        if (text < end && utf8_next(&text, end) < 0)
            return false;
    }
    return true;
}

bool lines_begin(struct line_finder *f, const char *text, size_t n)
{
    if (!f->fold)
        return true;
    if (!GROW(&f->folded, &f->folded_room, n + 1))
        return false;
    text_fold(text, n, true, f->folded, NULL);
    return true;
}

/* Is the character of UTF-8 at p a letter or a digit? */
static bool is_wide_word(const struct line_finder *f, const char *p,
                         const char *end)
{
    const int32_t c = f->utf8 ? utf8_next(&p, end) : -1;
    return c >= 0 && iswalnum_l((wint_t)c, f->locale);
}

/* Is the character that ends before `at`, or begins there, part of a word? */
static bool word_before(const struct line_finder *f, const char *text,
                        size_t at)
{
    size_t n = 1;
    if (at == 0 || (unsigned char)text[at - 1] < 0x80)
        return at && is_word_byte((unsigned char)text[at - 1]);
    while (n < 4 && n < at && ((unsigned char)text[at - n] & 0xc0) == 0x80)
        n++;
    return is_wide_word(f, text + at - n, text + at);
}

static bool word_at(const struct line_finder *f, const char *text, size_t n,
                    size_t at)
{
    if (at == n || (unsigned char)text[at] < 0x80)
        return at < n && is_word_byte((unsigned char)text[at]);
    return is_wide_word(f, text + at, text + n);
}

bool lines_next(const struct line_finder *f, const char *text, size_t n,
                size_t *at, struct found_line *out)
{
    const char *const in = f->fold ? f->folded : text;
    size_t from = *at;
    while (from < n) {
        const char *const hit = memmem(in + from, n - from, f->text, f->n);
        if (!hit)
            break;
        const size_t place = (size_t)(hit - in);
        if (f->words && (word_before(f, text, place) ||
                         word_at(f, text, n, place + f->n))) {
            from = place + 1;
            continue;
        }
        const char *const start = memrchr(text, '\n', place);
        const char *const end = memchr(text + place, '\n', n - place);
        out->at = start ? (size_t)(start - text) + 1 : 0;
        out->end = end ? (size_t)(end - text) + 1 : n;
        *at = out->end;
        return true;
    }
    *at = n;
    return false;
}

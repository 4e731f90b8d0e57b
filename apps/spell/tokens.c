/*
 * tokens.c - words in a text
 */
#include <stdlib.h>
#include <string.h>

#include "apps/spell/letters.h"
#include "apps/spell/tokens.h"
#include "io/utf8.h"

enum class {
    OTHER,
    LETTER,
    DIGIT, /* or underscore */
    INNER, /* apostrophe, hyphen */
    SIGN,  /* @ : / may make an address of what stands around them */
    HIGH   /* a part of a character beyond ASCII */
};

static enum class class_of_byte(unsigned char c) {
    /* From each 32nd on: controls, digits, capitals, small letters. */
    static const char classes[] = "00000000000000000000000000000000"
                                  "00000003000003042222222222400000"
                                  "41111111111111111111111111100002"
                                  "01111111111111111111111111100000";
    return c < 128 ? (enum class)(classes[c] - '0') : HIGH;
}

/* What stands at a place: its class, and how many bytes it has. */
struct piece {
    enum class is;
    size_t len;
    bool bad;
};

static struct piece piece_at(const char *at, const char *end)
{
    const enum class is = class_of_byte((unsigned char)*at);
    const char *next = at;
    if (is != HIGH)
        return (struct piece){ is, 1, false };
    const int32_t c = utf8_next(&next, end);
    if (c < 0) /* one byte; what follows is looked at for itself */
        return (struct piece){ DIGIT, 1, true };
    return (struct piece){ c == 0x2019              ? INNER
                           : letter_is((uint32_t)c) ? LETTER
                                                    : OTHER,
                           (size_t)(next - at), false };
}

static bool token_put(struct tokens *t, size_t at, size_t len)
{
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : 1024;
        struct token *const more = realloc(t->list, room * sizeof *more);
        if (!more)
            return false;
        t->list = more;
        t->room = room;
    }
    t->list[t->n++] = (struct token){ (uint32_t)at, (uint32_t)len };
    return true;
}

void tokens_free(struct tokens *t)
{
    free(t->list);
    *t = (struct tokens){ 0 };
}

/* ---------------------------------------------------------------- addresses */

/* May it stand in an address or a path, before the sign that tells? */
static bool in_address(char c)
{
    return (unsigned char)c >= 0x80 || class_of_byte((unsigned char)c) != OTHER
               ? c != '\''
               : c && strchr("\\.~%*$[]?!+=&#,;", c);
}

/* An address begins before the sign at `at` and goes on behind it: forget its
 * words, and say where it ends. 0: it is none. */
static size_t address_end(struct tokens *t, const char *text, size_t at,
                          size_t n)
{
    const char c = text[at], next = at + 1 < n ? text[at + 1] : ' ';
    const bool follows = at && in_address(text[at - 1]);
    const bool url =
        c == ':' && follows &&
        (next == '\\' || (next == '/' && at + 2 < n && text[at + 2] == '/'));
    const bool mail = c == '@' && follows && in_address(next);
    const bool path = c == '/' && !follows && in_address(next) &&
                      (!at || text[at - 1] != '<');
    if (!url && !mail && !path)
        return 0;
    size_t from = at;
    while (from && in_address(text[from - 1]))
        from--;
    while (t->n && t->list[t->n - 1].at >= from)
        t->n--;
    for (at++; at < n && in_address(text[at]);)
        at++;
    return at;
}

/* ------------------------------------------------------------------ cutting */

/* The run that begins at `at`: where it ends; *word if it is one. A hyphen ends
 * what is no word, so that the rest of x86-machine is looked at. */
static size_t run_end(struct tokens *t, const char *text, size_t at, size_t n,
                      bool *word)
{
    const char *const end = text + n;
    *word = true;
    for (;;) {
        while (at < n && class_of_byte((unsigned char)text[at]) == LETTER)
            at++;
        if (at == n)
            return at;
        const struct piece p = piece_at(text + at, end);
        if (p.bad && t->bad > at)
            t->bad = at;
        if (p.is == LETTER) {
            at += p.len;
        } else if (p.is == DIGIT) {
            *word = false;
            at += p.len;
        } else if (p.is == INNER && at + p.len < n && at &&
                   (*word || text[at] != '-') && text[at - 1] != '_' &&
                   piece_at(text + at + p.len, end).is == LETTER) {
            at += p.len;
        } else
            return at;
    }
}

bool tokens_cut(struct tokens *t, const char *text, size_t n)
{
    t->n = 0;
    t->bad = n;
    for (size_t at = 0; at < n;) {
        /* Nearly all of prose: a blank; ASCII letters up to one. */
        size_t end = at;
        while (end < n && class_of_byte((unsigned char)text[end]) == LETTER)
            end++;
        if (end == n || class_of_byte((unsigned char)text[end]) == OTHER) {
            if (end > at && !token_put(t, at, end - at))
                return false;
            at = end + 1;
            continue;
        }
        const struct piece p = piece_at(text + at, text + n);
        bool word;
        end = 0;
        if (p.is == SIGN)
            end = address_end(t, text, at, n);
        if (p.is == LETTER || p.is == DIGIT) {
            end = run_end(t, text, at, n, &word);
            if (word && !token_put(t, at, end - at))
                return false;
        }
        at = end ? end : at + p.len;
    }
    return true;
}

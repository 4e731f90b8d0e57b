/*
 * text_words.c - texts into words
 *
 * A word is a run of letters and digits of UTF-8, its case folded. What is no
 * UTF-8 separates words as blanks do.
 */
#define _GNU_SOURCE /* iswalnum_l() */
#include "io/text_words.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "io/utf8.h"

static locale_t words_locale(void)
{
    static locale_t unicode;
    if (!unicode)
        unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return unicode;
}

/* Without the locale only ASCII has letters; and bytes that may be one are
 * better part of a word than not. */
static bool is_letter(int32_t c)
{
    const locale_t unicode = words_locale();
    if (c < 0)
        return false;
    if (c < 0x80 || !unicode)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
               (c >= 'a' && c <= 'z') || c >= 0x80;
    return iswalnum_l((wint_t)c, unicode);
}

static bool word_ends(struct word_cutter *c)
{
    char room[BLY_KEY_ROOM(WORD_BYTES)];
    if (c->len == 0)
        return true;
    const bly_bytes word = bly_key_normalise(
        BLY_KEYS_FOLDED, (bly_bytes){ c->word, c->len }, room);
    c->len = 0;
    c->full = false;
    return c->each(c->ctx, word);
}

/* How many bytes does a character have that begins so? 1 for what begins
 * none. */
static size_t length_of(char first)
{
    const unsigned char c = (unsigned char)first;
    return c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 1;
}

/* One character, or what is none, at at; *used of its bytes. */
static bool cut_one(struct word_cutter *c, const char *at, const char *end,
                    size_t *used)
{
    const char *next = at;
    const int32_t code = utf8_next(&next, end);
    *used = (size_t)(next - at);
    if (!is_letter(code))
        return word_ends(c);
    if (c->full || c->len + *used > WORD_BYTES) {
        c->full = true; /* the rest of a long word does not count */
        return true;
    }
    memcpy(c->word + c->len, at, *used);
    c->len += *used;
    return true;
}

/* Cuts up to what may be the beginning of a character, which *at is left on. */
static bool cut_whole(struct word_cutter *c, const char **at, const char *end)
{
    while (*at < end && (size_t)(end - *at) >= length_of(**at)) {
        size_t used;
        if (!cut_one(c, *at, end, &used))
            return false;
        *at += used;
    }
    return true;
}

bool words_cut(struct word_cutter *c, const char *text, size_t n)
{
    const char *at = text, *const end = text + n;
    /* What the piece before ended with. It may turn out to be no character,
     * and the bytes that showed it to begin the next one. */
    while (c->nrest > 0 && at < end) {
        c->rest[c->nrest++] = *at++;
        const char *left = c->rest;
        if (!cut_whole(c, &left, c->rest + c->nrest))
            return false;
        c->nrest -= (size_t)(left - c->rest);
        memmove(c->rest, left, c->nrest);
    }
    if (!cut_whole(c, &at, end))
        return false;
    if (at < end) {
        c->nrest = (size_t)(end - at);
        memcpy(c->rest, at, c->nrest);
    }
    return true;
}

bool words_end(struct word_cutter *c)
{
    const char *at = c->rest, *const end = c->rest + c->nrest;
    c->nrest = 0;
    for (size_t used; at < end; at += used)
        if (!cut_one(c, at, end, &used))
            return false;
    return word_ends(c);
}

/* ----------------------------------------------------------------- one word */

struct only {
    char *room;
    bly_bytes word;
    size_t n;
};

static bool only_each(void *ctx, bly_bytes word)
{
    struct only *const o = ctx;
    o->n++;
    memcpy(o->room, word.ptr, word.len);
    o->word = (bly_bytes){ o->room, word.len };
    return true;
}

bool word_only(const char *text, char *room, bly_bytes *word)
{
    struct only o = { .room = room };
    struct word_cutter c = { .each = only_each, .ctx = &o };
    words_cut(&c, text, strlen(text));
    words_end(&c);
    *word = o.word;
    return o.n == 1;
}

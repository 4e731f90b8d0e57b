/*
 * tokens.c - words in a text
 *
 * Nearly all of prose is ASCII letters with blanks and full stops between
 * them. Its words are found sixty-four bytes at a time, as bits:
 *
 *     window     a  quick (fox);  it's
 *     letters    1..11111..111....11.1
 *     edges      11.1....1.1..1...1.11     a letter on one side alone
 *     special    ....................1.    no letter, but perhaps in a word
 *
 * Up to the first special byte the edges, two by two, are the words. What
 * touches a special byte is looked at character by character, and then comes
 * the next window. A branch for each letter would be guessed wrong at the end
 * of each word: that was a quarter of all the time of a check.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/spell/letters.h"
#include "apps/spell/tokens.h"
#include "base/grow.h"
#include "io/utf8.h"

#if defined(__SSE2__) && !defined(TOKENS_PORTABLE)
#include <emmintrin.h>
#endif

enum class {
    OTHER,
    LETTER,
    DIGIT, /* or underscore */
    INNER, /* apostrophe, hyphen */
    SIGN,  /* @ : / may make an address of what stands around them */
    HIGH   /* a part of a character beyond ASCII */
};

static enum class class_of_byte(unsigned char c) {
    /* In groups of 32: controls, digits, capitals, small letters. */
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

/* Room for so many more? */
static bool tokens_fit(struct tokens *t, size_t more)
{
    return GROW(&t->list, &t->room, t->n + more);
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
 * words, and say where it ends. 0: it is not one. */
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
 * what is not a word, so that the rest of x86-machine is looked at. */
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

/* ------------------------------------------------------------------ windows */

#define WINDOW 64
#define WINDOW_WORDS (WINDOW / 2 + 4) /* and what edges_put() overwrites */

struct window {
    uint64_t letters; /* of ASCII */
    uint64_t special; /* neither a letter of ASCII nor OTHER */
};

#if defined(__SSE2__) && !defined(TOKENS_PORTABLE)
/* Bytes from low on, n of them: all ones where one of them stands. */
static inline __m128i sixteen_from(__m128i text, char low, char n)
{
    /* As signed bytes, the least of which are those from low on. */
    const __m128i moved = _mm_add_epi8(text, _mm_set1_epi8((char)(-128 - low)));
    return _mm_cmpgt_epi8(_mm_set1_epi8((char)(-128 + n)), moved);
}

static inline struct window window_sixteen(const char *at)
{
    const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)at);
    const __m128i letters =
        sixteen_from(_mm_or_si128(text, _mm_set1_epi8(32)), 'a', 26);
    const __m128i special = _mm_or_si128(
        _mm_or_si128(sixteen_from(text, '/', ':' - '/' + 1),
                     _mm_cmpeq_epi8(text, _mm_set1_epi8('@'))),
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('_')),
                                  _mm_cmpeq_epi8(text, _mm_set1_epi8('-'))),
                     _mm_cmpeq_epi8(text, _mm_set1_epi8('\''))));
    return (struct window){ (uint32_t)_mm_movemask_epi8(letters),
                            (uint32_t)_mm_movemask_epi8(
                                _mm_or_si128(special, text)) };
}
#endif

/* What the WINDOW bytes from `at` on are. */
static struct window window_at(const char *at)
{
    struct window w = { 0, 0 };
#if defined(__SSE2__) && !defined(TOKENS_PORTABLE)
    for (unsigned i = 0; i < WINDOW; i += 16) {
        const struct window part = window_sixteen(at + i);
        w.letters |= part.letters << i;
        w.special |= part.special << i;
    }
#else
    for (unsigned i = 0; i < WINDOW; i++) {
        const enum class is = class_of_byte((unsigned char)at[i]);
        w.letters |= (uint64_t)(is == LETTER) << i;
        w.special |= (uint64_t)(is > LETTER) << i;
    }
#endif
    return w;
}

/* The same at the end of a text, behind which nothing may be read. */
static struct window window_last(const char *at, size_t n)
{
    char padded[WINDOW];
    memset(padded, ' ', sizeof padded);
    memcpy(padded, at, n);
    return window_at(padded);
}

/* n words by their edges, the first of which is a beginning. They are written
 * four at a time, so that the number is not a branch for each. */
static void edges_put(struct token *to, size_t n, size_t at, uint64_t edges)
{
    for (size_t i = 0; i < n; i += 4)
        for (size_t k = i; k < i + 4; k++) {
            /* A bit that is always there: nothing is asked of zero. */
            const unsigned from = (unsigned)__builtin_ctzll(edges | 1ULL << 63);
            edges &= edges - 1;
            const unsigned end = (unsigned)__builtin_ctzll(edges | 1ULL << 63);
            edges &= edges - 1;
            to[k] = (struct token){ (uint32_t)at + from, end - from };
        }
}

/* ------------------------------------------------------------------ cutting */

/* What stands at `at`, in a word or alone: where it ends. A word is put into t,
 * which has room for it. */
static size_t piece_cut(struct tokens *t, const char *text, size_t at, size_t n)
{
    const struct piece p = piece_at(text + at, text + n);
    bool word;
    size_t end = 0;
    if (p.is == SIGN)
        end = address_end(t, text, at, n);
    if (p.is == LETTER || p.is == DIGIT) {
        end = run_end(t, text, at, n, &word);
        if (word)
            t->list[t->n++] =
                (struct token){ (uint32_t)at, (uint32_t)(end - at) };
    }
    return end ? end : at + p.len;
}

/* The words that begin in the window at text + at, from bit `from` on; where to
 * go on, in bits. t has room for them. */
static size_t window_cut(struct tokens *t, const char *text, size_t at,
                         size_t n, const struct window *w)
{
    size_t from = 0;
    do {
        const uint64_t rest = ~UINT64_C(0) << from;
        const uint64_t special = w->special & rest;
        /* Bits before the first special byte, or all of them. */
        const uint64_t here = ((special & -special) - 1) & rest;
        const uint64_t letters = w->letters & here;
        const uint64_t edges = (letters ^ letters << 1) & here;
        const size_t nedges = (size_t)__builtin_popcountll(edges);
        edges_put(t->list + t->n, nedges / 2, at, edges);
        t->n += nedges / 2;
        /* The last word may be open: then from its first letter on. */
        if (nedges % 2)
            from = 63 - (size_t)__builtin_clzll(edges);
        else
            from = special ? (size_t)__builtin_ctzll(special) : WINDOW;
        /* What goes on in the next window begins there; but what fills one. */
        if (!special && from)
            break;
        from = piece_cut(t, text, at + from, n) - at;
    } while (from < WINDOW);
    return from;
}

bool tokens_cut(struct tokens *t, const char *text, size_t n)
{
    t->n = 0;
    t->bad = n;
    for (size_t at = 0; at < n;) {
        if (!tokens_fit(t, WINDOW_WORDS))
            return false;
        const struct window w = n - at >= WINDOW
                                    ? window_at(text + at)
                                    : window_last(text + at, n - at);
        at += window_cut(t, text, at, n, &w);
    }
    return true;
}

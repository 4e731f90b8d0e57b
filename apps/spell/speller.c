/*
 * speller.c - is this word right?
 *
 * The steps are hunspell's, in its order: what is written otherwise (ICONV),
 * the cases that a form may have, compounds, and the parts between hyphens.
 * Each ends in the question whether the filter has a form in a role.
 */
#include <string.h>

#include "apps/spell/speller.h"
#include "io/utf8.h"

/* Every way to divide a word is looked up; after this many forms it is called
 * wrong. hunspell gives up at ten hyphens. */
#define ASKS_MOST 4096
#define BREAKS_MOST 10
#define SHARPS_MOST 5

/* A word, with room to ask about its parts too. */
struct question {
    const struct speller *s;
    unsigned asks;
    bool dotted;
};

static bool has(struct question *q, enum role role, const char *text, size_t n)
{
    char key[KEY_BYTES];
    q->asks++;
    for (unsigned i = 0; i < role_asks(role); i++)
        if (!bly_has(q->s->filter, key, role_key(role, i, text, n, key)))
            return false;
    return true;
}

/* ---------------------------------------------------------------- compounds */

#define COMPOUND_CHARS 100 /* hunspell's longest word */

struct compound {
    struct question *q;
    const struct word *w;
    char text[WORD_BYTES];
    size_t place[COMPOUND_CHARS + 1]; /* of each character in the text */
};

/* False if the word is too long, or too short for two parts. */
static bool compound_open(struct compound *c, struct question *q,
                          const struct word *w)
{
    size_t len = 0;
    c->q = q;
    c->w = w;
    if (w->n > COMPOUND_CHARS || w->n < 2 * (size_t)q->s->is.compound_least)
        return false;
    for (size_t i = 0; i < w->n; i++) {
        c->place[i] = len;
        len += utf8_put(w->c[i], c->text + len);
    }
    c->place[w->n] = len;
    return true;
}

static bool part_is(struct compound *c, size_t from, size_t to, enum role role)
{
    return has(c->q, role, c->text + c->place[from],
               c->place[to] - c->place[from]);
}

/* May one part end and another begin before character i? */
static bool may_join(const struct compound *c, size_t i)
{
    const struct spell_traits *const is = &c->q->s->is;
    const uint32_t *const at = c->w->c + i;
    const size_t n = c->w->n;
    if (is->compound_triple && at[-1] == at[0] &&
        ((i >= 2 && at[-2] == at[0]) || (i + 1 < n && at[1] == at[0])))
        return false;
    return !is->compound_case || at[-1] == '-' || at[0] == '-' ||
           (letter_lower(at[-1]) == at[-1] && letter_lower(at[0]) == at[0]);
}

/* Where may the part behind one that ends before character i begin? There, and
 * where three equal letters are written as two (Schiff, Fahrt: Schiffahrt), one
 * before. */
static size_t next_part(const struct compound *c, size_t i)
{
    const uint32_t *const at = c->w->c + i;
    return c->q->s->is.simplified_triple && i > 2 && at[-1] == at[-2] ? i - 1
                                                                      : i;
}

/* Does the part that ends before character i have another beginning than `not`?
 * parts: where parts end. */
static bool other_part(struct compound *c, const unsigned *parts, size_t i,
                       size_t not )
{
    for (size_t from = 0; from < i; from++)
        if (from != not &&(from == 0 || parts[from]) &&
            part_is(c, from, i, from ? ROLE_MIDDLE : ROLE_BEGIN))
            return true;
    return false;
}

/* The last part begins at `from`, the one before it ends before i. Are they the
 * same word, where that is not a compound? */
static bool is_doubled(struct compound *c, const unsigned *parts, size_t from,
                       size_t i)
{
    const size_t n = c->w->n - from;
    const uint32_t *const at = c->w->c;
    return c->q->s->is.compound_dup && n <= i &&
           memcmp(at + i - n, at + from, n * sizeof *at) == 0 &&
           !part_is(c, from, c->w->n, ROLE_TWICE) &&
           !other_part(c, parts, i, i - n);
}

/* Can it be divided into a beginning, any number of middles, and an end? Places
 * where parts may end are found from left to right, each once, so that the
 * questions are at most the square of the length. */
static bool compound_right(struct question *q, const struct word *w)
{
    struct compound c;
    const size_t n = w->n, least = q->s->is.compound_least;
    const unsigned most = q->s->is.compound_words;
    unsigned parts[COMPOUND_CHARS + 1] = { 0 }; /* that end there; 0: none */
    if (!compound_open(&c, q, w))
        return false;
    for (size_t i = least; i + least <= n; i++)
        if (may_join(&c, i) && part_is(&c, 0, i, ROLE_BEGIN))
            parts[i] = 1;
    for (size_t i = least; i + least <= n && q->asks < ASKS_MOST; i++) {
        if (!parts[i] || (most && parts[i] >= most))
            continue;
        for (size_t from = i; from >= next_part(&c, i); from--) {
            if (part_is(&c, from, n, ROLE_END) &&
                !is_doubled(&c, parts, from, i))
                return true;
            for (size_t k = from + least; k + least <= n; k++)
                if (!parts[k] && may_join(&c, k) &&
                    part_is(&c, from, k, ROLE_MIDDLE))
                    parts[k] = parts[i] + 1;
        }
    }
    return false;
}

/* ------------------------------------------------------- compounds by rule */

static bool joined_is(struct compound *c, size_t from, size_t to,
                      unsigned letter, enum role role)
{
    char key[WORD_BYTES + 1];
    const size_t n = c->place[to] - c->place[from];
    key[0] = (char)letter;
    memcpy(key + 1, c->text + c->place[from], n);
    return has(c->q, role, key, n + 1);
}

/* Does the rest from here on end a rule? */
static bool joined_ends(struct compound *c, size_t from,
                        const struct joining_set *at)
{
    const struct joining *const j = &c->q->s->is.joining;
    struct joining_set to;
    for (uint64_t l = joining_next(j, at) & ~UINT64_C(1); l; l &= l - 1) {
        const unsigned letter = (unsigned)__builtin_ctzll(l);
        joining_step(j, at, letter, &to);
        if (joining_next(j, &to) & 1 &&
            (joined_is(c, from, c->w->n, letter, ROLE_JOINED) ||
             joined_is(c, from, c->w->n, letter, ROLE_JOINED_LAST)))
            return true;
    }
    return false;
}

/* The places that rules are in when a part ends before character i grow from
 * left to right: what lies before i is complete when i is looked at. */
static bool joined_right(struct question *q, const struct word *w)
{
    const struct joining *const j = &q->s->is.joining;
    const size_t n = w->n, least = q->s->is.compound_least;
    struct joining_set at[COMPOUND_CHARS + 1], to;
    bool reached[COMPOUND_CHARS + 1] = { true };
    struct compound c;
    if (!compound_open(&c, q, w))
        return false;
    joining_begin(j, &at[0]);
    for (size_t i = 0; i + least <= n && q->asks < ASKS_MOST; i++) {
        if (!reached[i])
            continue;
        if (i && joined_ends(&c, i, &at[i]))
            return true;
        const uint64_t next = joining_next(j, &at[i]) & ~UINT64_C(1);
        for (size_t k = i + least; k + least <= n; k++)
            for (uint64_t l = next; l; l &= l - 1) {
                const unsigned letter = (unsigned)__builtin_ctzll(l);
                if (!joined_is(&c, i, k, letter, ROLE_JOINED))
                    continue;
                joining_step(j, &at[i], letter, &to);
                if (!reached[k])
                    at[k] = (struct joining_set){ 0 };
                reached[k] = true;
                joining_add(&at[k], &to);
            }
    }
    return false;
}

/* -------------------------------------------------------------------- forms */

enum { EXACT = 1, UPPER = 2 }; /* roles that may serve beside that of a word */

static bool form_right(struct question *q, const struct word *w, unsigned also)
{
    const struct spell_traits *const is = &q->s->is;
    char text[WORD_BYTES];
    const size_t n = word_write(w, text);
    return has(q, ROLE_WORD, text, n) ||
           (also & EXACT && is->exact && has(q, ROLE_EXACT, text, n)) ||
           (also & UPPER && is->upper && has(q, ROLE_UPPER, text, n)) ||
           (((is->compounds && compound_right(q, w)) ||
             (is->joined && joined_right(q, w))) &&
            !(is->forbidden && has(q, ROLE_FORBIDDEN, text, n)));
}

/* The same with the full stop that stands behind it. */
static bool is_right(struct question *q, const struct word *w, unsigned also)
{
    struct word longer;
    if (form_right(q, w, also))
        return true;
    if (!q->dotted || w->n == WORD_CHARS)
        return false;
    longer = *w;
    longer.c[longer.n++] = '.';
    return form_right(q, &longer, also);
}

static bool is_forbidden(struct question *q, const struct word *w)
{
    char text[WORD_BYTES];
    return q->s->is.forbidden &&
           has(q, ROLE_FORBIDDEN, text, word_write(w, text));
}

/* STRASSE, as strasse: is it one with sharp s? All ways to write it are tried,
 * from `at` on. */
static bool sharp_right(struct question *q, const struct word *w, size_t at,
                        unsigned depth)
{
    struct word sharp;
    for (; at + 1 < w->n && depth < SHARPS_MOST; at++) {
        if (w->c[at] != 's' || w->c[at + 1] != 's')
            continue;
        sharp = *w;
        sharp.c[at] = 0xdf;
        sharp.n--;
        memmove(sharp.c + at + 1, sharp.c + at + 2,
                (sharp.n - at - 1) * sizeof *sharp.c);
        if (is_right(q, &sharp, EXACT) ||
            sharp_right(q, &sharp, at + 1, depth + 1))
            return true;
        struct word capital = sharp;
        word_capitalise(&capital, q->s->is.dotless);
        if (is_right(q, &capital, EXACT))
            return true;
    }
    return false;
}

/* SANT'ELIA: Sant'Elia, sant'Elia. */
static bool apostrophe_right(struct question *q, const struct word *lower)
{
    struct word w = *lower;
    size_t at = 0;
    while (at < w.n && w.c[at] != '\'')
        at++;
    if (at + 1 >= w.n)
        return false;
    w.c[at + 1] = letter_upper(w.c[at + 1]);
    if (is_right(q, &w, 0))
        return true;
    word_capitalise(&w, q->s->is.dotless);
    return is_right(q, &w, 0);
}

static bool has_sharp(const struct word *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->c[i] == 0xdf)
            return true;
    return false;
}

/* The word in the cases that it may stand for. */
static bool cases_right(struct question *q, const struct word *w,
                        enum capitals caps)
{
    const struct spell_traits *const is = &q->s->is;
    if (is_right(q, w, EXACT))
        return true;
    if (caps == CAPS_NONE || caps == CAPS_MIXED || is_forbidden(q, w))
        return false;
    struct word lower = *w, capital;
    word_lower(&lower, q->s->is.dotless);
    capital = lower;
    word_capitalise(&capital, q->s->is.dotless);
    if (caps == CAPS_ALL && (apostrophe_right(q, &lower) ||
                             (is->sharps && sharp_right(q, &lower, 0, 0))))
        return true;
    if (is_forbidden(q, &capital))
        return false;
    return (caps == CAPS_ALL && is_right(q, &capital, UPPER)) ||
           is_right(q, &lower,
                    caps == CAPS_FIRST && is->sharps && has_sharp(&lower)
                        ? EXACT
                        : 0);
}

/* ------------------------------------------------------------------- breaks */

static bool whole_right(struct question *q, const struct word *w);

static struct word word_part(const struct word *w, size_t from, size_t to)
{
    struct word part = { .n = to - from };
    memcpy(part.c, w->c + from, part.n * sizeof *part.c);
    return part;
}

static bool stands_at(const struct word *w, size_t at, const struct word *what)
{
    return at + what->n <= w->n &&
           memcmp(w->c + at, what->c, what->n * sizeof *w->c) == 0;
}

/* Both sides of a break; the part before it is not the end of the word. */
static bool sides_right(struct question *q, const struct word *w, size_t at,
                        size_t len)
{
    const bool dotted = q->dotted;
    const struct word left = word_part(w, 0, at),
                      right = word_part(w, at + len, w->n);
    if (!whole_right(q, &right))
        return false;
    q->dotted = false;
    const bool ok = whole_right(q, &left);
    q->dotted = dotted;
    return ok;
}

/* One pattern: "^x" at the beginning, "x$" at the end, "x" between two parts.
 */
static bool break_right(struct question *q, const struct word *w,
                        const struct word *pattern)
{
    const size_t len = pattern->n - 1;
    if (pattern->n > 1 && pattern->c[0] == '^') {
        const struct word mark = word_part(pattern, 1, pattern->n);
        const struct word rest = w->n > len && stands_at(w, 0, &mark)
                                     ? word_part(w, len, w->n)
                                     : (struct word){ 0 };
        return rest.n && whole_right(q, &rest);
    }
    if (pattern->n > 1 && pattern->c[len] == '$') {
        const struct word mark = word_part(pattern, 0, len);
        const struct word rest = w->n > len && stands_at(w, w->n - len, &mark)
                                     ? word_part(w, 0, w->n - len)
                                     : (struct word){ 0 };
        return rest.n && whole_right(q, &rest);
    }
    for (size_t i = 1; i + pattern->n < w->n && q->asks < ASKS_MOST; i++)
        if (stands_at(w, i, pattern) && sides_right(q, w, i, pattern->n))
            return true;
    return false;
}

static bool breaks_right(struct question *q, const struct word *w)
{
    const struct block *const breaks = &q->s->is.breaks;
    struct word pattern;
    const char *text;
    size_t count = 0;
    for (size_t at = 0; (text = spell_text(breaks, &at));) {
        if (!word_read(&pattern, text, strlen(text)) || !pattern.n)
            continue;
        for (size_t i = 0; i < w->n; i++)
            count += stands_at(w, i, &pattern);
    }
    if (!count || count >= BREAKS_MOST)
        return false;
    for (size_t at = 0; (text = spell_text(breaks, &at));)
        if (word_read(&pattern, text, strlen(text)) && pattern.n &&
            break_right(q, w, &pattern))
            return true;
    return false;
}

static bool whole_right(struct question *q, const struct word *w)
{
    const enum capitals caps = word_capitals(w);
    if (!w->n || q->asks > ASKS_MOST)
        return false;
    return cases_right(q, w, caps) || breaks_right(q, w);
}

/* -------------------------------------------------------------------- words */

/* What is written for what, the longest first: text into out. False if nothing
 * changed, or too much. */
static bool iconv_text(const struct spell_traits *is, const char *text,
                       size_t n, char out[WORD_BYTES], size_t *nout)
{
    bool changed = false;
    *nout = 0;
    for (size_t i = 0; i < n;) {
        const char *from, *best = NULL;
        size_t longest = 0;
        for (size_t at = 0; (from = spell_text(&is->iconvs, &at));) {
            const char *const to = spell_text(&is->iconvs, &at);
            const size_t len = strlen(from);
            if (to && len > longest && len <= n - i &&
                memcmp(text + i, from, len) == 0) {
                longest = len;
                best = to;
            }
        }
        if (!best && n - i >= 3 && memcmp(text + i, "\xe2\x80\x99", 3) == 0) {
            longest = 3; /* the apostrophe of typesetters */
            best = "'";
        }
        const size_t len = best ? strlen(best) : 1;
        if (*nout + len > WORD_BYTES)
            return false;
        memcpy(out + *nout, best ? best : text + i, len);
        *nout += len;
        changed |= best != NULL;
        i += best ? longest : 1;
    }
    return changed;
}

static bool text_right(struct question *q, const char *text, size_t n)
{
    const struct word *const ignored = &q->s->is.ignored;
    struct word w;
    if (!word_read(&w, text, n))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < w.n; i++) {
        bool drop = false;
        for (size_t k = 0; k < ignored->n; k++)
            drop |= ignored->c[k] == w.c[i];
        if (!drop)
            w.c[kept++] = w.c[i];
    }
    w.n = kept;
    return !w.n || whole_right(q, &w);
}

bool speller_right(const struct speller *s, const char *word, size_t n,
                   bool dotted)
{
    struct question q = { .s = s, .dotted = dotted };
    char text[WORD_BYTES];
    size_t ntext;
    if (n <= WORD_BYTES && iconv_text(&s->is, word, n, text, &ntext) &&
        text_right(&q, text, ntext))
        return true;
    return text_right(&q, word, n);
}

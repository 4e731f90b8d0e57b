/*
 * index_needs.c - what every line that a pattern matches must contain
 *
 * After Cox, Regular Expression Matching with a Trigram Index (2012). A part of
 * a pattern is described by the set of strings that it may match, where a
 * string is made of
 *
 *     0 .. 255   this byte
 *     EDGE       no byte; on at least one side stands none that is part of a
 *                word, or the line ends
 *     ANY        any bytes, none included
 *
 * so that foo.*bar is the one string f o o ANY b a r. Sets of parts that follow
 * one another are multiplied. One that grows too large becomes a clause of its
 * own, and the part is ANY from then on:
 *
 *     part of "x(a|b)y*"     strings
 *     x                      x
 *     x(a|b)                 xa, xb
 *     x(a|b)y*               xa ANY, xb ANY
 *
 * From a finished string follow the grams of its runs of bytes, and the words
 * that have an edge on either side: an EDGE, or a byte that is not part of one.
 * ANY is no edge.
 *
 * What this parser does not know for certain, it takes for ANY; it need not
 * find mistakes, which is for the program that matches.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "apps/index/index_needs.h"
#include "base/grow.h"

typedef uint16_t symbol;
enum { EDGE = 256, ANY = 257 };

#define STRINGS_MOST 32  /* in a set that is still multiplied */
#define SYMBOLS_MOST 512 /* of a string; more become ANY */
#define DEPTH_MOST 64    /* of parentheses */
#define REPEATS_MOST 8   /* copies that x{n} becomes */
#define TERMS_MOST 256   /* of an alternative */
#define CLAUSES_MOST 16

struct string {
    symbol *at;
    size_t n, room;
};

struct strings {
    struct string *at;
    size_t n, room;
};

/* What a part of a pattern requires. */
struct part {
    struct strings now;      /* it matches one of these */
    struct strings *clauses; /* and each of these sets has one that it has */
    size_t n, room;
};

/* ----------------------------------------------------------------- strings */

static void strings_free(struct strings *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->at[i].at);
    free(s->at);
    *s = (struct strings){ 0 };
}

static void part_free(struct part *p)
{
    strings_free(&p->now);
    for (size_t i = 0; i < p->n; i++)
        strings_free(&p->clauses[i]);
    free(p->clauses);
    *p = (struct part){ 0 };
}

/* Append to a string; a long one goes on as ANY. */
static bool string_put(struct string *s, const symbol *from, size_t n)
{
    static const symbol any = ANY;
    if (s->n + n > SYMBOLS_MOST) {
        if (s->n && s->at[s->n - 1] == ANY)
            return true;
        from = &any;
        n = 1;
    }
    if (!GROW(&s->at, &s->room, s->n + n + 1))
        return false;
    if (n)
        memcpy(s->at + s->n, from, n * sizeof *from);
    s->n += n;
    return true;
}

/* A new string made of two. */
static bool strings_put(struct strings *s, const symbol *a, size_t na,
                        const symbol *b, size_t nb)
{
    if (!GROW(&s->at, &s->room, s->n + 1))
        return false;
    struct string *const t = &s->at[s->n];
    *t = (struct string){ 0 };
    if (!string_put(t, a, na) || !string_put(t, b, nb)) {
        free(t->at);
        return false;
    }
    s->n++;
    return true;
}

static bool part_symbols(struct part *p, const symbol *at, size_t n)
{
    *p = (struct part){ 0 };
    return strings_put(&p->now, at, n, NULL, 0);
}

static bool part_symbol(struct part *p, symbol s)
{
    return part_symbols(p, &s, 1);
}

/* Make what it matches now a clause, and ANY of it. */
static bool part_close(struct part *p)
{
    struct part any;
    bool says = true; /* a set with an empty string says nothing */
    for (size_t i = 0; i < p->now.n; i++) {
        bool bytes = false;
        for (size_t j = 0; j < p->now.at[i].n; j++)
            bytes |= p->now.at[i].at[j] < EDGE;
        says &= bytes;
    }
    if (!part_symbol(&any, ANY))
        return false;
    if (says && p->n < CLAUSES_MOST) {
        if (!GROW(&p->clauses, &p->room, p->n + 1)) {
            part_free(&any);
            return false;
        }
        p->clauses[p->n++] = p->now;
    } else {
        strings_free(&p->now);
    }
    p->now = any.now;
    return true;
}

/* a becomes a then b; b is used up. */
static bool part_then(struct part *a, struct part *b)
{
    struct strings both = { 0 };
    bool ok = true;
    if (a->now.n * b->now.n > STRINGS_MOST)
        ok = part_close(a);
    if (ok && a->now.n * b->now.n > STRINGS_MOST)
        ok = part_close(b);
    for (size_t i = 0; ok && i < a->now.n; i++)
        for (size_t j = 0; ok && j < b->now.n; j++)
            ok = strings_put(&both, a->now.at[i].at, a->now.at[i].n,
                             b->now.at[j].at, b->now.at[j].n);
    strings_free(&a->now);
    a->now = both;
    for (size_t i = 0; ok && i < b->n && a->n < CLAUSES_MOST; i++) {
        ok = GROW(&a->clauses, &a->room, a->n + 1);
        if (ok) {
            a->clauses[a->n++] = b->clauses[i];
            b->clauses[i] = (struct strings){ 0 };
        }
    }
    part_free(b);
    return ok;
}

/* The bytes of the shortest string: what a set is worth as a clause. */
static size_t strings_worth(const struct strings *s)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < s->n; i++) {
        size_t n = 0, most = 0;
        for (size_t j = 0; j < s->at[i].n; j++) {
            n = s->at[i].at[j] < EDGE ? n + 1 : s->at[i].at[j] == EDGE ? n : 0;
            most = n > most ? n : most;
        }
        least = most < least ? most : least;
    }
    return s->n ? least : 0;
}

/* Keep one set of a part, the one worth most, as what it matches now. *whole:
 * the part had no others. */
static void part_best(struct part *p, bool *whole)
{
    size_t best = SIZE_MAX, worth = strings_worth(&p->now);
    for (size_t i = 0; i < p->n; i++)
        if (strings_worth(&p->clauses[i]) > worth) {
            worth = strings_worth(&p->clauses[i]);
            best = i;
        }
    *whole = p->n == 0;
    if (best != SIZE_MAX) {
        const struct strings other = p->now;
        p->now = p->clauses[best];
        p->clauses[best] = other;
    }
    for (size_t i = 0; i < p->n; i++)
        strings_free(&p->clauses[i]);
    p->n = 0;
}

/* a becomes a or b; b is used up. */
static bool part_or(struct part *a, struct part *b)
{
    bool a_whole, b_whole, ok = true;
    part_best(a, &a_whole);
    part_best(b, &b_whole);
    for (size_t i = 0; ok && i < b->now.n; i++)
        ok = strings_put(&a->now, b->now.at[i].at, b->now.at[i].n, NULL, 0);
    part_free(b);
    /* A set that was only one of several says nothing of what stands beside
     * it, and so must not be multiplied. Sets of alternatives may be larger. */
    if (ok && (!a_whole || !b_whole || a->now.n > (size_t)8 * STRINGS_MOST))
        ok = part_close(a);
    return ok;
}

/* ----------------------------------------------------------------- parsing */

struct pattern {
    const unsigned char *at, *end;
    const unsigned char *start;
    bool extended, fold, stop; /* stop: too deep */
    unsigned depth;
};

static bool parse_or(struct pattern *p, struct part *out);

static bool next_is(const struct pattern *p, char a, char b)
{
    return p->end - p->at >= 2 && p->at[0] == (unsigned char)a &&
           p->at[1] == (unsigned char)b;
}

/* Does an alternative, or a group, end here? */
static bool alternative_ends(const struct pattern *p)
{
    if (p->at == p->end)
        return true;
    if (p->extended)
        return *p->at == '|' || (*p->at == ')' && p->depth);
    return next_is(p, '\\', '|') || (next_is(p, '\\', ')') && p->depth);
}

/* A byte as it stands, under the rules of case. Without case, bytes from 128 on
 * may be letters that have others. */
static symbol as_symbol(const struct pattern *p, unsigned char c)
{
    return p->fold && c >= 0x80 ? (symbol)ANY : (symbol)c;
}

/* Behind "[": leave p behind "]". A few characters of ASCII are alternatives;
 * of others it is known at most that none is part of a word. */
static bool parse_bracket(struct pattern *p, struct part *out)
{
    unsigned char some[8];
    size_t n = 0;
    bool few = true, edge = true;
    const unsigned char *at = p->at;
    const bool negated = at < p->end && *at == '^';
    if (negated)
        at++;
    const unsigned char *const first = at;
    for (; at < p->end && (*at != ']' || at == first); at++) {
        if (*at == '[' && p->end - at >= 2 &&
            (at[1] == ':' || at[1] == '.' || at[1] == '=')) {
            const unsigned char kind = at[1];
            for (at += 2; p->end - at >= 2 && !(at[0] == kind && at[1] == ']');)
                at++;
            if (p->end - at < 2)
                break;
            at++;
            few = edge = false;
            continue;
        }
        if (*at >= 0x80 || (p->end - at >= 3 && at[1] == '-' && at[2] != ']')) {
            few = edge = false;
            continue;
        }
        edge &= !is_word_byte(*at);
        if (n < sizeof some)
            some[n++] = *at;
        else
            few = false;
    }
    if (at >= p->end) { /* it does not end: a mistake */
        p->at = p->end;
        return part_symbol(out, ANY);
    }
    p->at = at + 1;
    const symbol edges[3] = { EDGE, ANY, EDGE };
    if (negated || !few)
        return edge && !negated ? part_symbols(out, edges, 3)
                                : part_symbol(out, ANY);
    *out = (struct part){ 0 };
    for (size_t i = 0; i < n; i++) {
        const symbol s = some[i];
        if (!strings_put(&out->now, &s, 1, NULL, 0))
            return false;
    }
    return true;
}

/* Behind a backslash, at a byte that is no digit and no operator. */
static bool parse_escape(struct pattern *p, struct part *out)
{
    const symbol edges[3] = { EDGE, ANY, EDGE };
    const unsigned char c = *p->at++;
    switch (c) {
    case '<':
    case '>':
    case 'b':
        return part_symbol(out, EDGE);
    case '`':
    case '\'':
        return part_symbol(out, EDGE);
    case 'B':
        return part_symbols(out, NULL, 0);
    case 'W':
        return part_symbols(out, edges, 3);
    case 's':
        return part_symbols(out, edges, 3);
    default:
        /* An operator that has nothing to work on, or a mistake. */
        p->stop |= !p->extended && strchr("{}()|+?", c) && c;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
            (c >= '0' && c <= '9') || c >= 0x80)
            return part_symbol(out, ANY); /* \w \S \1 and what means nothing */
        return part_symbol(out, c);
    }
}

static bool repeat_follows(const struct pattern *p)
{
    if (p->extended)
        return p->at < p->end && *p->at && strchr("*+?{", *p->at);
    return (p->at < p->end && *p->at == '*') || next_is(p, '\\', '+') ||
           next_is(p, '\\', '?') || next_is(p, '\\', '{');
}

/* A character that may have several bytes, from 128 on. Whether an operator
 * behind it repeats all of them or the last one depends on the locale. */
static bool parse_high(struct pattern *p, struct part *out)
{
    symbol bytes[4];
    size_t n = 0;
    do
        bytes[n++] = as_symbol(p, *p->at++);
    while (n < 4 && p->at < p->end && (*p->at & 0xc0) == 0x80);
    return repeat_follows(p) ? part_symbol(out, ANY)
                             : part_symbols(out, bytes, n);
}

/* One thing that may be repeated. */
static bool parse_atom(struct pattern *p, struct part *out)
{
    const unsigned char c = *p->at;
    const bool group = p->extended ? c == '(' : next_is(p, '\\', '(');
    if (group) {
        p->at += p->extended ? 1 : 2;
        if (++p->depth > DEPTH_MOST) {
            p->stop = true;
            p->at = p->end;
            return part_symbol(out, ANY);
        }
        if (!parse_or(p, out))
            return false;
        p->depth--;
        if (p->at < p->end) /* the parenthesis that closes it */
            p->at += p->extended ? 1 : 2;
        else
            p->stop = true; /* a mistake */
        return true;
    }
    if (c >= 0x80)
        return parse_high(p, out);
    p->at++;
    switch (c) {
    case '.':
        return part_symbol(out, ANY);
    case '[':
        return parse_bracket(p, out);
    case '\\':
        if (p->at == p->end)
            return part_symbol(out, ANY);
        return parse_escape(p, out);
    case '^':
        /* An anchor, or in basic expressions a byte like others. */
        return part_symbol(out, p->extended || p->at - 1 == p->start
                                    ? (symbol)EDGE
                                    : (symbol)ANY);
    case '$':
        return part_symbol(out, p->extended || p->at == p->end ? (symbol)EDGE
                                                               : (symbol)ANY);
    case '*': /* where nothing stands before it: an operator, or a byte */
    case '+':
    case '?':
    case '{':
        if (!p->extended && c != '*')
            return part_symbol(out, c);
        p->stop |= p->extended;
        return part_symbol(out, ANY);
    default:
        return part_symbol(out, as_symbol(p, c));
    }
}

struct repeat {
    unsigned least, most; /* UINT_MAX: as many as there are */
};

/* The operator behind an atom, if there is one. What is no valid interval is
 * taken for any number. */
static bool parse_repeat(struct pattern *p, struct repeat *r)
{
    const size_t skip = p->extended ? 0 : 1;
    if (p->at == p->end)
        return false;
    if (*p->at == '*') {
        p->at++;
        *r = (struct repeat){ 0, UINT_MAX };
        return true;
    }
    if (!p->extended && (*p->at != '\\' || p->end - p->at < 2))
        return false;
    const unsigned char c = p->at[skip];
    if (c != '+' && c != '?' && c != '{')
        return false;
    p->at += skip + 1;
    if (c != '{') {
        *r =
            c == '+' ? (struct repeat){ 1, UINT_MAX } : (struct repeat){ 0, 1 };
        return true;
    }
    const unsigned char *const start = p->at;
    unsigned numbers[2] = { 0, UINT_MAX };
    bool has[2] = { false, false }, comma = false;
    for (; p->at < p->end &&
           ((*p->at >= '0' && *p->at <= '9') || (*p->at == ',' && !comma));
         p->at++) {
        if (*p->at == ',') {
            comma = true;
            continue;
        }
        if (!has[comma])
            numbers[comma] = 0;
        has[comma] = true;
        if (numbers[comma] < 100000)
            numbers[comma] = numbers[comma] * 10 + (unsigned)(*p->at - '0');
    }
    const bool closed =
        p->extended ? p->at < p->end && *p->at == '}' : next_is(p, '\\', '}');
    *r = (struct repeat){ 0, UINT_MAX };
    if (!closed || (!has[0] && !comma)) {
        /* Bytes like others, perhaps: nothing that stands here counts. */
        p->at = start;
        return true;
    }
    p->at += skip + 1;
    if (has[0] || comma) {
        r->least = has[0] ? numbers[0] : 0;
        r->most = comma ? numbers[1] : r->least;
    }
    if (r->most < r->least)
        *r = (struct repeat){ 0, UINT_MAX };
    return true;
}

static bool part_copy(const struct part *from, struct part *to)
{
    *to = (struct part){ 0 };
    for (size_t i = 0; i < from->now.n; i++)
        if (!strings_put(&to->now, from->now.at[i].at, from->now.at[i].n, NULL,
                         0)) {
            part_free(to);
            return false;
        }
    return true; /* its clauses hold already */
}

static bool part_repeat(struct part *p, struct repeat r)
{
    struct part other;
    if (r.least == 0) {
        /* None at all: then nothing of it is needed. */
        const bool once = r.most == 1 && p->n == 0;
        if (once)
            return strings_put(&p->now, NULL, 0, NULL, 0);
        part_free(p);
        return part_symbol(p, ANY);
    }
    const unsigned copies = r.least < REPEATS_MOST ? r.least : REPEATS_MOST;
    struct part one;
    if (copies > 1 || r.most != r.least || copies < r.least) {
        if (!part_copy(p, &one))
            return false;
        bool ok = true;
        for (unsigned i = 1; ok && i < copies; i++)
            ok = part_copy(&one, &other) && part_then(p, &other);
        part_free(&one);
        if (ok && (r.most != r.least || copies < r.least))
            ok = part_symbol(&other, ANY) && part_then(p, &other);
        return ok;
    }
    return true;
}

/* Things that follow one another. */
static bool parse_then(struct pattern *p, struct part *out)
{
    struct part next;
    struct repeat r;
    if (!part_symbols(out, NULL, 0))
        return false;
    while (!alternative_ends(p)) {
        bool ok = parse_atom(p, &next);
        while (ok && parse_repeat(p, &r))
            ok = part_repeat(&next, r);
        if (!ok) {
            part_free(&next);
            part_free(out);
            return false;
        }
        if (!part_then(out, &next)) {
            part_free(out);
            return false;
        }
    }
    return true;
}

static bool parse_or(struct pattern *p, struct part *out)
{
    struct part next;
    if (!parse_then(p, out))
        return false;
    while (p->at < p->end &&
           (p->extended ? *p->at == '|' : next_is(p, '\\', '|'))) {
        p->at += p->extended ? 1 : 2;
        if (!parse_then(p, &next)) {
            part_free(out);
            return false;
        }
        if (!part_or(out, &next)) {
            part_free(out);
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------- one line of a pattern
 */

static bool line_part(const unsigned char *at, size_t n,
                      const struct pattern_rules *how, struct part *out)
{
    bool ok = true;
    struct pattern p = { .at = at,
                         .end = at + n,
                         .start = at,
                         .extended = how->syntax == PATTERN_EXTENDED,
                         .fold = how->fold };
    if (how->multibyte)
        for (size_t i = 0; i < n; i++)
            if (at[i] >= 0x80)
                return part_symbol(out, ANY);
    if (how->syntax == PATTERN_FIXED) {
        *out = (struct part){ 0 };
        ok = part_symbols(out, NULL, 0);
        struct string *const s = ok ? &out->now.at[0] : NULL;
        for (size_t i = 0; ok && i < n; i++) {
            const symbol one = as_symbol(&p, at[i]);
            ok = string_put(s, &one, 1);
        }
    } else {
        ok = parse_or(&p, out);
        if (ok && (p.stop || p.at != p.end)) { /* a mistake, or too deep */
            part_free(out);
            ok = part_symbol(out, ANY);
        }
    }
    struct part whole, edge;
    if (ok && how->words && (ok = part_symbol(&whole, EDGE))) {
        ok = part_then(&whole, out) && part_symbol(&edge, EDGE) &&
             part_then(&whole, &edge);
        *out = whole;
    }
    if (!ok)
        part_free(out);
    return ok;
}

/* ------------------------------------------------------------------- terms */

struct needing {
    const struct term_rules *rules;
    const bly_hasher *hasher;
    bool fold;        /* the question's */
    int grams, words; /* numbers of classes */
};

static bool term_put(struct need_alternative *a, uint64_t hash, int number,
                     bool word)
{
    const bly_index_term term = { hash, (uint64_t)number };
    for (size_t i = 0; i < a->n; i++)
        if (a->terms[i].hash == term.hash &&
            a->terms[i].class_number == term.class_number)
            return true;
    if (a->n >= TERMS_MOST)
        return true;
    if (!GROW(&a->terms, &a->room, a->n + 1))
        return false;
    a->terms[a->n++] = term;
    a->nwords += word;
    return true;
}

/* The terms of a run of bytes; edges[i]: before byte i something is known to
 * end or begin, and edges[n] likewise. */
static bool run_terms(const struct needing *w, const char *run, size_t n,
                      const bool *edges, struct need_alternative *a)
{
    for (size_t i = 0; w->words >= 0 && i < n;) {
        if (!is_word_byte((unsigned char)run[i])) {
            i++;
            continue;
        }
        /* Words from here on, joined by one byte each. */
        size_t starts[CHAIN_WORDS], nwords = 0;
        while (i < n && is_word_byte((unsigned char)run[i])) {
            const size_t start = i;
            while (i < n && is_word_byte((unsigned char)run[i]))
                i++;
            const bool left =
                start ? true : edges[0]; /* the byte before is no part of it */
            const bool right = i < n ? true : edges[n];
            if (left && right) {
                starts[nwords++ % CHAIN_WORDS] = start;
                if (!term_put(a, bly_hash(w->hasher, run + start, i - start),
                              w->words, true))
                    return false;
                const size_t first = starts[nwords % CHAIN_WORDS];
                if (nwords >= CHAIN_WORDS &&
                    !term_put(a, bly_hash(w->hasher, run + first, i - first),
                              w->words, true))
                    return false;
            } else {
                nwords = 0;
            }
            if (i + 1 < n && is_joiner((unsigned char)run[i]) &&
                is_word_byte((unsigned char)run[i + 1]))
                i++;
            else
                break;
        }
    }
    if (w->grams < 0 || n < GRAM_BYTES)
        return true;
    for (size_t i = 0; i + GRAM_BYTES <= n; i++) {
        const unsigned char *const g = (const unsigned char *)run + i;
        const uint64_t gram = (uint64_t)g[0] | (uint64_t)g[1] << 8 |
                              (uint64_t)g[2] << 16 | (uint64_t)g[3] << 24;
        uint64_t hash;
        bly_hash_ints(w->hasher, &gram, 1, &hash);
        if (!term_put(a, hash, w->grams, false))
            return false;
    }
    return true;
}

static bool string_terms(const struct needing *w, const struct string *s,
                         struct need_alternative *a)
{
    char run[SYMBOLS_MOST + 2];
    bool edges[SYMBOLS_MOST + 3] = { false };
    size_t n = 0;
    bool ok = true;
    for (size_t i = 0; ok && i <= s->n; i++) {
        symbol c = i < s->n ? s->at[i] : (symbol)ANY;
        if (c == EDGE) {
            edges[n] = true;
            continue;
        }
        if (c < EDGE && w->fold) {
            const bool letter =
                (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
            if (letter && w->rules->fold)
                c |= 0x20;
            else if (letter)
                c = ANY; /* the index has it in one case alone */
        } else if (c < EDGE && w->rules->fold && c >= 'A' && c <= 'Z') {
            c |= 0x20;
        }
        if (c != ANY) {
            run[n++] = (char)c;
            edges[n] = false;
            continue;
        }
        ok = run_terms(w, run, n, edges, a);
        n = 0;
        edges[0] = false;
    }
    return ok;
}

static void clause_free(struct need_clause *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->alternatives[i].terms);
    free(c->alternatives);
    *c = (struct need_clause){ 0 };
}

void needs_free(struct needs *needs)
{
    for (size_t i = 0; i < needs->n; i++)
        clause_free(&needs->clauses[i]);
    free(needs->clauses);
    *needs = (struct needs){ 0 };
}

/* A set becomes a clause, unless one of its strings requires nothing. */
static bool clause_put(const struct needing *w, const struct strings *set,
                       struct needs *out)
{
    struct need_clause c = { 0 };
    bool ok = true, says = set->n > 0;
    for (size_t i = 0; ok && says && i < set->n; i++) {
        ok = GROW(&c.alternatives, &c.room, c.n + 1);
        if (!ok)
            break;
        c.alternatives[c.n] = (struct need_alternative){ 0 };
        ok = string_terms(w, &set->at[i], &c.alternatives[c.n]);
        says = c.alternatives[c.n++].n > 0;
    }
    ok = ok && (!says || GROW(&out->clauses, &out->room, out->n + 1));
    if (ok && says)
        out->clauses[out->n++] = c;
    else
        clause_free(&c);
    return ok;
}

bool needs_find(const bly_bytes *patterns, size_t n,
                const struct pattern_rules *how, const struct term_rules *terms,
                const bly_hasher *hasher, struct needs *out)
{
    struct part all = { 0 }, one;
    bool ok = true, first = true;
    *out = (struct needs){ 0 };
    for (size_t i = 0; ok && i < n; i++) {
        const unsigned char *at = (const unsigned char *)patterns[i].ptr;
        const unsigned char *const end = at + patterns[i].len;
        for (bool more = true; ok && more;) {
            const unsigned char *const stop =
                at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
            bool whole;
            more = stop;
            ok = line_part(at, (size_t)((stop ? stop : end) - at), how, &one);
            if (ok && first && !more && n == 1) {
                all = one;
                break;
            }
            /* One of several: the best that each requires. */
            if (ok)
                part_best(&one, &whole);
            for (size_t j = 0; ok && j < one.now.n; j++)
                ok = strings_put(&all.now, one.now.at[j].at, one.now.at[j].n,
                                 NULL, 0);
            part_free(&one);
            first = false;
            at = stop ? stop + 1 : end;
        }
    }
    const struct needing w = {
        .rules = terms,
        .hasher = hasher,
        .fold = how->fold,
        .grams = terms->has[TERM_GRAMS] ? 0 : -1,
        .words = terms->has[TERM_WORDS] && !how->multibyte
                     ? terms->has[TERM_GRAMS]
                     : -1,
    };
    ok = ok && clause_put(&w, &all.now, out);
    for (size_t i = 0; ok && i < all.n; i++)
        ok = clause_put(&w, &all.clauses[i], out);
    part_free(&all);
    if (!ok)
        needs_free(out);
    return ok;
}

/* ------------------------------------------------------------------ asking */

bly_status needs_ask(const struct needs *needs, const bly_index *x,
                     uint64_t *maybe, uint64_t *scratch)
{
    const size_t words = bly_index_words(x);
    uint64_t *const one = scratch, *const any = scratch + words;
    bly_index_live(x, maybe);
    for (size_t i = 0; i < needs->n; i++) {
        const struct need_clause *const c = &needs->clauses[i];
        memset(any, 0, words * sizeof *any);
        for (size_t j = 0; j < c->n; j++) {
            const bly_status st = bly_index_ask(x, c->alternatives[j].terms,
                                                c->alternatives[j].n, one);
            if (st)
                return st;
            for (size_t k = 0; k < words; k++)
                any[k] |= one[k];
        }
        for (size_t k = 0; k < words; k++)
            maybe[k] &= any[k];
    }
    return BLY_OK;
}

double needs_expected(const struct needs *needs, const bly_index *x)
{
    double least = (double)bly_index_documents(x);
    for (size_t i = 0; i < needs->n; i++) {
        double sum = 0;
        for (size_t j = 0; j < needs->clauses[i].n; j++)
            sum +=
                bly_index_expected(x, needs->clauses[i].alternatives[j].terms,
                                   needs->clauses[i].alternatives[j].n);
        least = sum < least ? sum : least;
    }
    return least;
}

/* ------------------------------------------------------------------- plain */

bool pattern_plain(bly_bytes pattern, const struct pattern_rules *how,
                   char *out, size_t *n)
{
    const char *const p = pattern.ptr;
    *n = 0;
    for (size_t i = 0; i < pattern.len; i++) {
        char c = p[i];
        if (c == '\n')
            return false;
        if (how->syntax != PATTERN_FIXED) {
            if (c == '\\') {
                if (++i == pattern.len)
                    return false;
                c = p[i];
                /* What means the byte itself in both syntaxes. */
                if (!c || !strchr(".[]*^$\\/", c))
                    return false;
            } else if (!c || strchr(".[*^$", c) ||
                       (how->syntax == PATTERN_EXTENDED &&
                        strchr("(){}+?|", c))) {
                return false;
            }
        }
        out[(*n)++] = c;
    }
    return *n > 0;
}

/*
 * expand.c - all forms of a word
 *
 * What hunspell undoes when it is asked (strip an affix, look the rest up) is
 * done here beforehand. A form is a root with, in this order of putting on,
 *
 *     suffix, second suffix, prefix
 *
 * each of them optional. The flag of an affix is the root's, or stands behind
 * another affix (a continuation class): the second suffix needs its flag behind
 * the first, and of prefix and suffix one may enable the other. Affixes that
 * meet must both be crossable. hunspell knows no more than two suffixes, so the
 * forms of a root are finite; a file can still name so many that they fill any
 * memory, and is stopped by the bounds below.
 */
#include <string.h>

#include "apps/spell/expand.h"

/* The largest dictionaries whose forms can be listed at all (Czech, Polish)
 * have thousands for a root and some ten million. */
#define FORMS_OF_ROOT ((uint64_t)1 << 20)
#define FORMS_MOST ((uint64_t)100 * 1000 * 1000)
#define TRIES_MOST ((uint64_t)2 * 1000 * 1000 * 1000)

size_t role_key(enum role r, unsigned ask, const char *word, size_t n,
                char out[KEY_BYTES])
{
    size_t at = 0;
    if (r != ROLE_WORD)
        out[at++] = (char)((unsigned)r + ask);
    memcpy(out + at, word, n);
    return at + n;
}

/* What is being made of which root. */
struct deriving {
    struct expansion *x;
    const struct aff_flags *flags;
    uint64_t nforms;                        /* before this root */
    bool upper;                             /* forms for capitals alone */
    unsigned char letters[JOINING_LETTERS]; /* of its flags, for rules */
    unsigned nletters;
};

enum {
    AS_WORD = 1,
    AS_BEGIN = 2,
    AS_MIDDLE = 4,
    AS_END = 8,
    AS_JOINED = 16,      /* anywhere in a compound by rule */
    AS_JOINED_LAST = 32, /* at its end: what has affixes */
    AS_LAST = AS_END | AS_JOINED_LAST,
};

/* A form as part of a compound by rule: with each letter. */
static bool joined_give(struct deriving *d, enum role role, const char *text,
                        size_t n)
{
    struct expansion *const x = d->x;
    char key[WORD_BYTES + 1];
    memcpy(key + 1, text, n);
    for (unsigned i = 0; i < d->nletters; i++) {
        key[0] = (char)d->letters[i];
        x->nforms++;
        if (!x->take(x->ctx, role, key, n + 1))
            return false;
    }
    return true;
}

static bool form_give(struct deriving *d, const struct word *w, unsigned as)
{
    struct expansion *const x = d->x;
    const enum role word = d->upper ? ROLE_UPPER
                           : flags_have(d->flags, x->aff->keep_case)
                               ? ROLE_EXACT
                               : ROLE_WORD;
    const enum role roles[] = { word, ROLE_BEGIN, ROLE_MIDDLE, ROLE_END };
    char text[WORD_BYTES];
    if (d->upper)
        as &= AS_WORD;
    if (!as || !w->n)
        return true;
    const size_t n = word_write(w, text);
    for (unsigned i = 0; i < 4; i++) {
        if (!(as >> i & 1))
            continue;
        x->nforms++;
        if (!x->take(x->ctx, roles[i], text, n))
            return false;
    }
    if ((as & AS_JOINED && !joined_give(d, ROLE_JOINED, text, n)) ||
        (as & AS_JOINED_LAST && !joined_give(d, ROLE_JOINED_LAST, text, n)))
        return false;
    x->why = x->nforms - d->nforms > FORMS_OF_ROOT
                 ? "more than a million forms of one word"
             : x->nforms > FORMS_MOST ? "more than 100 million forms"
                                      : NULL;
    return !x->why;
}

static bool form_make(struct deriving *d, const struct affix *a,
                      const struct word *from, struct word *to)
{
    d->x->ntries++;
    return affix_put(d->x->aff, a, from, to);
}

/* All is done, or too much was tried. */
static bool tries_left(struct deriving *d)
{
    if (d->x->ntries <= TRIES_MOST)
        return true;
    d->x->why = "affixes without end: more than two billion were tried";
    return false;
}

/* The places in a compound that flags allow: those of the root, or of the affix
 * that decides. */
static unsigned places(const struct deriving *d, const struct aff_flags *affix)
{
    static const struct aff_flags none;
    const struct aff *const a = d->x->aff;
    const struct aff_flags *const root = d->flags;
    unsigned as = !d->nletters ? 0 : affix ? AS_JOINED_LAST : AS_JOINED;
    affix = affix ? affix : &none;
#define HAS(flag) (flags_have(root, flag) || flags_have(affix, flag))
    if (HAS(a->compound))
        as |= AS_BEGIN | AS_MIDDLE | AS_END;
    as |= (HAS(a->begin) ? AS_BEGIN : 0) | (HAS(a->middle) ? AS_MIDDLE : 0) |
          (HAS(a->end) ? AS_END : 0);
#undef HAS
    return as;
}

/* What a root with a prefix and a suffix, either of which may be NULL, may be.
 */
static unsigned roles_of(const struct deriving *d, const struct affix *p,
                         const struct affix *s)
{
    static const struct aff_flags none;
    const struct aff *const a = d->x->aff;
    const struct aff_flags *const pf = p ? &p->next : &none;
    const struct aff_flags *const sf = s ? &s->next : &none;
    if (s && flags_have(sf, a->circumfix) != flags_have(pf, a->circumfix))
        return 0;
    if (s ? flags_have(sf, a->need_affix) &&
                (!p || flags_have(pf, a->need_affix))
          : flags_have(pf, a->need_affix))
        return 0;
    unsigned as = places(d, s ? sf : pf);
    if (s && !flags_have(sf, a->permit))
        as &= AS_LAST;
    if (p && !flags_have(pf, a->permit))
        as &= ~(unsigned)AS_LAST;
    if (flags_have(sf, a->forbid) || flags_have(pf, a->forbid))
        as = 0;
    if (!flags_have(d->flags, a->only_compound) &&
        !flags_have(sf, a->only_compound) && !flags_have(pf, a->only_compound))
        as |= AS_WORD;
    return as;
}

/* -------------------------------------------------------------- two affixes */

/* May prefix p meet suffix s on this root? One of them may bring the flag of
 * the other. */
static bool may_meet(const struct deriving *d, const struct affix *p,
                     const struct affix *s)
{
    return p->cross && s->cross &&
           (flags_have(d->flags, s->flag) || flags_have(&p->next, s->flag)) &&
           (flags_have(d->flags, p->flag) || flags_have(&s->next, p->flag));
}

/* Prefixes of the flags in f, before what ends with suffix s, and with a second
 * one where there is one. */
static bool with_prefixes(struct deriving *d, const struct aff_flags *f,
                          const struct affix *s, const struct affix *second,
                          const struct word *w)
{
    struct word made;
    for (size_t i = 0; i < f->n; i++) {
        const struct affix_class c = aff_class(d->x->aff, true, f->at[i]);
        for (size_t k = 0; k < c.n && tries_left(d); k++) {
            const struct affix *const p = &c.at[k];
            const bool fits = !second                       ? may_meet(d, p, s)
                              : !p->cross || !second->cross ? false
                              : flags_have(&second->next, p->flag)
                                  ? true
                                  : may_meet(d, p, s);
            if (fits && form_make(d, p, w, &made) &&
                !form_give(d, &made,
                           second ? roles_of(d, p, s) & (AS_WORD | AS_LAST)
                                  : roles_of(d, p, s)))
                return false;
        }
    }
    return !d->x->why && tries_left(d);
}

/* A second suffix behind suffix s, whose flag stands behind s. */
static bool with_second(struct deriving *d, const struct affix *s,
                        const struct word *w)
{
    const struct aff *const a = d->x->aff;
    struct word made;
    if (flags_have(&s->next, a->only_compound))
        return true;
    for (size_t i = 0; i < s->next.n; i++) {
        const struct affix_class c = aff_class(a, false, s->next.at[i]);
        for (size_t k = 0; k < c.n && tries_left(d); k++) {
            const struct affix *const second = &c.at[k];
            if (!form_make(d, second, w, &made))
                continue;
            unsigned as = places(d, &s->next) & AS_LAST;
            if (!flags_have(d->flags, a->only_compound))
                as |= AS_WORD;
            if (flags_have(&s->next, a->circumfix))
                as = 0;
            /* The root has the first, as without a prefix. */
            if ((flags_have(d->flags, s->flag) && !form_give(d, &made, as)) ||
                !with_prefixes(d, d->flags, s, second, &made) ||
                !with_prefixes(d, &second->next, s, second, &made) ||
                !with_prefixes(d, &s->next, s, second, &made))
                return false;
        }
    }
    return !d->x->why && tries_left(d);
}

/* Suffixes of the flags in f; those behind a prefix need one. */
static bool with_suffixes(struct deriving *d, const struct aff_flags *f,
                          const struct word *root, bool alone)
{
    struct word made;
    for (size_t i = 0; i < f->n; i++) {
        const struct affix_class c = aff_class(d->x->aff, false, f->at[i]);
        for (size_t k = 0; k < c.n && tries_left(d); k++) {
            const struct affix *const s = &c.at[k];
            if (!form_make(d, s, root, &made))
                continue;
            if ((alone && !form_give(d, &made, roles_of(d, NULL, s))) ||
                !with_prefixes(d, d->flags, s, NULL, &made) ||
                !with_prefixes(d, &s->next, s, NULL, &made) ||
                !with_second(d, s, &made))
                return false;
        }
    }
    return !d->x->why && tries_left(d);
}

static bool derive(struct deriving *d, const struct word *root)
{
    const struct aff *const a = d->x->aff;
    const struct aff_flags *const f = d->flags;
    struct word made;
    if (!flags_have(f, a->need_affix) &&
        !form_give(d, root,
                   places(d, NULL) |
                       (flags_have(f, a->only_compound) ? 0 : AS_WORD)))
        return false;
    if (!with_suffixes(d, f, root, true))
        return false;
    for (size_t i = 0; i < f->n; i++) {
        const struct affix_class c = aff_class(a, true, f->at[i]);
        for (size_t k = 0; k < c.n && tries_left(d); k++) {
            const struct affix *const p = &c.at[k];
            if ((form_make(d, p, root, &made) &&
                 !form_give(d, &made, roles_of(d, p, NULL))) ||
                (p->next.n && !with_suffixes(d, &p->next, root, false)))
                return false;
        }
    }
    return !d->x->why && tries_left(d);
}

bool expand(struct expansion *x, const struct word *root,
            const struct aff_flags *flags)
{
    const enum capitals caps = word_capitals(root);
    struct deriving d = { .x = x, .flags = flags, .nforms = x->nforms };
    x->why = NULL;
    d.nletters =
        x->letters ? joining_letters_of(x->letters, root, flags, d.letters) : 0;
    if (!derive(&d, root))
        return false;
    /* hunspell accepts IPHONE and NASA'S for iPhone and NASA's, but no other
     * capitalisation of them. */
    if ((caps != CAPS_MIXED && !(caps == CAPS_ALL && flags->n)) ||
        flags_have(flags, x->aff->keep_case) ||
        flags_have(flags, x->aff->forbidden))
        return true;
    struct word capital = *root;
    word_lower(&capital, x->aff->dotless);
    word_capitalise(&capital, x->aff->dotless);
    d.upper = true;
    return derive(&d, &capital);
}

/*
 * aff.h - hunspell's .aff: how the words of a .dic are inflected and joined
 *
 *     SET UTF-8                 the encoding of both files
 *     SFX D Y 2                 a class of suffixes: its flag; does it go with
 *     SFX D 0 ed  [^ey]         prefixes; how many rules. A rule: what is cut
 *     SFX D y ied [^aeiou]y     off, what is put on, and how the word must end
 *
 * A word of the .dic has flags (walk/D), and so may have what a rule puts on
 * (ed/X): continuation classes. Other lines give a flag a meaning of its own:
 * such a word needs an affix, is forbidden, may begin a compound.
 *
 * Nothing here trusts the file: every error has the number of its line.
 */
#ifndef BLY_SPELL_AFF_H
#define BLY_SPELL_AFF_H

#include <iconv.h>

#include "apps/spell/letters.h"
#include "io/input.h"

typedef uint16_t aff_flag; /* 0: none */

struct aff_flags {
    aff_flag *at;
    size_t n;
};

/* What one character of a condition may be. */
struct aff_condition {
    const uint32_t *chars;
    size_t n;
    bool any, except;
};

struct affix {
    aff_flag flag;
    bool prefix, cross;
    const uint32_t *strip, *add;
    size_t nstrip, nadd, nconditions;
    const struct aff_condition *conditions;
    struct aff_flags next; /* continuation classes */
};

/* One flag of a COMPOUNDRULE, and how often words with it may follow. */
struct aff_rule_part {
    aff_flag flag;
    char times; /* '?': once or not; '*': any number; else once */
};

struct aff_rule {
    struct aff_rule_part *at;
    size_t n;
};

/* Rules of one flag: a part of an array. */
struct affix_class {
    const struct affix *at;
    size_t n;
};

struct aff {
    enum { FLAG_BYTE, FLAG_LONG, FLAG_NUMBER, FLAG_UTF8 } flags_are;
    char encoding[40]; /* as iconv knows it */
    iconv_t convert;
    bool converts; /* no: the files are UTF-8 */

    struct affix *affixes; /* sorted by prefix and flag */
    size_t naffixes, room;
    uint32_t *first; /* 2 * 65536 + 1 places in it */

    /* Flags with a meaning. */
    aff_flag need_affix, forbidden, keep_case, only_compound, circumfix;
    aff_flag compound, begin, middle, end, permit, forbid;
    bool full_strip, sharps, compound_case, compound_triple;
    unsigned compound_least, compound_words;
    bool simplified_triple, compound_dup;
    bool dotless;           /* LANG: case as in Turkish */
    struct aff_rule *rules; /* COMPOUNDRULE */
    size_t nrules, nrule_room;

    struct block iconvs; /* FROM NUL TO NUL, and so on */
    struct block breaks; /* pattern NUL, and so on */
    bool breaks_given;
    struct word ignored;
    struct aff_flags *aliases; /* AF */
    size_t naliases, nalias_room;

    char unknown[200]; /* what is not followed, as "A, B" */
    struct aff_memory *memory;
};

/* Read the text of an .aff. False, and why, with the line. NULL text is that of
 * a language without affixes. aff_free() in any case. */
bool aff_read(struct aff *a, const char *text, size_t n, char *why,
              size_t nwhy);
void aff_free(struct aff *a);

/* Flags as they stand behind a word; aliases are looked up. False: they are
 * none, or there is no memory. */
bool aff_flags_read(struct aff *a, const char *text, size_t n,
                    struct aff_flags *out);

/* Text of the files as a word, without what is ignored. */
bool aff_word(struct aff *a, const char *text, size_t n, struct word *out);

/* Note that a directive is there and not followed. */
void aff_not_followed(struct aff *a, const char *name);

static inline bool flags_have(const struct aff_flags *f, aff_flag flag)
{
    for (size_t i = 0; flag && i < f->n; i++)
        if (f->at[i] == flag)
            return true;
    return false;
}

/* The rules of a flag. */
static inline struct affix_class aff_class(const struct aff *a, bool prefix,
                                           aff_flag flag)
{
    const uint32_t *const at = a->first + ((size_t)prefix << 16 | flag);
    const size_t n = at[1] - at[0];
    return (struct affix_class){ n ? a->affixes + at[0] : NULL, n };
}

/* The word with the affix put on; false if it does not fit. */
bool affix_put(const struct aff *a, const struct affix *x,
               const struct word *from, struct word *to);

#endif

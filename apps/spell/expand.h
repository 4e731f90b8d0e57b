/*
 * expand.h - all forms of a word
 *
 * A form plays roles. In a filter the key of a form is its text with a byte
 * before it that says the role; a word that stands by itself has none, so that
 * bloomery has finds it too.
 */
#ifndef BLY_SPELL_EXPAND_H
#define BLY_SPELL_EXPAND_H

#include "apps/spell/joining.h"

enum role {
    ROLE_WORD,      /* stands by itself, in any case that fits */
    ROLE_EXACT,     /* only written like this: KEEPCASE */
    ROLE_UPPER,     /* only where all is in capitals: Iphone, for IPHONE */
    ROLE_BEGIN,     /* of a compound */
    ROLE_MIDDLE,    /* of a compound */
    ROLE_END,       /* of a compound */
    ROLE_FORBIDDEN, /* three bytes: see role_asks() */
    ROLE_JOINED = ROLE_FORBIDDEN + 3, /* of a compound by rule: behind the
                                         letter of its flag (joining.h) */
    ROLE_JOINED_LAST,                 /* likewise, at its end only */
    ROLE_TWICE /* several words of the dictionary give this part */
};

/* Wrong about a forbidden word, a filter would flag a right one. So such words
 * are there three times, and are asked for as often: at a rate p that is wrong
 * with p^3. */
static inline unsigned role_asks(enum role r)
{
    return r == ROLE_FORBIDDEN ? 3 : 1;
}

/* A key, with its byte, into out; how long it is. */
#define KEY_BYTES (WORD_BYTES + 2) /* role, letter, word */
size_t role_key(enum role r, unsigned ask, const char *word, size_t n,
                char out[KEY_BYTES]);

/* One form in one role; false stops. */
typedef bool expand_take(void *ctx, enum role role, const char *text, size_t n);

struct expansion {
    const struct aff *aff;
    const struct joining_letters *letters; /* NULL: no rules */
    expand_take *take;
    void *ctx;

    /* Results. */
    uint64_t nforms, ntries;
    const char *why; /* it stopped; NULL: take() stopped it */
};

/* Give all forms of a root with its flags. */
bool expand(struct expansion *x, const struct word *root,
            const struct aff_flags *flags);

#endif

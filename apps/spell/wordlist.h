/*
 * wordlist.h - words from lists and dictionaries
 *
 * A list has a word per line, in UTF-8. A dictionary (.dic) has words with
 * flags, whose forms its .aff gives.
 */
#ifndef BLY_SPELL_WORDLIST_H
#define BLY_SPELL_WORDLIST_H

#include "apps/spell/expand.h"
#include "apps/spell/traits.h"
#include "io/text_set.h"

struct wordlist {
    expand_take *take; /* gets every form, some more than once */
    void *ctx;
    bool skip_bad;
    struct spell_traits *is; /* what all of them say */

    /* Results. */
    uint64_t nwords, nforms, nbad; /* as they stand there; what came of them */
    bool stopped;                  /* take() stopped it */
    char not_followed[256];        /* directives */
};

/* Read n files. affix, unless NULL, is the .aff of all that are dictionaries;
 * else it stands beside each. False, with the reason printed. Lines that are no
 * words are named, and the others read. */
bool wordlist_read(struct wordlist *l, const char *const *names, size_t n,
                   const char *affix);

/* Do they join words to compounds? False, with the reason printed. */
bool wordlist_joins(const char *const *names, size_t n, const char *affix,
                    bool *joins);

bool is_dictionary(const char *name);

/* The .aff beside a .dic; the caller frees it. NULL: no memory. */
char *affix_beside(const char *dictionary);

#endif

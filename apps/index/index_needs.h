/*
 * index_needs.h - what every line that a pattern matches must contain
 *
 * An AND of clauses, each an OR of alternatives, each an AND of terms:
 *
 *     (timeout|refused) by 192.0.2.7$    grams of "timeout by 192.0.2.7", or
 *                                        those of "refused by 192.0.2.7"; in
 *                                        both the words by and 192.0.2.7
 *
 * A pattern from which nothing follows has no clauses; then the index cannot
 * help. What follows never depends on the locale.
 */
#ifndef BLY_INDEX_NEEDS_H
#define BLY_INDEX_NEEDS_H

#include "apps/index/index_terms.h"

enum pattern_syntax { PATTERN_BASIC, PATTERN_EXTENDED, PATTERN_FIXED };

struct pattern_rules {
    enum pattern_syntax syntax;
    bool words;     /* -w */
    bool fold;      /* -i */
    bool multibyte; /* bytes from 128 on may be parts of characters whose other
                       bytes look like ASCII: neither UTF-8 nor single bytes */
};

struct need_alternative {
    bly_index_term *terms;
    size_t n, room;
    size_t nwords; /* of these, words */
};

struct need_clause {
    struct need_alternative *alternatives;
    size_t n, room;
};

struct needs {
    struct need_clause *clauses;
    size_t n, room;
};

/* What n patterns together, one of which must match, need of an index with
 * these terms. A pattern may have lines, which are alternatives. False without
 * memory. */
bool needs_find(const bly_bytes *patterns, size_t n,
                const struct pattern_rules *how, const struct term_rules *terms,
                const bly_hasher *hasher, struct needs *out);
void needs_free(struct needs *needs);

/* The documents that may meet all clauses; scratch has room for two bitmaps. */
bly_status needs_ask(const struct needs *needs, const bly_index *x,
                     uint64_t *maybe, uint64_t *scratch);

/* How many documents are expected to be opened in vain. */
double needs_expected(const struct needs *needs, const bly_index *x);

/* The one text that a pattern stands for, if it is a plain one: n bytes in out,
 * which has room for as many as the pattern has. */
bool pattern_plain(bly_bytes pattern, const struct pattern_rules *how,
                   char *out, size_t *n);

#endif

/*
 * index_terms.h - the terms of a text, each once
 *
 *     grams   every 4 bytes of a line
 *     words   runs of A-Z a-z 0-9 _, and every four of them in a row that are
 *             joined by one of - . : / @ each, as 192.0.2.7 is
 *     kmers   every K bases of a sequence, or of its other strand, whichever
 *             number is less
 *
 * What a question may ask for follows from these definitions (index_needs.h):
 * bytes from 128 on are no part of a word, so that a word ends there in every
 * locale.
 */
#ifndef BLY_INDEX_TERMS_H
#define BLY_INDEX_TERMS_H

#include <bloomery/index.h>

enum term_class { TERM_GRAMS, TERM_WORDS, TERM_KMERS, TERM_CLASSES };
extern const char *const term_class_names[TERM_CLASSES];

#define GRAM_BYTES 4
#define CHAIN_WORDS 4
#define KMER_LEAST 11
#define KMER_MOST 32

/* Which terms an index has. */
struct term_rules {
    bool has[TERM_CLASSES];
    bool fold;  /* case */
    unsigned k; /* of kmers */
};

/* Is c part of a word; does it join words? */
static inline bool is_word_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}
static inline bool is_joiner(unsigned char c)
{
    return c == '-' || c == '.' || c == ':' || c == '/' || c == '@';
}

struct terms;

/* NULL: no memory. */
struct terms *terms_new(const bly_hasher *hasher, const struct term_rules *r);
void terms_free(struct terms *t);

/* A new document; then its text, in pieces that end at line ends. False without
 * memory. Of kmers, pieces may end anywhere. */
void terms_begin(struct terms *t);
bool terms_add(struct terms *t, const char *text, size_t n);

/* The terms, an element for each class that the index has, which stay until the
 * next terms_begin(). False without memory. */
bool terms_done(struct terms *t, bly_index_terms out[TERM_CLASSES]);

/* Fold n bytes into out, which has room for n: the length, which may be less.
 * plain: ASCII alone, so that it is n; otherwise also the few letters that a
 * search without case takes for one of ASCII. *more, unless NULL: there are
 * some. */
size_t text_fold(const char *text, size_t n, bool plain, char *out, bool *more);

#endif

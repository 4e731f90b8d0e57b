/*
 * fuzz_index_needs.c - what a pattern requires of a line, and blobs of blocks
 *
 * Whatever the pattern is, a line that it matches has the terms that it
 * requires: libc's regular expressions are asked, in the locale C. And a blob
 * is refused, or written again as it was read.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "apps/index/index_catalog.h"
#include "apps/index/index_needs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_blob(const uint8_t *data, size_t size)
{
    struct blob_says says;
    struct bytes again = { 0 };
    if (!blob_read((bly_bytes){ data, size }, &says))
        return;
    char *const name = strndup(says.name, says.nname);
    if (!name || !blob_write(&again, name, &says.mark, &says.place, says.back))
        abort();
    struct blob_says twice;
    assert(blob_read((bly_bytes){ again.at, again.n }, &twice));
    assert(twice.place.at == says.place.at && twice.back == says.back);
    free(again.at);
    free(name);
}

static bool has_term(const bly_index_terms *given, const bly_index_term *t)
{
    const bly_index_terms *const of = &given[t->class_number];
    for (size_t i = 0; i < of->n; i++)
        if (of->hashes[i] == t->hash)
            return true;
    return false;
}

/* Does the line have what is required? */
static bool line_has(const struct needs *needs, const bly_index_terms *given)
{
    for (size_t i = 0; i < needs->n; i++) {
        bool any = false;
        for (size_t j = 0; j < needs->clauses[i].n && !any; j++) {
            const struct need_alternative *const a =
                &needs->clauses[i].alternatives[j];
            bool all = true;
            for (size_t k = 0; k < a->n && all; k++)
                all = has_term(given, &a->terms[k]);
            any = all;
        }
        if (!any)
            return false;
    }
    return true;
}

static bool is_word_at(const char *text, regmatch_t m)
{
    const bool before =
        m.rm_so && is_word_byte((unsigned char)text[m.rm_so - 1]);
    return !before && !is_word_byte((unsigned char)text[m.rm_eo]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    if (data[0] & 0x80) {
        try_blob(data + 1, size - 1);
        return 0;
    }
    /* Flags, the length of the pattern, the pattern, the line. */
    const struct pattern_rules how = { .syntax = data[0] & 1 ? PATTERN_EXTENDED
                                                             : PATTERN_BASIC,
                                       .words = data[0] & 2,
                                       .fold = data[0] & 4 };
    const struct term_rules rules = { .has = { true, true },
                                      .fold = data[0] & 8 };
    const size_t n = data[1] < size - 2 ? data[1] : size - 2;
    char *const pattern = strndup((const char *)data + 2, n);
    char *const line = strndup((const char *)data + 2 + n, size - 2 - n);
    bly_spec spec = { .items = 10, .fpr = 0.01 };
    bly_filter *f = NULL;
    regex_t re;
    if (!pattern || !line || bly_new(&spec, &f))
        abort();
    const bly_hasher *const hasher = bly_hasher_of(f);
    const bly_bytes given = { pattern, strlen(pattern) };
    struct needs needs;
    if (!needs_find(&given, 1, &how, &rules, hasher, &needs))
        abort();
    /* libc takes long for nested repeats, and newlines are not of one line. */
    unsigned repeats = 0;
    for (const char *p = pattern; *p; p++)
        repeats += *p == '{' || *p == '*' || *p == '+';
    if (repeats < 4 && !strchr(pattern, '\n') && !strchr(line, '\n') &&
        n < 64 &&
        regcomp(&re, pattern,
                (how.syntax == PATTERN_EXTENDED ? REG_EXTENDED : 0) |
                    (how.fold ? REG_ICASE : 0)) == 0) {
        regmatch_t m;
        const bool matches = regexec(&re, line, 1, &m, 0) == 0 &&
                             (!how.words || is_word_at(line, m));
        if (matches) {
            bly_index_terms terms[TERM_CLASSES];
            struct terms *const t = terms_new(hasher, &rules);
            if (!t)
                abort();
            terms_begin(t);
            if (!terms_add(t, line, strlen(line)) || !terms_done(t, terms))
                abort();
            assert(line_has(&needs, terms));
            terms_free(t);
        }
        regfree(&re);
    }
    needs_free(&needs);
    bly_free(f);
    free(pattern);
    free(line);
    return 0;
}

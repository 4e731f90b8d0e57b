/*
 * traits.c - what a filter of words says of itself
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/spell/traits.h"

#define ICONV_PAIRS 64 /* pairs of metadata: some thousand of ICONV */
#define RULE_PAIRS 64

const char *spell_text(const struct block *b, size_t *at)
{
    if (*at >= b->len)
        return NULL;
    const char *const text = b->at + *at;
    *at += strlen(text) + 1;
    return text;
}

/* Is the text among those of b? step 2: among every other one. */
static bool texts_have(const struct block *b, const char *text, unsigned step)
{
    size_t at = 0;
    const char *found;
    for (unsigned i = 0; (found = spell_text(b, &at)); i++)
        if (i % step == 0 && strcmp(found, text) == 0)
            return true;
    return false;
}

bool spell_traits_add(struct spell_traits *t, const struct aff *a,
                      const struct joining_letters *letters)
{
    const char *text;
    t->known = true;
    t->compounds |= a->compound || a->begin;
    t->sharps |= a->sharps;
    t->compound_case |= a->compound_case;
    t->compound_triple |= a->compound_triple;
    t->simplified_triple |= a->simplified_triple;
    t->compound_dup |= a->compound_dup;
    t->dotless |= a->dotless;
    if (letters) {
        t->nletters = letters->n;
        t->nstates = letters->nstates;
        if (!joining_write(letters, a, &t->rules))
            return false;
    }
    if (!t->compound_least || a->compound_least < t->compound_least)
        t->compound_least = a->compound_least;
    if (a->compound_words > t->compound_words)
        t->compound_words = a->compound_words;
    for (size_t at = 0; (text = spell_text(&a->breaks, &at));)
        if (!texts_have(&t->breaks, text, 1) &&
            !block_put(&t->breaks, text, strlen(text) + 1))
            return false;
    for (size_t at = 0; (text = spell_text(&a->iconvs, &at));) {
        const char *const to = spell_text(&a->iconvs, &at);
        if (to && !texts_have(&t->iconvs, text, 2) &&
            (!block_put(&t->iconvs, text, strlen(text) + 1) ||
             !block_put(&t->iconvs, to, strlen(to) + 1)))
            return false;
    }
    if (a->ignored.n)
        t->ignored = a->ignored;
    return true;
}

void spell_traits_free(struct spell_traits *t)
{
    block_free(&t->breaks);
    block_free(&t->iconvs);
    block_free(&t->rules);
}

/* ------------------------------------------------------------------ writing */

/* Texts with blanks between them, as many as fit into one value; *at moves. */
static size_t texts_join(const struct block *b, size_t *at, unsigned step,
                         char out[BLY_NOTE_MOST + 1])
{
    size_t n = 0;
    out[0] = '\0';
    while (*at < b->len) {
        size_t behind = *at;
        for (unsigned i = 0; i < step; i++)
            if (!spell_text(b, &behind))
                return n;
        if (n + (behind - *at) > BLY_NOTE_MOST)
            return n;
        for (; *at < behind; (*at)++)
            out[n++] = b->at[*at] ? b->at[*at] : ' ';
    }
    n -= n > 0;
    out[n] = '\0';
    return n;
}

/* All texts of b, `step` of them kept together, in the pairs PREFIX-0, PREFIX-1
 * and so on. */
static bly_status pairs_set(bly_filter *f, const char *prefix, unsigned most,
                            const struct block *b, unsigned step)
{
    char value[BLY_NOTE_MOST + 1], name[32];
    bly_status st = BLY_OK;
    size_t at = 0;
    for (unsigned i = 0; !st && at < b->len && i < most; i++) {
        snprintf(name, sizeof name, "%s-%u", prefix, i);
        if (!texts_join(b, &at, step, value))
            break;
        st = bly_set_pair(f, name, value);
    }
    return st;
}

bly_status spell_traits_set(const struct spell_traits *t, bly_filter *f)
{
    char value[BLY_NOTE_MOST + 1], utf8[WORD_BYTES + 1];
    snprintf(value, sizeof value, "words%s%s%s%s%s%s", t->exact ? " exact" : "",
             t->upper ? " upper" : "", t->forbidden ? " forbidden" : "",
             t->sharps ? " sharps" : "", t->compound_case ? " case" : "",
             t->compound_triple ? " triple" : "");
    if (t->compounds)
        snprintf(value + strlen(value), 64, " compounds=%u,%u",
                 t->compound_least, t->compound_words);
    bly_status st = bly_set_pair(f, "spell", value);
    size_t at = 0;
    if (!st && t->breaks.len && texts_join(&t->breaks, &at, 1, value))
        st = bly_set_pair(f, "spell-break", value);
    if (!st)
        st = pairs_set(f, "spell-iconv", ICONV_PAIRS, &t->iconvs, 2);
    if (!st && t->joined)
        st = pairs_set(f, "spell-rule", RULE_PAIRS, &t->rules, 1);
    snprintf(value, sizeof value, "%s%s%s",
             t->simplified_triple ? " simplified" : "",
             t->compound_dup ? " dup" : "", t->dotless ? " dotless" : "");
    if (t->joined)
        snprintf(value + strlen(value), 64, " least=%u", t->compound_least);
    if (!st && value[0])
        st = bly_set_pair(f, "spell-more", value + 1);
    if (!st && t->ignored.n) {
        const size_t n = word_write(&t->ignored, utf8);
        utf8[n] = '\0';
        st =
            n <= BLY_NOTE_MOST ? bly_set_pair(f, "spell-ignore", utf8) : BLY_OK;
    }
    return st;
}

/* ------------------------------------------------------------------ reading */

/* Words of a value into b, each with a NUL behind it. */
static bool texts_split(struct block *b, bly_bytes value, unsigned step)
{
    const char *const text = value.ptr;
    const size_t before = b->len;
    unsigned n = 0;
    for (size_t i = 0; i < value.len;) {
        size_t end = i;
        while (end < value.len && text[end] != ' ')
            end++;
        if (end == i || memchr(text + i, '\0', end - i))
            return false;
        if (!block_put(b, text + i, end - i) || !block_put(b, "", 1))
            return false;
        n++;
        i = end + 1;
    }
    if (n % step)
        b->len = before;
    return n % step == 0;
}

/* The texts of the pairs PREFIX-0, PREFIX-1 and so on, into b. */
static bool pairs_read(const bly_filter *f, const char *prefix, unsigned most,
                       struct block *b, unsigned step)
{
    bly_bytes value;
    char name[32];
    for (unsigned i = 0; i < most; i++) {
        snprintf(name, sizeof name, "%s-%u", prefix, i);
        if (!bly_pair_of(f, name, &value))
            break;
        if (!texts_split(b, value, step))
            return false;
    }
    return true;
}

static bool flag_of(struct spell_traits *t, const char *word)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        { "words", &t->known },
        { "exact", &t->exact },
        { "upper", &t->upper },
        { "forbidden", &t->forbidden },
        { "sharps", &t->sharps },
        { "case", &t->compound_case },
        { "triple", &t->compound_triple },
        { "simplified", &t->simplified_triple },
        { "dup", &t->compound_dup },
        { "dotless", &t->dotless },
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(word, flags[i].name) == 0)
            return *flags[i].flag = true;
    if (sscanf(word, "least=%u", &t->compound_least) == 1)
        return t->compound_least > 0;
    t->compounds = sscanf(word, "compounds=%u,%u", &t->compound_least,
                          &t->compound_words) == 2;
    return t->compounds && t->compound_least;
}

/* All that the words of a pair say. */
static bool flags_of(struct spell_traits *t, const bly_filter *f,
                     const char *pair)
{
    struct block words = { 0 };
    bly_bytes value;
    const char *word;
    bool ok = !bly_pair_of(f, pair, &value) || texts_split(&words, value, 1);
    for (size_t at = 0; ok && (word = spell_text(&words, &at));)
        ok = flag_of(t, word);
    block_free(&words);
    return ok;
}

bool spell_traits_read(struct spell_traits *t, const bly_filter *f)
{
    bly_bytes value;
    *t = (struct spell_traits){ .compound_least = 3 };
    if (!bly_pair_of(f, "spell", &value))
        return block_put(&t->breaks, "-", 2);
    bool ok = flags_of(t, f, "spell");
    if (ok && bly_pair_of(f, "spell-break", &value))
        ok = texts_split(&t->breaks, value, 1);
    ok = ok && pairs_read(f, "spell-iconv", ICONV_PAIRS, &t->iconvs, 2) &&
         pairs_read(f, "spell-rule", RULE_PAIRS, &t->rules, 1) &&
         joining_read(&t->joining, &t->rules);
    t->joined = t->joining.n > 0;
    ok = ok && flags_of(t, f, "spell-more");
    if (ok && bly_pair_of(f, "spell-ignore", &value))
        ok = word_read(&t->ignored, value.ptr, value.len);
    return ok && t->known;
}

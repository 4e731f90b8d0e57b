/*
 * traits.c - what a filter of words says of itself
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/spell/traits.h"

#define ICONV_PAIRS 64 /* pairs of metadata: some thousand of ICONV */

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

bool spell_traits_add(struct spell_traits *t, const struct aff *a)
{
    const char *text;
    t->known = true;
    t->compounds |= a->compound || a->begin;
    t->sharps |= a->sharps;
    t->compound_case |= a->compound_case;
    t->compound_triple |= a->compound_triple;
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

bly_status spell_traits_set(const struct spell_traits *t, bly_filter *f)
{
    char value[BLY_NOTE_MOST + 1], utf8[WORD_BYTES + 1], name[32];
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
    at = 0;
    for (unsigned i = 0; !st && at < t->iconvs.len && i < ICONV_PAIRS; i++) {
        snprintf(name, sizeof name, "spell-iconv-%u", i);
        if (!texts_join(&t->iconvs, &at, 2, value))
            break;
        st = bly_set_pair(f, name, value);
    }
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
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(word, flags[i].name) == 0)
            return *flags[i].flag = true;
    t->compounds = sscanf(word, "compounds=%u,%u", &t->compound_least,
                          &t->compound_words) == 2;
    return t->compounds && t->compound_least;
}

bool spell_traits_read(struct spell_traits *t, const bly_filter *f)
{
    bly_bytes value;
    char name[32];
    *t = (struct spell_traits){ .compound_least = 3 };
    if (!bly_pair_of(f, "spell", &value))
        return block_put(&t->breaks, "-", 2);
    struct block words = { 0 };
    bool ok = texts_split(&words, value, 1);
    const char *word;
    for (size_t at = 0; ok && (word = spell_text(&words, &at));)
        ok = flag_of(t, word);
    block_free(&words);
    if (ok && bly_pair_of(f, "spell-break", &value))
        ok = texts_split(&t->breaks, value, 1);
    for (unsigned i = 0; ok && i < ICONV_PAIRS; i++) {
        snprintf(name, sizeof name, "spell-iconv-%u", i);
        if (!bly_pair_of(f, name, &value))
            break;
        ok = texts_split(&t->iconvs, value, 2);
    }
    if (ok && bly_pair_of(f, "spell-ignore", &value))
        ok = word_read(&t->ignored, value.ptr, value.len);
    return ok && t->known;
}

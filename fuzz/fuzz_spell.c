/*
 * fuzz_spell.c - hunspell's .aff and .dic, and texts checked with them
 *
 * The first byte says what markup the text has; then come an .aff, a .dic and a
 * text, with NULs between them. Whatever they hold, every form that the
 * dictionary gives for a word by itself is right, a filter keeps what was said
 * of its language, and words of the text lie inside of it.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/spell/speller.h"
#include "apps/spell/tokens.h"
#include "apps/spell/wordlist.h"
#include "report/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A small input may ask for a million forms, which teach no more than these. */
#define FORMS_MOST 5000
#define KEPT 64

struct forms {
    bly_builder *builder;
    size_t n, nkept;
    struct {
        char text[WORD_BYTES];
        size_t n;
    } kept[KEPT];
};

static bool take(void *ctx, enum role role, const char *text, size_t n)
{
    struct forms *const f = ctx;
    assert(n &&
           n <= WORD_BYTES + (role == ROLE_JOINED || role == ROLE_JOINED_LAST));
    for (unsigned i = 0; i < role_asks(role); i++) {
        char key[KEY_BYTES];
        const uint64_t hash = bly_hash(bly_builder_hasher(f->builder), key,
                                       role_key(role, i, text, n, key));
        if (bly_builder_add(f->builder, &hash, NULL, 1))
            return false;
    }
    if (role == ROLE_WORD && f->nkept < KEPT) {
        memcpy(f->kept[f->nkept].text, text, n);
        f->kept[f->nkept++].n = n;
    }
    return ++f->n < FORMS_MOST;
}

/* A file that has a path and these bytes. */
static int file_of(char path[32], const char *text, size_t n)
{
    const int fd = memfd_create("spell", 0);
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    if (fd >= 0 && write(fd, text, n) != (ssize_t)n)
        abort();
    return fd;
}

static void check(const struct speller *s, const char *from, size_t n,
                  unsigned markup)
{
    struct tokens t = { 0 };
    char *const text = malloc(n + 1); /* never a size of 0 */
    if (!text)
        return;
    if (n)
        memcpy(text, from, n);
    if (markup == 1)
        markdown_blank(text, n);
    if (markup == 2)
        latex_blank(text, n);
    if (tokens_cut(&t, text, n))
        for (size_t i = 0, at = 0; i < t.n; i++) {
            assert(t.list[i].at >= at && t.list[i].len);
            at = (size_t)t.list[i].at + t.list[i].len;
            assert(at <= n);
            speller_right(s, text + t.list[i].at, t.list[i].len,
                          at < n && text[at] == '.');
        }
    tokens_free(&t);
    free(text);
}

static void build(const char *part[3], const size_t len[3], unsigned markup)
{
    static struct forms f;
    struct spell_traits is = { 0 };
    struct wordlist l = {
        .take = take, .ctx = &f, .skip_bad = true, .is = &is
    };
    const bly_spec spec = { .kind = "blocked", .fpr = 1e-9 };
    bly_filter *filter = NULL;
    char affix[32], dictionary[32];
    const char *const names[] = { dictionary };
    const int fds[] = { file_of(affix, part[0], len[0]),
                        file_of(dictionary, part[1], len[1]) };
    f.n = f.nkept = 0;
    if (!bly_builder_new(&spec, &f.builder)) {
        const bool read = wordlist_read(&l, names, 1, affix) || l.stopped;
        if (read && f.n && !bly_builder_finish(f.builder, 1, &filter) &&
            !spell_traits_set(&is, filter)) {
            struct speller s = { .filter = filter };
            assert(spell_traits_read(&s.is, filter));
            /* A list that was stopped says nothing of its language. */
            for (size_t i = 0; !l.stopped && i < f.nkept; i++)
                assert(speller_right(&s, f.kept[i].text, f.kept[i].n, false));
            check(&s, part[2], len[2], markup);
            spell_traits_free(&s.is);
        }
        bly_free(filter);
        bly_builder_free(f.builder);
    }
    spell_traits_free(&is);
    for (size_t i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *part[3];
    size_t len[3] = { 0 };
    if (!size)
        return 0;
    quiet = true;
    const char *at = (const char *)data + 1;
    const char *const end = (const char *)data + size;
    for (size_t i = 0; i < 3; i++) {
        const char *const stop =
            i < 2 && at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        part[i] = at;
        len[i] = (size_t)((stop ? stop : end) - at);
        at = stop ? stop + 1 : end;
    }
    build(part, len, data[0] % 3);
    return 0;
}

/*
 * suffixes.c - the names that anyone can register below: com, co.uk, github.io
 *
 * A line is a rule: a name; *.name, which stands for every name one label
 * longer; or !name, an exception from that. The longest rule that fits counts,
 * an exception before all, whose suffix is one label shorter than itself.
 */
#include <string.h>

#include "apps/urls/host_names.h"
#include "apps/urls/suffixes.h"
#include "io/texts.h"
#include "report/say.h"

/* A rule, with its name in A-labels. What is not one is left out: the list may
 * get new kinds of lines. False if there is no memory. */
static bool rule_add(struct suffixes *s, const char *line, size_t n)
{
    char room[2 + NAME_ROOM];
    size_t mark = 0, len = 0;
    const char *why;
    bool address;
    while (len < n && line[len] != ' ' && line[len] != '\t' &&
           line[len] != '\r')
        len++;
    if (len == 0 || (len >= 2 && memcmp(line, "//", 2) == 0))
        return true;
    if (line[0] == '!')
        mark = 1;
    else if (len > 2 && memcmp(line, "*.", 2) == 0)
        mark = 2;
    memcpy(room, line, mark);
    const size_t name =
        name_canonical(line + mark, len - mark, room + mark, &address, &why);
    return !name || address ||
           text_set_add(&s->rules, (bly_bytes){ room, mark + name });
}

bool suffixes_read(struct suffixes *s, const char *path)
{
    struct block b = { 0 };
    *s = (struct suffixes){ 0 };
    bool ok = text_read(path, TEXT_MOST, "is it a list of suffixes?", &b);
    for (size_t at = 0; ok && at < b.len;) {
        const char *const end = memchr(b.at + at, '\n', b.len - at);
        const size_t n = end ? (size_t)(end - b.at) - at : b.len - at;
        ok = rule_add(s, b.at + at, n);
        if (!ok)
            fail("out of memory");
        at += n + 1;
    }
    block_free(&b);
    if (ok && !s->rules.n) {
        fail("%s: no rules; expected a list as publicsuffix.org publishes it",
             path);
        ok = false;
    }
    if (!ok)
        suffixes_free(s);
    return ok;
}

void suffixes_free(struct suffixes *s)
{
    text_set_free(&s->rules);
}

/* Is there a rule of this name, with a mark before it? */
static bool rule_is(const struct suffixes *s, const char *mark,
                    const char *name, size_t n)
{
    char text[2 + NAME_ROOM];
    const size_t m = strlen(mark);
    if (n > NAME_MOST)
        return false;
    memcpy(text, mark, m);
    memcpy(text + m, name, n);
    return text_set_has(&s->rules, (bly_bytes){ text, m + n });
}

size_t suffix_labels(const struct suffixes *s, const char *name, size_t n)
{
    size_t labels = name_labels(name, n);
    for (size_t at = 0; at < n; labels--) {
        const char *const dot = memchr(name + at, '.', n - at);
        const size_t above = dot ? (size_t)(dot - name) + 1 : n;
        if (rule_is(s, "!", name + at, n - at))
            return labels - 1;
        if (rule_is(s, "", name + at, n - at) ||
            (dot && rule_is(s, "*.", name + above, n - above)))
            return labels;
        at = above;
    }
    return 1;
}

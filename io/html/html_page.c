/*
 * html_page.c - what is a page, and its text
 */
#include <iconv.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/html/html.h"
#include "io/source.h"

extern __typeof__(html_tree) html_tree __attribute__((weak));

void html_free(struct html *h)
{
    block_free(&h->page);
    block_free(&h->brief);
    block_free(&h->text);
    free(h->runs);
    if (h->decoder)
        iconv_close(h->decoder);
    while (h->parts) {
        struct html_part *const p = h->parts;
        h->parts = p->older;
        free(p);
    }
    *h = (struct html){ 0 };
}

static bool ends_in(const char *name, size_t n, const char *end)
{
    const size_t nend = strlen(end);
    return n > nend && strncasecmp(name + n - nend, end, nend) == 0;
}

bool html_named(const char *name)
{
    static const char *const packed[] = { ".gz", ".zst", ".xz", ".bz2" };
    static const char *const ends[] = { ".html", ".htm", ".xhtml" };
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++)
        if (ends_in(name, n, packed[i])) {
            n -= strlen(packed[i]);
            break;
        }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends_in(name, n, ends[i]))
            return true;
    return false;
}

/* Behind white space, comments and <?xml ?>: a type of document that is html,
 * or one of three tags that nothing else begins with. */
bool html_begins(const char *bytes, size_t n)
{
    static const char *const first[] = { "<!doctype html", "<html", "<head",
                                         "<body" };
    const char *p = bytes, *const end = bytes + (n < 4096 ? n : 4096);
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    for (;;) {
        while (p < end && (*p == ' ' || (*p >= '\t' && *p <= '\r')))
            p++;
        const size_t left = (size_t)(end - p);
        const bool comment = left > 4 && memcmp(p, "<!--", 4) == 0;
        if (!comment && !(left > 5 && memcmp(p, "<?xml", 5) == 0))
            break;
        const char *const e = comment ? "-->" : "?>";
        const size_t ne = strlen(e);
        while (p + ne < end && memcmp(p, e, ne) != 0)
            p++;
        p += ne;
    }
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        const size_t len = strlen(first[i]);
        if ((size_t)(end - p) > len && strncasecmp(p, first[i], len) == 0 &&
            (p[len] == '>' || p[len] == ' ' ||
             (p[len] >= '\t' && p[len] <= '\r')))
            return true;
    }
    return false;
}

bool html_file(const char *name)
{
    char start[4096];
    return html_named(name) ||
           html_begins(start,
                       source_peek(name, SOURCE_ANY, start, sizeof start));
}

bool html_is_page(const struct html_wish *w, const char *name,
                  const char *bytes, size_t n)
{
    return w->html ||
           (name && !w->tags && (html_named(name) || html_begins(bytes, n)));
}

bool html_put(struct html *h, const char *at, size_t n)
{
    const char *const end = at + n;
    size_t run;
    while (at < end) {
        const char *p = at;
        while (p < end && (unsigned char)*p < 0xf3)
            p++;
        if (p > at && !block_put(&h->text, at, (size_t)(p - at)))
            return false;
        if (p == end)
            break;
        const size_t named = html_run_named(p, (size_t)(end - p), &run);
        if (!named && !block_put(&h->text, p, 1))
            return false;
        if (named && run < h->nruns && !h->runs[run].used) {
            struct html_run *const r = &h->runs[run];
            r->used = true;
            if (!block_put(&h->text, r->at, r->len))
                return false;
        }
        at = p + (named ? named : 1);
    }
    return true;
}

/* Is what lies in such tags part of the line around them? */
static bool is_inline(const char *name, size_t n)
{
    static const char *const names[] = {
        "a",    "abbr",   "b",   "bdi", "bdo",  "big", "cite", "code", "em",
        "font", "i",      "ins", "kbd", "mark", "q",   "s",    "samp", "small",
        "span", "strong", "sub", "sup", "tt",   "u",   "var",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == n && strncasecmp(names[i], name, n) == 0)
            return true;
    return false;
}

/* The text without a tree. */
static bool html_plain(struct html *h)
{
    const char *p = h->brief.at, *const end = p + h->brief.len;
    h->text.len = 0;
    for (size_t i = 0; i < h->nruns; i++)
        h->runs[i].used = false;
    while (p < end) {
        const char *tag = memchr(p, '<', (size_t)(end - p));
        if (!html_put(h, p, (size_t)((tag ? tag : end) - p)))
            return false;
        if (!tag)
            break;
        p = memchr(tag, '>', (size_t)(end - tag));
        p = p ? p + 1 : end;
        tag += 1 + (tag[1] == '/');
        const size_t n = strcspn(tag, " />");
        if (!is_inline(tag, n) && !block_put(&h->text, "\n", 1))
            return false;
    }
    return true;
}

bool html_works(void)
{
    return html_tree != NULL;
}

bool html_text(struct html *h, const char *page, size_t n, const char *charset,
               bly_bytes *text)
{
    bly_bytes utf8;
    bool made = false;
    const bool ok =
        html_works() && block_fit(&h->text, 64) && block_fit(&h->brief, 64) &&
        html_decode(h, page, n, charset, &utf8) && html_short(h, utf8) &&
        html_tree(h, &made) && (made || html_plain(h));
    *text = (bly_bytes){ h->text.at, h->text.len };
    return ok;
}

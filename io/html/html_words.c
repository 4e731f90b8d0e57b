/*
 * html_words.c - the words of a text that comes in pieces and may be a page
 */
#include "io/html/html_words.h"

#include <string.h>

#include "report/say.h"

bool html_words_work(void)
{
    static bool told;
    if (!html_works() && !told)
        warn("web pages are read with their tags, since bloomery was built "
             "without libgumbo");
    told = true;
    return html_works();
}

bool html_words_cut(struct html_words *w, const char *text, size_t n)
{
    if (!n)
        return true;
    if (!w->begun)
        w->page = html_is_page(w->wish, w->name, text, n) && html_words_work();
    w->begun = true;
    if (!w->page)
        return words_cut(&w->cutter, text, n);
    if (n <= HTML_HELD - w->held.len)
        return block_put(&w->held, text, n);
    w->page = false;
    return words_cut(&w->cutter, w->held.at, w->held.len) &&
           words_cut(&w->cutter, text, n);
}

bool html_words_end(struct html_words *w)
{
    bly_bytes text;
    const bool ok = !w->page || (html_text(&w->html, w->held.at, w->held.len,
                                           NULL, &text) &&
                                 words_cut(&w->cutter, text.ptr, text.len));
    w->page = w->begun = false;
    w->held.len = 0;
    return ok && words_end(&w->cutter);
}

void html_words_free(struct html_words *w)
{
    block_free(&w->held);
    html_free(&w->html);
}

/*
 * html_words.h - the words of a text that comes in pieces and may be a page
 */
#ifndef BLY_IO_HTML_WORDS_H
#define BLY_IO_HTML_WORDS_H

#include "io/html/html.h"
#include "io/text_words.h"

/* A page is held until it is there, unless it is longer: then it is a text
 * like any other. */
#define HTML_HELD ((size_t)64 << 20)

struct html_words {
    struct word_cutter cutter;    /* its each and ctx are set by the caller */
    const struct html_wish *wish; /* and these */
    const char *name;
    bool begun, page;
    struct block held;
    struct html html;
};

/* False: no memory, or the cutter's function said so. */
bool html_words_cut(struct html_words *w, const char *text, size_t n);
bool html_words_end(struct html_words *w);
void html_words_free(struct html_words *w);

/* Are files that look like pages read as such here? If not, it is said, once.
 */
bool html_words_work(void);

#endif

/*
 * html.h - the text of a web page, as its reader sees it
 *
 *     bytes  ->  UTF-8  ->  short form  ->  tree  ->  text
 *         decode       short        libgumbo     tree
 *
 * libgumbo does what HTML5 says about tags that are missing, crossed or
 * misplaced. It looks at every byte with care, at some 35 MB per second, and of
 * most bytes of a page it need not know: scripts, styles, comments, addresses,
 * classes, and the text itself. So a page is made short first (html_short.c):
 * a run of text becomes one character that stands for it. The tree is the same,
 * and whoever walks it puts the runs back.
 *
 * What counts as text is the rule in docs/dedup.md, "Web pages".
 *
 * Only programs that are linked with libgumbo have html_tree(): elsewhere it is
 * NULL, and cli/program.h says how `bloomery` becomes one that has it.
 */
#ifndef BLY_IO_HTML_H
#define BLY_IO_HTML_H

#include <bloomery.h>
#include <setjmp.h>
#include <stddef.h>

#include "io/input.h"

/* Pages of more bytes, and those whose tree would take more memory, are not
 * made into a tree: all of their text counts, in its order. */
#define HTML_TREE_BYTES ((size_t)8 << 20)
#define HTML_TREE_ROOM ((size_t)256 << 20)

/* As deep as elements may be nested; what is deeper is taken as a neighbour, as
 * browsers do. */
#define HTML_DEPTH 512

/* Memory for a tree. */
struct html_part {
    struct html_part *older;
    size_t room;
    max_align_t bytes[];
};

/* What one thread works with, from page to page. Zero is empty. */
struct html {
    struct block page, brief, text; /* UTF-8, the short form, and the result */
    struct html_run {
        const char *at;
        size_t len;
        bool used; /* it was put back */
    } * runs;
    size_t nruns, runs_room;
    void *decoder; /* iconv's, for the encoding of that name */
    char decodes[32];
    struct html_part *parts; /* the tree's memory, from newest to oldest */
    size_t used, held;       /* bytes of the newest part, and of all of them */
    jmp_buf full;            /* where to go when there is no more */
};
void html_free(struct html *h);

/* The text of a page; charset: what the header says, or NULL. It is h's until
 * the next call. False: no memory. */
bool html_text(struct html *h, const char *page, size_t n, const char *charset,
               bly_bytes *text);

/* Whether this program can do that. */
bool html_works(void);

/* Which texts are pages: all of them, none, or those that look like one. */
struct html_wish {
    bool html, tags; /* --html, --tags */
};

/* name: where the bytes are all of a file; NULL: only --html makes it a page.
 */
bool html_is_page(const struct html_wish *w, const char *name,
                  const char *bytes, size_t n);

/* Is it a page, by its name (.html, .htm, .xhtml, with the ending of packed
 * files or without) or by how it begins? */
bool html_named(const char *name);
bool html_begins(const char *bytes, size_t n);

/* The same for a file, which is opened; never standard input. */
bool html_file(const char *name);

/* ------------------------------------------------------------------- inside */

/* The page in UTF-8: what h->page holds then, or the bytes themselves. */
bool html_decode(struct html *h, const char *page, size_t n,
                 const char *charset, bly_bytes *out);

/* Make h->brief and h->runs of a page. */
bool html_short(struct html *h, bly_bytes page);

/* The number of the run that a short form names at `at`, and how long the name
 * is; 0 where none is named. */
size_t html_run_named(const char *at, size_t n, size_t *run);

/* Append the text of what the short form has between two tags, or of a node of
 * the tree: with its runs, each of which is given once. */
bool html_put(struct html *h, const char *at, size_t n);

/* The text of the short form, into h->text. *made: whether a tree could be
 * made; where not, nothing else was done. */
bool html_tree(struct html *h, bool *made);

#endif

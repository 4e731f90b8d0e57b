/*
 * html_tree.c - the tree of a page, and what of it is text
 *
 * Two walks. The first takes all that a browser shows. The second leaves out
 * what most pages of a site have in common, by the rule that docs/dedup.md
 * states; what is left counts, unless that is next to nothing.
 *
 * libgumbo takes its memory from parts that are used again for the next page,
 * so nothing is ever given back to it, and its recursive way to free a tree is
 * not gone. Where a page asks for too much, memory leaves libgumbo by
 * longjmp(): it holds nothing else that would have to be released.
 */
#include <gumbo.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/html/html.h"

/* ------------------------------------------------------------------- memory */

#define PART_BYTES ((size_t)1 << 20)

static void *part_take(void *ctx, size_t n)
{
    struct html *const h = ctx;
    const size_t size =
        (n + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (!h->parts || h->parts->room - h->used < size) {
        const size_t room = size > PART_BYTES ? size : PART_BYTES;
        struct html_part *const p =
            h->held + room > HTML_TREE_ROOM ? NULL : malloc(sizeof *p + room);
        if (!p)
            longjmp(h->full, 1);
        *p = (struct html_part){ h->parts, room };
        h->parts = p;
        h->held += room;
        h->used = 0;
    }
    void *const at = (char *)h->parts->bytes + h->used;
    h->used += size;
    return at;
}

static void part_leave(void *ctx, void *at)
{
    (void)ctx;
    (void)at;
}

/* All but one part of the usual size go back to the system. */
static void parts_reset(struct html *h)
{
    while (h->parts && (h->parts->older || h->parts->room > PART_BYTES)) {
        struct html_part *const p = h->parts;
        h->parts = p->older;
        h->held -= p->room;
        free(p);
    }
    h->used = 0;
}

static GumboOutput *tree_of(struct html *h)
{
    GumboOptions o = kGumboDefaultOptions;
    o.allocator = part_take;
    o.deallocator = part_leave;
    o.userdata = h;
    o.max_errors = 0;
    if (h->brief.len > HTML_TREE_BYTES || setjmp(h->full))
        return NULL;
    return gumbo_parse_with_options(&o, h->brief.at, h->brief.len);
}

/* --------------------------------------------------------------------- rule */

enum part {
    PART_SHOWN,  /* within a line */
    PART_BLOCK,  /* in lines of its own */
    PART_MAIN,   /* likewise: what the page is about */
    PART_LIST,   /* likewise; of links it is a menu */
    PART_LINK,   /* within a line */
    PART_AROUND, /* in lines of its own, on most pages of a site */
    PART_HIDDEN, /* not shown */
};

static bool has(const GumboElement *e, const char *name)
{
    return gumbo_get_attribute(&e->attributes, name) != NULL;
}

static bool has_role(const GumboElement *e, const char *const *roles)
{
    const GumboAttribute *const a =
        e->attributes.length ? gumbo_get_attribute(&e->attributes, "role")
                             : NULL;
    for (; a && *roles; roles++)
        if (strcasecmp(a->value, *roles) == 0)
            return true;
    return false;
}

static bool within(const GumboNode *n, GumboTag one, GumboTag other)
{
    for (n = n->parent; n && n->type != GUMBO_NODE_DOCUMENT; n = n->parent)
        if (n->v.element.tag == one || n->v.element.tag == other)
            return true;
    return false;
}

static enum part part_of(const GumboNode *n)
{
    static const char *const around[] = { "navigation",  "banner",
                                          "contentinfo", "complementary",
                                          "search",      NULL };
    static const char *const central[] = { "main", NULL };
    const GumboElement *const e = &n->v.element;
    if (e->attributes.length && has(e, "hidden"))
        return PART_HIDDEN;
    if (has_role(e, around))
        return PART_AROUND;
    if (has_role(e, central))
        return PART_MAIN;
    switch (e->tag) {
    case GUMBO_TAG_SCRIPT:
    case GUMBO_TAG_STYLE:
    case GUMBO_TAG_TEMPLATE:
    case GUMBO_TAG_NOSCRIPT:
    case GUMBO_TAG_IFRAME:
    case GUMBO_TAG_NOEMBED:
    case GUMBO_TAG_NOFRAMES:
    case GUMBO_TAG_AUDIO:
    case GUMBO_TAG_VIDEO:
    case GUMBO_TAG_CANVAS:
    case GUMBO_TAG_SVG:
    case GUMBO_TAG_RP:
    case GUMBO_TAG_DATALIST:
        return PART_HIDDEN;
    case GUMBO_TAG_NAV:
    case GUMBO_TAG_FOOTER:
    case GUMBO_TAG_ASIDE:
    case GUMBO_TAG_BUTTON:
    case GUMBO_TAG_SELECT:
    case GUMBO_TAG_TEXTAREA:
        return PART_AROUND;
    case GUMBO_TAG_HEADER:
        return within(n, GUMBO_TAG_ARTICLE, GUMBO_TAG_MAIN) ? PART_BLOCK
                                                            : PART_AROUND;
    case GUMBO_TAG_MAIN:
        return PART_MAIN;
    case GUMBO_TAG_UL:
    case GUMBO_TAG_OL:
    case GUMBO_TAG_DL:
    case GUMBO_TAG_MENU:
        return PART_LIST;
    case GUMBO_TAG_A:
        return PART_LINK;
    case GUMBO_TAG_B:
    case GUMBO_TAG_I:
    case GUMBO_TAG_U:
    case GUMBO_TAG_S:
    case GUMBO_TAG_Q:
    case GUMBO_TAG_EM:
    case GUMBO_TAG_TT:
    case GUMBO_TAG_SPAN:
    case GUMBO_TAG_FONT:
    case GUMBO_TAG_STRONG:
    case GUMBO_TAG_SMALL:
    case GUMBO_TAG_BIG:
    case GUMBO_TAG_CODE:
    case GUMBO_TAG_SAMP:
    case GUMBO_TAG_KBD:
    case GUMBO_TAG_VAR:
    case GUMBO_TAG_SUB:
    case GUMBO_TAG_SUP:
    case GUMBO_TAG_ABBR:
    case GUMBO_TAG_ACRONYM:
    case GUMBO_TAG_CITE:
    case GUMBO_TAG_DFN:
    case GUMBO_TAG_TIME:
    case GUMBO_TAG_DATA:
    case GUMBO_TAG_MARK:
    case GUMBO_TAG_INS:
    case GUMBO_TAG_DEL:
    case GUMBO_TAG_BDI:
    case GUMBO_TAG_BDO:
    case GUMBO_TAG_WBR:
    case GUMBO_TAG_RUBY:
    case GUMBO_TAG_RB:
    case GUMBO_TAG_NOBR:
    case GUMBO_TAG_LABEL:
    case GUMBO_TAG_UNKNOWN:
        return PART_SHOWN;
    default:
        return PART_BLOCK;
    }
}

/* --------------------------------------------------------------------- walk */

#define LISTS 64 /* nested ones that are looked at; deeper ones are not */
#define FEWEST_LINKS 3

struct walk {
    struct html *h;
    bool whole;            /* all that is shown */
    size_t title;          /* the end of the title in the text */
    size_t first, last;    /* what lies in the first main element with words */
    unsigned mains, links; /* that are open */
    size_t link_from;      /* where the outermost link began */
    size_t linked, nlinks; /* bytes in links, and links */
    struct walk_list {
        size_t from, linked, nlinks;
    } lists[LISTS];
    unsigned nlists; /* that are open */
    bool ok;
};

static size_t visible(const char *at, size_t n)
{
    size_t seen = 0;
    for (size_t i = 0; i < n; i++)
        seen += (unsigned char)at[i] > ' ';
    return seen;
}

static void walk_line(struct walk *w)
{
    const struct block *const t = &w->h->text;
    if (t->len && t->at[t->len - 1] != '\n')
        w->ok = w->ok && block_put(&w->h->text, "\n", 1);
}

static void walk_enter(struct walk *w, enum part part)
{
    const size_t here = w->h->text.len;
    if (part != PART_SHOWN && part != PART_LINK)
        walk_line(w);
    if (part == PART_LINK && w->links++ == 0)
        w->link_from = here;
    if (part == PART_LIST && w->nlists++ < LISTS)
        w->lists[w->nlists - 1] =
            (struct walk_list){ w->h->text.len, w->linked, w->nlinks };
    if (part == PART_MAIN && w->mains++ == 0 && !w->last)
        w->first = w->h->text.len;
}

static void walk_leave(struct walk *w, enum part part)
{
    struct block *const t = &w->h->text;
    if (part == PART_LINK && --w->links == 0) {
        w->linked += visible(t->at + w->link_from, t->len - w->link_from);
        w->nlinks++;
    }
    /* A list around what the page is about is no menu. */
    if (part == PART_LIST && --w->nlists < LISTS && !w->whole &&
        w->last <= w->lists[w->nlists].from) {
        const struct walk_list *const l = &w->lists[w->nlists];
        const size_t all = visible(t->at + l->from, t->len - l->from);
        if (w->nlinks - l->nlinks >= FEWEST_LINKS &&
            (w->linked - l->linked) * 5 >= all * 4) {
            t->len = l->from;
            w->linked = l->linked;
            if (w->links && w->link_from > t->len)
                w->link_from = t->len;
        }
    }
    if (part == PART_MAIN && --w->mains == 0 && !w->last &&
        visible(t->at + w->first, t->len - w->first))
        w->last = t->len;
    if (part != PART_SHOWN && part != PART_LINK)
        walk_line(w);
}

/* The text of a node that has some; true if it is to be entered. */
static bool walk_node(struct walk *w, const GumboNode *n)
{
    switch (n->type) {
    case GUMBO_NODE_TEXT:
    case GUMBO_NODE_CDATA:
    case GUMBO_NODE_WHITESPACE:
        w->ok = w->ok && html_put(w->h, n->v.text.text, strlen(n->v.text.text));
        return false;
    case GUMBO_NODE_ELEMENT: {
        const enum part part = part_of(n);
        if (part == PART_HIDDEN || (part == PART_AROUND && !w->whole))
            return false;
        walk_enter(w, part);
        return true;
    }
    default:
        return false;
    }
}

static const GumboNode *child(const GumboNode *n, size_t i)
{
    const GumboVector *const v = &n->v.element.children;
    return i < v->length ? v->data[i] : NULL;
}

/* Everything below an element, without recursion. */
static void walk_all(struct walk *w, const GumboNode *top)
{
    const GumboNode *n = top;
    size_t i = 0; /* of the child that comes next */
    for (;;) {
        const GumboNode *const c = child(n, i);
        if (c && walk_node(w, c)) {
            n = c;
            i = 0;
        } else if (c) {
            i++;
        } else if (n == top) {
            return;
        } else {
            walk_leave(w, part_of(n));
            i = n->index_within_parent + 1;
            n = n->parent;
        }
    }
}

/* The first title in the head. */
static void walk_title(struct walk *w, const GumboNode *root)
{
    for (size_t i = 0; child(root, i); i++) {
        const GumboNode *const head = child(root, i);
        if (head->type != GUMBO_NODE_ELEMENT ||
            head->v.element.tag != GUMBO_TAG_HEAD)
            continue;
        for (size_t j = 0; child(head, j); j++)
            if (child(head, j)->type == GUMBO_NODE_ELEMENT &&
                child(head, j)->v.element.tag == GUMBO_TAG_TITLE) {
                walk_all(w, child(head, j));
                walk_line(w);
                w->title = w->h->text.len;
                return;
            }
    }
}

/* The text of the tree, and how much of it is seen. */
static bool walk_tree(struct html *h, const GumboNode *root, bool whole,
                      size_t *seen)
{
    struct walk w = { .h = h, .whole = whole, .ok = true };
    struct block *const t = &h->text;
    t->len = 0;
    for (size_t i = 0; i < h->nruns; i++)
        h->runs[i].used = false;
    walk_title(&w, root);
    for (size_t i = 0; child(root, i); i++) {
        const GumboNode *const body = child(root, i);
        if (body->type == GUMBO_NODE_ELEMENT &&
            body->v.element.tag != GUMBO_TAG_HEAD)
            walk_all(&w, body);
    }
    if (!whole && w.last) {
        memmove(t->at + w.title, t->at + w.first, w.last - w.first);
        t->len = w.title + (w.last - w.first);
    }
    *seen = visible(t->at + w.title, t->len - w.title);
    return w.ok;
}

bool html_tree(struct html *h, bool *made)
{
    size_t all, rest;
    const GumboOutput *const tree = tree_of(h);
    *made = tree != NULL;
    bool ok = !tree || (walk_tree(h, tree->root, true, &all) &&
                        walk_tree(h, tree->root, false, &rest));
    if (tree && ok && rest < all / 10)
        ok = walk_tree(h, tree->root, true, &all);
    parts_reset(h);
    return ok;
}

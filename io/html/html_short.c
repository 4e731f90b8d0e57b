/*
 * html_short.c - a page without what a tree does not need
 *
 *     <p class="lead">Once upon <!-- sic --> a time &amp; place</p>
 *     <p>1 2&amp;3</p>
 *
 * A run of text becomes one character of a plane for private use, U+100000 for
 * the first; where there are more than 65000 runs, one of another such plane
 * stands before it. Kept are tags, references to characters, and the few
 * attributes that decide whether something is seen. Contents of scripts and
 * styles go, and so do comments.
 *
 * It reads tags as the tokenizer of HTML5 does. Where it is wrong about a page,
 * as it may be inside of drawings, text is missing or misplaced, and nothing
 * worse. A page may name a run itself, by a reference; html_put() therefore
 * gives each run once, so that no page becomes longer than it is.
 *
 * Here, too, the depth of a page is bounded: the time that libgumbo takes for a
 * tag grows with it. Elements whose end is left out as a rule are not counted;
 * they nest only within others.
 */
#define _GNU_SOURCE /* memmem */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "io/html/html.h"

#define RUNS_IN_PLANE 65000

enum tag {
    TAG_PLAIN,
    TAG_INLINE,  /* changes how its text looks, and nothing else */
    TAG_VOID,    /* without an end, or whose end may be left out */
    TAG_SCRIPT,  /* what it holds is not seen */
    TAG_RAW,     /* likewise, and simpler */
    TAG_TEXT,    /* it holds text with references and without tags */
    TAG_BARE,    /* and without references */
    TAG_REST,    /* and all of the rest */
    TAG_DRAWING, /* svg, math: other rules */
    TAG_DIALOG,  /* seen where it is open */
};

/* By name. */
static const struct {
    const char name[10];
    enum tag tag;
} tags[] = {
    { "abbr", TAG_INLINE },    { "acronym", TAG_INLINE },
    { "area", TAG_VOID },      { "b", TAG_INLINE },
    { "base", TAG_VOID },      { "bdi", TAG_INLINE },
    { "bdo", TAG_INLINE },     { "big", TAG_INLINE },
    { "body", TAG_VOID },      { "br", TAG_VOID },
    { "caption", TAG_VOID },   { "cite", TAG_INLINE },
    { "code", TAG_INLINE },    { "col", TAG_VOID },
    { "colgroup", TAG_VOID },  { "data", TAG_INLINE },
    { "dd", TAG_VOID },        { "del", TAG_INLINE },
    { "dfn", TAG_INLINE },     { "dialog", TAG_DIALOG },
    { "dt", TAG_VOID },        { "em", TAG_INLINE },
    { "embed", TAG_VOID },     { "font", TAG_INLINE },
    { "head", TAG_VOID },      { "hr", TAG_VOID },
    { "html", TAG_VOID },      { "i", TAG_INLINE },
    { "iframe", TAG_RAW },     { "img", TAG_VOID },
    { "input", TAG_VOID },     { "ins", TAG_INLINE },
    { "kbd", TAG_INLINE },     { "li", TAG_VOID },
    { "link", TAG_VOID },      { "mark", TAG_INLINE },
    { "math", TAG_DRAWING },   { "meta", TAG_VOID },
    { "nobr", TAG_INLINE },    { "noembed", TAG_RAW },
    { "noframes", TAG_RAW },   { "noscript", TAG_RAW },
    { "optgroup", TAG_VOID },  { "option", TAG_VOID },
    { "p", TAG_VOID },         { "param", TAG_VOID },
    { "plaintext", TAG_REST }, { "q", TAG_INLINE },
    { "rp", TAG_VOID },        { "rt", TAG_VOID },
    { "s", TAG_INLINE },       { "samp", TAG_INLINE },
    { "script", TAG_SCRIPT },  { "small", TAG_INLINE },
    { "source", TAG_VOID },    { "span", TAG_INLINE },
    { "strike", TAG_INLINE },  { "strong", TAG_INLINE },
    { "style", TAG_RAW },      { "sub", TAG_INLINE },
    { "sup", TAG_INLINE },     { "svg", TAG_DRAWING },
    { "tbody", TAG_VOID },     { "td", TAG_VOID },
    { "textarea", TAG_TEXT },  { "tfoot", TAG_VOID },
    { "th", TAG_VOID },        { "thead", TAG_VOID },
    { "time", TAG_INLINE },    { "title", TAG_TEXT },
    { "tr", TAG_VOID },        { "track", TAG_VOID },
    { "tt", TAG_INLINE },      { "u", TAG_INLINE },
    { "var", TAG_INLINE },     { "wbr", TAG_VOID },
    { "xmp", TAG_BARE },
};

struct shortening {
    struct html *h;
    const char *at, *end;
    unsigned drawings; /* that are open */
    uint32_t open[HTML_DEPTH];
    size_t nopen;
    bool ok;
};

static bool is_letter(char c)
{
    return ((unsigned)c | 32) - 'a' < 26;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

static char lower_letter(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static void keep(struct shortening *s, const char *at, size_t n)
{
    s->ok = s->ok && block_put(&s->h->brief, at, n);
}

/* --------------------------------------------------------------------- runs */

/* A character of a plane of 65536, from `first` on, in UTF-8. */
static void keep_character(struct shortening *s, uint32_t first, size_t i)
{
    const uint32_t c = first + (uint32_t)i;
    const char bytes[] = { (char)(0xf0 | c >> 18),
                           (char)(0x80 | (c >> 12 & 63)),
                           (char)(0x80 | (c >> 6 & 63)),
                           (char)(0x80 | (c & 63)) };
    keep(s, bytes, sizeof bytes);
}

static void keep_run(struct shortening *s, const char *at, size_t n)
{
    struct html *const h = s->h;
    size_t i = 0;
    while (i < n && is_space(at[i]))
        i++;
    if (i == n) {
        keep(s, "\n", n != 0);
        return;
    }
    if (!GROW(&h->runs, &h->runs_room, h->nruns + 1)) {
        s->ok = false;
        return;
    }
    const size_t k = h->nruns++;
    h->runs[k] = (struct html_run){ at, n, false };
    if (k >= RUNS_IN_PLANE)
        keep_character(s, 0xf0000, k / RUNS_IN_PLANE);
    keep_character(s, 0x100000, k % RUNS_IN_PLANE);
}

/* The character of four bytes there, from U+F0000 on; 0: none. */
static uint32_t private_character(const char *at, size_t n)
{
    const unsigned char *const p = (const unsigned char *)at;
    if (n < 4 || (p[0] != 0xf3 && p[0] != 0xf4))
        return 0;
    const uint32_t c = (p[0] & 7u) << 18 | (p[1] & 63u) << 12 |
                       (p[2] & 63u) << 6 | (p[3] & 63u);
    return c >= 0xf0000 ? c : 0;
}

size_t html_run_named(const char *at, size_t n, size_t *run)
{
    uint32_t c = private_character(at, n);
    size_t nbytes = 4, high = 0;
    if (c && c < 0x100000) {
        high = c - 0xf0000;
        c = private_character(at + 4, n - 4);
        nbytes = 8;
    }
    if (c < 0x100000)
        return 0;
    *run = high * RUNS_IN_PLANE + (c - 0x100000);
    return nbytes;
}

/* Text, whose references are kept where it may have some. */
static void keep_text(struct shortening *s, const char *at, const char *end,
                      bool refers)
{
    while (at < end) {
        const char *amp = at;
        /* One that nothing follows is text. */
        while (refers && (amp = memchr(amp, '&', (size_t)(end - amp))) &&
               !(amp + 1 < end && (is_letter(amp[1]) || amp[1] == '#')))
            amp++;
        if (!refers || !amp) {
            keep_run(s, at, (size_t)(end - at));
            return;
        }
        if (amp > at)
            keep_run(s, at, (size_t)(amp - at));
        /* The longest name has 31 letters. */
        const char *p = amp + 1;
        while (p < end && p - amp < 40 &&
               (is_letter(*p) || (*p >= '0' && *p <= '9') || *p == '#'))
            p++;
        p += p < end && *p == ';';
        keep(s, amp, (size_t)(p - amp));
        at = p;
    }
}

/* --------------------------------------------------------------------- tags */

struct tag_name {
    const char *at;
    size_t len;
    char low[10]; /* in small letters, cut off */
    uint32_t hash;
};

static struct tag_name read_name(struct shortening *s)
{
    struct tag_name t = { .at = s->at, .hash = 2166136261u };
    while (s->at < s->end && !is_space(*s->at) && *s->at != '/' &&
           *s->at != '>') {
        const char c = lower_letter(*s->at++);
        if (t.len < sizeof t.low - 1)
            t.low[t.len] = c;
        t.len++;
        t.hash = (t.hash ^ (unsigned char)c) * 16777619u;
    }
    return t;
}

static enum tag tag_of(const struct tag_name *t)
{
    size_t from = 0, to = sizeof tags / sizeof tags[0];
    if (t->len >= sizeof t->low)
        return TAG_PLAIN;
    while (from < to) {
        const size_t mid = (from + to) / 2;
        const int c = strcmp(t->low, tags[mid].name);
        if (c == 0)
            return tags[mid].tag;
        if (c < 0)
            to = mid;
        else
            from = mid + 1;
    }
    return TAG_PLAIN;
}

static bool is_word(const char *at, size_t n, const char *word)
{
    size_t i = 0;
    while (i < n && word[i] && lower_letter(at[i]) == word[i])
        i++;
    return i == n && !word[i];
}

/* Does a style say display: none? */
static bool hides(const char *at, size_t n)
{
    static const char what[] = "display:none";
    size_t same = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_space(at[i]))
            continue;
        const char c = lower_letter(at[i]);
        same = c == what[same] ? same + 1 : c == what[0];
        if (!what[same])
            return true;
    }
    return false;
}

/* The attributes that matter, of those that are read. */
struct attributes {
    bool hidden, open, ends; /* ends: <br/> */
    bly_bytes role, type;
};

static void note_attribute(struct attributes *a, const char *name, size_t n,
                           const char *value, size_t nvalue)
{
    switch (n) {
    case 4:
        if (is_word(name, n, "role"))
            a->role = (bly_bytes){ value, nvalue };
        else if (is_word(name, n, "type"))
            a->type = (bly_bytes){ value, nvalue };
        else
            a->open |= is_word(name, n, "open");
        break;
    case 5:
        a->hidden |= is_word(name, n, "style") && hides(value, nvalue);
        break;
    case 6:
        a->hidden |= is_word(name, n, "hidden");
        break;
    case 11:
        a->hidden |=
            is_word(name, n, "aria-hidden") && is_word(value, nvalue, "true");
        break;
    default:
        break;
    }
}

/* Behind the end of a tag. False where the page ends in it, and it is none. */
static bool read_attributes(struct shortening *s, struct attributes *a)
{
    const char *p = s->at, *const end = s->end;
    *a = (struct attributes){ 0 };
    for (;;) {
        while (p < end && (is_space(*p) || *p == '/'))
            p++;
        if (p == end)
            return false;
        if (*p == '>') {
            a->ends = p[-1] == '/';
            s->at = p + 1;
            return true;
        }
        const char *const name = p, *value = "";
        size_t nvalue = 0;
        p++; /* which may be = */
        while (p < end && !is_space(*p) && *p != '/' && *p != '>' && *p != '=')
            p++;
        const size_t nname = (size_t)(p - name);
        while (p < end && is_space(*p))
            p++;
        if (p < end && *p == '=') {
            p++;
            while (p < end && is_space(*p))
                p++;
            if (p < end && (*p == '"' || *p == '\'')) {
                value = p + 1;
                p = memchr(value, *p, (size_t)(end - value));
                if (!p)
                    return false;
                nvalue = (size_t)(p++ - value);
            } else {
                value = p;
                while (p < end && !is_space(*p) && *p != '>')
                    p++;
                nvalue = (size_t)(p - value);
            }
        }
        note_attribute(a, name, nname, value, nvalue);
    }
}

static void keep_attribute(struct shortening *s, const char *name,
                           bly_bytes value)
{
    const char *const at = value.ptr;
    if (!value.len || value.len > 32)
        return;
    for (size_t i = 0; i < value.len; i++)
        if (!is_letter(at[i]) && at[i] != ' ' && at[i] != '-')
            return;
    keep(s, name, strlen(name));
    keep(s, at, value.len);
    keep(s, "\"", 1);
}

/* The end tag of that name from `at` on; the end of the page without one. */
static const char *find_end(const struct shortening *s, const char *at,
                            const char *name, size_t n)
{
    for (; (at = memchr(at, '<', (size_t)(s->end - at))); at++)
        if ((size_t)(s->end - at) > n + 2 && at[1] == '/' &&
            is_word(at + 2, n, name) &&
            (is_space(at[n + 2]) || at[n + 2] == '/' || at[n + 2] == '>'))
            return at;
    return s->end;
}

/* A script within <!-- may have scripts in it. */
static const char *script_end(const struct shortening *s, const char *at)
{
    const char *const end = find_end(s, at, "script", 6);
    const char *p = at;
    if (end == s->end)
        return end;
    while (p < end && (p = memmem(p, (size_t)(end - p), "<!--", 4))) {
        const char *const close =
            memmem(p + 2, (size_t)(s->end - p - 2), "-->", 3);
        const char *const behind = close ? close + 3 : s->end;
        bool inner = false;
        for (p += 4; p < behind;) {
            p = memchr(p, '<', (size_t)(behind - p));
            if (!p)
                break;
            const bool closes = p + 1 < behind && p[1] == '/';
            const size_t n = 7 + (size_t)closes;
            if ((size_t)(behind - p) > n && is_word(p + n - 6, 6, "script") &&
                (is_space(p[n]) || p[n] == '/' || p[n] == '>')) {
                if (closes && !inner)
                    return p;
                inner = !closes;
            }
            p++;
        }
        p = behind;
        if (p > end)
            return script_end(s, p);
    }
    return end;
}

/* What stands in an element that holds no tags, and its end tag. */
static void read_inside(struct shortening *s, const struct tag_name *t,
                        enum tag tag)
{
    const char *const from = s->at;
    s->at = tag == TAG_REST     ? s->end
            : tag == TAG_SCRIPT ? script_end(s, from)
                                : find_end(s, from, t->low, t->len);
    if (tag != TAG_SCRIPT && tag != TAG_RAW)
        keep_text(s, from, s->at, tag == TAG_TEXT);
    /* The end tag is read as any other. */
}

static bool is_counted(enum tag tag)
{
    return tag == TAG_PLAIN || tag == TAG_INLINE || tag == TAG_DRAWING ||
           tag == TAG_DIALOG;
}

/* Count an element that opens; kept: its tags are. False: it is nested too
 * deep. */
static bool nest(struct shortening *s, const struct tag_name *t, bool kept)
{
    if (s->nopen == HTML_DEPTH)
        return false;
    s->open[s->nopen++] = (t->hash & ~1u) | kept;
    return true;
}

/* One that ends. Was its tag kept? */
static bool unnest(struct shortening *s, const struct tag_name *t)
{
    size_t i = s->nopen;
    while (i > 0 && (s->open[i - 1] | 1u) != (t->hash | 1u))
        i--;
    if (i == 0)
        return true;
    s->nopen = i - 1;
    return s->open[i - 1] & 1;
}

static void read_start(struct shortening *s)
{
    s->at++;
    const struct tag_name t = read_name(s);
    const enum tag tag = tag_of(&t);
    struct attributes a;
    if (!read_attributes(s, &a)) {
        s->at = s->end;
        return;
    }
    const bool closed = a.ends && s->drawings;
    const bool kept =
        tag != TAG_INLINE || a.hidden || a.role.len || s->drawings;
    if ((!closed && is_counted(tag) && !nest(s, &t, kept)) || !kept)
        return;
    if (tag == TAG_DIALOG && !a.open)
        a.hidden = true;
    keep(s, "<", 1);
    keep(s, t.at, t.len);
    if (a.hidden)
        keep(s, " hidden", 7);
    keep_attribute(s, " role=\"", a.role);
    keep_attribute(s, " type=\"", a.type);
    keep(s, a.ends ? "/>" : ">", 1 + (size_t)a.ends);
    if (tag == TAG_DRAWING)
        s->drawings += !a.ends;
    else if (tag >= TAG_SCRIPT && tag <= TAG_REST && !closed &&
             !(s->drawings && tag == TAG_TEXT))
        read_inside(s, &t, tag);
}

static void read_end(struct shortening *s)
{
    struct attributes a;
    s->at += 2;
    const struct tag_name t = read_name(s);
    if (!read_attributes(s, &a)) {
        s->at = s->end;
        return;
    }
    const enum tag tag = tag_of(&t);
    if (tag == TAG_DRAWING)
        s->drawings -= s->drawings > 0;
    if (is_counted(tag) && !unnest(s, &t))
        return;
    keep(s, "</", 2);
    keep(s, t.at, t.len);
    keep(s, ">", 1);
}

/* Behind what ends with that, from `at` on. */
static const char *behind(const struct shortening *s, const char *at,
                          const char *what, size_t n)
{
    const char *const p =
        at < s->end ? memmem(at, (size_t)(s->end - at), what, n) : NULL;
    return p ? p + n : s->end;
}

/* Behind --> or --!>. */
static const char *comment_end(const struct shortening *s, const char *at)
{
    while ((at = behind(s, at, "--", 2)) < s->end) {
        if (*at == '>')
            return at + 1;
        if (*at == '!' && at + 1 < s->end && at[1] == '>')
            return at + 2;
        at--; /* the second may be the first of the next two */
    }
    return at;
}

/* Comments, types of documents, and what is none of both. */
static void read_declaration(struct shortening *s)
{
    const size_t left = (size_t)(s->end - s->at);
    const char *const from = s->at;
    if (left >= 4 && memcmp(from, "<!--", 4) == 0) {
        if (left >= 5 && from[4] == '>')
            s->at = from + 5;
        else if (left >= 6 && memcmp(from + 4, "->", 2) == 0)
            s->at = from + 6;
        else {
            s->at = comment_end(s, from + 4);
        }
    } else if (s->drawings && left >= 9 && memcmp(from, "<![CDATA[", 9) == 0) {
        s->at = behind(s, from + 9, "]]>", 3);
        keep_text(s, from + 9, s->at - 3 > from + 9 ? s->at - 3 : from + 9,
                  false);
    } else {
        s->at = behind(s, from + 2, ">", 1);
        if (left >= 9 && is_word(from + 2, 7, "doctype") && s->at - from < 256)
            keep(s, from, (size_t)(s->at - from));
    }
}

bool html_short(struct html *h, bly_bytes page)
{
    struct shortening s = { .h = h,
                            .at = page.ptr,
                            .end = (const char *)page.ptr + page.len,
                            .ok = true };
    h->brief.len = h->nruns = 0;
    while (s.ok && s.at < s.end) {
        const char *const from = s.at, *p = from;
        /* A < that begins no tag is text. */
        while ((p = memchr(p, '<', (size_t)(s.end - p)))) {
            const char next = p + 1 < s.end ? p[1] : ' ';
            if (is_letter(next) || next == '!' || next == '?' ||
                (next == '/' && p + 2 < s.end))
                break;
            p++;
        }
        s.at = p ? p : s.end;
        if (s.at > from)
            keep_text(&s, from, s.at, true);
        if (!p)
            break;
        if (is_letter(p[1]))
            read_start(&s);
        else if (p[1] == '/' && is_letter(p[2]))
            read_end(&s);
        else if (p[1] == '!')
            read_declaration(&s);
        else
            s.at = behind(&s, p + 2, ">", 1);
    }
    return s.ok;
}

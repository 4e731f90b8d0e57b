/*
 * markup.c - finding what is not prose in Markdown and LaTeX
 */
#include <string.h>

#include "apps/spell/tokens.h"
#include "io/utf8.h"

/* Blanks from `from` to `to`. A longer character becomes another of its length
 * that is not a letter, so that places are still counted in characters; what is
 * no UTF-8 stays. */
static void blank(char *text, size_t from, size_t to)
{
    static const char *const other[] = { "", " ", "\xc2\xa0", "\xe2\x80\x83",
                                         "\xf0\x9f\x8c\x80" };
    for (size_t i = from; i < to;) {
        const char *next = text + i;
        const bool newline = text[i] == '\n';
        if (utf8_next(&next, text + to) < 0) {
            i++;
            continue;
        }
        const size_t len = (size_t)(next - (text + i));
        if (!newline)
            memcpy(text + i, other[len], len);
        i += len;
    }
}

static size_t line_end(const char *text, size_t at, size_t n)
{
    const char *const end = memchr(text + at, '\n', n - at);
    return end ? (size_t)(end - text) : n;
}

/* Where `what` begins at or behind `at`; n if nowhere. */
static size_t find(const char *text, size_t at, size_t n, const char *what)
{
    const size_t len = strlen(what);
    for (; at + len <= n; at++) {
        const char *const next = memchr(text + at, what[0], n - at);
        if (!next)
            return n;
        at = (size_t)(next - text);
        if (at + len <= n && memcmp(next, what, len) == 0)
            return at;
    }
    return n;
}

static size_t run_of(const char *text, size_t at, size_t n, char c)
{
    size_t end = at;
    while (end < n && text[end] == c)
        end++;
    return end - at;
}

/* ----------------------------------------------------------------- Markdown */

/* Is this line a fence, of at least `least` of c? */
static size_t fence(const char *text, size_t at, size_t n, char c, size_t least)
{
    const size_t indent = run_of(text, at, n, ' ');
    const size_t run = run_of(text, at + indent, n, c);
    return run >= least ? run : 0;
}

/* Inside of a paragraph: code, targets of links, tags, entities. What is opened
 * and not closed within some lines was never opened; so no text makes this
 * slow. */
#define SPAN_MOST 4096
static size_t markdown_inline(char *text, size_t at, size_t n)
{
    size_t end = at + 1;
    n = n - at > SPAN_MOST ? at + SPAN_MOST : n;
    if (text[at] == '`') {
        /* Code ends at as many backticks as it began with: fewer or more
         * belong to it. */
        const size_t run = run_of(text, at, n, '`');
        for (end = at + run; end < n; end++) {
            const size_t other = run_of(text, end, n, '`');
            if (other == run) {
                blank(text, at, end + run);
                return end + run;
            }
            end += other;
        }
        return at + run;
    }
    if (text[at] == '\\')
        return at + 2;
    if (text[at] == ']' && at + 1 < n && text[at + 1] == '(') {
        /* The target of a link; addresses may have brackets of their own. */
        size_t depth = 0;
        for (end = at + 1; end < n && text[end] != '\n'; end++) {
            depth += text[end] == '(';
            depth -= text[end] == ')';
            if (!depth)
                break;
        }
        blank(text, at, end);
    } else if (text[at] == ']' && at + 1 < n && text[at + 1] == '[') {
        for (end = at + 1; end < n && text[end] != ']' && text[end] != '\n';)
            end++;
        blank(text, at, end);
    } else if (text[at] == '<' && at + 1 < n &&
               (text[at + 1] == '/' || text[at + 1] == '!' ||
                ((text[at + 1] | 32) >= 'a' && (text[at + 1] | 32) <= 'z'))) {
        end = n - at > 4 && memcmp(text + at, "<!--", 4) == 0
                  ? find(text, at, n, "-->")
                  : find(text, at, n, ">");
        if (end == n)
            return at + 1;
        blank(text, at, end);
    } else if (text[at] == '&') {
        for (end = at + 1;
             end < n && end < at + 32 &&
             (text[end] == '#' || (text[end] >= '0' && text[end] <= '9') ||
              ((text[end] | 32) >= 'a' && (text[end] | 32) <= 'z'));)
            end++;
        if (end < n && text[end] == ';')
            blank(text, at, end);
        else
            end = at + 1;
    }
    return end;
}

void markdown_blank(char *text, size_t n)
{
    bool above = true; /* the line above is empty, or indented code */
    for (size_t at = 0; at < n;) {
        const size_t end = line_end(text, at, n);
        const size_t first = at + run_of(text, at, end, ' ');
        const char mark = first < end ? text[first] : '\n';
        const size_t open =
            mark == '`' || mark == '~' ? fence(text, at, end, mark, 3) : 0;
        const bool code = above && (first - at >= 4 || text[at] == '\t');
        if (open && !(mark == '`' &&
                      memchr(text + first + open, '`', end - first - open))) {
            /* To the fence that closes it, or to the end. */
            size_t line = end + 1;
            while (line < n) {
                const size_t stop = line_end(text, line, n);
                const bool closes = fence(text, line, stop, mark, open) != 0;
                line = stop + 1;
                if (closes)
                    break;
            }
            blank(text, at, line < n ? line : n);
            at = line;
            above = true;
            continue;
        }
        above = first == end || code;
        if (code) {
            blank(text, at, end);
            at = end + 1;
            continue;
        }
        /* [name]: target */
        const size_t target =
            mark == '[' && first + 1 < end && text[first + 1] != '^'
                ? find(text, first, end, "]:")
                : end;
        if (target < end)
            blank(text, first, end);
        for (at = first; at < end;)
            at = markdown_inline(text, at, n);
        if (at > end) /* something went on in the next line */
            at = at < n ? at : n;
        if (at == end)
            at = end + 1;
    }
}

/* -------------------------------------------------------------------- LaTeX */

static bool is_letter_byte(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '@';
}

/* Behind the bracket that closes the one at `at`; n if none does. */
static size_t closing(const char *text, size_t at, size_t n)
{
    const char open = text[at], close = open == '{' ? '}' : ']';
    size_t depth = 0;
    for (; at < n; at++) {
        if (text[at] == '\\')
            at++;
        else if (text[at] == open)
            depth++;
        else if (text[at] == close && --depth == 0)
            return at + 1;
    }
    return n;
}

/* Commands whose arguments are names, not prose. */
static bool takes_names(const char *name, size_t n)
{
    static const char *const names[] = {
        "begin",
        "end",
        "cite",
        "citep",
        "citet",
        "ref",
        "eqref",
        "pageref",
        "autoref",
        "cref",
        "Cref",
        "label",
        "usepackage",
        "input",
        "include",
        "includegraphics",
        "documentclass",
        "href",
        "url",
        "bibliography",
        "newcommand",
        "pagestyle",
        "bibliographystyle",
        "renewcommand",
        "hspace",
        "vspace",
        "setlength",
        "textcolor",
        "color",
        "nocite",
        "bibitem",
        "RequirePackage",
        "hypersetup",
        "lstinputlisting",
        "path",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == n && memcmp(name, names[i], n) == 0)
            return true;
    return false;
}

/* An environment whose contents are not prose: behind its end; 0 if it is not
 * one.
 */
static size_t latex_listing(const char *text, size_t at, size_t n)
{
    static const char *const names[] = {
        "verbatim",    "lstlisting", "minted",      "equation",  "align",
        "gather",      "multline",   "displaymath", "math",      "comment",
        "tikzpicture", "eqnarray",   "Verbatim",    "equation*", "align*",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char close[48] = "\\end{";
        const size_t len = strlen(names[i]);
        if (at + len < n && memcmp(text + at, names[i], len) == 0 &&
            text[at + len] == '}') {
            strcat(close, names[i]);
            strcat(close, "}");
            const size_t end = find(text, at, n, close);
            return end == n ? n : end + strlen(close);
        }
    }
    return 0;
}

/* A command at a backslash: where it ends. */
static size_t latex_command(const char *text, size_t at, size_t n)
{
    const size_t name = at + 1;
    size_t end = name;
    while (end < n && is_letter_byte(text[end]))
        end++;
    const size_t len = end - name;
    if (!len) {
        if (end < n && (text[end] == '(' || text[end] == '['))
            return find(text, end, n, text[end] == '(' ? "\\)" : "\\]");
        return end + (end < n);
    }
    if (len == 4 && memcmp(text + name, "verb", 4) == 0 && end < n) {
        end += text[end] == '*';
        const char *const close =
            end + 1 < n ? memchr(text + end + 1, text[end], n - end - 1) : NULL;
        return close ? (size_t)(close - text) + 1 : end;
    }
    if (len == 5 && memcmp(text + name, "begin", 5) == 0 && end < n &&
        text[end] == '{') {
        const size_t listing = latex_listing(text, end + 1, n);
        if (listing)
            return listing;
    }
    end += end < n && text[end] == '*';
    const bool names = takes_names(text + name, len);
    while (end < n && (text[end] == '[' || (names && text[end] == '{'))) {
        end = closing(text, end, n);
        /* The first argument of \href and \textcolor is not. */
        if ((text[name] == 'h' && len == 4) ||
            (len == 9 && memcmp(text + name, "textcolor", 9) == 0))
            break;
    }
    return end;
}

void latex_blank(char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t end = at + 1;
        if (text[at] == '%') {
            end = line_end(text, at, n);
            blank(text, at, end);
        } else if (text[at] == '$') {
            const char *const two =
                at + 1 < n && text[at + 1] == '$' ? "$$" : "$";
            const size_t len = strlen(two);
            end = find(text, at + len, n, two);
            /* A dollar that nothing closes is a dollar. */
            if (end == n)
                end = at + len;
            else {
                blank(text, at, end + len);
                end += len;
            }
        } else if (text[at] == '\\') {
            end = latex_command(text, at, n);
            blank(text, at, end);
        }
        at = end;
    }
}

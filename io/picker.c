/*
 * picker.c - what options say about keys in lines, checked and compiled
 */
#include <stdlib.h>
#include <string.h>

#include "io/picker_inside.h"
#include "io/values.h"
#include "report/say.h"
#include "report/show.h"

/* ----------------------------------------------------------------- options */

const char *selection_option(const struct selection *s)
{
    return s->field   ? "--field"
           : s->csv   ? "--csv"
           : s->jsonl ? "--jsonl"
           : s->regex ? "--regex"
                      : NULL;
}

static bool said(int status)
{
    return status == YES;
}

/* A number of a field: from 1, or from -1 backwards. */
static bool field_number(const char *text, long *out)
{
    char *end;
    const bool minus = text[0] == '-';
    if (text[minus] < '0' || text[minus] > '9')
        return false;
    *out = strtol(text, &end, 10);
    return !*end && *out && *out<FIELD_MOST && * out> - FIELD_MOST;
}

static bool read_field(const struct selection *s, struct picker *p)
{
    p->by = PICK_FIELD;
    if (!field_number(s->field, &p->field))
        return said(fail("--field '%s': not the number of a field; 1 is the "
                         "first, -1 the last",
                         s->field));
    if (s->delimiter && strcmp(s->delimiter, "blanks") == 0) {
        p->by = PICK_BLANKS;
        return true;
    }
    return delimiter_read(s->delimiter, '\t', &p->delimiter);
}

static bool read_csv(const struct selection *s, struct picker *p)
{
    p->by = PICK_CSV;
    p->name = s->csv;
    p->header = !s->no_header;
    if (!delimiter_read(s->delimiter, ',', &p->delimiter))
        return false;
    if (p->delimiter == '"' || (unsigned char)p->delimiter < '\t')
        return said(fail("--delimiter: a quote or a control character cannot "
                         "separate the columns of CSV"));
    const bool number = s->csv[strspn(s->csv, "0123456789")] == '\0';
    if (number && !field_number(s->csv, &p->field))
        return said(fail("--csv '%s': neither the name of a column nor its "
                         "number; 1 is the first",
                         s->csv));
    if (!number && s->no_header)
        return said(fail("--csv '%s': without a header columns have no names; "
                         "give the column's number, from 1",
                         s->csv));
    return true;
}

static bool read_json(const struct selection *s, struct picker *p)
{
    p->by = PICK_JSON;
    return json_path_dotted(&p->path, s->jsonl) ||
           said(fail(
               "--jsonl '%s': not a path; expected something like user.id, or "
               "/user/id as a JSON pointer, of at most %d names",
               s->jsonl, JSON_PATH_TOKENS));
}

bool picker_regex(const struct picker *p, regex_t *out, char *why, size_t nwhy)
{
    const int rc =
        regcomp(out, p->regex, REG_EXTENDED | (p->fold ? REG_ICASE : 0));
    if (rc)
        regerror(rc, out, why, nwhy);
    return rc == 0;
}

static bool read_regex(const struct selection *s, struct picker *p)
{
    regex_t compiled;
    char why[160];
    p->by = PICK_REGEX;
    p->regex = s->regex;
    if (!picker_regex(p, &compiled, why, sizeof why))
        return said(fail("--regex '%s': %s", s->regex, why));
    regfree(&compiled);
    return true;
}

static const char *group_option(const struct selection *s)
{
    return s->group_option ? s->group_option : "--group";
}

/* The second field, which has the group. */
static bool read_group(const struct selection *s, struct picker *p)
{
    p->group = s->group;
    if (p->by == PICK_JSON)
        return json_path_dotted(&p->group_path, s->group) ||
               said(fail("%s '%s': not a path; expected something like "
                         "issuer, or /cert/issuer as a JSON pointer",
                         group_option(s), s->group));
    const bool number = s->group[strspn(s->group, "-0123456789")] == '\0';
    if (number ? !field_number(s->group, &p->group_field)
               : p->by != PICK_CSV || !p->header)
        return said(fail("%s '%s': not the number of a field; 1 is the first",
                         group_option(s), s->group));
    if (p->by == PICK_CSV && p->group_field < 0)
        return said(fail("%s '%s': columns are counted from 1", group_option(s),
                         s->group));
    return true;
}

/* Options that would have no effect; false, with the reason printed. */
static bool selection_sane(const struct selection *s, const struct input *in)
{
    const int n = !!s->field + !!s->csv + !!s->jsonl + !!s->regex;
    if (n > 1)
        return said(fail("--field, --csv, --jsonl and --regex exclude each "
                         "other"));
    if (n && in->keys)
        return said(fail("%s takes keys from lines, and these keys are "
                         "arguments; use -f FILE or standard input",
                         selection_option(s)));
    if (s->delimiter && !s->field && !s->csv)
        return said(fail("--delimiter needs --field or --csv"));
    if (s->group && !s->field && !s->csv && !s->jsonl)
        return said(fail("%s names a second field beside that of the key: it "
                         "needs --field, --csv or --jsonl",
                         group_option(s)));
    if (s->no_header && !s->csv)
        return said(fail("--no-header needs --csv"));
    if (s->csv && !in->keys && !in->separator)
        return said(fail("--csv and --null exclude each other: records of CSV "
                         "end at newlines"));
    return true;
}

bool selection_read(const struct selection *s, struct input *in)
{
    if (!selection_sane(s, in))
        return false;
    in->skip_bad = s->skip_bad;
    if (in->keys || (!selects(s) && !s->crlf))
        return true;
    struct picker *const p = calloc(1, sizeof *p);
    if (!p)
        return said(fail("out of memory"));
    p->crlf = s->crlf;
    p->fold = in->normal.fold;
    const bool ok = s->field   ? read_field(s, p)
                    : s->csv   ? read_csv(s, p)
                    : s->jsonl ? read_json(s, p)
                    : s->regex ? read_regex(s, p)
                               : true;
    if (!ok || (s->group && !read_group(s, p))) {
        picker_free(p);
        return false;
    }
    in->picker = p;
    in->csv.delimiter = picker_csv(p);
    return true;
}

bool picker_make(struct input *in, pick_make *make, void *ctx)
{
    if (!in->picker && !(in->picker = calloc(1, sizeof *in->picker)))
        return said(fail("out of memory"));
    in->picker->by = PICK_MADE;
    in->picker->make = make;
    in->picker->ctx = ctx;
    return true;
}

void picker_free(struct picker *p)
{
    if (p) {
        json_path_free(&p->path);
        json_path_free(&p->group_path);
    }
    free(p);
}

/* ------------------------------------------------------------- the reader */

char picker_csv(const struct picker *p)
{
    return p->by == PICK_CSV ? p->delimiter : 0;
}

bool picker_skips_mark(const struct picker *p)
{
    return p->by == PICK_CSV || p->by == PICK_JSON || p->crlf;
}

bool picker_drops_cr(const struct picker *p)
{
    return p->crlf;
}

bool picker_keeps_cr(const struct picker *p)
{
    return !p->crlf && p->by != PICK_CSV && p->by != PICK_JSON &&
           p->by != PICK_MADE;
}

static bool is_name(const bly_bytes *text, const char *name)
{
    const char *from = text->ptr, *to = from + text->len;
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (from < to && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    const size_t n = strlen(name);
    return (size_t)(to - from) == n && memcmp(from, name, n) == 0;
}

/* The column of a header at *at, which becomes the next one, or NULL behind the
 * last. */
static bly_bytes header_column(const struct picker *p, const struct block *b,
                               const char **at, char *name)
{
    struct csv_field f;
    *at = csv_next(*at, b->at + b->len, p->delimiter, &f);
    if (f.doubled)
        f.text =
            (bly_bytes){ name, csv_undouble(f.text.ptr, f.text.len, name) };
    return f.text;
}

/* The names that there are, as many as fit. */
static void name_columns(const struct picker *p, const char *wanted,
                         const struct block *b, char *name, char *why,
                         size_t nwhy)
{
    size_t n = (size_t)snprintf(why, nwhy, "no column '%s'; there are: ",
                                show_text(wanted, strlen(wanted)));
    for (const char *at = b->at; n < nwhy && at;) {
        const char *const comma = at == b->at ? "" : ", ";
        const bly_bytes text = header_column(p, b, &at, name);
        n += (size_t)snprintf(why + n, nwhy - n, "%s%s", comma,
                              show_text(text.ptr, text.len));
    }
    if (n >= nwhy)
        memcpy(why + nwhy - 4, "...", 4);
}

/* The column of that name in a header of nbytes. False, and why. */
static bool find_column(const struct picker *p, const char *wanted,
                        const struct block *b, size_t nbytes, size_t *out,
                        char *why, size_t nwhy)
{
    char *const name = malloc(nbytes);
    size_t i = 0, found = 0;
    for (const char *at = name ? b->at : NULL; at; i++) {
        const bly_bytes text = header_column(p, b, &at, name);
        if (is_name(&text, wanted) && !found++)
            *out = i;
    }
    if (!name)
        snprintf(why, nwhy, "out of memory");
    else if (!found)
        name_columns(p, wanted, b, name, why, nwhy);
    else if (found > 1)
        snprintf(why, nwhy,
                 "%zu columns are called '%s'; give the number of the one that "
                 "is meant",
                 found, show_text(wanted, strlen(wanted)));
    free(name);
    return found == 1;
}

bool picker_header(const struct picker *p, const struct block *b,
                   struct input_file *f, size_t *nbytes, char *why, size_t nwhy)
{
    struct csv_field field;
    f->column = p->field ? (size_t)p->field - 1 : 0;
    f->group = p->group_field ? (size_t)p->group_field - 1 : 0;
    f->nheader = 0;
    *nbytes = 0;
    if (!p->header)
        return true;
    const char *const behind =
        csv_record(b->at, b->at + b->len, p->delimiter, SIZE_MAX, &field);
    *nbytes = (size_t)(behind - b->at);
    f->nheader = field.nlines;
    if (field.wrong) {
        snprintf(why, nwhy, "the header has %s", field.wrong);
        return false;
    }
    return (p->field ||
            find_column(p, p->name, b, *nbytes, &f->column, why, nwhy)) &&
           (!p->group || p->group_field ||
            find_column(p, p->group, b, *nbytes, &f->group, why, nwhy));
}

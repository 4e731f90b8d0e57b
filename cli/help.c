/*
 * help.c - one table, printed as help, as man pages and as a schema
 *
 * Everything here walks the table of commands and their options. Texts are
 * plain: a paragraph is a line, an empty line stands between two. The roff
 * writer escapes what roff would read as its own.
 */
#include <ctype.h>
#include <string.h>

#include "cli/cli.h"
#include "report/say.h"
#include "report/show.h"

#define OVERVIEW                                                              \
    "Filters answer \"is this key in the set?\" using a few bits per key. "   \
    "\"No\" is certain, except for the kind generalized; \"maybe\" is wrong " \
    "with a small probability that you choose."

/* What holds for all commands. */
static const struct {
    const char *title, *text;
} conventions[] = {
    { "keys",
      "A key is a line, without its newline; with -0 it ends at a NUL byte "
      "instead. With --field, --csv, --jsonl or --regex it is a part of the "
      "line. A filter says what its keys are (bloomery info shows it), and "
      "keys are taken accordingly: case folded and blanks trimmed if it was "
      "built with -i and --trim, integers if with --int. What cannot be such a "
      "key is an error, never a \"no\". Otherwise bytes count as they are: a "
      "carriage return belongs to the key unless --crlf is given, an empty "
      "line is the empty key, an empty file has no keys, and the last line "
      "needs no newline. Files compressed with gzip, zstd, xz or bzip2 are "
      "recognised by their first bytes and unpacked; archives, databases and "
      "filters are recognised too, and refused. --binary reads the bytes of a "
      "file as they are. Lines may end in CR LF, and a file may begin with a "
      "byte order mark, as Windows writes them: where all of the first lines "
      "do, or the mark is there, a warning says so, and --crlf leaves both "
      "out. - is standard input; behind -- it is a key. If keys are given as "
      "arguments and files have those names, a warning points to -f, which "
      "reads the file, and a command that changes a filter refuses; -- before "
      "the keys takes them as keys. Keys are printed byte for byte; on a "
      "terminal, control characters and invalid UTF-8 are shown as question "
      "marks." },
    { "numbers", "Counts and sizes take suffixes: 10M, 1e6, 64MiB (k, M, G, T "
                 "are powers of 1000; Ki, Mi, Gi, Ti are powers of 1024). "
                 "Rates are written 0.01 or 1%." },
    { "letters",
      "A short option means the same in all commands: -k is the kind, -p the "
      "rate, -m the memory, -o the output, -f a file of keys, -t the number of "
      "threads. There are three exceptions. -n is the number of items where a "
      "filter is made or planned, and line numbers in commands that are like "
      "grep. -v picks what does not match, and in plan it shows more. -d is a "
      "delimiter, and in compress it decompresses, as in gzip." },
    { "files", "A filter is written to a temporary file and renamed when it is "
               "complete, so a reader sees either the old one or the new one, "
               "and an interrupted command changes nothing." },
    { "exit status",
      "0: yes, or done; 1: no; 2: trouble, with one line on standard error." },
};
#define NCONVENTIONS (sizeof conventions / sizeof conventions[0])

static const char *command_word(size_t i, const void *ctx)
{
    (void)ctx;
    return command_at(i) ? command_at(i)->name : NULL;
}

static size_t ncommands(void)
{
    size_t n = 0;
    while (command_at(n))
        n++;
    return n;
}

int fail_command(const char *name)
{
    const char *const near =
        nearest_word(name, ncommands(), command_word, NULL);
    if (near)
        return fail("unknown command '%s'; did you mean '%s'?", name, near);
    return fail("unknown command '%s'; see bloomery --help", name);
}

/* ---------------------------------------------------------------- people */

const char *usage_of(const struct command *c)
{
    return c->usage ? c->usage : "VERB [OPERAND]... [OPTION]...";
}

/* The commands that most people need; the help begins with these. */
static const char *const everyday[] = {
    "build", "add",     "has",    "info",     "plan",
    "merge", "compare", "unique", "distinct", "dedup",
};

/* The commands under a heading: names and summaries, or a paragraph of names.
 */
static void help_heading(const char *title, const struct command *const *of,
                         bool all)
{
    char names[512];
    size_t at = 0;
    printf("\n%c%s%s", toupper(title[0]), title + 1, all ? ":\n" : ": ");
    for (; *of; of++)
        if (all)
            printf("  %-10s %s\n", (*of)->name, (*of)->summary);
        else
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s",
                                   at ? ", " : "", (*of)->name);
    if (!all) {
        print_wrapped(stdout, names, (int)strlen(title) + 2, 2);
        putchar('\n');
    }
}

static void help_headings(bool all)
{
#define HEADING_ROW_(name) &cmd_##name,
#define HEADING_(names, title)                                                \
    help_heading(title,                                                       \
                 (const struct command *const[]){ names(HEADING_ROW_) NULL }, \
                 all);
    HEADINGS(HEADING_)
#undef HEADING_
}

void help_overview(bool all)
{
    fputs("Usage: bloomery COMMAND [options] ...\n\n", stdout);
    print_wrapped(stdout, OVERVIEW, 0, 0);
    putchar('\n');
    if (!all) {
        fputs("\nEvery day:\n", stdout);
        for (size_t i = 0; i < sizeof everyday / sizeof everyday[0]; i++)
            printf("  %-10s %s\n", everyday[i],
                   command_named(everyday[i])->summary);
    }
    help_headings(all);
    for (size_t i = 0; all && i < NCONVENTIONS; i++) {
        const int at = printf("\n%c%s. ", toupper(conventions[i].title[0]),
                              conventions[i].title + 1);
        print_wrapped(stdout, conventions[i].text, at - 1, 0);
        putchar('\n');
    }
    fputs("\nMore about a command: bloomery COMMAND --help\n", stdout);
    if (!all)
        fputs("All commands in a line each, and what holds for all of them: "
              "bloomery help --all\n",
              stdout);
}

/* Where the help texts of options begin; "  -O, --option NAME=VALUE" fits. */
#define OPTION_COLUMN 28

static void help_option(char letter, const char *name, const char *arg,
                        const char *text)
{
    int at = letter ? printf("  -%c, --%s", letter, name)
                    : printf("      --%s", name);
    if (arg)
        at += printf(" %s", arg);
    if (at > OPTION_COLUMN - 2) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", OPTION_COLUMN - at, "");
    print_wrapped(stdout, text, OPTION_COLUMN, OPTION_COLUMN);
    putchar('\n');
}

/* Does the example e show the verb v of c? Any does, if v is NULL. */
static bool shows(const struct example *e, const struct command *c,
                  const struct verb *v)
{
    char begin[96];
    const int n = snprintf(begin, sizeof begin, "bloomery %s %s", c->name,
                           v ? v->name : "");
    return !v || (strncmp(e->line, begin, (size_t)n) == 0 &&
                  (e->line[n] == ' ' || e->line[n] == '\0'));
}

static void help_examples(const struct command *c, const struct verb *v)
{
    const char *title = "\nExamples:\n";
    for (const struct example *e = c->examples; e && e->line; e++) {
        if (!shows(e, c, v))
            continue;
        printf("%s  %s\n      ", title, e->line);
        print_wrapped(stdout, e->what, 6, 6);
        putchar('\n');
        title = "";
    }
}

static void help_verbs(const struct command *c)
{
    int wide = 0;
    for (const struct verb *v = c->verbs; v->name; v++)
        if ((int)strlen(v->name) > wide)
            wide = (int)strlen(v->name);
    fputs("\n\nVerbs:\n", stdout);
    for (const struct verb *v = c->verbs; v->name; v++)
        printf("  %-*s  %s\n", wide, v->name, v->summary);
    printf("\nOperands and options of a verb: bloomery %s VERB --help\n",
           c->name);
}

void help_command(const struct command *c, const struct verb *v)
{
    printf("Usage: bloomery %s ", c->name);
    if (v)
        printf("%s %s%s[OPTION]...\n\n", v->name, v->operands,
               v->operands[0] ? " " : "");
    else
        printf("%s\n\n", usage_of(c));
    print_wrapped(stdout, v ? (v->about ? v->about : v->summary) : c->about, 0,
                  0);
    if (c->verbs && !v) {
        help_verbs(c);
    } else {
        fputs("\n\nOptions:\n", stdout);
        char letter = 'h';
        for (const struct opt *o = options_of(c, v); o->name; o++) {
            help_option(o->letter, o->name, o->arg, o->help);
            letter = o->letter == 'h' ? '\0' : letter;
        }
        help_option(letter, "help", NULL, "print this help");
    }
    help_examples(c, v);
}

/* ------------------------------------------------------------------ roff */

/* Text in roff: backslashes and hyphens escaped, and no line that begins with
 * a control character. Paragraphs are separated by .PP. */
static void roff_text(const char *text)
{
    bool line_start = true;
    for (const char *s = text; *s; s++) {
        if (*s == '\n') {
            if (s[1] == '\n') {
                fputs("\n.PP\n", stdout);
                s++;
            } else {
                fputs("\n.br\n", stdout);
            }
            line_start = true;
            continue;
        }
        if (line_start && (*s == '.' || *s == '\''))
            fputs("\\&", stdout);
        if (*s == '\\')
            fputs("\\e", stdout);
        else if (*s == '-')
            fputs("\\-", stdout);
        else
            putchar(*s);
        line_start = false;
    }
    putchar('\n');
}

static void put_upper(const char *text)
{
    for (const char *s = text; *s; s++)
        putchar(toupper((unsigned char)*s));
}

static void roff_head(const char *title)
{
    fputs(".TH ", stdout);
    put_upper(title);
    printf(" 1 \"\" \"bloomery %s\" \"User Commands\"\n", bly_version());
}

static void roff_conventions(void)
{
    for (size_t i = 0; i < NCONVENTIONS; i++) {
        fputs(".SH ", stdout);
        put_upper(conventions[i].title);
        putchar('\n');
        roff_text(conventions[i].text);
    }
}

static void roff_option(char letter, const char *name, const char *arg,
                        const char *text)
{
    fputs(".TP\n", stdout);
    if (letter)
        printf("\\fB\\-%c\\fR, ", letter);
    printf("\\fB\\-\\-");
    for (const char *s = name; *s; s++) {
        if (*s == '-')
            putchar('\\');
        putchar(*s);
    }
    fputs("\\fR", stdout);
    if (arg)
        printf(" \\fI%s\\fR", arg);
    putchar('\n');
    roff_text(text);
}

static void roff_fields(const struct field *fields)
{
    for (const struct field *f = fields; f->name || f->fields; f++) {
        if (!f->name)
            roff_fields(f->fields);
        if (!f->name || !f->help)
            continue;
        printf(".TP\n\\fB%s\\fR (%s)\n", f->name, field_kind(f));
        roff_text(f->help);
        if (f->fields) {
            fputs(".RS\n", stdout);
            roff_fields(f->fields);
            fputs(".RE\n", stdout);
        }
    }
}

static void roff_reports(const struct report *reports, const char *section)
{
    static const char *const forms[] = { "One object", "An array of objects",
                                         "One object per line" };
    if (!reports)
        return;
    printf(".%s JSON\n", section);
    for (const struct report *r = reports; r->fields; r++) {
        printf("%s%s%s%s:\n", r == reports ? "" : ".PP\n", forms[r->form],
               r->what[0] ? ", " : "", r->what);
        roff_fields(r->fields);
    }
}

static void roff_options(const struct opt *options)
{
    for (const struct opt *o = options; o->name; o++)
        roff_option(o->letter, o->name, o->arg, o->help);
}

static void roff_verb(const struct command *c, const struct verb *v)
{
    printf(".SH ");
    put_upper(v->name);
    printf("\n.B bloomery %s %s\n", c->name, v->name);
    roff_text(v->operands);
    fputs(".PP\n", stdout);
    roff_text(v->about ? v->about : v->summary);
    roff_options(v->options);
    roff_reports(v->reports, "SS");
}

void man_overview(void)
{
    roff_head("bloomery");
    fputs(".SH NAME\n"
          "bloomery \\- build, query, combine and compare Bloom filters and "
          "their relatives\n"
          ".SH SYNOPSIS\n"
          ".B bloomery\n"
          ".I COMMAND\n"
          "[options] ...\n"
          ".SH DESCRIPTION\n",
          stdout);
    roff_text(OVERVIEW);
    fputs(".SH COMMANDS\nEach command has a page of its own, "
          "bloomery\\-COMMAND(1).\n",
          stdout);
#define ROFF_HEADING_(names, title)       \
    fputs(".SS \"" title "\"\n", stdout); \
    names(ROFF_ROW_)
#define ROFF_ROW_(name)                   \
    fputs(".TP\n.B " #name "\n", stdout); \
    roff_text(cmd_##name.summary);
    HEADINGS(ROFF_HEADING_)
    roff_conventions();
    fputs(".SH SEE ALSO\n", stdout);
    for (size_t i = 0; command_at(i); i++)
        printf(".BR bloomery\\-%s (1)%s\n", command_at(i)->name,
               command_at(i + 1) ? "," : "");
}

void man_command(const struct command *c)
{
    char title[64];
    snprintf(title, sizeof title, "bloomery\\-%s", c->name);
    roff_head(title);
    printf(".SH NAME\n%s \\- ", title);
    roff_text(c->summary);
    printf(".SH SYNOPSIS\n.B bloomery %s\n", c->name);
    roff_text(usage_of(c));
    fputs(".SH DESCRIPTION\n", stdout);
    roff_text(c->about);
    for (const struct verb *v = c->verbs; v && v->name; v++)
        roff_verb(c, v);
    fputs(".SH OPTIONS\n", stdout);
    roff_options(options_of(c, NULL));
    roff_option('h', "help", NULL, "print a summary and exit");
    roff_reports(c->reports, "SH");
    for (const struct example *e = c->examples; e && e->line; e++) {
        if (e == c->examples)
            fputs(".SH EXAMPLES\n", stdout);
        fputs(".TP\n", stdout);
        roff_text(e->line);
        roff_text(e->what);
    }
    roff_conventions();
    fputs(".SH SEE ALSO\n.BR bloomery (1)\n", stdout);
}

/* ---------------------------------------------------------------- schema */

static bool reports_json(const struct command *c)
{
    bool any = c->reports != NULL;
    for (const struct verb *v = c->verbs; v && v->name; v++)
        any |= v->reports != NULL;
    return any;
}

void help_schema(void)
{
    struct json j = { .to = stdout };
    json_open(&j, '{');
    json_key(&j, "$schema");
    json_text(&j, "https://json-schema.org/draft/2020-12/schema");
    json_key(&j, "title");
    json_text(&j, "what bloomery COMMAND --json prints, by commands");
    json_key(&j, "$defs");
    json_open(&j, '{');
    for (size_t i = 0; command_at(i); i++) {
        if (!reports_json(command_at(i)))
            continue;
        j.line = true;
        json_key(&j, command_at(i)->name);
        json_open(&j, '{');
        json_key(&j, "anyOf");
        json_open(&j, '[');
        if (command_at(i)->reports)
            report_schema(&j, NULL, command_at(i)->reports);
        for (const struct verb *v = command_at(i)->verbs; v && v->name; v++)
            if (v->reports)
                report_schema(&j, v->name, v->reports);
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
}

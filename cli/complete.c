/*
 * complete.c - what may stand where a command line ends
 *
 *     bloomery help --complete -- build --kind cl
 *
 * prints what the last word, of which a beginning is there, may become: a line
 * for each, the word, a tab and a few words of help. Files are left to who
 * asks, who knows better what a name means:
 *
 *     :files .bly         names of files; those with these endings first
 *     :folders            names of folders
 *
 * All of it comes from the tables: commands, their options and usage, kinds and
 * their options, formats, figures. What an argument or operand is called in the
 * help says what it may be, and an argument called this|that is one of these.
 * The scripts for the shells (completion.c) ask this for every word, and so
 * does the prompt of bloomery shell.
 */
#include <string.h>

#include <bloomery/foreign.h>

#include "cli/cli.h"
#include "workbench/figure.h"

#define HELP_MAX 60 /* beside a word, in 80 columns */

/* Where the candidates go, and what they must begin with. */
struct asked {
    FILE *to;
    const struct list *words; /* all that stand before, and the last */
    const struct command *c;
    const struct verb *verb;
    const char *begin;  /* what of the last word candidates are compared with */
    const char *before; /* what stands before that, "--kind=", in before_n */
    size_t before_n;
};

static void offer(const struct asked *a, const char *word, const char *end,
                  const char *help)
{
    const size_t n = strlen(a->begin);
    if (strlen(word) + strlen(end) < n || strncmp(word, a->begin, n) != 0)
        return;
    fprintf(a->to, "%.*s%s%s", (int)a->before_n, a->before, word, end);
    /* One line, and not a long one: the rest is in the help. */
    size_t len = strcspn(help, ";\n");
    if (len > HELP_MAX)
        for (len = HELP_MAX; len && help[len] != ' ';)
            len--;
    if (len)
        fprintf(a->to, "\t%.*s", (int)len, help);
    fputc('\n', a->to);
}

/* --------------------------------------------------------- lists of words */

static void offer_files(const struct asked *a, const char *endings)
{
    fprintf(a->to, ":files%s%s\n", endings[0] ? " " : "", endings);
}

static void offer_folders(const struct asked *a, const char *of)
{
    (void)of;
    fputs(":folders\n", a->to);
}

/* One of "this|that", or "this that". */
static void offer_words(const struct asked *a, const char *words)
{
    while (*words) {
        char word[WORD_MAX];
        const size_t n = strcspn(words, "| ");
        if (n < sizeof word) {
            memcpy(word, words, n);
            word[n] = '\0';
            offer(a, word, "", "");
        }
        words += n + (words[n] != '\0');
    }
}

static void offer_commands(const struct asked *a, const char *of)
{
    (void)of;
    for (size_t i = 0; command_at(i); i++)
        offer(a, command_at(i)->name, "", command_at(i)->summary);
}

static void offer_kinds(const struct asked *a, const char *of)
{
    (void)of;
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind); i++)
        offer(a, kind.name, "", kind.summary);
}

static void offer_formats(const struct asked *a, const char *of)
{
    (void)of;
    bly_format_info format;
    for (size_t i = 0; bly_format_at(i, &format); i++)
        offer(a, format.name, "", format.systems);
}

static void offer_figures(const struct asked *a, const char *of)
{
    (void)of;
#define FIGURE_OFFER_(which) \
    offer(a, figure_##which.name, "", figure_##which.title);
    FIGURES(FIGURE_OFFER_)
#undef FIGURE_OFFER_
}

static void offer_verbs(const struct asked *a, const char *of)
{
    (void)of;
    const struct command *c = a->c;
    if (strcmp(c->name, "help") == 0 && a->words->n > 2)
        c = command_named(a->words->at[1]);
    for (const struct verb *v = c ? c->verbs : NULL; v && v->name; v++) {
        const size_t n = strcspn(v->name, " ");
        char word[WORD_MAX];
        snprintf(word, sizeof word, "%.*s", (int)n, v->name);
        if (v == c->verbs || strncmp(v[-1].name, v->name, n + 1) != 0)
            offer(a, word, "", v->name[n] ? "" : v->summary);
    }
}

/* The second words behind a first one that does not stand alone. */
static void offer_second_words(const struct asked *a, const char *first)
{
    const size_t n = strlen(first);
    for (const struct verb *v = a->c->verbs; v->name; v++)
        if (strncmp(v->name, first, n) == 0 && v->name[n] == ' ')
            offer(a, v->name + n + 1, "", v->summary);
}

/* ----------------------------------------------- options of kind and format */

/* The value that an option of the line has; NULL if it was not given. */
static const char *value_of(const struct asked *a, const char *name)
{
    const struct opt *const o = option_named(a->c, a->verb, name, strlen(name));
    for (size_t i = 1; o && i + 1 < a->words->n; i++) {
        const char *const word = a->words->at[i];
        if (word[0] != '-')
            continue;
        if (word[1] == '-' && strncmp(word + 2, name, strlen(name)) == 0) {
            const char *const end = word + 2 + strlen(name);
            if (*end == '=')
                return end + 1;
            if (!*end && i + 2 < a->words->n)
                return a->words->at[i + 1];
        } else if (o->letter && word[1] == o->letter) {
            if (word[2])
                return word + 2;
            if (i + 2 < a->words->n)
                return a->words->at[i + 1];
        }
    }
    return NULL;
}

/* name= of an option, or name=CHOICE once the name stands there. */
static void offer_param(const struct asked *a, const bly_param *p)
{
    if (!p->settable)
        return;
    const size_t n = strlen(p->name);
    if (strncmp(a->begin, p->name, n) != 0 || a->begin[n] != '=') {
        offer(a, p->name, "=", p->help);
        return;
    }
    for (size_t i = 0; p->choices && p->choices[i]; i++) {
        char word[2 * WORD_MAX];
        if (snprintf(word, sizeof word, "%s=%s", p->name, p->choices[i]) <
            (int)sizeof word)
            offer(a, word, "", "");
    }
}

static void offer_params(const struct asked *a, const bly_param *params,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        offer_param(a, bly_param_at(params, i));
}

/* Has a format before number i an option of this name? */
static bool option_before(size_t i, const char *name)
{
    bly_format_info format;
    for (size_t n = 0; n < i && bly_format_at(n, &format); n++)
        for (size_t k = 0; k < format.noptions; k++)
            if (strcmp(bly_param_at(format.options, k)->name, name) == 0)
                return true;
    return false;
}

/* -O NAME=VALUE is an option of the format that was given, or else of the kind
 * in commands that make filters, or of any format in others. */
static void offer_options(const struct asked *a, const char *of)
{
    (void)of;
    bly_format_info format;
    const char *name = value_of(a, "format");
    if (!name)
        name = value_of(a, "to");
    if (name) {
        if (bly_format_named(name, &format))
            offer_params(a, format.options, format.noptions);
        return;
    }
    if (option_named(a->c, a->verb, "kind", 4)) {
        bly_kind_info kind;
        if (bly_kind_named(value_of(a, "kind"), &kind))
            offer_params(a, kind.params, kind.nparams);
        return;
    }
    for (size_t i = 0; bly_format_at(i, &format); i++)
        for (size_t k = 0; k < format.noptions; k++)
            if (!option_before(i, bly_param_at(format.options, k)->name))
                offer_param(a, bly_param_at(format.options, k));
}

/* ------------------------------------------- what arguments are called */

/* What stands for an argument or an operand in help and usage. A test wants
 * a row for every word that is used. */
static const struct name {
    const char *name;
    void (*offer)(const struct asked *a, const char *of);
    const char *of;
} names[] = {
    { "KIND", offer_kinds, "" },         { "FORMAT", offer_formats, "" },
    { "NAME=VALUE", offer_options, "" }, { "COMMAND", offer_commands, "" },
    { "FIGURE", offer_figures, "" },     { "VERB", offer_verbs, "" },
    { "FILTER", offer_files, ".bly" },   { "F.bly", offer_files, ".bly" },
    { "LEFT", offer_files, "" },         { "RIGHT", offer_files, "" },
    { "OLD", offer_files, ".bly" },      { "NEW", offer_files, ".bly" },
    { "DELTA", offer_files, ".bld" },    { "FILE.svg", offer_files, ".svg" },
    { "FILE", offer_files, "" },         { "INPUT", offer_files, "" },
    { "OUT", offer_files, "" },          { "OPERAND", offer_files, "" },
    { "TEXT", offer_files, "" },         { "DIR", offer_folders, "" },
    { "QUERIES", offer_files, "" },      { "PEER", offer_files, "" },
    { "LIST", offer_files, "" },         { "CAPTURE", offer_files, ".pcap" },
    { "DIGEST", offer_files, ".dig" },   { "ARCHIVE", offer_folders, "" },
    { "MIRROR", offer_files, "" },       { "INDEX", offer_files, ".blx" },
    { "PART", offer_files, ".blx" },     { "WITH", offer_files, ".bly" },
};

/* And what only the user knows. */
static const char *const free_names[] = {
    "A",        "A..B",     "ADDRESS:PORT",
    "B",        "B,R",      "C",
    "CMD",      "COLUMN",   "EXPR",
    "FIELD",    "HOST",     "HOW",
    "I/N",      "ID",       "IFACE=NEIGHBOUR",
    "ITEM",     "J",        "K",
    "KEY",      "KEYS",     "LANG",
    "M",        "METHOD",   "MS",
    "N",        "NAME",     "NAME=HOST:PORT",
    "P",        "PATH",     "PATTERN",
    "PERCENTS", "PROGRAM",  "RE",
    "S",        "SECONDS",  "SHARE",
    "SIZE",     "T",        "TAG=VALUE",
    "TIME",     "TRAPDOOR", "URL",
    "VALUE",    "WORD",
};

static void offer_named(const struct asked *a, const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i].name) == n &&
            strncmp(names[i].name, name, n) == 0) {
            names[i].offer(a, names[i].of);
            return;
        }
    for (size_t i = 0; i < sizeof free_names / sizeof free_names[0]; i++)
        if (strlen(free_names[i]) == n && strncmp(free_names[i], name, n) == 0)
            return;
    if (memchr(name, '|', n))
        offer_words(a, name);
    else
        fprintf(a->to, ":unknown %.*s\n", (int)n, name);
}

/* --------------------------------------------------------------- operands */

/* Operand number i of the command. */
static void offer_operand(const struct asked *a, size_t i)
{
    const char *at = a->verb ? a->verb->operands : usage_of(a->c), *last = NULL;
    size_t n, last_n = 0;
    bool found = false;
    for (const char *word; (word = next_operand(&at, &n)); i--) {
        if (word[0] >= 'a' && word[0] <= 'z') { /* a word to be typed */
            char typed[WORD_MAX];
            snprintf(typed, sizeof typed, "%.*s", (int)n, word);
            if (i == 0)
                offer(a, typed, "", "");
            i++; /* it may be left out */
            continue;
        }
        last = word;
        last_n = n;
        found = i == 0;
        if (found)
            break;
    }
    /* Past the last one only what repeats: "FILTER...", "[KEY VALUE]...". */
    if (!last)
        return;
    const char *const behind = last + last_n + (last[last_n] == ']');
    if (found || strncmp(behind, "...", 3) == 0)
        offer_named(a, last, last_n);
}

/* ----------------------------------------------------------------- options */

static void offer_all_options(const struct asked *a)
{
    const bool letters = strlen(a->begin) < 2;
    for (const struct opt *o = options_of(a->c, a->verb); o->name; o++) {
        char word[WORD_MAX + 2];
        snprintf(word, sizeof word, "--%s", o->name);
        offer(a, word, "", o->help);
        snprintf(word, sizeof word, "-%c", o->letter);
        if (o->letter && letters)
            offer(a, word, "", o->help);
    }
    offer(a, "--help", "", "print help");
}

void complete(FILE *to, const struct list *words)
{
    static const char *const none[] = { "" };
    const struct list empty = { (const char **)(void *)none, 1, 0 };
    if (words->n == 0)
        words = &empty;
    const char *const last = words->at[words->n - 1];
    struct asked a = {
        .to = to, .words = words, .begin = last, .before = last
    };
    if (words->n == 1) {
        offer_commands(&a, "");
        if (last[0] == '-')
            offer_words(&a, "--help --version");
        return;
    }
    a.c = command_named(words->at[0]);
    if (!a.c)
        return;

    /* What the words before leave open. */
    const struct opt *open = NULL;
    const char *first = NULL;
    size_t operands = 0, of_verb = 0;
    bool ended = false;
    if (a.c->verbs)
        a.verb = verb_of_line(a.c, words->n - 2, words->at + 1, &of_verb);
    for (size_t i = 1; i + 1 < words->n; i++) {
        const char *const word = words->at[i];
        if (open) {
            open = NULL;
        } else if (ended || word[0] != '-' || !word[1]) {
            first = first ? first : word;
            operands++;
        } else if (strcmp(word, "--") == 0) {
            ended = true;
        } else {
            open = wants_value(a.c, a.verb, word);
        }
    }
    const char *const equals = strchr(last, '=');
    if (!open && !ended && last[0] == '-' && last[1] == '-' && equals) {
        open = option_named(a.c, a.verb, last + 2, (size_t)(equals - last) - 2);
        if (!open || open->type.is == IS_FLAG)
            return;
        a.begin = equals + 1;
        a.before_n = (size_t)(a.begin - last);
    }
    if (open)
        offer_named(&a, open->arg, strlen(open->arg));
    else if (!ended && last[0] == '-')
        offer_all_options(&a);
    else if (a.c->verbs && !a.verb && first)
        offer_second_words(&a, first);
    else
        offer_operand(&a, operands - of_verb);
}

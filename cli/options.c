/*
 * options.c - the one parser of command lines
 *
 * GNU's customs: long options as --name VALUE or --name=VALUE, letters as -n
 * VALUE, -nVALUE, or several flags in one word; options and operands in any
 * order; -- ends the options; a lone - is an operand. Everything else is in
 * the command's table.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "io/files.h"
#include "io/input.h"
#include "report/say.h"

static const char *option_word(size_t i, const void *ctx)
{
    const struct opt *const options = ctx;
    return options[i].name;
}

/* Letters that options had until 0.2 and lost, because a letter means one thing
 * in all commands. Whoever still writes one is told what to write instead. */
static const struct {
    const char *command;
    char letter;
    const char *use;
} gone[] = {
    { "basket", 'c', "--min-count" },
    { "basket", 'k', "--components" },
    { "basket", 'r', "--recall" },
    { "basket", 't', "-T, --threshold" },
    { "bench", 'r', "--rounds" },
    { "convert", 'T', "--to" },
    { "dedup", 'k', "--k" },
    { "dedup", 'l', "--lines" },
    { "digest", 'l', "--listen" },
    { "explain", 'm', "--m" },
    { "figures", 'l', "--list" },
    { "parquet", 'c', "--column" },
    { "plan", 't', "-T, --threshold" },
    { "redis", 'H', "--host" },
    { "redis", 'P', "--port" },
    { "redis", 'u', "--user" },
    { "shrink", 'b', "--bytes" },
    { "shrink", 't', "--times" },
    { "similar", 'k', "--components" },
    { "similar", 'n', "--size" },
    { "top", 'k', "--k" },
};

/* The verb that takes an option which this one does not; NULL if none does. */
static const char *other_verb(const struct command *c, const struct opt *o)
{
    for (const struct verb *v = c->verbs; v && v->name; v++)
        if (option_named(c, v, o->name, strlen(o->name)))
            return v->name;
    return NULL;
}

static int unknown_option(const struct line *line, const char *word)
{
    const struct command *const c = line->command;
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        if (gone[i].letter == word[1] && strcmp(gone[i].command, c->name) == 0)
            return fail("-%c is no longer an option here: a letter means the "
                        "same in all commands; use %s",
                        word[1], gone[i].use);
    const char *const dashed = word[1] == '-' ? word + 2 : NULL;
    const struct opt *const other =
        dashed ? option_named(c, NULL, dashed, strcspn(dashed, "="))
               : option_letter(c, NULL, word[1]);
    if (other && line->verb)
        return fail("%s takes no --%s, as %s does; see bloomery %s %s --help",
                    line->verb->name, other->name, other_verb(c, other),
                    c->name, line->verb->name);
    const struct opt *const options = options_of(c, line->verb);
    size_t n = 0;
    while (options[n].name)
        n++;
    char name[WORD_MAX] = "";
    if (dashed && strcspn(dashed, "=") < sizeof name)
        memcpy(name, dashed, strcspn(dashed, "="));
    const char *const near =
        name[0] ? nearest_word(name, n, option_word, options) : NULL;
    if (near)
        return fail("unknown option '%s'; did you mean '--%s'?", word, near);
    return fail("unknown option '%s'; see bloomery %s%s%s --help, and put -- "
                "before a word that begins with -",
                word, c->name, line->verb ? " " : "",
                line->verb ? line->verb->name : "");
}

static bool in_range(const struct opt *o, const char *given, const char *text,
                     double value)
{
    const double least = o->type.least, most = o->type.most;
    const char *const unit = o->type.is == IS_SECONDS ? " seconds" : "";
    if (most == 0 || (value >= least && value <= most))
        return true;
    return value < least ? refuse("%s '%s': must be at least %.15g%s", given,
                                  text, least, unit)
                         : refuse("%s '%s': must be at most %.15g%s", given,
                                  text, most, unit);
}

/* Which word of o->arg text is. */
static bool choose(const struct opt *o, const char *given, const char *text)
{
    unsigned i = 0;
    for (const char *at = o->arg; *at; i++) {
        const size_t n = strcspn(at, "|");
        if (strlen(text) == n && strncmp(at, text, n) == 0) {
            *(unsigned *)o->to = i;
            return true;
        }
        at += n + (at[n] != '\0');
    }
    char words[256];
    size_t at = 0;
    for (const char *w = o->arg; *w && at < sizeof words;) {
        const size_t n = strcspn(w, "|");
        const char *const join = w == o->arg      ? ""
                                 : strchr(w, '|') ? ", "
                                                  : " or ";
        at += (size_t)snprintf(words + at, sizeof words - at, "%s%.*s", join,
                               (int)n, w);
        w += n + (w[n] != '\0');
    }
    return refuse("%s '%s': expected %s", given, text, words);
}

/* Set what o points to from text. `given` is the option as it was written. */
static bool set_option(const struct opt *o, const char *given, const char *text)
{
    set_given(o->to);
    if (o->arg && strcmp(o->arg, "KIND") == 0)
        text = kind_meant(text);
    switch (o->type.is) {
    case IS_FLAG:
        *(bool *)o->to = true;
        return true;
    case IS_COUNT:
    case IS_POSITIVE: {
        uint64_t value;
        if (!bly_parse_count(text, &value)) {
            fail("%s '%s': not a whole number below 2^64 (try 5000, 10M, 1e6, "
                 "64MiB)",
                 given, text);
            return false;
        }
        if (o->type.is == IS_POSITIVE && value == 0) {
            fail("%s '%s': must be at least 1", given, text);
            return false;
        }
        *(uint64_t *)o->to = value;
        return in_range(o, given, text, (double)value);
    }
    case IS_REAL:
    case IS_SECONDS: {
        double value;
        if (!bly_parse_real(text, &value) || !(value >= 0)) {
            fail(o->type.is == IS_REAL
                     ? "%s '%s': not a number of at least 0 (try 0.5, 10)"
                     : "%s '%s': not a number of seconds (try 0, 0.5, 10)",
                 given, text);
            return false;
        }
        *(double *)o->to = value;
        return in_range(o, given, text, value);
    }
    case IS_CHOICE:
        return choose(o, given, text);
    case IS_RATE: {
        double value;
        if (!bly_parse_real(text, &value) || !(value > 0 && value < 1)) {
            fail("%s '%s': not a rate above 0 and below 1 (try 1%%, 0.001)",
                 given, text);
            return false;
        }
        *(double *)o->to = value;
        return in_range(o, given, text, value);
    }
    case IS_TEXT:
        *(const char **)o->to = text;
        return true;
    case IS_LIST: {
        struct list *const list = o->to;
        const char **const more =
            realloc(list->at, (list->n + 1) * sizeof *more);
        if (!more) {
            fail("out of memory");
            return false;
        }
        list->at = more;
        list->at[list->n++] = text;
        return true;
    }
    }
    return false;
}

/* --name, --name=VALUE or --name VALUE; *next is the word after this one, or
 * NULL, and becomes NULL when it is used up. */
static bool long_option(const struct line *line, const char *word,
                        const char **next)
{
    const char *const name = word + 2;
    const size_t len = strcspn(name, "=");
    const struct opt *const o =
        option_meant(line->command, line->verb, name, len);
    if (!o)
        return !unknown_option(line, word);
    char given[WORD_MAX];
    snprintf(given, sizeof given, "--%s", o->name);
    const char *value = NULL;
    if (name[len] == '=') {
        if (o->type.is == IS_FLAG) {
            fail("%s takes no value", given);
            return false;
        }
        value = name + len + 1;
    } else if (o->type.is != IS_FLAG) {
        if (!*next) {
            fail("%s needs a value, %s", given, o->arg);
            return false;
        }
        value = *next;
        *next = NULL;
    }
    return set_option(o, given, value);
}

/* -v, -vc, -n VALUE or -nVALUE. */
static bool short_options(const struct line *line, const char *word,
                          const char **next)
{
    for (const char *at = word + 1; *at; at++) {
        const struct opt *const o =
            option_letter(line->command, line->verb, *at);
        if (!o) {
            const char one[] = { '-', *at, '\0' };
            return !unknown_option(line, at == word + 1 ? word : one);
        }
        const char given[] = { '-', o->letter, '\0' };
        if (o->type.is == IS_FLAG) {
            if (!set_option(o, given, NULL))
                return false;
            continue;
        }
        if (at[1])
            return set_option(o, given, at + 1);
        if (!*next) {
            fail("%s needs a value, %s", given, o->arg);
            return false;
        }
        const char *const value = *next;
        *next = NULL;
        return set_option(o, given, value);
    }
    return true;
}

static bool has_letter(const struct line *line, char letter)
{
    const struct opt *o = options_of(line->command, line->verb);
    while (o && o->name && o->letter != letter)
        o++;
    return o && o->name;
}

/* Every word of the line, the options being known. */
static bool read_words(struct line *line, int argc, char **argv, int *status)
{
    struct list *const operands = &line->operands;
    bool options_ended = false;
    for (int i = 0; i < argc; i++) {
        const char *const word = argv[i];
        if (options_ended || word[0] != '-' || !word[1]) {
            operands->at[operands->n++] = word;
            operands->literal += options_ended;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            options_ended = true;
            continue;
        }
        /* -h is help, but where it is grep's own -h. */
        if (strcmp(word, "--help") == 0 ||
            (strcmp(word, "-h") == 0 && !has_letter(line, 'h'))) {
            help_command(line->command, line->verb);
            *status = YES;
            return false;
        }
        if (strcmp(word, "--version") == 0) {
            printf("bloomery %s\n", bly_version());
            *status = YES;
            return false;
        }
        const char *const after = i + 1 < argc ? argv[i + 1] : NULL;
        const char *next = after;
        if (!(word[1] == '-' ? long_option(line, word, &next)
                             : short_options(line, word, &next)))
            return false;
        i += after && !next;
    }
    return true;
}

/* Take the verb off the operands, or say what is wrong. */
static bool take_verb(struct line *line)
{
    struct list *const operands = &line->operands;
    const struct command *const c = line->command;
    size_t nwords;
    const struct verb *const v = verb_of_operands(c, operands, &nwords);
    if (!v)
        return false;
    operands->n -= nwords;
    memmove(operands->at, operands->at + nwords,
            operands->n * sizeof *operands->at);
    if (operands->n >= operands_needed(v->operands))
        return true;
    return refuse("%s needs more; usage: bloomery %s %s %s", v->name, c->name,
                  v->name, v->operands);
}

bool options_parse(const struct command *c, int argc, char **argv,
                   struct line *out, int *status)
{
    *out = (struct line){ .command = c };
    out->operands.at = calloc((size_t)argc + 1, sizeof(char *));
    *status = TROUBLE;
    if (!out->operands.at)
        return refuse("out of memory");
    size_t nwords;
    if (c->verbs)
        out->verb = verb_of_line(c, (size_t)argc,
                                 (const char *const *)(void *)argv, &nwords);
    crlf_option = option_named(c, out->verb, "crlf", 4) != NULL;
    /* A word that is not a verb comes before what is wrong with its options. */
    if (c->verbs && !out->verb && argc > 0 && argv[0][0] != '-') {
        struct list words = { .at = (const char **)(void *)argv };
        while (words.n < (size_t)argc && argv[words.n][0] != '-')
            words.n++;
        return verb_of_operands(c, &words, &nwords);
    }
    return read_words(out, argc, argv, status) && (!c->verbs || take_verb(out));
}

int line_run(struct line *line)
{
    return line->verb ? line->verb->run(&line->operands)
                      : line->command->run(&line->operands);
}

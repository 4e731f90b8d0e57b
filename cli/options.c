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
    { "basket", 'c', "--min-count" }, { "basket", 'k', "--components" },
    { "basket", 'r', "--recall" },    { "basket", 't', "-T, --threshold" },
    { "bench", 'r', "--rounds" },     { "compress", 'd', "--decompress" },
    { "convert", 'T', "--to" },       { "dedup", 'k', "--k" },
    { "dedup", 'l', "--lines" },      { "digest", 'l', "--listen" },
    { "explain", 'm', "--m" },        { "figures", 'l', "--list" },
    { "parquet", 'c', "--column" },   { "plan", 't', "-T, --threshold" },
    { "redis", 'H', "--host" },       { "redis", 'P', "--port" },
    { "redis", 'u', "--user" },       { "shrink", 'b', "--bytes" },
    { "shrink", 't', "--times" },     { "similar", 'k', "--components" },
    { "similar", 'n', "--size" },     { "top", 'k', "--k" },
};

static int unknown_option(const struct command *c, const char *word)
{
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        if (gone[i].letter == word[1] && strcmp(gone[i].command, c->name) == 0)
            return fail("-%c is no longer an option here: a letter means the "
                        "same in all commands; use %s",
                        word[1], gone[i].use);
    size_t n = 0;
    while (c->options[n].name)
        n++;
    const char *const dashed = word[1] == '-' ? word + 2 : NULL;
    char name[WORD_MAX] = "";
    if (dashed && strcspn(dashed, "=") < sizeof name)
        memcpy(name, dashed, strcspn(dashed, "="));
    const char *const near =
        name[0] ? nearest_word(name, n, option_word, c->options) : NULL;
    if (near)
        return fail("unknown option '%s'; did you mean '--%s'?", word, near);
    return fail(
        "unknown option '%s'; see bloomery %s --help, and put -- before "
        "a word that begins with -",
        word, c->name);
}

/* Set what o points to from text. `given` is the option as it was written. */
static bool set_option(const struct opt *o, const char *given, const char *text)
{
    switch (o->type) {
    case OPT_FLAG:
        *(bool *)o->to = true;
        return true;
    case OPT_COUNT:
    case OPT_POSITIVE: {
        uint64_t value;
        if (!bly_parse_count(text, &value)) {
            fail("%s '%s': not a whole number below 2^64 (try 5000, 10M, 1e6, "
                 "64MiB)",
                 given, text);
            return false;
        }
        if (o->type == OPT_POSITIVE && value == 0) {
            fail("%s '%s': must be at least 1", given, text);
            return false;
        }
        *(uint64_t *)o->to = value;
        return true;
    }
    case OPT_RATE: {
        double value;
        if (!bly_parse_real(text, &value) || !(value > 0 && value < 1)) {
            fail("%s '%s': not a rate above 0 and below 1 (try 1%%, 0.001)",
                 given, text);
            return false;
        }
        *(double *)o->to = value;
        return true;
    }
    case OPT_TEXT:
        *(const char **)o->to = text;
        return true;
    case OPT_LIST: {
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
    case OPT_WAIT:
        if (wait_limit(text))
            return true;
        fail("%s '%s': not a number of seconds (try 0, 0.5, 10)", given, text);
        return false;
    }
    return false;
}

/* --name, --name=VALUE or --name VALUE; *next is the word after this one, or
 * NULL, and becomes NULL when it is used up. */
static bool long_option(const struct command *c, const char *word,
                        const char **next)
{
    const char *const name = word + 2;
    const size_t len = strcspn(name, "=");
    const struct opt *o = c->options;
    while (o->name &&
           (strlen(o->name) != len || strncmp(o->name, name, len) != 0))
        o++;
    if (!o->name) {
        unknown_option(c, word);
        return false;
    }
    char given[WORD_MAX];
    snprintf(given, sizeof given, "--%s", o->name);
    const char *value = NULL;
    if (name[len] == '=') {
        if (o->type == OPT_FLAG) {
            fail("%s takes no value", given);
            return false;
        }
        value = name + len + 1;
    } else if (o->type != OPT_FLAG) {
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
static bool short_options(const struct command *c, const char *word,
                          const char **next)
{
    for (const char *at = word + 1; *at; at++) {
        const struct opt *o = c->options;
        while (o->name && o->letter != *at)
            o++;
        if (!o->name) {
            const char one[] = { '-', *at, '\0' };
            unknown_option(c, at == word + 1 ? word : one);
            return false;
        }
        const char given[] = { '-', o->letter, '\0' };
        if (o->type == OPT_FLAG) {
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

bool options_parse(const struct command *c, int argc, char **argv,
                   struct list *operands, int *status)
{
    *operands = (struct list){ .at = calloc((size_t)argc + 1, sizeof(char *)) };
    *status = TROUBLE;
    if (!operands->at) {
        fail("out of memory");
        return false;
    }
    crlf_option = false;
    for (const struct opt *o = c->options; o->name; o++)
        crlf_option |= strcmp(o->name, "crlf") == 0;
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
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            help_command(c);
            *status = YES;
            return false;
        }
        const char *const after = i + 1 < argc ? argv[i + 1] : NULL;
        const char *next = after;
        if (!(word[1] == '-' ? long_option(c, word, &next)
                             : short_options(c, word, &next)))
            return false;
        i += after && !next;
    }
    return true;
}

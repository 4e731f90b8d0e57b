/*
 * cmd_help.c - help, man pages and completion, for people and for packagers
 */
#include <string.h>

#include "cli/cli.h"
#include "report/say.h"

static struct {
    bool all, man, list, schema, json, complete;
    unsigned completion;
} help_args;

/* ------------------------------------------------------ for programs: JSON */

struct told_option {
    const char *name;
    char letter[2];
    const char *arg, *help;
};

static const struct field option_fields[] = {
    FIELD(struct told_option, name, NONE, "without the dashes"),
    FIELD(struct told_option, letter, MAYBE | ZERO, "its short form"),
    FIELD(struct told_option, arg, MAYBE,
          "what its value is called; null if it takes none"),
    FIELD(struct told_option, help, NONE, "what it does"),
    { 0 },
};

static void option_told(const void *options, size_t i, void *out)
{
    const struct opt *const o = (const struct opt *)options + i;
    *(struct told_option *)out =
        (struct told_option){ o->name, { o->letter, '\0' }, o->arg, o->help };
}

static size_t option_count(const struct opt *options)
{
    size_t n = 0;
    while (options[n].name)
        n++;
    return n;
}

struct told_verb {
    const char *name, *operands, *summary;
    const struct opt *options;
    size_t noptions;
};

static const struct field verb_fields[] = {
    NAMED(struct told_verb, "verb", name, NONE, "its name, a word or two"),
    FIELD(struct told_verb, operands, NONE, "what follows the name"),
    FIELD(struct told_verb, summary, NONE, "what it does, in one line"),
    EACH(struct told_verb, "options", options, noptions, NONE, option_told,
         struct told_option, option_fields, "its options, but for --help"),
    { 0 },
};

static void verb_told(const void *verbs, size_t i, void *out)
{
    const struct verb *const v = (const struct verb *)verbs + i;
    *(struct told_verb *)out =
        (struct told_verb){ v->name, v->operands, v->summary, v->options,
                            option_count(v->options) };
}

struct told_command {
    const char *name, *usage, *summary;
    const struct verb *verbs;
    const struct opt *options;
    size_t nverbs, noptions;
};

static const struct field command_fields[] = {
    NAMED(struct told_command, "command", name, NONE, "its name"),
    FIELD(struct told_command, usage, NONE, "what follows the name"),
    FIELD(struct told_command, summary, NONE, "what it does, in one line"),
    EACH(struct told_command, "verbs", verbs, nverbs, NONE, verb_told,
         struct told_verb, verb_fields,
         "what its first operand may say, each with options of its own"),
    EACH(struct told_command, "options", options, noptions, NONE, option_told,
         struct told_option, option_fields,
         "options of a command without verbs, but for --help"),
    { 0 },
};

static int help_json(const struct command *only)
{
    struct json j = { .to = stdout };
    json_open(&j, '[');
    for (size_t i = 0; command_at(i); i++) {
        const struct command *const c = command_at(i);
        if (only && only != c)
            continue;
        const struct opt *const options = options_of(c, NULL);
        struct told_command told = {
            .name = c->name,
            .usage = usage_of(c),
            .summary = c->summary,
            .verbs = c->verbs,
            .options = options,
            .noptions = option_count(options),
        };
        while (c->verbs && c->verbs[told.nverbs].name)
            told.nverbs++;
        report_object(&j, command_fields, &told);
    }
    json_close(&j, ']');
    json_end(&j);
    return YES;
}

/* ----------------------------------------------------------------- running */

static int help_run(struct list *operands)
{
    if (was_given(&help_args.completion))
        return completion_script(help_args.completion);
    if (help_args.complete) {
        complete(stdout, operands);
        return YES;
    }
    if (help_args.schema) {
        help_schema();
        return YES;
    }
    if (help_args.list) {
        for (size_t i = 0; command_at(i); i++)
            puts(command_at(i)->name);
        return YES;
    }
    if (operands->n == 0) {
        if (help_args.json)
            return help_json(NULL);
        if (help_args.man)
            man_overview();
        else
            help_overview(help_args.all);
        return YES;
    }
    const struct command *const c = command_meant(operands->at[0]);
    if (!c)
        return fail_command(operands->at[0]);
    const struct list verb = { operands->at + 1, operands->n - 1, 0 };
    const struct verb *v = NULL;
    size_t nwords = 0;
    if (verb.n && c->verbs && !(v = verb_of_operands(c, &verb, &nwords)))
        return TROUBLE;
    if (verb.n > nwords)
        return fail("one command at a time, not '%s'", verb.at[nwords]);
    if (help_args.json)
        return help_json(c);
    if (help_args.man)
        man_command(c);
    else
        help_command(c, v);
    return YES;
}

static const struct opt help_options[] = {
    FLAG("all", 0, help_args.all,
         "print all commands with a line each, and what holds for all of them"),
    FLAG("man", 0, help_args.man, "print a manual page in roff format instead"),
    FLAG("list", 0, help_args.list,
         "print the names of all commands, one per line"),
    FLAG("schema", 0, help_args.schema,
         "print the JSON schema of what the commands print with --json"),
    FLAG("json", 0, help_args.json,
         "print commands and their options as a JSON array"),
    { "completion", 0, OPT_CHOICE, &help_args.completion, "bash|zsh|fish",
      "print a completion script for this shell" },
    FLAG("complete", 0, help_args.complete,
         "for these scripts: print what the last of the words behind -- may "
         "become"),
    { 0 },
};

static const struct example help_examples[] = {
    { "bloomery help build", "how to make a filter" },
    { "bloomery help --man has | man -l -", "read the manual page of has" },
    { "source <(bloomery help --completion bash)",
      "complete commands, options, kinds and files in this shell; make "
      "install does it for all" },
    { 0 },
};

const struct command cmd_help = {
    .name = "help",
    .usage = "[--all | --man | --json] [COMMAND [VERB]] | --completion SHELL | "
             "OPTION",
    .summary = "show help for a command",
    .about = "Prints what a command does and its options or, without a "
             "command, a list of all commands.",
    .options = help_options,
    .examples = help_examples,
    .reports = REPORTS({ "", command_fields, ARRAY }),
    .run = help_run,
};

/*
 * cmd_help.c - help, man pages and completion, for people and for packagers
 */
#include <string.h>

#include "cli/cli.h"
#include "report/say.h"

static struct {
    bool man, list, schema;
    const char *completion;
} help_args;

static int help_run(struct list *operands)
{
    if (help_args.completion) {
        if (strcmp(help_args.completion, "bash") != 0)
            return fail("--completion '%s': there is a script only for bash",
                        help_args.completion);
        completion_bash();
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
    if (operands->n > 1)
        return fail("one command at a time, not '%s'", operands->at[1]);
    if (operands->n == 0) {
        if (help_args.man)
            man_overview();
        else
            help_overview(stdout);
        return YES;
    }
    const struct command *const c = command_named(operands->at[0]);
    if (!c)
        return fail_command(operands->at[0]);
    if (help_args.man)
        man_command(c);
    else
        help_command(c);
    return YES;
}

static const struct opt help_options[] = {
    FLAG("man", 0, help_args.man, "print a manual page in roff format instead"),
    FLAG("list", 0, help_args.list,
         "print the names of all commands, one per line"),
    FLAG("schema", 0, help_args.schema,
         "print the JSON schema of what the commands print with --json"),
    { "completion", 0, OPT_TEXT, &help_args.completion, "SHELL",
      "print a completion script; SHELL is bash" },
    { 0 },
};

static const struct example help_examples[] = {
    { "bloomery help build", "how to make a filter" },
    { "bloomery help --man has | man -l -", "read the manual page of has" },
    { "source <(bloomery help --completion bash)",
      "complete commands and options in this shell" },
    { 0 },
};

const struct command cmd_help = {
    .name = "help",
    .usage = "[--man] [COMMAND] | --list | --schema | --completion bash",
    .summary = "show help for a command",
    .about = "Prints what a command does and its options or, without a "
             "command, a list of all commands.",
    .options = help_options,
    .examples = help_examples,
    .run = help_run,
};

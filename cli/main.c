/*
 * main.c - bloomery: build, ask, combine and compare filters
 *
 *     bloomery COMMAND [options] ...
 *
 * Finds the row of the command, lets options.c read the line by it, and runs
 * it. What every command leaves on standard output goes out through
 * out_finish(), so that a full disk is noticed whichever command wrote.
 *
 * Signals keep their default action. A filter is written to a temporary file
 * and renamed, so an interrupted build or add leaves the old file; and a
 * reader that goes away ends the command quietly by SIGPIPE, as it does grep.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/program.h"
#include "io/files.h"
#include "report/out.h"
#include "report/say.h"

/* A standard descriptor that the caller closed would be given to the next file
 * that is opened, and a message would go into a filter. They are filled with
 * what fails when it is used: 0 cannot be read, nor 1 written. */
static void fill_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == 1 ? O_RDONLY : O_WRONLY) < 0)
            return;
}

int main(int argc, char **argv)
{
    fill_descriptors();
    program_began(argv);
    if (argc < 2)
        return fail("which command? usage: bloomery COMMAND [options] ..., "
                    "such as bloomery build or bloomery has; bloomery --help "
                    "lists them");
    const char *const word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help_overview(false);
        return out_finish(YES);
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("bloomery %s\n", bly_version());
#ifdef BLY_SECURITY_CONTACT
        puts("vulnerabilities: " BLY_SECURITY_CONTACT);
#endif
        return out_finish(YES);
    }
    if (word[0] == '-')
        return fail("unknown option '%s'; usage: bloomery COMMAND ..., --help "
                    "or --version",
                    word);
    const struct command *const c = command_meant(word);
    if (!c)
        return fail_command(word);

    set_running(c->name);
    struct line line;
    int status;
    if (options_parse(c, argc - 2, argv + 2, &line, &status))
        status = line_run(&line);
    secret_wipe();
    free(line.operands.at);
    return out_finish(status);
}

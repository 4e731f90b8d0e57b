/*
 * cmd_shell.c - a prompt for one filter
 *
 * A line is a command without "bloomery" and without the filter: has, add, info
 * and their like are the commands of those names, run with the filter put in
 * front of their operands. Each runs in a process of its own. So whatever ends
 * one, a Ctrl-C or a file that is cut while it is mapped, leaves the prompt;
 * and nothing is kept between two lines but the name of the file, which is
 * opened anew: what others write is seen by the next line, and what a line has
 * changed is on disk before the next prompt appears.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/shell/prompt_edit.h"
#include "cli/program.h"
#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/foreign_files.h"
#include "io/keys.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/show.h"

static struct {
    const char *key_file;
    const char *path;
    uint32_t can; /* of the filter's kind, when the shell began */
    struct stat seen;
    size_t line; /* of a script; 0 at a terminal */
} shell;

/* What may be typed. A command that has the filter as its first operand gets it
 * from here. */
static const struct typed {
    const char *name;
    bool filter;
    uint32_t needs; /* 0: any filter will do */
} typed[] = {
    { "has", true, BLY_CAN(HAS) },
    { "add", true, BLY_CAN(ADD) },
    { "remove", true, BLY_CAN(REMOVE) },
    { "count", true, BLY_CAN(COUNT) },
    { "get", true, BLY_CAN(GET) },
    { "set", true, BLY_CAN(SET) },
    { "info", true, 0 },
    { "note", true, 0 },
    { "plan", false, 0 },
    { "kinds", false, 0 },
    { "help", false, 0 },
    { "quit", false, 0 },
};
#define NTYPED (sizeof typed / sizeof typed[0])

static const struct typed *typed_named(const char *name)
{
    if (strcmp(name, "exit") == 0)
        name = "quit";
    for (size_t i = 0; i < NTYPED; i++)
        if (strcmp(typed[i].name, name) == 0)
            return &typed[i];
    return NULL;
}

static const char *typed_word(size_t i, const void *ctx)
{
    (void)ctx;
    return typed[i].name;
}

static bool fits(const struct typed *t)
{
    return !t->needs || shell.can & t->needs;
}

static const char *typed_summary(const struct typed *t)
{
    const struct command *const c = command_named(t->name);
    return strcmp(t->name, "quit") == 0 ? "end; so does Ctrl-D" : c->summary;
}

/* ---------------------------------------------------- one line, one process */

/* The words as the command line that they stand for. A path that looks like an
 * option is none behind ./ */
static const char **command_line(const struct typed *t, const struct command *c,
                                 const struct list *words, int *argc)
{
    const char **const argv = calloc(words->n + 4, sizeof *argv);
    int n = 0;
    if (!argv)
        return NULL;
    if (shell.key_file && option_named(c, NULL, "key-file", 8)) {
        argv[n++] = "--key-file";
        argv[n++] = shell.key_file;
    }
    if (t->filter)
        argv[n++] = shell.path;
    for (size_t i = 1; i < words->n; i++)
        argv[n++] = words->at[i];
    *argc = n;
    return argv;
}

/* A command that takes keys and was given none would read standard input, which
 * is where the lines of the shell come from. */
static bool lacks_keys(const struct command *c, const struct list *operands)
{
    if ((operands->n > 1 && !operand_is_stdin(operands, 1)) ||
        !strstr(c->usage, "KEY"))
        return false;
    const struct opt *const o = option_named(c, NULL, "file", 4);
    return o && !was_given(o->to);
}

/* In the new process: run it, and end with its status. */
static void run_command(const struct typed *t, const struct list *words)
{
    const struct command *const c = command_named(t->name);
    static char running[64];
    signal(SIGINT, SIG_DFL);
    setlocale(LC_CTYPE, "C"); /* as for the command by itself */
    snprintf(running, sizeof running, "shell: line %zu: %s", shell.line,
             c->name);
    set_running(shell.line ? running : c->name);
    /* Not to be read; and exit() would move the place in a script. */
    const int nothing = open("/dev/null", O_WRONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
        exit(fail("/dev/null: %s", strerror(errno)));
    int argc;
    const char **const argv = command_line(t, c, words, &argc);
    if (!argv)
        exit(fail("out of memory"));
    struct line line;
    int status;
    if (options_parse(c, argc, (char **)(void *)argv, &line, &status)) {
        if (t->filter && lacks_keys(c, &line.operands))
            status = fail("no keys are given; usage: %s KEY..., or %s -f FILE",
                          c->name, c->name);
        else
            status = line_run(&line);
    }
    secret_wipe();
    exit(out_finish(status));
}

static int run_line(const struct typed *t, const struct list *words)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0)
        return fail("no process could be started: %s", strerror(errno));
    if (child == 0)
        run_command(t, words);
    int how;
    while (waitpid(child, &how, 0) < 0)
        if (errno != EINTR)
            return fail("waiting: %s", strerror(errno));
    if (WIFEXITED(how))
        return WEXITSTATUS(how);
    if (WTERMSIG(how) == SIGINT) {
        putchar('\n');
        return TROUBLE;
    }
    return fail("%s was ended by signal %d (%s)", t->name, WTERMSIG(how),
                strsignal(WTERMSIG(how)));
}

/* --------------------------------------------------------------- the filter */

/* Is path what can be asked? What it can do is kept. */
static bool shell_begin(const char *path)
{
    struct foreign_file file;
    const struct foreign_args any = { 0 };
    if (is_stdin(path)) {
        fail("the filter must be a file, since lines come from standard input");
        return false;
    }
    if (foreign_open(path, &any, &file) != YES)
        return false;
    shell.can = BLY_CAN(HAS) | BLY_CAN(ADD);
    shell.path = path;
    if (file.f) {
        foreign_close(&file);
    } else {
        const bly_access how = { .blind = true, .checking = BLY_CHECK_NOTHING };
        bly_filter *const f = filter_map(path, &how);
        if (!f)
            return false;
        bly_kind_info kind;
        bly_kind_of(f, &kind);
        shell.can = kind.can;
        bly_free(f);
    }
    stat(path, &shell.seen);
    return true;
}

/* Somebody who looks at a prompt is told that the file is another one. */
static void look_again(bool ours)
{
    struct stat now;
    if (stat(shell.path, &now))
        return;
    if (!ours && prompt_is_terminal() &&
        (now.st_ino != shell.seen.st_ino || now.st_dev != shell.seen.st_dev))
        note("%s was replaced by another process since the last line",
             shell.path);
    shell.seen = now;
}

/* ---------------------------------------------------------------- lines */

static int shell_help(const struct list *words)
{
    if (words->n > 1) {
        const struct typed *const t = typed_named(words->at[1]);
        const struct command *const c = command_named(words->at[1]);
        if (!t || !c)
            return fail("'%s' is not known here; help lists what is",
                        words->at[1]);
        if (t->filter)
            puts("In the shell FILTER is left out.\n");
        help_command(c, NULL);
        return YES;
    }
    for (size_t i = 0; i < NTYPED; i++)
        if (fits(&typed[i]))
            printf("  %-8s %s\n", typed[i].name, typed_summary(&typed[i]));
    puts("\nWords are parted by blanks: 'one key', \"it's one\" or one\\ key. "
         "Every change\nis on disk before the next prompt. More about a "
         "command: help COMMAND.");
    return YES;
}

static int unknown_line(const char *word)
{
    const char *const near = nearest_word(word, NTYPED, typed_word, NULL);
    if (near)
        return fail("unknown command '%s'; did you mean '%s'?", word, near);
    return fail("unknown command '%s'; help lists what is known here", word);
}

/* The status of a line, or -1 at the end. */
static int shell_line(const char *line, size_t n)
{
    struct list words;
    int status = YES;
    if (strlen(line) != n)
        return fail("it contains a NUL byte");
    const char *const wrong = words_split(line, &words);
    if (wrong) {
        words_free(&words);
        return fail("%s", wrong);
    }
    if (words.n && words.at[0][0] != '#') {
        const struct typed *const t = typed_named(words.at[0]);
        if (!t)
            status = unknown_line(words.at[0]);
        else if (strcmp(t->name, "quit") == 0)
            status = -1;
        else if (strcmp(t->name, "help") == 0)
            status = shell_help(&words);
        else {
            look_again(false);
            status = run_line(t, &words);
            look_again(true);
            /* Silence is an answer for scripts. */
            if (status == NO && t->needs & (BLY_CAN(HAS) | BLY_CAN(GET)) &&
                prompt_is_terminal())
                puts("none");
        }
    }
    words_free(&words);
    return status;
}

/* What Tab offers: what may be typed, and then as on the command line. */
static void shell_completes(FILE *to, const struct list *words)
{
    const struct typed *const t = typed_named(words->at[0]);
    if (words->n == 1) {
        for (size_t i = 0; i < NTYPED; i++)
            if (fits(&typed[i]) &&
                strncmp(typed[i].name, words->at[0], strlen(words->at[0])) == 0)
                fprintf(to, "%s\n", typed[i].name);
        return;
    }
    if (!t || !t->filter) {
        complete(to, words);
        return;
    }
    const char **const at = calloc(words->n + 1, sizeof *at);
    if (!at)
        return;
    const struct list line = { at, words->n + 1, 0 };
    at[0] = words->at[0];
    at[1] = shell.path;
    memcpy(at + 2, words->at + 1, (words->n - 1) * sizeof *at);
    complete(to, &line);
    free(at);
}

static int shell_run(struct list *operands)
{
    if (operands->n != 1)
        return operands->n
                   ? fail("one filter at a time, not '%s'", operands->at[1])
                   : fail("no filter is given; usage: bloomery shell FILTER; "
                          "bloomery build makes one");
    if (isatty(STDIN_FILENO) && !edit_open) {
        program_try("shell");
        note("lines cannot be edited: the program bloomery-shell, which needs "
             "libedit, is not installed");
    }
    /* An operand, wherever it is put. */
    char *path = NULL;
    if (asprintf(&path, "%s%s",
                 operands->at[0][0] == '-' && operands->at[0][1] ? "./" : "",
                 operands->at[0]) < 0)
        return fail("out of memory");
    const char *const slash = strrchr(path, '/');
    char text[128];
    snprintf(text, sizeof text, "%.100s> ",
             show_name(slash ? slash + 1 : path));
    if (!shell_begin(path)) {
        free(path);
        return TROUBLE;
    }
    prompt_open(text, shell_completes, shell.key_file != NULL);
    if (prompt_is_terminal())
        printf("bloomery %s. help lists the commands; quit or Ctrl-D ends.\n",
               bly_version());
    int status = YES, failed = 0;
    bool trouble = false;
    char where[32];
    for (;;) {
        size_t n;
        set_running("shell"); /* what says something may be anybody */
        const char *const line = prompt_line(&n, &failed);
        if (!line)
            break;
        if (!prompt_is_terminal()) {
            snprintf(where, sizeof where, "shell: line %zu", ++shell.line);
            set_running(where);
        }
        const int now = shell_line(line, n);
        fflush(stdout); /* somebody may be waiting for it behind a pipe */
        if (now < 0)
            break;
        /* A line that does nothing does not change what the last one said. */
        if (line[strspn(line, " \t")] && line[strspn(line, " \t")] != '#')
            status = now;
        trouble |= now == TROUBLE;
    }
    set_running("shell");
    if (failed)
        trouble = fail("standard input: %s", strerror(failed));
    if (prompt_is_terminal() && !failed)
        trouble = false, status = YES;
    prompt_close();
    free(path);
    return trouble ? TROUBLE : status;
}

static const struct opt shell_options[] = {
    { "key-file", 'K', OPT_TEXT, &shell.key_file, "FILE",
      "the secret of a keyed filter; lines are then not kept for later" },
    { 0 },
};

static const struct example shell_examples[] = {
    { "bloomery shell words.bly", "a prompt: has apple, add pear, info, quit" },
    { "printf 'add pear\\nhas pear\\n' | bloomery shell words.bly",
      "the same for a script" },
    { 0 },
};

const struct command cmd_shell = {
    .name = "shell",
    .usage = "[OPTION]... FILTER",
    .summary = "ask and change a filter at a prompt",
    .about =
        "Reads lines, each of them a command without \"bloomery\" and without "
        "the filter: has, add, info, note, plan and kinds, and remove, count, "
        "get and set if the kind of the filter can do that. They take the "
        "options "
        "that they take elsewhere. help lists them; quit, or Ctrl-D, ends. "
        "Words are parted by blanks, and quoted as in sh: 'one key'. What "
        "begins with # is a comment.\n\n"
        "Every line opens the file anew, and what it changes is written before "
        "the next prompt, just as by bloomery add: there is nothing to be "
        "saved, nothing that was reported gets lost with the shell, and other "
        "processes may use the filter meanwhile. For many keys, give several "
        "to one line, or a file with -f.\n\n"
        "On a terminal lines can be edited and completed (Tab) and brought "
        "back (arrow up, Ctrl-R), if libedit is installed; they are kept in "
        "~/.bloomery_history, or in the file that BLOOMERY_HISTORY names, or "
        "nowhere if it is empty. Ctrl-C gives up a line, or a command that "
        "runs.\n\n"
        "If standard input is not a terminal, its lines are a script: there is "
        "no "
        "prompt, a line that fails is named by its number, the rest is still "
        "run, and the exit status is 2 if a line failed and else that of the "
        "last.",
    .options = shell_options,
    .examples = shell_examples,
    .run = shell_run,
};

/*
 * prompt.c - lines from somebody at a terminal, or from a script
 *
 * libedit is loaded when it is needed, and only on a terminal that it can draw
 * on; without it lines are plain. Ctrl-C gives up the line, Ctrl-D ends.
 *
 * Lines are kept in ~/.bloomery_history, or in the file that BLOOMERY_HISTORY
 * names (nowhere if that is empty): appended one by one, so that nothing is
 * lost with a terminal, and two shells at once keep both. Only its owner may
 * read the file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/shell/prompt.h"
#include "apps/shell/prompt_edit.h"
#include "base/signals.h"
#include "io/files.h"
#include "report/say.h"

#define KEPT_LINES 1000 /* and no more than twice as many in the file */

static struct {
    const char *text;
    bool terminal, edits;
    char *history; /* NULL: none */
    char *line;    /* of getline() */
    size_t room;
} prompt;

/* Only so that a call that waits for a line returns. */
static void interrupted(int signal)
{
    (void)signal;
}

bool prompt_is_terminal(void)
{
    return prompt.terminal;
}

/* ---------------------------------------------------------------- history */

static char *history_path(void)
{
    const char *const given = getenv("BLOOMERY_HISTORY");
    const char *const home = getenv("HOME");
    char *path = NULL;
    if (given)
        return given[0] ? strdup(given) : NULL;
    if (!home || !home[0] || asprintf(&path, "%s/.bloomery_history", home) < 0)
        return NULL;
    return path;
}

static void history_append(const char *line)
{
    if (!prompt.history)
        return;
    const int fd =
        open(prompt.history,
             O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    FILE *const to = fd < 0 ? NULL : fdopen(fd, "a");
    if (!to) {
        warn("%s: %s; lines are not kept", prompt.history, strerror(errno));
        free(prompt.history);
        prompt.history = NULL;
        if (fd >= 0)
            close(fd);
        return;
    }
    fprintf(to, "%s\n", line);
    fclose(to);
}

/* What is written when the file is cut: its last lines, ended by NULL. */
static bly_status history_write(const void *what, bly_put *put, void *ctx)
{
    for (const char *const *line = what; *line; line++)
        if (!put(ctx, *line, strlen(*line)) || !put(ctx, "\n", 1))
            return BLY_EIO;
    return BLY_OK;
}

static void history_read(void)
{
    char *ring[KEPT_LINES + 1] = { 0 };
    char *line = NULL;
    size_t room = 0, n = 0;
    FILE *const from = fopen(prompt.history, "re");
    if (!from)
        return;
    for (ssize_t len; (len = getline(&line, &room, from)) > 0; n++) {
        line[len - (line[len - 1] == '\n')] = '\0';
        free(ring[n % KEPT_LINES]);
        ring[n % KEPT_LINES] = strdup(line);
    }
    fclose(from);
    free(line);
    const char *last[KEPT_LINES + 1] = { 0 };
    for (size_t i = 0, k = 0; i < KEPT_LINES; i++) {
        const char *const kept = ring[(n + i) % KEPT_LINES];
        if (!kept)
            continue;
        edit_remember(kept);
        last[k++] = kept;
    }
    if (n > 2 * KEPT_LINES)
        file_save(prompt.history, history_write, last);
    for (size_t i = 0; i < KEPT_LINES; i++)
        free(ring[i]);
}

/* ------------------------------------------------------------------ lines */

/* Keys are bytes of UTF-8, which libedit takes for such only where the locale
 * says so. */
static void set_characters(void)
{
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
}

void prompt_open(const char *text, prompt_completes *completes, bool private)
{
    const char *const term = getenv("TERM");
    prompt.text = text;
    prompt.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!prompt.terminal)
        return;
    signals_on(SIGINT, interrupted);
    if (!term || !term[0] || strcmp(term, "dumb") == 0)
        return;
    set_characters();
    prompt.edits = edit_open && edit_open(text, completes);
    prompt.history = private ? NULL : history_path();
    if (prompt.edits && prompt.history)
        history_read();
}

/* Wait for a line at a terminal. False: Ctrl-C came instead, which is let in
 * nowhere else, so that none is missed. */
static bool line_comes(void)
{
    sigset_t without, before;
    sigemptyset(&without);
    sigaddset(&without, SIGINT);
    sigprocmask(SIG_BLOCK, &without, &before);
    fputs(prompt.text, stdout);
    fflush(stdout);
    struct pollfd from = { .fd = STDIN_FILENO, .events = POLLIN };
    const bool comes = ppoll(&from, 1, NULL, &before) >= 0 || errno != EINTR;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return comes;
}

static char *plain_line(size_t *n, int *failed)
{
    const bool comes = !prompt.terminal || line_comes();
    errno = 0;
    const ssize_t len = comes ? getline(&prompt.line, &prompt.room, stdin) : -1;
    if (!comes || (len < 0 && errno == EINTR && prompt.terminal)) {
        clearerr(stdin);
        putchar('\n');
        *n = 0;
        if (!prompt.line && !(prompt.line = malloc(prompt.room = 1)))
            return NULL;
        prompt.line[0] = '\0';
        return prompt.line;
    }
    if (len < 0) {
        *failed = feof(stdin) ? 0 : errno ? errno : EIO;
        if (prompt.terminal)
            putchar('\n');
        return NULL;
    }
    *n = (size_t)len - (prompt.line[len - 1] == '\n');
    prompt.line[*n] = '\0';
    return prompt.line;
}

char *prompt_line(size_t *n, int *failed)
{
    *failed = 0;
    if (!prompt.edits)
        return plain_line(n, failed);
    char *const line = edit_line(n, failed);
    if (!line)
        putchar('\n');
    else if (line[strspn(line, " \t")]) {
        edit_remember(line);
        history_append(line);
    }
    return line;
}

void prompt_close(void)
{
    if (prompt.edits)
        edit_close();
    free(prompt.history);
    free(prompt.line);
    prompt.history = prompt.line = NULL;
    prompt.edits = false;
}

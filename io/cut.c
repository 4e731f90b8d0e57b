/*
 * cut.c - a mapped file that becomes shorter while it is read
 *
 * The system answers with SIGBUS where there were pages a moment ago, or where
 * the disk cannot be read. That is trouble like any other: one line, status 2.
 * The line is made beforehand, since little may be called in a handler.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "io/files.h"
#include "report/say.h"
#include "report/show.h"

static char cut_line[2048];

static void cut_seen(int number, siginfo_t *info, void *context)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    (void)context;
    /* Anything else is a mistake of ours: it happens again, and kills. */
    if (info->si_code != BUS_ADRERR) {
        signal(number, SIG_DFL);
        return;
    }
    /* Other threads meet the same end at the same time. */
    while (atomic_flag_test_and_set(&said))
        pause();
    (void)!write(STDERR_FILENO, cut_line, strlen(cut_line));
    _exit(TROUBLE);
}

void cut_watch(const char *a, const char *b)
{
    snprintf(cut_line, sizeof cut_line - 1,
             "bloomery: %s: %s%s%s was cut while it was queried, or its "
             "disk failed",
             running_command(), show_name(a), b ? " or " : "",
             b ? show_name(b) : "");
    strcat(cut_line, "\n");
    struct sigaction action = { .sa_sigaction = cut_seen,
                                .sa_flags = SA_SIGINFO };
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

/*
 * bench_lines.c - the command beside other commands, on the same lines
 *
 * Processor time (user and system) of whole processes, with one thread where
 * that can be said, the contenders taking turns: bloomery; DCSO's bloom, which
 * Debian packages as golang-github-dcso-bloom-cli; and grep -F -x -f, the exact
 * alternative that is always there. grep holds its list as an automaton of
 * hundreds of bytes per line, so it gets a list of a million at most.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workbench/bench.h"

extern char **environ;

#define LINE_BYTES 20
#define GREP_MOST 1000000

/* Files of the run, in a folder of its own that goes with it: nobody else's are
 * replaced, so they are written as they are. */
enum { PRESENT, ABSENT, LIST, TEXT, OURS, SIZED, THEIRS, NFILES };
static const char *const file_names[NFILES] = { "present", "absent", "list",
                                                "text",    "ours",   "sized",
                                                "theirs" };
static char folder[4096];
static char files[NFILES][sizeof folder + 16];

static bool lines_write(const char *path, uint64_t from, uint64_t n)
{
    FILE *const to = fopen(path, "w");
    char line[LINE_BYTES + 1];
    if (!to)
        return false;
    for (uint64_t i = from; i < from + n; i++) {
        snprintf(line, sizeof line, "user-id%012" PRIu64 "\n", i);
        fwrite(line, 1, LINE_BYTES, to);
    }
    const bool bad = ferror(to);
    return fclose(to) == 0 && !bad;
}

/* Run argv with input; its processor time and its peak. NULL, or why not. */
static const char *run_process(const char *const *argv, const char *input,
                               double *ns, uint64_t *peak)
{
    static char why[128];
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, input ? input : "/dev/null",
                                     O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    const int error = posix_spawnp(&child, argv[0], &actions, NULL,
                                   (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error) {
        if (error == ENOENT)
            snprintf(why, sizeof why, "%s is not there%s", argv[0],
                     strcmp(argv[0], "bloom") == 0
                         ? " (package golang-github-dcso-bloom-cli)"
                         : "");
        else
            snprintf(why, sizeof why, "%s: %s", argv[0], strerror(error));
        return why;
    }
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR)
            return "a process could not be waited for";
    /* 1 is "no", as grep says it. */
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
        snprintf(why, sizeof why, "%s failed (status %d)", argv[0], status);
        return why;
    }
    *ns =
        ((double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec) * 1e9 +
        ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) * 1e3;
    *peak = (uint64_t)usage.ru_maxrss * 1024;
    return NULL;
}

/* What is run. `before` is run first and not timed. */
#define MOST_WORDS 16
struct process {
    const char *who, *job;
    const char *argv[MOST_WORDS], *before[MOST_WORDS];
    const char *input;
    bool small; /* works on LIST and TEXT */
};

static void measure_processes(const struct process *jobs, size_t njobs,
                              uint64_t nlines, uint64_t nsmall,
                              unsigned nrounds, struct bench_lines *out)
{
    double ns[BENCH_MAX_COMMANDS][BENCH_MAX_ROUNDS];
    out->n = njobs;
    for (size_t i = 0; i < njobs; i++)
        out->at[i] =
            (struct bench_command){ .who = jobs[i].who,
                                    .job = jobs[i].job,
                                    .nlines = jobs[i].small ? nsmall : nlines };
    for (unsigned round = 0; round < nrounds; round++)
        for (size_t i = 0; i < njobs; i++) {
            struct bench_command *const c = &out->at[i];
            const char *why = NULL;
            uint64_t peak;
            if (c->why[0])
                continue;
            if (jobs[i].before[0])
                why = run_process(jobs[i].before, NULL, &ns[i][round], &peak);
            if (!why)
                why = run_process(jobs[i].argv, jobs[i].input, &ns[i][round],
                                  &peak);
            if (why)
                snprintf(c->why, sizeof c->why, "%s", why);
            else if (peak > c->peak)
                c->peak = peak;
            ns[i][round] /= (double)c->nlines;
        }
    for (size_t i = 0; i < njobs; i++)
        if (!out->at[i].why[0])
            out->at[i].ns = bench_figure_of(ns[i], nrounds);
}

static const char *make_folder(uint64_t nlines)
{
    const char *const base = getenv("TMPDIR");
    struct statvfs space;
    snprintf(folder, sizeof folder, "%s/bloomery-bench-XXXXXX",
             base && *base ? base : "/tmp");
    if (!mkdtemp(folder))
        return "no folder for temporary files";
    if (statvfs(folder, &space) == 0 &&
        (double)space.f_bavail * (double)space.f_frsize <
            4.0 * LINE_BYTES * (double)nlines) {
        rmdir(folder);
        return "no room for the lines among temporary files";
    }
    for (int i = 0; i < NFILES; i++)
        snprintf(files[i], sizeof files[i], "%s/%s", folder, file_names[i]);
    return NULL;
}

void bench_lines(uint64_t nlines, double fpr, unsigned nrounds,
                 struct bench_lines *out)
{
    char self[4096], items[32], rate[40];
    const ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *why = len < 0 ? "cannot find myself" : make_folder(nlines);
    const uint64_t nsmall = nlines < GREP_MOST ? nlines : GREP_MOST;
    *out = (struct bench_lines){ 0 };
    if (!why) {
        self[len] = '\0';
        snprintf(items, sizeof items, "%" PRIu64, nlines);
        snprintf(rate, sizeof rate, "%.17g", fpr);
        if (!lines_write(files[PRESENT], 0, nlines) ||
            !lines_write(files[ABSENT], nlines, nlines) ||
            !lines_write(files[LIST], 0, nsmall) ||
            !lines_write(files[TEXT], nlines, nsmall))
            why = "cannot write temporary files";
    }
    const char *const has[] = { "has", "--threads", "1" };
    const struct process jobs[] = {
        { "bloomery",
          "build",
          { self, "build", "--threads", "1", "-q", "-p", rate, "-o",
            files[OURS], files[PRESENT] },
          { 0 },
          NULL,
          false },
        { "bloomery",
          "build --items",
          { self, "build", "--threads", "1", "-q", "-p", rate, "--items", items,
            "-o", files[SIZED], files[PRESENT] },
          { 0 },
          NULL,
          false },
        { "DCSO bloom",
          "build",
          { "bloom", "insert", files[THEIRS] },
          { "bloom", "create", "-n", items, "-p", rate, files[THEIRS] },
          files[PRESENT],
          false },
        { "bloomery",
          "ask, present",
          { self, has[0], has[1], has[2], files[OURS] },
          { 0 },
          files[PRESENT],
          false },
        { "DCSO bloom",
          "ask, present",
          { "bloom", "check", files[THEIRS] },
          { 0 },
          files[PRESENT],
          false },
        { "bloomery",
          "ask, absent",
          { self, has[0], has[1], has[2], files[OURS] },
          { 0 },
          files[ABSENT],
          false },
        { "DCSO bloom",
          "ask, absent",
          { "bloom", "check", files[THEIRS] },
          { 0 },
          files[ABSENT],
          false },
        { "grep -Fxf",
          "list and ask, absent",
          { "grep", "-c", "-F", "-x", "-f", files[LIST], files[TEXT] },
          { 0 },
          NULL,
          true },
    };
    if (!why)
        measure_processes(jobs, sizeof jobs / sizeof jobs[0], nlines, nsmall,
                          nrounds, out);
    else
        snprintf(out->why, sizeof out->why, "%s", why);
    for (int i = 0; i < NFILES && files[i][0]; i++)
        unlink(files[i]);
    if (files[0][0])
        rmdir(folder);
}

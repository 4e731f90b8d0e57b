/*
 * ring_clerk.c - puts, gets and removes names on a ring, many for one process
 *
 *     build/tests/ring_clerk PATIENCE
 *
 * A history of 50,000 operations would start as many processes if each were a
 * command of its own. This one calls what `bloomery node put`, `get` and `rm`
 * call, again and again. A line of input is an operation, a line of output its
 * status and what was printed:
 *
 *     put 10.0.0.1:7000,10.0.0.2:7000 NAME VALUE      0
 *     get 10.0.0.1:7000 NAME                          0 VALUE
 *     rm 10.0.0.1:7000 NAME                           1 there is no file ...
 *
 * Every operation connects anew, as a command does.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/node/chord_files.h"
#include "report/say.h"

#define MOST_WORDS 4
#define MOST_MEMBERS 8

/* What the last operation has written to it, in one line; then it is empty. */
static void tell(int fd, FILE *to)
{
    char text[4096];
    const ssize_t n = pread(fd, text, sizeof text, 0);
    for (ssize_t i = 0; i < n; i++)
        fputc(text[i] == '\n' ? ' ' : text[i], to);
    if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
        abort();
}

int main(int argc, char **argv)
{
    static char line[1 << 16];
    const int value = memfd_create("value", 0);
    const int out = memfd_create("out", 0);
    FILE *const answers = fdopen(dup(STDOUT_FILENO), "w");
    char path[64];
    if (argc != 2 || value < 0 || out < 0 || !answers) {
        fprintf(stderr, "ring_clerk PATIENCE\n");
        return TROUBLE;
    }
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        return TROUBLE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", value);
    quiet = true;
    while (fgets(line, sizeof line, stdin)) {
        const char *words[MOST_WORDS] = { 0 }, *members[MOST_MEMBERS];
        struct node_args args = { .patience = strtoul(argv[1], NULL, 10) };
        size_t n = 0;
        char *rest = NULL;
        for (char *w = strtok_r(line, " \n", &rest); w && n < MOST_WORDS;
             w = strtok_r(NULL, " \n", &rest))
            words[n++] = w;
        if (n < 3)
            return TROUBLE;
        args.at.at = members;
        for (char *w = strtok_r((char *)(size_t)words[1], ",", &rest);
             w && args.at.n < MOST_MEMBERS; w = strtok_r(NULL, ",", &rest))
            members[args.at.n++] = w;
        struct list operands = { &words[2], 1, 0 };
        int status = TROUBLE;
        if (strcmp(words[0], "put") == 0 && n == 4) {
            const char *const from = path;
            const size_t nbytes = strlen(words[3]);
            operands.at = (const char *[]){ from };
            args.as = words[2];
            if (ftruncate(value, 0) ||
                pwrite(value, words[3], nbytes, 0) != (ssize_t)nbytes)
                return TROUBLE;
            status = ring_node_put(&args, &operands);
        } else if (strcmp(words[0], "get") == 0) {
            status = ring_node_get(&args, &operands);
        } else if (strcmp(words[0], "rm") == 0) {
            status = ring_node_rm(&args, &operands);
        }
        fflush(stdout);
        fflush(stderr);
        fprintf(answers, "%d ", status);
        tell(out, answers);
        fputc('\n', answers);
        fflush(answers);
    }
    return YES;
}

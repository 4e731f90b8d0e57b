/*
 * say.h - messages, progress, and the status that a program ends with
 */
#ifndef BLY_REPORT_SAY_H
#define BLY_REPORT_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit status as grep's. */
enum { YES = 0, NO = 1, TROUBLE = 2 };

/* Say on standard error, in one line, "bloomery: COMMAND: ...". fail() returns
 * TROUBLE, so that a command can end in `return fail("...", ...)`. */
__attribute__((format(printf, 1, 2))) int fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) void warn(const char *format, ...);

/* The same for a message that is neither an error nor a warning; not with
 * --quiet. */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

/* The command that runs, for the two above; NULL before it is known. */
void set_running(const char *command);
const char *running_command(void);

/* Print errors only: no reports, for people or programs, and no warnings. */
extern bool quiet;

/* An error that the system reported for a path. */
int fail_path(const char *path, int error);

/* Say what the library says of its last failure. */
int fail_library(void);

/* The same three for functions whose answer is a bool: they return false. */
__attribute__((format(printf, 1, 2))) bool refuse(const char *format, ...);
bool refuse_path(const char *path, int error);
bool refuse_library(void);

/* How far a long run has come: a line on standard error, rewritten now and then
 * once the work has lasted a second; nothing where standard error is no
 * terminal. progress_at() may be called from any one thread at a time. total 0:
 * not known. */
void progress_start(bool prints_to_stdout);
void progress_unit(const char *unit); /* what is counted, if not keys */
void progress_at(uint64_t nkeys, uint64_t done, uint64_t total);
void progress_clear(void);

/* The text of that line, less than `columns` wide: as much as fits. The result
 * is its width; 0 if nothing fits. */
#define PROGRESS_ROOM 192
struct progress {
    uint64_t n, done, total;
    double spent; /* seconds */
    const char *unit;
};
int progress_text(char out[PROGRESS_ROOM], int columns,
                  const struct progress *p);

#ifdef __clang_analyzer__ /* sees one file at a time */
#define fail(...) (fail(__VA_ARGS__), TROUBLE)
#define fail_path(path, error) (fail_path(path, error), TROUBLE)
#define fail_library() (fail_library(), TROUBLE)
#define refuse(...) (refuse(__VA_ARGS__), false)
#define refuse_path(path, error) (refuse_path(path, error), false)
#define refuse_library() (refuse_library(), false)
#endif

#endif

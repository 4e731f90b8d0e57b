/*
 * status.h - saying what went wrong, in one line
 */
#ifndef BLY_STATUS_H
#define BLY_STATUS_H

#include <bloomery.h>

/* Keep the line for bly_error() of this thread and return status, so that a
 * failing function can end in `return bly_fail(BLY_EINVAL, "...", ...)`. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
bly_status
bly_fail(bly_status status, const char *format, ...);

/* BLY_EINVAL: an argument that must not be NULL is; its name, "spec or out"
 * where it may be one of several. */
bly_status bly_fail_null(const char *argument);

/* Names with commas between, for a message that lists them; cut where they do
 * not fit. Begins with zeros. */
typedef struct bly_names {
    char text[400];
    size_t len;
} bly_names;

void bly_names_add(bly_names *list, const char *name);

#ifdef __clang_analyzer__ /* sees one file at a time: these are not BLY_OK */
#define bly_fail(status, ...) (bly_fail(status, __VA_ARGS__), (status))
#define bly_fail_null(argument) (bly_fail_null(argument), BLY_EINVAL)
#endif

#endif

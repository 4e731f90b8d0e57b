/*
 * late.h - libraries that are loaded when they are needed
 *
 * What fetches or serves over HTTP needs libraries that bring thirty others
 * along. Loading these takes five times as long as a question to a filter, so
 * they are not linked: a header of theirs declares the calls, and late_load()
 * finds them. late_curl.h and late_microhttpd.h list the calls that are used,
 * and let them be written as usual.
 */
#ifndef BLY_IO_LATE_H
#define BLY_IO_LATE_H

#include <stdbool.h>
#include <stddef.h>

/* Find n functions of a library; calls, one pointer each, gets them. False,
 * with the reason printed, if it is not here: `package` is what Debian calls
 * it. */
bool late_load(const char *library, const char *package,
               const char *const *names, size_t n, void *calls);

/* The same for a library that can be done without: nothing is printed. */
bool late_find(const char *library, const char *const *names, size_t n,
               void *calls);

/* A row of a list of calls as a member, and as a name. */
#define LATE_MEMBER(name) __typeof__(name) *late_##name;
#define LATE_NAME(name) #name,

#endif

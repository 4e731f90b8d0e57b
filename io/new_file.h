/*
 * new_file.h - a file that was not there before, whole or not at all
 */
#ifndef BLY_IO_NEW_FILE_H
#define BLY_IO_NEW_FILE_H

#include <sys/stat.h>

#include <bloomery.h>

enum file_made {
    FILE_MADE,
    FILE_TAKEN, /* something has that name; nothing was printed */
    FILE_FAILED /* the reason was printed */
};

/* Make a file of what write() puts, which may be called twice; where it returns
 * BLY_EREFUSED, it has printed the reason. path is relative to the open folder
 * `at`, or to the working folder (AT_FDCWD); `shown` is its name for messages.
 * The umask takes from mode as usual. The last part of path is never followed
 * if it is a link: then the name is taken. */
enum file_made file_make(int at, const char *path, const char *shown,
                         mode_t mode, bly_writes *write, const void *what);

/* Is it a path that leads to something below the folder where it begins: not
 * absolute, without "." and ".." and empty parts, and without NUL? */
bool path_stays_below(const char *path, size_t n);

/* The same for such a path from the open folder `root`, with the folders on the
 * way made. A link among them is refused, so that nothing is written outside,
 * whoever else may change that folder. If it fails, new folders
 * go again. */
enum file_made file_make_below(int root, const char *path, const char *shown,
                               mode_t mode, bly_writes *write,
                               const void *what);

/* Make a file of these bytes that only its owner can read; "-" is standard
 * output. False, after printing the reason: that the name is taken, or another.
 */
bool secret_make(const char *path, const char *text, size_t n);

#endif

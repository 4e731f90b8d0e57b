/*
 * files.h - files, whatever is in them: reading, replacing, waiting for the
 * lock, secrets
 */
#ifndef BLY_IO_FILES_H
#define BLY_IO_FILES_H

#include <bloomery.h>

/* From here on, a mapped file that is cut while it is read ends the command
 * with a line that names it (b NULL: there is one), not with a signal. */
void cut_watch(const char *a, const char *b);

/* A file in folder that has no name, and goes when it is closed. -1 with errno.
 */
int scratch_file(const char *folder);

/* At most nbytes from fd, fewer only at its end; negative: errno is set. */
int64_t read_all(int fd, void *buf, size_t nbytes);

/* Write something to path, "-" being standard output: YES, or TROUBLE with the
 * reason printed. */
int file_save(const char *path, bly_writes *write, const void *what);

/* The command's bly_wait: says after a second what it waits for, and gives up
 * after the seconds of --wait, which every command has that writes files. */
bool wait_for_lock(void *ctx, const char *path, uint64_t ms);
extern double wait_seconds; /* how long at most, --wait */

/* Read the secret in a key file: 16 raw bytes, or 32 hexadecimal digits and
 * perhaps the end of a line. NULL, with the reason printed, if it is anything
 * else. What comes back is wiped by secret_wipe(), and at exit. path NULL gives
 * NULL with *ok. */
const unsigned char *secret_read(const char *path, bool *ok);
void secret_wipe(void);

/* Likewise into the caller's memory, up to `most` bytes: 16, or as 64 digits 32
 * of them. The number; 0: the reason is printed. */
size_t secret_bytes(const char *path, unsigned char *out, size_t most);

/* Open a file with something secret in it. Negative, with the reason printed,
 * if that fails. *open_to_all: others may read it, which is worth a warning. */
int secret_open(const char *path, bool *open_to_all);

#endif

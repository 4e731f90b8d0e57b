/*
 * source.h - the bytes of one file, decompressed where it is compressed
 */
#ifndef BLY_IO_SOURCE_H
#define BLY_IO_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source;

/* What the bytes are for. */
enum source_use {
    SOURCE_LINES, /* unpacked; an archive, a database or a filter is an error */
    SOURCE_ANY,   /* unpacked, whatever they are */
    SOURCE_RAW    /* as they lie */
};

/* --binary: files with keys, documents or texts are read as they lie. */
extern bool binary_input;
static inline enum source_use source_lines(void)
{
    return binary_input ? SOURCE_RAW : SOURCE_LINES;
}

/* A file that changes while it is read is an error: for lists that guard
 * something, of which half of the old and half of the new is neither. A file
 * that is replaced by renaming is read to its end. */
extern bool steady_input;

/* Open a file, "-" being standard input. NULL with errno. stop_fd, unless -1,
 * ends a pipe or a terminal when it becomes readable. */
struct source *source_open(const char *name, int stop_fd, enum source_use use);

/* Before anything is read: give only nbytes of a plain file, from byte `from`
 * on. Behind its beginning, what they look like means nothing. False with
 * errno. */
bool source_part(struct source *s, uint64_t from, uint64_t nbytes);

/* Up to n bytes into buf: the number, 0 at the end, -1 when something is wrong
 * (source_error() says what). Does not wait for more than there is. */
ptrdiff_t source_read(struct source *s, void *buf, size_t n);
const char *source_error(const struct source *s);

/* Whether it is wrong because the bytes are not a list of lines. */
bool source_other(const struct source *s);

/* Whether that was the system's failure, and the file may be good. */
bool source_broken(const struct source *s);

/* Leave n bytes out. False where there are not as many, though a file that can
 * be sought in may say so only when it is read on. */
bool source_skip(struct source *s, uint64_t n);

/* Bytes of the file itself that were read so far. */
uint64_t source_done(const struct source *s);

/* Whether it is a pipe or a terminal, which may have more only later. */
bool source_waits(const struct source *s);

void source_close(struct source *s);

/* The first bytes of a regular file, up to n: how many. None of anything else:
 * who opens a pipe to look into it takes its bytes from the next reader. */
size_t source_peek(const char *name, enum source_use use, void *buf, size_t n);

#endif

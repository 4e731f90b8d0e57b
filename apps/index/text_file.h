/*
 * text_file.h - the text in a file, read from its beginning or from the middle
 *
 * A file may be plain or compressed. What is compressed can be entered where
 * its decoder starts afresh: at the members of gzip, the frames of zstd (which
 * includes the seekable format), the blocks of xz and of bzip2, and in gzip at
 * access points, which keep the 32 KiB of text that the decoder looks back to,
 * as zran of zlib does. Reading finds these entries; whoever keeps them can
 * come back.
 */
#ifndef BLY_INDEX_TEXT_FILE_H
#define BLY_INDEX_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum text_entry_kind {
    ENTRY_MEMBER, /* a member, a frame, or the beginning of the file */
    ENTRY_POINT,  /* inside a member of gzip */
    ENTRY_XZ,     /* a block of xz; bits has the check of its stream */
    ENTRY_BZIP2,  /* a block of bzip2; packed counts bits */
    ENTRY_KINDS
};

struct text_entry {
    unsigned kind;               /* enum text_entry_kind */
    unsigned bits;               /* of the byte before, that belong to it */
    uint64_t packed;             /* bytes into the file; of bzip2, bits */
    uint64_t more;               /* 0 */
    uint64_t text;               /* bytes of text before it */
    const unsigned char *window; /* of a point: text before it, by zstd */
    size_t nwindow;
};

struct text_file;

/* Open a file; NULL with errno. points: so many bytes of text lie between
 * access points, 0 for none. */
struct text_file *text_file_open(const char *name, uint64_t points);
void text_file_close(struct text_file *t);

/* Up to n bytes of text; 0 at the end, -1 with text_file_error(). */
ptrdiff_t text_file_read(struct text_file *t, void *buf, size_t n);
const char *text_file_error(const struct text_file *t);

/* Go to byte `at` of the text, through an entry before it (NULL: the beginning
 * of the file), or onwards from here if that is nearer. False with
 * text_file_error(). */
bool text_file_go(struct text_file *t, const struct text_entry *e, uint64_t at);

/* What the file was when it was opened, and is now. */
const struct stat *text_file_stat(const struct text_file *t);
bool text_file_unchanged(const struct text_file *t);

/* "gzip"; NULL: it is not compressed. Known once something was read. */
const char *text_file_packing(const struct text_file *t);

uint64_t text_file_done(const struct text_file *t); /* bytes of the file read */

/* The last entry that was found at or before byte `at` of the text; asked with
 * rising `at`. It stays until the next call. NULL: the file is plain. */
const struct text_entry *text_file_entry_before(struct text_file *t,
                                                uint64_t at);

#endif

/*
 * input.h - files as a stream of blocks of whole lines
 *
 * Keys and documents are read alike. Every line in a block of keys is ended by
 * the separator, the last one of a file too, so that cutting a block needs
 * no special case.
 *
 *     block   o r a n g e \n a p p l e \n \n p e a r \n
 *             key 0         key 1       2  key 3
 *
 * Documents are lines, or whole files, that have numbers: files in the order
 * they were given, lines in theirs. Whoever reads the files again sees the same
 * numbers, and may leave blocks out. Their bytes are given as they are.
 */
#ifndef BLY_IO_INPUT_H
#define BLY_IO_INPUT_H

#include <stdatomic.h>

#include <bloomery.h>

#include "io/csv.h"

/* The form that keys take before they are hashed (normal.h); zero is as they
 * are. */
struct normal {
    bool fold;         /* case */
    bool trim;         /* white space at both ends */
    bool no_cr;        /* a carriage return at the end is cut off, and a byte
                          order mark that a file begins with is left out */
    bool grouped;      /* a group, a tab and a key; what has no tab is bad */
    bly_key_type type; /* BLY_KEYS_INT64 or UINT64: keys are integers, and what
                          is none is bad; any other: as they are */
    bool real;         /* keys are decimal numbers, and become doubles: eight
                          bytes, behind the group if there is one; what is none
                          is bad */
};

struct picker; /* which part of a line is the key: picker.h */

struct input_file {
    const char *name;
    uint64_t part_at, part_len; /* bytes of it that are read, whole lines of a
                                   plain file; no length: all */
    int spool;       /* a file without a name that has the bytes; -1: none */
    uint64_t first;  /* number of its first document, from 0 */
    uint64_t ndocs;  /* once it was read */
    uint64_t nbytes; /* likewise, decompressed */
    bool members;    /* of a WARC file: each record is a member of gzip */
    bool known;      /* it was read once: ndocs must come again */
    uint64_t nlines; /* handed out so far, where lines of keys are numbered */
    _Atomic bool enough; /* nobody wants more of it: for workers to set */
    size_t column;       /* of CSV, that has the keys */
    size_t group;        /* and that has their groups, where they have any */
    size_t nheader;      /* lines of its header */
    char error[160];     /* it ended too early, or could not be read at all */
};

/* A block belongs to its reader, which uses it again and again. Zero is empty.
 * Behind len bytes BLOCK_SLACK more can be read, though they mean nothing, so
 * that code may look at many bytes at a time and past the end. */
#define BLOCK_SLACK 64

struct block {
    char *at;
    size_t len;
    size_t room;                   /* what fits, besides the slack */
    uint64_t number;               /* of the block */
    const struct input_file *file; /* NULL: arguments are the keys */
    uint64_t first; /* document; its line is first - file->first + 1. Of keys
                       that are numbered: lines of the file before it */
    size_t nlines;  /* documents; not counted where the lines are keys */
    struct warc_block *warc; /* its records, where it has some */
    bool begins;             /* it is the first of its file */
    bool unended; /* and its last line had no newline, though it has now */
};

/* The least that max_line may be, and what it is if nothing is said. With its
 * shingles such a line takes a gigabyte at worst; a key longer than that is a
 * file without separators: 50 KB of zstd may be gigabytes of zeros. */
#define INPUT_LINE_LEAST ((uint64_t)256 * 1024)
#define INPUT_LINE_MOST ((uint64_t)128 << 20)

/* Where a block of documents began. */
struct input_mark {
    uint32_t file;
    uint64_t place; /* in the file, decompressed, or in its part */
    uint64_t first; /* document */
};

struct input {
    struct input_file *files;
    size_t nfiles;
    char separator;        /* that ends lines in blocks */
    bool documents;        /* lines are numbered and given as they are */
    bool whole;            /* and a file is one document */
    bool records;          /* or its records are, of WARC: warc.h */
    struct picker *picker; /* of keys; NULL: lines are keys */
    struct normal normal;  /* what keys become, those of arguments too */
    bool skip_bad;         /* lines without a key are left out */
    bool numbered;         /* blocks of keys have the number of their line */
    bool goes_on;          /* a file that cannot be read is told, sets trouble
                              and its error, and the next one follows */
    bool keep_header;      /* of the first file that has one */
    bool skip_other; /* a file that is not a list of lines is passed over */
    bool trouble;
    uint64_t max_line;      /* bytes of a line, or of a document */
    unsigned nthreads;      /* of ordered_run() */
    int stop_fd;            /* readable: end the input; -1: none */
    uint64_t nblocks;       /* handed out so far */
    uint64_t bytes_done;    /* read so far, before decompression */
    uint64_t bytes_all;     /* of all files; 0: not known */
    uint64_t ndocs, nbytes; /* documents read, and their bytes */
    _Atomic uint64_t nkeys; /* worked on: told by the pipeline, for progress */
    char error[512];        /* what went wrong, once something has */

    /* Lines that end in CR LF (ends.c): the first file that has them, which is
     * told once, and how many more. */
    _Atomic(const struct input_file *) cr_file;
    _Atomic unsigned long long ncr_more;
    bool cr_told, mark_told;

    /* The reader's own. */
    const char *const *keys; /* arguments; then there are no files */
    size_t nkeys_given;
    size_t file;              /* being read, or to be opened next */
    struct source *source;    /* the open one, or NULL */
    uint64_t place;           /* in it, where blocks are left out */
    bool begins;              /* nothing of it was handed out yet */
    struct csv_reader csv;    /* where it is, if it is CSV */
    struct block header;      /* as it stands in the file, if it is kept */
    struct block tail;        /* start of a line whose end was not read yet */
    struct input_mark *marks; /* where blocks of documents began */
    size_t nmarks, marks_room, mark;
    bool marked; /* they are all there */
    bool spools; /* what is read is kept as it is, to be read again */
};

/* The command that runs has --crlf, which cuts off CRs and leaves out byte
 * order marks: for messages. */
extern bool crlf_option;

/* The keys in n files, "-" being standard input. No files is standard input
 * too. nul: keys end at NUL bytes, not at newlines. names are borrowed. */
void input_files(struct input *in, const char *const *names, size_t n,
                 bool nul);

/* The names themselves as keys. Blocks of these have NUL as separator, since a
 * newline in an argument is part of the key. */
void input_keys(struct input *in, const char *const *names, size_t n);

/* The documents in n files, likewise. Set `whole` and the like afterwards. */
void input_documents(struct input *in, const char *const *names, size_t n);

/* Close and release what in holds, though not the blocks. */
void input_close(struct input *in);

/* The next block into b. False at the end and when something went wrong: then
 * in->error says what. One caller at a time. A line of more than max_line bytes
 * is wrong: a few bytes of zstd can be a line of any length. So is a file of
 * keys that ends too early, damaged gzip for instance. One of documents gives
 * its whole lines, has its error, and stops nothing, unless it cannot be read:
 * the next run may find all of it. */
bool input_next(struct input *in, struct block *b);

/* All keys in one thread, one after another, until `each` returns false. False
 * then, and with in->error. */
typedef bool input_key(void *ctx, bly_bytes key);
bool input_each(struct input *in, input_key *each, void *ctx);

/* Does in cut off carriage returns, and leave out byte order marks, at the ends
 * of lines and the beginnings of files? */
bool input_drops_ends(const struct input *in);

/* Show the first keys of a block, as they were picked; of the first block of a
 * file it is noted if all of them end in CR. Any thread. */
void input_look(struct input *in, const struct block *b, const bly_bytes *keys,
                size_t n);

/* Warn of what was noted, once for an input; and at its end of how many more
 * files are so. And of a byte order mark. One thread at a time. */
void input_tell_ends(struct input *in);
void input_tell_more(struct input *in);
void input_tell_mark(struct input *in, const struct input_file *f);

/* Read documents from the beginning again. */
void input_rewind(struct input *in);

/* The same as input_next() without the blocks that are not wanted; after all
 * were read once. A file that is not what it was is an error. */
typedef bool input_want(void *ctx, uint64_t first, uint64_t ndocs);
bool input_next_wanted(struct input *in, struct block *b, input_want *want,
                       void *ctx);

/* Copy what can be read only once, a pipe, into files without names in folder.
 * False with in->error. */
bool input_spool(struct input *in, const char *folder);

/* Writes in->error unless something is there, from any thread. Returns false.
 */
__attribute__((format(printf, 2, 3))) bool input_fail(struct input *in,
                                                      const char *format, ...);

/* The line at *at of a block of documents, without its newline and a carriage
 * return before that; *at moves behind it. False at the end of the block. In a
 * file that is one document, all of it. */
bool input_line(const struct input *in, const struct block *b, size_t *at,
                const char **line, size_t *len);

/* Where the document begins that input_line() would give there; the end of the
 * block, if it would give none. What lies between is no document. */
size_t input_line_begins(const struct input *in, const struct block *b,
                         size_t at);

/* What a file is called in messages; documents have ids that begin with its
 * name. */
const char *input_name(const struct input *in, const struct input_file *f);

/* Append n bytes to b, which grows. False if there is no memory. */
bool block_put(struct block *b, const void *bytes, size_t n);

/* Room for n bytes, a separator behind them, and the slack; what is there
 * stays, though it may move. False if there is no memory. */
bool block_fit(struct block *b, size_t n);
void block_free(struct block *b);

/* May a block that grows by doubling, or an array like it, go on from n bytes?
 * Up to a quarter of the memory: where the system promises more than it has, it
 * ends a process instead of refusing. */
bool memory_spares(uint64_t n);

#endif

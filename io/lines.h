/*
 * lines.h - documents of files, a block at a time, by several threads, in order
 *
 * Every document has a number: files in the order they were given, lines in
 * theirs. Whoever reads the files again sees the same numbers.
 */
#ifndef BLY_LINES_H
#define BLY_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where bytes come from: io/source.h, for instance. */
struct lines_ops {
    void *(*open)(const char *name); /* NULL with errno */
    ptrdiff_t (*read)(void *source, void *buf, size_t n);
    bool (*skip)(void *source, uint64_t n); /* n bytes that are there */
    const char *(*error)(const void *source);
    bool (*broken)(const void *source);   /* the disk's error, or memory's */
    uint64_t (*done)(const void *source); /* bytes of the file itself */
    void (*close)(void *source);
};

struct lines_file {
    const char *name; /* for people */
    char *path;       /* what is opened */
    int spool;        /* a file without a name that has the bytes; -1: none */
    uint64_t first;   /* number of its first document, from 0 */
    uint64_t ndocs;   /* once it was read */
    uint64_t nbytes;  /* likewise, decompressed */
    bool known;       /* it was read once: ndocs must come again */
    char error[160];  /* it ended too early: what was wrong */
};

/* Whole lines of one file, in a buffer that belongs to a worker. LINES_SLACK
 * bytes behind len may be read. */
#define LINES_SLACK 64
struct lines_block {
    struct lines_file *file;
    uint64_t number; /* of the block */
    uint64_t first;  /* document; its line is first - file->first + 1 */
    size_t nlines;
    char *at;
    size_t len, room;
};

/* Where a block began when all were read. */
struct lines_mark {
    uint32_t file;
    uint64_t place; /* in the file, decompressed */
    uint64_t first; /* document */
};

/* The least that max_line may be, and what it is if nothing is said: with its
 * shingles such a line takes a gigabyte at worst. */
#define LINES_MAX_LEAST ((uint64_t)256 * 1024)
#define LINES_MAX_DEFAULT ((uint64_t)128 << 20)

struct lines {
    const struct lines_ops *ops;
    struct lines_file *files;
    size_t nfiles;
    bool whole; /* a file is one document */
    unsigned nthreads;
    uint64_t max_line; /* bytes of a line, or of a document; see lines_run() */
    void (*progress)(uint64_t ndocs, uint64_t done, uint64_t total);
    uint64_t bytes_all;     /* of all files as they lie; 0: not known */
    uint64_t ndocs, nbytes; /* that were read, in the last run */
    struct lines_mark *marks;
    size_t nmarks, marks_room;
    bool marked;     /* they are all there */
    char error[512]; /* what stopped a run */
};

/* names are borrowed. False without memory. */
bool lines_init(struct lines *in, const struct lines_ops *ops,
                const char *const *names, size_t n);
void lines_free(struct lines *in);

/* Copy what can be read only once into files without names in folder. False
 * with in->error. */
bool lines_spool(struct lines *in, const char *folder);

/* A worker's number is below this: there is one for each thread, and one for
 * long lines, which are worked on one at a time. */
static inline unsigned lines_workers(const struct lines *in)
{
    return in->nthreads + 1;
}

/* What a worker does with a block. work is called by several threads at once,
 * turn in the order of the blocks. False stops the run, with in->error. */
typedef bool lines_fn(void *ctx, unsigned worker, struct lines_block *b);

/* Read all files from their beginnings. A line of more than max_line bytes ends
 * the run: a few bytes of zstd can be a line of any length. A file that ends
 * too early, damaged gzip for instance, gives its whole lines, has its error,
 * and stops nothing. One that cannot be read ends the run: the next one may
 * find all of it. So does an error where there is no document at all. */
bool lines_run(struct lines *in, lines_fn *work, lines_fn *turn, void *ctx);

/* The same, without blocks that are not wanted; after a run that read all. A
 * file that is not what it was ends the run. */
typedef bool lines_want(void *ctx, uint64_t first, uint64_t ndocs);
bool lines_run_some(struct lines *in, lines_want *want, lines_fn *work,
                    lines_fn *turn, void *ctx);

/* Stop a run: writes in->error unless something is there. Returns false. */
__attribute__((format(printf, 2, 3))) bool lines_fail(struct lines *in,
                                                      const char *format, ...);

bool lines_has_failed(struct lines *in);

/* The line at *at, without its newline and a carriage return before that; *at
 * moves behind it. False at the end of the block. In a file that is one
 * document, all of it. */
bool lines_next(const struct lines *in, const struct lines_block *b, size_t *at,
                const char **line, size_t *len);

#endif

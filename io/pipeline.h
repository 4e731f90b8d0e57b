/*
 * pipeline.h - keys from input to output, by several threads, in order
 *
 * How a file becomes keys, and answers:
 *
 *     source.h     a file, or standard input, as bytes; unpack.h undoes gzip,
 *                  zstd, xz and bzip2, and anything but a list is refused
 *     input.h      the bytes of many files as blocks of whole lines
 *     ordered.h    blocks to workers, one for each thread, and what they made
 *                  of them back into the order of the input
 *     cutter.h     a block into lines, 64 bytes at a time
 *     picker.h     a line into its key, where that is a part of it: a field, a
 *                  column; normal.h brings keys into one form
 *     values.h     a line into a key and its value, where there are values
 *     pipeline.h   keys into hashes, batches of them to the command, and the
 *                  lines of those it picked, or the text it made, to standard
 *                  output
 *
 * has, add, build and all others that take keys run pipeline_run() with a job,
 * which is mainly a function for batches. keys.h gets both the keys and the
 * filter from a command line. Commands that need no hashes begin further up:
 * dedup hands its functions for blocks to ordered_run(), digest reads block
 * after block by input_next().
 *
 * Memory is a block for each worker, whatever the size of the input. Whoever
 * writes or counts does so in a block's turn, so that the output is the same
 * for any number of threads. What is wrong is told once, with the file and,
 * where it has one, the line.
 */
#ifndef BLY_IO_PIPELINE_H
#define BLY_IO_PIPELINE_H

#include "io/ordered.h"

/* Keys that are worked on at once: enough to overlap their cache misses, few
 * enough that keys, hashes and text stay in the first-level cache. */
#define BATCH 512

/* Where they are decided on one after another, many can be hashed before it is
 * their turn: as many as 20 bytes each make a block. */
#define BATCH_IN_ORDER 16384

/* Some keys of a block, in their order. */
struct batch {
    const bly_bytes *keys;   /* borrowed for the call */
    const bly_bytes *lines;  /* the line of each key, a separator behind it; the
                                keys themselves where these are whole lines */
    const uint32_t *numbers; /* how many lines of the block stand before that of
                                each key; NULL: as many as keys, `first` before
                                the batch */
    uint64_t first;
    const struct block *block; /* that they are from */
    const uint64_t *hashes;    /* NULL where the job has no hasher */
    const uint64_t *values;    /* NULL where the job's keys have none */
    size_t n;                  /* BATCH at most, unless in order */
    uint64_t *picked;          /* a zeroed bitmap, for the command to set */
    struct block *text; /* for the command to append to, if job->writes */
    const char *why;    /* it failed, for the command to set; NULL: as
                           bly_error() says */
};

/* Pick those that are not picked, and no others. */
void batch_invert(struct batch *b);

/* What a command does with keys. The fields up to ctx are the command's. */
struct job {
    const bly_hasher *hasher;
    bool unhashed; /* ask_run() gives it none: batch() wants the keys alone */

    /* Work on some keys. Called by several threads at once. */
    bly_status (*batch)(struct job *job, struct batch *b);

    /* Unless NULL: called for every batch of a block before batch() is called
     * for the first of them, so that questions can go out before the answers
     * are waited for. What it picks does not count. */
    bly_status (*ahead)(struct job *job, struct batch *b);

    /* Keys are hashed by all threads, but batch() is called in the order of the
     * input, never by two threads at once, and a batch may be as long as
     * BATCH_IN_ORDER. What it picks before it fails is printed. written(),
     * unless NULL, is called when what it picked of a block is out, or, with
     * false, when that failed. */
    bool in_order;
    void (*written)(struct job *job, bool ok);

    bool prints;       /* write the lines of picked keys to standard output */
    bool writes;       /* or the text that batch() makes of them */
    bool clean;        /* which is fit for a terminal as it is */
    bool first_only;   /* stop at the first picked key */
    bool goes_on;      /* lines without a key are told, and `trouble` set; not:
                          they are told, and the run fails at its end */
    bool valued;       /* a line is a key, a delimiter and a value; a wrong one
                          stops it all, and the error names file and line */
    char delimiter;    /* where valued */
    char terminator;   /* what ends a printed key */
    unsigned nthreads; /* see thread_count() */
    const char *path;  /* named where batch() fails; NULL: nothing is */
    void *ctx;

    uint64_t nkeys;   /* results: keys worked on */
    uint64_t npicked; /* and how many of them were picked */
    uint64_t nbad;    /* lines that have no key */
    bool trouble;     /* the run is good, but the status must be TROUBLE */
    char error[512];  /* what went wrong, where pipeline_run() is not BLY_OK */
};

/* Run all of in through job. Output is the same for any number of threads. One
 * thread means: no other is made. */
bly_status pipeline_run(struct job *job, struct input *in);

#endif

/*
 * input.h - keys, a block of whole lines at a time
 *
 * Files (or keys given as arguments) become a stream of blocks. Every key in a
 * block is ended by the separator, the last one of a file too, so that who
 * cuts a block needs no special case.
 *
 *     block   o r a n g e \n a p p l e \n \n p e a r \n
 *             key 0         key 1       2  key 3
 */
#ifndef BLY_INPUT_H
#define BLY_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block belongs to whoever reads into it, again and again. Zero is empty.
 * Behind len bytes BLOCK_SLACK more can be read, though they mean nothing, so
 * that who looks at many bytes at a time may look past the end. */
#define BLOCK_SLACK 64

struct block {
    char *at;
    size_t len;
    size_t room; /* what fits, besides the slack */
};

struct input {
    char separator;      /* that ends keys in blocks */
    uint64_t nblocks;    /* handed out so far */
    uint64_t bytes_done; /* read so far, before decompression */
    uint64_t bytes_all;  /* of all files; 0: not known */
    char error[512];     /* what went wrong, once something has */
    int stop_fd;         /* readable: end the input; -1: none */

    const char *const *names;
    size_t nnames;
    size_t next;           /* the name to open next */
    struct source *source; /* the open one, or NULL */
    char *tail;            /* start of a line whose end was not read yet */
    size_t ntail, tail_room;
    bool are_keys; /* names are not files but keys */
};

/* The keys in n files, "-" being standard input. No files is standard input
 * too. nul: keys end at NUL bytes, not at newlines. names are borrowed. */
void input_files(struct input *in, const char *const *names, size_t n,
                 bool nul);

/* The names themselves as keys. Blocks of these have NUL as separator, since a
 * newline in an argument is part of the key. */
void input_keys(struct input *in, const char *const *names, size_t n);

/* The next block into b. False at the end and when something went wrong: then
 * in->error says what. One caller at a time. */
bool input_next(struct input *in, struct block *b);

/* Close and release what in holds, though not the blocks. */
void input_close(struct input *in);
void block_free(struct block *b);

/* Append n bytes to b, which grows. False if there is no memory. */
bool block_put(struct block *b, const void *bytes, size_t n);

#endif

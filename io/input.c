/*
 * input.c - keys, a block of whole lines at a time
 *
 * A block is what one read() gave, behind the start of a line that the read
 * before it cut in two, up to the last separator in it; the rest is kept as the
 * tail for the next block. So a pipe is answered line by line while it trickles
 * and a block at a time while it flows, and every byte of a line that is cut is
 * copied twice, no other byte at all.
 *
 *     tail | read() ..................... \n ......
 *     `------------- block ------------------'`-- the next tail
 *
 * Where a read brings no separator, the block doubles and more is read into
 * it: a line may have any length up to KEY_MAX.
 */
#define _GNU_SOURCE /* memrchr */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/input.h"
#include "io/source.h"

/* What is read at a time. A block is read, cut, hashed and written by one
 * thread, so it should still be in that core's cache at the end. */
#define BLOCK_BYTES ((size_t)256 * 1024)

/* Blocks that one long line made larger than this shrink again. */
#define BLOCK_KEEP (16 * BLOCK_BYTES)

/* A key longer than this is a file without separators, not a key: 50 KB of zstd
 * may be gigabytes of zeros. */
#define KEY_MAX ((size_t)128 << 20)

static void input_fail(struct input *in, const char *name, const char *what)
{
    snprintf(in->error, sizeof in->error, "%s: %s",
             strcmp(name, "-") == 0 ? "standard input" : name, what);
}

void input_files(struct input *in, const char *const *names, size_t n, bool nul)
{
    static const char *const standard_input[] = { "-" };
    *in = (struct input){ .names = n ? names : standard_input,
                          .nnames = n ? n : 1,
                          .separator = nul ? '\0' : '\n',
                          .stop_fd = -1 };
    for (size_t i = 0; i < in->nnames; i++) {
        struct stat st;
        const int rc = strcmp(in->names[i], "-") == 0 ? fstat(STDIN_FILENO, &st)
                                                      : stat(in->names[i], &st);
        if (rc < 0 || !S_ISREG(st.st_mode)) {
            in->bytes_all = 0;
            break;
        }
        in->bytes_all += (uint64_t)st.st_size;
    }
}

void input_keys(struct input *in, const char *const *names, size_t n)
{
    *in = (struct input){ .names = names,
                          .nnames = n,
                          .separator = '\0',
                          .stop_fd = -1,
                          .are_keys = true };
}

void input_close(struct input *in)
{
    source_close(in->source);
    free(in->tail);
    in->source = NULL;
    in->tail = NULL;
}

void block_free(struct block *b)
{
    free(b->at);
    *b = (struct block){ 0 };
}

bool block_put(struct block *b, const void *bytes, size_t n)
{
    if (b->room - b->len < n) {
        const size_t room = (b->len + n) * 2;
        char *const more = realloc(b->at, room + BLOCK_SLACK);
        if (!more)
            return false;
        b->at = more;
        b->room = room;
    }
    if (n)
        memcpy(b->at + b->len, bytes, n);
    b->len += n;
    return true;
}

/* Make *at hold want bytes and the slack, keeping what is in it. */
static bool resize(struct input *in, char **at, size_t *room, size_t want)
{
    char *const more = realloc(*at, want + BLOCK_SLACK);
    if (!more) {
        snprintf(in->error, sizeof in->error, "out of memory");
        return false;
    }
    *at = more;
    *room = want;
    return true;
}

/* All keys of the command line as one block: the system limits them. */
static bool next_of_keys(struct input *in, struct block *b)
{
    if (in->next == in->nnames)
        return false;
    size_t need = 0;
    for (size_t i = 0; i < in->nnames; i++)
        need += strlen(in->names[i]) + 1;
    if (b->room < need && !resize(in, &b->at, &b->room, need))
        return false;
    b->len = 0;
    for (; in->next < in->nnames; in->next++) {
        const size_t n = strlen(in->names[in->next]) + 1;
        memcpy(b->at + b->len, in->names[in->next], n);
        b->len += n;
    }
    in->nblocks++;
    return true;
}

/* Bytes into the block behind what it has: the number, 0 at the end of the last
 * file, -1 for an error. *file_ended: a file ended there. */
static ptrdiff_t fill(struct input *in, struct block *b, bool *file_ended)
{
    *file_ended = false;
    if (!in->source) {
        if (in->next == in->nnames)
            return 0;
        const char *const name = in->names[in->next];
        in->source = source_open(name, in->stop_fd, source_lines());
        if (!in->source) {
            input_fail(in, name, strerror(errno));
            return -1;
        }
        in->next++;
    }
    const uint64_t before = source_done(in->source);
    /* One byte stays free for the separator that a last line may lack. */
    const ptrdiff_t got =
        source_read(in->source, b->at + b->len, b->room - b->len - 1);
    in->bytes_done += source_done(in->source) - before;
    if (got < 0) {
        input_fail(in, in->names[in->next - 1], source_error(in->source));
        return -1;
    }
    if (got == 0) {
        source_close(in->source);
        in->source = NULL;
        *file_ended = true;
    }
    return got;
}

bool input_next(struct input *in, struct block *b)
{
    if (in->error[0])
        return false;
    if (in->are_keys)
        return next_of_keys(in, b);

    const size_t start = in->ntail + BLOCK_BYTES + 1;
    if ((b->room < start || b->room > BLOCK_KEEP + in->ntail) &&
        !resize(in, &b->at, &b->room, start))
        return false;
    if (in->ntail)
        memcpy(b->at, in->tail, in->ntail);
    b->len = in->ntail;
    in->ntail = 0;

    for (;;) {
        if (b->len > KEY_MAX) {
            input_fail(in, in->names[in->next - 1],
                       "a key of more than 128 MiB; is the separator right?");
            return false;
        }
        if (b->room - b->len < BLOCK_BYTES / 2 &&
            !resize(in, &b->at, &b->room, b->room * 2))
            return false;
        bool file_ended;
        const ptrdiff_t got = fill(in, b, &file_ended);
        if (got < 0)
            return false;
        if (got > 0) {
            const char *const cut =
                memrchr(b->at + b->len, in->separator, (size_t)got);
            b->len += (size_t)got;
            if (!cut)
                continue;
            const size_t whole = (size_t)(cut - b->at) + 1;
            const size_t rest = b->len - whole;
            if (in->tail_room < rest &&
                !resize(in, &in->tail, &in->tail_room, rest))
                return false;
            if (rest)
                memcpy(in->tail, cut + 1, rest);
            in->ntail = rest;
            b->len = whole;
            break;
        }
        if (b->len) { /* a last line without its separator */
            b->at[b->len++] = in->separator;
            break;
        }
        if (!file_ended)
            return false;
    }
    in->nblocks++;
    return true;
}

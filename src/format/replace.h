/*
 * replace.h - a new version in the place of a file, whole or not at all
 *
 * Knows no filter: whoever replaces a file brings a function that writes the
 * new bytes. The protocol is in replace.c.
 */
#ifndef BLY_REPLACE_H
#define BLY_REPLACE_H

#include <limits.h>
#include <sys/stat.h>

#include <bloomery.h>

typedef struct bly_target {
    const char *name;    /* as the caller calls it, for messages */
    char path[PATH_MAX]; /* with symbolic links followed */
    int lock;            /* the old file, open and locked; -1: there is none */
    int no_lock;         /* errno, where its file system cannot lock */
    struct stat old;     /* where there is a lock */
    bool special;        /* a pipe or a device: written, not replaced */
    bly_wait *wait;      /* for the lock; NULL: as long as it takes */
    void *wait_ctx;
    uint64_t since;           /* when waiting began, in ms; 0: not yet */
    int fd;                   /* the draft, or what is special; -1: not begun */
    int dir;                  /* its folder */
    char draft[NAME_MAX + 1]; /* its name there; "": it has none */
    bool only_new;            /* BLY_EBUSY if a file has come into being */
    bool no_link;             /* a link at path is an error */
    const bly_swap *swap;     /* NULL: whatever is there is replaced */
    bool placed;              /* the draft has the target's name */
} bly_target;

/* Find what `path` names and, where that is a file, wait for its lock. Pairs
 * with bly_target_close(), also when it fails. */
bly_status bly_target_open(const char *path, bly_wait *wait, void *wait_ctx,
                           bly_target *t);

/* The same for a path whose last part must not be a link, nor anything else but
 * a file. */
bly_status bly_target_open_file(const char *path, bly_wait *wait,
                                void *wait_ctx, bly_target *t);

/* Begin a new version: what is written to t->fd from here on is it. */
bly_status bly_target_begin(bly_target *t);

/* Put what was written in the place of the target. */
bly_status bly_target_commit(bly_target *t);

/* Begin, let fill() write, and commit. */
typedef bly_status bly_fill(void *ctx, const char *name, int fd);
bly_status bly_target_replace(bly_target *t, bly_fill *fill, void *ctx);

/* Get ready for another version, without letting another writer in between:
 * what was committed is the old file now, and anything else is dropped. */
void bly_target_next(bly_target *t);

/* Drop what was begun and not committed, and let the next writer in. */
void bly_target_close(bly_target *t);

/* Give the file `to`, which nobody else can open yet, what `from` has: extended
 * attributes, owner and group where the caller may set them, the access control
 * list, permission bits. Where an attribute or the list cannot be kept, fails
 * and says which; `to` is then good for nothing. name is for messages. */
bly_status bly_attributes_keep(const char *name, int from, int to);

/* A new file in a folder, to read and to write, that has no name; -1: errno is
 * set. */
int bly_scratch_open(const char *folder);

/* open(), closed on exec; -1: errno is set. These three go on when a signal
 * interrupts them. */
int bly_fd_open(const char *path, int flags);

/* All n bytes; 0 or an errno. */
int bly_fd_write(int fd, const void *bytes, size_t n);

/* At most n bytes, fewer only at the end; negative: errno is set. */
int64_t bly_fd_read(int fd, void *buf, size_t n);

/* The failure of a system call on a file: "NAME: cannot be DONE: why (what
 * would be right)". */
bly_status bly_io_fail(const char *name, const char *done, int err);

#endif

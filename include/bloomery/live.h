/*
 * bloomery/live.h - one filter, many processes
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too. A live filter is in a file, on disk or in /dev/shm, that any number of
 * processes map. What one of them adds, all others find at once:
 *
 *     bly_filter *f;
 *     bly_spec spec = { .items = 10000000, .fpr = 0.001 };
 *     if (bly_share("/dev/shm/seen.bly", &spec, NULL, &f))
 *         errx(2, "%s", bly_error());
 *     if (bly_add(f, token, ntoken))
 *         errx(2, "%s", bly_error());
 *
 * The first process makes the file, the others find it. Threads may share f as
 * well, and a child that was forked may go on using it. Nobody takes a lock to
 * add or to ask: additions are atomic operations on memory.
 *
 * Crashes. A key is in the filter once bly_add() has returned, whatever happens
 * to the process that added it: the memory belongs to the kernel. No lock stays
 * behind, since there is none.
 *
 * Power cuts. The kernel writes the memory to disk when it likes, and at a
 * bly_checkpoint() at the latest. After a power cut, the file holds at least
 * what it held at the last checkpoint, for keys are only ever added to it in
 * between; bly_live_of() then says `unclean`, until somebody calls
 * bly_live_accept(). Whatever was checkpointed never gets a wrong "no". A file
 * in /dev/shm is gone, of course.
 *
 * Which kinds. Those with the ability SHARE that need no memory but their own:
 * blocked, classic in all layouts, countmin with plain update, and relatives.
 * Others fail with BLY_ENOTSUP and the reason.
 *
 * What others can do to it. A program that truncates the file takes memory away
 * that is in use: the next access is a SIGBUS. See bly_live_rescue(). A program
 * that overwrites it can change answers, but not cause a crash. bly_save() to
 * its path puts another file in its place, as any rename does: those who have
 * it open are told so by their next bly_checkpoint(). bly_open(), bly_map() and
 * bly_update() refuse a live filter with BLY_EBUSY.
 *
 * Where. On a file system that all processes see as one memory: not on NFS,
 * SMB and other network file systems (BLY_ENOTSUP). The room on disk is
 * reserved before the first key is added. Where a file system writes elsewhere
 * when it overwrites (btrfs, ZFS), a disk that is full may still end a process
 * with SIGBUS. Live filters need open file description locks, which Linux
 * has.
 */
#ifndef BLOOMERY_LIVE_H
#define BLOOMERY_LIVE_H

#include <bloomery.h>

BLY_BEGIN_DECLS

/* Open the live filter in path, or make one of spec, with one generation and no
 * keys, if there is no file. A spec that differs from what is there in kind,
 * shape, hash or type of keys is BLY_EUNFIT; NULL takes whatever is there, and
 * fails with BLY_EIO if nothing is. Of *how, secret, blind, max_bytes, mem and
 * `reading` count; the secret may also be in spec. The new file gets what the
 * umask gives. f belongs to the caller, who releases it with bly_free().
 *
 * BLY_EUNFIT for a file with another filter that is not live (bly_live_make()).
 * BLY_EIO without the right to write: how->reading needs only that to read.
 * BLY_ERANGE if a process of 32 bits cannot address it. BLY_EFULL if
 * BLY_LIVE_USERS_MOST processes have it open.
 *
 * What needs a filter alone fails with BLY_ENOTSUP on a live one: merging into
 * it, deltas, metadata. Do that to a bly_clone(), which is an ordinary
 * filter. */
static inline bly_status bly_share(const char *path, const bly_spec *spec,
                                   const bly_access *how, bly_filter **out);
#define BLY_LIVE_USERS_MOST 1024

/* Write f, of a kind that can be live, to path as a live filter with its keys,
 * where no file may be yet: otherwise BLY_EBUSY. */
bly_status bly_live_make(const bly_filter *f, const char *path);

/* Make what was added before the call last: it is on disk when the call
 * returns. Any process may do this on behalf of all. BLY_EIO if the file was
 * removed, replaced or truncated by another program: bly_error() says which,
 * and adding to it is of no use any more. Reading ones cannot: BLY_EREADONLY.
 *
 * The last process that releases the filter makes a checkpoint, too. */
bly_status bly_checkpoint(bly_filter *f) BLY_MUST_CHECK;

/* What a live filter knows beyond bly_stat(). Times are in seconds since
 * 1970. */
typedef struct bly_live {
    uint64_t generation;       /* counts from 1 */
    uint64_t created;          /* this generation */
    uint64_t users;            /* processes that have it open for adding; forked
                                  children count with their parents */
    uint64_t items_added;      /* as in bly_stats */
    uint64_t checkpoint;       /* number of the last one; 0: there was none */
    uint64_t checkpoint_time;  /* when it was */
    uint64_t checkpoint_items; /* what items_added was then */
    bool unclean;  /* since the last checkpoint, the machine stopped while the
                      filter was in use: later keys may be missing */
    bool replaced; /* there is a newer generation */
    bool reading;  /* opened for reading */
    bool damaged;  /* bly_live_rescue() had to help */
    unsigned char reserved[4]; /* zero */
} bly_live;

/* BLY_EINVAL if f is not live. */
static inline bly_status bly_live_of(const bly_filter *f, bly_live *out);

/* A process that has it open. */
typedef struct bly_live_user { /* final */
    uint64_t pid;              /* as that process sees itself */
    uint64_t since;            /* seconds since 1970 */
} bly_live_user;

/* Fill in up to n users; returns their number, which may be larger. */
size_t bly_live_users(const bly_filter *f, bly_live_user *users, size_t n);

/* The owner has decided: what is there is good enough, and bly_live_of() no
 * longer says `unclean`. Missing keys were added again, for example. */
bly_status bly_live_accept(bly_filter *f);

/* Put another filter in the place of a live one: a larger one, an empty one, or
 * one that was built anew. `next` is an ordinary filter of any kind that can be
 * live; it is copied to a new file, which takes the place of the old one as
 * bly_save() does it. Readers of the old generation are not disturbed, and go
 * on asking it until they follow. Writers cannot add to it any more: their
 * additions fail with BLY_EBUSY, so that no key is lost unnoticed.
 *
 * With `keep`, what was added to the old generation is merged into `next`
 * first, to the last key; they must fit together, as for bly_merge().
 *
 * f itself stays at the old generation: call bly_live_follow(). BLY_EBUSY if it
 * was replaced already. */
bly_status bly_live_replace(bly_filter *f, bly_filter *next,
                            bool keep) BLY_MUST_CHECK;

/* Is there a newer generation? A look at memory, next to free: ask it before
 * each batch. False for a filter that is not live. */
bool bly_live_replaced(const bly_filter *f);

/* Move to the newest generation, if *f is not of it: *f becomes another filter,
 * and the old one is freed. No other thread may be using it. If a replacement
 * is being written, this waits for it. If the call fails, *f is as it was. */
bly_status bly_live_follow(bly_filter **f) BLY_MUST_CHECK;

/* For a handler of SIGBUS, in programs that must not end because somebody
 * truncates the file: if `at` (si_addr) lies in a live filter of this process,
 * its page is replaced by one that answers "maybe" to everything, and the
 * result is true. From then on, adding to the filter fails with BLY_EIO and
 * bly_live_of() says `damaged`. Otherwise false. The library never installs
 * handlers. Safe in a signal handler. */
bool bly_live_rescue(const void *at);

BLY_SIZED(bly_status, bly_live_of, bly_live,
          (const bly_filter *f, bly_live *out), (f, out));
bly_status bly_share_sized(const char *path, const bly_spec *spec,
                           size_t spec_size, const bly_access *how,
                           size_t how_size, bly_filter **out);
static inline bly_status bly_share(const char *path, const bly_spec *spec,
                                   const bly_access *how, bly_filter **out)
{
    return bly_share_sized(path, spec, sizeof *spec, how, sizeof *how, out);
}

BLY_END_DECLS
#endif

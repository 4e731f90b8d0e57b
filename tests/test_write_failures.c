/* LDFLAGS: -Wl,--wrap=open64,--wrap=openat64,--wrap=read,--wrap=write,--wrap=fsync,--wrap=close,--wrap=linkat,--wrap=renameat,--wrap=fchmod,--wrap=fstat64,--wrap=stat64,--wrap=readlink,--wrap=flock,--wrap=flistxattr,--wrap=fgetxattr,--wrap=fsetxattr,--wrap=fremovexattr */
/*
 * test_write_failures.c - every system call of a save fails in turn
 *
 * The linker sends the library's system calls through this file, which counts
 * them and lets the one that is chosen fail. Whatever fails: the old file is
 * there byte for byte or the new one is, the status tells which, the folder
 * holds nothing else, no descriptor stays open. One exception is unavoidable:
 * when the folder cannot be made to last, the new name is already in it.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NKEYS 500

/* ------------------------------------------------------------------- calls */

/* Every wrapped call, and whether it may say EINTR. */
#define CALLS(X)         \
    X(open, true)        \
    X(openat, true)      \
    X(read, true)        \
    X(write, true)       \
    X(fsync, true)       \
    X(close, true)       \
    X(linkat, false)     \
    X(renameat, false)   \
    X(fchmod, false)     \
    X(fstat, false)      \
    X(stat, false)       \
    X(readlink, false)   \
    X(flock, true)       \
    X(flistxattr, false) \
    X(fgetxattr, false)  \
    X(fsetxattr, false)  \
    X(fremovexattr, false)

enum {
#define CALL_ID(name, interruptible) CALL_##name,
    CALLS(CALL_ID) NCALLS
#undef CALL_ID
};

static const bool interruptible[] = {
#define CALL_CAN(name, can) can,
    CALLS(CALL_CAN)
#undef CALL_CAN
};

#define KILLED (-1)

static struct {
    bool armed;
    int count;        /* calls so far */
    int fail_at;      /* this one fails, from 0; -1: none */
    int with;         /* errno; KILLED: the process dies there */
    int failed;       /* CALL_ of the one that did; -1: none yet */
    bool after_place; /* it came after the new file had its name */
    bool placed;
    bool unsynced;        /* bytes were written since the last fsync */
    bool placed_unsynced; /* the name was given to such bytes */
    bool placed_synced;   /* an fsync came after the name was given */
    bool no_tmpfile;      /* as on a file system without O_TMPFILE */
    bool no_proc;         /* as where /proc is not mounted */
    size_t write_most;    /* a write takes no more at once; 0: any number */
    int seen[NCALLS];
} plan;

/* Shall this call fail? Sets errno if so. */
static bool fails(int call)
{
    if (!plan.armed)
        return false;
    plan.seen[call]++;
    if (plan.count++ != plan.fail_at)
        return false;
    if (plan.with == KILLED)
        raise(SIGKILL);
    if (plan.with == EINTR && !interruptible[call])
        return false;
    plan.failed = call;
    plan.after_place = plan.placed;
    errno = plan.with;
    return true;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);
ssize_t __real_write(int fd, const void *buf, size_t n);
ssize_t __wrap_write(int fd, const void *buf, size_t n);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_linkat(int from, const char *old, int to, const char *name, int how);
int __wrap_linkat(int from, const char *old, int to, const char *name, int how);
int __real_renameat(int from, const char *old, int to, const char *name);
int __wrap_renameat(int from, const char *old, int to, const char *name);
int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);
int __real_stat64(const char *path, struct stat *st);
int __wrap_stat64(const char *path, struct stat *st);
ssize_t __real_readlink(const char *path, char *buf, size_t n);
ssize_t __wrap_readlink(const char *path, char *buf, size_t n);
int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

ssize_t __real_flistxattr(int fd, char *list, size_t n);
ssize_t __wrap_flistxattr(int fd, char *list, size_t n);
ssize_t __real_fgetxattr(int fd, const char *name, void *value, size_t n);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t n);
int __real_fsetxattr(int fd, const char *name, const void *value, size_t n,
                     int flags);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t n,
                     int flags);
int __real_fremovexattr(int fd, const char *name);
int __wrap_fremovexattr(int fd, const char *name);

static mode_t mode_argument(int flags, va_list args)
{
    const bool creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    return creates ? va_arg(args, mode_t) : 0;
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_argument(flags, args);
    va_end(args);
    return fails(CALL_open) ? -1 : __real_open64(path, flags, mode);
}

int __wrap_openat64(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_argument(flags, args);
    va_end(args);
    if (fails(CALL_openat))
        return -1;
    if (plan.no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_openat64(dir, path, flags, mode);
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
    return fails(CALL_read) ? -1 : __real_read(fd, buf, n);
}

ssize_t __wrap_write(int fd, const void *buf, size_t n)
{
    if (fails(CALL_write))
        return -1;
    if (plan.armed && plan.write_most && n > plan.write_most)
        n = plan.write_most;
    plan.unsynced = true;
    return __real_write(fd, buf, n);
}

int __wrap_fsync(int fd)
{
    if (fails(CALL_fsync))
        return -1;
    plan.unsynced = false;
    plan.placed_synced = plan.placed;
    return __real_fsync(fd);
}

/* Also a close that fails has closed. */
int __wrap_close(int fd)
{
    const int result = __real_close(fd);
    return fails(CALL_close) ? -1 : result;
}

/* A name was given; hands the result on. */
static int note_place(int result, const char *name)
{
    if (result == 0 && strcmp(name, "words.bly") == 0) {
        plan.placed = true;
        plan.placed_unsynced = plan.unsynced;
    }
    return result;
}

int __wrap_linkat(int from, const char *old, int to, const char *name, int how)
{
    if (fails(CALL_linkat))
        return -1;
    if (plan.no_proc) {
        errno = ENOENT;
        return -1;
    }
    return note_place(__real_linkat(from, old, to, name, how), name);
}

int __wrap_renameat(int from, const char *old, int to, const char *name)
{
    if (fails(CALL_renameat))
        return -1;
    return note_place(__real_renameat(from, old, to, name), name);
}

int __wrap_fchmod(int fd, mode_t mode)
{
    return fails(CALL_fchmod) ? -1 : __real_fchmod(fd, mode);
}

int __wrap_fstat64(int fd, struct stat *st)
{
    return fails(CALL_fstat) ? -1 : __real_fstat64(fd, st);
}

int __wrap_stat64(const char *path, struct stat *st)
{
    return fails(CALL_stat) ? -1 : __real_stat64(path, st);
}

ssize_t __wrap_readlink(const char *path, char *buf, size_t n)
{
    return fails(CALL_readlink) ? -1 : __real_readlink(path, buf, n);
}

int __wrap_flock(int fd, int how)
{
    return fails(CALL_flock) ? -1 : __real_flock(fd, how);
}

ssize_t __wrap_flistxattr(int fd, char *list, size_t n)
{
    return fails(CALL_flistxattr) ? -1 : __real_flistxattr(fd, list, n);
}

ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t n)
{
    return fails(CALL_fgetxattr) ? -1 : __real_fgetxattr(fd, name, value, n);
}

int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t n,
                     int flags)
{
    return fails(CALL_fsetxattr) ? -1
                                 : __real_fsetxattr(fd, name, value, n, flags);
}

int __wrap_fremovexattr(int fd, const char *name)
{
    return fails(CALL_fremovexattr) ? -1 : __real_fremovexattr(fd, name);
}

/* --------------------------------------------------------------- the folder */

static char folder[] = "/tmp/bloomery-writes-XXXXXX";
static char target[sizeof folder + 16];

static int set_up(void **unused)
{
    (void)unused;
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(target, sizeof target, "%s/words.bly", folder);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    plan.armed = false;
    unlink(target);
    return rmdir(folder);
}

/* The number of names in a folder, the two dots aside. */
static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = -2;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static bool noted; /* the file system keeps attributes */

static void put_old(const byte_array *old)
{
    if (!old) {
        unlink(target);
        return;
    }
    FILE *out = fopen(target, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(old->at, 1, old->n, out), old->n);
    assert_int_equal(fclose(out), 0);
    noted = setxattr(target, "user.note", "by hand", 7, 0) == 0;
}

/* Whether the target has the attribute that the old file had. */
static bool note_stayed(void)
{
    char value[8];
    return !noted || (getxattr(target, "user.note", value, 8) == 7 &&
                      memcmp(value, "by hand", 7) == 0);
}

/* Whether the target is exactly this; NULL: absent. */
static bool target_is(const byte_array *want)
{
    FILE *in = fopen(target, "rb");
    if (!in || !want) {
        const bool absent = !in && !want;
        if (in)
            fclose(in);
        return absent;
    }
    unsigned char *bytes = malloc(want->n + 1);
    const size_t n = fread(bytes, 1, want->n + 1, in);
    const bool same = n == want->n && memcmp(bytes, want->at, n) == 0;
    fclose(in);
    free(bytes);
    return same;
}

/* ----------------------------------------------------------------- the jobs */

static bly_filter *fresh; /* what is saved */

static bly_status save_fresh(void)
{
    return bly_save(fresh, target);
}

/* Makes of the old filter the fresh one. */
static bly_status add_the_rest(bly_filter *f, void *ctx)
{
    (void)ctx;
    for (uint64_t key = NKEYS / 2; key < NKEYS; key++) {
        const bly_status st = bly_add_ints(f, &key, 1, NULL, NULL);
        if (st)
            return st;
    }
    return BLY_OK;
}

static bly_status update_old(void)
{
    return bly_update(target, NULL, add_the_rest, NULL);
}

typedef struct job {
    const char *name;
    bly_status (*run)(void);
    bool has_old;
    bool no_tmpfile, no_proc;
} job;

static const job jobs[] = {
    { "replace", save_fresh, true, false, false },
    { "replace without O_TMPFILE", save_fresh, true, true, false },
    { "replace without /proc", save_fresh, true, false, true },
    { "create", save_fresh, false, false, false },
    { "create without O_TMPFILE", save_fresh, false, true, false },
    { "create without /proc", save_fresh, false, false, true },
    { "update", update_old, true, false, false },
    { "update without O_TMPFILE", update_old, true, true, false },
    { "update without /proc", update_old, true, false, true },
};

/* Run a job once, the call `fail_at` failing. */
static bly_status run_job(const job *j, int fail_at, int with)
{
    const int nopen = entries("/proc/self/fd");
    const size_t most = plan.write_most;
    memset(&plan, 0, sizeof plan);
    plan.fail_at = fail_at;
    plan.with = with;
    plan.failed = -1;
    plan.no_tmpfile = j->no_tmpfile;
    plan.no_proc = j->no_proc;
    plan.write_most = most;
    plan.armed = true;
    const bly_status st = j->run();
    plan.armed = false;
    assert_int_equal(entries("/proc/self/fd"), nopen);
    return st;
}

/* The old filter has the first half of the keys, the fresh one all. */
static void make_both(byte_array *old, byte_array *new)
{
    bly_kind_info kind;
    assert_true(bly_kind_at(0, &kind));
    const bly_spec spec = spec_for(&kind, NKEYS);
    bly_filter *half = filled_from(&spec, 0, NKEYS / 2);
    *old = written(half);
    fresh = filled_from(&spec, 0, NKEYS);
    *new = written(fresh);
    bly_free(half);
}

static void every_call_fails(int with)
{
    byte_array old, new;
    make_both(&old, &new);
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        const job *j = &jobs[i];
        const byte_array *before = j->has_old ? &old : NULL;
        int at = 0, nfailed = 0;
        do {
            put_old(before);
            const bly_status st = run_job(j, at++, with);
            const bool is_old = target_is(before), is_new = target_is(&new);
            const bool sync_too_late =
                plan.after_place && plan.failed == CALL_fsync;
            if (st ? st != BLY_EIO || !(sync_too_late ? is_new : is_old)
                   : !is_new)
                fail_msg("%s, call %d fails with %s: %s, and the file is %s",
                         j->name, at - 1, strerror(with), bly_status_text(st),
                         is_old   ? "old"
                         : is_new ? "new"
                                  : "neither");
            if (j->has_old && !note_stayed())
                fail_msg("%s, call %d fails with %s: its attribute is gone",
                         j->name, at - 1, strerror(with));
            /* A network disk may keep its bad news for the end. */
            if (plan.failed == CALL_close && !plan.after_place && !j->no_proc)
                assert_status(st, with == EINTR ? BLY_OK : BLY_EIO);
            if (st && !strstr(bly_error(), target))
                fail_msg("\"%s\" does not name the file", bly_error());
            assert_int_equal(entries(folder), is_old && !j->has_old ? 0 : 1);
            nfailed += st != BLY_OK;
            /* EINTR is never the caller's business. */
            if (with == EINTR)
                assert_ok(st);
        } while (at <= plan.count);
        assert_true(with == EINTR || nfailed > 5);
    }
    free(old.at);
    free(new.at);
    bly_free(fresh);
}

static void io_errors(void **unused)
{
    (void)unused;
    every_call_fails(EIO);
}

static void full_disks(void **unused)
{
    (void)unused;
    every_call_fails(ENOSPC);
    every_call_fails(EDQUOT);
}

static void interruptions(void **unused)
{
    (void)unused;
    every_call_fails(EINTR);
}

/* A child that is killed before call number `at`; whether it came so far. */
static bool killed_at(const job *j, int at)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_job(j, at, KILLED) != BLY_OK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || status == 0);
    return WIFSIGNALED(status);
}

/* Whatever a process has done before it is killed, the file is the old one or
 * the new one, and the next process that writes it leaves nothing beside it. */
static void kills(void **unused)
{
    (void)unused;
    byte_array old, new;
    int nkilled = 0, nleft = 0;
    make_both(&old, &new);
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        const job *j = &jobs[i];
        for (int at = 0;; at++) {
            put_old(j->has_old ? &old : NULL);
            if (!killed_at(j, at))
                break;
            nkilled++;
            if (!target_is(j->has_old ? &old : NULL) && !target_is(&new))
                fail_msg("%s, killed at call %d: neither old nor new", j->name,
                         at);
            const int there = access(target, F_OK) == 0;
            nleft += entries(folder) > there;
            assert_true(entries(folder) <= there + 1);
            put_old(j->has_old ? &old : NULL);
            assert_ok(run_job(j, -1, 0));
            assert_true(target_is(&new));
            assert_int_equal(entries(folder), 1);
        }
    }
    print_message("%d kills, %d of them left a draft\n", nkilled, nleft);
    assert_true(nkilled > 100 && nleft > 10);
    free(old.at);
    free(new.at);
    bly_free(fresh);
}

static void short_writes(void **unused)
{
    (void)unused;
    byte_array old, new;
    make_both(&old, &new);
    static const size_t sizes[] = { 1, 4095, 4097 };
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (size_t i = 0; i < COUNT_OF(jobs); i++) {
            plan.write_most = sizes[s];
            put_old(jobs[i].has_old ? &old : NULL);
            assert_ok(run_job(&jobs[i], -1, 0));
            assert_true(target_is(&new));
            assert_int_equal(entries(folder), 1);
        }
    plan.write_most = 0;
    free(old.at);
    free(new.at);
    bly_free(fresh);
}

/* Where files cannot be locked, saving goes on and changing does not. */
static void no_locks(void **unused)
{
    (void)unused;
    byte_array old, new;
    make_both(&old, &new);
    const job *save = &jobs[0], *update = &jobs[6];
    bool reached = false;
    for (int at = 0; !reached; at++) {
        put_old(&old);
        const bly_status st = run_job(update, at, ENOLCK);
        if (plan.failed == CALL_flock) {
            assert_status(st, BLY_EIO);
            assert_true(strstr(bly_error(), "cannot be locked"));
            assert_true(target_is(&old));
            assert_ok(run_job(save, at, ENOLCK));
            assert_int_equal(plan.failed, CALL_flock);
            assert_true(target_is(&new));
            reached = true;
        }
    }
    free(old.at);
    free(new.at);
    bly_free(fresh);
}

/* The bytes are on disk before their name is, and the name before the call
 * returns. Also, each call is seen, in one job or another. */
static void disks_are_synced(void **unused)
{
    (void)unused;
    byte_array old, new;
    int seen[NCALLS] = { 0 };
    make_both(&old, &new);
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        put_old(jobs[i].has_old ? &old : NULL);
        assert_ok(run_job(&jobs[i], -1, 0));
        assert_true(plan.placed);
        assert_false(plan.placed_unsynced);
        assert_true(plan.placed_synced);
        for (int c = 0; c < NCALLS; c++)
            seen[c] += plan.seen[c];
    }
    for (int c = 0; c < NCALLS; c++)
        assert_true(seen[c] > 0 || (c == CALL_fsetxattr && !noted));
    free(old.at);
    free(new.at);
    bly_free(fresh);
}

#define WRITE_TEST(name) \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WRITE_TEST(disks_are_synced), WRITE_TEST(io_errors),
        WRITE_TEST(full_disks),       WRITE_TEST(interruptions),
        WRITE_TEST(short_writes),     WRITE_TEST(kills),
        WRITE_TEST(no_locks),
    };
    return cmocka_run_group_tests_name("write failures", tests, NULL, NULL);
}

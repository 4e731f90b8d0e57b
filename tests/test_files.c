/*
 * test_files.c - filters in files: save, open, map, update
 *
 * Each test works in a folder of its own, and that folder is empty when it
 * has removed its files: nothing else may be left behind.
 */
#define _GNU_SOURCE
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define NKEYS 500
#define NOBODY 65534

static char folder[] = "/tmp/bloomery-files-XXXXXX";
static char *target;       /* folder/words.bly */
static char *other;        /* folder/other.bly */
static bly_kind_info kind; /* the default kind */

static char *in_folder(const char *name)
{
    char *path;
    assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
    return path;
}

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    while (dir && readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static int descriptors; /* open before the test */

static int set_up(void **unused)
{
    (void)unused;
    descriptors = count_descriptors();
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    target = in_folder("words.bly");
    other = in_folder("other.bly");
    assert_true(bly_kind_at(0, &kind));
    return 0;
}

/* Fails if the test left anything but its two files, or a file open. */
static int tear_down(void **unused)
{
    (void)unused;
    if (getuid() == 0 && seteuid(0))
        return -1;
    unlink(target);
    unlink(other);
    free(target);
    free(other);
    return rmdir(folder) || count_descriptors() != descriptors;
}

static byte_array contents(const char *path)
{
    byte_array a = { 0 };
    char buf[PAGE];
    ssize_t n;
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    while ((n = read(fd, buf, sizeof buf)) > 0)
        assert_true(put_bytes(&a, buf, (size_t)n));
    assert_int_equal(n, 0);
    close(fd);
    return a;
}

static void assert_holds(const char *path, const bly_filter *f)
{
    byte_array file = contents(path), want = written(f);
    assert_int_equal(file.n, want.n);
    assert_memory_equal(file.at, want.at, want.n);
    free(file.at);
    free(want.at);
}

static void assert_says(const char *words)
{
    if (!strstr(bly_error(), words))
        fail_msg("\"%s\" does not say \"%s\"", bly_error(), words);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode;
}

/* -------------------------------------------------------------- save, open */

static void saved_files_open(void **unused)
{
    (void)unused;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        bly_filter *f = filled(&kind, 0, NKEYS), *got;
        for (int twice = 0; twice < 2; twice++) {
            assert_ok(bly_save(f, target));
            assert_holds(target, f);
        }
        assert_ok(bly_open(target, NULL, &got));
        assert_true(bly_equal(f, got));
        assert_ok(bly_verify(got));
        bly_free(got);
        assert_ok(bly_map(target, NULL, &got));
        assert_true(bly_equal(f, got));
        assert_ok(bly_verify(got));
        assert_holds(target, got);
        bly_free(got);
        bly_free(f);
    }
}

/* Opening holds the filter once, and nothing else of its size. */
static void opening_reads_in_place(void **unused)
{
    (void)unused;
    ledger l;
    ledger_open(&l);
    const bly_access how = { .mem = &l.mem };
    bly_filter *f = filled(&kind, 0, 1000000), *got;
    const int64_t nbytes = (int64_t)bly_written_bytes(f);
    assert_true(nbytes > 1 << 20);
    assert_ok(bly_save(f, target));
    assert_ok(bly_open(target, &how, &got));
    assert_true(bly_equal(f, got));
    assert_true(l.peak < nbytes);
    bly_free(got);
    ledger_check(&l);
    l.peak = 0;
    assert_ok(bly_map(target, &how, &got));
    assert_true(l.peak < PAGE);
    bly_free(got);
    ledger_check(&l);
    bly_free(f);
}

static void permissions_stay(void **unused)
{
    (void)unused;
    bly_filter *f = filled(&kind, 0, NKEYS);
    const mode_t old = umask(027);
    assert_ok(bly_save(f, target));
    assert_int_equal(mode_of(target) & 07777, 0640);
    static const mode_t modes[] = { 0600, 0644, 0666, 0751, 06755, 01777 };
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        assert_int_equal(chmod(target, modes[i]), 0);
        assert_ok(bly_save(f, target));
        assert_int_equal(mode_of(target) & 07777, modes[i] & 0777);
    }
    umask(old);
    bly_free(f);
}

/* A link stays a link, and what it leads to is replaced, or made. */
static void links_are_followed(void **unused)
{
    (void)unused;
    bly_filter *f = filled(&kind, 0, NKEYS), *got;
    char *chain = in_folder("chain");
    assert_int_equal(symlink("words.bly", other), 0);
    assert_int_equal(symlink(other, chain), 0);
    for (int i = 0; i < 2; i++) { /* leads to nothing, then to a file */
        assert_ok(bly_save(f, chain));
        assert_true(S_ISLNK(mode_of(chain)));
        assert_true(S_ISLNK(mode_of(other)));
        assert_true(S_ISREG(mode_of(target)));
        assert_holds(target, f);
    }
    assert_ok(bly_open(other, NULL, &got));
    bly_free(got);
    unlink(chain);
    unlink(target);
    assert_int_equal(symlink("other.bly", target), 0);
    assert_status(bly_save(f, target), BLY_EIO);
    assert_status(bly_open(target, NULL, &got), BLY_EIO);
    free(chain);
    bly_free(f);
}

static void *read_from_fifo(void *ctx)
{
    bly_filter *got;
    return bly_open(ctx, NULL, &got) ? NULL : got;
}

static void pipes_and_devices_are_written(void **unused)
{
    (void)unused;
    bly_filter *f = filled(&kind, 0, 1000000);
    void *got;
    pthread_t reader;
    assert_int_equal(mkfifo(target, 0600), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_from_fifo, target), 0);
    assert_ok(bly_save(f, target));
    assert_int_equal(pthread_join(reader, &got), 0);
    assert_non_null(got);
    assert_true(bly_equal(f, got));
    assert_true(S_ISFIFO(mode_of(target)));
    bly_free(got);
    assert_ok(bly_save(f, "/dev/null"));
    assert_true(S_ISCHR(mode_of("/dev/null")));
    if (S_ISCHR(mode_of("/dev/full"))) {
        assert_status(bly_save(f, "/dev/full"), BLY_EIO);
        assert_says("/dev/full: cannot be written: No space left");
    }
    bly_filter *none;
    assert_status(bly_open("/dev/null", NULL, &none), BLY_EFORMAT);
    assert_says("/dev/null: empty");
    assert_status(bly_map("/dev/null", NULL, &none), BLY_EIO);
    assert_null(none);
    assert_says("regular file");
    bly_free(f);
}

/* /dev/stdout and its like lead to what is open: a file with a name is
 * replaced under that name, one without is written to. */
static void open_files_are_written(void **unused)
{
    (void)unused;
    bly_filter *f = filled(&kind, 0, NKEYS), *got;
    char path[64];
    const int fd = open(target, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_ok(bly_save(f, path));
    assert_holds(target, f);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    assert_int_equal(unlink(target), 0);
    assert_ok(bly_save(f, path));
    assert_int_equal(lseek(fd, 0, SEEK_END), bly_written_bytes(f));
    assert_int_equal(access(target, F_OK), -1);
    assert_ok(bly_open(path, NULL, &got));
    assert_true(bly_equal(f, got));
    bly_free(got);
    close(fd);
    bly_free(f);
}

static bly_status do_nothing(bly_filter *f, void *ctx)
{
    (void)f;
    (void)ctx;
    return BLY_OK;
}

static void bad_paths_are_named(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        bool save_too;
    } rows[] = {
        { "", true },         /* the folder itself */
        { "no/words", true }, /* no such folder */
        { "words.bly", false },
    };
    bly_filter *f = filled(&kind, 0, NKEYS), *got = f;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *path = in_folder(rows[i].name);
        assert_status(bly_open(path, NULL, &got), BLY_EIO);
        assert_null(got);
        assert_says(path);
        assert_status(bly_map(path, NULL, &got), BLY_EIO);
        assert_null(got);
        assert_says(path);
        assert_status(bly_update(path, NULL, do_nothing, NULL), BLY_EIO);
        assert_says(path);
        if (rows[i].save_too) {
            assert_status(bly_save(f, path), BLY_EIO);
            assert_says(path);
        }
        free(path);
    }
    assert_status(bly_update("/dev/null", NULL, do_nothing, NULL), BLY_EIO);
    assert_says("not a regular file");
    /* A name too long for its suffix, and one too long for anything. */
    char name[400];
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    char *path = in_folder(name);
    assert_ok(bly_save(f, path));
    assert_ok(bly_save(f, path));
    assert_int_equal(unlink(path), 0);
    free(path);
    name[255] = 'n';
    name[399] = '\0';
    path = in_folder(name);
    assert_status(bly_save(f, path), BLY_EIO);
    free(path);
    bly_free(f);
}

/* Root may do everything, so root becomes nobody for this test. */
static void rights_are_respected(void **unused)
{
    (void)unused;
    bly_filter *f = filled(&kind, 0, NKEYS), *got;
    if (getuid() == 0) {
        assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
    assert_ok(bly_save(f, target));
    assert_int_equal(chmod(target, 0444), 0);
    assert_status(bly_save(f, target), BLY_EIO);
    assert_says("words.bly: cannot be written: Permission denied");
    assert_int_equal(chmod(target, 0), 0);
    assert_status(bly_open(target, NULL, &got), BLY_EIO);
    assert_says("words.bly: cannot be read: Permission denied");
    assert_int_equal(chmod(target, 0644), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    assert_status(bly_save(f, target), BLY_EIO);
    assert_status(bly_save(f, other), BLY_EIO);
    assert_status(bly_update(target, NULL, do_nothing, NULL), BLY_EIO);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_holds(target, f);
    bly_free(f);
}

/* Owner and group stay, even if somebody else replaces the file. */
static void owners_stay(void **unused)
{
    (void)unused;
    bly_filter *f = filled(&kind, 0, NKEYS);
    struct stat st;
    assert_ok(bly_save(f, target));
    if (getuid() == 0)
        assert_int_equal(chown(target, NOBODY, NOBODY - 1), 0);
    assert_ok(bly_save(f, target));
    assert_int_equal(stat(target, &st), 0);
    if (getuid() == 0) {
        assert_int_equal(st.st_uid, NOBODY);
        assert_int_equal(st.st_gid, NOBODY - 1);
    }
    bly_free(f);
}

static void other_bytes_are_named(void **unused)
{
    (void)unused;
    static const struct {
        const char *bytes, *words;
    } rows[] = {
        { "", "words.bly: empty" },
        { "aardvark\nabacus\n", "words.bly: not a .bly file" },
        { "\211BLY\r\n\032\n", "words.bly: cut short" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_filter *got;
        FILE *out = fopen(target, "wb");
        assert_non_null(out);
        fputs(rows[i].bytes, out);
        fclose(out);
        assert_status(bly_open(target, NULL, &got), BLY_EFORMAT);
        assert_says(rows[i].words);
        assert_status(bly_map(target, NULL, &got), BLY_EFORMAT);
        assert_says(rows[i].words);
        assert_status(bly_update(target, NULL, do_nothing, NULL), BLY_EFORMAT);
        assert_says(rows[i].words);
    }
}

/* --------------------------------------------------------------------- map */

static void poke(int fd, off_t at, int bit)
{
    unsigned char byte;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= (unsigned char)(1 << bit);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

/* A flipped bit is refused. Who wants no comparison gets one in the payload: it
 * crashes nothing, is found by bly_verify(), and stays known to copies. */
static void damaged_maps_are_harmless(void **unused)
{
    (void)unused;
    static const bly_access believe = { .checking = BLY_CHECK_NOTHING };
    for (size_t row = 0; bly_kind_at(row, &kind); row++) {
        bly_filter *f = filled(&kind, 0, NKEYS), *got, *copy;
        bly_set_coded(f, false); /* a coded file is read, not mapped */
        assert_ok(bly_save(f, target));
        const off_t end = (off_t)bly_written_bytes(f);
        const int fd = open(target, O_RDWR);
        assert_true(fd >= 0);
        for (off_t at = 0; at < PAGE; at++) {
            const int bit = (int)(at % 8);
            poke(fd, at, bit);
            assert_status(bly_map(target, NULL, &got), BLY_EFORMAT);
            assert_null(got);
            poke(fd, at, bit);
        }
        for (off_t at = PAGE; at < end; at++) {
            const int bit = (int)(at % 8);
            poke(fd, at, bit);
            assert_status(bly_map(target, NULL, &got), BLY_EFORMAT);
            const bly_status st = bly_map(target, &believe, &got);
            if ((bly_layer(f, 0) || (kind.traits & BLY_CODED)) &&
                st == BLY_EFORMAT) {
                /* A layer has a header of its own; what is coded is read. */
                poke(fd, at, bit);
                continue;
            }
            assert_status(st, BLY_OK);
            assert_true(hits(got, 0, 2 * NKEYS) <= 2 * NKEYS);
            assert_status(bly_verify(got), BLY_EFORMAT);
            assert_status(bly_clone(got, &copy), BLY_EFORMAT);
            if (at == PAGE) {
                bly_stats stats;
                bly_stat(got, &stats);
                assert_ok(bly_save(got, other));
                assert_status(bly_open(other, NULL, &copy), BLY_EFORMAT);
                assert_says("other.bly: damaged: the payload");
            }
            bly_free(got);
            poke(fd, at, bit);
        }
        close(fd);
        assert_holds(target, f);
        bly_free(f);
    }
}

static void maps_are_read_only_and_last(void **unused)
{
    (void)unused;
    bly_filter *f = filled(&kind, 0, NKEYS), *map, *copy;
    bly_filter *empty = filled(&kind, 0, 1);
    assert_ok(bly_save(f, target));
    assert_ok(bly_map(target, NULL, &map));
    assert_status(bly_add(map, "x", 1), BLY_EREADONLY);
    /* Replacing the file does not touch who has it mapped. */
    assert_ok(bly_save(empty, target));
    assert_true(bly_equal(map, f));
    assert_int_equal(hits(map, 0, NKEYS), NKEYS);
    assert_ok(bly_clone(map, &copy));
    assert_ok(bly_add(copy, "x", 1));
    bly_stats stats;
    bly_peek(map, &stats);
    assert_true(stats.mapped);
    /* A mapped filter may go back where it came from. */
    assert_ok(bly_save(map, target));
    assert_holds(target, f);
    bly_free(copy);
    bly_free(map);
    bly_free(f);
    bly_free(empty);
}

/* ------------------------------------------------------------------ update */

static bly_status add_key(bly_filter *f, void *ctx)
{
    return bly_add_ints(f, ctx, 1, NULL, NULL);
}

static bly_status change_and_fail(bly_filter *f, void *ctx)
{
    assert_ok(add_key(f, ctx));
    return BLY_EFULL;
}

/* The default kind adds; an update test needs no more. */
static bly_filter *roomy(void)
{
    const bly_spec spec = spec_for(&kind, 100000);
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    return f;
}

static void updates_change_the_file(void **unused)
{
    (void)unused;
    bly_filter *f = roomy(), *got;
    assert_ok(bly_save(f, target));
    uint64_t key = 77;
    assert_status(bly_update(target, NULL, change_and_fail, &key), BLY_EFULL);
    assert_holds(target, f);
    assert_ok(bly_update(target, NULL, add_key, &key));
    assert_ok(bly_open(target, NULL, &got));
    assert_int_equal(hits(got, 77, 1), 1);
    assert_int_equal(hits(got, 0, 77), 0);
    bly_free(got);
    bly_free(f);
}

enum { NWRITERS = 2, NUPDATES = 50 };

static void update_many(const char *path, uint64_t first)
{
    for (uint64_t key = first; key < first + NUPDATES; key++)
        if (bly_update(path, NULL, add_key, &key)) {
            fprintf(stderr, "update: %s\n", bly_error());
            _exit(1);
        }
}

static void wait_for_all(int n)
{
    for (int i = 0; i < n; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* Two processes at once, while a third reader sees whole filters only. */
static void no_update_is_lost(void **unused)
{
    (void)unused;
    bly_filter *f = roomy(), *got;
    assert_ok(bly_save(f, target));
    for (uint64_t w = 0; w < NWRITERS; w++)
        if (fork() == 0) {
            update_many(target, w * NUPDATES);
            _exit(0);
        }
    for (int i = 0; i < 200; i++) {
        assert_ok(bly_open(target, NULL, &got));
        bly_free(got);
    }
    wait_for_all(NWRITERS);
    assert_ok(bly_open(target, NULL, &got));
    assert_int_equal(hits(got, 0, NWRITERS * NUPDATES), NWRITERS * NUPDATES);
    bly_free(got);
    bly_free(f);
}

static void *update_in_thread(void *ctx)
{
    update_many(target, *(const uint64_t *)ctx);
    return NULL;
}

static void threads_queue_as_processes_do(void **unused)
{
    (void)unused;
    bly_filter *f = roomy(), *got;
    pthread_t threads[NWRITERS];
    uint64_t first[NWRITERS];
    assert_ok(bly_save(f, target));
    for (uint64_t w = 0; w < NWRITERS; w++) {
        first[w] = w * NUPDATES;
        assert_int_equal(
            pthread_create(&threads[w], NULL, update_in_thread, &first[w]), 0);
    }
    for (int w = 0; w < NWRITERS; w++)
        assert_int_equal(pthread_join(threads[w], NULL), 0);
    assert_ok(bly_open(target, NULL, &got));
    assert_int_equal(hits(got, 0, NWRITERS * NUPDATES), NWRITERS * NUPDATES);
    bly_free(got);
    bly_free(f);
}

/* A save that meets an update waits for it: it is the later one, and stays. */
static bly_status save_meanwhile(bly_filter *f, void *ctx)
{
    const bly_filter *rival = ctx;
    if (fork() == 0)
        _exit(bly_save(rival, target) ? 1 : 0);
    usleep(20000); /* let it come first, if it can */
    uint64_t key = 5;
    return add_key(f, &key);
}

static void saves_wait_for_updates(void **unused)
{
    (void)unused;
    bly_filter *f = roomy(), *rival = filled(&kind, 0, NKEYS);
    assert_ok(bly_save(f, target));
    assert_ok(bly_update(target, NULL, save_meanwhile, rival));
    wait_for_all(1);
    assert_holds(target, rival);
    bly_free(rival);
    bly_free(f);
}

/* Four that find no file, each make one, and each add to what is there by
 * then. A save replaces, so keys may go; but none of the four ever meets half
 * a file, and the key of the last is in it. */
static void create_and_add(uint64_t key)
{
    bly_filter *f;
    bly_status st = bly_open(target, NULL, &f);
    if (st) {
        f = roomy();
        st = bly_save(f, target);
    }
    bly_free(f);
    if (st || bly_update(target, NULL, add_key, &key))
        _exit(1);
    _exit(0);
}

/* Four processes find no file, again and again, and each does the same with a
 * key of its own; how many of these the file has then, at the least. */
static void assert_four_create(void (*each)(uint64_t key), uint64_t least)
{
    for (int round = 0; round < 20; round++) {
        bly_filter *got;
        unlink(target);
        for (uint64_t w = 0; w < 4; w++)
            if (fork() == 0)
                each(w);
        wait_for_all(4);
        assert_ok(bly_open(target, NULL, &got));
        assert_between((double)hits(got, 0, 4), (double)least, 4);
        bly_free(got);
    }
}

static void creators_leave_a_whole_file(void **unused)
{
    (void)unused;
    assert_four_create(create_and_add, 1);
}

/* ------------------------------------------------------------------ drafts */

static void drafts_replace_the_whole_file(void **unused)
{
    (void)unused;
    static char bytes[300000];
    bly_filter *f = filled(&kind, 0, NKEYS);
    bly_draft *d;
    memset(bytes, 'x', sizeof bytes);
    assert_ok(bly_save(f, target));
    assert_ok(bly_draft_new(target, NULL, NULL, &d));
    assert_true(bly_draft_put(d, "abc", 3));
    assert_true(bly_draft_put(d, NULL, 0));
    assert_true(bly_draft_put(d, bytes, sizeof bytes));
    assert_true(bly_draft_put(d, "end", 3));
    assert_holds(target, f);
    bly_draft_abandon(d);
    assert_holds(target, f);

    assert_ok(bly_draft_new(target, NULL, NULL, &d));
    assert_true(bly_draft_put(d, "abc", 3));
    assert_true(bly_draft_put(d, bytes, sizeof bytes));
    assert_true(bly_draft_put(d, "end", 3));
    assert_ok(bly_draft_commit(d));
    byte_array got = contents(target);
    assert_int_equal(got.n, sizeof bytes + 6);
    assert_memory_equal(got.at, "abcx", 4);
    assert_memory_equal(got.at + got.n - 4, "xend", 4);
    free(got.at);

    /* A draft writes filters too. */
    assert_ok(bly_draft_new(target, NULL, NULL, &d));
    assert_ok(bly_write(f, bly_draft_put, d));
    assert_ok(bly_draft_commit(d));
    assert_holds(target, f);

    /* What cannot be written is told in the end. */
    assert_ok(bly_draft_new("/dev/full", NULL, NULL, &d));
    assert_true(bly_draft_put(d, "abc", 3));
    assert_false(bly_draft_put(d, bytes, sizeof bytes));
    assert_false(bly_draft_put(d, "abc", 3));
    assert_status(bly_draft_commit(d), BLY_EIO);
    assert_says("/dev/full: cannot be written");
    bly_draft_abandon(NULL);
    bly_free(f);
}

/* What bly_draft_swap() asks, and what somebody else does at that moment. */
struct swapping {
    ino_t inode;         /* of the file that was read; 0: none */
    const char *meddles; /* writes this to the file */
    bool first, last;    /* when it is asked for the first time, or the last */
};

static void write_to(const char *path, const char *text)
{
    FILE *const f = fopen(path, "a");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static bool is_old(void *ctx, int old, bool moved)
{
    const struct swapping *const s = ctx;
    struct stat st;
    const bool same =
        old < 0 ? !s->inode
                : !fstat(old, &st) && st.st_ino == s->inode && st.st_size == 3;
    if (s->meddles && ((s->first && !moved) || (s->last && moved)))
        write_to(target, s->meddles);
    return same;
}

static bool make_private(void *ctx, int draft)
{
    (void)ctx;
    return !fchmod(draft, 0640);
}

static bly_status swap_to(const char *text, struct swapping *s)
{
    const bly_swap how = { is_old, make_private, s };
    bly_draft *d;
    assert_ok(bly_draft_new(target, NULL, NULL, &d));
    assert_true(bly_draft_put(d, text, strlen(text)));
    return bly_draft_swap(d, &how);
}

static void assert_text(const char *path, const char *text)
{
    byte_array got = contents(path);
    assert_int_equal(got.n, strlen(text));
    assert_memory_equal(got.at, text, got.n);
    free(got.at);
}

/* How many names the folder has. */
static unsigned nfiles(void)
{
    unsigned n = 0;
    DIR *const d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    closedir(d);
    return n;
}

/* Somebody writes to the file that is to be replaced: before it is looked at,
 * between that and the exchange of names, and to the new one, when the old one
 * is about to be put back. Nothing is lost, and nothing is left over. */
static void drafts_swap_only_what_was_read(void **unused)
{
    (void)unused;
    struct stat st;
    struct swapping s = { 0 };
    assert_ok(swap_to("old", &s));
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);

    s = (struct swapping){ .inode = st.st_ino + 1 };
    assert_status(swap_to("new", &s), BLY_EBUSY);
    assert_says("words.bly: changed meanwhile");
    s = (struct swapping){ 0 }; /* that there was none */
    assert_status(swap_to("new", &s), BLY_EBUSY);
    assert_text(target, "old");

    s = (struct swapping){ .inode = st.st_ino, .meddles = "+", .first = true };
    assert_status(swap_to("new", &s), BLY_EBUSY);
    assert_text(target, "old+");
    assert_int_equal(nfiles(), 1);

    /* Now the new file is written to while the old one, which has changed, is
     * outside: both are kept. */
    s = (struct swapping){
        .inode = st.st_ino, .meddles = "+", .first = true, .last = true
    };
    assert_int_equal(truncate(target, 3), 0);
    assert_status(swap_to("new", &s), BLY_EBUSY);
    assert_says("changed twice");
    assert_text(target, "old+");
    char *const kept = in_folder("words.bly.kept-1");
    assert_text(kept, "new+");
    assert_int_equal(nfiles(), 2);
    assert_int_equal(unlink(kept), 0);
    free(kept);

    s = (struct swapping){ .inode = st.st_ino };
    assert_int_equal(truncate(target, 3), 0);
    assert_ok(swap_to("new", &s));
    assert_text(target, "new");

    /* One that comes into being where there was none. */
    assert_int_equal(unlink(target), 0);
    s = (struct swapping){ .meddles = "mine", .first = true };
    assert_status(swap_to("new", &s), BLY_EBUSY);
    assert_text(target, "mine");
    assert_int_equal(nfiles(), 1);
}

static void drafts_in_folders_follow_no_links(void **unused)
{
    (void)unused;
    bly_draft *d;
    const int at = open(folder, O_RDONLY | O_DIRECTORY);
    assert_true(at >= 0);
    assert_ok(bly_draft_new_in(at, "words.bly", NULL, NULL, &d));
    assert_true(bly_draft_put(d, "abc", 3));
    assert_ok(bly_draft_commit(d));
    assert_text(target, "abc");
    char *const link = in_folder("link");
    assert_int_equal(symlink("words.bly", link), 0);
    assert_status(bly_draft_new_in(at, "link", NULL, NULL, &d), BLY_EIO);
    assert_says("link: what is there is not a file");
    assert_status(bly_draft_new_in(at, "a/b", NULL, NULL, &d), BLY_EINVAL);
    assert_status(bly_draft_new_in(at, "", NULL, NULL, &d), BLY_EINVAL);
    assert_text(target, "abc");
    assert_int_equal(unlink(link), 0);
    free(link);
    close(at);
}

static void drafts_leave_holes(void **unused)
{
    (void)unused;
    struct stat st;
    bly_draft *d;
    assert_ok(bly_draft_new(target, NULL, NULL, &d));
    assert_true(bly_draft_put(d, "abc", 3));
    assert_true(bly_draft_skip(d, 1 << 20));
    assert_true(bly_draft_put(d, "end", 3));
    assert_true(bly_draft_skip(d, 1 << 20));
    assert_ok(bly_draft_commit(d));
    byte_array got = contents(target);
    assert_int_equal(got.n, (2 << 20) + 6);
    assert_memory_equal(got.at, "abc\0", 4);
    assert_memory_equal(got.at + 3 + (1 << 20), "end\0", 4);
    assert_int_equal(got.at[got.n - 1], 0);
    free(got.at);
    assert_int_equal(stat(target, &st), 0);
    assert_true(st.st_blocks < 256); /* of 512 bytes */
    assert_ok(bly_draft_new("/dev/null", NULL, NULL, &d));
    assert_true(bly_draft_skip(d, 10000));
    assert_ok(bly_draft_commit(d));
}

static void make_file(const char *path)
{
    const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* What a killed process left is removed by the next one that writes the same
 * file; what a living one has, and what looks like a draft but is none, is
 * not. */
static void stale_drafts_are_removed(void **unused)
{
    (void)unused;
    bly_filter *f = filled(&kind, 0, NKEYS);
    char *stale = in_folder(".words.bly.000000.tmp");
    char *used = in_folder(".words.bly.000003.tmp");
    char *last = in_folder(".words.bly.000007.tmp");
    char *others = in_folder(".other.bly.000000.tmp");
    char *linked = in_folder(".words.bly.000005.tmp");
    char *kept = in_folder("words.bly.000000.tmp");
    for (int round = 0; round < 2; round++) { /* new, and replaced */
        make_file(stale);
        make_file(used);
        make_file(last);
        make_file(others);
        make_file(kept);
        assert_int_equal(symlink("words.bly.000000.tmp", linked), 0);
        const int fd = open(used, O_RDONLY);
        assert_int_equal(flock(fd, LOCK_EX), 0);
        assert_ok(bly_save(f, target));
        assert_holds(target, f);
        assert_int_equal(access(stale, F_OK), -1);
        assert_int_equal(access(last, F_OK), -1);
        assert_int_equal(unlink(used), 0);
        assert_int_equal(unlink(others), 0);
        assert_int_equal(unlink(linked), 0);
        assert_int_equal(unlink(kept), 0);
        close(fd);
    }
    free(stale);
    free(used);
    free(last);
    free(others);
    free(linked);
    free(kept);
    bly_free(f);
}

/* ----------------------------------------------------------------- waiting */

typedef struct patience {
    int asked;
    uint64_t first, last, limit;
    char path[64];
} patience;

static bool ask_patience(void *ctx, const char *path, uint64_t ms)
{
    patience *p = ctx;
    if (!p->asked++)
        p->first = ms;
    p->last = ms;
    snprintf(p->path, sizeof p->path, "%s", path);
    return ms < p->limit;
}

static void waits_are_asked_about(void **unused)
{
    (void)unused;
    bly_filter *f = filled(&kind, 0, NKEYS);
    assert_ok(bly_save(f, target));
    const int fd = open(target, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    for (uint64_t limit = 0; limit <= 120; limit += 120) {
        patience p = { .limit = limit };
        const bly_access how = { .wait = ask_patience, .wait_ctx = &p };
        bly_draft *d;
        assert_status(bly_update(target, &how, do_nothing, NULL), BLY_EBUSY);
        assert_says("words.bly: another process is changing it");
        assert_int_equal(p.first, 0);
        assert_true(p.last >= limit);
        assert_string_equal(p.path, target);
        assert_true(limit ? p.asked > 1 : p.asked == 1);
        p = (patience){ .limit = limit };
        assert_status(bly_draft_new(target, ask_patience, &p, &d), BLY_EBUSY);
        assert_null(d);
        assert_true(p.asked > 0);
    }
    assert_holds(target, f);
    close(fd);
    patience p = { 0 };
    const bly_access how = { .wait = ask_patience, .wait_ctx = &p };
    assert_ok(bly_update(target, &how, do_nothing, NULL));
    assert_int_equal(p.asked, 0);
    bly_free(f);
}

/* ----------------------------------------------------------------- keeping */

static void assert_busy(void)
{
    patience p = { 0 };
    const bly_access how = { .wait = ask_patience, .wait_ctx = &p };
    bly_keeper *k;
    assert_status(bly_update(target, &how, do_nothing, NULL), BLY_EBUSY);
    assert_status(bly_keeper_new(target, &how, NULL, &k), BLY_EBUSY);
    assert_null(k);
}

static void keepers_hold_the_file(void **unused)
{
    (void)unused;
    bly_filter *f = roomy(), *got;
    bly_keeper *k;
    assert_status(bly_keeper_new(target, NULL, NULL, &k), BLY_EIO);
    assert_says("words.bly: cannot be changed: No such file");
    assert_null(k);
    assert_status(bly_keeper_new("/dev/null", NULL, f, &k), BLY_EIO);
    assert_ok(bly_keeper_new(target, NULL, f, &k));
    assert_holds(target, f);
    for (uint64_t version = 0; version < 3; version++) {
        assert_busy();
        assert_ok(add_key(bly_keeper_filter(k), &version));
        assert_ok(bly_open(target, NULL, &got));
        assert_int_equal(hits(got, 0, 3), version);
        bly_free(got);
        assert_ok(bly_keeper_save(k));
        assert_holds(target, bly_keeper_filter(k));
    }
    assert_busy();
    assert_ok(bly_add(bly_keeper_filter(k), "lost", 4));
    bly_keeper_free(k);
    assert_ok(bly_update(target, NULL, do_nothing, NULL));
    assert_ok(bly_keeper_new(target, NULL, f, &k));
    assert_int_equal(hits(bly_keeper_filter(k), 0, 3), 3);
    assert_false(bly_has(bly_keeper_filter(k), "lost", 4));
    bly_keeper_free(k);
    bly_keeper_free(NULL);
    bly_free(f);
}

/* What cannot be saved leaves the version before, and the lock. */
static void keepers_outlive_a_failure(void **unused)
{
    (void)unused;
    bly_filter *f = roomy();
    bly_keeper *k;
    assert_ok(bly_keeper_new(target, NULL, f, &k));
    assert_ok(bly_add(bly_keeper_filter(k), "key", 3));
    struct rlimit old, none = { 0 };
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    none.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_status(bly_keeper_save(k), BLY_EIO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_holds(target, f);
    assert_busy();
    assert_ok(bly_keeper_save(k));
    assert_holds(target, bly_keeper_filter(k));
    bly_keeper_free(k);
    bly_free(f);
}

static void keep_and_add(uint64_t key)
{
    bly_filter *f = roomy();
    bly_keeper *k;
    if (bly_keeper_new(target, NULL, f, &k) ||
        add_key(bly_keeper_filter(k), &key) || bly_keeper_save(k))
        _exit(1);
    _exit(0);
}

/* Four that find no file: one makes it, and none of their keys is lost. */
static void keepers_create_one_file(void **unused)
{
    (void)unused;
    assert_four_create(keep_and_add, 4);
}

static void keyed_files_stay_keyed(void **unused)
{
    (void)unused;
    static const unsigned char secret[BLY_SECRET_BYTES + 1] =
        "0123456789abcdef";
    bly_spec spec = spec_for(&kind, NKEYS);
    spec.seed = 0;
    spec.secret = secret;
    bly_filter *f = filled_from(&spec, 0, NKEYS), *got;
    bly_access how = { 0 };
    assert_ok(bly_save(f, target));
    assert_status(bly_open(target, &how, &got), BLY_ESECRET);
    assert_says("words.bly: a keyed filter");
    assert_status(bly_map(target, &how, &got), BLY_ESECRET);
    assert_status(bly_update(target, &how, do_nothing, NULL), BLY_ESECRET);
    how.blind = true;
    assert_ok(bly_update(target, &how, do_nothing, NULL));
    assert_holds(target, f);
    how.secret = secret;
    assert_ok(bly_map(target, &how, &got));
    assert_int_equal(hits(got, 0, NKEYS), NKEYS);
    bly_free(got);
    bly_free(f);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(saved_files_open),
        FILE_TEST(opening_reads_in_place),
        FILE_TEST(permissions_stay),
        FILE_TEST(links_are_followed),
        FILE_TEST(pipes_and_devices_are_written),
        FILE_TEST(open_files_are_written),
        FILE_TEST(bad_paths_are_named),
        FILE_TEST(rights_are_respected),
        FILE_TEST(owners_stay),
        FILE_TEST(other_bytes_are_named),
        FILE_TEST(damaged_maps_are_harmless),
        FILE_TEST(maps_are_read_only_and_last),
        FILE_TEST(updates_change_the_file),
        FILE_TEST(no_update_is_lost),
        FILE_TEST(threads_queue_as_processes_do),
        FILE_TEST(saves_wait_for_updates),
        FILE_TEST(creators_leave_a_whole_file),
        FILE_TEST(drafts_replace_the_whole_file),
        FILE_TEST(drafts_swap_only_what_was_read),
        FILE_TEST(drafts_in_folders_follow_no_links),
        FILE_TEST(drafts_leave_holes),
        FILE_TEST(stale_drafts_are_removed),
        FILE_TEST(waits_are_asked_about),
        FILE_TEST(keepers_hold_the_file),
        FILE_TEST(keepers_outlive_a_failure),
        FILE_TEST(keepers_create_one_file),
        FILE_TEST(keyed_files_stay_keyed),
    };
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}

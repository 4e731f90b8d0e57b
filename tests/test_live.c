/*
 * test_live.c - one filter, many processes
 *
 * Processes are forked, killed with SIGKILL at random moments, and asked for
 * what they had reported; the reports go through memory that they share with
 * this program. After a power cut a file has another boot in its control page,
 * which is put there by hand.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bloomery/live.h>

#include "format/living.h"

extern uint32_t bly_live_system;

/* Where the control page is, and in it: docs/format.md. */
#define CONTROL 4096
#define AT_IN_USE (CONTROL + 16)
#define AT_BOOT (CONTROL + 24)
#define AT_MOVED (CONTROL + 48)
#define PAYLOAD 32768

static char folder[] = "/tmp/test_live.XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/live.bly", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static bly_spec small_spec(void)
{
    return (bly_spec){ .items = 10000, .fpr = 0.01 };
}

/* A live filter of a spec, at `path`, with nothing in it. */
static bly_filter *fresh(const bly_spec *spec)
{
    bly_filter *f;
    unlink(path);
    assert_ok(bly_share(path, spec, NULL, &f));
    return f;
}

static bly_live told(const bly_filter *f)
{
    bly_live l;
    assert_ok(bly_live_of(f, &l));
    return l;
}

static size_t count_in(const bly_filter *f, uint64_t first, size_t n)
{
    size_t in = 0;
    for (uint64_t i = 0; i < n; i++)
        in += bly_has_int(f, first + i);
    return in;
}

static void add_range(bly_filter *f, uint64_t first, size_t n)
{
    for (uint64_t i = 0; i < n; i++)
        assert_ok(bly_add_int(f, first + i));
}

static bool can_live(const law_row *row)
{
    bly_filter *f;
    const bly_spec spec = law_spec(row, 1000);
    unlink(path);
    if (bly_share(path, &spec, NULL, &f))
        return false;
    bly_free(f);
    unlink(path);
    return true;
}

/* ------------------------------------------------------------- every kind */

/* What cannot be live says why, and leaves no file behind. */
LAW(lives_or_says_why)
{
    bly_filter *f;
    const bly_spec spec = law_spec(row, 1000);
    unlink(path);
    const bly_status st = bly_share(path, &spec, NULL, &f);
    if (st) {
        assert_int_equal(st, BLY_ENOTSUP);
        assert_null(f);
        assert_non_null(strstr(bly_error(), "cannot be live: "));
        assert_int_equal(access(path, F_OK), -1);
        return;
    }
    assert_true(kind->can & BLY_CAN(SHARE));
    bly_free(f);
}

/* Children add, and the parent and those who open it later find the keys. */
LAW(what_one_adds_all_find)
{
    if (!can_live(row))
        skip_for("the kind cannot be live");
    const bly_spec spec = law_spec(row, 4000);
    bly_filter *const f = fresh(&spec);
    pid_t child[3];
    for (int c = 0; c < 3; c++) {
        child[c] = fork();
        if (child[c])
            continue;
        /* One goes on with what it was born with; the others open it. */
        bly_filter *own = f;
        bool ok = c == 0 || !bly_share(path, &spec, NULL, &own);
        uint64_t keys[64];
        for (uint64_t i = 0; ok && i < 1000; i += 50) {
            for (uint64_t j = 0; j < 50; j++)
                keys[j] = (uint64_t)c * 1000 + i + j;
            ok = !bly_add_ints(own, keys, 50, NULL, NULL);
        }
        if (ok && c == 1)
            bly_free(own);
        _exit(!ok);
    }
    for (int c = 0; c < 3; c++) {
        int status;
        assert_int_equal(waitpid(child[c], &status, 0), child[c]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_in(f, 0, 3000), 3000);
    assert_int_equal(told(f).users, 1);
    bly_stats s;
    bly_stat(f, &s);
    assert_between((double)s.items_added, 2700, 3000);
    bly_filter *copy, *again;
    assert_ok(bly_clone(f, &copy));
    assert_int_equal(count_in(copy, 0, 3000), 3000);
    assert_ok(bly_add_int(copy, 5000));
    bly_free(f);
    assert_ok(bly_share(path, NULL, NULL, &again));
    assert_int_equal(count_in(again, 0, 3000), 3000);
    /* A clone is an ordinary filter, and becomes a live one again. */
    char other[80];
    snprintf(other, sizeof other, "%s.2", path);
    assert_ok(bly_save(again, other));
    bly_filter *opened;
    assert_ok(bly_open(other, NULL, &opened));
    assert_int_equal(count_in(opened, 0, 3000), 3000);
    unlink(other);
    assert_ok(bly_live_make(opened, other));
    bly_free(opened);
    assert_status(bly_live_make(copy, other), BLY_EBUSY);
    assert_ok(bly_share(other, &spec, NULL, &opened));
    assert_int_equal(count_in(opened, 0, 3000), 3000);
    bly_free(opened);
    unlink(other);
    bly_free(copy);
    bly_free(again);
}

/* Killed at any moment: whatever was reported is there, nothing hangs, and the
 * next one can use it and make an ordinary filter of it. */
LAW(no_reported_key_is_lost)
{
    if (!can_live(row))
        skip_for("the kind cannot be live");
    const bly_spec spec = law_spec(row, 200000);
    bly_filter *f = fresh(&spec);
    uint64_t random = 46;
    _Atomic uint64_t *const done = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(done != MAP_FAILED);
    const unsigned kills = getenv("BLY_FULL") ? 100 : 6;
    for (uint64_t round = 0; round < kills; round++) {
        const uint64_t first = round << 32;
        atomic_store(done, 0);
        const pid_t child = fork();
        if (!child) {
            bly_filter *own = f;
            if (round % 2 && bly_share(path, NULL, NULL, &own))
                _exit(1);
            for (uint64_t i = 0;; i++) {
                if (bly_add_int(own, first + i))
                    _exit(1);
                atomic_store(done, i + 1);
            }
        }
        /* The child has begun, and is somewhere. */
        const uint64_t enough = test_random(&random) % 200;
        while (atomic_load(done) < enough)
            sched_yield();
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        const size_t n = (size_t)atomic_load(done);
        assert_int_equal(count_in(f, first, n), n);
        if (round % 3 == 2) { /* nobody is left: it is recovered */
            bly_free(f);
            assert_ok(bly_share(path, &spec, NULL, &f));
            assert_int_equal(count_in(f, first, n), n);
        }
    }
    bly_free(f);
    assert_ok(bly_share(path, NULL, NULL, &f));
    assert_false(told(f).unclean);
    char other[80];
    snprintf(other, sizeof other, "%s.2", path);
    assert_ok(bly_save(f, other));
    bly_free(f);
    assert_ok(bly_open(other, NULL, &f));
    bly_free(f);
    unlink(other);
    munmap((void *)done, 4096);
}

/* ------------------------------------------------------------ what is said */

static void checkpoints_are_told(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    bly_filter *f = fresh(&spec), *g;
    bly_live l = told(f);
    assert_int_equal(l.generation, 1);
    assert_int_equal(l.users, 1);
    assert_int_equal(l.checkpoint, 0);
    assert_true(l.created > 1600000000);
    add_range(f, 0, 100);
    assert_ok(bly_checkpoint(f));
    add_range(f, 100, 100);
    l = told(f);
    assert_int_equal(l.checkpoint, 1);
    assert_between((double)l.checkpoint_items, 95, 100);
    assert_between((double)l.items_added, 190, 200);
    assert_ok(bly_share(path, &spec, NULL, &g));
    assert_int_equal(told(g).users, 2);
    bly_live_user users[4];
    assert_int_equal(bly_live_users(g, users, 4), 2);
    assert_int_equal(users[0].pid, getpid());
    assert_int_equal(bly_live_users(f, users, 1), 2);
    bly_free(f);
    assert_int_equal(told(g).users, 1);
    assert_int_equal(told(g).checkpoint, 1);
    bly_free(g); /* the last one makes a checkpoint */
    assert_ok(bly_share(path, NULL, NULL, &g));
    assert_int_equal(told(g).checkpoint, 2);
    assert_false(told(g).unclean);
    bly_free(g);
}

static void put_file(off_t at, const void *bytes, size_t n)
{
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pwrite(fd, bytes, n, at) == (ssize_t)n);
    close(fd);
}

/* A file that is in use, of another boot: the machine stopped. */
static void a_power_cut_is_told(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    bly_filter *f = fresh(&spec);
    const uint64_t in_use = 1;
    add_range(f, 0, 50);
    bly_free(f);
    put_file(AT_IN_USE, &in_use, sizeof in_use);
    put_file(AT_BOOT, "0123456789abcdef", 16);
    const bly_access reading = { .reading = true };
    assert_ok(bly_share(path, NULL, &reading, &f));
    assert_true(told(f).unclean && told(f).reading);
    bly_free(f);
    assert_ok(bly_share(path, NULL, NULL, &f));
    assert_true(told(f).unclean);
    assert_int_equal(count_in(f, 0, 50), 50);
    bly_free(f);
    assert_ok(bly_share(path, NULL, NULL, &f));
    assert_true(told(f).unclean); /* until somebody decides */
    assert_ok(bly_live_accept(f));
    assert_false(told(f).unclean);
    bly_free(f);
    assert_ok(bly_share(path, NULL, NULL, &f));
    assert_false(told(f).unclean);
    bly_free(f);
}

/* -------------------------------------------------------------- generations */

static void generations_follow(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    bly_filter *f = fresh(&spec), *g, *next;
    assert_ok(bly_share(path, NULL, NULL, &g));
    add_range(f, 0, 100);
    assert_false(bly_live_replaced(g));
    const bly_spec larger = { .items = 100000, .fpr = 0.001 };
    assert_ok(bly_new(&larger, &next));
    add_range(next, 1000, 100);
    assert_status(bly_live_replace(f, next, true), BLY_EUNFIT);
    add_range(g, 100, 1); /* nothing has changed */
    assert_ok(bly_live_replace(f, next, false));
    bly_free(next);
    assert_true(bly_live_replaced(g));
    /* The old one answers on, and takes nothing. */
    assert_int_equal(count_in(g, 0, 100), 100);
    assert_status(bly_add_int(g, 7), BLY_EBUSY);
    assert_status(bly_add(g, "12345678", 8), BLY_EBUSY);
    assert_status(bly_add(g, "x", 1), BLY_EBUSY);
    size_t ndone = 9;
    const uint64_t some[3] = { 1, 2, 3 };
    assert_status(bly_add_hashes(g, some, 3, NULL, &ndone), BLY_EBUSY);
    assert_int_equal(ndone, 0);
    assert_status(bly_checkpoint(g), BLY_EBUSY);
    assert_ok(bly_new(&spec, &next));
    assert_status(bly_live_replace(g, next, false), BLY_EBUSY);
    assert_ok(bly_live_follow(&g));
    assert_ok(bly_live_follow(&f));
    assert_int_equal(told(g).generation, 2);
    assert_int_equal(told(g).users, 2);
    assert_int_equal(count_in(f, 1000, 100), 100);
    assert_true(count_in(f, 0, 100) < 20);
    add_range(g, 500, 1);
    assert_ok(bly_live_follow(&g)); /* nothing to do */
    bly_free(f);
    bly_free(g);
    bly_free(next);
}

/* The keys that are added while it is replaced are in one of the two, and in
 * the new one if they were reported. */
static void nothing_is_lost_on_the_way(void **state)
{
    (void)state;
    const bly_spec spec = { .items = 1000000, .fpr = 0.001 };
    bly_filter *f = fresh(&spec), *next;
    const pid_t child = fork();
    if (!child) {
        bly_filter *own;
        if (bly_share(path, NULL, NULL, &own))
            _exit(1);
        for (uint64_t i = 0; told(own).generation < 6 && i < 1 << 20; i++) {
            bly_status st;
            while ((st = bly_add_int(own, i)) == BLY_EBUSY)
                if (bly_live_follow(&own))
                    _exit(2);
            if (st)
                _exit(3);
            if (!bly_has_int(own, i))
                _exit(4);
            if (i % 1000 == 0 && count_in(own, 0, (size_t)i) != i)
                _exit(5);
        }
        _exit(0);
    }
    while (told(f).users < 2) {
        int gone;
        assert_int_equal(waitpid(child, &gone, WNOHANG), 0);
        sched_yield();
    }
    for (int i = 0; i < 5; i++) {
        assert_ok(bly_new(&spec, &next));
        assert_ok(bly_live_replace(f, next, true));
        bly_free(next);
        assert_ok(bly_live_follow(&f));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bly_free(f);
}

/* Whoever replaced it died on the way: the next one goes on with the old one.
 */
static void half_a_replacement_is_undone(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    bly_filter *f = fresh(&spec);
    const uint64_t moved = 1;
    add_range(f, 0, 10);
    put_file(AT_MOVED, &moved, sizeof moved);
    assert_status(bly_add_int(f, 10), BLY_EBUSY);
    assert_ok(bly_live_follow(&f));
    assert_int_equal(told(f).generation, 1);
    assert_ok(bly_add_int(f, 10));
    assert_int_equal(count_in(f, 0, 11), 11);
    bly_free(f);
}

/* -------------------------------------------------------------- bad input */

static void other_specs_are_refused(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    bly_filter *f = fresh(&spec), *g;
    const unsigned char secret[BLY_SECRET_BYTES] = "0123456789abcde";
    const struct {
        bly_spec spec;
        const char *says;
    } rows[] = {
        { { .items = 10000, .fpr = 0.01, .kind = "classic" }, "classic" },
        { { .items = 20000, .fpr = 0.01 }, "10000" },
        { { .items = 10000, .fpr = 0.001 }, "bytes" },
        { { .items = 10000, .fpr = 0.01, .seed = 7 }, "seed" },
        { { .items = 10000, .fpr = 0.01, .secret = secret }, "key" },
        { { .items = 10000, .fpr = 0.01, .keying = { BLY_KEYS_INT64, 0 } },
          "type" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_status st = bly_share(path, &rows[i].spec, NULL, &g);
        assert_true(st == BLY_EUNFIT || st == BLY_ESECRET);
        assert_null(g);
        assert_non_null(strstr(bly_error(), rows[i].says));
    }
    assert_int_equal(told(f).users, 1);
    bly_free(f);
}

static void what_needs_it_alone_is_refused(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    bly_filter *f = fresh(&spec), *g, *h;
    void *cells;
    uint64_t nbytes;
    assert_ok(bly_new(&spec, &g));
    assert_status(bly_merge(f, g), BLY_ENOTSUP);
    assert_status(bly_intersect(f, g), BLY_ENOTSUP);
    assert_status(bly_set_note(f, "note"), BLY_ENOTSUP);
    assert_status(bly_cells_open(f, &cells, &nbytes), BLY_ENOTSUP);
    assert_status(bly_become(f, g), BLY_ENOTSUP);
    assert_status(bly_become(g, f), BLY_ENOTSUP);
    assert_status(bly_open(path, NULL, &h), BLY_EBUSY);
    assert_status(bly_map(path, NULL, &h), BLY_EBUSY);
    assert_non_null(strstr(bly_error(), "bly_share()"));
    assert_status(bly_combine_file(g, BLY_UNION, path), BLY_EBUSY);
    assert_ok(bly_merge(g, f)); /* from it, it is possible */
    assert_status(bly_checkpoint(g), BLY_EINVAL);
    assert_status(bly_live_follow(&g), BLY_EINVAL);
    bly_live l;
    assert_status(bly_live_of(g, &l), BLY_EINVAL);
    assert_false(bly_live_replaced(g));
    bly_free(f);
    unlink(path);
    assert_ok(bly_save(g, path));
    assert_status(bly_share(path, NULL, NULL, &f), BLY_EUNFIT);
    assert_non_null(strstr(bly_error(), "not live"));
    bly_free(g);
    unlink(path);
    assert_status(bly_share(path, NULL, NULL, &f), BLY_EIO);
    assert_status(bly_share(folder, &spec, NULL, &f), BLY_EIO);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    bly_filter *f = fresh(&spec);
    struct stat st;
    bly_free(f);
    assert_int_equal(stat(path, &st), 0);
    unsigned char *const was = malloc((size_t)st.st_size);
    const int fd = open(path, O_RDWR);
    assert_true(was && fd >= 0 &&
                pread(fd, was, (size_t)st.st_size, 0) == st.st_size);
    /* Every bit of the header matters. */
    for (size_t i = 0; i < CONTROL; i += stride(CONTROL, 300)) {
        unsigned char byte = was[i] ^ (unsigned char)(1 << i % 8);
        put_file((off_t)i, &byte, 1);
        assert_true(bly_share(path, NULL, NULL, &f) != BLY_OK);
        assert_null(f);
        put_file((off_t)i, &was[i], 1);
    }
    const off_t sizes[] = { 0, 1, 4095, 4096, 8191, PAYLOAD, st.st_size - 1 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        assert_int_equal(ftruncate(fd, sizes[i]), 0);
        assert_status(bly_share(path, &spec, NULL, &f), BLY_EFORMAT);
        assert_int_equal(pwrite(fd, was, (size_t)st.st_size, 0), st.st_size);
    }
    assert_int_equal(ftruncate(fd, st.st_size + 1), 0);
    assert_status(bly_share(path, &spec, NULL, &f), BLY_EFORMAT);
    assert_int_equal(ftruncate(fd, st.st_size), 0);
    /* Another byte order, and another form of the control page. */
    put_file(CONTROL, "\1\2\3\4\5\6\7", 7);
    put_file(CONTROL + 8, "\2", 1);
    assert_status(bly_share(path, &spec, NULL, &f), BLY_EFORMAT);
    put_file(CONTROL, was + CONTROL, 16);
    assert_ok(bly_share(path, &spec, NULL, &f));
    bly_free(f);
    close(fd);
    free(was);
}

static void networks_are_refused(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    bly_filter *f = fresh(&spec);
    bly_free(f);
    bly_live_system = 0x6969;
    assert_status(bly_share(path, &spec, NULL, &f), BLY_ENOTSUP);
    assert_non_null(strstr(bly_error(), "NFS"));
    unlink(path);
    assert_status(bly_share(path, &spec, NULL, &f), BLY_ENOTSUP);
    assert_int_equal(access(path, F_OK), -1);
    bly_live_system = 0;
}

/* Room is reserved first: where there is none, no file is made. */
static void a_full_disk_is_told(void **state)
{
    (void)state;
    const bly_spec spec = { .items = 10000000, .fpr = 0.01 };
    struct rlimit was, little;
    bly_filter *f;
    unlink(path);
    getrlimit(RLIMIT_FSIZE, &was);
    little = was;
    little.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    const bly_status st = bly_share(path, &spec, NULL, &f);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(st, BLY_EIO);
    assert_int_equal(access(path, F_OK), -1);
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (!bly_live_rescue(info->si_addr))
        signal(number, SIG_DFL);
}

static void truncation_is_survived(void **state)
{
    (void)state;
    const bly_spec spec = { .items = 1000000, .fpr = 0.01 };
    bly_filter *f = fresh(&spec);
    struct sigaction act = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO },
                     was;
    add_range(f, 0, 1000);
    assert_int_equal(sigaction(SIGBUS, &act, &was), 0);
    assert_int_equal(truncate(path, PAYLOAD), 0);
    assert_int_equal(count_in(f, 0, 1000), 1000);
    assert_true(told(f).damaged);
    assert_status(bly_add_int(f, 1), BLY_EIO);
    assert_non_null(strstr(bly_error(), "truncated"));
    assert_status(bly_checkpoint(f), BLY_EIO);
    bly_free(f);
    f = fresh(&spec);
    assert_int_equal(truncate(path, 0), 0);
    assert_status(bly_add_int(f, 1), BLY_EIO);
    assert_true(bly_has_int(f, 1));
    bly_free(f);
    int mine;
    assert_false(bly_live_rescue(&mine));
    sigaction(SIGBUS, &was, NULL);
    unlink(path);
}

static void removal_is_told(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    bly_filter *f = fresh(&spec);
    add_range(f, 0, 10);
    unlink(path);
    assert_ok(bly_add_int(f, 11)); /* nobody looks at each addition */
    assert_status(bly_checkpoint(f), BLY_EIO);
    assert_non_null(strstr(bly_error(), "removed or replaced"));
    bly_free(f);
}

static void rights_are_heeded(void **state)
{
    (void)state;
    const bly_spec spec = small_spec();
    const mode_t mask = umask(027);
    bly_filter *f = fresh(&spec), *g;
    struct stat st;
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    add_range(f, 0, 10);
    assert_int_equal(chmod(path, 0644), 0);
    const pid_t child = fork();
    if (!child) {
        const bly_access reading = { .reading = true };
        if (geteuid() == 0 && (chmod(folder, 0755) || setuid(65534)))
            _exit(1);
        if (geteuid() != st.st_uid &&
            (bly_share(path, NULL, NULL, &g) != BLY_EIO ||
             !strstr(bly_error(), "for reading")))
            _exit(2);
        if (bly_share(path, NULL, &reading, &g))
            _exit(3);
        if (count_in(g, 0, 10) != 10 || bly_add_int(g, 11) != BLY_EREADONLY ||
            bly_checkpoint(g) != BLY_EREADONLY || told(g).users != 1)
            _exit(4);
        bly_free(g);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bly_free(f);
}

/* A child is born while a thread adds, and goes on with all that it found. */
typedef struct adding {
    bly_filter *f;
    _Atomic uint64_t done;
    _Atomic bool enough;
} adding;

static void *add_on(void *arg)
{
    adding *const a = arg;
    while (!atomic_load(&a->enough)) {
        const uint64_t i = atomic_load(&a->done);
        if (bly_add_int(a->f, i))
            break;
        atomic_store(&a->done, i + 1);
    }
    return NULL;
}

static void fork_while_a_thread_adds(void **state)
{
    (void)state;
    const bly_spec spec = { .items = 1000000, .fpr = 0.01 };
    adding a = { .f = fresh(&spec) };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, add_on, &a), 0);
    for (int i = 0; i < 5; i++) {
        const uint64_t enough = atomic_load(&a.done) + 100;
        while (atomic_load(&a.done) < enough)
            sched_yield();
        const pid_t child = fork();
        if (!child) {
            const size_t n = (size_t)atomic_load(&a.done);
            const uint64_t own = (uint64_t)(i + 1) << 40;
            if (count_in(a.f, 0, n) != n || bly_add_int(a.f, own) ||
                bly_checkpoint(a.f))
                _exit(1);
            bly_free(a.f);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_true(bly_has_int(a.f, (uint64_t)(i + 1) << 40));
        assert_int_equal(told(a.f).users, 1);
    }
    atomic_store(&a.enough, true);
    pthread_join(thread, NULL);
    const size_t n = (size_t)atomic_load(&a.done);
    assert_int_equal(count_in(a.f, 0, n), n);
    bly_free(a.f);
}

static void keyed_ones_follow(void **state)
{
    (void)state;
    unsigned char secret[BLY_SECRET_BYTES] = "0123456789abcde";
    const bly_spec spec = { .items = 1000, .secret = secret };
    bly_filter *f = fresh(&spec), *g, *next;
    assert_ok(bly_add(f, "key", 3));
    assert_status(bly_share(path, NULL, NULL, &g), BLY_ESECRET);
    const bly_access how = { .secret = secret };
    assert_ok(bly_share(path, NULL, &how, &g));
    assert_true(bly_has(g, "key", 3));
    assert_ok(bly_clone(f, &next));
    assert_ok(bly_live_replace(f, next, false));
    assert_ok(bly_live_follow(&g));
    assert_true(bly_has(g, "key", 3));
    assert_false(bly_has(g, "yek", 3));
    bly_free(f);
    bly_free(g);
    bly_free(next);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_are_told),
        cmocka_unit_test(a_power_cut_is_told),
        cmocka_unit_test(generations_follow),
        cmocka_unit_test(nothing_is_lost_on_the_way),
        cmocka_unit_test(half_a_replacement_is_undone),
        cmocka_unit_test(other_specs_are_refused),
        cmocka_unit_test(what_needs_it_alone_is_refused),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(networks_are_refused),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(truncation_is_survived),
        cmocka_unit_test(removal_is_told),
        cmocka_unit_test(rights_are_heeded),
        cmocka_unit_test(fork_while_a_thread_adds),
        cmocka_unit_test(keyed_ones_follow),
    };
    if (make_folder(NULL))
        return 2;
    const int failed = run_laws_and("live", tests, COUNT_OF(tests), argc, argv);
    return remove_folder(NULL) || failed;
}

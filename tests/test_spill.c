/*
 * test_spill.c - filters from more keys than the memory bound holds
 *
 * The same keys are built in memory and through a temporary file; the filters
 * must be the same to the last byte. What can go wrong with the file is a
 * status and leaves nothing behind.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1 << 20)

/* A folder of our own, which must be empty in the end. */
static char folder[] = "/tmp/bloomery-spill-XXXXXX";

static void folder_make(void)
{
    if (!mkdtemp(folder))
        abort();
}

static int folder_remove(void)
{
    return rmdir(folder); /* fails where something is left */
}

/* Every third key comes twice. */
static uint64_t *stream_for(const bly_spec *spec, size_t n, size_t *total)
{
    uint64_t *h = hashes_for(spec, 0, n);
    *total = n + n / 3;
    h = realloc(h, (*total + 1) * sizeof *h);
    assert_non_null(h);
    for (size_t i = n; i < *total; i++)
        h[i] = h[(i - n) * 3];
    return h;
}

static bly_status build_status(const bly_spec *spec, const uint64_t *h,
                               const uint64_t *values, size_t n,
                               unsigned nthreads, bly_filter **out)
{
    bly_builder *b;
    *out = NULL;
    bly_status st = bly_builder_new(spec, &b);
    for (size_t at = 0; at < n && !st; at += 10000)
        st = bly_builder_add(b, h + at, values ? values + at : NULL,
                             n - at < 10000 ? n - at : 10000);
    if (!st)
        st = bly_builder_finish(b, nthreads, out);
    bly_builder_free(b);
    return st;
}

/* How many bytes of this process are in files without a name in the folder. */
static off_t spilled_bytes(void)
{
    off_t sum = 0;
    for (int fd = 3; fd < 64; fd++) {
        char link[64], path[512];
        struct stat st;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(link, path, sizeof path - 1);
        if (n <= 0)
            continue;
        path[n] = '\0';
        if (strncmp(path, folder, strlen(folder)) == 0 && !fstat(fd, &st)) {
            assert_int_equal(st.st_nlink, 0);
            assert_int_equal(st.st_mode & 0777, 0600);
            sum += st.st_size;
        }
    }
    return sum;
}

/* Kinds that add, whatever they do with keys that come twice. */
LAW(spilled_equals_kept)
{
    needs(kind, BLY_CAN(ADD));
    bly_spec spec = law_spec(row, 0);
    size_t total;
    uint64_t *h = stream_for(&spec, 300000, &total);
    bly_filter *kept, *spilled;
    const bly_status st = build_status(&spec, h, NULL, total, 1, &kept);
    if (st) { /* a kind that has no room for copies */
        free(h);
        skip_for("the kind has no room for copies");
    }
    bly_stats stats;
    bly_peek(kept, &stats);
    spec.spill = folder;
    spec.max_bytes = stats.bytes > 2 * MIB ? stats.bytes : 2 * MIB;
    byte_array want = written(kept);
    bly_free(kept);
    assert_ok(build_status(&spec, h, NULL, total, 2, &spilled));
    assert_same_bytes(spilled, &want);
    free(want.at);
    bly_free(spilled);
    free(h);
}

/* Without a bound, some hashes stay in memory and the filter is as large as it
 * comes. */
LAW(spilled_without_a_bound_equals_kept)
{
    needs(kind, BLY_CAN(ADD));
    bly_spec spec = law_spec(row, 0);
    size_t total;
    uint64_t *h = stream_for(&spec, 600000, &total);
    bly_filter *kept, *spilled;
    const bly_status st = build_status(&spec, h, NULL, total, 1, &kept);
    if (st) { /* a kind that has no room for copies */
        free(h);
        skip_for("the kind has no room for copies");
    }
    byte_array want = written(kept);
    bly_free(kept);
    spec.spill = folder;
    assert_ok(build_status(&spec, h, NULL, total, 1, &spilled));
    assert_same_bytes(spilled, &want);
    free(want.at);
    bly_free(spilled);
    free(h);
}

/* Static kinds with shards, in groups of one and of several. */
static void static_in_groups(void **state)
{
    (void)state;
    static const char *const kinds[] = { "fuse", "xor" };
    static const bly_option shards = { "shards", "32" };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        bly_spec spec = { .kind = kinds[i], .options = &shards, .noptions = 1 };
        size_t total;
        uint64_t *h = stream_for(&spec, 600000, &total);
        bly_filter *kept, *spilled;
        assert_ok(build_status(&spec, h, NULL, total, 1, &kept));
        byte_array want = written(kept);
        bly_stats stats;
        bly_stat(kept, &stats);
        assert_int_equal(stats.capacity, 600000);
        spec.spill = folder;
        /* The keys are 6.4 MB; the filter is 0.8 MB, a shard some 0.8; all
         * shards at once would take 25. */
        for (uint64_t bound = 3; bound <= 12; bound += bound < 6 ? 1 : 3) {
            ledger l;
            ledger_open(&l);
            spec.mem = &l.mem;
            spec.max_bytes = bound * MIB;
            for (unsigned threads = 1; threads <= 2; threads++) {
                assert_ok(
                    build_status(&spec, h, NULL, total, threads, &spilled));
                assert_same_bytes(spilled, &want);
                bly_free(spilled);
            }
            ledger_check(&l);
            /* Registers, names and rounding come on top. */
            assert_between((double)l.peak, MIB,
                           (double)(bound * MIB) + 0.5 * MIB);
        }
        free(want.at);
        bly_free(kept);
        free(h);
    }
}

/* Below what the filter and one shard take, it says so. */
static void too_low_a_bound(void **state)
{
    (void)state;
    const bly_spec spec = { .kind = "fuse",
                            .max_bytes = 2 * MIB,
                            .spill = folder };
    const bly_spec unbound = { .kind = "fuse", .spill = folder };
    size_t total;
    uint64_t *h = stream_for(&spec, 600000, &total);
    bly_filter *f;
    assert_status(build_status(&spec, h, NULL, total, 1, &f), BLY_ERANGE);
    assert_null(f);
    assert_non_null(strstr(bly_error(), "shards"));
    assert_status(build_status(&unbound, h, NULL, total, 1, &f), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "max_bytes"));
    free(h);
}

/* Without a folder the bound is one all the same. */
static void bound_without_folder(void **state)
{
    (void)state;
    static const bly_option shards = { "shards", "32" };
    bly_spec spec = { .kind = "fuse", .options = &shards, .noptions = 1 };
    size_t total;
    uint64_t *h = stream_for(&spec, 600000, &total);
    bly_filter *f;
    ledger l;
    ledger_open(&l);
    spec.mem = &l.mem;
    spec.max_bytes = 6 * MIB; /* less than the hashes take */
    assert_status(build_status(&spec, h, NULL, total, 1, &f), BLY_ERANGE);
    assert_null(f);
    assert_non_null(strstr(bly_error(), "folder"));
    spec.kind = "blocked";
    spec.noptions = 0;
    assert_status(build_status(&spec, h, NULL, total, 1, &f), BLY_ERANGE);
    spec.kind = "fuse"; /* which takes several times that with one shard */
    spec.max_bytes = 9 * MIB;
    assert_status(build_status(&spec, h, NULL, total, 1, &f), BLY_ERANGE);
    assert_null(f);
    assert_non_null(strstr(bly_error(), "shards"));
    spec.noptions = 1;
    assert_ok(build_status(&spec, h, NULL, total, 1, &f));
    bly_free(f);
    ledger_check(&l);
    /* Of the last chunk, 1 MiB, most is never touched. */
    assert_between((double)l.peak, MIB, 10.5 * MIB);
    free(h);
}

/* The file exists while keys come, has no name, and is gone afterwards; a
 * builder thrown away takes it along. */
static void file_comes_and_goes(void **state)
{
    (void)state;
    const bly_spec spec = { .max_bytes = 2 * MIB, .spill = folder };
    size_t total;
    uint64_t *h = stream_for(&spec, 600000, &total);
    bly_builder *b;
    assert_ok(bly_builder_new(&spec, &b));
    assert_int_equal(spilled_bytes(), 0);
    assert_ok(bly_builder_add(b, h, NULL, total));
    assert_true(spilled_bytes() >= 4 * MIB);
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        assert_true(e->d_name[0] == '.');
    closedir(d);
    bly_builder_free(b);
    assert_int_equal(spilled_bytes(), 0);
    free(h);
}

static void folder_that_is_none(void **state)
{
    (void)state;
    bly_spec spec = { .max_bytes = 2 * MIB, .spill = "/nowhere/at/all" };
    size_t total;
    uint64_t *h = stream_for(&spec, 600000, &total);
    bly_filter *f;
    assert_status(build_status(&spec, h, NULL, total, 1, &f), BLY_EIO);
    assert_non_null(strstr(bly_error(), "/nowhere/at/all"));
    spec.spill = "/dev/null";
    assert_status(build_status(&spec, h, NULL, total, 1, &f), BLY_EIO);
    /* Where it is not needed it is not looked at. */
    assert_ok(build_status(&spec, h, NULL, 1000, 1, &f));
    bly_free(f);
    free(h);
}

/* A disk that is full in the middle: here a limit on the size of files. */
static void file_that_cannot_grow(void **state)
{
    (void)state;
    const bly_spec spec = { .max_bytes = 2 * MIB, .spill = folder };
    size_t total;
    uint64_t *h = stream_for(&spec, 600000, &total);
    struct rlimit before, low;
    bly_filter *f;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = 3 * MIB + 1000;
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    const bly_status st = build_status(&spec, h, NULL, total, 1, &f);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, was);
    assert_int_equal(st, BLY_EIO);
    assert_null(f);
    assert_non_null(strstr(bly_error(), folder));
    assert_int_equal(spilled_bytes(), 0);
    free(h);
}

/* A file that cannot be read back: another one takes its place. */
static void file_that_is_lost(void **state)
{
    (void)state;
    const bly_spec spec = { .max_bytes = 2 * MIB, .spill = folder };
    size_t total;
    uint64_t *h = stream_for(&spec, 600000, &total);
    bly_builder *b;
    bly_filter *f;
    assert_ok(bly_builder_new(&spec, &b));
    assert_ok(bly_builder_add(b, h, NULL, total));
    const int null = open("/dev/null", O_RDWR);
    bool lost = false;
    for (int fd = 3; fd < 64; fd++) {
        char link[64], path[512];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(link, path, sizeof path - 1);
        if (n > 0 && strncmp(path, folder, strlen(folder)) == 0)
            lost = dup2(null, fd) == fd;
    }
    assert_true(lost);
    close(null);
    assert_status(bly_builder_finish(b, 1, &f), BLY_EIO);
    assert_null(f);
    bly_builder_free(b);
    free(h);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(static_in_groups),
        cmocka_unit_test(too_low_a_bound),
        cmocka_unit_test(bound_without_folder),
        cmocka_unit_test(file_comes_and_goes),
        cmocka_unit_test(folder_that_is_none),
        cmocka_unit_test(file_that_cannot_grow),
        cmocka_unit_test(file_that_is_lost),
    };
    folder_make();
    const int failed =
        run_laws_and("spill", tests, COUNT_OF(tests), argc, argv);
    return folder_remove() ? 1 : failed;
}

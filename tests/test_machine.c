/* LDFLAGS: -Wl,--wrap=fopen,--wrap=sysconf */
/*
 * test_machine.c - how much memory may be used, in containers of all kinds
 *
 * The linker sends what the library opens through this file, which shows it
 * files of its own: /proc/self/cgroup and the limits of control groups.
 */
#define _GNU_SOURCE
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MACHINE (UINT64_C(1) << 34) /* 16 GiB in pages of 4 KiB */

/* What there is to open: path and text, up to a NULL. */
static const char *const *shown;
static long pages = (long)(MACHINE >> 12);

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
long __real_sysconf(int name);
long __wrap_sysconf(int name);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    if (!shown)
        return __real_fopen(path, mode);
    for (size_t i = 0; shown[i]; i += 2)
        if (strcmp(shown[i], path) == 0) {
            const size_t n = strlen(shown[i + 1]);
            /* fmemopen() takes no array of no bytes. */
            return n ? fmemopen((void *)(uintptr_t)shown[i + 1], n, "r")
                     : __real_fopen("/dev/null", "r");
        }
    return NULL;
}

long __wrap_sysconf(int name)
{
    return !shown                   ? __real_sysconf(name)
           : name == _SC_PHYS_PAGES ? pages
                                    : 4096;
}

static uint64_t limit_where(const char *const *files)
{
    shown = files;
    const uint64_t limit = bly_memory_limit();
    shown = NULL;
    return limit;
}

#define LIMIT(...) limit_where((const char *const[]){ __VA_ARGS__, NULL })
#define GROUPS "/proc/self/cgroup"
#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/memory"

static void no_groups(void **state)
{
    (void)state;
    assert_int_equal(LIMIT("nothing", ""), MACHINE);
    assert_int_equal(LIMIT(GROUPS, ""), MACHINE);
    assert_int_equal(LIMIT(GROUPS, "0::/\n"), MACHINE);
    pages = -1; /* not known: no limit */
    assert_true(LIMIT("nothing", "") == UINT64_MAX);
    pages = (long)(MACHINE >> 12);
}

static void groups_of_version_2(void **state)
{
    (void)state;
    assert_int_equal(LIMIT(GROUPS, "0::/\n", V2 "/memory.max", "1000000\n"),
                     1000000);
    assert_int_equal(LIMIT(GROUPS, "0::/\n", V2 "/memory.max", "max\n"),
                     MACHINE);
    assert_int_equal(LIMIT(GROUPS, "0::/\n", V2 "/memory.max", ""), MACHINE);
    assert_int_equal(LIMIT(GROUPS, "0::/\n", V2 "/memory.max", "-5\n"),
                     MACHINE);
    /* More than there is: the machine's. */
    assert_int_equal(
        LIMIT(GROUPS, "0::/\n", V2 "/memory.max", "9223372036854771712\n"),
        MACHINE);
    /* The least of a group and those around it, whichever it is. */
    assert_int_equal(LIMIT(GROUPS, "0::/a/b\n", V2 "/a/b/memory.max", "max\n",
                           V2 "/a/memory.max", "3000000\n", V2 "/memory.max",
                           "4000000\n"),
                     3000000);
    assert_int_equal(LIMIT(GROUPS, "0::/a/b", V2 "/a/b/memory.max", "2000000\n",
                           V2 "/a/memory.max", "3000000\n"),
                     2000000);
    /* The path of the host, where a container sees its group as the root. */
    assert_int_equal(
        LIMIT(GROUPS, "0::/docker/0a1b2c\n", V2 "/memory.max", "5000000\n"),
        5000000);
}

static void groups_of_version_1(void **state)
{
    (void)state;
    assert_int_equal(LIMIT(GROUPS, "5:cpu:/a\n4:memory:/a/\n0::/\n",
                           V1 "/a/memory.limit_in_bytes", "6000000\n",
                           "/sys/fs/cgroup/cpu/a/memory.limit_in_bytes", "7\n"),
                     6000000);
}

/* Lines that are none. */
static void strange_lines(void **state)
{
    (void)state;
    static char longest[6000];
    memset(longest, 'x', sizeof longest - 1);
    memcpy(longest, "0::/", 4);
    assert_int_equal(LIMIT(GROUPS, "nonsense\n0:\n0::\n0::relative\n\n",
                           V2 "/memory.max", "8\n"),
                     MACHINE);
    assert_int_equal(LIMIT(GROUPS, longest, V2 "/memory.max", "8\n"), MACHINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_groups),
        cmocka_unit_test(groups_of_version_2),
        cmocka_unit_test(groups_of_version_1),
        cmocka_unit_test(strange_lines),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}

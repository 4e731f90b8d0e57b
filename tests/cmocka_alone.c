/*
 * cmocka_alone.c - the part of cmocka that the tests use
 *
 * Debian has cmocka for its own C library alone. This is what the assertions
 * of cmocka.h call, for programs of another one: tests/other_libc links the
 * unit tests with it. A test that fails or is skipped jumps back to where it
 * was started; what it had allocated stays, and crashes are not caught.
 */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RUNS, FAILED, SKIPPED };

static jmp_buf running;
static const char *wanted = "*"; /* tests, as a pattern of a shell */

void print_message(const char *const format, ...)
{
    va_list ap;
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
}

void print_error(const char *const format, ...)
{
    va_list ap;
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
}

void cmocka_set_test_filter(const char *pattern)
{
    wanted = pattern;
}

void _fail(const char *const file, const int line)
{
    print_error("%s:%d: failed\n", file, line);
    longjmp(running, FAILED);
}

void _skip(const char *const file, const int line)
{
    (void)file;
    (void)line;
    longjmp(running, SKIPPED);
}

/* --------------------------------------------------------------- assertions */

void _assert_true(const LargestIntegralType result,
                  const char *const expression, const char *const file,
                  const int line)
{
    if (result)
        return;
    print_error("%s\n", expression);
    _fail(file, line);
}

static void differ(bool right, const char *what, const char *file, int line)
{
    if (right)
        return;
    print_error("%s\n", what);
    _fail(file, line);
}

void _assert_int_equal(const LargestIntegralType a, const LargestIntegralType b,
                       const char *const file, const int line)
{
    if (a != b)
        print_error("%#llx, %#llx: ", (unsigned long long)a,
                    (unsigned long long)b);
    differ(a == b, "not the same", file, line);
}

void _assert_int_not_equal(const LargestIntegralType a,
                           const LargestIntegralType b, const char *const file,
                           const int line)
{
    differ(a != b, "the same", file, line);
}

void _assert_string_equal(const char *const a, const char *const b,
                          const char *const file, const int line)
{
    if (strcmp(a, b) != 0)
        print_error("\"%s\", \"%s\": ", a, b);
    differ(strcmp(a, b) == 0, "not the same", file, line);
}

void _assert_string_not_equal(const char *const a, const char *const b,
                              const char *file, const int line)
{
    differ(strcmp(a, b) != 0, "the same text", file, line);
}

void _assert_memory_equal(const void *const a, const void *const b,
                          const size_t size, const char *const file,
                          const int line)
{
    differ(memcmp(a, b, size) == 0, "bytes differ", file, line);
}

void _assert_in_range(const LargestIntegralType value,
                      const LargestIntegralType minimum,
                      const LargestIntegralType maximum, const char *const file,
                      const int line)
{
    differ(value >= minimum && value <= maximum, "out of range", file, line);
}

/* ------------------------------------------------------------------ running */

static int run_one(const struct CMUnitTest *t)
{
    void *state = t->initial_state;
    const int end = setjmp(running);
    if (end == RUNS) {
        if (t->setup_func && t->setup_func(&state))
            return FAILED;
        t->test_func(&state);
        if (t->teardown_func && t->teardown_func(&state))
            return FAILED;
    }
    return end;
}

int _cmocka_run_group_tests(const char *group_name,
                            const struct CMUnitTest *const tests,
                            const size_t num_tests,
                            CMFixtureFunction group_setup,
                            CMFixtureFunction group_teardown)
{
    int count[3] = { 0 };
    void *state = NULL;
    if (group_setup && group_setup(&state))
        return 1;
    for (size_t i = 0; i < num_tests; i++) {
        if (fnmatch(wanted, tests[i].name, 0) != 0)
            continue;
        const int end = run_one(&tests[i]);
        count[end]++;
        if (end == FAILED)
            print_error("[  FAILED  ] %s\n", tests[i].name);
    }
    if (group_teardown && group_teardown(&state))
        count[FAILED]++;
    print_message("%s: %d passed, %d failed, %d skipped\n", group_name,
                  count[RUNS], count[FAILED], count[SKIPPED]);
    return count[FAILED];
}

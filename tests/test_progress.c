/*
 * test_progress.c - the line of progress, at any width
 */
#include "report/say.h" /* whose fail() is a macro of cmocka's further down */

#include "support.h"

#include <string.h>

static const struct progress known = { 12345678, 4000, 10000, 8.0, "keys" };
static const struct progress unknown = { 12345678, 4000, 0, 8.0, "documents" };
static const struct progress extreme = { UINT64_MAX, 1, UINT64_MAX, 1e-9,
                                         "documents" };
static const struct progress nothing = { 0, 0, 0, 1.0, "keys" };

static void is_at(const struct progress *p, int columns, const char *text)
{
    char line[PROGRESS_ROOM];
    assert_int_equal(progress_text(line, columns, p), (int)strlen(text));
    assert_string_equal(line, text);
}

static void less_telling_parts_go_first(void **state)
{
    (void)state;
    is_at(&known, 80, "12345678 keys, 1.5 M/s, 40 %, 12 s left");
    is_at(&known, 40, "12345678 keys, 1.5 M/s, 40 %, 12 s left");
    is_at(&known, 39, "12345678 keys, 40 %, 12 s left");
    is_at(&known, 30, "40 %, 12 s left");
    is_at(&known, 15, "40 %");
    is_at(&known, 5, "40 %");
    is_at(&known, 4, "");
    is_at(&unknown, 40, "12345678 documents, 1.5 M/s");
    is_at(&unknown, 27, "12345678 documents");
    is_at(&unknown, 18, "");
}

static void no_width_is_passed(void **state)
{
    (void)state;
    const struct progress *const all[] = { &known, &unknown, &extreme,
                                           &nothing };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int before = 0;
        for (int columns = 1; columns <= 300; columns++) {
            char line[PROGRESS_ROOM];
            const int n = progress_text(line, columns, all[i]);
            assert_true(n < columns && n >= before);
            assert_int_equal(n, (int)strlen(line));
            before = n;
        }
        assert_true(before > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_telling_parts_go_first),
        cmocka_unit_test(no_width_is_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_number.c - numbers as people write them
 */
#define _GNU_SOURCE
#include "support.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNTOUCHED UINT64_C(0xdeadbeef)

static void assert_count(const char *text, uint64_t want)
{
    uint64_t got = UNTOUCHED;
    if (!bly_parse_count(text, &got) || got != want)
        fail_msg("count \"%s\" gives %llu, not %llu", text,
                 (unsigned long long)got, (unsigned long long)want);
}

static void assert_no_count(const char *text)
{
    uint64_t got = UNTOUCHED;
    if (bly_parse_count(text, &got))
        fail_msg("count \"%s\" gives %llu", text, (unsigned long long)got);
    assert_int_equal(got, UNTOUCHED);
}

static void assert_real(const char *text, double want)
{
    double got = -1;
    if (!bly_parse_real(text, &got) || got != want)
        fail_msg("real \"%s\" gives %.17g, not %.17g", text, got, want);
}

static void assert_no_real(const char *text)
{
    double got = -1;
    if (bly_parse_real(text, &got))
        fail_msg("real \"%s\" gives %.17g", text, got);
    assert_true(got == -1);
}

static void counts(void **state)
{
    (void)state;
    assert_count("0", 0);
    assert_count("00012", 12);
    assert_count("1e6", 1000000);
    assert_count("1E6", 1000000);
    assert_count("1e+3", 1000);
    assert_count("2500e-2", 25);
    assert_count("10M", 10000000);
    assert_count("1.5k", 1500);
    assert_count(".5k", 500);
    assert_count("5.", 5);
    assert_count("1e3k", 1000000);
    assert_count("1e-3k", 1);
    assert_count("0e99999", 0);
    assert_count("0.000e-99999", 0);
    assert_count("1.00000000000000000000000000000000", 1);
    assert_count("100000000000000000000000000000e-20", 1000000000);
}

static void every_suffix(void **state)
{
    (void)state;
    static const struct {
        const char *suffix;
        uint64_t factor;
    } rows[] = {
        { "", 1 },
        { "k", 1000 },
        { "K", 1000 },
        { "M", 1000000 },
        { "G", 1000000000 },
        { "T", 1000000000000 },
        { "Ki", UINT64_C(1) << 10 },
        { "Mi", UINT64_C(1) << 20 },
        { "Gi", UINT64_C(1) << 30 },
        { "Ti", UINT64_C(1) << 40 },
    };
    char text[32];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int b = 0; b < 2; b++) {
            snprintf(text, sizeof text, "64%s%s", rows[i].suffix, b ? "B" : "");
            assert_count(text, 64 * rows[i].factor);
            assert_real(text, (double)(64 * rows[i].factor));
            /* Not behind a space, and not twice. */
            snprintf(text, sizeof text, "64 %s%s", rows[i].suffix,
                     b ? "B" : "");
            if (text[3])
                assert_no_count(text);
            snprintf(text, sizeof text, "64%s%sB", rows[i].suffix,
                     b ? "B" : "Bi");
            assert_no_count(text);
        }
    }
    assert_no_count("1ki");
    assert_no_count("1m");
    assert_no_count("1Kb");
    assert_no_count("1b");
    assert_no_count("1Bi");
    assert_no_count("1P");
    assert_no_count("1e");
    assert_no_count("1e+");
    assert_no_count("1eM");
}

/* A fraction of a thousand is whole exactly where its digits say so. */
static void fractions_of_suffixes(void **state)
{
    (void)state;
    static const char suffix[] = "kMGT";
    char text[32];
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t want = i;
        for (size_t s = 0; s < 4; s++, want *= 1000) {
            snprintf(text, sizeof text, "%u.%03u%c", (unsigned)(i / 1000),
                     (unsigned)(i % 1000), suffix[s]);
            assert_count(text, want);
        }
        snprintf(text, sizeof text, "%u.%03u1k", (unsigned)(i / 1000),
                 (unsigned)(i % 1000));
        assert_no_count(text);
    }
    assert_count("0.5Ki", 512);
    assert_count("0.0009765625Ki", 1);
    assert_no_count("0.1Ki");
    assert_count("0.1e1Ti", UINT64_C(1) << 40);
    assert_count("0.3125Ti", UINT64_C(343597383680));
}

static void ends_of_counts(void **state)
{
    (void)state;
    assert_count("18446744073709551615", UINT64_MAX);
    assert_count("18446744073709551615.000", UINT64_MAX);
    assert_count("1844674407370955161.5e1", UINT64_MAX);
    assert_no_count("18446744073709551616");
    assert_no_count("18446744073709551614.5");
    assert_no_count("184467440737095516150");
    assert_no_count("1e20");
    assert_no_count("1e99999999999999999999");
    assert_no_count("1e-99999999999999999999");
    assert_count("16777215Ti", UINT64_C(16777215) << 40);
    assert_no_count("16777216Ti");
    assert_no_count("1.5");
    assert_no_count("0.5");
    assert_no_count("1e-1");
    assert_no_count("1.0000000000000000000000001");
    assert_count("9007199254740993", 9007199254740993); /* 2^53 + 1 */
}

static const char *const nonsense[] = {
    "",     " ",     "-1",  "-0",  "+1",  " 1",    "1 ",  "1\n",   "abc",
    "0x10", "0X10",  "inf", "nan", ".",   ".k",    "e3",  "1,5",   "1.5.",
    "1..5", "1_000", "k",   "B",   "%",   "--1",   "1k5", "1e3.",  "infinity",
    "NAN",  "#",     "1%%", "1k%", "1%k", "0x1p3", "1p3", "1 000",
};

static void what_is_no_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(nonsense); i++) {
        assert_no_count(nonsense[i]);
        assert_no_real(nonsense[i]);
    }
    assert_no_count(NULL);
    assert_no_real(NULL);
    assert_no_count("1%");
}

static void reals(void **state)
{
    (void)state;
    assert_real("0.001", 0.001);
    assert_real("1%", 0.01);
    assert_real("0.1%", 0.001);
    assert_real("2.5e-7", 2.5e-7);
    assert_real(".5", 0.5);
    assert_real("0", 0);
    assert_real("1.5", 1.5);
    assert_real("1e300", 1e300);
    assert_no_real("1e400");
    assert_no_real("1e99999999999999999999");
    assert_real("1e-99999999999999999999", 0);
}

/* Against the C library's: the nearest double for numbers of four digits, as
 * people write them; the nearest or its neighbour for up to twenty. */
static void reals_are_the_nearest(void **state)
{
    (void)state;
    uint64_t random = 1;
    char text[64];
    double got;
    for (unsigned i = 0; i < 10000; i++) {
        for (int e = -12; e <= 12; e++) {
            snprintf(text, sizeof text, "%ue%d", i, e);
            if (FLT_EVAL_METHOD == 0) /* else doubles are rounded twice */
                assert_real(text, strtod(text, NULL));
        }
    }
    for (int i = 0; i < 100000; i++) {
        const uint64_t x = test_random(&random);
        snprintf(text, sizeof text, "%llue%d",
                 (unsigned long long)(test_random(&random) >> (x % 50)),
                 (int)((x >> 32) % 560) - 290);
        assert_true(bly_parse_real(text, &got));
        assert_near(got, strtod(text, NULL), 0x1p-52);
    }
}

/* No byte behind the end is read, and no text crashes. */
static void texts_end_at_a_wall(void **state)
{
    (void)state;
    static const char alphabet[] = "0123456789.eE+-kKMGTiB% x";
    uint64_t random = 2;
    char *wall = guarded_new(16);
    for (int i = 0; i < 200000; i++) {
        const size_t len = test_random(&random) % 15;
        char *text = wall + 15 - len;
        for (size_t j = 0; j < len; j++)
            text[j] = alphabet[test_random(&random) % (sizeof alphabet - 1)];
        text[len] = '\0';
        uint64_t count = UNTOUCHED;
        double real = -1;
        const bool is_count = bly_parse_count(text, &count);
        const bool is_real = bly_parse_real(text, &real);
        /* Every count is a real number too, and the same one. */
        if (is_count)
            assert_true(is_real && real == (double)count);
        if (is_real)
            assert_true(real >= 0 && isfinite(real));
    }
    guarded_free(wall, 16);
}

/* A comma for a point in the program's language changes nothing. */
static void locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR",
                                         "de_DE" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (setlocale(LC_ALL, names[i]))
            break;
    assert_real("0.01", 0.01);
    assert_count("1.5k", 1500);
    assert_no_real("0,01");
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(every_suffix),
        cmocka_unit_test(fractions_of_suffixes),
        cmocka_unit_test(ends_of_counts),
        cmocka_unit_test(what_is_no_number),
        cmocka_unit_test(reals),
        cmocka_unit_test(reals_are_the_nearest),
        cmocka_unit_test(texts_end_at_a_wall),
        cmocka_unit_test(locale_does_not_matter),
    };
    return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}

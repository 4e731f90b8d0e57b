/*
 * test_picking.c - fields, columns of CSV and fields of JSON, cut many bytes at
 * a time, against a reader that goes byte by byte
 */
#include "support.h"

#include "picking_check.h"

static const char long_line[] =
    "{\"n\":0,\"id\":\"a much longer string, past a window of 64 bytes, "
    "to be sure of that\"}\n";
static uint64_t rng = 4180;

/* Texts made of pieces that matter, so that short ones meet every case. */
static size_t random_text(const char *const *pieces, size_t npieces, char *text,
                          size_t room)
{
    size_t n = 0;
    const size_t want = 1 + (size_t)(test_random(&rng) % 60);
    for (size_t i = 0; i < want; i++) {
        const char *const piece = pieces[test_random(&rng) % npieces];
        const size_t len = strlen(piece);
        if (n + len > room)
            break;
        memcpy(text + n, piece, len);
        n += len;
    }
    return n;
}

static void compare_ways(int how, size_t field, const char *path,
                         const char *const *pieces, size_t npieces)
{
    char text[8192];
    for (unsigned round = 0; round < 20000; round++) {
        struct check c;
        const size_t n = random_text(pieces, npieces, text, sizeof text);
        const size_t piece = 1 + (size_t)(test_random(&rng) % 200);
        const size_t max = 1 + (size_t)(test_random(&rng) % 64);
        assert_true(check_start(&c, how, field, ',', path));
        if (!ways_agree(&c, text, n, piece, max))
            fail_msg("round %u: pieces of %zu, batches of %zu: %.*s", round,
                     piece, max, (int)n, text);
        check_end(&c);
    }
}

static void fields_are_those_of_a_plain_split(void **state)
{
    static const char *const pieces[] = {
        "a",
        "bc",
        ",",
        ",",
        "\n",
        "\r",
        "\"",
        "",
        "0123456789012345678901234567890123456789012345678901234567890",
    };
    (void)state;
    for (size_t field = 0; field < 4; field++)
        compare_ways(0, field, NULL, pieces, COUNT_OF(pieces));
}

static void columns_are_those_of_a_plain_reader(void **state)
{
    static const char *const pieces[] = {
        "a",
        "bc",
        ",",
        ",",
        "\n",
        "\r\n",
        "\r",
        "\"",
        "\"\"",
        "\",\"",
        "\"\n",
        ",\"",
        "\",",
        "\"x\"",
        ",\"a\nb\",",
        "0123456789012345678901234567890123456789012345678901234567890",
    };
    (void)state;
    for (size_t field = 0; field < 3; field++)
        compare_ways(1, field, NULL, pieces, COUNT_OF(pieces));
}

static void json_is_that_of_the_careful_reader(void **state)
{
    static const char *const pieces[] = {
        "{\"id\":\"abc\",\"n\":12}\n",
        "{\"id\":\"d\",\"n\":1234567}\n",
        "{\"id\":\"e\\\"f\",\"n\":-1.5e3}\n",
        "{\"id\":7,\"n\":\"x\"}\n",
        "{\"id\":null,\"n\":true}\n",
        long_line,
        "{\"id\":{\"id\":1},\"n\":[1,\"2\",{}]}\n",
        "{ \"id\" : \"abc\", \"n\": [ ] }\r\n",
        "{\"id\":\"abc\",\"n\":012}\n",
        "{\"id\":\"abc\",\"n\":1}}\n",
        "{\"id\":\"abc\",\"id\":\"later\"}\n",
        "{\"id\":\"abc\",\"n\":1,\n",
        "{\"id\":\"a\\x\",\"n\":1}\n",
        "\n",
        "  \n",
        "\"id\"\n",
        "[1]\n",
        "{}\n",
        "{\"id\":\"open}\n",
        "{\"\\u0069d\":\"abc\",\"n\":9}\n",
        "{\"id\":",
        "1",
        "\"",
        ",",
        "}",
        "\\",
        " ",
    };
    (void)state;
    compare_ways(2, 0, "id", pieces, COUNT_OF(pieces));
    compare_ways(2, 0, "id.id", pieces, COUNT_OF(pieces));
    compare_ways(2, 0, "n.1", pieces, COUNT_OF(pieces));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_those_of_a_plain_split),
        cmocka_unit_test(columns_are_those_of_a_plain_reader),
        cmocka_unit_test(json_is_that_of_the_careful_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

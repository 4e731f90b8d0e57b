/*
 * test_shingles.c - words, shingles and exact likeness
 *
 * What a shingle is is compared with a slow reading of the definition: words by
 * looking at single bytes, shingles as strings, their hash term by term.
 */
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "engine/likeness.h"
#include "tests/support.h"

static bly_shingler *cutter(bly_unit unit, unsigned size)
{
    bly_shingler *s;
    const bly_shingling how = { .unit = unit, .size = size };
    assert_ok(bly_shingler_new(&how, NULL, &s));
    return s;
}

/* The distinct hashes of a text; the caller frees them. */
static uint64_t *shingle_set(const char *text, size_t len, bly_unit unit,
                             unsigned size, size_t *n)
{
    bly_shingler *s = cutter(unit, size);
    bly_shingles x;
    assert_ok(bly_shingle(s, text, len, &x));
    *n = bly_distinct(x.hashes, x.n);
    uint64_t *const set = malloc(*n * sizeof *set + 1);
    assert_non_null(set);
    if (*n)
        memcpy(set, x.hashes, *n * sizeof *set);
    bly_shingler_free(s);
    return set;
}

static bly_overlap overlap(const char *a, const char *b, bly_unit unit,
                           unsigned size)
{
    size_t na, nb;
    uint64_t *const x = shingle_set(a, strlen(a), unit, size, &na);
    uint64_t *const y = shingle_set(b, strlen(b), unit, size, &nb);
    const bly_overlap o = bly_overlap_of(x, na, y, nb);
    free(x);
    free(y);
    return o;
}

static const char fox[] = "The quick brown fox jumps over the lazy dog near "
                          "the river bank today.";

/* Shares of shingles of pairs of texts, counted by hand. */
static void the_table_of_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        unsigned both[4], either[4]; /* word 3, word 5, char 5, char 10 */
    } rows[] = {
        { fox,
          "The quick brown fox jumped over the lazy dog near the river bank "
          "today!",
          { 9, 5, 58, 50 },
          { 15, 15, 69, 71 } },
        { "a b c d e f g h i j",
          "A,  B\nC-D e,f (g) h:i_j",
          { 8, 6, 15, 10 },
          { 8, 6, 15, 10 } },
        { "one two three", "one two", { 0, 0, 3, 0 }, { 2, 2, 9, 5 } },
        { "to be or not to be or not to be",
          "to be or not to be",
          { 4, 2, 13, 9 },
          { 4, 4, 13, 13 } },
    };
    static const bly_unit units[] = { BLY_WORDS, BLY_WORDS, BLY_CHARS,
                                      BLY_CHARS };
    static const unsigned sizes[] = { 3, 5, 5, 10 };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t c = 0; c < COUNT_OF(sizes); c++) {
            const bly_overlap o =
                overlap(rows[i].a, rows[i].b, units[c], sizes[c]);
            assert_int_equal(o.in_both, rows[i].both[c]);
            assert_int_equal(o.in_either, rows[i].either[c]);
        }
}

static void texts_without_words(void **state)
{
    (void)state;
    static const char *const texts[] = { "", " ", "\n\t--- !! _ [] `{}@/:" };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        for (unsigned unit = 0; unit < 2; unit++) {
            bly_shingler *s = cutter((bly_unit)unit, 0);
            bly_shingles x = { .n = 9 };
            assert_ok(bly_shingle(s, texts[i], strlen(texts[i]), &x));
            assert_true(x.n == 0 && x.nwords == 0 && x.text == 0);
            bly_shingler_free(s);
            assert_true(
                overlap(texts[i], texts[i], (bly_unit)unit, 0).jaccard == 0);
        }
}

/* ----------------------------------------------------- the slow definition */

static bool is_word_byte(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= '0' && c <= '9') || c >= 128;
}

struct slow {
    uint64_t x[4096];
    size_t n, nwords;
};

static void slow_shingles(const unsigned char *text, size_t n, bly_unit unit,
                          size_t size, uint64_t seed, struct slow *out)
{
    static uint64_t units[4096];
    size_t nunits = 0, nwords = 0;
    const bly_hasher by = { .id = BLY_HASH_XXH3, .seed = seed };
    for (size_t i = 0; i < n;) {
        if (!is_word_byte(text[i])) {
            i++;
            continue;
        }
        unsigned char word[4096];
        size_t len = 0;
        for (; i < n && is_word_byte(text[i]); i++)
            word[len++] = text[i] >= 'A' && text[i] <= 'Z'
                              ? (unsigned char)(text[i] + 32)
                              : text[i];
        if (unit == BLY_WORDS) {
            units[nunits++] = bly_hash(&by, word, len);
        } else {
            if (nwords)
                units[nunits++] = bly_shingle_mix(' ' + 1);
            for (size_t j = 0; j < len; j++)
                units[nunits++] = bly_shingle_mix(word[j] + UINT64_C(1));
        }
        nwords++;
    }
    const size_t m = nunits < size ? nunits : size;
    out->nwords = nwords;
    out->n = nunits ? nunits - m + 1 : 0;
    for (size_t i = 0; i < out->n; i++) {
        uint64_t h = 0;
        for (size_t j = 0; j < m; j++) {
            uint64_t term = units[i + j];
            for (size_t p = 0; p < m - 1 - j; p++)
                term *= UINT64_C(0xd6e8feb86659fd93);
            h += term;
        }
        out->x[i] = bly_shingle_mix(h);
    }
}

/* Any bytes, many lengths, ends at a wall: as the definition says. */
static void as_defined(void **state)
{
    (void)state;
    static struct slow want;
    static const unsigned sizes[] = { 1, 2, 5, 13, 300 };
    static const char alphabet[] = "aZ09_ .@[`{/:\x80\xff";
    uint64_t random = 7;
    for (unsigned round = 0; round < scaled(1600); round++) {
        const size_t n = round < 300 ? round : test_random(&random) % 2000;
        unsigned char *const text = guarded_new(n);
        for (size_t i = 0; i < n; i++) {
            const uint64_t r = test_random(&random);
            text[i] = round % 3 == 0   ? (unsigned char)r
                      : round % 3 == 1 ? (unsigned char)alphabet[r % 15]
                      : r % 64         ? 'w'
                                       : ' ';
        }
        const bly_shingling how = {
            .unit = (bly_unit)(round / 3 % 2),
            .size = sizes[round % COUNT_OF(sizes)],
            .seed = round % 2 ? round : 0,
        };
        bly_shingler *s;
        bly_shingles x;
        assert_ok(bly_shingler_new(&how, NULL, &s));
        assert_ok(bly_shingle(s, text, n, &x));
        slow_shingles(text, n, how.unit, how.size, how.seed, &want);
        assert_int_equal(x.nwords, want.nwords);
        assert_int_equal(x.n, want.n);
        for (size_t i = 0; i < x.n; i++)
            assert_true(x.hashes[i] == want.x[i]);
        bly_shingler_free(s);
        guarded_free(text, n);
    }
}

/* Longer than the chunk that is worked on at a time: words across its end, and
 * one word that is longer than several. */
static void words_across_chunks(void **state)
{
    (void)state;
    static char text[20000], loose[40000];
    for (size_t gap = 2; gap < 10000; gap = gap * 3 / 2 + 1) {
        size_t n = 0, m = 0, words = 1;
        for (size_t i = 0; i < sizeof text; i++) {
            const bool blank = i % gap == gap - 1 && i + 1 < sizeof text;
            text[n++] = blank ? ' ' : (char)('a' + i % 26);
            loose[m++] =
                blank ? '\n' : (char)(i % 3 ? 'a' + i % 26 : 'A' + i % 26);
            if (blank)
                loose[m++] = '-';
            words += blank;
        }
        bly_shingler *s = cutter(BLY_WORDS, 3);
        bly_shingles x, y;
        assert_ok(bly_shingle(s, text, n, &x));
        const size_t nx = x.n;
        uint64_t *const first = malloc(nx * sizeof *first + 1);
        assert_non_null(first);
        if (nx)
            memcpy(first, x.hashes, nx * sizeof *first);
        assert_int_equal(x.nwords, words);
        assert_ok(bly_shingle(s, loose, m, &y));
        assert_true(y.text == x.text && y.n == nx);
        if (nx)
            assert_memory_equal(first, y.hashes, nx * sizeof *first);
        free(first);
        bly_shingler_free(s);
    }
}

/* The hash of a text knows all its words and their order, and nothing else. */
static void texts_that_are_equal(void **state)
{
    (void)state;
    static const char *const same[] = { "one Two three", "ONE, two -- three\n",
                                        "  one two_three  " };
    static const char *const others[] = { "one two", "two one three",
                                          "one two three three", "onetwo three",
                                          "one" };
    for (unsigned unit = 0; unit < 2; unit++) {
        bly_shingler *s = cutter((bly_unit)unit, 2);
        bly_shingles x, y;
        assert_ok(bly_shingle(s, same[0], strlen(same[0]), &x));
        for (size_t i = 1; i < COUNT_OF(same); i++) {
            assert_ok(bly_shingle(s, same[i], strlen(same[i]), &y));
            assert_true(x.text == y.text);
        }
        for (size_t i = 0; i < COUNT_OF(others); i++) {
            assert_ok(bly_shingle(s, others[i], strlen(others[i]), &y));
            assert_true(x.text != y.text);
        }
        bly_shingler_free(s);
    }
}

/* Values of this release: what is on disk must mean the same tomorrow. */
static void hashes_stay(void **state)
{
    (void)state;
    static const struct {
        bly_unit unit;
        unsigned size;
        uint64_t first, last, text;
    } rows[] = {
        { BLY_WORDS, 5, UINT64_C(0x9682a9b087e72604),
          UINT64_C(0x37ff9fbd6fc1f576), UINT64_C(0x8cd12829f93dd4f2) },
        { BLY_CHARS, 10, UINT64_C(0x94d1949016443083),
          UINT64_C(0x86909cc6334d5349), UINT64_C(0x696bb14a45321650) },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_shingler *s = cutter(rows[i].unit, rows[i].size);
        bly_shingles x;
        assert_ok(bly_shingle(s, fox, strlen(fox), &x));
        assert_true(x.hashes[0] == rows[i].first);
        assert_true(x.hashes[x.n - 1] == rows[i].last);
        assert_true(x.text == rows[i].text);
        bly_shingler_free(s);
    }
}

/* Every row finds the same words. */
static void rows_agree(void **state)
{
    (void)state;
    enum { BLOCKS = 40 };
    static unsigned char text[BLOCKS * 64], want[BLOCKS * 64], got[BLOCKS * 64];
    static uint64_t masks[BLOCKS], other[BLOCKS];
    const bly_likeness_row *const last = LAST_ROW(likeness);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i < 512 ? i : i * i >> 3);
    last->words(text, BLOCKS, want, masks);
    EACH_ROW(likeness, r)
    {
        memset(got, 1, sizeof got);
        r->words(text, BLOCKS, got, other);
        assert_memory_equal(want, got, sizeof got);
        assert_memory_equal(masks, other, sizeof other);
    }
}

/* Every row hashes words of any length as XXH3 does. */
static void rows_hash_alike(void **state)
{
    (void)state;
    enum { WORDS = 203 };
    static unsigned char text[WORDS * 64 + BLY_WORD_SLACK];
    static uint16_t edges[2 * WORDS];
    uint64_t want[WORDS], got[WORDS + 1];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * 7 + (i >> 5));
    for (unsigned i = 0; i < WORDS; i++) {
        edges[2 * i] = (uint16_t)(64 * i + i % 5);
        edges[2 * i + 1] = (uint16_t)(edges[2 * i] + 1 + i * 11 % 40);
    }
    for (unsigned seed = 0; seed < 3; seed++) {
        const uint64_t s = seed * UINT64_C(0x123456789abcdef1);
        for (unsigned i = 0; i < WORDS; i++)
            want[i] =
                bly_word_hash(text + edges[2 * i],
                              (size_t)(edges[2 * i + 1] - edges[2 * i]), s);
        EACH_ROW(likeness, r)
        for (size_t n = 0; n <= WORDS; n += n < 20 ? 1 : 61) {
            got[n] = 42;
            r->hashes(text, edges, n, s, got);
            assert_memory_equal(want, got, n * sizeof *got);
            assert_true(got[n] == 42);
        }
    }
}

static void sets_that_overlap(void **state)
{
    (void)state;
    const uint64_t a[] = { 1, 3, 5, 7, UINT64_MAX }, b[] = { 0, 3, 4, 5, 9 };
    bly_overlap o = bly_overlap_of(a, 5, b, 5);
    assert_true(o.in_both == 2 && o.in_either == 8 && o.jaccard == 0.25);
    o = bly_overlap_of(a, 5, a, 5);
    assert_true(o.in_both == 5 && o.in_either == 5 && o.jaccard == 1);
    o = bly_overlap_of(NULL, 0, b, 5);
    assert_true(o.in_both == 0 && o.in_either == 5 && o.jaccard == 0);
    o = bly_overlap_of(NULL, 0, NULL, 0);
    assert_true(o.in_both == 0 && o.in_either == 0 && o.jaccard == 0);
    uint64_t c[] = { 5, 1, 5, 0, 1 };
    assert_int_equal(bly_distinct(c, 5), 3);
    assert_true(c[0] == 0 && c[1] == 1 && c[2] == 5);
    assert_int_equal(bly_distinct(c, 0), 0);
}

static void arguments_and_memory(void **state)
{
    (void)state;
    bly_shingler *s = (bly_shingler *)&s;
    assert_status(bly_shingler_new(&(bly_shingling){ .size = 1025 }, NULL, &s),
                  BLY_EINVAL);
    assert_null(s);
    assert_status(
        bly_shingler_new(&(bly_shingling){ .unit = (bly_unit)2 }, NULL, &s),
        BLY_EINVAL);
    assert_ok(bly_shingler_new(NULL, NULL, &s));
    bly_shingler_free(s);
    bly_shingler_free(NULL);

    static char text[30000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 5 ? 'a' : ' ';
    for (long fail = 0;; fail++) {
        ledger l;
        ledger_open(&l);
        l.fail_at = fail;
        bly_shingles x = { .n = 1 };
        bly_status st = bly_shingler_new(
            &(bly_shingling){ .unit = (bly_unit)(fail % 2) }, &l.mem, &s);
        if (!st)
            st = bly_shingle(s, text, sizeof text, &x);
        if (st) {
            assert_int_equal(st, BLY_ENOMEM);
            if (s) {
                assert_true(x.n == 0 && !x.hashes);
                assert_ok(bly_shingle(s, text, sizeof text, &x));
                assert_true(x.n > 0);
            }
        }
        bly_shingler_free(s);
        const bool over = l.calls <= fail;
        ledger_check(&l);
        if (over && fail > 8)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_pairs),
        cmocka_unit_test(texts_without_words),
        cmocka_unit_test(as_defined),
        cmocka_unit_test(words_across_chunks),
        cmocka_unit_test(texts_that_are_equal),
        cmocka_unit_test(hashes_stay),
        cmocka_unit_test(rows_agree),
        cmocka_unit_test(rows_hash_alike),
        cmocka_unit_test(sets_that_overlap),
        cmocka_unit_test(arguments_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

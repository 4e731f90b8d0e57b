/*
 * test_one.c - the table of ways to one key, when it is full
 *
 * A process has places for so many combinations of functions. Filters that
 * come later are asked by batches of one, and answer as all others do.
 */
#include "laws.h"

#include "core/bits.h"
#include "kinds/filter.h"

/* Nobody calls these. */
static bool never_has(const bly_filter *f, uint64_t h)
{
    return f && h;
}

/* Ways that no filter has, until there is no place; how many there were. */
static size_t fill_ways(void)
{
    size_t n = 0;
    bly_ways ways = { .has = never_has };
    do /* an address that is not called is as good as any */
        ways.has_int = (bool (*)(const bly_filter *, uint64_t))(uintptr_t)++n;
    while (bly_ways_lasting(&ways));
    return n - 1;
}

LAW(single_keys_when_ways_are_full)
{
    enum { N = 500 };
    uint64_t ints[2 * N], hashes[2 * N];
    uint64_t by_int[BLY_BITMAP_WORDS(2 * N)], by_hash[BLY_BITMAP_WORDS(2 * N)];
    needs(kind, BLY_CAN(HAS));
    const bly_spec spec = law_spec(row, N);
    (void)fill_ways();
    bly_filter *const f = filled_from(&spec, 0, N);
    for (size_t i = 0; i < 2 * N; i++)
        ints[i] = hashes[i] = i;
    bly_hash_ints(bly_hasher_of(f), ints, 2 * N, hashes);
    bly_has_ints(f, ints, 2 * N, by_int);
    bly_has_hashes(f, hashes, 2 * N, by_hash);
    for (size_t i = 0; i < 2 * N; i++) {
        assert_int_equal(bly_has(f, &ints[i], sizeof ints[i]),
                         by_int[i / 64] >> i % 64 & 1);
        assert_int_equal(bly_has_hash(f, hashes[i]),
                         by_hash[i / 64] >> i % 64 & 1);
    }
    bly_free(f);
}

static void as_many_as_it_says(void **state)
{
    (void)state;
    const bly_ways ways = { .has = never_has };
    bly_filter *f;
    const bly_spec spec = { .items = 100 };
    assert_in_range(fill_ways(), 1, 256);
    assert_null(bly_ways_lasting(&ways));
    /* Adding has no short way then, and works. */
    assert_ok(bly_new(&spec, &f));
    assert_null(f->ways->add);
    assert_ok(bly_add(f, "a", 1));
    assert_true(bly_has(f, "a", 1));
    bly_free(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_it_says),
    };
    return run_laws_and("one key", tests, COUNT_OF(tests), argc, argv);
}

/*
 * test_fano.c - sorted numbers in few bits
 *
 * Every row answers as a sorted array does, for numbers that are spread, close
 * together, and both; reading gives back what was filled in; damage is seen, or
 * makes the table of other numbers; and the size is what the essay says.
 */
#include "base/search.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/packed.h"
#include "core/sort.h"
#include "engine/fano.h"

typedef struct fano_case {
    uint64_t room, n, last;
    uint64_t near; /* numbers are in runs of so many neighbours */
} fano_case;

static const fano_case cases[] = {
    { 1, 0, 0, 1 },
    { 1, 1, 0, 1 },
    { 1, 1, UINT64_MAX, 1 },
    { 2, 2, 1, 1 },
    { 100, 100, 99, 1 }, /* all that there are */
    { 100, 30, 99, 1 },
    { 1000, 1000, 1000000, 1 },
    { 5000, 5000, UINT64_MAX, 1 },
    { 5000, 5000, UINT64_MAX, 700 },
    { 5000, 17, UINT64_MAX >> 1, 5 },
    { 20000, 20000, 40000, 500 },
    { 20000, 20000, UINT64_C(1) << 40, 20000 }, /* one run */
    { 20000, 20000, UINT64_C(5) << 33, 3000 },
};

/* The numbers of a case, in order; fewer if there are not so many. */
static uint64_t *numbers_of(const fano_case *c, size_t *n)
{
    uint64_t random = c->room + c->last, *v = malloc((c->n + 1) * sizeof *v);
    assert_non_null(v);
    *n = 0;
    for (int tries = 0; *n < c->n && tries < 1000; tries++) {
        while (*n < c->n) {
            const uint64_t x = test_random(&random);
            const uint64_t from = c->last == UINT64_MAX ? x : x % (c->last + 1);
            for (uint64_t i = 0; i < c->near && *n < c->n; i++)
                v[(*n)++] = c->last - from < i ? from - i : from + i;
        }
        bly_hashes_unique(v, NULL, n);
    }
    return v;
}

static bly_fano filled_fano(const fano_case *c, uint64_t **numbers)
{
    size_t n;
    bly_fano t = bly_fano_of(c->room, c->last);
    *numbers = numbers_of(c, &n);
    t.n = n;
    t.data = guarded_new(t.nbytes);
    memset(t.data, 0, t.nbytes);
    bly_fano_fill(&t, *numbers);
    return t;
}

static bool any_between(const uint64_t *v, size_t n, uint64_t from, uint64_t to)
{
    size_t low;
    LOWER_BOUND(low, n, v[low] < from);
    return low < n && v[low] <= to;
}

static void test_answers(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        const fano_case *const c = &cases[k];
        uint64_t *v, random = k;
        bly_fano t = filled_fano(c, &v);
        assert_true(bly_fano_check(&t));
        for (unsigned turn = 0; turn < scaled(600); turn++) {
            uint64_t from[BLY_FANO_GROUP], to[BLY_FANO_GROUP], want = 0;
            const size_t n = turn % (BLY_FANO_GROUP + 1);
            for (size_t i = 0; i < n; i++) {
                /* Around a number, or anywhere; short, long, and to the end. */
                uint64_t x = test_random(&random), l = test_random(&random);
                x = t.n && i % 3 ? v[x % t.n] + i % 5 - 2 : x;
                from[i] = c->last == UINT64_MAX ? x : x % (c->last + 1);
                l = l >> l % 64;
                to[i] = c->last - from[i] < l ? c->last : from[i] + l;
                want |= (uint64_t)any_between(v, t.n, from[i], to[i]) << i;
            }
            for (size_t r = 0; bly_fano_row_at(r).name; r++) {
                if (!bly_row_runs(bly_fano_rows[r].needs))
                    continue;
                assert_true(bly_fano_rows[r].any_each(&t, from, to, n) == want);
                for (size_t i = 0; i < n; i++)
                    assert_true(bly_fano_rows[r].any(&t, from[i], to[i]) ==
                                (want >> i & 1));
            }
        }
        uint64_t *again = guarded_new(t.n * sizeof *again);
        bly_fano_read(&t, again);
        assert_memory_equal(again, v, t.n * sizeof *v);
        guarded_free(again, t.n * sizeof *again);
        guarded_free(t.data, t.nbytes);
        free(v);
    }
}

/* What is told before it is read: the bytes of an answer, with everything else
 * set to ones, still give it. */
typedef struct told {
    const bly_fano *whole;
    unsigned char *part;
    bool refuses;
} told;

static bool tell(void *ctx, uint64_t at, uint64_t nbytes)
{
    const told *const s = ctx;
    assert_true(nbytes > 0 && at + nbytes <= s->whole->nbytes);
    memcpy(s->part + at, s->whole->data + at, nbytes);
    return !s->refuses;
}

static void test_reaches_what_it_reads(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        const fano_case *const c = &cases[k];
        uint64_t *v, random = k + 7;
        bly_fano t = filled_fano(c, &v), part = t;
        part.data = guarded_new(t.nbytes);
        for (unsigned turn = 0; turn < scaled(300); turn++) {
            uint64_t x = test_random(&random), l = test_random(&random);
            x = t.n && turn % 3 ? v[x % t.n] + turn % 5 - 2 : x;
            x = c->last == UINT64_MAX ? x : x % (c->last + 1);
            l = l >> l % 64;
            const uint64_t to = c->last - x < l ? c->last : x + l;
            /* Only now are its samples known, so it asks the part. */
            memset(part.data, 0xff, t.nbytes);
            told s = { &t, part.data, false };
            assert_true(bly_fano_reach(&part, x, to, tell, &s));
            assert_true(bly_fano_best()->any(&part, x, to) ==
                        any_between(v, t.n, x, to));
            s.refuses = true;
            assert_true(bly_fano_reach(&part, x, to, tell, &s) == !t.n);
        }
        guarded_free(part.data, t.nbytes);
        guarded_free(t.data, t.nbytes);
        free(v);
    }
}

/* Is the table that of some numbers, and of n of them? */
static bool is_table(const bly_fano *t)
{
    bly_fano again = *t;
    uint64_t *const v = malloc((t->n + 1) * sizeof *v);
    assert_non_null(v);
    again.data = guarded_new(t->nbytes);
    memset(again.data, 0, t->nbytes);
    bly_fano_read(t, v);
    for (size_t i = 0; i < t->n; i++)
        assert_true(v[i] <= t->last && (i == 0 || v[i - 1] < v[i]));
    bly_fano_fill(&again, v);
    const bool same = memcmp(again.data, t->data, t->nbytes) == 0;
    guarded_free(again.data, t->nbytes);
    free(v);
    return same;
}

/* Whatever is accepted is to the last bit what filling makes; whatever the
 * bytes are, asking ends. Only a low bit can be flipped unnoticed. */
static void test_damage(void **state)
{
    (void)state;
    static const size_t small[] = { 0, 1, 3, 4, 5, 6, 9 };
    for (size_t k = 0; k < COUNT_OF(small); k++) {
        uint64_t *v, random = k;
        bly_fano t = filled_fano(&cases[small[k]], &v);
        const size_t nbits = (size_t)t.nbytes * 8;
        for (size_t bit = 0; bit < nbits; bit += 1 + nbits / 20000) {
            t.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (bly_fano_check(&t))
                assert_true(bit / 8 >= t.lows && is_table(&t));
            t.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        t.n++;
        assert_true(t.n > t.room || !bly_fano_check(&t));
        t.n--;
        for (size_t i = 0; i < t.nbytes; i++)
            t.data[i] = (unsigned char)test_random(&random);
        for (unsigned turn = 0; turn < 1000; turn++) {
            const uint64_t x = test_random(&random);
            const uint64_t from = t.last == UINT64_MAX ? x : x % (t.last + 1);
            for (size_t r = 0; bly_fano_row_at(r).name; r++)
                if (bly_row_runs(bly_fano_rows[r].needs)) {
                    bly_fano_rows[r].any(&t, from, from);
                    bly_fano_rows[r].any(&t, from, t.last);
                    bly_fano_rows[r].any_each(&t, &from, &t.last, 1);
                }
        }
        bly_fano_read(&t, v);
        guarded_free(t.data, t.nbytes);
        free(v);
    }
}

/* log2 of numbers per number, two bits, and half a bit for the index. */
static void test_size(void **state)
{
    (void)state;
    for (double room = 1e5; room < 1e11; room *= 3.7)
        for (double per = 2; per * room < 0x1p64; per *= 1.3) {
            const double last = per * room;
            const bly_fano t = bly_fano_of((uint64_t)room, (uint64_t)last - 1);
            assert_between(8 * (double)t.nbytes / room, 0,
                           log2(per) + 2 + 0.66);
            assert_true(t.nlines < UINT32_MAX);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_reaches_what_it_reads),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests_name("fano", tests, NULL, NULL);
}

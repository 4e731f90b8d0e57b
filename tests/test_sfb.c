/*
 * test_sfb.c - Stochastic Fair Blue: who is held back, and who is not
 */
#include <stdlib.h>

#include "apps/traffic/sfb_sim.h"
#include "support.h"

/* Published: the chance to share all bins with one of m greedy flows. */
static void the_chance_of_bad_luck(void **state)
{
    (void)state;
    assert_near(sfb_unlucky(8, 16, 10), 0.00262, 0.01);
    assert_near(sfb_unlucky(8, 16, 2), 4.6e-8, 0.02);
}

static void specs_that_cannot_be(void **state)
{
    struct sfb_spec s = sfb_defaults(10);
    (void)state;
    s.levels = SFB_MOST_LEVELS + 1;
    assert_null(sfb_new(&s));
    s = sfb_defaults(0);
    assert_null(sfb_new(&s));
    s = sfb_defaults(10);
    s.bins = 1;
    assert_null(sfb_new(&s));
    struct link_result r;
    assert_false(link_run(&(struct link_spec){ 0 }, &r));
}

/* One flow fills its bins and gets the penalty rate; another one, in other
 * bins, loses nothing. Counts are right when all have left. */
static void greedy_flows_are_held_back(void **state)
{
    struct sfb_spec spec = sfb_defaults(1000);
    struct sfb_ticket queue[1000], mine;
    size_t n = 0;
    uint64_t lost = 0;
    (void)state;
    spec.increment = 0.01;
    spec.rehash = 0;
    struct sfb *const s = sfb_new(&spec);
    assert_non_null(s);
    for (unsigned i = 0; i < 20000; i++) {
        const double now = i * 0.001;
        if (sfb_arrive(s, 1, now, &queue[n]) == SFB_TAKEN)
            n++;
        if (i % 3 == 0 && n > 20)
            sfb_leave(s, &queue[--n]);
        if (i % 50 == 0) {
            if (sfb_arrive(s, 2, now, &mine) == SFB_TAKEN)
                sfb_leave(s, &mine);
            else
                lost++;
        }
    }
    assert_true(sfb_probability(s, 1) > 0.5);
    assert_true(sfb_probability(s, 2) < 0.1);
    assert_true(lost < 10);
    assert_int_equal(sfb_length(s), n);
    while (n)
        sfb_leave(s, &queue[--n]);
    assert_int_equal(sfb_length(s), 0);
    sfb_free(s);
}

/* Sides change while packets are queued: nothing is counted twice or below
 * zero, and the greedy flow is known to the new side from its first moment. */
static void the_hash_moves(void **state)
{
    struct sfb_spec spec = sfb_defaults(100);
    struct sfb_ticket queue[100];
    size_t n = 0, first = 0;
    uint64_t at = 7;
    (void)state;
    spec.rehash = 10;
    spec.warmup = 5;
    spec.increment = 0.05;
    spec.decrement = 0.005;
    struct sfb *const s = sfb_new(&spec);
    assert_non_null(s);
    double before = 0, after = 0;
    for (unsigned i = 0; i < 100000; i++) {
        const double now = i * 0.001;
        const uint64_t turns = sfb_sum(s)->rehashes;
        if (turns == 5)
            before = sfb_probability(s, 1);
        if (n < 100 && sfb_arrive(s, test_random(&at) % 8 ? 1 : i, now,
                                  &queue[(first + n) % 100]) == SFB_TAKEN)
            n++;
        if (turns == 5 && sfb_sum(s)->rehashes == 6)
            after = sfb_probability(s, 1);
        if (i % 2 && n) {
            sfb_leave(s, &queue[first]);
            first = (first + 1) % 100;
            n--;
        }
        assert_int_equal(sfb_length(s), n);
    }
    assert_true(sfb_sum(s)->rehashes >= 8);
    assert_true(before > 0.1);
    assert_true(after > 0.1);
    sfb_free(s);
}

/* The experiment: 100 sources that yield, and one at four times its share. */
static void one_sender_among_many(void **state)
{
    struct sfb_spec queue = sfb_defaults(500);
    struct link_spec spec = { .yielding = 100,
                              .constant = 1,
                              .constant_rate = 4 * 45e6 / 101,
                              .link = 45e6,
                              .packet = 1000,
                              .round_trip = 0.1,
                              .seconds = 20,
                              .queue = 500,
                              .seed = 1 };
    struct link_result tail, sfb;
    (void)state;
    queue.bins = 64;
    queue.target = 10;
    queue.most = 13;
    assert_true(link_run(&spec, &tail));
    spec.sfb = &queue;
    assert_true(link_run(&spec, &sfb));
    assert_true(tail.constant > 0.9 * spec.constant_rate);
    assert_true(sfb.constant < tail.constant);
    assert_true(tail.use > 0.95 && sfb.use > 0.95);
    assert_true(sfb.constant_lost > 5 * sfb.yielding_lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chance_of_bad_luck),
        cmocka_unit_test(specs_that_cannot_be),
        cmocka_unit_test(greedy_flows_are_held_back),
        cmocka_unit_test(the_hash_moves),
        cmocka_unit_test(one_sender_among_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_chord.c - the ring's state machine, simulated and under random schedules
 *
 * BLY_FULL=1: 10,000 schedules for each length of lists.
 */
#define _GNU_SOURCE /* open_memstream */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workbench/sim/chord_schedule.h"
#include "workbench/sim/chord_sim.h"
#include "support.h"

#define SECOND UINT64_C(1000000)

/* ---------------------------------------------------------- the worked ring */

static const uint64_t seven[] = { 3, 9, 20, 27, 41, 46, 58 };

static void worked_ring(void **state)
{
    static const uint64_t fingers[7][6] = {
        { 9, 9, 9, 20, 20, 41 },    { 20, 20, 20, 20, 27, 41 },
        { 27, 27, 27, 41, 41, 58 }, { 41, 41, 41, 41, 46, 3 },
        { 46, 46, 46, 58, 58, 9 },  { 58, 58, 58, 58, 3, 20 },
        { 3, 3, 3, 3, 20, 27 },
    };
    static const uint64_t lookups[][4] = {
        /* id, from, owner, nodes asked with the owner; 3 knows that 1 is its
         * own, where fingers alone would go round by 41 and 58 */
        { 45, 3, 46, 2 },  { 1, 3, 3, 0 },    { 59, 9, 3, 3 },
        { 26, 46, 27, 2 }, { 20, 58, 20, 3 },
    };
    struct chord_sim_spec spec = chord_sim_usual(7, 1);
    struct chord_peer members[7];
    (void)state;
    spec.ring.bits = 6;
    spec.ring.r = 2;
    spec.ring.no_lists = true;
    spec.ring.stabilise = spec.ring.check = spec.ring.finger = 0;
    struct chord_sim *const s = chord_sim_new(&spec);
    assert_non_null(s);
    for (uint32_t i = 0; i < 7; i++)
        s->nodes[i].self.id = members[i].id = seven[i], members[i].at = i + 1;
    chord_sim_ideal(s, 7);
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(s->nodes[i].pred.id, seven[(i + 6) % 7]);
        for (unsigned k = 0; k < 6; k++)
            assert_int_equal(s->nodes[i].fing[k].id, fingers[i][k]);
    }
    static const uint64_t owners[][2] = { { 0, 3 },   { 3, 3 },   { 4, 9 },
                                          { 26, 27 }, { 45, 46 }, { 46, 46 },
                                          { 47, 58 }, { 59, 3 } };
    for (size_t i = 0; i < COUNT_OF(owners); i++)
        assert_int_equal(chord_sim_owner(s, owners[i][0]).id, owners[i][1]);
    for (size_t i = 0; i < COUNT_OF(lookups); i++) {
        unsigned from = 0;
        while (seven[from] != lookups[i][1])
            from++;
        s->tally = (struct chord_tally){ 0 };
        assert_true(chord_lookup(&s->nodes[from], lookups[i][0], 0, 0));
        chord_sim_run(s, 10 * SECOND);
        assert_int_equal(s->tally.ended, 1);
        assert_int_equal(s->tally.wrong + s->tally.failed, 0);
        assert_int_equal(s->tally.hops, lookups[i][3]);
    }
    chord_sim_free(s);
}

static void between_is_strict(void **state)
{
    (void)state;
    assert_true(chord_between(1, 2, 3));
    assert_false(chord_between(1, 1, 3));
    assert_false(chord_between(1, 3, 3));
    assert_true(chord_between(9, 1, 3));
    assert_true(chord_between(9, 10, 3));
    assert_false(chord_between(9, 5, 3));
    assert_true(chord_between(4, 5, 4));
    assert_false(chord_between(4, 4, 4));
    assert_true(chord_within(1, 3, 3));
    assert_true(chord_within(3, 3, 3));
}

/* ---------------------------------------------------------------- schedules */

static void survives_every_schedule(void **state)
{
    static const unsigned rs[] = { 2, 4, 8 };
    const unsigned runs = getenv("BLY_FULL") ? 10000 : (unsigned)scaled(400);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rs); i++)
        for (unsigned k = 0; k < runs; k++) {
            const struct chord_schedule how = {
                .r = rs[i], .more = 6, .steps = 400, .seed = 1 + k
            };
            const char *const wrong = chord_schedule_run(&how, NULL);
            if (wrong) {
                chord_schedule_run(&how, stderr);
                fail_msg("r = %u, seed %llu: %s", rs[i],
                         (unsigned long long)how.seed, wrong);
            }
        }
}

static void rules_of_2001_do_not(void **state)
{
    const unsigned runs = (unsigned)scaled(400);
    struct chord_schedule how = {
        .r = 2, .more = 6, .steps = 400, .rules_2001 = true
    };
    unsigned lost = 0;
    uint64_t seed = 0;
    (void)state;
    for (unsigned k = 0; k < runs; k++) {
        how.seed = 1 + k;
        if (chord_schedule_run(&how, NULL)) {
            lost++;
            seed = how.seed;
        }
    }
    assert_between(lost / (double)runs, 0.2, 0.6);
    /* One of them as a trace. */
    char *text = NULL;
    size_t n = 0;
    FILE *const to = open_memstream(&text, &n);
    assert_non_null(to);
    how.seed = seed;
    assert_non_null(chord_schedule_run(&how, to));
    fclose(to);
    assert_non_null(strstr(text, " joins through "));
    assert_non_null(strstr(text, " fails\n"));
    assert_non_null(strstr(text, "no ideal ring comes about"));
    if (getenv("BLY_TRACE"))
        fputs(text, stdout);
    free(text);
}

/* ---------------------------------------------------------- simulated rings */

static struct chord_sim *grown(uint32_t n, uint64_t seed)
{
    const struct chord_sim_spec spec = chord_sim_usual(n, seed);
    struct chord_sim *const s = chord_sim_new(&spec);
    assert_non_null(s);
    for (uint32_t i = 0; i < n; i++) {
        chord_sim_join(s, i);
        chord_sim_run(s, SECOND / 2);
    }
    chord_sim_run(s, 20 * SECOND);
    return s;
}

static void grows_from_one_node(void **state)
{
    struct chord_sim *const s = grown(40, 5);
    (void)state;
    assert_int_equal(s->nmembers, 40);
    assert_int_equal(chord_sim_ideal_members(s, true), 40);
    chord_sim_free(s);
}

static void heals_after_failures_and_leaves(void **state)
{
    struct chord_sim *const s = grown(40, 6);
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        chord_sim_fail(s, chord_sim_member(s));
        chord_sim_leave(s, chord_sim_member(s));
        chord_sim_run(s, SECOND);
    }
    chord_sim_run(s, 60 * SECOND);
    assert_int_equal(s->nmembers, 20);
    assert_int_equal(chord_sim_ideal_members(s, true), 20);
    for (unsigned i = 0; i < 100; i++) {
        chord_sim_lookup(s);
        chord_sim_run(s, SECOND);
    }
    chord_sim_run(s, 20 * SECOND);
    assert_int_equal(s->tally.ended, s->tally.asked);
    assert_int_equal(s->tally.wrong + s->tally.failed, 0);
    chord_sim_free(s);
}

/* Back to one node, and a restart under the same id while others still know the
 * old one. */
static void shrinks_to_one_and_grows_again(void **state)
{
    struct chord_sim *const s = grown(3, 7);
    (void)state;
    chord_sim_fail(s, 1);
    chord_sim_fail(s, 2);
    chord_sim_run(s, 60 * SECOND);
    assert_int_equal(s->nmembers, 1);
    assert_int_equal(s->nodes[0].pred.id, s->nodes[0].self.id);
    chord_sim_join(s, 1);
    chord_sim_run(s, 30 * SECOND);
    chord_sim_fail(s, 1);
    chord_sim_join(s, 1);
    chord_sim_run(s, 60 * SECOND);
    assert_int_equal(s->nmembers, 2);
    assert_int_equal(chord_sim_ideal_members(s, true), 2);
    chord_sim_free(s);
}

static void survives_lossy_links(void **state)
{
    struct chord_sim_spec spec = chord_sim_usual(50, 8);
    (void)state;
    spec.links.loss = 0.01;
    struct chord_sim *const s = chord_sim_new(&spec);
    assert_non_null(s);
    chord_sim_ideal(s, 50);
    chord_sim_run(s, 120 * SECOND);
    assert_int_equal(s->nmembers, 50);
    assert_true(sim_counts(s->sim).lost > 100);
    assert_true(chord_sim_ideal_members(s, false) >= 45);
    chord_sim_free(s);
}

/* A ring of twenty that has run for a while, and merges. */
static struct chord_sim *merging(uint64_t seed)
{
    struct chord_sim_spec spec = chord_sim_usual(20, seed);
    spec.ring.merge = 10000;
    struct chord_sim *const s = chord_sim_new(&spec);
    assert_non_null(s);
    chord_sim_ideal(s, 20);
    chord_sim_run(s, 30 * SECOND);
    return s;
}

/* Only nodes of one part hear each other. */
static void parted(struct chord_sim *s, uint32_t parts)
{
    for (uint32_t i = 0; i < 20; i++)
        sim_part(s->sim, i, i % parts);
}

static void parts_become_one_ring_again(void **state)
{
    struct chord_sim *const s = merging(9);
    (void)state;
    parted(s, 2);
    chord_sim_run(s, 120 * SECOND);
    assert_true(chord_sim_ideal_members(s, false) < 5);
    parted(s, 1);
    chord_sim_run(s, 1500 * SECOND);
    assert_int_equal(chord_sim_ideal_members(s, true), 20);
    chord_sim_free(s);
}

/* Nobody hears anybody for a while, so that every list dies: none is left that
 * could take the others in. */
static void comes_back_after_the_network_was_away(void **state)
{
    struct chord_sim *const s = merging(10);
    (void)state;
    parted(s, 20);
    chord_sim_run(s, 600 * SECOND);
    parted(s, 1);
    chord_sim_run(s, 3000 * SECOND);
    assert_int_equal(chord_sim_ideal_members(s, true), 20);
    chord_sim_free(s);
}

/* Two members of three, of which the third dies while the others' lists name
 * nobody else, and through which they were told to join. */
static void joins_through_others_than_it_was_told(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct chord_sim_spec spec = chord_sim_usual(3, seed);
        spec.ring.merge = 10000;
        struct chord_sim *const s = chord_sim_new(&spec);
        assert_non_null(s);
        chord_sim_ideal(s, 3);
        chord_sim_run(s, 30 * SECOND);
        struct chord *const lost = &s->nodes[1];
        for (unsigned i = 0; i < spec.ring.r; i++)
            lost->succ[i] = s->nodes[0].self;
        lost->join_via = s->nodes[0].self;
        chord_sim_fail(s, 0);
        chord_sim_run(s, 300 * SECOND);
        assert_int_equal(chord_sim_ideal_members(s, true), 2);
        chord_sim_free(s);
    }
}

static void equal_seeds_give_equal_runs(void **state)
{
    struct sim_counts counts[3];
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct chord_sim *const s = grown(20, i == 2 ? 12 : 11);
        chord_sim_fail(s, 3);
        chord_sim_run(s, 20 * SECOND);
        counts[i] = sim_counts(s->sim);
        chord_sim_free(s);
    }
    assert_memory_equal(&counts[0], &counts[1], sizeof counts[0]);
    assert_true(counts[0].events != counts[2].events);
}

/* ---------------------------------------------------------- hostile answers */

/* Answers to questions that were never asked, or of another type, change
 * nothing. */
static void takes_no_answer_that_it_did_not_ask_for(void **state)
{
    struct chord_sim *const s = grown(9, 13);
    struct chord before = s->nodes[4];
    uint64_t random = 1;
    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        struct chord_message m = { 0 };
        m.type = (uint8_t)(test_random(&random) % 12);
        m.answer = true;
        m.refused = test_random(&random) % 4 == 0;
        m.kind = (uint8_t)(test_random(&random) % 6);
        m.request = (uint32_t)test_random(&random);
        m.npeers = (unsigned)(test_random(&random) % CHORD_MOST_PEERS);
        for (unsigned k = 0; k < m.npeers; k++)
            m.peers[k] = (struct chord_peer){ test_random(&random), 3 };
        chord_receive(&s->nodes[4], s->nodes[3].self, &m, s->nodes[4].now);
    }
    assert_memory_equal(s->nodes[4].succ, before.succ, sizeof before.succ);
    assert_memory_equal(s->nodes[4].fing, before.fing, sizeof before.fing);
    assert_int_equal(s->nodes[4].pred.id, before.pred.id);
    chord_sim_free(s);
}

/* A liar gives the answer to one question as that to another: as good as none.
 * Who went on waiting for it would never look at its successors again. */
static void waits_for_no_answer_of_another_type(void **state)
{
    struct chord_sim *const s = grown(9, 13);
    struct chord *const n = &s->nodes[4];
    const struct chord before = *n;
    (void)state;
    for (unsigned type = 0; type < 12; type++) {
        *n = before;
        n->stage = 0;
        chord_tick(n, CHORD_TIMER_STABILISE, n->now);
        const struct chord_message m = { .type = (uint8_t)type,
                                         .answer = true,
                                         .request = n->stage_request };
        assert_true(n->stage && n->stage_request);
        chord_receive(n, n->stage_peer, &m, n->now);
        assert_true(n->stage_request != m.request);
    }
    chord_sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_is_strict),
        cmocka_unit_test(worked_ring),
        cmocka_unit_test(survives_every_schedule),
        cmocka_unit_test(rules_of_2001_do_not),
        cmocka_unit_test(grows_from_one_node),
        cmocka_unit_test(heals_after_failures_and_leaves),
        cmocka_unit_test(shrinks_to_one_and_grows_again),
        cmocka_unit_test(survives_lossy_links),
        cmocka_unit_test(parts_become_one_ring_again),
        cmocka_unit_test(comes_back_after_the_network_was_away),
        cmocka_unit_test(joins_through_others_than_it_was_told),
        cmocka_unit_test(equal_seeds_give_equal_runs),
        cmocka_unit_test(takes_no_answer_that_it_did_not_ask_for),
        cmocka_unit_test(waits_for_no_answer_of_another_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

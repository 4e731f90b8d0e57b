/*
 * test_ask.c - questions that go back the way of a packet: marks that were
 * written over, messages, trees
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/ask/ask_walk.h"
#include "base/random.h"
#include "support.h"

static const unsigned char secret[BLY_SECRET_BYTES] = "of the network!";

/* All routers of a way are found, whatever the packet began with and however
 * often their marks were written over; others as often as their bits allow. */
static void the_way_is_always_found(void **state)
{
    (void)state;
    enum { HOPS = 30, TRIES = 2000 };
    uint64_t seed = 5;
    double others = 0, expected = 0, whole = 0;
    for (unsigned k = 1; k <= 2; k++) {
        const struct mark_spec spec = {
            .bits = 128, .k = k, .k0 = k, .secret = secret
        };
        struct mark_maker *maker;
        assert_ok(mark_maker_new(&spec, &maker));
        for (unsigned try = 0; try < TRIES; try++) {
            struct mark way[HOPS], other;
            struct ask_bits b = { .nbytes = 16 };
            unsigned left, all;
            bool kept = true;
            b.bits.words[0] = try % 2 ? UINT64_MAX : random_next(&seed);
            b.bits.words[1] = try % 2 ? UINT64_MAX : random_next(&seed);
            for (unsigned i = 0; i < HOPS; i++) {
                const uint64_t name = random_next(&seed);
                assert_ok(mark_make(maker, &name, sizeof name, &way[i]));
                mark_add(&way[i], &b.bits);
            }
            for (unsigned i = HOPS; i-- > 0;) {
                const uint64_t name = random_next(&seed);
                kept &= mark_in(&way[i], &b.bits);
                assert_true(ask_fits(&way[i], &b, &left, &all));
                assert_true(left <= all && all <= 2 * k);
                ask_write(&way[i], &b);
                assert_ok(mark_make(maker, &name, sizeof name, &other));
                const bool fits = ask_fits(&other, &b, &left, &all);
                /* Bits of honest senders are coins; of ones, no clear bit fits
                 * where nobody has written. */
                others += try % 2 == 0 && fits;
                expected += try % 2 == 0 ? pow(0.5, left) : 0;
            }
            whole += kept;
        }
        mark_maker_free(maker);
    }
    /* The marks of 30 routers in 128 bits: hardly ever are all of them left. */
    assert_true(whole < 100);
    assert_between(others / expected, 0.9, 1.1);
}

/* What does not fit in a bit that nobody wrote is excluded. */
static void others_are_excluded(void **state)
{
    (void)state;
    const struct mark m = { .nbytes = 8, .set = { 1 }, .clear = { 2 } };
    struct ask_bits b = { .nbytes = 8 };
    unsigned left, all;
    b.bits.words[0] = 1;
    assert_true(ask_fits(&m, &b, &left, &all));
    assert_int_equal(left, 2);
    b.bits.words[0] = 3;
    assert_false(ask_fits(&m, &b, &left, &all));
    b.written.words[0] = 2;
    assert_true(ask_fits(&m, &b, &left, &all));
    assert_int_equal(left, 1);
    b.nbytes = 16;
    assert_false(ask_fits(&m, &b, &left, &all));
}

static struct frame frame_of(const struct blob *b, uint8_t type)
{
    return (struct frame){ .type = type,
                           .body = b->at + FRAME_HEAD,
                           .nbody = b->n - FRAME_HEAD };
}

/* What is written is read again, and no shorter part of it is. */
static void messages_come_back(void **state)
{
    (void)state;
    static struct ask_question q, again;
    static struct ask_tree t, t2;
    static struct ask_links l, l2;
    struct blob b = { 0 };
    q = (struct ask_question){ .hops = 9, .routers = 200, .ms = 70000 };
    q.b = (struct ask_bits){ .nbytes = 32 };
    q.b.bits.words[3] = 77;
    q.b.written.words[0] = 1;
    assert_true(ask_name_set(q.asker, "r7"));
    for (; q.nway < 5; q.nway++)
        snprintf(q.way[q.nway], ASK_NAME, "w%u", q.nway);
    for (unsigned type = ASK_MARK; type <= ASK_WALK; type++) {
        ask_put(&b, (uint8_t)type, &q);
        struct frame f = frame_of(&b, (uint8_t)type);
        assert_true(ask_take(&f, &again));
        assert_string_equal(again.asker, "r7");
        assert_memory_equal(&again.b, &q.b, sizeof q.b);
        assert_int_equal(again.nway, type == ASK_WALK ? 5 : 0);
        assert_int_equal(again.ms, type == ASK_WALK ? 70000 : 0);
        while (f.nbody--)
            assert_false(ask_take(&f, &again));
    }
    assert_true(ask_on_way(&q, "w4") && !ask_on_way(&q, "w5"));
    for (unsigned i = 0; i < 40; i++) {
        struct ask_node n = { .before = i ? i / 2 : ASK_FIRST,
                              .state = (enum ask_state)(i % 4),
                              .left = 1,
                              .all = 2 };
        snprintf(n.name, ASK_NAME, "n%u", i);
        assert_int_equal(ask_add(&t, &n), i);
    }
    ask_put_tree(&b, &t);
    struct frame f = frame_of(&b, ASK_WALK);
    assert_true(ask_take_tree(&f, &t2));
    assert_int_equal(t2.n, 40);
    assert_string_equal(t2.at[39].name, "n39");
    assert_int_equal(t2.at[39].before, 19);
    while (f.nbody--)
        assert_false(ask_take_tree(&f, &t2));
    l.n = 2;
    ask_name_set(l.at[0].name, "a");
    ask_name_set(l.at[1].name, "b");
    l.at[1].at = (struct address){ 6, { 0xfd }, 7400 };
    ask_put_links(&b, &l);
    f = frame_of(&b, ASK_WHO);
    assert_true(ask_take_links(&f, &l2));
    assert_int_equal(l2.n, 2);
    assert_true(address_equal(&l2.at[1].at, &l.at[1].at));
    while (f.nbody--)
        assert_false(ask_take_links(&f, &l2));
    blob_free(&b);
}

/* A tree has room for so many; what finds none is cut, and whole below that. */
static void trees_are_bounded(void **state)
{
    (void)state;
    static struct ask_tree t, more;
    struct ask_node n = { .before = ASK_FIRST, .name = "n" };
    ask_add(&t, &n);
    ask_add(&more, &n);
    for (unsigned i = 1; i < 100; i++) {
        n.before = i - 1;
        ask_add(&more, &n);
    }
    for (unsigned i = 0; i < 5; i++)
        ask_join(&t, 0, &more);
    assert_int_equal(t.n, ASK_ROUTERS);
    for (unsigned i = 1; i < t.n; i++)
        assert_true(t.at[i].before < i);
    assert_int_equal(t.at[0].state, ASK_CUT);
    assert_int_equal(t.at[ASK_ROUTERS - 1].state, ASK_CUT);
}

/* A router that is on the way already, or is asked by a stranger, says
 * nothing; one that may ask nobody else says so. */
static void questions_end(void **state)
{
    (void)state;
    struct ask_self *const self = calloc(1, sizeof *self);
    struct caller *const call = calloc(1, sizeof *call);
    static struct ask_tree t;
    struct ask_question q = { .hops = 3, .routers = 9, .ms = 1000 };
    assert_true(self && call);
    self->n = 1;
    ask_name_set(self->name, "me");
    ask_name_set(self->links[0].link.name, "you");
    self->links[0].way = (struct mark){ .nbytes = 32, .set = { 1 } };
    q.b = (struct ask_bits){ .nbytes = 32, .bits = { { 1 } } };
    ask_name_set(q.asker, "you");
    ask_walk(self, &q, call, &t);
    assert_int_equal(t.n, 1);
    assert_string_equal(t.at[0].name, "me");
    assert_int_equal(t.at[0].state, ASK_FOUND);
    q.hops = 0;
    ask_walk(self, &q, call, &t);
    assert_int_equal(t.at[0].state, ASK_CUT);
    q.hops = 3;
    ask_name_set(q.way[q.nway++], "me");
    ask_walk(self, &q, call, &t);
    assert_int_equal(t.n, 0);
    q.nway = 0;
    ask_name_set(q.asker, "stranger");
    ask_walk(self, &q, call, &t);
    assert_int_equal(t.n, 0);
    free(self);
    free(call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_is_always_found),
        cmocka_unit_test(others_are_excluded),
        cmocka_unit_test(messages_come_back),
        cmocka_unit_test(trees_are_bounded),
        cmocka_unit_test(questions_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

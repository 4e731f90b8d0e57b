/*
 * test_dedup_stages.c - stages of dedup, each alone, on what it is given by
 * hand
 *
 * Nothing is read: rows, buckets and likeness are written down here. What the
 * stages call and is not linked (check.c, journal.c) is at the top.
 */
#include "support.h"

#include <math.h>

#include "apps/dedup/crowd.h"
#include "apps/dedup/dedup.h"
#include "apps/dedup/journal.h"
#include "base/random.h"
#include "io/files.h"

#define NDOCS 6

static double likeness[NDOCS][NDOCS]; /* of a pair, the lesser number first */

bool dedup_check_pairs(struct dedup_job *job, struct dedup_check *check,
                       size_t from)
{
    (void)job;
    for (size_t i = from; i < check->pairs.n; i++) {
        struct dedup_pair *const p = &check->pairs.at[i];
        p->likeness = likeness[p->a][p->b];
        check->checked++;
    }
    return true;
}

bool dedup_checked_open(struct dedup_job *job, struct dedup_check *check)
{
    (void)job, (void)check;
    return true;
}

bool dedup_journal_close(struct dedup_job *job, struct dedup_journal *j)
{
    (void)job, (void)j;
    return true;
}

int scratch_file(const char *folder)
{
    int fd;
    return bly_scratch_file(folder, &fd) ? -1 : fd;
}

/* -------------------------------------------------------------------- order */

/* The hash of the words is all that order looks at, and the value. */
static void order_ranks_by_value_and_finds_equal_texts(void **state)
{
    uint64_t hashes[] = { 7, 8, 7, 9, 7, 7 };
    uint8_t states[] = { DOC_TEXT, DOC_TEXT,  DOC_TEXT,
                         DOC_TEXT, DOC_EMPTY, DOC_TEXT };
    double values[] = { 0, 1, 5, 3, 2, 4 };
    const struct dedup_docs docs = {
        .n = NDOCS,
        .base = 1,
        .hashes = hashes,
        .states = states,
        .values = values,
    };
    const struct dedup_options o = { .memory = 1 << 20, .folder = "/tmp" };
    const uint32_t ranked[] = { 0, 2, 5, 3, 4, 1 }; /* the index, then 5 4 3 */
    const uint32_t same[] = { 0, 1, 0, 3, 4, 0 };
    struct dedup_order order = { 0 };
    struct dedup_job job;
    (void)state;
    dedup_job_init(&job, &o);
    assert_true(dedup_order(&job, &docs, &order));
    assert_memory_equal(order.docs, ranked, sizeof ranked);
    assert_memory_equal(order.same, same, sizeof same);
    for (uint32_t i = 0; i < NDOCS; i++)
        assert_int_equal(order.rank[order.docs[i]], i);
    assert_int_equal(order.equal, 2);
    dedup_job_free(&job);
}

/* -------------------------------------------------------------------- bands */

static bool is_bucket(const struct dedup_buckets *b, uint64_t i, uint32_t first,
                      uint32_t second)
{
    const uint32_t *const docs = b->docs + b->start[i];
    return b->start[i + 1] - b->start[i] == 2 && docs[0] == first &&
           docs[1] == second;
}

/* Two bands of two. 2 agrees with 5 in the first band and with 1 in the second;
 * 3 is empty and 4 has the text of 2, so they are nowhere; 0 is alone. Ranks go
 * backwards. */
static void rows_that_agree_in_a_band_meet_in_a_bucket(void **state)
{
    uint32_t rows[NDOCS][4] = {
        { 9, 9, 9, 9 }, { 5, 6, 3, 4 }, { 1, 2, 3, 4 },
        { 1, 2, 3, 4 }, { 1, 2, 3, 4 }, { 1, 2, 7, 8 }
    };
    uint8_t states[] = { DOC_TEXT,  DOC_TEXT, DOC_TEXT,
                         DOC_EMPTY, DOC_TEXT, DOC_TEXT };
    uint32_t backwards[] = { 5, 4, 3, 2, 1, 0 };
    uint32_t same[] = { 0, 1, 2, 3, 2, 5 };
    const struct dedup_order order = { backwards, backwards, same, 1 };
    struct dedup_docs docs = {
        .k = 4, .n = NDOCS, .rows = rows[0], .states = states
    };
    (void)state;
    /* In memory, and by way of files; documents of an index alone are none. */
    for (unsigned i = 0; i < 4; i++) {
        const struct dedup_options o = { .bands = { 2, 2 },
                                         .nthreads = 1 + i,
                                         .memory = i % 2 ? 64 : 1 << 20,
                                         .folder = "/tmp" };
        struct dedup_buckets b = { 0 };
        struct dedup_job job;
        docs.base = i < 2 ? 0 : 3;
        dedup_job_init(&job, &o);
        assert_true(dedup_band(&job, &docs, &order, &b));
        assert_int_equal(b.n, i < 2 ? 2 : 1);
        assert_int_equal(b.largest, 2);
        const uint64_t at = is_bucket(&b, 0, 5, 2) ? 0 : 1;
        assert_true(is_bucket(&b, at, 5, 2));
        if (i < 2)
            assert_true(is_bucket(&b, 1 - at, 2, 1));
        const uint32_t of[] = { 2, 1, 0 }; /* buckets of 2, of 1, of 0 */
        for (uint32_t doc = 0; i < 2 && doc < 3; doc++)
            assert_int_equal(b.first[backwards[doc] + 1] -
                                 b.first[backwards[doc]],
                             of[2 - doc]);
        dedup_job_free(&job);
    }
}

/* ------------------------------------------------------------------- policy */

/* Six documents in one bucket, whose rows all look alike, so that the likeness
 * above decides. 1 is like 0 and like 2, which are not like each other; 3 has
 * the text of 1, 4 is like none and 5 has no words. */
static void decide(struct dedup_options o, const uint32_t *ranked,
                   const uint32_t *witness, uint64_t kept)
{
    uint32_t rows[NDOCS * 4] = { 0 }, rank[NDOCS];
    uint8_t states[] = { DOC_TEXT, DOC_TEXT, DOC_TEXT,
                         DOC_TEXT, DOC_TEXT, DOC_EMPTY };
    uint32_t order_docs[NDOCS], members[NDOCS], of[NDOCS] = { 0 };
    uint32_t same[] = { 0, 1, 2, 1, 4, 5 };
    uint64_t start[2] = { 0 }, first[NDOCS + 1] = { 0 };
    struct dedup_docs docs = {
        .k = 4, .n = NDOCS, .rows = rows, .states = states
    };
    const struct dedup_order order = { rank, order_docs, same, 1 };
    for (uint32_t i = 0; i < NDOCS; i++) {
        order_docs[i] = ranked[i];
        rank[ranked[i]] = i;
        first[i] = start[1];
        if (dedup_compared(&docs, &order, ranked[i]))
            members[start[1]++] = ranked[i];
    }
    first[NDOCS] = start[1];
    const struct dedup_buckets buckets = { .start = start,
                                           .n = 1,
                                           .docs = members,
                                           .ndocs = start[1],
                                           .first = first,
                                           .of = of };
    o.threshold = 0.8;
    o.sketch.k = 4;
    o.max_bucket = 100;
    struct dedup_job job;
    struct dedup_check check = { .docs = &docs };
    struct dedup_verdicts v = { 0 };
    dedup_job_init(&job, &o);
    assert_true(dedup_decide(
        &job, &(struct dedup_case){ &docs, &order, &buckets, &check }, &v));
    for (uint32_t i = 0; i < NDOCS; i++) {
        assert_int_equal(v.witness[i], witness[i]);
        if (witness[i] == DEDUP_NONE)
            assert_int_equal(v.cluster[i], i);
    }
    assert_int_equal(v.kept, kept);
    assert_int_equal(v.removed, NDOCS - kept - v.dropped_empty);
    assert_true(check.checked > 0);
    dedup_job_free(&job);
}

#define STAYS DEDUP_NONE

static void the_policy_decides_who_stays(void **state)
{
    static const uint32_t up[] = { 0, 1, 2, 3, 4, 5 };
    static const uint32_t middle[] = { 1, 0, 2, 3, 4, 5 };
    const struct dedup_options greedy = { .policy = DEDUP_GREEDY };
    const struct dedup_options component = { .policy = DEDUP_COMPONENT };
    const struct dedup_options large = { .policy = DEDUP_COMPONENT,
                                         .max_cluster = 2 };
    const struct dedup_options empty = { .drop_empty = true };
    (void)state;
    for (uint32_t i = 0; i < NDOCS; i++)
        for (uint32_t j = 0; j < NDOCS; j++)
            likeness[i][j] = 0.5;
    likeness[0][1] = likeness[1][2] = 0.9;
    /* 1 goes for 0, and with it 3; 2 is like 1 alone, which is gone. */
    const uint32_t by_greedy[] = { STAYS, 0, STAYS, 0, STAYS, STAYS };
    decide(greedy, up, by_greedy, 4);
    decide(empty, up, by_greedy, 3);
    /* All that is linked is one cluster, unless that is too large. */
    const uint32_t linked[] = { STAYS, 0, 0, 0, STAYS, STAYS };
    decide(component, up, linked, 3);
    decide(large, up, by_greedy, 4);
    /* With 1 in front both go for it, by either policy. */
    const uint32_t by_middle[] = { 1, STAYS, 1, 1, STAYS, STAYS };
    decide(greedy, middle, by_middle, 3);
    decide(component, middle, by_middle, 3);
}

/* -------------------------------------------------------------------- crowd */

/* The hash that decides which list a value belongs to, as crowd.c has it. */
static uint32_t crowd_tag(uint32_t position, uint32_t value)
{
    uint64_t x = ((uint64_t)position << 32 | value) + 1;
    x *= RANDOM_STEP;
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)(x >> 32);
}

/* Whoever writes pages can compute tags, and choose those that a product would
 * put into a 1024th of the table: but lists stand where a secret says. At half
 * load, runs of some 60 are common. */
static void lists_lie_apart_whatever_is_written(void **state)
{
    const struct dedup_options o = { .memory = 1 << 24, .folder = "/tmp" };
    uint32_t row[CROWD_OWN], value = 0;
    uint64_t run = 0, longest = 0;
    struct dedup_job job;
    (void)state;
    dedup_job_init(&job, &o);
    struct crowd c = { .store = &job.store, .k = CROWD_OWN };
    for (uint32_t doc = 0; doc < 2000; doc++) {
        for (uint32_t i = 0; i < CROWD_OWN; i++) {
            while ((crowd_tag(i, ++value) * RANDOM_STEP >> 24 & 65535) >= 64)
                continue;
            row[i] = value;
        }
        assert_true(crowd_look(&c, row, NULL, NULL));
        assert_true(crowd_put(&c, doc));
    }
    assert_int_equal(c.nslots, 65536);
    assert_int_equal(c.n, 2000 * CROWD_OWN);
    for (uint64_t i = 0; i < 2 * c.nslots; i++) {
        run = c.slots[i % c.nslots] ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    assert_true(longest < 1000);
    crowd_free(&c);
    dedup_job_free(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_ranks_by_value_and_finds_equal_texts),
        cmocka_unit_test(rows_that_agree_in_a_band_meet_in_a_bucket),
        cmocka_unit_test(the_policy_decides_who_stays),
        cmocka_unit_test(lists_lie_apart_whatever_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

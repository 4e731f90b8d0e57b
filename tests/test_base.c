/*
 * test_base.c - the kit: random, clock, grow, lookup, search, bytes, varint,
 * spawn, signals
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/search.h"
#include "base/signals.h"
#include "base/spawn.h"
#include "base/lookup.h"
#include "support.h"

/* The first numbers of the published generator, from seed 0. */
static void random_is_splitmix(void **unused)
{
    (void)unused;
    uint64_t state = 0;
    assert_true(random_next(&state) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(random_next(&state) == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(random_next(&state) == UINT64_C(0x06c45d188009454f));
    for (unsigned i = 0; i < 1000; i++) {
        const double share = random_share(&state);
        assert_true(share >= 0 && share < 1);
    }
}

static double whole(struct timespec t)
{
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void clocks_go_on(void **unused)
{
    (void)unused;
    const double seconds = clock_seconds();
    const uint64_t ms = clock_ms();
    const double thread = clock_thread_ns();
    assert_true(whole(clock_after(1999)) >= seconds + 1.999 - 1e-6);
    assert_true(clock_after(999).tv_nsec < 1000000000);
    assert_true(whole(clock_day_after(5)) >= (double)clock_day_ns() * 1e-9);
    assert_true(clock_seconds() >= seconds && clock_ms() >= ms);
    assert_true(clock_ns() >= seconds * 1e9 && clock_thread_ns() >= thread);
}

static void arrays_grow(void **unused)
{
    (void)unused;
    uint32_t *at = NULL;
    size_t room = 0, times = 0;
    for (size_t n = 0; n < 100000; n++) {
        const size_t before = room;
        assert_true(GROW(&at, &room, n + 1));
        times += room != before;
        at[n] = (uint32_t)n;
    }
    assert_true(times <= 14 && room < 200000);
    for (size_t n = 0; n < 100000; n++)
        assert_int_equal(at[n], n);
    assert_true(GROW(&at, &room, 1000000) && room >= 1000000);
    free(at);
}

/* What cannot be had leaves all as it was. */
static void arrays_have_an_end(void **unused)
{
    (void)unused;
    uint64_t *at = NULL;
    size_t room = 0;
    assert_true(GROW(&at, &room, 3));
    uint64_t *const before = at;
    const size_t had = room;
    assert_false(GROW(&at, &room, SIZE_MAX / 8 + 1)); /* bytes overflow */
    assert_false(GROW(&at, &room, SIZE_MAX));
    assert_ptr_equal(at, before);
    assert_int_equal(room, had);
    room = SIZE_MAX / 2 + 2; /* doubled, it overflows */
    assert_false(GROW(&at, &room, SIZE_MAX / 2 + 3));
    free(at);
}

static void bounds_are_the_lowest(void **unused)
{
    (void)unused;
    static const int sorted[] = { 1, 3, 3, 3, 7, 9 };
    static const size_t expected[] = { 0, 0, 1, 1, 4, 4, 4, 4, 5, 5, 6 };
    size_t at;
    for (int x = 0; x <= 10; x++) {
        LOWER_BOUND(at, 6, sorted[at] < x);
        assert_int_equal(at, expected[x]);
    }
    LOWER_BOUND(at, 0, sorted[at] < 0);
    assert_int_equal(at, 0);
}

static void varints_come_back(void **unused)
{
    (void)unused;
    unsigned char at[VARINT_MOST];
    for (unsigned bits = 0; bits <= 64; bits++)
        for (int more = -1; more <= 1; more++) {
            const uint64_t x =
                (bits < 64 ? UINT64_C(1) << bits : 0) + (uint64_t)more;
            const size_t n = varint_write(at, x);
            const unsigned char *from = at;
            uint64_t back = ~x;
            assert_true(varint_get(&from, at + n, &back) && back == x);
            assert_ptr_equal(from, at + n);
            from = at;
            assert_false(varint_get(&from, at + n - 1, &back));
        }
    /* A tenth byte has one bit. */
    static const unsigned char large[] = { 0xff, 0xff, 0xff, 0xff, 0xff,
                                           0xff, 0xff, 0xff, 0xff, 2 };
    const unsigned char *from = large;
    uint64_t x;
    assert_false(varint_get(&from, large + sizeof large, &x));
}

static void bytes_are_taken_apart(void **unused)
{
    (void)unused;
    struct bytes b = { 0 };
    assert_true(bytes_number(&b, 0x0102030405, 5));
    assert_true(bytes_varint(&b, 300));
    assert_true(bytes_put(&b, "abc", 3) && bytes_put(&b, NULL, 0));
    assert_int_equal(b.n, 10);
    struct reading r = { b.at, b.at + b.n, false };
    assert_true(read_word(&r, 5) == 0x0102030405);
    assert_true(read_number(&r) == 300);
    assert_int_equal(read_left(&r), 3);
    assert_memory_equal(read_bytes(&r, 3), "abc", 3);
    assert_false(r.bad);
    assert_true(read_word(&r, 1) == 0 && r.bad);
    r = (struct reading){ b.at, b.at + b.n, false };
    assert_null(read_bytes(&r, UINT64_MAX));
    assert_true(r.bad && read_number(&r) == 0 && read_left(&r) == 0);
    volatile size_t most = SIZE_MAX;       /* which the compiler must not see */
    assert_false(bytes_put(&b, "", most)); /* and nothing after it */
    assert_false(bytes_put(&b, "x", 1));
    assert_int_equal(b.n, 10);
    free(b.at);
}

static void tables_find_rows(void **unused)
{
    (void)unused;
    enum { N = 20000 };
    static uint64_t keys[N];
    struct lookup t = { 0 };
    uint64_t state = 3;
    for (size_t i = 0; i < N; i++) {
        keys[i] = random_next(&state);
        assert_true(lookup_add(&t, table_hash(&keys[i], 8), i));
    }
    assert_true(t.n == N && t.nslots >= 2 * N && t.nslots < 8 * N);
    for (size_t i = 0; i < N; i++) {
        unsigned found = 0, seen = 0;
        LOOKUP_EACH (&t, table_hash(&keys[i], 8), row) {
            found += row == i;
            seen++;
        }
        assert_true(found == 1 && seen < 5);
    }
    const uint64_t other = random_next(&state);
    LOOKUP_EACH (&t, table_hash(&other, 8), row)
        assert_true(keys[row] != other);
    lookup_empty(&t);
    LOOKUP_EACH (&t, table_hash(&keys[0], 8), row)
        fail();
    lookup_free(&t);
    LOOKUP_EACH (&t, 7, row)
        fail();
}

/* All of one hash are found, in the order in which they came. */
static void tables_bear_equal_hashes(void **unused)
{
    (void)unused;
    struct lookup t = { 0 };
    size_t n = 0;
    assert_true(lookup_fit(&t, 50));
    const struct lookup_slot *const slots = t.slots;
    for (size_t i = 0; i < 50; i++)
        assert_true(lookup_add(&t, UINT64_MAX, i));
    assert_ptr_equal(t.slots, slots); /* there was room */
    LOOKUP_EACH (&t, UINT64_MAX, row)
        assert_int_equal(row, n++);
    assert_int_equal(n, 50);
    assert_false(lookup_add(&t, 1, SIZE_MAX));
    assert_false(lookup_fit(&t, SIZE_MAX));
    lookup_free(&t);
}

static void shells_are_spawned(void **unused)
{
    (void)unused;
    int in[2], out[2], how;
    pid_t child;
    char got[16] = "";
    assert_int_equal(pipe(in) | pipe(out), 0);
    assert_int_equal(fcntl(in[1], F_SETFD, FD_CLOEXEC) |
                         fcntl(out[0], F_SETFD, FD_CLOEXEC),
                     0);
    assert_int_equal(spawn_shell("tr a-z A-Z; exit 3", in[0], out[1], &child),
                     0);
    close(in[0]);
    close(out[1]);
    assert_int_equal(write(in[1], "word", 4), 4);
    close(in[1]);
    assert_int_equal(read(out[0], got, sizeof got), 4);
    assert_string_equal(got, "WORD");
    close(out[0]);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 3);
    assert_int_not_equal(spawn_shell("true", -1, -1, &child), 0);
}

static unsigned woken;

static void wake(void)
{
    woken++;
}

static void signals_are_counted(void **unused)
{
    (void)unused;
    signals_watch(wake);
    assert_int_equal(signals_told(), 0);
    raise(SIGTERM);
    raise(SIGINT);
    assert_int_equal(signals_told(), 2);
    assert_int_equal(woken, 2);
    signals_watch(NULL);
    raise(SIGTERM);
    assert_true(signals_told() == 3 && woken == 2);
    signals_no_pipe();
    raise(SIGPIPE);
    assert_true(!signals_heeded(SIGPIPE) && signals_heeded(SIGTERM));
}

static void signals_end_a_process(void **unused)
{
    (void)unused;
    int how;
    const pid_t child = fork();
    if (child == 0) {
        signals_watch(NULL);
        signals_die(SIGTERM);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_is_splitmix),
        cmocka_unit_test(clocks_go_on),
        cmocka_unit_test(arrays_grow),
        cmocka_unit_test(arrays_have_an_end),
        cmocka_unit_test(bounds_are_the_lowest),
        cmocka_unit_test(varints_come_back),
        cmocka_unit_test(bytes_are_taken_apart),
        cmocka_unit_test(tables_find_rows),
        cmocka_unit_test(tables_bear_equal_hashes),
        cmocka_unit_test(shells_are_spawned),
        cmocka_unit_test(signals_are_counted),
        cmocka_unit_test(signals_end_a_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

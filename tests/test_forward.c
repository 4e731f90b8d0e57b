/*
 * test_forward.c - packets as a router takes and gives them
 */
#include <stdlib.h>
#include <string.h>

#include "apps/net/forward.h"
#include "support.h"

static struct face face_of(const char *name)
{
    const struct mark_spec loop = { .bits = 64, .k = 4, .seed = 3 };
    const struct mark_spec way = { .bits = 128, .k = 1, .k0 = 1, .seed = 3 };
    struct face f = { .mtu = 1500 };
    struct mark_maker *maker;
    assert_ok(mark_maker_new(&loop, &maker));
    assert_ok(mark_make(maker, name, strlen(name), &f.loop));
    mark_maker_free(maker);
    assert_ok(mark_maker_new(&way, &maker));
    assert_ok(mark_make(maker, name, strlen(name), &f.way));
    mark_maker_free(maker);
    return f;
}

/* A packet of `body` bytes behind its header, hop limit 64. */
static size_t a_packet(unsigned char *at, uint8_t next, size_t body)
{
    memset(at, 0, FORWARD_HEAD);
    at[0] = 0x60;
    at[4] = (unsigned char)(body >> 8);
    at[5] = (unsigned char)body;
    at[6] = next;
    at[7] = 64;
    at[8] = at[24] = 0xfd;
    at[23] = 1;
    at[39] = 2;
    for (size_t i = 0; i < body; i++)
        at[FORWARD_HEAD + i] = (unsigned char)(i * 7);
    return FORWARD_HEAD + body;
}

static void marked_once_and_found_again(void **state)
{
    (void)state;
    unsigned char in[2000], out[2000 + FORWARD_MORE],
        third[2000 + FORWARD_MORE];
    const struct face a = face_of("a"), b = face_of("b");
    struct marked loop, way;
    size_t n = a_packet(in, 17, 100), m;
    assert_false(forward_marks(&a, in, n, &loop, &way));
    assert_int_equal(forward(&a, 1, in, n, out, &m), FATE_SENT);
    /* A header of its own, and the packet behind it as it was. */
    assert_int_equal(m, n + 8 + 8 + 16);
    assert_int_equal(out[6], 0);
    assert_int_equal(out[7], 63);
    assert_int_equal(out[40], 17);
    assert_memory_equal(out + m - 100, in + 40, 100);
    assert_true(forward_marks(&a, out, m, &loop, &way));
    assert_true(mark_in(&a.loop, &loop) && mark_in(&a.way, &way));
    /* On it goes, and does not grow any more. */
    assert_int_equal(forward(&b, 1, out, m, third, &n), FATE_SENT);
    assert_int_equal(n, m);
    assert_int_equal(forward(&a, 1, third, n, out, &m), FATE_LOOP);
    /* Two strikes: the first is only noted, the second in a row ends it. */
    assert_int_equal(forward(&a, 2, third, n, out, &m), FATE_SENT);
    assert_int_equal(forward(&b, 2, out, m, third, &n), FATE_LOOP);
}

static void options_that_were_there_stay(void **state)
{
    (void)state;
    unsigned char in[200], out[200 + FORWARD_MORE];
    const struct face a = face_of("a");
    size_t n = a_packet(in, 0, 48), m;
    static const unsigned char options[] = { 58, 0, 5, 2, 0, 0, 1, 0 };
    memcpy(in + 40, options, sizeof options);
    assert_int_equal(forward(&a, 1, in, n, out, &m), FATE_SENT);
    assert_int_equal(out[40], 58);
    assert_memory_equal(out + 42, options + 2, 6);
    assert_int_equal(m, n + 32);
    assert_memory_equal(out + m - 40, in + 48, 40);
    struct marked loop, way;
    assert_true(forward_marks(&a, out, m, &loop, &way));
}

static void what_is_not_forwarded(void **state)
{
    (void)state;
    unsigned char in[70000], out[70000 + FORWARD_MORE];
    const struct face a = face_of("a");
    size_t n = a_packet(in, 17, 100), m;
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(forward(&a, 1, in, cut, out, &m), FATE_BAD);
    in[7] = 1;
    assert_int_equal(forward(&a, 1, in, n, out, &m), FATE_EXPIRED);
    in[7] = 64;
    in[24] = 0xff;
    assert_int_equal(forward(&a, 1, in, n, out, &m), FATE_NOT_OURS);
    in[24] = 0xfe;
    in[25] = 0x80;
    assert_int_equal(forward(&a, 1, in, n, out, &m), FATE_NOT_OURS);
    n = a_packet(in, 17, 1460);
    assert_int_equal(forward(&a, 1, in, n, out, &m), FATE_TOO_BIG);
    n = a_packet(in, 17, 65535);
    assert_true(forward(&a, 1, in, n, out, &m) != FATE_SENT);
    n = a_packet(in, 17, 100);
    in[0] = 0x45;
    assert_int_equal(forward(&a, 1, in, n, out, &m), FATE_BAD);
    /* Options that are cut, ours of another length, ours twice. */
    static const unsigned char wrong[][8] = {
        { 17, 0, 5, 200, 0, 0, 0, 0 },
        { 17, 0, 0x3e, 4, 0, 0, 0, 0 },
        { 17, 200, 0, 0, 0, 0, 0, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        n = a_packet(in, 0, 100);
        memcpy(in + 40, wrong[i], 8);
        assert_int_equal(forward(&a, 1, in, n, out, &m), FATE_BAD);
    }
}

static void complaints(void **state)
{
    (void)state;
    unsigned char in[2000], out[1280];
    static const unsigned char me[16] = { 0xfd, 9 };
    size_t n = a_packet(in, 17, 1460);
    const size_t m = forward_complain(FATE_TOO_BIG, 1400, me, in, n, out);
    assert_int_equal(m, 1280);
    assert_int_equal(out[40], 2);
    assert_int_equal(out[46] << 8 | out[47], 1400);
    assert_memory_equal(out + 8, me, 16);
    assert_memory_equal(out + 24, in + 8, 16);
    assert_memory_equal(out + 48, in, m - 48);
    /* None about an error, nor to nobody. */
    n = a_packet(in, 58, 100);
    in[40] = 3;
    assert_int_equal(forward_complain(FATE_EXPIRED, 0, me, in, n, out), 0);
    in[40] = 128;
    assert_true(forward_complain(FATE_EXPIRED, 0, me, in, n, out) > 0);
    memset(in + 8, 0, 16);
    assert_int_equal(forward_complain(FATE_EXPIRED, 0, me, in, n, out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marked_once_and_found_again),
        cmocka_unit_test(options_that_were_there_stay),
        cmocka_unit_test(what_is_not_forwarded),
        cmocka_unit_test(complaints),
    };
    return cmocka_run_group_tests_name("forward", tests, NULL, NULL);
}

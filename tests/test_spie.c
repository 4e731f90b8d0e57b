/*
 * test_spie.c - what packets are known by, what becomes of them, and tables
 */
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/spie.h"
#include "support.h"

#define LINK_RAW 101

/* UDP from 10.0.0.5:1000 to 192.0.2.9:53, of n bytes behind its header. */
static size_t udp_make(unsigned char *at, size_t n)
{
    static const unsigned char head[28] = {
        0x45, 7, 0,   0, 0x12, 0x34, 0, 0,    64, 17, 9, 9, 10,   0,
        0,    5, 192, 0, 2,    9,    3, 0xe8, 0,  53, 0, 0, 0xab, 0xcd,
    };
    const size_t all = sizeof head + n;
    memcpy(at, head, sizeof head);
    at[2] = (unsigned char)(all >> 8);
    at[3] = (unsigned char)all;
    at[24] = (unsigned char)((8 + n) >> 8);
    at[25] = (unsigned char)(8 + n);
    for (size_t i = 0; i < n; i++)
        at[sizeof head + i] = (unsigned char)(i * 7 + 1);
    return all;
}

static struct spie_packet known_by(const unsigned char *at, size_t n)
{
    struct packet p;
    struct spie_packet out;
    assert_int_equal(packet_parse(LINK_RAW, at, n, false, &p), PACKET_IP);
    assert_true(spie_known_by(&p, &out));
    return out;
}

static bool same(const struct spie_packet *a, const struct spie_packet *b)
{
    return a->len == b->len && memcmp(a->at, b->at, SPIE_BYTES) == 0;
}

static void routers_change_nothing(void **state)
{
    unsigned char at[200], six[100] = { 0x60, 0, 0, 0, 0, 40, 17, 64 };
    (void)state;
    const size_t n = udp_make(at, 100);
    const struct spie_packet was = known_by(at, n);
    assert_int_equal(was.len, 36);
    at[1] = 0;   /* type of service */
    at[8] = 60;  /* time to live */
    at[10] = 1;  /* checksum */
    at[26] ^= 9; /* that of UDP, which a card fills in */
    at[60] ^= 1; /* far behind */
    struct spie_packet now = known_by(at, n);
    assert_true(same(&was, &now));
    at[5] ^= 1; /* identification */
    now = known_by(at, n);
    assert_false(same(&was, &now));

    const struct spie_packet six_was = known_by(six, 80);
    assert_int_equal(six_was.len, 60);
    six[1] = six[3] = six[7] = 9;
    six[46] = six[47] = 1; /* checksum of UDP */
    now = known_by(six, 80);
    assert_true(same(&six_was, &now));
    six[59] = 1;
    now = known_by(six, 80);
    assert_false(same(&six_was, &now));

    /* That of TCP is among 20 bytes behind the header. */
    six[6] = IP_TCP;
    six[52] = 0x50;
    const struct spie_packet tcp_was = known_by(six, 80);
    six[56] ^= 1;
    now = known_by(six, 80);
    assert_true(same(&tcp_was, &now));
    six[55] ^= 1; /* its window */
    now = known_by(six, 80);
    assert_false(same(&tcp_was, &now));

    /* Captured too short: nothing is guessed. */
    struct packet p;
    assert_int_equal(packet_parse(LINK_RAW, at, 35, false, &p), PACKET_IP);
    assert_false(spie_known_by(&p, &now));
    /* But a short packet is whole. */
    at[2] = 0;
    at[3] = 22;
    assert_int_equal(packet_parse(LINK_RAW, at, 22, false, &p), PACKET_IP);
    assert_true(spie_known_by(&p, &now));
}

/* The checksum of UDP over IPv4, computed from the beginning. */
static void sum_set(unsigned char *at, size_t n)
{
    uint32_t s = 17 + (uint32_t)n - 20;
    at[26] = at[27] = 0;
    for (size_t i = 12; i < n; i += 2)
        s += (uint32_t)at[i] << 8 | (i + 1 < n ? at[i + 1] : 0);
    while (s >> 16)
        s = (s & 0xffff) + (s >> 16);
    s = ~s & 0xffff;
    at[26] = (unsigned char)(s >> 8);
    at[27] = (unsigned char)s;
}

static void nat_is_followed(void **state)
{
    unsigned char in[200], out[200];
    struct spie_nat nat;
    struct spie_packet after;
    (void)state;
    assert_true(spie_nat_line("10.0.0.5:1000 198.51.100.7:4000\n", &nat));
    const size_t n = udp_make(in, 41);
    sum_set(in, n);
    memcpy(out, in, n);
    memcpy(out + 12, "\xc6\x33\x64\x07", 4);
    out[20] = 4000 >> 8;
    out[21] = 4000 & 0xff;
    sum_set(out, n);
    const struct spie_packet before = known_by(in, n), right = known_by(out, n);
    assert_true(spie_nat_apply(&nat, &before, &after));
    assert_true(same(&after, &right));

    /* What comes back is translated too; others are not. */
    unsigned char back[200], back_in[200];
    memcpy(back, out, n);
    memcpy(back + 16, out + 12, 4);
    memcpy(back + 12, out + 16, 4);
    memcpy(back + 22, out + 20, 2);
    memcpy(back + 20, out + 22, 2);
    sum_set(back, n);
    memcpy(back_in, back, n);
    memcpy(back_in + 16, in + 12, 4);
    memcpy(back_in + 22, in + 20, 2);
    sum_set(back_in, n);
    const struct spie_packet b = known_by(back, n), b_in = known_by(back_in, n);
    assert_true(spie_nat_apply(&nat, &b, &after));
    assert_true(same(&after, &b_in));
    assert_false(spie_nat_apply(&nat, &right, &after));
    /* Where cards fill checksums in, these have nothing to do with each other.
     */
    out[26] ^= 0x5a;
    const struct spie_packet offloaded = known_by(out, n);
    assert_true(spie_nat_apply(&nat, &before, &after));
    assert_true(same(&after, &offloaded));

    static const char *const wrong[] = {
        "",
        "10.0.0.5",
        "10.0.0.5 x",
        "10.0.0.5:1 10.0.0.6",
        "a b",
        "10.0.0.5:70000 10.0.0.6:1",
        "10.0.0.5:0 10.0.0.6:0",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(spie_nat_line(wrong[i], &nat));
    assert_true(spie_nat_line("10.0.0.5\t10.0.0.6", &nat));
}

static void fragments_are_followed(void **state)
{
    unsigned char whole[1500], piece[200];
    struct packet p;
    struct spie_packet f;
    (void)state;
    const size_t n = udp_make(whole, 400);
    assert_int_equal(packet_parse(LINK_RAW, whole, n, false, &p), PACKET_IP);
    unsigned i = 0;
    for (size_t from = 0; from < n - 20; from += 80, i++) {
        const size_t len = n - 20 - from < 80 ? n - 20 - from : 80;
        memcpy(piece, whole, 20);
        memcpy(piece + 20, whole + 20 + from, len);
        piece[2] = 0;
        piece[3] = (unsigned char)(20 + len);
        piece[6] = from + len < n - 20 ? 0x20 : 0;
        piece[7] = (unsigned char)(from / 8);
        const struct spie_packet right = known_by(piece, 20 + len);
        assert_true(spie_fragment(&p, 104, i, &f)); /* 84, rounded to 80 */
        assert_true(same(&f, &right));
    }
    assert_false(spie_fragment(&p, 104, i, &f));
    assert_false(spie_fragment(&p, 1500, 0, &f));
    whole[6] = 0x40; /* don't fragment */
    assert_false(spie_fragment(&p, 104, 0, &f));
}

/* ------------------------------------------------------------------- files */

static struct spie_file tables_made(void)
{
    struct spie_file f = { .router = "r1" };
    for (uint64_t t = 0; t < 3; t++) {
        const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = t + 5 };
        uint64_t hashes[100];
        struct spie_packet p = { .len = 28 };
        for (unsigned i = 0; i < 100; i++) {
            p.at[20] = (unsigned char)i;
            p.at[21] = (unsigned char)t;
            hashes[i] = bly_hash(&h, p.at, p.len);
        }
        struct spie_table made = { .start = (int64_t)t * 1000,
                                   .end = (int64_t)t * 1000 + 900,
                                   .packets = 100,
                                   .bytes = 5000 };
        assert_ok(spie_table_make(t + 5, hashes, 100, 2000, &made.filter));
        if (t == 1) {
            made.sides = calloc(1, sizeof *made.sides);
            assert_non_null(made.sides);
            p.at[20] = 200; /* leaves as that, came as 7 */
            made.sides[0].hash = bly_hash(&h, p.at, p.len);
            made.sides[0].change = SPIE_NAT;
            made.sides[0].before = p;
            made.sides[0].before.at[20] = 7;
            made.nsides = 1;
        }
        assert_true(spie_file_add(&f, &made));
    }
    return f;
}

static void tables_are_asked(void **state)
{
    struct spie_file made = tables_made(), f;
    size_t n;
    unsigned char *const bytes = spie_file_bytes(&made, &n);
    struct spie_packet p = { .len = 28 }, was;
    enum spie_change change;
    (void)state;
    assert_non_null(bytes);
    assert_null(spie_file_parse(bytes, n, &f));
    assert_string_equal(f.router, "r1");
    assert_int_equal(f.ntables, 3);
    p.at[20] = 7;
    p.at[21] = 1;
    assert_int_equal(spie_ask(&f, 1200, 1300, &p, &was, &change), SPIE_MAYBE);
    assert_int_equal(spie_ask(&f, 0, 3000, &p, &was, &change), SPIE_MAYBE);
    assert_int_equal(spie_ask(&f, 950, 980, &p, &was, &change), SPIE_SILENT);
    p.at[20] = 200;
    assert_int_equal(spie_ask(&f, 1200, 1300, &p, &was, &change), SPIE_CHANGED);
    assert_int_equal(change, SPIE_NAT);
    assert_int_equal(was.at[20], 7);
    p.at[22] = 99;
    unsigned maybe = 0;
    for (unsigned i = 0; i < 200; i++) {
        p.at[23] = (unsigned char)i;
        maybe += spie_ask(&f, 0, 500, &p, &was, &change) == SPIE_MAYBE;
    }
    assert_true(maybe < 10); /* 20 bits per packet: 7e-5 */
    free(bytes);
    spie_file_drop(&f);
    assert_int_equal(f.ntables, 2);
    spie_file_free(&f);
    spie_file_free(&made);
}

/* Every cut and every flipped bit is refused. */
static void damage_is_seen(void **state)
{
    struct spie_file made = tables_made(), f;
    size_t n;
    unsigned char *const bytes = spie_file_bytes(&made, &n);
    (void)state;
    assert_non_null(bytes);
    for (size_t cut = 0; cut < n; cut++)
        assert_non_null(spie_file_parse(bytes, cut, &f));
    for (size_t i = 0; i < n * 8; i += 3) {
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_non_null(spie_file_parse(bytes, n, &f));
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    assert_null(spie_file_parse(bytes, n, &f));
    spie_file_free(&f);
    free(bytes);
    spie_file_free(&made);
}

/* -------------------------------------------------------------------- walk */

static enum spie_answer ask_some(void *ctx, size_t router,
                                 const struct spie_packet *p,
                                 struct spie_packet *was,
                                 enum spie_change *change)
{
    const enum spie_answer *const answers = ctx;
    *was = *p;
    was->at[0] = 1;
    *change = SPIE_TUNNEL;
    if (p->at[0] && router == 4)
        return SPIE_MAYBE; /* it knows the packet as it was before */
    return answers[router];
}

static void walks_go_back(void **state)
{
    /* 0 - 1 - 2 - 4, 1 - 3, and a ring 4 - 0. */
    static enum spie_answer answers[] = { SPIE_MAYBE, SPIE_MAYBE, SPIE_CHANGED,
                                          SPIE_SILENT, SPIE_NO };
    static const size_t links[][2] = {
        { 0, 1 },
        { 1, 2 },
        { 2, 4 },
        { 3, 1 },
    };
    struct spie_net net = { 0 };
    struct spie_step steps[5];
    (void)state;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(
            spie_net_router(&net, (char[]){ (char)('a' + i), 0 }, true), i);
    assert_int_equal(spie_net_router(&net, "c", false), 2);
    assert_int_equal(spie_net_router(&net, "z", false), SPIE_NOBODY);
    for (size_t i = 0; i < COUNT_OF(links); i++)
        assert_true(spie_net_link(&net, links[i][0], links[i][1]));
    const struct spie_packet p = { .len = 28 };
    assert_int_equal(spie_walk(&net, 0, &p, ask_some, answers, steps), 5);
    assert_int_equal(steps[2].router, 2);
    assert_int_equal(steps[2].answer, SPIE_CHANGED);
    assert_int_equal(steps[4].router, 4);
    assert_int_equal(steps[4].answer, SPIE_MAYBE);
    assert_int_equal(steps[4].hops, 3);
    assert_true(steps[4].last);
    assert_false(steps[1].last);
    spie_net_free(&net);
}

/* A table that is coded in a thousandth of what it takes is none of ours. */
static void no_table_takes_more_than_its_bytes(void **state)
{
    struct spie_file made = { .router = "r" }, f = { 0 };
    struct spie_table t = { .packets = 1 };
    const uint64_t hash = 7;
    size_t n;
    (void)state;
    assert_ok(spie_table_make(1, &hash, 1, UINT64_C(1) << 27, &t.filter));
    bly_set_coded(t.filter, true);
    assert_true(spie_file_add(&made, &t));
    unsigned char *const bytes = spie_file_bytes(&made, &n);
    assert_non_null(bytes);
    assert_true(n < 1 << 17);
    const char *const why = spie_file_parse(bytes, n, &f);
    assert_non_null(why);
    assert_non_null(strstr(why, "limit"));
    free(bytes);
    spie_file_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routers_change_nothing),
        cmocka_unit_test(no_table_takes_more_than_its_bytes),
        cmocka_unit_test(nat_is_followed),
        cmocka_unit_test(fragments_are_followed),
        cmocka_unit_test(tables_are_asked),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(walks_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

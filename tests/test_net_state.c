/*
 * test_net_state.c - groups and services, as state machines without sockets
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/caster.h"
#include "apps/net/ipv6.h"
#include "apps/net/seek.h"
#include "chord/service.h"
#include "support.h"

#define PAIRS 40
#define FACES 7

static void pair_of(unsigned number, unsigned char pair[CAST_PAIR])
{
    memset(pair, 0, CAST_PAIR);
    pair[0] = 0xfd;
    pair[15] = (unsigned char)number;
    pair[16] = 0xff;
    pair[17] = 0x3e;
    pair[31] = 1;
}

/* Random joins, leaves and times against a plain array doing the same. */
static void wishes_are_exact_and_filters_miss_none(void **state)
{
    (void)state;
    struct cast c;
    uint64_t random = 5, until[PAIRS][FACES] = { { 0 } };
    unsigned char pair[CAST_PAIR];
    enum cast_change change;
    assert_true(cast_new(&c, 20, 8, PAIRS, 3));
    for (uint64_t now = 1; now < 20000; now++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const unsigned k = (unsigned)(random >> 33) % PAIRS;
        const unsigned face = (unsigned)(random >> 45) % FACES;
        unsigned others = 0;
        for (unsigned i = 0; i < FACES; i++)
            others += i != face && until[k][i];
        pair_of(k, pair);
        if (random >> 60 < 9) {
            change = cast_join(&c, pair, face, now + 500);
            assert_int_equal(change, !others && !until[k][face] ? CAST_FIRST
                                                                : CAST_SAME);
            until[k][face] = now + 500;
        } else {
            change = cast_leave(&c, pair, face);
            assert_int_equal(change,
                             !others && until[k][face] ? CAST_LAST : CAST_SAME);
            until[k][face] = 0;
        }
        for (uint32_t at = 0;
             cast_expire(&c, &at, now, CAST_FACE_NONE, pair, &change);) {
            unsigned gone = 0;
            for (unsigned i = 0; i < FACES; i++)
                if (until[pair[15]][i] && until[pair[15]][i] <= now) {
                    until[pair[15]][i] = 0;
                    gone++;
                }
            /* Wishes of one pair may end in one moment, one after another. */
            for (; gone > 1; gone--)
                assert_true(
                    cast_expire(&c, &at, now, CAST_FACE_NONE, pair, &change));
        }
        for (unsigned i = 0; i < PAIRS; i++) {
            uint64_t wanted = 0;
            for (unsigned f = 0; f < FACES; f++)
                wanted |= (uint64_t)(until[i][f] != 0) << f;
            pair_of(i, pair);
            assert_int_equal(cast_wanted(&c, pair), wanted);
            const uint64_t copies = cast_copies(&c, pair, 0, 0);
            assert_int_equal(wanted & ~UINT64_C(1) & ~copies, 0);
            assert_int_equal(cast_copies(&c, pair, 1, 2), 0);
        }
    }
    /* All leave: the filters are as in the beginning. */
    for (unsigned face = 0; face < FACES; face++)
        for (uint32_t at = 0; cast_expire(&c, &at, 0, face, pair, &change);)
            ;
    for (uint64_t i = 0; i < c.groups.nbits; i++)
        assert_int_equal(c.groups.words[i], 0);
    cast_free(&c);
}

/* A router with three interfaces; sources lie behind the first. */
struct heard {
    unsigned n, face;
    unsigned char packet[MLD_MOST];
    size_t nbytes;
};

static unsigned up_first(void *ctx, const unsigned char address[16])
{
    (void)ctx;
    (void)address;
    return 0;
}

static void keep_packet(void *ctx, unsigned face, const unsigned char *packet,
                        size_t n)
{
    struct heard *const h = ctx;
    h->n++;
    h->face = face;
    h->nbytes = n;
    memcpy(h->packet, packet, n);
}

static void a_group_is_asked_for_and_given_back(void **state)
{
    (void)state;
    struct heard h = { 0 };
    struct caster c = { .nfaces = 3,
                        .period = 10000,
                        .next = 100000,
                        .up = up_first,
                        .send = keep_packet,
                        .ctx = &h };
    unsigned char pair[CAST_PAIR], out[MLD_MOST], packet[IPV6_HEAD] = { 0x60 };
    struct mld m;
    struct mld_record r;
    assert_true(cast_new(&c.cast, 10, 16, 10, 3));
    for (unsigned i = 0; i < 3; i++) {
        c.address[i][0] = 0xfe;
        c.address[i][1] = 0x80;
        c.address[i][15] = (unsigned char)(i + 1);
    }
    pair_of(1, pair);
    memcpy(packet + IPV6_FROM, pair, CAST_PAIR);
    assert_int_equal(caster_copies(&c, 0, packet), 0);
    size_t n = mld_report(c.address[2], MLD_WANTS, pair, 1, out);
    /* Every byte that is changed on the way makes it none of ours, but for
     * those of the option, which no sum protects. */
    for (size_t i = IPV6_FROM; i < n; i++) {
        if (i >= IPV6_HEAD && i < IPV6_HEAD + 8)
            continue;
        out[i] ^= 1;
        caster_hear(&c, 1, out, n, 1);
        out[i] ^= 1;
    }
    for (size_t i = 0; i < n; i++)
        caster_hear(&c, 1, out, i, 1);
    assert_int_equal(c.joins, 0);
    caster_hear(&c, 1, out, n, 1);
    /* The router asks for it itself, towards the source. */
    assert_int_equal(h.n, 1);
    assert_int_equal(h.face, 0);
    assert_true(mld_read(h.packet, h.nbytes, &m) && mld_next(&m, &r));
    assert_int_equal(r.says, MLD_WANTS);
    assert_memory_equal(r.sources, pair, 16);
    assert_memory_equal(r.group, pair + 16, 16);
    caster_hear(&c, 2, out, n, 1);
    assert_int_equal(h.n, 1);
    assert_int_equal(caster_copies(&c, 0, packet), 6);
    assert_int_equal(caster_copies(&c, 1, packet), 0);
    assert_int_equal(c.off_path, 1);
    /* Where the source is, nobody can want it. */
    caster_hear(&c, 0, out, n, 1);
    assert_int_equal(c.joins, 2);
    /* One leaves: asked after, and believed after a second. */
    n = mld_report(c.address[2], MLD_LEAVES, pair, 1, out);
    caster_hear(&c, 1, out, n, 100);
    assert_int_equal(h.n, 2);
    assert_int_equal(h.face, 1);
    assert_true(mld_read(h.packet, h.nbytes, &m));
    assert_int_equal(m.kind, MLD_QUERY);
    assert_int_equal(caster_copies(&c, 0, packet), 6);
    caster_tick(&c, 1100);
    assert_int_equal(caster_copies(&c, 0, packet), 4);
    assert_int_equal(h.n, 2);
    /* A question for it from the first link is answered; then silence. */
    n = mld_query(c.address[0], pair, out);
    caster_hear(&c, 0, out, n, 1200);
    assert_int_equal(h.n, 3);
    caster_tick(&c, 40000);
    assert_int_equal(h.n, 4);
    assert_true(mld_read(h.packet, h.nbytes, &m) && mld_next(&m, &r));
    assert_int_equal(r.says, MLD_LEAVES);
    assert_int_equal(caster_copies(&c, 0, packet), 0);
    cast_free(&c.cast);
}

static void checksums_are_finished(void **state)
{
    (void)state;
    unsigned char in[IPV6_HEAD + 11] = { 0x60 };
    ipv6_put16(in + 4, 11);
    in[IPV6_NEXT] = 17;
    in[IPV6_FROM] = in[IPV6_TO] = 0xfd;
    for (unsigned i = 0; i < 11; i++)
        in[IPV6_HEAD + i] = (unsigned char)(i * 31);
    assert_true(ipv6_finish(in, sizeof in));
    assert_int_equal(ipv6_sum(in, 17, in + IPV6_HEAD, 11), 0);
    in[IPV6_NEXT] = 59;
    assert_false(ipv6_finish(in, sizeof in));
    in[IPV6_NEXT] = 6; /* too short for TCP */
    assert_false(ipv6_finish(in, sizeof in));
}

static void questions_use_no_link_twice_and_go_back_once(void **state)
{
    (void)state;
    struct seek s;
    uint32_t to;
    seek_start(&s, 0, 20);
    assert_true(seek_next(&s, (uint32_t[]){ 1, 2 }, 2, &to));
    assert_int_equal(to, 1);
    assert_true(seek_next(&s, (uint32_t[]){ 0 }, 1, &to));
    assert_int_equal(to, 0);
    assert_true(seek_next(&s, (uint32_t[]){ 1, 2 }, 2, &to));
    assert_int_equal(to, 2);
    assert_true(seek_next(&s, NULL, 0, &to)); /* a dead end: one step back */
    assert_int_equal(to, 0);
    assert_false(seek_next(&s, (uint32_t[]){ 1, 2 }, 2, &to));
    assert_int_equal(s.hops, 4);
    seek_start(&s, 0, 1000);
    unsigned steps = 0;
    for (uint32_t next = 1; seek_next(&s, &next, 1, &to); next++)
        steps++;
    assert_true(steps <= SEEK_MOST + 1);
}

static void a_hierarchy_is_asked_once_each(void **state)
{
    (void)state;
    struct climb c;
    uint32_t at, order[8], n = 0;
    /* 0 above 1 and 2; 3 below 1, where it begins; 2 says maybe, in vain. */
    assert_true(climb_start(&c, 3, 100));
    while (climb_next(&c, &at)) {
        order[n++] = at;
        if (at == 0)
            climb_heard(&c, (uint32_t[]){ 1, 2 }, 2, SEEK_NOBODY, false);
        else if (at == 1)
            climb_heard(&c, (uint32_t[]){ 3 }, 1, 0, true);
        else
            climb_heard(&c, NULL, 0, at == 3 ? 1 : 0, false);
    }
    assert_int_equal(n, 4);
    assert_memory_equal(order, ((uint32_t[]){ 3, 1, 0, 2 }), 4 * sizeof at);
    assert_int_equal(climb_wasted(&c), 1);
    climb_free(&c);
}

static void sets_of_tags_are_keys(void **state)
{
    (void)state;
    struct service s = { .ntags = 0 }, q = { .ntags = 0 };
    uint64_t keys[SERVICE_KEYS];
    char tag[8];
    for (unsigned i = 0; i < SERVICE_TAGS; i++) {
        snprintf(tag, sizeof tag, "k%u=v", 7 - i);
        assert_true(service_tag(&s, tag, strlen(tag)));
        assert_true(service_tag(&s, tag, strlen(tag))); /* once */
    }
    assert_false(service_tag(&s, "more=1", 6));
    assert_false(service_tag(&q, "a\nb", 3));
    assert_int_equal(service_keys(&s, keys), SERVICE_KEYS);
    for (size_t i = 0; i < SERVICE_KEYS; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(keys[i] != keys[k]);
    /* A question with its tags in any order is one of the keys. */
    assert_true(service_tag(&q, "k5=v", 4) && service_tag(&q, "k0=v", 4) &&
                service_tag(&q, "k3=v", 4));
    unsigned hits = 0;
    for (size_t i = 0; i < SERVICE_KEYS; i++)
        hits += keys[i] == service_key(&q);
    assert_int_equal(hits, 1);
    assert_true(service_has(&s, &q));
    assert_false(service_has(&q, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wishes_are_exact_and_filters_miss_none),
        cmocka_unit_test(a_group_is_asked_for_and_given_back),
        cmocka_unit_test(checksums_are_finished),
        cmocka_unit_test(questions_use_no_link_twice_and_go_back_once),
        cmocka_unit_test(a_hierarchy_is_asked_once_each),
        cmocka_unit_test(sets_of_tags_are_keys),
    };
    return cmocka_run_group_tests_name("net_state", tests, NULL, NULL);
}

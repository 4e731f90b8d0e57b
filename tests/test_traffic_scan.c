/*
 * test_traffic_scan.c - strings found in pieces, beside an automaton, and TCP
 * put in order
 */
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/reassembly.h"
#include "apps/traffic/scan_rules.h"
#include "apps/traffic/scan.h"
#include "reassembly_check.h"
#include "support.h"

/* Few letters, so that everything happens: overlaps, repeats, runs. */
static void random_text(uint64_t *at, unsigned char *out, size_t n,
                        unsigned letters)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)("abAB01|\n"[test_random(at) % letters]);
}

static struct rules random_strings(uint64_t *at, size_t n, unsigned letters)
{
    struct rules r = { 0 };
    unsigned char text[80];
    for (size_t i = 0; i < n; i++) {
        const size_t len = 1 + test_random(at) % (i % 3 ? 12 : 80);
        random_text(at, text, len, letters < 7 ? letters : 7);
        assert_null(rules_line(
            &r, test_random(at) % 4 ? RULES_LINES : RULES_LINES_NOCASE, text,
            len));
        if (test_random(at) % 8 == 0) {
            r.strings[r.n - 1].offset = test_random(at) % 3000;
            r.strings[r.n - 1].depth =
                test_random(at) % 2 ? len + test_random(at) % 1000 : 0;
        }
    }
    return r;
}

struct found {
    struct scan_match *at;
    size_t n, room;
};

static void found_add(struct found *f, const struct scan_match *m, size_t n)
{
    if (f->n + n > f->room) {
        f->room = (f->n + n) * 2;
        f->at = realloc(f->at, f->room * sizeof *f->at);
        assert_non_null(f->at);
    }
    if (n)
        memcpy(f->at + f->n, m, n * sizeof *m);
    f->n += n;
}

static int found_order(const void *a, const void *b)
{
    const struct scan_match *const x = a, *const y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->string < y->string ? -1 : x->string > y->string;
}

/* All matches of a text that comes in pieces of up to `most` bytes, which end
 * at the end of the memory they are in, or a little before it: what follows
 * then would be a match. */
static struct found scan_pieces(const struct rules *r,
                                const struct scan_spec *spec,
                                const unsigned char *text, size_t n,
                                size_t most, uint64_t *at)
{
    struct found f = { 0 };
    struct scanner *const s = scanner_new(r->strings, r->n, spec);
    assert_non_null(s);
    for (size_t done = 0; done < n;) {
        const size_t piece = 1 + test_random(at) % most;
        const size_t len = piece < n - done ? piece : n - done;
        const size_t seen = done < scanner_keeps(s) ? done : scanner_keeps(s);
        const size_t more = test_random(at) % 4 * 40, rest = n - done - len;
        const size_t ahead = more < rest ? more : rest;
        unsigned char *const own = malloc(seen + len + ahead);
        const struct scan_piece p = { own, seen, seen + len, done - seen,
                                      ahead };
        const struct scan_match *m;
        size_t nm;
        assert_non_null(own);
        memcpy(own, text + done - seen, seen + len + ahead);
        assert_true(scanner_scan(s, &p, &m, &nm));
        for (size_t i = 1; i < nm; i++)
            assert_true(found_order(&m[i - 1], &m[i]) < 0);
        found_add(&f, m, nm);
        free(own);
        done += len;
    }
    assert_int_equal(scanner_load(s)->bytes, n);
    assert_int_equal(scanner_load(s)->matches, f.n);
    scanner_free(s);
    qsort(f.at, f.n, sizeof *f.at, found_order);
    return f;
}

static struct found scan_plainly(const struct rules *r,
                                 const unsigned char *text, size_t n)
{
    struct found f = { 0 };
    for (size_t start = 0; start < n; start++)
        for (size_t i = 0; i < r->n; i++)
            if (scan_there(&r->strings[i], text, n, start, 0))
                found_add(&f, &(struct scan_match){ start, i }, 1);
    return f;
}

static void assert_same(const struct found *a, const struct found *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal(a->at[i].start, b->at[i].start);
        assert_int_equal(a->at[i].string, b->at[i].string);
    }
}

static void the_same_matches_however_they_are_found(void **state)
{
    static const struct scan_spec specs[] = {
        { .exact = true },           { 0 },
        { .variant = 1, .seed = 5 }, { .seed = 77 },
        { .per_length = true },
    };
    uint64_t at = 1;
    (void)state;
    for (unsigned round = 0; round < 12; round++) {
        unsigned char text[6000];
        const unsigned letters = 2 + round % 6;
        struct rules r = random_strings(&at, 1 + round * 9, letters);
        random_text(&at, text, sizeof text, letters);
        /* Some are there for certain. */
        for (size_t i = 0; i < r.n; i += 3)
            memcpy(text + test_random(&at) % (sizeof text - 80),
                   r.strings[i].at, r.strings[i].n);
        struct found plain = scan_plainly(&r, text, sizeof text);
        assert_true(plain.n > 0);
        for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
            const size_t most = (size_t[]){ 1, 40, 5000 }[round % 3];
            struct found f = scan_pieces(&r, &specs[i], text, sizeof text,
                                         i ? most : 5000, &at);
            assert_same(&f, &plain);
            free(f.at);
        }
        free(plain.at);
        rules_free(&r);
    }
}

static int place_order(const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

/* All variants let pass what has bytes of the classes. */
static void variants_let_the_same_pass(void **state)
{
    static uint16_t right[SCAN_BLOCK + 64], got[SCAN_BLOCK + 64];
    static unsigned char text[SCAN_BLOCK + SCAN_AHEAD];
    uint64_t at = 11;
    (void)state;
    for (unsigned round = 0; round < 24; round++) {
        struct scan_group groups[SCAN_GROUPS];
        struct rules r = random_strings(&at, 1 + round * 5, 7);
        const size_t n = round ? test_random(&at) % SCAN_BLOCK : SCAN_BLOCK;
        const size_t ngroups =
            scan_groups(r.strings, r.n, &(struct scan_spec){ 0 }, groups);
        assert_true(ngroups > 0);
        if (round % 2)
            random_text(&at, text, sizeof text, 8);
        else
            for (size_t i = 0; i < sizeof text; i++)
                text[i] = (unsigned char)test_random(&at);
        for (size_t g = 0; g < ngroups; g++) {
            const size_t nright = scan_variants[scan_nvariants - 1].front(
                &groups[g], text, n, right);
            size_t plain = 0;
            for (size_t i = 0; i < n; i++) {
                unsigned set = 0xff;
                for (unsigned j = 0; j < groups[g].window; j++)
                    set &= groups[g].classes[j][text[i + j]];
                plain += set != 0;
            }
            assert_int_equal(nright, plain);
            qsort(right, nright, sizeof *right, place_order);
            for (size_t v = 0; v + 1 < scan_nvariants; v++) {
                if (!scan_variants[v].here())
                    continue;
                const size_t ngot =
                    scan_variants[v].front(&groups[g], text, n, got);
                assert_int_equal(ngot, nright);
                qsort(got, ngot, sizeof *got, place_order);
                assert_memory_equal(got, right, ngot * sizeof *got);
            }
        }
        scan_groups_free(groups, ngroups);
        rules_free(&r);
    }
}

/* Windows that differ in their last bytes only are all found, beside each other
 * in the table. */
static void windows_that_are_alike(void **state)
{
    struct rules r = { 0 };
    unsigned char line[8] = "windowAA", text[40 * 8000];
    uint64_t at = 5;
    (void)state;
    for (unsigned i = 0; i < 40000; i++) {
        put_le(line + 5, i * 419, 3);
        assert_null(rules_line(&r, RULES_LINES, line, 8));
    }
    for (size_t i = 0; i + 8 <= sizeof text; i += 8) {
        put_le(line + 5, test_random(&at) % 40000 * 419, 3);
        memcpy(text + i, line, 8);
    }
    struct found right = scan_pieces(&r, &(struct scan_spec){ .exact = true },
                                     text, sizeof text, 50000, &at);
    struct found f = scan_pieces(&r, &(struct scan_spec){ 0 }, text,
                                 sizeof text, 50000, &at);
    assert_true(right.n > 10000);
    assert_same(&f, &right);
    free(f.at);
    free(right.at);
    rules_free(&r);
}

/* Random bytes give as many windows that pass as classes and filters say. */
static void the_load_is_as_computed(void **state)
{
    uint64_t at = 3;
    (void)state;
    for (unsigned per_length = 0; per_length < 2; per_length++) {
        struct rules r = { 0 };
        unsigned char line[40], *const text = malloc(1 << 20);
        const struct scan_match *m;
        size_t nm;
        assert_non_null(text);
        for (unsigned i = 0; i < 2000; i++) {
            const size_t n = 3 + test_random(&at) % 6;
            for (size_t k = 0; k < n; k++)
                line[k] = (unsigned char)test_random(&at);
            assert_null(rules_line(&r, RULES_LINES, line, n));
        }
        for (size_t i = 0; i < 1 << 20; i++)
            text[i] = (unsigned char)test_random(&at);
        struct scanner *const s = scanner_new(
            r.strings, r.n, &(struct scan_spec){ .per_length = per_length });
        assert_non_null(s);
        const struct scan_piece all = { .at = text, .n = 1 << 20 };
        assert_true(scanner_scan(s, &all, &m, &nm));
        const struct scan_load *const load = scanner_load(s);
        const double off = (double)load->passed - load->computed;
        assert_true(load->computed > 100);
        assert_true(off * off < 36 * load->computed);
        scanner_free(s);
        rules_free(&r);
        free(text);
    }
}

static void strings_that_cannot_be(void **state)
{
    unsigned char long_one[SCAN_LONGEST + 1] = { 1 };
    struct rules r = { 0 };
    (void)state;
    assert_null(scanner_new(NULL, 0, &(struct scan_spec){ 0 }));
    assert_non_null(rules_line(&r, RULES_LINES, long_one, sizeof long_one));
    assert_null(rules_line(&r, RULES_LINES, long_one, SCAN_LONGEST));
    assert_null(rules_line(&r, RULES_LINES, long_one, 0));
    assert_int_equal(r.n, 1);
    rules_free(&r);
}

/* ------------------------------------------------------------------- rules */

static const char *rule(struct rules *r, const char *text)
{
    return rules_line(r, RULES_SNORT, (const unsigned char *)text,
                      strlen(text));
}

static void snorts_rules(void **state)
{
    struct rules r = { 0 };
    (void)state;
    assert_null(rule(&r, "# alert (content:\"no\";)"));
    assert_null(rule(&r, ""));
    assert_null(rule(&r, "alert tcp any any -> any 80 (msg:\"a (b); c\"; "
                         "content:\"GE|54 20|\\\"\\;x\"; nocase; offset: 4; "
                         "depth:20; content:\"Two\"; sid:77; rev:1;)"));
    assert_int_equal(r.n, 2);
    assert_int_equal(r.strings[0].n, 7);
    assert_memory_equal(r.strings[0].at, "get \";x", 7);
    assert_true(r.strings[0].nocase);
    assert_int_equal(r.strings[0].offset, 4);
    assert_int_equal(r.strings[0].depth, 20);
    assert_int_equal(r.strings[0].rule, 77);
    assert_memory_equal(r.strings[1].at, "Two", 3);
    assert_false(r.strings[1].nocase);
    assert_int_equal(r.strings[1].depth, 0);
    assert_null(rule(&r, "alert http ( content:\"a,b\",nocase,offset 3,depth "
                         "9; content:!\"not\"; )"));
    assert_int_equal(r.n, 3);
    assert_memory_equal(r.strings[2].at, "a,b", 3);
    assert_true(r.strings[2].nocase);
    assert_int_equal(r.strings[2].offset, 3);
    assert_int_equal(r.strings[2].depth, 9);
    assert_int_equal(r.strings[2].rule, 4);
    assert_int_equal(r.absent, 1);
    assert_null(rule(&r, "content:\"alone|00|\""));
    assert_int_equal(r.strings[3].n, 6);
    assert_null(rule(&r, "alert tcp any any -> any any (msg:\"nothing\";)"));
    assert_int_equal(r.without, 1);
    static const char *const wrong[] = {
        "content:\"\"",
        "content:\"|4|\"",
        "content:\"|4\"",
        "content:\"|zz|\"",
        "content:abc",
        "content:\"a\";depth:0",
        "content:\"a\";offset:x",
        "content:\"a\";sid:q",
        "content:\"",
        "content:",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_non_null(rule(&r, wrong[i]));
    rules_free(&r);
}

/* -------------------------------------------------------------- reassembly */

#define STREAM 5000
struct stream_got {
    const unsigned char *all;
    unsigned seen[STREAM];
    bool bad;
};

static bool stream_check(void *ctx, const struct flow_key *key,
                         const unsigned char *at, size_t seen, size_t n,
                         uint64_t base)
{
    struct stream_got *const g = ctx;
    (void)key;
    if (n <= seen || base + n > STREAM || memcmp(g->all + base, at, n) != 0)
        g->bad = true;
    for (uint64_t i = base + seen; !g->bad && i < base + n; i++)
        g->seen[i]++;
    return true;
}

/* Segments in any order, twice, overlapping, cut short, around the end of the
 * sequence numbers: each byte comes in its place, and once if none was late. */
static void streams_are_put_in_order(void **state)
{
    uint64_t at = 9;
    unsigned char all[STREAM];
    unsigned in_order = 0;
    (void)state;
    for (size_t i = 0; i < STREAM; i++)
        all[i] = (unsigned char)test_random(&at);
    for (unsigned round = 0; round < 60; round++) {
        struct stream_got got = { .all = all };
        bool sent[STREAM] = { false };
        const uint32_t first = round % 2 ? UINT32_MAX - 2000 : 17;
        const bool whole = round % 3 != 0;
        struct reassembly *const r = reassembly_new(
            &(struct reassembly_spec){ .keeps = test_random(&at) % 300,
                                       .memory = round % 5 ? 1 << 20 : 9000,
                                       .take = stream_check,
                                       .ctx = &got });
        assert_non_null(r);
        const struct flow_key key = { 3, "key" };
        struct segment s = { .key = key, .sequence = first - 1, .syn = true };
        assert_true(reassembly_add(r, &s));
        /* A window of segments moves on; some are left out until later. */
        for (size_t done = 0; done < STREAM;) {
            const size_t n = 1 + test_random(&at) % 200;
            for (unsigned k = 0; k < 4; k++) {
                const size_t back = test_random(&at) % 300;
                const size_t from = done > back ? done - back : 0;
                size_t to = from + 1 + test_random(&at) % 400;
                to = to < STREAM ? to : STREAM;
                s = (struct segment){ .key = key,
                                      .sequence = first + (uint32_t)from,
                                      .at = all + from,
                                      .n = to - from,
                                      .wire = to - from };
                if (!whole && test_random(&at) % 8 == 0)
                    s.n = test_random(&at) % (s.n + 1);
                for (size_t i = from; i < from + s.n; i++)
                    sent[i] = true;
                assert_true(reassembly_add(r, &s));
            }
            done += n;
        }
        assert_true(reassembly_end(r));
        assert_false(got.bad);
        const struct reassembly_sum *const sum = reassembly_sum(r);
        for (size_t i = 0; i < STREAM; i++) {
            assert_true(!sent[i] || got.seen[i]);
            if (!sum->late)
                assert_true(got.seen[i] == sent[i]);
        }
        in_order += !sum->late && !sum->gaps;
        assert_int_equal(sum->changed, 0);
        assert_int_equal(sum->streams, 1);
        reassembly_free(r);
    }
    assert_true(in_order >= 30);
}

/* Whatever is forged: nothing is lost. */
static void nothing_is_lost(void **state)
{
    uint64_t at = 4;
    unsigned char ops[1 + 4 * 120];
    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        const size_t n = 1 + 4 * (test_random(&at) % 120);
        for (size_t i = 0; i < n; i++)
            ops[i] = (unsigned char)test_random(&at);
        /* Few beginnings and ends, or else streams are short. */
        for (size_t i = 1; i < n; i += 4)
            if (test_random(&at) % 8)
                ops[i] &= 0x78;
        const char *const wrong = reassembly_check(ops, n);
        if (wrong)
            fail_msg("round %u: %s", round, wrong);
    }
}

static bool count_bytes(void *ctx, const struct flow_key *key,
                        const unsigned char *at, size_t seen, size_t n,
                        uint64_t base)
{
    (void)key, (void)at, (void)base;
    *(uint64_t *)ctx += n - seen;
    return true;
}

static void memory_is_bounded(void **state)
{
    uint64_t bytes = 0;
    unsigned char payload[1000] = { 0 };
    (void)state;
    struct reassembly *const r = reassembly_new(&(struct reassembly_spec){
        .keeps = 100, .memory = 100000, .take = count_bytes, .ctx = &bytes });
    assert_non_null(r);
    for (uint32_t i = 0; i < 5000; i++) {
        struct segment s = { .key = { 4, { 0 } },
                             .sequence = i % 3 * 1000,
                             .at = payload,
                             .n = 1000,
                             .wire = 1000 };
        memcpy(s.key.at, &(uint32_t){ i / 4 }, 4);
        assert_true(reassembly_add(r, &s));
        assert_true(reassembly_sum(r)->most < 100000 + 5000);
    }
    assert_true(reassembly_end(r));
    assert_true(reassembly_sum(r)->evicted > 500);
    assert_true(bytes > 2000000);
    reassembly_free(r);
}

/* A stream of which nothing is missing but its first byte, and another that
 * only goes on: memory is bounded, and nothing is lost. */
static void one_stream_is_bounded(void **state)
{
    uint64_t bytes = 0;
    unsigned char payload[1000] = { 0 };
    (void)state;
    for (unsigned late = 0; late < 2; late++) {
        struct reassembly *const r =
            reassembly_new(&(struct reassembly_spec){ .keeps = 100,
                                                      .memory = 1000000,
                                                      .take = count_bytes,
                                                      .ctx = &bytes });
        assert_non_null(r);
        bytes = 0;
        struct segment s = { .key = { 4, "both" },
                             .sequence = 9,
                             .syn = true,
                             .at = payload,
                             .n = 1000,
                             .wire = 1000 };
        s.n = s.wire = 0;
        assert_true(reassembly_add(r, &s));
        s.syn = false;
        s.n = s.wire = 1000;
        for (uint32_t i = 0; i < 5000; i++) {
            s.sequence = 10 + late + i * 1000;
            assert_true(reassembly_add(r, &s));
            assert_true(reassembly_sum(r)->most < 1100000);
        }
        assert_true(reassembly_end(r));
        assert_int_equal(bytes, 5000000);
        assert_int_equal(reassembly_sum(r)->gaps, late);
        assert_int_equal(reassembly_sum(r)->late, 0);
        reassembly_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_matches_however_they_are_found),
        cmocka_unit_test(variants_let_the_same_pass),
        cmocka_unit_test(windows_that_are_alike),
        cmocka_unit_test(the_load_is_as_computed),
        cmocka_unit_test(strings_that_cannot_be),
        cmocka_unit_test(snorts_rules),
        cmocka_unit_test(streams_are_put_in_order),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(one_stream_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

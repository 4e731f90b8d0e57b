/*
 * test_stored.c - sketches in .bly files: laws that hold for every type
 *
 * What is saved and read is the same sketch, and goes on as if nothing had
 * been; merging what was read is merging what was written; whatever is cut off,
 * flipped or forged is refused, with nothing left behind. A new type needs a
 * maker below.
 */
#define _GNU_SOURCE
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bloomery/sketch.h>

#include "core/bits.h"
#include "core/hash.h"
#include "sketch/topk.h"
#include "tests/provenance.h"

static const unsigned char secrets[2][BLY_SECRET_BYTES] = { { 1, 2 }, { 3 } };

/* --------------------------------------------------------------- makers */

/* A sketch of a type, as `variant` says, without keys. */
static bly_stored empty(bly_stored_type type, unsigned variant)
{
    bly_stored s = { .type = type };
    if (type == BLY_STORED_HLL) {
        const bly_spec spec = { .seed = variant == 1 ? 7 : 0,
                                .secret = variant == 2 ? secrets[0] : NULL };
        bly_hasher hasher;
        assert_ok(bly_hasher_for(&spec, &hasher));
        assert_ok(bly_hll_new(variant == 3 ? 6 : 9, NULL, &s.hll));
        assert_ok(bly_hll_set_hasher(s.hll, &hasher));
        if (variant)
            bly_hll_set_keying(s.hll,
                               (bly_keying){ BLY_KEYS_TEXT, BLY_KEYS_FOLDED });
    } else if (type == BLY_STORED_TOPK) {
        const bly_topk_spec spec = {
            .k = variant == 3 ? 1 : 5,
            .bytes = variant == 3 ? 0 : 128,
            .decay = variant == 3 ? 1 : 0,
            .seed = variant == 1 ? 7 : 0,
            .secret = variant == 2 ? secrets[0] : NULL,
            .keying = { variant ? BLY_KEYS_BYTES : BLY_KEYS_UNKNOWN, 0 },
        };
        assert_ok(bly_topk_new(&spec, &s.topk));
    } else if (type == BLY_STORED_TDIGEST) {
        const bly_tdigest_spec spec = {
            .compression = variant == 1   ? 10
                           : variant == 3 ? 1000
                                          : 0,
            .scale = variant == 2 ? BLY_TDIGEST_REDISBLOOM : 0,
        };
        assert_ok(bly_tdigest_new(&spec, &s.tdigest));
    } else {
        const bly_sketch_spec spec = { .family = (bly_family)variant,
                                       .k = variant ? 16 : 0 };
        assert_ok(bly_sketch_new(&spec, &s.likeness));
    }
    return s;
}

#define VARIANTS 4

/* Keys number from .. to-1, some of them several times. */
static void feed(bly_stored *s, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        char key[32];
        const int n = snprintf(key, sizeof key, "key %llu",
                               (unsigned long long)(i % 40 ? i : i % 7));
        if (s->type == BLY_STORED_HLL) {
            const uint64_t h = bly_hash(bly_hll_hasher(s->hll), key, (size_t)n);
            assert_ok(bly_hll_add(s->hll, &h, 1));
        } else if (s->type == BLY_STORED_TOPK) {
            assert_ok(
                bly_topk_add(s->topk, key, i % 11 ? (size_t)n : 0, 1 + i % 3));
        } else if (s->type == BLY_STORED_TDIGEST) {
            const double x = (double)(bly_mix64(i) >> 40) - 1e6;
            const uint64_t weight = 1 + i % 3;
            assert_ok(
                bly_tdigest_add(s->tdigest, &x, i % 5 ? NULL : &weight, 1));
        } else {
            const uint64_t h = bly_mix64(i);
            assert_ok(bly_sketch_add(s->likeness, &h, 1));
        }
    }
}

static byte_array bytes_of(const bly_stored *s)
{
    byte_array a = { 0 };
    assert_ok(bly_stored_write(s, put_bytes, &a));
    assert_int_equal(a.n, bly_stored_bytes(s));
    return a;
}

static void assert_equal_sketches(const bly_stored *a, const bly_stored *b)
{
    byte_array x = bytes_of(a), y = bytes_of(b);
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.at, y.at, x.n);
    free(x.at);
    free(y.at);
}

/* The secret of a variant. */
static bly_access access_of(unsigned type, unsigned variant)
{
    return (bly_access){ .secret = variant == 2 &&
                                           type != BLY_STORED_LIKENESS &&
                                           type != BLY_STORED_TDIGEST
                                       ? secrets[0]
                                       : NULL };
}

static bly_stored again(const bly_stored *s, unsigned variant)
{
    byte_array a = bytes_of(s);
    unsigned char *const exact = guarded_new(a.n);
    memcpy(exact, a.at, a.n);
    const bly_access how = access_of(s->type, variant);
    bly_stored t;
    assert_ok(bly_stored_load(exact, a.n, &how, &t));
    assert_int_equal(t.type, s->type);
    guarded_free(exact, a.n);
    free(a.at);
    return t;
}

static const uint64_t sizes[] = { 0, 1, 3, 40, 60, 400, 3000 };

#define EACH_SKETCH                                               \
    for (unsigned type = 1; type < BLY_STORED_COUNT_; type++)     \
        for (unsigned variant = 0; variant < VARIANTS; variant++) \
            for (size_t z = 0; z < COUNT_OF(sizes); z++)

/* ----------------------------------------------------------------- laws */

static void what_is_read_goes_on(void **state)
{
    (void)state;
    EACH_SKETCH
    {
        bly_stored s = empty((bly_stored_type)type, variant);
        feed(&s, 0, sizes[z]);
        bly_stored t = again(&s, variant);
        assert_equal_sketches(&s, &t);
        feed(&s, sizes[z] / 2, sizes[z] + 500);
        feed(&t, sizes[z] / 2, sizes[z] + 500);
        assert_equal_sketches(&s, &t);
        bly_stored_free(&s);
        bly_stored_free(&t);
    }
}

/* Merging what was read is merging what was written; where nothing is lost on
 * the way, the parts are the whole, from both sides. */
static void parts_merge(void **state)
{
    (void)state;
    EACH_SKETCH
    {
        bly_stored a = empty((bly_stored_type)type, variant);
        bly_stored b = empty((bly_stored_type)type, variant);
        bly_stored all = empty((bly_stored_type)type, variant);
        feed(&a, 0, sizes[z]);
        feed(&b, sizes[z], 2 * sizes[z]);
        feed(&all, 0, 2 * sizes[z]);
        bly_stored x = again(&a, variant), y = again(&b, variant);
        assert_ok(bly_stored_merge(&x, &b));
        assert_ok(bly_stored_merge(&y, &a));
        assert_ok(bly_stored_merge(&a, &b));
        assert_equal_sketches(&a, &x);
        if (type == BLY_STORED_TDIGEST) {
            bly_tdigest_stats whole, parts;
            bly_tdigest_stat(all.tdigest, &whole);
            bly_tdigest_stat(y.tdigest, &parts);
            assert_true(whole.merged_weight + whole.waiting_weight ==
                        parts.merged_weight + parts.waiting_weight);
        } else if (type != BLY_STORED_TOPK) {
            assert_equal_sketches(&all, &x);
            assert_equal_sketches(&all, &y);
        } else {
            assert_int_equal(bly_topk_total(all.topk), bly_topk_total(y.topk));
        }
        bly_stored_free(&a);
        bly_stored_free(&b);
        bly_stored_free(&all);
        bly_stored_free(&x);
        bly_stored_free(&y);
    }
}

static void strangers(void **state)
{
    (void)state;
    for (unsigned a = 1; a < BLY_STORED_COUNT_; a++)
        for (unsigned v = 0; v < VARIANTS; v++)
            for (unsigned b = 1; b < BLY_STORED_COUNT_; b++)
                for (unsigned w = 0; w < VARIANTS; w++) {
                    bly_stored x = empty((bly_stored_type)a, v);
                    bly_stored y = empty((bly_stored_type)b, w);
                    feed(&x, 0, 3);
                    feed(&y, 0, 5);
                    byte_array was = bytes_of(&x);
                    const bool fit =
                        a == b && (v == w || a == BLY_STORED_TDIGEST);
                    assert_status(bly_stored_merge(&x, &y),
                                  fit ? BLY_OK : BLY_EUNFIT);
                    byte_array is = bytes_of(&x);
                    if (!fit)
                        assert_memory_equal(was.at, is.at, was.n);
                    free(was.at);
                    free(is.at);
                    bly_stored_free(&x);
                    bly_stored_free(&y);
                }
}

/* Every prefix and every flipped bit is refused, and says why. */
static void damage_is_refused(void **state)
{
    (void)state;
    for (unsigned type = 1; type < BLY_STORED_COUNT_; type++)
        for (unsigned variant = 0; variant < VARIANTS; variant++) {
            bly_stored s = empty((bly_stored_type)type, variant), t;
            feed(&s, 0, 30);
            byte_array a = bytes_of(&s);
            const bly_access how = access_of(type, variant);
            assert_int_equal(bly_stored_peek(a.at, a.n), type);
            assert_int_equal(bly_stored_peek(a.at, BLY_STORED_PEEK), type);
            assert_int_equal(bly_stored_peek(a.at, BLY_STORED_PEEK - 1), 0);
            for (size_t n = 0; n < a.n; n++) {
                unsigned char *const part = guarded_new(n);
                memcpy(part, a.at, n);
                assert_status(bly_stored_load(part, n, &how, &t), BLY_EFORMAT);
                assert_int_equal(t.type, BLY_STORED_NONE);
                guarded_free(part, n);
            }
            for (size_t bit = 0; bit < 8 * a.n; bit++) {
                a.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
                assert_status(bly_stored_load(a.at, a.n, &how, &t),
                              BLY_EFORMAT);
                a.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
            }
            assert_true(put_bytes(&a, "", 1));
            assert_status(bly_stored_load(a.at, a.n, &how, &t), BLY_EFORMAT);
            free(a.at);
            bly_stored_free(&s);
        }
}

#define AT_SUM 280
#define AT_HEADER_SUM 288
#define HEADER 296

/* Bytes of the payload and of the parameters that a forger sets, with all sums
 * computed anew: refused, or a sketch that is safe to use. */
static void forgeries_are_safe(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (unsigned type = 1; type < BLY_STORED_COUNT_; type++)
        for (unsigned round = 0; round < 3000; round++) {
            bly_stored s = empty((bly_stored_type)type, 0), t;
            feed(&s, 0, 1 + round % 50);
            byte_array a = bytes_of(&s);
            for (unsigned i = 0; i < 1 + round % 3; i++) {
                const size_t at =
                    round % 2 ? HEADER + test_random(&random) % (a.n - HEADER)
                              : 24 + test_random(&random) % (AT_SUM - 24);
                a.at[at] = round % 5 ? (unsigned char)test_random(&random)
                                     : (unsigned char)-(round % 2);
            }
            bly_store64(a.at + AT_SUM,
                        bly_checksum(a.at + HEADER, a.n - HEADER));
            bly_store64(a.at + AT_HEADER_SUM,
                        bly_checksum(a.at, AT_HEADER_SUM));
            const bly_access blind = { .blind = true };
            const bly_status st = bly_stored_load(a.at, a.n, &blind, &t);
            assert_true(st == BLY_OK || st == BLY_EFORMAT || st == BLY_ENOMEM);
            if (!st) {
                byte_array b = bytes_of(&t);
                assert_int_equal(a.n, b.n);
                assert_memory_equal(a.at, b.at, a.n);
                free(b.at);
                (void)!bly_stored_merge(&t, &s);
                (void)!bly_stored_merge(&s, &t);
            }
            bly_stored_free(&t);
            bly_stored_free(&s);
            free(a.at);
        }
}

/* A list of 2^24 keys that is nearly empty takes no memory for the rest. */
static void a_small_file_takes_little_memory(void **state)
{
    (void)state;
    const bly_topk_spec spec = { .k = 1 << 24, .bytes = 64 };
    bly_stored s = { .type = BLY_STORED_TOPK }, t;
    assert_ok(bly_topk_new(&spec, &s.topk));
    feed(&s, 0, 5);
    byte_array a = bytes_of(&s);
    ledger l;
    ledger_open(&l);
    const bly_access how = { .mem = &l.mem, .max_bytes = 100000 };
    assert_ok(bly_stored_load(a.at, a.n, &how, &t));
    assert_true(l.peak < 100000);
    bly_stored_free(&t);
    ledger_check(&l);
    const bly_access less = { .max_bytes = 64 };
    assert_status(bly_stored_load(a.at, a.n, &less, &t), BLY_ERANGE);
    free(a.at);
    bly_stored_free(&s);
}

/* The most slots of the table behind one another that are taken. */
static uint32_t longest_run(const bly_topk *t)
{
    uint32_t longest = 0, run = 0;
    for (uint32_t i = 0; i < 2 * t->nslots; i++) {
        run = t->slots[i % t->nslots].entry ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Hashes that were chosen to fall on one another lie apart, whether they come
 * from a file or from a stream: where a hash belongs is a secret of the
 * process. At half load, runs of some 60 are common. */
static void crowded_hashes(void **state)
{
    (void)state;
    const bly_topk_spec spec = { .k = 20000,
                                 .bytes = 64,
                                 .secret = secrets[0] };
    bly_stored s = { .type = BLY_STORED_TOPK }, t;
    assert_ok(bly_topk_new(&spec, &s.topk));
    for (uint64_t i = 0; i < 20000; i++)
        assert_ok(bly_topk_add(s.topk, &i, sizeof i, 1));
    byte_array a = bytes_of(&s);
    const bly_access blind = { .blind = true };
    for (uint64_t i = 0; i < 20000; i++)
        bly_store64(a.at + HEADER + 64 + 24 * i, i);
    bly_store64(a.at + AT_SUM, bly_checksum(a.at + HEADER, a.n - HEADER));
    bly_store64(a.at + AT_HEADER_SUM, bly_checksum(a.at, AT_HEADER_SUM));
    assert_ok(bly_stored_load(a.at, a.n, &blind, &t));
    assert_true(longest_run(t.topk) < 1000);
    bly_stored_free(&t);
    free(a.at);
    bly_stored_free(&s);

    const bly_topk_spec open = { .k = 3000, .bytes = 64 };
    assert_ok(bly_topk_new(&open, &s.topk));
    s.type = BLY_STORED_TOPK;
    /* Of the first of 64 parts of all hashes. */
    for (uint64_t i = 0, n = 0; n < 3000; i++) {
        if (bly_hash(bly_topk_hasher(s.topk), &i, sizeof i) >> 58)
            continue;
        assert_ok(bly_topk_add(s.topk, &i, sizeof i, 1));
        n++;
    }
    assert_int_equal(bly_topk_listed(s.topk), 3000);
    assert_true(longest_run(s.topk) < 1000);
    a = bytes_of(&s);
    assert_ok(bly_stored_load(a.at, a.n, &(bly_access){ 0 }, &t));
    assert_equal_sketches(&s, &t);
    free(a.at);
    bly_stored_free(&s);
    bly_stored_free(&t);
}

static void memory_fails(void **state)
{
    (void)state;
    for (unsigned type = 1; type < BLY_STORED_COUNT_; type++) {
        bly_stored s = empty((bly_stored_type)type, 0), t;
        feed(&s, 0, 40);
        byte_array a = bytes_of(&s);
        bly_status st = BLY_ENOMEM;
        for (long fail = 0; st; fail++) {
            ledger l;
            ledger_open(&l);
            l.fail_at = fail;
            const bly_access how = { .mem = &l.mem };
            st = bly_stored_load(a.at, a.n, &how, &t);
            assert_true(st == BLY_OK || st == BLY_ENOMEM);
            assert_int_equal(t.type, st ? BLY_STORED_NONE : type);
            bly_stored_free(&t);
            ledger_check(&l);
            assert_true(fail < 50);
        }
        free(a.at);
        bly_stored_free(&s);
    }
}

static void keyed_sketches(void **state)
{
    (void)state;
    for (unsigned type = 1; type < BLY_STORED_LIKENESS; type++) {
        bly_stored s = empty((bly_stored_type)type, 2), t, u;
        feed(&s, 0, 50);
        byte_array a = bytes_of(&s);
        const bly_access none = { 0 }, blind = { .blind = true },
                         right = { .secret = secrets[0] },
                         wrong = { .secret = secrets[1] };
        assert_status(bly_stored_load(a.at, a.n, &none, &t), BLY_ESECRET);
        assert_status(bly_stored_load(a.at, a.n, &wrong, &t), BLY_ESECRET);
        assert_ok(bly_stored_load(a.at, a.n, &right, &t));
        assert_ok(bly_stored_load(a.at, a.n, &blind, &u));
        assert_equal_sketches(&t, &u);
        assert_ok(bly_stored_merge(&t, &u));
        assert_ok(bly_stored_merge(&u, &s));
        assert_equal_sketches(&t, &u);
        if (type == BLY_STORED_TOPK) {
            bool listed = false;
            assert_null(bly_topk_hasher(u.topk));
            assert_status(bly_topk_add(u.topk, "x", 1, 1), BLY_ESECRET);
            assert_true(bly_topk_count(u.topk, "", 0, &listed) > 0);
            assert_true(listed);
        } else {
            assert_null(bly_hll_hasher(u.hll));
        }
        bly_stored_free(&s);
        bly_stored_free(&t);
        bly_stored_free(&u);
        free(a.at);
        /* And the other way round. */
        s = empty((bly_stored_type)type, 0);
        a = bytes_of(&s);
        assert_status(bly_stored_load(a.at, a.n, &right, &t), BLY_ESECRET);
        bly_stored_free(&s);
        free(a.at);
    }
}

/* ---------------------------------------------------------------- files */

static char folder[] = "/tmp/bly_stored.XXXXXX";
static char path[64];

static void in_files(void **state)
{
    (void)state;
    bly_stored s = empty(BLY_STORED_HLL, 0), t;
    feed(&s, 0, 100);
    assert_status(bly_stored_open(path, NULL, &t), BLY_EIO);
    assert_ok(bly_stored_save(&s, path));
    assert_ok(bly_stored_open(path, NULL, &t));
    assert_equal_sketches(&s, &t);
    bly_stored_free(&t);
    bly_hll *h;
    bly_topk *k;
    bly_sketch *m;
    assert_ok(bly_hll_open(path, NULL, &h));
    assert_ok(bly_hll_save(h, path));
    bly_hll_free(h);
    assert_status(bly_topk_open(path, NULL, &k), BLY_EUNFIT);
    assert_status(bly_sketch_open(path, NULL, &m), BLY_EUNFIT);
    assert_non_null(strstr(bly_error(), "hyperloglog"));
    /* A filter is no sketch, and the other way round. */
    bly_filter *f;
    assert_status(bly_open(path, NULL, &f), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "sketch"));
    assert_status(bly_map(path, NULL, &f), BLY_EFORMAT);
    assert_ok(bly_new(&(bly_spec){ .items = 10, .fpr = 0.01 }, &f));
    assert_ok(bly_save(f, path));
    assert_status(bly_stored_open(path, NULL, &t), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "filter"));
    byte_array a = written(f);
    assert_int_equal(bly_stored_peek(a.at, a.n), BLY_STORED_NONE);
    free(a.at);
    bly_free(f);
    bly_stored_free(&s);

    for (unsigned type = 2; type < BLY_STORED_COUNT_; type++) {
        s = empty((bly_stored_type)type, 0);
        feed(&s, 0, 300);
        if (type == BLY_STORED_TOPK) {
            assert_ok(bly_topk_save(s.topk, path));
            assert_ok(bly_topk_open(path, NULL, &k));
            bly_topk_free(k);
        } else if (type == BLY_STORED_TDIGEST) {
            bly_tdigest *d;
            assert_ok(bly_tdigest_save(s.tdigest, path));
            assert_ok(bly_tdigest_open(path, NULL, &d));
            bly_tdigest_free(d);
        } else {
            assert_ok(bly_sketch_save(s.likeness, path));
            assert_ok(bly_sketch_open(path, NULL, &m));
            bly_sketch_free(m);
        }
        bly_stored_free(&s);
    }
    assert_int_equal(unlink(path), 0);
}

static bly_status merge_in(bly_stored *s, void *ctx)
{
    return bly_stored_merge(s, ctx);
}

/* Twenty processes make and change one file at once: nobody's keys are lost. */
static void many_at_once(void **state)
{
    (void)state;
    bly_stored all = empty(BLY_STORED_HLL, 0), none = empty(BLY_STORED_HLL, 0);
    for (uint64_t i = 0; i < 20; i++) {
        feed(&all, 100 * i, 100 * i + 100);
        if (fork() == 0) {
            bly_stored part = empty(BLY_STORED_HLL, 0);
            feed(&part, 100 * i, 100 * i + 100);
            _exit(bly_stored_update(path, NULL, &none, merge_in, &part) !=
                  BLY_OK);
        }
    }
    for (int i = 0; i < 20; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    bly_stored t;
    assert_ok(bly_stored_open(path, NULL, &t));
    assert_equal_sketches(&all, &t);
    bly_stored_free(&t);
    /* A change that fails changes nothing. */
    bly_stored other = empty(BLY_STORED_TOPK, 0);
    assert_status(bly_stored_update(path, NULL, NULL, merge_in, &other),
                  BLY_EUNFIT);
    assert_ok(bly_stored_open(path, NULL, &t));
    assert_equal_sketches(&all, &t);
    assert_int_equal(unlink(path), 0);
    assert_status(bly_stored_update(path, NULL, NULL, merge_in, &all), BLY_EIO);
    bly_stored_free(&other);
    bly_stored_free(&t);
    bly_stored_free(&all);
    bly_stored_free(&none);
}

/* The format is kept forever: these files of 2026 have these sums. */
static void bytes_stay(void **state)
{
    (void)state;
    static const struct {
        bly_stored_type type;
        unsigned variant;
        uint64_t keys, sum;
    } rows[] = {
        { BLY_STORED_HLL, 0, 20, UINT64_C(0x1534643b5837cbd) },
        { BLY_STORED_HLL, 1, 500, UINT64_C(0x427963b2444581cd) },
        { BLY_STORED_HLL, 2, 40, UINT64_C(0x8c20a679a4432705) },
        { BLY_STORED_TOPK, 3, 300, UINT64_C(0x80eb3d5209962e8e) },
        { BLY_STORED_LIKENESS, 0, 50, UINT64_C(0x2e7fa091eb7c7d95) },
        { BLY_STORED_LIKENESS, 2, 50, UINT64_C(0xcf6f2e6e4445071f) },
        { BLY_STORED_TDIGEST, 0, 0, UINT64_C(0xf885ac7cb4f6df42) },
        { BLY_STORED_TDIGEST, 0, 1, UINT64_C(0x84653fe5a67af786) },
        { BLY_STORED_TDIGEST, 2, 5, UINT64_C(0xdafd8d04b9628c38) },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_stored s = empty(rows[i].type, rows[i].variant);
        feed(&s, 0, rows[i].keys);
        byte_array a = bytes_of(&s);
        if (bly_checksum(a.at, a.n) != rows[i].sum)
            fail_msg("row %zu: 0x%llx", i,
                     (unsigned long long)bly_checksum(a.at, a.n));
        free(a.at);
        bly_stored_free(&s);
    }
}

static void words_and_nothing(void **state)
{
    (void)state;
    assert_string_equal(bly_stored_name(BLY_STORED_HLL), "hyperloglog");
    assert_string_equal(bly_stored_name(BLY_STORED_LIKENESS), "minhash");
    assert_null(bly_stored_name(BLY_STORED_NONE));
    assert_null(bly_stored_help(BLY_STORED_COUNT_));
    bly_stored none = { 0 }, some = empty(BLY_STORED_HLL, 0);
    bly_stored_free(&none);
    bly_stored_free(NULL);
    assert_status(bly_stored_merge(&some, &none), BLY_EINVAL);
    assert_status(bly_stored_save(&none, path), BLY_EINVAL);
    assert_int_equal(bly_stored_bytes(&none), 0);
    /* A keying that no file may have is found when it is written. */
    bly_hll_set_keying(some.hll, (bly_keying){ (bly_key_type)9, 0 });
    assert_status(bly_stored_save(&some, path), BLY_EINVAL);
    bly_stored_free(&some);
}

/* ----------------------------------------------- combining provenances */

static bly_stored sketch_of_provenance(bly_stored_type type,
                                       const provenance *p, uint64_t first)
{
    bly_stored s = { .type = type };
    bly_hasher hasher;
    const bly_spec spec = { .secret = p->keyed ? provenance_secret : NULL };
    assert_ok(bly_hasher_for(&spec, &hasher));
    if (type == BLY_STORED_HLL) {
        assert_ok(bly_hll_new(0, NULL, &s.hll));
        assert_ok(bly_hll_set_hasher(s.hll, &hasher));
        bly_hll_set_keying(s.hll, p->says);
    } else {
        const bly_topk_spec of = { .k = 100,
                                   .secret = spec.secret,
                                   .keying = p->says };
        assert_ok(bly_topk_new(&of, &s.topk));
    }
    for (uint64_t i = first; p->holds && i < first + NNUMBERS; i++) {
        char room[24];
        const bly_bytes key = key_of_provenance(p, i, room);
        const uint64_t hash = bly_hash(&hasher, key.ptr, key.len);
        assert_ok(type == BLY_STORED_HLL
                      ? bly_hll_add(s.hll, &hash, 1)
                      : bly_topk_add(s.topk, key.ptr, key.len, 1));
    }
    return s;
}

static bly_keying says(const bly_stored *s)
{
    bly_topk_spec spec;
    if (s->type == BLY_STORED_HLL)
        return bly_hll_keying(s->hll);
    bly_topk_spec_of(s->topk, &spec);
    return spec.keying;
}

/* Does s know the key of this hash? */
static bool knows(const bly_stored *s, uint64_t hash)
{
    if (s->type == BLY_STORED_HLL) {
        bly_hll *more;
        assert_ok(bly_hll_copy(s->hll, &more));
        assert_ok(bly_hll_add(more, &hash, 1));
        /* Sparse, so one key more is seen. */
        const bool same =
            bly_hll_estimate(more, NULL) == bly_hll_estimate(s->hll, NULL);
        bly_hll_free(more);
        return same;
    }
    bly_topk_item items[100];
    const size_t n = bly_topk_list(s->topk, items, COUNT_OF(items));
    for (size_t i = 0; i < n; i++)
        if (bly_hash(bly_topk_hasher(s->topk), items[i].key.ptr,
                     items[i].key.len) == hash)
            return true;
    return false;
}

/* In which ways is number i known, if it is asked as every type? */
static unsigned known_ways(const bly_stored *s, uint64_t i)
{
    char room[24];
    const bly_bytes text = { room, (size_t)snprintf(room, sizeof room, "%llu",
                                                    (unsigned long long)i) };
    const int64_t number = (int64_t)i;
    const void *const keys[] = { [BLY_KEYS_TEXT] = &text,
                                 [BLY_KEYS_BYTES] = &text,
                                 [BLY_KEYS_INT64] = &number,
                                 [BLY_KEYS_UINT64] = &i };
    const bly_hasher *const hasher = s->type == BLY_STORED_HLL
                                         ? bly_hll_hasher(s->hll)
                                         : bly_topk_hasher(s->topk);
    unsigned ways = 0;
    for (unsigned type = BLY_KEYS_TEXT; type <= BLY_KEYS_UINT64; type++) {
        uint64_t hash;
        /* What cannot be asked gets an error: that is no "no". */
        if (bly_hash_as(hasher, says(s), (bly_key_type)type, keys[type], 1,
                        &hash, NULL) ||
            knows(s, hash))
            ways |= 1u << type;
    }
    return ways;
}

/* A key that a sketch knows is known to what is made of it with another,
 * whatever each of them holds or says, and however it is asked. */
static void no_combination_forgets_a_key(void **state)
{
    (void)state;
    const bly_stored_type types[] = { BLY_STORED_HLL, BLY_STORED_TOPK };
    unsigned combined = 0;
    for (size_t i = 0; i < 2 * NPROVENANCES * NPROVENANCES; i++) {
        const provenance *const pa = &provenances[i / 2 / NPROVENANCES];
        const provenance *const pb = &provenances[i / 2 % NPROVENANCES];
        bly_stored a = sketch_of_provenance(types[i % 2], pa, 7);
        bly_stored b = sketch_of_provenance(types[i % 2], pb, 7 + NNUMBERS / 2);
        unsigned due[2 * NNUMBERS];
        for (uint64_t j = 0; j < 2 * NNUMBERS; j++)
            due[j] = known_ways(&a, 7 + j) | known_ways(&b, 7 + j);
        const bly_status st = bly_stored_merge(&a, &b);
        combined += !st;
        for (uint64_t j = 0; !st && j < 2 * NNUMBERS; j++) {
            const unsigned lost = due[j] & ~known_ways(&a, 7 + j);
            if (lost)
                fail_msg("%s of [%s] and [%s] forgets %llu asked in ways %#x",
                         bly_stored_name(a.type), pa->name, pb->name,
                         (unsigned long long)(7 + j), lost);
        }
        if (st)
            assert_status(st, BLY_EUNFIT);
        bly_stored_free(&a);
        bly_stored_free(&b);
    }
    /* Equal ones, those of bytes or of no type among each other, and empty
     * ones of no type with all. */
    assert_true(combined >= 2 * (NPROVENANCES + 2 * 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_goes_on),
        cmocka_unit_test(parts_merge),
        cmocka_unit_test(strangers),
        cmocka_unit_test(no_combination_forgets_a_key),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(forgeries_are_safe),
        cmocka_unit_test(a_small_file_takes_little_memory),
        cmocka_unit_test(crowded_hashes),
        cmocka_unit_test(memory_fails),
        cmocka_unit_test(keyed_sketches),
        cmocka_unit_test(in_files),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(bytes_stay),
        cmocka_unit_test(words_and_nothing),
    };
    if (!mkdtemp(folder))
        return 2;
    snprintf(path, sizeof path, "%s/s.bly", folder);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rmdir(folder) ? 2 : failed;
}

/* LDFLAGS: -Wl,--wrap=bly_kind_by_id */
/*
 * test_format.c - the bytes of a .bly file, in memory
 *
 * What is written loads to the same filter; whatever is not exactly what was
 * written is refused with the right words and without asking for memory that
 * the bytes do not justify. Offsets are those of docs/format.md, written down
 * here once more, so that the page and the code are held against each other.
 *
 * The kinds of the table need neither layers nor state yet, so these tests
 * bring a kind of their own, the tower, and the linker puts it in the table:
 * --wrap sends the library's calls of bly_kind_by_id() through this file.
 */
#define _GNU_SOURCE
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hash.h"
#include "golden.h"
#include "kinds/filter.h"

#define PAGE 4096
#define SHORT 296 /* header of a coded record */
enum {
    AT_VERSION = 8,
    AT_KIND = 12,
    AT_HASH = 16,
    AT_FLAGS = 20,
    AT_SEED = 24,
    AT_SECRET_CHECK = 32,
    AT_ITEMS = 40,
    AT_FPR = 48,
    AT_NLAYERS = 64,
    AT_ENCODING = 68,
    AT_NBYTES = 72,
    AT_STORED = 80,
    AT_PARAMS = 88,
    AT_STATE = 216,
    AT_PAYLOAD_SUM = 280,
    AT_ZEROS = 288,
    AT_HEADER_SUM = 4088
};

#define NKEYS 500

static const unsigned char secret[BLY_SECRET_BYTES + 1] = "0123456789abcdef";
static const unsigned char wrong_secret[BLY_SECRET_BYTES + 1] =
    "0123456789abcdeF";

/* ------------------------------------------------------------- the tower */

/* p[0] is the size; state[0] is always 7; data never starts with 0xee; aux
 * is held while the filter lives. */
static int tower_open_count;

static bool tower_sane(const bly_shape *s)
{
    return s->nbytes == s->p[0] && s->nbytes <= (uint64_t)1 << 50;
}

static bool tower_sound(const bly_filter *f)
{
    return f->state[0] == 7;
}

static bool tower_check(const bly_filter *f)
{
    return !f->shape.nbytes || f->data[0] != 0xee;
}

static bly_status tower_open(bly_filter *f)
{
    bly_extra *const e = bly_filter_extra(f);
    if (!e)
        return BLY_ENOMEM;
    e->aux = f;
    tower_open_count++;
    return BLY_OK;
}

static void tower_close(bly_filter *f)
{
    if (f->extra->aux)
        tower_open_count--;
}

static const bly_param tower_params[] = { { .name = "size" } };

static const bly_kind tower = {
    .id = 0xf00d,
    .name = "tower",
    .params = tower_params,
    .nparams = 1,
    .nstate = 1,
    .sane = tower_sane,
    .sound = tower_sound,
    .check = tower_check,
    .open = tower_open,
    .close = tower_close,
};

const bly_kind *__real_bly_kind_by_id(uint32_t id);
const bly_kind *__wrap_bly_kind_by_id(uint32_t id);

const bly_kind *__wrap_bly_kind_by_id(uint32_t id)
{
    return id == tower.id ? &tower : __real_bly_kind_by_id(id);
}

static bly_filter *tower_floor(uint64_t nbytes)
{
    const bly_shape shape = { .p = { nbytes }, .nbytes = nbytes };
    const bly_setting set = {
        .items = 5,
        .fpr = NAN,
        .hasher = { .id = BLY_HASH_XXH3, .seed = 9 },
    };
    bly_filter *f;
    assert_ok(bly_filter_blank(&tower, &shape, &set, &f));
    assert_ok(tower_open(f));
    f->state[0] = 7;
    for (uint64_t i = 0; i < nbytes; i++)
        f->data[i] = (unsigned char)(i * 7 + nbytes);
    return f;
}

/* A filter of 100 bytes with layers of 5000, 0 and 64; the first of them has
 * one of 4096 itself. Payloads start at pages 1, 3, 6, 8 and 9. */
static bly_filter *tower_make(void)
{
    bly_filter *f = tower_floor(100), *deep = tower_floor(5000);
    assert_ok(bly_filter_push(deep, tower_floor(4096)));
    assert_ok(bly_filter_push(f, deep));
    assert_ok(bly_filter_push(f, tower_floor(0)));
    assert_ok(bly_filter_push(f, tower_floor(64)));
    return f;
}

#define TOWER_BYTES (9 * PAGE + 64)

/* ----------------------------------------------------------------- helpers */

static void set32(unsigned char *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(x >> 8 * i);
}

static void set64(unsigned char *p, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(x >> 8 * i);
}

static uint64_t at64(const unsigned char *p)
{
    uint64_t x = 0;
    for (int i = 7; i >= 0; i--)
        x = x << 8 | p[i];
    return x;
}

/* Make the sum of a header right again, as a forger would. */
static void reseal(unsigned char *page)
{
    const size_t at = page[AT_ENCODING] ? AT_ZEROS : AT_HEADER_SUM;
    set64(page + at, bly_checksum(page, at));
}

/* A bly_get over an array, which counts what it was asked for. */
typedef struct tap {
    const unsigned char *bytes;
    size_t left;
    size_t most; /* asked for at once */
    bool fail;
} tap;

static int64_t draw(void *ctx, void *buf, size_t nbytes)
{
    tap *t = ctx;
    const size_t n = nbytes < t->left ? nbytes : t->left;
    if (t->fail)
        return -1;
    if (nbytes > t->most)
        t->most = nbytes;
    if (n == 0)
        return 0;
    memcpy(buf, t->bytes, n);
    t->bytes += n;
    t->left -= n;
    return (int64_t)n;
}

static bly_status read_through(const void *bytes, size_t n,
                               const bly_access *how, bly_filter **out)
{
    tap t = { .bytes = bytes, .left = n };
    return bly_read(draw, &t, how, out);
}

/* Both ways in refuse these bytes with this status and a line with these
 * words in it, and hold nothing afterwards. */
static void refused(const unsigned char *bytes, size_t n, bly_status status,
                    const char *words)
{
    ledger l;
    ledger_open(&l);
    const bly_access how = { .mem = &l.mem };
    bly_filter *f = (bly_filter *)&l;
    assert_status(bly_load(bytes, n, &how, &f), status);
    assert_null(f);
    if (words && !strstr(bly_error(), words))
        fail_msg("\"%s\" does not say \"%s\"", bly_error(), words);
    f = (bly_filter *)&l;
    assert_status(read_through(bytes, n, &how, &f), status);
    assert_null(f);
    ledger_check(&l);
}

/* For every kind of the table. */
#define EACH_KIND(kind) \
    bly_kind_info kind; \
    for (size_t row_ = 0; bly_kind_at(row_, &kind); row_++)

static bly_filter *small(const bly_kind_info *kind)
{
    return filled(kind, 0, NKEYS);
}

/* ------------------------------------------------------------- round trips */

static void loads_what_was_written(void **unused)
{
    (void)unused;
    EACH_KIND(kind)
    {
        bly_filter *f = small(&kind), *loaded, *read;
        byte_array a = written(f);
        assert_int_equal(a.n, bly_written_bytes(f));
        assert_ok(bly_load(a.at, a.n, NULL, &loaded));
        assert_ok(read_through(a.at, a.n, NULL, &read));
        assert_true(bly_equal(f, loaded));
        assert_true(bly_equal(f, read));
        bly_stats was, is;
        bly_stat(f, &was);
        bly_stat(loaded, &is);
        assert_int_equal(was.items_added, is.items_added);
        assert_int_equal(was.capacity, is.capacity);
        assert_true(was.fpr_at_capacity == is.fpr_at_capacity);
        assert_int_equal(hits(loaded, 0, NKEYS), hits(f, 0, NKEYS));
        byte_array again = written(loaded);
        assert_int_equal(again.n, a.n);
        assert_memory_equal(again.at, a.at, a.n);
        free(a.at);
        free(again.at);
        bly_free(f);
        bly_free(loaded);
        bly_free(read);
    }
}

static void towers_come_back(void **unused)
{
    (void)unused;
    bly_filter *f = tower_make(), *back;
    byte_array a = written(f);
    assert_int_equal(a.n, TOWER_BYTES);
    assert_ok(bly_load(a.at, a.n, NULL, &back));
    assert_true(bly_equal(f, back));
    assert_true(isnan(back->fpr));
    assert_int_equal(back->layer[0]->layer[0]->shape.nbytes, 4096);
    assert_int_equal(tower_open_count, 10);
    bly_free(back);
    assert_int_equal(tower_open_count, 5);
    bly_free(f);
    free(a.at);
}

static void parts_make_the_whole(void **unused)
{
    (void)unused;
    bly_kind_info kind;
    assert_true(bly_kind_at(0, &kind));
    bly_filter *filters[] = { small(&kind), tower_make() };
    for (size_t i = 0; i < COUNT_OF(filters); i++) {
        static const size_t sizes[] = {
            1, 7, 4095, 4096, 4097, 9999, 1u << 20
        };
        byte_array a = written(filters[i]);
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            unsigned char *buf = guarded_new(sizes[s]);
            size_t at = 0, n;
            while ((n = bly_write_part(filters[i], at, buf, sizes[s]))) {
                assert_true(n == sizes[s] || at + n == a.n);
                assert_memory_equal(buf, a.at + at, n);
                at += n;
            }
            assert_int_equal(at, a.n);
            guarded_free(buf, sizes[s]);
        }
        assert_int_equal(bly_write_part(filters[i], UINT64_MAX, NULL, 1), 0);
        assert_int_equal(bly_write_part(filters[i], 0, NULL, 0), 0);
        free(a.at);
        bly_free(filters[i]);
    }
}

static bool refuse_bytes(void *ctx, const void *bytes, size_t nbytes)
{
    (void)bytes;
    size_t *left = ctx;
    if (nbytes > *left)
        return false;
    *left -= nbytes;
    return true;
}

static void a_receiver_may_stop(void **unused)
{
    (void)unused;
    bly_filter *f = tower_make();
    for (size_t room = 0; room <= TOWER_BYTES; room += 64) {
        size_t left = room;
        assert_status(bly_write(f, refuse_bytes, &left),
                      room < TOWER_BYTES ? BLY_EIO : BLY_OK);
    }
    bly_free(f);
}

static void assert_arrays_equal(const byte_array *a, const byte_array *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->at, b->at, a->n);
}

/* The bytes are those of bly_write(), and the filter is freed, which sanitizers
 * look at, also where the receiver stops. A large one, whose memory is given
 * back by and by, holds its last keys in an odd rest of a page. */
static void writing_frees_what_is_written(void **unused)
{
    (void)unused;
    EACH_KIND(kind)
    {
        bly_filter *f = small(&kind);
        const byte_array a = written(f);
        byte_array b = { 0 };
        assert_ok(bly_write_away(f, put_bytes, &b));
        assert_arrays_equal(&a, &b);
        free(a.at);
        free(b.at);
    }
    for (int stops = 0; stops < 2; stops++) {
        bly_filter *f;
        byte_array b = { 0 };
        size_t left = 5000000;
        assert_ok(bly_new(&(bly_spec){ .items = 7654321 }, &f));
        for (uint64_t i = 0; i < 100000; i++)
            assert_ok(bly_add(f, &i, sizeof i));
        const byte_array a = written(f);
        if (stops) {
            assert_status(bly_write_away(f, refuse_bytes, &left), BLY_EIO);
        } else {
            assert_ok(bly_write_away(f, put_bytes, &b));
            assert_arrays_equal(&a, &b);
        }
        free(a.at);
        free(b.at);
    }
}

/* --------------------------------------------------------------- accidents */

/* Every beginning of a file is refused, and none is read past its end. */
static void prefixes_are_refused(void **unused)
{
    (void)unused;
    EACH_KIND(kind)
    {
        bly_filter *f = small(&kind);
        byte_array a = written(f);
        unsigned char *wall = (unsigned char *)guarded_new(a.n) + a.n;
        const size_t step = stride(a.n, 5000);
        for (size_t n = 0; n < a.n; n += n < 300 || n + 300 > a.n ? 1 : step) {
            memcpy(wall - n, a.at, n);
            refused(wall - n, n, BLY_EFORMAT, n ? "cut short" : "empty");
        }
        guarded_free(wall - a.n, a.n);
        free(a.at);
        bly_free(f);
    }
    bly_filter *f = tower_make();
    byte_array a = written(f);
    for (size_t n = 0; n < a.n; n += 61)
        refused(a.at, n, BLY_EFORMAT, NULL);
    refused(a.at, a.n - 1, BLY_EFORMAT, "cut short");
    assert_int_equal(tower_open_count, 5);
    free(a.at);
    bly_free(f);
}

/* What is missing is told in numbers: what there is and what it takes, which is
 * the whole file wherever the header was read and promises no layers. */
static void missing_bytes_are_counted(void **unused)
{
    (void)unused;
    bly_filter *f = tower_floor(3 * PAGE), *got;
    byte_array a = written(f);
    static const size_t cuts[] = { 1,        7,        8,           295,
                                   296,      PAGE - 1, PAGE,        PAGE + 1,
                                   2 * PAGE, 3 * PAGE, 4 * PAGE - 1 };
    for (size_t i = 0; i < COUNT_OF(cuts); i++) {
        const size_t n = cuts[i];
        char want[100];
        const char *least = n < PAGE ? "at least " : "";
        const size_t needs = n < 296 ? 296 : n < PAGE ? PAGE : a.n;
        snprintf(want, sizeof want, "it has %zu bytes and needs %s%zu (", n,
                 least, needs);
        refused(a.at, n, BLY_EFORMAT, want);
        assert_status(read_through(a.at, n, NULL, &got), BLY_EFORMAT);
        assert_non_null(strstr(bly_error(), want));
    }
    free(a.at);
    bly_free(f);
    /* With layers the end is known with the last of them. */
    f = tower_make();
    a = written(f);
    refused(a.at, PAGE + 1, BLY_EFORMAT, "needs at least");
    refused(a.at, a.n - 1, BLY_EFORMAT, "needs at least");
    free(a.at);
    bly_free(f);
}

static void more_bytes_are_refused(void **unused)
{
    (void)unused;
    EACH_KIND(kind)
    {
        bly_filter *f = small(&kind);
        byte_array a = written(f);
        const size_t n = a.n;
        const unsigned char zeros[PAGE] = { 0 };
        assert_true(put_bytes(&a, zeros, sizeof zeros));
        refused(a.at, n + 1, BLY_EFORMAT, "bytes follow");
        refused(a.at, n + PAGE, BLY_EFORMAT, "bytes follow");
        free(a.at);
        bly_free(f);
    }
}

static void flips_refused(byte_array *a, size_t from, size_t to)
{
    const size_t step = stride(to - from, 6000);
    for (size_t i = from; i < to; i += i < from + 310 ? 1 : step)
        for (int bit = 0; bit < 8; bit++) {
            a->at[i] ^= (unsigned char)(1 << bit);
            refused(a->at, a->n, BLY_EFORMAT, NULL);
            a->at[i] ^= (unsigned char)(1 << bit);
        }
}

static void flipped_bits_are_refused(void **unused)
{
    (void)unused;
    EACH_KIND(kind)
    {
        bly_filter *f = small(&kind);
        byte_array a = written(f);
        flips_refused(&a, 0, a.n);
        free(a.at);
        bly_free(f);
    }
    /* In a tower also the zeros between its records, and the headers of its
     * layers. */
    bly_filter *f = tower_make();
    byte_array a = written(f);
    flips_refused(&a, PAGE + 90, PAGE + 110);
    flips_refused(&a, 2 * PAGE - 10, 2 * PAGE + 300);
    flips_refused(&a, a.n - 64, a.n);
    free(a.at);
    bly_free(f);
}

static void other_files_are_known(void **unused)
{
    (void)unused;
    unsigned char page[2 * PAGE];
    memset(page, 'x', sizeof page);
    refused(page, sizeof page, BLY_EFORMAT, "not a .bly file");
    refused(page, 3, BLY_EFORMAT, "not a .bly file");
    refused((const unsigned char *)"\211PNG\r\n\032\n", 8, BLY_EFORMAT,
            "not a .bly file");
    refused(NULL, 0, BLY_EFORMAT, "empty");
}

static void a_source_may_fail(void **unused)
{
    (void)unused;
    tap t = { .fail = true };
    bly_filter *f;
    assert_status(bly_read(draw, &t, NULL, &f), BLY_EIO);
    assert_null(f);
}

/* ----------------------------------------------------------------- forgers */

typedef struct lie {
    size_t at;
    int nbytes;
    uint64_t value;
    const char *words;
} lie;

/* One field of the header is wrong, and its checksum right. */
static void lies_are_refused(void **unused)
{
    (void)unused;
    static const lie lies[] = {
        { AT_VERSION, 4, 5, "format version 5" },
        { AT_VERSION, 4, 0, "format version 0" },
        { AT_KIND, 4, 0, "newer" },
        { AT_KIND, 4, 999, "number 999" },
        { AT_HASH, 4, 0, "newer" },
        { AT_HASH, 4, 2, "newer" },
        { AT_HASH, 4, BLY_HASH_SIPHASH13, "secret" },
        { AT_FLAGS, 4, 2, "newer" },
        { AT_SECRET_CHECK, 8, 1, "secret" },
        { AT_ITEMS, 8, 0, "capacity" },
        { AT_FPR, 8, UINT64_C(0x7ff8000000000001), "rate" },
        { AT_FPR, 8, UINT64_C(0x7ff0000000000000), "rate" },
        { AT_FPR, 8, UINT64_C(0x3ff0000000000001), "rate" },
        { AT_FPR, 8, UINT64_C(0xbfe0000000000000), "rate" },
        { AT_NLAYERS, 4, 1, "layers" },
        { AT_NLAYERS, 4, 65, "layers" },
        { AT_ENCODING, 4, 3, "newer" },
        { AT_ENCODING, 4, 2, "contradict" }, /* the other one */
        { AT_ENCODING, 4, 1, "sum" },        /* the zeros are its payload */
        { AT_NBYTES, 8, 0, "contradict" },
        { AT_NBYTES, 8, UINT64_MAX, "contradict" },
        { AT_STORED, 8, 1, "contradict" },
        { AT_STORED, 8, UINT64_MAX, "contradict" },
        { AT_PARAMS, 8, 0, "contradict" },
        { AT_PARAMS, 8, UINT64_MAX, "contradict" },
        { AT_PARAMS + 8 * 15, 8, 1, "newer" },
        { AT_STATE, 8, 1, "state" },
        { AT_STATE + 8 * 7, 8, 1, "state" },
        { AT_PAYLOAD_SUM, 8, 1, "payload" },
        { AT_ZEROS, 4, 1, "zero" },
        { AT_HEADER_SUM - 4, 4, 1, "zero" },
    };
    bly_kind_info kind;
    assert_true(bly_kind_at(0, &kind));
    bly_filter *f = small(&kind);
    byte_array a = written(f);
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        const lie *l = &lies[i];
        unsigned char saved[PAGE];
        memcpy(saved, a.at, PAGE);
        if (l->nbytes == 4)
            set32(a.at + l->at, (uint32_t)l->value);
        else
            set64(a.at + l->at, l->value);
        reseal(a.at);
        refused(a.at, a.n, BLY_EFORMAT, l->words);
        memcpy(a.at, saved, PAGE);
    }
    free(a.at);
    bly_free(f);
}

/* A choice that there is not is one that a newer library has: the file is not
 * damaged, and nobody should build it again. */
static void unknown_choices_are_newer(void **unused)
{
    (void)unused;
    bly_kind_info kind;
    unsigned seen = 0;
    for (size_t row = 0; bly_kind_at(row, &kind); row++)
        for (size_t i = 0; i < kind.nparams; i++) {
            const bly_param *const param = bly_param_at(kind.params, i);
            if (param->type != BLY_CHOICE || param->planning)
                continue;
            bly_filter *f = small(&kind);
            byte_array a = written(f);
            set64(a.at + AT_PARAMS + 8 * i, (uint64_t)param->max + 1);
            reseal(a.at);
            refused(a.at, a.n, BLY_EFORMAT, "newer bloomery");
            free(a.at);
            bly_free(f);
            seen++;
        }
    assert_true(seen > 10);
}

/* A header that promises 2^50 bytes, and one page of them. Memory asked for is
 * what the bytes justify. */
static void huge_promises_cost_nothing(void **unused)
{
    (void)unused;
    ledger l;
    ledger_open(&l);
    const bly_access how = { .mem = &l.mem };
    bly_filter *f = tower_floor(PAGE), *got;
    byte_array a = written(f);
    static const uint64_t sizes[] = { PAGE + 1, (uint64_t)1 << 32,
                                      (uint64_t)1 << 50 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        set64(a.at + AT_NBYTES, sizes[i]);
        set64(a.at + AT_STORED, sizes[i]);
        set64(a.at + AT_PARAMS, sizes[i]);
        reseal(a.at);
        assert_status(bly_load(a.at, a.n, &how, &got), BLY_EFORMAT);
        assert_true(strstr(bly_error(), "cut short"));
        assert_true(l.peak < 2 * PAGE);
        l.peak = 0;
        assert_status(read_through(a.at, a.n, &how, &got), BLY_EFORMAT);
        assert_true(strstr(bly_error(), "cut short"));
        assert_true(l.peak < (2 << 20));
        l.peak = 0;
    }
    ledger_check(&l);
    free(a.at);
    bly_free(f);
}

/* Of a source that does not say how long it is, the memory grows with the
 * bytes: at most twice all of them at once, and exactly them in the end. */
static void long_streams_grow(void **unused)
{
    (void)unused;
    ledger l;
    ledger_open(&l);
    const bly_access how = { .mem = &l.mem };
    const int64_t slack = 2 * PAGE;
    static const uint64_t sizes[] = { (1 << 20) - 1, 1 << 20, (1 << 20) + 1,
                                      5000000, (2 << 20) + 1 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        bly_filter *f = tower_floor(sizes[i]), *got;
        byte_array a = written(f);
        l.peak = 0;
        assert_ok(read_through(a.at, a.n, &how, &got));
        assert_true(bly_equal(f, got));
        assert_true(l.held < (int64_t)sizes[i] + slack);
        assert_true(l.peak < 2 * (int64_t)sizes[i] + slack);
        bly_free(got);
        l.peak = 0;
        assert_ok(bly_load(a.at, a.n, &how, &got));
        assert_true(l.peak < (int64_t)sizes[i] + slack);
        bly_free(got);
        free(a.at);
        bly_free(f);
    }
    ledger_check(&l);
}

static void memory_limits_hold(void **unused)
{
    (void)unused;
    bly_filter *f = tower_make(), *got;
    byte_array a = written(f);
    const uint64_t need = 100 + 5000 + 4096 + 64;
    bly_access how = { .max_bytes = need };
    assert_ok(bly_load(a.at, a.n, &how, &got));
    assert_int_equal(got->extra->max_bytes, need);
    bly_free(got);
    how.max_bytes = need - 1;
    assert_status(bly_load(a.at, a.n, &how, &got), BLY_ERANGE);
    assert_null(got);
    how.max_bytes = 99;
    assert_status(bly_load(a.at, a.n, &how, &got), BLY_ERANGE);
    assert_int_equal(tower_open_count, 5);
    free(a.at);
    bly_free(f);
}

static void memory_may_end_anywhere(void **unused)
{
    (void)unused;
    bly_filter *f = tower_make(), *got;
    byte_array a = written(f);
    bly_status st = BLY_ENOMEM;
    long ntries = 0;
    for (; st == BLY_ENOMEM; ntries++) {
        ledger l;
        ledger_open(&l);
        l.fail_at = ntries;
        const bly_access how = { .mem = &l.mem };
        st = bly_load(a.at, a.n, &how, &got);
        bly_free(got);
        ledger_check(&l);
    }
    assert_ok(st);
    /* Structs, what few filters have (aux), bodies, places for layers (1, 2, 4,
     * and 1), the good one. */
    assert_int_equal(ntries, 5 + 5 + 5 + 4 + 1);
    free(a.at);
    bly_free(f);
}

/* ------------------------------------------------------------------- coded */

static bly_filter *coded_tower(void)
{
    bly_filter *f = tower_make();
    bly_set_coded(f, true);
    return f;
}

/* Read by either way and written again it is the same; and told to, it is what
 * it was before. */
static void coded_towers_come_back(void **unused)
{
    (void)unused;
    bly_filter *f = coded_tower(), *got;
    byte_array a = written(f);
    assert_int_equal(a.n, bly_written_bytes(f));
    assert_int_equal(at64(a.at + AT_NBYTES), 100);
    assert_int_equal(a.at[AT_ENCODING], 2);
    for (int way = 0; way < 2; way++) {
        assert_ok((way ? read_through : bly_load)(a.at, a.n, NULL, &got));
        assert_true(bly_equal(f, got));
        assert_true(got->coded && got->layer[0]->layer[0]->coded);
        assert_same_bytes(got, &a);
        bly_set_coded(got, false);
        byte_array plain = written(got);
        assert_int_equal(plain.n, TOWER_BYTES);
        bly_free(got);
        free(plain.at);
    }
    bly_set_coded(f, false);
    assert_int_equal(bly_written_bytes(f), TOWER_BYTES);
    free(a.at);
    bly_free(f);
}

static void coded_parts_make_the_whole(void **unused)
{
    (void)unused;
    bly_filter *f = coded_tower();
    byte_array a = written(f);
    static const size_t sizes[] = { 61, 4096, 9999, 1u << 20 };
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        unsigned char *buf = guarded_new(sizes[s]);
        size_t at = 0, n;
        while ((n = bly_write_part(f, at, buf, sizes[s]))) {
            assert_true(n == sizes[s] || at + n == a.n);
            assert_memory_equal(buf, a.at + at, n);
            at += n;
        }
        assert_int_equal(at, a.n);
        guarded_free(buf, sizes[s]);
    }
    for (size_t room = 0; room <= a.n; room += 97) {
        size_t left = room;
        assert_status(bly_write(f, refuse_bytes, &left),
                      room < a.n ? BLY_EIO : BLY_OK);
    }
    free(a.at);
    bly_free(f);
}

static void coded_accidents_are_refused(void **unused)
{
    (void)unused;
    bly_filter *f = coded_tower();
    byte_array a = written(f);
    for (size_t n = 0; n < a.n; n += 61)
        refused(a.at, n, BLY_EFORMAT, NULL);
    refused(a.at, a.n - 1, BLY_EFORMAT, "cut short");
    flips_refused(&a, 0, 300);
    flips_refused(&a, SHORT, SHORT + 200);
    flips_refused(&a, a.n - 64, a.n);
    const unsigned char zero = 0;
    assert_true(put_bytes(&a, &zero, 1));
    refused(a.at, a.n, BLY_EFORMAT, "bytes follow");
    assert_int_equal(tower_open_count, 5);
    free(a.at);
    bly_free(f);
}

/* A forger computes the sums. The size is still the header's, and only one
 * stream gives these bytes. */
static void coded_forgeries_are_refused(void **unused)
{
    (void)unused;
    bly_filter *f = tower_floor(100);
    bly_set_coded(f, true);
    byte_array a = written(f);
    const size_t n = a.n - SHORT;
    for (size_t i = 0; i < n; i++) {
        a.at[SHORT + i] ^= 0x10;
        set64(a.at + AT_PAYLOAD_SUM, bly_checksum(a.at + SHORT, n));
        reseal(a.at);
        refused(a.at, a.n, BLY_EFORMAT, "coded as");
        a.at[SHORT + i] ^= 0x10;
    }
    set64(a.at + AT_PAYLOAD_SUM, bly_checksum(a.at + SHORT, n - 4));
    set64(a.at + AT_STORED, n - 4);
    reseal(a.at);
    refused(a.at, a.n - 4, BLY_EFORMAT, "coded as");
    static const uint64_t sizes[] = { 0, 4 * 100 + 65, UINT64_MAX };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        set64(a.at + AT_STORED, sizes[i]);
        reseal(a.at);
        refused(a.at, a.n, BLY_EFORMAT, "contradict");
    }
    free(a.at);
    bly_free(f);

    /* A layer that is coded, or not, alone: the last one. */
    f = tower_make();
    a = written(f);
    unsigned char *last = a.at + 8 * PAGE;
    last[AT_ENCODING] = 2;
    reseal(last);
    refused(a.at, a.n, BLY_EFORMAT, "other way round");
    free(a.at);
    bly_set_coded(f, true);
    a = written(f);
    last = a.at + a.n - 8;
    do
        last--;
    while (memcmp(last, a.at, 8) != 0); /* the magic */
    a.n = (size_t)(last - a.at) + AT_ZEROS;
    last[AT_ENCODING] = 0;
    memcpy(last + AT_STORED, last + AT_NBYTES, 8);
    static const unsigned char zeros[PAGE];
    assert_true(put_bytes(&a, zeros, sizeof zeros));
    last = a.at + a.n - sizeof zeros - AT_ZEROS;
    reseal(last);
    refused(a.at, a.n, BLY_EFORMAT, "other way round");
    free(a.at);
    bly_free(f);
}

/* What a stream becomes is at most 1024 times the bytes that are there. */
static void coded_promises_are_bounded(void **unused)
{
    (void)unused;
    ledger l;
    ledger_open(&l);
    const bly_access how = { .mem = &l.mem };
    bly_filter *f = tower_floor(100), *got;
    bly_set_coded(f, true);
    byte_array a = written(f);
    const uint64_t n = a.n - SHORT;
    static const struct {
        uint64_t times, more;
        const char *words;
    } rows[] = {
        { 1024, 0, "coded as" },
        { 1024, 1, "contradict" },
        { UINT64_C(1) << 40, 0, "contradict" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int way = 0; way < 2; way++) {
            const uint64_t size = rows[i].times * n + rows[i].more;
            set64(a.at + AT_NBYTES, size);
            set64(a.at + AT_PARAMS, size);
            reseal(a.at);
            l.peak = 0;
            assert_status(
                (way ? read_through : bly_load)(a.at, a.n, &how, &got),
                BLY_EFORMAT);
            assert_non_null(strstr(bly_error(), rows[i].words));
            assert_true(l.peak < (int64_t)(1024 * n + 2 * PAGE));
        }
    /* 2^50 bytes of which the 1024th part is promised, and not there. */
    set64(a.at + AT_NBYTES, UINT64_C(1) << 50);
    set64(a.at + AT_PARAMS, UINT64_C(1) << 50);
    set64(a.at + AT_STORED, UINT64_C(1) << 40);
    reseal(a.at);
    for (int way = 0; way < 2; way++) {
        l.peak = 0;
        assert_status((way ? read_through : bly_load)(a.at, a.n, &how, &got),
                      BLY_EFORMAT);
        assert_non_null(strstr(bly_error(), "cut short"));
        assert_true(l.peak < (2 << 20));
    }
    ledger_check(&l);
    free(a.at);
    bly_free(f);
}

static void coded_memory_is_limited(void **unused)
{
    (void)unused;
    bly_filter *f = coded_tower(), *got;
    byte_array a = written(f);
    const uint64_t need = 100 + 5000 + 4096 + 64;
    bly_access how = { .max_bytes = need };
    assert_ok(bly_load(a.at, a.n, &how, &got));
    bly_free(got);
    how.max_bytes = need - 1;
    assert_status(bly_load(a.at, a.n, &how, &got), BLY_ERANGE);
    assert_null(got);
    for (int way = 0; way < 2; way++) {
        bly_status st = BLY_ENOMEM;
        for (long ntries = 0; st == BLY_ENOMEM; ntries++) {
            ledger l;
            ledger_open(&l);
            l.fail_at = ntries;
            how = (bly_access){ .mem = &l.mem };
            st = (way ? read_through : bly_load)(a.at, a.n, &how, &got);
            bly_free(got);
            ledger_check(&l);
        }
        assert_ok(st);
    }
    assert_int_equal(tower_open_count, 5);
    free(a.at);
    bly_free(f);
}

/* Mapped without a comparison, a damaged filter is used as it is. Its coded
 * copy is not taken for a sound one. */
static void damage_is_coded_too(void **unused)
{
    (void)unused;
    bly_kind_info kind;
    char path[] = "/tmp/bloomery-coded-XXXXXX";
    const int fd = mkstemp(path);
    static const bly_access believe = { .checking = BLY_CHECK_NOTHING };
    assert_true(fd >= 0);
    assert_true(bly_kind_at(0, &kind));
    bly_filter *f = small(&kind), *map;
    assert_ok(bly_save(f, path));
    for (int damaged = 0; damaged <= 1; damaged++) {
        if (damaged) {
            const int at = open(path, O_WRONLY);
            assert_int_equal(pwrite(at, "x", 1, PAGE + 5), 1);
            close(at);
        }
        assert_ok(bly_map(path, &believe, &map));
        bly_set_coded(map, true);
        byte_array a = written(map);
        if (damaged) {
            refused(a.at, a.n, BLY_EFORMAT, "checksum");
        } else {
            bly_filter *got;
            assert_ok(bly_load(a.at, a.n, NULL, &got));
            assert_true(bly_equal(f, got));
            bly_free(got);
        }
        free(a.at);
        bly_free(map);
    }
    bly_free(f);
    close(fd);
    unlink(path);
}

/* ------------------------------------------------------------------ layers */

static void kinds_have_their_say(void **unused)
{
    (void)unused;
    bly_filter *f = tower_make();
    byte_array a;

    f->layer[2]->state[0] = 8;
    a = written(f);
    refused(a.at, a.n, BLY_EFORMAT, "state");
    free(a.at);
    f->layer[2]->state[0] = 7;

    f->layer[0]->layer[0]->data[0] = 0xee;
    a = written(f);
    refused(a.at, a.n, BLY_EFORMAT, "contents");
    free(a.at);
    f->layer[0]->layer[0]->data[0] = 0;

    f->layer[1]->extra->hasher.seed = 10;
    a = written(f);
    refused(a.at, a.n, BLY_EFORMAT, "another hash");
    free(a.at);
    assert_int_equal(tower_open_count, 5);
    bly_free(f);
}

/* Four levels are read and written; of five neither is done. */
static void depth_is_limited(void **unused)
{
    (void)unused;
    bly_filter *f = tower_floor(64), *got;
    for (int depth = 1; depth <= 5; depth++) {
        size_t left = SIZE_MAX;
        if (depth < 5) {
            byte_array a = written(f);
            assert_ok(bly_load(a.at, a.n, NULL, &got));
            assert_true(bly_equal(f, got));
            bly_free(got);
            free(a.at);
        } else {
            assert_status(bly_write(f, refuse_bytes, &left), BLY_ERANGE);
            assert_int_equal(bly_written_bytes(f), 0);
            assert_int_equal(bly_write_part(f, 0, NULL, 1), 0);
        }
        bly_filter *base = tower_floor(64);
        assert_ok(bly_filter_push(base, f));
        f = base;
    }
    bly_free(f);

    /* The same as bytes: one record that says it has a layer, five times. */
    f = tower_floor(0);
    byte_array one = written(f), all = { 0 };
    set32(one.at + AT_NLAYERS, 1);
    reseal(one.at);
    for (int i = 0; i < 5; i++)
        assert_true(put_bytes(&all, one.at, one.n));
    refused(all.at, all.n, BLY_EFORMAT, "more layers");
    free(one.at);
    free(all.at);
    bly_free(f);
}

/* A header may not even promise more layers than a filter can have. */
static void layers_are_limited(void **unused)
{
    (void)unused;
    bly_filter *f = tower_floor(0);
    byte_array a = written(f), layer = written(f);
    set32(a.at + AT_NLAYERS, BLY_MAX_LAYERS + 1);
    reseal(a.at);
    for (int i = 0; i <= BLY_MAX_LAYERS; i++)
        assert_true(put_bytes(&a, layer.at, layer.n));
    refused(a.at, a.n, BLY_EFORMAT, "layers");
    free(a.at);
    free(layer.at);
    bly_free(f);
}

/* Wide trees within the depth: 64 layers of 64 layers are 4161 records, and
 * one more is too many. */
static void records_are_limited(void **unused)
{
    (void)unused;
    bly_filter *f = tower_floor(0), *got;
    for (int i = 0; i < BLY_MAX_LAYERS; i++) {
        bly_filter *wide = tower_floor(0);
        for (int j = 0; j < BLY_MAX_LAYERS; j++)
            assert_ok(bly_filter_push(wide, tower_floor(0)));
        assert_ok(bly_filter_push(f, wide));
    }
    byte_array a = written(f);
    assert_int_equal(a.n, 4161 * PAGE);
    assert_ok(bly_load(a.at, a.n, NULL, &got));
    assert_true(bly_equal(f, got));
    bly_free(got);
    assert_ok(bly_filter_push(f->layer[63]->layer[63], tower_floor(0)));
    assert_int_equal(bly_written_bytes(f), 0);
    set32(a.at + a.n - PAGE + AT_NLAYERS, 1);
    reseal(a.at + a.n - PAGE);
    unsigned char last[PAGE];
    memcpy(last, a.at + a.n - 2 * PAGE, PAGE);
    assert_true(put_bytes(&a, last, PAGE));
    assert_status(bly_load(a.at, a.n, NULL, &got), BLY_EFORMAT);
    assert_true(strstr(bly_error(), "more layers"));
    free(a.at);
    bly_free(f);
    assert_int_equal(tower_open_count, 0);
}

static void sharing_needs_the_ability(void **unused)
{
    (void)unused;
    const bly_access how = { .shared = true };
    bly_filter *f = tower_floor(10), *got;
    byte_array a = written(f);
    assert_status(bly_load(a.at, a.n, &how, &got), BLY_ENOTSUP);
    assert_null(got);
    free(a.at);
    bly_free(f);
    EACH_KIND(kind)
    {
        f = small(&kind);
        a = written(f);
        if (kind.can & BLY_CAN(SHARE)) {
            assert_ok(bly_load(a.at, a.n, &how, &got));
            assert_true(got->shared);
            bly_free(got);
        } else {
            assert_status(bly_load(a.at, a.n, &how, &got), BLY_ENOTSUP);
        }
        free(a.at);
        bly_free(f);
    }
}

/* ------------------------------------------------------------------- keys */

static void keyed_files_want_their_key(void **unused)
{
    (void)unused;
    EACH_KIND(kind)
    {
        if (kind.can & BLY_CAN(RANGE)) /* keys in order: no secret hash */
            continue;
        bly_spec spec = spec_for(&kind, NKEYS);
        spec.seed = 0;
        spec.secret = secret;
        bly_filter *f = filled_from(&spec, 0, NKEYS), *got;
        byte_array a = written(f);
        bly_access how = { 0 };
        assert_null(memmem(a.at, a.n, secret, BLY_SECRET_BYTES));
        assert_int_equal(at64(a.at + AT_SEED), 0);
        assert_int_not_equal(at64(a.at + AT_SECRET_CHECK), 0);

        refused(a.at, a.n, BLY_ESECRET, "give the key");
        how.secret = wrong_secret;
        assert_status(bly_load(a.at, a.n, &how, &got), BLY_ESECRET);
        assert_null(got);
        assert_true(strstr(bly_error(), "another key"));
        /* Blindness is for those without a key, not for a wrong one. */
        how.blind = true;
        assert_status(bly_load(a.at, a.n, &how, &got), BLY_ESECRET);

        how.secret = secret;
        assert_ok(bly_load(a.at, a.n, &how, &got));
        assert_false(got->blind);
        assert_true(bly_equal(f, got));
        assert_int_equal(hits(got, 0, NKEYS), hits(f, 0, NKEYS));
        bly_free(got);

        how.secret = NULL;
        assert_ok(bly_load(a.at, a.n, &how, &got));
        assert_null(bly_hasher_of(got));
        assert_true(bly_equal(f, got));
        byte_array again = written(got);
        assert_int_equal(again.n, a.n);
        assert_memory_equal(again.at, a.at, a.n);
        bly_free(got);
        free(again.at);
        free(a.at);
        bly_free(f);

        f = small(&kind);
        a = written(f);
        how = (bly_access){ .secret = secret };
        assert_status(bly_load(a.at, a.n, &how, &got), BLY_ESECRET);
        assert_true(strstr(bly_error(), "not a keyed filter"));
        how = (bly_access){ .blind = true };
        assert_ok(bly_load(a.at, a.n, &how, &got));
        assert_non_null(bly_hasher_of(got));
        bly_free(got);
        free(a.at);
        bly_free(f);
    }
}

/* ------------------------------------------------------------------ golden */

static const char *golden_folder(void)
{
    const char *folder = getenv("BLY_GOLDEN");
    return folder ? folder : "tests/golden";
}

static void golden_files_hold(void **unused)
{
    (void)unused;
    EACH_KIND(kind)
    for (int form = 0; form < GOLDEN_NFORMS; form++) {
        if (!golden_wants(golden_folder(), row_, (golden_form)form))
            continue;
        const char *wrong =
            golden_check(golden_folder(), &kind, (golden_form)form);
        if (wrong)
            fail_msg("the golden file %s%s.bly: %s", kind.name,
                     golden_suffix((golden_form)form), wrong);
    }
}

/* The example in docs/format.md is the beginning of a golden file. */
static void the_example_is_true(void **unused)
{
    (void)unused;
    char path[4096], line[256];
    unsigned char file[2 * PAGE];
    int nlines = 0;
    golden_path(golden_folder(), "classic", GOLDEN_PLAIN, path, sizeof path);
    FILE *golden = fopen(path, "rb"), *page = fopen("docs/format.md", "r");
    assert_non_null(golden);
    assert_non_null(page);
    const size_t n = fread(file, 1, sizeof file, golden);
    while (fgets(line, sizeof line, page)) {
        size_t at;
        int used = 0;
        if (line[0] != '0' || sscanf(line, "%8zx:%n", &at, &used) != 1 || !used)
            continue;
        assert_true(at + 16 <= n);
        for (size_t i = 0; i < 16; i++) {
            char byte[4];
            snprintf(byte, sizeof byte, " %02x", file[at + i]);
            if (strncmp(line + used + 3 * i, byte, 3) != 0)
                fail_msg("%s: not what %s has there", line, path);
        }
        nlines++;
    }
    assert_int_equal(nlines, 10);
    fclose(golden);
    fclose(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_what_was_written),
        cmocka_unit_test(towers_come_back),
        cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(a_receiver_may_stop),
        cmocka_unit_test(writing_frees_what_is_written),
        cmocka_unit_test(prefixes_are_refused),
        cmocka_unit_test(missing_bytes_are_counted),
        cmocka_unit_test(more_bytes_are_refused),
        cmocka_unit_test(flipped_bits_are_refused),
        cmocka_unit_test(other_files_are_known),
        cmocka_unit_test(a_source_may_fail),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(unknown_choices_are_newer),
        cmocka_unit_test(huge_promises_cost_nothing),
        cmocka_unit_test(long_streams_grow),
        cmocka_unit_test(memory_limits_hold),
        cmocka_unit_test(memory_may_end_anywhere),
        cmocka_unit_test(coded_towers_come_back),
        cmocka_unit_test(coded_parts_make_the_whole),
        cmocka_unit_test(coded_accidents_are_refused),
        cmocka_unit_test(coded_forgeries_are_refused),
        cmocka_unit_test(coded_promises_are_bounded),
        cmocka_unit_test(coded_memory_is_limited),
        cmocka_unit_test(damage_is_coded_too),
        cmocka_unit_test(kinds_have_their_say),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(layers_are_limited),
        cmocka_unit_test(records_are_limited),
        cmocka_unit_test(sharing_needs_the_ability),
        cmocka_unit_test(keyed_files_want_their_key),
        cmocka_unit_test(golden_files_hold),
        cmocka_unit_test(the_example_is_true),
    };
    return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}

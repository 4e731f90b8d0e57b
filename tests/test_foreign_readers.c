/*
 * test_foreign_readers.c - formats that are read, on files that the systems
 * themselves wrote
 *
 * Where the keys are known, all bits of a filter are computed from them and
 * compared with the file's: that fixes hash, positions and the order of bits
 * at once. Files are read from ../shared/vectors, or the folder that
 * BLY_VECTORS names; without it these tests are skipped.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"
#include "support.h"

/* ----------------------------------------------------------------- files */

static byte_array vector(const char *name)
{
    const char *const folder = getenv("BLY_VECTORS");
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "../shared/vectors",
             name);
    FILE *const in = fopen(path, "rb");
    byte_array b = { 0 };
    char piece[4096];
    size_t n;
    if (!in)
        skip_for("no files of other systems");
    while ((n = fread(piece, 1, sizeof piece, in)) > 0)
        put_bytes(&b, piece, n);
    fclose(in);
    return b;
}

/* A filter and the bytes that it borrows. */
struct opened {
    byte_array bytes;
    bly_foreign *f;
};

/* Open a vector. format NULL: it must be recognised. option NULL: none. */
static struct opened opened(const char *name, const char *format,
                            const char *option, const char *value)
{
    struct opened o = { .bytes = vector(name) };
    const bly_option given = { option, value };
    const bly_foreign_spec spec = { .format = format,
                                    .options = &given,
                                    .noptions = option != NULL };
    assert_ok(bly_foreign_open(&spec, o.bytes.at, o.bytes.n, &o.f));
    return o;
}

static void closed(struct opened *o)
{
    bly_foreign_free(o->f);
    free(o->bytes.at);
}

/* --------------------------------------------------------------- rebuilding */

static bly_bytes text_of(const char *text)
{
    return (bly_bytes){ text, strlen(text) };
}

static bool has(const bly_foreign *f, const char *text)
{
    const bly_bytes key = text_of(text);
    uint64_t bit;
    assert_ok(bly_foreign_has(f, &key, 1, &bit, NULL));
    return bit;
}

static const char *name_of(const bly_foreign *f, size_t i)
{
    static char name[BLY_PART_NAME];
    bly_foreign_part_name(f, i, name);
    return name;
}

static bly_foreign_part part_of(const bly_foreign *f, size_t i)
{
    bly_foreign_part p = { 0 };
    if (bly_row_of(f)->part)
        bly_row_of(f)->part(f, i, &p);
    else
        p = f->more->one;
    return p;
}

/* Bits as the part p would have them with some keys. */
struct rebuilt {
    const bly_foreign *f;
    bly_foreign_part p;
    unsigned char *bits;
};

static struct rebuilt rebuild(const bly_foreign *f, size_t part)
{
    struct rebuilt r = { f, part_of(f, part), NULL };
    assert_true(r.p.nbits % 8 == 0 && r.p.nbits > 0);
    r.bits = calloc(1, (size_t)r.p.nbits / 8);
    assert_non_null(r.bits);
    return r;
}

static void rebuild_add(struct rebuilt *r, bly_bytes text)
{
    bly_scratch s = { .mem = &bly_mem_system };
    bly_foreign_key key = { 0 };
    uint64_t at[BLY_FOREIGN_MAX_K];
    const bly_format *const t = bly_row_of(r->f);
    assert_ok(t->encode ? t->encode(r->f, text, &s, &key)
                        : bly_key_encode(r->f->form, text, &s, &key));
    t->hash(r->f, &key);
    t->positions(r->f, &r->p, &key, at);
    for (uint32_t i = 0; i < r->p.k; i++) {
        assert_true(at[i] < r->p.nbits);
        r->bits[at[i] / 8 ^ r->p.order] |= (unsigned char)(1u << at[i] % 8);
    }
    bly_mem_release(s.mem, s.at, s.room);
}

static void rebuild_check(struct rebuilt *r)
{
    assert_memory_equal(r->bits, r->p.bytes, (size_t)r->p.nbits / 8);
    free(r->bits);
}

/* The whole of a filter of one part is the keys format(first) to
 * format(last), and a few of others are found at the rate of its bits. */
static void assert_is_keys(const bly_foreign *f, const char *format,
                           unsigned first, unsigned last, const char *further)
{
    struct rebuilt r = rebuild(f, 0);
    char text[64];
    unsigned wrong = 0;
    for (unsigned i = first; i <= last; i++) {
        snprintf(text, sizeof text, format, i);
        rebuild_add(&r, text_of(text));
        assert_true(has(f, text));
    }
    if (further)
        rebuild_add(&r, text_of(further));
    rebuild_check(&r);
    bly_foreign_stats s;
    bly_foreign_stat(f, BLY_WHOLE, &s);
    const double trials = 20000, p = s.fpr_now;
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(text, sizeof text, format, last + 1 + i);
        wrong += has(f, text);
    }
    /* fpr_now is of one array; lines of 512 bits differ in their fill. */
    assert_between(wrong, 0.5 * trials * p - 6 * sqrt(trials * p),
                   2 * trials * p + 6 * sqrt(trials * p));
}

/* ------------------------------------------------------- LevelDB, RocksDB */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Six filters, of 190 keys each and the last of 50, in the order of keys. */
static void assert_leveldb(const bly_foreign *f)
{
    enum { N = 1000, EACH = 190 };
    char *text[N];
    assert_int_equal(f->nparts, 6);
    for (unsigned i = 0; i < N; i++) {
        text[i] = malloc(16);
        assert_non_null(text[i]);
        snprintf(text[i], 16, "item-%u", i);
        assert_true(has(f, text[i]));
    }
    qsort(text, N, sizeof *text, by_text);
    for (unsigned part = 0; part < 6; part++) {
        struct rebuilt r = rebuild(f, part);
        for (unsigned i = part * EACH; i < N && i < (part + 1) * EACH; i++)
            rebuild_add(&r, text_of(text[i]));
        rebuild_check(&r);
    }
    for (unsigned i = 0; i < N; i++)
        free(text[i]);
}

static void test_leveldb_table(void **state)
{
    (void)state;
    struct opened o =
        opened("leveldb/leveldb-1.23-bloom10.ldb", NULL, NULL, NULL);
    assert_string_equal(bly_row_of(o.f)->name, "leveldb");
    assert_leveldb(o.f);
    assert_string_equal(name_of(o.f, 1), "blocks from 4096 to 6143");
    closed(&o);
}

static void test_leveldb_filter(void **state)
{
    (void)state;
    struct opened o =
        opened("leveldb/filter-block.bin", "leveldb-filter", NULL, NULL);
    assert_leveldb(o.f);
    closed(&o);
}

static void test_rocksdb_legacy(void **state)
{
    (void)state;
    struct opened o = opened("rocksdb/legacy-full-filter-10bpk.bin",
                             "rocksdb-filter", NULL, NULL);
    assert_is_keys(o.f, "item-%05u", 0, 999, NULL);
    closed(&o);
}

static void test_rocksdb_described(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        double fpr;
    } rows[] = { { "rocksdb/fastlocal-full-filter-10bpk.bin", 0.0075 },
                 { "rocksdb/ribbon-full-filter-10bpk.bin", 0.0085 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct opened o = opened(rows[i].file, "rocksdb-filter", NULL, NULL);
        const bly_bytes key = text_of("item-00000");
        bly_foreign_stats s;
        uint64_t bit;
        bly_foreign_stat(o.f, BLY_WHOLE, &s);
        assert_near(s.fpr_now, rows[i].fpr, 0.05);
        if (i == 0) {
            assert_int_equal(s.k, 6);
            assert_near(s.items_estimate, 1000, 0.05);
        }
        /* "cannot tell" is an error, never "no". */
        assert_status(bly_foreign_has(o.f, &key, 1, &bit, NULL), BLY_ENOTSUP);
        closed(&o);
    }
}

/* ------------------------------------------------------------------- git */

/* A path and all folders above it. */
static void rebuild_path(struct rebuilt *r, const char *path, size_t len)
{
    for (size_t i = 1; i <= len; i++)
        if (i == len || path[i] == '/')
            rebuild_add(r, (bly_bytes){ path, i });
}

/* One row: commit, filter in hexadecimal, paths between semicolons. */
static void assert_commit(const bly_foreign *f, size_t i, char *row)
{
    const char *const id = strtok(row, "\t"), *const hex = strtok(NULL, "\t");
    const char *path = strtok(NULL, "\t");
    const bly_foreign_part p = part_of(f, i);
    assert_string_equal(name_of(f, i), id);
    assert_int_equal(p.nbits, strlen(hex) * 4);
    for (size_t j = 0; j < p.nbits / 8; j++) {
        char byte[3];
        snprintf(byte, sizeof byte, "%02x", p.bytes[j]);
        assert_memory_equal(byte, hex + 2 * j, 2);
    }
    assert_int_equal(p.excludes_all, strcmp(hex, "00") == 0);
    assert_int_equal(p.k, strcmp(hex, "ff") == 0 ? 0 : 7);
    if (p.excludes_all || p.k == 0)
        return;
    struct rebuilt r = rebuild(f, i);
    while (*path) {
        const size_t len = strcspn(path, ";");
        rebuild_path(&r, path, len);
        path += len + (path[len] == ';');
    }
    rebuild_check(&r);
}

static void test_git(void **state)
{
    (void)state;
    struct opened o = opened("git-commit-graph/commit-graph", NULL, NULL, NULL);
    byte_array table = vector("git-commit-graph/commits.tsv");
    put_bytes(&table, "", 1);
    size_t i = 0;
    char *row = (char *)table.at, *next;
    for (; (next = strchr(row, '\n')) != NULL; row = next + 1) {
        *next = '\0';
        assert_commit(o.f, i++, row);
    }
    assert_int_equal(i, o.f->nparts);
    assert_int_equal(i, 32);
    free(table.at);

    /* By the index, as by the parts. The commit of 600 files may have
     * anything; the one without changes has nothing. */
    uint64_t bitmap;
    assert_ok(bly_foreign_where(o.f,
                                text_of("docs/\xc3\xbc"
                                        "bung.txt"),
                                &bitmap));
    assert_int_equal(bitmap, UINT64_C(1) << 4 | UINT64_C(1) << 12);
    assert_ok(bly_foreign_where(o.f, text_of("README"), &bitmap));
    assert_int_equal(bitmap, UINT32_MAX & ~(UINT64_C(1) << 28));
    uint64_t slash;
    assert_ok(bly_foreign_where(o.f, text_of("src/d3"), &bitmap));
    assert_ok(bly_foreign_where(o.f, text_of("src/d3/"), &slash));
    assert_int_equal(bitmap, slash);
    closed(&o);
}

static void test_git_commit(void **state)
{
    (void)state;
    struct opened o =
        opened("git-commit-graph/commit-graph", NULL, "commit", "5F61d");
    assert_int_equal(o.f->nparts, 1);
    assert_true(has(o.f, "docs"));
    assert_false(has(o.f, "src/d3"));
    closed(&o);
    o = opened("git-commit-graph/commit-graph", NULL, "commit", "5");
    assert_int_equal(o.f->nparts, 4); /* 53, 5c, 5d, 5f */
    assert_memory_equal(name_of(o.f, 0), "538e", 4);
    assert_memory_equal(name_of(o.f, 3), "5f61", 4);
    bly_foreign *f;
    static const char *const bad[] = {
        "52", "x",
        "5f61d3eb73c683db3ca958b7c13248cf89eb5f0c0" /* a digit more */
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const bly_option given = { "commit", bad[i] };
        const bly_foreign_spec spec = { .options = &given, .noptions = 1 };
        assert_status(bly_foreign_open(&spec, o.bytes.at, o.bytes.n, &f),
                      BLY_EINVAL);
    }
    closed(&o);
}

/* ---------------------------------------------------------- DataSketches */

static void test_datasketches_strings(void **state)
{
    (void)state;
    static const char *const files[] = {
        "datasketches/ds-str-1000-0.01-seed9001.sk",
        "datasketches/ds-str-1000-0.01-seed9001-clean.sk"
    };
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct opened o = opened(files[i], NULL, NULL, NULL);
        assert_is_keys(o.f, "item-%u", 0, 999, NULL);
        closed(&o);
    }
}

/* The integers 0 to 999 and the double NaN, whose bits are those of a whole
 * number too. */
static void test_datasketches_numbers(void **state)
{
    (void)state;
    static const char *const by[] = { "cpp", "go", "java" };
    char nan_bits[32], file[64];
    snprintf(nan_bits, sizeof nan_bits, "%llu",
             (unsigned long long)(UINT64_C(0xfff) << 51));
    for (size_t i = 0; i < COUNT_OF(by); i++) {
        for (int k = 3; k <= 5; k += 2) {
            snprintf(file, sizeof file, "datasketches/bf_n10000_h%d_%s.sk", k,
                     by[i]);
            struct opened o = opened(file, NULL, "keys", "int64");
            assert_int_equal(o.f->more->one.k, k);
            assert_is_keys(o.f, "%u", 0, 999, nan_bits);
            closed(&o);
            o = opened(file, NULL, "keys", "double");
            assert_true(has(o.f, "nan"));
            assert_true(has(o.f, "-nan"));
            assert_true(has(o.f, "0")); /* as the integer 0 */
            assert_true(has(o.f, "-0"));
            closed(&o);
        }
    }
}

static void test_datasketches_empty(void **state)
{
    (void)state;
    static const char *const names[] = {
        "bf_n0_h3_cpp",           "bf_n0_h3_go", "bf_n0_h3_java",
        "bf_n0_h5_cpp",           "bf_n0_h5_go", "bf_n0_h5_java",
        "ds-empty-1000-3-seed123"
    };
    char file[64];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(file, sizeof file, "datasketches/%s.sk", names[i]);
        struct opened o = opened(file, NULL, NULL, NULL);
        bly_foreign_stats s;
        bly_foreign_stat(o.f, BLY_WHOLE, &s);
        assert_int_equal(s.items, 0);
        assert_true(s.fpr_now == 0);
        assert_false(has(o.f, "item-0"));
        closed(&o);
    }
}

/* -------------------------------------------------------------- Cassandra */

static void test_cassandra(void **state)
{
    (void)state;
    static const char *const versions[] = { "ma", "mc", "na", "nb",
                                            "nc", "oa", "da" };
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        char file[64], text[2] = "";
        snprintf(file, sizeof file, "cassandra/%s-simple-Filter.db",
                 versions[i]);
        struct opened o = opened(file, NULL, "version", versions[i]);
        assert_is_keys(o.f, "%u", 0, 4, NULL);
        closed(&o);
        /* Without the version no key is lost. */
        o = opened(file, NULL, NULL, NULL);
        for (text[0] = '0'; text[0] <= '4'; text[0]++)
            assert_true(has(o.f, text));
        assert_false(has(o.f, "5"));
        closed(&o);
    }
}

/* ---------------------------------------------------------------- Bitcoin */

/* The text of `"name": "value"` or the first of `"name": [ "value", ...`, and
 * where it ends; NULL where there is none. */
static const char *json_text(const char *from, const char *name, char *out,
                             size_t room)
{
    const char *const at = strstr(from, name);
    if (!at)
        return NULL;
    const char *const text = strchr(at + strlen(name) + 1, '"') + 1;
    const size_t n = strcspn(text, "\"");
    assert_true(n < room);
    memcpy(out, text, n);
    out[n] = '\0';
    return text + n + 1;
}

static void test_bip37(void **state)
{
    (void)state;
    byte_array json = vector("bip37/vectors.json");
    put_bytes(&json, "", 1);
    const char *at = (const char *)json.at;
    unsigned nvectors = 0;
    char text[128], absent[128], key[3][128];
    while ((at = json_text(at, "insert_hex\"", key[0], sizeof *key)) != NULL) {
        for (int i = 1; i < 3; i++)
            at = json_text(at, ",", key[i], sizeof *key);
        at = json_text(at, "absent_hex\"", absent, sizeof absent);
        at = json_text(at, "serialized_hex\"", text, sizeof text);
        bly_scratch s = { .mem = &bly_mem_system };
        bly_foreign_key bytes;
        bly_foreign *f;
        assert_ok(bly_key_encode(BLY_KEY_HEX, text_of(text), &s, &bytes));
        assert_ok(bly_foreign_open(NULL, bytes.bytes, bytes.len, &f));
        assert_string_equal(bly_row_of(f)->name, "bip37");
        struct rebuilt r = rebuild(f, 0);
        for (int i = 0; i < 3; i++)
            rebuild_add(&r, text_of(key[i]));
        rebuild_check(&r);
        for (int i = 0; i < 3; i++)
            assert_true(has(f, key[i]));
        assert_false(has(f, absent));
        bly_foreign_free(f);
        bly_mem_release(s.mem, s.at, s.room);
        nvectors++;
    }
    assert_int_equal(nvectors, 2);
    free(json.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leveldb_table),
        cmocka_unit_test(test_leveldb_filter),
        cmocka_unit_test(test_rocksdb_legacy),
        cmocka_unit_test(test_rocksdb_described),
        cmocka_unit_test(test_git),
        cmocka_unit_test(test_git_commit),
        cmocka_unit_test(test_datasketches_strings),
        cmocka_unit_test(test_datasketches_numbers),
        cmocka_unit_test(test_datasketches_empty),
        cmocka_unit_test(test_cassandra),
        cmocka_unit_test(test_bip37),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

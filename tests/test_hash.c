/*
 * test_hash.c - bytes to 64 bits, against published values
 *
 * SipHash: the tables of its authors' reference code and, for the 1-3 form,
 * the one that several language runtimes share: key 00 01 .. 0f, messages 00,
 * 00 01, and so on. Beside them stands a second SipHash, written from the
 * paper byte by byte, for lengths no table has. XXH3: the table of xxHash's
 * own self-check, and its scalar form beside the vectors that the library has.
 */
#include "support.h"

#include <string.h>

#define XXH_INLINE_ALL
#define XXH_VECTOR 0 /* XXH_SCALAR */
#include <xxhash.h>

#include "core/bits.h"
#include "engine/hash_many.h"

static bly_hasher xxh3_hasher(uint64_t seed)
{
    return (bly_hasher){ .id = BLY_HASH_XXH3, .seed = seed };
}

/* The hasher of the key 00 01 .. 0f. */
static bly_hasher sip_hasher(void)
{
    unsigned char key[BLY_SECRET_BYTES];
    for (int i = 0; i < BLY_SECRET_BYTES; i++)
        key[i] = (unsigned char)i;
    bly_hasher hs = { .id = BLY_HASH_SIPHASH13 };
    bly_secret_words(key, hs.secret);
    return hs;
}

/* --------------------------------------------------------------- SipHash */

static const uint64_t sip24_published[16] = {
    0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a,
    0x85676696d7fb7e2d, 0xcf2794e0277187b7, 0x18765564cd99a68d,
    0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462,
    0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
    0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee,
    0xa129ca6149be45e5, /* the one in the paper's appendix */
};

static const uint64_t sip13_published[16] = {
    0xabac0158050fc4dc, 0xc9f49bf37d57ca93, 0x82cb9b024dc7d44d,
    0x8bf80ab8e7ddf7fb, 0xcf75576088d38328, 0xdef9d52f49533b67,
    0xc50d2b50c59f22a7, 0xd3927d989bb11140, 0x369095118d299a8e,
    0x25a48eb36c063de4, 0x79de85ee92ff097f, 0x70c118c1f94dc352,
    0x78a384b157b4d9a2, 0x306f760c1229ffa7, 0x605aa111c0f95d34,
    0xd320d86d2a519956,
};

static void siphash_as_published(void **state)
{
    (void)state;
    const bly_hasher hs = sip_hasher();
    unsigned char message[16];
    for (int i = 0; i < 16; i++)
        message[i] = (unsigned char)i;
    for (size_t len = 0; len < 16; len++) {
        assert_int_equal(bly_siphash24(hs.secret, message, len),
                         sip24_published[len]);
        assert_int_equal(bly_siphash13(hs.secret, message, len),
                         sip13_published[len]);
        assert_int_equal(bly_hash(&hs, message, len), sip13_published[len]);
    }
}

static uint64_t rotl(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void paper_rounds(uint64_t *v0, uint64_t *v1, uint64_t *v2, uint64_t *v3,
                         int n)
{
    while (n--) {
        *v0 += *v1;
        *v1 = rotl(*v1, 13);
        *v1 ^= *v0;
        *v0 = rotl(*v0, 32);
        *v2 += *v3;
        *v3 = rotl(*v3, 16);
        *v3 ^= *v2;
        *v0 += *v3;
        *v3 = rotl(*v3, 21);
        *v3 ^= *v0;
        *v2 += *v1;
        *v1 = rotl(*v1, 17);
        *v1 ^= *v2;
        *v2 = rotl(*v2, 32);
    }
}

/* SipHash-c-d as section 2 of the paper tells it: a byte at a time into a
 * word, the length in the last byte. */
static uint64_t paper_siphash(int c, int d, const unsigned char *key,
                              const unsigned char *message, size_t len)
{
    uint64_t k0 = 0, k1 = 0;
    for (int i = 7; i >= 0; i--) {
        k0 = k0 << 8 | key[i];
        k1 = k1 << 8 | key[8 + i];
    }
    uint64_t v0 = k0 ^ 0x736f6d6570736575, v1 = k1 ^ 0x646f72616e646f6d;
    uint64_t v2 = k0 ^ 0x6c7967656e657261, v3 = k1 ^ 0x7465646279746573;
    for (size_t word = 0; word <= len / 8; word++) {
        uint64_t m = 0;
        for (size_t i = 0; i < 8; i++) {
            const size_t at = 8 * word + i;
            uint64_t byte = at < len ? message[at] : 0;
            if (word == len / 8 && i == 7)
                byte = len & 255;
            m |= byte << (8 * i);
        }
        v3 ^= m;
        paper_rounds(&v0, &v1, &v2, &v3, c);
        v0 ^= m;
    }
    v2 ^= 0xff;
    paper_rounds(&v0, &v1, &v2, &v3, d);
    return v0 ^ v1 ^ v2 ^ v3;
}

/* Random keys and messages of every length to 600, past the 255 that the last
 * byte can hold. */
static void siphash_as_in_the_paper(void **state)
{
    (void)state;
    uint64_t random = 1;
    unsigned char key[BLY_SECRET_BYTES], message[600];
    for (size_t len = 0; len <= sizeof message; len++) {
        uint64_t words[2];
        for (size_t i = 0; i < sizeof key; i++)
            key[i] = (unsigned char)test_random(&random);
        for (size_t i = 0; i < len; i++)
            message[i] = (unsigned char)test_random(&random);
        bly_secret_words(key, words);
        assert_int_equal(bly_siphash13(words, message, len),
                         paper_siphash(1, 3, key, message, len));
        assert_int_equal(bly_siphash24(words, message, len),
                         paper_siphash(2, 4, key, message, len));
    }
}

/* What a file keeps of a secret: fixed for all time, and not the secret. */
static void secret_check_identifies(void **state)
{
    (void)state;
    static const char text[] = "bloomery secret check";
    unsigned char key[BLY_SECRET_BYTES] = { 0 };
    uint64_t words[2], seen[129];
    size_t n = 0;
    for (int bit = -1; bit < 128; bit++) {
        memset(key, 0, sizeof key);
        if (bit >= 0)
            key[bit / 8] = (unsigned char)(1 << (bit % 8));
        bly_secret_words(key, words);
        const uint64_t check = bly_secret_check(words);
        assert_int_equal(check,
                         paper_siphash(2, 4, key, (const unsigned char *)text,
                                       strlen(text)));
        assert_true(check != 0 && check != words[0] && check != words[1]);
        for (size_t i = 0; i < n; i++)
            assert_true(check != seen[i]);
        seen[n++] = check;
    }
}

/* ------------------------------------------------------------------ XXH3 */

/* The buffer of xxHash's self-check: the top bytes of powers of a prime. */
static void selfcheck_buffer(unsigned char *buf, size_t n)
{
    uint64_t x = 2654435761;
    for (size_t i = 0; i < n; i++) {
        buf[i] = (unsigned char)(x >> 56);
        x *= 11400714785074694797u;
    }
}

static const struct {
    size_t len;
    uint64_t plain, seeded; /* with seed 0 and 0x9e3779b185ebca8d */
} xxh3_published[] = {
    { 0, 0x2d06800538d394c2, 0xa8a6b918b2f0364a },
    { 1, 0xc44bdff4074eecdb, 0x032be332dd766ef8 },
    { 6, 0x27b56a84cd2d7325, 0x84589c116ab59ab9 },
    { 12, 0xa713daf0dfbb77e7, 0xe7303e1b2336de0e },
    { 24, 0xa3fe70bf9d3510eb, 0x850e80fc35bdd690 },
    { 48, 0x397da259ecba1f11, 0xadc2cbaa44acc616 },
    { 80, 0xbcdefbbb2c47c90a, 0xc6dd0cb699532e73 },
    { 195, 0xcd94217ee362ec3a, 0xba68003d370cb3d9 },
    { 403, 0xcdeb804d65c6dea4, 0x6259f6ecfd6443fd },
    { 512, 0x617e49599013cb6b, 0x3ce457de14c27708 },
    { 2048, 0xdd59e2c3a5f038e0, 0x66f81670669ababc },
    { 2240, 0x6e73a90539cf2948, 0x757ba8487d1b5247 },
    { 2367, 0xcb37aeb9e5d361ed, 0xd2db3415b942b42a },
};

static void xxh3_as_published(void **state)
{
    (void)state;
    unsigned char buf[2367];
    selfcheck_buffer(buf, sizeof buf);
    const bly_hasher plain = xxh3_hasher(0);
    const bly_hasher seeded = xxh3_hasher(0x9e3779b185ebca8d);
    for (size_t i = 0; i < COUNT_OF(xxh3_published); i++) {
        const size_t len = xxh3_published[i].len;
        assert_int_equal(bly_hash(&plain, buf, len), xxh3_published[i].plain);
        assert_int_equal(bly_hash(&seeded, buf, len), xxh3_published[i].seeded);
        assert_int_equal(bly_checksum(buf, len), xxh3_published[i].plain);
    }
    assert_int_equal(bly_hash(&plain, "a", 1), 0xe6c632b61e964e1f);
    assert_int_equal(bly_hash(&plain, "abc", 3), 0x78af5f94892f3950);
}

/* Every length across the branches of XXH3 (3, 8, 16, 128, 240, 1024). */
static void xxh3_as_scalar(void **state)
{
    (void)state;
    static unsigned char buf[1300];
    uint64_t random = 2;
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (unsigned char)test_random(&random);
    for (size_t len = 0; len <= sizeof buf; len++) {
        const bly_hasher hs = xxh3_hasher(test_random(&random));
        assert_int_equal(bly_hash(&hs, buf, len),
                         XXH3_64bits_withSeed(buf, len, hs.seed));
        assert_int_equal(bly_checksum(buf, len), XXH3_64bits(buf, len));
    }
}

/* ------------------------------------------------------------ three forms */

/* One key, many keys and integers are one function. */
static void forms_agree(const bly_hasher *hs)
{
    enum { N = 257 };
    static uint64_t ints[N], le[N], by_int[N], by_key[N];
    static bly_bytes keys[N];
    uint64_t random = 3;
    for (size_t i = 0; i < N; i++) {
        ints[i] = i < 3 ? UINT64_C(0) - i : test_random(&random);
        le[i] = bly_le64(ints[i]);
        keys[i] = (bly_bytes){ &le[i], sizeof le[i] };
    }
    bly_hash_ints(hs, ints, N, by_int);
    bly_hash_keys(hs, keys, N, by_key);
    for (size_t i = 0; i < N; i++) {
        const uint64_t x = ints[i];
        /* The 8 little-endian bytes, one by one. */
        const unsigned char bytes[8] = {
            (unsigned char)x,         (unsigned char)(x >> 8),
            (unsigned char)(x >> 16), (unsigned char)(x >> 24),
            (unsigned char)(x >> 32), (unsigned char)(x >> 40),
            (unsigned char)(x >> 48), (unsigned char)(x >> 56),
        };
        const uint64_t one = bly_hash(hs, bytes, sizeof bytes);
        assert_int_equal(by_int[i], one);
        assert_int_equal(by_key[i], one);
    }
    /* None at all: nothing is written. */
    const uint64_t before = by_int[0];
    bly_hash_ints(hs, ints, 0, by_int);
    bly_hash_keys(hs, keys, 0, by_int);
    assert_int_equal(by_int[0], before);
}

static void forms_agree_xxh3(void **state)
{
    (void)state;
    const uint64_t seeds[] = { 0, 1, 0x9e3779b97f4a7c15, UINT64_MAX };
    for (size_t i = 0; i < COUNT_OF(seeds); i++) {
        const bly_hasher hs = xxh3_hasher(seeds[i]);
        forms_agree(&hs);
    }
}

static void forms_agree_siphash(void **state)
{
    (void)state;
    const bly_hasher hs = sip_hasher();
    forms_agree(&hs);
}

/* Keys of 0 to 300 bytes that end where memory ends, hashed as elsewhere. */
static void keys_end_at_a_wall(void **state)
{
    (void)state;
    const bly_hasher hashers[] = { xxh3_hasher(7), sip_hasher() };
    unsigned char copy[300];
    uint64_t random = 4, hash;
    for (size_t i = 0; i < sizeof copy; i++)
        copy[i] = (unsigned char)test_random(&random);
    unsigned char *wall = guarded_new(sizeof copy);
    for (size_t len = 0; len <= sizeof copy; len++) {
        unsigned char *key = wall + sizeof copy - len;
        memcpy(key, copy, len);
        for (size_t i = 0; i < COUNT_OF(hashers); i++) {
            const uint64_t want = bly_hash(&hashers[i], copy, len);
            const bly_bytes one = { key, len };
            assert_int_equal(bly_hash(&hashers[i], key, len), want);
            bly_hash_keys(&hashers[i], &one, 1, &hash);
            assert_int_equal(hash, want);
        }
    }
    guarded_free(wall, sizeof copy);
}

/* A column of keys of every length, empty ones among them, whose last ends
 * where memory does, has the hashes of its keys. */
static void columns_are_keys(void **state)
{
    (void)state;
    enum { N = 260, BYTES = N * (N - 1) / 2 };
    const bly_hasher hashers[] = { xxh3_hasher(7), sip_hasher() };
    unsigned char *const bytes = guarded_new(BYTES);
    uint32_t *const offsets = guarded_new((N + 1) * sizeof *offsets);
    uint64_t *const wide = guarded_new((N + 1) * sizeof *wide);
    uint64_t random = 9, hashes[N];
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)test_random(&random);
    for (size_t i = 0; i <= N; i++)
        wide[i] = offsets[i] = (uint32_t)(i ? i * (i - 1) / 2 : 0);
    for (size_t which = 0; which < 2 * COUNT_OF(hashers); which++) {
        const bly_hasher *const hs = &hashers[which / 2];
        const bly_column narrow = { .bytes = bytes, .offsets = offsets };
        const bly_column column = { .bytes = bytes, .wide_offsets = wide };
        bly_hash_column(hs, which % 2 ? &narrow : &column, N, hashes);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(hashes[i], bly_hash(hs, bytes + wide[i],
                                                 wide[i + 1] - wide[i]));
        bly_hash_column(hs, &narrow, 0, NULL); /* nothing is touched */
    }
    guarded_free(bytes, BYTES);
    guarded_free(offsets, (N + 1) * sizeof *offsets);
    guarded_free(wide, (N + 1) * sizeof *wide);
}

/* Length counts, and so does what stands behind a NUL; emptiness is a key. */
static void every_byte_counts(void **state)
{
    (void)state;
    const bly_hasher hashers[] = { xxh3_hasher(0), sip_hasher() };
    static const unsigned char zeros[64];
    for (size_t i = 0; i < COUNT_OF(hashers); i++) {
        const bly_hasher *hs = &hashers[i];
        uint64_t seen[65];
        for (size_t len = 0; len <= 64; len++) {
            seen[len] = bly_hash(hs, zeros, len);
            for (size_t j = 0; j < len; j++)
                assert_true(seen[len] != seen[j]);
        }
        assert_true(bly_hash(hs, "a\0b", 3) != bly_hash(hs, "a\0c", 3));
        assert_int_equal(bly_hash(hs, NULL, 0), bly_hash(hs, "", 0));
        const bly_bytes none = { NULL, 0 };
        uint64_t hash;
        bly_hash_keys(hs, &none, 1, &hash);
        assert_int_equal(hash, bly_hash(hs, "", 0));
    }
}

/* Another seed, or one bit of another secret, is another function. */
static void seeds_and_secrets_matter(void **state)
{
    (void)state;
    const bly_hasher zero = xxh3_hasher(0), one = xxh3_hasher(1);
    assert_true(bly_hash(&zero, "key", 3) != bly_hash(&one, "key", 3));
    const bly_hasher sip = sip_hasher();
    for (int bit = 0; bit < 128; bit++) {
        bly_hasher other = sip;
        other.secret[bit / 64] ^= UINT64_C(1) << (bit % 64);
        assert_true(bly_hash(&sip, "key", 3) != bly_hash(&other, "key", 3));
    }
}

/* The hash of filters of integers, with values that docs/format.md states:
 * files rely on them. Only keys of eight bytes are integers. */
static void folded_as_in_the_format(void **state)
{
    (void)state;
    static const struct {
        uint64_t key, seed, hash;
    } known[] = {
        { UINT64_C(0x0), UINT64_C(0x0), UINT64_C(0x678a4a22b673cd48) },
        { UINT64_C(0x1), UINT64_C(0x0), UINT64_C(0x69e4230a4ddbc71c) },
        { UINT64_C(0x7), UINT64_C(0x0), UINT64_C(0xfdf6054d48adcaf2) },
        { UINT64_C(0xffffffffffffffff), UINT64_C(0x0),
          UINT64_C(0x5afa9fdd2d6d03d3) },
        { UINT64_C(0x8000000000000000), UINT64_C(0x0),
          UINT64_C(0x2ed1065ce1d14051) },
        { UINT64_C(0x123456789abcdef0), UINT64_C(0x0),
          UINT64_C(0x3acfa03ca44f9f13) },
        { UINT64_C(0x0), UINT64_C(0x1), UINT64_C(0x01a28be0c9cca9f7) },
        { UINT64_C(0x7), UINT64_C(0x9e3779b97f4a7c15),
          UINT64_C(0x51c52b93bf965d4b) },
        { UINT64_C(0x7), UINT64_C(0xffffffffffffffff),
          UINT64_C(0xe867e5e88182d100) },
    };
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const bly_hasher hs = { .id = BLY_HASH_FOLDED, .seed = known[i].seed };
        unsigned char bytes[8];
        uint64_t hash;
        bly_store64(bytes, known[i].key);
        bly_hash_ints(&hs, &known[i].key, 1, &hash);
        assert_int_equal(hash, known[i].hash);
        assert_int_equal(bly_hash(&hs, bytes, 8), known[i].hash);
        const bly_bytes key = { bytes, 8 };
        bly_hash_keys(&hs, &key, 1, &hash);
        assert_int_equal(hash, known[i].hash);
        assert_int_equal(
            bly_int_hash_of(known[i].key, bly_hash_turned(&hs), true),
            known[i].hash);
        const bly_hasher text = xxh3_hasher(known[i].seed);
        for (size_t n = 0; n < 8; n++)
            assert_int_equal(bly_hash(&hs, bytes, n),
                             bly_hash(&text, bytes, n));
        assert_int_equal(bly_hash(&hs, "nine bytes", 9),
                         bly_hash(&text, "nine bytes", 9));
    }
}

/* Every row that this processor runs, for every number of integers around a
 * vector, in place too, and nothing behind the last. */
static void integers_by_every_row(void **state)
{
    (void)state;
    enum { MOST = 70 };
    EACH_ROW(ints, row)
    {
        for (size_t n = 0; n <= MOST; n++) {
            const uint64_t flip =
                bly_int_flip(n * UINT64_C(0x9e3779b97f4a7c15));
            uint64_t ints[MOST + 1], hashes[MOST + 1];
            for (size_t i = 0; i <= MOST; i++)
                ints[i] = hashes[i] = bly_mix64(i);
            row->hash(ints, n, flip, hashes);
            for (size_t i = 0; i <= MOST; i++)
                assert_int_equal(hashes[i],
                                 i < n ? bly_int_hash(ints[i], flip) : ints[i]);
            row->fold(ints, n, flip, hashes);
            for (size_t i = 0; i <= MOST; i++)
                assert_int_equal(
                    hashes[i], i < n ? bly_int_folded(ints[i], flip) : ints[i]);
            row->hash(ints, n, flip, hashes);
            row->hash(ints, n, flip, ints);
            assert_memory_equal(ints, hashes, sizeof ints);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_as_published),
        cmocka_unit_test(siphash_as_in_the_paper),
        cmocka_unit_test(secret_check_identifies),
        cmocka_unit_test(xxh3_as_published),
        cmocka_unit_test(xxh3_as_scalar),
        cmocka_unit_test(folded_as_in_the_format),
        cmocka_unit_test(integers_by_every_row),
        cmocka_unit_test(forms_agree_xxh3),
        cmocka_unit_test(forms_agree_siphash),
        cmocka_unit_test(keys_end_at_a_wall),
        cmocka_unit_test(columns_are_keys),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(seeds_and_secrets_matter),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}

/*
 * leveldb_alone.c - the policy for LevelDB without LevelDB, for test_leveldb.py
 *
 * What bly_leveldb_policy() hands to LevelDB is called here as LevelDB would,
 * with every allocation failing in turn, and with bytes that are not a filter.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery_leveldb.h>

#define NKEYS 40

struct leveldb_filterpolicy_t {
    void *state;
    void (*destroy)(void *);
    char *(*build)(void *, const char *const *, const size_t *, int, size_t *);
    uint8_t (*asked)(void *, const char *, size_t, const char *, size_t);
    const char *(*name)(void *);
};

/* In the place of LevelDB's. */
static leveldb_filterpolicy_t policy;
leveldb_filterpolicy_t *leveldb_filterpolicy_create(
    void *state, void (*destroy)(void *),
    char *(*build)(void *, const char *const *, const size_t *, int, size_t *),
    uint8_t (*asked)(void *, const char *, size_t, const char *, size_t),
    const char *(*name)(void *))
{
    policy = (leveldb_filterpolicy_t){ state, destroy, build, asked, name };
    return &policy;
}

/* ----------------------------------------------------------------- memory */

static long until_failure = -1, nfailures, most_failures;

static int fails(void)
{
    if (until_failure > 0) {
        until_failure--;
        return 0;
    }
    if (until_failure < 0 || nfailures == most_failures)
        return 0;
    nfailures++;
    return 1;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

/* ------------------------------------------------------------------ tests */

static char texts[NKEYS][16];
static const char *keys[NKEYS];
static size_t lens[NKEYS];

static void all_found(const char *filter, size_t n)
{
    assert(filter && n > 0);
    for (int i = 0; i < NKEYS; i++)
        assert(policy.asked(policy.state, keys[i], lens[i], filter, n));
}

/* Allocation number `nth` fails, and `more` behind it. A policy is made or
 * refused; its filter has all keys. Returns how many failed. */
static long without_memory(const char *kind, long nth, long more)
{
    const bly_leveldb_spec spec = { .kind = kind };
    const char *error;
    until_failure = nth;
    nfailures = 0;
    most_failures = more;
    if (!bly_leveldb_policy(&spec, &error)) {
        assert(nfailures && error && error[0]);
        return nfailures;
    }
    size_t n;
    char *const filter = policy.build(policy.state, keys, lens, NKEYS, &n);
    until_failure = -1;
    all_found(filter, n);
    free(filter);
    policy.destroy(policy.state);
    return nfailures;
}

static void any_bytes(void)
{
    unsigned long x = 1;
    const char *error;
    assert(bly_leveldb_policy(NULL, &error) && !error);
    assert(strcmp(policy.name(policy.state), BLY_LEVELDB_NAME) == 0);
    for (int round = 0; round < 200000; round++) {
        char *const bytes = malloc((size_t)(round % 50 + 1));
        const size_t n = (size_t)(round % 50);
        for (size_t i = 0; i < n; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (char)(x >> 56);
        }
        if (n && round % 3 == 0)
            bytes[n - 1] = round % 2; /* a file, or nothing */
        const uint8_t maybe = policy.asked(policy.state, "key", 3, bytes, n);
        assert(maybe || (n > 1 && (bytes[n - 1] & 0xf0)));
        free(bytes);
    }
    policy.destroy(policy.state);
}

/* A filter of one kind is asked by a policy of another, cut and changed. */
static void cut_files(void)
{
    const bly_leveldb_spec spec = { .kind = "blocked" };
    const char *error;
    size_t n;
    assert(bly_leveldb_policy(&spec, &error));
    char *const filter = policy.build(policy.state, keys, lens, NKEYS, &n);
    policy.destroy(policy.state);
    assert(bly_leveldb_policy(NULL, &error));
    all_found(filter, n);
    for (size_t cut = 0; cut + 1 < n; cut += cut / 7 + 1) {
        char *const less = malloc(cut + 1);
        memcpy(less, filter, cut);
        less[cut] = filter[n - 1];
        all_found(less, cut + 1);
        free(less);
    }
    free(filter);
    policy.destroy(policy.state);
}

int main(void)
{
    for (int i = 0; i < NKEYS; i++) {
        lens[i] = (size_t)snprintf(texts[i], sizeof texts[i], "key%d", i);
        keys[i] = texts[i];
    }
    const char *const kinds[] = { "ribbon", "blocked", "fuse" };
    for (int kind = 0; kind < 3; kind++)
        for (long more = 1; more <= 2; more++)
            for (long nth = 0; without_memory(kinds[kind], nth, more); nth++)
                ;
    until_failure = -1;
    any_bytes();
    cut_files();
    puts("all right");
    return 0;
}

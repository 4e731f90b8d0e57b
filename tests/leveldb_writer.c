/*
 * leveldb_writer.c - a program that uses LevelDB with our policy, for
 * test_leveldb.py
 *
 *     leveldb_writer write FOLDER KIND FPR BITS KEYS   keys 0, 2, 4, ...
 *     leveldb_writer ask FOLDER KIND FPR BITS KEYS     how many of those, and
 *                                                      of the odd ones, are
 * there leveldb_writer policy KIND FPR BITS              can it be made?
 *
 * KIND may be "builtin" or "none".
 */
#include <bloomery_leveldb.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static leveldb_filterpolicy_t *policy_of(char **words)
{
    const char *error;
    const bly_leveldb_spec spec = { .kind = words[0],
                                    .fpr = atof(words[1]),
                                    .bits_per_key = atof(words[2]) };
    if (strcmp(words[0], "none") == 0)
        return NULL;
    if (strcmp(words[0], "builtin") == 0)
        return leveldb_filterpolicy_create_bloom(10);
    leveldb_filterpolicy_t *const p = bly_leveldb_policy(&spec, &error);
    if (!p)
        errx(2, "%s", error);
    return p;
}

static int key_of(long i, char key[32])
{
    return snprintf(key, 32, "key%010ld", i);
}

static void write_all(leveldb_t *db, long n)
{
    char *error = NULL, key[32], value[200];
    leveldb_writeoptions_t *const w = leveldb_writeoptions_create();
    memset(value, 'v', sizeof value);
    for (long i = 0; i < n && !error; i++) {
        const int len = key_of(2 * i, key);
        /* Some come twice, and a few have large values. */
        for (int again = 0; again <= (i % 10 == 0) && !error; again++)
            leveldb_put(db, w, key, (size_t)len, value,
                        i % 97 ? 80 : sizeof value, &error);
    }
    if (error)
        errx(2, "%s", error);
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    leveldb_writeoptions_destroy(w);
}

static void ask_all(leveldb_t *db, long n)
{
    long found[2] = { 0, 0 };
    char *error = NULL, key[32];
    leveldb_readoptions_t *const r = leveldb_readoptions_create();
    for (long i = 0; i < 2 * n && !error; i++) {
        size_t len;
        char *const value =
            leveldb_get(db, r, key, (size_t)key_of(i, key), &len, &error);
        found[i % 2] += value != NULL;
        leveldb_free(value);
    }
    if (error)
        errx(2, "%s", error);
    printf("%ld %ld\n", found[0], found[1]);
    leveldb_readoptions_destroy(r);
}

int main(int argc, char **argv)
{
    char *error = NULL;
    if (argc == 5 && strcmp(argv[1], "policy") == 0) {
        leveldb_filterpolicy_destroy(policy_of(argv + 2));
        return 0;
    }
    if (argc != 7)
        errx(2, "see the top of leveldb_writer.c");
    leveldb_filterpolicy_t *const policy = policy_of(argv + 3);
    leveldb_options_t *const o = leveldb_options_create();
    leveldb_options_set_create_if_missing(o, 1);
    leveldb_options_set_filter_policy(o, policy);
    leveldb_t *const db = leveldb_open(o, argv[2], &error);
    if (error)
        errx(2, "%s", error);
    (strcmp(argv[1], "write") == 0 ? write_all : ask_all)(db, atol(argv[6]));
    leveldb_close(db);
    leveldb_options_destroy(o);
    if (policy)
        leveldb_filterpolicy_destroy(policy);
    return 0;
}

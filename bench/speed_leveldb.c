/*
 * speed_leveldb.c - LevelDB with its own filters and with ours, in one run
 *
 *     build/bench/speed_leveldb [KEYS] [FOLDER]     1000000 keys, in /tmp
 *
 * Databases of the same keys (16 bytes, values of 100 that Snappy halves):
 * with the built-in filter of 10 bits per key; with ours at the rate that it
 * was measured to have; with ours of 10 bits. Each is asked for keys that are
 * not there but lie among those that are: cold, with tables that are not in
 * memory, and warm. False reads are the blocks that absent keys brought into
 * the cache; times are processor time, the least of several rounds that take
 * turns.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bloomery/foreign.h>
#include <bloomery_leveldb.h>

#include "base/random.h"

#define VALUE 100
#define COLD_ROUNDS 5
#define COLD_ASKED 20000
#define WARM_ROUNDS 60
#define WARM_ASKED 20000

struct store {
    const char *name;
    char folder[300];
    leveldb_filterpolicy_t *policy;
    leveldb_cache_t *cache;
    leveldb_options_t *options;
    leveldb_t *db;
    double filter_bytes, nfilters, rate, cold, warm;
};

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t next(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    return *x ^= *x << 17;
}

/* Key i of n: random, and in order. Those with another salt lie among them.
 * With numbers that count up, LevelDB's own hash would be at fault: its filter
 * says maybe to 10 % of the numbers between them. */
static void key_of(uint64_t i, uint64_t n, uint64_t salt, char key[24])
{
    const uint64_t gap = UINT64_MAX / n;
    snprintf(key, 24, "%016llx",
             (unsigned long long)(i * gap + bly_mix64(i ^ salt) % gap));
}

static void check(char *error)
{
    if (error)
        errx(2, "%s", error);
}

static void store_open(struct store *s)
{
    char *error = NULL;
    s->cache = leveldb_cache_create_lru((size_t)1 << 33);
    s->options = leveldb_options_create();
    leveldb_options_set_create_if_missing(s->options, 1);
    leveldb_options_set_write_buffer_size(s->options, 32 << 20);
    leveldb_options_set_filter_policy(s->options, s->policy);
    leveldb_options_set_cache(s->options, s->cache);
    s->db = leveldb_open(s->options, s->folder, &error);
    check(error);
}

static void store_close(struct store *s)
{
    leveldb_close(s->db);
    leveldb_options_destroy(s->options);
    leveldb_cache_destroy(s->cache);
}

/* What is done with each table of a closed store. */
static void each_table(struct store *s, void (*act)(struct store *, int fd))
{
    DIR *const d = opendir(s->folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", s->folder, e->d_name);
        const int fd = strstr(e->d_name, ".ldb") ? open(path, O_RDONLY) : -1;
        if (fd >= 0) {
            act(s, fd);
            close(fd);
        }
    }
    closedir(d);
}

static void count_filters(struct store *s, int fd)
{
    struct stat st;
    bly_foreign *f;
    bly_foreign_stats stats;
    fstat(fd, &st);
    void *const at =
        mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED ||
        bly_foreign_open(&(bly_foreign_spec){ .format = "leveldb" }, at,
                         (size_t)st.st_size, &f))
        errx(2, "a table that cannot be read: %s", bly_error());
    bly_foreign_stat(f, BLY_WHOLE, &stats);
    for (size_t i = 0; i < stats.nfacts; i++)
        if (strcmp(stats.facts[i].name, "filter_bytes") == 0)
            s->filter_bytes += (double)stats.facts[i].uint;
    s->nfilters += (double)bly_foreign_nparts(f);
    bly_foreign_free(f);
    munmap(at, (size_t)st.st_size);
}

static void forget(struct store *s, int fd)
{
    (void)s;
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static double write_keys(struct store *s, uint64_t nkeys)
{
    char *error = NULL, key[24];
    char value[VALUE];
    uint64_t x = 88172645463325252u;
    leveldb_writeoptions_t *const w = leveldb_writeoptions_create();
    leveldb_writebatch_t *const batch = leveldb_writebatch_create();
    const double begin = now(CLOCK_MONOTONIC);
    store_open(s);
    for (uint64_t i = 0; i < nkeys; i++) {
        for (size_t j = 0; j < VALUE / 2; j += 2) {
            const uint16_t bits = (uint16_t)next(&x);
            memcpy(value + j, &bits, 2);
            memcpy(value + VALUE / 2 + j, &bits, 2);
        }
        key_of(i, nkeys, 0, key);
        leveldb_writebatch_put(batch, key, 16, value, VALUE);
        if (i % 1000 == 999 || i + 1 == nkeys) {
            leveldb_write(s->db, w, batch, &error);
            check(error);
            leveldb_writebatch_clear(batch);
        }
    }
    leveldb_compact_range(s->db, NULL, 0, NULL, 0);
    store_close(s);
    leveldb_writebatch_destroy(batch);
    leveldb_writeoptions_destroy(w);
    each_table(s, count_filters);
    return now(CLOCK_MONOTONIC) - begin;
}

/* Seconds per absent key, of processor time: what else runs on the machine, or
 * how fast its disk is, is not LevelDB's. */
static double ask(struct store *s, uint64_t nkeys, size_t n, uint64_t seed)
{
    char *error = NULL, key[24];
    uint64_t x = seed;
    leveldb_readoptions_t *const r = leveldb_readoptions_create();
    const double begin = now(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        key_of(next(&x) % nkeys, nkeys, UINT64_MAX, key);
        free(leveldb_get(s->db, r, key, 16, &len, &error));
        check(error);
    }
    const double took = now(CLOCK_THREAD_CPUTIME_ID) - begin;
    leveldb_readoptions_destroy(r);
    return took / (double)n;
}

static double cached(const struct store *s)
{
    char *const text =
        leveldb_property_value(s->db, "leveldb.approximate-memory-usage");
    const double n = text ? atof(text) : 0;
    leveldb_free(text);
    return n;
}

/* The share of absent keys that had a block read, as long as these are few:
 * a block is read once. */
static void measure_rate(struct store *s, uint64_t nkeys)
{
    const size_t n = (size_t)(nkeys / 20);
    store_open(s);
    ask(s, nkeys, 1000, 7); /* tables are open */
    const double begin = cached(s), block = 4096;
    ask(s, nkeys, n, 4711);
    s->rate = (cached(s) - begin) / block / (double)n;
    if (!(s->rate > 0))
        errx(2, "no block was read; is LevelDB without Snappy?");
    store_close(s);
}

static void measure_times(struct store *all, size_t n, uint64_t nkeys)
{
    for (size_t i = 0; i < n; i++)
        all[i].cold = all[i].warm = INFINITY;
    for (unsigned round = 0; round < COLD_ROUNDS; round++)
        for (size_t i = 0; i < n; i++) {
            struct store *const s = &all[i];
            each_table(s, forget);
            store_open(s);
            s->cold = fmin(s->cold, ask(s, nkeys, COLD_ASKED, 1000 + round));
            store_close(s);
        }
    for (size_t i = 0; i < n; i++) {
        store_open(&all[i]);
        ask(&all[i], nkeys, WARM_ASKED, 4711);
    }
    for (unsigned round = 0; round < WARM_ROUNDS; round++)
        for (size_t i = 0; i < n; i++)
            all[i].warm =
                fmin(all[i].warm, ask(&all[i], nkeys, WARM_ASKED, 4711));
    for (size_t i = 0; i < n; i++)
        store_close(&all[i]);
}

static void make(struct store *s, const char *name, const char *folder,
                 leveldb_filterpolicy_t *policy, uint64_t nkeys)
{
    *s = (struct store){ .name = name, .policy = policy };
    snprintf(s->folder, sizeof s->folder, "%s/bloomery-bench-%d-%s", folder,
             (int)getpid(), name);
    const double took = write_keys(s, nkeys);
    measure_rate(s, nkeys);
    fprintf(stderr, "%s: written in %.0f s\n", name, took);
}

int main(int argc, char **argv)
{
    const char *error, *const folder = argc > 2 ? argv[2] : "/tmp";
    const uint64_t nkeys = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    struct store s[3];
    if (nkeys < 100000)
        errx(2, "fewer than 100000 keys would fit into one table");
    make(&s[0], "builtin", folder, leveldb_filterpolicy_create_bloom(10),
         nkeys);
    make(&s[1], "same-rate", folder,
         bly_leveldb_policy(&(bly_leveldb_spec){ .fpr = s[0].rate }, &error),
         nkeys);
    make(&s[2], "same-bytes", folder,
         bly_leveldb_policy(&(bly_leveldb_spec){ .bits_per_key = 10 }, &error),
         nkeys);
    measure_times(s, 3, nkeys);
    printf("%llu keys, %.1f per filter\n", (unsigned long long)nkeys,
           (double)nkeys / s[0].nfilters);
    printf("filter      bits/key  bytes ratio  false reads  ratio  cold us  "
           "ratio  warm us  ratio\n");
    for (size_t i = 0; i < 3; i++) {
        printf("%-10s  %8.2f  %11.3f  %9.3f %%  %5.2f  %7.2f  %5.2f  %7.3f  "
               "%5.2f\n",
               s[i].name, 8 * s[i].filter_bytes / (double)nkeys,
               s[i].filter_bytes / s[0].filter_bytes, 100 * s[i].rate,
               s[i].rate / s[0].rate, 1e6 * s[i].cold, s[i].cold / s[0].cold,
               1e6 * s[i].warm, s[i].warm / s[0].warm);
        leveldb_options_t *const o = leveldb_options_create();
        char *failed = NULL;
        leveldb_destroy_db(o, s[i].folder, &failed);
        leveldb_options_destroy(o);
        leveldb_filterpolicy_destroy(s[i].policy);
    }
    return 0;
}

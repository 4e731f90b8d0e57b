/*
 * bench_peers.c - contenders of the bench that are not ours
 *
 * libbloom, which Debian packages (libbloom1), is loaded where it is there: a
 * Bloom filter with MurmurHash2, asked key by key. The hash set is the exact
 * alternative: open addressing with linear probing, at most half full, 16 to 32
 * bytes per key, no false positives. Neither has calls with many keys, so they
 * stand in the columns of one by one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "workbench/bench.h"

/* ---------------------------------------------------------------- libbloom */

/* What its header declares, version 1; the fields behind are its own, and the
 * room is more than they take. */
struct libbloom {
    int entries;
    double error;
    int bits, bytes, hashes;
    unsigned char rest[256];
};

static struct {
    int (*init)(struct libbloom *b, int entries, double error);
    int (*check)(struct libbloom *b, const void *key, int len);
    int (*add)(struct libbloom *b, const void *key, int len);
    void (*free)(struct libbloom *b);
} libbloom;

/* A function of a library, into a variable for it. */
static bool library_symbol(void *library, const char *name, void *to)
{
    void *const at = dlsym(library, name);
    *(void **)to = at;
    return at != NULL;
}

static bool libbloom_load(void)
{
    void *const library = dlopen("libbloom.so.1", RTLD_NOW | RTLD_LOCAL);
    return library && library_symbol(library, "bloom_init", &libbloom.init) &&
           library_symbol(library, "bloom_check", &libbloom.check) &&
           library_symbol(library, "bloom_add", &libbloom.add) &&
           library_symbol(library, "bloom_free", &libbloom.free);
}

static const char *libbloom_plan(const struct bench_contender *c, double fpr,
                                 struct bench_cell *cell)
{
    (void)c;
    const double bits = -log(fpr) / 0.480453013918201; /* ln(2) squared */
    cell->planned = fpr;
    cell->bits_per_key = bits;
    if (bits * (double)cell->items > INT_MAX)
        return "libbloom counts bits in an int: too many keys";
    cell->bytes = (uint64_t)(bits * (double)cell->items / 8) + 1;
    cell->needs = 2 * cell->bytes;
    return NULL;
}

static const char *libbloom_make(const struct bench_contender *c,
                                 uint64_t items, double fpr, void **filter)
{
    (void)c;
    struct libbloom *const b = calloc(1, sizeof *b);
    *filter = b;
    /* It takes no fewer than a thousand. */
    const int entries = items < 1000 ? 1000 : (int)items;
    if (b && libbloom.init(b, entries, fpr) == 0)
        return NULL;
    free(b);
    *filter = NULL;
    return "libbloom made no filter";
}

static void libbloom_release(void *filter)
{
    libbloom.free(filter);
    free(filter);
}

static const char *libbloom_step_add(void *f, const uint64_t *keys, size_t n,
                                     struct bench_scratch *s)
{
    for (size_t i = 0; i < n; i++)
        s->sum += (uint64_t)libbloom.add(f, &keys[i], sizeof keys[i]);
    return NULL;
}

static const char *libbloom_step_ask(void *f, const uint64_t *keys, size_t n,
                                     struct bench_scratch *s)
{
    for (size_t at = 0; at < n; at += 64) {
        uint64_t bits = 0;
        for (size_t i = at; i < n && i < at + 64; i++)
            bits |= (uint64_t)(libbloom.check(f, &keys[i], 8) == 1) << (i - at);
        s->maybe[at / 64] = bits;
    }
    return NULL;
}

static void libbloom_size(const void *filter, struct bench_cell *cell)
{
    const struct libbloom *const b = filter;
    cell->bytes = (uint64_t)b->bytes;
    cell->bits_per_key = (double)b->bits / (double)cell->items;
}

/* --------------------------------------------------------------- hash set */

struct hash_set {
    uint64_t mask;
    bool has_zero; /* the key that stands for an empty slot */
    uint64_t *slots;
};

static uint64_t set_slots(uint64_t items)
{
    uint64_t n = 16;
    while (n < 2 * items)
        n *= 2;
    return n;
}

static const char *set_plan(const struct bench_contender *c, double fpr,
                            struct bench_cell *cell)
{
    (void)c;
    (void)fpr;
    cell->planned = 0;
    if (cell->items >> 50)
        return "more slots than this machine can address";
    cell->bytes = 8 * set_slots(cell->items);
    cell->bits_per_key = 8 * (double)cell->bytes / (double)cell->items;
    cell->needs = 2 * cell->bytes;
    return NULL;
}

static void set_release(void *filter)
{
    struct hash_set *const set = filter;
    free(set->slots);
    free(set);
}

static const char *set_make(const struct bench_contender *c, uint64_t items,
                            double fpr, void **filter)
{
    (void)c;
    (void)fpr;
    struct hash_set *const set = calloc(1, sizeof *set);
    *filter = set;
    if (!set)
        return "out of memory";
    set->mask = set_slots(items) - 1;
    set->slots = calloc((size_t)set->mask + 1, sizeof *set->slots);
    return set->slots ? NULL : "out of memory";
}

static const char *set_step_add(void *f, const uint64_t *keys, size_t n,
                                struct bench_scratch *s)
{
    struct hash_set *const set = f;
    (void)s;
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = keys[i];
        uint64_t at = bly_mix64(key) & set->mask;
        set->has_zero |= !key;
        while (set->slots[at] && set->slots[at] != key)
            at = (at + 1) & set->mask;
        set->slots[at] = key;
    }
    return NULL;
}

static const char *set_step_ask(void *f, const uint64_t *keys, size_t n,
                                struct bench_scratch *s)
{
    const struct hash_set *const set = f;
    for (size_t base = 0; base < n; base += 64) {
        uint64_t bits = 0;
        for (size_t i = base; i < n && i < base + 64; i++) {
            const uint64_t key = keys[i];
            uint64_t at = bly_mix64(key) & set->mask;
            while (set->slots[at] && set->slots[at] != key)
                at = (at + 1) & set->mask;
            bits |= (uint64_t)(key ? set->slots[at] == key : set->has_zero)
                    << (i - base);
        }
        s->maybe[base / 64] = bits;
    }
    return NULL;
}

/* ------------------------------------------------------------------- both */

static bench_step *peer_step(const struct bench_contender *c, int op)
{
    const bool is_set = c->plan == set_plan;
    switch (op) {
    case OP_ONE_ADD:
        return is_set ? set_step_add : libbloom_step_add;
    case OP_ONE_ABSENT:
    case OP_ONE_HALF:
    case OP_ONE_PRESENT:
        return is_set ? set_step_ask : libbloom_step_ask;
    default:
        return NULL;
    }
}

size_t bench_peers(struct bench_contender *out, size_t n, char *missing,
                   size_t nbytes)
{
    const bool loaded = libbloom_load();
    size_t made = 0;
    snprintf(missing, nbytes, "%s",
             loaded ? "" : "libbloom.so.1 is not there (package libbloom1)");
    if (loaded && made < n)
        out[made++] = (struct bench_contender){
            .name = "libbloom",
            .plan = libbloom_plan,
            .make = libbloom_make,
            .release = libbloom_release,
            .step = peer_step,
            .size = libbloom_size,
        };
    if (made < n)
        out[made++] = (struct bench_contender){
            .name = "hash set",
            .plan = set_plan,
            .make = set_make,
            .release = set_release,
            .step = peer_step,
        };
    return made;
}

/*
 * speed_one.c - keys that come one by one, kind by kind
 *
 *     build/bench/speed_one [ITEMS [ROUNDS [KIND]]]      default: 1M, then 10M;
 * 3 build/bench/speed_one long                         and 100M
 *
 * Nanoseconds per key in filters of 1 %, and in brackets as multiples of a
 * random read of the same memory that waits for no other: less than that no
 * call can take. Integers, their hashing included, by bly_add() and bly_has(),
 * which take them from memory, and by bly_add_int() and bly_has_int(); then
 * ready hashes, by bly_add_hash() and bly_has_hash(); the same without a call,
 * by bloomery/inline.h and views.h, for kinds that have them. Beside them
 * libbloom, where it is installed (Debian: libbloom1). Multiples that have a
 * target meet it (+) or not (-).
 *
 * Keys are asked in pieces, and of each piece the shortest time of all rounds
 * counts, so that a busy machine shows as little as possible. Each is added
 * once; the faster half of the pieces counts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

#include <bloomery/views.h>

#include "bench/measure.h"

#define PIECE ((size_t)10000)
#define MAX_ASKED ((size_t)1000000)
/* Larger filters are measured for kinds that take fewer bits per key. */
#define MANY_KEYS ((size_t)10000000)
#define MANY_BITS 64

static struct {
    size_t n, nasked;
    int rounds;
    uint64_t *present, *absent; /* keys, or hashes as random as any */
    unsigned char *memory;      /* as much as the largest filter */
    size_t nbytes;              /* as much as this one */
    bly_filter *f;
    bly_blocked view;
    bly_blocked_adder adder;
    uint64_t sink;
} w;

/* Targets at a million keys, as multiples of a read: 0.8 of the speed of the
 * fastest public library, which is compiled into its caller, for calls and for
 * inline functions that hash; its whole speed for ready hashes inline. 0: none.
 */
#define TARGET_KEYS ((size_t)1000000)
static const struct {
    const char *kind;
    double absent, present, add, ready_inline;
} targets[] = {
    { "blocked", 2.4, 2.4, 2.3, 1.9 }, { "classic", 17.5, 8.6, 8.6, 0 },
    { "cuckoo", 6.9, 6.9, 13.4, 0 },   { "fuse", 3.9, 3.9, 0, 0 },
    { "xor", 4.6, 4.6, 0, 0 },
};

/* --------------------------------------------------------- ways to one key */

typedef struct way {
    const char *name;
    bool hashed;
    void (*absent)(size_t from), (*present)(size_t from), (*add)(size_t from);
} way;

/* `ask` and `put` are what is done with a key; put is true where it failed. */
#define WAY(name, hashed, shown, ask, put)                                  \
    static void name##_ask(const uint64_t *keys)                            \
    {                                                                       \
        uint64_t sum = 0;                                                   \
        for (size_t i = 0; i < PIECE; i++) {                                \
            const uint64_t key = keys[i];                                   \
            sum += (uint64_t)(ask);                                         \
        }                                                                   \
        w.sink += sum;                                                      \
    }                                                                       \
    static void name##_absent(size_t from)                                  \
    {                                                                       \
        name##_ask(w.absent + from);                                        \
    }                                                                       \
    static void name##_present(size_t from)                                 \
    {                                                                       \
        name##_ask(w.present + from);                                       \
    }                                                                       \
    static void name##_add(size_t from)                                     \
    {                                                                       \
        bool failed = false;                                                \
        for (size_t i = from; i < from + PIECE; i++) {                      \
            const uint64_t key = w.present[i];                              \
            failed |= (put);                                                \
        }                                                                   \
        if (failed)                                                         \
            exit(2);                                                        \
    }                                                                       \
    static const way name = { shown, hashed, name##_absent, name##_present, \
                              name##_add };

WAY(by_key, false, "", bly_has(w.f, &key, 8), bly_add(w.f, &key, 8) != BLY_OK)
WAY(by_int, false, "  integer", bly_has_int(w.f, key),
    bly_add_int(w.f, key) != BLY_OK)
WAY(by_hash, true, "  ready hash", bly_has_hash(w.f, key),
    bly_add_hash(w.f, key) != BLY_OK)
WAY(in_line, false, "  inline", bly_blocked_has_int(&w.view, key),
    ((void)bly_blocked_add_int(&w.adder, key), false))
WAY(in_line_hash, true, "  inline, hash", bly_blocked_has(&w.view, key),
    ((void)bly_blocked_add(&w.adder, key), false))

/* Kinds of views.h, which are asked and not added to. */
#define VIEWS(X) X(classic) X(cuckoo) X(fuse) X(xor)
#define VIEW(kind)                                                       \
    static bly_view_##kind kind##_view;                                  \
    static bool kind##_viewed(void)                                      \
    {                                                                    \
        return bly_view_of_##kind(w.f, &kind##_view);                    \
    }                                                                    \
    WAY(kind##_in_line, false, "  inline",                               \
        bly_view_##kind##_has_int(&kind##_view, key), ((void)key, true)) \
    WAY(kind##_in_line_hash, true, "  inline, hash",                     \
        bly_view_##kind##_has(&kind##_view, key), ((void)key, true))
VIEWS(VIEW)
#undef VIEW

static const struct {
    const char *kind;
    const way *key, *hash;
    bool (*viewed)(void);
} views[] = {
#define ROW(kind) \
    { #kind, &kind##_in_line, &kind##_in_line_hash, kind##_viewed },
    VIEWS(ROW)
#undef ROW
};

/* Its header's version 1; the fields behind are its own. */
static struct {
    _Alignas(16) unsigned char it[512];
    int (*init)(void *b, int entries, double error);
    int (*check)(void *b, const void *key, int len);
    int (*add)(void *b, const void *key, int len);
    void (*free)(void *b);
} libbloom;

WAY(by_libbloom, false, "libbloom", libbloom.check(libbloom.it, &key, 8),
    libbloom.add(libbloom.it, &key, 8) < 0)

static bool libbloom_load(void)
{
    void *const library = dlopen("libbloom.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&libbloom.init = dlsym(library, "bloom_init");
    *(void **)&libbloom.check = dlsym(library, "bloom_check");
    *(void **)&libbloom.add = dlsym(library, "bloom_add");
    *(void **)&libbloom.free = dlsym(library, "bloom_free");
    return libbloom.init && libbloom.check && libbloom.add && libbloom.free;
}

/* ------------------------------------------------------------------- clock */

static void read_piece(size_t from)
{
    uint64_t sum = 0;
    for (size_t i = from; i < from + PIECE; i++)
        sum += w.memory[bly_mulhi(w.absent[i], w.nbytes)];
    w.sink += sum;
}

/* Nanoseconds per key. A round goes through all pieces: twice in a row, a piece
 * would be in the caches. */
static double timed(void (*run)(size_t from))
{
    const size_t npieces = w.nasked / PIECE;
    double *const best = malloc(npieces * sizeof *best), sum = 0;
    for (int round = 0; round < w.rounds; round++)
        for (size_t i = 0; i < npieces; i++) {
            const double start = now_ns();
            run(i * PIECE);
            const double took = now_ns() - start;
            best[i] = round && best[i] < took ? best[i] : took;
        }
    for (size_t i = 0; i < npieces; i++)
        sum += best[i];
    free(best);
    return sum / (double)(npieces * PIECE);
}

static double timed_once(void (*run)(size_t from))
{
    const size_t npieces = w.n / PIECE, half = npieces / 2 + 1;
    double *const each = malloc(npieces * sizeof *each), sum = 0;
    for (size_t i = 0; i < npieces; i++) {
        const double start = now_ns();
        run(i * PIECE);
        each[i] = now_ns() - start;
    }
    (void)median(each, (int)npieces); /* sorts */
    for (size_t i = 0; i < half; i++)
        sum += each[i];
    free(each);
    return sum / (double)(half * PIECE);
}

/* -------------------------------------------------------------------- rows */

static void build(const bly_spec *spec, bool hashed)
{
    uint64_t hashes[1000];
    bly_builder *b;
    if (bly_builder_new(spec, &b))
        exit(2);
    for (size_t from = 0, n; from < w.n; from += n) {
        n = w.n - from < 1000 ? w.n - from : 1000;
        bly_hash_ints(bly_builder_hasher(b), w.present + from, n, hashes);
        if (bly_builder_add(b, hashed ? w.present + from : hashes, NULL, n))
            exit(2);
    }
    if (bly_builder_finish(b, 1, &w.f))
        exit(2);
    bly_builder_free(b);
}

/* Whether a multiple meets its target at this size. */
static char mark(double multiple, double target)
{
    return w.n != TARGET_KEYS || !(target > 0) ? ' '
           : multiple <= target                ? '+'
                                               : '-';
}

/* What is in place now, of nbytes. */
static void row(const char *name, const way *how, bool adds)
{
    double at[3] = { 0 }; /* targets: absent, present, add */
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        if (strcmp(targets[i].kind, name) != 0)
            continue;
        const bool ready = how == &in_line_hash;
        at[0] = ready ? targets[i].ready_inline : targets[i].absent;
        at[1] = ready ? targets[i].ready_inline : targets[i].present;
        at[2] = targets[i].add;
    }
    const double add = adds ? timed_once(how->add) : 0;
    w.memory = realloc(w.memory, w.nbytes);
    if (!w.memory)
        exit(2);
    memset(w.memory, 1, w.nbytes);
    const double load = timed(read_piece);
    const double no = timed(how->absent), yes = timed(how->present);
    printf("%-15s %7.2f %9.2f (%5.1f%c) %8.2f (%5.1f%c)",
           *how->name ? how->name : name, load, no, no / load,
           mark(no / load, at[0]), yes, yes / load, mark(yes / load, at[1]));
    if (adds)
        printf(" %8.2f (%5.1f%c)", add, add / load, mark(add / load, at[2]));
    printf("\n");
    fflush(stdout);
}

static void kind_row(const bly_kind_info *kind, const way *how)
{
    const bly_spec spec = { .kind = kind->name,
                            .items = w.n,
                            .fpr = 0.01,
                            .keying = { BLY_KEYS_UINT64, 0 } };
    const bool adds = kind->can & BLY_CAN(ADD);
    bly_stats stats;
    bly_prediction plan;
    if (w.n > MANY_KEYS &&
        (bly_plan(&spec, &plan) || plan.bits > w.n * MANY_BITS))
        return;
    if (adds && bly_new(&spec, &w.f))
        exit(2);
    if (!adds)
        build(&spec, how->hashed);
    bly_peek(w.f, &stats);
    w.nbytes = stats.bytes;
    if ((how != &in_line && how != &in_line_hash) ||
        (bly_blocked_view(w.f, &w.view) && bly_blocked_adder_of(w.f, &w.adder)))
        row(kind->name, how, adds);
    bly_free(w.f);
}

/* A filter that is built, and asked by its view. */
static void view_row(const bly_kind_info *kind, const way *how,
                     bool (*viewed)(void))
{
    const bly_spec spec = { .kind = kind->name,
                            .items = w.n,
                            .fpr = 0.01,
                            .keying = { BLY_KEYS_UINT64, 0 } };
    bly_stats stats;
    build(&spec, how->hashed);
    bly_peek(w.f, &stats);
    w.nbytes = stats.bytes;
    if (viewed())
        row(kind->name, how, false);
    bly_free(w.f);
}

static void libbloom_row(void)
{
    const double bits = 9.585 * (double)w.n; /* which it counts in an int */
    if (bits > 0x7fffffff || libbloom.init(libbloom.it, (int)w.n, 0.01))
        return;
    w.nbytes = (size_t)bits / 8;
    row("", &by_libbloom, true);
    libbloom.free(libbloom.it);
}

static void table(size_t n, const char *only)
{
    bly_kind_info kind;
    w.n = n;
    w.nasked = n < MAX_ASKED ? n : MAX_ASKED;
    w.present = room(w.n * 8);
    w.absent = room(w.nasked * 8);
    for (size_t i = 0; i < w.n; i++)
        w.present[i] = mix(i);
    for (size_t i = 0; i < w.nasked; i++)
        w.absent[i] = mix(i + w.n);
    printf("%zu keys, ns per key and multiples of a read\n\n", w.n);
    printf("%-15s %7s %18s %17s %17s\n", "one by one", "read", "absent",
           "present", "add");
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        /* Kinds with values are built from these, and asked for them. */
        if (!(kind.can & BLY_CAN(HAS)) || kind.can & BLY_CAN(GET) ||
            (only && strcmp(only, kind.name) != 0))
            continue;
        kind_row(&kind, &by_key);
        kind_row(&kind, &by_int);
        kind_row(&kind, &by_hash);
        if (i == 0) { /* the default kind, which has views */
            kind_row(&kind, &in_line);
            kind_row(&kind, &in_line_hash);
        }
        for (size_t v = 0; v < sizeof views / sizeof views[0]; v++)
            if (strcmp(views[v].kind, kind.name) == 0) {
                view_row(&kind, views[v].key, views[v].viewed);
                view_row(&kind, views[v].hash, views[v].viewed);
            }
    }
    if (!only && libbloom_load())
        libbloom_row();
    printf("\n");
}

int main(int argc, char **argv)
{
    const bool all = argc == 2 && strcmp(argv[1], "long") == 0;
    uint64_t items = 0;
    w.rounds = argc > 2 ? atoi(argv[2]) : 3;
    if ((argc > 1 && !all &&
         (!bly_parse_count(argv[1], &items) || items < PIECE)) ||
        w.rounds < 1) {
        fprintf(stderr,
                "usage: one [ITEMS [ROUNDS [KIND]]], ITEMS at least %zu; or "
                "one long\n",
                PIECE);
        return 2;
    }
    if (items)
        table((size_t)items, argc > 3 ? argv[3] : NULL);
    for (size_t n = 1000000; !items && n <= (all ? 100000000 : 10000000);
         n *= 10)
        table(n, NULL);
    return w.sink == 1; /* which it is not: the sums are used */
}

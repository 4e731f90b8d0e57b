/*
 * kinds.c - every kind of the table in one run: add, ask, remove, count
 *
 *     build/bench/kinds [ITEMS [KIND...]]        default: 1M, all kinds
 *
 * Prints nanoseconds a key and multiples of F, the floor of this machine at
 * the footprint of the filter: an independent random read of 64 bytes, fetched
 * ahead in two stages as well as we know how, on the same kind of pages. A
 * round measures every kind once, so that a noisy neighbour hits all alike;
 * the median of the rounds is printed. Integer keys, batches, one thread; the
 * hash is part of the time.
 *
 * What the kinds are held to (performance.md of the project's specification,
 * multiples of F at ten million keys): blocked 1.35 add, 1.3 ask; classic 8,
 * and 4 absent, 8 present; counting 12, 5, 9, remove 14; cuckoo 22, 3.5,
 * remove 6; quotient 35, 16, 20; count-min 8, 6.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <bloomery.h>

#define ROUNDS 3
#define MAX_KINDS 64

enum { ADD, ABSENT, PRESENT, REMOVE, COUNT, FLOOR, NCOLUMNS };

typedef struct result {
    const char *kind;
    uint32_t can;
    double ns[NCOLUMNS][ROUNDS];
    double bits_per_key, predicted, measured;
    char why[200]; /* not measured, because */
} result;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* F: random reads of a line in nbytes, T1 128 ahead and T0 16 ahead. */
static double floor_ns(size_t nbytes, size_t nreads)
{
    const size_t huge = (size_t)2 << 20;
    const size_t size = (nbytes + 2 * huge - 1) & ~(huge - 1);
    unsigned char *base = mmap(NULL, size + huge, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *at = malloc((nreads + 256) * sizeof *at);
    if (base == MAP_FAILED || !at)
        exit(2);
    unsigned char *data = base + (-(uintptr_t)base & (huge - 1));
    madvise(data, size, MADV_HUGEPAGE);
    memset(data, 1, size);
    const uint64_t nlines = nbytes < 64 ? 1 : nbytes / 64;
    for (size_t i = 0; i < nreads + 256; i++)
        at[i] = mix(i + 1) % nlines * 64;
    uint64_t sum = 0;
    const double start = now_ns();
    for (size_t i = 0; i < nreads; i++) {
        __builtin_prefetch(data + at[i + 128], 0, 2);
        __builtin_prefetch(data + at[i + 16], 0, 3);
        uint64_t word;
        memcpy(&word, data + at[i], sizeof word);
        sum += word;
    }
    const double ns = (now_ns() - start) / (double)nreads;
    __asm__ volatile("" : : "r"(sum));
    munmap(base, size + huge);
    free(at);
    return ns;
}

static uint64_t bits_set(const uint64_t *words, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < BLY_BITMAP_WORDS(n); i++)
        sum += (uint64_t)__builtin_popcountll(words[i]);
    return sum;
}

typedef struct workload {
    size_t n;
    uint64_t *present, *absent; /* keys */
    uint64_t *hashes;           /* of present */
    uint64_t *maybe, *counts;
    bly_status *each;
} workload;

static void measure(const char *kind, const workload *w, int round, result *out)
{
    const bly_spec spec = { .kind = kind, .items = w->n, .fpr = 0.01 };
    bly_kind_info info;
    bly_prediction plan;
    bly_filter *f = NULL;
    bly_kind_named(kind, &info);
    out->kind = info.name;
    out->can = info.can;
    if (bly_plan(&spec, &plan) || bly_new(&spec, &f)) {
        snprintf(out->why, sizeof out->why, "%s", bly_error());
        return;
    }
    out->bits_per_key = plan.bits_per_key;
    out->predicted = plan.fpr;

    double start = now_ns();
    const bly_status st = bly_add_ints(f, w->present, w->n, NULL, NULL);
    out->ns[ADD][round] = (now_ns() - start) / (double)w->n;
    if (st)
        snprintf(out->why, sizeof out->why, "%s", bly_error());
    if (info.can & BLY_CAN(HAS)) {
        start = now_ns();
        bly_has_ints(f, w->absent, w->n, w->maybe);
        out->ns[ABSENT][round] = (now_ns() - start) / (double)w->n;
        out->measured = (double)bits_set(w->maybe, w->n) / (double)w->n;
        start = now_ns();
        bly_has_ints(f, w->present, w->n, w->maybe);
        out->ns[PRESENT][round] = (now_ns() - start) / (double)w->n;
    }
    if (info.can & BLY_CAN(COUNT)) {
        start = now_ns();
        bly_count_hashes(f, w->hashes, w->n, w->counts);
        out->ns[COUNT][round] = (now_ns() - start) / (double)w->n;
    }
    if (info.can & BLY_CAN(REMOVE)) {
        start = now_ns();
        bly_remove_hashes(f, w->hashes, w->n, w->each);
        out->ns[REMOVE][round] = (now_ns() - start) / (double)w->n;
    }
    bly_free(f);
    out->ns[FLOOR][round] = floor_ns((size_t)plan.bytes, 2000000);
}

static double median(const double *v)
{
    double sorted[ROUNDS];
    memcpy(sorted, v, sizeof sorted);
    for (int i = 1; i < ROUNDS; i++)
        for (int j = i; j > 0 && sorted[j - 1] > sorted[j]; j--) {
            const double t = sorted[j];
            sorted[j] = sorted[j - 1];
            sorted[j - 1] = t;
        }
    return sorted[ROUNDS / 2];
}

static void print(const result *r)
{
    if (r->why[0]) {
        printf("%-12s %s\n", r->kind, r->why);
        return;
    }
    const double f = median(r->ns[FLOOR]);
    printf("%-12s %7.2f %8.4f %8.4f %6.2f", r->kind, r->bits_per_key,
           100 * r->predicted, 100 * r->measured, f);
    for (int c = ADD; c < FLOOR; c++) {
        const double ns = median(r->ns[c]);
        if (ns > 0)
            printf(" %7.1f %5.1fF", ns, ns / f);
        else
            printf(" %7s %6s", "-", "-");
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    static result results[MAX_KINDS];
    uint64_t items = 1000000;
    if (argc > 1 && (!bly_parse_count(argv[1], &items) || !items)) {
        fprintf(stderr, "usage: kinds [ITEMS [KIND...]]\n");
        return 2;
    }
    workload w = { .n = items };
    w.present = malloc(w.n * sizeof *w.present);
    w.absent = malloc(w.n * sizeof *w.absent);
    w.hashes = malloc(w.n * sizeof *w.hashes);
    w.maybe = malloc(BLY_BITMAP_WORDS(w.n) * sizeof *w.maybe);
    w.counts = malloc(w.n * sizeof *w.counts);
    w.each = malloc(w.n * sizeof *w.each);
    if (!w.present || !w.absent || !w.hashes || !w.maybe || !w.counts ||
        !w.each)
        return 2;
    for (size_t i = 0; i < w.n; i++) {
        w.present[i] = mix(i);
        w.absent[i] = mix(i + w.n);
    }
    bly_hasher hasher;
    bly_hasher_for(&(bly_spec){ 0 }, &hasher);
    bly_hash_ints(&hasher, w.present, w.n, w.hashes);

    size_t nkinds = 0;
    for (int round = 0; round < ROUNDS; round++) {
        bly_kind_info info;
        nkinds = 0;
        for (size_t i = 0; bly_kind_at(i, &info) && nkinds < MAX_KINDS; i++) {
            bool wanted = argc <= 2;
            for (int a = 2; a < argc; a++)
                wanted |= strcmp(argv[a], info.name) == 0;
            if (wanted)
                measure(info.name, &w, round, &results[nkinds++]);
        }
    }
    printf("%zu keys at 1 %%, medians of %d rounds, one thread; F: ns of a "
           "random line at that footprint\n",
           w.n, ROUNDS);
    printf("%-12s %7s %8s %8s %6s %14s %14s %14s %14s %14s\n", "kind",
           "bits/key", "planned%", "found%", "F", "add", "ask absent",
           "ask present", "remove", "count");
    for (size_t i = 0; i < nkinds; i++)
        print(&results[i]);
    return 0;
}

/*
 * bench_floor.c - F: what a random access costs on this machine
 *
 *     F = nanoseconds an independent random read of a 64-byte line takes,
 *         in as many bytes as the filter has, on 2 MiB pages, with the line
 *         fetched into L2 early and into L1 shortly before it is used
 *
 * A filter that looks at one line per key cannot be faster than F, whatever it
 * does; one that looks at three cannot be faster than 3 F. Times differ from
 * machine to machine and from hour to hour, multiples of F hardly do.
 *
 * How far ahead is best depends on the machine and on the footprint: a few
 * distances, 64 to 128 and 8 to 16 accesses, are tried and the best pair is
 * kept for footprints of about that size. The places come from an array of 8
 * MiB, as the keys of a filter do.
 *
 * Beside F: read-modify-write is the floor of adding. The bare read leaves the
 * overlap to the processor; within the first caches that is the faster one,
 * since a fetch is an instruction too. The deep one fetches farther ahead, 192
 * to 384 accesses, which helps where lines come from a large third-level cache;
 * F is defined without it, so that figures stay comparable.
 */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "base/random.h"
#include "workbench/bench.h"

#define FLOOR_LINE 64
#define FLOOR_AHEAD 384 /* the farthest */
#define FLOOR_HUGE ((size_t)2 << 20)

static const unsigned floor_far[] = { 64, 96, 128 };
static const unsigned floor_near[] = { 8, 12, 16 };
static const unsigned floor_deep[] = { 192, 256, 384 };
#define NDISTANCES 3

static struct {
    unsigned char *base, *data; /* data is aligned to a huge page */
    size_t mapped, nbytes;
    uint64_t huge; /* of it, in huge pages */
    size_t at[BENCH_BLOCK + FLOOR_AHEAD];
    uint64_t drawn;
    /* Best distances, by the logarithm of the footprint in halves. */
    struct {
        unsigned far, near, deep;
    } best[128];
    uint64_t sum;
} ground;

void bench_floor_close(void)
{
    if (ground.base)
        munmap(ground.base, ground.mapped);
    ground.base = NULL;
    ground.nbytes = 0;
}

static bool ground_open(size_t nbytes)
{
    if (nbytes <= ground.nbytes)
        return true;
    bench_floor_close();
    const size_t want = (nbytes + FLOOR_HUGE - 1) & ~(FLOOR_HUGE - 1);
    unsigned char *const base =
        mmap(NULL, want + FLOOR_HUGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return false;
    ground.base = base;
    ground.mapped = want + FLOOR_HUGE;
    ground.data = base + (-(uintptr_t)base & (FLOOR_HUGE - 1));
    ground.nbytes = want;
    (void)madvise(ground.data, want, MADV_HUGEPAGE);
    const uint64_t before = bench_huge_bytes();
    memset(ground.data, 1, want);
    const uint64_t after = bench_huge_bytes();
    ground.huge = after > before ? after - before : 0;
    return true;
}

double bench_floor_huge(void)
{
    return ground.nbytes ? (double)ground.huge / (double)ground.nbytes : NAN;
}

static void ground_places(size_t nlines)
{
    for (size_t i = 0; i < BENCH_BLOCK + FLOOR_AHEAD; i++)
        ground.at[i] =
            (size_t)(bly_mix64(ground.drawn++) % nlines) * FLOOR_LINE;
}

/* Nanoseconds an access. far 0: nothing is fetched ahead. */
static inline __attribute__((always_inline)) double
ground_walk(size_t far, size_t near, bool update)
{
    unsigned char *const data = ground.data;
    const size_t *const at = ground.at;
    uint64_t sum = 0;
    const double start = bench_start();
    for (size_t i = 0; i < BENCH_BLOCK; i++) {
        if (far) {
            __builtin_prefetch(data + at[i + far], 0, 2);
            if (update)
                __builtin_prefetch(data + at[i + near], 1, 3);
            else
                __builtin_prefetch(data + at[i + near], 0, 3);
        }
        uint64_t word;
        memcpy(&word, data + at[i], sizeof word);
        if (update) {
            word |= i;
            memcpy(data + at[i], &word, sizeof word);
        } else {
            sum += word;
        }
    }
    const double ns = bench_spent(start);
    /* Volatile, so that nothing that was read was read in vain. */
    *(volatile uint64_t *)&ground.sum += sum;
    return ns / (double)BENCH_BLOCK;
}

static __attribute__((noinline)) double walk_read(size_t far, size_t near)
{
    return ground_walk(far, near, false);
}

static __attribute__((noinline)) double walk_update(size_t far, size_t near)
{
    return ground_walk(far, near, true);
}

static __attribute__((noinline)) double walk_bare(void)
{
    return ground_walk(0, 0, false);
}

/* Each pair is tried in turns, and its best time counts: among a few there is
 * one that nothing disturbed. */
#define FLOOR_TURNS 6
/* Where all is near, distances matter little. */
#define FLOOR_NEAR ((size_t)1 << 20)

static void ground_distances(size_t nlines, unsigned *far, unsigned *near,
                             unsigned *deep)
{
    double best = INFINITY, best_deep = INFINITY;
    const int nturns = nlines < FLOOR_NEAR / FLOOR_LINE ? 1 : FLOOR_TURNS;
    for (int turn = 0; turn < nturns; turn++)
        for (size_t f = 0; f < NDISTANCES; f++) {
            for (size_t k = 0; k < NDISTANCES; k++) {
                const double ns = walk_read(floor_far[f], floor_near[k]);
                if (ns < best) {
                    best = ns;
                    *far = floor_far[f];
                    *near = floor_near[k];
                }
            }
            const double ns = walk_read(floor_deep[f], floor_near[1]);
            if (ns < best_deep) {
                best_deep = ns;
                *deep = floor_deep[f];
            }
        }
}

bool bench_floor(uint64_t nbytes, struct bench_floor *out)
{
    *out = (struct bench_floor){
        .read = NAN, .update = NAN, .bare = NAN, .deep = NAN
    };
    if (nbytes > SIZE_MAX / 4 || !ground_open((size_t)nbytes))
        return false;
    const size_t nlines = nbytes < FLOOR_LINE ? 1 : (size_t)nbytes / FLOOR_LINE;
    const size_t bucket = (size_t)(2 * log2((double)nlines));
    ground_places(nlines);
    if (!ground.best[bucket].far)
        ground_distances(nlines, &ground.best[bucket].far,
                         &ground.best[bucket].near, &ground.best[bucket].deep);
    out->far = ground.best[bucket].far;
    out->near = ground.best[bucket].near;
    /* Once to fill the caches, thrice to be timed. */
    double reads[3];
    walk_read(out->far, out->near);
    reads[0] = walk_read(out->far, out->near);
    out->update = walk_update(out->far, out->near);
    reads[1] = walk_read(out->far, out->near);
    out->deep = walk_read(ground.best[bucket].deep, floor_near[1]);
    reads[2] = walk_read(out->far, out->near);
    out->bare = walk_bare();
    out->read = bench_figure_of(reads, 3).median;
    return true;
}

/*
 * speed_live.c - live filters beside private ones, and many processes at once
 *
 *     build/bench/speed_live [FOLDER [ITEMS [ROUNDS]]]    default: /dev/shm,
 * 100k, then 10M; 5
 *
 * Nanoseconds per key in filters of 1 %, in a program's own memory and live in
 * FOLDER, in turn, the least of all rounds: additions of new keys and questions
 * for them, by batches of 512 hashes and one by one. Then eight processes that
 * add and ask half and half for a second, beside one: keys per second of the
 * wall, and per second of processor time times the processors, which other
 * programs cannot lower.
 */
#define _GNU_SOURCE
#include <err.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bloomery/live.h>

#include "bench/measure.h"

#define BATCH ((size_t)512)
#define PROCESSES 8

enum { ADD_MANY, HAS_MANY, ADD_ONE, HAS_ONE, MEASURES };
static const char *const measured[MEASURES] = { "add, batch", "ask, batch",
                                                "add, one", "ask, one" };

static char path[4096];
static uint64_t *hashes, *maybe, sink;

static bly_filter *make(const char *kind, uint64_t items, bool live)
{
    const bly_spec spec = { .kind = kind, .items = items, .fpr = 0.01 };
    bly_filter *f;
    unlink(path);
    if (live ? bly_share(path, &spec, NULL, &f) : bly_new(&spec, &f))
        errx(2, "%s", bly_error());
    /* All its pages are there before the clock starts. */
    for (size_t i = 0; i < items; i += BATCH)
        bly_has_hashes(f, hashes + i, BATCH, maybe);
    return f;
}

static bool can_live(const char *kind)
{
    const bly_spec spec = { .kind = kind, .items = 1000, .fpr = 0.01 };
    bly_filter *f;
    unlink(path);
    const bool can = !bly_share(path, &spec, NULL, &f);
    bly_free(f);
    return can;
}

static double measure(bly_filter *f, int what, size_t n)
{
    bly_status st = BLY_OK;
    const double begin = now_ns();
    if (what == ADD_MANY)
        for (size_t i = 0; i < n; i += BATCH)
            st |= bly_add_hashes(f, hashes + i, BATCH, NULL, NULL);
    else if (what == HAS_MANY)
        for (size_t i = 0; i < n; i += BATCH)
            bly_has_hashes(f, hashes + i, BATCH, maybe);
    else if (what == ADD_ONE)
        for (size_t i = 0; i < n; i++)
            st |= bly_add_hash(f, hashes[i]);
    else
        for (size_t i = 0; i < n; i++)
            sink += bly_has_hash(f, hashes[i]);
    const double ns = now_ns() - begin;
    if (st)
        errx(2, "%s", bly_error());
    return ns / (double)n;
}

static void beside_private(const char *kind, size_t n, int rounds)
{
    double least[2][MEASURES];
    for (int i = 0; i < 2 * MEASURES; i++)
        least[i / MEASURES][i % MEASURES] = 1e9;
    for (int round = 0; round < rounds; round++)
        for (int turn = 0; turn < 4; turn++) {
            const bool live = turn & 1, one = turn & 2;
            bly_filter *const f = make(kind, n, live);
            for (int what = one ? ADD_ONE : ADD_MANY;
                 what <= (one ? HAS_ONE : HAS_MANY); what++) {
                const double ns = measure(f, what, n);
                if (ns < least[live][what])
                    least[live][what] = ns;
            }
            bly_free(f);
        }
    for (int what = 0; what < MEASURES; what++)
        printf("%-10s %9zu  %-10s  private %7.2f ns  live %7.2f ns  %5.2f\n",
               kind, n, measured[what], least[0][what], least[1][what],
               least[1][what] / least[0][what]);
}

/* Keys per second of np processes: of the wall, and of processor time. */
static void at_once(size_t n, int np, double *wall, double *busy)
{
    struct work {
        _Atomic uint64_t go;
        uint64_t keys[PROCESSES];
        double cpu[PROCESSES];
    };
    struct work *const shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bly_filter *const f = make("blocked", n, true);
    if (shared == MAP_FAILED)
        err(2, "mmap");
    pid_t child[PROCESSES];
    for (int c = 0; c < np; c++) {
        child[c] = fork();
        if (child[c])
            continue;
        uint64_t keys = 0;
        while (!atomic_load(&shared->go))
            usleep(100);
        const double end = clock_ns() + 1e9, cpu = now_ns();
        for (size_t i = (size_t)c * n / PROCESSES / BATCH * BATCH;
             clock_ns() < end; i = i + 2 * BATCH > n ? 0 : i + BATCH) {
            if (bly_add_hashes(f, hashes + i, BATCH, NULL, NULL))
                _exit(1);
            bly_has_hashes(f, hashes + (i ? i - BATCH : i), BATCH, maybe);
            keys += 2 * BATCH;
        }
        shared->keys[c] = keys;
        shared->cpu[c] = (now_ns() - cpu) / 1e9;
        _exit(0);
    }
    atomic_store(&shared->go, 1);
    double keys = 0, cpu = 0;
    for (int c = 0; c < np; c++) {
        int status;
        if (waitpid(child[c], &status, 0) < 0 || status)
            errx(2, "a process failed");
        keys += (double)shared->keys[c];
        cpu += shared->cpu[c];
    }
    const double processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    *wall = keys;
    *busy = keys / cpu * (np < processors ? np : processors);
    bly_free(f);
    munmap(shared, sizeof *shared);
}

int main(int argc, char **argv)
{
    static const size_t usual[] = { 100000, 10000000 };
    const char *const folder = argc > 1 ? argv[1] : "/dev/shm";
    const size_t given = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    const int rounds = argc > 3 ? atoi(argv[3]) : 5;
    const size_t most = given ? given : usual[1];
    bly_kind_info kind;
    snprintf(path, sizeof path, "%s/speed_live.%ld.bly", folder,
             (long)getpid());
    hashes = room((most + BATCH) * sizeof *hashes);
    maybe = room(BATCH);
    for (size_t i = 0; i < most + BATCH; i++)
        hashes[i] = mix(i + 1);
    for (size_t s = 0; s < (given ? 1 : 2); s++)
        for (size_t k = 0; bly_kind_at(k, &kind); k++)
            if (can_live(kind.name))
                beside_private(kind.name, given ? given : usual[s], rounds);
    double wall[2] = { 0 }, busy[2] = { 0 };
    for (int round = 0; round < rounds; round++)
        for (int many = 0; many < 2; many++) {
            double x, y;
            at_once(most, many ? PROCESSES : 1, &x, &y);
            wall[many] = x > wall[many] ? x : wall[many];
            busy[many] = y > busy[many] ? y : busy[many];
        }
    printf("processes, adding and asking: one %.1f M keys/s, %d %.1f M keys/s, "
           "%.2f times; by processor time %.2f times\n",
           wall[0] / 1e6, PROCESSES, wall[1] / 1e6, wall[1] / wall[0],
           busy[1] / busy[0]);
    unlink(path);
    return sink == 1; /* so that the answers are not left out */
}

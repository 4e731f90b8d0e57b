/*
 * bench.cu - keys per second on a device: `bloomery bench --gpu`
 *
 *     bloomery-bench-gpu [--json] [LOG2 OF KEYS [MIB OF THE FILTER]]
 *
 * For filters that fit into the device's cache and filters that do not: asking
 * and adding, key by key and in parts, beside the device's own random gather of
 * 64 bytes at the same footprint, which no filter of lines can beat without
 * putting keys in order first; and beside all cores of this machine. Times are
 * medians of several runs, by events on the device; a 64-bit hash of every key
 * is included.
 */
#include "bloomery_cuda.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "blocked.h"

#define RUNS 5

static void check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "bloomery bench --gpu: %s: %s\n", what,
            cudaGetErrorString(e));
    exit(2);
}

static void check(bly_status st)
{
    if (!st)
        return;
    fprintf(stderr, "bloomery bench --gpu: %s\n", bly_cuda_error());
    exit(2);
}

/* Keys that nobody else has: a bijection of 64 bits of a number. */
KERNEL(keys_make)(uint64_t *keys, uint64_t n, uint64_t first)
{
    for (uint64_t i = key_first(); i < n; i += key_step())
        keys[i] = bly_mix64(first + i);
}

/* The floor: where a key leads, the line there, and nothing else. */
KERNEL(gather)(bly_blocked b, key_source keys, uint64_t n, uint32_t *out)
{
    const unsigned p = lane_at() % 4;
    uint32_t sum = 0;
    for (uint64_t from = turn_first(); from < n; from += turn_step())
        for (unsigned r = 0; r < TURN; r++) {
            const uint64_t i = from + r * LANES + lane_at();
            const uint64_t block =
                i < n ? block_of(&b, key_hash(&keys, i), true) : 0;
            uint32_t halves[4][4];
            UNROLLED
            for (unsigned round = 0; round < 4; round++)
                line_load(b.words + line_of(block, lane_at() - p + round, true) +
                              2 * p,
                          halves[round]);
            UNROLLED
            for (unsigned round = 0; round < 4; round++)
                sum ^= halves[round][0] ^ halves[round][1] ^ halves[round][2] ^
                       halves[round][3];
        }
    if (sum == 1) /* never; but nobody may leave the loads out */
        *out = sum;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Billions of keys per second. */
static double rate(uint64_t n, const std::function<void(void)> &run)
{
    cudaEvent_t from, to;
    double ms[RUNS];
    check(cudaEventCreate(&from), "events");
    check(cudaEventCreate(&to), "events");
    run(); /* once to warm up */
    for (double &t : ms) {
        float some;
        check(cudaEventRecord(from), "events");
        run();
        check(cudaEventRecord(to), "events");
        check(cudaEventSynchronize(to), "a kernel");
        check(cudaEventElapsedTime(&some, from, to), "events");
        t = some;
    }
    check(cudaEventDestroy(from), "events");
    check(cudaEventDestroy(to), "events");
    qsort(ms, RUNS, sizeof ms[0], compare_doubles);
    return (double)n / ms[RUNS / 2] / 1e6;
}

/* All cores of this machine on the same filter and keys. */
static double host_rate(bly_filter *f, const uint64_t *keys, size_t n, bool add)
{
    const unsigned nthreads = std::max(1u, std::thread::hardware_concurrency());
    std::vector<uint64_t> maybe(BLY_BITMAP_WORDS(n) + nthreads);
    double best = 1e9;
    for (int run = 0; run < 3; run++) {
        const auto start = std::chrono::steady_clock::now();
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < nthreads; t++)
            threads.emplace_back([=, &maybe] {
                const size_t from = n / nthreads * t / 64 * 64;
                const size_t to =
                    t + 1 < nthreads ? n / nthreads * (t + 1) / 64 * 64 : n;
                if (add)
                    (void)!bly_add_ints(f, keys + from, to - from, NULL, NULL);
                else
                    bly_has_ints(f, keys + from, to - from,
                                 maybe.data() + from / 64);
            });
        for (std::thread &t : threads)
            t.join();
        const std::chrono::duration<double> took =
            std::chrono::steady_clock::now() - start;
        best = std::min(best, took.count());
    }
    return (double)n / best / 1e9;
}

static bly_filter *bench_filter(uint64_t nbytes)
{
    bly_filter *f;
    const bly_option k8 = { "k", "8" };
    bly_spec spec = {};
    spec.kind = "blocked";
    spec.bits = nbytes * 8;
    spec.items = spec.bits / 10;
    spec.options = &k8;
    spec.noptions = 1;
    spec.keying.type = BLY_KEYS_UINT64;
    if (bly_new(&spec, &f)) {
        fprintf(stderr, "bloomery bench --gpu: %s\n", bly_error());
        exit(2);
    }
    return f;
}

struct figures {
    double gather, ask, add, add_parts, tally, tally_parts, select_parts;
    double host_ask, upload_gib;
};

static figures measure(uint64_t nbytes, const uint64_t *keys, uint64_t n,
                       uint64_t *maybe, uint64_t *selected, unsigned nprocessors)
{
    figures out = {};
    bly_filter *f;
    bly_cuda *g;
    bly_blocked view;
    uint64_t *nhits;
    f = bench_filter(nbytes);
    check(bly_cuda_upload(f, &g));
    check(bly_cuda_view(g, &view));
    check(cudaMalloc((void **)&nhits, sizeof *nhits), "memory");
    /* Half of the keys that are asked for are in it, in stretches. */
    check(bly_cuda_add_ints(g, keys, n / 2, NULL));
    key_source source = {};
    source.words = keys;
    source.ints = true;
    source.folded = view.folded;
    source.turned = view.folded ? view.flip : bly_int_turned(view.flip);
    int each = 1;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, gather, 256, 0),
          "occupancy");
    out.gather = rate(n, [&] {
        gather<<<nprocessors * (unsigned)each, 256>>>(view, source, n,
                                                      (uint32_t *)maybe);
    });
    out.ask = rate(n, [&] { check(bly_cuda_has_ints(g, keys, n, maybe, NULL)); });
    bly_cuda_set_way(g, BLY_CUDA_DIRECT);
    out.tally = rate(n, [&] { check(bly_cuda_tally_ints(g, keys, n, nhits, NULL)); });
    bly_cuda_set_way(g, BLY_CUDA_PARTS);
    out.tally_parts =
        rate(n, [&] { check(bly_cuda_tally_ints(g, keys, n, nhits, NULL)); });
    out.select_parts = rate(n, [&] {
        check(bly_cuda_select_ints(g, keys, n, selected, nhits, NULL));
    });
    out.add_parts = rate(n, [&] { check(bly_cuda_add_ints(g, keys, n, NULL)); });
    bly_cuda_set_way(g, BLY_CUDA_DIRECT);
    out.add = rate(n, [&] { check(bly_cuda_add_ints(g, keys, n, NULL)); });
    check(cudaFree(nhits), "memory");
    if (nbytes <= (UINT64_C(4) << 30)) {
        const size_t nhost = std::min<uint64_t>(n, 1 << 26);
        std::vector<uint64_t> copy(nhost);
        check(cudaMemcpy(copy.data(), keys, nhost * 8, cudaMemcpyDeviceToHost),
              "copying keys");
        check(bly_cuda_download(g, f));
        out.host_ask = host_rate(f, copy.data(), nhost, false);
    }
    bly_cuda_free(g);
    bly_free(f);
    return out;
}

/* From which batch on parts pay, at one size. */
static void crossover(uint64_t nbytes, const uint64_t *keys, uint64_t most,
                      unsigned log2_most)
{
    bly_filter *f;
    bly_cuda *g;
    uint64_t *nhits;
    f = bench_filter(nbytes);
    check(bly_cuda_upload(f, &g));
    check(cudaMalloc((void **)&nhits, sizeof *nhits), "memory");
    check(bly_cuda_add_ints(g, keys, most / 2, NULL));
    printf("\n%6.0f MiB, by size of batch: add directly, in parts; tally "
           "directly, in parts\n",
           (double)nbytes / 0x1p20);
    for (unsigned log2_n = 18; log2_n <= log2_most; log2_n += 2) {
        const uint64_t n = UINT64_C(1) << log2_n;
        double r[4];
        for (unsigned i = 0; i < 4; i++) {
            bly_cuda_set_way(g, i % 2 ? BLY_CUDA_PARTS : BLY_CUDA_DIRECT);
            r[i] = rate(n, [&] {
                check(i < 2 ? bly_cuda_add_ints(g, keys, n, NULL)
                            : bly_cuda_tally_ints(g, keys, n, nhits, NULL));
            });
        }
        printf("2^%-4u %8.1f %8.1f %8.1f %8.1f\n", log2_n, r[0], r[1], r[2],
               r[3]);
    }
    check(cudaFree(nhits), "memory");
    bly_cuda_free(g);
    bly_free(f);
}

/* With keys in the processor's memory, pinned or not: they cross the bus, are
 * asked for, and the answers come back. */
static void transfers(uint64_t nbytes, const uint64_t *keys, uint64_t n,
                      uint64_t *maybe)
{
    bly_filter *f;
    bly_cuda *g;
    uint64_t *room, *pinned, *answers;
    n = std::min<uint64_t>(n, 1 << 27);
    f = bench_filter(nbytes);
    check(bly_cuda_upload(f, &g));
    check(bly_cuda_add_ints(g, keys, n / 2, NULL));
    check(bly_cuda_download(g, f));
    check(cudaMalloc((void **)&room, n * 8), "memory");
    check(cudaMallocHost((void **)&pinned, n * 8), "pinned memory");
    check(cudaMallocHost((void **)&answers, n / 8), "pinned memory");
    check(cudaMemcpy(pinned, keys, n * 8, cudaMemcpyDeviceToHost), "copying");
    const std::vector<uint64_t> plain(pinned, pinned + n);
    const uint64_t *const from[] = { pinned, plain.data() };
    double r[2];
    for (unsigned i = 0; i < 2; i++)
        r[i] = rate(n, [&] {
            check(cudaMemcpyAsync(room, from[i], n * 8, cudaMemcpyHostToDevice,
                                  NULL),
                  "copying");
            check(bly_cuda_has_ints(g, room, n, maybe, NULL));
            check(cudaMemcpyAsync(answers, maybe, n / 8,
                                  cudaMemcpyDeviceToHost, NULL),
                  "copying");
        });
    const double here =
        rate(n, [&] { check(bly_cuda_has_ints(g, room, n, maybe, NULL)); });
    bly_cuda_free(g);
    const auto start = std::chrono::steady_clock::now();
    check(bly_cuda_upload(f, &g));
    const std::chrono::duration<double> up =
        std::chrono::steady_clock::now() - start;
    printf("\n%6.0f MiB, 2^27 keys: on the device %.1f; from pinned memory and "
           "back %.2f, from other memory %.2f; all cores %.2f; the filter is "
           "uploaded at %.1f GiB/s\n",
           (double)nbytes / 0x1p20, here, r[0], r[1],
           host_rate(f, plain.data(), n, false),
           (double)nbytes / 0x1p30 / up.count());
    check(cudaFree(room), "memory");
    check(cudaFreeHost(pinned), "memory");
    check(cudaFreeHost(answers), "memory");
    bly_cuda_free(g);
    bly_free(f);
}

int main(int argc, char **argv)
{
    bool json = false;
    unsigned log2_n = 0, one = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else
            *(log2_n ? &one : &log2_n) = (unsigned)atoi(argv[i]);
    if (!log2_n)
        log2_n = 30;
    if (log2_n < 20 || log2_n > 32) {
        fputs("bloomery bench --gpu: give the logarithm of the number of keys, "
              "from 20 to 32\n",
              stderr);
        return 2;
    }
    cudaDeviceProp device;
    cudaMemPool_t pool;
    uint64_t keep = UINT64_MAX, *keys, *maybe, *selected;
    const uint64_t n = UINT64_C(1) << log2_n;
    check(cudaGetDeviceProperties(&device, 0), "finding a device");
    check(cudaDeviceGetDefaultMemPool(&pool, 0), "memory");
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
          "memory");
    check(cudaMalloc((void **)&keys, n * 8), "memory for keys");
    check(cudaMalloc((void **)&maybe, n / 8), "memory for answers");
    check(cudaMalloc((void **)&selected, n * 8), "memory for keys");
    keys_make<<<1024, 256>>>(keys, n, 1);
    check(cudaDeviceSynchronize(), "making keys");
    const unsigned np = (unsigned)device.multiProcessorCount;
    static const unsigned sizes[] = { 32, 128, 2048, 32768 };
    if (!json) {
        printf("%s, %u multiprocessors, %d MiB of L2; 2^%u integer keys, half "
               "of them present; billions of keys per second\n",
               device.name, np, device.l2CacheSize >> 20, log2_n);
        printf("%10s %8s %8s %8s %8s %8s %8s %8s %8s\n", "filter", "gather",
               "ask", "tally", "in parts", "select", "add", "in parts",
               "cores");
    } else {
        printf("{\"device\":\"%s\",\"keys\":%llu,\"filters\":[", device.name,
               (unsigned long long)n);
    }
    for (unsigned i = 0; i < 4; i++) {
        if (one && one != sizes[i])
            continue;
        const figures r = measure((uint64_t)sizes[i] << 20, keys, n, maybe,
                                  selected, np);
        if (json)
            printf("%s{\"bytes\":%llu,\"gather\":%.2f,\"ask\":%.2f,"
                   "\"tally\":%.2f,\"tally_parts\":%.2f,\"select_parts\":%.2f,"
                   "\"add\":%.2f,\"add_parts\":%.2f,\"cores_ask\":%.3f}",
                   i ? "," : "", (unsigned long long)sizes[i] << 20, r.gather,
                   r.ask, r.tally, r.tally_parts, r.select_parts, r.add,
                   r.add_parts, r.host_ask);
        else
            printf("%6u MiB %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.2f\n",
                   sizes[i], r.gather, r.ask, r.tally, r.tally_parts,
                   r.select_parts, r.add, r.add_parts, r.host_ask);
        fflush(stdout);
    }
    if (json)
        puts("]}");
    else
        for (unsigned i = 1; i < 3 && !one; i++)
            crossover((uint64_t)sizes[i] << 20, keys, n, log2_n);
    if (!json)
        transfers(UINT64_C(2) << 30, keys, n, maybe);
    return 0;
}

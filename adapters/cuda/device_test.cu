/*
 * device_test.cu - the device against the processor, key by key and byte by byte
 *
 *     device_test [KEYS [KIND]]    a million, and all kinds, unless told
 *                                  otherwise
 *
 * For every kind: the same answers for KEYS integers, a third of them in the
 * filter, as hashes, integers and columns; the same file after adding KEYS
 * integers; and what must be refused.
 */
#include "bloomery_cuda.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

static unsigned nfailed, npassed;
static const char *only; /* this kind; NULL: all */

static void expect(bool good, const std::string &what)
{
    npassed += good;
    nfailed += !good;
    printf("%s %s\n", good ? "ok   " : "FAIL ", what.c_str());
    fflush(stdout);
}

static void expect_status(bly_status got, bly_status want, const char *what)
{
    expect(got == want, std::string(what) + ": " + bly_status_text(got) +
                            (got ? std::string("; ") + bly_cuda_error() : ""));
}

/* A failure here is one of the test's own means. */
static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "device_test: %s (%s; %s)\n", what, bly_error(),
            bly_cuda_error());
    exit(2);
}

static void *on_device_bytes(size_t n)
{
    void *at = NULL;
    must(cudaMalloc(&at, n ? n : 1) == cudaSuccess, "device memory");
    return at;
}

template <typename T> static T *copied(const std::vector<T> &host)
{
    T *const at = (T *)on_device_bytes(host.size() * sizeof(T));
    must(cudaMemcpy(at, host.data(), host.size() * sizeof(T),
                    cudaMemcpyHostToDevice) == cudaSuccess,
         "copying");
    return at;
}

static bly_spec spec_of(const char *kind, uint64_t items,
                        const bly_option *option, uint64_t seed)
{
    bly_spec spec = {};
    spec.kind = kind;
    spec.items = items;
    spec.seed = seed;
    spec.options = option;
    spec.noptions = option != NULL;
    return spec;
}

static unsigned ncores(void)
{
    return std::max(1u, std::thread::hardware_concurrency());
}

/* Integers first to first + n - 1, spread over 64 bits. */
static std::vector<uint64_t> integers(uint64_t first, size_t n)
{
    std::vector<uint64_t> out(n);
    for (size_t i = 0; i < n; i++)
        out[i] = bly_mix64(first + i);
    return out;
}

/* f(t, from, to) for shares of n that begin at whole words of a bitmap. */
template <typename F> static void shared_out(size_t n, F f)
{
    std::vector<std::thread> threads;
    const unsigned nthreads = ncores();
    for (unsigned t = 0; t < nthreads; t++)
        threads.emplace_back([=] {
            const size_t from = n / nthreads * t / 64 * 64;
            const size_t to =
                t + 1 < nthreads ? n / nthreads * (t + 1) / 64 * 64 : n;
            f(from, to);
        });
    for (std::thread &t : threads)
        t.join();
}

static bly_filter *built(const bly_spec &spec, uint64_t n)
{
    bly_builder *b;
    bly_filter *f;
    must(!bly_builder_new(&spec, &b), "a builder");
    for (uint64_t from = 0; from < n; from += 1 << 26) {
        const std::vector<uint64_t> ints =
            integers(from, std::min<uint64_t>(n - from, 1 << 26));
        shared_out(ints.size(), [&ints, b](size_t begin, size_t end) {
            std::vector<uint64_t> hashes(4096);
            for (size_t i = begin; i < end; i += hashes.size()) {
                const size_t some = std::min(hashes.size(), end - i);
                bly_hash_ints(bly_builder_hasher(b), &ints[i], some,
                              hashes.data());
                must(!bly_builder_add(b, hashes.data(), NULL, some), "adding");
            }
        });
    }
    must(!bly_builder_finish(b, 0, &f), "building");
    bly_builder_free(b);
    return f;
}

/* Ask for n keys in turns, a third of which are in f, which has nin. */
static void same_answers(const char *kind, const bly_option *option,
                         uint64_t nin, uint64_t n)
{
    if (only && strcmp(only, kind) != 0)
        return;
    const std::string name =
        std::string(kind) +
        (option ? std::string(",") + option->name + "=" + option->value : "");
    bly_filter *const f = built(spec_of(kind, nin, option, 3), nin);
    bly_cuda *g;
    must(!bly_cuda_upload(f, &g), "uploading");
    bool same = true;
    for (uint64_t from = 0; from < n && same; from += 1 << 26) {
        const size_t some = (size_t)std::min<uint64_t>(n - from, 1 << 26);
        std::vector<uint64_t> ints(some), want(BLY_BITMAP_WORDS(some));
        std::vector<uint64_t> got(want.size());
        for (size_t i = 0; i < some; i++)
            ints[i] = bly_mix64(i % 3 ? UINT64_C(1) << 40 | (from + i)
                                      : (from + i) % nin);
        shared_out(some, [&](size_t begin, size_t end) {
            bly_has_ints(f, &ints[begin], end - begin, &want[begin / 64]);
        });
        uint64_t *const keys = copied(ints);
        uint64_t *const maybe = (uint64_t *)on_device_bytes(got.size() * 8);
        std::vector<uint64_t> offsets(from ? 0 : some + 1);
        for (size_t i = 0; i < offsets.size(); i++)
            offsets[i] = 8 * i;
        uint64_t *const ends = copied(offsets);
        uint64_t *const hashes = (uint64_t *)on_device_bytes(some * 8);
        const bly_column column = { keys, NULL, ends };
        for (int form = 0; form < (from ? 1 : 3); form++) {
            must(cudaMemset(maybe, 0xff, got.size() * 8) == cudaSuccess,
                 "clearing");
            bly_status st =
                form == 0   ? bly_cuda_has_ints(g, keys, some, maybe, NULL)
                : form == 1 ? bly_cuda_has_column(g, &column, some, maybe, NULL)
                            : bly_cuda_hash_ints(g, keys, some, hashes, NULL);
            if (form == 2 && !st)
                st = bly_cuda_has_hashes(g, hashes, some, maybe, NULL);
            must(!st, "asking");
            must(cudaMemcpy(got.data(), maybe, got.size() * 8,
                            cudaMemcpyDeviceToHost) == cudaSuccess,
                 "answers");
            same = same && got == want;
        }
        cudaFree(keys);
        cudaFree(maybe);
        cudaFree(ends);
        cudaFree(hashes);
    }
    expect(same, name + ": the same answers for " + std::to_string(n) + " keys");
    bly_cuda_free(g);
    bly_free(f);
}

static std::vector<unsigned char> file_of(const bly_filter *f)
{
    std::vector<unsigned char> out((size_t)bly_written_bytes(f));
    must(bly_write_part(f, 0, out.data(), out.size()) == out.size(), "writing");
    return out;
}

/* Add n keys on the device, and on the processor: one file. */
static void same_file(const char *kind, const bly_option *option, uint64_t n,
                      bly_cuda_way way)
{
    if (only && strcmp(only, kind) != 0)
        return;
    const bly_spec spec = spec_of(kind, n, option, 5);
    bly_filter *f, *const want = built(spec, n);
    bly_cuda *g, *other;
    must(!bly_new(&spec, &f) && !bly_cuda_upload(f, &g), "uploading");
    must(!bly_cuda_upload(f, &other), "uploading");
    bly_cuda_set_way(g, way);
    for (uint64_t from = 0; from < n; from += 1 << 26) {
        uint64_t *const keys = copied(
            integers(from, (size_t)std::min<uint64_t>(n - from, 1 << 26)));
        /* Every second turn goes to another filter, which is merged in. */
        must(!bly_cuda_add_ints(from >> 26 & 1 ? other : g, keys,
                                (size_t)std::min<uint64_t>(n - from, 1 << 26),
                                NULL),
             "adding");
        cudaFree(keys);
    }
    if (n > 1 << 26)
        must(!bly_cuda_merge(g, other, NULL), "merging");
    must(!bly_cuda_download(g, f), "downloading");
    must(!bly_set_keying(want, bly_keying_of(f)), "keying");
    uint64_t ones = 0;
    bly_stats stats;
    bly_stat(f, &stats);
    must(!bly_cuda_ones(g, &ones, NULL), "ones");
    expect(file_of(f) == file_of(want) && ones > 0,
           std::string(kind) +
               (option ? std::string(",") + option->name + "=" + option->value
                       : "") +
               (way == BLY_CUDA_PARTS ? ", in parts" : "") +
               ": the same file after " + std::to_string(n) + " keys");
    bly_cuda_free(g);
    bly_cuda_free(other);
    bly_free(f);
    bly_free(want);
}

/* Without order, directly and in parts; and keys that all lead to one place. */
static void without_order(size_t n)
{
    const bly_spec spec = spec_of("blocked", n / 3 + 1, NULL, 0);
    bly_filter *const f = built(spec, n / 3);
    bly_cuda *g;
    must(!bly_cuda_upload(f, &g), "uploading");
    for (int repeated = 0; repeated < 2; repeated++) {
        std::vector<uint64_t> ints = integers(0, n);
        std::vector<uint64_t> maybe(BLY_BITMAP_WORDS(n)), want, got(n);
        if (repeated)
            std::fill(ints.begin(), ints.begin() + (ptrdiff_t)(n / 2), ints[1]);
        bly_has_ints(f, ints.data(), n, maybe.data());
        for (size_t i = 0; i < n; i++)
            if (maybe[i / 64] >> i % 64 & 1)
                want.push_back(ints[i]);
        std::sort(want.begin(), want.end());
        uint64_t *const keys = copied(ints), *const out = copied(got);
        uint64_t *const nhits = (uint64_t *)on_device_bytes(8), count = 0;
        for (int way = BLY_CUDA_DIRECT; way <= BLY_CUDA_PARTS; way++) {
            bly_cuda_set_way(g, (bly_cuda_way)way);
            must(!bly_cuda_tally_ints(g, keys, n, nhits, NULL), "a tally");
            cudaMemcpy((void *)&count, nhits, 8, cudaMemcpyDeviceToHost);
            const bool counted = count == want.size();
            must(!bly_cuda_select_ints(g, keys, n, out, nhits, NULL),
                 "selecting");
            cudaMemcpy((void *)&count, nhits, 8, cudaMemcpyDeviceToHost);
            cudaMemcpy(got.data(), out, n * 8, cudaMemcpyDeviceToHost);
            std::sort(got.begin(), got.begin() + (ptrdiff_t)count);
            expect(counted && count == want.size() &&
                       std::equal(want.begin(), want.end(), got.begin()),
                   std::string("without order, ") +
                       (way == BLY_CUDA_PARTS ? "in parts" : "directly") +
                       (repeated ? ", one key repeated" : ""));
        }
        cudaFree(keys);
        cudaFree(out);
        cudaFree(nhits);
    }
    bly_cuda_free(g);
    bly_free(f);
}

static void counts(size_t n)
{
    const bly_option width = { "width", "100003" };
    bly_spec spec = spec_of("countmin", 0, &width, 0);
    bly_filter *f;
    bly_cuda *g;
    std::vector<uint64_t> ints(n), hashes(n), want(n), got(n);
    for (size_t i = 0; i < n; i++)
        ints[i] = bly_mix64(i % 1000) % (i % 1000 + 1);
    must(!bly_new(&spec, &f) && !bly_cuda_upload(f, &g), "uploading");
    uint64_t *const keys = copied(ints), *const out = copied(want);
    must(!bly_cuda_add_ints(g, keys, n, NULL), "adding");
    must(!bly_cuda_count_ints(g, keys, n, out, NULL), "counting");
    cudaMemcpy(got.data(), out, n * 8, cudaMemcpyDeviceToHost);
    must(!bly_cuda_download(g, f), "downloading");
    bly_hash_ints(bly_hasher_of(f), ints.data(), n, hashes.data());
    must(!bly_count_hashes(f, hashes.data(), n, want.data()), "counting");
    expect(got == want, "countmin: the same counts");
    cudaFree(keys);
    cudaFree(out);
    bly_cuda_free(g);
    bly_free(f);
}

static void refusals(void)
{
    static const unsigned char secret[BLY_SECRET_BYTES] = { 1 };
    bly_spec spec = spec_of("blocked", 1000, NULL, 0);
    bly_filter *f, *other;
    bly_cuda *g = NULL;
    uint64_t *const keys = (uint64_t *)on_device_bytes(8192);
    spec.secret = secret;
    must(!bly_new(&spec, &f), "a keyed filter");
    expect_status(bly_cuda_upload(f, &g), BLY_ENOTSUP, "keyed");
    bly_free(f);
    spec = spec_of("counting", 1000, NULL, 0);
    must(!bly_new(&spec, &f), "a counting filter");
    expect_status(bly_cuda_upload(f, &g), BLY_ENOTSUP, "another kind");
    bly_free(f);
    spec = spec_of("blocked", 0, NULL, 0);
    spec.bits = UINT64_C(8) << 38; /* 256 GiB, of which nothing is touched */
    spec.items = spec.bits / 10;
    if (!bly_new(&spec, &f)) {
        expect_status(bly_cuda_upload(f, &g), BLY_ENOMEM, "too large");
        bly_free(f);
    }
    spec = spec_of("blocked", 1000, NULL, 0);
    must(!bly_new(&spec, &f) && !bly_cuda_upload(f, &g), "uploading");
    expect_status(bly_cuda_has_ints(g, (uint64_t *)((char *)keys + 4), 10, keys,
                                    NULL),
                  BLY_EINVAL, "unaligned keys");
    expect_status(bly_cuda_has_ints(g, NULL, 10, keys, NULL), BLY_EINVAL,
                  "no keys");
    expect_status(bly_cuda_has_ints(g, keys, 10, NULL, NULL), BLY_EINVAL,
                  "no place for answers");
    expect_status(bly_cuda_has_ints(g, NULL, 0, NULL, NULL), BLY_OK,
                  "nothing asked");
    expect_status(bly_cuda_count_ints(g, keys, 10, keys, NULL), BLY_ENOTSUP,
                  "no counts");
    spec.seed = 1;
    must(!bly_new(&spec, &other), "another filter");
    expect_status(bly_cuda_download(g, other), BLY_EUNFIT, "another seed");
    expect_status(bly_cuda_merge(g, g, NULL), BLY_EINVAL, "with itself");
    bly_cuda *g2;
    must(!bly_cuda_upload(other, &g2), "uploading");
    expect_status(bly_cuda_merge(g, g2, NULL), BLY_EUNFIT, "other seeds");
    bly_cuda_free(g2);
    bly_free(other);
    bly_cuda_free(g);
    bly_free(f);
    other = built(spec_of("fuse", 100, NULL, 0), 100);
    must(!bly_cuda_upload(other, &g), "uploading");
    expect_status(bly_cuda_add_ints(g, keys, 10, NULL), BLY_ENOTSUP,
                  "adding to fuse");
    expect_status(bly_cuda_download(g, other), BLY_ENOTSUP, "fuse comes back");
    bly_cuda_free(g);
    bly_free(other);
    const bly_option narrow = { "counter", "32" };
    spec = spec_of("countmin", 10, &narrow, 0);
    must(!bly_new(&spec, &f) && !bly_cuda_upload(f, &g), "uploading");
    expect_status(bly_cuda_add_ints(g, keys, (size_t)1 << 32, NULL), BLY_ERANGE,
                  "counters might overflow");
    bly_cuda_free(g);
    bly_free(f);
    cudaFree(keys);
}

int main(int argc, char **argv)
{
    const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    only = argc > 2 ? argv[2] : NULL;
    const uint64_t nin = std::min<uint64_t>(n, 20000000) / 3 + 10;
    int ndevices = 0;
    if (cudaGetDeviceCount(&ndevices) != cudaSuccess || !ndevices) {
        bly_filter *f;
        bly_cuda *g;
        const bly_spec spec = spec_of("blocked", 10, NULL, 0);
        must(!bly_new(&spec, &f), "a filter");
        expect_status(bly_cuda_upload(f, &g), BLY_EIO, "without a device");
        bly_free(f);
        printf("%u passed, %u failed, all others skipped: no CUDA device\n",
               npassed, nfailed);
        return nfailed != 0;
    }
    const bly_option k4 = { "k", "4" }, k16 = { "k", "16" };
    const bly_option shared = { "layout", "shared" }, wide = { "bits", "13" };
    const bly_option shards = { "shards", "4" }, narrow = { "counter", "32" };
    const bly_option tight = { "tight", "1" }, twelve = { "fingerprint", "12" };
    const bly_option full = { "mixing", "full" }, rows = { "width", "9999991" };
    const uint64_t few = std::min<uint64_t>(n, 1000000);
    refusals();
    same_answers("blocked", NULL, nin, n);
    same_answers("blocked", &k4, nin, few);
    same_answers("blocked", &k16, nin, few);
    same_answers("classic", NULL, nin, n);
    same_answers("classic", &shared, nin, few);
    same_answers("cuckoo", NULL, nin, n);
    same_answers("cuckoo", &twelve, nin, few);
    same_answers("cuckoo", &full, nin, few);
    same_answers("fuse", NULL, nin, n);
    same_answers("fuse", &wide, nin, few);
    same_answers("fuse", &shards, nin, few);
    same_answers("xor", NULL, nin, n);
    same_answers("ribbon", NULL, nin, n);
    same_answers("ribbon", &tight, nin, few);
    same_answers("countmin", NULL, nin, n);
    same_answers("countmin", &narrow, nin, few);
    same_file("blocked", NULL, n, BLY_CUDA_DIRECT);
    same_file("blocked", NULL, n, BLY_CUDA_PARTS);
    same_file("blocked", &k16, few, BLY_CUDA_PARTS);
    same_file("classic", NULL, n, BLY_CUDA_CHOOSE);
    same_file("classic", &shared, few, BLY_CUDA_CHOOSE);
    same_file("countmin", &rows, n, BLY_CUDA_CHOOSE);
    same_file("countmin", &narrow, few, BLY_CUDA_CHOOSE);
    without_order((size_t)std::min<uint64_t>(n, 30000000));
    counts((size_t)few);
    printf("%u passed, %u failed\n", npassed, nfailed);
    return nfailed != 0;
}

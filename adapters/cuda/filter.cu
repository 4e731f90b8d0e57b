/*
 * filter.cu - filters in device memory: upload, launch, download
 *
 * The host's half of the library. A kind is a row of `kinds`: how its view is
 * made from a filter on the host, moved to the device's copy of the cells, and
 * which kernels it has. Kernels are in blocked.h, parts.h and kinds.h.
 */
#include "bloomery_cuda.h"

#include <cuda_runtime.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "kinds.h"
#include "parts.h"

/* ------------------------------------------------------------------ errors */

static thread_local char error_text[512];

const char *bly_cuda_error(void)
{
    return error_text[0] ? error_text : "no error";
}

__attribute__((format(printf, 2, 3))) static bly_status
cuda_fail(bly_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error_text, sizeof error_text, format, args);
    va_end(args);
    return status;
}

/* The status of a call of CUDA's. */
static bly_status cuda_result(cudaError_t e, const char *doing)
{
    if (e == cudaSuccess)
        return BLY_OK;
    (void)cudaGetLastError(); /* or the next launch would report it again */
    switch (e) {
    case cudaErrorMemoryAllocation:
        return cuda_fail(BLY_ENOMEM, "%s: the device has too little memory",
                         doing);
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
        return cuda_fail(BLY_EIO, "%s: there is no CUDA device here", doing);
    case cudaErrorInsufficientDriver:
        return cuda_fail(BLY_EIO,
                         "%s: there is no driver, or it is older than the CUDA "
                         "runtime %d.%d of this library: install a newer one",
                         doing, CUDART_VERSION / 1000,
                         CUDART_VERSION % 1000 / 10);
    case cudaErrorInvalidResourceHandle:
        return cuda_fail(BLY_EINVAL,
                         "%s: the stream does not belong to the device of the "
                         "filter",
                         doing);
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevicePointer:
        return cuda_fail(BLY_EINVAL, "%s: %s", doing, cudaGetErrorString(e));
    default:
        return cuda_fail(BLY_EIO, "%s: %s", doing, cudaGetErrorString(e));
    }
}

#define TRY(call, doing)                                \
    do {                                                \
        const bly_status st_ = cuda_result(call, doing); \
        if (st_)                                        \
            return st_;                                 \
    } while (0)

/* ----------------------------------------------------------------- filters */

typedef union device_view {
    bly_blocked blocked;
    bly_view_classic classic;
    bly_view_cuckoo cuckoo;
    bly_view_fuse fuse; /* and xor */
    bly_view_ribbon ribbon;
    bly_view_countmin countmin;
} device_view;

struct bly_cuda {
    const struct device_kind *kind;
    int device;
    unsigned nprocessors;
    uint64_t cache; /* bytes of the device's L2 */
    uint64_t *cells;
    uint64_t nbytes, nwords;
    device_view view, shape; /* with the device's pointers, and with none */
    uint64_t seed, turned;
    bool folded; /* the hash of integers */
    uint64_t total; /* count-min: all that was added */
    bly_keying keying;
    bool empty; /* since it was made: the first integers give it a type */
    bly_cuda_way way;
};

typedef void ask_launch(const bly_cuda *g, cudaStream_t stream, key_source keys,
                        uint64_t n, uint32_t *maybe);
typedef void add_launch(const bly_cuda *g, cudaStream_t stream, key_source keys,
                        uint64_t n);

typedef struct device_kind {
    const char *name;
    bool (*view)(const bly_filter *f, device_view *out);
    /* Let the pointers of a view lead from `from` on to the same place from
     * `to` on. */
    void (*move)(device_view *v, const unsigned char *from, unsigned char *to);
    ask_launch *ask;
    add_launch *add; /* NULL: it only asks */
} device_kind;

#define THREADS 256u

/* How many blocks of threads: as many as there is work for, if they fit on the
 * device at once; else as many as fit, and each goes round as often as it
 * takes. With a few more than fit, most of the device would wait for these. */
template <typename K>
static unsigned grid_of(const bly_cuda *g, K *kernel, unsigned nthreads,
                        size_t shared, uint64_t nblocks)
{
    int each = 0;
    if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &each, kernel, (int)nthreads, shared) != cudaSuccess ||
        each < 1)
        each = 1;
    const uint64_t fit = (uint64_t)g->nprocessors * (unsigned)each;
    return (unsigned)(nblocks < fit ? nblocks : fit);
}

/* The same for a key per thread. */
template <typename K>
static unsigned grid_for(const bly_cuda *g, K *kernel, uint64_t n)
{
    return grid_of(g, kernel, THREADS, 0, (n + THREADS - 1) / THREADS);
}

#define ASK_WITH(kind, field)                                                \
    static void launch_##kind##_ask(const bly_cuda *g, cudaStream_t stream,  \
                                    key_source keys, uint64_t n,             \
                                    uint32_t *maybe)                         \
    {                                                                        \
        kind##_ask<<<grid_for(g, kind##_ask, n), THREADS, 0, stream>>>(      \
            g->view.field, keys, n, maybe);                                  \
    }
#define ADD_WITH(kind)                                                       \
    static void launch_##kind##_add(const bly_cuda *g, cudaStream_t stream,  \
                                    key_source keys, uint64_t n)             \
    {                                                                        \
        kind##_add<<<grid_for(g, kind##_add, n), THREADS, 0, stream>>>(      \
            g->view.kind, g->cells, keys, n);                                \
    }
#define VIEW_WITH(kind, VIEW_OF, field)                                       \
    static bool kind##_view(const bly_filter *f, device_view *out)            \
    {                                                                         \
        return VIEW_OF(f, &out->field);                                       \
    }
#define MOVE_ONE(kind, pointer)                                               \
    static void kind##_move(device_view *v, const unsigned char *from,        \
                            unsigned char *to)                                \
    {                                                                         \
        moved(&v->kind.pointer, from, to);                                    \
    }

template <typename T>
static void moved(T **pointer, const unsigned char *from, unsigned char *to)
{
    *pointer = (T *)(to + ((const unsigned char *)*pointer - from));
}

/* Turns, if there are enough of them for every warp of a full device. */
static void launch_blocked_ask(const bly_cuda *g, cudaStream_t stream,
                               key_source keys, uint64_t n, uint32_t *maybe)
{
    const unsigned grid = grid_for(g, blocked_ask, n);
    const bool turns = n >= (uint64_t)grid * THREADS * TURN;
    blocked_ask<<<grid, THREADS, 0, stream>>>(g->view.blocked, keys, n, turns,
                                              maybe);
}

ASK_WITH(classic, classic)
ASK_WITH(cuckoo, cuckoo)
ASK_WITH(fuse, fuse)
ASK_WITH(xor, fuse)
ASK_WITH(ribbon, ribbon)
ASK_WITH(countmin, countmin)
ADD_WITH(blocked)
ADD_WITH(classic)
ADD_WITH(countmin)
VIEW_WITH(blocked, bly_blocked_view, blocked)
VIEW_WITH(classic, bly_view_of_classic, classic)
VIEW_WITH(cuckoo, bly_view_of_cuckoo, cuckoo)
VIEW_WITH(fuse, bly_view_of_fuse, fuse)
VIEW_WITH(xor, bly_view_of_xor, fuse)
VIEW_WITH(ribbon, bly_view_of_ribbon, ribbon)
VIEW_WITH(countmin, bly_view_of_countmin, countmin)
MOVE_ONE(blocked, words)
MOVE_ONE(classic, bits)
MOVE_ONE(cuckoo, buckets)
MOVE_ONE(ribbon, data)
MOVE_ONE(countmin, counters)

static void fuse_move(device_view *v, const unsigned char *from,
                      unsigned char *to)
{
    moved(&v->fuse.seeds, from, to);
    moved(&v->fuse.cells, from, to);
}

static const device_kind kinds[] = {
    { "blocked", blocked_view, blocked_move, launch_blocked_ask,
      launch_blocked_add }, /* without parts */
    { "classic", classic_view, classic_move, launch_classic_ask,
      launch_classic_add },
    { "cuckoo", cuckoo_view, cuckoo_move, launch_cuckoo_ask, NULL },
    { "fuse", fuse_view, fuse_move, launch_fuse_ask, NULL },
    { "xor", xor_view, fuse_move, launch_xor_ask, NULL },
    { "ribbon", ribbon_view, ribbon_move, launch_ribbon_ask, NULL },
    { "countmin", countmin_view, countmin_move, launch_countmin_ask,
      launch_countmin_add },
};

static bool is_blocked(const bly_cuda *g)
{
    return g->kind == &kinds[0];
}

static bool is_countmin(const bly_cuda *g)
{
    return g->kind == &kinds[sizeof kinds / sizeof kinds[0] - 1];
}

/* The kind and view of a filter on the host; NULL, with a message: none. */
static const device_kind *kind_of(const bly_filter *f, device_view *view)
{
    bly_kind_info info;
    bly_stats stats;
    bly_kind_of(f, &info);
    bly_peek(f, &stats);
    memset(view, 0, sizeof *view);
    for (const device_kind &k : kinds) {
        if (strcmp(k.name, info.name) != 0)
            continue;
        if (k.view(f, view))
            return &k;
        cuda_fail(BLY_ENOTSUP,
                  stats.keyed
                      ? "a keyed filter cannot be asked on a device: its "
                        "secret would have to go there"
                      : "this %s filter cannot be asked on a device: it is of "
                        "a shape that has no view, is shared by many writers, "
                        "or is damaged",
                  info.name);
        return NULL;
    }
    cuda_fail(BLY_ENOTSUP,
              "a %s filter cannot be used on a device: only blocked, classic, "
              "cuckoo, fuse, xor, ribbon and countmin can",
              info.name);
    return NULL;
}

/* Calls work on the device of their filter, and leave the caller's current. */
class on_device {
  public:
    explicit on_device(int device)
    {
        if (cudaGetDevice(&was) != cudaSuccess || was == device)
            was = -1;
        else
            (void)cudaSetDevice(device);
    }
    ~on_device()
    {
        if (was >= 0)
            (void)cudaSetDevice(was);
    }
    on_device(const on_device &) = delete;
    on_device &operator=(const on_device &) = delete;

  private:
    int was = -1;
};

/* --------------------------------------------------------------- transfers */

static bly_status filter_allocate(bly_cuda *g, const bly_filter *f)
{
    cudaDeviceProp device;
    bly_stats stats;
    bly_peek(f, &stats);
    TRY(cudaGetDevice(&g->device), "finding a device");
    TRY(cudaGetDeviceProperties(&device, g->device), "finding a device");
    g->nprocessors = (unsigned)device.multiProcessorCount;
    g->cache = (uint64_t)device.l2CacheSize;
    const void *const cells = bly_cells(f, &g->nbytes);
    g->nwords = (g->nbytes + 7) / 8;
    /* Eight bytes behind the cells, so that a word may be loaded around the
     * last one. */
    TRY(cudaMalloc((void **)&g->cells, g->nwords * 8 + 8),
        "allocating the filter");
    TRY(cudaMemset((unsigned char *)g->cells + g->nbytes / 8 * 8, 0,
                   g->nwords * 8 + 8 - g->nbytes / 8 * 8),
        "clearing the filter");
    if (g->kind->add && !stats.items_added)
        TRY(cudaMemset(g->cells, 0, g->nbytes), "clearing the filter");
    else
        TRY(cudaMemcpy(g->cells, cells, g->nbytes, cudaMemcpyHostToDevice),
            "uploading the filter");
    g->shape = g->view;
    g->kind->move(&g->shape, (const unsigned char *)cells, NULL);
    g->kind->move(&g->view, (const unsigned char *)cells,
                  (unsigned char *)g->cells);
    g->seed = stats.seed;
    g->folded = stats.hash_id == BLY_HASH_FOLDED;
    g->keying = bly_keying_of(f);
    g->empty = !stats.items_added;
    for (size_t i = 0; i < stats.nfacts; i++)
        if (strcmp(stats.facts[i].name, "total") == 0)
            g->total = stats.facts[i].uint;
    return BLY_OK;
}

/* The seed as kernels want it, which every view has; for bly_int_hash(), blocked
 * filters keep it before the last step. */
static uint64_t turned_of(const bly_cuda *g)
{
    const device_view *const v = &g->view;
    const char *const name = g->kind->name;
    if (is_blocked(g))
        return g->folded ? v->blocked.flip : bly_int_turned(v->blocked.flip);
    if (is_countmin(g))
        return v->countmin.turned;
    return strcmp(name, "classic") == 0  ? v->classic.turned
           : strcmp(name, "cuckoo") == 0 ? v->cuckoo.turned
           : strcmp(name, "ribbon") == 0 ? v->ribbon.turned
                                         : v->fuse.turned;
}

bly_status bly_cuda_upload(const bly_filter *f, bly_cuda **out)
{
    if (!out)
        return cuda_fail(BLY_EINVAL, "out must not be NULL");
    *out = NULL;
    if (!f)
        return cuda_fail(BLY_EINVAL, "f must not be NULL");
    bly_cuda *const g = new (std::nothrow) bly_cuda();
    if (!g)
        return cuda_fail(BLY_ENOMEM, "out of memory");
    g->kind = kind_of(f, &g->view);
    const bly_status st = g->kind ? filter_allocate(g, f) : BLY_ENOTSUP;
    if (st) {
        bly_cuda_free(g);
        return st;
    }
    g->turned = turned_of(g);
    *out = g;
    return BLY_OK;
}

void bly_cuda_free(bly_cuda *g)
{
    if (!g)
        return;
    if (g->cells) {
        const on_device here(g->device);
        (void)cudaFree(g->cells);
    }
    delete g;
}

bly_status bly_cuda_download(bly_cuda *g, bly_filter *f)
{
    device_view view;
    void *cells;
    uint64_t nbytes;
    if (!g || !f)
        return cuda_fail(BLY_EINVAL, "g and f must not be NULL");
    if (!g->kind->add)
        return cuda_fail(BLY_ENOTSUP,
                         "a %s filter is only asked on a device, and is the "
                         "same as when it was uploaded",
                         g->kind->name);
    if (kind_of(f, &view) != g->kind)
        return cuda_fail(BLY_EUNFIT,
                         "this is not the %s filter that was uploaded, nor one "
                         "of its kind, shape and seed",
                         g->kind->name);
    g->kind->move(&view, (const unsigned char *)bly_cells(f, &nbytes), NULL);
    if (memcmp(&view, &g->shape, sizeof view) != 0 || nbytes != g->nbytes)
        return cuda_fail(BLY_EUNFIT,
                         "the filters differ in shape or seed: download into "
                         "the one that was uploaded, or one made alike");
    bly_status st = bly_cells_open(f, &cells, &nbytes);
    if (st)
        return cuda_fail(st, "%s", bly_error());
    const on_device here(g->device);
    TRY(cudaDeviceSynchronize(), "waiting for the device");
    TRY(cudaMemcpy(cells, g->cells, nbytes, cudaMemcpyDeviceToHost),
        "downloading the filter");
    st = bly_cells_close(f);
    if (!st && g->keying.type != bly_keying_of(f).type)
        st = bly_set_keying(f, g->keying);
    return st ? cuda_fail(st, "%s", bly_error()) : BLY_OK;
}

/* -------------------------------------------------------------------- keys */

static bly_status source_words(const bly_cuda *g, const void *words, size_t n,
                               bool ints, key_source *out)
{
    if (!g || (!words && n))
        return cuda_fail(BLY_EINVAL, "g and the keys must not be NULL");
    if ((uintptr_t)words % 8)
        return cuda_fail(BLY_EINVAL,
                         "keys must be aligned to 8 bytes on the device");
    if (ints && (g->keying.type == BLY_KEYS_TEXT ||
                 g->keying.type == BLY_KEYS_BYTES))
        return cuda_fail(BLY_ENOTSUP,
                         "this filter holds %s, not integers: give keys as a "
                         "column",
                         bly_key_type_name(g->keying.type));
    *out = key_source{};
    out->words = (const uint64_t *)words;
    out->ints = ints;
    out->turned = g->turned;
    out->folded = g->folded;
    return BLY_OK;
}

/* Keys of a column are hashed in turns, so that a batch of any size takes no
 * more than 512 MiB of device memory. */
#define COLUMN_TURN ((size_t)1 << 26)

/* What is done with the hashes of keys `from` on. */
typedef bly_status hashes_use(void *ctx, const uint64_t *hashes, size_t from,
                              size_t n, cudaStream_t stream);

static bly_status column_each(const bly_cuda *g, const bly_column *keys,
                              size_t n, hashes_use *use, void *ctx,
                              cudaStream_t stream)
{
    uint64_t *hashes = NULL;
    if (!g || !keys ||
        (n && (!keys->bytes || !keys->offsets == !keys->wide_offsets)))
        return cuda_fail(BLY_EINVAL, "a column has bytes and offsets, either "
                                     "of 32 or of 64 bits");
    if ((uintptr_t)keys->offsets % 4 || (uintptr_t)keys->wide_offsets % 8)
        return cuda_fail(BLY_EINVAL,
                         "offsets must be aligned to their size on the device");
    if (!n)
        return BLY_OK;
    const on_device here(g->device);
    const size_t most = n < COLUMN_TURN ? n : COLUMN_TURN;
    TRY(cudaMallocAsync((void **)&hashes, most * sizeof *hashes, stream),
        "allocating room for hashes");
    bly_status st = BLY_OK;
    for (size_t from = 0; from < n && !st; from += most) {
        const size_t some = n - from < most ? n - from : most;
        column_hash<<<grid_for(g, column_hash, some), THREADS, 0, stream>>>(
            *keys, from, some, g->seed, g->folded, hashes);
        st = cuda_result(cudaGetLastError(), "hashing keys");
        if (!st)
            st = use(ctx, hashes, from, some, stream);
    }
    const bly_status freed =
        cuda_result(cudaFreeAsync(hashes, stream), "releasing room for hashes");
    return st ? st : freed;
}

/* ------------------------------------------------------------------- parts */

/* Parts pay if the filter does not fit into the cache, and the keys are many:
 * from some 2^24 on where the filter is a few times the cache, and as many as
 * the filter has lines where it is much larger (measured on an H200,
 * docs/cuda.md). A part of the filter is a third of the cache at most, so that
 * two fit while one gives way to the next. */
#define PARTS_LEAST_KEYS (UINT64_C(1) << 24)
#define PARTS_SHARE 3

static bool in_parts_pays(const bly_cuda *g, uint64_t n)
{
    if (!is_blocked(g) || g->way == BLY_CUDA_DIRECT)
        return false;
    return g->way == BLY_CUDA_PARTS ||
           (g->nbytes > g->cache && n >= PARTS_LEAST_KEYS &&
            n >= g->nbytes / 64);
}

static unsigned parts_bits(const bly_cuda *g)
{
    unsigned bits = PARTS_LEAST_BITS;
    while (bits < PARTS_MOST_BITS && g->nbytes >> bits > g->cache / PARTS_SHARE)
        bits++;
    return bits;
}

/* Room for the keys of a part: n / P, and six deviations. */
static uint64_t parts_room(uint64_t n, unsigned bits)
{
    const uint64_t mean = (n >> bits) + 1;
    uint64_t root = 1;
    while (root * root < mean)
        root *= 2;
    return (mean + 6 * root + 31) / 32 * 32;
}

/* The whole batch at once, if the device has the memory; else half of it at a
 * time, and so on. *nkeys becomes the keys of a turn; 0: there is no memory for
 * any sensible number. */
static bly_status parts_allocate(unsigned bits, uint64_t n, cudaStream_t stream,
                                 parts *out, uint64_t *nkeys)
{
    for (uint64_t each = n; each >= 1; each /= 2) {
        const uint64_t room = parts_room(each, bits);
        uint64_t *at = NULL;
        const cudaError_t e = cudaMallocAsync(
            (void **)&at, ((room << bits) + (UINT64_C(1) << bits)) * 8, stream);
        if (e == cudaErrorMemoryAllocation) {
            (void)cudaGetLastError();
            continue;
        }
        TRY(e, "allocating room for keys");
        *out = parts{ at, at + (room << bits), room, bits };
        *nkeys = each;
        return BLY_OK;
    }
    *nkeys = 0;
    return BLY_OK;
}

static bly_status parts_turn(const bly_cuda *g, const parts *p,
                             const parts_job *job, const key_source *keys,
                             uint64_t n, cudaStream_t stream)
{
    const size_t shared = PARTS_SHARED(p->bits);
    TRY(cudaMemsetAsync(p->filled, 0, (size_t)8 << p->bits, stream),
        "clearing counters");
    TRY(cudaFuncSetAttribute(parts_deal,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)shared),
        "asking for shared memory");
    const uint64_t ntiles = (n + PARTS_TILE - 1) / PARTS_TILE;
    parts_deal<<<grid_of(g, parts_deal, PARTS_THREADS, shared, ntiles),
                 PARTS_THREADS, shared, stream>>>(*p, *job, *keys, n);
    TRY(cudaGetLastError(), "dealing keys to parts");
    const uint64_t nruns = (p->room + PARTS_RUN - 1) / PARTS_RUN;
    parts_work<<<(unsigned)(nruns << p->bits), THREADS, 8, stream>>>(
        *p, *job, *keys, nruns);
    return cuda_result(cudaGetLastError(), "working on parts");
}

/* Do a job for n keys that are words, in parts or directly. */
static bly_status job_run(const bly_cuda *g, const parts_job *job,
                          const key_source *keys, uint64_t n,
                          cudaStream_t stream)
{
    parts p;
    uint64_t nkeys = 0;
    if (!n)
        return BLY_OK;
    if (in_parts_pays(g, n)) {
        const bly_status st =
            parts_allocate(parts_bits(g), n, stream, &p, &nkeys);
        if (st)
            return st;
    }
    if (!nkeys) {
        if (job->words)
            g->kind->add(g, stream, *keys, n);
        else
            job_direct<<<grid_for(g, job_direct, n), THREADS, 0, stream>>>(
                *job, *keys, n);
        return cuda_result(cudaGetLastError(), "working on keys");
    }
    bly_status st = BLY_OK;
    key_source some = *keys;
    for (uint64_t from = 0; from < n && !st; from += nkeys) {
        const uint64_t left = n - from;
        some.words = keys->words + from;
        st = parts_turn(g, &p, job, &some, left < nkeys ? left : nkeys, stream);
    }
    const bly_status freed =
        cuda_result(cudaFreeAsync(p.keys, stream), "releasing room for keys");
    return st ? st : freed;
}

/* ------------------------------------------------------------------ adding */

static bly_status add_keys(bly_cuda *g, const key_source *keys, size_t n,
                           cudaStream_t stream)
{
    const uint64_t most =
        is_countmin(g) && !g->view.countmin.wide ? UINT32_MAX : UINT64_MAX;
    if (!g->kind->add)
        return cuda_fail(BLY_ENOTSUP,
                         "a %s filter cannot be added to on a device: it is "
                         "only asked there",
                         g->kind->name);
    if (is_countmin(g) && !g->view.countmin.plain)
        return cuda_fail(BLY_ENOTSUP,
                         "conservative update depends on the order of the "
                         "keys, which a device does not keep: build with "
                         "update = plain");
    if (is_countmin(g) && n > most - g->total)
        return cuda_fail(BLY_ERANGE,
                         "a counter might pass its most: use counter=64");
    const on_device here(g->device);
    bly_status st = BLY_OK;
    if (is_blocked(g)) {
        const parts_job job = { g->view.blocked, g->cells, NULL, NULL };
        st = job_run(g, &job, keys, n, stream);
    } else if (n) {
        g->kind->add(g, stream, *keys, n);
        st = cuda_result(cudaGetLastError(), "adding keys");
    }
    if (st || !n)
        return st;
    /* As bly_add_ints() does. */
    if (g->empty && keys->ints && g->keying.type == BLY_KEYS_UNKNOWN)
        g->keying.type = BLY_KEYS_UINT64;
    g->empty = false;
    g->total += is_countmin(g) ? n : 0;
    return BLY_OK;
}

bly_status bly_cuda_add_hashes(bly_cuda *g, const uint64_t *hashes, size_t n,
                               struct CUstream_st *stream)
{
    key_source keys;
    const bly_status st = source_words(g, hashes, n, false, &keys);
    return st ? st : add_keys(g, &keys, n, stream);
}

bly_status bly_cuda_add_ints(bly_cuda *g, const uint64_t *ints, size_t n,
                             struct CUstream_st *stream)
{
    key_source keys;
    const bly_status st = source_words(g, ints, n, true, &keys);
    return st ? st : add_keys(g, &keys, n, stream);
}

static bly_status add_hashed(void *ctx, const uint64_t *hashes, size_t from,
                             size_t n, cudaStream_t stream)
{
    (void)from;
    return bly_cuda_add_hashes((bly_cuda *)ctx, hashes, n, stream);
}

bly_status bly_cuda_add_column(bly_cuda *g, const bly_column *keys, size_t n,
                               struct CUstream_st *stream)
{
    return column_each(g, keys, n, add_hashed, g, stream);
}

/* ------------------------------------------------------------------ asking */

static bly_status ask_keys(const bly_cuda *g, const key_source *keys, size_t n,
                           uint64_t *maybe, cudaStream_t stream)
{
    if (!n)
        return BLY_OK;
    if (!maybe || (uintptr_t)maybe % 8)
        return cuda_fail(BLY_EINVAL, "answers need a bitmap in device memory, "
                                     "aligned to 8 bytes");
    const on_device here(g->device);
    g->kind->ask(g, stream, *keys, n, (uint32_t *)maybe);
    return cuda_result(cudaGetLastError(), "asking for keys");
}

bly_status bly_cuda_has_hashes(const bly_cuda *g, const uint64_t *hashes,
                               size_t n, uint64_t *maybe,
                               struct CUstream_st *stream)
{
    key_source keys;
    const bly_status st = source_words(g, hashes, n, false, &keys);
    return st ? st : ask_keys(g, &keys, n, maybe, stream);
}

bly_status bly_cuda_has_ints(const bly_cuda *g, const uint64_t *ints, size_t n,
                             uint64_t *maybe, struct CUstream_st *stream)
{
    key_source keys;
    const bly_status st = source_words(g, ints, n, true, &keys);
    return st ? st : ask_keys(g, &keys, n, maybe, stream);
}

struct column_asked {
    const bly_cuda *g;
    uint64_t *maybe;
};

static bly_status ask_hashed(void *ctx, const uint64_t *hashes, size_t from,
                             size_t n, cudaStream_t stream)
{
    const column_asked *const a = (const column_asked *)ctx;
    return bly_cuda_has_hashes(a->g, hashes, n,
                               a->maybe ? a->maybe + from / 64 : NULL, stream);
}

bly_status bly_cuda_has_column(const bly_cuda *g, const bly_column *keys,
                               size_t n, uint64_t *maybe,
                               struct CUstream_st *stream)
{
    column_asked asked = { g, maybe };
    return column_each(g, keys, n, ask_hashed, &asked, stream);
}

static bly_status pick_keys(const bly_cuda *g, const uint64_t *words, size_t n,
                            bool ints, bool select, uint64_t *selected,
                            uint64_t *nhits, cudaStream_t stream)
{
    key_source keys;
    const bly_status st = source_words(g, words, n, ints, &keys);
    if (st)
        return st;
    if (!is_blocked(g))
        return cuda_fail(BLY_ENOTSUP,
                         "only blocked filters answer without order; ask this "
                         "%s filter for a bitmap",
                         g->kind->name);
    if (!nhits || (select && !selected && n) || (uintptr_t)nhits % 8 ||
        (uintptr_t)selected % 8)
        return cuda_fail(BLY_EINVAL, "the number and the keys that are found "
                                     "need device memory, aligned to 8 bytes");
    const on_device here(g->device);
    TRY(cudaMemsetAsync(nhits, 0, sizeof *nhits, stream), "clearing a counter");
    const parts_job job = { g->view.blocked, NULL, nhits,
                            select ? selected : NULL };
    return job_run(g, &job, &keys, n, stream);
}

bly_status bly_cuda_tally_hashes(const bly_cuda *g, const uint64_t *hashes,
                                 size_t n, uint64_t *nhits,
                                 struct CUstream_st *stream)
{
    return pick_keys(g, hashes, n, false, false, NULL, nhits, stream);
}

bly_status bly_cuda_tally_ints(const bly_cuda *g, const uint64_t *ints,
                               size_t n, uint64_t *nhits,
                               struct CUstream_st *stream)
{
    return pick_keys(g, ints, n, true, false, NULL, nhits, stream);
}

bly_status bly_cuda_select_hashes(const bly_cuda *g, const uint64_t *hashes,
                                  size_t n, uint64_t *selected, uint64_t *nhits,
                                  struct CUstream_st *stream)
{
    return pick_keys(g, hashes, n, false, true, selected, nhits, stream);
}

bly_status bly_cuda_select_ints(const bly_cuda *g, const uint64_t *ints,
                                size_t n, uint64_t *selected, uint64_t *nhits,
                                struct CUstream_st *stream)
{
    return pick_keys(g, ints, n, true, true, selected, nhits, stream);
}

/* Words of device memory that a call writes, one per key. */
static bly_status words_out(const void *at, size_t n)
{
    return n && (!at || (uintptr_t)at % 8)
               ? cuda_fail(BLY_EINVAL, "results need device memory, aligned to "
                                       "8 bytes")
               : BLY_OK;
}

static bly_status count_keys(const bly_cuda *g, const uint64_t *words, size_t n,
                             bool ints, uint64_t *counts, cudaStream_t stream)
{
    key_source keys;
    bly_status st = source_words(g, words, n, ints, &keys);
    if (!st)
        st = words_out(counts, n);
    if (st || !n)
        return st;
    if (!is_countmin(g))
        return cuda_fail(BLY_ENOTSUP, "a %s filter does not count on a device",
                         g->kind->name);
    const on_device here(g->device);
    countmin_count<<<grid_for(g, countmin_count, n), THREADS, 0, stream>>>(
        g->view.countmin, keys, n, counts);
    return cuda_result(cudaGetLastError(), "counting keys");
}

bly_status bly_cuda_count_hashes(const bly_cuda *g, const uint64_t *hashes,
                                 size_t n, uint64_t *counts,
                                 struct CUstream_st *stream)
{
    return count_keys(g, hashes, n, false, counts, stream);
}

bly_status bly_cuda_count_ints(const bly_cuda *g, const uint64_t *ints,
                               size_t n, uint64_t *counts,
                               struct CUstream_st *stream)
{
    return count_keys(g, ints, n, true, counts, stream);
}

bly_status bly_cuda_hash_ints(const bly_cuda *g, const uint64_t *ints, size_t n,
                              uint64_t *hashes, struct CUstream_st *stream)
{
    key_source keys;
    bly_status st = source_words(g, ints, n, true, &keys);
    if (!st)
        st = words_out(hashes, n);
    if (st || !n)
        return st;
    const on_device here(g->device);
    ints_hash<<<grid_for(g, ints_hash, n), THREADS, 0, stream>>>(keys, n, hashes);
    return cuda_result(cudaGetLastError(), "hashing keys");
}

static bly_status hash_hashed(void *ctx, const uint64_t *hashes, size_t from,
                              size_t n, cudaStream_t stream)
{
    return cuda_result(cudaMemcpyAsync((uint64_t *)ctx + from, hashes, n * 8,
                                       cudaMemcpyDeviceToDevice, stream),
                       "writing hashes");
}

bly_status bly_cuda_hash_column(const bly_cuda *g, const bly_column *keys,
                                size_t n, uint64_t *hashes,
                                struct CUstream_st *stream)
{
    const bly_status st = words_out(hashes, n);
    return st ? st : column_each(g, keys, n, hash_hashed, hashes, stream);
}

/* ----------------------------------------------------------- whole filters */

bly_status bly_cuda_merge(bly_cuda *dst, const bly_cuda *src,
                          struct CUstream_st *stream)
{
    if (!dst || !src || dst == src)
        return cuda_fail(BLY_EINVAL, "merge two different filters");
    if (!dst->kind->add)
        return cuda_fail(BLY_ENOTSUP, "a %s filter cannot be merged on a "
                                      "device", dst->kind->name);
    if (dst->kind != src->kind || dst->device != src->device ||
        memcmp(&dst->shape, &src->shape, sizeof dst->shape) != 0 ||
        dst->keying.forms != src->keying.forms ||
        dst->keying.type != src->keying.type)
        return cuda_fail(BLY_EUNFIT, "the filters differ in kind, shape, seed, "
                                     "type of keys or device");
    if (is_countmin(dst) && !dst->view.countmin.plain)
        return cuda_fail(BLY_ENOTSUP,
                         "sketches with conservative update are merged on the "
                         "processor");
    const uint64_t most =
        is_countmin(dst) && !dst->view.countmin.wide ? UINT32_MAX : UINT64_MAX;
    if (is_countmin(dst) && src->total > most - dst->total)
        return cuda_fail(BLY_ERANGE,
                         "a counter might pass its most: use counter=64");
    const on_device here(dst->device);
    const unsigned grid = grid_for(dst, cells_unite, dst->nwords);
    if (is_countmin(dst))
        cells_sum<<<grid, THREADS, 0, stream>>>(
            dst->cells, src->cells, dst->nwords, dst->view.countmin.wide);
    else
        cells_unite<<<grid, THREADS, 0, stream>>>(dst->cells, src->cells,
                                                  dst->nwords);
    const bly_status st = cuda_result(cudaGetLastError(), "merging filters");
    if (!st) {
        dst->total += src->total;
        dst->empty = dst->empty && src->empty;
    }
    return st;
}

bly_status bly_cuda_ones(const bly_cuda *g, uint64_t *ones,
                         struct CUstream_st *stream)
{
    uint64_t *total = NULL;
    if (!g || !ones)
        return cuda_fail(BLY_EINVAL, "g and ones must not be NULL");
    const on_device here(g->device);
    TRY(cudaMallocAsync((void **)&total, sizeof *total, stream),
        "allocating a counter");
    cudaError_t e = cudaMemsetAsync(total, 0, sizeof *total, stream);
    if (e == cudaSuccess) {
        cells_ones<<<grid_for(g, cells_ones, g->nwords), THREADS, 0, stream>>>(
            g->cells, g->nwords, total);
        e = cudaGetLastError();
    }
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(ones, total, sizeof *ones, cudaMemcpyDeviceToHost,
                            stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(stream);
    (void)cudaFreeAsync(total, stream);
    return cuda_result(e, "counting bits");
}

bly_status bly_cuda_view(const bly_cuda *g, bly_blocked *out)
{
    if (!g || !out)
        return cuda_fail(BLY_EINVAL, "g and out must not be NULL");
    if (!is_blocked(g))
        return cuda_fail(BLY_ENOTSUP, "only blocked filters give a view");
    *out = g->view.blocked;
    return BLY_OK;
}

void bly_cuda_set_way(bly_cuda *g, bly_cuda_way way)
{
    g->way = way;
}

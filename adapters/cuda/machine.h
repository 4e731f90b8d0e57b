/*
 * machine.h - kernels that are CUDA for nvcc, and C for every other compiler
 *
 * The files of kinds beside this one are written in what the two languages have
 * in common, and in the few words below. nvcc makes kernels of them;
 * tests/test_cuda.c compiles the same lines as C and runs them with an emulator
 * of blocks and warps (tests/emulator.h), key by key against the library, on
 * machines that have no device.
 *
 *     KERNEL(name)(parameters)    a kernel
 *     KERNEL_FITTING(name, t, b)  one of whose blocks of t threads b fit on a
 *                                 multiprocessor: it gets by with registers
 *     ANYWHERE, APART             functions that kernels call; the second is
 *                                 not inlined, and takes no registers of theirs
 *     thread_at(), block_at()     which thread of its block, which block
 *     nthreads_of(), nblocks_of() how many there are
 *     warp_votes(yes)             bit i: what lane i of this warp says
 *     warp_take(x, lane)          the x of another lane; warp_take32()
 *     block_meet()                wait for all threads of the block
 *     SHARED                      the memory that a block shares, in words
 */
#ifndef BLY_CUDA_MACHINE_H
#define BLY_CUDA_MACHINE_H

#include <bloomery/views.h>

#define LANES 32u /* of a warp */

#ifdef __CUDACC__

#define KERNEL(name) static __global__ void name
#define KERNEL_FITTING(name, nthreads, nblocks) \
    static __global__ void __launch_bounds__(nthreads, nblocks) name
#define APART static __device__ __noinline__
#define ANYWHERE static inline __device__
#define CONSTANT static __constant__ const
#define UNROLLED _Pragma("unroll")

extern __shared__ uint64_t SHARED[];

ANYWHERE unsigned thread_at(void)
{
    return threadIdx.x;
}

ANYWHERE uint64_t block_at(void)
{
    return blockIdx.x;
}

ANYWHERE unsigned nthreads_of(void)
{
    return blockDim.x;
}

ANYWHERE uint64_t nblocks_of(void)
{
    return gridDim.x;
}

ANYWHERE uint32_t warp_votes(bool yes)
{
    return __ballot_sync(0xffffffff, yes);
}

ANYWHERE uint64_t warp_take(uint64_t x, unsigned lane)
{
    return __shfl_sync(0xffffffff, (unsigned long long)x, (int)lane);
}

ANYWHERE uint32_t warp_take32(uint32_t x, unsigned lane)
{
    return __shfl_sync(0xffffffff, x, (int)lane);
}

ANYWHERE void block_meet(void)
{
    __syncthreads();
}

/* Nobody waits for the old value, so the memory's own units do the work. */
ANYWHERE void cell_or(uint64_t *cell, uint64_t bits)
{
    (void)atomicOr((unsigned long long *)cell, (unsigned long long)bits);
}

ANYWHERE uint64_t cell_add(uint64_t *cell, uint64_t by)
{
    return atomicAdd((unsigned long long *)cell, (unsigned long long)by);
}

ANYWHERE uint32_t half_add(uint32_t *cell, uint32_t by)
{
    return atomicAdd(cell, by);
}

/* Two words of a line as four halves, past the first cache: the next line comes
 * from elsewhere, and would only push it out. */
ANYWHERE void line_load(const uint64_t *at, uint32_t *halves)
{
    const uint4 w = __ldcg((const uint4 *)at);
    halves[0] = w.x;
    halves[1] = w.y;
    halves[2] = w.z;
    halves[3] = w.w;
}

/* What is read or written once leaves the cache first. */
ANYWHERE uint64_t stream_load(const uint64_t *at)
{
    return __ldcs((const unsigned long long *)at);
}

ANYWHERE void stream_store(uint32_t *at, uint32_t x)
{
    __stcs(at, x);
}

/* x >> by % 32: shifting takes the last five bits of a number by itself. */
ANYWHERE uint32_t shifted(uint32_t x, uint32_t by)
{
    return __funnelshift_r(x, 0, by);
}

ANYWHERE unsigned ones_of(uint32_t x)
{
    return (unsigned)__popc(x);
}

#else

#define KERNEL(name) __attribute__((unused)) static void name
#define KERNEL_FITTING(name, nthreads, nblocks) KERNEL(name)
#define APART __attribute__((noinline, unused)) static
#define ANYWHERE static inline __attribute__((unused))
#define CONSTANT static const
#define UNROLLED

/* The emulator's, which waits for the other lanes and threads where needed. */
extern uint64_t *emulated_shared;
#define SHARED emulated_shared
unsigned thread_at(void);
uint64_t block_at(void);
unsigned nthreads_of(void);
uint64_t nblocks_of(void);
uint32_t warp_votes(bool yes);
uint64_t warp_take(uint64_t x, unsigned lane);
void block_meet(void);

ANYWHERE uint32_t warp_take32(uint32_t x, unsigned lane)
{
    return (uint32_t)warp_take(x, lane);
}

ANYWHERE void cell_or(uint64_t *cell, uint64_t bits)
{
    *cell |= bits;
}

ANYWHERE uint64_t cell_add(uint64_t *cell, uint64_t by)
{
    const uint64_t old = *cell;
    *cell += by;
    return old;
}

ANYWHERE uint32_t half_add(uint32_t *cell, uint32_t by)
{
    const uint32_t old = *cell;
    *cell += by;
    return old;
}

ANYWHERE void line_load(const uint64_t *at, uint32_t *halves)
{
    for (unsigned i = 0; i < 4; i++)
        halves[i] = (uint32_t)(at[i / 2] >> i % 2 * 32);
}

ANYWHERE uint64_t stream_load(const uint64_t *at)
{
    return *at;
}

ANYWHERE void stream_store(uint32_t *at, uint32_t x)
{
    *at = x;
}

ANYWHERE uint32_t shifted(uint32_t x, uint32_t by)
{
    return x >> by % 32;
}

ANYWHERE unsigned ones_of(uint32_t x)
{
    return (unsigned)__builtin_popcount(x);
}

#endif

ANYWHERE unsigned lane_at(void)
{
    return thread_at() % LANES;
}

/* Kernels go through keys in one of two ways: a key per thread, all threads
 * together one stretch after another; */
ANYWHERE uint64_t key_first(void)
{
    return block_at() * nthreads_of() + thread_at();
}

ANYWHERE uint64_t key_step(void)
{
    return nblocks_of() * nthreads_of();
}

/* or a turn per warp: TURN keys for each of its lanes, of which lane l has keys
 * l, 32 + l, 64 + l and so on. What a warp has to write for a turn is then a
 * whole sector of memory, and there is one addition to a common counter. */
#define TURN 8u
#define TURN_KEYS (TURN * LANES)

ANYWHERE uint64_t turn_first(void)
{
    return key_first() / LANES * TURN_KEYS;
}

ANYWHERE uint64_t turn_step(void)
{
    return key_step() * TURN;
}

#endif

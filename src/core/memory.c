/*
 * memory.c - aligned blocks, from the system or from a caller's allocator
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/cpu.h"
#include "core/memory.h"
#include "core/status.h"

/* Blocks of this size or more are mapped by themselves: two huge pages, so that
 * rounding up to whole pages costs at most half as much again, and usually far
 * less. */
#define HUGE_PAGE BLY_BLOCK_STEP
#if BLY_WASM
#define MAP_FROM SIZE_MAX /* no pages there */
#else
#define MAP_FROM (2 * HUGE_PAGE)
#endif

static void *system_alloc(void *ctx, size_t nbytes)
{
    (void)ctx;
    return malloc(nbytes);
}

static void *system_zalloc(void *ctx, size_t nbytes)
{
    (void)ctx;
    return calloc(1, nbytes);
}

static void system_release(void *ctx, void *ptr, size_t nbytes)
{
    (void)ctx;
    (void)nbytes;
    free(ptr);
}

const bly_mem bly_mem_system = { .alloc = system_alloc,
                                 .release = system_release,
                                 .zalloc = system_zalloc };

enum { MEM_FREE, MEM_TAKEN, MEM_READY };

static struct {
    _Atomic int state;
    bly_mem mem;
} known_mems[16];

unsigned bly_mem_number(const bly_mem *mem)
{
    if (mem->alloc == system_alloc)
        return 0;
    for (unsigned i = 0; i < sizeof known_mems / sizeof known_mems[0]; i++) {
        int state = MEM_FREE;
        if (atomic_compare_exchange_strong(&known_mems[i].state, &state,
                                           MEM_TAKEN)) {
            known_mems[i].mem = *mem;
            atomic_store(&known_mems[i].state, MEM_READY);
            return i + 1;
        }
        /* An entry that is being written is skipped, so the same may be entered
         * twice. */
        if (state == MEM_READY && known_mems[i].mem.ctx == mem->ctx &&
            known_mems[i].mem.alloc == mem->alloc &&
            known_mems[i].mem.release == mem->release &&
            known_mems[i].mem.zalloc == mem->zalloc)
            return i + 1;
    }
    return BLY_MEM_OWN;
}

const bly_mem *bly_mem_numbered(unsigned number)
{
    return number ? &known_mems[number - 1].mem : &bly_mem_system;
}

const bly_mem *bly_mem_lasting(const bly_mem *mem)
{
    const unsigned number = bly_mem_number(mem);
    return number == BLY_MEM_OWN ? NULL : bly_mem_numbered(number);
}

bool bly_mem_maps(const bly_mem *mem, uint64_t nbytes)
{
    return mem->alloc == system_alloc && nbytes >= MAP_FROM;
}

static unsigned char *align_up(void *p, size_t to)
{
    return (unsigned char *)p + (-(uintptr_t)p & (to - 1));
}

/* Map nbytes at a huge page boundary: reserve one more page than needed and
 * give the ends back. Huge pages from byte `huge` on. */
static bly_status block_map(size_t nbytes, int access, size_t huge,
                            bly_block *out)
{
    const size_t want = (nbytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    const size_t room = want + HUGE_PAGE;
    unsigned char *p =
        mmap(NULL, room, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return BLY_ENOMEM;
    unsigned char *at = align_up(p, HUGE_PAGE);
    const size_t head = (size_t)(at - p);
    if (head)
        munmap(p, head);
    if (HUGE_PAGE - head)
        munmap(at + want, HUGE_PAGE - head);
    /* The kernel may refuse huge pages: that is slower, but never wrong. */
    (void)madvise(at + huge, want - huge, MADV_HUGEPAGE);
    *out = (bly_block){ at, at, want, true };
    return BLY_OK;
}

bly_status bly_block_new(const bly_mem *mem, uint64_t nbytes, bly_block *out)
{
    *out = (bly_block){ 0 };
    if (nbytes > SIZE_MAX / 2 - HUGE_PAGE)
        return bly_fail(BLY_ERANGE,
                        "%llu bytes is more than this machine can "
                        "address",
                        (unsigned long long)nbytes);
    const size_t want = (size_t)nbytes;
    if (bly_mem_maps(mem, want)) {
        if (block_map(want, PROT_READ | PROT_WRITE, 0, out) == BLY_OK)
            return BLY_OK;
    } else {
        void *(*const alloc)(void *, size_t) =
            mem->zalloc ? mem->zalloc : mem->alloc;
        void *base = alloc(mem->ctx, want + BLY_LINE);
        if (base) {
            unsigned char *at = align_up(base, BLY_LINE);
            if (!mem->zalloc)
                memset(at, 0, want);
            *out = (bly_block){ at, base, want + BLY_LINE, false };
            return BLY_OK;
        }
    }
    return bly_fail(BLY_ENOMEM, "out of memory: %llu bytes for a filter",
                    (unsigned long long)nbytes);
}

void bly_block_free(const bly_mem *mem, bly_block *b)
{
    if (b->mapped)
        munmap(b->base, b->nbytes);
    else if (b->base)
        mem->release(mem->ctx, b->base, b->nbytes);
    *b = (bly_block){ 0 };
}

/* Without access rights this takes only addresses. The first 2 MiB do not use
 * huge pages, so that a few bytes take little time. */
bool bly_block_reserve(const bly_mem *mem, size_t most, bly_block *out)
{
    *out = (bly_block){ 0 };
    return mem->alloc == system_alloc && SIZE_MAX > UINT32_MAX &&
           block_map(most, PROT_NONE, HUGE_PAGE, out) == BLY_OK;
}

bool bly_block_grow(const bly_block *b, size_t from, size_t to)
{
    return mprotect(b->at + from, to - from, PROT_READ | PROT_WRITE) == 0;
}

void bly_block_drop(void *at, size_t nbytes)
{
    (void)madvise(at, nbytes, MADV_DONTNEED);
}

void bly_block_move(bly_block *b, void *(*move)(void *ctx, void *at), void *ctx)
{
    if (!b->base || b->mapped)
        return;
    const size_t before = (size_t)(b->at - (unsigned char *)b->base);
    unsigned char *base = move(ctx, b->base);
    if (!base)
        return;
    b->base = base;
    b->at = align_up(base, BLY_LINE);
    memmove(b->at, base + before, b->nbytes - BLY_LINE);
}

void *bly_mem_zalloc(const bly_mem *mem, size_t nbytes)
{
    if (mem->zalloc)
        return mem->zalloc(mem->ctx, nbytes);
    void *p = mem->alloc(mem->ctx, nbytes);
    if (p)
        memset(p, 0, nbytes);
    return p;
}

void bly_mem_release(const bly_mem *mem, void *ptr, size_t nbytes)
{
    if (ptr)
        mem->release(mem->ctx, ptr, nbytes);
}

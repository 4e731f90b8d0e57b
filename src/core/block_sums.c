/*
 * block_sums.c - bytes checked against their sums when first touched
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "core/hash.h"
#include "core/status.h"
#include "core/block_sums.h"

#ifdef BLY_TESTING
unsigned bly_sums_shift = 16;
#endif

static size_t block_bytes(uint64_t nbytes, unsigned shift, uint64_t i)
{
    const uint64_t left = nbytes - (i << shift), most = UINT64_C(1) << shift;
    return (size_t)(left < most ? left : most);
}

uint64_t bly_sums_of(const unsigned char *bytes, uint64_t nbytes,
                     unsigned shift, uint64_t i)
{
    return bly_checksum(bytes + (i << shift), block_bytes(nbytes, shift, i));
}

static size_t sums_size(uint64_t nblocks)
{
    return sizeof(bly_sums) + (size_t)(nblocks / 32 + 1) * sizeof(uint32_t);
}

bly_status bly_sums_new(const bly_mem *mem, const unsigned char *bytes,
                        uint64_t nbytes, unsigned shift, bool believed,
                        bly_block *table, bly_sums **out)
{
    const uint64_t nblocks = bly_sums_count(nbytes, shift);
    bly_sums *s = bly_mem_zalloc(mem, sums_size(nblocks));
    *out = s;
    if (!s)
        return bly_fail(BLY_ENOMEM, "out of memory");
    const size_t nleft = believed ? 0 : (size_t)nblocks;
    s->bytes = bytes;
    s->nbytes = nbytes;
    s->nblocks = nblocks;
    s->shift = shift;
    s->table = *table;
    atomic_init(&s->nleft, nleft);
    atomic_init(&s->pending, nleft > 0);
    *table = (bly_block){ 0 };
    return BLY_OK;
}

void bly_sums_free(const bly_mem *mem, bly_sums *s)
{
    if (!s)
        return;
    bly_block_free(mem, &s->table);
    bly_mem_release(mem, s, sums_size(s->nblocks));
}

void bly_sums_join(bly_sums *s, bly_sums *up)
{
    s->up = up;
    atomic_fetch_add_explicit(
        &up->pending, atomic_load_explicit(&s->pending, memory_order_relaxed),
        memory_order_relaxed);
}

/* Block i is right. The thread that sets its bit counts it. With the last one,
 * the array needs no more checks, and perhaps neither do those that it is part
 * of. */
static void mark_seen(bly_sums *s, uint64_t i)
{
    const uint32_t bit = UINT32_C(1) << (i % 32);
    if (atomic_fetch_or_explicit(&s->seen[i / 32], bit, memory_order_relaxed) &
        bit)
        return;
    if (atomic_load_explicit(&s->nleft, memory_order_relaxed) == 0 ||
        atomic_fetch_sub_explicit(&s->nleft, 1, memory_order_relaxed) != 1)
        return;
    for (; s; s = s->up)
        atomic_fetch_sub_explicit(&s->pending, 1, memory_order_relaxed);
}

#define FEW_BLOCKS 32

/* Are questions so few that a block should be fetched by itself? With less than
 * half a MiB there is nothing to save. */
static bool few_seen(const bly_sums *s)
{
    const size_t left = atomic_load_explicit(&s->nleft, memory_order_relaxed);
    return s->nblocks >= 8 && s->nblocks - left <= s->nblocks / FEW_BLOCKS &&
           !atomic_load_explicit(&s->ahead, memory_order_relaxed);
}

bool bly_sums_compare(bly_sums *s, uint64_t i)
{
    /* Where access is random, each of its pages would be read separately. In
     * other maps the system would read everything around it; it does not where
     * the page is on its way already. */
    if (s->fetch || few_seen(s))
        (void)madvise((void *)(uintptr_t)(s->bytes + (i << s->shift)),
                      block_bytes(s->nbytes, s->shift, i), MADV_WILLNEED);
    if (bly_sums_of(s->bytes, s->nbytes, s->shift, i) !=
        bly_sums_at(&s->table, i)) {
        atomic_store_explicit(&s->wrong, (size_t)i + 1, memory_order_relaxed);
        return false;
    }
    mark_seen(s, i);
    return true;
}

bool bly_sums_settle(bly_sums *s)
{
    bool right = true;
    if (atomic_load_explicit(&s->nleft, memory_order_relaxed) == 0)
        return true;
    bly_sums_read_ahead(s);
    for (uint64_t i = 0; i < s->nblocks && right; i++)
        right = bly_sums_touch(s, i << s->shift, 1);
    return right;
}

bly_status bly_sums_fail(uint64_t offset, uint64_t nbytes, unsigned shift,
                         uint64_t i)
{
    const uint64_t from = offset + (i << shift);
    return bly_fail(
        BLY_EFORMAT,
        "damaged: bytes %llu to %llu do not match their checksum (restore it "
        "from a copy, or build it again)",
        (unsigned long long)from,
        (unsigned long long)(from + block_bytes(nbytes, shift, i) - 1));
}

bly_status bly_sums_status(const bly_sums *s)
{
    const size_t wrong = atomic_load_explicit(&s->wrong, memory_order_relaxed);
    return wrong ? bly_sums_fail(s->offset, s->nbytes, s->shift, wrong - 1)
                 : BLY_OK;
}

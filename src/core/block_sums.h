/*
 * block_sums.h - bytes checked against their sums when first touched
 *
 * A mapped array is cut into blocks of 2^shift bytes, the last of which may be
 * shorter, and each has its XXH3-64 in a table that was checked when the file
 * was opened. Code that is about to read bytes touches them first. A block that
 * was never touched is read as a whole and compared with its sum; for one that
 * was right before, this costs a look at its bit.
 *
 *     bytes   |  block 0  |  block 1  |  block 2  | .. |
 *     table   |   sum 0   |   sum 1   |   sum 2   | .. |
 *     seen          1           0           1            bits
 *
 * Any number of threads may touch at once: a block may be compared twice, but
 * only one thread counts it. A wrong block stays unseen, and is compared again
 * whenever it is touched.
 *
 * The arrays of a filter and its layers form a tree: `pending` is how many
 * arrays of a branch have unseen blocks left. Once it falls to 0 it stays
 * there, and from then on a query looks at nothing else.
 */
#ifndef BLY_SUMS_H
#define BLY_SUMS_H

#include <stdatomic.h>

#include "core/bits.h"
#include "core/memory.h"

/* What the format says (docs/format.md); tests make blocks smaller. */
#ifdef BLY_TESTING
extern unsigned bly_sums_shift;
#define BLY_SUMS_SHIFT bly_sums_shift
#else
#define BLY_SUMS_SHIFT 16
#endif

typedef struct bly_sums {
    const unsigned char *bytes;
    uint64_t nbytes, nblocks;
    uint64_t offset; /* of the bytes in their file, for messages */
    unsigned shift;
    bool fetch;         /* fetch a block as a whole before it is read, always */
    _Atomic bool ahead; /* much is asked: let the system read ahead */
    bly_block table;
    struct bly_sums *up;  /* sums of the filter that this is a layer of */
    _Atomic size_t nleft; /* blocks that nobody has seen */
    _Atomic size_t wrong; /* 1 + number of a damaged one, or 0 */
    _Atomic size_t pending;
    _Atomic uint32_t seen[]; /* bit i % 32 of word i / 32: block i is right */
} bly_sums;

static inline uint64_t bly_sums_count(uint64_t nbytes, unsigned shift)
{
    return (nbytes >> shift) + ((nbytes & ((UINT64_C(1) << shift) - 1)) != 0);
}

/* The sum of block i of these bytes. */
uint64_t bly_sums_of(const unsigned char *bytes, uint64_t nbytes,
                     unsigned shift, uint64_t i);

/* Sum number i of a table as it is stored. */
static inline uint64_t bly_sums_at(const bly_block *table, uint64_t i)
{
    return bly_load64(table->at + 8 * i);
}

/* For bytes of which nothing was seen or, if `believed`, whose blocks are taken
 * to be right. The table has one sum per block. On BLY_OK it belongs to the
 * result. */
bly_status bly_sums_new(const bly_mem *mem, const unsigned char *bytes,
                        uint64_t nbytes, unsigned shift, bool believed,
                        bly_block *table, bly_sums **out);
void bly_sums_free(const bly_mem *mem, bly_sums *s);

/* Make s a branch of up. Call this before anything of either is touched. */
void bly_sums_join(bly_sums *s, bly_sums *up);

/* Is block i intact? Compares it, whatever is known of it. */
bool bly_sums_compare(bly_sums *s, uint64_t i);

/* Much will be asked. Until somebody says so, or a thirty-second of the blocks
 * was seen, a block is fetched by itself: if the disk is set to read 8 MiB
 * ahead, a question to a file that is not in memory takes a tenth of the time.
 */
static inline void bly_sums_read_ahead(bly_sums *s)
{
    atomic_store_explicit(&s->ahead, true, memory_order_relaxed);
}

/* Are all blocks intact? Those that were seen are not compared again. */
bool bly_sums_settle(bly_sums *s);

/* Are n > 0 bytes from `at` on, which lie within s, intact? */
static inline bool bly_sums_touch(bly_sums *s, uint64_t at, uint64_t n)
{
    bool right = true;
    for (uint64_t i = at >> s->shift; i <= (at + n - 1) >> s->shift; i++)
        if (!(atomic_load_explicit(&s->seen[i / 32], memory_order_relaxed) >>
                  (i % 32) &
              1))
            right &= bly_sums_compare(s, i);
    return right;
}

static inline bool bly_sums_pending(const bly_sums *s)
{
    return atomic_load_explicit(&s->pending, memory_order_relaxed) != 0;
}

/* BLY_EFORMAT, with a message that says which bytes of the file, if a damaged
 * block was found. */
bly_status bly_sums_status(const bly_sums *s);

/* The failure of block i, of bytes that begin at `offset` of their file. */
bly_status bly_sums_fail(uint64_t offset, uint64_t nbytes, unsigned shift,
                         uint64_t i);

#endif

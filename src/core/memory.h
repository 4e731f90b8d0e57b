/*
 * memory.h - aligned blocks, from the system or from a caller's allocator
 *
 * A block starts at a cache line and is zero. Large ones from the system are
 * mapped at a 2 MiB boundary and ask for huge pages: a random access then
 * misses one cache instead of a cache and the TLB.
 */
#ifndef BLY_MEMORY_H
#define BLY_MEMORY_H

#include <bloomery.h>

#define BLY_LINE 64 /* bytes of a cache line */

typedef struct bly_block {
    unsigned char *at; /* BLY_LINE-aligned; NULL: no block */
    void *base;        /* what the allocator gave */
    size_t nbytes;     /* what the allocator was asked for */
    bool mapped;       /* from mmap */
} bly_block;

/* The system's malloc and free. */
extern const bly_mem bly_mem_system;

/* A zeroed block of nbytes (0 is allowed and gives a valid pointer). */
bly_status bly_block_new(const bly_mem *mem, uint64_t nbytes, bly_block *out);

void bly_block_free(const bly_mem *mem, bly_block *b);

/* A block that grows in place: addresses for `most` bytes, none of which may be
 * touched yet. Works only for the system's allocator, and where addresses are
 * plentiful. Elsewhere false, without a message: the caller has to do
 * without. */
bool bly_block_reserve(const bly_mem *mem, size_t most, bly_block *out);

/* Allow the bytes from `from` to `to` of such a block, multiples of
 * BLY_BLOCK_STEP, to be used; or discard the contents of some that are. */
#define BLY_BLOCK_STEP ((size_t)2 << 20)
bool bly_block_grow(const bly_block *b, size_t from, size_t to);
void bly_block_drop(void *at, size_t nbytes);

/* The block may move as bly_move() says, and starts at a cache line again. */
void bly_block_move(bly_block *b, void *(*move)(void *ctx, void *at),
                    void *ctx);

/* The same allocator at an address that stays valid as long as the process
 * lives, so that objects of which there are millions need no copy of it. NULL
 * if there are too many allocators; then each object has to keep its own. */
const bly_mem *bly_mem_lasting(const bly_mem *mem);

/* The same as a number, so that small objects need no pointer to it: 0 is the
 * system's, BLY_MEM_OWN means that there is no number. */
#define BLY_MEM_OWN 255
unsigned bly_mem_number(const bly_mem *mem);
const bly_mem *bly_mem_numbered(unsigned number);

/* Do nbytes from this allocator get a mapping of their own? */
bool bly_mem_maps(const bly_mem *mem, uint64_t nbytes);

/* Small things: zeroed, BLY_ENOMEM as NULL. n * size must not overflow. */
void *bly_mem_zalloc(const bly_mem *mem, size_t nbytes);
void bly_mem_release(const bly_mem *mem, void *ptr, size_t nbytes);

#endif

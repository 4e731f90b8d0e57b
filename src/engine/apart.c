/*
 * apart.c - hashes dealt out by the memory that they lead to: apart.h
 */
#include "engine/apart.h"

#include "core/bits.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define LINE_HASHES (BLY_LINE / sizeof(uint64_t))

/* Write a line that will not be read soon. Through the caches, it would be read
 * from memory first, and push something else out. */
static inline void line_write(uint64_t *to, const uint64_t *line)
{
#if defined(__SSE2__)
    for (unsigned i = 0; i < LINE_HASHES; i += 2)
        _mm_stream_si128(
            (__m128i *)(void *)(to + i),
            _mm_load_si128((const __m128i *)(const void *)(line + i)));
#else
    memcpy(to, line, BLY_LINE);
#endif
}

/* What was written like this is in memory before it is read. */
static inline void lines_written(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

bly_status bly_apart_open(bly_apart *a, const bly_mem *mem, uint64_t nsites,
                          size_t nbytes)
{
    *a = (bly_apart){ .nsites = nsites };
    while (((nsites - 1) >> a->shift) >= BLY_APART_PARTS)
        a->shift++;
    a->nparts = (unsigned)((nsites - 1) >> a->shift) + 1;
    a->room = nbytes / sizeof *a->far / a->nparts / LINE_HASHES * LINE_HASHES;
    if (!a->room)
        a->room = LINE_HASHES;
    const bly_status st = bly_block_new(
        mem, a->nparts * (LINE_HASHES + a->room) * sizeof *a->far, &a->block);
    if (st)
        return st;
    a->near = (uint64_t *)(void *)a->block.at;
    a->far = a->near + a->nparts * LINE_HASHES;
    return BLY_OK;
}

void bly_apart_close(bly_apart *a, const bly_mem *mem)
{
    bly_block_free(mem, &a->block);
}

void bly_apart_add(bly_apart *a, const uint64_t *h, size_t n,
                   bly_apart_take *take, void *ctx)
{
    const uint64_t nsites = a->nsites;
    const unsigned shift = a->shift;
    uint64_t *const near = a->near;
    for (size_t i = 0; i < n; i++) {
        const size_t part = bly_scale(h[i], nsites) >> shift;
        const size_t at = a->fill[part]++;
        uint64_t *const line = near + part * LINE_HASHES;
        line[at % LINE_HASHES] = h[i];
        if (at % LINE_HASHES != LINE_HASHES - 1)
            continue;
        uint64_t *const room = a->far + part * a->room;
        line_write(room + at + 1 - LINE_HASHES, line);
        if (at + 1 == a->room) {
            lines_written();
            a->fill[part] = 0;
            take(ctx, (unsigned)part, room, a->room);
        }
    }
}

void bly_apart_end(bly_apart *a, bly_apart_take *take, void *ctx)
{
    lines_written();
    for (unsigned part = 0; part < a->nparts; part++) {
        uint64_t *const room = a->far + part * a->room;
        const size_t n = a->fill[part], rest = n % LINE_HASHES;
        /* A line that was begun is still in L1. */
        memcpy(room + n - rest, a->near + part * LINE_HASHES,
               rest * sizeof *room);
        a->fill[part] = 0;
        if (n)
            take(ctx, part, room, n);
    }
}

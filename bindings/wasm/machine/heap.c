/*
 * heap.c - malloc for a module of few bytes
 *
 * The memory of a module is one range that only grows, and one thread uses it.
 * It is cut into blocks that lie one behind another; each has a head, which
 * knows its own length and that of the block before it:
 *
 *     | before | length, free? | ... | before | length, free? | ... | end |
 *
 * So a block that is given back joins its free neighbours at once. Free blocks
 * are in lists by the highest bit of their length: of the list that a request
 * falls into a few are tried, and any block of a later list is large enough.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STEP 16u /* lengths and addresses; the head lies before one of them */
#define HEAD ((uint32_t)offsetof(struct block, next))
#define LEAST 32u
#define FREE 1u
#define TRIES 32
#define PAGE 65536u

struct block {
    uint32_t before;           /* length of the block in front; 0: the first */
    uint32_t length;           /* with the head; FREE in the lowest bit */
    struct block *next, *last; /* in its list, while it is free */
};

extern unsigned char __heap_base;
static struct block *lists[32];
static uint32_t filled; /* which lists have blocks */
static struct block *end;

static unsigned list_of(uint32_t length)
{
    return 31 - (unsigned)__builtin_clz(length);
}

static struct block *block_at(struct block *b, uint32_t offset)
{
    return (struct block *)((unsigned char *)b + offset);
}

static void list_leave(struct block *b)
{
    const unsigned list = list_of(b->length);
    if (b->next)
        b->next->last = b->last;
    if (b->last)
        b->last->next = b->next;
    else if (!(lists[list] = b->next))
        filled &= ~(1u << list);
    b->length &= ~FREE;
}

static void list_join(struct block *b)
{
    const unsigned list = list_of(b->length);
    b->length |= FREE;
    b->last = NULL;
    b->next = lists[list];
    if (b->next)
        b->next->last = b;
    lists[list] = b;
    filled |= 1u << list;
}

/* Its length is new: the block behind is told. */
static void set_length(struct block *b, uint32_t length)
{
    b->length = length;
    block_at(b, length)->before = length;
}

/* A block that is in no list, to the lists, together with free neighbours. */
static void block_free(struct block *b)
{
    struct block *const behind = block_at(b, b->length);
    if (behind->length & FREE) {
        list_leave(behind);
        set_length(b, b->length + behind->length);
    }
    if (b->before) {
        struct block *const front = block_at(b, -b->before);
        if (front->length & FREE) {
            list_leave(front);
            set_length(front, front->length + b->length);
            b = front;
        }
    }
    list_join(b);
}

/* More memory, as a free block at the end. */
static int heap_grow(uint32_t length)
{
    const uint32_t have = (uint32_t)__builtin_wasm_memory_size(0);
    if (!end) {
        /* What the module was given at the start, up to the last head. */
        const uintptr_t from =
            (((uintptr_t)&__heap_base + HEAD + STEP - 1) & -STEP) - HEAD;
        end = (struct block *)from;
        end->before = 0;
        end->length = 0;
    }
    const uint32_t at = (uint32_t)(uintptr_t)end;
    /* Lengths in numbers of 64 bits: the last page may end at 2^32. */
    const uint64_t top = (uint64_t)at + length + LEAST;
    uint64_t pages = (top + PAGE - 1) / PAGE;
    if (pages > have &&
        __builtin_wasm_memory_grow(0, (uint32_t)pages - have) == SIZE_MAX)
        return 0;
    if (pages < have)
        pages = have;
    struct block *const b = end;
    /* At 2^32 the last step stays unused. */
    const uint32_t reach = (uint32_t)(pages * PAGE - STEP - at) & -STEP;
    end = block_at(b, reach);
    end->length = 0;
    set_length(b, reach);
    block_free(b);
    return 1;
}

static struct block *find(uint32_t length)
{
    const unsigned list = list_of(length);
    struct block *b = lists[list];
    for (int i = 0; b && i < TRIES; i++, b = b->next)
        if (b->length >= length)
            return b;
    const uint32_t later = list < 31 ? filled & -(2u << list) : 0;
    return later ? lists[__builtin_ctz(later)] : NULL;
}

/* What a block has beyond `length` is free again. */
static void block_cut(struct block *b, uint32_t length)
{
    const uint32_t rest = b->length - length;
    if (rest < LEAST)
        return;
    set_length(b, length);
    struct block *const behind = block_at(b, length);
    set_length(behind, rest);
    block_free(behind);
}

void *malloc(size_t nbytes)
{
    if (nbytes > UINT32_MAX / 2)
        return NULL;
    uint32_t length = ((uint32_t)nbytes + HEAD + STEP - 1) & -STEP;
    length = length < LEAST ? LEAST : length;
    struct block *b = find(length);
    if (!b && heap_grow(length))
        b = find(length);
    if (!b)
        return NULL;
    list_leave(b);
    block_cut(b, length);
    return &b->next;
}

void free(void *at)
{
    if (at)
        block_free(block_at(at, -HEAD));
}

void *calloc(size_t n, size_t nbytes)
{
    size_t all;
    if (__builtin_mul_overflow(n, nbytes, &all))
        all = SIZE_MAX;
    void *const at = malloc(all);
    if (at)
        memset(at, 0, all);
    return at;
}

void *realloc(void *at, size_t nbytes)
{
    void *const to = malloc(nbytes);
    if (to && at) {
        const uint32_t had = block_at(at, -HEAD)->length - HEAD;
        memcpy(to, at, had < nbytes ? had : nbytes);
        free(at);
    }
    return to;
}

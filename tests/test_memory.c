/*
 * test_memory.c - aligned blocks, from the system or from a caller's allocator
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"

#define MIB ((size_t)1 << 20)

/* Aligned, zero, and every byte of it ours. */
static void assert_good_block(const bly_block *b, size_t nbytes)
{
    assert_non_null(b->at);
    assert_int_equal((uintptr_t)b->at % BLY_LINE, 0);
    for (size_t i = 0; i < nbytes; i++)
        if (b->at[i])
            fail_msg("byte %zu of %zu is %d", i, nbytes, b->at[i]);
    if (nbytes)
        memset(b->at, 0xff, nbytes);
}

static const size_t sizes[] = {
    0,           1,       63,
    64,          65,      4095,
    4096,        4097,    MIB,
    4 * MIB - 1, 4 * MIB, /* from here on mapped, where the system gives the
                             memory */
    4 * MIB + 1, 6 * MIB, 9 * MIB + 12345,
};

static void blocks_of_the_system(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        bly_block b;
        assert_ok(bly_block_new(&bly_mem_system, sizes[i], &b));
        assert_good_block(&b, sizes[i]);
        bly_block_free(&bly_mem_system, &b);
        assert_null(b.at);
        assert_null(b.base);
        /* Once more is allowed and does nothing. */
        bly_block_free(&bly_mem_system, &b);
    }
}

/* Pages of address space that this process has; 0 where nobody tells. */
static long pages_mapped(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%ld", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    return pages;
}

/* What was reserved to reach a boundary is given back at once, and the block
 * when it is freed: a hundred of them leave no trace. */
static void large_blocks_come_back(void **state)
{
    (void)state;
    const size_t size = 256 * MIB;
    long before = 0;
    for (int i = 0; i < 101; i++) {
        bly_block b;
        assert_ok(bly_block_new(&bly_mem_system, size, &b));
        assert_int_equal((uintptr_t)b.at % (2 * MIB), 0);
        b.at[0] = b.at[size - 1] = 1; /* both ends are there */
        bly_block_free(&bly_mem_system, &b);
        if (i == 0)
            before = pages_mapped();
    }
    /* One huge page lost each time would be 200 MiB. */
    assert_true(pages_mapped() - before < (long)(20 * MIB / 4096));
}

static void blocks_of_a_foreign_allocator(void **state)
{
    (void)state;
    ledger l;
    ledger_open(&l);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        bly_block b;
        assert_ok(bly_block_new(&l.mem, sizes[i], &b));
        assert_int_equal(l.live, 1); /* all memory is the caller's */
        assert_true((size_t)l.held >= sizes[i]);
        assert_true((size_t)l.held <= sizes[i] + BLY_LINE);
        assert_good_block(&b, sizes[i]);
        bly_block_free(&l.mem, &b);
        ledger_check(&l);
    }
    assert_int_equal(l.calls, COUNT_OF(sizes));
}

/* An allocator whose addresses are odd, as malloc's contract allows none to
 * be, but a careless one might: still aligned, still inside. */
static unsigned char crooked_room[4 * BLY_LINE + 256];
static size_t crooked_by, crooked_asked;

static void *crooked_alloc(void *ctx, size_t nbytes)
{
    (void)ctx;
    crooked_asked = nbytes;
    memset(crooked_room, 0xa5, sizeof crooked_room);
    return crooked_room + crooked_by;
}

static void crooked_release(void *ctx, void *ptr, size_t nbytes)
{
    (void)ctx;
    assert_ptr_equal(ptr, crooked_room + crooked_by);
    assert_int_equal(nbytes, crooked_asked);
}

static void alignment_from_any_address(void **state)
{
    (void)state;
    const bly_mem mem = { .alloc = crooked_alloc, .release = crooked_release };
    for (crooked_by = 0; crooked_by < BLY_LINE; crooked_by++) {
        bly_block b;
        assert_ok(bly_block_new(&mem, 128, &b));
        assert_true(b.at >= crooked_room + crooked_by);
        assert_true(b.at + 128 <= crooked_room + crooked_by + crooked_asked);
        assert_good_block(&b, 128);
        /* Nothing around it was touched. */
        for (unsigned char *p = crooked_room; p < b.at; p++)
            assert_int_equal(*p, 0xa5);
        for (size_t i = (size_t)(b.at - crooked_room) + 128;
             i < sizeof crooked_room; i++)
            assert_int_equal(crooked_room[i], 0xa5);
        bly_block_free(&mem, &b);
    }
}

/* Sizes past the machine are a status; nothing is asked for that would
 * overflow to something small. */
static void sizes_past_the_machine(void **state)
{
    (void)state;
    static const uint64_t huge[] = {
        UINT64_MAX,
        UINT64_MAX - 1,
        UINT64_MAX - BLY_LINE,
        UINT64_MAX - BLY_LINE + 1,
        UINT64_MAX - 2 * MIB,
        UINT64_C(1) << 63,
        (UINT64_C(1) << 63) - 1,
        (UINT64_C(1) << 63) - 2 * MIB,
        UINT64_C(1) << 62,
        UINT64_C(1) << 56,
    };
    ledger l;
    ledger_open(&l);
    for (size_t i = 0; i < COUNT_OF(huge); i++) {
        bly_block b;
        bly_status st = bly_block_new(&bly_mem_system, huge[i], &b);
        assert_true(st == BLY_ERANGE || st == BLY_ENOMEM);
        assert_null(b.at);
        bly_block_free(&bly_mem_system, &b);
        st = bly_block_new(&l.mem, huge[i], &b);
        assert_true(st == BLY_ERANGE || st == BLY_ENOMEM);
        assert_null(b.at);
        bly_block_free(&l.mem, &b);
    }
    assert_status(bly_block_new(&bly_mem_system, UINT64_MAX, &(bly_block){ 0 }),
                  BLY_ERANGE);
    assert_non_null(strstr(bly_error(), "18446744073709551615"));
    ledger_check(&l);
}

static void an_allocator_that_has_none(void **state)
{
    (void)state;
    ledger l;
    ledger_open(&l);
    l.fail_at = 0;
    bly_block b;
    memset(&b, 0xa5, sizeof b);
    assert_status(bly_block_new(&l.mem, 100, &b), BLY_ENOMEM);
    assert_null(b.at);
    assert_null(b.base);
    bly_block_free(&l.mem, &b);
    l.fail_at = 1;
    assert_null(bly_mem_zalloc(&l.mem, 100));
    ledger_check(&l);
}

static void small_things(void **state)
{
    (void)state;
    ledger l;
    ledger_open(&l);
    static const unsigned char zeros[1000];
    for (size_t n = 1; n < sizeof zeros; n += 37) {
        void *p = bly_mem_zalloc(&l.mem, n);
        assert_memory_equal(p, zeros, n);
        assert_int_equal(l.held, n);
        bly_mem_release(&l.mem, p, n);
    }
    bly_mem_release(&l.mem, NULL, 10);
    ledger_check(&l);
    void *p = bly_mem_zalloc(&bly_mem_system, 100);
    assert_memory_equal(p, zeros, 100);
    bly_mem_release(&bly_mem_system, p, 100);
}

/* Addresses first, memory as it is wanted, and zero again when dropped. */
static void a_block_that_grows(void **state)
{
    (void)state;
    const size_t most = 64 * BLY_BLOCK_STEP, step = BLY_BLOCK_STEP;
    ledger l;
    bly_block b;
    ledger_open(&l);
    assert_false(bly_block_reserve(&l.mem, most, &b));
    assert_null(b.at);
    if (!bly_block_reserve(&bly_mem_system, most, &b)) {
        assert_true(sizeof(size_t) < 8);
        return;
    }
    assert_int_equal((uintptr_t)b.at % step, 0);
    for (size_t at = 0; at < 6 * step; at += 2 * step) {
        assert_true(bly_block_grow(&b, at, at + 2 * step));
        assert_true(b.at[at] == 0 && b.at[at + 2 * step - 1] == 0);
        memset(b.at + at, 0xff, 2 * step);
    }
    bly_block_drop(b.at + step, step);
    assert_int_equal(b.at[step - 1], 0xff);
    assert_int_equal(b.at[step], 0);
    assert_int_equal(b.at[2 * step], 0xff);
    bly_block_free(&bly_mem_system, &b);
    assert_null(b.at);
}

static void *moved_nowhere(void *ctx, void *at)
{
    (void)at;
    ++*(int *)ctx;
    return NULL;
}

/* What cannot be reserved is not, and what cannot be moved stays. */
static void blocks_that_stay(void **state)
{
    (void)state;
    bly_block b = { 0 };
    int asked = 0;
    assert_false(bly_block_reserve(&bly_mem_system, SIZE_MAX / 4, &b));
    assert_null(b.at);
    bly_block_move(&b, moved_nowhere, &asked); /* no block */
    assert_ok(bly_block_new(&bly_mem_system, 16 * BLY_BLOCK_STEP, &b));
    assert_true(b.mapped);
    bly_block_move(&b, moved_nowhere, &asked); /* none of the allocator's */
    assert_int_equal(asked, 0);
    bly_block_free(&bly_mem_system, &b);
    assert_ok(bly_block_new(&bly_mem_system, 100, &b));
    unsigned char *const at = b.at;
    bly_block_move(&b, moved_nowhere, &asked);
    assert_int_equal(asked, 1);
    assert_ptr_equal(b.at, at);
    bly_block_free(&bly_mem_system, &b);
}

/* The ledger itself notices what it is there to notice. */
static void the_ledger_notices(void **state)
{
    (void)state;
    ledger l;
    ledger_open(&l);
    void *p = l.mem.alloc(l.mem.ctx, 10);
    assert_int_equal(l.live, 1);
    l.mem.release(l.mem.ctx, p, 11);
    assert_int_equal(l.wrong, 1);
}

static void what_may_be_used(void **state)
{
    (void)state;
    const uint64_t machine =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_in_range(bly_memory_limit(), 1 << 20, machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_the_system),
        cmocka_unit_test(large_blocks_come_back),
        cmocka_unit_test(blocks_of_a_foreign_allocator),
        cmocka_unit_test(alignment_from_any_address),
        cmocka_unit_test(sizes_past_the_machine),
        cmocka_unit_test(an_allocator_that_has_none),
        cmocka_unit_test(small_things),
        cmocka_unit_test(a_block_that_grows),
        cmocka_unit_test(blocks_that_stay),
        cmocka_unit_test(the_ledger_notices),
        cmocka_unit_test(what_may_be_used),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}

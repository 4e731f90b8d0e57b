/*
 * fuzz_table.c - sorted tables from bytes that anyone may have written
 *
 * The sums are made right first, since a fuzzer does not guess them: what is
 * then looked at is what somebody may write on purpose. Whatever opens can be
 * asked for any key, also for its own, and checked; if it passes the check, it
 * has its first and its last key.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps/table/table_file.h"
#include "base/byte_order.h"
#include "io/varint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t right_sum(const unsigned char *at, uint64_t n)
{
    static const bly_hasher by = { .id = BLY_HASH_XXH3 };
    return bly_hash(&by, at, (size_t)n);
}

/* The sums of the blocks, as far as the index makes sense. */
static void mend_blocks(unsigned char *at, uint64_t index, uint64_t end)
{
    const unsigned char *p = at + index;
    uint64_t place = 8, nkey, n;
    while (p < at + end && varint_get(&p, at + end, &nkey) &&
           nkey <= (uint64_t)(at + end - p)) {
        p += nkey;
        if (!varint_get(&p, at + end, &n) || n > index - place ||
            index - place - n < 8)
            return;
        put_le(at + place + n, right_sum(at + place, n), 8);
        place += n + 8;
    }
}

static void mend(unsigned char *at, size_t n)
{
    if (n < 8 + TABLE_FOOTER)
        return;
    unsigned char *const footer = at + n - TABLE_FOOTER;
    const uint64_t end = n - TABLE_FOOTER;
    const uint64_t index = get_le(footer + (size_t)8 * TABLE_INDEX, 8);
    const uint64_t filter = get_le(footer + (size_t)8 * TABLE_FILTER, 8);
    const uint64_t last = get_le(footer + (size_t)8 * TABLE_LAST, 8);
    memcpy(at, TABLE_MAGIC, 8);
    memcpy(footer + (size_t)8 * TABLE_WORDS, TABLE_MAGIC, 8);
    if (index >= 8 && index <= filter && filter <= last && last <= end) {
        mend_blocks(at, index, filter);
        put_le(footer + (size_t)8 * TABLE_INDEX_SUM,
               right_sum(at + index, filter - index), 8);
        put_le(footer + (size_t)8 * TABLE_FILTER_SUM,
               right_sum(at + filter, last - filter), 8);
        put_le(footer + (size_t)8 * TABLE_LAST_SUM,
               right_sum(at + last, end - last), 8);
    }
    put_le(footer + (size_t)8 * TABLE_FOOTER_SUM,
           right_sum(footer, (size_t)8 * TABLE_FOOTER_SUM), 8);
}

static void ask(struct table *t, bly_bytes key, bool has)
{
    char why[TABLE_WHY];
    struct table_counts counts = { 0 };
    bly_bytes value = { NULL, 0 };
    const enum table_found found =
        table_find(t, key, TABLE_ALL, &counts, &value, why);
    assert(!has || found == TABLE_VALUE || found == TABLE_DELETED);
    if (found == TABLE_VALUE && value.len) {
        const unsigned char *const at = value.ptr;
        assert(at >= t->at && at + value.len <= t->at + t->n);
    }
}

/* All records, one after the other; a sound table has as many as it says. */
static void read_through(struct table *t, bool right)
{
    char why[TABLE_WHY];
    struct table_reader r;
    uint64_t n = 0;
    enum table_found found;
    table_from(&r, t, (bly_bytes){ "", 0 });
    while ((found = table_next(&r, why)) == TABLE_VALUE ||
           found == TABLE_DELETED) {
        assert(
            !r.value.len ||
            ((const unsigned char *)r.value.ptr >= t->at &&
             (const unsigned char *)r.value.ptr + r.value.len <= t->at + t->n));
        n++;
    }
    assert(!right || (found == TABLE_ABSENT && n == t->records));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *const copy = malloc(size ? size : 1);
    struct table t;
    char why[TABLE_WHY];
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    if (table_open(&t, copy, size, why))
        table_close(&t);
    mend(copy, size);
    if (table_open(&t, copy, size, why)) {
        const bool right = table_check(&t, why);
        ask(&t, (bly_bytes){ "alice", 5 }, false);
        ask(&t, (bly_bytes){ "", 0 }, false);
        read_through(&t, right);
        if (t.nblocks) {
            ask(&t, t.first, right);
            ask(&t, t.last, right);
        }
        table_close(&t);
    }
    free(copy);
    return 0;
}

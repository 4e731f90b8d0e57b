/*
 * set.c - elements of lists and folders, and their symbols
 */
#include "apps/sync/set.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/byte_order.h"

bool set_fail(struct sync_set *set, const char *format, ...)
{
    va_list args;
    if (set->why[0])
        return false;
    va_start(args, format);
    vsnprintf(set->why, sizeof set->why, format, args);
    va_end(args);
    return false;
}

void set_free(struct sync_set *set)
{
    for (unsigned i = 0; i < SYNC_PIECES; i++)
        bly_coded_free(set->pieces[i]);
    free(set->elements);
    free(set->files);
    free(set->by_path);
    block_free(&set->names);
    memset(set->pieces, 0, sizeof set->pieces);
    set->elements = NULL;
    set->files = NULL;
    set->by_path = NULL;
    set->n = 0;
}

uint64_t set_secret_check(const struct sync_set *set)
{
    return set->secret ? bly_hash(&set->hasher, "bloomery sync", 13) | 1 : 0;
}

bly_coding set_coding(const struct sync_set *set)
{
    /* Each element that is found is looked for in a set, or comes with what it
     * is the hash of: a false one is noticed, and 4 bytes are enough. */
    return (bly_coding){ .width = 8, .check = 4, .secret = set->secret };
}

bool set_code(const struct sync_set *set, set_coder *code, void *to)
{
    unsigned char bytes[512 * 8];
    for (size_t at = 0; at < set->n;) {
        size_t n = 0;
        for (; n < 512 && at < set->n; n++, at++)
            put_le(bytes + 8 * n, set->elements[at], 8);
        if (code(to, bytes, n))
            return false;
    }
    return true;
}

bly_status code_symbols(void *to, const void *elements, size_t n)
{
    return bly_coded_add(to, elements, n);
}

bly_status code_strata(void *to, const void *elements, size_t n)
{
    return bly_strata_add(to, elements, n);
}

const bly_coded *set_symbols(struct sync_set *set, uint64_t at)
{
    uint64_t from = 0, to = SYNC_PIECE;
    unsigned i = 0;
    for (; i < SYNC_PIECES && at >= to; i++) {
        from = to;
        to *= 4;
    }
    if (i == SYNC_PIECES) {
        set_fail(set, "symbol %llu is past the last one",
                 (unsigned long long)at);
        return NULL;
    }
    if (set->pieces[i])
        return set->pieces[i];
    const bly_coding how = set_coding(set);
    if (bly_coded_new(&how, from, to, &set->pieces[i]) ||
        !set_code(set, code_symbols, set->pieces[i])) {
        set_fail(set, "%s", bly_error());
        bly_coded_free(set->pieces[i]);
        set->pieces[i] = NULL;
    }
    return set->pieces[i];
}

/* The first place whose element is at least e. */
static size_t lower_bound(const uint64_t *elements, size_t n, uint64_t e)
{
    size_t from = 0, to = n;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (elements[middle] < e)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

void set_range(const struct sync_set *set, uint64_t e, unsigned nbits,
               size_t *from, size_t *to)
{
    const uint64_t rest = nbits < 64 ? UINT64_MAX >> nbits : 0;
    *from = lower_bound(set->elements, set->n, e & ~rest);
    *to = *from;
    while (*to < set->n && set->elements[*to] <= (e | rest))
        ++*to;
}

bool set_has(const struct sync_set *set, uint64_t e, size_t *at)
{
    *at = lower_bound(set->elements, set->n, e);
    return *at < set->n && set->elements[*at] == e;
}

bool set_read(struct sync_set *set)
{
    set->why[0] = '\0';
    if (bly_hasher_for(&(bly_spec){ .secret = set->secret }, &set->hasher))
        return set_fail(set, "%s", bly_error());
    return set->form == SYNC_LINES ? lines_read(set) : folder_read(set);
}

/*
 * set.c - elements of lists and folders, and their symbols
 */
#define _GNU_SOURCE
#include "apps/sync/set.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/byte_order.h"
#include "base/search.h"

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
    bly_strata_free(set->strata);
    set->strata = NULL;
    if (set->root > 0)
        close(set->root);
    set->root = 0;
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

/* Elements as bytes that are the same on every machine: where these are others
 * than in memory, a copy, which the caller releases. NULL: out of memory. */
static const void *set_bytes(const struct sync_set *set, unsigned char **copy)
{
    const uint64_t one = 1;
    *copy = NULL;
    if (!set->n || get_le((const unsigned char *)&one, 8) == 1)
        return set->n ? (const void *)set->elements : "";
    *copy = malloc(set->n * 8);
    for (size_t i = 0; *copy && i < set->n; i++)
        put_le(*copy + 8 * i, set->elements[i], 8);
    return *copy;
}

bool set_code(struct sync_set *set, bly_coded *to)
{
    unsigned char *copy;
    const void *const bytes = set_bytes(set, &copy);
    const bool ok = bytes && !bly_coded_add(to, bytes, set->n);
    free(copy);
    return ok || set_fail(set, "%s", bytes ? bly_error() : "out of memory");
}

const bly_strata *set_strata(struct sync_set *set)
{
    const bly_coding how = set_coding(set);
    unsigned char *copy = NULL;
    if (set->strata)
        return set->strata;
    const bly_coded *const all = set_symbols(set, 0);
    if (!all)
        return NULL;
    const void *const bytes = set_bytes(set, &copy);
    if (!bytes || bly_strata_new(&how, &set->strata) ||
        bly_strata_add_coded(set->strata, all, bytes, set->n)) {
        set_fail(set, "%s", bytes ? bly_error() : "out of memory");
        bly_strata_free(set->strata);
        set->strata = NULL;
    }
    free(copy);
    return set->strata;
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
        !set_code(set, set->pieces[i])) {
        set_fail(set, "%s", bly_error());
        bly_coded_free(set->pieces[i]);
        set->pieces[i] = NULL;
    }
    return set->pieces[i];
}

/* The first place whose element is at least e. */
static size_t lower_bound(const uint64_t *elements, size_t n, uint64_t e)
{
    size_t at;
    LOWER_BOUND(at, n, elements[at] < e);
    return at;
}

void set_range(const struct sync_set *set, uint64_t e, unsigned nbits,
               size_t *from, size_t *to)
{
    const uint64_t rest = nbits < 64 ? UINT64_MAX >> nbits : 0;
    *from = lower_bound(set->elements, set->n, e & ~rest);
    *to = (e | rest) == UINT64_MAX
              ? set->n
              : lower_bound(set->elements, set->n, (e | rest) + 1);
}

bool set_has(const struct sync_set *set, uint64_t e, size_t *at)
{
    *at = lower_bound(set->elements, set->n, e);
    return *at < set->n && set->elements[*at] == e;
}

uint64_t stat_time(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

/* File systems take their times from a clock with steps of 1 to 10 ms: two
 * changes within one step leave the same times, and the second would go
 * unnoticed. So a file that was changed in the present step is looked at again
 * in the next. A time in the future comes from another machine's clock. */
bool stat_settled(int fd, const char *path, struct stat *st)
{
    for (unsigned i = 0;; i++) {
        struct timespec now;
        if (fd >= 0 ? fstat(fd, st) : stat(path, st))
            return false;
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
        const uint64_t n = stat_time(&now), t = stat_time(&st->st_ctim);
        if (n > t || t - n > 1000000000 || i == 50)
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}

bool set_begin(struct sync_set *set)
{
    set->why[0] = '\0';
    return !bly_hasher_for(&(bly_spec){ .secret = set->secret },
                           &set->hasher) ||
           set_fail(set, "%s", bly_error());
}

bool set_read(struct sync_set *set)
{
    if (!set_begin(set))
        return false;
    /* Both sides of a sync on one machine are read and coded side by side. */
    return (set->form == SYNC_LINES ? lines_read(set) : folder_read(set)) &&
           (!set->coded || set_symbols(set, 0));
}

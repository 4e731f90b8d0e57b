/*
 * duck_states.c - whose rows are these?
 *
 * An aggregate is given rows and a list with the state of each. But where
 * DuckDB sorts rows first, and for windows over all of them, the list has one
 * state for all rows, with other memory behind it, and DuckDB does not say so
 * (1.5.6). A row that went to the state of another window would be missing from
 * its own: a wrong no. So a list counts as one of many states only where that
 * is certain, and where it may be either the statement fails.
 *
 *     one state     | A |              8 bytes, then anything: perhaps | B |
 *     a state each  | A | B | A | ...  8 bytes for each row, or more
 *
 * The size of its memory tells. DuckDB's own allocator, jemalloc, can be asked
 * where it is exported. A build without it has its memory from libc, which can
 * be asked as well; that it does is shown by vectors of known sizes, when the
 * extension is loaded. (libc gives up to 40 bytes where 8 were asked for, so
 * that lists of two to five rows remain to be looked at if they are that short,
 * which those of FILTER are.)
 *
 * If nobody can be asked, what is in the list decides. A list of many holds
 * states and nothing else, so that one with something else in it is one state
 * and what lies behind it. If all are the same it does not matter. But states
 * that differ may be those of groups, or those of other windows.
 */
#define _GNU_SOURCE /* malloc_usable_size() */
#include "adapters/duckdb/duck_bloomery.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Memory that may not be there: the kernel looks, and does not fall. */
static bool look_at(const int to[2], const void *at, void *copy, size_t n)
{
    return write(to[1], at, n) == (ssize_t)n &&
           read(to[0], copy, n) == (ssize_t)n;
}

/* ------------------------------------------------------------------ memory */

/* How many bytes were allocated at an address; NULL where nobody tells. And how
 * many that may be at most where room for one state was asked for. */
static size_t (*memory_of)(const void *);
static size_t memory_of_one;

#ifdef __GLIBC__
/* Before what malloc(n) gives stands the size of the whole: n and 8 bytes more,
 * to a multiple of 16, and 16 more where these would be too few for anything
 * else; the last three bits are flags. */
#define LIBC_SLACK 16
static bool is_from_libc(const int to[2], const void *at, size_t n)
{
    size_t head;
    const size_t whole = (n + sizeof head + 15) / 16 * 16;
    return look_at(to, (const char *)at - sizeof head, &head, sizeof head) &&
           (head / 16 * 16 == whole || head / 16 * 16 == whole + LIBC_SLACK);
}

/* Are the data of vectors of several types where libc has its memory? */
static bool vectors_are_from_libc(void)
{
    static const int types[] = { DUCK_TINYINT, DUCK_SMALLINT, DUCK_INTEGER,
                                 DUCK_BIGINT };
    duck_type made[4] = { NULL };
    int to[2];
    if (pipe(to))
        return false;
    for (size_t i = 0; i < 4; i++)
        made[i] = duck.create_logical_type(types[i]);
    duck_chunk chunk = duck.create_data_chunk(made, 4);
    bool all = chunk != NULL;
    for (size_t i = 0; i < 4 && all; i++)
        all = is_from_libc(
            to, duck.vector_get_data(duck.data_chunk_get_vector(chunk, i)),
            (size_t)KEYS_MOST << i);
    duck.destroy_data_chunk(&chunk);
    for (size_t i = 0; i < 4; i++)
        duck.destroy_logical_type(&made[i]);
    close(to[0]);
    close(to[1]);
    return all;
}

static size_t libc_memory_of(const void *at)
{
    return malloc_usable_size((void *)(uintptr_t)at);
}

static void ask_libc(void)
{
    void *const one = malloc(sizeof one);
    if (one && vectors_are_from_libc()) {
        memory_of = libc_memory_of;
        memory_of_one = memory_of(one) + LIBC_SLACK;
    }
    free(one);
}
#endif

void states_begin(void *library)
{
    size_t (*size_for)(size_t, int);
    void *const of = dlsym(library, "duckdb_je_malloc_usable_size");
    void *const for_size = dlsym(library, "duckdb_je_nallocx");
    memory_of = NULL;
    if (of && for_size) {
        memcpy(&memory_of, &of, sizeof memory_of);
        memcpy(&size_for, &for_size, sizeof size_for);
        memory_of_one = size_for(sizeof(void *), 0);
    }
#ifdef __GLIBC__
    if (!memory_of)
        ask_libc();
#endif
}

/* ------------------------------------------------------------------- lists */

static bool state_is_at(const int to[2], const void *at)
{
    uint64_t sign = 0;
    return (uintptr_t)at % sizeof sign == 0 &&
           look_at(to, at, &sign, sizeof sign) && sign == STATE_SIGN;
}

/* Are there n states that are not all the same? */
static bool states_differ(const int to[2], void *const *states, size_t n)
{
    void *list[KEYS_MOST];
    bool differ = false;
    if (!look_at(to, states, list, n * sizeof *list))
        return false;
    for (size_t i = 1; i < n; i++) {
        if (list[i] == list[i - 1])
            continue;
        if (!state_is_at(to, list[i]))
            return false;
        differ = true;
    }
    return differ;
}

const char *states_many(void *const *states, size_t n, bool *many)
{
    const size_t nbytes = n * sizeof *states;
    const size_t room = memory_of ? memory_of(states) : 0;
    int to[2];
    *many = room >= nbytes && room > memory_of_one;
    if (*many || n < 2 || (memory_of && room < nbytes))
        return NULL;
    if (n > KEYS_MOST)
        return "more rows at once than DuckDB gives";
    if (pipe(to))
        return "too many open files";
    const bool differ = states_differ(to, states, n);
    close(to[0]);
    close(to[1]);
    return differ ? "this build of DuckDB does not tell groups from windows; "
                    "right: one group per statement, by WHERE, or a build "
                    "with an allocator that can be asked, such as npm's"
                  : NULL;
}

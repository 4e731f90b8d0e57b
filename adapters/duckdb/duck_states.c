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
 * where it is exported. A build without it has its memory from malloc(), of
 * whatever library that is, which can be asked as well. That it does is shown
 * when the extension is loaded: memory that DuckDB gave back comes from
 * malloc() then. (glibc gives up to 40 bytes where 8 were asked for, so that
 * lists of two to five rows remain to be looked at if they are that short,
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
#ifdef __linux__
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

#ifdef __linux__ /* where malloc_usable_size() is */
/* What glibc may add to a block, since the rest would be too few bytes for
 * another. */
#define MALLOC_SLACK 16

/* The addresses of the data of four vectors, of 2, 4, 8 and 16 KiB, which
 * DuckDB has given back. */
#define VECTORS 4
static bool vectors_had(const void *had[VECTORS])
{
    static const int types[VECTORS] = { DUCK_TINYINT, DUCK_SMALLINT,
                                        DUCK_INTEGER, DUCK_BIGINT };
    duck_type made[VECTORS] = { NULL };
    for (size_t i = 0; i < VECTORS; i++)
        made[i] = duck.create_logical_type(types[i]);
    duck_chunk chunk = duck.create_data_chunk(made, VECTORS);
    const bool ok = chunk != NULL;
    for (size_t i = 0; i < VECTORS && ok; i++)
        had[i] = duck.vector_get_data(duck.data_chunk_get_vector(chunk, i));
    duck.destroy_data_chunk(&chunk);
    for (size_t i = 0; i < VECTORS; i++)
        duck.destroy_logical_type(&made[i]);
    return ok;
}

/* Does malloc() now give what was DuckDB's? No two allocators have one
 * address; and those that are asked for a size again give what came back last,
 * or soon. */
#define MALLOC_TRIES 64
static bool memory_is_mallocs(void)
{
    const void *had[VECTORS];
    void *got[VECTORS][MALLOC_TRIES];
    bool same = false;
    if (!vectors_had(had))
        return false;
    for (size_t i = 0; i < VECTORS; i++)
        for (size_t t = 0; t < MALLOC_TRIES; t++) {
            got[i][t] = malloc((size_t)KEYS_MOST << i);
            for (size_t j = 0; j < VECTORS; j++)
                same |= got[i][t] && got[i][t] == had[j];
        }
    for (size_t i = 0; i < VECTORS; i++)
        for (size_t t = 0; t < MALLOC_TRIES; t++)
            free(got[i][t]);
    return same;
}

static size_t malloc_memory_of(const void *at)
{
    return malloc_usable_size((void *)(uintptr_t)at);
}

static void ask_malloc(void)
{
    void *const one = malloc(sizeof one);
    if (one && memory_is_mallocs()) {
        memory_of = malloc_memory_of;
        memory_of_one = memory_of(one) + MALLOC_SLACK;
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
#ifdef __linux__
    if (!memory_of)
        ask_malloc();
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
                    "make one group per statement, by WHERE, or use a build "
                    "with an allocator that can be asked, such as npm's"
                  : NULL;
}

/*
 * sized_laws.h - laws for structs that may grow
 *
 * A program that was compiled for an older version has a shorter struct, one
 * for a later version a longer one. Each struct here is a block of exactly the
 * size that it is said to have, so that a sanitizer sees a byte too much.
 */
#ifndef BLY_TESTS_SIZED_H
#define BLY_TESTS_SIZED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support.h"

/* Call the sized function with a struct of this size; release what it made. */
typedef bly_status sized_call(void *object, size_t size);

/* A function, and the struct that it takes or (object NULL) gives. */
typedef struct sized_row {
    const char *name;
    const void *object;
    size_t size;
    sized_call *call;
} sized_row;

#define SIZED_LATER 24 /* bytes of fields that are not known yet */

static inline unsigned char *sized_block(size_t size, int byte)
{
    unsigned char *const block = malloc(size ? size : 1);
    assert_non_null(block);
    memset(block, byte, size);
    return block;
}

/* What a shorter struct lacks is zero; of a longer one, what is not known has
 * to be. */
static inline void takes_any_size(const sized_row *row)
{
    const size_t size = row->size;
    for (size_t n = 0; n <= size + SIZED_LATER; n += 8) {
        const size_t known = n < size ? n : size;
        unsigned char *const own = sized_block(size, 0);
        unsigned char *const theirs = sized_block(n, 0);
        memcpy(own, row->object, known);
        memcpy(theirs, row->object, known);
        const bly_status st = row->call(own, size);
        if (row->call(theirs, n) != st)
            fail_msg("%s: %zu of %zu bytes: %s", row->name, n, size,
                     bly_error());
        if (n > size) {
            theirs[n - 1] = 1;
            assert_int_equal(row->call(theirs, n), BLY_EINVAL);
            assert_non_null(strstr(bly_error(), "does not know"));
        }
        free(own);
        free(theirs);
    }
}

/* A result is cut to the size of a shorter struct; of a longer one, the rest is
 * zero. */
static inline void gives_any_size(const sized_row *row)
{
    const size_t size = row->size;
    unsigned char *const own = sized_block(size, 0xaa);
    assert_ok(row->call(own, size));
    for (size_t n = 0; n <= size + SIZED_LATER; n += 8) {
        unsigned char *const theirs = sized_block(n, 0xaa);
        assert_ok(row->call(theirs, n));
        if (memcmp(theirs, own, n < size ? n : size) != 0)
            fail_msg("%s: %zu of %zu bytes differ", row->name, n, size);
        for (size_t i = size; i < n; i++)
            assert_int_equal(theirs[i], 0);
        free(theirs);
    }
    free(own);
}

static inline void sized_laws(const sized_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].object)
            takes_any_size(&rows[i]);
        else
            gives_any_size(&rows[i]);
}

/* Every function that a header declares with BLY_SIZED has a row. */
static inline void none_is_unsized(const char *header, const sized_row *rows,
                                   size_t n)
{
    FILE *const in = fopen(header, "r");
    char line[512], name[64];
    if (!in)
        skip_for("run from another folder: no header here");
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "BLY_SIZED(%*[a-z_], %63[a-z0-9_]", name) != 1)
            continue;
        size_t i = 0;
        while (i < n && strcmp(rows[i].name, name) != 0)
            i++;
        if (i == n)
            fail_msg("%s has no test of sizes", name);
    }
    fclose(in);
}

#endif

/*
 * thrift.h - reading Thrift's compact protocol, within bounds
 *
 * A struct is fields, each an id and a type and a value, and an end. The reader
 * walks them in the order they are written; what it does not know it skips.
 *
 *     bly_thrift_field f = { 0 };
 *     while (bly_thrift_next(&t, &f))
 *         if (f.id == 1)
 *             n = bly_thrift_uint(&t, &f, INT32_MAX);
 *         else
 *             bly_thrift_skip(&t, &f);
 *
 * Nothing is read past the end and nothing allocated. Whatever is wrong makes
 * t->bad true and moves it to its end, so that every loop ends; who reads asks
 * for t->bad once, when done.
 */
#ifndef BLY_FOREIGN_THRIFT_H
#define BLY_FOREIGN_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bloomery.h>

enum {
    BLY_THRIFT_TRUE = 1,
    BLY_THRIFT_FALSE = 2,
    BLY_THRIFT_BYTE = 3,
    BLY_THRIFT_I16 = 4,
    BLY_THRIFT_I32 = 5,
    BLY_THRIFT_I64 = 6,
    BLY_THRIFT_DOUBLE = 7,
    BLY_THRIFT_BINARY = 8,
    BLY_THRIFT_LIST = 9,
    BLY_THRIFT_SET = 10,
    BLY_THRIFT_MAP = 11,
    BLY_THRIFT_STRUCT = 12,
    BLY_THRIFT_UUID = 13
};

typedef struct bly_thrift {
    const unsigned char *at, *end;
    bool bad;
} bly_thrift;

typedef struct bly_thrift_field {
    int32_t id; /* 0 before the first */
    unsigned type;
    const unsigned char *start; /* of its header */
} bly_thrift_field;

/* The next field of a struct; false at its end, or where it is bad. The value
 * must then be read or skipped. */
bool bly_thrift_next(bly_thrift *t, bly_thrift_field *f);

/* The value of a field; one of another type, or out of 0 to max, is bad. */
uint64_t bly_thrift_uint(bly_thrift *t, const bly_thrift_field *f,
                         uint64_t max);
bool bly_thrift_bool(bly_thrift *t, const bly_thrift_field *f);
bly_bytes bly_thrift_text(bly_thrift *t, const bly_thrift_field *f);

/* Go into a field that is a list of a type: its length, which the bytes that
 * are left can hold. BLY_THRIFT_I32 stands for the type of its elements. */
size_t bly_thrift_list(bly_thrift *t, const bly_thrift_field *f, unsigned type);

/* Go into a field that is a struct; false, and bad, if it is none. */
bool bly_thrift_struct(bly_thrift *t, const bly_thrift_field *f);

/* An element of a list of i32. */
int64_t bly_thrift_element_int(bly_thrift *t);

void bly_thrift_skip(bly_thrift *t, const bly_thrift_field *f);

/* The id of a union's member, its value skipped; 0 where it has none. */
int32_t bly_thrift_member(bly_thrift *t, const bly_thrift_field *f);

/* -- writing, into room for BLY_THRIFT_ROOM bytes; the number is returned -- */

#define BLY_THRIFT_ROOM 16

/* The header of a field that follows one of another id in its struct. */
size_t bly_thrift_put_field(unsigned char *out, int32_t after, int32_t id,
                            unsigned type);
size_t bly_thrift_put_int(unsigned char *out, int64_t x);

#endif

/*
 * texts.h - whole texts, and how they are cut
 */
#ifndef BLY_IO_TEXTS_H
#define BLY_IO_TEXTS_H

#include <bloomery/sketch.h>

#include "io/input.h"

/* Options of what cuts texts into shingles; zero is the default. */
struct cutting {
    unsigned unit; /* words, or 1: characters */
    uint64_t size;
};

/* False, with the reason printed, if that cannot be meant. */
bool cutting_shingles(const struct cutting *c, bly_shingling *out);

/* The family of that name; NULL is the default. False, with the reason printed,
 * if there is none. */
bool family_named(const char *name, bly_family *out);

/* The most bytes of a file that is a table or a list of rules: many times those
 * of the longest there are. */
#define TEXT_MOST ((uint64_t)256 << 20)

/* All of a file, decompressed, into b; "-" is standard input. False, with the
 * reason printed, if that fails, or if there are more than `most` bytes: a
 * device, a pipe or a few bytes of gzip can have any number. longer: what to do
 * then, for the message. */
bool text_read(const char *name, uint64_t most, const char *longer,
               struct block *b);

#endif

/*
 * sifted.h - a filter from those keys of an input that a sieve lets through
 */
#ifndef BLY_IO_SIFTED_H
#define BLY_IO_SIFTED_H

#include "io/keys.h"

/* Picks those keys of a batch that are to come in. */
typedef bly_status sift_fn(const void *ctx, struct batch *b);

/* NULL, with the reason printed. What was read and picked is in job. */
bly_filter *sifted_filter(const bly_spec *spec, const struct keys *keys,
                          uint64_t threads, sift_fn *sift, const void *ctx,
                          struct job *job);

#endif

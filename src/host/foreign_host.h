/*
 * foreign_host.h - for a server that keeps foreign filters in its own memory
 *
 * Not part of the public interface, as host.h is not.
 */
#ifndef BLY_HOST_FOREIGN_H
#define BLY_HOST_FOREIGN_H

#include <bloomery/foreign.h>

#include "host/host.h"

/* Let a memory source that defragments move a part of *f, as bly_move() does.
 * Part 0 includes what belongs to all parts, and *f itself. Cannot fail. */
void bly_foreign_move(bly_foreign **f, size_t part, bly_mover *move, void *ctx);

/* bly_foreign_sum() in steps, for callers that must not pause for as long as a
 * pass over large sketches takes. bly_foreign_sums_some() computes ncells more
 * cells of the sum, in memory of its own; *nleft becomes the number that is
 * left. When none is left, bly_foreign_sums_end() makes f the sum, which is as
 * fast as changing two pointers. *changed says whether f is different now. The
 * old contents of f are released by bly_foreign_sums_free(), which may be
 * called in any thread.
 *
 * Pass the same sketches to each call, in the same order. They may change in
 * the meantime; the sum is that of the sketches at the end. After keys of a
 * sketch were raised, report them with bly_foreign_sums_raised(), where
 * `before` is what bly_foreign_changes() was before. After any other change, or
 * if a sketch was replaced by another, the computation starts again; if that
 * happens often, it is done in one go. */
typedef struct bly_foreign_sums bly_foreign_sums;
bly_status bly_foreign_sums_new(const bly_foreign *f,
                                const bly_foreign *const *from,
                                const int64_t *weights, size_t n,
                                bly_foreign_sums **out);
bly_status bly_foreign_sums_some(bly_foreign_sums *s, const bly_foreign *f,
                                 const bly_foreign *const *from,
                                 uint64_t ncells, uint64_t *nleft);
void bly_foreign_sums_raised(bly_foreign_sums *s, const bly_foreign *f,
                             uint64_t before, const bly_bytes *keys, size_t n);
bly_status bly_foreign_sums_end(bly_foreign_sums *s, bly_foreign *f,
                                const bly_foreign *const *from, bool *changed);
void bly_foreign_sums_free(bly_foreign_sums *s);

#endif

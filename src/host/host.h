/*
 * host.h - for a server that keeps filters in its own memory
 *
 * Not part of the public interface: the Redis module has these functions
 * because it is linked with the static library. They do in steps what a server
 * must not stop for, and let its memory be moved. What bloomery.h says about
 * failure and ownership holds here too.
 */
#ifndef BLY_HOST_H
#define BLY_HOST_H

#include <bloomery.h>

/* ---------------------------------------------------------- defragmenting */

/* Let a memory source that defragments move the memory of f. `move` is given a
 * pointer that alloc returned. It returns the new address of those bytes, or
 * NULL if they stay where they are. f itself may move: the result is its new
 * address, and the old one is no longer valid. Cannot fail. */
typedef void *bly_mover(void *ctx, void *at);
bly_filter *bly_move(bly_filter *f, bly_mover *move, void *ctx);

/* ---------------------------------------------------------------- copying */

/* bly_clone() in steps, for callers that must not pause for as long as copying
 * a large filter takes. bly_cloning_some() copies up to nbytes more; *out stays
 * NULL until the copy is complete, and then is the copy. f must not change or
 * be freed in the meantime. If that happens, give the copy up with
 * bly_cloning_free(), which does not look at f. */
typedef struct bly_cloning bly_cloning;
bly_status bly_cloning_new(const bly_filter *f, bly_cloning **out);
bly_status bly_cloning_some(bly_cloning *c, uint64_t nbytes, bly_filter **out);
void bly_cloning_free(bly_cloning *c);

/* ---------------------------------------------------------------- writing */

/* bly_write_part() in steps, for callers that must not pause for as long as a
 * pass over a large filter takes. A file begins with its checksums, so they are
 * computed first: bly_parts_sum() reads at most nbytes of f, or one block of 64
 * KiB, and returns whether all checksums are known. bly_parts_take() is
 * bly_write_part(), and computes those that are still missing. A filter that is
 * coded or compact has no checksums to compute ahead. f must not change or be
 * freed before the last of these calls; bly_parts_free() does not look at
 * it. */
typedef struct bly_parts bly_parts;
bly_status bly_parts_new(const bly_filter *f, bly_parts **out);
bool bly_parts_sum(bly_parts *p, uint64_t nbytes);
size_t bly_parts_take(bly_parts *p, uint64_t from, void *buf, size_t nbytes);
void bly_parts_free(bly_parts *p);

#endif

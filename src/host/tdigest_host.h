/*
 * tdigest_host.h - for a server that keeps digests in its own memory
 *
 * Not part of the public interface, as host.h is not.
 */
#ifndef BLY_HOST_TDIGEST_H
#define BLY_HOST_TDIGEST_H

#include <bloomery/sketch.h>

#include "host/host.h"

/* Let an allocator move the memory of a digest, as bly_move() does: move() gets
 * the address of each of its two blocks. Cannot fail. */
void bly_tdigest_move(bly_tdigest **t, bly_mover *move, void *ctx);

#endif

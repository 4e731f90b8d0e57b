/*
 * living.h - a filter in a file that many processes map and change
 *
 *     0        4096      8192     12288   16384   32768             + nbytes
 *     +--------+---------+--------+-------+-------+-----------------+
 *     | header | control | counts | zeros | users | payload         |
 *     +--------+---------+--------+-------+-------+-----------------+
 *
 * header   that of a record (record.h), of format version 4, written once
 * control  what changes: struct bly_live_control
 * counts   additions: BLY_LIVE_COUNTS sums, one to a cache line
 * users    who has it open: BLY_LIVE_USERS_MOST slots
 * payload  the cells, as in any file, but without a checksum
 *
 * Everything but the header and the cells is in the byte order of the machine
 * that made the file; others refuse it. docs/format.md is normative.
 */
#ifndef BLY_LIVING_H
#define BLY_LIVING_H

#include <bloomery/live.h>

#include "kinds/kind.h"

/* Can filters of this kind and shape be live? BLY_ENOTSUP, with the reason. */
bly_status bly_live_able(const bly_kind *kind, const bly_shape *s);

/* Write a live file of `model` to path, where none may be: BLY_EBUSY if there
 * is one. A model without data is empty. */
bly_status bly_live_create(const char *path, const bly_filter *model);

/* Open the live filter in path. *missing: there is no file, of which nothing is
 * said. */
bly_status bly_live_open(const char *path, const bly_access *how, bool *missing,
                         bly_filter **out);

#endif

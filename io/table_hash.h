/*
 * table_hash.h - the hash of tables whose keys come from outside
 *
 * Whoever knows the hash of a table can choose keys that all meet in one place,
 * and then every step goes past all of them. So the secret is one of this
 * process. What is printed or written must not depend on it: neither on the
 * order of the slots, nor on a hash that is kept.
 */
#ifndef BLY_IO_TABLE_HASH_H
#define BLY_IO_TABLE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t table_hash(const void *key, size_t n);

#endif

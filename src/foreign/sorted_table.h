/*
 * sorted_table.h - the frame of LevelDB's and RocksDB's tables
 *
 * A table is blocks, each followed by a byte for its compression and a
 * checksum; a footer at its end says where the metaindex is, which is a block
 * of names and places of further blocks, the filter's among them.
 *
 *     block:  entries, then the places of some of them, 4 bytes each, then
 *             how many those are
 *     entry:  bytes shared with the key before, further bytes of the key, bytes
 *             of the value (three varints); the key's bytes; the value
 *     place:  offset and size, two varints
 */
#ifndef BLY_FOREIGN_SORTED_TABLE_H
#define BLY_FOREIGN_SORTED_TABLE_H

#include "foreign/format.h"

typedef struct bly_table_place {
    uint64_t at, n;
} bly_table_place;

#define BLY_TABLE_TRAILER 5 /* compression, checksum */
#define BLY_TABLE_NAME 128

/* Two varints of n bytes; false where they do not hold them. */
bool bly_table_place_read(const unsigned char *p, size_t n,
                          bly_table_place *out);

/* The bytes of an uncompressed block; its checksum is right where it is one of
 * CRC-32C (with_crc). `what` is it, in messages. */
bly_status bly_table_block(const bly_foreign *f, bly_table_place place,
                           bool with_crc, const char *what, bly_bytes *out);

/* The first name in a metaindex that begins with prefix, and its place; the
 * name is "" where there is none. A name that is too long is none. */
bly_status bly_table_find(bly_bytes metaindex, const char *prefix,
                          char name[BLY_TABLE_NAME], bly_table_place *out);

#endif

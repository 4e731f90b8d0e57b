/*
 * hashes.h - the hash functions that foreign formats are bound to
 *
 * MurmurHash3 (its older forms are in bloomery/foreign.h; Austin Appleby,
 * public domain), FNV-1 (Fowler, Noll, Vo), MD5 (RFC 1321), LevelDB's own, the
 * checksum CRC-32C, XXH64 by xxHash's header. Good enough for a filter, and
 * none of them for anything else here.
 */
#ifndef BLY_FOREIGN_HASHES_H
#define BLY_FOREIGN_HASHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The x64 form with 128 bits; out[0] and out[1] are its halves. Some write the
 * tail's bytes as signed numbers: signed_tail. */
void bly_murmur3_128(const void *bytes, size_t len, uint32_t seed,
                     bool signed_tail, uint64_t out[2]);

/* The same with seed 0, and behind it that of the bytes with a byte 1 at their
 * end. */
void bly_murmur3_256(const void *bytes, size_t len, uint64_t out[4]);

/* The x86 form with 32 bits. signed_bytes: those above 0x7f are sign-extended
 * before they are shifted. */
uint32_t bly_murmur3_32(const void *bytes, size_t len, uint32_t seed,
                        bool signed_bytes);

/* LevelDB's own 32 bits. signed_tail: RocksDB's mistake, which it keeps: the
 * last bytes are added as signed numbers. */
uint32_t bly_leveldb_hash(const void *bytes, size_t len, bool signed_tail);

uint64_t bly_fnv1(const void *bytes, size_t len);
uint64_t bly_xxh64(const void *bytes, size_t len, uint64_t seed);

/* CRC-32C (Castagnoli) of bytes that follow those of sum; 0 to begin. */
uint32_t bly_crc32c(uint32_t sum, const void *bytes, size_t len);

/* MD5 of several pieces, one after another. */
typedef struct bly_md5 {
    uint32_t state[4];
    uint64_t nbytes;
    unsigned char block[64];
} bly_md5;

void bly_md5_start(bly_md5 *m);
void bly_md5_add(bly_md5 *m, const void *bytes, size_t len);
void bly_md5_end(bly_md5 *m, unsigned char out[16]);

#endif

/*
 * digests.h - the digests that published lists are made of
 *
 * Lists of leaked passwords hold SHA-1 or NTLM (which is MD4), lists of URLs
 * the beginnings of SHA-256. They name list entries here and guard nothing:
 * what keeps a secret takes libsodium.
 */
#ifndef BLY_IO_SUMS_H
#define BLY_IO_SUMS_H

#include <stddef.h>

enum { SHA1_BYTES = 20, MD4_BYTES = 16, SHA256_BYTES = 32 };

void sum_sha1(const void *bytes, size_t len, unsigned char out[SHA1_BYTES]);
void sum_md4(const void *bytes, size_t len, unsigned char out[MD4_BYTES]);
void sum_sha256(const void *bytes, size_t len, unsigned char out[SHA256_BYTES]);

#endif

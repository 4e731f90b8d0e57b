/*
 * icp.h - answers to ICP, the question of one proxy to another
 *
 *     u8  opcode: 1 query, 2 hit, 3 miss     u8 version, 2    u16 length
 *     u32 number of the request              u32 options, u32 their data
 *     u32 sender
 *     u32 requester (of queries alone)       URL, ended by a zero
 *
 * Big-endian, over UDP (RFC 2186).
 */
#ifndef BLY_DIGEST_ICP_H
#define BLY_DIGEST_ICP_H

#include <bloomery.h>

#define ICP_MOST 65536

/* The URL that a packet asks for; false: it is no query. */
bool icp_query(const unsigned char *packet, size_t n, bly_bytes *url);

/* Make the answer to what icp_query() took: its length, at most that of the
 * query. */
size_t icp_answer(const unsigned char *query, bool hit, unsigned char *out);

#endif

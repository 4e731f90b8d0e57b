/*
 * gossip_wire.h - what peers tell each other, as bodies of frames
 *
 *     address      u8 family (4 or 6), 16 bytes, u16 port: 19 bytes
 *     pair         u64 id, u64 version
 *     RUMOUR       address of the asker, u16 n, pairs; answer: u64 of bits
 *     COMPARE      address of the asker, 64 u32 sums; answer: u32 n, pairs
 *     FETCH_THESE  address of the asker, u16 n, pairs; answer: u16 n, entries
 *     entry        address, u64 version, u8 form (0 dropped, 1 whole, 2 delta),
 *                  u64 base if it is a delta, u32 length and bytes if not 0
 *     QUERY        u16 k, u8 n words: f64 weight, u8 length, bytes
 *                  answer: u16 n documents: u32 words in it, u32 of each word
 *                  of the query, u16 length and path, u16 length and context
 *     SEARCH       u16 k, u8 n words: u8 length, bytes
 *                  answer: u32 peers, u32 with the words, u32 asked, u32
 *                  silent, u16 n documents: address, f64 score, path, context
 *     PEERS        nothing; answer: see gossip_node.c
 *
 * Ids are hashes of addresses and need not be sent with these.
 */
#ifndef BLY_GOSSIP_WIRE_H
#define BLY_GOSSIP_WIRE_H

#include "wire/frame.h"
#include "apps/net/gossip/gossip.h"
#include "apps/net/gossip/gossip_rank.h"

enum { GOSSIP_QUERY = 40, GOSSIP_SEARCH, GOSSIP_LIST };

void gossip_put_address(struct blob *b, const struct address *a);
void gossip_get_address(struct body *b, struct address *a);

/* A message as the body of a frame; begins with blob_start(). */
void gossip_put(struct blob *b, const struct gossip_message *m);

/* The same of bytes from outside, to be freed; deltas are applied to what g
 * has. False if they are none, or there is no memory. */
bool gossip_get(const struct gossip *g, uint8_t type, bool answer,
                const unsigned char *bytes, size_t n, struct gossip_message *m);

/* Words to be looked for, with their weights or without. */
void query_put(struct blob *b, const struct query *q, bool weights);
bool query_get(const struct frame *f, struct query *q, bool weights);

/* Documents that one peer has found, in memory of the caller, who has room for
 * q->k; texts are borrowed. The number, negative: they are none. */
void found_put(struct blob *b, const struct query *q, const struct found *at,
               size_t n);
int found_get(const struct frame *f, const struct query *q, struct found *at);

/* A text with the u16 of its length. */
void text_put(struct blob *b, bly_bytes text);
bly_bytes text_get(struct body *b);

#endif

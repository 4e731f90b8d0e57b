/*
 * chord_wire.h - who is where, and the messages of the ring as bytes
 *
 *     descriptor   u64 id, u16 v, u8 family, 16 bytes address, u16 port,
 *                  u64 incarnation: 37 bytes
 *     question     u64 id of the member that is asked (0: any of the process),
 *                  u8 1 and the descriptor of the asker, or u8 0;
 *                  u8 flags, u64 target, u8 n and n dead ids, u8 n and n
 *                  descriptors
 *     answer       u8 kind, u8 n and n descriptors
 *
 * An id is a hash of address, port and v, which is below 64, so that nobody can
 * choose a place on the ring; descriptors that say something else are
 * dropped.
 */
#ifndef BLY_CHORD_WIRE_H
#define BLY_CHORD_WIRE_H

#include "base/lookup.h"
#include "wire/address.h"
#include "chord/chord.h"
#include "wire/frame.h"

#define WIRE_DESCRIPTOR 37
#define WIRE_MOST_V 64 /* virtual nodes at one address */
#define BOOK_MOST 65536

struct descriptor {
    uint64_t id;
    uint16_t v;
    struct address address;
    uint64_t incarnation;
};

/* The id of virtual node v at an address, and that of a ring by its name and
 * what its members must agree on. */
uint64_t descriptor_id(const struct address *a, unsigned v);
uint64_t wire_ring(const char *name, unsigned bits, unsigned r,
                   unsigned copies);

/* Who is known: a number from 1 for each id. Zero is empty. */
struct book {
    struct descriptor *at;
    struct lookup by_id;
    size_t n, room;
    size_t nfree, hand; /* numbers to be used again, and where to look */
};

/* The number of d, which is new or known; 0 if its id is not that of its
 * address, or there is no room. */
uint32_t book_add(struct book *b, const struct descriptor *d);
/* Forget all whose numbers are not marked in used, which has n + 1 elements:
 * whoever lies about members must not fill the book. */
void book_keep(struct book *b, const bool *used);
const struct descriptor *book_get(const struct book *b, uint32_t at);
void book_free(struct book *b);

void wire_put_descriptor(struct blob *to, const struct descriptor *d);

/* A question to the member `to`, or an answer. `self` NULL: from nobody. */
void wire_put_question(struct blob *b, const struct book *book,
                       const struct chord_message *m, uint64_t to,
                       const struct descriptor *self);
void wire_put_answer(struct blob *b, const struct book *book,
                     const struct chord_message *m);

/* The same of bytes from outside: false if they are none. */
bool wire_get_question(const struct frame *f, struct book *book,
                       struct chord_message *m, uint64_t *to,
                       struct chord_peer *from);
bool wire_get_answer(const struct frame *f, struct book *book,
                     struct chord_message *m);

#endif

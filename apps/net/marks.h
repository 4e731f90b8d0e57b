/*
 * marks.h - what routers write into packets on their way
 *
 * A packet carries a few bytes of bits, and every interface has a mark: bits
 * that it sets, and bits that it clears. It was here before if those are set
 * and these are clear.
 *
 *     loops     a mark sets k bits, as a Bloom filter does for one key. A
 *               packet that has all of them already goes round in a circle,
 *               or is unlucky (Icarus: Whitaker and Wetherall, 2002).
 *     the way   a mark sets k1 bits and clears k0, as a generalized filter
 *               does. The victim of a packet asks which of its neighbours are
 *               marked, then which of theirs, and finds the sender. Since marks
 *               clear bits too, a sender who starts with ones gains nothing
 *               (Laufer, Velloso and Duarte, 2011).
 *
 * Marks are made by the library's filters, keyed with a secret of the network:
 * otherwise a sender could compute them and pose as anybody.
 */
#ifndef BLY_NET_MARKS_H
#define BLY_NET_MARKS_H

#include <bloomery.h>

#define MARK_BYTES 32 /* at most: 256 bits */
#define MARK_NAME 64  /* bytes of a name, at most */

struct mark {
    unsigned nbytes;
    uint64_t set[MARK_BYTES / 8], clear[MARK_BYTES / 8];
};

/* What a mark is like: m bits, a multiple of 64 up to 256; k bits are set,
 * where k divides m, and k0 cleared for the way (0: for loops). */
struct mark_spec {
    unsigned bits, k, k0;
    const unsigned char *secret; /* BLY_SECRET_BYTES; NULL: seed instead */
    uint64_t seed;
};

/* A maker of marks, until mark_maker_free(); and the mark of a name. */
struct mark_maker;
bly_status mark_maker_new(const struct mark_spec *spec,
                          struct mark_maker **out);
bly_status mark_make(struct mark_maker *maker, const void *name, size_t len,
                     struct mark *out);
/* That of the interface by which one node reaches another: both names, and a
 * NUL between them. */
bly_status mark_make_link(struct mark_maker *maker, const char *from,
                          const char *to, struct mark *out);
void mark_maker_free(struct mark_maker *maker);

/* Bits of a packet; and the same as they lie in one, of m->nbytes. */
struct marked {
    uint64_t words[MARK_BYTES / 8];
};
void marked_get(const struct mark *m, const unsigned char *at,
                struct marked *out);
void marked_put(const struct mark *m, const struct marked *from,
                unsigned char *at);

static inline bool mark_in(const struct mark *m, const struct marked *p)
{
    uint64_t wrong = 0;
    for (unsigned i = 0; i < MARK_BYTES / 8; i++)
        wrong |= (m->set[i] & ~p->words[i]) | (m->clear[i] & p->words[i]);
    return !wrong;
}

static inline void mark_add(const struct mark *m, struct marked *p)
{
    for (unsigned i = 0; i < MARK_BYTES / 8; i++)
        p->words[i] = (p->words[i] | m->set[i]) & ~m->clear[i];
}

/* The chance that a packet on its way through d interfaces, each once, is taken
 * for one that goes round: 1 - prod (1 - (1 - (1 - 1/m)^(k i))^k) for i < d. It
 * takes the marks that a packet has not met for independent, and is too low
 * where most bits are set: by 3 % at one half. */
double mark_false_loop(unsigned m, unsigned k, unsigned d);

#endif

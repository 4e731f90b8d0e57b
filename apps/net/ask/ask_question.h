/*
 * ask_question.h - a question that goes back the way that a packet came
 *
 * The receiver of a packet asks the last router on its way, and that one asks
 * its neighbours, each with the bits of this one packet. Nobody knows more than
 * its own links: a router compares its own mark towards the one who asks.
 *
 * A mark sets a bit and clears another. Where a packet lacks it, a router that
 * came later on the way has written over it; so the question takes along which
 * bits were written by those that it has passed:
 *
 *     bits      01101000...    of the packet
 *     written   00100010...    by the routers between here and the receiver
 *
 * A router whose mark differs only in bits that were written may be on the way.
 * One that differs in any other bit is not, for certain. So the way of a packet
 * is always among the routers that are found, however many marks were written
 * over: there are no gaps. Others match by chance, half of them for each bit
 * that is not written.
 *
 * Messages, in frames (wire/frame.h), a name being u8 length and its bytes:
 *
 *     mark      a question: are you on the way? Answered at once
 *               name of who asks, u8 bytes, bits, written
 *               answer: u8 fits, u8 bits that are as in the mark, u8 bits of it
 *     walk      the same, and who is behind you? Answered when that is known
 *               u8 hops, u16 routers, u32 ms: at most; as mark; u8 number,
 *               names of the routers on the way so far
 *               answer: u16 number, for each u16 the one before it, or 65535,
 *               u8 state, u8 left, u8 all, name
 *     who       who are your neighbours? u8 number, for each name, address
 *
 * No sockets here.
 */
#ifndef BLY_NET_ASK_QUESTION_H
#define BLY_NET_ASK_QUESTION_H

#include "apps/net/marks.h"
#include "wire/address.h"
#include "wire/frame.h"

#define ASK_NAME 64 /* with the NUL */
#define ASK_HOPS 64
#define ASK_ROUTERS 256 /* of one walk, at most */
#define ASK_LINKS 64
#define ASK_FIRST 65535 /* nobody is before it */

enum { ASK_MARK = 96, ASK_WALK, ASK_WHO };

struct ask_bits {
    unsigned nbytes;
    struct marked bits, written;
};

struct ask_question {
    unsigned hops, routers, ms;
    char asker[ASK_NAME];
    struct ask_bits b;
    unsigned nway;
    char way[ASK_HOPS][ASK_NAME];
};

enum ask_state {
    ASK_FOUND,
    ASK_SILENT, /* it did not answer, and its neighbours were asked */
    ASK_BUSY,   /* it is on the way, but has too many questions */
    ASK_CUT     /* behind it nobody was asked: too far, too many, too late */
};

struct ask_node {
    unsigned before; /* the one that asked it; ASK_FIRST */
    enum ask_state state;
    unsigned left, all; /* bits of its mark */
    char name[ASK_NAME];
};
struct ask_tree {
    unsigned n;
    struct ask_node at[ASK_ROUTERS];
};

struct ask_link {
    char name[ASK_NAME];
    struct address at; /* family 0: it answers no questions */
};
struct ask_links {
    unsigned n;
    struct ask_link at[ASK_LINKS];
};

/* May the packet have this mark? How many of its bits are there, of how many.
 * Then those of the mark are written. */
bool ask_fits(const struct mark *m, const struct ask_bits *b, unsigned *left,
              unsigned *all);
void ask_write(const struct mark *m, struct ask_bits *b);

bool ask_on_way(const struct ask_question *q, const char *name);
bool ask_name_set(char out[ASK_NAME], const char *name);

/* Bodies; reading returns false for what is malformed. */
void ask_put(struct blob *b, uint8_t type, const struct ask_question *q);
bool ask_take(const struct frame *f, struct ask_question *q);
void ask_put_tree(struct blob *b, const struct ask_tree *t);
bool ask_take_tree(const struct frame *f, struct ask_tree *t);
void ask_put_links(struct blob *b, const struct ask_links *l);
bool ask_take_links(const struct frame *f, struct ask_links *l);

/* Append a tree below a node of another: its first takes the place of `at` if
 * that is ASK_FIRST. What finds no room is left out, and the node is cut. */
void ask_join(struct ask_tree *t, unsigned before, const struct ask_tree *more);
unsigned ask_add(struct ask_tree *t, const struct ask_node *node);

#endif

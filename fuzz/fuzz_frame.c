/*
 * fuzz_frame.c - frames between nodes, and what members of a ring make of them
 *
 * The bytes are what a peer sends: frames, one after another. Each is read,
 * its body taken for a question and for an answer, and given to a member of a
 * small ring. Whatever comes: no crash, nothing allocated beyond the frame, and
 * answers that were not asked for change neither list nor predecessor.
 */
#include <stdlib.h>
#include <string.h>

#include "chord/chord_client.h"

static unsigned nsent;

static void drop_send(struct chord *n, struct chord_peer to,
                      const struct chord_message *m)
{
    (void)n;
    (void)to;
    nsent += m->npeers <= CHORD_MOST_PEERS;
}

static void drop_timer(struct chord *n, enum chord_timer t, uint64_t delay)
{
    (void)n;
    (void)t;
    (void)delay;
}

static void drop_found(struct chord *n, const struct chord_found *f)
{
    (void)n;
    (void)f;
}

static void drop_news(struct chord *n, enum chord_news what)
{
    (void)n;
    (void)what;
}

static const struct chord_host drops = { drop_send, drop_timer, drop_found,
                                         drop_news };

static const struct chord_ring small = { .bits = 64,
                                         .r = 4,
                                         .walks = 2,
                                         .fingers = 1,
                                         .dead_for = 10,
                                         .dead_most = 100 };

/* A body as records are read from it. */
static void take_records(const struct frame *f)
{
    struct body b = { f->body, f->nbody, false };
    struct stored r;
    const unsigned n = (unsigned)body_number(&b, 2);
    for (unsigned i = 0; i < n && !b.bad; i++)
        stored_take(&b, &r);
    b = (struct body){ f->body, f->nbody, false };
    stored_take(&b, &r);
    r.nbytes = (uint32_t)b.n;
    if (!b.bad && stored_genuine(&r, b.at) && r.flags > STORE_IS_TOMB)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct book book = { 0 };
    struct chord_walk walks[2];
    struct chord n;
    struct chord_message m;
    struct chord_peer from, members[5];
    size_t used;
    struct frame f;
    for (unsigned i = 0; i < 5; i++) {
        const struct address a = { 4, { 127, 0, 0, 1 }, (uint16_t)(7001 + i) };
        const struct descriptor d = { descriptor_id(&a, 0), 0, a, 1 };
        const struct chord_peer p = { d.id, book_add(&book, &d) };
        unsigned at = i;
        for (; at > 0 && members[at - 1].id > p.id; at--)
            members[at] = members[at - 1];
        members[at] = p;
    }
    chord_init(&n, &small, &drops, NULL, members[0], walks, 1);
    chord_ideal(&n, members, 5, 0);
    for (size_t at = 0; at < size; at += used) {
        if (frame_read(data + at, size - at, &f, &used) != FRAME_WHOLE)
            break;
        if (used > size - at || f.nbody > used)
            abort();
        uint64_t to;
        take_records(&f);
        if (!(f.flags & FRAME_ANSWER)) {
            if (wire_get_question(&f, &book, &m, &to, &from))
                chord_receive(&n, from, &m, at);
            continue;
        }
        struct chord_peer succ[CHORD_MOST_SUCC];
        const uint64_t pred = n.pred.id;
        memcpy(succ, n.succ, sizeof succ);
        if (wire_get_answer(&f, &book, &m)) {
            /* Not one of those that are under way. */
            m.request = n.last_request + 1;
            chord_receive(&n, members[1], &m, at);
        }
        if (pred != n.pred.id || memcmp(succ, n.succ, sizeof succ) != 0)
            abort();
    }
    book_free(&book);
    return 0;
}

/* The sums are mended, so that the fuzzer gets past them. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, most);
    if (size < FRAME_OVERHEAD || seed % 8 == 0)
        return size;
    const struct frame f = { data[5], (uint16_t)(data[6] & 3), data[8], 7, NULL,
                             0 };
    return frame_close(data, size - FRAME_OVERHEAD, &f);
}

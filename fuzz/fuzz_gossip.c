/*
 * fuzz_gossip.c - frames between gossiping peers, and what a peer makes of them
 *
 * The bytes are what others send: frames, one after another, each a question or
 * an answer to whatever is under way. Whatever comes: no crash, a directory
 * that keeps its bounds, and an own entry that nobody else has written.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/net/gossip/gossip_wire.h"

static const struct gossip_rules rules = { .interval = 10,
                                           .compare = 40,
                                           .enough = 2,
                                           .dead = 100,
                                           .most_peers = 16,
                                           .most_bytes = 1 << 20 };

static uint32_t last_asked;

static void drop_ask(struct gossip *g, const struct address *to,
                     const struct gossip_message *m)
{
    (void)g;
    (void)to;
    last_asked = m->request;
}

static void drop_timer(struct gossip *g, enum gossip_timer t, uint64_t delay)
{
    (void)g;
    (void)t;
    (void)delay;
}

static const struct gossip_host drops = { drop_ask, drop_timer };

static void take_query(const struct frame *f)
{
    struct query q;
    struct found found[QUERY_BEST];
    if (query_get(f, &q, false) && (!q.n || q.k > QUERY_BEST))
        abort();
    if (!query_get(f, &q, true))
        q = (struct query){ .k = 20, .n = 2 };
    const int n = found_get(f, &q, found);
    for (int i = 0; i < n; i++)
        if (!(found_score(&q, &found[i]) >= 0) ||
            found[i].path.len > FOUND_PATH)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct address self = { 4, { 127, 0, 0, 1 }, 7001 };
    const struct address other = { 4, { 127, 0, 0, 1 }, 7002 };
    const uint64_t words[] = { 1, 2, 3 };
    struct gossip g;
    struct gossip_message m, back;
    struct frame f;
    size_t used;
    struct summary *const s = summary_new(words, 3, NULL, 0);
    const struct gossip_news news = {
        gossip_id(&other), 5, other, s, false, 0
    };
    if (!gossip_init(&g, &rules, &drops, NULL, &self, &other, 1, 1, 1) || !s)
        abort();
    gossip_publish(&g, s, 0);
    gossip_take(&g, &news, true);
    for (size_t at = 0; at < size; at += used) {
        if (frame_read(data + at, size - at, &f, &used) != FRAME_WHOLE)
            break;
        take_query(&f);
        gossip_tick(&g, at & 1 ? GOSSIP_TIMER_COMPARE : GOSSIP_TIMER_RUMOUR,
                    at);
        const bool answer = f.flags & FRAME_ANSWER;
        if (gossip_get(&g, f.type, answer, f.body, f.nbody, &m)) {
            if (answer) {
                gossip_answer(&g, last_asked, &m, at);
            } else {
                gossip_question(&g, &m, &back, at);
                gossip_message_free(&back);
            }
            gossip_message_free(&m);
        } else {
            gossip_silent(&g, last_asked, at);
        }
        if (g.n > rules.most_peers || g.entries[0].summary != s ||
            g.entries[0].id != gossip_id(&self))
            abort();
    }
    gossip_free(&g);
    summary_drop(s);
    return 0;
}

/* The sums are mended, so that the fuzzer gets past them. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    static const uint8_t types[] = { GOSSIP_RUMOUR, GOSSIP_COMPARE,
                                     GOSSIP_FETCH_THESE, GOSSIP_QUERY };
    size = LLVMFuzzerMutate(data, size, most);
    if (size < FRAME_OVERHEAD || seed % 8 == 0)
        return size;
    const struct frame f = {
        types[data[5] % 4], (uint16_t)(data[6] & 1), data[8], 7, NULL, 0
    };
    return frame_close(data, size - FRAME_OVERHEAD, &f);
}

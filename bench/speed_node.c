/*
 * speed_node.c - what do nodes of a network cost, and how well do they find
 * keys?
 *
 *     build/bench/speed_node [NODES [KEYS]]
 *
 * A random graph in which every node has four links, and keys that are at one
 * node each. Nodes tell their neighbours until nobody has anything new.
 * Then keys are asked for at nodes that have them within `depth` hops: the
 * query goes over the link that is first in bly_node_find(), never over one
 * twice; at a dead end it goes back, once. arrived: the share that reaches the
 * key; stretch: hops of these over those of the shortest path; right: the share
 * of distances that are the true ones. Then a key is added at one node after
 * another, and all messages that follow are counted.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include <bloomery/node.h>

#include "bench/measure.h"

#define MOST_LINKS 4

typedef struct place {
    bly_node *v;
    size_t to[MOST_LINKS];
    size_t nlinks;
} place;

static place *places;
static size_t nplaces, nkeys, *order, *queue;
static unsigned *hops;
static uint64_t chaos = 1;
static uint64_t nmessages, nbytes;
static double tell_ns, hear_ns;

static void must(bly_status st)
{
    if (!st)
        return;
    fprintf(stderr, "node: %s\n", bly_error());
    exit(2);
}

static size_t any(size_t n)
{
    return n ? (size_t)(mix(chaos++) % n) : 0;
}

static const char *name_of(size_t i)
{
    static char name[24];
    snprintf(name, sizeof name, "%zu", i);
    return name;
}

static void join(size_t a, size_t b)
{
    for (size_t i = 0; i < places[a].nlinks; i++)
        if (places[a].to[i] == b)
            return;
    places[a].to[places[a].nlinks++] = b;
    places[b].to[places[b].nlinks++] = a;
    must(bly_node_link(places[a].v, name_of(b)));
    must(bly_node_link(places[b].v, name_of(a)));
}

/* A message is heard at once. */
typedef struct hearing {
    size_t from, to;
    bool changes;
} hearing;

static bool carry(void *ctx, const void *bytes, size_t n)
{
    hearing *const h = ctx;
    const double start = now_ns();
    bly_news news;
    must(bly_node_hear(places[h->to].v, name_of(h->from), bytes, n, 1, &news));
    hear_ns += now_ns() - start;
    if (news.changes) {
        h->changes = true;
        nmessages++;
        nbytes += n;
    }
    return true;
}

/* One round: all nodes tell all neighbours. */
static bool round_of_news(void)
{
    bool changes = false;
    for (size_t a = 0; a < nplaces; a++)
        for (size_t i = 0; i < places[a].nlinks; i++) {
            hearing h = { a, places[a].to[i], false };
            const double start = now_ns(), before = hear_ns;
            must(bly_node_tell(places[a].v, name_of(h.to), carry, &h, NULL));
            tell_ns += now_ns() - start - (hear_ns - before);
            changes = changes || h.changes;
        }
    return changes;
}

static uint64_t hash_of(uint64_t key)
{
    return bly_hash(bly_node_hasher(places[0].v), &key, sizeof key);
}

/* Hops from a to b, or more than `most`. */
static unsigned shortest(size_t a, size_t b, unsigned most)
{
    for (size_t i = 0; i < nplaces; i++)
        hops[i] = most + 1;
    size_t first = 0, last = 0;
    hops[a] = 0;
    queue[last++] = a;
    while (first < last && hops[b] > most) {
        const size_t x = queue[first++];
        for (size_t i = 0; hops[x] < most && i < places[x].nlinks; i++)
            if (hops[places[x].to[i]] > hops[x] + 1) {
                hops[places[x].to[i]] = hops[x] + 1;
                queue[last++] = places[x].to[i];
            }
    }
    return hops[b];
}

/* The hops that a query takes from a to its key at b; 0: it does not arrive. */
static unsigned travel(size_t a, size_t b, uint64_t hash)
{
    size_t path[64] = { a }, used[64][2], nused = 0, at = 0;
    bool back = false;
    for (unsigned taken = 0; taken < 60; taken++) {
        const size_t x = path[at];
        bly_way ways[MOST_LINKS + 1];
        if (x == b)
            return taken;
        const size_t n =
            bly_node_find_hash(places[x].v, hash, ways, MOST_LINKS + 1);
        size_t next = nplaces;
        for (size_t i = 0; i < n && next == nplaces; i++) {
            bool known = !ways[i].link;
            for (size_t j = 0; ways[i].link && j < nused; j++)
                known =
                    known || (used[j][0] == x &&
                              used[j][1] == strtoull(ways[i].link, NULL, 10));
            if (!known)
                next = strtoull(ways[i].link, NULL, 10);
        }
        if (next < nplaces) {
            used[nused][0] = x;
            used[nused++][1] = next;
            path[++at] = next;
        } else if (!back && at) {
            back = true;
            at--;
        } else {
            return 0;
        }
    }
    return 0;
}

static void measure(unsigned depth)
{
    char text[8];
    snprintf(text, sizeof text, "%u", depth);
    const bly_option options[] = { { "depth", text }, { "degree", "3" } };
    const bly_spec spec = { .items = nkeys, .options = options, .noptions = 2 };
    chaos = 1;
    nmessages = nbytes = 0;
    for (size_t i = 0; i < nplaces; i++) {
        places[i] = (place){ 0 };
        must(bly_node_new(&spec, 1, 0, &places[i].v));
    }
    /* Two rings, the second in any order: four links for each. */
    for (size_t i = 0; i < nplaces; i++)
        order[i] = i;
    for (size_t i = nplaces - 1; i; i--) {
        const size_t j = any(i + 1), x = order[i];
        order[i] = order[j];
        order[j] = x;
    }
    for (size_t i = 0; i < nplaces; i++) {
        join(i, (i + 1) % nplaces);
        join(order[i], order[(i + 1) % nplaces]);
    }
    for (size_t i = 0; i < nplaces * nkeys; i++) {
        const uint64_t hash = hash_of(i);
        must(bly_node_add_hashes(places[i / nkeys].v, &hash, 1));
    }
    while (round_of_news())
        ;
    bly_node_stats stats;
    uint64_t memory = 0;
    for (size_t i = 0; i < nplaces; i++) {
        bly_node_stat(places[i].v, &stats);
        memory += stats.bytes;
    }
    printf("depth %u: %.1f KiB per node, to begin with %.1f KiB of messages\n",
           depth, (double)memory / 1024 / (double)nplaces,
           (double)nbytes / 1024 / (double)nplaces);

    size_t asked = 0, right = 0, arrived = 0, taken = 0, least = 0;
    while (asked < 10000) {
        const size_t a = any(nplaces), b = any(nplaces);
        const unsigned truth = shortest(a, b, depth);
        if (a == b || truth > depth)
            continue;
        const uint64_t hash = hash_of(b * nkeys + any(nkeys));
        uint32_t said;
        must(bly_node_distances(places[a].v, &hash, 1, &said, NULL));
        if (said > truth) {
            fprintf(stderr, "node: further than the truth\n");
            exit(1);
        }
        asked++;
        right += said == truth;
        const unsigned went = travel(a, b, hash);
        if (went) {
            arrived++;
            taken += went;
            least += truth;
        }
    }
    printf("  right %.2f %%, arrived %.2f %%, stretch %.3f\n",
           100.0 * (double)right / (double)asked,
           100.0 * (double)arrived / (double)asked,
           (double)taken / (double)least);

    nmessages = nbytes = 0;
    const size_t changes = 20;
    for (size_t i = 0; i < changes; i++) {
        const uint64_t hash = hash_of(nplaces * nkeys + i);
        must(bly_node_add_hashes(places[any(nplaces)].v, &hash, 1));
        while (round_of_news())
            ;
    }
    printf("  a new key: %.0f messages of %.0f bytes in all of the network\n",
           (double)nmessages / (double)changes,
           (double)nbytes / (double)nmessages);

    double find = 0;
    const double start = now_ns();
    for (int i = 0; i < 100000; i++)
        find += (double)bly_node_find_hash(places[i & 7].v, mix((uint64_t)i),
                                           NULL, 0);
    const double asking = (now_ns() - start) / 100000;
    /* One that changes nothing, and one after a change. */
    hearing h = { 0, places[0].to[0], false };
    double still = now_ns(), changed = 0;
    for (int i = 0; i < 1000; i++)
        must(bly_node_tell(places[0].v, name_of(h.to), carry, &h, NULL));
    still = (now_ns() - still) / 1000;
    tell_ns = hear_ns = 0;
    for (int i = 0; i < 200; i++) {
        const uint64_t hash = hash_of(UINT64_C(1) << 40 | (uint64_t)i);
        must(bly_node_add_hashes(places[0].v, &hash, 1));
        const double before = now_ns(), heard = hear_ns;
        must(bly_node_tell(places[0].v, name_of(h.to), carry, &h, NULL));
        changed += now_ns() - before - (hear_ns - heard);
    }
    printf("  asking %.0f ns per key (%.4f found that are nowhere); telling "
           "%.1f us and hearing %.1f us after a change, %.2f us without\n",
           asking, find / 100000, changed / 200e3, hear_ns / 200e3,
           still / 1e3);
    for (size_t i = 0; i < nplaces; i++)
        bly_node_free(places[i].v);
}

int main(int argc, char **argv)
{
    nplaces = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    nkeys = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
    if (nplaces < 16 || !nkeys || !(places = calloc(nplaces, sizeof *places)) ||
        !(order = calloc(nplaces, sizeof *order)) ||
        !(queue = calloc(nplaces, sizeof *queue)) ||
        !(hops = calloc(nplaces, sizeof *hops)))
        return 2;
    for (unsigned depth = 3; depth <= 5; depth++)
        measure(depth);
    return 0;
}

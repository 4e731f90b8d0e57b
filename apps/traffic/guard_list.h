/*
 * guard_list.h - who is blocked at the moment, and for how long
 *
 * What guard knows of those whom it has blocked. The kernel's table says the
 * same in fingerprints (block_live.h), and has a time for each too, so that
 * nobody stays blocked when guard ends in whatever way.
 */
#ifndef BLY_TRAFFIC_GUARD_LIST_H
#define BLY_TRAFFIC_GUARD_LIST_H

#include "apps/traffic/block_attached.h"
#include "base/lookup.h"

struct guard_entry {
    struct prefix p;
    double since, until;     /* seconds of the steady clock */
    uint64_t packets, bytes; /* that were stopped */
    uint64_t looked[2];      /* what these were when they were looked at */
    struct xdp_hits hits;    /* what the kernel had counted then */
    uint32_t end;            /* what was written for the kernel */
};

struct guard_list {
    struct guard_entry *at;
    size_t n, most;
    struct lookup by_source; /* made anew when one goes */
    /* The kernel's part; a dry run has none. */
    const char *pins;
    struct attached kernel;
    struct live_table table;
    bool dry, begun; /* begun: the program is ours to take away */
    uint32_t program, first_tick;
    double first_second; /* when that tick was */
};

/* Begin at an interface; prefixes of so many bits will be blocked. `dry`:
 * without the kernel. False, with the reason printed. */
bool guard_list_begin(struct guard_list *g, const char *interface,
                      const char *pins, size_t most, uint8_t bits4,
                      uint8_t bits6, bool dry);
/* Release all, and take the program away if it was brought. */
void guard_list_end(struct guard_list *g);

struct guard_entry *guard_find(struct guard_list *g, const struct prefix *p);
/* NULL: no room. */
struct guard_entry *guard_block(struct guard_list *g, const struct prefix *p,
                                double now, double ttl);
/* It goes on. */
void guard_renew(struct guard_list *g, struct guard_entry *e, double now,
                 double ttl);
/* Entry i goes, and the last takes its place; lookups are valid again after
 * guard_settle(). */
void guard_release(struct guard_list *g, size_t i);
bool guard_settle(struct guard_list *g);

/* What an entry has sent since it was looked at. */
void guard_look(struct guard_list *g, struct guard_entry *e, uint64_t *packets,
                uint64_t *bytes);

/* Is the program still there? After another took its place, all that is blocked
 * is written again. False, with the reason printed: none is. */
bool guard_check(struct guard_list *g, double now);

#endif

/*
 * block_change.c - bloomery traffic block --add, --release: entries of a list
 * that is attached
 *
 * An entry is written where the kernel's program reads it (block_live.h). Only
 * the first one of a length needs another program, which asks for that length:
 * it takes the place of the other between two packets, with the same maps.
 */
#include "apps/traffic/block_change.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/traffic/bpf.h"
#include "report/say.h"

/* Additions that found no room, in the counter of the first processor. */
static void no_room_count(const struct xdp_maps *m, uint64_t n)
{
    const uint32_t number = XDP_NO_ROOM;
    const long most = sysconf(_SC_NPROCESSORS_CONF);
    struct xdp_counter *const room =
        calloc((size_t)most + 1024, sizeof(struct xdp_counter));
    if (room && bpf_map_get(m->at[XDP_COUNTERS], &number, room) == 0) {
        room[0].packets += n;
        bpf_map_set(m->at[XDP_COUNTERS], &number, room);
    }
    free(room);
}

/* The kernel follows the program through every length before it takes it, and
 * gives up after a million instructions: 64 lengths of IPv6 take it 4 s, and
 * 129 are too many. Of IPv4 all 33 are fine. */
#define MOST_SIX 32

static bool lengths_fit(const struct xdp_maps *m, const struct prefix_set *set)
{
    struct xdp_list all = m->list;
    struct prefix_lengths l;
    for (size_t i = 0; i < set->n; i++)
        xdp_length_add(&all, set->at[i].version, set->at[i].bits, XDP_IN_LIVE);
    xdp_lengths_of(&all, XDP_IN_LIVE, &l);
    return l.nsix <= MOST_SIX ||
           refuse("entries that change or expire would have %u lengths of "
                  "IPv6, and the kernel can ask for %u; put prefixes that stay "
                  "into the list of --xdp, without a time",
                  l.nsix, MOST_SIX);
}

bool entries_put(struct xdp_maps *m, const struct prefix_set *set, uint32_t ttl,
                 struct block_changed *did)
{
    struct live_table t;
    uint32_t now;
    uint64_t no_room = 0;
    if (!lengths_fit(m, set) || !xdp_now(m->list.shift, &now) ||
        !xdp_live_open(m, &t))
        return false;
    for (size_t i = 0; i < set->n; i++) {
        const struct prefix *const p = &set->at[i];
        const uint32_t seconds = p->seconds ? p->seconds : ttl;
        const uint64_t hash = live_hash(&m->list.live, p);
        const uint32_t end = seconds && seconds != PREFIX_EVER
                                 ? xdp_end(m->list.shift, now, seconds)
                                 : XDP_NEVER;
        const uint32_t was = live_find(&t, hash);
        const bool there = was != LIVE_NONE &&
                           live_end(&t, was) != XDP_RELEASED &&
                           !live_over(live_end(&t, was), now);
        if (!live_put(&t, hash, end, now)) {
            no_room++;
            continue;
        }
        did->renewed += there;
        did->added += !there;
        did->longer |=
            xdp_length_add(&m->list, p->version, p->bits, XDP_IN_LIVE);
    }
    xdp_live_close(&t);
    if (no_room)
        no_room_count(m, no_room);
    did->no_room += no_room;
    return true;
}

/* -------------------------------------------------------------- releasing */

/* A shorter prefix that is listed and that has this one in it; false: none. */
static bool covered(const struct xdp_maps *m, const struct live_table *t,
                    const struct prefix *p, uint32_t now, struct prefix *by)
{
    for (int bits = p->bits - 1; bits >= 0; bits--) {
        *by = prefix_of(p->version, p->at, (unsigned)bits);
        const uint32_t at = live_find(t, live_hash(&m->list.live, by));
        const uint32_t end = at == LIVE_NONE ? XDP_RELEASED : live_end(t, at);
        if ((at != LIVE_NONE && end != XDP_RELEASED && !live_over(end, now)) ||
            ((at == LIVE_NONE || end != XDP_RELEASED) && xdp_base_has(m, by)))
            return true;
    }
    return false;
}

/* What the base lists too is noted as released; its filter does not change. */
static void entry_release(struct xdp_maps *m, struct live_table *t,
                          const struct prefix *p, uint32_t now,
                          struct block_changed *did)
{
    const uint64_t hash = live_hash(&m->list.live, p);
    const uint32_t at = live_find(t, hash);
    const uint32_t end = at == LIVE_NONE ? XDP_RELEASED : live_end(t, at);
    const bool live = end != XDP_RELEASED && !live_over(end, now);
    const bool noted = at != LIVE_NONE && end == XDP_RELEASED;
    const bool base = !noted && xdp_base_has(m, p);
    char text[PREFIX_TEXT], other[PREFIX_TEXT];
    struct prefix by;
    if (base && !live_put(t, hash, XDP_RELEASED, now)) {
        did->no_room++;
        return;
    }
    if (base)
        did->longer |=
            xdp_length_add(&m->list, p->version, p->bits, XDP_IN_LIVE);
    else if (live)
        live_clear(t, at);
    did->released += base || live;
    did->missing += !base && !live;
    if (covered(m, t, p, now, &by))
        warn("%s: %s is still listed as part of %s", did->interface,
             prefix_text(p, text), prefix_text(&by, other));
    else if (!base && !live)
        note("%s: %s is not listed", did->interface, prefix_text(p, text));
}

static bool entries_release(struct xdp_maps *m, const struct prefix_set *set,
                            struct block_changed *did)
{
    struct live_table t;
    uint32_t now;
    if (!xdp_now(m->list.shift, &now) || !xdp_live_open(m, &t))
        return false;
    for (size_t i = 0; i < set->n; i++)
        entry_release(m, &t, &set->at[i], now, did);
    xdp_live_close(&t);
    if (did->no_room)
        no_room_count(m, did->no_room);
    return true;
}

/* ---------------------------------------------------------------- operands */

/* An operand is an entry, or a file of them. */
static bool entries_read(const struct traffic_args *args,
                         const struct list *operands, struct prefix_set *set)
{
    struct prefix_counts counts = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < operands->n; i++) {
        const char *const text = operands->at[i];
        struct prefix_reader r = { .take = prefix_set_take, .ctx = set };
        const char *why;
        if (prefix_line(&r, text, strlen(text), &why) && r.entries)
            ok = !r.stopped;
        else
            ok = prefix_file(text, args->block.skip_bad, prefix_set_take, set,
                             &counts);
    }
    prefix_set_sort(set);
    return ok;
}

static int changed_print(const struct traffic_args *args,
                         const struct block_changed *did)
{
    if (!quiet)
        report(args->json ? stdout : stderr, args->json, block_changed_fields,
               did,
               "{interface}:[ {?added}{added} added][ {?renewed}{renewed} "
               "renewed][ {?released}{released} released][ {?missing}{missing} "
               "not listed]\n");
    if (did->no_room)
        return fail("%s: %llu entries found no room among %llu; release some, "
                    "or --detach %s and use --xdp with --items",
                    did->interface, (unsigned long long)did->no_room,
                    (unsigned long long)did->room, did->interface);
    return did->missing && !did->released ? NO : YES;
}

int block_change(const struct traffic_args *args, const struct list *operands)
{
    const bool adds = args->block.add != NULL;
    struct block_changed did = { .interface = adds ? args->block.add
                                                   : args->block.release };
    struct attached a = { .maps = XDP_NO_MAPS, .link = -1 };
    struct prefix_set set = { 0 };
    int status = TROUBLE;
    if (!xdp_here() || !entries_read(args, operands, &set)) {
        prefix_set_free(&set);
        return TROUBLE;
    }
    const int lock = pins_lock(args->block.pins);
    if (attached_find(args->block.pins, did.interface, &a) &&
        attached_changes(&a)) {
        bool ok =
            adds ? entries_put(&a.maps, &set, (uint32_t)args->block.ttl, &did)
                 : entries_release(&a.maps, &set, &did);
        did.room = live_room(a.maps.list.nlines);
        if (ok && did.longer)
            ok = attached_replace(&a);
        if (ok)
            status = changed_print(args, &did);
    }
    if (lock >= 0)
        close(lock);
    attached_close(&a);
    prefix_set_free(&set);
    return status;
}

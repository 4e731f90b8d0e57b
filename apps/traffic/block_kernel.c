/*
 * block_kernel.c - a block list at an interface: --xdp, --detach, --status
 *
 * Commands that change what is there wait for each other: one would take away
 * what another has just pinned.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "apps/traffic/block.h"
#include "apps/traffic/block_file.h"
#include "apps/traffic/block_attached.h"
#include "apps/traffic/block_change.h"
#include "apps/traffic/bpf.h"
#include "io/files.h"
#include "io/filters.h"
#include "report/say.h"

#define LIVE_ROOM 65536 /* entries, at least: 2 MB of the kernel's memory */

/* ------------------------------------------------------------------- lists */

/* What --xdp is given: a LIST.bly, lists as people keep them, or both. */
struct kernel_lists {
    struct block_file base;
    struct prefix_set timed, allow;
    const char *name; /* of the first */
};

static bool is_bly(const char *path)
{
    static const unsigned char magic[4] = { 0x89, 'B', 'L', 'Y' };
    unsigned char head[4] = { 0 };
    FILE *const f = strcmp(path, "-") == 0 ? NULL : fopen(path, "rb");
    const bool is = f && fread(head, 1, 4, f) == 4 && !memcmp(head, magic, 4);
    if (f)
        fclose(f);
    return is;
}

/* Entries that have a time go to one set, the others to another. */
struct two_sets {
    struct prefix_set stay, timed;
    uint32_t ttl; /* of those that say none; 0: they stay */
};

static bool either_take(void *ctx, const struct prefix *p)
{
    struct two_sets *const to = ctx;
    struct prefix entry = *p;
    if (!entry.seconds)
        entry.seconds = to->ttl ? to->ttl : PREFIX_EVER;
    return prefix_set_take(
        entry.seconds == PREFIX_EVER ? &to->stay : &to->timed, &entry);
}

/* Those that stay, in a filter of their own or in that of the file. */
static bool base_add(const struct traffic_args *args, struct kernel_lists *l,
                     const struct prefix_set *stay)
{
    struct block_plan plan = { .fpr = block_fpr(args) };
    bly_stats s;
    if (!stay->n)
        return true;
    if (l->base.filter) {
        if (block_add(l->base.filter, stay))
            return refuse_library();
        block_lengths(l->base.filter, &l->base.lengths);
        bly_stat(l->base.filter, &s);
        warn_past_capacity(l->name, &s);
        return true;
    }
    if (getrandom(&plan.seed, sizeof plan.seed, 0) < 0)
        return refuse("the system has no random numbers");
    return !block_make(stay, &plan, &l->base) || refuse_library();
}

static bool lists_read(const struct traffic_args *args,
                       const struct list *operands, struct kernel_lists *l)
{
    struct two_sets sets = { .ttl = (uint32_t)args->block.ttl };
    struct prefix_counts counts = { 0 };
    bool ok;
    const unsigned char *const secret = secret_read(args->block.key_file, &ok);
    l->name = operands->n ? operands->at[0] : "those who are added";
    for (size_t i = 0; ok && i < operands->n; i++) {
        const char *const path = operands->at[i];
        if (!is_bly(path))
            ok = prefix_file(path, args->block.skip_bad, either_take, &sets,
                             &counts);
        else if (l->base.filter)
            ok = refuse("%s: the kernel takes one LIST.bly; add the lists "
                        "that it was made of with --into, or give the lines",
                        path);
        else
            ok = block_open(path, secret, &l->base);
    }
    prefix_set_sort(&sets.stay);
    prefix_set_sort(&sets.timed);
    ok = ok && base_add(args, l, &sets.stay) &&
         block_set_read(args->block.allow, args->block.skip_bad, &l->allow);
    prefix_set_free(&sets.stay);
    l->timed = sets.timed;
    return ok;
}

static void lists_free(struct kernel_lists *l)
{
    block_close(&l->base);
    prefix_set_free(&l->timed);
    prefix_set_free(&l->allow);
}

/* A list that stops nobody is most likely one that could not be fetched, and
 * one that lets nobody pass too. */
static bool lists_fit(const struct traffic_args *args,
                      const struct kernel_lists *l)
{
    const struct prefix_lengths *const n = &l->base.lengths;
    return n->nfour || n->nsix || l->timed.n || args->block.empty ||
           refuse("%s: the list is empty, and would let %s pass; use --empty "
                  "if that is meant, or --detach %s",
                  l->name, args->block.only ? "nobody" : "everybody",
                  args->block.xdp);
}

/* Whoever logged in from somewhere wants to get there again. */
static bool way_back_open(const struct traffic_args *args,
                          const struct kernel_lists *l)
{
    const char *const from = getenv("SSH_CONNECTION");
    char text[64] = "";
    struct prefix_set one = { 0 };
    struct prefix_reader r = { .take = prefix_set_take, .ctx = &one };
    const char *why;
    if (!args->block.only || !from || sscanf(from, "%63s", text) != 1 ||
        !prefix_line(&r, text, strlen(text), &why) || one.n != 1) {
        prefix_set_free(&one);
        return true;
    }
    const struct prefix p = one.at[0];
    prefix_set_free(&one);
    return prefix_set_match(&l->allow, p.version, p.at) ||
           prefix_set_match(&l->timed, p.version, p.at) ||
           (l->base.filter && block_match(&l->base, p.version, p.at) >= 0) ||
           refuse("you are connected from %s, and would be locked out; put it "
                  "into the list or the file of --allow, or unset "
                  "SSH_CONNECTION",
                  text);
}

/* -------------------------------------------------------------- attaching */

static int closed(int fd)
{
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The part of the list that changes: what is there goes on. */
static bool live_go_on(const struct traffic_args *args, struct attached *a,
                       const struct xdp_maps *old, uint64_t entries)
{
    struct xdp_maps *const m = &a->maps;
    const uint64_t least = args->block.items ? args->block.items : LIVE_ROOM;
    const bool whole = old->list.nlines && old->at[XDP_HITS] >= 0;
    if (!whole)
        return xdp_live_new(m, least > entries ? least : entries);
    if (args->block.items && live_lines(args->block.items) != old->list.nlines)
        return refuse("--items %llu: the table for entries that change is "
                      "there already, with room for %llu; --detach %s first",
                      (unsigned long long)args->block.items,
                      (unsigned long long)live_room(old->list.nlines), a->name);
    struct prefix_lengths l;
    xdp_lengths_of(&old->list, XDP_IN_LIVE, &l);
    m->list.nlines = old->list.nlines;
    m->list.shift = old->list.shift;
    m->list.live = old->list.live;
    m->at[XDP_LIVE] = dup(old->at[XDP_LIVE]);
    m->at[XDP_HITS] = dup(old->at[XDP_HITS]);
    for (unsigned i = 0; i < l.nfour; i++)
        xdp_length_add(&m->list, 4, l.four[i], XDP_IN_LIVE);
    for (unsigned i = 0; i < l.nsix; i++)
        xdp_length_add(&m->list, 6, l.six[i], XDP_IN_LIVE);
    return true;
}

static bool lists_attach(const struct traffic_args *args, struct attached *a,
                         const struct kernel_lists *l)
{
    struct xdp_maps old = a->maps, *const m = &a->maps;
    struct block_changed did = { 0 };
    uint32_t now = 0;
    bool ok;
    if (!a->pins.interface)
        return refuse("%s: there is no such interface", a->name);
    *m = (struct xdp_maps)XDP_NO_MAPS;
    m->list.only = args->block.only;
    m->at[XDP_COUNTERS] =
        old.at[XDP_COUNTERS] < 0 ? -1 : dup(old.at[XDP_COUNTERS]);
    ok = (m->at[XDP_COUNTERS] >= 0 || xdp_counters_new(m)) &&
         live_go_on(args, a, &old, l->timed.n) &&
         xdp_base_new(m, &l->base, &l->allow);
    if (ok && args->block.ttl && l->base.filter && is_bly(l->name)) {
        ok = xdp_now(m->list.shift, &now);
        m->list.base_ends =
            xdp_end(m->list.shift, now, (double)args->block.ttl);
    }
    ok = ok && entries_put(m, &l->timed, 0, &did) && attached_replace(a);
    xdp_maps_close(&old);
    if (ok && did.no_room)
        fail("%s: %llu entries of %s found no room", a->name,
             (unsigned long long)did.no_room, l->name);
    return ok && !did.no_room;
}

static void attached_note(const struct traffic_args *args,
                          const struct attached *a, const char *list)
{
    const char *const name = a->name;
    if (args->block.only)
        note("%s: only packets from %s pass, until --detach %s", name, list,
             name);
    else
        note("%s: packets from %s are dropped, until --detach %s", name, list,
             name);
    if (pins_fleeting(&a->pins))
        warn("%s: %s goes with the last process of this mount namespace, and "
             "the list with it; use nsenter --net=/run/netns/NAME instead of "
             "ip netns exec NAME",
             name, a->pins.base);
}

static int kernel_attach(const struct traffic_args *args,
                         const struct list *operands)
{
    struct attached a = { .maps = XDP_NO_MAPS, .link = -1 };
    struct kernel_lists l = { 0 };
    int status = TROUBLE;
    /* Lists may come from a pipe: nobody waits for that. */
    if (!xdp_here() || !lists_read(args, operands, &l) ||
        !lists_fit(args, &l) || !way_back_open(args, &l)) {
        lists_free(&l);
        return TROUBLE;
    }
    const int lock = pins_lock(args->block.pins);
    if (attached_find(args->block.pins, args->block.xdp, &a) &&
        lists_attach(args, &a, &l)) {
        attached_note(args, &a, l.name);
        status = YES;
    }
    closed(lock);
    attached_close(&a);
    lists_free(&l);
    return status;
}

static int kernel_detach(const struct traffic_args *args)
{
    struct attached a = { .maps = XDP_NO_MAPS, .link = -1 };
    const int lock = pins_lock(args->block.pins);
    const int status = attached_find(args->block.pins, args->block.detach, &a)
                           ? attached_end(&a)
                           : TROUBLE;
    closed(lock);
    attached_close(&a);
    return status;
}

/* ----------------------------------------------------------------- counters */

static unsigned processors(void)
{
    FILE *const f = fopen("/sys/devices/system/cpu/possible", "r");
    unsigned first = 0, last = 0;
    const int n = f ? fscanf(f, "%u-%u", &first, &last) : 0;
    if (f)
        fclose(f);
    return n == 2 ? last + 1 : n == 1 ? first + 1 : 0;
}

/* A counter, of all processors. */
static bool counter_read(int map, uint32_t number, struct xdp_counter *room,
                         unsigned n, struct xdp_counter *out)
{
    *out = (struct xdp_counter){ 0 };
    if (bpf_map_get(map, &number, room) < 0)
        return false;
    for (unsigned i = 0; i < n; i++) {
        out->packets += room[i].packets;
        out->bytes += room[i].bytes;
    }
    return true;
}

/* What is in the part that changes; what is over goes. */
static bool live_count(const struct attached *a, struct block_state *s)
{
    struct live_table t;
    uint32_t now;
    if (!a->maps.list.nlines)
        return true; /* of an earlier version */
    if (!xdp_now(a->maps.list.shift, &now) || !xdp_live_open(&a->maps, &t))
        return false;
    const struct live_counts c = live_sweep(&t, now);
    xdp_live_close(&t);
    s->entries = c.listed;
    s->timed = c.timed;
    s->released = c.released;
    s->room = live_room(a->maps.list.nlines);
    return true;
}

static int counters_print(const struct traffic_args *args,
                          const struct attached *a)
{
    struct block_rule rules[33 + 129];
    struct block_state s = { .interface = args->block.status,
                             .mode = a->pins.has.mode,
                             .only = a->maps.list.only,
                             .rules = rules };
    const int map = a->maps.at[XDP_COUNTERS];
    struct xdp_counter all[XDP_NCOUNTERS];
    const unsigned n = processors();
    struct xdp_counter *const room =
        calloc(n ? n : 1, sizeof(struct xdp_counter));
    bool ok = n && room;
    for (uint32_t i = 0; ok && i < XDP_NCOUNTERS; i++)
        ok = counter_read(map, i, room, n, &all[i]);
    free(room);
    if (!ok)
        return fail("%s: the counters cannot be read", args->block.status);
    for (unsigned six = 0; six < 2; six++)
        for (unsigned bits = six ? 129 : 33; bits-- > 0;) {
            const struct xdp_counter c = all[(six ? XDP_SIX : XDP_FOUR) + bits];
            if (!c.packets)
                continue;
            rules[s.nrules++] =
                (struct block_rule){ six ? 6 : 4, bits, c.packets, c.bytes };
            s.stopped += s.only ? 0 : c.packets;
            s.stopped_bytes += s.only ? 0 : c.bytes;
        }
    s.stopped += all[XDP_UNLISTED].packets;
    s.stopped_bytes += all[XDP_UNLISTED].bytes;
    s.no_room = all[XDP_NO_ROOM].packets;
    if (!live_count(a, &s))
        return TROUBLE;
    s.passed = all[XDP_PASSED].packets;
    s.passed_bytes = all[XDP_PASSED].bytes;
    s.allowed = all[XDP_ALLOWED].packets;
    s.allowed_bytes = all[XDP_ALLOWED].bytes;
    s.other = all[XDP_OTHER].packets;
    s.other_bytes = all[XDP_OTHER].bytes;
    report(stdout, args->json, block_state_fields, &s,
           "{interface}[ ({mode})]: {stopped packet/s} [{?only}not listed and ]"
           "stopped, {stopped_bytes}; {allowed} "
           "allowed[; {!only}{passed} not listed]; {other} no IP"
           "[; {?entries}{entries entr/y/ies} added, {timed} of them for a "
           "time][; {?released}{released} released][; {?no_room}{no_room} "
           "found no room]\n");
    for (size_t i = 0; i < s.nrules && !args->json; i++)
        printf("%14llu %16llu  IPv%u /%u\n",
               (unsigned long long)rules[i].packets,
               (unsigned long long)rules[i].bytes, rules[i].version,
               rules[i].bits);
    return YES;
}

static int status_of(const struct traffic_args *args, const struct attached *a)
{
    const char *const name = args->block.status;
    if (a->pins.state == PINS_GONE) {
        note("%s: nothing is attached any more, the interface has gone since; "
             "use --xdp %s LIST.bly again, or --detach %s",
             name, name, name);
        return NO;
    }
    if (a->pins.state == PINS_NONE) {
        note(!a->pins.interface    ? "%s: there is no such interface"
             : a->pins.has.program ? "%s: nothing of %s is attached, but "
                                     "another program"
                                   : "%s: nothing is attached",
             name, a->pins.base);
        return NO;
    }
    return a->maps.at[XDP_COUNTERS] < 0
               ? fail("%s: the counters cannot be read", name)
               : counters_print(args, a);
}

static int kernel_status(const struct traffic_args *args)
{
    struct attached a;
    const int lock = pins_lock(args->block.pins);
    const int status = attached_find(args->block.pins, args->block.status, &a)
                           ? status_of(args, &a)
                           : TROUBLE;
    closed(lock);
    attached_close(&a);
    return status;
}

bool block_set_read(const char *name, bool skip_bad, struct prefix_set *out)
{
    struct prefix_counts counts = { 0 };
    *out = (struct prefix_set){ 0 };
    if (!name)
        return true;
    if (!prefix_file(name, skip_bad, prefix_set_take, out, &counts)) {
        prefix_set_free(out);
        return false;
    }
    prefix_set_sort(out);
    return true;
}

int block_kernel(const struct traffic_args *args, const struct list *operands)
{
    const bool takes =
        args->block.xdp || args->block.add || args->block.release;
    if (takes && !operands->n && !(args->block.xdp && args->block.empty))
        return fail("usage: bloomery traffic block --xdp INTERFACE LIST..., or "
                    "--add or --release INTERFACE ADDRESS...");
    if (!takes && operands->n)
        return fail("--detach and --status take an interface alone");
    return args->block.xdp      ? kernel_attach(args, operands)
           : args->block.detach ? kernel_detach(args)
           : args->block.status ? kernel_status(args)
                                : block_change(args, operands);
}

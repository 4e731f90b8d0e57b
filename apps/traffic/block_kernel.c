/*
 * block_kernel.c - a block list at an interface: --xdp, --detach, --status
 *
 * What outlives the command is pinned: the program's link to the interface, and
 * its counters (block_pins.h). If anything fails before both are pinned, the
 * program goes away again, since the link ends with its last descriptor.
 * Commands that change pins wait for each other: one would take away what
 * another has just pinned.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/traffic/block.h"
#include "apps/traffic/block_file.h"
#include "apps/traffic/block_pins.h"
#include "apps/traffic/block_xdp.h"
#include "apps/traffic/bpf.h"
#include "apps/traffic/xdp_layout.h"
#include "io/files.h"
#include "report/say.h"

/* -------------------------------------------------------------- attaching */

static int closed(int fd)
{
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A new link, pinned with its counters. */
static bool link_new(const struct pins *p, const char *name, int program,
                     int counters)
{
    pins_remove(p);
    if (!pins_make(p))
        return false;
    const int link = bpf_xdp_link(program, p->interface);
    if (link < 0) {
        if (errno == EBUSY)
            fail("%s: another program is attached to the interface; detach it "
                 "first (--detach %s with the --pins of that list, or ip link "
                 "set dev %s xdp off)",
                 name, name, name);
        else
            xdp_fail(name, errno);
        pins_remove(p);
        return false;
    }
    const bool ok =
        bpf_pin(counters, p->counters) == 0 && bpf_pin(link, p->link) == 0;
    if (!ok) {
        fail_path(p->folder, errno);
        bpf_link_detach(link);
        pins_remove(p);
    }
    close(link);
    return ok;
}

static bool list_attach(const struct pins *p, const char *name,
                        const struct block_file *list,
                        const struct prefix_set *allow)
{
    const bool here = p->state == PINS_HERE;
    if (!p->interface)
        return refuse("%s: there is no such interface", name);
    const int link = here ? bpf_pinned(p->link) : -1;
    if (here && link < 0)
        return !xdp_fail(name, errno);
    int counters = here ? bpf_pinned(p->counters) : -1;
    if (counters < 0)
        counters = xdp_counters_new();
    const int program = counters < 0 ? -1 : xdp_load(list, allow, counters);
    bool ok = program >= 0;
    if (ok && !here)
        ok = link_new(p, name, program, counters);
    else if (ok && bpf_link_update(link, program) < 0)
        ok = !xdp_fail(name, errno);
    closed(program);
    closed(counters);
    closed(link);
    return ok;
}

/* A list that stops nobody is most likely one that could not be fetched. */
static bool list_fits(const struct traffic_args *args, const char *path,
                      const struct block_file *list)
{
    const struct prefix_lengths *const l = &list->lengths;
    return l->nfour || l->nsix || args->block.empty ||
           refuse("%s: the list is empty, and would let everybody pass; use "
                  "--empty if that is meant, or --detach %s",
                  path, args->block.xdp);
}

static int kernel_attach(const struct traffic_args *args, const char *path)
{
    const char *const name = args->block.xdp;
    struct pins p;
    struct block_file list = { 0 };
    struct prefix_set allow = { 0 };
    int status = TROUBLE;
    bool ok;
    const unsigned char *const secret = secret_read(args->block.key_file, &ok);
    const int lock = pins_lock(args->block.pins);
    if (ok && xdp_here() && pins_find(args->block.pins, name, &p) &&
        block_open(path, secret, &list) && list_fits(args, path, &list) &&
        block_set_read(args->block.allow, args->block.skip_bad, &allow) &&
        list_attach(&p, name, &list, &allow)) {
        note("%s: packets from %s are dropped, until --detach %s", name, path,
             name);
        if (pins_fleeting(&p))
            warn("%s: %s goes with the last process of this mount namespace, "
                 "and the list with it; use nsenter --net=/run/netns/NAME "
                 "instead of ip netns exec NAME",
                 name, p.base);
        status = YES;
    }
    closed(lock);
    block_close(&list);
    prefix_set_free(&allow);
    return status;
}

static int list_detach(const struct pins *p, const char *name)
{
    if (p->state == PINS_NONE)
        return fail(p->interface ? "%s: nothing is attached"
                                 : "%s: there is no such interface",
                    name);
    const int link = bpf_pinned(p->link);
    if (link < 0)
        return xdp_fail(name, errno);
    /* An interface that has gone has nothing attached any more. */
    const bool ok = bpf_link_detach(link) == 0 || errno == ENODEV;
    const int error = errno;
    close(link);
    if (!ok)
        return xdp_fail(name, error);
    pins_remove(p);
    return YES;
}

static int kernel_detach(const struct traffic_args *args)
{
    struct pins p;
    const int lock = pins_lock(args->block.pins);
    const int status = pins_find(args->block.pins, args->block.detach, &p)
                           ? list_detach(&p, args->block.detach)
                           : TROUBLE;
    closed(lock);
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

static int counters_print(const struct traffic_args *args, const char *mode,
                          int map)
{
    struct block_rule rules[33 + 129];
    struct block_state s = { .interface = args->block.status,
                             .mode = mode,
                             .rules = rules };
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
            s.stopped += c.packets;
            s.stopped_bytes += c.bytes;
        }
    s.passed = all[XDP_PASSED].packets;
    s.passed_bytes = all[XDP_PASSED].bytes;
    s.allowed = all[XDP_ALLOWED].packets;
    s.allowed_bytes = all[XDP_ALLOWED].bytes;
    s.other = all[XDP_OTHER].packets;
    s.other_bytes = all[XDP_OTHER].bytes;
    report(stdout, args->json, block_state_fields, &s,
           "{interface}[ ({mode})]: {stopped packet/s} stopped, "
           "{stopped_bytes}; {allowed} "
           "allowed; {passed} not listed; {other} no IP\n");
    for (size_t i = 0; i < s.nrules && !args->json; i++)
        printf("%14llu %16llu  IPv%u /%u\n",
               (unsigned long long)rules[i].packets,
               (unsigned long long)rules[i].bytes, rules[i].version,
               rules[i].bits);
    return YES;
}

static int kernel_status(const struct traffic_args *args)
{
    const char *const name = args->block.status;
    struct pins p;
    if (!pins_find(args->block.pins, name, &p))
        return TROUBLE;
    if (p.state == PINS_GONE) {
        note("%s: nothing is attached any more, the interface has gone since; "
             "use --xdp %s LIST.bly again, or --detach %s",
             name, name, name);
        return NO;
    }
    if (p.state == PINS_NONE) {
        note(!p.interface    ? "%s: there is no such interface"
             : p.has.program ? "%s: nothing of %s is attached, but another "
                               "program"
                             : "%s: nothing is attached",
             name, p.base);
        return NO;
    }
    const int map = bpf_pinned(p.counters);
    const int status =
        map < 0 ? xdp_fail(name, errno) : counters_print(args, p.has.mode, map);
    closed(map);
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
    if (args->block.xdp && operands->n != 1)
        return fail("usage: bloomery traffic block --xdp INTERFACE LIST.bly");
    if (!args->block.xdp && operands->n)
        return fail("--detach and --status take an interface alone");
    return args->block.xdp      ? kernel_attach(args, operands->at[0])
           : args->block.detach ? kernel_detach(args)
                                : kernel_status(args);
}

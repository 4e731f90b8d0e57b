/*
 * block_kernel.c - a block list at an interface: --xdp, --detach, --status
 *
 * What outlives the command is pinned in a folder of the bpf file system:
 *
 *     /sys/fs/bpf/bloomery/eth0/link       the program's place at the interface
 *     /sys/fs/bpf/bloomery/eth0/counters   what it counts, across lists
 *
 * Whatever fails before both are there takes the program away again, since the
 * link goes with the last descriptor of it. Commands that change pins wait for
 * each other: one would take away what another has just pinned.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "apps/traffic/block.h"
#include "apps/traffic/block_file.h"
#include "apps/traffic/block_xdp.h"
#include "apps/traffic/bpf.h"
#include "apps/traffic/xdp_layout.h"
#include "io/files.h"
#include "report/say.h"

#define DEFAULT_PINS "/sys/fs/bpf/bloomery"
#define BPF_FILES 0xcafe4a11 /* the file system's number */
#define PATH_ROOM 512

struct pins {
    char above[PATH_ROOM + 4], base[PATH_ROOM], folder[PATH_ROOM + IF_NAMESIZE],
        link[PATH_ROOM + IF_NAMESIZE + 16],
        counters[PATH_ROOM + IF_NAMESIZE + 16];
};

static bool pins_name(const struct traffic_args *args, const char *interface,
                      struct pins *p)
{
    const char *const base = args->block.pins ? args->block.pins : DEFAULT_PINS;
    if (strlen(interface) >= IF_NAMESIZE || !*interface ||
        strchr(interface, '/') || *interface == '.')
        return !fail("%s: not the name of an interface", interface);
    if (strlen(base) >= PATH_ROOM)
        return !fail("%s: too long", base);
    snprintf(p->base, sizeof p->base, "%s", base);
    snprintf(p->above, sizeof p->above, "%s/..", base);
    char *const last = strrchr(p->base, '/');
    if (last && last != p->base)
        snprintf(p->above, sizeof p->above, "%.*s", (int)(last - p->base),
                 p->base);
    snprintf(p->folder, sizeof p->folder, "%s/%s", p->base, interface);
    snprintf(p->link, sizeof p->link, "%s/link", p->folder);
    snprintf(p->counters, sizeof p->counters, "%s/counters", p->folder);
    return true;
}

static bool in_bpf(const char *path)
{
    struct statfs s;
    return statfs(path, &s) == 0 && (uint32_t)s.f_type == BPF_FILES;
}

static bool pins_make(const struct pins *p)
{
    const bool made = (mkdir(p->base, 0700) == 0 || errno == EEXIST) &&
                      (mkdir(p->folder, 0700) == 0 || errno == EEXIST);
    if (made && in_bpf(p->folder))
        return true;
    const int error = errno;
    rmdir(p->folder);
    rmdir(p->base);
    if (!made && (in_bpf(p->above) || in_bpf(p->base)))
        return !fail_path(p->folder, error);
    return !fail("%s: not in a bpf file system; right: mount -t bpf bpf "
                 "/sys/fs/bpf",
                 p->base);
}

static void pins_remove(const struct pins *p)
{
    unlink(p->link);
    unlink(p->counters);
    rmdir(p->folder);
    rmdir(p->base);
}

/* Alone with the pins until it is closed; -1 if nobody can be, since there is
 * no such place. */
static int pins_lock(const struct pins *p)
{
    const int fd = open(p->above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX) < 0 && errno == EINTR)
        ;
    return fd;
}

/* -------------------------------------------------------------- attaching */

static int closed(int fd)
{
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The link that is pinned, if it is that of the interface: one may have gone
 * and another may have its name now. */
static int link_open(const struct pins *p, unsigned interface)
{
    unsigned of = 0;
    const int link = bpf_pinned(p->link);
    if (link >= 0 && bpf_link_interface(link, &of) == 0 && of == interface)
        return link;
    return closed(link);
}

/* A new link, pinned with its counters. */
static bool link_new(const struct pins *p, const char *name, unsigned interface,
                     int program, int counters)
{
    pins_remove(p);
    if (!pins_make(p))
        return false;
    const int link = bpf_xdp_link(program, interface);
    if (link < 0) {
        if (errno == EBUSY)
            fail("%s: another program has the interface; right: take it away "
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
    const unsigned interface = if_nametoindex(name);
    if (!interface)
        return !fail("%s: there is no such interface", name);
    const int lock = pins_lock(p);
    const int link = link_open(p, interface);
    int counters = link >= 0 ? bpf_pinned(p->counters) : -1;
    if (counters < 0)
        counters = xdp_counters_new();
    const int program = counters < 0 ? -1 : xdp_load(list, allow, counters);
    bool ok = program >= 0;
    if (ok && link < 0)
        ok = link_new(p, name, interface, program, counters);
    else if (ok && bpf_link_update(link, program) < 0)
        ok = !xdp_fail(name, errno);
    closed(program);
    closed(counters);
    closed(link);
    closed(lock);
    return ok;
}

static int kernel_attach(const struct traffic_args *args, const char *path)
{
    struct pins p;
    struct block_file list = { 0 };
    struct prefix_set allow = { 0 };
    int status = TROUBLE;
    bool ok;
    const unsigned char *const secret = secret_read(args->block.key_file, &ok);
    if (ok && xdp_here() && pins_name(args, args->block.xdp, &p) &&
        block_open(path, secret, &list) &&
        block_set_read(args->block.allow, args->block.skip_bad, &allow) &&
        list_attach(&p, args->block.xdp, &list, &allow)) {
        note("%s: packets from %s are dropped, until --detach %s",
             args->block.xdp, path, args->block.xdp);
        status = YES;
    }
    block_close(&list);
    prefix_set_free(&allow);
    return status;
}

static int list_detach(const struct pins *p, const char *name)
{
    const int link = bpf_pinned(p->link);
    if (link < 0)
        return errno == ENOENT ? fail("%s: nothing is attached", name)
                               : xdp_fail(name, errno);
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
    if (!pins_name(args, args->block.detach, &p))
        return TROUBLE;
    const int lock = pins_lock(&p);
    const int status = list_detach(&p, args->block.detach);
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

static int counters_print(const struct traffic_args *args, int map)
{
    struct block_rule rules[33 + 129];
    struct block_state s = { .interface = args->block.status, .rules = rules };
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
           "{interface}: {stopped} packets stopped, {stopped_bytes}; {allowed} "
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
    struct pins p;
    if (!pins_name(args, args->block.status, &p))
        return TROUBLE;
    const char *const name = args->block.status;
    unsigned of = 0;
    const int link = bpf_pinned(p.link), map = bpf_pinned(p.counters);
    int status = NO;
    if (map < 0 && errno != ENOENT)
        status = xdp_fail(name, errno);
    else if (map < 0 || link < 0)
        note("%s: nothing is attached", name);
    else if (bpf_link_interface(link, &of) < 0)
        status = xdp_fail(name, errno);
    else if (!of || of != if_nametoindex(name))
        note("%s: nothing is attached any more, the interface has gone since; "
             "right: --xdp %s LIST.bly again, or --detach %s",
             name, name, name);
    else
        status = counters_print(args, map);
    closed(map);
    closed(link);
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
        return fail("right: bloomery traffic block --xdp INTERFACE LIST.bly");
    if (!args->block.xdp && operands->n)
        return fail("--detach and --status take an interface alone");
    return args->block.xdp      ? kernel_attach(args, operands->at[0])
           : args->block.detach ? kernel_detach(args)
                                : kernel_status(args);
}

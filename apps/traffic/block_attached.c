/*
 * block_attached.c - the program of an interface, as commands find it and put
 * another in its place
 *
 * What outlives the command is pinned: the program's link to the interface, and
 * the maps (block_pins.h). If anything fails before all are pinned, a new
 * program goes away again, since the link ends with its last descriptor.
 */
#include "apps/traffic/block_attached.h"

#include <errno.h>
#include <unistd.h>

#include "apps/traffic/bpf.h"
#include "report/say.h"

bool attached_find(const char *base, const char *name, struct attached *a)
{
    *a = (struct attached){ .name = name, .maps = XDP_NO_MAPS, .link = -1 };
    if (!pins_find(base, name, &a->pins))
        return false;
    if (a->pins.state != PINS_HERE)
        return true;
    a->link = bpf_pinned(a->pins.link);
    if (a->link < 0)
        return !xdp_fail(name, errno);
    pins_maps(&a->pins, a->maps.at);
    /* One of an earlier version has another form. */
    struct xdp_list list = { 0 };
    uint32_t size = 0;
    if (a->maps.at[XDP_LIST] >= 0 && a->maps.at[XDP_LIVE] >= 0 &&
        bpf_map_look(a->maps.at[XDP_LIST], &size) == 0 && size == sizeof list &&
        bpf_map_get(a->maps.at[XDP_LIST], &(uint32_t){ 0 }, &list) == 0)
        a->maps.list = list;
    return true;
}

void attached_close(struct attached *a)
{
    xdp_maps_close(&a->maps);
    if (a->link >= 0)
        close(a->link);
    a->link = -1;
}

bool attached_changes(const struct attached *a)
{
    bool whole = a->maps.list.nlines != 0;
    if (a->pins.state != PINS_HERE)
        return refuse(a->pins.interface ? "%s: nothing is attached; begin with "
                                          "--xdp %s and "
                                          "a list, or with --empty and none"
                                        : "%s: there is no such interface",
                      a->name, a->name);
    for (unsigned i = 0; i < XDP_NMAPS; i++)
        whole = whole && a->maps.at[i] >= 0;
    return whole || refuse("%s: what is attached cannot be changed: another "
                           "version of bloomery did it, or it was interrupted; "
                           "run --xdp %s with its list again",
                           a->name, a->name);
}

/* A new link, pinned with its maps. */
static bool link_new(struct attached *a, int program)
{
    const struct pins *const p = &a->pins;
    pins_remove(p);
    if (!pins_make(p))
        return false;
    const int link = bpf_xdp_link(program, p->interface);
    if (link < 0) {
        if (errno == EBUSY)
            fail("%s: another program is attached to the interface; detach it "
                 "first (--detach %s with the --pins of that list, or ip link "
                 "set dev %s xdp off)",
                 a->name, a->name, a->name);
        else
            xdp_fail(a->name, errno);
        pins_remove(p);
        return false;
    }
    const bool ok = pins_maps_set(p, a->maps.at) && bpf_pin(link, p->link) == 0;
    if (!ok) {
        fail_path(p->folder, errno);
        bpf_link_detach(link);
        pins_remove(p);
    }
    close(link);
    return ok;
}

/* Maps of the program that goes are not those of the one that comes: they are
 * taken away first, so that no later command mistakes them. */
static bool link_update(struct attached *a, int program)
{
    pins_maps_hide(&a->pins);
    if (bpf_link_update(a->link, program) < 0)
        return !xdp_fail(a->name, errno);
    return pins_maps_set(&a->pins, a->maps.at) ||
           refuse_path(a->pins.folder, errno);
}

bool attached_replace(struct attached *a)
{
    const int program = xdp_load(&a->maps);
    if (program < 0)
        return false;
    const bool ok = a->pins.state == PINS_HERE ? link_update(a, program)
                                               : link_new(a, program);
    close(program);
    return ok;
}

int attached_end(struct attached *a)
{
    if (a->pins.state == PINS_NONE)
        return fail(a->pins.interface ? "%s: nothing is attached"
                                      : "%s: there is no such interface",
                    a->name);
    const int link =
        a->link >= 0 ? a->link : (a->link = bpf_pinned(a->pins.link));
    if (link < 0)
        return xdp_fail(a->name, errno);
    /* An interface that has gone has nothing attached any more. */
    if (bpf_link_detach(link) < 0 && errno != ENODEV)
        return xdp_fail(a->name, errno);
    pins_remove(&a->pins);
    return YES;
}

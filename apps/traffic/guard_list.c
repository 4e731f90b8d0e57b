/*
 * guard_list.c - who is blocked at the moment, and for how long
 */
#include "apps/traffic/guard_list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/say.h"

/* For which the kernel goes on by itself, if guard is late or has ended. */
#define KERNEL_MORE 2.0

/* ----------------------------------------------------------------- kernel */

static bool lengths_see(struct guard_list *g, uint8_t bits4, uint8_t bits6)
{
    struct xdp_list *const l = &g->kernel.maps.list;
    const bool four = xdp_length_add(l, 4, bits4, XDP_IN_LIVE);
    return xdp_length_add(l, 6, bits6, XDP_IN_LIVE) || four;
}

/* The list that is there, or an empty one; both with a part that changes. */
static bool kernel_begin(struct guard_list *g, uint8_t bits4, uint8_t bits6)
{
    const struct block_file none = { 0 };
    const struct prefix_set nobody = { 0 };
    struct attached *const a = &g->kernel;
    if (a->pins.state == PINS_HERE)
        return attached_changes(a) &&
               (!lengths_see(g, bits4, bits6) || attached_replace(a));
    if (!a->pins.interface)
        return refuse("%s: there is no such interface", a->name);
    g->begun = true;
    xdp_maps_close(&a->maps);
    a->maps = (struct xdp_maps)XDP_NO_MAPS;
    lengths_see(g, bits4, bits6);
    return xdp_counters_new(&a->maps) && xdp_live_new(&a->maps, g->most) &&
           xdp_base_new(&a->maps, &none, &nobody) && attached_replace(a);
}

/* What runs there, and its table. */
static bool kernel_see(struct guard_list *g)
{
    struct xdp_attached has;
    if (!xdp_attached(g->kernel.pins.interface, &has) || !has.program)
        return refuse("%s: the program is gone", g->kernel.name);
    g->program = has.program;
    g->first_second = clock_seconds();
    return xdp_now(g->kernel.maps.list.shift, &g->first_tick) &&
           xdp_live_open(&g->kernel.maps, &g->table);
}

static uint32_t kernel_tick(const struct guard_list *g, double now)
{
    return xdp_end(g->kernel.maps.list.shift, g->first_tick,
                   now - g->first_second) -
           1;
}

static uint64_t entry_hash(const struct guard_list *g,
                           const struct guard_entry *e)
{
    return live_hash(&g->kernel.maps.list.live, &e->p);
}

/* Commands change the same table. */
static bool entry_write(struct guard_list *g, struct guard_entry *e, double now)
{
    if (g->dry)
        return true;
    const uint32_t tick = kernel_tick(g, now);
    const uint32_t end =
        xdp_end(g->kernel.maps.list.shift, tick, e->until - now + KERNEL_MORE);
    const int lock = pins_lock(g->pins);
    const bool ok = live_put(&g->table, entry_hash(g, e), end, tick);
    if (lock >= 0)
        close(lock);
    if (ok)
        e->end = end;
    return ok;
}

/* Where somebody has listed it too, it stays as that one wants it. */
static void entry_clear(struct guard_list *g, const struct guard_entry *e)
{
    if (g->dry || !g->table.lines)
        return;
    const int lock = pins_lock(g->pins);
    const uint32_t at = live_find(&g->table, entry_hash(g, e));
    if (at != LIVE_NONE && live_end(&g->table, at) == e->end)
        live_clear(&g->table, at);
    if (lock >= 0)
        close(lock);
}

bool guard_list_begin(struct guard_list *g, const char *interface,
                      const char *pins, size_t most, uint8_t bits4,
                      uint8_t bits6, bool dry)
{
    *g = (struct guard_list){ .most = most, .pins = pins, .dry = dry };
    g->kernel = (struct attached){ .maps = XDP_NO_MAPS, .link = -1 };
    g->at = calloc(most, sizeof *g->at);
    if (!g->at || !lookup_fit(&g->by_source, most))
        return refuse("out of memory: room for %zu senders", most);
    if (dry)
        return true;
    if (!xdp_here())
        return false;
    const int lock = pins_lock(pins);
    const bool ok = attached_find(pins, interface, &g->kernel) &&
                    kernel_begin(g, bits4, bits6) && kernel_see(g);
    if (lock >= 0)
        close(lock);
    return ok;
}

void guard_list_end(struct guard_list *g)
{
    while (g->n)
        guard_release(g, g->n - 1);
    if (g->begun && g->program) {
        /* Not if a list took its place meanwhile. */
        struct attached now;
        const int lock = pins_lock(g->pins);
        if (attached_find(g->pins, g->kernel.name, &now) &&
            now.pins.has.program == g->program)
            attached_end(&now);
        attached_close(&now);
        if (lock >= 0)
            close(lock);
    }
    xdp_live_close(&g->table);
    attached_close(&g->kernel);
    lookup_free(&g->by_source);
    free(g->at);
    g->at = NULL;
}

bool guard_check(struct guard_list *g, double now)
{
    struct xdp_attached has;
    struct attached found;
    if (g->dry || (xdp_attached(g->kernel.pins.interface, &has) &&
                   has.program == g->program))
        return true;
    const int lock = pins_lock(g->pins);
    bool ok = attached_find(g->pins, g->kernel.name, &found);
    if (ok && found.pins.state == PINS_HERE && attached_changes(&found)) {
        /* Somebody's list: it goes on without us. */
        g->begun = false;
        xdp_live_close(&g->table);
        attached_close(&g->kernel);
        g->kernel = found;
        ok = kernel_see(g);
    } else if (ok) {
        attached_close(&found);
        ok = refuse("%s: the program is no longer attached, and nobody is "
                    "blocked",
                    g->kernel.name);
    }
    if (lock >= 0)
        close(lock);
    if (!ok)
        g->program = 0;
    for (size_t i = 0; ok && i < g->n; i++) {
        g->at[i].hits = (struct xdp_hits){ 0 };
        entry_write(g, &g->at[i], now);
    }
    return ok;
}

/* ----------------------------------------------------------------- entries */

static uint64_t source_hash(const struct prefix *p)
{
    unsigned char key[PREFIX_KEY];
    return table_hash(key, prefix_key(p, key));
}

struct guard_entry *guard_find(struct guard_list *g, const struct prefix *p)
{
    const uint64_t hash = source_hash(p);
    LOOKUP_EACH (&g->by_source, hash, row)
        if (prefix_order(&g->at[row].p, p) == 0)
            return &g->at[row];
    return NULL;
}

struct guard_entry *guard_block(struct guard_list *g, const struct prefix *p,
                                double now, double ttl)
{
    if (g->n == g->most)
        return NULL;
    struct guard_entry *const e = &g->at[g->n];
    *e = (struct guard_entry){ .p = *p, .since = now, .until = now + ttl };
    if (!entry_write(g, e, now) ||
        !lookup_add(&g->by_source, source_hash(p), g->n))
        return NULL;
    g->n++;
    return e;
}

void guard_renew(struct guard_list *g, struct guard_entry *e, double now,
                 double ttl)
{
    e->until = now + ttl;
    entry_write(g, e, now);
}

void guard_release(struct guard_list *g, size_t i)
{
    entry_clear(g, &g->at[i]);
    g->at[i] = g->at[--g->n];
}

bool guard_settle(struct guard_list *g)
{
    lookup_empty(&g->by_source);
    for (size_t i = 0; i < g->n; i++)
        if (!lookup_add(&g->by_source, source_hash(&g->at[i].p), i))
            return refuse("out of memory");
    return true;
}

void guard_look(struct guard_list *g, struct guard_entry *e, uint64_t *packets,
                uint64_t *bytes)
{
    if (!g->dry) {
        const uint32_t at = live_find(&g->table, entry_hash(g, e));
        if (at != LIVE_NONE) {
            const struct xdp_hits now = g->table.hits[at];
            e->packets += (uint32_t)(now.packets - e->hits.packets);
            e->bytes += (uint32_t)(now.bytes - e->hits.bytes);
            e->hits = now;
        }
    }
    *packets = e->packets - e->looked[0];
    *bytes = e->bytes - e->looked[1];
    e->looked[0] = e->packets;
    e->looked[1] = e->bytes;
}

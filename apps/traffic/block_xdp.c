/*
 * block_xdp.c - a block list as a program in the kernel
 *
 * Every list gets maps of its own, which nobody writes to once the program is
 * there; a new list is a new program, and the link swaps the two between one
 * packet and the next. So a packet is judged by the old list or by the new one,
 * and never by a part of either.
 */
#define _GNU_SOURCE
#include "apps/traffic/block_xdp.h"

#include <errno.h>
#include <linux/bpf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bloomery/inline.h>

#include "apps/traffic/bpf.h"
#include "apps/traffic/xdp_layout.h"
#include "base/byte_order.h"
#include "report/say.h"

/* The code that the Makefile had compiled for the kernel, if it could. */
static const uint64_t xdp_code[] = {
#ifdef BLY_XDP
#include BLY_XDP
#else
    0
#endif
};
#define NCODE (sizeof xdp_code / sizeof xdp_code[0])

#define BLOCK_BYTES 64
#define TRY_MOST 2048 /* bytes of a packet: the kernel takes some 3500 */
#define TRY_LEAST 14
/* Runs that are timed: the kernel takes tens of milliseconds to prepare one
 * that is repeated, so only so many packets of each verdict are. */
#define TRY_REPEAT 10000
#define TRY_TIMED 8

bool xdp_here(void)
{
    return NCODE > 1 ||
           refuse("this bloomery was built without clang, and has no program "
                  "for the kernel");
}

int xdp_fail(const char *what, int error)
{
    if (error == EPERM || error == EACCES)
        return fail("%s: the kernel refused it (%s); run it as root, or with "
                    "CAP_BPF and CAP_NET_ADMIN",
                    what, strerror(error));
    if (error == ENOSYS || error == EINVAL || error == EOPNOTSUPP)
        return fail("%s: this kernel cannot do that (%s); it takes Linux 5.9 "
                    "or later, with BPF and XDP",
                    what, strerror(error));
    return fail("%s: %s", what, strerror(error));
}

/* -------------------------------------------------------------------- maps */

struct xdp_maps {
    int at[XDP_NMAPS]; /* that of the counters is the caller's */
};

static void maps_close(struct xdp_maps *m)
{
    for (unsigned i = 0; i < XDP_COUNTERS; i++)
        if (m->at[i] >= 0)
            close(m->at[i]);
}

static bool blocks_fill(struct xdp_maps *m, const bly_blocked *b)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t n = (size_t)b->nblocks * BLOCK_BYTES;
    const struct bpf_map_spec spec = { .type = BPF_MAP_TYPE_ARRAY,
                                       .key = 4,
                                       .value = BLOCK_BYTES,
                                       .entries = (uint32_t)b->nblocks,
                                       .flags = BPF_F_MMAPABLE };
    m->at[XDP_BLOCKS] = bpf_map_new(&spec);
    if (m->at[XDP_BLOCKS] < 0)
        return !xdp_fail("a map for the list", errno);
    const size_t all = (n + page - 1) / page * page;
    void *const at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED,
                          m->at[XDP_BLOCKS], 0);
    if (at == MAP_FAILED)
        return !xdp_fail("the memory of a map", errno);
    memcpy(at, b->words, n);
    munmap(at, all);
    return true;
}

static bool list_fill(struct xdp_maps *m, const struct block_file *list,
                      const bly_blocked *b, const struct prefix_set *allow)
{
    /* The first words of XXH3's secret. */
    static const uint64_t secret[4] = { UINT64_C(0xbe4ba423396cfeb8),
                                        UINT64_C(0x1cad21f72c81017c),
                                        UINT64_C(0xdb979083e96dd4de),
                                        UINT64_C(0x1f67b3b7a4a44072) };
    const uint64_t seed = bly_hasher_of(list->filter)->seed;
    const struct prefix_lengths *const l = &list->lengths;
    struct xdp_list out = {
        .nblocks = b->nblocks,
        .turned = bly_int_turned(b->flip),
        .mixed = { secret[0] + seed, secret[1] - seed, secret[2] + seed,
                   secret[3] - seed },
        .nfour = l->nfour,
        .nsix = l->nsix,
    };
    for (size_t i = 0; i < allow->n; i++)
        out.allowed[allow->at[i].version == 6]++;
    memcpy(out.four, l->four, l->nfour);
    memcpy(out.six, l->six, l->nsix);
    const struct bpf_map_spec spec = { .type = BPF_MAP_TYPE_ARRAY,
                                       .key = 4,
                                       .value = sizeof out,
                                       .entries = 1,
                                       .flags = BPF_F_RDONLY_PROG };
    m->at[XDP_LIST] = bpf_map_new(&spec);
    if (m->at[XDP_LIST] < 0 ||
        bpf_map_set(m->at[XDP_LIST], &(uint32_t){ 0 }, &out) < 0 ||
        bpf_map_freeze(m->at[XDP_LIST]) < 0)
        return !xdp_fail("a map for the lengths", errno);
    return true;
}

static bool allow_fill(struct xdp_maps *m, const struct prefix_set *allow)
{
    uint32_t n[2] = { 0 };
    for (size_t i = 0; i < allow->n; i++)
        n[allow->at[i].version == 6]++;
    for (unsigned six = 0; six < 2; six++) {
        const struct bpf_map_spec spec = { .type = BPF_MAP_TYPE_LPM_TRIE,
                                           .key = six ? 20 : 8,
                                           .value = 1,
                                           .entries = n[six] + 1,
                                           .flags = BPF_F_NO_PREALLOC };
        m->at[XDP_ALLOW4 + six] = bpf_map_new(&spec);
        if (m->at[XDP_ALLOW4 + six] < 0)
            return !xdp_fail("a map for those who are allowed", errno);
    }
    for (size_t i = 0; i < allow->n; i++) {
        const struct prefix *const p = &allow->at[i];
        struct xdp_allowed who = { .bits = p->bits };
        memcpy(who.at, p->at, sizeof who.at);
        if (bpf_map_set(m->at[p->version == 6 ? XDP_ALLOW6 : XDP_ALLOW4], &who,
                        &(uint8_t){ 1 }) < 0)
            return !xdp_fail("a map for those who are allowed", errno);
    }
    return true;
}

int xdp_counters_new(void)
{
    const struct bpf_map_spec spec = { .type = BPF_MAP_TYPE_PERCPU_ARRAY,
                                       .key = 4,
                                       .value = sizeof(struct xdp_counter),
                                       .entries = XDP_NCOUNTERS };
    /* Kernels before 5.11 count maps as locked memory. */
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
    const int fd = bpf_map_new(&spec);
    if (fd < 0)
        xdp_fail("a map for the counters", errno);
    return fd;
}

/* ----------------------------------------------------------------- program */

/* Loading 64 bits takes two instructions; in the first, the kernel wants the
 * source register 1 where the value is the descriptor of a map, and 2 where the
 * address of its first element is meant. */
static void code_link(uint64_t *code, const struct xdp_maps *maps)
{
    const uint64_t load = 0x18;
    for (size_t i = 0; i + 1 < NCODE; i++) {
        const uint64_t value = code[i] >> 32 | (code[i + 1] >> 32) << 32;
        if ((code[i] & 0xff) != load)
            continue;
        if (value >= XDP_MAP && value < XDP_MAP + XDP_NMAPS) {
            const uint64_t source = value == XDP_MAP + XDP_LIST ? 2 : 1;
            code[i] = (code[i] & 0x0fff) | source << 12 |
                      (uint64_t)(uint32_t)maps->at[value - XDP_MAP] << 32;
            code[i + 1] = 0;
        }
        i++;
    }
}

static int program_load(const struct xdp_maps *maps)
{
    static char why[1 << 16];
    uint64_t code[NCODE];
    memcpy(code, xdp_code, sizeof code);
    code_link(code, maps);
    const int fd = bpf_xdp_load(code, NCODE, why, sizeof why);
    if (fd >= 0)
        return fd;
    /* Its last lines say how far it came; the one before them, why. */
    char *const end = strstr(why, "\nprocessed ");
    if (end)
        *end = '\0';
    const char *const line = strrchr(why, '\n');
    if (why[0])
        fail("the kernel refused the program: %s", line ? line + 1 : why);
    else
        xdp_fail("the program", errno);
    return -1;
}

int xdp_load(const struct block_file *list, const struct prefix_set *allow,
             int counters)
{
    struct xdp_maps maps = { { -1, -1, -1, -1, counters } };
    bly_blocked b;
    bly_stats s;
    int program = -1;
    if (!xdp_here())
        return -1;
    bly_peek(list->filter, &s);
    if (!bly_blocked_view(list->filter, &b) || b.k != 8 ||
        b.nblocks > UINT32_MAX) {
        fail("the kernel can only ask lists of kind blocked with k = 8 and "
             "without a key, and this one is %s%s; use one made without --ttl "
             "and --key-file",
             s.kind, s.keyed ? ", keyed" : "");
        return -1;
    }
    if (blocks_fill(&maps, &b) && list_fill(&maps, list, &b, allow) &&
        allow_fill(&maps, allow))
        program = program_load(&maps);
    maps_close(&maps); /* the program keeps them */
    return program;
}

/* ------------------------------------------------------------------- trials */

bool xdp_trial_begin(struct xdp_trial *t, const struct block_file *list,
                     const struct prefix_set *allow)
{
    *t = (struct xdp_trial){ .program = -1 };
    if (!xdp_here())
        return false;
    t->counters = xdp_counters_new();
    if (t->counters < 0)
        return false;
    t->begun = true;
    t->program = xdp_load(list, allow, t->counters);
    return t->program >= 0;
}

bool xdp_trial_packet(struct xdp_trial *t, const unsigned char *at, size_t n,
                      bool stopped, uint64_t *disagree)
{
    uint32_t verdict, ns;
    if (n < TRY_LEAST) { /* the kernel makes no such packets */
        *disagree += stopped;
        return true;
    }
    n = n < TRY_MOST ? n : TRY_MOST;
    if (bpf_xdp_try(t->program, at, n, 1, &verdict, &ns) < 0)
        return !xdp_fail("a run of the program", errno);
    *disagree += (verdict == XDP_DROP) != stopped;
    if (t->timed[stopped] == TRY_TIMED)
        return true;
    if (bpf_xdp_try(t->program, at, n, TRY_REPEAT, &verdict, &ns) < 0)
        return !xdp_fail("a run of the program", errno);
    /* The least: the others waited for another program. */
    if (!t->timed[stopped]++ || ns < t->ns[stopped])
        t->ns[stopped] = ns;
    return true;
}

double xdp_empty_ns(void)
{
    /* r0 = XDP_PASS; exit */
    static const uint64_t code[] = { UINT64_C(0x00000002000000b7), 0x95 };
    static const unsigned char packet[TRY_LEAST];
    const int program = bpf_xdp_load(code, 2, NULL, 0);
    uint32_t verdict, ns, least = UINT32_MAX;
    bool ok = program >= 0;
    for (unsigned i = 0; ok && i < TRY_TIMED; i++) {
        ok = bpf_xdp_try(program, packet, sizeof packet, TRY_REPEAT, &verdict,
                         &ns) == 0;
        least = ok && ns < least ? ns : least;
    }
    if (program >= 0)
        close(program);
    return ok ? (double)least : (double)NAN;
}

double xdp_trial_ns(const struct xdp_trial *t, bool stopped)
{
    return t->timed[stopped] ? (double)t->ns[stopped] : NAN;
}

void xdp_trial_end(struct xdp_trial *t)
{
    if (!t->begun)
        return;
    if (t->program >= 0)
        close(t->program);
    close(t->counters);
    *t = (struct xdp_trial){ 0 };
}

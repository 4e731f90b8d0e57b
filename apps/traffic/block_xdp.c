/*
 * block_xdp.c - a block list as a program in the kernel
 *
 * The base of every list gets maps of its own, which nobody writes to once the
 * program is there; a new list is a new program, and the link swaps the two
 * between one packet and the next. So a packet is judged by the old list or by
 * the new one, and never by a part of either. The live part (block_live.h) goes
 * on from one program to the next.
 */
#define _GNU_SOURCE
#include "apps/traffic/block_xdp.h"

#include <errno.h>
#include <linux/bpf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "apps/traffic/bpf.h"
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
#define TICK_LEAST 1e8        /* nanoseconds: times are in seconds */
#define MOST_TICKS 0x3fffffff /* a quarter of all */

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

void xdp_maps_close(struct xdp_maps *m)
{
    for (unsigned i = 0; i < XDP_NMAPS; i++) {
        if (m->at[i] >= 0)
            close(m->at[i]);
        m->at[i] = -1;
    }
}

/* n elements that can be written as memory, and that memory. */
static int array_new(const char *what, uint32_t value, uint32_t n)
{
    const struct bpf_map_spec spec = { .type = BPF_MAP_TYPE_ARRAY,
                                       .key = 4,
                                       .value = value,
                                       .entries = n,
                                       .flags = BPF_F_MMAPABLE };
    const int map = bpf_map_new(&spec);
    if (map < 0)
        xdp_fail(what, errno);
    return map;
}

static size_t whole_pages(size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (n + page - 1) / page * page;
}

static void *array_map(int map, size_t n)
{
    void *const at =
        mmap(NULL, whole_pages(n), PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    if (at != MAP_FAILED)
        return at;
    xdp_fail("the memory of a map", errno);
    return NULL;
}

static bool blocks_fill(struct xdp_maps *m, const bly_blocked *b)
{
    const size_t n = (size_t)b->nblocks * BLOCK_BYTES;
    m->at[XDP_BLOCKS] =
        array_new("a map for the list", BLOCK_BYTES, (uint32_t)b->nblocks);
    void *const at =
        m->at[XDP_BLOCKS] < 0 ? NULL : array_map(m->at[XDP_BLOCKS], n);
    if (!at)
        return false;
    memcpy(at, b->words, n);
    munmap(at, whole_pages(n));
    return true;
}

static bool allow_fill(struct xdp_maps *m, const struct prefix_set *allow)
{
    uint32_t *const n = m->list.allowed;
    n[0] = n[1] = 0;
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

/* The first words of XXH3's secret. */
static const uint64_t secret[4] = { UINT64_C(0xbe4ba423396cfeb8),
                                    UINT64_C(0x1cad21f72c81017c),
                                    UINT64_C(0xdb979083e96dd4de),
                                    UINT64_C(0x1f67b3b7a4a44072) };

static bool base_fill(struct xdp_maps *m, const struct block_file *base)
{
    const uint64_t seed = bly_hasher_of(base->filter)->seed;
    const struct prefix_lengths *const l = &base->lengths;
    bly_blocked b;
    bly_stats s;
    bly_peek(base->filter, &s);
    if (!bly_blocked_view(base->filter, &b) || b.k != 8 ||
        b.nblocks > UINT32_MAX)
        return refuse(
            "the kernel can only ask lists of kind blocked with k = 8 and "
            "without a key, and this one is %s%s; use one made without --ttl "
            "and --key-file, or give --xdp the lines themselves",
            s.kind, s.keyed ? ", keyed" : "");
    m->list.nblocks = b.nblocks;
    m->list.base = (struct xdp_hash){ bly_int_turned(b.flip),
                                      { secret[0] + seed, secret[1] - seed,
                                        secret[2] + seed, secret[3] - seed } };
    for (unsigned i = 0; i < l->nfour; i++)
        xdp_length_add(&m->list, 4, l->four[i], XDP_IN_BASE);
    for (unsigned i = 0; i < l->nsix; i++)
        xdp_length_add(&m->list, 6, l->six[i], XDP_IN_BASE);
    return blocks_fill(m, &b);
}

bool xdp_base_new(struct xdp_maps *m, const struct block_file *base,
                  const struct prefix_set *allow)
{
    static const uint64_t none[8];
    const bly_blocked empty = { .words = none, .nblocks = 1 };
    m->list.nblocks = 1;
    return (base->filter ? base_fill(m, base) : blocks_fill(m, &empty)) &&
           allow_fill(m, allow);
}

/* The coarse clock goes on with the jiffies. */
static double jiffy_ns(void)
{
    struct timespec each;
    return clock_getres(CLOCK_MONOTONIC_COARSE, &each) == 0
               ? (double)each.tv_nsec
               : 4e6;
}

bool xdp_live_new(struct xdp_maps *m, uint64_t entries)
{
    const uint32_t n = live_lines(entries);
    if (!n)
        return refuse("%llu entries that change or expire are more than the "
                      "kernel's table has room for; put those that stay into "
                      "a LIST.bly",
                      (unsigned long long)entries);
    m->list.nlines = n;
    /* Where nobody knows the secret, nobody finds two with one print. */
    if (getrandom(&m->list.live, sizeof m->list.live, 0) < 0)
        return refuse("the system has no random numbers");
    m->list.shift = 0;
    for (double ns = jiffy_ns(); ns < TICK_LEAST && m->list.shift < 15; ns *= 2)
        m->list.shift++;
    m->at[XDP_LIVE] =
        array_new("a map for entries", sizeof(struct xdp_line), n);
    m->at[XDP_HITS] = m->at[XDP_LIVE] < 0
                          ? -1
                          : array_new("a map for what they stop",
                                      sizeof(struct xdp_hits), n * 8);
    return m->at[XDP_HITS] >= 0;
}

bool xdp_live_open(const struct xdp_maps *m, struct live_table *t)
{
    const size_t n = (size_t)m->list.nlines * sizeof(struct xdp_line);
    *t = (struct live_table){ .nlines = m->list.nlines };
    t->lines = array_map(m->at[XDP_LIVE], n);
    t->hits = t->lines ? array_map(m->at[XDP_HITS], n) : NULL;
    if (t->hits)
        return true;
    xdp_live_close(t);
    return false;
}

void xdp_live_close(struct live_table *t)
{
    const size_t n = whole_pages((size_t)t->nlines * sizeof(struct xdp_line));
    _Static_assert(sizeof(struct xdp_line) == 8 * sizeof(struct xdp_hits),
                   "as long as each other");
    if (t->lines)
        munmap(t->lines, n);
    if (t->hits)
        munmap(t->hits, n);
    *t = (struct live_table){ 0 };
}

bool xdp_counters_new(struct xdp_maps *m)
{
    const struct bpf_map_spec spec = { .type = BPF_MAP_TYPE_PERCPU_ARRAY,
                                       .key = 4,
                                       .value = sizeof(struct xdp_counter),
                                       .entries = XDP_NCOUNTERS };
    /* Kernels before 5.11 count maps as locked memory. */
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
    m->at[XDP_COUNTERS] = bpf_map_new(&spec);
    return m->at[XDP_COUNTERS] >= 0 ||
           !xdp_fail("a map for the counters", errno);
}

/* ------------------------------------------------------------------- lengths
 */

static bool length_in(uint8_t *lengths, uint8_t *in, uint32_t *n, uint8_t bits,
                      unsigned part)
{
    uint32_t i = 0;
    while (i < *n && lengths[i] > bits)
        i++;
    if (i == *n || lengths[i] != bits) {
        memmove(lengths + i + 1, lengths + i, *n - i);
        memmove(in + i + 1, in + i, *n - i);
        lengths[i] = bits;
        in[i] = 0;
        ++*n;
    }
    const bool fresh = !(in[i] & part);
    in[i] |= (uint8_t)part;
    return fresh;
}

bool xdp_length_add(struct xdp_list *l, uint8_t version, uint8_t bits,
                    unsigned part)
{
    return version == 4 ? length_in(l->four, l->four_in, &l->nfour, bits, part)
                        : length_in(l->six, l->six_in, &l->nsix, bits, part);
}

void xdp_lengths_of(const struct xdp_list *l, unsigned part,
                    struct prefix_lengths *out)
{
    *out = (struct prefix_lengths){ 0 };
    for (uint32_t i = 0; i < l->nfour && i < 33; i++)
        if (l->four_in[i] & part)
            out->four[out->nfour++] = l->four[i];
    for (uint32_t i = 0; i < l->nsix && i < 129; i++)
        if (l->six_in[i] & part)
            out->six[out->nsix++] = l->six[i];
}

bool xdp_base_has(const struct xdp_maps *m, const struct prefix *p)
{
    struct prefix_lengths l;
    uint64_t block[8];
    xdp_lengths_of(&m->list, XDP_IN_BASE, &l);
    if (!memchr(p->version == 4 ? l.four : l.six, p->bits,
                p->version == 4 ? l.nfour : l.nsix))
        return false;
    const uint64_t hash = live_hash(&m->list.base, p);
    const uint32_t number = (uint32_t)bly_mulhi(hash, m->list.nblocks);
    if (bpf_map_get(m->at[XDP_BLOCKS], &number, block) < 0)
        return true;
    const uint64_t g = bly_lines_spread(hash, BLY_LINES_C1);
    uint64_t all = 1;
    for (unsigned i = 0; i < 8; i++)
        all &= block[i] >> (g >> 6 * i & 63);
    return all != 0;
}

/* --------------------------------------------------------------------- time */

bool xdp_now(uint32_t shift, uint32_t *now)
{
    /* r0 = jiffies; r0 >>= shift; exit */
    const uint64_t code[] = { UINT64_C(0x0000007600000085),
                              0x77 | (uint64_t)shift << 32, 0x95 };
    static const unsigned char packet[TRY_LEAST];
    uint32_t ns;
    const int program = bpf_xdp_load(code, 3, NULL, 0);
    const bool ok = program >= 0 && bpf_xdp_try(program, packet, sizeof packet,
                                                1, now, &ns) == 0;
    const int error = errno;
    if (program >= 0)
        close(program);
    return ok || !xdp_fail("the kernel's clock", error);
}

uint32_t xdp_end(uint32_t shift, uint32_t now, double seconds)
{
    const double n = ceil(seconds * 1e9 / (jiffy_ns() * (1U << shift)));
    /* The tick that it is has begun already. */
    const uint32_t end = now + (uint32_t)fmin(n, MOST_TICKS) + 1;
    return end < XDP_FIRST_TICK ? end + XDP_FIRST_TICK : end;
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

int xdp_load(struct xdp_maps *m)
{
    const struct bpf_map_spec spec = { .type = BPF_MAP_TYPE_ARRAY,
                                       .key = 4,
                                       .value = sizeof m->list,
                                       .entries = 1,
                                       .flags = BPF_F_RDONLY_PROG };
    if (!xdp_here())
        return -1;
    if (m->at[XDP_LIST] >= 0)
        close(m->at[XDP_LIST]);
    m->at[XDP_LIST] = bpf_map_new(&spec);
    if (m->at[XDP_LIST] < 0 ||
        bpf_map_set(m->at[XDP_LIST], &(uint32_t){ 0 }, &m->list) < 0 ||
        bpf_map_freeze(m->at[XDP_LIST]) < 0) {
        xdp_fail("a map for the lengths", errno);
        return -1;
    }
    return program_load(m);
}

/* ------------------------------------------------------------------- trials */

bool xdp_trial_begin(struct xdp_trial *t, const struct block_file *list,
                     const struct prefix_set *allow, bool only)
{
    struct xdp_maps m = XDP_NO_MAPS;
    *t = (struct xdp_trial){ .program = -1 };
    m.list.only = only;
    t->begun = xdp_here() && xdp_counters_new(&m) && xdp_live_new(&m, 1) &&
               xdp_base_new(&m, list, allow);
    t->program = t->begun ? xdp_load(&m) : -1;
    xdp_maps_close(&m); /* the program keeps them */
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
    *t = (struct xdp_trial){ 0 };
}

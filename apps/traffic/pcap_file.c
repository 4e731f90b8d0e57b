/*
 * pcap_file.c - captures in files: pcap and pcapng
 *
 *     pcap     header of 24 bytes, then for each packet
 *                 seconds, fraction, captured, wire     4 bytes each
 *                 the captured bytes
 *     pcapng   blocks: type, length, body, length again; lengths count all of
 *              the block. A section header resets everything, interfaces are
 *              numbered as they come, packets name theirs.
 *
 * Both are read through a window that moves over the file. What a packet says
 * of its length decides how much of the file must be there before it is used.
 */
#include "apps/traffic/pcap_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/grow.h"

#define ROOM ((size_t)1 << 20)
#define AT_ONCE ((size_t)1 << 17) /* that are read: they stay in cache */
/* What libpcap and tshark take too: more is damage. */
#define MOST_CAPTURED 262144
#define MOST_INTERFACES 65536
#define NS INT64_C(1000000000)

enum {
    NG_SECTION = 0x0a0d0d0a,
    NG_ORDER = 0x1a2b3c4d,
    NG_INTERFACE = 1,
    NG_PACKET_OLD = 2,
    NG_SIMPLE = 3,
    NG_PACKET = 6,
    NG_RESOLUTION = 9,
    NG_OFFSET = 14
};

struct ng_interface {
    uint16_t link;
    uint32_t snap;      /* 0: no limit */
    uint8_t resolution; /* as in the option: a power of 10, or with 0x80 of 2 */
    int64_t offset;     /* seconds */
};

struct pcap_file {
    pcap_read *read;
    void *ctx;
    unsigned char *bytes; /* ROOM of them; [at, end) are to be read */
    size_t at, end;
    bool begun, ended, big;
    const char *why;

    /* pcap */
    bool ng;
    size_t header; /* of a packet */
    int64_t unit;  /* nanoseconds of the fraction */
    bool swapped, maybe_swapped;
    int link;

    /* pcapng */
    struct ng_interface *interfaces;
    size_t ninterfaces, room;
    int64_t last; /* time of the packet before: a simple one has none */
};

struct pcap_file *pcap_file_new(pcap_read *read, void *ctx)
{
    struct pcap_file *const f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->read = read;
    f->ctx = ctx;
    f->link = -1;
    f->bytes = malloc(ROOM);
    if (f->bytes)
        return f;
    free(f);
    return NULL;
}

void pcap_file_free(struct pcap_file *f)
{
    if (!f)
        return;
    free(f->interfaces);
    free(f->bytes);
    free(f);
}

const char *pcap_file_why(const struct pcap_file *f)
{
    return f->why;
}

/* -------------------------------------------------------------------- bytes */

static enum pcap_got damaged(struct pcap_file *f, const char *why)
{
    f->why = why;
    return PCAP_DAMAGED;
}

/* n bytes into the window, n <= ROOM. PCAP_END: there are none at all. */
static enum pcap_got fetch(struct pcap_file *f, size_t n, const char *cut)
{
    if (f->end - f->at >= n)
        return PCAP_PACKET;
    memmove(f->bytes, f->bytes + f->at, f->end - f->at);
    f->end -= f->at;
    f->at = 0;
    while (f->end < n && !f->ended) {
        const size_t room = ROOM - f->end;
        const ptrdiff_t got =
            f->read(f->ctx, f->bytes + f->end, room < AT_ONCE ? room : AT_ONCE);
        if (got < 0)
            return PCAP_BROKEN;
        f->ended = got == 0;
        f->end += (size_t)got;
    }
    if (f->end >= n)
        return PCAP_PACKET;
    return f->end ? damaged(f, cut) : PCAP_END;
}

/* n bytes away, be they in the window or not. */
static enum pcap_got skip(struct pcap_file *f, uint64_t n, const char *cut)
{
    while (n > f->end - f->at) {
        n -= f->end - f->at;
        f->at = f->end;
        const enum pcap_got got = fetch(f, 1, cut);
        if (got == PCAP_END)
            return damaged(f, cut);
        if (got != PCAP_PACKET)
            return got;
    }
    f->at += (size_t)n;
    return PCAP_PACKET;
}

/* By two functions, and not by a loop that does not know how many bytes: this
 * is what a packet waits for. */
static uint32_t u32_of(const struct pcap_file *f, const unsigned char *at)
{
    uint32_t v;
    memcpy(&v, at, 4);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return f->big ? v : __builtin_bswap32(v);
#else
    return f->big ? __builtin_bswap32(v) : v;
#endif
}

static uint16_t u16_of(const struct pcap_file *f, const unsigned char *at)
{
    return (uint16_t)(f->big ? get_be(at, 2) : get_le(at, 2));
}

/* --------------------------------------------------------------------- pcap */

#define CUT_PACKET "truncated: the file ends inside of a packet"
#define CUT_BLOCK "truncated: the file ends inside of a block"

static enum pcap_got pcap_begin_file(struct pcap_file *f, uint32_t magic)
{
    const enum pcap_got got =
        fetch(f, 24, "truncated: the file ends inside of its header");
    if (got != PCAP_PACKET)
        return got;
    const unsigned char *const at = f->bytes + f->at;
    const unsigned major = u16_of(f, at + 4), minor = u16_of(f, at + 6);
    if (major != 2 || minor > 4)
        return damaged(f, "a version of pcap that is not 2.0 to 2.4");
    f->unit = magic == 0xa1b23c4d ? 1 : 1000;
    f->header = magic == 0xa1b2cd34 ? 24 : 16;
    /* Before 2.3 the lengths stood the other way round, and some programs that
     * wrote 2.3 did not know. */
    f->swapped = minor < 3;
    f->maybe_swapped = minor == 3;
    f->link = (int)(u32_of(f, at + 20) & 0xffff);
    f->at += 24;
    return PCAP_PACKET;
}

static enum pcap_got pcap_next_packet(struct pcap_file *f,
                                      struct pcap_packet *p)
{
    enum pcap_got got = fetch(f, f->header, CUT_PACKET);
    if (got != PCAP_PACKET)
        return got;
    const unsigned char *at = f->bytes + f->at;
    uint32_t n = u32_of(f, at + 8), wire = u32_of(f, at + 12);
    if (f->swapped || (f->maybe_swapped && n > wire)) {
        const uint32_t was = n;
        n = wire;
        wire = was;
    }
    if (n > MOST_CAPTURED)
        return damaged(f, "a packet of more than 262144 bytes");
    p->ns = (int64_t)u32_of(f, at) * NS + u32_of(f, at + 4) * f->unit;
    got = fetch(f, f->header + n, CUT_PACKET);
    if (got != PCAP_PACKET)
        return got;
    p->at = f->bytes + f->at + f->header;
    p->n = n;
    p->wire = wire;
    p->link = f->link;
    f->at += f->header + n;
    return PCAP_PACKET;
}

/* ------------------------------------------------------------------- pcapng */

/* Time in units of an interface, as nanoseconds: fractions that are finer are
 * cut off, and what does not fit is the end of time. */
static int64_t ng_time(const struct ng_interface *i, uint64_t units)
{
    const unsigned power = i->resolution & 0x7f;
    uint64_t per = 1, seconds, ns;
    if (i->resolution & 0x80) {
        if (power > 63)
            return 0;
        per = UINT64_C(1) << power;
    } else {
        if (power > 19)
            return 0;
        for (unsigned k = 0; k < power; k++)
            per *= 10;
    }
    seconds = units / per;
    const uint64_t rest = units % per;
    ns = per <= UINT64_MAX / (uint64_t)NS
             ? rest * (uint64_t)NS / per
             : (uint64_t)((double)rest / (double)per * (double)NS);
    if (seconds > INT64_MAX / (uint64_t)NS / 2)
        return INT64_MAX / 2;
    const int64_t most = INT64_MAX / NS / 4;
    const int64_t offset = i->offset > most    ? most
                           : i->offset < -most ? -most
                                               : i->offset;
    return (int64_t)seconds * NS + (int64_t)ns + offset * NS;
}

static void ng_options(const struct pcap_file *f, const unsigned char *at,
                       size_t n, struct ng_interface *out)
{
    while (n >= 4) {
        const unsigned code = u16_of(f, at), len = u16_of(f, at + 2);
        const size_t all = 4 + ((size_t)len + 3) / 4 * 4;
        if (!code || all > n)
            return;
        if (code == NG_RESOLUTION && len == 1)
            out->resolution = at[4];
        if (code == NG_OFFSET && len == 8)
            out->offset =
                (int64_t)(f->big ? get_be(at + 4, 8) : get_le(at + 4, 8));
        at += all;
        n -= all;
    }
}

static enum pcap_got ng_interface(struct pcap_file *f, const unsigned char *at,
                                  size_t n)
{
    if (n < 8)
        return damaged(f, "an interface that is too short");
    if (f->ninterfaces == MOST_INTERFACES)
        return damaged(f, "more than 65536 interfaces");
    if (!GROW(&f->interfaces, &f->room, f->ninterfaces + 1))
        return damaged(f, "out of memory");
    struct ng_interface *const i = &f->interfaces[f->ninterfaces++];
    *i = (struct ng_interface){ .link = u16_of(f, at),
                                .snap = u32_of(f, at + 4),
                                .resolution = 6 };
    ng_options(f, at + 8, n - 8, i);
    return PCAP_PACKET;
}

/* A packet of interface `number`, `n` bytes of which are at `at`. */
static enum pcap_got ng_packet(struct pcap_file *f, size_t number,
                               const unsigned char *at, size_t n,
                               const unsigned char *head, struct pcap_packet *p)
{
    if (number >= f->ninterfaces)
        return damaged(f, "a packet of an interface that is not described");
    const struct ng_interface *const i = &f->interfaces[number];
    if (head) {
        const size_t captured = u32_of(f, head + 8);
        if (captured > n)
            return damaged(f, "a packet that is longer than its block");
        n = captured;
        p->wire = u32_of(f, head + 12);
        f->last =
            ng_time(i, (uint64_t)u32_of(f, head) << 32 | u32_of(f, head + 4));
    } else {
        n = p->wire < n ? p->wire : n;
        n = i->snap && i->snap < n ? i->snap : n;
    }
    if (n > MOST_CAPTURED)
        return damaged(f, "a packet of more than 262144 bytes");
    p->ns = f->last;
    p->at = at;
    p->n = n;
    p->link = i->link;
    return PCAP_PACKET;
}

/* The order of bytes of a section, which is that of its magic number. */
static enum pcap_got ng_section(struct pcap_file *f)
{
    const enum pcap_got got = fetch(f, 28, CUT_BLOCK);
    if (got != PCAP_PACKET)
        return got == PCAP_END ? damaged(f, CUT_BLOCK) : got;
    const unsigned char *const at = f->bytes + f->at + 8;
    f->big = get_be(at, 4) == NG_ORDER;
    if (!f->big && get_le(at, 4) != NG_ORDER)
        return damaged(f, "a section whose order of bytes is unknown");
    if (u16_of(f, at + 4) != 1)
        return damaged(f, "a version of pcapng that is not 1");
    f->ninterfaces = 0;
    f->ng = true;
    return PCAP_PACKET;
}

/* The body of a block that is in the window. *is: it is a packet. */
static enum pcap_got ng_body(struct pcap_file *f, uint32_t type,
                             const unsigned char *at, size_t n,
                             struct pcap_packet *p, bool *is)
{
    switch (type) {
    case NG_INTERFACE:
        return ng_interface(f, at, n);
    case NG_PACKET:
    case NG_PACKET_OLD:
        if (n < 20)
            return damaged(f, "a packet that is too short");
        *is = true;
        return ng_packet(f, type == NG_PACKET ? u32_of(f, at) : u16_of(f, at),
                         at + 20, n - 20, at + 4, p);
    case NG_SIMPLE:
        if (n < 4)
            return damaged(f, "a packet that is too short");
        *is = true;
        p->wire = u32_of(f, at);
        return ng_packet(f, 0, at + 4, n - 4, NULL, p);
    default:
        return PCAP_PACKET;
    }
}

static enum pcap_got ng_next_packet(struct pcap_file *f, struct pcap_packet *p)
{
    for (;;) {
        bool is = false;
        enum pcap_got got = fetch(f, 12, CUT_BLOCK);
        if (got != PCAP_PACKET)
            return got;
        /* A section's type reads the same in both orders. */
        const uint32_t type = u32_of(f, f->bytes + f->at);
        if (type == NG_SECTION) {
            got = ng_section(f);
            if (got != PCAP_PACKET)
                return got;
        }
        const uint32_t all = u32_of(f, f->bytes + f->at + 4);
        if (all < 12 || all % 4 || (type == NG_SECTION && all < 28))
            return damaged(f, "a block with an impossible length");
        const bool wanted = type == NG_INTERFACE || type == NG_PACKET ||
                            type == NG_PACKET_OLD || type == NG_SIMPLE;
        if (!wanted || all > ROOM) {
            if (wanted)
                return damaged(f, "a block of more than a megabyte");
            got = skip(f, all, CUT_BLOCK);
        } else {
            got = fetch(f, all, CUT_BLOCK);
            const unsigned char *const at = f->bytes + f->at;
            if (got == PCAP_PACKET && u32_of(f, at + all - 4) != all)
                return damaged(f, "a block whose two lengths differ");
            if (got == PCAP_PACKET)
                got = ng_body(f, type, at + 8, all - 12, p, &is);
            f->at += got == PCAP_PACKET ? all : 0;
        }
        if (got != PCAP_PACKET || is)
            return got;
    }
}

/* ---------------------------------------------------------------------- all */

enum pcap_got pcap_file_begin(struct pcap_file *f)
{
    static const uint32_t magics[] = { 0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34 };
    const char *const none = "neither pcap nor pcapng";
    const enum pcap_got got = fetch(f, 4, none);
    if (got != PCAP_PACKET)
        return got == PCAP_END ? damaged(f, "empty, and no capture") : got;
    const unsigned char *const at = f->bytes + f->at;
    f->begun = true;
    if (get_be(at, 4) == NG_SECTION)
        return ng_section(f);
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        f->big = get_be(at, 4) == magics[i];
        if (f->big || get_le(at, 4) == magics[i])
            return pcap_begin_file(f, magics[i]);
    }
    return damaged(f, none);
}

enum pcap_got pcap_file_next(struct pcap_file *f, struct pcap_packet *p)
{
    if (f->why)
        return PCAP_DAMAGED; /* and it stays so */
    if (!f->begun) {
        const enum pcap_got got = pcap_file_begin(f);
        if (got != PCAP_PACKET)
            return got;
    }
    return f->ng ? ng_next_packet(f, p) : pcap_next_packet(f, p);
}

/*
 * fuzz_capture.c - any bytes as a capture
 *
 * What is found lies inside of the bytes, and does not depend on how many of
 * them a read gives. Whoever has met damage meets it again.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/packet.h"
#include "apps/traffic/pcap_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *at;
    size_t n, most; /* per read */
};

static ptrdiff_t give(void *ctx, void *buf, size_t n)
{
    struct bytes *const b = ctx;
    n = n < b->n ? n : b->n;
    n = n < b->most ? n : b->most;
    memcpy(buf, b->at, n);
    b->at += n;
    b->n -= n;
    return (ptrdiff_t)n;
}

struct told {
    uint64_t packets, bytes, sum;
    enum pcap_got end;
};

static struct told all_of(const uint8_t *data, size_t size, size_t most)
{
    struct bytes b = { data, size, most };
    struct told t = { 0 };
    struct pcap_packet p = { 0 };
    struct packet parsed;
    struct pcap_file *const f = pcap_file_new(give, &b);
    if (!f)
        return t;
    while ((t.end = pcap_file_next(f, &p)) == PCAP_PACKET) {
        assert(p.n <= size);
        t.packets++;
        t.bytes += p.wire;
        for (size_t i = 0; i < p.n; i++)
            t.sum = t.sum * 31 + p.at[i];
        t.sum = t.sum * 31 + (uint64_t)p.ns;
        packet_parse(p.link, p.at, p.n, true, &parsed);
    }
    assert((t.end == PCAP_DAMAGED) == (pcap_file_why(f) != NULL));
    if (t.end == PCAP_DAMAGED)
        assert(pcap_file_next(f, &p) == PCAP_DAMAGED);
    pcap_file_free(f);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct told a = all_of(data, size, SIZE_MAX);
    const struct told b = all_of(data, size, 7);
    assert(a.packets == b.packets && a.bytes == b.bytes && a.sum == b.sum &&
           a.end == b.end);
    return 0;
}

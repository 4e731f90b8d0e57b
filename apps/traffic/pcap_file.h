/*
 * pcap_file.h - captures in files: pcap and pcapng
 *
 * Files are hostile: no length in them is believed that the bytes do not have.
 * pcap in both orders of bytes, with micro- and nanoseconds, and in the form of
 * old Linux systems, which has 8 bytes more per packet; pcapng with sections of
 * both orders and interfaces that differ in link type, snap length and
 * resolution of time. Compressed files are unpacked on the way.
 */
#ifndef BLY_TRAFFIC_PCAP_FILE_H
#define BLY_TRAFFIC_PCAP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pcap_file;

struct pcap_packet {
    int64_t ns;              /* since 1970 */
    const unsigned char *at; /* until the next call */
    size_t n, wire;          /* captured, and on the wire */
    int link;                /* number of the link type */
};

/* As many bytes as there are, n at most; 0 at the end, negative for trouble. */
typedef ptrdiff_t pcap_read(void *ctx, void *buf, size_t n);

/* Begin to read. NULL: no memory. */
struct pcap_file *pcap_file_new(pcap_read *read, void *ctx);
void pcap_file_free(struct pcap_file *f);

enum pcap_got {
    PCAP_PACKET,
    PCAP_END,
    PCAP_DAMAGED, /* pcap_file_why() */
    PCAP_BROKEN   /* read() failed */
};
/* Read the header, PCAP_PACKET if it is one; and the next packet. */
enum pcap_got pcap_file_begin(struct pcap_file *f);
enum pcap_got pcap_file_next(struct pcap_file *f, struct pcap_packet *p);
const char *pcap_file_why(const struct pcap_file *f);

#endif

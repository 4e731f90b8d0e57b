/*
 * capture.h - packets, from a file or from an interface
 */
#ifndef BLY_TRAFFIC_CAPTURE_H
#define BLY_TRAFFIC_CAPTURE_H

#include "apps/traffic/traffic_args.h"
#include "apps/traffic/packet.h"
#include "base/signals.h"

struct captured_frame {
    int64_t ns; /* since 1970 */
    const unsigned char *at;
    size_t n;    /* bytes that were captured */
    size_t wire; /* that it had */
};

struct capture {
    void *handle;           /* libpcap's, of an interface */
    struct pcap_file *file; /* of a file, with its bytes */
    struct source *source;
    const char *name;
    int link;    /* of the packet that was read last */
    bool warned; /* of a link type that is not known */
    bool live;
    bool idle;   /* live: nothing came when it was asked last */
    bool hushed; /* print no reason for trouble */
};

/* A file, "-" being standard input, or with `live` an interface. False, with
 * the reason printed. Packets of links that are not known are packets: they are
 * no IP, and that they are there is said once. */
bool capture_open(const char *name, bool live, struct capture *c);
void capture_close(struct capture *c);
/* Were packets of an interface lost before they could be looked at? How many,
 * and that is printed. */
bool capture_lost(const struct capture *c, uint64_t *lost);

/* When nothing has come for a while: packets from before so many nanoseconds
 * cannot come any more. The kernel gathers them for LIVE_WAIT_MS. */
#define LIVE_WAIT_MS 100
#define CAPTURE_LATE ((int64_t)2 * LIVE_WAIT_MS * 1000000)

enum captured {
    CAPTURED,
    CAPTURED_NONE, /* live: nothing came for a while; the frame's ns is when
                    * it was asked for, or 0 */
    CAPTURED_END,
    CAPTURED_TROUBLE /* damaged, or gone; the reason is printed */
};
enum captured capture_next(struct capture *c, struct captured_frame *f);

/* Count a frame and find its key. False: it has none. */
bool frame_key(const struct capture *c, const struct captured_frame *f,
               bool inner, struct key_choice choice, struct traffic_totals *t,
               struct flow_key *key);

#endif

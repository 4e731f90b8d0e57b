/*
 * scan_verb.h - bloomery traffic scan: files, and with libpcap captures too
 */
#ifndef BLY_TRAFFIC_SCAN_VERB_H
#define BLY_TRAFFIC_SCAN_VERB_H

#include "apps/traffic/traffic_args.h"
#include "apps/traffic/packet.h"
#include "apps/traffic/scan_rules.h"
#include "report/words.h"

struct scan_run {
    const struct traffic_args *args;
    struct rules rules;
    struct scanner *scanner;
    struct scan_summary sum;
    const char *file;
};

/* A piece of a text goes past the scanner, and matches are printed, with the
 * flow and the number of the packet, or NULL and 0. False, with the reason
 * printed. */
bool scan_print(struct scan_run *r, const struct flow_key *flow,
                uint64_t packet, const struct scan_piece *p);

/* A capture, or with live an interface: YES, or TROUBLE with the reason. */
int scan_capture(struct scan_run *r, const char *name, bool live);

/* Without libpcap a capture cannot be read: NULL then. */
typedef int scan_capture_fn(struct scan_run *r, const char *name, bool live);
int scan_all(const struct traffic_args *args, const struct list *operands,
             scan_capture_fn *capture);

#endif

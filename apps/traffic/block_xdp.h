/*
 * block_xdp.h - a block list as a program in the kernel
 */
#ifndef BLY_TRAFFIC_BLOCK_XDP_H
#define BLY_TRAFFIC_BLOCK_XDP_H

#include "apps/traffic/block_file.h"
#include "apps/traffic/block_live.h"
#include "apps/traffic/xdp_layout.h"

/* The maps of a program, -1 where there is none, and what its XDP_LIST has. */
struct xdp_maps {
    int at[XDP_NMAPS];
    struct xdp_list list;
};
#define XDP_NO_MAPS                     \
    {                                   \
        { -1, -1, -1, -1, -1, -1, -1 }, \
        {                               \
            0                           \
        }                               \
    }
void xdp_maps_close(struct xdp_maps *m);

/* The maps of a base, or of none, and of those who are allowed. False, with the
 * reason printed. */
bool xdp_base_new(struct xdp_maps *m, const struct block_file *base,
                  const struct prefix_set *allow);
/* An empty live part with room for so many entries. */
bool xdp_live_new(struct xdp_maps *m, uint64_t entries);
/* An empty map of counters. */
bool xdp_counters_new(struct xdp_maps *m);

/* The live part, where the kernel has it. */
bool xdp_live_open(const struct xdp_maps *m, struct live_table *t);
void xdp_live_close(struct live_table *t);

/* The tick that it is. */
bool xdp_now(uint32_t shift, uint32_t *now);
/* The tick at which so many seconds have certainly passed; at most four years
 * or so are counted. */
uint32_t xdp_end(uint32_t shift, uint32_t now, double seconds);

/* Say that a part has entries of a length, and of which lengths it has any. */
bool xdp_length_add(struct xdp_list *l, uint8_t version, uint8_t bits,
                    unsigned part);
void xdp_lengths_of(const struct xdp_list *l, unsigned part,
                    struct prefix_lengths *out);

/* May the base have this prefix? */
bool xdp_base_has(const struct xdp_maps *m, const struct prefix *p);

/* Load the program, with a new map XDP_LIST. Its descriptor, which keeps the
 * maps; -1, with the reason printed. */
int xdp_load(struct xdp_maps *m);

/* Does this bloomery carry the program? False, with the reason printed. */
bool xdp_here(void);

/* What the kernel refused, in clear words: TROUBLE. */
int xdp_fail(const char *what, int error);

/* Packets through the program without an interface, to compare its verdicts
 * with ours. All zero: not loaded. */
struct xdp_trial {
    int program;
    bool begun;
    uint64_t ns[2]; /* of packets that pass, and that are stopped */
    unsigned timed[2];
};
bool xdp_trial_begin(struct xdp_trial *t, const struct block_file *list,
                     const struct prefix_set *allow, bool only);
bool xdp_trial_packet(struct xdp_trial *t, const unsigned char *at, size_t n,
                      bool stopped, uint64_t *disagree);
/* Per packet, as the kernel measures it; NAN: none. */
double xdp_trial_ns(const struct xdp_trial *t, bool stopped);
/* Of a program that does nothing: what measuring itself takes. */
double xdp_empty_ns(void);
void xdp_trial_end(struct xdp_trial *t);

#endif

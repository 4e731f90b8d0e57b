/*
 * placing.h - rules of bloomery/place.h, measured on the same keys
 */
#ifndef BLY_OVERLAY_PLACING_H
#define BLY_OVERLAY_PLACING_H

#include <bloomery/place.h>

#include "report/fields.h"

/* What one rule does with keys on n members, and when one comes or goes. */
struct placed {
    const char *rule;
    uint64_t points;    /* per member; 0: the rule has none */
    double largest;     /* load over the mean */
    double joined;      /* share of keys that move when a member comes */
    double left;        /* when one goes */
    double needless;    /* of all keys: moved from one old member to another
                           when a member comes */
    double nanoseconds; /* per lookup, the least of several rounds */
    uint64_t bytes;
};

extern const struct field placed_fields[];

/* One rule with some points, NULL being `hash % n`; false, with the reason
 * printed. `names` has n + 1 members, the last of which is the one that comes.
 */
struct placing {
    const bly_bytes *names;
    size_t n;
    const uint64_t *hashes;
    size_t nkeys;
    double slack;
    uint64_t seed;
    bool untimed;
};
bool placing_measure(const struct placing *how, const char *rule,
                     uint32_t points, struct placed *out);

/* n names "node0", "node1", ... that are released by free(). NULL, with the
 * reason printed. */
bly_bytes *placing_names(size_t n);

/* -------------------------------------------------------------- the command */

struct placing_args {
    uint64_t members, keys, points, seed;
    double slack;
    const char *slack_text, *plot;
    bool json;
};

struct list;
int ring_place(const struct placing_args *args, const struct list *inputs);

struct placing_result {
    uint64_t members, keys;
    double ideal_join, ideal_leave;
    const struct placed *rules;
    size_t n;
};
extern const struct field placing_fields[];

#endif

/*
 * filters.h - filters in files, and what is told of them
 */
#ifndef BLY_IO_FILTERS_H
#define BLY_IO_FILTERS_H

#include "report/fields.h"

/* Open the filter in path ("-": standard input) to read it, where it lies if
 * that is a file. NULL, with the reason printed, if that fails. A caller that
 * maps two at once names both to cut_watch(). */
bly_filter *filter_map(const char *path, const bly_access *how);

/* The same into memory, to change it. */
bly_filter *filter_open(const char *path, const bly_access *how);

/* Combine f with the filter in path ("-": standard input), which is read once.
 * Prints nothing; bly_error() names the file. */
bly_status filter_combine(bly_filter *f, bly_combination how, const char *path);

/* Does f have an ability, BLY_CAN(...)? If not, prints which kinds do.
 * path is where f comes from. */
bool filter_can(const bly_filter *f, const char *path, uint32_t ability);

/* Tell a filter that forgets over time what time it is. */
bly_status filter_tick(bly_filter *f);

/* Write f to path, "-" being standard output: YES, or TROUBLE with the reason
 * printed. */
int filter_save(const bly_filter *f, const char *path);

/* Does the filter hold more than it was made for? Beyond doubt: the estimate
 * lies three deviations and 2 % above the capacity. False for filters
 * that grow, and for attenuated ones, where the others' keys are unknown. */
bool is_past_capacity(const bly_stats *s);
void warn_past_capacity(const char *path, const bly_stats *s);

/* Did it grow past the first of its layers? Then the capacity is that one's. */
bool has_grown(const bly_stats *s);

/* The value of a fact that s has; NAN if it has none of that name. */
double fact_value(const bly_stats *s, const char *name);

/* The share of its own keys that a filter says no to, by its facts; NAN of the
 * kinds that miss none, which is all but the BLY_LIKELY_NO ones. */
double missed_share(const bly_fact *facts, size_t n);

/* Is every key that was added found for ever? Lists that guard something rely
 * on it, and so does whatever skips work when a filter says no. NULL, or why a
 * filter of that kind cannot be relied on. */
const char *kind_unreliable(const bly_kind_info *kind);

/* The same for a kind that is about to be built from keys alone, by name; NULL
 * is the default. False, with the reason printed: `what` a filter of it cannot
 * be, "a list". */
bool kind_guards(const char *name, const char *what);

/* The memory of a filter's own cells, from its bits. Where these are what it
 * takes when it is sent, as its facts say, it is the fact "bits". */
uint64_t own_bytes(uint64_t bits, const bly_fact *facts, size_t n);

uint64_t filter_size(const bly_stats *s); /* in bytes, its own */

/* What was made: "classic filter for 9 different, 12 B, ...", or as
 * members of an object. Sizes are the filter's own, as plan gives them. */
struct made {
    bly_stats s;
    uint64_t bytes;
    double bits_per_key, rate;
    double miss;      /* missed_share() */
    bool grown, sent; /* sent: the bits are those of the coded file */
};
struct made made_of(const bly_stats *s);
extern const struct field made_fields[];
#define MISS_HELP                                                          \
    "share of its own keys that it says no to; only of kinds whose no is " \
    "likely"
#define MADE_TEXT                                                              \
    "{kind} filter[{?grown} of {layers} layers|{?items} for {items} "          \
    "different|], {bytes}[, {bits_per_key:.2} bits per key[{?sent} when sent]" \
    "][, {rate} false positives][, {miss} of its own keys missed]\n"

#endif

/*
 * gossip_summary.h - the words of a peer, as a filter that is passed on
 *
 * A summary is one version of a peer's filter, in memory and as bytes: whole,
 * and as what has changed since the version before, if that is known. It does
 * not change once it is made, and those who hold it count.
 */
#ifndef BLY_GOSSIP_SUMMARY_H
#define BLY_GOSSIP_SUMMARY_H

#include <bloomery.h>

#define SUMMARY_MOST ((size_t)4 << 20) /* bytes of one on the way */

struct summary {
    unsigned refs;
    bly_filter *filter;
    unsigned char *whole, *delta;
    size_t nwhole, ndelta; /* ndelta 0: none */
    uint64_t base;         /* the version that the delta starts from */
};

/* From hashes of words; `before`, unless NULL, is version `base` of the same
 * peer, whose size is kept if it is fit. NULL: the library says why. */
struct summary *summary_new(const uint64_t *words, size_t n,
                            const struct summary *before, uint64_t base);

/* From bytes of others; the delta of `before`. NULL if they are none. */
struct summary *summary_whole(const void *bytes, size_t n);
struct summary *summary_delta(const void *bytes, size_t n,
                              const struct summary *before, uint64_t base);

struct summary *summary_hold(struct summary *s); /* one more holder */
void summary_drop(struct summary *s);            /* NULL is nobody's */

bool summary_has(const struct summary *s, uint64_t word);

#endif

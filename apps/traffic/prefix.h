/*
 * prefix.h - addresses and prefixes, and lists of them as people keep them
 *
 * One reader for all forms, which tell themselves apart line by line:
 *
 *     plain     192.0.2.7   198.51.100.0/24   2001:db8::/32
 *               203.0.113.5-203.0.113.9       comments behind # and ;
 *     ipset     add NAME 192.0.2.7 timeout 300        (ipset save)
 *     nftables  elements = { 192.0.2.7, 198.51.100.0/24 }   (nft list ruleset)
 *
 * A range becomes the prefixes that it consists of. All three may say how long
 * an entry stays: "timeout 300", "timeout 1h30m", and of what nft lists the
 * rest that it has, "expires 59m2s". A line that asks for more than an address
 * and a time (a port, an exception, a verdict) or that is none of these is bad.
 */
#ifndef BLY_TRAFFIC_PREFIX_H
#define BLY_TRAFFIC_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first bits of addresses; those behind them are zero, as are the last
 * twelve bytes for IPv4. */
struct prefix {
    uint8_t version, bits; /* 4 or 6; 0 to 32 or 128 */
    unsigned char at[16];
    uint32_t seconds; /* a list's time for it; 0: it says none */
};
#define PREFIX_EVER UINT32_MAX /* seconds: "timeout 0", it stays */

/* "192.0.2.0/24"; an address has all bits. */
#define PREFIX_TEXT 64
const char *prefix_text(const struct prefix *p, char out[PREFIX_TEXT]);

/* By version, length from long to short, and address. */
int prefix_order(const void *a, const void *b);

/* The key of a prefix in a filter. IPv4: eight bytes, the least significant
 * first, of the integer bits << 32 | address. IPv6: the sixteen bytes of the
 * address and one with the bits. */
#define PREFIX_KEY 17
size_t prefix_key(const struct prefix *p, unsigned char out[PREFIX_KEY]);

/* The first bits of an address of this version. */
struct prefix prefix_of(uint8_t version, const unsigned char *address,
                        unsigned bits);

/* ------------------------------------------------------------------- lists */

/* Takes a prefix; false stops the reading. */
typedef bool prefix_take(void *ctx, const struct prefix *p);

struct prefix_reader {
    prefix_take *take;
    void *ctx;
    uint64_t entries; /* prefixes that were taken */
    uint32_t seconds; /* of the entry that is read */
    bool nft;         /* inside of a table of nftables */
    bool elements;    /* inside of its braces */
    bool stopped;
};

/* A line without its end. False if it is bad, and why. What it had before that
 * was taken. */
bool prefix_line(struct prefix_reader *r, const char *line, size_t n,
                 const char **why);

struct prefix_counts {
    uint64_t lines, entries, bad;
};

/* All lines of a file, "-" being standard input. False, with the reason
 * printed, if it cannot be read, take() stopped it, or a line is bad and not to
 * be skipped; skipped ones are counted, and the first are named. */
bool prefix_file(const char *name, bool skip_bad, prefix_take *take, void *ctx,
                 struct prefix_counts *counts);

/* --------------------------------------------------------------- exact sets */

/* Zero is empty. */
struct prefix_set {
    struct prefix *at;
    size_t n, room;
    bool sorted;
};

/* A prefix_take; false: no memory, which is said. */
bool prefix_set_take(void *set, const struct prefix *p);

/* Sort, and keep each once, with the longest of its times. Before anything is
 * asked. */
void prefix_set_sort(struct prefix_set *s);
/* The longest prefix of an address that is in the set; NULL: none. */
const struct prefix *prefix_set_match(const struct prefix_set *s,
                                      uint8_t version,
                                      const unsigned char *address);
void prefix_set_free(struct prefix_set *s);

/* Which lengths occur? Longest first; how many. */
struct prefix_lengths {
    uint8_t four[33], six[129];
    unsigned nfour, nsix;
};
void prefix_lengths_of(const struct prefix_set *s, struct prefix_lengths *out);

#endif

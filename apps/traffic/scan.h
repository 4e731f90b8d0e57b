/*
 * scan.h - which of many strings are in a text, and where
 *
 *     text    . . . . . w w w w w w . . . . .      a window of q bytes, every
 *               |---- the string ----|             s-th position
 *
 * Strings are grouped by length. In a group whose shortest string has m bytes,
 * each string puts s = m - q + 1 windows that follow each other into a filter
 * of bits, so that one of them is met wherever the text has the string,
 * although only every s-th window of the text is looked at. What the filter
 * lets pass is looked up in a table of the windows, and then compared byte by
 * byte: the matches are exact.
 *
 * After Dharmapurikar, Krishnamurthy, Sproull and Lockwood: Deep Packet
 * Inspection Using Parallel Bloom Filters, 2004, which has a group for each
 * length, looks at each position, and is offered beside.
 */
#ifndef BLY_TRAFFIC_SCAN_H
#define BLY_TRAFFIC_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/byte_order.h"

#define SCAN_LONGEST 4096 /* bytes of a string */
#define SCAN_MOST ((size_t)1 << 24)

struct scan_string {
    unsigned char *at; /* in lower case if nocase */
    size_t n;
    bool nocase;
    uint64_t offset; /* where it may begin, at least */
    uint64_t depth;  /* bytes from there that it lies in; 0: as many as there
                        are */
    uint64_t rule;   /* what it is known by: a sid, or the line */
    uint64_t line;   /* of its file */
};

/* A match: which string, and where in the text it begins. */
struct scan_match {
    uint64_t start;
    size_t string;
};

/* What a scan cost, and what it should have cost if each byte were as likely as
 * any other. */
struct scan_load {
    uint64_t bytes;
    double computed;   /* windows that should have passed a filter */
    uint64_t passed;   /* that did */
    uint64_t compared; /* strings that were compared */
    uint64_t matches;
};

struct scan_spec {
    bool per_length; /* a group for each length, and a look at each position */
    bool exact;      /* no filters: an automaton (automaton.h) */
    bool portable;   /* no vectors */
    uint64_t seed;
};

struct scanner;

/* The strings are borrowed. NULL: no memory, or no string, or one that is empty
 * or too long. */
struct scanner *scanner_new(const struct scan_string *strings, size_t n,
                            const struct scan_spec *spec);
void scanner_free(struct scanner *s);

/* The most bytes before a piece that a match may begin in: the longest string
 * but one byte. */
size_t scanner_keeps(const struct scanner *s);
size_t scanner_groups(const struct scanner *s);
uint64_t scanner_bytes(const struct scanner *s);

/* Which strings end in a piece of a text? at[0 .. seen) are the bytes before
 * it, as many as scanner_keeps() says or as there are, at[seen .. n) is the
 * piece, and at[0] is byte `base` of the text. *matches is sorted by start, and
 * valid until the next call. False: no memory. */
bool scanner_scan(struct scanner *s, const unsigned char *at, size_t seen,
                  size_t n, uint64_t base, const struct scan_match **matches,
                  size_t *nmatches);

const struct scan_load *scanner_load(const struct scanner *s);

/* Is the string at this place of the text, whose byte 0 is at[0]? Shared by
 * scan and automaton. */
bool scan_there(const struct scan_string *string, const unsigned char *at,
                size_t n, size_t start, uint64_t base);

static inline unsigned char scan_lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* ------------------------------------------------------------------ groups */

/* The windows of a group that are the same, and the strings they belong to. */
struct scan_slot {
    uint64_t window;
    uint32_t first, n; /* entries; n 0: no window is here */
};

/* What is known of a string without looking at it: most that cannot be there
 * are left out for its first and last bytes. */
struct scan_entry {
    uint32_t string;
    uint32_t before, after; /* bytes of it in front of the window, and from
                               there on */
    uint32_t first, last;   /* four bytes of it, folded; of shorter ones 0 */
};

struct scan_group {
    unsigned shortest; /* m: bytes of each string, at least */
    unsigned window;   /* q */
    unsigned step;     /* s */
    unsigned back;     /* from a window to the end of its string, at most */
    unsigned second;   /* where the second word of a window is; 0: none */
    uint32_t word_mask, fold; /* of a word: bytes that count, and bits that do
                                 not where case does not */
    uint32_t fold_all;        /* the same for four bytes that all count */
    uint32_t k[3];            /* of the hash */
    unsigned shift;           /* from it to the word of the filter */
    unsigned slot_shift;      /* from a hash of 64 bits to the slot */
    unsigned char order[32];  /* bytes of four words in 16 bytes, twice: for
                                 vectors */
    uint32_t *bits;
    struct scan_slot *slots;
    struct scan_entry *entries;
    uint64_t nwords, nslots, nentries;
    double passes; /* share of random windows that the filter lets pass */
};

static inline uint32_t scan_hash(const struct scan_group *g,
                                 const unsigned char *at)
{
    /* Literal widths: a load each. */
    const uint32_t w0 =
        g->window >= 4 ? (uint32_t)get_le(at, 4)
                       : (uint32_t)(at[0] | (g->window > 1 ? at[1] << 8 : 0) |
                                    (g->window > 2 ? at[2] << 16 : 0));
    uint32_t h = (w0 | g->fold) * g->k[0];
    if (g->second)
        h += ((uint32_t)get_le(at + g->second, 4) | g->fold) * g->k[1];
    return (h ^ h >> 16) * g->k[2];
}

/* All bytes of a window, as a number. */
#define SCAN_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t scan_window(const struct scan_group *g,
                                   const unsigned char *at)
{
    return get_le(at, g->window) |
           ((uint64_t)g->fold << 8 * g->second | g->fold);
}

static inline bool scan_filter_has(const struct scan_group *g,
                                   const unsigned char *at)
{
    const uint32_t h = scan_hash(g, at);
    const uint32_t word = g->bits[h >> g->shift];
    return word >> (h & 31) & word >> (h >> 5 & 31) & 1;
}

/* Which of 64 windows, `step` apart, pass the filter? SCAN_AHEAD(g) bytes can
 * be read. */
typedef uint64_t scan_front(const struct scan_group *g,
                            const unsigned char *at);
scan_front scan_front_portable;
scan_front *scan_front_best(void);
#define SCAN_AHEAD(g) (64 * (size_t)(g)->step + 16)

/* Groups for these strings: how many, each with its tables; 0: no memory. */
#define SCAN_GROUPS 64
size_t scan_groups(const struct scan_string *strings, size_t n,
                   const struct scan_spec *spec,
                   struct scan_group groups[SCAN_GROUPS]);
void scan_groups_free(struct scan_group *groups, size_t n);

#endif

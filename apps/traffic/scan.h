/*
 * scan.h - which of many strings are in a text, and where
 *
 *     text    . . . . . w w w w w w w w . . .      a window of up to 8 bytes
 *               |---- the string ------|
 *
 * Strings are grouped by length, and each has one window, where it is least
 * like other texts. The text goes through three sieves, each of which sees what
 * the one before let pass:
 *
 * 1. classes: a window fits one of 8 patterns, which are a set of bytes for
 *    each of its places; 64 windows at once, without a load that depends on
 *    the text;
 * 2. a filter of bits for each group, of the window as a whole;
 * 3. a table of the windows, and then the strings byte by byte, so that the
 *    matches are exact.
 *
 * After Dharmapurikar, Krishnamurthy, Sproull and Lockwood: Deep Packet
 * Inspection Using Parallel Bloom Filters, 2004, which has a group for each
 * length and no classes, and is offered beside. Classes are those of Teddy in
 * Hyperscan (Wang and others, 2019), there for some dozens of strings; that a
 * string may choose its window makes them useful for thousands.
 */
#ifndef BLY_TRAFFIC_SCAN_H
#define BLY_TRAFFIC_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/byte_order.h"

#define SCAN_LONGEST 4096 /* bytes of a string */
#define SCAN_AHEAD 72     /* bytes that are read behind the last window */
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
    uint64_t sieved;   /* windows that have bytes of the classes */
    uint64_t passed;   /* and that passed the filter */
    uint64_t compared; /* strings that were compared */
    uint64_t matches;
};

struct scan_spec {
    bool per_length;  /* a group for each length, and a look at each position */
    bool exact;       /* no filters: an automaton (automaton.h) */
    unsigned variant; /* of scan_variants: skip so many */
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

/* A piece of a text: at[0 .. seen) are the bytes before it, as many as
 * scanner_keeps() says or as there are, at[seen .. n) is the piece, and at[0]
 * is byte `base` of the text. at[n .. n + ahead) can be read too, and mean
 * nothing: SCAN_AHEAD of them spare the scanner a copy of the last bytes. */
struct scan_piece {
    const unsigned char *at;
    size_t seen, n;
    uint64_t base;
    size_t ahead;
};

/* Which strings end in the piece? *matches is sorted by start, and valid until
 * the next call. False: no memory. */
bool scanner_scan(struct scanner *s, const struct scan_piece *p,
                  const struct scan_match **matches, size_t *nmatches);

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

#define SCAN_WIDEST 8  /* bytes of a window: a word */
#define SCAN_CLASSES 8 /* sets of bytes for each of them: a bit of a byte */

/* The classes for processors that look up one byte of text at a time. */
#define SCAN_ROW 32
struct scan_loads {
    /* Of which classes is a byte not? Those at the last place of a window come
     * first. There are 8 zeros on either side, so that 16 bytes which are read
     * from there have them in any place; the table begins where none of these
     * reads crosses a line of the cache (so a group cannot be copied). */
    unsigned char not_of[256 * SCAN_ROW + SCAN_ROW];
    /* Which bits are set in a byte, from the lowest on, and how many? */
    uint16_t picks[256][8];
    unsigned char counts[256];
};

/* A place of the table of windows. */
struct scan_slot {
    uint32_t low, high; /* the hash, which no other window has */
    uint32_t first;     /* entry, from 1 on; 0: no window is here */
};

/* What is known of a string without looking at it: most that cannot be there
 * are left out for their first and last bytes. */
struct scan_entry {
    uint32_t string;
    uint32_t before, after; /* bytes of it in front of the window, and from
                               there on; `more` is the highest bit of before */
    uint32_t first, last;   /* four bytes of it, folded; of shorter ones 0 */
};
#define SCAN_MORE (UINT32_C(1) << 31) /* the next entry has the same window */

struct scan_group {
    unsigned shortest;   /* bytes of each string, at least */
    unsigned window;     /* q */
    unsigned back;       /* from a window to the end of its string, at most */
    uint64_t mask, fold; /* of a window: bytes that count, and bits that do not
                            where case does not */
    uint32_t fold_all;   /* the same for four bytes that all count */
    uint64_t k;          /* of the hash */
    unsigned shift;      /* from it to the word of the filter */
    unsigned slot_shift; /* and to the slot */
    unsigned char classes[SCAN_WIDEST][256]; /* of which sets is a byte, at each
                                                place of a window? */
    struct scan_loads loads;
    uint32_t *bits;
    struct scan_slot *slots;
    struct scan_entry *entries;
    uint64_t nwords, nslots, nentries;
    double passes; /* share of random windows that pass classes and filter */
};

/* A window as a number. 8 bytes can be read. */
static inline uint64_t scan_window(const struct scan_group *g,
                                   const unsigned char *at)
{
    return (get_le(at, 8) & g->mask) | g->fold;
}

static inline uint64_t scan_hash(const struct scan_group *g, uint64_t window)
{
    return window * g->k;
}

static inline bool scan_filter_has(const struct scan_group *g, uint64_t hash)
{
    const uint32_t word = g->bits[hash >> g->shift];
    return word >> (hash >> 37 & 31) & word >> (hash >> 42 & 31) & 1;
}

/* Which of n windows, one byte apart, have bytes of the classes? Their numbers
 * are put into `out`, in any order, which has room for n + 64, and how many is
 * returned. n + SCAN_AHEAD bytes can be read. */
typedef size_t scan_front(const struct scan_group *g, const unsigned char *at,
                          size_t n, uint16_t *out);
#define SCAN_BLOCK 8192
/* What the fronts need is made from the classes. */
void scan_front_prepare(struct scan_group *g);

struct scan_variant {
    const char *name;
    bool (*here)(void);
    scan_front *front;
};
/* The best one first; the last is portable. */
extern const struct scan_variant scan_variants[];
extern const size_t scan_nvariants;
/* The best that this processor has, from number i on. */
const struct scan_variant *scan_variant_from(size_t i);

/* Groups for these strings: how many, each with its tables; 0: no memory. */
#define SCAN_GROUPS 24
size_t scan_groups(const struct scan_string *strings, size_t n,
                   const struct scan_spec *spec,
                   struct scan_group groups[SCAN_GROUPS]);
void scan_groups_free(struct scan_group *groups, size_t n);

/* Where do the windows of these strings begin, and which classes have their
 * bytes? members[0 .. n) are strings of the group; begins[i] is the place in
 * members[i]. False: no memory. */
bool scan_classes_choose(struct scan_group *g,
                         const struct scan_string *strings,
                         const uint32_t *members, size_t n, uint32_t *begins);
/* Classes that have everything, for windows in the same places. */
void scan_classes_open(struct scan_group *g);
/* Share of windows that the classes let pass, if weight[b] is the share of byte
 * b in a text. */
double scan_classes_share(const struct scan_group *g, const double weight[256]);

#endif

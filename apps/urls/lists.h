/*
 * lists.h - lists of URLs and names, as people publish them
 *
 * One reader for all forms, which tell themselves apart line by line:
 *
 *     plain     http://example.org/bad/     or a name: example.org
 *     hosts     0.0.0.0 ads.example.org tracker.example.org
 *     adblock   ||example.org^    exception: @@||good.example.org^
 *     RPZ       example.org CNAME .    exception: CNAME rpz-passthru.
 *     digests   64 hexadecimal digits, SHA-256 of an entry
 *
 * hosts and RPZ are for names only. A rule that asks for more than an entry can
 * say (options, wildcards, parts of pages) is skipped and counted; a line that
 * is none of these is bad: named with its file and number, and counted.
 */
#ifndef BLY_URLS_LISTS_H
#define BLY_URLS_LISTS_H

#include "apps/urls/host_names.h"
#include "apps/urls/suffixes.h"

enum entry_kind { ENTRY_LISTED, ENTRY_ALLOWED, ENTRY_DIGEST };

/* An entry in canonical form, borrowed for the call: a name, an expression, or
 * the 32 bytes of a digest. False stops the reading. */
typedef bool list_take(void *ctx, bly_bytes entry, enum entry_kind kind);

struct list_counts {
    uint64_t lines, entries, exceptions;
    uint64_t skipped;  /* rules that no entry can stand for */
    uint64_t caseless; /* rules for parts of hosts, which ignore case */
    uint64_t bad;
    uint64_t single; /* entries of one label */
    uint64_t hosts;  /* names of hosts files and zones, which say no more */
};

struct list_reader {
    /* The caller's. */
    bool domains, folded, digests;
    const struct suffixes *suffixes; /* no entry may be one; NULL: any may */
    list_take *take;
    void *ctx;

    struct list_counts n; /* results */
    bool stopped;         /* take() was false, or there was no memory */

    /* Of the file. */
    bool fresh, adblock;    /* nothing was read yet; it is such a list */
    unsigned depth;         /* of parentheses in RPZ */
    char origin[NAME_ROOM]; /* where names of RPZ are relative to, */
    char apex[NAME_ROOM];   /* and of the zone; empty: not known */
    char owner[NAME_ROOM];  /* of the record before */
    struct block room;      /* for canonical forms */
};

/* Begin a file; take a line, without its end. *why is set if the line is bad.
 */
void list_begin(struct list_reader *r);
bool list_line(struct list_reader *r, const char *line, size_t n,
               const char **why);
void list_end(struct list_reader *r);

/* All of n files, "-" being standard input. False, with the reason printed, if
 * one cannot be read, if take() stopped it, or if a line is bad and skip_bad
 * does not allow that: then everything was read all the same, and *bad is set.
 */
bool list_read(struct list_reader *r, const char *const *names, size_t n,
               bool skip_bad, bool *bad);

#endif

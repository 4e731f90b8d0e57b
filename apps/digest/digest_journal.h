/*
 * digest_journal.h - a file that a proxy goes on writing, read as it grows
 *
 * The index of a cache (swap.state), which gets a record for each object that
 * comes or goes, or the proxy's log of its store (store.log), which gets a
 * line. The file may be replaced, cut short, written anew where it stands, or
 * be away for a while.
 */
#ifndef BLY_DIGEST_JOURNAL_H
#define BLY_DIGEST_JOURNAL_H

#include <sys/stat.h>

#include "apps/digest/digest_cells.h"
#include "apps/digest/jobs.h"
#include "base/bytes.h"

#define JOURNAL_NAME 512
#define JOURNAL_DIRS 64                   /* cache_dirs, Squid's limit */
#define JOURNAL_FILES (UINT32_C(1) << 24) /* in each of them, likewise */

/* Something that came or went. */
struct journal_event {
    bool came;
    unsigned dir; /* of a store.log, as Squid counts them */
    uint32_t file;
    unsigned char key[CELLS_KEY];
};

/* False: no memory. */
typedef bool journal_each(void *ctx, const struct journal_event *e);

struct journal {
    const char *path;
    bool is_log;  /* a store.log; else a swap.state */
    unsigned dir; /* of what a swap.state has */
    int fd;       /* -1: none */
    struct stat is;
    off_t at;               /* up to which it was read */
    unsigned char last[64]; /* what stood before that */
    size_t nlast;
    struct bytes part; /* of a record or a line, without its end */
    bool too_long;     /* that line, which is skipped up to its end */
    bool said;         /* that lines say nothing */
    bool told_gone;
    uint64_t records, unknown, cut, rotations;
};

enum journal_was {
    JOURNAL_READ,  /* all there is */
    JOURNAL_ANEW,  /* it is another index now: read it from its beginning */
    JOURNAL_FAILED /* and why says why */
};

/* Begin at the beginning of the file, or, of a log, `at_end`. False, and why
 * says why not: then j is as it was. */
bool journal_open(struct journal *j, const char *path, bool at_end,
                  char why[JOURNAL_NAME]);

/* Hand on what has been written since. */
enum journal_was journal_read(struct journal *j, journal_each *each, void *ctx,
                              char why[JOURNAL_NAME]);

/* Is another file at the path, or a shorter one? */
bool journal_replaced(const struct journal *j);

void journal_close(struct journal *j);

/* A line of store.log, without its newline. *out is filled if it says that
 * something came or went; false: it says nothing that one can read. */
bool journal_line(const char *line, size_t n, struct journal_event *out,
                  bool *tells);

#endif

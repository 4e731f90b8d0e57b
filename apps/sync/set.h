/*
 * set.h - what one side of a sync has: lines of a list, or files of a folder
 *
 * Both become a set of 64-bit elements, sorted and different: the hash of a
 * line; the hash of a file's record, which is its path, its size, whether it
 * may be executed, and the hash of its contents; of an object, whose name
 * stands for its contents, the hash of the path alone. What two sides differ in
 * is found by elements, and what these stand for is asked for by them.
 */
#ifndef BLY_SYNC_SET_H
#define BLY_SYNC_SET_H

#include <sys/stat.h>
#include <time.h>

#include <bloomery/reconcile.h>

#include "io/input.h"

enum sync_form { SYNC_LINES = 1, SYNC_FILES, SYNC_OBJECTS };

/* A file of a folder. */
struct sync_file {
    uint64_t element;
    uint64_t size;
    uint64_t modified; /* nanoseconds since 1970 */
    uint64_t hash[2];  /* of its contents; of an object 0 */
    uint64_t changed;  /* likewise: when its rights changed, or it did */
    uint64_t inode;    /* of a file of ours; these tell whether it is still */
    uint32_t mode;     /* what was read */
    size_t path;       /* where it stands in names, with a NUL behind it */
    bool runs;         /* may be executed */
};

/* Symbols are made in pieces, each four times as long as all before it: what
 * was not asked for is not made, and a set is passed over a few times at most.
 */
#define SYNC_PIECES 8
#define SYNC_PIECE UINT64_C(2048)
#define SYNC_SYMBOLS_MOST (SYNC_PIECE << 2 * (SYNC_PIECES - 1))

#define SYNC_WHY 320
#define SYNC_PATH_MOST 4096

struct sync_set {
    /* What the caller says. */
    enum sync_form form;
    const char *path;
    const unsigned char *secret; /* NULL: none */
    bool nul;                    /* lines end at NUL bytes */
    bool may_miss;               /* nothing at path is an empty set */
    bool coded;                  /* make the first symbols when it is read */
    unsigned nthreads;

    /* What was found. */
    uint64_t *elements;
    size_t n;
    uint64_t nbytes;         /* of the list, or of all files */
    struct sync_file *files; /* sorted by element */
    uint32_t *by_path;       /* places in files, in the order of paths */
    struct block names;
    int root; /* the folder, open; 0: it is not */
    struct stat
        stat; /* of a list, when it was read; st_ino 0: none was there */
    bly_hasher hasher;
    bly_coded *pieces[SYNC_PIECES];
    bly_strata *strata;
    char why[SYNC_WHY]; /* of what failed */
    bool told;          /* it was printed already */
};

/* Read it. False with set->why. What may miss is empty. */
bool set_read(struct sync_set *set);
bool set_begin(struct sync_set *set);  /* by set_read(): how it is hashed */
bool lines_read(struct sync_set *set); /* by set_read() */
void set_free(struct sync_set *set);

__attribute__((format(printf, 2, 3))) bool set_fail(struct sync_set *set,
                                                    const char *format, ...);

/* What is known about the file at path, once the clock has moved on since it
 * was last changed: whatever changes it from now on changes its times, too. fd
 * is the file, open; negative: it is looked for. False: errno. */
bool stat_settled(int fd, const char *path, struct stat *st);
uint64_t stat_time(const struct timespec *t); /* in nanoseconds */

/* How elements are coded. */
bly_coding set_coding(const struct sync_set *set);

/* All elements into symbols; false with set->why. */
bool set_code(struct sync_set *set, bly_coded *to);

/* Their strata; NULL with set->why. */
const bly_strata *set_strata(struct sync_set *set);

/* The piece that has symbol `at`; NULL with set->why. */
const bly_coded *set_symbols(struct sync_set *set, uint64_t at);

/* The places of elements that begin with the highest nbits of e. */
void set_range(const struct sync_set *set, uint64_t e, unsigned nbits,
               size_t *from, size_t *to);
bool set_has(const struct sync_set *set, uint64_t e, size_t *at);

/* What tells a secret from another without giving it away; 0: no secret. */
uint64_t set_secret_check(const struct sync_set *set);

/* ----------------------------------------------------------------- of lines */

/* Hand over the lines of these elements, which are sorted, each once. False
 * with set->why, also where each() is false. */
typedef bool set_line(void *ctx, uint64_t element, bly_bytes line);
bool list_lines(struct sync_set *set, const uint64_t *elements, size_t n,
                set_line *each, void *ctx);

/* Replace the list: without the lines of n elements, sorted, and with those of
 * `more`, separators included, behind. False with set->why if that fails, or
 * the list is not what was read. */
bool list_write(struct sync_set *set, const uint64_t *without, size_t n,
                const struct block *more);

/* ----------------------------------------------------------------- of files */

bool folder_read(struct sync_set *set);
const char *file_path(const struct sync_set *set, const struct sync_file *f);

const struct sync_file *file_at_path(const struct sync_set *set,
                                     const char *path); /* NULL: none */

/* The element of a record. */
uint64_t file_element(const struct sync_set *set, const struct sync_file *f,
                      const char *path);

/* Is this a name below a folder, and nothing else? */
bool path_is_safe(const char *path, size_t n);

/* The hash of contents, piece by piece. */
struct content {
    const bly_hasher *by;
    uint64_t hash[2];
    size_t n;
    unsigned char *piece; /* of CONTENT_PIECE bytes */
};
#define CONTENT_PIECE ((size_t)256 << 10)
bool content_begin(struct content *c, const bly_hasher *by);
void content_put(struct content *c, const void *bytes, size_t n);
void content_end(struct content *c, uint64_t hash[2]); /* releases it, too */

#endif

/*
 * dedup.h - near-copies in a corpus: what the steps share
 *
 *     read      every document becomes a row: k components, a hash of its words
 *     bands     rows that agree in a band meet in a bucket
 *     policy    who stays; asks for the likeness of pairs it needs
 *     check     the exact likeness of those pairs, by reading them again
 *     result    the corpus without copies, pairs, clusters, removed ones
 *
 * Documents have numbers. Those of an index come first, 0 to base - 1, and
 * document `base` is the first line of the first file. The texts themselves are
 * never held.
 */
#ifndef BLY_DEDUP_H
#define BLY_DEDUP_H

#include <bloomery.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/dedup/agreement.h"
#include "apps/dedup/json_field.h"
#include "io/lines.h"
#include "apps/dedup/sorter.h"
#include "apps/dedup/store.h"

#define DEDUP_MAX_DOCS UINT32_MAX
#define DEDUP_NONE UINT32_MAX
#define DEDUP_SHOWN 10 /* bad lines that are told one by one */

enum dedup_format { DEDUP_JSON, DEDUP_LINES, DEDUP_FILES };
enum dedup_verify { DEDUP_EXACT, DEDUP_ESTIMATE, DEDUP_UNCHECKED };
enum dedup_policy { DEDUP_GREEDY, DEDUP_COMPONENT };
enum dedup_priority { DEDUP_FIRST, DEDUP_LONGEST, DEDUP_FIELD };

struct dedup_options {
    enum dedup_format format;
    struct json_path text, id, field;
    bool has_id, has_field, want_ids;
    bly_sketch_spec sketch;
    double threshold, recall;
    bly_bands bands;
    unsigned known;  /* of them that make a copy, where nothing is checked */
    bool whole_only; /* equal texts alone, no sketches */
    bool all_pairs;  /* every pair is wanted, not only what decides */
    enum dedup_verify verify;
    enum dedup_policy policy;
    enum dedup_priority priority;
    bool ascending; /* the least value of a field is kept first */
    bool drop_empty, drop_all, strict;
    uint64_t max_cluster, max_bucket;
    uint64_t memory; /* for shingles of pairs and for sorting */
    unsigned nthreads;
    const char *folder; /* for what is too large for memory */
    const char *work;   /* the same, for all of it and what resume needs */
    bool resume;        /* go on with what is in it */
    bly_wait *wait;     /* for others that write the same files */
};

enum dedup_state {
    DOC_TEXT,  /* has words */
    DOC_EMPTY, /* has none */
    DOC_BAD    /* no text was found */
};

struct dedup_bad {
    const char *file;
    uint64_t line;
    const char *why;
};

struct dedup_report {
    uint64_t documents, bytes, text_bytes, empty, malformed;
    uint64_t equal, candidates, checked, pairs, removed, kept, dropped_empty;
    uint64_t largest_bucket, largest_cluster, indexed, rounds, resumed;
    uint64_t resumed_pairs;
    double seconds[5]; /* read, band, decide, check, write */
    struct dedup_bad bad[DEDUP_SHOWN];
    size_t nbad;
};

/* A pair, its lesser number first, and what is known of it. */
struct dedup_pair {
    uint32_t a, b;
    double likeness; /* NAN: not known yet */
};

/* Pairs that were asked for. Zero is empty. */
struct dedup_pairs {
    struct dedup_pair *at;
    size_t n, room;
    uint32_t *slots; /* 1 + number of a pair, 0: free */
    size_t nslots;   /* a power of two */
};

/* Bucket i holds docs[at[i].start] to docs[at[i + 1].start - 1], by rank. */
struct dedup_bucket {
    uint64_t start;
    uint32_t nstay, changed; /* of greedy's */
};

struct dedup_buckets {
    struct dedup_bucket *at;
    uint64_t n, room;
    uint32_t *docs;
    uint64_t ndocs, docs_room;
    uint64_t *first; /* of the document of rank r: buckets of[first[r]] ... */
    uint32_t *of;
};

/* A file in the folder of --work. */
struct dedup_journal {
    int fd; /* 0: there is none */
    char *path;
    uint64_t size, whole; /* when it was opened, and of that whole records */
    uint64_t print;       /* fingerprint of what its records depend on */
};

struct dedup {
    const struct dedup_options *opt;
    struct input *in;
    struct dedup_report report;

    uint64_t n, room;   /* documents, those of an index included */
    uint32_t base;      /* of them from an index */
    struct store store; /* of all arrays by document, bucket and pair */
    uint32_t *rows;     /* k components each */
    uint64_t *hashes;   /* of the words, or of the text */
    uint32_t *nshingles;
    uint8_t *states;
    double *values;     /* of the field or the length; NULL: input order */
    uint64_t *id_start; /* n + 1; NULL: FILE:LINE */
    char *ids;
    uint64_t ids_len, ids_room;

    uint32_t *rank;    /* place in the order of priority */
    uint32_t *order;   /* documents in that order */
    uint32_t *same;    /* the document of equal text that stands for it */
    uint32_t *witness; /* what it is removed for; DEDUP_NONE: it stays */
    uint32_t *cluster; /* the document that stands for its cluster */
    double *likeness;  /* to the witness */
    struct dedup_buckets buckets;
    struct dedup_pairs pairs;
    int work_fd;                  /* the folder of --work; 0: none */
    struct dedup_journal checked; /* of pairs */

    struct store sets;   /* of the shingles of documents that were compared */
    uint64_t *set_words; /* of a set: how many, and then they */
    uint64_t sets_len, sets_room;
    uint64_t *set_at;    /* of a document: 1 + where its set is; 0: nowhere */
    bool index_has_sets; /* the first ones are of the index, in its order */
    char error[512];
};

/* Each step returns false with d->error. dedup_init() comes first, with d zeros
 * but for what the caller hands over, d->opt and d->in. */
void dedup_init(struct dedup *d);
bool dedup_read(struct dedup *d);
bool dedup_rank(struct dedup *d);
bool dedup_collapse(struct dedup *d);
bool dedup_band(struct dedup *d);
bool dedup_decide(struct dedup *d);
void dedup_free(struct dedup *d);

__attribute__((format(printf, 2, 3))) bool dedup_fail(struct dedup *d,
                                                      const char *format, ...);
/* The same for a store or a sorter that failed with errno. */
bool dedup_no_room(struct dedup *d, const char *what);
double dedup_seconds(void);

/* Is there a document i? For loops over all: keeps to the bound on memory. */
static inline bool dedup_more(struct dedup *d, uint64_t i)
{
    if (d->store.folder)
        store_trim(&d->store);
    return i < d->n;
}

/* An array that grows; false leaves it as it was. */
#define GROW(p, n) dedup_grow((void **)&(p), (n), sizeof *(p))
bool dedup_grow(void **p, uint64_t n, size_t size);

/* Documents in a row: what a worker makes of a block, and a journal keeps. */
struct dedup_part {
    size_t n, room;
    uint32_t *rows;
    uint64_t *hashes;
    uint32_t *nshingles;
    uint8_t *states;
    double *values;
    uint64_t *id_end; /* in ids */
    char *ids;
    size_t ids_len, ids_room;
    uint64_t text_bytes;
};
bool dedup_part_room(struct dedup_part *p, size_t k, size_t n);
void dedup_part_free(struct dedup_part *p);

/* Room for n documents more, all arrays together; and n documents more. */
bool dedup_room(struct dedup *d, uint64_t n);
bool dedup_append(struct dedup *d, const struct dedup_part *p);

/* The text of a line: what json_find() and unescaping make of it in buf, which
 * grows, or the line itself. fields: text, id, field, as found. NULL, or why
 * there is none. */
struct dedup_text {
    char *buf;
    size_t room;
    const char *at;
    size_t len;
    struct json_slice fields[3];
};
const char *dedup_text(const struct dedup_options *opt, const char *line,
                       size_t n, struct dedup_text *out);
void dedup_bad_line(struct dedup *d, const struct lines_block *b, size_t i,
                    const char *why);

/* --------------------------------------------------------- pairs and checks */

/* The share of components that agree. */
double dedup_estimate(const struct dedup *d, uint32_t a, uint32_t b);

/* Find a pair, or add it with a likeness that is not known. NULL: no
 * room, and d->error says so. */
struct dedup_pair *dedup_pair_of(struct dedup *d, uint32_t a, uint32_t b);

/* Fill in the likeness of all pairs from number `from` on; with an exact check
 * that of all but those of an index without shingles is exact. */
bool dedup_check(struct dedup *d, size_t from);

/* Room for n words more in d->set_words; false with errno. And the sets of all
 * documents that `wanted` is true of. */
bool dedup_set_room(struct dedup *d, uint64_t n);
bool dedup_need_sets(struct dedup *d,
                     bool (*wanted)(const struct dedup *d, uint32_t doc));

/* Estimates below this are no candidates. */
double dedup_floor(const struct dedup_options *o);

/* Witnesses by the greedy policy; only, unless NULL: a document is compared
 * with those of the same number there. */
bool dedup_greedy(struct dedup *d, const uint32_t *only);

/* ----------------------------------------------------------------- results */

/* Ids and names of files stand in lists with a tab or a line's end behind them,
 * so control characters in them become question marks. */
void dedup_plain_id(char *id, size_t n);

/* The id of a document, in a buffer of the caller's. */
size_t dedup_id(const struct dedup *d, uint32_t doc, char *buf, size_t room,
                const char **at);

bool dedup_write_pairs(struct dedup *d, const char *path);
bool dedup_write_clusters(struct dedup *d, const char *path);
bool dedup_write_removed(struct dedup *d, const char *path);

/* The corpus without what was removed: all into one file, "-" for standard
 * output, or where path is a folder, a file there for each. */
bool dedup_write_corpus(struct dedup *d, const char *path);
/* Can it be, with a file for each input? False where two of them would be
 * written to one file, or one over an input. */
bool dedup_corpus_fits(struct dedup *d, const char *path);
bool dedup_is_folder(const char *path); /* there, or by its final slash */

/* shingles: these too, so that what comes later is compared exactly. */
bool dedup_save_index(struct dedup *d, const char *path, bool shingles);
bool dedup_load_index(struct dedup *d, const char *path);

#endif

/*
 * staged.h - a run in stages of many tasks, over files in one folder
 *
 *     stage    tasks  reads                          makes
 *     sketch   N      a share of the inputs          rows, ids, keys of bands
 *     band     N      keys of its part of all hashes buckets
 *     link     1      buckets                        groups that they link
 *     deal     N      buckets                        buckets, by task of groups
 *     pairs    N      rows of its groups             whose texts are needed
 *     sets     N      a share of the inputs          shingles of these
 *     keep     N      rows, buckets, shingles        verdicts of its groups
 *     write    N      a share, verdicts              lines that stay, lists
 *     join     1      what write made                the results
 *
 * A group is all documents that buckets link, however far. What is decided of
 * its documents follows from them alone (greedy.c), so whole groups are decided
 * by the code of one machine, and the result is that of one machine, byte for
 * byte, however many tasks there are. The only order between tasks is that of
 * the stages.
 *
 * What a task makes is one file, DIR/STAGE/TASK: a part. It appears whole under
 * its name, and has the number of the run, which depends on the inputs, the
 * options and the number of tasks; so a task may be run again, also twice at
 * the same time, and whatever is not of this run is refused.
 *
 * Nobody counts documents in 32 bits here: a document is a share and a number
 * in it. Only what one task decides at a time has less than 2^32 of them.
 */
#ifndef BLY_STAGED_H
#define BLY_STAGED_H

#include "apps/dedup/dedup.h"
#include "apps/dedup/split.h"

#define STAGED_STAGES(X) \
    X(PLAN, plan)        \
    X(SKETCH, sketch)    \
    X(BAND, band)        \
    X(LINK, link)        \
    X(DEAL, deal)        \
    X(PAIRS, pairs)      \
    X(SETS, sets)        \
    X(KEEP, keep)        \
    X(WRITE, write)      \
    X(JOIN, join)

#define STAGE_ENUM_(NAME, name) STAGE_##NAME,
enum stage { STAGED_STAGES(STAGE_ENUM_) NSTAGES };
#undef STAGE_ENUM_
extern const char *const stage_names[NSTAGES];

#define STAGED_MOST_TASKS 100000

/* A document: the share that it is in, and its number there. */
#define SHARE_BITS 40
#define LOCAL_MASK ((UINT64_C(1) << SHARE_BITS) - 1)

/* --------------------------------------------------------------------- plan */

/* Bytes of a file that belong to a share. Shares have theirs one after another,
 * in the order of the inputs. */
struct plan_segment {
    uint64_t share, file, from;
    uint64_t len; /* 0: all of the file */
};

struct plan_file {
    int64_t size, seconds, nanoseconds; /* as it was when the run was planned */
};

struct plan_head {
    uint64_t ntasks, nfiles, nsegments, nwords;
    char version[32];
};

struct staged {
    const struct dedup_options *opt;
    char *folder; /* as an absolute path */
    uint64_t run; /* of inputs, options and tasks; never 0 */
    struct plan_head head;
    char *text; /* words, then names of files, each with a NUL */
    size_t ntext;
    const char **words; /* where to run, then options */
    const char **names;
    struct plan_file *files;
    struct plan_segment *segments;
};

/* Plan a run, or find that it is planned already. */
bool staged_plan(struct dedup_job *job, const struct split_options *how,
                 const char *const *names, size_t nnames, struct staged *out);
/* The plan in a folder. */
bool staged_open(struct dedup_job *job, const char *folder, struct staged *out);
/* Is this the program that made it? What it makes might differ. */
bool staged_fits(struct dedup_job *job, const struct staged *st);
void staged_free(struct staged *st);

static inline uint64_t stage_tasks(const struct staged *st, enum stage stage)
{
    return stage == STAGE_LINK || stage == STAGE_JOIN ? 1 : st->head.ntasks;
}

/* The segments of a share: their number, and the first. */
size_t share_segments(const struct staged *st, uint64_t share,
                      const struct plan_segment **first);

/* A share as an input of documents. False if a file is not what it was. */
bool share_open(struct dedup_job *job, const struct staged *st, uint64_t share,
                struct input *in);
bool share_same(struct dedup_job *job, const struct staged *st, uint64_t share);

/* --------------------------------------------------------------------- parts
 */

/* A part is made of pieces, each of bytes that are put one after another; the
 * pieces grow side by side. */
struct part_out {
    struct dedup_job *job;
    const struct staged *st;
    bly_draft *draft;
    char *path;
    enum stage stage;
    uint64_t task, npieces, end;
    size_t each; /* bytes of a piece that are put together before they go out */
    struct growing {
        unsigned char *at;
        size_t n;
    } * pieces;
    struct extent {
        uint64_t piece, at, n, sum;
    } * extents;
    size_t nextents, extents_room;
    double began;
    bool failed;
};
bool part_begin(struct dedup_job *job, const struct staged *st,
                enum stage stage, uint64_t task, uint64_t npieces,
                struct part_out *out);
bool part_put(struct part_out *out, uint64_t piece, const void *bytes,
              size_t n);
/* Bring it under its name, or with keep false leave nothing. */
bool part_end(struct part_out *out, bool keep);

struct part_foot {
    uint64_t magic, run, stage, task, npieces, nextents, directory, extents;
    double seconds;
    uint64_t sum;
};

/* One piece of a part, being read. */
struct piece_in {
    struct dedup_job *job;
    int fd;
    char *path;
    struct part_foot foot;
    struct extent *extents;
    size_t nextents, next; /* next: extent that comes into buf */
    uint64_t nbytes;       /* of the piece */
    unsigned char *buf;
    size_t n, at, room;
    struct extent near; /* of piece_near(), which is in buf */
    bool some;
    bool rests; /* not open but while it is read: for many at a time */
};

/* Refuses, by name, what is missing, cut short, damaged or of another run. */
bool piece_open(struct dedup_job *job, const struct staged *st,
                enum stage stage, uint64_t task, uint64_t piece,
                struct piece_in *in);
/* The next n bytes; false at the end with *ended, or with job->error. */
bool piece_read(struct piece_in *in, void *buf, size_t n, bool *ended);
/* The next n bytes, which must be there. */
bool piece_get(struct piece_in *in, void *buf, size_t n);
/* Bytes anywhere: at once, or by way of a buffer, for those that follow one
 * another closely. The first does not compare them with their checksum. */
bool piece_at(struct piece_in *in, uint64_t at, void *buf, size_t n);
bool piece_near(struct piece_in *in, uint64_t at, void *buf, size_t n);
void piece_rest(struct piece_in *in);
void piece_close(struct piece_in *in);

/* Is the part there, of this run? *nbytes, *seconds: its size, and what it took
 * to make. */
bool part_there(const struct staged *st, enum stage stage, uint64_t task,
                uint64_t *nbytes, double *seconds);
char *part_path(const struct staged *st, enum stage stage, uint64_t task);

/* --------------------------------------------------------------------- tasks
 */

/* Pieces of the parts of sketch. */
enum {
    SKETCH_HEAD,
    SKETCH_FACTS,
    SKETCH_ROWS,
    SKETCH_ID_ENDS,
    SKETCH_IDS,
    SKETCH_MARKS,
    SKETCH_SEGMENTS,
    SKETCH_BAD,
    SKETCH_KEYS /* and N - 1 more */
};

struct sketch_head {
    uint64_t ndocs, bytes, text_bytes, empty, malformed, odd;
};

struct sketch_facts {
    uint64_t hash;
    double value;
    uint32_t nshingles;
    uint8_t state, free[3];
};

struct sketch_segment { /* of the share, in order */
    uint64_t first, ndocs, nbytes;
    char error[160];
};

struct sketch_bad {
    uint64_t segment, line; /* from 1, in the segment */
    char why[64];
};

/* Pieces of link: how many tasks' worth of documents, and groups. */
enum {
    LINK_STARTS, /* of each segment: lines of its file before it */
    LINK_HEAD,
    LINK_TASKS /* of each bucket of part i; and N - 1 more */
};
struct link_head {
    uint64_t ndocs, members, largest;
};

/* Pieces of keep. */
enum {
    KEEP_COUNTS,
    KEEP_PAIRS,
    KEEP_VERDICTS /* of share i; and N - 1 more */
};
struct keep_counts {
    uint64_t equal, candidates, checked, pairs, removed, rounds;
    uint64_t largest_bucket, largest_cluster, missing;
};
struct keep_verdict {    /* and then the id of the witness */
    uint64_t doc, first; /* in the share; of its cluster, 0: none, or 1 + doc */
    double likeness;     /* below 0: it stays */
    uint64_t nid;
};

/* Pieces of write. */
enum {
    WRITE_SEGMENTS,
    WRITE_TEXT,
    WRITE_REMOVED,
    WRITE_CLUSTERS,
    WRITE_COUNTS
};
struct write_segment {
    uint64_t nbytes, unended, some; /* some: it has a file of its own */
};
struct write_counts {
    uint64_t removed, dropped_empty, documents;
};

typedef bool stage_fn(struct dedup_job *job, const struct staged *st,
                      uint64_t task);
stage_fn stage_sketch, stage_band, stage_link, stage_deal, stage_pairs,
    stage_sets, stage_keep, stage_write;

/* The last one: results and the report. */
int stage_join(struct dedup_job *job, const struct staged *st);

/* A task, unless it is done: YES, or TROUBLE, which was said. */
int staged_task(const struct staged *st, enum stage stage, uint64_t task);

/* What sketch made of a share, opened to be looked up. */
struct share_rows {
    struct piece_in facts, rows, ends, ids;
    const struct plan_segment *segments;
    struct sketch_segment *counted;
    uint64_t *starts; /* of each segment: lines of its file before it */
    size_t nsegments;
    uint64_t share;
    bool open, close; /* close: documents stand closely together */
};
bool share_rows_open(struct dedup_job *job, const struct staged *st,
                     uint64_t share, struct share_rows *s);
void share_rows_close(struct share_rows *s);

/* The id of a document, as dedup_id() has it. */
struct id_text {
    char *at;
    size_t n, room;
};
bool share_id(struct dedup_job *job, const struct staged *st,
              struct share_rows *s, uint64_t local, struct id_text *id);

/* The share as it was read by sketch: numbers and marks are known, so that
 * blocks can be left out. */
bool share_again(struct dedup_job *job, const struct staged *st, uint64_t share,
                 struct input *in);

#endif

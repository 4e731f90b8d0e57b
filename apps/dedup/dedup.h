/*
 * dedup.h - near-copies in a corpus: the stages, and what each hands on
 *
 *     read     lines of files               -> docs: a row for each document
 *     order    docs                         -> who comes first, who is equal
 *     band     docs, order                  -> buckets: rows that agree
 *     decide   docs, order, buckets, check  -> verdicts: who stays
 *     check    docs, lines read again       -> likeness of pairs asked for
 *     write    docs, verdicts, pairs        -> corpus, lists, index
 *
 * A stage takes what earlier ones made as const, and fills in one struct of its
 * own. The arrays of all of them belong to the job's store and go with it, so
 * that no struct has to be freed by itself.
 *
 * Documents have numbers. Those of an index come first, 0 to base - 1, and
 * document `base` is the first line of the first file. The texts themselves are
 * never held.
 */
#ifndef BLY_DEDUP_H
#define BLY_DEDUP_H

#include "apps/dedup/options.h"
#include "apps/dedup/dedup_store.h"
#include "apps/dedup/out_file.h"
#include "io/html/html.h"
#include "io/ordered.h"
#include "io/warc.h"

#define DEDUP_MAX_DOCS UINT32_MAX
#define DEDUP_NONE UINT32_MAX
#define DEDUP_SHOWN 10 /* bad lines that are reported one by one */

/* ------------------------------------------------------------------ the job */

/* What every stage has at hand: what is wanted, room, and what went wrong. */
struct dedup_job {
    const struct dedup_options *opt;
    struct dedup_store store; /* of all arrays by document, bucket and pair */
    int work_fd;              /* the folder of --work; 0: none */
    char error[512];
};

void dedup_job_init(struct dedup_job *job, const struct dedup_options *opt);
void dedup_job_free(struct dedup_job *job);

/* Stages return false with job->error. */
__attribute__((format(printf, 2, 3))) bool dedup_fail(struct dedup_job *job,
                                                      const char *format, ...);
/* The same for a store or a sorter that failed with errno. */
bool dedup_no_room(struct dedup_job *job, const char *what);

/* Is i below n? For loops over documents: keeps to the bound on memory. */
static inline bool dedup_more(struct dedup_job *job, uint64_t i, uint64_t n)
{
    if (job->store.folder)
        store_trim(&job->store);
    return i < n;
}

/* An array that grows; false leaves it as it was. And room for n, counted in
 * room, with some to spare; the same in a store. */
#define GROW(p, n) dedup_grow((void **)&(p), (n), sizeof *(p))
bool dedup_grow(void **p, uint64_t n, size_t size);
#define ROOM(p, room, n) ((n) <= (room) || (GROW(p, (n)*2) && ((room) = (n)*2)))
#define STORE_ROOM(s, p, room, n) \
    ((n) <= (room) || (STORE(s, p, (n)*2) && ((room) = (n)*2)))

/* A checksum, or fingerprint, with n bytes more in it. */
uint64_t dedup_chain(uint64_t sum, const void *bytes, size_t n);

/* ---------------------------------------------------------------- documents */

enum dedup_state {
    DOC_TEXT,  /* has words */
    DOC_EMPTY, /* has none */
    DOC_BAD    /* no text was found */
};

/* What was met in the input. */
struct dedup_seen {
    uint64_t documents, bytes, text_bytes, empty, malformed;
    uint64_t odd; /* whose text is not UTF-8, as JSON has to be */
    struct dedup_bad {
        const char *file;
        uint64_t line, doc;
        const char *why;
    } bad[DEDUP_SHOWN];
    size_t nbad;
};

/* What a document is called in messages. */
static inline const char *dedup_noun(const struct dedup_options *o)
{
    return o->format == DEDUP_WARC ? "record" : "line";
}

/* Line i of a block is malformed. With --strict false, and the run ends. */
bool dedup_bad_line(const struct dedup_options *opt, struct input *in,
                    const struct block *b, size_t i, const char *why,
                    struct dedup_seen *seen);

/* Zero but for the first two is empty. */
struct dedup_docs {
    struct input *in; /* where they are read, and read again */
    unsigned k;       /* components of a row */
    uint64_t n, room; /* documents, those of an index included */
    uint32_t base;    /* of them from an index */
    uint64_t resumed; /* and from a journal */
    uint32_t *rows;   /* k components each */
    uint64_t *hashes; /* of the words, or of the text */
    uint32_t *nshingles;
    uint8_t *states;
    double *values;     /* of the field or the length; NULL: input order */
    uint64_t *id_start; /* n + 1; NULL: FILE:LINE */
    char *ids;
    uint64_t ids_len, ids_room;
    struct dedup_seen seen;
};

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
/* The id of the next document: plain, see below. False without memory. */
bool dedup_part_id(struct dedup_part *p, const void *id, size_t n);
void dedup_part_free(struct dedup_part *p);

/* Room for n documents more, all arrays together; and n documents more. */
bool dedup_room(struct dedup_job *job, uint64_t n, struct dedup_docs *docs);
bool dedup_append(struct dedup_job *job, const struct dedup_part *p,
                  struct dedup_docs *docs);

/* The text of a line of a block: what json_find() and unescaping make of it in
 * buf, which grows, or the line itself; of a page what its reader sees. fields:
 * text, id, field, as found. NULL, or why there is none. */
struct dedup_text {
    char *buf;
    size_t room;
    struct html html;
    struct warc_text warc;
    const char *at;
    size_t len;
    struct json_slice fields[3];
    bool odd; /* JSON, and not UTF-8 */
};
const char *dedup_text(const struct dedup_options *opt, const struct block *b,
                       const char *line, size_t n, struct dedup_text *out);
void dedup_text_free(struct dedup_text *t);

/* Ids and names of files stand in lists with a tab or a line's end behind them,
 * so control characters in them become question marks. */
void dedup_plain_id(char *id, size_t n);

/* The id of a document, in a buffer of the caller's. */
size_t dedup_id(const struct dedup_docs *docs, uint32_t doc, char *buf,
                size_t room, const char **at);

/* The share of components that agree. */
double dedup_estimate(const struct dedup_docs *docs, uint32_t a, uint32_t b);

/* All documents behind those of an index. */
bool dedup_read(struct dedup_job *job, struct dedup_docs *docs);

/* All documents of docs->in handed over in their order, some at a time; of docs
 * only `seen` is changed. */
typedef bool dedup_take(void *ctx, const struct dedup_part *p);
bool dedup_read_each(struct dedup_job *job, struct dedup_docs *docs,
                     dedup_take *take, void *ctx);

/* -------------------------------------------------------- order and buckets */

struct dedup_order {
    uint32_t *rank; /* place in the order of priority */
    uint32_t *docs; /* documents in that order */
    uint32_t *same; /* the document of equal text that stands for it */
    uint64_t equal; /* that another one stands for */
};
bool dedup_order(struct dedup_job *job, const struct dedup_docs *docs,
                 struct dedup_order *out);

/* Does a document stand for itself, and has it words? Others are in no bucket
 * and are not compared. */
static inline bool dedup_compared(const struct dedup_docs *docs,
                                  const struct dedup_order *order, uint32_t doc)
{
    return docs->states[doc] == DOC_TEXT && order->same[doc] == doc;
}

/* Bucket i holds docs[start[i]] to docs[start[i + 1] - 1], by rank. */
struct dedup_buckets {
    uint64_t *start;
    uint64_t n, room;
    uint32_t *docs;
    uint64_t ndocs, docs_room;
    uint64_t *first; /* of the document of rank r: buckets of[first[r]] ... */
    uint32_t *of;
    uint64_t largest; /* documents in one */
};
bool dedup_band(struct dedup_job *job, const struct dedup_docs *docs,
                const struct dedup_order *order, struct dedup_buckets *out);

/* Buckets that were found elsewhere: bucket i has members[starts[i]] to
 * members[starts[i + 1] - 1], in any order, also such as are not compared. */
struct dedup_given {
    const uint64_t *starts;
    uint64_t n;
    const uint32_t *members;
};
bool dedup_band_given(struct dedup_job *job, const struct dedup_docs *docs,
                      const struct dedup_order *order,
                      const struct dedup_given *given,
                      struct dedup_buckets *out);

/* --------------------------------------------------------- pairs and checks */

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

/* Find a pair, or add it with a likeness that is not known. NULL: no room, and
 * job->error says so. */
struct dedup_pair *dedup_pair_of(struct dedup_job *job,
                                 struct dedup_pairs *pairs, uint32_t a,
                                 uint32_t b);

/* The shingles of documents that were compared. */
#define SET_WANTED UINT64_MAX /* in `at`: to be made in the next pass */
struct dedup_sets;
typedef bool dedup_fetch(struct dedup_job *job, const struct dedup_docs *docs,
                         struct dedup_sets *sets);
struct dedup_sets {
    dedup_fetch *fetch; /* makes what is wanted; NULL: from docs->in */
    void *fetch_ctx;
    struct dedup_store store; /* of words, one more than the job's */
    uint64_t *words;          /* of a set: how many, and then they */
    uint64_t len, room;
    uint64_t *at; /* of a document: 1 + where its set is; 0: nowhere */
    bool indexed; /* the first ones are of the index, in its order */
};
/* Where sets are: nowhere but those of an index. */
bool dedup_set_places(struct dedup_job *job, const struct dedup_docs *docs,
                      struct dedup_sets *sets);
/* Hand over the sets of all lines of in whose `at` is SET_WANTED: how many, and
 * then they. It was read once. */
typedef bool dedup_set_take(void *ctx, uint64_t line, const uint64_t *set);
bool dedup_set_each(struct dedup_job *job, struct input *in, const uint64_t *at,
                    dedup_set_take *take, void *ctx);
/* Room for n words more; false with errno. */
bool dedup_set_room(struct dedup_sets *sets, const char *folder, uint64_t n);

/* A file in the folder of --work. */
struct dedup_journal {
    int fd; /* 0: there is none */
    char *path;
    uint64_t size, whole; /* when it was opened, and of that whole records */
    uint64_t print;       /* fingerprint of what its records depend on */
};

/* The stage that decides asks this one how alike these documents are. */
struct dedup_check {
    const struct dedup_docs *docs;
    struct dedup_sets *sets;
    struct dedup_pairs pairs;
    struct dedup_journal journal; /* of them */
    uint64_t resumed, checked;    /* from the journal, and by reading */
    double seconds;
};

/* Fill in the likeness of all pairs from number `from` on; with an exact check
 * that of all but those of an index without shingles is exact. */
bool dedup_check_pairs(struct dedup_job *job, struct dedup_check *check,
                       size_t from);

/* ----------------------------------------------------------------- verdicts */

/* Of every document. */
struct dedup_verdicts {
    uint32_t *witness; /* what it is removed for; DEDUP_NONE: it stays */
    double *likeness;  /* to the witness */
    uint32_t *cluster; /* the document that stands for its cluster */
    uint64_t candidates, rounds; /* that deciding took */
    uint64_t pairs, removed, dropped_empty, kept, largest_cluster;
};

/* What a decision is made from. */
struct dedup_case {
    const struct dedup_docs *docs;
    const struct dedup_order *order;
    const struct dedup_buckets *buckets;
    struct dedup_check *check;
};
bool dedup_decide(struct dedup_job *job, const struct dedup_case *c,
                  struct dedup_verdicts *out);

/* Its greedy policy: witnesses; only, unless NULL: a document is compared with
 * those of the same number there. */
bool dedup_greedy(struct dedup_job *job, const struct dedup_case *c,
                  const uint32_t *only, struct dedup_verdicts *out);

/* Estimates below this are not candidates; pairs at that or above are alike. */
double dedup_floor(const struct dedup_options *o);
double dedup_alike(const struct dedup_options *o);

/* Does a document stay, and has it words? Then it goes into an index. */
static inline bool dedup_stays(const struct dedup_docs *docs,
                               const struct dedup_verdicts *verdicts,
                               uint32_t doc)
{
    return docs->states[doc] == DOC_TEXT &&
           verdicts->witness[doc] == DEDUP_NONE;
}

/* The sets of all that do. */
bool dedup_need_sets(struct dedup_job *job, const struct dedup_docs *docs,
                     const struct dedup_verdicts *verdicts,
                     struct dedup_sets *sets);

/* ----------------------------------------------------------------- results */

bool dedup_write_pairs(struct dedup_job *job, const struct dedup_docs *docs,
                       const struct dedup_order *order,
                       const struct dedup_pairs *pairs);
/* Its lines, one after another. */
typedef bool dedup_line(void *ctx, const char *line, size_t n);
bool dedup_list_pairs(struct dedup_job *job, const struct dedup_docs *docs,
                      const struct dedup_order *order,
                      const struct dedup_pairs *pairs, dedup_line *put,
                      void *ctx);
bool dedup_write_clusters(struct dedup_job *job, const struct dedup_docs *docs,
                          const struct dedup_verdicts *verdicts);
bool dedup_write_removed(struct dedup_job *job, const struct dedup_docs *docs,
                         const struct dedup_verdicts *verdicts);

/* The corpus without what was removed: all into one file, "-" for standard
 * output, or where the output is a folder, a file there for each. */
bool dedup_write_corpus(struct dedup_job *job, const struct dedup_docs *docs,
                        const struct dedup_verdicts *verdicts);
/* Append what lies in a block. Records become members of gzip, or what is in
 * these, as the name of the file says. */
void dedup_put(struct out_file *o, const struct input *in,
               const struct block *b, size_t from, size_t to);
/* Can it be, with a file for each input? False where two of them would be
 * written to one file, or one over an input. */
bool dedup_corpus_fits(struct dedup_job *job, const struct input *in);
bool dedup_is_folder(const char *path); /* there, or by its final slash */

/* What that writes to: one file, or one for each input. What goes wrong is in
 * in->error. */
struct dedup_copy {
    const struct dedup_options *opt;
    struct input *in;
    const char *folder; /* NULL: one file */
    const struct input_file *file;
    struct out_file out;
    bool open, unended;
};
bool dedup_copy_begin(struct dedup_copy *c, const struct dedup_options *opt,
                      struct input *in);
bool dedup_copy_file(struct dedup_copy *c, const struct input_file *f);
bool dedup_copy_end(struct dedup_copy *c, bool keep);

/* What stays, for later runs; where it is wanted, or the index before had them,
 * with shingles, so that what comes later is compared exactly. */
bool dedup_save_index(struct dedup_job *job, const struct dedup_docs *docs,
                      const struct dedup_verdicts *verdicts,
                      struct dedup_sets *sets);
bool dedup_load_index(struct dedup_job *job, struct dedup_docs *docs,
                      struct dedup_sets *sets);

/* ------------------------------------------------- one pass and a filter */

/* What the keys of bands depend on, as a seed for their filter: filters of
 * other bands know nothing of these keys. Never 0. */
uint64_t dedup_stream_seed(const struct dedup_options *o);

struct stream_report {
    struct dedup_seen seen;
    uint64_t units, removed_units, keys;
    double seconds;
};

/* About how many different keys there are: one pass that keeps nothing. Input
 * that can be read only once has been copied to a file before. */
bool dedup_stream_count(struct dedup_job *job, struct input *in,
                        double *distinct);

/* Read in once; keys go into f, and what is left to the output. */
bool dedup_stream(struct dedup_job *job, struct input *in, bly_filter *f,
                  struct stream_report *out);

#endif

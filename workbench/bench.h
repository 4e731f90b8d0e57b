/*
 * bench.h - what the parts of bloomery bench share
 *
 *     cmd_bench.c       options: which contenders, which sizes
 *     bench_run.c       which cells there are; the rounds
 *     bench_machine.c   what it runs on, and how much memory is left
 *     bench_floor.c     F: what a random access costs here
 *     bench_kinds.c     contenders: every kind of the table
 *     bench_inline.c    asking without a call, for those who have a header
 *     bench_peers.c     contenders: libbloom and an exact hash set
 *     bench_round.c     one cell, once: fill, ask, remove, with F beside it
 *     bench_threads.c   the same asking and building with several threads
 *     bench_lines.c     the command beside other commands, as processes
 *     bench_targets.c   what the figures are held to
 *     bench_report.c    for people; bench_json.c for programs;
 *     bench_plot.c      curves over the number of keys
 *
 * A contender is a kind or a peer; a cell is a contender at a number of keys. A
 * round measures every cell once, so that whatever else the machine does
 * affects all of them equally. A figure is the median over the rounds, of
 * nanoseconds, and of multiples of the F that was measured in the same round.
 */
#ifndef BLY_BENCH_H
#define BLY_BENCH_H

#include "base/random.h"
#include "io/filters.h"

/* Operations: its name for programs, its heading for people, and what it is.
 * A static kind is built where others add: that is one column. */
#define BENCH_OPS(X)                                                           \
    X(ADD, "add", "add", "adding all keys, in batches")                        \
    X(BUILD, "build", "build", "building from all hashes at once")             \
    X(ASK_ABSENT, "ask_absent", "absent",                                      \
      "asking for absent keys, in batches")                                    \
    X(ASK_HALF, "ask_half", "half",                                            \
      "asking, half of the keys present, in batches")                          \
    X(ASK_PRESENT, "ask_present", "present",                                   \
      "asking for present keys, in batches")                                   \
    X(REMOVE, "remove", "remove", "removing, in batches")                      \
    X(COUNT, "count", "count", "counting present keys, in batches")            \
    X(ONE_ADD, "single_add", "add", "adding one by one")                       \
    X(ONE_ABSENT, "single_absent", "absent", "asking one by one, absent keys") \
    X(ONE_HALF, "single_half", "half",                                         \
      "asking one by one, half of the keys present")                           \
    X(ONE_PRESENT, "single_present", "present",                                \
      "asking one by one, present keys")                                       \
    X(INLINE_ABSENT, "inline_absent", "inline",                                \
      "asking one by one without a call, absent keys")                         \
    X(INLINE_PRESENT, "inline_present", "inline",                              \
      "asking one by one without a call, present keys")                        \
    X(CALLS_64, "calls_64", "by 64",                                           \
      "asking in calls of 64 keys, half present")                              \
    X(CALLS_256, "calls_256", "by 256",                                        \
      "asking in calls of 256 keys, half present")                             \
    X(ACT, "act", "act", "asking, half present, and acting on the hits")

enum {
#define BENCH_OP_(NAME, name, head, text) OP_##NAME,
    BENCH_OPS(BENCH_OP_)
#undef BENCH_OP_
        NOPS
};
extern const char *const bench_op_names[NOPS], *const bench_op_heads[NOPS],
                                                   *const bench_op_texts[NOPS];

/* Nanoseconds an access, at one footprint. */
struct bench_floor {
    double read;        /* F */
    double update;      /* read-modify-write */
    double bare;        /* read, nothing fetched ahead */
    double deep;        /* read, the first stage farther ahead than F's */
    unsigned far, near; /* distances of the two stages */
};

/* What several threads do: asking; building; building with the number of keys
 * told before, where keys are added as they come. */
enum { TIMES_ASK, TIMES_BUILD, TIMES_SIZED, NTIMES };

/* Figures of one round. NAN: not measured. */
struct bench_sample {
    double ns[NOPS];
    struct bench_floor floor;
    double times[NTIMES]; /* several threads, as a ratio to one */
};

#define BENCH_MAX_ROUNDS 100

struct bench_contender;

struct bench_cell {
    const struct bench_contender *who;
    uint64_t items;
    char why[256];              /* not measured, because; else empty */
    double planned;             /* rate of false positives */
    double bits_per_key;        /* as planned, then as it is */
    uint64_t bytes;             /* likewise */
    uint64_t needs;             /* memory that measuring takes */
    uint32_t layers;            /* 1 at least */
    double seconds;             /* estimate of what a round takes */
    uint64_t nasked, nhit;      /* absent keys, and those said to be there */
    uint64_t npresent, nmissed; /* present keys, and those said not to be */
    unsigned nrounds;
    struct bench_sample rounds[BENCH_MAX_ROUNDS];
};

/* The keys of a step, and where it leaves what it found. */
#define BENCH_BLOCK ((size_t)1 << 20)
#define BENCH_PIECE 512 /* keys that stay in the first-level cache */
struct bench_scratch {
    uint64_t keys[BENCH_BLOCK];
    uint64_t maybe[BENCH_BLOCK / 64];
    uint64_t hashes[BENCH_PIECE], counts[BENCH_PIECE];
    bly_status each[BENCH_PIECE];
    uint64_t sum; /* of what must not be optimized away */
};

/* Do one operation with n keys, BENCH_BLOCK at most. What fails returns what
 * was wrong, here and below; NULL is success. */
typedef const char *bench_step(void *filter, const uint64_t *keys, size_t n,
                               struct bench_scratch *s);

/* bloomery/inline.h on a blocked filter; NULL where this processor cannot. */
bench_step *bench_inline_step(void);
bench_step bench_inline_usual, bench_inline_avx512;

struct bench_contender {
    const char *name;
    const char *kind; /* NULL: a peer */
    unsigned growth;  /* made for a part of the keys, one in so many; 0: all */
    const bly_option *option; /* of the kind; NULL: none */
    uint32_t can;             /* as in bly_kind_info */
    bool likely_no;           /* its "no" may be wrong */

    /* Fill in bits_per_key, bytes, needs and planned. */
    const char *(*plan)(const struct bench_contender *c, double fpr,
                        struct bench_cell *cell);
    const char *(*make)(const struct bench_contender *c, uint64_t items,
                        double fpr, void **filter);
    void (*release)(void *filter);
    bench_step *(*step)(const struct bench_contender *c, int op);

    /* Fill in bits_per_key, bytes and layers of one that is full. NULL: as they
     * were planned. */
    void (*size)(const void *filter, struct bench_cell *cell);
};

/* bench_kinds.c: the contender that a kind is, grown or not, with an option or
 * none. */
struct bench_contender bench_kind(const bly_kind_info *kind, const char *name,
                                  unsigned growth, const bly_option *option);

/* A filter of n keys from their hashes, by a builder that nthreads threads give
 * them to. items 0: it finds out how many there are. */
const char *bench_build(const struct bench_contender *c, uint64_t items,
                        double fpr, const uint64_t *hashes, size_t n,
                        unsigned nthreads, bly_filter **out);

/* bench_peers.c: those there are, n at most; how many. What is missing is told
 * in `missing`, a buffer. */
size_t bench_peers(struct bench_contender *out, size_t n, char *missing,
                   size_t nbytes);

/* bench_machine.c */
/* Nanoseconds of this thread alone since bench_start(), without those that
 * asking the clock takes. */
double bench_start(void);
double bench_spent(double start);
uint64_t bench_memory_left(void); /* bytes that may be taken without harm */
void bench_use_small_pages(void);
uint64_t bench_huge_bytes(void); /* in huge pages of this process */

struct bench_machine {
    char cpu[128], pages[64], rows[512];
    unsigned nprocessors;
    uint64_t l1, l2, l3, memory; /* bytes; 0: not known */
};
void bench_machine(struct bench_machine *out);

/* bench_floor.c: F at a footprint. False, and NANs, where there is no memory.
 * What it holds is kept for the next call, up to bench_floor_close(). */
bool bench_floor(uint64_t nbytes, struct bench_floor *out);
double bench_floor_huge(void); /* its share in huge pages; NAN: too small */
void bench_floor_close(void);

/* bench_round.c: how much of everything. */
struct bench_effort {
    size_t least_added; /* small filters are filled again up to this */
    size_t asked;       /* keys of an operation */
};
/* Keys of a call, and the time after which no further call is made. */
#define BENCH_ASK_CALL ((size_t)1 << 16)
#define BENCH_ASK_NS 1.5e7

extern const struct bench_effort bench_full, bench_trial;

/* Measure cell once more; its why is set where that fails. */
void bench_round(struct bench_cell *cell, double fpr, unsigned nthreads,
                 const struct bench_effort *effort, struct bench_scratch *s);

/* The keys of a filter of n are bly_mix64(i), i below n. */
enum bench_keys { KEYS_NEXT, KEYS_ABSENT, KEYS_HALF, KEYS_PRESENT };
void bench_fill_keys(enum bench_keys which, uint64_t n, uint64_t from,
                     uint64_t salt, uint64_t *keys, size_t count);

/* bench_threads.c: ratios of nthreads to one. */
void bench_threads(const struct bench_cell *cell, double fpr,
                   const void *filter, unsigned nthreads,
                   struct bench_sample *out);

/* -------------------------------------------------------------- results */

/* The middle of a figure over the rounds, and its quartiles. NAN: none. */
struct bench_figure {
    double q1, median, q3;
};
struct bench_figure bench_figure_of(double *values, size_t n); /* sorts them */
struct bench_figure bench_ns(const struct bench_cell *cell, int op);
struct bench_figure bench_multiple(const struct bench_cell *cell, int op);
struct bench_figure bench_floor_figure(const struct bench_cell *cell);
struct bench_figure bench_times(const struct bench_cell *cell, int which);
double bench_rate(const struct bench_cell *cell); /* measured; NAN: was not */

/* bench_targets.c: the multiple of F that an operation of a cell is held to,
 * or NAN; the bits per key; the ratio of two threads to one; nanoseconds a line
 * of the command. */
double bench_target(const struct bench_cell *cell, int op, double fpr);
double bench_target_bits(const struct bench_cell *cell, double fpr);
double bench_target_times(int which, unsigned nthreads);
double bench_target_line(bool build, uint64_t nlines);

/* A command and its rival on the same lines: nanoseconds of processor time. */
struct bench_command {
    const char *who, *job;
    uint64_t nlines;
    struct bench_figure ns;
    uint64_t peak; /* bytes held at most */
    char why[128]; /* not measured, because */
};
#define BENCH_MAX_COMMANDS 16
struct bench_lines {
    char why[128]; /* nothing was run, because */
    size_t n;
    struct bench_command at[BENCH_MAX_COMMANDS];
};

/* bench_lines.c: run them on nlines lines. */
void bench_lines(uint64_t nlines, double fpr, unsigned nrounds,
                 struct bench_lines *out);

/* All that a run found. */
struct bench_results {
    struct bench_machine machine;
    double fpr, seconds;        /* the estimate, of a round */
    unsigned nthreads, nrounds; /* 0: as many as fit the time */
    uint64_t minutes;           /* 0: as long as it takes */
    bool small_pages, json;
    double huge_share;
    const uint64_t *sizes;
    struct bench_floor *floors; /* by size */
    uint64_t *footprints;       /* of floors */
    size_t nsizes;
    struct bench_cell *cells; /* by size, then contender */
    size_t ncells;
    const char *missing;       /* peers, or "" */
    struct bench_lines *lines; /* NULL: not asked for */
};

/* bench_run.c: measure the cells of r, which are of n contenders at each size,
 * and the commands too unless lines is NULL: YES, or TROUBLE with the reason
 * printed. */
int bench_all(struct bench_results *r, const struct bench_contender *contenders,
              size_t n, struct bench_scratch *s, struct bench_lines *lines);

void bench_report_head(const struct bench_results *r); /* before it starts */
void bench_report(const struct bench_results *r);
extern const struct field bench_fields[];
void bench_json(const struct bench_results *r);
int bench_plot(const struct bench_results *r, const char *folder);

#endif

/*
 * support.h - what the test programs share
 *
 * Assertions that say what was expected, random numbers that repeat, memory
 * that ends at a wall, an allocator that keeps a ledger, and filters filled
 * with keys whose numbers are known.
 *
 * Keys are integers. The keys `first` to `first + n - 1` are hashed as
 * bly_hash_ints() does; two ranges that do not overlap are two disjoint sets.
 */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdbool.h>

#include <bloomery.h>

#include "engine/rows.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ------------------------------------------------------------ assertions */

/* got is want but for a share of `rel` of it. */
#define assert_near(got, want, rel) \
    assert_near_at(got, want, rel, #got, __FILE__, __LINE__)

/* got lies from low to high, both included. NAN lies nowhere. */
#define assert_between(got, low, high) \
    assert_between_at(got, low, high, #got, __FILE__, __LINE__)

/* The call returns this status; if not, bly_error() is printed. */
#define assert_status(call, status) \
    assert_status_at(call, status, #call, __FILE__, __LINE__)
#define assert_ok(call) assert_status(call, BLY_OK)

void assert_near_at(double got, double want, double rel, const char *what,
                    const char *file, int line);
void assert_between_at(double got, double low, double high, const char *what,
                       const char *file, int line);
void assert_status_at(bly_status got, bly_status want, const char *what,
                      const char *file, int line);

/* Skip the test for this reason; tools/run-tests adds reasons up. Never skip()
 * alone: tests that nobody runs should be seen, and why. */
#define skip_for(...)             \
    do {                          \
        skip_reason(__VA_ARGS__); \
        skip();                   \
    } while (0)

__attribute__((format(printf, 1, 2))) void skip_reason(const char *format, ...);

/* ---------------------------------------------------------------- chance */

/* The next of a sequence that is fixed by where *state starts. */
uint64_t test_random(uint64_t *state);

/* nevents draws among nkeys keys, key i with probability in proportion to
 * 1 / (i + 1)^exponent; times, which is zero before, gets how often each came.
 */
void zipf_draw(double exponent, size_t nkeys, size_t nevents, uint64_t *state,
               uint64_t *events, uint64_t *times);

/* Sanitizers make a program ten times slower, and what they look for does not
 * need many keys: n, or an eighth of it where BLY_QUICK is set. */
size_t scaled(size_t n);

/* The step that looks at about `looks` of n places, or at an eighth of them
 * where BLY_QUICK is set: odd, so that it meets every bit of a byte. */
size_t stride(size_t n, size_t looks);

/* ------------------------------------------------------------------ rows */

/* Every row of a job (engine/rows.h) that this processor runs; and the last,
 * which is portable and defines what the others do. */
#define EACH_ROW(job, r)                                               \
    for (const bly_##job##_row *r = bly_##job##_rows;                  \
         bly_##job##_row_at((size_t)(r - bly_##job##_rows)).name; r++) \
        if (bly_row_runs(r->needs))
#define LAST_ROW(job) (&bly_##job##_rows[last_row(bly_##job##_row_at)])

static inline size_t last_row(bly_row (*at)(size_t i))
{
    size_t i = 0;
    while (at(i + 1).name)
        i++;
    return i;
}

/* ---------------------------------------------------------------- memory */

/* nbytes that can be used, with a page behind them that cannot: one step too
 * far is a crash. Aligned only where nbytes is a multiple of it. */
void *guarded_new(size_t nbytes);
void guarded_free(void *p, size_t nbytes);

/* An allocator that counts. Release must give back what was asked for, to the
 * byte; a call that does not is noted, since an assertion may not jump out of
 * a thread, and ledger_check() reports it. */
typedef struct ledger {
    bly_mem mem;          /* hand over &ledger.mem */
    _Atomic long calls;   /* allocations asked for so far */
    _Atomic long live;    /* blocks that are out */
    _Atomic int64_t held; /* bytes that are out */
    _Atomic int64_t peak;
    _Atomic long wrong; /* releases of another size */
    long fail_at;       /* this allocation, from 0, gives NULL; -1: none */
} ledger;

void ledger_open(ledger *l);

/* Nothing is out, nothing was given back wrongly. */
void ledger_check(const ledger *l);

/* ----------------------------------------------------------------- bytes */

/* A growing array; put_bytes() is a bly_put whose ctx is one. */
typedef struct byte_array {
    unsigned char *at;
    size_t n, room;
} byte_array;

bool put_bytes(void *ctx, const void *bytes, size_t nbytes);

/* What is left of an array; get_bytes() is a bly_get whose ctx is one. */
typedef struct byte_source {
    const unsigned char *at;
    size_t left;
} byte_source;

int64_t get_bytes(void *ctx, void *buf, size_t nbytes);

/* f as bly_write() gives it; the caller frees .at with free(). */
byte_array written(const bly_filter *f);

/* By bly_parts, whose sums are made for `step` bytes at a time, and taken when
 * half of them are there, or all. */
void assert_parts_are(const bly_filter *f, const byte_array *a, size_t step);

/* f would be written as these bytes: it is, to the last hint, as it was. */
void assert_same_bytes(const bly_filter *f, const byte_array *want);

/* --------------------------------------------------------------- filters */

#define LAW_SEED UINT64_C(0x5eedf00dcafe)
#define LAW_FPR 0.01

/* Keys from here on are in no filter. */
#define ABSENT (UINT64_C(1) << 40)

/* A filter of this kind for so many keys, at LAW_FPR, with LAW_SEED. */
bly_spec spec_for(const bly_kind_info *kind, uint64_t items);

/* The hashes of n keys from `first` on, under the hasher of spec. The caller
 * frees them. */
uint64_t *hashes_for(const bly_spec *spec, uint64_t first, size_t n);

/* Of so many filters of spec, each with a seed of its own and keys in it: the
 * errors of the estimated number are centred, and their root mean square, in
 * deviations as the filter tells them, is from low to high. */
void assert_deviations(const bly_spec *spec, unsigned nfilters, size_t nkeys,
                       double low, double high);

/* Whether a builder of this kind wants values, and what a key is worth. */
bool takes_values(const bly_kind_info *kind);
uint64_t value_of(uint64_t key);

/* A filter made from spec that holds n keys from `first` on; built where the
 * kind cannot add. Anything that fails fails the test. */
bly_filter *filled_from(const bly_spec *spec, uint64_t first, size_t n);

/* The same with spec_for(kind, n): full to its capacity. */
bly_filter *filled(const bly_kind_info *kind, uint64_t first, size_t n);

/* How many of n keys from `first` on may be in f. */
uint64_t hits(const bly_filter *f, uint64_t first, size_t n);

/* Add hashes from the generator until f is full, or `most`: how many. */
uint64_t fill_random(bly_filter *f, uint64_t rng, uint64_t most);

/* What f counts for a hash. */
uint64_t count_of(const bly_filter *f, uint64_t hash);

/* The fact of that name; the test fails without. */
const bly_fact *fact_of(const bly_fact *facts, size_t n, const char *name);

/* Three empty filters of one shape that count: a and b get keys up to
 * a_times - 1 and b_times - 1 times, `both` all of them, and a merged with b is
 * it. Frees them. */
void assert_merge_adds_up(bly_filter *a, bly_filter *b, bly_filter *both,
                          int a_times, int b_times);

/* n keys by the portable code, then by every set of instructions there is: the
 * same filter, the same answers, and after removals the same filter again. */
void assert_rows_agree(const bly_spec *spec, size_t n);

#endif

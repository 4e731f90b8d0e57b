/*
 * sorter.c - keys in order, however many
 *
 * Keys are gathered in memory. When it is full they are sorted and written, a
 * run; in the end the runs are merged, the least of their first keys first, and
 * what is in memory is one more run. Where there are more runs than can be read
 * side by side, groups of them are merged to longer runs before.
 */
#define _GNU_SOURCE /* pread */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/dedup/sorter.h"
#include "base/grow.h"
#include "io/files.h"

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define LEAST_KEYS ((size_t)4096) /* of memory, whatever is asked for */
#define RUN_KEYS ((size_t)1024)   /* of a run read at a time, at least */

/* One pass by the digit at shift; false, and nothing moved, where all keys have
 * the same one. */
static bool radix_pass(const struct dedup_key *from, struct dedup_key *to,
                       size_t n, unsigned shift)
{
    size_t at[DIGITS] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++)
        at[from[i].key >> shift & (DIGITS - 1)]++;
    if (at[from[0].key >> shift & (DIGITS - 1)] == n)
        return false;
    for (unsigned i = 0; i < DIGITS; i++) {
        const size_t here = at[i];
        at[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < n; i++)
        to[at[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

static bool is_less(const struct dedup_key *x, const struct dedup_key *y)
{
    return x->key != y->key ? x->key < y->key : x->doc < y->doc;
}

/* Sort by digits, the least first; the passes are stable. Of hashes as many
 * high digits as n needs and 8 bits more will do, and insertion does the rest.
 */
void dedup_sort(struct dedup_key *keys, struct dedup_key *temp, size_t n,
                bool hashes)
{
    unsigned bits = 8;
    while (bits < 64 && (n >> (bits - 8)))
        bits++;
    if (!hashes)
        bits = 64;
    struct dedup_key *from = keys, *to = temp;
    for (unsigned p = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
         p-- > 0 && n > 64;) {
        const unsigned below = DIGIT_BITS * (p + 1);
        if (!radix_pass(from, to, n, below < 64 ? 64 - below : 0))
            continue;
        struct dedup_key *const swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof *keys);
    for (size_t i = 1; i < n; i++) {
        const struct dedup_key k = keys[i];
        size_t j = i;
        for (; j > 0 && is_less(&k, &keys[j - 1]); j--)
            keys[j] = keys[j - 1];
        keys[j] = k;
    }
}

/* ---------------------------------------------------------------- gathering */

static bool run_open(struct sorter *s)
{
    if (s->fd > 0)
        return true;
    const int fd = scratch_file(s->folder);
    s->fd = fd > 0 ? fd : 0;
    return fd > 0;
}

static bool run_write(struct sorter *s, const struct dedup_key *keys, size_t n)
{
    const char *at = (const char *)keys;
    size_t left = n * sizeof *keys;
    uint64_t to = s->end * sizeof *keys;
    while (left) {
        const ssize_t put = pwrite(s->fd, at, left, (off_t)to);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? put : 0;
        to += put > 0 ? (uint64_t)put : 0;
        left -= put > 0 ? (size_t)put : 0;
    }
    s->end += n;
    return true;
}

static bool run_begin(struct sorter *s)
{
    if (!GROW(&s->runs, &s->runs_room, s->nruns + 1))
        return false;
    s->runs[s->nruns++] = (struct sorted_run){ .at = s->end };
    return true;
}

static bool sorter_spill(struct sorter *s)
{
    if (s->n == 0)
        return true;
    dedup_sort(s->keys, s->temp, s->n, s->hashes);
    if (!run_open(s) || !run_begin(s) || !run_write(s, s->keys, s->n))
        return false;
    s->runs[s->nruns - 1].n = s->n;
    s->n = 0;
    return true;
}

/* Twice the room, up to what is allowed; then none. */
static bool sorter_room(struct sorter *s)
{
    const uint64_t fit = s->memory / (2 * sizeof *s->keys);
    const size_t most = fit > SIZE_MAX / 64 ? SIZE_MAX / 64
                        : fit > LEAST_KEYS  ? (size_t)fit
                                            : LEAST_KEYS;
    if (s->n < s->room)
        return true;
    if (s->room >= most)
        return sorter_spill(s);
    const size_t room = s->room ? s->room * 2 : LEAST_KEYS;
    const size_t want = room < most ? room : most;
    struct dedup_key *const keys = realloc(s->keys, want * sizeof *keys);
    if (keys)
        s->keys = keys;
    struct dedup_key *const temp =
        keys ? realloc(s->temp, want * sizeof *temp) : NULL;
    if (temp)
        s->temp = temp;
    if (!keys || !temp)
        return false;
    s->room = want;
    return true;
}

bool sorter_add(struct sorter *s, uint64_t key, uint64_t doc)
{
    if (s->n == s->room && !sorter_room(s))
        return false;
    s->keys[s->n++] = (struct dedup_key){ key, doc };
    return true;
}

void sorter_free(struct sorter *s)
{
    free(s->keys);
    free(s->temp);
    free(s->runs);
    if (s->fd > 0)
        close(s->fd);
    *s = (struct sorter){ .folder = s->folder,
                          .memory = s->memory,
                          .hashes = s->hashes };
}

/* ------------------------------------------------------------------ merging */

/* A run while it is read: keys[at] to keys[n - 1] are at hand. */
struct reading_run {
    int fd;
    uint64_t next, end; /* in the file, in keys */
    struct dedup_key *keys;
    size_t at, n, room;
};

static bool run_refill(struct reading_run *r)
{
    const uint64_t left = r->end - r->next;
    const size_t want = left < r->room ? (size_t)left : r->room;
    char *to = (char *)r->keys;
    size_t nbytes = want * sizeof *r->keys;
    uint64_t from = r->next * sizeof *r->keys;
    while (nbytes) {
        const ssize_t got = pread(r->fd, to, nbytes, (off_t)from);
        if (got == 0)
            errno = EIO;
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        to += got > 0 ? got : 0;
        from += got > 0 ? (uint64_t)got : 0;
        nbytes -= got > 0 ? (size_t)got : 0;
    }
    r->next += want;
    r->at = 0;
    r->n = want;
    return true;
}

static bool run_before(const struct reading_run *x, const struct reading_run *y)
{
    return is_less(&x->keys[x->at], &y->keys[y->at]);
}

/* heap[0] may be in the wrong place: bring it down. */
static void sift(struct reading_run **heap, size_t n)
{
    size_t i = 0;
    for (;;) {
        size_t least = 2 * i + 1;
        if (least >= n)
            return;
        if (least + 1 < n && run_before(heap[least + 1], heap[least]))
            least++;
        if (!run_before(heap[least], heap[i]))
            return;
        struct reading_run *const swap = heap[i];
        heap[i] = heap[least];
        heap[least] = swap;
        i = least;
    }
}

/* Make a heap of any order: put them in one by one, each going up. */
static void heap_make(struct reading_run **heap, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j && run_before(heap[j], heap[(j - 1) / 2]);
             j = (j - 1) / 2) {
            struct reading_run *const swap = heap[j];
            heap[j] = heap[(j - 1) / 2];
            heap[(j - 1) / 2] = swap;
        }
}

struct merging {
    struct reading_run *runs;
    struct reading_run **heap;
    size_t n;
    struct dedup_key *out;
    size_t nout;
};

/* Hand all keys over, RUN_KEYS at a time. */
static bool merge_runs(struct merging *m, sorter_fn *take, void *ctx,
                       bool *told)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct reading_run *const r = &m->runs[i];
        if (r->at == r->n && !run_refill(r))
            return false;
        if (r->at < r->n)
            m->heap[n++] = r;
    }
    heap_make(m->heap, n);
    m->nout = 0;
    while (n) {
        struct reading_run *const r = m->heap[0];
        m->out[m->nout++] = r->keys[r->at++];
        if (r->at == r->n && r->next < r->end && !run_refill(r))
            return false;
        if (r->at == r->n)
            m->heap[0] = m->heap[--n];
        sift(m->heap, n);
        if (m->nout == RUN_KEYS || n == 0) {
            if (!take(ctx, m->out, m->nout)) {
                *told = true;
                return false;
            }
            m->nout = 0;
        }
    }
    return true;
}

static void merging_free(struct merging *m, size_t nruns)
{
    if (!m)
        return;
    for (size_t i = 0; m->runs && i < nruns; i++)
        free(m->runs[i].keys);
    free(m->runs);
    free(m->heap);
    free(m->out);
    free(m);
}

/* Room for nruns runs of room keys each, and for what comes out. */
static struct merging *merging_new(size_t nruns, size_t room)
{
    struct merging *const m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->runs = calloc(nruns + 1, sizeof *m->runs);
    m->heap = calloc(nruns + 1, sizeof *m->heap);
    m->out = malloc(RUN_KEYS * sizeof *m->out);
    bool ok = m->runs && m->heap && m->out;
    for (size_t i = 0; i < nruns && ok; i++) {
        m->runs[i].room = room;
        m->runs[i].keys = malloc(room * sizeof *m->runs[i].keys);
        ok = m->runs[i].keys != NULL;
    }
    if (ok)
        return m;
    merging_free(m, nruns);
    return NULL;
}

static bool take_run(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct sorter *const to = ctx;
    to->runs[to->nruns - 1].n += n;
    return run_write(to, keys, n);
}

/* Merge groups of `wide` runs of s, so that fewer are left. */
static bool shorten(struct sorter *s, size_t wide, size_t room)
{
    struct sorter to = { .folder = s->folder };
    struct merging *const m = merging_new(wide, room);
    bool ok = m && run_open(&to), told = false;
    for (size_t i = 0; ok && i < s->nruns; i += wide) {
        m->n = s->nruns - i < wide ? s->nruns - i : wide;
        for (size_t j = 0; j < m->n; j++) {
            struct reading_run *const r = &m->runs[j];
            r->fd = s->fd;
            r->next = s->runs[i + j].at;
            r->end = r->next + s->runs[i + j].n;
            r->at = r->n = 0;
        }
        ok = run_begin(&to) && merge_runs(m, take_run, &to, &told);
    }
    merging_free(m, wide);
    if (!ok) {
        sorter_free(&to);
        return false;
    }
    free(s->runs);
    close(s->fd);
    s->runs = to.runs;
    s->nruns = to.nruns;
    s->runs_room = to.runs_room;
    s->fd = to.fd;
    s->end = to.end;
    return true;
}

bool sorter_each(struct sorter *s, size_t n, sorter_fn *take, void *ctx,
                 bool *told)
{
    uint64_t memory = 0;
    size_t nruns = 0, nfull = 0, at = 0;
    *told = false;
    for (size_t i = 0; i < n; i++) {
        memory += s[i].memory;
        nfull += s[i].n > 0 || s[i].nruns > 0;
    }
    if (nfull == 0)
        return true;
    for (size_t i = 0; i < n; i++) /* the one that has all, all in memory */
        if (nfull == 1 && s[i].n && s[i].nruns == 0) {
            dedup_sort(s[i].keys, s[i].temp, s[i].n, s[i].hashes);
            *told = !take(ctx, s[i].keys, s[i].n);
            sorter_free(&s[i]);
            return !*told;
        }
    uint64_t wide = memory / (RUN_KEYS * sizeof(struct dedup_key));
    wide = wide < 4 * n ? 4 * n : wide > 1024 ? 1024 : wide;
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        ok = sorter_spill(&s[i]);
        free(s[i].keys);
        free(s[i].temp);
        s[i].keys = s[i].temp = NULL;
        s[i].room = 0;
        while (ok && s[i].nruns > wide / n)
            ok = shorten(&s[i], (size_t)wide / n, RUN_KEYS);
        nruns += s[i].nruns;
    }
    uint64_t room = memory / sizeof(struct dedup_key) / (nruns + 1);
    room = room < RUN_KEYS ? RUN_KEYS : room > 65536 ? 65536 : room;
    struct merging *const m = ok ? merging_new(nruns, (size_t)room) : NULL;
    for (size_t i = 0; i < n && m; i++)
        for (size_t j = 0; j < s[i].nruns; j++) {
            m->runs[at].fd = s[i].fd;
            m->runs[at].next = s[i].runs[j].at;
            m->runs[at].end = s[i].runs[j].at + s[i].runs[j].n;
            at++;
        }
    if (m)
        m->n = nruns;
    ok = m && merge_runs(m, take, ctx, told);
    merging_free(m, nruns);
    const int error = errno;
    for (size_t i = 0; i < n; i++)
        sorter_free(&s[i]);
    errno = error;
    return ok;
}

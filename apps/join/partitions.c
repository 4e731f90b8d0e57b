/*
 * partitions.c - a join whose rows do not fit into memory
 *
 * Rows of both sides go to one temporary file, in 64 parts by the hash of their
 * key, so that partners meet in one part. Then part by part: as many rows of
 * RIGHT as fit are held, and the rows of LEFT of that part are run past them;
 * if more of RIGHT are left, because a key is very frequent, say, then again
 * with the next ones, so that memory is bounded whatever the keys are.
 *
 *     RIGHT   | part 0: held . held . | part 1: held . | ...
 *     LEFT    | part 0 . again ...... | part 1 ....... | ...
 *     runs    | 0 ..... | 1 ......... | 2 ............ | ...     -> merged
 *
 * Each time gives a run: rows of the result with the number of their row of
 * LEFT, rising. Runs are merged by that number, and earlier runs first where it
 * is the same, which is the order of RIGHT. A row that no partner is needed
 * for (the filter says no, and the join keeps it) goes into a run of its own.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/join/join_state.h"
#include "base/grow.h"

#define RUN_BUFFER_LEAST ((size_t)4096)

static unsigned part_of(uint64_t hash)
{
    return (unsigned)(hash >> (64 - JOIN_PART_BITS));
}

bool part_right(void *joining, const struct held_row *row)
{
    struct join_state *const j = joining;
    const struct stream_record r = { .hash = row->hash,
                                     .nkey = row->nkey,
                                     .nrest = row->nrest };
    return stream_add(&j->scratch, &j->right[part_of(row->hash)], &r,
                      row->bytes, row->bytes + row->nkey);
}

/* Row `number` of the result into a run. */
static bool run_put(struct join_state *j, struct stream *run, uint64_t number)
{
    const struct stream_record r = { .number = number,
                                     .nrest = (uint32_t)j->row.len };
    j->report.rows++;
    return stream_add(&j->scratch, run, &r, NULL, j->row.at);
}

static bool no_memory(struct join_state *j)
{
    j->out.failed = true;
    j->out.error = 0;
    return false;
}

bool part_left(struct join_state *j, uint64_t number, uint64_t hash,
               bly_bytes key, bly_bytes row, bool maybe)
{
    const struct stream_record r = { number, hash, (uint32_t)key.len,
                                     (uint32_t)row.len };
    if (maybe)
        return stream_add(&j->scratch, &j->left[part_of(hash)], &r, key.ptr,
                          row.ptr);
    if (!join_takes(j, false))
        return true;
    if (!join_row(j, row, NULL))
        return no_memory(j);
    return run_put(j, &j->alone, number);
}

/* ----------------------------------------------------------------- one part */

/* The rows of a part, while it is joined. */
struct part {
    struct join_state *j;
    const struct stream *left;
    struct stream_reader right;
    struct stream_record next; /* row of RIGHT that did not fit; */
    bool waits;                /* if there is one */
    bool last;                 /* all of RIGHT is held, or was */
    uint64_t *found;  /* a bit for each row of LEFT that has a partner */
    struct block key; /* of a row, and the row behind it */
};

/* The bytes of a record into p->key, a newline behind them. */
static bool part_bytes(struct part *p, struct stream_reader *from,
                       const struct stream_record *r)
{
    const size_t n = (size_t)r->nkey + r->nrest;
    p->key.len = 0;
    if (!block_fit(&p->key, n + 1))
        return no_memory(p->j);
    if (n && !reader_get(from, p->key.at, n))
        return false;
    p->key.at[n] = '\n'; /* as in a block of rows */
    return true;
}

/* Hold the next rows of RIGHT. */
static bool part_hold(struct part *p)
{
    struct join_state *const j = p->j;
    held_clear(&j->held);
    while (p->waits || reader_get(&p->right, &p->next, sizeof p->next)) {
        p->waits = !held_fits(&j->held, p->next.nkey, p->next.nrest);
        if (p->waits)
            break;
        if (!part_bytes(p, &p->right, &p->next))
            return false;
        const bly_bytes key = { p->key.at, p->next.nkey };
        const bly_bytes rest = { p->key.at + p->next.nkey, p->next.nrest };
        if (!held_add(&j->held, p->next.hash, key, rest))
            return no_memory(j);
    }
    p->last = !p->waits;
    return !j->scratch.error && (held_index(&j->held) || no_memory(j));
}

/* The rows of the result that row i of LEFT in this part gives now. */
static bool part_match(struct part *p, uint64_t i,
                       const struct stream_record *r, struct stream *run)
{
    struct join_state *const j = p->j;
    const bool all = j->type == JOIN_INNER || j->type == JOIN_LEFT;
    const bly_bytes key = { p->key.at, r->nkey };
    const bly_bytes row = { p->key.at + r->nkey, r->nrest };
    uint64_t *const word = &p->found[i / 64];
    struct held_row *right = held_find(&j->held, r->hash, key);
    if (right) {
        right->matched = true;
        *word |= UINT64_C(1) << i % 64;
    }
    for (; all && right; right = right->next)
        if (!join_row(j, row, right))
            return no_memory(j);
        else if (!run_put(j, run, r->number))
            return false;
    if (!p->last)
        return true;
    /* What depends on whether there was any partner is known now. */
    const bool found = *word >> i % 64 & 1;
    j->report.falsely += !j->of_left && !found;
    if (found ? all : !join_takes(j, false))
        return true;
    if (found && j->type == JOIN_ANTI)
        return true;
    return join_row(j, row, NULL) ? run_put(j, run, r->number) : no_memory(j);
}

/* All rows of LEFT of this part past those that are held. */
static bool part_pass(struct part *p, struct stream *run)
{
    struct stream_reader left;
    struct stream_record r;
    bool ok = reader_open(&left, &p->j->scratch, p->left, p->j->scratch.buffer);
    for (uint64_t i = 0; ok && reader_get(&left, &r, sizeof r); i++)
        ok = part_bytes(p, &left, &r) && part_match(p, i, &r, run);
    reader_close(&left);
    if (p->j->of_left && ok)
        p->j->report.falsely += held_unmatched(&p->j->held);
    return ok && !p->j->scratch.error && stream_flush(&p->j->scratch, run);
}

/* ---------------------------------------------------------------- all parts */

struct runs {
    struct stream *at;
    size_t n, room;
};

static struct stream *runs_more(struct runs *r)
{
    if (!GROW(&r->at, &r->room, r->n + 1))
        return NULL;
    r->at[r->n] = (struct stream){ 0 };
    return &r->at[r->n++];
}

static bool part_join(struct join_state *j, unsigned number, struct runs *runs)
{
    struct part p = { .j = j, .left = &j->left[number] };
    const uint64_t n = p.left->nrecords;
    if (n == 0 && !j->of_left)
        return true; /* nobody asks for its rows of RIGHT */
    p.found = calloc((size_t)(n / 64) + 1, sizeof *p.found);
    bool ok = p.found || no_memory(j);
    ok = ok && reader_open(&p.right, &j->scratch, &j->right[number],
                           j->scratch.buffer);
    while (ok && !p.last) {
        struct stream *const run = runs_more(runs);
        ok = (run || no_memory(j)) && part_hold(&p) && part_pass(&p, run);
    }
    reader_close(&p.right);
    block_free(&p.key);
    free(p.found);
    return ok;
}

/* A run while it is merged: its next row. */
struct merging {
    struct stream_reader reader;
    struct stream_record next;
    size_t run;
};

static bool comes_before(const struct merging *x, const struct merging *y)
{
    return x->next.number != y->next.number ? x->next.number < y->next.number
                                            : x->run < y->run;
}

/* The heap of n runs is right but for the one at i: let it sink. */
static void sink(struct merging *heap, size_t n, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && comes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_before(&heap[child], &heap[i]))
            break;
        const struct merging swap = heap[i];
        heap[i] = heap[child];
        heap[child] = swap;
    }
}

/* The next row of a run to the result. */
static bool merge_row(struct join_state *j, struct merging *m)
{
    j->row.len = 0;
    if (!block_fit(&j->row, m->next.nrest))
        return no_memory(j);
    if (m->next.nrest && !reader_get(&m->reader, j->row.at, m->next.nrest))
        return false;
    j->row.len = m->next.nrest;
    return join_put(&j->out, &j->row);
}

static bool runs_merge(struct join_state *j, const struct runs *runs)
{
    struct merging *const heap = calloc(runs->n + 1, sizeof *heap);
    size_t n = 0;
    uint64_t room = j->held.memory / 2 / (runs->n + 1);
    room = room > SCRATCH_BUFFER ? SCRATCH_BUFFER : room;
    room = room < RUN_BUFFER_LEAST ? RUN_BUFFER_LEAST : room;
    bool ok = heap || no_memory(j);
    for (size_t i = 0; ok && i < runs->n; i++) {
        struct merging *const m = &heap[n];
        m->run = i;
        ok = reader_open(&m->reader, &j->scratch, &runs->at[i], (size_t)room);
        if (ok && reader_get(&m->reader, &m->next, sizeof m->next))
            n++;
        else
            reader_close(&m->reader);
    }
    for (size_t i = n; i-- > 0;)
        sink(heap, n, i);
    while (ok && n > 0 && !j->scratch.error) {
        ok = merge_row(j, &heap[0]);
        if (ok &&
            !reader_get(&heap[0].reader, &heap[0].next, sizeof heap[0].next)) {
            reader_close(&heap[0].reader);
            heap[0] = heap[--n];
        }
        sink(heap, n, 0);
    }
    for (size_t i = 0; heap && i < n; i++)
        reader_close(&heap[i].reader);
    free(heap);
    return ok && !j->scratch.error;
}

bool parts_join(struct join_state *j)
{
    struct runs runs = { 0 };
    struct stream *const alone = runs_more(&runs);
    bool ok = alone || no_memory(j);
    for (unsigned i = 0; ok && i < JOIN_PARTS; i++)
        ok = stream_flush(&j->scratch, &j->left[i]);
    ok = ok && stream_flush(&j->scratch, &j->alone);
    if (ok) {
        *alone = j->alone;
        j->alone = (struct stream){ 0 };
    }
    for (unsigned i = 0; ok && i < JOIN_PARTS; i++)
        ok = part_join(j, i, &runs);
    held_clear(&j->held);
    ok = ok && runs_merge(j, &runs);
    for (size_t i = 0; i < runs.n; i++)
        stream_free(&runs.at[i]);
    free(runs.at);
    return ok;
}

void parts_free(struct join_state *j)
{
    for (unsigned i = 0; i < JOIN_PARTS; i++) {
        stream_free(&j->right[i]);
        stream_free(&j->left[i]);
    }
    stream_free(&j->alone);
    if (j->scratch.fd >= 0)
        close(j->scratch.fd);
}

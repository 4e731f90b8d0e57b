/*
 * staged_bands.c - from lines to buckets, and to the groups that they link
 *
 * A sketch task writes the keys of all bands of its documents by their low
 * bits, so that a band task finds all equal ones among its part; by the high
 * ones it sorts them (sorter.h, in files if need be). What occurs twice or more
 * is a bucket.
 * Equal texts are equal in all bands, and nothing is done about them yet.
 *
 * The one task that looks at all buckets only links documents: 16 bytes for
 * each, in a file if need be. Groups are laid out in the order of their first
 * documents, and each of N tasks gets the next that are an N-th of all buckets.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/sorter.h"
#include "apps/dedup/staged.h"

/* ------------------------------------------------------------------- sketch */

struct sketching {
    struct dedup_job *job;
    const struct staged *st;
    struct part_out *out;
    uint64_t share, n, ids, empty, text_bytes;
};

static bool put_key(struct sketching *s, uint64_t key, uint64_t doc)
{
    const uint64_t row[2] = { key, s->share << SHARE_BITS | doc };
    const uint64_t part = (uint32_t)key * s->st->head.ntasks >> 32;
    return part_put(s->out, SKETCH_KEYS + part, row, sizeof row);
}

static bool put_keys(struct sketching *s, const struct dedup_part *p, size_t i)
{
    const struct dedup_options *const o = s->job->opt;
    uint64_t keys[BLY_MAX_COMPONENTS];
    if (p->states[i] != DOC_TEXT)
        return true;
    if (o->whole_only)
        return put_key(s, p->hashes[i], s->n + i);
    bly_bands_keys(o->bands, p->rows + i * o->sketch.k, keys);
    bool ok = true;
    for (unsigned b = 0; ok && b < o->bands.bands; b++)
        ok = put_key(s, keys[b], s->n + i);
    return ok;
}

static bool put_rows(void *ctx, const struct dedup_part *p)
{
    struct sketching *const s = ctx;
    const struct dedup_options *const o = s->job->opt;
    bool ok = o->whole_only || part_put(s->out, SKETCH_ROWS, p->rows,
                                        p->n * o->sketch.k * sizeof *p->rows);
    for (size_t i = 0; ok && i < p->n; i++) {
        struct sketch_facts f = { .hash = p->hashes[i],
                                  .value = p->values[i],
                                  .nshingles = p->nshingles[i],
                                  .state = p->states[i] };
        const uint64_t end = s->ids + p->id_end[i];
        s->empty += f.state == DOC_EMPTY;
        ok = part_put(s->out, SKETCH_FACTS, &f, sizeof f) &&
             (!o->want_ids ||
              part_put(s->out, SKETCH_ID_ENDS, &end, sizeof end)) &&
             put_keys(s, p, i);
    }
    ok = ok &&
         (!o->want_ids || part_put(s->out, SKETCH_IDS, p->ids, p->ids_len));
    s->ids += p->ids_len;
    s->n += p->n;
    s->text_bytes += p->text_bytes;
    return ok && (s->n <= LOCAL_MASK ||
                  dedup_fail(s->job, "more than 2^40 documents in a task; use "
                                     "more tasks"));
}

static bool put_seen(struct sketching *s, const struct input *in,
                     const struct dedup_seen *seen)
{
    struct part_out *const out = s->out;
    const struct sketch_head head = { s->n,     in->nbytes,      s->text_bytes,
                                      s->empty, seen->malformed, seen->odd };
    bool ok =
        part_put(out, SKETCH_HEAD, &head, sizeof head) &&
        part_put(out, SKETCH_MARKS, in->marks, in->nmarks * sizeof *in->marks);
    for (size_t i = 0; ok && i < in->nfiles; i++) {
        const struct input_file *const f = &in->files[i];
        struct sketch_segment seg = { f->first, f->ndocs, f->nbytes, "" };
        memcpy(seg.error, f->error, sizeof seg.error);
        ok = part_put(out, SKETCH_SEGMENTS, &seg, sizeof seg);
    }
    for (size_t i = 0; ok && i < seen->nbad; i++) {
        struct sketch_bad bad = { .line = seen->bad[i].line };
        for (size_t j = 0; j < in->nfiles; j++)
            if (seen->bad[i].file == in->files[j].name &&
                in->files[j].first <= seen->bad[i].doc)
                bad.segment = j;
        snprintf(bad.why, sizeof bad.why, "%s", seen->bad[i].why);
        ok = part_put(out, SKETCH_BAD, &bad, sizeof bad);
    }
    return ok;
}

bool stage_sketch(struct dedup_job *job, const struct staged *st, uint64_t task)
{
    struct input in;
    struct part_out out;
    struct dedup_options o = *job->opt;
    struct dedup_job mine = *job;
    mine.opt = &o;
    o.strict = false; /* join tells of bad lines, with their numbers */
    if (!share_open(job, st, task, &in)) {
        input_close(&in);
        return false;
    }
    struct dedup_docs docs = { .in = &in, .k = o.sketch.k };
    bool ok = part_begin(job, st, STAGE_SKETCH, task,
                         SKETCH_KEYS + st->head.ntasks, &out);
    if (ok) {
        struct sketching s = {
            .job = job, .st = st, .out = &out, .share = task
        };
        ok = in.nfiles == 0 || dedup_read_each(&mine, &docs, put_rows, &s);
        if (!ok)
            dedup_fail(job, "%s", mine.error);
        ok = ok && share_same(job, st, task) && put_seen(&s, &in, &docs.seen);
        ok = part_end(&out, ok) && ok;
    }
    input_close(&in);
    return ok;
}

/* --------------------------------------------------------------------- band */

/* Keys in order become buckets: their size and documents. */
struct gathering {
    struct dedup_job *job;
    struct part_out *out;
    uint64_t key, *docs;
    size_t n, room;
};

static bool put_bucket(struct part_out *out, uint64_t piece,
                       const uint64_t *docs, uint64_t n)
{
    return part_put(out, piece, &n, sizeof n) &&
           part_put(out, piece, docs, (size_t)n * sizeof *docs);
}

static bool gather_end(struct gathering *g)
{
    const bool ok = g->n < 2 || put_bucket(g->out, 0, g->docs, g->n);
    g->n = 0;
    return ok;
}

static bool gather(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct gathering *const g = ctx;
    for (size_t i = 0; i < n; i++) {
        if (g->n && keys[i].key != g->key && !gather_end(g))
            return false;
        g->key = keys[i].key;
        if (!ROOM(g->docs, g->room, g->n + 1))
            return dedup_fail(g->job, "out of memory");
        g->docs[g->n++] = keys[i].doc;
    }
    return true;
}

#define ROWS_AT_ONCE 1024

static bool read_keys(struct dedup_job *job, const struct staged *st,
                      uint64_t task, struct sorter *s)
{
    uint64_t rows[2 * ROWS_AT_ONCE];
    bool ok = true;
    for (uint64_t i = 0; ok && i < st->head.ntasks; i++) {
        struct piece_in in;
        if (!piece_open(job, st, STAGE_SKETCH, i, SKETCH_KEYS + task, &in))
            return false;
        uint64_t left = in.nbytes / 16;
        while (ok && left) {
            const size_t n = left < ROWS_AT_ONCE ? (size_t)left : ROWS_AT_ONCE;
            ok = piece_get(&in, rows, 16 * n);
            for (size_t j = 0; ok && j < n; j++)
                ok = sorter_add(s, rows[2 * j], rows[2 * j + 1]) ||
                     dedup_no_room(job, "sorting bands");
            left -= n;
        }
        piece_close(&in);
    }
    return ok;
}

bool stage_band(struct dedup_job *job, const struct staged *st, uint64_t task)
{
    struct part_out out;
    struct sorter s = { .folder = st->folder,
                        .memory = job->opt->memory / 2,
                        .hashes = true };
    struct gathering g = { .job = job, .out = &out };
    bool told = false;
    if (!part_begin(job, st, STAGE_BAND, task, 1, &out))
        return false;
    bool ok = read_keys(job, st, task, &s);
    if (ok && !sorter_each(&s, 1, gather, &g, &told))
        ok = told ? false : dedup_no_room(job, "sorting bands");
    ok = ok && gather_end(&g);
    sorter_free(&s);
    free(g.docs);
    return part_end(&out, ok) && ok;
}

/* --------------------------------------------------------------------- link */

/* The buckets of a part, one after another. */
struct bucket_in {
    struct piece_in in;
    uint64_t *docs, n;
    size_t room;
};

static bool next_bucket(struct bucket_in *b, bool *ended)
{
    if (!piece_read(&b->in, &b->n, sizeof b->n, ended))
        return false;
    if (b->n < 1 || b->n > b->in.nbytes / 8)
        return dedup_fail(b->in.job, "%s: damaged", b->in.path);
    return (ROOM(b->docs, b->room, (size_t)b->n) ||
            dedup_fail(b->in.job, "out of memory")) &&
           piece_get(&b->in, b->docs, (size_t)b->n * sizeof *b->docs);
}

struct linking {
    struct dedup_job *job;
    const struct staged *st;
    uint64_t *base;   /* of each share: documents before it */
    uint64_t *parent; /* of each document, in the order of all */
    uint64_t *size;   /* of a group, at its first document: places in buckets;
                         then 1 + its task */
    struct link_head head;
};

static bool place_of(struct linking *l, uint64_t doc, uint64_t *place)
{
    const uint64_t share = doc >> SHARE_BITS;
    if (share >= l->st->head.ntasks)
        return dedup_fail(l->job, "a bucket is damaged");
    *place = l->base[share] + (doc & LOCAL_MASK);
    return *place < l->base[share + 1] ||
           dedup_fail(l->job, "a bucket is damaged");
}

static uint64_t root_of_place(uint64_t *parent, uint64_t x)
{
    while (parent[x] != x) {
        parent[x] = parent[parent[x]];
        x = parent[x];
    }
    return x;
}

static bool link_bucket(struct linking *l, const struct bucket_in *b)
{
    uint64_t first = 0, place;
    for (uint64_t i = 0; i < b->n; i++) {
        if (!place_of(l, b->docs[i], &place))
            return false;
        const uint64_t root = root_of_place(l->parent, place);
        store_trim(&l->job->store);
        if (i == 0) {
            first = root;
            continue;
        }
        if (root == first)
            continue;
        const uint64_t less = root < first ? root : first;
        const uint64_t more = root < first ? first : root;
        l->parent[more] = less;
        l->size[less] += l->size[more];
        first = less;
    }
    l->size[first] += b->n;
    l->head.members += b->n;
    return true;
}

/* Every group gets a task, in the order of first documents. */
static void share_out(struct linking *l)
{
    const uint64_t n = l->st->head.ntasks;
    const uint64_t each = l->head.members / n + 1;
    uint64_t sum = 0;
    for (uint64_t i = 0; dedup_more(l->job, i, l->head.ndocs); i++) {
        const uint64_t size = l->size[i];
        if (l->parent[i] != i || size == 0)
            continue;
        if (size > l->head.largest)
            l->head.largest = size;
        l->size[i] = 1 + (sum / each < n ? sum / each : n - 1);
        sum += size;
    }
}

static bool each_bucket(struct linking *l, struct part_out *out,
                        bool (*does)(struct linking *l,
                                     const struct bucket_in *b))
{
    bool ok = true;
    for (uint64_t i = 0; ok && i < l->st->head.ntasks; i++) {
        struct bucket_in b = { .n = 0 };
        bool ended = false;
        if (!piece_open(l->job, l->st, STAGE_BAND, i, 0, &b.in))
            return false;
        while (ok && next_bucket(&b, &ended)) {
            uint64_t place;
            if (does) {
                ok = does(l, &b);
                continue;
            }
            ok = place_of(l, b.docs[0], &place);
            if (ok) {
                const uint32_t task =
                    (uint32_t)(l->size[root_of_place(l->parent, place)] - 1);
                ok = part_put(out, LINK_TASKS + i, &task, sizeof task);
                store_trim(&l->job->store);
            }
        }
        ok = ok && ended;
        piece_close(&b.in);
        free(b.docs);
    }
    return ok;
}

/* What sketch counted; and of every segment how many lines of its file come
 * before it. */
static bool read_heads(struct linking *l, struct part_out *out)
{
    const struct staged *const st = l->st;
    uint64_t file = UINT64_MAX, lines = 0;
    bool ok = true;
    for (uint64_t i = 0; ok && i < st->head.ntasks; i++) {
        const struct plan_segment *s;
        const size_t n = share_segments(st, i, &s);
        struct sketch_head head;
        struct piece_in in;
        if (!piece_open(l->job, st, STAGE_SKETCH, i, SKETCH_HEAD, &in))
            return false;
        ok = piece_get(&in, &head, sizeof head);
        piece_close(&in);
        if (!ok ||
            !piece_open(l->job, st, STAGE_SKETCH, i, SKETCH_SEGMENTS, &in))
            return false;
        l->base[i] = l->head.ndocs;
        l->head.ndocs += head.ndocs;
        for (size_t j = 0; ok && j < n; j++) {
            struct sketch_segment seg;
            lines = s[j].file == file ? lines : 0;
            file = s[j].file;
            ok = part_put(out, LINK_STARTS, &lines, sizeof lines) &&
                 piece_get(&in, &seg, sizeof seg);
            lines += seg.ndocs;
        }
        piece_close(&in);
    }
    l->base[st->head.ntasks] = l->head.ndocs;
    return ok;
}

bool stage_link(struct dedup_job *job, const struct staged *st, uint64_t task)
{
    struct part_out out;
    struct linking l = { .job = job, .st = st };
    struct dedup_store *const s = &job->store;
    if (!part_begin(job, st, STAGE_LINK, task, LINK_TASKS + st->head.ntasks,
                    &out))
        return false;
    l.base = calloc(st->head.ntasks + 1, sizeof *l.base);
    bool ok = l.base || dedup_fail(job, "out of memory");
    ok = ok && read_heads(&l, &out);
    if (ok && l.head.ndocs > job->opt->memory / 32)
        s->folder = st->folder; /* too many to be in memory */
    if (ok && (!STORE(s, l.parent, l.head.ndocs) ||
               !STORE_ZEROS(s, l.size, l.head.ndocs)))
        ok = dedup_no_room(job, "documents");
    for (uint64_t i = 0; ok && dedup_more(job, i, l.head.ndocs); i++)
        l.parent[i] = i;
    ok = ok && each_bucket(&l, NULL, link_bucket);
    if (ok)
        share_out(&l);
    ok = ok && each_bucket(&l, &out, NULL) &&
         part_put(&out, LINK_HEAD, &l.head, sizeof l.head);
    free(l.base);
    return part_end(&out, ok) && ok;
}

/* --------------------------------------------------------------------- deal */

bool stage_deal(struct dedup_job *job, const struct staged *st, uint64_t task)
{
    struct part_out out;
    struct piece_in tasks;
    struct bucket_in b = { .n = 0 };
    bool ended = false;
    if (!piece_open(job, st, STAGE_LINK, 0, LINK_TASKS + task, &tasks))
        return false;
    bool ok = piece_open(job, st, STAGE_BAND, task, 0, &b.in);
    if (ok) {
        ok = part_begin(job, st, STAGE_DEAL, task, st->head.ntasks, &out);
        const bool begun = ok;
        while (ok && next_bucket(&b, &ended)) {
            uint32_t to;
            ok = piece_get(&tasks, &to, sizeof to) &&
                 (to < st->head.ntasks ||
                  dedup_fail(job, "%s: damaged", tasks.path)) &&
                 put_bucket(&out, to, b.docs, b.n);
        }
        ok = ok && ended;
        if (begun)
            ok = part_end(&out, ok) && ok;
        piece_close(&b.in);
    }
    piece_close(&tasks);
    free(b.docs);
    return ok;
}

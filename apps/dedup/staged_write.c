/*
 * staged_write.c - verdicts become lines, and parts become results
 *
 * A write task reads its share once more and copies the lines that stay, and
 * writes its lines of the lists. What joins them copies bytes; it numbers
 * clusters, of which each has its first member's number for a name until then,
 * merges the pairs, which every task has sorted, and tells the report. Results
 * appear whole or not at all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/dedup_run.h"
#include "apps/dedup/staged.h"
#include "base/search.h"
#include "report/say.h"

/* -------------------------------------------------------------------- write */

struct verdict_row {
    struct keep_verdict v;
    size_t id; /* in ids */
};

struct writing {
    struct dedup_job *job;
    const struct staged *st;
    struct part_out *out;
    struct input *in;
    struct verdict_row *rows;
    size_t nrows, rows_room;
    char *ids;
    size_t nids, ids_room;
    uint8_t *gone; /* of each line */
    struct write_segment *segments;
    struct write_counts counts;
};

static bool read_verdicts(struct writing *w, uint64_t task)
{
    bool ok = true, ended;
    for (uint64_t i = 0; ok && i < w->st->head.ntasks; i++) {
        struct piece_in in;
        struct keep_verdict v;
        if (!piece_open(w->job, w->st, STAGE_KEEP, i, KEEP_VERDICTS + task,
                        &in))
            return false;
        while (ok && piece_read(&in, &v, sizeof v, &ended)) {
            ok = (v.doc < w->in->ndocs && v.nid <= in.nbytes) ||
                 dedup_fail(w->job, "%s: damaged", in.path);
            ok = ok &&
                 ((ROOM(w->rows, w->rows_room, w->nrows + 1) &&
                   ROOM(w->ids, w->ids_room, w->nids + (size_t)v.nid + 1)) ||
                  dedup_fail(w->job, "out of memory"));
            if (!ok)
                break;
            w->rows[w->nrows++] = (struct verdict_row){ v, w->nids };
            ok = piece_get(&in, w->ids + w->nids, (size_t)v.nid);
            w->nids += (size_t)v.nid;
            if (v.likeness >= 0) {
                w->gone[v.doc] = 1;
                w->counts.removed++;
            }
        }
        ok = ok && ended;
        piece_close(&in);
    }
    return ok;
}

static bool drop_empty(struct writing *w, uint64_t task)
{
    struct piece_in in;
    bool ok;
    if (!w->job->opt->drop_empty)
        return true;
    if (!piece_open(w->job, w->st, STAGE_SKETCH, task, SKETCH_FACTS, &in))
        return false;
    ok = true;
    for (uint64_t i = 0; ok && i < w->in->ndocs; i++) {
        struct sketch_facts f;
        ok = piece_get(&in, &f, sizeof f);
        if (ok && f.state == DOC_EMPTY) {
            w->gone[i] = 1;
            w->counts.dropped_empty++;
        }
    }
    piece_close(&in);
    return ok;
}

static int by_doc(const void *x, const void *y)
{
    const struct verdict_row *const a = x, *const b = y;
    return (a->v.doc > b->v.doc) - (a->v.doc < b->v.doc);
}

static bool put_lists(struct writing *w, uint64_t task)
{
    const struct dedup_options *const o = w->job->opt;
    struct share_rows s = { 0 };
    struct id_text id = { 0 };
    bool ok = true;
    if (!o->removed && !o->clusters)
        return true;
    if (w->nrows) {
        qsort(w->rows, w->nrows, sizeof *w->rows, by_doc);
        ok = share_rows_open(w->job, w->st, task, &s);
        s.close = true;
    }
    for (size_t i = 0; ok && i < w->nrows; i++) {
        const struct keep_verdict *const v = &w->rows[i].v;
        ok = share_id(w->job, w->st, &s, v->doc, &id);
        if (ok && o->removed && v->likeness >= 0) {
            char text[64];
            const int n = snprintf(text, sizeof text, "\t%.4f\n", v->likeness);
            ok = part_put(w->out, WRITE_REMOVED, id.at, id.n) &&
                 part_put(w->out, WRITE_REMOVED, "\t", 1) &&
                 part_put(w->out, WRITE_REMOVED, w->ids + w->rows[i].id,
                          (size_t)v->nid) &&
                 part_put(w->out, WRITE_REMOVED, text, (size_t)n);
        }
        if (ok && o->clusters && v->first) {
            const uint64_t head[2] = { v->first, id.n };
            ok = part_put(w->out, WRITE_CLUSTERS, head, sizeof head) &&
                 part_put(w->out, WRITE_CLUSTERS, id.at, id.n);
        }
    }
    share_rows_close(&s);
    free(id.at);
    return ok;
}

static bool put_text(struct writing *w, struct write_segment *s, const char *at,
                     size_t n)
{
    if (n == 0)
        return true;
    s->nbytes += n;
    s->unended = at[n - 1] != '\n';
    return part_put(w->out, WRITE_TEXT, at, n) ||
           input_fail(w->in, "%s", w->job->error);
}

static bool write_block(void *ctx, unsigned worker, struct block *b)
{
    struct writing *const w = ctx;
    struct write_segment *const s = &w->segments[b->file - w->in->files];
    size_t from = 0, at = 0, n;
    const char *line;
    (void)worker;
    if (w->in->whole) {
        const char *const name = b->file->name;
        if (w->gone[b->first])
            return true;
        s->some = 1;
        if (dedup_is_folder(w->job->opt->output))
            return put_text(w, s, b->at, b->len);
        char *const plain = strdup(name);
        if (!plain)
            return input_fail(w->in, "out of memory");
        dedup_plain_id(plain, strlen(plain));
        const bool ok =
            put_text(w, s, plain, strlen(plain)) && put_text(w, s, "\n", 1);
        free(plain);
        return ok;
    }
    s->some = 1;
    for (uint64_t doc = b->first;; doc++) {
        const size_t here = at;
        const bool more = input_line(w->in, b, &at, &line, &n);
        if (more && !w->gone[doc])
            continue;
        if (!put_text(w, s, b->at + from, here - from))
            return false;
        from = at;
        if (!more)
            return true;
    }
}

static bool write_share(struct writing *w, uint64_t task)
{
    struct input *const in = w->in;
    w->counts.documents = in->ndocs;
    w->gone = calloc(in->ndocs + 1, 1);
    w->segments = calloc(in->nfiles + 1, sizeof *w->segments);
    bool ok = (w->gone && w->segments) || dedup_fail(w->job, "out of memory");
    ok = ok && read_verdicts(w, task) && drop_empty(w, task) &&
         put_lists(w, task);
    if (ok && w->job->opt->output && in->nfiles) {
        in->nthreads = 1; /* copying needs no more */
        if (!ordered_run(in, NULL, write_block, w))
            ok = dedup_fail(w->job, "%s", in->error);
        ok = ok && share_same(w->job, w->st, task);
    }
    return ok &&
           part_put(w->out, WRITE_SEGMENTS, w->segments,
                    in->nfiles * sizeof *w->segments) &&
           part_put(w->out, WRITE_COUNTS, &w->counts, sizeof w->counts);
}

bool stage_write(struct dedup_job *job, const struct staged *st, uint64_t task)
{
    struct input in = { .stop_fd = -1 };
    struct part_out out;
    struct writing w = { .job = job, .st = st, .out = &out, .in = &in };
    bool ok = share_again(job, st, task, &in) &&
              part_begin(job, st, STAGE_WRITE, task, WRITE_COUNTS + 1, &out);
    if (ok) {
        ok = write_share(&w, task);
        ok = part_end(&out, ok) && ok;
    }
    input_close(&in);
    free(w.rows);
    free(w.ids);
    free(w.gone);
    free(w.segments);
    return ok;
}

/* ------------------------------------------------------------------- results
 */

struct joining {
    struct dedup_job *job;
    const struct staged *st;
    struct input in; /* names of the inputs */
    struct dedup_made made;
    struct sketch_bad bad[DEDUP_SHOWN];
};

#define COPY_BYTES ((size_t)65536)

/* n bytes of a piece, n UINT64_MAX: all that are left. */
static bool copy_piece(struct piece_in *in, struct out_file *to, uint64_t n)
{
    char buf[COPY_BYTES];
    uint64_t left = n < in->nbytes ? n : in->nbytes;
    while (left && !to->failed) {
        const size_t some = left < sizeof buf ? (size_t)left : sizeof buf;
        if (!piece_get(in, buf, some))
            return false;
        out_put(to, buf, some);
        left -= some;
    }
    return true;
}

static bool join_segment(struct joining *j, struct dedup_copy *c,
                         const struct plan_segment *s,
                         const struct write_segment *w, struct piece_in *text)
{
    if (c->folder && w->some && !dedup_copy_file(c, &j->in.files[s->file]))
        return dedup_fail(j->job, "%s", j->in.error);
    if (w->nbytes == 0)
        return true;
    if (c->unended && !j->in.whole)
        out_put(&c->out, "\n", 1);
    c->unended = w->unended;
    return copy_piece(text, &c->out, w->nbytes);
}

static bool join_corpus(struct joining *j)
{
    const struct staged *const st = j->st;
    struct dedup_copy c;
    bool ok = dedup_copy_begin(&c, j->job->opt, &j->in) ||
              dedup_fail(j->job, "%s", j->in.error);
    for (uint64_t i = 0; ok && i < st->head.ntasks; i++) {
        struct piece_in segments, text;
        const struct plan_segment *s;
        const size_t n = share_segments(st, i, &s);
        if (n == 0)
            continue;
        ok = piece_open(j->job, st, STAGE_WRITE, i, WRITE_SEGMENTS, &segments);
        if (!ok)
            break;
        ok = piece_open(j->job, st, STAGE_WRITE, i, WRITE_TEXT, &text);
        for (size_t k = 0; ok && k < n; k++) {
            struct write_segment w;
            ok = piece_get(&segments, &w, sizeof w) &&
                 join_segment(j, &c, &s[k], &w, &text);
        }
        if (text.fd >= 0)
            piece_close(&text);
        piece_close(&segments);
    }
    ok = dedup_copy_end(&c, ok) && ok;
    return ok || dedup_fail(j->job, "%s", j->in.error);
}

static bool join_removed(struct joining *j, struct out_file *to)
{
    bool ok = true;
    for (uint64_t i = 0; ok && i < j->st->head.ntasks; i++) {
        struct piece_in in;
        ok = piece_open(j->job, j->st, STAGE_WRITE, i, WRITE_REMOVED, &in);
        if (ok) {
            ok = copy_piece(&in, to, UINT64_MAX);
            piece_close(&in);
        }
    }
    return ok;
}

/* Firsts come in the order of documents, so those so far are sorted, and a
 * cluster's number is its place among them. */
static bool join_clusters(struct joining *j, struct out_file *to)
{
    uint64_t *firsts = NULL;
    size_t n = 0, room = 0;
    char *id = NULL;
    size_t id_room = 0;
    bool ok = true, ended;
    for (uint64_t i = 0; ok && i < j->st->head.ntasks; i++) {
        struct piece_in in;
        uint64_t head[2];
        ok = piece_open(j->job, j->st, STAGE_WRITE, i, WRITE_CLUSTERS, &in);
        if (!ok)
            break;
        while (ok && piece_read(&in, head, sizeof head, &ended)) {
            size_t behind;
            ok = head[1] <= in.nbytes ||
                 dedup_fail(j->job, "%s: damaged", in.path);
            ok = ok && ((ROOM(id, id_room, (size_t)head[1] + 1) &&
                         ROOM(firsts, room, n + 1)) ||
                        dedup_fail(j->job, "out of memory for clusters"));
            if (!ok || !(ok = piece_get(&in, id, (size_t)head[1])))
                break;
            if (n == 0 || head[0] > firsts[n - 1])
                firsts[n++] = head[0];
            LOWER_BOUND(behind, n, firsts[behind] <= head[0]);
            out_put(to, id, (size_t)head[1]);
            out_print(to, "\t%llu\n", (unsigned long long)behind);
        }
        ok = ok && ended;
        piece_close(&in);
    }
    free(firsts);
    free(id);
    return ok;
}

/* The lines of one task's pairs, the one at hand first. */
struct pair_run {
    struct piece_in in;
    char *line;
    size_t n, room;
    bool ended;
};
#define MOST_OPEN 200

static bool next_pair(struct joining *j, struct pair_run *r)
{
    char c = 0;
    bool ended;
    r->n = 0;
    while (c != '\n') {
        if (!piece_read(&r->in, &c, 1, &ended)) {
            r->ended = ended && r->n == 0;
            return r->ended || dedup_fail(j->job, "%s: damaged", r->in.path);
        }
        if (!ROOM(r->line, r->room, r->n + 2))
            return dedup_fail(j->job, "out of memory");
        r->line[r->n++] = c;
    }
    r->line[r->n] = '\0';
    return true;
}

static bool is_before(const struct pair_run *x, const struct pair_run *y)
{
    return strcmp(x->line, y->line) < 0;
}

static void sift_run(struct pair_run **heap, size_t n, size_t i)
{
    for (;;) {
        size_t least = 2 * i + 1;
        if (least >= n)
            return;
        if (least + 1 < n && is_before(heap[least + 1], heap[least]))
            least++;
        if (!is_before(heap[least], heap[i]))
            return;
        struct pair_run *const swap = heap[i];
        heap[i] = heap[least];
        heap[least] = swap;
        i = least;
    }
}

static bool merge_pairs(struct joining *j, struct pair_run *runs,
                        struct pair_run **heap, struct out_file *to)
{
    size_t n = 0;
    for (uint64_t i = 0; i < j->st->head.ntasks; i++) {
        if (!piece_open(j->job, j->st, STAGE_KEEP, i, KEEP_PAIRS, &runs[i].in))
            return false;
        if (j->st->head.ntasks > MOST_OPEN)
            piece_rest(&runs[i].in);
        if (!next_pair(j, &runs[i]))
            return false;
        if (!runs[i].ended)
            heap[n++] = &runs[i];
    }
    for (size_t i = n / 2; i-- > 0;)
        sift_run(heap, n, i);
    while (n) {
        out_put(to, heap[0]->line, heap[0]->n);
        if (!next_pair(j, heap[0]))
            return false;
        if (heap[0]->ended)
            heap[0] = heap[--n];
        sift_run(heap, n, 0);
    }
    return true;
}

static bool join_pairs(struct joining *j, struct out_file *to)
{
    const uint64_t n = j->st->head.ntasks;
    struct pair_run *const runs = calloc(n, sizeof *runs);
    struct pair_run **const heap = calloc(n, sizeof *heap);
    bool ok = (runs && heap) || dedup_fail(j->job, "out of memory");
    for (uint64_t i = 0; runs && i < n; i++)
        runs[i].in.fd = -1;
    ok = ok && merge_pairs(j, runs, heap, to);
    for (uint64_t i = 0; runs && i < n; i++) {
        piece_close(&runs[i].in);
        free(runs[i].line);
    }
    free(runs);
    free(heap);
    return ok;
}

static bool join_list(struct joining *j, const char *path,
                      bool (*join)(struct joining *j, struct out_file *to))
{
    struct out_file to;
    if (!path)
        return true;
    if (!out_open(&to, path, j->job->opt->wait))
        return dedup_fail(j->job, "%s", to.why);
    const bool ok = join(j, &to);
    return (out_close(&to, ok) && ok) || dedup_fail(j->job, "%s", to.why);
}

/* ------------------------------------------------------------------ the end */

/* Of an earlier stage; false with job->error. */
static bool get_head(struct joining *j, enum stage stage, uint64_t task,
                     uint64_t piece, void *to, size_t n)
{
    struct piece_in in;
    if (!piece_open(j->job, j->st, stage, task, piece, &in))
        return false;
    const bool ok = piece_get(&in, to, n);
    piece_close(&in);
    return ok;
}

/* Bad lines, and files that ended too early, as one machine tells of them. */
static bool count_seen(struct joining *j, uint64_t task)
{
    struct dedup_seen *const seen = &j->made.docs.seen;
    struct share_rows s = { 0 };
    struct sketch_bad bad;
    struct piece_in in;
    bool ok = share_rows_open(j->job, j->st, task, &s), ended;
    for (size_t i = 0; ok && i < s.nsegments; i++) {
        struct input_file *const f = &j->in.files[s.segments[i].file];
        f->ndocs += s.counted[i].ndocs;
        if (s.counted[i].error[0])
            snprintf(f->error, sizeof f->error, "%.*s",
                     (int)sizeof f->error - 1, s.counted[i].error);
    }
    ok = ok && piece_open(j->job, j->st, STAGE_SKETCH, task, SKETCH_BAD, &in);
    if (ok) {
        while (seen->nbad < DEDUP_SHOWN &&
               piece_read(&in, &bad, sizeof bad, &ended) &&
               bad.segment < s.nsegments) {
            struct sketch_bad *const kept = &j->bad[seen->nbad];
            *kept = bad;
            kept->why[sizeof kept->why - 1] = '\0';
            seen->bad[seen->nbad++] = (struct dedup_bad){
                .file = j->st->names[s.segments[bad.segment].file],
                .line = s.starts[bad.segment] + bad.line,
                .why = kept->why,
            };
        }
        piece_close(&in);
    }
    share_rows_close(&s);
    return ok;
}

static void add_seconds(struct joining *j, enum stage stage, size_t step)
{
    for (uint64_t i = 0; i < stage_tasks(j->st, stage); i++) {
        uint64_t nbytes;
        double seconds;
        if (part_there(j->st, stage, i, &nbytes, &seconds))
            j->made.seconds[step] += seconds;
    }
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool count_all(struct joining *j)
{
    struct dedup_made *const m = &j->made;
    bool ok = true;
    for (uint64_t i = 0; ok && i < j->st->head.ntasks; i++) {
        struct sketch_head s;
        struct keep_counts k;
        struct write_counts w;
        ok = get_head(j, STAGE_SKETCH, i, SKETCH_HEAD, &s, sizeof s) &&
             get_head(j, STAGE_KEEP, i, KEEP_COUNTS, &k, sizeof k) &&
             get_head(j, STAGE_WRITE, i, WRITE_COUNTS, &w, sizeof w) &&
             count_seen(j, i);
        if (!ok)
            break;
        m->docs.seen.documents += s.ndocs;
        m->docs.seen.bytes += s.bytes;
        m->docs.seen.text_bytes += s.text_bytes;
        m->docs.seen.empty += s.empty;
        m->docs.seen.malformed += s.malformed;
        m->docs.seen.odd += s.odd;
        m->order.equal += k.equal;
        m->verdicts.candidates += k.candidates;
        m->check.checked += k.checked;
        m->verdicts.pairs += k.pairs;
        m->verdicts.removed += k.removed;
        m->verdicts.dropped_empty += w.dropped_empty;
        m->verdicts.rounds = most(m->verdicts.rounds, k.rounds);
        m->buckets.largest = most(m->buckets.largest, k.largest_bucket);
        m->verdicts.largest_cluster =
            most(m->verdicts.largest_cluster, k.largest_cluster);
    }
    m->verdicts.kept = m->docs.seen.documents - m->verdicts.removed -
                       m->verdicts.dropped_empty;
    static const size_t steps[NSTAGES] = {
        [STAGE_BAND] = 1,  [STAGE_LINK] = 1, [STAGE_DEAL] = 1,
        [STAGE_PAIRS] = 2, [STAGE_SETS] = 3, [STAGE_KEEP] = 2,
        [STAGE_WRITE] = 4, [STAGE_JOIN] = 4,
    };
    for (enum stage s = STAGE_SKETCH; s < NSTAGES; s++)
        add_seconds(j, s, steps[s]);
    return ok;
}

static bool put_done(struct joining *j)
{
    struct part_out out;
    const struct dedup_verdicts *const v = &j->made.verdicts;
    const uint64_t done[] = { j->made.docs.seen.documents, v->removed,
                              v->kept };
    return part_begin(j->job, j->st, STAGE_JOIN, 0, 1, &out) &&
           part_end(&out, part_put(&out, 0, done, sizeof done));
}

static bool join_results(struct joining *j)
{
    const struct dedup_options *const o = j->job->opt;
    const struct dedup_seen *const seen = &j->made.docs.seen;
    if (!count_all(j))
        return false;
    if (o->strict && seen->malformed)
        return dedup_fail(
            j->job, "%s:%llu: %s; nothing was written", seen->bad[0].file,
            (unsigned long long)seen->bad[0].line, seen->bad[0].why);
    return join_list(j, o->pairs, join_pairs) &&
           join_list(j, o->clusters, join_clusters) &&
           join_list(j, o->removed, join_removed) &&
           (!o->output || join_corpus(j)) && put_done(j);
}

int stage_join(struct dedup_job *job, const struct staged *st)
{
    struct joining j = { .job = job, .st = st };
    input_documents(&j.in, st->names, (size_t)st->head.nfiles);
    j.in.whole = job->opt->format == DEDUP_FILES;
    const bool ok =
        j.in.files ? join_results(&j) : dedup_fail(job, "out of memory");
    int status = TROUBLE;
    if (ok)
        status = dedup_bad_input(job->opt, &j.in, &j.made.docs.seen);
    if (ok)
        dedup_report(job->opt, &j.made);
    input_close(&j.in);
    return ok ? status : fail("%s", job->error);
}

/*
 * staged_decide.c - whole groups, decided by the code of one machine
 *
 * A task has some groups. It gathers their buckets, numbers the documents in
 * their order from 0 on, and fetches their rows, so that to greedy.c and
 * policy.c this is a small corpus of its own. `pairs` runs that until exact
 * likeness is asked for the first time, and writes which texts it takes. `sets`
 * reads these, each share once, and writes their shingles. `keep` decides from
 * the beginning with these at hand. In later rounds it may need a few more
 * texts; it reads them itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/dedup_run.h"
#include "apps/dedup/sorter.h"
#include "apps/dedup/staged.h"
#include "base/search.h"

/* ------------------------------------------------------------------- groups */

/* The groups of a task. */
struct groups {
    struct dedup_job *job; /* with options of its own: */
    struct dedup_options opt;
    const struct staged *st;
    uint64_t task;
    uint64_t *docs;    /* of each number here: the document */
    uint64_t *starts;  /* of buckets in members, and one more */
    uint32_t *members; /* numbers */
    uint64_t nbuckets, nmembers;
    size_t starts_room;
    struct dedup_made made;
    uint64_t missing; /* sets that had to be read here */
    bool first_only;  /* stop when texts are asked for */
    struct part_out *out;
};

/* Members of all buckets, by document: their places are sorted with them. */
struct member_list {
    struct dedup_key *at, *temp;
    size_t n, room, temp_room;
};

static bool read_members(struct groups *g, struct member_list *all)
{
    bool ok = true, ended;
    for (uint64_t i = 0; ok && i < g->st->head.ntasks; i++) {
        struct piece_in in;
        uint64_t n, doc;
        if (!piece_open(g->job, g->st, STAGE_DEAL, i, g->task, &in))
            return false;
        while (ok && piece_read(&in, &n, sizeof n, &ended)) {
            ok = n <= in.nbytes / 8 ||
                 dedup_fail(g->job, "%s: damaged", in.path);
            ok = ok && (ROOM(all->at, all->room, all->n + (size_t)n) ||
                        dedup_fail(g->job, "out of memory for the groups of a "
                                           "task; plan more tasks"));
            ok = ok &&
                 (ROOM(g->starts, g->starts_room, (size_t)g->nbuckets + 2) ||
                  dedup_fail(g->job, "out of memory"));
            if (!ok)
                break;
            g->starts[g->nbuckets++] = all->n;
            for (uint64_t j = 0; ok && j < n; j++) {
                ok = piece_get(&in, &doc, sizeof doc);
                all->at[all->n] = (struct dedup_key){ doc, all->n };
                all->n++;
            }
        }
        ok = ok && ended;
        piece_close(&in);
    }
    if (ok && g->starts)
        g->starts[g->nbuckets] = all->n;
    g->nmembers = all->n;
    return ok;
}

/* Documents in their order, each once, and members by their numbers. */
static bool number_members(struct groups *g, uint64_t *ndocs)
{
    struct member_list all = { 0 };
    bool ok = read_members(g, &all);
    uint64_t n = 0;
    if (ok && all.n) {
        g->members = malloc(all.n * sizeof *g->members);
        ok = (g->members && ROOM(all.temp, all.temp_room, all.n)) ||
             dedup_fail(g->job, "out of memory for the groups of a task; plan "
                                "more tasks");
        if (ok)
            dedup_sort(all.at, all.temp, all.n, false);
        free(all.temp);
        all.temp = NULL;
        for (size_t i = 0; ok && i < all.n; i++)
            n += i == 0 || all.at[i].key != all.at[i - 1].key;
        g->docs = ok ? malloc(n * sizeof *g->docs) : NULL;
        ok = ok && (g->docs || dedup_fail(g->job, "out of memory"));
        ok = ok && (n < DEDUP_MAX_DOCS - 1 ||
                    dedup_fail(g->job, "more than 2^32 - 2 documents in the "
                                       "groups of a task; plan more tasks"));
        n = 0;
        for (size_t i = 0; ok && i < all.n; i++) {
            if (i == 0 || all.at[i].key != all.at[i - 1].key)
                g->docs[n++] = all.at[i].key;
            g->members[all.at[i].doc] = (uint32_t)(n - 1);
        }
    }
    free(all.at);
    free(all.temp);
    *ndocs = n;
    return ok;
}

/* --------------------------------------------------------------------- rows */

void share_rows_close(struct share_rows *s)
{
    if (s->open) {
        piece_close(&s->facts);
        piece_close(&s->rows);
        piece_close(&s->ends);
        piece_close(&s->ids);
    }
    free(s->counted);
    free(s->starts);
    *s = (struct share_rows){ 0 };
}

/* The segments of a share, with what sketch and link counted. */
static bool read_segments(struct dedup_job *job, const struct staged *st,
                          uint64_t share, struct share_rows *s)
{
    struct piece_in in;
    s->nsegments = share_segments(st, share, &s->segments);
    const uint64_t before = (uint64_t)(s->segments - st->segments);
    s->counted = calloc(s->nsegments + 1, sizeof *s->counted);
    s->starts = calloc(s->nsegments + 1, sizeof *s->starts);
    if (!s->counted || !s->starts)
        return dedup_fail(job, "out of memory");
    if (!piece_open(job, st, STAGE_SKETCH, share, SKETCH_SEGMENTS, &in))
        return false;
    bool ok = piece_get(&in, s->counted, s->nsegments * sizeof *s->counted);
    piece_close(&in);
    ok = ok && piece_open(job, st, STAGE_LINK, 0, LINK_STARTS, &in);
    if (ok) {
        ok = s->nsegments == 0 ||
             piece_at(&in, before * sizeof *s->starts, s->starts,
                      s->nsegments * sizeof *s->starts);
        piece_close(&in);
    }
    return ok;
}

bool share_rows_open(struct dedup_job *job, const struct staged *st,
                     uint64_t share, struct share_rows *s)
{
    share_rows_close(s);
    s->share = share;
    s->facts.fd = s->rows.fd = s->ends.fd = s->ids.fd = -1;
    s->open = true;
    return read_segments(job, st, share, s) &&
           piece_open(job, st, STAGE_SKETCH, share, SKETCH_FACTS, &s->facts) &&
           piece_open(job, st, STAGE_SKETCH, share, SKETCH_ROWS, &s->rows) &&
           piece_open(job, st, STAGE_SKETCH, share, SKETCH_ID_ENDS, &s->ends) &&
           piece_open(job, st, STAGE_SKETCH, share, SKETCH_IDS, &s->ids);
}

static bool fetch(const struct share_rows *s, struct piece_in *in, uint64_t at,
                  void *buf, size_t n)
{
    return s->close ? piece_near(in, at, buf, n) : piece_at(in, at, buf, n);
}

#define MAX_ID ((size_t)1 << 27)
bool share_id(struct dedup_job *job, const struct staged *st,
              struct share_rows *s, uint64_t local, struct id_text *id)
{
    uint64_t ends[2] = { 0, 0 };
    const uint64_t at = local ? local - 1 : 0;
    id->n = 0;
    if (s->ends.nbytes &&
        !fetch(s, &s->ends, at * 8, ends + (local == 0), local ? 16 : 8))
        return false;
    if (ends[1] > ends[0]) {
        const uint64_t n = ends[1] - ends[0];
        if (n > MAX_ID || !ROOM(id->at, id->room, (size_t)n))
            return dedup_fail(job, "out of memory");
        id->n = (size_t)n;
        return fetch(s, &s->ids, ends[0], id->at, (size_t)n);
    }
    size_t i = s->nsegments;
    while (i > 0 && s->counted[i - 1].first > local)
        i--;
    while (i > 0 && s->counted[i - 1].ndocs == 0)
        i--;
    if (i == 0)
        return dedup_fail(job, "a part of sketch is damaged");
    const char *const name = st->names[s->segments[i - 1].file];
    const size_t most = strlen(name) + 32;
    if (!ROOM(id->at, id->room, most))
        return dedup_fail(job, "out of memory");
    const int n =
        job->opt->format == DEDUP_FILES
            ? snprintf(id->at, most, "%s", name)
            : snprintf(id->at, most, "%s:%llu", name,
                       (unsigned long long)(s->starts[i - 1] + local -
                                            s->counted[i - 1].first + 1));
    id->n = (size_t)n;
    dedup_plain_id(id->at, id->n);
    return true;
}

/* The documents of a share that begin at docs[from]: how many. */
static uint64_t same_share(const uint64_t *docs, uint64_t from, uint64_t n)
{
    const uint64_t share = docs[from] >> SHARE_BITS;
    uint64_t i = from;
    while (i < n && docs[i] >> SHARE_BITS == share)
        i++;
    return i - from;
}

static bool fetch_row(struct groups *g, struct share_rows *s, uint64_t local,
                      struct dedup_part *p, struct id_text *id)
{
    const struct dedup_options *const o = &g->opt;
    const size_t k = o->sketch.k, i = p->n;
    struct sketch_facts f;
    if (!fetch(s, &s->facts, local * sizeof f, &f, sizeof f) ||
        (!o->whole_only &&
         !fetch(s, &s->rows, local * 4 * k, p->rows + i * k, 4 * k)))
        return false;
    p->hashes[i] = f.hash;
    p->values[i] = f.value;
    p->nshingles[i] = f.nshingles;
    p->states[i] = f.state;
    if (o->want_ids && (!share_id(g->job, g->st, s, local, id) ||
                        !dedup_part_id(p, id->at, id->n)))
        return dedup_fail(g->job, "out of memory");
    p->id_end[i] = p->ids_len;
    p->n++;
    return true;
}

#define ROWS_AT_ONCE 256
#define CLOSE 32 /* one of so many documents: all is read */

static bool fetch_rows(struct groups *g, uint64_t ndocs)
{
    struct dedup_docs *const docs = &g->made.docs;
    struct dedup_part p = { 0 };
    struct share_rows s = { 0 };
    struct id_text id = { 0 };
    bool ok = dedup_part_room(&p, docs->k, ROWS_AT_ONCE) ||
              dedup_fail(g->job, "out of memory");
    for (uint64_t i = 0, behind = 0; ok && i < ndocs; i++) {
        if (i == behind) {
            const uint64_t n = same_share(g->docs, i, ndocs);
            behind = i + n;
            ok = share_rows_open(g->job, g->st, g->docs[i] >> SHARE_BITS, &s);
            s.close = n > s.facts.nbytes / sizeof(struct sketch_facts) / CLOSE;
        }
        ok = ok && fetch_row(g, &s, g->docs[i] & LOCAL_MASK, &p, &id);
        if (ok && (p.n == ROWS_AT_ONCE || i + 1 == ndocs)) {
            ok = dedup_append(g->job, &p, docs);
            p.n = p.ids_len = 0;
        }
    }
    share_rows_close(&s);
    dedup_part_free(&p);
    free(id.at);
    return ok;
}

/* ------------------------------------------------------------------ deciding
 */

static bool fetch_missing(struct dedup_job *job, const struct dedup_docs *docs,
                          struct dedup_sets *sets);

/* The job of a task: with or without ids, and with files where memory would not
 * do. */
static void groups_free(struct groups *g)
{
    store_free(&g->made.sets.store);
    free(g->docs);
    free(g->starts);
    free(g->members);
}

#define DOC_BYTES 64 /* besides components and ids, about */

static bool groups_new(struct dedup_job *job, const struct staged *st,
                       uint64_t task, bool ids, struct groups *g)
{
    uint64_t ndocs;
    *g = (struct groups){ .job = job,
                          .opt = *job->opt,
                          .st = st,
                          .task = task,
                          .made = { .docs = { .k = job->opt->sketch.k } } };
    struct dedup_made *const m = &g->made;
    g->opt.want_ids = ids;
    g->opt.folder = st->folder;
    job->opt = &g->opt;
    m->check.docs = &m->docs;
    m->check.sets = &m->sets;
    m->sets.fetch = fetch_missing;
    m->sets.fetch_ctx = g;
    if (!number_members(g, &ndocs))
        return false;
    const uint64_t each = DOC_BYTES + 4 * m->docs.k + (ids ? 48 : 0);
    job->store = (struct dedup_store){
        .folder = ndocs > g->opt.memory / 2 / each ? st->folder : NULL,
        .limit = g->opt.memory / 4,
    };
    m->sets.store = job->store;
    const struct dedup_given given = { g->starts, g->nbuckets, g->members };
    return dedup_room(job, ndocs, &m->docs) && fetch_rows(g, ndocs) &&
           dedup_order(job, &m->docs, &m->order) &&
           dedup_band_given(job, &m->docs, &m->order, &given, &m->buckets);
}

static bool decide(struct groups *g)
{
    struct dedup_made *const m = &g->made;
    const struct dedup_case all = { &m->docs, &m->order, &m->buckets,
                                    &m->check };
    return dedup_decide(g->job, &all, &m->verdicts);
}

/* ------------------------------------------------------- pairs: who is needed
 */

/* Instead of making sets: write which are wanted, and stop. */
static bool write_wanted(struct groups *g, const struct dedup_docs *docs,
                         const struct dedup_sets *sets)
{
    bool ok = true;
    for (uint64_t i = 0; ok && i < docs->n; i++)
        if (sets->at[i] == SET_WANTED) {
            const uint64_t local = g->docs[i] & LOCAL_MASK;
            ok = part_put(g->out, g->docs[i] >> SHARE_BITS, &local,
                          sizeof local);
        }
    g->first_only = false; /* done */
    return false;
}

bool stage_pairs(struct dedup_job *job, const struct staged *st, uint64_t task)
{
    struct groups g;
    struct part_out out;
    bool ok = groups_new(job, st, task, false, &g);
    if (ok && part_begin(job, st, STAGE_PAIRS, task, st->head.ntasks, &out)) {
        g.out = &out;
        g.first_only = true;
        ok = decide(&g) || (!g.first_only && !job->error[0]);
        ok = part_end(&out, ok) && ok;
    } else {
        ok = false;
    }
    groups_free(&g);
    return ok;
}

/* ---------------------------------------------------------------------- sets
 */

bool share_again(struct dedup_job *job, const struct staged *st, uint64_t share,
                 struct input *in)
{
    struct share_rows s = { 0 };
    struct piece_in marks;
    bool ok = share_open(job, st, share, in) &&
              read_segments(job, st, share, &s) &&
              piece_open(job, st, STAGE_SKETCH, share, SKETCH_MARKS, &marks);
    if (ok) {
        in->nmarks = (size_t)(marks.nbytes / sizeof *in->marks);
        in->marks = malloc((size_t)marks.nbytes + 1);
        ok = in->marks
                 ? piece_get(&marks, in->marks, in->nmarks * sizeof *in->marks)
                 : dedup_fail(job, "out of memory");
        in->marks_room = in->nmarks;
        piece_close(&marks);
    }
    for (size_t i = 0; ok && i < s.nsegments; i++) {
        struct input_file *const f = &in->files[i];
        f->first = s.counted[i].first;
        f->ndocs = s.counted[i].ndocs;
        f->nbytes = s.counted[i].nbytes;
        f->known = true;
        in->ndocs += f->ndocs;
        in->nbytes += f->nbytes;
    }
    for (size_t i = 0; ok && i < in->nmarks; i++)
        ok = in->marks[i].file < in->nfiles ||
             dedup_fail(job, "a part of sketch is damaged");
    in->marked = true;
    share_rows_close(&s);
    return ok;
}

/* Sets on their way to the tasks that want them. */
struct sending {
    struct dedup_job *job;
    const struct staged *st;
    struct part_out *out;
    uint64_t share;
    uint32_t *task; /* of each line */
};

static bool send_set(void *ctx, uint64_t line, const uint64_t *set)
{
    struct sending *const s = ctx;
    const uint64_t doc = s->share << SHARE_BITS | line;
    return part_put(s->out, s->task[line], &doc, sizeof doc) &&
           part_put(s->out, s->task[line], set,
                    (size_t)(set[0] + 1) * sizeof *set);
}

/* Who wants which lines of a share. */
static bool read_wanted(struct sending *s, uint64_t *at, uint64_t nlines,
                        bool *any)
{
    bool ok = true, ended;
    for (uint64_t i = 0; ok && i < s->st->head.ntasks; i++) {
        struct piece_in in;
        uint64_t line;
        if (!piece_open(s->job, s->st, STAGE_PAIRS, i, s->share, &in))
            return false;
        while (ok && piece_read(&in, &line, sizeof line, &ended)) {
            ok = line < nlines || dedup_fail(s->job, "%s: damaged", in.path);
            if (ok) {
                at[line] = SET_WANTED;
                s->task[line] = (uint32_t)i;
                *any = true;
            }
        }
        ok = ok && ended;
        piece_close(&in);
    }
    return ok;
}

bool stage_sets(struct dedup_job *job, const struct staged *st, uint64_t task)
{
    struct input in = { .stop_fd = -1 };
    struct part_out out;
    struct sending s = { .job = job, .st = st, .out = &out, .share = task };
    uint64_t *at = NULL;
    bool any = false, ok = share_again(job, st, task, &in);
    if (ok) {
        at = calloc(in.ndocs + 1, sizeof *at);
        s.task = calloc(in.ndocs + 1, sizeof *s.task);
        ok = (at && s.task) || dedup_fail(job, "out of memory");
    }
    ok = ok && read_wanted(&s, at, in.ndocs, &any) &&
         part_begin(job, st, STAGE_SETS, task, st->head.ntasks, &out);
    if (ok) {
        ok = (!any || dedup_set_each(job, &in, at, send_set, &s)) &&
             share_same(job, st, task);
        ok = part_end(&out, ok) && ok;
    }
    input_close(&in);
    free(at);
    free(s.task);
    return ok;
}

/* ---------------------------------------------------------------------- keep
 */

static bool find_number(const struct groups *g, uint64_t doc, uint64_t *number)
{
    const size_t n = (size_t)g->made.docs.n;
    size_t at;
    LOWER_BOUND(at, n, g->docs[at] < doc);
    *number = at;
    return at < n && g->docs[at] == doc;
}

static bool set_begins(struct groups *g, uint64_t doc, uint64_t nwords)
{
    struct dedup_sets *const sets = &g->made.sets;
    uint64_t number;
    if (!find_number(g, doc, &number))
        return dedup_fail(g->job, "a part of sets is damaged");
    if (!dedup_set_room(sets, g->st->folder, nwords + 1))
        return dedup_no_room(g->job, "sets of shingles");
    sets->at[number] = sets->len + 1;
    sets->words[sets->len++] = nwords;
    return true;
}

static bool load_sets(struct groups *g)
{
    struct dedup_sets *const sets = &g->made.sets;
    bool ok = dedup_set_places(g->job, &g->made.docs, sets), ended;
    for (uint64_t i = 0; ok && i < g->st->head.ntasks; i++) {
        struct piece_in in;
        uint64_t head[2];
        if (!piece_open(g->job, g->st, STAGE_SETS, i, g->task, &in))
            return false;
        while (ok && piece_read(&in, head, sizeof head, &ended)) {
            ok = (head[1] <= in.nbytes / 8 ||
                  dedup_fail(g->job, "%s: damaged", in.path)) &&
                 set_begins(g, head[0], head[1]) &&
                 piece_get(&in, sets->words + sets->len,
                           (size_t)head[1] * sizeof *sets->words);
            sets->len += ok ? head[1] : 0;
            store_trim(&sets->store);
        }
        ok = ok && ended;
        piece_close(&in);
    }
    return ok;
}

struct fetching {
    struct groups *g;
    uint64_t share;
};

static bool take_missing(void *ctx, uint64_t line, const uint64_t *set)
{
    const struct fetching *const f = ctx;
    struct dedup_sets *const sets = &f->g->made.sets;
    if (!set_begins(f->g, f->share << SHARE_BITS | line, set[0]))
        return false;
    memcpy(sets->words + sets->len, set + 1,
           (size_t)set[0] * sizeof *sets->words);
    sets->len += set[0];
    f->g->missing++;
    return true;
}

/* Sets that were not asked for in the first round: read their lines now. */
static bool fetch_missing(struct dedup_job *job, const struct dedup_docs *docs,
                          struct dedup_sets *sets)
{
    struct groups *const g = sets->fetch_ctx;
    bool ok = true;
    if (g->first_only)
        return write_wanted(g, docs, sets);
    for (uint64_t i = 0, n; ok && i < docs->n; i += n) {
        bool any = false;
        n = same_share(g->docs, i, docs->n);
        for (uint64_t j = i; j < i + n; j++)
            any = any || sets->at[j] == SET_WANTED;
        if (!any)
            continue;
        struct fetching f = { g, g->docs[i] >> SHARE_BITS };
        struct input in = { .stop_fd = -1 };
        uint64_t *at = NULL;
        ok = share_again(job, g->st, f.share, &in);
        ok = ok && ((at = calloc(in.ndocs + 1, sizeof *at)) != NULL ||
                    dedup_fail(job, "out of memory"));
        for (uint64_t j = i; ok && j < i + n; j++)
            if (sets->at[j] == SET_WANTED)
                at[g->docs[j] & LOCAL_MASK] = SET_WANTED;
        ok = ok && dedup_set_each(job, &in, at, take_missing, &f);
        input_close(&in);
        free(at);
    }
    return ok;
}

static bool put_line(void *ctx, const char *line, size_t n)
{
    return part_put(ctx, KEEP_PAIRS, line, n);
}

/* Of each cluster the first member, at the document that stands for it; of one
 * that stands alone, DEDUP_NONE. */
static bool cluster_firsts(struct groups *g, uint32_t **out)
{
    const uint32_t *const cluster = g->made.verdicts.cluster;
    const uint64_t n = g->made.docs.n;
    uint32_t *first = NULL;
    if (!STORE(&g->job->store, first, n))
        return dedup_no_room(g->job, "clusters");
    for (uint32_t i = 0; dedup_more(g->job, i, n); i++)
        first[i] = DEDUP_NONE;
    for (uint32_t i = 0; dedup_more(g->job, i, n); i++)
        if (cluster[i] != i)
            first[cluster[i]] = 0; /* has another member */
    for (uint32_t i = 0; dedup_more(g->job, i, n); i++)
        if (first[cluster[i]] == 0)
            first[cluster[i]] = i + 1;
    *out = first;
    return true;
}

static bool put_verdicts(struct groups *g, struct part_out *out)
{
    const struct dedup_docs *const docs = &g->made.docs;
    const struct dedup_verdicts *const v = &g->made.verdicts;
    const bool lists = g->opt.removed != NULL;
    uint32_t *first = NULL;
    bool ok = cluster_firsts(g, &first);
    for (uint32_t i = 0; ok && dedup_more(g->job, i, docs->n); i++) {
        const bool removed = v->witness[i] != DEDUP_NONE;
        const uint32_t f = first[v->cluster[i]];
        const char *id = "";
        char buf[8];
        if (!removed && f == DEDUP_NONE)
            continue;
        struct keep_verdict row = {
            .doc = g->docs[i] & LOCAL_MASK,
            .first = f == DEDUP_NONE ? 0 : 1 + g->docs[f - 1],
            .likeness = removed ? v->likeness[i] : -1,
        };
        if (removed && lists)
            row.nid = dedup_id(docs, v->witness[i], buf, sizeof buf, &id);
        const uint64_t piece = KEEP_VERDICTS + (g->docs[i] >> SHARE_BITS);
        ok = part_put(out, piece, &row, sizeof row) &&
             part_put(out, piece, id, (size_t)row.nid);
    }
    return ok;
}

bool stage_keep(struct dedup_job *job, const struct staged *st, uint64_t task)
{
    struct groups g;
    struct part_out out;
    const bool lists = job->opt->pairs || job->opt->removed;
    bool ok =
        groups_new(job, st, task, lists, &g) && load_sets(&g) && decide(&g);
    if (ok && part_begin(job, st, STAGE_KEEP, task,
                         KEEP_VERDICTS + st->head.ntasks, &out)) {
        const struct dedup_made *const m = &g.made;
        const struct keep_counts counts = {
            m->order.equal,     m->verdicts.candidates,      m->check.checked,
            m->verdicts.pairs,  m->verdicts.removed,         m->verdicts.rounds,
            m->buckets.largest, m->verdicts.largest_cluster, g.missing,
        };
        ok = part_put(&out, KEEP_COUNTS, &counts, sizeof counts) &&
             (!job->opt->pairs ||
              dedup_list_pairs(job, &m->docs, &m->order, &m->check.pairs,
                               put_line, &out)) &&
             put_verdicts(&g, &out);
        ok = part_end(&out, ok) && ok;
    } else {
        ok = false;
    }
    groups_free(&g);
    return ok;
}

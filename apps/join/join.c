/*
 * join.c - two files joined by a key, with a filter that drops rows early
 *
 * The result is in the order of LEFT and, for each row of LEFT, in the order of
 * RIGHT, whatever the sizes, the memory and the number of threads. So RIGHT is
 * held and LEFT is streamed past it. What the filter saves depends on which of
 * the two is smaller:
 *
 *     RIGHT smaller   RIGHT -> held, and a filter of its keys
 *                     LEFT  -> filter -> held -> result
 *
 *     LEFT smaller    LEFT  -> a filter of its keys
 *                     RIGHT -> filter -> held: the few rows that pass
 *                     LEFT again      -> held -> result
 *
 * A filter says "maybe" too often and "no" never wrongly, and held rows are
 * found by their keys, byte for byte: the result is that of the exact join.
 * Where rows of RIGHT do not fit into memory, partitions.c takes over.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/join/join_state.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

#define OUT_BYTES ((size_t)256 * 1024)

/* Rows of the default filter that come through without a partner. */
#define JOIN_FPR 0.01

/* ------------------------------------------------------------------ output */

bool join_flush(struct join_out *out)
{
    if (out->terminal)
        text_clean(out->text.at, out->text.len, true);
    if (out->text.len && !out->failed) {
        errno = 0;
        out->failed = !out->put(out->ctx, out->text.at, out->text.len);
        out->error = out->failed ? errno : 0;
    }
    out->text.len = 0;
    return !out->failed;
}

bool join_put(struct join_out *out, const struct block *row)
{
    if (!block_put(&out->text, row->at, row->len)) {
        out->failed = true;
        return false;
    }
    return out->text.len < OUT_BYTES || join_flush(out);
}

bool join_row(struct join_state *j, bly_bytes left,
              const struct held_row *right)
{
    j->row.len = 0;
    if (j->type == JOIN_SEMI || j->type == JOIN_ANTI)
        return block_put(&j->row, left.ptr, left.len) &&
               block_put(&j->row, &j->shape.separator, 1);
    const bly_bytes rest = { right ? right->bytes + right->nkey : NULL,
                             right ? right->nrest : 0 };
    return joined_row(&j->shape, left, right ? &rest : NULL, &j->row);
}

static bool put_join_header(struct join_state *j)
{
    const struct input *const left = j->left_input;
    const bool first = !j->headed && left->header.len;
    j->headed = true;
    if (!first)
        return true;
    j->row.len = 0;
    const bool both = j->type == JOIN_INNER || j->type == JOIN_LEFT;
    if (joined_header(&j->shape, &left->header, both, &j->row))
        return join_put(&j->out, &j->row);
    j->out.failed = true;
    return false;
}

/* ------------------------------------------------------------------- inputs */

bool join_input(struct join_state *j, const char *name, bool right,
                struct input *in)
{
    struct keys keys = j->args->keys;
    const char *const other = right ? j->args->right_key : NULL;
    struct selection *const s = &keys.select;
    if (other && s->csv)
        s->csv = other;
    else if (other && s->field)
        s->field = other;
    else if (other && s->jsonl)
        s->jsonl = other;
    else if (other && s->regex)
        s->regex = other;
    if (!keys_files(&keys, &name, 1, in))
        return false;
    in->keep_header = true;
    if (right) /* of CSV it is known when the header was read */
        j->shape.column = s->field ? strtol(s->field, NULL, 10) : 1;
    return true;
}

static int run_rows(struct join_state *j, struct input *in,
                    bly_status (*batch)(struct job *, struct batch *),
                    bool in_order)
{
    struct job job = { .batch = batch,
                       .in_order = in_order,
                       .goes_on = true,
                       .hasher = bly_builder_hasher(j->builder),
                       .terminator = j->shape.separator,
                       .nthreads = thread_count(j->args->threads),
                       .ctx = j };
    if (pipeline_run(&job, in)) {
        j->stopped = true;
        return fail("%s", job.error);
    }
    return job.trouble ? TROUBLE : YES;
}

/* ------------------------------------------------------------------ filters */

static bool join_spec(const struct join_state *j, bly_spec *spec)
{
    bly_kind_info kind;
    if (!sizing_spec(&j->args->sizing, spec) ||
        !bly_kind_named(spec->kind, &kind))
        return false;
    if (kind_unreliable(&kind))
        return refuse("--kind %s: rows would be lost: %s; use a kind that says "
                      "no only to keys that were never added",
                      kind.name, kind_unreliable(&kind));
    if (spec->fpr <= 0)
        spec->fpr = JOIN_FPR;
    spec->keying = keys_keying(&j->args->keys);
    spec->secret = j->secret;
    return true;
}

static bool tell_filter(struct join_state *j, const bly_filter *f,
                        const char *of)
{
    bly_stats s;
    bly_stat(f, &s);
    j->report.filter_of = of;
    j->report.filter_bytes = filter_size(&s);
    j->report.filter_keys = s.items_added;
    return true;
}

static bly_status left_keys(struct job *job, struct batch *b)
{
    struct join_state *const j = job->ctx;
    uint64_t sum = 0;
    for (size_t i = 0; i < b->n; i++)
        sum += b->hashes[i];
    atomic_fetch_add(&j->first_sum, sum);
    atomic_fetch_add(&j->first_rows, b->n);
    return bly_builder_add(j->builder, b->hashes, NULL, b->n);
}

/* A filter of the keys of LEFT. Lines without a key are told when LEFT is read
 * again. */
static int filter_left(struct join_state *j, struct input *in, uint64_t nbytes)
{
    bly_spec spec = { 0 };
    if (!join_spec(j, &spec))
        return TROUBLE;
    bly_builder *const before = j->builder;
    const bool was_quiet = quiet, skip_bad = in->skip_bad;
    spec.max_bytes = j->held.memory + nbytes;
    spec.spill = j->folder;
    if (bly_builder_new(&spec, &j->builder)) {
        j->builder = before;
        return fail_library();
    }
    quiet = in->skip_bad = true;
    int status = run_rows(j, in, left_keys, false);
    quiet = was_quiet;
    in->skip_bad = skip_bad;
    if (status == YES && !j->first_rows) { /* a filter needs a size */
        bly_builder_free(j->builder);
        spec.items = 1;
        if (bly_builder_new(&spec, &j->builder)) {
            j->builder = before;
            return fail_library();
        }
    }
    if (status == YES && bly_builder_finish(j->builder, 0, &j->of_left))
        status = fail_library();
    bly_builder_free(j->builder);
    j->builder = before;
    if (status == YES)
        tell_filter(j, j->of_left, "left");
    return status;
}

/* Hashes for the builder, some at a time. */
struct gathered {
    bly_builder *to;
    bly_status status;
    size_t n;
    uint64_t hashes[1024];
};

static bool gather_hash(struct gathered *g, uint64_t hash)
{
    g->hashes[g->n++] = hash;
    if (g->n == sizeof g->hashes / sizeof g->hashes[0]) {
        g->status = bly_builder_add(g->to, g->hashes, NULL, g->n);
        g->n = 0;
    }
    return g->status == BLY_OK;
}

static bool gather_row(void *ctx, const struct held_row *row)
{
    return gather_hash(ctx, row->hash);
}

/* The hashes of rows that lie in the temporary file. */
static bool gather_spilled(struct join_state *j, struct gathered *g)
{
    bool ok = true;
    for (unsigned i = 0; i < JOIN_PARTS && ok; i++) {
        struct stream_reader r;
        struct stream_record record;
        ok = reader_open(&r, &j->scratch, &j->right[i], j->scratch.buffer);
        while (ok && reader_get(&r, &record, sizeof record)) {
            j->row.len = 0;
            const size_t n = (size_t)record.nkey + record.nrest;
            ok = gather_hash(g, record.hash) && block_fit(&j->row, n) &&
                 (!n || reader_get(&r, j->row.at, n));
        }
        reader_close(&r);
        ok = ok && !j->scratch.error;
    }
    return ok;
}

/* A filter of the rows of RIGHT that are held, for those of LEFT. */
static int filter_right(struct join_state *j)
{
    bly_spec spec = { 0 };
    struct gathered *const g = calloc(1, sizeof *g);
    uint64_t n = j->held.n;
    for (unsigned i = 0; i < JOIN_PARTS; i++)
        n += j->right[i].nrecords;
    j->no_right = n == 0;
    if (n == 0) {
        free(g);
        return YES;
    }
    if (!g || !join_spec(j, &spec)) {
        free(g);
        return g ? TROUBLE : fail("out of memory");
    }
    /* Room for any filter of so many keys, and for some of their hashes. */
    spec.max_bytes = j->held.memory + 16 * n;
    spec.spill = j->folder;
    int status = YES;
    if (bly_builder_new(&spec, &g->to))
        status = fail_library();
    else if (!(j->spilled ? gather_spilled(j, g)
                          : held_each(&j->held, gather_row, g)))
        status = j->scratch.error ? fail("%s", scratch_why(j))
                 : g->status      ? fail_library()
                                  : fail("out of memory");
    else if ((g->n && bly_builder_add(g->to, g->hashes, NULL, g->n)) ||
             bly_builder_finish(g->to, 0, &j->of_right))
        status = fail_library();
    else if (!j->of_left)
        tell_filter(j, j->of_right, "right");
    bly_builder_free(g->to);
    free(g);
    return status;
}

/* -------------------------------------------------------------------- RIGHT */

bly_status join_hold(struct join_state *j, uint64_t hash, bly_bytes key,
                     const bly_bytes *rest, const char **why)
{
    const bly_bytes nothing = { NULL, 0 };
    const bly_bytes behind = rest ? *rest : nothing;
    j->report.held += key.len + behind.len;
    if (!j->spilled && !held_fits(&j->held, key.len, behind.len)) {
        j->spilled = true;
        if (!held_each(&j->held, part_right, j)) {
            *why = scratch_why(j);
            return BLY_EIO;
        }
        held_clear(&j->held);
    }
    if (!j->spilled) {
        if (held_add(&j->held, hash, key, behind))
            return BLY_OK;
        *why = "out of memory";
        return BLY_ENOMEM;
    }
    const struct stream_record r = { .hash = hash,
                                     .nkey = (uint32_t)key.len,
                                     .nrest = (uint32_t)behind.len };
    if (stream_add(&j->scratch, &j->right[hash >> (64 - JOIN_PART_BITS)], &r,
                   key.ptr, behind.ptr))
        return BLY_OK;
    *why = scratch_why(j);
    return BLY_EIO;
}

/* The columns of RIGHT: from its header, once that was read, or a row. */
void join_columns(struct join_state *j, const struct input *in, bly_bytes row)
{
    struct joined *const shape = &j->shape;
    if (shape->nright)
        return;
    if (shape->form == JOIN_CSV)
        shape->column = (long)in->files[0].column + 1;
    if (in->header.len && !shape->right_names.len) {
        if (!block_put(&shape->right_names, in->header.at, in->header.len))
            return; /* and the next one fails too */
        row = (bly_bytes){ shape->right_names.at, shape->right_names.len - 1 };
    }
    if (row.ptr)
        shape->nright = joined_columns(shape, joined_bare(shape, row));
}

static bly_status right_batch(struct job *job, struct batch *b)
{
    struct join_state *const j = job->ctx;
    const bool rows = j->type == JOIN_INNER || j->type == JOIN_LEFT;
    bly_status st = BLY_OK;
    j->report.right_rows += b->n;
    join_columns(j, j->right_input, b->lines[0]);
    if (j->of_left)
        bly_has_hashes(j->of_left, b->hashes, b->n, b->picked);
    for (size_t i = 0; i < b->n && !st; i++) {
        if (j->of_left && !(b->picked[i / 64] >> i % 64 & 1)) {
            j->report.dropped++;
            continue;
        }
        j->report.passed += j->of_left != NULL;
        j->row.len = 0;
        if (rows && !joined_rest(&j->shape, b->lines[i], &j->row)) {
            b->why = "out of memory";
            return BLY_ENOMEM;
        }
        const bly_bytes rest = { j->row.at, j->row.len };
        st = join_hold(j, b->hashes[i], b->keys[i], rows ? &rest : NULL,
                       &b->why);
    }
    memset(b->picked, 0, BLY_BITMAP_WORDS(b->n) * sizeof *b->picked);
    return st;
}

/* --------------------------------------------------------------------- LEFT */

/* All rows that come of one of LEFT. */
static bool put_partners(struct join_state *j, bly_bytes left,
                         struct held_row *right)
{
    const bool all = j->type == JOIN_INNER || j->type == JOIN_LEFT;
    if (right)
        right->matched = true;
    if (!join_takes(j, right != NULL))
        return true;
    do {
        j->report.rows++;
        if (!join_row(j, left, right)) {
            j->out.failed = true;
            return false;
        }
        if (!join_put(&j->out, &j->row))
            return false;
    } while (all && right && (right = right->next));
    return true;
}

static bly_status left_batch(struct job *job, struct batch *b)
{
    struct join_state *const j = job->ctx;
    bool ok = put_join_header(j);
    if (j->of_right)
        bly_has_hashes(j->of_right, b->hashes, b->n, b->picked);
    else if (!j->no_right)
        memset(b->picked, 0xff, BLY_BITMAP_WORDS(b->n) * sizeof *b->picked);
    for (size_t i = 0; i < b->n && ok; i++) {
        const bool maybe = b->picked[i / 64] >> i % 64 & 1;
        const uint64_t hash = b->hashes[i];
        j->second_sum += hash;
        if (!j->of_left) {
            j->report.dropped += !maybe;
            j->report.passed += maybe;
        }
        if (j->spilled) {
            ok = part_left(j, j->nleft + i, hash, b->keys[i], b->lines[i],
                           maybe);
            continue;
        }
        struct held_row *const right =
            maybe ? held_find(&j->held, hash, b->keys[i]) : NULL;
        j->report.falsely += !j->of_left && maybe && !right;
        ok = put_partners(j, b->lines[i], right);
    }
    memset(b->picked, 0, BLY_BITMAP_WORDS(b->n) * sizeof *b->picked);
    j->nleft += b->n;
    if (ok)
        return BLY_OK;
    b->why = scratch_why(j);
    return BLY_EIO;
}

/* ---------------------------------------------------------------- the whole */

const char *scratch_why(const struct join_state *j)
{
    static char why[256];
    if (j->scratch.error)
        snprintf(why, sizeof why,
                 "%s: rows that do not fit into --memory cannot be kept there: "
                 "%s; name a folder with room with --spill or TMPDIR",
                 j->folder, strerror(j->scratch.error));
    else
        snprintf(why, sizeof why, "%s: %s",
                 j->args->output ? j->args->output : "standard output",
                 j->out.error ? strerror(j->out.error) : "out of memory");
    return why;
}

static uint64_t regular_size(const char *name)
{
    struct stat st;
    return !is_stdin(name) && stat(name, &st) == 0 && S_ISREG(st.st_mode)
               ? (uint64_t)st.st_size
               : UINT64_MAX;
}

/* The rows of RIGHT, from its file. */
static int read_right(struct join_state *j, const char *name)
{
    struct input in;
    if (!join_input(j, name, true, &in)) {
        j->stopped = true;
        return TROUBLE;
    }
    j->right_input = &in;
    const int status = run_rows(j, &in, right_batch, true);
    join_columns(j, &in, (bly_bytes){ NULL, 0 }); /* where no row was */
    j->right_input = NULL;
    input_close(&in);
    return status;
}

/* Everything that is needed of RIGHT is there: LEFT past it. */
static int read_left(struct join_state *j, struct input *in)
{
    for (unsigned i = 0; i < JOIN_PARTS; i++)
        if (!stream_flush(&j->scratch, &j->right[i]))
            return fail("%s", scratch_why(j));
    int status = !j->of_left || j->spilled ? filter_right(j) : YES;
    if (status == YES && !j->spilled && !held_index(&j->held))
        status = fail("out of memory");
    if (status != YES)
        return status;
    j->left_input = in;
    input_rewind(in);
    status = run_rows(j, in, left_batch, true);
    j->report.left_rows = j->nleft;
    if (j->stopped)
        return TROUBLE;
    if (!put_join_header(j) || (j->spilled && !parts_join(j)) ||
        !join_flush(&j->out))
        return fail("%s", scratch_why(j));
    if (!j->spilled && j->of_left)
        j->report.falsely = held_unmatched(&j->held);
    if (j->of_left &&
        (j->nleft != j->first_rows || j->second_sum != j->first_sum))
        return fail("%s: changed while it was read; it is read twice, and the "
                    "result is not that of either version",
                    in->files[0].name);
    j->complete = true;
    if (j->shape.long_rows)
        warn("%llu rows have more columns than their header, and those behind "
             "them are shifted",
             (unsigned long long)j->shape.long_rows);
    return status;
}

/* LEFT and RIGHT, in the order that the sizes ask for. Lines without a key make
 * the status TROUBLE, and the others are joined. */
static int join_both(struct join_state *j, const struct list *names)
{
    const char *const left = names->at[0];
    const char *const right = j->args->remote ? NULL : names->at[1];
    const uint64_t nleft = regular_size(left);
    const bool by_left = !right || nleft < regular_size(right);
    struct input in;
    if (!join_input(j, left, false, &in))
        return TROUBLE;
    int status = YES, behind = YES;
    if (by_left && nleft == UINT64_MAX && !input_spool(&in, j->folder))
        status = fail("%s", in.error);
    if (status == YES && by_left)
        status = filter_left(j, &in, nleft == UINT64_MAX ? 0 : nleft);
    if (status == YES)
        behind = right ? read_right(j, right) : remote_rows(j);
    if (status == YES && !j->stopped)
        status = read_left(j, &in);
    input_close(&in);
    return behind == TROUBLE ? TROUBLE : status;
}

/* What does not go together; false, with the reason printed. */
static bool args_sane(const struct join_args *a, const struct list *names)
{
    const size_t want = a->serve || a->remote ? 1 : 2;
    if (a->serve && a->remote)
        return refuse("--serve and --remote exclude each other: they are the "
                      "two ends of one pipe");
    if (names->n != want)
        return refuse("%zu files; usage: bloomery join %s", names->n,
                      a->serve    ? "--serve RIGHT"
                      : a->remote ? "--remote COMMAND LEFT"
                                  : "LEFT RIGHT");
    if (a->serve && (was_given(&a->type) || a->output))
        return refuse("--serve takes neither --type nor --output; the side "
                      "with --remote joins");
    if (a->serve && is_stdin(names->at[0]))
        return refuse("with --serve the filter comes from standard input, and "
                      "the rows from a file");
    if (a->right_key && (a->serve || a->remote))
        return refuse("--right is for two files; the remote command has a key "
                      "of its own, by --csv, --field, --jsonl or --regex");
    if (a->right_key && !selects(&a->keys.select))
        return refuse("--right needs --csv, --field, --jsonl or --regex");
    if (want == 2 && is_stdin(names->at[0]) && is_stdin(names->at[1]))
        return refuse("standard input cannot be both files");
    if (a->memory && a->memory < JOIN_MEMORY_LEAST)
        return refuse("--memory: must be at least 1 MB");
    return !a->output || output_spares(a->output, names->at, names->n);
}

static void join_tell(struct join_state *j)
{
    struct join_report *const r = &j->report;
    r->spilled = j->scratch.end;
    if (j->args->remote) {
        r->sent = &j->sent;
        r->received = &j->received;
        r->unfiltered = &j->unfiltered;
    }
    if (quiet)
        return;
    progress_clear();
    if (j->args->json) { /* rows have standard output for themselves */
        struct json to = { .to = stderr };
        report_object(&to, join_fields, r);
        json_end(&to);
        return;
    }
    report_text(stderr, join_fields, r,
                "{rows} rows: {left_rows} of LEFT with {right_rows} of RIGHT, "
                "{type} join\n[{?filter_of}a filter of {filter_keys} of the "
                "{filter_of} side, {filter_bytes}, dropped {dropped} rows of "
                "the other and let {passed} pass, {falsely} of them falsely\n]"
                "[{sent} sent and {received} received; all rows would have "
                "taken {unfiltered}\n][{?spilled}{spilled} written to a "
                "temporary file\n]");
}

static int join_run(struct join_state *j, const struct list *names)
{
    const struct join_args *const a = j->args;
    bly_draft *draft = NULL;
    int error = 0;
    j->out.put = put_stdout;
    j->out.ctx = &error;
    j->out.terminal = out_is_terminal();
    if (a->output && !is_dash(a->output)) {
        if (bly_draft_new(a->output, wait_for_lock, NULL, &draft))
            return fail_library();
        j->out.put = bly_draft_put;
        j->out.ctx = draft;
        j->out.terminal = false;
    }
    const int status = join_both(j, names);
    /* An output that lacks rows because of an error is not a result; lines
     * without a key are left out of it as they are of what is printed. */
    if (j->stopped || j->out.failed || !j->complete)
        bly_draft_abandon(draft);
    else if (draft && bly_draft_commit(draft))
        return fail_library();
    if (j->complete)
        join_tell(j);
    return status;
}

bool join_reaches(void)
{
    return remote_rows && remote_serve;
}

int join(const struct join_args *args, const struct list *operands)
{
    struct join_state *const j = calloc(1, sizeof *j);
    const char *const tmp = getenv("TMPDIR");
    static const char *const types[] = { "inner", "left", "semi", "anti" };
    if (!j)
        return fail("out of memory");
    j->args = args;
    j->type = (enum join_type)args->type;
    j->report.type = types[args->type];
    j->folder = args->spill ? args->spill : tmp && *tmp ? tmp : "/tmp";
    j->held.memory = args->memory ? args->memory : JOIN_MEMORY;
    j->scratch = (struct scratch){ .folder = j->folder, .fd = -1 };
    /* The buffers of all parts together take a quarter of the memory. */
    j->scratch.buffer = (size_t)(j->held.memory / 4 / JOIN_PARTS);
    if (j->scratch.buffer > SCRATCH_BUFFER)
        j->scratch.buffer = SCRATCH_BUFFER;
    int status = TROUBLE;
    bly_spec spec = { 0 };
    const bool ok = shared_read(args->keys.key_file, &j->shared);
    j->secret = shared_hashes(&j->shared);
    if (ok && args_sane(args, operands) &&
        joined_read(&j->shape, &args->keys.select, args->keys.nul) &&
        join_spec(j, &spec)) {
        if (args->serve)
            status = remote_serve(j, operands->at[0]);
        else if (bly_builder_new(&spec, &j->builder))
            status = fail_library();
        else
            status = join_run(j, operands);
    }
    bly_builder_free(j->builder);
    bly_free(j->of_left);
    bly_free(j->of_right);
    held_clear(&j->held);
    parts_free(j);
    joined_free(&j->shape);
    block_free(&j->out.text);
    block_free(&j->row);
    free(j);
    return status;
}

const struct field join_fields[] = {
    FIELD(struct join_report, type, NONE, "inner, left, semi or anti"),
    FIELD(struct join_report, rows, NONE, "rows of the result"),
    FIELD(struct join_report, left_rows, NONE, "rows of LEFT"),
    FIELD(struct join_report, right_rows, NONE, "rows of RIGHT"),
    FIELD(struct join_report, filter_of, MAYBE,
          "the side whose keys the filter has: left or right"),
    FIELD(struct join_report, filter_keys, KEYS, "keys in the filter"),
    FIELD(struct join_report, filter_bytes, BYTES, "size of the filter"),
    FIELD(struct join_report, dropped, NONE,
          "rows of the other side that the filter dropped"),
    FIELD(struct join_report, passed, NONE, "rows that it let through"),
    FIELD(struct join_report, falsely, NONE,
          "of these, rows that have no partner"),
    FIELD(struct join_report, held, BYTES,
          "rows of RIGHT that were held, in memory or in a file"),
    FIELD(struct join_report, spilled, BYTES,
          "written to a temporary file, since --memory was too small"),
    FIELD(struct join_report, sent, BYTES | OPTIONAL,
          "to the remote command: the filter"),
    FIELD(struct join_report, received, BYTES | OPTIONAL,
          "from the remote command: rows that passed the filter"),
    FIELD(struct join_report, unfiltered, BYTES | OPTIONAL,
          "what all rows of the remote side would have taken"),
    { 0 },
};

/*
 * remote.c - a join with rows that another command has
 *
 * The filter of LEFT's keys goes to the command's standard input, and the rows
 * that pass come from its standard output (wire.h): over ssh, say. A false
 * positive costs one row on the line and nothing else, since the rows are
 * joined here. A command that fails, stops early or says something else makes
 * the join fail; rows that it holds back cannot be missed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/join/join_state.h"
#include "apps/join/wire.h"
#include "base/byte_order.h"
#include "base/signals.h"
#include "io/filters.h"
#include "io/varint.h"
#include "report/out.h"
#include "report/say.h"

/* ------------------------------------------------------------------- asking */

struct remote {
    struct join_state *j;
    struct wire wire;
    pthread_t writer;
    bool writes;
    struct block key, rest;
};

/* The request, by a thread of its own: a command that answers before it has
 * read everything must not make both wait. If nobody reads it, the answer will
 * show that. */
static void *write_request(void *arg)
{
    struct remote *const r = arg;
    const bool rows = r->j->type == JOIN_INNER || r->j->type == JOIN_LEFT;
    const char flags = rows ? 0 : JOIN_KEYS_ONLY;
    if (wire_put(&r->wire, &flags, 1) &&
        !bly_write(r->j->of_left, wire_put, &r->wire))
        (void)wire_close(&r->wire);
    session_done(&r->wire.session);
    return NULL;
}

static bool remote_start(struct remote *r)
{
    struct session *const s = &r->wire.session;
    wire_begin(&r->wire, &r->j->shared);
    r->writes = session_spawn(s, r->j->args->remote) &&
                session_greet(s, true, NULL, SESSION_NEVER) &&
                !pthread_create(&r->writer, NULL, write_request, r);
    if (!r->writes && !session_why(s)[0])
        r->wire.why = "no memory for a thread";
    return r->writes;
}

/* Everything is closed, and the command has ended: how? After an error it is
 * told to end. */
static int remote_end(struct remote *r, bool failed)
{
    struct session *const s = &r->wire.session;
    if (failed && s->child > 0)
        kill(s->child, SIGTERM);
    if (failed && s->in.fd >= 0)
        shutdown(s->in.fd, SHUT_RDWR); /* which the writer may wait for */
    if (r->writes)
        pthread_join(r->writer, NULL);
    block_free(&r->key);
    block_free(&r->rest);
    return session_close(s);
}

/* The shape of its rows, which has to be that of ours. */
static bool read_shape(struct remote *r)
{
    struct joined *const shape = &r->j->shape;
    struct wire *const w = &r->wire;
    unsigned char what[3];
    uint64_t columns, column, nheader;
    if (!wire_bytes(w, what, sizeof what) || !wire_number(w, &columns) ||
        !wire_number(w, &column) || !wire_number(w, &nheader) ||
        !wire_text(w, nheader, INPUT_LINE_MOST, &shape->right_names))
        return false;
    if (what[0] != shape->form || what[1] != (unsigned char)shape->delimiter ||
        what[2] != (unsigned char)shape->separator)
        w->why = "its rows have another form; use the same one of --csv, "
                 "--field, --jsonl and --regex at both ends, and the same "
                 "--delimiter";
    else if (columns > INPUT_LINE_MOST || column > INPUT_LINE_MOST ||
             (nheader && shape->right_names.at[nheader - 1] != '\n'))
        w->why = "its header cannot be read";
    shape->nright = (size_t)columns;
    shape->column = column ? (long)column : 1;
    return !w->why;
}

/* One row, if there is one more. */
static bool read_row(struct remote *r, uint64_t nkey)
{
    struct join_state *const j = r->j;
    const bly_hasher *const hasher = bly_builder_hasher(j->builder);
    uint64_t nrest;
    r->key.len = r->rest.len = 0;
    if (!wire_number(&r->wire, &nrest) ||
        !wire_text(&r->wire, nkey, INPUT_LINE_MOST, &r->key) ||
        !wire_text(&r->wire, nrest, 2 * INPUT_LINE_MOST, &r->rest))
        return false;
    const bly_bytes key = { r->key.at, r->key.len };
    const bly_bytes rest = { r->rest.at, r->rest.len };
    j->report.passed++;
    const bly_status st = join_hold(j, bly_hash(hasher, key.ptr, key.len), key,
                                    &rest, &r->wire.why);
    return st == BLY_OK;
}

static bool read_rows(struct remote *r)
{
    struct join_state *const j = r->j;
    struct wire *const w = &r->wire;
    uint64_t n, sent;
    for (;;) {
        if (!wire_number(w, &n))
            return false;
        if (n == 0)
            break;
        if (!read_row(r, n - 1))
            return false;
    }
    if (!wire_word(w, &j->report.right_rows) || !wire_word(w, &j->unfiltered) ||
        !wire_word(w, &sent))
        return false;
    if (sent != j->report.passed || j->report.right_rows < sent)
        w->why = "rows are missing";
    else if (!wire_ends(w)) {
        if (w->left || w->ended)
            w->why = "something follows its last row";
        return false;
    }
    j->report.dropped = j->report.right_rows - j->report.passed;
    return !w->why;
}

int remote_rows(struct join_state *j)
{
    struct remote *const r = calloc(1, sizeof *r);
    j->stopped = true; /* until it is known better */
    if (!r)
        return fail("out of memory");
    r->j = j;
    const bool ok = remote_start(r) && read_shape(r) && read_rows(r);
    const int how = remote_end(r, !ok);
    j->sent = r->wire.session.out.moved;
    j->received = r->wire.session.in.moved;
    if (!ok)
        fail("--remote: the answer of the command cannot be used: %s",
             wire_why(&r->wire));
    else if (how)
        fail("--remote: the command failed, with status %d",
             WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how));
    free(r);
    j->stopped = !ok || how;
    return j->stopped ? TROUBLE : YES;
}

/* ---------------------------------------------------------------- answering */

struct serving {
    struct join_state *j;
    struct wire wire;
    bool keys_only, begun;
    uint64_t rows, bytes, sent;
};

static bool read_request(struct serving *s, bly_filter **out)
{
    struct wire *const w = &s->wire;
    unsigned char flags;
    /* A stranger may send a filter that is coded in a thousandth of what it
     * takes. */
    const bly_access how = { .secret = s->j->secret,
                             .max_bytes = s->j->held.memory };
    wire_begin(w, &s->j->shared);
    session_over(&w->session, STDIN_FILENO, STDOUT_FILENO);
    if (!session_greet(&w->session, false, NULL, SESSION_NEVER) ||
        !wire_bytes(w, &flags, 1))
        return refuse("standard input: not the request of a join: %s; let "
                      "bloomery join --remote run this command",
                      wire_why(w));
    s->keys_only = flags & JOIN_KEYS_ONLY;
    const bly_status st = bly_read(wire_get, w, &how, out);
    if (st)
        return refuse("standard input: %s%s", bly_error(),
                      st == BLY_ERANGE ? "; use a larger --memory" : "");
    return filter_can(*out, "standard input", BLY_CAN(HAS));
}

/* What stands before the rows, once the header was read. */
static bool put_shape(struct serving *s, const struct input *in, bly_bytes row)
{
    struct join_state *const j = s->j;
    struct joined *const shape = &j->shape;
    if (s->begun)
        return true;
    s->begun = true;
    join_columns(j, in, row);
    const char what[] = { (char)shape->form, shape->delimiter,
                          shape->separator };
    const struct block *const names = &shape->right_names;
    const uint64_t column = shape->column > 0 ? (uint64_t)shape->column : 0;
    s->bytes += names->len;
    j->row.len = 0;
    return block_put(&j->row, what, sizeof what) &&
           varint_put(&j->row, shape->nright) && varint_put(&j->row, column) &&
           varint_put(&j->row, names->len) &&
           block_put(&j->row, names->at, names->len) &&
           join_put(&j->out, &j->row);
}

static bool put_wire_row(struct serving *s, bly_bytes key, bly_bytes line)
{
    struct join_state *const j = s->j;
    j->row.len = 0;
    if (!s->keys_only && !joined_rest(&j->shape, line, &j->row))
        return false;
    const bly_bytes behind = { j->row.at, j->row.len };
    s->sent++;
    struct block *const text = &j->out.text;
    return varint_put(text, key.len + 1) && varint_put(text, behind.len) &&
           block_put(text, key.ptr, key.len) && join_put(&j->out, &j->row);
}

static bly_status serve_batch(struct job *job, struct batch *b)
{
    struct serving *const s = job->ctx;
    struct join_state *const j = s->j;
    bool ok = put_shape(s, j->right_input, b->lines[0]);
    bly_has_hashes(j->of_left, b->hashes, b->n, b->picked);
    for (size_t i = 0; i < b->n && ok; i++) {
        s->rows++;
        s->bytes += b->lines[i].len + 1;
        if (b->picked[i / 64] >> i % 64 & 1)
            ok = put_wire_row(s, b->keys[i], b->lines[i]);
    }
    memset(b->picked, 0, BLY_BITMAP_WORDS(b->n) * sizeof *b->picked);
    if (ok)
        return BLY_OK;
    b->why = scratch_why(j);
    return BLY_EIO;
}

static bool put_totals(struct serving *s, const struct input *in)
{
    const bly_bytes none = { NULL, 0 };
    if (!put_shape(s, in, none))
        return false;
    const uint64_t said[] = { s->rows, s->bytes, s->sent };
    unsigned char end[1 + sizeof said] = { 0 };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        put_le(end + 1 + 8 * i, said[i], 8);
    return block_put(&s->j->out.text, end, sizeof end) &&
           join_flush(&s->j->out) && wire_close(&s->wire);
}

static int serve_rows(struct serving *s, const char *name)
{
    struct join_state *const j = s->j;
    struct input in;
    j->out.put = wire_put;
    j->out.ctx = &s->wire;
    if (!read_request(s, &j->of_left) || !join_input(j, name, true, &in))
        return TROUBLE;
    j->right_input = &in;
    struct job job = { .batch = serve_batch,
                       .in_order = true,
                       .hasher = bly_hasher_of(j->of_left),
                       .nthreads = thread_count(j->args->threads),
                       .ctx = s };
    int status = TROUBLE;
    if (!keys_follow(bly_keying_of(j->of_left), "standard input", &in))
        ;
    else if (!pipeline_run(&job, &in) && put_totals(s, &in))
        status = YES;
    /* Who asked and then hung up knows why. */
    else if (!s->wire.session.out.why[0])
        fail("%s", job.error[0] ? job.error : scratch_why(j));
    input_close(&in);
    return status;
}

int remote_serve(struct join_state *j, const char *name)
{
    struct serving *const s = calloc(1, sizeof *s);
    if (!s)
        return fail("out of memory");
    s->j = j;
    signals_no_pipe();
    const int status = serve_rows(s, name);
    session_close(&s->wire.session);
    free(s);
    return status;
}

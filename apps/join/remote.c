/*
 * remote.c - a join with rows that another command has
 *
 * The filter of LEFT's keys goes to the command's standard input, and the rows
 * that pass come from its standard output (wire.h): over ssh, say. A false
 * positive costs one row on the line and nothing else, since the rows are
 * joined here. A command that fails, stops early or says something else makes
 * the join fail; rows that it holds back cannot be missed.
 */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/join/join_state.h"
#include "apps/join/wire.h"
#include "base/byte_order.h"
#include "base/spawn.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/varint.h"
#include "report/out.h"
#include "report/say.h"

extern char **environ;

/* Shape and totals are summed as rows are. */
static uint64_t sum_numbers(uint64_t before, const struct block *names,
                            const uint64_t *numbers, size_t n)
{
    unsigned char at[8 * 8];
    for (size_t i = 0; i < n; i++)
        put_le(at + 8 * i, numbers[i], 8);
    const bly_bytes text = { names ? names->at : NULL, names ? names->len : 0 };
    return wire_sum(before, text, (bly_bytes){ at, 8 * n });
}

/* ------------------------------------------------------------------- asking */

struct remote {
    struct joining *j;
    pid_t child;
    int to, from; /* pipes */
    pthread_t writer;
    bool writes;
    struct wire wire;
    struct block key, rest;
    uint64_t sum; /* of all that came */
};

/* A bly_put to the command. */
static bool put_remote(void *ctx, const void *bytes, size_t nbytes)
{
    struct remote *const r = ctx;
    const char *at = bytes;
    while (nbytes) {
        const ssize_t put = write(r->to, at, nbytes);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? put : 0;
        nbytes -= put > 0 ? (size_t)put : 0;
        r->j->sent += put > 0 ? (uint64_t)put : 0;
    }
    return true;
}

/* The request, by a thread of its own: a command that answers before it has
 * read everything must not make both wait. That nobody reads it shows in the
 * answer. */
static void *write_request(void *arg)
{
    struct remote *const r = arg;
    unsigned char head[WIRE_REQUEST];
    sigset_t pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, NULL);
    const bool rows = r->j->type == JOIN_INNER || r->j->type == JOIN_LEFT;
    memcpy(head, WIRE_ASKS, WIRE_MAGIC);
    head[WIRE_MAGIC] = rows ? 0 : WIRE_KEYS_ONLY;
    put_le(head + WIRE_MAGIC + 1, bly_written_bytes(r->j->of_left), 8);
    if (put_remote(r, head, sizeof head))
        (void)!bly_write(r->j->of_left, put_remote, r);
    close(r->to);
    r->to = -1;
    return NULL;
}

static bool remote_start(struct remote *r)
{
    const char *const command = r->j->args->remote;
    int in[2], out[2] = { -1, -1 };
    if (pipe2(in, O_CLOEXEC))
        return !fail("no pipe: %s", strerror(errno));
    int error = pipe2(out, O_CLOEXEC) ? errno : 0;
    if (!error)
        error = spawn_shell(command, in[0], out[1], &r->child);
    close(in[0]);
    if (out[1] >= 0)
        close(out[1]);
    r->to = in[1];
    r->from = r->wire.fd = out[0];
    if (!error)
        error = pthread_create(&r->writer, NULL, write_request, r);
    r->writes = !error;
    return !error || !fail("--remote: %s", strerror(error));
}

/* Everything is closed, and the command has ended: how? After an error it is
 * told to end. */
static int remote_end(struct remote *r, bool failed)
{
    int how = 0;
    if (failed && r->child > 0)
        kill(r->child, SIGTERM);
    if (r->from >= 0)
        close(r->from);
    if (r->writes)
        pthread_join(r->writer, NULL);
    if (r->to >= 0)
        close(r->to);
    if (r->child > 0)
        while (waitpid(r->child, &how, 0) < 0 && errno == EINTR)
            ;
    block_free(&r->key);
    block_free(&r->rest);
    return how;
}

static bool is_answer(struct remote *r)
{
    char magic[WIRE_MAGIC];
    struct wire *const w = &r->wire;
    if (!wire_bytes(w, magic, sizeof magic))
        return false;
    if (memcmp(magic, WIRE_ROWS, sizeof magic) != 0)
        w->why = "it is not what bloomery join --serve says";
    return !w->why;
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
        w->why =
            "its rows have another form; use the same one of --csv, --field, "
            "--jsonl and --regex at both ends, and the same --delimiter";
    else if (columns > INPUT_LINE_MOST || column > INPUT_LINE_MOST ||
             (nheader && shape->right_names.at[nheader - 1] != '\n'))
        w->why = "its header is none";
    const uint64_t numbers[] = { what[0], what[1], what[2], columns, column };
    r->sum = sum_numbers(0, &shape->right_names, numbers, 5);
    shape->nright = (size_t)columns;
    shape->column = column ? (long)column : 1;
    return !w->why;
}

/* One row, if there is one more. */
static bool read_row(struct remote *r, uint64_t nkey)
{
    struct joining *const j = r->j;
    const bly_hasher *const hasher = bly_builder_hasher(j->builder);
    uint64_t nrest;
    r->key.len = r->rest.len = 0;
    if (!wire_number(&r->wire, &nrest) ||
        !wire_text(&r->wire, nkey, INPUT_LINE_MOST, &r->key) ||
        !wire_text(&r->wire, nrest, 2 * INPUT_LINE_MOST, &r->rest))
        return false;
    const bly_bytes key = { r->key.at, r->key.len };
    const bly_bytes rest = { r->rest.at, r->rest.len };
    r->sum = wire_sum(r->sum, key, rest);
    j->report.passed++;
    const bly_status st = join_hold(j, bly_hash(hasher, key.ptr, key.len), key,
                                    &rest, &r->wire.why);
    return st == BLY_OK;
}

static bool read_rows(struct remote *r)
{
    struct joining *const j = r->j;
    struct wire *const w = &r->wire;
    uint64_t n, sent, said;
    for (;;) {
        if (!wire_number(w, &n))
            return false;
        if (n == 0)
            break;
        if (!read_row(r, n - 1))
            return false;
    }
    if (!wire_word(w, &j->report.right_rows) || !wire_word(w, &j->unfiltered) ||
        !wire_word(w, &sent) || !wire_word(w, &said))
        return false;
    const uint64_t totals[] = { j->report.right_rows, j->unfiltered, sent };
    if (sent != j->report.passed || j->report.right_rows < sent ||
        said != sum_numbers(r->sum, NULL, totals, 3))
        w->why = "rows are missing, or were changed on the way";
    else if (!wire_ends(w))
        w->why = "something follows its last row";
    j->report.dropped = j->report.right_rows - j->report.passed;
    return !w->why;
}

int remote_rows(struct joining *j)
{
    struct remote *const r = calloc(1, sizeof *r);
    j->stopped = true; /* until it is known better */
    if (!r)
        return fail("out of memory");
    r->j = j;
    r->to = r->from = -1;
    bool ok = remote_start(r);
    const bool started = ok;
    ok = ok && is_answer(r) && read_shape(r) && read_rows(r);
    j->received = r->wire.done;
    const char *const why = r->wire.why;
    const int error = r->wire.error;
    const int how = remote_end(r, !ok);
    if (started && !ok)
        fail("--remote: the answer of the command cannot be used: %s%s%s", why,
             error ? ": " : "", error ? strerror(error) : "");
    else if (ok && how)
        fail("--remote: the command failed, with status %d",
             WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how));
    free(r);
    j->stopped = !ok || how;
    return j->stopped ? TROUBLE : YES;
}

/* ---------------------------------------------------------------- answering */

struct serving {
    struct joining *j;
    bool keys_only, begun;
    uint64_t rows, bytes, sent, sum;
};

/* A bly_get from standard input; ctx is how many bytes it has. */
static int64_t get_stdin(void *ctx, void *buf, size_t nbytes)
{
    uint64_t *const left = ctx;
    const int64_t got =
        read_all(STDIN_FILENO, buf, nbytes < *left ? nbytes : (size_t)*left);
    *left -= got > 0 ? (uint64_t)got : 0;
    return got;
}

static bool read_request(struct serving *s, bly_filter **out)
{
    unsigned char head[WIRE_REQUEST];
    /* A stranger may send a filter that is coded in a thousandth of what it
     * takes. */
    const bly_access how = { .secret = s->j->secret,
                             .max_bytes = s->j->held.memory };
    if (read_all(STDIN_FILENO, head, sizeof head) != (int64_t)sizeof head ||
        memcmp(head, WIRE_ASKS, WIRE_MAGIC) != 0)
        return !fail("standard input: not the request of a join; bloomery join "
                     "--remote runs this command");
    uint64_t left = get_le(head + WIRE_MAGIC + 1, 8);
    s->keys_only = head[WIRE_MAGIC] & WIRE_KEYS_ONLY;
    const bly_status st = bly_read(get_stdin, &left, &how, out);
    if (st)
        return !fail("standard input: %s%s", bly_error(),
                     st == BLY_ERANGE ? "; use a larger --memory" : "");
    return filter_can(*out, "standard input", BLY_CAN(HAS));
}

/* What stands before the rows, once the header was read. */
static bool put_shape(struct serving *s, const struct input *in, bly_bytes row)
{
    struct joining *const j = s->j;
    struct joined *const shape = &j->shape;
    if (s->begun)
        return true;
    s->begun = true;
    join_columns(j, in, row);
    const char what[] = { (char)shape->form, shape->delimiter,
                          shape->separator };
    const struct block *const names = &shape->right_names;
    const uint64_t column = shape->column > 0 ? (uint64_t)shape->column : 0;
    const uint64_t numbers[] = { (unsigned char)what[0], (unsigned char)what[1],
                                 (unsigned char)what[2], shape->nright,
                                 column };
    s->bytes += names->len;
    s->sum = sum_numbers(0, names, numbers, 5);
    j->row.len = 0;
    return block_put(&j->row, WIRE_ROWS, WIRE_MAGIC) &&
           block_put(&j->row, what, sizeof what) &&
           varint_put(&j->row, shape->nright) && varint_put(&j->row, column) &&
           varint_put(&j->row, names->len) &&
           block_put(&j->row, names->at, names->len) &&
           join_put(&j->out, &j->row);
}

static bool put_wire_row(struct serving *s, bly_bytes key, bly_bytes line)
{
    struct joining *const j = s->j;
    j->row.len = 0;
    if (!s->keys_only && !joined_rest(&j->shape, line, &j->row))
        return false;
    const bly_bytes behind = { j->row.at, j->row.len };
    s->sum = wire_sum(s->sum, key, behind);
    s->sent++;
    struct block *const text = &j->out.text;
    return varint_put(text, key.len + 1) && varint_put(text, behind.len) &&
           block_put(text, key.ptr, key.len) && join_put(&j->out, &j->row);
}

static bly_status serve_batch(struct job *job, struct batch *b)
{
    struct serving *const s = job->ctx;
    struct joining *const j = s->j;
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
    uint64_t said[] = { s->rows, s->bytes, s->sent, 0 };
    said[3] = sum_numbers(s->sum, NULL, said, 3);
    unsigned char end[1 + sizeof said] = { 0 };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        put_le(end + 1 + 8 * i, said[i], 8);
    return block_put(&s->j->out.text, end, sizeof end) &&
           join_flush(&s->j->out);
}

int remote_serve(struct joining *j, const char *name)
{
    struct serving s = { .j = j };
    struct input in;
    int error = 0;
    j->out.put = put_stdout;
    j->out.ctx = &error;
    if (!read_request(&s, &j->of_left) || !join_input(j, name, true, &in))
        return TROUBLE;
    j->right_input = &in;
    struct job job = { .batch = serve_batch,
                       .in_order = true,
                       .hasher = bly_hasher_of(j->of_left),
                       .nthreads = thread_count(j->args->threads),
                       .ctx = &s };
    int status = TROUBLE;
    if (!keys_follow(bly_keying_of(j->of_left), "standard input", &in))
        ;
    else if (pipeline_run(&job, &in))
        fail("%s", job.error);
    else if (!put_totals(&s, &in))
        fail("%s", scratch_why(j));
    else
        status = YES;
    input_close(&in);
    return status;
}

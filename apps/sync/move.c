/*
 * move.c - the side of a sync that asks: bringing lines and files to where they
 * are missing
 *
 * Nothing that the other side says is trusted: the hash of a line must be one
 * that was asked for; a file must have the hash in its record, and its record
 * that of its element.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/sync/client.h"
#include "apps/sync/records.h"
#include "apps/sync/sync_store.h"
#include "base/grow.h"
#include "base/search.h"
#include "io/files.h"
#include "report/out.h"
#include "report/say.h"

static bool no_memory(struct sync_client *c)
{
    return client_fail(c, "out of memory");
}

/* Ask for what these elements stand for. Beginnings of 5 bytes tell a few
 * thousand of 16 million apart; where two begin alike, both come. */
static bool say_want(struct sync_client *c, const uint64_t *elements, size_t n)
{
    const unsigned nbytes = c->report.there < (1 << 24) ? 5 : 8;
    for (size_t at = 0; at < n;) {
        struct reading r;
        client_begin(c, SYNC_WANT);
        bool ok = put_word(&c->question, nbytes, 1);
        for (; ok && at < n && c->question.len < SYNC_ROOM - 64; at++) {
            unsigned char begins[8];
            for (unsigned i = 0; i < 8; i++)
                begins[i] = (unsigned char)(elements[at] >> (56 - 8 * i));
            ok = block_put(&c->question, begins, nbytes);
        }
        if (!ok)
            return no_memory(c);
        if (!client_ask(c, &r))
            return false;
    }
    return true;
}

static bool is_theirs(const struct sync_client *c, uint64_t e, size_t *at)
{
    const struct sync_set found = { .elements = c->theirs, .n = c->ntheirs };
    return set_has(&found, e, at);
}

/* Records, as they come: each() gets a reader that it moves past one. */
typedef bool each_record(struct sync_client *c, struct reading *r, void *ctx);

/* Of beginnings of 5 bytes, as many others begin alike as chance has it: next
 * to none. */
static uint64_t records_most(const struct sync_client *c)
{
    return 2 * (uint64_t)c->ntheirs + 1000;
}

static bool ask_records(struct sync_client *c, each_record *each, void *ctx)
{
    if (!c->ntheirs)
        return true;
    if (!say_want(c, c->theirs, c->ntheirs))
        return false;
    uint64_t total = 1;
    for (uint64_t n = 0; n < total;) {
        struct reading r;
        client_begin(c, SYNC_RECORDS);
        if (!varint_put(&c->question, n))
            return no_memory(c);
        if (!client_ask(c, &r))
            return false;
        total = read_number(&r);
        if (total > records_most(c))
            return client_fail(c, "the other side sends more than was asked "
                                  "for");
        const uint64_t before = n;
        for (; r.at < r.end; n++)
            if (!each(c, &r, ctx) || r.bad)
                return client_fail(c, "the other side sends no records");
        if (n > total || (n == before && n < total))
            return client_fail(c, "the other side sends more, or less, than it "
                                  "says");
    }
    return true;
}

/* -------------------------------------------------------------------- lines */

struct lines {
    struct block taken;  /* with separators */
    unsigned char *seen; /* which of theirs came */
};

static bool take_line(struct sync_client *c, struct reading *r, void *ctx)
{
    struct lines *const l = ctx;
    const char end = c->set->nul ? '\0' : '\n';
    const uint64_t n = read_number(r);
    const unsigned char *const line = read_bytes(r, n);
    size_t at;
    if (!line || memchr(line, end, (size_t)n))
        return false;
    /* One that was not asked for, or came before: it only begins like one that
     * was. */
    if (!is_theirs(c, bly_hash(&c->set->hasher, line, (size_t)n), &at) ||
        l->seen[at])
        return true;
    l->seen[at] = 1;
    c->report.taken++;
    c->report.taken_bytes += n + 1;
    if (c->shows) {
        fputs(c->bare ? "" : "> ", stdout);
        print_key(line, (size_t)n);
        print_key_end(c->set->nul);
    }
    return (block_put(&l->taken, line, (size_t)n) &&
            block_put(&l->taken, &end, 1)) ||
           no_memory(c);
}

bool client_lines(struct sync_client *c, uint64_t *elements, size_t n)
{
    struct lines l = { .seen = calloc(n + 1, 1) };
    c->theirs = elements;
    c->ntheirs = n;
    const bool ok = l.seen ? ask_records(c, take_line, &l) : no_memory(c);
    c->theirs = NULL;
    c->ntheirs = 0;
    free(l.seen);
    block_free(&l.taken);
    return ok;
}

/* Send what waits in the question, if anything does. */
static bool flush_put(struct sync_client *c)
{
    struct reading r;
    if (c->question.len <= 1)
        return true;
    if (!client_ask(c, &r))
        return false;
    client_begin(c, SYNC_PUT);
    return true;
}

static bool give_line(void *ctx, uint64_t element, bly_bytes line)
{
    struct sync_client *const c = ctx;
    (void)element;
    if (c->shows) {
        fputs("< ", stdout);
        print_key(line.ptr, line.len);
        print_key_end(c->set->nul);
    }
    if (!c->give)
        return true;
    c->report.given++;
    c->report.given_bytes += line.len + 1;
    if (c->dry_run)
        return true;
    if (line.len > SYNC_ROOM - 128)
        return client_fail(c, "a line of %zu bytes is too long to be sent",
                           line.len);
    if (c->question.len + line.len > SYNC_ROOM - 64 && !flush_put(c))
        return false;
    return (varint_put(&c->question, line.len) &&
            block_put(&c->question, line.ptr, line.len)) ||
           no_memory(c);
}

/* Elements that the other side is to remove. */
static bool say_remove(struct sync_client *c, const uint64_t *elements,
                       size_t n)
{
    for (size_t at = 0; at < n;) {
        struct reading r;
        client_begin(c, SYNC_REMOVE);
        bool ok = true;
        for (; ok && at < n && c->question.len < SYNC_ROOM - 64; at++)
            ok = put_word(&c->question, elements[at], 8);
        if (!ok)
            return no_memory(c);
        if (!client_ask(c, &r))
            return false;
        c->report.refused += read_number(&r);
    }
    c->report.removed += n;
    return true;
}

/* What was given is kept now. */
static bool say_keep(struct sync_client *c)
{
    struct reading r;
    client_begin(c, SYNC_KEEP);
    if (!client_ask(c, &r))
        return false;
    (void)read_number(&r);
    const uint64_t refused = read_number(&r);
    if (refused) {
        c->report.refused += refused;
        fail("%s: %llu refused; the last one: %.*s", c->report.peer,
             (unsigned long long)refused,
             (int)(r.end - r.at < SYNC_WHY ? r.end - r.at : SYNC_WHY),
             (const char *)r.at);
    }
    return true;
}

static bool write_lines(struct sync_client *c, const struct lines *l)
{
    const bool removes = c->removes && c->take && !c->give;
    if (c->output) {
        bly_draft *d;
        if (bly_draft_new(c->output, wait_for_lock, NULL, &d))
            return client_fail(c, "%s", bly_error());
        if (l->taken.len)
            bly_draft_put(d, l->taken.at, l->taken.len);
        return !bly_draft_commit(d) || client_fail(c, "%s", bly_error());
    }
    if (!l->taken.len && !(removes && c->nmine))
        return true;
    if (!list_write(c->set, c->mine, removes ? c->nmine : 0, &l->taken))
        return client_fail(c, "%s", c->set->why);
    c->report.removed += removes ? c->nmine : 0;
    return true;
}

static bool move_lines(struct sync_client *c)
{
    struct lines l = { .seen = calloc(c->ntheirs + 1, 1) };
    bool ok = l.seen || no_memory(c);
    if (ok && c->take) {
        ok = ask_records(c, take_line, &l);
        if (ok && c->report.taken < c->ntheirs)
            ok = client_fail(c,
                             "the other side announced %zu lines that are "
                             "missing here, but sent %llu",
                             c->ntheirs, (unsigned long long)c->report.taken);
        ok = ok && (c->dry_run || write_lines(c, &l));
    }
    if (ok && c->removes && c->give && !c->take && !c->dry_run)
        ok = say_remove(c, c->theirs, c->ntheirs);
    if (ok && (c->give || c->shows)) {
        client_begin(c, SYNC_PUT);
        ok = list_lines(c->set, c->mine, c->nmine, give_line, c) ||
             client_fail(c, "%s", c->set->why);
        if (ok && c->give && !c->dry_run)
            ok = flush_put(c) && say_keep(c);
    }
    free(l.seen);
    block_free(&l.taken);
    return ok;
}

/* -------------------------------------------------------------------- files */

struct arrivals {
    struct sync_file *at;
    size_t n, room;
    struct block names;
    unsigned char *seen; /* which of theirs came */
};

static bool take_record(struct sync_client *c, struct reading *r, void *ctx)
{
    struct arrivals *const a = ctx;
    struct record record;
    size_t at;
    if (!record_get(c->set, r, c->changed, &record))
        return false;
    /* There is room for each of theirs once. */
    if (!is_theirs(c, record.file.element, &at) || a->seen[at])
        return true;
    a->seen[at] = 1;
    if (!GROW(&a->at, &a->room, a->n + 1))
        return no_memory(c);
    record.file.path = a->names.len;
    a->at[a->n++] = record.file;
    return block_put(&a->names, record.path, strlen(record.path) + 1) ||
           no_memory(c);
}

static void show_path(const struct sync_client *c, const char *mark,
                      const char *path)
{
    if (!c->shows)
        return;
    fputs(mark, stdout);
    print_key(path, strlen(path));
    print_key_end(false);
}

static void refused(struct sync_client *c, const char *path, const char *why)
{
    c->report.refused++;
    fail("%s/%s: not taken: %s", c->set->path, path, why);
}

static void taken(struct sync_client *c, const struct sync_file *f)
{
    c->report.taken++;
    c->report.taken_bytes += f->size;
    progress_at(c->report.taken, c->report.taken, c->ntheirs);
}

/* Short files, as many as fit into an answer. */
static bool take_short(struct sync_client *c, const struct arrivals *a,
                       const size_t *which, size_t n)
{
    for (size_t at = 0; at < n;) {
        struct reading r;
        uint64_t size = 0;
        client_begin(c, SYNC_READ);
        bool ok = true;
        for (size_t i = at; ok && i < n; i++) {
            const struct sync_file *const f = &a->at[which[i]];
            /* As many files as fit into one answer; a single one always
             * does, since short files are short. */
            size += f->size + VARINT_MOST;
            if (i > at && size > SYNC_ROOM - 64)
                break;
            ok = put_word(&c->question, f->element, 8) &&
                 varint_put(&c->question, 0) &&
                 varint_put(&c->question, f->size);
        }
        if (!ok)
            return no_memory(c);
        if (!client_ask(c, &r))
            return false;
        const size_t before = at;
        for (; r.at < r.end && at < n; at++) {
            const struct sync_file *const f = &a->at[which[at]];
            const char *const path = a->names.at + f->path;
            const uint64_t got = read_number(&r);
            const unsigned char *const bytes = read_bytes(&r, got);
            char why[SYNC_WHY] = "";
            bool skip;
            if (!bytes)
                return client_fail(c, "the other side sends less than it says");
            if (got != f->size) {
                refused(c, path, "it changed on the other side");
                continue;
            }
            struct incoming *const in =
                incoming_new(c->set, f, path, NULL, &skip, why);
            if (!in) {
                if (!skip)
                    refused(c, path, why);
                continue;
            }
            if (!incoming_put(in, bytes, (size_t)got, why)) {
                incoming_stop(in);
                refused(c, path, why);
            } else if (incoming_end(in, why)) {
                taken(c, f);
            } else {
                refused(c, path, why);
            }
        }
        /* An answer without a single file would be asked for again for ever. */
        if (at == before)
            return client_fail(c, "the other side sends less than it says");
    }
    return true;
}

/* A part of a file into `in`. False: c->why, or why, where that is the file's
 * fault. */
static bool take_part(struct sync_client *c, const struct sync_file *f,
                      uint64_t at, uint64_t n, struct incoming *in,
                      char why[SYNC_WHY])
{
    struct reading r;
    client_begin(c, SYNC_READ);
    if (!put_word(&c->question, f->element, 8) ||
        !varint_put(&c->question, at) || !varint_put(&c->question, n))
        return no_memory(c);
    if (!client_ask(c, &r))
        return false;
    const uint64_t got = read_number(&r);
    const unsigned char *const bytes = read_bytes(&r, got);
    if (!bytes || got != n) {
        snprintf(why, SYNC_WHY, "it changed on the other side");
        return false;
    }
    return incoming_put(in, bytes, (size_t)n, why);
}

/* A file whose contents are here: nothing has to come. False: they are not. */
static bool take_rights(struct sync_client *c, const struct sync_file *f,
                        const char *path)
{
    char why[SYNC_WHY] = "";
    bool skip;
    if (!contents_same(c->set, file_at_path(c->set, path), f))
        return false;
    struct incoming *const in = incoming_new(c->set, f, path, NULL, &skip, why);
    if (in && incoming_end(in, why))
        taken(c, f);
    else
        refused(c, path, why);
    return true;
}

static struct incoming *begin_long(struct sync_client *c,
                                   const struct sync_file *f, const char *path)
{
    struct chunks chunks = { 0 };
    struct reading r;
    char why[SYNC_WHY] = "";
    bool skip;
    struct incoming *in = NULL;
    client_begin(c, SYNC_CHUNKS);
    if (!put_word(&c->question, f->element, 8))
        no_memory(c);
    if (!client_ask(c, &r))
        return NULL;
    if (chunks_get(&r, &chunks)) {
        in = incoming_new(c->set, f, path, &chunks, &skip, why);
        if (!in && !skip)
            refused(c, path, why);
    } else {
        client_fail(c, "the other side sends no chunks");
    }
    chunks_free(&chunks);
    return in;
}

/* A long one, in chunks. */
static bool take_long(struct sync_client *c, const struct sync_file *f,
                      const char *path)
{
    const uint64_t most = SYNC_ROOM - 128;
    char why[SYNC_WHY] = "";
    struct incoming *const in = begin_long(c, f, path);
    if (!in)
        return !c->why[0];
    bool ok = true;
    for (uint64_t at = 0, len; ok && incoming_needs(in, &at, &len); at += len)
        for (uint64_t done = 0, some; ok && done < len; done += some) {
            some = len - done < most ? len - done : most;
            ok = take_part(c, f, at + done, some, in, why);
        }
    if (!ok)
        incoming_stop(in);
    else
        ok = incoming_end(in, why);
    if (ok)
        taken(c, f);
    else if (!c->why[0])
        refused(c, path, why);
    return !c->why[0];
}

/* ------------------------------------------------------------------- giving */

/* The contents of a file of ours; the hash of an object is made on the way. */
static bool read_own(const struct sync_client *c, struct sync_file *f,
                     struct block *to)
{
    struct content sum;
    const int fd = folder_open(c->set, file_path(c->set, f));
    to->len = 0;
    if (fd < 0)
        return false;
    bool ok = block_fit(to, (size_t)f->size + 1);
    const int64_t got = ok ? read_all(fd, to->at, (size_t)f->size + 1) : -1;
    close(fd);
    if (got < 0 || (uint64_t)got != f->size)
        return false;
    to->len = (size_t)got;
    if (c->set->form == SYNC_OBJECTS) {
        if (!content_begin(&sum, &c->set->hasher))
            return false;
        content_put(&sum, to->at, to->len);
        content_end(&sum, f->hash);
    }
    return true;
}

static void given(struct sync_client *c, const struct sync_file *f)
{
    c->report.given++;
    c->report.given_bytes += f->size;
    progress_at(c->report.given, c->report.given, c->nmine);
}

static void not_given(struct sync_client *c, const char *path)
{
    c->report.refused++;
    fail("%s/%s: not sent: it changed while it was read, or cannot be read",
         c->set->path, path);
}

static bool give_short(struct sync_client *c, const struct sync_file *which,
                       struct block *buf)
{
    struct sync_file f = *which;
    const char *const path = file_path(c->set, which);
    if (!read_own(c, &f, buf)) {
        not_given(c, path);
        return true;
    }
    if (c->question.len + buf->len + strlen(path) > SYNC_ROOM - 128 &&
        !flush_put(c))
        return false;
    if (!record_put(&c->question, &f, path, c->changed) ||
        (buf->len && !block_put(&c->question, buf->at, buf->len)))
        return no_memory(c);
    given(c, &f);
    return true;
}

/* Ranges of a file that the other side asked for. */
static bool give_ranges(struct sync_client *c, int fd, struct block *ranges)
{
    const unsigned char *const from = (const unsigned char *)ranges->at;
    struct reading r = { from, ranges->len ? from + ranges->len : from, false };
    const uint64_t n = read_number(&r);
    uint64_t before = 0; /* where the last one ended: nothing is sent twice */
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = read_number(&r), len = read_number(&r);
        const bool bad = r.bad || at < before || at > UINT64_MAX >> 1 ||
                         len > (UINT64_MAX >> 1) - at;
        before = at + len;
        if (bad)
            return client_fail(c, "the other side asks for no ranges");
        while (len) {
            const size_t some =
                len < SYNC_ROOM - 64 ? (size_t)len : SYNC_ROOM - 64;
            struct reading answer;
            client_begin(c, SYNC_GIVE);
            if (!block_fit(&c->question, 1 + some))
                return no_memory(c);
            const ssize_t got = pread(fd, c->question.at + 1, some, (off_t)at);
            if (got <= 0) /* it was cut meanwhile: the sum will not fit */
                return true;
            c->question.len = 1 + (size_t)got;
            if (!client_ask(c, &answer))
                return false;
            at += (uint64_t)got;
            len -= (uint64_t)got;
        }
    }
    return true;
}

static bool give_long(struct sync_client *c, const struct sync_file *which)
{
    struct sync_file f = *which;
    const char *const path = file_path(c->set, which);
    struct chunks chunks = { 0 };
    struct block ranges = { 0 }, all = { 0 };
    struct reading r;
    if (!flush_put(c))
        return false;
    const bool object = c->set->form == SYNC_OBJECTS;
    const int fd = folder_open(c->set, path);
    bool ok = fd >= 0 && (!object || read_own(c, &f, &all)) &&
              chunks_of(fd, f.size, &c->set->hasher, &chunks);
    block_free(&all);
    if (!ok) {
        not_given(c, path);
    } else {
        client_begin(c, SYNC_OFFER);
        ok = record_put(&c->question, &f, path, c->changed) &&
             chunks_put(&c->question, &chunks);
        if (!ok)
            no_memory(c);
        if (client_ask(c, &r) &&
            (block_put(&ranges, r.at, (size_t)(r.end - r.at)) ||
             no_memory(c)) &&
            give_ranges(c, fd, &ranges) && say_keep(c))
            given(c, &f);
    }
    chunks_free(&chunks);
    block_free(&ranges);
    if (fd >= 0)
        close(fd);
    client_begin(c, SYNC_PUT);
    return !c->why[0];
}

static bool give_files(struct sync_client *c, const size_t *which, size_t n)
{
    struct block buf = { 0 };
    bool ok = true;
    client_begin(c, SYNC_PUT);
    for (size_t i = 0; ok && i < n; i++) {
        const struct sync_file *const f = &c->set->files[which[i]];
        ok = f->size <= STORE_WHOLE ? give_short(c, f, &buf) : give_long(c, f);
    }
    block_free(&buf);
    return ok && flush_put(c) && say_keep(c);
}

/* ----------------------------------------------------------------- deciding */

/* What is to become of each file that differs. */
struct decisions {
    size_t *take, *give, *remove_here, *remove_there;
    size_t ntake, ngive, nremove_here, nremove_there;
};

static int theirs_by_path(const void *a, const void *b, void *ctx)
{
    const struct arrivals *const all = ctx;
    return strcmp(all->names.at + all->at[*(const size_t *)a].path,
                  all->names.at + all->at[*(const size_t *)b].path);
}

static const struct sync_file *theirs_at(const struct arrivals *a,
                                         const size_t *sorted, const char *path)
{
    size_t at;
    LOWER_BOUND(at, a->n,
                strcmp(a->names.at + a->at[sorted[at]].path, path) < 0);
    const struct sync_file *const f = at < a->n ? &a->at[sorted[at]] : NULL;
    return f && strcmp(a->names.at + f->path, path) == 0 ? f : NULL;
}

/* Which of two versions stays: 1 theirs, -1 ours, 0 nobody knows. Where only
 * the rights differ, the time of modification says nothing about them; if
 * neither changed them later than the other, or a side does not say, a program
 * stays a program. */
static int newer(const struct sync_client *c, const struct sync_file *ours,
                 const struct sync_file *theirs)
{
    if (c->take != c->give)
        return c->take ? 1 : -1;
    const bool rights = contents_same(c->set, ours, theirs);
    const uint64_t here = rights ? ours->changed : ours->modified;
    const uint64_t there = rights ? theirs->changed : theirs->modified;
    if (rights && (here == there || !there))
        return theirs->runs ? 1 : -1;
    return there > here ? 1 : there < here ? -1 : 0;
}

/* Files that both have, and that only the other side has. */
static void decide_theirs(struct sync_client *c, const struct arrivals *a,
                          struct decisions *d)
{
    for (size_t i = 0; i < a->n; i++) {
        const char *const path = a->names.at + a->at[i].path;
        const struct sync_file *const ours = file_at_path(c->set, path);
        if (!ours) {
            show_path(c, "> ", path);
            if (c->take)
                d->take[d->ntake++] = i;
            else if (c->removes && c->give)
                d->remove_there[d->nremove_there++] = i;
            continue;
        }
        c->report.changed++;
        show_path(c, "! ", path);
        const int which = newer(c, ours, &a->at[i]);
        if (which > 0)
            d->take[d->ntake++] = i;
        else if (which < 0)
            d->give[d->ngive++] = (size_t)(ours - c->set->files);
        else if (!c->dry_run)
            refused(c, path, "both sides have changed it at the same time");
    }
}

static void decide_mine(struct sync_client *c, const struct arrivals *a,
                        const size_t *sorted, struct decisions *d)
{
    for (size_t i = 0; i < c->nmine; i++) {
        size_t at;
        if (!set_has(c->set, c->mine[i], &at))
            continue;
        const char *const path = file_path(c->set, &c->set->files[at]);
        if (theirs_at(a, sorted, path))
            continue;
        show_path(c, "< ", path);
        if (c->give)
            d->give[d->ngive++] = at;
        else if (c->removes && c->take)
            d->remove_here[d->nremove_here++] = at;
    }
}

static bool take_files(struct sync_client *c, const struct arrivals *a,
                       const struct decisions *d)
{
    size_t *const few = malloc((d->ntake + 1) * sizeof *few);
    size_t n = 0;
    if (!few)
        return no_memory(c);
    bool ok = true;
    for (size_t i = 0; i < d->ntake; i++) {
        const struct sync_file *const f = &a->at[d->take[i]];
        if (take_rights(c, f, a->names.at + f->path))
            continue;
        if (f->size <= STORE_WHOLE)
            few[n++] = d->take[i];
    }
    ok = take_short(c, a, few, n);
    for (size_t i = 0; ok && i < d->ntake; i++) {
        const struct sync_file *const f = &a->at[d->take[i]];
        const char *const path = a->names.at + f->path;
        if (f->size > STORE_WHOLE &&
            !contents_same(c->set, file_at_path(c->set, path), f))
            ok = take_long(c, f, path);
    }
    free(few);
    return ok;
}

static bool carry_out(struct sync_client *c, const struct arrivals *a,
                      const struct decisions *d)
{
    char why[SYNC_WHY];
    if (!take_files(c, a, d))
        return false;
    for (size_t i = 0; i < d->nremove_here; i++) {
        const struct sync_file *const f = &c->set->files[d->remove_here[i]];
        if (store_remove(c->set, f, why))
            c->report.removed++;
        else
            refused(c, file_path(c->set, f), why);
    }
    uint64_t *const gone = malloc((d->nremove_there + 1) * sizeof *gone);
    if (!gone)
        return no_memory(c);
    for (size_t i = 0; i < d->nremove_there; i++)
        gone[i] = a->at[d->remove_there[i]].element;
    const bool ok = say_remove(c, gone, d->nremove_there);
    free(gone);
    return ok && (!d->ngive || give_files(c, d->give, d->ngive));
}

static bool move_files(struct sync_client *c)
{
    struct arrivals a = { 0 };
    const size_t room = c->nmine + c->ntheirs + 1;
    size_t *const all = calloc(5 * room, sizeof *all);
    struct decisions d = {
        all, all + room, all + 2 * room, all + 3 * room, 0, 0, 0, 0
    };
    size_t *const sorted = all + 4 * room;
    a.seen = calloc(c->ntheirs + 1, 1);
    bool ok = all && a.seen ? ask_records(c, take_record, &a) : no_memory(c);
    if (ok) {
        for (size_t i = 0; i < a.n; i++)
            sorted[i] = i;
        qsort_r(sorted, a.n, sizeof *sorted, theirs_by_path, &a);
        decide_theirs(c, &a, &d);
        decide_mine(c, &a, sorted, &d);
        c->report.only_here -= c->report.changed < c->report.only_here
                                   ? c->report.changed
                                   : c->report.only_here;
        c->report.only_there -= c->report.changed < c->report.only_there
                                    ? c->report.changed
                                    : c->report.only_there;
        c->report.compared = c->line.sent + c->line.received;
        if (!c->dry_run)
            ok = carry_out(c, &a, &d);
    }
    free(all);
    free(a.seen);
    free(a.at);
    block_free(&a.names);
    return ok;
}

bool client_move(struct sync_client *c)
{
    return c->set->form == SYNC_LINES ? move_lines(c) : move_files(c);
}

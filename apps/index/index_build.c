/*
 * index_build.c - files into an index
 *
 * Every thread does what is to be done next: the terms of a block that was
 * read, or else another file. So one large file keeps all of them busy, and so
 * do many small ones.
 *
 *     file -> text -> block, block, block ...      one thread per file
 *                       |
 *                     terms -> filter -> index     any thread
 *
 * A file that changes while it is read is read again. One that cannot be read
 * is in the index all the same, as one that must be searched without it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/index/index_catalog.h"
#include "apps/index/index_job.h"
#include "apps/index/index_lines.h"
#include "base/clock.h"
#include "base/lookup.h"
#include "io/files.h"
#include "io/ordered.h"
#include "io/paths.h"
#include "io/unpack.h"
#include "report/say.h"

#define BLOCK_DEFAULT ((uint64_t)1 << 20)
#define BLOCK_LEAST ((uint64_t)4096)
#define BLOCK_MOST ((uint64_t)256 << 20)
#define LINE_MOST ((size_t)256 << 20) /* a block is as long as its line */
#define POINTS_DEFAULT ((uint64_t)16 << 20)
#define LOOK_BYTES ((size_t)32768) /* a NUL in as many makes a file binary */
#define PIECE_STEP ((size_t)256 << 10)
#define TRIES 3 /* for a file that changes */

/* Files change in steps of the system's clock. One that changed less than this
 * before it was read may change again and look the same. */
#define RACE_NS UINT64_C(20000000)

struct indexing;

/* What a thread has. */
struct hands {
    struct terms *terms;
    struct record_cutter cutter;
};

/* A file that is read, or whose last blocks are worked on. */
struct reading_file {
    const char *name;
    struct file_mark mark;
    struct input_file columns; /* of its records, where it has any */
    uint64_t *numbers;         /* of its documents */
    size_t n, room;
    size_t waiting; /* blocks that are not done */
};

struct block_job {
    struct reading_file *file;
    char *text;
    size_t n;
    struct block_place place;
    uint64_t back;
    unsigned char *window; /* its own copy */
    struct block_job *next;
};

struct path_to_do {
    char *name;
    uint64_t size;
};

struct indexing {
    const struct index_args *args;
    struct index_settings settings;
    bly_index_builder *builder;
    struct path_to_do *paths;
    size_t npaths, paths_room;
    struct stat output; /* the index itself, which is no text */
    bool has_output;
    const struct catalog *old; /* NULL: a new index */
    struct lookup seen;

    pthread_mutex_t mutex;
    pthread_cond_t more;
    struct block_job *first, **last; /* that wait */
    size_t njobs, most_jobs, nreaders, path;
    _Atomic bool stop;
    struct fields fields; /* that are indexed, where not all of a line is */
    uint64_t documents, text, files, binary, unread, unchanged, removed, done,
        total, bad;
    bool trouble;
};

static void building_fail(struct indexing *w, const char *why)
{
    pthread_mutex_lock(&w->mutex);
    if (!w->stop) {
        if (why)
            fail("%s", why);
        else
            fail_library();
    }
    w->stop = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->mutex);
}

/* ------------------------------------------------------------------- texts */

static unsigned text_flags(const char *text, size_t n)
{
    unsigned flags = memchr(text, 0, n) ? BLOCK_NULS : 0;
    size_t i = 0;
    while (i < n && (unsigned char)text[i] < 0x80)
        i++;
    if (i < n) {
        flags |= BLOCK_HIGH;
        if (!text_is_utf8(text, n))
            flags |= BLOCK_BAD;
    }
    return flags;
}

/* ------------------------------------------------------------------ blocks */

static void job_free(struct block_job *job)
{
    free(job->text);
    free(job->window);
    free(job);
}

/* A document whose terms were given. */
static void document_add(struct indexing *w, struct hands *me,
                         struct reading_file *f,
                         const struct block_place *place, uint64_t back)
{
    bly_index_terms given[TERM_CLASSES];
    struct bytes blob = { 0 };
    uint64_t number = 0;
    bool ok = !w->stop;
    if (ok && (!terms_done(me->terms, given) ||
               !blob_write(&blob, f->name, &f->mark, place, back))) {
        building_fail(w, "out of memory");
        ok = false;
    }
    if (ok &&
        bly_index_builder_add(w->builder, given, blob.at, blob.n, &number)) {
        building_fail(w, NULL);
        ok = false;
    }
    free(blob.at);
    pthread_mutex_lock(&w->mutex);
    if (ok && GROW(&f->numbers, &f->room, f->n + 1))
        f->numbers[f->n++] = number;
    else
        w->stop = true;
    f->waiting--;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->mutex);
}

/* The field of a block's records in the place of its text. */
static bool job_cut(struct indexing *w, struct hands *me,
                    const struct block_job *job, const char **text, size_t *n)
{
    struct record_cutter *const c = &me->cutter;
    if (!fields_cut(c, &job->file->columns, *text, *n, job->place.at == 0))
        return false;
    *text = (const char *)c->text.at;
    *n = c->text.n;
    if (!c->nbad)
        return true;
    pthread_mutex_lock(&w->mutex);
    if (w->bad == 0)
        note("%s: line %llu: %s; such records are empty for the index",
             job->file->name,
             (unsigned long long)(job->place.line + c->bad_line + 1), c->why);
    w->bad += c->nbad;
    pthread_mutex_unlock(&w->mutex);
    return true;
}

/* The terms of a block, and its place in the index. */
static void job_do(struct indexing *w, struct hands *me, struct block_job *job)
{
    const char *text = job->text;
    size_t n = job->n;
    if (text) {
        job->place.hash =
            bly_hash(bly_index_builder_hasher(w->builder), text, n);
        if (w->fields.in.picker && !job_cut(w, me, job, &text, &n))
            building_fail(w, "out of memory");
        job->place.flags |= text_flags(text, n);
    }
    terms_begin(me->terms);
    if (!w->stop && !terms_add(me->terms, text, n))
        building_fail(w, "out of memory");
    document_add(w, me, job->file, &job->place, job->back);
    job_free(job);
}

static struct block_job *job_take(struct indexing *w)
{
    struct block_job *const job = w->first;
    if (job) {
        w->first = job->next;
        if (!w->first)
            w->last = &w->first;
        w->njobs--;
    }
    return job;
}

/* Hand a block to whoever has time; do it here if nobody has. */
static void job_give(struct indexing *w, struct hands *me,
                     struct block_job *job)
{
    pthread_mutex_lock(&w->mutex);
    job->file->waiting++;
    const bool room = w->njobs < w->most_jobs;
    if (room) {
        *w->last = job;
        w->last = &job->next;
        w->njobs++;
        pthread_cond_signal(&w->more);
    }
    pthread_mutex_unlock(&w->mutex);
    if (!room)
        job_do(w, me, job);
}

/* All blocks of a file are done. */
static void file_settle(struct indexing *w, struct hands *me,
                        struct reading_file *f)
{
    pthread_mutex_lock(&w->mutex);
    while (f->waiting) {
        struct block_job *const job = job_take(w);
        if (!job) {
            pthread_cond_wait(&w->more, &w->mutex);
            continue;
        }
        pthread_mutex_unlock(&w->mutex);
        job_do(w, me, job);
        pthread_mutex_lock(&w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
}

/* ------------------------------------------------------------------- files */

/* A piece of text that grows. */
struct text_piece {
    char *at;
    size_t n, room;
    struct record_seeker seeker;
};

enum file_went { FILE_DONE, FILE_BINARY, FILE_BAD, FILE_CHANGED, FILE_STOP };

/* What a file turned out to be that is not a list of lines. */
static const char *binary_kind(const char *text, size_t n)
{
    bool more;
    const struct unpacker *const inner =
        unpacker_of((const unsigned char *)text, n, &more);
    if (inner)
        return inner->name;
    if (n > 262 && memcmp(text + 257, "ustar", 5) == 0)
        return "tar";
    if (n > 4 && memcmp(text, "PK\3\4", 4) == 0)
        return "zip";
    return NULL;
}

/* A block of a file: it takes the first n bytes of the piece. */
static bool block_give(struct indexing *w, struct hands *me,
                       struct reading_file *f, struct text_file *t,
                       struct text_piece *piece, size_t n, bool last,
                       struct block_place *at, uint64_t *entered)
{
    struct block_job *const job = calloc(1, sizeof *job);
    char *const text = malloc(n + 1);
    if (!job || !text) {
        free(job);
        free(text);
        building_fail(w, "out of memory");
        return false;
    }
    memcpy(text, piece->at, n);
    memmove(piece->at, piece->at + n, piece->n - n);
    piece->n -= n;
    piece->seeker = (struct record_seeker){ 0 };
    const struct text_entry *const e = text_file_entry_before(t, at->at);
    job->file = f;
    job->text = text;
    job->n = n;
    at->len = n;
    at->nlines = lines_count(text, n);
    at->flags = (last ? BLOCK_LAST : 0) |
                (text_file_packing(t) ? 0 : (unsigned)BLOCK_PLAIN);
    if (e && e->text && e->kind != ENTRY_XZ) { /* the file itself lists those */
        /* An entry is kept with the first block that uses it. */
        const uint64_t key = e->packed;
        if (entered[0] == key) {
            job->back = at->number - entered[1] + 1;
        } else {
            job->back = 1;
            at->entry = *e;
            at->has_entry = true;
            entered[0] = key;
            entered[1] = at->number;
            if (e->nwindow) {
                job->window = malloc(e->nwindow);
                if (!job->window) {
                    job_free(job);
                    building_fail(w, "out of memory");
                    return false;
                }
                memcpy(job->window, e->window, e->nwindow);
                at->entry.window = job->window;
            }
        }
    }
    job->place = *at;
    at->number++;
    at->at += n;
    at->line += at->nlines;
    pthread_mutex_lock(&w->mutex);
    w->documents++;
    w->text += n;
    pthread_mutex_unlock(&w->mutex);
    job_give(w, me, job);
    return true;
}

static void file_told(struct indexing *w, struct text_file *t, uint64_t *told)
{
    const uint64_t done = text_file_done(t);
    pthread_mutex_lock(&w->mutex);
    w->done += done - *told;
    *told = done;
    progress_at(w->text, w->done, w->total);
    pthread_mutex_unlock(&w->mutex);
}

/* Is the beginning of a file that of something other than lines of text? */
static bool is_binary(const struct indexing *w, const struct text_file *t,
                      const struct text_piece *piece, char error[200])
{
    const size_t n = piece->n < LOOK_BYTES ? piece->n : LOOK_BYTES;
    const char *const kind = n ? binary_kind(piece->at, n) : NULL;
    if (!n || w->settings.binary || (!kind && !memchr(piece->at, 0, n)))
        return false;
    if (kind)
        snprintf(error, 200, "%s%s%s", kind,
                 text_file_packing(t) ? " inside " : "",
                 text_file_packing(t) ? text_file_packing(t) : "");
    return true;
}

/* How many bytes of the piece are the next block: up to the end of a line, or
 * of a record. 0: more must be read to know. */
static size_t block_cut(const struct indexing *w, struct text_piece *piece,
                        size_t block, bool end)
{
    if (piece->n <= block)
        return end ? piece->n : 0;
    const size_t cut =
        fields_whole(&w->fields, &piece->seeker, piece->at, piece->n, block);
    const size_t n = cut ? cut : piece->n;
    return n < piece->n || end ? n : 0; /* the last block must be known as such
                                         */
}

/* Append text to the piece: FILE_DONE, or what is wrong. */
static enum file_went piece_fill(struct indexing *w, struct text_file *t,
                                 struct text_piece *piece, bool *end,
                                 char error[200])
{
    if (!GROW(&piece->at, &piece->room, piece->n + PIECE_STEP + BLOCK_SLACK)) {
        building_fail(w, "out of memory");
        return FILE_STOP;
    }
    const ptrdiff_t got = text_file_read(t, piece->at + piece->n, PIECE_STEP);
    if (got < 0) {
        snprintf(error, 200, "%s", text_file_error(t));
        return FILE_BAD;
    }
    *end = got == 0;
    piece->n += (size_t)got;
    return FILE_DONE;
}

/* Read a file once, and give its blocks. */
static enum file_went file_read(struct indexing *w, struct hands *me,
                                struct reading_file *f, struct text_file *t,
                                struct text_piece *piece, char error[200])
{
    const size_t block = (size_t)w->settings.block;
    struct block_place at = { 0 };
    uint64_t entered[2] = { UINT64_MAX, 0 }, told = 0;
    bool looked = false, end = false;
    piece->n = 0;
    piece->seeker = (struct record_seeker){ 0 };
    while (!end) {
        const enum file_went went = piece_fill(w, t, piece, &end, error);
        if (went != FILE_DONE)
            return went;
        if (!looked && (end || piece->n >= LOOK_BYTES)) {
            looked = true;
            if (is_binary(w, t, piece, error))
                return FILE_BINARY;
        }
        for (size_t n; (n = block_cut(w, piece, block, end)) ||
                       (end && at.number == 0);) {
            const bool last = end && n == piece->n;
            if (at.number == 0 && w->fields.csv &&
                !fields_columns(&w->fields, piece->at, n, &f->columns, error,
                                200))
                return FILE_BAD;
            if (!block_give(w, me, f, t, piece, n, last, &at, entered))
                return FILE_STOP;
            file_told(w, t, &told);
            if (last)
                break;
        }
        if (piece->n > LINE_MOST) {
            snprintf(error, 200, "a line has more than %zu MiB",
                     LINE_MOST >> 20);
            return FILE_BAD;
        }
        if (w->stop)
            return FILE_STOP;
    }
    file_told(w, t, &told);
    return text_file_unchanged(t) ? FILE_DONE : FILE_CHANGED;
}

/* Read a file of sequences, which is one document. */
static enum file_went sequences_read(struct indexing *w, struct hands *me,
                                     struct reading_file *f,
                                     struct text_file *t,
                                     struct text_piece *piece, char error[200])
{
    struct block_place at = { .flags = BLOCK_LAST };
    uint64_t told = 0;
    bool end = false;
    terms_begin(me->terms);
    while (!end && !w->stop) {
        piece->n = 0;
        const enum file_went went = piece_fill(w, t, piece, &end, error);
        if (went != FILE_DONE)
            return went;
        if (!terms_add(me->terms, piece->at, piece->n)) {
            building_fail(w, "out of memory");
            return FILE_STOP;
        }
        at.len += piece->n;
        file_told(w, t, &told);
    }
    if (!text_file_packing(t))
        at.flags |= BLOCK_PLAIN;
    pthread_mutex_lock(&w->mutex);
    w->documents++;
    w->text += at.len;
    f->waiting++;
    pthread_mutex_unlock(&w->mutex);
    document_add(w, me, f, &at, 0);
    return w->stop                  ? FILE_STOP
           : text_file_unchanged(t) ? FILE_DONE
                                    : FILE_CHANGED;
}

/* Whatever was added of the file is dropped again. */
static void file_drop(struct indexing *w, struct hands *me,
                      struct reading_file *f)
{
    file_settle(w, me, f);
    for (size_t i = 0; i < f->n && !w->stop; i++)
        if (bly_index_builder_drop(w->builder, f->numbers[i]))
            building_fail(w, NULL);
    pthread_mutex_lock(&w->mutex);
    w->documents -= f->n;
    pthread_mutex_unlock(&w->mutex);
    f->n = 0;
}

/* A file of which the index knows only that it is there. */
static void file_mention(struct indexing *w, struct hands *me,
                         struct reading_file *f, unsigned flag)
{
    struct block_job *const job = calloc(1, sizeof *job);
    if (!job) {
        building_fail(w, "out of memory");
        return;
    }
    job->file = f;
    job->place.flags = flag | BLOCK_LAST;
    pthread_mutex_lock(&w->mutex);
    f->waiting++;
    w->documents++;
    pthread_mutex_unlock(&w->mutex);
    job_do(w, me, job);
}

static bool raced(const struct file_mark *mark)
{
    const int64_t now = clock_day_ns();
    return (int64_t)mark->mtime + (int64_t)RACE_NS > now ||
           (int64_t)mark->ctime + (int64_t)RACE_NS > now;
}

static void file_index(struct indexing *w, struct hands *me, const char *name,
                       struct text_piece *piece)
{
    struct reading_file f = { .name = name };
    enum file_went went = FILE_BAD;
    char error[200] = "";
    for (unsigned tries = 0; tries < TRIES && !w->stop; tries++) {
        struct text_file *const t = text_file_open(name, w->settings.points);
        if (!t) {
            if (errno == ENOENT) /* it has vanished: there is nothing in it */
                goto gone;
            snprintf(error, sizeof error, "%s", strerror(errno));
            went = FILE_BAD;
            break;
        }
        f.mark = mark_of(text_file_stat(t));
        went = (w->settings.terms.has[TERM_KMERS] ? sequences_read : file_read)(
            w, me, &f, t, piece, error);
        if (went == FILE_DONE && raced(&f.mark)) {
            const struct timespec wait = { 0, (long)RACE_NS };
            nanosleep(&wait, NULL);
            went = text_file_unchanged(t) ? FILE_DONE : FILE_CHANGED;
        }
        text_file_close(t);
        if (went == FILE_DONE || went == FILE_STOP)
            break;
        file_drop(w, me, &f);
        if (went != FILE_CHANGED)
            break;
        snprintf(error, sizeof error, "changes while it is read");
    }
    file_settle(w, me, &f);
    if (went != FILE_DONE && !w->stop) {
        file_mention(w, me, &f,
                     went == FILE_BINARY ? BLOCK_BINARY : BLOCK_UNREAD);
        if (went == FILE_BINARY && *error)
            note("%s: left out: %s, which is not lines of text", name, error);
        else if (went != FILE_BINARY)
            fail("%s: %s; a search will read it without the index", name,
                 error);
    }
    pthread_mutex_lock(&w->mutex);
    w->files++;
    w->binary += went == FILE_BINARY;
    w->unread += went == FILE_BAD || went == FILE_CHANGED;
    w->trouble |= went == FILE_BAD || went == FILE_CHANGED;
    pthread_mutex_unlock(&w->mutex);
gone:
    free(f.numbers);
}

static void *index_worker(void *ctx)
{
    struct indexing *const w = ctx;
    struct hands own = { .terms =
                             terms_new(bly_index_builder_hasher(w->builder),
                                       &w->settings.terms),
                         .cutter = { .fields = &w->fields } };
    struct hands *const me = &own;
    struct text_piece piece = { 0 };
    if (!own.terms)
        building_fail(w, "out of memory");
    pthread_mutex_lock(&w->mutex);
    for (;;) {
        struct block_job *const job = job_take(w);
        if (job) {
            pthread_mutex_unlock(&w->mutex);
            if (own.terms)
                job_do(w, me, job);
            else
                job_free(job);
            pthread_mutex_lock(&w->mutex);
        } else if (w->path < w->npaths && !w->stop) {
            const char *const name = w->paths[w->path++].name;
            w->nreaders++;
            pthread_mutex_unlock(&w->mutex);
            file_index(w, me, name, &piece);
            pthread_mutex_lock(&w->mutex);
            w->nreaders--;
            pthread_cond_broadcast(&w->more);
        } else if (w->nreaders) {
            pthread_cond_wait(&w->more, &w->mutex);
        } else {
            break;
        }
    }
    pthread_mutex_unlock(&w->mutex);
    terms_free(own.terms);
    fields_cutter_free(&own.cutter);
    free(piece.at);
    return NULL;
}

/* ------------------------------------------------------------ what to index */

/* Does this part of several get the file? By its name, so that each machine
 * finds the same ones. */
static bool is_ours(const struct indexing *w, const char *name)
{
    return part_has(w->settings.part, w->settings.nparts, name);
}

static bool to_index(void *ctx, const char *path, const struct stat *st)
{
    struct indexing *const w = ctx;
    if (!st) {
        if (errno != ENOENT || w->old == NULL) {
            fail_path(path, errno);
            w->trouble = true;
        }
        return true;
    }
    if (!S_ISREG(st->st_mode)) {
        fail("%s: not a regular file", path);
        w->trouble = true;
        return true;
    }
    if (w->has_output && st->st_ino == w->output.st_ino &&
        st->st_dev == w->output.st_dev)
        return true;
    if (!is_ours(w, path))
        return true;
    const uint64_t hash = table_hash(path, strlen(path));
    LOOKUP_EACH (&w->seen, hash, row) {
        if (strcmp(w->paths[row].name, path) == 0)
            return true;
    }
    struct known_file *const known = w->old ? catalog_find(w->old, path) : NULL;
    if (known) {
        const struct file_mark mark = mark_of(st);
        known->met = true;
        if (known->whole && marks_agree(&mark, &known->mark) &&
            !(known->flags & BLOCK_UNREAD)) {
            w->unchanged++;
            return true;
        }
    }
    char *const name = strdup(path);
    if (!name || !GROW(&w->paths, &w->paths_room, w->npaths + 1) ||
        !lookup_add(&w->seen, hash, w->npaths)) {
        free(name);
        fail("out of memory");
        w->stop = true;
        return false;
    }
    w->paths[w->npaths++] = (struct path_to_do){ name, (uint64_t)st->st_size };
    w->total += (uint64_t)st->st_size;
    return true;
}

static bool known_drop(struct indexing *w, const struct known_file *f)
{
    for (size_t i = 0; i < f->nblocks; i++)
        if (bly_index_builder_drop(w->builder, f->blocks[i].document)) {
            fail_library();
            return false;
        }
    return true;
}

/* Old files that are gone, or are read again, leave. */
static bool drop_old(struct indexing *w)
{
    for (size_t i = 0; w->old && i < w->old->nfiles; i++) {
        const struct known_file *const f = &w->old->files[i];
        bool again = false;
        LOOKUP_EACH (&w->seen, table_hash(f->name, strlen(f->name)), row) {
            again |= strcmp(w->paths[row].name, f->name) == 0;
        }
        struct stat st;
        const bool gone = !again && !f->met && lstat(f->name, &st) != 0 &&
                          (errno == ENOENT || errno == ENOTDIR);
        w->removed += gone;
        if ((again || gone) && !known_drop(w, f))
            return false;
    }
    return true;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct path_to_do *)a)->name,
                  ((const struct path_to_do *)b)->name);
}

/* Read all files, with so many threads. */
static bool index_files(struct indexing *w, unsigned nthreads)
{
    pthread_t threads[256];
    unsigned n = 0;
    qsort(w->paths, w->npaths, sizeof *w->paths, by_path);
    w->last = &w->first;
    w->most_jobs = nthreads > 1 ? nthreads * (size_t)2 : 0;
    progress_unit("bytes of text");
    progress_start(false);
    while (n + 1 < nthreads && n < 256 &&
           pthread_create(&threads[n], NULL, index_worker, w) == 0)
        n++;
    index_worker(w);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    while (w->first) {
        struct block_job *const job = job_take(w);
        job_free(job);
    }
    progress_clear();
    return !w->stop;
}

static void indexing_free(struct indexing *w)
{
    for (size_t i = 0; i < w->npaths; i++)
        free(w->paths[i].name);
    free(w->paths);
    lookup_free(&w->seen);
    fields_free(&w->fields);
    settings_free(&w->settings);
    bly_index_builder_free(w->builder);
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->more);
}

static bool indexing_start(struct indexing *w, const struct index_args *args)
{
    *w = (struct indexing){ .args = args };
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->more, NULL);
    return true;
}

/* Commit, and say what it came to. */
static int indexing_end(struct indexing *w, const char *path, double start)
{
    bly_index *x;
    bly_index_stats stats;
    struct catalog c;
    if (bly_index_builder_commit(w->builder))
        return fail_library();
    if (bly_index_map(path, NULL, &x))
        return fail_library();
    bly_index_stat(x, &stats);
    if (!catalog_read(&c, x)) {
        bly_index_free(x);
        return TROUBLE;
    }
    struct index_built built = {
        .file = path,
        .files = w->files,
        .documents = w->documents,
        .text = w->text,
        .nbytes = stats.nbytes,
        .unchanged = w->unchanged,
        .removed = w->removed,
        .binary = w->binary,
        .unread = w->unread,
        .bad = w->bad,
        .all_files = c.nfiles,
        .all_documents = stats.documents - stats.dropped,
        .seconds = clock_seconds() - start,
        .share =
            w->text && !w->old ? (double)stats.nbytes / (double)w->text : NAN,
    };
    catalog_free(&c);
    bly_index_free(x);
    if (!quiet)
        report(stdout, w->args->json, index_built_fields, &built,
               "{file}: {files file/s} read, {text} of text in {documents "
               "block/s}[; {?unchanged}{unchanged} unchanged][; "
               "{?removed}{removed} removed][; {?binary}{binary} left out as "
               "binary][; {?unread}{unread} cannot be read][; {?bad}{bad "
               "record/s} without the field]; index {bytes}[, "
               "{share} of the text]\n");
    return w->trouble ? TROUBLE : YES;
}

/* ------------------------------------------------------------------- verbs */

static bool part_read(struct indexing *w, const char *text)
{
    unsigned i, n;
    char more;
    if (!text)
        return true;
    if (sscanf(text, "%u/%u%c", &i, &n, &more) != 2 || i < 1 || n < 1 ||
        i > n) {
        fail("--part takes I/N with 1 <= I <= N, such as 2/8, not '%s'", text);
        return false;
    }
    w->settings.part = i - 1;
    w->settings.nparts = n;
    return true;
}

static bool text_take(char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

/* The field that is indexed, if not all of a line is. */
static bool fields_take(struct indexing *w, const struct index_args *args)
{
    struct field_rules *const r = &w->settings.fields;
    if (args->id && !args->field && !args->csv && !args->jsonl)
        return fail("--id names the field that names a record: it needs "
                    "--jsonl, --csv or --field") == YES;
    if (args->kmers && (args->field || args->csv || args->jsonl))
        return fail("--kmers reads FASTA and FASTQ, which have no fields") ==
               YES;
    if (!text_take(&r->field, args->field) || !text_take(&r->csv, args->csv) ||
        !text_take(&r->jsonl, args->jsonl) || !text_take(&r->id, args->id) ||
        !text_take(&r->delimiter, args->delimiter))
        return fail("out of memory") == YES;
    r->no_header = args->no_header;
    return fields_new(&w->fields, r);
}

static bool settings_take(struct indexing *w, const struct index_args *args,
                          const struct list *operands)
{
    struct index_settings *const s = &w->settings;
    s->terms.has[TERM_KMERS] = args->kmers != 0;
    s->terms.has[TERM_GRAMS] = !args->kmers && !args->no_grams;
    s->terms.has[TERM_WORDS] = !args->kmers && !args->no_words;
    s->terms.fold = args->fold && !args->kmers;
    s->terms.k = (unsigned)args->kmers;
    s->binary = args->binary;
    s->block = args->block ? args->block : BLOCK_DEFAULT;
    s->points = args->points == INDEX_UNGIVEN ? POINTS_DEFAULT : args->points;
    if (!args->kmers && args->no_grams && args->no_words) {
        fail("--no-grams and --no-words leave nothing to index");
        return false;
    }
    if (s->block < BLOCK_LEAST || s->block > BLOCK_MOST) {
        fail("--block must be from 4KiB to 256MiB");
        return false;
    }
    if (!fields_take(w, args))
        return false;
    s->folder = getcwd(NULL, 0);
    bool ok = s->folder;
    for (size_t i = 0; ok && i < operands->n; i++)
        ok = settings_add(s, operands->at[i]);
    if (!ok)
        fail("out of memory");
    return ok;
}

int index_build(const struct index_args *args, const struct list *operands)
{
    struct indexing w;
    bly_index_class classes[TERM_CLASSES];
    size_t n = 0;
    const double start = clock_seconds();
    if (!args->output)
        return fail("-o FILE is needed: where the index goes");
    if (is_dash(args->output))
        return fail("an index is a file that is asked again and again, and "
                    "cannot go to standard output");
    if (args->kmers && (args->kmers < KMER_LEAST || args->kmers > KMER_MOST))
        return fail("--kmers takes %d to %d bases", KMER_LEAST, KMER_MOST);
    if (!indexing_start(&w, args) || !part_read(&w, args->part) ||
        !settings_take(&w, args, operands)) {
        indexing_free(&w);
        return TROUBLE;
    }
    if (w.settings.terms.has[TERM_GRAMS])
        classes[n++] =
            (bly_index_class){ term_class_names[TERM_GRAMS], args->gram_rate };
    if (w.settings.terms.has[TERM_WORDS])
        classes[n++] =
            (bly_index_class){ term_class_names[TERM_WORDS], args->word_rate };
    if (w.settings.terms.has[TERM_KMERS])
        classes[n++] =
            (bly_index_class){ term_class_names[TERM_KMERS], args->gram_rate };
    const bly_index_spec spec = { .classes = classes,
                                  .nclasses = n,
                                  .wait = wait_for_lock };
    int status = TROUBLE;
    if (bly_index_builder_new(args->output, &spec, &w.builder)) {
        fail_library();
        indexing_free(&w);
        return TROUBLE;
    }
    w.has_output = stat(args->output, &w.output) == 0;
    bool ok = true;
    for (size_t i = 0; ok && i < operands->n; i++)
        ok = index_walk(operands->at[i], to_index, &w);
    if (ok && w.npaths == 0 && w.trouble)
        ok = false;
    if (ok && index_files(&w, thread_count(args->threads)) &&
        settings_keep(&w.settings, w.builder))
        status = indexing_end(&w, args->output, start);
    indexing_free(&w);
    return status;
}

int index_add(const struct index_args *args, const struct list *operands)
{
    struct indexing w;
    struct catalog old = { 0 };
    const char *const path = operands->at[0];
    const double start = clock_seconds();
    const bly_index_spec spec = { .wait = wait_for_lock };
    int status = TROUBLE;
    if (!indexing_start(&w, args))
        return TROUBLE;
    if (bly_index_builder_open(path, &spec, &w.builder)) {
        fail_library();
        indexing_free(&w);
        return TROUBLE;
    }
    const bly_index *const x = bly_index_builder_old(w.builder);
    bool ok = x && settings_read(&w.settings, x, path) &&
              (!fields_any(&w.settings.fields) ||
               fields_new(&w.fields, &w.settings.fields)) &&
              catalog_read(&old, x);
    w.old = &old;
    w.has_output = stat(path, &w.output) == 0;
    for (size_t i = 1; ok && i < operands->n; i++) {
        ok = settings_add(&w.settings, operands->at[i]);
        if (!ok)
            fail("out of memory");
    }
    if (ok && operands->n > 1)
        for (size_t i = 1; ok && i < operands->n; i++)
            ok = index_walk(operands->at[i], to_index, &w);
    else
        for (size_t i = 0; ok && i < w.settings.nroots; i++)
            ok = index_walk(w.settings.roots[i], to_index, &w);
    ok = ok && drop_old(&w) && index_files(&w, thread_count(args->threads));
    if (ok && bly_index_wants_compaction(x))
        bly_index_builder_compact(w.builder);
    if (ok && settings_keep(&w.settings, w.builder))
        status = indexing_end(&w, path, start);
    catalog_free(&old);
    indexing_free(&w);
    return status;
}

/*
 * documents.c - the job at hand, and the rows of documents: where they are kept
 *
 * Arrays by document that grow together. The components are most of it, k words
 * a document. With a folder to work in all of them are in files there
 * (store.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/dedup/dedup.h"

/* A quarter of the memory each for arrays and for sets of shingles; sorting has
 * half. */
void dedup_job_init(struct dedup_job *job, const struct dedup_options *opt)
{
    *job = (struct dedup_job){
        .opt = opt,
        .store = { .folder = opt->work, .limit = opt->memory / 4 },
    };
}

void dedup_job_free(struct dedup_job *job)
{
    store_free(&job->store);
    if (job->work_fd > 0)
        close(job->work_fd);
}

bool dedup_fail(struct dedup_job *job, const char *format, ...)
{
    va_list ap;
    if (job->error[0])
        return false;
    va_start(ap, format);
    vsnprintf(job->error, sizeof job->error, format, ap);
    va_end(ap);
    return false;
}

bool dedup_no_room(struct dedup_job *job, const char *what)
{
    const int error = errno;
    const char *const folder = job->store.folder;
    if (error == ENOENT || error == ENOTDIR || error == EACCES ||
        error == EROFS)
        return dedup_fail(job,
                          "%s: no file for %s can be made there: %s; name a "
                          "folder that can be written to with --work%s",
                          job->opt->folder, what, strerror(error),
                          job->opt->work ? "" : " or TMPDIR");
    return dedup_fail(job, "no room for %s: %s%s%s", what, strerror(error),
                      folder ? " in " : "", folder ? folder : "");
}

uint64_t dedup_chain(uint64_t sum, const void *bytes, size_t n)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = sum };
    return bly_hash(&h, bytes, n);
}

bool dedup_grow(void **p, uint64_t n, size_t size)
{
    if (n == 0)
        n = 1;
    void *const more =
        n > SIZE_MAX / size ? NULL : realloc(*p, (size_t)n * size);
    if (!more)
        return false;
    *p = more;
    return true;
}

bool dedup_room(struct dedup_job *job, uint64_t n, struct dedup_docs *docs)
{
    const struct dedup_options *const o = job->opt;
    struct dedup_store *const s = &job->store;
    const uint64_t want = docs->n + n;
    if (want > DEDUP_MAX_DOCS - 1)
        return dedup_fail(job, "more than 2^32 - 2 documents");
    if (want <= docs->room)
        return true;
    const uint64_t room = want + want / 2;
    if ((!o->whole_only && !STORE(s, docs->rows, room * docs->k)) ||
        !STORE(s, docs->hashes, room) || !STORE(s, docs->nshingles, room) ||
        !STORE(s, docs->states, room) ||
        (o->priority != DEDUP_FIRST && !STORE(s, docs->values, room)) ||
        (o->want_ids && !STORE(s, docs->id_start, room + 1)))
        return dedup_no_room(job, "documents");
    if (docs->id_start && docs->n == 0)
        docs->id_start[0] = 0;
    docs->room = room;
    return true;
}

static bool append_ids(struct dedup_job *job, const struct dedup_part *p,
                       struct dedup_docs *docs)
{
    const uint64_t want = docs->ids_len + p->ids_len;
    if (!docs->id_start)
        return true;
    if (!STORE_ROOM(&job->store, docs->ids, docs->ids_room, want))
        return dedup_no_room(job, "ids");
    if (p->ids_len)
        memcpy(docs->ids + docs->ids_len, p->ids, p->ids_len);
    for (size_t i = 0; i < p->n; i++)
        docs->id_start[docs->n + i + 1] = docs->ids_len + p->id_end[i];
    docs->ids_len = want;
    return true;
}

bool dedup_append(struct dedup_job *job, const struct dedup_part *p,
                  struct dedup_docs *docs)
{
    const size_t k = docs->k, n = p->n;
    const uint64_t at = docs->n;
    if (!dedup_room(job, n, docs) || !append_ids(job, p, docs))
        return false;
    if (docs->rows)
        memcpy(docs->rows + at * k, p->rows, n * k * sizeof *p->rows);
    memcpy(docs->hashes + at, p->hashes, n * sizeof *p->hashes);
    memcpy(docs->nshingles + at, p->nshingles, n * sizeof *p->nshingles);
    memcpy(docs->states + at, p->states, n);
    if (docs->values)
        memcpy(docs->values + at, p->values, n * sizeof *p->values);
    for (size_t i = 0; i < n; i++)
        docs->seen.empty += p->states[i] == DOC_EMPTY;
    docs->n += n;
    docs->seen.text_bytes += p->text_bytes;
    store_trim_now(&job->store);
    return true;
}

bool dedup_part_room(struct dedup_part *p, size_t k, size_t n)
{
    if (n <= p->room)
        return true;
    if (n > SIZE_MAX / (k ? k : 1) || !GROW(p->rows, n * k) ||
        !GROW(p->hashes, n) || !GROW(p->nshingles, n) || !GROW(p->states, n) ||
        !GROW(p->values, n) || !GROW(p->id_end, n))
        return false;
    p->room = n;
    return true;
}

void dedup_plain_id(char *id, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)id[i] < ' ' || id[i] == 0x7f)
            id[i] = '?';
}

bool dedup_part_id(struct dedup_part *p, const void *id, size_t n)
{
    const size_t want = p->ids_len + n;
    if (!ROOM(p->ids, p->ids_room, want))
        return false;
    if (n) { /* else there may be no room yet */
        memcpy(p->ids + p->ids_len, id, n);
        dedup_plain_id(p->ids + p->ids_len, n);
    }
    p->ids_len = want;
    return true;
}

void dedup_part_free(struct dedup_part *p)
{
    free(p->rows);
    free(p->hashes);
    free(p->nshingles);
    free(p->states);
    free(p->values);
    free(p->id_end);
    free(p->ids);
    *p = (struct dedup_part){ 0 };
}

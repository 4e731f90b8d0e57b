/*
 * documents.c - the rows of documents: where they are kept
 *
 * Arrays by document that grow together. The components are most of it, k words
 * a document. With a folder to work in all of them are in files there
 * (store.h).
 */
#define _GNU_SOURCE /* clock_gettime */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/dedup/dedup.h"

bool dedup_fail(struct dedup *d, const char *format, ...)
{
    va_list ap;
    if (d->error[0])
        return false;
    va_start(ap, format);
    vsnprintf(d->error, sizeof d->error, format, ap);
    va_end(ap);
    return false;
}

double dedup_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A quarter of the memory each for arrays and for sets of shingles; sorting has
 * half. */
void dedup_init(struct dedup *d)
{
    d->store =
        (struct store){ .folder = d->opt->work, .limit = d->opt->memory / 4 };
    d->sets = d->store;
}

void dedup_free(struct dedup *d)
{
    struct store *const s = &d->store;
    void *const arrays[] = {
        d->rows,       d->hashes,       d->nshingles,   d->states,
        d->values,     d->id_start,     d->ids,         d->rank,
        d->order,      d->same,         d->witness,     d->cluster,
        d->likeness,   d->buckets.docs, d->buckets.at,  d->buckets.first,
        d->buckets.of, d->pairs.at,     d->pairs.slots, d->set_at,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        store_release(s, arrays[i]);
    store_free(s);
    store_release(&d->sets, d->set_words);
    store_free(&d->sets);
    if (d->work_fd > 0)
        close(d->work_fd);
}

bool dedup_no_room(struct dedup *d, const char *what)
{
    const int error = errno;
    const char *const folder = d->opt->folder;
    if (error == ENOENT || error == ENOTDIR || error == EACCES ||
        error == EROFS)
        return dedup_fail(d,
                          "%s: no file for %s can be made there: %s; right: a "
                          "folder that can be written to, by --work%s",
                          folder, what, strerror(error),
                          d->opt->work ? "" : " or TMPDIR");
    return dedup_fail(d, "no room for %s: %s%s%s", what, strerror(error),
                      d->store.folder ? " in " : "",
                      d->store.folder ? d->store.folder : "");
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

bool dedup_room(struct dedup *d, uint64_t n)
{
    const uint64_t want = d->n + n;
    if (want > DEDUP_MAX_DOCS - 1)
        return dedup_fail(d, "more than 2^32 - 2 documents");
    if (want <= d->room)
        return true;
    const uint64_t room = want + want / 2;
    const uint64_t k = d->opt->sketch.k;
    struct store *const s = &d->store;
    if ((!d->opt->whole_only && !STORE(s, d->rows, room * k)) ||
        !STORE(s, d->hashes, room) || !STORE(s, d->nshingles, room) ||
        !STORE(s, d->states, room) ||
        (d->opt->priority != DEDUP_FIRST && !STORE(s, d->values, room)) ||
        (d->opt->want_ids && !STORE(s, d->id_start, room + 1)))
        return dedup_no_room(d, "documents");
    d->room = room;
    return true;
}

static bool append_ids(struct dedup *d, const struct dedup_part *p)
{
    if (!d->id_start)
        return true;
    if (d->ids_len + p->ids_len > d->ids_room) {
        if (!STORE(&d->store, d->ids, (d->ids_len + p->ids_len) * 2))
            return dedup_no_room(d, "ids");
        d->ids_room = (d->ids_len + p->ids_len) * 2;
    }
    if (p->ids_len)
        memcpy(d->ids + d->ids_len, p->ids, p->ids_len);
    for (size_t i = 0; i < p->n; i++)
        d->id_start[d->n + i + 1] = d->ids_len + p->id_end[i];
    d->ids_len += p->ids_len;
    return true;
}

bool dedup_append(struct dedup *d, const struct dedup_part *p)
{
    const size_t k = d->opt->sketch.k, n = p->n;
    if (!dedup_room(d, n) || !append_ids(d, p))
        return false;
    if (!d->opt->whole_only)
        memcpy(d->rows + d->n * k, p->rows, n * k * sizeof *p->rows);
    memcpy(d->hashes + d->n, p->hashes, n * sizeof *p->hashes);
    memcpy(d->nshingles + d->n, p->nshingles, n * sizeof *p->nshingles);
    memcpy(d->states + d->n, p->states, n);
    if (d->values)
        memcpy(d->values + d->n, p->values, n * sizeof *p->values);
    for (size_t i = 0; i < n; i++)
        d->report.empty += p->states[i] == DOC_EMPTY;
    d->n += n;
    d->report.text_bytes += p->text_bytes;
    store_trim_now(&d->store);
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

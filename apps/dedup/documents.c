/*
 * documents.c - the rows of documents: where they are kept
 *
 * Arrays by document that grow together. The components are most of it, k words
 * a document; with a folder to work in they are in a file there that has no
 * name, mapped, so that the system may bring them out of memory.
 */
#define _GNU_SOURCE /* mremap, mkostemp */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

void dedup_free(struct dedup *d)
{
    if (d->rows_mapped)
        munmap(d->rows, d->rows_mapped);
    else
        free(d->rows);
    if (d->rows_fd > 0)
        close(d->rows_fd);
    free(d->hashes);
    free(d->nshingles);
    free(d->states);
    free(d->values);
    free(d->id_start);
    free(d->ids);
    free(d->rank);
    free(d->order);
    free(d->same);
    free(d->witness);
    free(d->cluster);
    free(d->likeness);
    free(d->buckets.start);
    free(d->buckets.docs);
    free(d->buckets.doc_start);
    free(d->buckets.of_doc);
    dedup_pairs_free(&d->pairs);
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

bool dedup_rows_in(struct dedup *d, const char *folder)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/rows-XXXXXX", folder);
    d->rows_fd = mkostemp(name, 0);
    if (d->rows_fd < 0)
        return dedup_fail(d, "%s: %s", folder, strerror(errno));
    unlink(name);
    return true;
}

/* Room for n words of components. */
static bool rows_room(struct dedup *d, uint64_t n)
{
    if (d->rows_fd <= 0)
        return GROW(d->rows, n);
    n = (n + 1) * sizeof *d->rows;
    /* Allocated, not only promised: a full disk is an error here and would be
     * a signal later. */
    if (n > SIZE_MAX || posix_fallocate(d->rows_fd, 0, (off_t)n) != 0)
        return false;
    void *const map =
        d->rows_mapped
            ? mremap(d->rows, d->rows_mapped, (size_t)n, MREMAP_MAYMOVE)
            : mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_SHARED,
                   d->rows_fd, 0);
    if (map == MAP_FAILED)
        return false;
    d->rows = map;
    d->rows_mapped = (size_t)n;
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
    if (!rows_room(d, room * k) || !GROW(d->hashes, room) ||
        !GROW(d->nshingles, room) || !GROW(d->states, room) ||
        (d->opt->priority != DEDUP_FIRST && !GROW(d->values, room)) ||
        (d->opt->want_ids && !GROW(d->id_start, room + 1)))
        return dedup_fail(d,
                          "out of memory, or of room in the folder of --work, "
                          "for %llu documents",
                          (unsigned long long)room);
    d->room = room;
    return true;
}

static bool append_ids(struct dedup *d, const struct dedup_part *p)
{
    if (!d->id_start)
        return true;
    if (d->ids_len + p->ids_len > d->ids_room) {
        if (!GROW(d->ids, (d->ids_len + p->ids_len) * 2))
            return dedup_fail(d, "out of memory");
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

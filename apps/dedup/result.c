/*
 * result.c - what is found, as lists of ids
 *
 *     pairs      id TAB id TAB J     the lesser id first, lines sorted
 *     clusters   id TAB number       those that stand alone are left out
 *     removed    id TAB witness TAB J
 *
 * An id is the id field as it stands in the line, or FILE:LINE.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/dedup.h"
#include "apps/dedup/out_file.h"

/* The file that a document is a line of. */
static const struct lines_file *file_of(const struct dedup *d, uint64_t line)
{
    size_t from = 0, to = d->in->nfiles;
    while (to - from > 1) {
        const size_t mid = from + (to - from) / 2;
        if (d->in->files[mid].first <= line)
            from = mid;
        else
            to = mid;
    }
    return &d->in->files[from];
}

void dedup_plain_id(char *id, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)id[i] < ' ' || id[i] == 0x7f)
            id[i] = '?';
}

size_t dedup_id(const struct dedup *d, uint32_t doc, char *buf, size_t room,
                const char **at)
{
    if (d->id_start && d->id_start[doc + 1] > d->id_start[doc]) {
        *at = d->ids + d->id_start[doc];
        return (size_t)(d->id_start[doc + 1] - d->id_start[doc]);
    }
    int n;
    *at = buf;
    if (doc < d->base) {
        n = snprintf(buf, room, "index:%lu", (unsigned long)doc + 1);
    } else {
        const uint64_t line = doc - d->base;
        const struct lines_file *const f = file_of(d, line);
        n = d->in->whole ? snprintf(buf, room, "%s", f->name)
                         : snprintf(buf, room, "%s:%llu", f->name,
                                    (unsigned long long)(line - f->first + 1));
    }
    const size_t len = (size_t)n < room ? (size_t)n : room - 1;
    dedup_plain_id(buf, len);
    return len;
}

#define ID_ROOM 4200

static void put_id(const struct dedup *d, struct out_file *o, uint32_t doc)
{
    char buf[ID_ROOM];
    const char *at;
    const size_t n = dedup_id(d, doc, buf, sizeof buf, &at);
    out_put(o, at, n);
}

static bool close_list(struct dedup *d, struct out_file *o)
{
    return out_close(o, true) || dedup_fail(d, "%s", o->why);
}

static bool open_list(struct dedup *d, struct out_file *o, const char *path)
{
    return out_open(o, path, d->opt->wait) || dedup_fail(d, "%s", o->why);
}

bool dedup_write_removed(struct dedup *d, const char *path)
{
    struct out_file o;
    if (!open_list(d, &o, path))
        return false;
    for (uint32_t i = d->base; dedup_more(d, i); i++) {
        if (d->witness[i] == DEDUP_NONE)
            continue;
        put_id(d, &o, i);
        out_put(&o, "\t", 1);
        put_id(d, &o, d->witness[i]);
        out_print(&o, "\t%.4f\n", d->likeness[i]);
    }
    return close_list(d, &o);
}

bool dedup_write_clusters(struct dedup *d, const char *path)
{
    struct out_file o;
    uint32_t *number;
    if (!STORE_ZEROS(&d->store, number, d->n))
        return dedup_no_room(d, "clusters");
    if (!open_list(d, &o, path)) {
        store_release(&d->store, number);
        return false;
    }
    for (uint32_t i = 0; dedup_more(d, i); i++)
        if (d->cluster[i] != i)
            number[d->cluster[i]] = 1; /* has another member */
    uint32_t next = 0;
    for (uint32_t i = 0; dedup_more(d, i); i++) {
        const uint32_t c = d->cluster[i];
        if (number[c] == 0)
            continue;
        if (number[c] == 1) /* its first member to be written */
            number[c] = ++next + 1;
        put_id(d, &o, i);
        out_print(&o, "\t%lu\n", (unsigned long)number[c] - 1);
    }
    store_release(&d->store, number);
    return close_list(d, &o);
}

/* ------------------------------------------------------------------- pairs */

/* Lines one after the other, each with its end; and where they begin. */
struct pair_lines {
    struct dedup *d;
    char *text;
    uint64_t len, room;
    uint64_t *starts;
    uint64_t n, starts_room;
};

static int by_text(const void *x, const void *y, void *ctx)
{
    const struct pair_lines *const l = ctx;
    store_trim(&l->d->store);
    return strcmp(l->text + *(const uint64_t *)x,
                  l->text + *(const uint64_t *)y);
}

static bool put_pair(struct pair_lines *l, uint32_t a, uint32_t b, double j)
{
    struct dedup *const d = l->d;
    char abuf[ID_ROOM], bbuf[ID_ROOM];
    const char *ida, *idb;
    size_t na = dedup_id(d, a, abuf, sizeof abuf, &ida);
    size_t nb = dedup_id(d, b, bbuf, sizeof bbuf, &idb);
    const int c = memcmp(ida, idb, na < nb ? na : nb);
    if (c > 0 || (c == 0 && na > nb)) {
        const char *const id = ida;
        const size_t n = na;
        ida = idb;
        na = nb;
        idb = id;
        nb = n;
    }
    const uint64_t most = na + nb + 64;
    if (l->n == l->starts_room) {
        if (!STORE(&d->store, l->starts, (l->n + 64) * 2))
            return dedup_no_room(d, "pairs");
        l->starts_room = (l->n + 64) * 2;
    }
    if (l->len + most > l->room) {
        if (!STORE(&d->store, l->text, (l->len + most) * 2))
            return dedup_no_room(d, "pairs");
        l->room = (l->len + most) * 2;
    }
    l->starts[l->n++] = l->len;
    l->len +=
        (uint64_t)snprintf(l->text + l->len, (size_t)most, "%.*s\t%.*s\t%.4f\n",
                           (int)na, ida, (int)nb, idb, j) +
        1;
    store_trim(&d->store);
    return true;
}

bool dedup_write_pairs(struct dedup *d, const char *path)
{
    struct out_file o;
    const double t = d->opt->verify == DEDUP_UNCHECKED ? 0 : d->opt->threshold;
    struct pair_lines l = { .d = d };
    bool ok = true;
    for (size_t i = 0; ok && i < d->pairs.n; i++) {
        const struct dedup_pair *const p = &d->pairs.at[i];
        if (p->likeness >= t)
            ok = put_pair(&l, p->a, p->b, p->likeness);
    }
    for (uint32_t i = d->base; ok && dedup_more(d, i); i++)
        if (d->same[i] != i)
            ok = put_pair(&l, d->same[i], i, 1);
    ok = ok && open_list(d, &o, path);
    if (ok) {
        if (l.n)
            qsort_r(l.starts, (size_t)l.n, sizeof *l.starts, by_text, &l);
        for (uint64_t i = 0; i < l.n; i++) {
            out_put(&o, l.text + l.starts[i], strlen(l.text + l.starts[i]));
            store_trim(&d->store);
        }
        ok = close_list(d, &o);
    }
    store_release(&d->store, l.text);
    store_release(&d->store, l.starts);
    return ok;
}

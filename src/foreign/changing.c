/*
 * changing.c - filters of other systems that change: copies, pieces, records
 *
 * The calls of bloomery.h check their arguments and hand over to the row of
 * the format (format.h). A filter that is made here and fails on the way is
 * closed as one that was opened, so a row leaves own in a state that close()
 * understands.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "core/sized.h"
#include "foreign/format.h"
#include "format/filter_files.h"
#include "format/replace.h"

/* f where st is BLY_OK, else none. */
static bly_status handed(bly_status st, bly_foreign *f, bly_foreign **out)
{
    if (st) {
        bly_foreign_free(f);
    } else {
        bly_foreign_made(f);
        *out = f;
    }
    return st;
}

static bly_status cannot(const bly_foreign *f, const char *what)
{
    return bly_fail(BLY_ENOTSUP, "a filter of the format %s %s",
                    bly_row_of(f)->name, what);
}

/* May f be changed by a function of its row? */
static bly_status foreign_can_change(const bly_foreign *f, bool able,
                                     const char *what)
{
    return !able ? cannot(f, what)
           : bly_foreign_opened(f) || !f->planned
               ? bly_fail(BLY_EREADONLY, "an opened foreign filter cannot be "
                                         "changed")
               : BLY_OK;
}

/* ------------------------------------------------------------------- copies */

bly_status bly_foreign_copy(const bly_foreign *f, bly_foreign **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!f)
        return bly_fail_null("f");
    if (!bly_row_of(f)->copy || (!bly_foreign_opened(f) && !f->planned))
        return cannot(f, "is not copied");
    return bly_foreign_copy_by(f, bly_row_of(f)->copy, out);
}

bly_status bly_foreign_copy_by(const bly_foreign *f, bly_foreign_copier *copy,
                               bly_foreign **out)
{
    const bly_foreign_spec spec = { .format = bly_row_of(f)->name,
                                    .max_bytes = bly_foreign_most(f),
                                    .mem = f->mem };
    bly_foreign *to;
    const bly_status st = bly_foreign_blank(&spec, sizeof spec, &to);
    if (st)
        return st;
    to->form = f->form; /* and else the options are in what is copied */
    to->nadded = f->nadded;
    return handed(copy(f, to), to, out);
}

bly_status bly_foreign_edit_sized(const bly_foreign_spec *spec,
                                  const void *bytes, size_t nbytes,
                                  bly_foreign **out, size_t size)
{
    bly_foreign *f;
    bly_status st =
        bly_foreign_open_sized(spec, bytes, nbytes, out ? &f : NULL, size);
    if (out)
        *out = NULL;
    if (st)
        return st;
    st = bly_row_of(f)->add ? bly_foreign_copy(f, out)
                            : cannot(f, "takes no keys once it is made");
    bly_foreign_free(f);
    return st;
}

/* -------------------------------------------------------------------- files */

typedef struct foreign_update {
    const bly_foreign_spec *spec;
    bly_foreign_change *change;
    void *ctx;
    bly_foreign *f;
} foreign_update;

static bly_status foreign_update_read(void *what, const char *path,
                                      bly_file *in)
{
    foreign_update *const u = what;
    const bly_mem *const mem =
        u->spec && u->spec->mem ? u->spec->mem : &bly_mem_system;
    const size_t n = (size_t)in->nbytes;
    unsigned char *const bytes =
        in->nbytes < SIZE_MAX / 2 ? mem->alloc(mem->ctx, n ? n : 1) : NULL;
    if (!bytes)
        return bly_fail(BLY_ENOMEM, "%s: out of memory: %llu bytes", path,
                        (unsigned long long)in->nbytes);
    const int64_t got = bly_fd_read(in->fd, bytes, n);
    bly_status st =
        got < 0
            ? bly_io_fail(path, "read", errno)
            : bly_named_fail(
                  bly_foreign_edit(u->spec, bytes, (size_t)got, &u->f), path);
    bly_mem_release(mem, bytes, n ? n : 1);
    return st ? st : u->change(u->f, u->ctx);
}

static bly_status foreign_update_write(const void *what, bly_put *put,
                                       void *ctx)
{
    return bly_foreign_write(((const foreign_update *)what)->f, put, ctx);
}

bly_status bly_foreign_update_sized(const char *path, const bly_access *how,
                                    size_t how_size,
                                    const bly_foreign_spec *spec,
                                    size_t spec_size,
                                    bly_foreign_change *change, void *ctx)
{
    bly_access own_how;
    bly_foreign_spec own_spec;
    if (!path || !change)
        return bly_fail_null("path or change");
    if ((how && !(how = BLY_TAKE(how, how_size, &own_how))) ||
        (spec && !(spec = BLY_TAKE(spec, spec_size, &own_spec))))
        return BLY_EINVAL;
    foreign_update u = { spec, change, ctx, NULL };
    const bly_status st = bly_file_change(path, how, NULL, foreign_update_read,
                                          foreign_update_write, &u);
    bly_foreign_free(u.f);
    return st;
}

/* --------------------------------------------------------------------- keys */

bly_status bly_foreign_remove(bly_foreign *f, bly_bytes key)
{
    if (!f)
        return bly_fail_null("f");
    bly_scratch scratch = { .mem = f->mem };
    bly_foreign_key k;
    bly_status st =
        foreign_can_change(f, bly_row_of(f)->remove, "gives no keys back");
    if (!st)
        st = bly_foreign_read_key(f, key, &scratch, &k);
    if (!st)
        st = bly_row_of(f)->remove(f, &k);
    bly_mem_release(f->mem, scratch.at, scratch.room);
    return st;
}

/* Keys that are on their way for count() and increase(): what the first of them
 * need is there when the last was asked for. */
enum { FETCHED = 8 };

/* Up to so many keys; how many could be read. One whose bytes are made from its
 * text is alone: they are gone when the next is read. */
static size_t keys_fetch(const bly_foreign *f, const bly_bytes *texts, size_t n,
                         bly_scratch *s, bly_foreign_key *keys, bly_status *st)
{
    const bly_format *const row = bly_row_of(f);
    const bool as_is = !row->encode && f->form == BLY_KEY_BYTES;
    const size_t most = !as_is ? 1 : n < FETCHED ? n : FETCHED;
    if (as_is && row->fetch) {
        for (size_t i = 0; i < most; i++) {
            keys[i].bytes = texts[i].ptr;
            keys[i].len = texts[i].len;
        }
        row->fetch(f, keys, most);
        return most;
    }
    for (size_t i = 0; i < most; i++) {
        *st = bly_foreign_read_key(f, texts[i], s, &keys[i]);
        if (*st)
            return i;
    }
    return most;
}

bly_status bly_foreign_count(const bly_foreign *f, const bly_bytes *keys,
                             size_t n, uint64_t *counts)
{
    if (!f || ((!keys || !counts) && n))
        return bly_fail_null("f or keys or counts");
    bly_scratch scratch = { .mem = f->mem };
    bly_status st = !bly_row_of(f)->count ? cannot(f, "does not count its keys")
                    : bly_foreign_opened(f) || f->planned
                        ? BLY_OK
                        : bly_fail(BLY_EINVAL, "its size is not known yet");
    for (size_t at = 0, some; at < n && !st; at += some) {
        bly_foreign_key fetched[FETCHED];
        some = keys_fetch(f, keys + at, n - at, &scratch, fetched, &st);
        for (size_t i = 0; i < some; i++)
            counts[at + i] = bly_row_of(f)->count(f, &fetched[i]);
    }
    bly_mem_release(f->mem, scratch.at, scratch.room);
    return st;
}

bly_status bly_foreign_increase_each(bly_foreign *f, const bly_bytes *keys,
                                     const uint64_t *by, size_t n,
                                     bly_foreign_raised *each, void *ctx)
{
    if (!f || ((!keys || !each) && n))
        return bly_fail_null("f or keys or each");
    const bly_format *const row = bly_row_of(f);
    bly_scratch scratch = { .mem = f->mem };
    bly_status st = foreign_can_change(f, row->increase, "counts nothing up");
    for (size_t at = 0, some; at < n && !st; at += some) {
        bly_foreign_key fetched[FETCHED];
        some = keys_fetch(f, keys + at, n - at, &scratch, fetched, &st);
        bly_status failed = BLY_OK;
        for (size_t i = 0; i < some && !failed; i++) {
            bly_bytes left = { NULL, 0 };
            uint64_t now;
            failed = row->increase(f, &fetched[i], by ? by[at + i] : 1, &now);
            if (!failed && row->left)
                row->left(f, &left);
            if (!failed)
                each(ctx, at + i, now, left);
        }
        st = failed ? failed : st;
    }
    bly_mem_release(f->mem, scratch.at, scratch.room);
    return st;
}

static void keep_count(void *now, size_t i, uint64_t count, bly_bytes left)
{
    (void)left;
    ((uint64_t *)now)[i] = count;
}

bly_status bly_foreign_increase(bly_foreign *f, const bly_bytes *keys,
                                const uint64_t *by, size_t n, uint64_t *now)
{
    return !now && n
               ? bly_fail_null("now")
               : bly_foreign_increase_each(f, keys, by, n, keep_count, now);
}

bly_status bly_foreign_sum(bly_foreign *f, const bly_foreign *const *from,
                           const int64_t *weights, size_t n)
{
    if (!f || ((!from || !weights) && n))
        return bly_fail_null("f or from or weights");
    bly_status st =
        foreign_can_change(f, bly_row_of(f)->sum, "cannot be a sum");
    for (size_t i = 0; i < n && !st; i++)
        if (!from[i] || from[i]->row != f->row)
            st = bly_fail(BLY_EUNFIT, "a sum of other formats");
    return st ? st : bly_row_of(f)->sum(f, from, weights, n);
}

bool bly_foreign_left(const bly_foreign *f, bly_bytes *out)
{
    return bly_row_of(f)->left && bly_row_of(f)->left(f, out);
}

size_t bly_foreign_list(const bly_foreign *f, bly_foreign_item *items,
                        size_t room)
{
    const size_t n = bly_row_of(f)->list ? bly_row_of(f)->list(f, NULL) : 0;
    if (items && n && n <= room)
        bly_row_of(f)->list(f, items);
    return n;
}

bly_status bly_foreign_compact(bly_foreign *f)
{
    if (!f)
        return bly_fail_null("f");
    const bly_status st =
        foreign_can_change(f, bly_row_of(f)->compact, "has nothing to compact");
    if (!st)
        bly_row_of(f)->compact(f);
    return st;
}

uint64_t bly_foreign_changes(const bly_foreign *f)
{
    return f->nchanges;
}

void bly_foreign_limit(bly_foreign *f, uint64_t max_bytes)
{
    if (f->whole)
        f->max_bytes = max_bytes;
    else
        f->more->max_bytes = max_bytes;
}

bly_status bly_foreign_scales_sized(const bly_foreign_spec *spec, uint64_t to,
                                    uint64_t *holds, size_t size)
{
    if (!holds)
        return bly_fail_null("holds");
    *holds = 0;
    bly_foreign *f;
    bly_status st = bly_foreign_blank(spec, size, &f);
    if (st)
        return st;
    st = bly_row_of(f)->scales ? bly_row_of(f)->scales(f, to, holds)
                               : cannot(f, "does not grow");
    bly_foreign_free(f);
    return st;
}

/* ------------------------------------------------------------------- pieces */

size_t bly_foreign_head(const bly_foreign *f, void *to, size_t room)
{
    const size_t n = bly_row_of(f)->head ? bly_row_of(f)->head(f, NULL) : 0;
    if (to && n && n <= room)
        bly_row_of(f)->head(f, to);
    return n;
}

bly_status bly_foreign_start_sized(const bly_foreign_spec *spec,
                                   const void *head, size_t nhead,
                                   bly_foreign **out, size_t size)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!head && nhead)
        return bly_fail_null("head");
    bly_foreign *f;
    bly_status st = bly_foreign_blank(spec, size, &f);
    if (st)
        return st;
    return handed(bly_row_of(f)->start ? bly_row_of(f)->start(f, head, nhead)
                                       : cannot(f, "does not come in pieces"),
                  f, out);
}

size_t bly_foreign_chunk(const bly_foreign *f, uint64_t offset, size_t most,
                         unsigned char **at)
{
    for (size_t i = 0; bly_row_of(f)->array && i < f->nparts; i++) {
        const bly_array a = bly_row_of(f)->array(f, i);
        if (offset < a.nbytes) {
            *at = a.at + offset;
            return a.nbytes - offset < most ? (size_t)(a.nbytes - offset)
                                            : most;
        }
        offset -= a.nbytes;
    }
    return 0;
}

/* ------------------------------------------------------------------ records */

bly_status bly_foreign_store(const bly_foreign *f, const bly_foreign_record *to)
{
    if (!f || !to)
        return bly_fail_null("f or to");
    return bly_row_of(f)->store ? bly_row_of(f)->store(f, to)
                                : cannot(f, "is not kept in records");
}

bly_status bly_foreign_restore_sized(const bly_foreign_spec *spec,
                                     unsigned version,
                                     const bly_foreign_record *from,
                                     bly_foreign **out, size_t size)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!from)
        return bly_fail_null("from");
    bly_foreign *f;
    bly_status st = bly_foreign_blank(spec, size, &f);
    if (st)
        return st;
    return handed(bly_row_of(f)->restore
                      ? bly_row_of(f)->restore(f, version, from)
                      : cannot(f, "is not kept in records"),
                  f, out);
}

/* ------------------------------------------------------------------- memory */

void bly_moved(void *pointer, bly_mover *move, void *ctx)
{
    void *old, *fresh;
    memcpy(&old, pointer, sizeof old);
    if (old && (fresh = move(ctx, old)))
        memcpy(pointer, &fresh, sizeof fresh);
}

void bly_foreign_move(bly_foreign **f, size_t part, bly_mover *move, void *ctx)
{
    if (part == 0) {
        const bool with_mem =
            (*f)->mem == (const bly_mem *)(const void *)(*f + 1);
        bly_moved(f, move, ctx);
        if (with_mem)
            (*f)->mem = (const bly_mem *)(const void *)(*f + 1);
    }
    if (bly_row_of(*f)->move && part < (*f)->nparts)
        bly_row_of(*f)->move(*f, part, move, ctx);
}

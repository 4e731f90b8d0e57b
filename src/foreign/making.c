/*
 * making.c - filters of other systems made here: planned, filled and written
 */
#include <math.h>
#include <string.h>

#include "core/sized.h"
#include "core/sort.h"
#include "foreign/format.h"
#include "format/filter_files.h"

double bly_bloom_bits(double n, double fpr)
{
    const double ln2 = 0.69314718055994530942;
    return -n * log(fpr) / (ln2 * ln2);
}

bly_status bly_foreign_allowed(const bly_foreign *f, uint64_t nbytes)
{
    const uint64_t most = bly_foreign_most(f);
    return most && nbytes > most
               ? bly_fail(BLY_ERANGE,
                          "it would take %llu bytes, but only %llu are allowed",
                          (unsigned long long)nbytes, (unsigned long long)most)
               : BLY_OK;
}

/* The array that f->more->one describes. */
static bly_status array_new(bly_foreign *f)
{
    const uint64_t nbytes = bly_part_bytes(&f->more->one);
    bly_status st = bly_foreign_allowed(f, nbytes);
    if (!st)
        st = bly_block_new(f->mem, nbytes, &f->more->block);
    if (st)
        return st;
    f->more->one.bytes = f->more->block.at;
    f->planned = true;
    return BLY_OK;
}

/* Size it for so many keys; one that changes makes its own arrays. */
static bly_status foreign_plan(bly_foreign *f, uint64_t items)
{
    const bly_status st = bly_row_of(f)->plan(f, items, f->more->fpr);
    if (st || !bly_row_of(f)->copy)
        return st ? st : array_new(f);
    bly_foreign_made(f);
    return BLY_OK;
}

/* Set the bits of a key; true: one was clear. */
static bool key_set(bly_foreign *f, const bly_foreign_key *key)
{
    uint64_t at[BLY_FOREIGN_MAX_K];
    const bly_foreign_part *const p = &f->more->one;
    bool fresh = false;
    bly_row_of(f)->positions(f, p, key, at);
    for (uint32_t j = 0; j < p->k; j++) {
        unsigned char *const byte = f->more->block.at + (at[j] / 8 ^ p->order);
        const unsigned char bit = (unsigned char)(1u << at[j] % 8);
        fresh |= !(*byte & bit);
        *byte |= bit;
    }
    f->nadded += fresh;
    return fresh;
}

bly_status bly_foreign_new_sized(const bly_foreign_spec *spec,
                                 bly_foreign **out, size_t size)
{
    if (!out)
        return bly_fail_null("out");
    bly_foreign *f;
    bly_status st = bly_foreign_blank(spec, size, &f);
    *out = NULL;
    if (st)
        return st;
    if (!bly_row_of(f)->plan)
        st = bly_fail(BLY_ENOTSUP, "the format %s can be read, not written",
                      bly_row_of(f)->name);
    else if (!(f->more->fpr > 0 && f->more->fpr < 1))
        st = bly_fail(BLY_EINVAL, "a rate must be between 0 and 1");
    else if (f->more->items || !bly_row_of(f)->open)
        st = foreign_plan(f, f->more->items);
    if (st)
        bly_foreign_free(f);
    else
        *out = f;
    return st;
}

/* Keep the hash of a key until their number is known. */
static bly_status key_keep(bly_foreign *f, const bly_foreign_key *key)
{
    const size_t each = bly_row_of(f)->nhash;
    if (f->more->nkept + each > f->more->kept_room) {
        const size_t room =
            f->more->kept_room ? f->more->kept_room * 2 : each * 1024;
        if (room > SIZE_MAX / 16 ||
            (f->more->max_bytes &&
             room * sizeof *f->more->kept > f->more->max_bytes))
            return bly_fail(
                BLY_ERANGE,
                "more keys than memory allows; give their number in advance");
        uint64_t *const kept = bly_mem_zalloc(f->mem, room * sizeof *kept);
        if (!kept)
            return bly_fail(BLY_ENOMEM, "out of memory");
        if (f->more->nkept)
            memcpy(kept, f->more->kept, f->more->nkept * sizeof *kept);
        bly_mem_release(f->mem, f->more->kept,
                        f->more->kept_room * sizeof *kept);
        f->more->kept = kept;
        f->more->kept_room = room;
    }
    memcpy(f->more->kept + f->more->nkept, key->h,
           each * sizeof *f->more->kept);
    f->more->nkept += each;
    return BLY_OK;
}

/* Add keys that were read, up to one that fails. */
static bly_status crowd_add(bly_foreign *f, const bly_foreign_key *keys,
                            size_t n, bool again, uint64_t *fresh,
                            size_t *ndone)
{
    bly_status st = BLY_OK;
    *ndone = 0;
    if (f->planned && bly_row_of(f)->add)
        return bly_row_of(f)->add(f, keys, n, again, fresh, ndone);
    for (size_t i = 0; i < n; i++) {
        if (!f->planned || bly_row_of(f)->counts)
            st = key_keep(f, &keys[i]);
        if (st)
            break;
        ++*ndone;
        f->more->nseen++;
        if ((!f->planned || key_set(f, &keys[i])) && fresh)
            fresh[i / 64] |= UINT64_C(1) << i % 64;
    }
    return st;
}

/* Up to BLY_CROWD keys, which room is for. */
static bly_status some_add(bly_foreign *f, const bly_bytes *keys, size_t n,
                           bly_foreign_key *room, bool again, uint64_t *fresh,
                           size_t *ndone)
{
    bly_scratch scratch = { .mem = f->mem };
    bly_status bad = BLY_OK;
    const size_t some = bly_foreign_read_keys(f, keys, n, &scratch, room, &bad);
    const bly_status st = crowd_add(f, room, some, again, fresh, ndone);
    bly_mem_release(f->mem, scratch.at, scratch.room);
    return st ? st : bad;
}

/* A crowd takes more room than one key, which is most of what comes, should
 * have to pay for. */
static __attribute__((noinline)) bly_status
many_add(bly_foreign *f, const bly_bytes *keys, size_t n, bool again,
         uint64_t *fresh, size_t *ndone)
{
    bly_foreign_key crowd[BLY_CROWD];
    bly_status st = BLY_OK;
    for (size_t some; *ndone < n && !st; *ndone += some)
        st = some_add(f, keys + *ndone, n - *ndone, crowd, again,
                      fresh ? fresh + *ndone / 64 : NULL, &some);
    return st;
}

static bly_status foreign_add(bly_foreign *f, const bly_bytes *keys, size_t n,
                              bool again, uint64_t *fresh, size_t *ndone)
{
    size_t done = 0;
    bly_foreign_key one;
    if (!ndone)
        ndone = &done;
    *ndone = 0;
    if (!f || (!keys && n))
        return bly_fail_null("f or keys");
    if (bly_foreign_opened(f))
        return bly_fail(BLY_EREADONLY,
                        "an opened foreign filter takes no keys");
    if (bly_row_of(f)->copy && !bly_row_of(f)->add)
        return bly_fail(BLY_ENOTSUP, "a %s counts its keys: increase them",
                        bly_row_of(f)->name);
    if (fresh)
        memset(fresh, 0, BLY_BITMAP_WORDS(n) * sizeof *fresh);
    return n == 1 ? some_add(f, keys, 1, &one, again, fresh, ndone)
                  : many_add(f, keys, n, again, fresh, ndone);
}

bly_status bly_foreign_add(bly_foreign *f, const bly_bytes *keys, size_t n,
                           uint64_t *fresh, size_t *ndone)
{
    return foreign_add(f, keys, n, true, fresh, ndone);
}

bly_status bly_foreign_add_new(bly_foreign *f, const bly_bytes *keys, size_t n,
                               uint64_t *fresh, size_t *ndone)
{
    return foreign_add(f, keys, n, false, fresh, ndone);
}

/* How many different first words the kept hashes have. */
static bly_status kept_distinct(const bly_foreign *f, size_t *out)
{
    const size_t each = bly_row_of(f)->nhash, n = f->more->nkept / each;
    uint64_t *const firsts =
        bly_mem_zalloc(f->mem, (n ? n : 1) * sizeof *firsts);
    if (!firsts)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        firsts[i] = f->more->kept[i * each];
    *out = n;
    const bly_status st = bly_hashes_unique(firsts, NULL, out);
    bly_mem_release(f->mem, firsts, (n ? n : 1) * sizeof *firsts);
    return st;
}

/* Size it by the keys that came, and put them in. */
static bly_status kept_place(bly_foreign *f)
{
    const size_t each = bly_row_of(f)->nhash;
    size_t n;
    bly_status st = kept_distinct(f, &n);
    if (st)
        return st;
    f->more->items = n ? n : 1;
    st = foreign_plan(f, f->more->items);
    const size_t nkept = f->whole ? 0 : f->more->nkept;
    for (size_t i = 0; i < nkept && !st; i += each) {
        bly_foreign_key key = { 0 };
        size_t done;
        memcpy(key.h, f->more->kept + i, each * sizeof *f->more->kept);
        if (bly_row_of(f)->add)
            st = bly_row_of(f)->add(f, &key, 1, true, NULL, &done);
        else
            key_set(f, &key);
    }
    if (!st && bly_row_of(f)->copy && !f->whole) {
        f->more->nkept = 0;
        bly_foreign_made(f);
    }
    return st;
}

bly_status bly_foreign_put(const bly_foreign *f, const void *head, size_t nhead,
                           uint64_t nbytes, bly_put *put, void *ctx)
{
    return put(ctx, head, nhead) && put(ctx, f->more->one.bytes, (size_t)nbytes)
               ? BLY_OK
               : BLY_EIO;
}

/* What stands before the arrays, and each of them. */
static bly_status arrays_write(const bly_foreign *f, bly_put *put, void *ctx)
{
    const size_t nhead = bly_row_of(f)->head(f, NULL);
    unsigned char *const head = bly_mem_zalloc(f->mem, nhead);
    if (!head)
        return bly_fail(BLY_ENOMEM, "out of memory");
    bly_row_of(f)->head(f, head);
    bool ok = put(ctx, head, nhead);
    for (size_t i = 0; i < f->nparts && ok; i++) {
        const bly_array a = bly_row_of(f)->array(f, i);
        ok = put(ctx, a.at, (size_t)a.nbytes);
    }
    bly_mem_release(f->mem, head, nhead);
    return ok ? BLY_OK : BLY_EIO;
}

bly_status bly_foreign_write(bly_foreign *f, bly_put *put, void *ctx)
{
    if (!f || !put)
        return bly_fail_null("f or put");
    if (bly_foreign_opened(f))
        return put(ctx, f->more->bytes, f->more->nbytes)
                   ? BLY_OK
                   : bly_fail(BLY_EIO, "output failed");
    if (!bly_row_of(f)->open)
        return bly_fail(BLY_ENOTSUP, "a %s has no file", bly_row_of(f)->name);
    bly_status st = f->planned ? BLY_OK : kept_place(f);
    if (!st && bly_row_of(f)->counts) {
        size_t n;
        st = kept_distinct(f, &n);
        if (!st)
            f->more->nseen = f->more->one.items = n;
    }
    if (st)
        return st;
    st = (bly_row_of(f)->write ? bly_row_of(f)->write : arrays_write)(f, put,
                                                                      ctx);
    return st == BLY_EIO ? bly_fail(BLY_EIO, "output failed") : st;
}

static bly_status write_foreign(const void *what, bly_put *put, void *ctx)
{
    return bly_foreign_write((bly_foreign *)(uintptr_t)what, put, ctx);
}

bly_status bly_foreign_save(bly_foreign *f, const char *path)
{
    if (!f || !path)
        return bly_fail_null("f or path");
    return bly_file_save(path, NULL, NULL, write_foreign, f);
}

/* The bits of a part into the array of f, in its order. */
static void bits_copy(const bly_foreign_part *from, bly_foreign *f)
{
    const size_t swap = (size_t)(f->more->one.order ^ from->order);
    const size_t nbytes = from->order == BLY_LSB_FIRST
                              ? (size_t)((from->nbits + 7) / 8)
                              : (size_t)bly_part_bytes(from);
    for (size_t i = 0; i < nbytes; i++)
        f->more->block.at[i ^ swap] = from->bytes[i];
}

bly_status bly_foreign_repack_sized(const bly_foreign_spec *spec,
                                    const bly_foreign *from, bly_foreign **out,
                                    size_t size)
{
    bly_foreign_spec empty;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!from)
        return bly_fail_null("from");
    if (!(spec = BLY_TAKE(spec, size, &empty)))
        return BLY_EINVAL;
    bly_foreign *f;
    empty = *spec;
    empty.items = 0;
    bly_status st = bly_foreign_new(&empty, &f);
    if (st)
        return st;
    f->more->items = from->whole ? 0 : from->more->items;
    if (from->row == f->row && !bly_row_of(f)->adopt) {
        st = bly_fail(
            BLY_EUNFIT,
            "it already has the format %s, and another size needs the keys",
            bly_row_of(f)->name);
    } else if (from->nparts != 1 || from->whole || !bly_row_of(f)->adopt ||
               !bly_row_of(f)->adopt(f, from)) {
        st = bly_fail(
            BLY_EUNFIT,
            "a %s filter places its keys differently from a %s filter: the "
            "bits mean nothing there, and the keys are needed",
            bly_row_of(from)->name, bly_row_of(f)->name);
    } else {
        st = array_new(f);
    }
    if (!st)
        bits_copy(&from->more->one, f);
    if (st)
        bly_foreign_free(f);
    else
        *out = f;
    return st;
}

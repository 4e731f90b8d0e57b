/*
 * delta_apply.c - deltas from one version of a filter to the next: reading
 *
 * Nothing is trusted. The header must match its checksum and start from the
 * version of the filter; nothing else is read before that. Gaps are shorter
 * than the filter itself, so a wrong size costs no more memory than that. They
 * flip the bits of a copy; a whole version is read like any other file. Then
 * the new filter must be one that its kind could have made, as after a load,
 * and the version that the delta promised. Only then does it replace the old
 * one, which is untouched until then.
 */
#include <math.h>
#include <string.h>

#include "codec/rice.h"
#include "core/bits.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/delta.h"
#include "format/reader.h"
#include "format/record.h"
#include "format/writer.h"
#include "kinds/filter.h"

/* The delta as it comes in; what get() gives past `left` is not its body. */
typedef struct delta_source {
    bly_get *get;
    void *ctx;
    uint64_t at, left;
} delta_source;

static bly_status delta_damaged(const char *what)
{
    return bly_fail(BLY_EFORMAT, "damaged: %s (get the delta again)", what);
}

static bly_status delta_cut(const delta_source *src)
{
    return bly_fail(BLY_EFORMAT,
                    "the delta is cut short after %llu bytes (get it again)",
                    (unsigned long long)src->at);
}

/* Fewer than n bytes only where the delta ends. */
static int64_t delta_get(void *ctx, void *buf, size_t nbytes)
{
    delta_source *src = ctx;
    const size_t n = nbytes < src->left ? nbytes : (size_t)src->left;
    const int64_t got = n ? src->get(src->ctx, buf, n) : 0;
    if (got > 0 && (uint64_t)got <= n) {
        src->at += (uint64_t)got;
        src->left -= (uint64_t)got;
    }
    return got;
}

static bly_status delta_fetch(delta_source *src, void *buf, size_t n,
                              size_t *ngot)
{
    const int64_t got = delta_get(src, buf, n);
    *ngot = 0;
    if (got < 0 || (uint64_t)got > n)
        return bly_fail(BLY_EIO, "the source cannot be read");
    *ngot = (size_t)got;
    return BLY_OK;
}

static bly_status fetch_header(delta_source *src, bly_delta_header *out)
{
    unsigned char bytes[DELTA_HEADER];
    size_t got;
    src->left = sizeof bytes;
    const bly_status st = delta_fetch(src, bytes, sizeof bytes, &got);
    if (st)
        return st;
    if (got == sizeof bytes)
        return bly_delta_decode(bytes, out);
    if (got == 0)
        return bly_fail(BLY_EFORMAT, "empty, not a delta between filters");
    if (!bly_delta_begins(bytes, got))
        return bly_fail(BLY_EFORMAT, "not a delta between filters");
    return delta_cut(src);
}

static bly_status expect_no_more(delta_source *src)
{
    unsigned char more;
    size_t got;
    src->left = 1;
    const bly_status st = delta_fetch(src, &more, 1, &got);
    if (!st && got)
        return delta_damaged("bytes follow the end of the delta");
    return st;
}

/* Is f what the delta starts from? */
static bly_status admit_delta(const bly_filter *f, const bly_delta_header *h)
{
    const uint64_t at = bly_version_id(f);
    if (at == h->from)
        return BLY_OK;
    if (at == h->to)
        return bly_fail(
            BLY_EUNFIT,
            "the filter is already at version %016llx, where the delta leads",
            (unsigned long long)at);
    return bly_fail(
        BLY_EUNFIT,
        "the delta starts from version %016llx and the filter is at %016llx: "
        "apply the deltas in between first, or get the whole filter",
        (unsigned long long)h->from, (unsigned long long)at);
}

/* ------------------------------------------------------------------- gaps */

/* Entries that are left to read. */
typedef struct entry_list {
    const unsigned char *at;
    size_t left;
} entry_list;

static void skip_entry(entry_list *list, size_t n)
{
    list->at += n;
    list->left -= n;
}

/* The words of state that are not zero. */
static bool read_state(entry_list *list, unsigned which, bly_filter *f)
{
    const unsigned nstate = f->kind->nstate;
    for (unsigned i = 0; i < nstate; i++) {
        f->state[i] = 0;
        if (!(which >> i & 1))
            continue;
        if (list->left < 8 || !(f->state[i] = bly_load64(list->at)))
            return false;
        skip_entry(list, 8);
    }
    return which >> nstate == 0;
}

/* Make f, a copy of the old version, what the next entries say. */
static bly_status read_entry(entry_list *list, bly_filter *f, bly_delta *info)
{
    const unsigned char *const entry = list->at;
    if (list->left < ENTRY_HEADER)
        return delta_damaged("it has fewer entries than the filter");
    skip_entry(list, ENTRY_HEADER);
    f->items = bly_load64(entry + ENTRY_AT_ITEMS);
    f->nadded = bly_load64(entry + ENTRY_AT_NADDED);
    if (!bly_rate_read(bly_load64(entry + ENTRY_AT_FPR), &f->fpr) ||
        (f->items == 0 && !(f->kind->traits & BLY_SELF_SIZED)) ||
        !read_state(list, entry[ENTRY_AT_STATE], f))
        return delta_damaged(
            "capacity, rate or state are impossible for its kind");
    bly_rice r = { .nflips = bly_load64(entry + ENTRY_AT_FLIPS),
                   .b = entry[ENTRY_AT_RICE] };
    if (!bly_rice_flip(list->at, list->left, &r, f->data,
                       (size_t)f->shape.nbytes))
        return delta_damaged("its flipped bits lie outside the filter");
    skip_entry(list, (size_t)r.nbytes);
    bly_delta_tell_flips(r.nflips, 8 * f->shape.nbytes, info);
    for (uint32_t i = 0; i < f->nlayers; i++) {
        const bly_status st = read_entry(list, f->layer[i], info);
        if (st)
            return st;
    }
    return bly_judge(f, true);
}

static bly_status read_entries(const unsigned char *body, size_t n,
                               bly_filter *f, bly_delta *info)
{
    const size_t nentries = n - BLY_DELTA_SUM;
    entry_list list = { body, nentries };
    if (bly_load64(body + nentries) != bly_checksum(body, nentries))
        return delta_damaged("the delta does not match its checksum");
    const bly_status st = read_entry(&list, f, info);
    if (!st && list.left)
        return delta_damaged("it has more entries than the filter");
    return st;
}

static bly_status read_gaps(const bly_filter *f, delta_source *src,
                            bly_delta *info, bly_filter **out)
{
    const uint64_t n = src->left;
    size_t got;
    bly_block body;
    if (n < BLY_DELTA_SUM || n >= bly_file_bytes(f, BLY_NOT_CODED, UINT64_MAX))
        return delta_damaged("a delta that is longer than the filter");
    bly_status st = bly_block_new(bly_filter_mem(f), n, &body);
    if (st)
        return st;
    st = delta_fetch(src, body.at, (size_t)n, &got);
    if (!st && got < n)
        st = delta_cut(src);
    if (!st)
        st = bly_clone(f, out);
    if (!st)
        st = read_entries(body.at, (size_t)n, *out, info);
    bly_block_free(bly_filter_mem(f), &body);
    return st;
}

/* ------------------------------------------------------------------ whole */

static bly_status read_whole(const bly_filter *f, delta_source *src,
                             bly_filter **out)
{
    const bly_access how = {
        .blind = true, /* the secret, if there is one, is that of f */
        .shared = f->shared,
        .max_bytes = f->extra->max_bytes,
        .mem = bly_filter_mem(f),
    };
    bly_status st = bly_read(delta_get, src, &how, out);
    if (st)
        return st;
    if (!bly_same_hash(f, *out))
        return delta_damaged("it leads to a filter with another hash");
    if (f->extra->secret_check) {
        st = bly_filter_rehash(*out, &f->extra->hasher, f->extra->secret_check,
                               f->blind);
        if (st)
            return st;
    }
    bly_set_coded(*out, f->coded);
    bly_set_compact(*out, f->compact);
    (*out)->former = f->former;
    return bly_filter_inherit(f, *out);
}

/* --------------------------------------------------------------- applying */

bly_status bly_delta_read_sized(bly_filter *f, bly_get *get, void *ctx,
                                bly_delta *info, size_t size)
{
    if (!f || !get)
        return bly_fail_null("f or get");
    delta_source src = { .get = get, .ctx = ctx };
    bly_delta_header h;
    bly_delta told;
    bly_filter *next = NULL;
    if (f->readonly)
        return bly_fail(BLY_EREADONLY, "the filter is mapped read-only: open "
                                       "it to change it");
    bly_status st = bly_filter_alone(f, "be updated by a delta");
    if (!st)
        st = fetch_header(&src, &h);
    if (!st)
        st = admit_delta(f, &h);
    if (st)
        return st;
    told = (bly_delta){ .entropy = h.form == DELTA_GAPS ? 0 : NAN };
    bly_delta_tell(&h, &told);
    src.left = h.nbody;
    st = h.form == DELTA_GAPS ? read_gaps(f, &src, &told, &next)
                              : read_whole(f, &src, &next);
    if (!st)
        st = expect_no_more(&src);
    if (!st && bly_version_id(next) != h.to)
        st = delta_damaged("it does not lead to the version it promises");
    if (!st)
        st = bly_become(f, next);
    if (st) {
        bly_free(next);
        return st;
    }
    if (info)
        BLY_GIVE(&told, info, size);
    return BLY_OK;
}

/* An array as a source. */
typedef struct byte_range {
    const unsigned char *at;
    size_t left;
} byte_range;

static int64_t get_range(void *ctx, void *buf, size_t nbytes)
{
    byte_range *range = ctx;
    const size_t n = nbytes < range->left ? nbytes : range->left;
    if (n)
        memcpy(buf, range->at, n);
    range->at += n;
    range->left -= n;
    return (int64_t)n;
}

bly_status bly_delta_apply_sized(bly_filter *f, const void *bytes,
                                 size_t nbytes, bly_delta *info, size_t size)
{
    if (!f || (!bytes && nbytes))
        return bly_fail_null("f or bytes");
    byte_range range = { nbytes ? bytes : "", nbytes };
    return bly_delta_read_sized(f, get_range, &range, info, size);
}

/*
 * one.c - one key at a time: which function a filter has for it
 *
 * What a filter is decides how it is asked, and is decided when it is made,
 * opened or shared. So bly_has() is a jump to the right function, and none of
 * these asks what could have been known before.
 */
#include "core/bits.h"
#include "kinds/filter.h"

/* Keys whose blocks are compared together: a multiple of 64, so that bitmaps of
 * pieces join. */
#define UNREAD_KEYS 2048

void bly_filter_has_unread(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *maybe)
{
    for (size_t from = 0; from < n; from += UNREAD_KEYS) {
        const size_t np = n - from < UNREAD_KEYS ? n - from : UNREAD_KEYS;
        uint64_t bad[BLY_BITMAP_WORDS(UNREAD_KEYS)] = { 0 };
        bly_filter_reach(f, h + from, np, bad);
        f->kind->has(f, h + from, np, maybe + from / 64);
        for (size_t i = 0; i < BLY_BITMAP_WORDS(np); i++)
            maybe[from / 64 + i] |= bad[i];
    }
}

/* -------------------------------------- kinds that have no short way */

static bool has_by_batch(const bly_filter *f, uint64_t h)
{
    uint64_t maybe = 0;
    f->kind->has(f, &h, 1, &maybe);
    return maybe != 0;
}

static bool has_by_batch_int(const bly_filter *f, uint64_t key)
{
    return has_by_batch(f, bly_int_hash_turned(key, f->one.flip));
}

/* ------------------------------------------- filters that have none */

/* A kind that cannot be asked; or integers without the secret. */
static bool has_unknown(const bly_filter *f, uint64_t h)
{
    (void)f;
    (void)h;
    return true;
}

/* A mapped file of which not every block was compared with its sum. */
static bool has_unread(const bly_filter *f, uint64_t h)
{
    uint64_t maybe = 0, bad = 0;
    bly_filter_reach(f, &h, 1, &bad);
    f->kind->has(f, &h, 1, &maybe);
    return (maybe | bad) != 0;
}

/* Integers, by any hash. */
static bool has_any_int(const bly_filter *f, uint64_t key)
{
    unsigned char bytes[8];
    bly_store64(bytes, key);
    return f->one.has(f, bly_hash(&f->extra->hasher, bytes, sizeof bytes));
}

void bly_filter_ready(bly_filter *f)
{
    if (f->kind->aim)
        f->kind->aim(f);
    f->one = (bly_one){ .flip = bly_int_turned(
                            bly_int_flip(f->extra->hasher.seed)) };
    if (!f->kind->has)
        f->one.has = f->one.has_int = has_unknown;
    else
        BLY_ONE_SET_HAS_FOR(f, has_by_batch);
    /* Who is blind is not asked by key, and in no hurry. */
    if (f->kind->one && !f->blind)
        f->kind->one(f);
    if (bly_filter_sums(f) && f->kind->has) {
        f->one.has = has_unread;
        f->one.has_int = has_any_int;
    }
    /* Who orders keys knows its hash, and its one() both forms of it. */
    if (f->extra->hasher.id != BLY_HASH_XXH3 && !f->kind->has_range) {
        f->one.has_int = f->blind ? has_unknown : has_any_int;
        f->one.add_int = NULL;
    }
    if (f->readonly)
        f->one.add = f->one.add_int = NULL;
}

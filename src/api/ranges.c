/*
 * ranges.c - is any key from a to b?
 *
 * A range of keys becomes a range of orders (core/hash.h), which are unsigned
 * numbers, and the kind is queried for that.
 *
 * Integers are numbers already. As unsigned numbers, negative ones are above
 * all others, so a range from below zero to above it becomes two:
 *
 *     -3 .. 5     2^64 - 3 .. 2^64 - 1  and  0 .. 5
 *
 * For text, the first eight bytes count. Shorter text is filled up with zeros
 * at the beginning of the range and with the highest byte at its end, since all
 * keys that begin with the end belong to the range. Where all keys have a
 * beginning in common (BLY_HASH_ORDERED_TAILS), the eight bytes behind it
 * count, and only a hash of the beginning itself is known. That is enough, but
 * for a range neither end of which has it: if both ends have another one in
 * common, no key is between them; if not, all keys may be.
 *
 *     all keys begin with www.example.
 *
 *     www.example.b .. www.example.d    b to d
 *     www.example.b .. x                b to the end
 *     w .. www.example.d                the beginning to d
 *     www.examine.b .. www.examine.d    none
 *     w .. x                            may be
 */
#include <stdlib.h>
#include <string.h>

#include "api/keying.h"
#include "api/plan.h"
#include "core/bits.h"
#include "core/status.h"
#include "kinds/filter.h"

/* A multiple of 64, so that bitmaps of pieces join. */
#define PIECE_RANGES 512

/* The queries, as orders: a and b of each range; and the second part of a range
 * that was cut in two. */
typedef struct piece {
    uint64_t a[PIECE_RANGES], b[PIECE_RANGES];
    uint64_t zero[PIECE_RANGES], above[PIECE_RANGES]; /* 0 .. above[j] */
    size_t of[PIECE_RANGES], nabove;
    uint64_t none[BLY_BITMAP_WORDS(PIECE_RANGES)]; /* no key can be there */
} piece;

static bly_status ends_first(void)
{
    return bly_fail(
        BLY_EINVAL,
        "a range ends before it begins; expected a..b where a is not above b");
}

/* --------------------------------------------------------------- integers */

static bly_status cut_signed(piece *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((int64_t)p->a[i] > (int64_t)p->b[i])
            return ends_first();
        if (p->a[i] <= p->b[i])
            continue;
        p->of[p->nabove] = i;
        p->above[p->nabove++] = p->b[i];
        p->b[i] = UINT64_MAX;
    }
    return BLY_OK;
}

static bly_status check_unsigned(const piece *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p->a[i] > p->b[i])
            return ends_first();
    return BLY_OK;
}

static bool is_signed(const bly_filter *f, bly_key_type from)
{
    const bly_key_type type = bly_filter_keying(f).type;
    return (type ? type : from) == BLY_KEYS_INT64;
}

static bly_status integer_ranges(const bly_filter *f, bly_key_type from,
                                 const void *a, const void *b, size_t n,
                                 piece *p)
{
    const bly_key_type type = bly_filter_keying(f).type;
    size_t done;
    if (type && bly_keys_order(type) != f->extra->hasher.id)
        return bly_fail(BLY_EINVAL,
                        "the keys of this filter are said to be %s, and are "
                        "kept in the order of integers",
                        bly_key_type_name(type));
    if (!type && (from == BLY_KEYS_TEXT || from == BLY_KEYS_BYTES))
        return bly_fail(BLY_EINVAL,
                        "the filter does not say whether its integers have a "
                        "sign; ask for ranges of int64 or uint64");
    const bly_key_type to = type ? type : from;
    bly_status st = bly_integers_as(to, from, a, n, p->a, &done);
    if (!st)
        st = bly_integers_as(to, from, b, n, p->b, &done);
    if (st)
        return st;
    return is_signed(f, from) ? cut_signed(p, n) : check_unsigned(p, n);
}

/* ------------------------------------------------------------------- text */

/* Is a above everything that begins with b? */
static bool above(bly_bytes a, bly_bytes b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    return n && memcmp(a.ptr, b.ptr, n) > 0;
}

/* The orders of a range; false: nothing is in it. */
static bool text_orders(const bly_hasher *hs, bly_bytes a, bly_bytes b,
                        uint64_t *from, uint64_t *to)
{
    const bool tails = hs->id == BLY_HASH_ORDERED_TAILS;
    const uint64_t beginning = hs->secret[0];
    const size_t n = tails ? bly_beginning_bytes(beginning) : 0;
    const bool in_a = !tails || bly_begins(beginning, a.ptr, a.len);
    const bool in_b = !tails || bly_begins(beginning, b.ptr, b.len);
    *from = 0;
    *to = UINT64_MAX;
    /* a is not above b. So if only a begins like the keys, b is above all of
     * them, or all begin with b; and if only b does, a is below all. */
    if (in_a)
        *from = bly_order(BLY_HASH_ORDERED_BYTES,
                          n ? (const char *)a.ptr + n : a.ptr, a.len - n);
    if (in_b) {
        *to = bly_order(BLY_HASH_ORDERED_BYTES,
                        n ? (const char *)b.ptr + n : b.ptr, b.len - n);
        if (b.len - n < 8)
            *to |= UINT64_MAX >> 8 * (b.len - n);
    }
    return in_a || in_b || a.len < n || b.len < n ||
           memcmp(a.ptr, b.ptr, n) != 0;
}

static bly_status text_range(const bly_hasher *hs, uint32_t forms, bly_bytes a,
                             bly_bytes b, uint64_t *from, uint64_t *to,
                             bool *none)
{
    const bool folds = forms & BLY_KEYS_FOLDED;
    const size_t half = BLY_KEY_ROOM(a.len);
    char *const room = folds ? malloc(half + BLY_KEY_ROOM(b.len) + 1) : NULL;
    if (folds && !room)
        return bly_fail(BLY_ENOMEM, "out of memory");
    a = bly_key_normalise(forms, a, room);
    b = bly_key_normalise(forms, b, folds ? room + half : NULL);
    const bool wrong = above(a, b);
    *none = !wrong && !text_orders(hs, a, b, from, to);
    free(room);
    return wrong ? ends_first() : BLY_OK;
}

static bly_status text_ranges(const bly_filter *f, bly_key_type from,
                              const bly_bytes *a, const bly_bytes *b, size_t n,
                              piece *p)
{
    const bly_keying keying = bly_filter_keying(f);
    bly_status st = BLY_OK;
    if (keying.type && bly_keys_order(keying.type) != BLY_HASH_ORDERED_BYTES)
        return bly_fail(BLY_EINVAL,
                        "the keys of this filter are said to be %s, and are "
                        "kept in the order of bytes",
                        bly_key_type_name(keying.type));
    if (from != BLY_KEYS_TEXT && from != BLY_KEYS_BYTES)
        return bly_fail(
            BLY_EINVAL,
            "the keys of this filter are in the order of bytes, not of "
            "integers; expected ends that are text or bytes");
    for (size_t i = 0; i < n && !st; i++) {
        bool none = false;
        st = text_range(&f->extra->hasher,
                        keying.type == BLY_KEYS_TEXT ? keying.forms : 0, a[i],
                        b[i], &p->a[i], &p->b[i], &none);
        p->none[i / 64] |= (uint64_t)none << i % 64;
    }
    return st;
}

/* ----------------------------------------------------------------- asking */

static bly_status may_ask(const bly_filter *f, bly_key_type from)
{
    if (!f->kind->has_range)
        return bly_fail_ability(f->kind, BLY_ABILITY_RANGE);
    if (from == BLY_KEYS_UNKNOWN || !bly_key_type_name(from))
        return bly_fail(BLY_EINVAL, "ends of ranges are given as text, bytes, "
                                    "int64 or uint64");
    return BLY_OK;
}

static void ask_piece(const bly_filter *f, piece *p, size_t n, uint64_t *maybe)
{
    uint64_t more[BLY_BITMAP_WORDS(PIECE_RANGES)] = { 0 };
    memset(maybe, 0, BLY_BITMAP_WORDS(n) * sizeof *maybe);
    f->kind->has_range(f, p->a, p->b, n, maybe);
    for (size_t i = 0; i < BLY_BITMAP_WORDS(n); i++)
        maybe[i] &= ~p->none[i];
    if (!p->nabove)
        return;
    memset(p->zero, 0, p->nabove * sizeof *p->zero);
    f->kind->has_range(f, p->zero, p->above, p->nabove, more);
    for (size_t i = 0; i < p->nabove; i++)
        maybe[p->of[i] / 64] |= (more[i / 64] >> i % 64 & 1) << p->of[i] % 64;
}

bly_status bly_has_ranges_as(const bly_filter *f, bly_key_type type,
                             const void *a, const void *b, size_t n,
                             uint64_t *maybe)
{
    piece p;
    if (!f || (!a && n) || (!b && n) || (!maybe && n))
        return bly_fail_null("f or a or b or maybe");
    bly_status st = may_ask(f, type);
    for (size_t from = 0; from < n && !st; from += PIECE_RANGES) {
        const size_t np = n - from < PIECE_RANGES ? n - from : PIECE_RANGES;
        const void *const pa = bly_keys_from(type, a, from);
        const void *const pb = bly_keys_from(type, b, from);
        p.nabove = 0;
        memset(p.none, 0, sizeof p.none);
        st = f->extra->hasher.id == BLY_HASH_ORDERED_INTS
                 ? integer_ranges(f, type, pa, pb, np, &p)
                 : text_ranges(f, type, pa, pb, np, &p);
        if (!st)
            ask_piece(f, &p, np, maybe + from / 64);
    }
    if (!st)
        st = bly_damage(f);
    if (st)
        bly_all_maybe(n, maybe);
    return st;
}

bly_status bly_has_ranges(const bly_filter *f, const uint64_t *a,
                          const uint64_t *b, size_t n, uint64_t *maybe)
{
    if (!f)
        return bly_fail_null("f");
    return bly_has_ranges_as(
        f, is_signed(f, BLY_KEYS_UINT64) ? BLY_KEYS_INT64 : BLY_KEYS_UINT64, a,
        b, n, maybe);
}

bly_status bly_has_range(const bly_filter *f, uint64_t a, uint64_t b,
                         bool *maybe)
{
    uint64_t bit = 0;
    if (!f || !maybe)
        return bly_fail_null("f or maybe");
    /* The fast path: everything it needs is known. */
    if (f->extra->hasher.id == BLY_HASH_ORDERED_INTS && a <= b &&
        !bly_filter_sums(f) &&
        (bly_filter_keying(f).type == BLY_KEYS_UNKNOWN ||
         bly_filter_keying(f).type == BLY_KEYS_UINT64)) {
        f->kind->has_range(f, &a, &b, 1, &bit);
        *maybe = bit;
        return BLY_OK;
    }
    const bly_status st = bly_has_ranges(f, &a, &b, 1, &bit);
    *maybe = bit;
    return st;
}

/*
 * filter_api.c - the calls of bloomery.h on one filter or two: check, hash
 * once, hand over to the kind
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "api/keying.h"
#include "api/plan.h"
#include "core/bits.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/combine.h"
#include "format/meta.h"
#include "kinds/filter.h"

/* ------------------------------------------------------------------ kinds */

/* Describe a kind, if there is one; false if kind is NULL. */
static bool kind_told(const bly_kind *kind, bly_kind_info *out, size_t size)
{
    if (kind) {
        const bly_kind_info told = {
            .name = kind->name,
            .summary = kind->summary,
            .id = kind->id,
            .can = bly_kind_can(kind),
            .traits = kind->traits,
            .params = kind->params,
            .nparams = kind->nparams,
        };
        BLY_GIVE(&told, out, size);
    }
    return kind != NULL;
}

bool bly_kind_at_sized(size_t index, bly_kind_info *out, size_t size)
{
    return kind_told(bly_kind_row(index), out, size);
}

bool bly_kind_named_sized(const char *name, bly_kind_info *out, size_t size)
{
    return kind_told(bly_kind_by_name(name), out, size);
}

void bly_kind_of_sized(const bly_filter *f, bly_kind_info *out, size_t size)
{
    kind_told(f->kind, out, size);
}

const bly_param *bly_param_at(const bly_param *params, size_t i)
{
    return params + i;
}

static const struct {
    const char *name, *help;
} abilities[] = {
#define ABILITY_ROW(NAME, slot, word, text) { word, text },
    BLY_ABILITIES(ABILITY_ROW)
#undef ABILITY_ROW
};

const char *bly_can_name(unsigned bit)
{
    return bit < BLY_ABILITY_COUNT_ ? abilities[bit].name : NULL;
}

const char *bly_can_help(unsigned bit)
{
    return bit < BLY_ABILITY_COUNT_ ? abilities[bit].help : NULL;
}

/* ----------------------------------------------------------------- making */

bly_status bly_new_sized(const bly_spec *spec, bly_filter **out, size_t size)
{
    bly_spec own;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    bly_planned planned;
    bly_status st = bly_plan_spec(spec, &planned);
    if (st)
        return st;
    if (!planned.kind->add && !planned.kind->increase)
        return bly_fail(BLY_ENOTSUP,
                        "a %s filter is built at once from all its "
                        "keys: use a builder",
                        planned.kind->name);
    st = bly_filter_make(planned.kind, &planned.shape, &planned.set, out);
    return st ? st : bly_keying_given(out, planned.keying);
}

const bly_hasher *bly_hasher_of(const bly_filter *f)
{
    return f->blind ? NULL : &f->extra->hasher;
}

/* ------------------------------------------------------------ one and many */

/* May f be changed by this ability? */
static bly_status may_change(const bly_filter *f, bool able, unsigned ability)
{
    if (!able)
        return bly_fail_ability(f->kind, ability);
    if (f->readonly)
        return bly_fail(BLY_EREADONLY,
                        bly_filter_live(f)
                            ? "the live filter was opened for reading: "
                              "open it for adding too"
                            : "the filter is mapped read-only: open it "
                              "to change it");
    return ability == BLY_ABILITY_ADD || ability == BLY_ABILITY_INCREASE ||
                   ability == BLY_ABILITY_REMOVE
               ? BLY_OK
               : bly_filter_alone(f, bly_can_help(ability));
}

static bly_status need_secret(const bly_filter *f)
{
    if (f->blind)
        return bly_fail(BLY_ESECRET, "the filter is keyed and was opened "
                                     "without its key");
    return BLY_OK;
}

typedef bly_status add_fn(bly_filter *f, const uint64_t *keys, size_t n,
                          uint64_t *fresh, size_t *ndone);
typedef void has_fn(const bly_filter *f, const uint64_t *keys, size_t n,
                    uint64_t *maybe);

/* Add n hashes or integers, by the kind's function for them. */
static bly_status add_all(bly_filter *f, add_fn *add, const uint64_t *keys,
                          size_t n, uint64_t *fresh, size_t *ndone)
{
    size_t done = 0;
    if (fresh && n)
        memset(fresh, 0, BLY_BITMAP_WORDS(n) * sizeof *fresh);
    bly_status st = may_change(f, f->kind->add, BLY_ABILITY_ADD);
    if (!st && n)
        st = add(f, keys, n, fresh, &done);
    if (!st && (st = bly_filter_still(f)))
        done = 0;
    if (ndone)
        *ndone = done;
    return st;
}

void bly_all_maybe(size_t n, uint64_t *maybe)
{
    const size_t nwords = BLY_BITMAP_WORDS(n);
    if (n)
        memset(maybe, 0xff, nwords * sizeof *maybe);
    if (n % 64)
        maybe[nwords - 1] = (UINT64_C(1) << n % 64) - 1;
}

/* Keys are hashed this many at a time: the hashes stay in L1, the kind seldom
 * waits for the first lines of a piece, and the number is a multiple of 64, so
 * that bitmaps of pieces join. */
#define PIECE_KEYS 2048

/* Can all n be answered? For calls that return a status. */
static bly_status may_answer(const bly_filter *f, const uint64_t *hashes,
                             size_t n)
{
    for (size_t from = 0; from < n && bly_filter_unread(f);
         from += PIECE_KEYS) {
        const size_t np = n - from < PIECE_KEYS ? n - from : PIECE_KEYS;
        uint64_t bad[BLY_BITMAP_WORDS(PIECE_KEYS)] = { 0 };
        bly_filter_reach(f, hashes + from, np, bad);
        for (size_t i = 0; i < BLY_BITMAP_WORDS(np); i++)
            if (bad[i])
                return bly_damage(f);
    }
    return BLY_OK;
}

static void has_all(const bly_filter *f, has_fn *has, const uint64_t *keys,
                    size_t n, uint64_t *maybe)
{
    if (!n)
        return;
    if (!has) {
        bly_all_maybe(n, maybe);
        return;
    }
    if (n <= 64) /* a call would show */
        *maybe = 0;
    else
        memset(maybe, 0, BLY_BITMAP_WORDS(n) * sizeof *maybe);
    if (bly_filter_unread(f)) /* and then keys are hashes */
        bly_filter_has_unread(f, keys, n, maybe);
    else
        has(f, keys, n, maybe);
}

bly_status bly_add_hashes(bly_filter *f, const uint64_t *hashes, size_t n,
                          uint64_t *fresh, size_t *ndone)
{
    if (!f || (!hashes && n))
        return bly_fail_null("f or hashes");
    if (n == 1 && !fresh && f->ways->add) {
        const bly_status st = f->ways->add(f, *hashes);
        if (ndone)
            *ndone = !st;
        return st;
    }
    return add_all(f, f->shared ? f->kind->add_shared : f->kind->add, hashes, n,
                   fresh, ndone);
}

void bly_has_hashes(const bly_filter *f, const uint64_t *hashes, size_t n,
                    uint64_t *maybe)
{
    if (n == 1)
        *maybe = f->ways->has(f, *hashes);
    else
        has_all(f, f->kind->has, hashes, n, maybe);
}

void bly_prefetch_hashes(const bly_filter *f, const uint64_t *hashes, size_t n)
{
    /* A file whose blocks were not yet compared with their sums is probably on
     * disk, not in a cache. */
    if (f->kind->fetch && !bly_filter_unread(f))
        f->kind->fetch(f, hashes,
                       n < BLY_PREFETCH_MOST ? n : BLY_PREFETCH_MOST);
}

/* Keys that are not yet hashed: one of these. */
typedef struct key_source {
    const bly_bytes *keys;
    const bly_column *column;
    const uint64_t *ints;
} key_source;

/* The next piece of them, as hashes. */
static size_t hash_piece(const bly_filter *f, const key_source *s, size_t from,
                         size_t n, uint64_t *hashes)
{
    const size_t np = n - from < PIECE_KEYS ? n - from : PIECE_KEYS;
    if (s->keys) {
        bly_hash_keys(&f->extra->hasher, s->keys + from, np, hashes);
    } else if (s->column) {
        bly_column rest = *s->column;
        if (rest.wide_offsets)
            rest.wide_offsets += from;
        else
            rest.offsets += from;
        bly_hash_column(&f->extra->hasher, &rest, np, hashes);
    } else {
        bly_hash_ints(&f->extra->hasher, s->ints + from, np, hashes);
    }
    return np;
}

static bly_status add_pieces(bly_filter *f, const key_source *s, size_t n,
                             uint64_t *fresh, size_t *ndone)
{
    uint64_t hashes[PIECE_KEYS];
    size_t from = 0, done = 0;
    if (fresh && n)
        memset(fresh, 0, BLY_BITMAP_WORDS(n) * sizeof *fresh);
    bly_status st = need_secret(f);
    while (!st && from < n) {
        const size_t np = hash_piece(f, s, from, n, hashes);
        st = bly_add_hashes(f, hashes, np, fresh ? fresh + from / 64 : NULL,
                            &done);
        from += st ? done : np;
    }
    if (ndone)
        *ndone = from;
    return st;
}

static void has_pieces(const bly_filter *f, const key_source *s, size_t n,
                       uint64_t *maybe)
{
    uint64_t hashes[PIECE_KEYS];
    if (f->blind) {
        bly_all_maybe(n, maybe);
        return;
    }
    for (size_t from = 0; from < n;) {
        const size_t np = hash_piece(f, s, from, n, hashes);
        bly_has_hashes(f, hashes, np, maybe + from / 64);
        from += np;
    }
}

bly_status bly_add_keys(bly_filter *f, const bly_bytes *keys, size_t n,
                        uint64_t *fresh, size_t *ndone)
{
    if (!f || (!keys && n))
        return bly_fail_null("f or keys");
    return add_pieces(f, &(key_source){ .keys = keys }, n, fresh, ndone);
}

bly_status bly_add_column(bly_filter *f, const bly_column *keys, size_t n,
                          uint64_t *fresh, size_t *ndone)
{
    if (!f || (!keys && n))
        return bly_fail_null("f or keys");
    return add_pieces(f, &(key_source){ .column = keys }, n, fresh, ndone);
}

/* Does the kind hash integers itself? */
static bool hashes_ints(const bly_filter *f)
{
    return f->kind->add_ints && bly_filter_hashes_ints(f);
}

bly_status bly_add_ints(bly_filter *f, const uint64_t *ints, size_t n,
                        uint64_t *fresh, size_t *ndone)
{
    size_t own;
    if (!f || (!ints && n))
        return bly_fail_null("f or ints");
    if (bly_filter_keying(f).type == BLY_KEYS_TEXT)
        return bly_add_int_texts(f, ints, n, fresh, ndone);
    const bool first = n && bly_keying_open(f);
    bly_status st = first ? bly_keying_label(f, BLY_KEYS_UINT64) : BLY_OK;
    if (st)
        return st;
    if (!ndone)
        ndone = &own;
    st = hashes_ints(f)
             ? add_all(f, f->kind->add_ints, ints, n, fresh, ndone)
             : add_pieces(f, &(key_source){ .ints = ints }, n, fresh, ndone);
    if (first && !*ndone)
        (void)bly_keying_label(f, BLY_KEYS_UNKNOWN);
    return st;
}

void bly_has_keys(const bly_filter *f, const bly_bytes *keys, size_t n,
                  uint64_t *maybe)
{
    has_pieces(f, &(key_source){ .keys = keys }, n, maybe);
}

void bly_has_column(const bly_filter *f, const bly_column *keys, size_t n,
                    uint64_t *maybe)
{
    has_pieces(f, &(key_source){ .column = keys }, n, maybe);
}

void bly_has_ints(const bly_filter *f, const uint64_t *ints, size_t n,
                  uint64_t *maybe)
{
    if (bly_filter_keying(f).type == BLY_KEYS_TEXT)
        bly_has_int_texts(f, ints, n, maybe);
    else if (hashes_ints(f) && !bly_filter_unread(f))
        has_all(f, f->kind->has_ints, ints, n, maybe);
    else
        has_pieces(f, &(key_source){ .ints = ints }, n, maybe);
}

/* All but the fast paths are separate functions: inlined, they would make the
 * fast paths save registers and reserve room on the stack. */
#define APART static __attribute__((noinline))

APART bly_status add_hash_apart(bly_filter *f, uint64_t hash)
{
    return bly_add_hashes(f, &hash, 1, NULL, NULL);
}

bly_status bly_add_hash(bly_filter *f, uint64_t hash)
{
    return f && f->ways->add ? f->ways->add(f, hash) : add_hash_apart(f, hash);
}

bool bly_has_hash(const bly_filter *f, uint64_t hash)
{
    return f->ways->has(f, hash);
}

APART bly_status add_bytes(bly_filter *f, const void *key, size_t len)
{
    if (!f || (!key && len))
        return bly_fail_null("f or key");
    const bly_status st = need_secret(f);
    return st ? st : bly_add_hash(f, bly_hash(&f->extra->hasher, key, len));
}

APART bool has_bytes(const bly_filter *f, const void *key, size_t len)
{
    return f->blind || f->ways->has(f, bly_hash(&f->extra->hasher, key, len));
}

bly_status bly_add(bly_filter *f, const void *key, size_t len)
{
    return f && key && len == sizeof(uint64_t) && f->ways->add_int
               ? f->ways->add_int(f, bly_load64(key))
               : add_bytes(f, key, len);
}

bool bly_has(const bly_filter *f, const void *key, size_t len)
{
    return len == sizeof(uint64_t) ? f->ways->has_int(f, bly_load64(key))
                                   : has_bytes(f, key, len);
}

static inline bool has_texts(const bly_filter *f)
{
    const bly_meta *const meta = f->extra->meta;
    return meta && meta->keying.type == BLY_KEYS_TEXT;
}

APART bly_status add_int_apart(bly_filter *f, uint64_t key)
{
    return bly_add_ints(f, &key, 1, NULL, NULL);
}

APART bool has_int_apart(const bly_filter *f, uint64_t key)
{
    uint64_t maybe;
    bly_has_ints(f, &key, 1, &maybe);
    return maybe != 0;
}

/* The first key may decide the type of all keys. */
bly_status bly_add_int(bly_filter *f, uint64_t key)
{
    return f && f->ways->add_int && bly_filter_nadded(f) && !has_texts(f)
               ? f->ways->add_int(f, key)
               : add_int_apart(f, key);
}

bool bly_has_int(const bly_filter *f, uint64_t key)
{
    return has_texts(f) ? has_int_apart(f, key) : f->ways->has_int(f, key);
}

/* ------------------------------------------- what only some kinds can do */

bly_status bly_remove_hashes(bly_filter *f, const uint64_t *hashes, size_t n,
                             bly_status *each)
{
    if (!f || (!hashes && n))
        return bly_fail_null("f or hashes");
    bly_status piece[PIECE_KEYS];
    bly_status first = may_change(f, f->kind->remove, BLY_ABILITY_REMOVE);
    if (first)
        return first;
    const char *const keeps = f->kind->keeps ? f->kind->keeps(&f->shape) : NULL;
    for (size_t from = 0; from < n; from += PIECE_KEYS) {
        const size_t np = n - from < PIECE_KEYS ? n - from : PIECE_KEYS;
        bly_status *const to = each ? each + from : piece;
        f->kind->remove(f, hashes + from, np, to);
        for (size_t i = 0; i < np && !first; i++)
            if (to[i])
                first = bly_fail(to[i], "%s",
                                 to[i] == BLY_EREFUSED && keeps
                                     ? keeps
                                     : bly_status_text(to[i]));
    }
    const bly_status st = bly_filter_still(f);
    for (size_t i = 0; st && each && i < n; i++)
        each[i] = st;
    return st ? st : first;
}

/* Of a key that is not there the batch says so, since nothing has changed. */
APART bly_status remove_hash_apart(bly_filter *f, uint64_t hash)
{
    return bly_remove_hashes(f, &hash, 1, NULL);
}

bly_status bly_remove(bly_filter *f, const void *key, size_t len)
{
    if (!f || (!key && len))
        return bly_fail_null("f or key");
    const bly_status st = need_secret(f);
    if (st)
        return st;
    const uint64_t hash = bly_hash(&f->extra->hasher, key, len);
    return f->ways->remove && !f->ways->remove(f, hash)
               ? BLY_OK
               : remove_hash_apart(f, hash);
}

bly_status bly_increase_hashes(bly_filter *f, const uint64_t *hashes,
                               const uint64_t *by, size_t n, size_t *ndone)
{
    if (!f || (!hashes && n) || (!by && n))
        return bly_fail_null("f or hashes or by");
    size_t done = 0;
    bly_status st = may_change(f, f->kind->increase, BLY_ABILITY_INCREASE);
    if (!st && n)
        st = f->kind->increase(f, hashes, by, n, &done);
    if (!st && (st = bly_filter_still(f)))
        done = 0;
    if (ndone)
        *ndone = done;
    return st;
}

bly_status bly_count_hashes(const bly_filter *f, const uint64_t *hashes,
                            size_t n, uint64_t *counts)
{
    if (!f || (!hashes && n) || (!counts && n))
        return bly_fail_null("f or hashes or counts");
    if (!f->kind->count)
        return bly_fail_ability(f->kind, BLY_ABILITY_COUNT);
    const bly_status st = may_answer(f, hashes, n);
    if (n && !st)
        f->kind->count(f, hashes, n, counts);
    return st;
}

bly_status bly_get_hashes(const bly_filter *f, const uint64_t *hashes, size_t n,
                          uint64_t *values, uint64_t *present)
{
    if (!f || (!hashes && n) || (!values && n) || (!present && n))
        return bly_fail_null("f or hashes or values or present");
    if (!f->kind->get)
        return bly_fail_ability(f->kind, BLY_ABILITY_GET);
    const bly_status st = may_answer(f, hashes, n);
    if (n && !st) {
        memset(present, 0, BLY_BITMAP_WORDS(n) * sizeof *present);
        f->kind->get(f, hashes, n, values, present);
    }
    return st;
}

bly_status bly_set_hash(bly_filter *f, uint64_t hash, uint64_t value)
{
    if (!f)
        return bly_fail_null("f");
    const bly_status st = may_change(f, f->kind->set, BLY_ABILITY_SET);
    return st ? st : f->kind->set(f, hash, value);
}

bly_status bly_tick(bly_filter *f, uint64_t now)
{
    if (!f)
        return bly_fail_null("f");
    const bly_status st = may_change(f, f->kind->tick, BLY_ABILITY_TICK);
    return st ? st : f->kind->tick(f, now);
}

/* ---------------------------------------------------------------- knowing */

/* A filter without data of its own has its cells in its layers. */
static uint64_t filter_bits(const bly_filter *f)
{
    /* What a kind plans for its layers too is counted there. */
    uint64_t bits = f->kind->group    ? 8 * f->shape.nbytes
                    : f->shape.nbytes ? bly_shape_bits(f->kind, &f->shape)
                                      : 0;
    for (uint32_t i = 0; i < f->nlayers; i++)
        bits += filter_bits(f->layer[i]);
    return bits;
}

static void peek(const bly_filter *f, bly_stats *out)
{
    *out = (bly_stats){
        .kind = f->kind->name,
        .capacity = f->items,
        .items_added = bly_filter_additions(f),
        .items_estimate = NAN,
        .items_sd = NAN,
        .fill = NAN,
        .fpr_now = NAN,
        .fpr_at_capacity = f->fpr,
        .bits = filter_bits(f),
        .bytes = bly_filter_bytes(f),
        .seed = f->extra->hasher.seed,
        .hash_id = f->extra->hasher.id,
        .layers = f->nlayers,
        .compact = f->compact,
        .keyed = bly_filter_keyed(f),
        .shared = f->shared,
        .mapped = f->readonly,
        .coded = f->coded,
        .format = f->format,
    };
    out->nfacts = bly_collect_facts(f->kind, &f->shape, NULL, f, out->facts);
}

void bly_peek_sized(const bly_filter *f, bly_stats *out, size_t size)
{
    bly_stats own, *const to = BLY_ROOM(&own, out, size);
    peek(f, to);
    BLY_GIVE(to, out, size);
}

void bly_stat_sized(const bly_filter *f, bly_stats *out, size_t size)
{
    bly_stats own, *const to = BLY_ROOM(&own, out, size);
    peek(f, to);
    f->kind->stat(f, to);
    BLY_GIVE(to, out, size);
}

const bly_filter *bly_layer(const bly_filter *f, uint32_t i)
{
    return i < f->nlayers ? f->layer[i] : NULL;
}

/* -------------------------------------------------------------- combining */

static bly_status may_combine(const bly_filter *a, const bly_filter *b,
                              bool able, unsigned ability)
{
    const bly_status st = bly_filter_fits(a, b);
    if (st)
        return st;
    if (!able)
        return bly_fail_ability(a->kind, ability);
    const bly_status damaged = bly_filter_settle(a);
    return damaged ? damaged : bly_filter_settle(b);
}

static bly_status combine(bly_filter *dst, const bly_filter *src,
                          bly_status (*op)(bly_filter *, const bly_filter *),
                          unsigned ability)
{
    bly_status st = may_change(dst, op, ability);
    if (!st && dst == src)
        st = bly_fail(BLY_EINVAL, "a filter cannot be combined with itself");
    if (!st)
        st = may_combine(dst, src, op, ability);
    return st ? st : bly_meta_combine(dst, src, op);
}

bly_status bly_merge(bly_filter *dst, const bly_filter *src)
{
    if (!dst || !src)
        return bly_fail_null("dst or src");
    return combine(dst, src, dst->kind->merge, BLY_ABILITY_MERGE);
}

bly_status bly_intersect(bly_filter *dst, const bly_filter *src)
{
    if (!dst || !src)
        return bly_fail_null("dst or src");
    return combine(dst, src, dst->kind->intersect, BLY_ABILITY_INTERSECT);
}

static bly_status may_read_into(const bly_filter *dst, bly_combination how)
{
    return how == BLY_UNION
               ? may_change(dst, dst->kind->merge, BLY_ABILITY_MERGE)
               : may_change(dst, dst->kind->intersect, BLY_ABILITY_INTERSECT);
}

bly_status bly_combine_file(bly_filter *dst, bly_combination how,
                            const char *path)
{
    if (!dst || !path)
        return bly_fail_null("dst or path");
    const bly_status st = may_read_into(dst, how);
    return st ? st : bly_file_combine(path, how, dst);
}

bly_status bly_combine_read(bly_filter *dst, bly_combination how, bly_get *get,
                            void *ctx)
{
    if (!dst || !get)
        return bly_fail_null("dst or get");
    const bly_source src = { .get = get,
                             .ctx = ctx,
                             .nbytes = BLY_SIZE_UNKNOWN };
    const bly_status st = may_read_into(dst, how);
    return st ? st : bly_source_combine(&src, how, dst);
}

bly_status bly_compare_sized(const bly_filter *a, const bly_filter *b,
                             bly_likeness *out, size_t size)
{
    bly_likeness own;
    if (!a || !b || !out)
        return bly_fail_null("a or b or out");
    bly_status st = may_combine(a, b, a->kind->compare, BLY_ABILITY_COMPARE);
    if (!st)
        st = a->kind->compare(a, b, &own);
    if (!st)
        BLY_GIVE(&own, out, size);
    return st;
}

/* If st is BLY_OK, *out was made from f, and gets its metadata too. */
static bly_status made_from(const bly_filter *f, bly_status st,
                            bly_filter **out)
{
    if (!st)
        st = bly_filter_inherit(f, *out);
    if (st) {
        bly_free(*out);
        *out = NULL;
    }
    return st;
}

bly_status bly_fold(const bly_filter *f, bly_filter **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!f)
        return bly_fail_null("f");
    if (!f->kind->fold)
        return bly_fail_ability(f->kind, BLY_ABILITY_FOLD);
    const bly_status st = bly_filter_settle(f);
    return st ? st : made_from(f, f->kind->fold(f, out), out);
}

bly_status bly_convert_sized(const bly_filter *f, const bly_spec *spec,
                             bly_filter **out, size_t size)
{
    bly_spec same;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!f)
        return bly_fail_null("f");
    if (!(spec = BLY_TAKE(spec, size, &same)))
        return BLY_EINVAL;
    bly_want w;
    const bly_kind *to;
    same = *spec;
    if (!same.kind)
        same.kind = f->kind->name;
    bly_status st = bly_read_options(&same, &to, &w);
    if (!st)
        st = bly_filter_settle(f);
    if (st)
        return st;
    if (to == f->kind)
        st = f->kind->resize ? f->kind->resize(f, to, &w, out)
                             : bly_fail_ability(f->kind, BLY_ABILITY_RESIZE);
    else
        st = f->kind->convert ? f->kind->convert(f, to, &w, out)
                              : bly_fail_ability(f->kind, BLY_ABILITY_CONVERT);
    return made_from(f, st, out);
}

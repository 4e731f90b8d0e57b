/*
 * foreign.c - filters of other systems: what all formats have in common
 *
 * The calls of bloomery/foreign.h check their arguments, turn the text of keys
 * into hashes, and walk the parts; what a format is, is in its row (format.h).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sized.h"
#include "foreign/format.h"

/* ------------------------------------------------------------- the table */

#define FORMAT_ROW_(name) &bly_format_##name,
const bly_format *const bly_format_rows[] = { BLY_FORMATS(FORMAT_ROW_)
                                                  BLY_RECORDED(FORMAT_ROW_) };
#undef FORMAT_ROW_

#define FORMAT_COUNT_(name) +1
enum {
    NFORMATS = BLY_FORMATS(FORMAT_COUNT_), /* of files */
    NROWS = NFORMATS BLY_RECORDED(FORMAT_COUNT_)
};
#undef FORMAT_COUNT_
_Static_assert(NROWS <= UINT8_MAX, "bly_foreign.row is a byte");

/* Whether there is a format; if so, it is described. */
static bool format_told(const bly_format *t, bly_format_info *out, size_t size)
{
    if (t) {
        const bly_format_info told = {
            .name = t->name,
            .systems = t->systems,
            .summary = t->summary,
            .can = (t->recognise ? BLY_FORMAT_KNOWN : 0) |
                   (t->hash ? BLY_FORMAT_HAS : 0) |
                   (t->plan ? BLY_FORMAT_NEW : 0) |
                   (t->add ? BLY_FORMAT_ADD : 0) |
                   (t->remove ? BLY_FORMAT_REMOVE : 0) |
                   (t->count ? BLY_FORMAT_COUNT : 0),
            .options = t->options,
            .noptions = t->noptions,
        };
        BLY_GIVE(&told, out, size);
    }
    return t != NULL;
}

bool bly_format_at_sized(size_t index, bly_format_info *out, size_t size)
{
    return format_told(index < NFORMATS ? bly_format_rows[index] : NULL, out,
                       size);
}

/* Of the first n rows the one of that name; NULL. */
static const bly_format *row_named(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(bly_format_rows[i]->name, name) == 0)
            return bly_format_rows[i];
    return NULL;
}

static const bly_format *format_named(const char *name)
{
    return row_named(name, NFORMATS);
}

static bly_status no_format(const char *name)
{
    bly_names known = { { 0 }, 0 };
    for (size_t i = 0; i < NFORMATS; i++)
        bly_names_add(&known, bly_format_rows[i]->name);
    return bly_fail(BLY_EINVAL, "unknown format '%s'; there are: %s", name,
                    known.text);
}

bool bly_format_named_sized(const char *name, bly_format_info *out, size_t size)
{
    return name && format_told(format_named(name), out, size);
}

bool bly_format_of_sized(const void *bytes, size_t nbytes, bly_format_info *out,
                         size_t size)
{
    for (size_t i = 0; i < NFORMATS; i++)
        if (bly_format_rows[i]->recognise &&
            bly_format_rows[i]->recognise(bytes, nbytes))
            return format_told(bly_format_rows[i], out, size);
    return false;
}

/* ------------------------------------------------------ life and options */

/* What an option of f is if nobody gives it; NULL: nothing. */
static const char *option_default(const bly_param *o)
{
    return o->type == BLY_CHOICE ? o->choices[(size_t)o->def] : o->def_text;
}

static char *text_copy(const bly_mem *mem, const char *text)
{
    const size_t n = strlen(text) + 1;
    char *const copy = bly_mem_zalloc(mem, n);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

/* Give f the value of one option. */
static bly_status option_set(bly_foreign *f, const bly_option *given)
{
    bly_names known = { { 0 }, 0 };
    for (uint32_t i = 0; i < bly_row_of(f)->noptions; i++) {
        const bly_param *const o = &bly_row_of(f)->options[i];
        bly_names_add(&known, o->name);
        if (strcmp(o->name, given->name) != 0)
            continue;
        uint64_t unused;
        const bly_status st =
            o->type == BLY_CHOICE
                ? bly_read_choice(o, "format", bly_row_of(f)->name,
                                  given->value, &unused)
                : BLY_OK;
        if (st)
            return st;
        if (f->more->option[i] != option_default(o))
            return bly_fail(BLY_EINVAL, "option %s is given twice", o->name);
        char *const copy = text_copy(f->mem, given->value);
        if (!copy)
            return bly_fail(BLY_ENOMEM, "out of memory");
        f->more->option[i] = copy;
        return BLY_OK;
    }
    return bly_fail(BLY_EINVAL, "format %s has no option '%s'; it has: %s",
                    bly_row_of(f)->name, given->name,
                    known.len ? known.text : "none");
}

static bly_status options_set(bly_foreign *f, const bly_foreign_spec *spec)
{
    bly_key_form form;
    for (uint32_t i = 0; i < bly_row_of(f)->noptions; i++)
        f->more->option[i] = option_default(&bly_row_of(f)->options[i]);
    for (size_t i = 0; i < spec->noptions; i++) {
        if (!spec->options || !spec->options[i].name || !spec->options[i].value)
            return bly_fail_null("options, or a name or value in them");
        const bly_status st = option_set(f, &spec->options[i]);
        if (st)
            return st;
    }
    for (uint32_t i = 0; i < bly_row_of(f)->noptions; i++)
        if (strcmp(bly_row_of(f)->options[i].name, "keys") == 0 &&
            f->more->option[i] && bly_key_form_named(f->more->option[i], &form))
            f->form = form & 63;
    return BLY_OK;
}

static void options_drop(bly_foreign *f)
{
    for (uint32_t i = 0; i < bly_row_of(f)->noptions; i++) {
        const char *const def = option_default(&bly_row_of(f)->options[i]);
        if (f->more->option[i] != def)
            bly_mem_release(f->mem, (char *)f->more->option[i],
                            strlen(f->more->option[i]) + 1);
        f->more->option[i] = def;
    }
}

bly_status bly_foreign_number(const bly_foreign *f, unsigned i, uint64_t min,
                              uint64_t max, uint64_t *out)
{
    const char *const text = f->more->option[i];
    const size_t n = strlen(text);
    errno = 0;
    *out = strtoull(text, NULL, 10);
    if (!n || strspn(text, "0123456789") != n || errno || *out < min ||
        *out > max)
        return bly_fail(BLY_EINVAL,
                        "option %s: '%s' is not a whole number from %llu to "
                        "%llu",
                        bly_row_of(f)->options[i].name, text,
                        (unsigned long long)min, (unsigned long long)max);
    return BLY_OK;
}

static void more_free(bly_foreign *f)
{
    bly_foreign_more *const m = f->more;
    if (f->whole)
        return;
    options_drop(f);
    bly_mem_release(f->mem, m->kept, m->kept_room * sizeof *m->kept);
    bly_block_free(f->mem, &m->block);
    f->max_bytes = m->max_bytes;
    f->whole = true;
    bly_mem_release(f->mem, m, sizeof *m);
}

void bly_foreign_made(bly_foreign *f)
{
    f->planned = true;
    if (!f->whole && !f->more->nkept) /* whose keys are still to be added */
        more_free(f);
}

bly_status bly_foreign_own(bly_foreign *f, size_t nbytes)
{
    f->own = bly_mem_zalloc(f->mem, nbytes);
    f->more->own_bytes = f->own ? nbytes : 0;
    return f->own ? BLY_OK : bly_fail(BLY_ENOMEM, "out of memory");
}

/* Where an allocator stands that is not kept elsewhere; and how many bytes it
 * takes with that, or without. */
static bly_mem *foreign_mem(bly_foreign *f)
{
    return (bly_mem *)(void *)(f + 1);
}

static size_t foreign_bytes(bool with_mem)
{
    return sizeof(bly_foreign) + (with_mem ? sizeof(bly_mem) : 0);
}

void bly_foreign_free(bly_foreign *f)
{
    if (!f)
        return;
    if (bly_row_of(f)->close)
        bly_row_of(f)->close(f);
    else
        bly_mem_release(f->mem, f->own, f->more->own_bytes);
    more_free(f);
    const bly_mem mem = *f->mem; /* which may be behind it */
    bly_mem_release(&mem, f, foreign_bytes(f->mem == foreign_mem(f)));
}

/* An empty one of a format, with its options. */
static bly_status foreign_make(const bly_format *format,
                               const bly_foreign_spec *spec, bly_foreign **out)
{
    const bly_mem *const mem = spec->mem ? spec->mem : &bly_mem_system;
    const bly_mem *const lasting = bly_mem_lasting(mem);
    bly_foreign *const f = bly_mem_zalloc(mem, foreign_bytes(!lasting));
    bly_foreign_more *const more = f ? bly_mem_zalloc(mem, sizeof *more) : NULL;
    if (!more) {
        bly_mem_release(mem, f, foreign_bytes(!lasting));
        return bly_fail(BLY_ENOMEM, "out of memory");
    }
    while (bly_row_of(f) != format)
        f->row++;
    f->more = more;
    f->mem = lasting ? lasting : foreign_mem(f);
    if (!lasting)
        *foreign_mem(f) = *mem;
    f->more->items = spec->items;
    f->more->fpr = spec->fpr == 0 ? 0.01 : spec->fpr;
    f->more->max_bytes = spec->max_bytes;
    f->nparts = 1;
    f->more->one.items = UINT64_MAX;
    f->more->one.fpr_planned = NAN;
    const bly_status st = options_set(f, spec);
    if (st)
        bly_foreign_free(f);
    else
        *out = f;
    return st;
}

bly_status bly_foreign_blank(const bly_foreign_spec *spec, size_t size,
                             bly_foreign **out)
{
    bly_foreign_spec own;
    *out = NULL;
    if (!(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    const char *const name = spec->format ? spec->format : "";
    const bly_format *const format = row_named(name, NROWS);
    if (!format)
        return no_format(name);
    return foreign_make(format, spec, out);
}

/* ---------------------------------------------------------------- opening */

/* The one format that these bytes may be of. */
static bly_status recognise(const unsigned char *bytes, size_t n,
                            const bly_format **out)
{
    *out = NULL;
    for (size_t i = 0; i < NFORMATS; i++) {
        if (!bly_format_rows[i]->recognise ||
            !bly_format_rows[i]->recognise(bytes, n))
            continue;
        if (*out)
            return bly_fail(BLY_EINVAL,
                            "may have the format %s or %s; name the right one",
                            (*out)->name, bly_format_rows[i]->name);
        *out = bly_format_rows[i];
    }
    return *out ? BLY_OK
                : bly_fail(BLY_EFORMAT, "in no format that can be recognised");
}

bly_status bly_foreign_open_sized(const bly_foreign_spec *spec,
                                  const void *bytes, size_t nbytes,
                                  bly_foreign **out, size_t size)
{
    bly_foreign_spec own = { 0 };
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!bytes && nbytes)
        return bly_fail_null("bytes");
    const bly_format *format;
    if (!(spec = spec ? BLY_TAKE(spec, size, &own) : &own))
        return BLY_EINVAL;
    if (spec->format) {
        format = format_named(spec->format);
        if (!format)
            return no_format(spec->format);
    } else {
        const bly_status st = recognise(bytes, nbytes, &format);
        if (st)
            return st;
    }
    bly_foreign *f;
    bly_status st = foreign_make(format, spec, &f);
    if (st)
        return st;
    f->more->bytes = bytes;
    f->more->nbytes = nbytes;
    st = format->open(f);
    if (st)
        bly_foreign_free(f);
    else
        *out = f;
    return st;
}

/* ------------------------------------------------------------- describing */

static void part_at(const bly_foreign *f, size_t i, bly_foreign_part *p)
{
    *p = (bly_foreign_part){ .items = UINT64_MAX, .fpr_planned = NAN };
    if (bly_row_of(f)->part)
        bly_row_of(f)->part(f, i, p);
    else if (!f->whole)
        *p = f->more->one;
}

/* Bits set in all bytes of a part; those past nbits do not count. */
static uint64_t part_ones(const bly_foreign_part *p)
{
    uint64_t ones = 0, i = 0;
    for (; i + 64 <= p->nbits; i += 64)
        ones += (uint64_t)__builtin_popcountll(bly_load64(p->bytes + i / 8));
    for (; i < p->nbits; i++)
        ones += bly_part_bit(p, i);
    return ones;
}

static void part_stat(const bly_foreign *f, const bly_foreign_part *p,
                      bly_foreign_stats *out)
{
    const double m = (double)p->nbits;
    out->bits = p->nbits;
    out->k = p->k;
    out->items = p->items;
    out->capacity = p->capacity;
    out->fpr_planned = p->fpr_planned;
    out->items_estimate = out->fill = NAN;
    out->fpr_now = p->excludes_all ? 0 : 1;
    if (!p->bytes && !p->excludes_all)
        out->fpr_now = p->fpr_planned;
    if (p->excludes_all || p->k == 0 || p->nbits == 0 || !p->bytes)
        return;
    out->ones = part_ones(p);
    out->fill = (double)out->ones / m;
    out->fpr_now =
        bly_row_of(f)->rate ? bly_row_of(f)->rate(f, p) : pow(out->fill, p->k);
    out->items_estimate =
        out->ones < p->nbits ? -m / p->k * log1p(-out->fill) : INFINITY;
}

/* All parts: sums, and the mean of what each says by mistake. */
static void whole_stat(const bly_foreign *f, bly_foreign_stats *out)
{
    bly_foreign_stats s = { 0 };
    bly_foreign_part p;
    double rates = 0, right = 1;
    uint64_t measured = 0; /* bits of parts that have a fill */
    bool differ = false;   /* in k */
    part_at(f, 0, &p);
    part_stat(f, &p, out);
    if (f->nparts == 1) {
        bly_foreign_part_name(f, 0, out->name);
        return;
    }
    *out = (bly_foreign_stats){ .fpr_planned = p.fpr_planned };
    for (size_t i = 0; i < f->nparts; i++) {
        s.ones = 0;
        part_at(f, i, &p);
        part_stat(f, &p, &s);
        out->bits += s.bits;
        out->ones += s.ones;
        out->capacity += s.capacity;
        if (s.k) { /* those that say maybe to all have none */
            differ |= out->k && out->k != s.k;
            out->k = s.k;
        }
        out->items = s.items == UINT64_MAX || out->items == UINT64_MAX
                         ? UINT64_MAX
                         : out->items + s.items;
        if (!(s.fpr_planned == out->fpr_planned))
            out->fpr_planned = NAN;
        if (!isnan(s.fill))
            measured += s.bits;
        out->items_estimate += isnan(s.items_estimate) ? 0 : s.items_estimate;
        if (bly_row_of(f)->rate_of)
            s.fpr_now = bly_row_of(f)->rate_of(f, i);
        right *= 1 - s.fpr_now;
        rates += s.fpr_now;
    }
    out->k = differ ? 0 : out->k;
    out->fpr_now = bly_row_of(f)->rate_of ? 1 - right
                   : f->nparts            ? rates / (double)f->nparts
                                          : NAN;
    out->fill = measured ? (double)out->ones / (double)measured : NAN;
    if (!measured)
        out->items_estimate = NAN;
}

const char *bly_foreign_format(const bly_foreign *f)
{
    return bly_row_of(f)->name;
}

size_t bly_foreign_nparts(const bly_foreign *f)
{
    return f->nparts;
}

void bly_foreign_part_name(const bly_foreign *f, size_t part,
                           char name[BLY_PART_NAME])
{
    name[0] = '\0';
    if (bly_row_of(f)->part_name)
        bly_row_of(f)->part_name(f, part, name);
}

void bly_foreign_stat_sized(const bly_foreign *f, size_t part,
                            bly_foreign_stats *to, size_t size)
{
    bly_foreign_stats own = { 0 }, *const out = &own;
    if (part == BLY_WHOLE && f->nparts == 0) {
        out->fpr_planned = out->items_estimate = out->fpr_now = out->fill = NAN;
        out->items = 0;
    } else if (part == BLY_WHOLE) {
        whole_stat(f, out);
    } else {
        bly_foreign_part p;
        part_at(f, part, &p);
        part_stat(f, &p, out);
        bly_foreign_part_name(f, part, out->name);
    }
    if (part == BLY_WHOLE && bly_row_of(f)->copy)
        out->items = f->nadded;
    if (bly_row_of(f)->rate_of && f->nparts) {
        if (part != BLY_WHOLE || f->nparts == 1)
            out->fpr_now =
                bly_row_of(f)->rate_of(f, part == BLY_WHOLE ? 0 : part);
        if (part == BLY_WHOLE)
            out->items_estimate = (double)f->nadded;
    }
    out->format = bly_row_of(f)->name;
    out->nparts = f->nparts;
    bly_facts facts = { out->facts, 0 };
    if (part == BLY_WHOLE && bly_row_of(f)->describe)
        bly_row_of(f)->describe(f, &facts);
    out->nfacts = facts.n;
    BLY_GIVE(&own, to, size);
}

void bly_foreign_size_sized(const bly_foreign *f, size_t part,
                            bly_foreign_sizes *given, size_t size)
{
    bly_foreign_sizes own = { 0 }, *const out = &own; /* the padding too */
    out->nparts = f->nparts;
    const size_t from = part == BLY_WHOLE ? 0 : part;
    const size_t to = part == BLY_WHOLE ? f->nparts : part + 1;
    for (size_t i = from; i < to; i++) {
        bly_foreign_part p;
        part_at(f, i, &p);
        out->nbytes += bly_row_of(f)->array ? bly_row_of(f)->array(f, i).nbytes
                                            : p.nbits / 8 + (p.nbits % 8 != 0);
        out->bits += p.nbits;
        out->items = p.items == UINT64_MAX ? p.items : out->items + p.items;
        out->capacity += p.capacity;
        out->k = p.k;
        out->fpr_planned = p.fpr_planned;
    }
    if (part == BLY_WHOLE && bly_row_of(f)->copy)
        out->items = f->nadded;
    out->counted = bly_row_of(f)->counted ? bly_row_of(f)->counted(f, to) -
                                                bly_row_of(f)->counted(f, from)
                                          : out->nbytes;
    BLY_GIVE(&own, given, size);
}

const bly_mem *bly_foreign_memory(const bly_foreign *f)
{
    return f->mem;
}

bool bly_foreign_fact(const bly_foreign *f, const char *name, bly_fact *out)
{
    bly_fact all[BLY_MAX_FACTS];
    bly_facts facts = { all, 0 };
    if (bly_row_of(f)->describe)
        bly_row_of(f)->describe(f, &facts);
    for (size_t i = 0; i < facts.n; i++)
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i];
            return true;
        }
    return false;
}

/* ----------------------------------------------------------------- asking */

bly_status bly_foreign_encode_key(const bly_foreign *f, bly_bytes text,
                                  bly_scratch *s, bly_foreign_key *key)
{
    *key = (bly_foreign_key){ .bytes = text.ptr, .len = text.len };
    return bly_row_of(f)->encode      ? bly_row_of(f)->encode(f, text, s, key)
           : f->form != BLY_KEY_BYTES ? bly_key_encode(f->form, text, s, key)
                                      : BLY_OK;
}

void bly_foreign_note_take(const bly_foreign *f, bly_foreign_note *out)
{
    *out = (bly_foreign_note){ .row = f->row };
    if (bly_row_of(f)->note && f->form == BLY_KEY_BYTES)
        bly_row_of(f)->note(f, out);
}

void bly_foreign_expect(const bly_foreign_note *note, bly_bytes key)
{
    if (note->nplaces)
        bly_format_rows[note->row]->expect(note, key);
}

bly_status bly_foreign_read_key(const bly_foreign *f, bly_bytes text,
                                bly_scratch *s, bly_foreign_key *key)
{
    const bly_status st = bly_foreign_encode_key(f, text, s, key);
    if (!st && bly_row_of(f)->hash)
        bly_row_of(f)->hash(f, key);
    return st;
}

static bool places_set(const bly_foreign_part *p, const uint64_t *at)
{
    for (uint32_t j = 0; j < p->k; j++)
        if (!bly_part_bit(p, at[j]))
            return false;
    return true;
}

bool bly_foreign_bits_set(const bly_foreign *f, size_t i,
                          const bly_foreign_key *key)
{
    bly_foreign_part p;
    uint64_t at[BLY_FOREIGN_MAX_K];
    part_at(f, i, &p);
    if (p.excludes_all)
        return false;
    if (p.k == 0)
        return true;
    bly_row_of(f)->positions(f, &p, key, at);
    return places_set(&p, at);
}

static bool part_has(const bly_foreign *f, size_t i, const bly_foreign_key *key)
{
    return bly_row_of(f)->test ? bly_row_of(f)->test(f, i, key)
                               : bly_foreign_bits_set(f, i, key);
}

static bly_status can_ask(const bly_foreign *f)
{
    if (!bly_row_of(f)->hash)
        return bly_fail(
            BLY_ENOTSUP,
            "a filter of the format %s can be described, but not queried",
            bly_row_of(f)->name);
    if (!bly_foreign_opened(f) && !f->planned)
        return bly_fail(BLY_EINVAL, "its size is not known before it is "
                                    "written; give the number of items");
    return BLY_OK;
}

/* Keys that are in the same array are worked on in groups: the places of all
 * are known, and fetched, before the first is looked at. */
#define GROUP 16

/* The places of up to GROUP keys in p, p->k each; how many keys could be read.
 */
static size_t group_places(const bly_foreign *f, const bly_foreign_part *p,
                           const bly_bytes *keys, size_t n, bly_scratch *s,
                           uint64_t *at, bly_status *st)
{
    for (size_t i = 0; i < n; i++, at += p->k) {
        bly_foreign_key key;
        *st = bly_foreign_read_key(f, keys[i], s, &key);
        if (*st)
            return i;
        bly_row_of(f)->positions(f, p, &key, at);
        for (uint32_t j = 0; j < p->k; j++)
            __builtin_prefetch(p->bytes + at[j] / 8);
    }
    return n;
}

/* Is it one array of bits, and nothing else? */
static bool is_one_array(const bly_foreign *f)
{
    return !f->whole && f->nparts == 1 && !bly_row_of(f)->part &&
           !bly_row_of(f)->test && f->more->one.k && f->more->one.bytes &&
           !f->more->one.excludes_all;
}

static bly_status array_has(const bly_foreign *f, const bly_bytes *keys,
                            size_t n, uint64_t *bitmap, bly_scratch *s,
                            size_t *ndone)
{
    const bly_foreign_part *const p = &f->more->one;
    uint64_t at[GROUP * BLY_FOREIGN_MAX_K];
    bly_status st = BLY_OK;
    for (*ndone = 0; *ndone < n && !st;) {
        const size_t left = n - *ndone, base = *ndone;
        *ndone += group_places(f, p, keys + base, left < GROUP ? left : GROUP,
                               s, at, &st);
        for (size_t i = base; i < *ndone; i++)
            bitmap[i / 64] |= (uint64_t)places_set(p, at + (i - base) * p->k)
                              << i % 64;
    }
    return st;
}

static bly_status parts_have(const bly_foreign *f, const bly_bytes *keys,
                             size_t n, uint64_t *bitmap, bly_scratch *s,
                             size_t *ndone)
{
    for (*ndone = 0; *ndone < n; ++*ndone) {
        bly_foreign_key key;
        const bly_status st = bly_foreign_read_key(f, keys[*ndone], s, &key);
        if (st)
            return st;
        bool maybe = false;
        for (size_t j = 0; j < f->nparts && !maybe; j++)
            maybe = part_has(f, j, &key);
        bitmap[*ndone / 64] |= (uint64_t)maybe << *ndone % 64;
    }
    return BLY_OK;
}

size_t bly_foreign_read_keys(const bly_foreign *f, const bly_bytes *keys,
                             size_t n, bly_scratch *s, bly_foreign_key *out,
                             bly_status *st)
{
    const size_t most = n < BLY_CROWD ? n : BLY_CROWD;
    for (size_t i = 0; i < most; i++) {
        *st = bly_foreign_read_key(f, keys[i], s, &out[i]);
        if (*st)
            return i;
    }
    return most;
}

static bly_status crowd_has(const bly_foreign *f, const bly_bytes *keys,
                            size_t n, uint64_t *bitmap, bly_scratch *s,
                            size_t *ndone)
{
    bly_foreign_key crowd[BLY_CROWD];
    bly_status st = BLY_OK;
    for (*ndone = 0; *ndone < n && !st;) {
        const size_t some =
            bly_foreign_read_keys(f, keys + *ndone, n - *ndone, s, crowd, &st);
        if (some)
            bly_row_of(f)->ask(f, crowd, some, bitmap + *ndone / 64);
        *ndone += some;
    }
    return st;
}

/* One alone, without what is made ready for many: commands of a server. */
static bly_status one_has(const bly_foreign *f, bly_bytes text,
                          uint64_t *bitmap)
{
    bly_scratch scratch = { .mem = f->mem };
    bly_foreign_key key;
    bly_status st = can_ask(f);
    *bitmap = 0;
    if (!st)
        st = bly_foreign_read_key(f, text, &scratch, &key);
    if (!st)
        bly_row_of(f)->ask(f, &key, 1, bitmap);
    bly_mem_release(f->mem, scratch.at, scratch.room);
    return st;
}

bly_status bly_foreign_has(const bly_foreign *f, const bly_bytes *keys,
                           size_t n, uint64_t *bitmap, size_t *nbad)
{
    if (!f || (!keys && n) || (!bitmap && n))
        return bly_fail_null("f or keys or bitmap");
    if (nbad)
        *nbad = 0;
    if (n == 1 && bly_row_of(f)->ask)
        return one_has(f, *keys, bitmap);
    bly_scratch scratch = { .mem = f->mem };
    size_t ndone = 0;
    bly_status st = can_ask(f);
    if (n)
        memset(bitmap, 0, BLY_BITMAP_WORDS(n) * sizeof *bitmap);
    if (!st)
        st = (bly_row_of(f)->ask ? crowd_has
              : is_one_array(f)
                  ? array_has
                  : parts_have)(f, keys, n, bitmap, &scratch, &ndone);
    if (nbad && ndone < n)
        *nbad = ndone;
    bly_mem_release(f->mem, scratch.at, scratch.room);
    return st;
}

bly_status bly_foreign_where(const bly_foreign *f, bly_bytes key,
                             uint64_t *bitmap)
{
    if (!f || !bitmap)
        return bly_fail_null("f or bitmap");
    bly_scratch scratch = { .mem = f->mem };
    bly_foreign_key k;
    bly_status st = can_ask(f);
    memset(bitmap, 0, BLY_BITMAP_WORDS(f->nparts) * sizeof *bitmap);
    if (!st)
        st = bly_foreign_read_key(f, key, &scratch, &k);
    for (size_t j = 0; j < f->nparts && !st; j++)
        bitmap[j / 64] |= (uint64_t)part_has(f, j, &k) << j % 64;
    bly_mem_release(f->mem, scratch.at, scratch.room);
    return st;
}

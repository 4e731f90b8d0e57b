/*
 * meta.c - the metadata of a file: what its owner says about its keys
 *
 * A filter holds the entries as they are in the file. To set one, all are
 * written anew: those below it, the new one, those above it.
 */
#include <string.h>

#include "core/bits.h"
#include "core/status.h"
#include "format/meta.h"
#include "format/record.h"
#include "kinds/filter.h"

enum {
    TAG_KEYS = 1, /* a byte for the type, a byte for the forms */
    TAG_NOTE = 2, /* text */
    TAG_PAIR = 3, /* a name, '=', a value */
    TAG_VITAL = 0x8000
};

enum { ENTRY_LENGTH = 2, ENTRY_BYTES = 4 }; /* where they are */

#define ALL_FORMS (BLY_KEYS_FOLDED | BLY_KEYS_TRIMMED | BLY_KEYS_NO_CR)

typedef struct meta_entry {
    unsigned tag;
    bly_bytes is;
} meta_entry;

/* Read the entry at *at, and move *at behind it. False at the end, or if the
 * entry does not fit: then *at is not n. */
static bool next_entry(const unsigned char *bytes, size_t n, size_t *at,
                       meta_entry *out)
{
    const unsigned char *const p = bytes + *at;
    if (n - *at < ENTRY_BYTES)
        return false;
    const uint32_t head = bly_load32(p);
    const size_t len = head >> 16;
    if (n - *at - ENTRY_BYTES < len)
        return false;
    *out = (meta_entry){ head & 0xffff, { p + ENTRY_BYTES, len } };
    *at += ENTRY_BYTES + len;
    return true;
}

/* By tag, then by their bytes. */
static int compare_entries(const meta_entry *a, const meta_entry *b)
{
    if (a->tag != b->tag)
        return a->tag < b->tag ? -1 : 1;
    const size_t n = a->is.len < b->is.len ? a->is.len : b->is.len;
    const int first = n ? memcmp(a->is.ptr, b->is.ptr, n) : 0;
    return first                    ? first
           : a->is.len == b->is.len ? 0
           : a->is.len < b->is.len  ? -1
                                    : 1;
}

/* ------------------------------------------------------------------- text */

/* Decode the character at p, where n bytes can be read. Returns its length, or
 * 0 if it is not valid. */
static size_t utf8_char(const unsigned char *p, size_t n, uint32_t *out)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const size_t len = p[0] < 0x80             ? 1
                       : (p[0] & 0xe0) == 0xc0 ? 2
                       : (p[0] & 0xf0) == 0xe0 ? 3
                       : (p[0] & 0xf8) == 0xf0 ? 4
                                               : 0;
    if (!len || len > n)
        return 0;
    uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    *out = c;
    return c >= least[len] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? len
                                                                          : 0;
}

const char *bly_text_wrong(bly_bytes text)
{
    const unsigned char *p = text.ptr;
    size_t len;
    for (size_t left = text.len; left; p += len, left -= len) {
        uint32_t c;
        len = utf8_char(p, left, &c);
        if (!len)
            return "is not UTF-8";
        if (c < 0x20 || (c >= 0x7f && c < 0xa0))
            return "has control characters or line breaks";
    }
    return NULL;
}

static bool is_name_char(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/* The bytes of the name that a pair begins with. */
static size_t name_bytes(bly_bytes pair)
{
    const unsigned char *const p = pair.ptr;
    size_t n = 0;
    while (n < pair.len && is_name_char(p[n]))
        n++;
    return n;
}

static bool is_pair(bly_bytes pair)
{
    const size_t n = name_bytes(pair);
    return n > 0 && n <= BLY_NAME_MOST && n < pair.len &&
           ((const unsigned char *)pair.ptr)[n] == '=' &&
           pair.len - n - 1 <= BLY_NOTE_MOST;
}

static bool same_name(bly_bytes a, bly_bytes b)
{
    const size_t n = name_bytes(a);
    return n == name_bytes(b) && memcmp(a.ptr, b.ptr, n) == 0;
}

/* --------------------------------------------------------------- checking */

static bly_status check_keys(bly_bytes is, bly_keying *out)
{
    const unsigned char *const p = is.ptr;
    if (is.len != 2)
        return bly_damaged("the type of its keys has another size");
    if (p[0] > BLY_KEYS_UINT64 || p[1] & ~ALL_FORMS)
        return bly_fail(BLY_EFORMAT,
                        "made by a newer bloomery: keys of type %u, form %#x, "
                        "which are unknown here (use a newer one)",
                        p[0], p[1]);
    if (!p[0] || (p[1] && p[0] != BLY_KEYS_TEXT))
        return bly_damaged("the type of its keys contradicts itself");
    *out = (bly_keying){ (bly_key_type)p[0], p[1] };
    return BLY_OK;
}

static bly_status check_entry(const meta_entry *e, bly_keying *keying)
{
    switch (e->tag) {
    case TAG_KEYS:
        return check_keys(e->is, keying);
    case TAG_NOTE:
        return e->is.len && e->is.len <= BLY_NOTE_MOST && !bly_text_wrong(e->is)
                   ? BLY_OK
                   : bly_damaged("its note is not one line of text");
    case TAG_PAIR:
        return is_pair(e->is) && !bly_text_wrong(e->is)
                   ? BLY_OK
                   : bly_damaged("its metadata have a pair that is not a name "
                                 "and a line of text");
    default:
        return e->tag & TAG_VITAL
                   ? bly_fail(BLY_EFORMAT,
                              "made by a newer bloomery: metadata of tag %#x, "
                              "without which keys would be misunderstood (use "
                              "a newer one)",
                              e->tag)
                   : BLY_OK;
    }
}

/* May b follow a? */
static bool in_order(const meta_entry *a, const meta_entry *b)
{
    if (compare_entries(a, b) >= 0)
        return false;
    if (a->tag != b->tag)
        return true;
    return a->tag > TAG_PAIR ||
           (a->tag == TAG_PAIR && !same_name(a->is, b->is));
}

bly_status bly_meta_check(const unsigned char *at, size_t n, bly_keying *keying)
{
    meta_entry last = { 0 }, e;
    size_t done = 0;
    *keying = (bly_keying){ BLY_KEYS_UNKNOWN, 0 };
    if (n > BLY_META_MOST)
        return bly_damaged("its metadata are longer than a file may have");
    while (next_entry(at, n, &done, &e)) {
        if (!in_order(&last, &e))
            return bly_damaged("its metadata are out of order");
        const bly_status st = check_entry(&e, keying);
        if (st)
            return st;
        last = e;
    }
    return done == n && n ? BLY_OK : bly_damaged("its metadata are cut short");
}

/* ---------------------------------------------------------------- reading */

/* Entry i of a tag. */
static bool find_entry(const bly_filter *f, unsigned tag, size_t i,
                       meta_entry *out)
{
    size_t at = 0;
    while (f->extra->meta &&
           next_entry(f->extra->meta->at, f->extra->meta->nbytes, &at, out))
        if (out->tag == tag && i-- == 0)
            return true;
    return false;
}

bly_keying bly_keying_of(const bly_filter *f)
{
    return bly_filter_keying(f);
}

bly_bytes bly_note_of(const bly_filter *f)
{
    meta_entry e;
    return find_entry(f, TAG_NOTE, 0, &e) ? e.is : (bly_bytes){ 0 };
}

bool bly_pair_at(const bly_filter *f, size_t i, bly_bytes *name,
                 bly_bytes *value)
{
    meta_entry e;
    if (!find_entry(f, TAG_PAIR, i, &e))
        return false;
    const size_t n = name_bytes(e.is);
    *name = (bly_bytes){ e.is.ptr, n };
    *value = (bly_bytes){ (const char *)e.is.ptr + n + 1, e.is.len - n - 1 };
    return true;
}

bool bly_pair_of(const bly_filter *f, const char *name, bly_bytes *value)
{
    bly_bytes other;
    for (size_t i = 0; bly_pair_at(f, i, &other, value); i++)
        if (other.len == strlen(name) &&
            memcmp(other.ptr, name, other.len) == 0)
            return true;
    return false;
}

size_t bly_meta_unknown(const bly_filter *f)
{
    meta_entry e;
    size_t at = 0, n = 0;
    while (f->extra->meta &&
           next_entry(f->extra->meta->at, f->extra->meta->nbytes, &at, &e))
        n += e.tag > TAG_PAIR;
    return n;
}

/* ---------------------------------------------------------------- setting */

/* Entries as they are made. */
typedef struct meta_draft {
    unsigned char at[BLY_META_MOST];
    size_t n;
    bool full;
} meta_draft;

static void draft_put(meta_draft *d, const meta_entry *e)
{
    if (e->is.len > sizeof d->at - ENTRY_BYTES ||
        d->n > sizeof d->at - ENTRY_BYTES - e->is.len) {
        d->full = true;
        return;
    }
    bly_store32(d->at + d->n, (uint32_t)(e->tag | e->is.len << 16));
    if (e->is.len)
        memcpy(d->at + d->n + ENTRY_BYTES, e->is.ptr, e->is.len);
    d->n += ENTRY_BYTES + e->is.len;
}

static bly_status may_set(const bly_filter *f)
{
    return f->readonly ? bly_fail(BLY_EREADONLY, "the filter is mapped "
                                                 "read-only: open it to change "
                                                 "it")
                       : bly_filter_alone(f, "get other metadata");
}

/* Replace an entry by e: the entry with the same tag, or the pair with the same
 * name. Without `keep` the old entry is only removed. */
static bly_status meta_set(bly_filter *f, const meta_entry *e, bool keep,
                           bly_keying keying)
{
    meta_draft d = { .n = 0 };
    meta_entry old;
    size_t at = 0;
    const bly_status st = may_set(f);
    if (st)
        return st;
    while (f->extra->meta &&
           next_entry(f->extra->meta->at, f->extra->meta->nbytes, &at, &old)) {
        if (old.tag == e->tag &&
            (e->tag != TAG_PAIR || same_name(old.is, e->is)))
            continue;
        if (keep && compare_entries(e, &old) < 0) {
            draft_put(&d, e);
            keep = false;
        }
        draft_put(&d, &old);
    }
    if (keep)
        draft_put(&d, e);
    if (d.full)
        return bly_fail(BLY_ERANGE,
                        "a filter has at most %d bytes of metadata, and these "
                        "are more: shorten the note, or a value",
                        BLY_META_MOST);
    return bly_filter_set_meta(f, keying, d.at, d.n);
}

bly_status bly_keying_check(bly_keying keying)
{
    if ((unsigned)keying.type > BLY_KEYS_UINT64 || keying.forms & ~ALL_FORMS)
        return bly_fail(BLY_EINVAL, "keys are of no such type or form: use "
                                    "the constants of bloomery.h");
    if (keying.forms && keying.type != BLY_KEYS_TEXT)
        return bly_fail(BLY_EINVAL, "only keys that are text are folded or "
                                    "trimmed: leave forms zero");
    return BLY_OK;
}

bly_status bly_set_keying(bly_filter *f, bly_keying keying)
{
    if (!f)
        return bly_fail_null("f");
    const bly_status st = bly_keying_check(keying);
    if (st)
        return st;
    const unsigned char bytes[] = { (unsigned char)keying.type,
                                    (unsigned char)keying.forms };
    const meta_entry e = { TAG_KEYS, { bytes, sizeof bytes } };
    return meta_set(f, &e, keying.type != BLY_KEYS_UNKNOWN, keying);
}

/* BLY_EINVAL unless this is one line of text, and not too long. */
static bly_status may_be_text(bly_bytes text, const char *what)
{
    const char *const wrong = bly_text_wrong(text);
    if (wrong)
        return bly_fail(BLY_EINVAL, "%s %s; expected one line of text in UTF-8",
                        what, wrong);
    if (text.len > BLY_NOTE_MOST)
        return bly_fail(BLY_ERANGE, "%s has %zu bytes; it may have %d", what,
                        text.len, BLY_NOTE_MOST);
    return BLY_OK;
}

bly_status bly_set_note(bly_filter *f, const char *text)
{
    if (!f)
        return bly_fail_null("f");
    const bly_bytes note = { text, text ? strlen(text) : 0 };
    const bly_status st = may_be_text(note, "the note");
    const meta_entry e = { TAG_NOTE, note };
    return st ? st : meta_set(f, &e, note.len, bly_filter_keying(f));
}

bly_status bly_set_pair(bly_filter *f, const char *name, const char *value)
{
    char pair[BLY_NAME_MOST + 1 + BLY_NOTE_MOST];
    if (!f || !name)
        return bly_fail_null("f or name");
    const size_t n = strlen(name);
    if (!n || n > BLY_NAME_MOST || name_bytes((bly_bytes){ name, n }) < n)
        return bly_fail(BLY_EINVAL,
                        "a name in the metadata has 1 to %d letters, digits, "
                        "dots, dashes and underscores",
                        BLY_NAME_MOST);
    const bly_bytes text = { value, value ? strlen(value) : 0 };
    const bly_status st = may_be_text(text, "a value in the metadata");
    if (st)
        return st;
    memcpy(pair, name, n);
    pair[n] = '=';
    if (text.len)
        memcpy(pair + n + 1, text.ptr, text.len);
    const meta_entry e = { TAG_PAIR, { pair, n + 1 + text.len } };
    return meta_set(f, &e, value != NULL, bly_filter_keying(f));
}

bly_status bly_copy_meta(bly_filter *f, const bly_filter *from)
{
    if (!f || !from)
        return bly_fail_null("f or from");
    const bly_status st = may_set(f);
    return st || f == from ? st : bly_filter_inherit(from, f);
}

/* -------------------------------------------------------------- combining */

bly_status bly_meta_adopt(bly_filter *dst, const bly_filter *src)
{
    const bly_keying of_src = bly_filter_keying(src);
    return of_src.type && !bly_filter_keying(dst).type
               ? bly_set_keying(dst, of_src)
               : BLY_OK;
}

bly_status bly_hash_adopt(bly_filter *dst, const bly_filter *src)
{
    return bly_filter_folds(dst) != bly_filter_folds(src) &&
                   bly_filter_silent(dst)
               ? bly_filter_rehash(dst, &src->extra->hasher, 0, false)
               : BLY_OK;
}

bly_status bly_meta_combine(bly_filter *dst, const bly_filter *src,
                            bly_status (*op)(bly_filter *dst,
                                             const bly_filter *src))
{
    /* Whatever may fail is done on a filter that has nothing but the
     * metadata. */
    const bly_shape none = { .nbytes = 0 };
    const bly_setting set = bly_setting_of(dst);
    const bly_hasher hashed = dst->extra->hasher;
    bly_filter *next;
    bly_status st = bly_filter_shell(dst->kind, &none, &set, &next);
    if (st)
        return st;
    st = bly_filter_inherit(dst, next);
    if (!st)
        st = bly_meta_adopt(next, src);
    if (!st && next->extra->meta && !bly_filter_extra(dst))
        st = BLY_ENOMEM;
    if (!st)
        st = bly_hash_adopt(dst, src);
    if (!st)
        st = op(dst, src);
    if (st && dst->extra->hasher.id != hashed.id)
        (void)bly_filter_rehash(dst, &hashed, 0, false);
    dst->written |= src->written || src->format;
    if (!st && next->extra->meta) {
        /* op() may have turned dst into another filter, which has a place for
         * metadata. */
        bly_meta *const was = dst->extra->meta;
        dst->extra->meta = next->extra->meta;
        next->extra->meta = was;
    }
    bly_free(next);
    return st;
}

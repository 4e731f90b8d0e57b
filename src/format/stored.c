/*
 * stored.c - sketches in .bly files
 *
 * A sketch is one record (record.h): a short header, whose kind is a type of
 * sketch and whose encoding says so, and the payload, which is what the type
 * makes of it (stored_types.c). The header says where the hashes come from,
 * and may have metadata, of which the type of the keys is the only entry.
 *
 *     +------------------+--------------------------+---------+
 *     | header, 296 bytes| metadata, if keys have   | payload |
 *     |                  | a type: 24 bytes         |         |
 *     +------------------+--------------------------+---------+
 *
 * Reading trusts nothing, as in reader.c: checksums find accidents, and the
 * type checks what it is given, since checksums can be forged. Memory grows as
 * bytes arrive. There is no mapping: a sketch is a few KiB, and all of it is
 * needed.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/delta.h"
#include "format/filter_files.h"
#include "format/reader.h"
#include "format/replace.h"
#include "format/stored.h"

/* ------------------------------------------------------------------- types */

static const struct {
    const char *name, *help;
} stored_words[] = { { NULL, NULL },
#define STORED_WORDS(type, name, help) { name, help },
                     BLY_STORED_TYPES(STORED_WORDS)
#undef STORED_WORDS
};

const char *bly_stored_name(bly_stored_type type)
{
    return bly_stored_row_of(type) ? stored_words[type].name : NULL;
}

const char *bly_stored_help(bly_stored_type type)
{
    return bly_stored_row_of(type) ? stored_words[type].help : NULL;
}

static const bly_kind *find_type(uint32_t id)
{
    const bly_stored_row *const row =
        id < BLY_STORED_IDS
            ? NULL
            : bly_stored_row_of((bly_stored_type)(id - BLY_STORED_IDS));
    return row ? &row->kind : NULL;
}

bly_stored_type bly_stored_peek(const void *bytes, size_t nbytes)
{
    /* Magic, kind and encoding of record.c. */
    const unsigned char *const at = bytes;
    if (!at || nbytes < BLY_STORED_PEEK || !bly_record_begins(at, 8) ||
        bly_load32(at + 68) != BLY_CODE_SKETCH)
        return BLY_STORED_NONE;
    const uint32_t id = bly_load32(at + 12);
    return find_type(id) ? (bly_stored_type)(id - BLY_STORED_IDS)
                         : BLY_STORED_NONE;
}

/* What it holds, if there is anything. */
static const void *held(const bly_stored *s)
{
    switch (s->type) {
    case BLY_STORED_HLL:
        return s->hll;
    case BLY_STORED_TOPK:
        return s->topk;
    case BLY_STORED_LIKENESS:
        return s->likeness;
    default:
        return NULL;
    }
}

/* The row of a sketch; NULL, after bly_fail(BLY_EINVAL), if it is none. */
static const bly_stored_row *row_of(const bly_stored *s)
{
    if (s && held(s))
        return bly_stored_row_of(s->type);
    if (s)
        bly_fail(BLY_EINVAL, "a bly_stored without a sketch");
    else
        bly_fail_null("s");
    return NULL;
}

/* ----------------------------------------------------------------- writing */

/* The entry of metadata that says what keys are. */
#define META_KEYS 6

static bool sum_piece(void *ctx, const void *bytes, size_t nbytes)
{
    bly_summing_add(ctx, bytes, nbytes);
    return true;
}

static void tell(const bly_stored *s, const bly_stored_row *row,
                 unsigned char meta[META_KEYS], bly_record *out)
{
    *out = (bly_record){
        .kind = &row->kind,
        .fpr = NAN,
        .hash_id = BLY_HASH_XXH3,
        .encoding = BLY_CODE_SKETCH,
    };
    const bly_origin *const origin = row->tell(s, out);
    out->nstored = out->shape.nbytes;
    if (!origin)
        return;
    out->hash_id = origin->hasher.id;
    out->seed = origin->hasher.seed;
    out->secret_check = origin->secret_check;
    out->keying = origin->keying;
    if (origin->keying.type) {
        bly_store32(meta, 1 | 2 << 16); /* tag 1, two bytes */
        meta[4] = (unsigned char)origin->keying.type;
        meta[5] = (unsigned char)origin->keying.forms;
        out->meta = meta;
        out->nmeta = META_KEYS;
    }
}

bly_status bly_stored_write(const bly_stored *s, bly_put *put, void *ctx)
{
    unsigned char page[BLY_PAGE], meta[META_KEYS];
    bly_record r;
    bly_summing sum;
    if (!put)
        return bly_fail_null("put");
    const bly_stored_row *const row = row_of(s);
    if (!row)
        return BLY_EINVAL;
    tell(s, row, meta, &r);
    bly_status st = r.keying.type ? bly_keying_check(r.keying) : BLY_OK;
    if (st)
        return st;
    bly_summing_start(&sum);
    st = row->put(s, sum_piece, &sum);
    if (st)
        return st;
    r.payload_sum = bly_summing_end(&sum);
    bly_record_encode(&r, page);
    if (!put(ctx, page, bly_header_bytes(true, r.nmeta)))
        return bly_fail(BLY_EIO, "the receiver stopped the writing");
    return row->put(s, put, ctx);
}

uint64_t bly_stored_bytes(const bly_stored *s)
{
    const bly_stored_row *const row = row_of(s);
    unsigned char meta[META_KEYS];
    bly_record r;
    if (!row)
        return 0;
    tell(s, row, meta, &r);
    return bly_header_bytes(true, r.nmeta) + r.nstored;
}

static bly_status write_stored(const void *what, bly_put *put, void *ctx)
{
    return bly_stored_write(what, put, ctx);
}

bly_status bly_stored_save(const bly_stored *s, const char *path)
{
    if (!path)
        return bly_fail_null("path");
    return row_of(s) ? bly_file_save(path, NULL, NULL, write_stored, s)
                     : BLY_EINVAL;
}

/* ----------------------------------------------------------------- reading */

/* The first allocation if the size is unknown. */
#define FIRST_PAYLOAD ((uint64_t)1 << 20)

typedef struct stored_source {
    const bly_source *src;
    uint64_t at;
} stored_source;

/* All of n bytes, of a file of `whole` bytes at least. */
static bly_status take_bytes(stored_source *s, void *buf, size_t n,
                             uint64_t whole)
{
    const bly_source *const src = s->src;
    size_t got = src->nbytes - s->at < n ? (size_t)(src->nbytes - s->at) : n;
    if (src->bytes && got) {
        memcpy(buf, src->bytes + s->at, got);
    } else if (got) {
        const int64_t some = src->get(src->ctx, buf, got);
        if (some < 0 || (uint64_t)some > got)
            return bly_fail(BLY_EIO, "the source cannot be read");
        got = (size_t)some;
    }
    s->at += got;
    return got == n ? BLY_OK : bly_cut_short(s->at, whole, false);
}

static bly_status take_header(stored_source *s, unsigned char *page,
                              bly_record *out)
{
    const size_t least = BLY_STORED_PEEK;
    memset(page, 0, BLY_PAGE);
    bly_status st = take_bytes(s, page, least, BLY_SHORT_HEADER);
    if (st == BLY_EIO)
        return st;
    if (s->at == 0)
        return bly_fail(BLY_EFORMAT, "empty, not a .bly file");
    if (!bly_record_begins(page, (size_t)s->at))
        return bly_not_a_filter(page, (size_t)s->at);
    /* A file that is not a sketch may be long or short, and is not read
     * further. */
    if (!st && bly_load32(page + 68) != BLY_CODE_SKETCH)
        return bly_load32(page + 68) <= BLY_CODE_BYTES
                   ? bly_fail(BLY_EFORMAT, "a filter, not a sketch")
                   : bly_fail(BLY_EFORMAT,
                              "made by a newer bloomery (use a newer one)");
    size_t have = least;
    for (size_t all = BLY_SHORT_HEADER; !st && have < all;
         all = bly_record_span(page, have)) {
        st = take_bytes(s, page + have, all - have, all);
        have = all;
    }
    return st ? st : bly_record_decode_sketch(page, find_type, out);
}

/* The payload into a block of its own. */
static bly_status take_payload(stored_source *s, uint64_t nbytes,
                               const bly_mem *mem, bly_block *out)
{
    const uint64_t whole = s->at + nbytes;
    bly_block have = { 0 };
    uint64_t nhave = 0, room = nbytes;
    bly_status st = BLY_OK;
    if (s->src->nbytes == BLY_SIZE_UNKNOWN && room > FIRST_PAYLOAD)
        room = FIRST_PAYLOAD;
    if (s->src->nbytes - s->at < nbytes)
        return bly_cut_short(s->src->nbytes, whole, false);
    do {
        bly_block more;
        st = bly_block_new(mem, room, &more);
        if (st)
            break;
        if (nhave)
            memcpy(more.at, have.at, (size_t)nhave);
        bly_block_free(mem, &have);
        have = more;
        st = take_bytes(s, have.at + nhave, (size_t)(room - nhave), whole);
        nhave = room;
        room = nbytes - room < room ? nbytes : 2 * room;
    } while (!st && nhave < nbytes);
    if (st)
        bly_block_free(mem, &have);
    else
        *out = have;
    return st;
}

/* Where its hashes come from, if the secret is right. */
static bly_status unlock(const bly_record *r, const bly_access *how,
                         bly_origin *out)
{
    const unsigned char *const secret = how->secret;
    *out = bly_origin_of(r->seed, secret);
    out->keying = r->keying;
    if (r->hash_id != BLY_HASH_SIPHASH13)
        return secret ? bly_fail(BLY_ESECRET,
                                 "not a keyed sketch, but a key was given: "
                                 "open it without, or make it with one")
                      : BLY_OK;
    if (!secret && !how->blind)
        return bly_fail(BLY_ESECRET,
                        "a keyed sketch: give the key it was made with");
    if (secret && out->secret_check != r->secret_check)
        return bly_fail(BLY_ESECRET,
                        "keyed with another key, not the one given");
    out->hasher.id = BLY_HASH_SIPHASH13;
    out->hasher.seed = 0;
    out->secret_check = r->secret_check;
    out->blind = !secret;
    return BLY_OK;
}

static bly_status load_record(const bly_record *r, const bly_access *how,
                              const bly_block *payload, const bly_mem *mem,
                              bly_stored *out)
{
    if (bly_checksum(payload->at, (size_t)r->nstored) != r->payload_sum)
        return bly_damaged("the payload does not match its checksum");
    const bly_stored_type type =
        (bly_stored_type)(r->kind->id - BLY_STORED_IDS);
    bly_origin origin;
    bly_status st = unlock(r, how, &origin);
    if (!st)
        st = bly_stored_row_of(type)->load(r, &origin, payload->at, mem, out);
    bly_origin_forget(&origin);
    if (!st)
        out->type = type;
    return st;
}

/* A sketch that is all there is in src. */
static bly_status stored_read(const bly_source *src, const bly_access *how,
                              void *out)
{
    static const bly_access plainly = { 0 };
    unsigned char page[BLY_PAGE], more;
    stored_source s = { .src = src };
    bly_record r;
    bly_block payload = { 0 };
    how = how ? how : &plainly;
    const bly_mem *const mem = how->mem ? how->mem : &bly_mem_system;
    bly_status st = take_header(&s, page, &r);
    if (st)
        return st;
    if (r.meta && (r.nmeta != META_KEYS || !r.keying.type))
        return bly_fail(BLY_EFORMAT, "made by a newer bloomery: a sketch with "
                                     "metadata that are unknown here (use a "
                                     "newer one)");
    if (r.items || !isnan(r.fpr))
        return bly_damaged("a sketch with a capacity or a rate");
    if (how->max_bytes && r.nstored > how->max_bytes)
        return bly_fail(BLY_ERANGE,
                        "the sketch needs %llu bytes or more, the limit is "
                        "%llu",
                        (unsigned long long)r.nstored,
                        (unsigned long long)how->max_bytes);
    st = take_payload(&s, r.nstored, mem, &payload);
    if (!st && take_bytes(&s, &more, 1, 0) == BLY_OK)
        st = bly_damaged("bytes follow the end of the sketch");
    if (!st)
        st = load_record(&r, how, &payload, mem, out);
    bly_block_free(mem, &payload);
    return st;
}

bly_status bly_stored_load_sized(const void *bytes, size_t nbytes,
                                 const bly_access *how, bly_stored *out,
                                 size_t size)
{
    if (out)
        *out = (bly_stored){ 0 };
    return bly_load_with(stored_read, (bly_bytes){ bytes, nbytes }, how, out,
                         size);
}

static bly_status stored_from_file(bly_file *in, const char *path,
                                   const bly_access *how, void *out)
{
    const bly_source src = { .get = bly_file_get,
                             .ctx = in,
                             .nbytes = in->nbytes };
    const bly_status st = stored_read(&src, how, out);
    if (in->err)
        bly_stored_free(out);
    return in->err ? bly_io_fail(path, "read", in->err)
                   : bly_named_fail(st, path);
}

bly_status bly_stored_open_sized(const char *path, const bly_access *how,
                                 bly_stored *out, size_t size)
{
    if (out)
        *out = (bly_stored){ 0 };
    return bly_file_with(stored_from_file, path, how, out, size);
}

void bly_stored_free(bly_stored *s)
{
    const bly_stored_row *const row = s ? bly_stored_row_of(s->type) : NULL;
    if (row)
        row->free(s);
    if (s)
        *s = (bly_stored){ 0 };
}

/* --------------------------------------------------- merging and changing */

bly_status bly_stored_merge(bly_stored *dst, const bly_stored *src)
{
    const bly_stored_row *const to = row_of(dst);
    const bly_stored_row *const from = to ? row_of(src) : NULL;
    if (!from)
        return BLY_EINVAL;
    if (to != from)
        return bly_fail(BLY_EUNFIT,
                        "sketches of the types %s and %s do not go together",
                        to->kind.name, from->kind.name);
    return to->merge(dst, src);
}

typedef struct stored_changing {
    const bly_access *how;
    bly_stored_change *change;
    void *ctx;
    bly_stored s;
} stored_changing;

static bly_status changing_read(void *what, const char *path, bly_file *in)
{
    stored_changing *const c = what;
    const bly_status st = stored_from_file(in, path, c->how, &c->s);
    return st ? st : c->change(&c->s, c->ctx);
}

static bly_status changing_write(const void *what, bly_put *put, void *ctx)
{
    return bly_stored_write(&((const stored_changing *)what)->s, put, ctx);
}

bly_status bly_stored_update_sized(const char *path, const bly_access *how,
                                   const bly_stored *first,
                                   bly_stored_change *change, void *ctx,
                                   size_t size)
{
    bly_access own;
    if (!path || !change)
        return bly_fail_null("path or change");
    if (how && !(how = BLY_TAKE(how, size, &own)))
        return BLY_EINVAL;
    if (first && !row_of(first))
        return BLY_EINVAL;
    const bly_writing made = { write_stored, first };
    stored_changing c = { .how = how, .change = change, .ctx = ctx };
    const bly_status st = bly_file_change(path, how, first ? &made : NULL,
                                          changing_read, changing_write, &c);
    bly_stored_free(&c.s);
    return st;
}

/* ---------------------------------------------------------- of known types */

/* Open the sketch in path if it is of a type. */
static bly_status open_typed(const char *path, bly_stored_type type,
                             const bly_mem *mem, bly_stored *out)
{
    const bly_access how = { .mem = mem };
    const bly_status st = bly_stored_open(path, &how, out);
    if (st || out->type == type)
        return st;
    const char *const is = bly_stored_name(out->type);
    bly_stored_free(out);
    return bly_fail(BLY_EUNFIT, "%s: a sketch of type %s, not %s", path, is,
                    bly_stored_name(type));
}

/* Save and open, as the public header has them for each type. */
#define TYPED(noun, object, member, TYPE)                                     \
    bly_status bly_##noun##_save(const object *s, const char *path)           \
    {                                                                         \
        const bly_stored any = { .type = BLY_STORED_##TYPE,                   \
                                 .member = (object *)(uintptr_t)s };          \
        return s ? bly_stored_save(&any, path) : bly_fail_null("s");          \
    }                                                                         \
    bly_status bly_##noun##_open(const char *path, const bly_mem *mem,        \
                                 object **out)                                \
    {                                                                         \
        bly_stored any;                                                       \
        if (!out)                                                             \
            return bly_fail_null("out");                                      \
        *out = NULL;                                                          \
        const bly_status st = open_typed(path, BLY_STORED_##TYPE, mem, &any); \
        if (!st)                                                              \
            *out = any.member;                                                \
        return st;                                                            \
    }

TYPED(hll, bly_hll, hll, HLL)
TYPED(topk, bly_topk, topk, TOPK)
TYPED(sketch, bly_sketch, likeness, LIKENESS)

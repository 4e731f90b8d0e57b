/*
 * reader.c - the bytes of a .bly file to a filter, from any source
 *
 * Nothing is trusted. A header must match its checksum and be one that its kind
 * could have written (record.c). Memory is allocated only when the source is
 * known to hold as many bytes or, if its size is unknown, in steps that double
 * as bytes arrive. So a header that lies about its size costs a MiB, or three
 * times what was really there. Then the payload must match its checksum, the
 * bytes between records must be zero, nothing may follow the last one, and the
 * kind must accept it: sound() judges state and layers, check() the data.
 *
 * Checksums find accidents, but a forger computes them anew. So it is the later
 * checks that make a filter safe to use; checksums only make sure that it is
 * right.
 *
 * A coded payload is read into memory as it is stored, and decoded if its
 * checksum is right. The decoded size is in the header, whatever the stream
 * says. Since a stream has at least one byte for 1024 decoded bytes, that
 * memory too is bounded by the bytes that were there.
 *
 * A mapped file goes the same way, except that its payloads are not read now.
 * They are checked block by block as queries reach them, if the file has a
 * table of sums (core/block_sums.h), and otherwise by bly_verify() on demand.
 * Coded payloads are read, and then the filter does not need the file any more.
 *
 * A mapped file may change while it is being read. So headers and tables are
 * copied first, and the copies are checked and used.
 */
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/compact.h"
#include "format/delta.h"
#include "format/reader.h"
#include "format/record.h"
#include "kinds/filter.h"

/* The first allocation if the size is unknown. */
#define FIRST_STEP ((uint64_t)1 << 20)

typedef struct reader {
    const bly_source *src;
    bly_access how;
    uint64_t at;       /* bytes read so far */
    uint64_t held;     /* bytes of payload so far */
    uint32_t nrecords; /* so far */
    uint64_t tables;   /* bytes of tables of sums so far, with their zeros */
    bool alone;        /* the root is known, and to have no layers */
    bly_record root;   /* whose hash its layers share */
    bly_hasher hasher;
    bool blind;
    bool compact;    /* the file is, */
    bly_summing sum; /* and this is the sum of it so far */
} reader;

/* Where the file lies in memory, if it is mapped. */
static unsigned char *map_of(const bly_source *src)
{
#ifdef __wasm__ /* where nothing is */
    (void)src;
    return NULL;
#else
    return src->map;
#endif
}

/* The source ends before byte `needs` of the file. */
static bly_status ends_early(const reader *r, uint64_t needs)
{
    const uint64_t known = r->src->nbytes;
    return bly_cut_short(known == BLY_SIZE_UNKNOWN ? r->at : known, needs,
                         !r->alone);
}

/* At most n bytes, fewer only at the end of the source. */
static bly_status fetch_some(reader *r, void *buf, size_t n, size_t *ngot)
{
    const bly_source *s = r->src;
    *ngot = 0;
    if (s->nbytes - r->at < n)
        n = (size_t)(s->nbytes - r->at);
    if (s->bytes) {
        if (n)
            memcpy(buf, s->bytes + r->at, n);
        *ngot = n;
    } else if (n) {
        const int64_t got = s->get(s->ctx, buf, n);
        if (got < 0 || (uint64_t)got > n)
            return bly_fail(BLY_EIO, "the source cannot be read");
        *ngot = (size_t)got;
    }
    r->at += *ngot;
    if (r->compact)
        bly_summing_add(&r->sum, buf, *ngot);
    return BLY_OK;
}

static bly_status fetch_all(reader *r, void *buf, size_t n)
{
    const uint64_t end = r->at + n;
    size_t got;
    const bly_status st = fetch_some(r, buf, n, &got);
    return st ? st : got < n ? ends_early(r, end) : BLY_OK;
}

/* The rest of a compact header, of which the prefix is there. */
static bly_status fetch_compact(reader *r, bool root, const bly_record *before,
                                unsigned char page[BLY_PAGE], bly_record *out)
{
    const size_t have = bly_compact_prefix(root);
    const size_t n = bly_compact_span(page, root);
    if (!n)
        return bly_damaged("a header is of an impossible size");
    const bly_status st = fetch_all(r, page + have, n - have);
    return st ? st
              : bly_compact_decode(page, n, root ? NULL : &r->root, before,
                                   out);
}

/* Read the next header into page, into which out->meta points; before: the
 * record of the layer before it, or NULL. */
static bly_status fetch_record(reader *r, const bly_record *before,
                               unsigned char page[BLY_PAGE], bly_record *out)
{
    size_t got, all;
    const uint64_t start = r->at;
    const bool first = start == 0;
    if (r->compact) {
        const bly_status short_of = fetch_all(r, page, 2);
        return short_of ? short_of : fetch_compact(r, false, before, page, out);
    }
    bly_status st = fetch_some(r, page, bly_compact_prefix(true), &got);
    if (!st && first && bly_compact_begins(page, got)) {
        r->compact = true;
        bly_summing_start(&r->sum);
        bly_summing_add(&r->sum, page, got);
        return fetch_compact(r, true, NULL, page, out);
    }
    if (!st && got == bly_compact_prefix(true)) {
        st = fetch_some(r, page + got, BLY_SHORT_HEADER - got, &all);
        got += all;
    }
    const bool begun =
        !st && got == BLY_SHORT_HEADER && bly_record_begins(page, got);
    while (begun && !st && got < (all = bly_record_span(page, got))) {
        st = fetch_all(r, page + got, all - got);
        got = all;
    }
    if (st)
        return st;
    if (got >= BLY_SHORT_HEADER)
        return bly_record_decode(page, out);
    if (first && got == 0)
        return bly_fail(BLY_EFORMAT, "empty, not a .bly file");
    if (first && !bly_record_begins(page, got))
        return bly_not_a_filter(page, got);
    return ends_early(r, start + BLY_SHORT_HEADER);
}

/* Read the zeros up to where the next record starts. */
static bly_status fetch_padding(reader *r)
{
    unsigned char pad[BLY_PAGE];
    if (r->compact)
        return BLY_OK;
    const size_t align = bly_record_align(r->root.encoding != 0);
    const size_t n = (size_t)(-r->at & (align - 1));
    const bly_status st = fetch_all(r, pad, n);
    if (st)
        return st;
    for (size_t i = 0; i < n; i++)
        if (pad[i])
            return bly_damaged("bytes between two filters are not zero");
    return BLY_OK;
}

/* nbytes into a block of their own. */
static bly_status fetch_block(reader *r, const bly_mem *mem, uint64_t nbytes,
                              bly_block *out)
{
    bly_block have = { 0 };
    uint64_t nhave = 0;
    uint64_t room = nbytes;
    if (r->src->nbytes == BLY_SIZE_UNKNOWN && room > FIRST_STEP)
        room = FIRST_STEP;
    for (;;) {
        bly_block more;
        bly_status st = bly_block_new(mem, room, &more);
        if (st) {
            bly_block_free(mem, &have);
            return st;
        }
        if (nhave)
            memcpy(more.at, have.at, (size_t)nhave);
        bly_block_free(mem, &have);
        have = more;
        st = fetch_all(r, have.at + nhave, (size_t)(room - nhave));
        if (st) {
            bly_block_free(mem, &have);
            return st;
        }
        if (room == nbytes)
            break;
        nhave = room;
        room = nbytes - room < room ? nbytes : 2 * room;
    }
    *out = have;
    return BLY_OK;
}

/* The payload of f into a body that it has from then on. */
static bly_status fetch_body(reader *r, bly_filter *f)
{
    const uint64_t nbytes = f->shape.nbytes;
    const bly_mem *const mem = bly_filter_mem(f);
    bly_block block;
    /* The source really has the bytes, or there are so few that a lie does not
     * matter. */
    if (r->src->nbytes != BLY_SIZE_UNKNOWN || nbytes <= FIRST_STEP) {
        const bly_status st = bly_filter_body(f);
        return st ? st : fetch_all(r, f->data, (size_t)nbytes);
    }
    bly_status st = fetch_block(r, mem, nbytes, &block);
    if (st)
        return st;
    st = bly_filter_body_for(f, &block);
    if (st)
        bly_block_free(mem, &block);
    return st;
}

/* Decode the n bytes at `coded` into f, whose memory is asked for now that they
 * are there: at most BLY_CODE_RATIO times as many. */
static bly_status decode_payload(const reader *r, const bly_record *rec,
                                 const void *coded, bly_filter *f)
{
    const uint64_t nbytes = rec->shape.nbytes;
    if (!r->compact &&
        bly_checksum(coded, (size_t)rec->nstored) != rec->payload_sum)
        return bly_damaged("the payload does not match its checksum");
    const bly_status st = bly_filter_body(f);
    if (st)
        return st;
    if (!bly_decode(rec->encoding, coded, (size_t)rec->nstored, f->data,
                    (size_t)nbytes))
        return bly_damaged("the payload is not coded as a filter is");
    return BLY_OK;
}

static bly_status fetch_coded(reader *r, const bly_record *rec, bly_filter *f)
{
    bly_status st;
    f->coded = true;
    /* An array is decoded in place. But a mapped file may change between the
     * checksum and the decoder, so both work on one copy of it. */
    if (r->src->bytes && !map_of(r->src)) {
        const unsigned char *const coded = r->src->bytes + r->at;
        if (r->compact)
            bly_summing_add(&r->sum, coded, (size_t)rec->nstored);
        st = decode_payload(r, rec, coded, f);
        r->at += rec->nstored;
    } else {
        bly_block coded;
        st = fetch_block(r, bly_filter_mem(f), rec->nstored, &coded);
        if (st)
            return st;
        st = decode_payload(r, rec, coded.at, f);
        bly_block_free(bly_filter_mem(f), &coded);
    }
    return st;
}

/* The table of sums of a payload, and the zeros behind it. */
static bly_status fetch_table(reader *r, const bly_record *rec,
                              const bly_mem *mem, bly_block *out)
{
    const uint64_t n = bly_table_bytes(rec->nstored), start = r->at;
    *out = (bly_block){ 0 };
    bly_status st = n ? fetch_block(r, mem, n, out) : BLY_OK;
    if (!st && bly_checksum(out->at, (size_t)n) != rec->payload_sum)
        st = bly_damaged("the table of sums does not match its checksum");
    if (!st)
        st = fetch_padding(r);
    if (st)
        bly_block_free(mem, out);
    r->tables += r->at - start;
    return st;
}

/* Compare a payload that was read with its table. */
static bly_status compare_blocks(const bly_filter *f, const bly_block *table,
                                 uint64_t offset)
{
    const uint64_t nbytes = f->shape.nbytes;
    const uint64_t n = bly_sums_count(nbytes, BLY_SUMS_SHIFT);
    for (uint64_t i = 0; i < n; i++)
        if (bly_sums_of(f->data, nbytes, BLY_SUMS_SHIFT, i) !=
            bly_sums_at(table, i))
            return bly_sums_fail(offset, nbytes, BLY_SUMS_SHIFT, i);
    return BLY_OK;
}

/* Use a payload where it lies. */
static bly_status map_payload(reader *r, const bly_record *rec,
                              bly_block *table, bly_filter *f)
{
    const uint64_t nbytes = rec->shape.nbytes, offset = r->at;
    bly_outside *const outside = bly_filter_outside(f);
    bly_status st = outside ? bly_filter_body_for(f, NULL) : BLY_ENOMEM;
    if (st)
        return st;
    f->data = map_of(r->src) + offset;
    f->readonly = true;
    outside->payload_sum = rec->payload_sum;
    r->at += nbytes;
    if (!rec->summed)
        return BLY_OK;
    st = bly_sums_new(bly_filter_mem(f), f->data, nbytes, BLY_SUMS_SHIFT,
                      r->how.checking == BLY_CHECK_NOTHING, table,
                      &outside->sums);
    if (!st)
        outside->sums->offset = offset;
    return st;
}

/* A copy read from a mapped file is read-only all the same. */
static bly_status seal_copy(bly_filter *f)
{
    bly_outside *const outside = bly_filter_outside(f);
    if (!outside)
        return BLY_ENOMEM;
    f->readonly = true;
    outside->payload_sum = bly_checksum(f->data, (size_t)f->shape.nbytes);
    return BLY_OK;
}

/* Read a payload into memory of its own. */
static bly_status read_payload(reader *r, const bly_record *rec,
                               const bly_block *table, bly_filter *f)
{
    const uint64_t nbytes = rec->shape.nbytes, offset = r->at;
    const uint64_t limit = r->how.max_bytes;
    r->held += nbytes;
    if (limit && r->held > limit)
        return bly_fail(BLY_ERANGE,
                        "the filter needs %llu bytes or more, the limit is "
                        "%llu",
                        (unsigned long long)r->held, (unsigned long long)limit);
    const bly_status st =
        rec->encoding ? fetch_coded(r, rec, f) : fetch_body(r, f);
    if (!st && map_of(r->src))
        return seal_copy(f);
    if (st || rec->encoding || r->compact)
        return st;
    if (rec->summed)
        return compare_blocks(f, table, offset);
    if (bly_checksum(f->data, (size_t)nbytes) != rec->payload_sum)
        return bly_damaged("the payload does not match its checksum");
    return BLY_OK;
}

static bly_status fetch_payload(reader *r, const bly_record *rec, bly_filter *f)
{
    const uint64_t span = rec->summed ? bly_table_span(rec->nstored) : 0;
    bly_block table = { 0 };
    bly_status st = BLY_OK;
    if (span + rec->nstored > r->src->nbytes - r->at)
        return ends_early(r, r->at + span + rec->nstored);
    if (rec->summed)
        st = fetch_table(r, rec, bly_filter_mem(f), &table);
    if (!st)
        st = map_of(r->src) && !rec->encoding && !r->compact
                 ? map_payload(r, rec, &table, f)
                 : read_payload(r, rec, &table, f);
    bly_block_free(bly_filter_mem(f), &table);
    return st;
}

/* Is the secret, or its absence, right for this root? */
static bly_status unlock_root(reader *r, const bly_record *rec)
{
    const unsigned char *secret = r->how.secret;
    r->root = *rec;
    r->hasher = bly_record_hasher(rec);
    if (rec->hash_id != BLY_HASH_SIPHASH13) {
        if (secret)
            return bly_fail(BLY_ESECRET,
                            "not a keyed filter, but a key was given: query it "
                            "without, or build it with one");
        return BLY_OK;
    }
    if (!secret) {
        r->blind = r->how.blind;
        if (!r->blind)
            return bly_fail(BLY_ESECRET,
                            "a keyed filter: give the key it was built with");
        return BLY_OK;
    }
    bly_secret_words(secret, r->hasher.secret);
    if (bly_secret_check(r->hasher.secret) != rec->secret_check)
        return bly_fail(BLY_ESECRET,
                        "keyed with another key, not the one given");
    return BLY_OK;
}

static bly_status admit_record(reader *r, const bly_record *rec, unsigned depth)
{
    if (depth >= BLY_MAX_DEPTH || ++r->nrecords > BLY_MAX_RECORDS)
        return bly_damaged("more layers than a file may have");
    if (depth == 0) {
        const bly_status st = unlock_root(r, rec);
        if (st)
            return st;
        if (rec->hash_id == BLY_HASH_GROUPED && !rec->kind->group)
            return bly_damaged("kind and hash do not fit");
        r->alone = rec->nlayers == 0;
        if (r->how.shared && !map_of(r->src) &&
            !bly_shape_shares(rec->kind, &rec->shape))
            return bly_fail(BLY_ENOTSUP,
                            "filters of kind %s cannot be shared "
                            "by writers",
                            rec->kind->name);
    } else if (rec->nmeta) {
        return bly_damaged("a layer has metadata of its own");
    } else if (rec->hash_id != r->root.hash_id || rec->seed != r->root.seed ||
               rec->secret_check != r->root.secret_check) {
        return bly_damaged("a layer has another hash than its filter");
    } else if (!rec->encoding != !r->root.encoding) {
        return bly_damaged("a layer is coded and its filter is not, or the "
                           "other way round");
    } else if (rec->summed != r->root.summed) {
        return bly_damaged("a layer is of another format version than its "
                           "filter");
    }
    return BLY_OK;
}

bly_status bly_judge(const bly_filter *f, bool contents)
{
    if (f->kind->sound && !f->kind->sound(f))
        return bly_damaged("its state is impossible for its kind");
    if (contents && f->kind->check && !f->kind->check(f))
        return bly_damaged("its contents cannot come from its kind");
    return BLY_OK;
}

/* On entry *own is the record of the layer before, or has no kind; on return it
 * is the record of this one. */
static bly_status read_record(reader *r, unsigned depth, bly_record *own,
                              bly_filter **out)
{
    unsigned char page[BLY_PAGE];
    bly_record rec, below = { 0 };
    bly_filter *f;
    *out = NULL;
    bly_status st = fetch_record(r, own->kind ? own : NULL, page, &rec);
    if (!st)
        st = admit_record(r, &rec, depth);
    if (st)
        return st;
    const bly_setting set = {
        .items = rec.items,
        .fpr = rec.fpr,
        .hasher = r->hasher,
        .secret_check = rec.secret_check,
        .shared = r->how.shared && !map_of(r->src),
        .blind = r->blind,
        .roomy = r->src->roomy && depth == 0,
        .max_bytes = r->how.max_bytes,
        .mem = r->how.mem,
    };
    st = bly_filter_shell(rec.kind, &rec.shape, &set, &f);
    if (st)
        return st;
    f->nadded = rec.nadded;
    f->format = r->compact ? BLY_COMPACT_VERSION : rec.summed ? 2 : 1;
    f->compact = r->compact && depth == 0;
    f->former = f->compact && rec.former;
    st = bly_filter_set_meta(f, rec.keying, rec.meta, rec.nmeta);
    if (!st)
        st = fetch_payload(r, &rec, f);
    if (!st)
        bly_record_state(&rec, f);
    for (uint32_t i = 0; i < rec.nlayers && !st; i++) {
        bly_filter *layer = NULL;
        st = fetch_padding(r);
        if (!st)
            st = read_record(r, depth + 1, &below, &layer);
        if (!st)
            st = bly_filter_push(f, layer); /* nlayers <= BLY_MAX_LAYERS */
        if (!st && bly_filter_sums(f))
            bly_sums_join(bly_filter_sums(layer), bly_filter_sums(f));
    }
    if (!st)
        st = bly_judge(f, !map_of(r->src) || f->coded || r->compact);
    if (!st && f->kind->open)
        st = f->kind->open(f);
    if (st) {
        bly_free(f);
        return st;
    }
    bly_filter_ready(f);
    *own = rec;
    *out = f;
    return BLY_OK;
}

/* The sum of a compact file, behind its last record. */
static bly_status expect_sum(reader *r)
{
    unsigned char le[BLY_COMPACT_SUM];
    r->compact = false; /* no longer summed */
    const bly_status st = fetch_all(r, le, sizeof le);
    if (st)
        return st;
    return bly_load64(le) == bly_summing_end(&r->sum)
               ? BLY_OK
               : bly_damaged("it does not match its checksum");
}

static bly_status expect_end(reader *r)
{
    unsigned char more;
    size_t got;
    const bly_status st = fetch_some(r, &more, 1, &got);
    if (st)
        return st;
    if (got)
        return bly_fail(BLY_EFORMAT,
                        "damaged: bytes follow the end of the filter, which "
                        "is at byte %llu (cut them off, or build it again)",
                        (unsigned long long)r->at - 1);
    return BLY_OK;
}

bly_status bly_source_read(const bly_source *src, const bly_access *how,
                           bly_filter **out)
{
    reader r = { .src = src };
    bly_record root = { 0 };
    if (how)
        r.how = *how;
    bly_status st = read_record(&r, 0, &root, out);
    if (!st && r.compact)
        st = expect_sum(&r);
    if (!st)
        st = expect_end(&r);
    if (!st && r.root.summed)
        st = bly_summed_fits(r.at - r.tables);
    /* Without sums of blocks a damaged payload would go unnoticed, and its
     * answers be wrong. */
    if (!st && map_of(src) &&
        (r.how.checking == BLY_CHECK_ALL ||
         (r.how.checking == BLY_CHECK_BLOCKS && !r.root.summed)))
        st = bly_verify(*out);
    if (st) {
        bly_free(*out);
        *out = NULL;
    }
    return st;
}

bly_status bly_load_with(bly_source_take *take, bly_bytes bytes,
                         const bly_access *how, void *out, size_t size)
{
    bly_access own;
    if (!out || (!bytes.ptr && bytes.len))
        return bly_fail_null(out ? "bytes" : "out");
    if (how && !(how = BLY_TAKE(how, size, &own)))
        return BLY_EINVAL;
    /* An array of no bytes may be NULL, which here means "no array". */
    const bly_source src = { .bytes = bytes.len ? bytes.ptr : "",
                             .nbytes = bytes.len };
    return take(&src, how, out);
}

static bly_status take_filter(const bly_source *src, const bly_access *how,
                              void *out)
{
    return bly_source_read(src, how, out);
}

bly_status bly_load_sized(const void *bytes, size_t nbytes,
                          const bly_access *how, bly_filter **out, size_t size)
{
    if (out)
        *out = NULL;
    return bly_load_with(take_filter, (bly_bytes){ bytes, nbytes }, how, out,
                         size);
}

bly_status bly_read_sized(bly_get *get, void *ctx, const bly_access *how,
                          bly_filter **out, size_t size)
{
    bly_access own;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!get)
        return bly_fail_null("get");
    if (how && !(how = BLY_TAKE(how, size, &own)))
        return BLY_EINVAL;
    const bly_source src = {
        .get = get,
        .ctx = ctx,
        .nbytes = BLY_SIZE_UNKNOWN,
        .roomy = !how || !how->mem,
    };
    return bly_source_read(&src, how, out);
}

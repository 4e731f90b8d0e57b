/*
 * writer.c - a filter to the bytes of a .bly file
 *
 * One walk over the records serves whole files and parts of them: it knows
 * which byte of the file comes next, and hands over the bytes in the wanted
 * range. A header is made only if some of it is wanted, since its checksum
 * costs a pass over the payload.
 *
 * A coded payload is coded while it is written, and once before that for its
 * size and checksum, which come before it in the file. So writing needs no
 * memory, and takes twice as long as coding. A table of sums is computed twice
 * for the same reason: once for its checksum in the header.
 */
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/status.h"
#include "format/compact.h"
#include "format/record.h"
#include "format/writer.h"
#include "kinds/filter.h"

/* The most bytes for one call of put, so that it can show progress, or stop. */
#define MOST_AT_ONCE ((size_t)1 << 20)

/* The sums of a record that is stored as it is. */
typedef struct record_sums {
    const bly_filter *f;
    uint64_t payload; /* what its header has */
    uint64_t *table;  /* of blocks, where the form has one */
} record_sums;

struct bly_parts {
    const bly_filter *f;
    bly_mem mem; /* of f, which may be freed before this */
    bly_form form;
    bool ahead;              /* its sums can be computed in advance */
    uint32_t nrecords, nall; /* whose sums are known, of all */
    uint64_t nsummed;        /* bytes of the next one that went into its sum */
    bly_summing sum;
    size_t nbytes; /* of this, with the tables behind the records */
    record_sums record[];
};

typedef struct walk {
    uint64_t at;       /* byte of the file that comes next */
    uint64_t from, to; /* bytes that are wanted */
    bly_form form;     /* of the whole file */
    bly_put *put;
    void *ctx;
    bool stopped;           /* put wants no more */
    bool away;              /* what was put is not needed any more */
    const bly_parts *known; /* sums that were made before; NULL: none */
    uint32_t record;        /* that comes next */
    /* Of a compact file, in which every byte is made, wanted or not: */
    bly_summing sum;
    bool damaged; /* a payload is not what its file said */
} walk;

/* These are the n bytes of the file from w->at on: hand over the wanted
 * part. */
static void walk_bytes(walk *w, const unsigned char *bytes, uint64_t n)
{
    const uint64_t at = w->at, end = at + n;
    uint64_t first = at > w->from ? at : w->from;
    const uint64_t last = end < w->to ? end : w->to;
    w->at = end;
    while (first < last && !w->stopped) {
        const uint64_t left = last - first;
        const size_t now = left < MOST_AT_ONCE ? (size_t)left : MOST_AT_ONCE;
        w->stopped = !w->put(w->ctx, bytes + (first - at), now);
        first += now;
    }
}

/* Is any of the next n bytes wanted? */
static bool walk_wants(const walk *w, uint64_t n)
{
    return !w->stopped && w->at < w->to && w->at + n > w->from;
}

/* The coder's put: it may stop where nothing more is wanted. */
static bool walk_coded(void *ctx, const void *bytes, size_t n)
{
    walk *w = ctx;
    walk_bytes(w, bytes, n);
    return !w->stopped && w->at < w->to;
}

static bool is_coded(const bly_filter *f, bly_packing coding)
{
    return coding == BLY_CODED_OR_NOT ? f->coded : coding == BLY_ALL_CODED;
}

/* A put that only counts bytes, and stops when they exceed the room. */
static bool put_nowhere(void *ctx, const void *bytes, size_t n)
{
    uint64_t *room = ctx;
    (void)bytes;
    *room -= n < *room ? n : *room;
    return *room > 0;
}

/* Bytes of the payload if they are fewer than most, else UINT64_MAX. */
static uint64_t stored_bytes(const bly_filter *f, bool coded, uint64_t most)
{
    uint64_t n = f->shape.nbytes;
    if (n && coded) {
        n = bly_encode(bly_code_of(f->kind), f->data, (size_t)n, put_nowhere,
                       &(uint64_t){ most });
        if (!n)
            return UINT64_MAX;
    }
    return n < most ? n : UINT64_MAX;
}

/* Zeros from byte `at` to where a record may start. */
static uint64_t padding_at(uint64_t at, bool coded)
{
    return -at & (bly_record_align(coded) - 1);
}

static size_t header_bytes(const bly_filter *f, bool coded)
{
    return bly_header_bytes(coded, f->extra->meta ? f->extra->meta->nbytes : 0);
}

/* A page of the table at a time, filled up with zeros. */
#define PAGE_SUMS (BLY_PAGE / 8)

static void walk_table(walk *w, const bly_filter *f, const uint64_t *known)
{
    const uint64_t n = bly_sums_count(f->shape.nbytes, BLY_SUMS_SHIFT);
    for (uint64_t first = 0; first < n; first += PAGE_SUMS) {
        unsigned char page[BLY_PAGE] = { 0 };
        if (walk_wants(w, sizeof page))
            for (uint64_t i = first; i < n && i < first + PAGE_SUMS; i++)
                bly_store64(page + 8 * (i - first),
                            known ? known[i] : bly_record_sum(f, i));
        walk_bytes(w, page, sizeof page);
    }
}

/* Write a payload and give its pages back to the system one after the other; a
 * huge page goes back when all of its parts were given back. The pages must
 * belong to the filter, and the filter must not be used again except to free
 * it. */
#define AWAY_AT_ONCE ((uint64_t)256 << 10)

static void walk_away(walk *w, const bly_filter *f, uint64_t nstored)
{
    const bool own =
        !f->kind->close && f->extra->outside && f->extra->outside->block.mapped;
    for (uint64_t from = 0; from < nstored; from += AWAY_AT_ONCE) {
        const uint64_t left = nstored - from;
        walk_bytes(w, f->data + from,
                   left < AWAY_AT_ONCE ? left : AWAY_AT_ONCE);
        if (own && left >= AWAY_AT_ONCE)
            bly_block_drop(f->data + from, (size_t)AWAY_AT_ONCE);
    }
}

static void walk_payload(walk *w, const bly_filter *f, uint64_t nstored)
{
    if (w->form != BLY_FORM_CODED && w->away)
        walk_away(w, f, nstored);
    else if (w->form != BLY_FORM_CODED)
        walk_bytes(w, f->data, nstored);
    else if (walk_wants(w, nstored))
        bly_encode(bly_code_of(f->kind), f->data, (size_t)f->shape.nbytes,
                   walk_coded, w);
    else
        w->at += nstored;
}

/* ---------------------------------------------------------------- compact */

static bool walk_compact_bytes(void *ctx, const void *bytes, size_t n)
{
    walk *const w = ctx;
    bly_summing_add(&w->sum, bytes, n);
    walk_bytes(w, bytes, n);
    return !w->stopped;
}

/* The header of f, and its record in *r, which comes with that of the layer
 * before it, or without a kind. root: of its file; NULL where that is f. */
static size_t compact_head(const bly_filter *f, const bly_record *root,
                           bly_record *r, unsigned char head[BLY_PAGE])
{
    const bly_record before = *r;
    bly_record_of(f, BLY_FORM_COMPACT, r);
    if (root)
        r->former = root->former;
    return bly_compact_encode(r, !root, before.kind ? &before : NULL, head);
}

static void walk_compact(walk *w, const bly_filter *f, const bly_record *root,
                         bly_record *r)
{
    unsigned char head[BLY_PAGE];
    bly_record layer = { 0 };
    w->damaged |= !bly_record_intact(f);
    walk_compact_bytes(w, head, compact_head(f, root, r, head));
    if (r->encoding)
        bly_encode(r->encoding, f->data, (size_t)f->shape.nbytes,
                   walk_compact_bytes, w);
    else if (r->nstored)
        walk_compact_bytes(w, f->data, (size_t)r->nstored);
    for (uint32_t i = 0; i < f->nlayers && !w->stopped; i++)
        walk_compact(w, f->layer[i], root ? root : r, &layer);
}

static void walk_compact_file(walk *w, const bly_filter *f)
{
    unsigned char le[BLY_COMPACT_SUM];
    bly_summing_start(&w->sum);
    bly_record r = { 0 };
    walk_compact(w, f, NULL, &r);
    const uint64_t sum = bly_summing_end(&w->sum);
    bly_store64(le, w->damaged ? ~sum : sum);
    walk_bytes(w, le, sizeof le);
}

/* The bytes of f and its layers in a compact file. */
static uint64_t compact_bytes(const bly_filter *f, const bly_record *root,
                              bly_record *r)
{
    unsigned char head[BLY_PAGE];
    bly_record layer = { 0 };
    uint64_t sum = compact_head(f, root, r, head);
    sum += r->nstored;
    for (uint32_t i = 0; i < f->nlayers; i++)
        sum += compact_bytes(f->layer[i], root ? root : r, &layer);
    return sum;
}

/* ------------------------------------------------------------------- walk */

static void walk_record(walk *w, const bly_filter *f)
{
    const bool coded = w->form == BLY_FORM_CODED;
    const size_t nheader = header_bytes(f, coded);
    unsigned char page[BLY_PAGE] = { 0 };
    bly_record r = { 0 };
    const record_sums *const known =
        w->known ? &w->known->record[w->record++] : NULL;
    walk_bytes(w, page, padding_at(w->at, coded));
    const bool wanted = walk_wants(w, nheader);
    if (wanted && known)
        bly_record_with(f, w->form, known->payload, &r);
    else if (wanted)
        bly_record_of(f, w->form, &r);
    if (wanted)
        bly_record_encode(&r, page);
    walk_bytes(w, page, nheader);
    if (w->stopped || w->at >= w->to)
        return;
    if (w->form == BLY_FORM_SUMMED)
        walk_table(w, f, known ? known->table : NULL);
    walk_payload(w, f, wanted ? r.nstored : stored_bytes(f, coded, UINT64_MAX));
    for (uint32_t i = 0; i < f->nlayers && !w->stopped && w->at < w->to; i++)
        walk_record(w, f->layer[i]);
}

/* Does f, layers included, have no more records, and no deeper ones, than a
 * file may have? Counts them. */
static bool records_fit(const bly_filter *f, unsigned depth, uint32_t *nrecords)
{
    if (depth >= BLY_MAX_DEPTH || ++*nrecords > BLY_MAX_RECORDS)
        return false;
    for (uint32_t i = 0; i < f->nlayers; i++)
        if (!records_fit(f->layer[i], depth + 1, nrecords))
            return false;
    return true;
}

/* The size of a file that ends with f and its layers, if f starts at byte
 * `at` or where the next record may; UINT64_MAX where it is not below most. */
static uint64_t file_end(const bly_filter *f, bly_form form, uint64_t at,
                         uint64_t most)
{
    const bool coded = form == BLY_FORM_CODED;
    if (form == BLY_FORM_SUMMED)
        at += bly_table_span(f->shape.nbytes);
    at += padding_at(at, coded) + header_bytes(f, coded);
    if (at >= most)
        return UINT64_MAX;
    const uint64_t stored = stored_bytes(f, coded, most - at);
    if (stored == UINT64_MAX)
        return UINT64_MAX;
    at += stored;
    for (uint32_t i = 0; i < f->nlayers && at != UINT64_MAX; i++)
        at = file_end(f->layer[i], form, at, most);
    return at;
}

/* The form in which f is written; if it is not coded, its size decides. */
static bly_form form_of(const bly_filter *f, bly_packing coding)
{
    if (f->compact && coding == BLY_CODED_OR_NOT)
        return BLY_FORM_COMPACT;
    if (is_coded(f, coding))
        return BLY_FORM_CODED;
    return file_end(f, BLY_FORM_PLAIN, 0, UINT64_MAX) > BLY_SUMMED_FROM
               ? BLY_FORM_SUMMED
               : BLY_FORM_PLAIN;
}

static void walk_file(walk *w, const bly_filter *f)
{
    if (w->form == BLY_FORM_COMPACT)
        walk_compact_file(w, f);
    else
        walk_record(w, f);
}

uint64_t bly_file_bytes(const bly_filter *f, bly_packing coding, uint64_t most)
{
    uint32_t nrecords = 0;
    if (!records_fit(f, 0, &nrecords))
        return 0;
    const bly_form form = form_of(f, coding);
    if (form != BLY_FORM_COMPACT)
        return file_end(f, form, 0, most);
    bly_record r = { 0 };
    const uint64_t n = compact_bytes(f, NULL, &r) + BLY_COMPACT_SUM;
    return n < most ? n : UINT64_MAX;
}

uint64_t bly_written_bytes(const bly_filter *f)
{
    return bly_file_bytes(f, BLY_CODED_OR_NOT, UINT64_MAX);
}

double bly_entropy(const bly_filter *f)
{
    double sum = bly_code_entropy(bly_code_of(f->kind), f->data,
                                  (size_t)f->shape.nbytes);
    for (uint32_t i = 0; i < f->nlayers; i++)
        sum += bly_entropy(f->layer[i]);
    return sum;
}

static bly_status write_file(const bly_filter *f, bly_packing coding, bool away,
                             bly_put *put, void *ctx)
{
    walk w = { .to = UINT64_MAX, .put = put, .ctx = ctx, .away = away };
    uint32_t nrecords = 0;
    if (!records_fit(f, 0, &nrecords))
        return bly_fail(BLY_ERANGE, "a file holds at most %d filters, %d deep",
                        BLY_MAX_RECORDS, BLY_MAX_DEPTH);
    w.form = form_of(f, coding);
    walk_file(&w, f);
    if (w.stopped)
        return bly_fail(BLY_EIO, "the receiver stopped the writing");
    return BLY_OK;
}

/* A copy of a live filter: what others add to it meanwhile would not match the
 * checksum. */
static bly_status write_live(const bly_filter *f, bly_packing coding,
                             bly_put *put, void *ctx)
{
    bly_filter *copy;
    bly_status st = bly_filter_copy(f, &copy);
    if (!st)
        st = write_file(copy, coding, true, put, ctx);
    bly_free(copy);
    return st;
}

bly_status bly_file_write(const bly_filter *f, bly_packing coding, bly_put *put,
                          void *ctx)
{
    return bly_filter_live(f) ? write_live(f, coding, put, ctx)
                              : write_file(f, coding, false, put, ctx);
}

bly_status bly_write(const bly_filter *f, bly_put *put, void *ctx)
{
    if (!f || !put)
        return bly_fail_null("f or put");
    return bly_file_write(f, BLY_CODED_OR_NOT, put, ctx);
}

bly_status bly_write_away(bly_filter *f, bly_put *put, void *ctx)
{
    if (!f || !put)
        return bly_fail_null("f or put");
    const bly_status st = bly_filter_live(f)
                              ? write_live(f, BLY_CODED_OR_NOT, put, ctx)
                              : write_file(f, BLY_CODED_OR_NOT, true, put, ctx);
    bly_free(f);
    return st;
}

static bool put_memory(void *ctx, const void *bytes, size_t nbytes)
{
    unsigned char **p = ctx;
    memcpy(*p, bytes, nbytes);
    *p += nbytes;
    return true;
}

static size_t write_part(const bly_filter *f, const bly_parts *known,
                         uint64_t from, void *buf, size_t nbytes)
{
    const uint64_t end = bly_written_bytes(f);
    if (from >= end)
        return 0;
    const size_t n = nbytes < end - from ? nbytes : (size_t)(end - from);
    unsigned char *p = buf;
    walk w = { .from = from,
               .to = from + n,
               .form = form_of(f, BLY_CODED_OR_NOT),
               .put = put_memory,
               .ctx = &p,
               .known = known };
    walk_file(&w, f);
    return n;
}

size_t bly_write_part(const bly_filter *f, uint64_t from, void *buf,
                      size_t nbytes)
{
    return write_part(f, NULL, from, buf, nbytes);
}

/* ------------------------------------------------------------------ parts */

static uint64_t sums_of_all(const bly_filter *f)
{
    uint64_t n = bly_sums_count(f->shape.nbytes, BLY_SUMS_SHIFT);
    for (uint32_t i = 0; i < f->nlayers; i++)
        n += sums_of_all(f->layer[i]);
    return n;
}

/* In the order in which they are written. */
static void list_records(bly_parts *p, const bly_filter *f, uint64_t **table)
{
    p->record[p->nall++] = (record_sums){ .f = f, .table = *table };
    if (p->form == BLY_FORM_SUMMED)
        *table += bly_sums_count(f->shape.nbytes, BLY_SUMS_SHIFT);
    for (uint32_t i = 0; i < f->nlayers; i++)
        list_records(p, f->layer[i], table);
}

bly_status bly_parts_new(const bly_filter *f, bly_parts **out)
{
    uint32_t nrecords = 0;
    if (out)
        *out = NULL;
    if (!f || !out)
        return bly_fail_null("f or out");
    if (!records_fit(f, 0, &nrecords))
        return bly_fail(BLY_ERANGE, "a file holds at most %d filters, %d deep",
                        BLY_MAX_RECORDS, BLY_MAX_DEPTH);
    const bly_form form = form_of(f, BLY_CODED_OR_NOT);
    const uint64_t nsums = form == BLY_FORM_SUMMED ? sums_of_all(f) : 0;
    const size_t nbytes = sizeof(bly_parts) + nrecords * sizeof(record_sums) +
                          (size_t)nsums * sizeof(uint64_t);
    bly_parts *const p = bly_mem_zalloc(bly_filter_mem(f), nbytes);
    if (!p)
        return bly_fail(BLY_ENOMEM, "out of memory");
    p->f = f;
    p->mem = *bly_filter_mem(f);
    p->form = form;
    p->nbytes = nbytes;
    /* A mapped one has its sums from its file. */
    p->ahead = (form == BLY_FORM_PLAIN || form == BLY_FORM_SUMMED) &&
               (!f->readonly || bly_filter_live(f));
    uint64_t *table = (uint64_t *)(void *)(p->record + nrecords);
    list_records(p, f, &table);
    bly_summing_start(&p->sum);
    *out = p;
    return BLY_OK;
}

/* Sum the next bytes of a record, at most `most` of them unless a block is
 * longer. Returns how many. */
static uint64_t sum_some(bly_parts *p, record_sums *r, uint64_t most)
{
    const bly_shape *const s = &r->f->shape;
    const uint64_t left = s->nbytes - p->nsummed;
    if (p->form == BLY_FORM_PLAIN) {
        const uint64_t n = left < most ? left : most;
        if (n)
            bly_summing_add(&p->sum, r->f->data + p->nsummed, (size_t)n);
        return n;
    }
    const uint64_t i = p->nsummed >> BLY_SUMS_SHIFT;
    const uint64_t block = UINT64_C(1) << BLY_SUMS_SHIFT;
    unsigned char le[8];
    if (!left)
        return 0;
    r->table[i] = bly_record_sum(r->f, i);
    bly_store64(le, r->table[i]);
    bly_summing_add(&p->sum, le, sizeof le);
    return left < block ? left : block;
}

bool bly_parts_sum(bly_parts *p, uint64_t nbytes)
{
    if (!p || !p->ahead)
        return true;
    while (p->nrecords < p->nall) {
        record_sums *const r = &p->record[p->nrecords];
        const uint64_t n = sum_some(p, r, nbytes);
        p->nsummed += n;
        nbytes -= n < nbytes ? n : nbytes;
        if (p->nsummed == r->f->shape.nbytes) {
            r->payload = bly_summing_end(&p->sum);
            bly_summing_start(&p->sum);
            p->nsummed = 0;
            p->nrecords++;
        }
        if (!nbytes)
            break;
    }
    return p->nrecords == p->nall;
}

size_t bly_parts_take(bly_parts *p, uint64_t from, void *buf, size_t nbytes)
{
    if (!p)
        return 0;
    (void)bly_parts_sum(p, UINT64_MAX);
    return write_part(p->f, p->ahead ? p : NULL, from, buf, nbytes);
}

void bly_parts_free(bly_parts *p)
{
    if (!p)
        return;
    const bly_mem mem = p->mem;
    bly_mem_release(&mem, p, p->nbytes);
}

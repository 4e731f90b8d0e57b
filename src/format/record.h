/*
 * record.h - one record of a .bly file: its header
 *
 * A file is a sequence of records: the root filter, then its layers depth
 * first. A record is a header, the payload (the filter's memory, byte
 * for byte, or coded), and zeros up to the next page unless it is the last:
 *
 *     0        4096            4096 + nbytes   8192 k
 *     +--------+---------------+---------------+--------+-----------
 *     | header | payload       | zeros         | header | payload ...
 *     +--------+---------------+---------------+--------+-----------
 *
 * so every payload starts at a page boundary and a file can be mapped. A coded
 * file cannot be, and is to be short: its headers are without the zeros of the
 * page, and its records start at multiples of 8 bytes.
 * A file of more than BLY_SUMMED_FROM bytes has a table of sums, one for each
 * block of the payload, between header and payload, so that it can be checked
 * block by block as queries reach it; then it is of format version 2. A compact
 * file has headers of another form, in compact.h, and nothing between them; it
 * is of format version 3. docs/format.md is normative; record.c is the header,
 * writer.c and reader.c are the walk over the records, replace.c is how a file
 * changes.
 */
#ifndef BLY_RECORD_H
#define BLY_RECORD_H

#include "codec/codec.h"
#include "core/block_sums.h"
#include "format/meta.h"
#include "kinds/kind.h"

#define BLY_PAGE 4096
#define BLY_LIVE_VERSION 4
#define BLY_SHORT_HEADER 296 /* of a coded record, without metadata */

/* Files that would be longer than this in version 1 are of version 2. A shorter
 * file is read in a fraction of the time it takes to start a program: 4 MiB in
 * 0.3 ms if they are in memory. */
#define BLY_SUMMED_USUALLY ((uint64_t)4 << 20)
#ifdef BLY_TESTING
extern uint64_t bly_summed_from;
#define BLY_SUMMED_FROM bly_summed_from
#else
#define BLY_SUMMED_FROM BLY_SUMMED_USUALLY
#endif

/* How all records of a file are written. */
typedef enum bly_form {
    BLY_FORM_PLAIN,   /* version 1, the payload as it is */
    BLY_FORM_SUMMED,  /* version 2: the same, and a table of sums before it */
    BLY_FORM_CODED,   /* version 1, coded */
    BLY_FORM_COMPACT, /* version 3, coded or not: compact.h */
    BLY_FORM_LIVE     /* version 4: live.h */
} bly_form;

/* The encoding of a sketch (stored.h): as it is, behind a short header. */
#define BLY_CODE_SKETCH 16

/* A root, layers, and two levels more; as many records as two full levels of
 * layers make: 1 + 64 + 64^2. Readers recurse no deeper, and writers refuse
 * what could not be read. */
#define BLY_MAX_DEPTH 4
#define BLY_MAX_RECORDS 4161

/* What a header says. */
typedef struct bly_record {
    const bly_kind *kind;
    bly_shape shape;
    uint64_t state[BLY_STATE_WORDS];
    uint64_t items;
    double fpr; /* NAN: none */
    uint64_t nadded;
    uint32_t hash_id;
    uint64_t seed;
    uint64_t secret_check; /* 0 unless keyed */
    uint32_t nlayers;
    uint32_t encoding;    /* 0: as it is; else a bly_code */
    uint64_t nstored;     /* bytes of the payload in the file */
    bool summed;          /* version 2 */
    bool live;            /* version 4: live.h */
    bool former;          /* version 3 in its older form: compact.c */
    uint64_t payload_sum; /* of the payload; summed: of the table */
    bly_keying keying;
    const unsigned char *meta; /* nmeta bytes of a filter, or of a page */
    uint32_t nmeta;
} bly_record;

/* The code of a kind that is coded: bits where its data is one array of them.
 */
bly_code bly_code_of(const bly_kind *kind);

/* The record of f, with the checksum of its payload. This reads the whole
 * payload, unless f is mapped and written in the form that its file has: then
 * the sum is that of the file. If f is mapped and written in another form, the
 * sum is wrong if that of the file was, so that a copy of a damaged file is
 * known to be damaged too. */
void bly_record_of(const bly_filter *f, bly_form form, bly_record *out);

/* The same of a payload that is stored as it is and has this sum. */
void bly_record_with(const bly_filter *f, bly_form form, uint64_t payload_sum,
                     bly_record *out);

/* Give f, which has its body, the state of a record. */
void bly_record_state(const bly_record *r, bly_filter *f);

/* Is the payload of f, if it is mapped, what its file says? */
bool bly_record_intact(const bly_filter *f);

/* Sum number i of the table of f. */
uint64_t bly_record_sum(const bly_filter *f, uint64_t i);

/* The bytes of a header with nmeta bytes of metadata. In a page there is room
 * for these; otherwise they follow, with a sum of their own, so that a reader
 * that does not know them finds a complete header, and flags. */
static inline size_t bly_header_bytes(bool coded, size_t nmeta)
{
    return !coded  ? BLY_PAGE
           : nmeta ? BLY_SHORT_HEADER + bly_meta_span(nmeta) + 8
                   : BLY_SHORT_HEADER;
}

/* The bytes of the table of sums of a payload; and with the zeros behind it. */
static inline uint64_t bly_table_bytes(uint64_t nbytes)
{
    return 8 * bly_sums_count(nbytes, BLY_SUMS_SHIFT);
}

static inline uint64_t bly_table_span(uint64_t nbytes)
{
    return (bly_table_bytes(nbytes) + BLY_PAGE - 1) / BLY_PAGE * BLY_PAGE;
}

/* May a file that would have this length in version 1 be of version 2? A file
 * of version 1 may have any length: an older bloomery knew no other. */
bly_status bly_summed_fits(uint64_t nbytes);

static inline size_t bly_record_align(bool coded)
{
    return coded ? 8 : BLY_PAGE;
}

/* The header for a record, in the first bly_header_bytes() of page. */
void bly_record_encode(const bly_record *r, unsigned char page[BLY_PAGE]);

/* How many bytes the header has that begins with these `have` bytes,
 * BLY_SHORT_HEADER at least, as far as they tell: call again when those bytes
 * are there. */
size_t bly_record_span(const unsigned char *head, size_t have);

/* What a header from outside says, if it could be that of a filter: the first
 * bly_record_span() bytes of `page`, into which out->meta points. On BLY_OK the
 * shape is
 * sane for its kind and every field is in range; what needs more than the
 * header to be judged is left to the reader. */
bly_status bly_record_decode(const unsigned char *page, bly_record *out);

/* The same of a live filter, and of nothing else. */
bly_status bly_record_decode_live(const unsigned char *page, bly_record *out);

/* The same of a sketch: its type is a kind too, which find() knows, and of
 * which the number, the parameters and sane() are used. */
typedef const bly_kind *bly_find_kind(uint32_t id);
bly_status bly_record_decode_sketch(const unsigned char *page,
                                    bly_find_kind *find, bly_record *out);

/* What both headers have in common: the first bytes; the failure of a kind that
 * is not known; and whether all fields of a record whose kind and hash are
 * known, the rate among them or not, are in range. */
void bly_record_begin(unsigned char *page);
bly_status bly_record_unknown(uint64_t kind_id);
bly_status bly_record_admit(const bly_record *r, bool rated);

/* How a record says that keys are hashed, less a secret. */
static inline bly_hasher bly_record_hasher(const bly_record *r)
{
    const bool tails = r->hash_id == BLY_HASH_ORDERED_TAILS;
    return (bly_hasher){ .id = r->hash_id,
                         .seed = r->seed,
                         .secret = { tails ? r->secret_check : 0, 0 } };
}

/* A rate as it is stored: NAN, for none, has one form of many. What is read may
 * be anything; false: it is no rate. */
uint64_t bly_rate_bits(double fpr);
bool bly_rate_read(uint64_t bits, double *fpr);

/* Could these n bytes be the beginning of a header? */
bool bly_record_begins(const unsigned char *bytes, size_t n);

/* The failure of bytes that are not what was written: "damaged: `what`", and
 * the way out. */
bly_status bly_damaged(const char *what);

/* The failure of a file that ends too early, after `has` bytes; `least`: more
 * bytes than the headers so far account for are missing. */
bly_status bly_cut_short(uint64_t has, uint64_t needs, bool least);

#endif

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
 * docs/format.md is normative; record.c is the header, writer.c and reader.c
 * are the walk over the records, replace.c is how a file changes.
 */
#ifndef BLY_RECORD_H
#define BLY_RECORD_H

#include "codec/codec.h"
#include "kinds/kind.h"

#define BLY_PAGE 4096
#define BLY_SHORT_HEADER 296 /* of a coded record */
#define BLY_FORMAT_VERSION 1

/* A root, layers, and two levels more; as many records as two full levels of
 * layers make: 1 + 64 + 64^2. What reads a file recurses no deeper and what
 * writes one refuses what could not be read. */
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
    uint32_t encoding; /* 0: as it is; else a bly_code */
    uint64_t nstored;  /* bytes of the payload in the file */
    uint64_t payload_sum;
} bly_record;

/* The code of a kind that is coded: bits where its data is one array of them.
 */
bly_code bly_code_of(const bly_kind *kind);

/* The record of f, coded or not, checksum of its payload included: reads all of
 * that, except where f is mapped and not coded. There the sum is the one that
 * the file had, and elsewhere one that is wrong if that was, so that a copy of
 * a damaged file is known as damaged too. */
void bly_record_of(const bly_filter *f, bool coded, bly_record *out);

/* The bytes of a header, and the multiple of bytes at which records start. */
static inline size_t bly_header_bytes(bool coded)
{
    return coded ? BLY_SHORT_HEADER : BLY_PAGE;
}

static inline size_t bly_record_align(bool coded)
{
    return coded ? 8 : BLY_PAGE;
}

/* The header for a record, in the first bly_header_bytes() of page. */
void bly_record_encode(const bly_record *r, unsigned char page[BLY_PAGE]);

/* Whether the header that begins with these BLY_SHORT_HEADER bytes ends with
 * them, if it is one: that of a coded record. */
bool bly_record_short(const unsigned char *head);

/* What a header from outside says, if it could be that of a filter: all of
 * `page`, or its beginning where bly_record_short(). On BLY_OK the shape is
 * sane for its kind and every field is in range; what needs more than the
 * header to be judged is left to the reader. */
bly_status bly_record_decode(const unsigned char *page, bly_record *out);

/* A rate as it is stored: NAN, for none, has one form of many. What is read may
 * be anything; false: it is no rate. */
uint64_t bly_rate_bits(double fpr);
bool bly_rate_read(uint64_t bits, double *fpr);

/* Could these n bytes be the beginning of a header? */
bool bly_record_begins(const unsigned char *bytes, size_t n);

/* The failure of bytes that are not what was written: "damaged: `what`", and
 * the way out. */
bly_status bly_damaged(const char *what);

/* The failure of a file that ends too early, after `has` bytes; `least`: there
 * is more to come than the headers so far tell of. */
bly_status bly_cut_short(uint64_t has, uint64_t needs, bool least);

#endif

/*
 * delta.h - a delta file: its header
 *
 *     0       8         12     16     24   32           40           48
 *     +-------+---------+------+------+----+------------+------------+------
 *     | magic | version | form | from | to | body bytes | header sum | body
 *     +-------+---------+------+------+----+------------+------------+------
 *
 * The body of form `gaps` has an entry for each record of the filter, in the
 * order of a .bly file, and a checksum at its end; that of form `whole` is a
 * .bly file. docs/format.md is normative; delta.c writes,
 * delta_apply.c reads.
 */
#ifndef BLY_DELTA_H
#define BLY_DELTA_H

#include "kinds/kind.h"

#define BLY_DELTA_VERSION 1

enum {
    DELTA_AT_MAGIC = 0,
    DELTA_AT_VERSION = 8, /* and the form, in the high half of the word */
    DELTA_AT_FROM = 16,
    DELTA_AT_TO = 24,
    DELTA_AT_BODY = 32,
    DELTA_AT_SUM = 40,
    DELTA_HEADER = 48
};

/* What an entry begins with; state words that are not zero and the stream of
 * rice.h follow. */
enum {
    ENTRY_AT_ITEMS = 0,
    ENTRY_AT_FPR = 8,
    ENTRY_AT_NADDED = 16,
    ENTRY_AT_FLIPS = 24,
    ENTRY_AT_RICE = 32,  /* a byte: the parameter */
    ENTRY_AT_STATE = 33, /* a byte: which words of state follow */
    ENTRY_HEADER = 34
};

#define BLY_DELTA_SUM 8 /* bytes of the checksum at the end of gaps */

typedef enum bly_delta_form { DELTA_GAPS, DELTA_WHOLE } bly_delta_form;

typedef struct bly_delta_header {
    bly_delta_form form;
    uint64_t from, to, nbody;
} bly_delta_header;

void bly_delta_encode(const bly_delta_header *h,
                      unsigned char bytes[DELTA_HEADER]);

/* The bytes may come from an untrusted source. */
bly_status bly_delta_decode(const unsigned char bytes[DELTA_HEADER],
                            bly_delta_header *out);

/* Could these n < DELTA_HEADER bytes be the beginning of a delta? */
bool bly_delta_begins(const unsigned char *bytes, size_t n);

/* What a saved node begins with (src/node/node_file.c), with its NUL. */
#define BLY_NODE_MAGIC \
    "\x89"             \
    "BNO\r\n\x1a\n"

/* The same of an index of documents (index/sliced_open.c). */
#define BLY_INDEX_MAGIC \
    "\x89"              \
    "BLX\r\n\x1a\n"

/* These are not the first n bytes of a .bly file: BLY_EFORMAT, and whether they
 * are those of a delta, a node or an index. */
bly_status bly_not_a_filter(const unsigned char *bytes, size_t n);

/* What the header says, for info. */
void bly_delta_tell(const bly_delta_header *h, bly_delta *info);

/* d of m bits have flipped. */
void bly_delta_tell_flips(uint64_t d, uint64_t m, bly_delta *info);

#endif

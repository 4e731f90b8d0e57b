/*
 * compact.h - the header of a compact .bly file
 *
 * Rows of tables, packets and caches carry small filters, and a header of a
 * page before 120 bytes of payload would be most of the file. A compact file
 * has the same records, each with a header in which numbers take as many bytes
 * as they need, one after another, and one checksum behind all of them:
 *
 *     +--------+---------+--------+---------+-----+-----+
 *     | header | payload | header | payload | ... | sum |
 *     +--------+---------+--------+---------+-----+-----+
 *     |<----- root ----->|<---- layer 0 --->|
 *
 * It cannot be mapped: it is always read and checked as a whole. docs/format.md
 * is normative.
 */
#ifndef BLY_COMPACT_H
#define BLY_COMPACT_H

#include "format/record.h"

#define BLY_COMPACT_VERSION 3
#define BLY_COMPACT_SUM 8 /* bytes behind the last record */

/* How many bytes of a header are enough to tell its length. */
static inline size_t bly_compact_prefix(bool root)
{
    return root ? 14 : 2;
}

/* Could these n bytes be the beginning of a compact file? All of the prefix
 * tells. */
bool bly_compact_begins(const unsigned char *bytes, size_t n);

/* The bytes of the header that begins with this prefix; 0: there is none of
 * that length. */
size_t bly_compact_span(const unsigned char *prefix, bool root);

/* The header for a record, and how many bytes it has. It does not contain the
 * sum of the payload. before: the record of the layer before it, in the same
 * filter; NULL if there is none. */
size_t bly_compact_encode(const bly_record *r, bool root,
                          const bly_record *before,
                          unsigned char buf[BLY_PAGE]);

/* What a header from outside says, as bly_record_decode(): the n bytes of it,
 * into which out->meta points. A layer has the hash of its root, which is NULL
 * where this is one. */
bly_status bly_compact_decode(const unsigned char *head, size_t n,
                              const bly_record *root, const bly_record *before,
                              bly_record *out);

#endif

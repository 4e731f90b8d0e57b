/*
 * chord_record.h - records as they stand in frames, and whether they are
 * genuine
 */
#ifndef BLY_STORED_H
#define BLY_STORED_H

#include "chord/chord_store.h"
#include "wire/frame.h"

#define CHORD_NAME_MOST 4096 /* bytes of a file's name */

/* The digest of the file of a name, which is not too long. */
void name_digest(const void *name, size_t n, unsigned char *digest);

/* Does a record stand under its own digest: that of a block's bytes, or of the
 * name that a manifest or a tombstone begins with? */
bool stored_genuine(const struct stored *r, const unsigned char *data);

/* How a record stands in a body. */
void stored_put(struct blob *b, const struct stored *r);
void stored_take(struct body *b, struct stored *r);

#endif

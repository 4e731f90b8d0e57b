/*
 * sketch_files.h - sketches in files: .bly files that are not filters
 */
#ifndef BLY_IO_SKETCHES_H
#define BLY_IO_SKETCHES_H

#include <bloomery/sketch.h>

#include "io/keys.h"
#include "report/fields.h"

/* The type of the sketch in path; BLY_STORED_NONE if that is something else, or
 * is not a regular file, or cannot be looked at: whoever opens it then says
 * why.
 */
bly_stored_type sketch_type(const char *path);

/* Open the sketch in path, blind without a secret. False, with the reason
 * printed, if that fails, or if it is of another type; BLY_STORED_NONE: any. */
bool sketch_open(const char *path, bly_stored_type type,
                 const unsigned char *secret, bly_stored *out);

/* Make dst the sketch of both. False, with the reason printed, which names
 * where they come from. */
bool sketch_merge(bly_stored *dst, const char *dst_path, const bly_stored *src,
                  const char *src_path);

/* Write s to path, "-" being standard output: YES, or TROUBLE with the reason
 * printed. */
int sketch_save(const bly_stored *s, const char *path);

/* --------------------------------------------- commands that make sketches */

/* Where the result goes: to a new file, or into one that may be there. And how
 * keys are hashed, for sketches that do not say it themselves. */
struct sketch_args {
    const char *output, *into;
    uint64_t seed;
    const unsigned char *secret; /* of the key file, by sketch_args_check() */
};

/* Before anything is read: do the options fit together, and can files be
 * written? False, with the reason printed, if not. */
bool sketch_args_check(struct sketch_args *a, const struct keys *k,
                       const struct list *operands, bool json);

/* The hasher for keys of a sketch that was opened. False, with the reason
 * printed, if it is keyed and the secret was not given. */
bool sketch_can_hash(const bly_hasher *hasher, const char *path);

/* -------------------------------------------------------------- describing */

struct sketch_told {
    const char *file, *type, *help;
    size_t ninputs;
    uint64_t keys, bytes, file_bytes;
    double distinct, distinct_sd; /* hyperloglog; NAN elsewhere */
    double deviation;             /* the latter as a share of the former */
    uint64_t precision, k, listed, components, shingle, bits;
    uint64_t values, means;                      /* tdigest */
    double compression, least, median, greatest; /* NAN elsewhere */
    const char *form, *family, *unit, *key_type, *hash, *scale;
    bool folded, trimmed, no_cr, keyed;
    const uint64_t *seed; /* NULL: keyed, or has none */
    uint64_t seed_value;  /* what that points to */
    bool is_keyless;
};

void sketch_tell(const char *path, const bly_stored *s, struct sketch_told *to);
extern const struct field sketch_fields[];
extern const char sketch_text[];

#endif

/*
 * change.h - changing a filter on disk, key by key
 */
#ifndef BLY_CLI_CHANGE_H
#define BLY_CLI_CHANGE_H

#include "io/foreign_files.h"
#include "report/fields.h"

/* Changing a filter key by key, where some keys may be refused: batch() of the
 * job picks those that were not, and reports the others; its ctx is the
 * filter. The result is an exit status: 1 where a key was refused. */
struct change {
    const struct keys *keys;
    uint32_t ability;
    const struct field *fields; /* CHANGED_FIELDS */
    const char *text;
    bool json;
    struct job job; /* batch, and how lines are read */

    /* Of files of other systems: what their format must be able to do, and
     * batch() for them, with a bly_foreign as ctx. 0: none are taken. */
    uint64_t format_can;
    bly_status (*foreign_batch)(struct job *job, struct batch *b);
    const struct foreign_args *foreign;
};

/* What came of it. */
struct changed {
    const char *file;
    uint64_t keys, done, refused;
};
#define CHANGED_FIELDS(name)                                             \
    FIELD(struct changed, file, NONE, "the filter"),                     \
        FIELD(struct changed, keys, KEYS, "keys that were read"),        \
        NAMED(struct changed, name, done, KEYS, "of them, those " name), \
        FIELD(struct changed, refused, NONE, "of them, those refused"),  \
    {                                                                    \
        0                                                                \
    }

int change_keys(struct change *c, const struct list *operands);

/* Name a key and why it was refused, unless nobody wants to know. */
void change_refused(const bly_bytes *key, const char *why);

#endif

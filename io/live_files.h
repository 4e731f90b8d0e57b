/*
 * live_files.h - live filters, as commands use and describe them
 */
#ifndef BLY_IO_LIVE_FILES_H
#define BLY_IO_LIVE_FILES_H

#include <bloomery/live.h>

#include "report/fields.h"

/* What a live filter says of itself. */
struct live_told {
    bly_live is;
    double checkpoint_age; /* in seconds; NAN: there was none */
    bool several;          /* not one user */
};
extern const struct field live_fields[];
#define LIVE_TEXT                                                            \
    "  live~generation {generation}, {users} process[{?several}es] adding\n" \
    "  checkpoint~[{?checkpoint}number {checkpoint}, {checkpoint_age:.0} s " \
    "ago, of {checkpoint_items} additions|none yet]"                         \
    "[{?unclean}; the machine stopped since: later keys may be missing]\n"

/* Describe f. False if it is not live. */
bool live_tell(const bly_filter *f, struct live_told *out);

/* Open the live filter in path. NULL, with the reason printed. */
bly_filter *live_open(const char *path, const bly_access *how);

/* A live filter that workers add to or ask, and that may be replaced by a newer
 * generation meanwhile. NULL, with the reason printed. */
struct live_use;
struct live_use *live_use_begin(const char *path, const bly_access *how);
void live_use_end(struct live_use *u);

/* The filter, for as long as nothing is added or asked; its hasher, always. */
bly_filter *live_filter(struct live_use *u);
const bly_hasher *live_hasher(const struct live_use *u);

/* bly_add_hashes() and bly_has_hashes(), of the newest generation. */
bly_status live_add(struct live_use *u, const uint64_t *hashes, size_t n,
                    uint64_t *fresh);
bly_status live_has(struct live_use *u, const uint64_t *hashes, size_t n,
                    uint64_t *maybe);

#endif

/*
 * bloomery_leveldb.h - a filter policy for LevelDB
 * SPDX-License-Identifier: MIT
 *
 *     const char *error;
 *     leveldb_filterpolicy_t *policy = bly_leveldb_policy(NULL, &error);
 *     if (!policy)
 *         errx(2, "%s", error);
 *     leveldb_options_set_filter_policy(options, policy);
 *     ...
 *     leveldb_close(db);
 *     leveldb_filterpolicy_destroy(policy);
 *
 * Link with -lbloomery_leveldb -lbloomery -lleveldb -lm. docs/leveldb.md has
 * what it saves. Tables keep what filters were built with, so that a database
 * may be opened with another kind, rate or size than it was written with.
 */
#ifndef BLOOMERY_LEVELDB_H
#define BLOOMERY_LEVELDB_H

#include <bloomery.h>
#include <leveldb/c.h>

BLY_BEGIN_DECLS

/* What tables call the filters. */
#define BLY_LEVELDB_NAME "bloomery.Filter1"

/* Zero in any field means "choose for me". */
typedef struct bly_leveldb_spec {
    const char *kind;          /* NULL, "ribbon": the least bytes. Others are
                                  stored as whole files, with their headers */
    double fpr;                /* of each filter; 0: 1 %, or by the bits */
    double bits_per_key;       /* instead of a rate */
    const bly_option *options; /* of the kind; the strings are borrowed until
                                  the policy is destroyed */
    size_t noptions;
} bly_leveldb_spec;

/* Make a policy; spec may be NULL. It belongs to the caller until
 * leveldb_filterpolicy_destroy(), after the database was closed, and may be
 * used by any number of threads and databases. NULL if no filter can be built
 * so; *error, unless error is NULL, then says what would be right, until this
 * thread makes another one.
 *
 * Where there is no memory to build a filter, the table gets one that says
 * maybe to all. */
leveldb_filterpolicy_t *bly_leveldb_policy(const bly_leveldb_spec *spec,
                                           const char **error);

BLY_END_DECLS
#endif

/*
 * cms.h - what the files of CMS.* share
 */
#ifndef BLY_REDIS_CMS_H
#define BLY_REDIS_CMS_H

#include "adapters/redis/redis_value.h"

#define CMS_MISSING "CMS: key does not exist"

extern server_type *cms_type;

int cms_merge(server_ctx *ctx, server_string **argv, int argc);

/* Items of a sketch were raised, which had changed `before` times until then: a
 * merge that is under way has to know. */
void merges_raised(const bly_foreign *f, uint64_t before,
                   const bly_bytes *items, size_t n);

#endif

/*
 * block.h - the parts of bloomery traffic block
 */
#ifndef BLY_TRAFFIC_BLOCK_H
#define BLY_TRAFFIC_BLOCK_H

#include "apps/traffic/traffic_args.h"
#include "apps/traffic/prefix.h"
#include "report/words.h"

/* What LIST.bly would have stopped in CAPTURE. */
int block_check(const struct traffic_args *args, const struct list *operands);

/* --xdp, --add, --release, --detach, --status. */
int block_kernel(const struct traffic_args *args, const struct list *operands);

/* The rate of -p. */
double block_fpr(const struct traffic_args *args);

/* The file of --allow or --exact, sorted; false, with the reason printed. NULL
 * is an empty set. */
bool block_set_read(const char *name, bool skip_bad, struct prefix_set *out);

#endif

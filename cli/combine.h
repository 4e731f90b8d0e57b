/*
 * combine.h - merge and intersect
 */
#ifndef BLY_CLI_COMBINE_H
#define BLY_CLI_COMBINE_H

#include <stdbool.h>

#include <bloomery.h>

#include "report/words.h"

/* The inputs combined into the file output. */
int combine(const char *output, const struct list *inputs, bool json,
            bly_combination how);

#endif

/*
 * combine.h - merge and intersect
 */
#ifndef BLY_CLI_COMBINE_H
#define BLY_CLI_COMBINE_H

#include "report/fields.h"
#include "report/words.h"

/* The inputs combined into the file output. */
extern const struct field combined_fields[];
int combine(const char *output, const struct list *inputs, bool json,
            bly_combination how);

#endif

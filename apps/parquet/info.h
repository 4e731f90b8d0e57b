/*
 * info.h - what a Parquet file has in columns and filters
 */
#ifndef BLY_PARQUET_INFO_H
#define BLY_PARQUET_INFO_H

#include "apps/parquet/parquet.h"
#include "report/fields.h"

/* Print it, for people or as JSON. */
extern const struct field parquet_info_fields[];
int parquet_info(const struct parquet_file *f, bool json);

#endif

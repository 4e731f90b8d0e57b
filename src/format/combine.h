/*
 * combine.h - a filter that is being read, combined with one in memory
 */
#ifndef BLY_COMBINE_H
#define BLY_COMBINE_H

#include "format/reader.h"

/* Make dst its union or intersection with the only filter in src, which is read
 * by get(). The caller has checked that the kind of dst can do this, and that
 * dst may be changed. */
bly_status bly_source_combine(const bly_source *src, bly_combination how,
                              bly_filter *dst);

/* The same with the filter in path. */
bly_status bly_file_combine(const char *path, bly_combination how,
                            bly_filter *dst);

#endif

/*
 * combine.h - a filter that is being read, combined with one in memory
 */
#ifndef BLY_COMBINE_H
#define BLY_COMBINE_H

#include "format/reader.h"

/* Make dst the union or the intersection with the filter that is all there is
 * in src, of which get() is used. The caller has seen to it that the kind of
 * dst can, and that dst may be changed. */
bly_status bly_source_combine(const bly_source *src, bly_combination how,
                              bly_filter *dst);

/* The same with the filter in path. */
bly_status bly_file_combine(const char *path, bly_combination how,
                            bly_filter *dst);

#endif

/*
 * case.h - text without upper and lower case
 */
#ifndef BLY_CASE_H
#define BLY_CASE_H

#include <bloomery.h>

/* Write the folded form of n bytes to `to`, which has room for BLY_KEY_ROOM(n):
 * every character of UTF-8 by the simple case folding of Unicode 14
 * (docs/format.md), bytes that are no UTF-8 as they are. Its length. */
size_t bly_fold_text(const char *text, size_t n, char *to);

#endif

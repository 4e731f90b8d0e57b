/*
 * expression.h - a hash function as one writes it on a blackboard
 *
 *     x+3    3x+1    x^2+2    2(x+1)^3 - x
 *
 * Whole numbers, x, + - * ^, brackets; a factor may stand beside another
 * without a sign. Evaluated modulo m, in which nothing can overflow.
 */
#ifndef BLY_EXPRESSION_H
#define BLY_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

/* The value of text at x, modulo m (1 to 2^32). False, and in *wrong the place
 * where it cannot be read, if it is no expression. */
bool expression_value(const char *text, uint64_t x, uint64_t m, uint64_t *value,
                      const char **wrong);

#endif

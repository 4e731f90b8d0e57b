/*
 * search.h - the place in an order
 */
#ifndef BLY_BASE_SEARCH_H
#define BLY_BASE_SEARCH_H

#include <stddef.h>

/* Let `at` (a size_t) become the first number from 0 to below n whose element
 * is not `less`, an expression in `at`; n, if all are. Elements come in order:
 *
 *     LOWER_BOUND(at, ring->n, ring->at[at].id < id);
 */
#define LOWER_BOUND(at, n, less)              \
    do {                                      \
        size_t low_ = 0, high_ = (n);         \
        while (low_ < high_) {                \
            (at) = low_ + (high_ - low_) / 2; \
            if (less)                         \
                low_ = (at) + 1;              \
            else                              \
                high_ = (at);                 \
        }                                     \
        (at) = low_;                          \
    } while (0)

#endif

/*
 * basket.h - which things come together, even if they are rare?
 */
#ifndef BLY_BASKET_H
#define BLY_BASKET_H

#include "report/fields.h"
#include "report/words.h"

struct basket_args {
    double threshold;    /* baskets with both / baskets with either */
    double recall;       /* of pairs at the threshold */
    uint64_t components; /* of the signature of an item */
    uint64_t least;      /* baskets that an item must be in */
    bool json;
};

/* Print the pairs of items in the lines of the files: a status. */
int basket(const struct basket_args *args, const struct list *files);
extern const struct field basket_fields[];

#endif

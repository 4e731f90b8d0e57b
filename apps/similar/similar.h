/*
 * similar.h - how alike are a few texts?
 */
#ifndef BLY_SIMILAR_H
#define BLY_SIMILAR_H

#include "io/html/html.h"
#include "io/texts.h"
#include "report/fields.h"
#include "report/words.h"

struct similar_args {
    struct cutting cutting;
    const char *family;  /* of the sketches; NULL: the default */
    uint64_t components; /* of a sketch; 0: the default */
    double fpr;          /* of the filters */
    uint64_t max_text;   /* bytes of a text; 0: the default */
    const char *output;  /* where to save the sketch of all texts; NULL: not */
    struct html_wish pages;
    struct list measures; /* to show side by side; none: Jaccard alone */
    bool json;
};

/* Compare every two of the texts, which are named by path, and print how alike
 * they are: a status. A text may also be a sketch of one that was saved. */
extern const struct field similar_fields[];
int similar(const struct similar_args *args, const struct list *texts);

#endif

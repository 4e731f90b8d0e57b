/*
 * json_template.h - lines of JSON that look like one that was read before
 *
 * Lines of one file mostly come from one program: they have the same names in
 * the same order, and only their values differ. A template is such a line with
 * its values taken out:
 *
 *     {"id":"9e37","n":17,"s":"abc"}
 *     `----'      `---'  `---'     |      glue, compared byte by byte
 *           `----'     ``     `---'       values: any string, number or word
 *
 * What fits is JSON if the first line was, and the field is the value that it
 * was there. That takes a third of the time of reading the line (json_find()).
 */
#ifndef BLY_IO_JSON_TEMPLATE_H
#define BLY_IO_JSON_TEMPLATE_H

#include "io/json_field.h"

#define TEMPLATE_VALUES 32
#define TEMPLATE_WORDS 128 /* of 8 bytes, in all glue that is longer */

/* Zero fits nothing. */
struct json_template {
    size_t nvalues; /* 0: there is none */
    size_t meant;   /* the value that is the field */
    struct json_glue {
        uint64_t last, mask;   /* its last bytes, 8 at most */
        uint16_t nlast;        /* how many these are */
        uint16_t word, nwords; /* of `words`: those before */
    } glue[TEMPLATE_VALUES + 1];
    uint64_t words[TEMPLATE_WORDS];
    unsigned misses; /* lines since the last one that fitted */
};

/* The field of a line, if the line fits; as json_find_fast() otherwise.
 * escapes: it may have backslashes. */
bool json_template_find(struct json_template *t, const char *line, size_t n,
                        bool escapes, struct json_slice *found);

/* A line that json_find() accepted, where it found a string or a number: it may
 * become the template, if those that fit have become rare. */
void json_template_learn(struct json_template *t, const char *line, size_t n,
                         const struct json_slice *found);

#endif

/*
 * picker_inside.h - what picker.c compiles and picking.c runs
 */
#ifndef BLY_IO_PICKER_INSIDE_H
#define BLY_IO_PICKER_INSIDE_H

#include "io/json_field.h"
#include "io/picker.h"

#define FIELD_MOST (1L << 30)

struct picker {
    enum pick_by {
        PICK_LINE,
        PICK_FIELD,
        PICK_BLANKS, /* a field, and any number of blanks between two */
        PICK_CSV,
        PICK_JSON,
        PICK_REGEX,
        PICK_MADE
    } by;
    bool crlf;      /* a carriage return at the end is not part of a line */
    bool fold;      /* case does not matter to the regular expression */
    bool header;    /* of CSV */
    long field;     /* from 1, or -1 backwards; 0: by name */
    char delimiter; /* of fields and of CSV */
    const char *name;
    const char *regex;
    struct json_path path;
    const char *group; /* as it was given; NULL: keys stand in no groups */
    long group_field;  /* as field, of the group */
    struct json_path group_path;
    pick_make *make;
    void *ctx; /* of make() */
};

/* Compile p->regex: each worker needs its own, since the C library lets only
 * one thread at a time use it. False, and why. */
bool picker_regex(const struct picker *p, regex_t *out, char *why, size_t nwhy);

/* Count a line, or several, without a key. */
__attribute__((format(printf, 4, 5))) void picking_bad(struct picking *p,
                                                       uint64_t line,
                                                       uint64_t nlines,
                                                       const char *format, ...);

/* Append what a function makes of raw bytes to the scratch. */
bly_bytes picking_copy(struct picking *p, bly_bytes raw,
                       size_t (*make)(const char *, size_t, char *));

/* Field `want` of lines, from 0, and the column of CSV: picking_next() of
 * these. */
void fields_start(struct field_cutter *f, const char *at, size_t n,
                  size_t want);
size_t pick_fields(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                   uint32_t *numbers, size_t max);
size_t pick_columns(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                    uint32_t *numbers, size_t max);

#endif

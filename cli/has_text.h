/*
 * has_text.h - how has prints the keys it found
 */
#ifndef BLY_CLI_HAS_TEXT_H
#define BLY_CLI_HAS_TEXT_H

#include "io/pipeline.h"
#include "report/fields.h"

/* What is printed of a key beside its line. */
struct has_form {
    bool names, numbers; /* FILE:LINE: before it */
    bool colour;         /* for people: made fit for a terminal too */
    bool json;           /* an object per key instead of its line */
    bool maybe;          /* what is told of all of them */
    char terminator;
};

/* Is it anything but lines as they came? */
static inline bool has_form_any(const struct has_form *form)
{
    return form->names || form->numbers || form->colour || form->json;
}

/* --color: auto (NULL too), always or never. False, with the reason printed, if
 * it is something else. */
enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };
bool has_colour(unsigned when);

/* Append key i of b to b->text: a line, or an object. part, unless NULL, is the
 * filter of another system that may have it. False if there is no memory. */
bool has_put(const struct has_form *form, const struct batch *b, size_t i,
             const char *part);

/* The same for all picked ones. */
bly_status has_put_picked(const struct has_form *form, struct batch *b);

/* Append the name of a file. */
bool has_put_name(const struct has_form *form, const struct input_file *f,
                  struct block *to);

extern const struct field has_key_fields[];

#endif

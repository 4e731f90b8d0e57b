/*
 * picker.h - which part of a line is the key?
 *
 * All of it, if nothing is said; or a field, a column of CSV, a field of JSON,
 * or what a regular expression matches. What a command line says is a
 * `selection`; a `picker` is the same checked and compiled, and is shared by
 * all workers. Each worker has a `picking`, which gives batches of keys, each
 * with the whole line that it came from:
 *
 *     line   1 \t ann@example.org \t 2026-11-16 \n
 *     key        `-------------'                     --field 2
 *
 * With a group, a key is the text of the group, a tab, and the key of the line.
 *
 * A line that has no key (too few fields, a quote that is never closed, JSON
 * that is malformed, a value that is not text) is bad: it is counted, and the
 * first ones are kept with the reason, for the pipeline to tell.
 */
#ifndef BLY_IO_PICKER_H
#define BLY_IO_PICKER_H

#include <regex.h>

#include "io/cutter.h"
#include "io/input.h"
#include "io/json_template.h"

/* What the options ask for; zero takes whole lines. */
struct selection {
    const char *field, *csv, *jsonl, *regex; /* one of them at most */
    const char *group;        /* a second one, which the key stands in */
    const char *group_option; /* what its option is called; NULL: --group */
    const char *delimiter;
    bool no_header, crlf, skip_bad;
};

/* Hand in->picker what s says. `nul`: lines end at NUL bytes. False, with the
 * reason printed, if that cannot be meant. */
bool selection_read(const struct selection *s, struct input *in);

/* Does it say which part of a line is the key? */
static inline bool selects(const struct selection *s)
{
    return s->field || s->csv || s->jsonl || s->regex;
}

/* What an app makes of a line whose key is none of these: a key in *key, which
 * may be a part of the line or the start of room, which has PICK_ROOM bytes and
 * twice those of the line; no key, as for a comment; or a bad line, and why.
 * Called by several threads at once. */
#define PICK_ROOM 64
enum pick_made { PICK_KEY, PICK_NONE, PICK_BAD };
typedef enum pick_made pick_make(void *ctx, const struct input_file *of,
                                 bly_bytes line, bly_bytes *key, char *room,
                                 char *why, size_t nwhy);

/* Hand in->picker a function of that kind, after selection_read(), which must
 * not have given it anything but crlf. False: no memory, which is said. */
bool picker_make(struct input *in, pick_make *make, void *ctx);

/* The option that says so, for messages. */
const char *selection_option(const struct selection *s);

void picker_free(struct picker *p);

/* -------------------------------------------------------- for the reader */

/* The delimiter, where records are those of CSV, which newlines do not end;
 * 0: they do. */
char picker_csv(const struct picker *p);

/* May a file begin with a byte order mark that is not part of it? */
bool picker_skips_mark(const struct picker *p);

/* Is a carriage return at the end of a line cut off, because that was asked
 * for? If not, could it be the end of a key? Not in CSV and JSON, nor where an
 * app makes the key. */
bool picker_drops_cr(const struct picker *p);
bool picker_keeps_cr(const struct picker *p);

/* The header at the beginning of a file, if it has one: how many bytes it has,
 * and in f its lines and the column that is meant. False, and why, where that
 * is not there. */
bool picker_header(const struct picker *p, const struct block *b,
                   struct input_file *f, size_t *nbytes, char *why,
                   size_t nwhy);

/* ------------------------------------------------------------ for workers */

#define BAD_SHOWN 10 /* bad lines that are told one by one */

struct bad_line {
    uint64_t line, nlines; /* in the block, from 0; and how many it has */
    char why[160];
};

/* Cuts lines and their fields at once (picking_fields.c). */
struct field_cutter {
    const char *begin, *end; /* of the block */
    const char *start;       /* of the line */
    const char *from;        /* of the field, once `left` is 0 */
    const char *to;          /* its end, once it was `seen` */
    size_t left;             /* delimiters before it that are not seen yet */
    const char *window;      /* what the masks are about, unless `fresh` */
    uint64_t ends, cuts;     /* of lines and fields, not used up */
    uint64_t quotes;
    uint64_t hard; /* where csv_record() has to go on; 0: nowhere */
    bool seen;
    bool fresh;  /* the window was not looked at yet */
    bool inside; /* of quotes, at its end */
};

struct picking {
    const struct input *in;
    const struct input_file *file;
    struct block scratch; /* keys that are not a part of their line */
    regex_t regex;
    bool compiled;
    struct json_template seen;

    /* Of the block. */
    struct cutter cutter;
    struct field_cutter fields;
    size_t column;   /* of CSV */
    bool escapes;    /* there is a backslash somewhere */
    uint64_t nlines; /* read so far */
    uint64_t nbad;   /* lines of it */
    size_t nshown;
    struct bad_line bad[BAD_SHOWN];
    const char *failed; /* out of memory, say; NULL: not */
};

void picking_start(struct picking *p, const struct input *in,
                   const struct block *b);

/* The next keys, max at most, BATCH at most; 0 at the end, or when it failed.
 * lines[i], with its separator behind it, is where keys[i] came from, and
 * numbers[i] counts the lines of the block before it. Keys are good until the
 * next call. */
size_t picking_next(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                    uint32_t *numbers, size_t max);

/* Bring n keys into the form of in->normal, with all that belongs to them; how
 * many could be. values may be NULL. */
size_t picking_normal(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                      uint32_t *numbers, uint64_t *values, size_t n);

void picking_free(struct picking *p);

#endif

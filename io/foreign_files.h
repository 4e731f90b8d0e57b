/*
 * foreign_files.h - files of other systems, as commands open and make them
 */
#ifndef BLY_IO_FOREIGN_H
#define BLY_IO_FOREIGN_H

#include <bloomery/foreign.h>

#include "io/keys.h"
#include "report/fields.h"

/* What the command line says of a format. */
struct foreign_args {
    const char *format;
    struct list options;
};

/* Whether there is a format of that name; false, with the reason printed, if
 * not. */
bool format_exists(const char *name);

/* One of the file's bytes and what was made of them. */
struct foreign_file {
    bly_foreign *f;
    void *bytes;
    size_t nbytes;
    bool mapped;
};

/* Is the file in path ("-": standard input) of another system, either because
 * args say so or by its content? NULL in file->f with YES: no, it is one of
 * ours or nobody's. TROUBLE, with the reason printed, if it is and cannot be
 * opened. */
int foreign_open(const char *path, const struct foreign_args *args,
                 struct foreign_file *file);
void foreign_close(struct foreign_file *file);

/* The bytes of a file compressed with `packed`, unpacked. Little is held of one
 * that no format knows; format, unless NULL, is the one that was named.
 * TROUBLE, with the reason printed. */
int foreign_unpack(const char *path, const char *packed, const char *format,
                   struct foreign_file *file);

/* The same from what can be read only once, compressed or not. */
int foreign_read(const char *path, struct foreign_file *file);

/* More than this is not unpacked into memory. */
size_t half_of_memory(void);

/* Do these n bytes begin as a .bly file does? */
bool is_bly(const unsigned char *bytes, size_t n);

/* The format of a file that is recognised, for messages; NULL: none.
 * bly_error() says what it said before. */
const char *foreign_format(const char *path);

/* The spec of what args say. False, with the reason printed. */
bool foreign_spec(const struct foreign_args *args, bly_foreign_spec *spec);

/* Is the file in path one of another system that can be changed in this way
 * (BLY_FORMAT_ADD, ...)? 1, or 0; -1, with the reason printed, if it could be,
 * but not where it is. */
int foreign_changes(const char *path, const struct foreign_args *args,
                    uint64_t can);

/* Which keys of a batch may be in f: a job's batch() for foreign filters. */
bly_status foreign_ask(const bly_foreign *f, struct batch *b);

/* Add the keys of a batch to f, and pick those that were new. */
bly_status foreign_add(bly_foreign *f, struct batch *b);

/* A new one from the keys of an input; `sift`, unless NULL, picks those that
 * are to come in. NULL, with the reason printed. */
bly_foreign *foreign_build(const bly_foreign_spec *spec, struct input *in,
                           sift_fn *sift, const void *ctx, bool may_be_empty,
                           struct job *job);

/* Write it to path, "-" being standard output: YES, or TROUBLE with the reason
 * printed. */
int foreign_save(bly_foreign *f, const char *path);

/* What was made, for people or for programs. */
extern const struct field foreign_made_fields[];
void foreign_report(FILE *to, bool json, const char *path,
                    const struct job *job, const bly_foreign *f);

#endif

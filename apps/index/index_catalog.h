/*
 * index_catalog.h - the files that an index knows, and the blocks they are cut
 * into
 *
 * Each document of an index is a block, of a whole file where that is small.
 * What must be known to read it again is kept in the document's blob:
 *
 *     1                             version
 *     flags                         enum block_flags
 *     name                          length, bytes
 *     size, mtime, ctime, inode     of the file, times in nanoseconds
 *     number, offset, length        of the block in the text
 *     first line, lines             from 0
 *     hash                          8 bytes, of its text
 *     back                          0: nothing to enter it by but the
 * beginning; 1: an entry follows; n: that of the block n - 1 before kind, bits,
 * packed, more, text, window        an entry
 *
 * All numbers but the hash are varints.
 */
#ifndef BLY_INDEX_CATALOG_H
#define BLY_INDEX_CATALOG_H

#include <bloomery/index.h>

#include "apps/index/index_fields.h"
#include "apps/index/index_terms.h"
#include "apps/index/text_file.h"
#include "base/bytes.h"

enum block_flags {
    BLOCK_NULS = 1,    /* the text has NULs */
    BLOCK_HIGH = 2,    /* or bytes from 128 on */
    BLOCK_BAD = 4,     /* and is not UTF-8 */
    BLOCK_LAST = 8,    /* it is the last one of its file */
    BLOCK_PLAIN = 16,  /* the file is not compressed */
    BLOCK_BINARY = 32, /* the file is not text, and was left out */
    BLOCK_UNREAD = 64, /* it could not be read, and must be searched */
    BLOCK_FLAGS = 127
};

/* What tells whether a file is still the same. */
struct file_mark {
    uint64_t size, mtime, ctime, inode;
};

struct file_mark mark_of(const struct stat *st);
bool marks_agree(const struct file_mark *a, const struct file_mark *b);

struct block_place {
    uint64_t number, at, len; /* in its file */
    uint64_t line, nlines;
    uint64_t hash;
    unsigned flags;
    uint64_t document; /* of the index */
    bool has_entry;
    struct text_entry entry;
};

/* The blob of a block. back: as above; entry is looked at if it is 1. */
bool blob_write(struct bytes *to, const char *name,
                const struct file_mark *mark, const struct block_place *place,
                uint64_t back);

/* What a blob says; false for what blob_write() does not write. Pointers are
 * into it. */
struct blob_says {
    const char *name; /* without a NUL */
    size_t nname;
    struct file_mark mark;
    struct block_place place;
    uint64_t back;
};
bool blob_read(bly_bytes blob, struct blob_says *out);

struct known_file {
    char *name;
    struct file_mark mark;
    struct block_place *blocks;
    size_t nblocks;
    unsigned flags; /* of all blocks */
    bool whole;     /* all its blocks are there, one after another */
    bool met;       /* for whoever walks through files */
};

struct catalog {
    struct known_file *files; /* in the order of their names */
    size_t nfiles;
    struct block_place *blocks;
    uint64_t ndamaged; /* documents without a readable blob */
    char *names;
    struct lookup *lookup;
};

/* False, with the reason printed, without memory. */
bool catalog_read(struct catalog *c, const bly_index *x);
void catalog_free(struct catalog *c);

/* The file of that name, or NULL. */
struct known_file *catalog_find(const struct catalog *c, const char *name);

/* ---------------------------------------------------------------- settings */

/* What an index was built with, kept in it. */
struct index_settings {
    struct term_rules terms;
    struct field_rules fields;
    bool binary;
    uint64_t block, points;
    char **roots; /* names that it was built from */
    size_t nroots, roots_room;
    char *folder;          /* where relative ones of them are */
    unsigned part, nparts; /* it has only these files; 0 parts: all */
};

/* Does part i of n have the file? By its name, so that machines agree. */
bool part_has(unsigned i, unsigned n, const char *name);

bool settings_keep(const struct index_settings *s, bly_index_builder *b);
/* False, with the reason printed: it is not the index of a folder. */
bool settings_read(struct index_settings *s, const bly_index *x,
                   const char *path);
bool settings_add(struct index_settings *s, const char *root);
void settings_free(struct index_settings *s);

/* ----------------------------------------------------------------- folders */

/* Each regular file below a name, or the name itself; of links in folders the
 * files are left out. st is NULL for what cannot be read, with errno. False
 * ends the walk. */
typedef bool walk_file(void *ctx, const char *path, const struct stat *st);
bool index_walk(const char *root, walk_file *each, void *ctx);

#endif

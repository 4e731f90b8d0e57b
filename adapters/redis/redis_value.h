/*
 * redis_value.h - keys that hold a filter of another system
 *
 * Their value is a bly_foreign of the library, in the server's memory, and what
 * a server asks of a type is the same for all of them: here it is, for the
 * table of methods of each.
 */
#ifndef BLY_REDIS_VALUE_H
#define BLY_REDIS_VALUE_H

#include <bloomery/foreign.h>

#include "adapters/redis/redis_module.h"

/* Of SCANDUMP, at most. RedisBloom gives 16 MiB, which takes a server 30 ms on
 * a busy machine, and takes pieces of any length. */
#define PIECE_BYTES ((size_t)2 << 20)

/* Put a new one into an open, empty key, and count it. */
void value_keep(server_key *key, server_type *type, bly_foreign *f);

/* From a dump, by the name of its format; NULL where it is bad. */
void *value_load(server_io *io, int version, const bly_foreign_spec *spec);

/* What is to be made, in the library's words; value_word() adds an option. */
typedef struct value_words {
    bly_foreign_spec spec;
    bly_option options[4];
    char text[4][72];
} value_words;

__attribute__((format(printf, 3, 4))) void
value_word(value_words *w, const char *name, const char *format, ...);

/* What their types have in common: all but rdb_load, aof_rewrite and
 * mem_usage. */
extern const server_methods value_methods;

/* Memory that a value takes for which so many bytes were asked for. */
size_t value_mem_usage(const void *value, size_t asked);

void *value_copy(server_string *from, server_string *to, const void *value);
void value_free(void *value);

/* What defragmentation has moved, and what it could not: arrays. */
extern _Atomic uint64_t value_defrag_hits, value_defrag_misses;

/* SCANDUMP: a pair of the next iterator and the piece at this one. `empty` is
 * said where there is none. */
void reply_piece(server_ctx *ctx, const bly_foreign *f, long long at,
                 int (*empty)(server_ctx *ctx));

/* LOADCHUNK: bytes that end before iterator `at` go where they belong. How many
 * of them fit there, 0: none, and unless it is all nothing was done; *changed:
 * others were there. */
size_t piece_take(const bly_foreign *f, long long at, bytes data,
                  bool *changed);

/* The head and all pieces as commands of that name. */
void rewrite_pieces(server_io *io, const char *command, server_string *key,
                    const bly_foreign *f);

/* The value of a fact of f, 0 where it has none of that name. */
double value_fact(const bly_foreign *f, const char *name);

/* The sizes of the whole. */
bly_foreign_sizes value_sizes(const bly_foreign *f);

/* The item of a command that has one alone is fetched while the server looks
 * for the key: where it will be, a note says of a filter that was used lately,
 * by the name of its key. The command ends with bly_foreign_note_take(). */
bly_foreign_note *value_expect(const server_string *name,
                               const server_string *item);

/* A command that replies with the counts of the items it is given. */
int value_counts(server_ctx *ctx, server_string **argv, int argc,
                 bly_foreign *(*open)(server_ctx *ctx, server_string *name,
                                      int mode, server_key **key));

#endif

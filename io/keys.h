/*
 * keys.h - commands that ask or change one filter: FILTER [KEY]... [-f FILE]...
 */
#ifndef BLY_IO_KEYS_H
#define BLY_IO_KEYS_H

#include "io/picker.h"
#include "io/pipeline.h"
#include "io/source.h"
#include "report/words.h"

/* Where keys come from (`given` by an option, the operands behind the filter,
 * files, or standard input), and the secret that they are hashed with. */
struct keys {
    struct list given; /* if there are any, there are no others */
    struct list files;
    const char *key_file;
    bool nul;
    bool changes; /* they are added or removed: the name of a file is not one */
    struct selection select; /* what part of a line is the key */
    struct normal normal;    /* and what becomes of it */
};

/* The keys in n files, as k says; those of k are not looked at. False, with
 * the reason printed, if that cannot be meant. */
bool keys_files(const struct keys *k, const char *const *names, size_t n,
                struct input *in);

/* The keys of a line whose first operand is the filter. "-" instead of keys is
 * standard input. False, with the reason printed, if they come from two places
 * or share one with the filter, or if one is the name of a file and k->changes.
 */
bool keys_input(const struct keys *k, const struct list *operands,
                struct input *in);

/* The type of keys read in this way, for a filter built from them: text, unless
 * another was given. */
bly_keying keys_keying(const struct keys *k);

/* Let the keys of an input take the form that those of a filter have: folded
 * and trimmed as they were, integers where it holds integers. False, with the
 * reason printed, if something was asked for with which keys would be missed.
 * path is the filter's. */
bool keys_follow(bly_keying of, const char *path, struct input *in);

/* Put the keys into groups if those of f are: a line names its group before a
 * tab, or --group does. False, with the reason printed, if nothing names the
 * group, or --group is given for a filter without groups. */
bool keys_groups(const struct keys *k, const bly_filter *f, const char *path,
                 struct input *in);

/* The name under which a filter notes the field of its groups. */
#define KEYS_GROUP_NOTE "group"

/* Is operand i "-", which is standard input unless -- stands before it? */
bool operand_is_stdin(const struct list *operands, size_t i);

/* May operand i of a command that changes a filter be a key? Not if it is the
 * name of a file, whose lines may have been meant, unless -- stands before it:
 * nobody can take it out again. False, with the reason printed. */
bool operand_is_key(const struct list *operands, size_t i);

/* Is a filter checked before it is asked? Small ones always, unless `never`;
 * others where `always`, and else block by block as they are asked. */
struct checking {
    bool always, never;
};

/* A filter that is to be asked and has an ability, compared with its checksum
 * as c says. NULL, with the reason printed. */
bly_filter *filter_to_ask(const char *path, const char *key_file,
                          const struct checking *c, uint32_t ability);

/* The two ends of a command that asks a filter for keys: the keys and the
 * filter of its line, NULL and said why; and running job over them, after
 * which both are gone. False, with the reason printed, if that failed. */
bly_filter *ask_begin(const struct list *operands, const struct keys *k,
                      const struct checking *c, uint32_t ability,
                      struct input *in);
bool ask_end(bly_filter *f, const struct list *operands, struct input *in,
             struct job *job);

/* As ask_end(), but both stay. */
bool ask_run(bly_filter *f, const struct list *operands, struct input *in,
             struct job *job);

/* Can the filter in path be changed as an ability says, with the keys of in,
 * which follow it (keys_follow())? False, with the reason printed, if not.
 * *kind is what it is. */
bool filter_to_change(const char *path, const bly_access *how, uint32_t ability,
                      struct input *in, bly_kind_info *kind);

/* Picks those keys of a batch that are to come in. */
typedef bly_status sift_fn(const void *ctx, struct batch *b);

/* A filter from those keys of an input that a sieve, the filter in path, lets
 * through. NULL, with the reason printed. What was read and picked is in job.
 */
bly_filter *sifted_filter(const bly_spec *spec, const struct keys *keys,
                          const char *path, uint64_t threads, sift_fn *sift,
                          const void *ctx, struct job *job);

#endif

/*
 * keys.h - commands that ask or change one filter: FILTER [KEY]... [-f FILE]...
 */
#ifndef BLY_KEYS_H
#define BLY_KEYS_H

#include "io/pipeline.h"
#include "io/source.h"

/* Where keys come from: the operands behind the filter, or files, or standard
 * input; and the secret that they are hashed with. */
struct keys {
    struct list files;
    const char *key_file;
    bool nul;
};

#define KEYS_OPTIONS(k)                                      \
    BINARY_OPTION,                                           \
        { "file",                                            \
          'f',                                               \
          OPT_LIST,                                          \
          &(k).files,                                        \
          "FILE",                                            \
          "read keys from FILE; may be repeated; - is "      \
          "standard input" },                                \
        { "null",                                            \
          '0',                                               \
          OPT_FLAG,                                          \
          &(k).nul,                                          \
          NULL,                                              \
          "keys end at NUL bytes, not at newlines; printed " \
          "ones too" },                                      \
    {                                                        \
        "key-file", 'K', OPT_TEXT, &(k).key_file, "FILE",    \
            "the secret of a keyed filter"                   \
    }
#define THREADS_OPTION(n)                                 \
    {                                                     \
        "threads", 't', OPT_POSITIVE, &(n), "N",          \
            "threads to use; all processors if not given" \
    }

/* The keys of a line whose first operand is the filter. False, and said why,
 * if they come from two places or share one with the filter. */
bool keys_input(const struct keys *k, const struct list *operands,
                struct input *in);

/* Warn of a key, the only one of a line, that is the name of a file: its lines
 * may have been meant. Not where -- stands before the keys. */
void warn_of_file(const struct list *operands, const char *key);

/* Is a filter checked before it is asked? Small ones always, unless `never`;
 * others where `always`, and else block by block as they are asked. */
struct checking {
    bool always, never;
};

#define CHECK_OPTIONS(c)                                                   \
    { "verify",                                                            \
      0,                                                                   \
      OPT_FLAG,                                                            \
      &(c).always,                                                         \
      NULL,                                                                \
      "compare all of the filter with its checksums first, even if it is " \
      "larger than 64 MiB" },                                              \
    {                                                                      \
        "no-verify", 0, OPT_FLAG, &(c).never, NULL,                        \
            "compare nothing: a damaged filter gives wrong answers"        \
    }
#define CHECK_ABOUT                                                            \
    "A filter of up to 64 MiB is compared with its checksum before it is "     \
    "queried. A larger one is queried at once, whatever its size: it has a "   \
    "checksum for each 64 KiB, and only the blocks that keys fall on are "     \
    "read and compared, once each. If one is damaged, the command ends with "  \
    "status 2 and prints no answer that depends on it. A larger file from an " \
    "older bloomery has one checksum for all of it, and is compared only "     \
    "with --verify (bloomery info names the version of its format). What "     \
    "comes through a pipe, or forgets with time, is read and compared in any " \
    "case."

/* The two ends of a command that asks a filter for keys: the keys and the
 * filter of its line, NULL and said why; and running job over them, after
 * which both are gone. False, and said why, if that failed. */
bly_filter *ask_begin(const struct list *operands, const struct keys *k,
                      const struct checking *c, uint32_t ability,
                      struct input *in);
bool ask_end(bly_filter *f, const struct list *operands, struct input *in,
             struct job *job);

/* Can the filter in path be changed as an ability says? False, and said why, if
 * not. *kind is what it is. */
bool filter_to_change(const char *path, const bly_access *how, uint32_t ability,
                      bly_kind_info *kind);

/* Changing a filter key by key, where some keys may be refused: batch() of the
 * job picks those that were not, and tells of the others; its ctx is the
 * filter. The result is an exit status: 1 where a key was refused. */
struct change {
    const struct keys *keys;
    uint32_t ability;
    const char *done; /* "removed" */
    bool json;
    struct job job; /* batch, and how lines are read */
};

int change_keys(struct change *c, const struct list *operands);

/* Name a key and why it was refused, unless nobody wants to know. */
void change_refused(const bly_bytes *key, const char *why);

#endif

/*
 * guess.c - what people type who come from elsewhere
 *
 * Other libraries and programs call things by other names. A name that means
 * nothing here is taken to mean what it means there. Help, man pages and
 * completion do not show these names: there is one way to do a thing, and this
 * is how to find it.
 */
#include <string.h>

#include "cli/cli.h"

struct guess {
    const char *typed, *meant;
};

static const struct guess commands[] = {
    { "query", "has" },     { "check", "has" },   { "contains", "has" },
    { "test", "has" },      { "ask", "has" },     { "create", "build" },
    { "new", "build" },     { "make", "build" },  { "insert", "add" },
    { "delete", "remove" }, { "rm", "remove" },   { "union", "merge" },
    { "stats", "info" },    { "stat", "info" },   { "describe", "info" },
    { "diff", "compare" },  { "uniq", "unique" },
};

static const struct guess options[] = {
    { "capacity", "items" },          { "expected-items", "items" },
    { "error-rate", "fpr" },          { "error", "fpr" },
    { "false-positive-rate", "fpr" }, { "fp-rate", "fpr" },
    { "decode", "decompress" },
};

static const struct guess kinds[] = {
    { "bloom", "classic" },
    { "standard", "classic" },
    { "bf", "classic" },
    { "bloomfilter", "classic" },
    { "cbf", "counting" },
    { "cf", "cuckoo" },
    { "cms", "countmin" },
    { "count-min", "countmin" },
    { "count-min-sketch", "countmin" },
    { "binaryfuse", "fuse" },
    { "binary-fuse", "fuse" },
};

static const char *meant(const struct guess *all, size_t n, const char *typed,
                         size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(all[i].typed) == len &&
            strncmp(all[i].typed, typed, len) == 0)
            return all[i].meant;
    return NULL;
}
#define MEANT(all, typed, len) \
    meant(all, sizeof all / sizeof all[0], typed, len)

const struct command *command_meant(const char *word)
{
    const struct command *const c = command_named(word);
    const char *const other = c ? NULL : MEANT(commands, word, strlen(word));
    return other ? command_named(other) : c;
}

const struct opt *option_meant(const struct command *c, const struct verb *v,
                               const char *name, size_t n)
{
    const struct opt *const o = option_named(c, v, name, n);
    const char *const other = o ? NULL : MEANT(options, name, n);
    return other ? option_named(c, v, other, strlen(other)) : o;
}

const char *kind_meant(const char *word)
{
    const char *const other = MEANT(kinds, word, strlen(word));
    return other ? other : word;
}

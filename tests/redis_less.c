/*
 * redis_less.c - a module that loads another, and hides functions from it
 *
 *     MODULE LOAD redis_less.so PATH NAMES [argument ...]
 *
 * The server that the other one sees has none of the functions in NAMES, which
 * is a list with commas between. So one server does for all that are older. Of
 * the names with a + in front it has one that only writes to the log, as does
 * one that is newer.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int getter(const char *name, void *to);
typedef int loader(void *ctx, void **argv, int argc);

static getter *real;
static char names[4000];
static void (*log_line)(void *ctx, const char *level, const char *text, ...);

/* Whether `mark` and the name stand in the list. */
static int is_named(const char *mark, const char *name)
{
    char word[200];
    snprintf(word, sizeof word, ",%s%s,", mark, name);
    return strstr(names, word) != NULL;
}

static int newer(void *what, const char *text)
{
    (void)what;
    log_line(NULL, "warning", "told: %s.", text);
    return 0;
}

static int get(const char *name, void *to)
{
    static const char prefix[] = "RedisModule_";
    const char *last = name;
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        last = name + sizeof prefix - 1;
    if (is_named("-", last))
        return 1;
    if (is_named("+", last)) {
        int (*instead)(void *, const char *) = newer;
        memcpy(to, &instead, sizeof instead);
        return 0;
    }
    return real(name, to);
}

int RedisModule_OnLoad(void *ctx, void **argv, int argc);

int RedisModule_OnLoad(void *ctx, void **argv, int argc)
{
    const char *(*text)(void *s, size_t *n);
    getter *less = get;
    loader *load;
    memcpy(&real, ctx, sizeof real);
    if (argc < 2 || real("RedisModule_StringPtrLen", &text) ||
        real("RedisModule_Log", &log_line))
        return 1;
    snprintf(names, sizeof names, ",%s,", text(argv[1], NULL));
    void *other = dlopen(text(argv[0], NULL), RTLD_NOW | RTLD_LOCAL);
    void *entry = other ? dlsym(other, "RedisModule_OnLoad") : NULL;
    if (!entry)
        return 1;
    memcpy(&load, &entry, sizeof load);
    memcpy(ctx, &less, sizeof less);
    const int st = load(ctx, argv + 2, argc - 2);
    memcpy(ctx, &real, sizeof real);
    return st;
}

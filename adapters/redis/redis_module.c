/*
 * redis_module.c - the module is loaded, and its commands are known
 */
#define _GNU_SOURCE
#include "adapters/redis/redis_module.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "adapters/redis/docs.h"

#define MODULE_VERSION 1

static const family *const families[] = {
#define FAMILY_ROW_(name) &family_##name,
    FAMILIES(FAMILY_ROW_)
#undef FAMILY_ROW_
};
#define NFAMILIES (sizeof families / sizeof families[0])

/* ----------------------------------------------------------------- replies */

bool is_resp3(server_ctx *ctx)
{
    return srv.GetContextFlags(ctx) & SERVER_FLAG_RESP3;
}

bool is_told(server_ctx *ctx)
{
    return srv.GetContextFlags(ctx) &
           (SERVER_FLAG_REPLICATED | SERVER_FLAG_LOADING);
}

bool may_wait(server_ctx *ctx)
{
    return srv.BlockClient && srv.UnblockClient && srv.AbortBlock &&
           srv.GetBlockedClientPrivateData &&
           !(srv.GetContextFlags(ctx) &
             (SERVER_FLAG_SCRIPT | SERVER_FLAG_MULTI |
              SERVER_FLAG_DENY_BLOCKING));
}

void reply_bool(server_ctx *ctx, bool yes)
{
    if (srv.ReplyWithBool) /* which is 1 or 0 in RESP2 */
        srv.ReplyWithBool(ctx, yes);
    else
        srv.ReplyWithLongLong(ctx, yes);
}

void reply_map(server_ctx *ctx, long n)
{
    if (srv.ReplyWithMap && is_resp3(ctx))
        srv.ReplyWithMap(ctx, n);
    else
        srv.ReplyWithArray(ctx, 2 * n);
}

void reply_number(server_ctx *ctx, const char *name, uint64_t value)
{
    srv.ReplyWithSimpleString(ctx, name);
    srv.ReplyWithLongLong(ctx, (long long)value);
}

int reply_error(server_ctx *ctx, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    srv.ReplyWithError(ctx, text);
    return SERVER_OK;
}

/* --------------------------------------------------------------- arguments */

bytes arg_bytes(const server_string *s)
{
    bytes b;
    b.at = srv.StringPtrLen(s, &b.n);
    return b;
}

bly_bytes arg_item(const server_string *s)
{
    bly_bytes b;
    b.ptr = srv.StringPtrLen(s, &b.len);
    return b;
}

size_t arg_items(server_string **argv, int n, size_t most, bly_bytes *items)
{
    const size_t some = (size_t)n < most ? (size_t)n : most;
    for (size_t i = 0; i < some; i++)
        items[i] = arg_item(argv[i]);
    return some;
}

bool arg_is(const server_string *s, const char *word)
{
    const bytes b = arg_bytes(s);
    return b.n == strlen(word) && strncasecmp(b.at, word, b.n) == 0;
}

bool arg_starts(const server_string *s, const char *letters)
{
    return strncasecmp(arg_bytes(s).at, letters, strlen(letters)) == 0;
}

bool arg_number(const server_string *s, long long min, long long max,
                uint64_t *out)
{
    long long value;
    const bool is = srv.StringToLongLong(s, &value) == SERVER_OK &&
                    value >= min && value <= max;
    if (is)
        *out = (uint64_t)value;
    return is;
}

/* -------------------------------------------------------------------- keys */

/* Who asks for memory: the command that has opened a key to write to it. NULL:
 * nobody, or who loads a dump. */
static server_ctx *asking;
static server_key *asking_for;

/* What was left when that command asked for much; it changes only as the
 * command takes some. A command whose every item is refused asks once, not per
 * item. */
static struct {
    uint64_t left;
    bool known;
} asked;

/* Has the command that opened a key last to write to it changed one? */
static bool any_changed;

bool key_has_changed(const server_key *key)
{
    return key && key == asking_for && any_changed;
}

held key_open(server_ctx *ctx, server_string *name, int mode,
              const server_type *type, server_key **key, void **value)
{
    *value = NULL;
    *key = srv.OpenKey(ctx, name, mode | SERVER_READ);
    if (mode & SERVER_WRITE) {
        asking = ctx;
        asking_for = *key;
        asked.known = false;
        any_changed = false;
    }
    /* One question where the key is as expected: an empty one has no type. */
    if (*key && srv.ModuleTypeGetType(*key) == type) {
        *value = srv.ModuleTypeGetValue(*key);
        return HELD_OURS;
    }
    return !*key || srv.KeyType(*key) == SERVER_KEY_EMPTY ? HELD_NONE
                                                          : HELD_OTHER;
}

void key_close(server_key *key)
{
    if (key && key == asking_for) {
        asking = NULL;
        asking_for = NULL;
        asked.known = false;
    }
    if (key)
        srv.CloseKey(key);
}

/* WATCH and clients that cache are told here, and not whenever a key was opened
 * to be written to: SERVER_NO_IMPLICIT_SIGNAL. */
void key_changed(server_ctx *ctx, const char *event, server_string *key)
{
    any_changed = true;
    if (srv.SignalModifiedKey)
        srv.SignalModifiedKey(ctx, key);
    if (srv.NotifyKeyspaceEvent)
        srv.NotifyKeyspaceEvent(ctx, SERVER_NOTIFY_GENERIC, event, key);
}

void *key_value(server_ctx *ctx, server_string *name, int mode,
                const server_type *type, const char *missing, server_key **key)
{
    void *value;
    const held what = key_open(ctx, name, mode, type, key, &value);
    if (what != HELD_OURS)
        reply_error(ctx, "%s", what == HELD_NONE ? missing : WRONGTYPE);
    return value;
}

int key_written(server_ctx *ctx, server_key *key, server_string *name,
                const char *event, const char *wrong)
{
    if (!wrong && event) {
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, event, name);
    }
    if (!wrong) {
        srv.ReplyWithSimpleString(ctx, "OK");
    } else if (wrong[0]) {
        reply_error(ctx, "%s", wrong);
    }
    key_close(key);
    return SERVER_OK;
}

static void effects_tell(effects *e, server_string **end)
{
    const size_t n = (size_t)(end - e->run);
    if (e->changed && e->is_insert)
        srv.Replicate(e->ctx, e->command, "sccv", e->name, "NOCREATE", "ITEMS",
                      e->run, n);
    else if (e->changed)
        srv.Replicate(e->ctx, e->command, "sv", e->name, e->run, n);
    e->told |= e->changed;
    e->changed = false;
}

void effects_refuse(effects *e, server_string **at, server_string **next)
{
    effects_tell(e, at);
    e->run = next;
    e->refused = true;
}

bool effects_end(effects *e, server_string **end)
{
    const bool changed = e->changed || e->told;
    if (e->refused)
        effects_tell(e, end);
    else if (changed)
        srv.ReplicateVerbatim(e->ctx);
    return changed;
}

/* A context of its own: the one of the rewriting belongs to no client, and a
 * database is chosen for a client. Without a dump (an administrator may have
 * given the command another name) the process that writes the log ends, and the
 * server keeps the log that it has: a log without the key would lose it. */
void rewrite_as_restore(server_io *io, server_string *key, void *value)
{
    (void)value;
    server_ctx *ctx = srv.GetThreadSafeContext(NULL);
    srv.SelectDb(ctx, srv.GetDbIdFromIO(io));
    server_reply *dump = srv.Call(ctx, "DUMP", "s", key);
    size_t n = 0;
    const char *at = dump ? srv.CallReplyStringPtr(dump, &n) : NULL;
    if (!at) {
        srv.Log(ctx, "warning",
                "the log is not rewritten: this server has no command DUMP, "
                "by which a key of CMS or TOPK is written to it");
        _exit(1);
    }
    srv.EmitAOF(io, "RESTORE", "slb", key, 0LL, at, n);
    srv.FreeCallReply(dump);
    srv.FreeThreadSafeContext(ctx);
}

/* ------------------------------------------------------------------ memory */

/* What is asked for at once and is more than this is looked at first. */
#define MEMORY_LARGE (UINT64_C(1) << 20)

/* The server's own numbers. */
typedef struct server_use {
    uint64_t used;
    uint64_t most; /* maxmemory; 0: it has none */
    bool evicts;   /* others, to make room */
} server_use;

static server_use memory_use(void)
{
    server_use u = { 0 };
    int bad;
    if (!srv.GetServerInfo || !srv.FreeServerInfo ||
        !srv.ServerInfoGetFieldUnsigned || !srv.ServerInfoGetFieldC)
        return u;
    server_facts *facts = srv.GetServerInfo(NULL, "memory");
    u.used = srv.ServerInfoGetFieldUnsigned(facts, "used_memory", &bad);
    u.most = srv.ServerInfoGetFieldUnsigned(facts, "maxmemory", &bad);
    const char *policy = srv.ServerInfoGetFieldC(facts, "maxmemory_policy");
    u.evicts = policy && strcmp(policy, "noeviction") != 0;
    srv.FreeServerInfo(NULL, facts);
    return u;
}

/* Bytes that the system could give without ending somebody; all there are
 * where it does not tell. An allocator that overcommits would give more, and
 * the kernel would end the server as it is touched. */
static uint64_t memory_left(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[200];
    unsigned long long kb = UINT64_MAX / 1024;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return (uint64_t)kb * 1024;
}

/* The machine's, or less in a control group; what was given and never touched
 * is taken, too, though the system does not see it. And a command may not go
 * past maxmemory, which the server looks at before it runs. */
uint64_t memory_room(void)
{
    const server_use u = memory_use();
    const uint64_t limit = bly_memory_limit() / 10 * 9;
    uint64_t room = memory_left() / 10 * 9;
    if (u.most && asking && !is_told(asking)) {
        const uint64_t left =
            u.most - (u.evicts || u.used > u.most ? 0 : u.used);
        room = left < room ? left : room;
    }
    const uint64_t left = u.used < limit ? limit - u.used : 0;
    return left < room ? left : room;
}

/* What is left to this thread; NULL: it may ask the server. */
static _Thread_local uint64_t *aside;

void memory_aside(uint64_t *room)
{
    aside = room;
}

static bool memory_is_there(uint64_t nbytes)
{
    if (nbytes > SIZE_MAX / 2)
        return false;
    if (nbytes <= MEMORY_LARGE)
        return true;
    if (!aside && !asking)
        return nbytes <= memory_room();
    if (!aside) {
        if (!asked.known)
            asked.left = memory_room();
        asked.known = nbytes > asked.left; /* else there is less, now */
        return !asked.known;
    }
    if (nbytes > *aside)
        return false;
    *aside -= nbytes;
    return true;
}

void *memory_try_raw(uint64_t nbytes)
{
    const size_t n = nbytes ? (size_t)nbytes : 1;
    if (!memory_is_there(nbytes))
        return NULL;
    return srv.TryAlloc ? srv.TryAlloc(n) : srv.Alloc(n);
}

/* Large ones are zero without being touched, where the allocator has them so.
 * A server that cannot try that for sure tries to have as much, first. */
void *memory_try(uint64_t nbytes)
{
    const size_t n = nbytes ? (size_t)nbytes : 1;
    if (srv.TryCalloc)
        return memory_is_there(nbytes) ? srv.TryCalloc(1, n) : NULL;
    void *at = memory_try_raw(nbytes);
    if (at && n > MEMORY_LARGE && srv.Calloc) {
        srv.Free(at);
        return srv.Calloc(1, n);
    }
    return at ? memset(at, 0, n) : NULL;
}

void memory_free(void *at)
{
    if (at)
        srv.Free(at);
}

static void *counted(tally *t, void *at, size_t n)
{
    if (t && at)
        t->bytes += n;
    return at;
}

void *server_alloc(void *ctx, size_t n)
{
    return counted(ctx, memory_try_raw(n), n);
}

void *server_zalloc(void *ctx, size_t n)
{
    return counted(ctx, memory_try(n), n);
}

void server_release(void *ctx, void *at, size_t n)
{
    tally *t = ctx;
    if (t && at)
        t->bytes -= n;
    memory_free(at);
}

const bly_mem server_memory = SERVER_MEMORY(NULL);

bool memory_is_weighed(uint64_t nbytes)
{
    return nbytes <= FREE_STEP && srv.MallocSize;
}

void *memory_weigh(void *sum, void *at)
{
    *(size_t *)sum += srv.MallocSize(at);
    return NULL;
}

void memory_moved(server_defrag *ctx, void *pointer)
{
    void *old, *fresh;
    memcpy(&old, pointer, sizeof old);
    if (old && (fresh = srv.DefragAlloc(ctx, old)))
        memcpy(pointer, &fresh, sizeof fresh);
}

/* ------------------------------------------------------------------ loading */

static int add_command(server_ctx *ctx, const family *f, const command_row *row)
{
    /* Keys are told with the rest: a number of them cannot be said here. */
    if (srv.CreateCommand(ctx, row->name, row->run, row->flags, 1,
                          row->numkeys < 0 ? -1 : 1, 1) != SERVER_OK)
        return SERVER_ERR;
    server_command *command =
        srv.GetCommand ? srv.GetCommand(ctx, row->name) : NULL;
    if (!command)
        return SERVER_OK;
    if (srv.AddACLCategory && srv.SetCommandACLCategories) {
        char categories[100];
        snprintf(categories, sizeof categories, "%s %s", row->categories,
                 f->category);
        srv.SetCommandACLCategories(command, categories);
    }
    return docs_tell(command, row);
}

/* Pairs of name and value after the file's name. */
static int take_arguments(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc % 2) {
        srv.Log(ctx, "warning",
                "arguments are pairs of a name and a value, and one is "
                "without its other half");
        return SERVER_ERR;
    }
    for (int i = 0; i < argc; i += 2) {
        const char *name = arg_bytes(argv[i]).at;
        int taken = 0;
        for (size_t k = 0; k < NFAMILIES && !taken; k++)
            if (families[k]->argument)
                taken = families[k]->argument(ctx, name, argv[i + 1]);
        if (!taken)
            srv.Log(ctx, "warning", "there is no setting %s", name);
        if (taken != 1)
            return SERVER_ERR;
    }
    return SERVER_OK;
}

static void tell_tally(server_info *info, const family *f)
{
    char name[60];
    snprintf(name, sizeof name, "%s_num_objects", f->category);
    srv.InfoAddFieldULongLong(info, name, f->count->keys);
    snprintf(name, sizeof name, "%s_total_memory_bytes", f->category);
    srv.InfoAddFieldULongLong(info, name, f->count->bytes);
}

static void tell_info(server_info *info, int for_crash_report)
{
    (void)for_crash_report;
    if (!srv.InfoAddSection || srv.InfoAddSection(info, "") == SERVER_ERR)
        return;
    for (size_t i = 0; i < NFAMILIES; i++) {
        if (families[i]->count && srv.InfoAddFieldULongLong)
            tell_tally(info, families[i]);
        if (families[i]->info)
            families[i]->info(info);
    }
}

__attribute__((visibility("default"))) int
RedisModule_OnLoad(void *ctx, server_string **argv, int argc);

int RedisModule_OnLoad(void *context, server_string **argv, int argc)
{
    const char *missing = server_load(context);
    server_ctx *ctx = context;
    if (missing) {
        if (srv.Log)
            srv.Log(ctx, "warning",
                    "this server is too old: it has no RedisModule_%s",
                    missing);
        return SERVER_ERR;
    }
    if (srv.IsModuleNameBusy && srv.IsModuleNameBusy(MODULE_NAME)) {
        srv.Log(ctx, "warning",
                "a module named " MODULE_NAME " is loaded already");
        return SERVER_ERR;
    }
    srv.SetModuleAttribs(ctx, MODULE_NAME, MODULE_VERSION, 1);
    if (srv.SetModuleOptions)
        srv.SetModuleOptions(
            ctx, SERVER_HANDLE_IO_ERRORS |
                     (srv.SignalModifiedKey ? SERVER_NO_IMPLICIT_SIGNAL : 0));
    for (size_t i = 0; i < NFAMILIES; i++) {
        if (srv.AddACLCategory)
            srv.AddACLCategory(ctx, families[i]->category);
        if (families[i]->start(ctx) != SERVER_OK)
            return SERVER_ERR;
        for (const command_row *row = families[i]->commands; row->name; row++)
            if (add_command(ctx, families[i], row) != SERVER_OK)
                return SERVER_ERR;
    }
    if (srv.LoadConfigs && srv.LoadConfigs(ctx) != SERVER_OK)
        return SERVER_ERR;
    if (srv.RegisterInfoFunc)
        srv.RegisterInfoFunc(ctx, tell_info);
    return take_arguments(ctx, argv, argc);
}

/*
 * redis_server.h - the part of the module interface of Redis and Valkey that we
 * use
 *
 * A server hands its functions over by name; server_load() asks for each and
 * leaves NULL what an older server does not have. Those without which nothing
 * works are marked REQUIRED; of the others whoever calls one looks first:
 *
 *     if (srv.ReplyWithBool)
 *         srv.ReplyWithBool(ctx, yes);
 *
 * Names, order of arguments and numbers are the server's own.
 */
#ifndef BLY_REDIS_SERVER_H
#define BLY_REDIS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct server_ctx server_ctx;
typedef struct server_key server_key;
typedef struct server_string server_string;
typedef struct server_io server_io;
typedef struct server_type server_type;
typedef struct server_digest server_digest;
typedef struct server_blocked server_blocked;
typedef struct server_defrag server_defrag;
typedef struct server_optctx server_optctx;
typedef struct server_info server_info;
typedef struct server_facts server_facts; /* what INFO says */
typedef struct server_command server_command;
typedef struct server_reply server_reply;

enum { SERVER_OK = 0, SERVER_ERR = 1 };
enum { SERVER_READ = 1, SERVER_WRITE = 2 };
enum { SERVER_KEY_EMPTY = 0, SERVER_KEY_MODULE = 6 };
#define SERVER_LATER (-1) /* length of an array that is set afterwards */

#define SERVER_FLAG_SCRIPT (1 << 0)
#define SERVER_FLAG_MULTI (1 << 1)
#define SERVER_FLAG_REPLICA (1 << 3)
#define SERVER_FLAG_REPLICATED (1 << 12)
#define SERVER_FLAG_LOADING (1 << 13)
#define SERVER_FLAG_ACTIVE_CHILD (1 << 18)
#define SERVER_FLAG_DENY_BLOCKING (1 << 21)
#define SERVER_FLAG_RESP3 (1 << 22)

#define SERVER_NOTIFY_GENERIC (1 << 2)
#define SERVER_NOTIFY_MODULE (1 << 13)
#define SERVER_HANDLE_IO_ERRORS (1 << 0)
#define SERVER_NO_IMPLICIT_SIGNAL (1 << 1)

typedef int server_function(server_ctx *ctx, server_string **argv, int argc);

/* Methods of a type of keys. version is 4 for all servers since 7.0. */
typedef struct server_methods {
    uint64_t version;
    void *(*rdb_load)(server_io *io, int encver);
    void (*rdb_save)(server_io *io, void *value);
    void (*aof_rewrite)(server_io *io, server_string *key, void *value);
    size_t (*mem_usage)(const void *value);
    void (*digest)(server_digest *md, void *value);
    void (*free)(void *value);
    int (*aux_load)(server_io *io, int encver, int when);
    void (*aux_save)(server_io *io, int when);
    int aux_save_triggers;
    size_t (*free_effort)(server_string *key, const void *value);
    void (*unlink)(server_string *key, const void *value);
    void *(*copy)(server_string *from, server_string *to, const void *value);
    int (*defrag)(server_defrag *ctx, server_string *key, void **value);
    size_t (*mem_usage2)(server_optctx *ctx, const void *value, size_t sample);
    size_t (*free_effort2)(server_optctx *ctx, const void *value);
    void (*unlink2)(server_optctx *ctx, const void *value);
    void *(*copy2)(server_optctx *ctx, const void *value);
} server_methods;

/* What COMMAND DOCS says about a command. */
typedef struct server_info_version {
    int version;
    size_t sizeof_history, sizeof_keyspec, sizeof_arg;
} server_info_version;

typedef enum server_arg_type {
    SERVER_ARG_STRING,
    SERVER_ARG_INTEGER,
    SERVER_ARG_DOUBLE,
    SERVER_ARG_KEY,
    SERVER_ARG_PATTERN,
    SERVER_ARG_UNIX_TIME,
    SERVER_ARG_PURE_TOKEN,
    SERVER_ARG_ONEOF,
    SERVER_ARG_BLOCK
} server_arg_type;

#define SERVER_ARG_OPTIONAL (1 << 0)
#define SERVER_ARG_MULTIPLE (1 << 1)

typedef struct server_arg {
    const char *name;
    server_arg_type type;
    int key_spec_index; /* -1 unless it is a key */
    const char *token, *summary, *since;
    int flags;
    const char *deprecated_since;
    struct server_arg *subargs;
    const char *display_text;
} server_arg;

#define SERVER_KEYSPEC_RO (1u << 0)
#define SERVER_KEYSPEC_RW (1u << 1)
#define SERVER_KEYSPEC_OW (1u << 2)
#define SERVER_KEYSPEC_ACCESS (1u << 4)
#define SERVER_KEYSPEC_UPDATE (1u << 5)
#define SERVER_KEYSPEC_INSERT (1u << 6)

typedef struct server_keyspec {
    const char *notes;
    uint64_t flags;
    int begin_search_type; /* 1 unknown, 2 index, 3 keyword */
    union {
        struct {
            int pos;
        } index;
        struct {
            const char *keyword;
            int startfrom;
        } keyword;
    } bs;
    int find_keys_type; /* 0 omitted, 1 unknown, 2 range, 3 number of keys */
    union {
        struct {
            int lastkey, keystep, limit;
        } range;
        struct {
            int keynumidx, firstkey, keystep;
        } keynum;
    } fk;
} server_keyspec;

typedef struct server_command_info {
    const server_info_version *version;
    const char *summary, *complexity, *since;
    void *history;
    const char *tips;
    int arity;
    server_keyspec *key_specs;
    server_arg *args;
} server_command_info;

/* X(REQUIRED or OPTIONAL, result, name, arguments) */
#define SERVER_API(X)                                                          \
    X(REQUIRED, int, CreateCommand,                                            \
      (server_ctx *, const char *, server_function *, const char *, int, int,  \
       int))                                                                   \
    X(REQUIRED, void, SetModuleAttribs,                                        \
      (server_ctx *, const char *, int, int))                                  \
    X(OPTIONAL, int, IsModuleNameBusy, (const char *))                         \
    X(OPTIONAL, void, SetModuleOptions, (server_ctx *, int))                   \
    X(REQUIRED, int, GetContextFlags, (server_ctx *))                          \
    X(REQUIRED, void, Log, (server_ctx *, const char *, const char *, ...))    \
    X(REQUIRED, int, WrongArity, (server_ctx *))                               \
    X(REQUIRED, int, ReplyWithLongLong, (server_ctx *, long long))             \
    X(REQUIRED, int, ReplyWithError, (server_ctx *, const char *))             \
    X(REQUIRED, int, ReplyWithSimpleString, (server_ctx *, const char *))      \
    X(REQUIRED, int, ReplyWithArray, (server_ctx *, long))                     \
    X(REQUIRED, void, ReplySetArrayLength, (server_ctx *, long))               \
    X(OPTIONAL, int, ReplyWithMap, (server_ctx *, long))                       \
    X(OPTIONAL, int, ReplyWithBool, (server_ctx *, int))                       \
    X(REQUIRED, int, ReplyWithStringBuffer,                                    \
      (server_ctx *, const char *, size_t))                                    \
    X(REQUIRED, int, ReplyWithNull, (server_ctx *))                            \
    X(REQUIRED, int, ReplyWithDouble, (server_ctx *, double))                  \
    X(REQUIRED, const char *, StringPtrLen, (const server_string *, size_t *)) \
    X(REQUIRED, int, StringToLongLong, (const server_string *, long long *))   \
    X(REQUIRED, int, StringToDouble, (const server_string *, double *))        \
    X(REQUIRED, server_string *, CreateString,                                 \
      (server_ctx *, const char *, size_t))                                    \
    X(REQUIRED, void, FreeString, (server_ctx *, server_string *))             \
    X(REQUIRED, server_key *, OpenKey, (server_ctx *, server_string *, int))   \
    X(REQUIRED, void, CloseKey, (server_key *))                                \
    X(REQUIRED, int, KeyType, (server_key *))                                  \
    X(REQUIRED, int, DeleteKey, (server_key *))                                \
    X(REQUIRED, server_type *, ModuleTypeGetType, (server_key *))              \
    X(REQUIRED, void *, ModuleTypeGetValue, (server_key *))                    \
    X(REQUIRED, int, ModuleTypeSetValue,                                       \
      (server_key *, server_type *, void *))                                   \
    X(REQUIRED, server_type *, CreateDataType,                                 \
      (server_ctx *, const char *, int, server_methods *))                     \
    X(REQUIRED, void, SaveUnsigned, (server_io *, uint64_t))                   \
    X(REQUIRED, uint64_t, LoadUnsigned, (server_io *))                         \
    X(REQUIRED, void, SaveDouble, (server_io *, double))                       \
    X(REQUIRED, double, LoadDouble, (server_io *))                             \
    X(REQUIRED, void, SaveStringBuffer, (server_io *, const char *, size_t))   \
    X(REQUIRED, char *, LoadStringBuffer, (server_io *, size_t *))             \
    X(REQUIRED, int, IsIOError, (server_io *))                                 \
    X(REQUIRED, void, EmitAOF, (server_io *, const char *, const char *, ...)) \
    X(REQUIRED, server_ctx *, GetThreadSafeContext, (void *))                  \
    X(REQUIRED, void, FreeThreadSafeContext, (server_ctx *))                   \
    X(REQUIRED, int, GetDbIdFromIO, (server_io *))                             \
    X(REQUIRED, int, SelectDb, (server_ctx *, int))                            \
    X(REQUIRED, server_reply *, Call,                                          \
      (server_ctx *, const char *, const char *, ...))                         \
    X(REQUIRED, const char *, CallReplyStringPtr, (server_reply *, size_t *))  \
    X(REQUIRED, void, FreeCallReply, (server_reply *))                         \
    X(REQUIRED, int, Replicate,                                                \
      (server_ctx *, const char *, const char *, ...))                         \
    X(REQUIRED, int, ReplicateVerbatim, (server_ctx *))                        \
    X(OPTIONAL, int, SignalModifiedKey, (server_ctx *, server_string *))       \
    X(OPTIONAL, int, NotifyKeyspaceEvent,                                      \
      (server_ctx *, int, const char *, server_string *))                      \
    X(REQUIRED, void *, Alloc, (size_t))                                       \
    X(OPTIONAL, void *, TryAlloc, (size_t))                                    \
    X(OPTIONAL, void *, Calloc, (size_t, size_t))                              \
    X(OPTIONAL, void *, TryCalloc, (size_t, size_t))                           \
    X(REQUIRED, void, Free, (void *))                                          \
    X(OPTIONAL, size_t, MallocSize, (void *))                                  \
    X(OPTIONAL, int, IsKeysPositionRequest, (server_ctx *))                    \
    X(OPTIONAL, void, KeyAtPosWithFlags, (server_ctx *, int, int))             \
    X(OPTIONAL, server_command *, GetCommand, (server_ctx *, const char *))    \
    X(OPTIONAL, int, SetCommandInfo,                                           \
      (server_command *, const server_command_info *))                         \
    X(OPTIONAL, int, AddACLCategory, (server_ctx *, const char *))             \
    X(OPTIONAL, int, SetCommandACLCategories,                                  \
      (server_command *, const char *))                                        \
    X(OPTIONAL, int, RegisterStringConfig,                                     \
      (server_ctx *, const char *, const char *, unsigned,                     \
       server_string *(*)(const char *, void *),                               \
       int (*)(const char *, server_string *, void *, server_string **),       \
       int (*)(server_ctx *, void *, server_string **), void *))               \
    X(OPTIONAL, int, LoadConfigs, (server_ctx *))                              \
    X(OPTIONAL, int, RegisterInfoFunc,                                         \
      (server_ctx *, void (*)(server_info *, int)))                            \
    X(OPTIONAL, int, InfoAddSection, (server_info *, const char *))            \
    X(OPTIONAL, int, InfoAddFieldULongLong,                                    \
      (server_info *, const char *, unsigned long long))                       \
    X(OPTIONAL, server_facts *, GetServerInfo, (server_ctx *, const char *))   \
    X(OPTIONAL, void, FreeServerInfo, (server_ctx *, server_facts *))          \
    X(OPTIONAL, unsigned long long, ServerInfoGetFieldUnsigned,                \
      (server_facts *, const char *, int *))                                   \
    X(OPTIONAL, const char *, ServerInfoGetFieldC,                             \
      (server_facts *, const char *))                                          \
    X(OPTIONAL, server_blocked *, BlockClient,                                 \
      (server_ctx *, server_function *, server_function *,                     \
       void (*)(server_ctx *, void *), long long))                             \
    X(OPTIONAL, int, UnblockClient, (server_blocked *, void *))                \
    X(OPTIONAL, int, AbortBlock, (server_blocked *))                           \
    X(OPTIONAL, void *, GetBlockedClientPrivateData, (server_ctx *))           \
    X(OPTIONAL, int, AvoidReplicaTraffic, (void))                              \
    X(OPTIONAL, uint64_t, CreateTimer,                                         \
      (server_ctx *, long long, void (*)(server_ctx *, void *), void *))       \
    X(REQUIRED, void *, DefragAlloc, (server_defrag *, void *))                \
    X(OPTIONAL, int, DefragShouldStop, (server_defrag *))                      \
    X(OPTIONAL, int, DefragCursorSet, (server_defrag *, unsigned long))        \
    X(OPTIONAL, int, DefragCursorGet, (server_defrag *, unsigned long *))      \
    X(REQUIRED, void, DigestAddStringBuffer,                                   \
      (server_digest *, const char *, size_t))                                 \
    X(REQUIRED, void, DigestAddLongLong, (server_digest *, long long))         \
    X(REQUIRED, void, DigestEndSequence, (server_digest *))

typedef struct server_api {
#define SERVER_MEMBER_(need, result, name, arguments) result(*name) arguments;
    SERVER_API(SERVER_MEMBER_)
#undef SERVER_MEMBER_
} server_api;

extern server_api srv;

/* Ask the server for all of them; NULL, or the name of a required one that it
 * does not have. */
const char *server_load(void *ctx);

/* A thread beside the server's, without signals, which are the server's;
 * false where there can be none. */
bool start_thread(void *(*run)(void *), void *argument);

#endif

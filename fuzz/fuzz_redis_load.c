/*
 * fuzz_redis_load.c - the module's loaders and commands, without a server
 *
 * Loaders of a real server are guarded by its checksums, so here is a server
 * of a page: it keeps a few keys in an array, reads what a loader asks for
 * from the input, and counts replies. An input is
 *
 *     type, version | values of the dump | commands
 *
 * a value is a length and that many bytes, little endian; a command is a row
 * of the module's tables and its words. What loads is saved and must load from
 * that to the same bytes, is copied, and then goes through the commands. Every
 * array that is announced must have the elements it was announced with.
 *
 *     fuzz_redis_load -seeds=FOLDER        write the corpus anew
 *     fuzz_redis_load FOUND fuzz/corpus/redis_load
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/redis_module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { MAX_TYPES = 8, NKEYS = 4, MAX_WORDS = 12, MAX_DEPTH = 8 };
#define MOST_MEMORY ((size_t)4 << 20)
#define MOST_COMMANDS 40

/* ------------------------------------------------------------ what it keeps */

struct server_type {
    char name[10];
    int encoding;
    server_methods does;
};

struct server_string {
    size_t n;
    char at[];
};

struct server_key {
    server_type *type; /* NULL: empty */
    void *value;
};

/* A dump that is read, or written. */
struct server_io {
    const uint8_t *in;
    size_t left;
    bool failed;
    uint8_t *out;
    size_t n, room;
};

static server_type types[MAX_TYPES];
static size_t ntypes;
static server_key keyspace[NKEYS];

/* Elements that are still to come, of each array that is open. */
static long owed[MAX_DEPTH];
static long later[MAX_DEPTH];
static int depth;

static const family *const families[] = {
#define ROW_(name) &family_##name,
    FAMILIES(ROW_)
#undef ROW_
};
#define NFAMILIES (sizeof families / sizeof families[0])

/* ------------------------------------------------------------------- memory */

static void *try_alloc(size_t n)
{
    return n > MOST_MEMORY ? NULL : malloc(n);
}

static void *try_calloc(size_t count, size_t size)
{
    return size > MOST_MEMORY / count ? NULL : calloc(count, size);
}

/* ------------------------------------------------------------------ replies */

/* An element has come. */
static void replied(void)
{
    assert(depth == 0 || owed[depth - 1] == SERVER_LATER ||
           owed[depth - 1] > 0);
    if (depth && owed[depth - 1] > 0)
        owed[depth - 1]--;
    else if (depth)
        later[depth - 1]++;
    while (depth && owed[depth - 1] == 0)
        depth--;
}

static int with_array(server_ctx *ctx, long n)
{
    (void)ctx;
    if (depth && owed[depth - 1] > 0)
        owed[depth - 1]--;
    assert(depth < MAX_DEPTH && n >= SERVER_LATER);
    later[depth] = 0;
    owed[depth++] = n;
    while (depth && owed[depth - 1] == 0)
        depth--;
    return SERVER_OK;
}

static int with_map(server_ctx *ctx, long n)
{
    return with_array(ctx, 2 * n);
}

static void set_length(server_ctx *ctx, long n)
{
    (void)ctx;
    assert(depth && owed[depth - 1] == SERVER_LATER && later[depth - 1] == n);
    depth--;
}

static int with_number(server_ctx *ctx, long long x)
{
    (void)ctx, (void)x;
    replied();
    return SERVER_OK;
}

static int with_bool(server_ctx *ctx, int x)
{
    return with_number(ctx, x);
}

static int with_double(server_ctx *ctx, double x)
{
    return with_number(ctx, x > 0);
}

static int with_text(server_ctx *ctx, const char *text)
{
    return with_number(ctx, (long long)strlen(text));
}

static int with_buffer(server_ctx *ctx, const char *at, size_t n)
{
    unsigned sum = 0; /* reads them all */
    for (size_t i = 0; i < n; i++)
        sum += (unsigned char)at[i];
    return with_number(ctx, sum);
}

static int with_null(server_ctx *ctx)
{
    return with_number(ctx, 0);
}

/* ------------------------------------------------------------------ strings */

static server_string *new_string(server_ctx *ctx, const char *at, size_t n)
{
    (void)ctx;
    server_string *s = malloc(sizeof *s + n + 1);
    s->n = n;
    memcpy(s->at, at, n);
    s->at[n] = '\0';
    return s;
}

static void free_string(server_ctx *ctx, server_string *s)
{
    (void)ctx;
    free(s);
}

static const char *string_at(const server_string *s, size_t *n)
{
    if (n)
        *n = s->n;
    return s->at;
}

static int to_number(const server_string *s, long long *out)
{
    char *end;
    errno = 0;
    const long long value = strtoll(s->at, &end, 10);
    if (!s->n || *end || end != s->at + s->n || errno || s->at[0] == ' ')
        return SERVER_ERR;
    *out = value;
    return SERVER_OK;
}

static int to_double(const server_string *s, double *out)
{
    char *end;
    const double value = strtod(s->at, &end);
    if (!s->n || *end || end != s->at + s->n)
        return SERVER_ERR;
    *out = value;
    return SERVER_OK;
}

/* --------------------------------------------------------------------- keys */

static void empty_key(server_key *key)
{
    if (key->type)
        key->type->does.free(key->value);
    *key = (server_key){ 0 };
}

static server_key *open_key(server_ctx *ctx, server_string *name, int mode)
{
    (void)ctx;
    server_key *key =
        &keyspace[(name->n ? (unsigned char)name->at[0] : 0) % NKEYS];
    return key->type || mode & SERVER_WRITE ? key : NULL;
}

static void close_key(server_key *key)
{
    (void)key;
}

static int key_type(server_key *key)
{
    return key->type ? SERVER_KEY_MODULE : SERVER_KEY_EMPTY;
}

static int delete_key(server_key *key)
{
    empty_key(key);
    return SERVER_OK;
}

static server_type *type_of(server_key *key)
{
    return key->type;
}

static void *value_of(server_key *key)
{
    return key->value;
}

static int set_value(server_key *key, server_type *type, void *value)
{
    empty_key(key);
    *key = (server_key){ type, value };
    return SERVER_OK;
}

static server_type *new_type(server_ctx *ctx, const char *name, int encoding,
                             server_methods *does)
{
    (void)ctx;
    server_type *t = &types[ntypes++];
    assert(ntypes <= MAX_TYPES && strlen(name) == 9);
    strcpy(t->name, name);
    t->encoding = encoding;
    t->does = *does;
    return t;
}

/* -------------------------------------------------------------------- dumps */

/* Little-endian numbers of n bytes. */
static void put_le(unsigned char *at, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get_le(const unsigned char *at, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = n; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static void put_bytes(server_io *io, const void *at, size_t n)
{
    if (io->room - io->n < n) {
        io->room = 2 * (io->room + n);
        io->out = realloc(io->out, io->room);
    }
    memcpy(io->out + io->n, at, n);
    io->n += n;
}

static void save_unsigned(server_io *io, uint64_t x)
{
    uint8_t value[9];
    unsigned n = 0;
    while (n < 8 && x >> 8 * n)
        n++;
    value[0] = (uint8_t)n;
    put_le(value + 1, x, 8);
    put_bytes(io, value, 1 + n);
}

static uint64_t load_unsigned(server_io *io)
{
    const size_t n = io->left ? io->in[0] % 9 : 9;
    if (io->failed || n >= io->left) {
        io->failed = true;
        return 0;
    }
    const uint64_t x = get_le(io->in + 1, (unsigned)n);
    io->in += 1 + n;
    io->left -= 1 + n;
    return x;
}

static void save_double(server_io *io, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    save_unsigned(io, bits);
}

static double load_double(server_io *io)
{
    const uint64_t bits = load_unsigned(io);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void save_buffer(server_io *io, const char *at, size_t n)
{
    save_unsigned(io, n);
    put_bytes(io, at, n);
}

static char *load_buffer(server_io *io, size_t *n)
{
    const uint64_t wanted = load_unsigned(io);
    if (io->failed || wanted > io->left) {
        io->failed = true;
        return NULL;
    }
    *n = (size_t)wanted;
    char *at = malloc(*n ? *n : 1);
    memcpy(at, io->in, *n);
    io->in += *n;
    io->left -= *n;
    return at;
}

static int io_failed(server_io *io)
{
    return io->failed;
}

extern size_t __sanitizer_get_allocated_size(const volatile void *p);

/* ------------------------------------------------------------ nothing to do */

static int context_flags(server_ctx *ctx)
{
    (void)ctx;
    return 0;
}

/* No reply. */
static int with_nothing(server_ctx *ctx)
{
    (void)ctx;
    return SERVER_OK;
}

static void log_line(server_ctx *ctx, const char *level, const char *text, ...)
{
    (void)ctx, (void)level, (void)text;
}

static int replicate(server_ctx *ctx, const char *name, const char *how, ...)
{
    (void)ctx, (void)name, (void)how;
    return SERVER_OK;
}

/* A command that a module calls gives no answer here. */
static server_ctx *context(void *client)
{
    (void)client;
    return NULL;
}

static void free_context(server_ctx *ctx)
{
    (void)ctx;
}

static int database(server_io *io)
{
    (void)io;
    return 0;
}

static int select_database(server_ctx *ctx, int number)
{
    (void)ctx, (void)number;
    return SERVER_OK;
}

/* A key is dumped where the log is rewritten, and no reply would end the
 * process. */
static server_reply *call(server_ctx *ctx, const char *name, const char *how,
                          ...)
{
    static char reply;
    (void)ctx, (void)name, (void)how;
    return (server_reply *)(void *)&reply;
}

static const char *reply_text(server_reply *reply, size_t *n)
{
    (void)reply;
    *n = 4;
    return "dump";
}

static void free_reply(server_reply *reply)
{
    (void)reply;
}

static void emit(server_io *io, const char *name, const char *how, ...)
{
    (void)io, (void)name, (void)how;
}

static void digest_buffer(server_digest *md, const char *at, size_t n)
{
    (void)md;
    with_buffer(NULL, at, n);
}

static void digest_number(server_digest *md, long long x)
{
    (void)md, (void)x;
}

static void digest_end(server_digest *md)
{
    (void)md;
}

static void *defrag_alloc(server_defrag *ctx, void *at)
{
    (void)ctx;
    const size_t n = __sanitizer_get_allocated_size(at);
    void *moved = malloc(n);
    memcpy(moved, at, n);
    free(at);
    return moved;
}

/* --------------------------------------------------------------- the server */

static void start_server(void)
{
    srv = (server_api){
        .GetContextFlags = context_flags,
        .Log = log_line,
        .WrongArity = with_null,
        .ReplyWithLongLong = with_number,
        .ReplyWithError = with_text,
        .ReplyWithSimpleString = with_text,
        .ReplyWithArray = with_array,
        .ReplySetArrayLength = set_length,
        .ReplyWithMap = with_map,
        .ReplyWithBool = with_bool,
        .ReplyWithStringBuffer = with_buffer,
        .ReplyWithNull = with_null,
        .ReplyWithDouble = with_double,
        .StringPtrLen = string_at,
        .StringToLongLong = to_number,
        .StringToDouble = to_double,
        .CreateString = new_string,
        .FreeString = free_string,
        .OpenKey = open_key,
        .CloseKey = close_key,
        .KeyType = key_type,
        .DeleteKey = delete_key,
        .ModuleTypeGetType = type_of,
        .ModuleTypeGetValue = value_of,
        .ModuleTypeSetValue = set_value,
        .CreateDataType = new_type,
        .SaveUnsigned = save_unsigned,
        .LoadUnsigned = load_unsigned,
        .SaveDouble = save_double,
        .LoadDouble = load_double,
        .SaveStringBuffer = save_buffer,
        .LoadStringBuffer = load_buffer,
        .IsIOError = io_failed,
        .EmitAOF = emit,
        .GetThreadSafeContext = context,
        .FreeThreadSafeContext = free_context,
        .GetDbIdFromIO = database,
        .SelectDb = select_database,
        .Call = call,
        .CallReplyStringPtr = reply_text,
        .FreeCallReply = free_reply,
        .Replicate = replicate,
        .ReplicateVerbatim = with_nothing,
        .Alloc = malloc,
        .TryAlloc = try_alloc,
        .TryCalloc = try_calloc,
        .Free = free,
        .DefragAlloc = defrag_alloc,
        .DigestAddStringBuffer = digest_buffer,
        .DigestAddLongLong = digest_number,
        .DigestEndSequence = digest_end,
    };
    for (size_t i = 0; i < NFAMILIES; i++)
        if (families[i]->start(NULL) != SERVER_OK)
            abort();
}

/* ------------------------------------------------------------------- trying */

static void run_command(const command_row *row, server_string **argv, int argc)
{
    depth = 0;
    row->run(NULL, argv, argc);
    assert(depth == 0); /* what was announced has come */
}

/* Commands from what is left of the input: the row, then words: those of a
 * length below 8 are bytes, 8 is a number, others are words of options. */
static void run_commands(server_io *io)
{
    static const char *const words[] = { "ITEMS",     "CAPACITY", "ERROR",
                                         "EXPANSION", "NOCREATE", "TIGHTENING",
                                         "WEIGHTS",   "FPR" };
    for (int n = 0; n < MOST_COMMANDS && io->left > 2; n++) {
        const family *f = families[io->in[0] % NFAMILIES];
        size_t nrows = 0;
        while (f->commands[nrows].name)
            nrows++;
        const command_row *row = &f->commands[io->in[1] % nrows];
        const int argc = 2 + io->in[2] % (MAX_WORDS - 2);
        server_string *argv[MAX_WORDS];
        io->in += 3;
        io->left -= 3;
        argv[0] = new_string(NULL, row->name, strlen(row->name));
        for (int i = 1; i < argc; i++) {
            const unsigned what = io->left ? io->in[0] % 16 : 0;
            io->in += io->left > 0;
            io->left -= io->left > 0;
            char number[24];
            if (what == 15) { /* as many bytes as the next byte says */
                const size_t room = io->left ? io->in[0] : 0;
                const size_t size = room < io->left ? room : io->left;
                argv[i] = new_string(NULL, (const char *)io->in, size);
                io->in += size;
                io->left -= size;
            } else if (what > 8) {
                argv[i] =
                    new_string(NULL, words[what - 9], strlen(words[what - 9]));
            } else if (what == 8) {
                server_io at = *io;
                snprintf(number, sizeof number, "%lld",
                         (long long)load_unsigned(&at));
                argv[i] = new_string(NULL, number, strlen(number));
                if (!at.failed)
                    *io = at;
            } else {
                const size_t size = what < io->left ? what : io->left;
                argv[i] = new_string(NULL, (const char *)io->in, size);
                io->in += size;
                io->left -= size;
            }
        }
        run_command(row, argv, argc);
        for (int i = 0; i < argc; i++)
            free_string(NULL, argv[i]);
    }
}

/* Save it, load what was saved, and save that: the same bytes. */
static void check_round_trip(const server_type *t, void *value)
{
    server_io first = { 0 }, second = { 0 };
    t->does.rdb_save(&first, value);
    server_io again = { .in = first.out, .left = first.n };
    void *same = t->does.rdb_load(&again, t->encoding);
    assert(same && !again.left);
    t->does.rdb_save(&second, same);
    assert(first.n == second.n && memcmp(first.out, second.out, first.n) == 0);
    t->does.free(same);
    free(first.out);
    free(second.out);
}

static void use_value(server_type *t, void **value)
{
    server_string *name = new_string(NULL, "a", 1);
    server_io log = { 0 };
    check_round_trip(t, *value);
    t->does.mem_usage(*value);
    depth = 0;
    t->does.digest(NULL, *value);
    if (t->does.free_effort)
        t->does.free_effort(name, *value);
    t->does.aof_rewrite(&log, name, *value);
    t->does.defrag(NULL, name, value);
    void *copy = t->does.copy(name, name, *value);
    if (copy) {
        check_round_trip(t, copy);
        t->does.free(copy);
    }
    free_string(NULL, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    server_type *t = &types[data[0] % ntypes];
    server_io io = { .in = data + 2, .left = size - 2 };
    void *value = t->does.rdb_load(&io, data[1] % 8);
    if (value) {
        use_value(t, &value);
        set_value(&keyspace['a' % NKEYS], t, value);
    }
    io.failed = false;
    run_commands(&io);
    for (int i = 0; i < NKEYS; i++) {
        if (keyspace[i].type)
            use_value(keyspace[i].type, &keyspace[i].value);
        empty_key(&keyspace[i]);
    }
    return 0;
}

/* -------------------------------------------------------------------- seeds */

/* One value of each type, made by its commands; words end at NULL. */
static const char *const seed_commands[][10] = {
    { "bf.reserve", "a", "0.1", "4" },
    { "bf.madd", "a", "1", "2", "3", "4", "5", "6", "7" },
    { "bf.insert", "b", "TIGHTENING", "0.5", "CAPACITY", "3", "ITEMS", "1",
      "2" },
    { "cf.insert", "c", "CAPACITY", "4", "ITEMS", "1", "2", "3" },
    { "cms.initbydim", "d", "3", "2" },
    { "cms.incrby", "d", "1", "5" },
    { "seed" },
    { "topk.reserve", "a", "2", "3", "2", "0.9" },
    { "topk.add", "a", "1", "2", "3", "1" },
    { "bly.create", "b", "classic", "CAPACITY", "10" },
    { "bly.add", "b", "1", "2" },
    { "bly.create", "c", "scalable", "CAPACITY", "2", "FPR", "0.1" },
    { "bly.add", "c", "1", "2", "3", "4", "5" },
    { "bly.create", "d", "aging", "CAPACITY", "10" },
    { "seed" },
    { "bly.create", "a", "elastic", "CAPACITY", "10" },
    { "bly.add", "a", "1", "2", "3", "4", "5" },
    { "seed" },
    { "bly.import", "a", "0", "9", "abc" },
    { "seed" },
};

static void seed_keys(const char *folder, int *n)
{
    for (int i = 0; i < NKEYS; i++) {
        char path[400];
        if (!keyspace[i].type)
            continue;
        const server_type *t = keyspace[i].type;
        server_io io = { 0 };
        const uint8_t head[2] = { (uint8_t)(t - types), (uint8_t)t->encoding };
        put_bytes(&io, head, 2);
        t->does.rdb_save(&io, keyspace[i].value);
        snprintf(path, sizeof path, "%s/%s%d", folder, t->name, (*n)++);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(io.out, 1, io.n, f) != io.n || fclose(f))
            abort();
        free(io.out);
        empty_key(&keyspace[i]);
    }
}

static void write_seeds(const char *folder)
{
    int nseeds = 0;
    for (size_t i = 0; i < sizeof seed_commands / sizeof *seed_commands; i++) {
        server_string *argv[10];
        int argc = 0;
        for (; argc < 10 && seed_commands[i][argc]; argc++)
            argv[argc] = new_string(NULL, seed_commands[i][argc],
                                    strlen(seed_commands[i][argc]));
        for (size_t k = 0; k < NFAMILIES; k++)
            for (const command_row *r = families[k]->commands; r->name; r++)
                if (strcmp(r->name, argv[0]->at) == 0)
                    run_command(r, argv, argc);
        if (strcmp(argv[0]->at, "seed") == 0)
            seed_keys(folder, &nseeds);
        while (argc > 0)
            free_string(NULL, argv[--argc]);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    start_server();
    if (*argc == 2 && strncmp((*argv)[1], "-seeds=", 7) == 0) {
        write_seeds((*argv)[1] + 7);
        exit(0);
    }
    return 0;
}

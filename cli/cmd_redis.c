/*
 * cmd_redis.c - filters on servers: bloomery redis VERB ...
 *
 * The first operand is the verb, and what follows it is the verb's.
 */
#include "apps/redis/redis.h"
#include "cli/rows.h"

static struct redis_args redis_args = {
    .login = { .host = "127.0.0.1", .port = 6379, .timeout = 60 },
};
static uint64_t redis_port, redis_timeout;
static const char *redis_host;

static const struct opt redis_options[] = {
    { "host", 0, OPT_TEXT, &redis_host, "HOST",
      "the server, or any server of a cluster; 127.0.0.1 if not given" },
    { "port", 0, OPT_POSITIVE, &redis_port, "N",
      "its port; 6379 if not given" },
    { "user", 0, OPT_TEXT, &redis_args.login.user, "NAME",
      "user to log in as; the default user if not given" },
    { "password-file", 0, OPT_TEXT, &redis_args.login.password_file, "FILE",
      "the password is the first line of FILE" },
    { "timeout", 0, OPT_POSITIVE, &redis_timeout, "SECONDS",
      "how long to wait for an answer; 60 if not given" },
    FLAG("cluster", 'C', redis_args.cluster,
         "NAME is a filter in shards, NAME:{0} and so on"),
    { "shards", 0, OPT_POSITIVE, &redis_args.shards, "N",
      "build, load --cluster: how many shards, up to 4096; build makes 16 if "
      "not given" },
    { "replicas", 0, OPT_POSITIVE, &redis_args.replicas, "N",
      "load, add, build: done when N replicas have it too; fails if they do "
      "not within --timeout" },
    FLAG("replace", 0, redis_args.replace,
         "load, build: replace a filter that is already there"),
    { "file", 'f', OPT_LIST, &redis_args.keys.files, "FILE",
      "has, add, build: read keys from FILE; may be repeated; - is standard "
      "input" },
    FLAG("null", '0', redis_args.keys.nul,
         "keys end at NUL bytes, not at newlines; printed ones too"),
    BINARY_OPTION,
    FLAG("invert", 'v', redis_args.invert,
         "has: print the keys that are not in the filter, which is certain but "
         "for kinds whose no is only likely"),
    FLAG("count", 'c', redis_args.count,
         "has: print only how many keys would be printed"),
    SIZING_OPTIONS(redis_args.sizing),
    WAIT_OPTION,
    QUIET_OPTION("print nothing but errors; has: stop at the first key that "
                 "would be printed"),
    JSON_OPTION(redis_args),
    { 0 },
};

#ifdef BLY_HIREDIS
#include "apps/redis/lane.h"

#define EVERY " host port user password-file timeout quiet json "
#define KEYS " cluster file null binary "

static const struct old_verb redis_verbs[] = {
    { "load", "FILTER KEY", 2, EVERY "replace replicas cluster shards " },
    { "dump", "KEY FILTER", 2, EVERY "wait cluster " },
    { "has", "KEY [ITEM]...", 1, EVERY KEYS "invert count " },
    { "add", "KEY [ITEM]...", 1, EVERY KEYS "replicas " },
    { "build", "KEY [ITEM]...", 1,
      EVERY KEYS "shards replace replicas items fpr bits memory kind option " },
    { "bench", "", 0, EVERY "items " },
    { "info", "KEY...", 1, EVERY "cluster " },
};
static redis_verb *const redis_functions[] = {
    redis_load,  redis_dump,  redis_has,  redis_add,
    redis_build, redis_bench, redis_info,
};
#define NVERBS (sizeof redis_verbs / sizeof redis_verbs[0])

static int redis_run(struct list *operands)
{
    struct list rest;
    const size_t verb =
        verb_find(&cmd_redis, redis_verbs, NVERBS, operands, &rest);
    if (verb == NVERBS)
        return TROUBLE;
    struct redis_login *const login = &redis_args.login;
    if (redis_port > 65535)
        return fail("--port %llu: at most 65535",
                    (unsigned long long)redis_port);
    if (redis_timeout > 86400)
        return fail("--timeout %llu: at most a day, 86400",
                    (unsigned long long)redis_timeout);
    if (redis_args.shards && !redis_args.cluster)
        return fail("--shards has a meaning only with --cluster");
    if (login->user && !login->password_file)
        return fail("--user needs --password-file");
    login->host = redis_host ? redis_host : login->host;
    login->port = redis_port ? redis_port : login->port;
    login->timeout = redis_timeout ? redis_timeout : login->timeout;
    if (login->password_file &&
        !(login->password = password_read(login->password_file)))
        return TROUBLE;
    const int status = redis_functions[verb](&redis_args, &rest);
    password_wipe();
    return status;
}

#else

static int redis_run(struct list *operands)
{
    (void)operands;
    return fail("this bloomery was built without hiredis (libhiredis-dev) and "
                "cannot talk to servers");
}

#endif

static const struct example redis_examples[] = {
    { "bloomery redis load words.bly words", "load a file into a key" },
    { "bloomery redis has words -f letter.txt", "which lines may be in it?" },
    { "bloomery redis dump words copy.bly", "and back, byte for byte" },
    { "bloomery redis info words", "its kind, how full it is, its size" },
    { "bloomery redis build --cluster --shards 64 leaked -f leaked.txt.zst "
      "--fpr 0.1%",
      "build one filter across all servers of a cluster" },
    { "bloomery redis has --cluster -c leaked -f today.txt",
      "the number of lines that may be in it" },
    { 0 },
};

const struct command cmd_redis = {
    .name = "redis",
    .old_verbs = "load dump has add build bench info",
    .usage = "VERB [OPERAND]... [OPTION]...",
    .summary = "put filters on Redis or Valkey servers, and query them there",
    .about =
        "Talks to a server that has the module bloomery.so loaded. There, a "
        "filter is a key.\n\n"
        "load FILTER KEY sends a file to a key, which must not exist yet "
        "unless --replace is given. The file is checked first. It goes to a "
        "temporary key, which is renamed when the server has all of it, so "
        "nobody ever sees a part.\n\n"
        "dump KEY FILTER writes the filter in a key to a file, byte for byte "
        "as it was loaded unless it has changed since. With --cluster, the "
        "shards of KEY go to the folder FILTER, as 0.bly, 1.bly and so on; "
        "load --cluster --shards N sends N such files to the shards of KEY, of "
        "the same cluster or another one.\n\n"
        "A key of BF.* or CF.* is dumped as the header and chunks of SCANDUMP, "
        "the formats redisbloom and rediscuckoo (bloomery formats), and such a "
        "file is loaded with LOADCHUNK: to move it between servers, or to load "
        "the output of bloomery build --format redisbloom. For this the server "
        "may have RedisBloom instead.\n\n"
        "has KEY [ITEM]... and add KEY [ITEM]... are bloomery has and add for "
        "a filter on a server, with the same exit status; --json only counts, "
        "as has -c --json does. Items "
        "are sent in large batches. Items added before an error stay added. "
        "Keys of BF.* and CF.* are asked and added to as well, on RedisBloom's "
        "and valkey-bloom's servers too.\n\n"
        "build KEY [ITEM]... makes a filter here, from items given as "
        "arguments, with -f or on standard input, and loads it.\n\n"
        "info KEY... prints what the server says of a filter, whichever family "
        "it is of (BLY, BF, CF, CMS, TOPK), and with --cluster the sums over "
        "all shards of a name.\n\n"
        "bench measures the server: how long it works per item, by its own "
        "clocks, with SET and GET, BF.* and BLY.*, in commands of 1, 16 and "
        "100 items. It uses keys that begin with bloomery:bench: and deletes "
        "them at the end; --items says how many items, 100000 if not given.\n\n"
        "One filter across a whole cluster: with --cluster, build divides NAME "
        "into shards, NAME:{0}, NAME:{1} and so on, each with its share of the "
        "keys and the full rate; has and add send each item to its shard. The "
        "number of shards is kept in NAME:{meta}. Slots may move and servers "
        "may fail over meanwhile: the command follows them, and waits up to 35 "
        "seconds for a successor. What load and build have sent to a server "
        "that dies is sent again; a replica has each part before the next step "
        "is taken. A slot that no server has is an error at once.\n\n"
        "If the server belongs to a cluster, keys without --cluster find their "
        "server too.",
    .options = redis_options,
    .examples = redis_examples,
    .reports = redis_reports,
    .run = redis_run,
};

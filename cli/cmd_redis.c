/*
 * cmd_redis.c - filters on servers: bloomery redis VERB ...
 */
#include "apps/redis/redis.h"
#include "cli/program.h"
#include "cli/rows.h"

static struct redis_args redis_args = {
    .login = { .host = "127.0.0.1", .port = 6379, .timeout = 60 },
};

#define REDIS_LOGIN                                                           \
    OPTION("host", 0, OPT_TEXT, &redis_args.login.host, "HOST",               \
           "the server, or any server of a cluster; 127.0.0.1 if not given"), \
        OPTION("port", 0, OPT_BETWEEN(POSITIVE, 1, 65535),                    \
               &redis_args.login.port, "N", "its port; 6379 if not given"),   \
        OPTION("user", 0, OPT_TEXT, &redis_args.login.user, "NAME",           \
               "user to log in as; the default user if not given"),           \
        OPTION("password-file", 0, OPT_TEXT, &redis_args.login.password_file, \
               "FILE", "the password is the first line of FILE"),             \
        OPTION("timeout", 0, OPT_BETWEEN(POSITIVE, 1, 86400),                 \
               &redis_args.login.timeout, "SECONDS",                          \
               "how long to wait for an answer; 60 if not given")
#define REDIS_CLUSTER                        \
    FLAG("cluster", 'C', redis_args.cluster, \
         "NAME is a filter in shards, NAME:{0} and so on")
#define REDIS_LOAD_BUILD                                                \
    OPTION("shards", 0, OPT_POSITIVE, &redis_args.shards, "N",          \
           "how many shards, up to 4096; build makes 16 if not given"), \
        FLAG("replace", 0, redis_args.replace,                          \
             "replace a filter that is already there")
#define REDIS_REPLICAS                                                      \
    OPTION("replicas", 0, OPT_POSITIVE, &redis_args.replicas, "N",          \
           "done when N replicas have it too; fails if they do not within " \
           "--timeout")
#define REDIS_KEYS                                                       \
    OPTION("file", 'f', OPT_LIST, &redis_args.keys.files, "FILE",        \
           "read keys from FILE; may be repeated; - is standard input"), \
        NULL_OPTION(redis_args.keys.nul, "keys")

static const struct opt redis_load_options[] = {
    REDIS_LOGIN,    REDIS_CLUSTER, REDIS_LOAD_BUILD,
    REDIS_REPLICAS, QUIET_ERRORS,  JSON_OPTION(redis_args),
    { 0 },
};

static const struct opt redis_dump_options[] = {
    REDIS_LOGIN,  REDIS_CLUSTER,           WAIT_OPTION,
    QUIET_ERRORS, JSON_OPTION(redis_args), { 0 },
};

static const struct opt redis_has_options[] = {
    REDIS_LOGIN,
    REDIS_CLUSTER,
    REDIS_KEYS,
    BINARY_OPTION,
    FLAG("invert", 'v', redis_args.invert,
         "print the keys that are not in the filter, which is certain but for "
         "kinds whose no is only likely"),
    FLAG("count", 'c', redis_args.count,
         "print only how many keys would be printed"),
    QUIET_OPTION("print nothing but errors; stop at the first key that would "
                 "be printed"),
    JSON_OPTION(redis_args),
    { 0 },
};

static const struct opt redis_add_options[] = {
    REDIS_LOGIN,   REDIS_CLUSTER, REDIS_REPLICAS,          REDIS_KEYS,
    BINARY_OPTION, QUIET_ERRORS,  JSON_OPTION(redis_args), { 0 },
};

static const struct opt redis_build_options[] = {
    REDIS_LOGIN,
    REDIS_CLUSTER,
    REDIS_LOAD_BUILD,
    REDIS_REPLICAS,
    REDIS_KEYS,
    BINARY_OPTION,
    SIZING_OPTIONS(redis_args.sizing),
    QUIET_ERRORS,
    JSON_OPTION(redis_args),
    { 0 },
};

static const struct opt redis_bench_options[] = {
    REDIS_LOGIN,
    OPTION("items", 'n', OPT_POSITIVE, &redis_args.sizing.items, "N",
           "how many items; 100000 if not given"),
    QUIET_ERRORS,
    JSON_OPTION(redis_args),
    { 0 },
};

static const struct opt redis_info_options[] = {
    REDIS_LOGIN, REDIS_CLUSTER, QUIET_ERRORS, JSON_OPTION(redis_args), { 0 },
};

ELSEWHERE(password_read);
ELSEWHERE(password_wipe);

static int redis_logged_in(redis_verb *run, struct list *operands)
{
    struct redis_login *const login = &redis_args.login;
    if (redis_args.shards && !redis_args.cluster)
        return fail("--shards has a meaning only with --cluster");
    if (login->user && !login->password_file)
        return fail("--user needs --password-file");
    if (login->password_file &&
        !(login->password = password_read(login->password_file)))
        return TROUBLE;
    const int status = run(&redis_args, operands);
    password_wipe();
    return status;
}

#define REDIS_RUNS(function)                                  \
    ELSEWHERE(function);                                      \
    static int run_##function(struct list *operands)          \
    {                                                         \
        return function ? redis_logged_in(function, operands) \
                        : program_run("redis");               \
    }

#define REDIS_MOVED REPORTS({ "", redis_moved_fields, ONE })

REDIS_RUNS(redis_load)
REDIS_RUNS(redis_dump)
REDIS_RUNS(redis_has)
REDIS_RUNS(redis_add)
REDIS_RUNS(redis_build)
REDIS_RUNS(redis_bench)
REDIS_RUNS(redis_info)

static const struct verb redis_verbs[] = {
    { .name = "load",
      .operands = "FILTER KEY",
      .summary = "send a filter to a key",
      .about =
          "load FILTER KEY sends a file to a key, which must not exist yet "
          "unless --replace is given. The file is checked first. It goes to a "
          "temporary key, which is renamed when the server has all of it, so "
          "nobody ever sees a part.",
      .options = redis_load_options,
      .reports = REDIS_MOVED,
      .run = run_redis_load },
    { .name = "dump",
      .operands = "KEY FILTER",
      .summary = "write the filter in a key to a file",
      .about =
          "dump KEY FILTER writes the filter in a key to a file, byte for byte "
          "as it was loaded unless it has changed since. With --cluster, the "
          "shards of KEY go to the folder FILTER, as 0.bly, 1.bly and so on; "
          "load --cluster --shards N sends N such files to the shards of KEY, "
          "of the same cluster or another one.",
      .options = redis_dump_options,
      .reports = REDIS_MOVED,
      .run = run_redis_dump },
    { .name = "has",
      .operands = "KEY [ITEM]...",
      .summary = "print the items that may be in a filter",
      .about = "has KEY [ITEM]... and add KEY [ITEM]... are bloomery has and "
               "add for a filter on a server, with the same exit status; "
               "--json only counts, as has -c --json does. Items are sent in "
               "large batches. Items added before an error stay added. Keys of "
               "BF.* and CF.* are asked and added to as well, on RedisBloom's "
               "and valkey-bloom's servers too.",
      .options = redis_has_options,
      .reports = REPORTS({ "", redis_asked_fields, ONE }),
      .run = run_redis_has },
    { .name = "add",
      .operands = "KEY [ITEM]...",
      .summary = "add items to a filter",
      .options = redis_add_options,
      .reports = REPORTS({ "", redis_added_fields, ONE }),
      .run = run_redis_add },
    { .name = "build",
      .operands = "KEY [ITEM]...",
      .summary = "make a filter here, and load it",
      .about = "build KEY [ITEM]... makes a filter here, from items given as "
               "arguments, with -f or on standard input, and loads it.",
      .options = redis_build_options,
      .reports = REPORTS({ "", redis_built_fields, ONE }),
      .run = run_redis_build },
    { .name = "bench",
      .operands = "",
      .summary = "measure the server",
      .about =
          "bench measures the server: how long it works per item, by its own "
          "clocks, with SET and GET, BF.* and BLY.*, in commands of 1, 16 and "
          "100 items. It uses keys that begin with bloomery:bench: and deletes "
          "them at the end; --items says how many items, 100000 if not given.",
      .options = redis_bench_options,
      .reports = REPORTS({ "", redis_benched_fields, ONE }),
      .run = run_redis_bench },
    { .name = "info",
      .operands = "KEY...",
      .summary = "what the server says of a filter",
      .about = "info KEY... prints what the server says of a filter, whichever "
               "family it is of (BLY, BF, CF, CMS, TOPK), and with --cluster "
               "the sums over all shards of a name.",
      .options = redis_info_options,
      .reports = REPORTS({ "", redis_info_fields, LINES }),
      .run = run_redis_info },
    { 0 },
};

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
    .summary = "put filters on Redis or Valkey servers, and query them there",
    .about =
        "Talks to a server that has the module bloomery.so loaded. There, a "
        "filter is a key.\n\n"
        "A key of BF.* or CF.* is dumped as the header and chunks of SCANDUMP, "
        "the formats redisbloom and rediscuckoo (bloomery formats), and such a "
        "file is loaded with LOADCHUNK: to move it between servers, or to load "
        "the output of bloomery build --format redisbloom. For this the server "
        "may have RedisBloom instead.\n\n"
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
    .verbs = redis_verbs,
    .examples = redis_examples,
};

/*
 * redis_report.c - what the verbs of `bloomery redis` report
 */
#include "apps/redis/redis.h"

const struct field redis_moved_fields[] = {
    FIELD(struct redis_moved, file, NONE, "the file"),
    FIELD(struct redis_moved, key, NONE, "the key on the server"),
    FIELD(struct redis_moved, kind, OPTIONAL, "the kind of the filter"),
    FIELD(struct redis_moved, format, OPTIONAL,
          "or its format, if it is not ours"),
    FIELD(struct redis_moved, bytes, BYTES, "size of the file"),
    { 0 },
};

const struct field redis_built_fields[] = {
    FIELD(struct redis_built, key, NONE, "the key on the server"),
    FIELD(struct redis_built, keys, KEYS, "keys that were read"),
    FIELD(struct redis_built, kind, NONE, "the kind of the filter"),
    FIELD(struct redis_built, shards, NONE, "in how many keys it lies"),
    FIELD(struct redis_built, capacity, KEYS, "different keys that it is for"),
    FIELD(struct redis_built, bytes, BYTES, "size of all its parts"),
    FIELD(struct redis_built, fpr, RATE | MAYBE, "false positives at capacity"),
    FIELD(struct redis_built, several, NONE, NULL),
    { 0 },
};

const struct field redis_asked_fields[] = {
    FIELD(struct redis_asked, asked, NONE, "keys that were asked for"),
    FIELD(struct redis_asked, maybe, NONE, "those that may be in it"),
    FIELD(struct redis_asked, picked, NONE, NULL),
    { 0 },
};

const struct field redis_added_fields[] = {
    FIELD(struct redis_added, key, NONE, "the key on the server"),
    FIELD(struct redis_added, keys, KEYS, "keys that were read"),
    NAMED(struct redis_added, "new", fresh, NONE, "those that changed it"),
    { 0 },
};

const struct field redis_row_fields[] = {
    FIELD(struct redis_bench_row, command, NONE, "the command"),
    FIELD(struct redis_bench_row, batch, NONE, "items in each"),
    FIELD(struct redis_bench_row, command_ns, NANOSECONDS | MAYBE,
          "per item, by the server's clock of commands"),
    FIELD(struct redis_bench_row, cpu_ns, NANOSECONDS | MAYBE,
          "per item, processor time of its main thread"),
    { 0 },
};

const struct field redis_benched_fields[] = {
    FIELD(struct redis_benched, server, NONE, "the version of the server"),
    FIELD(struct redis_benched, items, NONE, "items"),
    FIELD(struct redis_benched, rounds, NONE, "rounds; figures are medians"),
    LIST(struct redis_benched, "rows", rows, nrows, AT, redis_row_fields,
         "what each command costs"),
    { 0 },
};

static const struct field fact_fields[] = {
    FIELD(struct redis_fact, name, NONE, "what the server calls it"),
    FIELD(struct redis_fact, value, MAYBE, "its value, as text"),
    { 0 },
};

const struct field redis_info_fields[] = {
    FIELD(struct redis_info, key, NONE, "the key, or the name of all shards"),
    FIELD(struct redis_info, type, NONE, "the command that was asked"),
    FIELD(struct redis_info, shards, OPTIONAL, "with --cluster: how many"),
    LIST(struct redis_info, "facts", facts, nfacts, AT, fact_fields,
         "what the server says of it; with --cluster, sums over all shards"),
    { 0 },
};

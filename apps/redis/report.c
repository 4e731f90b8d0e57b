/*
 * report.c - what the verbs of `bloomery redis` report
 */
#include "apps/redis/redis.h"
#include "report/say.h"

static const struct field moved_fields[] = {
    FIELD(struct redis_moved, file, NONE, "the file"),
    FIELD(struct redis_moved, key, NONE, "the key on the server"),
    FIELD(struct redis_moved, kind, OPTIONAL, "the kind of the filter"),
    FIELD(struct redis_moved, format, OPTIONAL,
          "or its format, if it is not ours"),
    FIELD(struct redis_moved, bytes, BYTES, "size of the file"),
    { 0 },
};

void redis_tell_moved(const struct redis_args *args, FILE *to,
                      const struct redis_moved *moved)
{
    if (!quiet)
        report(to, args->json, moved_fields, moved,
               "{file}: [{kind}|{format}], {bytes}, key {key}\n");
}

static const struct field built_fields[] = {
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

void redis_tell_built(const struct redis_args *args,
                      const struct redis_built *built)
{
    if (!quiet)
        report(stdout, args->json, built_fields, built,
               "{key}: {keys} read; {kind} in {shards} shard[{?several}s], "
               "{bytes}, rate [{fpr}|unknown] at capacity\n");
}

static const struct field asked_fields[] = {
    FIELD(struct redis_asked, asked, NONE, "keys that were asked for"),
    FIELD(struct redis_asked, maybe, NONE, "those that may be in it"),
    FIELD(struct redis_asked, picked, NONE, NULL),
    { 0 },
};

void redis_tell_asked(const struct redis_args *args,
                      const struct redis_asked *asked)
{
    report(stdout, args->json, asked_fields, asked, "{picked}\n");
}

static const struct field added_fields[] = {
    FIELD(struct redis_added, key, NONE, "the key on the server"),
    FIELD(struct redis_added, keys, KEYS, "keys that were read"),
    NAMED(struct redis_added, "new", fresh, NONE, "those that changed it"),
    { 0 },
};

void redis_tell_added(const struct redis_args *args,
                      const struct redis_added *added)
{
    report(stdout, args->json, added_fields, added,
           "{key}: {keys} added, {new} of them new\n");
}

static const struct field row_fields[] = {
    FIELD(struct redis_bench_row, command, NONE, "the command"),
    FIELD(struct redis_bench_row, batch, NONE, "items in each"),
    FIELD(struct redis_bench_row, command_ns, NANOSECONDS | MAYBE,
          "per item, by the server's clock of commands"),
    FIELD(struct redis_bench_row, cpu_ns, NANOSECONDS | MAYBE,
          "per item, processor time of its main thread"),
    { 0 },
};

static const struct field benched_fields[] = {
    FIELD(struct redis_benched, server, NONE, "the version of the server"),
    FIELD(struct redis_benched, items, NONE, "items"),
    FIELD(struct redis_benched, rounds, NONE, "rounds; figures are medians"),
    LIST(struct redis_benched, "rows", rows, nrows, AT, row_fields,
         "what each command costs"),
    { 0 },
};

void redis_tell_bench(const struct redis_args *args,
                      const struct redis_benched *benched)
{
    report(stdout, args->json, benched_fields, benched,
           "server {server}, {items} items, ns per item\n"
           "command       items   in command  main thread\n");
    for (size_t i = 0; !args->json && i < benched->nrows; i++)
        report_text(
            stdout, row_fields, &benched->rows[i],
            "{command:-12} {batch:6} {command_ns:12.0} {cpu_ns:12.0}\n");
}

const struct report redis_reports[] = {
    { "load and dump", moved_fields, ONE }, { "build", built_fields, ONE },
    { "has", asked_fields, ONE },           { "add", added_fields, ONE },
    { "bench", benched_fields, ONE },       { 0 },
};

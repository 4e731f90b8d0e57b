/*
 * cmd_table.c - sorted tables with filters: bloomery table VERB ...
 */
#include "apps/table/table_args.h"
#include "cli/rows.h"

static struct table_args table_args;

#define TABLE_ROWS REPORTS({ "", table_row_fields, LINES })

#define TABLE_BUILD_GET                                                      \
    FLAG("hex", 0, table_args.hex,                                           \
         "values are hexadecimal digits, in the input of build and in what " \
         "get "                                                              \
         "prints, so that they can be any bytes"),                           \
        NULL_OPTION(table_args.keys.nul, "lines")

static const struct opt table_build_options[] = {
    { "output", 'o', OPT_TEXT, &table_args.output, "FILE",
      "the table, or a folder, in which it becomes the newest one; FILE/ is a "
      "folder that is made if it is not there" },
    { "delimiter", 'd', OPT_TEXT, &table_args.delimiter, "C",
      "the character between key and value, instead of a tab; the first one in "
      "a line counts" },
    TABLE_BUILD_GET,
    { "fpr", 'p', OPT_RATE, &table_args.sizing.fpr, "P",
      "rate of false positives of the filter; 1 % if not given" },
    { "kind", 'k', OPT_TEXT, &table_args.sizing.kind, "KIND",
      "kind of filter; see bloomery kinds" },
    { "option", 'O', OPT_LIST, &table_args.sizing.options, "NAME=VALUE",
      "an option of the kind; may be repeated" },
    BINARY_OPTION,
    WAIT_OPTION,
    QUIET_OPTION("print nothing but values and errors"),
    JSON_OPTION(table_args),
    { 0 },
};

static const struct opt table_get_options[] = {
    FILE_OPTION(table_args.keys.files, "keys"),
    TABLE_BUILD_GET,
    FLAG("stat", 0, table_args.stat,
         "say on standard error how many tables were spared and read"),
    BINARY_OPTION,
    QUIET_OPTION("print nothing but values and errors"),
    JSON_OPTION(table_args),
    { 0 },
};

static const struct opt table_stat_options[] = {
    QUIET_OPTION("print nothing but values and errors"),
    JSON_OPTION(table_args),
    { 0 },
};

static const struct opt table_verify_options[] = {
    QUIET_OPTION("print nothing but values and errors"),
    JSON_OPTION(table_args),
    { 0 },
};

static const struct opt table_scan_options[] = {
    { "from", 0, OPT_TEXT, &table_args.from, "KEY",
      "begin with this key, or the next one that is there" },
    { "to", 0, OPT_TEXT, &table_args.to, "KEY", "end in front of this key" },
    { "prefix", 0, OPT_TEXT, &table_args.prefix, "TEXT",
      "keys that begin with this" },
    { "limit", 0, OPT_POSITIVE, &table_args.limit, "N", "N keys at most" },
    FLAG("hex", 0, table_args.hex, "print values as hexadecimal digits"),
    NULL_OPTION(table_args.keys.nul, "lines"),
    QUIET_OPTION("print nothing but keys, values and errors"),
    JSON_OPTION(table_args),
    { 0 },
};

static const struct opt table_compact_options[] = {
    { "newest", 0, OPT_POSITIVE, &table_args.newest, "N",
      "make one of the newest N tables; of all if not given" },
    { "fpr", 'p', OPT_RATE, &table_args.sizing.fpr, "P",
      "rate of false positives of the filter; that of the largest table if not "
      "given" },
    { "kind", 'k', OPT_TEXT, &table_args.sizing.kind, "KIND",
      "kind of filter; that of the largest table if not given" },
    { "option", 'O', OPT_LIST, &table_args.sizing.options, "NAME=VALUE",
      "an option of the kind; may be repeated" },
    WAIT_OPTION,
    QUIET_OPTION("print nothing but errors"),
    JSON_OPTION(table_args),
    { 0 },
};

RUNS(table_build, table_args)
RUNS(table_scan, table_args)
RUNS(table_compact, table_args)
RUNS(table_get, table_args)
RUNS(table_stat, table_args)
RUNS(table_verify, table_args)

static const struct verb table_verbs[] = {
    { .name = "build",
      .operands = "-o FILE [INPUT]...",
      .summary = "make a table of lines of keys and values",
      .about =
          "build makes a table of lines KEY, a tab, VALUE; a line without a "
          "tab says that the key is deleted. Of equal keys the last one "
          "counts. With -o DIR/ the table becomes the newest of that folder: "
          "00000001.blt, 00000002.blt and so on. A table is there in whole or "
          "not at all, even after a power cut, and two processes may add "
          "tables at once. The input is sorted in memory.",
      .options = table_build_options,
      .reports = TABLE_ROWS,
      .run = run_table_build },
    { .name = "get",
      .operands = "DIR [KEY]...",
      .summary = "print the values of keys",
      .about = "get DIR KEY... prints KEY, a tab, VALUE for each key that has "
               "a value, from a folder or a single table. The exit status is 0 "
               "if any had, 1 if none, 2 after an error; a damaged block is an "
               "error, never \"absent\". With --json, all keys are told, each "
               "with the tables that were considered for it.",
      .options = table_get_options,
      .reports = REPORTS({ "", table_answer_fields, LINES }),
      .run = run_table_get },
    { .name = "scan",
      .operands = "DIR",
      .summary = "print keys and values in order, all or a range of them",
      .about = "scan prints KEY, a tab, VALUE for every key that has a value, "
               "in the order of the keys as bytes, each with its newest value; "
               "--from, --to and --prefix choose a range, of which only the "
               "blocks are read. The exit status is 0 if there was any, 1 if "
               "none, 2 after an error.",
      .options = table_scan_options,
      .reports = REPORTS({ "", table_pair_fields, LINES }),
      .run = run_table_scan },
    { .name = "compact",
      .operands = "DIR",
      .summary = "make one table of several",
      .about =
          "compact writes a table with the newest record of each key, which "
          "becomes the newest of the folder, and removes those that it was "
          "made of, the oldest first. Deleted keys are left out unless an "
          "older table that stays has a value for them. Readers go on, and the "
          "answers are the same at every moment, after a power cut too; other "
          "processes that want to add tables wait.",
      .options = table_compact_options,
      .reports = REPORTS({ "", table_compacted_fields, ONE }),
      .run = run_table_compact },
    { .name = "stat",
      .operands = "DIR...",
      .summary = "what tables are, without reading their blocks",
      .about = "stat says what tables are, without reading their blocks. "
               "verify reads everything: checksums, the order of keys, counts, "
               "and that the filter knows each key.",
      .options = table_stat_options,
      .reports = TABLE_ROWS,
      .run = run_table_stat },
    { .name = "verify",
      .operands = "DIR...",
      .summary = "read everything, and compare it with its checksums",
      .options = table_verify_options,
      .reports = TABLE_ROWS,
      .run = run_table_verify },
    { 0 },
};

static const struct example table_examples[] = {
    { "bloomery table build -o db/ main.tsv", "the first table of a folder" },
    { "bloomery table build -o db/ changed.tsv",
      "and what was changed since, on top of it" },
    { "bloomery table get --stat db alice bob", "the newest values" },
    { "bloomery table scan --prefix user: db", "keys in order, with values" },
    { "bloomery table compact db", "one table of all, without what is hidden" },
    { "bloomery table verify db", "compare everything with its checksums" },
    { 0 },
};

const struct command cmd_table = {
    .name = "table",
    .summary = "sorted tables of keys and values, with a filter for each",
    .about =
        "A table is an immutable file of sorted keys with values, a checksum "
        "for each block of them, and a filter of its keys. A folder of tables "
        "is asked from the newest to the oldest, and the first one that has a "
        "key decides: later tables change earlier ones, and a large table with "
        "a small one of changes on top, a differential file, is the case of "
        "two. Their filters spare reading the tables that do not have the "
        "key.",
    .verbs = table_verbs,
    .examples = table_examples,
};

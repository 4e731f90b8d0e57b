/*
 * cmd_table.c - sorted tables with filters: bloomery table VERB ...
 */
#include "apps/table/table.h"
#include "cli/rows.h"

static struct table_args table_args;

static const struct opt table_options[] = {
    { "output", 'o', OPT_TEXT, &table_args.output, "FILE",
      "build: the table, or a folder, in which it becomes the newest one; "
      "FILE/ "
      "is a folder that is made if it is not there" },
    { "file", 'f', OPT_LIST, &table_args.keys.files, "FILE",
      "get: read keys from FILE; may be repeated; - is standard input" },
    { "delimiter", 'd', OPT_TEXT, &table_args.delimiter, "C",
      "build: the character between key and value, instead of a tab; the first "
      "one in a line counts" },
    FLAG("hex", 0, table_args.hex,
         "values are hexadecimal digits, in the input of build and in what get "
         "prints, so that they can be any bytes"),
    FLAG("null", '0', table_args.keys.nul,
         "lines end at NUL bytes, not at newlines; printed ones too"),
    { "fpr", 'p', OPT_RATE, &table_args.sizing.fpr, "P",
      "build: rate of false positives of the filter; 1 % if not given" },
    { "kind", 'k', OPT_TEXT, &table_args.sizing.kind, "KIND",
      "build: kind of filter; see bloomery kinds" },
    { "option", 'O', OPT_LIST, &table_args.sizing.options, "NAME=VALUE",
      "build: an option of the kind; may be repeated" },
    FLAG("stat", 0, table_args.stat,
         "get: say on standard error how many tables were spared and read"),
    BINARY_OPTION,
    WAIT_OPTION,
    QUIET_OPTION("print nothing but values and errors"),
    JSON_OPTION(table_args),
    { 0 },
};

static const struct old_verb table_verbs[] = {
    { "build", "-o FILE [INPUT]...", 0,
      " output delimiter hex null fpr kind option binary wait quiet json " },
    { "get", "DIR [KEY]...", 1, " file hex null stat binary quiet json " },
    { "stat", "DIR...", 1, " quiet json " },
    { "verify", "DIR...", 1, " quiet json " },
};

static int table_run(struct list *operands)
{
    static int (*const run[])(const struct table_args *,
                              const struct list *) = { table_build, table_get,
                                                       table_stat,
                                                       table_verify };
    const size_t n = sizeof table_verbs / sizeof table_verbs[0];
    struct list rest;
    const size_t i = verb_find(&cmd_table, table_verbs, n, operands, &rest);
    return i == n ? TROUBLE : run[i](&table_args, &rest);
}

static const struct example table_examples[] = {
    { "bloomery table build -o db/ main.tsv", "the first table of a folder" },
    { "bloomery table build -o db/ changed.tsv",
      "and what was changed since, on top of it" },
    { "bloomery table get --stat db alice bob", "the newest values" },
    { "bloomery table verify db", "compare everything with its checksums" },
    { 0 },
};

const struct command cmd_table = {
    .name = "table",
    .usage = "VERB [OPTION]... [OPERAND]...",
    .old_verbs = "build get stat verify",
    .summary = "sorted tables of keys and values, with a filter for each",
    .about =
        "A table is an immutable file of sorted keys with values, a checksum "
        "for each block of them, and a filter of its keys. A folder of tables "
        "is asked from the newest to the oldest, and the first one that has a "
        "key decides: later tables change earlier ones, and a large table with "
        "a small one of changes on top, a differential file, is the case of "
        "two. Their filters spare reading the tables that do not have the "
        "key.\n\n"
        "build makes a table of lines KEY, a tab, VALUE; a line without a tab "
        "says that the key is deleted. Of equal keys the last one counts. With "
        "-o DIR/ the table becomes the newest of that folder: 00000001.blt, "
        "00000002.blt and so on. A table is there in whole or not at all, "
        "even after a power cut, and two processes may add tables at once. The "
        "input is sorted in memory.\n\n"
        "get DIR KEY... prints KEY, a tab, VALUE for each key that has a "
        "value, from a folder or a single table. The exit status is 0 if any "
        "had, 1 if none, 2 after an error; a damaged block is an error, never "
        "\"absent\". With --json, all keys are told, each with the tables that "
        "were considered for it.\n\n"
        "stat says what tables are, without reading their blocks. verify reads "
        "everything: checksums, the order of keys, counts, and that the filter "
        "knows each key.",
    .options = table_options,
    .examples = table_examples,
    .reports = REPORTS({ "of build, stat and verify", table_row_fields, LINES },
                       { "of get", table_answer_fields, LINES }),
    .run = table_run,
};

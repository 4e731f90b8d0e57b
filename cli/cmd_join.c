/*
 * cmd_join.c - two files joined by a key
 */
#include "apps/join/join.h"
#include "cli/program.h"
#include "cli/rows.h"

static struct join_args join_args;

static int join_command(struct list *operands)
{
    if ((join_args.remote || join_args.serve) && !join_reaches())
        return program_run("net");
    return join(&join_args, operands);
}

static const struct opt join_options[] = {
    { "type", 0, OPT_CHOICE, &join_args.type, "inner|left|semi|anti",
      "inner, if not given: pairs of rows with the same key; left: and rows of "
      "LEFT without a partner; semi: rows of LEFT with a partner; anti: those "
      "without" },
    SELECT_OPTIONS(join_args.keys),
    { "right", 0, OPT_TEXT, &join_args.right_key, "KEY",
      "the column, field, path or expression of the key in RIGHT, where it is "
      "another than in LEFT" },
    NORMAL_OPTIONS(join_args.keys),
    { "output", 'o', OPT_TEXT, &join_args.output, "FILE",
      "write the result to FILE, which is replaced when all of it is there; - "
      "is standard output" },
    { "memory", 'm', OPT_POSITIVE, &join_args.memory, "SIZE",
      "memory for rows, 1 MB at least; 1 GiB if not given" },
    { "spill", 0, OPT_TEXT, &join_args.spill, "DIR",
      "folder for a temporary file with rows that do not fit into --memory; "
      "TMPDIR or /tmp if not given" },
    { "remote", 0, OPT_TEXT, &join_args.remote, "CMD",
      "RIGHT is what this command has, run by sh: ssh HOST bloomery join "
      "--serve ... FILE" },
    FLAG("serve", 0, join_args.serve,
         "be that command: read a filter from standard input, and print the "
         "rows of RIGHT that may have a partner"),
    { "fpr", 'p', OPT_RATE, &join_args.sizing.fpr, "P",
      "share of rows without a partner that the filter lets through: 1%, "
      "0.001; 1 % if not given" },
    { "kind", 'k', OPT_TEXT, &join_args.sizing.kind, "KIND",
      "kind of filter; see bloomery kinds" },
    { "option", 'O', OPT_LIST, &join_args.sizing.options, "NAME=VALUE",
      "an option of the kind; may be repeated" },
    FLAG("null", '0', join_args.keys.nul,
         "lines end at NUL bytes, not at newlines; printed ones too"),
    OPTION("key-file", 'K', OPT_TEXT, &join_args.keys.key_file, "FILE",
           "hash with the secret in FILE, 16 raw bytes, or 32 or 64 "
           "hexadecimal digits, if somebody may choose keys to slow it down; "
           "with --remote and --serve it also seals what they say to each "
           "other"),
    BINARY_OPTION,
    THREADS_OPTION(join_args.threads),
    WAIT_OPTION,
    QUIET_OPTION("print only the rows: no report at the end, no warnings"),
    FLAG("json", 0, join_args.json,
         "report at the end as JSON, on standard error"),
    { 0 },
};

static const struct example join_examples[] = {
    { "bloomery join --csv id people.csv orders.csv > both.csv",
      "people with their orders" },
    { "bloomery join --csv id --right person --type left people.csv "
      "orders.csv.gz",
      "also people without any" },
    { "bloomery join --type anti --field 1 today.tsv yesterday.tsv",
      "rows whose first field is new" },
    { "bloomery join --jsonl id users.jsonl --remote 'ssh db bloomery "
      "join --serve --jsonl uid log'",
      "rows that match, from another machine" },
    { 0 },
};

const struct command cmd_join = {
    .name = "join",
    .usage = "[OPTION]... LEFT RIGHT",
    .summary = "join two files by a key, dropping rows early with a filter",
    .about =
        "Prints the rows of LEFT and RIGHT that have the same key, one row for "
        "each pair. The files need not be sorted. The result is that of an "
        "exact join, in the order of LEFT, and for one row of it in the order "
        "of RIGHT; neither memory nor threads change it. A Bloom filter of the "
        "keys of the smaller file drops most rows of the larger one that have "
        "no partner before they are held in memory, written to a temporary "
        "file or sent.\n\n" SELECT_ABOUT
        " Both files have one format, and --right names the key of RIGHT where "
        "it is called otherwise. Without any of these options the key is the "
        "whole line.\n\n"
        "A row of the result is the row of LEFT and, behind it, the fields of "
        "RIGHT but the key; where a row of LEFT has no partner (--type left), "
        "these are empty. Fields keep their quotes. CSV gets a header, in "
        "which a name that LEFT has too gets _right behind it. Of JSON lines "
        "it is {\"left\":ROW,\"right\":ROW}, with null for a missing one. "
        "--type semi and anti print rows of LEFT as they are.\n\n"
        "With --remote, RIGHT is on another machine. LEFT's filter is sent to "
        "the command, which is bloomery join --serve there, with options of "
        "its own, and only rows that pass come back; the report says how many "
        "bytes went both ways, and how many all rows would have taken. A "
        "command that stops early or sends something else makes the join fail. "
        "LEFT is read twice; if it changes in between, the status is 2.\n\n"
        "What does not fit into --memory goes to a temporary file without a "
        "name, which is gone when the command ends, however it does. The "
        "filter is not part of --memory; it takes about 10 bits per key at "
        "1 %. With --serve, --memory is what the filter that comes may "
        "take.\n\n"
        "The exit status is 0, and 2 after an error.",
    .options = join_options,
    .examples = join_examples,
    .reports = REPORTS({ "on standard error", join_fields, ONE }),
    .run = join_command,
};

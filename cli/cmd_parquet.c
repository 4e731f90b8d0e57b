/*
 * cmd_parquet.c - filters in Parquet files: bloomery parquet VERB ...
 */
#include "apps/parquet/parquet_verbs.h"
#include "cli/program.h"
#include "cli/rows.h"

static struct parquet_args parquet_args;

#define PARQUET_JSON FLAG("json", 0, parquet_args.json, "print JSON")

static const struct opt parquet_info_options[] = {
    PARQUET_JSON,
    { 0 },
};

static const struct opt parquet_has_options[] = {
    { "column", 0, OPT_LIST, &parquet_args.columns, "NAME",
      "the column to query" },
    FILE_OPTION(parquet_args.files, "values"),
    NULL_OPTION(parquet_args.nul, "values"),
    BINARY_OPTION,
    QUIET_OPTION(
        "print nothing but errors; stop at the first value that may be there"),
    FLAG("json", 0, parquet_args.json,
         "print JSON; one object per value, also for those that are absent"),
    { 0 },
};

static const struct opt parquet_add_options[] = {
    { "column", 0, OPT_LIST, &parquet_args.columns, "NAME",
      "a column that gets filters, may be repeated; the parts of nested names "
      "are separated by dots" },
    { "output", 'o', OPT_TEXT, &parquet_args.output, "FILE",
      "write the file with filters to OUT; - is standard output" },
    { "fpr", 'p', OPT_RATE, &parquet_args.fpr, "P",
      "highest rate of false positives; 1 % if not given" },
    FLAG("replace", 0, parquet_args.replace,
         "replace the filters of a column that has some"),
    WAIT_OPTION,
    QUIET_ERRORS,
    PARQUET_JSON,
    { 0 },
};

RUNS(parquet_verb_info, parquet_args)
RUNS(parquet_verb_has, parquet_args)
RUNS_IN("parquet", parquet_verb_add, parquet_args)

static const struct verb parquet_verbs[] = {
    { .name = "info",
      .operands = "FILE...",
      .summary = "list columns, and which have filters",
      .about =
          "info FILE... lists the columns with their types, and for those with "
          "filters their size, about how many different values they hold, and "
          "their rate of false positives, the mean over row groups.",
      .options = parquet_info_options,
      .reports = REPORTS({ "", parquet_info_fields, LINES }),
      .run = run_parquet_verb_info },
    { .name = "has",
      .operands = "FILE --column NAME [VALUE]...",
      .summary = "the row groups that may have a value",
      .about = "has FILE --column C [VALUE]... prints each value that may be "
               "in the column, a tab, and the numbers of the row groups that "
               "may have it, from 0. Values come as arguments, with -f, or on "
               "standard input, and are written as the type of the column "
               "requires: 2020-01-31, 2020-01-31 12:00:00.5, 1.50, a UUID, "
               "hexadecimal digits for bytes of a fixed length. A value that "
               "does not fit the type is an error. The exit status is 0 if one "
               "may be there, 1 if none is, and 2 after an error.",
      .options = parquet_has_options,
      .reports = REPORTS({ "", parquet_found_fields, LINES }),
      .run = run_parquet_verb_has },
    { .name = "add",
      .operands = "FILE -o OUT --column NAME...",
      .summary = "write the file again, with filters",
      .about =
          "add FILE -o OUT --column C... reads the columns and writes OUT, "
          "which is FILE with a filter for each of them in every row group. "
          "Data are copied as they are, and in the footer only the positions "
          "of the filters change. A filter is as small as --fpr allows; its "
          "size in bytes is a power of two, at most 128 MiB. All types but "
          "BOOLEAN are read, nested columns too; PLAIN, dictionary, DELTA and "
          "BYTE_STREAM_SPLIT encodings; pages that are UNCOMPRESSED, SNAPPY, "
          "GZIP or ZSTD. Anything else is refused, and so is a FILE that "
          "changes meanwhile; then nothing is written.",
      .options = parquet_add_options,
      .reports = REPORTS({ "", parquet_adding_fields, ONE }),
      .run = run_parquet_verb_add },
    { 0 },
};

static const struct example parquet_examples[] = {
    { "bloomery parquet info visits.parquet",
      "list columns, and which have filters" },
    { "bloomery parquet add visits.parquet -o fast.parquet --column url "
      "--column user",
      "give two columns filters" },
    { "bloomery parquet has fast.parquet --column url http://example.org/",
      "the row groups that may have it" },
    { 0 },
};

const struct command cmd_parquet = {
    .name = "parquet",
    .summary = "add filters to columns of Parquet files, and query them",
    .about =
        "A Parquet file may hold a Bloom filter for each column of each row "
        "group. DuckDB, Spark, Arrow and others skip the groups that a filter "
        "rules out.",
    .verbs = parquet_verbs,
    .examples = parquet_examples,
};

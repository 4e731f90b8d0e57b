/*
 * cmd_parquet.c - filters in Parquet files: bloomery parquet VERB ...
 */
#include "apps/parquet/parquet_verbs.h"
#include "cli/rows.h"

static struct parquet_args parquet_args;

static const struct opt parquet_options[] = {
    { "column", 0, OPT_LIST, &parquet_args.columns, "NAME",
      "has: the column to query; add: a column that gets filters, may be "
      "repeated; the parts of nested names are separated by dots" },
    { "output", 'o', OPT_TEXT, &parquet_args.output, "FILE",
      "add: write the file with filters to OUT; - is standard output" },
    { "fpr", 'p', OPT_RATE, &parquet_args.fpr, "P",
      "add: highest rate of false positives; 1 % if not given" },
    FLAG("replace", 0, parquet_args.replace,
         "add: replace the filters of a column that has some"),
    { "file", 'f', OPT_LIST, &parquet_args.files, "FILE",
      "has: read values from FILE; may be repeated; - is standard input" },
    FLAG("null", '0', parquet_args.nul,
         "has: values end at NUL bytes, not at newlines; printed ones too"),
    BINARY_OPTION,
    WAIT_OPTION,
    QUIET_OPTION("print nothing but errors; has: stop at the first value that "
                 "may be there"),
    FLAG("json", 0, parquet_args.json,
         "print JSON; has: one object per value, also for those that are "
         "absent"),
    { 0 },
};

static const struct old_verb parquet_verbs[] = {
    { "info", "FILE...", 1, " json " },
    { "has", "FILE --column C [VALUE]...", 1,
      " column file null binary quiet json " },
    { "add", "FILE -o OUT --column C...", 1,
      " column output wait fpr replace quiet json " },
};
static int (*const parquet_functions[])(const struct parquet_args *,
                                        const struct list *) = {
    parquet_verb_info,
    parquet_verb_has,
    parquet_verb_add,
};
#define NVERBS (sizeof parquet_verbs / sizeof parquet_verbs[0])

static int parquet_run(struct list *operands)
{
    struct list rest;
    const size_t i =
        verb_find(&cmd_parquet, parquet_verbs, NVERBS, operands, &rest);
    return i == NVERBS ? TROUBLE : parquet_functions[i](&parquet_args, &rest);
}

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
    .old_verbs = "info has add",
    .usage = "VERB FILE [OPERAND]... [OPTION]...",
    .summary = "add filters to columns of Parquet files, and query them",
    .about =
        "A Parquet file may hold a Bloom filter for each column of each row "
        "group. DuckDB, Spark, Arrow and others skip the groups that a filter "
        "rules out.\n\n"
        "info FILE... lists the columns with their types, and for those with "
        "filters their size, about how many different values they hold, and "
        "their rate of false positives, the mean over row groups.\n\n"
        "has FILE --column C [VALUE]... prints each value that may be in the "
        "column, a tab, and the numbers of the row groups that may have it, "
        "from 0. Values come as arguments, with -f, or on standard input, and "
        "are written as the type of the column requires: 2020-01-31, "
        "2020-01-31 12:00:00.5, 1.50, a UUID, hexadecimal digits for bytes of "
        "a fixed length. A value that does not fit the type is an error. The "
        "exit status is 0 if one may be there, 1 if none is, and 2 after an "
        "error.\n\n"
        "add FILE -o OUT --column C... reads the columns and writes OUT, which "
        "is FILE with a filter for each of them in every row group. Data are "
        "copied as they are, and in the footer only the positions of the "
        "filters change. A filter is as small as --fpr allows; its size in "
        "bytes is a power of two, at most 128 MiB. All types but BOOLEAN are "
        "read, nested columns too; PLAIN, dictionary, DELTA and "
        "BYTE_STREAM_SPLIT encodings; pages that are UNCOMPRESSED, SNAPPY, "
        "GZIP or ZSTD. Anything else is refused, and so is a FILE that changes "
        "meanwhile; then nothing is written.",
    .options = parquet_options,
    .examples = parquet_examples,
    .reports = parquet_reports,
    .run = parquet_run,
};

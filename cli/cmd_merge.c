/*
 * cmd_merge.c - the union of filters: a row for combine.c
 */
#include "cli/combine.h"
#include "cli/rows.h"

static struct {
    const char *output;
    bool json;
} merge_args;

static int merge_run(struct list *operands)
{
    return combine(merge_args.output, operands, merge_args.json, BLY_UNION);
}

static const struct opt merge_options[] = {
    { "output", 'o', OPT_TEXT, &merge_args.output, "FILE",
      "write the result to FILE, which may be one of the inputs; - is standard "
      "output" },
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(merge_args),
    { 0 },
};

static const struct example merge_examples[] = {
    { "bloomery merge -o week.bly mon.bly tue.bly wed.bly",
      "the keys of three days" },
    { "bloomery merge -o all.bly all.bly new.bly",
      "merge into the first; keys added to it meanwhile are not lost" },
    { 0 },
};

const struct command cmd_merge = {
    .name = "merge",
    .usage = "-o FILE [OPTION]... FILTER FILTER...",
    .summary = "make one filter from the keys of several",
    .about = "Writes the union of two or more filters that agree in kind, "
             "shape and hash. For kinds made of bits, this is exactly the "
             "filter that all keys together would give.\n\n"
             "The capacity stays that of one filter: build filters that you "
             "want to merge with --items for all keys together.\n\n"
             "Each file is read once, so it may be a pipe, and - is standard "
             "input. For kinds that are merged cell by cell, only one filter "
             "is in memory, however many there are. Nothing is written unless "
             "all of them are sound.\n\n"
             "FILE may be one of the filters: it is then changed under its "
             "lock, and keeps what others add to it meanwhile.",
    .options = merge_options,
    .examples = merge_examples,
    .reports = REPORTS({ "", combined_fields, ONE }),
    .run = merge_run,
};

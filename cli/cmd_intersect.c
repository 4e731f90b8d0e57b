/*
 * cmd_intersect.c - the intersection of filters: a row for combine.c
 */
#include "cli/combine.h"
#include "cli/rows.h"

static struct {
    const char *output;
    bool json;
} intersect_args;

static int intersect_run(struct list *operands)
{
    return combine(intersect_args.output, operands, intersect_args.json,
                   BLY_INTERSECTION);
}

static const struct opt intersect_options[] = {
    { "output", 'o', OPT_TEXT, &intersect_args.output, "FILE",
      "write the result to FILE, which may be one of the inputs; - is standard "
      "output" },
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(intersect_args),
    { 0 },
};

static const struct example intersect_examples[] = {
    { "bloomery intersect -o both.bly mon.bly tue.bly",
      "the keys of both days, and some more" },
    { 0 },
};

const struct command cmd_intersect = {
    .name = "intersect",
    .usage = "-o FILE [OPTION]... FILTER FILTER...",
    .summary = "make a filter of the keys that several filters have in common",
    .about =
        "Writes the intersection of two or more filters that agree in kind, "
        "shape and hash. It says maybe to every key that is in all of them, "
        "and to "
        "some more: its rate lies between that of the filters and that of a "
        "filter built from the common keys alone.\n\n"
        "Each file is read once, as by merge. FILE may be one of the filters: "
        "it is then changed under its lock.",
    .options = intersect_options,
    .examples = intersect_examples,
    .reports = REPORTS({ "", combined_fields, ONE }),
    .run = intersect_run,
};

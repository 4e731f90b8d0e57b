/*
 * cmd_isect.c - lines that all of several lists have: bloomery isect
 */
#include "apps/sync/isect.h"
#include "cli/program.h"
#include "cli/rows.h"

static struct isect_args isect_args;

RUNS_IN("net", isect, isect_args)

static const struct opt isect_options[] = {
    FLAG("count", 'c', isect_args.count,
         "print only how many lines all lists have"),
    FLAG("null", '0', isect_args.nul,
         "lines end at NUL bytes, not at newlines; printed ones too"),
    OPTION("key-file", 'K', OPT_TEXT, &isect_args.key_file, "FILE",
           "the secret of lists that are served with one, which seals what is "
           "said: 16 raw bytes, or 32 or 64 hexadecimal digits"),
    { "timeout", 0, OPT_BETWEEN(POSITIVE, 1, 86400), &isect_args.timeout,
      "SECONDS", "how long another machine may be silent; 60 if not given" },
    THREADS_OPTION(isect_args.threads),
    QUIET_OPTION("print nothing but errors"),
    JSON_OPTION(isect_args),
    { 0 },
};

static const struct example isect_examples[] = {
    { "bloomery isect bloom.ids filter.ids", "ids that both lists have" },
    { "bloomery sync serve -K secret --listen 0.0.0.0:3130 filter.ids",
      "on another machine: serve a list to those who have the secret" },
    { "bloomery isect -K secret bloom.ids there:3130 elsewhere:3130",
      "ids that all three have, with filters instead of lists on the way" },
    { 0 },
};

const struct command cmd_isect = {
    .name = "isect",
    .usage = "LIST LIST... [OPTION]...",
    .summary = "intersect lists on several machines, with filters on the way",
    .about =
        "Prints the lines that all lists have. A LIST is a file, or HOST:PORT "
        "of a bloomery sync serve that has one. The shortest list sends a "
        "filter to the next one, which sends a filter of what passed to the "
        "one after it, and so on; the last one's answer is confirmed by all "
        "others, so that the result is exact, but for two lines with one hash "
        "of 64 bits. Filters have the size that makes filter and answer "
        "together shortest. The report says what went from list to list, and "
        "what the shortest list would have taken.\n\n"
        "The exit status is 0 if there are such lines, 1 if there are none, "
        "and 2 after an error.",
    .options = isect_options,
    .examples = isect_examples,
    .reports = REPORTS({ "", isect_fields, ONE }),
    .run = run_isect,
};

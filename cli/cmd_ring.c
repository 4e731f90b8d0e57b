/*
 * cmd_ring.c - who holds which key: bloomery ring VERB ...
 */
#include "apps/ring/placing.h"
#include "workbench/ring_show.h"
#include "cli/program.h"
#include "cli/rows.h"
#include "workbench/ring_picture.h"

static struct placing_args placing_args;
static struct ring_show show_args;

static const struct opt ring_show_options[] = {
    { "at", 0, OPT_LIST, &show_args.node.at, "ADDRESS:PORT",
      "a member of a live ring (bloomery node), whose members are shown; may "
      "be repeated" },
    { "key-file", 'K', OPT_TEXT, &show_args.node.key, "FILE",
      "the secret of that ring" },
    { "ring", 0, OPT_TEXT, &show_args.node.name, "NAME", "its name" },
    { "successors", 0, OPT_POSITIVE, &show_args.node.r, "N",
      "the length of its lists" },
    { "copies", 0, OPT_POSITIVE, &show_args.node.copies, "N",
      "how many copies it keeps" },
    { "bits", 'b', OPT_POSITIVE, &show_args.bits, "B",
      "of ids, 3 to 64; 6 if not given; from 17 on ids are hexadecimal" },
    { "from", 0, OPT_TEXT, &show_args.from, "N",
      "the member whose fingers are drawn, and who looks up" },
    { "find", 0, OPT_TEXT, &show_args.find, "N",
      "look this id up, from the first member if --from is not given" },
    { "plot", 0, OPT_TEXT, &show_args.plot, "FILE.svg",
      "also draw the ring into this file" },
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(show_args),
    { 0 },
};

static const struct opt ring_place_options[] = {
    { "members", 0, OPT_POSITIVE, &placing_args.members, "N",
      "members; 10 if not given" },
    { "keys", 0, OPT_POSITIVE, &placing_args.keys, "N",
      "keys, if no files of keys are given; 1 million if not given" },
    { "points", 0, OPT_POSITIVE, &placing_args.points, "N",
      "points per member in the last line of ring and in that of bounded; 128 "
      "if not given" },
    { "slack", 0, OPT_RATE, &placing_args.slack, "C",
      "how much more than its share a member of bounded may have; 0.25 if not "
      "given" },
    { "seed", 's', OPT_COUNT, &placing_args.seed, "S", "seed of the hashes" },
    BINARY_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(placing_args),
    { 0 },
};

/* The members of a live ring need what speaks to them. */
ELSEWHERE(ring_live);
static int run_ring_show(struct list *operands)
{
    return show_args.node.at.n && !ring_live ? program_run("net")
                                             : ring_show(&show_args, operands);
}
RUNS(ring_place, placing_args)

static const struct verb ring_verbs[] = {
    { .name = "show",
      .operands = "[ID]...",
      .summary = "draw a ring, and lookups on it",
      .about =
          "show draws a Chord ring, in the terminal and as SVG: ids go round "
          "clockwise from the top, and each belongs to the first member at or "
          "after it. The members are those of the line, of a live ring, or the "
          "seven of the worked example. --from draws the fingers of a member, "
          "and --find the way of a lookup by fingers alone; bloomery explain "
          "--ring tells it in words.",
      .options = ring_show_options,
      .reports = REPORTS({ "", ring_model_fields, ONE }),
      .run = run_ring_show },
    { .name = "place",
      .operands = "[INPUT]...",
      .summary = "the same keys on members by every rule",
      .about =
          "place puts the same keys on the same members by every rule of "
          "bloomery/place.h, and by hash modulo n for comparison: how much the "
          "fullest member has over the mean, which share of keys moves when a "
          "member comes or goes, how much of that was needless, and what a "
          "lookup costs. Members of jump and modulo are numbers, so that the "
          "last one goes; of the others the first one does.",
      .options = ring_place_options,
      .reports = REPORTS({ "", placing_fields, ONE }),
      .run = run_ring_place },
    { 0 },
};

static const struct example ring_examples[] = {
    { "bloomery ring show --from 3 --find 45 --plot ring.svg",
      "the ring of the textbook, and a lookup on it" },
    { "bloomery ring show --at 127.0.0.1:7001", "a ring of bloomery node" },
    { "bloomery ring place", "a million keys on ten members, by every rule" },
    { "bloomery ring place --members 100 urls.txt", "your keys on a hundred" },
    { 0 },
};

const struct command cmd_ring = {
    .name = "ring",
    .summary = "which member holds which key, and what moves when they change",
    .about = "",
    .verbs = ring_verbs,
    .examples = ring_examples,
};

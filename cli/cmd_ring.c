/*
 * cmd_ring.c - who holds which key: bloomery ring VERB ...
 */
#include "apps/ring/placing.h"
#include "workbench/ring_show.h"
#include "cli/rows.h"
#include "workbench/ring_picture.h"

static struct {
    struct placing_args place;
    struct ring_show show;
    bool json;
} ring_args;

static const struct opt ring_options[] = {
    { "at", 0, OPT_LIST, &ring_args.show.node.at, "ADDRESS:PORT",
      "show: a member of a live ring (bloomery node), whose members are shown; "
      "may be repeated" },
    { "key-file", 'K', OPT_TEXT, &ring_args.show.node.key, "FILE",
      "show: the secret of that ring" },
    { "ring", 0, OPT_TEXT, &ring_args.show.node.name, "NAME",
      "show: its name" },
    { "successors", 0, OPT_POSITIVE, &ring_args.show.node.r, "N",
      "show: the length of its lists" },
    { "copies", 0, OPT_POSITIVE, &ring_args.show.node.copies, "N",
      "show: how many copies it keeps" },
    { "bits", 'b', OPT_POSITIVE, &ring_args.show.bits, "B",
      "show: of ids, 3 to 64; 6 if not given; from 17 on ids are hexadecimal" },
    { "from", 0, OPT_TEXT, &ring_args.show.from, "N",
      "show: the member whose fingers are drawn, and who looks up" },
    { "find", 0, OPT_TEXT, &ring_args.show.find, "N",
      "show: look this id up, from the first member if --from is not given" },
    { "plot", 0, OPT_TEXT, &ring_args.show.plot, "FILE.svg",
      "show: also draw the ring into this file" },
    { "members", 0, OPT_POSITIVE, &ring_args.place.members, "N",
      "place: members; 10 if not given" },
    { "keys", 0, OPT_POSITIVE, &ring_args.place.keys, "N",
      "place: keys, if no files of keys are given; 1 million if not given" },
    { "points", 0, OPT_POSITIVE, &ring_args.place.points, "N",
      "place: points per member in the last line of ring and in that of "
      "bounded; 128 if not given" },
    { "slack", 0, OPT_RATE, &ring_args.place.slack, "C",
      "place: how much more than its share a member of bounded may have; "
      "0.25 if not given" },
    { "seed", 's', OPT_COUNT, &ring_args.place.seed, "S",
      "place: seed of the hashes" },
    BINARY_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(ring_args),
    { 0 },
};

static const struct old_verb ring_verbs[] = {
    { "show", "[ID]...", 0,
      " at key-file ring successors copies bits from find plot quiet json " },
    { "place", "[INPUT]...", 0,
      " members keys points slack seed binary quiet json " },
};

static int ring_run(struct list *operands)
{
    const size_t n = sizeof ring_verbs / sizeof ring_verbs[0];
    struct list rest;
    const size_t i = verb_find(&cmd_ring, ring_verbs, n, operands, &rest);
    if (i == n)
        return TROUBLE;
    ring_args.place.json = ring_args.show.json = ring_args.json;
    if (i == 0)
        return ring_show(&ring_args.show, &rest);
    return ring_place(&ring_args.place, &rest);
}

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
    .usage = "VERB [OPTION]... [OPERAND]...",
    .old_verbs = "show place",
    .summary = "which member holds which key, and what moves when they change",
    .about =
        "show draws a Chord ring, in the terminal and as SVG: ids go round "
        "clockwise from the top, and each belongs to the first member at or "
        "after it. The members are those of the line, of a live ring, or the "
        "seven of the worked example. --from draws the fingers of a member, "
        "and --find the way of a lookup by fingers alone; bloomery explain "
        "--ring tells it in words.\n\n"
        "place puts the same keys on the same members by every rule of "
        "bloomery/place.h, and by hash modulo n for comparison: how much the "
        "fullest member has over the mean, which share of keys moves when a "
        "member comes or goes, how much of that was needless, and what a "
        "lookup costs. Members of jump and modulo are numbers, so that the "
        "last one goes; of the others the first one does.",
    .options = ring_options,
    .examples = ring_examples,
    .reports = REPORTS({ "of show", ring_model_fields, ONE },
                       { "of place", placing_fields, ONE }),
    .run = ring_run,
};

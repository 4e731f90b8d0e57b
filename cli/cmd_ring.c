/*
 * cmd_ring.c - who holds which key: bloomery ring VERB ...
 */
#include "apps/overlay/placing.h"
#include "cli/rows.h"

static struct {
    struct placing_args place;
} ring_args;

static const struct opt ring_options[] = {
    { "members", 'm', OPT_POSITIVE, &ring_args.place.members, "N",
      "place: members; 10 if not given" },
    { "keys", 'n', OPT_POSITIVE, &ring_args.place.keys, "N",
      "place: keys, if no files of keys are given; 1 million if not given" },
    { "points", 0, OPT_POSITIVE, &ring_args.place.points, "V",
      "place: points per member in the last line of ring and in that of "
      "bounded; 128 if not given" },
    { "slack", 'c', OPT_RATE, &ring_args.place.slack, "C",
      "place: how much more than its share a member of bounded may have; "
      "0.25 if not given" },
    { "seed", 's', OPT_COUNT, &ring_args.place.seed, "S",
      "place: seed of the hashes" },
    BINARY_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(ring_args.place),
    { 0 },
};

static const struct verb ring_verbs[] = {
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
    return ring_place(&ring_args.place, &rest);
}

static const struct example ring_examples[] = {
    { "bloomery ring place", "a million keys on ten members, by every rule" },
    { "bloomery ring place -m 100 urls.txt", "your keys on a hundred" },
    { 0 },
};

const struct command cmd_ring = {
    .name = "ring",
    .usage = "VERB [OPTION]... [OPERAND]...",
    .verbs = "place",
    .summary = "which member holds which key, and what moves when they change",
    .about =
        "place puts the same keys on the same members by every rule of "
        "bloomery/place.h, and by hash modulo n for comparison: how much the "
        "fullest member has over the mean, which share of keys moves when a "
        "member comes or goes, how much of that was needless, and what a "
        "lookup costs. Members of jump and modulo are numbers, so that the "
        "last one goes; of the others the first one does.",
    .options = ring_options,
    .examples = ring_examples,
    .reports = REPORTS({ "of place", placing_fields, ONE }),
    .run = ring_run,
};

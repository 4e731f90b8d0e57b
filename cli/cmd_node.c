/*
 * cmd_node.c - a ring of processes that keeps files: bloomery node VERB ...
 */
#include "apps/node/chord_files.h"
#include "cli/program.h"
#include "cli/rows.h"

static struct node_args node_args;

#define NODE_FILES REPORTS({ "", node_file_fields, LINES })

#define NODE_RING                                                            \
    OPTION("key-file", 'K', OPT_TEXT, &node_args.key, "FILE",                \
           "the secret of the ring, which node key makes: who lacks it can " \
           "neither "                                                        \
           "join nor ask"),                                                  \
        OPTION("ring", 0, OPT_TEXT, &node_args.name, "NAME",                 \
               "the ring's name; nodes of others are refused; \"ring\" if "  \
               "not given"),                                                 \
        OPTION("successors", 0, OPT_POSITIVE, &node_args.r, "N",             \
               "length of the list of successors, the same at all nodes; 8 " \
               "if not "                                                     \
               "given"),                                                     \
        OPTION(                                                              \
            "copies", 0, OPT_POSITIVE, &node_args.copies, "N",               \
            "copies of each record, the same at all nodes; 3 if not given"), \
        OPTION("patience", 0, OPT_POSITIVE, &node_args.patience, "MS",       \
               "milliseconds that an answer may take at least before its "   \
               "node counts "                                                \
               "as silent; 250 if not given")
#define NODE_AT                                              \
    OPTION("at", 0, OPT_LIST, &node_args.at, "ADDRESS:PORT", \
           "a member of the ring; may be repeated")

#define NODE_WAIT                                                              \
    OPTION("wait", 0, OPT_POSITIVE, &node_args.wait, "MS",                     \
           "how long to try before it is said that something cannot be done; " \
           "15000 if not given")

static const struct opt node_run_options[] = {
    { "listen", 0, OPT_TEXT, &node_args.listen, "ADDRESS:PORT",
      "where others reach this node; a free port of 127.0.0.1 if not given" },
    { "join", 'j', OPT_LIST, &node_args.join, "ADDRESS:PORT",
      "a member to join through; may be repeated; without it the node is the "
      "first of a new ring" },
    NODE_RING,
    { "least-copies", 0, OPT_POSITIVE, &node_args.least, "N",
      "copies that a put needs; without it 2, or 1 in a ring of one node" },
    { "vnodes", 0, OPT_POSITIVE, &node_args.vnodes, "N",
      "places on the ring of this process; 1 if not given" },
    { "period", 0, OPT_POSITIVE, &node_args.period, "MS",
      "milliseconds between rounds of maintenance; 1000 if not given" },
    { "exchange", 0, OPT_POSITIVE, &node_args.exchange, "MS",
      "milliseconds between comparisons of copies; 10000 if not given" },
    { "evict", 0, OPT_POSITIVE, &node_args.evict, "MS",
      "milliseconds of silence after which a node is left out of those who "
      "keep names, until it comes back; 8 periods if not given" },
    { "absence", 0, OPT_TEXT, &node_args.absence, "TIME",
      "how long the removal of a file is remembered; 30d if not given" },
    { "reclaim", 0, OPT_POSITIVE, &node_args.reclaim, "MS",
      "milliseconds after which a block that no file uses is dropped; an hour "
      "if not given" },
    QUIET_ERRORS,
    { 0 },
};

static const struct opt node_put_options[] = {
    NODE_AT,
    { "as", 0, OPT_TEXT, &node_args.as, "NAME",
      "the name on the ring, if it is not that of the file" },
    NODE_RING,
    NODE_WAIT,
    QUIET_ERRORS,
    JSON_OPTION(node_args),
    { 0 },
};

static const struct opt node_get_options[] = {
    NODE_AT,
    { "output", 'o', OPT_TEXT, &node_args.output, "FILE",
      "the file to write; standard output if not given" },
    NODE_RING,
    NODE_WAIT,
    QUIET_ERRORS,
    JSON_OPTION(node_args),
    { 0 },
};

static const struct opt node_client_options[] = {
    NODE_AT, NODE_RING, QUIET_ERRORS, JSON_OPTION(node_args), { 0 },
};

static const struct opt node_file_options[] = {
    NODE_AT, NODE_RING, NODE_WAIT, QUIET_ERRORS, JSON_OPTION(node_args), { 0 },
};

static const struct opt node_key_options[] = {
    QUIET_ERRORS,
    { 0 },
};

RUNS_IN("net", ring_node_run, node_args)
RUNS_IN("net", ring_node_put, node_args)
RUNS_IN("net", ring_node_get, node_args)
RUNS_IN("net", ring_node_rm, node_args)
RUNS_IN("net", ring_node_ls, node_args)

ELSEWHERE(ring_node_status);
ELSEWHERE(ring_node_leave);

/* The node is an operand, or that of --at. */
static int of_one(int (*run)(const struct node_args *, const struct list *),
                  const char *verb, const struct list *operands)
{
    const char *one = operand_or_at(verb, operands, &node_args.at);
    const struct list which = { &one, 1, 0 };
    if (one && !run)
        return program_run("net");
    return one ? run(&node_args, &which) : TROUBLE;
}

static int run_ring_node_status(struct list *operands)
{
    return of_one(ring_node_status, "node status", operands);
}

static int run_ring_node_leave(struct list *operands)
{
    return of_one(ring_node_leave, "node leave", operands);
}

RUNS_IN("net", ring_node_key, node_args)

static const struct verb node_verbs[] = {
    { .name = "run",
      .operands = "DIR",
      .summary = "be a member of a ring, until a signal",
      .about =
          "run makes this process a member of a Chord ring, with its records "
          "in the folder DIR, until SIGTERM or SIGINT, on which it hands its "
          "records over and leaves; a second signal ends it at once. Every "
          "record has copies on the next members, and copies that are lost "
          "with a node are made again by the others. A node that was killed "
          "may start again with its old folder or an empty one; give it "
          "--join, since what it knew of the ring is of the past.",
      .options = node_run_options,
      .run = run_ring_node_run },
    { .name = "put",
      .operands = "FILE...",
      .summary = "keep files",
      .about =
          "put cuts files into blocks and keeps them under their digests; get "
          "compares what it gets with them. Any member may be asked. put and "
          "rm are done when all nodes that keep the name have it on disk; they "
          "end with status 2 if that is not so, or not known. Nodes that keep "
          "names agree on a list of themselves by majority: half of them or "
          "fewer, cut off from the others, refuse. Blocks that no file uses "
          "any more are dropped after --reclaim.",
      .options = node_put_options,
      .reports = NODE_FILES,
      .run = run_ring_node_put },
    { .name = "get",
      .operands = "NAME",
      .summary = "get a file back",
      .about = "get, rm and ls end with status 1 if there is no such file, or "
               "none, and with 2 if that cannot be said now. status shows what "
               "a node knows, and leave makes it hand over and end.",
      .options = node_get_options,
      .run = run_ring_node_get },
    { .name = "rm",
      .operands = "NAME...",
      .summary = "remove files",
      .options = node_file_options,
      .run = run_ring_node_rm },
    { .name = "ls",
      .operands = "",
      .summary = "list files",
      .options = node_file_options,
      .reports = NODE_FILES,
      .run = run_ring_node_ls },
    { .name = "status",
      .operands = "[ADDRESS:PORT]",
      .summary = "what a node knows and holds",
      .options = node_client_options,
      .reports = REPORTS({ "", node_status_fields, ONE }),
      .run = run_ring_node_status },
    { .name = "leave",
      .operands = "[ADDRESS:PORT]",
      .summary = "make a node hand over and end",
      .options = node_client_options,
      .run = run_ring_node_leave },
    { .name = "key",
      .operands = "FILE",
      .summary = "make a secret",
      .options = node_key_options,
      .run = run_ring_node_key },
    { 0 },
};

static const struct example node_examples[] = {
    { "bloomery node run --listen 127.0.0.1:7001 store1 &",
      "the first of a ring" },
    { "bloomery node run --listen 127.0.0.1:7002 -j 127.0.0.1:7001 store2 &",
      "another one, that joins it" },
    { "bloomery node put --at 127.0.0.1:7001 thesis.pdf", "keep a file" },
    { "bloomery node get --at 127.0.0.1:7002 thesis.pdf -o copy.pdf",
      "and get it from anywhere" },
    { "bloomery node status 127.0.0.1:7001", "what a node knows and holds" },
    { 0 },
};

const struct command cmd_node = {
    .name = "node",
    .summary = "a ring of processes that keeps files (Chord)",
    .about = "key FILE makes a secret. With --key-file all connections are "
             "encrypted and authenticated with it (libsodium), and nobody "
             "without it can speak to a node.",
    .verbs = node_verbs,
    .examples = node_examples,
};

/*
 * cmd_node.c - a ring of processes that keeps files: bloomery node VERB ...
 */
#include "apps/node/chord_files.h"
#include "cli/rows.h"

static struct node_args node_args;

static const struct opt node_options[] = {
    { "listen", 0, OPT_TEXT, &node_args.listen, "ADDRESS:PORT",
      "run: where others reach this node; a free port of 127.0.0.1 if not "
      "given" },
    { "join", 'j', OPT_LIST, &node_args.join, "ADDRESS:PORT",
      "run: a member to join through; may be repeated; without it the node is "
      "the first of a new ring" },
    { "at", 0, OPT_LIST, &node_args.at, "ADDRESS:PORT",
      "put, get, rm, ls: a member of the ring; may be repeated" },
    { "as", 0, OPT_TEXT, &node_args.as, "NAME",
      "put: the name on the ring, if it is not that of the file" },
    { "output", 'o', OPT_TEXT, &node_args.output, "FILE",
      "get: the file to write; standard output if not given" },
    { "key-file", 'K', OPT_TEXT, &node_args.key, "FILE",
      "the secret of the ring, which node key makes: who lacks it can neither "
      "join nor ask" },
    { "ring", 0, OPT_TEXT, &node_args.name, "NAME",
      "the ring's name; nodes of others are refused; \"ring\" if not given" },
    { "successors", 0, OPT_POSITIVE, &node_args.r, "N",
      "length of the list of successors, the same at all nodes; 8 if not "
      "given" },
    { "copies", 0, OPT_POSITIVE, &node_args.copies, "N",
      "copies of each record, the same at all nodes; 3 if not given" },
    { "least-copies", 0, OPT_POSITIVE, &node_args.least, "N",
      "run: copies that a put needs; without it 2, or 1 in a ring of one "
      "node" },
    { "vnodes", 0, OPT_POSITIVE, &node_args.vnodes, "N",
      "run: places on the ring of this process; 1 if not given" },
    { "period", 0, OPT_POSITIVE, &node_args.period, "MS",
      "run: milliseconds between rounds of maintenance; 1000 if not given" },
    { "exchange", 0, OPT_POSITIVE, &node_args.exchange, "MS",
      "run: milliseconds between comparisons of copies; 10000 if not given" },
    { "evict", 0, OPT_POSITIVE, &node_args.evict, "MS",
      "run: milliseconds of silence after which a node is left out of those "
      "who keep names, until it comes back; 8 periods if not given" },
    { "absence", 0, OPT_TEXT, &node_args.absence, "TIME",
      "run: how long the removal of a file is remembered; 30d if not given" },
    { "reclaim", 0, OPT_POSITIVE, &node_args.reclaim, "MS",
      "run: milliseconds after which a block that no file uses is dropped; "
      "an hour if not given" },
    { "patience", 0, OPT_POSITIVE, &node_args.patience, "MS",
      "milliseconds that an answer may take at least before its node counts "
      "as silent; 250 if not given" },
    { "wait", 0, OPT_POSITIVE, &node_args.wait, "MS",
      "put, get, rm, ls: how long to try before it is said that something "
      "cannot be done; 15000 if not given" },
    QUIET_OPTION("print nothing but errors"),
    JSON_OPTION(node_args),
    { 0 },
};

#define NODE_ASKS " at key-file ring successors copies patience quiet json "
#define NODE_CLIENT NODE_ASKS "wait "

static const struct old_verb node_verbs[] = {
    { "run", "DIR", 1,
      " listen join key-file ring successors copies least-copies vnodes period "
      "exchange patience evict absence reclaim quiet " },
    { "put", "FILE...", 1, NODE_CLIENT "as " },
    { "get", "NAME", 1, NODE_CLIENT "output " },
    { "rm", "NAME...", 1, NODE_CLIENT },
    { "ls", "", 0, NODE_CLIENT },
    { "status", "HOST:PORT", 1, NODE_ASKS },
    { "leave", "HOST:PORT", 1, NODE_ASKS },
    { "key", "FILE", 1, " quiet " },
};

static int node_command_run(struct list *operands)
{
    static int (*const run[])(const struct node_args *, const struct list *) = {
        ring_node_run, ring_node_put,    ring_node_get,   ring_node_rm,
        ring_node_ls,  ring_node_status, ring_node_leave, ring_node_key
    };
    const size_t n = sizeof node_verbs / sizeof node_verbs[0];
    struct list rest;
    const size_t i = verb_find(&cmd_node, node_verbs, n, operands, &rest);
    return i == n ? TROUBLE : run[i](&node_args, &rest);
}

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
    .usage = "VERB [OPTION]... [OPERAND]...",
    .old_verbs = "run put get rm ls status leave key",
    .summary = "a ring of processes that keeps files (Chord)",
    .about =
        "run makes this process a member of a Chord ring, with its records in "
        "the folder DIR, until SIGTERM or SIGINT, on which it hands its "
        "records over and leaves; a second signal ends it at once. Every "
        "record has copies on the next members, and copies that are lost with "
        "a node are made again by the others. A node that was killed may "
        "start again with its old folder or an empty one; give it --join, "
        "since what it knew of the ring is of the past.\n\n"
        "put cuts files into blocks and keeps them under their digests; get "
        "compares what it gets with them. Any member may be asked. put and rm "
        "are done when all nodes that keep the name have it on disk; they end "
        "with status 2 if that is not so, or not known. Nodes that keep names "
        "agree on a list of themselves by majority: half of them or fewer, cut "
        "off from the others, refuse. Blocks that no file uses any more are "
        "dropped after --reclaim.\n\n"
        "get, rm and ls end with status 1 if there is no such file, or none, "
        "and with 2 if that cannot be said now. "
        "status shows what a node knows, and leave makes it hand over and "
        "end.\n\n"
        "key FILE makes a secret. With --key-file all connections are "
        "encrypted and "
        "authenticated with it (libsodium), and nobody without it can speak to "
        "a node.",
    .options = node_options,
    .examples = node_examples,
    .reports = REPORTS({ "of put and ls", node_file_fields, LINES },
                       { "of status", node_status_fields, ONE }),
    .run = node_command_run,
};

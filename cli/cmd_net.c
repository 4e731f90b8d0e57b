/*
 * cmd_net.c - filters that travel in packets: bloomery net VERB ...
 */
#include <math.h>
#include <stdio.h>

#include "workbench/sim/experiment.h"
#include "apps/net/find/find.h"
#include "apps/net/ask/ask_serve.h"
#include "apps/net/ask/ask_trace.h"
#include "apps/net/receive.h"
#include "apps/net/gossip/gossip_node.h"
#include "workbench/sim/net_gossip.h"
#include "cli/program.h"
#include "cli/rows.h"
#include "workbench/net_picture.h"
#include "workbench/plot.h"

static struct {
    const char *topology, *plot, *docs;
    uint64_t tries, seed, bits, k, k0, strikes, groups, members, cell_bits;
    uint64_t depth, peers, best, vain;
    double rate, loss;
    unsigned start; /* enum net_start */
    bool plain, json;
} sim_args = { .seed = 1 };

static struct router_args router_args;
static struct receive_args trace_args;
static struct find_args find_args = { .how = FIND_ANYHOW };
static struct peer_args peer_args;

/* ------------------------------------------------------------------ options */

#define NET_TOPOLOGY(to)                                                  \
    OPTION("topology", 0, OPT_TEXT, &(to), "FILE",                        \
           "the network, as lines \"edge A B [MS]\"; or ring:N, line:N, " \
           "grid:WxH, tree:DEGREE:DEPTH, random:N:DEGREE, "               \
           "geometric:N:DEGREE, preferential:N:M")
#define NET_KEY_FILE(to, what) \
    OPTION("key-file", 'K', OPT_TEXT, &(to), "FILE", what)
#define NET_KEY_HELP \
    "the secret that node key makes; who lacks it is not answered"
#define NET_BITS(to)                                                   \
    OPTION("bits", 'b', OPT_BETWEEN(POSITIVE, 1, 1 << 20), &(to), "M", \
           "bits in a packet, 64, 128, 192 or 256; 256 if not given")
#define NET_SET(to, usual)                                     \
    OPTION("set", 0, OPT_BETWEEN(POSITIVE, 1, 32), &(to), "K", \
           "bits that a mark sets; " usual " if not given")
#define NET_STRIKES(to)                                           \
    OPTION("strikes", 0, OPT_BETWEEN(POSITIVE, 1, 2), &(to), "N", \
           "suspicions in a row that end a packet; 1 if not given")
#define NET_CELL_BITS(to)                                            \
    OPTION("cell-bits", 0, OPT_BETWEEN(POSITIVE, 1, 64), &(to), "N", \
           "bits per group and interface; 16 if not given")
#define NET_DEPTH(to)                                                          \
    OPTION("depth", 0, OPT_BETWEEN(POSITIVE, 1, 5), &(to), "N",                \
           "how many hops filters tell of, the same at all servers; 3 if not " \
           "given")
#define NET_BEST(to)                                                    \
    OPTION("best", 0, OPT_BETWEEN(POSITIVE, 1, QUERY_BEST), &(to), "N", \
           "documents wanted; 20 if not given")
#define NET_VAIN(to)                                                          \
    OPTION("vain", 0, OPT_POSITIVE, &(to), "N",                               \
           "a search ends after so many peers in a row that add nothing; as " \
           "many as documents are wanted if not given")
#define NET_PATIENCE(to)                                                     \
    OPTION("patience", 0, OPT_POSITIVE, &(to), "MS",                         \
           "milliseconds that an answer may take at least before the other " \
           "counts as silent; 250 if not given")
#define NET_LISTEN(to)                                   \
    OPTION("listen", 0, OPT_TEXT, &(to), "ADDRESS:PORT", \
           "where others reach it; a free port of 127.0.0.1 if not given")
#define NET_AT(to, what) OPTION("at", 0, OPT_LIST, &(to), "ADDRESS:PORT", what)
#define NET_EVERY(a) QUIET_OPTION(QUIET_HELP), JSON_OPTION(a)

#define SIM_COMMON                                                          \
    OPTION("tries", 0, OPT_BETWEEN(POSITIVE, 1, 1e8), &sim_args.tries, "N", \
           "packets or questions; 1000 if not given"),                      \
        OPTION("seed", 's', OPT_COUNT, &sim_args.seed, "S",                 \
               "of everything random; equal seeds give equal runs"),        \
        OPTION("plot", 0, OPT_TEXT, &sim_args.plot, "FILE.svg",             \
               "also draw it into this file"),                              \
        NET_EVERY(sim_args)
#define SIM_OPTIONS NET_TOPOLOGY(sim_args.topology), SIM_COMMON

static const struct opt sim_loop_options[] = {
    NET_BITS(sim_args.bits),
    NET_SET(sim_args.k, "8"),
    NET_STRIKES(sim_args.strikes),
    SIM_OPTIONS,
    { 0 },
};

static const struct opt sim_way_options[] = {
    NET_BITS(sim_args.bits),
    NET_SET(sim_args.k, "1"),
    { "clear", 0, OPT_BETWEEN(POSITIVE, 1, 32), &sim_args.k0, "K",
      "bits that a mark clears; as many as it sets if not given" },
    FLAG("plain", 0, sim_args.plain,
         "marks that clear nothing, as in a plain Bloom filter"),
    { "start", 0, OPT_CHOICE, &sim_args.start, "zeros|ones|random",
      "what senders begin with; an attacker takes ones" },
    SIM_OPTIONS,
    { 0 },
};

static const struct opt sim_multicast_options[] = {
    { "groups", 0, OPT_BETWEEN(POSITIVE, 1, 1e6), &sim_args.groups, "N",
      "groups; 200 if not given" },
    { "members", 0, OPT_BETWEEN(POSITIVE, 1, 1000), &sim_args.members, "N",
      "members of a group, on average; 5 if not given" },
    NET_CELL_BITS(sim_args.cell_bits),
    SIM_OPTIONS,
    { 0 },
};

static const struct opt sim_near_options[] = {
    NET_DEPTH(sim_args.depth),
    { "fpr", 'p', OPT_RATE, &sim_args.rate, "P",
      "of what one link says once its levels are full; 1% if not given" },
    SIM_OPTIONS,
    { 0 },
};

static const struct opt sim_plain_options[] = { SIM_OPTIONS, { 0 } };

/* Peers have no links: everybody may talk to everybody. */
static const struct opt sim_gossip_options[] = {
    { "peers", 0, OPT_BETWEEN(POSITIVE, 2, NET_GOSSIP_PEERS), &sim_args.peers,
      "N", "peers; 1000 if not given" },
    { "docs", 0, OPT_TEXT, &sim_args.docs, "DIR",
      "a folder of documents, which the peers share; 10000 documents are made "
      "if not given" },
    { "loss", 0, OPT_RATE, &sim_args.loss, "P",
      "share of messages that are lost; none if not given" },
    NET_BEST(sim_args.best),
    NET_VAIN(sim_args.vain),
    SIM_COMMON,
    { 0 },
};

#define NET_MARKS(m)                                                          \
    OPTION("name", 0, OPT_TEXT, &(m).name, "NAME",                            \
           "what this node is called"),                                       \
        NET_KEY_FILE((m).key_file,                                            \
                     "the secret of the network's marks, 16 bytes; without "  \
                     "it a sender can compute them"),                         \
        NET_BITS((m).loop_bits), NET_SET((m).loop_set, "8"),                  \
        OPTION("way-bits", 0, OPT_POSITIVE, &(m).way_bits, "M",               \
               "bits for the way in a packet; 256 if not given"),             \
        OPTION("way-set", 0, OPT_BETWEEN(POSITIVE, 1, 32), &(m).way_set, "K", \
               "bits that a mark of the way sets, and as many that it "       \
               "clears; 1 if not given")
#define NET_SECONDS(to)                            \
    OPTION("seconds", 0, OPT_POSITIVE, &(to), "N", \
           "how long; until a signal if not given")

#define NET_ASK_KEY(to)                                                       \
    OPTION("ask-key", 0, OPT_TEXT, &(to), "FILE",                             \
           "the secret of questions about packets, that node key makes; who " \
           "lacks it is not answered")

static const struct opt net_router_options[] = {
    { "link", 0, OPT_LIST, &router_args.links, "IFACE=NEIGHBOUR",
      "an interface, and who is at its other end; once for each" },
    NET_MARKS(router_args),
    NET_STRIKES(router_args.strikes),
    { "groups", 0, OPT_BETWEEN(POSITIVE, 1, 1e6), &router_args.groups, "N",
      "forward groups, at most N on an interface; none if not given" },
    NET_CELL_BITS(router_args.cell_bits),
    { "refresh", 0, OPT_POSITIVE, &router_args.refresh, "SECONDS",
      "how often members of groups are asked whether they still are; 60 if not "
      "given" },
    NET_SECONDS(router_args.seconds),
    { "listen", 0, OPT_TEXT, &router_args.listen, "ADDRESS:PORT",
      "answer net trace --ask and other routers there" },
    { "neighbour", 0, OPT_LIST, &router_args.neighbours, "NAME=HOST:PORT",
      "where a neighbour of --link listens for these questions; once for "
      "each" },
    NET_ASK_KEY(router_args.ask_key),
    NET_EVERY(router_args),
    { 0 },
};

static const struct opt net_trace_options[] = {
    NET_TOPOLOGY(trace_args.topology),
    NET_MARKS(trace_args.marks),
    { "packets", 0, OPT_POSITIVE, &trace_args.packets, "N",
      "packets to trace; 1 if not given" },
    { "ask", 0, OPT_TEXT, &trace_args.ask, "ADDRESS:PORT",
      "ask this router, the last on the way, which asks its neighbours, "
      "instead of a topology" },
    NET_ASK_KEY(trace_args.marks.ask_key),
    { "patience", 0, OPT_BETWEEN(POSITIVE, 100, 60000), &trace_args.patience,
      "MS", "with --ask: milliseconds for a packet; 10000 if not given" },
    NET_SECONDS(trace_args.seconds),
    NET_EVERY(trace_args),
    { 0 },
};

#define NET_SERVERS                                                            \
    OPTION("network", 0, OPT_TEXT, &find_args.network, "NAME",                 \
           "the network's name; servers of others are refused; \"net\" if "    \
           "not given"),                                                       \
        NET_KEY_FILE(find_args.key_file, NET_KEY_HELP),                        \
        OPTION("keys", 0, OPT_BETWEEN(POSITIVE, 1, 1e6), &find_args.keys, "N", \
               "sets of tags of one server that filters are made for, the "    \
               "same at all servers; 1000 if not given"),                      \
        NET_DEPTH(find_args.depth), NET_PATIENCE(find_args.patience),          \
        QUIET_OPTION(QUIET_HELP)
#define NET_RINGS                                                             \
    NET_AT(find_args.at, "a server; may be repeated"),                        \
        OPTION("ring", 0, OPT_LIST, &find_args.ring, "ADDRESS:PORT",          \
               "a member of a ring (node run) that keeps announcements too, " \
               "and is asked last; may be repeated"),                         \
        OPTION("ring-name", 0, OPT_TEXT, &find_args.ring_name, "NAME",        \
               "that ring's name; \"ring\" if not given")

static const struct opt net_node_options[] = {
    NET_LISTEN(find_args.listen),
    { "neighbour", 0, OPT_LIST, &find_args.neighbours, "ADDRESS:PORT",
      "a server to tell what is near; may be repeated; one side will do" },
    { "parent", 0, OPT_TEXT, &find_args.parent, "ADDRESS:PORT",
      "the server above this one in a hierarchy" },
    { "period", 0, OPT_POSITIVE, &find_args.period, "MS",
      "milliseconds between messages to others; 1000 if not given" },
    { "life", 0, OPT_BETWEEN(POSITIVE, 1, 86400), &find_args.life, "SECONDS",
      "after which a neighbour or child that is silent is forgotten; 10 if not "
      "given" },
    NET_SERVERS,
    { 0 },
};

static const struct opt net_announce_options[] = {
    NET_RINGS,
    { "where", 0, OPT_TEXT, &find_args.where, "TEXT",
      "where the service is reached" },
    { "ttl", 0, OPT_POSITIVE, &find_args.ttl, "SECONDS",
      "after which it is forgotten unless it is announced again; 60 if not "
      "given" },
    FLAG("once", 0, find_args.once,
         "once, instead of again and again until a signal"),
    NET_SERVERS,
    { 0 },
};

static const struct opt net_find_options[] = {
    NET_RINGS,
    { "how", 0, OPT_CHOICE, &find_args.how, "near|tree|ring",
      "only this way; near, then tree, then ring if not given" },
    NET_SERVERS,
    JSON_OPTION(find_args),
    { 0 },
};

static const struct opt net_status_options[] = {
    NET_AT(find_args.at, "the server"),
    NET_SERVERS,
    JSON_OPTION(find_args),
    { 0 },
};

static const struct opt net_peer_options[] = {
    NET_LISTEN(peer_args.listen),
    { "join", 'j', OPT_LIST, &peer_args.join, "ADDRESS:PORT",
      "another peer, to begin with; may be repeated" },
    NET_KEY_FILE(peer_args.key, NET_KEY_HELP),
    HTML_OPTIONS(peer_args.pages),
    { "interval", 0, OPT_POSITIVE, &peer_args.interval, "MS",
      "milliseconds between rumours; 1000 if not given" },
    { "rescan", 0, OPT_POSITIVE, &peer_args.rescan, "MS",
      "milliseconds between looks at the folder; 5000 if not given" },
    NET_PATIENCE(peer_args.patience),
    NET_VAIN(peer_args.vain),
    QUIET_OPTION(QUIET_HELP),
    { 0 },
};

static struct list peer_at;
#define NET_PEER_AT                     \
    NET_AT(peer_at, "the peer to ask"), \
        NET_KEY_FILE(peer_args.key, NET_KEY_HELP)

static const struct opt net_search_options[] = {
    NET_PEER_AT,
    NET_BEST(peer_args.best),
    NET_EVERY(peer_args),
    { 0 },
};

static const struct opt net_peers_options[] = {
    NET_PEER_AT,
    NET_EVERY(peer_args),
    { 0 },
};

/* --------------------------------------------------------------- simulation */

/* The numbers of the line, as far as they make sense together. */
static bool spec_of(const struct experiment *e, struct net_spec *out)
{
    if (sim_args.bits > 256 || sim_args.bits % 64)
        return refuse("--bits: %llu; expected 64, 128, 192 or 256",
                      (unsigned long long)sim_args.bits);
    if (sim_args.k0 && sim_args.plain)
        return refuse("--clear has no meaning with --plain");
    *out = (struct net_spec){
        .tries = sim_args.tries ? sim_args.tries : e->tries,
        .seed = sim_args.seed,
        .bits = (unsigned)sim_args.bits,
        .k = (unsigned)sim_args.k,
        .k0 = (unsigned)sim_args.k0,
        .strikes = (unsigned)sim_args.strikes,
        .groups = sim_args.groups,
        .members = (double)sim_args.members,
        .cell_bits = (double)sim_args.cell_bits,
        .rate = sim_args.rate,
        .depth = (unsigned)sim_args.depth,
        .start = sim_args.start,
    };
    if (e->run == net_way && !out->k0 && !sim_args.plain)
        out->k0 = out->k ? out->k : 1;
    return true;
}

static void net_print(const struct net_result *r, const char *topology)
{
    printf("%s on %s, ", r->experiment, topology);
    report_text(stdout, net_result_fields, r,
                "{nodes} nodes, {links} links; {tries} tries\n\n"
                "  ended well      {success}\n"
                "[  hops            {hops:.2}\n]"
                "[  stretch         {stretch:.3}\n]"
                "  messages        {messages}\n"
                "  state per node  {state:.0} bytes\n");
    for (size_t i = 0; i < r->nvalues; i++) {
        const struct net_value *const v = &r->values[i];
        printf("  %-15s %-10.4g", v->name, v->value);
        if (isnan(v->expected))
            printf(" %-19s", "");
        else
            printf(" expected %-10.4g", v->expected);
        printf(" %s\n", v->what);
    }
}

static int sim_gossip(void)
{
    const struct gossip_sim_spec spec = {
        .peers = (uint32_t)sim_args.peers,
        .folder = sim_args.docs,
        .seed = sim_args.seed,
        .loss = sim_args.loss,
        .queries = (unsigned)(sim_args.tries ? sim_args.tries : 100),
        .k = (unsigned)sim_args.best,
        .patience = (unsigned)sim_args.vain,
    };
    struct net_result r;
    if (sim_args.tries > 100000)
        return fail("--tries: at most 100000");
    if (!net_gossip(&spec, sim_args.plot, &r))
        return TROUBLE;
    if (sim_args.json)
        report(stdout, true, net_result_fields, &r, NULL);
    else if (!quiet)
        net_print(&r, sim_args.docs ? sim_args.docs : "made documents");
    return YES;
}

static int sim_run(const char *name, const struct list *rest)
{
    const struct experiment *const e = net_experiment(name);
    struct net_spec spec;
    struct graph g;
    if (rest->n)
        return fail("one experiment at a time, not \"%s\" too", rest->at[0]);
    if (!e)
        return sim_gossip();
    if (!spec_of(e, &spec))
        return TROUBLE;
    const char *const topology =
        sim_args.topology ? sim_args.topology : e->topology;
    if (!graph_load(topology, spec.seed, &g))
        return TROUBLE;
    if (sim_args.plot && g.n > NET_PICTURE_NODES) {
        fail(
            "--plot: a picture of %u nodes shows nothing; at most %d are drawn",
            g.n, NET_PICTURE_NODES);
        graph_free(&g);
        return TROUBLE;
    }
    struct net_result r = { .experiment = e->name,
                            .nodes = g.n,
                            .links = g.nedges / 2,
                            .tries = spec.tries };
    spec.g = &g;
    bool ok = e->run(&spec, &r);
    if (ok && sim_args.plot)
        ok = net_draw(&g, &r, sim_args.plot) || refuse("%s", plot_why());
    if (ok && sim_args.json)
        report(stdout, true, net_result_fields, &r, NULL);
    else if (ok && !quiet)
        net_print(&r, topology);
    graph_free(&g);
    return ok ? YES : TROUBLE;
}

/* ------------------------------------------------------------------ verbs */

#define SIM_RUNS(name)                               \
    static int run_sim_##name(struct list *operands) \
    {                                                \
        return sim_run(#name, operands);             \
    }
SIM_RUNS(loop)
SIM_RUNS(way)
SIM_RUNS(multicast)
SIM_RUNS(tree)
SIM_RUNS(near)
SIM_RUNS(squares)
SIM_RUNS(gossip)

extern const struct router_ask ask_serve __attribute__((weak));
static int run_net_router(struct list *operands)
{
    (void)operands;
    if (router_args.listen && !&ask_serve)
        return program_run("net");
    router_args.ask = &ask_serve;
    return net_router(&router_args);
}

ELSEWHERE(net_ask);
static int run_net_trace(struct list *operands)
{
    trace_args.iface = operands->at[0];
    if (!trace_args.ask)
        return net_receive(&trace_args);
    return net_ask ? net_ask(&trace_args) : program_run("net");
}

ELSEWHERE(net_node);
static int run_net_node(struct list *operands)
{
    (void)operands;
    return net_node ? net_node(&find_args) : program_run("net");
}

RUNS_IN("net", net_announce, find_args)
RUNS_IN("net", net_find, find_args)

ELSEWHERE(net_node_status);
static int run_net_status(struct list *operands)
{
    const char *const one =
        operand_or_at("net status", operands, &find_args.at);
    if (one && !net_node_status)
        return program_run("net");
    return one ? net_node_status(&find_args, one) : TROUBLE;
}

ELSEWHERE(gossip_peer);
static int run_net_peer(struct list *operands)
{
    if (operands->n > 1)
        return fail("one folder at a time, not \"%s\" too", operands->at[1]);
    if (!gossip_peer)
        return program_run("net");
    return gossip_peer(&peer_args, operands->at[0]);
}

ELSEWHERE(gossip_find_words);
static int run_net_search(struct list *operands)
{
    const struct list none = { 0 };
    peer_args.at = operand_or_at("net search", &none, &peer_at);
    if (peer_args.at && !gossip_find_words)
        return program_run("net");
    return peer_args.at ? gossip_find_words(&peer_args, operands) : TROUBLE;
}

ELSEWHERE(gossip_peers);
static int run_net_peers(struct list *operands)
{
    const char *const one = operand_or_at("net peers", operands, &peer_at);
    if (one && !gossip_peers)
        return program_run("net");
    return one ? gossip_peers(&peer_args, one) : TROUBLE;
}

#define SIM_REPORT REPORTS({ "", net_result_fields, ONE })

static const struct verb net_verbs[] = {
    { .name = "sim loop",
      .operands = "",
      .summary = "hops that a forwarding loop costs, with marks and without",
      .about = "Every interface marks the packets that leave by it; a packet "
               "that has its mark already goes round in a circle (Icarus).",
      .options = sim_loop_options,
      .reports = SIM_REPORT,
      .run = run_sim_loop },
    { .name = "sim way",
      .operands = "",
      .summary = "who sent this packet?",
      .about = "Marks set and clear bits, and the receiver follows them back "
               "to the sender, whatever that began with.",
      .options = sim_way_options,
      .reports = SIM_REPORT,
      .run = run_sim_way },
    { .name = "sim multicast",
      .operands = "",
      .summary = "copies that nobody wanted",
      .about = "Each router keeps a filter of groups for each of its "
               "interfaces, which lie bit by bit side by side.",
      .options = sim_multicast_options,
      .reports = SIM_REPORT,
      .run = run_sim_multicast },
    { .name = "sim tree",
      .operands = "",
      .summary = "look for names in a hierarchy",
      .about =
          "Servers of a hierarchy know by filters what their subtrees have.",
      .options = sim_plain_options,
      .reports = SIM_REPORT,
      .run = run_sim_tree },
    { .name = "sim near",
      .operands = "",
      .summary = "look for names a few hops away",
      .about = "Nodes tell each other what is how many hops away.",
      .options = sim_near_options,
      .reports = SIM_REPORT,
      .run = run_sim_near },
    { .name = "sim squares",
      .operands = "",
      .summary = "look for names on a plane",
      .about = "A name is looked for in the smallest square of the plane that "
               "may have it.",
      .options = sim_plain_options,
      .reports = SIM_REPORT,
      .run = run_sim_squares },
    { .name = "sim gossip",
      .operands = "",
      .summary = "how fast news spread, and what searches find",
      .about = "Peers tell each other which words their documents have, and "
               "search them together (PlanetP).",
      .options = sim_gossip_options,
      .reports = SIM_REPORT,
      .run = run_sim_gossip },
    { .name = "router",
      .operands = "",
      .summary = "forward IPv6, and mark what passes",
      .about = "router forwards packets of IPv6 between interfaces, by the "
               "routes that the kernel has, and carries both kinds of marks in "
               "a hop-by-hop option; what goes round is dropped. The kernel's "
               "own forwarding has to be off. It needs CAP_NET_RAW. At SIGTERM "
               "it prints what it has counted. With --groups, router also "
               "forwards groups of a source to the interfaces where hosts or "
               "other routers ask for them (MLD), by a filter for each "
               "interface. SIGHUP reads the key file again.",
      .options = net_router_options,
      .reports = REPORTS({ "", router_fields, ONE }),
      .run = run_net_router },
    { .name = "trace",
      .operands = "NAME",
      .summary = "the way of the next packet that comes",
      .about = "trace waits for packets with marks at an interface and prints "
               "who sent them, whatever address they give; status 1 if none "
               "came in time. With --ask it needs no topology and no secret "
               "of marks: the last router is asked, and asks on; NAME may "
               "then be a file with the bytes of one packet, too.",
      .options = net_trace_options,
      .reports = REPORTS({ "", received_fields, LINES },
                         { "--ask", ask_fields, LINES }),
      .run = run_net_trace },
    { .name = "node",
      .operands = "",
      .summary = "a server that knows what is near",
      .about = "node runs a server to which services are announced with tags. "
               "It tells neighbours what is how many hops away, and its parent "
               "what it and all below it have.",
      .options = net_node_options,
      .run = run_net_node },
    { .name = "announce",
      .operands = "NAME TAG=VALUE...",
      .summary = "offer a service",
      .about = "announce offers a service until a signal. What is not repeated "
               "is forgotten.",
      .options = net_announce_options,
      .run = run_net_announce },
    { .name = "find",
      .operands = "TAG=VALUE...",
      .summary = "who has all these tags?",
      .about = "find prints who has all the tags: the nearest one if "
               "neighbours know of it, else all of the hierarchy, else what "
               "the ring has; status 1 if there is none, 2 if someone who may "
               "have it did not answer.",
      .options = net_find_options,
      .reports = REPORTS({ "", find_row_fields, LINES }),
      .run = run_net_find },
    { .name = "status",
      .operands = "[ADDRESS:PORT]",
      .summary = "what a server knows",
      .about = "status shows what a server knows.",
      .options = net_status_options,
      .reports = REPORTS({ "", find_status_fields, ONE }),
      .run = run_net_status },
    { .name = "peer",
      .operands = "DIR",
      .summary = "share the documents below a folder",
      .about = "peer indexes the documents below a folder, plain or packed, "
               "tells other peers by filters which words they have, and "
               "answers searches, until SIGTERM.",
      .options = net_peer_options,
      .run = run_net_peer },
    { .name = "search",
      .operands = "WORD...",
      .summary = "the best documents of all peers",
      .about =
          "search asks a peer, which asks those that seem to have the words, "
          "and prints the best documents of all of them; status 1 if there are "
          "none, 2 if a peer that may have some did not answer.",
      .options = net_search_options,
      .reports = REPORTS({ "", search_fields, ONE }),
      .run = run_net_search },
    { .name = "peers",
      .operands = "[ADDRESS:PORT]",
      .summary = "whom a peer knows",
      .about = "peers shows whom a peer knows.",
      .options = net_peers_options,
      .reports = REPORTS({ "", peers_fields, ONE }),
      .run = run_net_peers },
    { 0 },
};

static const struct example net_examples[] = {
    { "bloomery net sim loop", "hops that a forwarding loop costs, with marks "
                               "and without" },
    { "bloomery net sim loop --topology as.txt --bits 64 --set 4",
      "your network, and 8 bytes in each packet" },
    { "bloomery net sim way --start ones --plot way.svg",
      "who sent this packet, though it began with all bits set?" },
    { "bloomery net sim multicast --groups 10000 --cell-bits 8",
      "copies that nobody wanted" },
    { "bloomery net router --name r1 --link veth0=r2 --link veth1=r3 -K key",
      "forward IPv6, and mark what passes" },
    { "bloomery net trace veth0 --name host --topology net.txt -K key",
      "the way of the next packet that comes" },
    { "bloomery net router --name r1 --link veth0=r2 --link veth1=r3 --groups "
      "1000",
      "forward groups, too" },
    { "bloomery net node --listen 127.0.0.1:7101 --neighbour 127.0.0.1:7102 &",
      "a server that knows what is near" },
    { "bloomery net announce lp --at 127.0.0.1:7101 --where 10.0.0.7:631 "
      "type=printer floor=3 &",
      "offer a service, until a signal" },
    { "bloomery net find --at 127.0.0.1:7102 type=printer floor=3",
      "where is one?" },
    { "bloomery net peer --listen 7001 /usr/share/doc &",
      "a peer with documents, which others join" },
    { "bloomery net peer -j 127.0.0.1:7001 ~/notes &", "another one" },
    { "bloomery net search --at 127.0.0.1:7001 bloom filter",
      "the best documents of all peers" },
    { "bloomery net sim gossip --peers 1000 --docs /usr/share/doc",
      "how fast news spread, and whether searches find what is there" },
    { 0 },
};

const struct command cmd_net = {
    .name = "net",
    .summary =
        "filters that travel: loops, the way back, groups, services, gossip",
    .about = "sim runs an experiment on a network that is made, or given as a "
             "file of links, and prints how often it ended well, the hops, the "
             "stretch over the shortest way, the messages, and the bytes that "
             "a node keeps. The other verbs do it on real networks.",
    .verbs = net_verbs,
    .examples = net_examples,
};

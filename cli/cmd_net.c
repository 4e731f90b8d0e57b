/*
 * cmd_net.c - filters that travel in packets: bloomery net VERB ...
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workbench/sim/experiment.h"
#include "apps/net/find/find.h"
#include "apps/net/receive.h"
#include "apps/net/gossip/gossip_node.h"
#include "workbench/sim/net_gossip.h"
#include "cli/rows.h"
#include "workbench/net_picture.h"
#include "workbench/plot.h"

static struct {
    const char *topology, *plot, *start, *listen;
    struct list at;
    uint64_t tries, seed, bits, k, k0, strikes, groups, members, cell_bits,
        depth, patience;
    double rate;
    struct router_args marks;
    struct receive_args receive;
    struct find_args find;
    struct peer_args peer;
    const char *docs;
    uint64_t peers;
    double loss;
    bool plain, json;
} net_args;

static const struct opt net_options[] = {
    { "topology", 0, OPT_TEXT, &net_args.topology, "FILE",
      "sim, trace: the network, as lines \"edge A B [MS]\"; or ring:N, line:N, "
      "grid:WxH, tree:DEGREE:DEPTH, random:N:DEGREE, geometric:N:DEGREE, "
      "preferential:N:M" },
    { "tries", 0, OPT_POSITIVE, &net_args.tries, "N",
      "sim: packets or questions; 1000 if not given" },
    { "seed", 's', OPT_COUNT, &net_args.seed, "S",
      "sim: of everything random; equal seeds give equal runs" },
    { "bits", 'b', OPT_POSITIVE, &net_args.bits, "M",
      "sim loop, way; router, trace against loops: bits in a packet, 64, 128, "
      "192 or 256; 256 if not given" },
    { "set", 0, OPT_POSITIVE, &net_args.k, "K",
      "sim loop, way; router, trace against loops: bits that a mark sets; 8 if "
      "not given, and 1 for the way" },
    { "clear", 0, OPT_POSITIVE, &net_args.k0, "K",
      "sim way: bits that a mark clears; as many as it sets if not given" },
    FLAG("plain", 0, net_args.plain,
         "sim way: marks that clear nothing, as in a plain Bloom filter"),
    { "strikes", 0, OPT_POSITIVE, &net_args.strikes, "N",
      "sim loop, router: suspicions in a row that end a packet, 1 or 2; 1 if "
      "not "
      "given" },
    { "start", 0, OPT_TEXT, &net_args.start, "zeros|ones|random",
      "sim way: what senders begin with; an attacker takes ones" },
    { "groups", 0, OPT_POSITIVE, &net_args.groups, "N",
      "sim multicast: groups; 200 if not given. router: forward groups, at "
      "most N on an interface; none if not given" },
    { "members", 0, OPT_POSITIVE, &net_args.members, "N",
      "sim multicast: members of a group, on average; 5 if not given" },
    { "cell-bits", 0, OPT_POSITIVE, &net_args.cell_bits, "N",
      "sim multicast, router: bits per group and interface; 16 if not "
      "given" },
    { "refresh", 0, OPT_POSITIVE, &net_args.marks.refresh, "SECONDS",
      "router: how often members of groups are asked whether they still are; "
      "60 if not given" },
    { "depth", 0, OPT_POSITIVE, &net_args.depth, "N",
      "sim near, node, announce, find, status: how many hops filters tell of, "
      "1 to 5, the same at all servers; 3 if not given" },
    { "fpr", 'p', OPT_RATE, &net_args.rate, "P",
      "sim near: of what one link says once its levels are full; 1% if not "
      "given" },
    { "plot", 0, OPT_TEXT, &net_args.plot, "FILE.svg",
      "sim: also draw the network and one try into this file" },
    { "name", 0, OPT_TEXT, &net_args.marks.name, "NAME",
      "router, trace: what this node is called" },
    { "link", 0, OPT_LIST, &net_args.marks.links, "IFACE=NEIGHBOUR",
      "router: an interface, and who is at its other end; once for "
      "each" },
    { "key-file", 'K', OPT_TEXT, &net_args.marks.key_file, "FILE",
      "router, trace: the secret of the network's marks, 16 bytes; without it "
      "a sender can compute them. All that listen or ask: the secret that "
      "node key makes; who lacks it is not answered" },
    { "way-bits", 0, OPT_POSITIVE, &net_args.marks.way_bits, "M",
      "router, trace: bits for the way in a packet; 256 if not given" },
    { "way-set", 0, OPT_POSITIVE, &net_args.marks.way_set, "K",
      "router, trace: bits that a mark of the way sets, and as many that it "
      "clears; 1 if not given" },
    { "packets", 0, OPT_POSITIVE, &net_args.receive.packets, "N",
      "trace: packets to trace; 1 if not given" },
    { "seconds", 0, OPT_POSITIVE, &net_args.marks.seconds, "N",
      "router, trace: how long; until a signal if not given" },
    { "listen", 0, OPT_TEXT, &net_args.listen, "ADDRESS:PORT",
      "node, peer: where others reach it; a free port of 127.0.0.1 if not "
      "given" },
    { "neighbour", 0, OPT_LIST, &net_args.find.neighbours, "ADDRESS:PORT",
      "node: a server to tell what is near; may be repeated; one side will "
      "do" },
    { "parent", 0, OPT_TEXT, &net_args.find.parent, "ADDRESS:PORT",
      "node: the server above this one in a hierarchy" },
    { "at", 0, OPT_LIST, &net_args.at, "ADDRESS:PORT",
      "announce, find, status: a server; may be repeated, but for status. "
      "search, peers: the peer to ask" },
    { "ring", 0, OPT_LIST, &net_args.find.ring, "ADDRESS:PORT",
      "announce, find: a member of a ring (node run) that keeps announcements "
      "too, and is asked last; may be repeated" },
    { "ring-name", 0, OPT_TEXT, &net_args.find.ring_name, "NAME",
      "announce, find: that ring's name; \"ring\" if not given" },
    { "network", 0, OPT_TEXT, &net_args.find.network, "NAME",
      "node, announce, find, status: the network's name; servers of others are "
      "refused; \"net\" if not given" },
    { "keys", 0, OPT_POSITIVE, &net_args.find.keys, "N",
      "node, announce, find, status: sets of tags of one server that filters "
      "are made for, the same at all servers; 1000 if not given" },
    { "where", 0, OPT_TEXT, &net_args.find.where, "TEXT",
      "announce: where the service is reached" },
    { "ttl", 0, OPT_POSITIVE, &net_args.find.ttl, "SECONDS",
      "announce: after which it is forgotten unless it is announced again; 60 "
      "if not given" },
    FLAG("once", 0, net_args.find.once,
         "announce: once, instead of again and again until a signal"),
    { "how", 0, OPT_TEXT, &net_args.find.how, "near|tree|ring",
      "find: only this way; near, then tree, then ring if not given" },
    { "period", 0, OPT_POSITIVE, &net_args.find.period, "MS",
      "node: milliseconds between messages to others; 1000 if not given" },
    { "life", 0, OPT_POSITIVE, &net_args.find.life, "SECONDS",
      "node: after which a neighbour or child that is silent is forgotten; 10 "
      "if not given" },
    { "patience", 0, OPT_POSITIVE, &net_args.patience, "MS",
      "node, announce, find, status, peer: milliseconds that an answer may "
      "take at least before the other counts as silent; 250 if not given" },
    { "peers", 0, OPT_POSITIVE, &net_args.peers, "N",
      "sim gossip: peers; 1000 if not given" },
    { "docs", 0, OPT_TEXT, &net_args.docs, "DIR",
      "sim gossip: a folder of documents, which the peers share; 10000 "
      "documents are made if not given" },
    { "loss", 0, OPT_RATE, &net_args.loss, "P",
      "sim gossip: share of messages that are lost; none if not given" },
    { "join", 'j', OPT_LIST, &net_args.peer.join, "ADDRESS:PORT",
      "peer: another peer, to begin with; may be repeated" },
    { "interval", 0, OPT_POSITIVE, &net_args.peer.interval, "MS",
      "peer: milliseconds between rumours; 1000 if not given" },
    { "rescan", 0, OPT_POSITIVE, &net_args.peer.rescan, "MS",
      "peer: milliseconds between looks at the folder; 5000 if not given" },
    { "best", 0, OPT_POSITIVE, &net_args.peer.best, "N",
      "search, sim gossip: documents wanted; 20 if not given" },
    { "vain", 0, OPT_POSITIVE, &net_args.peer.vain, "N",
      "peer, sim gossip: a search ends after so many peers in a row that add "
      "nothing; as many as documents are wanted if not given" },
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(net_args),
    { 0 },
};

#define NET_SERVERS " key-file network keys depth patience quiet "

static const struct old_verb net_verbs[] = {
    { "sim", "EXPERIMENT", 1,
      " topology tries seed bits set clear plain strikes start groups members "
      "cell-bits depth fpr plot peers docs loss best vain quiet json " },
    { "router", "", 0,
      " name link key-file bits set way-bits way-set strikes groups cell-bits "
      "refresh seconds quiet json " },
    { "trace", "IFACE", 1,
      " topology name key-file bits set way-bits way-set packets seconds quiet "
      "json " },
    { "node", "", 0, NET_SERVERS "listen neighbour parent period life " },
    { "announce", "NAME TAG=VALUE...", 2,
      NET_SERVERS "at ring ring-name where ttl once " },
    { "find", "TAG=VALUE...", 1, NET_SERVERS "at ring ring-name how json " },
    { "status", "--at ADDRESS:PORT", 0, NET_SERVERS "at json " },
    { "peer", "DIR", 1,
      " listen join key-file interval rescan patience vain quiet " },
    { "search", "WORD...", 1, " at key-file best quiet json " },
    { "peers", "--at ADDRESS:PORT", 0, " at key-file quiet json " },
};

/* ---------------------------------------------------------------- simulation
 */

static bool start_of(const char *word, unsigned *out)
{
    static const char *const words[] = { "zeros", "ones", "random" };
    *out = NET_ZEROS;
    for (unsigned i = 0; word && i < 3; i++)
        if (strcmp(word, words[i]) == 0) {
            *out = i;
            return true;
        }
    return !word || !fail("--start: %s; expected zeros, ones or random", word);
}

/* The numbers of the line, as far as they make sense together. */
static bool spec_of(const struct experiment *e, struct net_spec *out)
{
    if (net_args.bits > 256 || net_args.bits % 64)
        return !fail("--bits: %llu; expected 64, 128, 192 or 256",
                     (unsigned long long)net_args.bits);
    if (net_args.k > 32)
        return !fail("--set: at most 32");
    if (net_args.k0 > 32 || (net_args.k0 && net_args.plain))
        return !fail("--clear: at most 32, and not with --plain");
    if (net_args.strikes > 2)
        return !fail("--strikes: 1 or 2");
    if (net_args.groups > 1000000 || net_args.members > 1000 ||
        net_args.cell_bits > 64)
        return !fail("at most a million --groups, 1000 --members and 64 "
                     "--cell-bits");
    if (net_args.tries > 100000000)
        return !fail("--tries: at most 100 million");
    *out = (struct net_spec){
        .tries = net_args.tries ? net_args.tries : e->tries,
        .seed = net_args.seed ? net_args.seed : 1,
        .bits = (unsigned)net_args.bits,
        .k = (unsigned)net_args.k,
        .k0 = (unsigned)net_args.k0,
        .strikes = (unsigned)net_args.strikes,
        .groups = net_args.groups,
        .members = (double)net_args.members,
        .cell_bits = (double)net_args.cell_bits,
        .rate = net_args.rate,
        .depth = (unsigned)(net_args.depth < 100 ? net_args.depth : 100),
    };
    if (e->run == net_way && !out->k0 && !net_args.plain)
        out->k0 = out->k ? out->k : 1;
    return start_of(net_args.start, &out->start);
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

/* Peers have no links: everybody may talk to everybody. */
static int net_sim_gossip(void)
{
    if (net_args.topology)
        return fail("--topology: gossip has no links; use --peers N");
    if (net_args.peers == 1 || net_args.peers > NET_GOSSIP_PEERS)
        return fail("--peers: 2 to %d", NET_GOSSIP_PEERS);
    const struct gossip_sim_spec spec = {
        .peers = (uint32_t)net_args.peers,
        .folder = net_args.docs,
        .seed = net_args.seed ? net_args.seed : 1,
        .loss = net_args.loss,
        .queries = (unsigned)(net_args.tries ? net_args.tries : 100),
        .k = (unsigned)net_args.peer.best,
        .patience = (unsigned)net_args.peer.vain,
    };
    struct net_result r;
    if (net_args.tries > 100000 || net_args.peer.best > QUERY_BEST)
        return fail("at most 100000 --tries and --best %d", QUERY_BEST);
    if (!net_gossip(&spec, net_args.plot, &r))
        return TROUBLE;
    if (net_args.json)
        report(stdout, true, net_result_fields, &r, NULL);
    else if (!quiet)
        net_print(&r, net_args.docs ? net_args.docs : "made documents");
    return YES;
}

static int net_sim(const struct list *rest)
{
    const struct experiment *const e = net_experiment(rest->at[0]);
    struct net_spec spec;
    struct graph g;
    if (rest->n > 1)
        return fail("one experiment at a time, not \"%s\" too", rest->at[1]);
    if (strcmp(rest->at[0], "gossip") == 0)
        return net_sim_gossip();
    if (!e)
        return fail("%s: not an experiment; expected loop, way, multicast, "
                    "tree, near, squares or gossip",
                    rest->at[0]);
    if (!spec_of(e, &spec))
        return TROUBLE;
    const char *const topology =
        net_args.topology ? net_args.topology : e->topology;
    if (!graph_load(topology, spec.seed, &g))
        return TROUBLE;
    if (net_args.plot && g.n > NET_PICTURE_NODES) {
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
    if (ok && net_args.plot)
        ok = net_draw(&g, &r, net_args.plot) || !fail("%s", plot_why());
    if (ok && net_args.json)
        report(stdout, true, net_result_fields, &r, NULL);
    else if (ok && !quiet)
        net_print(&r, topology);
    graph_free(&g);
    return ok ? YES : TROUBLE;
}

/* The one to ask, by --at or without it. NULL, with the reason printed. */
static const char *net_one(const char *verb, const struct list *rest)
{
    const size_t n = rest->n + net_args.at.n;
    if (n == 1)
        return rest->n ? rest->at[0] : net_args.at.at[0];
    fail("%s bloomery net %s --at ADDRESS:PORT",
         n ? "one address is enough; use" : "whom to ask? Use", verb);
    return NULL;
}

static int net_service(const char *verb, const struct list *rest)
{
    struct find_args *const f = &net_args.find;
    f->key_file = net_args.marks.key_file;
    f->depth = net_args.depth;
    f->json = net_args.json;
    f->listen = net_args.listen;
    f->at = net_args.at;
    f->patience = net_args.patience;
    if (f->depth > 5 || f->keys > 1000000 || f->life > 86400)
        return fail("--depth is at most 5, --keys a million, --life a day");
    if (strcmp(verb, "node") == 0)
        return net_node(f);
    if (strcmp(verb, "announce") == 0)
        return net_announce(f, rest);
    if (strcmp(verb, "find") == 0)
        return net_find(f, rest);
    const char *const one = net_one(verb, rest);
    return one ? net_node_status(f, one) : TROUBLE;
}

static int net_peer(const char *verb, const struct list *rest)
{
    struct peer_args *const a = &net_args.peer;
    a->key = net_args.marks.key_file;
    a->json = net_args.json;
    a->listen = net_args.listen;
    a->patience = net_args.patience;
    if (net_args.at.n > 1)
        return fail("--at: one peer, not \"%s\" too", net_args.at.at[1]);
    a->at = net_args.at.n ? net_args.at.at[0] : NULL;
    if (strcmp(verb, "search") == 0)
        return gossip_find_words(a, rest);
    if (rest->n > 1)
        return fail("one at a time, not \"%s\" too", rest->at[1]);
    if (strcmp(verb, "peer") == 0)
        return gossip_peer(a, rest->at[0]);
    const char *const one = net_one(verb, rest);
    return one ? gossip_peers(a, one) : TROUBLE;
}

static int net_run(struct list *operands)
{
    const size_t n = sizeof net_verbs / sizeof net_verbs[0];
    struct list rest;
    const size_t i = verb_find(&cmd_net, net_verbs, n, operands, &rest);
    if (i == n)
        return TROUBLE;
    struct router_args *const m = &net_args.marks;
    m->loop_bits = net_args.bits;
    m->loop_set = net_args.k;
    m->strikes = net_args.strikes;
    m->groups = net_args.groups;
    m->cell_bits = net_args.cell_bits;
    m->json = net_args.json;
    if (i == 0)
        return net_sim(&rest);
    if (i == 1)
        return net_router(m);
    if (i > 2)
        return i < 7 ? net_service(net_verbs[i].name, &rest)
                     : net_peer(net_verbs[i].name, &rest);
    net_args.receive.marks = *m;
    net_args.receive.iface = rest.at[0];
    net_args.receive.topology = net_args.topology;
    net_args.receive.seconds = m->seconds;
    net_args.receive.json = net_args.json;
    return net_receive(&net_args.receive);
}

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
    .usage = "VERB [OPTION]... OPERAND",
    .old_verbs = "sim router trace node announce find status peer search peers",
    .summary = "filters that travel: loops, the way back, groups, services, "
               "gossip",
    .about =
        "sim runs an experiment on a network that is made, or given as a file "
        "of links, and prints how often it ended well, the hops, the stretch "
        "over the shortest way, the messages, and the bytes that a node "
        "keeps.\n\n"
        "loop: every interface marks the packets that leave by it; a packet "
        "that has its mark already goes round in a circle (Icarus). way: marks "
        "set and clear bits, and the receiver follows them back to the sender, "
        "whatever that began with. multicast: each router keeps a filter of "
        "groups for each of its interfaces, which lie bit by bit side by "
        "side. tree: servers of a hierarchy know by filters what their "
        "subtrees have. near: nodes tell each other what is how many hops "
        "away. squares: a name is looked for in the smallest square of the "
        "plane that may have it. gossip: peers tell each other which words "
        "their documents have, and search them together (PlanetP).\n\n"
        "router forwards packets of IPv6 between interfaces, by the routes "
        "that the kernel has, and carries both kinds of marks in a hop-by-hop "
        "option; what goes round is dropped. The kernel's own forwarding has "
        "to be off. It needs CAP_NET_RAW. At SIGTERM it prints what it has "
        "counted. trace waits for packets with marks and prints who sent them, "
        "whatever address they give; status 1 if none came in time. With "
        "--groups, router also forwards groups of a source to the interfaces "
        "where hosts or other routers ask for them (MLD), by a filter for each "
        "interface. SIGHUP reads the key file again.\n\n"
        "node runs a server to which services are announced with tags. It "
        "tells neighbours what is how many hops away, and its parent what it "
        "and all below it have. announce offers a service until a signal; find "
        "prints who has all the tags: the nearest one if neighbours know of "
        "it, else all of the hierarchy, else what the ring has; status 1 if "
        "there is none, 2 if someone who may have it did not answer. What is "
        "not repeated is forgotten. status shows what a "
        "server knows.\n\n"
        "peer indexes the documents below a folder, plain or packed, tells "
        "other peers by filters which words they have, and answers searches, "
        "until SIGTERM. search asks a peer, which asks those that seem to have "
        "the words, and prints the best documents of all of them; status 1 if "
        "there are none, 2 if a peer that may have some did not answer. peers "
        "shows whom a peer knows.",
    .options = net_options,
    .examples = net_examples,
    .reports = REPORTS({ "of sim", net_result_fields, ONE },
                       { "of router", router_fields, ONE },
                       { "of trace", received_fields, LINES },
                       { "of find", find_row_fields, LINES },
                       { "of status", find_status_fields, ONE },
                       { "of search", search_fields, ONE },
                       { "of peers", peers_fields, ONE }),
    .run = net_run,
};

/*
 * cmd_traffic.c - what filters do on a wire: bloomery traffic VERB ...
 */
#include "apps/traffic/queue_verb.h"
#include "apps/traffic/scan_verb.h"
#include "apps/traffic/traffic.h"
#include "cli/rows.h"
#include "workbench/flows_picture.h"

static struct traffic_args traffic_args = { .flows.draw = flows_picture };

static const struct opt traffic_options[] = {
    { "key", 0, OPT_TEXT, &traffic_args.key, "5tuple|src|dst|srcdst|prefix/N",
      "flows, count: what makes packets a flow; all five if not given" },
    { "threshold", 0, OPT_TEXT, &traffic_args.flows.threshold, "SIZE",
      "flows: bytes per interval from which on a flow is never missed, or a "
      "share of the capture's such as 1%; 0.1% if not given" },
    { "interval", 0, OPT_TEXT, &traffic_args.interval, "SECONDS",
      "flows: count anew after that long; the whole capture if not given; "
      "digest: of a table, 10 if not given" },
    { "plot", 0, OPT_TEXT, &traffic_args.flows.plot, "FILE.svg",
      "flows: also draw what the largest have sent over time" },
    { "interface", 'i', OPT_TEXT, &traffic_args.interface, "NAME",
      "flows, count, scan, digest: packets that pass there now, until a "
      "signal ends it" },
    { "count", 0, OPT_POSITIVE, &traffic_args.number, "N",
      "--interface: end after N packets; gen: packets to make; trace: number "
      "of the packet" },
    { "top", 0, OPT_POSITIVE, &traffic_args.flows.top, "N",
      "flows: print only the N largest of an interval" },
    { "stages", 0, OPT_POSITIVE, &traffic_args.flows.stages, "N",
      "flows: stages of the filter, 4 if not given" },
    { "counters", 0, OPT_POSITIVE, &traffic_args.flows.counters, "N",
      "flows: counters per stage; ten for each flow that could be as large as "
      "the threshold if not given" },
    { "entries", 0, OPT_POSITIVE, &traffic_args.entries, "N",
      "flows: how many there is room for; digest: tables that are kept" },
    FLAG("serial", 0, traffic_args.flows.serial,
         "flows: stages one behind the other, each with its share of the "
         "threshold"),
    FLAG("shared", 0, traffic_args.flows.shared,
         "flows: one array of counters for all stages, as a counting filter "
         "has it"),
    FLAG("plain", 0, traffic_args.flows.plain,
         "flows: raise all counters by each packet, not only the least"),
    FLAG("no-shield", 0, traffic_args.flows.unshielded,
         "flows: those that are known go on raising counters"),
    FLAG("inner", 0, traffic_args.inner, "look into GRE, VXLAN and IP in IP"),
    { "form", 0, OPT_TEXT, &traffic_args.form, "table|csv",
      "flows, count: how they are printed" },
    { "flows", 0, OPT_POSITIVE, &traffic_args.nflows, "N",
      "gen: how many there are, 1000 if not given; queue: simulated sources "
      "that yield, 100 if not given" },
    { "skew", 0, OPT_TEXT, &traffic_args.gen.skew, "S",
      "gen: flow i has its share 1/i^S of the packets; 1 if not given" },
    { "rules", 0, OPT_TEXT, &traffic_args.scan.rules, "FILE",
      "scan: Snort's rules, of which each content is looked for" },
    { "strings", 0, OPT_TEXT, &traffic_args.scan.strings, "FILE",
      "scan: strings to look for, one per line" },
    FLAG("nocase", 0, traffic_args.scan.nocase,
         "scan --strings: upper and lower case are the same"),
    FLAG("raw", 0, traffic_args.scan.raw,
         "scan: the bytes of a file as they lie, also of a capture"),
    FLAG("summary", 0, traffic_args.scan.summary,
         "scan: print no matches, only how many there are"),
    FLAG("automaton", 0, traffic_args.scan.automaton,
         "scan: by an automaton without filters, to compare"),
    FLAG("per-length", 0, traffic_args.scan.per_length,
         "scan: a filter for each length, asked at each byte, to compare"),
    { "memory", 0, OPT_POSITIVE, &traffic_args.scan.memory, "SIZE",
      "scan: for TCP streams, 256M if not given" },
    { "bits", 0, OPT_POSITIVE, &traffic_args.digest.bits, "N",
      "digest: per packet, 16 if not given, or as many as 0.5 % of the bytes "
      "allow" },
    { "router", 0, OPT_TEXT, &traffic_args.digest.router, "NAME",
      "digest: whose tables these are; the name of the file if not given" },
    { "nat", 0, OPT_TEXT, &traffic_args.digest.nat, "FILE",
      "digest: addresses that the router translates, inside and outside" },
    { "mtu", 0, OPT_POSITIVE, &traffic_args.digest.mtu, "N",
      "digest: the router makes fragments of this many bytes" },
    { "topology", 0, OPT_TEXT, &traffic_args.trace.topology, "FILE",
      "trace: which routers are linked, a pair of names per line" },
    { "packet", 0, OPT_TEXT, &traffic_args.trace.packet, "FILE",
      "trace: a capture with the packet, the first one or that of --count" },
    { "from", 0, OPT_TEXT, &traffic_args.trace.from, "NAME",
      "trace: the last one that the packet passed" },
    { "time", 0, OPT_TEXT, &traffic_args.trace.time, "SECONDS",
      "trace: when, since 1970; as the capture says if not given" },
    { "within", 0, OPT_TEXT, &traffic_args.trace.within, "SECONDS",
      "trace: before and after that time, 1 if not given" },
    { "tun", 0, OPT_TEXT, &traffic_args.queue.tun, "NAME",
      "queue: make this device; what is routed into it goes through the "
      "queue" },
    { "out", 0, OPT_TEXT, &traffic_args.queue.out, "NAME",
      "queue --tun: the interface by which it leaves" },
    FLAG("tail", 0, traffic_args.queue.tail,
         "queue --tun: a plain queue, which drops what finds no room, to "
         "compare"),
    { "rehash", 0, OPT_TEXT, &traffic_args.queue.rehash, "SECONDS",
      "queue: after which other bins take over, 600 if not given; 0: never" },
    { "warmup", 0, OPT_TEXT, &traffic_args.queue.warmup, "SECONDS",
      "queue: for which they learn before; a tenth of --rehash if not given" },
    { "rate", 0, OPT_TEXT, &traffic_args.queue.rate, "N",
      "queue: of the link in bits per second, 45M if not given; with --tun as "
      "fast as the interface takes it" },
    { "sender", 0, OPT_TEXT, &traffic_args.queue.sender, "N",
      "queue: of the simulated sender that does not yield; four fair shares if "
      "not given" },
    { "levels", 0, OPT_POSITIVE, &traffic_args.queue.levels, "N",
      "queue: of bins, 8 if not given" },
    { "bins", 0, OPT_POSITIVE, &traffic_args.queue.bins, "N",
      "queue: per level, 64 if not given" },
    { "target", 0, OPT_POSITIVE, &traffic_args.queue.target, "N",
      "queue: packets of a bin from which on more are dropped, 10 if not "
      "given" },
    { "limit", 0, OPT_POSITIVE, &traffic_args.queue.limit, "N",
      "queue: packets of all, 500 if not given" },
    { "seed", 0, OPT_COUNT, &traffic_args.seed, "N",
      "of the hash functions, or of chance" },
    { "output", 'o', OPT_TEXT, &traffic_args.output, "FILE",
      "gen: the capture; block: the list; digest: the tables" },
    { "sketch", 0, OPT_TEXT, &traffic_args.count.sketch,
      "countmin|spectral|spacecode", "count: by which; countmin if not given" },
    { "keys", 0, OPT_TEXT, &traffic_args.count.keys, "FILE",
      "count: only these flows, one per line as they are printed" },
    { "error", 0, OPT_RATE, &traffic_args.count.error, "P",
      "count: of all packets and bytes that a count may be too high by "
      "(countmin, 0.01% if not given), or of the flows that may be too high "
      "(spectral, 1%)" },
    { "into", 0, OPT_TEXT, &traffic_args.block.into, "FILTER",
      "block: add to this list" },
    { "fpr", 'p', OPT_RATE, &traffic_args.block.fpr, "P",
      "block -o: of packets from others that the list may stop; 0.1% if not "
      "given" },
    { "items", 'n', OPT_POSITIVE, &traffic_args.block.items, "N",
      "block -o: prefixes that there is to be room for; those of the lists if "
      "not given" },
    { "ttl", 0, OPT_TEXT, &traffic_args.block.ttl, "SECONDS",
      "block -o: entries expire, after this time at the earliest and twice "
      "this time at the latest" },
    FLAG("skip-bad", 0, traffic_args.block.skip_bad,
         "block: leave out lines of lists that cannot be read"),
    { "exact", 0, OPT_TEXT, &traffic_args.block.exact, "FILE",
      "block: the list itself, to see who is hit by mistake" },
    { "allow", 0, OPT_TEXT, &traffic_args.block.allow, "FILE",
      "block: never stop these addresses and prefixes; exact" },
    FLAG("kernel", 0, traffic_args.block.kernel,
         "block: let the kernel's program judge every packet too, and compare"),
    { "xdp", 0, OPT_TEXT, &traffic_args.block.xdp, "NAME",
      "block: drop what is listed at this interface, in the kernel; a list "
      "that is there already is replaced between two packets" },
    FLAG("empty", 0, traffic_args.block.empty,
         "block: attach a list that stops nobody"),
    { "detach", 0, OPT_TEXT, &traffic_args.block.detach, "NAME",
      "block: no longer drop anything there" },
    { "status", 0, OPT_TEXT, &traffic_args.block.status, "NAME",
      "block: what was stopped there so far" },
    { "pins", 0, OPT_TEXT, &traffic_args.block.pins, "DIR",
      "block: where the kernel's program is pinned; /sys/fs/bpf/bloomery if "
      "not given" },
    { "key-file", 'K', OPT_TEXT, &traffic_args.block.key_file, "FILE",
      "block: hash with the secret in FILE, 16 raw bytes or 32 hexadecimal "
      "digits" },
    WAIT_OPTION,
    QUIET_OPTION("print no summary"),
    JSON_OPTION(traffic_args),
    { 0 },
};

static const struct old_verb traffic_verbs[] = {
    { "flows", "CAPTURE", 0,
      " key threshold interval interface count top stages counters entries "
      "serial shared plain no-shield inner form plot seed wait quiet json " },
    { "gen", "-o FILE", 0, " count flows skew seed output wait quiet " },
    { "count", "CAPTURE", 0,
      " key sketch keys error inner interface count form seed quiet json " },
    { "block", "LIST.bly CAPTURE | -o LIST.bly LIST...", 0,
      " output into ttl items fpr skip-bad exact allow inner kernel xdp empty "
      "detach status pins key-file seed wait quiet json " },
    { "scan", "FILE...", 0,
      " rules strings nocase raw summary automaton per-length memory interface "
      "count inner seed quiet json " },
    { "digest", "CAPTURE -o FILE", 0,
      " interval bits router nat mtu inner entries interface count seed output "
      "wait quiet json " },
    { "trace", "DIGEST...", 1,
      " topology packet from time within count quiet json " },
    { "queue", "[CAPTURE]", 0,
      " tun out tail rehash warmup rate sender flows levels bins target limit "
      "inner seed quiet json " },
};
#ifdef BLY_PCAP
static traffic_verb *const traffic_functions[] = {
    traffic_flows, traffic_gen,    traffic_count, traffic_block,
    traffic_scan,  traffic_digest, traffic_trace, traffic_queue,
};
#else
static int traffic_without(const struct traffic_args *args,
                           const struct list *operands)
{
    (void)args, (void)operands;
    return fail("this bloomery was built without libpcap (libpcap-dev) and "
                "cannot read captures");
}
static int queue_without(const struct traffic_args *args,
                         const struct list *operands)
{
    return queue_any(args, operands, NULL);
}
static int scan_without(const struct traffic_args *args,
                        const struct list *operands)
{
    return scan_all(args, operands, NULL);
}
static traffic_verb *const traffic_functions[] = {
    traffic_without, traffic_gen,     traffic_without, traffic_without,
    scan_without,    traffic_without, traffic_without, queue_without,
};
#endif
#define NVERBS (sizeof traffic_verbs / sizeof traffic_verbs[0])

static int traffic_run(struct list *operands)
{
    struct list rest;
    const size_t i =
        verb_find(&cmd_traffic, traffic_verbs, NVERBS, operands, &rest);
    return i == NVERBS ? TROUBLE : traffic_functions[i](&traffic_args, &rest);
}

static const struct example traffic_examples[] = {
    { "bloomery traffic flows day.pcap", "flows of 0.1 % and more" },
    { "bloomery traffic flows --key src --threshold 1M --interval 60 day.pcap",
      "who sends more than a megabyte in a minute" },
    { "bloomery traffic flows --interface eth0 --key dst --top 5",
      "what passes now, second by second" },
    { "bloomery traffic scan --strings bad.txt day.pcap mail.mbox",
      "which of these strings are in what was sent, or in a file" },
    { "bloomery traffic digest --router r7 -o r7.dig r7.pcap",
      "what passed router r7" },
    { "bloomery traffic trace --topology net.txt --packet p.pcap --from r7 "
      "r*.dig",
      "where it came from" },
    { "bloomery traffic queue --tun fair0 --out eth0",
      "hold back who does not yield, of what is routed into fair0" },
    { "bloomery traffic gen -o zipf.pcap --flows 100000 --count 5000000",
      "a capture whose flows are known" },
    { "bloomery traffic count --key src day.pcap",
      "packets and bytes of every sender, in 2 MiB" },
    { "bloomery traffic block -o bad.bly bad.txt",
      "a list of addresses and prefixes as a filter" },
    { "bloomery traffic block --exact bad.txt bad.bly day.pcap",
      "what it would have stopped, and whom by mistake" },
    { "bloomery traffic block --xdp eth0 bad.bly",
      "drop what is listed, in the kernel" },
    { 0 },
};

const struct command cmd_traffic = {
    .name = "traffic",
    .old_verbs = "flows gen count block scan digest trace queue",
    .usage = "VERB [OPERAND]... [OPTION]...",
    .summary = "find who sends much and what is sent, count, drop and trace",
    .about =
        "flows CAPTURE prints the flows of a capture (pcap or pcapng, - is "
        "standard input) that have sent as much as the threshold in an "
        "interval. None of these is missed, whatever the others do: a "
        "multistage filter lets all of them through, and few others. From "
        "then on each is counted exactly; what it may have sent before is the "
        "difference between the two columns. The memory is bounded by "
        "--counters and --entries, however many flows there are; if there is "
        "no room for a flow that may be large, it says so and the exit status "
        "is 2.\n\n"
        "Bytes are those of whole packets on the wire, also where only their "
        "beginnings were captured. Packets that are not IP, that were captured "
        "too short for the key, or whose lengths contradict each other are "
        "counted in the summary. A fragment that is not the first has no "
        "ports: it belongs to a flow of its own addresses and protocol. "
        "Packets "
        "of an interface that came faster than they could be looked at are "
        "counted too, and the exit status is 2.\n\n"
        "scan FILE... looks for many strings at once, in files and in what the "
        "packets of captures carry; TCP is put in order first. Filters let "
        "pass what may be one of the strings, and that is compared: matches "
        "are exact, and the exit status is 1 if there are none, and 2 if some "
        "may have been missed: what has no place in its stream, since it came "
        "late, far from it, or in another version, is looked at segment by "
        "segment. Of Snort's rules each content is looked for by itself, with "
        "nocase, offset and depth; whatever else they ask is not.\n\n"
        "digest CAPTURE -o FILE keeps filters of the packets that passed, a "
        "table for each slice of time, in at most 0.5 % of their bytes, "
        "without those that the router changes; trace asks the tables of "
        "routers, neighbour by neighbour, which way a packet took. The way is "
        "always among what it prints. Packets that a router changes (--nat, "
        "--mtu, and the ends of tunnels with --inner) are followed through its "
        "side table.\n\n"
        "queue simulates a link with sources that yield and one that does not, "
        "behind drop-tail and behind Stochastic Fair Blue; with a CAPTURE it "
        "says what the latter would have dropped of it. With --tun and --out "
        "it is a queue: what the kernel routes into the device waits here for "
        "the interface, until a signal ends it.\n\n"
        "gen -o FILE writes a capture of TCP packets of 1000 bytes whose flows "
        "are known: flow i comes from the address 10.0.0.0 + i.\n\n"
        "count CAPTURE prints every flow with its packets and bytes as a "
        "sketch has counted them, and states the error. With --keys it prints "
        "the flows of a list; one pass is enough for these with countmin, so "
        "that packets may come from a pipe or an interface.\n\n"
        "block -o LIST.bly LIST... makes a filter of addresses, prefixes and "
        "ranges: plain lists, ipset save, nft list ruleset; --into adds to it. "
        "block LIST.bly CAPTURE says what it would have stopped: status 0 if "
        "anything, 1 if nothing. With --exact it says whom by mistake. block "
        "--xdp INTERFACE LIST.bly drops packets from listed sources in the "
        "kernel, until --detach; to run it again with another list exchanges "
        "the two between one packet and the next.",
    .options = traffic_options,
    .examples = traffic_examples,
    .reports = traffic_reports,
    .run = traffic_run,
};

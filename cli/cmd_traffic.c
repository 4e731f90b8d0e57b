/*
 * cmd_traffic.c - what filters do on a wire: bloomery traffic VERB ...
 */
#include "apps/traffic/multistage.h"
#include "apps/traffic/queue_verb.h"
#include "apps/traffic/scan_verb.h"
#include "apps/traffic/sfb.h"
#include "apps/traffic/traffic.h"
#include "cli/program.h"
#include "cli/rows.h"
#include "workbench/flows_picture.h"

static struct traffic_args traffic_args = {
    .flows.draw = flows_picture,
    .gen.skew = 1,
    .trace.within = 1,
};

#define TRAFFIC_FLOWS_COUNT                                            \
    OPTION("key", 0, OPT_TEXT, &traffic_args.key,                      \
           "5tuple|src|dst|srcdst|prefix/N",                           \
           "what makes packets a flow; all five if not given"),        \
        OPTION("form", 0, OPT_CHOICE, &traffic_args.form, "table|csv", \
               "how they are printed")
#define TRAFFIC_FLOWS_COUNT_SCAN_DIGEST                                 \
    OPTION("interface", 'i', OPT_TEXT, &traffic_args.interface, "NAME", \
           "packets that pass there now, until a signal ends it"),      \
        OPTION("count", 0, OPT_POSITIVE, &traffic_args.number, "N",     \
               "with --interface: end after N packets")
#define TRAFFIC_INNER \
    FLAG("inner", 0, traffic_args.inner, "look into GRE, VXLAN and IP in IP")
#define TRAFFIC_SEED                                      \
    OPTION("seed", 0, OPT_COUNT, &traffic_args.seed, "N", \
           "of the hash functions, or of chance")

static const struct opt traffic_flows_options[] = {
    TRAFFIC_FLOWS_COUNT,
    { "threshold", 0, OPT_TEXT, &traffic_args.flows.threshold, "SIZE",
      "bytes per interval from which on a flow is never missed, or a share of "
      "the capture's such as 1%; 0.1% if not given" },
    { "interval", 0, OPT_BETWEEN(SECONDS, 0.001, 1e9), &traffic_args.interval,
      "SECONDS", "count anew after that long; the whole capture if not given" },
    { "plot", 0, OPT_TEXT, &traffic_args.flows.plot, "FILE.svg",
      "also draw what the largest have sent over time" },
    TRAFFIC_FLOWS_COUNT_SCAN_DIGEST,
    { "top", 0, OPT_POSITIVE, &traffic_args.flows.top, "N",
      "print only the N largest of an interval" },
    { "stages", 0, OPT_BETWEEN(POSITIVE, 1, MULTISTAGE_MOST),
      &traffic_args.flows.stages, "N", "stages of the filter, 4 if not given" },
    { "counters", 0, OPT_BETWEEN(POSITIVE, 1, 0x1p32),
      &traffic_args.flows.counters, "N",
      "counters per stage; ten for each flow that could be as large as the "
      "threshold if not given" },
    { "entries", 0, OPT_BETWEEN(POSITIVE, 1, 0x1p28), &traffic_args.entries,
      "N", "how many there is room for" },
    FLAG("serial", 0, traffic_args.flows.serial,
         "stages one behind the other, each with its share of the threshold"),
    FLAG("shared", 0, traffic_args.flows.shared,
         "one array of counters for all stages, as a counting filter has it"),
    FLAG("plain", 0, traffic_args.flows.plain,
         "raise all counters by each packet, not only the least"),
    FLAG("no-shield", 0, traffic_args.flows.unshielded,
         "those that are known go on raising counters"),
    TRAFFIC_INNER,
    TRAFFIC_SEED,
    WAIT_OPTION,
    QUIET_OPTION("print no summary"),
    JSON_OPTION(traffic_args),
    { 0 },
};

static const struct opt traffic_gen_options[] = {
    { "count", 0, OPT_POSITIVE, &traffic_args.number, "N",
      "--interface: end after N packets; packets to make" },
    { "flows", 0, OPT_POSITIVE, &traffic_args.nflows, "N",
      "how many there are, 1000 if not given" },
    { "skew", 0, OPT_BETWEEN(REAL, 0, 10), &traffic_args.gen.skew, "S",
      "flow i has one packet, and its share 1/i^S of the others; 1 if not "
      "given" },
    TRAFFIC_SEED,
    { "output", 'o', OPT_TEXT, &traffic_args.output, "FILE", "the capture" },
    WAIT_OPTION,
    QUIET_OPTION("print no summary"),
    { 0 },
};

static const struct opt traffic_count_options[] = {
    TRAFFIC_FLOWS_COUNT,
    TRAFFIC_FLOWS_COUNT_SCAN_DIGEST,
    TRAFFIC_INNER,
    TRAFFIC_SEED,
    { "sketch", 0, OPT_CHOICE, &traffic_args.count.sketch,
      "countmin|spectral|spacecode", "by which; countmin if not given" },
    { "keys", 0, OPT_TEXT, &traffic_args.count.keys, "FILE",
      "only these flows, one per line as they are printed" },
    { "error", 0, OPT_RATE, &traffic_args.count.error, "P",
      "of all packets and bytes that a count may be too high by (countmin, "
      "0.01% if not given), or of the flows that may be too high (spectral, "
      "1%)" },
    QUIET_OPTION("print no summary"),
    JSON_OPTION(traffic_args),
    { 0 },
};

static const struct opt traffic_block_options[] = {
    TRAFFIC_INNER,
    TRAFFIC_SEED,
    { "output", 'o', OPT_TEXT, &traffic_args.output, "FILE", "the list" },
    { "into", 0, OPT_TEXT, &traffic_args.block.into, "FILTER",
      "add to this list" },
    { "fpr", 'p', OPT_RATE, &traffic_args.block.fpr, "P",
      "of packets from others that the list may stop; 0.1% if not given" },
    { "items", 'n', OPT_POSITIVE, &traffic_args.block.items, "N",
      "prefixes that there is to be room for; those of the lists if not "
      "given; with --xdp, entries that expire or are added, 65536 if not "
      "given" },
    { "ttl", 0, OPT_BETWEEN(POSITIVE, 1, UINT32_MAX), &traffic_args.block.ttl,
      "SECONDS",
      "entries expire after this time; in a file, after twice this time at the "
      "latest" },
    FLAG("skip-bad", 0, traffic_args.block.skip_bad,
         "leave out lines of lists that cannot be read"),
    { "exact", 0, OPT_TEXT, &traffic_args.block.exact, "FILE",
      "the list itself, to see who is hit by mistake" },
    { "allow", 0, OPT_TEXT, &traffic_args.block.allow, "FILE",
      "never stop these addresses and prefixes; exact" },
    FLAG("kernel", 0, traffic_args.block.kernel,
         "let the kernel's program judge every packet too, and compare"),
    { "xdp", 0, OPT_TEXT, &traffic_args.block.xdp, "NAME",
      "drop what is listed at this interface, in the kernel; a list that is "
      "there already is replaced between two packets" },
    { "add", 0, OPT_TEXT, &traffic_args.block.add, "NAME",
      "add addresses, prefixes or lists to what is listed at this interface, "
      "for the time of --ttl or until they are released" },
    { "release", 0, OPT_TEXT, &traffic_args.block.release, "NAME",
      "no longer list these there" },
    FLAG("only", 0, traffic_args.block.only,
         "drop everything that is not listed, and that --allow does not name"),
    FLAG("empty", 0, traffic_args.block.empty,
         "attach a list that stops nobody; with --only, one that stops all"),
    { "detach", 0, OPT_TEXT, &traffic_args.block.detach, "NAME",
      "no longer drop anything there" },
    { "status", 0, OPT_TEXT, &traffic_args.block.status, "NAME",
      "what was stopped there so far" },
    { "pins", 0, OPT_TEXT, &traffic_args.block.pins, "DIR",
      "where the kernel's program is pinned; /sys/fs/bpf/bloomery if not "
      "given" },
    { "key-file", 'K', OPT_TEXT, &traffic_args.block.key_file, "FILE",
      "hash with the secret in FILE, 16 raw bytes or 32 hexadecimal digits" },
    WAIT_OPTION,
    QUIET_OPTION("print no summary"),
    JSON_OPTION(traffic_args),
    { 0 },
};

static const struct opt traffic_guard_options[] = {
    TRAFFIC_FLOWS_COUNT_SCAN_DIGEST,
    { "key", 0, OPT_TEXT, &traffic_args.key, "src|prefix/N",
      "what makes packets those of one sender; src if not given" },
    { "byte-rate", 0, OPT_POSITIVE, &traffic_args.guard.bytes, "N",
      "bytes per second from which on a sender is blocked" },
    { "packet-rate", 0, OPT_POSITIVE, &traffic_args.guard.packets, "N",
      "packets per second, likewise" },
    { "interval", 0, OPT_BETWEEN(SECONDS, 0.05, 3600), &traffic_args.interval,
      "SECONDS", "in which they are counted, 1 if not given" },
    { "ttl", 0, OPT_BETWEEN(POSITIVE, 1, 86400 * 365), &traffic_args.guard.ttl,
      "SECONDS",
      "a sender is released so long after it sent too much for the last time; "
      "60 if not given" },
    { "entries", 0, OPT_BETWEEN(POSITIVE, 1, 0x1p20), &traffic_args.entries,
      "N", "senders that can be blocked at once, 10,000 if not given" },
    { "allow", 0, OPT_TEXT, &traffic_args.block.allow, "FILE",
      "never block these addresses and prefixes" },
    FLAG("skip-bad", 0, traffic_args.block.skip_bad,
         "leave out lines of lists that cannot be read"),
    FLAG("dry-run", 0, traffic_args.guard.dry_run,
         "say what would be blocked, and block nothing"),
    { "counters", 0, OPT_BETWEEN(POSITIVE, 1, 0x1p24),
      &traffic_args.guard.counters, "N",
      "per stage of the filters, 65536 if not given" },
    { "pins", 0, OPT_TEXT, &traffic_args.block.pins, "DIR",
      "where the kernel's program is pinned; /sys/fs/bpf/bloomery if not "
      "given" },
    TRAFFIC_INNER,
    TRAFFIC_SEED,
    QUIET_OPTION("print no summary"),
    JSON_OPTION(traffic_args),
    { 0 },
};

static const struct opt traffic_scan_options[] = {
    TRAFFIC_FLOWS_COUNT_SCAN_DIGEST,
    TRAFFIC_INNER,
    { "rules", 0, OPT_TEXT, &traffic_args.scan.rules, "FILE",
      "Snort's rules, of which each content is looked for" },
    { "strings", 0, OPT_TEXT, &traffic_args.scan.strings, "FILE",
      "strings to look for, one per line" },
    FLAG("nocase", 0, traffic_args.scan.nocase,
         "upper and lower case are the same"),
    FLAG("raw", 0, traffic_args.scan.raw,
         "the bytes of a file as they lie, also of a capture"),
    FLAG("summary", 0, traffic_args.scan.summary,
         "print no matches, only how many there are"),
    FLAG("automaton", 0, traffic_args.scan.automaton,
         "by an automaton without filters, to compare"),
    FLAG("per-length", 0, traffic_args.scan.per_length,
         "a filter for each length, asked at each byte, to compare"),
    { "memory", 0, OPT_POSITIVE, &traffic_args.scan.memory, "SIZE",
      "for TCP streams, 256M if not given" },
    TRAFFIC_SEED,
    QUIET_OPTION("print no summary"),
    JSON_OPTION(traffic_args),
    { 0 },
};

static const struct opt traffic_digest_options[] = {
    { "interval", 0, OPT_BETWEEN(SECONDS, 0.001, 1e9), &traffic_args.interval,
      "SECONDS", "of a table, 10 if not given" },
    TRAFFIC_FLOWS_COUNT_SCAN_DIGEST,
    { "entries", 0, OPT_POSITIVE, &traffic_args.entries, "N",
      "tables that are kept" },
    TRAFFIC_INNER,
    { "bits", 0, OPT_BETWEEN(POSITIVE, 1, 64), &traffic_args.digest.bits, "N",
      "per packet, 16 if not given, or as many as 0.5 % of the bytes allow" },
    { "router", 0, OPT_TEXT, &traffic_args.digest.router, "NAME",
      "whose tables these are; the name of the file if not given" },
    { "nat", 0, OPT_TEXT, &traffic_args.digest.nat, "FILE",
      "addresses that the router translates, inside and outside" },
    { "mtu", 0, OPT_BETWEEN(POSITIVE, 68, 65535), &traffic_args.digest.mtu, "N",
      "the router makes fragments of this many bytes" },
    { "keep", 0, OPT_BETWEEN(SECONDS, 1, 1e9), &traffic_args.digest.keep,
      "SECONDS", "forget tables that are older" },
    { "listen", 0, OPT_TEXT, &traffic_args.digest.listen, "ADDRESS:PORT",
      "answer traffic trace --ask there" },
    { "neighbour", 0, OPT_LIST, &traffic_args.digest.neighbours,
      "NAME=HOST:PORT",
      "a router that is linked to this one, and where it listens; once for "
      "each" },
    { "ask-key", 0, OPT_TEXT, &traffic_args.digest.ask_key, "FILE",
      "the secret of questions, that node key makes; who lacks it is not "
      "answered" },
    TRAFFIC_SEED,
    { "output", 'o', OPT_TEXT, &traffic_args.output, "FILE", "the tables" },
    WAIT_OPTION,
    QUIET_OPTION("print no summary"),
    JSON_OPTION(traffic_args),
    { 0 },
};

static const struct opt traffic_trace_options[] = {
    { "count", 0, OPT_POSITIVE, &traffic_args.number, "N",
      "--interface: end after N packets; number of the packet" },
    { "topology", 0, OPT_TEXT, &traffic_args.trace.topology, "FILE",
      "which routers are linked, a pair of names per line" },
    { "packet", 0, OPT_TEXT, &traffic_args.trace.packet, "FILE",
      "a capture with the packet, the first one or that of --count" },
    { "from", 0, OPT_TEXT, &traffic_args.trace.from, "NAME",
      "the last one that the packet passed" },
    { "time", 0, OPT_BETWEEN(SECONDS, 0, 9e9), &traffic_args.trace.time,
      "SECONDS", "when, since 1970; as the capture says if not given" },
    { "within", 0, OPT_BETWEEN(SECONDS, 0, 1e9), &traffic_args.trace.within,
      "SECONDS", "before and after that time, 1 if not given" },
    { "ask", 0, OPT_TEXT, &traffic_args.trace.ask, "ADDRESS:PORT",
      "ask the router there, and those that it names, instead of files" },
    { "ask-key", 0, OPT_TEXT, &traffic_args.trace.ask_key, "FILE",
      "the secret of questions, that node key makes" },
    { "patience", 0, OPT_BETWEEN(POSITIVE, 50, 60000),
      &traffic_args.trace.patience, "MS",
      "milliseconds that a router may take to answer; 2000 if not given" },
    QUIET_OPTION("print no summary"),
    JSON_OPTION(traffic_args),
    { 0 },
};

static const struct opt traffic_queue_options[] = {
    TRAFFIC_INNER,
    { "flows", 0, OPT_BETWEEN(POSITIVE, 1, 99999), &traffic_args.nflows, "N",
      "simulated sources that yield, 100 if not given" },
    { "tun", 0, OPT_TEXT, &traffic_args.queue.tun, "NAME",
      "make this device; what is routed into it goes through the queue" },
    { "out", 0, OPT_TEXT, &traffic_args.queue.out, "NAME",
      "the interface by which it leaves" },
    FLAG("tail", 0, traffic_args.queue.tail,
         "a plain queue, which drops what finds no room, to compare"),
    { "rehash", 0, OPT_BETWEEN(SECONDS, 0, 1e9), &traffic_args.queue.rehash,
      "SECONDS",
      "after which other bins take over, 600 if not given; 0: never" },
    { "warmup", 0, OPT_BETWEEN(SECONDS, 0, 1e9), &traffic_args.queue.warmup,
      "SECONDS",
      "for which they learn before; a tenth of --rehash if not given" },
    { "rate", 0, OPT_BETWEEN(REAL, 1e3, 1e12), &traffic_args.queue.rate, "N",
      "of the link in bits per second, 45M if not given; with --tun as fast as "
      "the interface takes it" },
    { "sender", 0, OPT_BETWEEN(REAL, 1e3, 1e12), &traffic_args.queue.sender,
      "N",
      "of the simulated sender that does not yield; four fair shares if not "
      "given" },
    { "levels", 0, OPT_BETWEEN(POSITIVE, 1, SFB_MOST_LEVELS),
      &traffic_args.queue.levels, "N", "of bins, 8 if not given" },
    { "bins", 0, OPT_BETWEEN(POSITIVE, 2, SFB_MOST_BINS),
      &traffic_args.queue.bins, "N", "per level, 64 if not given" },
    { "target", 0, OPT_BETWEEN(POSITIVE, 1, 1e6), &traffic_args.queue.target,
      "N", "packets of a bin from which on more are dropped, 10 if not given" },
    { "limit", 0, OPT_BETWEEN(POSITIVE, 1, 1e6), &traffic_args.queue.limit, "N",
      "packets of all, 500 if not given" },
    TRAFFIC_SEED,
    QUIET_OPTION("print no summary"),
    JSON_OPTION(traffic_args),
    { 0 },
};

RUNS(traffic_gen, traffic_args)
RUNS_IN("traffic", traffic_flows, traffic_args)
RUNS_IN("traffic", traffic_count, traffic_args)
RUNS_IN("traffic", traffic_block, traffic_args)
RUNS_IN("traffic", traffic_guard, traffic_args)
RUNS_IN("traffic", traffic_scan, traffic_args)
RUNS_IN("traffic", traffic_digest, traffic_args)
RUNS_IN("traffic", traffic_trace, traffic_args)
RUNS_IN("traffic", traffic_queue, traffic_args)

static const struct verb traffic_verbs[] = {
    { .name = "flows",
      .operands = "[CAPTURE]",
      .summary = "who sends much?",
      .about =
          "flows CAPTURE prints the flows of a capture (pcap or pcapng, - is "
          "standard input) that have sent as much as the threshold in an "
          "interval. None of these is missed, whatever the others do: a "
          "multistage filter lets all of them through, and few others. From "
          "then on each is counted exactly; what it may have sent before is "
          "the "
          "difference between the two columns. The memory is bounded by "
          "--counters and --entries, however many flows there are; if there is "
          "no room for a flow that may be large, it says so and the exit "
          "status "
          "is 2.\n\n"
          "Bytes are those of whole packets on the wire, also where only their "
          "beginnings were captured. Packets that are not IP, that were "
          "captured "
          "too short for the key, or whose lengths contradict each other are "
          "counted in the summary. A fragment that is not the first has no "
          "ports: it belongs to a flow of its own addresses and protocol. "
          "Packets "
          "of an interface that came faster than they could be looked at are "
          "counted too, and the exit status is 2.",
      .options = traffic_flows_options,
      .reports = REPORTS({ "each flow", flow_fields, LINES },
                         { "at the end", flows_fields, ONE }),
      .run = run_traffic_flows },
    { .name = "gen",
      .operands = "-o FILE",
      .summary = "a capture whose flows are known",
      .about =
          "gen -o FILE writes a capture of TCP packets of 1000 bytes whose "
          "flows are known: flow i comes from the address 10.0.0.0 + i.",
      .options = traffic_gen_options,
      .run = run_traffic_gen },
    { .name = "count",
      .operands = "[CAPTURE]",
      .summary = "packets and bytes of every flow, in little memory",
      .about =
          "count CAPTURE prints every flow with its packets and bytes as a "
          "sketch has counted them, and states the error. With --keys it "
          "prints the flows of a list; one pass is enough for these with "
          "countmin, so that packets may come from a pipe or an interface.",
      .options = traffic_count_options,
      .reports = REPORTS({ "each flow", count_fields, LINES },
                         { "at the end", count_sum_fields, ONE }),
      .run = run_traffic_count },
    { .name = "block",
      .operands = "[LIST]... [CAPTURE]",
      .summary = "drop packets from listed sources",
      .about =
          "block -o LIST.bly LIST... makes a filter of addresses, prefixes and "
          "ranges: plain lists, ipset save, nft list ruleset; --into adds to "
          "it. block LIST.bly CAPTURE says what it would have stopped: status "
          "0 if anything, 1 if nothing. With --exact it says whom by mistake. "
          "block --xdp INTERFACE LIST... drops packets from listed sources in "
          "the kernel, until --detach; to run it again with another list "
          "exchanges the two between one packet and the next. --add and "
          "--release change single entries meanwhile. Entries expire after "
          "the time of their line (timeout 300) or of --ttl.",
      .options = traffic_block_options,
      .reports = REPORTS({ "-o or --into", block_made_fields, ONE },
                         { "LIST CAPTURE", block_sum_fields, ONE },
                         { "--add or --release", block_changed_fields, ONE },
                         { "--status", block_state_fields, ONE }),
      .run = run_traffic_block },
    { .name = "guard",
      .operands = "-i NAME",
      .summary = "block heavy senders for a time",
      .about =
          "guard -i INTERFACE finds who sends more than --byte-rate or "
          "--packet-rate, with a multistage filter, and lets the kernel drop "
          "their packets until they have sent less for the time of --ttl. A "
          "sender is blocked only for packets that were counted one by one, "
          "never since it shares counters with others. It prints a line for "
          "each that is blocked and released. The memory is bounded, and "
          "heavy senders that find no room are counted. If the interface has "
          "a list of block --xdp, senders are added to it; if not, a program "
          "is attached as long as guard runs. Whoever is blocked when it ends "
          "is released, by the kernel itself if need be.",
      .options = traffic_guard_options,
      .reports = REPORTS(
          { "each that is blocked or released", guard_row_fields, LINES },
          { "at the end", guard_fields, ONE }),
      .run = run_traffic_guard },
    { .name = "scan",
      .operands = "[FILE]...",
      .summary = "look for many strings at once",
      .about = "scan FILE... looks for many strings at once, in files and in "
               "what the packets of captures carry; TCP is put in order first. "
               "Filters let pass what may be one of the strings, and that is "
               "compared: matches are exact, and the exit status is 1 if there "
               "are none, and 2 if some may have been missed: what has no "
               "place in its stream, since it came late, far from it, or in "
               "another version, is looked at segment by segment. Of Snort's "
               "rules each content is looked for by itself, with nocase, "
               "offset and depth; whatever else they ask is not.",
      .options = traffic_scan_options,
      .reports = REPORTS({ "each match", scan_row_fields, LINES },
                         { "at the end", scan_fields, ONE }),
      .run = run_traffic_scan },
    { .name = "digest",
      .operands = "[CAPTURE] -o FILE",
      .summary = "keep filters of the packets that passed",
      .about = "digest CAPTURE -o FILE keeps filters of the packets that "
               "passed, a table for each slice of time, in at most 0.5 % of "
               "their bytes, without those that the router changes; trace asks "
               "the tables of routers, neighbour by neighbour, which way a "
               "packet took. The way is always among what it prints. Packets "
               "that a router changes (--nat, --mtu, and the ends of tunnels "
               "with --inner) are followed through its side table.",
      .options = traffic_digest_options,
      .reports = REPORTS({ "", digest_fields, ONE }),
      .run = run_traffic_digest },
    { .name = "trace",
      .operands = "[DIGEST]...",
      .summary = "which way did a packet take?",
      .about = "trace asks the tables of routers which way a packet took, "
               "neighbour by neighbour: those in files, with a --topology, or "
               "with --ask the routers themselves, which run digest --listen "
               "and name their neighbours. A router whose tables of that time "
               "have aged out says so.",
      .options = traffic_trace_options,
      .reports = REPORTS({ "each router", trace_row_fields, LINES },
                         { "at the end", trace_fields, ONE }),
      .run = run_traffic_trace },
    { .name = "queue",
      .operands = "[CAPTURE]",
      .summary = "hold back who does not yield",
      .about =
          "queue simulates a link with sources that yield and one that does "
          "not, behind drop-tail and behind Stochastic Fair Blue; with a "
          "CAPTURE it says what the latter would have dropped of it. With "
          "--tun and --out it is a queue: what the kernel routes into the "
          "device waits here for the interface, until a signal ends it.",
      .options = traffic_queue_options,
      .reports = REPORTS({ "each kind of queue", queue_row_fields, LINES },
                         { "a capture, or a device", queue_fields, ONE }),
      .run = run_traffic_queue },
    { 0 },
};

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
    { "bloomery traffic guard -i eth0 --byte-rate 5M --ttl 300",
      "block whoever sends more than 5 MB per second" },
    { "bloomery traffic block --add eth0 192.0.2.7 --ttl 600",
      "for ten minutes also this one" },
    { 0 },
};

const struct command cmd_traffic = {
    .name = "traffic",
    .summary = "find who sends much and what is sent, count, drop and trace",
    .about = "",
    .verbs = traffic_verbs,
    .examples = traffic_examples,
};

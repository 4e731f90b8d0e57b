/*
 * traffic_report.c - what bloomery traffic tells
 */
#include "apps/traffic/traffic_args.h"

static const struct field total_fields[] = {
    FIELD(struct traffic_totals, packets, NONE, "packets in all"),
    FIELD(struct traffic_totals, bytes, BYTES, "their bytes on the wire"),
    FIELD(struct traffic_totals, other, NONE, "packets that are not IP"),
    FIELD(struct traffic_totals, cut, NONE,
          "packets captured too short for the key"),
    FIELD(struct traffic_totals, bad, NONE,
          "packets whose lengths contradict each other"),
    FIELD(struct traffic_totals, backwards, NONE,
          "packets that are older than their interval"),
    FIELD(struct traffic_totals, lost, NONE,
          "packets of an interface that came too fast to be looked at"),
    FIELD(struct traffic_totals, seconds, SECONDS,
          "from the first packet to the last"),
    { 0 },
};

const struct field flow_fields[] = {
    FIELD(struct flow_row, interval, SECONDS,
          "when the interval began, since 1970"),
    FIELD(struct flow_row, key, NONE, "the flow"),
    FIELD(struct flow_row, bytes, BYTES, "that were counted: at least"),
    FIELD(struct flow_row, bytes_max, BYTES, "and at most"),
    FIELD(struct flow_row, packets, NONE, "that were counted: at least"),
    { 0 },
};

const struct field flows_fields[] = {
    MEMBERS(struct flows_summary, totals, NONE, total_fields),
    FIELD(struct flows_summary, intervals, NONE, "intervals"),
    FIELD(struct flows_summary, flows, NONE, "flows that were printed"),
    FIELD(struct flows_summary, dropped, NONE,
          "flows that the memory had no room for"),
    FIELD(struct flows_summary, threshold, BYTES,
          "from which on a flow is never missed"),
    FIELD(struct flows_summary, stages, NONE, "stages of the filter"),
    FIELD(struct flows_summary, counters, NONE, "counters of a stage"),
    FIELD(struct flows_summary, entries, NONE, "flows that there is room for"),
    FIELD(struct flows_summary, memory, BYTES, "of counters and flows"),
    { 0 },
};

const struct field count_fields[] = {
    FIELD(struct count_row, key, NONE, "the flow"),
    FIELD(struct count_row, packets, MAYBE,
          "about; null: more than the sketch can count"),
    FIELD(struct count_row, bytes, MAYBE, "about, likewise"),
    { 0 },
};

const struct field count_sum_fields[] = {
    MEMBERS(struct count_summary, totals, NONE, total_fields),
    FIELD(struct count_summary, sketch, NONE, "the kind of filter"),
    FIELD(struct count_summary, flows, NONE, "flows that were printed"),
    FIELD(struct count_summary, memory, BYTES, "of both sketches"),
    FIELD(struct count_summary, packets_over, OPTIONAL,
          "countmin: a flow's packets are too high by more than this only in "
          "the share delta of all cases"),
    FIELD(struct count_summary, bytes_over, OPTIONAL,
          "countmin: the same of its bytes"),
    FIELD(struct count_summary, delta, RATE | OPTIONAL, "countmin: that share"),
    FIELD(struct count_summary, wrong, RATE | OPTIONAL,
          "spectral: share of the flows that are too high"),
    FIELD(struct count_summary, relative, SHARE | OPTIONAL,
          "spacecode: what a count is off by, on average"),
    { 0 },
};

const struct field block_made_fields[] = {
    FIELD(struct block_made, file, NONE, "the list that was made"),
    FIELD(struct block_made, kind, NONE, "its kind of filter"),
    FIELD(struct block_made, lines, NONE, "lines that were read"),
    FIELD(struct block_made, entries, NONE, "prefixes in them"),
    FIELD(struct block_made, bad, NONE, "lines that were skipped"),
    FIELD(struct block_made, prefixes, NONE, "different prefixes"),
    FIELD(struct block_made, lengths4, NONE, "lengths of IPv4 that occur"),
    FIELD(struct block_made, lengths6, NONE, "lengths of IPv6 that occur"),
    FIELD(struct block_made, bytes, BYTES, "of the filter"),
    FIELD(struct block_made, fpr, RATE,
          "of packets from others that it stops, at most"),
    FIELD(struct block_made, ttl, SECONDS,
          "that an entry stays at least, and twice that at most; 0: for ever"),
    { 0 },
};

static const struct field block_rule_fields[] = {
    FIELD(struct block_rule, version, NONE, "of IP"),
    FIELD(struct block_rule, bits, NONE, "length of the prefix"),
    FIELD(struct block_rule, packets, NONE, "packets that it stops"),
    FIELD(struct block_rule, bytes, BYTES, "their bytes"),
    { 0 },
};

static const struct field block_victim_fields[] = {
    FIELD(struct block_victim, address, NONE, "that is not listed"),
    FIELD(struct block_victim, packets, NONE, "of its packets, stopped"),
    FIELD(struct block_victim, bytes, BYTES, "their bytes"),
    { 0 },
};

const struct field block_sum_fields[] = {
    MEMBERS(struct block_summary, totals, NONE, total_fields),
    FIELD(struct block_summary, stopped, NONE, "packets that are stopped"),
    FIELD(struct block_summary, stopped_bytes, BYTES, "their bytes"),
    FIELD(struct block_summary, allowed, NONE,
          "packets that would be, but are allowed"),
    LIST(struct block_summary, "rules", rules, nrules, AT, block_rule_fields,
         "what each length stops, longest first"),
    FIELD(struct block_summary, mistaken, OPTIONAL,
          "with --exact: of the stopped, packets from others"),
    FIELD(struct block_summary, mistaken_bytes, BYTES | OPTIONAL,
          "their bytes"),
    FIELD(struct block_summary, missed, OPTIONAL,
          "with --exact: packets from listed addresses that pass; 0, unless "
          "the list is of another file"),
    LIST(struct block_summary, "victims", victims, nvictims, AT,
         block_victim_fields, "with --exact: who is hit by mistake"),
    FIELD(struct block_summary, others, NONE,
          "packets of further victims that there was no room for"),
    FIELD(struct block_summary, disagree, OPTIONAL,
          "with --kernel: packets on which the kernel's program disagrees; 0"),
    FIELD(struct block_summary, ns_passed, NANOSECONDS | OPTIONAL,
          "with --kernel: time of the program for a packet that passes"),
    FIELD(struct block_summary, ns_stopped, NANOSECONDS | OPTIONAL,
          "with --kernel: for one that is stopped"),
    FIELD(struct block_summary, ns_empty, NANOSECONDS | OPTIONAL,
          "with --kernel: of a program that does nothing, which is in both"),
    { 0 },
};

const struct field block_state_fields[] = {
    FIELD(struct block_state, interface, NONE, "where packets are stopped"),
    FIELD(struct block_state, mode, OPTIONAL,
          "who runs the program: the driver (native), the kernel behind it "
          "(generic) or the card (offloaded)"),
    FIELD(struct block_state, stopped, NONE, "packets that were stopped"),
    FIELD(struct block_state, stopped_bytes, BYTES, "their bytes"),
    FIELD(struct block_state, allowed, NONE,
          "packets that were listed, but are allowed"),
    FIELD(struct block_state, allowed_bytes, BYTES, "their bytes"),
    FIELD(struct block_state, passed, NONE, "packets that are not listed"),
    FIELD(struct block_state, passed_bytes, BYTES, "their bytes"),
    FIELD(struct block_state, other, NONE, "packets that are not IP, and pass"),
    FIELD(struct block_state, other_bytes, BYTES, "their bytes"),
    FIELD(struct block_state, only, NONE,
          "--only: what is not listed is stopped"),
    FIELD(struct block_state, entries, NONE,
          "entries that --add, times or guard have brought"),
    FIELD(struct block_state, timed, NONE, "of them, those that expire"),
    FIELD(struct block_state, released, NONE,
          "entries of the list that are released"),
    FIELD(struct block_state, room, NONE, "entries that there is room for"),
    FIELD(struct block_state, no_room, NONE, "entries that found no room"),
    LIST(struct block_state, "rules", rules, nrules, AT, block_rule_fields,
         "what each length has stopped, longest first; with --only, what it "
         "let pass"),
    { 0 },
};

const struct field block_changed_fields[] = {
    FIELD(struct block_changed, interface, NONE, "where the list is"),
    FIELD(struct block_changed, added, NONE, "entries that are new"),
    FIELD(struct block_changed, renewed, NONE,
          "that were there, and have the time that was given now"),
    FIELD(struct block_changed, released, NONE, "that are no longer listed"),
    FIELD(struct block_changed, missing, NONE, "that were not listed"),
    FIELD(struct block_changed, no_room, NONE, "that found no room"),
    FIELD(struct block_changed, room, NONE, "entries that there is room for"),
    { 0 },
};

const struct field guard_row_fields[] = {
    FIELD(struct guard_row, time, SECONDS, "when, since 1970"),
    FIELD(struct guard_row, event, NONE, "block, release, or no room"),
    FIELD(struct guard_row, source, NONE, "the address, or prefix"),
    FIELD(struct guard_row, seconds, SECONDS,
          "in which it sent what follows; of a release, for which it was "
          "blocked"),
    FIELD(struct guard_row, packets, NONE,
          "that it sent; of a release, that were stopped"),
    FIELD(struct guard_row, bytes, BYTES,
          "likewise; 0: only packets are counted"),
    FIELD(struct guard_row, senders, NONE,
          "no room: how often one was not blocked"),
    { 0 },
};

const struct field guard_fields[] = {
    MEMBERS(struct guard_summary, totals, NONE, total_fields),
    FIELD(struct guard_summary, dry_run, NONE, "nothing was really blocked"),
    FIELD(struct guard_summary, blocked, NONE, "how often one was blocked"),
    FIELD(struct guard_summary, released, NONE, "and released"),
    FIELD(struct guard_summary, most, NONE,
          "blocked at the same time, at most"),
    FIELD(struct guard_summary, no_room, NONE,
          "times that a heavy one found no room, and was not blocked"),
    FIELD(struct guard_summary, spared, NONE,
          "times that one of --allow sent too much"),
    FIELD(struct guard_summary, stopped, NONE, "packets that were stopped"),
    FIELD(struct guard_summary, stopped_bytes, BYTES, "their bytes"),
    FIELD(struct guard_summary, memory, BYTES, "of counters and lists"),
    { 0 },
};

const struct field scan_row_fields[] = {
    FIELD(struct scan_row, file, NONE, "the file, capture or interface"),
    FIELD(struct scan_row, flow, OPTIONAL, "the flow, of a capture"),
    FIELD(struct scan_row, packet, NONE | OPTIONAL | ZERO,
          "number of the packet that it ends in, of a capture"),
    FIELD(struct scan_row, offset, NONE,
          "where it begins: in the file, the TCP stream or the payload"),
    FIELD(struct scan_row, rule, NONE, "sid of the rule, or its line"),
    FIELD(struct scan_row, line, NONE, "of the string in its file"),
    FIELD(struct scan_row, string, NONE, "the string"),
    { 0 },
};

const struct field scan_fields[] = {
    FIELD(struct scan_summary, matches, NONE, "matches in all"),
    FIELD(struct scan_summary, strings, NONE, "strings that were looked for"),
    FIELD(struct scan_summary, groups, NONE, "groups of them, by length"),
    FIELD(struct scan_summary, memory, BYTES, "of the filters and tables"),
    FIELD(struct scan_summary, bytes, BYTES, "that were looked through"),
    FIELD(
        struct scan_summary, computed, NONE,
        "windows per byte that should pass the filters, if bytes were random"),
    FIELD(struct scan_summary, passed, NONE, "windows per byte that did"),
    FIELD(struct scan_summary, compared, NONE,
          "strings per byte that were compared"),
    FIELD(struct scan_summary, packets, NONE, "packets of captures"),
    FIELD(struct scan_summary, other, NONE,
          "packets that are not IP, or have wrong lengths"),
    FIELD(struct scan_summary, cut, NONE, "packets that were captured in part"),
    FIELD(struct scan_summary, lost, NONE,
          "packets of an interface that came too fast to be looked at"),
    FIELD(struct scan_summary, fragments, NONE,
          "later fragments, looked at each by itself"),
    FIELD(struct scan_summary, streams, NONE, "directions of TCP connections"),
    FIELD(struct scan_summary, gaps, NONE,
          "places in them where bytes are missing"),
    FIELD(struct scan_summary, evicted, NONE,
          "streams that were forgotten before they ended"),
    FIELD(struct scan_summary, late, BYTES,
          "that came too late or too far from their stream, and were looked at "
          "by segment"),
    FIELD(struct scan_summary, changed, BYTES,
          "that were sent again with other values, and were looked at by "
          "segment"),
    FIELD(struct scan_summary, without, NONE, "rules without content"),
    FIELD(struct scan_summary, absent, NONE,
          "contents that must be absent, which were left out"),
    { 0 },
};

const struct field digest_fields[] = {
    MEMBERS(struct digest_summary, totals, NONE, total_fields),
    FIELD(struct digest_summary, tables, NONE, "tables that were made"),
    FIELD(struct digest_summary, sides, NONE,
          "packets that are changed on the way, in side tables"),
    FIELD(struct digest_summary, file, BYTES, "of the file"),
    FIELD(struct digest_summary, share, SHARE | MAYBE,
          "bytes of the file by those of the packets"),
    FIELD(struct digest_summary, rate, RATE,
          "of other packets that seem to be in a table, at most"),
    { 0 },
};

const struct field trace_row_fields[] = {
    FIELD(struct trace_row, hops, NONE, "from where the walk began"),
    FIELD(struct trace_row, router, NONE, "that was asked"),
    FIELD(struct trace_row, from, MAYBE,
          "its neighbour that the packet went to; null: where it began"),
    FIELD(struct trace_row, answer, NONE,
          "no, maybe, changed, no table of that time, forgotten, or no answer"),
    FIELD(struct trace_row, change, OPTIONAL, "nat, tunnel or fragment"),
    FIELD(struct trace_row, last, NONE,
          "the packet passed, and no router behind it says so"),
    { 0 },
};

const struct field trace_fields[] = {
    FIELD(struct trace_summary, asked, NONE, "routers that were asked"),
    FIELD(struct trace_summary, passed, NONE,
          "that the packet may have passed"),
    FIELD(struct trace_summary, last, NONE, "of them, where it may have begun"),
    FIELD(struct trace_summary, silent, NONE,
          "routers without a table of that time"),
    FIELD(struct trace_summary, forgotten, NONE,
          "routers whose table of that time has aged out"),
    FIELD(struct trace_summary, absent, NONE, "routers that do not answer"),
    { 0 },
};

const struct field queue_row_fields[] = {
    FIELD(struct queue_row, queue, NONE, "drop-tail or sfb"),
    FIELD(struct queue_row, use, SHARE, "of the link that was used"),
    FIELD(struct queue_row, fair, NONE, "bits per second of a fair share"),
    FIELD(struct queue_row, constant, NONE,
          "bits per second that the constant sender got"),
    FIELD(struct queue_row, times, NONE, "the same, in fair shares"),
    FIELD(struct queue_row, yielding, NONE,
          "bits per second that a source which yields got, on average"),
    FIELD(struct queue_row, constant_lost, SHARE,
          "of the constant sender's packets"),
    FIELD(struct queue_row, yielding_lost, SHARE, "of the others' packets"),
    { 0 },
};

const struct field queue_fields[] = {
    MEMBERS(struct queue_summary, totals, NONE, total_fields),
    FIELD(struct queue_summary, taken, NONE, "packets that were sent"),
    FIELD(struct queue_summary, sent, BYTES, "of these"),
    FIELD(struct queue_summary, early, NONE,
          "packets dropped by chance, before there is no room"),
    FIELD(struct queue_summary, penalty, NONE,
          "packets dropped of flows that do not yield"),
    FIELD(struct queue_summary, full, NONE,
          "packets dropped since bins or the queue were full"),
    FIELD(struct queue_summary, rehashes, NONE,
          "how often another set of bins took over"),
    FIELD(struct queue_summary, refused, NONE,
          "packets that the interface did not take"),
    { 0 },
};

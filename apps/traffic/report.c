/*
 * report.c - what bloomery traffic tells
 */
#include "apps/traffic/args.h"

static const struct field total_fields[] = {
    FIELD(struct traffic_totals, packets, NONE, "packets in all"),
    FIELD(struct traffic_totals, bytes, BYTES, "their bytes on the wire"),
    FIELD(struct traffic_totals, other, NONE, "packets that are no IP"),
    FIELD(struct traffic_totals, cut, NONE,
          "packets captured too short for the key"),
    FIELD(struct traffic_totals, bad, NONE,
          "packets whose lengths contradict each other"),
    FIELD(struct traffic_totals, backwards, NONE,
          "packets that are older than their interval"),
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
    FIELD(struct block_state, stopped, NONE, "packets that were stopped"),
    FIELD(struct block_state, stopped_bytes, BYTES, "their bytes"),
    FIELD(struct block_state, allowed, NONE,
          "packets that were listed, but are allowed"),
    FIELD(struct block_state, allowed_bytes, BYTES, "their bytes"),
    FIELD(struct block_state, passed, NONE, "packets that are not listed"),
    FIELD(struct block_state, passed_bytes, BYTES, "their bytes"),
    FIELD(struct block_state, other, NONE, "packets that are no IP, and pass"),
    FIELD(struct block_state, other_bytes, BYTES, "their bytes"),
    LIST(struct block_state, "rules", rules, nrules, AT, block_rule_fields,
         "what each length has stopped, longest first"),
    { 0 },
};

const struct report traffic_reports[] = {
    { "flows: each flow", flow_fields, LINES },
    { "flows: at the end", flows_fields, ONE },
    { "count: each flow", count_fields, LINES },
    { "count: at the end", count_sum_fields, ONE },
    { "block -o, --into", block_made_fields, ONE },
    { "block LIST CAPTURE", block_sum_fields, ONE },
    { "block --status", block_state_fields, ONE },
    { 0 },
};

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

const struct report traffic_reports[] = {
    { "flows: each flow", flow_fields, LINES },
    { "flows: at the end", flows_fields, ONE },
    { 0 },
};

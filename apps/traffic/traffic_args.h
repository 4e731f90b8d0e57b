/*
 * traffic_args.h - what bloomery traffic is told, and what it tells: all that
 * is there without libpcap too
 */
#ifndef BLY_TRAFFIC_ARGS_H
#define BLY_TRAFFIC_ARGS_H

#include "apps/traffic/flows_history.h"
#include "report/fields.h"
#include "report/words.h"

/* What several verbs are told. */
struct traffic_args {
    const char *key, *interface, *output;
    double interval; /* seconds; 0: the whole capture */
    unsigned form;   /* table, or 1: csv */
    uint64_t entries, seed;
    uint64_t number; /* --count: of packets, or of one packet */
    uint64_t nflows; /* --flows: gen, and the simulation of queue */
    bool inner, json;

    /* And what each of them alone is told. */
    struct flows_args {
        const char *threshold, *plot;
        history_draw *draw; /* what makes the picture */
        uint64_t stages, counters, top;
        bool serial, shared, plain, unshielded;
    } flows;
    struct gen_args {
        double skew;
    } gen;
    struct count_args {
        const char *keys;
        unsigned sketch; /* enum tally_kind */
        double error;
    } count;
    struct block_args {
        const char *into, *exact, *allow, *key_file;
        const char *xdp, *detach, *status, *pins, *add, *release;
        uint64_t items, ttl;
        double fpr;
        bool skip_bad, kernel, empty, only;
    } block;
    struct guard_args {
        uint64_t bytes, packets, counters; /* per second; per stage */
        uint64_t ttl;
        bool dry_run;
    } guard;
    struct scan_args {
        const char *rules, *strings;
        uint64_t memory;
        bool nocase, raw, automaton, per_length, summary;
    } scan;
    struct digest_args {
        const char *router, *nat, *listen, *ask_key;
        struct list neighbours; /* NAME=ADDRESS:PORT */
        uint64_t bits, mtu;
        double keep; /* seconds; 0: as many tables as there is room for */
    } digest;
    struct trace_args {
        const char *topology, *packet, *from, *ask, *ask_key;
        double within, time;
        uint64_t patience;
    } trace;
    struct queue_args {
        const char *tun, *out;
        double rate, sender, rehash, warmup;
        uint64_t levels, bins, target, limit;
        bool tail;
    } queue;
};

/* What was read, whatever was looked for in it. */
struct traffic_totals {
    uint64_t packets, bytes; /* as they were on the wire */
    uint64_t other, cut, bad, backwards, lost;
    double seconds; /* from the first packet to the last */
};

struct flows_summary {
    struct traffic_totals totals;
    uint64_t intervals, flows, dropped;
    uint64_t threshold, stages, counters, entries, memory;
};

/* A flow of an interval. */
struct flow_row {
    double interval; /* when it began, in seconds since 1970 */
    char key[128];
    uint64_t bytes, bytes_max, packets;
};

/* What a sketch has counted of a flow; NULL: more than it can count. */
struct count_row {
    char key[128];
    const uint64_t *packets, *bytes;
};

struct count_summary {
    struct traffic_totals totals;
    const char *sketch;
    uint64_t flows, memory;
    double packets_over, bytes_over, delta; /* countmin */
    double wrong;                           /* spectral */
    double relative;                        /* spacecode */
};

/* A list that was made. */
struct block_made {
    const char *file, *kind;
    uint64_t lines, entries, bad; /* of the lists that were read */
    uint64_t prefixes;            /* that are different */
    uint64_t lengths4, lengths6;  /* how many occur */
    uint64_t bytes, ttl;
    double fpr; /* per packet */
};

/* What a list did, by the length of the prefix. */
struct block_rule {
    unsigned version, bits;
    uint64_t packets, bytes;
};

/* Who was hit by mistake. */
struct block_victim {
    char address[64];
    uint64_t packets, bytes;
};

struct block_summary {
    struct traffic_totals totals;
    uint64_t stopped, stopped_bytes, allowed;
    const struct block_rule *rules;
    size_t nrules;
    /* With the exact list; NULL without. */
    const uint64_t *mistaken, *mistaken_bytes, *missed;
    const struct block_victim *victims;
    size_t nvictims;
    uint64_t others; /* victims that there was no room for */
    /* With --kernel; NAN and NULL without. */
    const uint64_t *disagree;
    double ns_passed, ns_stopped, ns_empty;
};

/* What the kernel has counted. */
struct block_state {
    const char *interface, *mode;
    uint64_t passed, passed_bytes, allowed, allowed_bytes, other, other_bytes;
    uint64_t stopped, stopped_bytes;
    bool only; /* rules are of what passes */
    uint64_t entries, timed, released, room, no_room;
    const struct block_rule *rules;
    size_t nrules;
};

/* What --add and --release did. */
struct block_changed {
    const char *interface;
    uint64_t added, renewed, released, missing, no_room, room;
    bool longer; /* lengths are new: the program does not ask for them yet */
};

extern const struct field block_made_fields[], block_sum_fields[];
extern const struct field block_state_fields[], block_changed_fields[];

/* guard: what it did, and what there was in all. */
struct guard_row {
    double time;
    const char *event; /* "block", "release", "no room" */
    char source[64];
    double seconds; /* that were counted, or that it was blocked */
    uint64_t packets, bytes, senders;
};

struct guard_summary {
    struct traffic_totals totals;
    uint64_t blocked, released, most, no_room, spared;
    uint64_t stopped, stopped_bytes; /* from those who were blocked */
    uint64_t memory;
    bool dry_run;
};

extern const struct field guard_row_fields[], guard_fields[];

/* scan: a match, and what there was in all. */
struct scan_row {
    const char *file, *flow;
    uint64_t packet, offset, rule, line;
    bly_bytes string;
};

struct scan_summary {
    uint64_t strings, groups, memory, bytes, matches;
    double passed, computed, compared; /* per byte */
    uint64_t packets, other, cut, lost, fragments, streams, gaps, evicted;
    uint64_t late, changed; /* bytes of streams */
    uint64_t without, absent;
};

extern const struct field scan_row_fields[], scan_fields[];

struct digest_summary {
    struct traffic_totals totals;
    uint64_t tables, sides, file;
    double share, rate;
};

/* trace: a router that was asked, and what there was in all. */
struct trace_row {
    const char *router, *from, *answer, *change;
    unsigned hops;
    bool last;
};

struct trace_summary {
    uint64_t asked, passed, last, silent, forgotten, absent;
};

/* queue: a simulated one, and a capture that went through. */
struct queue_row {
    const char *queue;
    double use, fair, constant, times, yielding, constant_lost, yielding_lost;
};

struct queue_summary {
    struct traffic_totals totals;
    uint64_t taken, early, penalty, full, sent, rehashes, refused;
};

extern const struct field queue_row_fields[], queue_fields[];
extern const struct field digest_fields[], trace_row_fields[], trace_fields[];
extern const struct field flow_fields[], flows_fields[];
extern const struct field count_fields[], count_sum_fields[];

#endif

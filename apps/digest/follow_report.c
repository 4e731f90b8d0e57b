/*
 * follow_report.c - what digest follow and digest peers report
 */
#include "apps/digest/follow_report.h"

const struct field following_fields[] = {
    FIELD(struct following, source, NONE, "the file that is followed"),
    FIELD(struct following, form, NONE, "swap.state or store.log"),
    FIELD(struct following, entries, NONE, "objects in the cache"),
    FIELD(struct following, capacity, NONE, "that the filter has room for"),
    FIELD(struct following, memory, BYTES, "of the counting filter"),
    FIELD(struct following, updates, MAYBE, "where peers are told"),
    { 0 },
};

const struct field followed_fields[] = {
    FIELD(struct followed, entries, NONE, "objects in the cache"),
    NAMED(struct followed, "came", cache.came, NONE, "objects since the start"),
    NAMED(struct followed, "went", cache.went, NONE, "objects since the start"),
    NAMED(struct followed, "records", cache.records, NONE,
          "records or lines that were read"),
    NAMED(struct followed, "unknown", cache.unknown, NONE,
          "those that say nothing"),
    NAMED(struct followed, "cut", cache.cut, NONE,
          "those whose end never came"),
    NAMED(struct followed, "strays", cache.strays, NONE,
          "objects that went without having come"),
    NAMED(struct followed, "rotations", cache.rotations, NONE,
          "times that a log began again"),
    NAMED(struct followed, "rebuilt", cache.rebuilt, NONE,
          "times that the filter was made again"),
    FIELD(struct followed, stuck, NONE, "cells that no longer count"),
    NAMED(struct followed, "versions", told.versions, NONE,
          "of the digest, for peers"),
    NAMED(struct followed, "listeners", told.listeners, NONE,
          "connections of peers"),
    NAMED(struct followed, "wholes", told.wholes, NONE,
          "whole digests that were sent to them"),
    NAMED(struct followed, "whole_bytes", told.whole_bytes, BYTES,
          "in these messages"),
    NAMED(struct followed, "deltas", told.deltas, NONE,
          "deltas that were sent to them"),
    NAMED(struct followed, "delta_bytes", told.delta_bytes, BYTES,
          "in these messages"),
    NAMED(struct followed, "would_be", told.would_be, BYTES,
          "had each of these messages been a whole digest"),
    { 0 },
};

const struct field peer_start_fields[] = {
    FIELD(struct asked_peer, peer, NONE, "its name and where it tells"),
    FIELD(struct asked_peer, icp, MAYBE, "where ICP is answered for it"),
    { 0 },
};

const struct field peer_end_fields[] = {
    FIELD(struct asked_peer, peer, NONE, "its name and where it tells"),
    FIELD(struct asked_peer, questions, NONE, "URLs that were asked for"),
    FIELD(struct asked_peer, hits, NONE, "those that it may have"),
    FIELD(struct asked_peer, wrong, NONE, "packets that ask for nothing"),
    NAMED(struct asked_peer, "heard", told.heard, NONE, "it told its digest"),
    NAMED(struct asked_peer, "entries", told.entries, NONE,
          "objects that it has"),
    NAMED(struct asked_peer, "wholes", told.wholes, NONE,
          "whole digests that came from it"),
    NAMED(struct asked_peer, "deltas", told.deltas, NONE,
          "deltas that came from it"),
    NAMED(struct asked_peer, "bytes", told.bytes, BYTES, "in all of these"),
    NAMED(struct asked_peer, "refused", told.refused, NONE,
          "updates that could not be right"),
    NAMED(struct asked_peer, "greetings", told.greetings, NONE,
          "connections to it"),
    { 0 },
};

const struct field peer_url_fields[] = {
    FIELD(struct asked_url, key, NONE, "the URL"),
    FIELD(struct asked_url, peers, NONE, "names of those that may have it"),
    { 0 },
};

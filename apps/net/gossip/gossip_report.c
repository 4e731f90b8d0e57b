/*
 * gossip_report.c - what search and peers print
 */
#include "apps/net/gossip/gossip_node.h"

static const struct field hit_fields[] = {
    FIELD(struct search_hit, peer, NONE, "who has it"),
    FIELD(struct search_hit, path, NONE, "its path in the folder of the peer"),
    FIELD(struct search_hit, score, NONE, "by which it is ranked"),
    FIELD(struct search_hit, context, NONE, "a line of it"),
    { 0 },
};

const struct field search_fields[] = {
    LIST(struct search_report, "documents", hits, nhits, AT, hit_fields,
         "best first"),
    FIELD(struct search_report, peers, NONE, "whose filters are known"),
    FIELD(struct search_report, with_words, NONE,
          "of them that seem to have one of the words"),
    FIELD(struct search_report, asked, NONE, "of them that were asked"),
    FIELD(struct search_report, silent, NONE, "of them that did not answer"),
    { 0 },
};

const struct field listed_peer_fields[] = {
    FIELD(struct listed_peer, address, NONE, "where it listens"),
    FIELD(struct listed_peer, version, NONE,
          "of its words; 0: not heard of yet"),
    FIELD(struct listed_peer, filter, BYTES,
          "of the filter of its words; 0: there is none"),
    FIELD(struct listed_peer, silent, NONE,
          "times in a row that it did not answer"),
    { 0 },
};

#define NUMBER(name, which, how, help) \
    NAMED(struct peers_report, name, numbers[which], how, help)

const struct field peers_fields[] = {
    NUMBER("documents", PEER_DOCUMENTS, NONE, "in its own folder"),
    NUMBER("words", PEER_WORDS, NONE, "different ones in them"),
    NUMBER("left_out", PEER_LEFT_OUT, NONE, "files that are not documents"),
    NUMBER("rumours", PEER_RUMOURS, NONE, "times that it told some"),
    NUMBER("compared", PEER_COMPARED, NONE, "directories with others"),
    NUMBER("fetched", PEER_FETCHED, NONE, "filters from others"),
    NUMBER("deltas", PEER_DELTAS, NONE, "of them as what had changed"),
    NUMBER("silent", PEER_SILENT, NONE, "questions without an answer"),
    NUMBER("refused", PEER_REFUSED, NONE, "questions, and filters of others"),
    NUMBER("hot", PEER_HOT, NONE, "rumours that it still tells"),
    NUMBER("bytes_in", PEER_BYTES_IN, BYTES, "from others"),
    NUMBER("bytes_out", PEER_BYTES_OUT, BYTES, "to others"),
    NUMBER("bad", PEER_BAD, NONE, "connections that sent no frames"),
    NUMBER("milliseconds", PEER_MILLISECONDS, NONE, "since it was started"),
    LIST(struct peers_report, "peers", peers, npeers, AT, listed_peer_fields,
         "that it knows, itself first"),
    { 0 },
};

/*
 * gossip_node.h - a peer over TCP, and asking one: bloomery net peer, search
 */
#ifndef BLY_GOSSIP_NODE_H
#define BLY_GOSSIP_NODE_H

#include "report/fields.h"
#include "report/words.h"

struct peer_args {
    const char *listen, *key;
    struct list join;
    const char *at;
    uint64_t interval, rescan, patience, best, vain;
    bool json;
};

#define PEER_INTERVAL 1000 /* milliseconds, if none are given */
#define PEER_RESCAN 5000
#define PEER_PATIENCE 250

/* The verbs; YES, NO or TROUBLE with the reason printed. */
int gossip_peer(const struct peer_args *a, const char *folder);
int gossip_find_words(const struct peer_args *a, const struct list *words);
int gossip_peers(const struct peer_args *a, const char *where);

extern const struct field search_fields[], peers_fields[];

/* The name of the network in frames. */
uint64_t gossip_network(void);

/* What a peer tells of itself, in this order. */
enum peer_number {
    PEER_DOCUMENTS,
    PEER_WORDS,
    PEER_LEFT_OUT,
    PEER_RUMOURS,
    PEER_COMPARED,
    PEER_FETCHED,
    PEER_DELTAS,
    PEER_SILENT,
    PEER_REFUSED,
    PEER_HOT,
    PEER_BYTES_IN,
    PEER_BYTES_OUT,
    PEER_BAD,
    PEER_MILLISECONDS,
    PEER_NUMBERS
};

#endif

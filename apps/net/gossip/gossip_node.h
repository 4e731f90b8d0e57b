/*
 * gossip_node.h - a peer over TCP, and asking one: bloomery net peer, search
 */
#ifndef BLY_GOSSIP_NODE_H
#define BLY_GOSSIP_NODE_H

#include <bloomery.h>

#include "io/html/html.h"
#include "report/fields.h"
#include "report/words.h"
#include "wire/address.h"

struct peer_args {
    struct html_wish pages; /* of the folder */
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

/* What a search found, and what a peer knows. */
struct search_hit {
    char peer[ADDRESS_TEXT];
    double score;
    bly_bytes path, context;
};

struct search_report {
    struct search_hit *hits;
    size_t nhits;
    uint64_t peers, with_words, asked, silent;
};

struct listed_peer {
    char address[ADDRESS_TEXT];
    uint64_t version, filter, silent;
};

struct peers_report {
    uint64_t numbers[PEER_NUMBERS];
    struct listed_peer *peers;
    size_t npeers;
};

extern const struct field search_fields[], peers_fields[], listed_peer_fields[];

#endif

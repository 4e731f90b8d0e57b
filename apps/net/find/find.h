/*
 * find.h - resource discovery as processes: servers, who announces, who looks
 */
#ifndef BLY_NET_FIND_H
#define BLY_NET_FIND_H

#include "apps/net/find/finder.h"
#include "report/fields.h"
#include "report/words.h"

struct find_args {
    const char *listen, *parent, *network, *key_file, *where, *ring_name;
    struct list neighbours, at, ring;
    uint64_t keys, depth, period, life, ttl, patience;
    unsigned how; /* only this way */
    bool once, json;
};

enum { FIND_NEAR, FIND_TREE, FIND_RING, FIND_ANYHOW };

/* A service that was found. */
struct find_row {
    const char *name, *where, *by, *at;
    const char *tags[SERVICE_TAGS];
    size_t ntags;
    uint64_t hops, asked;
};

/* What a server says of itself. */
struct find_status {
    uint64_t services, links, heard, children, bytes, looks, news, refused,
        expired, full;
};
extern const struct field find_row_fields[], find_status_fields[];

int net_node(const struct find_args *args);
int net_announce(const struct find_args *args, const struct list *words);
int net_find(const struct find_args *args, const struct list *tags);
int net_node_status(const struct find_args *args, const char *address);

#endif

/*
 * mld.h - messages of Multicast Listener Discovery, version 2 (RFC 3810)
 *
 * With them hosts tell the router of their link which groups of which sources
 * they want, and routers tell the next one the same. Only what names sources is
 * used. Bytes in, bytes out; no sockets.
 */
#ifndef BLY_NET_MLD_H
#define BLY_NET_MLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MLD_MOST 1280  /* bytes of a message that is made here */
#define MLD_RECORDS 32 /* pairs in a report that is made here */
#define MLD_WAIT 500   /* milliseconds that an answer may take, as asked */

enum mld_kind { MLD_REPORT, MLD_QUERY };

/* What a record says of the sources that it lists. */
enum mld_says {
    MLD_WANTS, /* these, too */
    MLD_ONLY,  /* these, and no others of the group */
    MLD_LEAVES /* these no longer */
};

struct mld {
    enum mld_kind kind;
    const unsigned char *at; /* records that follow */
    unsigned left;
};

struct mld_record {
    enum mld_says says;
    const unsigned char *group, *sources; /* 16 bytes for each */
    unsigned nsources;
};

/* A message, of which all was looked at; false: it is not one, it was changed
 * on its way, or it comes from another link. */
bool mld_read(const unsigned char *in, size_t n, struct mld *out);

/* Its next record that names sources, or can mean none of them. A query is one
 * record: the group of zeros stands for all, no source for all of a group. */
bool mld_next(struct mld *m, struct mld_record *out);

/* Make a report of up to MLD_RECORDS pairs (a source and a group, 32 bytes)
 * from an address of the link: they are wanted, or no longer. The number of
 * bytes; out has MLD_MOST. */
size_t mld_report(const unsigned char from[16], enum mld_says says,
                  const unsigned char *pairs, size_t n, unsigned char *out);

/* Make a query, for a pair, or for everything if it is NULL. */
size_t mld_query(const unsigned char from[16], const unsigned char *pair,
                 unsigned char *out);

#endif

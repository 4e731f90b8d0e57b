/*
 * node_file.c - a node as bytes
 *
 *     magic              8   \x89 B N O \r \n \x1a \n
 *     version            4   1
 *     depth              4
 *     life, now, ttl     8 each
 *     links              8
 *     bytes of local     8
 *     local                  a .bly file: the counting filter of its own keys
 *     links                  ascending by name, each:
 *         bytes of name  2
 *         name
 *         flags          1   1: heard, 2: lost
 *         life, version, time of what was heard   8 each; 0 unless heard
 *         levels             levels.c, against an empty filter, and zeros up
 *                            to a byte for each 1024 that they take in memory;
 *                            none unless heard
 *     sum                8   XXH3 of all before it
 *
 * What neighbours were told is not written. A node that is read begins a new
 * life and tells everything: it might have gone on after it was saved, and
 * nobody knows what it told then. What it heard is still true, or else its
 * neighbours have told more since; the version says which.
 *
 * Zeros behind the levels bound what a short file from anyone can make a reader
 * allocate, as BLY_CODE_RATIO does for coded filters.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "codec/codec.h"
#include "core/bytes.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/delta.h"
#include "format/filter_files.h"
#include "format/reader.h"
#include "format/replace.h"
#include "kinds/classic.h"
#include "node/node_levels.h"

enum {
    NODE_AT_VERSION = 8,
    NODE_AT_DEPTH = 12,
    NODE_AT_LIFE = 16,
    NODE_AT_NOW = 24,
    NODE_AT_TTL = 32,
    NODE_AT_LINKS = 40,
    NODE_AT_LOCAL = 48,
    NODE_HEADER = 56,
    LINK_NAME = 2,    /* bytes before the name, */
    LINK_HEADER = 25, /* and behind it */
    NODE_SUM = 8
};

#define NODE_VERSION 1
enum { LINK_HEARD = 1, LINK_LOST = 2 };

/* ----------------------------------------------------------------- writing */

/* Bytes on their way out, and their sum. */
typedef struct node_sink {
    bly_put *put;
    void *ctx;
    bly_summing sum;
} node_sink;

static bool sink_put(void *ctx, const void *bytes, size_t nbytes)
{
    node_sink *const s = ctx;
    bly_summing_add(&s->sum, bytes, nbytes);
    return s->put(s->ctx, bytes, nbytes);
}

static bly_status put_failed(void)
{
    return bly_fail(BLY_EIO, "the node could not be written");
}

/* The least that the levels of a link take. */
static size_t levels_least(const bly_node *v)
{
    return (size_t)(v->depth * bly_classic_nbytes(v->m) / BLY_CODE_RATIO);
}

static bly_status link_write(const bly_node *v, const bly_edge *e,
                             const bly_filter *empty, node_sink *to)
{
    size_t nlevels =
        e->heard ? (size_t)bly_levels_bytes(empty, e->heard, NULL) : 0;
    if (e->heard && nlevels < levels_least(v))
        nlevels = levels_least(v);
    const size_t n = LINK_NAME + e->nname + LINK_HEADER + nlevels;
    unsigned char *const bytes = bly_mem_zalloc(&v->mem, n);
    if (!bytes)
        return bly_fail(BLY_ENOMEM, "out of memory");
    bly_store16(bytes, (uint16_t)e->nname);
    memcpy(bytes + LINK_NAME, e->name, e->nname);
    unsigned char *const at = bytes + LINK_NAME + e->nname;
    at[0] = (unsigned char)((e->heard ? LINK_HEARD : 0) |
                            (e->lost ? LINK_LOST : 0));
    bly_store64(at + 1, e->life);
    bly_store64(at + 9, e->version);
    bly_store64(at + 17, e->heard_at);
    if (e->heard)
        bly_levels_write(empty, e->heard, at + LINK_HEADER);
    const bool ok = sink_put(to, bytes, n);
    bly_mem_release(&v->mem, bytes, n);
    return ok ? BLY_OK : put_failed();
}

bly_status bly_node_write(const bly_node *v, bly_put *put, void *ctx)
{
    if (!v || !put)
        return bly_fail_null("v or put");
    unsigned char head[NODE_HEADER] = { 0 }, sum[NODE_SUM];
    node_sink to = { .put = put, .ctx = ctx };
    bly_filter *empty;
    bly_status st =
        bly_filter_make(&bly_kind_attenuated, &v->shape, &v->set, &empty);
    if (st)
        return st;
    memcpy(head, BLY_NODE_MAGIC, NODE_AT_VERSION);
    bly_store32(head + NODE_AT_VERSION, NODE_VERSION);
    bly_store32(head + NODE_AT_DEPTH, (uint32_t)v->depth);
    bly_store64(head + NODE_AT_LIFE, v->life);
    bly_store64(head + NODE_AT_NOW, v->now);
    bly_store64(head + NODE_AT_TTL, v->ttl);
    bly_store64(head + NODE_AT_LINKS, v->nedges);
    bly_store64(head + NODE_AT_LOCAL, bly_written_bytes(v->local));
    bly_summing_start(&to.sum);
    st = sink_put(&to, head, sizeof head) ? bly_write(v->local, sink_put, &to)
                                          : put_failed();
    for (size_t i = 0; i < v->nedges && !st; i++)
        st = link_write(v, v->edge[i], empty, &to);
    bly_free(empty);
    bly_store64(sum, bly_summing_end(&to.sum));
    if (!st && !put(ctx, sum, sizeof sum))
        st = put_failed();
    return st;
}

static bly_status write_node(const void *what, bly_put *put, void *ctx)
{
    return bly_node_write(what, put, ctx);
}

bly_status bly_node_save(const bly_node *v, const char *path)
{
    if (!v || !path)
        return bly_fail_null("v or path");
    return bly_file_save(path, NULL, NULL, write_node, v);
}

/* ----------------------------------------------------------------- reading */

static bly_status node_damaged(const char *what)
{
    return bly_fail(BLY_EFORMAT, "a damaged node: %s", what);
}

/* What a link told. */
static bly_status heard_read(bly_node *v, bly_edge *e, const unsigned char **at,
                             size_t *n)
{
    const size_t least = levels_least(v), all = *n;
    uint64_t flips = 0;
    bly_filter *heard;
    if (all < least)
        return node_damaged("it is cut short");
    const bly_status st = bly_node_levels(v, &heard);
    if (st)
        return st;
    bool right = bly_levels_read(at, n, heard, v->depth, &flips);
    for (; right && all - *n < least; --*n)
        right = *(*at)++ == 0;
    if (!right) {
        bly_free(heard);
        return node_damaged("what a link told is not a list of bits");
    }
    bly_edge_set_heard(v, e, heard);
    return BLY_OK;
}

/* The next link from *at on, of *n bytes from outside, and step over it. */
static bly_status link_read(bly_node *v, const unsigned char **at, size_t *n)
{
    bly_edge *e;
    const size_t nname = *n < LINK_NAME ? 0 : bly_load16(*at);
    if (*n < LINK_NAME + nname + LINK_HEADER)
        return node_damaged("it is cut short");
    const bly_bytes name = { *at + LINK_NAME, nname };
    const size_t before = v->nedges;
    bly_status st = bly_node_link_named(v, name, &e);
    if (st == BLY_EINVAL || (!st && v->edge[before] != e))
        return node_damaged("the names of its links are not in order");
    if (st)
        return st;
    const unsigned char *const is = *at + LINK_NAME + nname;
    *at = is + LINK_HEADER;
    *n -= LINK_NAME + nname + LINK_HEADER;
    e->lost = (is[0] & LINK_LOST) != 0;
    e->life = bly_load64(is + 1);
    e->version = bly_load64(is + 9);
    e->heard_at = bly_load64(is + 17);
    const bool any = is[0] & LINK_HEARD;
    if ((is[0] & ~(LINK_HEARD | LINK_LOST)) ||
        (any ? !e->life || !e->version || e->heard_at > v->now
             : e->life || e->version || e->heard_at))
        return node_damaged("a link contradicts itself");
    return any ? heard_read(v, e, at, n) : BLY_OK;
}

/* The counting filter in n bytes that may be anyone's. */
static bly_status local_read(const unsigned char *at, size_t n,
                             const bly_access *how, bly_filter **out)
{
    const bly_source src = { .bytes = at, .nbytes = n };
    bly_filter *f;
    uint64_t width;
    bly_status st = bly_source_read(&src, how, &f);
    if (st)
        return st;
    if (f->kind != &bly_kind_counting ||
        bly_shape_get(f->kind, &f->shape, "width", &width) ||
        width != BLY_NODE_WIDTH) {
        bly_free(f);
        return node_damaged("its own keys are in a filter of the wrong kind");
    }
    bly_set_coded(f, true);
    *out = f;
    return BLY_OK;
}

static bool node_begins(const unsigned char *at, size_t n)
{
    return n >= NODE_AT_VERSION &&
           memcmp(at, BLY_NODE_MAGIC, NODE_AT_VERSION) == 0;
}

/* All but its links. */
static bly_status node_read(const unsigned char *at, size_t n, uint64_t life,
                            const bly_access *how, bly_node **out)
{
    bly_filter *local = NULL;
    if (!node_begins(at, n))
        return bly_fail(BLY_EFORMAT, "not a node");
    if (n < NODE_HEADER + NODE_SUM)
        return node_damaged("it is cut short");
    if (bly_load32(at + NODE_AT_VERSION) != NODE_VERSION)
        return bly_fail(BLY_EFORMAT,
                        "a node of version %u; this bloomery reads version %d",
                        bly_load32(at + NODE_AT_VERSION), NODE_VERSION);
    if (bly_load64(at + n - NODE_SUM) != bly_checksum(at, n - NODE_SUM))
        return node_damaged("its checksum is wrong");
    const uint64_t depth = bly_load32(at + NODE_AT_DEPTH);
    const uint64_t nlocal = bly_load64(at + NODE_AT_LOCAL);
    const uint64_t before = bly_load64(at + NODE_AT_LIFE);
    if (nlocal > n - NODE_HEADER - NODE_SUM)
        return node_damaged("it is cut short");
    if (bly_load64(at + NODE_AT_LINKS) > BLY_LINKS_MOST)
        return node_damaged("it has more links than a node can have");
    if (life <= before)
        return bly_fail(BLY_EINVAL,
                        "the node was saved in its life %llu: the next one "
                        "needs a larger number than that",
                        (unsigned long long)before);
    bly_status st = local_read(at + NODE_HEADER, (size_t)nlocal, how, &local);
    if (!st)
        st = bly_node_around(local, depth, how->max_bytes, out);
    if (st == BLY_EINVAL)
        return node_damaged("its sizes cannot be");
    if (st)
        return st;
    (*out)->life = life;
    (*out)->now = bly_load64(at + NODE_AT_NOW);
    (*out)->ttl = bly_load64(at + NODE_AT_TTL);
    return BLY_OK;
}

bly_status bly_node_load_sized(const void *bytes, size_t nbytes, uint64_t life,
                               const bly_access *how, bly_node **out,
                               size_t size)
{
    bly_access own = { 0 };
    bly_node *v = NULL;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!bytes && nbytes)
        return bly_fail_null("bytes");
    if (how && !(how = BLY_TAKE(how, size, &own)))
        return BLY_EINVAL;
    if (!how)
        how = &own;
    if (how->blind || how->shared)
        return bly_fail(BLY_EINVAL, "a node needs its secret and has one "
                                    "writer: leave blind and shared out");
    const unsigned char *at = bytes;
    bly_status st = node_read(at, nbytes, life, how, &v);
    if (st)
        return st;
    const uint64_t nlinks = bly_load64(at + NODE_AT_LINKS);
    const size_t front = NODE_HEADER + (size_t)bly_load64(at + NODE_AT_LOCAL);
    size_t left = nbytes - front - NODE_SUM;
    at += front;
    for (uint64_t i = 0; i < nlinks && !st; i++)
        st = link_read(v, &at, &left);
    if (!st && left)
        st = node_damaged("there is something behind its last link");
    if (st)
        bly_node_free(v);
    else
        *out = v;
    return st;
}

/* All of a file, which the caller frees, also if it fails; no more than its
 * beginning if that is not a node's. */
static bly_status file_read(const bly_file *in, const char *path,
                            unsigned char **bytes, size_t *nbytes)
{
    for (size_t room = 65536;; room *= 2) {
        unsigned char *const more = realloc(*bytes, room);
        if (!more)
            return bly_fail(BLY_ENOMEM, "%s: out of memory", path);
        *bytes = more;
        const int64_t got = bly_fd_read(in->fd, more + *nbytes, room - *nbytes);
        if (got < 0)
            return bly_io_fail(path, "read", errno);
        *nbytes += (size_t)got;
        if (*nbytes < room || !node_begins(more, *nbytes))
            return BLY_OK;
        if (room > SIZE_MAX / 2)
            return bly_fail(BLY_ERANGE, "%s: too large", path);
    }
}

bly_status bly_node_open_sized(const char *path, uint64_t life,
                               const bly_access *how, bly_node **out,
                               size_t size)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!path)
        return bly_fail_null("path");
    bly_file in;
    unsigned char *bytes = NULL;
    size_t nbytes = 0;
    bly_status st = bly_file_open(path, &in);
    if (st)
        return st;
    st = file_read(&in, path, &bytes, &nbytes);
    close(in.fd);
    if (!st)
        st = bly_named_fail(
            bly_node_load_sized(bytes, nbytes, life, how, out, size), path);
    free(bytes);
    return st;
}

/*
 * chord_files.c - files on a ring: put, get, rm, ls
 *
 * A file is cut into blocks of at most 1 MiB, each kept under the SHA-256 of
 * its bytes. A manifest, kept under the SHA-256 of "file:" and the name, has
 *
 *     u16 length of the name, name, u64 size, u32 blocks, their digests
 *
 * Blocks never change. Manifests have versions, and a file that was removed is
 * a tombstone, which has the name alone. So everybody can see from a record
 * that it stands under its own digest: a manifest cannot replace a block.
 */
#define _GNU_SOURCE
#include "apps/node/chord_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/node/chord_node.h"
#include "apps/node/names_client.h"
#include "base/byte_order.h"
#include "base/clock.h"
#include "base/grow.h"
#include "io/files.h"
#include "io/digests.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

#define NAME_MOST CHORD_NAME_MOST

/* By default a silent node is left out after 8 s and a few messages; waiting
 * longer than that changes nothing. */
#define USUAL_WAIT 15000

/* ---------------------------------------------------------------- arguments */

static bool take_params(const struct node_args *a, struct chord_params *p)
{
    *p = (struct chord_params){ a->name ? a->name : "ring",
                                a->r ? a->r : CHORD_USUAL_R,
                                a->copies ? a->copies : CHORD_USUAL_COPIES };
    if (p->r > CHORD_MOST_SUCC)
        return refuse("--successors must be from 1 to %d", CHORD_MOST_SUCC);
    if (p->copies > p->r)
        return refuse("--copies must be at most --successors, which is %llu",
                      (unsigned long long)p->r);
    return true;
}

/* A client, which the caller closes and whose secret outlives it; NULL, after
 * printing the reason. A client is open as a whole or not at all. */
static struct chord_client *client_open(const struct node_args *a,
                                        struct secure_secret *secret)
{
    struct chord_params p;
    if (!take_params(a, &p) || !secure_read(a->key, secret))
        return NULL;
    if (!a->at.n || a->at.n > 8) {
        fail("--at ADDRESS:PORT is missing: a member of the ring; at most 8 "
             "are tried in turn");
        return NULL;
    }
    struct chord_client *const c =
        client_new(&p, secret, a->patience ? 4 * a->patience : 10000);
    for (size_t i = 0; c && i < a->at.n; i++)
        if (!address_parse(a->at.at[i], &c->entries[i])) {
            client_close(c);
            return NULL;
        }
    if (c) {
        c->nentries = a->at.n;
        c->wait = a->wait ? a->wait : USUAL_WAIT;
    }
    return c;
}

static bool file_digest(const char *name, unsigned char digest[STORE_DIGEST])
{
    const size_t n = strlen(name);
    if (!n || n > NAME_MOST)
        return refuse("a name on the ring has 1 to %d bytes", NAME_MOST);
    name_digest(name, n, digest);
    return true;
}

/* ---------------------------------------------------------------- manifests */

struct manifest {
    char name[NAME_MOST + 1];
    uint64_t size;
    uint32_t nblocks;
    const unsigned char *digests; /* in the bytes that were read */
};

static bool manifest_read(const unsigned char *bytes, size_t n,
                          struct manifest *m)
{
    struct body b = { bytes, n, false };
    const size_t nname = (size_t)body_number(&b, 2);
    const unsigned char *const name = body_bytes(&b, nname);
    if (!name || !nname || nname > NAME_MOST)
        return false;
    memcpy(m->name, name, nname);
    m->name[nname] = '\0';
    m->size = body_number(&b, 8);
    m->nblocks = (uint32_t)body_number(&b, 4);
    m->digests = b.at;
    return !b.bad && b.n == (size_t)m->nblocks * STORE_DIGEST &&
           m->size <= (uint64_t)m->nblocks * STORE_BLOCK &&
           strlen(m->name) == nname;
}

/* ---------------------------------------------------------------------- put */

static int put_blocks(struct chord_client *c, int fd, const char *path,
                      struct blob *digests, struct node_file *out)
{
    unsigned char *const block = malloc(STORE_BLOCK);
    int status = block ? YES : fail("no memory for a block");
    for (int64_t n; status == YES; out->blocks++) {
        struct stored r = { .counter = 1 };
        unsigned copies = 0;
        n = read_all(fd, block, STORE_BLOCK);
        if (n <= 0) {
            if (n < 0)
                status = fail_path(path, errno);
            break;
        }
        r.nbytes = (uint32_t)n;
        sum_sha256(block, (size_t)n, r.digest);
        if (!client_put(c, &r, block, &copies)) {
            status =
                fail("%s: a block could not be put: %s", path, c->call.why);
            break;
        }
        if (!out->copies || copies < out->copies)
            out->copies = copies;
        out->bytes += (uint64_t)n;
        blob_bytes(digests, r.digest, STORE_DIGEST);
        if (digests->failed || digests->n > STORE_BLOCK)
            status =
                fail("%s: too large: at most 32,000 blocks of 1 MiB", path);
    }
    free(block);
    return status;
}

/* Why a name was not written: exit status 2 either way. */
static int not_written(struct chord_client *c, const char *name, bool unknown)
{
    return fail(unknown ? "%s: it is not known whether the ring has taken it, "
                          "and it may still do so: %s"
                        : "%s: not done: %s",
                name, c->call.why);
}

/* Blocks that nobody used when they were put may be gone if the name came late.
 * Now that it is there, none goes any more: put once more those that remain. */
static int blocks_again(struct chord_client *c, const char *name,
                        const struct blob *digests)
{
    for (size_t at = 0; at < digests->n; at += STORE_DIGEST) {
        struct stored r;
        unsigned char *data = NULL;
        const bool ok =
            client_get(c, digests->at + at, &r, &data) == STORE_OK &&
            client_put(c, &r, data, NULL);
        free(data);
        if (!ok)
            return fail("%s: it took so long that a block may be gone; put it "
                        "again, or run nodes with a larger --reclaim: %s",
                        name, c->call.why);
    }
    return YES;
}

static int put_file(struct chord_client *c, const char *path, const char *name,
                    struct node_file *out)
{
    struct blob digests = { 0 }, manifest = { 0 };
    struct stored r = { .flags = STORE_IS_MANIFEST };
    *out = (struct node_file){ .file = name };
    if (!file_digest(name, r.digest))
        return TROUBLE;
    const int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO)
                                          : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_path(path, errno);
    const uint64_t began = clock_ms();
    c->reclaim = 0;
    int status = put_blocks(c, fd, path, &digests, out);
    close(fd);
    if (status == YES) {
        unsigned copies = 0;
        bool unknown;
        blob_number(&manifest, strlen(name), 2);
        blob_bytes(&manifest, name, strlen(name));
        blob_number(&manifest, out->bytes, 8);
        blob_number(&manifest, out->blocks, 4);
        blob_bytes(&manifest, digests.at, digests.n);
        r.nbytes = (uint32_t)manifest.n;
        if (manifest.failed)
            status = fail("no memory for a manifest");
        else if (client_write_name(c, &r, manifest.at, false, &copies,
                                   &unknown))
            status = not_written(c, name, unknown);
        else if (c->reclaim && clock_ms() - began > c->reclaim / 2)
            status = blocks_again(c, name, &digests);
        if (!out->copies || (copies && copies < out->copies))
            out->copies = copies;
    }
    blob_free(&digests);
    blob_free(&manifest);
    return status;
}

int ring_node_put(const struct node_args *args, const struct list *operands)
{
    struct secure_secret secret;
    if (args->as && operands->n != 1)
        return fail("--as names one file, and there are %zu", operands->n);
    struct chord_client *const c = client_open(args, &secret);
    int status = c ? YES : TROUBLE;
    for (size_t i = 0; i < operands->n && status == YES; i++) {
        const char *const path = operands->at[i];
        const char *const slash = strrchr(path, '/');
        struct node_file out;
        status = put_file(c, path,
                          args->as ? args->as
                          : slash  ? slash + 1
                                   : path,
                          &out);
        if (status == YES && !quiet)
            report(
                stdout, args->json, node_file_fields, &out,
                "{file}: {bytes} in {blocks block/s}[, {copies cop/y/ies}]\n");
    }
    client_close(c);
    return status;
}

/* ---------------------------------------------------------------------- get */

/* The manifest of a name: YES, NO if there is none, TROUBLE with the reason
 * printed. */
static int get_manifest(struct chord_client *c, const char *name,
                        struct stored *r, unsigned char **bytes,
                        struct manifest *m)
{
    unsigned char digest[STORE_DIGEST];
    *bytes = NULL;
    if (!file_digest(name, digest))
        return TROUBLE;
    switch (client_read_name(c, digest, r, bytes)) {
    case STORE_OK:
        break;
    case STORE_NONE:
        return NO;
    default:
        return fail("%s: what the ring has cannot be determined: %s", name,
                    c->call.why);
    }
    if (r->flags & STORE_IS_TOMB)
        return NO;
    if (!manifest_read(*bytes, r->nbytes, m) || strcmp(m->name, name) != 0)
        return fail("%s: its manifest is damaged", name);
    return YES;
}

struct getting {
    struct chord_client *c;
    const struct manifest *m;
    const char *name;
};

static bly_status write_blocks(const void *what, bly_put *put, void *ctx)
{
    const struct getting *const g = what;
    uint64_t left = g->m->size;
    for (uint32_t i = 0; i < g->m->nblocks; i++) {
        struct stored r;
        unsigned char *data = NULL;
        const enum store_result got = client_get(
            g->c, g->m->digests + (size_t)i * STORE_DIGEST, &r, &data);
        if (got != STORE_OK || r.flags || r.nbytes > left) {
            fail("%s: block %u of %u is unavailable%s%s", g->name,
                 (unsigned)i + 1, (unsigned)g->m->nblocks,
                 got == STORE_NONE ? ": nobody has it" : ": ",
                 got == STORE_NONE ? "" : g->c->call.why);
            free(data);
            return BLY_EREFUSED;
        }
        left -= r.nbytes;
        const bool ok = put(ctx, data, r.nbytes);
        free(data);
        if (!ok)
            return BLY_EIO;
    }
    if (left) {
        fail("%s: its blocks have %llu bytes less than its manifest says",
             g->name, (unsigned long long)left);
        return BLY_EREFUSED;
    }
    return BLY_OK;
}

int ring_node_get(const struct node_args *args, const struct list *operands)
{
    struct secure_secret secret;
    struct chord_client *const c = client_open(args, &secret);
    struct manifest *const m = c ? malloc(sizeof *m) : NULL;
    unsigned char *bytes = NULL;
    struct stored r;
    const char *const name = operands->at[0];
    int status = m ? YES : c ? fail("no memory for a manifest") : TROUBLE;
    if (status == YES)
        status = get_manifest(c, name, &r, &bytes, m);
    if (status == NO)
        note("there is no file %s on the ring", name);
    if (status == YES) {
        const struct getting g = { c, m, name };
        const char *const to = args->output ? args->output : "-";
        if (strcmp(to, "-") == 0) {
            int error = 0;
            status = write_blocks(&g, put_stdout, &error) ? TROUBLE : YES;
            if (error)
                status = fail("standard output: %s", strerror(error));
        } else {
            const bly_status st =
                bly_file_save(to, wait_for_lock, NULL, write_blocks, &g);
            status = !st ? YES : st == BLY_EREFUSED ? TROUBLE : fail_library();
        }
    }
    client_close(c);
    free(bytes);
    free(m);
    return status;
}

/* ----------------------------------------------------------------------- rm */

static int remove_file(struct chord_client *c, const char *name)
{
    struct stored r = { .flags = STORE_IS_TOMB };
    struct blob tomb = { 0 };
    bool unknown = false;
    if (!file_digest(name, r.digest))
        return TROUBLE;
    blob_number(&tomb, strlen(name), 2);
    blob_bytes(&tomb, name, strlen(name));
    r.nbytes = (uint32_t)tomb.n;
    int status = tomb.failed ? fail("no memory for a name") : YES;
    if (status == YES)
        switch (client_write_name(c, &r, tomb.at, true, NULL, &unknown)) {
        case STORE_OK:
            break;
        case STORE_NONE:
            note("there is no file %s on the ring", name);
            status = NO;
            break;
        default:
            status = not_written(c, name, unknown);
        }
    blob_free(&tomb);
    return status;
}

int ring_node_rm(const struct node_args *args, const struct list *operands)
{
    struct secure_secret secret;
    struct chord_client *const c = client_open(args, &secret);
    int status = c ? NO : TROUBLE;
    for (size_t i = 0; i < operands->n && status != TROUBLE; i++) {
        const int got = remove_file(c, operands->at[i]);
        if (got != NO)
            status = got;
    }
    client_close(c);
    return status;
}

/* ----------------------------------------------------------- round the ring */

typedef bool member_fn(struct chord_client *c, struct chord_peer at,
                       struct chord_peer pred, void *ctx);

/* Call each for all members, going up from the owner of 0. */
static bool round_the_ring(struct chord_client *c, member_fn *each, void *ctx)
{
    static struct chord_message m;
    struct chord_found f;
    if (!client_owner(c, 0, &f))
        return refuse("the ring cannot be asked: %s", c->call.why);
    struct chord_peer at = f.owner;
    const uint64_t first = at.id;
    for (unsigned steps = 0; steps < BOOK_MOST; steps++) {
        if (!client_state(c, at, &m)) {
            /* It has gone since: ask whoever owns its place now. */
            if (steps && client_owner(c, at.id, &f) && f.owner.id != at.id) {
                at = f.owner;
                continue;
            }
            return refuse("the ring cannot be asked: %s", c->call.why);
        }
        if (!each(c, at, m.peers[0], ctx))
            return false;
        unsigned i = 1;
        while (i < m.npeers && !m.peers[i].at)
            i++;
        if (i == m.npeers)
            return refuse("a member of the ring has no successor");
        const uint64_t before = at.id;
        at = m.peers[i];
        if (chord_within(before, first, at.id))
            return true;
    }
    return refuse("the ring does not end");
}

struct listing {
    const struct node_args *args;
    struct roster roster, later;
    struct stored page[NAMES_PAGE];
    bool own[NAMES_PAGE];
    struct manifest m;
    struct node_file *files;
    size_t n, room;
};

static void listing_empty(struct listing *l)
{
    for (size_t i = 0; i < l->n; i++)
        free((void *)(uintptr_t)l->files[i].file);
    l->n = 0;
}

static bool listing_add(struct listing *l)
{
    if (!GROW(&l->files, &l->room, l->n + 1))
        return false;
    const char *const name = strdup(l->m.name);
    if (!name)
        return false;
    l->files[l->n++] = (struct node_file){ name, l->m.size, l->m.nblocks, 0 };
    return true;
}

/* The files whose primary a process is. */
static bool list_process(struct chord_client *c, struct listing *l,
                         const struct address *at)
{
    unsigned char after[STORE_DIGEST];
    for (bool first = true;; first = false) {
        const int n =
            client_names(c, at, first ? NULL : after, l->page, l->own);
        if (n < 0)
            return false;
        for (int i = 0; i < n; i++) {
            struct stored r;
            unsigned char *bytes = NULL;
            if (!l->own[i] || l->page[i].flags != STORE_IS_MANIFEST)
                continue;
            const enum frame_error e =
                client_name_at(c, at, l->page[i].digest, &r, &bytes);
            const bool ok =
                e == FRAME_NOT_FOUND ||
                (!e &&
                 (r.flags & STORE_IS_TOMB ||
                  (manifest_read(bytes, r.nbytes, &l->m) && listing_add(l))));
            free(bytes);
            if (!ok)
                return false;
        }
        if (n < NAMES_PAGE)
            return true;
        memcpy(after, l->page[n - 1].digest, STORE_DIGEST);
    }
}

/* All files; false if somebody did not answer, or if the holders have changed
 * meanwhile. */
static bool list_all(struct chord_client *c, struct listing *l)
{
    listing_empty(l);
    if (!client_roster(c, &l->roster))
        return false;
    for (unsigned i = 0; i < l->roster.n; i++)
        if (!list_process(c, l, &l->roster.at[i].address))
            return false;
    snprintf(c->call.why, sizeof c->call.why, "those who keep names change");
    return client_roster(c, &l->later) && l->later.epoch == l->roster.epoch;
}

int ring_node_ls(const struct node_args *args, const struct list *operands)
{
    struct secure_secret secret;
    struct chord_client *const c = client_open(args, &secret);
    struct listing *const l = c ? calloc(1, sizeof *l) : NULL;
    (void)operands;
    int status = l ? YES : c ? fail("no memory for a list of files") : TROUBLE;
    bool done = false;
    if (status == YES)
        attempts_begin(c);
    for (unsigned tries = 0;
         status == YES && !done && attempts_go_on(c, tries, 10); tries++)
        done = list_all(c, l);
    if (status == YES && !done)
        status =
            fail("what the ring has cannot be determined: %s", c->call.why);
    for (size_t i = 0; status == YES && i < l->n && !quiet; i++)
        report(stdout, args->json, node_file_fields, &l->files[i],
               "{file}: {bytes} in {blocks block/s}\n");
    if (status == YES && !l->n)
        status = NO;
    if (l) {
        listing_empty(l);
        free(l->files);
    }
    client_close(c);
    free(l);
    return status;
}

static bool note_member(struct chord_client *c, struct chord_peer at,
                        struct chord_peer pred, void *ctx)
{
    struct ring_members *const m = ctx;
    (void)c;
    (void)pred;
    uint64_t *const more = realloc(m->ids, (m->n + 1) * sizeof *more);
    if (!more)
        return refuse("no memory for the members");
    m->ids = more;
    m->ids[m->n++] = at.id;
    return true;
}

bool ring_live(const struct node_args *args, struct ring_members *out)
{
    struct secure_secret secret;
    struct chord_client *const c = client_open(args, &secret);
    *out = (struct ring_members){ 0 };
    const bool ok = c && round_the_ring(c, note_member, out);
    client_close(c);
    return ok;
}

/*
 * chord_names.c - the names of a node: names.h with threads, sockets and a disk
 *
 * A thread, the ruler, asks the other processes of the roster whether they live
 * and does what follows from it. Its state is DIR/ring/roster.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/node/chord_node.h"
#include "base/clock.h"
#include "io/files.h"
#include "report/say.h"

#define ROSTER_FILE_MOST (16u << 20)

/* ----------------------------------------------------------------- the host */

static enum frame_error host_ask(void *by, const struct address *to,
                                 uint8_t type, struct blob *q, struct frame *f)
{
    struct chord_client *const c = by;
    const uint64_t timeout = c->call.timeout;
    /* Questions that need no disk get less time: many processes may be silent,
     * and all others wait for the next roster. */
    if (type == NAMES_PING || type == NAMES_HISTORY || type == NAMES_REPORT ||
        type == NAMES_ADMIT)
        c->call.timeout = timeout / 4;
    const bool answered = call_ask(&c->call, to, type, q, f);
    c->call.timeout = timeout;
    return answered ? call_error(&c->call, f) : FRAME_REFUSED;
}

static bool host_send(void *by, const struct address *to, uint8_t type,
                      struct blob *q, uint32_t *request)
{
    return call_send(&((struct chord_client *)by)->call, to, type, q, request);
}

static enum frame_error host_take(void *by, const struct address *to,
                                  uint32_t request, struct frame *f)
{
    struct chord_client *const c = by;
    if (call_take(&c->call, to, request, f))
        return call_error(&c->call, f);
    return c->call.late ? FRAME_BUSY : FRAME_REFUSED;
}

struct roster_bytes {
    const void *at;
    size_t n;
};

static bly_status roster_write(const void *what, bly_put *put, void *ctx)
{
    const struct roster_bytes *const r = what;
    return put(ctx, r->at, r->n) ? BLY_OK : BLY_EIO;
}

static char *roster_path(const struct node *n, const char *file)
{
    char *path;
    return asprintf(&path, "%s/ring%s", n->spec.folder, file) < 0 ? NULL : path;
}

static bool host_save(void *ctx, const void *bytes, size_t nbytes)
{
    const struct node *const n = ctx;
    char *const path = roster_path(n, "/roster");
    const struct roster_bytes what = { bytes, nbytes };
    const bool ok =
        path && !bly_file_save(path, NULL, NULL, roster_write, &what);
    free(path);
    return ok;
}

static enum store_result host_get(void *ctx, const unsigned char *digest,
                                  struct stored *r, unsigned char **data)
{
    const enum store_result got =
        store_get(((struct node *)ctx)->store, digest, r, data);
    if (got == STORE_OK && !r->flags) { /* a block */
        if (data) {
            free(*data);
            *data = NULL;
        }
        return STORE_NONE;
    }
    return got;
}

static enum store_result host_put(void *ctx, const struct stored *r,
                                  const void *data)
{
    return store_put(((struct node *)ctx)->store, r, data);
}

static void host_drop(void *ctx, const unsigned char *digest)
{
    store_drop(((struct node *)ctx)->store, digest);
}

static size_t host_list(void *ctx, uint64_t a, uint64_t b,
                        const unsigned char *after, struct stored *out,
                        size_t most)
{
    return store_list(((struct node *)ctx)->store, STORE_NAMES, a, b, after,
                      out, most);
}

static const struct names_host names_of_node = { host_ask,  host_save,
                                                 host_get,  host_put,
                                                 host_drop, host_list,
                                                 host_send, host_take };

/* ----------------------------------------------------------------- starting */

/* The bytes of the roster's file; NULL and *there false: there is none. */
static unsigned char *roster_bytes(const char *path, size_t *nbytes,
                                   bool *there)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    unsigned char *const bytes = malloc(ROSTER_FILE_MOST);
    *there = fd >= 0 || errno != ENOENT;
    const int64_t n =
        fd >= 0 && bytes ? read_all(fd, bytes, ROSTER_FILE_MOST) : -1;
    if (fd >= 0)
        close(fd);
    if (n < 0) {
        free(bytes);
        return NULL;
    }
    *nbytes = (size_t)n;
    return bytes;
}

bool node_names_open(struct node *n)
{
    const struct node_spec *const spec = &n->spec;
    const struct roster_entry self = { 0, n->address, (uint16_t)spec->vnodes };
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed || !seed)
        return refuse("the system has no random numbers");
    if (!names_init(&n->names, &names_of_node, n, &self, spec->params.copies,
                    spec->least_copies, seed))
        return refuse("no lock for the names");
    n->named = true;
    char *const folder = roster_path(n, ""), *const path =
                                                 roster_path(n, "/roster");
    size_t nbytes = 0;
    bool there = false, ok = folder && path;
    if (ok && mkdir(folder, 0777) && errno != EEXIST)
        ok = refuse_path(folder, errno);
    unsigned char *const bytes =
        ok ? roster_bytes(path, &nbytes, &there) : NULL;
    if (ok && bytes) {
        const char *const why = names_load(&n->names, bytes, nbytes);
        if (why)
            ok = refuse("%s: %s; if this node's names are on other nodes, too, "
                        "use an empty folder, or remove this file to offer "
                        "them what this node has",
                        path, why);
    } else if (ok && there) {
        ok = refuse_path(path, errno);
    }
    if (ok && !names_state(&n->names).n) {
        /* Names without a roster are of an earlier version. */
        struct stored any;
        n->names.merges = store_list(n->store, STORE_NAMES, UINT64_MAX,
                                     UINT64_MAX, NULL, &any, 1) > 0;
        if (!spec->nentries && !names_found(&n->names))
            ok = refuse("%s: the roster cannot be kept", path);
    }
    free(bytes);
    free(folder);
    free(path);
    return ok;
}

/* ---------------------------------------------------------------- the ruler */

static bool ruler_waits(struct node *n, uint64_t ms)
{
    const struct timespec t = clock_after((int64_t)ms);
    pthread_mutex_lock(&n->lock);
    while (!n->ends && !n->leaves &&
           pthread_cond_timedwait(&n->kept, &n->lock, &t) == 0)
        ;
    const bool goes_on = !n->ends;
    pthread_mutex_unlock(&n->lock);
    return goes_on;
}

static bool is_leaving(struct node *n)
{
    pthread_mutex_lock(&n->lock);
    const bool leaves = n->leaves;
    pthread_mutex_unlock(&n->lock);
    return leaves;
}

static void take_out_tombs(struct node *n)
{
    struct stored *const list = malloc(NAMES_PAGE * sizeof *list);
    unsigned char after[STORE_DIGEST];
    const uint64_t now = (uint64_t)time(NULL);
    bool first = true;
    size_t found = 0;
    do {
        found = list ? store_list(n->store, STORE_NAMES, UINT64_MAX, UINT64_MAX,
                                  first ? NULL : after, list, NAMES_PAGE)
                     : 0;
        for (size_t i = 0; i < found; i++)
            if (list[i].flags & STORE_IS_TOMB &&
                list[i].when + n->spec.absence < now)
                store_drop(n->store, list[i].digest);
        if (found)
            memcpy(after, list[found - 1].digest, STORE_DIGEST);
        first = false;
    } while (found == NAMES_PAGE);
    free(list);
}

/* What can wait: names that differ, damaged ones, those of others. */
static void look_after(struct node *n, struct chord_client *c)
{
    struct stored damaged;
    if (store_damaged_names(n->store, &damaged, 1)) {
        pthread_mutex_lock(&n->names.wants);
        n->names.unsettled = true;
        pthread_mutex_unlock(&n->names.wants);
    }
    const size_t dropped = names_strays(&n->names, c);
    pthread_mutex_lock(&n->lock);
    n->dropped += dropped;
    pthread_mutex_unlock(&n->lock);
    take_out_tombs(n);
}

static void say_once(struct node *n, bool *said)
{
    pthread_mutex_lock(&n->names.wants);
    const bool stranger = n->names.stranger;
    pthread_mutex_unlock(&n->names.wants);
    if (stranger && !*said)
        warn("the names in this folder are those of another ring; this node "
             "keeps only blocks; use an empty folder to keep names of this "
             "ring");
    *said |= stranger;
}

void *node_ruler(void *arg)
{
    struct node *const n = arg;
    struct chord_client *const c = malloc(sizeof *c);
    uint64_t looked = clock_ms(), leaving = 0;
    bool said = false, left = false;
    if (!c)
        return NULL;
    node_client(n, c);
    do {
        const uint64_t now = clock_ms();
        if (is_leaving(n)) {
            leaving = leaving ? leaving : now;
            left =
                names_leave(&n->names, c) || now - leaving > 2 * n->spec.evict;
            if (left)
                break;
            const struct timespec t = { 0, 50000000 };
            nanosleep(&t, NULL);
            names_tick(&n->names, c, NULL, 0, now, n->spec.evict);
            continue;
        }
        names_tick(&n->names, c, n->spec.entries, n->spec.nentries, now,
                   n->spec.evict);
        say_once(n, &said);
        names_settle(&n->names, c);
        if (now - looked >= n->spec.exchange) {
            look_after(n, c);
            looked = now;
        }
    } while (ruler_waits(n, n->spec.period));
    client_free(c);
    free(c);
    node_left(n);
    return NULL;
}

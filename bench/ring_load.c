/*
 * ring_load.c - many clients at once, of a ring or of Redis Cluster
 *
 *     build/bench/ring_load WHAT CLIENTS SECONDS KEYS HOST:PORT...
 *
 * WHAT is lookup, get or cached, of a ring whose members are given, or redis,
 * of a cluster whose processes are given in the order of their slots. KEYS is a
 * file of digests, 32 bytes each; Redis has them in hexadecimal digits. Each
 * client is a thread that asks, waits for the answer, and asks again, for
 * random keys. Prints answers per second, the median and the 99th percentile of
 * waiting times in microseconds, and questions per answer. bench/ring.py starts
 * both sides and calls this.
 *
 * The ring's client is that of `bloomery node get` (chord_client.c), which
 * compares blocks with their digests. The client of Redis is the least that
 * there can be: one send, and receives until the answer is there.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chord/chord_client.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench/measure.h"
#include "io/hex.h"

#define MOST_CLIENTS 256
#define MOST_TIMES (1 << 20) /* that a client remembers */
#define MOST_NODES 64
#define MOST_RANGES 64

static const char *what;
static double seconds;
static struct address nodes[MOST_NODES];
static size_t nnodes, nkeys;
static unsigned char *keys;
static atomic_bool started;

struct client {
    pthread_t thread;
    uint64_t random, asked;
    float *times;
    size_t n;
    bool failed;
};

/* -------------------------------------------------------------------- Redis */

static unsigned slot_of(const char *key, size_t n)
{
    unsigned c = 0;
    for (size_t i = 0; i < n; i++) {
        c ^= (unsigned)(unsigned char)key[i] << 8;
        for (unsigned k = 0; k < 8; k++)
            c = (c << 1 ^ (c & 0x8000 ? 0x1021 : 0)) & 0xffff;
    }
    return c % 16384;
}

struct redis {
    int lines[MOST_NODES];
    char *in;
    size_t room;
};

static bool redis_open(struct redis *r)
{
    const int one = 1;
    r->room = (2 << 20);
    r->in = malloc(r->room);
    for (size_t i = 0; i < nnodes; i++) {
        struct sockaddr_storage to;
        const socklen_t n = address_socket(&nodes[i], &to);
        r->lines[i] = socket(to.ss_family, SOCK_STREAM, 0);
        if (connect(r->lines[i], (struct sockaddr *)&to, n))
            return false;
        setsockopt(r->lines[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return r->in;
}

static bool redis_get(struct redis *r, const unsigned char *digest)
{
    char hex[2 * STORE_DIGEST + 1], ask[128];
    hex_put(digest, STORE_DIGEST, hex);
    hex[2 * STORE_DIGEST] = '\0';
    const int line = r->lines[slot_of(hex, 2 * STORE_DIGEST) * nnodes / 16384];
    const int n =
        snprintf(ask, sizeof ask, "*2\r\n$3\r\nGET\r\n$64\r\n%s\r\n", hex);
    if (send(line, ask, (size_t)n, MSG_NOSIGNAL) != n)
        return false;
    size_t have = 0, want = 0;
    do {
        const ssize_t got = recv(line, r->in + have, r->room - have, 0);
        if (got <= 0)
            return false;
        have += (size_t)got;
        char *const end = want ? NULL : memchr(r->in, '\n', have);
        if (end)
            want = (size_t)(end + 1 - r->in) +
                   (size_t)strtoul(r->in + 1, NULL, 10) + 2;
        if (r->in[0] != '$' || want > r->room)
            return false;
    } while (!want || have < want);
    return true;
}

/* --------------------------------------------------------------------- ring */

struct ranges {
    struct chord_found at[MOST_RANGES];
    size_t n;
};

/* Who owns it: remembered, or asked for. */
static bool cached_owner(struct chord_client *c, struct ranges *r, uint64_t id,
                         struct chord_peer *owner)
{
    for (size_t i = 0; i < r->n; i++)
        if (chord_within(r->at[i].peers[0].id, id, r->at[i].owner.id)) {
            *owner = r->at[i].owner;
            return true;
        }
    struct chord_found f;
    if (!client_owner(c, id, &f))
        return false;
    *owner = f.owner;
    if (r->n < MOST_RANGES)
        r->at[r->n++] = f;
    return true;
}

static bool ring_ask(struct chord_client *c, struct ranges *ranges,
                     const unsigned char *digest)
{
    const uint64_t id = store_id(digest);
    struct chord_found f;
    struct chord_peer owner;
    if (strcmp(what, "lookup") == 0)
        return client_owner(c, id, &f);
    if (strcmp(what, "cached") == 0) {
        if (!cached_owner(c, ranges, id, &owner))
            return false;
    } else {
        if (!client_owner(c, id, &f))
            return false;
        owner = f.owner;
    }
    struct stored r;
    unsigned char *data = NULL;
    const bool ok = !client_get_from(c, owner, digest, true, &r, &data);
    free(data);
    return ok;
}

/* --------------------------------------------------------------------- load */

static void *run_client(void *arg)
{
    struct client *const me = arg;
    const bool redis = strcmp(what, "redis") == 0;
    static const struct secure_secret none;
    const struct chord_params usual = { 0 };
    struct redis r = { .in = NULL };
    struct chord_client *const c = calloc(1, sizeof *c);
    struct ranges *const ranges = calloc(1, sizeof *ranges);
    me->failed = !c || !ranges || (redis && !redis_open(&r));
    if (c && !redis) {
        client_init(c, &usual, &none, 10000);
        /* Clients begin at different members. */
        c->entries[0] = nodes[me->random % nnodes];
        c->nentries = 1;
    }
    while (!atomic_load(&started))
        usleep(1000);
    const double end = clock_seconds() + seconds;
    for (double before = clock_seconds(); before < end && !me->failed;) {
        const unsigned char *const key =
            keys + random_next(&me->random) % nkeys * STORE_DIGEST;
        me->failed = redis ? !redis_get(&r, key) : !ring_ask(c, ranges, key);
        const double now = clock_seconds();
        if (me->n < MOST_TIMES)
            me->times[me->n] = (float)((now - before) * 1e6);
        me->n++;
        before = now;
    }
    if (c && !redis) {
        me->asked = c->call.request;
        if (me->failed)
            fprintf(stderr, "a client failed: %s\n", c->call.why);
        client_free(c);
    }
    me->asked = redis ? me->n : me->asked;
    free(c);
    free(ranges);
    return NULL;
}

static int by_time(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static struct client clients[MOST_CLIENTS];
    const size_t n = argc > 5 ? strtoul(argv[2], NULL, 10) : 0;
    FILE *const from = argc > 5 ? fopen(argv[4], "rb") : NULL;
    if (!from || !n || n > MOST_CLIENTS || argc - 5 > MOST_NODES) {
        fprintf(stderr, "ring_load WHAT CLIENTS SECONDS KEYS HOST:PORT...\n");
        return 2;
    }
    what = argv[1];
    seconds = strtod(argv[3], NULL);
    for (int i = 5; i < argc; i++)
        if (!address_parse(argv[i], &nodes[nnodes++]))
            return 2;
    keys = malloc((size_t)1 << 24);
    nkeys =
        keys ? fread(keys, STORE_DIGEST, ((size_t)1 << 24) / STORE_DIGEST, from)
             : 0;
    fclose(from);
    if (!nkeys)
        return 2;
    for (size_t i = 0; i < n; i++) {
        clients[i].random = mix(i + 1);
        clients[i].times = malloc(MOST_TIMES * sizeof(float));
        if (!clients[i].times ||
            pthread_create(&clients[i].thread, NULL, run_client, &clients[i]))
            return 2;
    }
    atomic_store(&started, true);
    size_t answers = 0, kept = 0;
    uint64_t asked = 0;
    for (size_t i = 0; i < n; i++) {
        pthread_join(clients[i].thread, NULL);
        if (clients[i].failed)
            return 1;
        answers += clients[i].n;
        asked += clients[i].asked;
        kept += clients[i].n < MOST_TIMES ? clients[i].n : MOST_TIMES;
    }
    float *const all = malloc((kept + 1) * sizeof *all);
    size_t at = 0;
    for (size_t i = 0; all && i < n; i++) {
        const size_t some =
            clients[i].n < MOST_TIMES ? clients[i].n : MOST_TIMES;
        memcpy(all + at, clients[i].times, some * sizeof *all);
        at += some;
    }
    if (!all || !kept)
        return 2;
    qsort(all, kept, sizeof *all, by_time);
    printf("%.0f %.0f %.0f %.2f\n", (double)answers / seconds,
           (double)all[kept / 2], (double)all[kept * 99 / 100],
           (double)asked / (double)answers);
    return 0;
}

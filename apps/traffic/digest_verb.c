/*
 * digest_verb.c - bloomery traffic digest: tables of what passed
 *
 * A slice of time lasts as long as --interval says and, on a quiet link, until
 * a table that is worth its header fits into 0.5 % of the bytes. The hashes of
 * its packets are kept until then, so that the filter has the size for as many
 * as there were. Packets that the router changes come on top.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "apps/traffic/each.h"
#include "apps/traffic/spie_net.h"
#include "apps/traffic/traffic.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/random.h"
#include "io/files.h"
#include "report/out.h"
#include "report/say.h"

#define NS 1e9
#define SHARE 0.005       /* of the bytes of the link */
#define LEAST_TABLE 4096. /* bytes of a table that a slice waits for */
#define HEADERS 160.      /* of a table, at most */
#define DEFAULT_BITS 16
#define DEFAULT_SECONDS 10
#define DEFAULT_TABLES 8640            /* a day */
#define MOST_PACKETS ((size_t)1 << 22) /* of a slice: 32 MiB of hashes */
#define MOST_NATS 65536

struct digest_run {
    const struct traffic_args *args;
    int64_t slice;
    size_t keeps; /* tables */
    struct spie_nat *nats;
    size_t nnats;
    struct spie_file file;
    struct digest_summary sum;

    /* The slice that lasts. */
    struct spie_table now;
    bly_hasher hasher;
    uint64_t *hashes;
    size_t sides_room;
    uint64_t slices;
    bool failed; /* packets that were read are in no table */

    /* Questions come from another thread: the file and the slice are used under
     * the lock. */
    pthread_mutex_t lock;
    struct spie_server *server; /* NULL: none are answered */
    bool dropped;               /* tables have aged out */
};

/* Absent where there is no libsodium. */
extern __typeof__(spie_serve) spie_serve __attribute__((weak));
extern __typeof__(spie_serve_end) spie_serve_end __attribute__((weak));

/* ----------------------------------------------------------------- options */

static bool nats_read(struct digest_run *r, const char *path)
{
    FILE *const f = fopen(path, "r");
    char line[256];
    unsigned number = 0;
    bool good = f != NULL;
    if (!f)
        return refuse("%s: cannot be read", path);
    while (good && fgets(line, sizeof line, f)) {
        number++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        good = r->nnats < MOST_NATS && spie_nat_line(line, &r->nats[r->nnats]);
        r->nnats += good;
    }
    fclose(f);
    return good || refuse("%s: line %u: expected 10.0.0.5 192.0.2.1, or with a "
                          "port on both sides: inside, then outside",
                          path, number);
}

static bool digest_options(struct digest_run *r, const struct list *operands)
{
    const struct traffic_args *const a = r->args;
    const double seconds = a->interval > 0 ? a->interval : DEFAULT_SECONDS;
    if (!a->output)
        return refuse("-o FILE is missing: where to write the tables");
    if (!a->interface == !operands->n || operands->n > 1)
        return refuse("usage: bloomery traffic digest CAPTURE -o FILE, or "
                      "--interface NAME");
    const char *name = a->digest.router;
    if (!name) {
        const char *const slash = strrchr(a->output, '/');
        name = slash ? slash + 1 : a->output;
    }
    const size_t n = a->digest.router ? strlen(name) : strcspn(name, ".");
    if (n == 0 || n >= SPIE_NAME)
        return refuse("--router: a name of 1 to %d bytes", SPIE_NAME - 1);
    memcpy(r->file.router, name, n);
    r->slice = (int64_t)(seconds * NS);
    r->keeps = a->entries ? (size_t)a->entries : DEFAULT_TABLES;
    r->hashes = malloc(MOST_PACKETS * sizeof *r->hashes);
    r->nats = a->digest.nat ? malloc(MOST_NATS * sizeof *r->nats) : NULL;
    if (!r->hashes || (a->digest.nat && !r->nats))
        return refuse("out of memory");
    return !a->digest.nat || nats_read(r, a->digest.nat);
}

/* ------------------------------------------------------------------ slices */

static bool seed_next(struct digest_run *r)
{
    uint64_t seed = r->args->seed;
    if (seed)
        seed += r->slices * RANDOM_STEP;
    else if (getrandom(&seed, sizeof seed, 0) < 0)
        return refuse("the system has no random numbers");
    r->slices++;
    r->hasher = (bly_hasher){ .id = BLY_HASH_XXH3, .seed = seed };
    return true;
}

static bly_status file_put(const void *what, bly_put *put, void *ctx)
{
    size_t n;
    unsigned char *const bytes = spie_file_bytes(what, &n);
    const bool done = bytes && put(ctx, bytes, n);
    free(bytes);
    return done ? BLY_OK : bytes ? BLY_EIO : BLY_ENOMEM;
}

static int side_order(const void *a, const void *b)
{
    const struct spie_side *const x = a, *const y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Forget what is too much, or too old. */
static void tables_age(struct digest_run *r)
{
    const struct spie_file *const f = &r->file;
    const int64_t keep = (int64_t)(r->args->digest.keep * NS);
    const int64_t newest = f->ntables ? f->tables[f->ntables - 1].end : 0;
    while (f->ntables > r->keeps ||
           (keep && f->ntables > 1 && f->tables[0].end < newest - keep)) {
        spie_file_drop(&r->file);
        r->dropped = true;
    }
}

/* The slice becomes a table. */
static bool slice_end(struct digest_run *r)
{
    struct spie_table *const t = &r->now;
    const double packets = (double)t->packets;
    if (!t->packets)
        return true;
    /* Who gives bits gets them, and sees the share in the summary. So does who
     * translates: an entry of the side table is many times larger than a packet
     * in the filter, and what it takes must not make the filter useless. */
    const double budget = SHARE * (double)t->bytes - HEADERS;
    const double bits =
        packets * (r->args->digest.bits
                       ? (double)r->args->digest.bits
                       : fmin(DEFAULT_BITS, fmax(1, 8 * budget / packets)));
    if (spie_table_make(r->hasher.seed, r->hashes, (size_t)t->packets,
                        (uint64_t)bits, &t->filter))
        return refuse_library();
    if (t->nsides)
        qsort(t->sides, t->nsides, sizeof *t->sides, side_order);
    r->sum.sides += t->nsides;
    r->sum.tables++;
    const double k = fmax(1, round(bits / packets * 0.6931471805599453));
    const double rate = pow(1 - exp(-k * packets / bits), k);
    r->sum.rate = fmax(r->sum.rate, rate);
    if (!spie_file_add(&r->file, t)) {
        bly_free(t->filter);
        t->filter = NULL;
        return refuse("out of memory");
    }
    *t = (struct spie_table){ 0 };
    r->sides_room = 0;
    tables_age(r);
    return !r->args->interface ||
           file_save(r->args->output, file_put, &r->file) == YES;
}

static bool slice_over(const struct digest_run *r, int64_t ns)
{
    const struct spie_table *const t = &r->now;
    return t->packets == MOST_PACKETS ||
           (t->packets && ns - t->start >= r->slice &&
            SHARE * (double)t->bytes >= LEAST_TABLE);
}

static bool side_add(struct digest_run *r, enum spie_change change,
                     const struct spie_packet *before,
                     const struct spie_packet *after)
{
    struct spie_table *const t = &r->now;
    if (!GROW(&t->sides, &r->sides_room, t->nsides + 1))
        return refuse("out of memory");
    t->sides[t->nsides++] =
        (struct spie_side){ bly_hash(&r->hasher, after->at, after->len), change,
                            *before };
    return true;
}

/* What this router makes of the packet. */
static bool changes_add(struct digest_run *r, const struct capture *c,
                        const struct captured_frame *f, const struct packet *p,
                        const struct spie_packet *known)
{
    struct spie_packet after;
    struct packet inside;
    for (size_t i = 0; i < r->nnats; i++)
        if (spie_nat_apply(&r->nats[i], known, &after))
            return side_add(r, SPIE_NAT, known, &after);
    for (unsigned i = 0; r->args->digest.mtu; i++) {
        if (!spie_fragment(p, (unsigned)r->args->digest.mtu, i, &after))
            break;
        if (!side_add(r, SPIE_FRAGMENT, known, &after))
            return false;
    }
    if (r->args->inner &&
        packet_parse(c->link, f->at, f->n, true, &inside) == PACKET_IP &&
        inside.ip != p->ip && spie_known_by(&inside, &after))
        return side_add(r, SPIE_TUNNEL, known, &after);
    return true;
}

static bool frame_take(struct digest_run *r, const struct capture *c,
                       const struct captured_frame *f)
{
    struct traffic_totals *const totals = &r->sum.totals;
    struct packet p;
    struct spie_packet known;
    totals->packets++;
    totals->bytes += f->wire;
    switch (packet_parse(c->link, f->at, f->n, false, &p)) {
    case PACKET_IP:
        break;
    case PACKET_CUT:
        totals->cut++;
        return true;
    case PACKET_BAD:
        totals->bad++;
        return true;
    default:
        totals->other++;
        return true;
    }
    if (!spie_known_by(&p, &known)) {
        totals->cut++;
        return true;
    }
    struct spie_table *const t = &r->now;
    if (slice_over(r, f->ns) && !slice_end(r))
        return false;
    if (!t->packets) {
        if (!seed_next(r))
            return false;
        t->start = t->end = f->ns;
    }
    /* Clocks that run backwards widen a slice at both ends. */
    totals->backwards += f->ns < t->end;
    t->start = f->ns < t->start ? f->ns : t->start;
    t->end = f->ns > t->end ? f->ns : t->end;
    t->bytes += f->wire;
    r->hashes[t->packets++] = bly_hash(&r->hasher, known.at, known.len);
    return changes_add(r, c, f, &p, &known);
}

static bool frame_digest(void *ctx, const struct capture *c,
                         const struct captured_frame *f)
{
    struct digest_run *const r = ctx;
    pthread_mutex_lock(&r->lock);
    r->failed = !frame_take(r, c, f);
    pthread_mutex_unlock(&r->lock);
    return !r->failed;
}

/* --------------------------------------------------------------- questions */

/* Of the slice that lasts, whose filter is yet to be made. */
static enum spie_answer slice_ask(const struct digest_run *r, int64_t from,
                                  int64_t to, const struct spie_packet *p,
                                  struct spie_packet *was,
                                  enum spie_change *change)
{
    const struct spie_table *const t = &r->now;
    if (!t->packets || t->start > to || t->end < from)
        return SPIE_SILENT;
    const uint64_t hash = bly_hash(&r->hasher, p->at, p->len);
    for (size_t i = 0; i < t->nsides; i++)
        if (t->sides[i].hash == hash) {
            *was = t->sides[i].before;
            *change = t->sides[i].change;
            return SPIE_CHANGED;
        }
    for (size_t i = 0; i < t->packets; i++)
        if (r->hashes[i] == hash)
            return SPIE_MAYBE;
    return SPIE_NO;
}

static enum spie_answer digest_asked(void *ctx, int64_t from, int64_t to,
                                     const struct spie_packet *p,
                                     struct spie_packet *was,
                                     enum spie_change *change)
{
    struct digest_run *const r = ctx;
    const double keep = r->args->digest.keep;
    pthread_mutex_lock(&r->lock);
    enum spie_answer said = spie_ask(&r->file, from, to, p, was, change);
    if (said == SPIE_NO || said == SPIE_SILENT) {
        const enum spie_answer now = slice_ask(r, from, to, p, was, change);
        said = now == SPIE_SILENT ? said : now;
    }
    /* Tables of a quiet link may still be there: they are too old all the
     * same. */
    if ((said == SPIE_SILENT && r->dropped && r->file.ntables &&
         to < r->file.tables[0].start) ||
        (keep > 0 && to < clock_day_ns() - (int64_t)(keep * NS)))
        said = SPIE_FORGOTTEN;
    pthread_mutex_unlock(&r->lock);
    return said;
}

static bool questions_begin(struct digest_run *r)
{
    const struct digest_args *const d = &r->args->digest;
    if (!d->listen)
        return (!d->neighbours.n && !d->ask_key) ||
               refuse("--neighbour and --ask-key are for questions; use them "
                      "with --listen");
    if (!r->args->interface)
        return refuse("--listen answers while packets pass; use it with "
                      "--interface");
    if (!spie_serve)
        return refuse("this bloomery was built without libsodium, and answers "
                      "no questions");
    r->server = spie_serve(r->file.router, d, digest_asked, r);
    return r->server != NULL;
}

static void digest_print(struct digest_run *r)
{
    size_t n = 0;
    free(spie_file_bytes(&r->file, &n));
    r->sum.file = n;
    r->sum.share =
        r->sum.totals.bytes ? (double)n / (double)r->sum.totals.bytes : NAN;
    if (!quiet)
        report(r->args->json ? stdout : stderr, r->args->json, digest_fields,
               &r->sum,
               "{packets packet/s}, {bytes}, in {tables table/s} of "
               "{file}[, {share} of it]; at most {rate} of other packets seem "
               "to be there[; {?sides}{sides} changed on the way]"
               "[; {?other}{other} no IP][; {?cut}{cut} cut too short]"
               "[; {?bad}{bad} bad]\n");
}

static void digest_free(struct digest_run *r)
{
    bly_free(r->now.filter);
    free(r->now.sides);
    free(r->hashes);
    free(r->nats);
    spie_file_free(&r->file);
}

int traffic_digest(const struct traffic_args *args, const struct list *operands)
{
    struct digest_run r = { .args = args, .lock = PTHREAD_MUTEX_INITIALIZER };
    struct capture c;
    if (!digest_options(&r, operands) ||
        !capture_open(args->interface ? args->interface : operands->at[0],
                      args->interface != NULL, &c)) {
        digest_free(&r);
        return TROUBLE;
    }
    if (c.live)
        signals_watch(NULL);
    r.failed = !questions_begin(&r);
    int status =
        r.failed ? TROUBLE : capture_each(&c, args->number, frame_digest, &r);
    if (r.server)
        spie_serve_end(r.server);
    if (capture_lost(&c, &r.sum.totals.lost))
        status = TROUBLE;
    capture_close(&c);
    /* What came before a damaged place is worth keeping; tables that lack
     * packets are not: their no would be wrong. */
    if (r.failed || !slice_end(&r) ||
        file_save(args->output, file_put, &r.file) != YES)
        status = TROUBLE;
    else
        digest_print(&r);
    digest_free(&r);
    return status;
}

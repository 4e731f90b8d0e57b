/*
 * ring_sim.c - the names of a ring under schedules that chance draws
 *
 *     build/tests/ring_sim FIRST COUNT [STEPS]
 *
 * Runs the state machine of apps/node/names.h without sockets, threads or
 * clocks: COUNT runs, with the seeds FIRST, FIRST + 1, ... In each, processes
 * keep names, clients put, get and remove them, and a nemesis crashes
 * processes, stops them, takes their disks and cuts them off. What clients saw
 * is printed, a line for each operation, and ring_history.py judges it:
 *
 *     SEED WHAT NAME VALUE BEGAN ENDED OUTCOME CLIENT
 *
 * Every question, answer, tick and client is a coroutine, and the scheduler
 * takes one step of any of them at a time. Messages wait in a bag. Any of them
 * may be next, or lost; a question may arrive long after the one who asked has
 * given up, for instance when a process that was stopped goes on. Functions of
 * the machine that wait for an answer, for a lock or for the disk give way to
 * others there: pthread's locks are replaced by ones that give way.
 *
 * A process that crashes goes on as a ghost until its coroutines have ended:
 * nobody hears it, its disk takes nothing, and nothing leaks.
 *
 * The last line of a run tells how many faults there were and whether all names
 * could be read at the end, when everybody lived and heard everybody.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "chord/chord_client.h"
#include "apps/node/names.h"
#include "apps/node/names_client.h"
#include "base/random.h"

#define PROCESSES 6 /* a client may know eight */
#define COPIES 3
#define CLIENTS 4
#define NAMES 3
#define RECORDS 8
#define STACK ((size_t)512 << 10)
#define MOST_TASKS 96
#define MOST_BAG 1024
#define MOST_OPERATIONS 4096
#define SILENCE ((enum frame_error)200)

/* -------------------------------------------------------------------- state */

struct record {
    struct stored r;
    unsigned char *data;
};

/* What outlives a crash. */
struct disk {
    struct record at[RECORDS];
    size_t n;
    unsigned char *state;
    size_t nstate;
};

/* A life of a process. */
struct life {
    struct names names;
    unsigned process;
    bool dead, ticking;
    unsigned tasks; /* coroutines that still use it */
};

struct process {
    struct life *life; /* NULL: down */
    struct disk disk;
    struct address address;
    bool stopped, aside;
};

struct task {
    ucontext_t context;
    void *stack;
    bool used, runs; /* runs: it waits for nothing */
    void (*body)(struct task *t);
    struct life *life; /* NULL: of a client */
    unsigned client;
    uint64_t waits; /* for the answer to this question; 0: none */
    /* Others that it has asked, to hear them later. */
    struct asked {
        uint64_t request; /* 0: none */
        bool told;
        enum frame_error error;
        unsigned char *bytes;
        size_t nbytes;
    } asked[COPIES];
    unsigned char *heard; /* the last answer: borrowed by the machine */
    /* What it serves, or the answer it got. */
    uint8_t type;
    uint64_t request;
    unsigned from; /* whom to answer: a process, or PROCESSES + a client */
    unsigned char *bytes;
    size_t nbytes;
    enum frame_error error;
};

struct message {
    bool answer;
    unsigned from, to;
    uint64_t request;
    uint8_t type;
    enum frame_error error;
    unsigned char *bytes;
    size_t nbytes;
};

struct operation {
    const char *what, *outcome;
    unsigned name, client;
    char value[24];
    uint64_t began, ended;
};

static struct process processes[PROCESSES];
static struct task tasks[MOST_TASKS];
static struct task *running;
static ucontext_t scheduler;
static struct message bag[MOST_BAG];
static size_t nbag;
static struct operation operations[MOST_OPERATIONS];
static size_t noperations;
static uint64_t seed, chance, now, requests, values;
static uint64_t hunted; /* the epoch that hunt() has seen */
static unsigned faults, away_most;
static bool quiet_time; /* no faults, nothing is lost */
static bool clients_end;

static uint64_t draw(uint64_t n)
{
    return random_next(&chance) % n;
}

static void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

static void *copy_of(const void *bytes, size_t n)
{
    return memcpy(must(malloc(n + 1)), n ? bytes : "", n);
}

/* --------------------------------------------------------------- coroutines */

static void give_way(void)
{
    if (running)
        swapcontext(&running->context, &scheduler);
}

static void now_and_then_give_way(void)
{
    if (running && draw(4) == 0)
        give_way();
}

/* Locks that give way: the linker puts them in place of pthread's. */
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_rwlock_rdlock(pthread_rwlock_t *l);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t *l);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *l);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *l);

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    if (!running)
        return __real_pthread_mutex_lock(m);
    while (pthread_mutex_trylock(m))
        give_way();
    return 0;
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
    if (!running)
        return __real_pthread_rwlock_rdlock(l);
    while (pthread_rwlock_tryrdlock(l))
        give_way();
    return 0;
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
    if (!running)
        return __real_pthread_rwlock_wrlock(l);
    while (pthread_rwlock_trywrlock(l))
        give_way();
    return 0;
}

static void life_release(struct life *l)
{
    if (--l->tasks || !l->dead)
        return;
    names_free(&l->names);
    free(l);
}

static void task_enter(void)
{
    struct task *const t = running;
    t->body(t);
    free(t->bytes);
    free(t->heard);
    for (size_t i = 0; i < COPIES; i++)
        if (t->asked[i].request)
            free(t->asked[i].bytes);
    t->bytes = t->heard = NULL;
    if (t->life)
        life_release(t->life);
    t->used = false;
    setcontext(&scheduler);
}

static struct task *task_free(void)
{
    for (struct task *t = tasks; t < tasks + MOST_TASKS; t++)
        if (!t->used)
            return t;
    return NULL;
}

static void task_prepare(struct task *t)
{
    if (getcontext(&t->context))
        abort();
    t->context.uc_stack.ss_sp = t->stack;
    t->context.uc_stack.ss_size = STACK;
    makecontext(&t->context, task_enter, 0);
}

/* NULL: too many run already. */
static struct task *task_new(void (*body)(struct task *), struct life *life)
{
    struct task *const t = task_free();
    if (!t)
        return NULL;
    void *const stack = t->stack ? t->stack : must(malloc(STACK));
    *t = (struct task){ .used = true, .runs = true, .body = body };
    t->stack = stack;
    t->life = life;
    if (life)
        life->tasks++;
    task_prepare(t);
    return t;
}

static void task_step(struct task *t)
{
    running = t;
    swapcontext(&scheduler, &t->context);
    running = NULL;
}

/* ----------------------------------------------------------------- messages */

static void message_drop(size_t i)
{
    free(bag[i].bytes);
    bag[i] = bag[--nbag];
}

static void bag_put(struct message m)
{
    if (nbag == MOST_BAG)
        message_drop(draw(nbag));
    bag[nbag++] = m;
}

static unsigned self_of(const struct task *t)
{
    return t->life ? t->life->process : PROCESSES + t->client;
}

/* A question on its way; its number. */
static uint64_t question(struct task *t, unsigned to, uint8_t type,
                         const struct blob *q)
{
    const struct message m = { .from = self_of(t),
                               .to = to,
                               .request = ++requests,
                               .type = type,
                               .bytes = copy_of(q->at + FRAME_HEAD,
                                                q->n - FRAME_HEAD),
                               .nbytes = q->n - FRAME_HEAD };
    bag_put(m);
    return m.request;
}

/* Which process; PROCESSES: none, or it cannot be asked. */
static unsigned at_address(const struct task *t, const struct address *to)
{
    unsigned i = 0;
    while (i < PROCESSES && !address_equal(&processes[i].address, to))
        i++;
    return t->life && t->life->dead ? PROCESSES : i;
}

static void hear(struct task *t, unsigned char *bytes, size_t n,
                 struct frame *f)
{
    free(t->heard);
    t->heard = bytes;
    *f = (struct frame){ .body = bytes, .nbody = n };
}

static enum frame_error host_ask(void *by, const struct address *to,
                                 uint8_t type, struct blob *q, struct frame *f)
{
    struct task *const t = by;
    const unsigned i = at_address(t, to);
    if (i == PROCESSES || q->failed)
        return SILENCE;
    /* What a task serves stays its own while it asks others. */
    unsigned char *const served = t->bytes;
    const size_t nserved = t->nbytes;
    t->bytes = NULL;
    t->waits = question(t, i, type, q);
    t->runs = false;
    give_way();
    hear(t, t->bytes, t->nbytes, f);
    t->bytes = served;
    t->nbytes = nserved;
    return t->error;
}

static bool host_send(void *by, const struct address *to, uint8_t type,
                      struct blob *q, uint32_t *request)
{
    struct task *const t = by;
    const unsigned i = at_address(t, to);
    struct asked *a = t->asked;
    while (a < t->asked + COPIES && a->request)
        a++;
    if (i == PROCESSES || q->failed || a == t->asked + COPIES)
        return false;
    *a = (struct asked){ .request = question(t, i, type, q) };
    *request = (uint32_t)a->request;
    return true;
}

static enum frame_error host_take(void *by, const struct address *to,
                                  uint32_t request, struct frame *f)
{
    struct task *const t = by;
    struct asked *a = t->asked;
    (void)to;
    while (a->request != request)
        a++;
    while (!a->told)
        give_way();
    hear(t, a->bytes, a->nbytes, f);
    a->request = 0;
    return a->error;
}

/* -------------------------------------------------------------------- disks */

static struct disk *disk_of(struct life *l)
{
    now_and_then_give_way();
    return l->dead ? NULL : &processes[l->process].disk;
}

static struct record *record_find(struct disk *d, const unsigned char *digest)
{
    for (size_t i = 0; i < d->n; i++)
        if (memcmp(d->at[i].r.digest, digest, STORE_DIGEST) == 0)
            return &d->at[i];
    return NULL;
}

static bool host_save(void *ctx, const void *bytes, size_t n)
{
    struct disk *const d = disk_of(ctx);
    if (!d || (!quiet_time && draw(200) == 0))
        return false;
    free(d->state);
    d->state = copy_of(bytes, n);
    d->nstate = n;
    return true;
}

static enum store_result host_get(void *ctx, const unsigned char *digest,
                                  struct stored *r, unsigned char **data)
{
    struct disk *const d = disk_of(ctx);
    if (!d || (!quiet_time && draw(200) == 0))
        return STORE_NOT_NOW;
    const struct record *const found = record_find(d, digest);
    if (!found)
        return STORE_NONE;
    *r = found->r;
    if (data)
        *data = copy_of(found->data, found->r.nbytes);
    return STORE_OK;
}

static enum store_result host_put(void *ctx, const struct stored *r,
                                  const void *data)
{
    struct disk *const d = disk_of(ctx);
    if (!d)
        return STORE_NOT_NOW;
    if (!quiet_time && draw(100) == 0)
        return STORE_BROKEN;
    struct record *at = record_find(d, r->digest);
    if (at && store_newer(&at->r, r))
        return STORE_STALE;
    if (!at) {
        if (d->n == RECORDS)
            abort();
        at = &d->at[d->n++];
        at->data = NULL;
    }
    free(at->data);
    at->r = *r;
    at->data = copy_of(data, r->nbytes);
    return STORE_OK;
}

static void host_drop(void *ctx, const unsigned char *digest)
{
    struct disk *const d = disk_of(ctx);
    struct record *const at = d ? record_find(d, digest) : NULL;
    if (!at)
        return;
    free(at->data);
    *at = d->at[--d->n];
}

/* Going up from a, round the circle. */
static uint64_t list_from;

static int by_place(const void *x, const void *y)
{
    const struct stored *const a = x, *const b = y;
    const uint64_t p = store_id(a->digest) - list_from - 1;
    const uint64_t q = store_id(b->digest) - list_from - 1;
    return p != q ? (p < q ? -1 : 1)
                  : memcmp(a->digest, b->digest, STORE_DIGEST);
}

static size_t host_list(void *ctx, uint64_t a, uint64_t b,
                        const unsigned char *after, struct stored *out,
                        size_t most)
{
    struct disk *const d = disk_of(ctx);
    struct stored all[RECORDS], last;
    size_t n = 0, given = 0;
    for (size_t i = 0; d && i < d->n; i++)
        if (chord_within(a, store_id(d->at[i].r.digest), b))
            all[n++] = d->at[i].r;
    list_from = a;
    qsort(all, n, sizeof all[0], by_place);
    if (after)
        memcpy(last.digest, after, STORE_DIGEST);
    for (size_t i = 0; i < n && given < most; i++)
        if (!after || by_place(&all[i], &last) > 0)
            out[given++] = all[i];
    return given;
}

static const struct names_host host = { host_ask,  host_save, host_get,
                                        host_put,  host_drop, host_list,
                                        host_send, host_take };

/* ---------------------------------------------------------------- processes */

static void serve(struct task *t)
{
    struct blob out = { 0 };
    const char *text = "";
    const enum frame_error e = names_serve(&t->life->names, t, t->type,
                                           t->bytes, t->nbytes, &out, &text);
    if (!t->life->dead) {
        const size_t n = e || out.failed ? 0 : out.n - FRAME_HEAD;
        bag_put((struct message){
            .answer = true,
            .from = t->life->process,
            .to = t->from,
            .request = t->request,
            .error = out.failed ? FRAME_FULL : e,
            .bytes = copy_of(n ? out.at + FRAME_HEAD : NULL, n),
            .nbytes = n });
    }
    blob_free(&out);
}

static void tick(struct task *t)
{
    struct life *const l = t->life;
    const struct address entries[] = { processes[0].address,
                                       processes[1].address,
                                       processes[2].address };
    names_tick(&l->names, t, entries, 3, now, 400);
    if (draw(2) == 0)
        names_settle(&l->names, t);
    if (draw(4) == 0)
        names_strays(&l->names, t);
    l->ticking = false;
}

static void process_start(unsigned i)
{
    struct process *const p = &processes[i];
    struct life *const l = must(calloc(1, sizeof *l));
    const struct roster_entry self = { .address = p->address, .vnodes = 1 };
    l->process = i;
    if (!names_init(&l->names, &host, l, &self, COPIES, 2,
                    draw(UINT64_MAX) ^ i))
        abort();
    if (p->disk.state) {
        const char *const why =
            names_load(&l->names, p->disk.state, p->disk.nstate);
        if (why) {
            fprintf(stderr, "seed %" PRIu64 ": its own state is %s\n", seed,
                    why);
            abort();
        }
    }
    p->life = l;
    p->stopped = false;
}

static void disk_wipe(struct disk *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->at[i].data);
    free(d->state);
    *d = (struct disk){ 0 };
}

static void process_crash(unsigned i, bool wipe)
{
    struct process *const p = &processes[i];
    struct life *const l = p->life;
    p->life = NULL;
    p->stopped = false;
    l->dead = true;
    l->tasks++;
    life_release(l);
    if (wipe)
        disk_wipe(&p->disk);
}

/* ------------------------------------------------------------------ clients */

static unsigned char digests[NAMES][STORE_DIGEST];

static size_t name_text(unsigned name, char text[16])
{
    return (size_t)snprintf(text, 16, "name%u", name);
}

/* The client is that of the commands (names_client.c); what it would do with
 * sockets, clocks and chance is done here. */
bool __wrap_call_ask(struct caller *c, const struct address *to, uint8_t type,
                     struct blob *body, struct frame *answer);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags);

bool __wrap_call_ask(struct caller *c, const struct address *to, uint8_t type,
                     struct blob *body, struct frame *answer)
{
    static const unsigned char codes[256] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    const enum frame_error e = host_ask(running, to, type, body, answer);
    snprintf(c->why, sizeof c->why, "silence");
    if (e == SILENCE)
        return false;
    answer->flags = FRAME_ANSWER;
    if (e) {
        answer->flags |= FRAME_ERROR;
        answer->body = &codes[e];
        answer->nbody = 1;
    }
    return true;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)t;
    (void)left;
    for (uint64_t i = draw(20); i; i--)
        give_way();
    return 0;
}

ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = (unsigned char)draw(256);
    return (ssize_t)n;
}

/* What a record of a name says. */
static void value_of(unsigned name, const struct stored *r,
                     const unsigned char *bytes, char value[24])
{
    char text[16];
    const size_t skip = 2 + name_text(name, text);
    if (r->nbytes < skip || r->nbytes - skip >= 24)
        abort();
    memcpy(value, bytes + skip, r->nbytes - skip);
    value[r->nbytes - skip] = '\0';
}

static const char *client_get_value(struct chord_client *c, unsigned name,
                                    char value[24])
{
    struct stored r;
    unsigned char *bytes = NULL;
    const enum store_result got =
        client_read_name(c, digests[name], &r, &bytes);
    value[0] = '\0';
    if (got == STORE_OK && !(r.flags & STORE_IS_TOMB))
        value_of(name, &r, bytes, value);
    free(bytes);
    return got == STORE_OK || got == STORE_NONE ? "ok" : "unknown";
}

static const char *client_set(struct chord_client *c, unsigned name,
                              const char *value)
{
    char text[16];
    const size_t n = name_text(name, text);
    struct stored r = { .flags = value ? STORE_IS_MANIFEST : STORE_IS_TOMB };
    struct blob data = { 0 };
    unsigned copies;
    bool unknown;
    memcpy(r.digest, digests[name], STORE_DIGEST);
    blob_number(&data, n, 2);
    blob_bytes(&data, text, n);
    if (value)
        blob_bytes(&data, value, strlen(value));
    r.nbytes = (uint32_t)data.n;
    const enum store_result got =
        client_write_name(c, &r, data.at, !value, &copies, &unknown);
    blob_free(&data);
    return got == STORE_OK     ? "ok"
           : got == STORE_NONE ? "nothing"
           : unknown           ? "unknown"
                               : "refused";
}

static void operate(struct task *t, struct chord_client *c, const char *what,
                    unsigned name)
{
    struct operation o = { .what = what, .name = name, .client = t->client };
    /* Members to ask first, in any order. */
    for (unsigned i = 0; i < PROCESSES; i++) {
        const unsigned k = (unsigned)draw(i + 1);
        c->entries[i] = c->entries[k];
        c->entries[k] = processes[i].address;
    }
    c->nentries = PROCESSES;
    o.began = ++now;
    if (strcmp(what, "get") == 0) {
        o.outcome = client_get_value(c, name, o.value);
    } else if (strcmp(what, "rm") == 0) {
        o.outcome = client_set(c, name, NULL);
    } else {
        snprintf(o.value, sizeof o.value, "v%" PRIu64, ++values);
        o.outcome = client_set(c, name, o.value);
    }
    o.ended = ++now;
    if (noperations < MOST_OPERATIONS)
        operations[noperations++] = o;
}

static void client(struct task *t)
{
    static const char *const whats[] = { "put", "put", "get", "get", "rm" };
    struct chord_client *const c = must(calloc(1, sizeof *c));
    while (!clients_end) {
        operate(t, c, whats[draw(5)], (unsigned)draw(NAMES));
        for (uint64_t rest = draw(12); rest && !clients_end; rest--)
            give_way();
    }
    blob_free(&c->blob);
    free(c);
}

static unsigned unreadable;

/* At the end: every name, until somebody tells. */
static void last_reads(struct task *t)
{
    struct chord_client *const c = must(calloc(1, sizeof *c));
    for (unsigned i = 0; i < 2 * NAMES; i++) {
        bool told = false;
        for (unsigned tries = 0; tries < 40 && !told; tries++) {
            const size_t n = noperations;
            operate(t, c, "get", i % NAMES);
            told = noperations > n && strcmp(operations[n].outcome, "ok") == 0;
            for (unsigned k = 0; k < 50 && !told; k++)
                give_way();
        }
        unreadable += !told;
    }
    blob_free(&c->blob);
    free(c);
}

/* ---------------------------------------------------------------- the steps */

/* Every other client is on the host of a process, and cut off with it. */
static bool is_aside(unsigned who)
{
    return who < PROCESSES ? processes[who].aside
                           : who % 2 && processes[who - PROCESSES].aside;
}

static bool apart(unsigned a, unsigned b)
{
    return is_aside(a) != is_aside(b);
}

/* An answer, or silence, to whoever still waits for it; the bytes become its
 * own. */
static void answer(uint64_t request, enum frame_error e, unsigned char *bytes,
                   size_t n)
{
    for (struct task *t = tasks; t < tasks + MOST_TASKS; t++) {
        if (!t->used)
            continue;
        if (t->waits == request) {
            t->bytes = bytes;
            t->nbytes = n;
            t->error = e;
            t->waits = 0;
            t->runs = true;
            return;
        }
        for (struct asked *a = t->asked; a < t->asked + COPIES; a++)
            if (a->request == request && !a->told) {
                a->told = true;
                a->error = e;
                a->bytes = bytes;
                a->nbytes = n;
                return;
            }
    }
    free(bytes);
}

/* Somebody has waited long enough, or everybody, so that all comes to an end.
 */
static void give_up(bool everybody)
{
    uint64_t waits[MOST_TASKS * (1 + COPIES)];
    size_t n = 0;
    for (const struct task *t = tasks; t < tasks + MOST_TASKS; t++) {
        if (t->used && t->waits)
            waits[n++] = t->waits;
        for (size_t i = 0; t->used && i < COPIES; i++)
            if (t->asked[i].request && !t->asked[i].told)
                waits[n++] = t->asked[i].request;
    }
    for (size_t i = 0; everybody && i < n; i++)
        answer(waits[i], SILENCE, NULL, 0);
    if (!everybody && n)
        answer(waits[draw(n)], SILENCE, NULL, 0);
}

/* Take one out of the bag; it stays if its receiver is stopped. */
static void deliver(size_t i)
{
    struct message m = bag[i];
    if (m.to < PROCESSES && processes[m.to].stopped)
        return;
    bag[i] = bag[--nbag];
    struct life *const l =
        m.to < PROCESSES && !m.answer ? processes[m.to].life : NULL;
    const bool lost = apart(m.from, m.to) || (!quiet_time && draw(100) == 0);
    struct task *const t = l && !lost ? task_new(serve, l) : NULL;
    if (m.answer && !lost) {
        answer(m.request, m.error, m.bytes, m.nbytes);
    } else if (!t) {
        free(m.bytes);
        answer(m.request, SILENCE, NULL, 0);
    } else {
        t->type = m.type;
        t->request = m.request;
        t->from = m.from;
        t->bytes = m.bytes;
        t->nbytes = m.nbytes;
    }
}

static unsigned away(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < PROCESSES; i++)
        n += !processes[i].life || processes[i].stopped || processes[i].aside;
    return n;
}

/* Have all copies been made again since the last disk was lost? */
static bool repaired(void)
{
    uint64_t epoch = 0;
    for (unsigned i = 0; i < PROCESSES; i++) {
        const struct life *const l = processes[i].life;
        if (!l || !l->names.npast)
            return false;
        const struct names_epoch *const e = names_now(&l->names);
        if (!e->ready || e->nholes || e->roster.n != PROCESSES ||
            (i && e->roster.epoch != epoch))
            return false;
        epoch = e->roster.epoch;
    }
    return true;
}

/* For people, where something does not come to its end. */
static void tell_states(void)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        const struct names *const m = &processes[i].life->names;
        const struct names_epoch *const e = names_now(m);
        fprintf(stderr,
                "seed %" PRIu64 ": process %u, who %" PRIx64
                ", lineage %" PRIx64 ": epoch %" PRIu64
                " of %u, %s, %u holes, promised %" PRIu64 ", accepted %" PRIu64
                ":",
                seed, i, m->self.who, m->lineage, e ? e->roster.epoch : 0,
                e ? e->roster.n : 0, e && e->ready ? "ready" : "not ready",
                e ? e->nholes : 0, m->promised.round, m->accepted.round);
        for (unsigned k = 0; e && k < e->roster.n; k++)
            fprintf(stderr, " %u:%" PRIx64,
                    e->roster.at[k].address.at[3] - 1u - (unsigned)(seed % 200),
                    e->roster.at[k].who);
        fprintf(stderr, "\n");
    }
}

static void come_back(unsigned i)
{
    struct process *const p = &processes[i];
    if (!p->life)
        process_start(i);
    p->stopped = p->aside = false;
}

static bool is_away(unsigned i)
{
    const struct process *const p = &processes[i];
    return !p->life || p->stopped || p->aside;
}

static void take_away(unsigned i)
{
    const unsigned what = (unsigned)draw(12);
    faults++;
    if (what < 5)
        process_crash(i, what == 0 && repaired());
    else if (what < 9)
        processes[i].stopped = true;
    else
        processes[i].aside = true;
}

static void nemesis(void)
{
    const unsigned i = (unsigned)draw(PROCESSES);
    if (is_away(i))
        come_back(i);
    else if (away() < away_most)
        take_away(i);
}

/* The last roster that somebody has adopted. */
static const struct names_epoch *last_epoch(void)
{
    const struct names_epoch *last = NULL;
    for (unsigned i = 0; i < PROCESSES; i++) {
        const struct life *const l = processes[i].life;
        const struct names_epoch *const e = l ? names_now(&l->names) : NULL;
        if (e && (!last || e->roster.epoch > last->roster.epoch))
            last = e;
    }
    return last;
}

/* Every other seed, a nemesis that knows the rules: it waits for a new roster,
 * and takes somebody away who keeps a name in it, before others have taken over
 * what he has. Whoever was away comes back in his place, with what he had. */
static void hunt(void)
{
    const struct names_epoch *const e = last_epoch();
    if (!e || e->roster.epoch == hunted)
        return;
    hunted = e->roster.epoch;
    unsigned which[ROSTER_HOLDERS];
    const size_t n =
        roster_holders(&e->ring, store_id(digests[draw(NAMES)]), COPIES, which);
    for (size_t k = 0; k < n; k++) {
        unsigned i = 0;
        while (i < PROCESSES && !address_equal(&processes[i].address,
                                               &e->roster.at[which[k]].address))
            i++;
        if (i == PROCESSES || is_away(i) || draw(3) == 0)
            continue;
        for (unsigned back = 0; back < PROCESSES && away() >= away_most; back++)
            if (is_away(back))
                come_back(back);
        take_away(i);
        return;
    }
}

static void mend(void)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        processes[i].stopped = processes[i].aside = false;
        if (!processes[i].life)
            process_start(i);
    }
}

static void step(void)
{
    now++;
    if (!quiet_time && draw(700) == 0)
        nemesis();
    if (!quiet_time && seed % 2 == 0)
        hunt();
    switch (draw(8)) {
    case 0:
        /* Somebody's turn to look after its roster. */
        if (draw(2) == 0) {
            struct process *const p = &processes[draw(PROCESSES)];
            if (p->life && !p->stopped && !p->life->ticking) {
                p->life->ticking = true;
                if (!task_new(tick, p->life))
                    p->life->ticking = false;
            }
        }
        break;
    case 1:
        if (draw(quiet_time ? 400 : 20) == 0)
            give_up(false);
        break;
    case 2:
    case 3:
    case 4:
        if (nbag)
            deliver(draw(nbag));
        break;
    default: {
        struct task *ready[MOST_TASKS];
        size_t n = 0;
        for (struct task *x = tasks; x < tasks + MOST_TASKS; x++)
            if (x->used && x->runs &&
                !(x->life && !x->life->dead &&
                  processes[x->life->process].stopped))
                ready[n++] = x;
        if (n)
            task_step(ready[draw(n)]);
    }
    }
}

static bool tasks_of_clients(void)
{
    for (const struct task *t = tasks; t < tasks + MOST_TASKS; t++)
        if (t->used && !t->life)
            return true;
    return false;
}

static void run_seed(uint64_t steps)
{
    chance = seed * RANDOM_STEP + 1;
    now = requests = values = hunted = 0;
    noperations = nbag = 0;
    faults = unreadable = 0;
    clients_end = false;
    quiet_time = true;
    away_most = 1 + (unsigned)(seed % 3);
    for (unsigned i = 0; i < PROCESSES; i++) {
        processes[i] =
            (struct process){ .address = { .family = 4, .port = 7000 } };
        processes[i].address.at[0] = 10;
        processes[i].address.at[3] = (uint8_t)(i + 1 + seed % 200);
        process_start(i);
    }
    for (unsigned i = 0; i < NAMES; i++) {
        char text[16];
        const size_t n = name_text(i, text);
        name_digest(text, n, digests[i]);
    }
    if (!names_found(&processes[0].life->names))
        abort();
    for (uint64_t i = 0; i < 400000 && !repaired(); i++)
        step();
    const bool formed = repaired();
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct task *const t = must(task_new(client, NULL));
        t->client = i;
    }
    quiet_time = false;
    for (uint64_t i = 0; i < steps; i++)
        step();
    clients_end = quiet_time = true;
    mend();
    while (tasks_of_clients())
        step();
    for (uint64_t i = 0; i < 400000 && !repaired(); i++)
        step();
    const bool whole = repaired();
    if (!whole)
        tell_states();
    task_new(last_reads, NULL);
    while (tasks_of_clients())
        step();
    for (size_t i = 0; i < noperations; i++) {
        const struct operation *const o = &operations[i];
        printf("%" PRIu64 " %s name%u %s %" PRIu64 " %" PRIu64 " %s c%u\n",
               seed, o->what, o->name, o->value[0] ? o->value : "-", o->began,
               o->ended, o->outcome, o->client);
    }
    printf("%" PRIu64 " end %zu operations %u faults %u unreadable %s %s\n",
           seed, noperations, faults, unreadable,
           formed ? "formed" : "unformed", whole ? "whole" : "apart");
    for (unsigned i = 0; i < PROCESSES; i++)
        process_crash(i, true);
    /* Ghosts come to their ends. */
    while (nbag)
        message_drop(0);
    for (bool any = true; any;) {
        any = false;
        for (struct task *t = tasks; t < tasks + MOST_TASKS; t++)
            if (t->used) {
                any = true;
                give_up(true);
                task_step(t);
            }
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "ring_sim FIRST COUNT [STEPS]\n");
        return 2;
    }
    const uint64_t first = strtoull(argv[1], NULL, 10);
    const uint64_t count = strtoull(argv[2], NULL, 10);
    const uint64_t steps = argc > 3 ? strtoull(argv[3], NULL, 10) : 40000;
    for (seed = first; seed < first + count; seed++)
        run_seed(steps);
    return 0;
}

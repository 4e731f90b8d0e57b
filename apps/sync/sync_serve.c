/*
 * sync_serve.c - the other side of a sync: over TCP, or on standard input and
 * output
 *
 * Each connection has a thread, and reads what is at the path when its greeting
 * was in order, so that it sees one state of it. No more than --connections are
 * served at once; others that have said hello wait for their turn. The gate
 * (wire/gate.h) lets in four times as many: whoever has not said hello costs a
 * descriptor and a thread that sleeps, has to say it within the time that a
 * message may take, and gives way to a newcomer if there are too many.
 *
 * While others wait, whoever is served and says nothing for a quarter of that
 * time, or does not get to the end of a message, loses its turn.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"
#include "wire/address.h"
#include "apps/sync/sync_line.h"
#include "apps/sync/sync_server.h"
#include "apps/sync/sync.h"
#include "io/files.h"
#include "wire/gate.h"
#include "report/out.h"
#include "report/say.h"

#define SERVE_CONNECTIONS 16
#define SERVE_TIMEOUT 60
#define SERVE_LET_IN 4  /* times as many as are served */
#define SERVE_FILES 48  /* descriptors that are kept for reading the path */
#define SERVE_HELLO 256 /* bytes of a greeting, at most */
#define SERVE_TICK 100  /* ms between two looks at who is silent */

struct serving {
    const struct sync_args *args;
    const char *path;
    struct secure_secret secret;
    uint64_t timeout; /* seconds */
    struct gate *gate;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t left;
    uint64_t inside; /* that are served */
    struct visitor *visitors;
};

struct visitor {
    struct serving *s;
    int fd;
    bool inside;
    int64_t waits; /* since when a message of it is waited for; 0: it is not */
    struct visitor *next;
};

/* One that is served and has kept others waiting for too long goes. Called with
 * the lock, under which no visitor closes its socket. */
static void cut_silent(struct serving *s)
{
    const int64_t before = gate_clock() - (int64_t)s->timeout * 1000 / 4;
    for (struct visitor *v = s->visitors; v; v = v->next)
        if (v->inside && v->waits && v->waits <= before) {
            v->waits = 0;
            shutdown(v->fd, SHUT_RDWR);
        }
}

/* Wait for its turn, after a greeting. */
static void visitor_enter(struct visitor *v)
{
    struct serving *const s = v->s;
    const uint64_t most =
        s->args->connections ? s->args->connections : SERVE_CONNECTIONS;
    gate_asked(s->gate, v->fd);
    pthread_mutex_lock(&s->lock);
    v->waits = 0; /* from here on it is the one that waits */
    while (s->inside >= most) {
        cut_silent(s);
        const struct timespec until = clock_day_after(SERVE_TICK);
        pthread_cond_timedwait(&s->left, &s->lock, &until);
    }
    s->inside++;
    v->inside = true;
    pthread_mutex_unlock(&s->lock);
}

/* A message of it is waited for, or has come. */
static void visitor_waits(struct visitor *v, bool waits)
{
    if (!v)
        return;
    pthread_mutex_lock(&v->s->lock);
    v->waits = waits ? gate_clock() : 0;
    pthread_mutex_unlock(&v->s->lock);
}

/* Before its socket is closed. */
static void visitor_leave(struct visitor *v)
{
    struct serving *const s = v->s;
    pthread_mutex_lock(&s->lock);
    for (struct visitor **at = &s->visitors; *at; at = &(*at)->next)
        if (*at == v) {
            *at = v->next;
            break;
        }
    s->inside -= v->inside;
    pthread_cond_signal(&s->left);
    pthread_mutex_unlock(&s->lock);
    gate_left(s->gate, v->fd);
}

/* A greeting from a visitor, whose turn it is then. */
static bool first_message(struct visitor *v, struct sync_session *w,
                          struct block *question, char why[SYNC_WHY])
{
    w->session.most = SERVE_HELLO;
    const bool ok = sync_receive(w, question, why);
    w->session.most = SYNC_MESSAGE;
    if (ok)
        visitor_enter(v);
    return ok;
}

/* Say hello. Clients once began with a message, and are told in one. */
static bool serve_greet(struct sync_session *w, char why[SYNC_WHY])
{
    static const char old[] = "\0\0\0\0\377it is newer than this program; use "
                              "the same version of bloomery on both sides";
    if (session_greet(&w->session, false, NULL, sync_until(w)))
        return true;
    sync_why(w, why);
    if (memcmp(w->session.stranger + 4, "\1bly", 4) == 0) {
        unsigned char said[sizeof old - 1];
        memcpy(said, old, sizeof said);
        put_le(said, sizeof said - 4, 4);
        if (write(w->session.out.fd, said, sizeof said) > 0)
            snprintf(why, SYNC_WHY, "the other side runs an earlier version");
    }
    return false;
}

/* Talk until the other side ends it. v NULL: it is the only one. */
static bool serve_line(const struct serving *s, struct sync_session *w,
                       struct visitor *v)
{
    struct stat st;
    struct sync_set set = { .path = s->path,
                            .secret = shared_hashes(&s->secret),
                            .nul = s->args->nul,
                            .may_miss = s->args->writes,
                            .coded = true,
                            .nthreads = (unsigned)s->args->threads };
    struct sync_server server = { .set = &set,
                                  .writes = s->args->writes,
                                  .reads = v };
    struct block question = { 0 }, answer = { 0 };
    char why[SYNC_WHY] = "";
    const size_t n = strlen(s->path);
    const bool folder =
        stat(s->path, &st) ? n && s->path[n - 1] == '/' : S_ISDIR(st.st_mode);
    set.form = s->args->objects ? SYNC_OBJECTS
               : folder         ? SYNC_FILES
                                : SYNC_LINES;
    visitor_waits(v, true);
    if (!serve_greet(w, why)) {
        if (!w->session.ended)
            warn("%s: %s", s->path, why);
        return w->session.ended;
    }
    /* A command that somebody started for this is waited for. */
    bool ok = v ? set_begin(&set) : set_read(&set);
    const char *const trouble = ok ? NULL : set.why;
    bool more = true, first = v;
    for (; more; first = false) {
        visitor_waits(v, true);
        const bool came = first ? first_message(v, w, &question, why)
                                : sync_receive(w, &question, why);
        visitor_waits(v, false);
        if (!came)
            break;
        if (trouble) { /* said in an answer, so that the other side knows */
            const unsigned char type = SYNC_REFUSED;
            answer.len = 0;
            more = false;
            (void)(block_put(&answer, &type, 1) &&
                   block_put(&answer, trouble, strlen(trouble)));
        } else {
            more = server_answer(&server, (const unsigned char *)question.at,
                                 question.len, &answer);
        }
        if (!answer.len || !sync_send(w, &answer, why))
            break;
    }
    if (!more || !w->session.ended) {
        ok = false;
        warn("%s: %.*s", s->path,
             why[0] ? SYNC_WHY : (int)(answer.len ? answer.len - 1 : 0),
             why[0]       ? why
             : answer.len ? answer.at + 1
                          : "");
    }
    block_free(&question);
    block_free(&answer);
    server_free(&server);
    set_free(&set);
    return ok;
}

static void *serve_visitor(void *arg)
{
    struct visitor *const v = arg;
    struct serving *const s = v->s;
    struct sync_session w;
    sync_begin(&w, &s->secret, s->timeout);
    session_over(&w.session, v->fd, v->fd);
    serve_line(s, &w, v);
    visitor_leave(v);
    session_close(&w.session);
    free(v);
    return NULL;
}

/* A visitor that the gate let in. */
static bool serve_enter(void *ctx, int fd, const struct sockaddr *from,
                        socklen_t nfrom)
{
    struct serving *const s = ctx;
    const int on = 1;
    pthread_t thread;
    (void)from, (void)nfrom;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct visitor *const v = calloc(1, sizeof *v);
    if (v) {
        *v = (struct visitor){ .s = s, .fd = fd };
        pthread_mutex_lock(&s->lock);
        v->next = s->visitors;
        s->visitors = v;
        pthread_mutex_unlock(&s->lock);
        if (!pthread_create(&thread, NULL, serve_visitor, v)) {
            pthread_detach(thread);
            return true;
        }
        visitor_leave(v);
        free(v);
    }
    warn("no memory, or no thread, for a connection");
    close(fd);
    return false;
}

/* How many may be inside at once: descriptors have to be left for reading what
 * is served, and those that are cut off keep theirs for a moment. */
static uint64_t let_in(const struct serving *s)
{
    struct rlimit files;
    uint64_t n =
        SERVE_LET_IN * (s->args->connections ? s->args->connections
                                             : (uint64_t)SERVE_CONNECTIONS);
    if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur != RLIM_INFINITY) {
        const uint64_t most = files.rlim_cur > SERVE_FILES
                                  ? ((uint64_t)files.rlim_cur - SERVE_FILES) / 2
                                  : 0;
        n = n < most ? n : most;
    }
    return n > 2 ? n : 2;
}

static int serve_all(struct serving *s, int listener)
{
    const uint64_t n = let_in(s);
    /* A visitor that has said hello is bounded by the time that its messages
     * may take. */
    const struct gate_limits limits = { .connections = n,
                                        .per_address = n,
                                        .request_time = s->timeout,
                                        .answer_time = UINT32_MAX };
    if (!gate_open(&s->gate, listener, &limits, serve_enter, s))
        return fail("no memory, or no thread, for connections");
    for (;;)
        pause(); /* until a signal ends it */
}

/* Is there something to serve, or a place where it may come into being? */
static bool can_serve(const struct sync_args *args, const char *path)
{
    struct stat st;
    if (!access(path, args->writes ? R_OK | W_OK : R_OK)) {
        if (args->objects && !stat(path, &st) && !S_ISDIR(st.st_mode))
            return refuse("%s: not a folder; --objects is for folders", path);
        return true;
    }
    if (errno != ENOENT || !args->writes)
        return refuse_path(path, errno);
    char *const above = strdup(path);
    if (!above)
        return refuse("out of memory");
    size_t n = strlen(above);
    while (n > 1 && above[n - 1] == '/')
        n--;
    while (n && above[n - 1] != '/')
        n--;
    above[n] = '\0';
    const bool ok = !access(n ? above : ".", W_OK | X_OK);
    if (!ok)
        fail_path(path, errno);
    free(above);
    return ok;
}

int sync_serve(const struct sync_args *args, struct list *operands)
{
    struct serving s = { .args = args,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .left = PTHREAD_COND_INITIALIZER };
    struct address at;
    if (operands->n != 1)
        return fail("serve needs one path");
    s.path = operands->at[0];
    s.timeout = args->timeout ? args->timeout : SERVE_TIMEOUT;
    if (!secure_read(args->key_file, &s.secret))
        return TROUBLE;
    signals_no_pipe();
    if (args->standard) {
        struct sync_session w;
        sync_begin(&w, &s.secret, 0);
        session_over(&w.session, STDIN_FILENO, STDOUT_FILENO);
        const bool ok = serve_line(&s, &w, NULL);
        session_close(&w.session);
        return ok ? YES : TROUBLE;
    }
    if (!can_serve(args, s.path))
        return TROUBLE;
    const int listener =
        address_listen(args->listen ? args->listen : SYNC_LISTEN, &at);
    if (listener < 0)
        return TROUBLE;
    char text[ADDRESS_TEXT];
    address_text(&at, text);
    const struct serving_at told = { s.path, text, at.port };
    if (!quiet || args->json)
        report(stdout, args->json, sync_serve_fields, &told,
               "serving {path} on {address}\n");
    fflush(stdout);
    const int status = serve_all(&s, listener);
    close(listener);
    return status;
}

/*
 * serve.c - the other side of a sync: over TCP, or on standard input and output
 *
 * Each connection has a thread and reads what is at the path when it comes, so
 * that it sees one state of it. There are no more of them at once than
 * --connections; others wait.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/address.h"
#include "apps/sync/line.h"
#include "apps/sync/server.h"
#include "apps/sync/sync.h"
#include "io/files.h"
#include "report/out.h"
#include "report/say.h"

#define SERVE_CONNECTIONS 16
#define SERVE_TIMEOUT 60

struct serving_at {
    const char *path, *address;
    uint64_t port;
};

const struct field sync_serve_fields[] = {
    FIELD(struct serving_at, path, NONE, "the list or folder"),
    FIELD(struct serving_at, address, NONE, "where it is served"),
    FIELD(struct serving_at, port, NONE, "its port"),
    { 0 },
};

struct serving {
    const struct sync_args *args;
    const char *path;
    const unsigned char *secret;
    pthread_mutex_t lock;
    pthread_cond_t left;
    uint64_t inside;
};

/* Talk until the other side ends it. */
static bool serve_line(const struct serving *s, struct wire_line *w)
{
    struct stat st;
    struct sync_set set = { .path = s->path,
                            .secret = s->secret,
                            .nul = s->args->nul,
                            .may_miss = s->args->writes,
                            .coded = true,
                            .nthreads = (unsigned)s->args->threads };
    struct sync_server server = { .set = &set, .writes = s->args->writes };
    struct block question = { 0 }, answer = { 0 };
    char why[SYNC_WHY] = "";
    const size_t n = strlen(s->path);
    const bool folder =
        stat(s->path, &st) ? n && s->path[n - 1] == '/' : S_ISDIR(st.st_mode);
    set.form = s->args->objects ? SYNC_OBJECTS
               : folder         ? SYNC_FILES
                                : SYNC_LINES;
    bool ok = set_read(&set);
    const char *const trouble = ok ? NULL : set.why;
    bool more = true;
    while (more && wire_receive(w, &question, why)) {
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
        if (!answer.len || !wire_send(w, &answer, why))
            break;
    }
    if (!more || !w->ended) {
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

struct visitor {
    struct serving *s;
    int fd;
};

static void *serve_visitor(void *arg)
{
    struct visitor *const v = arg;
    struct serving *const s = v->s;
    const uint64_t timeout =
        s->args->timeout ? s->args->timeout : SERVE_TIMEOUT;
    struct wire_line w = { .in = v->fd,
                           .out = v->fd,
                           .timeout = (int)(timeout * 1000) };
    serve_line(s, &w);
    wire_close(&w);
    free(v);
    pthread_mutex_lock(&s->lock);
    s->inside--;
    pthread_cond_signal(&s->left);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int listen_at(const char *where, struct address *at)
{
    struct sockaddr_storage to;
    const int on = 1;
    if (!address_parse(where, at))
        return -1;
    const socklen_t n = address_socket(at, &to);
    const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(fd, (struct sockaddr *)&to, n) || listen(fd, 64) ||
        !address_of_socket(fd, at)) {
        fail("%s: %s", where, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

static int serve_all(struct serving *s, int listener)
{
    const uint64_t most =
        s->args->connections ? s->args->connections : SERVE_CONNECTIONS;
    for (;;) {
        pthread_t thread;
        pthread_mutex_lock(&s->lock);
        while (s->inside >= most)
            pthread_cond_wait(&s->left, &s->lock);
        s->inside++;
        pthread_mutex_unlock(&s->lock);
        const int on = 1;
        int fd;
        do
            fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
        if (fd < 0)
            return fail("no connection: %s", strerror(errno));
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct visitor *const v = malloc(sizeof *v);
        if (v)
            *v = (struct visitor){ s, fd };
        if (!v || pthread_create(&thread, NULL, serve_visitor, v)) {
            warn("no memory, or no thread, for a connection");
            free(v);
            close(fd);
            pthread_mutex_lock(&s->lock);
            s->inside--;
            pthread_mutex_unlock(&s->lock);
        } else {
            pthread_detach(thread);
        }
    }
}

int sync_serve(const struct sync_args *args, struct list *operands)
{
    struct serving s = { .args = args,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .left = PTHREAD_COND_INITIALIZER };
    struct address at;
    bool ok;
    if (operands->n != 1)
        return fail("serve needs one path");
    s.path = operands->at[0];
    s.secret = secret_read(args->key_file, &ok);
    if (!ok)
        return TROUBLE;
    signal(SIGPIPE, SIG_IGN);
    if (args->standard) {
        struct wire_line w = { .in = STDIN_FILENO,
                               .out = STDOUT_FILENO,
                               .timeout = -1 };
        return serve_line(&s, &w) ? YES : TROUBLE;
    }
    const int listener =
        listen_at(args->listen ? args->listen : SYNC_LISTEN, &at);
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

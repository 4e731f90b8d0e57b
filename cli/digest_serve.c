/*
 * digest_serve.c - a place where Squids fetch a digest
 *
 * A Squid with bug 5510 (all before October 2025) reads control block and mask
 * into one buffer and then moves only 128 bytes of what followed. So they must
 * not arrive together:
 *
 *     header | pause | 128 bytes of control block | pause | mask
 *
 * libmicrohttpd asks for the body piece by piece, in a thread of the
 * connection's own, and sends each piece before it asks for the next. Version
 * 0.9.75 holds nothing back; should another do so, TCP_NODELAY, set before each
 * pause, makes the kernel send what it has. A Squid without the bug sees
 * nothing of all this but a quarter of a second.
 *
 * There are no objects here. A sibling that is asked for one with
 * only-if-cached says 504, and the Squid goes to the origin.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/digest.h"
#include "cli/late_microhttpd.h"

#define CONNECTIONS 200 /* at once; a Squid needs one */
#define IDLE_SECONDS 30
#define PIECE (64 * 1024)

/* A digest that may be in use by several answers. */
struct shared_copy {
    struct digest_copy copy;
    unsigned nusers; /* under the server's lock */
};

struct server {
    const struct digest_args *args;
    struct digest_source *source;
    pthread_mutex_t lock;
    struct shared_copy *now; /* NULL: none yet */
    uint64_t nserved, nasked;
};

/* ----------------------------------------------------------------- copies */

/* Under the lock. */
static void copy_drop(struct shared_copy *c)
{
    if (c && --c->nusers == 0) {
        free(c->copy.bytes);
        free(c);
    }
}

/* Under the lock: make it what is handed out. */
static void copy_put(struct server *s, const struct digest_copy *copy)
{
    struct shared_copy *const c = malloc(sizeof *c);
    if (!c) {
        free(copy->bytes);
        return;
    }
    *c = (struct shared_copy){ *copy, 1 };
    copy_drop(s->now);
    s->now = c;
}

/* What is handed out now; NULL: nothing. */
static struct shared_copy *copy_take(struct server *s)
{
    static const struct digest_copy none = { 0 };
    struct digest_copy newer = { 0 };
    pthread_mutex_lock(&s->lock);
    if (s->source->refresh(s->source->ctx, s->now ? &s->now->copy : &none,
                           &newer))
        copy_put(s, &newer);
    struct shared_copy *const c = s->now;
    if (c)
        c->nusers++;
    pthread_mutex_unlock(&s->lock);
    return c;
}

/* ----------------------------------------------------------------- sending */

struct sending {
    struct server *server;
    struct shared_copy *c;
    int fd;
};

static void push_and_wait(const struct sending *out)
{
    const int on = 1;
    setsockopt(out->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const long ms = (long)out->server->args->pause;
    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
    while (!out->server->source->stop && nanosleep(&left, &left) != 0 &&
           errno == EINTR)
        ;
}

static ssize_t send_piece(void *ctx, uint64_t at, char *buf, size_t most)
{
    struct sending *const out = ctx;
    const struct digest_copy *const copy = &out->c->copy;
    if (at == 0 || at == DIGEST_HEADER)
        push_and_wait(out);
    const uint64_t end = at < DIGEST_HEADER ? DIGEST_HEADER : copy->nbytes;
    const size_t n = end - at < most ? (size_t)(end - at) : most;
    memcpy(buf, copy->bytes + at, n);
    return (ssize_t)n;
}

static void sending_end(void *ctx)
{
    struct sending *const out = ctx;
    pthread_mutex_lock(&out->server->lock);
    copy_drop(out->c);
    pthread_mutex_unlock(&out->server->lock);
    free(out);
}

static void add_time(struct MHD_Response *r, const char *name, int64_t seconds)
{
    char text[64];
    struct tm tm;
    const time_t t = (time_t)seconds;
    if (seconds > 0 && gmtime_r(&t, &tm) &&
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        MHD_add_response_header(r, name, text);
}

static enum MHD_Result send_digest(struct server *s, struct MHD_Connection *to)
{
    struct shared_copy *const c = copy_take(s);
    struct sending *const out = c ? malloc(sizeof *out) : NULL;
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(to, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!out || !info) {
        static char text[] = "There is no digest yet.\n";
        struct MHD_Response *const none = MHD_create_response_from_buffer(
            sizeof text - 1, text, MHD_RESPMEM_PERSISTENT);
        const enum MHD_Result done = MHD_queue_response(to, 404, none);
        MHD_destroy_response(none);
        pthread_mutex_lock(&s->lock);
        copy_drop(c);
        pthread_mutex_unlock(&s->lock);
        free(out);
        return done;
    }
    *out = (struct sending){ s, c, info->connect_fd };
    struct MHD_Response *const r = MHD_create_response_from_callback(
        c->copy.nbytes, PIECE, send_piece, out, sending_end);
    if (!r) {
        sending_end(out);
        return MHD_NO;
    }
    MHD_add_response_header(r, "Content-Type", "application/cache-digest");
    add_time(r, "Expires", c->copy.expires);
    add_time(r, "Last-Modified", c->copy.modified);
    const enum MHD_Result done = MHD_queue_response(to, 200, r);
    MHD_destroy_response(r);
    pthread_mutex_lock(&s->lock);
    s->nserved++;
    pthread_mutex_unlock(&s->lock);
    return done;
}

static enum MHD_Result send_status(struct MHD_Connection *to, unsigned status,
                                   char *text)
{
    struct MHD_Response *const r = MHD_create_response_from_buffer(
        strlen(text), text, MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    const enum MHD_Result done = MHD_queue_response(to, status, r);
    MHD_destroy_response(r);
    return done;
}

/* The path of a URL that may be whole, as proxies send it. */
static const char *path_of(const char *url)
{
    const char *const scheme = strstr(url, "://");
    if (url[0] == '/' || !scheme)
        return url;
    const char *const path = strchr(scheme + 3, '/');
    return path ? path : "/";
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *connection,
                              const char *url, const char *method,
                              const char *version, const char *upload,
                              size_t *nupload, void **state)
{
    static char only_get[] = "GET and HEAD are answered here.\n";
    static char not_cached[] = "There are no objects here.\n";
    static char nothing[] = "Here is a cache digest, at " DIGEST_PATH ".\n";
    struct server *const s = ctx;
    (void)version, (void)upload, (void)nupload, (void)state;
    pthread_mutex_lock(&s->lock);
    s->nasked++;
    pthread_mutex_unlock(&s->lock);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return send_status(connection, 405, only_get);
    if (strcmp(path_of(url), DIGEST_PATH) == 0)
        return send_digest(s, connection);
    if (url[0] != '/') /* asked as a proxy: only-if-cached, from siblings */
        return send_status(connection, 504, not_cached);
    return send_status(connection, 404, nothing);
}

/* --------------------------------------------------------------- listening */

/* A socket on ADDRESS:PORT, [ADDRESS]:PORT or PORT; negative, and said why. */
static int listen_on(const char *where)
{
    char host[256] = "127.0.0.1";
    const char *const colon = strrchr(where, ':');
    const char *const port = colon ? colon + 1 : where;
    size_t n = colon ? (size_t)(colon - where) : 0;
    const bool bracketed = n > 1 && where[0] == '[' && where[n - 1] == ']';
    if (n >= sizeof host || !port[0] ||
        strspn(port, "0123456789") != strlen(port) || strlen(port) > 5 ||
        atoi(port) > 65535) {
        fail("--listen '%s': not ADDRESS:PORT (right: 127.0.0.1:3129, "
             "[::1]:3129)",
             where);
        return -1;
    }
    if (bracketed)
        n -= 2;
    if (n) {
        memcpy(host, where + bracketed, n);
        host[n] = '\0';
    }
    struct addrinfo *found = NULL;
    const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM,
                                     .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    const int wrong = getaddrinfo(host, port, &wanted, &found);
    if (wrong) {
        fail("--listen '%s': %s", where, gai_strerror(wrong));
        return -1;
    }
    const int on = 1;
    const int fd =
        socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
        listen(fd, 128) != 0)
        error = errno;
    freeaddrinfo(found);
    if (!error)
        return fd;
    if (fd >= 0)
        close(fd);
    fail("--listen '%s': %s", where, strerror(error));
    return -1;
}

static void tell_start(const struct server *s, int fd)
{
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    char host[64] = "", port[8] = "", url[160];
    if (getsockname(fd, (struct sockaddr *)&at, &n) == 0)
        getnameinfo((struct sockaddr *)&at, n, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    const bool six = strchr(host, ':') != NULL;
    snprintf(url, sizeof url, "http://%s%s%s:%s" DIGEST_PATH, six ? "[" : "",
             host, six ? "]" : "", port);
    if (quiet)
        return;
    if (s->args->json) {
        struct json j = { .to = stdout };
        json_open(&j, '{');
        json_key(&j, "source");
        json_text(&j, s->source->name);
        json_key(&j, "url");
        json_text(&j, url);
        json_key(&j, "port");
        json_uint(&j, strtoull(port, NULL, 10));
        json_close(&j, '}');
        json_end(&j);
    } else {
        printf("%s: %s\n", show_name(s->source->name), url);
    }
    fflush(stdout);
}

static void tell_end(const struct server *s)
{
    if (quiet)
        return;
    if (s->args->json) {
        struct json j = { .to = stdout };
        json_open(&j, '{');
        json_key(&j, "requests");
        json_uint(&j, s->nasked);
        json_key(&j, "digests");
        json_uint(&j, s->nserved);
        json_close(&j, '}');
        json_end(&j);
    } else {
        printf("%llu requests, %llu times the digest\n",
               (unsigned long long)s->nasked, (unsigned long long)s->nserved);
    }
}

int digest_answer(const struct digest_args *args, struct digest_source *source,
                  struct digest_copy *first)
{
    struct server s = { .args = args, .source = source };
    sigset_t ends;
    int signal_number, status = YES;
    const int fd = mhd_begin() ? listen_on(args->listen) : -1;
    if (first->bytes)
        copy_put(&s, first);
    if (fd < 0) {
        copy_drop(s.now);
        return TROUBLE;
    }
    pthread_mutex_init(&s.lock, NULL);
    /* No thread takes these but sigwait(). */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct MHD_Daemon *const daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
            MHD_USE_POLL,
        0, NULL, NULL, answer, &s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
    if (daemon) {
        tell_start(&s, fd);
        sigwait(&ends, &signal_number);
        source->stop = true;
        MHD_stop_daemon(daemon);
        tell_end(&s);
    } else {
        close(fd);
        status = fail("libmicrohttpd cannot start");
    }
    copy_drop(s.now);
    pthread_mutex_destroy(&s.lock);
    return status;
}

/* ------------------------------------------------------------------- serve */

/* A file that is read again when it is another one. */
struct served_file {
    const char *path;
    struct stat was;
    int64_t lifetime;
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool file_load(const char *path, struct digest_copy *out, char *why,
                      size_t room)
{
    char text[4096];
    struct block b = { 0 };
    size_t n;
    FILE *const from = fopen(path, "rb");
    bool done = from != NULL;
    *out = (struct digest_copy){ 0 };
    if (!done)
        snprintf(why, room, "%s", strerror(errno));
    while (done && (n = fread(text, 1, sizeof text, from)) > 0) {
        done = b.len + n <= UINT64_C(1) << 29 && block_put(&b, text, n);
        if (!done)
            snprintf(why, room, "more than a digest can have");
    }
    if (done && ferror(from)) {
        snprintf(why, room, "%s", strerror(errno));
        done = false;
    }
    if (from)
        fclose(from);
    out->bytes = (unsigned char *)b.at;
    out->nbytes = b.len;
    if (done)
        done = digest_check(out, why, room);
    if (done && out->stats.fill > 0.65) {
        snprintf(why, room,
                 "%.0f %% of its bits are set, and Squid refuses "
                 "more than 65",
                 out->stats.fill * 100);
        done = false;
    }
    if (!done)
        block_free(&b);
    return done;
}

static bool file_refresh(void *ctx, const struct digest_copy *now,
                         struct digest_copy *newer)
{
    struct served_file *const f = ctx;
    struct stat st;
    char why[512];
    const int64_t time_now = (int64_t)time(NULL);
    if (stat(f->path, &st) != 0)
        return false;
    if (is_same(&st, &f->was)) {
        if (now->expires > time_now || !now->nbytes)
            return false;
        /* The same for another while. */
        *newer = *now;
        newer->bytes = malloc(now->nbytes);
        if (newer->bytes)
            memcpy(newer->bytes, now->bytes, now->nbytes);
        newer->expires = time_now + f->lifetime;
        return newer->bytes != NULL;
    }
    f->was = st;
    if (!file_load(f->path, newer, why, sizeof why)) {
        warn("%s: %s; the one before is still handed out", f->path, why);
        return false;
    }
    newer->modified = (int64_t)st.st_mtim.tv_sec;
    newer->expires = time_now + f->lifetime;
    return true;
}

int digest_serve(const struct digest_args *args, struct list *operands)
{
    struct served_file file = {
        .path = operands->at[0],
        .lifetime = args->lifetime ? (int64_t)args->lifetime : 3600,
    };
    struct digest_source source = {
        .refresh = file_refresh,
        .ctx = &file,
        .name = file.path,
    };
    struct digest_copy first;
    char why[512];
    if (operands->n > 1)
        return fail("one digest at a time; right: bloomery digest serve FILE");
    if (stat(file.path, &file.was) != 0)
        return fail_path(file.path, errno);
    if (!file_load(file.path, &first, why, sizeof why))
        return fail("%s: %s", file.path, why);
    first.modified = (int64_t)file.was.st_mtim.tv_sec;
    first.expires = (int64_t)time(NULL) + file.lifetime;
    return digest_answer(args, &source, &first);
}

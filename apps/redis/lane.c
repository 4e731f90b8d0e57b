/*
 * lane.c - one connection to one server
 *
 * hiredis writes with write(2), and a server that is gone would end the command
 * by SIGPIPE. A reader of standard output that goes away still should, so the
 * signal is ignored for as long as a write to a server takes and no longer.
 */
#define _GNU_SOURCE /* explicit_bzero */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "apps/redis/lane.h"
#include "io/files.h"
#include "report/say.h"

#define CONNECT_SECONDS 5

void lane_explain(const struct redis_login *login, const char *key,
                  const char *text, char *why, size_t nwhy)
{
    char place[300];
    snprintf(place, sizeof place, "%s:%llu", login->host,
             (unsigned long long)login->port);
    if (strstr(text, "unknown command"))
        snprintf(why, nwhy,
                 "%s: the server has no such command; load the module "
                 "bloomery.so there (%s)",
                 place, text);
    else if (starts_with(text, "NOAUTH") || starts_with(text, "WRONGPASS") ||
             strstr(text, "AUTH <password>"))
        snprintf(why, nwhy, "%s: %s; use --password-file and --user", place,
                 text);
    else if (starts_with(text, "WRONGTYPE"))
        snprintf(why, nwhy, "%s: the key holds no filter of BLY.*", key);
    else if (strcmp(text, "ERR not found") == 0)
        snprintf(why, nwhy, "%s: there is no such key on %s", key, place);
    else
        snprintf(why, nwhy, "%s: %s", key,
                 starts_with(text, "ERR ") ? text + 4 : text);
}

bool lane_flush(redisContext *c)
{
    void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
    int done = 0;
    while (!done && redisBufferWrite(c, &done) == REDIS_OK)
        ;
    signal(SIGPIPE, before);
    return done;
}

redisReply *lane_ask(redisContext *c, const struct wire_command *w)
{
    void *reply = NULL;
    if (redisAppendFormattedCommand(c, w->bytes, w->len) != REDIS_OK ||
        !lane_flush(c) || redisGetReply(c, &reply) != REDIS_OK)
        return NULL;
    return reply;
}

redisReply *lane_words(redisContext *c, int n, const char **words)
{
    struct wire_command w;
    const int len = redisFormatCommandArgv(&w.bytes, n, words, NULL);
    if (len < 0)
        return NULL;
    w.len = (size_t)len;
    redisReply *const reply = lane_ask(c, &w);
    redisFreeCommand(w.bytes);
    return reply;
}

const char *lane_error(const redisContext *c)
{
    if (c->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK))
        return "no answer in time (see --timeout)";
    return c->errstr[0] ? c->errstr : "the connection was closed";
}

static bool lane_login(const struct redis_login *login, redisContext *c,
                       char *why, size_t nwhy)
{
    if (!login->password)
        return true;
    const char *words[] = { "AUTH", login->user, login->password };
    if (!login->user)
        words[1] = login->password;
    redisReply *const reply = lane_words(c, login->user ? 3 : 2, words);
    const bool ok = reply && !is_error(reply);
    if (!reply)
        snprintf(why, nwhy, "%s:%llu: %s", login->host,
                 (unsigned long long)login->port, lane_error(c));
    else if (!ok)
        lane_explain(login, "AUTH", reply->str, why, nwhy);
    freeReplyObject(reply);
    return ok;
}

redisContext *lane_open(const struct redis_login *login, const char *host,
                        int port, char *why, size_t nwhy)
{
    const struct timeval patience = { .tv_sec = CONNECT_SECONDS };
    const struct timeval each = { .tv_sec = (time_t)login->timeout };
    redisContext *const c = redisConnectWithTimeout(host, port, patience);
    if (!c || c->err || redisSetTimeout(c, each) != REDIS_OK)
        snprintf(why, nwhy,
                 "%s:%d: no server there: %s; name it with --host and --port",
                 host, port, c ? c->errstr : "out of memory");
    else if (lane_login(login, c, why, nwhy))
        return c;
    redisFree(c);
    return NULL;
}

void lane_close(redisContext **lane)
{
    redisFree(*lane);
    *lane = NULL;
}

/* -------------------------------------------------------------- password */

static char password[1024];

void password_wipe(void)
{
    explicit_bzero(password, sizeof password);
}

const char *password_read(const char *path)
{
    bool open_to_all;
    const int fd = secret_open(path, &open_to_all);
    if (fd < 0)
        return NULL;
    const int64_t n = read_all(fd, password, sizeof password - 1);
    const int error = errno;
    close(fd);
    if (n < 0) {
        fail_path(path, error);
        return NULL;
    }
    password[n] = '\0';
    password[strcspn(password, "\r\n")] = '\0';
    if (!password[0]) {
        fail("%s: no password: its first line must be the password", path);
        return NULL;
    }
    if (open_to_all)
        warn("%s: other users can read this password; chmod 600 makes it yours",
             path);
    return password;
}

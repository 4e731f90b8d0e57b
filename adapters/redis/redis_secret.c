/*
 * redis_secret.c - see secret.h
 */
#define _GNU_SOURCE
#include "adapters/redis/redis_secret.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/redis/config.h"

#define SECRET_SETTING "bly-secret-file"
#define HEX_DIGITS (2 * BLY_SECRET_BYTES)

enum { MAX_SECRETS = 16 };

typedef unsigned char secret_bytes[BLY_SECRET_BYTES];

static struct {
    secret_bytes at[MAX_SECRETS];
    size_t n;
    char path[1024];
    server_string *shown; /* what CONFIG GET was given last */
} secrets;

/* ------------------------------------------------------------------ reading */

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* One line of 32 digits. */
static bool read_line(const char *line, size_t n, secret_bytes *out)
{
    bool ok = n == HEX_DIGITS;
    for (size_t i = 0; i < BLY_SECRET_BYTES && ok; i++) {
        const int high = hex_digit(line[2 * i]),
                  low = hex_digit(line[2 * i + 1]);
        ok = high >= 0 && low >= 0;
        (*out)[i] = (unsigned char)(high * 16 + low);
    }
    return ok;
}

/* The secrets in n bytes; how many, 0 where they are none. */
static size_t read_secrets(const char *text, size_t n, secret_bytes *out)
{
    size_t found = 0;
    if (n == BLY_SECRET_BYTES) {
        memcpy(out[0], text, n);
        return 1;
    }
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t len = end ? (size_t)(end - (text + at)) : n - at;
        const size_t line = len && text[at + len - 1] == '\r' ? len - 1 : len;
        if (found == MAX_SECRETS || !read_line(text + at, line, &out[found]))
            return 0;
        found++;
        at += len + 1;
    }
    return found;
}

/* Take the file of that name, "" for none; false, and what is wrong in why, and
 * all is as before. A file that any user can read or change is refused, and one
 * that its group can read is taken: a server often gets its secrets so. */
static bool secrets_take(const char *path, char *why, size_t size)
{
    char text[MAX_SECRETS * (HEX_DIGITS + 2) + 1];
    secret_bytes fresh[MAX_SECRETS];
    size_t n = 0;
    if (strlen(path) >= sizeof secrets.path) {
        snprintf(why, size, SECRET_SETTING ": the name is too long");
        return false;
    }
    if (path[0]) {
        struct stat st;
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text);
        const int error = errno;
        /* Only files are held to their rights: what comes through a pipe lies
         * nowhere. */
        const bool others = fd >= 0 && fstat(fd, &st) == 0 &&
                            S_ISREG(st.st_mode) && (st.st_mode & 0026) != 0;
        if (fd >= 0)
            close(fd);
        if (got < 0) {
            snprintf(why, size, SECRET_SETTING " %s: %s", path,
                     strerror(error));
            return false;
        }
        if (others) {
            explicit_bzero(text, sizeof text);
            snprintf(why, size,
                     SECRET_SETTING " %s: users other than its owner can read "
                                    "or change it; use chmod 600 (or 640)",
                     path);
            return false;
        }
        n = (size_t)got < sizeof text ? read_secrets(text, (size_t)got, fresh)
                                      : 0;
        explicit_bzero(text, sizeof text);
        if (!n) {
            explicit_bzero(fresh, sizeof fresh);
            snprintf(why, size,
                     SECRET_SETTING " %s: it must hold 16 raw bytes, or up to "
                                    "16 lines of 32 hexadecimal digits",
                     path);
            return false;
        }
    }
    /* Nothing fails from here on, so that a wrong file leaves the old
     * secrets in use. */
    explicit_bzero(secrets.at, sizeof secrets.at);
    if (n)
        memcpy(secrets.at, fresh, n * sizeof fresh[0]);
    explicit_bzero(fresh, sizeof fresh);
    secrets.n = n;
    memcpy(secrets.path, path, strlen(path) + 1);
    return true;
}

static server_string *secret_get(const char *name, void *unused)
{
    (void)name, (void)unused;
    if (secrets.shown)
        srv.FreeString(NULL, secrets.shown);
    secrets.shown = srv.CreateString(NULL, secrets.path, strlen(secrets.path));
    return secrets.shown;
}

static int secret_set(const char *name, server_string *given, void *unused,
                      server_string **error)
{
    (void)name, (void)unused;
    char why[1200];
    if (secrets_take(arg_bytes(given).at, why, sizeof why))
        return SERVER_OK;
    *error = srv.CreateString(NULL, why, strlen(why));
    return SERVER_ERR;
}

int secret_register(server_ctx *ctx)
{
    return setting_register_text(ctx, SECRET_SETTING, "", secret_get,
                                 secret_set, NULL);
}

int secret_argument(server_ctx *ctx, const char *name, server_string *value)
{
    char why[1200];
    if (strcasecmp(name, SECRET_SETTING) != 0)
        return 0;
    if (!secrets_take(arg_bytes(value).at, why, sizeof why)) {
        srv.Log(ctx, "warning", "%s", why);
        return -1;
    }
    return 1;
}

/* -------------------------------------------------------------------- using */

const unsigned char *secret_for_new(void)
{
    return secrets.n ? secrets.at[0] : NULL;
}

bool secret_opens(bly_filter *f)
{
    if (bly_hasher_of(f)) /* not blind */
        return true;
    for (size_t i = 0; i < secrets.n; i++)
        if (!bly_unlock(f, secrets.at[i]))
            return true;
    return false;
}

bly_status secret_new(const bly_spec *spec, uint64_t check, bly_filter **out)
{
    bly_status st = bly_new(spec, out);
    if (!st && (st = bly_set_blind(*out, check))) {
        bly_free(*out);
        *out = NULL;
    }
    if (!st)
        secret_opens(*out);
    return st;
}

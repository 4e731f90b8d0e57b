/*
 * filters.c - filters and secrets, as commands name them
 */
#define _GNU_SOURCE /* explicit_bzero */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

/* ---------------------------------------------------------------- sizing */

static const char *kind_word(size_t i, const void *ctx)
{
    bly_kind_info info;
    (void)ctx;
    return bly_kind_at(i, &info) ? info.name : NULL;
}

bool kind_exists(const char *name)
{
    bly_kind_info info;
    if (bly_kind_named(name, &info))
        return true;
    size_t n = 0;
    while (bly_kind_at(n, &info))
        n++;
    const char *const near = nearest_word(name, n, kind_word, NULL);
    if (near) {
        fail("unknown kind '%s'; did you mean '%s'?", name, near);
    } else {
        char *const all = kinds_that_can(0);
        fail("unknown kind '%s'; there are: %s", name, all ? all : "");
        free(all);
    }
    return false;
}

/* NAME=VALUE words as options of spec. They live until the command ends. */
static bool options_spec(const struct list *words, bly_spec *spec)
{
    static bly_option *options;
    options = calloc(words->n + 1, sizeof *options);
    for (size_t i = 0; options && i < words->n; i++) {
        const char *const text = words->at[i];
        const char *const equals = strchr(text, '=');
        if (!equals || equals == text) {
            fail("--option '%s': not of the form NAME=VALUE", text);
            return false;
        }
        options[i].name = strndup(text, (size_t)(equals - text));
        options[i].value = equals + 1;
        if (!options[i].name) {
            fail("out of memory");
            return false;
        }
    }
    if (!options) {
        fail("out of memory");
        return false;
    }
    spec->options = options;
    spec->noptions = words->n;
    return true;
}

bool sizing_spec(const struct sizing *s, bly_spec *spec)
{
    if (s->kind && !kind_exists(s->kind))
        return false;
    if (s->bits && s->memory) {
        fail("--bits and --memory are the same thing; give one of them");
        return false;
    }
    if (s->memory > UINT64_MAX / 8) {
        fail("--memory %llu: more bytes than 2^61",
             (unsigned long long)s->memory);
        return false;
    }
    spec->kind = s->kind;
    spec->items = s->items;
    spec->fpr = s->fpr;
    spec->bits = s->memory ? s->memory * 8 : s->bits;
    if (spec->items && spec->fpr > 0 && spec->bits) {
        fail("--items, --fpr and %s contradict each other; give two of them",
             s->memory ? "--memory" : "--bits");
        return false;
    }

    return options_spec(&s->options, spec);
}

char *kinds_that_can(uint32_t ability)
{
    char *text = NULL;
    size_t n = 0;
    FILE *const to = open_memstream(&text, &n);
    if (!to)
        return NULL;
    bly_kind_info info;
    const char *comma = "";
    for (size_t i = 0; bly_kind_at(i, &info); i++) {
        if ((info.can & ability) != ability)
            continue;
        fprintf(to, "%s%s", comma, info.name);
        comma = ", ";
    }
    fclose(to);
    return text;
}

/* --------------------------------------------------------------- secrets */

#define HEX_DIGITS (2 * BLY_SECRET_BYTES)

static struct {
    unsigned char bytes[BLY_SECRET_BYTES];
    unsigned char text[HEX_DIGITS + 2]; /* a newline, and one byte too many */
} secret;

void secret_wipe(void)
{
    explicit_bzero(&secret, sizeof secret);
}

static int hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The secret in n bytes of text; false if they have neither form. */
static bool secret_parse(size_t n)
{
    if (n == BLY_SECRET_BYTES) {
        memcpy(secret.bytes, secret.text, BLY_SECRET_BYTES);
        return true;
    }
    if (n == HEX_DIGITS + 1 && secret.text[HEX_DIGITS] == '\n')
        n--;
    if (n != HEX_DIGITS)
        return false;
    for (size_t i = 0; i < BLY_SECRET_BYTES; i++) {
        const int high = hex_value(secret.text[2 * i]);
        const int low = hex_value(secret.text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        secret.bytes[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

const unsigned char *secret_read(const char *path, bool *ok)
{
    *ok = !path;
    if (!path)
        return NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fail_path(path, errno);
        return NULL;
    }
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0044))
        warn("%s: other users can read this key; chmod 600 makes it yours",
             path);
    size_t n = 0;
    ssize_t got;
    do {
        got = read(fd, secret.text + n, sizeof secret.text - n);
        if (got > 0)
            n += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    const int error = errno;
    close(fd);
    if (got < 0) {
        fail_path(path, error);
        return NULL;
    }
    *ok = secret_parse(n);
    explicit_bzero(secret.text, sizeof secret.text);
    if (!*ok) {
        fail("%s: not a key: it must hold 16 raw bytes, or 32 hexadecimal "
             "digits (head -c 16 /dev/urandom makes one)",
             path);
        return NULL;
    }
    return secret.bytes;
}

/* ----------------------------------------------------------------- files */

static bool is_dash(const char *path)
{
    return strcmp(path, "-") == 0;
}

static int64_t get_stdin(void *ctx, void *buf, size_t nbytes)
{
    size_t n = 0;
    (void)ctx;
    while (n < nbytes) {
        const ssize_t got = read(STDIN_FILENO, (char *)buf + n, nbytes - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (int64_t)n;
}

static bly_filter *
filter_get(const char *path, const bly_access *how,
           bly_status (*get)(const char *, const bly_access *, bly_filter **))
{
    bly_filter *f = NULL;
    const bly_status st =
        is_dash(path) ? bly_read(get_stdin, NULL, how, &f) : get(path, how, &f);
    if (!st)
        return f;
    if (st == BLY_ESECRET && !how->secret)
        fail("%s, with --key-file", bly_error());
    else if (is_dash(path))
        fail("standard input: %s", bly_error());
    else
        fail_library();
    return NULL;
}

bly_filter *filter_map(const char *path, const bly_access *how)
{
    return filter_get(path, how, bly_map);
}

bly_filter *filter_open(const char *path, const bly_access *how)
{
    return filter_get(path, how, bly_open);
}

static bool put_stdout(void *ctx, const void *bytes, size_t nbytes)
{
    int *const error = ctx;
    *error = out_write(bytes, nbytes);
    return *error == 0;
}

int filter_save(const bly_filter *f, const char *path)
{
    if (!is_dash(path))
        return bly_save(f, path) ? fail_library() : YES;
    int error = 0;
    if (bly_write(f, put_stdout, &error) == BLY_OK)
        return YES;
    return error ? fail_path("standard output", error) : fail_library();
}

bool filter_can_save(const char *path)
{
    if (is_dash(path)) {
        if (!isatty(STDOUT_FILENO))
            return true;
        fail("a filter is no text for a terminal; redirect standard output, or "
             "name a file with -o");
        return false;
    }
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        fail("%s: is a directory; -o wants the name of a file", path);
        return false;
    }
    const char *const slash = strrchr(path, '/');
    char *const folder = slash == path ? strdup("/")
                         : slash       ? strndup(path, (size_t)(slash - path))
                                       : strdup(".");
    if (!folder) {
        fail("out of memory");
        return false;
    }
    const bool can = access(folder, W_OK | X_OK) == 0;
    if (!can)
        fail("%s: cannot write into %s: %s", path, folder, strerror(errno));
    free(folder);
    return can;
}

/* -------------------------------------------------------------- capacity */

bool is_past_capacity(const bly_stats *s)
{
    if (!s->capacity)
        return false;
    const double capacity = (double)s->capacity;
    if (isinf(s->items_estimate))
        return true;
    if (isnan(s->items_estimate))
        return (double)s->items_added > capacity;
    /* A list that build counted may have been counted 2 % short. */
    const double sd = isfinite(s->items_sd) ? s->items_sd : 0;
    return s->items_estimate > 1.02 * capacity + 3 * sd;
}

void warn_past_capacity(const char *path, const bly_stats *s)
{
    if (!is_past_capacity(s))
        return;
    if (isinf(s->items_estimate))
        warn("%s: saturated: it says maybe to every key", path);
    else
        warn("%s: holds more than the %s it was made for: false "
             "positives now %s, planned %s",
             path, show_keys(s->capacity), show_rate(s->fpr_now),
             show_rate(s->fpr_at_capacity));
}

/*
 * helper.c - answers for Squid: bloomery urls helper
 *
 *     external_acl_type listed concurrency=100 %URI /usr/bin/bloomery urls
 *         helper /var/lib/lists/bad.bly
 *
 * Squid writes lines, `channel URL` with concurrency and `URL` without, and
 * reads `channel OK` if the URL is listed, `channel ERR` if not, `channel BH`
 * if that cannot be told. All lines that have arrived are one batch, asked at
 * once and answered by one write.
 *
 * The list may be replaced at any time. A second thread looks a few times a
 * second whether the path leads to another file, opens and verifies that one,
 * and hands it over; until then, and if it turns out to be damaged, answers
 * come from the one before. A batch sees one list from its first line to its
 * last.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/urls/blocklist.h"
#include "apps/urls/rules.h"
#include "apps/urls/urls.h"
#include "base/clock.h"
#include "base/signals.h"
#include "io/hex.h"
#include "io/files.h"
#include "report/out.h"
#include "report/say.h"

#define HELPER_LOOK_MS 200
#define HELPER_READ ((size_t)1 << 16)
#define HELPER_LINE ((size_t)8 << 20) /* a longer line is none of Squid's */
#define HELPER_BATCH 1024

struct helper {
    const char *path;
    const unsigned char *secret;
    bool domains; /* of a list that does not say */
    struct blocklist list;
    struct stat seen; /* the file that was opened last, or tried */

    pthread_mutex_t lock; /* what follows */
    pthread_cond_t ending;
    struct blocklist next;
    bool has_next, ends;

    struct asking asking;
    struct block in, out;
    bool skipping; /* the rest of a line that was too long */
};

/* --------------------------------------------------------------- replacing */

static bool is_same_version(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool helper_open(struct helper *h, struct blocklist *l, char *why,
                        size_t nwhy)
{
    if (!blocklist_open(l, h->path, h->secret, why, nwhy))
        return false;
    if (!l->is.known)
        l->is.domains = h->domains;
    if (h->domains && !l->is.domains) {
        snprintf(why, nwhy, "%s: a list of URLs; leave out --domains", h->path);
        blocklist_close(l);
        return false;
    }
    return true;
}

/* Wait for the next look; false once nobody asks any more. */
static bool look_again(struct helper *h)
{
    const struct timespec until = clock_day_after(HELPER_LOOK_MS);
    pthread_mutex_lock(&h->lock);
    if (!h->ends)
        pthread_cond_timedwait(&h->ending, &h->lock, &until);
    const bool goes_on = !h->ends;
    pthread_mutex_unlock(&h->lock);
    return goes_on;
}

static void *watch_list(void *ctx)
{
    struct helper *const h = ctx;
    while (look_again(h)) {
        struct stat now;
        struct blocklist l;
        char why[512];
        if (stat(h->path, &now) || is_same_version(&now, &h->seen))
            continue;
        h->seen = now; /* if it is damaged, once is enough to say so */
        if (!helper_open(h, &l, why, sizeof why)) {
            warn("%s; the previous list stays in use", why);
            continue;
        }
        pthread_mutex_lock(&h->lock);
        struct blocklist unused = h->next;
        h->next = l;
        const bool had = h->has_next;
        h->has_next = true;
        pthread_mutex_unlock(&h->lock);
        if (had)
            blocklist_close(&unused);
    }
    return NULL;
}

/* The newest list, for the next batch. */
static void take_next(struct helper *h)
{
    struct blocklist old = { 0 };
    pthread_mutex_lock(&h->lock);
    const bool fresh = h->has_next;
    if (fresh) {
        old = h->list;
        h->list = h->next;
        h->next = (struct blocklist){ 0 };
        h->has_next = false;
    }
    pthread_mutex_unlock(&h->lock);
    if (fresh)
        blocklist_close(&old);
}

/* ---------------------------------------------------------------- answering */

struct question {
    struct words channel; /* empty: there are none */
    bly_bytes text;
};

/* Squid escapes a field once. In place. */
static size_t unescape(char *text, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const bool escaped = text[i] == '%' && n - i > 2 &&
                             hex_value(text[i + 1]) >= 0 &&
                             hex_value(text[i + 2]) >= 0;
        text[at++] =
            escaped
                ? (char)(16 * hex_value(text[i + 1]) + hex_value(text[i + 2]))
                : text[i];
        i += escaped ? 2 : 0;
    }
    return at;
}

/* A line is [CHANNEL] FIELD [MORE]...: a field that is a number and is followed
 * by another is the channel. */
static struct question question_read(char *line, size_t n)
{
    struct words rest = { line, n }, first, second;
    struct question q = { .text = { line, 0 } };
    if (!words_next(&rest, &first))
        return q;
    bool number = true;
    for (size_t i = 0; i < first.n; i++)
        number &= first.at[i] >= '0' && first.at[i] <= '9';
    if (number && words_next(&rest, &second)) {
        q.channel = first;
        first = second;
    }
    char *const field = line + (first.at - line);
    q.text = (bly_bytes){ field, unescape(field, first.n) };
    return q;
}

static bool answer(struct helper *h, const struct question *q,
                   const char *verdict)
{
    return (!q->channel.n || (block_put(&h->out, q->channel.at, q->channel.n) &&
                              block_put(&h->out, " ", 1))) &&
           block_put(&h->out, verdict, strlen(verdict)) &&
           block_put(&h->out, "\n", 1);
}

static bool answer_batch(struct helper *h, const struct question *q, size_t n)
{
    uint64_t listed[BLY_BITMAP_WORDS(HELPER_BATCH)];
    uint64_t bad[BLY_BITMAP_WORDS(HELPER_BATCH)];
    bly_bytes texts[HELPER_BATCH] = { { NULL, 0 } };
    for (size_t i = 0; i < n; i++)
        texts[i] = q[i].text;
    const bool asked =
        blocklist_ask(&h->list, &h->asking, NULL, texts, n, listed, bad, NULL);
    for (size_t i = 0; i < n; i++) {
        const char *verdict = "BH message=\"out of memory\"";
        if (asked && bad[i / 64] >> i % 64 & 1)
            verdict = h->list.is.domains ? "BH message=\"not a name\""
                                         : "BH message=\"not a URL\"";
        else if (asked)
            verdict = listed[i / 64] >> i % 64 & 1 ? "OK" : "ERR";
        if (!answer(h, &q[i], verdict))
            return false;
    }
    return true;
}

/* All whole lines that are there. False if there is no memory. */
static bool answer_lines(struct helper *h)
{
    struct question q[HELPER_BATCH];
    size_t at = 0, n = 0;
    take_next(h);
    h->out.len = 0;
    for (;;) {
        char *const line = h->in.at + at;
        char *const end = memchr(line, '\n', h->in.len - at);
        if (!end)
            break;
        at += (size_t)(end - line) + 1;
        if (h->skipping)
            h->skipping = false; /* that was its rest */
        else
            q[n++] = question_read(line, (size_t)(end - line));
        if (n == HELPER_BATCH && !answer_batch(h, q, n))
            return false;
        n %= HELPER_BATCH;
    }
    if (n && !answer_batch(h, q, n))
        return false;
    h->in.len -= at;
    memmove(h->in.at, h->in.at + at, h->in.len);
    if (h->in.len > HELPER_LINE) {
        const struct question long_one = question_read(h->in.at, h->in.len);
        if (!h->skipping &&
            !answer(h, &long_one, "BH message=\"a line of more than 8 MiB\""))
            return false;
        h->skipping = true;
        h->in.len = 0;
    }
    return true;
}

static int helper_loop(struct helper *h)
{
    for (;;) {
        if (!block_fit(&h->in, h->in.len + HELPER_READ))
            return fail("out of memory");
        const ssize_t n = read(STDIN_FILENO, h->in.at + h->in.len, HELPER_READ);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail("standard input: %s", strerror(errno));
        if (n == 0)
            return YES;
        h->in.len += (size_t)n;
        if (!answer_lines(h))
            return fail("out of memory");
        const int error = h->out.len ? out_write(h->out.at, h->out.len) : 0;
        if (error == EPIPE)
            return YES; /* nobody asks any more */
        if (error)
            return fail("standard output: %s", strerror(error));
    }
}

int urls_verb_helper(const struct urls_args *args, const struct list *operands)
{
    struct helper h = { .path = operands->at[0],
                        .domains = args->domains,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .ending = PTHREAD_COND_INITIALIZER };
    pthread_t watcher;
    char why[512];
    bool ok;
    if (operands->n > 1)
        return fail("one list at a time; usage: bloomery urls helper LIST");
    h.secret = secret_read(args->keys.key_file, &ok);
    if (!ok)
        return TROUBLE;
    signals_no_pipe();
    /* Looked at before it is opened: what comes in between is seen later. */
    if (stat(h.path, &h.seen))
        return fail_path(h.path, errno);
    if (!helper_open(&h, &h.list, why, sizeof why))
        return fail("%s", why);
    if (pthread_create(&watcher, NULL, watch_list, &h)) {
        blocklist_close(&h.list);
        return fail("no thread to watch the list with");
    }
    const int status = helper_loop(&h);
    pthread_mutex_lock(&h.lock);
    h.ends = true;
    pthread_cond_signal(&h.ending);
    pthread_mutex_unlock(&h.lock);
    pthread_join(watcher, NULL);
    blocklist_close(&h.list);
    blocklist_close(&h.next);
    asking_free(&h.asking);
    block_free(&h.in);
    block_free(&h.out);
    return status;
}

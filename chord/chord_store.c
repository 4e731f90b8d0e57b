/*
 * chord_store.c - what a node keeps
 *
 *     "blykeep1"   u8 flags, 3 zeros, u32 bytes of data
 *     u64 counter  u64 writer  u64 when
 *     u32 zero     u32 CRC-32C of the header before it and the data
 *
 * The list of records is an array, sorted by digest: 88 bytes each. Folders are
 * made when a record needs one, and go with the last.
 */
#define _GNU_SOURCE
#include "chord/chord_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bloomery.h>

#include "chord/chord.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/random.h"
#include "base/search.h"
#include "wire/frame.h"
#include "wire/runtime.h"
#include "base/byte_order.h"
#include "io/files.h"
#include "io/hex.h"
#include "report/say.h"

#define RECORD_HEAD 48
#define RECORD_MAGIC "blykeep1"

#define WRITERS 64
#define SCRUB_OPENING 65536 /* bytes that opening a file is worth */

struct slot {
    struct stored r;
    uint64_t touched; /* milliseconds of a clock that nobody sets */
    bool damaged;
};

struct store {
    pthread_mutex_t lock;             /* of the list */
    pthread_mutex_t writing[WRITERS]; /* of records, by their digests: so that
                                         file, folder and list agree */
    char *folder;
    struct slot *at;
    size_t n, room;
};

/* ---------------------------------------------------------------- the array */

/* The first record whose digest is not below this one. */
static size_t store_place(const struct store *s, const unsigned char *digest)
{
    size_t at;
    LOWER_BOUND(at, s->n, memcmp(s->at[at].r.digest, digest, STORE_DIGEST) < 0);
    return at;
}

static struct slot *store_find(struct store *s, const unsigned char *digest)
{
    const size_t i = store_place(s, digest);
    return i < s->n && memcmp(s->at[i].r.digest, digest, STORE_DIGEST) == 0
               ? &s->at[i]
               : NULL;
}

static bool store_room(struct store *s)
{
    return GROW(&s->at, &s->room, s->n + 1);
}

/* There is room for it. */
static void store_note(struct store *s, const struct stored *r, bool damaged)
{
    const size_t i = store_place(s, r->digest);
    if (i == s->n || memcmp(s->at[i].r.digest, r->digest, STORE_DIGEST) != 0) {
        memmove(s->at + i + 1, s->at + i, (s->n - i) * sizeof *s->at);
        s->n++;
    }
    s->at[i] = (struct slot){ *r, clock_ms(), damaged };
}

static void store_forget(struct store *s, const unsigned char *digest)
{
    struct slot *const r = store_find(s, digest);
    if (!r)
        return;
    s->n--;
    memmove(r, r + 1, (size_t)(s->at + s->n - r) * sizeof *r);
}

/* Of a record that was looked at while it had this version. */
static void store_mark(struct store *s, const struct stored *r, bool damaged)
{
    pthread_mutex_lock(&s->lock);
    struct slot *const at = store_find(s, r->digest);
    if (at && !store_newer(&at->r, r) && !store_newer(r, &at->r))
        at->damaged = damaged;
    pthread_mutex_unlock(&s->lock);
}

/* ---------------------------------------------------------------- the files */

/* The path of a record, which the caller frees; NULL: no memory. */
static char *record_path(const struct store *s, const unsigned char *digest)
{
    char hex[2 * STORE_DIGEST + 1], *path;
    hex_put(digest, STORE_DIGEST, hex);
    hex[2 * STORE_DIGEST] = '\0';
    return asprintf(&path, "%s/%.2s/%s", s->folder, hex, hex) < 0 ? NULL : path;
}

static void record_head(const struct stored *r, const void *data,
                        unsigned char head[RECORD_HEAD])
{
    memset(head, 0, RECORD_HEAD);
    memcpy(head, RECORD_MAGIC, 8);
    head[8] = r->flags;
    put_le(head + 12, r->nbytes, 4);
    put_le(head + 16, r->counter, 8);
    put_le(head + 24, r->writer, 8);
    put_le(head + 32, r->when, 8);
    uint32_t sum = frame_crc(0, head, RECORD_HEAD - 4);
    sum = frame_crc(sum, data, r->nbytes);
    put_le(head + RECORD_HEAD - 4, sum, 4);
}

struct record {
    const unsigned char *head;
    const void *data;
    size_t n;
};

static bly_status record_write(const void *what, bly_put *put, void *ctx)
{
    const struct record *const r = what;
    return put(ctx, r->head, RECORD_HEAD) && (!r->n || put(ctx, r->data, r->n))
               ? BLY_OK
               : BLY_EIO;
}

/* The classes of what open() and read() say. */
static enum store_result class_of(int error)
{
    return error == ENOENT || error == ENOTDIR ? STORE_NONE
           : error == ELOOP                    ? STORE_DAMAGED
                                               : STORE_NOT_NOW;
}

/* The data of a record whose header was read, compared with the sum. */
static enum store_result data_read(int fd, const struct stored *r,
                                   const unsigned char head[RECORD_HEAD],
                                   unsigned char **data)
{
    unsigned char again[RECORD_HEAD];
    unsigned char *const bytes = malloc(r->nbytes + 1u);
    if (!bytes)
        return STORE_NOT_NOW;
    const int64_t n = read_all(fd, bytes, r->nbytes);
    enum store_result result = n < 0                     ? STORE_NOT_NOW
                               : n != (int64_t)r->nbytes ? STORE_DAMAGED
                                                         : STORE_OK;
    if (result == STORE_OK) {
        record_head(r, bytes, again);
        if (memcmp(again, head, RECORD_HEAD) != 0)
            result = STORE_DAMAGED;
    }
    if (result == STORE_OK)
        *data = bytes;
    else
        free(bytes);
    return result;
}

/* Its header, and, if wanted, its data. */
static enum store_result record_read(const char *path, struct stored *r,
                                     unsigned char **data)
{
    unsigned char head[RECORD_HEAD];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return class_of(errno);
    const int64_t n = read_all(fd, head, sizeof head);
    enum store_result result =
        n < 0 ? (errno == EISDIR ? STORE_DAMAGED : STORE_NOT_NOW)
        : n != sizeof head || memcmp(head, RECORD_MAGIC, 8) != 0 ? STORE_DAMAGED
                                                                 : STORE_OK;
    if (result == STORE_OK) {
        r->flags = head[8];
        r->nbytes = (uint32_t)get_le(head + 12, 4);
        r->counter = get_le(head + 16, 8);
        r->writer = get_le(head + 24, 8);
        r->when = get_le(head + 32, 8);
        if (r->nbytes > STORE_MOST || r->flags > STORE_IS_TOMB)
            result = STORE_DAMAGED;
    }
    if (result == STORE_OK && data)
        result = data_read(fd, r, head, data);
    close(fd);
    return result;
}

/* All records of one of the 256 folders. Nothing may be left out that could be
 * read at another time: others would be told that it is absent. */
static bool store_scan(struct store *s, const char *folder)
{
    DIR *const d = opendir(folder);
    if (!d)
        return errno == ENOENT;
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(d));) {
        struct stored r = { 0 };
        char *path;
        if (strlen(e->d_name) != 2 * STORE_DIGEST ||
            !hex_read(e->d_name, STORE_DIGEST, r.digest))
            continue;
        if (asprintf(&path, "%s/%s", folder, e->d_name) < 0) {
            ok = false;
            break;
        }
        switch (record_read(path, &r, NULL)) {
        case STORE_OK:
            ok = store_room(s);
            if (ok)
                store_note(s, &r, false);
            break;
        case STORE_DAMAGED:
            warn("%s: damaged; another copy will take its place", path);
            r.counter = r.writer = r.nbytes = 0;
            r.flags &= STORE_IS_MANIFEST | STORE_IS_TOMB;
            ok = store_room(s);
            if (ok)
                store_note(s, &r, true);
            break;
        case STORE_NONE:
            break; /* gone meanwhile */
        default:
            ok = false;
        }
        free(path);
    }
    closedir(d);
    return ok;
}

struct store *store_open(const char *folder)
{
    struct store *const s = calloc(1, sizeof *s);
    bool ok = s && (s->folder = strdup(folder));
    if (s) {
        pthread_mutex_init(&s->lock, NULL);
        for (unsigned i = 0; i < WRITERS; i++)
            pthread_mutex_init(&s->writing[i], NULL);
    }
    if (mkdir(folder, 0777) && errno != EEXIST) {
        fail_path(folder, errno);
        store_close(s);
        return NULL;
    }
    for (unsigned i = 0; ok && i < 256; i++) {
        char *path;
        ok = asprintf(&path, "%s/%02x", folder, i) >= 0;
        if (!ok)
            break;
        if (rmdir(path)) /* an empty one goes */
            ok = store_scan(s, path);
        free(path);
    }
    if (!ok) {
        fail("%s: cannot be read, or no memory for its list", folder);
        store_close(s);
        return NULL;
    }
    return s;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->lock);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_mutex_destroy(&s->writing[i]);
    free(s->folder);
    free(s->at);
    free(s);
}

/* ------------------------------------------------------------------ changes */

/* The folder of a record, with the lock of its writers held. */
static bool folder_make(const char *path)
{
    char *const folder = strndup(path, strlen(path) - 2 * STORE_DIGEST - 1);
    const bool ok = folder && (mkdir(folder, 0777) == 0 || errno == EEXIST);
    free(folder);
    return ok;
}

/* It goes if it is empty now. That a name is gone must last, too: one that came
 * back after a power cut would be a file that was removed. */
static void folder_drop(const char *path)
{
    char *const folder = strndup(path, strlen(path) - 2 * STORE_DIGEST - 1);
    if (folder && rmdir(folder)) {
        const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            fsync(fd);
            close(fd);
        }
    }
    free(folder);
}

/* Write a record, with the lock of its writers held. */
static enum store_result record_save(struct store *s, const char *path,
                                     const struct stored *r, const void *data)
{
    unsigned char head[RECORD_HEAD];
    pthread_mutex_lock(&s->lock);
    const bool room = store_room(s);
    pthread_mutex_unlock(&s->lock);
    if (!room)
        return STORE_NOT_NOW;
    record_head(r, data, head);
    const struct record what = { head, data, r->nbytes };
    errno = 0;
    if (!folder_make(path) ||
        bly_file_save(path, NULL, NULL, record_write, &what)) {
        const int error = errno;
        folder_drop(path);
        return error == EMFILE || error == ENFILE || error == ENOMEM
                   ? STORE_NOT_NOW
                   : STORE_BROKEN;
    }
    /* Others may have taken the room meanwhile. */
    pthread_mutex_lock(&s->lock);
    const bool noted = store_room(s);
    if (noted)
        store_note(s, r, false);
    pthread_mutex_unlock(&s->lock);
    return noted ? STORE_OK : STORE_NOT_NOW;
}

/* Is the record that the list has really there? */
static enum store_result record_check(const char *path, struct stored *r)
{
    unsigned char *data = NULL;
    const struct stored known = *r;
    const enum store_result result = record_read(path, r, &data);
    free(data);
    return result == STORE_OK &&
                   (store_newer(&known, r) || store_newer(r, &known))
               ? STORE_DAMAGED
               : result;
}

enum store_result store_put(struct store *s, const struct stored *given,
                            const void *data)
{
    struct stored r = *given, has = { 0 };
    pthread_mutex_t *const writing = &s->writing[r.digest[0] % WRITERS];
    if (r.nbytes > STORE_MOST)
        return STORE_BROKEN;
    if (r.flags & STORE_IS_TOMB && !r.when)
        r.when = (uint64_t)time(NULL);
    char *const path = record_path(s, r.digest);
    if (!path)
        return STORE_NOT_NOW;
    pthread_mutex_lock(writing);
    pthread_mutex_lock(&s->lock);
    struct slot *const old = store_find(s, r.digest);
    const bool known = old && !store_newer(&r, &old->r);
    if (known) {
        has = old->r;
        old->touched = clock_ms();
    }
    pthread_mutex_unlock(&s->lock);
    enum store_result result = STORE_NONE;
    if (known && store_newer(&has, &r))
        result = STORE_STALE;
    else if (known)
        result = record_check(path, &has);
    if (result == STORE_NONE || result == STORE_DAMAGED)
        result = record_save(s, path, &r, data);
    else if (result == STORE_OK)
        store_mark(s, &r, false);
    pthread_mutex_unlock(writing);
    free(path);
    return result;
}

enum store_result store_get(struct store *s,
                            const unsigned char digest[STORE_DIGEST],
                            struct stored *r, unsigned char **data)
{
    pthread_mutex_lock(&s->lock);
    const struct slot *const found = store_find(s, digest);
    const bool damaged = found && found->damaged;
    if (found)
        *r = found->r;
    pthread_mutex_unlock(&s->lock);
    if (!found)
        return STORE_NONE;
    if (damaged)
        return STORE_DAMAGED;
    if (!data)
        return STORE_OK;
    char *const path = record_path(s, digest);
    const struct stored known = *r;
    enum store_result result =
        path ? record_read(path, r, data) : STORE_NOT_NOW;
    free(path);
    if (result == STORE_OK && store_newer(&known, r)) {
        /* An old file in the place of a newer one. */
        free(*data);
        *data = NULL;
        result = STORE_DAMAGED;
    }
    if (result == STORE_OK || result == STORE_NOT_NOW) {
        if (result != STORE_OK)
            *r = known;
        return result;
    }
    /* Gone without our doing is damage, too, unless it was just dropped. */
    *r = known;
    store_mark(s, &known, true);
    pthread_mutex_lock(&s->lock);
    const bool there = store_find(s, digest);
    pthread_mutex_unlock(&s->lock);
    return there ? STORE_DAMAGED : STORE_NONE;
}

bool store_drop_idle(struct store *s, const unsigned char digest[STORE_DIGEST],
                     uint64_t before)
{
    pthread_mutex_t *const writing = &s->writing[digest[0] % WRITERS];
    char *const path = record_path(s, digest);
    if (!path)
        return false;
    pthread_mutex_lock(writing);
    pthread_mutex_lock(&s->lock);
    const struct slot *const at = store_find(s, digest);
    const bool idle = !at || at->touched < before;
    const bool gone = idle && (unlink(path) == 0 || errno == ENOENT);
    if (gone)
        store_forget(s, digest);
    pthread_mutex_unlock(&s->lock);
    if (gone)
        folder_drop(path);
    pthread_mutex_unlock(writing);
    free(path);
    return gone;
}

void store_drop(struct store *s, const unsigned char digest[STORE_DIGEST])
{
    store_drop_idle(s, digest, UINT64_MAX);
}

uint64_t store_touched(struct store *s,
                       const unsigned char digest[STORE_DIGEST])
{
    pthread_mutex_lock(&s->lock);
    const struct slot *const at = store_find(s, digest);
    const uint64_t touched = at ? at->touched : 0;
    pthread_mutex_unlock(&s->lock);
    return touched;
}

/* ---------------------------------------------------------------- scrubbing */

size_t store_scrub(struct store *s, unsigned char at[STORE_DIGEST],
                   uint64_t nbytes)
{
    size_t n = 0;
    for (uint64_t done = 0; done < nbytes; n++) {
        pthread_mutex_lock(&s->lock);
        size_t i = store_place(s, at);
        if (i < s->n && memcmp(s->at[i].r.digest, at, STORE_DIGEST) == 0)
            i++;
        const bool any = i < s->n;
        struct stored r = any ? s->at[i].r : (struct stored){ 0 };
        const bool damaged = any && s->at[i].damaged;
        pthread_mutex_unlock(&s->lock);
        memcpy(at, r.digest, STORE_DIGEST); /* or from the beginning */
        if (!any)
            break;
        done += SCRUB_OPENING + r.nbytes;
        unsigned char *data = NULL;
        if (!damaged && store_get(s, r.digest, &r, &data) == STORE_DAMAGED)
            warn("a record is damaged; another copy will take its place");
        free(data);
    }
    return n;
}

size_t store_damaged_names(struct store *s, struct stored *out, size_t most)
{
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n && n < most; i++)
        if (s->at[i].damaged && s->at[i].r.flags)
            out[n++] = s->at[i].r;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ------------------------------------------------------------------- ranges */

static bool is_of(const struct slot *at, enum store_kind kind)
{
    return kind == STORE_ALL     ? true
           : kind == STORE_NAMES ? at->r.flags != 0
                                 : !at->r.flags && !at->damaged;
}

size_t store_list(struct store *s, enum store_kind kind, uint64_t a, uint64_t b,
                  const unsigned char *after, struct stored *out, size_t most)
{
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    unsigned char from[STORE_DIGEST];
    memset(from, 0xff, sizeof from);
    for (unsigned i = 0; i < 8; i++)
        from[i] = (unsigned char)(a >> (56 - 8 * i));
    if (after)
        memcpy(from, after, sizeof from);
    size_t at = store_place(s, from);
    if (at < s->n && memcmp(s->at[at].r.digest, from, STORE_DIGEST) == 0)
        at++;
    /* Round the circle, back to a at most: with `after`, what is left. */
    const uint64_t start = store_id(from);
    for (size_t i = 0; i < s->n && n < most; i++, at++) {
        const struct slot *const slot = &s->at[at % s->n];
        const struct stored *const r = &slot->r;
        const uint64_t id = store_id(r->digest);
        const bool on = after ? memcmp(r->digest, from, STORE_DIGEST) != 0 &&
                                    id - a - 1 >= start - a - 1
                              : true;
        if (!chord_within(a, id, b) || !on)
            break;
        if (is_of(slot, kind))
            out[n++] = *r;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

void store_summary(struct store *s, enum store_kind kind, uint64_t a,
                   uint64_t b, uint64_t buckets[256])
{
    memset(buckets, 0, 256 * sizeof buckets[0]);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n; i++) {
        const struct stored *const r = &s->at[i].r;
        if (!is_of(&s->at[i], kind) || !chord_within(a, store_id(r->digest), b))
            continue;
        buckets[r->digest[16]] ^= bly_mix64(
            get_le(r->digest + 8, 8) ^ (r->counter * RANDOM_STEP + r->writer));
    }
    pthread_mutex_unlock(&s->lock);
}

struct store_counts store_counts(struct store *s)
{
    struct store_counts c = { 0 };
    pthread_mutex_lock(&s->lock);
    c.records = s->n;
    for (size_t i = 0; i < s->n; i++) {
        const struct stored *const r = &s->at[i].r;
        c.bytes += r->nbytes;
        c.files += r->flags == STORE_IS_MANIFEST;
        c.tombs += (r->flags & STORE_IS_TOMB) != 0;
        c.damaged += s->at[i].damaged;
    }
    pthread_mutex_unlock(&s->lock);
    return c;
}

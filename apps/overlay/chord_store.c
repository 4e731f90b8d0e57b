/*
 * chord_store.c - what a node keeps
 *
 *     "blykeep1"   u8 flags, 3 zeros, u32 bytes of data
 *     u64 counter  u64 writer  u64 when
 *     u32 zero     u32 CRC-32C of the header before it and the data
 *
 * The list of records is an array, sorted by digest: 72 bytes each.
 */
#define _GNU_SOURCE
#include "apps/overlay/chord_store.h"

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

#include "apps/overlay/chord.h"
#include "apps/overlay/frame.h"
#include "io/byte_order.h"
#include "io/files.h"
#include "io/hex.h"
#include "report/say.h"

#define RECORD_HEAD 48
#define RECORD_MAGIC "blykeep1"

#define WRITERS 64

struct store {
    pthread_mutex_t lock;             /* of the list */
    pthread_mutex_t writing[WRITERS]; /* of records, by their digests: so that
                                         file and list agree */
    char *folder;
    struct stored *at;
    size_t n, room;
};

uint64_t store_id(const unsigned char digest[STORE_DIGEST])
{
    return get_be(digest, 8);
}

/* ----------------------------------------------------------------- the array
 */

/* The first record that is not below the digest. */
static size_t store_place(const struct store *s, const unsigned char *digest)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (memcmp(s->at[mid].digest, digest, STORE_DIGEST) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct stored *store_find(struct store *s, const unsigned char *digest)
{
    const size_t i = store_place(s, digest);
    return i < s->n && memcmp(s->at[i].digest, digest, STORE_DIGEST) == 0
               ? &s->at[i]
               : NULL;
}

static bool store_room(struct store *s)
{
    if (s->n < s->room)
        return true;
    const size_t room = s->room ? 2 * s->room : 256;
    struct stored *const more = realloc(s->at, room * sizeof *more);
    if (!more)
        return false;
    s->at = more;
    s->room = room;
    return true;
}

static void store_note(struct store *s, const struct stored *r)
{
    const size_t i = store_place(s, r->digest);
    if (i == s->n || memcmp(s->at[i].digest, r->digest, STORE_DIGEST) != 0) {
        memmove(s->at + i + 1, s->at + i, (s->n - i) * sizeof *s->at);
        s->n++;
    }
    s->at[i] = *r;
}

static void store_forget(struct store *s, const unsigned char *digest)
{
    struct stored *const r = store_find(s, digest);
    if (!r)
        return;
    s->n--;
    memmove(r, r + 1, (size_t)(s->at + s->n - r) * sizeof *r);
}

/* ------------------------------------------------------------------ the files
 */

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

/* Its header, and, if wanted, its data, compared with the sum. */
static bool record_read(const char *path, struct stored *r,
                        unsigned char **data)
{
    unsigned char head[RECORD_HEAD];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool ok = fd >= 0 && read_all(fd, head, sizeof head) == sizeof head &&
              memcmp(head, RECORD_MAGIC, 8) == 0;
    if (ok) {
        r->flags = head[8];
        r->nbytes = (uint32_t)get_le(head + 12, 4);
        r->counter = get_le(head + 16, 8);
        r->writer = get_le(head + 24, 8);
        r->when = get_le(head + 32, 8);
        ok = r->nbytes <= STORE_MOST;
    }
    if (ok && data) {
        unsigned char again[RECORD_HEAD];
        *data = malloc(r->nbytes + 1u);
        ok = *data && read_all(fd, *data, r->nbytes) == (int64_t)r->nbytes;
        if (ok) {
            record_head(r, *data, again);
            ok = memcmp(again, head, RECORD_HEAD) == 0;
        }
        if (!ok) {
            free(*data);
            *data = NULL;
        }
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

/* All records of one of the 256 folders. */
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
        if (record_read(path, &r, NULL)) {
            ok = store_room(s);
            if (ok)
                store_note(s, &r);
        } else {
            warn("%s: damaged, and left out", path);
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
        if (mkdir(path, 0777) && errno != EEXIST) {
            fail_path(path, errno);
            free(path);
            store_close(s);
            return NULL;
        }
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

/* --------------------------------------------------------------------- changes
 */

enum store_result store_put(struct store *s, const struct stored *given,
                            const void *data)
{
    unsigned char head[RECORD_HEAD];
    struct stored r = *given;
    enum store_result result = STORE_OK;
    pthread_mutex_t *const writing = &s->writing[r.digest[0] % WRITERS];
    if (r.nbytes > STORE_MOST)
        return STORE_BROKEN;
    if (r.flags & STORE_IS_TOMB && !r.when)
        r.when = (uint64_t)time(NULL);
    pthread_mutex_lock(writing);
    pthread_mutex_lock(&s->lock);
    const struct stored *const old = store_find(s, r.digest);
    const bool known = old && !store_newer(&r, old);
    if (known)
        result = store_newer(old, &r) ? STORE_STALE : STORE_OK;
    pthread_mutex_unlock(&s->lock);
    if (!known) {
        char *const path = record_path(s, r.digest);
        record_head(&r, data, head);
        const struct record what = { head, data, r.nbytes };
        if (!path || bly_file_save(path, NULL, NULL, record_write, &what))
            result = STORE_BROKEN;
        free(path);
        pthread_mutex_lock(&s->lock);
        if (result == STORE_OK && store_room(s))
            store_note(s, &r);
        else
            result = STORE_BROKEN;
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(writing);
    return result;
}

enum store_result store_get(struct store *s,
                            const unsigned char digest[STORE_DIGEST],
                            struct stored *r, unsigned char **data)
{
    pthread_mutex_lock(&s->lock);
    const struct stored *const found = store_find(s, digest);
    if (found)
        *r = *found;
    pthread_mutex_unlock(&s->lock);
    if (!found)
        return STORE_NONE;
    if (!data)
        return STORE_OK;
    char *const path = record_path(s, digest);
    const bool ok = path && record_read(path, r, data);
    free(path);
    if (ok)
        return STORE_OK;
    warn("a record is damaged or gone, and will be fetched from another node");
    pthread_mutex_lock(&s->lock);
    store_forget(s, digest);
    pthread_mutex_unlock(&s->lock);
    return STORE_NONE;
}

void store_drop(struct store *s, const unsigned char digest[STORE_DIGEST])
{
    pthread_mutex_t *const writing = &s->writing[digest[0] % WRITERS];
    char *const path = record_path(s, digest);
    pthread_mutex_lock(writing);
    pthread_mutex_lock(&s->lock);
    if (path && (unlink(path) == 0 || errno == ENOENT))
        store_forget(s, digest);
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(writing);
    free(path);
}

/* --------------------------------------------------------------------- ranges
 */

size_t store_list(struct store *s, uint64_t a, uint64_t b,
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
    if (at < s->n && memcmp(s->at[at].digest, from, STORE_DIGEST) == 0)
        at++;
    /* Round the circle, back to a at most: with `after`, what is left. */
    const uint64_t start = store_id(from);
    for (size_t i = 0; i < s->n && n < most; i++, at++) {
        const struct stored *const r = &s->at[at % s->n];
        const uint64_t id = store_id(r->digest);
        const bool on = after ? memcmp(r->digest, from, STORE_DIGEST) != 0 &&
                                    id - a - 1 >= start - a - 1
                              : true;
        if (!chord_within(a, id, b) || !on)
            break;
        out[n++] = *r;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

void store_summary(struct store *s, uint64_t a, uint64_t b,
                   uint64_t buckets[256])
{
    memset(buckets, 0, 256 * sizeof buckets[0]);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n; i++) {
        const struct stored *const r = &s->at[i];
        if (!chord_within(a, store_id(r->digest), b))
            continue;
        uint64_t x = get_le(r->digest + 8, 8) ^
                     (r->counter * UINT64_C(0x9e3779b97f4a7c15) + r->writer);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        buckets[r->digest[16]] ^= x ^ x >> 31;
    }
    pthread_mutex_unlock(&s->lock);
}

struct store_counts store_counts(struct store *s)
{
    struct store_counts c = { 0 };
    pthread_mutex_lock(&s->lock);
    c.records = s->n;
    for (size_t i = 0; i < s->n; i++) {
        c.bytes += s->at[i].nbytes;
        c.files += s->at[i].flags == STORE_IS_MANIFEST;
        c.tombs += (s->at[i].flags & STORE_IS_TOMB) != 0;
    }
    pthread_mutex_unlock(&s->lock);
    return c;
}

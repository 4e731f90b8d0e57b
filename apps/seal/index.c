/*
 * index.c - the filters of all documents, in one file
 *
 *     0   8  "BLYSEALX"                  then for each document
 *     8   4  version, 2 or 3                 16  id
 *    12   4  r, probes per word               8  m, bits of its filter
 *    16   8  rate of false positives             (m + 7) / 8 bytes of bits
 *    24   8  which key                       16  checksum of these
 *    32   8  documents; version 3: 4 bytes, and
 *            4 of how many were removed
 *    40   8  proof of r and rate
 *    48  16  checksum of the above
 *
 * The side that holds it has no key, so the checksums (BLAKE2b) find accidents
 * and not forgeries: somebody who changes the index on purpose can hide a
 * document from a search, or let one be found that is then opened in vain. What
 * it must not do is choose how much the filters of later documents tell: the
 * proof, BLAKE2b of r and rate with a key, is looked at before any is added.
 * Version 1 had zeros there. Version 3 is written once something was removed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/seal/seal.h"
#include "base/byte_order.h"
#include "base/grow.h"
#include "io/files.h"
#include "report/say.h"

#define INDEX_MAGIC "BLYSEALX"
#define INDEX_VERSION 3
#define INDEX_HEADER 64
#define ENTRY_HEADER 24
#define SUM_BYTES 16

static void sum_of(const void *a, size_t na, const void *b, size_t nb,
                   unsigned char out[SUM_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, SUM_BYTES);
    crypto_generichash_update(&state, a, na);
    crypto_generichash_update(&state, b, nb);
    crypto_generichash_final(&state, out, SUM_BYTES);
}

static char *index_path(const char *folder)
{
    char *path;
    return asprintf(&path, "%s/index", folder) < 0 ? NULL : path;
}

static uint64_t bits_bytes(uint64_t m)
{
    return m / 8 + (m % 8 != 0);
}

void index_free(struct sealed_index *x)
{
    for (size_t i = 0; i < x->n; i++)
        free(x->entries[i].bits);
    free(x->entries);
    *x = (struct sealed_index){ 0 };
}

bool index_put(struct sealed_index *x, const struct entry *e)
{
    if (!GROW(&x->entries, &x->room, x->n + 1))
        return false;
    x->entries[x->n++] = *e;
    return true;
}

void index_prove(const struct sealed_index *x, const struct seal_keys *k,
                 unsigned char proof[INDEX_PROOF_BYTES])
{
    unsigned char told[12], sum[SUM_BYTES];
    uint64_t rate;
    memcpy(&rate, &x->fpr, sizeof rate);
    put_le(told, x->r, 4);
    put_le(told + 4, rate, 8);
    crypto_generichash(sum, sizeof sum, told, sizeof told, k->index,
                       sizeof k->index);
    memcpy(proof, sum, INDEX_PROOF_BYTES);
}

/* ----------------------------------------------------------------- reading */

static const char *read_header(struct sealed_index *x, const unsigned char *h)
{
    unsigned char sum[SUM_BYTES];
    sum_of(h, INDEX_HEADER - SUM_BYTES, NULL, 0, sum);
    if (memcmp(h, INDEX_MAGIC, 8) != 0)
        return "not the index of an archive";
    x->version = (unsigned)get_le(h + 8, 4);
    if (x->version < 1 || x->version > INDEX_VERSION)
        return "made by a newer bloomery";
    x->r = (unsigned)get_le(h + 12, 4);
    const uint64_t rate = get_le(h + 16, 8);
    memcpy(&x->fpr, &rate, sizeof rate);
    memcpy(x->key_id, h + 24, KEY_ID_BYTES);
    memcpy(x->proof, h + 40, INDEX_PROOF_BYTES);
    if (memcmp(sum, h + INDEX_HEADER - SUM_BYTES, SUM_BYTES) != 0 || x->r < 1 ||
        x->r > 60 || !(x->fpr > 0 && x->fpr < 1))
        return "damaged: its header is not as it was written";
    return NULL;
}

static const char *read_entry(struct sealed_index *x, int fd, uint64_t *left)
{
    unsigned char head[ENTRY_HEADER], sum[2][SUM_BYTES];
    struct entry e = { 0 };
    if (*left < ENTRY_HEADER + SUM_BYTES ||
        read_all(fd, head, sizeof head) != (int64_t)sizeof head)
        return "cut off";
    *left -= ENTRY_HEADER + SUM_BYTES;
    memcpy(e.id, head, DOCUMENT_ID_BYTES);
    e.number = x->n + 1;
    e.m = get_le(head + DOCUMENT_ID_BYTES, 8);
    const uint64_t nbytes = bits_bytes(e.m);
    if (e.m == 0 || nbytes > *left)
        return "damaged, or cut off";
    *left -= nbytes;
    e.bits = malloc((size_t)nbytes);
    if (!e.bits)
        return "out of memory";
    const bool ok = read_all(fd, e.bits, (size_t)nbytes) == (int64_t)nbytes &&
                    read_all(fd, sum[0], SUM_BYTES) == SUM_BYTES;
    sum_of(head, sizeof head, e.bits, (size_t)nbytes, sum[1]);
    const char *const wrong = !ok ? "cut off"
                              : memcmp(sum[0], sum[1], SUM_BYTES) != 0
                                  ? "damaged: a filter is not as it was written"
                              : !index_put(x, &e) ? "out of memory"
                                                  : NULL;
    if (wrong)
        free(e.bits);
    return wrong;
}

static const char *read_index(struct sealed_index *x, int fd)
{
    unsigned char header[INDEX_HEADER];
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size < INDEX_HEADER ||
        read_all(fd, header, sizeof header) != (int64_t)sizeof header)
        return "not the index of an archive";
    const char *wrong = read_header(x, header);
    const bool counts = x->version > 2;
    const uint64_t n = get_le(header + 32, counts ? 4 : 8);
    x->removed = counts ? get_le(header + 36, 4) : 0;
    uint64_t left = (uint64_t)st.st_size - INDEX_HEADER;
    for (uint64_t i = 0; i < n && !wrong; i++)
        wrong = read_entry(x, fd, &left);
    return wrong      ? wrong
           : left > 0 ? "damaged: there is more than it says"
                      : NULL;
}

bool index_open(const char *folder, struct sealed_index *x, bool *found)
{
    *x = (struct sealed_index){ 0 };
    char *const path = index_path(folder);
    if (!path)
        return refuse("out of memory");
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *found = fd >= 0;
    const char *const wrong = fd >= 0           ? read_index(x, fd)
                              : errno == ENOENT ? NULL
                                                : strerror(errno);
    if (fd >= 0)
        close(fd);
    if (wrong) {
        fail("%s: %s", path, wrong);
        index_free(x);
    }
    free(path);
    return !wrong;
}

/* ----------------------------------------------------------------- writing */

static bly_status write_index(const void *what, bly_put *put, void *ctx)
{
    const struct sealed_index *const x = what;
    unsigned char header[INDEX_HEADER] = { 0 }, sum[SUM_BYTES];
    uint64_t rate;
    memcpy(&rate, &x->fpr, sizeof rate);
    memcpy(header, INDEX_MAGIC, 8);
    put_le(header + 8, x->removed ? INDEX_VERSION : INDEX_VERSION - 1, 4);
    put_le(header + 12, x->r, 4);
    put_le(header + 16, rate, 8);
    memcpy(header + 24, x->key_id, KEY_ID_BYTES);
    if (x->removed) {
        put_le(header + 32, x->n, 4);
        put_le(header + 36, x->removed, 4);
    } else {
        put_le(header + 32, x->n, 8);
    }
    memcpy(header + 40, x->proof, INDEX_PROOF_BYTES);
    sum_of(header, INDEX_HEADER - SUM_BYTES, NULL, 0,
           header + INDEX_HEADER - SUM_BYTES);
    bool ok = put(ctx, header, sizeof header);
    for (size_t i = 0; i < x->n && ok; i++) {
        const struct entry *const e = &x->entries[i];
        const size_t nbytes = (size_t)bits_bytes(e->m);
        unsigned char head[ENTRY_HEADER];
        memcpy(head, e->id, DOCUMENT_ID_BYTES);
        put_le(head + DOCUMENT_ID_BYTES, e->m, 8);
        sum_of(head, sizeof head, e->bits, nbytes, sum);
        ok = put(ctx, head, sizeof head) && put(ctx, e->bits, nbytes) &&
             put(ctx, sum, sizeof sum);
    }
    return ok ? BLY_OK : BLY_EIO;
}

int index_save(const char *folder, const struct sealed_index *x)
{
    if (x->removed && (x->removed > UINT32_MAX || x->n > UINT32_MAX))
        return fail("%s: more than 2^32 documents", folder);
    char *const path = index_path(folder);
    if (!path)
        return fail("out of memory");
    const int status = file_save(path, write_index, x);
    free(path);
    return status;
}

/*
 * fuzz_names.c - what processes that keep names make of any message
 *
 * The bytes are messages for three processes of one roster, in memory:
 *
 *     u8 process and flags, u8 type, u8 length, that many bytes
 *
 * with flag 4 the lineage and with flag 8 the present epoch are put in front;
 * flag 16: somebody ticks instead. Whatever comes: no crash; what is saved can
 * be loaded; a name that was kept before stays readable to those who are ready;
 * and a record that is kept stands under its own digest.
 *
 * With flag 128 in the first byte, all the rest is a saved state.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "apps/node/names.h"
#include "chord/chord_record.h"

#define PROCESSES 3
#define KEPT 8
#define KEPT_BYTES 512

struct fuzz_process {
    struct names m;
    unsigned depth;
    struct {
        bool used;
        struct stored r;
        unsigned char data[KEPT_BYTES];
    } kept[KEPT];
    unsigned char *saved;
    size_t nsaved;
    struct blob answer;
};

static struct fuzz_process *all;
static unsigned depth;

static enum frame_error fuzz_ask(void *by, const struct address *to,
                                 uint8_t type, struct blob *q, struct frame *f)
{
    struct fuzz_process *const from = by;
    const unsigned at = (unsigned)to->port - 7001u;
    struct blob out = { 0 };
    const char *text = NULL;
    if (at >= PROCESSES || depth > 4)
        return FRAME_REFUSED;
    depth++;
    const enum frame_error e =
        names_serve(&all[at].m, &all[at], type, q->at + FRAME_HEAD,
                    q->n - FRAME_HEAD, &out, &text);
    depth--;
    blob_free(&from->answer);
    from->answer = out;
    if (!e)
        *f = (struct frame){ .type = type,
                             .body = out.at + FRAME_HEAD,
                             .nbody = out.n - FRAME_HEAD };
    return e;
}

static bool fuzz_save(void *ctx, const void *bytes, size_t n)
{
    struct fuzz_process *const p = ctx;
    free(p->saved);
    p->saved = malloc(n);
    if (!p->saved)
        abort();
    memcpy(p->saved, bytes, n);
    p->nsaved = n;
    return true;
}

static unsigned kept_at(const struct fuzz_process *p,
                        const unsigned char *digest)
{
    unsigned i = 0;
    while (i < KEPT && (!p->kept[i].used ||
                        memcmp(p->kept[i].r.digest, digest, STORE_DIGEST) != 0))
        i++;
    return i;
}

static enum store_result fuzz_get(void *ctx, const unsigned char *digest,
                                  struct stored *r, unsigned char **data)
{
    const struct fuzz_process *const p = ctx;
    const unsigned i = kept_at(p, digest);
    if (i == KEPT)
        return STORE_NONE;
    *r = p->kept[i].r;
    if (data) {
        *data = malloc(KEPT_BYTES);
        if (!*data)
            abort();
        memcpy(*data, p->kept[i].data, KEPT_BYTES);
    }
    return STORE_OK;
}

static enum store_result fuzz_put(void *ctx, const struct stored *r,
                                  const void *data)
{
    struct fuzz_process *const p = ctx;
    unsigned i = kept_at(p, r->digest);
    if (!r->flags || !stored_genuine(r, data))
        abort();
    if (i < KEPT && store_newer(&p->kept[i].r, r))
        return STORE_STALE;
    for (unsigned k = 0; k < KEPT && i == KEPT; k++)
        if (!p->kept[k].used)
            i = k;
    if (i == KEPT || r->nbytes > KEPT_BYTES)
        return STORE_BROKEN;
    p->kept[i].used = true;
    p->kept[i].r = *r;
    memcpy(p->kept[i].data, data, r->nbytes);
    return STORE_OK;
}

static void fuzz_drop(void *ctx, const unsigned char *digest)
{
    struct fuzz_process *const p = ctx;
    const unsigned i = kept_at(p, digest);
    if (i < KEPT)
        p->kept[i].used = false;
}

static int kept_order(const void *a, const void *b)
{
    return memcmp(a, b, STORE_DIGEST);
}

static size_t fuzz_list(void *ctx, uint64_t a, uint64_t b,
                        const unsigned char *after, struct stored *out,
                        size_t most)
{
    const struct fuzz_process *const p = ctx;
    size_t n = 0;
    for (unsigned i = 0; i < KEPT && n < most && !after; i++) {
        const uint64_t id = store_id(p->kept[i].r.digest);
        if (p->kept[i].used && (a == b || id == b || id - a - 1 < b - a - 1))
            out[n++] = p->kept[i].r;
    }
    qsort(out, n, sizeof *out, kept_order);
    return n;
}

static const struct names_host fuzz_host = { fuzz_ask, fuzz_save, fuzz_get,
                                             fuzz_put, fuzz_drop, fuzz_list,
                                             NULL,     NULL };

static struct roster_entry fuzz_entry(unsigned i)
{
    return (struct roster_entry){ 0,
                                  { 4, { 127, 0, 0, 1 }, (uint16_t)(7001 + i) },
                                  1 };
}

static void fuzz_load(const uint8_t *data, size_t size)
{
    struct names m;
    const struct roster_entry self = fuzz_entry(0);
    if (!names_init(&m, &fuzz_host, all, &self, 2, 0, 5))
        abort();
    if (!names_load(&m, data, size) && m.npast && !names_save(&m))
        abort();
    names_free(&m);
}

static void tick_all(const struct address *entries)
{
    static uint64_t now = 1000;
    now += 1000;
    for (unsigned i = 0; i < PROCESSES; i++) {
        names_tick(&all[i].m, &all[i], entries, PROCESSES, now, 3000);
        names_settle(&all[i].m, &all[i]);
    }
}

static size_t one_message(const uint8_t *data, size_t size,
                          const struct address *entries)
{
    unsigned char body[8 + 8 + 256];
    size_t n = 0;
    struct fuzz_process *const p = &all[data[0] % PROCESSES];
    const uint8_t type =
        (uint8_t)(NAMES_WHO + data[1] % (NAMES_END - NAMES_WHO));
    const size_t length = data[2] < size - 3 ? data[2] : size - 3;
    if (data[0] & 16) {
        tick_all(entries);
        return 3;
    }
    if (data[0] & 4) {
        put_le(body, p->m.lineage, 8);
        n = 8;
    }
    if (data[0] & 8) {
        put_le(body + n, names_state(&p->m).epoch, 8);
        n += 8;
    }
    memcpy(body + n, data + 3, length);
    struct blob out = { 0 };
    const char *text = NULL;
    const enum frame_error e =
        names_serve(&p->m, p, type, body, n + length, &out, &text);
    if (e && !text)
        abort();
    blob_free(&out);
    return 3 + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct address entries[PROCESSES];
    all = calloc(PROCESSES, sizeof *all);
    if (!all)
        return 0;
    for (unsigned i = 0; i < PROCESSES; i++) {
        const struct roster_entry self = fuzz_entry(i);
        entries[i] = self.address;
        if (!names_init(&all[i].m, &fuzz_host, &all[i], &self, 2, 0,
                        100 + 2 * i))
            abort();
    }
    if (size && data[0] & 128) {
        fuzz_load(data + 1, size - 1);
    } else {
        if (!names_found(&all[0].m))
            abort();
        for (unsigned i = 0; i < 4; i++)
            tick_all(entries);
        for (size_t at = 0; at + 3 <= size;)
            at += one_message(data + at, size - at, entries);
        for (unsigned i = 0; i < PROCESSES; i++)
            if (all[i].nsaved)
                fuzz_load(all[i].saved, all[i].nsaved);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        names_free(&all[i].m);
        blob_free(&all[i].answer);
        free(all[i].saved);
    }
    free(all);
    return 0;
}

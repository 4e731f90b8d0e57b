/*
 * chord_record.c - records as they stand in frames, and whether they are
 * genuine
 */
#include "chord/chord_record.h"

#include <string.h>

#include "io/digests.h"

void stored_put(struct blob *b, const struct stored *r)
{
    blob_bytes(b, r->digest, STORE_DIGEST);
    blob_number(b, r->counter, 8);
    blob_number(b, r->writer, 8);
    blob_number(b, r->when, 8);
    blob_number(b, r->flags, 1);
}

void stored_take(struct body *b, struct stored *r)
{
    *r = (struct stored){ 0 };
    const unsigned char *const digest = body_bytes(b, STORE_DIGEST);
    if (digest)
        memcpy(r->digest, digest, STORE_DIGEST);
    r->counter = body_number(b, 8);
    r->writer = body_number(b, 8);
    r->when = body_number(b, 8);
    r->flags = (uint8_t)body_number(b, 1);
}

void name_digest(const void *name, size_t n, unsigned char *digest)
{
    char text[CHORD_NAME_MOST + 5];
    memcpy(text, "file:", 5);
    memcpy(text + 5, name, n);
    sum_sha256(text, n + 5, digest);
}

bool stored_genuine(const struct stored *r, const unsigned char *data)
{
    unsigned char sum[SHA256_BYTES];
    struct body b = { data, r->nbytes, false };
    if (!r->flags) {
        sum_sha256(data, r->nbytes, sum);
    } else {
        const size_t n = (size_t)body_number(&b, 2);
        const unsigned char *const name = body_bytes(&b, n);
        if (!name || !n || n > CHORD_NAME_MOST ||
            (r->flags != STORE_IS_MANIFEST &&
             (r->flags != STORE_IS_TOMB || b.n)))
            return false;
        name_digest(name, n, sum);
    }
    return memcmp(sum, r->digest, sizeof sum) == 0;
}

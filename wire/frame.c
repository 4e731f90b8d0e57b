/*
 * frame.c - messages between processes, as bytes
 */
#include "wire/frame.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/byte_order.h"
#include "base/grow.h"

/* ---------------------------------------------------------------- CRC-32C */

/* Eight bytes at a time by as many tables: 1.5 GB/s. */
static uint32_t crc_tables[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_make(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (unsigned k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? UINT32_C(0x82f63b78) : 0);
        crc_tables[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (unsigned t = 1; t < 8; t++) {
            const uint32_t before = crc_tables[t - 1][i];
            crc_tables[t][i] = before >> 8 ^ crc_tables[0][before & 255];
        }
}

uint32_t frame_crc(uint32_t sum, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    pthread_once(&crc_once, crc_make);
    uint32_t c = ~sum;
    for (; n >= 8; n -= 8, p += 8) {
        const uint64_t x = get_le(p, 8) ^ c;
        c = 0;
        for (unsigned i = 0; i < 8; i++)
            c ^= crc_tables[7 - i][x >> 8 * i & 255];
    }
    while (n-- > 0)
        c = c >> 8 ^ crc_tables[0][(c ^ *p++) & 255];
    return ~c;
}

/* ------------------------------------------------------------------ frames */

enum frame_read frame_read(const unsigned char *bytes, size_t n,
                           struct frame *out, size_t *used)
{
    *used = FRAME_OVERHEAD;
    if (n < 4)
        return FRAME_SHORT;
    const size_t rest = (size_t)get_le(bytes, 4);
    if (rest > FRAME_MOST || rest < FRAME_OVERHEAD - 4)
        return FRAME_BAD;
    if (n > 4 && bytes[4] != FRAME_VERSION)
        return FRAME_BAD;
    *used = rest + 4;
    if (n < *used)
        return FRAME_SHORT;
    if (frame_crc(0, bytes, rest) != get_le(bytes + rest, 4))
        return FRAME_BAD;
    *out = (struct frame){ .type = bytes[5],
                           .flags = (uint16_t)get_le(bytes + 6, 2),
                           .request = (uint32_t)get_le(bytes + 8, 4),
                           .ring = get_le(bytes + 12, 8),
                           .body = bytes + FRAME_HEAD,
                           .nbody = rest - (FRAME_OVERHEAD - 4) };
    return FRAME_WHOLE;
}

size_t frame_close(unsigned char *bytes, size_t nbody, const struct frame *f)
{
    const size_t rest = nbody + FRAME_OVERHEAD - 4;
    put_le(bytes, rest, 4);
    bytes[4] = FRAME_VERSION;
    bytes[5] = f->type;
    put_le(bytes + 6, f->flags, 2);
    put_le(bytes + 8, f->request, 4);
    put_le(bytes + 12, f->ring, 8);
    put_le(bytes + rest, frame_crc(0, bytes, rest), 4);
    return rest + 4;
}

/* ------------------------------------------------------------------ bodies */

uint64_t body_number(struct body *b, unsigned nbytes)
{
    if (b->n < nbytes) {
        b->bad = true;
        b->n = 0;
        return 0;
    }
    const uint64_t x = get_le(b->at, nbytes);
    b->at += nbytes;
    b->n -= nbytes;
    return x;
}

const unsigned char *body_bytes(struct body *b, size_t n)
{
    if (b->n < n) {
        b->bad = true;
        b->n = 0;
        return NULL;
    }
    const unsigned char *const at = b->at;
    b->at += n;
    b->n -= n;
    return at;
}

static bool blob_room(struct blob *b, size_t more)
{
    if (b->failed || b->n + more > FRAME_MOST)
        return !(b->failed = true);
    b->failed = !GROW(&b->at, &b->room, b->n + more + 4);
    return !b->failed;
}

void blob_start(struct blob *b)
{
    b->n = 0;
    b->failed = false;
    if (blob_room(b, FRAME_HEAD))
        b->n = FRAME_HEAD;
}

void blob_number(struct blob *b, uint64_t x, unsigned nbytes)
{
    if (!blob_room(b, nbytes))
        return;
    put_le(b->at + b->n, x, nbytes);
    b->n += nbytes;
}

void blob_bytes(struct blob *b, const void *bytes, size_t n)
{
    if (!blob_room(b, n))
        return;
    if (n)
        memcpy(b->at + b->n, bytes, n);
    b->n += n;
}

bool blob_frame(struct blob *b, const struct frame *f)
{
    if (b->failed || b->n < FRAME_HEAD || !blob_room(b, 0))
        return false;
    b->n = frame_close(b->at, b->n - FRAME_HEAD, f);
    return true;
}

void blob_free(struct blob *b)
{
    free(b->at);
    *b = (struct blob){ 0 };
}

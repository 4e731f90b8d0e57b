/*
 * frame.h - messages between processes, as bytes
 *
 *     u32 length of the rest    at most 8 MiB and 4 KiB
 *     u8  version (1)   u8 type   u16 flags   u32 request   u64 ring
 *     body
 *     u32 CRC-32C of all before it
 *
 * Little-endian. Any protocol can use frames, with types and bodies of its own.
 * Counts in a body are compared with its length before anything is allocated
 * for them.
 */
#ifndef BLY_WIRE_FRAME_H
#define BLY_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_VERSION 1
#define FRAME_HEAD 20
#define FRAME_OVERHEAD (FRAME_HEAD + 4)
#define FRAME_MOST ((size_t)(8 << 20) + 4096) /* of what follows the length */
#define FRAME_BODY (FRAME_MOST - FRAME_OVERHEAD + 4)

enum {
    FRAME_ANSWER = 1,
    FRAME_ERROR = 2 /* of an answer; its body is a u8 code and a text */
};

/* Codes of errors. */
enum frame_error {
    FRAME_REFUSED = 1, /* not a member, or not of this ring */
    FRAME_BUSY,        /* too much waits already: try again later */
    FRAME_NOT_FOUND,
    FRAME_NOT_MINE,
    FRAME_STALE,   /* there is a newer version */
    FRAME_FULL,    /* the disk took it not */
    FRAME_WRONG,   /* the body is malformed */
    FRAME_DAMAGED, /* it is there, but not as it was written */
    FRAME_NOT_SOON /* too few are there, and waiting will not help */
};

struct frame {
    uint8_t type;
    uint16_t flags;
    uint32_t request;
    uint64_t ring;
    const unsigned char *body;
    size_t nbody;
};

enum frame_read { FRAME_SHORT, FRAME_WHOLE, FRAME_BAD };

/* The frame that n bytes begin with; *used is how many it has. FRAME_SHORT:
 * more have to come, *used in all, if that is known. */
enum frame_read frame_read(const unsigned char *bytes, size_t n,
                           struct frame *out, size_t *used);

/* All of a frame but its body, which stands at FRAME_HEAD already: the number
 * of its bytes. */
size_t frame_close(unsigned char *bytes, size_t nbody, const struct frame *f);

uint32_t frame_crc(uint32_t sum, const void *bytes, size_t n);

/* ------------------------------------------------------------------- bodies */

/* Reading: what lies past the end is zero, and `bad` is set. */
struct body {
    const unsigned char *at;
    size_t n;
    bool bad;
};

uint64_t body_number(struct body *b, unsigned nbytes);
const unsigned char *body_bytes(struct body *b, size_t n); /* NULL: too few */

/* Writing, into memory that grows: `failed` if it could not, or is too long. A
 * frame's head is left free at its beginning. */
struct blob {
    unsigned char *at;
    size_t n, room;
    bool failed;
};

void blob_start(struct blob *b); /* empties it, and leaves the head */
void blob_number(struct blob *b, uint64_t x, unsigned nbytes);
void blob_bytes(struct blob *b, const void *bytes, size_t n);
void blob_free(struct blob *b);

/* Make the frame of a blob; false if it failed. */
bool blob_frame(struct blob *b, const struct frame *f);

#endif

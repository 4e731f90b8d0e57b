/*
 * teller.h - telling others what changed in a digest
 *
 * Frames over wire/session.h, sealed if there is a secret. A listener says
 * which version it has; from then on it is sent updates: those that lead on
 * from there, or the whole digest if the teller does not know that version, or
 * if all of it takes fewer bytes. While nothing changes, a sign of life is sent
 * now and then. So whatever was lost, by a broken connection or because either
 * side was started again, is made up for by the next greeting.
 */
#ifndef BLY_DIGEST_TELLER_H
#define BLY_DIGEST_TELLER_H

#include "apps/digest/updates.h"
#include "wire/address.h"
#include "wire/gate.h"
#include "wire/shared_secret.h"

#define TELL_PROTOCOL "blynews" /* 7 bytes */
enum {
    TELL_ASK = 1,  /* u64 life, u64 version: what the listener has */
    TELL_PART = 2, /* of an update; the last one is TELL_UPDATE */
    TELL_UPDATE = 3,
    TELL_ALIVE = 4
};
#define TELL_PIECE ((size_t)4 << 20) /* bytes of an update in one frame */
#define TELL_ALIVE_MS 15000
#define TELL_SILENT_MS 60000 /* after which a listener takes it for gone */
#define TELL_STEP_MS 30000   /* that a frame may take */

struct teller;

struct teller_counts {
    uint64_t versions, listeners; /* that came so far */
    uint64_t wholes, whole_bytes; /* sent to all of them, with their frames */
    uint64_t deltas, delta_bytes;
    uint64_t would_be; /* bytes, had each update been a whole digest */
};

/* Listen. The secret stays where it is. NULL, with the reason printed. */
struct teller *teller_open(const char *listen, const struct gate_limits *limits,
                           const struct secure_secret *secret,
                           struct address *at);

/* A new version: a digest whose bytes are the teller's from now on. */
void teller_publish(struct teller *t, unsigned char *bytes, size_t nbytes);

struct teller_counts teller_count(struct teller *t);

/* Stop and release t; NULL is allowed. */
void teller_close(struct teller *t);

#endif

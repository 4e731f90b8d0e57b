/*
 * secure.h - who may speak: a shared secret, and sealed records
 *
 * Both ends begin with 40 bytes: 7 that name the protocol, such as "blyring",
 * and '0' without a secret or '2' with one, and 32 random bytes. With a secret,
 * the key of each direction is a keyed BLAKE2b of both nonces, the direction,
 * the protocol, and in a ring the address at which one end listens and which
 * the other wanted to reach: an end that was led to another node than it asked
 * for shares no key with it. All that follows is a stream of libsodium's
 * (XChaCha20-Poly1305): 24 bytes of header, then records, each a u32 length and
 * a sealed frame. Who lacks the secret can make no record that opens, and old
 * records open in no other connection.
 *
 * There is no fallback: an end with a secret does not talk to one without, nor
 * the other way round.
 */
#ifndef BLY_WIRE_SECURE_H
#define BLY_WIRE_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/address.h"
#include "wire/shared_secret.h"

#include <sodium.h>

#define SECURE_HELLO 40
#define SECURE_RING "blyring"
#define SECURE_HEADER 24     /* of a stream */
#define SECURE_MORE (4 + 17) /* bytes that sealing adds */

/* Let libsodium begin; false, with the reason printed. */
bool secure_begin(void);

/* shared_read(), and something can be sealed. */
bool secure_read(const char *path, struct secure_secret *out);

struct secure {
    bool on, ready;
    const char *protocol;
    unsigned char nonce[32];
    crypto_secretstream_xchacha20poly1305_state out, in;
};

/* What is said first; protocol NULL: that of rings. */
void secure_hello(struct secure *s, const char *protocol,
                  const struct secure_secret *secret,
                  unsigned char hello[SECURE_HELLO]);

/* The first 8 bytes of the other's hello have come: are they of the same
 * protocol, and what else is wrong with them? NULL: nothing. */
bool secure_same(const struct secure *s, const unsigned char hello[8]);
const char *secure_meets(const struct secure *s, const unsigned char hello[8]);

/* The other's hello has come: NULL and, with a secret, the header to send; or
 * why not. `server` is the address that was wanted, or at which it came in. */
const char *secure_greeted(struct secure *s, const struct secure_secret *secret,
                           bool asks, const struct address *server,
                           const unsigned char hello[SECURE_HELLO],
                           unsigned char header[SECURE_HEADER]);
/* The other's header has come. */
bool secure_begins(struct secure *s, const unsigned char header[SECURE_HEADER]);

/* Seal n bytes into out, which has room for SECURE_MORE more; open a record of
 * n bytes, without its length, into out, which has n bytes: the number of them,
 * 0 if it is not genuine. */
size_t secure_seal(struct secure *s, const unsigned char *bytes, size_t n,
                   unsigned char *out);
size_t secure_open(struct secure *s, const unsigned char *bytes, size_t n,
                   unsigned char *out);

#endif

/*
 * secure.h - who may speak: a shared secret, and sealed records
 *
 * Both ends begin with 40 bytes: "blyring" and '0' for a ring without a secret
 * or '2' for one with, and 32 random bytes. With a secret, the key of each
 * direction is a keyed BLAKE2b of both nonces, the direction, and the address
 * at which one end listens and which the other wanted to reach: who is led to
 * another node than it asked for shares no key with it. All that
 * follows is a stream of libsodium's (XChaCha20-Poly1305): 24 bytes of header,
 * then records, each a u32 length and a sealed frame. Who lacks the secret can
 * make no record that opens, and old records open in no other connection.
 */
#ifndef BLY_WIRE_SECURE_H
#define BLY_WIRE_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/address.h"

#include <sodium.h>

#define SECURE_HELLO 40
#define SECURE_SECRET 32
#define SECURE_HEADER 24     /* of a stream */
#define SECURE_MORE (4 + 17) /* bytes that sealing adds */

struct secure_secret {
    bool given;
    unsigned char key[SECURE_SECRET];
};

/* Let libsodium begin; false, with the reason printed. */
bool secure_begin(void);

/* The secret of a file that `bloomery node key` made, or of another with 64
 * hexadecimal digits; path NULL: none. False, with the reason printed. */
bool secure_read(const char *path, struct secure_secret *out);
bool secure_make(const char *path);

struct secure {
    bool on, ready;
    unsigned char nonce[32];
    crypto_secretstream_xchacha20poly1305_state out, in;
};

/* What is said first. */
void secure_hello(struct secure *s, const struct secure_secret *secret,
                  unsigned char hello[SECURE_HELLO]);

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

/*
 * shared_secret.h - what two processes both have, and nobody else
 */
#ifndef BLY_WIRE_SHARED_SECRET_H
#define BLY_WIRE_SHARED_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#define SECURE_SECRET 32 /* bytes at most; 16 at least */

struct secure_secret {
    bool given;
    unsigned char key[SECURE_SECRET];
    size_t nkey;
};

/* The secret of a file: 16 bytes, or 32 or 64 hexadecimal digits, as `bloomery
 * node key` makes them; path NULL: none. False, with the reason printed. */
bool shared_read(const char *path, struct secure_secret *out);
bool shared_make(const char *path);

/* What keys hashes where both sides need the same ones; NULL: nothing. */
const unsigned char *shared_hashes(const struct secure_secret *secret);

#endif

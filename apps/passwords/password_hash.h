/*
 * password_hash.h - the hashes of passwords that lists are made of
 */
#ifndef BLY_PASSWORDS_HASH_H
#define BLY_PASSWORDS_HASH_H

#include <stdbool.h>
#include <stddef.h>

/* The two that lists are made of. */
struct password_hash {
    const char *name; /* as in metadata and options */
    size_t nbytes;
};
enum { HASH_SHA1, HASH_NTLM, NHASHES };
extern const struct password_hash password_hashes[NHASHES];
#define HASH_MOST 20            /* bytes of the longer one */
#define HASHES_PAIR "passwords" /* the name of the pair that says which */

/* Hash a password in UTF-8. False: NTLM hashes UTF-16, and this is not UTF-8,
 * or it is longer than room / 2; room of an even number of bytes is for that.
 */
bool hash_password(unsigned which, const char *text, size_t n,
                   unsigned char *room, size_t nroom,
                   unsigned char out[HASH_MOST]);

#endif

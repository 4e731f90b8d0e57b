/*
 * secret.c - what nobody outside of this process knows
 *
 * Linux hands every program 16 random bytes, without a system call that could
 * fail or block. The C library makes its stack guard of them, so they are not
 * given away, but key a hash. Elsewhere, nothing is secret.
 */
#include "core/secret.h"

#include <bloomery.h>
#ifdef __linux__
#include <string.h>
#include <sys/auxv.h>
#endif

void bly_process_secret(uint64_t secret[2])
{
    bly_hasher by = { .id = BLY_HASH_SIPHASH13 };
#ifdef __linux__
    const unsigned long at = getauxval(AT_RANDOM);
    if (at)
        memcpy(by.secret, (const void *)at, sizeof by.secret); /* NOLINT */
#endif
    secret[0] = bly_hash(&by, "0", 1);
    secret[1] = bly_hash(&by, "1", 1);
}

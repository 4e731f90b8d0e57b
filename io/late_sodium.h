/*
 * late_sodium.h - libsodium, loaded when it is needed
 */
#ifndef BLY_LATE_SODIUM_H
#define BLY_LATE_SODIUM_H

#include <sodium.h>

#include "io/late.h"

#define SODIUM_CALLS(X)                                \
    X(sodium_init)                                     \
    X(sodium_mlock)                                    \
    X(sodium_munlock)                                  \
    X(sodium_memcmp)                                   \
    X(randombytes_buf)                                 \
    X(crypto_generichash)                              \
    X(crypto_generichash_init)                         \
    X(crypto_generichash_update)                       \
    X(crypto_generichash_final)                        \
    X(crypto_kdf_derive_from_key)                      \
    X(crypto_secretstream_xchacha20poly1305_init_push) \
    X(crypto_secretstream_xchacha20poly1305_push)      \
    X(crypto_secretstream_xchacha20poly1305_init_pull) \
    X(crypto_secretstream_xchacha20poly1305_pull)

extern struct sodium_calls {
    SODIUM_CALLS(LATE_MEMBER)
} sodium_calls;

/* Load it and let it begin; false, with the reason printed. */
bool sodium_begin(void);

#define sodium_init (*sodium_calls.late_sodium_init)
#define sodium_mlock (*sodium_calls.late_sodium_mlock)
#define sodium_munlock (*sodium_calls.late_sodium_munlock)
#define sodium_memcmp (*sodium_calls.late_sodium_memcmp)
#define randombytes_buf (*sodium_calls.late_randombytes_buf)
#define crypto_generichash (*sodium_calls.late_crypto_generichash)
#define crypto_generichash_init (*sodium_calls.late_crypto_generichash_init)
#define crypto_generichash_update (*sodium_calls.late_crypto_generichash_update)
#define crypto_generichash_final (*sodium_calls.late_crypto_generichash_final)
#define crypto_kdf_derive_from_key \
    (*sodium_calls.late_crypto_kdf_derive_from_key)
#define stream_seal_begin \
    (*sodium_calls.late_crypto_secretstream_xchacha20poly1305_init_push)
#define stream_seal \
    (*sodium_calls.late_crypto_secretstream_xchacha20poly1305_push)
#define stream_open_begin \
    (*sodium_calls.late_crypto_secretstream_xchacha20poly1305_init_pull)
#define stream_open \
    (*sodium_calls.late_crypto_secretstream_xchacha20poly1305_pull)

#endif

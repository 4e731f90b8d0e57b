/*
 * redis_slot.c - the slot of a key, as a cluster counts it
 *
 * CRC-16 of CCITT with polynomial 0x1021 and no reflection (XMODEM's), modulo
 * 16384. Where a key has a { and later a }, with something between them, that
 * alone is hashed: so "f:{7}" and "other:{7}" are neighbours. "123456789" has
 * the CRC 0x31c3.
 */
#include <string.h>

#include "cli/redis_router.h"

unsigned key_slot(const void *key, size_t len)
{
    const unsigned char *at = key;
    const unsigned char *const open = memchr(at, '{', len);
    if (open) {
        const size_t rest = len - (size_t)(open + 1 - at);
        const unsigned char *const close = memchr(open + 1, '}', rest);
        if (close && close > open + 1) {
            at = open + 1;
            len = (size_t)(close - at);
        }
    }
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)at[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000u ? crc << 1 ^ 0x1021u : crc << 1) & 0xffffu;
    }
    return crc % SLOTS;
}

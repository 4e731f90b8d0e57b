/*
 * password_hash.c - the hashes of passwords that lists are made of
 *
 * SHA-1 of the bytes; NTLM, which is MD4 of the text in UTF-16.
 */
#include "apps/passwords/password_hash.h"

#include "base/byte_order.h"
#include "io/digests.h"
#include "io/utf8.h"

const struct password_hash password_hashes[NHASHES] = {
    [HASH_SHA1] = { "sha1", SHA1_BYTES },
    [HASH_NTLM] = { "ntlm", MD4_BYTES },
};

bool hash_password(unsigned which, const char *text, size_t n,
                   unsigned char *room, size_t nroom,
                   unsigned char out[HASH_MOST])
{
    if (which == HASH_SHA1) {
        sum_sha1(text, n, out);
        return true;
    }
    size_t nwide = 0;
    for (const char *at = text; at < text + n;) {
        int32_t c = utf8_next(&at, text + n);
        if (c < 0 || nroom - nwide < 4)
            return false;
        if (c >= 0x10000) {
            c -= 0x10000;
            put_le(room + nwide, 0xd800 + ((uint32_t)c >> 10), 2);
            nwide += 2;
            c = 0xdc00 + (c & 0x3ff);
        }
        put_le(room + nwide, (uint32_t)c, 2);
        nwide += 2;
    }
    sum_md4(room, nwide, out);
    return true;
}

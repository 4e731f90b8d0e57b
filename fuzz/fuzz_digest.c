/*
 * fuzz_digest.c - what digests are made of: URLs, lines, swap.state
 *
 * The first byte chooses. A canonical URL is within its bound and is its own
 * canonical form; what a line is said to hold lies in it or in the room for
 * it; a swap.state gives no more keys than it has records.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps/digest/digest.h"
#include "foreign/squid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void url(const char *text, size_t n)
{
    char *const once = malloc(n + BLY_SQUID_URL_MORE);
    char *const twice = malloc(n + 2 * BLY_SQUID_URL_MORE);
    if (once && twice) {
        const size_t len = bly_squid_url(text, n, once);
        assert(len <= n + BLY_SQUID_URL_MORE);
        const size_t again = bly_squid_url(once, len, twice);
        assert(again == len && memcmp(once, twice, len) == 0);
    }
    free(once);
    free(twice);
}

static void assert_within(bly_bytes part, const char *text, size_t n,
                          const char *room, size_t nroom)
{
    const char *const p = part.ptr;
    assert(part.len == 0 || (p >= text && p + part.len <= text + n) ||
           (p >= room && p + part.len <= room + nroom));
}

static void line(const char *text, size_t n)
{
    struct digest_line l;
    char *const room = malloc(n + 8);
    if (!room)
        return;
    digest_line_read(text, n, room, &l);
    assert_within(l.key, text, n, room, n + 8);
    assert_within(l.url, text, n, room, n + 8);
    assert_within(l.client, text, n, room, n + 8);
    assert(l.form != DIGEST_UNKNOWN || (!l.is_asked && !l.key.len));
    free(room);
}

static bool count_key(void *ctx, bly_bytes key)
{
    ++*(size_t *)ctx;
    assert(key.len == 32);
    return true;
}

/* In pieces of a length that the input names. */
static void swap(const uint8_t *data, size_t n)
{
    struct digest_swap s = { 0 };
    const size_t piece = n ? (size_t)data[0] + 1 : 1;
    size_t nkeys = 0;
    bool right = true;
    for (size_t at = n > 0; right && at < n; at += piece)
        right = digest_swap_add(&s, data + at, n - at < piece ? n - at : piece);
    assert(right != (s.error[0] != '\0'));
    if (right)
        digest_swap_end(&s, count_key, &nkeys);
    assert(nkeys <= n / DIGEST_SWAP_RECORD);
    digest_swap_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    /* A copy that ends where the allocation does. */
    const size_t n = size - 1;
    char *const copy = malloc(n ? n : 1);
    if (!copy)
        return 0;
    memcpy(copy, data + 1, n);
    switch (data[0] % 3) {
    case 0:
        url(copy, n);
        break;
    case 1:
        line(copy, n);
        break;
    default:
        swap((const uint8_t *)copy, n);
    }
    free(copy);
    return 0;
}

/*
 * fuzz_reconcile.c - symbols from a peer that may send anything
 *
 * The first byte chooses the width, a secret and the form. The rest is taken as
 * it comes, in two pieces and as strata; and as elements of two sets, whose
 * difference must be found.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/reconcile.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SYMBOLS 64

static bly_coded *symbols_of(const bly_coding *how, const uint8_t *data,
                             size_t n)
{
    bly_coded *c;
    if (bly_coded_new(how, 0, SYMBOLS, &c))
        return NULL;
    assert(bly_coded_add(c, data, n) == BLY_OK);
    return c;
}

/* Bytes that do not answer anything: nothing but a status may come of it.
 */
static void take(const bly_coding *how, const uint8_t *data, size_t size)
{
    bly_coded *const mine = symbols_of(how, data, size / how->width % 8);
    bly_differ *d = NULL;
    if (mine && !bly_differ_new(how, &d)) {
        const void *found;
        bly_differ_take(d, mine, data, size / 2);
        bly_differ_take(d, mine, data + size / 2, size - size / 2);
        bly_differ_take(d, mine, data, size);
        assert(bly_differ_elements(d, BLY_MINE, &found) +
                   bly_differ_elements(d, BLY_THEIRS, &found) <=
               bly_differ_symbols(d));
    }
    bly_differ_free(d);
    bly_coded_free(mine);
    bly_strata *s;
    uint64_t about;
    if (how->hashes || bly_strata_new(how, &s))
        return;
    bly_strata_estimate(s, data, size, &about);
    bly_strata_free(s);
}

static bool known(const uint8_t *set, size_t n, const void *element,
                  size_t width)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(set + i * width, element, width) == 0)
            return true;
    return false;
}

/* Mine has the first elements, theirs the last, some are in both. What is found
 * before the end is right, too, as long as none comes twice. */
static void differ(const bly_coding *how, const uint8_t *data, size_t size)
{
    const size_t w = how->width, n = size / w < 24 ? size / w : 24;
    const size_t to = n - n / 3, from = n / 3;
    bly_coded *const mine = symbols_of(how, data, to);
    bly_coded *const theirs = symbols_of(how, data + from * w, n - from);
    unsigned char *const bytes =
        theirs ? malloc(bly_coded_room(theirs, SYMBOLS)) : NULL;
    bly_differ *d = NULL;
    bool twice = false;
    for (size_t i = 0; i < n; i++)
        twice |= known(data, i, data + i * w, w);
    if (mine && bytes && !twice && !bly_differ_new(how, &d)) {
        const size_t nbytes = bly_coded_write(theirs, 0, SYMBOLS, bytes);
        assert(bly_differ_take(d, mine, bytes, nbytes) == BLY_OK);
        const void *got;
        size_t count = bly_differ_elements(d, BLY_MINE, &got);
        for (size_t i = 0; i < count; i++)
            assert(known(data, from, (const char *)got + i * w, w));
        assert(!bly_differ_done(d) || count == from);
        count = bly_differ_elements(d, BLY_THEIRS, &got);
        for (size_t i = 0; i < count; i++)
            assert(known(data + to * w, n - to, (const char *)got + i * w, w));
        assert(!bly_differ_done(d) || count == n - to);
    }
    bly_differ_free(d);
    free(bytes);
    bly_coded_free(mine);
    bly_coded_free(theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char secret[BLY_SECRET_BYTES] = "not so secret";
    if (!size)
        return 0;
    const bly_coding how = {
        .width = 8 + data[0] % 8 * 8,
        .secret = data[0] & 8 ? secret : NULL,
        .hashes = data[0] & 16 ? 3 + (data[0] >> 5) % 6 : 0,
    };
    take(&how, data + 1, size - 1);
    differ(&how, data + 1, size - 1);
    return 0;
}

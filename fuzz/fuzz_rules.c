/*
 * fuzz_rules.c - Snort's rules and a text, in one input
 *
 * The first byte chooses the form of the strings and the size of pieces. Lines
 * up to an empty one are rules, what follows is the text. Whatever the rules
 * are, filters and automaton find the same matches, in pieces or at once.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/scan_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t mixed(uint64_t sum, uint64_t start, size_t string)
{
    /* Order does not count: pieces give matches by where they end. */
    const uint64_t x = (start * 0x9e3779b97f4a7c15u) ^ (string + 1);
    return sum + (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
}

static uint64_t scanned(const struct rules *r, const struct scan_spec *spec,
                        const uint8_t *text, size_t n, size_t piece)
{
    struct scanner *const s = scanner_new(r->strings, r->n, spec);
    uint64_t sum = 0;
    for (size_t done = 0; s && done < n;) {
        const size_t len = n - done < piece ? n - done : piece;
        const size_t seen = done < scanner_keeps(s) ? done : scanner_keeps(s);
        /* Bytes of their own, so that a look past their end is seen. */
        unsigned char *const own = malloc(seen + len);
        const struct scan_match *m;
        size_t nm = 0;
        assert(own);
        memcpy(own, text + done - seen, seen + len);
        const struct scan_piece p = { own, seen, seen + len, done - seen, 0 };
        assert(scanner_scan(s, &p, &m, &nm));
        for (size_t i = 0; i < nm; i++)
            sum = mixed(sum, m[i].start, m[i].string);
        free(own);
        done += len;
    }
    scanner_free(s);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules r = { 0 };
    if (size < 1)
        return 0;
    const enum rules_form form = (enum rules_form)(data[0] % 3);
    const size_t piece = (size_t)1 << data[0] / 3 % 12;
    const uint8_t *at = data + 1, *const end = data + size;
    while (at < end) {
        const uint8_t *const line = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((line ? line : end) - at);
        if (n)
            rules_line(&r, form, at, n);
        at += line ? n + 1 : n;
        if (n == 0)
            break;
    }
    for (size_t i = 0; i < r.n; i++)
        assert(r.strings[i].n > 0 && r.strings[i].n <= SCAN_LONGEST);
    if (r.n) {
        const size_t n = (size_t)(end - at);
        const uint64_t right =
            scanned(&r, &(struct scan_spec){ .exact = true }, at, n, n + 1);
        assert(scanned(&r, &(struct scan_spec){ 0 }, at, n, piece) == right);
        for (unsigned i = 1; i < scan_nvariants; i++)
            assert(scanned(&r, &(struct scan_spec){ .variant = i }, at, n,
                           n + 1) == right);
    }
    rules_free(&r);
    return 0;
}

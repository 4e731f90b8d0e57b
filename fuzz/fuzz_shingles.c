/*
 * fuzz_shingles.c - any bytes, cut into shingles
 *
 * The first two bytes choose unit and size, the rest is the text. Words are
 * found once more, one byte after the other, and joined by single blanks; that
 * text must have the same shingles and the same hash.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t join(const uint8_t *text, size_t n, uint8_t *out, size_t *nwords)
{
    size_t len = 0;
    bool inside = false;
    *nwords = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = text[i];
        if (c >= 'A' && c <= 'Z')
            c = (uint8_t)(c - 'A' + 'a');
        const bool word =
            (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c > 127;
        if (word && !inside && (*nwords)++)
            out[len++] = ' ';
        if (word)
            out[len++] = c;
        inside = word;
    }
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bly_shingler *a = NULL, *b = NULL;
    bly_shingles x, y;
    if (size < 2)
        return 0;
    const bly_shingling how = { .unit = (bly_unit)(data[0] & 1),
                                .size = 1u + data[1],
                                .seed = data[0] >> 1 };
    const size_t n = size - 2;
    uint8_t *const text = malloc(n + 1), *const joined = malloc(n + 1);
    size_t nwords;
    if (text && joined && bly_shingler_new(&how, NULL, &a) == BLY_OK &&
        bly_shingler_new(&how, NULL, &b) == BLY_OK) {
        memcpy(text, data + 2, n);
        const size_t len = join(text, n, joined, &nwords);
        assert(bly_shingle(a, text, n, &x) == BLY_OK);
        assert(bly_shingle(b, joined, len, &y) == BLY_OK);
        assert(x.nwords == nwords && y.nwords == nwords);
        assert(x.n == y.n && x.text == y.text);
        assert(x.n == 0 || memcmp(x.hashes, y.hashes, 8 * x.n) == 0);
        const size_t units = how.unit == BLY_WORDS ? nwords : len;
        assert(x.n == (units >= how.size ? units - how.size + 1 : units > 0));
        const size_t m = bly_distinct(x.hashes, x.n);
        assert(bly_distinct(y.hashes, y.n) == m);
        assert(bly_overlap_of(x.hashes, m, y.hashes, m).in_both == m);
    }
    bly_shingler_free(a);
    bly_shingler_free(b);
    free(text);
    free(joined);
    return 0;
}

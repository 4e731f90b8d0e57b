/*
 * sort.c - sorting hashes in place
 *
 * Hashes are uniform, so the top byte splits them into 256 equal parts, the
 * next byte splits those, and so on until a part is small; the last split uses
 * fewer bits. That takes three passes for 16 million, and no extra memory
 * (McIlroy, Bostic and McIlroy, Engineering Radix Sort, 1993: the "American
 * flag"). Keys that are not uniform, which a caller may hand over as hashes,
 * only take more passes.
 */
#include "core/bits.h"
#include "core/sort.h"
#include "core/status.h"

/* Parts up to the first size are sorted by insertion. Parts above the second
 * are split by chains of exchanges side by side, since each key comes from
 * memory. */
#define SMALL_PART 32
#define LONG_PART 4096

static inline void swap_at(uint64_t *a, size_t i, size_t j)
{
    const uint64_t t = a[i];
    a[i] = a[j];
    a[j] = t;
}

static void insertion_sort(uint64_t *h, uint64_t *values, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint64_t key = h[i], value = values ? values[i] : 0;
        size_t j = i;
        for (; j > 0 && h[j - 1] > key; j--) {
            h[j] = h[j - 1];
            if (values)
                values[j] = values[j - 1];
        }
        h[j] = key;
        if (values)
            values[j] = value;
    }
}

/* Sort by the lowest nbits, more than 0 of them; all others are the same. A
 * part is split by eight bits or, if it is short, by as many as leave some 8 to
 * 16 keys in each part. Each split uses up bits, so at most 64 are nested. */
static void flag_sort(uint64_t *h, uint64_t *values, size_t n, unsigned nbits)
{
    size_t next[256], end[256];
    if (n <= SMALL_PART) {
        insertion_sort(h, values, n);
        return;
    }
    unsigned digit = 60 - (unsigned)__builtin_clzll(n); /* log2(n) - 3 */
    digit = digit > 8 ? 8 : digit;
    digit = digit > nbits ? nbits : digit;
    const unsigned shift = nbits - digit, nparts = 1u << digit;
    if (shift && n > LONG_PART) {
        size_t start[257];
        bly_hashes_part(h, values, n, UINT64_C(1) << (64 - shift),
                        h[0] >> shift >> digit << digit, nparts, start, next);
        for (unsigned b = 0; b < nparts; b++)
            flag_sort(h + start[b], values ? values + start[b] : NULL,
                      start[b + 1] - start[b], shift);
        return;
    }
    for (unsigned b = 0; b < nparts; b++)
        end[b] = 0;
    for (size_t i = 0; i < n; i++)
        end[h[i] >> shift & (nparts - 1)]++;
    size_t sum = 0;
    for (unsigned b = 0; b < nparts; b++) {
        next[b] = sum;
        sum += end[b];
        end[b] = sum;
    }
    for (unsigned b = 0; b < nparts; b++) {
        while (next[b] < end[b]) {
            const size_t i = next[b];
            const unsigned to = (unsigned)(h[i] >> shift) & (nparts - 1);
            if (to != b) {
                if (values)
                    swap_at(values, i, next[to]);
                swap_at(h, i, next[to]);
            }
            next[to]++;
        }
    }
    if (shift == 0)
        return;
    size_t from = 0;
    for (unsigned b = 0; b < nparts; b++) {
        flag_sort(h + from, values ? values + from : NULL, end[b] - from,
                  shift);
        from = end[b];
    }
}

void bly_hashes_sort(uint64_t *h, uint64_t *values, size_t n)
{
    flag_sort(h, values, n, 64);
}

bly_status bly_hashes_unique(uint64_t *h, uint64_t *values, size_t *n)
{
    size_t kept = 0;
    flag_sort(h, values, *n, 64);
    if (values)
        for (size_t i = 1; i < *n; i++)
            if (h[i] == h[i - 1] && values[i] != values[i - 1])
                return bly_fail(BLY_EINVAL,
                                "a key is given twice, with two different "
                                "values: %llu and %llu (leave one out)",
                                (unsigned long long)values[i - 1],
                                (unsigned long long)values[i]);
    for (size_t i = 0; i < *n; i++) {
        if (i && h[i] == h[i - 1])
            continue;
        h[kept] = h[i];
        if (values)
            values[kept] = values[i];
        kept++;
    }
    *n = kept;
    return BLY_OK;
}

/* Chains of exchanges that run side by side: each waits for one load after
 * the other. */
#define PART_CHAINS 8

/* Put a key at the next free place of its part, and take the one that lies
 * there. */
static inline __attribute__((always_inline)) size_t
exchange(uint64_t *h, uint64_t *values, size_t to, size_t *next, uint64_t *key,
         uint64_t *value)
{
    const size_t at = next[to]++;
    const uint64_t other = h[at];
    h[at] = *key;
    *key = other;
    if (values) {
        const uint64_t beside = values[at];
        values[at] = *value;
        *value = beside;
    }
    return at;
}

/* Fill part p; keys from next[p] to its end may belong to any part. The last
 * ones are taken out, and each begins a chain: it goes where it belongs, the
 * key that lay there moves on, and so forth, until a key of p finds no place
 * left but those of the keys that were taken out. */
static inline __attribute__((always_inline)) void
part_fill(uint64_t *h, uint64_t *values, uint64_t total, uint64_t first,
          size_t p, size_t end, size_t *next)
{
    uint64_t key[PART_CHAINS], value[PART_CHAINS] = { 0 };
    const size_t left = end - next[p];
    const size_t n = left < PART_CHAINS ? left : PART_CHAINS;
    const size_t limit = end - n;
    for (size_t c = 0; c < n; c++) {
        key[c] = h[limit + c];
        value[c] = values ? values[limit + c] : 0;
    }
    while (next[p] + PART_CHAINS <= limit)
        for (size_t c = 0; c < PART_CHAINS; c++)
            exchange(h, values, (size_t)(bly_scale(key[c], total) - first),
                     next, &key[c], &value[c]);
    for (size_t c = 0; c < n; c++) {
        size_t to, at;
        do {
            to = (size_t)(bly_scale(key[c], total) - first);
            at = exchange(h, values, to, next, &key[c], &value[c]);
        } while (to != p || at < limit);
    }
}

void bly_hashes_part(uint64_t *h, uint64_t *values, size_t n, uint64_t total,
                     uint64_t first, size_t nparts, size_t *start, size_t *next)
{
    for (size_t p = 0; p <= nparts; p++)
        start[p] = 0;
    start[nparts] = n;
    if (nparts == 1)
        return;
    for (size_t i = 0; i < n; i++)
        start[bly_scale(h[i], total) - first]++;
    for (size_t p = nparts; p-- > 0;)
        next[p] = start[p] = start[p + 1] - start[p];
    for (size_t p = 0; p < nparts; p++) {
        if (values)
            part_fill(h, values, total, first, p, start[p + 1], next);
        else
            part_fill(h, NULL, total, first, p, start[p + 1], next);
    }
}

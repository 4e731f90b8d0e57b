/*
 * inline_probe.c - bloomery/inline.h as its users compile it
 *
 * tree_inline compiles it as C and as C++, for several processors: the inline
 * form must give the answers of the calls, whichever instructions it got.
 */
#include <bloomery/inline.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    static const double rates[] = { 0.4, 0.2, 0.05, 0.01, 0.00001 };
    unsigned wrong = 0, hits = 0;
    for (unsigned r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        bly_spec spec = bly_spec();
        bly_filter *f;
        bly_blocked view;
        spec.items = 1000;
        spec.fpr = rates[r];
        spec.seed = r;
        /* Both hashes of integers. */
        spec.keying.type = r % 2 ? BLY_KEYS_UINT64 : BLY_KEYS_UNKNOWN;
        if (bly_new(&spec, &f) || !bly_blocked_view(f, &view))
            return 2;
        /* Half by calls, half inline, into this filter and another. */
        bly_blocked_adder adder, other_adder;
        bly_filter *other;
        uint64_t added = 0;
        if (bly_new(&spec, &other) || !bly_blocked_adder_of(f, &adder) ||
            !bly_blocked_adder_of(other, &other_adder))
            return 2;
        for (uint64_t i = 0; i < 1000; i++) {
            if (i % 2)
                added += bly_blocked_add_int(&adder, i);
            else if (bly_add_ints(f, &i, 1, NULL, NULL))
                return 2;
            (void)bly_blocked_add(&other_adder, bly_blocked_int_hash(&view, i));
        }
        wrong += bly_blocked_add_int(&adder, 1);
        if (bly_blocked_added(f, added))
            return 2;
        bly_stats stats;
        bly_peek(f, &stats);
        wrong += !bly_equal(f, other);
        wrong += stats.items_added > 1000 || stats.items_added < 500;
        bly_free(other);
        for (uint64_t i = 0; i < 20000; i++) {
            uint64_t maybe;
            const uint64_t hash = bly_blocked_int_hash(&view, i);
            bly_has_ints(f, &i, 1, &maybe);
            wrong += bly_blocked_has_int(&view, i) != (maybe != 0);
            wrong += bly_blocked_has(&view, hash) != bly_has_hash(f, hash);
            hits += maybe != 0;
        }
        /* Eight at a time, any number of them. */
        static uint64_t keys[20000], hashes[20000];
        for (uint64_t i = 0; i < 20000; i++) {
            keys[i] = i;
            hashes[i] = bly_blocked_int_hash(&view, i);
        }
        for (size_t n = 0; n <= 20000; n = n < 200 ? n + 1 : n * 100) {
            uint64_t mine[20000 / 64 + 1], theirs[20000 / 64 + 1];
            bly_has_hashes(f, hashes, n, theirs);
            bly_blocked_has_hashes(&view, hashes, n, mine);
            wrong += memcmp(mine, theirs, BLY_BITMAP_WORDS(n) * 8) != 0;
            bly_blocked_has_ints(&view, keys, n, mine);
            wrong += memcmp(mine, theirs, BLY_BITMAP_WORDS(n) * 8) != 0;
        }
        bly_free(f);
    }
    printf("%u wrong, %u hits\n", wrong, hits);
    return wrong != 0 || hits < 5000 || hits == 100000;
}

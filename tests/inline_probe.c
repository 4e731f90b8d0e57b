/*
 * inline_probe.c - bloomery/inline.h as its users compile it
 *
 * tree_inline compiles it as C and as C++, for several processors: the inline
 * form must give the answers of the calls, whichever instructions it got.
 */
#include <bloomery/inline.h>

#include <stdio.h>

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
        if (bly_new(&spec, &f) || !bly_blocked_view(f, &view))
            return 2;
        for (uint64_t i = 0; i < 1000; i++)
            if (bly_add_ints(f, &i, 1, NULL, NULL))
                return 2;
        for (uint64_t i = 0; i < 20000; i++) {
            uint64_t maybe;
            const uint64_t hash = bly_int_hash(i, view.flip);
            bly_has_ints(f, &i, 1, &maybe);
            wrong += bly_blocked_has_int(&view, i) != (maybe != 0);
            wrong += bly_blocked_has(&view, hash) != bly_has_hash(f, hash);
            hits += maybe != 0;
        }
        bly_free(f);
    }
    printf("%u wrong, %u hits\n", wrong, hits);
    return wrong != 0 || hits < 5000 || hits == 100000;
}

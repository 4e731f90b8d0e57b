/*
 * laws.h - what every kind promises, written once and run on every kind
 *
 *     LAW(clones_are_equal)
 *     {
 *         needs(kind, BLY_CAN(HAS));
 *         bly_filter *f = law_filled(row, 0, 1000);
 *         ...
 *     }
 *
 *     int main(int argc, char **argv)
 *     {
 *         return run_laws("laws", argc, argv);
 *     }
 *
 * A LAW is a cmocka test that runs once per row, in the order of the file and
 * under the name "law/row". The rows come from the table of kinds: one for
 * each kind, and one more for each choice of its options that is not the
 * default, such as "classic,layout=partitioned". In scope are
 *
 *     row     the row: law_spec() and law_filled() take it
 *     kind    what the kind says of itself
 *
 * A law that needs an ability asks for it, and is skipped for kinds that lack
 * it. No law names a kind, and there is no list of laws to keep. An argument
 * on the command line is a pattern of tests to run: 'clones*', '*'/classic.
 */
#ifndef TEST_LAWS_H
#define TEST_LAWS_H

#include "support.h"

typedef struct law_row {
    bly_kind_info kind;
    bly_option option; /* where noptions is 1 */
    size_t noptions;
    char name[80];
} law_row;

typedef struct law {
    const char *name;
    void (*run)(void **state); /* *state is the row */
    struct law *next;
} law;

#define LAW(law_name)                                                          \
    static void law_##law_name(const law_row *row, const bly_kind_info *kind); \
    static void test_##law_name(void **state)                                  \
    {                                                                          \
        const law_row *row = *state;                                           \
        law_##law_name(row, &row->kind);                                       \
    }                                                                          \
    __attribute__((constructor)) static void add_##law_name(void)              \
    {                                                                          \
        static law self = { #law_name, test_##law_name, NULL };                \
        law_add(&self);                                                        \
    }                                                                          \
    static void law_##law_name(__attribute__((unused)) const law_row *row,     \
                               __attribute__((unused))                         \
                               const bly_kind_info *kind)

/* Go on only with kinds that have all these abilities. */
#define needs(kind, abilities)                   \
    do {                                         \
        if ((abilities) & ~(kind)->can)          \
            skip_for("the kind cannot do this"); \
    } while (0)

/* Go on only with kinds whose "no" is certain. */
#define needs_certain_no(kind)                               \
    do {                                                     \
        needs(kind, BLY_CAN(HAS));                           \
        if ((kind)->traits & BLY_LIKELY_NO)                  \
            skip_for("a \"no\" of the kind is only likely"); \
    } while (0)

void law_add(law *l);
int run_laws(const char *group, int argc, char **argv);

/* The same after n tests that are not laws. */
int run_laws_and(const char *group, const struct CMUnitTest *tests, size_t n,
                 int argc, char **argv);

/* Whether a filter of the row can be shared: its kind may, and its option may
 * forbid it. */
bool law_shares(const law_row *row);

/* spec_for() and filled() with the option of the row; and a filter of this
 * capacity that holds n keys. */
bly_spec law_spec(const law_row *row, uint64_t items);
bly_filter *law_filled(const law_row *row, uint64_t first, size_t n);
bly_filter *law_part(const law_row *row, uint64_t capacity, uint64_t first,
                     size_t n);

#endif

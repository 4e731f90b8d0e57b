/*
 * others.h - keys that are known not to be in a filter: build --universe
 */
#ifndef BLY_CLI_OTHERS_H
#define BLY_CLI_OTHERS_H

#include "io/keys.h"
#include "io/sizing.h"

struct others {
    struct list universe;  /* files with all keys that can be asked */
    struct list negatives; /* files with some that are not in the set */
    bool members_win;      /* a negative that is in the set stays in it */
    uint64_t nkeys;        /* read from either */
};

#define OTHERS_OPTIONS(o)                                                     \
    OPTION("universe", 0, OPT_LIST, &(o).universe, "FILE",                    \
           "all keys that will be asked, members or not, one per line: none " \
           "of them is answered wrongly; may be repeated"),                   \
        OPTION("negatives", 0, OPT_LIST, &(o).negatives, "FILE",              \
               "keys that are asked often and are not in the set: they "      \
               "never come back as maybe, and all others keep the rate; "     \
               "may be repeated"),                                            \
        FLAG("members-win", 0, (o).members_win,                               \
             "with --negatives: a key that is in the set too stays in it, "   \
             "which else is an error")

/* Was one of them given? */
bool others_given(const struct others *o);

/* What they mean for the filter: its kind, unless one was given, and how many
 * they are, for which their lines are counted. inputs are the members. False,
 * with the reason printed, if that cannot be meant. */
bool others_plan(const struct others *o, const struct keys *keys,
                 const struct list *inputs, struct sizing *sizing);

/* Tell the builder how many keys of each group they, and the members in inputs,
 * have: both are read for it. False, with the reason printed. */
bool others_groups(const struct others *o, const struct keys *keys,
                   const struct list *inputs, bly_builder *b);

/* Tell the builder of them, after its keys were read by a job like `how`.
 * False, with the reason printed, which names a key that is in both where that
 * is an error. */
bool others_deny(struct others *o, const struct keys *keys, bly_builder *b,
                 const struct job *how);

/* Warn of members that are not in the universe, and of negatives that are. */
void others_warn(const struct others *o, const bly_stats *s);

#endif

/*
 * group_counts.h - how many keys of lists there are in each group
 */
#ifndef BLY_CLI_GROUP_COUNTS_H
#define BLY_CLI_GROUP_COUNTS_H

#include "base/lookup.h"
#include "io/keys.h"

/* Zero is empty. */
struct group_counts {
    bly_group *groups; /* each with its name, members and others */
    size_t n, room;
    struct lookup by_name;
};

/* Count the keys of files, whose form is a group, a tab and a name, as members;
 * or as all keys of a universe that the members are part of, after them. False,
 * with the reason printed. */
bool group_counts_read(struct group_counts *c, const struct keys *keys,
                       const struct list *files, bool members);

void group_counts_free(struct group_counts *c);

#endif

/*
 * verbs.h - commands whose first operand says what to do
 *
 * One table of options serves all verbs of a command; a row here says which of
 * them a verb takes, and one that it does not take is an error, not ignored.
 */
#ifndef BLY_VERBS_H
#define BLY_VERBS_H

#include "cli/cli.h"

struct verb {
    const char *name, *operands; /* the latter for messages: "KEY [ITEM]..." */
    size_t least;                /* operands behind the verb */
    const char *options;         /* " host port ", a blank around each */
};

/* The row among n that the first operand names; *rest becomes the operands
 * behind it. n, with the reason printed, where there is none, where an option
 * was given that it does not take, or where operands are missing. The variables
 * of c's options must have begun as zero. */
size_t verb_find(const struct command *c, const struct verb *verbs, size_t n,
                 const struct list *operands, struct list *rest);

#endif

/*
 * automaton.h - many strings in a text, exactly (Aho and Corasick, 1975)
 *
 * A tree of the strings, in lower case, and for each of its nodes the longest
 * proper end of what leads there that is in the tree too. It looks at every
 * byte, and at its tree for each: what the filters are measured against.
 */
#ifndef BLY_TRAFFIC_AUTOMATON_H
#define BLY_TRAFFIC_AUTOMATON_H

#include "apps/traffic/scan.h"

struct automaton;

/* NULL: no memory. */
struct automaton *automaton_new(const struct scan_string *strings, size_t n);
void automaton_free(struct automaton *a);
uint64_t automaton_bytes(const struct automaton *a);

/* A string may end in front of at[end]; it does if its case does not matter.
 * False ends the run. */
typedef bool automaton_fn(void *ctx, size_t string, size_t end);
bool automaton_run(const struct automaton *a, const unsigned char *at, size_t n,
                   automaton_fn *found, void *ctx);

#endif

/*
 * cmd_explain.c - bloomery explain: a small filter, step by step
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "workbench/ring_show.h"
#include "report/say.h"
#include "workbench/explain.h"
#include "workbench/plot.h"
#include "workbench/ring_picture.h"

static struct {
    uint64_t m;
    struct list hashes, add, remove, has;
    uint64_t regions, items;
    unsigned way; /* enum explain_way */
    bool counting, json;
    const char *plot, *from, *find;
    bool ring;
} explain_args;

/* Do op for each number of "2,4,9". */
static bool explain_list(struct explain *e, enum explain_op op,
                         const char *text)
{
    const char *at = text;
    do {
        char *end;
        errno = 0;
        const unsigned long long key = strtoull(at, &end, 10);
        if (*at < '0' || *at > '9' || errno || (*end && *end != ',')) {
            fail(
                "'%s': keys are whole numbers separated by commas, as in 2,4,9",
                text);
            return false;
        }
        if (e->nsteps >= EXPLAIN_MAX_STEPS) {
            fail("more than 1000 steps are too many to look at");
            return false;
        }
        if (!explain_step(e, op, key))
            return false;
        at = end + 1;
        if (!*end)
            return true;
    } while (true);
}

static bool explain_lists(struct explain *e, enum explain_op op,
                          const struct list *lists)
{
    for (size_t i = 0; i < lists->n; i++)
        if (!explain_list(e, op, lists->at[i]))
            return false;
    return true;
}

struct told {
    const uint64_t *add, *remove, *has, *moved; /* one of them */
    const bool *maybe, *wrong;                  /* of has */
    size_t *positions, npositions, ncells;
    unsigned *cells;
    const char *result;
};

static const struct field told_fields[] = {
    FIELD(struct told, add, OPTIONAL, "the key that was added"),
    FIELD(struct told, remove, OPTIONAL, "the key that was removed"),
    FIELD(struct told, has, OPTIONAL, "the key that was asked for"),
    FIELD(struct told, moved, OPTIONAL,
          "a fingerprint that another one has pushed out of its cell"),
    VALUES(struct told, "positions", positions, npositions, AT,
           "its cell by each hash function"),
    FIELD(struct told, maybe, OPTIONAL, "the answer: maybe, or no"),
    NAMED(struct told, "false_positive", wrong, OPTIONAL,
          "whether that is wrong"),
    VALUES(struct told, "cells", cells, ncells, AT, "all cells, after it"),
    FIELD(struct told, result, OPTIONAL, "what came of it, in words"),
    { 0 },
};

static void make_told(const void *from, size_t i, void *element)
{
    static const bool answers[] = { false, true };
    const struct explain *const e = from;
    const struct explain_step *const s = &e->steps[i];
    const bool asked = s->op == EXPLAIN_HAS;
    *(struct told *)element = (struct told){
        s->op == EXPLAIN_ADD ? &s->key : NULL,
        s->op == EXPLAIN_REMOVE ? &s->key : NULL,
        asked ? &s->key : NULL,
        s->op == EXPLAIN_MOVE ? &s->key : NULL,
        asked ? &answers[s->maybe] : NULL,
        asked ? &answers[s->maybe && !s->there] : NULL,
        s->touched,
        s->ntouched,
        e->m,
        s->cells,
        s->result[0] ? s->result : NULL,
    };
}

struct explained {
    const struct explain *e;
    size_t n;
};

static const struct field explain_fields[] = {
    FIELD(struct explain, m, NONE, "cells"),
    VALUES(struct explain, "hashes", hashes, nhashes, NONE,
           "the hash functions"),
    { 0 },
};

static const struct field explained_fields[] = {
    MEMBERS(struct explained, e, AT, explain_fields),
    EACH(struct explained, "steps", e, n, NONE, make_told, struct told,
         told_fields, "what was done, in order"),
    { 0 },
};

static int explain_run(struct list *operands)
{
    struct explain e = { .m = 10, .way = (enum explain_way)explain_args.way };
    if (explain_args.counting)
        e.way = EXPLAIN_COUNTING;
    if (explain_args.ring) {
        const struct ring_show show = { .bits = explain_args.m,
                                        .from = explain_args.from,
                                        .find = explain_args.find,
                                        .plot = explain_args.plot,
                                        .json = explain_args.json,
                                        .words = true };
        return ring_show(&show, operands);
    }
    if (explain_args.from || explain_args.find)
        return fail("--from and --find go with --ring");
    if (operands->n)
        return fail(
            "'%s' is not an option; keys are given with --add and --has",
            operands->at[0]);
    if (explain_args.m > EXPLAIN_MAX_CELLS)
        return fail("--m must be from 1 to %d: more are too many to look at",
                    EXPLAIN_MAX_CELLS);
    if (explain_args.m)
        e.m = (size_t)explain_args.m;
    if (explain_args.hashes.n > EXPLAIN_MAX_HASHES)
        return fail("at most %d hash functions", EXPLAIN_MAX_HASHES);
    if (explain_args.remove.n && !explain_removes(e.way))
        return fail(
            "--remove needs --counting, or --as with a way that removes: "
            "bits do not know how many keys set them");
    if (explain_args.regions > EXPLAIN_MAX_REGIONS)
        return fail("--regions is from 1 to %d", EXPLAIN_MAX_REGIONS);
    if (explain_args.items > EXPLAIN_MAX_CELLS)
        return fail("--items is from 1 to %d", EXPLAIN_MAX_CELLS);
    e.regions = (size_t)explain_args.regions;
    e.items = (size_t)explain_args.items;
    static const char *const usual[] = { "x+3", "3x+1", "x^2+2" };
    static const char *const of_cuckoo[] = { "x+3", "3x+1", "3x+2" };
    e.nhashes = explain_args.hashes.n ? explain_args.hashes.n : 3;
    for (size_t i = 0; i < e.nhashes; i++)
        e.hashes[i] = explain_args.hashes.n     ? explain_args.hashes.at[i]
                      : e.way == EXPLAIN_CUCKOO ? of_cuckoo[i]
                                                : usual[i];
    int status = TROUBLE;
    if (explain_lists(&e, EXPLAIN_ADD, &explain_args.add) &&
        explain_lists(&e, EXPLAIN_REMOVE, &explain_args.remove) &&
        explain_lists(&e, EXPLAIN_HAS, &explain_args.has)) {
        if (explain_args.json)
            report(stdout, true, explained_fields,
                   &(struct explained){ &e, e.nsteps }, NULL);
        else
            explain_print(&e);
        status = YES;
        if (explain_args.plot && !explain_draw(&e, "A filter, step by step",
                                               NULL, explain_args.plot))
            status = fail("%s", plot_why());
    }
    explain_free(&e);
    return status;
}

static const struct opt explain_options[] = {
    { "m", 0, OPT_POSITIVE, &explain_args.m, "M",
      "cells of the array; 10 if not given" },
    { "hash", 0, OPT_LIST, &explain_args.hashes, "EXPR",
      "a hash function of x, taken mod m; may be repeated; x+3, 3x+1 and x^2+2 "
      "if not given (cuckoo: x+3 for a key's first cell, 3x+1 mod 99 for its "
      "fingerprint, and 3x+2 of that for the sum of its two cells)" },
    { "add", 'a', OPT_LIST, &explain_args.add, "KEYS",
      "whole numbers to add, separated by commas" },
    { "remove", 0, OPT_LIST, &explain_args.remove, "KEYS",
      "numbers to remove after adding" },
    { "has", 0, OPT_LIST, &explain_args.has, "KEYS",
      "numbers to query at the end" },
    { "as", 0, OPT_CHOICE, &explain_args.way,
      "bits|counting|increments|deletable|floom|scalable|cuckoo",
      "what the cells are: bits (if not given), counters, counters with "
      "variable "
      "increments, bits in regions that keys share or not, Floom's patterns of "
      "regions, layers, or fingerprints in one of two cells" },
    FLAG("counting", 0, explain_args.counting,
         "the same as --as counting: keys can be removed"),
    { "regions", 0, OPT_POSITIVE, &explain_args.regions, "N",
      "regions of --as deletable and floom; 5 if not given" },
    { "items", 0, OPT_POSITIVE, &explain_args.items, "N",
      "keys per layer of --as scalable; 3 if not given" },
    FLAG("ring", 0, explain_args.ring,
         "a Chord ring instead of a filter: operands are the ids of members, "
         "of --m bits (6 if not given)"),
    { "from", 0, OPT_TEXT, &explain_args.from, "N",
      "with --ring: the member who looks up; the first if not given" },
    { "find", 0, OPT_TEXT, &explain_args.find, "N",
      "with --ring: the id that is looked up" },
    { "plot", 0, OPT_TEXT, &explain_args.plot, "FILE.svg",
      "also draw the steps into this file" },
    FLAG("json", 0, explain_args.json, "print a JSON object"),
    { 0 },
};

static const struct example explain_examples[] = {
    { "bloomery explain --add 2,4,9 --has 4,7,12",
      "the usual example: 7 is absent, 12 is a false positive" },
    { "bloomery explain --m 10 --hash x --hash 2x+3 --hash 3x+7 --add 2,4,9 "
      "--has 5,12",
      "with other hash functions" },
    { "bloomery explain --counting --add 2,4 --remove 2 --has 2,4",
      "with counters" },
    { "bloomery explain --as increments --add 2,9 --has 12,4",
      "12 has the cells of 2, but its increments do not fit: 14 - 8 = 6" },
    { "bloomery explain --as deletable --add 2,4 --remove 2",
      "removal where regions are not shared" },
    { "bloomery explain --as floom --hash x+1 --hash x+7 --add 1,3 --has 7",
      "1 has pattern 18; the bits of 7 are all set, but its pattern never "
      "occurred" },
    { "bloomery explain --as cuckoo --m 11 --add 2,4,9,7,13,3",
      "fingerprints that push each other out" },
    { "bloomery explain --as scalable --hash x+3 --hash 3x+1 --add 1,2,3,4 "
      "--has 3,4,9",
      "a second layer" },
    { "bloomery explain --ring --from 3 --find 45",
      "a lookup on a ring of seven members" },
    { 0 },
};

const struct command cmd_explain = {
    .name = "explain",
    .usage = "[--m M] [--hash EXPR]... [--add KEYS] [--has KEYS]",
    .summary = "show what happens in a small filter, step by step",
    .about =
        "Draws a small array of cells after every step. Keys are whole "
        "numbers; hash functions are written as on a blackboard, with x, "
        "+ - * ^ and brackets, and taken mod m. --as chooses what the cells "
        "are: a Bloom filter, or one of its relatives.\n\n"
        "With --ring, a Chord ring instead: who owns what, the fingers "
        "of each member, and a lookup step by step.",
    .options = explain_options,
    .examples = explain_examples,
    .reports =
        (const struct report[]){ { "of a filter", explained_fields, ONE },
                                 { "with --ring", ring_model_fields, ONE },
                                 { 0 } },
    .run = explain_run,
};

/*
 * cmd_top.c - the heaviest keys of a stream
 *
 * A list of the library's takes the keys in their order, so that the same input
 * gives the same list; it hashes them itself, which leaves nothing for other
 * threads to do.
 */
#include <stdlib.h>

#include <bloomery/sketch.h>

#include "cli/rows.h"
#include "io/keys.h"
#include "report/out.h"

static struct {
    uint64_t k, memory;
    struct keys keys;
    bool json;
} top_args = { .k = 10 };

/* The last places of a list are the doubtful ones: one twice as long is made,
 * and half of it printed. */
#define TOP_MAX_K ((uint64_t)1 << 23)

static bly_status top_batch(struct job *job, struct batch *b)
{
    return bly_topk_add_keys(job->ctx, b->keys, NULL, b->n, NULL);
}

static const struct field item_fields[] = {
    FIELD(bly_topk_item, key, NONE, "the key"),
    FIELD(bly_topk_item, count, NONE, "how often it came: an estimate"),
    { 0 },
};

struct top {
    uint64_t keys;
    const bly_topk_item *items;
    size_t n;
};

static const struct field top_fields[] = {
    FIELD(struct top, keys, KEYS, "keys that were read"),
    LIST(struct top, "top", items, n, AT, item_fields,
         "the most frequent ones, the first one first"),
    { 0 },
};

static int top_print(const bly_topk *t, uint64_t nkeys)
{
    const size_t k = (size_t)(top_args.k < nkeys ? top_args.k : nkeys);
    bly_topk_item *const items = calloc(k + 1, sizeof *items);
    if (!items)
        return fail("out of memory");
    const size_t n = bly_topk_list(t, items, k);
    if (top_args.json)
        report(stdout, true, top_fields, &(struct top){ nkeys, items, n },
               NULL);
    for (size_t i = 0; i < n && !top_args.json; i++) {
        print_key(items[i].key.ptr, items[i].key.len);
        printf("\t%llu", (unsigned long long)items[i].count);
        print_key_end(top_args.keys.nul);
    }
    free(items);
    return YES;
}

static int top_run(struct list *operands)
{
    if (top_args.k > TOP_MAX_K)
        return fail("--k %llu: a list has at most 2^23 keys",
                    (unsigned long long)top_args.k);
    const bly_topk_spec spec = { .k = (size_t)top_args.k * 2,
                                 .bytes = top_args.memory };
    bly_topk *t;
    if (bly_topk_new(&spec, &t))
        return fail_library();
    struct job job = {
        .batch = top_batch, .goes_on = true, .nthreads = 1, .ctx = t
    };
    struct input in;
    if (!keys_files(&top_args.keys, operands->at, operands->n, &in)) {
        bly_topk_free(t);
        return TROUBLE;
    }
    const bly_status st = pipeline_run(&job, &in);
    input_close(&in);
    const int status =
        st ? fail("%s", job.error) : top_print(t, bly_topk_total(t));
    bly_topk_free(t);
    return job.trouble ? TROUBLE : status;
}

static const struct opt top_options[] = {
    { "k", 0, OPT_POSITIVE, &top_args.k, "N",
      "how many keys; 10 if not given" },
    { "memory", 'm', OPT_POSITIVE, &top_args.memory, "SIZE",
      "memory for candidates, for streams with very many different keys; "
      "follows from --k if not given" },
    FLAG("null", '0', top_args.keys.nul,
         "keys end at NUL bytes, not at newlines, when read and when printed"),
    BINARY_OPTION,
    SELECT_OPTIONS(top_args.keys),
    NORMAL_OPTIONS(top_args.keys),
    FLAG("json", 0, top_args.json,
         "print {\"keys\":N,\"top\":[{\"key\":..,\"count\":N},..]}"),
    { 0 },
};

static const struct example top_examples[] = {
    { "bloomery top --k 20 --field 1 -d ' ' access.log",
      "the addresses that came most often" },
    { 0 },
};

const struct command cmd_top = {
    .name = "top",
    .usage = "[OPTION]... [INPUT]...",
    .summary = "print the heaviest keys of a stream",
    .about =
        "Reads keys from the input files, or from standard input, and "
        "prints those that came most often, the most frequent first: the "
        "key, a tab, and how often it came. This is what sort, uniq -c, "
        "sort -rn and head would print, but in memory that does not grow "
        "with the input, and without waiting for a sort.\n\n"
        "Counts are hardly ever too high, and exact for keys that are "
        "frequent from early on; a key that stands out is not missed, but "
        "some may be among many of nearly the same frequency.\n\n" SELECT_ABOUT,
    .options = top_options,
    .examples = top_examples,
    .reports = (const struct report[]){ { "", top_fields, ONE }, { 0 } },
    .run = top_run,
};

/*
 * cmd_top.c - the heaviest keys of a stream
 *
 * A list of the library's takes the keys in their order, so that the same input
 * gives the same list; it hashes them itself, which leaves nothing for other
 * threads to do. Saved lists are merged first, and the keys that are read
 * continue where they ended: with a single list, as if it had never been saved.
 */
#include <stdlib.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/paths.h"
#include "io/sketch_files.h"
#include "report/out.h"
#include "report/show.h"

static struct {
    uint64_t k, memory;
    struct keys keys;
    struct sketch_args sketch;
    bool json;
} top_args;

/* The last places of a list are the doubtful ones: one twice as long is made,
 * and half of it printed. */
#define TOP_MAX_K ((uint64_t)1 << 23)
#define TOP_DEFAULT_K 10

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

static int top_print(const bly_topk *t, FILE *to)
{
    bly_topk_spec spec;
    bly_topk_spec_of(t, &spec);
    const uint64_t nkeys = bly_topk_total(t);
    /* Of a list that was saved, the half that is not doubtful. */
    const uint64_t most = top_args.k ? top_args.k : (spec.k + 1) / 2;
    const size_t k = (size_t)(most < nkeys ? most : nkeys);
    bly_topk_item *const items = calloc(k + 1, sizeof *items);
    if (!items)
        return fail("out of memory");
    const size_t n = bly_topk_list(t, items, k);
    if (top_args.json)
        report(stdout, true, top_fields, &(struct top){ nkeys, items, n },
               NULL);
    for (size_t i = 0; i < n && !top_args.json; i++) {
        const bly_bytes key = items[i].key;
        if (to == stdout) {
            print_key(key.ptr, key.len);
            printf("\t%llu", (unsigned long long)items[i].count);
            print_key_end(top_args.keys.nul);
        } else {
            fprintf(to, "%s\t%llu\n", show_text(key.ptr, key.len),
                    (unsigned long long)items[i].count);
        }
    }
    free(items);
    return YES;
}

/* An empty list, by the options. */
static bool top_made(bly_stored *out)
{
    const uint64_t k = top_args.k ? top_args.k : TOP_DEFAULT_K;
    const bly_topk_spec spec = { .k = (size_t)k * 2,
                                 .bytes = top_args.memory,
                                 .seed = top_args.sketch.seed,
                                 .secret = top_args.sketch.secret,
                                 .keying = keys_keying(&top_args.keys) };
    *out = (bly_stored){ .type = BLY_STORED_TOPK };
    if (bly_topk_new(&spec, &out->topk) == BLY_OK)
        return true;
    fail_library();
    return false;
}

/* ------------------------------------------------------------------ running */

struct top_run {
    const struct list *operands;
    const char
        *base;    /* the file of the list that is gone on with; NULL: none */
    size_t first; /* the operand that it is; past the last: none */
    FILE *to;
    bool trouble, said;
};

static bool is_saved(const char *name)
{
    return !binary_input && sketch_type(name);
}

/* Merge the other lists that were saved. False, with the reason printed. */
static bool merge_saved(const struct top_run *r, bly_stored *s)
{
    for (size_t i = 0; i < r->operands->n; i++) {
        const char *const name = r->operands->at[i];
        bly_stored other;
        if (i == r->first || !is_saved(name))
            continue;
        if (!sketch_open(name, BLY_STORED_TOPK, top_args.sketch.secret, &other))
            return false;
        const bool ok = sketch_merge(s, r->base, &other, name);
        bly_stored_free(&other);
        if (!ok)
            return false;
    }
    return true;
}

/* Read n lists of keys, or standard input where there are none. */
static bool read_lists(struct top_run *r, bly_topk *t, const char *const *names,
                       size_t n)
{
    struct job job = {
        .batch = top_batch, .goes_on = true, .nthreads = 1, .ctx = t
    };
    struct input in;
    bly_topk_spec spec;
    bly_topk_spec_of(t, &spec);
    if (!sketch_can_hash(bly_topk_hasher(t), r->base) ||
        !keys_files(&top_args.keys, names, n, &in))
        return false;
    bool ok = !r->base || keys_follow(spec.keying, r->base, &in);
    if (ok && pipeline_run(&job, &in)) {
        fail("%s", job.error);
        ok = false;
    }
    input_close(&in);
    r->trouble = job.trouble;
    return ok;
}

/* Those operands that are lists of keys. */
static bool read_operands(struct top_run *r, bly_topk *t)
{
    const char **const names = calloc(r->operands->n + 1, sizeof *names);
    size_t n = 0;
    if (!names) {
        fail("out of memory");
        return false;
    }
    for (size_t i = 0; i < r->operands->n; i++)
        if (!is_saved(r->operands->at[i]))
            names[n++] = r->operands->at[i];
    const bool ok = (!n && r->operands->n) || read_lists(r, t, names, n);
    free((void *)(uintptr_t)names);
    return ok;
}

/* Let the list take in all operands but the first one, which it is. */
static bool top_take(struct top_run *r, bly_stored *s)
{
    bly_topk_spec spec;
    bly_topk_spec_of(s->topk, &spec);
    if (r->base && top_args.memory && top_args.memory / 64 != spec.bytes / 64) {
        fail("--memory: %s has %llu bytes for candidates, and keeps them",
             r->base, (unsigned long long)spec.bytes);
        return false;
    }
    return merge_saved(r, s) && read_operands(r, s->topk);
}

static bly_status top_into(bly_stored *s, void *ctx)
{
    struct top_run *const r = ctx;
    r->said = true;
    if (s->type != BLY_STORED_TOPK) {
        fail("%s: a sketch of %s (%s), where one of %s (%s) is needed", r->base,
             bly_stored_help(s->type), bly_stored_name(s->type),
             bly_stored_help(BLY_STORED_TOPK),
             bly_stored_name(BLY_STORED_TOPK));
        return BLY_EUNFIT;
    }
    if (!top_take(r, s) || top_print(s->topk, stdout) != YES)
        return BLY_EFORMAT;
    if (r->trouble) {
        /* What was read in part is not kept: nobody could tell later. */
        warn("not saved, since not all keys could be read");
        return BLY_EFORMAT;
    }
    r->said = false;
    return BLY_OK;
}

static int top_update(struct top_run *r)
{
    const bly_access how = { .secret = top_args.sketch.secret,
                             .blind = !top_args.sketch.secret,
                             .wait = wait_for_lock };
    bly_stored none;
    r->base = top_args.sketch.into;
    r->first = r->operands->n;
    if (!top_made(&none))
        return TROUBLE;
    const bly_status st = bly_stored_update(r->base, &how, &none, top_into, r);
    bly_stored_free(&none);
    return !st ? YES : r->said ? TROUBLE : fail_library();
}

/* Without --into: the first list that was saved, or an empty one. */
static int top_new(struct top_run *r)
{
    const char *const output = top_args.sketch.output;
    FILE *const to = output ? report_to(output) : stdout;
    bly_stored s;
    while (r->first < r->operands->n && !is_saved(r->operands->at[r->first]))
        r->first++;
    if (r->first < r->operands->n)
        r->base = r->operands->at[r->first];
    if (r->base
            ? !sketch_open(r->base, BLY_STORED_TOPK, top_args.sketch.secret, &s)
            : !top_made(&s))
        return TROUBLE;
    int status = top_take(r, &s) ? YES : TROUBLE;
    if (status == YES && output && r->trouble)
        warn("not saved, since not all keys could be read");
    else if (status == YES && output)
        status = sketch_save(&s, output);
    if (status == YES)
        status = top_print(s.topk, to);
    bly_stored_free(&s);
    return r->trouble ? TROUBLE : status;
}

static int top_run(struct list *operands)
{
    struct top_run r = { .operands = operands };
    if (top_args.k > TOP_MAX_K)
        return fail("--k %llu: a list has at most 2^23 keys",
                    (unsigned long long)top_args.k);
    if (!sketch_args_check(&top_args.sketch, &top_args.keys, operands,
                           top_args.json))
        return TROUBLE;
    const int status = top_args.sketch.into ? top_update(&r) : top_new(&r);
    secret_wipe();
    return status;
}

static const struct opt top_options[] = {
    { "k", 0, OPT_POSITIVE, &top_args.k, "N",
      "how many keys; 10 if not given" },
    { "memory", 'm', OPT_POSITIVE, &top_args.memory, "SIZE",
      "memory for candidates, for streams with very many different keys; "
      "follows from --k if not given" },
    SKETCH_OPTIONS(top_args),
    FLAG("null", '0', top_args.keys.nul,
         "keys end at NUL bytes, not at newlines, when read and when printed"),
    BINARY_OPTION,
    SELECT_OPTIONS(top_args.keys),
    NORMAL_OPTIONS(top_args.keys),
    WAIT_OPTION,
    FLAG("json", 0, top_args.json,
         "print {\"keys\":N,\"top\":[{\"key\":..,\"count\":N},..]}"),
    { 0 },
};

static const struct example top_examples[] = {
    { "bloomery top --k 20 --field 1 -d ' ' access.log",
      "the addresses that came most often" },
    { "bloomery top --into week.bly today.txt",
      "go on with the list of the days before, and save it" },
    { "bloomery top monday.bly tuesday.bly",
      "the list of two days, from what was saved with -o" },
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
        "some may be among many of nearly the same frequency.\n\n"
        "An input may also be a list that was saved with -o or --into. Keys "
        "that are read beside it go on where it ended, as if it had never been "
        "saved. Lists are merged if they agree in --k, --memory and --seed or "
        "--key-file; a key that is on none of them, being too light, may miss "
        "what it had in each. With --into, others that change the file wait "
        "until this command has ended.\n\n" SELECT_ABOUT,
    .options = top_options,
    .examples = top_examples,
    .reports = (const struct report[]){ { "", top_fields, ONE }, { 0 } },
    .run = top_run,
};

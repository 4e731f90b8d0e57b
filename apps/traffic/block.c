/*
 * block.c - bloomery traffic block: lists of addresses to drop
 *
 * Makes a list, adds to it, says what it would have stopped in a capture, and
 * hands it to the kernel.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "apps/traffic/block.h"
#include "apps/traffic/block_file.h"
#include "apps/traffic/traffic.h"
#include "io/files.h"
#include "io/filters.h"
#include "report/say.h"

#define DEFAULT_FPR 0.001

/* ------------------------------------------------------------------ making */

double block_fpr(const struct traffic_args *args)
{
    return args->block.fpr > 0 ? args->block.fpr : DEFAULT_FPR;
}

struct block_lists {
    struct prefix_set set;
    struct prefix_counts counts;
};

static bool lists_read(const struct traffic_args *args,
                       const struct list *names, struct block_lists *l)
{
    for (size_t i = 0; i < names->n; i++)
        if (!prefix_file(names->at[i], args->block.skip_bad, prefix_set_take,
                         &l->set, &l->counts))
            return false;
    prefix_set_sort(&l->set);
    return true;
}

static struct block_made block_made_of(const char *path,
                                       const struct block_lists *l,
                                       const bly_filter *f, double fpr)
{
    struct prefix_lengths lengths;
    bly_stats s;
    bly_stat(f, &s);
    block_lengths(f, &lengths);
    const double ttl = fact_value(&s, "window_seconds");
    warn_past_capacity(path, &s);
    return (struct block_made){
        .file = path,
        .kind = s.kind,
        .lines = l->counts.lines,
        .entries = l->counts.entries,
        .bad = l->counts.bad,
        .prefixes = l->set.n,
        .lengths4 = lengths.nfour,
        .lengths6 = lengths.nsix,
        .bytes = filter_size(&s),
        .fpr = fpr,
        .ttl = isfinite(ttl) ? (uint64_t)ttl : 0,
    };
}

static void made_print(const struct traffic_args *args,
                       const struct block_made *made)
{
    if (!quiet)
        report(
            args->json ? stdout : stderr, args->json, block_made_fields, made,
            "{file}: {prefixes prefix/es} of {lengths4 length/s} of IPv4 and "
            "{lengths6} of IPv6, {kind}, {bytes}; stops {fpr} of packets "
            "from others[; entries stay {?ttl}{ttl} s][; {?bad}{bad} lines "
            "skipped]\n");
}

static int block_new(const struct traffic_args *args, const struct list *lists)
{
    struct block_lists l = { 0 };
    struct block_file b = { 0 };
    struct block_plan plan = { .fpr = block_fpr(args),
                               .items = args->block.items,
                               .ttl = args->block.ttl,
                               .seed = args->seed };
    int status = TROUBLE;
    bool ok;
    plan.secret = secret_read(args->block.key_file, &ok);
    if (!ok)
        return TROUBLE;
    if (plan.secret && plan.seed)
        return fail("--seed and --key-file exclude each other");
    /* Whoever knows the seed can look for addresses to be hit by mistake. */
    if (!plan.secret && !plan.seed &&
        getrandom(&plan.seed, sizeof plan.seed, 0) < 0)
        return fail("the system has no random numbers");
    if (lists_read(args, lists, &l)) {
        if (plan.items && plan.items < l.set.n)
            fail("--items %llu: the lists have %zu prefixes",
                 (unsigned long long)plan.items, l.set.n);
        else if (block_make(&l.set, &plan, &b))
            fail_library();
        else
            status = filter_save(b.filter, args->output);
    }
    if (status == YES) {
        const struct block_made made =
            block_made_of(args->output, &l, b.filter, plan.fpr);
        made_print(args, &made);
    }
    block_close(&b);
    prefix_set_free(&l.set);
    return status;
}

struct block_more {
    const char *path;
    const struct block_lists *lists;
    struct block_made made;
    bool other; /* the file is not a list */
};

static bly_status block_grow(bly_filter *f, void *ctx)
{
    struct block_more *const m = ctx;
    struct prefix_lengths lengths;
    m->other = !block_lengths(f, &lengths);
    if (m->other)
        return BLY_EUNFIT;
    bly_status st = filter_tick(f);
    if (!st)
        st = block_add(f, &m->lists->set);
    if (!st) {
        bly_stats s;
        block_lengths(f, &lengths);
        const unsigned n =
            lengths.nfour > lengths.nsix ? lengths.nfour : lengths.nsix;
        bly_peek(f, &s);
        m->made = block_made_of(m->path, m->lists, f,
                                s.fpr_at_capacity * (n ? n : 1));
    }
    return st;
}

static int block_into(const struct traffic_args *args, const struct list *lists)
{
    struct block_lists l = { 0 };
    struct block_more m = { .path = args->block.into, .lists = &l };
    bly_access how = { .wait = wait_for_lock };
    int status = TROUBLE;
    bool ok;
    how.secret = secret_read(args->block.key_file, &ok);
    if (ok && lists_read(args, lists, &l)) {
        const bly_status st =
            bly_update(args->block.into, &how, block_grow, &m);
        status = !st       ? YES
                 : m.other ? fail("%s: a filter, but not a list of prefixes",
                                  args->block.into)
                           : fail_library();
    }
    if (status == YES)
        made_print(args, &m.made);
    prefix_set_free(&l.set);
    return status;
}

/* ----------------------------------------------------------------- choosing */

int traffic_block(const struct traffic_args *args, const struct list *operands)
{
    const struct block_args *const b = &args->block;
    const bool kernel =
        b->xdp || b->detach || b->status || b->add || b->release;
    const int n = (args->output != NULL) + (b->into != NULL) +
                  (b->xdp != NULL) + (b->detach != NULL) + (b->status != NULL) +
                  (b->add != NULL) + (b->release != NULL);
    if (n > 1)
        return fail("-o, --into, --xdp, --add, --release, --detach and "
                    "--status exclude each other");
    if (args->seed && !args->output)
        return fail("--seed belongs to a new list; use it with -o FILE");
    if ((b->items || b->fpr > 0) && !args->output && !b->xdp)
        return fail("--items and --fpr belong to a new list; use them with -o "
                    "FILE, or with --xdp");
    if (b->ttl && !args->output && !b->xdp && !b->add)
        return fail("--ttl is for entries that are added; use it with -o FILE, "
                    "--xdp or --add");
    if (b->skip_bad && n && (b->detach || b->status))
        return fail("--skip-bad is about lists that are read");
    if ((b->exact || b->kernel) && n)
        return fail("--exact and --kernel are for a capture; usage: bloomery "
                    "traffic block LIST.bly CAPTURE");
    if (b->allow && n && !b->xdp)
        return fail("--allow goes with a capture, or with --xdp");
    if (b->only && n && !b->xdp)
        return fail("--only goes with a capture, or with --xdp");
    if (b->only && b->exact)
        return fail("--exact tells who is stopped by mistake, and --only stops "
                    "nobody by mistake; leave out one of them");
    if (args->output || args->block.into) {
        if (!operands->n)
            return fail("no lists are given; usage: bloomery traffic block %s "
                        "FILE LIST..., - is standard input",
                        args->output ? "-o" : "--into");
        return args->output ? block_new(args, operands)
                            : block_into(args, operands);
    }
    if (kernel)
        return block_kernel(args, operands);
    return block_check(args, operands);
}

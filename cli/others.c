/*
 * others.c - keys that are known not to be in a filter: build --universe
 */
#include "cli/others.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/group_counts.h"
#include "io/cutter.h"
#include "report/say.h"
#include "report/show.h"

bool others_given(const struct others *o)
{
    return o->universe.n || o->negatives.n;
}

static const struct list *others_files(const struct others *o)
{
    return o->universe.n ? &o->universe : &o->negatives;
}

/* Can all of these be read twice? A missing file is reported when it is
 * read. */
static bool all_regular(const struct list *files)
{
    struct stat st;
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->at[i], "-") == 0 ||
            (!stat(files->at[i], &st) && !S_ISREG(st.st_mode)))
            return false;
    return files->n > 0;
}

/* Lines of all files, which is keys or more: close enough to plan by. */
static bool count_lines(const struct keys *keys, const struct list *files,
                        uint64_t *out)
{
    struct input in;
    struct block b = { 0 };
    *out = 0;
    if (!keys_files(keys, files->at, files->n, &in))
        return false;
    while (input_next(&in, &b))
        for (size_t at = 0; at < b.len; at += CUTTER_WINDOW) {
            const size_t left = b.len - at;
            uint64_t ends = cutter_ends(b.at + at, in.separator);
            if (left < CUTTER_WINDOW)
                ends &= (UINT64_C(1) << left) - 1;
            *out += (uint64_t)__builtin_popcountll(ends);
        }
    const bool ok = !in.error[0];
    if (!ok)
        fail("%s", in.error);
    block_free(&b);
    input_close(&in);
    return ok;
}

/* Add a word to options; it lives until the command ends. */
static bool options_add(struct list *options, const char *format, uint64_t n)
{
    char *const word = malloc(48);
    const char **const at = malloc((options->n + 1) * sizeof *at);
    if (!word || !at) {
        free(word);
        free(at);
        fail("out of memory");
        return false;
    }
    snprintf(word, 48, format, (unsigned long long)n);
    for (size_t i = 0; i < options->n; i++)
        at[i] = options->at[i];
    at[options->n] = word;
    options->at = at;
    options->n++;
    return true;
}

static bool says_how_many(const struct list *options)
{
    for (size_t i = 0; i < options->n; i++)
        if (strncmp(options->at[i], "others=", 7) == 0)
            return true;
    return false;
}

/* A kind that can be told of such keys: the first one, unless one was given. */
static bool kind_denies(struct sizing *sizing)
{
    bly_kind_info kind;
    for (size_t i = 0; !sizing->kind && bly_kind_at(i, &kind); i++)
        if (kind.can & BLY_CAN(DENY))
            sizing->kind = kind.name;
    if (!bly_kind_named(sizing->kind, &kind) || (kind.can & BLY_CAN(DENY)))
        return true; /* an unknown name is reported elsewhere */
    char *const able = kinds_that_can(BLY_CAN(DENY));
    fail("a %s filter cannot be told of keys that are not in it; these can: %s",
         kind.name, able ? able : "");
    free(able);
    return false;
}

/* Can groups be counted beforehand? */
static bool groups_plan(const struct others *o, const struct list *inputs)
{
    if (!o->universe.n)
        fail("--group has a meaning only with --universe");
    else if (!all_regular(&o->universe) || !all_regular(inputs))
        fail("with --group the keys of each group are counted first, and so "
             "the lists are read twice: give files, not pipes");
    else
        return true;
    return false;
}

bool others_plan(const struct others *o, const struct keys *keys,
                 const struct list *inputs, struct sizing *sizing)
{
    const struct list *const files = others_files(o);
    uint64_t nothers, nmembers = 0;
    if (o->universe.n && o->negatives.n)
        return fail("--universe and --negatives exclude each other"), false;
    if (o->members_win && !o->negatives.n)
        return fail("--members-win has a meaning only with --negatives"), false;
    if (!kind_denies(sizing))
        return false;
    /* Keys outside the universe are not expected: whatever takes least. */
    if (o->universe.n && sizing->fpr <= 0 && !sizing->bits && !sizing->memory)
        sizing->fpr = 0.5;
    if (keys->select.group)
        return groups_plan(o, inputs);
    if (says_how_many(&sizing->options))
        return true;
    if (!all_regular(files)) {
        fail("how many keys come from %s cannot be counted beforehand, since "
             "it is read only once: give -O others=N, or a file",
             files->at[0]);
        return false;
    }
    if (!count_lines(keys, files, &nothers))
        return false;
    if (o->universe.n && all_regular(inputs) &&
        !count_lines(keys, inputs, &nmembers))
        return false;
    return options_add(&sizing->options, "others=%llu",
                       nothers > nmembers ? nothers - nmembers : 1);
}

bool others_groups(const struct others *o, const struct keys *keys,
                   const struct list *inputs, bly_builder *b)
{
    struct group_counts counts = { 0 };
    const bool ok = group_counts_read(&counts, keys, inputs, true) &&
                    group_counts_read(&counts, keys, &o->universe, false);
    const bly_status st =
        ok ? bly_builder_groups(b, counts.groups, counts.n) : BLY_OK;
    if (st)
        fail_library();
    group_counts_free(&counts);
    return ok && !st;
}

static bly_status deny_batch(struct job *job, struct batch *b)
{
    return bly_builder_deny(job->ctx, b->hashes, b->n);
}

/* The same for lists in which no key of the set may be. */
static bly_status deny_strictly(struct job *job, struct batch *b)
{
    static _Thread_local char why[512];
    uint64_t in[BLY_BITMAP_WORDS(BATCH)];
    bly_status st = bly_builder_members(job->ctx, b->hashes, b->n, in);
    for (size_t i = 0; i < b->n && !st; i++)
        if (in[i / 64] >> i % 64 & 1) {
            snprintf(why, sizeof why,
                     "%s is in the set and among the negatives: take it out of "
                     "one of them, or give --members-win",
                     show_text(b->keys[i].ptr, b->keys[i].len));
            b->why = why;
            return BLY_EINVAL;
        }
    return st ? st : deny_batch(job, b);
}

bool others_deny(struct others *o, const struct keys *keys, bly_builder *b,
                 const struct job *how)
{
    const struct list *const files = others_files(o);
    const bool strict = o->negatives.n && !o->members_win;
    struct job job = { .batch = strict ? deny_strictly : deny_batch,
                       .hasher = how->hasher,
                       .nthreads = how->nthreads,
                       .ctx = b };
    struct input in;
    if (!keys_files(keys, files->at, files->n, &in))
        return false;
    const bly_status st = pipeline_run(&job, &in);
    input_close(&in);
    o->nkeys = job.nkeys;
    if (st)
        fail("%s", job.error);
    return !st;
}

void others_warn(const struct others *o, const bly_stats *s)
{
    uint64_t both = 0;
    for (size_t i = 0; i < s->nfacts; i++)
        if (strcmp(s->facts[i].name, "named_as_both") == 0)
            both = s->facts[i].uint;
    const uint64_t keys = (uint64_t)s->items_estimate;
    if (o->universe.n && both < keys)
        warn("%llu of the %llu keys are not in the universe; they are in the "
             "filter all the same",
             (unsigned long long)(keys - both), (unsigned long long)keys);
    if (o->negatives.n && both)
        warn("%llu of the negatives are keys of the set too, and stay in it",
             (unsigned long long)both);
}

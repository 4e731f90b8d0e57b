/*
 * filters.c - filters, as commands name them and tell of them
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bloomery/live.h>

#include "io/files.h"
#include "io/filters.h"
#include "io/foreign_files.h"
#include "io/paths.h"
#include "io/sizing.h"
#include "report/say.h"
#include "report/show.h"

/* ----------------------------------------------------------------- files */

static int64_t get_stdin(void *ctx, void *buf, size_t nbytes)
{
    (void)ctx;
    return read_all(STDIN_FILENO, buf, nbytes);
}

static bly_filter *
filter_get(const char *path, const bly_access *how,
           bly_status (*get)(const char *, const bly_access *, bly_filter **))
{
    bly_filter *f = NULL;
    const char *format;
    const bly_status st =
        is_dash(path) ? bly_read(get_stdin, NULL, how, &f) : get(path, how, &f);
    if (!st)
        return f;
    if (st == BLY_ESECRET && !how->secret)
        fail("%s, with --key-file", bly_error());
    else if (is_dash(path))
        fail("standard input: %s", bly_error());
    else if (st == BLY_EFORMAT && (format = foreign_format(path)))
        fail("%s: a %s filter of another system, which cannot be changed here; "
             "info, has and convert accept it",
             path, format);
    else
        fail_library();
    return NULL;
}

/* A live filter is asked where it is, and by one more who only reads. */
static bly_status map_or_share(const char *path, const bly_access *how,
                               bly_filter **out)
{
    bly_access reading = *how;
    reading.reading = true;
    const bly_status st = bly_map(path, how, out);
    return st == BLY_EBUSY ? bly_share(path, NULL, &reading, out) : st;
}

bly_filter *filter_map(const char *path, const bly_access *how)
{
    struct stat st;
    /* Pipes and the like can only be read. */
    if (!is_dash(path) && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return filter_open(path, how);
    cut_watch(path, NULL);
    return filter_get(path, how, map_or_share);
}

bly_filter *filter_open(const char *path, const bly_access *how)
{
    return filter_get(path, how, bly_open);
}

bly_status filter_combine(bly_filter *f, bly_combination how, const char *path)
{
    return is_dash(path) ? bly_combine_read(f, how, get_stdin, NULL)
                         : bly_combine_file(f, how, path);
}

bool filter_can(const bly_filter *f, const char *path, uint32_t ability)
{
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    if (kind.can & ability)
        return true;
    char *const able = kinds_that_can(ability);
    fail("%s: a filter of kind %s cannot %s; these can: %s", path, kind.name,
         bly_can_help((unsigned)__builtin_ctz(ability)), able ? able : "");
    free(able);
    return false;
}

bly_status filter_tick(bly_filter *f)
{
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    return kind.can & BLY_CAN(TICK) ? bly_tick(f, (uint64_t)time(NULL))
                                    : BLY_OK;
}

static bly_status write_filter(const void *what, bly_put *put, void *ctx)
{
    return bly_write(what, put, ctx);
}

int filter_save(const bly_filter *f, const char *path)
{
    return file_save(path, write_filter, f);
}

/* -------------------------------------------------------------- capacity */

/* Are its layers distances, with keys of others in most of them? */
static bool has_levels(const bly_stats *s)
{
    bly_kind_info kind;
    return bly_kind_named(s->kind, &kind) && (kind.traits & BLY_DIRECTED);
}

bool has_grown(const bly_stats *s)
{
    return s->layers > 1 && !has_levels(s);
}

bool is_past_capacity(const bly_stats *s)
{
    if (!s->capacity || has_grown(s) || has_levels(s))
        return false;
    const double capacity = (double)s->capacity;
    if (isinf(s->items_estimate))
        return true;
    /* It may be for several additions of each key. */
    const double additions = fact_value(s, "additions");
    if (isnan(s->items_estimate))
        return (double)s->items_added >
               (isnan(additions) ? capacity : additions);
    /* The count that build makes may be up to 2 % short. */
    const double sd = isfinite(s->items_sd) ? s->items_sd : 0;
    return s->items_estimate > 1.02 * capacity + 3 * sd;
}

void warn_past_capacity(const char *path, const bly_stats *s)
{
    if (!is_past_capacity(s))
        return;
    const double additions = fact_value(s, "additions");
    if (isinf(s->items_estimate) && s->fpr_now >= 1)
        warn("%s: saturated: it says maybe to every key", path);
    else if (isnan(s->items_estimate) && !isnan(additions))
        warn("%s: took more additions than it was made for, %s: of keys that "
             "never came, %s have a count now, planned %s; when it is built, "
             "-O mean=N says how often a key comes",
             path, show_count((uint64_t)additions), show_rate(s->fpr_now),
             show_rate(s->fpr_at_capacity));
    else
        warn("%s: holds more keys than it was made for, %s: false positives "
             "now %s, planned %s",
             path, show_count(s->capacity), show_rate(s->fpr_now),
             show_rate(s->fpr_at_capacity));
}

/* ------------------------------------------------------------------ made */

static const bly_fact *find_fact(const bly_fact *facts, size_t n,
                                 const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(facts[i].name, name) == 0)
            return &facts[i];
    return NULL;
}

double fact_value(const bly_stats *s, const char *name)
{
    const bly_fact *const fact = find_fact(s->facts, s->nfacts, name);
    return fact ? fact->real : NAN;
}

const char *kind_unreliable(const bly_kind_info *kind)
{
    return !(kind->can & BLY_CAN(HAS))    ? "it cannot be asked for keys"
           : kind->traits & BLY_LIKELY_NO ? "its \"no\" is only likely"
           /* A kind that is told the time forgets keys, and it also forgets
            * after a number of additions. */
           : kind->can & BLY_CAN(TICK) ? "it forgets keys"
                                       : NULL;
}

bool kind_guards(const char *name, const char *what)
{
    bly_kind_info kind;
    if (!bly_kind_named(name, &kind))
        return true; /* whoever makes it says so */
    const char *why = kind_unreliable(&kind);
    if (!why && (kind.can & BLY_CAN(BUILD)) && (kind.can & BLY_CAN(GET)))
        why = "it stores values";
    if (why)
        fail("--kind %s: such a filter cannot be %s: %s; use another kind, or "
             "none for the usual one",
             kind.name, what, why);
    return !why;
}

double missed_share(const bly_fact *facts, size_t n)
{
    const bly_fact *const fact = find_fact(facts, n, "missed_mean");
    return fact ? fact->real : NAN;
}

uint64_t own_bytes(uint64_t bits, const bly_fact *facts, size_t n)
{
    const bly_fact *const sent = find_fact(facts, n, "sent_bits");
    const bly_fact *const held = find_fact(facts, n, "bits");
    return bits_to_bytes(sent && held ? held->uint : bits);
}

uint64_t filter_size(const bly_stats *s)
{
    return own_bytes(s->bits, s->facts, s->nfacts);
}

struct made made_of(const bly_stats *s)
{
    const bool grown = has_grown(s);
    const double nkeys = grown ? s->items_estimate : (double)s->capacity;
    return (struct made){
        .s = *s,
        .bytes = filter_size(s),
        .bits_per_key = nkeys > 0 ? (double)s->bits / nkeys : NAN,
        /* Past capacity the plan is not a promise any more. */
        .rate = grown || is_past_capacity(s) ? s->fpr_now : s->fpr_at_capacity,
        .miss = missed_share(s->facts, s->nfacts),
        .grown = grown,
        .sent = !isnan(fact_value(s, "sent_bits")),
    };
}

const struct field made_fields[] = {
    NAMED(struct made, "kind", s.kind, NONE, "kind of the filter"),
    NAMED(struct made, "items", s.capacity, ITEMS, "keys it was planned for"),
    FIELD(struct made, bytes, BYTES, "size of its cells"),
    FIELD(struct made, bits_per_key, BITS | MAYBE,
          "bits per key at capacity, or per key held if it has grown"),
    NAMED(struct made, "fpr", s.fpr_at_capacity, RATE | MAYBE,
          "false positives at capacity"),
    NAMED(struct made, "fpr_now", s.fpr_now, RATE | MAYBE,
          "false positives with the keys it holds"),
    FIELD(struct made, miss, RATE | OPTIONAL, MISS_HELP),
    NAMED(struct made, "layers", s.layers, NONE, NULL),
    FIELD(struct made, rate, RATE, NULL),
    FIELD(struct made, grown, NONE, NULL),
    FIELD(struct made, sent, NONE, NULL),
    { 0 },
};

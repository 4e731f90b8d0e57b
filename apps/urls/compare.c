/*
 * compare.c - the stores of a list side by side: bloomery urls compare
 *
 * The same entries as the filter that build would make, as sorted prefixes, and
 * as a Bloom filter that takes as many bits as these. Each is asked for entries
 * that nobody lists: names below .invalid, which are not names by RFC 2606.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/urls/blocklist.h"
#include "apps/urls/lists.h"
#include "apps/urls/urls.h"
#include "base/grow.h"
#include "io/filters.h"
#include "report/say.h"
#include "report/show.h"

#define COMPARE_SAMPLE 1000000

struct urls_compared {
    const char *store, *kind;
    uint64_t entries, bytes;
    double bits_per_entry, rate;
    uint64_t asked, wrong;
    double measured;
};

const struct field urls_compared_fields[] = {
    FIELD(struct urls_compared, store, NONE, "filter or prefixes"),
    FIELD(struct urls_compared, kind, NONE,
          "kind of the filter; rice for prefixes in Rice's code"),
    FIELD(struct urls_compared, entries, NONE, "different entries"),
    FIELD(struct urls_compared, bytes, BYTES, "what it takes"),
    FIELD(struct urls_compared, bits_per_entry, NONE, "bits for each entry"),
    FIELD(struct urls_compared, rate, RATE,
          "expected rate of false positives, per entry that is asked for"),
    FIELD(struct urls_compared, asked, NONE,
          "entries that are not listed and were asked for"),
    FIELD(struct urls_compared, wrong, NONE, "of them, those it had"),
    FIELD(struct urls_compared, measured, RATE, "their share"),
    { 0 },
};

struct comparing {
    const struct urls_args *args;
    bly_hasher hasher;
    unsigned width;
    uint64_t *hashes, *prefixes;
    size_t n, room_hashes, room_prefixes;
    uint64_t distinct;
};

static bool compare_take(void *ctx, bly_bytes entry, enum entry_kind kind)
{
    struct comparing *const c = ctx;
    if (kind != ENTRY_LISTED)
        return true;
    if (!GROW(&c->hashes, &c->room_hashes, c->n + 1) ||
        !GROW(&c->prefixes, &c->room_prefixes, c->n + 1))
        return false;
    c->hashes[c->n] = bly_hash(&c->hasher, entry.ptr, entry.len);
    c->prefixes[c->n++] = entry_prefix(entry, c->width);
    return true;
}

/* Ask a list for what it does not have. */
static void measure(const struct comparing *c, const struct blocklist *l,
                    struct urls_compared *row)
{
    enum { SOME = 512 };
    char texts[SOME][48];
    bly_bytes keys[SOME];
    uint64_t values[SOME], found[BLY_BITMAP_WORDS(SOME)];
    row->asked = c->args->sample ? c->args->sample : COMPARE_SAMPLE;
    for (uint64_t i = 0; i < row->asked; i += SOME) {
        const size_t n =
            row->asked - i < SOME ? (size_t)(row->asked - i) : SOME;
        for (size_t k = 0; k < n; k++) {
            const int len = snprintf(
                texts[k], sizeof texts[k], "%llu.absent.invalid%s",
                (unsigned long long)(i + k), c->args->domains ? "" : "/");
            keys[k] = (bly_bytes){ texts[k], (size_t)len };
        }
        if (l->filter) {
            bly_has_keys(l->filter, keys, n, found);
        } else {
            for (size_t k = 0; k < n; k++)
                values[k] = entry_prefix(keys[k], c->width);
            bly_sorted_has(l->prefixes, values, n, found);
        }
        for (size_t w = 0; w < BLY_BITMAP_WORDS(n); w++)
            row->wrong += (uint64_t)__builtin_popcountll(found[w]);
    }
    row->measured = (double)row->wrong / (double)row->asked;
}

/* A filter of all entries; false, with the reason printed. */
static bool compare_filter(struct comparing *c, const bly_spec *spec,
                           struct urls_compared *row)
{
    struct blocklist l = { 0 };
    bly_builder *b;
    bly_status st = bly_builder_new(spec, &b);
    if (!st)
        st = bly_builder_add(b, c->hashes, NULL, c->n);
    if (!st)
        st = bly_builder_finish(b, thread_count(c->args->threads), &l.filter);
    bly_builder_free(b);
    if (st) {
        fail_library();
        return false;
    }
    bly_stats s;
    bly_stat(l.filter, &s);
    const struct made made = made_of(&s);
    *row = (struct urls_compared){ .store = "filter",
                                   .kind = s.kind,
                                   .entries = c->distinct,
                                   .bytes = made.bytes,
                                   .rate = made.rate };
    row->bits_per_entry = 8 * (double)made.bytes / (double)c->distinct;
    measure(c, &l, row);
    bly_free(l.filter);
    return true;
}

static bool compare_prefixes(struct comparing *c, struct urls_compared *row,
                             uint64_t *nbits)
{
    struct blocklist l = { 0 };
    if (bly_sorted_new(c->prefixes, c->n, c->width, NULL, NULL, &l.prefixes)) {
        fail_library();
        return false;
    }
    const uint64_t items = bly_sorted_items(l.prefixes);
    *nbits = bly_sorted_bits(l.prefixes);
    *row = (struct urls_compared){
        .store = "prefixes",
        .kind = "rice",
        .entries = items,
        .bytes = bly_sorted_written_bytes(l.prefixes),
        .bits_per_entry = (double)*nbits / (double)items,
        .rate = (double)items * exp2(-(double)c->width),
    };
    measure(c, &l, row);
    bly_sorted_free(l.prefixes);
    return true;
}

static void compare_print(const struct urls_args *args,
                          const struct urls_compared *rows, size_t n)
{
    if (args->json) {
        struct json j = { .to = stdout };
        json_open(&j, '[');
        for (size_t i = 0; i < n; i++)
            report_object(&j, urls_compared_fields, &rows[i]);
        json_close(&j, ']');
        json_end(&j);
        return;
    }
    printf("%-9s %-8s %10s %11s %11s %15s %15s\n", "store", "kind", "entries",
           "size", "bits/entry", "error expected", "measured");
    for (size_t i = 0; i < n; i++)
        printf("%-9s %-8s %10llu %11s %11.2f %15s %15s\n", rows[i].store,
               rows[i].kind, (unsigned long long)rows[i].entries,
               show_bytes(rows[i].bytes), rows[i].bits_per_entry,
               show_rate(rows[i].rate),
               rows[i].wrong ? show_rate(rows[i].measured) : "none");
}

static int compare_all(struct comparing *c)
{
    const struct urls_args *const args = c->args;
    const struct sizing sizing = urls_sizing(&args->sizing);
    struct urls_compared rows[3];
    bly_spec spec = { 0 };
    uint64_t nbits;
    if (!sizing_spec(&sizing, &spec) || !compare_prefixes(c, &rows[1], &nbits))
        return TROUBLE;
    c->distinct = rows[1].entries;
    const bly_spec same = { .kind = "classic",
                            .items = c->distinct,
                            .bits = nbits };
    if (!compare_filter(c, &spec, &rows[0]) ||
        !compare_filter(c, &same, &rows[2]))
        return TROUBLE;
    if (!quiet)
        compare_print(args, rows, 3);
    return YES;
}

int urls_verb_compare(const struct urls_args *args, const struct list *operands)
{
    struct comparing c = { .args = args };
    struct list_reader r = { .domains = args->domains,
                             .folded = args->keys.normal.fold,
                             .take = compare_take,
                             .ctx = &c };
    bool bad;
    c.width = urls_width(args->prefix_bytes);
    if (!c.width || bly_hasher_for(&(bly_spec){ 0 }, &c.hasher))
        return TROUBLE;
    int status = TROUBLE;
    const bool ok = list_read(&r, operands->at, operands->n,
                              args->keys.select.skip_bad, &bad);
    list_end(&r);
    if (ok && !c.n)
        fail("no entries in the input");
    else if (ok)
        status = compare_all(&c);
    free(c.hashes);
    free(c.prefixes);
    return status == YES && bad ? TROUBLE : status;
}

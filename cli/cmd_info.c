/*
 * cmd_info.c - what a filter knows of itself
 *
 * Reads all of the file: its checksum is compared and its cells are counted.
 * Keyed filters are opened blind, without their secret.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <bloomery.h>

#include "cli/rows.h"
#include "io/filters.h"
#include "io/foreign.h"
#include "report/json.h"
#include "report/say.h"
#include "report/show.h"
#include "report/words.h"

static struct {
    struct foreign_args foreign;
    bool json, parts;
} info_args;

static const char *hash_name(uint32_t id)
{
    return id == BLY_HASH_XXH3        ? "XXH3"
           : id == BLY_HASH_SIPHASH13 ? "SipHash-1-3"
                                      : "unknown";
}

/* The size of the file, and what it would be uncoded. */
struct file_sizes {
    uint64_t is, uncoded;
};

static struct file_sizes sizes_of(bly_filter *f, const char *path,
                                  const bly_stats *s)
{
    struct file_sizes n = { .is = bly_written_bytes(f) };
    struct stat st;
    /* Written anew, an old file may be of a newer version, and longer. */
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        n.is = (uint64_t)st.st_size;
    bly_set_coded(f, false);
    n.uncoded = bly_written_bytes(f);
    bly_set_coded(f, s->coded);
    return n;
}

static void info_json(const char *path, const bly_stats *s,
                      const struct file_sizes *n, bool intact)
{
    struct json j = { .to = stdout };
    json_open(&j, '{');
    json_key(&j, "file");
    json_text(&j, path);
    json_key(&j, "kind");
    json_text(&j, s->kind);
    json_key(&j, "items_estimate");
    json_real(&j, s->items_estimate);
    json_key(&j, "items_sd");
    json_real(&j, s->items_sd);
    json_key(&j, "items_added");
    json_uint(&j, s->items_added);
    json_key(&j, "capacity");
    json_uint(&j, s->capacity);
    json_key(&j, "past_capacity");
    json_bool(&j, is_past_capacity(s));
    json_key(&j, "saturated");
    json_bool(&j, isinf(s->items_estimate));
    json_key(&j, "fpr_now");
    json_real(&j, s->fpr_now);
    json_key(&j, "fpr_at_capacity");
    json_real(&j, s->fpr_at_capacity);
    json_key(&j, "fill");
    json_real(&j, s->fill);
    json_key(&j, "bits");
    json_uint(&j, s->bits);
    json_key(&j, "bytes");
    json_uint(&j, s->bytes);
    json_key(&j, "file_bytes");
    json_uint(&j, n->is);
    json_key(&j, "coded");
    json_bool(&j, s->coded);
    json_key(&j, "uncoded_bytes");
    json_uint(&j, n->uncoded);
    json_key(&j, "format_version");
    json_uint(&j, s->format);
    json_key(&j, "block_checksums");
    json_bool(&j, s->format > 1);
    json_key(&j, "checksum");
    json_text(&j, intact ? "right" : "wrong");
    json_key(&j, "hash");
    json_text(&j, hash_name(s->hash_id));
    json_key(&j, "seed");
    if (s->keyed)
        json_null(&j);
    else
        json_uint(&j, s->seed);
    json_key(&j, "keyed");
    json_bool(&j, s->keyed);
    json_key(&j, "layers");
    json_uint(&j, s->layers);
    json_facts(&j, s->facts, s->nfacts);
    json_close(&j, '}');
    json_end(&j);
}

#define INFO_ROW "  %-*s "

static void info_text(const char *path, const bly_stats *s,
                      const struct file_sizes *n, bool intact)
{
    const int w = fact_column(s->facts, s->nfacts, "rate at capacity");
    printf("%s\n" INFO_ROW "%s\n", show_name(path), w, "kind", s->kind);
    if (isinf(s->items_estimate))
        printf(INFO_ROW "more than can be told from its contents", w, "keys");
    else if (isnan(s->items_estimate))
        printf(INFO_ROW "cannot be told from its contents", w, "keys");
    else if (s->items_sd == 0) /* it knows every one */
        printf(INFO_ROW "%s by its contents", w, "keys",
               show_count((uint64_t)s->items_estimate));
    else
        printf(INFO_ROW "%s +- %s by its contents", w, "keys",
               show_estimate(s->items_estimate), show_rounded(s->items_sd));
    printf("; %s counted\n", show_count(s->items_added));
    if (s->capacity)
        printf(INFO_ROW "%s key%s\n", w, "capacity", show_count(s->capacity),
               s->capacity == 1 ? "" : "s");
    if (!isnan(s->fpr_now))
        printf(INFO_ROW "%s\n", w, "rate now", show_rate(s->fpr_now));
    if (!isnan(s->fpr_at_capacity))
        printf(INFO_ROW "%s\n", w, "rate at capacity",
               show_rate(s->fpr_at_capacity));
    if (!isnan(s->fill))
        printf(INFO_ROW "%.1f %%\n", w, "fill", s->fill * 100);
    printf(INFO_ROW "%llu bits", w, "size", (unsigned long long)s->bits);
    if (!isnan(bits_per_key(s)))
        printf(", %.2f per key%s%s", bits_per_key(s),
               has_grown(s) ? "" : " at capacity",
               isnan(fact_value(s, "sent_bits")) ? "" : ", when sent");
    printf("\n" INFO_ROW "%s\n", w, "memory", show_bytes(s->bytes));
    printf(INFO_ROW "%s, ", w, "file", show_bytes(n->is));
    if (s->coded)
        printf("coded (%s as it is), ", show_bytes(n->uncoded));
    printf("format version %u%s, checksum %s\n", s->format,
           s->format > 1 ? " with a checksum for each 64 KiB" : "",
           intact ? "right" : "wrong");
    if (s->keyed)
        printf(INFO_ROW "%s, keyed\n", w, "hash", hash_name(s->hash_id));
    else
        printf(INFO_ROW "%s, seed %llu\n", w, "hash", hash_name(s->hash_id),
               (unsigned long long)s->seed);
    if (s->layers)
        printf(INFO_ROW "%u\n", w, "layers", s->layers);
    for (size_t i = 0; i < s->nfacts; i++)
        printf(INFO_ROW "%s\n", w, s->facts[i].name, show_fact(&s->facts[i]));
}

/* ------------------------------------------------ of another system */

static void json_known(struct json *j, const char *key, uint64_t value,
                       uint64_t unknown)
{
    json_key(j, key);
    if (value == unknown)
        json_null(j);
    else
        json_uint(j, value);
}

static void foreign_members(struct json *j, const bly_foreign_stats *s)
{
    json_key(j, "bits");
    json_uint(j, s->bits);
    json_key(j, "ones");
    json_uint(j, s->ones);
    json_known(j, "k", s->k, 0);
    json_known(j, "items", s->items, UINT64_MAX);
    json_known(j, "capacity", s->capacity, 0);
    json_key(j, "items_estimate");
    json_real(j, s->items_estimate);
    json_key(j, "fpr_now");
    json_real(j, s->fpr_now);
    json_key(j, "fpr_planned");
    json_real(j, s->fpr_planned);
    json_key(j, "fill");
    json_real(j, s->fill);
}

static void info_foreign_json(const char *path, const bly_foreign *f,
                              const bly_foreign_stats *s, size_t nbytes)
{
    struct json j = { .to = stdout };
    json_open(&j, '{');
    json_key(&j, "file");
    json_text(&j, path);
    json_key(&j, "format");
    json_text(&j, s->format);
    json_key(&j, "bytes");
    json_uint(&j, nbytes);
    json_key(&j, "filters");
    json_uint(&j, s->nparts);
    foreign_members(&j, s);
    json_facts(&j, s->facts, s->nfacts);
    if (info_args.parts) {
        json_key(&j, "parts");
        json_open(&j, '[');
        for (size_t i = 0; i < s->nparts; i++) {
            bly_foreign_stats part;
            bly_foreign_stat(f, i, &part);
            json_open(&j, '{');
            json_key(&j, "name");
            json_text(&j, part.name);
            foreign_members(&j, &part);
            json_close(&j, '}');
        }
        json_close(&j, ']');
    }
    json_close(&j, '}');
    json_end(&j);
}

static void info_foreign_text(const char *path, const bly_foreign *f,
                              const bly_foreign_stats *s, size_t nbytes)
{
    const int w = fact_column(s->facts, s->nfacts, "planned rate");
    bly_format_info format;
    bly_format_named(s->format, &format);
    printf("%s\n" INFO_ROW "%s: %s\n", show_name(path), w, "format", s->format,
           format.systems);
    if (s->nparts != 1)
        printf(INFO_ROW "%zu\n", w, "filters", s->nparts);
    if (!isnan(s->items_estimate))
        printf(INFO_ROW "%s by its bits\n", w, "keys",
               show_estimate(s->items_estimate));
    if (s->items != UINT64_MAX)
        printf(INFO_ROW "%llu by its own count\n", w, "keys",
               (unsigned long long)s->items);
    if (s->capacity)
        printf(INFO_ROW "%s\n", w, "capacity", show_keys(s->capacity));
    if (!isnan(s->fpr_now))
        printf(INFO_ROW "%s%s\n", w, "rate now", show_rate(s->fpr_now),
               s->nparts > 1 ? ", the mean of its filters" : "");
    if (!isnan(s->fpr_planned))
        printf(INFO_ROW "%s\n", w, "planned rate", show_rate(s->fpr_planned));
    if (!isnan(s->fill))
        printf(INFO_ROW "%.1f %%\n", w, "fill", s->fill * 100);
    printf(INFO_ROW "%llu bits", w, "size", (unsigned long long)s->bits);
    if (s->k)
        printf(", %u probes per key", s->k);
    printf("\n" INFO_ROW "%s\n", w, "file", show_bytes(nbytes));
    for (size_t i = 0; i < s->nfacts; i++)
        printf(INFO_ROW "%s\n", w, s->facts[i].name, show_fact(&s->facts[i]));
    for (size_t i = 0; info_args.parts && i < s->nparts; i++) {
        bly_foreign_stats part;
        bly_foreign_stat(f, i, &part);
        printf("%s%s: %llu bits, %u probes", i ? "" : "\n",
               part.name[0] ? show_name(part.name) : "the filter",
               (unsigned long long)part.bits, part.k);
        if (!isnan(part.items_estimate))
            printf(", %s keys", show_estimate(part.items_estimate));
        printf(", rate %s\n", show_rate(part.fpr_now));
    }
}

static void info_foreign(const char *path, const struct foreign_file *file)
{
    bly_foreign_stats s;
    bly_foreign_stat(file->f, BLY_WHOLE, &s);
    if (info_args.json)
        info_foreign_json(path, file->f, &s, file->nbytes);
    else
        info_foreign_text(path, file->f, &s, file->nbytes);
}

/* --------------------------------------------------------------- running */

static int info_file(const char *path, bool follows)
{
    struct foreign_file file;
    if (foreign_open(path, &info_args.foreign, &file) != YES)
        return TROUBLE;
    if (file.f) {
        if (follows && !info_args.json)
            putchar('\n');
        info_foreign(path, &file);
        foreign_close(&file);
        return YES;
    }
    const bly_access how = { .blind = true };
    bly_filter *const f = filter_map(path, &how);
    if (!f)
        return TROUBLE;
    const bool intact = bly_verify(f) == BLY_OK;
    bly_stats s;
    bly_stat(f, &s);
    const struct file_sizes n = sizes_of(f, path, &s);
    int status = YES;
    if (!intact)
        status = fail("%s: %s", path, bly_error());
    if (follows && !info_args.json)
        putchar('\n');
    if (info_args.json)
        info_json(path, &s, &n, intact);
    else
        info_text(path, &s, &n, intact);
    if (intact)
        warn_past_capacity(path, &s);
    bly_free(f);
    return status;
}

static int info_run(struct list *operands)
{
    if (operands->n == 0)
        return fail("which filter? right: bloomery info FILTER...");
    int status = YES;
    for (size_t i = 0; i < operands->n; i++) {
        if (info_file(operands->at[i], i > 0) != YES)
            status = TROUBLE;
    }
    return status;
}

static const struct opt info_options[] = {
    { "json", 0, OPT_FLAG, &info_args.json, NULL,
      "print one JSON object per filter, each on its own line" },
    { "parts", 'P', OPT_FLAG, &info_args.parts, NULL,
      "for a file of another system: describe each of its filters" },
    FORMAT_READ_OPTIONS(info_args.foreign),
    { 0 },
};

static const struct example info_examples[] = {
    { "bloomery info words.bly",
      "its kind, how full it is, how often it is wrong" },
    { "bloomery info .git/objects/info/commit-graph",
      "a file of another system; see bloomery formats" },
    { 0 },
};

const struct command cmd_info = {
    .name = "info",
    .usage = "[OPTION]... FILTER...",
    .summary = "describe a filter: kind, fill, and how often it is wrong",
    .about = "Prints the kind and the shape of each filter, an estimate, from "
             "its contents, of how many different keys it holds, with its "
             "standard deviation, and the rate of false positives, now and as "
             "planned. Beside the estimate is the count: additions that "
             "changed the filter or, after a build or a merge, different keys, "
             "which is an estimate too if there were more than a million. The "
             "whole file is read and compared with its checksum.\n\n"
             "A warning is printed for a filter that holds more keys than it "
             "was made for: it still never misses a key, but says maybe too "
             "often. The secret of a keyed filter is not needed.\n\n"
             "For a filter of another system (bloomery formats) it prints what "
             "the file says, and what follows from its bits.",
    .options = info_options,
    .examples = info_examples,
    .run = info_run,
};

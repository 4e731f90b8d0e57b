/*
 * cmd_info.c - what a filter knows of itself
 *
 * Reads all of the file: its checksum is compared and its cells are counted.
 * Keyed filters are opened blind, without their secret.
 */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/rows.h"
#include "io/filters.h"
#include "io/foreign_files.h"
#include "io/live_files.h"
#include "io/notes.h"
#include "io/sketch_files.h"

static struct {
    struct foreign_args foreign;
    bool json, parts;
} info_args;

static const char *hash_name(uint32_t id)
{
    return id == BLY_HASH_XXH3            ? "XXH3"
           : id == BLY_HASH_SIPHASH13     ? "SipHash-1-3"
           : id == BLY_HASH_ORDERED_BYTES ? "order of bytes"
           : id == BLY_HASH_ORDERED_INTS  ? "order of integers"
           : id == BLY_HASH_ORDERED_TAILS ? "order of bytes behind a beginning"
           : id == BLY_HASH_GROUPED       ? "XXH3 by groups"
           : id == BLY_HASH_FOLDED        ? "folded product"
                                          : "unknown";
}

struct info {
    const char *file;
    struct made made;
    uint64_t file_bytes, uncoded_bytes;
    bool past_capacity, saturated, exact, single, block_checksums;
    const char *checksum, *hash;
    const uint64_t *seed; /* NULL: keyed */
    struct meta meta;
    const struct live_told *live; /* NULL: it is not */
};

static const struct field info_fields[] = {
    FIELD(struct info, file, NONE, "the filter"),
    NAMED(struct info, "kind", made.s.kind, NONE, "its kind"),
    NAMED(struct info, "items_estimate", made.s.items_estimate,
          ESTIMATE | MAYBE, "different keys it holds, by its contents"),
    NAMED(struct info, "items_sd", made.s.items_sd, ROUNDED | MAYBE,
          "standard deviation of that"),
    NAMED(struct info, "items_added", made.s.items_added, ITEMS,
          "additions that changed it; after a build or merge, different keys"),
    NAMED(struct info, "capacity", made.s.capacity, ITEMS,
          "keys it was planned for; 0 if none were given"),
    FIELD(struct info, past_capacity, NONE, "whether it holds more than that"),
    FIELD(struct info, saturated, NONE,
          "whether it is too full to tell how many keys it holds"),
    NAMED(struct info, "fpr_now", made.s.fpr_now, RATE | MAYBE,
          "false positives with the keys it holds"),
    NAMED(struct info, "fpr_at_capacity", made.s.fpr_at_capacity, RATE | MAYBE,
          "false positives at capacity"),
    NAMED(struct info, "miss", made.miss, RATE | OPTIONAL, MISS_HELP),
    NAMED(struct info, "fill", made.s.fill, SHARE | MAYBE, "cells in use"),
    NAMED(struct info, "bits", made.s.bits, BITS,
          "bits that the kind works on; for coded kinds, those that are sent"),
    NAMED(struct info, "bytes", made.s.bytes, BYTES, "memory it takes"),
    FIELD(struct info, file_bytes, BYTES, "size of the file"),
    NAMED(struct info, "coded", made.s.coded, NONE,
          "whether the file is coded"),
    FIELD(struct info, uncoded_bytes, BYTES, "size of the file if it were not"),
    NAMED(struct info, "format_version", made.s.format, NONE,
          "version of the file format"),
    FIELD(struct info, block_checksums, NONE,
          "whether each 64 KiB have a checksum"),
    FIELD(struct info, checksum, NONE,
          "\"right\" or \"wrong\"; a live filter has \"none\""),
    FIELD(struct info, hash, NONE, "hash function"),
    FIELD(struct info, seed, NONE | MAYBE, "its seed; null if keyed"),
    NAMED(struct info, "keyed", made.s.keyed, NONE,
          "whether its hash has a secret key"),
    NAMED(struct info, "layers", made.s.layers, NONE,
          "filters it consists of; 0 if it is one"),
    MEMBERS(struct info, meta, NONE, meta_fields),
    OBJECT(struct info, "live", live, AT | OPTIONAL, live_fields,
           "of a live filter"),
    FACTS(struct info, made.s.facts, made.s.nfacts),
    NAMED(struct info, "items_exact", made.s.items_estimate, ITEMS, NULL),
    FIELD(struct info, exact, NONE, NULL),
    FIELD(struct info, single, NONE, NULL),
    NAMED(struct info, "bits_per_key", made.bits_per_key, NONE, NULL),
    NAMED(struct info, "grown", made.grown, NONE, NULL),
    NAMED(struct info, "sent", made.sent, NONE, NULL),
    { 0 },
};

static const char info_text[] =
    "{file}\n"
    "  kind~{kind}\n" META_TEXT
    "  keys~[{?saturated}more than can be told from its contents"
    "|{?exact}{items_exact} by its contents"
    "|{items_estimate} +- {items_sd} by its contents"
    "|cannot be told from its contents]; {items_added} counted\n"
    "[  capacity~{?capacity}{capacity} key[{!single}s]\n]"
    "[  rate now~{fpr_now}\n]"
    "[  rate at capacity~{fpr_at_capacity}\n]"
    "[  misses~{miss} of its own keys\n]"
    "[  fill~{fill}\n]"
    "  size~{bits} bits[, {bits_per_key:.2} per key[{!grown} at capacity]"
    "[{?sent}, when sent]]\n"
    "  memory~{bytes}\n"
    "  file~{file_bytes}, [{?coded}coded ({uncoded_bytes} as it is), ]format "
    "version {format_version}[{?block_checksums} with a checksum for each 64 "
    "KiB], checksum {checksum}\n"
    "  hash~{hash}, [seed {seed}|keyed]\n"
    "[  layers~{?layers}{layers}\n]"
    "{params:2}";

/* f is changed and changed back. */
static void info_filter(const char *path, bly_filter *f, const bly_stats *s,
                        bool intact)
{
    struct info i = {
        .file = path,
        .made = made_of(s),
        .file_bytes = bly_written_bytes(f),
        .past_capacity = is_past_capacity(s),
        .saturated = isinf(s->items_estimate),
        .exact = isfinite(s->items_estimate) && s->items_sd == 0,
        .single = s->capacity == 1,
        .block_checksums = s->format == 2,
        .checksum = intact ? "right" : "wrong",
        .hash = hash_name(s->hash_id),
        .seed = s->keyed ? NULL : &s->seed,
        .meta = meta_of(f),
    };
    struct live_told live;
    if (live_tell(f, &live)) {
        i.live = &live;
        i.checksum = "none";
    }
    struct stat st;
    /* Written anew, an old file may be of a newer version, and longer. */
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        i.file_bytes = (uint64_t)st.st_size;
    bly_set_coded(f, false);
    i.uncoded_bytes = bly_written_bytes(f);
    bly_set_coded(f, s->coded);
    report(stdout, info_args.json, info_fields, &i, info_text);
    if (i.live && !info_args.json)
        report_text(stdout, live_fields, i.live, LIVE_TEXT);
}

/* ------------------------------------------------ of another system */

struct info_part {
    bly_foreign_stats s;
    const uint64_t *items; /* NULL: it does not say */
};

static const struct field part_fields[] = {
    NAMED(struct info_part, "bits", s.bits, BITS, "size of the array"),
    NAMED(struct info_part, "ones", s.ones, BITS, "bits that are set"),
    NAMED(struct info_part, "k", s.k, MAYBE | ZERO,
          "probes per key; null if parts differ"),
    FIELD(struct info_part, items, MAYBE, "keys according to the file"),
    NAMED(struct info_part, "capacity", s.capacity, KEYS | MAYBE | ZERO,
          "keys it was planned for"),
    NAMED(struct info_part, "items_estimate", s.items_estimate,
          ESTIMATE | MAYBE, "different keys it holds, by its bits"),
    NAMED(struct info_part, "fpr_now", s.fpr_now, RATE | MAYBE,
          "false positives, by its bits; the mean of several parts"),
    NAMED(struct info_part, "fpr_planned", s.fpr_planned, RATE | MAYBE,
          "false positives according to the file"),
    NAMED(struct info_part, "fill", s.fill, SHARE | MAYBE, "bits that are set"),
    { 0 },
};

static const struct field named_part_fields[] = {
    NAMED(struct info_part, "name", s.name, NONE, "name of the part"),
    ALSO(part_fields),
    { 0 },
};

static void part_at(const void *f, size_t i, void *part)
{
    struct info_part *const p = part;
    bly_foreign_stat(f, i, &p->s);
    p->items = p->s.items == UINT64_MAX ? NULL : &p->s.items;
}

struct info_foreign {
    const char *file, *systems;
    size_t bytes;
    bool several;
    struct info_part whole;
    const bly_foreign *parts; /* NULL: they are not shown */
};

static const struct field foreign_fields[] = {
    FIELD(struct info_foreign, file, NONE, "the file"),
    NAMED(struct info_foreign, "format", whole.s.format, NONE, "its format"),
    FIELD(struct info_foreign, bytes, BYTES, "size of the file"),
    NAMED(struct info_foreign, "filters", whole.s.nparts, NONE,
          "filters in the file"),
    MEMBERS(struct info_foreign, whole, NONE, part_fields),
    FACTS(struct info_foreign, whole.s.facts, whole.s.nfacts),
    EACH(struct info_foreign, "parts", parts, whole.s.nparts, OPTIONAL, part_at,
         struct info_part, named_part_fields, "each filter, with --parts"),
    FIELD(struct info_foreign, systems, NONE, NULL),
    FIELD(struct info_foreign, several, NONE, NULL),
    { 0 },
};

static const char foreign_text[] =
    "{file}\n"
    "  format~{format}: {systems}\n"
    "[  filters~{?several}{filters}\n]"
    "[  keys~{items_estimate} by its bits\n]"
    "[  keys~{items} by its own count\n]"
    "[  capacity~{capacity}\n]"
    "[  rate now~{fpr_now}[{?several}, the mean of its filters]\n]"
    "[  planned rate~{fpr_planned}\n]"
    "[  fill~{fill}\n]"
    "  size~{bits} bits[, {k} probes per key]\n"
    "  file~{bytes}\n"
    "{params:2}";

static void info_foreign(const char *path, const struct foreign_file *file)
{
    struct info_foreign i = {
        .file = path,
        .bytes = file->nbytes,
        .parts = info_args.parts ? file->f : NULL,
    };
    bly_format_info format;
    part_at(file->f, BLY_WHOLE, &i.whole);
    bly_format_named(i.whole.s.format, &format);
    i.systems = format.systems;
    i.several = i.whole.s.nparts != 1;
    report(stdout, info_args.json, foreign_fields, &i, foreign_text);
    for (size_t n = 0; i.parts && !info_args.json && n < i.whole.s.nparts;
         n++) {
        struct info_part part;
        part_at(file->f, n, &part);
        if (n == 0)
            putchar('\n');
        report_text(stdout, named_part_fields, &part,
                    "[{?name}{name}|the filter]: {bits} bits, {k} probes"
                    "[, {items_estimate} keys], rate {fpr_now}\n");
    }
}

/* --------------------------------------------------------------- sketches */

static int info_sketch(const char *path, bool follows)
{
    bly_stored s;
    struct sketch_told told;
    if (!sketch_open(path, BLY_STORED_NONE, NULL, &s))
        return TROUBLE;
    if (follows && !info_args.json)
        putchar('\n');
    sketch_tell(path, &s, &told);
    report(stdout, info_args.json, sketch_fields, &told, sketch_text);
    bly_stored_free(&s);
    return YES;
}

/* --------------------------------------------------------------- running */

static int info_file(const char *path, bool follows)
{
    struct foreign_file file;
    if (sketch_type(path))
        return info_sketch(path, follows);
    if (foreign_open(path, &info_args.foreign, &file) != YES)
        return TROUBLE;
    if (file.f) {
        if (follows && !info_args.json)
            putchar('\n');
        info_foreign(path, &file);
        foreign_close(&file);
        return YES;
    }
    /* A damaged one is described too. */
    const bly_access how = { .blind = true, .checking = BLY_CHECK_NOTHING };
    bly_filter *const f = filter_map(path, &how);
    if (!f)
        return TROUBLE;
    const bool intact = bly_verify(f) == BLY_OK;
    bly_stats s;
    bly_stat(f, &s);
    int status = YES;
    if (!intact)
        status = fail("%s: %s", path, bly_error());
    if (follows && !info_args.json)
        putchar('\n');
    info_filter(path, f, &s, intact);
    if (intact)
        warn_past_capacity(path, &s);
    bly_free(f);
    return status;
}

static int info_run(struct list *operands)
{
    if (operands->n == 0)
        return fail("no filter is given; usage: bloomery info FILTER...");
    int status = YES;
    for (size_t i = 0; i < operands->n; i++) {
        if (info_file(operands->at[i], i > 0) != YES)
            status = TROUBLE;
    }
    return status;
}

static const struct opt info_options[] = {
    FLAG("json", 0, info_args.json,
         "print one JSON object per filter, each on its own line"),
    FLAG("parts", 'P', info_args.parts,
         "for a file of another system: describe each of its filters"),
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
             "whole file is read and compared with its checksum. What the "
             "file says of its keys comes first: their type, a note, and pairs "
             "of names and values (build --note, --meta; bloomery note).\n\n"
             "A warning is printed for a filter that holds more keys than it "
             "was made for: it still misses no key (but for kinds whose no "
             "is only likely), and says maybe too often. The secret of a keyed "
             "filter is not needed.\n\n"
             "For a filter of another system (bloomery formats) it prints what "
             "the file says, and what follows from its bits.\n\n"
             "For a sketch that bloomery distinct or top saved, it prints what "
             "it is of, how many keys it has seen, and what it makes of them.",
    .options = info_options,
    .examples = info_examples,
    .reports =
        REPORTS({ "for a filter", info_fields, LINES },
                { "for a sketch", sketch_fields, LINES },
                { "for a file of another system", foreign_fields, LINES }),
    .run = info_run,
};

/*
 * urls_build.c - a list in a file: bloomery urls build
 *
 * Entries go to a builder of the library as hashes, or as prefixes of their
 * SHA-256 into an array; exceptions are kept as they are. The exceptions are
 * written before the list, and those of the version before are removed after
 * it: at any moment the list that is there has its own beside it.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/urls/blocklist.h"
#include "apps/urls/lists.h"
#include "apps/urls/urls.h"
#include "base/grow.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "io/source.h"
#include "io/digests.h"
#include "report/say.h"

struct urls_built {
    const char *file, *store, *entries_are;
    const char *of_entries, *of_lines; /* nouns, for people */
    struct list_counts n;
    const char *allow; /* path; NULL: no exceptions */
    uint64_t distinct, bytes;
    double bits_per_entry, rate;
    struct made made; /* of a filter */
};

const struct field urls_built_fields[] = {
    FIELD(struct urls_built, file, NONE, "where the list was written"),
    FIELD(struct urls_built, store, NONE, "filter or prefixes"),
    NAMED(struct urls_built, "list", entries_are, NONE, "urls or domains"),
    NAMED(struct urls_built, "lines", n.lines, NONE, "lines that were read"),
    NAMED(struct urls_built, "entries", n.entries, NONE,
          "entries in them, as often as they came"),
    FIELD(struct urls_built, distinct, NONE, "different ones"),
    NAMED(struct urls_built, "exceptions", n.exceptions, NONE,
          "exceptions in them"),
    NAMED(struct urls_built, "skipped", n.skipped, NONE,
          "rules that no entry can stand for"),
    NAMED(struct urls_built, "bad", n.bad, NONE,
          "lines that are neither an entry nor a rule"),
    FIELD(struct urls_built, allow, MAYBE, "the file with the exceptions"),
    FIELD(struct urls_built, bytes, BYTES, "memory that the list takes"),
    FIELD(struct urls_built, bits_per_entry, NONE, "bits for each entry"),
    FIELD(struct urls_built, rate, RATE,
          "chance that an entry which is not listed looks as if it were; a "
          "name or URL has several"),
    FIELD(struct urls_built, of_entries, NONE, NULL),
    FIELD(struct urls_built, of_lines, NONE, NULL),
    { 0 },
};

struct sizing urls_sizing(const struct sizing *given)
{
    struct sizing s = *given;
    if (!s.kind)
        s.kind = URLS_KIND;
    if (!(s.fpr > 0) && !s.bits && !s.memory)
        s.fpr = URLS_FPR;
    return s;
}

unsigned urls_width(uint64_t prefix_bytes)
{
    if (prefix_bytes && (prefix_bytes < 2 || prefix_bytes > 8)) {
        fail("--prefix-bytes: expected 2 to 8; a list of whole hashes is no "
             "shorter than the hashes");
        return 0;
    }
    return prefix_bytes ? 8 * (unsigned)prefix_bytes : 32;
}

/* ------------------------------------------------------------------ reading */

struct gathering {
    bly_builder *builder; /* NULL: prefixes */
    uint64_t hashes[512];
    size_t nhashes;
    unsigned width;
    uint64_t *prefixes;
    size_t n, room;
    struct text_set allow;
    bool library; /* bly_error() says what is wrong */
};

static bool gather_flush(struct gathering *g)
{
    const size_t n = g->nhashes;
    g->nhashes = 0;
    g->library = n && bly_builder_add(g->builder, g->hashes, NULL, n);
    return !g->library;
}

static bool gather_prefix(struct gathering *g, uint64_t prefix)
{
    if (!GROW(&g->prefixes, &g->room, g->n + 1))
        return false;
    g->prefixes[g->n++] = prefix;
    return true;
}

static bool gather(void *ctx, bly_bytes entry, enum entry_kind kind)
{
    struct gathering *const g = ctx;
    if (kind == ENTRY_ALLOWED)
        return text_set_add(&g->allow, entry);
    if (kind == ENTRY_DIGEST) {
        const unsigned char *const sum = entry.ptr;
        uint64_t value = 0;
        for (size_t i = 0; i < 8; i++)
            value = value << 8 | sum[i];
        return gather_prefix(g, value >> (64 - g->width));
    }
    if (!g->builder)
        return gather_prefix(g, entry_prefix(entry, g->width));
    g->hashes[g->nhashes++] =
        bly_hash(bly_builder_hasher(g->builder), entry.ptr, entry.len);
    return g->nhashes < 512 || gather_flush(g);
}

static void gather_free(struct gathering *g)
{
    bly_builder_free(g->builder);
    free(g->prefixes);
    text_set_free(&g->allow);
}

/* ------------------------------------------------------------------ writing */

static bly_status write_lines(const void *what, bly_put *put, void *ctx)
{
    const struct text_set *const s = what;
    return put(ctx, s->lines.at, s->lines.len) ? BLY_OK : BLY_EIO;
}

static bly_status write_prefixes(const void *what, bly_put *put, void *ctx)
{
    const bly_sorted *const s = what;
    const size_t n = bly_sorted_written_bytes(s);
    void *const bytes = malloc(n);
    if (!bytes)
        return BLY_ENOMEM;
    bly_sorted_write(s, bytes);
    const bool ok = put(ctx, bytes, n);
    free(bytes);
    return ok ? BLY_OK : BLY_EIO;
}

/* Is this the name of exceptions of the list in path? The name stands in a file
 * that anyone may have written, and what it names is to be removed. */
static bool is_allow_name(const char *path, const char *name)
{
    const char *const slash = strrchr(path, '/');
    const char *const base = slash ? slash + 1 : path;
    const size_t n = strnlen(base, 200);
    return strlen(name) == n + 23 && memcmp(name, base, n) == 0 &&
           name[n] == '.' && strspn(name + n + 1, "0123456789abcdef") == 16 &&
           strcmp(name + n + 17, ".allow") == 0;
}

/* Remove the exceptions of the version before, unless this one has the same. */
static void allow_remove(const char *path, const char *old)
{
    struct list_traits now;
    char *file;
    if (!old[0] || !is_allow_name(path, old) || !traits_peek(path, &now) ||
        strcmp(now.allow, old) == 0 || !(file = allow_path(path, old)))
        return;
    unlink(file);
    free(file);
}

/* The exceptions beside the list; their path, or NULL. False, with the reason
 * printed. */
static bool allow_save(const char *output, const struct text_set *allow,
                       struct list_traits *is, char **path)
{
    *path = NULL;
    is->allow[0] = '\0';
    if (!allow->n)
        return true;
    if (is_stdout(output)) {
        fail("a list with exceptions consists of two files; use -o FILE");
        return false;
    }
    allow_name(output, allow, is->allow);
    *path = allow_path(output, is->allow);
    if (!*path)
        fail("out of memory");
    return *path && file_save(*path, write_lines, allow) == YES;
}

static int save_filter(const struct urls_args *args, struct gathering *g,
                       const struct list_traits *is, struct urls_built *r)
{
    bly_filter *f;
    if (!gather_flush(g) ||
        bly_builder_finish(g->builder, thread_count(args->threads), &f))
        return fail_library();
    int status =
        traits_set(is, f) || meta_set(&args->meta, f) ? fail_library() : YES;
    if (status == YES)
        status = filter_save(f, args->output);
    bly_stats s;
    bly_stat(f, &s);
    r->made = made_of(&s);
    r->distinct = s.items_added;
    r->bytes = r->made.bytes;
    r->bits_per_entry = r->made.bits_per_key;
    r->rate = r->made.rate;
    if (status == YES && !quiet)
        warn_past_capacity(args->output, &s);
    bly_free(f);
    return status;
}

static int save_prefixes(const struct urls_args *args, struct gathering *g,
                         const struct list_traits *is, struct urls_built *r)
{
    char note[512];
    bly_sorted *s;
    traits_note(is, note);
    if (bly_sorted_new(g->prefixes, g->n, g->width, note, NULL, &s))
        return fail_library();
    const int status = file_save(args->output, write_prefixes, s);
    r->distinct = bly_sorted_items(s);
    r->bytes = bly_sorted_written_bytes(s);
    r->bits_per_entry = (double)bly_sorted_bits(s) / (double)r->distinct;
    r->rate = (double)r->distinct * exp2(-(double)g->width);
    bly_sorted_free(s);
    return status;
}

/* ------------------------------------------------------------------ running */

static bool build_fits(const struct urls_args *args, const struct list *from,
                       bool *prefixes)
{
    static const char *const standard_input[] = { "-" };
    const struct sizing *const s = &args->sizing;
    *prefixes = args->store == 1;
    if (!args->output) {
        fail("-o FILE is missing: where to write the list");
        return false;
    }
    if (*prefixes && (s->kind || s->items || s->fpr > 0 || s->bits ||
                      s->memory || s->options.n || args->keys.key_file ||
                      args->meta.note || args->meta.pairs.n)) {
        fail("--store prefixes has a size and a rate of its own, and no key; "
             "--prefix-bytes changes both");
        return false;
    }
    if (!*prefixes && args->prefix_bytes) {
        fail("--prefix-bytes is for --store prefixes; a filter takes --fpr");
        return false;
    }
    if ((args->suffixes || args->exact) && !args->domains)
        return refuse("--public-suffix and --exact are for --domains");
    return meta_check(&args->meta, false) &&
           output_works(args->output, args->json) &&
           output_spares(args->output, &args->keys.key_file, 1) &&
           output_spares(args->output, &args->suffixes, 1) &&
           (from->n ? output_spares(args->output, from->at, from->n)
                    : output_spares(args->output, standard_input, 1));
}

/* A builder for the entries; false, with the reason printed. */
static bool builder_begin(const struct urls_args *args, struct gathering *g)
{
    const struct sizing sizing = urls_sizing(&args->sizing);
    bly_spec spec = { .keying = { BLY_KEYS_TEXT, args->keys.normal.fold
                                                     ? BLY_KEYS_FOLDED
                                                     : 0 } };
    bool ok;
    if (!sizing_spec(&sizing, &spec) || !kind_guards(spec.kind, "a list"))
        return false;
    spec.secret = secret_read(args->keys.key_file, &ok);
    if (!ok)
        return false;
    if (bly_builder_new(&spec, &g->builder)) {
        fail_library();
        return false;
    }
    return true;
}

static int build_from(const struct urls_args *args, const struct list *from,
                      const struct suffixes *suffixes, struct gathering *g)
{
    struct list_reader r = { .domains = args->domains,
                             .folded = args->keys.normal.fold,
                             .digests = !g->builder,
                             .suffixes = suffixes,
                             .take = gather,
                             .ctx = g };
    struct list_traits is = { .domains = args->domains,
                              .folded = r.folded,
                              .suffix = suffixes != NULL,
                              .exact = args->exact };
    struct list_traits before = { 0 };
    char *allow = NULL;
    bool bad;
    const bool ok =
        list_read(&r, from->at, from->n, args->keys.select.skip_bad, &bad);
    list_end(&r);
    if (!ok)
        return TROUBLE;
    if (!args->domains && r.n.hosts)
        warn("%llu %s of a hosts file, an address and names; --domains makes a "
             "list of the names",
             (unsigned long long)r.n.hosts,
             r.n.hosts == 1 ? "line looks like one" : "lines look like those");
    if (!r.n.entries)
        return fail("no entries in the input");
    is.single = r.n.single != 0;
    if (!is_stdout(args->output))
        (void)traits_peek(args->output, &before);
    struct urls_built built = { .file = args->output,
                                .store = g->builder ? "filter" : "prefixes",
                                .entries_are = is.domains ? "domains" : "urls",
                                .n = r.n };
    FILE *const to = report_to(args->output);
    int status = TROUBLE;
    if (allow_save(args->output, &g->allow, &is, &allow))
        status = g->builder ? save_filter(args, g, &is, &built)
                            : save_prefixes(args, g, &is, &built);
    built.allow = allow;
    built.of_entries = built.distinct == 1 ? "entry" : "entries";
    built.of_lines = built.n.lines == 1 ? "line" : "lines";
    if (status != YES && allow && strcmp(is.allow, before.allow) != 0)
        unlink(allow); /* of a list that there is not */
    if (status == YES) {
        allow_remove(args->output, before.allow);
        if (!quiet)
            report(
                to, args->json, urls_built_fields, &built,
                "{file}: {distinct} different {of_entries} of {lines} "
                "{of_lines} "
                "({list})[; exceptions: {exceptions}{?exceptions}, in {allow}]"
                "[; rules skipped: {skipped}{?skipped}]; {store}, {bytes}, "
                "{bits_per_entry:.2} bits per entry, {rate} false "
                "positives\n");
        if (is.domains && r.n.hosts && !args->exact)
            note("%llu %s all names below %s too; --exact lists %s alone",
                 (unsigned long long)r.n.hosts,
                 r.n.hosts == 1 ? "name of a hosts file or zone covers"
                                : "names of hosts files or zones cover",
                 r.n.hosts == 1 ? "it" : "them",
                 r.n.hosts == 1 ? "it" : "them");
        if (r.n.caseless && !r.folded)
            warn("%llu rules for pages ignore case, but the list does not; use "
                 "--ignore-case, unless its URLs are written as they are asked",
                 (unsigned long long)r.n.caseless);
    }
    free(allow);
    return status == YES && bad ? TROUBLE : status;
}

int urls_verb_build(const struct urls_args *args, const struct list *operands)
{
    struct gathering *const g = calloc(1, sizeof *g);
    struct suffixes suffixes = { 0 };
    bool prefixes;
    int status = TROUBLE;
    steady_input = true;
    if (!g)
        return fail("out of memory");
    if (build_fits(args, operands, &prefixes) &&
        (!args->suffixes || suffixes_read(&suffixes, args->suffixes)) &&
        (g->width = urls_width(args->prefix_bytes)) != 0 &&
        (prefixes || builder_begin(args, g)))
        status =
            build_from(args, operands, args->suffixes ? &suffixes : NULL, g);
    suffixes_free(&suffixes);
    gather_free(g);
    free(g);
    return status;
}

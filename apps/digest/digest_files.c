/*
 * digest_files.c - digests in files: made from what a proxy wrote, and asked
 */
#include <stdlib.h>
#include <string.h>

#include "apps/digest/jobs.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

bool digest_check(struct digest_copy *copy, char *why, size_t room)
{
    const bly_foreign_spec spec = { .format = "squid" };
    bly_foreign *f;
    if (bly_foreign_open(&spec, copy->bytes, copy->nbytes, &f)) {
        snprintf(why, room, "%s", bly_error());
        return false;
    }
    bly_foreign_stat(f, BLY_WHOLE, &copy->stats);
    bly_foreign_free(f);
    return true;
}

/* --------------------------------------------------------------- building */

struct building {
    bly_foreign *f;
    uint64_t nkept;
    uint64_t nrefused; /* lines without a usable key */
};

static bool build_line(void *ctx, const struct digest_line *line,
                       bly_bytes text)
{
    struct building *const b = ctx;
    (void)text;
    if (!line->is_kept)
        return true;
    const bly_status st = bly_foreign_add(b->f, &line->key, 1, NULL, NULL);
    b->nkept += !st;
    b->nrefused += st == BLY_EINVAL;
    if (st && st != BLY_EINVAL)
        fail_library();
    return !st || st == BLY_EINVAL;
}

static int build_empty(const struct digest_counts *counts)
{
    if (counts->lines && counts->lines == counts->unknown)
        return fail("nothing could be read: not an access.log, a list of URLs "
                    "or a swap.state");
    return fail("nothing that a cache keeps; to make an empty digest, give its "
                "capacity with --items");
}

int digest_build(const struct digest_args *args, struct list *operands)
{
    if (!args->output)
        return fail("-o needs the name of the file to write");
    const struct list *const names = args->from.n ? &args->from : operands;
    if (args->from.n && operands->n)
        return fail("inputs come with --from or as operands, not both");
    if (!output_works(args->output, args->json) ||
        !output_spares(args->output, names->at, names->n))
        return TROUBLE;
    if (args->bits.n && args->fpr > 0)
        return fail("--bits and --fpr both say how large it is; give one");
    const bly_option bits = { "bits", args->bits.n
                                          ? args->bits.at[args->bits.n - 1]
                                          : NULL };
    const bly_foreign_spec spec = {
        .format = "squid",
        .items = args->items,
        .fpr = args->fpr,
        .options = &bits,
        .noptions = args->bits.n != 0,
    };
    struct building b = { 0 };
    struct digest_counts counts = { 0 };
    if (bly_foreign_new(&spec, &b.f))
        return fail_library();
    int status = digest_read(names, false, build_line, &b, &counts);
    counts.unknown += b.nrefused;
    if (status == YES && !b.nkept && !args->items)
        status = build_empty(&counts);
    if (status == YES)
        status = foreign_save(b.f, args->output);
    if (status == YES && counts.unknown && !quiet)
        warn("%llu of %llu lines were neither URLs nor lines of access.log",
             (unsigned long long)counts.unknown,
             (unsigned long long)counts.lines);
    if (status == YES && counts.cut && !quiet)
        warn("%llu URLs end in '?': the log hides query strings, and those "
             "URLs are not found; set strip_query_terms off in squid.conf",
             (unsigned long long)counts.cut);
    if (status == YES && !quiet)
        digest_tell_built(args, b.f, b.nkept, &counts);
    bly_foreign_free(b.f);
    return status;
}

/* ----------------------------------------------------------------- asking */

struct asking {
    const struct digest_args *args;
    const bly_foreign *f;
    uint64_t nasked, nmaybe, nskipped;
    bool prints;
    bool ended; /* the first answer was enough */
};

static bool ask(struct asking *a, bly_bytes key, bly_bytes text)
{
    uint64_t bit;
    if (bly_foreign_has(a->f, &key, 1, &bit, NULL)) {
        fail("'%s': %s", show_text(text.ptr, text.len), bly_error());
        return false;
    }
    const bool picked = (bit & 1) != a->args->invert;
    a->nasked++;
    a->nmaybe += bit & 1;
    if (picked && a->prints) {
        print_key(text.ptr, text.len);
        putchar('\n');
    }
    a->ended = picked && quiet;
    return !a->ended;
}

static bool ask_line(void *ctx, const struct digest_line *line, bly_bytes text)
{
    struct asking *const a = ctx;
    if (line->is_asked)
        return ask(a, line->key, text);
    a->nskipped++;
    return true;
}

static bool is_method_word(const char *word)
{
    return word[0] &&
           strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == strlen(word);
}

/* URL, or METHOD URL, and so on. */
static int ask_operands(struct asking *a, const struct list *words)
{
    bool going = true;
    for (size_t i = 1; i < words->n && going; i++) {
        const char *const word = words->at[i];
        char *pair = NULL;
        if (is_method_word(word)) {
            if (++i == words->n)
                return fail("%s: which URL?", word);
            const size_t n = strlen(word) + strlen(words->at[i]) + 2;
            pair = malloc(n);
            if (!pair)
                return fail("out of memory");
            snprintf(pair, n, "%s %s", word, words->at[i]);
        }
        const char *const text = pair ? pair : word;
        const bly_bytes key = { text, strlen(text) };
        going = ask(a, key, key);
        free(pair);
    }
    return going || a->ended ? YES : TROUBLE;
}

static int ask_report(const struct asking *a)
{
    const uint64_t picked = a->args->invert ? a->nasked - a->nmaybe : a->nmaybe;
    if (!quiet && (a->args->json || a->args->count))
        digest_tell_asked(a->args, a->nasked, a->nmaybe, a->nskipped, picked);
    return picked ? YES : NO;
}

int digest_has(const struct digest_args *args, struct list *operands)
{
    const char *const path = operands->at[0];
    const struct foreign_args squid = { .format = "squid" };
    struct foreign_file file;
    struct digest_counts counts = { 0 };
    bool reads_stdin = operands->n == 1 && args->files.n == 0;
    if (operands->n > 1 && args->files.n)
        return fail("URLs come from the command line or from --file, not both");
    for (size_t i = 0; i < args->files.n; i++)
        reads_stdin |= is_stdin(args->files.at[i]);
    if (reads_stdin && is_stdin(path))
        return fail("standard input cannot be both the digest and the URLs; "
                    "give the URLs with -f");
    if (foreign_open(path, &squid, &file) != YES)
        return TROUBLE;
    struct asking a = {
        .args = args,
        .f = file.f,
        .prints = !args->count && !args->json && !quiet,
    };
    int status = operands->n > 1
                     ? ask_operands(&a, operands)
                     : digest_read(&args->files, true, ask_line, &a, &counts);
    if (status == YES || a.ended)
        status = ask_report(&a);
    foreign_close(&file);
    return status;
}

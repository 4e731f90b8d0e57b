/*
 * has.c - which URLs or names are listed? bloomery urls has, bloomery urls show
 *
 * Lines go through the pipeline of all commands; what is printed, and the exit
 * status, are grep's. A list may be wrong about entries that it does not have,
 * so a hit is only suspected; with the full list at hand it is confirmed or
 * cleared.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apps/urls/blocklist.h"
#include "apps/urls/lists.h"
#include "apps/urls/urls.h"
#include "io/hex.h"
#include "io/files.h"
#include "io/digests.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

struct has_run {
    const struct urls_args *args;
    struct blocklist list;
    struct suffixes suffixes;
    struct text_set full; /* entries, and digests as 64 digits */
    bool confirms;
    struct input *in;
    _Atomic uint64_t nbad, nshown;
    pthread_mutex_t lock; /* of what threads ask with, and give back */
    struct has_scratch *idle;
};

struct has_scratch {
    struct asking asking;
    bly_bytes entries[BATCH];
    struct has_scratch *next;
};

struct urls_asked {
    bly_bytes text;
    const char *verdict;
    bly_bytes entry;
};

const struct field urls_asked_fields[] = {
    NAMED(struct urls_asked, "url", text, NONE,
          "the URL or name, as it was given"),
    FIELD(struct urls_asked, verdict, NONE,
          "listed (confirmed by --full), suspect (the list has it, or is "
          "wrong), or clear; bad if it is neither a URL nor a name"),
    FIELD(struct urls_asked, entry, OPTIONAL | ZERO,
          "the entry that it was found by"),
    { 0 },
};

struct urls_total {
    uint64_t asked, listed;
};

const struct field urls_total_fields[] = {
    FIELD(struct urls_total, asked, NONE, "URLs or names that were asked for"),
    FIELD(struct urls_total, listed, NONE, "of them, those that are listed"),
    { 0 },
};

/* --------------------------------------------------------------- full lists */

static void digest_text(bly_bytes entry, char out[2 * SHA256_BYTES])
{
    unsigned char sum[SHA256_BYTES];
    sum_sha256(entry.ptr, entry.len, sum);
    hex_put(sum, SHA256_BYTES, out);
}

static bool full_take(void *ctx, bly_bytes entry, enum entry_kind kind)
{
    struct text_set *const full = ctx;
    if (kind == ENTRY_ALLOWED) /* the list knows its exceptions */
        return true;
    if (kind == ENTRY_LISTED)
        return text_set_add(full, entry);
    char text[2 * SHA256_BYTES];
    hex_put(entry.ptr, SHA256_BYTES, text);
    return text_set_add(full, (bly_bytes){ text, sizeof text });
}

static bool full_read(struct has_run *h)
{
    const struct urls_args *const args = h->args;
    struct list_reader r = { .domains = h->list.is.domains,
                             .folded = h->list.is.folded,
                             .digests = true,
                             .take = full_take,
                             .ctx = &h->full };
    bool bad;
    h->confirms = args->full.n != 0;
    if (!h->confirms)
        return true;
    const bool ok = list_read(&r, args->full.at, args->full.n,
                              args->keys.select.skip_bad, &bad);
    list_end(&r);
    return ok && !bad;
}

/* Does the full list have an entry of the text? Any of them: the one that the
 * list gave may be a false alarm beside a true one. */
static bool is_confirmed(const struct has_run *h, bly_bytes text, char *room)
{
    bly_bytes entries[ENTRIES_MOST];
    const size_t n = entries_of(&h->list.is, NULL, text, room, entries);
    for (size_t i = 0; i < n; i++) {
        char digest[2 * SHA256_BYTES];
        if (text_set_has(&h->full, entries[i]))
            return true;
        digest_text(entries[i], digest);
        if (text_set_has(&h->full, (bly_bytes){ digest, sizeof digest }))
            return true;
    }
    return false;
}

static bool confirm(const struct has_run *h, const struct batch *b)
{
    struct block room = { 0 };
    for (size_t w = 0; w < BLY_BITMAP_WORDS(b->n); w++)
        for (uint64_t bits = b->picked[w]; bits; bits &= bits - 1) {
            const size_t i = 64 * w + (size_t)__builtin_ctzll(bits);
            if (!block_fit(&room, ENTRIES_ROOM(b->keys[i].len)))
                return false;
            if (!is_confirmed(h, b->keys[i], room.at))
                b->picked[w] &= ~(UINT64_C(1) << i % 64);
        }
    block_free(&room);
    return true;
}

/* ------------------------------------------------------------------ batches */

/* Name the lines that are neither a URL nor a name, the first ones. */
static void tell_lines(struct has_run *h, const struct batch *b,
                       const uint64_t *bad)
{
    for (size_t i = 0; i < b->n; i++) {
        if (!(bad[i / 64] >> i % 64 & 1))
            continue;
        h->nbad++;
        if (h->args->keys.select.skip_bad || h->nshown++ >= BAD_SHOWN)
            continue;
        const uint64_t line =
            b->block->first + (b->numbers ? b->numbers[i] : b->first + i) + 1;
        fail("%s: %s %llu: not a %s", input_name(h->in, b->block->file),
             h->in->keys ? "key" : "line", (unsigned long long)line,
             h->list.is.domains ? "name" : "URL");
    }
}

/* An object for each line. */
static bool put_objects(const struct has_run *h, const struct batch *b,
                        const uint64_t *bad, const bly_bytes *entries)
{
    struct text text;
    struct json j = { .to = text_begin(&text) };
    for (size_t i = 0; i < b->n; i++) {
        const bool listed = b->picked[i / 64] >> i % 64 & 1;
        const struct urls_asked asked = {
            .text = b->keys[i],
            .verdict = bad[i / 64] >> i % 64 & 1 ? "bad"
                       : !listed                 ? "clear"
                       : h->confirms             ? "listed"
                                                 : "suspect",
            .entry = listed ? entries[i] : (bly_bytes){ NULL, 0 },
        };
        report_object(&j, urls_asked_fields, &asked);
        json_end(&j);
    }
    char *const made = text_end(&text);
    const bool ok = made && block_put(b->text, made, strlen(made));
    free(made);
    return ok;
}

/* What to ask with: as many as threads ask at once. */
static struct has_scratch *scratch_take(struct has_run *h)
{
    pthread_mutex_lock(&h->lock);
    struct has_scratch *const s = h->idle;
    if (s)
        h->idle = s->next;
    pthread_mutex_unlock(&h->lock);
    return s ? s : calloc(1, sizeof *s);
}

static void scratch_give(struct has_run *h, struct has_scratch *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&h->lock);
    s->next = h->idle;
    h->idle = s;
    pthread_mutex_unlock(&h->lock);
}

static void scratch_free(struct has_run *h)
{
    while (h->idle) {
        struct has_scratch *const s = h->idle;
        h->idle = s->next;
        asking_free(&s->asking);
        free(s);
    }
}

static bly_status has_lines(struct job *job, struct batch *b)
{
    struct has_run *const h = job->ctx;
    uint64_t bad[BLY_BITMAP_WORDS(BATCH)];
    struct has_scratch *const s = scratch_take(h);
    bly_bytes *const entries = s && job->writes ? s->entries : NULL;
    bool ok = s &&
              blocklist_ask(&h->list, &s->asking,
                            h->args->suffixes ? &h->suffixes : NULL, b->keys,
                            b->n, b->picked, bad, entries) &&
              (!h->confirms || confirm(h, b));
    if (ok) {
        tell_lines(h, b, bad);
        if (job->writes)
            ok = put_objects(h, b, bad, entries);
        if (h->args->invert && !job->writes) {
            batch_invert(b);
            /* What is not a URL is neither listed nor clear. */
            for (size_t w = 0; w < BLY_BITMAP_WORDS(b->n); w++)
                b->picked[w] &= ~bad[w];
        }
    }
    scratch_give(h, s);
    if (!ok)
        b->why = "out of memory";
    return ok ? BLY_OK : BLY_ENOMEM;
}

/* ------------------------------------------------------------------ running */

static bool list_fits(struct has_run *h, const char *path)
{
    const struct urls_args *const args = h->args;
    struct list_traits *const is = &h->list.is;
    if (!is->known)
        is->domains = args->domains;
    if (args->domains && !is->domains) {
        fail("%s: a list of URLs; leave out --domains", path);
        return false;
    }
    if (args->suffixes && (!is->domains || !is->suffix)) {
        fail("%s: may have entries that are public suffixes, which would be "
             "missed; ask without --public-suffix, or build it with it",
             path);
        return false;
    }
    return true;
}

static int has_end(const struct has_run *h, const struct job *job)
{
    const bool skips = h->args->keys.select.skip_bad;
    const unsigned long long nbad = h->nbad;
    const struct urls_total total = { job->nkeys, job->npicked };
    if (nbad && !skips)
        fail("%llu of the lines %s not %s; --skip-bad leaves %s out", nbad,
             nbad == 1 ? "is" : "are", h->list.is.domains ? "a name" : "a URL",
             nbad == 1 ? "it" : "them");
    else if (nbad)
        warn("%llu of the lines %s not %s; left out", nbad,
             nbad == 1 ? "is" : "are", h->list.is.domains ? "a name" : "a URL");
    if (h->args->count && !quiet && h->args->json)
        report(stdout, true, urls_total_fields, &total, NULL);
    else if (h->args->count && !quiet)
        printf("%llu\n", (unsigned long long)job->npicked);
    return quiet && job->npicked                                ? YES
           : job->trouble || h->in->trouble || (nbad && !skips) ? TROUBLE
           : job->npicked                                       ? YES
                                                                : NO;
}

int urls_verb_has(const struct urls_args *args, const struct list *operands)
{
    struct has_run h = { .args = args, .lock = PTHREAD_MUTEX_INITIALIZER };
    struct input in;
    char why[512];
    bool ok;
    const char *const path = operands->at[0];
    const unsigned char *const secret = secret_read(args->keys.key_file, &ok);
    struct keys keys = args->keys;
    keys.select.crlf = !keys.nul; /* neither is a part of any URL */
    if (!ok || !keys_input(&keys, operands, &in))
        return TROUBLE;
    int status = TROUBLE;
    in.numbered = true;
    h.in = &in;
    struct job job = {
        .batch = has_lines,
        .prints = !quiet && !args->count && !args->json,
        .writes = !quiet && !args->count && args->json,
        .first_only = quiet,
        .goes_on = true,
        .terminator = args->keys.nul ? '\0' : '\n',
        .nthreads = thread_count(args->threads),
        .path = path,
        .ctx = &h,
    };
    if (!blocklist_open(&h.list, path, secret, why, sizeof why))
        fail("%s", why);
    else if (list_fits(&h, path) && full_read(&h) &&
             (!args->suffixes || suffixes_read(&h.suffixes, args->suffixes)))
        status =
            pipeline_run(&job, &in) ? fail("%s", job.error) : has_end(&h, &job);
    blocklist_close(&h.list);
    suffixes_free(&h.suffixes);
    text_set_free(&h.full);
    scratch_free(&h);
    input_close(&in);
    return status;
}

/* --------------------------------------------------------------------- show */

struct urls_shown {
    bly_bytes text, canonical, entry;
    char prefix[17], digest[2 * SHA256_BYTES + 1];
};

const struct field urls_shown_fields[] = {
    NAMED(struct urls_shown, "url", text, NONE, "as it was given"),
    FIELD(struct urls_shown, canonical, NONE, "its canonical form"),
    FIELD(struct urls_shown, entry, NONE,
          "an entry that a list may hold for it"),
    NAMED(struct urls_shown, "sha256", digest, NONE, "SHA-256 of the entry"),
    { 0 },
};

struct showing {
    const struct urls_args *args;
    struct suffixes suffixes;
    struct block room;
    uint64_t nbad, n;
    bool failed;
};

static bool show_one(void *ctx, bly_bytes text)
{
    struct showing *const s = ctx;
    const struct list_traits is = { .domains = s->args->domains };
    bly_bytes entries[ENTRIES_MOST];
    s->failed = !block_fit(&s->room, ENTRIES_ROOM(text.len));
    if (s->failed)
        return false;
    const size_t n = entries_of(&is, s->args->suffixes ? &s->suffixes : NULL,
                                text, s->room.at, entries);
    if (!n) {
        s->nbad++;
        fail("'%s': not a %s", show_text(text.ptr, text.len),
             is.domains ? "name" : "URL");
        return true;
    }
    struct urls_shown shown = { .text = text, .canonical = entries[0] };
    if (!is.domains) { /* the scheme stands before it */
        shown.canonical.ptr = s->room.at;
        shown.canonical.len +=
            (size_t)((const char *)entries[0].ptr - s->room.at);
    }
    if (!s->args->json && !quiet) {
        print_key(shown.canonical.ptr, shown.canonical.len);
        print_key_end(false);
    }
    for (size_t i = 0; i < n && !quiet; i++) {
        shown.entry = entries[i];
        digest_text(entries[i], shown.digest);
        if (s->args->json) {
            report(stdout, true, urls_shown_fields, &shown, NULL);
            continue;
        }
        printf("  %.8s  ", shown.digest);
        print_key(entries[i].ptr, entries[i].len);
        print_key_end(false);
    }
    s->n++;
    return true;
}

int urls_verb_show(const struct urls_args *args, const struct list *operands)
{
    struct showing s = { .args = args };
    struct input in;
    if (operands->n && args->keys.files.n)
        return fail("URLs come from the command line or from --file, not both");
    if (args->suffixes && !suffixes_read(&s.suffixes, args->suffixes))
        return TROUBLE;
    if (operands->n && !(operands->n == 1 && operand_is_stdin(operands, 0)))
        input_keys(&in, operands->at, operands->n);
    else
        input_files(&in, args->keys.files.at, args->keys.files.n,
                    args->keys.nul);
    in.normal.no_cr = true;
    const bool ok = input_each(&in, show_one, &s);
    if (!ok)
        fail("%s", s.failed ? "out of memory" : in.error);
    input_close(&in);
    suffixes_free(&s.suffixes);
    block_free(&s.room);
    return !ok || s.nbad ? TROUBLE : s.n ? YES : NO;
}

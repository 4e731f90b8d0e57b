/*
 * passwords_check.c - bloomery passwords check: which of these are leaked?
 *
 * Passwords come from a terminal, unseen, or from a pipe, a line each, and stay
 * in the vault; what is printed of them is the number of the line. Hashes are
 * no secret, so they take the way of all keys, through the pipeline.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "apps/passwords/mirror.h"
#include "apps/passwords/vault.h"
#include "io/filters.h"
#include "io/files.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

struct asking {
    const struct passwords_args *args;
    const bly_filter *f;
    struct mirror mirror;
    unsigned which;
    bool exact; /* there is a mirror */
    bool terminal;
    uint64_t nasked, npicked;
    double rate;
};

struct verdict {
    uint64_t line;
    bool maybe;
    const uint64_t *count; /* NULL: nobody looked */
    uint64_t seen;
};

const struct field verdict_fields[] = {
    FIELD(struct verdict, line, NONE, "the line of the password, from 1"),
    FIELD(struct verdict, maybe, NONE,
          "whether it is in the list, or, without --mirror, may be"),
    FIELD(struct verdict, count, MAYBE,
          "how often it was seen, with --mirror; 0: never"),
    { 0 },
};

struct checked {
    uint64_t passwords, picked;
    double rate;
};

const struct field checked_fields[] = {
    FIELD(struct checked, passwords, NONE, "how many were asked for"),
    FIELD(struct checked, picked, NONE,
          "how many of them may be in the list; with --invert: are not"),
    FIELD(struct checked, rate, RATE | MAYBE,
          "of passwords that are not in it and are taken for ones that are"),
    { 0 },
};

/* ------------------------------------------------------------------ telling */

static void tell_verdict(const struct asking *a, const struct verdict *v)
{
    if (quiet || a->args->count)
        return;
    if (a->args->json)
        report(stdout, true, verdict_fields, v, "");
    else if (a->terminal)
        report(stdout, false, verdict_fields, v,
               v->count   ? v->maybe ? "leaked: seen {count} times\n"
                                     : "not in the list\n"
               : v->maybe ? "leaked, or taken for it by chance: choose "
                            "another\n"
                          : "not in the list\n");
    else
        report(stdout, false, verdict_fields, v,
               v->maybe ? "line {line}: in the list[, seen {count} times]\n"
                        : "line {line}: not in the list\n");
    if (a->terminal)
        fflush(stdout);
}

static int tell_end(const struct asking *a)
{
    if (a->args->count && !quiet) {
        const struct checked all = { a->nasked, a->npicked,
                                     a->exact ? NAN : a->rate };
        report(stdout, a->args->json, checked_fields, &all, "{picked}\n");
    }
    return a->npicked ? YES : NO;
}

/* ---------------------------------------------------------------- passwords */

static bool confirm(const struct asking *a, const unsigned char *hash,
                    struct verdict *v)
{
    char why[256];
    v->count = &v->seen;
    if (!v->maybe)
        return true;
    if (!mirror_count(&a->mirror, hash, &v->seen, why, sizeof why))
        return refuse("%s: %s", a->mirror.path, why);
    v->maybe = v->seen > 0;
    return true;
}

/* Ask for n hashes, those of the last n lines. */
static bool ask_batch(struct asking *a, unsigned char (*hashes)[HASH_MOST],
                      size_t n)
{
    bly_bytes keys[BATCH] = { { 0 } };
    uint64_t maybe[BLY_BITMAP_WORDS(BATCH)] = { 0 };
    for (size_t i = 0; i < n; i++)
        keys[i] = (bly_bytes){ hashes[i], password_hashes[a->which].nbytes };
    bly_has_keys(a->f, keys, n, maybe);
    if (bly_damage(a->f))
        return refuse_library();
    for (size_t i = 0; i < n; i++) {
        struct verdict v = { .line = a->nasked + i + 1,
                             .maybe = maybe[i / 64] >> i % 64 & 1 };
        if (a->exact && !confirm(a, hashes[i], &v))
            return false;
        const bool picked = v.maybe != a->args->invert;
        a->npicked += picked;
        if (picked || a->terminal)
            tell_verdict(a, &v);
    }
    a->nasked += n;
    return true;
}

static void prompt(const struct asking *a)
{
    static const char text[] = "Password: ";
    if (a->terminal && write(STDERR_FILENO, text, sizeof text - 1) < 0)
        return;
}

/* Lines until the end; on a terminal, until an empty one. */
static bool ask_lines(struct asking *a, struct vault *v)
{
    unsigned char hashes[BATCH][HASH_MOST];
    size_t n = 0;
    for (;;) {
        const char *line;
        size_t len;
        prompt(a);
        const int got = vault_line(v, &line, &len);
        if (got < 0)
            return false;
        if (got == 0 || (a->terminal && len == 0))
            return n == 0 || ask_batch(a, hashes, n);
        if (!hash_password(a->which, line, len, v->spare, v->nspare,
                           hashes[n++]))
            return refuse("line %llu is not UTF-8, which NTLM needs",
                          (unsigned long long)(a->nasked + n));
        if (n == BATCH || !vault_ready(v)) {
            if (!ask_batch(a, hashes, n))
                return false;
            n = 0;
        }
        if (quiet && a->npicked)
            return true;
    }
}

static int check_passwords(struct asking *a)
{
    struct vault v;
    a->terminal = isatty(STDIN_FILENO);
    if (a->terminal && a->args->count)
        return fail("--count is for passwords from a file or a pipe");
    if (!vault_open(&v, STDIN_FILENO, a->args->keys.nul ? '\0' : '\n'))
        return TROUBLE;
    if (a->terminal)
        echo_off(STDIN_FILENO);
    const bool ok = ask_lines(a, &v);
    echo_on();
    vault_close(&v);
    return ok ? tell_end(a) : TROUBLE;
}

/* ------------------------------------------------------------------- hashes */

static bly_status hashes_batch(struct job *job, struct batch *b)
{
    struct asking *const a = job->ctx;
    bly_has_hashes(a->f, b->hashes, b->n, b->picked);
    if (bly_damage(a->f))
        return bly_damage(a->f);
    for (size_t i = 0; i < b->n && a->exact; i++) {
        char why[256];
        uint64_t seen;
        if (!(b->picked[i / 64] >> i % 64 & 1))
            continue;
        if (!mirror_count(&a->mirror, b->keys[i].ptr, &seen, why, sizeof why)) {
            b->why = "the mirror cannot be read";
            return BLY_EIO;
        }
        if (!seen)
            b->picked[i / 64] &= ~(UINT64_C(1) << i % 64);
    }
    if (a->args->invert)
        batch_invert(b);
    return BLY_OK;
}

static int check_hashes(struct asking *a, const struct list *files)
{
    struct input in;
    struct list_form form = { .which = a->which };
    struct job job = { .hasher = bly_hasher_of(a->f),
                       .batch = hashes_batch,
                       .prints = !quiet && !a->args->count,
                       .first_only = quiet,
                       .goes_on = true,
                       .terminator = '\n',
                       .nthreads = thread_count(a->args->threads),
                       .path = a->mirror.path,
                       .ctx = a };
    const struct keys keys = passwords_keys(a->args);
    if (!keys_files(&keys, files->at, files->n, &in))
        return TROUBLE;
    const bool ok =
        picker_make(&in, list_key, &form) && pipeline_run(&job, &in) == BLY_OK;
    if (!ok)
        fail("%s", job.error);
    input_close(&in);
    a->nasked = job.nkeys;
    a->npicked = job.npicked;
    return ok && !job.trouble ? tell_end(a) : (tell_end(a), TROUBLE);
}

/* --------------------------------------------------------------------- both */

/* Which hash is the filter of? */
static bool find_hash(struct asking *a, const char *path)
{
    bly_bytes value;
    if (was_given(&a->args->list)) {
        a->which = a->args->list;
        return true;
    }
    if (!bly_pair_of(a->f, HASHES_PAIR, &value))
        return refuse(
            "%s: does not say which hash of passwords it holds; use a "
            "filter of bloomery passwords build, or --list sha1 or "
            "ntlm for one whose keys are the bytes of hashes",
            path);
    char name[16];
    snprintf(name, sizeof name, "%.*s", (int)(value.len & 15),
             (const char *)value.ptr);
    a->which = hash_named(name);
    return a->which != NHASHES;
}

int passwords_check(const struct passwords_args *args,
                    const struct list *operands)
{
    const char *const path = operands->at[0];
    const struct list files = { operands->at + 1, operands->n - 1, 0 };
    if (files.n && !args->hashes)
        return fail(
            "passwords are read from the terminal or from standard input, "
            "never from operands; for files of hashes, use --hashes");
    if (args->hashes && args->json && !args->count)
        return fail("--hashes prints the lines themselves; --json goes with "
                    "--count there");
    bly_filter *const f = filter_to_ask(path, args->keys.key_file,
                                        &(struct checking){ 0 }, BLY_CAN(HAS));
    if (!f)
        return TROUBLE;
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    if (kind_unreliable(&kind)) {
        bly_free(f);
        return fail("%s: a %s filter would let leaked passwords through: %s",
                    path, kind.name, kind_unreliable(&kind));
    }
    bly_stats s;
    bly_peek(f, &s);
    struct asking a = { .args = args,
                        .f = f,
                        .exact = args->mirror != NULL,
                        .mirror = { .fd = -1 },
                        .rate = s.fpr_at_capacity };
    int status = TROUBLE;
    if (find_hash(&a, path) &&
        (!a.exact || mirror_open(&a.mirror, args->mirror, a.which)))
        status = args->hashes ? check_hashes(&a, &files) : check_passwords(&a);
    mirror_close(&a.mirror);
    bly_free(f);
    return status;
}

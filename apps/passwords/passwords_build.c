/*
 * passwords_build.c - bloomery passwords build
 */
#include <stdlib.h>
#include <string.h>

#include "apps/passwords/passwords.h"
#include "io/filters.h"
#include "io/files.h"
#include "io/folders.h"
#include "io/foreign_files.h"
#include "io/paths.h"
#include "io/source.h"
#include "report/say.h"
#include "report/show.h"

#define PASSWORDS_FPR 0.001

struct keys passwords_keys(const struct passwords_args *args)
{
    struct keys keys = args->keys;
    keys.select.crlf |= !keys.nul;
    return keys;
}

/* Keycloak's form: words in lower case, as they are. */
static int build_keycloak(const struct passwords_args *args, struct input *in)
{
    const struct foreign_args what = { args->format, args->sizing.options };
    bly_foreign_spec spec = { .items = args->sizing.items,
                              .fpr = args->sizing.fpr > 0 ? args->sizing.fpr
                                                          : PASSWORDS_FPR,
                              .max_bytes = args->max_memory };
    struct job job = { .goes_on = true };
    if (!foreign_spec(&what, &spec) || !picker_make(in, lower_key, NULL))
        return TROUBLE;
    bly_foreign *const f =
        foreign_build(&spec, in, NULL, NULL, spec.items != 0, &job);
    if (!f)
        return TROUBLE;
    FILE *const to = report_to(args->output);
    const int status = foreign_save(f, args->output);
    if (status == YES && !quiet)
        foreign_report(to, args->json, args->output, &job, f);
    bly_foreign_free(f);
    return job.trouble ? TROUBLE : status;
}

static int build_filter(const struct passwords_args *args, unsigned which,
                        struct input *in)
{
    struct list_form form = { .which = which,
                              .words = args->words,
                              .min_count = args->min_count };
    bly_spec spec = { .keying = { BLY_KEYS_BYTES, 0 },
                      .max_bytes = args->max_memory,
                      .spill = args->spill };
    struct job job = { .goes_on = true,
                       .nthreads = thread_count(args->threads) };
    bool ok, estimated;
    if (!sizing_spec(&args->sizing, &spec) ||
        !kind_guards(spec.kind, "a list of passwords"))
        return TROUBLE;
    if (spec.fpr <= 0 && !spec.bits)
        spec.fpr = PASSWORDS_FPR;
    spec.secret = secret_read(args->keys.key_file, &ok);
    if (!ok || !picker_make(in, list_key, &form))
        return TROUBLE;
    bly_filter *const f = built_filter(&spec, in, &job, &estimated);
    if (!f)
        return TROUBLE;
    if (bly_set_pair(f, HASHES_PAIR, password_hashes[which].name)) {
        bly_free(f);
        return fail_library();
    }
    bly_stats s;
    const struct building how = { args->output, NULL, args->json };
    const int status = built_save(f, &how, &job, 0, estimated, &s);
    if (status == YES && form.nrare)
        note("%llu lines left out because of their count",
             (unsigned long long)form.nrare);
    return job.trouble ? TROUBLE : status;
}

/* A list in range files has one for each beginning: 16^5 of them. If some are
 * not there, whatever is in them would be taken for a good password, so the
 * first is named. */
static bool ranges_told(const struct list *files)
{
    enum { RANGES = 1 << 4 * PREFIX_DIGITS };
    unsigned char *const there = calloc(RANGES / 8, 1);
    unsigned n = 0, first = 0;
    if (!there)
        return !fail("out of memory");
    for (size_t i = 0; i < files->n; i++) {
        char prefix[PREFIX_DIGITS + 1] = "";
        if (!range_prefix(files->at[i], prefix))
            continue;
        const unsigned at = (unsigned)strtoul(prefix, NULL, 16);
        n += !(there[at / 8] >> at % 8 & 1);
        there[at / 8] |= (unsigned char)(1u << at % 8);
    }
    while (first < RANGES && there[first / 8] >> first % 8 & 1)
        first++;
    if (n && n < RANGES)
        warn("%u of %u range files are there; passwords in the others are not "
             "in the filter; the first that is missing is %05X",
             n, (unsigned)RANGES, first);
    free(there);
    return true;
}

/* Do the options go together? */
static bool build_fits(const struct passwords_args *args)
{
    if (!args->output)
        fail("-o FILE is missing: where to write the filter");
    else if (args->format && strcmp(args->format, "guava") != 0)
        fail("--format %s: passwords can be built for Keycloak only; use "
             "--format guava, or bloomery build --format",
             show_name(args->format));
    else if (args->format && !args->words)
        fail("--format guava takes passwords, not hashes of them, since "
             "Keycloak asks for those; use --words and a list of words");
    else if (args->format && (args->sizing.kind || args->keys.key_file))
        fail("--format guava has a form of its own; leave out --kind and "
             "--key-file");
    else if (args->words && args->min_count)
        fail("--min-count needs a list with counts; words have none");
    else if (args->spill && !args->max_memory)
        fail("--spill needs --max-memory: how much to keep in memory");
    else
        return output_works(args->output, args->json);
    return false;
}

int passwords_build(const struct passwords_args *args,
                    const struct list *operands)
{
    static const char *const standard_input[] = { "-" };
    const unsigned which = args->list;
    const struct keys keys = passwords_keys(args);
    struct list files = { 0 };
    struct input in;
    steady_input = true;
    if (!build_fits(args) ||
        !output_spares(args->output, &args->keys.key_file, 1) ||
        !(operands->n ? output_spares(args->output, operands->at, operands->n)
                      : output_spares(args->output, standard_input, 1)) ||
        !files_named(operands, true, NULL, &files))
        return TROUBLE;
    int status = TROUBLE;
    if (operands->n && !files.n)
        fail("there is no file in %s", show_name(operands->at[0]));
    else if ((args->words || ranges_told(&files)) &&
             keys_files(&keys, files.at, files.n, &in)) {
        status = args->format ? build_keycloak(args, &in)
                              : build_filter(args, which, &in);
        input_close(&in);
    }
    files_free(&files);
    return status;
}

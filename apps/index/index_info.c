/*
 * index_info.c - what an index has, and several as one
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/index/index_catalog.h"
#include "apps/index/index_job.h"
#include "base/clock.h"
#include "io/files.h"
#include "io/paths.h"
#include "report/say.h"

static int info_one(const char *path, bool json)
{
    struct index_class_told classes[BLY_INDEX_CLASSES_MOST];
    bly_index_class_stats cs[BLY_INDEX_CLASSES_MOST];
    struct index_settings set = { 0 };
    struct catalog c = { 0 };
    bly_index_stats stats;
    bly_index *x;
    size_t n = 0;
    int status = TROUBLE;
    if (bly_index_map(path, NULL, &x))
        return fail_library();
    bly_index_stat(x, &stats);
    if (settings_read(&set, x, path) && catalog_read(&c, x)) {
        struct index_told told = {
            .file = path,
            .files = c.nfiles,
            .documents = stats.documents - stats.dropped,
            .dropped = stats.dropped,
            .nbytes = stats.nbytes,
            .blob_bytes = stats.blob_bytes,
            .segments = stats.segments,
            .groups = stats.groups,
            .folds = set.terms.fold,
            .field = set.fields.jsonl ? set.fields.jsonl
                     : set.fields.csv ? set.fields.csv
                                      : set.fields.field,
            .id = set.fields.id,
            .roots = (const char *const *)set.roots,
            .nroots = set.nroots,
            .classes = classes,
        };
        for (size_t i = 0; i < c.nfiles; i++) {
            const struct known_file *const f = &c.files[i];
            told.binary += !!(f->flags & BLOCK_BINARY);
            told.unread += !!(f->flags & BLOCK_UNREAD);
            for (size_t j = 0; j < f->nblocks; j++)
                told.text += f->blocks[j].len;
        }
        while (n < BLY_INDEX_CLASSES_MOST && bly_index_class_at(x, n, &cs[n])) {
            classes[n] = (struct index_class_told){
                .name = cs[n].name,
                .rate = cs[n].fpr,
                .expected = cs[n].expected,
                .rows = cs[n].k,
                .terms = cs[n].terms,
                .nbytes = cs[n].row_bytes,
            };
            n++;
        }
        told.nclasses = n;
        told.share = told.text ? (double)told.nbytes / (double)told.text : NAN;
        status = YES;
        report(stdout, json, index_told_fields, &told,
               "{file}: {files file/s}, {documents block/s}, {text} of text\n"
               "  index      {bytes}[, {share} of the text]\n"
               "[  field      {field}[, named by {id}]\n]"
               "[  words and grams fold case: {?folds}yes\n]"
               "[  left out   {?binary}{binary} binary\n]"
               "[  unread     {?unread}{unread}, searched without the index\n]"
               "[  dropped    {?dropped}{dropped block/s}, forgotten at the "
               "next compaction\n]"
               "  segments   {segments}\n");
        for (size_t i = 0; i < n && !json; i++)
            printf("  %-10s %.4g promised, %.4g built; %u rows per term, %llu "
                   "terms, %llu bytes\n",
                   classes[i].name, classes[i].rate, classes[i].expected,
                   classes[i].rows, (unsigned long long)classes[i].terms,
                   (unsigned long long)classes[i].nbytes);
        for (size_t i = 0; i < set.nroots && !json; i++)
            printf("  of         %s\n", set.roots[i]);
        if (bly_index_verify(x))
            status = fail_library();
        else if (c.ndamaged)
            status = fail("%s: %llu blocks cannot be read", path,
                          (unsigned long long)c.ndamaged);
    }
    catalog_free(&c);
    settings_free(&set);
    bly_index_free(x);
    return status;
}

int index_info(const struct index_args *args, const struct list *operands)
{
    int status = YES;
    for (size_t i = 0; i < operands->n; i++)
        if (info_one(operands->at[i], args->json) != YES)
            status = TROUBLE;
    return status;
}

/* The settings of one more; what they do not share is an error. */
static bool settings_join(struct index_settings *to,
                          const struct index_settings *from, const char *path)
{
    if (memcmp(&to->terms, &from->terms, sizeof to->terms) != 0 ||
        !fields_same(&to->fields, &from->fields) ||
        to->binary != from->binary) {
        fail("%s: built with other options than the first, and cannot be "
             "merged with it",
             path);
        return false;
    }
    if (strcmp(to->folder, from->folder) != 0)
        for (size_t i = 0; i < from->nroots; i++)
            if (from->roots[i][0] != '/') {
                fail("%s: has relative names, and was built in %s, not in %s",
                     path, from->folder, to->folder);
                return false;
            }
    for (size_t i = 0; i < from->nroots; i++)
        if (!settings_add(to, from->roots[i])) {
            fail("out of memory");
            return false;
        }
    return true;
}

int index_merge(const struct index_args *args, const struct list *operands)
{
    const double start = clock_seconds();
    struct index_settings set = { 0 };
    bly_index_builder *b = NULL;
    bly_index_class classes[BLY_INDEX_CLASSES_MOST];
    bly_index_class_stats cs[BLY_INDEX_CLASSES_MOST];
    bool ok = true;
    if (!args->output)
        return fail("-o FILE is needed: where the index goes");
    if (!output_spares(args->output, operands->at, operands->n))
        return TROUBLE;
    unsigned parts = 0;
    for (size_t i = 0; ok && i < operands->n; i++) {
        struct index_settings one = { 0 };
        bly_index *x;
        if (bly_index_map(operands->at[i], NULL, &x)) {
            ok = fail_library() == YES;
            break;
        }
        ok = settings_read(&one, x, operands->at[i]);
        parts += ok && one.nparts;
        if (ok && i == 0) {
            bly_index_stats stats;
            size_t n = 0;
            bly_index_stat(x, &stats);
            while (n < BLY_INDEX_CLASSES_MOST &&
                   bly_index_class_at(x, n, &cs[n])) {
                classes[n] = (bly_index_class){ cs[n].name, cs[n].fpr };
                n++;
            }
            const bly_index_spec spec = { .classes = classes,
                                          .nclasses = n,
                                          .seed = stats.seed,
                                          .wait = wait_for_lock };
            set = one;
            one = (struct index_settings){ 0 };
            if (bly_index_builder_new(args->output, &spec, &b))
                ok = fail_library() == YES;
        } else if (ok) {
            ok = settings_join(&set, &one, operands->at[i]);
        }
        if (ok && bly_index_builder_merge(b, x, NULL))
            ok = fail_library() == YES;
        settings_free(&one);
        bly_index_free(x);
    }
    /* All parts together are the whole again. */
    if (ok && parts && parts == operands->n && parts == set.nparts)
        set.part = set.nparts = 0;
    else if (ok && parts)
        ok = fail("these are not all parts of one index: merge all %u of them",
                  set.nparts) == YES;
    ok = ok && settings_keep(&set, b);
    if (ok && bly_index_builder_commit(b))
        ok = fail_library() == YES;
    settings_free(&set);
    bly_index_builder_free(b);
    if (!ok)
        return TROUBLE;
    bly_index *x;
    bly_index_stats stats;
    if (bly_index_map(args->output, NULL, &x))
        return fail_library();
    bly_index_stat(x, &stats);
    const struct index_built built = {
        .file = args->output,
        .all_documents = stats.documents - stats.dropped,
        .nbytes = stats.nbytes,
        .share = NAN,
        .seconds = clock_seconds() - start,
    };
    bly_index_free(x);
    if (!quiet)
        report(stdout, args->json, index_built_fields, &built,
               "{file}: {all_documents block/s}, index {bytes}\n");
    return YES;
}

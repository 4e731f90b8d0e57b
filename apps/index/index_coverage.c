/*
 * index_coverage.c - which documents have most of a question's terms?
 *
 * A question is a file of sequences, or of text, and its terms are cut as those
 * of the documents were. A document that has a share C of them for certain is
 * never missing; one that has fewer may appear, the less often the more terms
 * there are: of n terms that it lacks, a share p is "maybe" by chance, give or
 * take sqrt(p (1 - p) / n).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/index/index_catalog.h"
#include "apps/index/index_coverage.h"
#include "report/say.h"

struct coverage_answer {
    const char *file;
    double share;
};

static int by_share(const void *a, const void *b)
{
    const struct coverage_answer *const x = a, *const y = b;
    return x->share > y->share   ? -1
           : x->share < y->share ? 1
                                 : strcmp(x->file, y->file);
}

/* The terms of a file, or of a text. False, with the reason printed. */
static bool terms_of(struct terms *t, const char *path, const char *text)
{
    bool ok = true;
    terms_begin(t);
    if (text) {
        ok = terms_add(t, text, strlen(text)) && terms_add(t, "\n", 1);
    } else {
        struct text_file *const f = text_file_open(path, 0);
        const size_t room = (size_t)1 << 20;
        char *buf = malloc(room);
        size_t n = 0;
        ptrdiff_t got = 1;
        if (!f || !buf) {
            fail_path(path, f ? ENOMEM : errno);
            text_file_close(f);
            free(buf);
            return false;
        }
        while (ok && got > 0) {
            got = text_file_read(f, buf + n, room - n);
            n += got > 0 ? (size_t)got : 0;
            /* Words are cut at line ends; a longer line is cut anywhere. */
            const char *const end = memrchr(buf, '\n', n);
            const size_t ready = got <= 0    ? n
                                 : end       ? (size_t)(end - buf) + 1
                                 : n == room ? n
                                             : 0;
            ok = terms_add(t, buf, ready);
            memmove(buf, buf + ready, n - ready);
            n -= ready;
        }
        if (got < 0)
            fail("%s: %s", path, text_file_error(f));
        text_file_close(f);
        free(buf);
        if (got < 0)
            return false;
    }
    if (!ok)
        fail("out of memory");
    return ok;
}

/* Ask one index for one question; print what has enough. */
static bool ask_one(const bly_index *x, const struct index_settings *set,
                    const struct catalog *c, struct terms *t,
                    const struct index_args *a, const char *query, bool *found)
{
    bly_index_terms given[TERM_CLASSES];
    const size_t ndocs = (size_t)bly_index_documents(x);
    uint32_t *const counts = calloc(ndocs + 1, sizeof *counts);
    struct coverage_answer *const answers =
        calloc(c->nfiles + 1, sizeof *answers);
    size_t n = 0;
    bool ok = counts && answers && terms_done(t, given);
    if (!ok)
        fail("out of memory");
    /* Of text, words say more than grams. */
    const unsigned which =
        set->terms.has[TERM_GRAMS] && set->terms.has[TERM_WORDS] ? 1 : 0;
    if (ok && given[which].n == 0) {
        fail("%s: nothing to ask for: it has no %s", query,
             set->terms.has[TERM_KMERS] ? "sequence of --kmers bases"
                                        : "words");
        ok = false;
    }
    if (ok && bly_index_coverage(x, which, given[which].hashes, given[which].n,
                                 counts)) {
        fail_library();
        ok = false;
    }
    for (size_t i = 0; ok && i < c->nfiles; i++) {
        uint32_t most = 0;
        for (size_t j = 0; j < c->files[i].nblocks; j++) {
            const uint32_t count = counts[c->files[i].blocks[j].document];
            most = count > most ? count : most;
        }
        const double share = (double)most / (double)given[which].n;
        if (share >= a->coverage)
            answers[n++] = (struct coverage_answer){ c->files[i].name, share };
    }
    if (n)
        qsort(answers, n, sizeof *answers, by_share);
    for (size_t i = 0; ok && i < n && !quiet; i++) {
        const struct index_covered told = { answers[i].file, query,
                                            answers[i].share, given[which].n };
        if (a->json)
            report(stdout, true, index_covered_fields, &told, "");
        else
            printf("%.4f\t%s\t%s\n", told.share, told.file, query);
    }
    *found |= n > 0;
    free(counts);
    free(answers);
    return ok;
}

int index_coverage(const struct index_args *args, const struct list *operands)
{
    const size_t nfiles = args->pattern_files.n;
    const size_t nindexes = nfiles ? operands->n : 1;
    bool found = false, ok = true;
    if (args->coverage > 1)
        return fail("--coverage takes a share from 0 to 1, such as 0.8");
    if (!nfiles && operands->n < 2)
        return fail("-f FILE is needed, or a text behind the index: what to "
                    "ask for");
    for (size_t i = 0; ok && i < nindexes; i++) {
        struct index_settings set = { 0 };
        struct catalog c = { 0 };
        bly_index *x = NULL;
        if (bly_index_map(operands->at[i], NULL, &x))
            return fail_library();
        ok = settings_read(&set, x, operands->at[i]) && catalog_read(&c, x);
        struct terms *const t =
            ok ? terms_new(bly_index_hasher(x), &set.terms) : NULL;
        if (ok && !t)
            ok = fail("out of memory") == YES;
        for (size_t j = 0; ok && j < nfiles; j++)
            ok = terms_of(t, args->pattern_files.at[j], NULL) &&
                 ask_one(x, &set, &c, t, args, args->pattern_files.at[j],
                         &found);
        for (size_t j = nindexes; ok && !nfiles && j < operands->n; j++)
            ok = terms_of(t, NULL, operands->at[j]) &&
                 ask_one(x, &set, &c, t, args, operands->at[j], &found);
        if (ok && bly_index_damage(x))
            warn("%s: damaged in part; shares may be too high",
                 operands->at[i]);
        terms_free(t);
        catalog_free(&c);
        settings_free(&set);
        bly_index_free(x);
    }
    return !ok ? TROUBLE : found ? YES : NO;
}

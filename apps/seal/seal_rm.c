/*
 * seal_rm.c - bloomery seal rm, and old versions that go when a file is added
 * again
 *
 * First the index goes without them, and then the documents: whenever a run
 * ends, no search finds a document that is not there. Those that a killed run
 * leaves behind are found by no search.
 *
 * Numbers of documents tell which is newer, and are counted from all that were
 * ever added. So an index says how many were removed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/seal/seal.h"
#include "base/grow.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

/* ------------------------------------------------------------------ removing
 */

bool index_drop(struct sealed_index *x, const bool *drops, size_t n,
                struct sealed_ids *gone)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (drops[i] && !GROW(&gone->at, &gone->room, gone->n + 1))
            return refuse("out of memory");
        else if (drops[i])
            memcpy(gone->at[gone->n++].id, x->entries[i].id, DOCUMENT_ID_BYTES);
    for (size_t i = 0; i < x->n; i++)
        if (i < n && drops[i])
            free(x->entries[i].bits);
        else
            x->entries[kept++] = x->entries[i];
    x->removed += x->n - kept;
    x->n = kept;
    return true;
}

void documents_remove(const char *folder, const struct sealed_ids *gone)
{
    for (size_t i = 0; i < gone->n; i++) {
        char name[ID_TEXT], *path;
        id_text(gone->at[i].id, name);
        if (asprintf(&path, "%s/%s.sealed", folder, name) < 0)
            return;
        if (unlink(path) != 0 && errno != ENOENT)
            warn("%s: no search finds it any more, but it cannot be removed: "
                 "%s",
                 path, strerror(errno));
        free(path);
    }
}

/* ----------------------------------------------------------- older versions */

struct looking {
    const struct list *names;
    bool seen, replaced;
};

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool look_head(void *ctx, const struct document_head *head)
{
    struct looking *const l = ctx;
    char *const name = strndup(head->name.ptr, head->name.len);
    l->seen = name != NULL;
    l->replaced = name && bsearch(&name, l->names->at, l->names->n, sizeof name,
                                  by_bytes);
    free(name);
    return l->seen ? false : refuse("out of memory");
}

static bool look_text(void *ctx, const char *text, size_t n)
{
    (void)ctx, (void)text, (void)n;
    return true;
}

bool older_versions(const struct seal_keys *k, const char *folder,
                    const struct list *files, const struct sealed_index *x,
                    size_t n, bool *drops)
{
    struct list names = { .at = calloc(files->n + 1, sizeof *names.at) };
    bool ok = names.at || refuse("out of memory");
    for (; ok && names.n < files->n; names.n++) {
        names.at[names.n] = stored_name(files->at[names.n]);
        ok = names.at[names.n] || refuse("out of memory");
    }
    if (ok)
        qsort(names.at, names.n, sizeof *names.at, by_bytes);
    for (size_t i = 0; ok && i < n; i++) {
        struct looking l = { .names = &names };
        document_open(k, folder, x->entries[i].id,
                      &(struct opened){ look_head, look_text, &l });
        ok = l.seen;
        drops[i] = l.replaced;
    }
    for (size_t i = 0; names.at && i < names.n; i++)
        free((void *)(uintptr_t)names.at[i]);
    free(names.at);
    return ok;
}

/* ------------------------------------------------------------------ the verb
 */

static bool mark_one(const struct sealed_index *x, const char *archive,
                     const char *text, bool *drops)
{
    unsigned char id[DOCUMENT_ID_BYTES];
    if (!id_read(text, id))
        return refuse("'%s' is not the id of a document, of 32 digits",
                      show_name(text));
    for (size_t i = 0; i < x->n; i++)
        if (memcmp(x->entries[i].id, id, DOCUMENT_ID_BYTES) == 0)
            return drops[i] = true;
    return refuse("%s: has no document %s; nothing was removed", archive, text);
}

static bool mark_all(const struct sealed_index *x, const struct list *operands,
                     bool *drops)
{
    const char *const archive = operands->at[0];
    char line[256];
    bool ok = true;
    for (size_t i = 1; i < operands->n && ok; i++)
        ok = mark_one(x, archive, operands->at[i], drops);
    while (ok && operands->n == 1 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = '\0';
        ok = !line[0] || mark_one(x, archive, line, drops);
    }
    if (ok && operands->n == 1 && ferror(stdin))
        ok = refuse_path("standard input", errno);
    return ok;
}

static int rm_locked(const struct seal_args *args, const struct list *operands)
{
    const char *const folder = operands->at[0];
    struct sealed_index x;
    struct sealed_ids gone = { 0 };
    bool found;
    if (!index_open(folder, &x, &found))
        return TROUBLE;
    bool *const drops = calloc(x.n + 1, sizeof *drops);
    int status = TROUBLE;
    if (!found)
        fail("%s: there is no index", folder);
    else if (!drops)
        fail("out of memory");
    else if (mark_all(&x, operands, drops) && index_drop(&x, drops, x.n, &gone))
        status = gone.n ? index_save(folder, &x) : NO;
    if (status == YES)
        documents_remove(folder, &gone);
    const struct removed_report told = { folder, gone.n, x.n };
    if (status != TROUBLE && !quiet)
        report(stdout, args->json, removed_fields, &told,
               "{archive}: {removed} documents removed; {all} are left\n");
    free(drops);
    free(gone.at);
    index_free(&x);
    return status;
}

int seal_rm(const struct seal_args *args, const struct list *operands)
{
    if (!secure_begin())
        return TROUBLE;
    /* A lock makes the folder of an archive that is not there. */
    if (access(operands->at[0], F_OK) != 0)
        return fail_path(operands->at[0], errno);
    const int lock = archive_lock(operands->at[0]);
    if (lock < 0)
        return TROUBLE;
    const int status = rm_locked(args, operands);
    close(lock);
    return status;
}

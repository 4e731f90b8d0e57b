/*
 * corpus.c - the corpus without what was removed
 *
 * The last pass: lines that stay are copied as they are, neighbours together.
 * A last line without a newline gets one only if another line follows it.
 *
 * Into a folder every input becomes a file under its own relative path, so that
 * equal names in different folders do not meet; "../" and a leading "/" are
 * left out of it, and so is a final .gz or .zst, since what is written is
 * plain.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/dedup/dedup.h"
#include "apps/dedup/out_file.h"

struct copying {
    struct dedup *d;
    const char *folder; /* NULL: one file */
    const struct lines_file *file;
    struct out_file out;
    bool open, unended;
};

static bool is_kept(const struct dedup *d, uint64_t doc)
{
    return d->witness[doc] == DEDUP_NONE &&
           !(d->opt->drop_empty && d->states[doc] == DOC_EMPTY);
}

/* Make all folders that the file of a path is in. */
static bool make_folders(const struct copying *c, char *path)
{
    bool ok = true;
    for (char *s = strchr(path + 1, '/'); ok && s; s = strchr(s + 1, '/')) {
        *s = '\0';
        ok = bly_folder_make(path) == BLY_OK;
        *s = '/';
    }
    return ok || lines_fail(c->d->in, "%s", bly_error());
}

static char *path_in(const char *folder, const char *name)
{
    char *path;
    for (;;) {
        if (strncmp(name, "/", 1) == 0)
            name++;
        else if (strncmp(name, "./", 2) == 0)
            name += 2;
        else if (strncmp(name, "../", 3) == 0)
            name += 3;
        else
            break;
    }
    if (strcmp(name, "-") == 0)
        name = "stdin";
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return NULL;
    const size_t n = strlen(path);
    if (n > 3 && strcmp(path + n - 3, ".gz") == 0)
        path[n - 3] = '\0';
    else if (n > 4 && strcmp(path + n - 4, ".zst") == 0)
        path[n - 4] = '\0';
    return path;
}

static bool copy_close(struct copying *c, bool keep)
{
    if (!c->open)
        return true;
    c->open = false;
    if (out_close(&c->out, keep) || !keep)
        return true;
    return lines_fail(c->d->in, "%s", c->out.why);
}

static bool copy_open(struct copying *c, const char *path)
{
    c->open = out_open(&c->out, path, c->d->opt->wait);
    c->unended = false;
    return c->open || lines_fail(c->d->in, "%s", c->out.why);
}

static bool next_file(struct copying *c, const struct lines_file *f)
{
    if (c->file == f || !c->folder)
        return true;
    c->file = f;
    if (!copy_close(c, true))
        return false;
    char *const path = path_in(c->folder, f->name);
    if (!path)
        return lines_fail(c->d->in, "%s: %s", f->name, strerror(ENOMEM));
    const bool opened = make_folders(c, path) && copy_open(c, path);
    free(path);
    return opened;
}

static void put_lines(struct copying *c, const char *at, size_t n)
{
    if (n == 0)
        return;
    if (c->unended)
        out_put(&c->out, "\n", 1);
    out_put(&c->out, at, n);
    c->unended = at[n - 1] != '\n';
}

static bool copy_block(void *ctx, unsigned worker, struct lines_block *b)
{
    struct copying *const c = ctx;
    struct dedup *const d = c->d;
    const uint64_t first = b->first + d->base;
    (void)worker;
    if (d->in->whole && !c->folder) { /* names of the files that stay */
        if (is_kept(d, first)) {
            out_put(&c->out, b->file->name, strlen(b->file->name));
            out_put(&c->out, "\n", 1);
        }
        return true;
    }
    if (d->in->whole && !is_kept(d, first))
        return true;
    if (!next_file(c, b->file))
        return false;
    if (d->in->whole) {
        out_put(&c->out, b->at, b->len);
        return !c->out.failed || copy_close(c, true);
    }
    size_t from = 0, at = 0, n;
    const char *line;
    for (uint64_t doc = first;; doc++) {
        const size_t here = at;
        const bool more = lines_next(d->in, b, &at, &line, &n);
        if (more && is_kept(d, doc))
            continue;
        put_lines(c, b->at + from, here - from);
        from = at;
        if (!more)
            break;
    }
    return !c->out.failed || copy_close(c, true);
}

bool dedup_is_folder(const char *path)
{
    struct stat st;
    const size_t n = strlen(path);
    return (n && path[n - 1] == '/') ||
           (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

bool dedup_write_corpus(struct dedup *d, const char *path)
{
    const double start = dedup_seconds();
    struct copying c = { .d = d,
                         .folder = dedup_is_folder(path) ? path : NULL };
    const unsigned nthreads = d->in->nthreads;
    d->in->error[0] = '\0';
    bool ok = c.folder || copy_open(&c, path);
    d->in->nthreads = 1; /* copying needs no more */
    ok = ok && lines_run(d->in, NULL, copy_block, &c);
    d->in->nthreads = nthreads;
    ok = copy_close(&c, ok) && ok;
    d->report.seconds[4] = dedup_seconds() - start;
    return ok || dedup_fail(d, "%s", d->in->error);
}

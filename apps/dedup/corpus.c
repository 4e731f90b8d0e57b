/*
 * corpus.c - the corpus without what was removed
 *
 * The last pass: lines that stay are copied as they are, neighbours together.
 * A last line without a newline gets one only if another line follows it.
 * Records of WARC files are members of gzip if the output is named *.gz; those
 * that are already are copied as they are.
 *
 * If the output is a folder, every input becomes a file under its own relative
 * path, so that equal names in different folders do not collide. "." and ".."
 * and a leading "/" are left out of the path, so that it stays in the folder,
 * and so is the suffix of a compressed file, since the output is not
 * compressed. If two inputs would be written to one file, or one over itself,
 * nothing is started.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/dedup/dedup.h"
#include "apps/dedup/out_file.h"

struct copying {
    struct dedup_copy to;
    const struct dedup_docs *docs;
    const struct dedup_verdicts *verdicts;
};

static bool is_kept(const struct copying *c, uint64_t doc)
{
    return c->verdicts->witness[doc] == DEDUP_NONE &&
           !(c->to.opt->drop_empty && c->docs->states[doc] == DOC_EMPTY);
}

/* Make all folders that the file of a path is in. */
static bool make_folders(const struct dedup_copy *c, char *path)
{
    bool ok = true;
    for (char *s = strchr(path + 1, '/'); ok && s; s = strchr(s + 1, '/')) {
        *s = '\0';
        ok = bly_folder_make(path) == BLY_OK;
        *s = '/';
    }
    return ok || input_fail(c->in, "%s", bly_error());
}

static char *path_in(const char *folder, const char *name, bool records)
{
    static const char *const packed[] = { ".zst", ".xz", ".bz2", ".gz" };
    if (strcmp(name, "-") == 0)
        name = "stdin";
    char *const path = malloc(strlen(folder) + strlen(name) + 2);
    if (!path)
        return NULL;
    size_t n = strlen(folder);
    memcpy(path, folder, n);
    while (*name) {
        const size_t part = strcspn(name, "/");
        if (part && !(part == 1 && name[0] == '.') &&
            !(part == 2 && name[0] == '.' && name[1] == '.')) {
            path[n++] = '/';
            memcpy(path + n, name, part);
            n += part;
        }
        name += part + (name[part] == '/');
    }
    path[n] = '\0';
    /* Records are members of gzip where the name says so. */
    for (size_t i = 0; i < sizeof packed / sizeof packed[0] - records; i++) {
        const size_t end = strlen(packed[i]);
        if (n > end + 1 && path[n - end - 1] != '/' &&
            strcmp(path + n - end, packed[i]) == 0) {
            path[n - end] = '\0';
            break;
        }
    }
    return path;
}

bool dedup_copy_end(struct dedup_copy *c, bool keep)
{
    if (!c->open)
        return true;
    c->open = false;
    if (out_close(&c->out, keep) || !keep)
        return true;
    return input_fail(c->in, "%s", c->out.why);
}

static bool copy_open(struct dedup_copy *c, const char *path)
{
    c->open = out_open(&c->out, path, c->opt->wait);
    c->unended = false;
    return c->open || input_fail(c->in, "%s", c->out.why);
}

bool dedup_copy_file(struct dedup_copy *c, const struct input_file *f)
{
    if (c->file == f || !c->folder)
        return true;
    c->file = f;
    if (!dedup_copy_end(c, true))
        return false;
    char *const path = path_in(c->folder, f->name, c->in->records);
    if (!path)
        return input_fail(c->in, "%s: %s", f->name, strerror(ENOMEM));
    const bool opened = make_folders(c, path) && copy_open(c, path);
    free(path);
    return opened;
}

static void put_lines(struct dedup_copy *c, const struct block *b, size_t from,
                      size_t to)
{
    const bool lines = !c->in->records;
    if (from == to)
        return;
    if (c->unended)
        out_put(&c->out, "\n", 1);
    dedup_put(&c->out, c->in, b, from, to);
    c->unended = lines && b->at[to - 1] != '\n';
}

bool dedup_copy_begin(struct dedup_copy *c, const struct dedup_options *opt,
                      struct input *in)
{
    *c = (struct dedup_copy){
        .opt = opt,
        .in = in,
        .folder = dedup_is_folder(opt->output) ? opt->output : NULL,
    };
    return c->folder || copy_open(c, opt->output);
}

static bool copy_block(void *ctx, unsigned worker, struct block *b)
{
    struct copying *const all = ctx;
    struct dedup_copy *const c = &all->to;
    const bool whole = all->docs->in->whole;
    const uint64_t first = b->first + all->docs->base;
    (void)worker;
    if (whole && !c->folder) { /* names of the files that stay */
        if (is_kept(all, first)) {
            char buf[PATH_MAX + 64];
            const char *name;
            const size_t n =
                dedup_id(all->docs, (uint32_t)first, buf, sizeof buf, &name);
            out_put(&c->out, name, n);
            out_put(&c->out, "\n", 1);
        }
        return true;
    }
    if (whole && !is_kept(all, first))
        return true;
    if (!dedup_copy_file(c, b->file))
        return false;
    if (whole) {
        out_put(&c->out, b->at, b->len);
        return !c->out.failed || dedup_copy_end(c, true);
    }
    size_t from = 0, at = 0, n;
    const char *line;
    for (uint64_t doc = first;; doc++) {
        const size_t here = input_line_begins(c->in, b, at);
        const bool more = input_line(c->in, b, &at, &line, &n);
        if (more && is_kept(all, doc))
            continue;
        put_lines(c, b, from, here);
        from = at;
        if (!more)
            break;
    }
    return !c->out.failed || dedup_copy_end(c, true);
}

static bool put_bytes_of(void *ctx, const void *bytes, size_t n)
{
    struct out_file *const o = ctx;
    out_put(o, bytes, n);
    return !o->failed;
}

void dedup_put(struct out_file *o, const struct input *in,
               const struct block *b, size_t from, size_t to)
{
    const bool members = b->file->members;
    if (!in->records)
        out_put(o, b->at + from, to - from);
    else if (!warc_put(b, members, o->standard ? members : o->packed, from, to,
                       put_bytes_of, o) &&
             !o->failed)
        out_give_up(o, "out of memory");
}

bool dedup_is_folder(const char *path)
{
    struct stat st;
    const size_t n = strlen(path);
    return (n && path[n - 1] == '/') ||
           (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

/* An input: which file it is, and where it would be written to. */
struct target {
    const char *name;
    char *path;
    bool there; /* it is a file that has a place: */
    dev_t dev;
    ino_t ino;
};

static int by_path(const void *x, const void *y)
{
    return strcmp(((const struct target *)x)->path,
                  ((const struct target *)y)->path);
}

static int by_file(const void *x, const void *y)
{
    const struct target *const a = x, *const b = y;
    if (a->there != b->there)
        return a->there ? 1 : -1;
    if (a->dev != b->dev)
        return a->dev < b->dev ? -1 : 1;
    return (a->ino > b->ino) - (a->ino < b->ino);
}

static void which_file(struct target *t, const char *path)
{
    struct stat st;
    t->there = stat(path, &st) == 0;
    t->dev = t->there ? st.st_dev : 0;
    t->ino = t->there ? st.st_ino : 0;
}

static bool targets_differ(struct dedup_job *job, struct target *all, size_t n)
{
    qsort(all, n, sizeof *all, by_path);
    for (size_t i = 1; i < n; i++)
        if (strcmp(all[i - 1].path, all[i].path) == 0)
            return dedup_fail(job,
                              "%s: both %s and %s would be written there; use "
                              "-o FILE for all, or a run for each",
                              all[i].path, all[i - 1].name, all[i].name);
    /* An output replaces the file of that name, which therefore must not be an
     * input. */
    qsort(all, n, sizeof *all, by_file);
    for (size_t i = 0; i < n; i++) {
        struct target at = { 0 };
        which_file(&at, all[i].path);
        const struct target *const input =
            at.there ? bsearch(&at, all, n, sizeof *all, by_file) : NULL;
        if (input)
            return dedup_fail(
                job,
                "%s: would be written over the input %s; name another folder",
                all[i].path, input->name);
    }
    return true;
}

bool dedup_corpus_fits(struct dedup_job *job, const struct input *in)
{
    const char *const path = job->opt->output;
    if (!path || !dedup_is_folder(path) || in->nfiles == 0)
        return true;
    struct target *const all = calloc(in->nfiles, sizeof *all);
    bool ok = all != NULL;
    for (size_t i = 0; ok && i < in->nfiles; i++) {
        all[i].name = in->files[i].name;
        which_file(&all[i], in->files[i].name);
        all[i].path = path_in(path, all[i].name, in->records);
        ok = all[i].path != NULL;
    }
    ok = ok ? targets_differ(job, all, in->nfiles)
            : dedup_fail(job, "out of memory");
    for (size_t i = 0; all && i < in->nfiles; i++)
        free(all[i].path);
    free(all);
    return ok;
}

bool dedup_write_corpus(struct dedup_job *job, const struct dedup_docs *docs,
                        const struct dedup_verdicts *verdicts)
{
    struct input *const in = docs->in;
    struct copying c = { .docs = docs, .verdicts = verdicts };
    const unsigned nthreads = in->nthreads;
    in->error[0] = '\0';
    bool ok = dedup_copy_begin(&c.to, job->opt, in);
    in->nthreads = 1; /* copying needs no more */
    ok = ok && ordered_run(in, NULL, copy_block, &c);
    in->nthreads = nthreads;
    ok = dedup_copy_end(&c.to, ok) && ok;
    return ok || dedup_fail(job, "%s", in->error);
}

/*
 * folders.c - the files that names stand for, those in folders included
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/folders.h"
#include "io/paths.h"
#include "report/say.h"

static bool files_fail(void)
{
    fail("out of memory");
    return false;
}

static bool files_put(struct list *files, const char *name)
{
    if ((files->n & (files->n + 1)) == 0 || !files->at) {
        const char **const more =
            realloc(files->at, (files->n + 1) * 2 * sizeof *more);
        if (!more)
            return files_fail();
        files->at = more;
    }
    files->at[files->n] = strdup(name);
    return (files->at[files->n] && ++files->n) || files_fail();
}

static int no_dots(const struct dirent *e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* A folder, or what is in it, cannot be read: is that the end? */
static bool goes_on(const char *path, bool *trouble)
{
    fail_path(path, errno);
    if (trouble)
        *trouble = true;
    return trouble;
}

/* Regular files below a folder; links are not followed. */
static bool walk_folder(struct list *files, const char *folder, bool *trouble)
{
    struct dirent **names;
    const int n = scandir(folder, &names, no_dots, by_bytes);
    const size_t len = strlen(folder);
    const char *const slash = len && folder[len - 1] == '/' ? "" : "/";
    if (n < 0)
        return goes_on(folder, trouble);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        struct stat st;
        if (ok &&
            asprintf(&path, "%s%s%s", folder, slash, names[i]->d_name) < 0) {
            path = NULL;
            ok = files_fail();
        }
        /* A file that has disappeared meanwhile is skipped; any other error
         * must be reported. */
        if (ok && lstat(path, &st) == 0) {
            if (S_ISDIR(st.st_mode))
                ok = walk_folder(files, path, trouble);
            else if (S_ISREG(st.st_mode))
                ok = files_put(files, path);
        } else if (ok && errno != ENOENT) {
            ok = goes_on(path, trouble);
        }
        free(path);
        free(names[i]);
    }
    free(names);
    return ok;
}

bool files_named(const struct list *names, bool walk, bool *trouble,
                 struct list *files)
{
    for (size_t i = 0; i < names->n; i++) {
        struct stat st;
        const char *const name = names->at[i];
        const bool looks = walk && !is_dash(name);
        const bool there = looks && stat(name, &st) == 0;
        /* A missing file is reported by whoever opens it. If stat() fails for
         * another reason, nobody knows whether the path is a folder. */
        const bool ok =
            looks && !there && errno != ENOENT ? goes_on(name, trouble)
            : there && S_ISDIR(st.st_mode) ? walk_folder(files, name, trouble)
                                           : files_put(files, name);
        if (ok)
            continue;
        files_free(files);
        return false;
    }
    return true;
}

void files_free(struct list *files)
{
    for (size_t i = 0; i < files->n; i++)
        free((void *)(uintptr_t)files->at[i]);
    free(files->at);
    *files = (struct list){ 0 };
}

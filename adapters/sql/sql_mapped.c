/*
 * sql_mapped.c - files that are asked by their path
 *
 * A file is mapped once and kept, and its path says which. Another file in its
 * place is seen by whoever asks for the path next; those that ask the old one
 * keep it until they let it go.
 */
#define _POSIX_C_SOURCE 200809L /* st_mtim */
#include "adapters/sql/sql_inside.h"

#include <bloomery/live.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAPPED_KEPT 32 /* that nobody uses now */

static void file_free(struct sql_file *file)
{
    bly_free(file->f);
    free(file);
}

static void file_remove(struct sql_file **at)
{
    struct sql_file *const file = *at;
    *at = file->next;
    file->replaced = true;
    if (!file->users)
        file_free(file);
}

/* Those that were not used for longest go. */
static void files_tidy(struct sql_file **files)
{
    unsigned unused = 0;
    for (struct sql_file **at = files; *at;)
        if ((*at)->users || ++unused <= MAPPED_KEPT)
            at = &(*at)->next;
        else
            file_remove(at);
}

static bool file_is(const struct sql_file *file, const struct stat *st)
{
    const struct stat *const was = &file->st;
    return was->st_dev == st->st_dev && was->st_ino == st->st_ino &&
           was->st_size == st->st_size &&
           was->st_mtim.tv_sec == st->st_mtim.tv_sec &&
           was->st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

/* Taken out of the list, to come to its front; NULL if it is not there, or
 * another file is where it was. */
static struct sql_file *file_again(struct sql_file **files, const char *path,
                                   const struct stat *st)
{
    for (struct sql_file **at = files; *at; at = &(*at)->next) {
        struct sql_file *const file = *at;
        if (strcmp(file->path, path) != 0)
            continue;
        if (file_is(file, st)) {
            *at = file->next;
            return file;
        }
        file_remove(at);
        break;
    }
    return NULL;
}

static const char *stat_no_pipe(const char *path, struct stat *st)
{
    if (stat(path, st) != 0)
        return sql_failed(errno, path);
    return S_ISFIFO(st->st_mode)
               ? sql_wrong("%s: a pipe; expected a file", path)
               : NULL;
}

const char *sql_no_pipe(const char *path)
{
    struct stat st;
    const char *const bad = stat_no_pipe(path, &st);
    return bad && sql_status() == BLY_EIO ? NULL : bad;
}

/* A live filter is asked where it is, by one more who only reads. */
static bly_status map_or_share(const char *path, const bly_access *how,
                               bly_filter **out)
{
    bly_access reading = *how;
    reading.reading = true;
    const bly_status st = bly_map(path, how, out);
    return st == BLY_EBUSY ? bly_share(path, NULL, &reading, out) : st;
}

const char *sql_file_open(struct sql_file **files, const char *path,
                          const bly_access *limits, struct sql_file **out)
{
    struct stat st;
    bly_access how = limits ? *limits : (bly_access){ 0 };
    how.blind = true;
    *out = NULL;
    const char *const wrong = stat_no_pipe(path, &st);
    if (wrong)
        return wrong;
    struct sql_file *file = file_again(files, path, &st);
    if (!file) {
        file = calloc(1, sizeof *file + strlen(path) + 1);
        if (!file)
            return sql_no_memory();
        memcpy(file->path, path, strlen(path) + 1);
        file->st = st;
        const char *const bad = sql_told(map_or_share(path, &how, &file->f));
        if (bad) {
            free(file);
            return bad;
        }
    }
    file->users++;
    file->next = *files;
    *files = file;
    files_tidy(files);
    *out = file;
    return NULL;
}

void sql_file_close(struct sql_file *file)
{
    if (--file->users == 0 && file->replaced)
        file_free(file);
}

void sql_file_forget(struct sql_file **files, struct sql_file *file)
{
    while (*files && *files != file)
        files = &(*files)->next;
    if (*files)
        file_remove(files);
}

void sql_files_end(struct sql_file **files)
{
    while (*files)
        file_remove(files);
}

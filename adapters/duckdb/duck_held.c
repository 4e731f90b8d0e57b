/*
 * duck_held.c - filters in use: values and files
 *
 * A value arrives anew with every 2,000 rows, in any thread; the last few stay
 * loaded and are recognised by their headers. Files are mapped once per
 * database.
 *
 * Whether a path may be opened is DuckDB's to say (enable_external_access,
 * allowed_directories): its own file system is asked to open it first, in the
 * name of the statement, and what it forbids is not opened here. That asks for
 * functions that DuckDB has only by name; without them no path is opened.
 */
#include "adapters/duckdb/duck_bloomery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shared *shared_new(void)
{
    struct shared *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    if (pthread_mutex_init(&s->lock, NULL)) {
        free(s);
        return NULL;
    }
    s->users = 1;
    return s;
}

struct shared *shared_use(struct shared *s)
{
    pthread_mutex_lock(&s->lock);
    s->users++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

/* ------------------------------------------------------------------ values */

static void held_drop(struct held *h)
{
    if (--h->users)
        return;
    sql_value_free(&h->value);
    sql_same_end(&h->same);
    free(h);
}

static struct held *held_first(struct shared *s, size_t i, struct held *h)
{
    memmove(s->held + 1, s->held, i * sizeof *s->held);
    return s->held[0] = h;
}

static const char *held_new(bly_bytes bytes, struct held **out)
{
    struct held *const h = calloc(1, sizeof *h);
    *out = NULL;
    if (!h)
        return "out of memory";
    h->users = 1;
    const char *bad =
        sql_value_load(bytes.ptr, bytes.len, DUCK_LIMITS, &h->value);
    if (!bad && !h->value.filter)
        bad = SQL_SKETCH_ASKED;
    if (!bad && !sql_same_begin(&h->same, bytes, NULL))
        bad = "out of memory";
    if (bad)
        held_drop(h);
    else
        *out = h;
    return bad;
}

/* With the lock. */
static const char *held_find(struct shared *s, bly_bytes bytes,
                             struct held **out)
{
    size_t i = 0;
    for (; i < HELD_VALUES && s->held[i]; i++)
        if (sql_same_is(&s->held[i]->same, bytes)) {
            *out = held_first(s, i, s->held[i]);
            return NULL;
        }
    const char *const bad = held_new(bytes, out);
    if (bad)
        return bad;
    if (i == HELD_VALUES)
        held_drop(s->held[--i]);
    held_first(s, i, *out);
    return NULL;
}

const char *held_of(struct shared *s, bly_bytes bytes, struct held **out)
{
    pthread_mutex_lock(&s->lock);
    const char *const bad = held_find(s, bytes, out);
    if (!bad)
        (*out)->users++;
    pthread_mutex_unlock(&s->lock);
    return bad;
}

void held_end(struct shared *s, struct held *h)
{
    pthread_mutex_lock(&s->lock);
    held_drop(h);
    pthread_mutex_unlock(&s->lock);
}

void shared_drop(void *shared)
{
    struct shared *const s = shared;
    pthread_mutex_lock(&s->lock);
    const bool last = --s->users == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    for (size_t i = 0; i < HELD_VALUES && s->held[i]; i++)
        held_drop(s->held[i]);
    sql_files_end(&s->files);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ------------------------------------------------------------------- files */

struct site {
    struct shared *shared;
    duck_context context;
    char *path; /* of what is open */
    struct sql_file *file;
    int types[2]; /* of its arguments; 0: not known yet */
};

static void site_close(struct site *site)
{
    if (site->file) {
        pthread_mutex_lock(&site->shared->lock);
        sql_file_close(site->file);
        pthread_mutex_unlock(&site->shared->lock);
    }
    free(site->path);
    site->file = NULL;
    site->path = NULL;
}

static void site_end(void *at)
{
    struct site *const site = at;
    site_close(site);
    duck_late.destroy_client_context(&site->context);
    shared_drop(site->shared);
    free(site);
}

void site_begin(duck_init info)
{
    struct site *const site = calloc(1, sizeof *site);
    if (!site) {
        duck_late.scalar_function_init_set_error(info, "out of memory");
        return;
    }
    site->shared =
        shared_use(duck_late.scalar_function_init_get_extra_info(info));
    duck_late.scalar_function_init_get_client_context(info, &site->context);
    duck_late.scalar_function_init_set_state(info, site, site_end);
}

static struct site *site_of(duck_info info)
{
    return duck_is_late ? duck_late.scalar_function_get_state(info) : NULL;
}

int *site_types(duck_info info)
{
    struct site *const site = site_of(info);
    return site ? site->types : NULL;
}

/* What DuckDB says to a path; NULL if it is content, or if all that is wrong
 * is the file itself. */
static const char *forbidden(duck_files files, duck_file_how how,
                             const char *path)
{
    static _Thread_local char text[300];
    const char *bad = NULL;
    duck_file file = NULL;
    duck_late.file_open_options_set_flag(how, DUCK_FILE_READ, true);
    if (!duck_late.file_system_open(files, path, how, &file)) {
        duck_late.destroy_file_handle(&file);
        return NULL;
    }
    duck_error error = duck_late.file_system_error_data(files);
    if (duck_late.error_data_error_type(error) == DUCK_ERROR_PERMISSION) {
        snprintf(text, sizeof text, "%s", duck_late.error_data_message(error));
        bad = text;
    }
    duck_late.destroy_error_data(&error);
    return bad;
}

const char *site_may_open(duck_info info, const char *path)
{
    const struct site *const site = site_of(info);
    if (!site)
        return "this version of DuckDB does not tell which files may be "
               "opened; pass a value, such as that of read_blob()";
    const char *bad = sql_no_pipe(path); /* DuckDB would open it */
    if (bad)
        return bad;
    duck_files files = duck_late.client_context_get_file_system(site->context);
    duck_file_how how = duck_late.create_file_open_options();
    bad = files && how ? forbidden(files, how, path) : "out of memory";
    duck_late.destroy_file_open_options(&how);
    duck_late.destroy_file_system(&files);
    return bad;
}

static bool site_has(const struct site *site, bly_bytes path)
{
    return site && site->file && strlen(site->path) == path.len &&
           memcmp(site->path, path.ptr, path.len) == 0;
}

const char *site_file(duck_info info, const struct column *c, size_t row,
                      const bly_filter **out)
{
    struct site *const site = site_of(info);
    if (!site_has(site, column_bytes(c, row))) {
        char *path;
        const char *bad = text_of_row(c, row, &path);
        if (!bad)
            bad = site_may_open(info, path);
        if (bad) {
            free(path);
            return bad;
        }
        site_close(site);
        site->path = path;
        pthread_mutex_lock(&site->shared->lock);
        bad =
            sql_file_open(&site->shared->files, path, DUCK_LIMITS, &site->file);
        pthread_mutex_unlock(&site->shared->lock);
        if (bad)
            return bad;
    }
    *out = site->file->f;
    return NULL;
}

/*
 * pg_files.c - files: asked by their path, loaded and saved
 *
 * Who may open what is the server's rule for its own functions: members of
 * pg_read_server_files read any file, as with COPY, and whoever else was
 * granted a function reads below the folder of the data and of the logs, as
 * with pg_read_file(); writing is for members of pg_write_server_files alone,
 * with absolute paths, as with COPY.
 *
 * A file that is asked is mapped once per backend. It is looked at again when
 * a statement begins, so that a new file in its place is seen by the next one.
 *
 * If somebody truncates a mapped file instead of replacing it, the kernel sends
 * SIGBUS to its readers, which would bring the whole server down. So the signal
 * is caught while a file is asked, and the jump out of it skips nothing but
 * reading.
 */
#include "adapters/postgresql/pg_bloomery.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>

#include <access/xact.h>
#include <catalog/pg_authid.h>
#include <miscadmin.h>
#include <postmaster/syslogger.h>
#include <utils/acl.h>
#include <utils/builtins.h>

/* -------------------------------------------------------------- permission */

/* The path of a file that may be read. */
static char *path_to_read(const text *arg)
{
    char *const path = text_to_cstring(arg);
    canonicalize_path(path);
    if (has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES))
        return path;
    if (is_absolute_path(path)
            ? !path_is_prefix_of_path(DataDir, path) &&
                  (!is_absolute_path(Log_directory) ||
                   !path_is_prefix_of_path(Log_directory, path))
            : !path_is_relative_and_below_cwd(path))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                 errmsg("permission denied to read file \"%s\"", path),
                 errhint("Only members of pg_read_server_files read files "
                         "outside of the data directory.")));
    return path;
}

static char *path_to_write(const text *arg)
{
    char *const path = text_to_cstring(arg);
    if (!has_privs_of_role(GetUserId(), ROLE_PG_WRITE_SERVER_FILES))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("permission denied to write file \"%s\"", path),
                        errhint("Only members of pg_write_server_files write "
                                "files.")));
    canonicalize_path(path);
    if (!is_absolute_path(path))
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME),
                        errmsg("relative path not allowed for bly_save()")));
    return path;
}

/* ------------------------------------------------------------------ mapped */

static struct sql_file *mapped_files; /* of this backend */

static sigjmp_buf asking_jump;
static volatile sig_atomic_t asking;

static void file_was_cut(int signo)
{
    if (asking)
        siglongjmp(asking_jump, 1);
    signal(signo, SIG_DFL); /* none of ours: it comes again */
}

static void catch_cuts(void)
{
    static bool caught;
    struct sigaction act = { .sa_handler = file_was_cut,
                             .sa_flags = SA_NODEFER };
    if (!caught)
        caught = sigaction(SIGBUS, &act, NULL) == 0;
}

static void fail_cut(void)
{
    ereport(ERROR, (errcode(ERRCODE_IO_ERROR),
                    errmsg("bloomery: the file was cut off while it was asked"),
                    errhint("Replace files by renaming, as bly_save() and the "
                            "bloomery command do.")));
}

/* What reads a mapped file. */
struct reading {
    const char *path;
    struct sql_file *file;
    const struct sql_key *key;
    bool maybe, present;
    uint64_t number;
    char *json;
};
typedef const char *reading_call(struct reading *r);

/* A coded file is not mapped but decoded, by malloc(): into no more than a
 * value can have. */
static const bly_access mapped_limits = { .max_bytes = PGB_MOST };

/* A file is compared with its checksum when it is opened. */
static const char *reading_open(struct reading *r)
{
    return sql_file_open(&mapped_files, r->path, &mapped_limits, &r->file);
}

static const char *reading_has(struct reading *r)
{
    return sql_has(r->file->f, r->key, &r->maybe);
}

static const char *reading_count(struct reading *r)
{
    return sql_count(r->file->f, r->key, &r->number);
}

static const char *reading_get(struct reading *r)
{
    return sql_get(r->file->f, r->key, &r->number, &r->present);
}

static const char *reading_info(struct reading *r)
{
    return sql_info_file(r->path, &mapped_limits, &r->json);
}

/* False if the file was cut off. */
static bool read_mapped(struct reading *r, reading_call *call, const char **bad)
{
    if (sigsetjmp(asking_jump, 0)) {
        asking = 0;
        return false;
    }
    asking = 1;
    *bad = call(r);
    asking = 0;
    return true;
}

/* The file at path as it is now, with one user more. */
static struct sql_file *mapped_of(const char *path)
{
    struct reading r = { .path = path };
    const char *bad;
    struct stat st;
    if (stat(path, &st) != 0) {
        const char *const why = strerror(errno);
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not open file \"%s\": %s", path, why)));
    }
    catch_cuts();
    if (!read_mapped(&r, reading_open, &bad))
        fail_cut();
    pgb_check(bad);
    return r.file;
}

/* ------------------------------------------------------------------ asking */

/* What a call site has asked last. */
struct asked_file {
    MemoryContextCallback end;
    struct sql_file *file;
    TimestampTz statement;
    Oid user;
    size_t len;
    char *path; /* as it was given */
};

static void asked_end(void *asked)
{
    struct asked_file *const a = asked;
    if (a->file)
        sql_file_close(a->file);
    a->file = NULL;
}

static void asked_open(FmgrInfo *call, struct asked_file *a, const text *arg)
{
    const bly_bytes given = pgb_bytes(arg);
    asked_end(a);
    a->len = 0;
    if (a->path)
        pfree(a->path);
    a->path = MemoryContextAlloc(call->fn_mcxt, given.len + 1);
    memcpy(a->path, given.ptr, given.len);
    a->len = given.len;
    a->user = GetUserId();
    a->statement = GetCurrentStatementStartTimestamp();
    a->file = mapped_of(path_to_read(arg));
}

/* The file that argument 0 names. */
static struct asked_file *asked_file(FunctionCallInfo fcinfo)
{
    FmgrInfo *const call = fcinfo->flinfo;
    const text *const arg = PG_GETARG_TEXT_PP(0);
    const bly_bytes given = pgb_bytes(arg);
    struct asked_file *a = call->fn_extra;
    if (!a) {
        a = MemoryContextAllocZero(call->fn_mcxt, sizeof *a);
        a->end.func = asked_end;
        a->end.arg = a;
        MemoryContextRegisterResetCallback(call->fn_mcxt, &a->end);
        call->fn_extra = a;
    }
    if (!a->file || a->len != given.len ||
        memcmp(a->path, given.ptr, given.len) != 0 || a->user != GetUserId() ||
        a->statement != GetCurrentStatementStartTimestamp())
        asked_open(call, a, arg);
    return a;
}

/* It is of no use any more, to nobody. */
static void asked_cut(struct asked_file *a)
{
    sql_file_forget(&mapped_files, a->file);
    asked_end(a);
    fail_cut();
}

/* What the file of argument 0 says of the key in argument 1. */
static struct reading ask(FunctionCallInfo fcinfo, bly_key_type type,
                          reading_call *call)
{
    const char *bad;
    if (!fcinfo->flinfo->fn_extra)
        pgb_check_equality(fcinfo, 1, type);
    struct asked_file *const a = asked_file(fcinfo);
    const struct sql_key key = pgb_key(fcinfo, 1, type);
    struct reading r = { .file = a->file, .key = &key };
    if (!read_mapped(&r, call, &bad))
        asked_cut(a);
    pgb_check(bad);
    r.key = NULL; /* it ends here */
    return r;
}

static Datum has(FunctionCallInfo fcinfo, bly_key_type type)
{
    PG_RETURN_BOOL(ask(fcinfo, type, reading_has).maybe);
}

static Datum count(FunctionCallInfo fcinfo, bly_key_type type)
{
    return pgb_number(ask(fcinfo, type, reading_count).number);
}

static Datum get(FunctionCallInfo fcinfo, bly_key_type type)
{
    const struct reading r = ask(fcinfo, type, reading_get);
    if (!r.present)
        PG_RETURN_NULL();
    return pgb_number(r.number);
}

PGB_OF_KEYS(has, bly_file_has);
PGB_OF_KEYS(count, bly_file_count);
PGB_OF_KEYS(get, bly_file_get);

PG_FUNCTION_INFO_V1(bly_file_info);
Datum bly_file_info(PG_FUNCTION_ARGS)
{
    const char *bad;
    struct reading r = { .path = path_to_read(PG_GETARG_TEXT_PP(0)) };
    catch_cuts();
    if (!read_mapped(&r, reading_info, &bad))
        fail_cut();
    return pgb_json(bad, r.json);
}

/* ------------------------------------------------------- loading and saving */

PG_FUNCTION_INFO_V1(bly_load_file);
Datum bly_load_file(PG_FUNCTION_ARGS)
{
    struct sql_value v;
    const bly_mem mem = pgb_memory(CurrentMemoryContext);
    const bly_access limits = { .mem = &mem, .max_bytes = PGB_MOST };
    const char *const path = path_to_read(PG_GETARG_TEXT_PP(0));
    pgb_check(sql_value_open(path, &limits, &v));
    const Datum out = pgb_value(&v);
    sql_value_free(&v);
    return out;
}

/* As COPY, with files that others may read. */
PG_FUNCTION_INFO_V1(bly_save_file);
Datum bly_save_file(PG_FUNCTION_ARGS)
{
    const struct varlena *const bytes = PG_GETARG_VARLENA_PP(0);
    const char *const path = path_to_write(PG_GETARG_TEXT_PP(1));
    struct sql_value v = pgb_load(bytes, CurrentMemoryContext);
    const mode_t before = umask(S_IWGRP | S_IWOTH);
    const char *const bad = sql_value_save(&v, path, pgb_wait);
    umask(before);
    sql_value_free(&v);
    pgb_check(bad);
    PG_RETURN_INT64((int64)pgb_bytes(bytes).len);
}

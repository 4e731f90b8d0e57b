/*
 * keys.c - commands that ask or change one filter: FILTER [KEY]... [-f FILE]...
 */
#include <sys/stat.h>

#include "io/filters.h"
#include "io/keys.h"
#include "io/normal.h"
#include "io/paths.h"
#include "io/files.h"
#include "report/say.h"
#include "report/show.h"

static bool is_literal(const struct list *operands, size_t i)
{
    return i + operands->literal >= operands->n;
}

static bool names_file(const struct list *operands, size_t i)
{
    struct stat st;
    return !is_literal(operands, i) && stat(operands->at[i], &st) == 0 &&
           !S_ISDIR(st.st_mode);
}

bool operand_is_stdin(const struct list *operands, size_t i)
{
    return i < operands->n && is_dash(operands->at[i]) &&
           !is_literal(operands, i);
}

bool operand_is_key(const struct list *operands, size_t i)
{
    const char *const key = operands->at[i];
    if (!names_file(operands, i))
        return true;
    fail("'%s' is the name of a file; use -f %s for the keys in its lines, or "
         "-- before the keys if the name itself is one",
         key, key);
    return false;
}

/* The operands behind the filter as keys. */
static bool keys_of_operands(const struct keys *k, const struct list *operands,
                             struct input *in)
{
    bool files = true;
    if (k->files.n) {
        fail("keys come from the command line or from --file, not both");
        return false;
    }
    for (size_t i = 1; i < operands->n; i++) {
        if (operand_is_stdin(operands, i)) {
            fail("- is standard input, and cannot stand beside keys; use -- "
                 "before the keys if it is one of them");
            return false;
        }
        if (k->changes && !operand_is_key(operands, i))
            return false;
        files = files && names_file(operands, i);
    }
    if (files)
        warn("'%s' is taken as a key, but there is a file of that name; use "
             "-f %s for the keys in its lines, or -- before the keys to "
             "silence this",
             operands->at[1], operands->at[1]);
    input_keys(in, operands->at + 1, operands->n - 1);
    return true;
}

/* What is to be done with lines and keys. */
static bool keys_form(const struct keys *k, struct input *in)
{
    in->normal = k->normal;
    in->normal.grouped = k->select.group != NULL;
    if (selection_read(&k->select, in))
        return true;
    input_close(in);
    return false;
}

bly_keying keys_keying(const struct keys *k)
{
    struct normal how = k->normal;
    how.no_cr |= k->select.crlf;
    if (normal_integer(&how))
        return (bly_keying){ how.type, 0 };
    return (bly_keying){ BLY_KEYS_TEXT, normal_forms(&how) };
}

bool keys_follow(bly_keying of, const char *path, struct input *in)
{
    struct normal *const how = &in->normal;
    const bool is_text = of.type == BLY_KEYS_TEXT || of.type == BLY_KEYS_BYTES;
    if (is_text && how->fold && !(of.forms & BLY_KEYS_FOLDED)) {
        fail(
            "%s: the case of its keys was not folded when they were added, and "
            "with -i some would be missed; ask without -i, or build it with -i",
            path);
        return false;
    }
    if (of.type == BLY_KEYS_UNKNOWN && how->fold)
        warn("%s: does not say whether the case of its keys was folded when "
             "they were added; if not, keys with capitals are missed with -i; "
             "if so, bloomery note --keys text --form folded says it",
             path);
    how->fold |= (of.forms & BLY_KEYS_FOLDED) != 0;
    how->trim |= (of.forms & BLY_KEYS_TRIMMED) != 0;
    how->no_cr |= (of.forms & BLY_KEYS_NO_CR) != 0;
    if (of.type)
        how->type = of.type;
    return true;
}

bool keys_groups(const struct keys *k, const bly_filter *f, const char *path,
                 struct input *in)
{
    bly_bytes field;
    const bool named = bly_pair_of(f, KEYS_GROUP_NOTE, &field);
    const bly_hasher *const hs = bly_hasher_of(f);
    in->normal.grouped = hs && hs->id == BLY_HASH_GROUPED;
    if (!in->normal.grouped && k->select.group) {
        fail("%s: its keys stand in no groups; ask without --group, or build "
             "it with --group",
             path);
        return false;
    }
    if (in->normal.grouped && selects(&k->select) && !k->select.group) {
        const bool shown = named && field.len < 80;
        fail("%s: its keys stand in groups, and %s tells only the key; add "
             "--group %.*s",
             path, selection_option(&k->select), shown ? (int)field.len : 5,
             shown ? (const char *)show_text(field.ptr, field.len) : "FIELD");
        return false;
    }
    return true;
}

bool keys_files(const struct keys *k, const char *const *names, size_t n,
                struct input *in)
{
    input_files(in, names, n, k->nul);
    return keys_form(k, in);
}

bool keys_input(const struct keys *k, const struct list *operands,
                struct input *in)
{
    if (k->given.n) {
        input_keys(in, k->given.at, k->given.n);
        return keys_form(k, in);
    }
    const bool dash = operands->n == 2 && operand_is_stdin(operands, 1);
    if (operands->n > 1 && (!dash || k->files.n))
        return keys_of_operands(k, operands, in) && keys_form(k, in);
    bool reads_stdin = k->files.n == 0;
    for (size_t i = 0; i < k->files.n; i++)
        reads_stdin |= is_stdin(k->files.at[i]);
    if (reads_stdin && is_stdin(operands->at[0])) {
        fail("standard input cannot be both the filter and the keys; give the "
             "keys with -f");
        return false;
    }
    return keys_files(k, k->files.at, k->files.n, in);
}

bly_filter *filter_to_ask(const char *path, const char *key_file,
                          const struct checking *c, uint32_t ability)
{
    bool ok;
    if (c->always && c->never) {
        fail("--verify and --no-verify exclude each other");
        return NULL;
    }
    const bly_access how = { .secret = secret_read(key_file, &ok),
                             .checking = c->never    ? BLY_CHECK_NOTHING
                                         : c->always ? BLY_CHECK_ALL
                                                     : BLY_CHECK_BLOCKS };
    bly_filter *f = ok ? filter_map(path, &how) : NULL;
    if (!f)
        return NULL;
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    if (!filter_can(f, path, ability)) {
        bly_free(f);
        return NULL;
    }
    /* What forgets with time has to be told the time, and is changed by it. */
    if (kind.can & BLY_CAN(TICK)) {
        bly_filter *own;
        const bly_status st = bly_clone(f, &own);
        bly_free(f);
        if (st || filter_tick(own)) {
            fail("%s: %s", path, bly_error());
            return NULL;
        }
        return own;
    }
    return f;
}

bly_filter *ask_begin(const struct list *operands, const struct keys *k,
                      const struct checking *c, uint32_t ability,
                      struct input *in)
{
    if (operands->n == 0) {
        fail("no filter is given; usage: bloomery %s FILTER [KEY]...",
             running_command());
        return NULL;
    }
    if (!keys_input(k, operands, in))
        return NULL;
    bly_filter *f = filter_to_ask(operands->at[0], k->key_file, c, ability);
    bly_keying of = f ? bly_keying_of(f) : (bly_keying){ 0 };
    /* A range of integers is no integer. */
    if (ability & BLY_CAN(RANGE) && of.type != BLY_KEYS_TEXT)
        of = (bly_keying){ 0 };
    if (f && !(keys_follow(of, operands->at[0], in) &&
               keys_groups(k, f, operands->at[0], in))) {
        bly_free(f);
        f = NULL;
    }
    if (!f)
        input_close(in);
    return f;
}

bool ask_run(bly_filter *f, const struct list *operands, struct input *in,
             struct job *job)
{
    if (!job->unhashed)
        job->hasher = bly_hasher_of(f);
    job->path = operands->at[0];
    const bly_status st = pipeline_run(job, in);
    if (st)
        fail("%s", job->error);
    return !st;
}

bool ask_end(bly_filter *f, const struct list *operands, struct input *in,
             struct job *job)
{
    const bool ok = ask_run(f, operands, in, job);
    input_close(in);
    bly_free(f);
    return ok;
}

bool filter_to_change(const char *path, const bly_access *how, uint32_t ability,
                      struct input *in, bly_kind_info *kind)
{
    /* Changing it reads it again, and all of it. */
    bly_access unchecked = *how;
    unchecked.checking = BLY_CHECK_NOTHING;
    bly_filter *const f = filter_map(path, &unchecked);
    if (!f)
        return false;
    bly_kind_of(f, kind);
    const bool can = filter_can(f, path, ability) &&
                     (!in || keys_follow(bly_keying_of(f), path, in));
    bly_free(f);
    return can;
}

/*
 * table_verbs.c - bloomery table build, get, stat and verify
 */
#define _GNU_SOURCE /* strdup */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/table/table_args.h"
#include "apps/table/tables.h"
#include "base/grow.h"
#include "io/filters.h"
#include "io/files.h"
#include "io/hex.h"
#include "io/paths.h"
#include "io/values.h"
#include "report/out.h"
#include "report/say.h"

#define TABLE_FPR 0.01

const struct field table_row_fields[] = {
    FIELD(struct table_row, table, NONE, "its file"),
    FIELD(struct table_row, records, NONE, "keys in it"),
    FIELD(struct table_row, deleted, NONE, "of them, those that are deleted"),
    FIELD(struct table_row, blocks, NONE, "blocks of records"),
    FIELD(struct table_row, bytes, BYTES, "size of the file"),
    FIELD(struct table_row, filter_bytes, BYTES,
          "of these, the filter of its keys"),
    FIELD(struct table_row, first, NONE, "the first key"),
    FIELD(struct table_row, last, NONE, "the last key"),
    { 0 },
};

const struct field table_answer_fields[] = {
    FIELD(struct table_answer, key, NONE, "the key that was asked for"),
    FIELD(struct table_answer, found, NONE, "value, deleted or absent"),
    FIELD(struct table_answer, value, MAYBE, "its newest value"),
    FIELD(struct table_answer, tables, NONE, "tables that were considered"),
    FIELD(struct table_answer, by_range, NONE,
          "of them, those whose keys are all lower or higher"),
    FIELD(struct table_answer, by_filter, NONE,
          "those whose filter says that they do not have it"),
    FIELD(struct table_answer, blocks, NONE, "blocks that were read"),
    FIELD(struct table_answer, falsely, NONE,
          "of these, blocks that did not have the key"),
    { 0 },
};

static void tell_row(const struct table_file *f, bool json)
{
    const struct table *const t = &f->table;
    const struct table_row row = { f->path,    t->records, t->deleted,
                                   t->nblocks, f->n,       t->filter_bytes,
                                   t->first,   t->last };
    report(stdout, json, table_row_fields, &row,
           "{table}: {records} keys, {deleted} of them deleted; {blocks} "
           "blocks, {bytes}, {filter_bytes} of it the filter[{?records}; from "
           "{first} to {last}]\n");
}

/* ------------------------------------------------------------------- build */

/* Lines of the input: keys and values one behind the other in text. */
struct reading {
    const struct table_args *args;
    char delimiter;
    struct block text;
    struct line {
        size_t at, nkey, nvalue;
        bool deleted;
    } * lines;
    size_t n, room;
};

static bool read_line(void *ctx, bly_bytes line)
{
    struct reading *const r = ctx;
    if (!line.len)
        return true;
    if (!memory_spares(r->text.len + r->n * sizeof *r->lines))
        return refuse("more lines than there is memory for; use -o FOLDER/ and "
                      "a part of them at a time");
    const char *const cut = memchr(line.ptr, r->delimiter, line.len);
    struct line l = { .at = r->text.len,
                      .nkey = cut ? (size_t)(cut - (const char *)line.ptr)
                                  : line.len,
                      .deleted = !cut };
    l.nvalue = cut ? line.len - l.nkey - 1 : 0;
    if (!GROW(&r->lines, &r->room, r->n + 1))
        return refuse("out of memory");
    if (r->args->hex && cut) {
        if (l.nvalue % 2 || !block_fit(&r->text, l.at + line.len) ||
            !hex_read(cut + 1, l.nvalue / 2,
                      (unsigned char *)r->text.at + l.at + l.nkey))
            return refuse("line %zu: the value is not hexadecimal digits, two "
                          "for each byte",
                          r->n + 1);
        l.nvalue /= 2;
        memcpy(r->text.at + l.at, line.ptr, l.nkey);
        r->text.len += l.nkey + l.nvalue;
    } else if ((l.nkey && !block_put(&r->text, line.ptr, l.nkey)) ||
               (l.nvalue && !block_put(&r->text, cut + 1, l.nvalue))) {
        return refuse("out of memory");
    }
    r->lines[r->n++] = l;
    /* Something between two lines: places in the text tell their order. */
    return block_put(&r->text, "", 1) || refuse("out of memory");
}

static int entry_order(const void *a, const void *b)
{
    const struct table_entry *const x = a, *const y = b;
    const size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
    const int order = n ? memcmp(x->key.ptr, y->key.ptr, n) : 0;
    if (order || x->key.len != y->key.len)
        return order ? order : x->key.len < y->key.len ? -1 : 1;
    /* The text is in the order of the lines. */
    return x->value.ptr < y->value.ptr ? -1 : x->value.ptr > y->value.ptr;
}

/* Entries in the order of their keys, of each key the last one. */
static struct table_entry *sort_lines(const struct reading *r, size_t *n)
{
    struct table_entry *const e = calloc(r->n + 1, sizeof *e);
    size_t kept = 0;
    if (!e)
        return NULL;
    for (size_t i = 0; i < r->n; i++) {
        const struct line *const l = &r->lines[i];
        const char *const at = r->text.at ? r->text.at + l->at : "";
        e[i] = (struct table_entry){ .key = { at, l->nkey },
                                     .value = { at + l->nkey, l->nvalue },
                                     .deleted = l->deleted };
    }
    /* Of equal keys the last one comes last, and stays. */
    qsort(e, r->n, sizeof *e, entry_order);
    for (size_t i = 0; i < r->n; i++) {
        const bool again =
            kept && e[kept - 1].key.len == e[i].key.len &&
            (!e[i].key.len ||
             memcmp(e[kept - 1].key.ptr, e[i].key.ptr, e[i].key.len) == 0);
        e[kept - again] = e[i];
        kept += !again;
    }
    *n = kept;
    return e;
}

bool table_spec_fits(const struct table_args *a, bly_spec *spec)
{
    bly_kind_info kind;
    if (!bly_kind_named(spec->kind, &kind))
        return false;
    if (kind_unreliable(&kind))
        return refuse("--kind %s: keys would be missed: %s", kind.name,
                      kind_unreliable(&kind));
    if (spec->fpr <= 0)
        spec->fpr = TABLE_FPR;
    if (spec->keying.type == BLY_KEYS_UNKNOWN)
        spec->keying = keys_keying(&a->keys);
    return true;
}

/* Write the entries to path, and open what was written, to tell it. */
static int save_table(const struct table_args *a, const char *path,
                      const struct table_entry *e, size_t n)
{
    bly_spec spec = { 0 };
    bly_draft *d;
    char why[TABLE_WHY];
    if (!sizing_spec(&a->sizing, &spec) || !table_spec_fits(a, &spec))
        return TROUBLE;
    if (bly_draft_new(path, wait_for_lock, NULL, &d))
        return fail_library();
    if (!table_write(e, n, &spec, bly_draft_put, d, why)) {
        bly_draft_abandon(d);
        return fail("%s: %s", path, why);
    }
    if (bly_draft_commit(d))
        return fail_library();
    struct tables made;
    int status = YES;
    if (quiet)
        return YES;
    if (tables_open(&made, path))
        tell_row(&made.at[0], a->json);
    else
        status = TROUBLE;
    tables_close(&made);
    return status;
}

/* The path of the new table: that of --output, or a new name where that is a
 * folder. NULL, with the reason printed. */
static char *output_path(const struct table_args *a, int *lock)
{
    struct stat st;
    const size_t n = strlen(a->output);
    if (n && a->output[n - 1] == '/' && access(a->output, F_OK) != 0 &&
        bly_folder_make(a->output)) {
        fail_library();
        return NULL;
    }
    if (stat(a->output, &st) == 0 && S_ISDIR(st.st_mode))
        return tables_next(a->output, lock);
    char *const path = strdup(a->output);
    if (!path)
        fail("out of memory");
    return path;
}

int table_build(const struct table_args *a, const struct list *operands)
{
    struct reading r = { .args = a };
    struct input in;
    int lock = -1;
    if (!a->output)
        return fail("nothing says where to write; use -o FILE" TABLE_END
                    ", or -o FOLDER/");
    if (!delimiter_read(a->delimiter, '\t', &r.delimiter) ||
        !output_spares(a->output, operands->at, operands->n))
        return TROUBLE;
    input_files(&in, operands->at, operands->n, a->keys.nul);
    int status = input_each(&in, read_line, &r) ? YES : TROUBLE;
    if (in.error[0])
        status = fail("%s", in.error);
    input_close(&in);
    size_t n = 0;
    struct table_entry *const e = status == YES ? sort_lines(&r, &n) : NULL;
    if (status == YES && !e)
        status = fail("out of memory");
    char *const path = status == YES ? output_path(a, &lock) : NULL;
    if (status == YES)
        status = path ? save_table(a, path, e, n) : TROUBLE;
    if (lock >= 0)
        close(lock);
    free(path);
    free(e);
    free(r.lines);
    block_free(&r.text);
    return status;
}

/* --------------------------------------------------------------------- get */

struct getting {
    const struct table_args *args;
    struct tables tables;
    struct table_counts all;
    uint64_t keys, values, deleted;
    struct block text; /* of a value */
    bool failed;
};

/* The newest record of a key. */
static enum table_found find_newest(struct getting *g, bly_bytes key,
                                    struct table_counts *c, bly_bytes *value)
{
    enum table_found found = TABLE_ABSENT;
    for (size_t i = 0; i < g->tables.n && found == TABLE_ABSENT; i++) {
        char why[TABLE_WHY];
        found =
            table_find(&g->tables.at[i].table, key, TABLE_ALL, c, value, why);
        if (found == TABLE_DAMAGED)
            fail("%s: %s", g->tables.at[i].path, why);
    }
    return found;
}

/* The value as it is printed into g->text, a NUL behind it. */
static bool value_text(struct getting *g, bly_bytes value)
{
    g->text.len = 0;
    if (!g->args->hex)
        return (!value.len || block_put(&g->text, value.ptr, value.len)) &&
               block_put(&g->text, "", 1);
    if (!block_fit(&g->text, 2 * value.len + 1))
        return false;
    hex_put(value.ptr, value.len, g->text.at);
    g->text.len = 2 * value.len;
    return block_put(&g->text, "", 1);
}

static bool get_key(void *ctx, bly_bytes key)
{
    struct getting *const g = ctx;
    struct table_counts c = { 0 };
    bly_bytes value = { NULL, 0 };
    const enum table_found found = find_newest(g, key, &c, &value);
    const bool there = found == TABLE_VALUE;
    g->failed = found == TABLE_DAMAGED;
    if (!g->failed && there && !value_text(g, value))
        g->failed = fail("out of memory");
    if (g->failed)
        return false;
    g->keys++;
    g->values += there;
    g->deleted += found == TABLE_DELETED;
    g->all.tables += c.tables;
    g->all.by_range += c.by_range;
    g->all.by_filter += c.by_filter;
    g->all.blocks += c.blocks;
    g->all.falsely += c.falsely;
    if (g->args->json) {
        const struct table_answer answer = {
            .key = key,
            .found = there                    ? "value"
                     : found == TABLE_DELETED ? "deleted"
                                              : "absent",
            .value = there ? g->text.at : NULL,
            .tables = c.tables,
            .by_range = c.by_range,
            .by_filter = c.by_filter,
            .blocks = c.blocks,
            .falsely = c.falsely,
        };
        report(stdout, true, table_answer_fields, &answer, NULL);
    } else if (there) {
        print_key(key.ptr, key.len);
        putchar('\t');
        print_key(g->text.at, g->text.len - 1);
        print_key_end(g->args->keys.nul);
    }
    return true;
}

static void tell_costs(const struct getting *g)
{
    const struct table_counts *const c = &g->all;
    fprintf(stderr,
            "%llu keys: %llu values, %llu deleted, %llu absent\n"
            "%llu tables considered: %llu spared by their range, %llu by their "
            "filter; %llu blocks read, %llu of them for nothing\n",
            (unsigned long long)g->keys, (unsigned long long)g->values,
            (unsigned long long)g->deleted,
            (unsigned long long)(g->keys - g->values - g->deleted),
            (unsigned long long)c->tables, (unsigned long long)c->by_range,
            (unsigned long long)c->by_filter, (unsigned long long)c->blocks,
            (unsigned long long)c->falsely);
}

int table_get(const struct table_args *a, const struct list *operands)
{
    struct getting g = { .args = a };
    struct input in;
    if (!keys_input(&a->keys, operands, &in))
        return TROUBLE;
    int status = tables_open(&g.tables, operands->at[0]) ? YES : TROUBLE;
    if (status == YES)
        input_each(&in, get_key, &g);
    if (in.error[0])
        status = fail("%s", in.error);
    if (status == YES && a->stat && !quiet)
        tell_costs(&g);
    input_close(&in);
    tables_close(&g.tables);
    block_free(&g.text);
    return status != YES || g.failed ? TROUBLE : g.values ? YES : NO;
}

/* ---------------------------------------------------------- stat and verify */

static int each_table(const struct list *operands, bool json, bool check)
{
    int status = YES;
    for (size_t i = 0; i < operands->n; i++) {
        struct tables t;
        char why[TABLE_WHY];
        if (!tables_open(&t, operands->at[i]))
            status = TROUBLE;
        else
            for (size_t k = 0; k < t.n; k++) {
                if (check && !table_check(&t.at[k].table, why))
                    status = fail("%s: %s", t.at[k].path, why);
                else if (!quiet)
                    tell_row(&t.at[k], json);
            }
        tables_close(&t);
    }
    return status;
}

int table_stat(const struct table_args *a, const struct list *operands)
{
    return each_table(operands, a->json, false);
}

int table_verify(const struct table_args *a, const struct list *operands)
{
    return each_table(operands, a->json, true);
}

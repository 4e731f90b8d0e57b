/*
 * table_scan.c - bloomery table scan and compact: read through tables, and
 * make one of several
 *
 * Compacting writes a new table, which becomes the newest of the folder, and
 * then removes those that it was made of, the oldest first. Whatever happens
 * in between, and whoever reads meanwhile, the answers are the same: the new
 * table hides the others, and where it has no tombstone any more, those that
 * remain still have theirs in front of what they hide.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/table/table_args.h"
#include "apps/table/table_merge.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/hex.h"
#include "report/out.h"
#include "report/say.h"

const struct field table_pair_fields[] = {
    FIELD(struct table_pair, key, NONE, "the key"),
    FIELD(struct table_pair, value, NONE, "its newest value"),
    { 0 },
};

const struct field table_compacted_fields[] = {
    FIELD(struct table_compacted, table, NONE, "the new table"),
    FIELD(struct table_compacted, merged, NONE, "tables that became one"),
    FIELD(struct table_compacted, records, NONE, "keys in it"),
    FIELD(struct table_compacted, deleted, NONE,
          "of them, those that are deleted, and have values in older tables"),
    FIELD(struct table_compacted, hidden, NONE,
          "records that newer ones have hidden"),
    FIELD(struct table_compacted, dropped, NONE,
          "deleted keys that no older table has"),
    { 0 },
};

/* -------------------------------------------------------------------- scan */

static bool is_below(const struct table_args *a, bly_bytes key)
{
    const bly_bytes to = { a->to, a->to ? strlen(a->to) : 0 };
    const size_t n = a->prefix ? strlen(a->prefix) : 0;
    return (!a->to || table_order(key, to) < 0) &&
           (!n || (key.len >= n && memcmp(key.ptr, a->prefix, n) == 0));
}

static bool print_pair(const struct table_args *a, const struct table_entry *e,
                       struct block *text)
{
    bly_bytes value = e->value;
    if (a->hex) {
        if (!block_fit(text, 2 * value.len + 1))
            return refuse("out of memory");
        hex_put(value.ptr, value.len, text->at);
        value = (bly_bytes){ text->at, 2 * value.len };
    }
    if (a->json) {
        const struct table_pair pair = { e->key, value };
        report(stdout, true, table_pair_fields, &pair, NULL);
        return true;
    }
    print_key(e->key.ptr, e->key.len);
    putchar('\t');
    print_key(value.ptr, value.len);
    print_key_end(a->keys.nul);
    return true;
}

int table_scan(const struct table_args *a, const struct list *operands)
{
    struct tables t;
    struct table_merge m = { 0 };
    struct table_entry e;
    struct block text = { 0 };
    uint64_t n = 0;
    if (a->prefix && (a->from || a->to))
        return fail(
            "--prefix is a range of its own: leave out --from and --to");
    const char *const from = a->prefix ? a->prefix : a->from ? a->from : "";
    enum table_found found = TABLE_DAMAGED;
    bool ok = tables_open(&t, operands->at[0]) &&
              merge_from(&m, &t, t.n, (bly_bytes){ from, strlen(from) });
    while (ok && (!a->limit || n < a->limit)) {
        found = merge_next(&m, &e);
        if (found == TABLE_DAMAGED || found == TABLE_ABSENT ||
            !is_below(a, e.key))
            break;
        if (found == TABLE_VALUE) {
            ok = print_pair(a, &e, &text);
            n++;
        }
    }
    ok = ok && found != TABLE_DAMAGED;
    merge_end(&m);
    tables_close(&t);
    block_free(&text);
    return !ok ? TROUBLE : n ? YES : NO;
}

/* ----------------------------------------------------------------- compact */

struct compacting {
    const struct table_args *args;
    struct tables tables;
    size_t n; /* the newest n become one */
    struct table_writer w;
    struct table_compacted told;
};

/* Does a key have a value in the tables that stay? */
static enum table_found find_older(struct compacting *c, bly_bytes key)
{
    enum table_found found = TABLE_ABSENT;
    for (size_t i = c->n; i < c->tables.n && found == TABLE_ABSENT; i++) {
        struct table_counts counts = { 0 };
        bly_bytes value;
        char why[TABLE_WHY];
        found = table_find(&c->tables.at[i].table, key, TABLE_ALL, &counts,
                           &value, why);
        if (found == TABLE_DAMAGED)
            fail("%s: %s", c->tables.at[i].path, why);
    }
    return found;
}

static bool write_merged(struct compacting *c, const char *path)
{
    struct table_merge m;
    struct table_entry e;
    char why[TABLE_WHY] = "";
    enum table_found found = TABLE_DAMAGED;
    bool ok = merge_from(&m, &c->tables, c->n, (bly_bytes){ "", 0 });
    while (ok && (found = merge_next(&m, &e)) != TABLE_ABSENT &&
           found != TABLE_DAMAGED) {
        if (found == TABLE_DELETED) {
            const enum table_found older = find_older(c, e.key);
            ok = older != TABLE_DAMAGED;
            if (older != TABLE_VALUE) {
                c->told.dropped++;
                continue;
            }
        }
        if (ok && !table_writer_add(&c->w, &e, why))
            ok = refuse("%s: %s", path, why);
    }
    ok = ok && found != TABLE_DAMAGED;
    merge_end(&m);
    return ok && (table_writer_end(&c->w, why) || refuse("%s: %s", path, why));
}

/* What the filter of the largest table is: that of the new one unless options
 * say otherwise. */
static void like_the_largest(const struct compacting *c, bly_spec *spec)
{
    const struct table *largest = NULL;
    bly_stats stats;
    for (size_t i = 0; i < c->n; i++) {
        const struct table *const t = &c->tables.at[i].table;
        if (t->filter && (!largest || t->records > largest->records))
            largest = t;
    }
    if (!largest)
        return;
    bly_peek(largest->filter, &stats);
    spec->keying = bly_keying_of(largest->filter);
    if (!spec->kind)
        spec->kind = stats.kind;
    if (spec->fpr <= 0 && stats.fpr_at_capacity > 0)
        spec->fpr = stats.fpr_at_capacity;
}

static bool make_merged(struct compacting *c, const char *path)
{
    bly_spec spec = { 0 };
    bly_draft *d;
    char why[TABLE_WHY];
    if (!sizing_spec(&c->args->sizing, &spec))
        return false;
    like_the_largest(c, &spec);
    if (!table_spec_fits(c->args, &spec))
        return false;
    if (bly_draft_new(path, wait_for_lock, NULL, &d))
        return refuse_library();
    bool ok = table_writer_new(&c->w, &spec, bly_draft_put, d, why) ||
              refuse("%s: %s", path, why);
    ok = ok && write_merged(c, path);
    c->told.records = c->w.records;
    c->told.deleted = c->w.deleted;
    table_writer_free(&c->w);
    if (!ok)
        bly_draft_abandon(d);
    return ok && (!bly_draft_commit(d) || refuse_library());
}

/* The new table is safe by now; these are only in its way. */
static bool remove_merged(const struct compacting *c, const char *folder,
                          int fd)
{
    for (size_t i = c->n; i-- > 0;)
        if (unlink(c->tables.at[i].path))
            return refuse_path(c->tables.at[i].path, errno);
    return !fsync(fd) || refuse_path(folder, errno);
}

int table_compact(const struct table_args *a, const struct list *operands)
{
    struct compacting c = { .args = a };
    const char *const folder = operands->at[0];
    int lock = -1, status = TROUBLE;
    /* With the lock, the tables that are there stay. */
    char *const path = tables_next(folder, &lock);
    if (path && tables_open(&c.tables, folder)) {
        c.n = a->newest && a->newest < c.tables.n ? (size_t)a->newest
                                                  : c.tables.n;
        uint64_t before = 0;
        for (size_t i = 0; i < c.n; i++)
            before += c.tables.at[i].table.records;
        const bool single = c.n == 1 && !c.tables.at[0].table.deleted;
        if (c.n == 0 || single) {
            note("%s: %s: nothing to do", folder,
                 c.n ? "one table, without deleted keys" : "no tables");
            status = YES;
        } else if (make_merged(&c, path)) {
            c.told.table = path;
            c.told.merged = c.n;
            c.told.hidden = before - c.told.records - c.told.dropped;
            status = remove_merged(&c, folder, lock) ? YES : TROUBLE;
            if (!quiet)
                report(
                    stdout, a->json, table_compacted_fields, &c.told,
                    "{table}: {records} keys of {merged} tables[{?deleted}, "
                    "{deleted} of them deleted]; {hidden} hidden records and "
                    "{dropped} deleted keys are gone\n");
        }
    }
    tables_close(&c.tables);
    if (lock >= 0)
        close(lock);
    free(path);
    return status;
}

/*
 * table_merge.c - the records of many tables, the newest of each key
 *
 * A reader stands at a record of each table. The lowest key comes next; of
 * equal ones that of the newest table, which is the first in the list. Folders
 * have few tables, so that looking at all of them is the simplest way.
 */
#include <stdlib.h>

#include "apps/table/table_merge.h"
#include "report/say.h"

static bool is_record(enum table_found at)
{
    return at == TABLE_VALUE || at == TABLE_DELETED;
}

static void step(struct table_merge *m, size_t i)
{
    char why[TABLE_WHY];
    m->at[i] = table_next(&m->readers[i], why);
    if (m->at[i] == TABLE_DAMAGED)
        fail("%s: %s", m->tables->at[i].path, why);
}

bool merge_from(struct table_merge *m, struct tables *tables, size_t n,
                bly_bytes key)
{
    *m = (struct table_merge){ .tables = tables, .n = n, .newest = n };
    m->readers = calloc(n + 1, sizeof *m->readers);
    m->at = calloc(n + 1, sizeof *m->at);
    if (!m->readers || !m->at)
        return refuse("out of memory");
    for (size_t i = 0; i < n; i++) {
        table_from(&m->readers[i], &tables->at[i].table, key);
        step(m, i);
    }
    return true;
}

void merge_end(struct table_merge *m)
{
    free(m->readers);
    free(m->at);
}

enum table_found merge_next(struct table_merge *m, struct table_entry *e)
{
    /* Older records of the key that was given are hidden. Its own table goes
     * on last, for the key is there. */
    for (size_t i = 0; i < m->n && m->newest < m->n; i++)
        if (i != m->newest && is_record(m->at[i]) &&
            table_order(m->readers[i].key, m->readers[m->newest].key) == 0)
            step(m, i);
    if (m->newest < m->n)
        step(m, m->newest);
    m->newest = m->n;
    for (size_t i = 0; i < m->n; i++) {
        if (m->at[i] == TABLE_DAMAGED)
            return TABLE_DAMAGED;
        if (is_record(m->at[i]) &&
            (m->newest == m->n ||
             table_order(m->readers[i].key, m->readers[m->newest].key) < 0))
            m->newest = i;
    }
    if (m->newest == m->n)
        return TABLE_ABSENT;
    const struct table_reader *const r = &m->readers[m->newest];
    *e = (struct table_entry){ r->key, r->value, r->deleted };
    return m->at[m->newest];
}

/*
 * lasting.c - a value that SQLite need not copy
 *
 * What an aggregate or a subquery gave is copied by SQLite before the next
 * function or the caller has it, a subquery's again for every row, unless the
 * value is static: one that stays. A value is used by the statement that made
 * it, as long as that runs. Which one that is nobody tells, but it is one of
 * those that were running then. So a static value is kept until none of these
 * is in the same run any more, and the next one is made after that.
 *
 * One value at a time: a statement with many groups would otherwise hold the
 * filters of all of them in memory. The others are copied.
 */
#include <stdlib.h>

#include "adapters/sqlite/sqlite_bloomery.h"

/* A connection with more statements, or more that run at once, has none. */
#define LASTING_STATEMENTS 64

/* The number of the run that a statement is in; -1: it is not running. */
static int run_of(sqlite3_stmt *statement)
{
    return sqlite3_stmt_busy(statement)
               ? sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_RUN, 0)
               : -1;
}

/* Is a statement that may use the value still in that run? A new statement in
 * the place of an old one may look so, and one whose number a program has set
 * back; then the value stays for longer. */
static bool is_used(const struct lasting *l, sqlite3_stmt *statement, int run)
{
    for (unsigned i = 0; i < l->nusers; i++)
        if (l->users[i].statement == statement && run <= l->users[i].run)
            return true;
    return false;
}

bool lasting_keep(struct lasting *l, sqlite3 *db, void *bytes)
{
    struct lasting next = { .bytes = bytes };
    unsigned nstatements = 0;
    for (sqlite3_stmt *s = sqlite3_next_stmt(db, NULL); s;
         s = sqlite3_next_stmt(db, s)) {
        const int run = run_of(s);
        if (++nstatements > LASTING_STATEMENTS)
            return false;
        if (run < 0)
            continue;
        if (is_used(l, s, run) || next.nusers == LASTING_USERS)
            return false;
        next.users[next.nusers++] = (struct lasting_user){ s, run };
    }
    lasting_end(l);
    *l = next;
    return true;
}

void lasting_end(struct lasting *l)
{
    free(l->bytes);
    *l = (struct lasting){ 0 };
}

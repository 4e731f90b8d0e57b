/*
 * duck_bloomery.h - the parts of the extension for DuckDB
 */
#ifndef BLY_DUCKDB_H
#define BLY_DUCKDB_H

#include <pthread.h>

#include "adapters/duckdb/duck_api.h"
#include "adapters/sql/sql.h"

extern struct duck_entries duck;
extern struct duck_by_name duck_late;
extern bool duck_is_late; /* all of duck_late are there */

/* Bytes that a value can have; what is read takes no more memory, either. */
#define DUCK_MOST UINT32_MAX
#define DUCK_LIMITS (&(const bly_access){ .max_bytes = DUCK_MOST })

/* ---------------------------------------------------------------- vectors */

/* A column of a chunk, as DuckDB has it. */
struct column {
    int type;
    const void *data;
    const uint64_t *valid; /* a bit for each row; NULL: none is SQL's NULL */
};
struct column column_of(duck_chunk chunk, uint64_t i);

/* The same where its type is kept from one chunk to the next; 0: not yet. */
struct column column_known(duck_chunk chunk, uint64_t i, int *type);

static inline bool column_is_null(const struct column *c, size_t row)
{
    return c->type == DUCK_NULL ||
           (c->valid && !(c->valid[row / 64] >> row % 64 & 1));
}

/* Of text and blobs. */
static inline bly_bytes column_bytes(const struct column *c, size_t row)
{
    const union duck_string *const s = (const union duck_string *)c->data + row;
    return s->here.len <= DUCK_INLINE
               ? (bly_bytes){ s->here.bytes, s->here.len }
               : (bly_bytes){ s->there.bytes, s->there.len };
}

/* How many rows from this one on have the same text or blob, or are all NULL;
 * by where it lies in memory, if it is long. */
size_t column_run(const struct column *c, size_t from, size_t nrows);

/* Keys of some rows, in an array as the library takes them. */
#define KEYS_MOST 2048
struct keys {
    bly_key_type type;
    size_t nrows; /* rows that were looked at, KEYS_MOST at most */
    size_t n;     /* those that are not NULL */
    const void *at;
    const uint16_t *rows; /* of each key; NULL: all of them */
    uint16_t places[KEYS_MOST];
    union {
        int64_t ints[KEYS_MOST];
        bly_bytes bytes[KEYS_MOST];
    } room;
};
const char *keys_of(const struct column *c, size_t from, size_t nrows,
                    struct keys *out);

/* One key, of a row that is not NULL. */
const char *key_of_row(const struct column *c, size_t row, struct sql_key *key);

/* Text as C has it, by malloc(); NULL for SQL's NULL. */
const char *text_of_row(const struct column *c, size_t row, char **out);

/* Results of a row. JSON is freed, and so is the filter in a value that is not
 * needed any more (last). */
void result_null(duck_vector result, size_t row);
const char *result_value(duck_vector result, size_t row, struct sql_value *v,
                         bool last);
const char *result_json(duck_vector result, size_t row, const char *bad,
                        char *json);

/* What was wrong, to DuckDB by one of its functions. */
void say_wrong(duck_info info, void (*set)(duck_info, const char *),
               const char *bad);

/* ----------------------------------------------------------------- states */

/* What DuckDB keeps of a group. */
#define STATE_SIGN UINT64_C(0x5e7a6b1c0f93d24b) /* one of ours */
struct state {
    uint64_t sign; /* 0 when it has ended */
    void
        *made; /* of what the aggregate is; NULL: no row that counts has come */
};

/* Is there a state for each of n rows, or one for all of them? The latter may
 * be said of n that are the same. */
const char *states_many(void *const *states, size_t n, bool *many);

/* Find out who can tell; library is where DuckDB is. */
void states_begin(void *library);

/* ---------------------------------------------------------------- filters */

/* A filter that was asked lately, as a value. */
struct held {
    unsigned users;
    struct sql_value value;
    struct sql_same same;
};

/* Of a database, shared by all functions and threads. */
#define HELD_VALUES 4
struct shared {
    pthread_mutex_t lock; /* of all that follows */
    unsigned users;
    struct held *held[HELD_VALUES]; /* the latest first */
    struct sql_file *files;
};
struct shared *shared_new(void);
struct shared *shared_use(struct shared *s);
void shared_drop(void *shared);

/* The filter that is a value, loaded once as long as it is among the latest;
 * held_end() when it was asked. */
const char *held_of(struct shared *s, bly_bytes bytes, struct held **out);
void held_end(struct shared *s, struct held *h);

/* A place in a statement that may open files, in one thread. It keeps what it
 * opened last, so that the answers of a statement come from one file. */
struct site;
void site_begin(duck_init info);

/* The types of its first two arguments, for column_known(); NULL: no place. */
int *site_types(duck_info info);

/* May the statement open this path, by DuckDB's rules? */
const char *site_may_open(duck_info info, const char *path);

/* The filter in a file, for as long as the call lasts. */
const char *site_file(duck_info info, const struct column *c, size_t row,
                      const bly_filter **out);

/* ------------------------------------------------------------ registration */

/* The type of an argument or a result, by a letter, which the caller destroys:
 * x any type, t text, b a blob, i an integer, d a real number, y yes or no. */
duck_type type_of_letter(char letter);

bool scalars_register(duck_connection c, struct shared *s);
bool aggregates_register(duck_connection c);

#endif

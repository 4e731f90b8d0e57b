/*
 * duck_bloomery.c - filters in DuckDB: the extension
 *
 *     LOAD 'build/bloomery.duckdb_extension';
 *     SELECT count(*) FROM visits WHERE bly_has('seen.bly', email);
 *
 * duck_ask.c has the functions of rows, duck_agg.c the aggregates,
 * duck_states.c their states, duck_held.c filters in use, duck_rows.c DuckDB's
 * vectors. duck_api.h says what is used of DuckDB. tools/duckdb-footer makes an
 * extension of the shared library.
 */
#define _GNU_SOURCE /* dladdr() */
#include "adapters/duckdb/duck_bloomery.h"

#include <dlfcn.h>
#include <string.h>

struct duck_entries duck;
struct duck_by_name duck_late;
bool duck_is_late;

duck_type type_of_letter(char letter)
{
    static const char letters[] = "xtbidy";
    static const int types[] = { DUCK_ANY,    DUCK_VARCHAR, DUCK_BLOB,
                                 DUCK_BIGINT, DUCK_DOUBLE,  DUCK_BOOLEAN };
    return duck.create_logical_type(types[strchr(letters, letter) - letters]);
}

/* Functions are in the table as pointers, and a pointer to a function is taken
 * out of it as bytes, as C wants it. */
static void take_entries(const void *table)
{
    const unsigned char *const at = table;
#define DUCK_TAKE(place, name, gives, takes) \
    memcpy(&duck.name, at + (place) * sizeof(void *), sizeof duck.name);
    DUCK_ENTRIES(DUCK_TAKE)
#undef DUCK_TAKE
}

/* Where DuckDB is: in a library, or in the program itself. */
static void *duckdb_library(void)
{
    Dl_info info;
    void *address;
    memcpy(&address, &duck.connect, sizeof address);
    if (!dladdr(address, &info) || !info.dli_fname)
        return NULL;
    void *const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library ? library : dlopen(NULL, RTLD_LAZY);
}

static bool take_by_name(void *library)
{
    bool all = true;
#define DUCK_TAKE(name, gives, takes)                        \
    {                                                        \
        void *const at = dlsym(library, "duckdb_" #name);    \
        memcpy(&duck_late.name, &at, sizeof duck_late.name); \
        all = all && at;                                     \
    }
    DUCK_BY_NAME(DUCK_TAKE)
#undef DUCK_TAKE
    return all;
}

/* Of all databases of the process, which have the same functions. */
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;

static bool take_all(void *info, const struct duck_access *access)
{
    const void *const table = access->get_api(info, DUCK_API_VERSION);
    if (!table)
        return false; /* and DuckDB knows why */
    pthread_mutex_lock(&taking);
    take_entries(table);
    void *const library = duckdb_library();
    duck_is_late = library && take_by_name(library);
    if (library) {
        states_begin(library);
        dlclose(library); /* it stays: we are called by it */
    }
    pthread_mutex_unlock(&taking);
    return true;
}

__attribute__((visibility("default"))) bool
bloomery_init_c_api(void *info, const struct duck_access *access);

bool bloomery_init_c_api(void *info, const struct duck_access *access)
{
    duck_connection c = NULL;
    if (!take_all(info, access))
        return false;
    duck_database *const db = access->get_database(info);
    if (!db || duck.connect(*db, &c)) {
        access->set_error(info, "bloomery: the database cannot be reached");
        return false;
    }
    struct shared *const s = shared_new();
    const bool ok = s && scalars_register(c, s) && aggregates_register(c);
    if (!ok)
        access->set_error(info, "bloomery: its functions cannot be registered");
    if (s)
        shared_drop(s);
    duck.disconnect(&c);
    return ok;
}

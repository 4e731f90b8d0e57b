/*
 * cache.c - what a proxy has in its cache, from what it writes about it
 *
 * The size of a counting filter is fixed, so the files are read twice at the
 * start: to count, and to fill it. When the cache has outgrown the filter, or
 * another index stands at the path (Squid writes one at every start and at
 * every rotation), all is read again. So whatever went wrong before, an index
 * that was damaged or a proxy that was killed, is forgotten then.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/digest/cache.h"
#include "report/say.h"

#define LEAST_CAPACITY 1000
#define ROOM_TO_GROW 1.25
#define CHUNK 4096 /* file numbers that get memory together */
#define NCHUNKS (JOURNAL_FILES / CHUNK)

static const unsigned char no_key[CELLS_KEY];

/* --------------------------------------------------- which key is in a file */

/* NULL: no memory, or, unless `makes`, none of the numbers near it is taken. */
static unsigned char *file_key(struct cache *c, unsigned dir, uint32_t file,
                               bool makes)
{
    if (dir >= JOURNAL_DIRS || file >= JOURNAL_FILES)
        return NULL;
    if (!c->files[dir] && makes)
        c->files[dir] = calloc(NCHUNKS, sizeof *c->files[dir]);
    if (!c->files[dir])
        return NULL;
    unsigned char(**const at)[CELLS_KEY] = &c->files[dir][file / CHUNK];
    if (!*at && makes)
        *at = calloc(CHUNK, sizeof **at);
    return *at ? (*at)[file % CHUNK] : NULL;
}

static void dir_empty(struct cache *c, unsigned dir)
{
    for (size_t i = 0; c->files[dir] && i < NCHUNKS; i++)
        free(c->files[dir][i]);
    free(c->files[dir]);
    c->files[dir] = NULL;
}

/* Fill the cells from the keys in files. */
static void cells_fill(struct cache *c)
{
    for (unsigned d = 0; d < JOURNAL_DIRS; d++)
        for (size_t i = 0; c->files[d] && i < NCHUNKS; i++)
            for (size_t j = 0; c->files[d][i] && j < CHUNK; j++) {
                const unsigned char *const key = c->files[d][i][j];
                if (memcmp(key, no_key, CELLS_KEY) != 0)
                    cells_add(&c->cells, key);
            }
}

/* ------------------------------------------------------------------ events */

static bool count_event(void *ctx, const struct journal_event *e)
{
    int64_t *const n = ctx;
    *n += e->came ? 1 : -1;
    return true;
}

/* Of an index: the key says it all. */
static bool take_key(void *ctx, const struct journal_event *e)
{
    struct cache *const c = ctx;
    if (e->came)
        cells_add(&c->cells, e->key);
    else if (!cells_remove(&c->cells, e->key))
        return true;
    c->counts.came += e->came;
    c->counts.went += !e->came;
    c->changes++;
    return true;
}

/* Of a log: the file says whose place was taken, or became free. */
static bool take_file(void *ctx, const struct journal_event *e)
{
    struct cache *const c = ctx;
    unsigned char *const now = file_key(c, e->dir, e->file, e->came);
    if (!now) {
        c->counts.strays += !e->came;
        return !e->came;
    }
    const bool had = memcmp(now, no_key, CELLS_KEY) != 0;
    if (e->came && had && memcmp(now, e->key, CELLS_KEY) == 0)
        return true;
    if (had) {
        cells_remove(&c->cells, now);
        memset(now, 0, CELLS_KEY);
        c->counts.went++;
    } else if (!e->came) {
        c->counts.strays++;
        return true;
    }
    if (e->came) {
        memcpy(now, e->key, CELLS_KEY);
        cells_add(&c->cells, now);
        c->counts.came++;
    }
    c->changes++;
    return true;
}

/* The same, before there are cells. */
static bool note_file(void *ctx, const struct journal_event *e)
{
    struct cache *const c = ctx;
    unsigned char *const now = file_key(c, e->dir, e->file, e->came);
    if (now)
        memcpy(now, e->came ? e->key : no_key, CELLS_KEY);
    return now || !e->came;
}

/* ----------------------------------------------------------------- reading */

static bool cache_failed(struct cache *c, const char *path, const char *why)
{
    trouble_tell(&c->trouble, path, why, true);
    return false;
}

/* Read an index from its beginning. */
static bool index_read(struct cache *c, struct journal *j, journal_each *each,
                       void *ctx)
{
    char why[JOURNAL_NAME];
    if (!journal_open(j, j->path, false, why) ||
        journal_read(j, each, ctx, why) == JOURNAL_FAILED)
        return cache_failed(c, j->path, why);
    return true;
}

/* What an index says, without moving where it is followed: a file that cannot
 * be read must not cost what is known. */
static bool index_count(struct cache *c, const char *path, int64_t *n)
{
    struct journal probe = { .fd = -1 };
    char why[JOURNAL_NAME] = "not a swap.state any more";
    const bool ok = journal_open(&probe, path, false, why) && !probe.is_log &&
                    journal_read(&probe, count_event, n, why) != JOURNAL_FAILED;
    journal_close(&probe);
    return ok || cache_failed(c, path, why);
}

static uint64_t room_for(const struct cache *c, int64_t entries)
{
    const double n = ROOM_TO_GROW * (double)(entries > 0 ? entries : 0);
    const uint64_t least = c->least ? c->least : LEAST_CAPACITY;
    return n > (double)least ? (uint64_t)n : least;
}

static bool cells_new(struct cache *c, int64_t entries)
{
    const uint64_t strays = c->cells.strays;
    if (cells_make(&c->cells, &c->spec, room_for(c, entries)))
        return cache_failed(c, c->journals[0].path, bly_error());
    c->counts.strays += strays;
    return true;
}

static int64_t entries_in_files(const struct cache *c)
{
    int64_t n = 0;
    for (unsigned d = 0; d < JOURNAL_DIRS; d++)
        for (size_t i = 0; c->files[d] && i < NCHUNKS; i++)
            for (size_t k = 0; c->files[d][i] && k < CHUNK; k++)
                n += memcmp(c->files[d][i][k], no_key, CELLS_KEY) != 0;
    return n;
}

/* From the indexes. All are read whole, so what fails leaves too little; the
 * old cells stay until the new ones are filled only where counting failed. */
static bool rebuild_from_indexes(struct cache *c)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->njournals; i++)
        if (!index_count(c, c->journals[i].path, &n))
            return false;
    pthread_mutex_lock(&c->lock);
    bool ok = cells_new(c, n);
    for (size_t i = 0; i < c->njournals && ok; i++)
        ok = index_read(c, &c->journals[i], take_key, c);
    c->counts.rebuilt++;
    c->changes++;
    c->wrong = !ok;
    pthread_mutex_unlock(&c->lock);
    return ok;
}

/* With new cells, from the keys in files, those of indexes read again. */
static bool rebuild_from_files(struct cache *c, bool reads)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->nbegin && reads; i++)
        if (!index_count(c, c->begin[i].path, &n))
            return false;
    bool ok = true;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->nbegin && reads && ok; i++) {
        dir_empty(c, (unsigned)i);
        ok = index_read(c, &c->begin[i], note_file, c);
    }
    if (cells_new(c, entries_in_files(c)))
        cells_fill(c);
    else
        ok = false;
    c->counts.rebuilt++;
    c->changes++;
    c->wrong = !ok;
    pthread_mutex_unlock(&c->lock);
    return ok;
}

static bool is_outgrown(const struct cache *c)
{
    return c->cells.entries > c->cells.capacity;
}

static void read_indexes(struct cache *c)
{
    char why[JOURNAL_NAME];
    bool anew = c->wrong || is_outgrown(c), ok = true;
    for (size_t i = 0; i < c->njournals && !c->wrong; i++) {
        struct journal *const j = &c->journals[i];
        pthread_mutex_lock(&c->lock);
        const enum journal_was was = journal_read(j, take_key, c, why);
        pthread_mutex_unlock(&c->lock);
        anew |= was == JOURNAL_ANEW;
        if (was == JOURNAL_FAILED)
            ok = cache_failed(c, j->path, why);
    }
    if (ok && (!anew || rebuild_from_indexes(c)))
        trouble_over(&c->trouble, c->journals[0].path);
}

static void read_log(struct cache *c)
{
    struct journal *const j = &c->journals[0];
    char why[JOURNAL_NAME];
    bool reads = c->wrong, ok = true;
    for (size_t i = 0; i < c->nbegin; i++)
        reads |= journal_replaced(&c->begin[i]);
    if (reads || is_outgrown(c))
        ok = rebuild_from_files(c, reads);
    pthread_mutex_lock(&c->lock);
    const enum journal_was was = journal_read(j, take_file, c, why);
    pthread_mutex_unlock(&c->lock);
    if (was == JOURNAL_FAILED)
        ok = cache_failed(c, j->path, why);
    if (ok)
        trouble_over(&c->trouble, j->path);
}

void cache_read(struct cache *c)
{
    if (c->journals[0].is_log)
        read_log(c);
    else
        read_indexes(c);
}

/* ------------------------------------------------------ beginning and end */

static bool journals_open(struct journal **to, size_t *n,
                          const struct list *names)
{
    char why[JOURNAL_NAME];
    *to = calloc(names->n ? names->n : 1, sizeof **to);
    if (!*to)
        return refuse("out of memory");
    for (size_t i = 0; i < names->n; i++) {
        (*to)[i] = (struct journal){ .fd = -1, .dir = (unsigned)i };
        if (!journal_open(&(*to)[i], names->at[i], true, why))
            return refuse("%s: %s", names->at[i], why);
        ++*n;
    }
    return true;
}

static bool kinds_fit(const struct cache *c)
{
    const bool is_log = c->journals[0].is_log;
    for (size_t i = 0; i < c->njournals; i++)
        if (is_log && c->njournals > 1)
            return refuse("%s: a store.log tells of all cache_dirs, so it is "
                          "followed alone; the swap.state files to begin with "
                          "are given with --begin",
                          c->journals[0].path);
        else if (c->journals[i].is_log != is_log)
            return refuse("%s: a store.log, and the others are not",
                          c->journals[i].path);
    for (size_t i = 0; i < c->nbegin; i++)
        if (!is_log || c->begin[i].is_log)
            return refuse("%s: --begin takes the swap.state files for a "
                          "store.log",
                          c->begin[i].path);
    return true;
}

bool cache_open(struct cache *c, const struct list *files,
                const struct list *begin)
{
    pthread_mutex_init(&c->lock, NULL);
    if (files->n > JOURNAL_DIRS || begin->n > JOURNAL_DIRS)
        return refuse("Squid has at most %d cache_dirs", JOURNAL_DIRS);
    if (!journals_open(&c->journals, &c->njournals, files) ||
        !journals_open(&c->begin, &c->nbegin, begin) || !kinds_fit(c))
        return false;
    /* A log is read from where it ended before the indexes were. Without one,
     * from its beginning: it tells of what came since then. */
    char why[JOURNAL_NAME];
    if (c->journals[0].is_log && !c->nbegin &&
        !journal_open(&c->journals[0], files->at[0], false, why))
        return refuse("%s: %s", files->at[0], why);
    if (!(c->journals[0].is_log ? rebuild_from_files(c, true)
                                : rebuild_from_indexes(c)))
        return false;
    c->counts = (struct cache_counts){ 0 };
    cache_read(c);
    return true;
}

bool cache_digest(struct cache *c, struct digest_copy *out)
{
    char why[JOURNAL_NAME];
    *out = (struct digest_copy){ .modified = (int64_t)time(NULL) };
    pthread_mutex_lock(&c->lock);
    out->nbytes = cells_bytes(&c->cells);
    out->bytes = malloc(out->nbytes);
    if (out->bytes)
        cells_digest(&c->cells, out->bytes);
    pthread_mutex_unlock(&c->lock);
    if (!out->bytes || !digest_check(out, why, sizeof why)) {
        free(out->bytes);
        return false;
    }
    return true;
}

struct cache_counts cache_count(struct cache *c)
{
    pthread_mutex_lock(&c->lock);
    struct cache_counts n = c->counts;
    n.strays += c->cells.strays;
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->njournals; i++) {
        n.records += c->journals[i].records;
        n.unknown += c->journals[i].unknown;
        n.cut += c->journals[i].cut;
        n.rotations += c->journals[i].rotations;
    }
    return n;
}

void cache_close(struct cache *c)
{
    for (size_t i = 0; i < c->njournals; i++)
        journal_close(&c->journals[i]);
    for (size_t i = 0; i < c->nbegin; i++)
        journal_close(&c->begin[i]);
    free(c->journals);
    free(c->begin);
    for (unsigned d = 0; d < JOURNAL_DIRS; d++)
        dir_empty(c, d);
    cells_free(&c->cells);
    pthread_mutex_destroy(&c->lock);
}

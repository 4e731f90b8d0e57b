/*
 * place_keys.c - bloomery ring place: all rules on the same keys, as a table
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apps/ring/placing.h"
#include "base/grow.h"
#include "io/keys.h"
#include "report/say.h"

#define MOST_KEYS (UINT64_C(1) << 31)

/* -------------------------------------------------------------------- keys */

struct gathered {
    pthread_mutex_t lock;
    uint64_t *hashes;
    size_t n, room;
};

static bly_status gather_batch(struct job *job, struct batch *b)
{
    struct gathered *const g = job->ctx;
    bly_status st = BLY_OK;
    pthread_mutex_lock(&g->lock);
    if (!GROW(&g->hashes, &g->room, g->n + b->n)) {
        b->why = "no memory for the hashes of keys";
        st = BLY_ENOMEM;
    }
    if (!st) {
        memcpy(g->hashes + g->n, b->hashes, b->n * sizeof *b->hashes);
        g->n += b->n;
    }
    pthread_mutex_unlock(&g->lock);
    return st;
}

/* The hashes of the keys in files, or of the numbers 0 to n - 1. */
static bool gather_keys(const struct placing_args *args,
                        const struct list *inputs, const bly_hasher *hasher,
                        struct gathered *g)
{
    if (!inputs->n) {
        g->n = (size_t)(args->keys ? args->keys : 1000000);
        g->hashes = g->n <= MOST_KEYS ? malloc(g->n * sizeof *g->hashes) : NULL;
        if (!g->hashes)
            return refuse("--keys: no memory for %zu keys", g->n);
        for (size_t i = 0; i < g->n; i++) {
            const uint64_t number = i;
            bly_hash_ints(hasher, &number, 1, &g->hashes[i]);
        }
        return true;
    }
    if (args->keys)
        return refuse("--keys and files of keys exclude each other");
    const struct keys from = { 0 };
    struct input in;
    if (!keys_files(&from, (const char *const *)inputs->at, inputs->n, &in))
        return false;
    struct job job = { .hasher = hasher,
                       .batch = gather_batch,
                       .in_order = true,
                       .nthreads = 1,
                       .ctx = g };
    const bool ok = pipeline_run(&job, &in) == BLY_OK;
    input_close(&in);
    if (!ok)
        return refuse("%s", job.error);
    if (!g->n)
        return refuse("there are no keys in the input");
    return true;
}

/* ---------------------------------------------------------------- the table */

const struct field placing_fields[] = {
    FIELD(struct placing_result, members, NONE, "members"),
    FIELD(struct placing_result, keys, NONE, "keys"),
    NAMED(struct placing_result, "least_joined", ideal_join, SHARE,
          "share of keys that has to move when a member comes"),
    NAMED(struct placing_result, "least_left", ideal_leave, SHARE,
          "share of keys that has to move when a member goes"),
    LIST(struct placing_result, "rules", rules, n, AT, placed_fields,
         "each rule"),
    { 0 },
};

static const struct {
    const char *rule;
    uint32_t points;
} place_lines[] = {
    { NULL, 0 },         { "ring", 1 }, { "ring", 16 }, { "ring", 128 },
    { "rendezvous", 0 }, { "jump", 0 }, { "table", 0 }, { "bounded", 128 },
};
#define NLINES (sizeof place_lines / sizeof place_lines[0])

static void placing_print(const struct placing_result *r)
{
    report(stdout, false, placing_fields, r,
           "{keys} keys on {members} members; when one comes, {least_joined} "
           "have to move\n\n");
    printf("%-12s%8s%10s%10s%10s%10s%10s%12s\n", "rule", "points", "largest",
           "moved by", "needless", "moved by", "ns per", "bytes");
    printf("%-12s%8s%10s%10s%10s%10s%10s\n", "", "", "/ mean", "a join", "",
           "a leave", "lookup");
    for (size_t i = 0; i < r->n; i++) {
        const struct placed *const p = &r->rules[i];
        char points[24] = "";
        if (p->points)
            snprintf(points, sizeof points, "%llu",
                     (unsigned long long)p->points);
        printf("%-12s%8s%10.3f%9.2f%%%9.2f%%%9.2f%%%10.1f%12llu\n", p->rule,
               points, p->largest, 100 * p->joined, 100 * p->needless,
               100 * p->left, p->nanoseconds, (unsigned long long)p->bytes);
    }
}

int ring_place(const struct placing_args *args, const struct list *inputs)
{
    struct gathered g = { .lock = PTHREAD_MUTEX_INITIALIZER };
    const bly_hasher hasher = { .id = BLY_HASH_XXH3, .seed = args->seed };
    const size_t n = (size_t)(args->members ? args->members : 10);
    struct placed rules[NLINES];
    if (n >= BLY_PLACE_MOST)
        return fail("--members must be from 1 to %d", BLY_PLACE_MOST - 1);
    if (args->points > BLY_PLACE_MOST_POINTS)
        return fail("--points must be from 1 to %d", BLY_PLACE_MOST_POINTS);
    bly_bytes *const names = placing_names(n + 1);
    int status =
        names && gather_keys(args, inputs, &hasher, &g) ? YES : TROUBLE;
    const struct placing how = { .names = names,
                                 .n = n,
                                 .hashes = g.hashes,
                                 .nkeys = g.n,
                                 .slack = args->slack,
                                 .seed = args->seed };
    for (size_t i = 0; status == YES && i < NLINES; i++) {
        uint32_t points = place_lines[i].points;
        if (points == 128 && args->points)
            points = (uint32_t)args->points;
        if (!placing_measure(&how, place_lines[i].rule, points, &rules[i]))
            status = TROUBLE;
    }
    const struct placing_result r = {
        n, g.n, 1 / (double)(n + 1), 1 / (double)n, rules, NLINES
    };
    if (status == YES && args->json)
        report(stdout, true, placing_fields, &r, NULL);
    else if (status == YES)
        placing_print(&r);
    free(names);
    free(g.hashes);
    return status;
}

/*
 * bench.c - bloomery redis bench: what an item costs a server
 *
 * The server's own clocks are read before and after: the time that it spent
 * inside a command (INFO commandstats) and all that its main thread worked,
 * reading and answering included (INFO cpu). The network, this program and
 * whoever else has the processor do not count; other clients of the server do,
 * in the second figure. Commands are sent ahead by the thousand, so that the
 * server never waits. Every figure is the median of ROUNDS rounds in turn.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "apps/redis/redis_router.h"
#include "report/say.h"

#define ROUNDS 3
#define ITEMS_DEFAULT 100000u
#define ITEMS_MAX 10000000u
#define AHEAD 1000u /* items that are sent before answers are read */
#define BATCH_MOST 100

/* One command, in one size. `makes` is how its key is made, NULL for a key an
 * item; `asks` is an item that the row before has added. */
struct bench_row {
    const char *command;
    unsigned batch;
    const char *makes;
    bool asks;
};

#define MAKE_BF "BF.RESERVE %s 0.01 %llu"
#define MAKE_BLY "BLY.CREATE %s blocked CAPACITY %llu FPR 0.01"

static const struct bench_row bench_rows[] = {
    { "SET", 1, NULL, false },           { "GET", 1, NULL, true },
    { "BF.ADD", 1, MAKE_BF, false },     { "BF.EXISTS", 1, MAKE_BF, true },
    { "BF.MADD", 16, MAKE_BF, false },   { "BF.MEXISTS", 16, MAKE_BF, true },
    { "BF.MADD", 100, MAKE_BF, false },  { "BF.MEXISTS", 100, MAKE_BF, true },
    { "BLY.ADD", 1, MAKE_BLY, false },   { "BLY.HAS", 1, MAKE_BLY, true },
    { "BLY.ADD", 16, MAKE_BLY, false },  { "BLY.HAS", 16, MAKE_BLY, true },
    { "BLY.ADD", 100, MAKE_BLY, false }, { "BLY.HAS", 100, MAKE_BLY, true },
};
#define NROWS (sizeof bench_rows / sizeof bench_rows[0])

struct benching {
    struct router r;
    char key[64]; /* "bloomery:bench:{5e1f}" */
    unsigned slot;
    uint64_t items;
    char version[32];
    double in_command[NROWS][ROUNDS]; /* ns per item */
    double on_cpu[NROWS][ROUNDS];
};

/* ----------------------------------------------------- the server's clocks */

struct server_clock {
    double command_us, cpu_s;
};

/* The number behind a word of INFO; 0 where it is not there. */
static double info_number(const char *text, const char *word)
{
    const char *const at = strstr(text, word);
    return at ? strtod(at + strlen(word), NULL) : 0;
}

static bool read_clock(struct benching *b, const char *command,
                       struct server_clock *out)
{
    redisReply *const info =
        router_call(&b->r, b->key, true, "INFO everything");
    if (!info)
        return false;
    const char *const text = info->str ? info->str : "";
    char word[64] = "cmdstat_";
    size_t n = strlen(word);
    for (; *command && n + 2 < sizeof word; command++)
        word[n++] = (char)(*command >= 'A' && *command <= 'Z' ? *command | 32
                                                              : *command);
    word[n++] = ':';
    word[n] = '\0';
    const char *const row = strstr(text, word);
    out->command_us = row ? info_number(row, "usec=") : 0;
    out->cpu_s = strstr(text, "used_cpu_user_main_thread:")
                     ? info_number(text, "used_cpu_user_main_thread:") +
                           info_number(text, "used_cpu_sys_main_thread:")
                     : info_number(text, "used_cpu_user:") +
                           info_number(text, "used_cpu_sys:");
    const char *version = strstr(text, "_version:");
    version = version ? strchr(version, ':') + 1 : "";
    snprintf(b->version, sizeof b->version, "%.*s",
             (int)strcspn(version, "\r\n"), version);
    freeReplyObject(info);
    return true;
}

/* --------------------------------------------------------------- commands */

/* The command for n items from i on. False: r->why. */
static bool bench_command(struct benching *b, const char *command,
                          const char *key, bool is_key, uint64_t i, unsigned n,
                          struct wire_command *w)
{
    char items[BATCH_MOST][96];
    const char *words[BATCH_MOST + 3] = { command };
    int nwords = 1;
    if (!is_key)
        words[nwords++] = key;
    for (unsigned k = 0; k < n; k++) {
        snprintf(items[k], sizeof items[k], is_key ? "%s:%llu" : "%.0s%llu",
                 key, (unsigned long long)(i + k));
        words[nwords++] = items[k];
    }
    if (strcmp(command, "SET") == 0)
        words[nwords++] = "1";
    const int len = redisFormatCommandArgv(&w->bytes, nwords, words, NULL);
    w->len = len < 0 ? 0 : (size_t)len;
    return len >= 0 || router_explain(&b->r, key, "out of memory");
}

/* A command over all items, sent ahead. False: r->why. */
static bool bench_items(struct benching *b, const char *command,
                        const char *key, bool is_key, unsigned batch)
{
    struct ticket tickets[AHEAD];
    for (uint64_t from = 0; from < b->items;) {
        uint64_t i = from;
        size_t nsent = 0;
        struct wire_command w;
        for (; i < b->items && nsent < AHEAD && i - from < AHEAD; nsent++) {
            const uint64_t left = b->items - i;
            const unsigned n = left < batch ? (unsigned)left : batch;
            if (!bench_command(b, command, key, is_key, i, n, &w))
                return false;
            tickets[nsent] = router_send(&b->r, b->slot, &w);
            redisFreeCommand(w.bytes);
            i += n;
        }
        for (size_t k = 0; k < nsent; k++) {
            redisReply *const reply =
                router_answer(&b->r, tickets[k], b->slot, NULL, false);
            if (!reply)
                return false;
            const bool ok = reply->type != REDIS_REPLY_ERROR ||
                            router_explain(&b->r, key, reply->str);
            freeReplyObject(reply);
            if (!ok)
                return false;
        }
        from = i;
    }
    return true;
}

static bool bench_row(struct benching *b, size_t row, int round)
{
    const struct bench_row *const what = &bench_rows[row];
    const uint64_t items = b->items;
    char key[96];
    snprintf(key, sizeof key, "%s:%zu", b->key, what->asks ? row - 1 : row);
    if (what->makes && !what->asks) {
        redisReply *const made = router_call(&b->r, b->key, true, what->makes,
                                             key, (unsigned long long)items);
        if (!made)
            return false;
        freeReplyObject(made);
    }
    struct server_clock before, after;
    if (!read_clock(b, what->command, &before) ||
        !bench_items(b, what->command, key, !what->makes, what->batch) ||
        !read_clock(b, what->command, &after))
        return false;
    b->in_command[row][round] =
        (after.command_us - before.command_us) * 1e3 / (double)items;
    b->on_cpu[row][round] = (after.cpu_s - before.cpu_s) * 1e9 / (double)items;
    if (what->asks && !what->makes)
        return bench_items(b, "UNLINK", key, true, BATCH_MOST);
    if (what->asks)
        freeReplyObject(router_call(&b->r, b->key, true, "UNLINK %s", key));
    return true;
}

/* ---------------------------------------------------------------- results */

static int bench_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double bench_median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, bench_order);
    return values[ROUNDS / 2];
}

static void bench_print(struct benching *b, const struct redis_args *args)
{
    struct redis_bench_row rows[NROWS];
    for (size_t i = 0; i < NROWS; i++)
        rows[i] = (struct redis_bench_row){ bench_rows[i].command,
                                            bench_rows[i].batch,
                                            bench_median(b->in_command[i]),
                                            bench_median(b->on_cpu[i]) };
    report(stdout, args->json, redis_benched_fields,
           &(struct redis_benched){ b->version, b->items, ROUNDS, rows, NROWS },
           "server {server}, {items} items, ns per item\n"
           "command       items   in command  main thread\n");
    for (size_t i = 0; !args->json && i < NROWS; i++)
        report_text(
            stdout, redis_row_fields, &rows[i],
            "{command:-12} {batch:6} {command_ns:12.0} {cpu_ns:12.0}\n");
}

int redis_bench(const struct redis_args *args, struct list *operands)
{
    uint32_t number = 0;
    if (operands->n)
        return fail("bench takes no operands; usage: bloomery redis bench");
    if (args->sizing.items > ITEMS_MAX)
        return fail("--items %llu: at most %u here",
                    (unsigned long long)args->sizing.items, ITEMS_MAX);
    struct benching *const b = calloc(1, sizeof *b);
    if (!b || getrandom(&number, sizeof number, 0) != sizeof number) {
        free(b);
        return fail("out of memory");
    }
    b->items = args->sizing.items ? args->sizing.items : ITEMS_DEFAULT;
    snprintf(b->key, sizeof b->key, "bloomery:bench:{%x}", number);
    b->slot = key_slot(b->key, strlen(b->key));
    bool ok = router_open(&b->r, &args->login);
    for (int round = 0; ok && round < ROUNDS; round++)
        for (size_t i = 0; ok && i < NROWS; i++)
            ok = bench_row(b, i, round);
    if (!ok)
        fail("%s", b->r.why);
    else if (!quiet)
        bench_print(b, args);
    router_close(&b->r);
    free(b);
    return ok ? YES : TROUBLE;
}

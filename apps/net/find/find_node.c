/*
 * find_node.c - a server of resource discovery as a process
 *
 * One thread, the loop of wire/runtime.h, around a finder.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/net/find/find.h"
#include "base/clock.h"
#include "wire/serving.h"
#include "report/say.h"

#define USUAL_PERIOD 1000
#define USUAL_PATIENCE 250

struct find_node {
    struct finder finder;
    struct runtime *runtime;
    uint64_t period;
};

static void node_ask(void *ctx, const struct address *to, uint8_t type,
                     struct blob *body, uint64_t tag)
{
    struct find_node *const n = ctx;
    runtime_ask(n->runtime, to, type, 0, body, tag);
}

static void node_question(void *ctx, uint64_t line, const struct frame *f)
{
    struct find_node *const n = ctx;
    const char *why = "";
    const enum frame_error error =
        finder_question(&n->finder, f, clock_ms(), &why);
    if (error)
        runtime_refuse(n->runtime, line, f, error, why);
    else
        runtime_answer(n->runtime, line, f, 0, &n->finder.blob);
}

static void node_answer(void *ctx, uint64_t tag, const struct frame *f)
{
    struct find_node *const n = ctx;
    finder_answer(&n->finder, tag, f);
}

static void node_period(void *ctx, uint64_t data)
{
    struct find_node *const n = ctx;
    finder_tick(&n->finder, clock_ms());
    runtime_after(n->runtime, n->period, data);
}

static void node_woken(void *ctx)
{
    struct find_node *const n = ctx;
    if (serving_told())
        runtime_stop(n->runtime);
}

static bool node_links(struct finder *f, const struct find_args *args)
{
    struct address at;
    for (size_t i = 0; i < args->neighbours.n; i++)
        if (!address_parse(args->neighbours.at[i], &at) || !finder_link(f, &at))
            return false;
    return !args->parent || address_parse(args->parent, &f->parent);
}

int net_node(const struct find_args *args)
{
    struct find_node *const n = calloc(1, sizeof *n);
    struct secure_secret secret;
    struct finder_args sizes = { .keys = args->keys,
                                 .depth = args->depth,
                                 .life = 1000 * args->life };
    finder_usual(&sizes);
    if (!n || !secure_read(args->key_file, &secret)) {
        free(n);
        return n ? TROUBLE : fail("no memory for a server");
    }
    n->period = args->period ? args->period : USUAL_PERIOD;
    n->finder.ask = node_ask;
    n->finder.ctx = n;
    int status = TROUBLE;
    const int listener = address_listen(args->listen, &n->finder.self);
    const bool ready = listener >= 0 &&
                       finder_new(&n->finder, &sizes, serving_life()) &&
                       node_links(&n->finder, args);
    const struct runtime_spec how = {
        .listener = listener,
        .secret = &secret,
        .ring = finder_network(args->network ? args->network : "net", &sizes),
        .least = args->patience ? args->patience : USUAL_PATIENCE,
        .question = node_question,
        .answer = node_answer,
        .timer = node_period,
        .woken = node_woken,
        .ctx = n,
    };
    n->runtime = ready ? runtime_new(&how) : NULL;
    if (n->runtime) {
        serving_begin(n->runtime, &n->finder.self);
        runtime_after(n->runtime, 1, 0);
        status = runtime_run(n->runtime) ? YES : TROUBLE;
        serving_end();
    }
    if (listener >= 0)
        close(listener);
    runtime_free(n->runtime);
    finder_free(&n->finder);
    free(n);
    return status;
}

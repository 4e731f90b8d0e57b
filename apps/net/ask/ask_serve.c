/*
 * ask_serve.c - a router that answers questions about packets
 *
 * A thread beside the one that forwards has the loop of wire/runtime.h. What
 * can be answered at once is; walks, which wait for others, have a thread each,
 * and there are few of them: more are refused, and who asks says so.
 *
 * Every few seconds neighbours are asked who theirs are, in case that they do
 * not answer when it matters.
 */
#define _GNU_SOURCE
#include "apps/net/ask/ask_serve.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/net/ask/ask_walk.h"
#include "report/say.h"
#include "wire/runtime.h"

#define WALKS 8        /* at the same time */
#define WHO_EVERY 5000 /* milliseconds */
#define LEAST 250      /* of the timeouts of these questions */
#define PATIENCE 500   /* that a neighbour may take to say that it is there */
#define MOST_MS 60000  /* of a walk */

struct walk_job {
    bool used, done;
    struct ask_server *server;
    uint64_t line;
    struct frame to; /* what is answered */
    struct ask_question q;
    struct ask_self self;
    struct ask_tree tree;
    pthread_t thread;
};

struct ask_server {
    struct ask_self self; /* under the lock */
    pthread_mutex_t lock;
    struct secure_secret secret;
    struct runtime *runtime;
    struct blob blob;
    struct walk_job jobs[WALKS];
    pthread_t thread;
    int listener;
    bool ends; /* under the lock */
    uint64_t asked, refused;
};

/* ---------------------------------------------------------------------- walks
 */

static void *walk_run(void *ctx)
{
    struct walk_job *const j = ctx;
    struct caller *const c = calloc(1, sizeof *c);
    if (c) {
        c->secret = &j->server->secret;
        c->ring = ASK_RING;
        ask_walk(&j->self, &j->q, c, &j->tree);
        call_close(c);
    }
    free(c);
    pthread_mutex_lock(&j->server->lock);
    j->done = true;
    pthread_mutex_unlock(&j->server->lock);
    runtime_wake(j->server->runtime);
    return NULL;
}

static bool walk_begin(struct ask_server *s, uint64_t line,
                       const struct frame *f, const struct ask_question *q)
{
    struct walk_job *j = s->jobs;
    while (j < s->jobs + WALKS && j->used)
        j++;
    if (j == s->jobs + WALKS)
        return false;
    *j = (struct walk_job){ .used = true, .server = s, .line = line };
    j->to = *f;
    j->to.body = NULL;
    j->to.nbody = 0;
    j->q = *q;
    if (j->q.ms > MOST_MS)
        j->q.ms = MOST_MS;
    pthread_mutex_lock(&s->lock);
    j->self = s->self;
    pthread_mutex_unlock(&s->lock);
    j->used = pthread_create(&j->thread, NULL, walk_run, j) == 0;
    return j->used;
}

static void server_woken(void *ctx)
{
    struct ask_server *const s = ctx;
    for (unsigned i = 0; i < WALKS; i++) {
        struct walk_job *const j = &s->jobs[i];
        pthread_mutex_lock(&s->lock);
        const bool done = j->used && j->done;
        pthread_mutex_unlock(&s->lock);
        if (!done)
            continue;
        pthread_join(j->thread, NULL);
        ask_put_tree(&s->blob, &j->tree);
        runtime_answer(s->runtime, j->line, &j->to, 0, &s->blob);
        j->used = false;
    }
    pthread_mutex_lock(&s->lock);
    const bool ends = s->ends;
    pthread_mutex_unlock(&s->lock);
    if (ends)
        runtime_stop(s->runtime);
}

/* ------------------------------------------------------------------ questions
 */

static void question_mark(struct ask_server *s, uint64_t line,
                          const struct frame *f, const struct ask_question *q)
{
    struct ask_node node;
    const struct mark *mark;
    bool fits = false;
    pthread_mutex_lock(&s->lock);
    const bool knows = ask_own(&s->self, q, &node, &mark, &fits);
    pthread_mutex_unlock(&s->lock);
    if (!knows) {
        runtime_refuse(s->runtime, line, f, FRAME_REFUSED, "no neighbour");
        return;
    }
    blob_start(&s->blob);
    blob_number(&s->blob, fits, 1);
    blob_number(&s->blob, node.left, 1);
    blob_number(&s->blob, node.all, 1);
    runtime_answer(s->runtime, line, f, 0, &s->blob);
}

static void question_who(struct ask_server *s, uint64_t line,
                         const struct frame *f)
{
    struct ask_links *const all = calloc(1, sizeof *all);
    if (!all) {
        runtime_refuse(s->runtime, line, f, FRAME_BUSY, "no memory");
        return;
    }
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->self.n; i++)
        all->at[all->n++] = s->self.links[i].link;
    pthread_mutex_unlock(&s->lock);
    ask_put_links(&s->blob, all);
    runtime_answer(s->runtime, line, f, 0, &s->blob);
    free(all);
}

static void server_question(void *ctx, uint64_t line, const struct frame *f)
{
    struct ask_server *const s = ctx;
    static struct ask_question q; /* of this thread alone */
    s->asked++;
    if (f->type == ASK_WHO && !f->nbody) {
        question_who(s, line, f);
    } else if ((f->type != ASK_MARK && f->type != ASK_WALK) ||
               !ask_take(f, &q)) {
        s->refused++;
        runtime_refuse(s->runtime, line, f, FRAME_WRONG,
                       "no question about a packet");
    } else if (f->type == ASK_MARK) {
        question_mark(s, line, f, &q);
    } else if (!walk_begin(s, line, f, &q)) {
        s->refused++;
        runtime_refuse(s->runtime, line, f, FRAME_BUSY,
                       "too many questions at once");
    }
}

/* ----------------------------------------------------------------- neighbours
 */

static void server_period(void *ctx, uint64_t data)
{
    struct ask_server *const s = ctx;
    for (unsigned i = 0; i < s->self.n; i++)
        if (s->self.links[i].link.at.family) {
            blob_start(&s->blob);
            runtime_ask(s->runtime, &s->self.links[i].link.at, ASK_WHO, 0,
                        &s->blob, i);
        }
    runtime_after(s->runtime, WHO_EVERY, data);
}

static void server_answer(void *ctx, uint64_t tag, const struct frame *f)
{
    struct ask_server *const s = ctx;
    struct ask_links *const known = f ? malloc(sizeof *known) : NULL;
    if (known && !(f->flags & FRAME_ERROR) && tag < s->self.n &&
        ask_take_links(f, known)) {
        pthread_mutex_lock(&s->lock);
        s->self.links[tag].known = *known;
        pthread_mutex_unlock(&s->lock);
    }
    free(known);
}

/* ------------------------------------------------------------------ beginning
 */

/* "NAME=ADDRESS:PORT", of a neighbour of --link. */
static bool neighbour_set(struct ask_self *self, const char *text)
{
    const char *const equals = strchr(text, '=');
    for (unsigned i = 0; equals && i < self->n; i++) {
        struct ask_link *const l = &self->links[i].link;
        if (strlen(l->name) == (size_t)(equals - text) &&
            strncmp(l->name, text, (size_t)(equals - text)) == 0)
            return address_parse(equals + 1, &l->at);
    }
    return refuse("--neighbour: %s; expected NAME=ADDRESS:PORT, with the NAME "
                  "of a --link",
                  text);
}

static bool self_make(struct ask_self *self, const struct router_args *args)
{
    if (!ask_name_set(self->name, args->name))
        return refuse("--name: at most %d bytes", ASK_NAME - 1);
    for (; self->n < args->links.n && self->n < ASK_LINKS; self->n++) {
        const char *const equals = strchr(args->links.at[self->n], '=');
        if (!ask_name_set(self->links[self->n].link.name, equals + 1))
            return refuse("--link: names have at most %d bytes", ASK_NAME - 1);
    }
    for (size_t i = 0; i < args->neighbours.n; i++)
        if (!neighbour_set(self, args->neighbours.at[i]))
            return false;
    self->patience = PATIENCE;
    return true;
}

static void server_marks(struct ask_server *s, const struct mark *const *ways)
{
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->self.n; i++)
        s->self.links[i].way = *ways[i];
    pthread_mutex_unlock(&s->lock);
}

static void *server_run(void *ctx)
{
    struct ask_server *const s = ctx;
    runtime_run(s->runtime);
    return NULL;
}

static void server_free(struct ask_server *s)
{
    runtime_free(s->runtime);
    if (s->listener >= 0)
        close(s->listener);
    blob_free(&s->blob);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void server_stop(struct ask_server *s, uint64_t *asked,
                        uint64_t *refused)
{
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_mutex_unlock(&s->lock);
    runtime_wake(s->runtime);
    pthread_join(s->thread, NULL);
    for (unsigned i = 0; i < WALKS; i++)
        if (s->jobs[i].used)
            pthread_join(s->jobs[i].thread, NULL);
    *asked = s->asked;
    *refused = s->refused;
    server_free(s);
}

static struct ask_server *server_start(const struct router_args *args,
                                       const struct mark *const *ways)
{
    struct ask_server *const s = calloc(1, sizeof *s);
    struct address at;
    char text[ADDRESS_TEXT];
    if (!s) {
        fail("no memory");
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    s->listener = -1;
    const bool ok = secure_read(args->ask_key, &s->secret) &&
                    self_make(&s->self, args) &&
                    (s->listener = address_listen(args->listen, &at)) >= 0;
    const struct runtime_spec how = { .listener = s->listener,
                                      .secret = &s->secret,
                                      .ring = ASK_RING,
                                      .least = LEAST,
                                      .question = server_question,
                                      .answer = server_answer,
                                      .timer = server_period,
                                      .woken = server_woken,
                                      .ctx = s };
    s->runtime = ok ? runtime_new(&how) : NULL;
    if (s->runtime) {
        server_marks(s, ways);
        runtime_after(s->runtime, 1, 0);
        if (pthread_create(&s->thread, NULL, server_run, s) == 0) {
            address_text(&at, text);
            note("%s answers questions on %s", args->name, text);
            return s;
        }
        fail("no thread for questions");
    }
    server_free(s);
    return NULL;
}

const struct router_ask ask_serve = { server_start, server_marks, server_stop };

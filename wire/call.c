/*
 * call.c - ask nodes and wait for the answer
 */
#define _GNU_SOURCE
#include "wire/call.h"

#include <stdio.h>
#include <string.h>

static bool call_why(struct caller *c, const char *what)
{
    snprintf(c->why, sizeof c->why, "%s", what);
    return false;
}

static void line_drop(struct call_line *l)
{
    if (l->used)
        session_close(&l->session);
    *l = (struct call_line){ 0 };
}

/* It failed: why, and it goes. */
static bool line_failed(struct caller *c, struct call_line *l)
{
    call_why(c, session_why(&l->session));
    c->late = l->session.in.late || l->session.out.late;
    line_drop(l);
    return false;
}

static struct call_line *call_line(struct caller *c, const struct address *to,
                                   int64_t until)
{
    struct call_line *l = &c->lines[0];
    for (size_t i = 0; i < CALL_LINES; i++) {
        struct call_line *const at = &c->lines[i];
        if (at->used && address_equal(&at->to, to))
            return at;
        if (l->used && (!at->used || at->since < l->since))
            l = at;
    }
    line_drop(l);
    *l = (struct call_line){ .used = true, .to = *to };
    l->session.secret = c->secret;
    if (session_connect(&l->session, to, until) &&
        session_greet(&l->session, true, to, until))
        return l;
    line_failed(c, l);
    return NULL;
}

static bool line_send(struct caller *c, struct call_line *l,
                      const struct blob *body, int64_t until)
{
    l->since = session_within(0);
    /* One line at a time keeps the memory of a long answer. */
    if (c->last && c->last != l)
        session_trim(&c->last->session);
    c->last = l;
    return session_put(&l->session, body->at, body->n, until) ||
           line_failed(c, l);
}

static bool line_take_answer(struct caller *c, struct call_line *l,
                             uint32_t request, struct frame *answer,
                             int64_t until)
{
    if (c->last && c->last != l)
        session_trim(&c->last->session);
    c->last = l;
    do
        if (!session_receive(&l->session, answer, until))
            return line_failed(c, l);
    while (answer->request != request || !(answer->flags & FRAME_ANSWER));
    return true;
}

static bool call_once(struct caller *c, const struct address *to,
                      const struct blob *body, uint32_t request,
                      struct frame *answer, int64_t until)
{
    struct call_line *const l = call_line(c, to, until);
    return l && line_send(c, l, body, until) &&
           line_take_answer(c, l, request, answer, until);
}

static bool is_kept(const struct caller *c, const struct address *to)
{
    bool kept = false;
    for (size_t i = 0; i < CALL_LINES; i++)
        kept |= c->lines[i].used && address_equal(&c->lines[i].to, to);
    return kept;
}

bool call_send(struct caller *c, const struct address *to, uint8_t type,
               struct blob *body, uint32_t *request)
{
    const struct frame f = { .type = type,
                             .request = ++c->request,
                             .ring = c->ring };
    const int64_t until = session_within((int64_t)c->timeout);
    c->late = false;
    if (!blob_frame(body, &f))
        return call_why(c, "no memory for a question");
    struct call_line *const l = call_line(c, to, until);
    if (!l)
        return false;
    *request = f.request;
    return line_send(c, l, body, until);
}

bool call_take(struct caller *c, const struct address *to, uint32_t request,
               struct frame *answer)
{
    const int64_t until = session_within((int64_t)c->timeout);
    c->late = false;
    if (!is_kept(c, to))
        return call_why(c, "connection lost");
    struct call_line *const l = call_line(c, to, until);
    return l && line_take_answer(c, l, request, answer, until);
}

bool call_ask(struct caller *c, const struct address *to, uint8_t type,
              struct blob *body, struct frame *answer)
{
    const struct frame f = { .type = type,
                             .request = ++c->request,
                             .ring = c->ring };
    const int64_t until = session_within((int64_t)c->timeout);
    if (!blob_frame(body, &f))
        return call_why(c, "no memory for a question");
    const bool kept = is_kept(c, to);
    if (call_once(c, to, body, f.request, answer, until))
        return true;
    /* One that was kept open may have been closed since. */
    return kept && session_within(0) < until &&
           call_once(c, to, body, f.request, answer, until);
}

enum frame_error call_error(struct caller *c, const struct frame *answer)
{
    if (!(answer->flags & FRAME_ERROR))
        return (enum frame_error)0;
    snprintf(c->why, sizeof c->why, "%.*s",
             answer->nbody > 1 ? (int)answer->nbody - 1 : 0,
             answer->nbody > 1 ? (const char *)answer->body + 1 : "");
    return answer->nbody ? (enum frame_error)answer->body[0] : FRAME_REFUSED;
}

void call_close(struct caller *c)
{
    for (size_t i = 0; i < CALL_LINES; i++)
        line_drop(&c->lines[i]);
    c->last = NULL;
}

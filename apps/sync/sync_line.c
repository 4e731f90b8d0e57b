/*
 * sync_line.c - messages of a sync over a session
 */
#include "apps/sync/sync_line.h"

#include <stdio.h>

#include "report/say.h"

void sync_begin(struct sync_session *s, const struct secure_secret *secret,
                uint64_t timeout)
{
    *s = (struct sync_session){ .timeout =
                                    timeout ? (int64_t)timeout * 1000 : -1 };
    s->session.protocol = SYNC_PROTOCOL;
    s->session.secret = secret;
    s->session.most = SYNC_MESSAGE;
    session_over(&s->session, -1, -1);
}

int64_t sync_until(const struct sync_session *s)
{
    return s->timeout < 0 ? SESSION_NEVER : session_within(s->timeout);
}

void sync_why(const struct sync_session *s, char why[SYNC_WHY])
{
    const bool late = s->session.in.late || s->session.out.late;
    snprintf(why, SYNC_WHY, "%s",
             late ? "the other side is silent, or takes too long for a "
                    "message (--timeout)"
                  : session_why(&s->session));
}

bool sync_reach(struct sync_session *s, const char *where, const char *command)
{
    struct address to;
    char why[SYNC_WHY];
    if (!command && !address_parse(where, &to))
        return false;
    if ((command ? session_spawn(&s->session, command)
                 : session_connect(&s->session, &to, sync_until(s))) &&
        session_greet(&s->session, true, NULL, sync_until(s)))
        return true;
    sync_why(s, why);
    session_close(&s->session);
    return refuse("%s: %s", where, why);
}

bool sync_send(struct sync_session *s, const struct block *message,
               char why[SYNC_WHY])
{
    const unsigned char *const at = (const unsigned char *)message->at;
    const struct frame f = { .type = at[0],
                             .body = at + 1,
                             .nbody = message->len - 1 };
    if (session_send(&s->session, &f, sync_until(s)))
        return true;
    sync_why(s, why);
    return false;
}

bool sync_receive(struct sync_session *s, struct block *message,
                  char why[SYNC_WHY])
{
    struct frame f;
    message->len = 0;
    if (!session_receive(&s->session, &f, sync_until(s))) {
        sync_why(s, why);
        return false;
    }
    if (block_put(message, &f.type, 1) && block_put(message, f.body, f.nbody))
        return true;
    snprintf(why, SYNC_WHY, "out of memory");
    return false;
}

static bool exchange(void *ctx, const struct block *question,
                     struct block *answer, char why[SYNC_WHY])
{
    return sync_send(ctx, question, why) && sync_receive(ctx, answer, why);
}

struct sync_line sync_line_over(struct sync_session *s)
{
    const bool on = s->session.secure.on;
    return (struct sync_line){ .exchange = exchange,
                               .ctx = s,
                               .sealing = on ? SECURE_MORE : 0,
                               .sent = s->session.out.moved,
                               /* its header comes with the first answer */
                               .received = s->session.in.moved +
                                           (on ? SECURE_HEADER : 0) };
}

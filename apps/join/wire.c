/*
 * wire.c - what goes between the two ends of a remote join
 */
#include "apps/join/wire.h"

#include <string.h>

#include "base/byte_order.h"
#include "io/varint.h"

#define JOIN_BYTES 1 /* the only type of frame */

void wire_begin(struct wire *w, const struct secure_secret *secret)
{
    *w = (struct wire){ 0 };
    w->session.protocol = JOIN_PROTOCOL;
    w->session.secret = secret;
    w->session.most = JOIN_FRAME;
    session_over(&w->session, -1, -1);
}

const char *wire_why(const struct wire *w)
{
    return w->why ? w->why : session_why(&w->session);
}

static bool wire_fail(struct wire *w, const char *why)
{
    if (!w->why)
        w->why = why;
    return false;
}

/* ---------------------------------------------------------------- reading */

/* The next bytes, if it has not ended. */
static bool wire_fill(struct wire *w)
{
    struct frame f;
    if (w->ended || w->why || !session_receive(&w->session, &f, SESSION_NEVER))
        return false;
    if (f.type != JOIN_BYTES || f.request != w->came++)
        return wire_fail(w, "messages arrive out of order");
    w->at = f.body;
    w->left = f.nbody;
    w->ended = !f.nbody;
    return !w->ended;
}

/* What is there, n bytes at most; 0: it ends. */
static size_t wire_some(struct wire *w, uint64_t n, const unsigned char **at)
{
    if (!w->left && !wire_fill(w))
        return 0;
    const size_t some = n < w->left ? (size_t)n : w->left;
    *at = w->at;
    w->at += some;
    w->left -= some;
    return some;
}

int64_t wire_get(void *wire, void *to, size_t n)
{
    struct wire *const w = wire;
    const unsigned char *at;
    size_t done = 0;
    for (size_t some; done < n && (some = wire_some(w, n - done, &at));
         done += some)
        memcpy((char *)to + done, at, some);
    return w->ended || done == n ? (int64_t)done : -1;
}

static bool wire_short(struct wire *w)
{
    return w->session.in.why[0] ? false : wire_fail(w, "it ends too early");
}

bool wire_bytes(struct wire *w, void *to, size_t n)
{
    return wire_get(w, to, n) == (int64_t)n || wire_short(w);
}

bool wire_number(struct wire *w, uint64_t *out)
{
    unsigned char at[VARINT_MOST];
    const unsigned char *from = at;
    size_t n = 0;
    do
        if (!wire_bytes(w, &at[n], 1))
            return false;
    while (at[n++] & 0x80 && n < sizeof at);
    return varint_get(&from, at + n, out) ||
           wire_fail(w, "it contains a number that cannot be read");
}

bool wire_word(struct wire *w, uint64_t *out)
{
    unsigned char at[8];
    if (!wire_bytes(w, at, sizeof at))
        return false;
    *out = get_le(at, 8);
    return true;
}

bool wire_text(struct wire *w, uint64_t n, uint64_t most, struct block *to)
{
    const unsigned char *at;
    if (n > most)
        return wire_fail(w, "it contains a row that is longer than allowed");
    for (size_t some; n; n -= some) {
        some = wire_some(w, n, &at);
        if (!some)
            return wire_short(w);
        if (!block_put(to, at, some))
            return wire_fail(w, "out of memory");
    }
    return true;
}

bool wire_ends(struct wire *w)
{
    struct frame f;
    return !w->left && !wire_fill(w) && w->ended &&
           !session_receive(&w->session, &f, SESSION_NEVER) && w->session.ended;
}

/* ---------------------------------------------------------------- writing */

static bool wire_send(struct wire *w)
{
    const struct frame f = { .type = JOIN_BYTES,
                             .request = w->went++,
                             .body = w->out,
                             .nbody = w->nout };
    w->nout = 0;
    return session_send(&w->session, &f, SESSION_NEVER);
}

bool wire_put(void *wire, const void *bytes, size_t n)
{
    struct wire *const w = wire;
    const char *at = bytes;
    while (n) {
        const size_t room = sizeof w->out - w->nout;
        const size_t some = n < room ? n : room;
        memcpy(w->out + w->nout, at, some);
        w->nout += some;
        at += some;
        n -= some;
        if (w->nout == sizeof w->out && !wire_send(w))
            return false;
    }
    return true;
}

bool wire_close(struct wire *w)
{
    return (!w->nout || wire_send(w)) && wire_send(w);
}

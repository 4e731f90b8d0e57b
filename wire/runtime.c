/*
 * runtime.c - nodes over TCP: one thread, many connections, bounded
 *
 * A line is a connection: bytes that came in and are no frame yet, and bytes
 * that have to go out. First come hellos (secure.h), then frames. A question
 * under way is kept with its bytes, so that it can be asked once more if its
 * connection breaks. Timers are a heap.
 */
#define _GNU_SOURCE
#include "wire/runtime.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/byte_order.h"
#include "base/clock.h"
#include "base/grow.h"
#include "report/say.h"

#define LINE_FIRST 4096
#define TIMEOUT_MOST 3000
#define EVENTS 64
#define EVICT_AFTER 1000

enum line_state { LINE_HELLO, LINE_HEADER, LINE_OPEN };

struct line {
    bool used, asks, connecting;
    bool held;       /* frames wait until its answers are read */
    bool busy;       /* one of its frames is being looked at */
    uint32_t events; /* that epoll looks for */
    enum line_state state;
    uint32_t life; /* how often the slot was used */
    int fd;
    struct address to; /* of one that asks; otherwise where it came in */
    struct secure secure;
    unsigned char *in, *out;
    size_t nin, room_in, nout, at_out, room_out;
    uint64_t since;    /* when something last happened */
    uint64_t sent;     /* when its bytes last moved out */
    uint64_t began;    /* an unfinished frame; 0: none */
    unsigned nasked;   /* questions to it */
    unsigned nserving; /* questions of it */
};

struct asked {
    bool used;
    uint8_t type;
    uint32_t request;
    unsigned line, tries;
    uint32_t life;
    uint64_t tag, sent, until;
    struct address to;
    unsigned char *bytes;
    size_t nbytes;
};

struct wait {
    uint64_t at, data;
};

/* The round trip to an address, smoothed. */
struct trip {
    struct address to;
    double ms;
};
#define TRIPS 256

struct runtime {
    struct runtime_spec spec;
    int epoll, wake;
    volatile bool stops;
    struct line lines[RUNTIME_CONNECTIONS];
    struct asked asked[RUNTIME_ASKED];
    struct trip trips[TRIPS];
    uint32_t request;
    size_t waiting; /* bytes in all lines and questions */
    struct wait *heap;
    size_t nheap, room_heap;
    struct runtime_counts counts;
    struct blob said;
    unsigned char *opened; /* a frame whose seal was undone */
    size_t room_opened;
};

struct runtime_counts runtime_counts(const struct runtime *rt)
{
    struct runtime_counts c = rt->counts;
    c.connections = 0;
    for (size_t i = 0; i < RUNTIME_CONNECTIONS; i++)
        c.connections += rt->lines[i].used;
    return c;
}

/* ------------------------------------------------------------------- timers */

void runtime_after(struct runtime *rt, uint64_t ms, uint64_t data)
{
    if (!GROW(&rt->heap, &rt->room_heap, rt->nheap + 1)) {
        fail("no memory for a timer");
        rt->stops = true;
        return;
    }
    const struct wait w = { clock_ms() + ms, data };
    size_t i = rt->nheap++;
    for (size_t up; i > 0 && w.at < rt->heap[up = (i - 1) / 2].at; i = up)
        rt->heap[i] = rt->heap[up];
    rt->heap[i] = w;
}

static struct wait timer_take(struct runtime *rt)
{
    const struct wait first = rt->heap[0], last = rt->heap[--rt->nheap];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < rt->nheap; i = c) {
        c += c + 1 < rt->nheap && rt->heap[c + 1].at < rt->heap[c].at;
        if (last.at <= rt->heap[c].at)
            break;
        rt->heap[i] = rt->heap[c];
    }
    rt->heap[i] = last;
    return first;
}

/* -------------------------------------------------------------------- lines */

static struct trip *trip_to(struct runtime *rt, const struct address *a)
{
    unsigned h = a->port;
    for (unsigned i = 0; i < 16; i++)
        h = h * 31 + a->at[i];
    struct trip *const t = &rt->trips[h % TRIPS];
    if (!address_equal(&t->to, a))
        *t = (struct trip){ .to = *a };
    return t;
}

static uint64_t line_name(const struct runtime *rt, const struct line *l)
{
    return (uint64_t)(l - rt->lines) << 32 | l->life;
}

/* Has it asked for more than it reads? */
static bool is_unread(const struct line *l)
{
    return l->nout - l->at_out > RUNTIME_UNREAD ||
           l->nserving >= RUNTIME_SERVED;
}

static void line_watch(struct runtime *rt, struct line *l)
{
    const bool waits = is_unread(l);
    const bool writing =
        l->connecting || (l->held && !waits) || l->at_out < l->nout;
    const uint32_t events =
        (waits ? 0 : (uint32_t)EPOLLIN) | (writing ? (uint32_t)EPOLLOUT : 0);
    if (events == l->events)
        return;
    struct epoll_event e = { .events = events, .data.u64 = line_name(rt, l) };
    l->events = events;
    epoll_ctl(rt->epoll, EPOLL_CTL_MOD, l->fd, &e);
}

static void ask_again(struct runtime *rt, struct asked *a);

static void line_close(struct runtime *rt, struct line *l)
{
    if (!l->used)
        return;
    close(l->fd);
    rt->waiting -= l->room_in + l->room_out;
    free(l->in);
    free(l->out);
    const unsigned at = (unsigned)(l - rt->lines);
    const uint32_t life = l->life;
    *l = (struct line){ .life = life + 1, .fd = -1 };
    for (size_t i = 0; i < RUNTIME_ASKED; i++)
        if (rt->asked[i].used && rt->asked[i].line == at &&
            rt->asked[i].life == life)
            ask_again(rt, &rt->asked[i]);
}

/* Too many bytes wait: the line that holds most goes, if that is much and it is
 * not the one that wants more at `for_whom`. */
static bool close_largest(struct runtime *rt, unsigned char **for_whom)
{
    struct line *most = NULL;
    for (size_t i = 0; i < RUNTIME_CONNECTIONS; i++) {
        struct line *const l = &rt->lines[i];
        if (l->used && !l->busy && &l->in != for_whom && &l->out != for_whom &&
            (!most ||
             l->room_in + l->room_out > most->room_in + most->room_out))
            most = l;
    }
    if (!most || most->room_in + most->room_out < RUNTIME_UNREAD / 2)
        return false;
    line_close(rt, most);
    return true;
}

static bool grow(struct runtime *rt, unsigned char **at, size_t *room,
                 size_t needed)
{
    if (needed <= *room)
        return true;
    const size_t step = *room < (1 << 20) ? *room : (1 << 20) + *room / 8;
    const size_t more = needed < *room + step ? *room + step : needed;
    while (rt->waiting + more - *room > RUNTIME_BYTES)
        if (!close_largest(rt, at))
            return false;
    unsigned char *const bigger = realloc(*at, more);
    if (!bigger)
        return false;
    rt->waiting += more - *room;
    *at = bigger;
    *room = more;
    return true;
}

/* Something is put out. What went before makes room; where nothing waited, the
 * time in which it has to move starts now. */
static void line_begins(struct line *l)
{
    if (l->at_out == l->nout) {
        l->at_out = l->nout = 0;
        l->sent = clock_ms();
    } else if (l->at_out > l->nout / 2) {
        memmove(l->out, l->out + l->at_out, l->nout - l->at_out);
        l->nout -= l->at_out;
        l->at_out = 0;
    }
}

/* What does not fit any more ends the line: its reader is too slow. */
static bool line_put(struct runtime *rt, struct line *l, const void *bytes,
                     size_t n)
{
    line_begins(l);
    if (!grow(rt, &l->out, &l->room_out, l->nout + n))
        return false;
    memcpy(l->out + l->nout, bytes, n);
    l->nout += n;
    return true;
}

static bool line_flush(struct runtime *rt, struct line *l)
{
    while (!l->connecting && l->at_out < l->nout) {
        const ssize_t n =
            send(l->fd, l->out + l->at_out, l->nout - l->at_out, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n < 0)
            break;
        l->at_out += (size_t)n;
        rt->counts.bytes_out += (uint64_t)n;
        l->since = l->sent = clock_ms();
    }
    line_watch(rt, l);
    return true;
}

/* A frame, sealed if need be; before the line is open it waits with its
 * question. */
static bool line_frame(struct runtime *rt, struct line *l, const void *bytes,
                       size_t n)
{
    if (!l->secure.on)
        return line_put(rt, l, bytes, n) && line_flush(rt, l);
    line_begins(l);
    if (!grow(rt, &l->out, &l->room_out, l->nout + n + SECURE_MORE))
        return false;
    l->nout += secure_seal(&l->secure, bytes, n, l->out + l->nout);
    return line_flush(rt, l);
}

/* All places are taken: end the line that was silent longest, those first that
 * have not even said hello. A stranger never gets the place of a line that
 * spoke within the last second. NULL: there is none. */
static struct line *line_evict(struct runtime *rt, bool for_stranger)
{
    const uint64_t now = clock_ms();
    struct line *oldest = NULL;
    for (size_t i = 0; i < RUNTIME_CONNECTIONS; i++) {
        struct line *const at = &rt->lines[i];
        const bool greeted = at->state == LINE_OPEN;
        if (!at->used || at->nasked || at->nserving || at->connecting ||
            (for_stranger && greeted && now - at->since < EVICT_AFTER))
            continue;
        const bool had = oldest && oldest->state == LINE_OPEN;
        if (!oldest || (had && !greeted) ||
            (had == greeted && at->since < oldest->since))
            oldest = at;
    }
    if (oldest)
        line_close(rt, oldest);
    return oldest;
}

static struct line *line_new(struct runtime *rt, int fd, bool asks)
{
    struct line *l = NULL;
    for (size_t i = 0; i < RUNTIME_CONNECTIONS && !l; i++)
        if (!rt->lines[i].used)
            l = &rt->lines[i];
    if (!l)
        l = line_evict(rt, !asks);
    if (!l) {
        close(fd);
        return NULL;
    }
    const uint32_t life = l->life;
    *l = (struct line){ .used = true,
                        .asks = asks,
                        .life = life,
                        .fd = fd,
                        .events = EPOLLIN | EPOLLOUT,
                        .since = clock_ms() };
    struct epoll_event e = { .events = EPOLLIN | EPOLLOUT,
                             .data.u64 = line_name(rt, l) };
    unsigned char hello[SECURE_HELLO];
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    l->began = l->sent = l->since;
    if (!asks)
        address_of_socket(fd, &l->to);
    secure_hello(&l->secure, NULL, rt->spec.secret, hello);
    if (epoll_ctl(rt->epoll, EPOLL_CTL_ADD, fd, &e) ||
        !line_put(rt, l, hello, sizeof hello) ||
        (!asks && !line_flush(rt, l))) {
        line_close(rt, l);
        return NULL;
    }
    return l;
}

/* ------------------------------------------------------------------- asking */

static void ask_end(struct runtime *rt, struct asked *a, const struct frame *f)
{
    const uint64_t tag = a->tag;
    struct line *const l = &rt->lines[a->line];
    if (l->used && l->life == a->life && l->nasked)
        l->nasked--;
    rt->waiting -= a->nbytes;
    free(a->bytes);
    a->bytes = NULL;
    a->used = false;
    rt->counts.silent += !f;
    rt->counts.answered += f != NULL;
    rt->spec.answer(rt->spec.ctx, tag, f);
}

static struct line *line_to(struct runtime *rt, const struct address *to)
{
    struct sockaddr_storage s;
    for (size_t i = 0; i < RUNTIME_CONNECTIONS; i++)
        if (rt->lines[i].used && rt->lines[i].asks &&
            address_equal(&rt->lines[i].to, to))
            return &rt->lines[i];
    const socklen_t n = address_socket(to, &s);
    int fd = socket(s.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EMFILE && line_evict(rt, false))
        fd = socket(s.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    const bool now = connect(fd, (struct sockaddr *)&s, n) == 0;
    if (!now && errno != EINPROGRESS) {
        close(fd);
        return NULL;
    }
    struct line *const l = line_new(rt, fd, true);
    if (l) {
        l->to = *to;
        l->connecting = !now;
    }
    return l;
}

static void ask_send(struct runtime *rt, struct asked *a)
{
    struct line *const l = line_to(rt, &a->to);
    const double ms = 4 * trip_to(rt, &a->to)->ms;
    uint64_t wait = ms < TIMEOUT_MOST ? (uint64_t)ms : TIMEOUT_MOST;
    if (wait < rt->spec.least)
        wait = rt->spec.least;
    a->sent = clock_ms();
    a->until = a->sent + wait;
    a->tries++;
    if (!l || l->nasked >= RUNTIME_PER_PEER) {
        a->line = 0;
        a->life = UINT32_MAX; /* of no line: silence follows */
        a->tries = 2;
        a->until = l ? a->until : a->sent;
        return;
    }
    l->nasked++;
    a->line = (unsigned)(l - rt->lines);
    a->life = l->life;
    if (l->state == LINE_OPEN && !line_frame(rt, l, a->bytes, a->nbytes))
        line_close(rt, l);
}

/* Its connection broke. */
static void ask_again(struct runtime *rt, struct asked *a)
{
    a->life = UINT32_MAX;
    if (a->tries < 2) {
        a->until = clock_ms(); /* asked once more at once */
        return;
    }
    a->until = 0;
    (void)rt;
}

/* The line has opened: all that waited for it. */
static bool ask_waiting(struct runtime *rt, struct line *l)
{
    const unsigned at = (unsigned)(l - rt->lines);
    for (size_t i = 0; i < RUNTIME_ASKED; i++) {
        struct asked *const a = &rt->asked[i];
        if (a->used && a->line == at && a->life == l->life &&
            !line_frame(rt, l, a->bytes, a->nbytes))
            return false;
    }
    return true;
}

void runtime_ask(struct runtime *rt, const struct address *to, uint8_t type,
                 uint16_t flags, struct blob *body, uint64_t tag)
{
    struct asked *a = NULL;
    const uint32_t request = ++rt->request ? rt->request : ++rt->request;
    const struct frame f = {
        .type = type, .flags = flags, .request = request, .ring = rt->spec.ring
    };
    for (size_t i = 0; i < RUNTIME_ASKED && !a; i++)
        if (!rt->asked[(request + i) % RUNTIME_ASKED].used)
            a = &rt->asked[(request + i) % RUNTIME_ASKED];
    rt->counts.asked++;
    unsigned char *const bytes =
        a && blob_frame(body, &f) ? malloc(body->n) : NULL;
    if (!bytes) {
        /* Silence, as of a peer that is too busy; never from inside of a
         * question. */
        if (a) {
            *a = (struct asked){ .used = true,
                                 .tries = 2,
                                 .tag = tag,
                                 .life = UINT32_MAX,
                                 .request = request };
        } else {
            rt->counts.silent++;
            rt->spec.answer(rt->spec.ctx, tag, NULL);
        }
        return;
    }
    memcpy(bytes, body->at, body->n);
    *a = (struct asked){ .used = true,
                         .type = type,
                         .request = request,
                         .tag = tag,
                         .to = *to,
                         .bytes = bytes,
                         .nbytes = body->n };
    rt->waiting += a->nbytes;
    ask_send(rt, a);
}

static void answered(struct runtime *rt, struct line *l, const struct frame *f)
{
    for (size_t i = 0; i < RUNTIME_ASKED; i++) {
        struct asked *const a = &rt->asked[(f->request + i) % RUNTIME_ASKED];
        if (!a->used || a->request != f->request)
            continue;
        /* Only from whom it was asked. */
        if (a->line != (unsigned)(l - rt->lines) || a->life != l->life)
            return;
        struct trip *const t = trip_to(rt, &a->to);
        const double ms = (double)(clock_ms() - a->sent);
        t->ms = t->ms > 0 ? 0.875 * t->ms + 0.125 * ms : ms;
        /* What answers something else is not an answer. */
        ask_end(rt, a, f->type == a->type ? f : NULL);
        return;
    }
}

/* ---------------------------------------------------------------- answering */

static struct line *line_named(struct runtime *rt, uint64_t name)
{
    struct line *const l = &rt->lines[(name >> 32) % RUNTIME_CONNECTIONS];
    return l->used && l->life == (uint32_t)name && l->state == LINE_OPEN ? l
                                                                         : NULL;
}

void runtime_answer(struct runtime *rt, uint64_t line, const struct frame *to,
                    uint16_t flags, struct blob *body)
{
    struct line *const l = line_named(rt, line);
    const struct frame f = { .type = to->type,
                             .flags = (uint16_t)(flags | FRAME_ANSWER),
                             .request = to->request,
                             .ring = rt->spec.ring };
    if (l && l->nserving)
        l->nserving--;
    if (l && (!blob_frame(body, &f) || !line_frame(rt, l, body->at, body->n)))
        line_close(rt, l);
}

void runtime_refuse(struct runtime *rt, uint64_t line, const struct frame *to,
                    enum frame_error code, const char *text)
{
    blob_start(&rt->said);
    blob_number(&rt->said, code, 1);
    blob_bytes(&rt->said, text, strlen(text));
    rt->counts.refused++;
    runtime_answer(rt, line, to, FRAME_ERROR, &rt->said);
}

/* ------------------------------------------------------------------ reading */

/* One frame has come. False: the line has to go. */
static bool line_take(struct runtime *rt, struct line *l, const struct frame *f)
{
    if (f->flags & FRAME_ANSWER) {
        answered(rt, l, f);
        return true;
    }
    l->nserving++;
    if (f->ring != rt->spec.ring) {
        const uint64_t name = line_name(rt, l);
        runtime_refuse(rt, name, f, FRAME_REFUSED,
                       "another ring: its name or its parameters differ");
        rt->counts.bad++;
        return false;
    }
    /* The second half is for those who have little. */
    if (rt->waiting > RUNTIME_BYTES / 2 && l->nout - l->at_out > LINE_FIRST)
        runtime_refuse(rt, line_name(rt, l), f, FRAME_BUSY, "busy");
    else
        rt->spec.question(rt->spec.ctx, line_name(rt, l), f);
    return true;
}

/* What the bytes of a line begin with; *used of them are done with. False: they
 * are bad. */
static bool line_piece(struct runtime *rt, struct line *l, size_t from,
                       size_t *used)
{
    unsigned char *const at = l->in + from;
    const size_t n = l->nin - from;
    struct frame f;
    size_t whole;
    *used = 0;
    if (l->state == LINE_HELLO) {
        unsigned char header[SECURE_HEADER];
        if (n < SECURE_HELLO)
            return true;
        if (secure_greeted(&l->secure, rt->spec.secret, l->asks, &l->to, at,
                           header))
            return false;
        *used = SECURE_HELLO;
        l->state = l->secure.on ? LINE_HEADER : LINE_OPEN;
        if (l->secure.on)
            return line_put(rt, l, header, sizeof header) && line_flush(rt, l);
        return !l->asks || ask_waiting(rt, l);
    }
    if (l->state == LINE_HEADER) {
        if (n < SECURE_HEADER)
            return true;
        *used = SECURE_HEADER;
        l->state = LINE_OPEN;
        return secure_begins(&l->secure, at) &&
               (!l->asks || ask_waiting(rt, l));
    }
    if (l->secure.on) {
        const size_t sealed = n >= 4 ? (size_t)get_le(at, 4) : 0;
        /* The length comes before the seal, so anybody can write it: it is
         * bounded before memory is taken for it. 17 bytes are what a seal
         * adds. */
        if (n >= 4 && (sealed < 17 || sealed > FRAME_MOST + 4 + 17))
            return false;
        if (n < 4 || n < 4 + sealed)
            return true;
        if (!grow(rt, &rt->opened, &rt->room_opened, sealed))
            return false;
        const size_t opened =
            secure_open(&l->secure, at + 4, sealed, rt->opened);
        *used = 4 + sealed;
        /* A record holds one frame: anything behind it was not put there by
         * this protocol. */
        return opened &&
               frame_read(rt->opened, opened, &f, &whole) == FRAME_WHOLE &&
               whole == opened && line_take(rt, l, &f);
    }
    switch (frame_read(at, n, &f, &whole)) {
    case FRAME_SHORT:
        return true;
    case FRAME_WHOLE:
        *used = whole;
        return line_take(rt, l, &f);
    default:
        return false;
    }
}

/* The frames that have come, as long as their answers are read. */
static bool line_pieces(struct runtime *rt, struct line *l)
{
    const uint32_t life = l->life;
    size_t from = 0, used;
    do {
        l->held = is_unread(l);
        if (l->held)
            break;
        l->busy = true;
        const bool good = line_piece(rt, l, from, &used);
        if (!l->used || l->life != life)
            return true; /* closed meanwhile */
        l->busy = false;
        if (!good) {
            rt->counts.bad++;
            return false;
        }
        from += used;
    } while (used);
    memmove(l->in, l->in + from, l->nin - from);
    l->nin -= from;
    l->began = (l->nin && !l->held) || l->state != LINE_OPEN
                   ? (from || !l->began ? l->since : l->began)
                   : 0;
    return true;
}

/* All that is there. */
static bool line_read(struct runtime *rt, struct line *l)
{
    const uint32_t life = l->life;
    for (unsigned turns = 0; turns < 16; turns++) {
        if (!grow(rt, &l->in, &l->room_in,
                  l->nin + LINE_FIRST < 2 * l->nin ? 2 * l->nin
                                                   : l->nin + LINE_FIRST))
            return false;
        const ssize_t n = recv(l->fd, l->in + l->nin, l->room_in - l->nin, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        if (n == 0)
            return false;
        l->nin += (size_t)n;
        rt->counts.bytes_in += (uint64_t)n;
        l->since = clock_ms();
        if (!line_pieces(rt, l))
            return false;
        if (!l->used || l->life != life || l->held)
            return true;
    }
    return true;
}

static void line_event(struct runtime *rt, struct line *l, uint32_t events)
{
    const uint32_t life = l->life;
    if (l->connecting && events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
        int error = 0;
        socklen_t n = sizeof error;
        getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &n);
        if (error) {
            line_close(rt, l);
            return;
        }
        l->connecting = false;
    }
    bool ok = !l->held || (line_flush(rt, l) && line_pieces(rt, l));
    if (ok && l->used && l->life == life && !l->held &&
        events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        ok = line_read(rt, l);
    if (!l->used || l->life != life)
        return;
    if (ok)
        ok = line_flush(rt, l);
    if (!ok)
        line_close(rt, l);
}

/* ----------------------------------------------------------------- the loop */

static void take_in(struct runtime *rt)
{
    for (unsigned i = 0; i < EVENTS; i++) {
        const int fd = accept4(rt->spec.listener, NULL, NULL,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            line_new(rt, fd, false);
        else if ((errno != EMFILE && errno != ENFILE) || !line_evict(rt, false))
            return;
    }
}

/* Questions that have waited long enough, and lines that are stuck. */
static void look_around(struct runtime *rt)
{
    const uint64_t now = clock_ms();
    for (size_t i = 0; i < RUNTIME_ASKED; i++) {
        struct asked *const a = &rt->asked[i];
        if (!a->used || a->until > now)
            continue;
        if (a->tries >= 2) {
            ask_end(rt, a, NULL);
        } else if (a->life == UINT32_MAX) {
            ask_send(rt, a);
        } else {
            a->tries++; /* the answer may still come */
            a->until = now + (a->until - a->sent);
        }
    }
    for (size_t i = 0; i < RUNTIME_CONNECTIONS; i++) {
        struct line *const l = &rt->lines[i];
        if (!l->used)
            continue;
        const bool stuck =
            (l->began && now - l->began > RUNTIME_STALL) ||
            (l->at_out < l->nout && now - l->sent > RUNTIME_STALL) ||
            (!l->nasked && !l->nserving && now - l->since > RUNTIME_IDLE);
        if (stuck)
            line_close(rt, l);
    }
}

bool runtime_run(struct runtime *rt)
{
    uint64_t looked = 0;
    while (!rt->stops) {
        struct epoll_event events[EVENTS];
        const uint64_t now = clock_ms();
        uint64_t wait = 25;
        if (rt->nheap)
            wait = rt->heap[0].at <= now         ? 0
                   : rt->heap[0].at - now < wait ? rt->heap[0].at - now
                                                 : wait;
        const int n = epoll_wait(rt->epoll, events, EVENTS, (int)wait);
        if (n < 0 && errno != EINTR)
            return refuse("epoll: %s", strerror(errno));
        for (int i = 0; i < n && !rt->stops; i++) {
            const uint64_t name = events[i].data.u64;
            if (name == UINT64_MAX) {
                take_in(rt);
            } else if (name == UINT64_MAX - 1) {
                uint64_t count;
                if (read(rt->wake, &count, sizeof count) > 0 && !rt->stops)
                    rt->spec.woken(rt->spec.ctx);
            } else {
                struct line *const l =
                    &rt->lines[(name >> 32) % RUNTIME_CONNECTIONS];
                if (l->used && l->life == (uint32_t)name)
                    line_event(rt, l, events[i].events);
            }
        }
        while (rt->nheap && rt->heap[0].at <= clock_ms() && !rt->stops)
            rt->spec.timer(rt->spec.ctx, timer_take(rt).data);
        if (clock_ms() - looked >= 20) {
            looked = clock_ms();
            look_around(rt);
        }
    }
    return true;
}

void runtime_wake(struct runtime *rt)
{
    const uint64_t one = 1;
    if (write(rt->wake, &one, sizeof one) < 0)
        return; /* it is awake already */
}

void runtime_stop(struct runtime *rt)
{
    rt->stops = true;
    runtime_wake(rt);
}

struct runtime *runtime_new(const struct runtime_spec *spec)
{
    struct runtime *const rt = calloc(1, sizeof *rt);
    if (!rt) {
        fail("no memory for connections");
        return NULL;
    }
    rt->spec = *spec;
    rt->epoll = epoll_create1(EPOLL_CLOEXEC);
    rt->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event e = { .events = EPOLLIN, .data.u64 = UINT64_MAX };
    struct epoll_event w = { .events = EPOLLIN, .data.u64 = UINT64_MAX - 1 };
    if (rt->epoll < 0 || rt->wake < 0 ||
        epoll_ctl(rt->epoll, EPOLL_CTL_ADD, spec->listener, &e) ||
        epoll_ctl(rt->epoll, EPOLL_CTL_ADD, rt->wake, &w)) {
        fail("epoll: %s", strerror(errno));
        runtime_free(rt);
        return NULL;
    }
    return rt;
}

void runtime_free(struct runtime *rt)
{
    if (!rt)
        return;
    for (size_t i = 0; i < RUNTIME_ASKED; i++)
        if (rt->asked[i].used)
            free(rt->asked[i].bytes);
    for (size_t i = 0; i < RUNTIME_CONNECTIONS; i++)
        if (rt->lines[i].used) {
            close(rt->lines[i].fd);
            free(rt->lines[i].in);
            free(rt->lines[i].out);
        }
    if (rt->epoll >= 0)
        close(rt->epoll);
    if (rt->wake >= 0)
        close(rt->wake);
    blob_free(&rt->said);
    free(rt->opened);
    free(rt->heap);
    free(rt);
}

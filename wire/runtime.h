/*
 * runtime.h - nodes over TCP: one thread, many connections, bounded
 *
 * For any overlay: it knows frames (frame.h), not what they say. Questions go
 * to addresses; a connection to each is made when it is needed and kept. Every
 * question ends in its answer or in silence: after 4 times the smoothed round
 * trip, at least `least` and at most 3 s, twice. Questions of others are handed
 * over and answered now or later, from this thread; other threads leave a note
 * by runtime_wake().
 *
 * Bounds: connections, bytes that wait in all of them, questions under way in
 * all, for one peer and of one peer. Questions past the last of these wait in
 * the network until answers are read; what is past the others is refused
 * (BUSY), or counts as silence. Peers that send slowly, or read nothing, are
 * cut off. When all connections are taken, the one that was silent longest
 * makes room; when all bytes are, the one that holds most.
 */
#ifndef BLY_WIRE_RUNTIME_H
#define BLY_WIRE_RUNTIME_H

#include "wire/address.h"
#include "wire/frame.h"
#include "wire/secure.h"

struct runtime;

#define RUNTIME_CONNECTIONS 512
#define RUNTIME_BYTES ((size_t)256 << 20)
#define RUNTIME_ASKED 1024
#define RUNTIME_PER_PEER 64
#define RUNTIME_SERVED 16 /* questions of one peer that are looked at */
#define RUNTIME_UNREAD                                                      \
    ((size_t)16 << 20) /* bytes for one that does not read them: no more of \
                          its questions are looked at */
#define RUNTIME_IDLE 120000 /* milliseconds until an unused one is closed */
#define RUNTIME_STALL 20000 /* that an unfinished frame may take */

struct runtime_spec {
    int listener; /* stays the caller's */
    const struct secure_secret *secret;
    uint64_t ring;
    uint64_t least; /* milliseconds, of timeouts */

    /* A question from connection `line`: runtime_answer() now or later. The
     * frame is borrowed for the call. */
    void (*question)(void *ctx, uint64_t line, const struct frame *f);
    /* What became of runtime_ask(); NULL: silence. */
    void (*answer)(void *ctx, uint64_t tag, const struct frame *f);
    void (*timer)(void *ctx, uint64_t data);
    void (*woken)(void *ctx);
    void *ctx;
};

/* NULL, with the reason printed. */
struct runtime *runtime_new(const struct runtime_spec *spec);
void runtime_free(struct runtime *rt);

/* Ask somebody; answer() follows, later. The body is that of the blob, which
 * can be used again. */
void runtime_ask(struct runtime *rt, const struct address *to, uint8_t type,
                 uint16_t flags, struct blob *body, uint64_t tag);

/* Answer a question; a line that is gone is no error. */
void runtime_answer(struct runtime *rt, uint64_t line, const struct frame *to,
                    uint16_t flags, struct blob *body);
void runtime_refuse(struct runtime *rt, uint64_t line, const struct frame *to,
                    enum frame_error code, const char *text);

void runtime_after(struct runtime *rt, uint64_t ms, uint64_t data);

/* From any thread, or a signal handler: woken() is called, or the run ends. */
void runtime_wake(struct runtime *rt);
void runtime_stop(struct runtime *rt);

/* False, with the reason printed, if it could not go on. */
bool runtime_run(struct runtime *rt);

struct runtime_counts {
    uint64_t connections, asked, answered, silent, refused, bytes_in, bytes_out,
        bad;
};
struct runtime_counts runtime_counts(const struct runtime *rt);

#endif

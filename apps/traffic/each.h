/*
 * each.h - all packets of a capture, one after the other
 */
#ifndef BLY_TRAFFIC_EACH_H
#define BLY_TRAFFIC_EACH_H

#include "apps/traffic/capture.h"
#include "report/say.h"

/* False ends it, and the reason is printed. */
typedef bool capture_fn(void *ctx, const struct capture *c,
                        const struct captured_frame *f);

/* Until the capture ends or, if it is live, after `most` packets (0: any
 * number) or a signal. YES, or TROUBLE with the reason printed. */
static inline int capture_each(struct capture *c, uint64_t most,
                               capture_fn *take, void *ctx)
{
    struct captured_frame f;
    for (uint64_t n = 0;;) {
        if (c->live && (signals_told() || (most && n >= most)))
            return YES;
        switch (capture_next(c, &f)) {
        case CAPTURED:
            n++;
            if (!take(ctx, c, &f))
                return TROUBLE;
            break;
        case CAPTURED_NONE:
            break;
        case CAPTURED_END:
            return YES;
        case CAPTURED_TROUBLE:
        default:
            return TROUBLE;
        }
    }
}

#endif

/*
 * flows_view.h - the large flows of an interface on a terminal, as top shows
 * processes
 */
#ifndef BLY_TRAFFIC_FLOWS_VIEW_H
#define BLY_TRAFFIC_FLOWS_VIEW_H

#include "apps/traffic/traffic_args.h"
#include "apps/traffic/multistage.h"

struct flows_view;

/* Can a view be shown: are input and output a terminal that can be steered? */
bool view_possible(void);

/* Take the terminal over. NULL, with the reason printed. */
struct flows_view *view_begin(const char *interface, struct key_choice key,
                              uint64_t top);
/* Give it back as it was. NULL does nothing. */
void view_end(struct flows_view *v);

/* What an interval of so many seconds had: shown at once, unless the view is
 * paused. False: no memory. */
bool view_take(struct flows_view *v, const struct flow *flows, size_t n,
               const struct traffic_totals *totals, double seconds);

/* Do what was typed meanwhile. False: to quit, or the terminal has gone. */
bool view_keys(struct flows_view *v);

#endif

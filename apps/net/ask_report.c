/*
 * ask_report.c - what net trace --ask tells
 */
#include "apps/net/ask/ask_trace.h"

static const struct field ask_row_fields[] = {
    FIELD(struct ask_row, router, NONE, "that may be on the way"),
    FIELD(struct ask_row, before, MAYBE,
          "the next one towards the receiver, which asked it; null: the first"),
    FIELD(struct ask_row, hops, NONE, "from the receiver"),
    FIELD(struct ask_row, state, NONE,
          "found, silent (its neighbours were asked for it), busy, or cut: "
          "nobody behind it was asked"),
    FIELD(struct ask_row, bits, NONE,
          "of its mark, that nobody wrote over and that are in the packet"),
    FIELD(struct ask_row, of, NONE, "bits of its mark"),
    FIELD(struct ask_row, beside, NONE,
          "others that may be there instead: how ambiguous this step is"),
    FIELD(struct ask_row, last, NONE, "nobody behind it may be on the way"),
    { 0 },
};

const struct field ask_fields[] = {
    FIELD(struct ask_result, from, NONE, "the address that the packet gives"),
    FIELD(struct ask_result, to, NONE, "where it went"),
    LIST(struct ask_result, "way", way, nway, AT, ask_row_fields,
         "the routers, each below the one that asked it, which has one hop "
         "less"),
    FIELD(struct ask_result, found, NONE, "routers whose marks fit"),
    FIELD(struct ask_result, silent, NONE, "that did not answer"),
    FIELD(struct ask_result, busy, NONE, "that had too much to do"),
    FIELD(struct ask_result, cut, NONE, "behind which nobody was asked"),
    FIELD(struct ask_result, certain, NONE,
          "there is only one way, and all of it was asked"),
    { 0 },
};

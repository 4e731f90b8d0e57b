/*
 * scan_rules.h - strings to look for: lists of lines, and Snort's rules
 *
 * Of a rule, each content is a string on its own, with its nocase, offset and
 * depth; both ways to write these are read:
 *
 *     alert tcp any any -> any 80 (content:"GET|20|/x"; nocase; sid:7;)
 *     alert http (content:"GET|20|/x",nocase,offset 0,depth 9; sid:7;)
 *
 * Everything else in a rule is not looked at, and contents that must be absent
 * are counted and left out.
 */
#ifndef BLY_TRAFFIC_SCAN_RULES_H
#define BLY_TRAFFIC_SCAN_RULES_H

#include "apps/traffic/scan.h"

struct rules {
    struct scan_string *strings;
    size_t n, room;
    uint64_t lines;   /* that were read */
    uint64_t without; /* rules that have no content */
    uint64_t absent;  /* contents that must not be there */
};

enum rules_form { RULES_LINES, RULES_LINES_NOCASE, RULES_SNORT };

/* Take one line, without its end. NULL, or what is wrong with it; "out of
 * memory" too. */
const char *rules_line(struct rules *r, enum rules_form form,
                       const unsigned char *at, size_t n);

/* All lines of a file. False, with the reason printed. */
bool rules_read(struct rules *r, enum rules_form form, const char *path);
void rules_free(struct rules *r);

#endif

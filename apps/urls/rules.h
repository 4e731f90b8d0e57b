/*
 * rules.h - lines of lists that are more than a name: adblock's and RPZ's
 */
#ifndef BLY_URLS_RULES_H
#define BLY_URLS_RULES_H

#include "apps/urls/lists.h"
#include "io/line_words.h"

/* An entry from text that is not canonical yet: a name, or a URL. False, and
 * *why, if it is not one. */
bool entry_name(struct list_reader *r, struct words w, enum entry_kind kind,
                const char **why);
bool entry_url(struct list_reader *r, struct words w, enum entry_kind kind,
               const char **why);

/* A line that begins with || or @@: never bad, since there are rules of many
 * kinds. */
bool adblock_line(struct list_reader *r, struct words line);

/* Lines of a zone: $ORIGIN and the like; a record; what follows an open
 * parenthesis. */
bool rpz_directive(struct list_reader *r, struct words line, const char **why);
bool rpz_line(struct list_reader *r, struct words line, bool indented,
              const char **why);
bool rpz_more(struct list_reader *r, struct words line);

#endif

/*
 * blocklist.h - a list that can be asked: a filter or sorted prefixes
 *
 * Both say which entries of a URL or name may be listed. A filter is an
 * ordinary .bly whose keys are the entries themselves; sorted prefixes are the
 * first bits of their SHA-256. What the list is about is noted in the file:
 *
 *     list    urls, or domains
 *     labels  1 if an entry has one label only; else names are asked down to 2
 *     suffix  yes if no entry is a public suffix, so that asking may end there
 *     allow   the file with its exceptions, beside it
 *
 * Exceptions are kept as they are, one per line, in a file of their own: what
 * is allowed must not depend on chance. Its name ends with a part of the
 * SHA-256 of its contents, so that a list never meets the exceptions of another
 * version, however both are replaced.
 */
#ifndef BLY_URLS_BLOCKLIST_H
#define BLY_URLS_BLOCKLIST_H

#include <bloomery/sorted.h>

#include "apps/urls/canonical.h"
#include "apps/urls/host_names.h"
#include "apps/urls/suffixes.h"

/* What a list says of itself. */
struct list_traits {
    bool known;      /* it says something: urls or domains */
    bool domains;    /* names instead of URLs */
    bool folded;     /* the case of entries was folded */
    bool single;     /* an entry has one label */
    bool exact;      /* a name is listed, and none below it */
    bool suffix;     /* no entry is a public suffix */
    char allow[256]; /* name of the file with exceptions; empty: none */
};

struct blocklist {
    bly_filter *filter; /* one of both */
    bly_sorted *prefixes;
    struct list_traits is;
    struct text_set allow;
};

/* Traits into the metadata of a filter, or into the note of a sorted set. */
bly_status traits_set(const struct list_traits *t, bly_filter *f);
void traits_note(const struct list_traits *t, char out[512]);

/* The file with a list's exceptions: the name of one with these contents, and
 * the path of a name, beside that of the list. */
void allow_name(const char *list, const struct text_set *allow, char out[256]);
char *allow_path(const char *list, const char *name);

/* What the list in path says of itself: false if there is none. */
bool traits_peek(const char *path, struct list_traits *out);

/* Open and verify the list in path, all of it. False, and why, if that fails.
 * A list that is replaced meanwhile is opened anew. */
bool blocklist_open(struct blocklist *l, const char *path,
                    const unsigned char *secret, char *why, size_t nwhy);
void blocklist_close(struct blocklist *l);

/* ------------------------------------------------------------------- asking */

/* What one thread needs to ask. Zero is ready. */
struct asking {
    struct block text;  /* canonical forms */
    bly_bytes *entries; /* of all questions */
    size_t *of;         /* the question of each */
    uint64_t *hashes, *found;
    size_t n, room;
};
void asking_free(struct asking *a);

/* Is each of n texts listed? Bits of `listed`, and of `bad` for those that are
 * not a URL or a name, which are not listed. entries, unless NULL, gets the
 * entry that each listed one was found by, valid until the next call. suffixes,
 * unless NULL, end the asking. False if there is no memory. */
bool blocklist_ask(const struct blocklist *l, struct asking *a,
                   const struct suffixes *suffixes, const bly_bytes *texts,
                   size_t n, uint64_t *listed, uint64_t *bad,
                   bly_bytes *entries);

/* All entries that a text may be listed by, in a->text; 0 if it is not a URL or
 * name. Adds to a->entries; a->text must have the room (entries_room()). */
#define ENTRIES_MOST 128
size_t entries_of(const struct list_traits *is, const struct suffixes *suffixes,
                  bly_bytes text, char *room, bly_bytes out[ENTRIES_MOST]);
#define ENTRIES_ROOM(n) (URL_ROOM(n) + NAME_ROOM)

/* The first bits of SHA-256 of an entry. */
uint64_t entry_prefix(bly_bytes entry, unsigned width);

#endif

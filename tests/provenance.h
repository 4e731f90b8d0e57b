/*
 * provenance.h - where keys may come from, for laws over all pairs of them
 */
#ifndef BLY_TESTS_PROVENANCE_H
#define BLY_TESTS_PROVENANCE_H

#include <stdio.h>
#include <string.h>

#include <bloomery.h>

#include "core/bits.h"

/* How a filter, or a sketch, came by its keys, and what it says of them. Each
 * holds the numbers from `first` on, in a form of its own. */
typedef struct provenance {
    const char *name;
    bly_keying says;
    enum { NOTHING, TEXTS, INTEGERS } holds;
    bool keyed; /* by a secret */
} provenance;

static const provenance provenances[] = {
    { "nothing yet", { BLY_KEYS_UNKNOWN, 0 }, NOTHING, false },
    { "texts by bly_add()", { BLY_KEYS_UNKNOWN, 0 }, TEXTS, false },
    { "integers by bly_add()", { BLY_KEYS_UNKNOWN, 0 }, INTEGERS, false },
    { "text", { BLY_KEYS_TEXT, 0 }, TEXTS, false },
    { "no text yet", { BLY_KEYS_TEXT, 0 }, NOTHING, false },
    { "folded", { BLY_KEYS_TEXT, BLY_KEYS_FOLDED }, TEXTS, false },
    { "trimmed", { BLY_KEYS_TEXT, BLY_KEYS_TRIMMED }, TEXTS, false },
    { "bytes", { BLY_KEYS_BYTES, 0 }, TEXTS, false },
    { "int64", { BLY_KEYS_INT64, 0 }, INTEGERS, false },
    { "no int64 yet", { BLY_KEYS_INT64, 0 }, NOTHING, false },
    { "uint64", { BLY_KEYS_UINT64, 0 }, INTEGERS, false },
    { "keyed text", { BLY_KEYS_TEXT, 0 }, TEXTS, true },
    { "keyed, unknown", { BLY_KEYS_UNKNOWN, 0 }, INTEGERS, true },
};
#define NPROVENANCES (sizeof provenances / sizeof *provenances)
#define NNUMBERS 8

static const unsigned char provenance_secret[BLY_SECRET_BYTES] =
    "sixteen bytes ..";

/* Number i, as it holds it. */
static bly_bytes key_of_provenance(const provenance *p, uint64_t i,
                                   char room[24])
{
    const uint64_t le = bly_le64(i);
    if (p->holds == TEXTS)
        return (bly_bytes){ room, (size_t)snprintf(room, 24, "%llu",
                                                   (unsigned long long)i) };
    memcpy(room, &le, sizeof le);
    return (bly_bytes){ room, sizeof le };
}

#endif

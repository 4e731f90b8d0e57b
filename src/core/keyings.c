/*
 * keyings.c - which keys may be in one filter, or in one sketch
 *
 * Keys of unknown type were hashed as they came: the text "7" and the integer 7
 * may both be there. A query of text converts integers, a query of integers
 * converts text, and one of folded text folds: each would miss keys that were
 * not converted when they were added. Only bytes are never converted.
 */
#include "core/keyings.h"

#include "core/status.h"

const char *bly_key_type_name(bly_key_type type)
{
    static const char *const names[] = { NULL, "text", "bytes", "int64",
                                         "uint64" };
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : NULL;
}

const char *bly_key_type_word(bly_key_type type)
{
    const char *const word = bly_key_type_name(type);
    return word ? word : "of no known type";
}

bly_status bly_key_types_fit(bly_keying a, bly_keying b, const char *what)
{
    if (a.type && b.type && a.type != b.type)
        return bly_fail(BLY_EUNFIT,
                        "a %s whose keys are %s does not combine with one "
                        "whose keys are %s: build both from keys of one type",
                        what, bly_key_type_word(a.type),
                        bly_key_type_word(b.type));
    const bly_keying known = a.type ? a : b;
    if (a.type != b.type && known.type != BLY_KEYS_BYTES)
        return bly_fail(BLY_EUNFIT,
                        "a %s whose keys are %s%s does not combine with "
                        "one that does not say what its keys are: first state "
                        "their type",
                        what, known.forms ? "folded or trimmed " : "",
                        bly_key_type_word(known.type));
    if (a.forms != b.forms)
        return bly_fail(BLY_EUNFIT,
                        "a %s whose keys were folded or trimmed does not "
                        "combine with one whose keys were not, or in another "
                        "way: build both alike",
                        what);
    return BLY_OK;
}

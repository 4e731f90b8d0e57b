/*
 * sized.c - structs of callers that were compiled for another version
 */
#include <string.h>

#include "core/sized.h"
#include "core/status.h"

const void *bly_take(const void *given, size_t size, void *own, size_t nown,
                     const char *argument)
{
    if (!given)
        bly_fail_null(argument);
    if (!given || size == nown)
        return given;
    for (size_t i = nown; i < size; i++)
        if (((const unsigned char *)given)[i]) {
            bly_fail(BLY_EINVAL,
                     "%s has a field that bloomery %s does not know: leave it "
                     "zero, or use the library that the program was made for",
                     argument, bly_version());
            return NULL;
        }
    memset(own, 0, nown);
    return memcpy(own, given, size < nown ? size : nown);
}

void bly_give(const void *own, size_t nown, void *out, size_t size)
{
    if (out != own)
        memcpy(out, own, size < nown ? size : nown);
    if (size > nown)
        memset((char *)out + nown, 0, size - nown);
}

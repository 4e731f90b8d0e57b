/*
 * same.c - a filter that comes again, row after row
 *
 * A database hands the bytes of a filter over for each row, and loading it
 * takes thousands of times as long as asking. What is kept to know it again is
 * its header (docs/format.md), whose sums are of all there is if one payload
 * follows, as it is.
 */
#include <string.h>

#include "adapters/sql/sql_inside.h"

#define SAME_HEAD 296 /* the fields, with the sum of the payload */
#define SAME_VERSION 8
#define SAME_VERSION_MOST 2 /* later ones have no such header */
#define SAME_LAYERS 64
#define SAME_ENCODING 68
#define SAME_SUM 4088 /* of the header, what was said of the keys included */
#define SAME_SUM_BYTES 8

/* How many bytes are compared: a header's, or all. */
static size_t same_bytes(bly_bytes b)
{
    static const unsigned char zeros[8];
    const unsigned char *const at = b.ptr;
    _Static_assert(SAME_ENCODING == SAME_LAYERS + 4, "both are zero, or not");
    return b.len >= SAME_SUM + SAME_SUM_BYTES &&
                   at[SAME_VERSION] <= SAME_VERSION_MOST &&
                   memcmp(at + SAME_LAYERS, zeros, sizeof zeros) == 0
               ? SAME_HEAD + SAME_SUM_BYTES
               : b.len;
}

bool sql_same_begin(struct sql_same *s, bly_bytes bytes, const bly_mem *mem)
{
    const unsigned char *const at = bytes.ptr;
    s->mem = mem;
    s->nbytes = bytes.len;
    s->nkept = same_bytes(bytes);
    s->kept = sql_alloc(mem, s->nkept + 1);
    if (!s->kept)
        return false;
    if (s->nkept == bytes.len) {
        if (bytes.len)
            memcpy(s->kept, at, bytes.len);
        return true;
    }
    memcpy(s->kept, at, SAME_HEAD);
    memcpy(s->kept + SAME_HEAD, at + SAME_SUM, SAME_SUM_BYTES);
    return true;
}

bool sql_same_is(const struct sql_same *s, bly_bytes bytes)
{
    const unsigned char *const at = bytes.ptr;
    if (bytes.len != s->nbytes || !bytes.len)
        return false;
    if (s->nkept == s->nbytes)
        return memcmp(s->kept, at, bytes.len) == 0;
    return memcmp(s->kept, at, SAME_HEAD) == 0 &&
           memcmp(s->kept + SAME_HEAD, at + SAME_SUM, SAME_SUM_BYTES) == 0;
}

void sql_same_end(struct sql_same *s)
{
    sql_release(s->mem, s->kept, s->nkept + 1);
    s->kept = NULL;
}

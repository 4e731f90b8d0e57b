/*
 * icp.c - answers to ICP, the question of one proxy to another
 */
#include <string.h>

#include "apps/digest/icp.h"
#include "base/byte_order.h"

#define ICP_VERSION 2
#define ICP_HEAD 20
#define ICP_URL (ICP_HEAD + 4) /* of a query */
enum { ICP_QUERY = 1, ICP_HIT = 2, ICP_MISS = 3 };

bool icp_query(const unsigned char *packet, size_t n, bly_bytes *url)
{
    if (n <= ICP_URL || packet[0] != ICP_QUERY || packet[1] != ICP_VERSION ||
        get_be(packet + 2, 2) != n)
        return false;
    const char *const at = (const char *)packet + ICP_URL;
    const char *const end = memchr(at, '\0', n - ICP_URL);
    *url = (bly_bytes){ at, end ? (size_t)(end - at) : 0 };
    return end && end > at;
}

size_t icp_answer(const unsigned char *query, bool hit, unsigned char *out)
{
    const size_t nurl = strlen((const char *)query + ICP_URL) + 1;
    memset(out, 0, ICP_HEAD);
    out[0] = hit ? ICP_HIT : ICP_MISS;
    out[1] = ICP_VERSION;
    put_be(out + 2, ICP_HEAD + nurl, 2);
    memcpy(out + 4, query + 4, 4);
    memcpy(out + ICP_HEAD, query + ICP_URL, nurl);
    return ICP_HEAD + nurl;
}

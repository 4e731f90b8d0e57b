/*
 * pages.h - huge pages for large arrays that are in use
 *
 * The places of an item are scattered over its filter. With pages of 4 KiB a
 * filter of more than some megabytes has more of them than a processor keeps
 * addresses for, and to fetch a place it reads tables first: that is more than
 * half of the time of a large BF.MADD. Huge pages from the start would be as
 * bad: the first items of an empty filter would each fill megabytes with zeros.
 * So an array gets them when nearly all of its pages are in use, and a thread
 * sees to it while commands go on. What a saving child shares with the server
 * is left alone; after it, what was written meanwhile is put together again.
 */
#ifndef BLY_REDIS_PAGES_H
#define BLY_REDIS_PAGES_H

#include "adapters/redis/redis_value.h"

/* So many items of f were added or asked for. */
void pages_asked(server_ctx *ctx, const bly_foreign *f, size_t nitems);

#endif

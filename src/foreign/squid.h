/*
 * squid.h - URLs as Squid keys them
 */
#ifndef BLY_FOREIGN_SQUID_H
#define BLY_FOREIGN_SQUID_H

#include <stddef.h>

/* How much longer than what was sent a canonical URL can be: an address such
 * as [1::2] may be written in 46 characters, and a slash added. */
#define BLY_SQUID_URL_MORE 64

/* The form in which Squid keys the URL of a request, into out, which has room
 * for n + BLY_SQUID_URL_MORE bytes: its length. What Squid would refuse to
 * fetch comes out as it is, without its blanks. */
size_t bly_squid_url(const char *url, size_t n, char *out);

#endif

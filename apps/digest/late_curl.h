/*
 * late_curl.h - libcurl, loaded when it is needed
 */
#ifndef BLY_LATE_CURL_H
#define BLY_LATE_CURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "io/late.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

#define CURL_CALLS(X)      \
    X(curl_global_init)    \
    X(curl_global_cleanup) \
    X(curl_easy_init)      \
    X(curl_easy_setopt)    \
    X(curl_easy_getinfo)   \
    X(curl_easy_perform)   \
    X(curl_easy_strerror)  \
    X(curl_easy_cleanup)   \
    X(curl_slist_append)   \
    X(curl_slist_free_all) \
    X(curl_getdate)

extern struct curl_calls {
    CURL_CALLS(LATE_MEMBER)
} curl_calls;

/* Load it and start it; false, with the reason printed. Ends with
 * curl_global_cleanup().
 */
bool curl_begin(void);

#define curl_global_init (*curl_calls.late_curl_global_init)
#define curl_global_cleanup (*curl_calls.late_curl_global_cleanup)
#define curl_easy_init (*curl_calls.late_curl_easy_init)
#define curl_easy_setopt (*curl_calls.late_curl_easy_setopt)
#define curl_easy_getinfo (*curl_calls.late_curl_easy_getinfo)
#define curl_easy_perform (*curl_calls.late_curl_easy_perform)
#define curl_easy_strerror (*curl_calls.late_curl_easy_strerror)
#define curl_easy_cleanup (*curl_calls.late_curl_easy_cleanup)
#define curl_slist_append (*curl_calls.late_curl_slist_append)
#define curl_slist_free_all (*curl_calls.late_curl_slist_free_all)
#define curl_getdate (*curl_calls.late_curl_getdate)

#endif

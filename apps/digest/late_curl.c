/*
 * late_curl.c - libcurl, loaded when it is needed
 */
#include "apps/digest/late_curl.h"
#include "report/say.h"

struct curl_calls curl_calls;

bool curl_begin(void)
{
    static const char *const names[] = { CURL_CALLS(LATE_NAME) };
    if (!late_load("libcurl.so.4", "libcurl4", names,
                   sizeof names / sizeof names[0], &curl_calls))
        return false;
    if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
        fail("libcurl cannot be started");
        return false;
    }
    return true;
}

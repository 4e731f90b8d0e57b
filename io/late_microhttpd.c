/*
 * late_microhttpd.c - libmicrohttpd, loaded when it is needed
 */
#include "io/late_microhttpd.h"

struct mhd_calls mhd_calls;

bool mhd_begin(void)
{
    static const char *const names[] = { MHD_CALLS(LATE_NAME) };
    return late_load("libmicrohttpd.so.12", "libmicrohttpd12", names,
                     sizeof names / sizeof names[0], &mhd_calls);
}

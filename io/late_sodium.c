/*
 * late_sodium.c - libsodium, loaded when it is needed
 */
#include "io/late_sodium.h"

#include "report/say.h"

struct sodium_calls sodium_calls;

bool sodium_begin(void)
{
    static const char *const names[] = { SODIUM_CALLS(LATE_NAME) };
    if (!late_load("libsodium.so.23", "libsodium23", names,
                   sizeof names / sizeof names[0], &sodium_calls))
        return false;
    if (sodium_init() >= 0)
        return true;
    fail("libsodium cannot begin: the system has no random numbers");
    return false;
}

/*
 * status_text.c - what a status is called, and which version this is
 */
#include "core/status.h"

const char *bly_status_text(bly_status status)
{
    static const char *const texts[] = {
#define STATUS_TEXT(name, text) text,
        BLY_STATUSES(STATUS_TEXT)
#undef STATUS_TEXT
    };
    if ((unsigned)status >= BLY_STATUS_COUNT_)
        return "unknown status";
    return texts[status];
}

#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)

const char *bly_version(void)
{
    return QUOTE(BLY_VERSION_MAJOR) "." QUOTE(BLY_VERSION_MINOR) "." QUOTE(
        BLY_VERSION_PATCH);
}

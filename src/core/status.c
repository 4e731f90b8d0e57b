/*
 * status.c - saying what went wrong, in one line
 */
#include <stdarg.h>
#include <stdio.h>

#include "core/status.h"

/* Long enough for two paths and a sentence; longer lines are cut. */
static _Thread_local char error_line[1024] = "no error";

const char *bly_error(void)
{
    return error_line;
}

bly_status(bly_fail)(bly_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error_line, sizeof error_line, format, args);
    va_end(args);
    return status;
}

bly_status(bly_fail_null)(const char *argument)
{
    return bly_fail(BLY_EINVAL, "%s is NULL; it must not be", argument);
}

void bly_names_add(bly_names *list, const char *name)
{
    const size_t room = sizeof list->text - list->len;
    const int n = snprintf(list->text + list->len, room, "%s%s",
                           list->len ? ", " : "", name);
    if (n > 0 && (size_t)n < room)
        list->len += (size_t)n;
    else
        list->text[list->len] = '\0';
}

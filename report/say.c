/*
 * say.c - messages, one line each
 */
#include <stdarg.h>
#include <string.h>

#include "report/say.h"
#include "report/show.h"

static const char *running;
bool quiet;

void set_running(const char *command)
{
    running = command;
}

const char *running_command(void)
{
    return running;
}

/* One line, whatever file names and keys are in it. */
__attribute__((format(printf, 2, 0))) static void
say(const char *what, const char *format, va_list ap)
{
    char text[2048];
    const int n = vsnprintf(text, sizeof text, format, ap);
    if (n >= (int)sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    text_clean(text, strlen(text), false);
    progress_clear();
    fflush(stdout);
    if (running)
        fprintf(stderr, "bloomery: %s: %s%s\n", running, what, text);
    else
        fprintf(stderr, "bloomery: %s%s\n", what, text);
}

int(fail)(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("", format, ap);
    va_end(ap);
    return TROUBLE;
}

void warn(const char *format, ...)
{
    va_list ap;
    if (quiet)
        return;
    va_start(ap, format);
    say("warning: ", format, ap);
    va_end(ap);
}

void note(const char *format, ...)
{
    va_list ap;
    if (quiet)
        return;
    va_start(ap, format);
    say("", format, ap);
    va_end(ap);
}

int(fail_path)(const char *path, int error)
{
    return fail("%s: %s", path, strerror(error));
}

int(fail_library)(void)
{
    return fail("%s", bly_error());
}

bool(refuse)(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("", format, ap);
    va_end(ap);
    return false;
}

bool(refuse_path)(const char *path, int error)
{
    return !fail_path(path, error);
}

bool(refuse_library)(void)
{
    return !fail_library();
}

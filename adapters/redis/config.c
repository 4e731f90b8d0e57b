/*
 * config.c - see config.h
 *
 * All are registered as text: older servers know no real numbers, and the
 * texts of errors are the peer's.
 */
#define _GNU_SOURCE
#include "adapters/redis/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define UNPREFIXED (1u << 7)

static void setting_text(const setting *s, double value, char *text,
                         size_t size)
{
    if (s->flag)
        snprintf(text, size, "%s", value != 0 ? "yes" : "no");
    else if (s->real && s->given[0])
        snprintf(text, size, "%s", s->given);
    else if (s->real)
        snprintf(text, size, "%.17g", value);
    else
        snprintf(text, size, "%.0f", value);
}

/* Take a value; false, and what is wrong in text, if it may not be. */
static bool setting_take(setting *s, const server_string *given, char *text,
                         size_t size)
{
    double value;
    long long whole;
    bool ok;
    if (s->flag) {
        value = arg_is(given, "yes");
        ok = arg_is(given, "yes") || arg_is(given, "no");
    } else if (s->real) {
        ok = srv.StringToDouble(given, &value) == SERVER_OK && !isnan(value);
    } else {
        ok = srv.StringToLongLong(given, &whole) == SERVER_OK;
        value = ok ? (double)whole : 0;
    }
    if (!ok) {
        snprintf(text, size, "Invalid value for `%s`", s->name);
        return false;
    }
    const bool inside = s->real ? value > s->min && value < s->max
                                : value >= s->min && value <= s->max;
    if (!inside && s->real) {
        snprintf(text, size, "Value for `%s` must be in the range (%f, %f)",
                 s->name, s->min, s->max);
        return false;
    }
    if (!inside) {
        snprintf(text, size, "Value for `%s` must be in the range [%.0f, %.0f]",
                 s->name, s->min, s->max);
        return false;
    }
    const char *refused = s->refuse ? s->refuse(value) : NULL;
    if (refused) {
        snprintf(text, size, "%s", refused);
        return false;
    }
    s->value = value;
    /* A rate is told as it was given, to the last digit. */
    const bytes b = arg_bytes(given);
    if (s->real && b.n < sizeof s->given)
        memcpy(s->given, b.at, b.n + 1);
    else
        s->given[0] = '\0';
    return true;
}

static server_string *setting_get(const char *name, void *which)
{
    (void)name;
    setting *s = which;
    char text[40];
    setting_text(s, s->value, text, sizeof text);
    if (s->shown)
        srv.FreeString(NULL, s->shown);
    s->shown = srv.CreateString(NULL, text, strlen(text));
    return s->shown;
}

static int setting_set(const char *name, server_string *given, void *which,
                       server_string **error)
{
    (void)name;
    char text[160];
    if (setting_take(which, given, text, sizeof text))
        return SERVER_OK;
    *error = srv.CreateString(NULL, text, strlen(text));
    return SERVER_ERR;
}

/* Where the server can, the name is as in the peer. */
int setting_register_text(server_ctx *ctx, const char *name, const char *def,
                          setting_getter *get, setting_setter *set, void *which)
{
    if (!srv.RegisterStringConfig || !srv.LoadConfigs)
        return SERVER_OK;
    return srv.RegisterStringConfig(ctx, name, def, UNPREFIXED, get, set, NULL,
                                    which) == SERVER_OK
               ? SERVER_OK
               : srv.RegisterStringConfig(ctx, name, def, 0, get, set, NULL,
                                          which);
}

int settings_register(server_ctx *ctx, setting *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[40];
        s[i].value = s[i].def;
        if (s[i].real)
            snprintf(s[i].given, sizeof s[i].given, "%g", s[i].def);
        setting_text(&s[i], s[i].def, text, sizeof text);
        if (setting_register_text(ctx, s[i].name, text, setting_get,
                                  setting_set, &s[i]) != SERVER_OK)
            return SERVER_ERR;
    }
    return SERVER_OK;
}

int settings_argument(server_ctx *ctx, setting *s, size_t n, const char *name,
                      server_string *value)
{
    char text[160];
    for (size_t i = 0; i < n; i++) {
        if (strcasecmp(name, s[i].name) != 0 &&
            (!s[i].old_name || strcasecmp(name, s[i].old_name) != 0))
            continue;
        if (setting_take(&s[i], value, text, sizeof text))
            return 1;
        srv.Log(ctx, "warning", "%s", text);
        return -1;
    }
    return 0;
}

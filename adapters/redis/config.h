/*
 * config.h - settings: CONFIG SET and GET, and arguments of loadmodule
 *
 * A setting is a number with a name, a default and a range. Where the server
 * can, its name is as in the peer (bf-error-rate); older servers put the
 * module's name in front (bf.bf-error-rate).
 */
#ifndef BLY_REDIS_CONFIG_H
#define BLY_REDIS_CONFIG_H

#include "adapters/redis/redis_module.h"

typedef struct setting {
    const char *name;
    const char *old_name; /* as an argument of loadmodule; NULL: none */
    double def, min, max;
    bool real;            /* the range has open ends; else a whole number */
    bool flag;            /* yes or no */
    double value;         /* now */
    char given[40];       /* a real one as it was given, if that is short */
    server_string *shown; /* what CONFIG GET was given last */

    /* May the new value be? NULL where it may, else what is said. NULL here:
     * any in the range may. */
    const char *(*refuse)(double value);
} setting;

/* Register n settings at their defaults. SERVER_OK also on servers that have
 * no settings of modules. */
int settings_register(server_ctx *ctx, setting *s, size_t n);

/* Register one whose value is a text, as the server's RegisterStringConfig
 * does. */
typedef server_string *setting_getter(const char *name, void *which);
typedef int setting_setter(const char *name, server_string *given, void *which,
                           server_string **error);
int setting_register_text(server_ctx *ctx, const char *name, const char *def,
                          setting_getter *get, setting_setter *set,
                          void *which);

/* For family.argument: 1 set, 0 none of that name, -1 bad and logged. */
int settings_argument(server_ctx *ctx, setting *s, size_t n, const char *name,
                      server_string *value);

#endif

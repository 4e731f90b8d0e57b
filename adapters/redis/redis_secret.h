/*
 * redis_secret.h - secrets of keyed filters, from a file that a setting names
 *
 * The setting bly-secret-file names a file: 16 raw bytes, or lines of 32
 * hexadecimal digits. The first secret is for new filters; the others are those
 * of older ones, so that a secret can be replaced. They are in the server's
 * memory alone: no dump, log or replica gets them.
 */
#ifndef BLY_REDIS_SECRET_H
#define BLY_REDIS_SECRET_H

#include "adapters/redis/redis_module.h"

/* Register the setting; and take it as an argument of loadmodule, as
 * family.argument does. */
int secret_register(server_ctx *ctx);
int secret_argument(server_ctx *ctx, const char *name, server_string *value);

/* The secret for new filters; NULL: there is none. */
const unsigned char *secret_for_new(void);

/* Is f open to questions? One that is keyed and blind is unlocked if its secret
 * is here. */
bool secret_opens(bly_filter *f);

/* Make an empty filter of spec that is keyed with the secret of a check, which
 * may be here or not. */
bly_status secret_new(const bly_spec *spec, uint64_t check, bly_filter **out);

#endif

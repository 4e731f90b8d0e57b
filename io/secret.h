/*
 * secret.h - secrets in files
 */
#ifndef BLY_IO_SECRET_H
#define BLY_IO_SECRET_H

#include <stdbool.h>

/* Read the secret in a key file: 16 raw bytes, or 32 hexadecimal digits and
 * perhaps the end of a line. NULL, with the reason printed, if it is anything
 * else. What comes back is wiped by secret_wipe(), and at exit. path NULL gives
 * NULL with *ok. */
const unsigned char *secret_read(const char *path, bool *ok);
void secret_wipe(void);

/* Open a file with something secret in it. Negative, with the reason printed,
 * if that fails. *open_to_all: others may read it, which is worth a warning. */
int secret_open(const char *path, bool *open_to_all);

#endif

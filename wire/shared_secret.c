/*
 * shared_secret.c - what two processes both have, and nobody else
 */
#define _GNU_SOURCE
#include "wire/shared_secret.h"

#include <string.h>
#include <sys/random.h>

#include "io/files.h"
#include "io/hex.h"
#include "io/new_file.h"
#include "report/say.h"

bool shared_make(const char *path)
{
    unsigned char key[SECURE_SECRET];
    char text[2 * SECURE_SECRET + 1];
    if (getrandom(key, sizeof key, 0) != sizeof key)
        return refuse("the system has no random numbers");
    hex_put(key, sizeof key, text);
    text[sizeof text - 1] = '\n';
    const bool made = secret_make(path, text, sizeof text);
    explicit_bzero(key, sizeof key);
    explicit_bzero(text, sizeof text);
    return made;
}

bool shared_read(const char *path, struct secure_secret *out)
{
    *out = (struct secure_secret){ 0 };
    out->nkey = path ? secret_bytes(path, out->key, SECURE_SECRET) : 0;
    out->given = out->nkey != 0;
    return out->given || !path;
}

const unsigned char *shared_hashes(const struct secure_secret *secret)
{
    return secret->given ? secret->key : NULL;
}

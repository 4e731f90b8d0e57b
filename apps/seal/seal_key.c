/*
 * seal_key.c - the secret of an archive, and what is made of it
 *
 * A file with a line of 64 hexadecimal digits that only its owner can read. The
 * secret itself seals nothing: from it come a key for documents, one for words,
 * one that shows whose choice the rate was, and a number that tells which
 * secret something was made with.
 */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "apps/seal/seal.h"
#include "io/files.h"
#include "io/hex.h"
#include "io/new_file.h"
#include "report/say.h"

#define KEY_DIGITS (2 * SEAL_KEY_BYTES)
#define KEY_CONTEXT "blyseal1" /* 8 bytes, as libsodium wants them */

enum { FOR_STREAM = 1, FOR_WORDS, FOR_ID, FOR_INDEX };

bool keys_make(const char *path)
{
    unsigned char secret[SEAL_KEY_BYTES];
    char text[KEY_DIGITS + 1];
    sodium_mlock(secret, sizeof secret);
    randombytes_buf(secret, sizeof secret);
    hex_put(secret, sizeof secret, text);
    text[KEY_DIGITS] = '\n';
    const bool made = secret_make(path, text, sizeof text);
    sodium_munlock(secret, sizeof secret); /* wipes */
    explicit_bzero(text, sizeof text);
    return made;
}

bool keys_open(const char *path, struct seal_keys *k)
{
    if (!path) {
        fail("-K KEY is missing: the key file, which bloomery seal init makes");
        return false;
    }
    if (!secure_begin())
        return false;
    bool open_to_all;
    const int fd = secret_open(path, &open_to_all);
    if (fd < 0)
        return false;
    char text[KEY_DIGITS + 3];
    sodium_mlock(k, sizeof *k);
    ssize_t n = read(fd, text, sizeof text);
    while (n > KEY_DIGITS && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    const bool ok =
        n == KEY_DIGITS && hex_read(text, SEAL_KEY_BYTES, k->master);
    close(fd);
    explicit_bzero(text, sizeof text);
    if (!ok) {
        keys_close(k);
        fail("%s: not a key of an archive, which is a line of %d hexadecimal "
             "digits",
             path, KEY_DIGITS);
        return false;
    }
    if (open_to_all)
        warn("%s: others may read this key; chmod it to 600", path);
    crypto_kdf_derive_from_key(k->stream, SEAL_KEY_BYTES, FOR_STREAM,
                               KEY_CONTEXT, k->master);
    crypto_kdf_derive_from_key(k->words, SEAL_KEY_BYTES, FOR_WORDS, KEY_CONTEXT,
                               k->master);
    crypto_kdf_derive_from_key(k->index, SEAL_KEY_BYTES, FOR_INDEX, KEY_CONTEXT,
                               k->master);
    unsigned char id[16]; /* the least that is derived */
    crypto_kdf_derive_from_key(id, sizeof id, FOR_ID, KEY_CONTEXT, k->master);
    memcpy(k->id, id, KEY_ID_BYTES);
    return true;
}

void keys_close(struct seal_keys *k)
{
    sodium_munlock(k, sizeof *k);
}

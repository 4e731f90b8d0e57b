/*
 * secure.c - who may speak: a shared secret, and sealed records
 */
#define _GNU_SOURCE
#include "wire/secure.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/byte_order.h"
#include "io/files.h"
#include "io/hex.h"
#include "io/new_file.h"
#include "report/say.h"

#define SECURE_MAGIC "blyring"

bool secure_begin(void)
{
    return sodium_init() >= 0 ||
           !fail("libsodium cannot begin: the system has no random numbers");
}

bool secure_make(const char *path)
{
    unsigned char key[SECURE_SECRET];
    char text[2 * SECURE_SECRET + 1];
    if (getrandom(key, sizeof key, 0) != sizeof key)
        return !fail("the system has no random numbers");
    hex_put(key, sizeof key, text);
    text[sizeof text - 1] = '\n';
    const bool made = secret_make(path, text, sizeof text);
    explicit_bzero(key, sizeof key);
    explicit_bzero(text, sizeof text);
    return made;
}

bool secure_read(const char *path, struct secure_secret *out)
{
    *out = (struct secure_secret){ 0 };
    if (!path)
        return true;
    char text[2 * SECURE_SECRET + 2];
    bool open_to_all;
    if (!secure_begin())
        return false;
    const int fd = secret_open(path, &open_to_all);
    if (fd < 0)
        return false;
    int64_t n = read_all(fd, text, sizeof text);
    close(fd);
    if (n > 0 && text[n - 1] == '\n')
        n--;
    out->given =
        n == 2 * SECURE_SECRET && hex_read(text, SECURE_SECRET, out->key);
    explicit_bzero(text, sizeof text);
    if (!out->given)
        return !fail("%s: not a secret of a ring, which is a line of %d "
                     "hexadecimal digits; bloomery node key makes one",
                     path, 2 * SECURE_SECRET);
    if (open_to_all)
        warn("%s: others may read this secret; chmod it to 600", path);
    return true;
}

void secure_hello(struct secure *s, const struct secure_secret *secret,
                  unsigned char hello[SECURE_HELLO])
{
    s->on = secret->given;
    s->ready = false;
    memcpy(hello, SECURE_MAGIC, 7);
    hello[7] = s->on ? '2' : '0';
    /* Where chance fails, a nonce that repeats opens nothing without the other
     * end's. */
    if (getrandom(s->nonce, sizeof s->nonce, 0) < 0)
        memset(s->nonce, 0, sizeof s->nonce);
    memcpy(hello + 8, s->nonce, 32);
}

static void derive(const struct secure_secret *secret, bool from_asker,
                   const struct address *server, const unsigned char *asker,
                   const unsigned char *other, unsigned char key[32])
{
    unsigned char text[65 + 19];
    text[0] = from_asker;
    memcpy(text + 1, asker, 32);
    memcpy(text + 33, other, 32);
    /* One that listens for both families sees the older one inside of the
     * newer. */
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    const bool inside =
        server->family == 6 && memcmp(server->at, mapped, 12) == 0;
    const bool old = inside || server->family == 4;
    memset(text + 65, 0, 17);
    text[65] = old ? 4 : server->family;
    memcpy(text + 66, server->at + (inside ? 12 : 0), old ? 4 : 16);
    put_le(text + 82, server->port, 2);
    crypto_generichash(key, 32, text, sizeof text, secret->key, SECURE_SECRET);
}

const char *secure_greeted(struct secure *s, const struct secure_secret *secret,
                           bool asks, const struct address *server,
                           const unsigned char hello[SECURE_HELLO],
                           unsigned char header[SECURE_HEADER])
{
    if (memcmp(hello, SECURE_MAGIC, 7) != 0)
        return "it does not speak this protocol";
    if (hello[7] != (s->on ? '2' : '0'))
        return hello[7] == '1' ? "it runs an earlier version of this program"
               : s->on         ? "its ring has no secret, and this one has"
                               : "its ring has a secret; use --key-file FILE";
    s->ready = !s->on;
    if (s->on) {
        unsigned char key[32];
        const unsigned char *const asker = asks ? s->nonce : hello + 8;
        const unsigned char *const other = asks ? hello + 8 : s->nonce;
        derive(secret, asks, server, asker, other, key);
        crypto_secretstream_xchacha20poly1305_init_push(&s->out, header, key);
        /* Kept until the other's header comes. */
        derive(secret, !asks, server, asker, other, s->nonce);
        explicit_bzero(key, sizeof key);
    }
    return NULL;
}

bool secure_begins(struct secure *s, const unsigned char header[SECURE_HEADER])
{
    s->ready = crypto_secretstream_xchacha20poly1305_init_pull(&s->in, header,
                                                               s->nonce) == 0;
    explicit_bzero(s->nonce, sizeof s->nonce);
    return s->ready;
}

size_t secure_seal(struct secure *s, const unsigned char *bytes, size_t n,
                   unsigned char *out)
{
    unsigned long long sealed = 0;
    crypto_secretstream_xchacha20poly1305_push(&s->out, out + 4, &sealed, bytes,
                                               n, NULL, 0, 0);
    put_le(out, sealed, 4);
    return (size_t)sealed + 4;
}

size_t secure_open(struct secure *s, const unsigned char *bytes, size_t n,
                   unsigned char *out)
{
    unsigned long long opened = 0;
    unsigned char tag;
    if (n < 17 || crypto_secretstream_xchacha20poly1305_pull(
                      &s->in, out, &opened, &tag, bytes, n, NULL, 0) != 0)
        return 0;
    return (size_t)opened;
}

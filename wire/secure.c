/*
 * secure.c - who may speak: a shared secret, and sealed records
 */
#define _GNU_SOURCE
#include "wire/secure.h"

#include <string.h>
#include <sys/random.h>

#include "base/byte_order.h"
#include "report/say.h"

bool secure_begin(void)
{
    return sodium_init() >= 0 ||
           refuse("libsodium cannot begin: the system has no random numbers");
}

bool secure_read(const char *path, struct secure_secret *out)
{
    return shared_read(path, out) && (!out->given || secure_begin());
}

void secure_hello(struct secure *s, const char *protocol,
                  const struct secure_secret *secret,
                  unsigned char hello[SECURE_HELLO])
{
    s->protocol = protocol ? protocol : SECURE_RING;
    s->on = secret->given;
    s->ready = false;
    memcpy(hello, s->protocol, 7);
    hello[7] = s->on ? '2' : '0';
    /* Where chance fails, a nonce that repeats opens nothing without the other
     * end's. */
    if (getrandom(s->nonce, sizeof s->nonce, 0) < 0)
        memset(s->nonce, 0, sizeof s->nonce);
    memcpy(hello + 8, s->nonce, 32);
}

static void derive(const struct secure *s, const struct secure_secret *secret,
                   bool from_asker, const struct address *server,
                   const unsigned char *asker, const unsigned char *other,
                   unsigned char key[32])
{
    unsigned char text[65 + 19 + 7];
    /* Rings were first, and have no name here. */
    const bool ring = memcmp(s->protocol, SECURE_RING, 7) == 0;
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
    memcpy(text + 84, s->protocol, 7);
    crypto_generichash(key, 32, text, ring ? 84 : 91, secret->key,
                       secret->nkey);
}

bool secure_same(const struct secure *s, const unsigned char hello[8])
{
    return memcmp(hello, s->protocol, 7) == 0;
}

const char *secure_meets(const struct secure *s, const unsigned char hello[8])
{
    if (!secure_same(s, hello))
        return "it does not speak this protocol, or runs another version";
    if (hello[7] == (s->on ? '2' : '0'))
        return NULL;
    if (hello[7] == '1')
        return "it runs an earlier version of this program";
    if (hello[7] != '0' && hello[7] != '2')
        return "it runs a later version of this program";
    return s->on ? "it has no secret; give it the same --key-file, or give "
                   "none here"
                 : "it has a secret; use --key-file FILE with the same one";
}

const char *secure_greeted(struct secure *s, const struct secure_secret *secret,
                           bool asks, const struct address *server,
                           const unsigned char hello[SECURE_HELLO],
                           unsigned char header[SECURE_HEADER])
{
    const char *const why = secure_meets(s, hello);
    if (why)
        return why;
    s->ready = !s->on;
    if (s->on) {
        unsigned char key[32];
        const unsigned char *const asker = asks ? s->nonce : hello + 8;
        const unsigned char *const other = asks ? hello + 8 : s->nonce;
        derive(s, secret, asks, server, asker, other, key);
        crypto_secretstream_xchacha20poly1305_init_push(&s->out, header, key);
        /* Kept until the other's header comes. */
        derive(s, secret, !asks, server, asker, other, s->nonce);
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

/*
 * fuzz_session.c - a session with a peer that says anything
 *
 * The first byte chooses who asks, whether there is a secret, and whether the
 * peer's hello is right; the rest is what it says. Whatever comes: no crash, no
 * more memory than was said, and with a secret no frame at all.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/say.h"
#include "wire/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ASKS 1
#define SECRET 2
#define GREETS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct secure_secret secrets[2] = {
        { .given = false }, { .given = true, .key = "a secret", .nkey = 16 }
    };
    static int said = -1, nowhere = -1;
    unsigned char hello[SECURE_HELLO] = "fuzzing0";
    struct frame f;
    if (said < 0) {
        said = memfd_create("said", 0);
        nowhere = open("/dev/null", O_WRONLY);
    }
    if (!size || !secure_begin())
        return 0;
    const uint8_t how = *data++;
    size--;
    hello[7] = how & SECRET ? '2' : '0';
    if (ftruncate(said, 0) || lseek(said, 0, SEEK_SET) ||
        (how & GREETS && write(said, hello, sizeof hello) < 0) ||
        (size && write(said, data, size) < 0) || lseek(said, 0, SEEK_SET))
        abort();
    struct session s = { .protocol = "fuzzing",
                         .secret = &secrets[!!(how & SECRET)],
                         .most = 1 << 16 };
    session_over(&s, dup(said), dup(nowhere));
    if (session_greet(&s, how & ASKS, NULL, SESSION_NEVER))
        while (session_receive(&s, &f, SESSION_NEVER))
            if (f.nbody > s.most || how & SECRET)
                abort();
    if (!session_why(&s)[0] || s.in.room > 2 * size + 2 * SECURE_HELLO + 65536)
        abort();
    session_close(&s);
    return 0;
}

/* The sums are mended, so that the fuzzer gets past them. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, most);
    if (size < 1 + FRAME_OVERHEAD || seed % 8 == 0)
        return size;
    const struct frame f = { .type = data[6], .request = data[9] };
    return 1 + frame_close(data + 1, size - 1 - FRAME_OVERHEAD, &f);
}

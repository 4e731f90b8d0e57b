/*
 * fuzz_prefixes.c - any bytes as a list of addresses, and as a flow
 *
 * What is taken from a list is a prefix: its text is read back as the same one,
 * and nothing is set behind its bits. What is taken for the text of a flow is
 * one: its own text is read back as the same key.
 */
#include <assert.h>
#include <string.h>

#include "apps/traffic/packet.h"
#include "apps/traffic/prefix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool again(void *ctx, const struct prefix *p)
{
    *(struct prefix *)ctx = *p;
    return true;
}

static bool taken(void *ctx, const struct prefix *p)
{
    char text[PREFIX_TEXT];
    struct prefix back = { 0 };
    struct prefix_reader r = { .take = again, .ctx = &back };
    const char *why;
    unsigned char key[PREFIX_KEY];
    size_t *const n = ctx;
    assert(p->version == 4 || p->version == 6);
    assert(p->bits <= (p->version == 4 ? 32 : 128));
    prefix_text(p, text);
    assert(prefix_line(&r, text, strlen(text), &why) && r.entries == 1);
    assert(prefix_order(p, &back) == 0);
    assert(prefix_key(p, key) <= PREFIX_KEY);
    return ++*n < 10000; /* a reader may be stopped */
}

static void flow(const uint8_t *data, size_t size)
{
    static const char *const keys[] = { "5tuple", "src", "srcdst",
                                        "prefix/20" };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct key_choice choice;
        struct flow_key key, back;
        char text[FLOW_TEXT];
        assert(key_choose(keys[i], &choice));
        if (!key_parse(choice, (const char *)data, size, &key))
            continue;
        key_text(choice, &key, text);
        assert(key_parse(choice, text, strlen(text), &back));
        assert(key.len == back.len && memcmp(key.at, back.at, key.len) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n = 0;
    struct prefix_reader r = { .take = taken, .ctx = &n };
    const char *why;
    flow(data, size);
    while (size && !r.stopped) {
        const uint8_t *const end = memchr(data, '\n', size);
        const size_t line = end ? (size_t)(end - data) : size;
        if (!prefix_line(&r, (const char *)data, line, &why))
            assert(why);
        data += line + (end != NULL);
        size -= line + (end != NULL);
    }
    return 0;
}

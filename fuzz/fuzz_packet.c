/*
 * fuzz_packet.c - any bytes as a packet of any link
 *
 * The first two bytes choose the link, the key and whether tunnels are looked
 * into. What is found lies inside of the bytes, a packet that was captured
 * shorter is never another flow, and a key can be printed.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int links[] = {
        0, 1, 12, 14, 101, 108, 113, 228, 229, 276, 7
    };
    static const char *const keys[] = { "5tuple", "src", "dst", "srcdst",
                                        "prefix/20" };
    if (size < 2)
        return 0;
    const int link = links[data[0] % (sizeof links / sizeof links[0])];
    const bool inner = data[1] & 0x80;
    struct key_choice choice;
    assert(key_choose(keys[(data[1] & 0x7f) % 5], &choice));

    /* Bytes of their own, so that a look past their end is seen. */
    const size_t n = size - 2;
    unsigned char *const bytes = malloc(n ? n : 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data + 2, n);
    struct packet p;
    struct flow_key key, shorter;
    char text[FLOW_TEXT];
    if (packet_parse(link, bytes, n, inner, &p) == PACKET_IP) {
        assert(p.version == 4 || p.version == 6);
        assert(p.payload >= bytes && p.payload + p.npayload <= bytes + n);
        if (key_of(choice, &p, &key)) {
            key_text(choice, &key, text);
            assert(key_parse(choice, text, strlen(text), &shorter));
            assert(shorter.len == key.len &&
                   memcmp(shorter.at, key.at, key.len) == 0);
            for (size_t cut = n; !inner && cut-- > 0;)
                if (packet_parse(link, bytes, cut, inner, &p) == PACKET_IP &&
                    key_of(choice, &p, &shorter))
                    assert(shorter.len == key.len &&
                           memcmp(shorter.at, key.at, key.len) == 0);
        }
    }
    free(bytes);
    return 0;
}

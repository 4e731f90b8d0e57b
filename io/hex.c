/*
 * hex.c - bytes as hexadecimal digits, and back
 *
 * By a table and without a branch: lists of hashes have forty digits in each of
 * a billion lines.
 */
#include "io/hex.h"

/* Of each byte: the digit's value and one, 0 for what is not a digit. */
#define HEX_THREE(c, n) [c] = n, [c + 1] = n + 1, [c + 2] = n + 2
static const unsigned char hex_values[256] = {
    HEX_THREE('0', 1),  HEX_THREE('3', 4),  HEX_THREE('6', 7),
    ['9'] = 10,         HEX_THREE('A', 11), HEX_THREE('D', 14),
    HEX_THREE('a', 11), HEX_THREE('d', 14),
};

int hex_value(char c)
{
    return hex_values[(unsigned char)c] - 1;
}

bool hex_read(const char *digits, size_t n, unsigned char *out)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned high = hex_values[(unsigned char)digits[2 * i]] - 1u;
        const unsigned low = hex_values[(unsigned char)digits[2 * i + 1]] - 1u;
        wrong |= high | low;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return wrong < 16;
}

static void put_by(const char digits[16], const unsigned char *bytes, size_t n,
                   char *out)
{
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
}

void hex_put(const unsigned char *bytes, size_t n, char *out)
{
    put_by("0123456789abcdef", bytes, n, out);
}

void hex_put_upper(const unsigned char *bytes, size_t n, char *out)
{
    put_by("0123456789ABCDEF", bytes, n, out);
}

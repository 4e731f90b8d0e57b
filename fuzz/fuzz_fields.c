/*
 * fuzz_fields.c - lines that anyone may have written, and the keys in them
 *
 * The first three bytes choose the way (fields, CSV, JSON), the number of the
 * field, and how large the pieces are in which the rest is read. What is found
 * must be what a reader finds that goes byte by byte.
 */
#include "../tests/picking_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = { "id", "id.n", "n.1", "/id" };
    if (size < 3)
        return 0;
    struct check c;
    if (check_start(&c, data[0] % 3, data[1] % 8, data[0] & 0x80 ? ';' : ',',
                    paths[data[1] % 4]) &&
        !ways_agree(&c, (const char *)data + 3, size - 3, 1 + data[2] % 128u,
                    1 + data[2] / 4u))
        abort();
    check_end(&c);
    return 0;
}

/*
 * fuzz_spie.c - any bytes as a file of digest tables
 *
 * The sum at the end is made right, so that the rest is looked at too. What is
 * taken can be asked, and is written back as it came.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/spie.h"
#include "base/byte_order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *const bytes = malloc(size + 8);
    struct spie_file f;
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    put_le(bytes + size,
           bly_hash(&(bly_hasher){ .id = BLY_HASH_XXH3 }, data, size), 8);
    if (!spie_file_parse(bytes, size + 8, &f)) {
        const struct spie_packet p = { .len = 28 };
        struct spie_packet was;
        enum spie_change change;
        size_t n;
        spie_ask(&f, INT64_MIN, INT64_MAX, &p, &was, &change);
        for (size_t i = 0; i < f.ntables; i++)
            assert(f.tables[i].start <= f.tables[i].end);
        unsigned char *const again = spie_file_bytes(&f, &n);
        assert(!again || n >= 24);
        free(again);
        spie_file_free(&f);
    }
    free(bytes);
    return 0;
}

/*
 * sorted_table.c - the frame of LevelDB's and RocksDB's tables
 */
#include <string.h>

#include "core/varint.h"
#include "foreign/hashes.h"
#include "foreign/sorted_table.h"

/* What is left to read. */
struct table_reader {
    const unsigned char *p;
    size_t n;
};

static bool table_varint(struct table_reader *r, uint64_t *out)
{
    const unsigned char *const end = r->p + r->n;
    const bool there = bly_varint_read(&r->p, end, out);
    r->n = (size_t)(end - r->p);
    return there;
}

bool bly_table_place_read(const unsigned char *p, size_t n,
                          bly_table_place *out)
{
    struct table_reader r = { p, n };
    return table_varint(&r, &out->at) && table_varint(&r, &out->n);
}

bly_status bly_table_block(const bly_foreign *f, bly_table_place place,
                           bool with_crc, const char *what, bly_bytes *out)
{
    if (place.at > f->more->nbytes || place.n > f->more->nbytes - place.at ||
        f->more->nbytes - place.at - place.n < BLY_TABLE_TRAILER)
        return bly_damaged("its %s lies outside the file", what);
    const unsigned char *const block = f->more->bytes + place.at;
    const size_t n = (size_t)place.n;
    if (with_crc) {
        const uint32_t sum = bly_crc32c(0, block, n + 1);
        const uint32_t masked = (sum >> 15 | sum << 17) + 0xa282ead8;
        if (masked != bly_load32(block + n + 1))
            return bly_damaged("the checksum of its %s is wrong", what);
    }
    const unsigned type = block[n];
    if (type != 0)
        return bly_fail(
            BLY_ENOTSUP,
            "its %s is compressed (type %u), which is not supported", what,
            type);
    *out = (bly_bytes){ block, n };
    return BLY_OK;
}

bly_status bly_table_find(bly_bytes metaindex, const char *prefix,
                          char name[BLY_TABLE_NAME], bly_table_place *out)
{
    const unsigned char *const bytes = metaindex.ptr;
    char key[BLY_TABLE_NAME]; /* the beginning of the current one */
    uint64_t len = 0;         /* of all of it */
    name[0] = '\0';
    if (metaindex.len < 4)
        return bly_damaged("its metaindex is shorter than 4 bytes");
    const uint64_t places = bly_load32(bytes + metaindex.len - 4);
    if (places > (metaindex.len - 4) / 4)
        return bly_damaged("its metaindex is shorter than it says");
    struct table_reader r = { bytes, metaindex.len - 4 - 4 * (size_t)places };
    while (r.n > 0) {
        uint64_t shared, fresh, value;
        if (!table_varint(&r, &shared) || !table_varint(&r, &fresh) ||
            !table_varint(&r, &value) || shared > len || fresh > r.n ||
            value > r.n - fresh)
            return bly_damaged("an entry of its metaindex is damaged");
        if (shared < sizeof key) {
            const size_t room = sizeof key - (size_t)shared;
            memcpy(key + shared, r.p, fresh < room ? (size_t)fresh : room);
        }
        len = shared + fresh;
        r.p += fresh;
        r.n -= (size_t)fresh;
        if (len < sizeof key && len >= strlen(prefix) &&
            memcmp(key, prefix, strlen(prefix)) == 0) {
            memcpy(name, key, (size_t)len);
            name[len] = '\0';
            return bly_table_place_read(r.p, (size_t)value, out)
                       ? BLY_OK
                       : bly_damaged("the position of its filter is damaged");
        }
        r.p += value;
        r.n -= (size_t)value;
    }
    return BLY_OK;
}

/*
 * sketch_file.c - sketches as bytes
 *
 *     0   "blyske" 0 1
 *     8   u32  the hash of shingles: 1, that of shingles.c
 *     12  u8   unit; u8 family; u8 bits, 0 where all is kept; u8 1 if it has
 *              seen a shingle, else 0
 *     16  u32  size of shingles; u32 k
 *     24  u64  seed
 *     32  components: k words of 8 bytes (linear: 4) where bits is 0, else
 *         k fields of that many bits, least significant first, and zeros up to
 *         a whole byte; nothing where no shingle has been seen
 *         u64  XXH3 of all that
 *
 * All little-endian. The first 32 bytes with zeros for bits and for the
 * shingle seen are a spec, for files that hold many sketches of one.
 */
#include <string.h>

#include "core/packed.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "sketch/sketches.h"

#define SKETCH_HASH_ID 1
#define SKETCH_SUM sizeof(uint64_t)

static const unsigned char sketch_magic[8] = { 'b', 'l', 'y', 's',
                                               'k', 'e', 0,   1 };

static void put_head(unsigned char *at, const bly_sketch_spec *spec,
                     unsigned bits, bool any)
{
    memcpy(at, sketch_magic, sizeof sketch_magic);
    const uint64_t kinds = (uint64_t)spec->shingling.unit << 32 |
                           (uint64_t)spec->family << 40 | (uint64_t)bits << 48 |
                           (uint64_t)any << 56;
    bly_store64(at + 8, SKETCH_HASH_ID | kinds);
    bly_store64(at + 16, spec->shingling.size | (uint64_t)spec->k << 32);
    bly_store64(at + 24, spec->shingling.seed);
}

static bly_status damaged(const char *why)
{
    return bly_fail(BLY_EFORMAT, "a damaged sketch: %s", why);
}

static bly_status get_head(const unsigned char *at, size_t nbytes,
                           bly_sketch_spec *spec, unsigned *bits, bool *any)
{
    if (nbytes < BLY_SKETCH_HEAD ||
        memcmp(at, sketch_magic, sizeof sketch_magic) != 0)
        return bly_fail(BLY_EFORMAT, "not a sketch of likeness");
    const uint64_t kinds = bly_load64(at + 8), sizes = bly_load64(at + 16);
    if ((uint32_t)kinds != SKETCH_HASH_ID)
        return bly_fail(BLY_EFORMAT,
                        "a sketch with hash %u, which is unknown here",
                        (unsigned)(uint32_t)kinds);
    if (at[12] > BLY_CHARS || at[13] >= BLY_FAMILY_COUNT_ || at[14] > 32 ||
        at[15] > 1)
        return damaged("unit, family or bits that do not exist");
    if (!(uint32_t)sizes || (uint32_t)sizes > BLY_MAX_SHINGLE ||
        !(sizes >> 32) || sizes >> 32 > BLY_MAX_COMPONENTS)
        return damaged("a size out of range");
    *spec = (bly_sketch_spec){
        .shingling = { .unit = (bly_unit)at[12],
                       .size = (unsigned)(uint32_t)sizes,
                       .seed = bly_load64(at + 24) },
        .family = (bly_family)at[13],
        .k = (unsigned)(sizes >> 32),
    };
    *bits = at[14];
    *any = at[15];
    return BLY_OK;
}

void bly_sketch_spec_write_sized(const bly_sketch_spec *spec, void *bytes,
                                 size_t size)
{
    bly_sketch_spec own;
    bly_give(spec, size, &own, sizeof own);
    put_head(bytes, &own, 0, false);
}

bly_status bly_sketch_spec_read_sized(const void *bytes, size_t nbytes,
                                      bly_sketch_spec *out, size_t size)
{
    if ((!bytes && nbytes) || !out)
        return bly_fail_null("bytes or out");
    bly_sketch_spec spec;
    unsigned bits;
    bool any;
    const bly_status st = get_head(bytes, nbytes, &spec, &bits, &any);
    if (st)
        return st;
    if (bits || any)
        return damaged("a single sketch where the head of many should be");
    BLY_GIVE(&spec, out, size);
    return BLY_OK;
}

/* Bytes of a component of a whole sketch. */
static size_t whole_width(const bly_sketch_spec *spec)
{
    return spec->family == BLY_LINEAR32 ? 4 : 8;
}

static size_t body_bytes(const bly_sketch_spec *spec, unsigned bits, bool any)
{
    if (!any)
        return 0;
    const size_t k = spec->k;
    return bits ? (k * bits + 7) / 8 : k * whole_width(spec);
}

size_t bly_sketch_written_bytes(const bly_sketch *s, unsigned bits)
{
    const unsigned b = bits ? bits : s->bits;
    return BLY_SKETCH_HEAD + body_bytes(&s->spec, b, s->any) + SKETCH_SUM;
}

bly_status bly_sketch_write(const bly_sketch *s, unsigned bits, void *bytes)
{
    if (!s || !bytes)
        return bly_fail_null("s or bytes");
    unsigned char *const at = bytes, *const body = at + BLY_SKETCH_HEAD;
    const unsigned b = bits ? bits : s->bits;
    if (b > 32 || (s->bits && b > s->bits))
        return bly_fail(BLY_EINVAL,
                        "1 to %u bits of a component can be kept, not %u",
                        s->bits ? s->bits : 32, b);
    const size_t end = bly_sketch_written_bytes(s, bits) - SKETCH_SUM;
    memset(at, 0, end);
    put_head(at, &s->spec, b, s->any);
    if (s->any && b) {
        uint32_t parts[BLY_MAX_COMPONENTS];
        bly_sketch_known(s, parts);
        for (unsigned i = 0; i < s->spec.k; i++)
            bly_field_put_exact(body, (uint64_t)i * b, b,
                                parts[i] & bly_field_mask(b));
    } else if (s->any && s->spec.family == BLY_LINEAR32) {
        for (unsigned i = 0; i < s->spec.k; i++)
            bly_field_put_exact(body, (uint64_t)i * 32, 32,
                                bly_sketch_halves(s)[i]);
    } else if (s->any) {
        for (unsigned i = 0; i < s->spec.k; i++)
            bly_store64(body + 8 * (size_t)i, s->words[i]);
    }
    bly_store64(at + end, bly_checksum(at, end));
    return BLY_OK;
}

/* Could adding have made these? */
static bool bins_sound(const bly_sketch *s)
{
    const unsigned k = s->spec.k;
    unsigned empty = 0;
    for (unsigned i = 0; i < k; i++) {
        const uint64_t value = s->words[i];
        if (s->spec.family == BLY_LINEAR61) {
            if (value >= BLY_P61)
                return false;
        } else if (s->spec.family == BLY_FSS) {
            if (value >> 54 >= 2 * k || value == BLY_BINS_EMPTY)
                return false;
        } else if (value == BLY_BINS_EMPTY) {
            empty++;
        } else if (value >> 54) {
            return false;
        }
    }
    return empty < k;
}

bly_status bly_sketch_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                           bly_sketch **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!bytes && nbytes)
        return bly_fail_null("bytes");
    const unsigned char *const at = bytes;
    bly_sketch_spec spec;
    unsigned bits;
    bool any;
    bly_status st = get_head(at, nbytes, &spec, &bits, &any);
    if (st)
        return st;
    const size_t nbody = body_bytes(&spec, bits, any);
    const size_t end = BLY_SKETCH_HEAD + nbody;
    if (nbytes != end + SKETCH_SUM)
        return damaged("its sizes contradict each other");
    if (bly_load64(at + end) != bly_checksum(at, end))
        return damaged("its checksum is wrong");
    spec.mem = mem;
    bly_sketch *s;
    st = bly_sketch_make(&spec, bits, &s);
    if (st)
        return st;
    s->any = any;
    const unsigned char *const body = at + BLY_SKETCH_HEAD;
    const unsigned width = bits ? bits : 32;
    bool sound = true;
    if (any && (bits || spec.family == BLY_LINEAR32)) {
        for (unsigned i = 0; i < spec.k; i++)
            bly_sketch_halves(s)[i] =
                (uint32_t)bly_field_get_exact(body, (uint64_t)i * width, width);
        const unsigned rest = spec.k * width % 8;
        sound = !rest || body[nbody - 1] >> rest == 0;
    } else if (any) {
        for (unsigned i = 0; i < spec.k; i++)
            s->words[i] = bly_load64(body + 8 * (size_t)i);
        sound = bins_sound(s);
    }
    if (!sound) {
        bly_sketch_free(s);
        return damaged("components that no text has");
    }
    *out = s;
    return BLY_OK;
}

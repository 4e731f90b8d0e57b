/*
 * marks.c - marks by the filters of the library, and what they cost
 *
 * The mark of a name is read off a filter: what adding it does to an array of
 * zeros is what it sets, and what it does to ones is what it clears. So there
 * is one place that knows which bits a key has.
 */
#include "apps/net/marks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"

struct mark_maker {
    bly_filter *f;
    unsigned nbytes;
    unsigned nkeys; /* that one name is */
    bool clears;
};

bly_status mark_maker_new(const struct mark_spec *spec, struct mark_maker **out)
{
    char k[16], k0[16];
    const bool clears = spec->k0 != 0;
    snprintf(k, sizeof k, "%u", spec->k);
    snprintf(k0, sizeof k0, "%u", spec->k0);
    const bly_option loops[] = { { "k", "1" } },
                     way[] = { { "k1", k }, { "k0", k0 } };
    const bly_spec like = { .kind = clears ? "generalized" : "classic",
                            .items = 1,
                            .bits = spec->bits,
                            .secret = spec->secret,
                            .seed = spec->secret ? 0 : spec->seed,
                            .options = clears ? way : loops,
                            .noptions = clears ? 2 : 1 };
    struct mark_maker *const maker = calloc(1, sizeof *maker);
    *out = NULL;
    if (!maker)
        return BLY_ENOMEM;
    const bly_status st = bly_new(&like, &maker->f);
    if (st) {
        free(maker);
        return st;
    }
    maker->nbytes = (unsigned)bly_raw_bytes(maker->f);
    maker->clears = clears;
    maker->nkeys = clears ? 1 : spec->k;
    if (maker->nbytes * 8 != spec->bits || maker->nbytes > MARK_BYTES) {
        mark_maker_free(maker);
        return BLY_EINVAL;
    }
    *out = maker;
    return BLY_OK;
}

void mark_maker_free(struct mark_maker *maker)
{
    if (maker)
        bly_free(maker->f);
    free(maker);
}

/* What adding a name makes of an array of this byte. For loops a name is k keys
 * of one bit each: the bits of a single key are those of double hashing, which
 * in so few bits have more in common than chance allows for (64 bits, k = 4, 8
 * interfaces: 4.1 % of packets are lost, not 3.4 %). */
static bly_status mark_on(struct mark_maker *maker, int byte, const void *name,
                          size_t len, unsigned char bits[MARK_BYTES])
{
    memset(bits, byte, MARK_BYTES);
    bly_status st = bly_raw_set(maker->f, bits, maker->nbytes);
    for (unsigned i = 0; !st && i < maker->nkeys; i++) {
        unsigned char key[1 + MARK_NAME];
        key[0] = (unsigned char)i;
        memcpy(key + 1, name, len);
        st = bly_add(maker->f, key, 1 + len);
    }
    if (!st)
        st = bly_raw_get(maker->f, bits, maker->nbytes);
    return st;
}

bly_status mark_make(struct mark_maker *maker, const void *name, size_t len,
                     struct mark *out)
{
    unsigned char bits[MARK_BYTES];
    struct marked ones;
    *out = (struct mark){ .nbytes = maker->nbytes };
    if (len > MARK_NAME)
        return BLY_EINVAL;
    bly_status st = mark_on(maker, 0, name, len, bits);
    if (st)
        return st;
    marked_get(out, bits, &ones);
    memcpy(out->set, ones.words, sizeof out->set);
    if (maker->clears) {
        st = mark_on(maker, 0xff, name, len, bits);
        marked_get(out, bits, &ones);
        for (unsigned i = 0; i < MARK_BYTES / 8; i++)
            out->clear[i] = 8 * i < out->nbytes ? ~ones.words[i] : 0;
        if (maker->nbytes % 8)
            out->clear[maker->nbytes / 8] &=
                (UINT64_C(1) << 8 * (maker->nbytes % 8)) - 1;
    }
    return st;
}

bly_status mark_make_link(struct mark_maker *maker, const char *from,
                          const char *to, struct mark *out)
{
    char name[MARK_NAME];
    const size_t nfrom = strlen(from) + 1, nto = strlen(to);
    if (nfrom + nto > sizeof name)
        return BLY_EINVAL;
    memcpy(name, from, nfrom);
    memcpy(name + nfrom, to, nto);
    return mark_make(maker, name, nfrom + nto, out);
}

void marked_get(const struct mark *m, const unsigned char *at,
                struct marked *out)
{
    unsigned char all[MARK_BYTES] = { 0 };
    memcpy(all, at, m->nbytes);
    for (unsigned i = 0; i < MARK_BYTES / 8; i++)
        out->words[i] = get_le(all + 8 * i, 8);
}

void marked_put(const struct mark *m, const struct marked *from,
                unsigned char *at)
{
    unsigned char all[MARK_BYTES];
    for (unsigned i = 0; i < MARK_BYTES / 8; i++)
        put_le(all + 8 * i, from->words[i], 8);
    memcpy(at, all, m->nbytes);
}

double mark_false_loop(unsigned m, unsigned k, unsigned d)
{
    double passes = 1;
    for (unsigned i = 0; i < d; i++)
        passes *= 1 - pow(1 - pow(1 - 1.0 / m, (double)k * i), k);
    return 1 - passes;
}

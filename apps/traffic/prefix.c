/*
 * prefix.c - addresses and prefixes, and sets of them
 */
#include "apps/traffic/prefix.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/packet.h"
#include "base/byte_order.h"
#include "base/grow.h"
#include "base/search.h"
#include "report/say.h"

const char *prefix_text(const struct prefix *p, char out[PREFIX_TEXT])
{
    char address[INET6_ADDRSTRLEN];
    inet_ntop(p->version == 4 ? AF_INET : AF_INET6, p->at, address,
              sizeof address);
    if (p->bits == (p->version == 4 ? 32 : 128))
        snprintf(out, PREFIX_TEXT, "%s", address);
    else
        snprintf(out, PREFIX_TEXT, "%s/%u", address, p->bits);
    return out;
}

int prefix_order(const void *a, const void *b)
{
    const struct prefix *const x = a, *const y = b;
    if (x->version != y->version)
        return x->version < y->version ? -1 : 1;
    if (x->bits != y->bits)
        return x->bits > y->bits ? -1 : 1;
    return memcmp(x->at, y->at, sizeof x->at);
}

size_t prefix_key(const struct prefix *p, unsigned char out[PREFIX_KEY])
{
    if (p->version == 4) {
        put_le(out, (uint64_t)p->bits << 32 | get_be(p->at, 4), 8);
        return 8;
    }
    memcpy(out, p->at, 16);
    out[16] = p->bits;
    return 17;
}

struct prefix prefix_of(uint8_t version, const unsigned char *address,
                        unsigned bits)
{
    struct prefix p = { .version = version, .bits = (uint8_t)bits };
    const size_t n = version == 4 ? 4 : 16;
    memcpy(p.at, address, n);
    address_cut(p.at, n, bits);
    return p;
}

/* -------------------------------------------------------------------- sets */

bool prefix_set_take(void *set, const struct prefix *p)
{
    struct prefix_set *const s = set;
    if (!GROW(&s->at, &s->room, s->n + 1))
        return refuse("out of memory: %zu prefixes", s->n);
    s->at[s->n++] = *p;
    s->sorted = false;
    return true;
}

/* Without a time is longer than any. */
static int prefix_order_long(const void *a, const void *b)
{
    const struct prefix *const x = a, *const y = b;
    const int order = prefix_order(a, b);
    const uint32_t one = x->seconds - 1, two = y->seconds - 1;
    return order ? order : one > two ? -1 : one < two;
}

void prefix_set_sort(struct prefix_set *s)
{
    size_t n = 0;
    if (s->n)
        qsort(s->at, s->n, sizeof *s->at, prefix_order_long);
    for (size_t i = 0; i < s->n; i++)
        if (!n || prefix_order(&s->at[n - 1], &s->at[i]) != 0)
            s->at[n++] = s->at[i];
    s->n = n;
    s->sorted = true;
}

const struct prefix *prefix_set_match(const struct prefix_set *s,
                                      uint8_t version,
                                      const unsigned char *address)
{
    /* A search for a length that does not occur ends where the next shorter one
     * begins, so each that occurs is searched once. */
    int bits = version == 4 ? 32 : 128;
    while (bits >= 0) {
        const struct prefix want = prefix_of(version, address, (unsigned)bits);
        size_t low;
        LOWER_BOUND(low, s->n, prefix_order(&s->at[low], &want) < 0);
        if (low < s->n && prefix_order(&s->at[low], &want) == 0)
            return &s->at[low];
        /* Behind what is wanted: an entry of this length or of a shorter one.
         * In both cases no length between them occurs. */
        const struct prefix *const next = low < s->n ? &s->at[low] : NULL;
        if (next && next->version == version && next->bits < bits)
            bits = next->bits;
        else if (next && next->version == version)
            bits--;
        else
            break;
    }
    return NULL;
}

void prefix_set_free(struct prefix_set *s)
{
    free(s->at);
    *s = (struct prefix_set){ 0 };
}

void prefix_lengths_of(const struct prefix_set *s, struct prefix_lengths *out)
{
    *out = (struct prefix_lengths){ 0 };
    for (size_t i = 0; i < s->n; i++) {
        const struct prefix *const p = &s->at[i];
        if (i && s->at[i - 1].version == p->version &&
            s->at[i - 1].bits == p->bits)
            continue;
        if (p->version == 4)
            out->four[out->nfour++] = p->bits;
        else
            out->six[out->nsix++] = p->bits;
    }
}

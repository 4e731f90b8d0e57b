/*
 * block_file.c - a block list: a filter whose keys are prefixes
 */
#include "apps/traffic/block_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/filters.h"
#include "report/say.h"

#define BATCH 256

/* ------------------------------------------------------------------- notes */

static bool notes_read(bly_bytes text, unsigned most, uint8_t *out, unsigned *n)
{
    const char *const at = text.ptr;
    unsigned value = 0, digits = 0;
    bool seen[129] = { false };
    *n = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && at[i] >= '0' && at[i] <= '9') {
            value = value * 10 + (unsigned)(at[i] - '0');
            if (++digits > 3)
                return false;
        } else if (i == text.len || at[i] == ' ') {
            if (!digits && text.len)
                return false;
            if (digits && (value > most || seen[value]))
                return false;
            if (digits) {
                seen[value] = true;
                out[(*n)++] = (uint8_t)value;
            }
            value = digits = 0;
        } else {
            return false;
        }
    }
    return true;
}

bool block_lengths(const bly_filter *f, struct prefix_lengths *out)
{
    bly_bytes list, text;
    *out = (struct prefix_lengths){ 0 };
    if (!bly_pair_of(f, "list", &list) || list.len != 8 ||
        memcmp(list.ptr, "prefixes", 8) != 0)
        return false;
    if (bly_pair_of(f, "lengths4", &text) &&
        !notes_read(text, 32, out->four, &out->nfour))
        return false;
    return !bly_pair_of(f, "lengths6", &text) ||
           notes_read(text, 128, out->six, &out->nsix);
}

static bly_status note_lengths(bly_filter *f, const char *name,
                               const uint8_t *lengths, unsigned n)
{
    char text[4 * 129 + 1] = "";
    size_t at = 0;
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u",
                               i ? " " : "", lengths[i]);
    return bly_set_pair(f, name, n ? text : NULL);
}

/* Both, longest first, each once. */
static void lengths_unite(uint8_t *into, unsigned *n, unsigned most,
                          const uint8_t *more, unsigned nmore)
{
    bool occurs[129] = { false };
    for (unsigned i = 0; i < *n; i++)
        occurs[into[i]] = true;
    for (unsigned i = 0; i < nmore; i++)
        occurs[more[i]] = true;
    *n = 0;
    for (unsigned bits = most + 1; bits-- > 0;)
        if (occurs[bits])
            into[(*n)++] = (uint8_t)bits;
}

/* ------------------------------------------------------------------ making */

bly_status block_add(bly_filter *f, const struct prefix_set *set)
{
    struct prefix_lengths has, more;
    unsigned char keys[BATCH][PREFIX_KEY];
    uint64_t hashes[BATCH];
    bly_bytes texts[BATCH];
    bly_status st = BLY_OK;
    block_lengths(f, &has);
    prefix_lengths_of(set, &more);
    lengths_unite(has.four, &has.nfour, 32, more.four, more.nfour);
    lengths_unite(has.six, &has.nsix, 128, more.six, more.nsix);
    const bly_hasher *const hasher = bly_hasher_of(f);
    for (size_t i = 0; i < set->n && !st;) {
        size_t n = 0;
        for (; n < BATCH && i < set->n; n++, i++)
            texts[n] = (bly_bytes){ keys[n], prefix_key(&set->at[i], keys[n]) };
        bly_hash_keys(hasher, texts, n, hashes);
        st = bly_add_hashes(f, hashes, n, NULL, NULL);
    }
    if (!st)
        st = bly_set_pair(f, "list", "prefixes");
    if (!st)
        st = note_lengths(f, "lengths4", has.four, has.nfour);
    if (!st)
        st = note_lengths(f, "lengths6", has.six, has.nsix);
    return st;
}

bly_status block_make(const struct prefix_set *set,
                      const struct block_plan *plan, struct block_file *out)
{
    static const bly_option in_lines[] = { { "k", "8" } };
    char seconds[32];
    const bly_option ages[] = { { "form", "rotating" },
                                { "turn", "time" },
                                { "seconds", seconds } };
    *out = (struct block_file){ 0 };
    prefix_lengths_of(set, &out->lengths);
    const struct prefix_lengths *const l = &out->lengths;
    const unsigned most = l->nfour > l->nsix ? l->nfour : l->nsix;
    snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)plan->ttl);
    const bly_spec spec = {
        .kind = plan->ttl ? "aging" : "blocked",
        .items = plan->items ? plan->items
                 : set->n    ? set->n
                             : 1,
        .fpr = plan->fpr / (most ? most : 1),
        .seed = plan->secret ? 0 : plan->seed,
        .secret = plan->secret,
        .options = plan->ttl ? ages : in_lines,
        .noptions = plan->ttl ? 3 : 1,
        .keying = { .type = BLY_KEYS_BYTES },
    };
    bly_status st = bly_new(&spec, &out->filter);
    if (!st && plan->ttl)
        st = filter_tick(out->filter);
    if (!st)
        st = block_add(out->filter, set);
    if (st)
        block_close(out);
    return st;
}

/* ------------------------------------------------------------------ asking */

bool block_open(const char *path, const unsigned char *secret,
                struct block_file *out)
{
    const bly_access how = { .secret = secret };
    *out = (struct block_file){ 0 };
    out->filter = filter_open(path, &how);
    if (!out->filter)
        return false;
    if (!block_lengths(out->filter, &out->lengths)) {
        fail("%s: a filter, but not a list of prefixes; use one that bloomery "
             "traffic block -o made",
             path);
        block_close(out);
        return false;
    }
    if (filter_tick(out->filter)) {
        fail_library();
        block_close(out);
        return false;
    }
    return true;
}

void block_close(struct block_file *b)
{
    bly_free(b->filter);
    b->filter = NULL;
}

int block_match(const struct block_file *b, uint8_t version,
                const unsigned char *address)
{
    const uint8_t *const lengths =
        version == 4 ? b->lengths.four : b->lengths.six;
    const unsigned n = version == 4 ? b->lengths.nfour : b->lengths.nsix;
    for (unsigned i = 0; i < n; i++) {
        const struct prefix p = prefix_of(version, address, lengths[i]);
        unsigned char key[PREFIX_KEY];
        const size_t len = prefix_key(&p, key);
        if (bly_has(b->filter, key, len))
            return lengths[i];
    }
    return -1;
}

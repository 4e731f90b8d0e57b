/*
 * records.c - lines and files as they are sent
 */
#include "apps/sync/records.h"

#include <string.h>

bool record_put(struct block *to, const struct sync_file *f, const char *path,
                bool changed)
{
    const size_t n = strlen(path);
    return varint_put(to, n) && block_put(to, path, n) &&
           varint_put(to, f->size) && varint_put(to, f->modified) &&
           (!changed || varint_put(to, f->changed)) &&
           put_word(to, f->runs, 1) && put_word(to, f->hash[0], 8) &&
           put_word(to, f->hash[1], 8);
}

bool record_get(const struct sync_set *set, struct reading *r, bool changed,
                struct record *out)
{
    const uint64_t n = read_number(r);
    const unsigned char *const path = read_bytes(r, n);
    if (!path || !path_is_safe((const char *)path, (size_t)n))
        return false;
    memcpy(out->path, path, (size_t)n);
    out->path[n] = '\0';
    struct sync_file *const f = &out->file;
    *f = (struct sync_file){ 0 };
    f->size = read_number(r);
    f->modified = read_number(r);
    f->changed = changed ? read_number(r) : 0;
    f->runs = read_word(r, 1);
    f->hash[0] = read_word(r, 8);
    f->hash[1] = read_word(r, 8);
    f->element = file_element(set, f, out->path);
    return !r->bad;
}

bool chunks_put(struct block *to, const struct chunks *c)
{
    bool ok = varint_put(to, c->n);
    for (size_t i = 0; i < c->n && ok; i++)
        ok = put_word(to, c->at[i].hash, 8) && varint_put(to, c->at[i].n);
    return ok;
}

bool chunks_get(struct reading *r, struct chunks *out)
{
    const uint64_t n = read_number(r);
    uint64_t at = 0;
    /* Each has nine bytes at least: what is said is bounded by what came. */
    if (r->bad || n > (size_t)(r->end - r->at) / 9)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t hash = read_word(r, 8), len = read_number(r);
        const struct chunk c = { hash, at, (uint32_t)len };
        if (r->bad || !len || len > CHUNK_MOST || !chunks_add(out, &c))
            return false;
        at += len;
    }
    return true;
}

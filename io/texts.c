/*
 * texts.c - whole texts, and how they are cut
 */
#include <errno.h>
#include <string.h>

#include "io/source.h"
#include "io/texts.h"
#include "report/say.h"
#include "report/show.h"

bool cutting_shingles(const struct cutting *c, bly_shingling *out)
{
    *out = (bly_shingling){ .unit = BLY_WORDS };
    if (c->unit)
        out->unit = BLY_CHARS;
    if (c->size > BLY_MAX_SHINGLE) {
        fail("--size %llu: a shingle has at most %d units",
             (unsigned long long)c->size, BLY_MAX_SHINGLE);
        return false;
    }
    out->size = (unsigned)c->size;
    return true;
}

bool family_named(const char *name, bly_family *out)
{
    if (!name || !bly_family_named(name, out))
        return true;
    fail("--family: %s", bly_error());
    return false;
}

bool text_read(const char *name, uint64_t most, const char *longer,
               struct block *b)
{
    static char part[1 << 16];
    struct source *const s = source_open(name, -1, source_lines());
    if (!s) {
        fail_path(name, errno);
        return false;
    }
    b->len = 0;
    ptrdiff_t n;
    bool room = true;
    while (room && (n = source_read(s, part, sizeof part)) > 0)
        room = (uint64_t)n <= most - b->len && memory_spares(b->len) &&
               block_put(b, part, (size_t)n);
    if (!room && (uint64_t)n > most - b->len)
        fail("%s: more than %s; %s", name, show_bytes(most), longer);
    else if (!room)
        fail("%s: more than there is memory for", name);
    else if (n < 0)
        fail("%s: %s", name, source_error(s));
    source_close(s);
    return room && n == 0;
}

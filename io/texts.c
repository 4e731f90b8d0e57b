/*
 * texts.c - whole texts, and how they are cut
 */
#include <errno.h>
#include <string.h>

#include "io/source.h"
#include "io/texts.h"
#include "report/say.h"

bool cutting_shingles(const struct cutting *c, bly_shingling *out)
{
    *out = (bly_shingling){ .unit = BLY_WORDS };
    if (c->unit && strcmp(c->unit, "char") == 0)
        out->unit = BLY_CHARS;
    else if (c->unit && strcmp(c->unit, "word") != 0) {
        fail("--unit is word or char, not '%s'", c->unit);
        return false;
    }
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

bool text_read(const char *name, struct block *b)
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
    const uint64_t most =
        bly_memory_limit() / 4; /* a block grows by doubling */
    while (room && (n = source_read(s, part, sizeof part)) > 0)
        room = b->len <= most && block_put(b, part, (size_t)n);
    if (!room)
        fail("%s: %s", name,
             b->len > most ? "a text of more than a quarter of the memory"
                           : "out of memory");
    else if (n < 0)
        fail("%s: %s", name, source_error(s));
    source_close(s);
    return room && n == 0;
}

/*
 * fuzz_urls.c - URLs, names, and lists of them: plain, hosts, adblock, RPZ
 *
 * The first byte chooses. A canonical URL is its own canonical form, and its
 * expressions are parts of it; so with names. Every line of a list is an entry,
 * an exception, skipped, nothing, or bad with a reason; and a URL or name that
 * a list was made of is found among its own entries.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps/urls/blocklist.h"
#include "apps/urls/lists.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void url(const char *text, size_t n)
{
    char *const once = malloc(URL_ROOM(n));
    struct url u, v;
    bly_bytes found[URL_EXPRESSIONS];
    if (once && url_canonical((bly_bytes){ text, n }, once, &u)) {
        assert(u.len <= URL_TEXT(n));
        char *const twice = malloc(URL_ROOM(u.len));
        if (twice) {
            assert(url_canonical((bly_bytes){ u.text, u.len }, twice, &v));
            assert(v.len == u.len && memcmp(v.text, u.text, u.len) == 0);
        }
        const size_t nfound = url_expressions(&u, found);
        assert(nfound >= 1 && nfound <= URL_EXPRESSIONS);
        for (size_t i = 0; i < nfound; i++) {
            const char *const p = found[i].ptr;
            assert(p >= u.text + u.host && p < u.text + u.path);
            assert(p + found[i].len > u.text + u.path);
            assert(p + found[i].len <= u.text + u.len);
        }
        free(twice);
    }
    free(once);
}

static void name(const char *text, size_t n)
{
    char once[NAME_ROOM], twice[NAME_ROOM];
    bool address;
    const char *why = NULL;
    const size_t len = name_canonical(text, n, once, &address, &why);
    assert(len <= NAME_MOST && (len || why));
    if (len) {
        assert(name_canonical(once, len, twice, &address, &why) == len);
        assert(memcmp(once, twice, len) == 0);
        assert(name_labels(once, len) <= NAME_LABELS);
    }
}

/* What was listed is found by whoever asks for it. */
static bool take(void *ctx, bly_bytes entry, enum entry_kind kind)
{
    const struct list_reader *const r = ctx;
    const struct list_traits is = { .domains = r->domains,
                                    .folded = r->folded,
                                    .single = true };
    bly_bytes found[ENTRIES_MOST];
    if (kind == ENTRY_DIGEST) {
        assert(entry.len == 32);
        return true;
    }
    assert(entry.len && !memchr(entry.ptr, '\n', entry.len));
    char *const room = malloc(ENTRIES_ROOM(entry.len));
    if (room) {
        const size_t n = entries_of(&is, NULL, entry, room, found);
        assert(n && found[0].len == entry.len);
        assert(memcmp(found[0].ptr, entry.ptr, entry.len) == 0);
    }
    free(room);
    return true;
}

static void lines(const char *text, size_t n, bool domains, bool folded)
{
    struct list_reader r = {
        .domains = domains, .folded = folded, .digests = true, .take = take
    };
    uint64_t nlines = 0;
    r.ctx = &r;
    list_begin(&r);
    while (n) {
        const char *const end = memchr(text, '\n', n), *why = NULL;
        const size_t len = end ? (size_t)(end - text) : n;
        assert(list_line(&r, text, len, &why) || why);
        nlines++;
        text += len + (end != NULL);
        n -= len + (end != NULL);
    }
    assert(r.n.lines == nlines && r.n.skipped <= nlines);
    list_end(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    /* A copy that ends where it ends. */
    char *const text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    switch (data[0] % 4) {
    case 0:
        url(text, size - 1);
        break;
    case 1:
        name(text, size - 1);
        break;
    default:
        lines(text, size - 1, data[0] % 4 == 3, data[0] & 4);
    }
    free(text);
    return 0;
}

/*
 * ask.c - a list that can be asked: asking it
 *
 * The entries of many questions are asked in one batch: a name of four labels
 * has three entries, a URL up to thirty, and their cache misses overlap with
 * those of all others.
 *
 *     a.b.example.org   entries 0 1 2     found . . 1    listed
 *     www.kernel.org    entries 3 4       found . .
 *
 * What the list has is then compared with its exceptions, which are few and
 * exact: one that covers a question lets it pass, whatever else covers it.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/urls/blocklist.h"
#include "io/digests.h"

#define ASK_BATCH                                              \
    4096 /* entries: enough to overlap, few enough for a cache \
          */

uint64_t entry_prefix(bly_bytes entry, unsigned width)
{
    unsigned char sum[SHA256_BYTES];
    uint64_t value = 0;
    sum_sha256(entry.ptr, entry.len, sum);
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | sum[i];
    return value >> (64 - width);
}

/* What a byte is in a name that is in its form already. */
enum { NAME_OTHER, NAME_LETTER, NAME_DOT };
/* clang-format off */
#define L(c) [c] = NAME_LETTER,
static const unsigned char name_bytes[256] = {
    ['.'] = NAME_DOT,
    L('0') L('1') L('2') L('3') L('4') L('5') L('6') L('7') L('8') L('9')
    L('a') L('b') L('c') L('d') L('e') L('f') L('g') L('h') L('i') L('j')
    L('k') L('l') L('m') L('n') L('o') L('p') L('q') L('r') L('s') L('t')
    L('u') L('v') L('w') L('x') L('y') L('z') L('-') L('_')
};
#undef L
/* clang-format on */

/* Most names are in their form: then their entries are parts of the text, which
 * is looked at once. The labels' beginnings into starts; 0 if it may be
 * anything else, a name too. */
static size_t name_plain(const unsigned char *text, size_t n,
                         unsigned char starts[NAME_LABELS + 1])
{
    size_t labels = 1, from = 0;
    if (!n || n > NAME_MOST)
        return 0;
    starts[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned is = name_bytes[text[i]];
        if (is == NAME_LETTER)
            continue;
        if (is == NAME_OTHER || i == from || i - from > 63)
            return 0;
        from = i + 1;
        starts[labels++] = (unsigned char)from;
    }
    /* An address in any spelling ends in a number. */
    return from < n && n - from <= 63 &&
                   !(text[from] >= '0' && text[from] <= '9')
               ? labels
               : 0;
}

/* The entries of a name: itself in any case, then what is above it. */
static size_t name_above(const struct list_traits *is,
                         const struct suffixes *suffixes, const char *name,
                         size_t n, const unsigned char *starts, size_t labels,
                         bly_bytes *out)
{
    const size_t least = is->single ? 1
                         : suffixes ? suffix_labels(suffixes, name, n) + 1
                                    : 2;
    const size_t count = labels > least && !is->exact ? labels - least + 1 : 1;
    for (size_t i = 0; i < count; i++)
        out[i] = (bly_bytes){ name + starts[i], n - starts[i] };
    return count;
}

/* Of what may be a URL, its host: what a list of names is asked for. */
static void host_of(const char **name, size_t *len)
{
    const char *at = *name;
    size_t n = *len;
    for (size_t i = 0; i + 2 < n; i++)
        if (memcmp(at + i, "://", 3) == 0) {
            at += i + 3;
            n -= i + 3;
            break;
        }
    for (size_t i = 0; i < n; i++)
        if (strchr("/?#", at[i]) && at[i])
            n = i;
    for (size_t i = n; i > 0; i--)
        if (at[i - 1] == '@') {
            at += i;
            n -= i;
            break;
        }
    const char *const port = memchr(at, ':', n);
    if (port && !memchr(port + 1, ':', n - (size_t)(port + 1 - at)))
        n = (size_t)(port - at);
    *name = at;
    *len = n;
}

static size_t name_entries(const struct list_traits *is,
                           const struct suffixes *suffixes, bly_bytes text,
                           char *room, bly_bytes out[ENTRIES_MOST])
{
    unsigned char starts[NAME_LABELS + 1];
    bool address;
    const char *why, *name = text.ptr;
    size_t len = text.len;
    size_t labels = name_plain(text.ptr, len, starts);
    if (labels)
        return name_above(is, suffixes, name, len, starts, labels, out);
    for (; len && (*name == ' ' || *name == '\t'); len--)
        name++;
    while (len && (name[len - 1] == ' ' || name[len - 1] == '\t' ||
                   name[len - 1] == '\r'))
        len--;
    host_of(&name, &len);
    const size_t n = name_canonical(name, len, room, &address, &why);
    if (!n)
        return 0;
    if (address) {
        out[0] = (bly_bytes){ room, n };
        return 1;
    }
    starts[0] = 0;
    labels = 1;
    for (size_t i = 0; i < n; i++)
        if (room[i] == '.')
            starts[labels++] = (unsigned char)(i + 1);
    return name_above(is, suffixes, room, n, starts, labels, out);
}

static size_t url_entries(const struct list_traits *is, bly_bytes text,
                          char *room, bly_bytes *out)
{
    struct url u;
    if (!url_canonical(text, room, &u))
        return 0;
    for (size_t i = 0; i < u.len && is->folded; i++)
        if (room[i] >= 'A' && room[i] <= 'Z')
            room[i] = (char)(room[i] + 32);
    return url_expressions(&u, out);
}

size_t entries_of(const struct list_traits *is, const struct suffixes *suffixes,
                  bly_bytes text, char *room, bly_bytes out[ENTRIES_MOST])
{
    return is->domains ? name_entries(is, suffixes, text, room, out)
                       : url_entries(is, text, room, out);
}

void asking_free(struct asking *a)
{
    block_free(&a->text);
    free(a->entries);
    free(a->of);
    free(a->hashes);
    *a = (struct asking){ 0 };
}

static bool asking_fit(struct asking *a)
{
    const size_t room = ASK_BATCH + ENTRIES_MOST;
    if (a->room)
        return true;
    a->entries = calloc(room, sizeof *a->entries);
    a->of = calloc(room, sizeof *a->of);
    a->hashes = calloc(room + BLY_BITMAP_WORDS(room), sizeof *a->hashes);
    if (!a->entries || !a->of || !a->hashes)
        return false;
    a->found = a->hashes + room;
    a->room = room;
    return true;
}

/* Ask for what was gathered, and begin anew. */
static void asking_flush(const struct blocklist *l, struct asking *a,
                         uint64_t *listed, bly_bytes *entries)
{
    if (l->filter) {
        bly_hash_keys(bly_hasher_of(l->filter), a->entries, a->n, a->hashes);
        bly_has_hashes(l->filter, a->hashes, a->n, a->found);
    } else {
        for (size_t i = 0; i < a->n; i++)
            a->hashes[i] =
                entry_prefix(a->entries[i], bly_sorted_width(l->prefixes));
        bly_sorted_has(l->prefixes, a->hashes, a->n, a->found);
    }
    for (size_t w = 0; w < BLY_BITMAP_WORDS(a->n); w++)
        for (uint64_t bits = a->found[w]; bits; bits &= bits - 1) {
            const size_t i = 64 * w + (size_t)__builtin_ctzll(bits);
            const size_t of = a->of[i];
            if (entries && !(listed[of / 64] >> of % 64 & 1))
                entries[of] = a->entries[i];
            listed[of / 64] |= UINT64_C(1) << of % 64;
        }
    for (size_t i = 0; i < a->n && l->allow.n; i++) {
        uint64_t *const word = &listed[a->of[i] / 64];
        const uint64_t bit = UINT64_C(1) << a->of[i] % 64;
        if (*word & bit && text_set_has(&l->allow, a->entries[i]))
            *word &= ~bit;
    }
    a->n = 0;
    a->text.len = 0;
}

bool blocklist_ask(const struct blocklist *l, struct asking *a,
                   const struct suffixes *suffixes, const bly_bytes *texts,
                   size_t n, uint64_t *listed, uint64_t *bad,
                   bly_bytes *entries)
{
    if (!asking_fit(a))
        return false;
    memset(listed, 0, BLY_BITMAP_WORDS(n) * sizeof *listed);
    memset(bad, 0, BLY_BITMAP_WORDS(n) * sizeof *bad);
    /* All canonical forms of a call lie in one block that does not move: the
     * entries point into it, and the caller may see them. */
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += l->is.domains ? NAME_ROOM : URL_ROOM(texts[i].len);
    a->text.len = a->n = 0;
    if (!block_fit(&a->text, all))
        return false;
    char *at = a->text.at;
    for (size_t i = 0; i < n; i++) {
        const size_t found =
            entries_of(&l->is, suffixes, texts[i], at, a->entries + a->n);
        if (!found)
            bad[i / 64] |= UINT64_C(1) << i % 64;
        for (size_t e = 0; e < found; e++)
            a->of[a->n++] = i;
        at += l->is.domains ? NAME_ROOM : URL_ROOM(texts[i].len);
        if (a->n >= ASK_BATCH)
            asking_flush(l, a, listed, entries);
    }
    asking_flush(l, a, listed, entries);
    return true;
}

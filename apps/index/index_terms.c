/*
 * index_terms.c - the terms of a text, each once
 *
 * A block of 1 MiB has a million grams, of which 75,000 differ. Most of the
 * repeated ones are caught by a small table of those seen last, which the first
 * cache of the processor holds; the others by a table of all.
 *
 * Without case, a line is searched as if letters were small. Searches in UTF-8
 * also take U+0131 for i and U+017F for s (and U+0130 and U+212A, in some
 * locales, for i and k), searches in other locales do not; a block that has one
 * of these gives the terms of both readings.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "apps/index/index_terms.h"
#include "base/byte_order.h"
#include "base/grow.h"
#include "base/random.h"

const char *const term_class_names[TERM_CLASSES] = { "grams", "words",
                                                     "kmers" };

/* Numbers but 0, each once; and as a list, in the order they came. */
struct number_set {
    uint64_t *slots;
    size_t nslots, n; /* a power of two */
    uint64_t *list;
    size_t list_room;
};

#define SEEN_BITS 13
#define SET_LEAST ((size_t)1 << 15)

struct terms {
    const bly_hasher *hasher;
    struct term_rules rules;
    uint32_t *slots; /* of grams; 0 is free */
    unsigned slots_bits;
    uint32_t *grams; /* the same, in the order they came */
    size_t ngrams, grams_room;
    bool zero; /* the gram of four NULs */
    uint32_t seen[1 << SEEN_BITS];
    struct number_set words, kmers;
    uint64_t *out[TERM_CLASSES];
    size_t out_room[TERM_CLASSES];
    char *folded;
    size_t folded_room;

    /* Of sequences, from piece to piece. */
    enum { SEQ_START, SEQ_HEADER, SEQ_BASES, SEQ_PLUS, SEQ_QUALITY } seq;
    bool fastq;
    uint64_t forward, backward, quality, bases;
    unsigned valid;
};

/* -------------------------------------------------------------------- sets */

static bool set_grow(struct number_set *s, size_t nslots)
{
    uint64_t *const slots = calloc(nslots, sizeof *slots);
    if (!slots || !GROW(&s->list, &s->list_room, nslots / 2)) {
        free(slots);
        return false;
    }
    for (size_t i = 0; i < s->n; i++) {
        size_t at = (size_t)mix_fast(s->list[i]) & (nslots - 1);
        while (slots[at])
            at = (at + 1) & (nslots - 1);
        slots[at] = s->list[i];
    }
    free(s->slots);
    s->slots = slots;
    s->nslots = nslots;
    return true;
}

static inline bool set_put(struct number_set *s, uint64_t x)
{
    if (s->n >= s->nslots / 2 &&
        !set_grow(s, s->nslots ? s->nslots * 2 : SET_LEAST))
        return false;
    x += x == 0;
    size_t at = (size_t)mix_fast(x) & (s->nslots - 1);
    while (s->slots[at]) {
        if (s->slots[at] == x)
            return true;
        at = (at + 1) & (s->nslots - 1);
    }
    s->slots[at] = x;
    s->list[s->n++] = x;
    return true;
}

/* A table that one large document made large is not kept. */
static void set_empty(struct number_set *s, size_t most)
{
    if (s->nslots > most) {
        free(s->slots);
        free(s->list);
        *s = (struct number_set){ 0 };
    } else if (s->n) {
        memset(s->slots, 0, s->nslots * sizeof *s->slots);
        s->n = 0;
    }
}

/* ------------------------------------------------------------------- grams */

#define GRAM_BITS 18
#define GRAM_MIX UINT32_C(0x9e3779b1)
#define FRESH_MOST 256

static bool grams_grow(struct terms *t)
{
    const unsigned bits = t->slots ? t->slots_bits + 1 : GRAM_BITS;
    uint32_t *const next = calloc((size_t)1 << bits, sizeof *next);
    if (!next)
        return false;
    for (size_t i = 0; t->slots && i >> t->slots_bits == 0; i++) {
        const uint32_t g = t->slots[i];
        if (!g)
            continue;
        size_t at = (size_t)(g * GRAM_MIX) >> (32 - bits);
        while (next[at])
            at = (at + 1) & (((size_t)1 << bits) - 1);
        next[at] = g;
    }
    free(t->slots);
    t->slots = next;
    t->slots_bits = bits;
    return true;
}

static bool grams_put(struct terms *t, const uint32_t *grams, size_t n)
{
    if (!t->slots || t->ngrams + n >= (size_t)1 << (t->slots_bits - 1)) {
        /* More than 2^30 grams need a document larger than any that is read. */
        if ((t->slots && t->slots_bits == 31) || !grams_grow(t))
            return false;
    }
    if (!GROW(&t->grams, &t->grams_room, t->ngrams + n))
        return false;
    const size_t mask = ((size_t)1 << t->slots_bits) - 1;
    for (size_t i = 0; i < n; i++) {
        const uint32_t g = grams[i];
        size_t at = (size_t)(g * GRAM_MIX) >> (32 - t->slots_bits);
        if (!g) {
            t->zero = true;
            continue;
        }
        while (t->slots[at] && t->slots[at] != g)
            at = (at + 1) & mask;
        if (t->slots[at])
            continue;
        t->slots[at] = g;
        t->grams[t->ngrams++] = g;
    }
    return true;
}

static bool grams_add(struct terms *t, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    const unsigned char *const end = p + n;
    while (p < end) {
        const unsigned char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        while (stop - p >= GRAM_BYTES) {
            /* Which grams were seen just now is as good as random, so nothing
             * here depends on a branch. */
            uint32_t fresh[FRESH_MOST];
            size_t nfresh = 0;
            const size_t left = (size_t)(stop - p) - (GRAM_BYTES - 1);
            const unsigned char *const until =
                p + (left < FRESH_MOST ? left : FRESH_MOST);
            for (; p < until; p++) {
                const uint32_t g = (uint32_t)get_le(p, GRAM_BYTES);
                uint32_t *const seen =
                    &t->seen[g * GRAM_MIX >> (32 - SEEN_BITS)];
                fresh[nfresh] = g;
                nfresh += *seen != g;
                *seen = g;
            }
            if (!grams_put(t, fresh, nfresh))
                return false;
        }
        p = stop + 1;
    }
    return true;
}

/* ------------------------------------------------------------------- words */

enum { BYTE_OTHER, BYTE_WORD, BYTE_JOINER };

static unsigned char byte_sorts[256];

__attribute__((constructor)) static void byte_sorts_fill(void)
{
    for (unsigned c = 0; c < 256; c++)
        byte_sorts[c] = is_word_byte((unsigned char)c) ? BYTE_WORD
                        : is_joiner((unsigned char)c)  ? BYTE_JOINER
                                                       : BYTE_OTHER;
}

static bool words_add(struct terms *t, const char *text, size_t n)
{
    const char *p = text;
    const char *const end = text + n;
    const char *starts[CHAIN_WORDS] = { 0 }; /* of the words of a chain */
    unsigned chain = 0;
    while (p < end) {
        if (byte_sorts[(unsigned char)*p] != BYTE_WORD) {
            /* One joiner between two words goes on with the chain. */
            if (byte_sorts[(unsigned char)*p] != BYTE_JOINER || p == text ||
                byte_sorts[(unsigned char)p[-1]] != BYTE_WORD)
                chain = 0;
            p++;
            continue;
        }
        const char *const start = p;
        do
            p++;
        while (p < end && byte_sorts[(unsigned char)*p] == BYTE_WORD);
        if (!set_put(&t->words,
                     bly_hash(t->hasher, start, (size_t)(p - start))))
            return false;
        starts[chain++ % CHAIN_WORDS] = start;
        if (chain < CHAIN_WORDS)
            continue;
        const char *const first = starts[chain % CHAIN_WORDS];
        if (!set_put(&t->words,
                     bly_hash(t->hasher, first, (size_t)(p - first))))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------- kmers */

static void seq_break(struct terms *t)
{
    t->valid = 0;
}

static bool base_add(struct terms *t, unsigned char c)
{
    static const unsigned char codes[256] = {
        ['A'] = 1, ['C'] = 2, ['G'] = 3, ['T'] = 4, ['U'] = 4,
        ['a'] = 1, ['c'] = 2, ['g'] = 3, ['t'] = 4, ['u'] = 4,
    };
    const unsigned k = t->rules.k;
    const uint64_t code = codes[c];
    t->bases++;
    if (!code) {
        seq_break(t);
        return true;
    }
    const uint64_t mask = k == 32 ? UINT64_MAX : (UINT64_C(1) << 2 * k) - 1;
    t->forward = (t->forward << 2 | (code - 1)) & mask;
    t->backward = t->backward >> 2 | (3 - (code - 1)) << 2 * (k - 1);
    if (++t->valid < k)
        return true;
    t->valid = k;
    const uint64_t x = t->forward < t->backward ? t->forward : t->backward;
    return set_put(&t->kmers, x + 1); /* 0 is a kmer too */
}

static bool kmers_add(struct terms *t, const char *text, size_t n)
{
    for (const char *p = text; p < text + n; p++) {
        const bool ends = *p == '\n';
        if (*p == '\r')
            continue;
        switch (t->seq) {
        case SEQ_START: /* of a line: FASTA, or FASTQ between records */
            if (ends)
                break;
            if (*p == '>' || *p == '@' || *p == ';') {
                t->fastq = *p == '@';
                t->seq = SEQ_HEADER;
                t->bases = 0;
                seq_break(t);
                break;
            }
            if (*p == '+' && t->fastq) {
                t->seq = SEQ_PLUS;
                t->quality = 0;
                break;
            }
            t->seq = SEQ_BASES;
            /* fallthrough */
        case SEQ_BASES:
            if (ends)
                t->seq = SEQ_START;
            else if (!base_add(t, (unsigned char)*p))
                return false;
            break;
        case SEQ_HEADER:
            if (ends)
                t->seq = SEQ_START;
            break;
        case SEQ_PLUS:
            if (ends)
                t->seq = t->bases ? SEQ_QUALITY : SEQ_START;
            break;
        case SEQ_QUALITY: /* as many as there were bases; '@' may be one */
            if (!ends && ++t->quality < t->bases)
                break;
            if (!ends || t->quality >= t->bases) {
                t->fastq = false;
                t->seq = SEQ_HEADER; /* up to the end of the line */
            }
            break;
        }
    }
    return true;
}

/* ----------------------------------------------------------------- folding */

size_t text_fold(const char *text, size_t n, bool plain, char *out, bool *more)
{
    static const struct {
        unsigned char from[4], n, to;
    } others[] = { { "\xc4\xb0", 2, 'i' },
                   { "\xc4\xb1", 2, 'i' },
                   { "\xc5\xbf", 2, 's' },
                   { "\xe2\x84\xaa", 3, 'k' } };
    if (plain) {
        bool high = false;
        for (size_t i = 0; i < n; i++) {
            const unsigned char c = (unsigned char)text[i];
            high |= c >= 0x80;
            out[i] = (char)(c + ((unsigned char)(c - 'A') < 26 ? 32 : 0));
        }
        if (!more)
            return n;
        *more = false;
        for (size_t o = 0; high && o < 4 && !*more; o++)
            *more = memmem(text, n, others[o].from, others[o].n);
        return n;
    }
    size_t to = 0;
    for (size_t i = 0; i < n;) {
        const unsigned char c = (unsigned char)text[i];
        size_t o = 4;
        if (c >= 0x80)
            for (o = 0; o < 4; o++)
                if (n - i >= others[o].n &&
                    memcmp(text + i, others[o].from, others[o].n) == 0)
                    break;
        if (o < 4) {
            out[to++] = (char)others[o].to;
            i += others[o].n;
        } else {
            out[to++] = (char)(c + ((unsigned char)(c - 'A') < 26 ? 32 : 0));
            i++;
        }
    }
    return to;
}

/* --------------------------------------------------------------- documents */

struct terms *terms_new(const bly_hasher *hasher, const struct term_rules *r)
{
    struct terms *const t = calloc(1, sizeof *t);
    if (t) {
        t->hasher = hasher;
        t->rules = *r;
    }
    return t;
}

void terms_free(struct terms *t)
{
    if (!t)
        return;
    free(t->slots);
    free(t->grams);
    free(t->words.slots);
    free(t->words.list);
    free(t->kmers.slots);
    free(t->kmers.list);
    for (size_t i = 0; i < TERM_CLASSES; i++)
        free(t->out[i]);
    free(t->folded);
    free(t);
}

void terms_begin(struct terms *t)
{
    if (t->slots && t->slots_bits > GRAM_BITS + 2) {
        free(t->slots);
        t->slots = NULL;
    } else if (t->slots) {
        memset(t->slots, 0, sizeof *t->slots << t->slots_bits);
    }
    t->ngrams = 0;
    t->zero = false;
    memset(t->seen, 0, sizeof t->seen);
    t->seen[0] = 1; /* where only 0 comes, which was not seen */
    set_empty(&t->words, (size_t)1 << 18);
    set_empty(&t->kmers, (size_t)1 << 24);
    t->seq = SEQ_START;
    t->fastq = false;
    t->valid = 0;
    t->bases = t->quality = 0;
}

static bool text_add(struct terms *t, const char *text, size_t n)
{
    return (!t->rules.has[TERM_GRAMS] || grams_add(t, text, n)) &&
           (!t->rules.has[TERM_WORDS] || words_add(t, text, n));
}

bool terms_add(struct terms *t, const char *text, size_t n)
{
    if (t->rules.has[TERM_KMERS] && !kmers_add(t, text, n))
        return false;
    if (!t->rules.fold)
        return text_add(t, text, n);
    bool more = false;
    if (!GROW(&t->folded, &t->folded_room, n))
        return false;
    text_fold(text, n, true, t->folded, &more);
    if (!text_add(t, t->folded, n))
        return false;
    return !more ||
           text_add(t, t->folded, text_fold(text, n, false, t->folded, NULL));
}

bool terms_done(struct terms *t, bly_index_terms out[TERM_CLASSES])
{
    size_t nclasses = 0;
    for (unsigned c = 0; c < TERM_CLASSES; c++) {
        if (!t->rules.has[c])
            continue;
        struct number_set *const s = c == TERM_WORDS ? &t->words : &t->kmers;
        const size_t most = c == TERM_GRAMS ? t->ngrams + 1 : s->n;
        size_t n = 0;
        if (!GROW(&t->out[c], &t->out_room[c], most + 1))
            return false;
        uint64_t *const to = t->out[c];
        if (c == TERM_GRAMS) {
            for (; n < t->ngrams; n++)
                to[n] = t->grams[n];
            if (t->zero)
                to[n++] = 0;
        } else {
            for (; n < s->n; n++)
                to[n] = s->list[n];
        }
        if (c == TERM_KMERS)
            for (size_t i = 0; i < n; i++)
                to[i]--;
        if (c != TERM_WORDS) /* those of words are hashes already */
            bly_hash_ints(t->hasher, to, n, to);
        out[nclasses++] = (bly_index_terms){ to, n };
    }
    return true;
}

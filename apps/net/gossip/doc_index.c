/*
 * doc_index.c - which documents of a folder have which words, and how often
 */
#define _GNU_SOURCE
#include "apps/net/gossip/doc_index.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/lookup.h"
#include "base/grow.h"
#include "base/search.h"
#include "io/folders.h"
#include "io/source.h"
#include "io/html/html_words.h"
#include "io/utf8.h"
#include "report/say.h"

#define PIECE ((size_t)64 << 10)

/* ---------------------------------------------------------------- the index */

struct doc_index *doc_index_new(const char *folder)
{
    struct doc_index *const x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->folder = strdup(folder);
    if (x->folder)
        return x;
    free(x);
    return NULL;
}

void doc_index_free(struct doc_index *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->ndocs; i++)
        free(x->docs[i].path);
    free(x->docs);
    free(x->postings);
    free(x->folder);
    free(x);
}

bool doc_index_add(struct doc_index *x, const char *path, const uint64_t *words,
                   const uint32_t *counts, size_t n)
{
    uint64_t all = 0;
    char *const name = strdup(path);
    if (!name || !GROW(&x->docs, &x->room_docs, x->ndocs + 1) ||
        !GROW(&x->postings, &x->room_postings, x->npostings + n)) {
        free(name);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        x->postings[x->npostings++] =
            (struct doc_posting){ words[i], (uint32_t)x->ndocs, counts[i] };
        all += counts[i];
    }
    x->docs[x->ndocs++] =
        (struct doc_entry){ name,
                            all < UINT32_MAX ? (uint32_t)all : UINT32_MAX };
    return true;
}

static int by_word(const void *a, const void *b)
{
    const struct doc_posting *const x = a, *const y = b;
    if (x->word != y->word)
        return x->word < y->word ? -1 : 1;
    return (x->doc > y->doc) - (x->doc < y->doc);
}

void doc_index_end(struct doc_index *x)
{
    if (x->npostings)
        qsort(x->postings, x->npostings, sizeof *x->postings, by_word);
    x->nwords = 0;
    for (size_t i = 0; i < x->npostings; i++)
        x->nwords += !i || x->postings[i].word != x->postings[i - 1].word;
}

uint64_t *doc_index_words(const struct doc_index *x)
{
    uint64_t *const words = malloc((x->nwords + 1) * sizeof *words);
    size_t n = 0;
    for (size_t i = 0; words && i < x->npostings; i++)
        if (!i || x->postings[i].word != x->postings[i - 1].word)
            words[n++] = x->postings[i].word;
    return words;
}

/* The first posting of a word, or of the next one. */
static size_t postings_of(const struct doc_index *x, uint64_t word)
{
    size_t at;
    LOWER_BOUND(at, x->npostings, x->postings[at].word < word);
    return at;
}

size_t doc_index_with(const struct doc_index *x, uint64_t word)
{
    size_t n = 0;
    for (size_t i = postings_of(x, word);
         i < x->npostings && x->postings[i].word == word; i++)
        n++;
    return n;
}

static void best_one(struct found *best, size_t *n, unsigned k,
                     const struct found *f)
{
    size_t at = *n;
    while (at > 0 && best[at - 1].score < f->score)
        at--;
    if (at >= k)
        return;
    if (*n < k)
        ++*n;
    memmove(best + at + 1, best + at, (*n - at - 1) * sizeof *best);
    best[at] = *f;
}

size_t doc_index_find(const struct doc_index *x, const struct query *q,
                      struct found *best)
{
    size_t at[QUERY_WORDS], n = 0;
    for (unsigned t = 0; t < q->n; t++)
        at[t] = postings_of(x, q->words[t].hash);
    /* All lists side by side, from document to document. */
    for (;;) {
        struct found f = { 0 };
        uint32_t doc = UINT32_MAX;
        for (unsigned t = 0; t < q->n; t++)
            if (at[t] < x->npostings &&
                x->postings[at[t]].word == q->words[t].hash &&
                x->postings[at[t]].doc < doc)
                doc = x->postings[at[t]].doc;
        if (doc == UINT32_MAX)
            return n;
        for (unsigned t = 0; t < q->n; t++)
            if (at[t] < x->npostings &&
                x->postings[at[t]].word == q->words[t].hash &&
                x->postings[at[t]].doc == doc)
                f.counts[t] = x->postings[at[t]++].count;
        f.words = x->docs[doc].words;
        f.score = found_score(q, &f);
        f.path = (bly_bytes){ x->docs[doc].path, strlen(x->docs[doc].path) };
        best_one(best, &n, q->k, &f);
    }
}

/* ---------------------------------------------------------------- documents */

/* The words of one document: a table that is emptied for the next. */
struct doc_words {
    uint64_t *words;
    uint32_t *counts;
    size_t n, room_words, room_counts;
    struct lookup by_word;
};

static bool doc_word(void *ctx, bly_bytes word)
{
    struct doc_words *const d = ctx;
    if (word.len < DOC_LEAST_WORD || word.len > QUERY_WORD)
        return true;
    const uint64_t hash = word_hash(word);
    /* Who writes documents knows the hashes of words, but not their places. */
    const uint64_t place = table_hash(&hash, sizeof hash);
    LOOKUP_EACH (&d->by_word, place, row)
        if (d->words[row] == hash) {
            d->counts[row] += d->counts[row] < UINT32_MAX;
            return true;
        }
    if (!GROW(&d->words, &d->room_words, d->n + 1) ||
        !GROW(&d->counts, &d->room_counts, d->n + 1) ||
        !lookup_add(&d->by_word, place, d->n))
        return false;
    d->words[d->n] = hash;
    d->counts[d->n++] = 1;
    return true;
}

static void doc_empty(struct doc_words *d)
{
    lookup_empty(&d->by_word);
    d->n = 0;
}

/* Does the path, links resolved, lie in the folder? */
static bool inside(const struct doc_index *x, const char *path)
{
    char real[PATH_MAX];
    const size_t n = strlen(x->folder);
    if (!realpath(path, real))
        return false;
    return strncmp(real, x->folder, n) == 0 &&
           (real[n] == '/' || strcmp(x->folder, "/") == 0);
}

enum doc_read { DOC_TAKEN, DOC_NONE, DOC_NO_MEMORY };

static enum doc_read doc_read(const struct doc_index *x, const char *path,
                              struct doc_words *d, char *piece)
{
    struct source *const s =
        inside(x, path) ? source_open(path, -1, SOURCE_ANY) : NULL;
    if (!s)
        return DOC_NONE;
    struct html_words c = { .cutter = { .each = doc_word, .ctx = d },
                            .wish = &x->pages,
                            .name = path };
    size_t all = 0;
    ptrdiff_t n;
    enum doc_read got = DOC_TAKEN;
    while (got == DOC_TAKEN && all < DOC_BYTES &&
           (n = source_read(s, piece, PIECE)) != 0) {
        if (n < 0 ||
            (!all && memchr(piece, 0, (size_t)n < 4096 ? (size_t)n : 4096)))
            got = DOC_NONE;
        else if (!html_words_cut(&c, piece, (size_t)n))
            got = DOC_NO_MEMORY;
        all += n > 0 ? (size_t)n : 0;
    }
    if (got == DOC_TAKEN && !html_words_end(&c))
        got = DOC_NO_MEMORY;
    html_words_free(&c);
    source_close(s);
    return got == DOC_TAKEN && !d->n ? DOC_NONE : got;
}

/* What changes when a file does. */
static uint64_t folder_state(const struct list *files)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3 };
    uint64_t sum = 0;
    for (size_t i = 0; i < files->n; i++) {
        struct stat st;
        if (lstat(files->at[i], &st))
            continue;
        const uint64_t facts[] = {
            bly_hash(&h, files->at[i], strlen(files->at[i])),
            (uint64_t)st.st_size, (uint64_t)st.st_ino,
            (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec
        };
        sum += bly_hash(&h, facts, sizeof facts);
    }
    return sum;
}

static bool read_all(struct doc_index *x, const struct list *files)
{
    struct doc_words d = { 0 };
    char *const piece = malloc(PIECE);
    const size_t n = strlen(x->folder) + (strcmp(x->folder, "/") != 0);
    bool ok = piece;
    for (size_t i = 0; ok && i < files->n; i++) {
        const enum doc_read got =
            x->ndocs < DOC_MOST && strlen(files->at[i] + n) <= FOUND_PATH
                ? doc_read(x, files->at[i], &d, piece)
                : DOC_NONE;
        if (got == DOC_TAKEN)
            ok = doc_index_add(x, files->at[i] + n, d.words, d.counts, d.n);
        x->left_out += got == DOC_NONE;
        ok = ok && got != DOC_NO_MEMORY;
        doc_empty(&d);
    }
    free(d.words);
    free(d.counts);
    lookup_free(&d.by_word);
    free(piece);
    return ok || refuse("no memory for the words of %s", x->folder);
}

struct doc_index *doc_index_read(const char *folder,
                                 const struct html_wish *pages,
                                 const uint64_t *unless, bool *same)
{
    char real[PATH_MAX];
    struct stat st;
    struct list files = { 0 };
    bool trouble = false;
    *same = false;
    if (!realpath(folder, real) || stat(real, &st)) {
        fail_path(folder, errno);
        return NULL;
    }
    if (!S_ISDIR(st.st_mode)) {
        fail_path(folder, ENOTDIR);
        return NULL;
    }
    const char *name = real;
    const struct list one = { .at = &name, .n = 1 };
    if (!files_named(&one, true, &trouble, &files))
        return NULL;
    const uint64_t state = folder_state(&files);
    *same = unless && *unless == state;
    struct doc_index *x = *same ? NULL : doc_index_new(real);
    if (x) {
        x->state = state;
        x->pages = *pages;
        if (read_all(x, &files)) {
            doc_index_end(x);
        } else {
            doc_index_free(x);
            x = NULL;
        }
    }
    files_free(&files);
    return x;
}

/* ------------------------------------------------------------------ context */

static bool is_word_byte(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
           c >= 0x80;
}

static bool same_letters(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char x = (unsigned char)a[i];
        if ((x >= 'A' && x <= 'Z' ? x | 32u : x) != (unsigned char)b[i])
            return false;
    }
    return true;
}

/* Where the first word of the query stands; n: nowhere that it is seen. */
static size_t place_of_word(const char *text, size_t n, const struct query *q)
{
    for (size_t i = 0; i < n; i++) {
        if (i && is_word_byte((unsigned char)text[i - 1]))
            continue;
        for (unsigned t = 0; t < q->n; t++) {
            const size_t len = q->words[t].len;
            if (len <= n - i && same_letters(text + i, q->words[t].text, len) &&
                (i + len == n || !is_word_byte((unsigned char)text[i + len])))
                return i;
        }
    }
    return n;
}

/* One line of plain text: blanks for control characters and for what is no
 * UTF-8, and never two of them. */
static size_t one_line(const char *text, size_t n, char *room)
{
    size_t out = 0;
    const char *at = text;
    while (at < text + n) {
        const char *const from = at;
        const int32_t c = utf8_next(&at, text + n);
        const size_t len = (size_t)(at - from);
        if (out + len > FOUND_CONTEXT)
            break;
        if (c < 0 || c <= ' ' || (c >= 0x7f && c < 0xa0)) {
            if (out && room[out - 1] != ' ')
                room[out++] = ' ';
        } else {
            memcpy(room + out, from, len);
            out += len;
        }
    }
    return out && room[out - 1] == ' ' ? out - 1 : out;
}

bool doc_context(const struct doc_index *x, const struct query *q,
                 const char *path, char *room, size_t *n)
{
    char *whole = NULL, *const start = malloc(4 * PIECE);
    struct html html = { 0 };
    struct source *s = NULL;
    if (start && asprintf(&whole, "%s/%s", x->folder, path) >= 0 &&
        inside(x, whole))
        s = source_open(whole, -1, SOURCE_ANY);
    if (s) {
        size_t all = 0;
        ptrdiff_t got;
        while (all < 4 * PIECE &&
               (got = source_read(s, start + all, 4 * PIECE - all)) > 0)
            all += (size_t)got;
        const char *text = start;
        bly_bytes seen;
        if (html_is_page(&x->pages, whole, text, all) && html_works() &&
            html_text(&html, text, all, NULL, &seen)) {
            text = seen.ptr;
            all = seen.len;
        }
        size_t at = place_of_word(text, all, q);
        if (at == all)
            at = 0;
        /* A few words before it, from a blank on. */
        size_t from = at > 40 ? at - 40 : 0;
        while (from && from < at && text[from - 1] != ' ' &&
               text[from - 1] != '\n')
            from++;
        *n = one_line(text + from, all - from, room);
        source_close(s);
    }
    html_free(&html);
    free(whole);
    free(start);
    return s;
}

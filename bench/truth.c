/*
 * truth.c - all pairs of documents at a threshold, by a plain join
 *
 *     truth CORPUS T       CORPUS: for each document its length in bytes, a
 *                          newline, its bytes
 *
 * prints "= a b" where the words of b are those of the earlier document a, and
 * "a b shared either" for every pair of different documents, a before b, that
 * has J >= T. bench/dedup.py measures the command against it, so nothing here
 * is taken from the library: words are found a byte at a time, a shingle is
 * the XXH3 of five words with blanks between them.
 *
 * The join is complete [1]. Put the shingles of every set in one order, the
 * rarest first. Sets of sizes a <= b with J >= T share at least T b of them, so
 * both have one of these among their first a - ceil(T a) + 1 and
 * b - ceil(T b) + 1. An index over these prefixes finds every pair; whatever
 * has a common entry and sizes that allow it is compared in full.
 *
 * [1] Bayardo, Ma and Srikant, Scaling up all pairs similarity search, 2007
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHINGLE 5

struct set {
    uint64_t *x; /* hashes, then numbers by rarity; ascending */
    uint32_t n;
    uint32_t doc;
    uint64_t text; /* hash of its words */
};

static void *need(void *p)
{
    if (p)
        return p;
    fprintf(stderr, "truth: out of memory\n");
    exit(2);
}

static int by_number(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static int by_size(const void *x, const void *y)
{
    const struct set *const a = x, *const b = y;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return (a->doc > b->doc) - (a->doc < b->doc);
}

/* Sort n numbers; what is left when each is there once. */
static size_t distinct(uint64_t *x, size_t n)
{
    size_t m = 0;
    qsort(x, n, sizeof *x, by_number);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || x[i] != x[i - 1])
            x[m++] = x[i];
    return m;
}

/* The words of a text in lower case with a blank behind each; where word i
 * begins is start[i]. The number of words. */
static size_t join_words(const unsigned char *text, size_t n, char *joined,
                         size_t *start)
{
    size_t at = 0, nwords = 0;
    bool inside = false;
    for (size_t i = 0; i <= n; i++) {
        const int c = i < n ? text[i] : ' ';
        const bool upper = c >= 'A' && c <= 'Z';
        const bool word = upper || (c >= 'a' && c <= 'z') ||
                          (c >= '0' && c <= '9') || c >= 0x80;
        if (word && !inside)
            start[nwords++] = at;
        if (word)
            joined[at++] = (char)(upper ? c + 32 : c);
        else if (inside)
            joined[at++] = ' ';
        inside = word;
    }
    start[nwords] = at;
    return nwords;
}

static struct set make_set(const unsigned char *text, size_t n, uint32_t doc)
{
    struct set s = { .doc = doc };
    char *const joined = need(malloc(n + 2));
    size_t *const start = need(malloc((n + 2) * sizeof *start));
    const size_t nwords = join_words(text, n, joined, start);
    if (nwords) {
        const size_t size = nwords < SHINGLE ? nwords : SHINGLE;
        const size_t count = nwords - size + 1;
        s.text = XXH3_64bits(joined, start[nwords]);
        s.x = need(malloc(count * sizeof *s.x));
        for (size_t i = 0; i < count; i++)
            s.x[i] = XXH3_64bits(joined + start[i], start[i + size] - start[i]);
        s.n = (uint32_t)distinct(s.x, count);
    }
    free(joined);
    free(start);
    return s;
}

static struct set *read_sets(const char *path, size_t *n)
{
    FILE *const f = fopen(path, "rb");
    struct set *sets = NULL;
    size_t len, room = 0;
    *n = 0;
    if (!f) {
        perror(path);
        exit(2);
    }
    while (fscanf(f, "%zu", &len) == 1) {
        unsigned char *const text = need(malloc(len + 1));
        if (fgetc(f) != '\n' || fread(text, 1, len, f) != len) {
            fprintf(stderr, "%s: ends too early\n", path);
            exit(2);
        }
        if (*n == room) {
            room = room * 2 + 1024;
            sets = need(realloc(sets, room * sizeof *sets));
        }
        sets[*n] = make_set(text, len, (uint32_t)*n);
        ++*n;
        free(text);
    }
    fclose(f);
    return sets;
}

/* -------------------------------------------------------------------- equal */

static int by_words(const void *x, const void *y)
{
    const struct set *const a = x, *const b = y;
    if (a->text != b->text)
        return a->text < b->text ? -1 : 1;
    return (a->doc > b->doc) - (a->doc < b->doc);
}

/* Tell of equal texts, and leave one of each, and none without words. */
static size_t drop_equal(struct set *sets, size_t n)
{
    size_t m = 0;
    qsort(sets, n, sizeof *sets, by_words);
    for (size_t i = 0; i < n; i++) {
        if (sets[i].n == 0)
            continue;
        if (m && sets[m - 1].text == sets[i].text) {
            printf("= %u %u\n", sets[m - 1].doc, sets[i].doc);
            free(sets[i].x);
        } else {
            sets[m++] = sets[i];
        }
    }
    return m;
}

/* ------------------------------------------------------------------- rarity */

/* Hashes become places in the order of rarity: how many sets have it, then the
 * hash. Returns how many different ones there are. */
static size_t by_rarity(struct set *sets, size_t n)
{
    size_t total = 0, m = 0, count = 0;
    for (size_t i = 0; i < n; i++)
        total += sets[i].n;
    uint64_t *const all = need(malloc((total + 1) * sizeof *all));
    for (size_t i = 0; i < n; i++) {
        memcpy(all + m, sets[i].x, sets[i].n * sizeof *all);
        m += sets[i].n;
    }
    qsort(all, total, sizeof *all, by_number);
    /* hash[i], and (how many have it, i) which is then sorted */
    uint64_t *const hash = need(malloc((total + 1) * sizeof *hash));
    uint64_t *const order = need(malloc((total + 1) * sizeof *order));
    for (size_t i = 0; i < total; i++) {
        if (i == 0 || all[i] != all[i - 1]) {
            hash[count] = all[i];
            order[count] = count;
            count++;
        }
        order[count - 1] += UINT64_C(1) << 32;
    }
    qsort(order, count, sizeof *order, by_number);
    uint64_t *const place = all; /* of hash i; all has served */
    for (size_t i = 0; i < count; i++)
        place[(uint32_t)order[i]] = i;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < sets[i].n; j++) {
            const uint64_t *const at =
                bsearch(&sets[i].x[j], hash, count, sizeof *hash, by_number);
            sets[i].x[j] = place[at - hash];
        }
        qsort(sets[i].x, sets[i].n, sizeof *sets[i].x, by_number);
    }
    free(all);
    free(hash);
    free(order);
    return count;
}

/* --------------------------------------------------------------------- join */

static uint64_t shared_by(const struct set *a, const struct set *b)
{
    uint64_t both = 0;
    for (uint32_t i = 0, j = 0; i < a->n && j < b->n;) {
        both += a->x[i] == b->x[j];
        const bool less = a->x[i] <= b->x[j], more = a->x[i] >= b->x[j];
        i += less;
        j += more;
    }
    return both;
}

static uint32_t prefix_of(const struct set *s, double t)
{
    return s->n - (uint32_t)ceil(t * s->n - 1e-9) + 1;
}

/* Sets whose prefix has an entry, the last one first. */
struct posting {
    uint32_t set, next; /* next: 1 + a posting, 0: none */
};

static void join(struct set *sets, size_t n, size_t count, double t)
{
    uint32_t *const head = need(calloc(count + 1, sizeof *head));
    uint32_t *const seen = need(calloc(n + 1, sizeof *seen));
    struct posting *list = NULL;
    size_t nlist = 0, room = 0;
    qsort(sets, n, sizeof *sets, by_size);
    for (uint32_t i = 0; i < n; i++) {
        const struct set *const b = &sets[i];
        for (uint32_t p = 0; p < prefix_of(b, t); p++) {
            /* Sizes ascend, so in each list those too small come last. */
            for (uint32_t at = head[b->x[p]]; at; at = list[at - 1].next) {
                const struct set *const a = &sets[list[at - 1].set];
                if ((double)a->n < t * b->n - 1e-9)
                    break;
                if (seen[list[at - 1].set] == i + 1)
                    continue;
                seen[list[at - 1].set] = i + 1;
                const uint64_t both = shared_by(a, b);
                const uint64_t either = (uint64_t)a->n + b->n - both;
                if ((double)both >= t * (double)either - 1e-9)
                    printf(
                        "%u %u %llu %llu\n", a->doc < b->doc ? a->doc : b->doc,
                        a->doc < b->doc ? b->doc : a->doc,
                        (unsigned long long)both, (unsigned long long)either);
            }
            if (nlist == room) {
                room = room * 2 + 1024;
                list = need(realloc(list, room * sizeof *list));
            }
            list[nlist] = (struct posting){ i, head[b->x[p]] };
            head[b->x[p]] = (uint32_t)++nlist;
        }
    }
    free(head);
    free(seen);
    free(list);
}

int main(int argc, char **argv)
{
    size_t n;
    if (argc != 3) {
        printf("usage: truth CORPUS T; bench/dedup.py runs it\n");
        return 0;
    }
    struct set *const sets = read_sets(argv[1], &n);
    n = drop_equal(sets, n);
    join(sets, n, by_rarity(sets, n), atof(argv[2]));
    for (size_t i = 0; i < n; i++)
        free(sets[i].x);
    free(sets);
    return 0;
}

/*
 * index_rows.c - an index of documents against a filter in a file for each
 *
 *     build/bench/index_rows [DOCUMENTS [TERMS]]     default: 10000 10000
 *
 * Documents of 2,000 words each at a rate of 0.001, and as many terms that are
 * asked of all of them: of an index, in one call, and of one .bly file per
 * document (the default kind, same rate), mapped and asked for all terms at
 * once. The share of "maybe" is shown for both, since both have one rate. The
 * best of three rounds counts; times are those of this thread.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bloomery/index.h>

#include "bench/measure.h"

#define WORDS 2000
#define ROUNDS 3
#define RATE 0.001

static size_t ndocs = 10000, nterms = 10000;
static char folder[] = "/tmp/bloomery-index-XXXXXX";

static void must(bly_status st)
{
    if (st) {
        fprintf(stderr, "index_rows: %s\n", bly_error());
        exit(2);
    }
}

static uint64_t word_of(uint64_t document, uint64_t i)
{
    return mix((document + 1) << 20 | i);
}

static void path_of(char path[64], size_t document)
{
    snprintf(path, 64, "%s/%zu.bly", folder, document);
}

static bool put_file(void *ctx, const void *bytes, size_t n)
{
    return fwrite(bytes, 1, n, ctx) == n;
}

static void build(const char *path)
{
    const bly_index_class class = { "words", RATE };
    const bly_index_spec spec = { .classes = &class, .nclasses = 1 };
    const bly_spec filter = { .items = WORDS, .fpr = RATE };
    bly_index_builder *b;
    uint64_t hashes[WORDS];
    double index = 0, files = 0;
    must(bly_index_builder_new(path, &spec, &b));
    for (size_t d = 0; d < ndocs; d++) {
        char name[64];
        bly_filter *f;
        for (uint64_t i = 0; i < WORDS; i++)
            hashes[i] = word_of(d, i);
        double start = now_ns();
        const bly_index_terms terms = { hashes, WORDS };
        must(bly_index_builder_add(b, &terms, &d, sizeof d, NULL));
        index += now_ns() - start;
        start = now_ns();
        must(bly_new(&filter, &f));
        must(bly_add_hashes(f, hashes, WORDS, NULL, NULL));
        path_of(name, d);
        FILE *const out = fopen(name, "wb"); /* not synced: it goes again */
        must(out ? bly_write(f, put_file, out) : BLY_EIO);
        fclose(out);
        bly_free(f);
        files += now_ns() - start;
    }
    const double start = now_ns();
    must(bly_index_builder_commit(b));
    index += now_ns() - start;
    bly_index_builder_free(b);
    printf("built: index %.2f s, %zu files %.2f s of processor\n", index * 1e-9,
           ndocs, files * 1e-9);
}

static uint64_t ones(const uint64_t *words, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (uint64_t)__builtin_popcountll(words[i]);
    return sum;
}

/* The time it takes. Answers are not counted meanwhile. */
static double ask_index(const bly_index *x, const uint64_t *terms,
                        uint64_t *maybe, uint64_t *n)
{
    const double start = now_ns();
    must(bly_index_ask_each(x, 0, terms, nterms, maybe));
    const double took = now_ns() - start;
    *n = ones(maybe, nterms * bly_index_words(x));
    return took;
}

static double ask_files(const uint64_t *terms, uint64_t *maybe, uint64_t *n)
{
    const size_t nwords = BLY_BITMAP_WORDS(nterms);
    const double start = now_ns();
    for (size_t d = 0; d < ndocs; d++) {
        char name[64];
        bly_filter *f;
        path_of(name, d);
        must(bly_map(name, NULL, &f));
        bly_has_hashes(f, terms, nterms, maybe + d * nwords);
        bly_free(f);
    }
    const double took = now_ns() - start;
    *n = ones(maybe, ndocs * nwords);
    return took;
}

int main(int argc, char **argv)
{
    char path[64];
    bly_index *x;
    bly_index_class_stats class;
    double index = 1e30, files = 1e30;
    uint64_t in_index = 0, in_files = 0;
    if (argc > 1)
        ndocs = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        nterms = strtoull(argv[2], NULL, 10);
    if (!mkdtemp(folder))
        return 2;
    snprintf(path, sizeof path, "%s/all.blx", folder);
    build(path);
    uint64_t *const terms = room(8 * nterms);
    for (size_t i = 0; i < nterms; i++)
        terms[i] = i % 2 ? mix(~(uint64_t)i) : word_of(i % ndocs, i % WORDS);
    must(bly_index_map(path, NULL, &x));
    const size_t words = nterms * bly_index_words(x);
    const size_t more = ndocs * BLY_BITMAP_WORDS(nterms);
    uint64_t *const maybe = room(8 * (words > more ? words : more));
    bly_index_class_at(x, 0, &class);
    for (int round = 0; round < ROUNDS; round++) {
        double took = ask_index(x, terms, maybe, &in_index);
        index = took < index ? took : index;
        took = ask_files(terms, maybe, &in_files);
        files = took < files ? took : files;
    }
    const double pairs = (double)ndocs * (double)nterms;
    printf("%zu terms x %zu documents: index %.1f ms, files %.1f ms: %.1f "
           "times as fast\n",
           nterms, ndocs, index * 1e-6, files * 1e-6, files / index);
    printf("answers 'maybe': index %.6f, files %.6f of all pairs; planned %g\n",
           (double)in_index / pairs, (double)in_files / pairs, RATE);
    printf("index: %u rows per term, %.2f GB/s of row bits with everything\n",
           class.k, (double)nterms * class.k * (double)ndocs / 8 / index);
    bly_index_free(x);
    for (size_t d = 0; d < ndocs; d++) {
        char name[64];
        path_of(name, d);
        unlink(name);
    }
    unlink(path);
    return rmdir(folder) != 0;
}

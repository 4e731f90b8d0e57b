/*
 * html_pages.c - the text of pages, beside libgumbo alone
 *
 *     build/bench/html_pages FILE...
 *
 * Prints how many bytes of pages are read per second, by html_text() and by
 * libgumbo with the same memory and nothing done with its tree. The best of
 * three rounds counts; times are those of this thread.
 */
#define _GNU_SOURCE
#include <gumbo.h>
#include <stdio.h>

#include "bench/measure.h"
#include "io/html/html.h"

#define ROUNDS 3

static bool (*const tree)(struct html *h, bool *made)
    __attribute__((used)) = html_tree;
static char *memory;
static size_t used;

static void *take(void *ctx, size_t n)
{
    char *const at = memory + used;
    (void)ctx;
    used += (n + 15) & ~(size_t)15;
    if (used > (size_t)1 << 30)
        exit(2);
    return at;
}

static void leave(void *ctx, void *at)
{
    (void)ctx;
    (void)at;
}

/* Seconds for all pages. */
static double round_of(struct block *pages, size_t n, bool alone)
{
    GumboOptions o = kGumboDefaultOptions;
    struct html h = { 0 };
    bly_bytes text;
    double ns = 0;
    o.allocator = take;
    o.deallocator = leave;
    o.max_errors = 0;
    for (size_t i = 0; i < n; i++) {
        const double start = now_ns();
        if (alone) {
            used = 0;
            gumbo_parse_with_options(&o, pages[i].at, pages[i].len);
        } else if (!html_text(&h, pages[i].at, pages[i].len, NULL, &text)) {
            exit(2);
        }
        ns += now_ns() - start;
    }
    html_free(&h);
    return ns / 1e9;
}

int main(int argc, char **argv)
{
    struct block *const pages = calloc((size_t)argc, sizeof *pages);
    double best[2] = { 1e9, 1e9 };
    size_t n = 0, nbytes = 0;
    memory = room((size_t)1 << 30);
    for (int i = 1; pages && tree && i < argc; i++) {
        char part[65536];
        size_t got;
        FILE *const f = fopen(argv[i], "rb");
        while (f && (got = fread(part, 1, sizeof part, f)) > 0)
            if (!block_put(&pages[n], part, got))
                return 2;
        nbytes += pages[n].len;
        n += pages[n].len > 0;
        if (f)
            fclose(f);
    }
    for (int i = 0; i < 2 * ROUNDS; i++) {
        const double s = round_of(pages, n, i & 1);
        best[i & 1] = s < best[i & 1] ? s : best[i & 1];
    }
    printf("%zu pages, %.1f MB: %.0f MB/s; libgumbo alone %.0f MB/s\n", n,
           (double)nbytes / 1e6, (double)nbytes / 1e6 / best[0],
           (double)nbytes / 1e6 / best[1]);
    return 0;
}

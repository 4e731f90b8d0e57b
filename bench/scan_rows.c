/*
 * scan_rows.c - strings in a text, by every row that this processor has
 *
 *     build/bench/scan_rows STRINGS TEXT [ROUNDS]      default: 5 rounds
 *
 * For bench/scan.py. The text goes past the sieves in pieces of 256 KiB, as the
 * command reads it; matches are counted, and not printed. Beside the rows is
 * what it takes to look at the text at all: memchr for a byte that is seldom
 * there. Rounds alternate, and the best one counts.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/scan.h"
#include "bench/measure.h"

#define PIECE ((size_t)1 << 18)
#define ROWS 8

static struct {
    unsigned char *text;
    size_t n;
    struct scan_string *strings;
    size_t nstrings;
} w;

static unsigned char *all_of(const char *path, size_t *n)
{
    FILE *const f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return NULL;
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *const at = malloc(*n + 1);
    if (at && fread(at, 1, *n, f) != *n)
        return NULL;
    fclose(f);
    return at;
}

static void strings_cut(unsigned char *at, size_t n)
{
    w.strings = calloc(n + 1, sizeof *w.strings);
    if (!w.strings)
        exit(2);
    for (unsigned char *end = at + n; at < end;) {
        unsigned char *const stop = memchr(at, '\n', (size_t)(end - at));
        const size_t len = (size_t)((stop ? stop : end) - at);
        if (len && len <= SCAN_LONGEST)
            w.strings[w.nstrings++] =
                (struct scan_string){ .at = at, .n = len };
        at += len + 1;
    }
}

static uint64_t scanned(struct scanner *s)
{
    const size_t keeps = scanner_keeps(s);
    uint64_t sum = 0;
    for (size_t at = 0; at < w.n; at += PIECE) {
        const size_t n = w.n - at < PIECE ? w.n - at : PIECE;
        const size_t seen = at < keeps ? at : keeps;
        const struct scan_match *m;
        size_t nm;
        const size_t behind = w.n - at - n;
        const struct scan_piece p = { w.text + at - seen, seen, seen + n,
                                      at - seen,
                                      behind < SCAN_AHEAD ? behind
                                                          : SCAN_AHEAD };
        if (!scanner_scan(s, &p, &m, &nm))
            exit(2);
        sum += nm;
    }
    return sum;
}

static uint64_t looked_at(void)
{
    const unsigned char *at = w.text, *const end = w.text + w.n;
    uint64_t sum = 0;
    while (at < end && (at = memchr(at, 0x81, (size_t)(end - at)))) {
        sum++;
        at++;
    }
    return sum;
}

int main(int argc, char **argv)
{
    size_t nlist;
    unsigned char *const list = argc > 2 ? all_of(argv[1], &nlist) : NULL;
    w.text = argc > 2 ? all_of(argv[2], &w.n) : NULL;
    if (!list || !w.text) {
        fprintf(stderr, "right: build/bench/scan_rows STRINGS TEXT [ROUNDS]\n");
        return 2;
    }
    const int rounds = argc > 3 ? atoi(argv[3]) : 5;
    double best[ROWS + 1];
    uint64_t found[ROWS + 1] = { 0 };
    struct scanner *rows[ROWS] = { 0 };
    strings_cut(list, nlist);
    for (unsigned v = 0; v < scan_nvariants && v < ROWS; v++)
        if (scan_variants[v].here()) {
            rows[v] = scanner_new(w.strings, w.nstrings,
                                  &(struct scan_spec){ .variant = v });
            if (!rows[v])
                return 2;
        }
    for (unsigned v = 0; v <= ROWS; v++)
        best[v] = 1e30;
    for (int round = 0; round < rounds; round++)
        for (unsigned v = 0; v <= ROWS; v++) {
            if (v < ROWS && !rows[v])
                continue;
            const double start = now_ns();
            found[v] = v < ROWS ? scanned(rows[v]) : looked_at();
            const double took = (now_ns() - start) * 1e-9;
            best[v] = took < best[v] ? took : best[v];
        }
    for (unsigned v = 0; v < ROWS; v++)
        if (rows[v]) {
            const struct scan_load *const load = scanner_load(rows[v]);
            const double bytes = (double)load->bytes;
            printf("%-10s %6.2f GB/s  %llu matches; of 1,000 bytes %.1f have "
                   "classes, %.2f pass, %.2f are compared; %zu groups\n",
                   scan_variants[v].name, (double)w.n / best[v] / 1e9,
                   (unsigned long long)found[v],
                   1e3 * (double)load->sieved / bytes,
                   1e3 * (double)load->passed / bytes,
                   1e3 * (double)load->compared / bytes,
                   scanner_groups(rows[v]));
        }
    printf("%-10s %6.2f GB/s\n", "memchr", (double)w.n / best[ROWS] / 1e9);
    return 0;
}

/*
 * speed_sketch.c - how fast are texts cut into shingles and sketched?
 *
 *     build/bench/speed_sketch [FOLDER]
 *
 * The texts are the files under FOLDER, /usr/share/doc by default, that hold no
 * byte zero, up to 64 MB of them; each is a document. Time is that of the
 * thread; the figure is the median of five passes over all texts, in MB (10^6
 * bytes) of text a second: words and shingles alone, then with the sketch of
 * each family, k = 128.
 */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdio.h>

#include <bloomery/sketch.h>

#include "bench/measure.h"

#define MOST_BYTES (64u << 20)
#define MOST_TEXTS 65536
#define PASSES 5

static char *all;
static size_t used, ntexts;
static struct {
    size_t at, len;
} texts[MOST_TEXTS];

static int take(const char *path, const struct stat *st, int type,
                struct FTW *at)
{
    (void)at;
    const size_t len = (size_t)st->st_size;
    if (type != FTW_F || len == 0 || ntexts == MOST_TEXTS ||
        len > MOST_BYTES - used)
        return 0;
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    if (fread(all + used, 1, len, f) == len && !memchr(all + used, 0, len)) {
        texts[ntexts].at = used;
        texts[ntexts++].len = len;
        used += len;
    }
    fclose(f);
    return 0;
}

/* MB per second; s NULL: shingles alone. */
static double speed(bly_shingler *cut, bly_sketch *s, uint64_t *nshingles)
{
    double seconds[PASSES];
    static volatile uint64_t sink;
    for (unsigned pass = 0; pass < PASSES; pass++) {
        uint32_t parts[BLY_MAX_COMPONENTS];
        const double start = now_ns() / 1e9;
        *nshingles = 0;
        for (size_t i = 0; i < ntexts; i++) {
            bly_shingles x;
            if (bly_shingle(cut, all + texts[i].at, texts[i].len, &x))
                exit(2);
            *nshingles += x.n;
            sink += x.text;
            if (!s)
                continue;
            bly_sketch_clear(s);
            if (bly_sketch_add(s, x.hashes, x.n))
                exit(2);
            if (bly_sketch_components(s, parts))
                sink += parts[0];
        }
        seconds[pass] = now_ns() / 1e9 - start;
    }
    return (double)used / 1e6 / median(seconds, PASSES);
}

int main(int argc, char **argv)
{
    all = malloc(MOST_BYTES);
    if (!all)
        return 2;
    nftw(argc > 1 ? argv[1] : "/usr/share/doc", take, 16, FTW_PHYS);
    if (!ntexts) {
        fputs("no texts there; name a folder that has some\n", stderr);
        return 0;
    }
    const char *job, *row = "";
    for (unsigned i = 0; (row = bly_cpu_row(i, &job)) != NULL; i++)
        if (strcmp(job, "likeness") == 0)
            break;
    printf("%zu texts, %.1f MB, row %s\n", ntexts, (double)used / 1e6,
           row ? row : "?");
    printf("%-8s %-10s %10s %12s %12s\n", "unit", "sketch", "MB/s",
           "ns/shingle", "ns of sketch");
    for (unsigned unit = 0; unit < 2; unit++) {
        const bly_shingling how = { .unit = (bly_unit)unit };
        bly_shingler *cut;
        uint64_t n;
        if (bly_shingler_new(&how, NULL, &cut))
            return 2;
        double alone = 0;
        for (unsigned f = 0; f <= BLY_FAMILY_COUNT_; f++) {
            bly_sketch *s = NULL;
            const bly_sketch_spec spec = { .shingling = how,
                                           .family = (bly_family)(f - 1) };
            if (f == BLY_LINEAR61 + 1 && unit == BLY_CHARS)
                continue; /* minutes */
            if (f && bly_sketch_new(&spec, &s))
                return 2;
            const double mb = speed(cut, s, &n);
            const double ns = (double)used * 1e3 / mb / (double)(n ? n : 1);
            if (!f)
                alone = ns;
            printf("%-8s %-10s %10.0f %12.2f %12.2f\n",
                   unit == BLY_WORDS ? "words" : "chars",
                   f ? bly_family_name(f - 1) : "none", mb, ns, ns - alone);
            bly_sketch_free(s);
        }
        bly_shingler_free(cut);
    }
    free(all);
    return 0;
}

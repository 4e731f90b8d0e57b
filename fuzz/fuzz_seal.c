/*
 * fuzz_seal.c - the index of a sealed archive, and words of any text
 *
 * Whatever the bytes are, the index is read or refused; what was read is asked
 * without harm. And the words of a text are the same however it is cut.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/seal/seal.h"
#include "report/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
    uint64_t hash, n;
};

static bool sum_word(void *ctx, bly_bytes word)
{
    struct sum *const s = ctx;
    const unsigned char *const at = word.ptr;
    assert(word.len > 0 && word.len <= BLY_KEY_ROOM(WORD_BYTES));
    for (size_t i = 0; i < word.len; i++)
        s->hash = (s->hash ^ at[i]) * UINT64_C(0x100000001b3);
    s->hash = s->hash * 31 + word.len;
    s->n++;
    return true;
}

static struct sum sum_text(const char *text, size_t n, size_t step)
{
    struct sum s = { 0 };
    struct word_cutter c = { .each = sum_word, .ctx = &s };
    for (size_t at = 0; at < n; at += step)
        words_cut(&c, text + at, n - at < step ? n - at : step);
    words_end(&c);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char folder[] = "/tmp/fuzz-seal-XXXXXX", path[64];
    static int fd = -1;
    if (fd < 0) {
        if (!secure_begin() || !mkdtemp(folder))
            exit(0);
        snprintf(path, sizeof path, "%s/index", folder);
        fd = open(path, O_RDWR | O_CREAT, 0600);
        quiet = true;
    }
    const char *const text = (const char *)data;
    const struct sum whole = sum_text(text, size, size ? size : 1);
    for (size_t step = 1; step < 6; step++) {
        const struct sum cut = sum_text(text, size, step);
        assert(cut.hash == whole.hash && cut.n == whole.n);
    }

    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        return 0;
    struct sealed_index x;
    bool found;
    static const unsigned char trapdoor[TRAPDOOR_BYTES];
    if (!index_open(folder, &x, &found))
        return 0;
    for (size_t i = 0; i < x.n; i++)
        zindex_has(x.entries[i].bits, x.entries[i].m, x.r, seal_prf, trapdoor,
                   x.entries[i].id);
    index_free(&x);
    return 0;
}

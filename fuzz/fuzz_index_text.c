/*
 * fuzz_index_text.c - compressed files that are entered in the middle
 *
 * Whatever the bytes are, they are read or refused; and what was read from the
 * beginning comes again from every entry that was found on the way.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "apps/index/text_file.h"

#define TEXT_MOST ((size_t)1 << 20) /* small files may unpack to gigabytes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *text, *again, path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        text = malloc(TEXT_MOST);
        again = malloc(TEXT_MOST);
        if (fd < 0 || !text || !again)
            exit(0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        return 0;
    struct text_file *const t = text_file_open(path, 1000);
    if (!t)
        return 0;
    size_t n = 0;
    ptrdiff_t got = 1;
    while (got > 0 && n < TEXT_MOST) {
        const size_t want = TEXT_MOST - n < 5000 ? TEXT_MOST - n : 5000;
        got = text_file_read(t, text + n, want);
        n += got > 0 ? (size_t)got : 0;
    }
    /* The text before an error came too; the rest is not asked for. */
    for (size_t at = 0; at < n; at += n / 9 + 1) {
        const struct text_entry *const e = text_file_entry_before(t, at);
        struct text_file *const u = text_file_open(path, 0);
        assert(u);
        size_t have = 0;
        const size_t want = n - at < 3000 ? n - at : 3000;
        assert(!e || e->text <= at);
        bool ok = text_file_go(u, e, at);
        while (ok && have < want) {
            got = text_file_read(u, again + have, want - have);
            ok = got > 0;
            have += ok ? (size_t)got : 0;
        }
        assert(memcmp(again, text + at, have) == 0);
        text_file_close(u);
    }
    text_file_close(t);
    return 0;
}

/*
 * fuzz_source.c - what the command reads: plain or compressed, whole or not
 *
 * Bytes come from a file in memory. What is read is a number of bytes or an
 * error with a text; a stream that expands without bound is left after a
 * while, as a command that is killed would leave it.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/source.h"

#define ENOUGH ((size_t)4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char buf[40000];
    char name[64];
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0)
        return 0;
    if (write(fd, data, size) != (ssize_t)size) {
        close(fd);
        return 0;
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    /* The last byte says what for, so that the corpus covers all three. */
    const enum source_use use = size ? data[size - 1] % 3 : SOURCE_LINES;
    struct source *s = source_open(name, -1, use);
    if (s) {
        size_t sum = 0;
        ptrdiff_t n = 0;
        /* Odd sizes, so that records end in the middle of reads. */
        while (sum < ENOUGH &&
               (n = source_read(s, buf, 1 + (sum * 7 + size) % sizeof buf)) > 0)
            sum += (size_t)n;
        if (n < 0)
            assert(source_error(s) && *source_error(s));
        assert(source_done(s) <= size);
        source_close(s);
    }
    close(fd);
    return 0;
}
